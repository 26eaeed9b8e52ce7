//! [`SortColumn`]: the order that the caller states for the rows, and the check of it.
//!
//! Spec: `parquet.thrift`, `RowGroup.sorting_columns`. It is a claim about the rows of each row
//! group. Trap: an engine that trusts a false claim gives wrong results.

use std::cmp::Ordering;
use std::ops::Bound;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int16Type, Int32Type, Int64Type, RunEndIndexType, UInt64Type};
use arrow_array::{Array, ArrayRef, BooleanArray, DictionaryArray, RecordBatch, UInt64Array};
use arrow_buffer::NullBuffer;
use arrow_ord::ord::{DynComparator, make_comparator};
use arrow_schema::{DataType, SortOptions};
use arrow_select::concat::concat;
use arrow_select::nullif::nullif;

use crate::error::{Error, Result};
use crate::format::SortingColumn;
use crate::memory;
use crate::schema::Leaf;
use crate::stats::order::ValueOrder;

/// A column by which the rows of each row group are sorted. Rows that are equal in it are sorted by
/// the next one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SortColumn {
    path: String,
    descending: bool,
    nulls_first: bool,
}

impl SortColumn {
    /// Ascending, nulls last. `path` is the dotted path of a leaf that is in no list.
    pub fn ascending(path: impl Into<String>) -> Self {
        Self { path: path.into(), descending: false, nulls_first: false }
    }

    /// Descending, nulls last.
    pub fn descending(path: impl Into<String>) -> Self {
        Self { descending: true, ..Self::ascending(path) }
    }

    /// The dotted path of the column.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// Puts nulls before all values.
    #[must_use]
    pub fn nulls_first(mut self) -> Self {
        self.nulls_first = true;
        self
    }
}

/// The order that the rows of each row group are stated to have.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct SortOrder {
    pub(crate) columns: Vec<SortColumn>,
    /// Whether the rows are checked.
    pub(crate) is_checked: bool,
}

/// A sort order, found in a schema.
#[derive(Debug)]
pub(crate) struct CheckedSortOrder {
    by: Vec<SortField>,
    is_checked: bool,
}

#[derive(Debug)]
struct SortField {
    /// As the footer has it.
    column: SortingColumn,
    /// The column of the batches, and the names of the fields below it.
    top: usize,
    names: Vec<String>,
    path: String,
}

impl CheckedSortOrder {
    /// Finds the columns among the leaves, each beside the number of its column in the batches.
    ///
    /// # Errors
    /// `Usage` if there is none of a name, or two, or it is named twice; if it lies in a list, or
    /// its values have no order.
    pub(crate) fn new<'l>(
        order: &SortOrder,
        leaves: impl Iterator<Item = (&'l Leaf, usize)> + Clone,
    ) -> Result<Option<Self>> {
        let mut by: Vec<SortField> = Vec::with_capacity(order.columns.len());
        for SortColumn { path, descending, nulls_first } in &order.columns {
            let wrong = |what| {
                Err(Error::usage(format_args!("rows cannot be sorted by \"{path}\": {what}")))
            };
            let named = |(_, (leaf, _)): &(usize, (&Leaf, usize))| leaf.path.is_dotted(path);
            let mut found = leaves.clone().enumerate().filter(named);
            let Some((column_idx, (leaf, top))) = found.next() else {
                return wrong("there is no such column");
            };
            if found.next().is_some() {
                return wrong("there are two columns of this name");
            }
            if leaf.max_rep > 0 {
                return wrong("it lies in a list");
            }
            if ValueOrder::for_leaf(leaf, true) == ValueOrder::Undefined {
                return wrong("its values have no order");
            }
            if by.iter().any(|by| by.path == *path) {
                return wrong("they are already");
            }
            let column = SortingColumn {
                column_idx: i32::try_from(column_idx)
                    .map_err(|_| Error::usage("more than 2^31 columns"))?,
                descending: *descending,
                nulls_first: *nulls_first,
                ..SortingColumn::default()
            };
            let names = leaf.path.names().iter().skip(1).map(|name| name.to_string()).collect();
            by.push(SortField { column, top, names, path: path.clone() });
        }
        Ok((!by.is_empty()).then_some(Self { by, is_checked: order.is_checked }))
    }

    /// The sorting columns of the footer.
    pub(crate) fn columns(&self) -> Vec<SortingColumn> {
        self.by.iter().map(|by| by.column.clone()).collect()
    }

    /// Whether the rows are to be checked.
    pub(crate) fn is_checked(&self) -> bool {
        self.is_checked
    }

    /// Whether the rows are to be checked together with this column of the batches.
    pub(crate) fn is_checked_with(&self, column: usize) -> bool {
        self.is_checked && self.by.first().is_some_and(|by| by.top == column)
    }

    /// Checks rows of a row group; `first_row` is the number of the first of them in it.
    ///
    /// # Errors
    /// `Usage` if two of them have another order, `Unsupported` if the values of a column cannot be
    /// compared.
    pub(crate) fn check<'a>(
        &self,
        batches: impl IntoIterator<Item = &'a RecordBatch>,
        first_row: usize,
    ) -> Result<()> {
        let mut row = first_row;
        let mut before: Option<Vec<ArrayRef>> = None;
        for batch in batches.into_iter().filter(|batch| batch.num_rows() > 0) {
            let arrays: Vec<ArrayRef> =
                self.by.iter().map(|by| by.array(batch)).collect::<Result<_>>()?;
            if let Some(before) = &before {
                let last = before.first().map_or(0, |array| array.len().saturating_sub(1));
                self.is_in_order(&self.comparators(before, &arrays)?, last, 0, row)?;
            }
            let within = self.comparators(&arrays, &arrays)?;
            for i in 1..batch.num_rows() {
                self.is_in_order(&within, i - 1, i, row + i)?;
            }
            row += batch.num_rows();
            before = Some(arrays);
        }
        Ok(())
    }

    /// The rows of batches in this order, each as the batch and the row in it. Rows that are equal
    /// keep their order.
    ///
    /// # Errors
    /// `Unsupported` if the values of a column cannot be compared.
    pub(crate) fn sorted(&self, batches: &[RecordBatch]) -> Result<Vec<(usize, usize)>> {
        let each = |(at, batch): (usize, &RecordBatch)| (0..batch.num_rows()).map(move |i| (at, i));
        let mut places = memory::vec_for(batches.iter().map(RecordBatch::num_rows).sum())?;
        places.extend(batches.iter().enumerate().flat_map(each));
        let mut keys = Vec::with_capacity(self.by.len());
        for by in &self.by {
            let arrays: Vec<ArrayRef> =
                memory::try_collected(batches.iter().map(|batch| by.array(batch)))?;
            let arrays: Vec<&dyn Array> = memory::collected(arrays.iter().map(AsRef::as_ref))?;
            if !arrays.is_empty() {
                keys.push(concat(&arrays)?);
            }
        }
        let comparators = self.comparators(&keys, &keys)?;
        let order = |a: &usize, b: &usize| {
            let orders = comparators.iter().map(|compare| compare(*a, *b));
            orders.fold(Ordering::Equal, Ordering::then)
        };
        let mut rows = memory::collected(0..places.len())?;
        rows.sort_by(order);
        memory::collected(rows.into_iter().map(|row| places[row]))
    }

    /// The order of a row of a batch and one of another.
    ///
    /// # Errors
    /// As [`CheckedSortOrder::sorted`].
    pub(crate) fn compare(
        &self,
        (batch, row): (&RecordBatch, usize),
        (other, place): (&RecordBatch, usize),
    ) -> Result<Ordering> {
        let comparators = self.comparators(&self.keys(batch)?, &self.keys(other)?)?;
        let orders = comparators.iter().map(|compare| compare(row, place));
        Ok(orders.fold(Ordering::Equal, Ordering::then))
    }

    /// How many rows of a batch, which is sorted, come before a row of another batch, or before and
    /// with it.
    ///
    /// # Errors
    /// As [`CheckedSortOrder::sorted`].
    pub(crate) fn rows_up_to(
        &self,
        batch: &RecordBatch,
        bound: Bound<(&RecordBatch, usize)>,
    ) -> Result<usize> {
        let (Bound::Included((other, place)) | Bound::Excluded((other, place))) = bound else {
            return Ok(batch.num_rows());
        };
        let comparators = self.comparators(&self.keys(batch)?, &self.keys(other)?)?;
        let is_within = |row: usize| {
            let orders = comparators.iter().map(|compare| compare(row, place));
            match orders.fold(Ordering::Equal, Ordering::then) {
                Ordering::Less => true,
                Ordering::Equal => matches!(bound, Bound::Included(_)),
                Ordering::Greater => false,
            }
        };
        let (mut within, mut after) = (0, batch.num_rows());
        while within < after {
            let middle = within + (after - within) / 2;
            match is_within(middle) {
                true => within = middle + 1,
                false => after = middle,
            }
        }
        Ok(within)
    }

    fn keys(&self, batch: &RecordBatch) -> Result<Vec<ArrayRef>> {
        self.by.iter().map(|by| by.array(batch)).collect()
    }

    fn comparators(&self, left: &[ArrayRef], right: &[ArrayRef]) -> Result<Vec<DynComparator>> {
        let pairs = self.by.iter().zip(left.iter().zip(right));
        pairs
            .map(|(by, (left, right))| {
                let SortingColumn { descending, nulls_first, .. } = by.column;
                make_comparator(left, right, SortOptions { descending, nulls_first }).map_err(|e| {
                    let why = format_args!("the order by \"{}\" is not checked: {e}", by.path);
                    Error::unsupported("sort order", why)
                })
            })
            .collect()
    }

    /// Checks that row `b`, which is row `row` of the row group, may follow row `a`.
    fn is_in_order(&self, by: &[DynComparator], a: usize, b: usize, row: usize) -> Result<()> {
        for (comparator, by) in by.iter().zip(&self.by) {
            match comparator(a, b) {
                Ordering::Less => break,
                Ordering::Equal => {}
                Ordering::Greater => {
                    return Err(Error::usage(format_args!(
                        "row {row} of a row group is not sorted by \"{}\", as was said",
                        by.path
                    )));
                }
            }
        }
        Ok(())
    }
}

impl SortField {
    /// The values of a batch; null too where a struct around them is.
    fn array(&self, batch: &RecordBatch) -> Result<ArrayRef> {
        let missing = || Error::usage(format_args!("the batches have no column \"{}\"", self.path));
        let mut array = batch.columns().get(self.top).ok_or_else(missing)?.clone();
        let mut nulls: Option<NullBuffer> = None;
        for name in &self.names {
            let parent = array.as_struct_opt().ok_or_else(missing)?;
            let more = parent.nulls().filter(|nulls| nulls.null_count() > 0);
            nulls = NullBuffer::union(nulls.as_ref(), more);
            let child = parent.column_by_name(name).ok_or_else(missing)?.clone();
            array = child;
        }
        // Runs cannot be null where a struct around them is, nor be concatenated to more rows than
        // their ends can count.
        if let DataType::RunEndEncoded(ends, _) = array.data_type() {
            array = match ends.data_type() {
                DataType::Int16 => keys_of_runs::<Int16Type>(&array)?,
                DataType::Int32 => keys_of_runs::<Int32Type>(&array)?,
                _ => keys_of_runs::<Int64Type>(&array)?,
            };
        }
        if let Some(nulls) = nulls {
            array = nullif(&array, &BooleanArray::new(!nulls.inner(), None))?;
        }
        Ok(array)
    }
}

/// Runs as a dictionary, whose entries are their values: nothing is copied.
fn keys_of_runs<R: RunEndIndexType>(array: &ArrayRef) -> Result<ArrayRef> {
    let Some(runs) = array.as_run_opt::<R>() else { return Ok(array.clone()) };
    let places = (0..runs.len()).map(|row| runs.get_physical_index(row) as u64);
    let keys = UInt64Array::from_iter_values(places);
    Ok(Arc::new(DictionaryArray::<UInt64Type>::try_new(keys, runs.values().clone())?))
}

#[cfg(test)]
mod tests {
    use arrow_array::{Int32Array, StringArray, StructArray};
    use arrow_schema::{Field, Schema};

    use super::*;
    use crate::error::ErrorKind;
    use crate::schema::{FromArrowOptions, from_arrow};

    fn batch(a: Vec<Option<i32>>, b: Vec<Option<&str>>, parents: Vec<bool>) -> RecordBatch {
        let field = Arc::new(Field::new("b", DataType::Utf8, true));
        let below = StructArray::new(
            vec![field].into(),
            vec![Arc::new(StringArray::from(b))],
            Some(parents.into()),
        );
        let columns: [(&str, ArrayRef); 2] =
            [("a", Arc::new(Int32Array::from(a))), ("s", Arc::new(below))];
        RecordBatch::try_from_iter_with_nullable(columns.map(|(name, of)| (name, of, true)))
            .unwrap()
    }

    fn sorting(schema: &Schema, columns: Vec<SortColumn>) -> Result<Option<CheckedSortOrder>> {
        let schema = from_arrow(schema, &FromArrowOptions::new()).unwrap().schema;
        let leaves = schema.leaves().unwrap();
        let order = SortOrder { columns, is_checked: true };
        CheckedSortOrder::new(&order, leaves.iter().zip(0..))
    }

    #[test]
    fn rows_have_the_order_that_was_said_or_are_refused() {
        let (asc, desc) = (SortColumn::ascending, SortColumn::descending);
        let first = batch(vec![Some(1), Some(1)], vec![Some("y"), Some("x")], vec![true; 2]);
        let second =
            batch(vec![Some(2), None], vec![Some("a"), Some("below a null")], vec![true, false]);
        let is_sorted = |columns: Vec<SortColumn>, batches: &[RecordBatch]| {
            let sorting = sorting(&first.schema(), columns).unwrap().unwrap();
            sorting.check(batches, 0).map_err(|e| e.kind())
        };
        let both = [first.clone(), first.slice(0, 0), second.clone()];
        for (columns, sorted) in [
            (vec![asc("a")], true),
            (vec![asc("a").nulls_first()], false),
            (vec![desc("a")], false),
            (vec![asc("a"), desc("s.b")], true),
            (vec![asc("a"), asc("s.b")], false),
            (vec![desc("s.b")], true),
            (vec![desc("s.b").nulls_first()], false),
        ] {
            let expected = if sorted { Ok(()) } else { Err(ErrorKind::Usage) };
            assert_eq!(is_sorted(columns.clone(), &both), expected, "{columns:?}");
        }
        // Between batches.
        assert_eq!(is_sorted(vec![asc("a")], &[second, first.clone()]), Err(ErrorKind::Usage));
    }

    #[test]
    fn columns_that_cannot_order_rows_are_refused() {
        let list = Field::new_list("l", Field::new_list_field(DataType::Int32, true), true);
        let interval = DataType::Interval(arrow_schema::IntervalUnit::DayTime);
        let fields =
            vec![list, Field::new("i", interval, true), Field::new("a", DataType::Int32, true)];
        let schema = Schema::new(fields);
        let asc = SortColumn::ascending;
        for columns in [
            vec![asc("l.list.element")],
            vec![asc("i")],
            vec![asc("nothing")],
            vec![asc("a"), asc("a")],
        ] {
            let found = sorting(&schema, columns.clone());
            assert_eq!(found.unwrap_err().kind(), ErrorKind::Usage, "{columns:?}");
        }
        assert!(sorting(&schema, vec![]).unwrap().is_none());
        assert!(sorting(&schema, vec![asc("a")]).unwrap().is_some());
    }
}
