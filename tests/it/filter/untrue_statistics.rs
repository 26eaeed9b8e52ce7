//! Tests wrong statistics: rows that fail a filter are not returned where its columns are read, and
//! `Reader::verify_statistics` trusts nothing but values.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, Int32Array, RecordBatch};
use bytes::Bytes;
use marquetry::format::{ColumnIndex, Thrift};
use marquetry::io::WriteSink;
use marquetry::read::PageIndexUse;
use marquetry::{Predicate, Reader, WriteOptions, Writer};

use crate::support::close;

const ROWS: i32 = 3000;

/// The values of a row: null, 65536 or 1.
fn value(row: i32) -> Option<i32> {
    [None, Some(65_536), Some(1)][row as usize % 3]
}

/// The contents of the file.
#[derive(Debug, Clone, Copy)]
enum Lie {
    RowGroup,
    Pages,
}

/// Columns `id`, `value` and `other` (7 in each row). Statistics say that values are from 0 to 1
/// and none is null.
fn lying_file(lie: Lie) -> Bytes {
    let columns: [(&str, ArrayRef); 3] = [
        ("id", Arc::new(Int32Array::from_iter_values(0..ROWS))),
        ("value", Arc::new(Int32Array::from_iter((0..ROWS).map(value)))),
        ("other", Arc::new(Int32Array::from_value(7, ROWS as usize))),
    ];
    let batch = RecordBatch::try_from_iter_with_nullable(
        columns.map(|(name, array)| (name, array, name == "value")),
    );
    let batch = batch.expect("a batch");
    let options = WriteOptions::new().with_page_rows(500);
    let mut writer = Writer::new(WriteSink(Vec::new()), batch.schema(), options).expect("a writer");
    writer.write(&batch).expect("written");
    let file = writer.into_inner().expect("closed").1;
    let footer = Reader::new(Bytes::from(file.clone())).expect("a file");
    let mut meta = footer.metadata().index().to_file_meta_data().expect("metadata");
    let len = u32::from_le_bytes(file[file.len() - 8..file.len() - 4].try_into().expect("four"));
    let mut body = file[..file.len() - 8 - len as usize].to_vec();
    let (low, high) = (0i32.to_le_bytes().to_vec(), 1i32.to_le_bytes().to_vec());
    let chunk = &mut meta.row_groups[0].columns[1];
    let of_chunk = chunk.meta_data.as_mut().expect("metadata");
    // Counts of levels would contradict the lie.
    of_chunk.size_statistics = None;
    let statistics = of_chunk.statistics.as_mut().expect("statistics");
    match lie {
        Lie::RowGroup => {
            statistics.min_value = Some(low);
            statistics.max_value = Some(high);
            statistics.null_count = Some(0);
        }
        Lie::Pages => {
            let start = chunk.column_index_offset.expect("an index") as usize;
            let bytes = &file[start..][..chunk.column_index_length.expect("an index") as usize];
            let mut index = ColumnIndex::from_thrift(bytes).expect("an index").0;
            let pages = index.null_pages.len();
            assert!(pages > 1, "{pages} pages");
            index.min_values = vec![low; pages];
            index.max_values = vec![high; pages];
            index.null_counts = Some(vec![0; pages]);
            index.definition_level_histograms = None;
            *statistics = Default::default();
            let bytes = index.to_thrift();
            chunk.column_index_offset = Some(body.len() as i64);
            chunk.column_index_length = Some(bytes.len() as i32);
            body.extend(bytes);
        }
    }
    close(body, &meta.to_thrift()).into()
}

/// The ids of the rows that a read returns.
fn ids(reader: Reader) -> Vec<i32> {
    let batches = reader.batches().expect("batches").map(|batch| batch.expect("a batch"));
    let ids = |batch: RecordBatch| {
        let id = batch.column_by_name("id").expect("id").as_primitive::<Int32Type>().clone();
        id.values().to_vec()
    };
    batches.flat_map(ids).collect()
}

fn truth(filter: &str) -> Vec<i32> {
    let passes = |row: &i32| match (filter, value(*row)) {
        ("value <= 1" | "value <= 1 and other = 7", value) => value.is_some_and(|value| value <= 1),
        ("value is not null", value) => value.is_some(),
        ("value > 100", value) => value.is_some_and(|value| value > 100),
        ("value is null", value) => value.is_none(),
        _ => panic!("{filter}: not known here"),
    };
    (0..ROWS).filter(passes).collect()
}

const TRUE_OF_ALL: [&str; 3] = ["value <= 1", "value is not null", "value <= 1 and other = 7"];
const TRUE_OF_NONE: [&str; 2] = ["value > 100", "value is null"];

fn reader(lie: Lie, filter: &str, threads: usize) -> Reader {
    let reader = Reader::new(lying_file(lie)).expect("a file");
    let mut options = reader.read_options().clone();
    options.page_index = PageIndexUse::Always;
    reader.options(options).threads(threads).filter(filter.parse::<Predicate>().expect("a filter"))
}

#[test]
fn rows_that_fail_the_filter_are_not_given_where_a_column_of_it_is_read() {
    for lie in [Lie::RowGroup, Lie::Pages] {
        for (filter, threads) in TRUE_OF_ALL.iter().flat_map(|filter| [(filter, 1), (filter, 2)]) {
            let all = reader(lie, filter, threads);
            assert!(ids(all) == truth(filter), "{lie:?}, {filter}");
            let two = reader(lie, filter, threads).project(["value", "id"]).expect("columns");
            assert!(ids(two) == truth(filter), "{lie:?}, {filter}");
        }
        // One of the two columns is enough.
        let filter = "value <= 1 and other = 7";
        let one = reader(lie, filter, 1).project(["other", "id"]).expect("columns");
        assert!(ids(one) == truth(filter), "{lie:?}");
        // And with a limit, which claims could fill.
        let limited = reader(lie, "value <= 1", 2).offset(10).limit(5);
        assert_eq!(ids(limited), truth("value <= 1")[10..15], "{lie:?}");
    }
}

#[test]
fn nothing_but_values_is_believed_where_it_is_asked() {
    for lie in [Lie::RowGroup, Lie::Pages] {
        for filter in TRUE_OF_ALL.into_iter().chain(TRUE_OF_NONE) {
            let only_ids = || reader(lie, filter, 2).project(["id"]).expect("a column");
            let truth = truth(filter);
            assert!(ids(only_ids()) != truth, "{lie:?}, {filter}: the file does not lie");
            let verified = ids(only_ids().verify_statistics(true));
            assert!(verified == truth, "{lie:?}, {filter}: {} rows", verified.len());
            let all = reader(lie, filter, 1).verify_statistics(true);
            assert_eq!(all.count().expect("a count"), truth.len() as u64, "{lie:?}, {filter}");
            assert!(ids(all) == truth, "{lie:?}, {filter}");
        }
    }
}
