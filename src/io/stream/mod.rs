//! Asynchronous input and output (feature `async`): sources, sinks, the objects of object stores
//! (feature `object_store`), and the driver that reads.

mod sink;
mod source;
mod driver;
#[cfg(feature = "object_store")]
mod part_sizes;
#[cfg(feature = "object_store")]
pub(crate) mod store;

pub(crate) use driver::{Streamed, load_indexes_async, open_footer_async, read_range_async};
pub use sink::AsyncSink;
pub(super) use source::CachedSource;
pub use source::{AsyncSource, FileEnd};
#[cfg(feature = "object_store")]
pub use store::{StoreSink, StoreSource};
