//! Tests of copying files into one: the rows, the metadata, and what cannot be copied.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use marquetry::arrow_array::{
    Array, ArrayRef, FixedSizeBinaryArray, Float64Array, Int32Array, Int64Array, RecordBatch,
    StringArray, StructArray,
};
use marquetry::arrow_schema::{DataType, Field, IntervalUnit, Schema};
#[cfg(feature = "encryption")]
use marquetry::crypt::{Decryption, Encryption, Key};
use marquetry::format::{
    ColumnOrder, CompressionCodec, FieldRepetitionType, KeyValue, SchemaElement,
};
use marquetry::io::{Source, WriteSink};
use marquetry::read::{PageIndexUse, ReadOptions};
use marquetry::rewrite::{ChunkMethod, ChunkReason, Rewrite};
use marquetry::schema::{FromArrowOptions, MatchBy, from_arrow};
use marquetry::{
    BloomOptions, Compression, ErrorKind, PageVersion, Predicate, Reader, RowGroupEncoder,
    SortColumn, WriteOptions, Writer, col, lit,
};

use super::metadata_is_true::{Seen, is_true};
use crate::support::generate::{Case, case, every_case};
use crate::support::read_with;

pub(super) fn open(file: &Bytes) -> Reader {
    Reader::new(file.clone()).expect("a file")
}

fn run(rewrite: &Rewrite) -> marquetry::Result<Bytes> {
    let mut out = Vec::new();
    let plan = rewrite.plan()?;
    let done = rewrite.run(WriteSink(&mut out))?;
    assert_eq!((done.rows, done.bytes), (plan.rows, out.len() as u64));
    assert_eq!(done.row_groups, plan.row_groups.len());
    Ok(out.into())
}

pub(super) fn write(batch: &RecordBatch, options: WriteOptions) -> Bytes {
    let mut out = Vec::new();
    let mut writer = Writer::new(WriteSink(&mut out), batch.schema(), options).expect("a writer");
    writer.write(batch).expect("rows");
    writer.finish().expect("a file");
    out.into()
}

fn numbers(from: i64, len: i64) -> RecordBatch {
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(from..from + len));
    let names = StringArray::from_iter_values((from..from + len).map(|i| format!("name {i}")));
    let shares = (from..from + len).map(|i| i as f64 / 7.0);
    let shares = Float64Array::from_iter_values(shares);
    let columns = [("id", ids), ("name", Arc::new(names) as ArrayRef), ("share", Arc::new(shares))];
    RecordBatch::try_from_iter(columns).expect("a batch")
}

fn small_pages() -> WriteOptions {
    WriteOptions::new()
        .with_page_rows(50)
        .with_row_group_rows(200)
        .with_column("name", |column| column.with_bloom(BloomOptions::default()))
}

#[test]
fn random_files_joined_with_themselves_state_what_is_true() {
    every_case(300, |seed| {
        let Case { name, schema, batches, options, key_values, file, wishes } = case(seed);
        let before = read_with(open(&file)).expect("rows");
        for pages in [false, true] {
            let rewrite = Rewrite::new([open(&file), open(&file)]).verify_checksums(pages);
            let joined = run(&rewrite).unwrap_or_else(|e| panic!("{e}: {name}"));
            let twice: Vec<RecordBatch> = before.iter().chain(&before).cloned().collect();
            let after = read_with(open(&joined)).expect("rows");
            let rows = |batches: &[RecordBatch]| {
                arrow_select::concat::concat_batches(&open(&file).schema().unwrap(), batches)
            };
            assert_eq!(rows(&after).unwrap(), rows(&twice).unwrap(), "{name}");
            let case = Case {
                name: name.clone(),
                schema: schema.clone(),
                batches: batches.clone(),
                options: options.clone(),
                key_values,
                file: joined,
                wishes: same_wishes(&wishes),
            };
            is_true(&case, &Seen::default());
        }
    });
}

/// The same wishes again.
fn same_wishes(wishes: &crate::support::generate::Wishes) -> crate::support::generate::Wishes {
    crate::support::generate::Wishes {
        page_statistics: wishes.page_statistics,
        blooms: wishes.blooms.clone(),
    }
}

#[test]
fn pages_and_filters_are_pruned_as_before() {
    let options = || small_pages().with_page_rows(5_000).with_row_group_rows(20_000);
    let files = [0, 40_000].map(|from| write(&numbers(from, 40_000), options()));
    let joined = run(&Rewrite::new(files.iter().map(open))).expect("a file");
    let whole = write(&numbers(0, 80_000), options());
    let read = |file: &Bytes, filter: Predicate| {
        let mut options = ReadOptions::default();
        options.page_index = PageIndexUse::Always;
        let reader = open(file).options(options).filter(filter);
        let explanation = reader.explain().expect("an explanation");
        let row_groups = explanation.row_groups.iter();
        let read = row_groups.map(|of| (of.rows_left, of.pages, of.pages_pruned, of.outcome));
        read.collect::<Vec<_>>()
    };
    let a_few = col("id").gt_eq(lit(61_000i64)).and(col("id").lt(lit(62_000i64)));
    let found = read(&joined, a_few.clone());
    assert_eq!(found, read(&whole, a_few));
    assert!(found.iter().any(|of| of.1 > 0), "the page index is looked at: {found:?}");
    let absent = read(&joined, col("name").eq(lit("name 4x")));
    assert!(absent.iter().all(|of| of.0 == 0), "bloom filters say no: {absent:?}");
    let found = open(&joined).filter(col("name").eq(lit("name 43300")));
    assert_eq!(read_with(found).expect("a row")[0].num_rows(), 1);
}

#[test]
fn row_groups_and_columns_of_the_readers_are_those_of_the_copy() {
    let file = write(&numbers(0, 800), small_pages());
    let reader = open(&file).project(["share", "id"]).unwrap().row_groups([3, 1]).unwrap();
    let copy = run(&Rewrite::new([reader])).expect("a file");
    let rows = read_with(open(&copy)).expect("rows");
    let rows = arrow_select::concat::concat_batches(&rows[0].schema(), &rows).unwrap();
    let whole = arrow_select::concat::concat_batches(
        &numbers(0, 1).schema(),
        &[numbers(600, 200), numbers(200, 200)],
    );
    let wanted = whole.unwrap().project(&[0, 2]).unwrap();
    assert_eq!(rows.columns(), wanted.columns());
    assert_eq!(open(&copy).schema().unwrap().fields().len(), 2);
}

#[test]
fn columns_in_another_order_are_matched_by_name_where_that_is_asked() {
    let batch = numbers(0, 10);
    let turned = batch.project(&[2, 0, 1]).unwrap();
    let files = [write(&batch, WriteOptions::new()), write(&turned, WriteOptions::new())];
    let refused = run(&Rewrite::new(files.iter().map(open))).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Usage);
    let said = "`required int64 id` there, `required double share` here (marq: --by-name)";
    assert!(refused.to_string().ends_with(said), "{refused}");
    let joined = run(&Rewrite::new(files.iter().map(open)).by_name(true)).expect("a file");
    let rows = read_with(open(&joined)).expect("rows");
    let rows = arrow_select::concat::concat_batches(&batch.schema(), &rows).unwrap();
    assert_eq!(rows.slice(0, 10), rows.slice(10, 10));
}

#[test]
fn files_of_other_columns_are_refused_by_place() {
    let batch = numbers(0, 10);
    let one = write(&batch, WriteOptions::new());
    let fewer = write(&batch.project(&[0, 1]).unwrap(), WriteOptions::new());
    for (files, name) in [([&one, &fewer], "share"), ([&fewer, &one], "share")] {
        let refused = Rewrite::new(files.map(open)).plan().unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Usage);
        assert!(refused.to_string().contains(name), "{refused}");
        // It is never null where it is.
        let refused = Rewrite::new(files.map(open)).by_name(true).plan().unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Usage);
        assert!(refused.to_string().contains(name), "{refused}");
    }
    let none = Rewrite::new([]).plan().unwrap_err();
    assert_eq!(none.kind(), ErrorKind::Usage);
}

/// A column of a name that may be null.
fn column(name: &str, values: ArrayRef) -> RecordBatch {
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(0..values.len() as i64));
    RecordBatch::try_from_iter_with_nullable([("id", ids, false), (name, values, true)]).unwrap()
}

#[test]
fn missing_columns_are_null_and_only_other_types_are_decoded() {
    let narrow = column("n", Arc::new(Int32Array::from(vec![Some(1), None, Some(-3)])));
    let wide = column("n", Arc::new(Int64Array::from(vec![Some(1 << 40), None])));
    let none = numbers(0, 2).project(&[0]).unwrap();
    let files = [&narrow, &wide, &none].map(|batch| write(batch, small_pages_of_all()));
    let rewrite = Rewrite::new(files.iter().map(open)).by_name(true);
    let plan = rewrite.plan().unwrap();
    let said: Vec<Vec<(ChunkMethod, ChunkReason)>> = (plan.row_groups.iter())
        .map(|of| of.chunks.iter().map(|chunk| (chunk.method, chunk.reason)).collect())
        .collect();
    let copied = (ChunkMethod::Bytes, ChunkReason::Unchanged);
    assert_eq!(
        said,
        [
            [copied, (ChunkMethod::Encoded, ChunkReason::Type)],
            [copied, copied],
            [copied, (ChunkMethod::Encoded, ChunkReason::Missing)],
        ]
    );
    let joined = run(&rewrite).unwrap();
    let rows = read_with(open(&joined)).unwrap();
    let rows = arrow_select::concat::concat_batches(&rows[0].schema(), &rows).unwrap();
    let wanted = Int64Array::from(vec![Some(1), None, Some(-3), Some(1 << 40), None, None, None]);
    assert_eq!(rows.column(1).as_ref(), &wanted as &dyn Array);
    // As pyarrow reads it, by the schema of Arrow that is stored.
    assert_eq!(rows.schema().field(1).data_type(), &DataType::Int64);
}

#[test]
fn types_without_a_common_one_are_refused_by_name() {
    let number = column("x", Arc::new(Int32Array::from(vec![1])));
    let text = column("x", Arc::new(StringArray::from(vec!["1"])));
    let files = [&number, &text].map(|batch| write(batch, WriteOptions::new()));
    let refused = Rewrite::new(files.iter().map(open)).by_name(true).plan().unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Usage);
    let said = "column \"x\": `optional int32 x` there, `optional binary x (STRING)` here";
    assert!(refused.to_string().ends_with(said), "{refused}");
}

fn small_pages_of_all() -> WriteOptions {
    WriteOptions::new().with_page_rows(50)
}

#[test]
fn a_cut_decodes_only_the_row_group_that_it_goes_through() {
    let file = write(&numbers(0, 800), small_pages());
    let rewrite = Rewrite::new([open(&file).offset(200).limit(300)]);
    let plan = rewrite.plan().unwrap();
    let methods: Vec<ChunkMethod> = plan.row_groups.iter().map(|of| of.chunks[0].method).collect();
    assert_eq!(methods, [ChunkMethod::Bytes, ChunkMethod::Encoded]);
    assert_eq!(plan.row_groups[1].chunks[0].reason, ChunkReason::Cut);
    let rows = read_with(open(&run(&rewrite).unwrap())).unwrap();
    let rows = arrow_select::concat::concat_batches(&rows[0].schema(), &rows).unwrap();
    assert_eq!(rows.columns(), numbers(200, 300).columns());
}

#[test]
fn pages_of_both_versions_get_another_codec_without_being_decoded() {
    for version in [PageVersion::V1, PageVersion::V2] {
        let options = small_pages().with_page_version(version);
        let file = write(&numbers(0, 400), options.with_compression(Compression::Zstd(1)));
        let codecs = |file: &Bytes| {
            let metadata = open(file).metadata().index().to_file_meta_data().unwrap();
            let chunks = metadata.row_groups.into_iter().flat_map(|of| of.columns);
            chunks.map(|chunk| chunk.meta_data.unwrap().codec).collect::<Vec<_>>()
        };
        let mut before = file.clone();
        for codec in [Compression::Uncompressed, Compression::Snappy, Compression::Zstd(9)] {
            let rewrite = Rewrite::new([open(&before)]).codec("*", codec);
            let plan = rewrite.plan().unwrap();
            assert_eq!((plan.recompressed().chunks, plan.encoded().chunks), (6, 0));
            before = run(&rewrite).unwrap();
            assert_eq!(codecs(&before), [codec.codec(); 6]);
            assert_eq!(read_with(open(&before)).unwrap(), read_with(open(&file)).unwrap());
        }
        let same = Rewrite::new([open(&before)]).codec("*", Compression::Snappy);
        let snappy = run(&same).unwrap();
        let again = Rewrite::new([open(&snappy)]).codec("*", Compression::Snappy).plan().unwrap();
        assert_eq!(again.copied().chunks, 6, "what has the codec is copied");
    }
}

/// The codecs of a file's columns in its first row group, and which have bloom filters.
fn codecs_and_filters(file: &Bytes) -> Vec<(CompressionCodec, bool)> {
    let reader = open(file);
    let leaves = reader.metadata().schema().leaves_len();
    let chunks = (0..leaves).map(|leaf| reader.metadata().column_chunk(0, leaf).unwrap());
    let metas = chunks.map(|chunk| chunk.meta_data.unwrap());
    metas.map(|meta| (meta.codec, meta.bloom_filter_offset.is_some())).collect()
}

#[test]
fn columns_that_are_encoded_anew_keep_their_own_codecs_and_bloom_filters() {
    // Names that are patterns for others, and one that is the path of another.
    let inner = Field::new("b", DataType::Int64, false);
    let ids = || Arc::new(Int64Array::from_iter_values(0..1_000)) as ArrayRef;
    let group = StructArray::new(vec![inner].into(), vec![ids()], None);
    let names = ["ab", "a*", "a.b", "a"];
    let arrays = [ids(), ids(), ids(), Arc::new(group)];
    let batch = RecordBatch::try_from_iter(names.into_iter().zip(arrays)).unwrap();
    let (plain, zstd) = (Compression::Uncompressed, Compression::Zstd(3));
    let options = WriteOptions::new()
        .with_compression(zstd)
        .with_column("a*", |column| column.with_compression(plain))
        .with_column("ab", |column| column.with_bloom(BloomOptions::default()));
    let file = write(&batch, options);
    let (plain, zstd) = (CompressionCodec::Uncompressed, CompressionCodec::Zstd);
    assert_eq!(
        codecs_and_filters(&file),
        [(zstd, true), (plain, false), (zstd, false), (zstd, false)]
    );
    for encoded in
        [Rewrite::new([open(&file)]).regroup(true), Rewrite::new([open(&file)]).encode("*")]
    {
        assert_eq!(codecs_and_filters(&run(&encoded).unwrap()), codecs_and_filters(&file));
    }
}

#[test]
fn int96_is_copied_and_never_becomes_another_type() {
    let reader = Reader::open("testdata/int96.parquet").unwrap();
    assert!(Rewrite::new([reader.clone()]).run(WriteSink(Vec::new())).is_ok());
    let refused = Rewrite::new([reader]).encode("*").run(WriteSink(Vec::new())).unwrap_err();
    assert!(matches!(refused.kind(), ErrorKind::Unsupported(_)), "{refused}");
    assert!(refused.at().column.is_some(), "{refused}");
}

/// A file that becomes longer once it was opened.
struct Growing {
    bytes: Bytes,
    opened: AtomicBool,
}

impl Source for Growing {
    fn len(&self) -> marquetry::Result<u64> {
        let grown = u64::from(self.opened.load(Ordering::Relaxed));
        Ok(self.bytes.len() as u64 + grown)
    }

    fn read(&self, range: std::ops::Range<u64>) -> marquetry::Result<Bytes> {
        Source::read(&self.bytes, range)
    }
}

#[test]
fn a_file_that_changes_while_it_is_copied_is_an_error() {
    let bytes = write(&numbers(0, 10), WriteOptions::new());
    let source = Arc::new(Growing { bytes, opened: AtomicBool::new(false) });
    let reader = Reader::new(Opened(source.clone())).unwrap();
    source.opened.store(true, Ordering::Relaxed);
    let changed = Rewrite::new([reader]).run(WriteSink(Vec::new())).unwrap_err();
    assert_eq!(changed.kind(), ErrorKind::Io, "{changed}");
}

/// A source that the test keeps.
struct Opened(Arc<Growing>);

impl Source for Opened {
    fn len(&self) -> marquetry::Result<u64> {
        self.0.len()
    }

    fn read(&self, range: std::ops::Range<u64>) -> marquetry::Result<Bytes> {
        self.0.read(range)
    }
}

/// Months beyond the signed ones of Arrow, which are null in a read.
#[test]
fn intervals_that_arrow_cannot_hold_stay_as_they_are() {
    let bytes: Vec<[u8; 12]> = (0u8..40).map(|i| [255 - i; 12]).collect();
    let values = FixedSizeBinaryArray::try_from_iter(bytes.iter()).unwrap();
    let field = Field::new("i", DataType::Interval(IntervalUnit::MonthDayNano), true);
    let schema = from_arrow(&Schema::new(vec![field]), &FromArrowOptions::new().with_hint(false));
    let arrow = Arc::new(Schema::new(vec![Field::new("i", DataType::FixedSizeBinary(12), true)]));
    let batch = RecordBatch::try_new(arrow.clone(), vec![Arc::new(values)]).unwrap();
    let options = WriteOptions::new();
    let encoder =
        RowGroupEncoder::with_schema(arrow, schema.unwrap().schema, Vec::new(), options).unwrap();
    let mut writer = Writer::over(WriteSink(Vec::new()), encoder);
    writer.write(&batch).unwrap();
    let file = Bytes::from(writer.into_inner().unwrap().1);
    let stored = |file: &Bytes| {
        let reader = open(file).target(batch.schema(), MatchBy::Name).unwrap();
        let rows = read_with(reader).unwrap();
        arrow_select::concat::concat_batches(&batch.schema(), &rows).unwrap()
    };
    assert_eq!(stored(&file), batch);
    for rewrite in
        [Rewrite::new([open(&file)]).encode("*"), Rewrite::new([open(&file)]).regroup(true)]
    {
        let mut out = Vec::new();
        rewrite.run(WriteSink(&mut out)).unwrap();
        let out = Bytes::from(out);
        assert_eq!(stored(&out), batch);
        assert_eq!(open(&out).schema().unwrap(), open(&file).schema().unwrap());
    }
}

#[test]
fn rows_are_sorted_and_the_new_row_groups_say_so() {
    let file = write(&numbers(0, 800), small_pages());
    let options = WriteOptions::new().with_row_group_rows(300);
    let rewrite = Rewrite::new([open(&file)]).options(options);
    let rewrite = rewrite.sort_by([SortColumn::descending("share")]);
    assert!(rewrite.plan().unwrap().regroups);
    let mut out = Vec::new();
    assert_eq!(rewrite.run(WriteSink(&mut out)).unwrap().row_groups, 3);
    let sorted = Bytes::from(out);
    let rows = read_with(open(&sorted)).unwrap();
    let rows = arrow_select::concat::concat_batches(&rows[0].schema(), &rows).unwrap();
    let ids = rows.column(0).as_any().downcast_ref::<Int64Array>().unwrap();
    assert!(ids.values().iter().copied().eq((0..800).rev()));
    let metadata = open(&sorted).metadata().index().to_file_meta_data().unwrap();
    let sorting = metadata.row_groups[0].sorting_columns.as_ref().unwrap();
    assert_eq!((sorting[0].column_idx, sorting[0].descending), (2, true));
    // Each row group by itself; of a part of a reader, its rows.
    let whole = write(&numbers(0, 800), small_pages().with_row_group_rows(300));
    let by = || [SortColumn::descending("share")];
    for (reader, expected) in [
        (open(&whole), vec![0..300, 300..600, 600..800]),
        (open(&whole).offset(200).limit(250), vec![200..300, 300..450]),
        (open(&whole).row_groups([2, 0]).unwrap(), vec![600..800, 0..300]),
    ] {
        let mut out = Vec::new();
        Rewrite::new([reader]).sort_row_groups_by(by()).run(WriteSink(&mut out)).unwrap();
        let sorted = open(&Bytes::from(out));
        assert_eq!(sorted.metadata().row_groups(), expected.len());
        for (group, expected) in expected.into_iter().enumerate() {
            let rows = read_with(sorted.clone().row_groups([group]).unwrap()).unwrap();
            let rows = arrow_select::concat::concat_batches(&rows[0].schema(), &rows).unwrap();
            let ids = rows.column(0).as_any().downcast_ref::<Int64Array>().unwrap();
            assert!(ids.values().iter().copied().eq(expected.rev()), "row group {group}");
        }
    }
}

#[test]
fn bounds_of_another_order_are_left_out_and_all_else_stays() {
    let total = small_pages().with_total_order(true);
    let files = [write(&numbers(0, 200), small_pages()), write(&numbers(200, 200), total)];
    let rewrite = Rewrite::new(files.iter().map(open));
    let notes = rewrite.plan().expect("a plan").notes;
    assert!(notes.iter().any(|note| note.contains("column share")), "{notes:?}");
    let joined = run(&rewrite).expect("a file");
    let metadata = open(&joined).metadata().index().to_file_meta_data().unwrap();
    let orders = metadata.column_orders.as_deref().expect("orders");
    assert!(orders.iter().all(|order| *order == ColumnOrder::TypeOrder));
    let statistics = |group: usize, leaf: usize| {
        let chunk = &metadata.row_groups[group].columns[leaf];
        let statistics = chunk.meta_data.as_ref().unwrap().statistics.clone().unwrap();
        (statistics.min_value.is_some(), statistics.null_count, chunk.column_index_offset.is_some())
    };
    assert_eq!(statistics(0, 2), (true, Some(0), true));
    assert_eq!(statistics(1, 2), (false, Some(0), false));
    assert_eq!(statistics(1, 0), (true, Some(0), true), "integers have one order");
}

#[test]
fn the_writer_stays_unless_there_are_several() {
    let written_by = |name: &str| write(&numbers(0, 10), small_pages().with_created_by(name));
    let created_by = |file: &Bytes| open(file).metadata().created_by().map(str::to_owned);
    let (a, b) = (written_by("a version 1.0.0"), written_by("b version 1.0.0"));
    let join = |files: [&Bytes; 2]| run(&Rewrite::new(files.map(open)));
    assert_eq!(created_by(&join([&a, &a]).unwrap()).as_deref(), Some("a version 1.0.0"));
    let ours = created_by(&join([&a, &b]).unwrap()).unwrap();
    assert!(ours.starts_with("marquetry version"), "{ours}");
    // Pages of this writer are read with workarounds.
    let old = written_by("parquet-mr version 1.7.0");
    assert!(join([&old, &old]).is_ok());
    let refused = join([&a, &old]).unwrap_err();
    assert!(matches!(refused.kind(), ErrorKind::Unsupported(_)), "{refused}");
    assert!(refused.to_string().contains("parquet-mr version 1.7.0"), "{refused}");
}

#[test]
fn keys_of_all_files_are_kept_and_changed_as_asked() {
    let with = |value: &str, key: &str| {
        let options = small_pages().with_key_value("both", value).with_key_value(key, "x");
        write(&numbers(0, 10), options)
    };
    let files = [with("1", "first"), with("2", "second")];
    let rewrite =
        Rewrite::new(files.iter().map(open)).drop_key_value("first").set_key_value("new", "value");
    assert!(rewrite.plan().unwrap().notes.iter().any(|note| note.contains("\"both\"")));
    let joined = run(&rewrite).expect("a file");
    let reader = open(&joined);
    let pairs = reader.metadata().key_values();
    let value = |key: &str| pairs.iter().find(|pair| pair.key == key).cloned();
    assert_eq!(value("both"), Some(KeyValue::new("both", "1")));
    assert_eq!(value("first"), None);
    assert_eq!(value("second"), Some(KeyValue::new("second", "x")));
    assert_eq!(value("new"), Some(KeyValue::new("new", "value")));
}

#[test]
fn readers_that_select_rows_are_refused() {
    let reader = open(&write(&numbers(0, 10), WriteOptions::new()));
    let some = marquetry::RowSelection::from_rows(10, [0, 1, 2]).unwrap();
    let filtered = reader.clone().filter(col("id").eq(lit(1i64)));
    for reader in [filtered, reader.select(some).unwrap()] {
        assert_eq!(Rewrite::new([reader]).plan().unwrap_err().kind(), ErrorKind::Usage);
    }
}

#[test]
#[cfg(feature = "encryption")]
fn encrypted_files_are_joined_with_plain_ones_under_another_key() {
    let batch = numbers(0, 300);
    let plain = write(&batch, small_pages());
    let key = |n: u8| Key::new(&[n; 16]).unwrap();
    let sealed = run(&Rewrite::new([open(&plain)]).encryption(Encryption::new(key(1)))).unwrap();
    let keys = |n: u8| Decryption::new().with_footer_key(key(n));
    let decrypted =
        |file: &Bytes, n| Reader::with_keys(file.clone(), Default::default(), &keys(n)).unwrap();
    let inputs = [decrypted(&sealed, 1), open(&plain)];
    let rewrite = Rewrite::new(inputs).encryption(Encryption::new(key(2)));
    let plan = rewrite.plan().unwrap();
    assert_eq!((plan.copied().chunks, plan.copied_by_page().chunks), (0, 12));
    let joined = run(&rewrite).unwrap();
    assert!(Reader::new(joined.clone()).is_err());
    let rows = read_with(decrypted(&joined, 2)).unwrap();
    let rows = arrow_select::concat::concat_batches(&Arc::clone(&batch.schema()), &rows).unwrap();
    assert_eq!((rows.slice(0, 300), rows.slice(300, 300)), (batch.clone(), batch));
    let opened = run(&Rewrite::new([decrypted(&sealed, 1)])).unwrap();
    assert_eq!(read_with(open(&opened)).unwrap(), read_with(open(&plain)).unwrap());
}

#[test]
fn schemas_keep_what_the_arrow_hint_says() {
    let batch = numbers(0, 10);
    let schema = Schema::new_with_metadata(
        batch.schema().fields().clone(),
        [("unit".to_owned(), "µ".to_owned())].into(),
    );
    let batch = batch.with_schema(Arc::new(schema)).unwrap();
    let file = write(&batch, WriteOptions::new());
    let joined = run(&Rewrite::new([open(&file), open(&file)])).unwrap();
    assert_eq!(open(&joined).schema().unwrap(), open(&file).schema().unwrap());
}

fn rows_of(file: Vec<u8>) -> RecordBatch {
    let rows = read_with(open(&file.into())).expect("rows");
    arrow_select::concat::concat_batches(&rows[0].schema(), &rows).expect("a batch")
}

#[test]
fn rows_that_do_not_fit_into_memory_are_sorted_by_temporary_files() {
    let folder = tempfile::tempdir().expect("a folder");
    let rows = numbers(0, 60_000);
    let file = write(&rows, WriteOptions::new().with_row_group_rows(7_000));
    let mut limits = marquetry::Limits::default();
    limits.memory_bytes = 6 << 20;
    let reader = Reader::with_limits(file, limits).expect("a file");
    let by = || [SortColumn::descending("share")];
    let rewrite = Rewrite::new([reader.clone()]).sort_by(by()).temp_folder(folder.path());
    let mut out = Vec::new();
    assert_eq!(rewrite.run(WriteSink(&mut out)).expect("a file").rows, 60_000);
    let sorted = rows_of(out);
    assert_eq!(sorted.num_rows(), 60_000);
    let ids = sorted.column(0).as_any().downcast_ref::<Int64Array>().expect("ids");
    assert!((0..60_000).all(|row| ids.value(row) == 59_999 - row as i64));
    assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 0);
    // The folder is used: without it, there is an error.
    let missing = rewrite.temp_folder(folder.path().join("missing"));
    assert_eq!(missing.run(WriteSink(Vec::new())).unwrap_err().kind(), ErrorKind::Io);
}

#[test]
fn equal_rows_of_merged_files_keep_the_order_of_the_files() {
    // More rows of one key than a batch has, in both files.
    let key: ArrayRef =
        Arc::new(Int32Array::from_iter_values((0..40_000).map(|row| i32::from(row >= 35_000))));
    let file = |from: i64| {
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(from..from + 40_000));
        let columns = [("key", key.clone()), ("number", numbers)];
        write(&RecordBatch::try_from_iter(columns).expect("a batch"), WriteOptions::new())
    };
    let (a, b) = (open(&file(0)), open(&file(100_000)));
    let rewrite = Rewrite::new([a, b]).merge_by([SortColumn::ascending("key")]);
    let mut out = Vec::new();
    rewrite.run(WriteSink(&mut out)).expect("a file");
    let merged = rows_of(out);
    let numbers = merged.column(1).as_any().downcast_ref::<Int64Array>().expect("numbers");
    let of_key = (0..35_000).chain(100_000..135_000);
    let expected = of_key.chain(35_000..40_000).chain(135_000..140_000);
    assert!(numbers.values().iter().copied().eq(expected));
}

#[test]
fn field_ids_change_in_the_footer_alone() {
    let file = write(&numbers(0, 500), small_pages());
    let ids = |file: &Bytes| -> Vec<Option<i32>> {
        let reader = open(file);
        let elements = reader.metadata().schema().elements();
        elements.skip(1).map(|element| element.field_id).collect()
    };
    let rewrite = || Rewrite::new([open(&file)]);
    for (rewrite, expected) in [
        (rewrite().field_id("name", 7), vec![None, Some(7), None]),
        (rewrite().number_fields(), vec![Some(1), Some(2), Some(3)]),
        (rewrite().number_fields().field_id("share", 9), vec![Some(1), Some(2), Some(9)]),
        (rewrite().number_fields().drop_field_id("id"), vec![None, Some(2), Some(3)]),
        (rewrite().field_id("id", 1).drop_field_ids(), vec![None; 3]),
    ] {
        let plan = rewrite.plan().expect("a plan");
        assert_eq!(plan.copied().chunks, 3 * plan.row_groups.len());
        let new = run(&rewrite).expect("a file");
        assert_eq!(ids(&new), expected);
        assert_eq!(rows_of(new.to_vec()).columns(), numbers(0, 500).columns());
        // The ids of a file that has some go, too, in its Arrow schema as well.
        let bare = run(&Rewrite::new([open(&new)]).drop_field_ids()).expect("a file");
        assert_eq!(ids(&bare), [None; 3]);
        let schema = open(&bare).schema().expect("a schema");
        assert!(schema.fields().iter().all(|field| field.metadata().is_empty()), "{schema:?}");
        // Rows that are written anew have them, too.
        let sorted = rewrite.clone().sort_by([SortColumn::descending("id")]);
        let mut out = Vec::new();
        sorted.run(WriteSink(&mut out)).expect("a file");
        assert_eq!(ids(&out.into()), expected);
    }
    let refused = |rewrite: Rewrite| rewrite.plan().unwrap_err().kind();
    assert_eq!(refused(rewrite().field_id("absent", 1)), ErrorKind::Usage);
    assert_eq!(refused(rewrite().field_id("id", -1)), ErrorKind::Usage);
    assert_eq!(refused(rewrite().field_id("id", 1).field_id("name", 1)), ErrorKind::Usage);
}

#[test]
fn fields_are_numbered_without_the_groups_around_elements() {
    let numbered = |name: &str| -> Vec<(bool, Option<i32>)> {
        let reader = Reader::open(crate::support::testdata(name)).expect("a file");
        let new = run(&Rewrite::new([reader]).number_fields()).expect("a file");
        let new = open(&new);
        let elements = new.metadata().schema().elements();
        let is_wrapper = |element: &SchemaElement| {
            element.repetition_type == Some(FieldRepetitionType::Repeated)
        };
        elements.skip(1).map(|element| (is_wrapper(&element), element.field_id)).collect()
    };
    let nested = numbered("nested.parquet");
    let given: Vec<i32> = nested.iter().filter_map(|(_, id)| *id).collect();
    assert!(given.iter().copied().eq(1..=given.len() as i32), "{nested:?}");
    for (is_wrapper, id) in &nested {
        assert_eq!(id.is_none(), *is_wrapper, "{nested:?}");
    }
}
