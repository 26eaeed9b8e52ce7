//! Drivers: the loops that fetch what the stages want, and run them on one thread or on many.
//!
//! The only part of the crate that knows where bytes come from, and where they go. The drivers of a
//! read are `blocking`, `parallel` and `stream::driver`. Each opens row groups by `row_group_open`,
//! which says what to fetch next, and `ranges` makes requests of that. `encode` drives a write.

mod pool;
mod encode;
mod progress;
mod row_group_open;
mod filter_first;
mod sink;
mod source;
mod reopened;
mod ranges;
mod file_ranges;
mod blocking;
#[cfg(any(feature = "async", feature = "parallel"))]
mod wave;
#[cfg(feature = "async")]
mod serial_wave;
#[cfg(feature = "parallel")]
mod wave_retry;
#[cfg(feature = "parallel")]
mod shares;
#[cfg(feature = "parallel")]
#[path = "parallel.rs"]
mod parallel;
#[cfg(not(feature = "parallel"))]
#[path = "parallel_disabled.rs"]
mod parallel;
#[cfg(feature = "async")]
pub(crate) mod stream;
mod file_set;
mod explain;

pub(crate) use blocking::{Serial, load_indexes, open_footer};
pub(crate) use encode::{EncodeThreads, InFlight};
pub use explain::{ExplainedRowGroup, Explanation, Outcome};
pub(crate) use file_set::FileSet;
pub(crate) use parallel::Parallel;
pub(crate) use pool::Pool;
pub use progress::Progress;
pub(crate) use ranges::read_exactly;
pub(crate) use reopened::ReopenedFile;
pub use row_group_open::{Opened, RowGroupOpening};
pub use sink::{PathSink, Sink, WriteSink};
pub(crate) use source::Indexed;
pub use source::Source;
#[cfg(feature = "async")]
pub use stream::*;
