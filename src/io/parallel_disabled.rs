//! The parallel driver of a build without the feature `parallel`: one thread.

use std::sync::Arc;

use arrow_array::RecordBatch;

use super::{Progress, Serial, Source};
use crate::error::{Error, Result};
use crate::read::Plan;

/// The threads that decode: the one that asks.
#[derive(Debug, Clone)]
pub enum Pool {
    /// The calling thread.
    Global,
}

impl Pool {
    /// A pool of one thread.
    ///
    /// # Errors
    /// `FeatureDisabled` if more are wanted.
    pub fn new(threads: usize) -> Result<Self> {
        if threads > 1 {
            return Err(Error::feature_disabled(
                "parallel",
                format_args!("decoding with {threads} threads"),
            ));
        }
        Ok(Self::Global)
    }

    /// Whether it is of use beside the calling thread.
    pub(crate) fn has_threads(&self) -> bool {
        false
    }

    /// Does the work here and now.
    pub(crate) fn spawn(&self, work: impl FnOnce()) {
        work();
    }

    /// Number of threads.
    pub fn threads(&self) -> usize {
        1
    }
}

/// The batches of a plan, decoded by the thread that asks.
pub struct Parallel(Serial);

impl Parallel {
    /// The batches of `plan`, whose bytes come from `source`.
    pub fn new(source: Arc<dyn Source>, plan: Plan, _pool: Pool, progress: Progress) -> Self {
        Self(Serial::new(source, plan, progress))
    }

    /// The next batch; `None` after the last.
    ///
    /// # Errors
    /// `Io`, or whatever is wrong with the data.
    pub fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        self.0.next_batch()
    }
}

#[cfg(feature = "async")]
pub(super) use super::stream::serial_wave as wave_of;
