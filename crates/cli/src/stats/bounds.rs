//! Shows bounds of statistics as values of their types.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{
    Array, ArrayRef, ArrowPrimitiveType, BinaryArray, BooleanArray, Decimal128Array,
    Decimal256Array, FixedSizeBinaryArray, PrimitiveArray, StringArray, types,
};
use arrow_cast::cast;
use arrow_ord::ord::make_comparator;
use arrow_schema::extension::Uuid;
use arrow_schema::{ArrowError, DataType, Field};
use marquetry::format::{LogicalType, Statistics, TimeUnit};
use marquetry::read::Footer;
use marquetry::schema::{Leaf, Physical};
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use crate::args::{BinaryForm, DecimalForm, ValueForms};
use crate::cells::{Forms, ValuesOf, text_of};
use crate::json;

/// A bound, as an array of one value.
#[derive(Clone)]
pub(crate) struct Bound {
    value: ArrayRef,
    field: Field,
    /// Whether it is a value of the column, if the file states it.
    pub(super) exact: Option<bool>,
}

impl Serialize for Bound {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.json().ok().serialize(to)
    }
}

/// The least and the greatest value that the statistics of a column chunk state, if filters go by
/// them: others are in an order that is undefined or unknown.
pub(super) fn of_chunk(
    footer: &Footer,
    leaf: &Leaf,
    statistics: &Statistics,
) -> (Option<Bound>, Option<Bound>) {
    let trusted = footer.trusted_bounds(leaf, statistics);
    let bound = |bytes: Option<Vec<u8>>, exact| Some(Bound { exact, ..Bound::new(leaf, &bytes?) });
    (
        bound(trusted.min_value, trusted.is_min_value_exact),
        bound(trusted.max_value, trusted.is_max_value_exact),
    )
}

impl Bound {
    /// The bound that these bytes are; as bytes where they are no value of the type.
    pub(crate) fn new(leaf: &Leaf, bytes: &[u8]) -> Self {
        let value = typed(leaf, bytes);
        let value =
            value.unwrap_or_else(|| Arc::new(BinaryArray::from_iter_values([bytes])) as ArrayRef);
        let mut field = Field::new("", value.data_type().clone(), true);
        if *field.data_type() == DataType::FixedSizeBinary(16) {
            field = field.with_extension_type(Uuid);
        }
        Self { value, field, exact: None }
    }

    /// The text for a table.
    pub(crate) fn text(&self) -> String {
        let text = self.json().ok().as_deref().and_then(json::cell).map(Cow::into_owned);
        text.unwrap_or_default()
    }

    fn json(&self) -> Result<Box<RawValue>, ArrowError> {
        let forms = self.forms();
        ValuesOf::new(&forms).column(&self.value, &self.field)?.raw_json(0)
    }

    /// Memory that it takes, about.
    pub(super) fn memory_size(&self) -> usize {
        self.value.get_array_memory_size()
    }

    /// Bytes that are text are shown as it. Decimals are text, so that no reader drops digits.
    fn forms(&self) -> Forms {
        let bytes = self.value.as_binary_opt::<i32>().map(|bytes| bytes.value(0));
        let is_text = bytes.is_some_and(|bytes| text_of(bytes).is_some());
        let binary = is_text.then_some(BinaryForm::Text);
        Forms::new(ValueForms { decimals: Some(DecimalForm::Text), maps: None, binary })
    }

    /// The one of two bounds that is `wanted` of the other; none if they cannot be compared.
    pub(super) fn either(self, other: Self, wanted: Ordering) -> Option<Self> {
        if self.value.data_type() != other.value.data_type() {
            return None;
        }
        let compare = make_comparator(&self.value, &other.value, Default::default()).ok()?;
        Some(if compare(0, 0) == wanted { self } else { other })
    }
}

fn typed(leaf: &Leaf, bytes: &[u8]) -> Option<ArrayRef> {
    let int32 = || Some(i32::from_le_bytes(bytes.try_into().ok()?));
    let int64 = || Some(i64::from_le_bytes(bytes.try_into().ok()?));
    Some(match (&leaf.logical, leaf.physical) {
        (Some(LogicalType::Decimal(of)), physical) => {
            let int = match physical {
                Physical::Int32 => Some(i64::from(int32()?)),
                Physical::Int64 => Some(int64()?),
                _ => None,
            };
            return decimal(bytes, int, of.precision, of.scale);
        }
        (Some(LogicalType::Date), Physical::Int32) => one::<types::Date32Type>(int32()?),
        (Some(LogicalType::Timestamp(of)), Physical::Int64) => {
            let zone: Option<Arc<str>> = of.is_adjusted_to_utc.then(|| "UTC".into());
            let unit = match of.unit {
                TimeUnit::Millis => arrow_schema::TimeUnit::Millisecond,
                TimeUnit::Micros => arrow_schema::TimeUnit::Microsecond,
                TimeUnit::Nanos => arrow_schema::TimeUnit::Nanosecond,
                _ => return Some(one::<types::Int64Type>(int64()?)),
            };
            cast(&one::<types::Int64Type>(int64()?), &DataType::Timestamp(unit, zone)).ok()?
        }
        (Some(LogicalType::Time(of)), physical) => match (&of.unit, physical) {
            (TimeUnit::Millis, Physical::Int32) => one::<types::Time32MillisecondType>(int32()?),
            (TimeUnit::Micros, _) => one::<types::Time64MicrosecondType>(int64()?),
            (TimeUnit::Nanos, _) => one::<types::Time64NanosecondType>(int64()?),
            _ => one::<types::Int64Type>(int64()?),
        },
        (Some(LogicalType::Integer(of)), Physical::Int32) if !of.is_signed => {
            one::<types::UInt32Type>(int32()?.cast_unsigned())
        }
        (Some(LogicalType::Integer(of)), Physical::Int64) if !of.is_signed => {
            one::<types::UInt64Type>(int64()?.cast_unsigned())
        }
        (_, Physical::Int32) => one::<types::Int32Type>(int32()?),
        (_, Physical::Int64) => one::<types::Int64Type>(int64()?),
        (_, Physical::Boolean) => Arc::new(BooleanArray::from(vec![*bytes.first()? != 0])),
        (_, Physical::Float) => {
            one::<types::Float32Type>(f32::from_le_bytes(bytes.try_into().ok()?))
        }
        (_, Physical::Double) => {
            one::<types::Float64Type>(f64::from_le_bytes(bytes.try_into().ok()?))
        }
        (Some(LogicalType::Float16), _) => {
            one::<types::Float16Type>(half::f16::from_le_bytes(bytes.try_into().ok()?))
        }
        (Some(LogicalType::String | LogicalType::Enum | LogicalType::Json), _) => {
            Arc::new(StringArray::from(vec![std::str::from_utf8(bytes).ok()?]))
        }
        (Some(LogicalType::Uuid), _) if bytes.len() == 16 => {
            Arc::new(FixedSizeBinaryArray::try_from_iter([bytes].into_iter()).ok()?)
        }
        _ => return None,
    })
}

/// An array of one value.
fn one<T: ArrowPrimitiveType>(value: T::Native) -> ArrayRef {
    Arc::new(PrimitiveArray::<T>::from_iter_values([value]))
}

fn decimal(bytes: &[u8], int: Option<i64>, precision: i32, scale: i32) -> Option<ArrayRef> {
    let scale = i8::try_from(scale).ok()?;
    let precision = u8::try_from(precision).ok()?;
    if let Some(int) = int {
        let array = Decimal128Array::from(vec![i128::from(int)]);
        return Some(Arc::new(array.with_precision_and_scale(precision, scale).ok()?));
    }
    let fill = if bytes.first()? & 0x80 != 0 { 0xFF } else { 0 };
    let mut wide = [fill; 32];
    wide.get_mut(32usize.checked_sub(bytes.len())?..)?.copy_from_slice(bytes);
    let value = arrow_buffer::i256::from_be_bytes(wide);
    match value.to_i128() {
        Some(value) if precision <= 38 => {
            let array = Decimal128Array::from(vec![value]);
            Some(Arc::new(array.with_precision_and_scale(precision, scale).ok()?))
        }
        _ => {
            let array = Decimal256Array::from(vec![value]);
            Some(Arc::new(array.with_precision_and_scale(precision, scale).ok()?))
        }
    }
}
