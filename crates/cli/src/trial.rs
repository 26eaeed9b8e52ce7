//! Trials: rows of a file, written again as options say, and read again, with the time that takes.
//!
//! Times are medians over rounds, on one thread, and from memory, so that they compare encodings
//! and codecs, and not disks.

use std::time::{Duration, Instant};

use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::SchemaRef;
use bytes::Bytes;
use marquetry::io::WriteSink;
use marquetry::schema::Projection;
use marquetry::write::ColumnReport;
use marquetry::{Error, Reader, RowGroupEncoder, WriteOptions, WriteReport, Writer};

use crate::args::Global;
use crate::input;

/// The part of a file that stands for all of it.
#[derive(Debug, Clone)]
pub(crate) struct SamplePlan {
    pub(crate) row_groups: Vec<usize>,
    /// Rows of the first row group, if it is larger than the budget.
    limit: Option<u64>,
    pub(crate) rows: u64,
    /// Rows of the file.
    pub(crate) all_rows: u64,
}

/// Of the memory limit, the part that the rows of a sample take: trials hold copies of them.
const PART_OF_MEMORY: u64 = 8;

impl SamplePlan {
    /// Row groups that lie evenly in the file, and take about `budget` bytes there; at least one,
    /// or a part of it. Fewer, where the arrays of these columns would take too much memory.
    pub(crate) fn new(
        reader: &Reader,
        mut budget: u64,
        columns: &Projection,
        global: &Global,
    ) -> Result<Self, Error> {
        let max_bytes = input::limits(global).memory_bytes / PART_OF_MEMORY;
        budget = budget.min(reader.file_len());
        loop {
            let plan = Self::of_stored(reader, budget)?;
            if budget == 0 || plan.fits(reader, columns, max_bytes)? {
                return Ok(plan);
            }
            budget /= 2;
        }
    }

    /// Whether the arrays of the sample take at most `max_bytes`.
    fn fits(&self, reader: &Reader, columns: &Projection, max_bytes: u64) -> Result<bool, Error> {
        let mut bytes = 0;
        let mut batches = self.reader(reader, columns)?.batches()?;
        while bytes <= max_bytes
            && let Some(batch) = batches.next_batch()?
        {
            bytes += memory_of(&batch);
        }
        Ok(bytes <= max_bytes)
    }

    fn of_stored(reader: &Reader, budget: u64) -> Result<Self, Error> {
        let footer = reader.metadata();
        let groups = footer.row_groups();
        let all_rows = footer.rows()?;
        let bytes = reader.file_len().max(1);
        let wanted = u128::from(budget) * groups as u128 / u128::from(bytes);
        let wanted = usize::try_from(wanted).unwrap_or(groups).clamp(1, groups.max(1));
        let row_groups: Vec<usize> = match groups {
            0 => Vec::new(),
            _ => (0..wanted).map(|i| i * groups / wanted).collect(),
        };
        let mut rows = 0;
        for group in &row_groups {
            rows += footer.row_group_rows(*group)?;
        }
        let group_bytes = bytes / groups.max(1) as u64;
        let limit = (wanted == 1 && group_bytes > budget).then(|| {
            let part = u128::from(rows) * u128::from(budget) / u128::from(group_bytes.max(1));
            u64::try_from(part).unwrap_or(rows).clamp(1, rows.max(1))
        });
        let rows = limit.unwrap_or(rows).min(rows);
        Ok(Self { row_groups, limit, rows, all_rows })
    }

    /// A reader of the rows of these columns.
    pub(crate) fn reader(&self, reader: &Reader, columns: &Projection) -> Result<Reader, Error> {
        let mut options = reader.read_options().clone();
        options.projection = columns.clone();
        let reader = reader.clone().options(options);
        let reader = reader.row_groups(self.row_groups.iter().copied())?;
        Ok(match self.limit {
            Some(rows) => reader.limit(rows),
            None => reader,
        })
    }

    /// How much of bytes of these row groups belongs to the sample.
    pub(crate) fn share_of(&self, bytes: u64, rows: u64) -> u64 {
        scaled(bytes, self.rows, rows)
    }

    /// Bytes of the sample, as they would be of the whole file.
    pub(crate) fn extrapolated(&self, bytes: u64) -> u64 {
        scaled(bytes, self.all_rows, self.rows)
    }
}

/// `n · part / whole`.
fn scaled(n: u64, part: u64, whole: u64) -> u64 {
    let scaled = u128::from(n) * u128::from(part) / u128::from(whole.max(1));
    u64::try_from(scaled).unwrap_or(u64::MAX)
}

/// Rows in memory.
pub(crate) struct SampleRows {
    pub(crate) schema: SchemaRef,
    pub(crate) batches: Vec<RecordBatch>,
    pub(crate) rows: u64,
    /// Bytes of the arrays.
    pub(crate) memory_bytes: u64,
}

impl SampleRows {
    /// Reads all rows of a reader.
    pub(crate) fn read(reader: &Reader) -> Result<Self, Error> {
        let mut batches = Vec::new();
        let (mut rows, mut memory_bytes) = (0, 0);
        let mut from = reader.batches()?;
        while let Some(batch) = from.next_batch()? {
            rows += batch.num_rows() as u64;
            memory_bytes += memory_of(&batch);
            batches.push(batch);
        }
        Ok(Self { schema: reader.schema()?, batches, rows, memory_bytes })
    }
}

/// Bytes of the arrays of all rows, which are not kept.
pub(crate) fn memory_bytes(reader: &Reader) -> Result<u64, Error> {
    let mut bytes = 0;
    let mut batches = reader.batches()?;
    while let Some(batch) = batches.next_batch()? {
        bytes += memory_of(&batch);
    }
    Ok(bytes)
}

/// Bytes of the values of a batch.
fn memory_of(batch: &RecordBatch) -> u64 {
    let of = |column: &ArrayRef| {
        let values = column.to_data().get_slice_memory_size();
        // Of views, Arrow knows only what they share.
        values.unwrap_or_else(|_| column.get_array_memory_size()) as u64
    };
    batch.columns().iter().map(of).sum()
}

/// A written file, and how long that took.
pub(crate) struct TrialFile {
    pub(crate) bytes: Bytes,
    pub(crate) report: WriteReport,
    pub(crate) write_time: Duration,
}

impl TrialFile {
    /// Writes rows into memory.
    pub(crate) fn write(
        rows: &SampleRows,
        options: &WriteOptions,
        threads: usize,
    ) -> Result<Self, Error> {
        let begun = Instant::now();
        let encoder = RowGroupEncoder::new(rows.schema.clone(), options.clone())?;
        let encoder = encoder.with_threads(threads)?;
        let mut writer = Writer::over(WriteSink(Vec::new()), encoder);
        for batch in &rows.batches {
            writer.write(batch)?;
        }
        let (report, bytes) = writer.into_inner()?;
        Ok(Self { bytes: bytes.into(), report, write_time: begun.elapsed() })
    }

    /// The columns of each row group.
    pub(crate) fn columns(&self) -> Result<Vec<ColumnReport>, Error> {
        let mut columns = Vec::new();
        for i in 0..self.report.row_groups() {
            columns.extend(self.report.row_group(i)?.columns);
        }
        Ok(columns)
    }

    /// Bytes of its pages.
    pub(crate) fn page_bytes(&self) -> Result<u64, Error> {
        Ok(self.columns()?.iter().map(|column| column.bytes).sum())
    }

    /// How long it takes to read it.
    pub(crate) fn read_time(&self, rounds: usize) -> Result<Duration, Error> {
        let reader = Reader::new(self.bytes.clone())?.threads(1);
        median_of(rounds, || read_all(&reader).map(|_| ()))
    }
}

/// Reads all rows, and counts them.
pub(crate) fn read_all(reader: &Reader) -> Result<u64, Error> {
    let mut rows = 0;
    let mut batches = reader.batches()?;
    while let Some(batch) = batches.next_batch()? {
        rows += batch.num_rows() as u64;
    }
    Ok(rows)
}

/// The median time of `rounds` runs, of one at least.
pub(crate) fn median_of(
    rounds: usize,
    mut run: impl FnMut() -> Result<(), Error>,
) -> Result<Duration, Error> {
    let mut times = Vec::with_capacity(rounds);
    for _ in 0..rounds.max(1) {
        let begun = Instant::now();
        run()?;
        times.push(begun.elapsed());
        // A long run varies little.
        if begun.elapsed() >= LONG_RUN {
            break;
        }
    }
    Ok(median(&mut times))
}

/// A run that is measured once.
const LONG_RUN: Duration = Duration::from_millis(250);

/// The median; zero of none.
pub(crate) fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}
