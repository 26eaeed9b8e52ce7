//! `ARROW:schema`: what the writer's Arrow schema was.
//!
//! Used by `to_arrow` after the natural mapping, and made for `from_arrow`. Specs: Arrow columnar format, "Encapsulated message format" and Schema.fbs.
//!
//! ```text
//! | FF FF FF FF | length, i32 LE | flatbuffer Message with a Schema |     in Base64; before Arrow 0.15 without the marker
//! ```
//!
//! The hint is believed only where it fits: by position and equal names, and where [`conversion`] has a lossless way. Anything
//! else in it, and a hint that is broken, is as good as none: it is never an error.
//! Trap: `arrow_ipc::convert` panics on types that it does not expect, so the verified flatbuffer is read here. Its tables may
//! share children and strings, so that a short hint stands for endless data: what is taken from it is counted.

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::Arc;

use arrow_ipc::writer::{DictionaryTracker, IpcDataGenerator, IpcWriteOptions};
use arrow_ipc::{self as ipc, MessageHeader, Precision};
use arrow_schema::extension::{EXTENSION_TYPE_METADATA_KEY, EXTENSION_TYPE_NAME_KEY};
use arrow_schema::{DataType, Field, FieldRef, IntervalUnit, Schema as ArrowSchema, TimeUnit};
use base64::Engine;
use base64::engine::general_purpose::{GeneralPurposeConfig, STANDARD};
use base64::engine::{DecodePaddingMode, GeneralPurpose};

use super::convert::conversion;
use super::extension::{self, FIELD_ID_KEY};
use super::node::Schema;
use super::to_arrow::with_children;
use super::{Kind, Physical, Shape};
use crate::bytes::Cursor;
use crate::error::{Error, Result, Spec};
use crate::format::KeyValue;
use crate::trusted;

/// The key of the file under which the hint stands.
pub(crate) const KEY: &str = "ARROW:schema";

/// The bytes of a hint.
pub(super) struct Hint {
    message: Vec<u8>,
    /// Where the flatbuffer starts.
    start: usize,
}

/// The entry that holds `schema` as the hint of a file.
///
/// # Errors
/// `Usage` if the schema takes 2 GiB or more.
pub(super) fn entry(schema: &ArrowSchema) -> Result<KeyValue> {
    // A file that was read may have brought its own; hints do not nest.
    let mut without = None;
    if schema.metadata().contains_key(KEY) {
        without.insert(schema.clone()).metadata.remove(KEY);
    }
    let schema = without.as_ref().unwrap_or(schema);
    let mut message = IpcDataGenerator::default()
        .schema_to_bytes_with_dictionary_tracker(
            schema,
            // Without it dictionaries panic.
            &mut DictionaryTracker::new(false),
            &IpcWriteOptions::default(),
        )
        .ipc_message;
    message.resize(message.len().next_multiple_of(8), 0);
    let length = i32::try_from(message.len())
        .map_err(|_| Error::usage("the Arrow schema is too long to be noted in the file"))?;
    let bytes = [&CONTINUATION.to_le_bytes()[..], &length.to_le_bytes(), &message].concat();
    let value = Some(STANDARD.encode(bytes));
    Ok(KeyValue { key: KEY.to_owned(), value, ..KeyValue::default() })
}

/// A hint whose schema has been found. Its fields are verified one by one, when they are asked for: a wide file has many, and a read wants few.
pub(super) struct Open<'a> {
    bytes: &'a [u8],
    /// Where the references to the fields are, and how many.
    fields: (usize, usize),
    /// Where the reference to the metadata is.
    metadata: Option<usize>,
    /// Bytes that may still be copied out of it: no more than it has.
    budget: Cell<usize>,
}

impl Hint {
    /// The hint among the key-values of a file, if there is one that can be decoded.
    pub(super) fn find(key_values: &[KeyValue]) -> Option<Self> {
        const BASE64: GeneralPurpose = GeneralPurpose::new(
            &base64::alphabet::STANDARD,
            GeneralPurposeConfig::new()
                .with_decode_padding_mode(DecodePaddingMode::Indifferent)
                .with_decode_allow_trailing_bits(true),
        );
        let entry = key_values.iter().find(|entry| entry.key == KEY)?;
        let message = BASE64.decode(entry.value.as_deref()?).ok()?;
        let mut cursor = Cursor::new(&message, Spec::Metadata("ARROW:schema"));
        let mut length = cursor.u32().ok()?;
        if length == CONTINUATION {
            length = cursor.u32().ok()?;
        }
        let start = cursor.position();
        cursor.skip(length as usize).ok()?;
        Some(Self { start, message })
    }

    /// Finds the schema in the flatbuffer.
    pub(super) fn open(&self) -> Option<Open<'_>> {
        let bytes = self.message.get(self.start..)?;
        // Message: version, header_type, header. Schema: endianness, fields, custom_metadata.
        let message = follow(bytes, 0)?;
        let header_type = *bytes.get(slot(bytes, message, 1)?)?;
        if MessageHeader(header_type) != MessageHeader::Schema {
            return None;
        }
        let schema = follow(bytes, slot(bytes, message, 2)?)?;
        let fields = match slot(bytes, schema, 1) {
            None => (0, 0),
            Some(at) => {
                let vector = follow(bytes, at)?;
                (vector.checked_add(4)?, usize::try_from(word(bytes, vector)?).ok()?)
            }
        };
        let metadata = slot(bytes, schema, 2);
        Some(Open { bytes, fields, metadata, budget: Cell::new(bytes.len()) })
    }
}

/// The number at `at`, if it is there.
fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Cursor::new(bytes.get(at..)?, Spec::Metadata("ARROW:schema")).u32().ok()
}

/// Where the reference at `at` points to.
fn follow(bytes: &[u8], at: usize) -> Option<usize> {
    at.checked_add(usize::try_from(word(bytes, at)?).ok()?).filter(|to| *to < bytes.len())
}

/// Where field `index` of the table at `table` is, if the table has it.
fn slot(bytes: &[u8], table: usize, index: usize) -> Option<usize> {
    let distance = i64::from(word(bytes, table)?.cast_signed());
    let vtable = usize::try_from(i64::try_from(table).ok()?.checked_sub(distance)?).ok()?;
    let half = |at: usize| {
        let mut cursor = Cursor::new(bytes.get(at..)?, Spec::Metadata("ARROW:schema"));
        cursor.u16().ok().map(usize::from)
    };
    let at = 4 + 2 * index;
    if at + 2 > half(vtable)? {
        return None;
    }
    match half(vtable.checked_add(at)?)? {
        0 => None,
        offset => table.checked_add(offset).filter(|at| *at < bytes.len()),
    }
}

/// Marks the newer form of an encapsulated message.
const CONTINUATION: u32 = u32::MAX;

impl<'a> Open<'a> {
    /// Metadata of the schema.
    pub(super) fn metadata(&self) -> HashMap<String, String> {
        let pairs = self.metadata.and_then(|at| trusted::ipc_key_values(self.bytes, at));
        self.key_values(pairs).unwrap_or_default()
    }

    /// The top-level field at `position`, verified.
    fn field(&self, position: usize) -> Option<ipc::Field<'a>> {
        let (start, len) = self.fields;
        if position >= len {
            return None;
        }
        trusted::ipc_field(self.bytes, start.checked_add(position.checked_mul(4)?)?)
    }

    /// The shape of the top-level field at `position` of the file, with what the hint knows better.
    pub(super) fn refine(&self, file: &Schema, position: usize, shape: Shape) -> Shape {
        match self.field(position) {
            Some(hinted) if hinted.name() == Some(shape.field.name()) => {
                self.refine_node(file, hinted, shape)
            }
            _ => shape,
        }
    }

    /// `shape` as `hinted` says, or as it was where they do not fit.
    fn refine_node(&self, file: &Schema, hinted: ipc::Field<'_>, mut shape: Shape) -> Shape {
        let Some(data_type) = self.refine_type(file, hinted, &mut shape) else {
            return shape;
        };
        let field = Arc::make_mut(&mut shape.field);
        let mut metadata = std::mem::take(field.metadata_mut());
        if let Some(hinted) = self.key_values(hinted.custom_metadata()) {
            if hinted.contains_key(EXTENSION_TYPE_NAME_KEY) {
                metadata.remove(EXTENSION_TYPE_METADATA_KEY);
            }
            let of_file = metadata.get(FIELD_ID_KEY).cloned();
            metadata.extend(hinted);
            metadata.extend(of_file.map(|id| (FIELD_ID_KEY.to_owned(), id)));
        }
        field.set_metadata(metadata);
        field.set_data_type(data_type);
        extension::keep_if_fitting(field);
        let is_ordered = hinted.dictionary().is_some_and(|dictionary| dictionary.isOrdered());
        if is_ordered && matches!(field.data_type(), DataType::Dictionary(..)) {
            *field = std::mem::replace(field, Field::new("", DataType::Null, true))
                .with_dict_is_ordered(true);
        }
        shape
    }

    /// Refines what is below `shape`, and gives the type that it has by the hint; `None` if it cannot have that.
    fn refine_type(
        &self,
        file: &Schema,
        hinted: ipc::Field<'_>,
        shape: &mut Shape,
    ) -> Option<DataType> {
        self.take(FIELD_BYTES)?;
        let nullable = shape.field.is_nullable();
        match &mut shape.kind {
            Kind::Leaf { leaf } => {
                self.leaf_type(file, *leaf, hinted, shape.field.data_type(), nullable)
            }
            Kind::Struct(children) => {
                (hinted.type_type() == ipc::Type::Struct_).then_some(())?;
                let fields = hinted.children()?;
                // A part of an extension type is none.
                let is_whole = fields.len() == children.len();
                if !is_whole && self.names_extension(hinted) {
                    return None;
                }
                for (position, child) in children.iter_mut().enumerate() {
                    let is_same = |field: &ipc::Field<'_>| field.name() == Some(child.field.name());
                    let same = if is_whole {
                        Some(fields.get(position)).filter(is_same)
                    } else {
                        let mut same = fields.iter().filter(is_same);
                        same.next().filter(|_| same.next().is_none())
                    };
                    if let Some(field) = same {
                        take_mut(child, |child| self.refine_node(file, field, child));
                    }
                }
                Some(with_children(shape.field.data_type(), &shape.kind))
            }
            Kind::List { item, .. } => {
                let hinted_item = only_child(hinted)?;
                let parent = list_type(hinted, &item.field)?;
                take_mut(item, |item| self.refine_node(file, hinted_item, item));
                self.rename(item, hinted_item);
                Some(with_children(&parent, &shape.kind))
            }
            Kind::Map { entries, .. } => {
                (hinted.type_type() == ipc::Type::Map).then_some(())?;
                let sorted = hinted.type_as_map()?.keysSorted();
                let hinted_entries = only_child(hinted)?;
                (hinted_entries.type_type() == ipc::Type::Struct_).then_some(())?;
                let fields = hinted_entries.children().filter(|fields| fields.len() == 2)?;
                let Kind::Struct(pair) = &mut entries.kind else {
                    return None;
                };
                for (position, child) in pair.iter_mut().enumerate() {
                    let field = fields.get(position.min(1));
                    take_mut(child, |child| self.refine_node(file, field, child));
                    self.rename(child, field);
                }
                let data_type = with_children(entries.field.data_type(), &entries.kind);
                Arc::make_mut(&mut entries.field).set_data_type(data_type);
                self.rename(entries, hinted_entries);
                let parent = DataType::Map(Arc::clone(&entries.field), sorted);
                Some(with_children(&parent, &shape.kind))
            }
            Kind::Missing => None,
        }
    }

    /// The hinted type of a leaf, if there is a lossless way to it.
    fn leaf_type(
        &self,
        file: &Schema,
        leaf: usize,
        hinted: ipc::Field<'_>,
        natural: &DataType,
        nullable: bool,
    ) -> Option<DataType> {
        let data_type = match hinted.dictionary() {
            Some(dictionary) => {
                let value = Box::new(self.plain_type(hinted)?);
                // Schema.fbs: a dictionary without index type has signed 32-bit indexes.
                let index = dictionary.indexType().map_or(Some(DataType::Int32), int_type)?;
                DataType::Dictionary(Box::new(index), value)
            }
            None if hinted.type_type() == ipc::Type::RunEndEncoded => {
                let children = hinted.children().filter(|children| children.len() == 2)?;
                let (ends, values) = (children.get(0), children.get(1));
                let ends_type = int_type(ends.type_as_int()?)?;
                if !matches!(ends_type, DataType::Int16 | DataType::Int32 | DataType::Int64) {
                    return None;
                }
                let values_type = self.plain_type(values)?;
                let values_nullable = nullable || values.nullable();
                let ends = Field::new(self.text(ends.name()?)?, ends_type, false);
                let values = Field::new(self.text(values.name()?)?, values_type, values_nullable);
                DataType::RunEndEncoded(Arc::new(ends), Arc::new(values))
            }
            None => self.plain_type(hinted)?,
        };
        if data_type == *natural {
            return Some(data_type);
        }
        // parquet-cpp's "1.0" writer put UINT_32 into a bare INT64, and peers read it as that.
        if *natural == DataType::Int64 && *plain(&data_type) == DataType::UInt32 {
            return None;
        }
        let leaf = file.leaf(leaf).ok()?;
        // The unit of INT96 is the reader's choice, and there is no zone.
        if leaf.physical == Physical::Int96 {
            return None;
        }
        conversion(&leaf, &data_type).map(|_| data_type)
    }

    /// The hinted type without dictionary, if it is not nested.
    fn plain_type(&self, field: ipc::Field<'_>) -> Option<DataType> {
        use ipc::Type as T;
        Some(match field.type_type() {
            T::Null => DataType::Null,
            T::Bool => DataType::Boolean,
            T::Int => int_type(field.type_as_int()?)?,
            T::FloatingPoint => match field.type_as_floating_point()?.precision() {
                Precision::HALF => DataType::Float16,
                Precision::SINGLE => DataType::Float32,
                Precision::DOUBLE => DataType::Float64,
                _ => return None,
            },
            T::Utf8 => DataType::Utf8,
            T::LargeUtf8 => DataType::LargeUtf8,
            T::Utf8View => DataType::Utf8View,
            T::Binary => DataType::Binary,
            T::LargeBinary => DataType::LargeBinary,
            T::BinaryView => DataType::BinaryView,
            T::FixedSizeBinary => match field.type_as_fixed_size_binary()?.byteWidth() {
                length @ 0.. => DataType::FixedSizeBinary(length),
                _ => return None,
            },
            T::Date => match field.type_as_date()?.unit() {
                ipc::DateUnit::DAY => DataType::Date32,
                ipc::DateUnit::MILLISECOND => DataType::Date64,
                _ => return None,
            },
            T::Time => {
                let time = field.type_as_time()?;
                match (time.bitWidth(), time_unit(time.unit())?) {
                    (32, unit @ (TimeUnit::Second | TimeUnit::Millisecond)) => {
                        DataType::Time32(unit)
                    }
                    (64, unit @ (TimeUnit::Microsecond | TimeUnit::Nanosecond)) => {
                        DataType::Time64(unit)
                    }
                    _ => return None,
                }
            }
            T::Timestamp => {
                let timestamp = field.type_as_timestamp()?;
                let unit = time_unit(timestamp.unit())?;
                // Schema.fbs: an empty zone is none.
                let zone = match timestamp.timezone() {
                    None | Some("") => None,
                    Some(zone) => Some(Arc::from(self.text(zone)?)),
                };
                DataType::Timestamp(unit, zone)
            }
            T::Duration => DataType::Duration(time_unit(field.type_as_duration()?.unit())?),
            T::Interval => DataType::Interval(match field.type_as_interval()?.unit() {
                ipc::IntervalUnit::YEAR_MONTH => IntervalUnit::YearMonth,
                ipc::IntervalUnit::DAY_TIME => IntervalUnit::DayTime,
                ipc::IntervalUnit::MONTH_DAY_NANO => IntervalUnit::MonthDayNano,
                _ => return None,
            }),
            T::Decimal => decimal_type(field.type_as_decimal()?)?,
            _ => return None,
        })
    }

    fn names_extension(&self, hinted: ipc::Field<'_>) -> bool {
        let mut entries = hinted.custom_metadata().into_iter().flatten();
        entries.any(|entry| entry.key() == Some(EXTENSION_TYPE_NAME_KEY))
    }

    /// Names of list items and map entries are the writer's, whatever the file calls them.
    fn rename(&self, shape: &mut Shape, hinted: ipc::Field<'_>) {
        let name = hinted.name().filter(|name| name != shape.field.name());
        if let Some(name) = name.and_then(|name| self.text(name)) {
            Arc::make_mut(&mut shape.field).set_name(name);
        }
    }

    fn key_values<'b>(
        &self,
        entries: Option<impl IntoIterator<Item = ipc::KeyValue<'b>>>,
    ) -> Option<HashMap<String, String>> {
        let entries = entries?.into_iter();
        let copy = |entry: ipc::KeyValue<'b>| {
            Some((self.text(entry.key()?)?.to_owned(), self.text(entry.value()?)?.to_owned()))
        };
        entries.map(copy).collect()
    }

    /// `text`, if the budget allows to copy it.
    fn text<'b>(&self, text: &'b str) -> Option<&'b str> {
        self.take(text.len() + STRING_BYTES).map(|()| text)
    }

    fn take(&self, bytes: usize) -> Option<()> {
        self.budget.set(self.budget.get().checked_sub(bytes)?);
        Some(())
    }
}

/// The least that a flatbuffer needs for a field: a position in a vector, one of a table, a type and its tag.
const FIELD_BYTES: usize = 12;

/// The least that a flatbuffer needs for a string: its position and its length.
const STRING_BYTES: usize = 8;

/// The type without dictionary and run ends.
fn plain(data_type: &DataType) -> &DataType {
    match data_type {
        DataType::Dictionary(_, value) => value,
        DataType::RunEndEncoded(_, values) => values.data_type(),
        other => other,
    }
}

fn only_child(field: ipc::Field<'_>) -> Option<ipc::Field<'_>> {
    field.children().filter(|children| children.len() == 1).map(|children| children.get(0))
}

fn list_type(hinted: ipc::Field<'_>, item: &FieldRef) -> Option<DataType> {
    let item = Arc::clone(item);
    Some(match hinted.type_type() {
        ipc::Type::List => DataType::List(item),
        ipc::Type::LargeList => DataType::LargeList(item),
        ipc::Type::ListView => DataType::ListView(item),
        ipc::Type::LargeListView => DataType::LargeListView(item),
        ipc::Type::FixedSizeList => match hinted.type_as_fixed_size_list()?.listSize() {
            length @ 0.. => DataType::FixedSizeList(item, length),
            _ => return None,
        },
        _ => return None,
    })
}

fn int_type(int: ipc::Int<'_>) -> Option<DataType> {
    Some(match (int.bitWidth(), int.is_signed()) {
        (8, true) => DataType::Int8,
        (8, false) => DataType::UInt8,
        (16, true) => DataType::Int16,
        (16, false) => DataType::UInt16,
        (32, true) => DataType::Int32,
        (32, false) => DataType::UInt32,
        (64, true) => DataType::Int64,
        (64, false) => DataType::UInt64,
        _ => return None,
    })
}

fn decimal_type(decimal: ipc::Decimal<'_>) -> Option<DataType> {
    let precision = u8::try_from(decimal.precision()).ok().filter(|&precision| precision > 0)?;
    let scale = i8::try_from(decimal.scale()).ok()?;
    Some(match (decimal.bitWidth(), precision) {
        (32, ..=9) => DataType::Decimal32(precision, scale),
        (64, ..=18) => DataType::Decimal64(precision, scale),
        (128, ..=38) => DataType::Decimal128(precision, scale),
        (256, ..=76) => DataType::Decimal256(precision, scale),
        _ => return None,
    })
}

fn time_unit(unit: ipc::TimeUnit) -> Option<TimeUnit> {
    Some(match unit {
        ipc::TimeUnit::SECOND => TimeUnit::Second,
        ipc::TimeUnit::MILLISECOND => TimeUnit::Millisecond,
        ipc::TimeUnit::MICROSECOND => TimeUnit::Microsecond,
        ipc::TimeUnit::NANOSECOND => TimeUnit::Nanosecond,
        _ => return None,
    })
}

/// Replaces `shape` by what `refine` makes of it.
fn take_mut(shape: &mut Shape, refine: impl FnOnce(Shape) -> Shape) {
    let taken =
        Shape { field: Arc::clone(&shape.field), levels: shape.levels, kind: Kind::Missing };
    *shape = refine(std::mem::replace(shape, taken));
}

#[cfg(test)]
mod tests;
