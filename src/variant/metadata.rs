//! [`VariantMetadata`]: the names of object fields.

use std::cmp::Ordering;

use super::malformed::malformed;
use crate::error::{Error, Result};

/// The dictionary of names that the objects of a value refer to.
#[derive(Debug, Clone, Copy)]
pub struct VariantMetadata<'a> {
    /// All of the metadata: the header, the number of names, their offsets and the end of the last
    /// one, the names.
    bytes: &'a [u8],
    /// All names, end to end.
    names: &'a str,
    len: u32,
    offset_size: u8,
    is_sorted: bool,
    /// Whether names are in ascending order without duplicates, as checked here: the header may be
    /// wrong.
    is_ascending: bool,
}

impl<'a> VariantMetadata<'a> {
    /// Reads metadata at the start of `bytes`, and checks all of it.
    ///
    /// # Errors
    /// `Malformed(Variant)` if an offset lies outside or names are not UTF-8, `Unsupported` for
    /// another version than 1.
    pub fn new(bytes: &'a [u8]) -> Result<Self> {
        let header = *bytes.first().ok_or_else(|| malformed("metadata are empty"))?;
        let version = header & 0x0f;
        if version != 1 {
            return Err(Error::unsupported(
                "version of VARIANT metadata",
                format_args!("the metadata of a VARIANT are of version {version}, and 1 is known"),
            ));
        }
        let mut this = Self::open(bytes)
            .ok_or_else(|| malformed("metadata end before their dictionary does"))?;
        this.names = this.read_names()?;
        this.is_ascending = this.check_names()?;
        Ok(this)
    }

    /// Like [`new`](Self::new), with the metadata of another value, usually those of the row
    /// before: if the bytes are the same, they are not checked again.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    #[inline]
    pub fn new_after(bytes: &'a [u8], other: &Self) -> Result<Self> {
        // The length is in the bytes, and so is the end.
        if bytes.starts_with(other.bytes) { Ok(*other) } else { Self::new(bytes) }
    }

    /// Reads metadata that were checked before or written by this crate: only UTF-8 is checked
    /// again.
    pub(super) fn checked(bytes: &'a [u8]) -> Option<Self> {
        let mut this = Self::open(bytes)?;
        this.names = this.read_names().ok()?;
        Some(this)
    }

    /// Parses the header and the length, without the names.
    fn open(bytes: &'a [u8]) -> Option<Self> {
        let header = *bytes.first()?;
        let offset_size = (header >> 6) + 1;
        let size = usize::from(offset_size);
        let len = unsigned(bytes.get(1..1 + size)?);
        // The number of names comes before their offsets, and has the same width.
        let ends = len.checked_add(1)?.checked_mul(size)?.checked_add(1)?;
        let names = ends.checked_add(size)?;
        let byte_len = names.checked_add(unsigned(bytes.get(ends..names)?))?;
        Some(Self {
            bytes: bytes.get(..byte_len)?,
            names: "",
            len: u32::try_from(len).ok()?,
            offset_size,
            is_sorted: header & 0x10 != 0,
            is_ascending: false,
        })
    }

    fn read_names(&self) -> Result<&'a str> {
        let start = 1 + usize::from(self.offset_size) * (self.len() + 2);
        let names = self.bytes.get(start..).unwrap_or_default();
        simdutf8::basic::from_utf8(names)
            .map_err(|_| malformed("the names of the metadata are not UTF-8"))
    }

    /// Checks the offsets of names. Returns whether names are in ascending order without
    /// duplicates.
    fn check_names(&self) -> Result<bool> {
        let names = self.names;
        let mut is_ascending = true;
        let mut previous: Option<&str> = None;
        let mut start = self.end(0).unwrap_or(0);
        if start != 0 {
            return Err(malformed(format_args!(
                "the first name of metadata begins at {start}, not 0"
            )));
        }
        for id in 0..self.len() {
            let end = self.end(id + 1).unwrap_or(0);
            let name = names.get(start..end).ok_or_else(|| {
                malformed(format_args!(
                    "name {id} of the metadata lies outside, or ends within a character: {start} \
                     to {end} of {}",
                    names.len()
                ))
            })?;
            is_ascending = is_ascending && previous.is_none_or(|previous| previous < name);
            previous = Some(name);
            start = end;
        }
        Ok(is_ascending)
    }

    /// The offset at which name `id` begins, and the one before it ends.
    #[inline]
    fn end(&self, id: usize) -> Option<usize> {
        let size = usize::from(self.offset_size);
        unsigned_at(self.bytes, 1 + size + id * size, size)
    }

    /// Number of names.
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// Whether there are no names.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether the header states that names are sorted and unique.
    pub fn is_sorted(&self) -> bool {
        self.is_sorted
    }

    /// Whether names are sorted and unique.
    pub(super) fn is_ascending(&self) -> bool {
        self.is_ascending
    }

    /// The bytes of the metadata.
    pub fn as_bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The name of this id.
    #[inline]
    pub fn name(&self, id: usize) -> Option<&'a str> {
        if id >= self.len() {
            return None;
        }
        let name = self.names.get(self.end(id)?..self.end(id + 1)?)?;
        #[cfg(test)]
        crate::steps::add(name.len());
        Some(name)
    }

    /// The id of a name.
    pub fn find(&self, name: &str) -> Option<usize> {
        if !self.is_ascending {
            return (0..self.len()).find(|&id| self.name(id) == Some(name));
        }
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low + (high - low) / 2;
            match self.name(middle)?.cmp(name) {
                Ordering::Less => low = middle + 1,
                Ordering::Greater => high = middle,
                Ordering::Equal => return Some(middle),
            }
        }
        None
    }

    /// All ids of a name, in order: more than one only if names are not unique.
    pub(super) fn find_all(&self, name: &str) -> Vec<usize> {
        (0..self.len()).filter(|&id| self.name(id) == Some(name)).collect()
    }
}

/// A little-endian unsigned number of at most 4 bytes.
pub(super) fn unsigned(bytes: &[u8]) -> usize {
    bytes.iter().rev().fold(0, |sum, byte| sum << 8 | usize::from(*byte))
}

/// The little-endian number of `size` bytes, 1 to 4, at offset `at`.
#[inline]
pub(super) fn unsigned_at(bytes: &[u8], at: usize, size: usize) -> Option<usize> {
    // Loads four bytes at once, and masks those beyond `size`.
    if let Some(&word) = bytes.get(at..).and_then(<[u8]>::first_chunk::<4>) {
        return Some((u32::from_le_bytes(word) & (u32::MAX >> (32 - 8 * size))) as usize);
    }
    bytes.get(at..at.checked_add(size)?).map(unsigned)
}
