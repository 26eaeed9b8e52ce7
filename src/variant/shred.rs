//! Shredding: values move into columns of their own, as a [`VariantShape`] says.
//!
//! Spec: VariantShredding.md. A value goes into `typed_value` if it is equal there to what it is
//! (an integer of another width is, a float in a column of doubles is not), and else stays in
//! `value`. Fields of an object that have no column stay in `value` as a smaller object.
//!
//! Columns are filled lazily: a field that most rows lack takes its nulls when a row has it again.

use std::sync::Arc;

use arrow_array::types::{
    Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, Time64MicrosecondType, TimestampMicrosecondType, TimestampNanosecondType,
};
use arrow_array::{
    ArrayRef, ArrowPrimitiveType, BinaryArray, BooleanArray, FixedSizeBinaryArray, ListArray,
    PrimitiveArray, StringArray, StructArray,
};
use arrow_buffer::{BooleanBufferBuilder, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, Field, Fields, TimeUnit};

use super::array::VariantArray;
use super::encode;
use super::metadata::VariantMetadata;
use super::shape::{ShapeNode, VariantShape};
use super::unshred::{Unshredder, check_whole, end_of};
use super::value::{ObjectField, Variant};
use crate::error::{Error, LimitKind, Result};

impl VariantArray {
    /// Moves the values into columns of this shape: a struct of `metadata`, `value` and
    /// `typed_value`, with the nulls of this one. Values that are shredded in another way are put
    /// together first. The metadata are not copied.
    ///
    /// # Errors
    /// `Malformed(Variant)` if a value is cut short or contradicts itself.
    pub fn shred(&self, shape: &VariantShape) -> Result<StructArray> {
        if shape.is_any() {
            return self.unshred();
        }
        let mut column = NodeBuilder::new(&shape.0);
        let mut values = Unshredder::new(self);
        let mut scratch = Vec::new();
        let mut left_over = Vec::new();
        for row in 0..self.len {
            if self.is_null(row) {
                continue;
            }
            let stored = self.root.value.as_ref().filter(|_| !self.is_shredded());
            values.enter(row)?;
            let bytes = match stored.and_then(|column| column.get(row)) {
                Some(bytes) => bytes,
                None => {
                    scratch.clear();
                    values.append(row, &mut scratch)?;
                    &scratch
                }
            };
            column.push(row, values.metadata()?, bytes, &mut left_over)?;
        }
        let DataType::Struct(fields) = shape.data_type() else {
            unreachable!("a shape is a struct in Arrow")
        };
        let names = self.metadata_array()?;
        let metadata = Field::new("metadata", names.data_type().clone(), false);
        let fields: Fields =
            std::iter::once(Arc::new(metadata)).chain(fields.iter().skip(1).cloned()).collect();
        let mut columns = vec![names.clone()];
        columns.extend(column.finish(self.len)?);
        Ok(StructArray::try_new(fields, columns, self.nulls.clone())?)
    }
}

/// Which rows are null, kept only once one is.
#[derive(Debug)]
struct Nulls {
    bits: BooleanBufferBuilder,
    len: usize,
    any: bool,
}

impl Nulls {
    fn new() -> Self {
        Self { bits: BooleanBufferBuilder::new(0), len: 0, any: false }
    }

    /// Rows up to this one are null.
    fn pad(&mut self, len: usize) {
        if len > self.len {
            self.bits.append_n(len - self.len, false);
            self.len = len;
            self.any = true;
        }
    }

    fn valid(&mut self) {
        self.bits.append(true);
        self.len += 1;
    }

    fn finish(mut self) -> Option<NullBuffer> {
        self.any.then(|| NullBuffer::new(self.bits.finish()))
    }
}

/// Byte strings that are filled row by row.
#[derive(Debug)]
struct BytesBuilder {
    bytes: Vec<u8>,
    ends: Vec<i32>,
    nulls: Nulls,
}

impl BytesBuilder {
    fn new() -> Self {
        Self { bytes: Vec::new(), ends: vec![0], nulls: Nulls::new() }
    }

    fn pad(&mut self, len: usize) {
        if len > self.nulls.len {
            let end = self.ends.last().copied().unwrap_or_default();
            self.ends.resize(len + 1, end);
            self.nulls.pad(len);
        }
    }

    fn push(&mut self, row: usize, bytes: &[u8]) -> Result<()> {
        self.pad(row);
        self.bytes.extend_from_slice(bytes);
        self.end_row()
    }

    /// What was appended to `bytes` is the next row.
    fn end_row(&mut self) -> Result<()> {
        self.ends.push(end_of(&self.bytes)?);
        self.nulls.valid();
        Ok(())
    }

    fn parts(mut self, len: usize) -> (OffsetBuffer<i32>, Buffer, Option<NullBuffer>) {
        self.pad(len);
        let offsets = OffsetBuffer::new(ScalarBuffer::from(self.ends));
        (offsets, Buffer::from_vec(self.bytes), self.nulls.finish())
    }
}

/// `value` and `typed_value` beside each other.
#[derive(Debug)]
struct NodeBuilder {
    value: BytesBuilder,
    typed: Option<TypedBuilder>,
}

#[derive(Debug)]
enum TypedBuilder {
    Scalar(ScalarBuilder),
    List {
        ends: Vec<i32>,
        nulls: Nulls,
        element: Box<NodeBuilder>,
        elements: usize,
        shape: ShapeNode,
    },
    Object {
        nulls: Nulls,
        names: Vec<String>,
        fields: Vec<NodeBuilder>,
        shape: Vec<(String, ShapeNode)>,
    },
}

/// A column of one type.
#[derive(Debug)]
enum ScalarBuilder {
    Boolean(BooleanBufferBuilder, Nulls),
    Int8(PrimitiveColumnBuilder<Int8Type>),
    Int16(PrimitiveColumnBuilder<Int16Type>),
    Int32(PrimitiveColumnBuilder<Int32Type>),
    Int64(PrimitiveColumnBuilder<Int64Type>),
    Float(PrimitiveColumnBuilder<Float32Type>),
    Double(PrimitiveColumnBuilder<Float64Type>),
    Decimal(PrimitiveColumnBuilder<Decimal128Type>, u8, u8),
    Date(PrimitiveColumnBuilder<Date32Type>),
    Time(PrimitiveColumnBuilder<Time64MicrosecondType>),
    Micros(PrimitiveColumnBuilder<TimestampMicrosecondType>, bool),
    Nanos(PrimitiveColumnBuilder<TimestampNanosecondType>, bool),
    Binary(BytesBuilder),
    String(BytesBuilder),
    Uuid(Vec<u8>, Nulls),
}

#[derive(Debug)]
struct PrimitiveColumnBuilder<T: ArrowPrimitiveType> {
    values: Vec<T::Native>,
    nulls: Nulls,
}

impl<T: ArrowPrimitiveType> PrimitiveColumnBuilder<T> {
    fn new() -> Self {
        Self { values: Vec::new(), nulls: Nulls::new() }
    }

    #[inline]
    fn push(&mut self, row: usize, value: Option<T::Native>) -> bool {
        let Some(value) = value else { return false };
        self.pad(row);
        self.values.push(value);
        self.nulls.valid();
        true
    }

    fn pad(&mut self, len: usize) {
        if len > self.values.len() {
            self.values.resize(len, T::Native::default());
            self.nulls.pad(len);
        }
    }

    fn array(mut self, len: usize) -> PrimitiveArray<T> {
        self.pad(len);
        PrimitiveArray::new(self.values.into(), self.nulls.finish())
    }
}

impl NodeBuilder {
    fn new(shape: &ShapeNode) -> Self {
        let typed = match shape {
            ShapeNode::Any => None,
            ShapeNode::Scalar(data_type) => {
                Some(TypedBuilder::Scalar(ScalarBuilder::new(data_type)))
            }
            ShapeNode::List(element) => Some(TypedBuilder::List {
                ends: vec![0],
                nulls: Nulls::new(),
                element: Box::new(Self::new(element)),
                elements: 0,
                shape: (**element).clone(),
            }),
            ShapeNode::Object(fields) => Some(TypedBuilder::Object {
                nulls: Nulls::new(),
                names: fields.iter().map(|(name, _)| name.clone()).collect(),
                fields: fields.iter().map(|(_, shape)| Self::new(shape)).collect(),
                shape: fields.clone(),
            }),
        };
        Self { value: BytesBuilder::new(), typed }
    }

    /// Puts a value into row `row`, which is not filled yet.
    fn push(
        &mut self,
        row: usize,
        metadata: VariantMetadata<'_>,
        bytes: &[u8],
        left_over: &mut Vec<(u32, u32)>,
    ) -> Result<()> {
        let Some(typed) = &mut self.typed else { return self.value.push(row, bytes) };
        let (value, len) = Variant::read(metadata, bytes, 0)?;
        check_whole(bytes, len)?;
        match (typed, value) {
            (TypedBuilder::Scalar(scalars), value) => {
                if !scalars.push(row, &value)? {
                    self.value.push(row, bytes)?;
                }
                Ok(())
            }
            (TypedBuilder::List { ends, nulls, element, elements, .. }, Variant::List(list)) => {
                for part in list.parts() {
                    element.push(*elements, metadata, part?, left_over)?;
                    *elements += 1;
                }
                let end = i32::try_from(*elements).map_err(|_| too_many_elements())?;
                if row > nulls.len {
                    let before = ends.last().copied().unwrap_or_default();
                    ends.resize(row + 1, before);
                    nulls.pad(row);
                }
                ends.push(end);
                nulls.valid();
                Ok(())
            }
            (TypedBuilder::Object { nulls, names, fields, .. }, Variant::Object(object)) => {
                let mut writer = ResidualObject { value: &mut self.value, start: None, row };
                let first = left_over.len();
                let mut at = 0;
                for part in object.parts() {
                    let part = part?;
                    while names.get(at).is_some_and(|name| name.as_str() < part.name) {
                        at += 1;
                    }
                    if names.get(at).is_some_and(|name| name == part.name) {
                        fields[at].push(row, metadata, part.bytes, left_over)?;
                        at += 1;
                    } else {
                        writer.push(part, left_over)?;
                    }
                }
                writer.finish(&left_over[first..])?;
                left_over.truncate(first);
                nulls.pad(row);
                nulls.valid();
                Ok(())
            }
            _ => self.value.push(row, bytes),
        }
    }

    /// The arrays of `value` and `typed_value`.
    fn finish(self, len: usize) -> Result<Vec<ArrayRef>> {
        let (offsets, bytes, nulls) = self.value.parts(len);
        let value: ArrayRef = Arc::new(BinaryArray::try_new(offsets, bytes, nulls)?);
        let mut columns = vec![value];
        if let Some(typed) = self.typed {
            columns.push(typed.finish(len)?);
        }
        Ok(columns)
    }
}

/// The fields of an object that have no column, on their way into `value`.
struct ResidualObject<'a> {
    value: &'a mut BytesBuilder,
    start: Option<usize>,
    row: usize,
}

impl ResidualObject<'_> {
    fn push(&mut self, part: ObjectField<'_>, fields: &mut Vec<(u32, u32)>) -> Result<()> {
        let start = match self.start {
            Some(start) => start,
            None => {
                self.value.pad(self.row);
                *self.start.insert(self.value.bytes.len())
            }
        };
        fields.push((part.id, encode::offset(&self.value.bytes, start)?));
        self.value.bytes.extend_from_slice(part.bytes);
        Ok(())
    }

    fn finish(self, fields: &[(u32, u32)]) -> Result<()> {
        let Some(start) = self.start else { return Ok(()) };
        encode::object(&mut self.value.bytes, start, fields)?;
        self.value.end_row()
    }
}

impl TypedBuilder {
    fn finish(self, len: usize) -> Result<ArrayRef> {
        Ok(match self {
            Self::Scalar(scalars) => scalars.finish(len)?,
            Self::List { mut ends, mut nulls, element, elements, shape } => {
                let end = ends.last().copied().unwrap_or_default();
                ends.resize(len + 1, end);
                nulls.pad(len);
                let values = group(&shape, element.finish(elements)?, elements)?;
                let field = Arc::new(Field::new("element", shape.group(), false));
                let offsets = OffsetBuffer::new(ScalarBuffer::from(ends));
                Arc::new(ListArray::try_new(field, offsets, Arc::new(values), nulls.finish())?)
            }
            Self::Object { mut nulls, fields, shape, .. } => {
                nulls.pad(len);
                let mut columns: Vec<ArrayRef> = Vec::with_capacity(fields.len());
                let mut members = Vec::with_capacity(fields.len());
                for (pair, (name, shape)) in fields.into_iter().zip(&shape) {
                    columns.push(Arc::new(group(shape, pair.finish(len)?, len)?));
                    members.push(Arc::new(Field::new(name.as_str(), shape.group(), false)));
                }
                let fields: Fields = members.into();
                Arc::new(StructArray::try_new_with_length(fields, columns, nulls.finish(), len)?)
            }
        })
    }
}

/// A field or element of a shape, of its columns.
fn group(shape: &ShapeNode, columns: Vec<ArrayRef>, len: usize) -> Result<StructArray> {
    let DataType::Struct(fields) = shape.group() else {
        unreachable!("a pair is a struct in Arrow")
    };
    Ok(StructArray::try_new_with_length(fields, columns, None, len)?)
}

#[cold]
fn too_many_elements() -> Error {
    Error::limit(
        LimitKind::ArrayLength,
        "the shredded lists of a batch have more than 2^31 elements: write smaller batches",
    )
}

impl ScalarBuilder {
    fn new(data_type: &DataType) -> Self {
        match data_type {
            DataType::Boolean => Self::Boolean(BooleanBufferBuilder::new(0), Nulls::new()),
            DataType::Int8 => Self::Int8(PrimitiveColumnBuilder::new()),
            DataType::Int16 => Self::Int16(PrimitiveColumnBuilder::new()),
            DataType::Int32 => Self::Int32(PrimitiveColumnBuilder::new()),
            DataType::Int64 => Self::Int64(PrimitiveColumnBuilder::new()),
            DataType::Float32 => Self::Float(PrimitiveColumnBuilder::new()),
            DataType::Float64 => Self::Double(PrimitiveColumnBuilder::new()),
            DataType::Decimal128(precision, scale) => {
                Self::Decimal(PrimitiveColumnBuilder::new(), *precision, scale.unsigned_abs())
            }
            DataType::Date32 => Self::Date(PrimitiveColumnBuilder::new()),
            DataType::Time64(_) => Self::Time(PrimitiveColumnBuilder::new()),
            DataType::Timestamp(TimeUnit::Nanosecond, zone) => {
                Self::Nanos(PrimitiveColumnBuilder::new(), zone.is_some())
            }
            DataType::Timestamp(_, zone) => {
                Self::Micros(PrimitiveColumnBuilder::new(), zone.is_some())
            }
            DataType::Binary => Self::Binary(BytesBuilder::new()),
            DataType::Utf8 => Self::String(BytesBuilder::new()),
            DataType::FixedSizeBinary(_) => Self::Uuid(Vec::new(), Nulls::new()),
            other => unreachable!("shapes refuse {other}"),
        }
    }

    /// Takes a value that is equal in this column to what it is; false if it is not.
    fn push(&mut self, row: usize, value: &Variant<'_>) -> Result<bool> {
        let integer = match *value {
            Variant::Int8(v) => Some(i64::from(v)),
            Variant::Int16(v) => Some(i64::from(v)),
            Variant::Int32(v) => Some(i64::from(v)),
            Variant::Int64(v) => Some(v),
            _ => None,
        };
        Ok(match self {
            Self::Boolean(bits, nulls) => {
                let Variant::Boolean(v) = *value else { return Ok(false) };
                bits.append_n(row - bits.len(), false);
                nulls.pad(row);
                bits.append(v);
                nulls.valid();
                true
            }
            Self::Int8(column) => column.push(row, integer.and_then(|v| v.try_into().ok())),
            Self::Int16(column) => column.push(row, integer.and_then(|v| v.try_into().ok())),
            Self::Int32(column) => column.push(row, integer.and_then(|v| v.try_into().ok())),
            Self::Int64(column) => column.push(row, integer),
            Self::Float(column) => {
                column.push(row, if let Variant::Float(v) = *value { Some(v) } else { None })
            }
            Self::Double(column) => {
                column.push(row, if let Variant::Double(v) = *value { Some(v) } else { None })
            }
            Self::Decimal(column, precision, scale) => {
                let (digits, from) = match (*value, integer) {
                    (Variant::Decimal(digits, scale), _) => (digits, scale),
                    (_, Some(v)) => (v.into(), 0),
                    _ => return Ok(false),
                };
                column.push(row, rescale(digits, from, *precision, *scale))
            }
            Self::Date(column) => {
                column.push(row, if let Variant::Date(v) = *value { Some(v) } else { None })
            }
            Self::Time(column) => {
                column.push(row, if let Variant::TimeMicros(v) = *value { Some(v) } else { None })
            }
            Self::Micros(column, is_utc) => column.push(row, micros(value, *is_utc)),
            Self::Nanos(column, is_utc) => column.push(row, nanos(value, *is_utc)),
            Self::Binary(column) => match *value {
                Variant::Binary(bytes) => column.push(row, bytes).map(|()| true)?,
                _ => false,
            },
            Self::String(column) => match *value {
                Variant::String(text) => column.push(row, text.as_bytes()).map(|()| true)?,
                _ => false,
            },
            Self::Uuid(bytes, nulls) => {
                let Variant::Uuid(uuid) = *value else { return Ok(false) };
                bytes.resize(row * 16, 0);
                nulls.pad(row);
                bytes.extend_from_slice(&uuid);
                nulls.valid();
                true
            }
        })
    }

    fn finish(self, len: usize) -> Result<ArrayRef> {
        Ok(match self {
            Self::Boolean(mut bits, mut nulls) => {
                bits.append_n(len - bits.len(), false);
                nulls.pad(len);
                Arc::new(BooleanArray::new(bits.finish(), nulls.finish()))
            }
            Self::Int8(column) => Arc::new(column.array(len)),
            Self::Int16(column) => Arc::new(column.array(len)),
            Self::Int32(column) => Arc::new(column.array(len)),
            Self::Int64(column) => Arc::new(column.array(len)),
            Self::Float(column) => Arc::new(column.array(len)),
            Self::Double(column) => Arc::new(column.array(len)),
            Self::Decimal(column, precision, scale) => {
                let scale = i8::try_from(scale).unwrap_or_default();
                Arc::new(column.array(len).with_precision_and_scale(precision, scale)?)
            }
            Self::Date(column) => Arc::new(column.array(len)),
            Self::Time(column) => Arc::new(column.array(len)),
            Self::Micros(column, is_utc) => {
                Arc::new(column.array(len).with_timezone_opt(is_utc.then_some("UTC")))
            }
            Self::Nanos(column, is_utc) => {
                Arc::new(column.array(len).with_timezone_opt(is_utc.then_some("UTC")))
            }
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
                nulls.pad(len);
                let values = Buffer::from_vec(bytes);
                Arc::new(FixedSizeBinaryArray::try_new(16, values, nulls.finish())?)
            }
        })
    }
}

/// The digits of a decimal at another scale, if they are as many as the precision allows, and
/// nothing is lost.
pub(super) fn rescale(digits: i128, from: u8, precision: u8, to: u8) -> Option<i128> {
    let digits = if from <= to {
        digits.checked_mul(10i128.checked_pow(u32::from(to - from))?)?
    } else {
        let factor = 10i128.checked_pow(u32::from(from - to))?;
        (digits % factor == 0).then_some(digits / factor)?
    };
    // 10^38 fits, and precisions are at most 38.
    (digits.unsigned_abs() < 10u128.pow(u32::from(precision))).then_some(digits)
}

/// Microseconds, if the value is a timestamp of the same kind that has them exactly.
pub(super) fn micros(value: &Variant<'_>, is_utc: bool) -> Option<i64> {
    let nanos = match *value {
        Variant::TimestampMicros(v) if is_utc => return Some(v),
        Variant::TimestampNtzMicros(v) if !is_utc => return Some(v),
        Variant::TimestampNanos(v) if is_utc => v,
        Variant::TimestampNtzNanos(v) if !is_utc => v,
        _ => return None,
    };
    (nanos % 1_000 == 0).then_some(nanos / 1_000)
}

/// The same for nanoseconds.
pub(super) fn nanos(value: &Variant<'_>, is_utc: bool) -> Option<i64> {
    match *value {
        Variant::TimestampNanos(v) if is_utc => Some(v),
        Variant::TimestampNtzNanos(v) if !is_utc => Some(v),
        Variant::TimestampMicros(v) if is_utc => v.checked_mul(1_000),
        Variant::TimestampNtzMicros(v) if !is_utc => v.checked_mul(1_000),
        _ => None,
    }
}
