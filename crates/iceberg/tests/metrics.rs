//! The same batches, written by iceberg's writer and by ours, have the same entry in a manifest.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::sync::Arc;

use arrow_array_58::builder::FixedSizeBinaryBuilder;
use arrow_array_58::*;
use arrow_buffer_58::{NullBuffer, OffsetBuffer};
use arrow_schema_58::{DataType, FieldRef, Schema as ArrowSchema, TimeUnit};
use iceberg::arrow::schema_to_arrow_schema;
use iceberg::io::FileIO;
use iceberg::spec::{
    DataFile, DataFileFormat, ListType, MapType, NestedField, PrimitiveType, Schema, StructType,
    Type,
};
use iceberg::writer::base_writer::data_file_writer::DataFileWriterBuilder;
use iceberg::writer::file_writer::location_generator::{
    DefaultFileNameGenerator, DefaultLocationGenerator,
};
use iceberg::writer::file_writer::rolling_writer::RollingFileWriterBuilder;
use iceberg::writer::file_writer::{FileWriter, FileWriterBuilder, ParquetWriterBuilder};
use iceberg::writer::{IcebergWriter, IcebergWriterBuilder};
use marquetry::WriteOptions;
use marquetry_iceberg::MarquetryWriterBuilder;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};

/// Every type of Iceberg, alone and in groups.
fn schema() -> Schema {
    let alone = [
        PrimitiveType::Long,
        PrimitiveType::Int,
        PrimitiveType::Boolean,
        PrimitiveType::Float,
        PrimitiveType::Double,
        PrimitiveType::Decimal { precision: 9, scale: 2 },
        PrimitiveType::Decimal { precision: 18, scale: 4 },
        PrimitiveType::Decimal { precision: 38, scale: 5 },
        PrimitiveType::Date,
        PrimitiveType::Time,
        PrimitiveType::Timestamp,
        PrimitiveType::Timestamptz,
        PrimitiveType::TimestampNs,
        PrimitiveType::String,
        PrimitiveType::Uuid,
        PrimitiveType::Fixed(5),
        PrimitiveType::Binary,
    ];
    let mut fields: Vec<_> = (1..)
        .zip(alone)
        .map(|(id, of)| Arc::new(NestedField::optional(id, format!("c{id}"), Type::Primitive(of))))
        .collect();
    let primitive =
        |id, name: &str, of| NestedField::optional(id, name, Type::Primitive(of)).into();
    let inner = StructType::new(vec![
        primitive(41, "x", PrimitiveType::Double),
        primitive(42, "s", PrimitiveType::String),
    ]);
    let element = NestedField::list_element(44, Type::Primitive(PrimitiveType::Float), false);
    let key = NestedField::map_key_element(46, Type::Primitive(PrimitiveType::String));
    let value = NestedField::map_value_element(47, Type::Primitive(PrimitiveType::Long), false);
    fields.extend([
        NestedField::optional(40, "struct", Type::Struct(inner)).into(),
        NestedField::optional(43, "list", Type::List(ListType::new(element.into()))).into(),
        NestedField::optional(45, "map", Type::Map(MapType::new(key.into(), value.into()))).into(),
        primitive(50, "no value", PrimitiveType::Long),
        primitive(51, "no number", PrimitiveType::Double),
    ]);
    Schema::builder().with_fields(fields).build().expect("a schema")
}

/// Random values of a field.
fn array(field: &FieldRef, n: usize, rng: &mut fastrand::Rng) -> ArrayRef {
    let nulls = match (field.is_nullable(), field.name().as_str()) {
        (false, _) => None,
        (true, "no value") => Some(NullBuffer::new_null(n)),
        (true, _) => Some(NullBuffer::from_iter((0..n).map(|_| rng.u8(..5) > 0))),
    };
    let mut ints = |range: std::ops::Range<i64>| -> Vec<i64> {
        (0..n).map(|_| rng.i64(range.clone())).collect()
    };
    let words = |rng: &mut fastrand::Rng| -> Vec<String> {
        (0..n).map(|_| (0..rng.usize(1..9)).map(|_| rng.char('a'..='ü')).collect()).collect()
    };
    match field.data_type() {
        DataType::Int64 => Arc::new(Int64Array::new(ints(i64::MIN..i64::MAX).into(), nulls)),
        DataType::Int32 => {
            let values: Vec<i32> = (0..n).map(|_| rng.i32(..)).collect();
            Arc::new(Int32Array::new(values.into(), nulls))
        }
        DataType::Date32 => {
            let values: Vec<i32> = (0..n).map(|_| rng.i32(-9_000..20_000)).collect();
            Arc::new(Date32Array::new(values.into(), nulls))
        }
        DataType::Boolean => {
            Arc::new(BooleanArray::new((0..n).map(|_| rng.bool()).collect(), nulls))
        }
        DataType::Float32 => {
            let values: Vec<f32> =
                (0..n).map(|_| if rng.u8(..9) == 0 { f32::NAN } else { rng.f32() - 0.5 }).collect();
            Arc::new(Float32Array::new(values.into(), nulls))
        }
        DataType::Float64 => {
            let none = field.name() == "no number";
            let values: Vec<f64> = (0..n)
                .map(|_| if none || rng.u8(..9) == 0 { f64::NAN } else { rng.f64() - 0.5 })
                .collect();
            Arc::new(Float64Array::new(values.into(), nulls))
        }
        DataType::Decimal128(precision, scale) => {
            let max = 10i128.pow(u32::from(*precision));
            let values: Vec<i128> = (0..n).map(|_| rng.i128(-max + 1..max)).collect();
            let decimals = Decimal128Array::new(values.into(), nulls);
            Arc::new(decimals.with_precision_and_scale(*precision, *scale).expect("within"))
        }
        DataType::Time64(_) => {
            Arc::new(Time64MicrosecondArray::new(ints(0..86_400_000_000).into(), nulls))
        }
        DataType::Timestamp(TimeUnit::Microsecond, zone) => {
            let values = ints(-1 << 50..1 << 50);
            let instants = TimestampMicrosecondArray::new(values.into(), nulls);
            Arc::new(instants.with_timezone_opt(zone.clone()))
        }
        DataType::Timestamp(_, zone) => {
            let values = ints(-1 << 60..1 << 60);
            let instants = TimestampNanosecondArray::new(values.into(), nulls);
            Arc::new(instants.with_timezone_opt(zone.clone()))
        }
        DataType::Utf8 => {
            let words = words(rng);
            let is_valid = |i| nulls.as_ref().is_none_or(|nulls: &NullBuffer| nulls.is_valid(i));
            let values = words.iter().enumerate().map(|(i, word)| is_valid(i).then_some(word));
            Arc::new(values.collect::<StringArray>())
        }
        DataType::LargeBinary => {
            let words = words(rng);
            let is_valid = |i| nulls.as_ref().is_none_or(|nulls: &NullBuffer| nulls.is_valid(i));
            let values =
                words.iter().enumerate().map(|(i, of)| is_valid(i).then_some(of.as_bytes()));
            Arc::new(values.collect::<LargeBinaryArray>())
        }
        DataType::FixedSizeBinary(width) => {
            let mut values = FixedSizeBinaryBuilder::new(*width);
            for i in 0..n {
                let bytes: Vec<u8> = (0..*width).map(|_| rng.u8(..)).collect();
                match nulls.as_ref().is_none_or(|nulls| nulls.is_valid(i)) {
                    true => values.append_value(bytes).expect("the width"),
                    false => values.append_null(),
                }
            }
            Arc::new(values.finish())
        }
        DataType::Struct(fields) => {
            let children = fields.iter().map(|of| hidden(array(of, n, rng), nulls.as_ref()));
            Arc::new(StructArray::new(fields.clone(), children.collect(), nulls))
        }
        DataType::List(element) => {
            let offsets = lengths(n, nulls.as_ref(), rng);
            let values = array(element, offsets.last().map_or(0, |n| *n as usize), rng);
            Arc::new(ListArray::new(element.clone(), offsets, values, nulls))
        }
        DataType::Map(entries, sorted) => {
            let offsets = lengths(n, nulls.as_ref(), rng);
            let below = array(entries, offsets.last().map_or(0, |n| *n as usize), rng);
            let below = below.as_any().downcast_ref::<StructArray>().expect("a struct").clone();
            Arc::new(MapArray::new(entries.clone(), offsets, below, nulls, *sorted))
        }
        other => panic!("no values of {other}"),
    }
}

/// Lists of up to three items. Null ones have none.
fn lengths(n: usize, nulls: Option<&NullBuffer>, rng: &mut fastrand::Rng) -> OffsetBuffer<i32> {
    let is_null = |i| nulls.is_some_and(|nulls| nulls.is_null(i));
    OffsetBuffer::from_lengths((0..n).map(|i| if is_null(i) { 0 } else { rng.usize(..4) }))
}

/// The values of a child, null where its parent is: the visitor of iceberg counts NaNs there, too.
fn hidden(child: ArrayRef, nulls: Option<&NullBuffer>) -> ArrayRef {
    let nulls = NullBuffer::union(child.nulls(), nulls);
    make_array(child.to_data().into_builder().nulls(nulls).build().expect("of its length"))
}

fn batch(schema: &ArrowSchema, n: usize, rng: &mut fastrand::Rng) -> RecordBatch {
    let columns = schema.fields().iter().map(|field| array(field, n, rng)).collect();
    RecordBatch::try_new(Arc::new(schema.clone()), columns).expect("a batch")
}

/// Writes the batches to a file.
async fn write(builder: impl FileWriterBuilder, path: &str, batches: &[RecordBatch]) -> DataFile {
    let file = FileIO::new_with_fs().new_output(path).expect("a path");
    let mut writer = builder.build(file).await.expect("a writer");
    for batch in batches {
        writer.write(batch).await.expect("written");
    }
    let mut files = writer.close().await.expect("closed");
    assert_eq!(files.len(), 1);
    files.remove(0).partition_spec_id(0).build().expect("a data file")
}

/// Bounds as the manifest has them.
fn serialized(bounds: &HashMap<i32, iceberg::spec::Datum>) -> BTreeMap<i32, Vec<u8>> {
    let bytes = |bound: &iceberg::spec::Datum| bound.to_bytes().expect("a value").to_vec();
    bounds.iter().map(|(id, bound)| (*id, bytes(bound))).collect()
}

fn sorted(counts: &HashMap<i32, u64>) -> BTreeMap<i32, u64> {
    counts.iter().map(|(id, n)| (*id, *n)).collect()
}

#[tokio::test]
async fn metrics_are_those_of_the_writer_of_iceberg() {
    let seed = fastrand::u64(..);
    let mut rng = fastrand::Rng::with_seed(seed);
    let folder = tempfile::tempdir().expect("a folder");
    let schema = Arc::new(schema());
    let arrow = schema_to_arrow_schema(&schema).expect("a schema of Arrow");
    for case in 0..10 {
        let sizes: Vec<usize> = (0..rng.usize(1..5)).map(|_| rng.usize(1..200)).collect();
        let batches: Vec<_> = sizes.iter().map(|n| batch(&arrow, *n, &mut rng)).collect();
        let rows = 64;
        let path = |who: &str| folder.path().join(format!("{who}-{case}.parquet"));
        let path = |who: &str| path(who).to_str().expect("a name").to_owned();
        let theirs = ParquetWriterBuilder::new(
            WriterProperties::builder().set_max_row_group_row_count(Some(rows)).build(),
            schema.clone(),
        );
        let theirs = write(theirs, &path("theirs"), &batches).await;
        let options = WriteOptions::default().with_row_group_rows(rows as u64);
        let ours = MarquetryWriterBuilder::new(schema.clone()).with_options(options);
        let ours = write(ours, &path("ours"), &batches).await;

        let at = format!("seed {seed}, case {case}");
        assert_eq!(ours.record_count(), theirs.record_count(), "{at}");
        assert_eq!(sorted(ours.value_counts()), sorted(theirs.value_counts()), "{at}");
        assert_eq!(sorted(ours.null_value_counts()), sorted(theirs.null_value_counts()), "{at}");
        assert_eq!(sorted(ours.nan_value_counts()), sorted(theirs.nan_value_counts()), "{at}");
        assert_eq!(serialized(ours.lower_bounds()), serialized(theirs.lower_bounds()), "{at}");
        assert_eq!(serialized(ours.upper_bounds()), serialized(theirs.upper_bounds()), "{at}");
        assert!(ours.lower_bounds().len() >= 20, "{at}: {}", ours.lower_bounds().len());
        assert_eq!(
            ours.nan_value_counts()[&51] + ours.null_value_counts()[&51],
            ours.record_count()
        );

        // Sizes and offsets are those of our file, as another reader has them.
        let file = File::open(path("ours")).expect("the file");
        assert_eq!(ours.file_size_in_bytes(), file.metadata().expect("its size").len(), "{at}");
        let reader = SerializedFileReader::new(file).expect("a footer");
        let groups = reader.metadata().row_groups();
        let offsets: Vec<i64> = groups.iter().filter_map(|group| group.file_offset()).collect();
        assert_eq!(ours.split_offsets(), Some(&*offsets), "{at}");
        assert_eq!(offsets.len(), sizes.iter().sum::<usize>().div_ceil(rows), "{at}");
        let mut column_sizes: BTreeMap<i32, u64> = BTreeMap::new();
        for column in groups.iter().flat_map(|group| group.columns()) {
            let id = column.column_descr().self_type().get_basic_info().id();
            *column_sizes.entry(id).or_default() += column.compressed_size() as u64;
        }
        assert_eq!(sorted(ours.column_sizes()), column_sizes, "{at}");
    }
}

/// In the total order, the bounds of a row group of NaNs are NaNs.
#[tokio::test]
async fn bounds_are_never_nan() {
    let fields = [
        NestedField::required(1, "f", Type::Primitive(PrimitiveType::Float)),
        NestedField::required(2, "d", Type::Primitive(PrimitiveType::Double)),
        NestedField::required(3, "nan", Type::Primitive(PrimitiveType::Double)),
    ];
    let schema = Schema::builder().with_fields(fields.map(Arc::new)).build().expect("a schema");
    let schema = Arc::new(schema);
    let arrow = Arc::new(schema_to_arrow_schema(&schema).expect("a schema of Arrow"));
    let floats = vec![f32::NAN, -f32::NAN, 1.0, 2.0, f32::NAN, f32::NAN];
    let doubles = floats.iter().copied().map(f64::from);
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Float32Array::from(floats.clone())),
        Arc::new(Float64Array::from_iter_values(doubles)),
        Arc::new(Float64Array::from(vec![f64::NAN; 6])),
    ];
    let batch = RecordBatch::try_new(arrow, columns).expect("a batch");
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("nan.parquet");
    let options = WriteOptions::default().with_row_group_rows(2).with_total_order(true);
    let builder = MarquetryWriterBuilder::new(schema).with_options(options);
    let file = write(builder, path.to_str().expect("a name"), &[batch]).await;
    let both = |value: f32| {
        let double = f64::from(value).to_le_bytes();
        BTreeMap::from([(1, value.to_le_bytes().to_vec()), (2, double.to_vec())])
    };
    assert_eq!(serialized(file.lower_bounds()), both(1.0));
    assert_eq!(serialized(file.upper_bounds()), both(2.0));
    assert_eq!(sorted(file.nan_value_counts()), BTreeMap::from([(1, 4), (2, 4), (3, 6)]));
}

#[tokio::test]
async fn bounds_of_long_strings_are_bounds() {
    let field = NestedField::required(1, "s", Type::Primitive(PrimitiveType::String));
    let schema = Arc::new(Schema::builder().with_fields([field.into()]).build().expect("a schema"));
    let arrow = Arc::new(schema_to_arrow_schema(&schema).expect("a schema of Arrow"));
    let [least, most] = ["a".repeat(500), "ü".repeat(500)];
    let values = StringArray::from(vec![most.as_str(), least.as_str()]);
    let batch = RecordBatch::try_new(arrow, vec![Arc::new(values)]).expect("a batch");
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("long.parquet");
    let builder = MarquetryWriterBuilder::new(schema);
    let file = write(builder, path.to_str().expect("a name"), &[batch]).await;
    let [lower, upper] =
        [file.lower_bounds(), file.upper_bounds()].map(|of| serialized(of)[&1].clone());
    assert!(lower <= least.into_bytes() && !lower.is_empty());
    assert!(upper >= most.into_bytes());
    assert!(lower.len() < 500 && upper.len() < 1_000);
}

#[tokio::test]
async fn a_data_file_writer_rolls_over_our_files() {
    let folder = tempfile::tempdir().expect("a folder");
    let schema = Arc::new(schema());
    let arrow = schema_to_arrow_schema(&schema).expect("a schema of Arrow");
    let location = folder.path().to_str().expect("a name").to_owned();
    let options = WriteOptions::default().with_row_group_rows(100);
    let builder = RollingFileWriterBuilder::new(
        MarquetryWriterBuilder::new(schema).with_options(options),
        50_000,
        FileIO::new_with_fs(),
        DefaultLocationGenerator::with_data_location(location),
        DefaultFileNameGenerator::new("part".to_owned(), None, DataFileFormat::Parquet),
    );
    let mut writer = DataFileWriterBuilder::new(builder).build(None).await.expect("a writer");
    let mut rng = fastrand::Rng::with_seed(7);
    for _ in 0..20 {
        writer.write(batch(&arrow, 100, &mut rng)).await.expect("written");
    }
    let files = writer.close().await.expect("closed");
    assert!(files.len() > 1, "{}", files.len());
    assert_eq!(files.iter().map(|file| file.record_count()).sum::<u64>(), 2_000);
    for file in files {
        let reader = marquetry::Reader::open(file.file_path()).expect("a file");
        let rows: usize = reader
            .batches()
            .expect("batches")
            .map(|batch| batch.expect("a batch").num_rows())
            .sum();
        assert_eq!(rows as u64, file.record_count());
    }
}
