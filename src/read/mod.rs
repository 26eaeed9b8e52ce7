//! The read corridor, in reading order: tail, footer, plan, row group, chunk, page, leaf, assemble, batch.
//!
//! Stages are values. A stage that wants bytes says which ([`needs`](Tail::needs)) and is given them ([`supply`](Tail::supply)); what comes back is
//! the next stage. Nothing here reads a file: the loops that do are in [`crate::io`].

mod footer;
mod options;
mod page_maps;
mod chunk;
pub(crate) mod pick;
mod tail;
mod window;
mod column;
mod assemble;
mod filter;
mod plan;
mod batch;
mod gather;
mod metadata;
mod sieve;
mod unit;
mod row_group;

pub use batch::ReservedBatch;
pub(crate) use chunk::Pull;
pub(crate) use column::LeafBatch;
pub use footer::Footer;
pub(crate) use gather::Gather;
pub use metadata::{Metadata, PageIndex, PageIndexRef};
pub(crate) use metadata::{column_index_range, decode, offset_index_range};
pub use options::{Latency, PageIndexUse, ReadOptions, TrustedUtf8, Utf8, VirtualColumn};
pub(crate) use page_maps::PageMaps;
pub(crate) use plan::{PageIndexPlan, RowGroupPlan};
pub use plan::{Plan, RowRange};
pub use row_group::RowGroup;
pub(crate) use row_group::Supplied;
pub(crate) use row_group::is_too_large;
pub(crate) use sieve::{Found, Sieve, Sieved};
pub use tail::{FooterTail, Tail};
pub(crate) use unit::Part;
pub(crate) use window::Window;
