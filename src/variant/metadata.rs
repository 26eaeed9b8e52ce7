//! [`VariantMetadata`]: the names of object fields.

use super::malformed;
use crate::error::{Error, Result};

/// The dictionary of names that the objects of a value refer to.
#[derive(Debug, Clone, Copy)]
pub struct VariantMetadata<'a> {
    /// The offsets of the names, and the end of the last one.
    offsets: &'a [u8],
    offset_size: usize,
    names: &'a [u8],
    len: usize,
    is_sorted: bool,
    byte_len: usize,
}

impl<'a> VariantMetadata<'a> {
    /// Reads metadata at the start of `bytes`, and checks all of it.
    ///
    /// # Errors
    /// `Malformed(Variant)` if an offset lies outside or names are not UTF-8, `Unsupported` for
    /// another version than 1.
    pub fn new(bytes: &'a [u8]) -> Result<Self> {
        let (&header, rest) = bytes.split_first().ok_or_else(|| malformed("metadata are empty"))?;
        let version = header & 0x0f;
        if version != 1 {
            return Err(Error::unsupported(
                "version of VARIANT metadata",
                format_args!("the metadata of a VARIANT are of version {version}, and 1 is known"),
            ));
        }
        let offset_size = usize::from(header >> 6) + 1;
        let short = || malformed("metadata end before their dictionary does");
        let (len, rest) = rest.split_at_checked(offset_size).ok_or_else(short)?;
        let len = unsigned(len);
        let offsets_len = len.checked_add(1).and_then(|n| n.checked_mul(offset_size));
        let (offsets, names) =
            offsets_len.and_then(|n| rest.split_at_checked(n)).ok_or_else(short)?;
        let mut previous = 0;
        let mut at = 0;
        for (i, offset) in offsets.chunks_exact(offset_size).enumerate() {
            let end = unsigned(offset);
            let name = names.get(previous..end).filter(|_| i > 0 || end == 0);
            let name = name.ok_or_else(|| {
                malformed(format_args!("the name {} of the metadata lies outside", i.max(1) - 1))
            })?;
            str::from_utf8(name).map_err(|_| malformed("a name of the metadata is not UTF-8"))?;
            previous = end;
            at = end;
        }
        let names = names.get(..at).ok_or_else(short)?;
        let byte_len = 1 + offset_size + offsets.len() + names.len();
        let is_sorted = header & 0x10 != 0;
        Ok(Self { offsets, offset_size, names, len, is_sorted, byte_len })
    }

    /// Number of names.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no names.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether the metadata say that names are sorted and unique.
    pub fn is_sorted(&self) -> bool {
        self.is_sorted
    }

    /// Bytes of the metadata.
    pub fn byte_len(&self) -> usize {
        self.byte_len
    }

    /// The name of this number.
    pub fn name(&self, id: usize) -> Option<&'a str> {
        let at = |i: usize| {
            let start = i.checked_mul(self.offset_size)?;
            self.offsets.get(start..start.checked_add(self.offset_size)?).map(unsigned)
        };
        let name = self.names.get(at(id)?..at(id.checked_add(1)?)?)?;
        // They were found to be UTF-8.
        str::from_utf8(name).ok()
    }

    /// The number of a name.
    pub fn find(&self, name: &str) -> Option<usize> {
        // Whether they are sorted is only said, so that a search may miss one.
        if self.is_sorted {
            let (mut low, mut high) = (0, self.len);
            while low < high {
                let middle = low + (high - low) / 2;
                match self.name(middle)?.cmp(name) {
                    std::cmp::Ordering::Less => low = middle + 1,
                    std::cmp::Ordering::Greater => high = middle,
                    std::cmp::Ordering::Equal => return Some(middle),
                }
            }
        }
        (0..self.len).find(|&id| self.name(id) == Some(name))
    }
}

/// An unsigned number of at most 4 bytes, from the least significant on.
pub(super) fn unsigned(bytes: &[u8]) -> usize {
    bytes.iter().rev().fold(0, |sum, byte| sum << 8 | usize::from(*byte))
}
