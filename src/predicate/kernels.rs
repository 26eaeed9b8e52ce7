//! Compares whole arrays where Arrow has no kernel.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{ArrowPrimitiveType, Float16Type, Float32Type, Float64Type};
use arrow_array::{Array, ArrayRef, StringArray};
use arrow_buffer::BooleanBuffer;
use arrow_schema::DataType;

use super::arrays::array_of_one;
use super::expression::Op;
use super::value::LiteralValue;

pub(super) fn like_pattern(pattern: &str, data_type: &DataType) -> ArrayRef {
    let value = LiteralValue::Bytes(pattern.as_bytes().to_vec());
    array_of_one(&value, data_type)
        .unwrap_or_else(|_| Arc::new(StringArray::from_iter_values([pattern])))
}

pub(super) fn compare_to_float(array: &ArrayRef, op: Op, value: f64) -> BooleanBuffer {
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
pub(super) fn compare_floats_to<T: ArrowPrimitiveType>(
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
