//! The batches of several files, one after the other, and in a random order.

use std::collections::VecDeque;
use std::ops::Range;
use std::slice;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::{RecordBatch, RecordBatchOptions, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};
use marquetry::engine::rows;
use marquetry::{Batches, DamagedRowGroup, Error, NulledPage, Reader, Result, RowSelection};
use pyo3::exceptions::PyStopIteration;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};

use crate::files::{Files, Opened, ReadSpec};
use crate::gil::{Detached, attached, call, detached};
use crate::hive::Completion;
use crate::job::{self, Cancel, Local};
use crate::table::{PySchema, Table, schema_capsule, stream_capsule};

/// A file that is to be read, and how its batches are completed.
pub(crate) struct Prepared {
    pub(crate) reader: Reader,
    pub(crate) completion: Option<Completion>,
}

impl Prepared {
    /// A batch of the file, in the schema of all files.
    pub(crate) fn complete(&self, batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
        complete(self.completion.as_ref(), batch, schema)
    }
}

fn complete(
    completion: Option<&Completion>,
    batch: &RecordBatch,
    schema: &SchemaRef,
) -> Result<RecordBatch> {
    let columns = match completion {
        Some(completion) => completion.columns(batch)?,
        None => batch.columns().to_vec(),
    };
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok(RecordBatch::try_new_with_options(schema.clone(), columns, &options)?)
}

/// The losses of a read that goes on after damage, one line each.
fn account(batches: &Batches) -> impl Iterator<Item = String> {
    let skipped = batches.damage().iter().map(|damage| {
        let DamagedRowGroup { row_group, rows, rows_returned, error, not_nulled, .. } = damage;
        let reason = not_nulled.map(|reason| format!(" (no page of it is null: {reason})"));
        let reason = reason.unwrap_or_default();
        format!("row group {row_group}, {rows_returned} of {rows} rows returned{reason}: {error}")
    });
    let nulled = batches.nulled().iter().map(|page| {
        let NulledPage { row_group, column, page, rows, error, .. } = page;
        let (first, count) = (rows.start, rows.end - rows.start);
        format!(
            "row group {row_group}, column {column}, page {page}: {count} rows from row {first} on \
             are null: {error}"
        )
    });
    skipped.chain(nulled)
}

/// The batches of files, in their order. A file is read when its turn comes.
pub(crate) struct Chain {
    schema: SchemaRef,
    files: VecDeque<Prepared>,
    open: Option<(Local<Batches>, Option<Completion>)>,
    skip: u64,
    left: u64,
    cancel: Cancel,
    /// Row groups that were skipped, and pages whose rows are null, because they were damaged.
    damage: Vec<String>,
}

impl Chain {
    pub(crate) fn new(
        schema: SchemaRef,
        files: Vec<Prepared>,
        skip: u64,
        limit: Option<u64>,
        cancel: Cancel,
    ) -> Self {
        let left = limit.unwrap_or(u64::MAX);
        Self { schema, files: files.into(), open: None, skip, left, cancel, damage: Vec::new() }
    }

    pub(crate) fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    /// The next batch that has a row; `None` after the last.
    pub(crate) fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            self.cancel.check()?;
            if self.left == 0 {
                self.close();
                return Ok(None);
            }
            let Some((batches, completion)) = &mut self.open else {
                if !self.open_next()? {
                    return Ok(None);
                }
                continue;
            };
            let Some(batch) = batches.get()?.next_batch()? else {
                self.close();
                continue;
            };
            let batch = complete(completion.as_ref(), &batch, &self.schema)?;
            if let Some(batch) = self.wanted(&batch) {
                return Ok(Some(batch));
            }
        }
    }

    /// Closes the file, and keeps the account of it.
    fn close(&mut self) {
        if let Some((mut batches, _)) = self.open.take()
            && let Ok(batches) = batches.get()
        {
            self.damage.extend(account(batches));
        }
    }

    /// Ends the read; the account stays.
    fn end(&mut self) {
        self.close();
        self.files.clear();
        self.left = 0;
    }

    fn open_next(&mut self) -> Result<bool> {
        while let Some(file) = self.files.pop_front() {
            let mut reader = file.reader;
            if self.skip > 0 && reader.read_options().filter.is_none() {
                // Rows that are not wanted are not read.
                let rows = reader.rows()?;
                let skipped = self.skip.min(rows);
                self.skip -= skipped;
                if skipped == rows {
                    continue;
                }
                reader = reader.offset(skipped);
            }
            if self.left != u64::MAX {
                let most = self.skip.saturating_add(self.left);
                let most = most.min(reader.read_options().limit.unwrap_or(u64::MAX));
                reader = reader.limit(most);
            }
            self.open = Some((Local::new(reader.batches()?), file.completion));
            return Ok(true);
        }
        Ok(false)
    }

    fn wanted(&mut self, batch: &RecordBatch) -> Option<RecordBatch> {
        let rows = batch.num_rows() as u64;
        let skipped = self.skip.min(rows);
        let wanted = self.left.min(rows - skipped);
        self.skip -= skipped;
        if self.left != u64::MAX {
            self.left -= wanted;
        }
        let (from, len) = (usize::try_from(skipped).ok()?, usize::try_from(wanted).ok()?);
        (len > 0).then(|| batch.slice(from, len))
    }
}

/// A splitmix64 generator: the order of a seed stays the same in all versions.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `n`, which is at least 1.
    fn below(&mut self, n: u64) -> u64 {
        // The bias is below 2^-32 for fewer than 2^32 items.
        let product = u128::from(self.next()) * u128::from(n);
        (product >> 64) as u64
    }

    fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            let j = self.below(i as u64 + 1) as usize;
            items.swap(i, j);
        }
    }
}

/// How rows are shuffled.
#[derive(Clone)]
struct Order {
    seed: u64,
    /// Rows that are in memory at a time, and shuffled among each other.
    window: u64,
    /// Every `of`-th window, from `part` on.
    part: u64,
    of: u64,
    rows: usize,
}

/// Consecutive rows, and the position of their file.
type Block = (usize, Range<u64>);

/// Blocks that a window is made of: each is read as one run of rows.
const BLOCKS: u64 = 64;

/// All rows, in an order that a seed determines: the files are cut into blocks of consecutive rows,
/// the blocks are shuffled, some of them make a window, and the rows of a window are shuffled.
struct Shuffled {
    schema: SchemaRef,
    files: Vec<Prepared>,
    /// The windows that are still to be read, each with its number.
    windows: VecDeque<(u64, Vec<Block>)>,
    order: Order,
    ready: VecDeque<RecordBatch>,
    cancel: Cancel,
    /// As that of a [`Chain`].
    damage: Vec<String>,
}

impl Shuffled {
    fn new(files: &Opened, spec: &ReadSpec, order: Order) -> Result<Self> {
        if spec.limit.is_some() || spec.offset > 0 || spec.part.is_some() {
            return Err(Error::usage("limit, offset and parts do not go with shuffled rows"));
        }
        let (schema, prepared) = files.prepare(spec)?;
        let window = order.window.max(1);
        let block = window.div_ceil(BLOCKS);
        let mut blocks = Vec::new();
        for (at, file) in prepared.iter().enumerate() {
            let rows = file.reader.file_rows()?;
            let mut start = 0;
            while start < rows {
                let end = rows.min(start.saturating_add(block));
                blocks.push((at, start..end));
                start = end;
            }
        }
        Random(order.seed).shuffle(&mut blocks);
        let per_window = usize::try_from(window / block).unwrap_or(1).max(1);
        let windows = blocks.chunks(per_window).enumerate();
        let windows = windows.filter(|(n, _)| *n as u64 % order.of == order.part);
        let windows = windows.map(|(n, blocks)| (n as u64, blocks.to_vec())).collect();
        let (ready, cancel) = (VecDeque::new(), files.cancel.clone());
        let damage = Vec::new();
        Ok(Self { schema, files: prepared, windows, order, ready, cancel, damage })
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            self.cancel.check()?;
            if let Some(batch) = self.ready.pop_front() {
                return Ok(Some(batch));
            }
            let Some((number, blocks)) = self.windows.pop_front() else { return Ok(None) };
            let mut found = Vec::new();
            for (at, file) in self.files.iter().enumerate() {
                let mut of_file: Vec<Range<u64>> = blocks
                    .iter()
                    .filter(|(of, _)| *of == at)
                    .map(|(_, rows)| rows.clone())
                    .collect();
                if of_file.is_empty() {
                    continue;
                }
                of_file.sort_unstable_by_key(|rows| rows.start);
                let selection = RowSelection::from_ranges(file.reader.file_rows()?, of_file)?;
                let mut batches = file.reader.clone().select(selection)?.batches()?;
                while let Some(batch) = batches.next_batch()? {
                    found.push(file.complete(&batch, &self.schema)?);
                }
                self.damage.extend(account(&batches));
            }
            let all = rows::concat(&self.schema, &found)?;
            drop(found);
            let mut places: Vec<u64> = (0..all.num_rows() as u64).collect();
            // Each window has an order of its own, also if another part is read elsewhere.
            Random(self.order.seed ^ (number + 1).wrapping_mul(0xd129_0d3b_1b2c_9f4d))
                .shuffle(&mut places);
            for places in places.chunks(self.order.rows.max(1)) {
                let batch = rows::take(&self.schema, slice::from_ref(&all), places)?;
                self.ready.push_back(batch);
            }
        }
    }
}

enum Rows {
    Chain(Box<Chain>),
    Shuffled(Local<Shuffled>),
}

impl Rows {
    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        match self {
            Self::Chain(chain) => chain.next_batch(),
            Self::Shuffled(shuffled) => shuffled.get()?.next_batch(),
        }
    }

    /// Ends the read; the account of what was skipped stays.
    fn end(&mut self) {
        match self {
            Self::Chain(chain) => chain.end(),
            Self::Shuffled(shuffled) => {
                if let Ok(shuffled) = shuffled.get() {
                    shuffled.windows.clear();
                    shuffled.ready.clear();
                    shuffled.files.clear();
                }
            }
        }
    }

    /// Row groups that were skipped, and pages whose rows are null, because they were damaged.
    fn damage(&mut self) -> Vec<String> {
        match self {
            Self::Chain(chain) => chain.damage.clone(),
            Self::Shuffled(shuffled) => {
                shuffled.get().map_or_else(|_| Vec::new(), |shuffled| shuffled.damage.clone())
            }
        }
    }
}

/// The rows, and how many lines of their account were logged.
#[derive(Default)]
struct Logged {
    rows: Option<Rows>,
    lines: usize,
}

type SharedRows = Arc<Mutex<Logged>>;

fn next_of(shared: &SharedRows) -> Result<Option<RecordBatch>> {
    let mut guard = shared.lock().unwrap_or_else(PoisonError::into_inner);
    let logged = &mut *guard;
    let Some(rows) = &mut logged.rows else { return Ok(None) };
    let next = rows.next_batch();
    if matches!(next, Ok(Some(_))) {
        return next;
    }
    rows.end();
    let lost: Vec<String> = rows.damage().into_iter().skip(logged.lines).collect();
    logged.lines += lost.len();
    // A handler of the log may ask for the account.
    drop(guard);
    if !lost.is_empty() {
        // What is wrong with the log is no error of the read.
        let _ = call("the log", |py| {
            let warning = py.import("marq._log")?.getattr("warning")?;
            lost.iter().try_for_each(|line| warning.call1(("skipped %s", line)).map(drop))
        });
    }
    next
}

/// An iterator over batches, each a `Table`; `__arrow_c_stream__` hands over what is left of it.
#[pyclass(frozen, name = "BatchIterator", module = "marq._marq")]
pub(crate) struct PyBatches {
    schema: SchemaRef,
    rows: Detached<SharedRows>,
    cancel: Cancel,
    closed: std::sync::atomic::AtomicBool,
}

impl PyBatches {
    fn check_open(&self, py: Python<'_>) -> PyResult<()> {
        match self.closed.load(std::sync::atomic::Ordering::Relaxed) {
            true => Err(crate::error::usage(py, "the batches were closed, or handed over")),
            false => Ok(()),
        }
    }

    /// Without the GIL: another thread may have the rows, and need the GIL to read on.
    fn with_rows<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut Option<Rows>) -> T + Send,
    ) -> T {
        py.detach(|| work(&mut self.rows.lock().unwrap_or_else(PoisonError::into_inner).rows))
    }
}

#[pymethods]
impl PyBatches {
    /// The next batch; `None` after the last.
    pub(crate) fn next(&self, py: Python<'_>) -> PyResult<Option<Table>> {
        self.check_open(py)?;
        let rows = SharedRows::clone(&self.rows);
        let batch = job::run(py, &self.cancel, move || next_of(&rows))?;
        Ok(batch.map(Table::from_batch))
    }

    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Table> {
        match self.next(py)? {
            Some(batch) => Ok(batch),
            None => Err(PyStopIteration::new_err(())),
        }
    }

    /// The names and types of the columns.
    #[getter]
    fn schema(&self) -> PySchema {
        PySchema { schema: self.schema.clone() }
    }

    /// Row groups that were skipped, and pages whose rows are null, because they were damaged.
    #[getter]
    fn damage(&self, py: Python<'_>) -> Vec<String> {
        self.with_rows(py, |rows| rows.as_mut().map(Rows::damage).unwrap_or_default())
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py, &self.schema)
    }

    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        self.check_open(py)?;
        let left = py.detach(|| {
            std::mem::take(&mut *self.rows.lock().unwrap_or_else(PoisonError::into_inner))
        });
        self.closed.store(true, std::sync::atomic::Ordering::Relaxed);
        let rows = Detached::new(Arc::new(Mutex::new(left)));
        let stream = Stream { schema: self.schema.clone(), rows, cancel: self.cancel.clone() };
        stream_capsule(py, stream, requested_schema)
    }

    /// Ends the read.
    fn close(&self, py: Python<'_>) {
        self.closed.store(true, std::sync::atomic::Ordering::Relaxed);
        // Dropping waits for the threads that decode.
        self.with_rows(py, |rows| drop(rows.take()));
    }
}

/// Batches that an Arrow library asks for, on a thread of its own, with the GIL or without.
struct Stream {
    schema: SchemaRef,
    rows: Detached<SharedRows>,
    cancel: Cancel,
}

impl Iterator for Stream {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let rows = SharedRows::clone(&self.rows);
        if !job::on_main_thread() {
            return detached(move || next_of(&rows)).map_err(ArrowError::from).transpose();
        }
        // The consumer looks for no signals while it reads.
        let cancel = self.cancel.clone();
        let next = attached(|py| match job::run_raw(py, &cancel, move || next_of(&rows)) {
            Ok(next) => next,
            Err(signal) => {
                job::interrupt_again(py, signal);
                Err(Error::cancelled("the read"))
            }
        });
        next.map_err(ArrowError::from).transpose()
    }
}

impl RecordBatchReader for Stream {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}

#[pymethods]
impl Files {
    /// Begins a read in batches.
    #[pyo3(name = "batches")]
    fn py_batches(&self, py: Python<'_>, spec: &Bound<'_, PyDict>) -> PyResult<PyBatches> {
        let spec = ReadSpec::new(spec)?;
        let cancel = self.opened().cancel.clone();
        let chain = self.run(py, move |files| files.chain(&spec))?;
        Ok(PyBatches::new(chain.schema(), Rows::Chain(Box::new(chain)), cancel))
    }

    /// Begins a read in the order of a seed.
    #[pyo3(name = "shuffled")]
    fn py_shuffled(
        &self,
        py: Python<'_>,
        spec: &Bound<'_, PyDict>,
        seed: u64,
        window: u64,
        rows: usize,
        part: (u64, u64),
    ) -> PyResult<PyBatches> {
        let spec = ReadSpec::new(spec)?;
        let (part, of) = part;
        let order = Order { seed, window, part, of: of.max(1), rows };
        let cancel = self.opened().cancel.clone();
        let shuffled = self.run(py, move |files| Shuffled::new(files, &spec, order))?;
        let schema = shuffled.schema.clone();
        Ok(PyBatches::new(schema, Rows::Shuffled(Local::new(shuffled)), cancel))
    }
}

impl PyBatches {
    fn new(schema: SchemaRef, rows: Rows, cancel: Cancel) -> Self {
        let rows = Detached::new(Arc::new(Mutex::new(Logged { rows: Some(rows), lines: 0 })));
        Self { schema, rows, cancel, closed: false.into() }
    }
}
