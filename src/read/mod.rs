//! Reading, stage by stage: tail, footer, plan, row group, chunk, page, column, assemble, batch.
//!
//! Each stage is a value. A stage that wants bytes says which ([`needs`](Tail::needs)), is given
//! them ([`supply`](Tail::supply)), and becomes the next stage. The columns of a row group may want
//! bytes while they are decoded: one step says which bytes it needs, and the next step is given
//! them. Nothing here reads a file: the loops in [`crate::io`] do.
//!
//! Each module uses those that stand above it in the list below.

mod retry;
mod supplied;
mod decrypted;
pub(crate) mod footer;
#[cfg(feature = "async")]
mod async_keys;
mod tail;
pub(crate) mod metadata;
pub(crate) mod counters;
mod progress;
#[cfg_attr(not(feature = "engine"), allow(dead_code))]
pub(crate) mod loaded_indexes;
mod options;
pub(crate) mod wiring;
mod page_list;
mod page_search;
mod page_cache;
mod chunk_bytes;
mod chunk;
mod filter_stages;
mod window;
mod column;
mod assemble;
mod filter;
mod variant;
mod plan;
mod prune;
#[cfg_attr(not(feature = "async"), allow(dead_code))]
mod index_ranges;
mod regions;
mod walk;
pub(crate) mod bloom_filter;
mod chunk_dictionary;
mod chunk_entries;
mod column_task;
mod batch;
mod batch_size;
mod row_group;
mod shared_tasks;
mod scan;
mod coalesce;

pub(crate) use assemble::contradiction;
pub use batch::ReservedBatch;
pub(crate) use bloom_filter::StoredBloom;
pub(crate) use chunk_dictionary::ChunkDictionary;
pub(crate) use chunk_entries::ChunkEntries;
pub use chunk_entries::LeafEntries;
pub(crate) use coalesce::Coalescer;
pub use footer::Footer;
pub(crate) use metadata::{Metadata, PageIndex};
pub(crate) use metadata::{column_index_range, decode, offset_index_range};
pub use options::{
    Latency, OnDamage, PageIndexUse, ReadAhead, ReadOptions, TrustedUtf8, Utf8, VariantColumn,
    VariantOutput, VirtualColumn,
};
pub(crate) use page_cache::PageCache;
pub use plan::{Plan, RowRange};
pub use progress::Progress;
pub(crate) use prune::PrunedBy;
pub(crate) use regions::ChunkRegions;
pub(crate) use retry::Failed;
pub use row_group::RowGroupDecoder;
#[cfg(all(test, feature = "async"))]
pub(crate) use scan::MAX_SMALL;
pub use scan::RowGroupOpening;
pub(crate) use scan::{
    FilterFirst, Next, OpenContext, Opened, Opening, Prefetch, Scan, Wave, Workers,
};
#[cfg(feature = "async")]
pub(crate) use scan::{FilterTask, OpenStep};
pub use supplied::Step;
pub use tail::{FooterTail, Tail};
pub(crate) use walk::{ChunkWalk, chunk_range};
pub use walk::{StoredPage, StoredPages};
pub(crate) use wiring::ReadWiring;
