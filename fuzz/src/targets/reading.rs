//! Reads files in several ways, within a limit, and compares what they give.

use arrow_array::{Array, RecordBatch};
use arrow_select::concat::concat_batches;
use bytes::Bytes;
use marquetry::engine::rows::value_bytes;
use marquetry::engine::switch_kernel;
use marquetry::{Batches, Limits, Reader, Result};
use marquetry_testkit::{cells, heap};

/// The memory that a read is given.
const MEMORY: u64 = 64 << 20;
/// Bytes that it may take beyond.
const SLACK: usize = 16 << 20;
/// Rows after which no more batches are asked for: a page may stand for any number of rows.
const MAX_ROWS: usize = 1 << 16;
/// Bytes of their values after which no more are asked for: the memory of a batch that was returned
/// is the caller's.
const MAX_BYTES: u64 = 8 << 20;

/// The kernels of `docs/kernels.md`.
const KERNELS: [&str; 15] = [
    "unpack",
    "pack",
    "gather",
    "compact",
    "expand",
    "prefix_sum",
    "transpose",
    "extremes",
    "deltas",
    "decimals",
    "lengths",
    "join",
    "levels",
    "bits",
    "snappy",
];

#[must_use]
pub fn limits() -> Limits {
    let mut limits = Limits::default();
    limits.memory_bytes = MEMORY;
    limits
}

/// Opens a file, to be read on one thread.
///
/// # Errors
/// Those of the library.
pub fn open(file: impl Into<Bytes>) -> Result<Reader> {
    Ok(Reader::with_limits(file.into(), limits())?.threads(1))
}

/// The result of a read.
#[derive(Debug)]
pub struct Rows {
    pub batches: Vec<RecordBatch>,
    /// Whether there were no more.
    pub is_all: bool,
}

impl Rows {
    #[must_use]
    pub fn count(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }
}

/// Reads all rows, and validates them.
///
/// # Errors
/// Those of the library.
///
/// # Panics
/// If what is read is no valid Arrow array.
pub fn rows(reader: &Reader) -> Result<Rows> {
    rows_of(&mut reader.batches()?)
}

/// As [`rows`], of batches that can be asked for more than their rows.
///
/// # Errors
/// Those of the library.
///
/// # Panics
/// If what is read is no valid Arrow array.
pub fn rows_of(batches: &mut Batches) -> Result<Rows> {
    let mut rows = Rows { batches: Vec::new(), is_all: true };
    let (mut count, mut bytes) = (0, 0);
    while let Some(batch) = batches.next_batch()? {
        assert_valid(&batch);
        count += batch.num_rows();
        let columns = batch.columns().iter().map(|column| value_bytes(column));
        bytes = columns.fold(bytes, u64::saturating_add);
        rows.batches.push(batch);
        if count > MAX_ROWS || bytes > MAX_BYTES {
            rows.is_all = false;
            break;
        }
    }
    Ok(rows)
}

/// # Panics
/// If a batch is none that Arrow allows.
pub fn assert_valid(batch: &RecordBatch) {
    for (column, field) in batch.columns().iter().zip(batch.schema().fields()) {
        assert_eq!(column.len(), batch.num_rows(), "{field}");
        assert_eq!(column.data_type(), field.data_type(), "{field}");
        assert!(field.is_nullable() || column.logical_null_count() == 0, "nulls in {field}");
        if let Err(error) = column.to_data().validate_full() {
            panic!("{field}: {error}");
        }
    }
}

/// The rows of all batches in one.
#[must_use]
pub fn one(batches: &[RecordBatch]) -> Option<RecordBatch> {
    let schema = batches.first()?.schema();
    // Offsets of 32 bits may be too few.
    concat_batches(&schema, batches).ok()
}

/// # Panics
/// If the rows of two reads differ.
pub fn assert_same(a: &[RecordBatch], b: &[RecordBatch], what: &str) {
    let count = |batches: &[RecordBatch]| batches.iter().map(RecordBatch::num_rows).sum::<usize>();
    assert_eq!(count(a), count(b), "{what}: rows");
    let (Some(a), Some(b)) = (one(a), one(b)) else { return };
    assert_eq!(a.schema(), b.schema(), "{what}");
    if a == b {
        return;
    }
    for ((a, b), field) in a.columns().iter().zip(b.columns()).zip(a.schema().fields()) {
        assert!(a == b || cells::cells(a) == cells::cells(b), "{what}: {field} differs");
    }
}

/// # Panics
/// If two reads of a whole file do not agree.
pub fn assert_agree(a: &Result<Rows>, b: &Result<Rows>, what: &str) {
    match (a, b) {
        (Ok(a), Ok(b)) if a.is_all && b.is_all => assert_same(&a.batches, &b.batches, what),
        (Ok(_), Ok(_)) => {}
        // Both are refused; where, may depend on the order of the work.
        (Err(_), Err(_)) => {}
        // Where a read ends early depends on the size of its batches.
        (Ok(rows), Err(_)) | (Err(_), Ok(rows)) if !rows.is_all => {}
        (Ok(rows), Err(error)) => panic!("{what}: {error}, after {} rows", rows.count()),
        (Err(error), Ok(rows)) => panic!("{what}: {} rows, without {error}", rows.count()),
    }
}

/// Runs with all kernels held to `level`: `best`, `scalar` or `avx2`. `None` if the build cannot
/// switch them.
pub fn with_kernels<T>(level: &str, run: impl FnOnce() -> T) -> Option<T> {
    if !KERNELS.iter().all(|kernel| switch_kernel(kernel, level)) {
        return None;
    }
    let out = run();
    KERNELS.iter().for_each(|kernel| assert!(switch_kernel(kernel, "best")));
    Some(out)
}

/// # Panics
/// If the work takes more heap than its limit, some more, and `input` bytes several times.
pub fn within_memory<T>(input: usize, run: impl FnOnce() -> T) -> T {
    let before = heap::start();
    let out = run();
    let peak = heap::peak().saturating_sub(before);
    let max = usize::try_from(MEMORY).unwrap_or(usize::MAX) + SLACK + 4 * input;
    assert!(peak <= max, "{} MiB of heap", peak >> 20);
    out
}
