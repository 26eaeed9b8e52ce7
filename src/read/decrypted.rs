//! [`DecryptedChunks`] keeps the metadata and page indexes of encrypted column chunks, decrypted
//! when they are first asked for.
//!
//! Spec: Encryption.md. It is part of [`Footer`](super::Footer), whose callers borrow from it.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::crypt::{FileDecryptor, Module};
use crate::error::{Error, Result};

pub(super) struct DecryptedChunks {
    file: FileDecryptor,
    /// The chunks of each row group, once one of them is asked for.
    row_groups: Box<[OnceLock<Box<[Chunk]>>]>,
    leaves: usize,
    bytes: AtomicUsize,
}

/// The decrypted metadata of a column chunk.
#[derive(Default)]
struct Chunk {
    metadata: OnceLock<Box<[u8]>>,
    offset_index: OnceLock<Box<[u8]>>,
    column_index: OnceLock<Box<[u8]>>,
}

impl DecryptedChunks {
    pub(super) fn new(file: FileDecryptor, row_groups: usize, leaves: usize) -> Self {
        let row_groups = (0..row_groups).map(|_| OnceLock::new()).collect();
        Self { file, row_groups, leaves, bytes: AtomicUsize::new(0) }
    }

    /// The keys of the file.
    pub(super) fn file(&self) -> &FileDecryptor {
        &self.file
    }

    /// Bytes of memory that it holds, about.
    pub(super) fn heap_bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed) + size_of_val(&*self.row_groups)
    }

    fn chunk(&self, row_group: usize, leaf: usize) -> Result<&Chunk> {
        let none = || {
            Error::usage(format_args!("there is no column chunk {leaf} in row group {row_group}"))
        };
        let chunks = self.row_groups.get(row_group).ok_or_else(none)?.get_or_init(|| {
            self.bytes.fetch_add(self.leaves * size_of::<Chunk>(), Ordering::Relaxed);
            (0..self.leaves).map(|_| Chunk::default()).collect()
        });
        chunks.get(leaf).ok_or_else(none)
    }

    fn keep(&self, bytes: Vec<u8>) -> Box<[u8]> {
        self.bytes.fetch_add(bytes.len(), Ordering::Relaxed);
        bytes.into()
    }

    /// The metadata of a chunk, decrypted by `open` if they were not before.
    pub(super) fn metadata(
        &self,
        row_group: usize,
        leaf: usize,
        open: impl FnOnce() -> Result<Option<Vec<u8>>>,
    ) -> Result<Option<&[u8]>> {
        let slot = &self.chunk(row_group, leaf)?.metadata;
        if let Some(kept) = slot.get() {
            return Ok(Some(kept));
        }
        Ok(open()?.map(|bytes| &**slot.get_or_init(|| self.keep(bytes))))
    }

    /// An index of a chunk, decrypted by `open` if it was not before.
    pub(super) fn index(
        &self,
        row_group: usize,
        leaf: usize,
        kind: Module,
        open: impl FnOnce() -> Result<Vec<u8>>,
    ) -> Result<&[u8]> {
        let chunk = self.chunk(row_group, leaf)?;
        let slot = match kind {
            Module::OffsetIndex => &chunk.offset_index,
            _ => &chunk.column_index,
        };
        if let Some(kept) = slot.get() {
            return Ok(kept);
        }
        let bytes = open()?;
        Ok(slot.get_or_init(|| self.keep(bytes)))
    }
}
