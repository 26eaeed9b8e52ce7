//! The plan of a read: its leaves, its row groups, their rows, and the bytes that each row group
//! needs.

mod rows;
mod scan;
mod chunk;
mod row_group;
#[cfg_attr(not(feature = "async"), allow(dead_code))]
mod parts;

pub(super) use self::chunk::{byte_range, end_of_short_chunk};
pub(super) use self::row_group::{ChunkWork, Fetched, FetchedChunk};
pub(crate) use self::row_group::{PageIndexPlan, RowGroupPlan};
pub use self::rows::RowRange;
pub use self::scan::Plan;
pub(super) use self::scan::proportion;
