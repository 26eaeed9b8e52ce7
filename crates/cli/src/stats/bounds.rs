//! Bounds of statistics as values of their types.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Float16Type;
use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, Decimal256Array,
    FixedSizeBinaryArray, Float32Array, Float64Array, Int32Array, Int64Array, PrimitiveArray,
    StringArray, Time32MillisecondArray, Time64MicrosecondArray, Time64NanosecondArray,
    TimestampMicrosecondArray, TimestampMillisecondArray, TimestampNanosecondArray, UInt32Array,
    UInt64Array,
};
use arrow_ord::ord::make_comparator;
use arrow_schema::extension::Uuid;
use arrow_schema::{DataType, Field};
use marquetry::format::{LogicalType, Statistics, TimeUnit};
use marquetry::schema::{Leaf, Physical};
use serde_json::Value;

use crate::args::{BinaryForm, DecimalForm, ValueForms};
use crate::cells::{Forms, ValuesOf, text_of};

/// A bound, as an array of one value.
#[derive(Clone)]
pub(super) struct Bound {
    value: ArrayRef,
    field: Field,
    /// Whether it is a value of the column, where the file says it.
    pub(super) exact: Option<bool>,
}

/// The least and the greatest value, as the statistics of a column chunk have them.
pub(super) fn of_chunk(leaf: &Leaf, statistics: &Statistics) -> (Option<Bound>, Option<Bound>) {
    // Bounds of an annotation that was passed over mean nothing; the old ones only where the order
    // is signed.
    let (min, max) = if !leaf.ordered {
        (None, None)
    } else if statistics.min_value.is_some() || statistics.max_value.is_some() {
        (statistics.min_value.as_deref(), statistics.max_value.as_deref())
    } else if leaf.physical.byte_width().is_some()
        && !matches!(leaf.physical, Physical::FixedLenByteArray(_))
    {
        (statistics.min.as_deref(), statistics.max.as_deref())
    } else {
        (None, None)
    };
    let bound = |bytes: Option<&[u8]>, exact| Some(Bound { exact, ..Bound::new(leaf, bytes?) });
    (bound(min, statistics.is_min_value_exact), bound(max, statistics.is_max_value_exact))
}

impl Bound {
    /// The bound that these bytes are; as bytes where they are no value of the type.
    pub(super) fn new(leaf: &Leaf, bytes: &[u8]) -> Self {
        let value = typed(leaf, bytes);
        let value =
            value.unwrap_or_else(|| Arc::new(BinaryArray::from_iter_values([bytes])) as ArrayRef);
        let mut field = Field::new("", value.data_type().clone(), true);
        if *field.data_type() == DataType::FixedSizeBinary(16) {
            field = field.with_extension_type(Uuid);
        }
        Self { value, field, exact: None }
    }

    pub(super) fn text(&self) -> String {
        let forms = self.forms();
        let values = ValuesOf::new(&forms).column(&self.value, &self.field);
        values.and_then(|values| values.text(0)).ok().flatten().unwrap_or_default()
    }

    pub(super) fn json(&self) -> Value {
        let (mut out, forms) = (Vec::new(), self.forms());
        let values = ValuesOf::new(&forms).column(&self.value, &self.field);
        match values.and_then(|values| values.json(0, &mut out)) {
            Ok(()) => serde_json::from_slice(&out).unwrap_or_default(),
            Err(_) => Value::Null,
        }
    }

    /// Bytes that are text are shown as it, and decimals keep their digits, which a number of
    /// serde_json does not.
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
    let int = match leaf.physical {
        Physical::Int32 => Some(i64::from(i32::from_le_bytes(bytes.try_into().ok()?))),
        Physical::Int64 => Some(i64::from_le_bytes(bytes.try_into().ok()?)),
        _ => None,
    };
    Some(match (&leaf.logical, leaf.physical) {
        (Some(LogicalType::Decimal(of)), _) => {
            return decimal(bytes, int, of.precision, of.scale);
        }
        (Some(LogicalType::Date), Physical::Int32) => {
            Arc::new(Date32Array::from(vec![i32::try_from(int?).ok()?]))
        }
        (Some(LogicalType::Timestamp(of)), Physical::Int64) => {
            let zone = of.is_adjusted_to_utc.then_some("UTC");
            match of.unit {
                TimeUnit::Millis => {
                    timestamp(TimestampMillisecondArray::from(vec![int?]).with_timezone_opt(zone))
                }
                TimeUnit::Micros => {
                    timestamp(TimestampMicrosecondArray::from(vec![int?]).with_timezone_opt(zone))
                }
                TimeUnit::Nanos => {
                    timestamp(TimestampNanosecondArray::from(vec![int?]).with_timezone_opt(zone))
                }
                _ => Arc::new(Int64Array::from(vec![int?])),
            }
        }
        (Some(LogicalType::Time(of)), _) => match of.unit {
            TimeUnit::Millis => {
                Arc::new(Time32MillisecondArray::from(vec![i32::try_from(int?).ok()?]))
            }
            TimeUnit::Micros => Arc::new(Time64MicrosecondArray::from(vec![int?])),
            TimeUnit::Nanos => Arc::new(Time64NanosecondArray::from(vec![int?])),
            _ => Arc::new(Int64Array::from(vec![int?])),
        },
        (Some(LogicalType::Integer(of)), Physical::Int32) if !of.is_signed => {
            Arc::new(UInt32Array::from(vec![i32::try_from(int?).ok()?.cast_unsigned()]))
        }
        (Some(LogicalType::Integer(of)), Physical::Int64) if !of.is_signed => {
            Arc::new(UInt64Array::from(vec![int?.cast_unsigned()]))
        }
        (_, Physical::Int32) => Arc::new(Int32Array::from(vec![i32::try_from(int?).ok()?])),
        (_, Physical::Int64) => Arc::new(Int64Array::from(vec![int?])),
        (_, Physical::Boolean) => Arc::new(BooleanArray::from(vec![*bytes.first()? != 0])),
        (_, Physical::Float) => {
            Arc::new(Float32Array::from(vec![f32::from_le_bytes(bytes.try_into().ok()?)]))
        }
        (_, Physical::Double) => {
            Arc::new(Float64Array::from(vec![f64::from_le_bytes(bytes.try_into().ok()?)]))
        }
        (Some(LogicalType::Float16), _) => {
            let value = half::f16::from_le_bytes(bytes.try_into().ok()?);
            Arc::new(PrimitiveArray::<Float16Type>::from_iter_values([value]))
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

fn timestamp(array: impl Array + 'static) -> ArrayRef {
    Arc::new(array)
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
