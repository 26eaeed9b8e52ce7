//! Builds Arrow arrays of [`LiteralValue`]s, for the comparison kernels and for statistics.

use std::sync::Arc;

use arrow_array::types::{
    Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type, Float16Type, Float32Type,
    Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type,
    UInt64Type,
};
use arrow_array::{
    Array, ArrayRef, ArrowPrimitiveType, BinaryArray, BinaryViewArray, BooleanArray,
    FixedSizeBinaryArray, LargeBinaryArray, LargeStringArray, PrimitiveArray, StringArray,
    StringViewArray, make_array, new_null_array,
};
use arrow_schema::{ArrowError, DataType};

use super::value::LiteralValue;
use crate::error::Result;

/// One value of `data_type` as an array.
///
/// # Errors
/// `Arrow` if the type has no such value, which [`Literal::coerce`](crate::Literal) never gives.
pub(super) fn array_of_one(value: &LiteralValue, data_type: &DataType) -> Result<ArrayRef> {
    let array = array(&[Some(value)], data_type)?;
    match array.null_count() {
        0 => Ok(array),
        _ => Err(ArrowError::CastError(format!("{value:?} is no {data_type}")).into()),
    }
}

/// An array of `data_type`; null where the type has no such value.
///
/// # Errors
/// `Arrow` if byte strings have another length than a fixed one.
pub(super) fn array(values: &[Option<&LiteralValue>], data_type: &DataType) -> Result<ArrayRef> {
    use DataType as D;
    let int = |value: &LiteralValue| match value {
        LiteralValue::Int(number) => Some(*number),
        LiteralValue::Wide(number) => number.to_i128(),
        _ => None,
    };
    let float = |value: &LiteralValue| match value {
        LiteralValue::Float(number) => Some(*number),
        _ => None,
    };
    let wide = |value: &LiteralValue| match value {
        LiteralValue::Wide(number) => Some(*number),
        _ => None,
    };
    let narrow = |value: &LiteralValue| {
        #[expect(clippy::cast_possible_truncation, reason = "32 bits wide in the file or rounded")]
        float(value).map(|number| number as f32)
    };
    let bytes = values.iter().map(|value| match value {
        Some(LiteralValue::Bytes(bytes)) => Some(bytes.as_slice()),
        _ => None,
    });
    let texts = bytes.clone().map(|bytes| std::str::from_utf8(bytes?).ok());
    Ok(match data_type {
        D::Boolean => {
            let truths = values.iter().map(|value| Some(int((*value)?)? != 0));
            Arc::new(truths.collect::<BooleanArray>())
        }
        D::Int8 => ints::<Int8Type>(values, data_type, int)?,
        D::Int16 => ints::<Int16Type>(values, data_type, int)?,
        D::Int32 | D::Date32 | D::Time32(_) => ints::<Int32Type>(values, data_type, int)?,
        D::Int64 | D::Date64 | D::Time64(_) | D::Timestamp(..) | D::Duration(_) => {
            ints::<Int64Type>(values, data_type, int)?
        }
        D::UInt8 => ints::<UInt8Type>(values, data_type, int)?,
        D::UInt16 => ints::<UInt16Type>(values, data_type, int)?,
        D::UInt32 => ints::<UInt32Type>(values, data_type, int)?,
        D::UInt64 => ints::<UInt64Type>(values, data_type, int)?,
        D::Decimal32(..) => ints::<Decimal32Type>(values, data_type, int)?,
        D::Decimal64(..) => ints::<Decimal64Type>(values, data_type, int)?,
        D::Decimal128(..) => ints::<Decimal128Type>(values, data_type, int)?,
        D::Decimal256(..) => primitives::<Decimal256Type>(values, data_type, wide)?,
        D::Float16 => primitives::<Float16Type>(values, data_type, |value| {
            float(value).map(half::f16::from_f64)
        })?,
        D::Float32 => primitives::<Float32Type>(values, data_type, narrow)?,
        D::Float64 => primitives::<Float64Type>(values, data_type, float)?,
        D::Utf8 => Arc::new(texts.collect::<StringArray>()),
        D::LargeUtf8 => Arc::new(texts.collect::<LargeStringArray>()),
        D::Utf8View => Arc::new(texts.collect::<StringViewArray>()),
        D::Binary => Arc::new(bytes.collect::<BinaryArray>()),
        D::LargeBinary => Arc::new(bytes.collect::<LargeBinaryArray>()),
        D::BinaryView => Arc::new(bytes.collect::<BinaryViewArray>()),
        D::FixedSizeBinary(len) => {
            Arc::new(FixedSizeBinaryArray::try_from_sparse_iter_with_size(bytes, *len)?)
        }
        // Intervals have no order, and nulls no values.
        _ => new_null_array(data_type, values.len()),
    })
}

/// Integers, stored as `T` whatever they count.
fn ints<T: ArrowPrimitiveType<Native: TryFrom<i128>>>(
    values: &[Option<&LiteralValue>],
    data_type: &DataType,
    int: impl Fn(&LiteralValue) -> Option<i128>,
) -> Result<ArrayRef> {
    primitives::<T>(values, data_type, |value| T::Native::try_from(int(value)?).ok())
}

fn primitives<T: ArrowPrimitiveType>(
    values: &[Option<&LiteralValue>],
    data_type: &DataType,
    native: impl Fn(&LiteralValue) -> Option<T::Native>,
) -> Result<ArrayRef> {
    let natives = values.iter().map(|value| value.and_then(&native));
    retyped(&natives.collect::<PrimitiveArray<T>>(), data_type)
}

/// The same buffers under another type of the same layout.
pub(super) fn retyped(array: &dyn Array, data_type: &DataType) -> Result<ArrayRef> {
    Ok(make_array(array.to_data().into_builder().data_type(data_type.clone()).build()?))
}
