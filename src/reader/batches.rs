//! [`Batches`]: the iterator over the batches of a read.

use std::fmt;
use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};

use super::Reader;
use super::batch_output::BatchOutput;
use crate::error::Result;
use crate::io::{Parallel, Serial};

impl Reader {
    /// Reads: gives the batches in order.
    ///
    /// # Errors
    /// As [`Reader::plan`]. Faults of the data come with the batches.
    pub fn batches(&self) -> Result<Batches> {
        let plan = self.plan()?;
        let schema = plan.schema().clone();
        let gathered = BatchOutput::new(&plan);
        let driver = match self.pool_for(&plan)? {
            None => Driver::Serial(Box::new(Serial::new(
                self.indexed_source(),
                plan,
                self.progress.clone(),
            ))),
            Some(pool) => Driver::Parallel(Box::new(Parallel::new(
                self.indexed_source(),
                plan,
                pool,
                self.progress.clone(),
            ))),
        };
        let file_name = self.file_name.clone();
        Ok(Batches { schema, driver, gathered, file_name })
    }
}

/// The batches of a read, in order. After an error there are no more.
///
/// Dropping it stops the work that is under way.
pub struct Batches {
    schema: SchemaRef,
    driver: Driver,
    gathered: BatchOutput,
    file_name: Option<Arc<str>>,
}

impl fmt::Debug for Batches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batches")
            .field("schema", &self.schema)
            .field("file_name", &self.file_name)
            .finish_non_exhaustive()
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
        self.schema.clone()
    }

    /// The next batch, with an error of this crate; `None` after the last.
    ///
    /// # Errors
    /// Whatever is wrong with the data, and where.
    pub fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        let next = loop {
            if let Some(next) = self.gathered.end() {
                break next;
            }
            let next = self.driver.next_batch();
            if let Some(given) = self.gathered.take(next) {
                break given;
            }
        };
        if self.gathered.is_done() {
            self.driver = Driver::Done;
        }
        next.map_err(|e| match &self.file_name {
            Some(name) => e.at_file(name.clone()),
            None => e,
        })
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
        self.schema.clone()
    }
}
