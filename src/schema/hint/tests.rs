use arrow_schema::{FieldRef, Fields, SchemaRef, UnionFields, UnionMode};

use super::*;
use crate::format::{DecimalType, IntType, LogicalType, TimestampType};
use crate::schema::samples::{self, Optional, Repeated, Required, Tree, col, group, list, map};
use crate::schema::{
    ArrowOptions, FromArrowOptions, Mapping, Physical, Projection, change_hint_metadata,
    from_arrow, to_arrow,
};

mod annotations;

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

/// Reads `fields` when the writer's schema was `hint`.
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
fn layouts_that_others_refuse_are_said_in_metadata() {
    use DataType as D;
    let item = |data_type| Arc::new(Field::new("item", data_type, true));
    let runs = |ends: Field, values: Field| D::RunEndEncoded(Arc::new(ends), Arc::new(values));
    let own = runs(Field::new("e n", D::Int64, false), Field::new("", D::Utf8, true));
    let required =
        runs(Field::new("run_ends", D::Int16, false), Field::new("values", D::Int32, false));
    let marked = HashMap::from([("marquetry:layout".to_owned(), "list_view".to_owned())]);
    let schema = ArrowSchema::new(vec![
        Field::new("runs", own, true).with_metadata(HashMap::from([("k".into(), "v".into())])),
        Field::new("required", required, false),
        Field::new("views", D::ListView(item(D::LargeListView(item(D::Utf8View)))), true),
        Field::new("in a list", D::LargeList(item(D::ListView(item(D::Utf8)))), true),
        Field::new("a mark of others", D::List(item(D::Int32)), true).with_metadata(marked),
    ]);
    let written = from_arrow(&schema, &FromArrowOptions::new()).unwrap();
    let hint = Hint::find(&written.key_values).unwrap().unwrap();
    let message = ipc::root_as_message(&hint.message[hint.start..]).unwrap();
    let said = ipc::convert::fb_to_schema(message.header_as_schema().unwrap());
    let types: Vec<_> = said.fields().iter().map(|field| field.data_type().clone()).collect();
    let plain = |field: &Field| format!("{:?}", field.data_type());
    assert_eq!(types[0], D::Utf8);
    assert_eq!(types[1], D::Int32);
    assert!(said.fields().iter().all(|field| !plain(field).contains("View(")), "{said}");

    let back = to_arrow(
        &written.schema,
        &written.key_values,
        &Projection::all(),
        &ArrowOptions::default(),
    );
    let back = back.unwrap().schema;
    for (have, want) in back.fields().iter().zip(schema.fields()).take(4) {
        assert_eq!(have, want);
    }
    assert_eq!(*back.field(4), Field::new("a mark of others", D::List(item(D::Int32)), true));
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
        (decimal(), D::Decimal64(9, 2)),
        (decimal(), D::Decimal256(9, 2)),
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

    let hint = Hint::find(&[entry(builder.finished_data())]).unwrap().unwrap();
    let copied = hint.open().unwrap().metadata().unwrap();
    let bytes = copied.values().map(String::len).sum::<usize>();
    assert!(bytes <= hint.message.len(), "{bytes} bytes copied");
}

#[test]
fn children_of_structs_match_by_name_in_any_order() {
    use DataType as D;
    let fields = || {
        let inner = Fields::from(vec![
            Field::new("p", D::LargeUtf8, true),
            Field::new("q", D::Duration(TimeUnit::Second), true),
        ]);
        let entry = Fields::from(vec![
            Field::new("k", D::Utf8, false),
            Field::new("v", D::Struct(inner.clone()), true),
        ]);
        let entries = Field::new("entries", D::Struct(entry), false);
        let zone = Some(Arc::from("Europe/Amsterdam"));
        vec![
            Field::new("a", D::Duration(TimeUnit::Millisecond), true),
            Field::new("b", D::Timestamp(TimeUnit::Microsecond, zone), true),
            Field::new("c", D::Date64, true),
            Field::new("d", D::LargeUtf8, true),
            Field::new("e", dictionary(D::Int8, D::Utf8), true),
            Field::new_list("f", Field::new("item", D::Struct(inner), true), true),
            Field::new("g", D::Map(Arc::new(entries), false), true),
        ]
    };
    let long = |name: &str| col(Optional, Physical::Int64, name);
    let unit = crate::format::TimeUnit::Micros;
    let stamp = TimestampType { is_adjusted_to_utc: true, unit };
    let inner = |name: &str| group(Optional, name, [text("p"), long("q")]);
    let key = col(Required, Physical::ByteArray, "k").logical(LogicalType::String);
    let children = [
        long("a"),
        long("b").logical(LogicalType::Timestamp(stamp)),
        int("c").logical(LogicalType::Date),
        text("d"),
        text("e"),
        list(Optional, "f", inner("element")),
        map(Optional, "g", key, inner("v")),
    ];
    let whole = Field::new("s", D::Struct(fields().into()), true);
    let named = HashMap::from([(EXTENSION_TYPE_NAME_KEY.to_owned(), "my.own".to_owned())]);
    let hint = ArrowSchema::new(vec![whole.with_metadata(named)]);
    for in_list in [false, true] {
        let file = group(Optional, "s", children.clone());
        let file = if in_list { list(Optional, "l", file) } else { file };
        let hint = match in_list {
            false => hint.clone(),
            true => ArrowSchema::new(vec![Field::new_list("l", hint.field(0).clone(), true)]),
        };
        let (file, entry) = (samples::schema([file]), entry(&message(&hint)));
        let at = if in_list { "l.list.s" } else { "s" };
        for seed in 0..50 {
            let mut order: Vec<usize> = (0..7).collect();
            if seed > 0 {
                fastrand::Rng::with_seed(seed).shuffle(&mut order);
            }
            let names: Vec<String> =
                order.iter().map(|i| format!("{at}.{}", fields()[*i].name())).collect();
            let found = read(&file, &entry, &Projection::names(names)).schema;
            let expected: Fields = order.iter().map(|i| fields()[*i].clone()).collect();
            let found = match found.field(0).data_type() {
                D::List(item) if in_list => item.as_ref(),
                _ => found.field(0),
            };
            assert_eq!(*found.data_type(), D::Struct(expected), "{order:?}");
            // The storage of an extension type is the whole, in its order.
            let is_whole = order.is_sorted();
            assert_eq!(found.extension_type_name(), is_whole.then_some("my.own"), "{order:?}");
        }
        let inside = ["f.list.element.q", "f.list.element.p"].map(|name| format!("{at}.{name}"));
        let found = read(&file, &entry, &Projection::names(inside)).schema;
        let found = format!("{:?}", found.field(0).data_type());
        assert!(found.contains("Duration") && found.contains("LargeUtf8"), "{found}");
    }
}

#[test]
fn children_with_one_name_match_by_their_place_among_them() {
    use DataType as D;
    let types = [D::LargeUtf8, D::Utf8View, D::Utf8, dictionary(D::Int8, D::Utf8)];
    let names = ["x", "y", "x", "x"];
    let fields: Fields =
        names.iter().zip(&types).map(|(name, of)| Field::new(*name, of.clone(), true)).collect();
    let entry = entry(&message(&ArrowSchema::new(vec![Field::new("s", D::Struct(fields), true)])));
    let file = samples::schema([group(Optional, "s", names.map(text))]);
    for chosen in 1..16usize {
        let leaves: Vec<usize> = (0..4).filter(|leaf| chosen >> leaf & 1 == 1).collect();
        let mapping = read(&file, &entry, &Projection::leaves(leaves.iter().copied()));
        let D::Struct(found) = mapping.schema.field(0).data_type() else {
            panic!("a struct");
        };
        let found: Vec<_> = found.iter().map(|field| field.data_type().clone()).collect();
        let expected: Vec<_> = leaves.iter().map(|leaf| types[*leaf].clone()).collect();
        assert_eq!(found, expected);
    }
    // A file that has fewer of them than the hint: the first are the first.
    let file = samples::schema([group(Optional, "s", ["x", "x"].map(text))]);
    let mapping = read(&file, &entry, &Projection::all());
    let found = mapping.schema.field(0).data_type().to_string();
    assert!(found.contains("LargeUtf8") && !found.contains("Dictionary"), "{found}");
}

/// The message of a schema of `columns` fields with names of their own and one list of children for
/// all, each a field of `children` strings.
fn shared_children(columns: usize, children: usize) -> Vec<u8> {
    let mut builder = ipc::convert::IpcSchemaEncoder::new().schema_to_fb(&ArrowSchema::empty());
    builder.reset();
    let mut shared = Vec::new();
    for i in 0..children {
        let name = builder.create_string(&format!("{i}"));
        let of = ipc::Utf8Builder::new(&mut builder).finish().as_union_value();
        let mut field = ipc::FieldBuilder::new(&mut builder);
        field.add_name(name);
        field.add_nullable(true);
        field.add_type_type(ipc::Type::Utf8);
        field.add_type_(of);
        shared.push(field.finish());
    }
    let shared = builder.create_vector(&shared);
    let mut fields = Vec::new();
    for i in 0..columns {
        let name = builder.create_string(&format!("c{i}"));
        let of = ipc::Struct_Builder::new(&mut builder).finish().as_union_value();
        let mut field = ipc::FieldBuilder::new(&mut builder);
        field.add_name(name);
        field.add_nullable(true);
        field.add_type_type(ipc::Type::Struct_);
        field.add_type_(of);
        field.add_children(shared);
        fields.push(field.finish());
    }
    let fields = builder.create_vector(&fields);
    let mut schema = ipc::SchemaBuilder::new(&mut builder);
    schema.add_fields(fields);
    let schema = schema.finish();
    let mut message = ipc::MessageBuilder::new(&mut builder);
    message.add_version(ipc::MetadataVersion::V5);
    message.add_header_type(MessageHeader::Schema);
    message.add_header(schema.as_union_value());
    let message = message.finish();
    builder.finish(message, None);
    builder.finished_data().to_vec()
}

#[test]
fn shared_children_cost_no_more_than_the_hint_is_long() {
    // Honest: each child once.
    let hint = Hint::find(&[entry(&shared_children(1, 5_000))]).unwrap().unwrap();
    assert!(hint.open().unwrap().field(0).is_some());
    // Shared: 2,000 times 20,000 of them would be verified, and took half a minute.
    let hint = Hint::find(&[entry(&shared_children(2_000, 20_000))]).unwrap().unwrap();
    let open = hint.open().unwrap();
    let given = (0..2_000).filter(|at| open.field(*at).is_some()).count();
    assert!((1..8).contains(&given), "{given} fields of 20,000 children were verified");
    // And the names among them looked up: 2,000 hash tables of 20,000 names.
    let hint = Hint::find(&[entry(&shared_children(40, 20_000))]).unwrap().unwrap();
    let open = hint.open().unwrap();
    let before = open.budget.get();
    let file = samples::schema((0..40).map(|i| group(Optional, &format!("c{i}"), [text("7")])));
    let mapping = to_arrow(&file, &[], &Projection::all(), &ArrowOptions::default()).unwrap();
    for (position, shape) in mapping.shapes.into_iter().enumerate() {
        open.refine(&file, position, shape).unwrap();
    }
    assert!(before - open.budget.get() <= hint.message.len());
}

#[test]
fn wide_hints_of_many_kinds_are_within_their_budget() {
    // What an honest writer writes is never cut short: short names, all kinds, thousands of fields.
    use DataType as D;
    let leaf = |i: usize| {
        let name = format!("{i}");
        match i % 5 {
            0 => Field::new(name, D::LargeUtf8, true),
            1 => Field::new(name, dictionary(D::Int8, D::Utf8), true),
            2 => Field::new(name, run_ends(D::Int16, D::Utf8), true),
            3 => Field::new_list(name, Field::new("", D::LargeUtf8, true), true),
            _ => Field::new(name, D::Struct(vec![Field::new("", D::Utf8View, true)].into()), true),
        }
    };
    let column = |i: usize| {
        let name = format!("{i}");
        match i % 5 {
            3 => list(Optional, &name, text("")),
            4 => group(Optional, &name, [text("")]),
            _ => text(&name),
        }
    };
    let fields: Vec<Field> = (0..5_000).map(leaf).collect();
    let found = hinted((0..5_000).map(column), &ArrowSchema::new(fields.clone()));
    assert_eq!(*found.fields(), Fields::from(fields.clone()));
    let whole = ArrowSchema::new(vec![Field::new("s", D::Struct(fields.into()), true)]);
    let found = hinted([group(Optional, "s", (0..5_000).map(column))], &whole);
    assert_eq!(*found, whole);
}

#[test]
fn a_field_that_is_bent_leaves_the_others_their_types() {
    // Each byte of the hint bent in turn: whatever is read, a column has one type.
    let names = ["a", "b", "c"];
    let fields = names.map(|name| Field::new(name, DataType::LargeUtf8, true)).to_vec();
    let message = message(&ArrowSchema::new(fields));
    let file = samples::schema(names.map(text));
    let mut bent = [0; 2];
    for at in 0..message.len() {
        for bit in 0..8 {
            let mut message = message.clone();
            message[at] ^= 1 << bit;
            let entry = entry(&message);
            let all = read(&file, &entry, &Projection::all()).schema;
            for (i, name) in names.iter().enumerate() {
                let alone = read(&file, &entry, &Projection::names([*name])).schema;
                assert_eq!(alone.field(0), all.field(i), "byte {at}, bit {bit}, column {name}");
            }
            let kept =
                all.fields().iter().filter(|of| *of.data_type() == DataType::LargeUtf8).count();
            bent[0] += usize::from(kept == 0);
            bent[1] += usize::from((1..3).contains(&kept));
        }
    }
    assert!(bent[0] > 0 && bent[1] > 100, "{bent:?}");
}

#[test]
fn an_entry_of_the_metadata_is_changed_or_leaves() {
    let fields = ["a", "b"].map(|name| Field::new(name, DataType::LargeUtf8, true)).to_vec();
    let pairs: HashMap<String, String> =
        (0..5).map(|i| (format!("key {i}"), "x".repeat(i))).collect();
    let hint = entry(&message(&ArrowSchema::new_with_metadata(fields, pairs.clone())));
    let file = samples::schema(["a", "b"].map(text));
    let before = read(&file, &hint, &Projection::all()).schema;
    for i in 0..6 {
        for value in [None, Some(""), Some("a value that is longer"), Some("ä")] {
            let (key, mut expected) = (format!("key {i}"), pairs.clone());
            let mut key_values = [key_value(String::new()), hint.clone()];
            key_values[0].key = "other".to_owned();
            change_hint_metadata(&mut key_values, &key, value).unwrap();
            // A key that is not there is not added.
            let old = expected.remove(&key);
            if let Some(value) = value.filter(|_| old.is_some()) {
                expected.insert(key.clone(), value.to_owned());
            }
            let found = read(&file, &key_values[1], &Projection::all()).schema;
            assert_eq!(*found.metadata(), expected, "{key}: {value:?}");
            assert_eq!(found.fields(), before.fields());
        }
    }
}

#[test]
fn a_bent_hint_is_changed_without_harm() {
    let fields = vec![Field::new("a", DataType::LargeUtf8, true)];
    let metadata = [("geo", "old"), ("k", "v")].map(|(k, v)| (k.to_owned(), v.to_owned()));
    let message = message(&ArrowSchema::new_with_metadata(fields, metadata.into()));
    let file = samples::schema(["a"].map(text));
    let (mut changed, mut whole) = (0, 0);
    for at in 0..message.len() {
        for bits in [1, 2, 4, 8, 16, 32, 64, 128, 255] {
            let mut bent = message.clone();
            bent[at] ^= bits;
            for bent in [&bent[..], &bent[..at]] {
                for value in [Some("new"), None] {
                    let mut key_values = [entry(bent)];
                    let before = key_values[0].value.clone();
                    change_hint_metadata(&mut key_values, "geo", value).unwrap();
                    changed += usize::from(key_values[0].value != before);
                    let found = read(&file, &key_values[0], &Projection::all()).schema;
                    whole += usize::from(found.metadata().get("geo").map(String::as_str) == value);
                }
            }
        }
    }
    assert!(changed > 1_000 && whole > 1_000, "{changed}, {whole}");
}
