//! The scheduler of a read decides which row groups are opened, which are decoded, and what is
//! retried in another way.
//!
//! [`Scan`] only keeps the state of a read. A driver of [`crate::io`] fetches the bytes of each
//! [`Opening`], and decodes each [`Wave`] on its threads.

mod opening;
mod filter_first;
mod wave;
mod shares;
mod decode;
mod schedule;

pub(crate) use decode::Workers;
pub(crate) use filter_first::{FilterFirst, OpenContext, Opened, Opening};
#[cfg(feature = "async")]
pub(crate) use filter_first::{FilterTask, OpenStep};
pub use opening::RowGroupOpening;
#[cfg(all(test, feature = "async"))]
pub(crate) use schedule::MAX_SMALL;
pub(crate) use schedule::{Next, Prefetch, Scan};
pub(crate) use wave::Wave;
