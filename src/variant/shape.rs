//! [`VariantShape`]: the parts of VARIANT values that are stored as columns of their own.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef, Fields, TimeUnit};

use super::array::VariantArray;
use crate::error::{Error, Result, quoted};

/// Maximum nesting of objects and lists in a shape. Values may nest deeper: parts below are not
/// shredded.
pub(super) const MAX_DEPTH: usize = 16;

/// Which parts of the values of a VARIANT column are shredded into columns, by the shredded types
/// of VariantShredding.md.
///
/// ```
/// use marquetry::variant::VariantShape;
///
/// let shape = VariantShape::parse("{event: string, tags: [string], user: {id: int64}}")?;
/// assert_eq!(shape.to_string(), "{event: string, tags: [string], user: {id: int64}}");
/// # Ok::<(), marquetry::Error>(())
/// ```
///
/// Nothing is lost: values of other types, and fields without a column, stay in the `value` column
/// beside.
#[derive(Debug, Clone)]
pub struct VariantShape(pub(super) ShapeNode, pub(super) Numbers);

/// Which numbers go into a column of decimals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Numbers {
    /// All that are equal to one of the column: who names a shape asks for its types.
    Equal,
    /// Decimals of its scale: integers stay integers, and digits after the point stay as many.
    SameScale,
}

/// Shapes are equal whose columns are.
impl PartialEq for VariantShape {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum ShapeNode {
    /// No column: `value` alone.
    Any,
    Scalar(DataType),
    List(Box<Self>),
    /// In the order of the names.
    Object(Vec<(String, Self)>),
}

/// The names of the types in the text form.
pub(super) const NAMES: [(&str, DataType); 14] = [
    ("boolean", DataType::Boolean),
    ("int8", DataType::Int8),
    ("int16", DataType::Int16),
    ("int32", DataType::Int32),
    ("int64", DataType::Int64),
    ("float", DataType::Float32),
    ("double", DataType::Float64),
    ("date", DataType::Date32),
    ("time", DataType::Time64(TimeUnit::Microsecond)),
    ("timestamp_ntz", DataType::Timestamp(TimeUnit::Microsecond, None)),
    ("timestamp_ntz_nanos", DataType::Timestamp(TimeUnit::Nanosecond, None)),
    ("binary", DataType::Binary),
    ("string", DataType::Utf8),
    ("uuid", DataType::FixedSizeBinary(16)),
];

pub(super) fn utc(unit: TimeUnit) -> DataType {
    DataType::Timestamp(unit, Some("UTC".into()))
}

impl VariantShape {
    /// Nothing is shredded.
    pub fn any() -> Self {
        Self(ShapeNode::Any, Numbers::Equal)
    }

    /// Values of one type: booleans, signed integers, floats, decimals of at most 38 digits,
    /// `Date32`, `Time64` and `Timestamp` of microseconds, `Timestamp` of nanoseconds, `Binary`,
    /// `Utf8`, and `FixedSizeBinary(16)` for UUIDs.
    ///
    /// # Errors
    /// `Usage` if VARIANT cannot be shredded as this type.
    pub fn scalar(data_type: DataType) -> Result<Self> {
        let known = match &data_type {
            DataType::Timestamp(TimeUnit::Microsecond | TimeUnit::Nanosecond, zone) => {
                zone.as_deref().is_none_or(|zone| zone == "UTC")
            }
            DataType::Decimal128(precision, scale) => {
                (1..=38).contains(precision)
                    && (0..=i16::from(*precision)).contains(&i16::from(*scale))
            }
            other => NAMES.iter().any(|(_, known)| known == other),
        };
        if !known {
            return Err(Error::usage(format_args!(
                "a VARIANT cannot be shredded as {data_type}: VariantShredding.md lists the types"
            )));
        }
        Ok(Self(ShapeNode::Scalar(data_type), Numbers::Equal))
    }

    /// Lists whose elements are of this shape.
    ///
    /// # Errors
    /// `Usage` if shapes nest deeper than 16.
    pub fn list(element: Self) -> Result<Self> {
        let shape = ShapeNode::List(Box::new(element.0));
        shape.check_depth(0)?;
        Ok(Self(shape, Numbers::Equal))
    }

    /// Objects with a column for each of these fields.
    ///
    /// # Errors
    /// `Usage` if there is no field, one is named twice, or shapes nest deeper than 16.
    pub fn object<N: Into<String>>(fields: impl IntoIterator<Item = (N, Self)>) -> Result<Self> {
        let mut fields: Vec<_> =
            fields.into_iter().map(|(name, shape)| (name.into(), shape.0)).collect();
        fields.sort_by(|a, b| a.0.cmp(&b.0));
        if fields.is_empty() {
            return Err(Error::usage("a shredded object needs a field"));
        }
        if let Some(pair) = fields.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            return Err(Error::usage(format_args!(
                "the field {} of a shape is named twice",
                quoted(&pair[0].0)
            )));
        }
        let shape = ShapeNode::Object(fields);
        shape.check_depth(0)?;
        Ok(Self(shape, Numbers::Equal))
    }

    /// The type of the values, if they are of one; that of an unshredded VARIANT for
    /// [`VariantShape::any`].
    pub(crate) fn scalar_type(&self) -> Option<DataType> {
        match &self.0 {
            ShapeNode::Any => Some(VariantArray::unshredded_type()),
            ShapeNode::Scalar(data_type) => Some(data_type.clone()),
            ShapeNode::List(_) | ShapeNode::Object(_) => None,
        }
    }

    /// The shape of a type; `None` if there is none.
    pub(crate) fn from_type(data_type: &DataType) -> Option<Self> {
        match *data_type == VariantArray::unshredded_type() {
            true => Some(Self::any()),
            false => Self::scalar(data_type.clone()).ok(),
        }
    }

    /// The type in a shape for an Arrow type of the same values.
    pub(crate) fn plain(data_type: &DataType) -> DataType {
        match data_type {
            DataType::LargeUtf8 | DataType::Utf8View => DataType::Utf8,
            DataType::LargeBinary | DataType::BinaryView => DataType::Binary,
            DataType::Decimal32(p, s) | DataType::Decimal64(p, s) => DataType::Decimal128(*p, *s),
            DataType::Timestamp(unit, Some(_)) => utc(*unit),
            DataType::Dictionary(_, values) => Self::plain(values),
            other => other.clone(),
        }
    }

    /// Whether nothing is shredded.
    pub(crate) fn is_any(&self) -> bool {
        self.0 == ShapeNode::Any
    }

    /// Derives the shape of a column from its Arrow type: a struct of `metadata`, `value` and
    /// `typed_value`.
    ///
    /// # Errors
    /// `Usage` if the type is no VARIANT, or shredded as a type that is not in the table.
    pub fn from_data_type(data_type: &DataType) -> Result<Self> {
        match data_type {
            DataType::Struct(fields) => {
                ShapeNode::from_pair(fields, 0).map(|shape| Self(shape, Numbers::Equal))
            }
            other => {
                Err(Error::usage(format_args!("a VARIANT is a struct in Arrow, found {other}")))
            }
        }
    }

    /// The Arrow type of a column of this shape: a struct of `metadata`, `value` and, unless
    /// nothing is shredded, `typed_value`.
    pub fn data_type(&self) -> DataType {
        let metadata = Arc::new(Field::new("metadata", DataType::Binary, false));
        let mut fields = vec![metadata];
        fields.extend(self.0.pair(false));
        DataType::Struct(fields.into())
    }

    /// Like [`data_type`](Self::data_type), with the `metadata` of the Arrow type `stored`.
    pub(crate) fn data_type_like(&self, stored: &DataType) -> DataType {
        let mut fields = match self.data_type() {
            DataType::Struct(fields) => fields.to_vec(),
            _ => Vec::new(),
        };
        if let DataType::Struct(stored) = stored
            && let Some((_, metadata)) = stored.find("metadata")
            && let Some(first) = fields.first_mut()
        {
            let of_metadata = match metadata.data_type() {
                DataType::Dictionary(_, values) => (**values).clone(),
                other => other.clone(),
            };
            *first = Arc::new(Field::new("metadata", of_metadata, false));
        }
        DataType::Struct(fields.into())
    }
}

impl ShapeNode {
    fn check_depth(&self, depth: usize) -> Result<()> {
        if depth > MAX_DEPTH {
            return Err(too_deep());
        }
        match self {
            Self::Any | Self::Scalar(_) => Ok(()),
            Self::List(element) => element.check_depth(depth + 1),
            Self::Object(fields) => {
                fields.iter().try_for_each(|(_, shape)| shape.check_depth(depth + 1))
            }
        }
    }

    fn from_pair(fields: &Fields, depth: usize) -> Result<Self> {
        if depth > MAX_DEPTH {
            return Err(too_deep());
        }
        let Some((_, typed)) = fields.find("typed_value") else { return Ok(Self::Any) };
        let inner = |field: &FieldRef| match field.data_type() {
            DataType::Struct(fields) => Self::from_pair(fields, depth + 1),
            other => Err(Error::usage(format_args!(
                "{} of a shredded VARIANT must be a struct, found {other}",
                quoted(field.name())
            ))),
        };
        Ok(match typed.data_type() {
            DataType::Struct(fields) => {
                let mut members = Vec::with_capacity(fields.len());
                for field in fields {
                    members.push((field.name().clone(), inner(field)?));
                }
                let members = members
                    .into_iter()
                    .map(|(name, shape)| (name, VariantShape(shape, Numbers::Equal)));
                VariantShape::object(members)?.0
            }
            DataType::List(element)
            | DataType::LargeList(element)
            | DataType::FixedSizeList(element, _) => Self::List(Box::new(inner(element)?)),
            other => VariantShape::scalar(VariantShape::plain(other))?.0,
        })
    }

    /// The fields `value` and `typed_value`.
    fn pair(&self, inside: bool) -> Vec<FieldRef> {
        let typed = match self {
            Self::Any => None,
            Self::Scalar(data_type) => {
                let field = Field::new("typed_value", data_type.clone(), true);
                Some(match data_type {
                    DataType::FixedSizeBinary(_) => field.with_metadata(HashMap::from([(
                        "ARROW:extension:name".to_owned(),
                        "arrow.uuid".to_owned(),
                    )])),
                    _ => field,
                })
            }
            Self::List(element) => {
                let element = Field::new("element", element.group(), false);
                Some(Field::new("typed_value", DataType::List(Arc::new(element)), true))
            }
            Self::Object(fields) => {
                let members = fields
                    .iter()
                    .map(|(name, shape)| Arc::new(Field::new(name.as_str(), shape.group(), false)));
                Some(Field::new("typed_value", DataType::Struct(members.collect()), true))
            }
        };
        let value = Field::new("value", DataType::Binary, inside || typed.is_some());
        [value].into_iter().chain(typed).map(Arc::new).collect()
    }

    /// The type of a field or element of this shape.
    pub(super) fn group(&self) -> DataType {
        DataType::Struct(self.pair(true).into())
    }
}

#[cold]
pub(super) fn too_deep() -> Error {
    Error::usage(format_args!("a shape of a VARIANT nests deeper than {MAX_DEPTH}"))
}
