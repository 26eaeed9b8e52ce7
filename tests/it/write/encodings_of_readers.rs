//! Tests that every known reader decodes what is written by default: for every Arrow type, profile
//! and page version.

use crate::support::filled;
use std::sync::Arc;

use marquetry::arrow_array::types::*;
use marquetry::arrow_array::*;
use marquetry::arrow_schema::extension::Uuid;
use marquetry::arrow_schema::*;
use marquetry::format::FieldRepetitionType::Required;
use marquetry::format::{Encoding, SchemaElement, Type};
use marquetry::io::WriteSink;
use marquetry::write::ValueType;
use marquetry::{
    ErrorKind, Limits, PageVersion, Profile, Reader, RowGroupEncoder, TargetReader, WriteOptions,
    Writer,
};

use crate::support::{group, optional};

const ROWS: i64 = 2000;

/// Values that suit several encodings: values that ascend, values that share their high bytes, or
/// all but a high byte.
const PATTERNS: [fn(i64) -> i64; 3] =
    [|i| 1000 + i, |i| scattered(i) >> 44, |i| (scattered(i) >> 56) << 24];

fn scattered(i: i64) -> i64 {
    let x = (i as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let x = (x ^ (x >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    (x ^ (x >> 32)) as i64
}

fn numbers<T: ArrowPrimitiveType>(of: fn(i64) -> i64, cast: fn(i64) -> T::Native) -> ArrayRef {
    Arc::new(PrimitiveArray::<T>::from_iter_values((0..ROWS).map(|i| cast(of(i)))))
}

fn fixed(width: usize, of: fn(i64) -> i64) -> ArrayRef {
    let bytes = |i| {
        let value = i128::from(of(i)).to_be_bytes();
        value[value.len() - width..].to_vec()
    };
    let array = FixedSizeBinaryArray::try_from_iter((0..ROWS).map(bytes));
    Arc::new(array.expect("values of one width"))
}

fn typed<T: ArrowPrimitiveType>(array: ArrayRef, data_type: DataType) -> ArrayRef {
    let data = array.to_data().into_builder().data_type(data_type);
    Arc::new(PrimitiveArray::<T>::from(data.build().expect("a type of the same values")))
}

/// One column of each Arrow type that has a leaf of its own.
fn leaves(of: fn(i64) -> i64) -> Vec<ArrayRef> {
    use TimeUnit::*;
    let text = |i| format!("https://example.com/{}", of(i));
    let mut all = vec![
        numbers::<Int8Type>(of, |v| v as i8),
        numbers::<Int16Type>(of, |v| v as i16),
        numbers::<Int32Type>(of, |v| v as i32),
        numbers::<Int64Type>(of, |v| v),
        numbers::<UInt8Type>(of, |v| v as u8),
        numbers::<UInt16Type>(of, |v| v as u16),
        numbers::<UInt32Type>(of, |v| v as u32),
        numbers::<UInt64Type>(of, |v| v as u64),
        numbers::<Float16Type>(of, |v| half::f16::from_f32(v as f32)),
        numbers::<Float32Type>(of, |v| v as f32 / 8.0),
        numbers::<Float64Type>(of, |v| v as f64 / 100.0),
        numbers::<Date32Type>(of, |v| v as i32),
        numbers::<Date64Type>(of, |v| v % 10_000 * 86_400_000),
        numbers::<Time32SecondType>(of, |v| v as i32 & 0xFFFF),
        numbers::<Time32MillisecondType>(of, |v| v as i32 & 0xFFFF),
        numbers::<Time64MicrosecondType>(of, |v| v & 0xFFFF),
        numbers::<Time64NanosecondType>(of, |v| v & 0xFFFF),
        numbers::<DurationMicrosecondType>(of, |v| v),
        numbers::<IntervalYearMonthType>(of, |v| v as i32 & 0xFFFF),
        Arc::new(BooleanArray::from_iter((0..ROWS).map(|i| Some(of(i) % 3 == 0)))),
        Arc::new(StringArray::from_iter_values((0..ROWS).map(text))),
        Arc::new(LargeStringArray::from_iter_values((0..ROWS).map(text))),
        Arc::new(StringViewArray::from_iter_values((0..ROWS).map(text))),
        Arc::new(BinaryArray::from_iter_values((0..ROWS).map(text))),
        Arc::new(LargeBinaryArray::from_iter_values((0..ROWS).map(text))),
        Arc::new(BinaryViewArray::from_iter_values((0..ROWS).map(text))),
        Arc::new(NullArray::new(ROWS as usize)),
        fixed(2, of),
        fixed(5, of),
        fixed(8, of),
        fixed(16, of),
    ];
    for (unit, zone) in [(Second, None), (Millisecond, Some("UTC")), (Microsecond, None)] {
        let data_type = DataType::Timestamp(unit, zone.map(Into::into));
        let values = numbers::<Int64Type>(of, |v| 1_700_000_000 + v * 77);
        all.push(match unit {
            Second => typed::<TimestampSecondType>(values, data_type),
            Millisecond => typed::<TimestampMillisecondType>(values, data_type),
            _ => typed::<TimestampMicrosecondType>(values, data_type),
        });
    }
    all.push(numbers::<TimestampNanosecondType>(of, |v| v * 86_400));
    for precision in [9, 18, 19, 20, 38] {
        let values = numbers::<Decimal128Type>(of, |v| i128::from(v % 100_000_000));
        all.push(typed::<Decimal128Type>(values, DataType::Decimal128(precision, 2)));
    }
    let values = numbers::<Decimal256Type>(of, |v| arrow_buffer::i256::from_i128(i128::from(v)));
    all.push(typed::<Decimal256Type>(values, DataType::Decimal256(76, 2)));
    all.push(numbers::<Decimal32Type>(of, |v| (v % 100_000_000) as i32));
    all.push(numbers::<Decimal64Type>(of, |v| v));
    all
}

/// A dictionary of values that are each used once.
fn dictionary(values: &ArrayRef) -> ArrayRef {
    let keys = Int32Array::from_iter_values(0..ROWS as i32);
    Arc::new(DictionaryArray::new(keys, values.clone()))
}

fn runs(values: &ArrayRef) -> ArrayRef {
    let ends = Int32Array::from_iter_values(1..=ROWS as i32);
    Arc::new(RunArray::try_new(&ends, values).expect("runs of one"))
}

fn alone(values: &ArrayRef) -> ArrayRef {
    values.clone()
}

fn list(values: &ArrayRef) -> ArrayRef {
    let item = Arc::new(Field::new_list_field(values.data_type().clone(), true));
    let offsets = arrow_buffer::OffsetBuffer::from_lengths(vec![1; ROWS as usize]);
    Arc::new(ListArray::new(item, offsets, values.clone(), None))
}

fn structure(values: &ArrayRef) -> ArrayRef {
    let field = Arc::new(Field::new("x", values.data_type().clone(), true));
    Arc::new(StructArray::from(vec![(field, values.clone())]))
}

fn column(name: String, array: ArrayRef) -> (Field, ArrayRef) {
    (Field::new(name, array.data_type().clone(), true), array)
}

/// Every type, alone, in a list, in a struct; as a dictionary, and as runs. The names of
/// dictionaries say so.
fn tempting() -> RecordBatch {
    let mut columns = Vec::new();
    for (p, of) in PATTERNS.into_iter().enumerate() {
        for (i, array) in leaves(of).iter().enumerate() {
            let nested: fn(&ArrayRef) -> ArrayRef = [alone, list, structure][p];
            columns.push(column(format!("{i} {p}"), nested(array)));
            if *array.data_type() != DataType::Null {
                let keyed = dictionary(array);
                columns.push(column(format!("dictionary {i} {p}"), nested(&keyed)));
                columns.push(column(format!("runs {i} {p}"), runs(array)));
            }
        }
        let uuid = Field::new(format!("uuid {p}"), DataType::FixedSizeBinary(16), true);
        columns.push((uuid.with_extension_type(Uuid), fixed(16, of)));
    }
    let (fields, arrays): (Vec<_>, Vec<_>) = columns.into_iter().unzip();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).expect("a batch")
}

fn write(batch: &RecordBatch, options: WriteOptions) -> bytes::Bytes {
    let mut writer = Writer::new(WriteSink(Vec::new()), batch.schema(), options).expect("a writer");
    writer.write(batch).expect("rows");
    writer.into_inner().expect("a file").1.into()
}

/// The encodings of the pages of each leaf: its name, and whether each of the readers decodes it.
fn unreadable(file: &bytes::Bytes, readers: &[TargetReader], hinted: bool) -> Vec<String> {
    let reader = Reader::new(file.clone()).expect("a file");
    let schema = reader.metadata().schema();
    let meta = reader.metadata().index().to_file_meta_data().expect("a footer");
    let mut out = Vec::new();
    for (i, chunk) in meta.row_groups[0].columns.iter().enumerate() {
        let leaf = schema.leaf(i).expect("a leaf");
        let values = ValueType::new(leaf.physical.format_type(), leaf.logical.as_ref())
            .with_hinted_dictionary(hinted && leaf.path.dotted().starts_with("dictionary"));
        let pages = chunk.meta_data.as_ref().expect("metadata").encoding_stats.as_ref();
        for encoding in pages.expect("pages").iter().map(|pages| pages.encoding) {
            for of in readers.iter().filter(|of| !of.reads(encoding, &values)) {
                out.push(format!("{} in {encoding}, by {of}", leaf.path.dotted()));
            }
        }
    }
    out
}

#[test]
fn every_column_gets_an_encoding_that_all_readers_decode() {
    let batch = tempting();
    for profile in [Profile::Balanced, Profile::Small, Profile::FastRead, Profile::Compatible] {
        for (version, dictionary) in
            [(PageVersion::V1, true), (PageVersion::V2, true), (PageVersion::V1, false)]
        {
            let options = WriteOptions::new()
                .with_profile(profile)
                .with_page_version(version)
                .with_dictionary(dictionary);
            let found = unreadable(&write(&batch, options), &TargetReader::ALL, true);
            assert!(found.is_empty(), "{profile:?} {version:?} {dictionary}: {found:#?}");
        }
    }
}

#[test]
fn fewer_readers_allow_more_encodings() {
    let batch = tempting();
    for (left_out, expected) in [
        (TargetReader::Polars, "in DELTA_BYTE_ARRAY, by polars 2.1"),
        (TargetReader::PyArrow, "in DELTA_BYTE_ARRAY, by pyarrow 26"),
        (TargetReader::Spark, "in BYTE_STREAM_SPLIT, by Spark 4.3"),
    ] {
        let others = TargetReader::ALL.into_iter().filter(|reader| *reader != left_out);
        let others: Vec<_> = others.collect();
        let options = WriteOptions::new()
            .with_profile(Profile::Small)
            .with_dictionary(false)
            .with_readers(others.iter().copied());
        let file = write(&batch, options);
        assert!(unreadable(&file, &others, true).is_empty());
        let found = unreadable(&file, &[left_out], true);
        assert!(found.iter().any(|text| text.ends_with(expected)), "{left_out}: {found:#?}");
    }
    let file = write(&batch, WriteOptions::new().with_readers([]));
    let found = unreadable(&file, &[TargetReader::DuckDb], true);
    assert!(found.iter().any(|text| text.ends_with("in BYTE_STREAM_SPLIT, by DuckDB 2.0")));
}

#[test]
fn floats_of_few_decimals_are_in_alp_where_all_readers_have_it() {
    let prices =
        Float64Array::from_iter_values((0..ROWS).map(|i| (scattered(i) >> 40) as f64 / 100.0));
    let batch = RecordBatch::try_from_iter([("price", Arc::new(prices) as ArrayRef)]).unwrap();
    for profile in [Profile::Balanced, Profile::Small, Profile::FastRead, Profile::Points] {
        let options = WriteOptions::new().with_profile(profile);
        let newest = options.clone().with_readers([TargetReader::Marquetry]);
        let (any, newest) = (write(&batch, options), write(&batch, newest));
        assert!(unreadable(&any, &TargetReader::ALL, false).is_empty());
        let found = unreadable(&newest, &[TargetReader::DuckDb], false);
        assert!(found.iter().any(|text| text.ends_with("in ALP, by DuckDB 2.0")), "{found:?}");
        assert!(newest.len() < any.len(), "{} of {}", newest.len(), any.len());
        let mut batches = Reader::new(newest).unwrap().batches().unwrap();
        assert_eq!(batches.next_batch().unwrap().as_ref(), Some(&batch));
    }
}

#[test]
fn dictionaries_that_the_file_does_not_tell_of_are_as_their_values() {
    let values: ArrayRef =
        Arc::new(StringArray::from_iter_values((0..ROWS).map(|i| format!("user{i:07}"))));
    let batch = RecordBatch::try_from_iter([("dictionary", dictionary(&values))]).expect("a batch");
    let encodings = |hint| {
        let file = write(&batch, WriteOptions::new().with_hint(hint));
        assert!(unreadable(&file, &TargetReader::ALL, hint).is_empty());
        let reader = Reader::new(file).expect("a file");
        let meta = reader.metadata().index().to_file_meta_data().expect("a footer");
        meta.row_groups[0].columns[0].meta_data.clone().expect("metadata").encodings
    };
    assert!(!encodings(true).contains(&Encoding::DeltaByteArray));
    assert!(encodings(false).contains(&Encoding::DeltaByteArray));
}

#[test]
fn an_encoding_that_is_asked_for_is_written_whoever_reads_it() {
    let values: ArrayRef = fixed(16, |i| i);
    let batch = RecordBatch::try_from_iter([("a", values)]).expect("a batch");
    let options =
        WriteOptions::new().with_column("a", |a| a.with_encoding(Encoding::ByteStreamSplit));
    let found = unreadable(&write(&batch, options), &TargetReader::ALL, true);
    assert_eq!(
        found,
        ["a in BYTE_STREAM_SPLIT, by DuckDB 2.0", "a in BYTE_STREAM_SPLIT, by polars 2.1"]
    );
}

#[test]
fn binary_of_size_0_is_never_a_fixed_len_byte_array_of_no_bytes() {
    let empty: ArrayRef = Arc::new(FixedSizeBinaryArray::new_null(0, 3));
    let keys = Int8Array::from(vec![0, 0, 0]);
    let keyed: ArrayRef = Arc::new(DictionaryArray::new(keys, empty.clone()));
    for array in [empty, keyed] {
        let batch =
            RecordBatch::try_from_iter_with_nullable([("a", array, true)]).expect("a batch");
        let file = write(&batch, WriteOptions::new());
        let reader = Reader::new(file).expect("a file");
        let leaf = reader.metadata().schema().leaf(0).expect("a leaf");
        assert_eq!(leaf.physical, marquetry::schema::Physical::ByteArray);
        // A Parquet schema of the caller's that has one is refused.
        let elements = vec![group("schema", Required, 1), empty_fixed_len()];
        let schema = marquetry::schema::Schema::parse(elements, &Limits::default());
        let options = WriteOptions::new();
        let schema = schema.expect("a schema");
        let error = RowGroupEncoder::with_schema(batch.schema(), schema, Vec::new(), options);
        let error = error.expect_err("no place");
        assert!(matches!(error.kind(), ErrorKind::Unsupported(_)), "{error}");
        assert_eq!(error.at().column.as_deref(), Some("a"));
    }
}

fn empty_fixed_len() -> SchemaElement {
    filled!(SchemaElement { type_length: Some(0), ..optional("a", Type::FixedLenByteArray) })
}

/// A variant of two rows, its metadata nullable; the second row is null as a whole if
/// `second_is_null`.
fn variant(metadata: Vec<Option<&[u8]>>, second_is_null: bool) -> RecordBatch {
    let value: ArrayRef = Arc::new(BinaryArray::from_vec(vec![&[0x0C, 1], &[0x0C, 2]]));
    let metadata: ArrayRef = Arc::new(BinaryArray::from(metadata));
    let fields = Fields::from(vec![
        Field::new("metadata", DataType::Binary, true),
        Field::new("value", DataType::Binary, true),
    ]);
    let nulls = second_is_null.then(|| arrow_buffer::NullBuffer::from(vec![true, false]));
    let array = StructArray::new(fields.clone(), vec![metadata, value], nulls);
    let field = Field::new("v", DataType::Struct(fields), true).with_metadata(
        [("ARROW:extension:name".to_owned(), "arrow.parquet.variant".to_owned())].into(),
    );
    RecordBatch::try_new(Arc::new(Schema::new(vec![field])), vec![Arc::new(array)])
        .expect("a batch")
}

#[test]
fn the_metadata_of_a_variant_may_be_nullable_and_not_null() {
    let some: Option<&[u8]> = Some(&[1, 0, 0]);
    for batch in [variant(vec![some, some], false), variant(vec![some, None], true)] {
        let file = write(&batch, WriteOptions::new());
        let reader = Reader::new(file.clone()).expect("a file");
        let schema = reader.metadata().schema().to_string();
        assert!(schema.contains("required binary metadata;"), "{schema}");
        let back = crate::support::read(file).expect("rows");
        assert_eq!(back[0].num_rows(), 2);
        assert_eq!(back[0].column(0).null_count(), batch.column(0).null_count());
    }
    let batch = variant(vec![some, None], false);
    let mut writer = Writer::to(Vec::new(), batch.schema()).expect("a writer");
    let error = writer.write(&batch).and_then(|()| writer.finish()).expect_err("a null");
    assert_eq!(error.kind(), ErrorKind::Usage);
    assert_eq!(error.at().column.as_deref(), Some("v.metadata"));
    assert!(error.to_string().contains("row 1"), "{error}");
}
