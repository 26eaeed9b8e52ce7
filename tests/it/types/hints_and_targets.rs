//! Tests hints, kept encodings and target schemas.

use std::sync::Arc;

use marquetry::arrow_schema::{DataType, Field, Fields, Schema, TimeUnit};
use marquetry::format::*;
use marquetry::schema::{Dictionaries, FIELD_ID_KEY, MatchBy, NameMapping};
use marquetry::{ErrorKind, Reader, Spec};
use serde_json::{Value, json};

use crate::support::*;

fn open(name: &str) -> Reader {
    Reader::open(testdata(&format!("{name}.parquet"))).expect(name).threads(1)
}

/// A file whose `ARROW:schema` gives its columns these types.
fn hinted(
    elements: Vec<SchemaElement>,
    chunks: Vec<Chunk>,
    rows: i64,
    schema: &Schema,
) -> bytes::Bytes {
    let mut tracker = arrow_ipc::writer::DictionaryTracker::new(true);
    let options = arrow_ipc::writer::IpcWriteOptions::default();
    let message = arrow_ipc::writer::IpcDataGenerator::default()
        .schema_to_bytes_with_dictionary_tracker(schema, &mut tracker, &options)
        .ipc_message;
    let mut bytes = vec![0xFF; 4];
    bytes.extend(u32::try_from(message.len()).expect("short").to_le_bytes());
    bytes.extend(message);
    with_hint_text(elements, chunks, rows, &encode(&bytes))
}

fn with_hint_text(
    elements: Vec<SchemaElement>,
    chunks: Vec<Chunk>,
    rows: i64,
    text: &str,
) -> bytes::Bytes {
    let pair = filled!(KeyValue { key: "ARROW:schema".into(), value: Some(text.into()) });
    file_with(elements, vec![(rows, chunks)], |meta| meta.key_value_metadata = Some(vec![pair]))
        .into()
}

fn encode(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for chunk in bytes.chunks(3) {
        let word = chunk
            .iter()
            .enumerate()
            .fold(0u32, |word, (i, b)| word | u32::from(*b) << (16 - 8 * i));
        for i in 0..4 {
            let digit = char::from(DIGITS[(word >> (18 - 6 * i) & 63) as usize]);
            out.push(if i <= chunk.len() { digit } else { '=' });
        }
    }
    out
}

fn coded_ints() -> Chunk {
    let indices = [&[1][..], &levels_v2(&[0, 0, 1, 1, 1, 0], 1)].concat();
    Chunk::new(Type::Int32, 6, &[v1(6, Encoding::RleDictionary, &indices)])
        .with_dictionary(dictionary(2, &ints(&[5, 6])))
}

fn expected() -> Vec<Value> {
    [5, 5, 6, 6, 6, 5].map(|v| json!(v)).to_vec()
}

#[test]
fn types_that_only_the_hint_knows_come_back() {
    let schema = open("hints").schema().expect("a schema");
    let types: Vec<&DataType> = schema.fields().iter().map(|f| f.data_type()).collect();
    assert!(matches!(types[0], DataType::Dictionary(_, value) if **value == DataType::Utf8));
    assert_eq!(*types[1], DataType::LargeUtf8);
    assert!(matches!(types[2], DataType::LargeList(_)));
    assert!(matches!(types[3], DataType::FixedSizeList(_, 2)));
    assert_eq!(*types[4], DataType::Duration(TimeUnit::Microsecond));
    assert_eq!(
        *types[6],
        DataType::Timestamp(TimeUnit::Microsecond, Some("Europe/Amsterdam".into()))
    );
    assert_eq!(*types[8], DataType::Null);
    let mut options = open("hints").read_options().clone();
    options.arrow = options.arrow.with_hint(false);
    let plain = open("hints").options(options).threads(1);
    assert_eq!(*plain.schema().expect("a schema").field(0).data_type(), DataType::Utf8);
    assert_eq!(rows(&read_with(plain).expect("rows")).len(), 60);
}

#[test]
fn a_hint_that_is_broken_or_contradicts_is_ignored() {
    let elements = vec![required("v", Type::Int32)];
    for text in ["", "!!!", "AAAA", "/////wAAAAA=", "/////3gAAAAQAAAA"] {
        let file = with_hint_text(elements.clone(), vec![coded_ints()], 6, text);
        let reader = Reader::new(file).expect("a footer").threads(1);
        assert_eq!(column(&read_with(reader).expect("rows")), expected(), "{text:?}");
    }
    for wrong in [
        DataType::Utf8,
        DataType::Boolean,
        DataType::new_list(DataType::Int32, true),
        DataType::Int8,
    ] {
        let schema = Schema::new(vec![Field::new("v", wrong.clone(), false)]);
        let file = hinted(elements.clone(), vec![coded_ints()], 6, &schema);
        let reader = Reader::new(file).expect("a footer").threads(1);
        assert_eq!(
            *reader.schema().expect("a schema").field(0).data_type(),
            DataType::Int32,
            "{wrong}"
        );
        assert_eq!(column(&read_with(reader).expect("rows")), expected());
    }
}

#[test]
fn dictionaries_and_runs_of_numbers_are_kept() {
    let run_ends = Arc::new(Field::new("run_ends", DataType::Int32, false));
    let values = Arc::new(Field::new("values", DataType::Int32, true));
    for kept in [
        DataType::Dictionary(Box::new(DataType::UInt8), Box::new(DataType::Int32)),
        DataType::RunEndEncoded(run_ends, values),
    ] {
        let schema = Schema::new(vec![Field::new("v", kept.clone(), true)]);
        let file = hinted(vec![required("v", Type::Int32)], vec![coded_ints()], 6, &schema);
        for batch_rows in [4, 100] {
            let reader =
                Reader::new(file.clone()).expect("a footer").threads(1).batch_rows(batch_rows);
            let batches = read_with(reader).expect("rows");
            assert_eq!(*batches[0].schema().field(0).data_type(), kept);
            assert_eq!(column(&batches), expected(), "{kept}");
        }
        // Runs are runs: of six slots, three.
        if let DataType::RunEndEncoded(..) = kept {
            use marquetry::arrow_array::cast::AsArray;
            let batches = read_with(Reader::new(file).expect("a footer").threads(1)).expect("rows");
            let runs = batches[0].column(0).as_run::<marquetry::arrow_array::types::Int32Type>();
            assert_eq!(runs.values().len(), 3);
        }
    }
}

#[test]
fn dictionaries_of_strings_are_kept_on_request() {
    let reader = open("plain_types_v2").dictionaries(Dictionaries::Named(vec!["text".into()]));
    let schema = reader.schema().expect("a schema");
    let field = schema.field_with_name("text").expect("a column");
    assert!(matches!(field.data_type(), DataType::Dictionary(..)));
    let plain = rows(&read_with(open("plain_types_v2")).expect("rows"));
    assert_eq!(rows(&read_with(reader).expect("rows")), plain);
}

#[test]
fn a_target_schema_widens_reorders_and_fills() {
    let target = Schema::new(vec![
        Field::new("new", DataType::Utf8, true),
        Field::new("i8", DataType::Int64, true),
        Field::new("f32", DataType::Float64, true),
        Field::new("dec5", DataType::Decimal256(40, 10), true),
        Field::new("ts_ms", DataType::Timestamp(TimeUnit::Microsecond, None), true),
        Field::new("text", DataType::LargeBinary, true),
        Field::new("u16", DataType::Int32, true),
    ]);
    let reader =
        open("plain_types_v1").target(Arc::new(target.clone()), MatchBy::Name).expect("reachable");
    let batches = read_with(reader).expect("rows");
    assert_eq!(batches[0].schema().fields(), target.fields());
    let plain =
        read_with(open("plain_types_v1").project(["i8", "f32", "ts_ms", "u16"]).expect("columns"))
            .expect("rows");
    for (wide, narrow) in rows(&batches).iter().zip(rows(&plain)) {
        assert_eq!(wide[0], Value::Null);
        assert_eq!(
            [&wide[1], &wide[2], &wide[4], &wide[6]],
            [&narrow[0], &narrow[1], &narrow[2], &narrow[3]]
        );
    }
}

#[test]
fn a_target_that_would_lose_something_names_the_column() {
    for wrong in [DataType::Int8, DataType::Utf8, DataType::Timestamp(TimeUnit::Nanosecond, None)] {
        let target = Schema::new(vec![Field::new("i64", wrong, true)]);
        let error =
            open("plain_types_v1").target(Arc::new(target), MatchBy::Name).expect_err("lossy");
        assert_eq!(error.kind(), marquetry::ErrorKind::Usage);
        assert!(error.to_string().contains("i64"), "{error}");
    }
    let target = Schema::new(vec![Field::new("absent", DataType::Int32, false)]);
    assert!(open("plain_types_v1").target(Arc::new(target), MatchBy::Name).is_err());
}

#[test]
fn a_target_reaches_into_structs_and_matches_by_field_id() {
    let inner = Fields::from(vec![
        Field::new("z", DataType::new_list(DataType::Int64, true), true),
        Field::new("w", DataType::Int8, true),
        Field::new("x", DataType::Int64, true),
    ]);
    let target = Schema::new(vec![Field::new("struct", DataType::Struct(inner), true)]);
    let reader = open("nested").target(Arc::new(target), MatchBy::Name).expect("reachable");
    let found = rows(&read_with(reader).expect("rows"));
    let plain =
        rows(&read_with(open("nested").project(["struct"]).expect("a column")).expect("rows"));
    for (found, plain) in found.iter().zip(plain) {
        assert_eq!(
            (&found[0]["x"], &found[0]["z"], &found[0]["w"]),
            (&plain[0]["x"], &plain[0]["z"], &Value::Null)
        );
    }
    let element = filled!(SchemaElement { field_id: Some(3), ..required("old name", Type::Int32) });
    let file = bytes::Bytes::from(file(vec![element], 6, vec![coded_ints()]));
    let id = [("PARQUET:field_id".to_owned(), "3".to_owned())].into();
    let target =
        Schema::new(vec![Field::new("new name", DataType::Int64, false).with_metadata(id)]);
    let reader = Reader::new(file)
        .expect("a footer")
        .target(Arc::new(target), MatchBy::FieldId)
        .expect("reachable");
    assert_eq!(column(&read_with(reader.threads(1)).expect("rows")), expected());
}

#[test]
fn views_hold_the_same_values_as_offsets() {
    for name in
        ["plain_types_v1", "plain_types_v2", "delta_byte_array_v1", "delta_length_byte_array_v2"]
    {
        let views = open(name).views(true);
        assert_eq!(
            *views
                .schema()
                .expect("a schema")
                .field_with_name("text")
                .expect("a column")
                .data_type(),
            DataType::Utf8View
        );
        for batch_rows in [5, 1000] {
            let found = rows(&read_with(views.clone().batch_rows(batch_rows)).expect("rows"));
            assert_eq!(found, rows(&read_with(open(name)).expect("rows")), "{name}");
        }
    }
}

#[test]
fn the_parquet_crate_reads_the_same_from_nested_tables() {
    use arrow_array_60 as theirs;
    use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
    // Compared by count of rows and elements: their arrow is another version than ours.
    for name in ["nested", "nested_v2", "trips"] {
        let file = std::fs::read(testdata(&format!("{name}.parquet"))).expect(name);
        let reader = ParquetRecordBatchReaderBuilder::try_new(bytes::Bytes::from(file))
            .expect("a file")
            .build()
            .expect("a reader");
        let batches: Vec<theirs::RecordBatch> = reader.collect::<Result<_, _>>().expect("rows");
        let ours = read_with(open(name)).expect("rows");
        let nulls = |i: usize| {
            batches.iter().map(|b| theirs::Array::logical_null_count(b.column(i))).sum::<usize>()
        };
        for (i, field) in ours[0].schema().fields().iter().enumerate() {
            use marquetry::arrow_array::Array;
            let found: usize = ours.iter().map(|b| b.column(i).logical_null_count()).sum();
            assert_eq!(found, nulls(i), "{name}.{}", field.name());
        }
    }
}

/// A struct of columns whose Arrow types only the hint knows, in a file of ours.
fn struct_of_hinted_types() -> (bytes::Bytes, marquetry::arrow_array::StructArray) {
    use marquetry::arrow_array::types::Int8Type;
    use marquetry::arrow_array::*;
    let words = ["one", "two", "three", "four"];
    let columns: [(&str, ArrayRef); 5] = [
        ("a", Arc::new(DurationSecondArray::from(vec![1, 2, 3, 4]))),
        (
            "b",
            Arc::new(
                TimestampMicrosecondArray::from(vec![10, 20, 30, 40])
                    .with_timezone("Europe/Amsterdam"),
            ),
        ),
        ("c", Arc::new(Date64Array::from(vec![0, 86_400_000, 172_800_000, 259_200_000]))),
        ("d", Arc::new(LargeStringArray::from(words.to_vec()))),
        ("e", Arc::new(words.into_iter().collect::<DictionaryArray<Int8Type>>())),
    ];
    let fields = columns
        .iter()
        .map(|(name, array)| Field::new(*name, array.data_type().clone(), true))
        .collect::<Vec<_>>();
    let arrays = columns.into_iter().map(|(_, array)| array).collect();
    let rows = StructArray::new(fields.into(), arrays, None);
    let batch = RecordBatch::try_from_iter([("s", Arc::new(rows.clone()) as ArrayRef)]);
    let batch = batch.expect("a batch");
    let mut writer = marquetry::Writer::to(Vec::new(), batch.schema()).expect("a writer");
    writer.write(&batch).expect("rows");
    let (_, file) = writer.into_inner().expect("a file");
    (file.into(), rows)
}

#[test]
fn children_of_a_struct_keep_their_types_and_values_in_any_order() {
    use marquetry::arrow_array::cast::AsArray;
    let (file, rows) = struct_of_hinted_types();
    let reader = Reader::new(file).expect("a file").threads(1);
    for order in ["edcba", "abcde", "cab", "bacde", "d"] {
        let names: Vec<String> = order.chars().map(|name| format!("s.{name}")).collect();
        let found = read_with(reader.clone().project(&names).expect("columns")).expect("rows");
        let found = found[0].column(0).as_struct();
        assert_eq!(found.num_columns(), order.len());
        for (position, name) in order.chars().enumerate() {
            let expected = rows.column_by_name(&name.to_string()).expect("a child");
            assert_eq!(found.column(position), expected, "{order}: {name}");
        }
    }
}

#[test]
fn a_predicate_may_name_the_children_of_a_struct_in_any_order() {
    let (file, _) = struct_of_hinted_types();
    let reader = Reader::new(file).expect("a file").threads(1);
    for (text, expected) in [
        ("s.e = 'two' and s.b is not null and s.a is not null", 1),
        ("s.d > 'a' and s.c >= date '1970-01-02' and s.b is not null", 3),
        ("s.b > timestamp '1970-01-01 00:00:00.000015Z' and s.a is not null", 3),
        ("s.e is not null and s.d is not null and s.c is not null", 4),
    ] {
        let predicate = marquetry::Predicate::parse(text).expect(text);
        for names in [&["s.a"][..], &["s.e", "s.a"], &["s.d", "s.b", "s.c"]] {
            let reader = reader.clone().project(names).expect("columns");
            let found = reader.filter(predicate.clone()).count().expect(text);
            assert_eq!(found, expected, "{text} of {names:?}");
        }
    }
}

#[test]
fn a_nested_column_that_only_the_target_has_is_null_in_predicates_too() {
    use marquetry::Predicate;
    use marquetry::arrow_array::types::Int32Type;
    use marquetry::arrow_array::*;
    // The struct is null in the second of three rows; the lists have 1, 0 and 2 elements.
    let a: ArrayRef = Arc::new(Int32Array::from(vec![1, 2, 3]));
    let fields = Fields::from(vec![Field::new("a", DataType::Int32, true)]);
    let nulls = vec![true, false, true].into();
    let rows: ArrayRef = Arc::new(StructArray::new(fields.clone(), vec![a.clone()], Some(nulls)));
    let elements: ArrayRef = Arc::new(StructArray::new(fields, vec![a], None));
    let item = Arc::new(Field::new("element", elements.data_type().clone(), true));
    let offsets = arrow_buffer::OffsetBuffer::from_lengths([1, 0, 2]);
    let lists: ArrayRef = Arc::new(ListArray::new(item, offsets, elements, None));
    let id: ArrayRef = Arc::new(PrimitiveArray::<Int32Type>::from(vec![7, 8, 9]));
    let batch = RecordBatch::try_from_iter([("c0", rows), ("l", lists), ("id", id)]);
    let batch = batch.expect("a batch");
    let mut writer = marquetry::Writer::to(Vec::new(), batch.schema()).expect("a writer");
    writer.write(&batch).expect("rows");
    let (_, file) = writer.into_inner().expect("a file");
    let reader = Reader::new(bytes::Bytes::from(file)).expect("a file").threads(1);

    let inner = |names: &[&str]| {
        let deep = Fields::from(vec![Field::new("x", DataType::Utf8, true)]);
        let field = |name: &&str| match *name {
            "zz" => Field::new("zz", DataType::Int64, true),
            "deep" => Field::new("deep", DataType::Struct(deep.clone()), true),
            name => Field::new(name, DataType::Int32, true),
        };
        DataType::Struct(names.iter().map(field).collect())
    };
    let target = |names: &[&str]| {
        Arc::new(Schema::new(vec![
            Field::new("c0", inner(names), true),
            Field::new("l", DataType::new_list(inner(names), true), true),
            Field::new("gone", inner(names), true),
            Field::new("id", DataType::Int32, true),
        ]))
    };
    let count = |target: &Arc<Schema>, columns: &[&str], text: &str| {
        let reader = reader.clone().target(target.clone(), MatchBy::Name).expect("reachable");
        let reader = reader.project(columns).expect("columns");
        let reader = reader.filter(Predicate::parse(text).expect(text));
        let batches = read_with(reader.clone())?;
        let found = batches.iter().map(RecordBatch::num_rows).sum::<usize>();
        assert_eq!(reader.count()?, found as u64, "{text}");
        Ok::<usize, marquetry::Error>(found)
    };
    let whole = target(&["a", "zz", "deep"]);
    for (text, expected) in [
        ("c0.zz is null", 3),
        ("c0.zz is not null", 0),
        ("c0.zz = 1", 0),
        ("not c0.zz = 1", 0),
        ("c0.zz is null and c0.a = 1", 1),
        ("c0.deep is null", 3),
        ("c0.deep.x is null", 3),
        ("gone.zz is null and id > 7", 2),
        ("gone is null", 3),
        // The elements are there, and what they do not have is null.
        ("any(l.zz) is null", 2),
        ("all(l.zz) is null", 3),
        ("any(l.zz) = 1", 0),
        ("any(l.deep.x) is null and id = 9", 1),
    ] {
        for columns in [&["id"][..], &["c0", "l", "id"], &["l"]] {
            let found = count(&whole, columns, text).expect(text);
            assert_eq!(found, expected, "{text} of {columns:?}");
        }
    }
    let function = Predicate::function(["c0.zz", "id"], |batch: &RecordBatch| {
        assert_eq!(*batch.column(0).data_type(), DataType::Int64);
        let nulls = (0..batch.num_rows()).map(|i| Some(batch.column(0).is_null(i)));
        Ok(nulls.collect::<BooleanArray>())
    });
    let with_target = reader.clone().target(whole, MatchBy::Name).expect("reachable");
    assert_eq!(with_target.filter(function).count().expect("rows"), 3);
    // Nothing of the struct is read at all: it is null or not, but what it does not have is null.
    let none = target(&["zz"]);
    let reader = reader.clone().options(marquetry::read::ReadOptions::default());
    let mut options = reader.read_options().clone();
    options.arrow = options.arrow.with_target(none, MatchBy::Name);
    options.projection = marquetry::schema::Projection::names(["id"]);
    let narrow = |text: &str| {
        let reader = reader.clone().options(options.clone());
        reader.filter(Predicate::parse(text).expect(text)).count()
    };
    assert_eq!(narrow("c0.zz is null").expect("rows"), 3);
    // No leaf that is read shows how long the lists are, and whether the struct is null.
    for text in ["any(l.zz) is null", "c0 is null"] {
        let error = narrow(text).expect_err(text);
        assert!(matches!(error.kind(), marquetry::ErrorKind::Unsupported(_)), "{error}");
        assert!(error.to_string().contains("none of the wanted fields"), "{error}");
    }
}

#[test]
fn byte_strings_without_annotation_are_text_on_request() {
    let text = LogicalType::String;
    let annotated =
        filled!(SchemaElement { logical_type: Some(text), ..required("t", Type::ByteArray) });
    let bson = filled!(SchemaElement {
        logical_type: Some(LogicalType::Bson),
        ..required("o", Type::ByteArray)
    });
    let elements = || {
        vec![
            required("b", Type::ByteArray),
            annotated.clone(),
            bson.clone(),
            group("g", FieldRepetitionType::Required, 1),
            leaf("e", Type::ByteArray, FieldRepetitionType::Required),
        ]
    };
    let chunk =
        |value: &str| Chunk::new(Type::ByteArray, 1, &[v1(1, Encoding::Plain, &texts(&[value]))]);
    let chunks = || ["b", "t", "o", "e"].map(chunk).to_vec();
    let types = |reader: &Reader| -> Vec<DataType> {
        let schema = reader.schema().expect("a schema");
        let DataType::Struct(inner) = schema.field(3).data_type() else { panic!("{schema}") };
        let top = schema.fields().iter().take(3).map(|field| field.data_type().clone());
        top.chain(inner.iter().map(|field| field.data_type().clone())).collect()
    };
    use DataType::{Binary, BinaryView, LargeBinary, LargeUtf8, Utf8, Utf8View};
    let plain = Reader::new(bytes::Bytes::from(file(elements(), 1, chunks()))).expect("a footer");
    assert_eq!(types(&plain), [Binary, Utf8, Binary, Binary]);
    let texts = plain.clone().binary_as_utf8(true);
    assert_eq!(types(&texts), [Utf8, Utf8, Binary, Utf8]);
    let found =
        column(&read_with(texts.clone().project(["g.e"]).expect("a column")).expect("rows"));
    assert_eq!(found, [json!({ "e": "e" })]);
    assert_eq!(types(&texts.clone().views(true)), [Utf8View, Utf8View, BinaryView, Utf8View]);
    assert_eq!(types(&texts.binary_as_utf8(false)), [Binary, Utf8, Binary, Binary]);
    let some = plain.clone().binary_columns_as_utf8(["g", "t"]);
    assert_eq!(types(&some), [Binary, Utf8, Binary, Utf8]);
    let unknown = plain.binary_columns_as_utf8(["x"]);
    assert_eq!(unknown.schema().expect_err("no such column").kind(), ErrorKind::Usage);

    // Also where the writer noted that they are bytes.
    let inner = Fields::from(vec![Field::new("e", Binary, false)]);
    let of_writer = Schema::new(vec![
        Field::new("b", LargeBinary, false),
        Field::new("t", Utf8, false),
        Field::new("o", Binary, false),
        Field::new("g", DataType::Struct(inner), false),
    ]);
    let hinted = Reader::new(hinted(elements(), chunks(), 1, &of_writer)).expect("a footer");
    assert_eq!(types(&hinted), [LargeBinary, Utf8, Binary, Binary]);
    assert_eq!(types(&hinted.binary_as_utf8(true)), [LargeUtf8, Utf8, Binary, Utf8]);
}

#[test]
fn text_on_request_is_checked() {
    let body = [&2u32.to_le_bytes()[..], &[0xC3, 0x28]].concat();
    let chunk = Chunk::new(Type::ByteArray, 1, &[v1(1, Encoding::Plain, &body)]);
    let file = file(vec![required("b", Type::ByteArray)], 1, vec![chunk]);
    let reader = Reader::new(bytes::Bytes::from(file)).expect("a footer").binary_as_utf8(true);
    let error = read_with(reader.clone()).expect_err("not UTF-8");
    assert_eq!(error.kind(), ErrorKind::Malformed(Spec::LogicalTypes("STRING")));
    assert_eq!(error.at().column.as_deref(), Some("b"));
    assert!(error.message().contains("not UTF-8") && error.message().contains("\\xc3("), "{error}");
    assert_eq!(column(&read_with(reader.lossy_utf8(true)).expect("rows")), [json!("\u{fffd}(")]);
}

/// A file with these columns, with statistics and bloom filters.
fn file_of(columns: Vec<(&str, arrow_array::ArrayRef)>) -> bytes::Bytes {
    use marquetry::{WriteOptions, Writer};
    let batch = arrow_array::RecordBatch::try_from_iter(columns).expect("a batch");
    let sink = marquetry::io::WriteSink(Vec::new());
    let bloom = |options: WriteOptions, field: &Arc<Field>| {
        options.with_column(field.name().as_str(), |column| column.with_bloom(Default::default()))
    };
    let options = batch.schema_ref().fields().iter().fold(WriteOptions::new(), bloom);
    let mut writer = Writer::new(sink, batch.schema(), options).expect("a writer");
    writer.write(&batch).expect("written");
    writer.into_inner().expect("closed").1.into()
}

#[test]
fn the_widenings_of_table_formats_are_read_exactly() {
    use arrow_array::*;
    let numbers = [-128i8, -1, 0, 7, 127];
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("i8", Arc::new(Int8Array::from_iter_values(numbers))),
        ("i16", Arc::new(Int16Array::from_iter_values([i16::MIN, -1, 0, 7, i16::MAX]))),
        ("i32", Arc::new(Int32Array::from_iter_values([i32::MIN, -1, 0, 7, i32::MAX]))),
        ("i64", Arc::new(Int64Array::from_iter_values([i64::MIN, -1, 0, 7, i64::MAX]))),
        ("u32", Arc::new(UInt32Array::from_iter_values([u32::MAX, 1, 0, 7, 9]))),
        ("date", Arc::new(Date32Array::from_iter_values([-719_162, -1, 0, 7, 20_000]))),
        (
            "dec",
            Arc::new(
                Decimal128Array::from_iter_values([-99, -1, 0, 7, 99])
                    .with_precision_and_scale(2, 1)
                    .expect("a decimal"),
            ),
        ),
        (
            "dec64",
            Arc::new(
                Decimal128Array::from_iter_values([-(10i128.pow(18) - 1), -1, 0, 7, 99])
                    .with_precision_and_scale(18, 3)
                    .expect("a decimal"),
            ),
        ),
    ];
    let file = file_of(columns);
    let nanos = |unit| DataType::Timestamp(unit, None);
    let (zeros19, zeros20) = ("0".repeat(19), "0".repeat(20));
    let cases: Vec<(&str, DataType, Vec<String>)> = vec![
        (
            "i8",
            DataType::Decimal128(5, 2),
            ["-128.00", "-1.00", "0.00", "7.00", "127.00"].map(String::from).to_vec(),
        ),
        (
            "i16",
            DataType::Decimal128(10, 0),
            vec![i16::MIN.to_string(), "-1".into(), "0".into(), "7".into(), i16::MAX.to_string()],
        ),
        (
            "i32",
            DataType::Decimal128(10, 0),
            vec![i32::MIN.to_string(), "-1".into(), "0".into(), "7".into(), i32::MAX.to_string()],
        ),
        (
            "i32",
            DataType::Decimal128(38, 20),
            [i32::MIN.to_string(), "-1".into(), "0".into(), "7".into(), i32::MAX.to_string()]
                .map(|n| format!("{n}.{zeros20}"))
                .to_vec(),
        ),
        (
            "i64",
            DataType::Decimal128(20, 0),
            vec![i64::MIN.to_string(), "-1".into(), "0".into(), "7".into(), i64::MAX.to_string()],
        ),
        (
            "i64",
            DataType::Decimal256(40, 19),
            [i64::MIN.to_string(), "-1".into(), "0".into(), "7".into(), i64::MAX.to_string()]
                .map(|n| format!("{n}.{zeros19}"))
                .to_vec(),
        ),
        (
            "u32",
            DataType::Decimal64(11, 1),
            [u32::MAX.to_string(), "1".into(), "0".into(), "7".into(), "9".into()]
                .map(|n| format!("{n}.0"))
                .to_vec(),
        ),
        ("date", nanos(TimeUnit::Second), vec![]),
        ("date", nanos(TimeUnit::Microsecond), vec![]),
        (
            "dec",
            DataType::Decimal128(21, 20),
            ["-9.9", "-0.1", "0.0", "0.7", "9.9"].map(|n| format!("{n}{zeros19}")).to_vec(),
        ),
        ("dec", DataType::Decimal256(60, 58), vec![]),
        ("dec64", DataType::Decimal128(38, 23), vec![]),
    ];
    for (name, wanted, texts) in cases {
        let target = Arc::new(Schema::new(vec![Field::new(name, wanted.clone(), true)]));
        let reader = || Reader::new(file.clone()).expect("a file");
        let wide = reader().target(target, MatchBy::Name);
        let wide = wide.unwrap_or_else(|e| panic!("{name} as {wanted}: {e}")).threads(1);
        let narrow = reader().project([name]).expect("a column").threads(1);
        let (wide, narrow) = (read_with(wide).expect("rows"), read_with(narrow).expect("rows"));
        let (wide, narrow) = (wide[0].column(0), narrow[0].column(0));
        let cast = arrow_cast::cast(narrow, &wanted).expect("a cast");
        assert_eq!(wide, &cast, "{name} as {wanted}");
        for (i, text) in texts.iter().enumerate() {
            let shown = arrow_cast::display::array_value_to_string(wide, i).expect("a text");
            assert_eq!(shown, *text, "{name} as {wanted}");
        }
        // Statistics and bloom filters are widened as the values are.
        for i in 0..5 {
            let text = arrow_cast::display::array_value_to_string(wide, i).expect("a text");
            let quoted = if name == "date" { format!("'{text}'") } else { text };
            for op in ["=", "<", ">="] {
                let filter = format!("{name} {op} {quoted}");
                let target = Arc::new(Schema::new(vec![Field::new(name, wanted.clone(), true)]));
                let reader = reader().target(target, MatchBy::Name).expect("reachable");
                let found = reader.filter(filter.parse::<marquetry::Predicate>().expect(&filter));
                let found = found.count().unwrap_or_else(|e| panic!("{filter}: {e}"));
                let ordered = |a: usize, b: usize| {
                    arrow_ord::cmp::lt(&wide.slice(a, 1), &wide.slice(b, 1))
                        .expect("comparable")
                        .value(0)
                };
                let expected = (0..5).filter(|row| match op {
                    "=" => *row == i,
                    "<" => ordered(*row, i),
                    _ => !ordered(*row, i),
                });
                assert_eq!(found, expected.count() as u64, "{filter} as {wanted}");
            }
        }
    }
    // No room for all digits, a zone, and unsigned numbers of 64 bits.
    let refused = [
        ("i32", DataType::Decimal128(10, 1)),
        ("i64", DataType::Decimal128(18, 0)),
        ("i64", DataType::Decimal128(38, 20)),
        ("date", DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))),
        ("dec", DataType::Decimal128(20, 20)),
    ];
    for (name, wanted) in refused {
        let target = Arc::new(Schema::new(vec![Field::new(name, wanted.clone(), true)]));
        let error = Reader::new(file.clone()).expect("a file").target(target, MatchBy::Name);
        assert_eq!(error.expect_err(name).kind(), ErrorKind::Usage, "{name} as {wanted}");
    }
}

/// A field with an id.
fn numbered(name: &str, id: i32, data_type: DataType) -> Field {
    let id = [(FIELD_ID_KEY.to_owned(), id.to_string())].into();
    Field::new(name, data_type, true).with_metadata(id)
}

#[test]
fn a_name_mapping_gives_ids_at_every_depth_to_a_file_that_has_none() {
    let mapping = r#"[
        {"field-id": 1, "names": ["row", "id"]},
        {"field-id": 2, "names": ["stops"], "fields": [
            {"field-id": 3, "names": ["element"], "fields": [
                {"field-id": 4, "names": ["lat"]}, {"field-id": 5, "names": ["name"]}]}]},
        {"field-id": 6, "names": ["tags"], "fields": [
            {"field-id": 7, "names": ["key"]}, {"field-id": 8, "names": ["value"]}]},
        {"field-id": 9, "names": ["vendor of old"]},
        {"names": ["payment"]}]"#;
    let mapping = NameMapping::from_json(mapping).expect("a mapping");
    // Names of other fields of the file, so that a field found by its name would be seen.
    let stop = Fields::from(vec![
        numbered("lat", 5, DataType::Utf8),
        numbered("name", 4, DataType::Float64),
        numbered("lon", 10, DataType::Float64),
    ]);
    let stops = DataType::List(Arc::new(numbered("element", 3, DataType::Struct(stop))));
    let entries = Fields::from(vec![
        numbered("key", 7, DataType::Utf8).with_nullable(false),
        numbered("value", 8, DataType::Utf8),
    ]);
    let entries = Field::new("entries", DataType::Struct(entries), false);
    let target = Arc::new(Schema::new(vec![
        numbered("fare", 1, DataType::Int64),
        numbered("halts", 2, stops),
        numbered("marks", 6, DataType::Map(Arc::new(entries), false)),
        numbered("vendor", 9, DataType::Utf8),
        numbered("payment", 11, DataType::Utf8),
    ]));
    let plain = rows(&read_with(open("trips")).expect("rows"));
    let reader = open("trips")
        .name_mapping(mapping.clone())
        .target(target.clone(), MatchBy::FieldId)
        .expect("reachable");
    let found = rows(&read_with(reader).expect("rows"));
    assert_eq!(found.len(), plain.len());
    let places = open("trips").schema().expect("a schema");
    let of = |name: &str| places.index_of(name).expect("a column");
    let (mut stops, mut tags) = (0, 0);
    for (found, plain) in found.iter().zip(&plain) {
        assert_eq!(found[0], plain[of("id")]);
        let halts = found[1].as_array().expect("a list");
        for (halt, stop) in halts.iter().zip(plain[of("stops")].as_array().expect("a list")) {
            assert_eq!([&halt["lat"], &halt["name"]], [&stop["name"], &stop["lat"]]);
            assert_eq!(halt["lon"], Value::Null, "its id is not that of lon");
            stops += 1;
        }
        assert_eq!(found[2], plain[of("tags")]);
        tags += usize::from(found[2] != json!([]));
        assert_eq!([&found[3], &found[4]], [&Value::Null, &Value::Null]);
    }
    assert!(stops > 0 && tags > 0);
    // What the mapping names, the schema has.
    let schema = open("trips").name_mapping(mapping.clone()).schema().expect("a schema");
    assert_eq!(schema.field(of("id")).metadata().get(FIELD_ID_KEY), Some(&"1".to_owned()));
    assert!(!schema.field(of("fare")).metadata().contains_key(FIELD_ID_KEY));

    // A file that has some id is read by its own.
    let element = filled!(SchemaElement { field_id: Some(3), ..required("id", Type::Int32) });
    let file = bytes::Bytes::from(file(vec![element], 6, vec![coded_ints()]));
    let reader = Reader::new(file).expect("a footer").name_mapping(mapping);
    let reader = reader.target(target, MatchBy::FieldId).expect("reachable").project(["fare"]);
    let found = rows(&read_with(reader.expect("a column")).expect("rows"));
    assert!(found.iter().all(|row| row[0] == Value::Null), "{found:?}");
}

#[test]
fn run_ends_of_a_missing_column_that_are_too_small_for_a_batch_make_the_batches_smaller() {
    use marquetry::arrow_array::{Array, ArrayRef, Int32Array, RecordBatch};
    let n: ArrayRef = Arc::new(Int32Array::from_iter_values(0..100_000));
    let batch = RecordBatch::try_from_iter([("n", n)]).expect("a batch");
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("n.parquet");
    let mut writer = marquetry::Writer::create(&path, batch.schema()).expect("a writer");
    writer.write(&batch).expect("rows");
    writer.finish().expect("a footer");
    let field = |name, data_type, nullable| Arc::new(Field::new(name, data_type, nullable));
    let ends = field("run_ends", DataType::Int16, false);
    let runs = DataType::RunEndEncoded(ends, field("values", DataType::Utf8, true));
    let fields = [("n", DataType::Int32), ("r", runs)].map(|(name, of)| Field::new(name, of, true));
    let target = Arc::new(Schema::new(fields.to_vec()));
    for batch_rows in [1 << 10, 1 << 16] {
        let reader = Reader::open(&path).expect("a file").batch_rows(batch_rows);
        let reader = reader.target(target.clone(), MatchBy::Name).expect("a missing column");
        let mut rows = 0;
        for batch in reader.batches().expect("a plan") {
            let batch = batch.expect("rows");
            rows += batch.num_rows();
            assert_eq!(batch.column(1).logical_null_count(), batch.num_rows());
        }
        assert_eq!(rows, 100_000);
    }
}

#[test]
fn a_filter_finds_text_that_is_not_utf8_as_it_is_read() {
    use marquetry::arrow_array::{ArrayRef, BinaryArray};
    use marquetry::col;
    let count = |values: &[&[u8]], filter| {
        let column: ArrayRef = Arc::new(BinaryArray::from_iter_values(values));
        let reader = Reader::new(file_of(vec![("s", column)])).expect("a file");
        let reader = reader.binary_as_utf8(true).lossy_utf8(true).threads(1);
        reader.filter(filter).count().expect("a count")
    };
    let mended = "a\u{FFFD}";
    // By bounds.
    assert_eq!(count(&[b"a\xFF"], col("s").eq(mended)), 1);
    assert_eq!(count(&[b"a\xFF"], col("s").gt(mended)), 0);
    assert_eq!(count(&[b"a\xFF"], col("s").is_null()), 0);
    // By the bloom filter, or the dictionary.
    assert_eq!(count(&[b"a", b"a\xFF", b"b"], col("s").eq(mended)), 1);
    assert_eq!(count(&[b"a", b"a\xFF", b"b", b"a\xFF"], col("s").is_in([mended, "c"])), 2);
}

#[test]
fn a_filter_finds_floats_of_16_bits_that_are_read_as_bytes() {
    use marquetry::arrow_array::{ArrayRef, Float16Array};
    use marquetry::col;
    let values = [1.0, 1.000_976_562_5, 1.5].map(half::f16::from_f64);
    let column: ArrayRef = Arc::new(Float16Array::from_iter_values(values));
    let reader = Reader::new(file_of(vec![("v", column)])).expect("a file").threads(1);
    for data_type in [DataType::FixedSizeBinary(2), DataType::Binary] {
        let target = Schema::new(vec![Field::new("v", data_type, false)]);
        let reader = reader.clone().target(Arc::new(target), MatchBy::Name).expect("a target");
        for value in values {
            let filter = col("v").eq(value.to_le_bytes().to_vec());
            assert_eq!(reader.clone().filter(filter).count().expect("a count"), 1, "{value}");
        }
    }
}
