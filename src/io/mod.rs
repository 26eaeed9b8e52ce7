//! Drivers: loops that fetch the bytes that the stages want, and run the stages on one thread or
//! many.
//!
//! Only this module knows where bytes come from, and where they go. The drivers of a read are
//! `blocking`, `parallel` and `stream::driver`: each does what the scheduler of the read
//! (`read::scan`) asks for next. `ranges` makes requests of the wanted ranges, and `workers` are
//! the threads that decode. `encode` drives a write.

#[cfg_attr(not(feature = "parallel"), path = "threads_disabled.rs")]
mod threads;
mod pool;
mod job_queue;
mod encode;
mod sink;
mod temporary;
mod source;
mod reopened;
mod found_files;
mod ranges;
mod file_ranges;
mod workers;
mod blocking;
mod parallel;
mod file_set;
#[cfg(feature = "async")]
pub(crate) mod stream;
mod explain;

pub use crate::trusted::MappedFile;
pub(crate) use blocking::{Serial, load_indexes, open_footer};
pub(crate) use encode::{EncodeThreads, InFlight};
pub use explain::{ExplainedRowGroup, Explanation, Outcome};
pub(crate) use file_set::FileSet;
pub(crate) use found_files::find_files;
pub(crate) use parallel::Parallel;
pub(crate) use pool::Pool;
#[cfg(feature = "check")]
pub(crate) use pool::map_in;
pub(crate) use ranges::read_exactly;
pub(crate) use reopened::ReopenedFile;
pub use sink::{PathSink, Sink, WriteSink};
pub(crate) use source::Indexed;
pub use source::Source;
#[cfg(feature = "async")]
pub use stream::*;
pub use temporary::TempFolder;
pub(crate) use temporary::TemporaryFile;
