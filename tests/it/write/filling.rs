//! Tests of `Fill`: what a writer left out is added, and nothing else changes.

use std::sync::Arc;

use bytes::Bytes;
use marquetry::arrow_array::{
    ArrayRef, Float64Array, Int32Array, RecordBatch, StringArray, UInt32Array,
};
use marquetry::check::{CheckLevel, Checker, Severity};
use marquetry::format::{ColumnOrder, FileMetaData, Thrift};
use marquetry::io::WriteSink;
use marquetry::rewrite::{Fill, FillPart, Filled};
use marquetry::{BloomOptions, ErrorKind, Reader, SortColumn, WriteOptions, col, lit};

use super::rewriting::{open, write};
use crate::support::files::close;
use crate::support::generate::{Case, case, every_case};
use crate::support::read_with;

fn run(fill: &Fill) -> marquetry::Result<(Bytes, Filled)> {
    let plan = fill.plan()?;
    let mut out = Vec::new();
    let done = fill.run(WriteSink(&mut out))?;
    assert_eq!((done.rows, done.bytes), (plan.rows, out.len() as u64));
    assert_eq!((&done.parts, &done.notes), (&plan.parts, &plan.notes));
    Ok((out.into(), done))
}

/// The same pages below another footer.
pub(super) fn with_footer(file: &Bytes, change: impl FnOnce(&mut FileMetaData)) -> Bytes {
    let reader = open(file);
    let mut metadata = reader.metadata().index().to_file_meta_data().expect("a footer");
    let tail = file.len() - 8;
    let len = u32::from_le_bytes(file[tail..tail + 4].try_into().unwrap()) as usize;
    change(&mut metadata);
    close(file[..tail - len].to_vec(), &metadata.to_thrift()).into()
}

/// Leaves out what `leave_out` says of each chunk, by number.
fn poor(file: &Bytes, mut leave_out: impl FnMut(usize) -> bool) -> Bytes {
    with_footer(file, |metadata| {
        for chunk in metadata.row_groups.iter_mut().flat_map(|group| &mut group.columns) {
            let meta = chunk.meta_data.as_mut().unwrap();
            if leave_out(0) {
                meta.encoding_stats = None;
            }
            if leave_out(1) {
                meta.statistics = None;
            } else if leave_out(2)
                && let Some(stated) = &mut meta.statistics
            {
                (stated.is_min_value_exact, stated.is_max_value_exact) = (None, None);
                (stated.null_count, stated.nan_count) = (None, None);
            }
            if leave_out(3) {
                meta.size_statistics = None;
            }
            if leave_out(4) {
                (chunk.column_index_offset, chunk.column_index_length) = (None, None);
                if leave_out(5) {
                    (chunk.offset_index_offset, chunk.offset_index_length) = (None, None);
                }
            }
        }
        if leave_out(6) {
            metadata.column_orders = None;
        }
    })
}

/// The findings of the checker, without notes.
fn findings(file: &Bytes) -> Vec<String> {
    let mut found = Vec::new();
    let checker = Checker::new(file.clone()).level(CheckLevel::Truth);
    checker
        .run(|finding| {
            if finding.severity() > Severity::Note {
                found.push(format!("{finding} {:?}", finding.at));
            }
        })
        .expect("a check");
    found
}

fn rows(file: &Bytes) -> RecordBatch {
    let batches = read_with(open(file)).expect("rows");
    arrow_select::concat::concat_batches(&open(file).schema().unwrap(), &batches).unwrap()
}

#[test]
fn random_files_get_what_was_left_out_and_state_what_is_true() {
    every_case(300, |seed| {
        let Case { name, file, .. } = case(seed);
        let mut rng = fastrand::Rng::with_seed(seed);
        let all = rng.bool();
        let poor = poor(&file, |_| all || rng.bool());
        let mut fill = Fill::new(open(&poor));
        if seed % 3 == 0 {
            fill = fill.only(FillPart::ALL.iter().copied());
        }
        let (filled, _) = run(&fill).unwrap_or_else(|e| panic!("{e}: {name}"));
        assert_eq!(rows(&filled), rows(&file), "{name}");
        assert_eq!(findings(&filled), Vec::<String>::new(), "{name}");
        // There is nothing left to do.
        let (again, done) = run(&Fill::new(open(&filled))).expect("a filled file");
        let left: Vec<_> = done.parts.iter().map(|part| part.part).collect();
        assert_eq!(left, [], "{name}");
        assert_eq!(again.len(), filled.len(), "{name}");
    });
}

#[test]
fn what_is_filled_in_is_what_the_writer_would_have_stated() {
    let file = write(&numbers(), small_pages());
    let poor = poor(&file, |_| true);
    let (filled, done) = run(&Fill::new(open(&poor))).expect("a file");
    let of = |file: &Bytes| open(file).metadata().index().to_file_meta_data().unwrap();
    let (expected, found) = (of(&file), of(&filled));
    assert_eq!(found.column_orders, expected.column_orders);
    for (expected, found) in expected.row_groups.iter().zip(&found.row_groups) {
        for (expected, found) in expected.columns.iter().zip(&found.columns) {
            let (expected_meta, found_meta) =
                (expected.meta_data.as_ref().unwrap(), found.meta_data.as_ref().unwrap());
            let mut statistics = found_meta.statistics.clone().unwrap();
            let of_writer = expected_meta.statistics.clone().unwrap();
            if of_writer.distinct_count.is_none() {
                statistics.distinct_count = None;
            }
            assert_eq!(statistics, of_writer);
            // The writer states them even if there is nothing to say.
            let sizes = found_meta.size_statistics.clone().unwrap_or_default();
            assert_eq!(Some(sizes), expected_meta.size_statistics);
            assert_eq!(found_meta.encoding_stats, expected_meta.encoding_stats);
            assert_eq!(found.column_index_length, expected.column_index_length);
        }
    }
    let parts: Vec<_> = done.parts.iter().map(|part| (part.part, part.count)).collect();
    let chunks = 5 * 4;
    use FillPart::*;
    for (part, count) in [
        (EncodingStats, chunks),
        (Statistics, chunks),
        (OffsetIndex, chunks),
        (ColumnIndex, chunks),
        (ColumnOrders, 4),
    ] {
        assert!(parts.contains(&(part, count)), "{part}: {parts:?}");
    }
    // As much is passed over as in the file of the writer.
    let filter = || col("id").lt(lit(100i32));
    let left = |file: &Bytes| {
        let plan = open(file).filter(filter()).explain().expect("a plan");
        plan.row_groups.iter().map(|group| group.rows_left).sum::<u64>()
    };
    assert_eq!((left(&poor), left(&filled), left(&file)), (1_000, 200, 200));
}

pub(super) fn numbers() -> RecordBatch {
    let n = 1_000;
    let ids: ArrayRef = Arc::new(Int32Array::from_iter_values(0..n));
    let unsigned: ArrayRef =
        Arc::new(UInt32Array::from_iter_values((0..n).map(|i| (i as u32).wrapping_mul(1 << 23))));
    let names: ArrayRef = Arc::new(StringArray::from_iter(
        (0..n).map(|i| (i % 7 != 0).then(|| format!("name {}", i % 40))),
    ));
    let shares: ArrayRef = Arc::new(Float64Array::from_iter((0..n).map(|i| {
        (i % 5 != 0).then_some(if i % 11 == 0 { f64::NAN } else { f64::from(i) / 7.0 - 50.0 })
    })));
    let columns = [
        ("id", ids, false),
        ("u", unsigned, false),
        ("name", names, true),
        ("share", shares, true),
    ];
    RecordBatch::try_from_iter_with_nullable(columns).expect("a batch")
}

fn small_pages() -> WriteOptions {
    WriteOptions::new().with_page_rows(50).with_row_group_rows(200)
}

#[test]
fn bounds_without_an_order_are_computed_anew() {
    let file = write(&numbers(), small_pages());
    // In the order of signed numbers, as old writers had it.
    let wrong = with_footer(&file, |metadata| {
        metadata.column_orders = None;
        for group in &mut metadata.row_groups {
            let chunk = &mut group.columns[1];
            let stated = chunk.meta_data.as_mut().unwrap().statistics.as_mut().unwrap();
            std::mem::swap(&mut stated.min_value, &mut stated.max_value);
            (chunk.column_index_offset, chunk.column_index_length) = (None, None);
        }
    });
    let (filled, _) = run(&Fill::new(open(&wrong))).expect("a file");
    assert_eq!(findings(&filled), Vec::<String>::new());
    let stated = open(&filled).metadata().index().to_file_meta_data().unwrap();
    assert_eq!(stated.column_orders, Some(vec![ColumnOrder::TypeOrder; 4]));
    // Without column orders, the bounds stay as they are, and mean nothing.
    let parts = [FillPart::EncodingStats, FillPart::OffsetIndex];
    let (kept, _) = run(&Fill::new(open(&wrong)).only(parts)).expect("a file");
    let kept = open(&kept).metadata().index().to_file_meta_data().unwrap();
    assert_eq!(kept.column_orders, None);
}

#[test]
fn a_file_that_states_what_is_not_true_is_refused() {
    let file = write(&numbers(), small_pages());
    let wrong = with_footer(&poor(&file, |what| what == 4), |metadata| {
        let meta = metadata.row_groups[2].columns[2].meta_data.as_mut().unwrap();
        meta.statistics.as_mut().unwrap().null_count = Some(1);
    });
    let error = run(&Fill::new(open(&wrong))).expect_err("a lie");
    assert!(matches!(error.kind(), ErrorKind::Malformed(_)), "{error}");
    let (row_group, column) = (error.at().row_group, error.at().column.as_deref());
    assert_eq!((row_group, column), (Some(2), Some("name")));
}

#[test]
fn sort_orders_are_stated_if_the_rows_have_them() {
    // The writer sees for itself that the rows are sorted.
    let of_writer = write(&numbers(), small_pages());
    let file = with_footer(&of_writer, |metadata| {
        metadata.row_groups.iter_mut().for_each(|group| group.sorting_columns = None);
    });
    let by = |columns: Vec<SortColumn>| run(&Fill::new(open(&file)).only([]).sorted(columns));
    let (sorted, done) =
        by(vec![SortColumn::ascending("id"), SortColumn::descending("u")]).unwrap();
    assert_eq!((done.parts[0].part, done.parts[0].count), (FillPart::SortingColumns, 5));
    let stated = open(&sorted).metadata().index().to_file_meta_data().unwrap();
    let stated = stated.row_groups[4].sorting_columns.clone().unwrap();
    assert_eq!((stated.len(), stated[1].column_idx, stated[1].descending), (2, 1, true));
    assert_eq!(findings(&sorted), Vec::<String>::new());
    for wrong in ["name", "share", "absent"] {
        let error = by(vec![SortColumn::ascending(wrong)]).expect_err("not sorted");
        assert_eq!(error.kind(), ErrorKind::Usage, "{error}");
    }
    assert_eq!(by(vec![SortColumn::descending("id")]).unwrap_err().kind(), ErrorKind::Usage);
    // Another order than the one that is stated.
    let other = Fill::new(open(&of_writer)).sorted([SortColumn::ascending("u")]);
    assert_eq!(run(&other).unwrap_err().kind(), ErrorKind::Usage);
    let same = Fill::new(open(&of_writer)).only([]).sorted([SortColumn::ascending("id")]);
    assert_eq!(run(&same).expect("a file").1.parts, []);
}

#[test]
fn bloom_filters_have_all_values_and_the_size_that_these_need() {
    let file = write(&numbers(), WriteOptions::new());
    let fill = Fill::new(open(&file)).only([]).bloom("name", BloomOptions::default());
    let fill = fill.bloom("id", BloomOptions::default().with_fpp(0.001));
    let (filled, done) = run(&fill).expect("a file");
    assert_eq!((done.parts[0].part, done.parts[0].count), (FillPart::BloomFilters, 2));
    assert_eq!(findings(&filled), Vec::<String>::new());
    let found = open(&filled).filter(col("name").eq(lit("name 4x"))).explain().unwrap();
    assert_eq!(found.rows_left(), 0);
    for column in ["absent", "name.x"] {
        let fill = Fill::new(open(&file)).bloom(column, BloomOptions::default());
        assert_eq!(run(&fill).unwrap_err().kind(), ErrorKind::Usage);
    }
    let fill = Fill::new(open(&file)).bloom("id", BloomOptions::default().with_fpp(1.5));
    assert_eq!(run(&fill).unwrap_err().kind(), ErrorKind::Usage);
    // One that is there stays.
    let fill = Fill::new(open(&filled)).only([]).bloom("id", BloomOptions::default());
    assert_eq!(run(&fill).unwrap().1.parts, []);
}

#[test]
fn checksums_are_added_to_pages() {
    let file = write(&numbers(), small_pages().with_checksums(false));
    let (filled, done) = run(&Fill::new(open(&file)).only([FillPart::Checksums])).expect("a file");
    let pages = done.parts[0];
    assert_eq!(pages.part, FillPart::Checksums);
    assert!(done.bytes - file.len() as u64 >= pages.bytes);
    let mut seen = 0;
    for row_group in 0..5 {
        for leaf in 0..4 {
            for page in open(&filled).stored_pages(row_group, leaf).unwrap() {
                assert!(page.unwrap().header.crc.is_some());
                seen += 1;
            }
        }
    }
    assert_eq!(seen, pages.count);
    assert_eq!(findings(&filled), Vec::<String>::new());
    assert_eq!(rows(&filled), rows(&file));
}

#[test]
fn page_headers_tell_encodings_and_places() {
    let file = write(&numbers(), small_pages());
    let poor = poor(&file, |what| [0, 4, 5].contains(&what));
    let by_values = run(&Fill::new(open(&poor))).expect("a file").0;
    let fill = Fill::new(open(&poor)).decode_values(false);
    let (by_headers, done) = run(&fill).expect("a file");
    let parts: Vec<_> = done.parts.iter().map(|part| part.part).collect();
    assert_eq!(parts, [FillPart::EncodingStats, FillPart::OffsetIndex]);
    let of = |file: &Bytes| open(file).metadata().index().to_file_meta_data().unwrap();
    let stats = |file| -> Vec<_> {
        let groups = of(file).row_groups;
        groups
            .into_iter()
            .flat_map(|group| group.columns)
            .map(|chunk| chunk.meta_data.unwrap().encoding_stats)
            .collect()
    };
    assert_eq!(stats(&by_headers), stats(&by_values));
    assert_eq!(findings(&by_headers), Vec::<String>::new());
    let fill = Fill::new(open(&poor)).decode_values(false).sorted([SortColumn::ascending("id")]);
    assert_eq!(run(&fill).unwrap_err().kind(), ErrorKind::Usage);
}

#[test]
fn a_part_of_a_file_is_not_filled_in() {
    let file = write(&numbers(), small_pages());
    let readers = [
        open(&file).limit(10),
        open(&file).filter(col("id").lt(lit(5i32))),
        open(&file).project(["id"]).unwrap(),
        open(&file).row_groups([1]).unwrap(),
    ];
    for reader in readers {
        assert_eq!(run(&Fill::new(reader)).unwrap_err().kind(), ErrorKind::Usage);
    }
}

#[test]
#[cfg(feature = "encryption")]
fn encrypted_files_are_unsupported() {
    use marquetry::crypt::{Decryption, Encryption, Key};
    let key = || Key::new(b"0123456789abcdef").expect("a key");
    let options = small_pages().with_encryption(Encryption::new(key()));
    let file = write(&numbers(), options);
    let keys = Decryption::new().with_footer_key(key());
    let reader = Reader::with_keys(file, Default::default(), &keys).expect("a reader");
    let error = Fill::new(reader).plan().expect_err("an encrypted file");
    assert!(matches!(error.kind(), ErrorKind::Unsupported(_)), "{error}");
}

#[test]
fn damaged_files_are_errors_or_are_filled_in() {
    let file = poor(&write(&numbers(), small_pages()), |_| true);
    let mut rng = fastrand::Rng::with_seed(33);
    let (mut refused, mut filled) = (0, 0);
    for _ in 0..400 {
        let mut bytes = file.to_vec();
        for _ in 0..rng.usize(1..4) {
            let at = rng.usize(4..bytes.len());
            bytes[at] = rng.u8(..);
        }
        let Ok(reader) = Reader::new(Bytes::from(bytes)) else { continue };
        let fill = Fill::new(reader.threads(1)).only(FillPart::ALL.iter().copied());
        match fill.run(WriteSink(Vec::new())) {
            Ok(_) => filled += 1,
            Err(_) => refused += 1,
        }
    }
    assert!(refused > 50 && filled > 5, "{refused} refused, {filled} filled in");
}
