//! [`cast_to_variant`] makes VARIANT values of the values of any Arrow array.
//!
//! Spec: VariantEncoding.md, "Value Data". Types that VARIANT lacks become those that hold their
//! values: unsigned integers the next wider ones, times of seconds those of microseconds.
//! Trap: a dictionary or a union may be nested in anything, so that each array is prepared once,
//! and only then read row by row.

use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::types::{Date64Type, Time64NanosecondType};
use arrow_array::{Array, ArrayRef, PrimitiveArray, StructArray, UnionArray};
use arrow_buffer::NullBuffer;
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::{DataType, Field, FieldRef, TimeUnit};

use super::array::VariantArray;
use super::array_builder::VariantArrayBuilder;
use super::build::VariantBuilder;
use super::columns::ScalarArray;
use super::elements::{MAX_DEPTH, too_deep};
use super::value::Variant;
use crate::error::{Error, Result};

/// Makes a VARIANT column, of the type of [`VariantArray::field`], of the values of an array.
///
/// Structs and maps become objects, lists become arrays, at any depth, and dictionaries, runs and
/// unions the values that they stand for. A null row is null in Arrow; nulls inside of values are
/// the VARIANT value null. `field` is that of the array: with the extension `arrow.uuid` its values
/// are UUIDs, with `arrow.parquet.variant` they are VARIANT already, as are those of inner fields.
///
/// | Arrow | VARIANT |
/// |---|---|
/// | `UInt8`, `UInt16`, `UInt32` | integers of 16, 32 and 64 bits |
/// | `UInt64` | decimals |
/// | `Float16` | floats of 32 bits |
/// | `Date64` | dates, or timestamps without a zone where there is a time of day |
/// | `Time32`, `Time64` | times in microseconds |
/// | `Timestamp` of seconds or milliseconds | timestamps in microseconds |
/// | `Decimal256` | decimals, if they have at most 38 digits |
/// | maps whose keys are no strings | objects with the texts of the keys |
///
/// ```
/// use std::sync::Arc;
///
/// use arrow_array::{ArrayRef, Int64Array, StringArray, StructArray};
/// use arrow_schema::{DataType, Field};
/// use marquetry::variant::{VariantArray, cast_to_variant};
///
/// let names: ArrayRef = Arc::new(StringArray::from(vec![Some("ada"), None]));
/// let ages: ArrayRef = Arc::new(Int64Array::from(vec![36, 41]));
/// let people: ArrayRef = Arc::new(StructArray::from(vec![
///     (Arc::new(Field::new("name", DataType::Utf8, true)), names),
///     (Arc::new(Field::new("age", DataType::Int64, false)), ages),
/// ]));
/// let field = Field::new("person", people.data_type().clone(), false);
/// let cast = cast_to_variant(&field, &people)?;
/// let json = VariantArray::new(&cast)?.to_json()?;
/// assert_eq!(json.value(0), r#"{"age":36,"name":"ada"}"#);
/// assert_eq!(json.value(1), r#"{"age":41,"name":null}"#);
/// # Ok::<(), marquetry::Error>(())
/// ```
///
/// # Errors
/// `Unsupported` for durations and intervals, which VARIANT lacks; `Usage` for a value that it
/// cannot hold: a decimal of more than 38 digits, a time with parts of a microsecond, a timestamp
/// beyond its range, a map or struct with a name twice; `Limit(Nesting)` if values nest too deep;
/// `Malformed(Variant)` for an invalid VARIANT inside.
pub fn cast_to_variant(field: &Field, array: &ArrayRef) -> Result<StructArray> {
    let source = CastSource::new(field, array, 0)?;
    let mut out = VariantArrayBuilder::new();
    for row in 0..array.len() {
        match source.is_null(row) {
            true => out.append_null(),
            false => out.append_with(|builder| source.append(row, builder))?,
        }
    }
    out.finish()
}

/// An array whose values become VARIANT.
struct CastSource {
    nulls: Option<NullBuffer>,
    kind: CastKind,
}

enum CastKind {
    Null,
    Scalar(ScalarArray),
    /// Milliseconds.
    Date64(PrimitiveArray<Date64Type>),
    TimeNanos(PrimitiveArray<Time64NanosecondType>),
    /// The elements of each row.
    List(Vec<Range<usize>>, Box<CastSource>),
    Object(Vec<(String, CastSource)>),
    /// The entries of each row, their keys and their values.
    Map(Vec<Range<usize>>, ArrayRef, Box<CastSource>),
    Union(UnionArray, Vec<(i8, CastSource)>),
    Variant(Box<VariantArray>),
}

impl CastSource {
    fn new(field: &Field, array: &ArrayRef, depth: usize) -> Result<Self> {
        if depth > MAX_DEPTH {
            return Err(too_deep());
        }
        let data_type = array.data_type();
        let kind = match data_type {
            DataType::Dictionary(_, value) => {
                let plain = arrow_select::take::take(
                    array.as_any_dictionary().values(),
                    array.as_any_dictionary().keys(),
                    None,
                )?;
                return Self::new(&like(field, value), &plain, depth + 1);
            }
            DataType::RunEndEncoded(_, values) => {
                let plain = cast(array, values.data_type())?;
                return Self::new(&like(field, values.data_type()), &plain, depth + 1);
            }
            DataType::Null => CastKind::Null,
            DataType::Struct(_) if VariantArray::is_variant(field) => {
                CastKind::Variant(Box::new(VariantArray::try_from(array)?))
            }
            DataType::Struct(fields) => {
                let members = fields.iter().zip(array.as_struct().columns());
                let members = members.map(|(field, member)| {
                    Ok((field.name().clone(), Self::new(field, member, depth + 1)?))
                });
                CastKind::Object(members.collect::<Result<_>>()?)
            }
            DataType::Map(entries, _) => {
                let map = array.as_map();
                let DataType::Struct(fields) = entries.data_type() else {
                    return Err(unsupported(data_type));
                };
                let values = fields.get(1).ok_or_else(|| unsupported(data_type))?;
                let values = Self::new(values, map.values(), depth + 1)?;
                let keys = cast(map.keys(), &DataType::Utf8)?;
                CastKind::Map(spans(map.value_offsets()), keys, Box::new(values))
            }
            DataType::Union(fields, _) => {
                let union = array.as_union();
                let children = fields
                    .iter()
                    .map(|(id, field)| Ok((id, Self::new(field, union.child(id), depth + 1)?)));
                CastKind::Union(union.clone(), children.collect::<Result<_>>()?)
            }
            _ => match lists(array) {
                Some((spans, element, values)) => {
                    CastKind::List(spans, Box::new(Self::new(element, values, depth + 1)?))
                }
                None => scalars(field, array)?,
            },
        };
        Ok(Self { nulls: array.logical_nulls(), kind })
    }

    fn is_null(&self, row: usize) -> bool {
        let is_null = self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row));
        is_null || matches!(self.kind, CastKind::Null)
    }

    /// Appends the value of a row.
    fn append(&self, row: usize, out: &mut VariantBuilder) -> Result<()> {
        if self.is_null(row) {
            return out.append(());
        }
        match &self.kind {
            CastKind::Null => out.append(()),
            CastKind::Scalar(scalars) => out.append(scalars.value(row)),
            CastKind::Date64(array) => out.append(date(array.value(row))?),
            CastKind::TimeNanos(array) => out.append(time(array.value(row))?),
            CastKind::List(spans, elements) => {
                out.begin_list()?;
                for element in spans.get(row).cloned().unwrap_or_default() {
                    elements.append(element, out)?;
                }
                out.end_list()
            }
            CastKind::Object(members) => {
                out.begin_object()?;
                for (name, member) in members {
                    out.name(name)?;
                    member.append(row, out)?;
                }
                out.end_object()
            }
            CastKind::Map(spans, keys, values) => {
                out.begin_object()?;
                let keys = keys.as_string::<i32>();
                for entry in spans.get(row).cloned().unwrap_or_default() {
                    out.name(keys.value(entry))?;
                    values.append(entry, out)?;
                }
                out.end_object()
            }
            CastKind::Union(union, children) => {
                let id = union.type_id(row);
                let child = children.iter().find(|(of, _)| *of == id).map(|(_, child)| child);
                let child = child.ok_or_else(|| Error::internal("a union has its children"))?;
                child.append(union.value_offset(row), out)
            }
            CastKind::Variant(column) => match column.value(row)? {
                Some(value) => out.append(value.as_variant()),
                None => out.append(()),
            },
        }
    }
}

/// A field of another type, with the same extension.
fn like(field: &Field, data_type: &DataType) -> Field {
    field.clone().with_data_type(data_type.clone())
}

fn cast(array: &ArrayRef, data_type: &DataType) -> Result<ArrayRef> {
    let options = CastOptions { safe: false, ..CastOptions::default() };
    cast_with_options(array, data_type, &options).map_err(|error| {
        let from = array.data_type();
        Error::usage(format_args!("a value of {from} that VARIANT cannot hold: {error}"))
    })
}

fn spans(offsets: &[i32]) -> Vec<Range<usize>> {
    // Offsets of Arrow are not negative.
    let at = |offset: i32| offset.unsigned_abs() as usize;
    offsets.windows(2).map(|pair| at(pair[0])..at(pair[1])).collect()
}

/// The elements of each row of a list, their field and their array.
fn lists(array: &ArrayRef) -> Option<(Vec<Range<usize>>, &FieldRef, &ArrayRef)> {
    let at = |offset: i64| usize::try_from(offset).unwrap_or_default();
    let view = |start: i64, len: i64| at(start)..at(start) + at(len);
    Some(match array.data_type() {
        DataType::List(element) => {
            let list = array.as_list::<i32>();
            (spans(list.value_offsets()), element, list.values())
        }
        DataType::LargeList(element) => {
            let list = array.as_list::<i64>();
            let offsets = list.value_offsets().windows(2);
            (offsets.map(|pair| at(pair[0])..at(pair[1])).collect(), element, list.values())
        }
        DataType::ListView(element) => {
            let list = array.as_list_view::<i32>();
            let views = list.value_offsets().iter().zip(list.value_sizes());
            let views = views.map(|(start, len)| view((*start).into(), (*len).into()));
            (views.collect(), element, list.values())
        }
        DataType::LargeListView(element) => {
            let list = array.as_list_view::<i64>();
            let views = list.value_offsets().iter().zip(list.value_sizes());
            (views.map(|(start, len)| view(*start, *len)).collect(), element, list.values())
        }
        DataType::FixedSizeList(element, size) => {
            let list = array.as_fixed_size_list();
            let size = at((*size).into());
            let rows = (0..list.len()).map(|row| row * size..(row + 1) * size);
            (rows.collect(), element, list.values())
        }
        _ => return None,
    })
}

/// An array of scalars, in a type that VARIANT has.
fn scalars(field: &Field, array: &ArrayRef) -> Result<CastKind> {
    use DataType as D;
    let micros = TimeUnit::Microsecond;
    let is_uuid = field.extension_type_name() == Some("arrow.uuid");
    let wanted = match array.data_type() {
        D::UInt8 => D::Int16,
        D::UInt16 => D::Int32,
        D::UInt32 => D::Int64,
        D::UInt64 => D::Decimal128(20, 0),
        D::Float16 => D::Float32,
        D::Date64 => return Ok(CastKind::Date64(array.as_primitive().clone())),
        D::Time64(TimeUnit::Nanosecond) => {
            return Ok(CastKind::TimeNanos(array.as_primitive().clone()));
        }
        D::Time32(_) => D::Time64(micros),
        D::Timestamp(TimeUnit::Second | TimeUnit::Millisecond, zone) => {
            D::Timestamp(micros, zone.clone())
        }
        D::Decimal32(_, scale) | D::Decimal64(_, scale) | D::Decimal128(_, scale) if *scale < 0 => {
            D::Decimal128(38, 0)
        }
        D::Decimal256(_, scale) => D::Decimal128(38, (*scale).max(0)),
        D::FixedSizeBinary(_) if !is_uuid => D::Binary,
        other => other.clone(),
    };
    let array = if wanted == *array.data_type() { array.clone() } else { cast(array, &wanted)? };
    // Any other extension says only what the values are for.
    let plain = Field::new(field.name(), wanted.clone(), true);
    let scalars = ScalarArray::new(&array, if is_uuid { field } else { &plain });
    scalars.map(CastKind::Scalar).ok_or_else(|| unsupported(&wanted))
}

const MILLIS_OF_DAY: i64 = 86_400_000;

/// A date in milliseconds, which may have a time of day.
fn date(millis: i64) -> Result<Variant<'static>> {
    let days = i32::try_from(millis / MILLIS_OF_DAY).ok();
    match days.filter(|_| millis % MILLIS_OF_DAY == 0) {
        Some(days) => Ok(Variant::Date(days)),
        None => millis.checked_mul(1_000).map(Variant::TimestampNtzMicros).ok_or_else(|| {
            Error::usage(format_args!("a date of {millis} ms is beyond the range of VARIANT"))
        }),
    }
}

fn time(nanos: i64) -> Result<Variant<'static>> {
    match nanos % 1_000 {
        0 => Ok(Variant::TimeMicros(nanos / 1_000)),
        _ => Err(Error::usage(format_args!(
            "a time of {nanos} ns: those of VARIANT are whole microseconds"
        ))),
    }
}

#[cold]
fn unsupported(data_type: &DataType) -> Error {
    Error::unsupported("casts to VARIANT", format_args!("VARIANT has no values for {data_type}"))
}
