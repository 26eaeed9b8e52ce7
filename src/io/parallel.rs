//! The parallel driver decodes waves of windows on a rayon pool, and returns their batches in
//! order.
//!
//! While the caller works on the batches of one wave, the pool works on the next: so at most two
//! waves are held, and a row group larger than a wave is decoded window by window. While a wave is
//! decoded, the next row group is fetched; all threads share the requests of a row group.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};

use arrow_array::RecordBatch;

use super::blocking::ScanDriver;
use super::pool::Pool;
use super::source::Source;
use crate::error::Result;
use crate::read::{Plan, Prefetch, Progress, ReservedBatch, Scan};

/// The batches of a plan, decoded by a pool, in order.
pub(crate) struct Parallel {
    driver: Arc<ScanDriver>,
    pool: Pool,
    ready: VecDeque<ReservedBatch>,
    /// The wave that the pool works on.
    running: Option<Receiver<Finished>>,
    /// The state that the next wave continues from; the pool has it while a wave runs.
    scan: Option<Scan>,
}

/// The batches of a wave, perhaps none; `None` after the last.
type Batches = Result<Option<Vec<ReservedBatch>>>;

type Finished = std::thread::Result<(Scan, Batches)>;

impl Parallel {
    /// The batches of `plan`, whose bytes come from `source`, decoded by `pool`.
    pub(crate) fn new(source: Arc<dyn Source>, plan: Plan, pool: Pool, progress: Progress) -> Self {
        let prefetch = if source.in_memory() { Prefetch::Never } else { Prefetch::One };
        let driver = ScanDriver::new(source, plan, progress);
        let driver = Arc::new(ScanDriver { side_by_side: true, ..driver });
        let scan = Some(driver.scan(pool.threads(), prefetch));
        let (ready, running) = (VecDeque::new(), None);
        let mut parallel = Self { driver, pool, ready, running, scan };
        parallel.start();
        parallel
    }

    /// The next batch; `None` after the last.
    ///
    /// # Errors
    /// `Io`, or whatever is wrong with the data; rows before the fault have been given.
    pub(crate) fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(ReservedBatch { batch, .. }) = self.ready.pop_front() {
                self.driver.context.progress.gave(batch.num_rows());
                return Ok(Some(batch));
            }
            self.start();
            let Some(running) = self.running.take() else {
                return Ok(None);
            };
            let (scan, batches) = match wait(&running, &self.pool) {
                Ok(finished) => finished,
                Err(panic) => resume_unwind(panic),
            };
            let Some(batches) = batches? else { return Ok(None) };
            let may_overlap = scan.may_overlap();
            self.scan = Some(scan);
            self.ready = batches.into();
            if may_overlap {
                self.start();
            }
        }
    }

    /// Gives the next wave to the pool, unless it works on one.
    fn start(&mut self) {
        let Some(mut scan) = self.scan.take() else {
            return;
        };
        let waits = !self.ready.is_empty();
        let driver = self.driver.clone();
        let (send, receive) = sync_channel(1);
        self.pool.spawn(move || {
            let finished = catch_unwind(AssertUnwindSafe(|| {
                let batches = driver.advance(&mut scan, waits);
                (scan, batches)
            }));
            // The receiver may be gone.
            let _ = send.send(finished);
        });
        self.running = Some(receive);
    }
}

impl Drop for Parallel {
    fn drop(&mut self) {
        self.driver.cancelled.store(true, Ordering::Relaxed);
        if let Some(running) = self.running.take() {
            // Waits, so that no work continues after the read: a running task is at most one leaf
            // of one wave.
            let _ = wait(&running, &self.pool);
        }
    }
}

fn wait(running: &Receiver<Finished>, pool: &Pool) -> Finished {
    // A thread of the pool that waits must work meanwhile, or a pool of one would wait for itself.
    while pool.help() {
        match running.try_recv() {
            Ok(finished) => return finished,
            Err(TryRecvError::Empty) => std::thread::yield_now(),
            Err(TryRecvError::Disconnected) => break,
        }
    }
    running.recv().unwrap_or_else(|gone| Err(Box::new(gone)))
}
