//! Tests that written rows come back: random tables through the writer and the reader, and through
//! the reader of the `parquet` crate.

use marquetry::Reader;
use marquetry::arrow_array::*;
use marquetry::arrow_schema::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::support::cells::{Cell, columns, leaves, plain_type};
use crate::support::generate::{Case, case, every_case};
use crate::support::read_with;

/// Reports where two columns differ first.
fn assert_same(name: &str, schema: &Schema, found: &[Vec<Cell>], expected: &[Vec<Cell>]) {
    for ((found, expected), field) in found.iter().zip(expected).zip(schema.fields()) {
        assert_eq!(found.len(), expected.len(), "rows of {field}: {name}");
        let differ = found.iter().zip(expected).position(|(a, b)| a != b);
        if let Some(i) = differ {
            let (found, expected) = (&found[i], &expected[i]);
            panic!("row {i} of {field}:\n   found {found:?}\nexpected {expected:?}\n{name}");
        }
    }
}

fn comes_back(case: &Case) {
    let name = &case.name;
    let reader = Reader::new(case.file.clone()).unwrap_or_else(|e| panic!("{e}: {name}"));
    let read = reader.schema().unwrap_or_else(|e| panic!("{e}: {name}"));
    assert_eq!(read.fields(), case.schema.fields(), "{name}");
    let mut metadata = case.schema.metadata().clone();
    metadata.extend(case.key_values.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())));
    assert_eq!(read.metadata(), &metadata, "{name}");
    let rows: usize = case.batches.iter().map(RecordBatch::num_rows).sum();
    assert_eq!(reader.rows().expect("a count"), rows as u64, "{name}");
    let back = read_with(reader).unwrap_or_else(|e| panic!("{e}: {name}"));
    for batch in &back {
        assert_eq!(batch.schema().fields(), case.schema.fields(), "{name}");
    }
    let found = columns(&case.schema, &back);
    assert_same(name, &case.schema, &found, &columns(&case.schema, &case.batches));
}

#[test]
fn random_tables_come_back_as_they_were() {
    every_case(3000, |seed| comes_back(&case(seed)));
}

/// Every type that a leaf may have.
fn every_leaf() -> Vec<DataType> {
    use DataType as D;
    let mut types = vec![
        D::Null,
        D::Boolean,
        D::Int8,
        D::Int32,
        D::Int64,
        D::UInt16,
        D::UInt64,
        D::Float16,
        D::Float32,
        D::Float64,
        D::Decimal32(5, 2),
        D::Decimal64(15, 2),
        D::Decimal128(30, 2),
        D::Decimal256(70, 2),
        D::Date32,
        D::Date64,
        D::Time32(TimeUnit::Second),
        D::Time64(TimeUnit::Nanosecond),
        D::Timestamp(TimeUnit::Second, None),
        D::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        D::Duration(TimeUnit::Second),
        D::Interval(IntervalUnit::YearMonth),
        D::Interval(IntervalUnit::DayTime),
        D::Interval(IntervalUnit::MonthDayNano),
        D::Utf8,
        D::LargeUtf8,
        D::Utf8View,
        D::Binary,
        D::LargeBinary,
        D::BinaryView,
        D::FixedSizeBinary(3),
    ];
    let plain = types.split_off(1);
    for of in &plain {
        types.push(D::Dictionary(Box::new(D::Int16), Box::new(of.clone())));
        let ends = Arc::new(Field::new("run_ends", D::Int32, false));
        types.push(D::RunEndEncoded(ends, Arc::new(Field::new("values", of.clone(), true))));
    }
    types.extend(plain);
    types
}

#[test]
fn columns_of_nulls_come_back() {
    use marquetry::{PageVersion, Profile, WriteOptions, Writer, io::WriteSink};
    for data_type in every_leaf() {
        let nested = DataType::new_list(data_type.clone(), true);
        for data_type in [data_type, nested] {
            let field = Field::new("nulls", data_type.clone(), true);
            let schema = Arc::new(Schema::new(vec![field]));
            let batch = RecordBatch::try_new(schema.clone(), vec![new_null_array(&data_type, 9)])
                .expect("a batch");
            for version in [PageVersion::V1, PageVersion::V2] {
                for profile in [Profile::Balanced, Profile::FastRead] {
                    let name = format!("{data_type} {version:?} {profile:?}");
                    let options =
                        WriteOptions::new().with_page_version(version).with_profile(profile);
                    let sink = WriteSink(Vec::new());
                    let mut writer = Writer::new(sink, schema.clone(), options.clone())
                        .unwrap_or_else(|e| panic!("{e}: {name}"));
                    writer.write(&batch).unwrap_or_else(|e| panic!("{e}: {name}"));
                    let (_, file) = writer.into_inner().unwrap_or_else(|e| panic!("{e}: {name}"));
                    comes_back(&Case {
                        name,
                        schema: schema.clone(),
                        batches: vec![batch.clone()],
                        options,
                        key_values: &[],
                        file: file.into(),
                        wishes: Default::default(),
                    });
                }
            }
        }
    }
}

/// Few values need few keys, whatever the pages are encoded with.
#[test]
fn narrow_dictionaries_come_back_from_plain_pages() {
    use marquetry::{WriteOptions, Writer, io::WriteSink};
    let keys = Int8Array::from_iter_values((0..300).map(|i| (i % 3) as i8));
    let values = Arc::new(StringArray::from_iter_values(["a", "b", "c"]));
    let array = Arc::new(DictionaryArray::new(keys, values));
    let schema = Arc::new(Schema::new(vec![Field::new("few", array.data_type().clone(), false)]));
    let batch = RecordBatch::try_new(schema.clone(), vec![array]).expect("a batch");
    let options = WriteOptions::new().with_dictionary(false);
    let sink = WriteSink(Vec::new());
    let mut writer = Writer::new(sink, schema.clone(), options.clone()).expect("a writer");
    writer.write(&batch).expect("rows");
    let (_, file) = writer.into_inner().expect("a file");
    let name = "few values".to_owned();
    comes_back(&Case {
        name,
        schema,
        batches: vec![batch],
        options,
        key_values: &[],
        file: file.into(),
        wishes: Default::default(),
    });
}

/// The file as the `parquet` crate reads it, handed over as IPC; the text of the error where it
/// does not.
fn theirs(file: &bytes::Bytes) -> Result<Vec<RecordBatch>, String> {
    theirs_with(file, parquet::arrow::arrow_reader::ArrowReaderOptions::new())
}

/// The same, with options of that crate.
pub fn theirs_with(
    file: &bytes::Bytes,
    options: parquet::arrow::arrow_reader::ArrowReaderOptions,
) -> Result<Vec<RecordBatch>, String> {
    use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
    let builder = ParquetRecordBatchReaderBuilder::try_new_with_options(file.clone(), options)
        .map_err(|e| e.to_string())?;
    let schema = builder.schema().clone();
    let reader = builder.build().map_err(|e| e.to_string())?;
    let mut stream = arrow_ipc_60::writer::StreamWriter::try_new(Vec::new(), &schema)
        .map_err(|e| e.to_string())?;
    for batch in reader {
        let batch = batch.map_err(|e| e.to_string())?;
        stream.write(&batch).map_err(|e| e.to_string())?;
    }
    let bytes = stream.into_inner().map_err(|e| e.to_string())?;
    let ours = arrow_ipc::reader::StreamReader::try_new(bytes.as_slice(), None);
    ours.and_then(Iterator::collect).map_err(|e| e.to_string())
}

/// The errors of version 60.1 of the `parquet` crate for files that it cannot read.
const NOT_THEIRS: [&str; 10] = [
    "NYI: The codec type LZO",
    "MonthDayNano intervals not supported",
    "unsupported data type for byte array dictionary reader",
    "Invalid physical type",
    // Required groups and elements below optional ones.
    "Found unmasked nulls for non-nullable",
    "contains nulls not present in parent",
    // A required dictionary of FIXED_LEN_BYTE_ARRAY below an optional struct; pyarrow and DuckDB
    // read these files.
    "Nested array size mismatch",
    "ALP",
    "Encoding 10",
    "Encoding 11",
];

#[test]
fn the_parquet_crate_reads_the_same() {
    let (read, compared) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let n = every_case(1000, |seed| {
        let case = case(seed);
        let name = &case.name;
        let found = std::panic::catch_unwind(|| theirs(&case.file)).unwrap_or_else(|panic| {
            let text = panic.downcast_ref::<String>().cloned();
            Err(text
                .or_else(|| panic.downcast_ref().map(|t: &&str| (*t).to_owned()))
                .unwrap_or_default())
        });
        let batches = match found {
            Ok(batches) => batches,
            Err(e) if NOT_THEIRS.iter().any(|known| e.contains(known)) => return,
            Err(e) => panic!("{e}: {name}"),
        };
        read.fetch_add(1, Relaxed);
        let Some(schema) = batches.first().map(RecordBatch::schema) else { return };
        let (found, expected) =
            (columns(&case.schema, &batches), columns(&case.schema, &case.batches));
        let types = |field: &Field| -> Vec<DataType> {
            leaves(field).iter().map(|leaf| plain_type(leaf.data_type()).clone()).collect()
        };
        for (i, (theirs, ours)) in schema.fields().iter().zip(case.schema.fields()).enumerate() {
            // Values that their types cannot express are not compared.
            if types(theirs) == types(ours) {
                compared.fetch_add(1, Relaxed);
                let one = Schema::new(vec![ours.clone()]);
                assert_same(name, &one, &found[i..=i], &expected[i..=i]);
            }
        }
    });
    let (read, compared) = (read.load(Relaxed), compared.load(Relaxed));
    assert!(read * 2 > n && compared > n, "{read} of {n} files read, {compared} columns compared");
}
