//! [`Batches`] iterates over the batches of a read.

use std::fmt;

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};

use super::Reader;
use super::batch_output::BatchOutput;
use crate::error::Result;
use crate::io::{Parallel, Serial};

impl Reader {
    /// Starts the read, and returns its batches in order.
    ///
    /// # Errors
    /// As [`Reader::plan`]. Faults of the data come with the batches.
    pub fn batches(&self) -> Result<Batches> {
        let plan = self.plan()?;
        let output = BatchOutput::new(&plan);
        let (source, progress) = (self.indexed_source(), self.progress.clone());
        let driver = match self.pool_for(&plan)? {
            Some(pool) if cfg!(feature = "parallel") => {
                Driver::Parallel(Box::new(Parallel::new(source, plan, pool, progress)))
            }
            _ => Driver::Serial(Box::new(Serial::new(source, plan, progress))),
        };
        Ok(Batches { driver, output })
    }
}

/// The batches of a read, in order. After an error there are no more.
///
/// Dropping it stops the work that is in progress.
pub struct Batches {
    driver: Driver,
    output: BatchOutput,
}

impl fmt::Debug for Batches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.output.fmt_as("Batches", f)
    }
}

enum Driver {
    Serial(Box<Serial>),
    Parallel(Box<Parallel>),
    Done,
}

impl Batches {
    /// The schema of the batches.
    pub fn schema(&self) -> SchemaRef {
        self.output.schema().clone()
    }

    /// Returns the next batch, or an error of this crate; `None` after the last.
    ///
    /// # Errors
    /// Any fault of the data, with its place.
    pub fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        let next = loop {
            if let Some(next) = self.output.end() {
                break next;
            }
            let next = self.driver.next_batch();
            if let Some(given) = self.output.take(next) {
                break given;
            }
        };
        if self.output.is_done() {
            self.driver = Driver::Done;
        }
        next
    }
}

impl Driver {
    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        match self {
            Self::Serial(serial) => serial.next_batch(),
            Self::Parallel(parallel) => parallel.next_batch(),
            Self::Done => Ok(None),
        }
    }
}

impl Iterator for Batches {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_batch().map_err(ArrowError::from).transpose()
    }
}

impl RecordBatchReader for Batches {
    fn schema(&self) -> SchemaRef {
        self.output.schema().clone()
    }
}
