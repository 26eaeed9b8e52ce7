//! [`RowSorter`] sorts rows, also more than fit into memory.
//!
//! Rows are held until half of the memory is taken, sorted, and written to a temporary file: a
//! run. In the end all runs are merged, a few at a time if there are many. Equal rows keep their
//! order.
//!
//! | file | what it does |
//! |---|---|
//! | `spill` | a run in a temporary file, as an Arrow IPC stream |
//! | `merge` | rows of several sorted inputs as one |

mod spill;
mod merge;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, FieldRef, Schema as ArrowSchema, SchemaRef};

pub(super) use self::merge::{Interleaved, MergedRows, RowInput, like};
use self::spill::{RunWriter, SpilledRun};
use crate::error::{Error, LimitKind, Result};
use crate::memory;
use crate::schema::{FromArrowOptions, Leaf, from_arrow};
use crate::write::CheckedSortOrder;
use crate::write::row_group::batch_bytes;
use crate::write::sorting::{SortColumn, SortOrder};

/// Sorts rows within a memory limit: those that do not fit go to temporary files.
///
/// Equal rows keep the order in which they came. Floats are in their total order, so that NaNs are
/// the last ones.
///
/// ```
/// # fn main() -> marquetry::Result<()> {
/// use marquetry::rewrite::RowSorter;
/// use marquetry::{Reader, SortColumn};
///
/// let trips = Reader::open("testdata/trips.parquet")?;
/// let mut sorter = RowSorter::new(trips.schema()?, [SortColumn::descending("fare")])?
///     .memory(64 << 20);
/// for batch in trips.batches()? {
///     sorter.push(&batch?)?;
/// }
/// let mut rows = 0;
/// for batch in sorter.finish()? {
///     rows += batch?.num_rows();
/// }
/// assert_eq!(rows, 1_000);
/// # Ok(())
/// # }
/// ```
///
/// A temporary file holds values in plain text. Its name is removed as soon as it is open, where
/// the system allows that, so that nothing is left of it after the process ends, however that
/// does.
#[must_use]
pub struct RowSorter {
    schema: SchemaRef,
    order: Arc<CheckedSortOrder>,
    memory: u64,
    spill: Spill,
    held: Vec<RecordBatch>,
    /// Bytes of the rows that are held, with those of their places.
    held_bytes: u64,
    runs: Vec<SpilledRun>,
    /// How many times the rows of each run were joined with others.
    depths: Vec<u32>,
    rows: u64,
    bytes: u64,
    spilled_bytes: u64,
}

/// Where rows go that do not fit into memory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) enum Spill {
    /// The folder for temporary files of the system.
    #[default]
    TemporaryFolder,
    Folder(PathBuf),
    /// Nowhere: that is an error.
    Never,
}

impl fmt::Debug for RowSorter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RowSorter")
            .field("order", &self.order)
            .field("rows", &self.rows)
            .field("runs", &self.runs.len())
            .finish_non_exhaustive()
    }
}

impl RowSorter {
    /// Sorts batches of this schema by these columns.
    ///
    /// # Errors
    /// `Usage` if there is no column to sort by, or none of a name; if it lies in a list, or its
    /// values have no order.
    pub fn new(schema: SchemaRef, by: impl IntoIterator<Item = SortColumn>) -> Result<Self> {
        let order = SortOrder { columns: by.into_iter().collect(), is_checked: true };
        let leaves = leaves_to_sort_by(&schema, &order.columns)?;
        let leaves = leaves.iter().map(|(leaf, top)| (leaf, *top));
        let Some(order) = CheckedSortOrder::new(&order, leaves)? else {
            return Err(Error::usage("no column to sort by is given"));
        };
        Ok(Self::with_order(schema, Arc::new(order)))
    }

    pub(super) fn with_order(schema: SchemaRef, order: Arc<CheckedSortOrder>) -> Self {
        Self {
            schema,
            order,
            memory: DEFAULT_MEMORY,
            spill: Spill::default(),
            held: Vec::new(),
            held_bytes: 0,
            runs: Vec::new(),
            depths: Vec::new(),
            rows: 0,
            bytes: 0,
            spilled_bytes: 0,
        }
    }

    /// The memory that sorting takes, in bytes: half of it are rows. Default 512 MiB.
    pub fn memory(mut self, bytes: u64) -> Self {
        self.memory = bytes;
        self
    }

    /// The folder of temporary files. Default: that of the system ([`std::env::temp_dir`]), which
    /// may be small.
    pub fn temp_folder(self, folder: impl Into<PathBuf>) -> Self {
        self.spill_to(Spill::Folder(folder.into()))
    }

    /// Writes no temporary files: rows that do not fit into memory are an error.
    pub fn without_temp_files(self) -> Self {
        self.spill_to(Spill::Never)
    }

    pub(super) fn spill_to(mut self, spill: Spill) -> Self {
        self.spill = spill;
        self
    }

    /// Adds rows.
    ///
    /// # Errors
    /// `Arrow` if the batch has another schema; `Io` if a temporary file cannot be written.
    pub fn push(&mut self, batch: &RecordBatch) -> Result<()> {
        if batch.num_rows() == 0 {
            return Ok(());
        }
        let batch = like(batch.clone(), &self.schema)?;
        let rows = batch.num_rows() as u64;
        let bytes = batch_bytes(&batch).saturating_add(rows.saturating_mul(PLACE_BYTES));
        if !self.held.is_empty() && self.held_bytes.saturating_add(bytes) > self.held_max() {
            self.spill()?;
        }
        self.rows = self.rows.saturating_add(rows);
        self.bytes = self.bytes.saturating_add(bytes);
        self.held_bytes = self.held_bytes.saturating_add(bytes);
        memory::push(&mut self.held, batch)?;
        Ok(())
    }

    /// The rows, sorted.
    ///
    /// # Errors
    /// As [`RowSorter::push`].
    pub fn finish(mut self) -> Result<SortedRows> {
        let (schema, spilled_bytes) = (self.schema.clone(), self.spilled_bytes);
        if self.runs.is_empty() {
            let rows = SortedSource::Memory(self.sorted()?);
            return Ok(SortedRows { schema, rows, spilled_bytes });
        }
        self.spill()?;
        while self.runs.len() > self.fan_in() {
            let mut runs = std::mem::take(&mut self.runs).into_iter().peekable();
            while runs.peek().is_some() {
                let some: Vec<SpilledRun> = runs.by_ref().take(self.fan_in()).collect();
                let run = self.joined(some)?;
                self.runs.push(run);
            }
        }
        let runs = std::mem::take(&mut self.runs);
        let rows = SortedSource::Runs(self.merged(runs)?);
        Ok(SortedRows { schema, rows, spilled_bytes: self.spilled_bytes })
    }

    /// Bytes of rows that are held at most.
    fn held_max(&self) -> u64 {
        match self.spill {
            Spill::Never => self.memory,
            // Keys are concatenated to be sorted, whose offsets have 32 bits.
            _ => (self.memory / 2).min(MAX_HELD_BYTES),
        }
    }

    /// Bytes of a batch of a run.
    fn batch_bytes(&self) -> u64 {
        (self.memory / MIN_FAN_IN / 2).clamp(MIN_BATCH_BYTES, MAX_BATCH_BYTES)
    }

    /// Rows of a batch of a run.
    fn batch_rows(&self) -> usize {
        let rows = self.batch_bytes().saturating_mul(self.rows) / self.bytes.max(1);
        usize::try_from(rows).unwrap_or(SORTED_ROWS).clamp(1, SORTED_ROWS)
    }

    /// Runs that are merged at a time: a batch of each is held, and as much again is made of them.
    fn fan_in(&self) -> usize {
        let runs = self.memory / 2 / self.batch_bytes().max(1);
        usize::try_from(runs).unwrap_or(MAX_FAN_IN).clamp(2, MAX_FAN_IN)
    }

    /// The rows that are held, sorted.
    fn sorted(&mut self) -> Result<Interleaved> {
        let batches = std::mem::take(&mut self.held);
        self.held_bytes = 0;
        let places = self.order.sorted(&batches)?;
        Ok(Interleaved::new(batches, places, self.batch_rows()))
    }

    /// Writes the rows that are held to a temporary file.
    fn spill(&mut self) -> Result<()> {
        if self.held.is_empty() {
            return Ok(());
        }
        let mut run = self.begin_run()?;
        for batch in self.sorted()? {
            run.write(&batch?)?;
        }
        self.end_run(run)
    }

    fn begin_run(&self) -> Result<RunWriter> {
        let folder = match &self.spill {
            Spill::Folder(folder) => folder.clone(),
            Spill::TemporaryFolder if cfg!(not(target_family = "wasm")) => std::env::temp_dir(),
            Spill::Never | Spill::TemporaryFolder => {
                return Err(Error::limit(
                    LimitKind::Memory,
                    format_args!(
                        "the rows that are sorted take more than {} bytes, and may not be written \
                         to temporary files, which are in plain text, unless a folder for them is \
                         given (marq: --temp DIR, or more memory: --mem)",
                        self.memory
                    ),
                ));
            }
        };
        RunWriter::create(&folder, &self.schema)
    }

    fn end_run(&mut self, run: RunWriter) -> Result<()> {
        let run = run.finish()?;
        self.spilled_bytes = self.spilled_bytes.saturating_add(run.bytes());
        self.runs.push(run);
        self.depths.push(0);
        // Each is an open file: as many of a depth become one of the next.
        while let Some(depth) = self.depths.last().copied() {
            let alike = self.depths.iter().rev().take_while(|of| **of == depth).count();
            if alike < self.fan_in() {
                break;
            }
            let first = self.runs.len() - alike;
            let (some, _) = (self.runs.split_off(first), self.depths.split_off(first));
            let run = self.joined(some)?;
            self.runs.push(run);
            self.depths.push(depth + 1);
        }
        Ok(())
    }

    fn merged(&self, runs: Vec<SpilledRun>) -> Result<MergedRows> {
        let inputs: Result<Vec<RowInput>> =
            runs.into_iter().map(|run| Ok(Box::new(run.read()?) as RowInput)).collect();
        Ok(MergedRows::new(self.order.clone(), self.schema.clone(), inputs?, self.batch_rows()))
    }

    /// Several runs as one.
    fn joined(&mut self, mut runs: Vec<SpilledRun>) -> Result<SpilledRun> {
        if runs.len() == 1
            && let Some(only) = runs.pop()
        {
            return Ok(only);
        }
        let mut run = self.begin_run()?;
        for batch in self.merged(runs)? {
            run.write(&batch?)?;
        }
        let run = run.finish()?;
        self.spilled_bytes = self.spilled_bytes.saturating_add(run.bytes());
        Ok(run)
    }
}

/// The rows of a [`RowSorter`], batch by batch.
pub struct SortedRows {
    schema: SchemaRef,
    rows: SortedSource,
    spilled_bytes: u64,
}

enum SortedSource {
    Memory(Interleaved),
    Runs(MergedRows),
}

impl fmt::Debug for SortedRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SortedRows")
            .field("schema", &self.schema)
            .field("spilled_bytes", &self.spilled_bytes)
            .finish_non_exhaustive()
    }
}

impl SortedRows {
    /// The schema of the batches.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Bytes that were written to temporary files; 0 if all rows fitted into memory.
    pub fn spilled_bytes(&self) -> u64 {
        self.spilled_bytes
    }
}

impl Iterator for SortedRows {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        match &mut self.rows {
            SortedSource::Memory(rows) => rows.next(),
            SortedSource::Runs(rows) => rows.next(),
        }
    }
}

/// The leaves of the columns that are sorted by, each beside the place of its column. Others may
/// have types that Parquet has not.
fn leaves_to_sort_by(schema: &SchemaRef, by: &[SortColumn]) -> Result<Vec<(Leaf, usize)>> {
    let mut leaves = Vec::new();
    for (top, field) in schema.fields().iter().enumerate() {
        let is_in = |column: &SortColumn| {
            let rest = column.path().strip_prefix(field.name().as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        if by.iter().any(is_in) {
            let alone = ArrowSchema::new(vec![field.clone()]);
            let parquet = from_arrow(&alone, &FromArrowOptions::new())?.schema;
            for leaf in 0..parquet.leaves_len() {
                let leaf = parquet.leaf(leaf)?;
                if has_leaf(field, &leaf) {
                    memory::push(&mut leaves, (leaf, top))?;
                }
            }
        }
    }
    Ok(leaves)
}

/// Whether batches have the leaf: files alone have the one that stands for a struct without fields.
fn has_leaf(top: &FieldRef, leaf: &Leaf) -> bool {
    let below = |field: &FieldRef, name: &str| match field.data_type() {
        DataType::Struct(fields) => fields.iter().find(|field| field.name() == name).cloned(),
        _ => None,
    };
    let mut names = leaf.path.names().iter().skip(1);
    leaf.max_rep > 0 || names.try_fold(top.clone(), |field, name| below(&field, name)).is_some()
}

/// Memory of a sorter, if nothing else is said.
const DEFAULT_MEMORY: u64 = 512 << 20;

/// Maximum bytes of rows that are sorted at a time.
const MAX_HELD_BYTES: u64 = 1 << 30;

/// Runs that are merged at a time at least, where the memory is not tiny.
const MIN_FAN_IN: u64 = 32;

/// Runs that are merged at a time at most, because each is an open file.
const MAX_FAN_IN: usize = 200;

/// Bytes of a batch of a run, at least and at most.
const MIN_BATCH_BYTES: u64 = 64 << 10;
const MAX_BATCH_BYTES: u64 = 8 << 20;

/// Bytes of a row's place while it is sorted.
const PLACE_BYTES: u64 = 24;

/// Maximum rows of a batch of sorted rows.
pub(super) const SORTED_ROWS: usize = 1 << 14;

#[cfg(test)]
mod tests;
