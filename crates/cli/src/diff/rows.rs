//! Walks over the rows of two files side by side: in their order, or by a key that both are sorted
//! by, with a batch of each in memory.

use std::cmp::Ordering;

use arrow_array::{Array, RecordBatch, UInt64Array};
use arrow_ord::ord::{DynComparator, make_comparator};
use arrow_ord::sort::{SortColumn, lexsort_to_indices};
use arrow_schema::SortOptions;
use arrow_select::concat::concat_batches;
use arrow_select::take::take;
use marquetry::Batches;

use crate::failure::{Failure, Result};

/// The rows of a file, a batch at a time.
pub(super) struct FileRows {
    source: RowSource,
    batch: Option<RecordBatch>,
    /// The next row of the batch.
    at: usize,
    /// The number of the first row of the batch in the file.
    start: u64,
    /// The numbers of the rows, where they are sorted.
    numbers: Option<UInt64Array>,
    /// The columns of the key.
    key: Vec<usize>,
    /// The last row of the batch before.
    last: Option<RecordBatch>,
}

enum RowSource {
    File(Batches),
    Sorted(Option<RecordBatch>),
}

/// Some rows of a batch.
pub(super) struct RowRun<'a> {
    pub(super) rows: &'a FileRows,
    pub(super) batch: &'a RecordBatch,
    pub(super) from: usize,
    pub(super) len: usize,
}

impl RowRun<'_> {
    /// The number of a row in its file; `at` counts from the start of the run.
    pub(super) fn number(&self, at: usize) -> u64 {
        let at = self.from + at;
        match &self.rows.numbers {
            Some(numbers) if at < numbers.len() => numbers.value(at),
            _ => self.rows.start + at as u64,
        }
    }
}

/// Receives the rows that belong together.
pub(super) trait RowVisitor {
    /// As many rows of each file, which are to be equal.
    fn pair(&mut self, a: RowRun<'_>, b: RowRun<'_>) -> Result<()>;

    /// FileRows that only one file has.
    fn only(&mut self, side: Which, rows: RowRun<'_>) -> Result<()>;
}

/// One of the two files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Which {
    A,
    B,
}

/// How far a walk came.
pub(super) enum Walked {
    ToTheEnd,
    /// The rows of a file are not sorted by the key.
    Unsorted(Which),
}

impl FileRows {
    pub(super) fn new(batches: Batches, key: Vec<usize>) -> Self {
        Self::from_source(RowSource::File(batches), key)
    }

    fn from_source(source: RowSource, key: Vec<usize>) -> Self {
        Self { source, batch: None, at: 0, start: 0, numbers: None, key, last: None }
    }

    /// All rows, sorted by the key; they are taken from `memory`.
    ///
    /// # Errors
    /// If they take more.
    pub(super) fn sorted(
        mut batches: Batches,
        key: Vec<usize>,
        file: &str,
        memory: &mut u64,
    ) -> Result<Self> {
        let schema = batches.schema();
        let mut all = Vec::new();
        while let Some(batch) = batches.next_batch()? {
            // As they come, in one batch, and sorted.
            let bytes = (batch.get_array_memory_size() as u64).saturating_mul(3);
            *memory = memory.checked_sub(bytes).ok_or_else(|| {
                let text = "the rows are not sorted by the key, and sorting them takes more memory \
                            than the limit";
                let hint = "sort the files by the key first, or raise --mem";
                Failure::content(file, None, text).with_hint(Some(hint))
            })?;
            all.push(batch);
        }
        let batch = concat_batches(&schema, &all)?;
        drop(all);
        let columns = key.iter().filter_map(|column| batch.columns().get(*column));
        let columns: Vec<SortColumn> = columns
            .map(|values| SortColumn { values: values.clone(), options: Some(ORDER) })
            .collect();
        // Equal keys stay in the order of the file: its number is the last column.
        let numbers = UInt64Array::from_iter_values(0..batch.num_rows() as u64);
        let mut columns = columns;
        columns.push(SortColumn { values: std::sync::Arc::new(numbers.clone()), options: None });
        let order = lexsort_to_indices(&columns, None)?;
        let sorted = batch.columns().iter().map(|column| take(column, &order, None));
        let sorted = sorted.collect::<Result<Vec<_>, _>>()?;
        let numbers = take(&numbers, &order, None)?;
        let numbers = UInt64Array::from(numbers.to_data());
        let sorted = RecordBatch::try_new(schema, sorted)?;
        Ok(Self {
            numbers: Some(numbers),
            ..Self::from_source(RowSource::Sorted(Some(sorted)), key)
        })
    }

    fn left(&self) -> usize {
        self.batch.as_ref().map_or(0, |batch| batch.num_rows().saturating_sub(self.at))
    }

    /// Makes sure that there is a row, if the file has one more; returns whether a batch was read,
    /// and is sorted after what came before.
    fn fill(&mut self) -> Result<Option<bool>> {
        let mut read = None;
        while self.left() == 0 {
            let next = match &mut self.source {
                RowSource::File(batches) => batches.next_batch()?,
                RowSource::Sorted(batch) => batch.take(),
            };
            let Some(next) = next else { break };
            if let Some(before) = &self.batch {
                self.start += before.num_rows() as u64;
                if let Some(last) = before.num_rows().checked_sub(1) {
                    self.last = Some(before.slice(last, 1));
                }
            }
            (self.batch, self.at) = (Some(next), 0);
            read = Some(self.is_sorted()?);
        }
        Ok(read)
    }

    fn is_sorted(&self) -> Result<bool> {
        let Some(batch) = self.batch.as_ref().filter(|_| !self.key.is_empty()) else {
            return Ok(true);
        };
        if let Some(last) = self.last.as_ref().filter(|_| batch.num_rows() > 0) {
            let order = KeyOrder::new((last, &self.key), (batch, &self.key))?;
            if order.compare(0, 0) == Ordering::Greater {
                return Ok(false);
            }
        }
        let order = KeyOrder::new((batch, &self.key), (batch, &self.key))?;
        Ok((1..batch.num_rows()).all(|row| order.compare(row - 1, row) != Ordering::Greater))
    }

    fn run(&self, len: usize) -> Option<RowRun<'_>> {
        let batch = self.batch.as_ref()?;
        Some(RowRun { rows: self, batch, from: self.at, len })
    }
}

/// The order of keys: ascending, nulls first.
const ORDER: SortOptions = SortOptions { descending: false, nulls_first: true };

/// Compares the keys of rows of two batches.
struct KeyOrder {
    columns: Vec<DynComparator>,
}

impl KeyOrder {
    fn new(a: (&RecordBatch, &[usize]), b: (&RecordBatch, &[usize])) -> Result<Self> {
        let pairs = a.1.iter().zip(b.1);
        let pairs =
            pairs.filter_map(|(i, j)| Some((a.0.columns().get(*i)?, b.0.columns().get(*j)?)));
        let columns = pairs.map(|(a, b)| make_comparator(a, b, ORDER));
        Ok(Self { columns: columns.collect::<Result<_, _>>()? })
    }

    fn compare(&self, a: usize, b: usize) -> Ordering {
        let orders = self.columns.iter().map(|compare| compare(a, b));
        orders.fold(Ordering::Equal, Ordering::then)
    }
}

/// Walks over both files to their ends.
///
/// # Errors
/// Of the files, and of the visitor.
pub(super) fn walk(
    a: &mut FileRows,
    b: &mut FileRows,
    visitor: &mut impl RowVisitor,
) -> Result<Walked> {
    let mut order: Option<KeyOrder> = None;
    loop {
        let (read_a, read_b) = (a.fill()?, b.fill()?);
        if read_a == Some(false) {
            return Ok(Walked::Unsorted(Which::A));
        }
        if read_b == Some(false) {
            return Ok(Walked::Unsorted(Which::B));
        }
        let has_key = !a.key.is_empty();
        if let (true, Some(of_a), Some(of_b)) = (has_key, &a.batch, &b.batch)
            && (order.is_none() || read_a.is_some() || read_b.is_some())
        {
            order = Some(KeyOrder::new((of_a, &a.key), (of_b, &b.key))?);
        }
        let (pairs, only_a, only_b) = match (a.left(), b.left()) {
            (0, 0) => return Ok(Walked::ToTheEnd),
            (left, 0) => (0, left, 0),
            (0, left) => (0, 0, left),
            (of_a, of_b) => match &order {
                Some(order) => stretch(order, (a.at, of_a), (b.at, of_b)),
                None => (of_a.min(of_b), 0, 0),
            },
        };
        if let (Some(of_a), Some(of_b)) = (a.run(pairs), b.run(pairs))
            && pairs > 0
        {
            visitor.pair(of_a, of_b)?;
        }
        if let Some(rows) = a.run(only_a).filter(|_| only_a > 0) {
            visitor.only(Which::A, rows)?;
        }
        if let Some(rows) = b.run(only_b).filter(|_| only_b > 0) {
            visitor.only(Which::B, rows)?;
        }
        a.at += pairs + only_a;
        b.at += pairs + only_b;
    }
}

/// The next rows with the same fate: pairs of equal keys, or those that only one file has.
fn stretch(
    order: &KeyOrder,
    (a, of_a): (usize, usize),
    (b, of_b): (usize, usize),
) -> (usize, usize, usize) {
    let count =
        |most: usize, is_it: &dyn Fn(usize) -> bool| (0..most).take_while(|i| is_it(*i)).count();
    match order.compare(a, b) {
        Ordering::Equal => {
            let is_equal = |i: usize| order.compare(a + i, b + i) == Ordering::Equal;
            (count(of_a.min(of_b), &is_equal), 0, 0)
        }
        Ordering::Less => (0, count(of_a, &|i| order.compare(a + i, b) == Ordering::Less), 0),
        Ordering::Greater => (0, 0, count(of_b, &|i| order.compare(a, b + i) == Ordering::Greater)),
    }
}
