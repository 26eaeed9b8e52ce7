use arrow_schema::{Fields, SchemaRef, UnionFields, UnionMode};

use super::*;
use crate::format::{DecimalType, IntType, LogicalType, TimestampType};
use crate::schema::samples::{self, Optional, Repeated, Required, Tree, col, group, list, map};
use crate::schema::{ArrowOptions, Mapping, Projection, to_arrow};

/// The flatbuffer of a message that holds `schema`.
fn message(schema: &ArrowSchema) -> Vec<u8> {
    let mut tracker = DictionaryTracker::new(true);
    let options = IpcWriteOptions::default();
    let generator = IpcDataGenerator::default();
    generator.schema_to_bytes_with_dictionary_tracker(schema, &mut tracker, &options).ipc_message
}

/// The message, framed, in Base64, under its key.
fn entry(message: &[u8]) -> KeyValue {
    let length = (message.len() as u32).to_le_bytes();
    let bytes = [&[0xFF; 4][..], &length, message].concat();
    key_value(STANDARD.encode(bytes))
}

fn key_value(value: String) -> KeyValue {
    KeyValue { key: KEY.to_owned(), value: Some(value), ..KeyValue::default() }
}

fn read(file: &Schema, hint: &KeyValue, projection: &Projection) -> Mapping {
    to_arrow(file, std::slice::from_ref(hint), projection, &ArrowOptions::default()).unwrap()
}

/// What is read of `fields` when the writer's schema was `hint`.
fn hinted(fields: impl IntoIterator<Item = Tree>, hint: &ArrowSchema) -> SchemaRef {
    read(&samples::schema(fields), &entry(&message(hint)), &Projection::all()).schema
}

fn int(name: &str) -> Tree {
    col(Optional, Physical::Int32, name)
}

fn text(name: &str) -> Tree {
    col(Optional, Physical::ByteArray, name).logical(LogicalType::String)
}

/// Reads a nullable column `a` with a hint of this type.
fn hinted_type(column: Tree, hint: DataType) -> DataType {
    let hint = ArrowSchema::new(vec![Field::new("a", hint, true)]);
    hinted([column], &hint).field(0).data_type().clone()
}

fn dictionary(index: DataType, value: DataType) -> DataType {
    DataType::Dictionary(Box::new(index), Box::new(value))
}

fn run_ends(ends: DataType, values: DataType) -> DataType {
    DataType::RunEndEncoded(
        Arc::new(Field::new("run_ends", ends, false)),
        Arc::new(Field::new("values", values, true)),
    )
}

#[test]
fn types_that_are_reached_without_loss_are_restored() {
    use DataType as D;
    let long = || col(Optional, Physical::Int64, "a");
    let bytes = || col(Optional, Physical::ByteArray, "a");
    let date = || int("a").logical(LogicalType::Date);
    let stamp = |is_adjusted_to_utc, unit| {
        let stamp = TimestampType { is_adjusted_to_utc, unit };
        long().logical(LogicalType::Timestamp(stamp))
    };
    let decimal = || int("a").logical(LogicalType::Decimal(DecimalType { scale: 2, precision: 9 }));
    let interval = || {
        col(Optional, Physical::FixedLenByteArray(12), "a")
            .converted(crate::format::ConvertedType::Interval)
    };
    let micros = || crate::format::TimeUnit::Micros;
    let zone = |name: &str| Some(Arc::from(name));
    let table = [
        (text("a"), D::LargeUtf8),
        (text("a"), D::Utf8View),
        (bytes(), D::LargeBinary),
        (bytes(), D::BinaryView),
        (text("a"), dictionary(D::Int8, D::Utf8)),
        (text("a"), dictionary(D::UInt64, D::LargeUtf8)),
        (long(), dictionary(D::Int32, D::Int64)),
        (text("a"), run_ends(D::Int16, D::Utf8)),
        (int("a"), run_ends(D::Int64, D::Int32)),
        (long(), D::Duration(TimeUnit::Second)),
        (long(), D::Timestamp(TimeUnit::Second, None)),
        (long(), D::Date64),
        (date(), D::Date64),
        (int("a"), D::Time32(TimeUnit::Second)),
        (stamp(true, micros()), D::Timestamp(TimeUnit::Microsecond, zone("Europe/Amsterdam"))),
        (stamp(true, micros()), D::Timestamp(TimeUnit::Microsecond, zone("+05:30"))),
        (decimal(), D::Decimal32(9, 2)),
        (decimal(), D::Decimal64(18, 2)),
        (decimal(), D::Decimal256(76, 2)),
        (interval(), D::Interval(IntervalUnit::YearMonth)),
        (interval(), D::Interval(IntervalUnit::DayTime)),
    ];
    for (column, hint) in table {
        assert_eq!(hinted_type(column, hint.clone()), hint);
    }
}

#[test]
fn types_that_are_not_reached_are_ignored() {
    use DataType as D;
    let stamp = |is_adjusted_to_utc| {
        let unit = crate::format::TimeUnit::Micros;
        let stamp = TimestampType { is_adjusted_to_utc, unit };
        col(Optional, Physical::Int64, "a").logical(LogicalType::Timestamp(stamp))
    };
    let byte = || int("a").logical(LogicalType::Integer(IntType { bit_width: 8, is_signed: true }));
    let utc = || D::Timestamp(TimeUnit::Microsecond, Some(Arc::from("UTC")));
    let local = D::Timestamp(TimeUnit::Microsecond, None);
    let item = || Arc::new(Field::new("item", D::Int32, true));
    let one_field = Fields::from(vec![Field::new("x", D::Int32, true)]);
    let union = UnionFields::from_fields(vec![Field::new("x", D::Int32, true)]);
    let table = [
        (int("a"), D::Utf8, D::Int32),
        (int("a"), D::Boolean, D::Int32),
        (int("a"), D::Int16, D::Int32),
        (int("a"), dictionary(D::Int32, D::Utf8), D::Int32),
        (int("a"), dictionary(D::Int32, D::List(item())), D::Int32),
        (int("a"), D::List(item()), D::Int32),
        (int("a"), D::FixedSizeList(item(), 3), D::Int32),
        (int("a"), D::Struct(one_field), D::Int32),
        (int("a"), D::Union(union, UnionMode::Dense), D::Int32),
        (int("a"), D::FixedSizeBinary(4), D::Int32),
        (byte(), D::UInt8, D::Int8),
        (col(Optional, Physical::Int64, "a"), D::UInt32, D::Int64),
        (text("a"), D::Int64, D::Utf8),
        (stamp(true), local.clone(), utc()),
        (stamp(false), utc(), local),
        (
            col(Optional, Physical::Int96, "a"),
            D::Timestamp(TimeUnit::Millisecond, None),
            D::Timestamp(TimeUnit::Nanosecond, None),
        ),
        (
            col(Optional, Physical::FixedLenByteArray(3), "a"),
            D::FixedSizeBinary(4),
            D::FixedSizeBinary(3),
        ),
    ];
    for (column, hint, expected) in table {
        assert_eq!(hinted_type(column, hint.clone()), expected, "{hint}");
    }
}

#[test]
fn structure_names_and_nullability() {
    use DataType as D;
    let item = |data_type| Arc::new(Field::new("item", data_type, true));
    let file = || list(Optional, "a", text("element"));
    for hint in [
        D::List(item(D::Utf8View)),
        D::LargeList(item(D::LargeUtf8)),
        D::ListView(item(D::Utf8)),
        D::LargeListView(item(D::Utf8)),
        D::FixedSizeList(item(D::Utf8), 3),
        D::FixedSizeList(item(D::Utf8), 0),
    ] {
        assert_eq!(hinted_type(file(), hint.clone()), hint);
    }
    // What does not fit inside leaves the outside as hinted.
    assert_eq!(hinted_type(file(), D::LargeList(item(D::Int8))), D::LargeList(item(D::Utf8)));

    let entries = |key: &str, value: DataType| {
        let pair = vec![Field::new(key, D::Utf8, false), Field::new("v", value, true)];
        Arc::new(Field::new("entries", D::Struct(pair.into()), false))
    };
    let key = || col(Required, Physical::ByteArray, "key").logical(LogicalType::String);
    let file = map(Optional, "a", key(), text("value"));
    let hint = D::Map(entries("k", D::LargeUtf8), true);
    assert_eq!(hinted_type(file, hint.clone()), hint);

    // Nullability is that of the file, at every level.
    let inner =
        Fields::from(vec![Field::new("x", D::LargeUtf8, false), Field::new("y", D::Int32, true)]);
    let hint = ArrowSchema::new(vec![
        Field::new("s", D::Struct(inner), false),
        Field::new("b", D::LargeUtf8, true),
    ]);
    let required = || col(Required, Physical::ByteArray, "b").logical(LogicalType::String);
    let file = || group(Optional, "s", [text("x"), col(Required, Physical::Int32, "y")]);
    let read_schema = hinted([file(), required()], &hint);
    let expected =
        Fields::from(vec![Field::new("x", D::LargeUtf8, true), Field::new("y", D::Int32, false)]);
    assert_eq!(*read_schema.field(0), Field::new("s", D::Struct(expected), true));
    assert_eq!(*read_schema.field(1), Field::new("b", D::LargeUtf8, false));

    // An unannotated repetition may be any kind of list.
    let hint = D::LargeList(Arc::new(Field::new("a", D::Int32, false)));
    assert_eq!(hinted_type(col(Repeated, Physical::Int32, "a"), hint.clone()), hint);
}

#[test]
fn fields_match_by_position_and_name() {
    use DataType as D;
    let hint = ArrowSchema::new(vec![
        Field::new("b", D::LargeUtf8, true),
        Field::new("a", D::LargeUtf8, true),
        Field::new("c", D::LargeUtf8, true),
    ]);
    let types = |schema: &SchemaRef| -> Vec<DataType> {
        schema.fields().iter().map(|field| field.data_type().clone()).collect()
    };
    let read_schema = hinted(["a", "b", "c", "d"].map(text), &hint);
    assert_eq!(types(&read_schema), [D::Utf8, D::Utf8, D::LargeUtf8, D::Utf8]);

    let file = samples::schema(["b", "a", "c"].map(text));
    let entry = entry(&message(&hint));
    let mapping = read(&file, &entry, &Projection::names(["c", "b"]));
    assert_eq!(types(&mapping.schema), [D::LargeUtf8, D::LargeUtf8]);

    let without = ArrowOptions::default().with_hint(false);
    let mapping = to_arrow(&file, &[entry], &Projection::all(), &without).unwrap();
    assert_eq!(types(&mapping.schema), [D::Utf8, D::Utf8, D::Utf8]);
}

#[test]
fn pruned_structs_keep_their_hints() {
    use DataType as D;
    let inner = ["x", "y", "z"].map(|name| Field::new(name, D::LargeUtf8, true));
    let outer = Field::new("s", D::Struct(inner.to_vec().into()), true);
    let outer = outer.with_metadata(HashMap::from([("k".to_owned(), "v".to_owned())]));
    let file = samples::schema([group(Optional, "s", ["x", "y", "z"].map(text))]);
    let entry = entry(&message(&ArrowSchema::new(vec![outer])));
    let mapping = read(&file, &entry, &Projection::names(["s.z", "s.y"]));
    let expected = ["z", "y"].map(|name| Field::new(name, D::LargeUtf8, true));
    assert_eq!(*mapping.schema.field(0).data_type(), D::Struct(expected.to_vec().into()));
    assert_eq!(mapping.schema.field(0).metadata().len(), 1);
}

#[test]
fn metadata_are_merged() {
    let map = |entries: &[(&str, &str)]| -> HashMap<String, String> {
        entries.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect()
    };
    let fields = vec![
        Field::new("a", DataType::Int8, true).with_metadata(map(&[
            ("ARROW:extension:name", "arrow.bool8"),
            ("ARROW:extension:metadata", ""),
            ("PARQUET:field_id", "99"),
            ("own", "1"),
        ])),
        Field::new("b", DataType::Utf8, true),
    ];
    let hint = ArrowSchema::new_with_metadata(fields, map(&[("x", "hint"), ("y", "hint")]));
    let byte = LogicalType::Integer(IntType { bit_width: 8, is_signed: true });
    let json = col(Optional, Physical::ByteArray, "b").logical(LogicalType::Json);
    let file = samples::schema([int("a").logical(byte).id(7), json]);
    let own =
        KeyValue { key: "x".to_owned(), value: Some("file".to_owned()), ..KeyValue::default() };
    let key_values = [own, entry(&message(&hint))];
    let mapping =
        to_arrow(&file, &key_values, &Projection::all(), &ArrowOptions::default()).unwrap();
    assert_eq!(*mapping.schema.metadata(), map(&[("x", "file"), ("y", "hint")]));
    let expected = map(&[
        ("ARROW:extension:name", "arrow.bool8"),
        ("ARROW:extension:metadata", ""),
        ("PARQUET:field_id", "7"),
        ("own", "1"),
    ]);
    assert_eq!(*mapping.schema.field(0).metadata(), expected);
    let expected = map(&[("ARROW:extension:name", "arrow.json"), ("ARROW:extension:metadata", "")]);
    assert_eq!(*mapping.schema.field(1).metadata(), expected);
}

#[test]
fn forms_of_the_message() {
    let message = message(&ArrowSchema::new(vec![Field::new("a", DataType::LargeUtf8, true)]));
    let file = samples::schema([text("a")]);
    let is_heeded = |bytes: &[u8]| {
        let mapping = read(&file, &key_value(STANDARD.encode(bytes)), &Projection::all());
        *mapping.schema.field(0).data_type() == DataType::LargeUtf8
    };
    let framed = |length: u32| [&length.to_le_bytes()[..], &message].concat();
    let length = message.len() as u32;
    let marked = |frame: &[u8]| [&[0xFF; 4], frame].concat();
    assert!(is_heeded(&marked(&framed(length))));
    assert!(is_heeded(&framed(length)), "before Arrow 0.15");
    assert!(is_heeded(&marked(&[&framed(length)[..], b"rest"].concat())));
    assert!(!is_heeded(&marked(&framed(length + 1))), "ends early");
    assert!(!is_heeded(&marked(&framed(u32::MAX))));
    assert!(!is_heeded(&message), "without length");
    for bytes in [&[][..], &[0xFF; 4], &[0xFF; 7], &[0xFF; 8], &[0; 8], &[0; 64]] {
        assert!(!is_heeded(bytes), "{bytes:?}");
    }
    // Base64 without padding, and what is no Base64.
    let good = STANDARD.encode(marked(&framed(length)));
    let unpadded = good.trim_end_matches('=').to_owned();
    for (text, heeded) in [(unpadded, true), ("?".to_owned(), false), (format!("{good}!"), false)] {
        let mapping = read(&file, &key_value(text), &Projection::all());
        assert_eq!(*mapping.schema.field(0).data_type() == DataType::LargeUtf8, heeded);
    }
    let absent = KeyValue { key: KEY.to_owned(), ..KeyValue::default() };
    read(&file, &absent, &Projection::all());
}

#[test]
fn damaged_hints_are_never_fatal() {
    use DataType as D;
    let item = |data_type| Arc::new(Field::new("item", data_type, true));
    let pair = vec![Field::new("k", D::Utf8, false), Field::new("v", D::LargeUtf8, true)];
    let entries = Arc::new(Field::new("entries", D::Struct(pair.into()), false));
    let stamp = D::Timestamp(TimeUnit::Second, Some(Arc::from("UTC")));
    let metadata = HashMap::from([("key".to_owned(), "value".to_owned())]);
    let hint = ArrowSchema::new_with_metadata(
        vec![
            Field::new("a", dictionary(D::Int16, D::Utf8), true).with_metadata(metadata.clone()),
            Field::new("b", D::FixedSizeList(item(D::Decimal64(9, 2)), 3), true),
            Field::new("c", D::Map(entries, true), true),
            Field::new("d", run_ends(D::Int32, stamp), true),
        ],
        metadata,
    );
    let decimal = LogicalType::Decimal(DecimalType { scale: 2, precision: 9 });
    let key = col(Required, Physical::ByteArray, "k").logical(LogicalType::String);
    let file = samples::schema([
        text("a"),
        list(Optional, "b", int("e").logical(decimal)),
        map(Optional, "c", key, text("v")),
        col(Optional, Physical::Int64, "d"),
    ]);
    let whole = message(&hint);
    let read_schema = read(&file, &entry(&whole), &Projection::all()).schema;
    assert_eq!(read_schema.field(0), hint.field(0));
    for seed in 0..20_000 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut bytes = whole.clone();
        for _ in 0..rng.usize(1..4) {
            let at = rng.usize(..bytes.len());
            bytes[at] = if rng.bool() { rng.u8(..) } else { bytes[at] ^ (1 << rng.u8(..8)) };
        }
        if rng.u8(..8) == 0 {
            bytes.truncate(rng.usize(..bytes.len()));
        }
        // Whatever it says, it is one of the file's mappings.
        let mapping = read(&file, &entry(&bytes), &Projection::all());
        assert_eq!(mapping.leaves(), [0, 1, 2, 3, 4], "seed {seed}");
        let nullable = mapping.schema.fields().iter().all(|field| field.is_nullable());
        assert!(nullable, "seed {seed}");
    }
}

#[test]
fn shared_strings_do_not_multiply() {
    // One long value under many keys: more would be copied than the hint is long.
    let mut builder = ipc::convert::IpcSchemaEncoder::new().schema_to_fb(&ArrowSchema::empty());
    builder.reset();
    let value = builder.create_string(&"x".repeat(1 << 16));
    let mut entries = Vec::new();
    for i in 0..100 {
        let key = builder.create_string(&format!("key {i}"));
        let mut entry = ipc::KeyValueBuilder::new(&mut builder);
        entry.add_key(key);
        entry.add_value(value);
        entries.push(entry.finish());
    }
    let entries = builder.create_vector(&entries);
    let mut schema = ipc::SchemaBuilder::new(&mut builder);
    schema.add_custom_metadata(entries);
    let schema = schema.finish();
    let mut message = ipc::MessageBuilder::new(&mut builder);
    message.add_version(ipc::MetadataVersion::V5);
    message.add_header_type(MessageHeader::Schema);
    message.add_header(schema.as_union_value());
    let message = message.finish();
    builder.finish(message, None);

    let hint = Hint::find(&[entry(builder.finished_data())]).unwrap();
    let copied = hint.open().unwrap().metadata();
    let bytes = copied.values().map(String::len).sum::<usize>();
    assert!(bytes <= hint.message.len(), "{bytes} bytes copied");
}
