//! Reads and writes the thrift compact protocol of all metadata, with the policy for bad input.
//!
//! Spec: `thrift-compact-protocol.md` of Apache Thrift. `format` declares every struct with the one
//! macro of the crate ([`derive`]); `read::footer` and `page::open` read them:
//! `PageHeader::read(&mut ThriftReader::new(bytes))`. The reader borrows, skips unwanted fields
//! without allocating, and compares every length with the bytes that are left before it is used.
//! Trap: a bool has two encodings, the type nibble as a field and a byte in a list.
//!
//! # On the wire
//!
//! ```text
//! struct  field … stop                     stop is one zero byte
//! field   | id delta : 4 | type : 4 |  then the payload; the delta to the id before is 1 to 15
//!         | 0 : 4 | type : 4 | zigzag id | then the payload; the long form
//! list    | size : 4 | type : 4 |      then the elements
//!         | 15 : 4 | type : 4 | size |  then the elements; the long form
//! map     size, if not 0: | key type : 4 | value type : 4 |, then the pairs
//! ```
//!
//! # What is accepted
//!
//! * Field ids in any order, and of any sign, in the short or the long form.
//! * A bool in a list under the element nibble 1 or 2, false as 2 or as 0 (parquet-go writes `19 12
//!   00`).
//! * An empty list or map under any element nibble, and in the long form.
//! * A field that is not known: skipped by its wire type, whatever it is, and kept as it was
//!   ([`Unknown`]), so that writing the struct again loses nothing. The extension field of the
//!   format, 32767, is one of these; so is -16384, as which the recipe of the format's own document
//!   encodes it (`08 FF FF 01`).
//! * An enum value that is not known: kept as a number. A union member that is not known: kept as
//!   it was.
//! * A union with several members: the last known one. A union without a member: absent where it is
//!   optional.
//! * A field that occurs twice: the last one.
//! * An optional field of another wire type than declared, or a list of other elements: skipped.
//! * Text that is not UTF-8 where it is free text (`created_by`, keys and values): read with
//!   replacement characters, written back as it was.
//! * Bytes after the outermost struct.
//!
//! # What is not
//!
//! Everything else is [`Malformed`](crate::ErrorKind::Malformed) with
//! [`Spec::Metadata`](crate::Spec::Metadata), and names the struct and the field:
//!
//! * Bytes that end early; a length or a list size of more than what is left (every element takes a
//!   byte or more, so no allocation is sized by a number alone: a vector begins with room for at
//!   most 1024 elements and grows).
//! * A variable-length number of more than 3, 5 or 10 bytes, or of more bits than its type has (16,
//!   32, 64).
//! * A field id beyond 16 bits; a type nibble that is not known, where a value follows.
//! * A required field that is absent, or of another wire type. `ColumnMetaData.encodings` may be
//!   absent, as it may be empty.
//! * A name (of a schema element, in a path) that is not UTF-8: columns are found by name, and two
//!   must not become one.
//!
//! Unknown values nested more than 64 deep are an error too, [`Limit`](crate::ErrorKind::Limit).
//! Known ones are not recursive.

pub(crate) mod wire;
mod skip;
mod read;
mod write;
mod unknown;
mod list;
#[cfg_attr(not(feature = "inspect"), allow(dead_code))]
pub(crate) mod describe;
pub(crate) mod derive;
#[cfg(test)]
pub(crate) mod oracle;
#[cfg(test)]
mod tests;

pub use list::{LazyValue, List, ListIter};
pub(crate) use read::in_field;
pub(crate) use read::{Field, Read, ThriftReader};
pub(crate) use skip::SimilarStructSkipper;
#[cfg(feature = "check")]
pub(crate) use skip::{SkipError, struct_len};
pub use unknown::Unknown;
pub(crate) use write::{Write, empty_struct_field, with_elements};

use crate::error::Result;

/// A value of the metadata, as bytes of Thrift's compact protocol: all structs of
/// [`format`](mod@crate::format) that own what they hold.
///
/// ```
/// use marquetry::format::{KeyValue, Thrift};
///
/// # fn main() -> marquetry::Result<()> {
/// let pair = KeyValue::new("answer", "42");
/// let bytes = pair.to_thrift();
/// assert_eq!(KeyValue::from_thrift(&bytes)?, (pair, bytes.len()));
/// # Ok(())
/// # }
/// ```
pub trait Thrift: Write {
    /// Reads one from the start of `bytes`; and how many of them it takes.
    ///
    /// # Errors
    /// `Malformed` if the bytes are no such value.
    fn from_thrift(bytes: &[u8]) -> Result<(Self, usize)> {
        let mut reader = ThriftReader::new(bytes);
        let value = Self::read(&mut reader)?;
        Ok((value, reader.position()))
    }

    /// The bytes of the value. What was read from a file is written as it was there, with fields
    /// that are not known.
    ///
    /// # Panics
    /// If the system has no memory for them.
    fn to_thrift(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.write(&mut out).expect("the system has memory");
        out
    }
}

impl<T: Write> Thrift for T {}
