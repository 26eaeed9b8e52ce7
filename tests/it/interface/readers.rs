//! Tests which readers are said to open a file; and that arrow-rs does what is said of it.

use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use marquetry::format::*;
use marquetry::readers::{ReaderReport, Verdict, readers_of};
use marquetry::{Reader, TargetReader};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use crate::support::{Chunk, file, file_with, filled, group, ints, required, testdata, v1};

fn reports(file: Vec<u8>) -> Vec<ReaderReport> {
    readers_of(Reader::new(Bytes::from(file)).unwrap().metadata()).unwrap()
}

/// The readers that read the last column as it is, those that read it otherwise, and those that do
/// not open the file, or not the column.
fn sides(file: Vec<u8>) -> [Vec<&'static str>; 3] {
    let mut sides = [Vec::new(), Vec::new(), Vec::new()];
    for report in reports(file) {
        let verdict = &report.columns.last().expect("a column").verdict;
        let side = match verdict {
            _ if report.refuses_file.is_some() => 2,
            Verdict::Reads => 0,
            Verdict::ReadsAs(_) | Verdict::ReadsIf(_) => 1,
            _ => 2,
        };
        sides[side].push(report.reader.name());
    }
    sides
}

/// A file of one column of these elements, without rows.
fn empty(elements: Vec<SchemaElement>) -> Vec<u8> {
    let leaves = elements.iter().filter(|element| element.r#type.is_some());
    let chunks = leaves.map(|leaf| Chunk::new(leaf.r#type.unwrap(), 0, &[])).collect();
    file(elements, 0, chunks)
}

fn annotated(r#type: Type, len: Option<i32>, logical: LogicalType) -> SchemaElement {
    let (type_length, logical_type) = (len, Some(logical));
    filled!(SchemaElement { type_length, logical_type, ..required("x", r#type) })
}

const SPARK: [&str; 2] = ["spark", "spark-rows"];

#[test]
fn logical_types_that_some_readers_do_not_know() {
    let fixed = Type::FixedLenByteArray;
    let float16 = annotated(fixed, Some(2), LogicalType::Float16);
    assert_eq!(sides(empty(vec![float16]))[2], SPARK);
    let uuid = annotated(fixed, Some(16), LogicalType::Uuid);
    assert_eq!(sides(empty(vec![uuid]))[2], SPARK);
    let nanos = TimestampType::utc(TimeUnit::Nanos);
    let nanos = annotated(Type::Int64, None, LogicalType::Timestamp(nanos));
    assert_eq!(sides(empty(vec![nanos]))[2], SPARK);
    let wide = LogicalType::Decimal(DecimalType::new(40, 2));
    let [_, otherwise, refused] = sides(empty(vec![annotated(fixed, Some(17), wide)]));
    assert_eq!((otherwise, refused), (vec!["duckdb"], vec!["polars", "spark", "spark-rows"]));
    let geometry = LogicalType::Geometry(GeometryType::default());
    let [_, _, refused] = sides(empty(vec![annotated(Type::ByteArray, None, geometry)]));
    assert_eq!(refused, ["polars"]);
    let int96 = required("x", Type::Int96);
    assert_eq!(sides(empty(vec![int96]))[1], ["duckdb", "polars", "pyarrow"]);
}

#[test]
fn a_column_that_only_one_reader_refuses_does_not_stop_it_from_reading_others() {
    let page = v1(0, Encoding::Plain, &[]);
    let schema = vec![
        required("n", Type::Int32),
        filled!(SchemaElement { type_length: Some(5), ..required("x", Type::FixedLenByteArray) }),
    ];
    let chunks = vec![
        Chunk::new(Type::Int32, 0, std::slice::from_ref(&page)),
        Chunk::new(Type::FixedLenByteArray, 0, &[page]),
    ];
    let bytes = file_with(schema, vec![(0, chunks)], |meta| {
        let chunk = meta.row_groups[0].columns[1].meta_data.as_mut().unwrap();
        chunk.encodings = vec![Encoding::Rle, Encoding::DeltaByteArray];
    });
    for report in reports(bytes) {
        assert!(report.refuses_file.is_none(), "{}", report.reader);
        assert_eq!(report.columns[0].verdict, Verdict::Reads);
        let refuses = report.reader == TargetReader::Polars;
        assert_eq!(report.columns[1].verdict.is_read(), !refuses, "{}", report.reader);
        assert_eq!(report.reads_all(), !refuses);
    }
}

#[test]
fn an_encoding_of_new_numbers_stops_readers_that_know_them_not() {
    for (r#type, encoding) in [(Type::Float, Encoding::Alp), (Type::Int64, Encoding::Pfor)] {
        let chunk = Chunk::new(r#type, 0, &[v1(0, Encoding::Plain, &[])]);
        let bytes = file_with(vec![required("x", r#type)], vec![(0, vec![chunk])], |meta| {
            let chunk = meta.row_groups[0].columns[0].meta_data.as_mut().unwrap();
            chunk.encodings = vec![encoding];
        });
        let [reads, _, refused] = sides(bytes);
        let ours = encoding == Encoding::Alp || cfg!(feature = "preview");
        assert_eq!(reads, if ours { &["marquetry"][..] } else { &[] }, "{encoding}");
        assert_eq!(refused.len() + reads.len(), TargetReader::ALL.len());
    }
}

#[test]
fn deltas_of_33_bits_by_duckdb_stop_two_readers_unless_the_bounds_show_that_there_are_none() {
    let refused_by = |created_by: &str, bounds: Option<[i32; 2]>| {
        let chunk = Chunk::new(Type::Int32, 0, &[v1(0, Encoding::DeltaBinaryPacked, &[])]);
        let of_one = vec![(0, vec![chunk])];
        let bytes = file_with(vec![required("x", Type::Int32)], of_one, |meta| {
            meta.created_by = Some(created_by.into());
            let chunk = meta.row_groups[0].columns[0].meta_data.as_mut().unwrap();
            chunk.encodings = vec![Encoding::DeltaBinaryPacked];
            chunk.statistics = bounds.map(|[min, max]| {
                let [min_value, max_value] = [min, max].map(|of| Some(of.to_le_bytes().to_vec()));
                filled!(Statistics { min_value, max_value })
            });
        });
        let [_, _, refused] = sides(bytes);
        refused
    };
    let duckdb = "DuckDB version v2.0.0 (build d54cbbe3df)";
    let both = ["pyarrow", "arrow-rs"];
    assert_eq!(refused_by(duckdb, None), both);
    assert_eq!(refused_by(duckdb, Some([-1, i32::MAX])), both);
    // Of unsigned values, 2^31 - 1 and 2^31.
    assert_eq!(refused_by(duckdb, Some([i32::MAX, i32::MIN])), both);
    assert_eq!(refused_by(duckdb, Some([0, i32::MAX])), [""; 0]);
    assert_eq!(refused_by(duckdb, Some([i32::MIN, -1])), [""; 0]);
    assert_eq!(refused_by("parquet-mr version 1.17.0", None), [""; 0]);
}

#[test]
fn codecs_that_are_not_shipped() {
    let with = |codec| {
        let page = v1(1, Encoding::Plain, &ints(&[1]));
        let chunk = Chunk::new(Type::Int32, 1, &[page]).codec(codec);
        sides(file(vec![required("x", Type::Int32)], 1, vec![chunk]))
    };
    assert_eq!(with(CompressionCodec::Brotli)[2], ["parquet-java", "spark", "spark-rows"]);
    assert!(with(CompressionCodec::Lzo)[2].contains(&"duckdb"));
    assert!(with(CompressionCodec::Lz4Raw)[2].is_empty());
    assert_eq!(with(CompressionCodec::Unknown(99))[2].len(), TargetReader::ALL.len());
}

#[test]
fn maps_and_their_faults() {
    let repeated = FieldRepetitionType::Repeated;
    let map = |key: SchemaElement, converted: Option<ConvertedType>| {
        let mut map = group("x", FieldRepetitionType::Required, 1);
        map.logical_type = Some(LogicalType::Map);
        map.converted_type = converted;
        let value = required("value", Type::Int32);
        empty(vec![map, group("key_value", repeated, 2), key, value])
    };
    let key = || required("key", Type::Int32);
    let [_, otherwise, refused] = sides(map(key(), Some(ConvertedType::Map)));
    assert_eq!((otherwise, refused), (vec!["polars"], vec![]));
    let [_, otherwise, _] = sides(map(key(), None));
    assert_eq!(otherwise, ["duckdb", "polars"]);
    let mut optional = key();
    optional.repetition_type = Some(FieldRepetitionType::Optional);
    let [_, _, refused] = sides(map(optional, Some(ConvertedType::Map)));
    assert_eq!(refused, ["polars", "pyarrow"]);
}

#[test]
fn a_footer_without_paths_is_read_by_the_order_of_columns() {
    let chunk = Chunk::new(Type::Int32, 2, &[v1(2, Encoding::Plain, &ints(&[4, 5]))]);
    let bytes = file_with(vec![required("x", Type::Int32)], vec![(2, vec![chunk])], |meta| {
        meta.row_groups[0].columns[0].meta_data.as_mut().unwrap().path_in_schema.clear();
    });
    assert_eq!(Reader::new(Bytes::from(bytes.clone())).unwrap().count().unwrap(), 2);
    let [reads, _, _] = sides(bytes);
    assert_eq!(reads, ["polars", "arrow-rs", "marquetry"]);
}

#[test]
fn names_that_differ_in_capitals_only_stop_spark() {
    let x = |name| required(name, Type::Int32);
    let same_but_for_case = empty(vec![x("a"), x("A")]);
    assert_eq!(sides(same_but_for_case)[2], SPARK);
    let same = sides(empty(vec![x("a"), x("a")]));
    assert_eq!(same[2], ["polars", "parquet-java", "spark", "spark-rows"]);
}

/// Whether arrow-rs reads each top-level column of a file; an error if it does not open it.
fn read_by_arrow_rs(path: &Path) -> Result<Vec<Result<(), String>>, String> {
    let open = || {
        let file = File::open(path).map_err(|e| e.to_string())?;
        ParquetRecordBatchReaderBuilder::try_new(file).map_err(|e| e.to_string())
    };
    let caught = |panic: Box<dyn std::any::Any + Send>| {
        let text = panic.downcast_ref::<String>().cloned();
        format!("panic: {}", text.unwrap_or_default())
    };
    let columns = catch_unwind(|| Ok(open()?.parquet_schema().root_schema().get_fields().len()));
    let columns = columns.map_err(caught).and_then(|columns| columns)?;
    let read = |column: usize| {
        let builder = open()?;
        let mask = ProjectionMask::roots(builder.parquet_schema(), [column]);
        let mut batches = builder.with_projection(mask).build().map_err(|e| e.to_string())?;
        batches.try_for_each(|batch| batch.map(|_| ()).map_err(|e| e.to_string()))
    };
    let each = (0..columns).map(|column| {
        catch_unwind(AssertUnwindSafe(|| read(column))).map_err(caught).and_then(|read| read)
    });
    Ok(each.collect())
}

/// Promises about arrow-rs that are broken; and how many are kept.
fn broken_promises(path: &Path) -> (Vec<String>, usize) {
    // What is broken for this library is of no interest.
    let readable = |reader: &Reader| {
        let batches = reader.clone().int96(marquetry::arrow_schema::TimeUnit::Microsecond);
        let batches = batches.batches().ok()?;
        batches.map(Result::ok).collect::<Option<Vec<_>>>()
    };
    let Ok(reader) = Reader::open(path) else { return (Vec::new(), 0) };
    if readable(&reader).is_none() {
        return (Vec::new(), 0);
    }
    let found = readers_of(reader.metadata()).unwrap();
    let said = found.iter().find(|of| of.reader == TargetReader::ArrowRs).unwrap();
    let done = read_by_arrow_rs(path);
    let (mut broken, mut kept) = (Vec::new(), 0);
    let (mut leaf, schema) = (0, reader.metadata().schema());
    for (column, field) in schema.fields().enumerate() {
        let leaves = field.leaves().len();
        let of_field = &said.columns[leaf..leaf + leaves];
        leaf += leaves;
        let promised =
            said.refuses_file.is_none() && of_field.iter().all(|leaf| leaf.verdict.is_read());
        let did = match &done {
            Ok(columns) => {
                columns.get(column).cloned().unwrap_or_else(|| Err("no column".to_owned()))
            }
            Err(e) => Err(e.clone()),
        };
        match did {
            Err(e) if promised => {
                broken.push(format!("{}: {}: {e}", path.display(), field.name()));
            }
            Ok(()) if !promised => {
                println!("too cautious: {}: {}", path.display(), field.name());
            }
            _ => kept += 1,
        }
    }
    (broken, kept)
}

fn parquet_files(folder: PathBuf) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => files.extend(parquet_files(path)),
            false => files.push(path),
        }
    }
    files.retain(|path| path.extension().is_some_and(|ending| ending != "jsonl"));
    files.sort();
    files
}

#[test]
fn arrow_rs_reads_what_is_said_of_it_in_the_files_of_other_writers() {
    let mut all = 0;
    for path in parquet_files(testdata("")) {
        let (broken, kept) = broken_promises(&path);
        assert!(broken.is_empty(), "{broken:#?}");
        all += kept;
    }
    assert!(all > 300, "only {all} columns were read");
}

#[test]
#[ignore = "reads the files in the folders that MARQUETRY_FILES names, separated by colons"]
fn what_arrow_rs_reads() {
    let folders = std::env::var("MARQUETRY_FILES").expect("folders of Parquet files");
    let (mut all, mut wrong) = (0, Vec::new());
    for folder in folders.split(':') {
        for path in parquet_files(folder.into()) {
            let (broken, kept) = broken_promises(&path);
            wrong.extend(broken);
            all += kept;
        }
    }
    println!("{all} promises kept");
    assert!(wrong.is_empty(), "{} wrong promises: {wrong:#?}", wrong.len());
}
