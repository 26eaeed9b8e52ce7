//! [`FilterCheck`]: whether a bloom filter has all values of its chunk.
//!
//! Spec: BloomFilter.md. Used by `column`. Trap: the footer of an older file does not say how
//! long a filter is; its header does.

use bytes::Bytes;

use super::context::FileContext;
use super::finding::{CheckLevel, Finding, Findings};
use super::kind::FindingKind as K;
use super::order::LeafOrder;
use super::values::ValueBlock;
use crate::crypt::{ChunkDecryptor, Module};
use crate::error::{Error, Result, Spec};
use crate::format::{
    BloomFilterAlgorithm, BloomFilterCompression, BloomFilterHash, BloomFilterHeader,
    ColumnMetaData, Type,
};
use crate::limits::Reservation;
use crate::stats::bloom;
use crate::thrift::{Read, ThriftReader};

/// The bits of a filter, and the values that they miss.
pub(super) struct FilterCheck {
    bits: Bytes,
    misses: u64,
    /// The page of the first of them, and what it is.
    first: Option<(Option<usize>, String)>,
    _memory: Reservation,
}

/// Bytes that a header takes, at most.
const MAX_HEADER: u64 = 1024;
/// Bytes of the length of a module.
const LENGTH_LEN: u64 = 4;
/// Bytes of a block.
const BLOCK: u64 = 32;

/// A filter as its header describes it.
struct FilterLayout {
    /// Bytes of the header as it is stored.
    header_len: u64,
    /// Bytes of the bits as they are stored.
    bits_len: u64,
    is_known: bool,
}

impl FilterCheck {
    /// Checks the header of the filter of a chunk, and reads its bits where values are compared.
    pub(super) fn read(
        file: &FileContext,
        meta: &ColumnMetaData,
        decryptor: Option<&ChunkDecryptor>,
        findings: &mut Findings,
    ) -> Result<Option<Self>> {
        let Some(start) = meta.bloom_filter_offset.and_then(|start| u64::try_from(start).ok())
        else {
            return Ok(None);
        };
        let end = file.footer_start();
        if start < 4 || start >= end {
            return Ok(None);
        }
        let at = |finding: Finding| finding.with_offset(start);
        let head = start..start.saturating_add(MAX_HEADER).min(end);
        let (head, memory) = file.read(head)?;
        let layout = match layout(&head, decryptor) {
            Ok(layout) => layout,
            Err(error) => {
                findings.push(at(Finding::of_error(K::BloomFilterUnreadable, &error)));
                return Ok(None);
            }
        };
        drop(memory);
        if !layout.is_known {
            let text = "the bloom filter is of an unknown kind";
            findings.push(at(Finding::new(K::NotChecked, text)));
            return Ok(None);
        }
        let len = layout.header_len.saturating_add(layout.bits_len);
        if let Some(stated) = meta.bloom_filter_length
            && u64::try_from(stated) != Ok(len)
        {
            let name = "bloom_filter_length";
            findings.push(at(Finding::lie(K::BloomFilterLengthWrong, name, stated, len)));
        }
        let bits = start.saturating_add(layout.header_len)..start.saturating_add(len);
        if !file.has_room_for(&bits) {
            let text = format_args!("a bloom filter of {len} bytes, which end after {end}");
            findings.push(at(Finding::new(K::BloomFilterUnreadable, text)));
            return Ok(None);
        }
        // The format does not say how a BOOLEAN is hashed.
        if file.level < CheckLevel::Truth || meta.r#type == Type::Boolean {
            return Ok(None);
        }
        let (mut bytes, mut memory) = file.read(bits)?;
        if let Some(decryptor) = decryptor {
            memory.grow(bytes.len())?;
            bytes = decryptor.open(Module::BloomFilterBitset, &bytes)?.into();
        }
        Ok(Some(Self { bits: bytes, misses: 0, first: None, _memory: memory }))
    }

    /// Looks for the values of a block.
    pub(super) fn add(&mut self, block: ValueBlock<'_>, page: Option<usize>, order: &LeafOrder) {
        block.each(|value| {
            if !bloom::bits_might_contain(&self.bits, bloom::hash(value)) {
                self.misses += 1;
                self.first.get_or_insert_with(|| (page, order.show(value)));
            }
        });
    }

    pub(super) fn finish(self, findings: &mut Findings) {
        let Some((page, value)) = self.first else { return };
        let more = if self.misses > 1 { " and others" } else { "" };
        let text = format_args!("the bloom filter does not have {value}{more}");
        findings.push(Finding::new(K::BloomFilterMissesValue, text).with_page(page));
    }
}

fn layout(head: &[u8], decryptor: Option<&ChunkDecryptor>) -> Result<FilterLayout> {
    let (header, header_len, rest) = match decryptor {
        None => {
            let mut reader = ThriftReader::new(head);
            let header = BloomFilterHeader::read(&mut reader)?;
            (header, reader.position(), None)
        }
        Some(decryptor) => {
            let len = ChunkDecryptor::module_len(head)?;
            let module = head.get(..len).unwrap_or_default();
            let plain = decryptor.open(Module::BloomFilterHeader, module)?;
            let rest = head.get(len..).unwrap_or_default();
            (BloomFilterHeader::read(&mut ThriftReader::new(&plain))?, len, Some(rest))
        }
    };
    let is_known = header.algorithm == BloomFilterAlgorithm::Block
        && header.hash == BloomFilterHash::XxHash
        && header.compression == BloomFilterCompression::Uncompressed;
    let bits = u64::try_from(header.num_bytes).ok();
    let Some(bits) = bits.filter(|bits| *bits > 0 && bits.is_multiple_of(BLOCK)) else {
        let (what, expected) = ("bytes of the bloom filter", "a multiple of 32");
        return Err(Error::mismatch(Spec::BloomFilter, what, expected, header.num_bytes));
    };
    let bits_len = match rest {
        None => bits,
        // The module goes on beyond what was read here.
        Some(rest) => match rest.first_chunk() {
            Some(len) => u64::from(u32::from_le_bytes(*len)).saturating_add(LENGTH_LEN),
            None => ChunkDecryptor::module_len(rest)? as u64,
        },
    };
    Ok(FilterLayout { header_len: header_len as u64, bits_len, is_known })
}
