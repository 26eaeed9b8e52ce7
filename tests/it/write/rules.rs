//! Tests that written files follow the rules of the specification for writers.

use std::sync::Arc;

use marquetry::arrow_array::*;
use marquetry::arrow_schema::*;
use marquetry::format::{ColumnOrder, Encoding, FileMetaData, RowGroup, Statistics};
use marquetry::io::{Sink, WriteSink};
use marquetry::{
    ChunkingOptions, Compression, ErrorKind, PageIndex, PageVersion, Profile, Reader, Result,
    RowGroupEncoder, SortColumn, StatisticsLevel, WriteOptions, Writer,
};

use crate::support::read;

fn table(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter(columns).expect("a batch")
}

fn written_with(batch: &RecordBatch, options: WriteOptions) -> Result<bytes::Bytes> {
    let mut writer = Writer::new(WriteSink(Vec::new()), batch.schema(), options)?;
    writer.write(batch)?;
    Ok(writer.into_inner()?.1.into())
}

fn metadata(file: &bytes::Bytes) -> FileMetaData {
    let reader = Reader::new(file.clone()).expect("a file");
    reader.metadata().index().to_file_meta_data().expect("a footer")
}

fn statistics(group: &RowGroup, leaf: usize) -> &Statistics {
    let meta = group.columns[leaf].meta_data.as_ref().expect("metadata");
    meta.statistics.as_ref().expect("statistics")
}

fn index(file: &bytes::Bytes) -> PageIndex {
    Reader::new(file.clone()).expect("a file").page_index(0, 0).expect("an index")
}

/// The statistics of a file of one column.
fn of_column(array: ArrayRef, options: WriteOptions) -> Statistics {
    let file = written_with(&table(vec![("a", array)]), options).expect("a file");
    statistics(&metadata(&file).row_groups[0], 0).clone()
}

#[test]
fn a_file_without_rows_comes_back() {
    let batch = table(vec![("a", Arc::new(Int32Array::from(Vec::<i32>::new())))]);
    let file = written_with(&batch, WriteOptions::new()).expect("a file");
    assert!(metadata(&file).row_groups.is_empty());
    let reader = Reader::new(file.clone()).expect("a file");
    assert_eq!(reader.schema().expect("a schema").fields(), batch.schema().fields());
    assert_eq!(read(file).expect("rows").iter().map(RecordBatch::num_rows).sum::<usize>(), 0);
}

#[test]
fn field_ids_key_values_and_created_by_are_written() {
    let id = [(marquetry::schema::FIELD_ID_KEY.to_owned(), "7".to_owned())];
    let field = Field::new("a", DataType::Int32, false).with_metadata(id.into());
    let schema = Arc::new(Schema::new(vec![field]));
    let batch = RecordBatch::try_new(schema, vec![Arc::new(Int32Array::from(vec![1, 2, 3]))])
        .expect("a batch");
    let options = WriteOptions::new().with_created_by("me").with_key_value("k", "");
    let found = metadata(&written_with(&batch, options).expect("a file"));
    assert_eq!(found.created_by.as_deref(), Some("me"));
    assert_eq!(found.schema[1].field_id, Some(7));
    let pairs = found.key_value_metadata.expect("pairs");
    let empty = pairs.iter().find(|pair| pair.key == "k").expect("the pair");
    assert_eq!(empty.value.as_deref(), Some(""));
    let sorting = found.row_groups[0].sorting_columns.as_ref().expect("rows that rise");
    assert_eq!((sorting[0].column_idx, sorting[0].descending), (0, false));
}

#[test]
fn intervals_that_the_format_cannot_say_are_refused() {
    use arrow_buffer::{IntervalDayTime, IntervalMonthDayNano};
    let nanos = |m, d, n| -> ArrayRef {
        Arc::new(IntervalMonthDayNanoArray::from(vec![IntervalMonthDayNano::new(m, d, n)]))
    };
    let days = |d, ms| -> ArrayRef {
        Arc::new(IntervalDayTimeArray::from(vec![IntervalDayTime::new(d, ms)]))
    };
    for bad in [
        nanos(0, 0, 1),
        nanos(-1, 0, 0),
        nanos(0, -1, 0),
        nanos(0, 0, -1_000_000),
        nanos(0, 0, (1 << 32) * 1_000_000),
        days(-1, 0),
        days(0, -1),
        Arc::new(IntervalYearMonthArray::from(vec![-1])),
    ] {
        let error = written_with(&table(vec![("a", bad.clone())]), WriteOptions::new());
        assert_eq!(error.expect_err("no place").kind(), ErrorKind::Usage, "{bad:?}");
    }
    for good in [nanos(1, 2, i64::from(u32::MAX) * 1_000_000), days(1, 2)] {
        let batch = table(vec![("a", good)]);
        let file = written_with(&batch, WriteOptions::new()).expect("a file");
        assert_eq!(read(file).expect("rows")[0].columns(), batch.columns());
    }
}

#[test]
fn nulls_are_counted_also_where_there_are_none() {
    for level in [StatisticsLevel::None, StatisticsLevel::Chunk, StatisticsLevel::Page] {
        let options = WriteOptions::new().with_statistics(level);
        let none = of_column(Arc::new(Int32Array::from(vec![1, 2])), options.clone());
        assert_eq!(none.null_count, Some(0));
        let one = of_column(Arc::new(Int32Array::from(vec![Some(1), None])), options);
        assert_eq!(one.null_count, Some(1));
        assert_eq!(one.min_value.is_some(), level != StatisticsLevel::None);
    }
}

#[test]
fn text_is_cut_between_characters_and_the_last_one_rises() {
    let of = |text: &str, max| {
        let array = Arc::new(StringArray::from(vec![text]));
        let found = of_column(array, WriteOptions::new().with_bound_bytes(max));
        let exact = (found.is_min_value_exact, found.is_max_value_exact);
        let text =
            |bytes: Option<Vec<u8>>| String::from_utf8(bytes.expect("a bound")).expect("text");
        (text(found.min_value), text(found.max_value), exact)
    };
    let owned = |min: &str, max: &str, a, b| (min.to_owned(), max.to_owned(), (Some(a), Some(b)));
    assert_eq!(of("abc", 3), owned("abc", "abc", true, true));
    assert_eq!(of("abcd", 3), owned("abc", "abd", false, false));
    // After the last scalar before the surrogates comes the first one after them.
    assert_eq!(of("\u{D7FF}xyz", 4), owned("\u{D7FF}x", "\u{D7FF}y", false, false));
    assert_eq!(of("\u{D7FF}é", 4), owned("\u{D7FF}", "\u{E000}", false, false));
    assert_eq!(of("aé", 2), owned("a", "b", false, false));
    assert_eq!(of("a\u{10FFFF}b", 5), owned("a\u{10FFFF}", "b", false, false));
    // Nothing is greater than the greatest character: the bound stays whole.
    let value = "\u{10FFFF}".repeat(3);
    let (min, max, exact) = of(&value, 5);
    assert_eq!((min.as_str(), max, exact), ("\u{10FFFF}", value, (Some(false), Some(true))));
}

#[test]
fn bytes_that_cannot_rise_stay_whole() {
    let all = vec![0xFF; 9];
    let array = Arc::new(BinaryArray::from(vec![&all[..]]));
    let found = of_column(array, WriteOptions::new().with_bound_bytes(4));
    assert_eq!((found.max_value, found.is_max_value_exact), (Some(all), Some(true)));
    assert_eq!((found.min_value, found.is_min_value_exact), (Some(vec![0xFF; 4]), Some(false)));
}

#[test]
fn floats_in_both_orders() {
    let nan = f64::NAN;
    for (values, total, min, max, nans, has_index) in [
        (vec![0.0, -0.0], false, Some(-0.0), Some(0.0), 0, true),
        (vec![0.0, 3.0], false, Some(-0.0), Some(3.0), 0, true),
        (vec![0.0, 3.0], true, Some(0.0), Some(3.0), 0, true),
        (vec![-3.0, -0.0], true, Some(-3.0), Some(-0.0), 0, true),
        (vec![nan, 1.0], false, Some(1.0), Some(1.0), 1, true),
        (vec![nan, 1.0], true, Some(1.0), Some(1.0), 1, true),
        (vec![nan, nan], false, None, None, 2, false),
        (vec![nan, -nan], true, Some(-nan), Some(nan), 2, true),
    ] {
        let options = WriteOptions::new().with_total_order(total);
        let batch = table(vec![("a", Arc::new(Float64Array::from(values.clone())))]);
        let file = written_with(&batch, options).expect("a file");
        let name = format!("{values:?}, total order {total}");
        let meta = metadata(&file);
        let order = if total { ColumnOrder::Ieee754TotalOrder } else { ColumnOrder::TypeOrder };
        assert_eq!(meta.column_orders, Some(vec![order]), "{name}");
        let found = statistics(&meta.row_groups[0], 0);
        let bytes = |v: Option<f64>| v.map(|v| v.to_le_bytes().to_vec());
        assert_eq!(found.min_value, bytes(min), "{name}");
        assert_eq!(found.max_value, bytes(max), "{name}");
        assert_eq!(found.nan_count, Some(nans), "{name}");
        assert_eq!(index(&file).column_index.is_some(), has_index, "{name}");
    }
}

#[test]
fn intervals_and_nulls_have_no_bounds() {
    let of: [ArrayRef; 2] =
        [Arc::new(IntervalYearMonthArray::from(vec![1, 2])), Arc::new(NullArray::new(2))];
    for array in of {
        let file = written_with(&table(vec![("a", array)]), WriteOptions::new()).expect("a file");
        let meta = metadata(&file);
        let found = statistics(&meta.row_groups[0], 0);
        assert_eq!((&found.min_value, &found.max_value), (&None, &None));
        assert!(index(&file).column_index.is_none_or(|i| i.null_pages.iter().all(|null| *null)));
    }
}

#[test]
fn unsigned_and_decimals_have_orders_of_their_own() {
    let unsigned = of_column(Arc::new(UInt32Array::from(vec![1, u32::MAX])), WriteOptions::new());
    assert_eq!(unsigned.max_value, Some(vec![0xFF; 4]));
    let decimals = Decimal128Array::from(vec![-1, 1]).with_precision_and_scale(38, 0);
    let wide = of_column(Arc::new(decimals.expect("decimals")), WriteOptions::new());
    assert_eq!(wide.min_value, Some((-1i128).to_be_bytes().to_vec()));
    assert_eq!(wide.max_value, Some(1i128.to_be_bytes().to_vec()));
}

#[test]
fn a_page_of_nulls_differs_from_a_page_of_empty_texts() {
    let array = Arc::new(StringArray::from(vec![None, Some("")]));
    let options = WriteOptions::new().with_page_rows(1);
    let file = written_with(&table(vec![("a", array)]), options).expect("a file");
    let column = index(&file).column_index.expect("a column index");
    assert_eq!(column.null_pages, [true, false]);
    assert_eq!(column.min_values, [b"", b""]);
}

#[test]
fn values_are_in_the_bloom_filter_and_nulls_are_not() {
    use parquet::bloom_filter::Sbbf;
    let options = WriteOptions::new().with_column("a", |a| a.with_bloom(Default::default()));
    let array = Arc::new(Float64Array::from(vec![Some(1.5), None]));
    let file = written_with(&table(vec![("a", array)]), options).expect("a file");
    let meta = metadata(&file);
    let chunk = meta.row_groups[0].columns[0].meta_data.as_ref().expect("metadata");
    let at = chunk.bloom_filter_offset.expect("a filter") as usize;
    let len = chunk.bloom_filter_length.expect("its length") as usize;
    let bloom = Sbbf::from_bytes(&file[at..][..len]).expect("a filter");
    assert!(bloom.check(&1.5f64));
    assert!(!bloom.check(&0f64), "the null is not in it");
}

#[test]
fn required_groups_below_optional_ones_come_back() {
    let inner: ArrayRef = Arc::new(Int32Array::from(vec![1, 2]));
    let required =
        |name: &str, of: &ArrayRef| Arc::new(Field::new(name, of.data_type().clone(), false));
    let middle: ArrayRef =
        Arc::new(StructArray::new(vec![required("x", &inner)].into(), vec![inner], None));
    let nulls = Some(vec![true, false].into());
    let outer: ArrayRef =
        Arc::new(StructArray::new(vec![required("y", &middle)].into(), vec![middle], nulls));
    let batch = table(vec![("a", outer)]);
    let file = written_with(&batch, WriteOptions::new()).expect("a file");
    assert_eq!(read(file).expect("rows")[0].columns(), batch.columns());
}

/// The columns that every encoding is tried on: one of each physical type, with nulls, with one
/// value, with none.
fn columns_of_every_type() -> Vec<(&'static str, ArrayRef)> {
    fn with_nulls<T>(values: impl Iterator<Item = T>) -> Vec<Option<T>> {
        values.enumerate().map(|(i, v)| (i % 5 != 3).then_some(v)).collect()
    }
    let n = 1000i32;
    let text = |i: i32| format!("prefix {} and the rest {}", i / 7, i % 3);
    let fixed = with_nulls((0..n).map(|i| i.to_le_bytes()));
    vec![
        ("boolean", Arc::new(BooleanArray::from(with_nulls((0..n).map(|i| i % 40 < 30))))),
        (
            "int32",
            Arc::new(Int32Array::from(with_nulls((0..n).map(|i| i.wrapping_mul(77_777_777))))),
        ),
        ("int64", Arc::new(Int64Array::from(with_nulls((0..n).map(|i| i64::from(i) << 33))))),
        ("float", Arc::new(Float32Array::from(with_nulls((0..n).map(|i| i as f32 / 8.0))))),
        ("double", Arc::new(Float64Array::from(with_nulls((0..n).map(|i| f64::from(i) / 100.0))))),
        ("byte_array", Arc::new(StringArray::from(with_nulls((0..n).map(text))))),
        (
            "fixed_len_byte_array",
            Arc::new(
                FixedSizeBinaryArray::try_from_sparse_iter_with_size(fixed.into_iter(), 4)
                    .expect("four bytes each"),
            ),
        ),
    ]
}

/// Every encoding of every type: whole pages, pages of 7 rows, one value, no value, nulls only.
#[test]
fn every_encoding_is_written() {
    use marquetry::format::Encoding::*;
    let mut tried = 0;
    for (name, array) in columns_of_every_type() {
        let legal: &[_] = match name {
            "boolean" => &[Plain, Rle],
            "int32" | "int64" if cfg!(feature = "preview") => {
                &[Plain, RleDictionary, DeltaBinaryPacked, ByteStreamSplit, Pfor]
            }
            "int32" | "int64" => &[Plain, RleDictionary, DeltaBinaryPacked, ByteStreamSplit],
            "float" | "double" => &[Plain, RleDictionary, ByteStreamSplit, Alp],
            "byte_array" => &[Plain, RleDictionary, DeltaLengthByteArray, DeltaByteArray],
            _ => &[Plain, RleDictionary, ByteStreamSplit, DeltaByteArray],
        };
        let nulls = marquetry::arrow_array::new_null_array(array.data_type(), 20);
        let some = [array.clone(), array.slice(0, 1), array.slice(0, 0), array.slice(3, 1), nulls];
        for (&encoding, array) in legal.iter().flat_map(|e| some.iter().map(move |a| (e, a))) {
            for (version, rows) in
                [(PageVersion::V1, 7), (PageVersion::V2, 7), (PageVersion::V1, 4096)]
            {
                let batch = table(vec![(name, array.clone())]);
                let options = WriteOptions::new()
                    .with_page_version(version)
                    .with_page_rows(rows)
                    .with_column(name, |column| column.with_encoding(encoding));
                let file = written_with(&batch, options).expect(name);
                let back: Vec<RecordBatch> = Reader::new(file.clone())
                    .expect(name)
                    .threads(1)
                    .batches()
                    .expect(name)
                    .map(|batch| batch.expect(name))
                    .collect();
                let back: Vec<&dyn Array> = back.iter().map(|b| b.column(0).as_ref()).collect();
                match back[..] {
                    [] => assert_eq!(array.len(), 0, "{name} {encoding}"),
                    _ => {
                        let back = arrow_select::concat::concat(&back).expect("one type");
                        assert_eq!(&back, array, "{name} {encoding} {version:?} {rows}");
                    }
                }
                if array.len() > 20 {
                    let meta = metadata(&file).row_groups[0].columns[0].meta_data.clone();
                    assert!(
                        meta.expect("metadata").encodings.contains(&encoding),
                        "{name} {encoding}"
                    );
                }
                tried += 1;
            }
        }
    }
    let encodings = if cfg!(feature = "preview") { 28 } else { 26 };
    assert_eq!(tried, encodings * 5 * 3);
}

/// A few bytes fewer do not make up for what BYTE_STREAM_SPLIT costs its readers; many do.
#[test]
fn integers_are_split_only_where_that_is_far_smaller() {
    let scattered = |i: i64| ((i as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20) as i64;
    let encodings = |of: &dyn Fn(i64) -> i64| {
        let array = Int64Array::from_iter_values((0..100_000).map(of));
        let file = written_with(&table(vec![("n", Arc::new(array))]), WriteOptions::new());
        let meta = metadata(&file.expect("a file")).row_groups[0].columns[0].meta_data.clone();
        meta.expect("metadata").encodings
    };
    let keys = encodings(&|i| scattered(i) % 100_000);
    assert!(keys.contains(&Encoding::DeltaBinaryPacked), "{keys:?}");
    let far_apart = encodings(&|i| (scattered(i) % (1 << 17)) << 32);
    assert!(far_apart.contains(&Encoding::ByteStreamSplit), "{far_apart:?}");
}

/// An encoding that the format does not have for a type is refused when the writer is made, and the
/// error names the column.
#[test]
fn illegal_encodings_are_refused_at_open() {
    use marquetry::format::Encoding::*;
    for (name, array) in columns_of_every_type() {
        let illegal: &[_] = match name {
            "boolean" => {
                &[RleDictionary, DeltaBinaryPacked, ByteStreamSplit, DeltaByteArray, Alp, Pfor]
            }
            "int32" | "int64" if !cfg!(feature = "preview") => &[Rle, DeltaByteArray, Alp, Pfor],
            "int32" | "int64" => &[Rle, DeltaByteArray, DeltaLengthByteArray, Alp],
            "float" | "double" => &[Rle, DeltaBinaryPacked, DeltaByteArray, Pfor],
            "byte_array" => &[Rle, DeltaBinaryPacked, ByteStreamSplit, Alp],
            _ => &[Rle, DeltaBinaryPacked, DeltaLengthByteArray, Alp],
        };
        for &encoding in illegal.iter().chain(&[BitPacked, PlainDictionary]) {
            let options = WriteOptions::new().with_column(name, |c| c.with_encoding(encoding));
            let batch = table(vec![(name, array.clone())]);
            let error = written_with(&batch, options).expect_err("illegal");
            assert_eq!(error.kind(), ErrorKind::Usage, "{name} {encoding}");
            assert!(error.to_string().contains(name), "{error}");
        }
    }
}

/// Each codec at its lowest, usual and highest level; what does not shrink comes back too.
#[test]
fn every_codec_is_written() {
    use marquetry::format::CompressionCodec as Codec;
    let codecs = [
        ("none", Codec::Uncompressed),
        ("snappy", Codec::Snappy),
        ("gzip:1", Codec::Gzip),
        ("gzip:9", Codec::Gzip),
        ("brotli:0", Codec::Brotli),
        ("brotli:9", Codec::Brotli),
        ("zstd:-5", Codec::Zstd),
        ("zstd:19", Codec::Zstd),
        ("lz4_raw", Codec::Lz4Raw),
        ("lzo", Codec::Lzo),
    ];
    let batch = table(columns_of_every_type());
    for (text, codec) in codecs {
        for version in [PageVersion::V1, PageVersion::V2] {
            let options = WriteOptions::new()
                .with_compression(text.parse().expect("a codec"))
                .with_page_version(version);
            let file = match written_with(&batch, options) {
                Err(error) if text == "lzo" && !cfg!(feature = "lzo") => {
                    assert_eq!(error.kind(), ErrorKind::FeatureDisabled("lzo"));
                    continue;
                }
                file => file.expect(text),
            };
            for chunk in &metadata(&file).row_groups[0].columns {
                assert_eq!(chunk.meta_data.as_ref().map(|meta| meta.codec), Some(codec), "{text}");
            }
            let reader = Reader::new(file).expect(text).threads(1);
            let back = reader.batches().expect(text).next().expect("rows").expect(text);
            assert_eq!(back.columns(), batch.columns(), "{text} {version:?}");
        }
    }
}

/// Old readers know converted types only: every logical type that has one is written with it.
#[test]
fn converted_types_stand_beside_logical_ones() {
    use marquetry::format::ConvertedType as C;
    let columns: Vec<(&str, ArrayRef, C)> = vec![
        ("text", Arc::new(StringArray::from(vec!["a"])), C::Utf8),
        ("i8", Arc::new(Int8Array::from(vec![1])), C::Int8),
        ("u16", Arc::new(UInt16Array::from(vec![1])), C::Uint16),
        ("u64", Arc::new(UInt64Array::from(vec![1])), C::Uint64),
        ("date", Arc::new(Date32Array::from(vec![1])), C::Date),
        ("millis", Arc::new(TimestampMillisecondArray::from(vec![1])), C::TimestampMillis),
        (
            "micros",
            Arc::new(TimestampMicrosecondArray::from(vec![1]).with_timezone("UTC")),
            C::TimestampMicros,
        ),
        ("time", Arc::new(Time32MillisecondArray::from(vec![1])), C::TimeMillis),
        ("decimal", Arc::new(Decimal128Array::from(vec![1])), C::Decimal),
    ];
    let batch = table(columns.iter().map(|(name, array, _)| (*name, array.clone())).collect());
    let file = written_with(&batch, WriteOptions::new()).expect("a file");
    let schema = metadata(&file).schema;
    for ((name, _, converted), element) in columns.iter().zip(&schema[1..]) {
        assert_eq!(element.converted_type, Some(*converted), "{name}");
        assert!(element.logical_type.is_some(), "{name}");
    }
    assert_eq!((schema[9].precision, schema[9].scale), (Some(38), Some(10)));
}

/// With content-defined chunking, rows that are put in change the pages around them and no others;
/// all rows come back either way.
/// Who takes a few rows decodes the dictionary of each row group that they are in.
#[test]
fn files_for_points_have_few_row_groups_unless_their_pages_are_numbered_in_16_bits() {
    let n = 1_200_000;
    let names = StringArray::from_iter_values((0..n).map(|i| format!("name {}", i % 1_000)));
    let batch = table(vec![("name", Arc::new(names))]);
    let rows = |options: WriteOptions| -> Vec<u64> {
        let file = written_with(&batch, options).expect("a file");
        let reader = Reader::new(file).expect("a file");
        let metadata = reader.metadata();
        (0..metadata.row_groups()).map(|i| metadata.row_group_rows(i).expect("rows")).collect()
    };
    let points = || WriteOptions::new().with_profile(Profile::Points);
    assert_eq!(rows(points()), [1_200_000]);
    assert_eq!(rows(points().with_row_group_rows(1_000_000)), [1_000_000, 200_000]);
    assert_eq!(rows(WriteOptions::new()), [1 << 20, 1_200_000 - (1 << 20)]);
    #[cfg(feature = "encryption")]
    {
        use marquetry::crypt::{Encryption, Key};
        let encryption = Encryption::new(Key::new(&[1; 16]).expect("a key"));
        let encrypted = points().with_encryption(encryption.with_plaintext_footer(true));
        assert_eq!(rows(encrypted), [1 << 20, 1_200_000 - (1 << 20)]);
    }
}

#[test]
fn pages_stay_the_same_around_an_edit() {
    let seed = 77;
    let mut rng = fastrand::Rng::with_seed(seed);
    let numbers: Vec<Option<i64>> =
        (0..60_000).map(|_| (rng.u8(..) > 9).then(|| rng.i64(..))).collect();
    let mut edited = numbers.clone();
    edited.splice(20_000..20_010, (0..500).map(Some));
    let chunking = ChunkingOptions::new(4 << 10, 32 << 10);
    let bodies = |values: &[Option<i64>], options: WriteOptions| {
        let batch = table(vec![("n", Arc::new(Int64Array::from(values.to_vec())))]);
        let file = written_with(&batch, options.with_dictionary(false)).expect("a file");
        let reader = Reader::new(file.clone()).expect("a file").threads(1);
        let rows: usize =
            reader.batches().expect("a plan").map(|b| b.expect("rows").num_rows()).sum();
        assert_eq!(rows, values.len());
        let pages = index(&file).offset_index.expect("an offset index").page_locations;
        let body = |page: &marquetry::format::PageLocation| {
            let start = page.offset as usize;
            file.slice(start..start + page.compressed_page_size as usize)
        };
        pages.iter().map(body).collect::<std::collections::HashSet<_>>()
    };
    let with = WriteOptions::new().with_content_defined_chunking(chunking);
    let (before, after) = (bodies(&numbers, with.clone()), bodies(&edited, with));
    let kept = before.intersection(&after).count();
    assert!(before.len() > 15, "{} pages", before.len());
    assert!(kept + 4 >= before.len(), "{kept} of {} pages are the same, seed {seed}", before.len());
    let without = WriteOptions::new().with_page_rows(2_000);
    let (before, after) = (bodies(&numbers, without.clone()), bodies(&edited, without));
    assert!(before.intersection(&after).count() < before.len() / 2);
    let wrong = ChunkingOptions::new(8, 8);
    let batch = table(vec![("n", Arc::new(Int64Array::from(vec![1])))]);
    let error = written_with(&batch, WriteOptions::new().with_content_defined_chunking(wrong));
    assert_eq!(error.expect_err("no room between them").kind(), ErrorKind::Usage);
}

/// Batches of a column that shrinks more and more, so that each row group has another ratio.
fn shrinking(batches: i64) -> Vec<RecordBatch> {
    let mut rng = fastrand::Rng::with_seed(7);
    let batch = |i: i64| {
        let words: Int64Array = (0..5000).map(|_| rng.i64(0..=i64::MAX >> i)).collect();
        let text: StringArray = (0..5000).map(|row| Some(format!("row {row} of {i}"))).collect();
        table(vec![("words", Arc::new(words)), ("text", Arc::new(text))])
    };
    (0..batches).map(batch).collect()
}

#[test]
fn any_number_of_threads_writes_the_same_file() {
    let batches = shrinking(40);
    let write = |threads: usize, memory: u64| {
        let options = WriteOptions::new().with_row_group_bytes(60_000).with_memory(memory);
        let encoder = RowGroupEncoder::new(batches[0].schema(), options)
            .and_then(|encoder| encoder.with_threads(threads))
            .expect("an encoder");
        let mut writer = Writer::over(WriteSink(Vec::new()), encoder);
        for batch in &batches {
            writer.write(batch).expect("rows");
        }
        let (report, bytes) = writer.into_inner().expect("a file");
        assert!(report.row_groups() > 25, "{} row groups", report.row_groups());
        bytes
    };
    let alone = write(1, 1 << 30);
    for threads in [2, 3, 12] {
        assert!(write(threads, 1 << 30) == alone, "{threads} threads");
    }
    // Little memory: they wait for each other.
    assert!(write(3, 2 << 20) == alone);
}

/// A column of numbers as values of a type, by turns; some rows are null.
fn column_of(numbers: &[Option<u64>], kind: usize) -> ArrayRef {
    let some = || numbers.iter().copied();
    let long = |i: u64| format!("the value of number {i:->40}");
    match kind {
        0 => Arc::new(some().map(|i| Some(format!("{}", i?))).collect::<StringArray>()),
        1 => Arc::new(some().map(|i| Some(long(i?).into_bytes())).collect::<BinaryViewArray>()),
        2 => {
            Arc::new(some().map(|i| Some((i? as i32).wrapping_mul(30_011))).collect::<Int32Array>())
        }
        3 => Arc::new(some().map(|i| Some(i?.cast_signed())).collect::<Int64Array>()),
        4 => {
            let float = |i: u64| match i % 9 {
                0 => f64::from_bits(f64::NAN.to_bits() + i % 2),
                1 => -0.0,
                2 => 0.0,
                _ => i as f64 / 7.0,
            };
            Arc::new(some().map(|i| i.map(float)).collect::<Float64Array>())
        }
        5 => {
            let fixed = some().map(|i| i.map(|i| u128::from(i).to_be_bytes()));
            Arc::new(FixedSizeBinaryArray::try_from_sparse_iter_with_size(fixed, 16).unwrap())
        }
        _ => Arc::new(some().map(|i| Some(long(i?))).collect::<LargeStringArray>()),
    }
}

#[test]
fn the_dictionary_of_several_threads_is_that_of_one() {
    let seed = 8187915489812657007;
    let mut rng = fastrand::Rng::with_seed(seed);
    let rows = 420_000;
    let mut dictionaries = 0;
    for kind in 0..7 {
        // Few, many, and enough that the dictionary is given up, early or late.
        let distinct = [50, 20_000, 90_000, 200_000][(kind + rng.usize(0..4)) % 4];
        let percent = [0, 10][rng.usize(0..2)];
        let numbers: Vec<Option<u64>> = (0..rows)
            .map(|row| (rng.u8(0..100) >= percent).then(|| rng.u64(0..=distinct * row / rows)))
            .collect();
        let batches: Vec<RecordBatch> = numbers
            .chunks(150_001)
            .map(|some| table(vec![("column", column_of(some, kind))]))
            .collect();
        let dictionary_bytes = [16 << 20, rng.usize(0..distinct as usize * 12)][rng.usize(0..2)];
        let what = format!(
            "seed {seed}, kind {kind}, {distinct} distinct, {percent} % nulls, \
             {dictionary_bytes} bytes"
        );
        let write = |threads: usize| -> bytes::Bytes {
            let options = WriteOptions::new().with_dictionary_bytes(dictionary_bytes);
            let encoder = RowGroupEncoder::new(batches[0].schema(), options)
                .and_then(|encoder| encoder.with_threads(threads))
                .expect("an encoder");
            let mut writer = Writer::over(WriteSink(Vec::new()), encoder);
            for batch in &batches {
                writer.write(batch).expect("rows");
            }
            writer.into_inner().expect("a file").1.into()
        };
        let alone = write(1);
        let of_chunk = metadata(&alone).row_groups[0].columns[0].clone();
        let of_chunk = of_chunk.meta_data.expect("metadata");
        dictionaries += usize::from(of_chunk.encodings.contains(&Encoding::RleDictionary));
        for threads in [2, 3, 4] {
            assert!(write(threads) == alone, "{threads} threads, {what}");
        }
    }
    assert_eq!(dictionaries, 4, "seed {seed}: columns with a dictionary, of 7");
}

/// Keeps what it is given.
struct PiecesOf<'p>(&'p mut Vec<bytes::Bytes>);

impl Sink for PiecesOf<'_> {
    fn write(&mut self, bytes: bytes::Bytes) -> Result<()> {
        self.0.push(bytes);
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        Ok(())
    }
}

#[test]
fn numbers_that_are_stored_as_they_are_are_not_copied() {
    let seed = 71;
    let mut rng = fastrand::Rng::with_seed(seed);
    let values: Vec<i64> = (0..40_000).map(|_| rng.i64(..)).collect();
    let array = Int64Array::from(values);
    let batch = table(vec![("a", Arc::new(array.slice(5_000, 30_000)))]);
    for (nulls, version) in
        [(false, PageVersion::V1), (false, PageVersion::V2), (true, PageVersion::V1)]
    {
        let batch = match nulls {
            true => table(vec![(
                "a",
                Arc::new((0..30_000).map(|i| (i % 3 > 0).then_some(i)).collect::<Int64Array>()),
            )]),
            false => batch.clone(),
        };
        let options = WriteOptions::new()
            .with_compression(Compression::Uncompressed)
            .with_page_version(version)
            .with_column("a", |column| {
                column.with_encoding(Encoding::Plain).with_page_rows(10_000)
            });
        let encoder = RowGroupEncoder::new(batch.schema(), options).expect("a schema");
        let encoder = encoder.with_threads(1).expect("one thread");
        let mut pieces = Vec::new();
        let mut writer = Writer::over(PiecesOf(&mut pieces), encoder);
        writer.write(&batch).expect("rows");
        writer.finish().expect("a file");
        let places: Vec<usize> =
            [5_000, 15_000, 25_000].map(|i| array.values()[i..].as_ptr() as usize).into();
        let found = places.iter().filter(|place| {
            pieces.iter().any(|piece: &bytes::Bytes| piece.as_ptr() as usize == **place)
        });
        // Values among nulls are moved together.
        if !nulls {
            assert_eq!(found.count(), 3, "pages in the memory of the array; seed {seed}");
        }
        let file: bytes::Bytes = pieces.concat().into();
        assert_eq!(read(file).expect("rows"), [batch]);
    }
}

#[test]
fn a_sort_order_is_in_the_footer_and_true() {
    let texts = StringArray::from(vec![None, Some("b"), Some("a"), Some("a")]);
    let numbers = Int64Array::from(vec![1, 1, 1, 2]);
    let batch = table(vec![("other", Arc::new(numbers)), ("t", Arc::new(texts))]);
    let order = || [SortColumn::descending("t").nulls_first(), SortColumn::ascending("other")];
    let file = written_with(&batch, WriteOptions::new().with_sort_order(order())).expect("a file");
    let sorted = metadata(&file).row_groups[0].sorting_columns.clone().expect("an order");
    let columns: Vec<_> =
        sorted.iter().map(|by| (by.column_idx, by.descending, by.nulls_first)).collect();
    assert_eq!(columns, [(1, true, true), (0, false, false)]);
    // Each of several row groups is sorted, and nothing beyond that is stated.
    let options = WriteOptions::new().with_sort_order(order()).with_row_group_rows(2);
    let parts = [batch.slice(2, 2), batch.slice(0, 2)];
    let mut writer = Writer::new(WriteSink(Vec::new()), batch.schema(), options).expect("a writer");
    parts.iter().for_each(|part| writer.write(part).expect("rows"));
    let file: bytes::Bytes = writer.into_inner().expect("a file").1.into();
    assert_eq!(metadata(&file).row_groups.len(), 2);
    // A false claim is an error, unless it is unchecked.
    let wrong = || [SortColumn::ascending("t")];
    let refused = written_with(&batch, WriteOptions::new().with_sort_order(wrong()));
    assert_eq!(refused.expect_err("rows in another order").kind(), ErrorKind::Usage);
    let options = WriteOptions::new().with_unchecked_sort_order(wrong());
    assert!(
        metadata(&written_with(&batch, options).expect("a file")).row_groups[0]
            .sorting_columns
            .is_some()
    );
    let options = WriteOptions::new().with_sort_order([SortColumn::ascending("nothing")]);
    assert_eq!(written_with(&batch, options).expect_err("no column").kind(), ErrorKind::Usage);
}

#[test]
fn an_error_of_an_earlier_row_group_ends_the_file() {
    let field = Field::new("a", DataType::Int32, false);
    let schema = Arc::new(Schema::new(vec![field]));
    for threads in [1, 3] {
        let encoder =
            RowGroupEncoder::new(schema.clone(), WriteOptions::new().with_row_group_rows(100))
                .and_then(|encoder| encoder.with_threads(threads))
                .expect("an encoder");
        let mut writer = Writer::over(WriteSink(Vec::new()), encoder);
        // Batches that say nothing of their nulls are taken as they are.
        let batch = |null: Option<i32>| {
            let column: Int32Array =
                (0..100).map(|i| if i == 50 { null } else { Some(i) }).collect();
            table(vec![("a", Arc::new(column))])
        };
        let mut told = Vec::new();
        for i in 0..30 {
            if let Err(error) = writer.write(&batch((i != 10).then_some(50))) {
                told.push((i, error));
            }
        }
        let (first, error) = told.first().expect("an error before the end");
        assert!(*first >= 10, "{first}");
        assert_eq!(error.kind(), ErrorKind::Usage);
        assert_eq!(told.len(), 30 - first, "every later call fails");
        assert!(writer.finish().is_err());
    }
}

#[test]
fn paths_of_columns_are_left_out_on_request_and_stated_again_by_a_rewrite() {
    use marquetry::rewrite::Rewrite;
    let names = StringArray::from(vec!["x", "y", "z"]);
    let inner: ArrayRef = Arc::new(Int32Array::from(vec![Some(4), None, Some(6)]));
    let field = Arc::new(Field::new("n", DataType::Int32, true));
    let nested: ArrayRef = Arc::new(StructArray::from(vec![(field, inner)]));
    let batch = table(vec![("name", Arc::new(names) as ArrayRef), ("s", nested)]);
    let paths = |file: &bytes::Bytes| -> Vec<Vec<String>> {
        let chunks = metadata(file).row_groups.into_iter().flat_map(|group| group.columns);
        chunks.map(|chunk| chunk.meta_data.expect("metadata").path_in_schema).collect()
    };
    let stated = [vec!["name".to_owned()], vec!["s".to_owned(), "n".to_owned()]];
    let with = written_with(&batch, WriteOptions::new()).expect("a file");
    let omit = || WriteOptions::new().with_path_in_schema(false);
    let without = written_with(&batch, omit()).expect("a file");
    assert_eq!(paths(&with), stated);
    assert_eq!(paths(&without), [Vec::<String>::new(), Vec::new()]);
    assert!(without.len() < with.len(), "the field is left out, not empty");
    assert_eq!(read(without.to_vec()).expect("rows"), read(with.to_vec()).expect("rows"));
    let rewritten = |file: &bytes::Bytes, options: WriteOptions| -> bytes::Bytes {
        let reader = Reader::new(file.clone()).expect("a file");
        let (mut out, rewrite) = (Vec::new(), Rewrite::new([reader]).options(options));
        rewrite.run(WriteSink(&mut out)).expect("a copy");
        out.into()
    };
    assert_eq!(paths(&rewritten(&without, WriteOptions::new())), stated);
    assert_eq!(paths(&rewritten(&without, omit())), paths(&without));
    assert_eq!(paths(&rewritten(&with, omit())), paths(&without));
}

#[test]
fn arrow_rs_reads_a_footer_without_paths() {
    use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
    let batch = table(vec![("x", Arc::new(Int32Array::from(vec![1, 2, 3])) as ArrayRef)]);
    let options = WriteOptions::new().with_path_in_schema(false);
    let file = written_with(&batch, options).expect("a file");
    let reader = ParquetRecordBatchReaderBuilder::try_new(file).expect("a footer").build();
    let rows: usize = reader.expect("a reader").map(|batch| batch.expect("rows").num_rows()).sum();
    assert_eq!(rows, 3);
}

#[cfg(feature = "encryption")]
#[test]
fn paths_are_left_out_of_encrypted_metadata_too() {
    use marquetry::Limits;
    use marquetry::crypt::{Decryption, Encryption, Key};
    let batch = table(vec![("x", Arc::new(Int32Array::from(vec![1, 2, 3])) as ArrayRef)]);
    let (footer, column) = (|| Key::new(&[1; 16]).unwrap(), || Key::new(&[2; 16]).unwrap());
    let encryption = Encryption::new(footer()).with_column_key("x", column());
    let options = WriteOptions::new().with_path_in_schema(false).with_encryption(encryption);
    let file = written_with(&batch, options).expect("a file");
    let keys = Decryption::new().with_footer_key(footer()).with_column_key("x", column());
    let reader = Reader::with_keys(file, Limits::default(), &keys).expect("a footer");
    let meta = reader.metadata().column_chunk(0, 0).expect("a chunk").meta_data.expect("metadata");
    assert!(meta.path_in_schema.is_empty());
    assert_eq!(crate::support::read_with(reader).expect("rows").len(), 1);
}
