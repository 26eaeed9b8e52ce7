//! How columns are found, converted and generated.

use std::sync::Arc;

use arrow_array::builder::{Int32Builder, ListBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, TimestampMicrosecondType};
use arrow_array::{
    Array, ArrayRef, Date32Array, Decimal128Array, Float32Array, Int8Array, Int16Array, Int32Array,
    Int64Array, ListArray, MapArray, RecordBatch, StringArray, StructArray,
    TimestampMillisecondArray, TimestampNanosecondArray,
};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{DataType as A, Field, Fields, TimeUnit};
use delta_kernel::KernelError;
use delta_kernel::engine::arrow_conversion::TryIntoArrow;
use delta_kernel::expressions::{Expression, Predicate, Scalar};
use delta_kernel::schema::{
    ArrayType, DataType, MapType, MetadataColumnSpec, StructField, StructType,
};

use crate::support::*;

fn in_file(batch: &RecordBatch) -> (tempfile::TempDir, std::path::PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("part.parquet");
    write(&path, batch);
    (folder, path)
}

fn ints(values: &[i32]) -> ArrayRef {
    Arc::new(Int32Array::from(values.to_vec()))
}

/// The example of the documentation of the trait.
#[test]
fn the_example_of_the_contract() {
    let fields =
        vec![arrow_id(nullable("i2", A::Int32), 3), arrow_id(Field::new("i", A::Int32, false), 1)];
    let batch = RecordBatch::try_new(arrow_schema(fields), vec![ints(&[20, 21]), ints(&[1, 2])]);
    let (_folder, path) = in_file(&batch.expect("a batch"));
    let wanted = schema([
        with_id(StructField::not_null("i_logical", DataType::INTEGER), 1),
        StructField::nullable("s", DataType::STRING),
        StructField::nullable("i2", DataType::INTEGER),
    ]);
    let read = read(&handler(), &path, &wanted).expect("read");
    assert_eq!(lines(&read), ["1 | ∅ | 20", "2 | ∅ | 21"]);
    let asked: arrow_schema::Schema = wanted.as_ref().try_into_arrow().expect("Arrow");
    assert_eq!(*read.schema(), asked);
}

#[test]
fn ids_win_over_names_and_names_stand_in_at_every_level() {
    let inner = Fields::from(vec![
        arrow_id(nullable("x", A::Int32), 11),
        arrow_id(nullable("y", A::Int32), 12),
        nullable("z", A::Int32),
    ]);
    let columns: Vec<ArrayRef> = vec![ints(&[1, 2]), ints(&[3, 4]), ints(&[5, 6])];
    let s: ArrayRef = Arc::new(StructArray::new(inner.clone(), columns, None));
    let fields = vec![
        arrow_id(nullable("s", A::Struct(inner)), 1),
        arrow_id(nullable("a", A::Int32), 2),
        arrow_id(nullable("b", A::Int32), 3),
    ];
    let columns = vec![s, ints(&[7, 8]), ints(&[9, 10])];
    let batch = RecordBatch::try_new(arrow_schema(fields), columns).expect("a batch");
    let (_folder, path) = in_file(&batch);
    let int = |name: &str| StructField::nullable(name, DataType::INTEGER);
    // `x` asks for what is called `y`; the `y` of no id finds nothing, because it is taken.
    let inner = StructType::try_new([with_id(int("x"), 12), int("y"), with_id(int("z"), 99)]);
    let wanted = schema([
        with_id(int("b"), 2),
        with_id(int("a"), 3),
        with_id(StructField::nullable("renamed", inner.expect("a struct")), 1),
    ]);
    let ours = read(&handler(), &path, &wanted).expect("read");
    assert_eq!(lines(&ours), ["7 | 9 | {x: 3, y: ∅, z: 5}", "8 | 10 | {x: 4, y: ∅, z: 6}"]);
    // The kernel's handler finds two columns for `x` here, and fails.
}

#[test]
fn missing_columns_that_may_not_be_null_are_errors() {
    let batch = RecordBatch::try_from_iter([("a", ints(&[1]))]).expect("a batch");
    let (_folder, path) = in_file(&batch);
    let wanted = schema([StructField::not_null("b", DataType::INTEGER)]);
    let error = read(&handler(), &path, &wanted).expect_err("there is no such column");
    assert!(error.to_string().contains("no column b"), "{error}");
    let inner = StructType::try_new([StructField::not_null("b", DataType::INTEGER)]).expect("ok");
    let wanted = schema([StructField::nullable("a", inner)]);
    assert!(read(&handler(), &path, &wanted).is_err(), "a number is no struct");
}

/// Nulls of a column that may not be null are an error, and no nulls are none.
#[test]
fn nullability_is_that_of_the_rows() {
    let wanted = schema([StructField::not_null("a", DataType::INTEGER)]);
    let fields = || arrow_schema(vec![nullable("a", A::Int32)]);
    let batch = RecordBatch::try_new(fields(), vec![ints(&[1, 2])]).expect("a batch");
    let (_folder, path) = in_file(&batch);
    let read_one = read(&handler(), &path, &wanted).expect("read");
    assert!(!read_one.schema().field(0).is_nullable());
    let nulls: ArrayRef = Arc::new(Int32Array::from(vec![Some(1), None]));
    let batch = RecordBatch::try_new(fields(), vec![nulls]).expect("a batch");
    let (_folder, path) = in_file(&batch);
    assert!(read(&handler(), &path, &wanted).is_err());
}

#[test]
fn a_struct_without_wanted_fields_keeps_its_nulls() {
    let inner = Fields::from(vec![Field::new("old", A::Int32, false)]);
    let nulls = Some(NullBuffer::from(vec![true, false, true]));
    let s = StructArray::new(inner.clone(), vec![ints(&[1, 0, 3])], nulls);
    let item = Arc::new(nullable("element", A::Struct(inner.clone())));
    let items = StructArray::new(inner.clone(), vec![ints(&[1, 2, 3])], None);
    let offsets = OffsetBuffer::from_lengths([2, 0, 1]);
    let list = ListArray::new(Arc::clone(&item), offsets, Arc::new(items), None);
    let fields = vec![nullable("s", A::Struct(inner)), nullable("l", A::List(item))];
    let columns: Vec<ArrayRef> = vec![Arc::new(s), Arc::new(list)];
    let batch = RecordBatch::try_new(arrow_schema(fields), columns).expect("a batch");
    let (_folder, path) = in_file(&batch);
    let new = StructType::try_new([StructField::nullable("new", DataType::STRING)]).expect("ok");
    let wanted = schema([
        StructField::nullable("s", new.clone()),
        StructField::nullable("l", ArrayType::new(new, true)),
    ]);
    let read = read(&handler(), &path, &wanted).expect("read");
    let expected = ["{new: ∅} | [{new: ∅}, {new: ∅}]", "∅ | []", "{new: ∅} | [{new: ∅}]"];
    assert_eq!(lines(&read), expected);
}

/// The kernel looks at the masks of leaves alone.
#[test]
fn leaves_are_null_where_their_structs_are() {
    let inner = Fields::from(vec![
        Field::new("required", A::Int32, false),
        nullable("optional", A::Int32),
        nullable("list", A::new_list(A::Int32, true)),
    ]);
    let mut lists = ListBuilder::new(Int32Builder::new());
    for value in 0..3 {
        lists.values().append_value(value);
        lists.append(true);
    }
    let lists = lists.finish();
    let lists = ListArray::new(
        Arc::new(nullable("item", A::Int32)),
        lists.offsets().clone(),
        Arc::clone(lists.values()),
        None,
    );
    let columns: Vec<ArrayRef> = vec![ints(&[1, 2, 3]), ints(&[4, 5, 6]), Arc::new(lists)];
    let nulls = Some(NullBuffer::from(vec![true, false, true]));
    let s: ArrayRef = Arc::new(StructArray::new(inner.clone(), columns, nulls));
    let outer = Fields::from(vec![Field::new("s", A::Struct(inner), true)]);
    let nulls = Some(NullBuffer::from(vec![false, true, true]));
    let outer_array = StructArray::new(outer.clone(), vec![s], nulls);
    let fields = arrow_schema(vec![nullable("o", A::Struct(outer))]);
    let batch = RecordBatch::try_new(fields, vec![Arc::new(outer_array)]).expect("a batch");
    let (_folder, path) = in_file(&batch);
    let inner = StructType::try_new([
        StructField::not_null("required", DataType::LONG),
        StructField::nullable("optional", DataType::INTEGER),
        StructField::nullable("list", ArrayType::new(DataType::INTEGER, true)),
    ]);
    let outer = StructType::try_new([StructField::nullable("s", inner.expect("a struct"))]);
    let wanted = schema([StructField::nullable("o", outer.expect("a struct"))]);
    let ours = read(&handler(), &path, &wanted).expect("read");
    let s = ours.column(0).as_struct().column(0).as_struct().clone();
    for leaf in s.columns() {
        let is_null: Vec<_> = (0..3).map(|row| leaf.is_null(row)).collect();
        assert_eq!(is_null, [true, true, false], "{}", leaf.data_type());
    }
    let theirs = read(default_engine().parquet_handler().as_ref(), &path, &wanted).expect("read");
    assert_eq!(lines(&ours), lines(&theirs));
}

/// Delta's table of wider types, and what the kernel asks for beyond it.
#[test]
fn types_widen() {
    let decimal = |values: Vec<i128>, precision, scale| -> ArrayRef {
        let values = Decimal128Array::from(values);
        Arc::new(values.with_precision_and_scale(precision, scale).expect("a decimal"))
    };
    let cases: Vec<(ArrayRef, DataType, [&str; 2])> = vec![
        (Arc::new(Int8Array::from(vec![-1, 2])), DataType::SHORT, ["-1", "2"]),
        (Arc::new(Int8Array::from(vec![-1, 2])), DataType::INTEGER, ["-1", "2"]),
        (Arc::new(Int8Array::from(vec![-1, 2])), DataType::LONG, ["-1", "2"]),
        (Arc::new(Int8Array::from(vec![-1, 2])), DataType::DOUBLE, ["-1.0", "2.0"]),
        (Arc::new(Int16Array::from(vec![-1, 2])), DataType::INTEGER, ["-1", "2"]),
        (Arc::new(Int16Array::from(vec![-1, 2])), DataType::LONG, ["-1", "2"]),
        (Arc::new(Int16Array::from(vec![-1, 2])), DataType::DOUBLE, ["-1.0", "2.0"]),
        (ints(&[i32::MIN, 2]), DataType::LONG, ["-2147483648", "2"]),
        (ints(&[i32::MIN, 2]), DataType::DOUBLE, ["-2147483648.0", "2.0"]),
        (Arc::new(Float32Array::from(vec![0.5, 2.0])), DataType::DOUBLE, ["0.5", "2.0"]),
        (
            Arc::new(Date32Array::from(vec![-1, 1])),
            DataType::TIMESTAMP_NTZ,
            ["1969-12-31T00:00:00", "1970-01-02T00:00:00"],
        ),
        (decimal(vec![-105, 2], 5, 2), DataType::decimal(7, 2).expect("ok"), ["-1.05", "0.02"]),
        (
            decimal(vec![-105, 2], 5, 2),
            DataType::decimal(20, 4).expect("ok"),
            ["-1.0500", "0.0200"],
        ),
        (
            decimal(vec![-105, 2], 5, 2),
            DataType::decimal(38, 20).expect("ok"),
            ["-1.05000000000000000000", "0.02000000000000000000"],
        ),
        (decimal(vec![-105, 2], 18, 2), DataType::decimal(19, 2).expect("ok"), ["-1.05", "0.02"]),
        (
            Arc::new(Int8Array::from(vec![-1, 2])),
            DataType::decimal(4, 1).expect("ok"),
            ["-1.0", "2.0"],
        ),
        (
            Arc::new(Int16Array::from(vec![-1, 2])),
            DataType::decimal(6, 1).expect("ok"),
            ["-1.0", "2.0"],
        ),
        (ints(&[-1, 2]), DataType::decimal(11, 1).expect("ok"), ["-1.0", "2.0"]),
        (
            Arc::new(Int64Array::from(vec![-1, 2])),
            DataType::decimal(21, 1).expect("ok"),
            ["-1.0", "2.0"],
        ),
        (ints(&[-1, 1]), DataType::DATE, ["1969-12-31", "1970-01-02"]),
        (
            Arc::new(Int64Array::from(vec![-1, 1])),
            DataType::TIMESTAMP,
            ["1969-12-31T23:59:59.999999Z", "1970-01-01T00:00:00.000001Z"],
        ),
        (
            Arc::new(Int64Array::from(vec![-1, 1])),
            DataType::TIMESTAMP_NTZ,
            ["1969-12-31T23:59:59.999999", "1970-01-01T00:00:00.000001"],
        ),
    ];
    let default = default_engine().parquet_handler();
    for (array, to, expected) in cases {
        let from = array.data_type().clone();
        // At the top, in a struct, in a list and in a map.
        let item = Arc::new(nullable("element", from.clone()));
        let offsets = || OffsetBuffer::from_lengths([1, 1]);
        let list = ListArray::new(item, offsets(), Arc::clone(&array), None);
        let inner = Fields::from(vec![nullable("x", from.clone())]);
        let s = StructArray::new(inner.clone(), vec![Arc::clone(&array)], None);
        let pair = Fields::from(vec![
            Field::new("key", from.clone(), false),
            nullable("value", from.clone()),
        ]);
        let entries =
            StructArray::new(pair.clone(), vec![Arc::clone(&array), Arc::clone(&array)], None);
        let entries_field = Arc::new(Field::new("key_value", A::Struct(pair), false));
        let map = MapArray::new(entries_field, offsets(), entries, None, false);
        let batch = RecordBatch::try_from_iter([
            ("top", Arc::clone(&array)),
            ("s", Arc::new(s) as ArrayRef),
            ("l", Arc::new(list) as ArrayRef),
            ("m", Arc::new(map) as ArrayRef),
        ]);
        let (_folder, path) = in_file(&batch.expect("a batch"));
        let inner = StructType::try_new([StructField::nullable("x", to.clone())]).expect("ok");
        let wanted = schema([
            StructField::nullable("top", to.clone()),
            StructField::nullable("s", inner),
            StructField::nullable("l", ArrayType::new(to.clone(), true)),
            StructField::nullable("m", MapType::new(to.clone(), to.clone(), true)),
        ]);
        let ours = read(&handler(), &path, &wanted).expect("read");
        let expected = expected.map(|x| format!("{x} | {{x: {x}}} | [{x}] | {{{x}: {x}}}"));
        assert_eq!(lines(&ours), expected, "{from} to {to}");
        let top = schema([StructField::nullable("top", to.clone())]);
        let theirs = read(default.as_ref(), &path, &top).expect("the kernel reads it");
        assert_eq!(ours.column(0), theirs.column(0), "{from} to {to}");
    }
}

#[test]
fn types_that_lose_something_are_refused() {
    let array: ArrayRef = Arc::new(Int64Array::from(vec![1, 2]));
    let batch = RecordBatch::try_from_iter([("a", array)]).expect("a batch");
    let (_folder, path) = in_file(&batch);
    for to in
        [DataType::INTEGER, DataType::STRING, DataType::FLOAT, DataType::DATE, DataType::DOUBLE]
    {
        let wanted = schema([StructField::nullable("a", to.clone())]);
        let error = read(&handler(), &path, &wanted).expect_err("loses digits");
        let text = error.to_string();
        assert!(text.contains("part.parquet") || text.contains("column a"), "{text}");
    }
}

#[test]
fn timestamps_are_in_microseconds() {
    let millis = TimestampMillisecondArray::from(vec![-1, 1_001]);
    let nanos = TimestampNanosecondArray::from(vec![-1_001, 1_999]);
    let columns: [(&str, ArrayRef); 4] = [
        ("ms", Arc::new(millis.clone())),
        ("ms_utc", Arc::new(millis.with_timezone("UTC"))),
        ("ns", Arc::new(nanos.clone())),
        ("ns_utc", Arc::new(nanos.with_timezone("UTC"))),
    ];
    let batch = RecordBatch::try_from_iter(columns).expect("a batch");
    let (_folder, path) = in_file(&batch);
    let default = default_engine().parquet_handler();
    // Also those that the file has in the other kind: the same number, whatever the zone.
    for (zoned, local) in [
        (DataType::TIMESTAMP, DataType::TIMESTAMP_NTZ),
        (DataType::TIMESTAMP_NTZ, DataType::TIMESTAMP),
    ] {
        let wanted = schema([
            StructField::nullable("ms", local.clone()),
            StructField::nullable("ms_utc", zoned.clone()),
            StructField::nullable("ns", local),
            StructField::nullable("ns_utc", zoned),
        ]);
        let ours = read(&handler(), &path, &wanted).expect("read");
        let micros = ours
            .columns()
            .iter()
            .map(|column| column.as_primitive::<TimestampMicrosecondType>().values().to_vec());
        let expected = [[-1_000, 1_001_000], [-1_000, 1_001_000], [-1, 1], [-1, 1]];
        assert_eq!(micros.collect::<Vec<_>>(), expected);
        let theirs = read(default.as_ref(), &path, &wanted).expect("the kernel reads it");
        assert_eq!(ours, theirs);
        assert!(matches!(
            ours.schema().field(0).data_type(),
            A::Timestamp(TimeUnit::Microsecond, _)
        ));
    }
}

/// Years beyond 2262, in which nanoseconds end, and nanoseconds within microseconds.
#[test]
fn int96_timestamps_are_in_microseconds() {
    use delta_kernel::parquet::data_type::{Int96, Int96Type};
    use delta_kernel::parquet::file::writer::SerializedFileWriter;
    use delta_kernel::parquet::schema::parser::parse_message_type;
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("part.parquet");
    let message = "message m { required int96 zoned; required int96 local; }";
    let message = Arc::new(parse_message_type(message).expect("a schema"));
    let file = std::fs::File::create(&path).expect("a file");
    let mut writer = SerializedFileWriter::new(file, message, Arc::default()).expect("a writer");
    let mut row_group = writer.next_row_group().expect("a row group");
    let values = [(5_373_484u32, 5_000u64), (1_721_426, 6_999), (2_440_588, 1_999)];
    let values = values.map(|(day, nanos)| {
        let mut value = Int96::new();
        value.set_data(nanos as u32, (nanos >> 32) as u32, day);
        value
    });
    while let Some(mut column) = row_group.next_column().expect("a column") {
        column.typed::<Int96Type>().write_batch(&values, None, None).expect("written");
        column.close().expect("closed");
    }
    row_group.close().expect("closed");
    writer.close().expect("closed");
    let day = 86_400_000_000i64;
    let expected = [2_932_896 * day + 5, -719_162 * day + 6, 1];
    let wanted = schema([
        StructField::nullable("zoned", DataType::TIMESTAMP),
        StructField::nullable("local", DataType::TIMESTAMP_NTZ),
    ]);
    let found = read(&handler(), &path, &wanted).expect("read");
    for column in found.columns() {
        let micros = column.as_primitive::<TimestampMicrosecondType>().values().to_vec();
        assert_eq!(micros, expected);
    }
    // Compared with what is read.
    for (name, scalar) in
        [("zoned", Scalar::Timestamp(expected[1])), ("local", Scalar::TimestampNtz(expected[1]))]
    {
        let predicate = Predicate::eq(Expression::column([name]), scalar);
        let files = [meta_of(&path)];
        let found = read_batches(&handler(), &files, &wanted, Some(Arc::new(predicate)));
        let found = joined(&found.expect("read"));
        let micros = found.column(0).as_primitive::<TimestampMicrosecondType>();
        assert!(micros.values().contains(&expected[1]), "{name}: {micros:?}");
    }
}

#[test]
fn generated_columns_stand_where_they_are_wanted() {
    let folder = tempfile::tempdir().expect("a folder");
    let files: Vec<_> = [("a b.parquet", 0..5), ("c.parquet", 5..8)]
        .map(|(name, values)| {
            let path = folder.path().join(name);
            // A column of the file that is called as a generated one is not read.
            let batch = RecordBatch::try_from_iter([
                ("id", ints(&values.clone().collect::<Vec<_>>())),
                ("row_index", ints(&values.collect::<Vec<_>>())),
            ]);
            write(&path, &batch.expect("a batch"));
            meta_of(&path)
        })
        .into();
    let wanted = schema([
        StructField::create_metadata_column("row_index", MetadataColumnSpec::RowIndex),
        StructField::nullable("id", DataType::LONG),
        StructField::create_metadata_column("_file", MetadataColumnSpec::FilePath),
    ]);
    for ours in [handler(), handler().with_batch_rows(2)] {
        let batches = read_batches(&ours, &files, &wanted, None).expect("read");
        let all = joined(&batches);
        let rows = all.column(0).as_primitive::<Int64Type>().values().to_vec();
        assert_eq!(rows, [0, 1, 2, 3, 4, 0, 1, 2]);
        let ids = all.column(1).as_primitive::<Int64Type>().values().to_vec();
        assert_eq!(ids, [0, 1, 2, 3, 4, 5, 6, 7]);
        let theirs = default_engine().parquet_handler();
        let theirs = read_batches(theirs.as_ref(), &files, &wanted, None).expect("read");
        assert_eq!(all, joined(&theirs));
        assert!(lines(&all)[0].ends_with("/a%20b.parquet"), "{}", lines(&all)[0]);
    }
    // By the reserved id alone.
    let id = delta_kernel::reserved_field_ids::FILE_NAME;
    let named = schema([with_id(StructField::not_null("_file", DataType::STRING), id)]);
    let all = joined(&read_batches(&handler(), &files, &named, None).expect("read"));
    let names: Vec<_> = all.column(0).as_string::<i32>().iter().flatten().collect();
    assert_eq!(names[0], files[0].location.as_str());
    assert_eq!((names.len(), names[7]), (8, files[1].location.as_str()));
    // Of other kinds there is nothing in a file.
    let other = schema([StructField::create_metadata_column("r", MetadataColumnSpec::RowId)]);
    assert!(read_batches(&handler(), &files, &other, None).is_err());
}

#[test]
fn no_columns_have_as_many_rows_as_the_file() {
    let batch = RecordBatch::try_from_iter([("a", ints(&[1, 2, 3]))]).expect("a batch");
    let (_folder, path) = in_file(&batch);
    let wanted = schema([StructField::nullable("absent", DataType::LONG)]);
    let read_one = read(&handler(), &path, &wanted).expect("read");
    assert_eq!((read_one.num_rows(), read_one.column(0).null_count()), (3, 3));
    let nothing = schema([]);
    let batches = read_batches(&handler(), &[meta_of(&path)], &nothing, None).expect("read");
    assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), 3);
}

/// Also with a footer whose fields have ids.
#[test]
fn footers_are_those_of_the_kernel() {
    let inner = Fields::from(vec![arrow_id(Field::new("x", A::Int32, false), 3)]);
    let s = StructArray::new(inner.clone(), vec![ints(&[1])], None);
    let item = Arc::new(arrow_id(nullable("element", A::Int32), 5));
    let list = ListArray::new(Arc::clone(&item), OffsetBuffer::from_lengths([1]), ints(&[1]), None);
    let fields = vec![
        arrow_id(nullable("s", A::Struct(inner)), 2),
        arrow_id(Field::new("l", A::List(item), false), 4),
        nullable("text", A::Utf8),
        nullable("ts", A::Timestamp(TimeUnit::Millisecond, Some("UTC".into()))),
    ];
    let ts = TimestampMillisecondArray::from(vec![1]).with_timezone("UTC");
    let columns: Vec<ArrayRef> =
        vec![Arc::new(s), Arc::new(list), Arc::new(StringArray::from(vec!["x"])), Arc::new(ts)];
    let batch = RecordBatch::try_new(arrow_schema(fields), columns).expect("a batch");
    let (_folder, path) = in_file(&batch);
    let ours: &dyn delta_kernel::ParquetHandler = &handler();
    let ours = ours.read_parquet_footer(&meta_of(&path)).expect("a footer");
    let theirs = default_engine().parquet_handler();
    let theirs = theirs.read_parquet_footer(&meta_of(&path)).expect("a footer");
    assert_eq!(ours.schema, theirs.schema);
}

#[test]
fn what_is_not_there_is_not_found() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("absent.parquet");
    let file = delta_kernel::FileMeta { location: url_of(&path), last_modified: 0, size: 10 };
    let wanted = schema([StructField::nullable("a", DataType::LONG)]);
    let ours = our_engine().parquet_handler();
    let error = read_batches(ours.as_ref(), std::slice::from_ref(&file), &wanted, None);
    assert!(matches!(error, Err(KernelError::FileNotFound(_))), "{error:?}");
    let error = ours.read_parquet_footer(&file).map(|footer| footer.schema);
    assert!(matches!(error, Err(KernelError::FileNotFound(_))), "{error:?}");
    let store: Arc<dyn object_store::ObjectStore> = Arc::new(object_store::memory::InMemory::new());
    let stored = marquetry_delta::MarquetryParquetHandler::new(store);
    let file = delta_kernel::FileMeta {
        location: url::Url::parse("memory:///absent.parquet").expect("a URL"),
        last_modified: 0,
        size: 10,
    };
    let error = read_batches(&stored, &[file], &wanted, None);
    assert!(matches!(error, Err(KernelError::FileNotFound(_))), "{error:?}");
}
