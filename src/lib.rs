//! Marquetry is an Arrow-native [Apache Parquet](https://parquet.apache.org) reader and writer: any
//! file to exact [`RecordBatch`](arrow_array::RecordBatch)es and back, on one thread or many, with
//! clear errors for bad files.
//!
//! ```
//! use marquetry::{Reader, Writer};
//!
//! # fn main() -> marquetry::Result<()> {
//! let reader = Reader::open("testdata/trips.parquet")?.project(["id", "fare"])?;
//! let batches = reader.batches()?;
//!
//! # let folder = std::env::temp_dir().join(format!("marquetry-doc-{}", std::process::id()));
//! # std::fs::create_dir_all(&folder).unwrap();
//! # let path = folder.join("fares.parquet");
//! let mut writer = Writer::create(&path, batches.schema())?;
//! for batch in batches {
//!     writer.write(&batch?)?;
//! }
//! let report = writer.finish()?;
//! assert_eq!(report.rows, 1_000);
//! # std::fs::remove_dir_all(&folder).unwrap();
//! # Ok(())
//! # }
//! ```
//!
//! | I want to | look here |
//! |---|---|
//! | read some columns, nested ones too | [`Reader::project`] |
//! | read some rows | [`Reader::row_groups`], [`Reader::offset`], [`Reader::limit`] |
//! | read rows by their numbers | [`Reader::take`], [`Reader::select`] |
//! | read the rows that meet a condition | [`Reader::filter`], [`col`], [`predicate`] |
//! | read into a schema of your own | [`Reader::target`] |
//! | keep dictionaries, read strings as views | [`Reader::dictionaries`], [`Reader::views`] |
//! | query files with DataFusion | the crate `marquetry-datafusion` |
//! | write an engine of your own | `engine` (feature `engine`) |
//! | divide a file among the threads of an engine | [`Reader::streams`], [`Reader::parts`] |
//! | read many files as one, or divide them | [`Dataset`] |
//! | hand batches to pyarrow | `ffi`; `examples/ffi_pyarrow` |
//! | hand batches to another version of arrow | `ffi`; `examples/other_arrow.rs` |
//! | come from the `parquet` crate | [the table](#from-the-parquet-crate) |
//! | see what takes the time | the feature `tracing`: spans of the target `marquetry` |
//! | choose the threads for reading | [`Reader::threads`], `Reader::pool` |
//! | choose the threads for writing | [`RowGroupEncoder::with_threads`] |
//! | write row groups of very many columns in little memory | [`WriteOptions::with_spill`] |
//! | bound the memory of reading | [`Reader::memory`], [`Reader::batch_rows`], [`Limits`] |
//! | bound the memory of writing | [`WriteOptions::with_memory`] |
//! | read from a source of your own, write into a sink of your own | [`io::Source`], [`io::Sink`] |
//! | read from an object store | `Reader::open_store`; `examples/async_s3.rs` |
//! | read asynchronously from anything | `AsyncReader` (feature `async`) |
//! | write asynchronously | `AsyncWriter` (feature `async`) |
//! | state the latency of a request | [`Reader::latency`] |
//! | look at the metadata | [`Reader::metadata`], [`format`](mod@format) |
//! | probe a bloom filter, or merge several | [`Reader::bloom_filter`], [`BloomFilter`] |
//! | read a dictionary page alone | [`Reader::dictionary_values`] |
//! | read levels and values without assembly | [`Reader::leaf_entries`] |
//! | know which readers open a file | [`readers::readers_of`]; `marq readers` |
//! | explain each byte of a file | `inspect::Inspector` (feature `inspect`); `marq hexdump` |
//! | check that a file states nothing false | `check::Checker` (feature `check`); `marq check` |
//! | see what takes the bytes, and the layout | `marq size`, `marq map`, `marq report` |
//! | see who wrote the file | [`read::Footer::created_by`] |
//! | keep the metadata of many files | [`Metadata`], [`Reader::open_with`] |
//! | load page indexes | [`Reader::load_page_indexes`] |
//! | write a file | [`Writer::create`], [`Writer::to`], [`Writer::new`] |
//! | write many files in parallel | [`Export`]; `examples/parallel_export.rs` |
//! | write a folder for each value of a column | [`Export::partition_by`] |
//! | write many objects of a store | `Export::to_store`, `Export::run_async` |
//! | write a `_metadata` summary, or read one | [`Export::summary`], [`Reader::files_below`] |
//! | choose codec, encodings and page sizes | [`WriteOptions`], [`Profile`] |
//! | choose them for some columns | [`WriteOptions::with_column`] |
//! | say that rows are sorted | [`WriteOptions::with_sort_order`] |
//! | know what was written, for a table format | [`WriteReport`] |
//! | encode on threads of your own | [`Writer::encoder`], [`Writer::append`] |
//! | write into a Parquet schema of your own | [`RowGroupEncoder::with_schema`] |
//! | write levels and values that you shredded yourself | [`RowGroupEncoder::leaves`] |
//! | read an encrypted file | `Reader::open_encrypted`, `crypt::Decryption` |
//! | encrypt a file, or columns of it | `WriteOptions::with_encryption`; `examples/encrypt.rs` |
//! | change the keys of a file without decoding its pages | `rewrite::recrypt` |
//! | have keys from a service | `crypt::KeyRetriever`, `crypt::kms`; `examples/kms.rs` |
//! | read geometries, filter by a rectangle | [`geo`], [`predicate::Column::intersects`] |
//! | read and write the key `geo` of GeoParquet | [`geo::GeoMetadata`], [`geo::GeoOptions`] |
//! | write boxes by which readers prune geometries | [`geo::CoveringColumns`] |
//! | fetch the bytes that FILE values refer to | [`file_reference`] |
//! | read VARIANT values, or parts of them | [`Reader::variants`], [`Reader::variant_get`] |
//! | build VARIANT columns | [`variant::VariantArrayBuilder`]; `examples/variant.rs` |
//! | make VARIANT values of Arrow arrays | [`variant::cast_to_variant`] |
//! | shred VARIANT columns | [`WriteOptions::with_shredding`] |
//! | drive the stages yourself, and fetch the bytes | [`read`], [`read::RowGroupOpening`] |
//!
//! Encrypted files need the feature `encryption`, object stores `object_store`.
//!
//! The versions of [`arrow_array`], [`arrow_buffer`], [`arrow_ipc`], [`arrow_schema`] and
//! `object_store` that fit are those that this crate re-exports; a plain `cargo add object_store`
//! brings a newer one, whose stores are of other types.
//!
//! An unoptimised build decodes ten to fifty times slower. In a workspace of your own,
//! `[profile.dev.package.marquetry]` with `opt-level = 3` optimises this crate alone.
//!
//! # The architecture: start reading here
//!
//! Names without a link are private modules; their documentation is in the sources.
//!
//! Reading is a sequence of stages, each a value. A stage that needs bytes says which
//! ([`read::Tail::needs`]). It is given them ([`read::Tail::supply`]), and returns the next stage.
//! Writing takes the same stages backwards, mostly in files of the same names. Neither does any
//! input or output, nor starts a thread: the drivers do. Those of reading are in [`io`]; those of
//! writing are [`Writer`] and `AsyncWriter`.
//!
//! ```text
//! READ  bytes ─ Tail ─ Footer ─ Plan ──── RowGroup ─ Chunk ── Page ──── Column ── Assemble ─ Batch
//!               magic  thrift   project   ranges     pages    decompr.  levels    Dremel     Arrow
//!                      schema   rows                                    + values  assembly
//! WRITE bytes ─ Tail ─ Footer ─ Sink ──── RowGroup ─ Chunk ── Page ──── Column ── Shred ──── Batch
//!                      thrift   offsets   order      offsets  compress  choose,   Dremel     Arrow
//!                      indexes                                          encode    shredding
//! ```
//!
//! Reading:
//!
//! 1. [`read::Tail`] finds the footer, and [`read::Footer`] parses it: the schema, and an index of
//!    the column chunks, which are decoded when asked for ([`format::FooterIndex`]).
//! 2. [`read::Plan`] decides which leaves and rows are read, and as which Arrow types
//!    ([`schema`](mod@schema)). With a filter ([`predicate`]), [`read::RowGroupOpening`] consults
//!    bloom filters and page indexes to find the rows that are left, and then asks for their pages.
//! 3. [`read::RowGroupDecoder`] holds the bytes of a row group. Its batches are decoded window by
//!    window and leaf by leaf (`read::column_task`), on any thread.
//!    [`read::RowGroupDecoder::next_batch`] does it on the calling one.
//! 4. `read::chunk` walks the pages of a column chunk. `page::open` opens a page: it verifies the
//!    checksum, decrypts (`crypt`), decompresses (`compress`), and separates levels and values.
//! 5. `read::column` decodes levels (`levels`) and values (`encoding`, `simd`) straight into the
//!    buffers of Arrow arrays.
//! 6. `read::assemble` builds lists, maps and structs around the leaves. `read::batch` makes a
//!    batch of the columns.
//! 7. [`io`] drives it: on the calling thread, on a pool of threads, or (feature `async`) where
//!    bytes come asynchronously. [`Reader::batches`] is where it begins.
//!
//! `read::scan` decides what is read when, and does nothing itself. A driver asks it what comes
//! next: to open a row group, which is to fetch the ranges that it wants until its bytes are there,
//! or to decode a wave. The threads of a pool decode the leaves of a wave, the heaviest first, and
//! split a leaf between pages where one thread would be busy alone. At most two waves are held: the
//! caller works on the batches of one while the pool decodes the next. One budget counts all memory
//! ([`Limits::memory_bytes`]).
//!
//! A failure says whether the rows can be decoded in another way. A row group whose pages
//! contradict its page index is opened again without it. If memory runs out, waiting batches are
//! returned first, and what was fetched ahead is dropped; then waves become smaller, and at last
//! batches are made one at a time, with fewer rows. An error of the caller's own code, such as a
//! function of a predicate, ends the read.
//!
//! Writing, in `write`:
//!
//! 1. Batches wait until a row group is full ([`Writer::write`]): `schedule` decides when it is,
//!    and when one must be written before more rows are held. The driver then encodes its columns
//!    on as many threads as there are (`io::encode`).
//! 2. `shred` computes the levels of each leaf, and finds where its values lie.
//! 3. `column` gathers the values, tries a dictionary, measures samples of the encodings that
//!    `encoding::choose` lists, encodes page by page, and collects the statistics (`stats`).
//!    `page::seal` compresses each page, and gives it a checksum and a header.
//! 4. `encrypt` encrypts the pages of columns that are protected. `file` assembles the file: it
//!    places the chunks, then bloom filters, indexes and the footer (`footer`). The driver passes
//!    the bytes to an [`io::Sink`], piece by piece.
//!
//! Each module uses only those before it, and so does each file of a folder, by the list in its
//! `mod.rs`. A test checks that.
//!
//! ```text
//!  0 base        error, trace, bytes, rows, calendar, span, simd, free_lists, limits, range_cache,
//!                trusted
//!  1 format      thrift, format
//!  2 schema      schema
//!  3 encodings   encoding, compress, crypt
//!  4 columns     levels, geo, stats, variant, file_reference
//!  5 pages       page
//!  6 selection   selection, predicate
//!  7 stages      read, write
//!  8 drivers     io
//!  9 interface   reader, writer, export, ffi, engine
//! 10 files       inspect, readers, check, rewrite
//! 11 crates      marquetry-cli, marquetry-datafusion: public items and `engine` only
//! ```
//!
//! # Glossary
//!
//! | word | meaning |
//! |---|---|
//! | leaf | a primitive node of the Parquet schema ([`schema::Leaf`]); in Parquet a column |
//! | column | a field of the batches; in Parquet's terms (column chunk, column index) a leaf |
//! | chunk | a column chunk: the pages of one leaf in one row group |
//! | slot | a place for a value, which may be null; a data page has one for each level entry |
//! | piece | consecutive bytes that are read or written in one call |
//! | part | rows of a read or a large row group that are read by themselves ([`Reader::parts`]) |
//! | window | the rows of a row group that become one batch |
//! | wave | the windows, of one row group or several, that are decoded at a time |
//! | task | one leaf of a row group of a wave, to be decoded |
//! | share | consecutive windows of a task, decoded by one thread |
//!
//! # Untrusted files
//!
//! No file can make the crate panic, hang or allocate without bound. Bytes of a file are parsed by
//! one cursor (`bytes`), every size that a file states is checked where it is read, and allocations
//! of that size are capped by [`Limits`] and counted by a budget. An [`Error`] says what kind of
//! fault it is, which section of the specification was broken, and where: row group, column, page,
//! byte.
//!
#![doc = include_str!("../docs/migration.md")]
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
#![cfg_attr(not(feature = "engine"), allow(unreachable_pub, reason = "public in `engine`"))]

mod bytes;
mod calendar;
#[cfg(feature = "check")]
pub mod check;
mod clock;
mod compress;
pub mod crypt;
mod encoding;
#[cfg(feature = "engine")]
pub mod engine;
mod error;
mod export;
#[cfg(feature = "ffi")]
pub mod ffi;
pub mod file_reference;
pub mod format;
pub mod geo;
#[cfg(feature = "inspect")]
pub mod inspect;
pub mod io;
mod levels;
mod limits;
mod memory;
mod page;
pub mod predicate;
mod range_cache;
pub mod read;
mod reader;
pub mod readers;
pub mod rewrite;
mod rows;
pub mod schema;
mod selection;
mod simd;
mod span;
#[cfg(test)]
mod steps;
mod free_lists;
mod stats;
mod thrift;
mod sync;
mod trace;
mod trusted;
pub mod variant;
pub mod write;
mod writer;

#[cfg(feature = "object_store")]
pub use object_store;
pub use {arrow_array, arrow_buffer, arrow_ipc, arrow_schema};

pub use compress::Compression;
pub use encoding::choose::Profile;
pub use encoding::readers::TargetReader;
pub use error::{At, Error, ErrorKind, LimitKind, Result, Spec};
pub use export::{Export, ExportProgress, ExportedFile};
pub use free_lists::BufferPool;
pub use limits::Limits;
pub use page::PageVersion;
pub use predicate::expression::{Predicate, all, any, col, not};
pub use predicate::literal::{Literal, lit};
pub use predicate::statistics::ColumnStatistics;
pub use read::bloom_filter::BloomFilter;
pub use read::metadata::{Metadata, PageIndex, PageIndexRef};
#[cfg(feature = "async")]
pub use reader::{AsyncReader, BatchStream, DatasetStream};
pub use reader::{
    Batches, DamagedRowGroup, Dataset, DatasetBatches, LeafBatches, NulledPage, Reader, Shuffled,
    ShuffledBatches, Threads,
};
pub use selection::{DeletionVector, RowSelection};
pub use write::column_options::{BloomOptions, ChunkingOptions, ColumnOptions, StatisticsLevel};
pub use write::options::WriteOptions;
pub use write::report::WriteReport;
pub use write::row_group::EncodedRowGroup;
pub use write::sorting::SortColumn;
#[cfg(feature = "async")]
pub use writer::AsyncWriter;
pub use writer::{LeafWriter, RowGroupEncoder, Writer};

/// The snippets of the README, as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;
