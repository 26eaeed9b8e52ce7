//! Faults of sources below all drivers: the rows that come are the right ones, in order; after an
//! error none come; and a reader whose source is well again gives all.

use std::ops::Range;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use bytes::Bytes;
use fastrand::Rng;
use futures_util::StreamExt;
use marquetry::io::Source;
use marquetry::read::Latency;
use marquetry::rewrite::{Rewrite, Salvage};
use marquetry::{AsyncReader, ErrorKind, Limits, Reader, Result, col};

use super::{GROUP, PLAIN, ROWS, SEALED, keys};
use crate::support::faults::{
    Answer, FAULT, FaultSink, FaultSource, Markers, Plan, SinkFault, poll_some,
};
use crate::support::generate::every_case;
use crate::support::mutants::paths::block_on;
use crate::support::numbered::{names, rows, write_file};

static REACHED: Markers = Markers::new();

/// The events that must happen in some run.
const MARKERS: [&str; 23] = [
    "opening fails",
    "an error",
    "an error after some rows",
    "all rows, though some answers were not right",
    "all rows, and all answers late",
    "an answer is short",
    "an answer is long",
    "an answer is changed",
    "the file is truncated while it is read",
    "what was changed is found by its tag",
    "a filter",
    "rows by number",
    "a count",
    "parts",
    "cancelled before a batch",
    "cancelled between batches",
    "not cancelled",
    "read again after a fault",
    "what was changed is kept, and found again",
    "rewritten",
    "not rewritten, and no file",
    "salvaged in part",
    "salvaged whole",
];

/// A source with the faults of a seed; whether its file is encrypted.
fn source(rng: &mut Rng) -> (FaultSource, bool) {
    let is_sealed = rng.bool();
    let file = if is_sealed { &SEALED } else { &PLAIN };
    let mut kinds = vec![Answer::Error, Answer::Short, Answer::Long, Answer::Truncated];
    if is_sealed {
        // Nothing but a tag finds every change.
        kinds.push(Answer::Changed);
    }
    if rng.bool() {
        kinds = vec![kinds[rng.usize(..kinds.len())]];
    }
    let mut plan = Plan::new(rng.u64(..), [0, 3, 8, 20, 60][rng.usize(..5)], &kinds);
    plan.late = [0, 1, 4][rng.usize(..3)];
    let mut source = FaultSource::new(Bytes::clone(file), plan);
    // Every range by itself, or many in one.
    source.latency = [Latency::LOCAL, Latency::STORE][rng.usize(..2)];
    (source, is_sealed)
}

/// Rows that are read, and the numbers that they must have.
fn query(rng: &mut Rng) -> (Option<Range<i64>>, u64, u64) {
    let filter = rng.bool().then(|| {
        let from = rng.i64(0..ROWS);
        REACHED.reach("a filter");
        from..rng.i64(from..=ROWS)
    });
    (filter, rng.u64(..30), rng.u64(1..ROWS as u64))
}

fn expected(query: &(Option<Range<i64>>, u64, u64)) -> Vec<i64> {
    let all = query.0.clone().unwrap_or(0..ROWS);
    all.skip(query.1 as usize).take(query.2 as usize).collect()
}

fn set<S>(reader: Reader<S>, query: &(Option<Range<i64>>, u64, u64), threads: usize) -> Reader<S> {
    let reader = reader.offset(query.1).limit(query.2).batch_rows(25).threads(threads);
    match &query.0 {
        Some(range) => reader.filter(col("n").gt_eq(range.start).and(col("n").lt(range.end))),
        None => reader,
    }
}

/// Appends the numbers of a batch, which must be right.
fn take(batch: &RecordBatch, expected: &[i64], found: &mut Vec<i64>) {
    batch.columns().iter().for_each(|column| column.to_data().validate_full().expect("valid"));
    let numbers = batch.column(0).as_primitive::<Int64Type>().values();
    let right = &expected[found.len()..found.len() + numbers.len()];
    assert_eq!(numbers, right, "after {} rows", found.len());
    for (i, number) in numbers.iter().enumerate() {
        let row = rows(*number, 1);
        assert_eq!(&batch.column(1).slice(i, 1), row.column(1), "row {number}");
    }
    found.extend_from_slice(numbers);
}

/// Reads all, blocking.
fn read(reader: &Reader, expected: &[i64], found: &mut Vec<i64>) -> Result<()> {
    let mut batches = reader.batches()?;
    loop {
        match batches.next_batch() {
            Ok(Some(batch)) => take(&batch, expected, found),
            Ok(None) => return Ok(()),
            Err(error) => {
                assert!(!matches!(batches.next_batch(), Ok(Some(_))), "rows after {error}");
                return Err(error);
            }
        }
    }
}

async fn read_async(reader: &AsyncReader, expected: &[i64], found: &mut Vec<i64>) -> Result<()> {
    let mut batches = reader.stream()?;
    while let Some(batch) = batches.next().await {
        match batch {
            Ok(batch) => take(&batch, expected, found),
            Err(error) => {
                assert!(batches.next().await.is_none(), "something comes after {error}");
                return Err(error);
            }
        }
    }
    Ok(())
}

/// Notes how a read ended, and checks it.
fn account(done: Result<()>, source: &FaultSource, found: &[i64], expected: &[i64]) {
    let plan = source.plan();
    for (answer, name) in [
        (Answer::Short, "an answer is short"),
        (Answer::Long, "an answer is long"),
        (Answer::Changed, "an answer is changed"),
        (Answer::Truncated, "the file is truncated while it is read"),
    ] {
        REACHED.reach_if(plan.given.contains(&answer), name);
    }
    match done {
        Ok(()) => {
            assert_eq!(found, expected, "without an error");
            REACHED
                .reach_if(!plan.given.is_empty(), "all rows, though some answers were not right");
            REACHED
                .reach_if(plan.given.is_empty() && plan.late > 0, "all rows, and all answers late");
        }
        Err(error) => {
            assert!(!plan.given.is_empty(), "{error}, of a source without faults");
            REACHED.reach("an error");
            REACHED.reach_if(!found.is_empty(), "an error after some rows");
            match error.kind() {
                ErrorKind::Crypto => REACHED.reach("what was changed is found by its tag"),
                ErrorKind::Io => {}
                kind => assert!(plan.given.contains(&Answer::Changed), "{kind:?}: {error}"),
            }
        }
    }
}

/// Notes how a read ended that followed the others, when the source was well again.
fn account_again(done: Result<()>, source: &FaultSource, found: &[i64], expected: &[i64]) {
    let given = &source.plan().given;
    match done {
        Ok(()) => {
            assert_eq!(found, expected, "without an error");
            REACHED.reach_if(!given.is_empty(), "read again after a fault");
        }
        // Bytes of the end of the file that came when it was opened, and are kept.
        Err(error) => {
            assert!(given.contains(&Answer::Changed), "{error}, of a source without faults");
            REACHED.reach("what was changed is kept, and found again");
        }
    }
}

fn open(source: &FaultSource, is_sealed: bool) -> Result<Reader> {
    let limits = Limits::default();
    match is_sealed {
        true => Reader::with_keys(source.clone(), limits, &keys()),
        false => Reader::with_limits(source.clone(), limits),
    }
}

async fn open_async(source: &FaultSource, is_sealed: bool) -> Result<AsyncReader> {
    let limits = Limits::default();
    match is_sealed {
        true => AsyncReader::open_async_encrypted(source.clone(), limits, &keys()).await,
        false => AsyncReader::open_async_within(source.clone(), limits).await,
    }
}

/// Blocking, on one thread or two: all rows, rows by number, a count, parts.
fn blocking(rng: &mut Rng, threads: usize) {
    let (source, is_sealed) = source(rng);
    let Ok(mut reader) = open(&source, is_sealed) else {
        assert!(!source.plan().given.is_empty(), "it opens");
        return REACHED.reach("opening fails");
    };
    if rng.bool() {
        // A broken index is a report, never a reason not to read.
        _ = reader.load_page_indexes();
    }
    let query = query(rng);
    let (expected, mut found) = (expected(&query), Vec::new());
    let reader = set(reader, &query, threads);
    let done = match rng.u8(..6) {
        0 => {
            REACHED.reach("a count");
            reader.count().map(|count| {
                assert_eq!(count, expected.len() as u64);
                found.clone_from(&expected);
            })
        }
        1 => {
            REACHED.reach("rows by number");
            let wanted: Vec<u64> = (0..5).map(|_| rng.u64(..ROWS as u64)).collect();
            let numbers: Vec<i64> = wanted.iter().map(|row| *row as i64).collect();
            let taken = reader.take(&wanted);
            taken.map(|batch| take(&batch, &numbers, &mut Vec::new())).map(|()| {
                found.clone_from(&expected);
            })
        }
        // Rows that pass a filter are not counted before they are read.
        2 if query.0.is_none() => {
            REACHED.reach("parts");
            reader.parts(3).and_then(|parts| {
                parts.iter().try_for_each(|part| read(part, &expected, &mut found))
            })
        }
        _ => read(&reader, &expected, &mut found),
    };
    account(done, &source, &found, &expected);
    source.heal();
    let mut again = Vec::new();
    let done = read(&reader, &expected, &mut again);
    account_again(done, &source, &again, &expected);
}

/// Asynchronous, to the end.
fn asynchronous(rng: &mut Rng, threads: usize) {
    let (source, is_sealed) = source(rng);
    let Ok(reader) = block_on(open_async(&source, is_sealed)) else {
        assert!(!source.plan().given.is_empty(), "it opens");
        return REACHED.reach("opening fails");
    };
    let query = query(rng);
    let (expected, mut found) = (expected(&query), Vec::new());
    let reader = set(reader, &query, threads);
    let done = block_on(read_async(&reader, &expected, &mut found));
    account(done, &source, &found, &expected);
    source.heal();
    let mut again = Vec::new();
    let done = block_on(read_async(&reader, &expected, &mut again));
    account_again(done, &source, &again, &expected);
}

/// Asynchronous, dropped at some await; the source is let go, and the reader still works.
fn cancelled(rng: &mut Rng, threads: usize) {
    let (source, is_sealed) = source(rng);
    let polls = rng.u32(..40);
    let query = query(rng);
    let (expected, mut found) = (expected(&query), Vec::new());
    let Some(Ok(reader)) = poll_some(polls, open_async(&source, is_sealed)) else {
        return REACHED.reach("cancelled before a batch");
    };
    let reader = set(reader, &query, threads);
    let done = poll_some(rng.u32(..60), read_async(&reader, &expected, &mut found));
    match done {
        None if found.is_empty() => REACHED.reach("cancelled before a batch"),
        None => REACHED.reach("cancelled between batches"),
        Some(done) => {
            REACHED.reach("not cancelled");
            account(done, &source, &found, &expected);
        }
    }
    source.heal();
    let mut again = Vec::new();
    let done = block_on(read_async(&reader, &expected, &mut again));
    account_again(done, &source, &again, &expected);
}

/// A rewrite, into a sink that may fail too.
fn rewritten(rng: &mut Rng) {
    let (mut source, _) = source(rng);
    source.file = Bytes::clone(&PLAIN);
    // A change of bytes that are copied is not looked for.
    source.plan().kinds.retain(|kind| *kind != Answer::Changed);
    source.latency = Latency::LOCAL;
    let fault = if rng.bool() { SinkFault::None } else { SinkFault::Once(rng.usize(..6)) };
    let sink = FaultSink::new(fault);
    let Ok(reader) = open(&source, false) else { return REACHED.reach("opening fails") };
    let mut rewrite = Rewrite::new([reader]);
    if rng.bool() {
        rewrite = rewrite.encode("*");
    }
    let done = rewrite.run(sink.clone());
    let written = sink.written();
    match (done, &written.published) {
        (Ok(_), Some(file)) => {
            let reader = Reader::new(Bytes::from(file.clone())).expect("a file");
            let mut found = Vec::new();
            let all: Vec<i64> = (0..ROWS).collect();
            read(&reader, &all, &mut found).expect("rows");
            assert_eq!(found, all);
            REACHED.reach("rewritten");
        }
        (Err(_), None) => REACHED.reach("not rewritten, and no file"),
        (done, published) => panic!("{done:?}, but {:?} bytes", published.as_ref().map(Vec::len)),
    }
}

/// Salvages a file without its end.
fn salvaged(rng: &mut Rng) {
    let (mut source, _) = source(rng);
    source.file = PLAIN.slice(..rng.usize(PLAIN.len() / 4..=PLAIN.len()));
    source.plan().kinds.retain(|kind| *kind != Answer::Changed);
    let schema = Reader::new(Bytes::clone(&PLAIN)).expect("a file");
    let salvage = Salvage::new(source).schema_of(&schema).expect("a schema");
    let Ok(found) = salvage.row_group_rows(GROUP).find() else { return };
    let recovered = found.account().rows_recovered();
    assert!(recovered <= ROWS as u64, "{recovered} rows");
    let sink = FaultSink::new(SinkFault::None);
    let done = found.write(sink.clone());
    let Some(file) = sink.written().published.clone() else {
        return assert!(done.is_err(), "no file, and no error");
    };
    let reader = Reader::new(Bytes::from(file)).expect("a file");
    let mut last = -1;
    for batch in reader.batches().expect("rows") {
        let batch = batch.expect("rows");
        for (i, number) in batch.column(0).as_primitive::<Int64Type>().values().iter().enumerate() {
            assert!(*number > last && *number < ROWS, "{number} after {last}");
            assert_eq!(&batch.column(1).slice(i, 1), rows(*number, 1).column(1), "row {number}");
            last = *number;
        }
    }
    let name = if recovered == ROWS as u64 { "salvaged whole" } else { "salvaged in part" };
    REACHED.reach_if(recovered > 0, name);
}

#[test]
fn whatever_a_source_answers_no_row_is_wrong() {
    let cases = every_case(4000, |seed| {
        let rng = &mut Rng::with_seed(seed);
        match seed % 8 {
            0 => blocking(rng, 1),
            1 => blocking(rng, 2),
            2 => asynchronous(rng, 1),
            3 => asynchronous(rng, 2),
            4 => cancelled(rng, 1),
            5 => cancelled(rng, 2),
            6 => rewritten(rng),
            _ => salvaged(rng),
        }
    });
    if cases >= 4000 {
        REACHED.assert_reached(&MARKERS);
    }
}

#[test]
fn a_file_that_is_appended_to_is_the_old_one_or_the_new_one() {
    static REACHED: Markers = Markers::new();
    let cases = every_case(100, |seed| {
        let rng = &mut Rng::with_seed(seed);
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("all.parquet");
        write_file(&path, 0, ROWS).expect("a file");
        let old = Bytes::from(std::fs::read(&path).expect("a file"));
        let kinds = [Answer::Error, Answer::Short, Answer::Long, Answer::Truncated];
        let source = |file: &Bytes, rng: &mut Rng| {
            let plan = Plan::new(rng.u64(..), [0, 3, 10, 30][rng.usize(..4)], &kinds);
            FaultSource::new(file.clone(), plan)
        };
        let (first, second) = (source(&old, rng), source(&old, rng));
        let (Ok(first), Ok(second)) = (open(&first, false), open(&second, false)) else { return };
        let done = Rewrite::new([first, second]).append_to(&path);
        let found = Bytes::from(std::fs::read(&path).expect("a file"));
        match done {
            Ok(done) => {
                assert_eq!(done.rows, 2 * ROWS as u64);
                let reader = Reader::open(&path).expect("a file");
                let all: Vec<i64> = (0..ROWS).chain(0..ROWS).collect();
                let mut numbers = Vec::new();
                read(&reader, &all, &mut numbers).expect("rows");
                assert_eq!(numbers, all);
                REACHED.reach("the new file");
            }
            Err(_) => {
                assert!(found == old, "neither the old file nor the new one");
                REACHED.reach("the old file");
            }
        }
        assert_eq!(names(folder.path()), ["all.parquet"]);
    });
    if cases >= 100 {
        REACHED.assert_reached(&["the new file", "the old file"]);
    }
}

#[test]
fn an_error_of_a_source_is_told_with_its_place() {
    let source = FaultSource::new(Bytes::clone(&PLAIN), Plan::new(1, 0, &[Answer::Error]));
    let reader = open(&source, false).expect("a file").threads(1);
    source.plan().faults = 1;
    let error = read(&reader, &[], &mut Vec::new()).expect_err("all answers are errors");
    assert_eq!(error.kind(), ErrorKind::Io);
    assert!(error.to_string().contains(FAULT), "{error}");
    assert_eq!(error.at().row_group, Some(0));
    assert!(Source::len(&source).is_err());
}
