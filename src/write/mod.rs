//! Writing turns record batches into the bytes of a file, stage by stage.
//!
//! ```text
//!  batch ── shred ───── column ───────── page ─────── chunk ──── row group ── file ───── footer
//!           levels,     dictionary or    compress,    offsets,   order       places,    thrift
//!           values      encoding,        checksum     indexes                indexes
//!                       statistics
//! ```
//!
//! A row group is encoded once it has all of its rows: leaf by leaf, on any thread. `schedule`
//! decides when, and `file` assembles the bytes of the file. Nothing here starts a thread, or knows
//! where the bytes go: the drivers do, [`Writer`](crate::Writer) and `AsyncWriter`.

pub(crate) mod sorting;
pub(crate) mod geo_key;
mod spill_store;
pub(crate) mod leaf_names;
pub(crate) mod column_options;
pub(crate) mod options;
mod context;
mod shred;
mod column;
pub(crate) mod row_group;
mod spill;
mod given_levels;
mod encrypt;
mod footer;
mod placed;
pub(crate) mod report;
mod layout;
mod schedule;
mod file;

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
pub(crate) use file::FileAssembler;
pub(crate) use footer::{IndexWriter, footer, magic, state_paths};
pub(crate) use given_levels::{GivenEntries, GivenLeaf, GivenLevels, check_siblings};
pub(crate) use layout::FileLayout;
pub(crate) use row_group::{
    BatchColumn, PendingRowGroup, RowGroupLayout, ShreddedRows, encode_leaf,
};
pub(crate) use schedule::{MAX_IN_FLIGHT, WriteSchedule, WriteStep};
pub(crate) use sorting::CheckedSortOrder;
pub(crate) use spill::SpilledRows;
pub use spill_store::{SpillFile, SpillStore};
