//! Computes one step of an expression with the kernels of Arrow.

use std::sync::Arc;

use arrow_arith::numeric;
use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal128Type, Decimal256Type, Float32Type, Float64Type, Int64Type};
use arrow_array::{Array, ArrayRef, ArrowNativeTypeOp, ArrowPrimitiveType, Datum, Scalar};
use arrow_schema::{ArrowError, DataType};

use super::cast::cast;
use super::functions::{length, lower, upper};
use crate::error::{Error, Result};
use crate::predicate::calculation::{Arithmetic, Unary};

/// Values of the rows, or one value for all rows.
#[derive(Debug, Clone)]
pub(in crate::predicate) struct ColumnarValue {
    pub(in crate::predicate) array: ArrayRef,
    pub(super) is_scalar: bool,
}

impl ColumnarValue {
    pub(super) fn array(array: ArrayRef) -> Self {
        Self { array, is_scalar: false }
    }

    pub(super) fn map(self, map: impl FnOnce(ArrayRef) -> Result<ArrayRef>) -> Result<Self> {
        Ok(Self { array: map(self.array)?, ..self })
    }

    /// Calls a kernel of two operands.
    pub(super) fn with<T>(
        &self,
        right: &Self,
        kernel: impl Fn(&dyn Datum, &dyn Datum) -> Result<T, ArrowError>,
    ) -> Result<T> {
        let scalar = |value: &Self| Scalar::new(Arc::clone(&value.array));
        let done = match (self.is_scalar, right.is_scalar) {
            (true, true) => kernel(&scalar(self), &scalar(right)),
            (true, false) => kernel(&scalar(self), &right.array),
            (false, true) => kernel(&self.array, &scalar(right)),
            (false, false) => kernel(&self.array, &right.array),
        };
        done.map_err(to_error)
    }
}

/// Converts the error of a kernel.
#[cold]
fn to_error(error: ArrowError) -> Error {
    match error {
        ArrowError::ArithmeticOverflow(what) => {
            let what = what.strip_prefix("Overflow happened on: ").unwrap_or(&what);
            Error::usage(format_args!("overflow: {what}"))
        }
        ArrowError::DivideByZero => Error::usage("division by zero"),
        other => other.into(),
    }
}

/// An operator on operands that have the right types.
pub(super) fn calculated(
    op: Arithmetic,
    left: &ColumnarValue,
    right: &ColumnarValue,
) -> Result<ColumnarValue> {
    let array = left.with(right, |left, right| match op {
        Arithmetic::Add => numeric::add(left, right),
        Arithmetic::Subtract => numeric::sub(left, right),
        Arithmetic::Multiply => numeric::mul(left, right),
        Arithmetic::Divide => numeric::div(left, right),
        Arithmetic::Remainder => numeric::rem(left, right),
    })?;
    Ok(ColumnarValue { array, is_scalar: left.is_scalar && right.is_scalar })
}

pub(super) fn applied(function: &Unary, array: &ArrayRef) -> Result<ArrayRef> {
    let done = match function {
        Unary::Negate => return numeric::neg(array).map_err(to_error),
        Unary::Abs => return absolute(array),
        Unary::Cast(to) => return cast(array, to),
        Unary::Lower => lower(array),
        Unary::Upper => upper(array),
        Unary::Length => length(array),
    };
    done.ok_or_else(|| Error::usage("a function of another type"))
}

fn absolute(array: &ArrayRef) -> Result<ArrayRef> {
    fn map_values<T: ArrowPrimitiveType>(
        array: &ArrayRef,
        absolute: impl Fn(T::Native) -> Result<T::Native, ArrowError>,
    ) -> Result<ArrayRef> {
        let values = array.as_primitive::<T>();
        let done = values.try_unary::<_, T, _>(absolute).map_err(to_error)?;
        Ok(Arc::new(done.with_data_type(array.data_type().clone())))
    }
    match array.data_type() {
        DataType::Int64 => {
            map_values::<Int64Type>(array, |x| if x < 0 { x.neg_checked() } else { Ok(x) })
        }
        DataType::Decimal128(..) => {
            map_values::<Decimal128Type>(array, |x| if x < 0 { x.neg_checked() } else { Ok(x) })
        }
        DataType::Decimal256(..) => map_values::<Decimal256Type>(array, |x| {
            if x.is_negative() { x.neg_checked() } else { Ok(x) }
        }),
        DataType::Float32 => map_values::<Float32Type>(array, |x| Ok(x.abs())),
        _ => map_values::<Float64Type>(array, |x| Ok(x.abs())),
    }
}
