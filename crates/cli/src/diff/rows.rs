//! Walks over the rows of two files side by side: in their order, or by a key that both are sorted
//! by, with a batch of each in memory.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float16Type, Float32Type, Float64Type};
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType, PrimitiveArray, RecordBatch, UInt64Array};
use arrow_ord::ord::{DynComparator, make_comparator};
use arrow_schema::{DataType, Field, Schema, SchemaRef, SortOptions};
use half::f16;
use marquetry::rewrite::{RowSorter, SortedRows};
use marquetry::{Batches, SortColumn};

use crate::failure::Result;

/// The rows of a file, a batch at a time.
pub(super) struct FileRows {
    source: RowSource,
    batch: Option<RecordBatch>,
    /// The next row of the batch.
    at: usize,
    /// The number of the first row of the batch in the file.
    start: u64,
    /// The numbers of the rows of the batch, where they are sorted.
    numbers: Option<UInt64Array>,
    /// The columns of the key.
    key: Vec<usize>,
    /// The last row of the batch before.
    last: Option<RecordBatch>,
}

enum RowSource {
    File(Box<Batches>),
    Sorted { rows: Box<SortedRows>, schema: SchemaRef },
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
        Self::from_source(RowSource::File(Box::new(batches)), key)
    }

    fn from_source(source: RowSource, key: Vec<usize>) -> Self {
        Self { source, batch: None, at: 0, start: 0, numbers: None, key, last: None }
    }

    /// All rows, sorted by the key, by what `sorter` makes of their schema and of a column to sort
    /// by.
    ///
    /// # Errors
    /// Of the file, and of temporary files.
    pub(super) fn sorted(
        mut batches: Batches,
        key: Vec<usize>,
        sorter: impl FnOnce(SchemaRef, Vec<SortColumn>) -> Result<RowSorter>,
    ) -> Result<Self> {
        let schema = batches.schema();
        // Names may occur twice, and the numbers of the rows are a column more.
        let place = |at: usize| format!("{at}");
        let fields = schema.fields().iter().enumerate();
        let fields = fields.map(|(at, field)| field.as_ref().clone().with_name(place(at)));
        let number = Field::new("number", DataType::UInt64, false);
        let numbered = Arc::new(Schema::new(fields.chain([number]).collect::<Vec<_>>()));
        let by = key.iter().map(|column| SortColumn::ascending(place(*column)).nulls_first());
        let mut sorter = sorter(numbered.clone(), by.collect())?;
        let mut at = 0u64;
        while let Some(batch) = batches.next_batch()? {
            let rows = batch.num_rows() as u64;
            let mut columns = with_one_nan(batch, &key)?.columns().to_vec();
            columns.push(Arc::new(UInt64Array::from_iter_values(at..at + rows)));
            at += rows;
            sorter.push(&RecordBatch::try_new(numbered.clone(), columns)?)?;
        }
        let rows = Box::new(sorter.finish()?);
        Ok(Self::from_source(RowSource::Sorted { rows, schema }, key))
    }

    /// The next batch, and the numbers of its rows where they are sorted.
    fn next_batch(&mut self) -> Result<Option<(RecordBatch, Option<UInt64Array>)>> {
        match &mut self.source {
            RowSource::File(batches) => {
                let Some(batch) = batches.next_batch()? else { return Ok(None) };
                Ok(Some((with_one_nan(batch, &self.key)?, None)))
            }
            RowSource::Sorted { rows, schema } => {
                let Some(batch) = rows.next().transpose()? else { return Ok(None) };
                let mut columns = batch.columns().to_vec();
                let numbers = columns.pop().map(|numbers| numbers.as_primitive().clone());
                Ok(Some((RecordBatch::try_new(schema.clone(), columns)?, numbers)))
            }
        }
    }

    fn left(&self) -> usize {
        self.batch.as_ref().map_or(0, |batch| batch.num_rows().saturating_sub(self.at))
    }

    /// Makes sure that there is a row, if the file has one more; returns whether a batch was read,
    /// and is sorted after what came before.
    fn fill(&mut self) -> Result<Option<bool>> {
        let mut read = None;
        while self.left() == 0 {
            let Some((next, numbers)) = self.next_batch()? else { break };
            if let Some(before) = &self.batch {
                self.start += before.num_rows() as u64;
                if let Some(last) = before.num_rows().checked_sub(1) {
                    self.last = Some(before.slice(last, 1));
                }
            }
            (self.batch, self.numbers, self.at) = (Some(next), numbers, 0);
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

/// The batch with the same bits in all NaN of the key: each is equal to the others, and stands in
/// the same place of the order.
fn with_one_nan(batch: RecordBatch, key: &[usize]) -> Result<RecordBatch> {
    let is_float = |place: &usize| {
        batch.columns().get(*place).is_some_and(|column| column.data_type().is_floating())
    };
    if !key.iter().any(is_float) {
        return Ok(batch);
    }
    let mut columns = batch.columns().to_vec();
    for place in key {
        let Some(column) = columns.get_mut(*place) else { continue };
        *column = match column.data_type() {
            DataType::Float16 => one_nan::<Float16Type>(column, f16::is_nan, f16::NAN),
            DataType::Float32 => one_nan::<Float32Type>(column, f32::is_nan, f32::NAN),
            DataType::Float64 => one_nan::<Float64Type>(column, f64::is_nan, f64::NAN),
            _ => continue,
        };
    }
    Ok(RecordBatch::try_new(batch.schema(), columns)?)
}

fn one_nan<T: ArrowPrimitiveType>(
    column: &ArrayRef,
    is_nan: fn(T::Native) -> bool,
    nan: T::Native,
) -> ArrayRef {
    let one = |value| if is_nan(value) { nan } else { value };
    let unified: PrimitiveArray<T> = column.as_primitive::<T>().unary(one);
    Arc::new(unified)
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
