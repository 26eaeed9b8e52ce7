//! [`Dataset::shuffled`]: rows in an order that looks random, read in large pieces.
//!
//! In each epoch the blocks of all files ([`RowBlocks`]) are put in a random order. As many as fit
//! the window are read together, and their rows are put in a random order. Rows that do not fill a
//! batch wait for the next window: the last ones by their places in the files, so that they are
//! known without reading when a read is resumed.

use std::fmt;

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};

use super::blocks::{RowBlocks, RowSegment};
use super::dataset::Dataset;
use crate::bytes::saturated;
use crate::error::{Error, Result};
use crate::memory;
use crate::read::OnDamage;
use crate::rows::{interleave, place_in};

impl Dataset {
    /// The rows in an order that looks random, for training: the same for the same files, columns,
    /// `seed` and `window`, and another in each [epoch](Shuffled::epoch). Every row is returned
    /// once in an epoch.
    ///
    /// Rows are read in blocks of neighbours: whole pages, about a 64th of the window each. The
    /// blocks of all files are put in a random order; those of a window, which holds `window` bytes
    /// of Arrow arrays by the metadata, are read together, and their rows mixed. So a batch has
    /// rows from about 64 random places of the dataset, and the window bounds the memory: one
    /// window is held, and a batch. A dataset that fits the window is shuffled evenly. Rows of one
    /// block, which are at most a 64th of the window, always come in the same window; that is what
    /// sets the order apart from one of single rows. A window of less than 64 pages of the largest
    /// column has fewer places.
    ///
    /// ```
    /// # fn main() -> marquetry::Result<()> {
    /// use marquetry::Dataset;
    ///
    /// let dataset = Dataset::open(["testdata/trips.parquet", "testdata/trips.parquet"])?;
    /// let shuffled = dataset.project(["id", "fare"])?.shuffled(7, 256 << 20).batch_rows(128);
    /// let mut rows = 0;
    /// for epoch in 0..2 {
    ///     // Worker 1 of 4, which goes on after 2 batches.
    ///     let mut batches = shuffled.clone().epoch(epoch).part(1, 4).skip(2).batches()?;
    ///     while let Some(batch) = batches.next_batch()? {
    ///         rows += batch.num_rows();
    ///     }
    /// }
    /// # assert!(rows > 0);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn shuffled(&self, seed: u64, window: u64) -> Shuffled {
        let (epoch, part, parts, skip) = (0, 0, 1, 0);
        let batch_rows = DEFAULT_BATCH_ROWS;
        Shuffled { dataset: self.clone(), seed, window, epoch, part, parts, skip, batch_rows }
    }
}

/// The settings of a shuffled read: see [`Dataset::shuffled`].
#[derive(Debug, Clone)]
pub struct Shuffled {
    dataset: Dataset,
    seed: u64,
    window: u64,
    epoch: u64,
    part: usize,
    parts: usize,
    skip: u64,
    batch_rows: usize,
}

impl Shuffled {
    /// The number of the epoch: each has an order of its own. Default 0.
    #[must_use]
    pub fn epoch(mut self, epoch: u64) -> Self {
        self.epoch = epoch;
        self
    }

    /// Reads part `part` of `parts`, for one of several workers. The parts of an epoch have no row
    /// in common, have all of them together, and about the same number of rows each.
    #[must_use]
    pub fn part(mut self, part: usize, parts: usize) -> Self {
        (self.part, self.parts) = (part, parts);
        self
    }

    /// Leaves out the first `batches` batches, to go on with an epoch that was begun: the others
    /// are the same as without. What is left out is not read, but for rows that wait for the next
    /// window.
    #[must_use]
    pub fn skip(mut self, batches: u64) -> Self {
        self.skip = batches;
        self
    }

    /// Rows of a batch, but for the last. Default 1,024.
    #[must_use]
    pub fn batch_rows(mut self, rows: usize) -> Self {
        self.batch_rows = rows.max(1);
        self
    }

    /// Starts the read. Nothing is read before the first batch is asked for.
    ///
    /// # Errors
    /// As [`Dataset::schema`] and [`Reader::plan`](crate::Reader::plan); `Usage` if there is no
    /// such part; `Unsupported` with a filter, because it decides how many rows a window has;
    /// `Limit(Memory)` if the metadata state sizes of more blocks than there is memory for.
    pub fn batches(&self) -> Result<ShuffledBatches> {
        let Self { part, parts, epoch, seed, window, .. } = *self;
        if part >= parts {
            return Err(Error::usage(format_args!(
                "part {part} of {parts} was asked for: the first is 0, and the last {}",
                parts.saturating_sub(1)
            )));
        }
        let schema = self.dataset.schema()?;
        for reader in self.dataset.readers() {
            if reader.read_options().filter.is_some() {
                let text = "shuffle all rows, and filter the batches";
                return Err(
                    reader.name(Error::unsupported("shuffling rows that pass a filter", text))
                );
            }
            if reader.read_options().on_damage != OnDamage::Fail {
                return Err(reader.refuses_damage("shuffled reads"));
            }
        }
        let blocks = RowBlocks::new(&self.dataset.resolved()?, (window / BLOCKS_OF_WINDOW).max(1))?;
        let count = u32::try_from(blocks.len())
            .map_err(|_| Error::unsupported("a dataset to shuffle", "of 2^32 blocks"))?;
        let mut order: Vec<u32> = memory::collected(0..count)?;
        Random::new([seed, epoch, 0, 0]).shuffle(&mut order);
        let order = memory::collected(order.into_iter().skip(part).step_by(parts))?;
        Ok(ShuffledBatches {
            schema,
            blocks,
            order: order.into_iter(),
            settings: self.clone(),
            windows: 0,
            skip: self.skip,
            waiting: Waiting::default(),
            pool: WindowRows::default(),
            is_done: false,
        })
    }
}

/// The batches of an epoch, or of a part of it. After an error there are no more.
pub struct ShuffledBatches {
    schema: SchemaRef,
    blocks: RowBlocks,
    /// The blocks that are still to be read.
    order: std::vec::IntoIter<u32>,
    settings: Shuffled,
    /// Windows so far.
    windows: u64,
    /// Batches that are still to be left out.
    skip: u64,
    waiting: Waiting,
    pool: WindowRows,
    is_done: bool,
}

/// The rows that did not fill a batch, in their order.
#[derive(Default)]
struct Waiting {
    segments: Vec<RowSegment>,
    /// The rows, if they were read.
    batch: Option<RecordBatch>,
}

/// The rows of a window.
#[derive(Default)]
struct WindowRows {
    batches: Vec<RecordBatch>,
    /// The number of rows up to the end of each.
    ends: Vec<u64>,
    /// The order of those that are returned, and how many were.
    order: Vec<u32>,
    next: usize,
}

impl fmt::Debug for ShuffledBatches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ShuffledBatches")
            .field("schema", &self.schema)
            .field("blocks_left", &self.order.len())
            .finish_non_exhaustive()
    }
}

impl ShuffledBatches {
    /// The schema of the batches.
    pub fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    /// Returns the next batch, or an error of this crate; `None` after the last.
    ///
    /// # Errors
    /// Any fault of the data, with its place.
    pub fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        if self.is_done {
            return Ok(None);
        }
        let next = self.advance();
        if !matches!(next, Ok(Some(_))) {
            self.is_done = true;
            (self.pool, self.waiting) = (WindowRows::default(), Waiting::default());
        }
        next
    }

    fn advance(&mut self) -> Result<Option<RecordBatch>> {
        while self.pool.next >= self.pool.order.len() {
            if !self.open_window()? {
                return Ok(None);
            }
        }
        let pool = &mut self.pool;
        let end = pool.order.len().min(pool.next + self.settings.batch_rows);
        let places = pool.order.get(pool.next..end).unwrap_or_default().iter();
        let places: Vec<_> = places.map(|row| place_in(&pool.ends, u64::from(*row))).collect();
        pool.next = end;
        interleave(&self.schema, &pool.batches, &places).map(Some)
    }

    /// Reads the next window; false if there is none.
    fn open_window(&mut self) -> Result<bool> {
        // Two windows are never held at once.
        self.pool = WindowRows::default();
        let batch_rows = self.settings.batch_rows as u64;
        let mut segments = Vec::new();
        let mut bytes = 0u64;
        while let Some(block) = self.order.as_slice().first().map(|block| u64::from(*block)) {
            let of_block = self.blocks.bytes_of(block);
            if bytes > 0 && bytes.saturating_add(of_block) > self.settings.window {
                break;
            }
            self.order.next();
            bytes = bytes.saturating_add(of_block);
            segments.push(self.blocks.segment(block)?);
        }
        segments.retain(|segment| segment.len() > 0);
        segments.sort_unstable();
        let is_last = self.order.len() == 0;
        if segments.is_empty() && self.waiting.segments.is_empty() {
            return Ok(!is_last);
        }
        let Self { settings: Shuffled { seed, epoch, part, .. }, .. } = *self;
        let mut random = Random::new([seed, epoch, part as u64 + 1, self.windows]);
        self.windows += 1;
        let all = self.waiting.segments.iter().chain(&segments);
        let rows: u64 = all.map(RowSegment::len).sum();
        let left = if is_last { 0 } else { rows % batch_rows };
        let full = rows - left;
        let skipped = self.skip.min(full.div_ceil(batch_rows));
        self.skip -= skipped;
        if skipped == full.div_ceil(batch_rows) {
            // Nothing of the window is wanted, but its last rows may be, in the next.
            let mut all = std::mem::take(&mut self.waiting.segments);
            all.append(&mut segments);
            self.waiting = Waiting { segments: last_rows(all, left), batch: None };
            return Ok(!is_last || left > 0);
        }
        let mut batches = Vec::new();
        match self.waiting.batch.take() {
            Some(batch) => batches.push(batch),
            None => {
                for segment in &self.waiting.segments {
                    self.blocks.read(std::slice::from_ref(segment), &mut batches)?;
                }
            }
        }
        self.blocks.read(&segments, &mut batches)?;
        let mut all = std::mem::take(&mut self.waiting.segments);
        all.append(&mut segments);
        self.pool = WindowRows::new(batches, rows, full, &mut random)?;
        self.pool.next = saturated(skipped.saturating_mul(batch_rows));
        let places: Vec<_> = (full..rows).map(|row| place_in(&self.pool.ends, row)).collect();
        let batch = match places.is_empty() {
            true => None,
            // A copy, so that the window is not held for it.
            false => Some(interleave(&self.schema, &self.pool.batches, &places)?),
        };
        self.waiting = Waiting { segments: last_rows(all, left), batch };
        Ok(true)
    }
}

impl WindowRows {
    /// A pool of `rows` rows: the first `full` are returned, in a random order.
    fn new(batches: Vec<RecordBatch>, rows: u64, full: u64, random: &mut Random) -> Result<Self> {
        let mut end = 0u64;
        let ends = batches.iter().map(|batch| {
            end += batch.num_rows() as u64;
            end
        });
        let ends: Vec<u64> = ends.collect();
        if end != rows {
            return Err(Error::internal(format_args!("{end} rows of a window of {rows}")));
        }
        let full = u32::try_from(full)
            .map_err(|_| Error::unsupported("a window", "of 2^32 rows: take a smaller one"))?;
        let mut order: Vec<u32> = (0..full).collect();
        random.shuffle(&mut order);
        Ok(Self { batches, ends, order, next: 0 })
    }
}

/// The last `rows` rows of segments.
fn last_rows(mut segments: Vec<RowSegment>, rows: u64) -> Vec<RowSegment> {
    let mut last = Vec::new();
    let mut left = rows;
    while left > 0
        && let Some(mut segment) = segments.pop()
    {
        let end = segment.split_end(left);
        left -= end.len();
        last.push(end);
    }
    last.reverse();
    last
}

impl Iterator for ShuffledBatches {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_batch().map_err(ArrowError::from).transpose()
    }
}

impl RecordBatchReader for ShuffledBatches {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}

/// Random numbers that follow from a seed: those of SplitMix64.
struct Random(u64);

impl Random {
    fn new(seeds: [u64; 4]) -> Self {
        seeds.into_iter().fold(Self(0), |mut random, seed| {
            random.0 ^= seed;
            Self(random.next())
        })
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Puts items in a random order: each is as likely, but for 2^-32.
    fn shuffle(&mut self, items: &mut [u32]) {
        for i in (1..items.len()).rev() {
            let other = (u128::from(self.next()) * (i as u128 + 1)) >> 64;
            items.swap(i, usize::try_from(other).unwrap_or(i));
        }
    }
}

/// Rows of a batch.
const DEFAULT_BATCH_ROWS: usize = 1_024;

/// RowBlocks of a window: fewer are less random, and more have smaller reads.
const BLOCKS_OF_WINDOW: u64 = 64;
