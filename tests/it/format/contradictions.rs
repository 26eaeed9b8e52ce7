//! Tests contradictions of a file or a source: they are refused with their place, or read where
//! there is no doubt; and every read ends.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use marquetry::Spec;
use marquetry::arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use marquetry::format::*;
use marquetry::io::{Source, WriteSink};
use marquetry::{
    Compression, Error, ErrorKind, LimitKind, Predicate, Reader, Result, WriteOptions, Writer, col,
    not,
};
use serde_json::json;

use crate::support::encode::{delta, rle};
use crate::support::*;

const LEVELS: ErrorKind = ErrorKind::Malformed(Spec::Levels);

/// optional group v (LIST) { repeated group list { optional group element (LIST) { repeated group
/// list { required int32 element } } } }
fn lists_of_lists() -> Vec<SchemaElement> {
    let list = |name, repetition| {
        filled!(SchemaElement {
            logical_type: Some(LogicalType::List),
            ..group(name, repetition, 1)
        })
    };
    vec![
        list("v", FieldRepetitionType::Optional),
        group("list", FieldRepetitionType::Repeated, 1),
        list("element", FieldRepetitionType::Optional),
        group("list", FieldRepetitionType::Repeated, 1),
        required("element", Type::Int32),
    ]
}

/// A page of version 1 with these repetition and definition levels; the values count from 0.
fn leveled(entries: &[(u32, u32)], max_rep: u32, max_def: u32) -> Vec<u8> {
    let rep: Vec<u32> = entries.iter().map(|(rep, _)| *rep).collect();
    let def: Vec<u32> = entries.iter().map(|(_, def)| *def).collect();
    let values: Vec<i32> = (0..).take(def.iter().filter(|def| **def == max_def).count()).collect();
    let levels = |levels: &[u32], max| if max > 0 { levels_v1(levels, max) } else { Vec::new() };
    let body = [levels(&rep, max_rep), levels(&def, max_def), ints(&values)].concat();
    v1(entries.len(), Encoding::Plain, &body)
}

fn rows_of(entries: &[(u32, u32)]) -> i64 {
    entries.iter().filter(|(rep, _)| *rep == 0).count() as i64
}

#[test]
fn an_element_below_a_list_that_is_null_or_empty_is_malformed() {
    let file_of = |pages: &[&[(u32, u32)]]| {
        let entries: Vec<(u32, u32)> = pages.concat();
        let pages: Vec<Vec<u8>> = pages.iter().map(|page| leveled(page, 2, 4)).collect();
        let chunk = Chunk::new(Type::Int32, entries.len(), &pages);
        Bytes::from(file(lists_of_lists(), rows_of(&entries), vec![chunk]))
    };
    let sound: [&[(u32, u32)]; 3] = [
        &[(0, 4), (2, 4), (1, 3), (1, 2), (1, 4)],
        &[(0, 0), (0, 1), (0, 2), (1, 4)],
        &[(0, 3), (1, 4), (2, 4)],
    ];
    for entries in sound {
        assert!(read(file_of(&[entries])).is_ok(), "{entries:?}");
        for cut in 1..entries.len() {
            let (a, b) = entries.split_at(cut);
            assert!(read(file_of(&[a, b])).is_ok(), "{entries:?} cut at {cut}");
        }
    }
    let contradictions: [&[(u32, u32)]; 8] = [
        // Levels that continue a list that is null or empty: the outer list, its element, the inner
        // list.
        &[(0, 0), (1, 4)],
        &[(0, 1), (1, 4)],
        &[(0, 0), (2, 4)],
        &[(0, 1), (2, 4)],
        &[(0, 2), (2, 4)],
        &[(0, 3), (2, 4)],
        // An element that is none.
        &[(0, 4), (2, 3)],
        &[(0, 4), (1, 1)],
    ];
    for entries in contradictions {
        let (a, b) = entries.split_at(1);
        for file in [file_of(&[entries]), file_of(&[a, b]), file_of(&[&[(0, 4)], entries])] {
            for threads in [1, 2] {
                for offset in [0, 1] {
                    let reader = Reader::new(file.clone()).unwrap().threads(threads);
                    let found = read_with(reader.offset(offset));
                    // A read that begins after all rows looks at nothing.
                    if reader_rows(&file) > offset {
                        let error = found.expect_err(&format!("{entries:?}"));
                        assert_eq!(error.kind(), LEVELS, "{entries:?}: {error}");
                        assert!(error.to_string().contains("column v.list.element"), "{error}");
                    }
                }
            }
        }
    }
}

fn reader_rows(file: &Bytes) -> u64 {
    Reader::new(file.clone()).unwrap().file_rows().unwrap()
}

/// The kind of error that two columns side by side in a group are read with.
fn siblings(
    schema: Vec<SchemaElement>,
    a: (&[(u32, u32)], u32, u32),
    b: (&[(u32, u32)], u32, u32),
) -> Option<ErrorKind> {
    let chunk = |(entries, max_rep, max_def): (&[(u32, u32)], u32, u32)| {
        Chunk::new(Type::Int32, entries.len(), &[leveled(entries, max_rep, max_def)])
    };
    read(file(schema, rows_of(a.0), vec![chunk(a), chunk(b)])).err().map(|error| error.kind())
}

#[test]
fn lists_whose_columns_have_other_lengths_are_malformed() {
    let schema = || {
        vec![
            filled!(SchemaElement {
                logical_type: Some(LogicalType::List),
                ..group("v", FieldRepetitionType::Required, 1)
            }),
            group("list", FieldRepetitionType::Repeated, 1),
            group("element", FieldRepetitionType::Required, 2),
            required("a", Type::Int32),
            optional("b", Type::Int32),
        ]
    };
    let a: &[(u32, u32)] = &[(0, 1), (0, 1), (1, 1)];
    assert_eq!(siblings(schema(), (a, 1, 1), (&[(0, 2), (0, 1), (1, 2)], 1, 2)), None);
    // As many elements, in other lists; and a list that is empty in one only.
    for b in [&[(0, 2), (1, 2), (0, 2)][..], &[(0, 0), (0, 2), (1, 2)]] {
        assert_eq!(siblings(schema(), (a, 1, 1), (b, 1, 2)), Some(LEVELS), "{b:?}");
    }
}

#[test]
fn a_struct_that_is_null_in_one_of_its_columns_only_is_malformed() {
    let schema = || {
        vec![
            group("v", FieldRepetitionType::Optional, 2),
            required("a", Type::Int32),
            optional("b", Type::Int32),
        ]
    };
    let a: &[(u32, u32)] = &[(0, 1), (0, 0), (0, 1)];
    assert_eq!(siblings(schema(), (a, 0, 1), (&[(0, 1), (0, 0), (0, 2)], 0, 2)), None);
    for b in [&[(0, 1), (0, 1), (0, 2)][..], &[(0, 0), (0, 0), (0, 2)]] {
        assert_eq!(siblings(schema(), (a, 0, 1), (b, 0, 2)), Some(LEVELS), "{b:?}");
        let (a, b) = ((b, 0, 2), (a, 0, 1));
        let mut schema = schema();
        schema.swap(1, 2);
        assert_eq!(siblings(schema, a, b), Some(LEVELS));
    }
}

#[test]
fn a_struct_and_a_list_in_it_agree_on_where_it_is_null() {
    let schema = || {
        vec![
            group("v", FieldRepetitionType::Optional, 2),
            required("a", Type::Int32),
            leaf("b", Type::Int32, FieldRepetitionType::Repeated),
        ]
    };
    let a: &[(u32, u32)] = &[(0, 1), (0, 0), (0, 1)];
    let b: &[(u32, u32)] = &[(0, 2), (1, 2), (0, 0), (0, 1)];
    assert_eq!(siblings(schema(), (a, 0, 1), (b, 1, 2)), None);
    let b: &[(u32, u32)] = &[(0, 0), (0, 2), (1, 2), (0, 1)];
    assert_eq!(siblings(schema(), (a, 0, 1), (b, 1, 2)), Some(LEVELS));
}

/// A file of one row group that states `rows` rows, all null, with statistics that prove it.
fn nulls(rows: i64, page_slots: i32) -> Bytes {
    let mut run = Vec::new();
    let mut header = u64::from(page_slots.unsigned_abs()) << 1;
    while header >= 0x80 {
        run.push(header as u8 | 0x80);
        header >>= 7;
    }
    run.extend([header as u8, 0]);
    let body = [&(run.len() as u32).to_le_bytes()[..], &run].concat();
    let mut chunk = Chunk::new(Type::Int32, 0, &[v1(page_slots as usize, Encoding::Plain, &body)]);
    chunk.meta.num_values = rows;
    let null_count = Some(rows);
    chunk.meta.statistics = Some(filled!(Statistics { null_count }));
    file(vec![optional("v", Type::Int32)], rows, vec![chunk]).into()
}

#[test]
fn rows_that_no_file_can_hold_are_malformed_and_a_page_of_one_run_is_not() {
    for rows in [i64::MAX, 1 << 50] {
        let file = nulls(rows, 1000);
        for predicate in [Predicate::TRUE, col("v").is_null()] {
            let reader = Reader::new(file.clone()).unwrap().filter(predicate);
            let error = reader.count().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Malformed(Spec::Metadata("RowGroup")), "{error}");
        }
        assert!(is_malformed(file));
    }
    let many = 100_000_000;
    let reader = Reader::new(nulls(many, many as i32)).unwrap();
    let counted = |reader: Reader| reader.count().unwrap();
    assert_eq!(counted(reader.clone()), 100_000_000);
    assert_eq!(counted(reader.clone().filter(Predicate::TRUE)), 100_000_000);
    let nulls = reader.filter(col("v").is_null());
    assert_eq!(counted(nulls.clone()), 100_000_000);
    assert_eq!(counted(nulls.clone().offset(3).limit(100)), 100);
    assert_eq!(counted(nulls.clone().offset(99_999_990).limit(100)), 10);
    assert_eq!(counted(nulls.clone().filter(not(col("v").is_null()))), 0);
    assert_eq!(counted(nulls.limit(0)), 0);
}

#[test]
fn what_is_proven_of_some_row_groups_counts_with_what_is_found_in_others() {
    let batch = |range: Range<i64>| {
        let values: ArrayRef = Arc::new(Int64Array::from_iter_values(range));
        RecordBatch::try_from_iter([("v", values)]).unwrap()
    };
    let options = WriteOptions::new().with_row_group_rows(1000);
    let mut writer = Writer::new(WriteSink(Vec::new()), batch(0..1).schema(), options).unwrap();
    writer.write(&batch(0..5000)).unwrap();
    let file = Bytes::from(writer.into_inner().unwrap().1);
    let reader = Reader::new(file).unwrap().filter(col("v").gt_eq(1500));
    for (offset, limit, expected) in [
        (0, None, 3500),
        (100, None, 3400),
        (100, Some(10), 10),
        (3490, Some(100), 10),
        (4000, None, 0),
        (0, Some(3400), 3400),
    ] {
        let mut reader = reader.clone().offset(offset);
        if let Some(limit) = limit {
            reader = reader.limit(limit);
        }
        assert_eq!(reader.count().unwrap(), expected, "offset {offset} limit {limit:?}");
    }
}

/// Rows of several row groups, with strings.
fn table() -> Bytes {
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..3000));
    let texts = StringArray::from_iter_values((0..3000).map(|i| format!("text {i}")));
    let batch = RecordBatch::try_from_iter([("n", numbers), ("t", Arc::new(texts) as ArrayRef)]);
    let batch = batch.unwrap();
    let options = WriteOptions::new().with_row_group_rows(500);
    let mut writer = Writer::new(WriteSink(Vec::new()), batch.schema(), options).unwrap();
    writer.write(&batch).unwrap();
    Bytes::from(writer.into_inner().unwrap().1)
}

#[test]
fn a_chunk_that_claims_more_values_than_rows_makes_no_batches_of_one_row() {
    let values: Vec<i32> = (0..1000).collect();
    let page = v1(values.len(), Encoding::Plain, &ints(&values));
    let mut chunk = Chunk::new(Type::Int32, values.len(), &[page]);
    for claimed in [1_000_000_000, i64::MAX] {
        chunk.meta.num_values = claimed;
        let file = file(vec![required("v", Type::Int32)], 1000, vec![chunk.clone()]);
        // All rows go into one batch, which ends with the row group: missing rows are noticed
        // before any row is returned.
        let first = Reader::new(Bytes::from(file)).unwrap().batches().unwrap().next_batch();
        assert_eq!(first.unwrap_err().kind(), ErrorKind::Malformed(Spec::Pages), "{claimed}");
    }
}

/// Limits of memory, the small ones all.
fn limits() -> impl Iterator<Item = u64> {
    (0..=64).chain((65..=4096).step_by(13)).chain((12..24).flat_map(|i| [1 << i, 3 << i]))
}

fn is_whole_or_refused(found: &Result<usize>, limit: u64) {
    match found {
        Ok(rows) => assert_eq!(*rows, 3000, "{limit} bytes"),
        Err(e) => {
            assert_eq!(e.kind(), ErrorKind::Limit(LimitKind::Memory), "{limit} bytes: {e}");
            assert!(limit < 8 << 20, "{limit} bytes: {e}");
        }
    }
}

#[test]
fn under_every_limit_of_memory_rows_are_all_there_or_an_error_is() {
    let file = table();
    for limit in limits() {
        for threads in [1, 2] {
            for filter in [None, Some(col("n").gt_eq(0)), Some(col("t").like("text%"))] {
                let mut reader = Reader::new(file.clone()).unwrap().threads(threads).memory(limit);
                if let Some(filter) = filter {
                    reader = reader.filter(filter);
                }
                let found = read_with(reader);
                let rows = found.map(|it| it.iter().map(RecordBatch::num_rows).sum());
                is_whole_or_refused(&rows, limit);
            }
        }
    }
}

#[cfg(feature = "object_store")]
#[test]
fn under_every_limit_of_memory_a_stream_gives_all_rows_or_an_error() {
    use futures_util::TryStreamExt;
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let file = table();
    for limit in limits() {
        for threads in [1, 2] {
            let found = runtime.block_on(async {
                let reader = marquetry::AsyncReader::open_async(file.clone()).await?;
                let batches: Vec<RecordBatch> =
                    reader.threads(threads).memory(limit).stream()?.try_collect().await?;
                Ok(batches.iter().map(RecordBatch::num_rows).sum())
            });
            is_whole_or_refused(&found, limit);
        }
    }
}

/// Returns more bytes than it is asked for, or fewer, once it is told to.
struct Wrong {
    file: Bytes,
    lies: AtomicBool,
    given: fn(usize) -> usize,
    is_local: bool,
}

impl Source for Wrong {
    fn len(&self) -> Result<u64> {
        Ok(self.file.len() as u64)
    }

    fn read(&self, range: Range<u64>) -> Result<Bytes> {
        let (start, end) = (range.start as usize, range.end as usize);
        if !self.lies.load(Ordering::Relaxed) {
            return Ok(self.file.slice(start..end));
        }
        Ok(vec![0; (self.given)(end - start)].into())
    }

    fn is_local(&self) -> bool {
        self.is_local
    }
}

#[test]
fn a_source_that_gives_more_or_less_than_it_is_asked_for_is_an_error() {
    // Large enough to be read in pieces.
    let mut rng = fastrand::Rng::with_seed(1);
    let values: ArrayRef =
        Arc::new(Int64Array::from_iter_values((0..200_000).map(|_| rng.i64(..))));
    let batch = RecordBatch::try_from_iter([("v", values)]).unwrap();
    let options = WriteOptions::new().with_compression(Compression::Uncompressed);
    let mut writer = Writer::new(WriteSink(Vec::new()), batch.schema(), options).unwrap();
    writer.write(&batch).unwrap();
    let file = Bytes::from(writer.into_inner().unwrap().1);
    let wrongs: [fn(usize) -> usize; 5] = [|_| 0, |_| 1, |n| n - 1, |n| n + 1, |n| 2 * n];
    for given in wrongs {
        for is_local in [false, true] {
            let wrong = |lies: bool| {
                let lies = AtomicBool::new(lies);
                Arc::new(Wrong { file: file.clone(), lies, given, is_local })
            };
            let opened = Reader::new(wrong(true));
            assert_eq!(opened.err().map(|e| e.kind()), Some(ErrorKind::Io));
            for threads in [1, 2] {
                for filter in [None, Some(col("v").gt(0))] {
                    let in_pieces = is_local && filter.is_none();
                    let source = wrong(false);
                    let mut reader = Reader::new(source.clone()).unwrap().threads(threads);
                    if let Some(filter) = filter {
                        reader = reader.filter(filter);
                    }
                    source.lies.store(true, Ordering::Relaxed);
                    let error: Error = read_with(reader.clone()).unwrap_err();
                    assert_eq!(error.kind(), ErrorKind::Io, "{error}");
                    if in_pieces {
                        let at = error.at();
                        assert_eq!(at.row_group, Some(0), "{error}");
                        assert_eq!(at.column.as_deref(), Some("v"), "{error}");
                        assert!(at.page.is_some() && at.offset.is_some(), "{error}");
                    }
                    assert_eq!(reader.page_index(0, 0).unwrap_err().kind(), ErrorKind::Io);
                    assert_eq!(reader.take(&[5]).unwrap_err().kind(), ErrorKind::Io);
                }
            }
        }
    }
}

/// `not ((… or v > 0) and v < 5)`: a level more each time.
fn nested(levels: usize) -> Predicate {
    (0..levels).fold(col("v").eq(1), |predicate, i| match i % 3 {
        0 => predicate.or(col("v").gt(0)),
        1 => predicate.and(col("v").lt(5)),
        _ => not(predicate),
    })
}

fn with_stack<T: Send>(bytes: usize, work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(bytes);
        thread.spawn_scoped(scope, work).unwrap().join().unwrap()
    })
}

#[test]
fn a_predicate_nested_a_hundred_thousand_deep_takes_no_stack() {
    with_stack(192 << 10, || {
        let deep = nested(100_000);
        let again = deep.clone();
        assert_eq!(deep, again);
        let text = deep.to_string();
        assert!(text.len() > 800_000 && format!("{deep:?}").contains(&text));
        drop(again);
    });
    let text = nested(100_000).to_string();
    with_stack(1 << 20, || {
        assert_eq!(Predicate::parse(&text).unwrap_err().kind(), ErrorKind::Usage);
        let parens = format!("{}v = 1{}", "(".repeat(100_000), ")".repeat(100_000));
        assert_eq!(Predicate::parse(&parens).unwrap_err().kind(), ErrorKind::Usage);
        let nots = format!("{}v = 1", "not ".repeat(100_000));
        assert_eq!(Predicate::parse(&nots).unwrap_err().kind(), ErrorKind::Usage);
        let chunk = Chunk::new(Type::Int32, 5, &[v1(5, Encoding::Plain, &ints(&[1, 2, 3, 4, 9]))]);
        let file = file(vec![required("v", Type::Int32)], 5, vec![chunk]);
        let reader = Reader::new(Bytes::from(file)).unwrap().threads(1);
        let error = read_with(reader.clone().filter(nested(100_000))).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage, "{error}");
        // As deep as may be, within the same stack.
        let deepest = (0..=512)
            .rev()
            .find(|levels| read_with(reader.clone().filter(nested(*levels))).is_ok());
        assert!(deepest > Some(500), "{deepest:?}");
    });
}

#[test]
fn a_chunk_whose_size_leaves_out_the_header_of_its_dictionary_is_read() {
    let indices = [&[2][..], &rle(&[1, 0, 2, 1], 2)].concat();
    let page = dictionary(3, &texts(&["abc", "defg", "h"]));
    let header_len = (page.len() - texts(&["abc", "defg", "h"]).len()) as i64;
    let mut chunk = Chunk::new(Type::ByteArray, 4, &[v1(4, Encoding::PlainDictionary, &indices)])
        .with_dictionary(page);
    // The offset of the dictionary is not written either.
    chunk.says_dictionary = false;
    chunk.meta.total_compressed_size -= header_len;
    let schema = || vec![required("a", Type::ByteArray), required("b", Type::ByteArray)];
    let by = |writer: &str| {
        let chunks = vec![chunk.clone(), chunk.clone()];
        file_with(schema(), vec![(4, chunks.clone()), (4, chunks)], |meta| {
            meta.created_by = Some(writer.into());
        })
    };
    let values = [hex(b"defg"), hex(b"abc"), hex(b"h"), hex(b"defg")];
    let expected: Vec<_> =
        values.iter().cycle().take(8).map(|value| json!([value, value])).collect();
    for writer in ["parquet-mr", "parquet-mr version 1.2.8 (build x)"] {
        assert_eq!(rows(&read(by(writer)).expect(writer)), expected, "{writer}");
    }
    for writer in ["parquet-mr version 1.2.9 (build x)", "other", ""] {
        assert!(is_malformed(by(writer)), "{writer}");
    }
}

#[test]
fn differences_of_int32_in_33_bits_keep_their_low_32() {
    // DuckDB 1.0 to 2.0 with PARQUET_VERSION v2 writes INT32 so.
    let mut rng = fastrand::Rng::with_seed(33);
    let mut values: Vec<i32> = (0..5000).map(|_| rng.i32(..)).collect();
    values[..5].copy_from_slice(&[i32::MAX, i32::MIN, i32::MAX, 0, i32::MAX]);
    let wide: Vec<i64> = values.iter().map(|value| i64::from(*value)).collect();
    let pages: Vec<Vec<u8>> = wide
        .chunks(1700)
        .map(|wide| v1(wide.len(), Encoding::DeltaBinaryPacked, &delta(wide)))
        .collect();
    let chunk = Chunk::new(Type::Int32, values.len(), &pages);
    let file = Bytes::from(file(vec![required("v", Type::Int32)], 5000, vec![chunk]));
    for (offset, batch_rows) in [(0, 5000), (1, 77), (1711, 1000), (4999, 1)] {
        for threads in [1, 2] {
            let reader = Reader::new(file.clone()).unwrap().threads(threads);
            let found = read_with(reader.offset(offset as u64).batch_rows(batch_rows)).unwrap();
            let expected: Vec<_> = values[offset..].iter().map(|value| json!(value)).collect();
            assert_eq!(column(&found), expected, "from {offset}");
        }
    }
    let reader = Reader::new(file).unwrap().filter(col("v").gt(i32::MAX - 1));
    assert_eq!(column(&read_with(reader).unwrap()), vec![json!(i32::MAX); 3]);
}
