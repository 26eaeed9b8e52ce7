//! Tests cached metadata: a file opens with them unread, page indexes are loaded for the wanted
//! columns, and serialised metadata come back unchanged.

use std::ops::Range;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use fastrand::Rng;
use marquetry::arrow_array::{ArrayRef, Int32Array, RecordBatch};
use marquetry::io::{Source, WriteSink};
use marquetry::read::PageIndexUse;
use marquetry::{ErrorKind, Limits, Metadata, Reader, Result, RowSelection, WriteOptions, Writer};

/// Rows of each row group, and of each page.
const GROUP: usize = 100;
const PAGE: usize = 20;
const ROW_GROUPS: usize = 2;

/// `columns` columns of numbers, with a page index.
fn wide(columns: usize) -> Bytes {
    let rows = GROUP * ROW_GROUPS;
    let numbers = |column: usize| (0..rows).map(move |row| (row * 7 + column) as i32);
    let array = |column| Arc::new(Int32Array::from_iter_values(numbers(column))) as ArrayRef;
    let columns = (0..columns).map(|column| (format!("c{column}"), array(column)));
    let batch = RecordBatch::try_from_iter(columns).expect("a batch");
    let options = WriteOptions::new()
        .with_row_group_rows(GROUP as u64)
        .with_page_rows(PAGE)
        .with_dictionary(false);
    let mut writer = Writer::new(WriteSink(Vec::new()), batch.schema(), options).expect("a writer");
    writer.write(&batch).expect("rows");
    writer.into_inner().expect("a file").1.into()
}

/// A source that records which ranges are read.
#[derive(Clone)]
pub struct Watched {
    bytes: Bytes,
    read: Arc<Mutex<Vec<Range<u64>>>>,
    in_memory: bool,
}

impl Watched {
    pub fn new(bytes: &Bytes) -> Self {
        Self { bytes: bytes.clone(), read: Arc::default(), in_memory: false }
    }

    /// The ranges that were read since the last call.
    pub fn take(&self) -> Vec<Range<u64>> {
        std::mem::take(&mut self.read.lock().expect("a lock"))
    }
}

impl Source for Watched {
    fn len(&self) -> Result<u64> {
        Source::len(&self.bytes)
    }

    fn read(&self, range: Range<u64>) -> Result<Bytes> {
        self.read.lock().expect("a lock").push(range.clone());
        self.bytes.read(range)
    }

    fn in_memory(&self) -> bool {
        self.in_memory
    }
}

pub fn total(ranges: &[Range<u64>]) -> u64 {
    ranges.iter().map(|range| range.end - range.start).sum()
}

/// Where the indexes of a column are, and of all columns together.
fn places(reader: &Reader, leaf: Option<usize>) -> Vec<Range<u64>> {
    let mut out = Vec::new();
    for row_group in 0..reader.metadata().row_groups() {
        let chunks = reader.metadata().column_chunks(row_group).expect("chunks");
        for (i, chunk) in chunks.enumerate() {
            let chunk = chunk.expect("a chunk");
            if leaf.is_some_and(|leaf| leaf != i) {
                continue;
            }
            for (start, len) in [
                (chunk.offset_index_offset, chunk.offset_index_length),
                (chunk.column_index_offset, chunk.column_index_length),
            ] {
                let start = u64::try_from(start.expect("an index")).expect("a place");
                out.push(start..start + u64::try_from(len.expect("a length")).expect("a length"));
            }
        }
    }
    out.sort_by_key(|range| range.start);
    out
}

/// Some rows of one column, by the page index.
fn some_rows(reader: Reader) -> Vec<RecordBatch> {
    let rows = reader.file_rows().expect("rows");
    let picked = RowSelection::from_rows(rows, [3, 150]).expect("a selection");
    let reader = reader.project(["c700"]).expect("a column").select(picked).expect("rows");
    let mut options = reader.read_options().clone();
    options.page_index = PageIndexUse::Always;
    let batches = reader.options(options).threads(1).batches().expect("a plan");
    batches.map(|batch| batch.expect("a batch")).collect()
}

#[test]
fn a_file_opens_with_metadata_from_before_and_nothing_is_read() {
    let file = wide(50);
    let first = Reader::new(file.clone()).expect("a file");
    let source = Watched::new(&file);
    let metadata = first.metadata().clone();
    let again = Reader::with_metadata(source.clone(), metadata.clone()).expect("a file");
    assert_eq!(again.schema().expect("a schema"), first.schema().expect("a schema"));
    assert_eq!(source.take(), []);
    let all =
        |reader: Reader| reader.batches().expect("a plan").map(Result::unwrap).collect::<Vec<_>>();
    assert_eq!(all(again), all(first));
    let other = file.slice(..file.len() - 1);
    let error = Reader::with_metadata(other, metadata).expect_err("an error");
    assert_eq!(error.kind(), ErrorKind::Usage);
}

#[test]
fn only_indexes_of_wanted_columns_are_loaded() {
    let file = wide(1_000);
    let source = Watched { in_memory: true, ..Watched::new(&file) };
    let mut reader = Reader::new(source.clone()).expect("a file").project(["c700"]).expect("one");
    source.take();
    reader.load_page_indexes().expect("indexes");
    let mut read = source.take();
    read.sort_by_key(|range| range.start);
    assert_eq!(read, places(&reader, Some(700)), "where reads cost nothing, none is joined");

    let metadata = reader.metadata();
    assert_eq!(metadata.index_bytes() as u64, total(&read));
    for row_group in 0..ROW_GROUPS {
        let index = metadata.page_index(row_group, 700).expect("an index");
        let owned = reader.page_index(row_group, 700).expect("an index");
        let offsets = index.offset_index.expect("one").page_locations;
        assert_eq!(offsets.len(), GROUP / PAGE);
        let owned_offsets = owned.offset_index.expect("one").page_locations;
        assert!(offsets.iter().eq(owned_offsets));
        let columns = index.column_index.expect("one");
        let owned_columns = owned.column_index.expect("one");
        assert!(columns.min_values.iter().eq(owned_columns.min_values.iter().map(Vec::as_slice)));
        assert!(columns.null_pages.iter().eq(owned_columns.null_pages));
        let error = metadata.page_index(row_group, 699).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage, "not loaded");
    }
    reader.load_page_indexes().expect("indexes");
    assert_eq!(source.take(), [], "loaded already");
}

#[test]
fn reading_one_column_of_many_fetches_its_index_alone_and_a_loaded_one_never() {
    let file = wide(10_000);
    let source = Watched::new(&file);
    let reader = Reader::new(source.clone()).expect("a file");
    let every_index = places(&reader, None);
    let (first, last) = (every_index[0].start, every_index[every_index.len() - 1].end);
    let of_indexes = |ranges: Vec<Range<u64>>| -> Vec<Range<u64>> {
        ranges.into_iter().filter(|range| range.start < last && first < range.end).collect()
    };
    source.take();
    let expected = some_rows(reader.clone());
    let mut read = of_indexes(source.take());
    read.sort_by_key(|range| range.start);
    let offset_indexes: Vec<_> =
        places(&reader, Some(700)).into_iter().filter(|place| read.contains(place)).collect();
    assert_eq!(offset_indexes.len(), ROW_GROUPS, "one for each row group");
    assert_eq!(read, offset_indexes, "and nothing else of the page indexes");

    // All of them: one read, as they lie side by side; after that none.
    let mut loaded = reader;
    loaded.load_page_indexes().expect("indexes");
    assert_eq!(source.take().len(), 1);
    for chunk in loaded.metadata().column_chunks(1).expect("chunks") {
        let index = loaded.metadata().page_index_of(&chunk.expect("a chunk")).expect("an index");
        assert!(index.offset_index.is_some() && index.column_index.is_some());
    }
    assert_eq!(some_rows(loaded.clone()), expected);
    assert_eq!(of_indexes(source.take()), []);

    // The same through a cache, serialised and read back.
    let bytes = Bytes::from(loaded.metadata().clone().with_version("\"abc\"").to_bytes());
    let metadata = Metadata::from_bytes(&bytes, &Limits::default()).expect("metadata");
    assert_eq!(metadata.version(), Some("\"abc\""));
    let cached = Reader::with_metadata(source.clone(), metadata).expect("a file");
    assert_eq!(some_rows(cached), expected);
    assert_eq!(of_indexes(source.take()), []);
}

#[test]
fn heap_bytes_count_footer_and_indexes() {
    let mut reader = Reader::new(wide(200)).expect("a file");
    let footer = reader.metadata().index().byte_len();
    let without = reader.metadata().heap_bytes();
    assert!((footer..footer * 4).contains(&without), "{without} bytes, a footer of {footer}");
    reader.load_page_indexes().expect("indexes");
    let with = reader.metadata().heap_bytes();
    let indexes = reader.metadata().index_bytes();
    assert_eq!(indexes as u64, total(&places(&reader, None)));
    assert!((indexes..indexes + 1000).contains(&(with - without)), "{with} {without} {indexes}");
}

#[test]
fn damaged_cache_entries_are_errors() {
    let mut reader = Reader::new(wide(3)).expect("a file");
    reader.load_page_indexes().expect("indexes");
    let sound = reader.metadata().to_bytes();
    let read = |bytes: Vec<u8>| Metadata::from_bytes(&bytes.into(), &Limits::default());
    assert_eq!(read(sound.clone()).expect("metadata").to_bytes(), sound);
    for len in 0..sound.len() {
        let error = read(sound[..len].to_vec()).expect_err("an error");
        assert!(matches!(error.kind(), ErrorKind::Malformed(_)), "{len} bytes: {error}");
    }
    let mut rng = Rng::with_seed(5);
    for round in 0..3_000 {
        let mut bytes = sound.clone();
        let body = bytes.len() - 4;
        let at = rng.usize(..body);
        bytes[at] ^= 1 << rng.u8(..8);
        assert!(read(bytes.clone()).is_err(), "round {round}: the checksum was of other bytes");
        // With a checksum that fits, whatever they say is refused, or harmless.
        let checksum = crc32fast::hash(&bytes[..body]);
        bytes.splice(body.., checksum.to_le_bytes());
        if let Ok(metadata) = read(bytes) {
            metadata.heap_bytes();
            for row_group in 0..metadata.row_groups() {
                for leaf in 0..metadata.schema().leaves_len() {
                    let _ = metadata.page_index(row_group, leaf);
                }
            }
        }
    }
}
