//! Evaluates a predicate: for each row of a batch, whether it is true, false or null.
//!
//! A [`TriState`] is two bitmaps, one of the rows that are true and one of those that are false;
//! logic on SQL's three values is then plain bit operations. The kernels of Arrow compare values,
//! except floats, whose order differs here. A dictionary is tested once for each entry, a run once.
//! Trap: below a null struct or list an array may have any value; the validity of the parent
//! decides.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int16Type, Int32Type, Int64Type, RunEndIndexType};
use arrow_array::{
    Array, ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions, Scalar, new_null_array,
};
use arrow_buffer::{BooleanBuffer, BooleanBufferBuilder, NullBuffer};
use arrow_ord::cmp;
use arrow_schema::{DataType, Field, Schema as ArrowSchema};
use arrow_select::filter::filter;
use arrow_select::nullif::nullif;
use arrow_select::take::take;

use super::bound::{Bound, BoundColumn, BoundNode, BoundTest, PathStep, ReadOf};
use super::computed::{BoundComputed, Load, Question, column_values, compare, lower};
use super::evaluation::{BUILT, Evaluation};
use super::expression::{Function, Op, Quantifier};
use super::kernels::{compare_to_float, like_pattern};
use super::learn::AdaptiveStats;
use super::list_elements::ListElements;
use super::nested_bits::within;
use super::set::{are_in_other_form, each_value};
use super::tri_state::TriState;
use super::type_name::TypeName;
use super::value::LiteralValue;
use crate::error::{Error, ErrorKind, LimitKind, Result, Spec};
use crate::geo::Rectangle;
use crate::limits::Growth;
use crate::rows::{self, value_bytes};
use crate::variant::VariantArray;

impl Bound {
    /// Evaluates the predicate on each row: the result is true where the predicate is, false where
    /// it is false or null, and never null.
    ///
    /// The columns are found by name: the batch may have others too, in any order. Their values
    /// must have the types that the predicate was bound to; they may be in dictionaries or in runs.
    ///
    /// # Errors
    /// `Usage` if a column is missing or of another type, or a function of the caller returns
    /// another number of rows; and any error of such a function.
    pub fn evaluate(&self, batch: &RecordBatch) -> Result<BooleanArray> {
        Ok(BooleanArray::new(self.trues(batch)?, None))
    }

    /// Rows whose values would have no room in one array, once each has its own copy, are evaluated
    /// in halves.
    fn trues(&self, batch: &RecordBatch) -> Result<BooleanBuffer> {
        let (rows, adaptive) = (batch.num_rows(), AdaptiveStats::default());
        let all = self.tri_state(&self.root, batch, None, Evaluation::new(&adaptive, None));
        match all {
            Err(e) if e.kind() == ErrorKind::Limit(LimitKind::ArrayLength) && rows > 1 => {
                let middle = rows / 2;
                let mut trues = BooleanBufferBuilder::new(rows);
                for half in [batch.slice(0, middle), batch.slice(middle, rows - middle)] {
                    trues.append_buffer(&self.trues(&half)?);
                }
                Ok(trues.finish())
            }
            all => Ok(all?.trues),
        }
    }

    /// For rows that are not `wanted`, because others decide, the result may be null.
    pub(super) fn tri_state(
        &self,
        node: &BoundNode,
        batch: &RecordBatch,
        wanted: Option<&BooleanBuffer>,
        evaluation: Evaluation<'_>,
    ) -> Result<TriState> {
        let rows = batch.num_rows();
        match node {
            BoundNode::Constant(value) => Ok(TriState::constant(*value, rows)),
            BoundNode::Test(column, test) => {
                self.test(self.column(*column)?, test, batch, evaluation)
            }
            BoundNode::Not(inner) => Ok(self.tri_state(inner, batch, wanted, evaluation)?.not()),
            BoundNode::And(operands) => {
                let mut all = TriState::constant(Some(true), rows);
                for operand in those_that_may_fail_last(operands) {
                    let wanted = undecided(operand, wanted, &all.falses);
                    all = all.and(&self.tri_state(operand, batch, wanted.as_ref(), evaluation)?);
                    if all.falses.count_set_bits() == rows {
                        break;
                    }
                }
                Ok(all)
            }
            BoundNode::Or(operands) => {
                let mut any = TriState::constant(Some(false), rows);
                for operand in those_that_may_fail_last(operands) {
                    let wanted = undecided(operand, wanted, &any.trues);
                    any = any.or(&self.tri_state(operand, batch, wanted.as_ref(), evaluation)?);
                    if any.trues.count_set_bits() == rows {
                        break;
                    }
                }
                Ok(any)
            }
            BoundNode::Function(columns, function) => self.call(columns, function, batch),
            BoundNode::Computed(computed) => self.computed(computed, batch, wanted, evaluation),
        }
    }

    /// The values of a column, null where something around them is; of a part of a VARIANT, those.
    pub(super) fn values_of(
        &self,
        column: usize,
        batch: &RecordBatch,
        growth: &Growth,
    ) -> Result<ArrayRef> {
        let column = self.column(column)?;
        let array = whole_column(column, batch)?;
        match &column.part {
            Some(part) if column.read != ReadOf::Nothing => {
                let group = array.as_struct_opt().ok_or_else(|| missing(column))?;
                let nulls = group.nulls().cloned();
                let variant = VariantArray::from_parts(group, nulls, growth)?;
                variant.get_within(&part.path, &part.data_type, growth)
            }
            _ => Ok(array),
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
        evaluation: Evaluation<'_>,
    ) -> Result<TriState> {
        if column.read == ReadOf::Nothing {
            return Ok(TriState::constant(test.of_null(), batch.num_rows()));
        }
        let evaluator = Evaluator { column, test, evaluation };
        let Some((PathStep::Field(name), rest)) = column.path_steps.split_first() else {
            return Err(missing(column));
        };
        let array = batch.column_by_name(name).ok_or_else(|| missing(column))?;
        evaluator.descend(array, None, rest)
    }

    fn call(
        &self,
        columns: &[usize],
        function: &Function,
        batch: &RecordBatch,
    ) -> Result<TriState> {
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
        let result = (function.call)(&given).map_err(Error::of_caller)?;
        if result.len() != batch.num_rows() {
            return Err(Error::usage(format_args!(
                "the function of a predicate was given {} rows, and returned {}",
                batch.num_rows(),
                result.len()
            )));
        }
        Ok(TriState::from_array(&result))
    }
}

/// The operands in the order in which they are evaluated: those that may fail for a row at the end,
/// where the others have decided of most.
fn those_that_may_fail_last(operands: &[Arc<BoundNode>]) -> impl Iterator<Item = &Arc<BoundNode>> {
    let first = operands.iter().filter(|operand| !operand.is_last());
    first.chain(operands.iter().filter(|operand| operand.is_last()))
}

/// The rows for which the result of an operand matters; only for an operand that may fail.
fn undecided(
    operand: &BoundNode,
    wanted: Option<&BooleanBuffer>,
    decided: &BooleanBuffer,
) -> Option<BooleanBuffer> {
    if !operand.is_last() {
        return None;
    }
    let undecided = !decided;
    Some(match wanted {
        Some(wanted) => &undecided & wanted,
        None => undecided,
    })
}

// Trap: a row that other parts of the predicate leave out must not make an expression fail, so that
// one that may fail is evaluated only on the rows that are wanted.
impl Bound {
    /// Evaluates an expression and its test for the rows of a batch; the result may be null for
    /// rows that are not `wanted`.
    fn computed(
        &self,
        computed: &BoundComputed,
        batch: &RecordBatch,
        wanted: Option<&BooleanBuffer>,
        evaluation: Evaluation<'_>,
    ) -> Result<TriState> {
        let wanted =
            wanted.filter(|wanted| computed.may_fail && wanted.count_set_bits() < wanted.len());
        let left_out = wanted.map(|wanted| BooleanArray::new(wanted.clone(), None));
        let (growth, mut copies) = (evaluation.growth(), evaluation.copies());
        let mut load = |column: usize| -> Result<ArrayRef> {
            let array = self.values_of(column, batch, &growth)?;
            let array = match &left_out {
                Some(wanted) => filter(&array, wanted)?,
                None => array,
            };
            match computed.copies_text || !is_shared(array.data_type()) {
                true => copies.add(value_bytes(&array), 1 + BUILT)?,
                false => copies.hold(array.len().saturating_mul(size_of::<u128>()))?,
            }
            column_values(&array)
        };
        let results = computed.results(&mut load)?;
        Ok(match wanted {
            None => results,
            Some(wanted) => TriState {
                trues: within(wanted, &results.trues),
                falses: within(wanted, &results.falses),
            },
        })
    }
}

impl BoundComputed {
    fn results(&self, load: &mut Load<'_>) -> Result<TriState> {
        let named = |e: Error| match (e.kind(), e.get_ref()) {
            // Fewer rows may do.
            (ErrorKind::Limit(_), _) | (_, Some(_)) => e,
            (_, None) => Error::usage(format_args!("{}: {}", self.text, e.message())),
        };
        let value = self.value.evaluate(load).map_err(named)?;
        match &self.question {
            Question::Test(subject, test) => test_values(subject, test, &value.array),
            Question::Compare(op, compared, right) => {
                let right = right.evaluate(load).map_err(named)?;
                compare(*op, compared, value, right).map_err(named)
            }
        }
    }

    /// The result without any column.
    pub(super) fn constant(&self) -> Result<Option<bool>> {
        let results = self.results(&mut |_| Err(Error::usage("an expression with columns")))?;
        let is = |bits: &BooleanBuffer| bits.count_set_bits() > 0;
        Ok(if is(&results.trues) { Some(true) } else { is(&results.falses).then_some(false) })
    }
}

/// Whether views of the values refer to the bytes where they are.
fn is_shared(data_type: &DataType) -> bool {
    use DataType as D;
    match data_type {
        D::LargeUtf8 | D::LargeBinary => true,
        D::Dictionary(_, values) => is_bytes(values),
        values => is_bytes(values),
    }
}

fn is_bytes(data_type: &DataType) -> bool {
    use DataType as D;
    matches!(data_type, D::Utf8 | D::Binary | D::Utf8View | D::BinaryView)
}

/// Tests values that are not those of a column of a batch.
fn test_values(subject: &BoundColumn, test: &BoundTest, values: &ArrayRef) -> Result<TriState> {
    let adaptive = AdaptiveStats::default();
    let evaluation = Evaluation::new(&adaptive, None);
    let evaluator = Evaluator { column: subject, test, evaluation };
    evaluator.test_here(values, None)
}

/// A test of a column, and what was learnt of it.
#[derive(Clone, Copy)]
struct Evaluator<'a> {
    column: &'a BoundColumn,
    test: &'a BoundTest,
    evaluation: Evaluation<'a>,
}

impl Evaluator<'_> {
    /// Tests the values at `path_steps` in `array`. `outer` marks where something around them is
    /// null.
    fn descend(
        self,
        array: &ArrayRef,
        outer: Option<&NullBuffer>,
        path_steps: &[PathStep],
    ) -> Result<TriState> {
        let column = self.column;
        let Some((step, rest)) = path_steps.split_first() else {
            let Some(part) = &column.part else { return self.test_here(array, outer) };
            let group = array.as_struct_opt().ok_or_else(|| missing(column))?;
            let nulls = NullBuffer::union(outer, group.nulls());
            let growth = self.evaluation.growth();
            let variant = VariantArray::from_parts(group, nulls, &growth)?;
            let parts = variant.get_within(&part.path, &part.data_type, &growth)?;
            return self.test_here(&parts, None);
        };
        let nulls = NullBuffer::union(outer, array.nulls());
        match step {
            PathStep::Field(name) => {
                let group = array.as_struct_opt().ok_or_else(|| missing(column))?;
                let child = group.column_by_name(name).ok_or_else(|| missing(column))?;
                self.descend(child, nulls.as_ref(), rest)
            }
            PathStep::Elements => {
                let lists = ListElements::from_array(array).ok_or_else(|| missing(column))?;
                // An element outside every list is not a value, and tests that may fail must not
                // see it.
                let may_fail = matches!(self.test, BoundTest::Intersects(_));
                let inside = may_fail.then(|| lists.inside(nulls.as_ref()));
                let tri_state = self.descend(&lists.values, inside.as_ref(), rest)?;
                Ok(match column.elements {
                    Some(Quantifier::All) => lists.any(&tri_state.not()).not(),
                    _ => lists.any(&tri_state),
                }
                .masked(nulls.as_ref()))
            }
        }
    }

    /// Tests the values of an array, which may be in a dictionary or in runs.
    fn test_here(self, array: &ArrayRef, outer: Option<&NullBuffer>) -> Result<TriState> {
        let len = array.len();
        let tri_state = match (self.test, array.data_type()) {
            (BoundTest::Null, _) => TriState::constant(None, len),
            (BoundTest::IsNull, _) => {
                let nulls = NullBuffer::union(outer, array.logical_nulls().as_ref());
                return Ok(match nulls {
                    None => TriState::constant(Some(false), len),
                    Some(nulls) => TriState::total(nulls.into_inner()).not(),
                });
            }
            (BoundTest::IsEmpty, _) => {
                let lists = ListElements::from_array(array).ok_or_else(|| missing(self.column))?;
                let empty = BooleanBuffer::collect_bool(len, |i| {
                    lists.ends.get(i).is_some_and(|(from, to)| from == to)
                });
                TriState::total(empty).masked(array.nulls())
            }
            (BoundTest::Both(both), _) => {
                let [first, second] = &**both;
                let first = Evaluator { test: first, ..self }.test_here(array, outer)?;
                first.and(&Evaluator { test: second, ..self }.test_here(array, outer)?)
            }
            (_, DataType::Dictionary(..)) => self.test_dictionary(array, outer)?,
            (_, DataType::RunEndEncoded(ends, _)) => match ends.data_type() {
                DataType::Int16 => self.test_runs::<Int16Type>(array)?,
                DataType::Int32 => self.test_runs::<Int32Type>(array)?,
                _ => self.test_runs::<Int64Type>(array)?,
            },
            _ => self.test_plain(array, outer)?,
        };
        Ok(tri_state.masked(outer))
    }

    /// Tests each entry of a dictionary once, unless most of them are for other rows.
    fn test_dictionary(self, array: &ArrayRef, outer: Option<&NullBuffer>) -> Result<TriState> {
        let dictionary = array.as_any_dictionary();
        let entries = dictionary.values();
        let by_row = |bytes: u64| {
            let mut copies = self.evaluation.copies();
            copies.add(bytes, 1)?;
            self.test_here(&take(entries, dictionary.keys(), None)?, outer)
        };
        if let Some(known) = self.evaluation.adaptive.entries(self.test, entries) {
            return Ok(known.looked_up(dictionary));
        }
        // A few long entries may be those of most rows.
        if !self.evaluation.adaptive.pays(self.test, entries, array.len()) {
            let bytes = value_bytes(array);
            if bytes <= value_bytes(entries) {
                return by_row(bytes);
            }
        }
        match self.test_plain(entries, None) {
            Ok(of_entries) => {
                self.evaluation.adaptive.keep(self.test, entries, &of_entries);
                Ok(of_entries.looked_up(dictionary))
            }
            Err(e) => match e.kind() {
                // An entry that cannot be tested matters only if a row has it, and where there is
                // no memory for all entries, there may be some for those of fewer rows.
                ErrorKind::Malformed(Spec::Geospatial) | ErrorKind::Limit(_) => {
                    by_row(value_bytes(array))
                }
                _ => Err(e),
            },
        }
    }

    fn test_runs<R: RunEndIndexType>(self, array: &ArrayRef) -> Result<TriState> {
        let runs = array.as_run_opt::<R>().ok_or_else(|| missing(self.column))?;
        let of_runs = self.test_here(&runs.values_slice(), None)?;
        let mut indexes = Vec::with_capacity(array.len());
        for (run, end) in runs.run_ends().sliced_values().enumerate() {
            indexes.resize(arrow_buffer::ArrowNativeType::as_usize(end), run);
        }
        Ok(of_runs.gathered(array.len(), |i| indexes.get(i).copied()))
    }

    /// Tests values that are neither in a dictionary nor in runs. `outer` marks where something
    /// around them is null.
    fn test_plain(self, array: &ArrayRef, outer: Option<&NullBuffer>) -> Result<TriState> {
        let Self { column, test, .. } = self;
        let len = array.len();
        if array.data_type() == &DataType::Null {
            return Ok(TriState::constant(None, len));
        }
        let is_in_other_form = are_in_other_form(array.data_type(), &column.data_type);
        if array.data_type() != &column.data_type && !is_in_other_form {
            return Err(Error::usage(format_args!(
                "column {}: the predicate was bound to {}, and is evaluated on {}",
                column.path,
                TypeName(&column.data_type),
                TypeName(array.data_type())
            )));
        }
        let tri_state = match test {
            BoundTest::Compare { op, value, scalar } => {
                compare_to_value(array, *op, value, scalar)?.ok_or_else(|| missing(column))?
            }
            BoundTest::Same { scalar, negated } => {
                let same = TriState::from_array(&cmp::eq(array, &Scalar::new(Arc::clone(scalar)))?);
                if *negated { same.not() } else { same }
            }
            BoundTest::In { set, has_null, .. } => {
                let found = match is_in_other_form {
                    true => set.find_in_other_form(array)?,
                    false => set.find(array)?,
                };
                let falses = if *has_null { BooleanBuffer::new_unset(len) } else { !&found };
                TriState { trues: found, falses }
            }
            BoundTest::StartsWith(prefix) => {
                let found = each_value(array, |bytes| bytes.starts_with(prefix));
                TriState::total(found.ok_or_else(|| missing(column))?)
            }
            BoundTest::Intersects(rectangle) => {
                let nulls = NullBuffer::union(outer, array.nulls());
                TriState::total(intersects(column, *rectangle, array, nulls.as_ref())?)
            }
            BoundTest::Like { pattern, .. } => {
                let pattern = like_pattern(pattern, array.data_type());
                TriState::from_array(&arrow_string::like::like(array, &Scalar::new(pattern))?)
            }
            BoundTest::Lowered(of_small) => {
                let mut copies = self.evaluation.copies();
                copies.add(value_bytes(array), BUILT)?;
                let small = lower(array).ok_or_else(|| missing(column))?;
                Evaluator { test: of_small, ..self }.test_plain(&small, outer)?
            }
            BoundTest::Constant(holds) => TriState::constant(Some(*holds), len),
            BoundTest::Null | BoundTest::Both(_) | BoundTest::IsNull | BoundTest::IsEmpty => {
                TriState::constant(None, len)
            }
        };
        Ok(tri_state.masked(array.nulls()))
    }
}

/// Compares each value, nulls included, with one; `None` if they are of a type without bytes.
fn compare_to_value(
    array: &ArrayRef,
    op: Op,
    value: &LiteralValue,
    scalar: &ArrayRef,
) -> Result<Option<TriState>> {
    let trues = match (op, value) {
        (Op::Eq, LiteralValue::Bytes(value)) => each_value(array, |bytes| are_equal(bytes, value)),
        (Op::NotEq, LiteralValue::Bytes(value)) => {
            each_value(array, |bytes| !are_equal(bytes, value))
        }
        (_, LiteralValue::Bytes(value)) => each_value(array, |bytes| op.holds(order(bytes, value))),
        (_, LiteralValue::Float(value)) => Some(compare_to_float(array, op, *value)),
        _ => {
            let scalar = Scalar::new(Arc::clone(scalar));
            return Ok(Some(TriState::from_array(&match op {
                Op::Eq => cmp::eq(array, &scalar)?,
                Op::NotEq => cmp::neq(array, &scalar)?,
                Op::Lt => cmp::lt(array, &scalar)?,
                Op::LtEq => cmp::lt_eq(array, &scalar)?,
                Op::Gt => cmp::gt(array, &scalar)?,
                Op::GtEq => cmp::gt_eq(array, &scalar)?,
            })));
        }
    };
    Ok(trues.map(TriState::total))
}

/// Whether two byte strings are equal. Trap: of an empty slice `memcmp` may load, masked, from an
/// address where nothing is, which takes hundreds of cycles.
#[inline]
fn are_equal(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && (a.is_empty() || a == b)
}

/// The order of two byte strings: usually the first eight bytes decide, without a call. The trap is
/// that of [`are_equal`].
#[inline]
fn order(a: &[u8], b: &[u8]) -> Ordering {
    if let (Some(first), Some(other)) = (a.first_chunk::<8>(), b.first_chunk()) {
        let (first, other) = (u64::from_be_bytes(*first), u64::from_be_bytes(*other));
        if first != other {
            return first.cmp(&other);
        }
    }
    if a.is_empty() || b.is_empty() { a.len().cmp(&b.len()) } else { a.cmp(b) }
}

/// Which geometries have a box around them that meets `rectangle`.
///
/// # Errors
/// `Malformed(Geospatial)` if a value that is not null is no WKB.
fn intersects(
    column: &BoundColumn,
    rectangle: Rectangle,
    array: &ArrayRef,
    nulls: Option<&NullBuffer>,
) -> Result<BooleanBuffer> {
    let mut fault = None;
    let mut next = 0;
    let found = each_value(array, |wkb| {
        let at = next;
        next += 1;
        if fault.is_some() || nulls.is_some_and(|nulls| nulls.is_null(at)) {
            return false;
        }
        match Rectangle::around(wkb, column.edges) {
            Ok(around) => around.is_some_and(|around| around.intersects(&rectangle)),
            Err(e) => {
                fault = Some((at, e));
                false
            }
        }
    });
    match fault {
        None => found.ok_or_else(|| missing(column)),
        Some((at, e)) => Err(e
            .within(format_args!("value {at}, counted from 0, of the {} tested", array.len()))
            .at_column(column.path.as_str())),
    }
}

/// Maximum bytes of the nulls of a column that the file does not have, because no budget counts
/// them, and other files state the size of its lists.
const MAX_NULL_BYTES: usize = 64 << 20;

/// A column that the file does not have: null in every row.
fn nulls_of(column: &BoundColumn, batch: &RecordBatch) -> Result<ArrayRef> {
    let nulls = rows::nulls(&column.data_type, batch.num_rows(), MAX_NULL_BYTES);
    nulls.map_err(|e| e.at_column(column.path.as_str()))
}

/// A column as a function of the user is given it: null where something around it is.
fn whole_column(column: &BoundColumn, batch: &RecordBatch) -> Result<ArrayRef> {
    if column.read == ReadOf::Nothing {
        return nulls_of(column, batch);
    }
    let mut array: Option<ArrayRef> = None;
    for step in &column.path_steps {
        let PathStep::Field(name) = step else {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn byte_strings_compare_as_slices_do() {
        let texts = ["", "a", "abcdefg", "abcdefgh", "abcdefgi", "abcdefgh0", "abcdefgh1", "b"];
        for a in texts.map(str::as_bytes) {
            for b in texts.map(str::as_bytes) {
                assert_eq!(order(a, b), a.cmp(b), "{a:?} {b:?}");
                assert_eq!(are_equal(a, b), a == b, "{a:?} {b:?}");
            }
        }
    }
}
