//! Converts dates, times and timestamps to nanoseconds in 128 bits, which no unit overflows.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef, Decimal128Array, Int32Array, Int64Array};
use arrow_schema::{ArrowError, DataType};

use crate::error::Result;
use crate::predicate::arrays::retyped;
use crate::predicate::datetime::{DAY, nanos_of};

/// Nanoseconds since 1970-01-01, or since midnight; none of another type.
pub(super) fn nanos(array: &ArrayRef) -> Result<Vec<Option<i128>>> {
    let per_unit = match array.data_type() {
        DataType::Date32 => DAY,
        DataType::Timestamp(unit, _) | DataType::Time32(unit) | DataType::Time64(unit) => {
            nanos_of(*unit)
        }
        _ => return Ok(vec![None; array.len()]),
    };
    let scaled = |count: Option<i64>| count.map(|count| i128::from(count) * i128::from(per_unit));
    Ok(match array.data_type() {
        DataType::Date32 | DataType::Time32(_) => {
            let counts = retyped(array, &DataType::Int32)?;
            let counts = counts.as_primitive::<Int32Type>();
            counts.iter().map(|count| scaled(count.map(i64::from))).collect()
        }
        _ => {
            let counts = retyped(array, &DataType::Int64)?;
            counts.as_primitive::<Int64Type>().iter().map(scaled).collect()
        }
    })
}

/// Nanoseconds as numbers, which can be compared whatever the unit was.
pub(super) fn comparable(array: &ArrayRef) -> Result<ArrayRef> {
    let numbers: Decimal128Array = nanos(array)?.into_iter().collect();
    Ok(Arc::new(numbers.with_data_type(DataType::Decimal128(38, 0))))
}

/// The array that nanoseconds are as `data_type`, rounded down to its unit; or the number of the
/// first that is out of its range.
pub(super) fn of_nanos(
    nanos: impl Iterator<Item = Option<i128>>,
    data_type: &DataType,
) -> Result<Result<ArrayRef, usize>> {
    let (per_unit, of_day) = match data_type {
        DataType::Date32 => (DAY, false),
        DataType::Timestamp(unit, _) => (nanos_of(*unit), false),
        DataType::Time32(unit) | DataType::Time64(unit) => (nanos_of(*unit), true),
        other => {
            return Err(ArrowError::CastError(format!("nanoseconds as {other}")).into());
        }
    };
    let count = |nanos: i128| {
        let nanos = if of_day { nanos.rem_euclid(i128::from(DAY)) } else { nanos };
        nanos.div_euclid(i128::from(per_unit))
    };
    let counts: Vec<Option<i128>> = nanos.map(|nanos| nanos.map(count)).collect();
    let is_narrow = matches!(data_type, DataType::Date32 | DataType::Time32(_));
    let fits = |count: &i128| match is_narrow {
        true => i32::try_from(*count).is_ok(),
        false => i64::try_from(*count).is_ok(),
    };
    if let Some(row) = counts.iter().position(|count| count.as_ref().is_some_and(|n| !fits(n))) {
        return Ok(Err(row));
    }
    let array = match is_narrow {
        true => {
            let counts = counts.iter().map(|count| count.and_then(|n| i32::try_from(n).ok()));
            retyped(&counts.collect::<Int32Array>(), data_type)?
        }
        false => {
            let counts = counts.iter().map(|count| count.and_then(|n| i64::try_from(n).ok()));
            retyped(&counts.collect::<Int64Array>(), data_type)?
        }
    };
    Ok(Ok(array))
}

#[cfg(test)]
mod tests {
    use arrow_array::Date32Array;
    use arrow_array::types::Decimal128Type;
    use arrow_schema::TimeUnit;

    use super::*;

    #[test]
    fn nanoseconds_are_rounded_down_and_checked() {
        let dates: ArrayRef = Arc::new(Date32Array::from(vec![Some(-1), None]));
        assert_eq!(nanos(&dates).unwrap(), [Some(-i128::from(DAY)), None]);
        let numbers = comparable(&dates).unwrap();
        assert_eq!(numbers.as_primitive::<Decimal128Type>().value(0), -i128::from(DAY));
        let seconds = DataType::Timestamp(TimeUnit::Second, None);
        let found = of_nanos([Some(-1), None].into_iter(), &seconds).unwrap().unwrap();
        let counts = retyped(&found, &DataType::Int64).unwrap();
        assert_eq!(*counts.as_primitive::<Int64Type>(), Int64Array::from(vec![Some(-1), None]));
        let far = i128::from(i64::MAX) * i128::from(DAY);
        assert_eq!(of_nanos([None, Some(far)].into_iter(), &DataType::Date32).unwrap(), Err(1));
    }
}
