//! Writing: from record batches to the bytes of a file, stage by stage.
//!
//! ```text
//!  batch ── shred ───── column ───────── page ─────── chunk ──── row group ── footer ── tail
//!           levels,     dictionary or    compress,    offsets,   order,       thrift
//!           values      encoding,        checksum     indexes    offsets
//!                       statistics
//! ```
//!
//! A row group is encoded when all of its rows are there: leaf by leaf, on any thread. Nothing here
//! writes to a file: [`Writer`](crate::Writer) does.

pub(crate) mod sorting;
pub(crate) mod options;
pub(crate) mod report;
mod context;
mod shred;
mod column;
pub(crate) mod row_group;
mod encrypt;
mod footer;

pub use crate::encoding::choose::{encoding_named, is_legal};
pub use crate::encoding::readers::ValueType;
pub use footer::summary;
pub(crate) use options::WriteOptions;
pub(crate) use report::WriteReport;
pub use report::{ColumnReport, RowGroupReport};
pub(crate) use row_group::EncodedRowGroup;

pub(crate) use column::{EncodedChunk, Parallelism, SingleThread};
pub(crate) use context::EncoderContext;
pub(crate) use encrypt::{ModuleSealer, RowGroupEncryption};
pub(crate) use footer::{IndexWriter, Indexes, footer, indexes, magic, protect};
pub(crate) use options::LeafSettings;
pub(crate) use row_group::{
    BatchColumn, PendingRowGroup, RowGroupLayout, batch_bytes, level_bytes,
};
pub(crate) use sorting::CheckedSortOrder;
