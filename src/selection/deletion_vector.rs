//! [`DeletionVector`]: the rows of a file that a table has deleted.
//!
//! ```text
//! Delta, inline   Z85 of ( u32 magic | roaring bitmap ), padded to four bytes
//! Delta, a file   1 | at an offset: u32be length | ( u32 magic | roaring bitmap ) | u32be CRC-32
//! Iceberg         the same: the blob deletion-vector-v1 of a Puffin file
//! ```
//!
//! Spec: PROTOCOL.md of Delta, "Deletion Vector Format"; puffin-spec.md of Iceberg.

use std::ops::Range;
use std::sync::Arc;

use arrow_buffer::BooleanBuffer;
use bytes::Bytes;

use super::roaring::{Container, parse};
use super::row_selection::RowSelection;
use crate::bytes::{Cursor, saturated};
use crate::error::{Error, Result, Spec};

/// The rows of a file that a table has deleted, by their numbers: a deletion vector of Delta or of
/// Iceberg. Cheap to clone. [`Reader::exclude`](crate::Reader::exclude) leaves the rows out.
///
/// ```
/// # fn main() -> marquetry::Result<()> {
/// use marquetry::{DeletionVector, Reader};
///
/// // As it stands in the log of a Delta table: rows 3, 4, 7, 11, 18 and 29.
/// let text = "^Bg9^0rr910000000000iXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L";
/// let deleted = DeletionVector::from_delta_inline(text, 44)?;
/// let reader = Reader::open("testdata/trips.parquet")?.exclude(&deleted)?;
/// assert_eq!((deleted.count(), reader.rows()?), (6, 994));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct DeletionVector {
    containers: Arc<[Container]>,
    count: u64,
}

const SPEC: Spec = Spec::DeletionVectors;

/// Begins a portable bitmap.
const MAGIC: u32 = 1_681_511_377;

/// Begins the bitmap of another form, which Delta's protocol does not allow in tables.
const MAGIC_NATIVE: u32 = 1_681_511_376;

impl DeletionVector {
    /// A deletion vector of Delta: the magic number and the bitmap, without length and checksum.
    ///
    /// # Errors
    /// `Malformed` if it is none, `Unsupported` if it is of the form that only Java reads.
    pub fn from_delta(bytes: impl Into<Bytes>) -> Result<Self> {
        let bytes = bytes.into();
        let mut cursor = Cursor::new(&bytes, SPEC);
        match cursor.u32()? {
            MAGIC => Self::of_containers(parse(&bytes.slice(4..))?),
            MAGIC_NATIVE => {
                let text =
                    "a bitmap in the native form of Java: Delta's protocol wants the portable one";
                Err(Error::unsupported("a deletion vector of this form", text))
            }
            found => Err(Error::mismatch(SPEC, "magic number", MAGIC, found)),
        }
    }

    /// A deletion vector that stands in the log of a Delta table (`storageType` is `i`): `text` is
    /// its `pathOrInlineDv`, and `byte_len` its `sizeInBytes`.
    ///
    /// # Errors
    /// As [`DeletionVector::from_delta`]; `Malformed` if the text is not Z85, or too short.
    pub fn from_delta_inline(text: &str, byte_len: usize) -> Result<Self> {
        let bytes = z85(text)?;
        match bytes.len() >= byte_len {
            true => Self::from_delta(Bytes::from(bytes).slice(..byte_len)),
            false => Err(Error::mismatch(SPEC, "bytes of Z85", byte_len, bytes.len())),
        }
    }

    /// A deletion vector with its length and checksum: the blob `deletion-vector-v1` of a Puffin
    /// file of Iceberg, or what stands in a file of Delta at the `offset` of its descriptor.
    /// `bytes` may go on after it.
    ///
    /// # Errors
    /// As [`DeletionVector::from_delta`]; `Malformed` if the checksum does not match.
    pub fn from_blob(bytes: impl Into<Bytes>) -> Result<Self> {
        let bytes = bytes.into();
        let mut cursor = Cursor::new(&bytes, SPEC);
        let len = u32::from_be_bytes(cursor.array()?) as usize;
        let content = cursor.take(len)?;
        let stated = u32::from_be_bytes(cursor.array()?);
        let found = crc32fast::hash(content);
        if stated != found {
            let expected = format_args!("{stated:#010x}");
            return Err(Error::mismatch(SPEC, "CRC-32", expected, format_args!("{found:#010x}")));
        }
        Self::from_delta(bytes.slice_ref(content))
    }

    fn of_containers(containers: Vec<Container>) -> Result<Self> {
        let count = containers.iter().map(Container::count).fold(0, u64::saturating_add);
        Ok(Self { containers: containers.into(), count })
    }

    /// Number of deleted rows: the `cardinality` of Delta.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The deleted rows, as ranges of row numbers that ascend; they may touch.
    pub fn ranges(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        self.containers.iter().flat_map(Container::ranges)
    }

    /// The rows of a file of `len` rows that are not deleted. Deleted rows beyond the file are
    /// ignored, as Delta and Iceberg do. It takes at most an eighth of a byte for each row.
    pub fn kept(&self, len: u64) -> RowSelection {
        let pieces = self.containers.iter().map(Container::pieces).fold(0, u64::saturating_add);
        if RowSelection::prefers_bits(len, pieces) {
            let mut kept = vec![0xff; saturated(len.div_ceil(8))];
            self.containers.iter().for_each(|container| container.clear(&mut kept));
            return RowSelection::from_bits(BooleanBuffer::new(kept.into(), 0, saturated(len)));
        }
        let mut kept = 0;
        let gaps = self.ranges().chain(std::iter::once(len..len)).filter_map(|deleted| {
            let gap = kept..deleted.start.min(len);
            kept = kept.max(deleted.end);
            (gap.start < gap.end).then_some(gap)
        });
        RowSelection::from_ascending(len, gaps)
    }
}

/// Decodes Z85: five characters of base 85 for four bytes.
fn z85(text: &str) -> Result<Vec<u8>> {
    let (groups, rest) = text.as_bytes().as_chunks::<5>();
    if !rest.is_empty() {
        return Err(Error::mismatch(SPEC, "characters of Z85", "a multiple of 5", text.len()));
    }
    let mut out = Vec::with_capacity(groups.len() * 4);
    for group in groups {
        let mut value = 0u64;
        for character in group {
            let digit = Z85.iter().position(|known| known == character);
            let digit = digit.ok_or_else(|| Error::malformed(SPEC, "a character is not of Z85"))?;
            value = value * 85 + digit as u64;
        }
        let word = u32::try_from(value);
        let word = word.map_err(|_| Error::malformed(SPEC, "five characters exceed four bytes"))?;
        out.extend_from_slice(&word.to_be_bytes());
    }
    Ok(out)
}

const Z85: &[u8; 85] =
    b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#";
