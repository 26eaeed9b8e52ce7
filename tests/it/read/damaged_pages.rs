//! Tests of reads that go on after damage with nulls: all rows come, what is null is accounted for,
//! and nothing is made up.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use marquetry::arrow_array::cast::AsArray;
use marquetry::arrow_array::{Array, ArrayRef, Int64Array, RecordBatch, StringArray, StructArray};
use marquetry::arrow_schema::{DataType, Field};
use marquetry::format::{PageType, Thrift};
use marquetry::io::WriteSink;
use marquetry::read::OnDamage;
use marquetry::{Batches, Compression, ErrorKind, PageVersion, Reader, WriteOptions, Writer, col};

use crate::read::row_selection::Counted;
use crate::support::{close, row_groups};

const GROUP_ROWS: usize = 400;
const GROUPS: usize = 3;

fn rows(from: usize, len: usize) -> RecordBatch {
    let all = || from..from + len;
    let few = all().map(|i| Some(format!("text {}", i % 3)));
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter(all().map(|i| Some(i as i64))));
    let nulls = all().map(|i| i % 11 > 0).collect::<Vec<bool>>();
    let group = StructArray::new(
        vec![Field::new("day", DataType::Date32, true), Field::new("n", DataType::Int64, true)]
            .into(),
        vec![row_groups::days(all()), numbers],
        Some(nulls.into()),
    );
    let columns: [(&str, ArrayRef, bool); 5] = [
        // It must not be null.
        ("id", row_groups::ids(all()), false),
        ("list", row_groups::lists(all()), true),
        ("name", row_groups::names(all()), true),
        ("few", Arc::new(few.collect::<StringArray>()), true),
        ("group", Arc::new(group), true),
    ];
    RecordBatch::try_from_iter_with_nullable(columns).expect("a batch")
}

fn file(options: WriteOptions) -> Bytes {
    row_groups::file(&rows(0, GROUP_ROWS * GROUPS), GROUP_ROWS, options)
}

fn open(file: &Bytes) -> Reader {
    Reader::new(file.clone()).expect("a file").threads(1).on_damage(OnDamage::NullPages)
}

/// All rows, and the read that kept the account.
fn read(reader: &Reader) -> (RecordBatch, Batches) {
    try_read(reader).expect("damage is no error")
}

fn try_read(reader: &Reader) -> marquetry::Result<(RecordBatch, Batches)> {
    let mut batches = reader.batches()?;
    let mut all = Vec::new();
    while let Some(batch) = batches.next_batch()? {
        all.push(batch);
    }
    let all = arrow_select::concat::concat_batches(&batches.schema(), &all).expect("a batch");
    Ok((all, batches))
}

/// The bytes of the data pages of a leaf.
fn pages(file: &Bytes, row_group: usize, leaf: usize) -> Vec<Range<usize>> {
    let pages = open(file).stored_pages(row_group, leaf).expect("pages");
    let is_data = |kind| matches!(kind, PageType::DataPage | PageType::DataPageV2);
    let pages = pages.map(|page| page.expect("a page")).filter(|page| is_data(page.header.r#type));
    pages
        .map(|page| {
            let start = page.offset as usize + page.header_len;
            start..start + page.header.compressed_page_size as usize
        })
        .collect()
}

fn damaged(file: &Bytes, at: usize) -> Bytes {
    let mut bytes = file.to_vec();
    bytes[at] ^= 0x55;
    bytes.into()
}

#[test]
fn the_rows_of_a_damaged_page_are_null_in_its_column_alone() {
    let whole = file(WriteOptions::new());
    let expected = rows(0, GROUP_ROWS * GROUPS);
    // By leaf: id, list, name, few, day, n.
    for (leaf, column) in [(1, 1), (2, 2), (3, 3)] {
        let places = pages(&whole, 1, leaf);
        let place = &places[2];
        let (found, account) = read(&open(&damaged(&whole, place.end - 1)));
        assert!(account.damage().is_empty(), "{:?}", account.damage());
        assert_eq!(account.nulled().len(), 1, "{:?}", account.nulled());
        let lost = &account.nulled()[0];
        assert_eq!((lost.row_group, lost.page), (1, 2));
        let rows = lost.rows.start as usize + GROUP_ROWS..lost.rows.end as usize + GROUP_ROWS;
        assert!(!rows.is_empty() && rows.len() < 200, "{rows:?}");
        for (at, of) in expected.columns().iter().enumerate() {
            let found = found.column(at);
            if at != column {
                assert_eq!(found, of);
                continue;
            }
            assert_eq!(found.slice(rows.start, rows.len()).null_count(), rows.len());
            assert_eq!(&found.slice(0, rows.start), &of.slice(0, rows.start));
            let after = found.len() - rows.end;
            assert_eq!(&found.slice(rows.end, after), &of.slice(rows.end, after));
        }
    }
}

#[test]
fn a_damaged_leaf_of_a_struct_takes_neither_its_sibling_nor_the_struct() {
    let whole = file(WriteOptions::new());
    let (expected, _) = read(&open(&whole));
    let place = pages(&whole, 0, 4)[1].end - 1;
    let (found, account) = read(&open(&damaged(&whole, place)));
    assert_eq!(account.nulled().len(), 1, "{:?}", account.nulled());
    assert_eq!(account.nulled()[0].column, "group.day");
    let (of, found) = (expected.column(4).as_struct(), found.column(4).as_struct());
    assert_eq!(found.nulls(), of.nulls());
    assert_eq!(found.column(1), of.column(1));
    let lost = &account.nulled()[0].rows;
    let lost = lost.start as usize..lost.end as usize;
    assert_eq!(found.column(0).slice(lost.start, lost.len()).null_count(), lost.len());
}

#[test]
fn a_row_group_is_skipped_where_nulls_would_be_made_up_and_the_account_says_why() {
    let whole = file(WriteOptions::new());
    // A column that must not be null.
    let broken = damaged(&whole, pages(&whole, 1, 0)[0].end - 1);
    let (found, account) = read(&open(&broken));
    assert_eq!(found.num_rows(), GROUP_ROWS * (GROUPS - 1));
    assert!(account.nulled().is_empty());
    assert!(account.damage()[0].not_nulled.is_some());
    // Filtered rows.
    let broken = damaged(&whole, pages(&whole, 1, 2)[0].end - 1);
    let (_, account) = read(&open(&broken).filter(col("id").gt_eq(0)));
    assert_eq!(account.damage().len(), 1);
    assert!(account.damage()[0].not_nulled.is_some());
    // Without that column nothing is damaged.
    let (found, account) = read(&open(&broken).project(["id", "list"]).expect("columns"));
    assert_eq!(found.num_rows(), GROUP_ROWS * GROUPS);
    assert!(account.damage().is_empty() && account.nulled().is_empty());
    // A list of pages of version 1, whose rows only an offset index tells.
    let options = WriteOptions::new().with_page_version(PageVersion::V1);
    let bare = file(options.with_statistics(marquetry::StatisticsLevel::None));
    let has_index = open(&bare).page_index(0, 1).expect("an index").offset_index.is_some();
    let broken = damaged(&bare, pages(&bare, 1, 1)[0].end - 1);
    let (_, account) = read(&open(&broken));
    assert_eq!(account.nulled().is_empty(), !has_index, "{:?}", account.damage());
}

#[test]
fn leaves_that_contradict_each_other_are_told_and_make_up_nothing() {
    let options = WriteOptions::new().with_page_version(PageVersion::V1);
    let whole = file(options.with_compression(Compression::Uncompressed).with_checksums(false));
    // The group of the eighth row is null, but not by the levels of `group.n`: two bits each, after
    // their length and a header.
    let eighth = pages(&whole, 1, 5)[0].start + 6;
    assert_eq!(whole[eighth], 0b00_10_10_10);
    let mut bytes = whole.to_vec();
    bytes[eighth] |= 0b01_00_00_00;
    let broken = Bytes::from(bytes);
    let of_name = pages(&broken, 1, 2)[0].end - 1;
    let mut bytes = broken.to_vec();
    bytes[of_name - 40..=of_name].fill(0xFF);
    for broken in [broken, bytes.into()] {
        let (found, account) = read(&open(&broken));
        assert_eq!(found.num_rows(), GROUP_ROWS * (GROUPS - 1));
        assert_eq!(account.damage().len(), 1);
        let text = account.damage()[0].error.to_string();
        assert!(text.contains("group") && text.contains("contradict"), "{text}");
    }
}

#[test]
fn offset_and_limit_count_the_rows_with_nulls() {
    let whole = file(WriteOptions::new());
    let broken = damaged(&whole, pages(&whole, 1, 2)[0].end - 1);
    let (all, _) = read(&open(&broken));
    let (some, _) = read(&open(&broken).offset(390).limit(100).batch_rows(7));
    assert_eq!(some, all.slice(390, 100));
}

#[test]
fn random_damage_never_changes_a_value() {
    let layouts = [
        file(WriteOptions::new()),
        file(WriteOptions::new().with_page_version(PageVersion::V2)),
        file(WriteOptions::new().with_page_version(PageVersion::V1).with_dictionary(false)),
    ];
    let expected = rows(0, GROUP_ROWS * GROUPS);
    let mut nulled = 0;
    for seed in 0..120u64 {
        println!("seed {seed}");
        let mut random = fastrand::Rng::with_seed(seed);
        let whole = &layouts[random.usize(0..layouts.len())];
        let (row_group, leaf) = (random.usize(0..GROUPS), random.usize(0..6));
        let pages = pages(whole, row_group, leaf);
        let first = pages[0].start - 20;
        let place = random.usize(first..pages[pages.len() - 1].end);
        let (found, account) = match try_read(&open(&damaged(whole, place))) {
            Ok(done) => done,
            // An encoding that a header has by damage may be one of the future.
            Err(error) => {
                assert!(matches!(error.kind(), ErrorKind::Unsupported(_)), "{error}");
                continue;
            }
        };
        nulled += account.nulled().len();
        let skipped: Vec<usize> = account.damage().iter().map(|of| of.row_group).collect();
        let mut expected_rows = 0..0;
        let mut at = 0;
        for group in 0..GROUPS {
            expected_rows = group * GROUP_ROWS..(group + 1) * GROUP_ROWS;
            if skipped.contains(&group) {
                at += account.damage()[0].rows_returned as usize;
                continue;
            }
            let of_group = found.slice(at, GROUP_ROWS);
            at += GROUP_ROWS;
            let expected = expected.slice(expected_rows.start, GROUP_ROWS);
            for column in 0..expected.num_columns() {
                let (is, was) = (of_group.column(column), expected.column(column));
                for row in 0..GROUP_ROWS {
                    let is_lost = account.nulled().iter().any(|page| {
                        let top = page.column.split('.').next();
                        page.row_group == group
                            && page.rows.contains(&(row as u64))
                            && top == Some(expected.schema().field(column).name())
                    });
                    let is_same = is.slice(row, 1) == was.slice(row, 1);
                    assert!(is_same || is_lost, "row {row} of column {column}");
                }
            }
        }
        assert_eq!(at, found.num_rows(), "{expected_rows:?}");
    }
    assert!(nulled > 30, "{nulled} pages");
}

/// A file of pages of one row, with offset indexes or without.
fn single_rows(rows: usize, indexed: bool) -> Bytes {
    let batch = RecordBatch::try_from_iter([("name", row_groups::names(0..rows))]);
    let batch = batch.expect("a batch");
    let options = WriteOptions::new().with_page_rows(1).with_dictionary(false);
    let mut writer = Writer::new(WriteSink(Vec::new()), batch.schema(), options).expect("a writer");
    writer.write(&batch).expect("rows");
    let file = writer.into_inner().expect("a file").1;
    if indexed {
        return file.into();
    }
    let reader = Reader::new(Bytes::from(file.clone())).expect("a file");
    let mut meta = reader.metadata().index().to_file_meta_data().expect("metadata");
    for chunk in meta.row_groups.iter_mut().flat_map(|group| &mut group.columns) {
        (chunk.offset_index_offset, chunk.offset_index_length) = (None, None);
        (chunk.column_index_offset, chunk.column_index_length) = (None, None);
    }
    let len = u32::from_le_bytes(file[file.len() - 8..file.len() - 4].try_into().expect("four"));
    close(file[..file.len() - 8 - len as usize].to_vec(), &meta.to_thrift()).into()
}

#[test]
fn damaged_pages_of_few_rows_are_left_alone() {
    for indexed in [true, false] {
        let whole = single_rows(60, indexed);
        let index = open(&whole).page_index(0, 0).expect("an index").offset_index;
        assert_eq!(index.is_some(), indexed);
        let (places, expected) = (pages(&whole, 0, 0), row_groups::names(0..60));
        let mut broken = whole.clone();
        for page in [9, 17, 18, 59] {
            broken = damaged(&broken, places[page].end - 1);
        }
        let (found, account) = read(&open(&broken));
        assert!(account.damage().is_empty(), "{:?}", account.damage());
        let lost: Vec<_> = account.nulled().iter().map(|page| page.rows.clone()).collect();
        assert_eq!(lost, [9..10, 17..18, 18..19, 59..60]);
        assert_eq!(found.num_rows(), 60);
        for row in 0..60 {
            let (is, was) = (found.column(0).slice(row, 1), expected.slice(row, 1));
            let is_lost = [9, 17, 18, 59].contains(&row);
            assert!(if is_lost { is.is_null(0) } else { is == was }, "row {row}");
        }
    }
}

#[test]
fn looking_for_damaged_pages_reads_each_page_a_few_times_whatever_their_number() {
    for indexed in [true, false] {
        let whole = single_rows(300, indexed);
        let broken = damaged(&whole, pages(&whole, 0, 0)[200].end - 1);
        let source = Counted::new(broken.clone());
        let reader = Reader::new(source.clone()).expect("a file").threads(1);
        let (found, account) = read(&reader.on_damage(OnDamage::NullPages));
        assert_eq!((found.num_rows(), account.nulled().len()), (300, 1));
        let bytes: u64 = source.taken().iter().map(|range| range.end - range.start).sum();
        let len = broken.len() as u64;
        assert!(bytes < 10 * len, "{bytes} bytes of {len} were read, indexed: {indexed}");
    }
}
