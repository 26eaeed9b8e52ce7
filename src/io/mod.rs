//! Drivers: the loops that fetch what the stages want, and run them on one thread or on many.
//!
//! The only part of the crate that knows where bytes come from, and where they go.

#[cfg(feature = "async")]
mod async_sink;
#[cfg(feature = "async")]
mod async_source;
mod blocking;
mod encode;
mod explain;
mod opening;
mod progress;
mod pull;
mod ranges;
mod sink;
mod source;
#[cfg(feature = "object_store")]
mod store;
#[cfg(feature = "async")]
mod stream;

#[cfg(feature = "parallel")]
#[path = "parallel.rs"]
mod parallel;

#[cfg(not(feature = "parallel"))]
#[path = "parallel_disabled.rs"]
mod parallel;

#[cfg(feature = "async")]
pub use async_sink::AsyncSink;
#[cfg(feature = "async")]
pub use async_source::{AsyncSource, FileEnd};
pub use blocking::{Serial, load_indexes, open_footer};
pub(crate) use encode::{Encode, InFlight, MOST_IN_FLIGHT};
pub use explain::{ExplainedRowGroup, Explanation, Outcome};
pub use parallel::{Parallel, Pool};
pub use progress::Progress;
pub use ranges::{Fetch, Requests, coalesce};
pub use sink::{PathSink, Sink, WriteSink};
pub(crate) use source::Indexed;
pub use source::Source;
#[cfg(feature = "object_store")]
pub use store::{StoreSink, StoreSource};
#[cfg(feature = "async")]
pub use stream::{Streamed, load_indexes_async, open_footer_async};
