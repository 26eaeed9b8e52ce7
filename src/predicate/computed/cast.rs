//! Casts values to another type; a value that the type does not have fails the read.

use std::sync::Arc;

use arrow_array::builder::StringViewBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type};
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType};
use arrow_cast::display::array_value_to_string;
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::DataType;

use super::temporal::{nanos, of_nanos};
use super::types::plain;
use crate::error::{Error, Result, quoted};
use crate::predicate::datetime::{self, Date, Time, Timestamp};
use crate::predicate::type_name::TypeName;
use DataType as D;

/// Whether there is a cast between two types.
pub(super) fn is_supported(from: &DataType, to: &DataType) -> bool {
    let is_simple = |data_type: &DataType| {
        matches!(data_type, D::Boolean) || data_type.is_integer() || data_type.is_floating()
    };
    match (from, to) {
        _ if from == to || *from == D::Null => !to.is_nested(),
        _ if is_simple(from) && is_simple(to) => true,
        _ if from.is_numeric() && to.is_numeric() => true,
        (D::Utf8View, _) => {
            is_simple(to)
                || to.is_decimal()
                || *to == D::Utf8
                || matches!(to, D::Date32 | D::Time32(_) | D::Time64(_) | D::Timestamp(..))
        }
        (D::Date32 | D::Time32(_) | D::Time64(_) | D::Timestamp(..), D::Utf8) => true,
        (_, D::Utf8) => is_simple(from) || from.is_decimal(),
        (D::Date32 | D::Timestamp(..), D::Date32 | D::Timestamp(..)) => true,
        (D::Timestamp(..) | D::Time32(_) | D::Time64(_), D::Time32(_) | D::Time64(_)) => true,
        _ => false,
    }
}

/// The values as `to`, in the form that expressions compute with.
///
/// # Errors
/// `Usage`, with the first value that is none.
pub(super) fn cast(array: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    let from = array.data_type();
    let is_temporal = |data_type: &DataType| {
        matches!(data_type, D::Date32 | D::Time32(_) | D::Time64(_) | D::Timestamp(..))
    };
    if *from == plain(to) {
        return Ok(Arc::clone(array));
    }
    let cast = match (from, to) {
        (D::Null, _) => by_arrow(array, to),
        (_, D::Utf8) if is_temporal(from) => texts_of_times(array),
        (D::Float32, D::Utf8) => {
            Ok(texts(array.as_primitive::<Float32Type>().iter().map(|value| {
                value.map(|value| {
                    float_text(value.into(), &format!("{value:e}"), &value.to_string())
                })
            })))
        }
        (D::Float64, D::Utf8) => {
            Ok(texts(array.as_primitive::<Float64Type>().iter().map(|value| {
                value.map(|value| float_text(value, &format!("{value:e}"), &value.to_string()))
            })))
        }
        (D::Utf8View, _) if is_temporal(to) => times_of_texts(array, to),
        _ if is_temporal(from) && is_temporal(to) => {
            let fault = |row: usize| no_such(array, row, to);
            of_nanos(nanos(array)?.into_iter(), to)?.map_err(fault)
        }
        (D::Float32, _) if to.is_integer() => {
            by_arrow(&rounded::<Float32Type>(array, |x| x.round_ties_even()), to)
        }
        (D::Float64, _) if to.is_integer() => {
            by_arrow(&rounded::<Float64Type>(array, |x| x.round_ties_even()), to)
        }
        (D::Decimal128(precision, scale @ 1..), _) if to.is_integer() => {
            by_arrow(&by_arrow(array, &whole(*precision, *scale))?, to)
        }
        (D::Decimal256(precision, 1..), _) if to.is_integer() => {
            by_arrow(&by_arrow(array, &D::Decimal256(*precision, 0))?, to)
        }
        (D::Utf8View, _) => by_arrow(&by_arrow(array, &D::Utf8)?, to),
        _ => by_arrow(array, to),
    }?;
    by_arrow(&cast, &plain(to))
}

/// The decimal without a fraction that a decimal is rounded to: it may have a digit more.
fn whole(precision: u8, scale: i8) -> DataType {
    let digits = precision.saturating_sub(scale.unsigned_abs()).saturating_add(1);
    D::Decimal128(digits.min(38), 0)
}

fn rounded<T: ArrowPrimitiveType>(
    array: &ArrayRef,
    round: impl Fn(T::Native) -> T::Native,
) -> ArrayRef {
    Arc::new(array.as_primitive::<T>().unary::<_, T>(round))
}

fn by_arrow(array: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    let options = |safe| CastOptions { safe, ..CastOptions::default() };
    if array.data_type() == to {
        return Ok(Arc::clone(array));
    }
    let error = match cast_with_options(array, to, &options(false)) {
        Ok(done) => return Ok(done),
        Err(error) => error,
    };
    let partial = cast_with_options(array, to, &options(true))?;
    let lost = (0..array.len()).find(|row| partial.is_null(*row) && array.is_valid(*row));
    Err(lost.map_or_else(|| error.into(), |row| no_such(array, row, to)))
}

#[cold]
fn no_such(array: &ArrayRef, row: usize, to: &DataType) -> Error {
    let of_text = |text: &str| match text.len() {
        0..=100 => format!("'{text}'"),
        _ => quoted(text).to_string(),
    };
    let value = match array.data_type() {
        D::Utf8View => of_text(array.as_string_view().value(row)),
        D::Utf8 => of_text(array.as_string::<i32>().value(row)),
        _ => array_value_to_string(array, row).unwrap_or_else(|_| "a value".to_owned()),
    };
    Error::usage(format_args!("{value} is no {}", TypeName(to)))
}

fn texts(texts: impl Iterator<Item = Option<String>>) -> ArrayRef {
    let mut builder = StringViewBuilder::new();
    texts.for_each(|text| builder.append_option(text));
    Arc::new(builder.finish())
}

/// Dates, times and timestamps as text; those with a zone in UTC.
fn texts_of_times(array: &ArrayRef) -> Result<ArrayRef> {
    let nanos = nanos(array)?.into_iter();
    let days = |nanos: i128| i64::try_from(nanos.div_euclid(datetime::DAY.into()));
    let of_day = |nanos: i128| i64::try_from(nanos.rem_euclid(datetime::DAY.into()));
    Ok(texts(nanos.map(|nanos| match array.data_type() {
        D::Date32 => Some(Date(days(nanos?).ok()?).to_string()),
        D::Timestamp(_, None) => Some(Timestamp(nanos?).to_string()),
        D::Timestamp(..) => Some(format!("{}+00", Timestamp(nanos?))),
        _ => Some(Time(of_day(nanos?).ok()?).to_string()),
    })))
}

fn times_of_texts(array: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    let read = |text: &str| -> Option<i128> {
        let text = text.trim();
        match to {
            D::Date32 => Some(i128::from(datetime::parse_date(text)?) * i128::from(datetime::DAY)),
            D::Timestamp(_, zone) => {
                let (nanos, in_utc) = datetime::parse_timestamp(text)?;
                (zone.is_some() || !in_utc).then_some(nanos)
            }
            _ => datetime::parse_time(text).map(i128::from),
        }
    };
    let mut nanos = Vec::with_capacity(array.len());
    for (row, text) in array.as_string_view().iter().enumerate() {
        nanos.push(match text.map(read) {
            Some(None) => return Err(no_such(array, row, to)),
            found => found.flatten(),
        });
    }
    of_nanos(nanos.into_iter(), to)?.map_err(|row| no_such(array, row, to))
}

/// A float as SQL writes it: `0.1`, `1e+16`, `1e-05`.
fn float_text(value: f64, scientific: &str, plain: &str) -> String {
    let Some((digits, exponent)) = scientific.split_once('e') else {
        return plain.to_ascii_lowercase();
    };
    match exponent.parse::<i32>() {
        Ok(-4..16) if value.fract() != 0.0 => plain.to_owned(),
        Ok(-4..16) => format!("{plain}.0"),
        Ok(exponent) => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{digits}e{sign}{:02}", exponent.unsigned_abs())
        }
        Err(_) => plain.to_owned(),
    }
}
