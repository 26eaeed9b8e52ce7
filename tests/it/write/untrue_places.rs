//! Tests of copies of files whose footers lie about places: an error that says where, never a file.

use bytes::Bytes;
use marquetry::format::{ColumnChunk, ColumnMetaData, FileMetaData};
use marquetry::io::WriteSink;
use marquetry::rewrite::{Fill, Rewrite};
use marquetry::{BloomOptions, Compression, ErrorKind, Spec, WriteOptions};

use super::filling::{numbers, with_footer};
use super::rewriting::{open, write};

/// Two row groups; the third column, "name", has bloom filters.
fn file() -> Bytes {
    let options = WriteOptions::new().with_page_rows(50).with_row_group_rows(500);
    write(
        &numbers(),
        options.with_column("name", |column| column.with_bloom(BloomOptions::default())),
    )
}

fn name(metadata: &mut FileMetaData) -> &mut ColumnChunk {
    &mut metadata.row_groups[1].columns[2]
}

fn meta(metadata: &mut FileMetaData) -> &mut ColumnMetaData {
    name(metadata).meta_data.as_mut().unwrap()
}

/// A copy in each way in which chunks are not decoded.
fn copies(file: &Bytes) -> Vec<(&'static str, marquetry::Result<()>)> {
    let copy = || Rewrite::new([open(file)]);
    let run = |of: Rewrite| of.run(WriteSink(Vec::new())).map(drop);
    let fill = |of: Fill| of.run(WriteSink(Vec::new())).map(drop);
    vec![
        ("bytes", run(copy())),
        ("pages", run(copy().verify_checksums(true))),
        ("codec", run(copy().codec("*", Compression::Uncompressed))),
        ("fill", fill(Fill::new(open(file)).only([]))),
        ("fill in", fill(Fill::new(open(file)).decode_values(false))),
    ]
}

#[test]
fn a_bloom_filter_outside_of_the_file_is_malformed() {
    let file = file();
    let len = i64::try_from(file.len()).unwrap();
    assert!(copies(&file).iter().all(|(_, done)| done.is_ok()));
    for at in [len, i64::MAX, -1, len - 4] {
        let wrong = with_footer(&file, |metadata| meta(metadata).bloom_filter_offset = Some(at));
        for (way, done) in copies(&wrong) {
            let error = done.expect_err(way);
            assert!(matches!(error.kind(), ErrorKind::Malformed(_)), "{way}, {at}: {error}");
            assert_eq!(error.at().row_group, Some(1), "{way}, {at}: {error}");
        }
    }
}

#[test]
fn a_bloom_filter_of_a_length_that_cannot_be_is_malformed() {
    let file = file();
    // Headers whose lengths are -1 and about a million, in the place of the pages.
    for len in [&[0x01][..], &[0x80, 0x89, 0x7A]] {
        let unions = [0x1C, 0x1C, 0, 0, 0x1C, 0x1C, 0, 0, 0x1C, 0x1C, 0, 0, 0];
        let header = [&[0x15], len, &unions].concat();
        let mut bytes = file.to_vec();
        bytes.splice(4..4 + header.len(), header);
        let wrong = with_footer(&bytes.into(), |metadata| {
            metadata.row_groups.remove(0);
            metadata.num_rows = 500;
            let chunk = &mut metadata.row_groups[0].columns[2];
            chunk.meta_data.as_mut().unwrap().bloom_filter_offset = Some(4);
        });
        for (way, done) in copies(&wrong) {
            let error = done.expect_err(way);
            assert_eq!(error.kind(), ErrorKind::Malformed(Spec::BloomFilter), "{way}: {error}");
        }
    }
}

#[test]
fn an_offset_index_of_another_chunk_is_malformed() {
    let file = file();
    let wrong = with_footer(&file, |metadata| {
        let (at, len) = {
            let other = &metadata.row_groups[0].columns[1];
            (other.offset_index_offset, other.offset_index_length)
        };
        (name(metadata).offset_index_offset, name(metadata).offset_index_length) = (at, len);
    });
    for (way, done) in copies(&wrong).into_iter().take(3) {
        let error = done.expect_err(way);
        assert_eq!(error.kind(), ErrorKind::Malformed(Spec::PageIndex), "{way}: {error}");
        let (row_group, column) = (error.at().row_group, error.at().column.as_deref());
        assert_eq!((row_group, column), (Some(1), Some("name")), "{way}");
    }
}

#[test]
fn a_row_group_of_fewer_chunks_is_malformed() {
    let wrong = with_footer(&file(), |metadata| drop(metadata.row_groups[1].columns.pop()));
    for (way, done) in copies(&wrong) {
        let error = done.expect_err(way);
        assert!(matches!(error.kind(), ErrorKind::Malformed(_)), "{way}: {error}");
        assert_eq!(error.at().row_group, Some(1), "{way}: {error}");
    }
}

#[test]
fn a_chunk_without_metadata_or_outside_of_the_file_is_malformed() {
    let lies: [fn(&mut FileMetaData); 4] = [
        |metadata| name(metadata).meta_data = None,
        |metadata| meta(metadata).data_page_offset = -1,
        |metadata| meta(metadata).total_compressed_size = i64::MAX,
        |metadata| meta(metadata).total_uncompressed_size = -1,
    ];
    for (lie, change) in lies.into_iter().enumerate() {
        for (way, done) in copies(&with_footer(&file(), change)) {
            let error = done.expect_err(way);
            assert!(matches!(error.kind(), ErrorKind::Malformed(_)), "{lie}, {way}: {error}");
        }
    }
}
