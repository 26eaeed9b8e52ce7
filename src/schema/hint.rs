//! The hint `ARROW:schema` holds the writer's Arrow schema.
//!
//! Used by `to_arrow` after the natural mapping, and written with the schema of `from_arrow`.
//! Specs: Arrow columnar format, "Encapsulated message format" and Schema.fbs.
//!
//! ```text
//! | FF FF FF FF | length, i32 LE | flatbuffer Message with a Schema |     in Base64
//! ```
//!
//! The hint is applied only where it fits: columns by position and equal names, children of structs
//! by name, and only where the annotation leaves open what the hint says ([`leaves_open`]), or
//! where the column is the one that we store for the type that it is marked with ([`stand_in`]).
//! Anything else in it is ignored, and so is a broken hint: neither is an error.
//! Trap: `arrow_ipc::convert` panics on types that it does not expect, so the verified flatbuffer
//! is read here. Its tables may share children and strings, so that a short hint stands for endless
//! data: what is verified, looked at and copied is counted, and past a limit the hint is ignored.

mod layout;
mod siblings;
mod types;

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::Arc;

use arrow_ipc::writer::{DictionaryTracker, IpcDataGenerator, IpcWriteOptions};
use arrow_ipc::{self as ipc, MessageHeader, Precision};
use arrow_schema::extension::{EXTENSION_TYPE_METADATA_KEY, EXTENSION_TYPE_NAME_KEY};
use arrow_schema::{DataType, Field, Fields, IntervalUnit, Schema as ArrowSchema, TimeUnit};
use base64::Engine;
use base64::engine::general_purpose::{GeneralPurposeConfig, STANDARD};
use base64::engine::{DecodePaddingMode, GeneralPurpose};
use flatbuffers::{ForwardsUOffset, Vector, VerifierOptions};

use self::siblings::{HintPlace, Siblings, numbered};
use self::types::{decimal_type, int_type, leaves_open, list_type, only_child, plain, time_unit};
use super::arrow_options::HintUse;
use super::convert::read_conversion;
use super::extension::{self, FIELD_ID_KEY, LOGICAL_TYPE_KEY};
use super::nested::Group;
use super::node::Schema;
use super::shape::{Kind, Shape, with_children};
use super::stand_in;
use crate::bytes::Cursor;
use crate::error::{Error, Result, Spec};
use crate::format::KeyValue;
use crate::memory;
use crate::trusted;

/// The key of the hint in the file.
pub(crate) const KEY: &str = "ARROW:schema";

/// The bytes of a hint.
pub(super) struct Hint {
    message: Vec<u8>,
    /// Where the flatbuffer starts.
    start: usize,
    /// The budgets for verifying it.
    budgets: [VerifierOptions; 8],
}

/// The entry that holds `schema` as the hint of a file, its fields as they are stored.
///
/// # Errors
/// `Usage` if the schema takes 2 GiB or more.
pub(super) fn entry(schema: &ArrowSchema, fields: &Fields) -> Result<KeyValue> {
    // A file that was read may have brought its own; hints do not nest.
    let mut metadata = memory::texts(schema.metadata().iter())?;
    metadata.remove(KEY);
    let fields = layout::plain_fields(fields);
    let schema = &ArrowSchema::new_with_metadata(fields, metadata);
    let message = IpcDataGenerator::default()
        .schema_to_bytes_with_dictionary_tracker(
            schema,
            // Without it dictionaries panic.
            &mut DictionaryTracker::new(false),
            &IpcWriteOptions::default(),
        )
        .ipc_message;
    let too_long = || Error::usage("the Arrow schema is too long to be noted in the file");
    let len = message.len().next_multiple_of(8);
    let mut bytes = memory::vec_for(len + 8)?;
    bytes.extend_from_slice(&CONTINUATION.to_le_bytes());
    bytes.extend_from_slice(&i32::try_from(len).map_err(|_| too_long())?.to_le_bytes());
    bytes.extend_from_slice(&message);
    bytes.resize(len + 8, 0);
    let mut value = String::new();
    value.try_reserve_exact(base64::encoded_len(bytes.len(), true).ok_or_else(too_long)?)?;
    STANDARD.encode_string(bytes, &mut value);
    Ok(KeyValue::new(KEY, value))
}

/// A hint whose schema has been found. Its fields are verified one by one, when they are asked for:
/// a wide file has many, and a read wants few.
pub(super) struct OpenHint<'a> {
    tables: trusted::IpcTables<'a>,
    /// Where the references to the fields are, and how many.
    fields: (usize, usize),
    /// The metadata, verified.
    metadata: Option<Vector<'a, ForwardsUOffset<ipc::KeyValue<'a>>>>,
    /// Bytes that may still be looked at and copied: no more than the hint has.
    budget: Cell<usize>,
    /// Whether names of list items and map entries, and seconds, are those of the file.
    as_parquet: bool,
    /// The error of what could not be copied: then the hint is not what it would be.
    failed: Cell<Option<Error>>,
}

impl Hint {
    /// The hint among the key-values of a file, if there is one that can be decoded.
    ///
    /// # Errors
    /// `Limit(Memory)` if the system has no memory for it.
    pub(super) fn find(key_values: &[KeyValue]) -> Result<Option<Self>> {
        const BASE64: GeneralPurpose = GeneralPurpose::new(
            &base64::alphabet::STANDARD,
            GeneralPurposeConfig::new()
                .with_decode_padding_mode(DecodePaddingMode::Indifferent)
                .with_decode_allow_trailing_bits(true),
        );
        let entry = key_values.iter().find(|entry| entry.key == KEY);
        let Some(text) = entry.and_then(|entry| entry.value.as_deref()) else { return Ok(None) };
        #[cfg(test)]
        crate::steps::add(text.len());
        let mut message = memory::filled(0, base64::decoded_len_estimate(text.len()))?;
        let Ok(len) = BASE64.decode_slice(text, &mut message) else { return Ok(None) };
        message.truncate(len);
        Ok(Self::in_message(message))
    }

    fn in_message(message: Vec<u8>) -> Option<Self> {
        let mut cursor = Cursor::new(&message, Spec::Metadata("ARROW:schema"));
        let mut length = cursor.u32().ok()?;
        if length == CONTINUATION {
            length = cursor.u32().ok()?;
        }
        let start = cursor.position();
        cursor.skip(length as usize).ok()?;
        let budgets = trusted::ipc_budgets(message.len());
        Some(Self { start, message, budgets })
    }

    /// The flatbuffer, which may be cut or have bytes after its end.
    pub(super) fn flatbuffer(&self) -> Option<&[u8]> {
        self.message.get(self.start..)
    }

    /// Finds the schema in the flatbuffer.
    pub(super) fn open(&self) -> Option<OpenHint<'_>> {
        let bytes = self.flatbuffer()?;
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
        let tables = trusted::IpcTables::new(bytes, &self.budgets);
        // Metadata of the schema have a budget of their own, because faults of fields do not
        // concern them.
        let metadata = slot(bytes, schema, 2)
            .and_then(|at| trusted::IpcTables::new(bytes, &self.budgets).key_values(at));
        Some(OpenHint {
            tables,
            fields,
            metadata,
            budget: Cell::new(bytes.len()),
            as_parquet: false,
            failed: Cell::new(None),
        })
    }
}

/// Whether a type counts the milliseconds of another in seconds.
fn is_seconds_of(data_type: &DataType, natural: &DataType) -> bool {
    use DataType as D;
    use TimeUnit::{Millisecond, Second};
    matches!(
        (data_type, natural),
        (D::Timestamp(Second, _), D::Timestamp(Millisecond, _))
            | (D::Time32(Second), D::Time32(Millisecond))
    )
}

/// The number at `at`, if it is there.
pub(super) fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Cursor::new(bytes.get(at..)?, Spec::Metadata("ARROW:schema")).u32().ok()
}

/// Where the reference at `at` points to.
pub(super) fn follow(bytes: &[u8], at: usize) -> Option<usize> {
    at.checked_add(usize::try_from(word(bytes, at)?).ok()?).filter(|to| *to < bytes.len())
}

/// Where field `index` of the table at `table` is, if the table has it.
pub(super) fn slot(bytes: &[u8], table: usize, index: usize) -> Option<usize> {
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
pub(super) const CONTINUATION: u32 = u32::MAX;

impl<'a> OpenHint<'a> {
    /// Metadata of the schema.
    ///
    /// # Errors
    /// `Limit(Memory)` if the system has no memory for them.
    pub(super) fn metadata(&self) -> Result<HashMap<String, String>> {
        // A hint that is broken is as good as none.
        let metadata = self.key_values(self.metadata).unwrap_or_default();
        self.failed.take().map_or(Ok(metadata), Err)
    }

    /// Number of top-level fields.
    #[cfg(feature = "check")]
    pub(super) fn fields_len(&self) -> usize {
        self.fields.1
    }

    /// The top-level field at `position`, verified.
    pub(super) fn field(&self, position: usize) -> Option<ipc::Field<'a>> {
        let (start, len) = self.fields;
        if position >= len {
            return None;
        }
        self.tables.field(start.checked_add(position.checked_mul(4)?)?)
    }

    /// The shape of the top-level field at `position` of the file, with what the hint knows better.
    ///
    /// # Errors
    /// As [`OpenHint::metadata`].
    pub(super) fn refine(&self, file: &Schema, position: usize, mut shape: Shape) -> Result<Shape> {
        if let (Some(hinted), Some(node)) = (self.field(position), file.field(position))
            && hinted.name() == Some(shape.field.name())
        {
            self.refine_node(HintPlace::new(node), hinted, &mut shape);
        }
        self.failed.take().map_or(Ok(shape), Err)
    }

    /// Changes `shape` to `hinted`, or leaves it unchanged where they do not fit. Returns whether
    /// it is stored as hinted, with everything below it: no part, and in no other order.
    fn refine_node(&self, place: HintPlace<'_>, hinted: ipc::Field<'_>, shape: &mut Shape) -> bool {
        let Some((data_type, is_whole)) = self.refine_type(place, hinted, shape) else {
            return false;
        };
        let field = Arc::make_mut(&mut shape.field);
        // Collected, because Arrow 60 has a type of its own for metadata.
        let mut metadata = std::mem::take(field.metadata_mut()).into_iter().collect();
        if let Some(mut hinted) = self.key_values(hinted.custom_metadata()) {
            hinted.retain(|key, _| !layout::is_mark(key) && !stand_in::is_mark(key));
            merge_metadata(&mut metadata, hinted, is_whole);
        }
        field.set_metadata(metadata);
        field.set_data_type(data_type);
        extension::keep_if_fitting(field);
        let is_ordered = hinted.dictionary().is_some_and(|dictionary| dictionary.isOrdered());
        if is_ordered && matches!(field.data_type(), DataType::Dictionary(..)) {
            *field = std::mem::replace(field, Field::new("", DataType::Null, true))
                .with_dict_is_ordered(true);
        }
        is_whole
    }

    /// Refines the nodes below `shape`, and returns its type by the hint, and whether all of it is
    /// as hinted; `None`, with nothing changed, if it cannot have that type.
    fn refine_type(
        &self,
        place: HintPlace<'_>,
        hinted: ipc::Field<'_>,
        shape: &mut Shape,
    ) -> Option<(DataType, bool)> {
        self.take(FIELD_BYTES)?;
        let nullable = shape.field.is_nullable();
        let file = place.node.schema();
        match &mut shape.kind {
            Kind::Leaf { leaf } => {
                let natural = shape.field.data_type();
                Some((self.leaf_type(file, *leaf, hinted, natural, nullable)?, true))
            }
            Kind::Struct(children) => {
                (hinted.type_type() == ipc::Type::Struct_).then_some(())?;
                let fields = hinted.children()?;
                self.take(fields.len().checked_mul(NAME_BYTES)?)?;
                // Schema.fbs: a field without a name has an empty one.
                let names = fields.iter().map(|field| field.name().unwrap_or_default());
                let by_name: HashMap<_, _> = numbered(names).zip(0..).collect();
                let siblings = Siblings::from_group(place.node);
                let mut is_whole = fields.len() == children.len();
                for (position, child) in children.iter_mut().enumerate() {
                    let same = siblings.find(child).and_then(|(node, name)| {
                        Some((node, *by_name.get(&name).filter(|&&at| at < fields.len())?))
                    });
                    is_whole &= match same {
                        Some((node, at)) => {
                            self.refine_node(HintPlace::new(node), fields.get(at), child)
                                && at == position
                        }
                        None => false,
                    };
                }
                if self
                    .mark_of(hinted)
                    .is_some_and(|mark| stand_in::is_empty_struct(mark, children))
                {
                    return Some((DataType::Struct(Fields::empty()), is_whole));
                }
                Some((with_children(shape.field.data_type(), &shape.kind), is_whole))
            }
            Kind::List { item, .. } => {
                let hinted_item = only_child(hinted)?;
                let parent = layout::list_layout(hinted, list_type(hinted, &item.field)?);
                let is_whole = self.refine_node(place.item()?, hinted_item, item);
                self.rename(item, hinted_item);
                Some((with_children(&parent, &shape.kind), is_whole))
            }
            Kind::Map { entries, .. } => {
                let (data_type, is_whole) = self.refine_map(place, hinted, entries)?;
                Some((with_children(&data_type, &shape.kind), is_whole))
            }
            Kind::Missing => None,
        }
    }

    /// Like [`OpenHint::refine_type`], for a map: key and value by position, whatever their names.
    fn refine_map(
        &self,
        place: HintPlace<'_>,
        hinted: ipc::Field<'_>,
        entries: &mut Shape,
    ) -> Option<(DataType, bool)> {
        (hinted.type_type() == ipc::Type::Map).then_some(())?;
        let sorted = hinted.type_as_map()?.keysSorted();
        let hinted_entries = only_child(hinted)?;
        (hinted_entries.type_type() == ipc::Type::Struct_).then_some(())?;
        let fields = hinted_entries.children().filter(|fields| fields.len() == 2)?;
        let (Kind::Struct(pair), Group::Map(map)) = (&mut entries.kind, place.group()) else {
            return None;
        };
        let places = [HintPlace::inside(map.key), HintPlace::new(map.value)];
        let mut is_whole = true;
        for ((child, place), field) in pair.iter_mut().zip(places).zip(fields) {
            is_whole &= self.refine_node(place, field, child);
            self.rename(child, field);
        }
        let data_type = with_children(entries.field.data_type(), &entries.kind);
        Arc::make_mut(&mut entries.field).set_data_type(data_type);
        self.rename(entries, hinted_entries);
        Some((DataType::Map(Arc::clone(&entries.field), sorted), is_whole))
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
        let leaf = file.leaf(leaf).ok()?;
        let stands_for =
            self.mark_of(hinted).and_then(|mark| stand_in::restored(mark, &leaf, natural));
        let value_type = || stands_for.clone().or_else(|| self.plain_type(hinted));
        let data_type = match hinted.dictionary() {
            Some(dictionary) => {
                let value = Box::new(value_type()?);
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
            None => layout::leaf_layout(hinted, value_type()?, nullable),
        };
        if data_type == *natural || self.as_parquet && is_seconds_of(&data_type, natural) {
            return Some(natural.clone());
        }
        let fits = stands_for.as_ref() == Some(plain(&data_type))
            || leaves_open(&leaf, natural, plain(&data_type));
        // The meaning of the column is decided; a conversion to the type must exist.
        read_conversion(&leaf, &data_type).filter(|_| fits).map(|_| data_type)
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

    /// Follows the hint so far.
    pub(super) fn used(mut self, hint_use: HintUse) -> Self {
        self.as_parquet = hint_use != HintUse::All;
        self
    }

    /// The type that a column stands for, as the hint states.
    pub(super) fn mark_of<'b>(&self, hinted: ipc::Field<'b>) -> Option<&'b str> {
        let metadata = hinted.custom_metadata()?;
        self.take(metadata.len().checked_mul(NAME_BYTES)?)?;
        stand_in::mark_in(metadata.iter().map(|entry| (entry.key(), entry.value())))
    }

    /// Names of list items and map entries are the writer's, whatever the file calls them.
    fn rename(&self, shape: &mut Shape, hinted: ipc::Field<'_>) {
        if self.as_parquet {
            return;
        }
        let name = hinted.name().filter(|name| name != shape.field.name());
        if let Some(name) = name.and_then(|name| self.text(name)) {
            Arc::make_mut(&mut shape.field).set_name(name);
        }
    }

    fn key_values<'b>(
        &self,
        entries: Option<impl IntoIterator<Item = ipc::KeyValue<'b>>>,
    ) -> Option<HashMap<String, String>> {
        let mut out = HashMap::new();
        for entry in entries? {
            let (key, value) = (self.text(entry.key()?)?, self.text(entry.value()?)?);
            let mut copied = || -> Result<_> {
                out.try_reserve(1)?;
                Ok((memory::text(key)?, memory::text(value)?))
            };
            match copied() {
                Ok((key, value)) => _ = out.insert(key, value),
                Err(error) => {
                    self.failed.set(Some(error));
                    return None;
                }
            }
        }
        Some(out)
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

/// Minimum bytes of a flatbuffer for a field, except its position in a vector: those of a table, a
/// type and its tag.
const FIELD_BYTES: usize = 8;

/// Bytes of a flatbuffer for the position of a field, or of an entry of metadata, in a vector.
const NAME_BYTES: usize = 4;

/// The least that a flatbuffer needs for a string: its position and its length.
const STRING_BYTES: usize = 8;

/// Adds a hint's metadata of a field. Those from the file's annotation stay, and an extension type
/// is kept only on the whole storage that it was written for.
fn merge_metadata(
    metadata: &mut HashMap<String, String>,
    mut hinted: HashMap<String, String>,
    is_whole: bool,
) {
    let own = metadata.get(EXTENSION_TYPE_NAME_KEY);
    let named = hinted.get(EXTENSION_TYPE_NAME_KEY);
    let is_believed = is_whole && named.is_some() && own.is_none_or(|own| Some(own) == named);
    if is_believed {
        metadata.remove(EXTENSION_TYPE_METADATA_KEY);
    } else if named.is_some() || own.is_some() {
        hinted.remove(EXTENSION_TYPE_NAME_KEY);
        hinted.remove(EXTENSION_TYPE_METADATA_KEY);
    }
    for key in [FIELD_ID_KEY, LOGICAL_TYPE_KEY] {
        if metadata.contains_key(key) {
            hinted.remove(key);
        }
    }
    metadata.extend(hinted);
}

#[cfg(test)]
mod tests;
