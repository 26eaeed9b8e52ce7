//! Tests of where a copied chunk is said to be.

use crate::error::{ErrorKind, LimitKind, Spec};
use crate::format::{ColumnChunk, ColumnMetaData, OffsetIndex, PageLocation, Statistics};
use crate::rewrite::moved_chunk::{MovedPage, forget_bounds, relocated, relocated_chunk};

#[test]
fn a_chunk_without_metadata_or_with_too_small_a_size_is_malformed() {
    let chunk = |uncompressed| ColumnChunk {
        meta_data: Some(ColumnMetaData {
            total_uncompressed_size: uncompressed,
            index_page_offset: Some(9),
            bloom_filter_offset: Some(9),
            ..ColumnMetaData::default()
        }),
        column_index_offset: Some(9),
        ..ColumnChunk::default()
    };
    let none = relocated_chunk(ColumnChunk::default(), 4..10, None, None, 0).unwrap_err();
    assert_eq!(none.kind(), ErrorKind::Malformed(Spec::Metadata("ColumnChunk")));
    for (size, grown) in [(5, -6), (-1, 0), (i64::MAX, 1)] {
        let refused = relocated_chunk(chunk(size), 4..10, None, None, grown).unwrap_err();
        let kind = ErrorKind::Malformed(Spec::Metadata("ColumnMetaData"));
        assert_eq!(refused.kind(), kind, "{size} and {grown}");
    }
    let moved = relocated_chunk(chunk(5), 4..10, None, Some(4), 3).unwrap();
    let meta = moved.meta_data.unwrap();
    assert_eq!((meta.total_uncompressed_size, meta.total_compressed_size), (8, 6));
    assert_eq!((meta.data_page_offset, meta.dictionary_page_offset), (4, Some(4)));
    let elsewhere = (meta.index_page_offset, meta.bloom_filter_offset);
    assert_eq!((elsewhere, moved.column_index_offset), ((None, None), None));
}

#[test]
fn an_offset_index_has_to_list_the_pages_that_were_copied() {
    let index = |offsets: &[i64]| OffsetIndex {
        page_locations: offsets.iter().map(|at| PageLocation::new(*at, 10, 0)).collect(),
        ..OffsetIndex::default()
    };
    let moved = |len| [(4, 104, 10), (14, 114, len)];
    let moved = |len| moved(len).map(|(from, to, len)| MovedPage { from, to, len });
    let new = relocated(index(&[4, 14]), &moved(12)).unwrap().page_locations;
    assert_eq!(new, [PageLocation::new(104, 10, 0), PageLocation::new(114, 12, 0)]);
    for offsets in [&[4][..], &[4, 14, 24], &[4, 15], &[-4, 14]] {
        let refused = relocated(index(offsets), &moved(12)).unwrap_err().kind();
        assert_eq!(refused, ErrorKind::Malformed(Spec::PageIndex), "{offsets:?}");
    }
    let refused = relocated(index(&[4, 14]), &moved(1 << 31)).unwrap_err().kind();
    assert_eq!(refused, ErrorKind::Limit(LimitKind::Page));
}

#[test]
fn bounds_that_are_forgotten_leave_the_counts() {
    let mut chunk = ColumnChunk::default();
    forget_bounds(&mut chunk);
    assert_eq!(chunk, ColumnChunk::default());
    let stated = Statistics {
        max: Some(vec![1]),
        max_value: Some(vec![1]),
        min_value: Some(vec![0]),
        is_max_value_exact: Some(true),
        null_count: Some(3),
        ..Statistics::default()
    };
    let kept = Statistics { max: Some(vec![1]), null_count: Some(3), ..Statistics::default() };
    let with = |statistics| ColumnChunk {
        meta_data: Some(ColumnMetaData { statistics, ..ColumnMetaData::default() }),
        ..ColumnChunk::default()
    };
    for (before, after) in [(None, None), (Some(stated), Some(kept))] {
        let mut chunk = with(before);
        forget_bounds(&mut chunk);
        assert_eq!(chunk, with(after));
    }
}
