//! Reading, stage by stage: tail, footer, plan, row group, chunk, page, column, assemble, batch.
//!
//! Stages are values. A stage that wants bytes says which ([`needs`](Tail::needs)) and is given
//! them ([`supply`](Tail::supply)); what comes back is the next stage. Nothing here reads a file:
//! the loops that do are in [`crate::io`].

mod supplied;
mod decrypted;
mod footer;
mod options;
mod page_cache;
mod page_list;
mod chunk_bytes;
mod chunk;
pub(crate) mod row_filter;
mod tail;
mod window;
mod column;
mod assemble;
mod filter;
mod variant;
mod plan;
mod walk;
mod batch;
mod coalesce;
mod metadata;
mod prune;
mod column_task;
mod row_group;

pub use batch::ReservedBatch;
pub(crate) use coalesce::Coalescer;
pub(crate) use column::LeafBatch;
pub(crate) use column_task::ColumnDecoder;
pub use footer::Footer;
pub use metadata::{Metadata, PageIndex, PageIndexRef};
pub(crate) use metadata::{column_index_range, decode, offset_index_range};
pub use options::{
    Latency, PageIndexUse, ReadOptions, TrustedUtf8, Utf8, VariantColumn, VariantOutput,
    VirtualColumn,
};
pub(crate) use page_cache::PageCache;
pub(crate) use page_list::RangeReader;
pub(crate) use plan::{PageIndexPlan, RowGroupPlan};
pub use plan::{Plan, RowRange};
pub(crate) use prune::{PruneReport, PruneStep, RowGroupPruner};
pub use row_group::RowGroup;
pub(crate) use row_group::Supplied;
pub(crate) use row_group::is_too_large;
pub use tail::{FooterTail, Tail};
pub(crate) use walk::ChunkWalk;
pub use walk::{StoredPage, StoredPages};
pub(crate) use window::Window;
