//! [`Batches`] iterates over the batches of a read.

use std::collections::VecDeque;
use std::fmt;

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};

use super::Reader;
use super::batch_output::BatchOutput;
use super::null_pages::{NullFilled, NulledPage, is_damage};
use crate::error::{Error, Result};
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
            return Ok(Batches { driver, output, damage: Damage::default() });
        }
        let (source, progress) = (self.indexed_source(), self.progress.clone());
        let driver = match self.pool_for(&plan)? {
            Some(pool) if cfg!(feature = "parallel") => {
                Driver::Parallel(Box::new(Parallel::new(source, plan, pool, progress)))
            }
            _ => Driver::Serial(Box::new(Serial::new(source, plan, progress))),
        };
        Ok(Batches { driver, output, damage: Damage::default() })
    }
}

/// The batches of a read, in order. After an error there are no more.
///
/// Dropping it stops the work that is in progress.
pub struct Batches {
    driver: Driver,
    output: BatchOutput,
    damage: Damage,
}

/// The losses of a read that goes on after damage.
#[derive(Default)]
struct Damage {
    row_groups: Vec<DamagedRowGroup>,
    pages: Vec<NulledPage>,
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
    /// Why its damaged pages are not nulls, if they were to be ([`OnDamage::NullPages`]).
    pub not_nulled: Option<&'static str>,
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
    /// The schema of the batches.
    pub fn schema(&self) -> SchemaRef {
        self.output.schema().clone()
    }

    /// The damaged row groups that were skipped so far ([`Reader::on_damage`]).
    pub fn damage(&self) -> &[DamagedRowGroup] {
        &self.damage.row_groups
    }

    /// The damaged pages whose rows are null so far in the batches ([`OnDamage::NullPages`]).
    pub fn nulled(&self) -> &[NulledPage] {
        &self.damage.pages
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
    fn next_batch(&mut self, damage: &mut Damage) -> Result<Option<RecordBatch>> {
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
    /// Whether damaged pages are nulls.
    nulls: bool,
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
    batches: RowsOfRowGroup,
    returned: u64,
    /// Rows that were read, those before the offset among them.
    read: u64,
}

enum RowsOfRowGroup {
    Whole(Box<Batches>),
    /// With nulls where pages are damaged.
    Filled(Box<NullFilled>),
}

impl OpenRowGroup {
    /// The next batch; `None` at the end.
    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        let next = match &mut self.batches {
            RowsOfRowGroup::Whole(batches) => batches.next_batch()?,
            RowsOfRowGroup::Filled(rows) => rows.next_batch()?,
        };
        self.read += next.as_ref().map_or(0, |batch| batch.num_rows() as u64);
        Ok(next)
    }
}

impl SkippingDriver {
    fn new(reader: &Reader) -> Result<Self> {
        if reader.wiring.part.is_some() {
            return Err(reader.refuses_damage("parts of a divided read"));
        }
        let mut reader = reader.clone();
        let options = &mut reader.options;
        let nulls = options.on_damage == OnDamage::NullPages;
        options.on_damage = OnDamage::Fail;
        let all = || (0..reader.metadata.row_groups()).collect();
        let row_groups = options.row_groups.take().map_or_else(all, VecDeque::from);
        let (mut offset, mut limit) = (std::mem::take(&mut options.offset), options.limit.take());
        if options.filter.is_some() {
            // The rows that pass are counted after they were joined.
            (offset, limit) = (0, None);
        }
        Ok(Self { reader, nulls, row_groups, number: 0, current: None, offset, limit })
    }

    fn next_batch(&mut self, damage: &mut Damage) -> Result<Option<RecordBatch>> {
        loop {
            if self.limit == Some(0) {
                return Ok(None);
            }
            let next = match &mut self.current {
                Some(open) => open.next_batch(),
                None => {
                    let Some(number) = self.row_groups.pop_front() else { return Ok(None) };
                    match self.open(number) {
                        Ok(()) => continue,
                        Err(error) => Err(error),
                    }
                }
            };
            match next {
                Ok(Some(batch)) => {
                    if let Some(batch) = self.cut(batch) {
                        return Ok(Some(batch));
                    }
                }
                Ok(None) => self.current = None,
                Err(error) if is_damage(&error) => self.damaged(error, damage)?,
                Err(error) => return Err(error),
            }
        }
    }

    /// Starts a row group.
    fn open(&mut self, number: usize) -> Result<()> {
        self.number = number;
        let reader = self.reader.clone().row_groups([number])?;
        let batches = RowsOfRowGroup::Whole(Box::new(reader.batches()?));
        self.current = Some(OpenRowGroup { batches, returned: 0, read: 0 });
        Ok(())
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

    /// Goes on after damage: with nulls, or the next row group.
    fn damaged(&mut self, error: Error, damage: &mut Damage) -> Result<()> {
        let mut reason = None;
        if let (true, Some(open)) = (self.nulls, &mut self.current)
            && matches!(open.batches, RowsOfRowGroup::Whole(_))
        {
            match NullFilled::new(&self.reader, self.number, open.read)? {
                Ok((rows, pages)) => {
                    open.batches = RowsOfRowGroup::Filled(Box::new(rows));
                    damage.pages.extend(pages);
                    return Ok(());
                }
                Err(why) => reason = Some(why),
            }
        }
        damage.row_groups.push(DamagedRowGroup { not_nulled: reason, ..self.skipped(error) });
        Ok(())
    }

    /// Gives up the current row group.
    fn skipped(&mut self, error: Error) -> DamagedRowGroup {
        let rows_returned = self.current.take().map_or(0, |open| open.returned);
        let rows = self.reader.metadata.row_group_rows(self.number).unwrap_or(0);
        DamagedRowGroup { row_group: self.number, rows, rows_returned, error, not_nulled: None }
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
