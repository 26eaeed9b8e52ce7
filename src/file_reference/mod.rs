//! FILE: values that hold bytes, or refer to bytes stored elsewhere.
//!
//! Spec: LogicalTypes.md, FILE. A FILE column is a struct in Arrow, marked by
//! [`LOGICAL_TYPE_KEY`]; [`FileColumn`] says what each row of it refers to. Nothing is fetched
//! unless [`FileReference::read`] is called, and then by the [`FileResolver`] of the caller.
//!
//! | `inline` | `uri` | `offset` | `size` | refers to |
//! |---|---|---|---|---|
//! | set | | | | the bytes in it, also where a locator beside it says where they came from |
//! | | set | | | the whole resource |
//! | | set | | set | its first `size` bytes |
//! | | set | set | set | `size` bytes of it, from `offset` on |
//! | otherwise | | | | nothing: the value is invalid |
//!
//! FILE came with version 2.14 of the format. Some readers from before it refuse a file with such a
//! column (pyarrow 26, polars 2.1), others read it as a struct.
//!
//! A string is set if it is neither null nor empty, anything else if it is not null. All children
//! are optional, in any order, and found by their exact names.
//!
//! ```
//! use std::ops::Range;
//! use std::sync::Arc;
//!
//! use bytes::Bytes;
//! use marquetry::arrow_array::{ArrayRef, Int64Array, StringArray, StructArray};
//! use marquetry::file_reference::{FileColumn, FileResolver, FileTarget};
//!
//! /// A store of one resource.
//! struct Store;
//!
//! impl FileResolver for Store {
//!     fn fetch(&self, _uri: &str, range: Option<Range<u64>>) -> marquetry::Result<Bytes> {
//!         let all = Bytes::from_static(b"all of it");
//!         Ok(range.map_or(all.clone(), |r| all.slice(r.start as usize..r.end as usize)))
//!     }
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let uri: ArrayRef = Arc::new(StringArray::from(vec!["s3://bucket/a", "s3://bucket/b"]));
//! let size: ArrayRef = Arc::new(Int64Array::from(vec![Some(3), None]));
//! let files = StructArray::try_from(vec![("uri", uri), ("size", size)])?;
//! let files = FileColumn::new(&files)?;
//! let first = files.get(0).expect("a row");
//! assert_eq!(first.target, FileTarget::External { uri: "s3://bucket/a", range: Some(0..3) });
//! assert_eq!(first.content_type, "application/octet-stream");
//! assert_eq!(first.read(&Store)?.as_deref(), Some(&b"all"[..]));
//! # Ok(())
//! # }
//! ```
//!
//! [`LOGICAL_TYPE_KEY`]: crate::schema::LOGICAL_TYPE_KEY

#[cfg(feature = "file-references")]
mod digest;
#[cfg(not(feature = "file-references"))]
#[path = "digest_disabled.rs"]
mod digest;
mod checksum;
mod resolve;
mod column;

pub use checksum::Checksum;
pub use column::FileColumn;
pub use resolve::{FileReference, FileResolver, FileTarget};

#[cfg(test)]
mod tests;
