//! Evaluation: for each row of a batch, whether the predicate is true, false or neither.
//!
//! [`Verdicts`] are two bitmaps, of what is true and of what is false; with them SQL's three values are plain bit operations. Values are compared by
//! the kernels of Arrow, but floats, whose order is ours. A dictionary is tested once for each entry, runs once for each run.
//! Trap: below a null struct or list an array may hold anything; what is above decides.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Float16Type, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type,
    RunEndIndexType,
};
use arrow_array::{
    AnyDictionaryArray, Array, ArrayRef, BooleanArray, OffsetSizeTrait, RecordBatch,
    RecordBatchOptions, Scalar, StringArray, new_null_array,
};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use arrow_ord::cmp;
use arrow_schema::{DataType, Field, Schema as ArrowSchema};
use arrow_select::nullif::nullif;
use arrow_select::take::take;
use foldhash::quality::RandomState;
use hashbrown::HashSet;

use super::bind::{Bound, BoundColumn, BoundTest, Node, ReadOf, Step};
use super::learn::Learnt;
use super::literal::array_of;
use super::value::{Value, compare_floats};
use super::{Elements, Function, Op};
use crate::error::{Error, Result};

impl Bound {
    /// For each row whether the predicate is true of it; false where it is false or null. Never has nulls.
    ///
    /// The columns are found by name: the batch may have others too, in any order. Their values must be of the types that the predicate was bound
    /// to; they may be in dictionaries or in runs.
    ///
    /// # Errors
    /// `Usage` if a column is missing or of another type, or a function of the user gives another number of rows; and whatever such a function
    /// fails with.
    pub fn evaluate(&self, batch: &RecordBatch) -> Result<BooleanArray> {
        let verdicts = self.verdicts(&self.root, batch, &Learnt::default())?;
        Ok(BooleanArray::new(verdicts.trues, None))
    }

    pub(super) fn verdicts(
        &self,
        node: &Node,
        batch: &RecordBatch,
        learnt: &Learnt,
    ) -> Result<Verdicts> {
        let rows = batch.num_rows();
        match node {
            Node::Constant(value) => Ok(Verdicts::constant(*value, rows)),
            Node::Test(column, test) => self.test(self.column(*column)?, test, batch, learnt),
            Node::Not(inner) => Ok(self.verdicts(inner, batch, learnt)?.not()),
            Node::And(parts) => {
                let mut all = Verdicts::constant(Some(true), rows);
                for part in parts {
                    all = all.and(&self.verdicts(part, batch, learnt)?);
                    if all.falses.count_set_bits() == rows {
                        break;
                    }
                }
                Ok(all)
            }
            Node::Or(parts) => {
                let mut any = Verdicts::constant(Some(false), rows);
                for part in parts {
                    any = any.or(&self.verdicts(part, batch, learnt)?);
                    if any.trues.count_set_bits() == rows {
                        break;
                    }
                }
                Ok(any)
            }
            Node::Function(columns, function) => self.call(columns, function, batch),
        }
    }

    fn column(&self, column: usize) -> Result<&BoundColumn> {
        self.columns.get(column).ok_or_else(|| Error::usage("a predicate of other columns"))
    }

    fn test(
        &self,
        column: &BoundColumn,
        test: &BoundTest,
        batch: &RecordBatch,
        learnt: &Learnt,
    ) -> Result<Verdicts> {
        let tester = Tester { column, test, learnt };
        if column.read == ReadOf::Nothing {
            return tester.test_here(&nulls_of(column, batch), None);
        }
        let Some((Step::Field(name), rest)) = column.way.split_first() else {
            return Err(missing(column));
        };
        let array = batch.column_by_name(name).ok_or_else(|| missing(column))?;
        tester.descend(array, None, rest)
    }

    fn call(
        &self,
        columns: &[usize],
        function: &Function,
        batch: &RecordBatch,
    ) -> Result<Verdicts> {
        let mut fields = Vec::with_capacity(columns.len());
        let mut arrays = Vec::with_capacity(columns.len());
        for column in columns {
            let column = self.column(*column)?;
            let array = whole_column(column, batch)?;
            fields.push(Field::new(&*column.path, array.data_type().clone(), true));
            arrays.push(array);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        let schema = Arc::new(ArrowSchema::new(fields));
        let given = RecordBatch::try_new_with_options(schema, arrays, &options)?;
        let answer = (function.0)(&given)?;
        if answer.len() != batch.num_rows() {
            return Err(Error::usage(format_args!(
                "the function of a predicate was given {} rows, and answered for {}",
                batch.num_rows(),
                answer.len()
            )));
        }
        Ok(Verdicts::of(&answer))
    }
}

/// What is true and what is false; neither is null.
#[derive(Debug, Clone)]
pub(super) struct Verdicts {
    pub(super) trues: BooleanBuffer,
    falses: BooleanBuffer,
}

impl Verdicts {
    fn constant(value: Option<bool>, len: usize) -> Self {
        let all = |is: bool| {
            if is { BooleanBuffer::new_set(len) } else { BooleanBuffer::new_unset(len) }
        };
        Self { trues: all(value == Some(true)), falses: all(value == Some(false)) }
    }

    /// Of values, all of which are answered.
    fn total(trues: BooleanBuffer) -> Self {
        Self { falses: !&trues, trues }
    }

    fn of(array: &BooleanArray) -> Self {
        Self::total(array.values().clone()).masked(array.nulls())
    }

    /// Null where there is no value.
    fn masked(self, nulls: Option<&NullBuffer>) -> Self {
        match nulls.filter(|nulls| nulls.null_count() > 0) {
            None => self,
            Some(nulls) => {
                Self { trues: &self.trues & nulls.inner(), falses: &self.falses & nulls.inner() }
            }
        }
    }

    fn not(self) -> Self {
        Self { trues: self.falses, falses: self.trues }
    }

    fn and(&self, other: &Self) -> Self {
        Self { trues: &self.trues & &other.trues, falses: &self.falses | &other.falses }
    }

    fn or(&self, other: &Self) -> Self {
        Self { trues: &self.trues | &other.trues, falses: &self.falses & &other.falses }
    }

    /// The verdicts on the entries of a dictionary become those on its slots.
    fn looked_up(&self, dictionary: &dyn AnyDictionaryArray) -> Self {
        let len = dictionary.len();
        if self.trues.is_empty() {
            return Self::constant(None, len);
        }
        let nulls = dictionary.keys().nulls();
        let entries = self.trues.len();
        let answered = self.trues.count_set_bits() + self.falses.count_set_bits() == entries;
        if answered && self.falses.count_set_bits() == entries {
            return Self::constant(Some(false), len).masked(nulls);
        }
        match dictionary.keys().as_primitive_opt::<Int32Type>() {
            Some(keys) if answered => {
                let of_entries: Vec<bool> = self.trues.iter().collect();
                let is = |key: &i32| {
                    let entry = usize::try_from(*key).ok();
                    entry.and_then(|entry| of_entries.get(entry)).copied().unwrap_or_default()
                };
                let keys = keys.values();
                let trues = BooleanBuffer::collect_bool(len, |i| keys.get(i).is_some_and(is));
                Self::total(trues).masked(nulls)
            }
            _ => {
                let keys = dictionary.normalized_keys();
                self.gathered(len, |i| keys.get(i).copied()).masked(nulls)
            }
        }
    }

    /// The verdict of `of(i)` for each i; none where that is none.
    fn gathered(&self, len: usize, of: impl Fn(usize) -> Option<usize>) -> Self {
        let gather = |from: &BooleanBuffer| {
            BooleanBuffer::collect_bool(len, |i| of(i).is_some_and(|at| from.value(at)))
        };
        Self { trues: gather(&self.trues), falses: gather(&self.falses) }
    }
}

/// Lists taken apart.
struct Lists {
    /// All that the lists hold, and perhaps more.
    values: ArrayRef,
    /// Where the elements of each list begin and end.
    ends: Vec<(usize, usize)>,
}

impl Lists {
    fn of(array: &ArrayRef) -> Option<Self> {
        fn by_offsets<O: OffsetSizeTrait>(offsets: &[O], values: &ArrayRef) -> Lists {
            // Of a slice of an array, only the elements of the slice.
            let first = offsets.first().map_or(0, |first| first.as_usize());
            let last = offsets.last().map_or(0, |last| last.as_usize());
            let ends = offsets.iter().zip(offsets.get(1..).unwrap_or_default());
            let ends = ends.map(|(from, to)| (from.as_usize() - first, to.as_usize() - first));
            Lists { values: values.slice(first, last - first), ends: ends.collect() }
        }
        fn by_views<O: OffsetSizeTrait>(offsets: &[O], sizes: &[O], values: &ArrayRef) -> Lists {
            let ends = offsets.iter().zip(sizes);
            let ends = ends.map(|(from, len)| (from.as_usize(), from.as_usize() + len.as_usize()));
            Lists { values: Arc::clone(values), ends: ends.collect() }
        }
        Some(match array.data_type() {
            DataType::List(_) => {
                let list = array.as_list::<i32>();
                by_offsets(list.offsets(), list.values())
            }
            DataType::LargeList(_) => {
                let list = array.as_list::<i64>();
                by_offsets(list.offsets(), list.values())
            }
            DataType::Map(..) => {
                let map = array.as_map();
                let entries: ArrayRef = Arc::new(map.entries().clone());
                by_offsets(map.offsets(), &entries)
            }
            DataType::ListView(_) => {
                let list = array.as_list_view::<i32>();
                by_views(list.offsets(), list.sizes(), list.values())
            }
            DataType::LargeListView(_) => {
                let list = array.as_list_view::<i64>();
                by_views(list.offsets(), list.sizes(), list.values())
            }
            DataType::FixedSizeList(_, len) => {
                let len = usize::try_from(*len).ok()?;
                let ends = (0..array.len()).map(|i| (i * len, (i + 1) * len)).collect();
                Self { values: Arc::clone(array.as_fixed_size_list().values()), ends }
            }
            _ => return None,
        })
    }

    /// True of a list if it is true of some element, false if it is false of all.
    fn any(&self, verdicts: &Verdicts) -> Verdicts {
        let test = |test: &dyn Fn(std::ops::Range<usize>) -> bool| {
            BooleanBuffer::collect_bool(self.ends.len(), |i| {
                self.ends.get(i).is_some_and(|(from, to)| test(*from..*to))
            })
        };
        Verdicts {
            trues: test(&|mut range| range.any(|i| verdicts.trues.value(i))),
            falses: test(&|mut range| range.all(|i| verdicts.falses.value(i))),
        }
    }
}

/// A test of a column, and what was learnt of it.
#[derive(Clone, Copy)]
struct Tester<'a> {
    column: &'a BoundColumn,
    test: &'a BoundTest,
    learnt: &'a Learnt,
}

impl Tester<'_> {
    /// Tests what lies behind `way` in `array`. `outer` says where something around it is null.
    fn descend(
        self,
        array: &ArrayRef,
        outer: Option<&NullBuffer>,
        way: &[Step],
    ) -> Result<Verdicts> {
        let column = self.column;
        let Some((step, rest)) = way.split_first() else {
            return self.test_here(array, outer);
        };
        let nulls = NullBuffer::union(outer, array.nulls());
        match step {
            Step::Field(name) => {
                let group = array.as_struct_opt().ok_or_else(|| missing(column))?;
                let child = group.column_by_name(name).ok_or_else(|| missing(column))?;
                self.descend(child, nulls.as_ref(), rest)
            }
            Step::Elements => {
                let lists = Lists::of(array).ok_or_else(|| missing(column))?;
                let verdicts = self.descend(&lists.values, None, rest)?;
                Ok(match column.elements {
                    Some(Elements::All) => lists.any(&verdicts.not()).not(),
                    _ => lists.any(&verdicts),
                }
                .masked(nulls.as_ref()))
            }
        }
    }

    /// Tests the values of an array, which may be in a dictionary or in runs.
    fn test_here(self, array: &ArrayRef, outer: Option<&NullBuffer>) -> Result<Verdicts> {
        let Self { column, test, .. } = self;
        let len = array.len();
        match test {
            BoundTest::Null => return Ok(Verdicts::constant(None, len)),
            BoundTest::Both(both) => {
                let [first, second] = &**both;
                let first = Tester { test: first, ..self }.test_here(array, outer)?;
                return Ok(first.and(&Tester { test: second, ..self }.test_here(array, outer)?));
            }
            BoundTest::IsNull => {
                let nulls = NullBuffer::union(outer, array.logical_nulls().as_ref());
                return Ok(match nulls {
                    None => Verdicts::constant(Some(false), len),
                    Some(nulls) => Verdicts::total(nulls.into_inner()).not(),
                });
            }
            BoundTest::IsEmpty => {
                let lists = Lists::of(array).ok_or_else(|| missing(column))?;
                let nulls = NullBuffer::union(outer, array.nulls());
                let empty = BooleanBuffer::collect_bool(len, |i| {
                    lists.ends.get(i).is_some_and(|(from, to)| from == to)
                });
                return Ok(Verdicts::total(empty).masked(nulls.as_ref()));
            }
            _ => {}
        }
        let verdicts = match array.data_type() {
            DataType::Dictionary(..) => {
                let dictionary = array.as_any_dictionary();
                let known = self.learnt.entries(test, dictionary.values());
                // Each entry once, unless most of them are for other rows.
                if known.is_none() && dictionary.values().len() / 2 > len {
                    let values = take(dictionary.values(), dictionary.keys(), None)?;
                    return self.test_here(&values, outer);
                }
                let of_entries = match known {
                    Some(known) => known,
                    None => {
                        let verdicts = test_plain(column, test, dictionary.values())?;
                        self.learnt.keep(test, dictionary.values(), &verdicts);
                        verdicts
                    }
                };
                of_entries.looked_up(dictionary)
            }
            DataType::RunEndEncoded(ends, _) => match ends.data_type() {
                DataType::Int16 => self.test_runs::<Int16Type>(array)?,
                DataType::Int32 => self.test_runs::<Int32Type>(array)?,
                _ => self.test_runs::<Int64Type>(array)?,
            },
            _ => test_plain(column, test, array)?,
        };
        Ok(verdicts.masked(outer))
    }

    fn test_runs<R: RunEndIndexType>(self, array: &ArrayRef) -> Result<Verdicts> {
        let runs = array.as_run_opt::<R>().ok_or_else(|| missing(self.column))?;
        let of_runs = self.test_here(&runs.values_slice(), None)?;
        let mut indexes = Vec::with_capacity(array.len());
        for (run, end) in runs.run_ends().sliced_values().enumerate() {
            indexes.resize(arrow_buffer::ArrowNativeType::as_usize(end), run);
        }
        Ok(of_runs.gathered(array.len(), |i| indexes.get(i).copied()))
    }
}

/// Tests values that lie as they are.
fn test_plain(column: &BoundColumn, test: &BoundTest, array: &ArrayRef) -> Result<Verdicts> {
    if array.data_type() == &DataType::Null {
        return Ok(Verdicts::constant(None, array.len()));
    }
    if array.data_type() != &column.data_type && !is_view_of(array.data_type(), &column.data_type) {
        return Err(Error::usage(format_args!(
            "column {}: the predicate was bound to {}, and is evaluated on {}",
            column.path,
            column.data_type,
            array.data_type()
        )));
    }
    let verdicts = match test {
        BoundTest::Compare {
            op: op @ (Op::Eq | Op::NotEq), value: Value::Bytes(value), ..
        } => {
            let is = |found: bool| found == (*op == Op::Eq);
            let found = each_value(array, |bytes| is(bytes == value.as_slice()));
            Verdicts::total(found.ok_or_else(|| missing(column))?)
        }
        BoundTest::Compare { op, value: Value::Bytes(value), .. } => {
            let found = each_value(array, |bytes| op.holds(bytes.cmp(value.as_slice())));
            Verdicts::total(found.ok_or_else(|| missing(column))?)
        }
        BoundTest::Compare { op, value: Value::Float(value), .. } => {
            Verdicts::total(compare_to_float(array, *op, *value))
        }
        BoundTest::Compare { op, scalar, .. } => {
            let scalar = Scalar::new(Arc::clone(scalar));
            Verdicts::of(&match op {
                Op::Eq => cmp::eq(array, &scalar)?,
                Op::NotEq => cmp::neq(array, &scalar)?,
                Op::Lt => cmp::lt(array, &scalar)?,
                Op::LtEq => cmp::lt_eq(array, &scalar)?,
                Op::Gt => cmp::gt(array, &scalar)?,
                Op::GtEq => cmp::gt_eq(array, &scalar)?,
            })
        }
        BoundTest::Same { scalar, negated } => {
            let same = Verdicts::of(&cmp::eq(array, &Scalar::new(Arc::clone(scalar)))?);
            if *negated { same.not() } else { same }
        }
        BoundTest::In { set, has_null, .. } => {
            let found = match is_view_of(array.data_type(), &column.data_type) {
                true => set.find_views(array)?,
                false => set.find(array)?,
            };
            let falses = if *has_null { BooleanBuffer::new_unset(array.len()) } else { !&found };
            Verdicts { trues: found, falses }
        }
        BoundTest::StartsWith(prefix) => {
            let found = each_value(array, |bytes| bytes.starts_with(prefix));
            Verdicts::total(found.ok_or_else(|| missing(column))?)
        }
        BoundTest::Like { pattern, .. } => {
            let pattern = like_pattern(pattern, array.data_type());
            Verdicts::of(&arrow_string::like::like(array, &Scalar::new(pattern))?)
        }
        BoundTest::Null | BoundTest::Both(_) | BoundTest::IsNull | BoundTest::IsEmpty => {
            Verdicts::constant(None, array.len())
        }
    };
    Ok(verdicts.masked(array.nulls()))
}

/// Whether values are views of what the other type has copies of.
fn is_view_of(data_type: &DataType, of: &DataType) -> bool {
    matches!(
        (data_type, of),
        (DataType::Utf8View, DataType::Utf8 | DataType::LargeUtf8)
            | (DataType::BinaryView, DataType::Binary | DataType::LargeBinary)
    )
}

fn like_pattern(pattern: &str, data_type: &DataType) -> ArrayRef {
    let value = Value::Bytes(pattern.as_bytes().to_vec());
    array_of(&value, data_type)
        .unwrap_or_else(|_| Arc::new(StringArray::from_iter_values([pattern])))
}

fn compare_to_float(array: &ArrayRef, op: Op, value: f64) -> BooleanBuffer {
    // The value was rounded to the type when the predicate was bound.
    #[expect(clippy::cast_possible_truncation, reason = "rounded before")]
    match array.data_type() {
        DataType::Float16 => {
            compare_floats_to::<Float16Type>(array, op, half::f16::from_f64(value))
        }
        DataType::Float32 => compare_floats_to::<Float32Type>(array, op, value as f32),
        _ => compare_floats_to::<Float64Type>(array, op, value),
    }
}

#[expect(clippy::eq_op, reason = "a value that differs from itself is NaN")]
fn compare_floats_to<T: ArrowPrimitiveType>(
    array: &ArrayRef,
    op: Op,
    to: T::Native,
) -> BooleanBuffer
where
    T::Native: PartialOrd,
{
    let Some(array) = array.as_primitive_opt::<T>() else {
        return BooleanBuffer::new_unset(array.len());
    };
    let values = array.values();
    macro_rules! each {
        (|$x:ident| $test:expr) => {
            BooleanBuffer::collect_bool(values.len(), |i| {
                let $x = values[i];
                $test
            })
        };
    }
    #[expect(clippy::neg_cmp_op_on_partial_ord, reason = "true of NaN")]
    match (op, to == to) {
        (Op::Eq, true) => each!(|x| x == to),
        (Op::NotEq, true) => each!(|x| x != to),
        (Op::Lt, true) => each!(|x| x < to),
        (Op::LtEq, true) => each!(|x| x <= to),
        (Op::Gt, true) => each!(|x| !(x <= to)),
        (Op::GtEq, true) => each!(|x| !(x < to)),
        (Op::Eq | Op::GtEq, false) => each!(|x| x != x),
        (Op::NotEq | Op::Lt, false) => each!(|x| x == x),
        (Op::LtEq, false) => BooleanBuffer::new_set(values.len()),
        (Op::Gt, false) => BooleanBuffer::new_unset(values.len()),
    }
}

/// Values of one type, to look others up in.
#[derive(Debug, Clone)]
pub(super) enum Set {
    /// So few that comparing with each is faster.
    Few(Vec<ArrayRef>),
    /// Sorted, in the order of predicates.
    Floats(Arc<[f64]>),
    /// Their bytes.
    Bytes(Arc<HashSet<Box<[u8]>, RandomState>>),
}

/// Up to so many values are compared one by one.
const FEW: usize = 4;

impl Set {
    pub(super) fn new(values: &[Value], data_type: &DataType) -> Result<Self> {
        if data_type.is_floating() {
            let floats = values.iter().filter_map(|value| match value {
                Value::Float(value) => Some(*value),
                _ => None,
            });
            let mut floats: Vec<f64> = floats.collect();
            floats.sort_by(|a, b| compare_floats(*a, *b));
            return Ok(Self::Floats(floats.into()));
        }
        let arrays = values.iter().map(|value| array_of(value, data_type));
        let arrays = arrays.collect::<Result<Vec<_>>>()?;
        if values.len() <= FEW || *data_type == DataType::Boolean {
            return Ok(Self::Few(arrays));
        }
        let mut set = HashSet::with_capacity_and_hasher(values.len(), RandomState::default());
        for array in &arrays {
            each_value(array, |bytes| set.insert(bytes.into()));
        }
        Ok(Self::Bytes(Arc::new(set)))
    }

    /// Which values of an array of views are in the set, which is one of strings that are no views.
    fn find_views(&self, array: &ArrayRef) -> Result<BooleanBuffer> {
        let found = match self {
            Self::Few(values) => {
                let mut few = Vec::with_capacity(values.len());
                for value in values {
                    each_value(value, |bytes| {
                        few.push(bytes.to_vec());
                        true
                    });
                }
                each_value(array, |bytes| few.iter().any(|value| value == bytes))
            }
            _ => return self.find(array),
        };
        found.ok_or_else(|| Error::usage("values that cannot be looked up"))
    }

    /// Which values of an array are in the set.
    fn find(&self, array: &ArrayRef) -> Result<BooleanBuffer> {
        match self {
            Self::Few(values) => {
                let mut found = BooleanBuffer::new_unset(array.len());
                for value in values {
                    found = &found | cmp::eq(array, &Scalar::new(Arc::clone(value)))?.values();
                }
                Ok(found)
            }
            Self::Floats(sorted) => {
                let has = |x: f64| sorted.binary_search_by(|y| compare_floats(*y, x)).is_ok();
                Ok(match array.data_type() {
                    DataType::Float16 => {
                        let values = array.as_primitive::<Float16Type>().values();
                        BooleanBuffer::collect_bool(values.len(), |i| has(values[i].to_f64()))
                    }
                    DataType::Float32 => {
                        let values = array.as_primitive::<Float32Type>().values();
                        BooleanBuffer::collect_bool(values.len(), |i| has(values[i].into()))
                    }
                    _ => {
                        let values = array.as_primitive::<Float64Type>().values();
                        BooleanBuffer::collect_bool(values.len(), |i| has(values[i]))
                    }
                })
            }
            Self::Bytes(set) => {
                let found = each_value(array, |bytes| set.contains(bytes));
                found.ok_or_else(|| Error::usage("values that cannot be looked up"))
            }
        }
    }
}

/// The answer of `test` for the bytes of each value, nulls included; `None` for types without.
fn each_value(array: &ArrayRef, mut test: impl FnMut(&[u8]) -> bool) -> Option<BooleanBuffer> {
    let len = array.len();
    Some(match array.data_type() {
        DataType::Utf8 => {
            let array = array.as_string::<i32>();
            BooleanBuffer::collect_bool(len, |i| test(array.value(i).as_bytes()))
        }
        DataType::LargeUtf8 => {
            let array = array.as_string::<i64>();
            BooleanBuffer::collect_bool(len, |i| test(array.value(i).as_bytes()))
        }
        DataType::Utf8View => {
            let array = array.as_string_view();
            BooleanBuffer::collect_bool(len, |i| test(array.value(i).as_bytes()))
        }
        DataType::Binary => {
            let array = array.as_binary::<i32>();
            BooleanBuffer::collect_bool(len, |i| test(array.value(i)))
        }
        DataType::LargeBinary => {
            let array = array.as_binary::<i64>();
            BooleanBuffer::collect_bool(len, |i| test(array.value(i)))
        }
        DataType::BinaryView => {
            let array = array.as_binary_view();
            BooleanBuffer::collect_bool(len, |i| test(array.value(i)))
        }
        DataType::FixedSizeBinary(_) => {
            let array = array.as_fixed_size_binary();
            BooleanBuffer::collect_bool(len, |i| test(array.value(i)))
        }
        other => {
            let width = other.primitive_width()?;
            let data = array.to_data();
            let bytes = data.buffers().first()?.get(data.offset() * width..)?;
            let mut chunks = bytes.chunks_exact(width);
            BooleanBuffer::collect_bool(len, |_| chunks.next().is_some_and(&mut test))
        }
    })
}

/// A column that the file does not have: null in every row.
fn nulls_of(column: &BoundColumn, batch: &RecordBatch) -> ArrayRef {
    new_null_array(&column.data_type, batch.num_rows())
}

/// A column as a function of the user is given it: null where something around it is.
fn whole_column(column: &BoundColumn, batch: &RecordBatch) -> Result<ArrayRef> {
    if column.read == ReadOf::Nothing {
        return Ok(nulls_of(column, batch));
    }
    let mut array: Option<ArrayRef> = None;
    for step in &column.way {
        let Step::Field(name) = step else {
            return Err(missing(column));
        };
        let next = match &array {
            None => batch.column_by_name(name).cloned(),
            Some(outer) => {
                let group = outer.as_struct_opt().ok_or_else(|| missing(column))?;
                match (group.column_by_name(name), group.nulls()) {
                    (Some(child), Some(nulls)) if nulls.null_count() == nulls.len() => {
                        Some(new_null_array(child.data_type(), child.len()))
                    }
                    (Some(child), Some(nulls)) if nulls.null_count() > 0 => {
                        Some(nullif(child, &BooleanArray::new(!nulls.inner(), None))?)
                    }
                    (child, _) => child.cloned(),
                }
            }
        };
        array = Some(next.ok_or_else(|| missing(column))?);
    }
    array.ok_or_else(|| missing(column))
}

#[cold]
fn missing(column: &BoundColumn) -> Error {
    Error::usage(format_args!(
        "the batch has no column {} as the predicate was bound to it",
        column.path
    ))
}
