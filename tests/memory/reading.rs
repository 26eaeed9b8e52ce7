//! Tests that the peak of the heap does not grow with the file: a file twice as long with the same
//! row groups takes the same. Whatever a small file expands to stays within the limit, or is
//! refused.

use std::sync::Arc;

use crate::support::filled;
use arrow_array_60 as arrow;
use arrow_buffer::OffsetBuffer;
use bytes::Bytes;
use marquetry::arrow_schema::{DataType, Field, Schema};
use marquetry::format::*;
use marquetry::io::WriteSink;
use marquetry::read::OnDamage;
use marquetry::schema::{Dictionaries, MatchBy};
use marquetry::{ErrorKind, LimitKind, Reader, WriteOptions, Writer, col};
use parquet::arrow::ArrowWriter;
use parquet::file::properties::WriterProperties;

use crate::support::heap;
use crate::{alone, support};

const ROWS_OF_A_GROUP: usize = 100_000;

/// A file of this many row groups, in a folder.
fn write(folder: &std::path::Path, groups: usize) -> std::path::PathBuf {
    let n = ROWS_OF_A_GROUP * groups;
    let mut rng = fastrand::Rng::with_seed(1);
    let numbers = arrow::Int64Array::from_iter((0..n).map(|i| (i % 9 != 0).then(|| rng.i64(..))));
    let texts = arrow::StringArray::from_iter_values(
        (0..n).map(|i| format!("text number {}", i * 7 % 10_007)),
    );
    let columns: [(&str, arrow::ArrayRef); 2] = [("n", Arc::new(numbers)), ("t", Arc::new(texts))];
    let batch = arrow::RecordBatch::try_from_iter(columns).expect("a batch");
    let path = folder.join(format!("{groups}.parquet"));
    let properties =
        WriterProperties::builder().set_max_row_group_row_count(Some(ROWS_OF_A_GROUP)).build();
    let file = std::fs::File::create(&path).expect("a file");
    let mut writer =
        ArrowWriter::try_new(file, batch.schema(), Some(properties)).expect("a writer");
    writer.write(&batch).expect("rows");
    writer.close().expect("a footer");
    path
}

/// The most heap that reading takes, of a few times: how far the threads are ahead when a batch is
/// let go is chance.
fn peak(path: &std::path::Path, threads: usize) -> usize {
    (0..3).map(|_| peak_of_one(path, threads)).max().expect("a read")
}

fn peak_of_one(path: &std::path::Path, threads: usize) -> usize {
    let before = heap::start();
    let reader = Reader::open(path).expect("a file").threads(threads).memory(64 << 20);
    let mut rows = 0;
    for batch in reader.batches().expect("a plan") {
        rows += batch.expect("a batch").num_rows();
        if threads > 1 {
            // Held until the threads have decoded all that they may: else it is a matter of luck
            // how much is held at a time.
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
    }
    assert_eq!(rows as u64, reader.rows().expect("a count"));
    heap::peak() - before
}

#[test]
fn twice_the_file_takes_the_same_memory() {
    let _alone = alone();
    let folder = tempfile::tempdir().expect("a folder");
    // Both larger than all that is held at a time: two waves, and memory that is kept to be used
    // again.
    let (one, two) = (write(folder.path(), 24), write(folder.path(), 48));
    for threads in [1, 2] {
        // The first read pays for memory that is allocated once.
        peak_of_one(&one, threads);
        let (a, b) = (peak(&one, threads), peak(&two, threads));
        println!("{threads} threads: {a} bytes for 24 row groups, {b} for 48");
        assert!(b <= a + a / 5, "{threads} threads: {a} bytes for 24 row groups, {b} for 48");
        assert!(a < 64 << 20, "within the budget");
    }
}

/// Memory that the small files of these tests may take.
const LIMIT: usize = 64 << 20;

/// Memory that is not counted one by one: pooled buffers, tables of codecs, stacks of iterators.
const SLACK: usize = 16 << 20;

/// A ZSTD frame of `len` zeros: blocks that are runs, 4 bytes for 128 KiB.
fn zstd_zeros(len: usize) -> Vec<u8> {
    // Magic number; no size, no checksum; a window of 128 KiB.
    let mut out = vec![0x28, 0xB5, 0x2F, 0xFD, 0, 7 << 3];
    let mut left = len;
    loop {
        let n = left.min(128 << 10);
        left -= n;
        let header = u32::try_from(n << 3 | 1 << 1 | usize::from(left == 0)).expect("24 bits");
        out.extend_from_slice(&header.to_le_bytes()[..3]);
        out.push(0);
        if left == 0 {
            return out;
        }
    }
}

/// A dictionary page of zeros.
fn dictionary_of_zeros(entries: usize, len: usize) -> Vec<u8> {
    let body = zstd_zeros(len);
    let size = |n: usize| i32::try_from(n).expect("31 bits");
    let header = filled!(PageHeader {
        r#type: PageType::DictionaryPage,
        uncompressed_page_size: size(len),
        compressed_page_size: size(body.len()),
        dictionary_page_header: Some(filled!(DictionaryPageHeader {
            num_values: size(entries),
            encoding: Encoding::Plain
        }))
    });
    support::page(header, &body)
}

/// A data page of zeros, compressed.
fn page_of_zeros(values: usize, encoding: Encoding, len: usize) -> Vec<u8> {
    let body = zstd_zeros(len);
    support::page(support::v1_header(values, encoding, len, body.len()), &body)
}

fn one_column(r#type: Type, rows: usize, chunk: support::Chunk) -> Bytes {
    let chunk = chunk.codec(CompressionCodec::Zstd);
    let rows = i64::try_from(rows).expect("few");
    support::file(vec![support::required("v", r#type)], rows, vec![chunk]).into()
}

/// A chunk of `rows` values that are entry 0 of a dictionary of zeros.
fn dictionary_bomb(r#type: Type, rows: usize, entries: usize, len: usize) -> Bytes {
    // A bit width of 0, and a run of all of them.
    let indices = page_of_zeros(rows, Encoding::RleDictionary, 1);
    let chunk = support::Chunk::new(r#type, rows, &[indices])
        .with_dictionary(dictionary_of_zeros(entries, len));
    one_column(r#type, rows, chunk)
}

/// Reads `bytes` in every way, each within the limit, and returns the names of those that
/// succeeded.
fn every_way(name: &str, bytes: &Bytes, data_type: &DataType) -> Vec<&'static str> {
    type Way = fn(Reader, DataType) -> marquetry::Result<u64>;
    fn all(reader: Reader) -> marquetry::Result<u64> {
        let mut rows = 0;
        for batch in reader.batches()? {
            rows += batch?.num_rows() as u64;
        }
        Ok(rows)
    }
    let ways: [(&'static str, Way); 9] = [
        ("one thread", |reader, _| all(reader.threads(1))),
        ("two threads", |reader, _| all(reader.threads(2))),
        ("views", |reader, _| all(reader.threads(1).views(true))),
        ("dictionaries", |reader, _| all(reader.threads(1).dictionaries(Dictionaries::Strings))),
        ("target", |reader, data_type| {
            let to = DataType::Dictionary(Box::new(DataType::UInt32), Box::new(data_type));
            let schema = Schema::new(vec![Field::new("v", to, true)]);
            all(reader.threads(1).target(schema.into(), MatchBy::Name)?)
        }),
        ("filter", |reader, _| all(reader.threads(1).filter(col("v").is_null()))),
        ("count", |reader, _| reader.filter(col("v").is_not_null()).count()),
        ("take", |reader, _| reader.take(&[0, 5, 9]).map(|batch| batch.num_rows() as u64)),
        ("lossy", |reader, _| all(reader.threads(1).lossy_utf8(true))),
    ];
    let mut fine = Vec::new();
    for (way, read) in ways {
        let reader = Reader::new(bytes.clone()).expect("a footer").memory(LIMIT as u64);
        let before = heap::start();
        let found = read(reader, data_type.clone());
        let peak = heap::peak() - before;
        println!("{name}, {way}: {} MiB, {found:?}", peak >> 20);
        assert!(peak <= LIMIT + SLACK, "{name}, {way}: {} MiB", peak >> 20);
        match found {
            Ok(_) => fine.push(way),
            Err(e) => {
                assert_eq!(e.kind(), ErrorKind::Limit(LimitKind::Memory), "{name}, {way}: {e}");
                let text = e.to_string();
                let says = text.contains("bytes wanted for") && text.contains("67108864");
                assert!(says, "{name}, {way}: {text}");
            }
        }
    }
    fine
}

#[test]
fn a_page_that_expands_beyond_the_limit_is_refused_before_it_does() {
    let _alone = alone();
    let values = 1 << 28;
    let pages = [page_of_zeros(values, Encoding::Plain, 1 << 30)];
    let bomb = one_column(Type::Int32, values, support::Chunk::new(Type::Int32, values, &pages));
    assert!(bomb.len() < 40_000);
    let fine = every_way("a page of 1 GiB", &bomb, &DataType::Int32);
    // Where there are no nulls is known without reading.
    assert!(fine.iter().all(|way| ["filter", "count"].contains(way)), "{fine:?}");
}

#[test]
fn a_page_within_the_limit_is_read() {
    let _alone = alone();
    let values = 10 << 20;
    let pages = [page_of_zeros(values, Encoding::Plain, 40 << 20)];
    let file = one_column(Type::Int32, values, support::Chunk::new(Type::Int32, values, &pages));
    let fine = every_way("a page of 40 MiB", &file, &DataType::Int32);
    assert_eq!(fine.len(), 9, "{fine:?}");
}

#[test]
fn a_dictionary_of_empty_strings_stays_within_the_limit() {
    let _alone = alone();
    for entries in [1 << 28, 12 << 20, 5 << 20] {
        let bomb = dictionary_bomb(Type::ByteArray, 100_000, entries, 4 * entries);
        assert!(bomb.len() < 40_000);
        every_way(&format!("{entries} empty strings"), &bomb, &DataType::Binary);
    }
    let sane = dictionary_bomb(Type::ByteArray, 100_000, 400_000, 1_600_000);
    let fine = every_way("400,000 empty strings", &sane, &DataType::Binary);
    assert_eq!(fine.len(), 9, "{fine:?}");
}

#[test]
fn a_boolean_dictionary_stays_within_the_limit() {
    let _alone = alone();
    for entries in [i32::MAX as usize, 1 << 28, 1 << 26, 1 << 25] {
        let bomb = dictionary_bomb(Type::Boolean, 100_000, entries, entries.div_ceil(8));
        assert!(bomb.len() < 16_000);
        every_way(&format!("{entries} booleans"), &bomb, &DataType::Boolean);
    }
    let sane = dictionary_bomb(Type::Boolean, 100_000, 2, 1);
    let fine = every_way("2 booleans", &sane, &DataType::Boolean);
    assert_eq!(fine.len(), 9, "{fine:?}");
}

#[test]
fn what_was_handed_out_is_the_callers() {
    let _alone = alone();
    // Long strings, whose pages the views hold.
    let strings = arrow::StringArray::from_iter_values(
        (0..60_000).map(|i| format!("{i:>0200}", i = i * 7919 % 60_000)),
    );
    let column: arrow::ArrayRef = Arc::new(strings);
    let batch = arrow::RecordBatch::try_from_iter([("t", column)]).expect("a batch");
    for compression in
        [parquet::basic::Compression::SNAPPY, parquet::basic::Compression::UNCOMPRESSED]
    {
        let properties = WriterProperties::builder()
            .set_compression(compression)
            .set_dictionary_enabled(false)
            .set_max_row_group_row_count(Some(10_000))
            .build();
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("strings.parquet");
        let out = std::fs::File::create(&path).expect("a file");
        let mut writer = ArrowWriter::try_new(out, batch.schema(), Some(properties)).expect("ok");
        writer.write(&batch).expect("rows");
        writer.close().expect("a footer");
        for threads in [1, 2] {
            let reader = Reader::open(&path).expect("a file").threads(threads).views(true);
            let batches = reader.memory(10 << 20).batch_rows(1000).batches().expect("a plan");
            // 12 MB in the caller's hands, of a read that may take 10 MiB.
            let all = batches.collect::<Result<Vec<_>, _>>().expect("rows");
            assert_eq!(all.iter().map(|batch| batch.num_rows()).sum::<usize>(), 60_000);
        }
    }
}

/// Two columns of rows that are all one long string of a dictionary: the metadata say little of how
/// much that is as arrays.
fn rows_of_one_string(rows: usize, len: usize) -> Bytes {
    // A bit width of 1, and a run of all of them.
    let mut indices = vec![1];
    let mut run = 2 * rows;
    while run >= 0x80 {
        indices.push(run.to_le_bytes()[0] | 0x80);
        run >>= 7;
    }
    indices.push(run.to_le_bytes()[0]);
    indices.push(0);
    let page = support::v1(rows, Encoding::RleDictionary, &indices);
    let columns = ["s", "t"].map(|name| {
        let text = name.repeat(len);
        let dictionary = support::dictionary(1, &support::texts(&[&text]));
        let chunk = support::Chunk::new(Type::ByteArray, rows, std::slice::from_ref(&page));
        let mut leaf = support::required(name, Type::ByteArray);
        leaf.converted_type = Some(ConvertedType::Utf8);
        (leaf, chunk.with_dictionary(dictionary))
    });
    let (schema, chunks) = columns.into_iter().unzip();
    support::file(schema, i64::try_from(rows).expect("few"), chunks).into()
}

#[test]
fn arrays_that_wait_to_be_given_out_are_within_the_limit() {
    let _alone = alone();
    // A batch of 1,000 rows takes 1 MB, all of them 400 MB.
    let file = rows_of_one_string(400_000, 500);
    assert!(file.len() < 2000);
    for threads in [1, 2, 4] {
        for filter in [None, Some(col("t").gt_eq("a"))] {
            let reader = Reader::new(file.clone()).expect("a footer").memory(LIMIT as u64);
            let mut reader = reader.threads(threads).batch_rows(1000);
            if let Some(filter) = &filter {
                reader = reader.filter(filter.clone());
            }
            let before = heap::start();
            let mut rows = 0;
            for batch in reader.batches().expect("a plan") {
                rows += batch.expect("rows").num_rows();
            }
            let peak = heap::peak() - before;
            println!("{threads} threads, {filter:?}: {} MiB", peak >> 20);
            assert_eq!(rows, 400_000);
            assert!(peak <= LIMIT + SLACK, "{threads} threads, {filter:?}: {} MiB", peak >> 20);
        }
    }
}

/// Asserts that `read` takes no more memory than [`LIMIT`], and returns what it does.
fn within_the_limit<T>(what: &str, read: impl FnOnce() -> T) -> T {
    let before = heap::start();
    let found = read();
    let peak = heap::peak() - before;
    println!("{what}: {} MiB", peak >> 20);
    assert!(peak <= LIMIT + SLACK, "{what}: {} MiB", peak >> 20);
    found
}

#[test]
fn strings_that_rows_share_are_changed_for_a_filter_within_the_limit() {
    let _alone = alone();
    // If each row has its own string, a batch takes 400 MB.
    let file = rows_of_one_string(20_000, 50_000);
    for views in [false, true] {
        let filters = [
            ("lower", col("s").lower().eq("s".repeat(50_000))),
            ("upper", col("s").upper().lt("T")),
            ("ilike", col("s").ilike("S%s")),
        ];
        for (name, filter) in filters {
            let reader = Reader::new(file.clone()).expect("a footer").memory(LIMIT as u64);
            let reader = reader.threads(1).batch_rows(8192).views(views).filter(filter);
            let what = format!("{name}, views {views}");
            let rows = within_the_limit(&what, || reader.count().expect("rows"));
            assert_eq!(rows, 20_000, "{what}");
        }
    }
}

/// A file of VARIANT values that are all one string; the hint makes them views.
fn variants_of_one_string(rows: usize, len: usize) -> Bytes {
    let batch = crate::variants_of_one_string(rows, len);
    let mut file = Vec::new();
    let mut writer = Writer::new(WriteSink(&mut file), batch.schema(), WriteOptions::default())
        .expect("a writer");
    writer.write(&batch).expect("rows");
    writer.finish().expect("a footer");
    file.into()
}

#[test]
fn variants_that_rows_share_are_converted_within_the_limit() {
    use marquetry::read::VariantOutput;
    use marquetry::variant::{VariantArray, VariantShape};
    let _alone = alone();
    let file = variants_of_one_string(4000, 50_000);
    assert!(file.len() < 100_000, "{} bytes", file.len());
    let reader = || {
        let reader = Reader::new(file.clone()).expect("a footer").memory(LIMIT as u64);
        reader.threads(1).batch_rows(8192)
    };
    let rows = |what: &str, reader: Reader| {
        let rows = within_the_limit(what, || {
            let batches = reader.batches().expect("a plan");
            batches.map(|batch| batch.expect("rows").num_rows()).sum::<usize>()
        });
        assert_eq!(rows, 4000, "{what}");
    };
    rows("as stored", reader());
    rows("unshredded", reader().variants(VariantOutput::Unshredded));
    let text = VariantShape::scalar(DataType::Utf8).expect("a type of VARIANT");
    rows("shredded", reader().variants(VariantOutput::Shape(text)));
    rows("as JSON", reader().variants(VariantOutput::Json));
    let part = |data_type: DataType| {
        let whole = "$".parse().expect("a path");
        let reader = reader().project([] as [&str; 0]).expect("no column");
        reader.variant_get("v", whole, data_type, "part")
    };
    rows("a part as text", part(DataType::Utf8));
    rows("a part as a VARIANT", part(VariantArray::unshredded_type()));
    let lists = DataType::List(Arc::new(Field::new_list_field(DataType::Utf8, true)));
    rows("a part as lists", part(lists));
}

#[test]
fn elements_that_lists_of_variants_lack_are_not_made() {
    use marquetry::arrow_array::builder::BinaryViewBuilder;
    use marquetry::arrow_array::{
        Array, ArrayRef, Int64Array, ListArray, StructArray, new_null_array,
    };
    use marquetry::variant::VariantArray;
    let _alone = alone();
    // Lists of a hundred thousand numbers: one of the rows has one, which is null.
    let pair = |typed: ArrayRef| {
        let typed_value = Field::new("typed_value", typed.data_type().clone(), true);
        StructArray::new(vec![typed_value].into(), vec![typed], None)
    };
    let number = pair(Arc::new(Int64Array::new_null(0)));
    let number = Arc::new(Field::new("element", number.data_type().clone(), false));
    let lists = DataType::FixedSizeList(number, 100_000);
    let element: ArrayRef = Arc::new(pair(new_null_array(&lists, 1)));
    let offsets = OffsetBuffer::from_lengths(std::iter::once(1).chain([0; 999]));
    let item = Arc::new(Field::new("element", element.data_type().clone(), false));
    let typed: ArrayRef = Arc::new(ListArray::new(item, offsets, element, None));
    let mut metadata = BinaryViewBuilder::new();
    (0..1000).for_each(|_| metadata.append_value([1, 0, 0]));
    let metadata: ArrayRef = Arc::new(metadata.finish());
    let fields = vec![
        Field::new("metadata", DataType::BinaryView, false),
        Field::new("typed_value", typed.data_type().clone(), true),
    ];
    let group = StructArray::new(fields.into(), vec![metadata, typed], None);
    let column = VariantArray::new(&group).expect("a VARIANT");
    let first = within_the_limit("the first elements", || {
        let numbers = column.get(&"$[0][3]".parse().expect("a path"), &DataType::Int64);
        assert_eq!(numbers.expect("numbers").null_count(), 1000);
        let whole = VariantArray::unshredded_type();
        column.get(&"$[0]".parse().expect("a path"), &whole).expect("elements")
    });
    assert_eq!(first.null_count(), 999);
}

#[test]
fn null_lists_of_a_huge_fixed_size_are_refused_before_they_are_made() {
    let _alone = alone();
    let element =
        Arc::new(arrow_schema_60::Field::new_list_field(arrow_schema_60::DataType::Int32, true));
    let lists: arrow::ArrayRef = Arc::new(arrow::ListArray::new_null(element, 8));
    let batch = arrow::RecordBatch::try_from_iter([("l", lists)]).expect("a batch");
    let mut file = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut file, batch.schema(), None).expect("a writer");
    writer.write(&batch).expect("rows");
    writer.close().expect("a footer");
    let item = Arc::new(Field::new_list_field(DataType::Int32, true));
    let before = heap::start();
    let rows = |size| {
        let field = Field::new("l", DataType::FixedSizeList(item.clone(), size), true);
        let schema = Arc::new(Schema::new(vec![field]));
        let reader = Reader::new(Bytes::from(file.clone()))?.memory(LIMIT as u64).threads(1);
        let mut batches = reader.target(schema, MatchBy::Name)?.batches()?;
        Ok(batches.next_batch()?.map_or(0, |batch| batch.num_rows()))
    };
    assert_eq!(rows(1 << 10).expect("small lists"), 8);
    let error: marquetry::Error = rows(1 << 24).expect_err("640 MB of nulls");
    assert_eq!(error.kind(), ErrorKind::Limit(LimitKind::Memory), "{error}");
    let peak = heap::peak() - before;
    assert!(peak <= LIMIT + SLACK, "{} MiB", peak >> 20);
}

#[test]
fn nulls_of_columns_that_a_file_does_not_have_are_refused_before_they_are_made() {
    use marquetry::arrow_array::{ArrayRef, Int32Array, RecordBatch};
    let _alone = alone();
    let n: ArrayRef = Arc::new(Int32Array::from_iter_values(0..100));
    let batch = RecordBatch::try_from_iter([("n", n)]).expect("a batch");
    let mut file = Vec::new();
    let mut writer = Writer::new(WriteSink(&mut file), batch.schema(), WriteOptions::default())
        .expect("a writer");
    writer.write(&batch).expect("rows");
    writer.finish().expect("a footer");
    let file = Bytes::from(file);
    let item = Arc::new(Field::new_list_field(DataType::Int32, true));
    let reader = |size, inner: i32| {
        let lists = DataType::FixedSizeList(item.clone(), size);
        let of_lists = DataType::FixedSizeList(Arc::new(Field::new_list_field(lists, true)), inner);
        let fields = [("n", DataType::Int32), ("l", of_lists)];
        let fields = fields.map(|(name, of)| Field::new(name, of, true));
        let reader = Reader::new(file.clone()).expect("a file").memory(LIMIT as u64).threads(1);
        let schema = Arc::new(Schema::new(fields.to_vec()));
        reader.target(schema, MatchBy::Name).expect("a column that is not there")
    };
    let rows = |reader: Reader| -> marquetry::Result<usize> {
        reader.batches()?.map(|batch| Ok(batch?.num_rows())).sum()
    };
    let before = heap::start();
    assert_eq!(rows(reader(1 << 10, 2)).expect("800 KB of nulls"), 100);
    assert_eq!(rows(reader(1 << 18, 2)).expect("200 MB of nulls in smaller batches"), 100);
    for (size, inner) in [(1 << 24, 2), (i32::MAX, i32::MAX)] {
        let error = rows(reader(size, inner)).expect_err("128 MB for a row, and more");
        assert_eq!(error.kind(), ErrorKind::Limit(LimitKind::Memory), "{error}");
        // Tested, and not given.
        let narrow = || reader(size, inner).project(["n"]).expect("a column");
        assert_eq!(rows(narrow().filter(col("l").is_null())).expect("all rows"), 100);
        assert_eq!(rows(narrow().filter(col("l").is_not_null())).expect("no row"), 0);
    }
    let peak = heap::peak() - before;
    assert!(peak <= LIMIT + SLACK, "{} MiB", peak >> 20);
}

#[test]
fn lists_below_null_lists_of_a_fixed_size_are_not_allocated_beforehand() {
    use arrow_schema_60::{DataType as OfWriter, Field as FieldOfWriter};
    let _alone = alone();
    let list = |of| Arc::new(FieldOfWriter::new_list_field(of, true));
    let inner = OfWriter::List(list(OfWriter::List(list(OfWriter::Int32))));
    let lists: arrow::ArrayRef = Arc::new(arrow::ListArray::new_null(list(inner), 8));
    let batch = arrow::RecordBatch::try_from_iter([("l", lists)]).expect("a batch");
    let mut file = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut file, batch.schema(), None).expect("a writer");
    writer.write(&batch).expect("rows");
    writer.close().expect("a footer");
    let list = |of| Arc::new(Field::new_list_field(of, true));
    let huge = DataType::FixedSizeList(list(DataType::Int32), 1 << 24);
    let l = DataType::FixedSizeList(list(DataType::List(list(huge))), 3);
    let schema = Arc::new(Schema::new(vec![Field::new("l", l, true)]));
    let before = heap::start();
    let reader = Reader::new(Bytes::from(file)).expect("a file").memory(LIMIT as u64).threads(1);
    let reader = reader.target(schema, MatchBy::Name).expect("a type of lists");
    let rows = reader.batches().expect("a plan").next_batch().expect("rows").expect("a batch");
    assert_eq!(rows.column(0).null_count(), 8);
    let peak = heap::peak() - before;
    assert!(peak <= LIMIT, "{} MiB", peak >> 20);
}

#[test]
fn rows_are_filtered_and_joined_without_elements_that_no_list_has() {
    use marquetry::arrow_array::{
        Array, ArrayRef, Int32Array, ListArray, RecordBatch, StructArray, new_null_array,
    };
    let _alone = alone();
    // Eight structs a row, each with a null list.
    let list = |of| Arc::new(Field::new_list_field(of, true));
    let null_lists = |element: DataType| {
        let m = Field::new("m", DataType::List(list(element)), true);
        let nulls = new_null_array(m.data_type(), 800);
        let structs = StructArray::new(vec![m].into(), vec![nulls], None);
        let lengths = OffsetBuffer::from_lengths([8; 100]);
        let of = list(structs.data_type().clone());
        Arc::new(ListArray::new(of, lengths, Arc::new(structs), None)) as ArrayRef
    };
    let batch = |l| {
        let n: ArrayRef = Arc::new(Int32Array::from_iter_values(0..100));
        RecordBatch::try_from_iter([("l", l), ("n", n)]).expect("a batch")
    };
    let small = batch(null_lists(DataType::List(list(DataType::Int32))));
    let mut file = Vec::new();
    let mut writer = Writer::new(WriteSink(&mut file), small.schema(), WriteOptions::default())
        .expect("a writer");
    writer.write(&small).expect("rows");
    writer.finish().expect("a footer");
    let file = Bytes::from(file);
    let huge = DataType::FixedSizeList(list(DataType::Int32), 1 << 20);
    let wide = batch(null_lists(huge));
    let schema = wide.schema();
    let reader = || {
        let reader = Reader::new(file.clone()).expect("a file").threads(1);
        let reader = reader.memory(LIMIT as u64).batch_rows(10);
        reader.target(schema.clone(), MatchBy::Name).expect("a type of lists")
    };
    let rows = |batches: marquetry::Batches| {
        batches.map(|batch| batch.expect("rows").num_rows()).sum::<usize>()
    };
    let before = heap::start();
    let some = col("n").is_in([3, 20, 50]);
    assert_eq!(rows(reader().filter(some).batches().expect("a plan")), 3, "filtered and joined");
    assert_eq!(rows(reader().filter(col("n").gt(3)).batches().expect("a plan")), 96, "filtered");
    assert_eq!(reader().take(&[77, 3, 99]).expect("rows").num_rows(), 3);
    // Batches, as an engine has them.
    #[cfg(feature = "engine")]
    {
        use marquetry::engine::rows;
        let some = (0..100).map(|i| Some(i % 10 != 3)).collect();
        assert_eq!(rows::filter(&wide, &some).expect("rows").num_rows(), 90);
        let twice = [wide.clone(), wide];
        assert_eq!(rows::concat(&schema, &twice).expect("rows").num_rows(), 200);
        assert_eq!(rows::take(&schema, &twice, &[150, 3]).expect("rows").num_rows(), 2);
        assert_eq!(rows::interleave(&schema, &twice, &[(1, 50)]).expect("rows").num_rows(), 1);
    }
    let peak = heap::peak() - before;
    assert!(peak <= LIMIT + SLACK, "{} MiB", peak >> 20);
}

#[test]
fn nulls_of_a_damaged_page_are_within_the_limit_or_refused_before_they_are_made() {
    let _alone = alone();
    let rows = 1000;
    // Levels of more bytes than the page has.
    let pages = [support::v1(rows, Encoding::Plain, &[0xFF; 8])];
    let chunk = support::Chunk::new(Type::FixedLenByteArray, rows, &pages);
    let nulls = |width| {
        let mut leaf = support::optional("v", Type::FixedLenByteArray);
        leaf.type_length = Some(width);
        let file =
            support::file(vec![leaf], i64::try_from(rows).expect("few"), vec![chunk.clone()]);
        let reader = Reader::new(Bytes::from(file))?.memory(LIMIT as u64).threads(1);
        let mut batches = reader.on_damage(OnDamage::NullPages).batches()?;
        let mut nulls = 0;
        while let Some(batch) = batches.next_batch()? {
            nulls += batch.column(0).null_count();
        }
        Ok(nulls)
    };
    let before = heap::start();
    assert_eq!(nulls(16).expect("small values"), rows);
    assert_eq!(nulls(1 << 20).expect("1 GB of nulls, a few at a time"), rows);
    let error: marquetry::Error = nulls(128 << 20).expect_err("a row of more than the limit");
    assert_eq!(error.kind(), ErrorKind::Limit(LimitKind::Memory), "{error}");
    let peak = heap::peak() - before;
    assert!(peak <= LIMIT + SLACK, "{} MiB", peak >> 20);
}

/// A file of 48 columns of 10,000 strings of 200 bytes, in pages of 500 rows. A page of one of them
/// is damaged.
fn wide_with_a_damaged_page() -> Bytes {
    let texts: Vec<String> = (0..10_000).map(|i| format!("{i:0200}")).collect();
    let texts: arrow_array::ArrayRef = Arc::new(arrow_array::StringArray::from(texts));
    let columns = (0..48).map(|i| (format!("c{i}"), texts.clone(), true));
    let batch = arrow_array::RecordBatch::try_from_iter_with_nullable(columns).expect("a batch");
    let options = WriteOptions::new().with_page_rows(500).with_dictionary(false);
    let mut writer = Writer::new(WriteSink(Vec::new()), batch.schema(), options).expect("a writer");
    writer.write(&batch).expect("rows");
    let mut file = writer.into_inner().expect("a file").1;
    let reader = Reader::new(Bytes::from(file.clone())).expect("a file");
    let page = reader.stored_pages(0, 20).expect("pages").nth(12).expect("a page").expect("whole");
    file[page.offset as usize + page.header_len + 5] ^= 0x55;
    file.into()
}

#[test]
fn columns_of_a_damaged_row_group_share_the_memory() {
    const LIMIT: usize = 16 << 20;
    let _alone = alone();
    let file = wide_with_a_damaged_page();
    for threads in [1, 4] {
        let before = heap::start();
        let reader = Reader::new(file.clone()).expect("a file").memory(LIMIT as u64);
        let reader = reader.threads(threads).on_damage(OnDamage::NullPages);
        let mut batches = reader.batches().expect("a plan");
        let (mut rows, mut nulls) = (0, 0);
        while let Some(batch) = batches.next_batch().expect("damage is no error") {
            rows += batch.num_rows();
            nulls += batch.column(20).null_count();
        }
        assert_eq!((rows, nulls), (10_000, 500), "{:?}", batches.damage());
        let peak = heap::peak() - before;
        println!("{threads} threads: {} MiB", peak >> 20);
        assert!(peak <= LIMIT + SLACK, "{threads} threads: {} MiB", peak >> 20);
    }
}

#[cfg(feature = "object_store")]
#[test]
fn arrays_of_a_stream_that_wait_are_within_the_limit() {
    let _alone = alone();
    let file = rows_of_one_string(400_000, 500);
    for threads in [1, 2, 4] {
        let before = heap::start();
        let rows = rows_of_stream(|reader| reader.threads(threads).batch_rows(1000), file.clone());
        let peak = heap::peak() - before;
        println!("{threads} threads: {} MiB", peak >> 20);
        assert_eq!(rows.expect("rows"), 400_000);
        assert!(peak <= LIMIT + SLACK, "{threads} threads: {} MiB", peak >> 20);
    }
}

/// Rows that a stream returns within the limit.
#[cfg(feature = "object_store")]
fn rows_of_stream(
    options: impl Fn(marquetry::AsyncReader) -> marquetry::AsyncReader,
    source: impl marquetry::io::AsyncSource + 'static,
) -> marquetry::Result<u64> {
    use futures_util::TryStreamExt;
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(async {
        let reader = marquetry::AsyncReader::open_async(source).await?;
        let mut stream = options(reader.memory(LIMIT as u64)).stream()?;
        let mut rows = 0;
        while let Some(batch) = stream.try_next().await? {
            rows += batch.num_rows() as u64;
        }
        Ok(rows)
    })
}

/// In MiB, for people.
fn mib(bytes: usize) -> String {
    format!("{}.{}", bytes >> 20, ((bytes & 0xF_FFFF) * 10) >> 20)
}

/// The files below a folder.
fn files_below(folder: &std::path::Path, files: &mut Vec<std::path::PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files_below(&path, files);
        } else if path.extension().is_some_and(|ending| ending == "parquet") {
            files.push(path);
        }
    }
}

/// Reads the files below the folders that `MARQUETRY_PEAKS` names, with a colon between them, and
/// prints which took the most memory.
#[test]
#[ignore = "a tool: MARQUETRY_PEAKS=FOLDER cargo nextest run --test memory --run-ignored only --no-capture"]
fn the_ten_highest_peaks() {
    let _alone = alone();
    let folders = std::env::var("MARQUETRY_PEAKS").unwrap_or_else(|_| "testdata".into());
    let mut files = Vec::new();
    folders.split(':').for_each(|folder| files_below(folder.as_ref(), &mut files));
    files.sort();
    type Way = fn(Reader) -> Reader;
    let ways: [(&str, Way); 5] = [
        ("1 thread", |reader| reader.threads(1)),
        ("2 threads", |reader| reader.threads(2)),
        ("4 threads", |reader| reader.threads(4)),
        ("2 threads, views", |reader| reader.threads(2).views(true)),
        ("2 threads, dictionaries", |reader| reader.threads(2).dictionaries(Dictionaries::Strings)),
    ];
    let mut peaks = Vec::new();
    for path in &files {
        for (way, options) in ways {
            let before = heap::start();
            let read = || -> marquetry::Result<u64> {
                let mut batches = options(Reader::open(path)?).memory(LIMIT as u64).batches()?;
                let mut rows = 0;
                while let Some(batch) = batches.next_batch()? {
                    rows += batch.num_rows() as u64;
                }
                Ok(rows)
            };
            let found = match read() {
                Ok(rows) => format!("{rows} rows"),
                Err(e) => e.to_string(),
            };
            let peak = heap::peak().saturating_sub(before);
            peaks.push((peak, way, path.display().to_string(), found));
        }
    }
    let refused = peaks.iter().filter(|(.., found)| found.contains("bytes wanted for"));
    refused.for_each(|(peak, way, path, found)| {
        println!("refused: {} MiB, {path}, {way}: {found}", mib(*peak));
    });
    peaks.sort_by_key(|(peak, ..)| std::cmp::Reverse(*peak));
    for (peak, way, path, found) in peaks.iter().take(10) {
        println!("{} MiB | {path} | {way} | {found}", mib(*peak));
    }
    let over = peaks.iter().filter(|(peak, ..)| *peak > LIMIT + SLACK).count();
    println!("{over} of {} reads above {} MiB", peaks.len(), (LIMIT + SLACK) >> 20);
}
