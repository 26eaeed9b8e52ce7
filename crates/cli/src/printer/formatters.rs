//! Runs threads that format batches, and returns the texts in the order of the batches.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::RecordBatch;

use super::lines::Lines;
use crate::failure::{Failure, Result};

/// The threads, and the batches that they work on.
pub(super) struct Formatters {
    work: SyncSender<FormatTask>,
    threads: usize,
    /// Texts that were not taken yet, in the order of the rows.
    pending: VecDeque<Receiver<Result<Vec<u8>>>>,
}

/// A batch, the number of rows before it, and where its text goes.
struct FormatTask {
    lines: Lines,
    batch: RecordBatch,
    rows: u64,
    text: SyncSender<Result<Vec<u8>>>,
}

impl Formatters {
    pub(super) fn new(threads: usize) -> Self {
        let (work, taken) = sync_channel::<FormatTask>(threads);
        let taken = Arc::new(Mutex::new(taken));
        for _ in 0..threads {
            let taken = taken.clone();
            std::thread::spawn(move || {
                loop {
                    let next = taken.lock().unwrap_or_else(PoisonError::into_inner).recv();
                    let Ok(FormatTask { lines, batch, rows, text }) = next else { break };
                    let mut out = Vec::new();
                    let written = lines.write(&batch, rows, &mut out);
                    // After an error the other texts are not wanted.
                    let _ = text.send(written.map(|()| out));
                }
            });
        }
        Self { work, threads, pending: VecDeque::new() }
    }

    /// Takes a batch. Returns the text of an earlier one, if enough are in progress.
    pub(super) fn push(
        &mut self,
        lines: Lines,
        batch: RecordBatch,
        rows: u64,
    ) -> Result<Option<Vec<u8>>> {
        let (text, pending) = sync_channel(1);
        self.work.send(FormatTask { lines, batch, rows, text }).map_err(|_| ended())?;
        self.pending.push_back(pending);
        if self.pending.len() > 2 * self.threads { self.pop() } else { Ok(None) }
    }

    /// The next text; `None` if all were given.
    pub(super) fn pop(&mut self) -> Result<Option<Vec<u8>>> {
        let Some(pending) = self.pending.pop_front() else { return Ok(None) };
        pending.recv().map_err(|_| ended())?.map(Some)
    }
}

/// Only if a thread has panicked.
fn ended() -> Failure {
    Failure::Output(std::io::Error::other("a thread that writes text has ended"))
}
