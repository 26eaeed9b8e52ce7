//! An extent: the levels and values of a leaf in some rows, as bytes of a temporary file.
//!
//! ```text
//! CRC of the rest, u32 | whether it is compressed, u8 | length before that, u64 | levels, values
//! ```
//!
//! If the file that is written is encrypted, so is each extent, by a key that only this process
//! has.

use std::ops::Range;

use arrow_schema::DataType;
use bytes::Bytes;

use super::values::{self, ReadValues};
use crate::bytes::Cursor;
use crate::compress::{Compression, Compressor, Decompressor};
use crate::crypt::TemporaryKey;
use crate::error::{Error, Result, Spec};
use crate::free_lists::FreeLists;
use crate::memory;
use crate::schema::Leaf;
use crate::write::shred::LeafColumn;

/// Makes extents, in memory that is used again.
pub(super) struct ExtentWriter<'a> {
    compressor: Compressor,
    key: Option<&'a TemporaryKey>,
    free_lists: &'a FreeLists,
    raw: Vec<u8>,
    packed: Vec<u8>,
}

/// Sizes and type of an extent.
pub(super) struct Extent {
    /// Bytes in the temporary file.
    pub(super) stored: u64,
    /// Bytes of levels and values, or of the values as they are written, if those are more.
    pub(super) raw: u64,
    /// The type of the values; `None` if there was no array.
    pub(super) data_type: Option<DataType>,
}

impl<'a> ExtentWriter<'a> {
    pub(super) fn new(key: Option<&'a TemporaryKey>, free_lists: &'a FreeLists) -> Result<Self> {
        let compressor = Compressor::new(codec())?;
        Ok(Self { compressor, key, free_lists, raw: Vec::new(), packed: Vec::new() })
    }

    /// Appends the extent of a leaf, whose number no other extent of the file has.
    ///
    /// # Errors
    /// `Crypto` if the generator of the operating system fails; `Unsupported` if the array has a
    /// type that has no values.
    pub(super) fn append(
        &mut self,
        number: u64,
        column: &LeafColumn,
        out: &mut Vec<u8>,
    ) -> Result<Extent> {
        self.raw.clear();
        column.levels.store(&mut self.raw)?;
        let data_type = values::store(&column.parts, self.free_lists, &mut self.raw)?;
        self.packed.clear();
        // What is too long for the codec, or does not become shorter, is kept as it is.
        let is_packed = codec() != Compression::Uncompressed
            && self.compressor.compress(&self.raw, &mut self.packed).is_ok()
            && self.packed.len() < self.raw.len();
        let body = if is_packed { &self.packed } else { &self.raw };
        let start = out.len();
        memory::room(out, HEAD_LEN + body.len())?;
        out.extend([0; CRC_LEN]);
        out.push(u8::from(is_packed));
        out.extend((self.raw.len() as u64).to_le_bytes());
        out.extend_from_slice(body);
        let crc = crc32fast::hash(out.get(start + CRC_LEN..).unwrap_or_default());
        if let Some(place) = out.get_mut(start..start + CRC_LEN) {
            place.copy_from_slice(&crc.to_le_bytes());
        }
        if let Some(key) = self.key {
            let mut extent = out.split_off(start);
            key.seal(number, &mut extent)?;
            out.append(&mut extent);
        }
        let (stored, raw) = ((out.len() - start) as u64, self.raw.len() as u64);
        Ok(Extent { stored, raw, data_type })
    }
}

/// The rows of a leaf, from its extents and their numbers.
///
/// # Errors
/// `Malformed` or `Crypto` if the bytes are not those that were written.
pub(super) fn read(
    leaf: &Leaf,
    data_type: &DataType,
    extents: &[(u64, Bytes)],
    key: Option<&TemporaryKey>,
) -> Result<LeafColumn> {
    let mut column = LeafColumn::new(leaf);
    let mut values = ReadValues::new(data_type.clone());
    let mut decompressor = Decompressor::new(codec().codec())?;
    let mut unpacked = Vec::new();
    for (number, stored) in extents {
        let opened;
        let stored = match key {
            Some(key) => {
                opened = key.open(*number, stored)?;
                &opened[..]
            }
            None => stored,
        };
        let mut from = Cursor::new(stored, Spec::Levels);
        let crc = from.u32()?;
        if crc != crc32fast::hash(from.rest()) {
            return Err(Error::malformed(Spec::Levels, "a temporary file was changed"));
        }
        let is_packed = from.u8()? != 0;
        let len = usize::try_from(from.u64()?).unwrap_or(usize::MAX);
        let raw = match is_packed {
            true => {
                decompressor.decompress(from.rest(), len, &mut unpacked)?;
                &unpacked[..]
            }
            false => from.rest(),
        };
        let mut from = Cursor::new(raw, Spec::Levels);
        column.levels.push_stored(&mut from)?;
        // None, one or several arrays.
        while !from.is_empty() {
            values.push(&mut from)?;
        }
    }
    column.parts = values.finish()?;
    Ok(column)
}

/// Bytes by which the columns of some rows are divided among threads.
pub(super) fn blocks(sizes: impl Iterator<Item = u64>, max: u64) -> Vec<Range<usize>> {
    let (mut blocks, mut start, mut bytes, mut end) = (Vec::new(), 0, 0u64, 0);
    for size in sizes {
        if bytes > 0 && bytes.saturating_add(size) > max {
            blocks.push(start..end);
            (start, bytes) = (end, 0);
        }
        bytes = bytes.saturating_add(size.max(1));
        end += 1;
    }
    if start < end {
        blocks.push(start..end);
    }
    blocks
}

/// The fastest codec of this build.
fn codec() -> Compression {
    let fast = [Compression::Lz4Raw, Compression::Snappy, Compression::Zstd(1)];
    fast.into_iter().find(|codec| codec.is_built()).unwrap_or(Compression::Uncompressed)
}

const CRC_LEN: usize = 4;

/// Bytes before the body: the CRC, whether it is packed, and its length unpacked.
const HEAD_LEN: usize = CRC_LEN + 1 + 8;
