//! Broken files are explained up to the place where they break.

use marquetry::inspect::{Inspector, SpanKind};

use super::spans::{tree, unparsed};

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
    use marquetry::format::{FileMetaData, Thrift};

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
    use std::ops::Range;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    use bytes::Bytes;
    use marquetry::io::Source;

    struct Counting(Bytes, Arc<AtomicU64>);
    impl Source for Counting {
        fn len(&self) -> marquetry::Result<u64> {
            Ok(self.0.len() as u64)
        }

        fn read(&self, range: Range<u64>) -> marquetry::Result<Bytes> {
            self.1.fetch_add(range.end - range.start, Ordering::Relaxed);
            Source::read(&self.0, range)
        }
    }
    let read = Arc::new(AtomicU64::new(0));
    let bytes = Bytes::from(std::fs::read("testdata/multi_row_groups.parquet").unwrap());
    let inspector = Inspector::new(Counting(bytes, read.clone())).unwrap();
    let opened = read.load(Ordering::Relaxed);
    let spans: Vec<_> = inspector.spans().map(Result::unwrap).collect();
    assert!(read.load(Ordering::Relaxed) - opened < 100, "the tail alone");
    let chunk = spans.iter().find(|span| span.kind == SpanKind::ColumnChunk).unwrap();
    drop(chunk.children());
    assert!(read.load(Ordering::Relaxed) - opened < 100);
    let before = read.load(Ordering::Relaxed);
    chunk.children().unwrap().next().unwrap().unwrap();
    assert!(read.load(Ordering::Relaxed) > before);
}
