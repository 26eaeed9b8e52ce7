//! [`Batches`] iterates over the batches of a read.

use std::collections::VecDeque;
use std::fmt;

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};

use super::Reader;
use super::batch_output::BatchOutput;
use crate::error::{Error, ErrorKind, Result, Spec};
use crate::io::{Parallel, Serial};
use crate::read::OnDamage;

impl Reader {
    /// Starts the read, and returns its batches in order.
    ///
    /// # Errors
    /// As [`Reader::plan`]. Faults of the data come with the batches.
    pub fn batches(&self) -> Result<Batches> {
        let plan = self.plan()?;
        let output = BatchOutput::new(&plan);
        if self.options.on_damage != OnDamage::Fail {
            let driver = Driver::Skipping(Box::new(SkippingDriver::new(self)?));
            return Ok(Batches { driver, output, damage: Vec::new() });
        }
        let (source, progress) = (self.indexed_source(), self.progress.clone());
        let driver = match self.pool_for(&plan)? {
            Some(pool) if cfg!(feature = "parallel") => {
                Driver::Parallel(Box::new(Parallel::new(source, plan, pool, progress)))
            }
            _ => Driver::Serial(Box::new(Serial::new(source, plan, progress))),
        };
        Ok(Batches { driver, output, damage: Vec::new() })
    }
}

/// The batches of a read, in order. After an error there are no more.
///
/// Dropping it stops the work that is in progress.
pub struct Batches {
    driver: Driver,
    output: BatchOutput,
    damage: Vec<DamagedRowGroup>,
}

/// A row group that was skipped, from a batch on, because it is damaged.
#[derive(Debug)]
#[non_exhaustive]
pub struct DamagedRowGroup {
    /// Its number in the file.
    pub row_group: usize,
    /// Its rows, by the metadata.
    pub rows: u64,
    /// Rows of it that were returned before; with a filter, those that pass.
    pub rows_returned: u64,
    /// The fault, and its place.
    pub error: Error,
}

impl fmt::Debug for Batches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.output.fmt_as("Batches", f)
    }
}

enum Driver {
    Serial(Box<Serial>),
    Parallel(Box<Parallel>),
    Skipping(Box<SkippingDriver>),
    Done,
}

impl Batches {
    fn is_done(&self) -> bool {
        self.output.is_done()
    }

    /// The schema of the batches.
    pub fn schema(&self) -> SchemaRef {
        self.output.schema().clone()
    }

    /// The damaged row groups that were skipped so far ([`Reader::on_damage`]).
    pub fn damage(&self) -> &[DamagedRowGroup] {
        &self.damage
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
            let next = self.driver.next_batch(&mut self.damage);
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
    fn next_batch(&mut self, damage: &mut Vec<DamagedRowGroup>) -> Result<Option<RecordBatch>> {
        match self {
            Self::Serial(serial) => serial.next_batch(),
            Self::Parallel(parallel) => parallel.next_batch(),
            Self::Skipping(skipping) => skipping.next_batch(damage),
            Self::Done => Ok(None),
        }
    }
}

/// Reads each row group by itself, so that one that is damaged ends no other.
struct SkippingDriver {
    /// Of a row group, without offset and limit.
    reader: Reader,
    row_groups: VecDeque<usize>,
    /// The row group that is read, or whose metadata are broken.
    number: usize,
    current: Option<OpenRowGroup>,
    /// Offset and limit, where no filter decides which rows they count.
    offset: u64,
    limit: Option<u64>,
}

/// The row group that is read.
struct OpenRowGroup {
    batches: Batches,
    returned: u64,
}

impl SkippingDriver {
    fn new(reader: &Reader) -> Result<Self> {
        if reader.wiring.part.is_some() {
            return Err(reader.refuses_damage("parts of a divided read"));
        }
        let mut reader = reader.clone();
        let options = &mut reader.options;
        options.on_damage = OnDamage::Fail;
        let all = || (0..reader.metadata.row_groups()).collect();
        let row_groups = options.row_groups.take().map_or_else(all, VecDeque::from);
        let (mut offset, mut limit) = (std::mem::take(&mut options.offset), options.limit.take());
        if options.filter.is_some() {
            // The rows that pass are counted after they were joined.
            (offset, limit) = (0, None);
        }
        Ok(Self { reader, row_groups, number: 0, current: None, offset, limit })
    }

    fn next_batch(&mut self, damage: &mut Vec<DamagedRowGroup>) -> Result<Option<RecordBatch>> {
        loop {
            if self.limit == Some(0) {
                return Ok(None);
            }
            let next = match &mut self.current {
                Some(open) => open.batches.next_batch(),
                None => {
                    let Some(number) = self.row_groups.pop_front() else { return Ok(None) };
                    self.open(number)
                }
            };
            match next {
                Ok(Some(batch)) => {
                    if let Some(batch) = self.cut(batch) {
                        return Ok(Some(batch));
                    }
                }
                Ok(None) if self.current.as_ref().is_some_and(|open| open.batches.is_done()) => {
                    self.current = None;
                }
                Ok(None) => {}
                Err(error) if is_damage(&error) => damage.push(self.skipped(error)),
                Err(error) => return Err(error),
            }
        }
    }

    /// Starts a row group; it has no batch yet.
    fn open(&mut self, number: usize) -> Result<Option<RecordBatch>> {
        self.number = number;
        let reader = self.reader.clone().row_groups([number])?;
        self.current = Some(OpenRowGroup { batches: reader.batches()?, returned: 0 });
        Ok(None)
    }

    /// The rows of a batch after the offset, and before the limit.
    fn cut(&mut self, batch: RecordBatch) -> Option<RecordBatch> {
        let rows = batch.num_rows() as u64;
        let skip = rows.min(self.offset);
        self.offset -= skip;
        let left = (rows - skip).min(self.limit.unwrap_or(u64::MAX));
        self.limit = self.limit.map(|limit| limit - left);
        if let Some(open) = &mut self.current {
            open.returned += left;
        }
        let (skip, left) = (usize::try_from(skip).ok()?, usize::try_from(left).ok()?);
        (left > 0).then(|| batch.slice(skip, left))
    }

    /// Gives up the current row group.
    fn skipped(&mut self, error: Error) -> DamagedRowGroup {
        let rows_returned = self.current.take().map_or(0, |open| open.returned);
        let rows = self.reader.metadata.row_group_rows(self.number).unwrap_or(0);
        DamagedRowGroup { row_group: self.number, rows, rows_returned, error }
    }
}

/// Whether an error is a fault of the bytes, that other row groups need not have.
fn is_damage(error: &Error) -> bool {
    match error.kind() {
        ErrorKind::Malformed(spec) => spec != Spec::Encryption,
        _ => false,
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
