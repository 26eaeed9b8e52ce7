//! Broken files are explained up to the place where they break, and no more is read than is asked
//! for.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use marquetry::ErrorKind;
use marquetry::format::*;
use marquetry::inspect::{Inspector, SpanKind};
use marquetry::io::Source;

use super::spans::{tree, unparsed};
use crate::support::{Chunk, file, file_with, ints, required, v1};

fn trips() -> Vec<u8> {
    std::fs::read("testdata/nested_v2.parquet").unwrap()
}

#[test]
fn short_files_are_one_span_and_empty_ones_none() {
    for len in 0..12 {
        let trees = tree(&trips()[..len], None);
        let kinds: Vec<_> = trees.iter().map(|tree| tree.span.kind).collect();
        let expected: &[SpanKind] = if len == 0 { &[] } else { &[SpanKind::Unparsed] };
        assert_eq!(kinds, expected);
    }
}

#[test]
fn a_broken_footer_leaves_what_every_file_has() {
    let mut bytes = trips();
    let at = bytes.len() - 8;
    let len = u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
    // The middle of the footer.
    bytes[at - len / 2..at].fill(0xFF);
    let trees = tree(&bytes, None);
    let kinds: Vec<_> = trees.iter().map(|tree| tree.span.kind).collect();
    use SpanKind::{Footer, FooterLength, Magic, Unparsed};
    assert_eq!(kinds, [Magic, Unparsed, Footer, FooterLength, Magic]);
    // Its first fields are there.
    assert!(trees[2].all(SpanKind::Field).len() > 10);
    assert_eq!(trees[2].all(Unparsed).len(), 1);
    bytes[at..at + 4].fill(0xFF);
    let kinds: Vec<_> = tree(&bytes, None).iter().map(|tree| tree.span.kind).collect();
    assert_eq!(kinds, [Magic, Unparsed, FooterLength, Magic]);
}

#[test]
fn a_broken_page_takes_the_rest_of_its_chunk_and_no_more() {
    let mut bytes = trips();
    let trees = tree(&bytes, None);
    let chunk = trees.iter().find(|tree| tree.span.kind == SpanKind::ColumnChunk).unwrap();
    let at = chunk.span.offset as usize;
    bytes[at..at + 8].fill(0xFF);
    let broken = tree(&bytes, None);
    assert_eq!(unparsed(&broken).len(), 1);
    let n = |trees: &[super::spans::Tree], kind| {
        trees.iter().map(|tree| tree.all(kind).len()).sum::<usize>()
    };
    assert!(n(&broken, SpanKind::Values) > 0);
    assert_eq!(n(&broken, SpanKind::ColumnChunk), n(&trees, SpanKind::ColumnChunk));
}

#[test]
fn mutants_are_trees_of_their_bytes() {
    let seed = 20;
    let mut rng = fastrand::Rng::with_seed(seed);
    for name in ["nested_v2", "trips", "delta_byte_array_v1", "codec_zstd", "rle_boolean_v2"] {
        let bytes = std::fs::read(format!("testdata/{name}.parquet")).unwrap();
        for _ in 0..40 {
            let mut bytes = bytes.clone();
            for _ in 0..rng.usize(1..6) {
                let at = rng.usize(0..bytes.len());
                bytes[at] = rng.u8(..);
            }
            if rng.u8(..) < 32 {
                bytes.truncate(rng.usize(0..bytes.len()));
            }
            tree(&bytes, None);
        }
    }
}

#[test]
fn bytes_that_are_claimed_twice_are_references_of_the_first_claim() {
    let bytes = trips();
    let at = bytes.len() - 8;
    let len = u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
    let (mut footer, _) = FileMetaData::from_thrift(&bytes[at - len..at]).unwrap();
    // The second chunk says that it is the first; what it was is a gap.
    let first = footer.row_groups[0].columns[0].meta_data.clone().unwrap();
    let second = footer.row_groups[0].columns[1].meta_data.as_mut().unwrap();
    second.data_page_offset = first.data_page_offset;
    second.dictionary_page_offset = first.dictionary_page_offset;
    second.total_compressed_size = first.total_compressed_size;
    let mut changed = bytes[..at - len].to_vec();
    let footer = footer.to_thrift();
    changed.extend_from_slice(&footer);
    changed.extend_from_slice(&(footer.len() as u32).to_le_bytes());
    changed.extend_from_slice(b"PAR1");
    let trees = tree(&changed, None);
    let chunk = trees.iter().find(|tree| tree.span.kind == SpanKind::ColumnChunk).unwrap();
    let references: Vec<_> =
        chunk.span.references.iter().map(|of| (of.offset, of.kind, of.row_group)).collect();
    assert_eq!(references, [(chunk.span.offset, SpanKind::ColumnChunk, Some(0))]);
    assert!(trees.iter().any(|tree| tree.span.kind == SpanKind::Gap));
}

#[test]
fn nothing_is_read_before_it_is_asked_for() {
    let bytes = std::fs::read("testdata/multi_row_groups.parquet").unwrap();
    let (source, counts) = Counting::new(bytes);
    let inspector = Inspector::new(source).unwrap();
    let opened = counts.bytes();
    let spans: Vec<_> = inspector.spans().map(Result::unwrap).collect();
    assert!(counts.bytes() - opened < 100, "the tail alone");
    let chunk = spans.iter().find(|span| span.kind == SpanKind::ColumnChunk).unwrap();
    drop(chunk.children());
    assert!(counts.bytes() - opened < 100);
    let before = counts.bytes();
    chunk.children().unwrap().next().unwrap().unwrap();
    assert!(counts.bytes() > before);
}

/// A source whose reads are counted.
struct Counting(Bytes, Arc<Counts>);

#[derive(Default)]
struct Counts {
    reads: AtomicU64,
    bytes: AtomicU64,
}

impl Counts {
    fn reads(&self) -> u64 {
        self.reads.load(Ordering::Relaxed)
    }

    fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }
}

impl Counting {
    fn new(bytes: impl Into<Bytes>) -> (Self, Arc<Counts>) {
        let counts = Arc::<Counts>::default();
        (Self(bytes.into(), counts.clone()), counts)
    }
}

impl Source for Counting {
    fn len(&self) -> marquetry::Result<u64> {
        Ok(self.0.len() as u64)
    }

    fn read(&self, range: Range<u64>) -> marquetry::Result<Bytes> {
        self.1.reads.fetch_add(1, Ordering::Relaxed);
        self.1.bytes.fetch_add(range.end - range.start, Ordering::Relaxed);
        Source::read(&self.0, range)
    }
}

#[test]
fn small_pages_take_few_reads_and_large_ones_are_passed_over() {
    let pages_of = |bytes: Vec<u8>| {
        let len = bytes.len() as u64;
        let (source, counts) = Counting::new(bytes);
        let inspector = Inspector::new(source).unwrap();
        let (reads, before) = (counts.reads(), counts.bytes());
        let pages = inspector.column_chunk(0, 0).unwrap().children().unwrap();
        let pages = pages.map(|page| assert_eq!(page.unwrap().kind, SpanKind::DataPage)).count();
        (pages, counts.reads() - reads, counts.bytes() - before, len)
    };
    let column = |values: usize, n: usize| {
        let page = v1(values, Encoding::Plain, &ints(&vec![7; values]));
        let chunk = Chunk::new(Type::Int32, values * n, &vec![page; n]);
        file(vec![required("v", Type::Int32)], (values * n) as i64, vec![chunk])
    };
    let (pages, reads, bytes, len) = pages_of(column(1, 20_000));
    assert_eq!(pages, 20_000);
    assert!(reads < 16 && bytes < len + len / 8, "{reads} reads of {bytes} of {len} bytes");
    let (pages, reads, bytes, len) = pages_of(column(100_000, 20));
    assert_eq!((pages, reads), (20, 20));
    assert!(bytes < len / 20, "{bytes} of {len} bytes");
}

#[cfg(feature = "encryption")]
#[test]
fn small_pages_before_a_footer_whose_key_is_not_known_take_few_reads() {
    use crate::encryption::{COLUMN_KEY, FOOTER_KEY, key, write};
    use marquetry::WriteOptions;
    use marquetry::arrow_array::{ArrayRef, Int64Array, RecordBatch};
    use marquetry::crypt::Encryption;

    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..3000));
    let columns = [("id", numbers.clone()), ("secret", numbers)];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let of = Encryption::new(key(FOOTER_KEY)).with_column_key("secret", key(COLUMN_KEY));
    let options = WriteOptions::new().with_page_rows(1).with_encryption(of);
    let file = write(options, &[batch]).unwrap();
    let (source, counts) = Counting::new(file.clone());
    let inspector = Inspector::new(source).unwrap();
    let (reads, before) = (counts.reads(), counts.bytes());
    let kinds: Vec<SpanKind> = inspector.spans().map(|span| span.unwrap().kind).collect();
    let count = |kind| kinds.iter().filter(|of| **of == kind).count();
    assert_eq!(count(SpanKind::OtherPage), 3000);
    assert!(count(SpanKind::Module) >= 6000);
    let (reads, bytes) = (counts.reads() - reads, counts.bytes() - before);
    assert!(reads < 32 && bytes < 2 * file.len() as u64, "{reads} reads of {bytes} bytes");
}

#[test]
fn a_chunk_in_another_file_is_refused() {
    let page = v1(1, Encoding::Plain, &ints(&[7]));
    let chunk = Chunk::new(Type::Int32, 1, &[page]);
    let with_path = |path: &str| {
        let schema = vec![required("v", Type::Int32)];
        let bytes = file_with(schema, vec![(1, vec![chunk.clone()])], |meta| {
            meta.row_groups[0].columns[0].file_path = Some(path.to_owned());
        });
        Inspector::new(Bytes::from(bytes)).unwrap().column_chunk(0, 0)
    };
    assert!(with_path("").is_ok());
    let error = with_path("other.parquet").unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Unsupported(_)), "{error:?}");
    assert!(error.to_string().contains("other.parquet"), "{error}");
}
