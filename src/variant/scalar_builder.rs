//! Builds columns of one type from the scalars of VARIANT values.
//!
//! Used where values are shredded, which takes only values that are equal in the column, and where
//! parts of values are extracted, which converts numbers. Rows that are skipped are null.

use std::sync::Arc;

use arrow_array::types::{
    Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, Time64MicrosecondType, TimestampMicrosecondType, TimestampNanosecondType, UInt8Type,
    UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{
    ArrayRef, ArrowPrimitiveType, BinaryArray, BooleanArray, FixedSizeBinaryArray, PrimitiveArray,
    StringArray,
};
use arrow_buffer::{
    BooleanBufferBuilder, Buffer, NullBuffer, NullBufferBuilder, OffsetBuffer, ScalarBuffer,
};
use arrow_schema::{DataType, TimeUnit};

use super::convert::{double, float, integer, micros, nanos, rescale};
use super::shape::VariantShape;
use super::unshred::end_of;
use super::value::Variant;
use crate::error::{Error, Result};
use crate::limits::Growth;

/// A column of one type, whose rows are filled in ascending order. The bytes of byte strings are
/// counted here, those of slots where the column is made.
#[derive(Debug)]
pub(super) enum ScalarBuilder {
    Boolean(BooleanBufferBuilder, NullBufferBuilder),
    Int8(PrimitiveColumnBuilder<Int8Type>),
    Int16(PrimitiveColumnBuilder<Int16Type>),
    Int32(PrimitiveColumnBuilder<Int32Type>),
    Int64(PrimitiveColumnBuilder<Int64Type>),
    UInt8(PrimitiveColumnBuilder<UInt8Type>),
    UInt16(PrimitiveColumnBuilder<UInt16Type>),
    UInt32(PrimitiveColumnBuilder<UInt32Type>),
    UInt64(PrimitiveColumnBuilder<UInt64Type>),
    Float(PrimitiveColumnBuilder<Float32Type>),
    Double(PrimitiveColumnBuilder<Float64Type>),
    /// With precision and scale.
    Decimal(PrimitiveColumnBuilder<Decimal128Type>, u8, u8),
    Date(PrimitiveColumnBuilder<Date32Type>),
    Time(PrimitiveColumnBuilder<Time64MicrosecondType>),
    /// With whether it is adjusted to UTC.
    Micros(PrimitiveColumnBuilder<TimestampMicrosecondType>, bool),
    Nanos(PrimitiveColumnBuilder<TimestampNanosecondType>, bool),
    Binary(BytesBuilder),
    String(BytesBuilder),
    Uuid(Vec<u8>, NullBufferBuilder),
}

#[derive(Debug)]
pub(super) struct PrimitiveColumnBuilder<T: ArrowPrimitiveType> {
    values: Vec<T::Native>,
    nulls: NullBufferBuilder,
}

impl<T: ArrowPrimitiveType> PrimitiveColumnBuilder<T> {
    fn with_capacity(rows: usize) -> Self {
        Self { values: Vec::with_capacity(rows), nulls: NullBufferBuilder::new(rows) }
    }

    #[inline]
    fn push(&mut self, row: usize, value: Option<T::Native>) -> bool {
        let Some(value) = value else { return false };
        self.pad(row);
        self.values.push(value);
        self.nulls.append_non_null();
        true
    }

    fn pad(&mut self, len: usize) {
        if len > self.values.len() {
            self.values.resize(len, T::Native::default());
            pad(&mut self.nulls, len);
        }
    }

    fn finish(mut self, len: usize, data_type: &DataType) -> ArrayRef {
        self.pad(len);
        let array = PrimitiveArray::<T>::new(self.values.into(), self.nulls.finish());
        Arc::new(array.with_data_type(data_type.clone()))
    }
}

impl ScalarBuilder {
    /// An empty column of a type; `None` if it is neither a type of VARIANT's scalars nor an
    /// unsigned integer.
    pub(super) fn new(data_type: &DataType, capacity: usize) -> Option<Self> {
        macro_rules! primitive {
            ($member:ident $(, $more:expr)*) => {
                Self::$member(PrimitiveColumnBuilder::with_capacity(capacity) $(, $more)*)
            };
        }
        let no_nulls = || NullBufferBuilder::new(capacity);
        Some(match data_type {
            DataType::Boolean => Self::Boolean(BooleanBufferBuilder::new(capacity), no_nulls()),
            DataType::Int8 => primitive!(Int8),
            DataType::Int16 => primitive!(Int16),
            DataType::Int32 => primitive!(Int32),
            DataType::Int64 => primitive!(Int64),
            DataType::UInt8 => primitive!(UInt8),
            DataType::UInt16 => primitive!(UInt16),
            DataType::UInt32 => primitive!(UInt32),
            DataType::UInt64 => primitive!(UInt64),
            DataType::Float32 => primitive!(Float),
            DataType::Float64 => primitive!(Double),
            DataType::Decimal128(precision, scale)
                if VariantShape::scalar(data_type.clone()).is_ok() =>
            {
                primitive!(Decimal, *precision, scale.unsigned_abs())
            }
            DataType::Date32 => primitive!(Date),
            DataType::Time64(TimeUnit::Microsecond) => primitive!(Time),
            DataType::Timestamp(TimeUnit::Microsecond, zone) => primitive!(Micros, zone.is_some()),
            DataType::Timestamp(TimeUnit::Nanosecond, zone) => primitive!(Nanos, zone.is_some()),
            DataType::Binary => Self::Binary(BytesBuilder::new()),
            DataType::Utf8 => Self::String(BytesBuilder::new()),
            DataType::FixedSizeBinary(16) => Self::Uuid(Vec::new(), no_nulls()),
            _ => return None,
        })
    }

    /// Sets a row to a value that is equal in this column to what it is; false, and nothing is set,
    /// if it is not.
    pub(super) fn push(
        &mut self,
        row: usize,
        value: &Variant<'_>,
        growth: &Growth,
    ) -> Result<bool> {
        let integer = match *value {
            Variant::Int8(v) => Some(i64::from(v)),
            Variant::Int16(v) => Some(i64::from(v)),
            Variant::Int32(v) => Some(i64::from(v)),
            Variant::Int64(v) => Some(v),
            _ => None,
        };
        macro_rules! of_kind {
            ($kind:ident) => {
                if let Variant::$kind(v) = *value { Some(v) } else { None }
            };
        }
        Ok(match self {
            Self::Boolean(bits, nulls) => {
                let Variant::Boolean(v) = *value else { return Ok(false) };
                bits.append_n(row - bits.len(), false);
                pad(nulls, row);
                bits.append(v);
                nulls.append_non_null();
                true
            }
            Self::Int8(column) => column.push(row, integer.and_then(|v| v.try_into().ok())),
            Self::Int16(column) => column.push(row, integer.and_then(|v| v.try_into().ok())),
            Self::Int32(column) => column.push(row, integer.and_then(|v| v.try_into().ok())),
            Self::Int64(column) => column.push(row, integer),
            Self::UInt8(column) => column.push(row, integer.and_then(|v| v.try_into().ok())),
            Self::UInt16(column) => column.push(row, integer.and_then(|v| v.try_into().ok())),
            Self::UInt32(column) => column.push(row, integer.and_then(|v| v.try_into().ok())),
            Self::UInt64(column) => column.push(row, integer.and_then(|v| v.try_into().ok())),
            Self::Float(column) => column.push(row, of_kind!(Float)),
            Self::Double(column) => column.push(row, of_kind!(Double)),
            Self::Decimal(column, precision, scale) => {
                let number = value.exact_number();
                let digits = number.and_then(|(v, from)| rescale(v, from, *precision, *scale));
                column.push(row, digits)
            }
            Self::Date(column) => column.push(row, of_kind!(Date)),
            Self::Time(column) => column.push(row, of_kind!(TimeMicros)),
            Self::Micros(column, is_utc) => column.push(row, micros(value, *is_utc)),
            Self::Nanos(column, is_utc) => column.push(row, nanos(value, *is_utc)),
            Self::Binary(column) => match *value {
                Variant::Binary(bytes) => column.push(row, bytes, growth).map(|()| true)?,
                _ => false,
            },
            Self::String(column) => match *value {
                Variant::String(text) => {
                    column.push(row, text.as_bytes(), growth).map(|()| true)?
                }
                _ => false,
            },
            Self::Uuid(bytes, nulls) => {
                let Variant::Uuid(uuid) = *value else { return Ok(false) };
                bytes.resize(row * 16, 0);
                pad(nulls, row);
                bytes.extend_from_slice(&uuid);
                nulls.append_non_null();
                true
            }
        })
    }

    /// Like [`push`](Self::push), but integers also take floats that are whole numbers, and floats
    /// the nearest of any number.
    pub(super) fn push_converted(
        &mut self,
        row: usize,
        value: &Variant<'_>,
        growth: &Growth,
    ) -> Result<bool> {
        Ok(match self {
            Self::Int8(column) => column.push(row, integer(value)),
            Self::Int16(column) => column.push(row, integer(value)),
            Self::Int32(column) => column.push(row, integer(value)),
            Self::Int64(column) => column.push(row, integer(value)),
            Self::UInt8(column) => column.push(row, integer(value)),
            Self::UInt16(column) => column.push(row, integer(value)),
            Self::UInt32(column) => column.push(row, integer(value)),
            Self::UInt64(column) => column.push(row, integer(value)),
            Self::Float(column) => column.push(row, float(value)),
            Self::Double(column) => column.push(row, double(value)),
            _ => self.push(row, value, growth)?,
        })
    }

    /// The array of `len` rows; `data_type` is the type that the column was made with.
    pub(super) fn finish(self, len: usize, data_type: &DataType) -> Result<ArrayRef> {
        Ok(match self {
            Self::Boolean(mut bits, mut nulls) => {
                bits.append_n(len - bits.len(), false);
                pad(&mut nulls, len);
                Arc::new(BooleanArray::new(bits.finish(), nulls.finish()))
            }
            Self::Int8(column) => column.finish(len, data_type),
            Self::Int16(column) => column.finish(len, data_type),
            Self::Int32(column) => column.finish(len, data_type),
            Self::Int64(column) => column.finish(len, data_type),
            Self::UInt8(column) => column.finish(len, data_type),
            Self::UInt16(column) => column.finish(len, data_type),
            Self::UInt32(column) => column.finish(len, data_type),
            Self::UInt64(column) => column.finish(len, data_type),
            Self::Float(column) => column.finish(len, data_type),
            Self::Double(column) => column.finish(len, data_type),
            Self::Decimal(column, ..) => column.finish(len, data_type),
            Self::Date(column) => column.finish(len, data_type),
            Self::Time(column) => column.finish(len, data_type),
            Self::Micros(column, _) => column.finish(len, data_type),
            Self::Nanos(column, _) => column.finish(len, data_type),
            Self::Binary(column) => {
                let (offsets, bytes, nulls) = column.parts(len);
                Arc::new(BinaryArray::try_new(offsets, bytes, nulls)?)
            }
            Self::String(column) => {
                let (offsets, bytes, nulls) = column.parts(len);
                Arc::new(StringArray::try_new(offsets, bytes, nulls)?)
            }
            Self::Uuid(mut bytes, mut nulls) => {
                bytes.resize(len * 16, 0);
                pad(&mut nulls, len);
                let values = Buffer::from_vec(bytes);
                Arc::new(FixedSizeBinaryArray::try_new(16, values, nulls.finish())?)
            }
        })
    }
}

/// Byte strings that are filled row by row.
#[derive(Debug)]
pub(super) struct BytesBuilder {
    pub(super) bytes: Vec<u8>,
    ends: Vec<i32>,
    nulls: NullBufferBuilder,
}

impl BytesBuilder {
    pub(super) fn new() -> Self {
        Self { bytes: Vec::new(), ends: vec![0], nulls: NullBufferBuilder::new(0) }
    }

    pub(super) fn pad(&mut self, len: usize) {
        if len > self.nulls.len() {
            let end = self.ends.last().copied().unwrap_or_default();
            self.ends.resize(len + 1, end);
            pad(&mut self.nulls, len);
        }
    }

    pub(super) fn push(&mut self, row: usize, bytes: &[u8], growth: &Growth) -> Result<()> {
        self.pad(row);
        growth.room(&mut self.bytes, bytes.len())?;
        self.bytes.extend_from_slice(bytes);
        self.end_row()
    }

    /// Ends the row of the value that was appended to `bytes`.
    pub(super) fn end_row(&mut self) -> Result<()> {
        self.ends.push(end_of(&self.bytes)?);
        self.nulls.append_non_null();
        Ok(())
    }

    pub(super) fn parts(mut self, len: usize) -> (OffsetBuffer<i32>, Buffer, Option<NullBuffer>) {
        self.pad(len);
        let offsets = OffsetBuffer::new(ScalarBuffer::from(self.ends));
        (offsets, Buffer::from_vec(self.bytes), self.nulls.finish())
    }
}

/// Makes the rows null that are missing up to `len`.
pub(super) fn pad(nulls: &mut NullBufferBuilder, len: usize) {
    if len > nulls.len() {
        nulls.append_n_nulls(len - nulls.len());
    }
}

#[cold]
pub(super) fn no_type_of_a_part(data_type: &DataType) -> Error {
    Error::usage(format_args!(
        "a part of a VARIANT cannot be extracted as {data_type}: ask for a boolean, an integer, a \
         float, Decimal128, Date32, Time64(us), Timestamp(us or ns), Binary, Utf8, \
         FixedSizeBinary(16), a VARIANT, or a List, LargeList or Struct of these"
    ))
}
