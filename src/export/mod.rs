//! [`Export`] writes many streams of record batches into files of a folder or an object store, in
//! parallel, within one memory limit.

mod progress;
mod partition;
mod target;
mod builder;
mod run;
#[cfg(feature = "object_store")]
mod store;

pub use builder::Export;
pub use progress::{ExportProgress, ExportedFile};
