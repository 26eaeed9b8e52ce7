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
pub(crate) use filter_first::{FilterFirst, FilterTask, OpenContext, OpenStep, Opened, Opening};
pub use opening::RowGroupOpening;
#[cfg(test)]
pub(crate) use schedule::MAX_SMALL;
pub(crate) use schedule::{Next, Prefetch, Scan};
pub(crate) use wave::Wave;
