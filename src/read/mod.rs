//! The read corridor, in reading order: tail, footer, plan, row group, chunk, page, leaf, assemble, batch.
//!
//! Stages are values. A stage that wants bytes says which ([`needs`](Tail::needs)) and is given them ([`supply`](Tail::supply)); what comes back is
//! the next stage. Nothing here reads a file: the loops that do are in [`crate::io`].

mod assemble;
mod batch;
mod chunk;
mod filter;
mod footer;
mod gather;
pub mod leaf;
mod metadata;
mod options;
mod page_maps;
pub(crate) mod pick;
mod plan;
mod row_group;
mod sieve;
mod tail;
mod unit;
mod window;

pub use assemble::assemble;
pub use batch::ReservedBatch;
pub use chunk::{PageList, Pages, PlacedPage, Pull, Trust};
pub use footer::Footer;
pub use gather::Gather;
pub use leaf::{LeafBatch, LeafReader};
pub use metadata::{Metadata, PageIndex, PageIndexRef};
pub(crate) use metadata::{column_index_range, decode, offset_index_range};
pub use options::{Latency, PageIndexUse, ReadOptions, TrustedUtf8, Utf8, VirtualColumn};
pub use page_maps::{KeptDictionary, PageMaps};
pub use plan::{LeafPlan, PageIndexPlan, Plan, RowGroupPlan, RowRange, Supplied};
pub(crate) use row_group::is_too_large;
pub use row_group::{Batcher, RowGroup, Sifted};
pub use sieve::{Found, Sieve, Sieved};
pub use tail::{FooterTail, Tail};
pub use unit::{Part, Unit};
pub use window::Window;
