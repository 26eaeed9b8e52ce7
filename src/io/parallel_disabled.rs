//! The parallel driver of a build without the feature `parallel`: one thread.

use std::sync::Arc;

use arrow_array::RecordBatch;

use super::blocking::Serial;
use super::pool::Pool;
use super::progress::Progress;
use super::source::Source;
use crate::error::Result;
use crate::read::Plan;

/// The batches of a plan, decoded by the thread that asks.
pub(crate) struct Parallel(Serial);

impl Parallel {
    /// The batches of `plan`, whose bytes come from `source`.
    pub(crate) fn new(
        source: Arc<dyn Source>,
        plan: Plan,
        _pool: Pool,
        progress: Progress,
    ) -> Self {
        Self(Serial::new(source, plan, progress))
    }

    /// The next batch; `None` after the last.
    ///
    /// # Errors
    /// `Io`, or whatever is wrong with the data.
    pub(crate) fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        self.0.next_batch()
    }
}

#[cfg(feature = "async")]
pub(super) use super::serial_wave::serial_wave as wave_of;
