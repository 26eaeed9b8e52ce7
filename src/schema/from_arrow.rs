//! [`from_arrow`] derives the schema of a file from an Arrow schema, for writers.
//!
//! Specs: LogicalTypes.md for the annotations. Called when a file is begun;
//! [`write_conversion`](super::convert::write_conversion) converts the values. What Arrow has and
//! the format has not (offset widths, dictionaries, zones, seconds) is left to the hint,
//! `ARROW:schema`.
//! Trap: an extension type counts only on its own storage types; on any other the storage alone is
//! written.

use arrow_schema::{DataType, Field, FieldRef, Fields, Schema as ArrowSchema, TimeUnit as Unit};

use super::annotation;
use super::extension::{self, FIELD_ID_KEY};
use super::hint;
use super::leaf::Physical;
use super::nested::{self, Group};
use super::node::{Node, Repetition, Schema};
use super::shape::element_of;
use super::stand_in::{self, innermost};
use crate::error::{Error, ErrorKind, LimitKind, Result};
use crate::format::{
    ConvertedType, DecimalType, FieldRepetitionType, IntType, KeyValue, LogicalType, SchemaElement,
    TimeType, TimeUnit, TimestampType,
};
use crate::limits::Limits;
use crate::memory;

/// Chooses how an Arrow schema becomes the schema of a file.
#[derive(Debug, Clone)]
pub struct FromArrowOptions {
    hint: bool,
    time_is_utc: bool,
    full_range: bool,
}

impl Default for FromArrowOptions {
    fn default() -> Self {
        Self { hint: true, time_is_utc: false, full_range: false }
    }
}

impl FromArrowOptions {
    /// The default options.
    pub fn new() -> Self {
        Self::default()
    }

    /// Stores the Arrow schema in the file, under `ARROW:schema`, so that readers restore what the
    /// format cannot express. Default true.
    #[must_use]
    pub fn with_hint(mut self, hint: bool) -> Self {
        self.hint = hint;
        self
    }

    /// Whether times of day are in UTC, and not on a clock in an unknown time zone. Default false.
    #[must_use]
    pub fn with_time_is_utc(mut self, time_is_utc: bool) -> Self {
        self.time_is_utc = time_is_utc;
        self
    }

    /// Stores `Date64` and `Interval` so that every value fits: as TIMESTAMP(MILLIS) and
    /// FIXED_LEN_BYTE_ARRAY(16). Default false: as DATE and INTERVAL, which have no parts of days,
    /// no signs and nothing below a millisecond, so that other values are errors.
    #[must_use]
    pub fn with_full_range(mut self, full_range: bool) -> Self {
        self.full_range = full_range;
        self
    }
}

/// The schema of a file that stores an Arrow schema.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Written {
    /// The schema of the file. Its fields are in the order of Arrow's, its leaves depth-first in
    /// the order of their values.
    pub schema: Schema,
    /// The file's key-values: the metadata of the Arrow schema in order of their keys, then the
    /// hint.
    pub key_values: Vec<KeyValue>,
}

/// Derives the schema of a file that holds record batches of `schema`.
///
/// | Arrow | Parquet |
/// |---|---|
/// | `Null` | INT32 as UNKNOWN, always OPTIONAL |
/// | `Boolean` | BOOLEAN |
/// | `Int32`, `Int64` | INT32, INT64 |
/// | `Int8`, `Int16`, `UInt8`, `UInt16`, `UInt32`; `UInt64` | INT32; INT64 as INTEGER |
/// | `Float16`, `Float32`, `Float64` | FIXED_LEN_BYTE_ARRAY(2) as FLOAT16, FLOAT, DOUBLE |
/// | `Decimal32` to `Decimal256` | DECIMAL: INT32 up to 9 digits, INT64 up to 18, else bytes |
/// | `Date32`, `Date64` | INT32 as DATE; `Date64` may be TIMESTAMP(MILLIS), see below |
/// | `Time32`, `Time64` | TIME of its unit, milliseconds for seconds; local by default |
/// | `Timestamp` | TIMESTAMP of its unit, milliseconds for seconds; UTC if it has a zone |
/// | `Duration` | INT64 |
/// | `Interval` | FIXED_LEN_BYTE_ARRAY(12) as INTERVAL; may be 16 bytes, see below |
/// | `Utf8`, `LargeUtf8`, `Utf8View` | BYTE_ARRAY as STRING; JSON if `arrow.json` |
/// | `Binary`, `LargeBinary`, `BinaryView` | BYTE_ARRAY; GEOMETRY or GEOGRAPHY if `geoarrow.wkb` |
/// | `FixedSizeBinary(n)` | FIXED_LEN_BYTE_ARRAY(n); UUID if `arrow.uuid` |
/// | `List`, `LargeList`, `ListView`, `LargeListView`, `FixedSizeList` | LIST of three levels |
/// | `Map` | MAP, its keys REQUIRED |
/// | `Struct` | group; VARIANT if `arrow.parquet.variant`; FILE if so under [`LOGICAL_TYPE_KEY`] |
/// | `Dictionary`, `RunEndEncoded` | as their values |
///
/// Nullable is OPTIONAL. A field id is taken from the metadata of its field under [`FIELD_ID_KEY`].
///
/// # What files cannot hold
///
/// The format has no column for some types. The hint restores them; other readers, and reads
/// without the hint, find the types that they are stored as:
///
/// | Arrow | stored as | values that are kept |
/// |---|---|---|
/// | decimals of scale s < 0 | DECIMAL(p − s, 0), values × 10^−s | all |
/// | `FixedSizeBinary(0)` | BYTE_ARRAY, empty | all |
/// | `Struct` without fields | group with a BOOLEAN `_empty`, always null | all |
/// | `Duration` | INT64 | all |
/// | `Time32(s)`, `Timestamp(s)` | milliseconds | what does not overflow them |
/// | `Date64` | DATE | whole days, of 32 bits |
/// | the same, [full range](FromArrowOptions::with_full_range) | TIMESTAMP(MILLIS), local | all |
/// | `Interval` | INTERVAL | whole milliseconds below 2^32; nothing negative |
/// | the same, full range | FIXED_LEN_BYTE_ARRAY(16): months, days, nanoseconds, LE | all |
/// | dictionaries and runs within each other | their values | all, with the outermost keys |
///
/// Writing a value that is not kept is an error; it never becomes another value. The layout of
/// values in memory is not kept: the keys of dictionaries, and elements that list views share.
///
/// Making a writer with these types is an error:
///
/// | Arrow | what would fit |
/// |---|---|
/// | `Union` | `Struct` with a nullable field for each member |
/// | decimals of negative scale, p − s > 76 | fewer digits, `Float64` |
/// | `Dictionary`, `RunEndEncoded` of nested values | their values, or dictionaries inside |
/// | `Map` with keys of `Null` | a list of structs |
///
/// [`LOGICAL_TYPE_KEY`]: super::LOGICAL_TYPE_KEY
///
/// ```
/// use marquetry::arrow_schema::{DataType, Field, Schema};
/// use marquetry::schema::{FromArrowOptions, from_arrow};
///
/// # fn main() -> marquetry::Result<()> {
/// let list = DataType::new_list(DataType::UInt8, false);
/// let a = Field::new("a", DataType::LargeUtf8, true);
/// let arrow = Schema::new(vec![a, Field::new("b", list, false)]);
/// let written = from_arrow(&arrow, &FromArrowOptions::default())?;
/// assert_eq!(
///     written.schema.to_string(),
///     "message schema {
///   optional binary a (STRING);
///   required group b (LIST) {
///     repeated group list {
///       required int32 element (INTEGER(8,false));
///     }
///   }
/// }"
/// );
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// `Unsupported`, with the column, for types that the format cannot express, or other readers
/// refuse: unions, decimals of more than 76 digits once their scale is not negative, dictionaries
/// and runs of nested values, maps with null keys. `Usage`, with the column, if the schema
/// contradicts itself: a map without keys and values, a decimal of more digits than its type has, a
/// field id that is no number, an extension type whose structure or metadata violate its
/// specification. `Limit(Nesting)` if it is deeper than the default of [`Limits::nesting`].
pub fn from_arrow(schema: &ArrowSchema, options: &FromArrowOptions) -> Result<Written> {
    let mut key_values: Vec<KeyValue> = memory::vec_for(schema.metadata().len())?;
    for (key, value) in schema.metadata().iter().filter(|(key, _)| *key != hint::KEY) {
        key_values.push(KeyValue::new(memory::text(key)?, memory::text(value)?));
    }
    // No two have the same key.
    key_values.sort_unstable_by(|a, b| a.key.cmp(&b.key));
    let fields = stand_in::stored_fields(schema.fields(), options.full_range);
    let mut tree =
        SchemaBuilder { elements: Vec::new(), path: Vec::new(), key_values: &key_values, options };
    let root = SchemaElement { name: ROOT.to_owned(), ..SchemaElement::default() };
    tree.group(root, None, fields.len())?;
    for field in &fields {
        tree.field(field, field.name())?;
    }
    let limits = Limits::default();
    let file = Schema::parse(tree.elements, &limits).map_err(|e| match e.kind() {
        ErrorKind::Limit(LimitKind::Nesting) => too_deep(),
        _ => e,
    })?;
    for field in file.fields() {
        check_structure(field)?;
    }
    if options.hint {
        memory::push(&mut key_values, hint::entry(schema, &fields)?)?;
    }
    Ok(Written { schema: file, key_values })
}

/// Refuses a schema that is nested deeper than what is written, before walks that take stack.
///
/// # Errors
/// `Limit(Nesting)`.
pub(crate) fn check_nesting(schema: &ArrowSchema) -> Result<()> {
    let mut left: Vec<(&FieldRef, usize)> =
        memory::collected(schema.fields().iter().map(|of| (of, 1)))?;
    while let Some((field, depth)) = left.pop() {
        if depth > Limits::default().nesting {
            return Err(too_deep());
        }
        match innermost(field.data_type()) {
            DataType::Struct(fields) => {
                memory::extend(&mut left, fields.iter().map(|of| (of, depth + 1)))?
            }
            of => memory::extend(&mut left, element_of(of).map(|item| (item, depth + 1)))?,
        }
    }
    Ok(())
}

#[cold]
fn too_deep() -> Error {
    let max = Limits::default().nesting;
    Error::limit(
        LimitKind::Nesting,
        format_args!(
            "the schema is nested deeper than {max} levels, the most that is written, because readers refuse more"
        ),
    )
}

/// The name of the root; the format asks for none.
const ROOT: &str = "schema";

/// The elements so far, and the path to the next one.
struct SchemaBuilder<'a> {
    elements: Vec<SchemaElement>,
    path: Vec<&'a str>,
    key_values: &'a [KeyValue],
    options: &'a FromArrowOptions,
}

impl<'a> SchemaBuilder<'a> {
    /// Lists `field`, called `name` in the file, and all that is below it.
    fn field(&mut self, field: &'a Field, name: &'a str) -> Result<()> {
        self.field_as(field, name, field.is_nullable())
    }

    fn field_as(&mut self, field: &'a Field, name: &'a str, nullable: bool) -> Result<()> {
        // Schemas come from elsewhere too, and this walk takes stack.
        if self.path.len() > Limits::default().nesting {
            return Err(too_deep());
        }
        self.path.push(name);
        let repetition = match nullable {
            true => FieldRepetitionType::Optional,
            false => FieldRepetitionType::Required,
        };
        let listed = self.node(field, element(name, repetition));
        listed.map_err(|e| e.at_column(self.path.join(".")))?;
        self.path.pop();
        Ok(())
    }

    fn node(&mut self, field: &'a Field, mut element: SchemaElement) -> Result<()> {
        use DataType as D;
        element.field_id = field_id(field)?;
        let storage = innermost(field.data_type());
        if storage.is_nested() && storage != field.data_type() {
            return Err(Error::unsupported(
                "nested values with a dictionary or runs",
                format_args!(
                    "{} has no leaf to be stored in; cast to {storage}, or make dictionaries of its fields",
                    field.data_type()
                ),
            ));
        }
        match storage {
            D::FixedSizeList(_, length @ ..0) => {
                Err(Error::usage(format_args!("a list of fixed size {length}")))
            }
            D::List(item)
            | D::LargeList(item)
            | D::ListView(item)
            | D::LargeListView(item)
            | D::FixedSizeList(item, _) => self.list(element, item),
            D::Map(entries, _) => self.map(element, entries),
            D::Struct(children) => self.structure(element, field, children),
            _ => self.leaf(element, field, storage),
        }
    }

    fn list(&mut self, element_of_list: SchemaElement, item: &'a FieldRef) -> Result<()> {
        self.group(element_of_list, Some(LogicalType::List), 1)?;
        self.group(element("list", FieldRepetitionType::Repeated), None, 1)?;
        self.path.push("list");
        self.field(item, "element")?;
        self.path.pop();
        Ok(())
    }

    fn map(&mut self, element_of_map: SchemaElement, entries: &'a FieldRef) -> Result<()> {
        let pair = match entries.data_type() {
            DataType::Struct(fields) => &fields[..],
            _ => &[],
        };
        let [key, value] = pair else {
            return Err(Error::usage(format_args!(
                "the entries of a map are a struct of key and value, not {}",
                entries.data_type()
            )));
        };
        if *innermost(key.data_type()) == DataType::Null {
            return Err(Error::unsupported(
                "map with null keys",
                "a key may not be null; a list of structs of key and value holds the same",
            ));
        }
        self.group(element_of_map, Some(LogicalType::Map), 1)?;
        let mut repeated = element("key_value", FieldRepetitionType::Repeated);
        repeated.field_id = field_id(entries)?;
        self.group(repeated, None, 2)?;
        self.path.push("key_value");
        // SPEC LogicalTypes.md, MAP: the key is REQUIRED, whatever Arrow says.
        self.field_as(key, "key", false)?;
        self.field(value, "value")?;
        self.path.pop();
        Ok(())
    }

    fn structure(
        &mut self,
        element: SchemaElement,
        field: &'a Field,
        children: &'a Fields,
    ) -> Result<()> {
        let logical = self.logical_type(field)?;
        let is_variant = matches!(logical, Some(LogicalType::Variant(_)));
        self.group(element, logical, children.len())?;
        for child in children {
            // SPEC VariantEncoding.md: `metadata` is REQUIRED, whatever Arrow says.
            let is_required = is_variant && child.name() == "metadata";
            self.field_as(child, child.name(), child.is_nullable() && !is_required)?;
        }
        Ok(())
    }

    /// Lists a group of `children` children, which the caller lists next.
    fn group(
        &mut self,
        mut element: SchemaElement,
        logical: Option<LogicalType>,
        children: usize,
    ) -> Result<()> {
        let count = i32::try_from(children);
        element.num_children =
            Some(count.map_err(|_| Error::usage(format_args!("a group of {children} fields")))?);
        element.converted_type = logical.as_ref().and_then(annotation::converted);
        element.logical_type = logical;
        memory::push(&mut self.elements, element)
    }

    fn leaf(
        &mut self,
        mut element: SchemaElement,
        field: &Field,
        storage: &DataType,
    ) -> Result<()> {
        let (physical, natural) = self.leaf_type(storage)?;
        let logical = self.logical_type(field)?.or(natural);
        element.r#type = Some(physical.format_type());
        if let Physical::FixedLenByteArray(length) = physical {
            let length = i32::try_from(length);
            element.type_length =
                Some(length.map_err(|_| Error::usage("a value of more than 2 GiB"))?);
        }
        if let Some(LogicalType::Decimal(decimal)) = &logical {
            element.precision = Some(decimal.precision);
            element.scale = Some(decimal.scale);
        }
        element.converted_type = match storage {
            // INTERVAL has no logical type.
            DataType::Interval(_) => Some(ConvertedType::Interval),
            _ => logical.as_ref().and_then(annotation::converted),
        };
        element.logical_type = logical;
        if *storage == DataType::Null {
            element.repetition_type = Some(FieldRepetitionType::Optional);
        }
        memory::push(&mut self.elements, element)
    }

    /// The logical type in the metadata of a field, if the field is stored as itself.
    fn logical_type(&self, field: &Field) -> Result<Option<LogicalType>> {
        match stand_in::is_stand_in(field) {
            true => Ok(None),
            false => extension::logical_type(field, self.key_values),
        }
    }

    /// The table of [`from_arrow`], extension types aside.
    fn leaf_type(&self, storage: &DataType) -> Result<(Physical, Option<LogicalType>)> {
        use DataType as D;
        use LogicalType as L;
        let int = |physical, bit_width, is_signed| {
            (physical, Some(L::Integer(IntType { bit_width, is_signed })))
        };
        let is_adjusted_to_utc = self.options.time_is_utc;
        let time =
            |physical, unit| (physical, Some(L::Time(TimeType { is_adjusted_to_utc, unit })));
        Ok(match storage {
            D::Null => (Physical::Int32, Some(L::Unknown)),
            D::Boolean => (Physical::Boolean, None),
            D::Int8 => int(Physical::Int32, 8, true),
            D::Int16 => int(Physical::Int32, 16, true),
            D::Int32 => (Physical::Int32, None),
            D::Int64 => (Physical::Int64, None),
            D::UInt8 => int(Physical::Int32, 8, false),
            D::UInt16 => int(Physical::Int32, 16, false),
            D::UInt32 => int(Physical::Int32, 32, false),
            D::UInt64 => int(Physical::Int64, 64, false),
            D::Float16 => (Physical::FixedLenByteArray(2), Some(L::Float16)),
            D::Float32 => (Physical::Float, None),
            D::Float64 => (Physical::Double, None),
            D::Decimal32(precision, scale) => decimal(*precision, *scale, 9)?,
            D::Decimal64(precision, scale) => decimal(*precision, *scale, 18)?,
            D::Decimal128(precision, scale) => decimal(*precision, *scale, 38)?,
            D::Decimal256(precision, scale) => decimal(*precision, *scale, 76)?,
            D::Date32 | D::Date64 => (Physical::Int32, Some(L::Date)),
            D::Time32(Unit::Second | Unit::Millisecond) => time(Physical::Int32, TimeUnit::Millis),
            D::Time64(Unit::Microsecond) => time(Physical::Int64, TimeUnit::Micros),
            D::Time64(Unit::Nanosecond) => time(Physical::Int64, TimeUnit::Nanos),
            D::Time32(_) | D::Time64(_) => {
                return Err(Error::usage(format_args!("Arrow has no {storage}")));
            }
            D::Timestamp(unit, zone) => {
                (Physical::Int64, Some(L::Timestamp(timestamp(*unit, zone.as_deref()))))
            }
            D::Duration(_) => (Physical::Int64, None),
            D::Interval(_) => (Physical::FixedLenByteArray(12), None),
            D::Utf8 | D::LargeUtf8 | D::Utf8View => (Physical::ByteArray, Some(L::String)),
            D::Binary | D::LargeBinary | D::BinaryView => (Physical::ByteArray, None),
            D::FixedSizeBinary(length) => match usize::try_from(*length) {
                Ok(length) => (Physical::FixedLenByteArray(length), None),
                Err(_) => return Err(Error::usage(format_args!("values of {length} bytes"))),
            },
            D::Union(..) => {
                return Err(Error::unsupported(
                    "union",
                    "the format has no unions; a struct with a nullable field for each member holds the same",
                ));
            }
            other => {
                return Err(Error::unsupported(
                    "Arrow type",
                    format_args!("the format has nothing for {other}"),
                ));
            }
        })
    }
}

fn timestamp(unit: Unit, zone: Option<&str>) -> TimestampType {
    let unit = match unit {
        Unit::Second | Unit::Millisecond => TimeUnit::Millis,
        Unit::Microsecond => TimeUnit::Micros,
        Unit::Nanosecond => TimeUnit::Nanos,
    };
    // Schema.fbs: an empty zone is none.
    TimestampType { is_adjusted_to_utc: zone.is_some_and(|zone| !zone.is_empty()), unit }
}

/// Refuses FIXED_LEN_BYTE_ARRAY(0), which pyarrow, DuckDB and polars take for a broken file.
pub(crate) fn binary_of_size_0() -> Error {
    Error::unsupported(
        "binary of fixed size 0",
        "other readers refuse FIXED_LEN_BYTE_ARRAY(0); cast to Binary, or leave the column out",
    )
}

fn element(name: &str, repetition: FieldRepetitionType) -> SchemaElement {
    SchemaElement {
        name: name.to_owned(),
        repetition_type: Some(repetition),
        ..SchemaElement::default()
    }
}

fn field_id(field: &Field) -> Result<Option<i32>> {
    let Some(text) = field.metadata().get(FIELD_ID_KEY) else {
        return Ok(None);
    };
    match text.parse() {
        Ok(id) => Ok(Some(id)),
        Err(_) => {
            Err(Error::usage(format_args!("{FIELD_ID_KEY} is no number of 32 bits: {text:?}")))
        }
    }
}

/// DECIMAL on the smallest type that holds `precision` digits; the Arrow type holds `max`.
fn decimal(precision: u8, scale: i8, max: u8) -> Result<(Physical, Option<LogicalType>)> {
    if scale < 0 {
        return Err(Error::unsupported(
            "decimal of more than 76 digits",
            format_args!(
                "{precision} digits of scale {scale} are {} of scale 0, and the format has no \
                 negative scales; cast to a decimal of fewer digits, or to Float64",
                i16::from(precision) - i16::from(scale)
            ),
        ));
    }
    if !(1..=max).contains(&precision) || i16::from(scale) > i16::from(precision) {
        return Err(Error::usage(format_args!(
            "a decimal of {precision} digits, {scale} of them after the point, on a type of {max}"
        )));
    }
    let precision = i32::from(precision);
    let physical = match precision {
        1..=9 => Physical::Int32,
        10..=18 => Physical::Int64,
        _ => {
            let bytes = (9..=32).find(|&bytes| annotation::max_digits(bytes) >= precision);
            Physical::FixedLenByteArray(bytes.unwrap_or(32))
        }
    };
    let scale = i32::from(scale);
    Ok((physical, Some(LogicalType::Decimal(DecimalType { scale, precision }))))
}

/// Annotated groups must be what a reader takes them for, and must meet the format's rules, which
/// are stricter.
fn check_structure(node: Node<'_>) -> Result<()> {
    let is_required = |child: Node<'_>| matches!(child.repetition(), Ok(Repetition::Required));
    let is_bare = |child: Node<'_>| !child.head().is_annotated();
    let wanted = match &node.element().logical_type {
        Some(LogicalType::Variant(_)) => {
            // SPEC VariantEncoding.md and VariantShredding.md: neither `metadata` nor `value` is
            // annotated.
            let fits = nested::group(node) == Group::Variant
                && node.children().all(|child| match child.name() {
                    "metadata" | "value" => is_bare(child),
                    _ => true,
                });
            (!fits).then_some(
                "a variant has metadata, which is binary, and may have value, which is binary, and typed_value",
            )
        }
        Some(LogicalType::File) => {
            // SPEC LogicalTypes.md, FILE: all children are OPTIONAL.
            let fits = nested::group(node) == Group::File
                && node.children().all(|child| match child.name() {
                    "offset" | "size" | "inline" => !is_required(child) && is_bare(child),
                    _ => !is_required(child),
                });
            (!fits).then_some(
                "a FILE has, all nullable, uri, content_type and checksum as strings, offset and size as Int64, inline as binary",
            )
        }
        _ => None,
    };
    match wanted {
        Some(wanted) => Err(Error::usage(wanted).at_column(node.path().dotted())),
        None => node.children().try_for_each(check_structure),
    }
}

#[cfg(test)]
mod tests;
