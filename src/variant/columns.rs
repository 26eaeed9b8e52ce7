//! The columns that a VARIANT consists of in Arrow: `value` and `typed_value`, and below that the
//! fields and elements that are shredded.
//!
//! Spec: VariantShredding.md. A [`ShreddedNode`] is one pair of `value` and `typed_value`; the
//! fields of a shredded object and the elements of a shredded list are such pairs again, and share
//! the metadata of the row.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal32Type, Decimal64Type, Decimal128Type, Float32Type, Float64Type, Int8Type,
    Int16Type, Int32Type, Int64Type, Time64MicrosecondType, TimestampMicrosecondType,
    TimestampNanosecondType,
};
use arrow_array::{
    Array, ArrayRef, BinaryArray, BinaryViewArray, BooleanArray, FixedSizeBinaryArray,
    LargeBinaryArray, LargeStringArray, PrimitiveArray, StringArray, StringViewArray, StructArray,
};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{DataType, Field, TimeUnit};
use arrow_select::nullif::nullif;

use super::malformed::malformed;
use super::value::Variant;
use crate::bytes::saturated;
use crate::error::{Error, LimitKind, Result, quoted};
use crate::limits::Growth;
use crate::rows::value_bytes;

/// A pair of `value` and `typed_value`.
#[derive(Debug, Clone)]
pub(super) struct ShreddedNode {
    pub(super) value: Option<BytesColumn>,
    pub(super) typed: Option<TypedValue>,
    /// Number of the fields of shredded objects, here and below.
    pub(super) names: usize,
}

/// A `typed_value` column.
#[derive(Debug, Clone)]
pub(super) struct TypedValue {
    pub(super) nulls: Option<NullBuffer>,
    pub(super) array: ArrayRef,
    pub(super) kind: TypedKind,
}

#[derive(Debug, Clone)]
pub(super) enum TypedKind {
    Scalar(ScalarArray),
    List(Ranges, Box<ShreddedNode>),
    /// The fields, in the order of their names.
    Object(Vec<(String, ShreddedNode)>),
}

/// Where the elements of each list lie.
#[derive(Debug, Clone)]
pub(super) enum Ranges {
    Offsets(OffsetBuffer<i32>),
    LargeOffsets(OffsetBuffer<i64>),
    Fixed(usize),
}

/// A `typed_value` of one of the shredded types of VariantShredding.md.
#[derive(Debug, Clone)]
pub(super) enum ScalarArray {
    Boolean(BooleanArray),
    Int8(PrimitiveArray<Int8Type>),
    Int16(PrimitiveArray<Int16Type>),
    Int32(PrimitiveArray<Int32Type>),
    Int64(PrimitiveArray<Int64Type>),
    Float(PrimitiveArray<Float32Type>),
    Double(PrimitiveArray<Float64Type>),
    Decimal32(PrimitiveArray<Decimal32Type>, u8),
    Decimal64(PrimitiveArray<Decimal64Type>, u8),
    Decimal128(PrimitiveArray<Decimal128Type>, u8),
    Date(PrimitiveArray<Date32Type>),
    Time(PrimitiveArray<Time64MicrosecondType>),
    /// With whether it is adjusted to UTC.
    Micros(PrimitiveArray<TimestampMicrosecondType>, bool),
    Nanos(PrimitiveArray<TimestampNanosecondType>, bool),
    Binary(BytesColumn),
    String(TextColumn),
    Uuid(FixedSizeBinaryArray),
}

/// A column of byte strings, in any of Arrow's layouts.
#[derive(Debug, Clone)]
pub(super) enum BytesColumn {
    Small(BinaryArray),
    Large(LargeBinaryArray),
    View(BinaryViewArray),
}

/// A column of strings, in any of Arrow's layouts.
#[derive(Debug, Clone)]
pub(super) enum TextColumn {
    Small(StringArray),
    Large(LargeStringArray),
    View(StringViewArray),
}

impl BytesColumn {
    pub(super) fn new(array: &ArrayRef) -> Option<Self> {
        Some(match array.data_type() {
            DataType::Binary => Self::Small(array.as_binary().clone()),
            DataType::LargeBinary => Self::Large(array.as_binary().clone()),
            DataType::BinaryView => Self::View(array.as_binary_view().clone()),
            _ => return None,
        })
    }

    /// The bytes of a row, unless they are null.
    #[inline]
    pub(super) fn get(&self, row: usize) -> Option<&[u8]> {
        match self {
            Self::Small(array) => array.is_valid(row).then(|| array.value(row)),
            Self::Large(array) => array.is_valid(row).then(|| array.value(row)),
            Self::View(array) => array.is_valid(row).then(|| array.value(row)),
        }
    }

    pub(super) fn null_count(&self) -> usize {
        match self {
            Self::Small(array) => array.null_count(),
            Self::Large(array) => array.null_count(),
            Self::View(array) => array.null_count(),
        }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Self::Small(array) => array.len(),
            Self::Large(array) => array.len(),
            Self::View(array) => array.len(),
        }
    }
}

impl TextColumn {
    #[inline]
    pub(super) fn value(&self, row: usize) -> &str {
        match self {
            Self::Small(array) => array.value(row),
            Self::Large(array) => array.value(row),
            Self::View(array) => array.value(row),
        }
    }
}

impl ScalarArray {
    /// The value of a row that is not null.
    #[inline]
    pub(super) fn value(&self, row: usize) -> Variant<'_> {
        match self {
            Self::Boolean(array) => Variant::Boolean(array.value(row)),
            Self::Int8(array) => Variant::Int8(array.value(row)),
            Self::Int16(array) => Variant::Int16(array.value(row)),
            Self::Int32(array) => Variant::Int32(array.value(row)),
            Self::Int64(array) => Variant::Int64(array.value(row)),
            Self::Float(array) => Variant::Float(array.value(row)),
            Self::Double(array) => Variant::Double(array.value(row)),
            Self::Decimal32(array, scale) => Variant::Decimal(array.value(row).into(), *scale),
            Self::Decimal64(array, scale) => Variant::Decimal(array.value(row).into(), *scale),
            Self::Decimal128(array, scale) => Variant::Decimal(array.value(row), *scale),
            Self::Date(array) => Variant::Date(array.value(row)),
            Self::Time(array) => Variant::TimeMicros(array.value(row)),
            Self::Micros(array, true) => Variant::TimestampMicros(array.value(row)),
            Self::Micros(array, false) => Variant::TimestampNtzMicros(array.value(row)),
            Self::Nanos(array, true) => Variant::TimestampNanos(array.value(row)),
            Self::Nanos(array, false) => Variant::TimestampNtzNanos(array.value(row)),
            // Rows that are not null have bytes.
            Self::Binary(column) => Variant::Binary(column.get(row).unwrap_or_default()),
            Self::String(column) => Variant::String(column.value(row)),
            Self::Uuid(array) => {
                let mut bytes = [0; 16];
                bytes.copy_from_slice(array.value(row));
                Variant::Uuid(bytes)
            }
        }
    }

    /// The scalars of a `typed_value`; `None` if its type is not in the table of shredded types.
    pub(super) fn new(array: &ArrayRef, field: &Field) -> Option<Self> {
        let scale = |scale: i8| u8::try_from(scale).ok().filter(|scale| *scale <= 38);
        Some(match array.data_type() {
            _ if field.extension_type_name().is_some_and(|name| name != "arrow.uuid") => {
                return None;
            }
            DataType::Boolean => Self::Boolean(array.as_boolean().clone()),
            DataType::Int8 => Self::Int8(array.as_primitive().clone()),
            DataType::Int16 => Self::Int16(array.as_primitive().clone()),
            DataType::Int32 => Self::Int32(array.as_primitive().clone()),
            DataType::Int64 => Self::Int64(array.as_primitive().clone()),
            DataType::Float32 => Self::Float(array.as_primitive().clone()),
            DataType::Float64 => Self::Double(array.as_primitive().clone()),
            DataType::Decimal32(_, s) => Self::Decimal32(array.as_primitive().clone(), scale(*s)?),
            DataType::Decimal64(_, s) => Self::Decimal64(array.as_primitive().clone(), scale(*s)?),
            DataType::Decimal128(_, s) => {
                Self::Decimal128(array.as_primitive().clone(), scale(*s)?)
            }
            DataType::Date32 => Self::Date(array.as_primitive().clone()),
            DataType::Time64(TimeUnit::Microsecond) => Self::Time(array.as_primitive().clone()),
            DataType::Timestamp(TimeUnit::Microsecond, zone) => {
                Self::Micros(array.as_primitive().clone(), zone.is_some())
            }
            DataType::Timestamp(TimeUnit::Nanosecond, zone) => {
                Self::Nanos(array.as_primitive().clone(), zone.is_some())
            }
            DataType::Binary | DataType::LargeBinary | DataType::BinaryView => {
                Self::Binary(BytesColumn::new(array)?)
            }
            DataType::Utf8 => Self::String(TextColumn::Small(array.as_string().clone())),
            DataType::LargeUtf8 => Self::String(TextColumn::Large(array.as_string().clone())),
            DataType::Utf8View => Self::String(TextColumn::View(array.as_string_view().clone())),
            DataType::FixedSizeBinary(16) if field.extension_type_name() == Some("arrow.uuid") => {
                Self::Uuid(array.as_fixed_size_binary().clone())
            }
            _ => return None,
        })
    }
}

impl Ranges {
    /// The elements of a row that is not null.
    #[inline]
    pub(super) fn elements(&self, row: usize) -> Range<usize> {
        match self {
            // Offsets of Arrow are not negative.
            Self::Offsets(offsets) => {
                offsets[row].unsigned_abs() as usize..offsets[row + 1].unsigned_abs() as usize
            }
            Self::LargeOffsets(offsets) => {
                let at = |i: usize| usize::try_from(offsets[i]).unwrap_or_default();
                at(row)..at(row + 1)
            }
            Self::Fixed(n) => row * n..(row + 1) * n,
        }
    }
}

impl ShreddedNode {
    /// The pair of columns of a group.
    pub(super) fn new(group: &StructArray, depth: usize, growth: &Growth) -> Result<Self> {
        if depth > super::MAX_DEPTH {
            return Err(Error::limit(
                LimitKind::Nesting,
                format_args!(
                    "a VARIANT column is shredded deeper than {} levels",
                    super::MAX_DEPTH
                ),
            ));
        }
        let mut node = Self { value: None, typed: None, names: 0 };
        for (field, array) in group.fields().iter().zip(group.columns()) {
            match field.name().as_str() {
                "value" => {
                    let array = flat(array, growth)?;
                    node.value = Some(BytesColumn::new(&array).ok_or_else(|| {
                        malformed(format_args!(
                            "`value` of a VARIANT must be binary, found {}",
                            field.data_type()
                        ))
                    })?);
                }
                "typed_value" => {
                    let typed = TypedValue::new(array, field, depth, growth)?;
                    node.names = typed.names();
                    node.typed = Some(typed);
                }
                _ => {}
            }
        }
        Ok(node)
    }
}

impl TypedValue {
    fn new(array: &ArrayRef, field: &Field, depth: usize, growth: &Growth) -> Result<Self> {
        let pair = |array: &ArrayRef, field: &Field| Self::pair(array, field, depth, growth);
        let array = flat(array, growth)?;
        let kind = match array.data_type() {
            DataType::Struct(fields) => {
                let group = array.as_struct();
                let mut members = Vec::with_capacity(fields.len());
                for (field, member) in fields.iter().zip(group.columns()) {
                    members.push((field.name().clone(), pair(member, field)?));
                }
                members.sort_by(|a, b| a.0.cmp(&b.0));
                if let Some(pair) = members.windows(2).find(|pair| pair[0].0 == pair[1].0) {
                    return Err(malformed(format_args!(
                        "a shredded object has two fields of the name {}",
                        quoted(&pair[0].0)
                    )));
                }
                TypedKind::Object(members)
            }
            DataType::List(element) => {
                let list = array.as_list::<i32>();
                let elements = pair(list.values(), element)?;
                TypedKind::List(Ranges::Offsets(list.offsets().clone()), Box::new(elements))
            }
            DataType::LargeList(element) => {
                let list = array.as_list::<i64>();
                let ranges = Ranges::LargeOffsets(list.offsets().clone());
                TypedKind::List(ranges, Box::new(pair(list.values(), element)?))
            }
            DataType::FixedSizeList(element, size) => {
                let list = array.as_fixed_size_list();
                let size = usize::try_from(*size).unwrap_or_default();
                TypedKind::List(Ranges::Fixed(size), Box::new(pair(list.values(), element)?))
            }
            _ => TypedKind::Scalar(ScalarArray::new(&array, field).ok_or_else(|| {
                malformed(format_args!(
                    "a VARIANT cannot be shredded as {}: VariantShredding.md lists the types of \
                     `typed_value`",
                    array.data_type()
                ))
            })?),
        };
        Ok(Self { nulls: array.nulls().cloned(), array, kind })
    }

    /// The pair of columns of a field or an element.
    fn pair(
        array: &ArrayRef,
        field: &Field,
        depth: usize,
        growth: &Growth,
    ) -> Result<ShreddedNode> {
        let Some(group) = array.as_struct_opt() else {
            return Err(malformed(format_args!(
                "{} of a shredded VARIANT must be a group of `value` and `typed_value`, found {}",
                quoted(field.name()),
                field.data_type()
            )));
        };
        // The group should be required, and null only where its parent is. Where it is null, both
        // of its columns are made null.
        let masked = |array: &ArrayRef| with_nulls(array, group.nulls());
        if group.null_count() > 0 {
            let columns = group.columns().iter().map(masked).collect::<Result<Vec<_>>>()?;
            let fields = group
                .fields()
                .iter()
                .map(|field| Arc::new(field.as_ref().clone().with_nullable(true)));
            let group = StructArray::try_new(fields.collect(), columns, None)?;
            return ShreddedNode::new(&group, depth + 1, growth);
        }
        ShreddedNode::new(group, depth + 1, growth)
    }

    fn names(&self) -> usize {
        match &self.kind {
            TypedKind::Scalar(_) => 0,
            TypedKind::List(_, element) => element.names,
            TypedKind::Object(fields) => {
                fields.len() + fields.iter().map(|(_, node)| node.names).sum::<usize>()
            }
        }
    }

    #[inline]
    pub(super) fn is_valid(&self, row: usize) -> bool {
        self.nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row))
    }
}

/// The array, with the nulls of `nulls`.
pub(super) fn with_nulls(array: &ArrayRef, nulls: Option<&NullBuffer>) -> Result<ArrayRef> {
    let Some(nulls) = nulls.filter(|nulls| nulls.null_count() > 0) else {
        return Ok(array.clone());
    };
    if array.nulls().is_some_and(|known| known.contains(nulls)) {
        return Ok(array.clone());
    }
    Ok(nullif(array, &BooleanArray::new(!nulls.inner(), None))?)
}

/// The array with dictionaries replaced by their values, which `growth` counts.
pub(super) fn flat(array: &ArrayRef, growth: &Growth) -> Result<ArrayRef> {
    let Some(dictionary) = array.as_any_dictionary_opt() else { return Ok(array.clone()) };
    growth.take(saturated(value_bytes(array)))?;
    Ok(arrow_select::take::take(dictionary.values(), dictionary.keys(), None)?)
}
