//! Marquetry is an Arrow-native [Apache Parquet](https://parquet.apache.org) reader: any file to exact [`RecordBatch`](arrow_array::RecordBatch)es, on
//! one thread or many, with clear errors for bad files.
//!
//! ```
//! use marquetry::Reader;
//!
//! # fn main() -> marquetry::Result<()> {
//! let reader = Reader::open("testdata/trips.parquet")?.project(["id", "fare"])?;
//! for batch in reader.batches()? {
//!     println!("{} rows", batch?.num_rows());
//! }
//! # Ok(())
//! # }
//! ```
//!
//! | to do this | look here |
//! |---|---|
//! | read some columns, nested ones too | [`Reader::project`] |
//! | read some rows | [`Reader::row_groups`], [`Reader::offset`], [`Reader::limit`] |
//! | read into a schema of your own | [`Reader::target`] |
//! | keep dictionaries, read strings as views | [`Reader::dictionaries`], [`Reader::views`] |
//! | choose threads, lend a pool | [`Reader::threads`], `Reader::pool` |
//! | bound the memory | [`Reader::memory`], [`Reader::batch_rows`], [`Limits`] |
//! | read from something of your own | [`io::Source`] |
//! | write a file | [`Writer`], [`WriteOptions`]; `examples/write.rs` |
//! | write many files in parallel | [`Export`]; `examples/parallel_export.rs` |
//! | look at the metadata | [`Reader::metadata`], [`format`](mod@format) |
//! | drive the stages yourself | [`read`] |
//!
//! # The architecture: start reading here
//!
//! The read corridor is a row of stages, each a value. A stage that wants bytes says which ([`read::Tail::needs`]) and is given them
//! ([`read::Tail::supply`]); what comes back is the next stage. Nothing in the corridor reads a file.
//!
//! ```text
//!  READ   bytes ─ Tail ─ Footer ─ Plan ──── RowGroup ── Chunk ── Page ──── Leaf ───── Assemble ─ Batch
//!                 magic  thrift   project   ranges      pages    decompr.  levels     Dremel     RecordBatch
//!                        schema   rows                                     + values   assembly
//! ```
//!
//! 1. [`read::Tail`] finds the footer, [`read::Footer`] parses it: the schema, and an index of the column chunks, which are decoded when asked for
//!    ([`format::FooterIndex`]).
//! 2. [`read::Plan`] decides which leaves and rows are read, and as which Arrow types ([`schema`](mod@schema)).
//! 3. [`read::RowGroup`] holds the bytes of a row group; its [`read::Unit`]s are what a thread decodes.
//! 4. [`read::Pages`] walks a column chunk, [`page`] opens a page: checksum, decompression ([`compress`]), the cut into levels and values.
//! 5. [`read::LeafReader`] decodes levels ([`levels`]) and values ([`encoding`]) straight into what becomes the Arrow buffers ([`simd`]).
//! 6. [`read::assemble`] builds lists, maps and structs around the leaves, and a batch is done.
//! 7. [`io`] drives it: [`io::Serial`] on the calling thread, [`io::Parallel`] on a pool.
//!
//! Each layer uses those below it, never those above; a test holds the code to that.
//!
//! ```text
//!  0 ground      error, limits, bytes, simd, trusted
//!  1 format      thrift, format
//!  2 schema      schema
//!  3 codecs      encoding, compress
//!  4 vocabulary  levels, stats
//!  5 page        page
//!  7 corridor    read, write
//!  8 drivers     io
//!  9 face        reader, writer, export
//! ```
//!
//! # Untrusted files
//!
//! No file can make the crate panic, hang or allocate without bound. Bytes of a file pass through [`bytes::Cursor`], every size that a file states
//! is checked where it is read, and what it may allocate is capped by [`Limits`] and counted by a [`Budget`]. An [`Error`] says what kind of fault it
//! is, which section of the specification was broken, and where: row group, column, page, byte.

#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(
    test,
    allow(
        clippy::unwrap_used,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "tests fail where they must"
    )
)]

pub mod bytes;
pub mod compress;
pub mod encoding;
pub mod error;
pub mod export;
pub mod format;
pub mod io;
pub mod levels;
pub mod limits;
pub mod page;
pub mod read;
pub mod reader;
pub mod schema;
pub mod simd;
pub mod stats;
pub mod thrift;
mod trusted;
pub mod write;
pub mod writer;

pub use {arrow_array, arrow_schema};

pub use compress::Compression;
pub use encoding::choose::Profile;
pub use error::{At, Error, ErrorKind, LimitKind, Result, Spec};
pub use export::{Export, ExportProgress, ExportedFile};
pub use limits::{Budget, Limits, Reservation};
pub use page::PageVersion;
pub use reader::{Batches, PageIndex, Reader, Threads};
pub use write::{
    BloomOptions, ColumnOptions, EncodedRowGroup, StatisticsLevel, WriteOptions, WriteReport,
};
pub use writer::{RowGroupEncoder, Writer};

/// The snippets of the README, as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;
