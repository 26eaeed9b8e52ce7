//! Reads a mutant in many ways, and checks each: no panic, no invalid array, no more time and
//! memory than allowed.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use arrow_array::{Array, RecordBatch};
use bytes::Bytes;
use fastrand::Rng;
use futures_util::TryStreamExt;
use marquetry::arrow_array;
use marquetry::arrow_schema::{DataType, Field, Fields, Schema};
use marquetry::format::Thrift;
use marquetry::io::WriteSink;
use marquetry::read::VirtualColumn;
use marquetry::schema::{Dictionaries, MatchBy};
use marquetry::{
    AsyncReader, Error, Limits, Predicate, Reader, Result, RowSelection, WriteOptions, Writer, any,
    col, not,
};

use super::mutate;

/// The findings of a way of reading.
#[derive(Debug)]
pub struct Finding {
    pub path: &'static str,
    pub what: String,
}

/// Counts the heap, where the program can.
#[derive(Clone, Copy)]
pub struct Heap {
    /// Begins to count, and returns how much there is.
    pub start: fn() -> usize,
    /// The most that there was since.
    pub peak: fn() -> usize,
}

/// The memory that a read is given.
pub const MEMORY: u64 = 64 << 20;
/// Bytes that it may take beyond.
const SLACK: usize = 16 << 20;
/// How long a path may keep the processors, in a build without optimisation.
const MAX_TIME: Duration = Duration::from_secs(4);
/// Rows and time after which no more batches are asked for: a page may stand for any number of
/// rows.
const MAX_ROWS: usize = 1 << 20;
const ENOUGH_TIME: Duration = Duration::from_millis(500);
/// Rows and bytes that are kept to be compared: they count as memory that the path takes.
const MAX_KEPT_ROWS: usize = 1 << 14;
const MAX_KEPT_BYTES: usize = 4 << 20;

type Path = fn(&Bytes, &mut Rng) -> Result<Check>;

/// The observations of a path, if it ended well.
#[derive(Default)]
struct Check {
    invalid: Option<String>,
    /// The batches, where all were read.
    rows: Option<Vec<RecordBatch>>,
}

/// All ways of reading, by name.
const PATHS: [(&str, Path); 17] = [
    ("plain", |file, _| drain(open(file)?)),
    ("threads", |file, _| drain(open(file)?.threads(2))),
    ("small batches", |file, rng| drain(open(file)?.batch_rows(rng.usize(1..50)))),
    ("views", |file, _| drain(open(file)?.views(true))),
    ("dictionaries", |file, _| drain(open(file)?.dictionaries(Dictionaries::Strings))),
    ("target", target),
    ("filter", filter),
    ("filter on threads", |file, rng| {
        let reader = open(file)?;
        let predicate = predicate(&reader, rng)?;
        drain(reader.filter(predicate).threads(2).views(rng.bool()))
    }),
    ("count", |file, rng| {
        let reader = open(file)?;
        let predicate = predicate(&reader, rng)?;
        reader.filter(predicate).count().map(|_| Check::default())
    }),
    ("take", take),
    ("selection", selection),
    ("limit", |file, rng| {
        let reader = open(file)?.offset(rng.u64(..100)).limit(rng.u64(..100));
        let name: Arc<str> = "row number".into();
        drain(reader.virtual_column(VirtualColumn::RowNumber { name }))
    }),
    ("metadata", metadata),
    ("entries of leaves", entries),
    ("async", stream),
    ("write", write),
    ("summary", summary),
];

/// Where the last panic was.
static PANIC: Mutex<String> = Mutex::new(String::new());

/// Notes where panics are, in place of printing them.
pub fn note_panics() {
    std::panic::set_hook(Box::new(|panic| {
        if let (Ok(mut noted), Some(place)) = (PANIC.lock(), panic.location()) {
            *noted = place.to_string();
        }
    }));
}

/// Reads a file in every way but those of the names `skip`, with the numbers of `rng`.
pub fn read_every_way(
    file: &Bytes,
    rng: &mut Rng,
    heap: Option<Heap>,
    skip: &[&str],
) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut plain: Option<Vec<RecordBatch>> = None;
    for (path, read) in PATHS.into_iter().filter(|(path, _)| !skip.contains(path)) {
        let mut find = |what: String| findings.push(Finding { path, what });
        let before = heap.map_or(0, |heap| (heap.start)());
        let start = cpu_time();
        let done = catch_unwind(AssertUnwindSafe(|| read(file, rng)));
        let (time, peak) = (cpu_time().saturating_sub(start), heap.map_or(0, |heap| (heap.peak)()));
        // Memory that is kept of the first path is not that of this one.
        let peak = peak.saturating_sub(before);
        if time > MAX_TIME {
            find(format!("takes {time:.1?}"));
        }
        if peak > usize::try_from(MEMORY).unwrap_or(usize::MAX) + SLACK + 4 * file.len() {
            find(format!("takes {} MiB of heap", peak >> 20));
        }
        match done {
            Err(panic) => {
                let text = panic.downcast_ref::<String>().map(String::as_str);
                let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
                let place = PANIC.lock().map(|place| place.clone()).unwrap_or_default();
                find(format!("panics at {place}: {}", text.unwrap_or("?")));
            }
            Ok(Err(error)) => _ = error.to_string(),
            Ok(Ok(check)) => {
                if let Some(text) = check.invalid {
                    find(format!("gives invalid arrays: {text}"));
                }
                match (path, check.rows, &plain) {
                    ("plain", rows, _) => plain = rows,
                    ("threads", Some(rows), Some(plain)) if !have_same_rows(&rows, plain) => {
                        find("gives other rows than one thread".into());
                    }
                    ("small batches" | "async", Some(rows), Some(plain))
                        if count(&rows) != count(plain) =>
                    {
                        find(format!("gives {} rows, not {}", count(&rows), count(plain)));
                    }
                    _ => {}
                }
            }
        }
    }
    findings
}

/// Time that the processors have spent on this program, so that others cost nothing; where that is
/// not known, the time.
fn cpu_time() -> Duration {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    let ticks = std::fs::read_to_string("/proc/self/stat").ok().and_then(|stat| {
        // The name may hold anything; the 12th and 13th field after it are hundredths of seconds.
        let (_, fields) = stat.rsplit_once(')')?;
        let ticks = fields.split_whitespace().skip(11).take(2).map(str::parse::<u64>);
        ticks.sum::<std::result::Result<u64, _>>().ok()
    });
    ticks.map_or_else(|| START.elapsed(), |ticks| Duration::from_millis(10 * ticks))
}

fn count(batches: &[RecordBatch]) -> usize {
    batches.iter().map(RecordBatch::num_rows).sum()
}

/// Whether the rows are the same, wherever the batches are cut: where a file states wrong sizes,
/// the rows of a batch follow from those decoded before it, which are fewer with threads.
fn have_same_rows(a: &[RecordBatch], b: &[RecordBatch]) -> bool {
    if count(a) != count(b) {
        return false;
    }
    let (mut a, mut b) = (a.iter().cloned(), b.iter().cloned());
    let (mut left, mut right) = (a.next(), b.next());
    while let (Some(x), Some(y)) = (left, right) {
        let rows = x.num_rows().min(y.num_rows());
        let (head, other) = (x.slice(0, rows), y.slice(0, rows));
        // NaN differs from itself; the text form does not.
        if head != other && format!("{head:?}") != format!("{other:?}") {
            return false;
        }
        let rest = |batch: &RecordBatch| {
            let left = batch.num_rows() - rows;
            (left > 0).then(|| batch.slice(rows, left))
        };
        left = rest(&x).or_else(|| a.next());
        right = rest(&y).or_else(|| b.next());
    }
    true
}

fn limits() -> Limits {
    let mut limits = Limits::default();
    limits.memory_bytes = MEMORY;
    limits.nesting = usize::MAX;
    limits
}

fn open(file: &Bytes) -> Result<Reader> {
    Ok(Reader::with_limits(file.clone(), limits())?.threads(1))
}

/// Looks at every batch.
fn drain(reader: Reader) -> Result<Check> {
    let mut batches = reader.batches()?;
    let mut seen = Seen::default();
    while !seen.enough()
        && let Some(batch) = batches.next_batch()?
    {
        seen.look_at(batch);
    }
    Ok(seen.check())
}

struct Seen {
    start: Instant,
    rows: usize,
    bytes: usize,
    /// Whether the batches so far are all kept.
    keeps: bool,
    ended_early: bool,
    invalid: Option<String>,
    batches: Vec<RecordBatch>,
}

impl Default for Seen {
    fn default() -> Self {
        let (start, invalid, batches) = (Instant::now(), None, Vec::new());
        Self { start, rows: 0, bytes: 0, keeps: true, ended_early: false, invalid, batches }
    }
}

impl Seen {
    fn enough(&mut self) -> bool {
        self.ended_early = self.rows > MAX_ROWS || self.start.elapsed() > ENOUGH_TIME;
        self.ended_early
    }

    fn look_at(&mut self, batch: RecordBatch) {
        self.invalid = self.invalid.take().or_else(|| fault(&batch));
        self.rows += batch.num_rows();
        // Bytes that batches share count again and again: fewer are kept then.
        self.bytes = self.bytes.saturating_add(batch.get_array_memory_size());
        if self.rows <= MAX_KEPT_ROWS && self.bytes <= MAX_KEPT_BYTES {
            self.batches.push(batch);
        } else {
            self.keeps = false;
            self.batches.clear();
        }
    }

    fn check(self) -> Check {
        let whole = !self.ended_early && self.keeps;
        Check { invalid: self.invalid, rows: whole.then_some(self.batches) }
    }
}

fn fault(batch: &RecordBatch) -> Option<String> {
    batch.columns().iter().zip(batch.schema().fields()).find_map(|(column, field)| {
        if column.len() != batch.num_rows() {
            return Some(format!("{} values in {} rows", column.len(), batch.num_rows()));
        }
        if column.data_type() != field.data_type() {
            return Some(format!("{} in a column of {}", column.data_type(), field.data_type()));
        }
        if !field.is_nullable() && column.logical_null_count() > 0 {
            return Some(format!("nulls in {}", field.name()));
        }
        column.to_data().validate_full().err().map(|e| e.to_string())
    })
}

/// Other types for a schema: wider, of views, of dictionaries.
fn retyped(field: &Field, rng: &mut Rng) -> Field {
    use DataType as D;
    let mut inner = |field: &Arc<Field>| Arc::new(retyped(field, rng));
    let data_type = match field.data_type() {
        D::Struct(fields) => D::Struct(fields.iter().map(inner).collect()),
        D::List(item) | D::LargeList(item) => {
            let item = inner(item);
            if rng.bool() { D::LargeList(item) } else { D::List(item) }
        }
        data_type if rng.bool() => data_type.clone(),
        D::Utf8 if rng.bool() => D::Dictionary(Box::new(D::Int32), Box::new(D::Utf8)),
        D::Utf8 if rng.bool() => D::Utf8View,
        D::Utf8 => D::LargeUtf8,
        D::Binary => D::BinaryView,
        D::Boolean => D::Dictionary(Box::new(D::Int32), Box::new(D::Boolean)),
        D::Int8 | D::Int16 | D::UInt8 | D::UInt16 => D::Int32,
        D::Int32 if rng.bool() => D::Dictionary(Box::new(D::Int16), Box::new(D::Int32)),
        D::Int32 | D::UInt32 | D::Date32 => D::Int64,
        D::Float32 => D::Float64,
        D::FixedSizeBinary(_) if rng.bool() => D::Binary,
        D::FixedSizeBinary(_) => D::Dictionary(Box::new(D::Int32), Box::new(D::Binary)),
        other => other.clone(),
    };
    field.clone().with_data_type(data_type).with_nullable(true)
}

fn target(file: &Bytes, rng: &mut Rng) -> Result<Check> {
    let reader = open(file)?;
    let schema = reader.schema()?;
    let mut fields: Vec<Field> = schema.fields().iter().map(|f| retyped(f, rng)).collect();
    if rng.u8(..4) == 0 {
        fields.push(Field::new("added", DataType::Utf8View, true));
    }
    let target = Arc::new(Schema::new(Fields::from(fields)));
    drain(reader.target(target, MatchBy::Name)?)
}

/// A test of some column.
///
/// # Errors
/// Those of the library.
pub fn predicate(reader: &Reader, rng: &mut Rng) -> Result<Predicate> {
    let schema = reader.metadata().schema();
    let leaves = schema.leaves_len();
    if leaves == 0 {
        return Ok(Predicate::TRUE);
    }
    let node = schema.leaf_node(rng.usize(..leaves))?;
    let path = node.path().dotted();
    let arrow = reader.schema()?;
    let top = arrow.fields().iter().find(|f| path.split('.').next() == Some(f.name().as_str()));
    let column = || match top.map(|field| field.data_type()) {
        Some(DataType::List(_) | DataType::Map(..)) => any(path.as_str()),
        _ => col(path.as_str()),
    };
    let number = rng.i64(-20..200);
    let test = match (rng.u8(..8), node.element().r#type) {
        (0, _) => column().is_null(),
        (1, _) => column().is_not_null(),
        (2, _) => Predicate::TRUE,
        (_, Some(marquetry::format::Type::Boolean)) => column().eq(rng.bool()),
        (3, Some(marquetry::format::Type::ByteArray)) => column().starts_with("a"),
        (4, Some(marquetry::format::Type::ByteArray)) => column().like("%1%"),
        (_, Some(marquetry::format::Type::ByteArray)) => {
            let text: String = (0..rng.usize(..4)).map(|_| rng.alphanumeric()).collect();
            column().gt_eq(text)
        }
        (5, _) => column().is_in([number, number + 1, 0]),
        (6, _) => column().between(number, number + rng.i64(0..100)),
        (7, _) => column().eq(number),
        _ => column().lt(number),
    };
    Ok(if rng.bool() { test } else { not(test) })
}

fn filter(file: &Bytes, rng: &mut Rng) -> Result<Check> {
    let mut reader = open(file)?;
    if rng.bool() {
        // A broken index is a report, never a reason not to read.
        _ = reader.load_page_indexes();
    }
    let first = predicate(&reader, rng)?;
    let second = predicate(&reader, rng)?;
    let predicate = match rng.u8(..4) {
        0 => first.and(second),
        1 => first.or(second),
        _ => first,
    };
    let reader = match rng.u8(..3) {
        0 => reader.dictionaries(Dictionaries::Strings),
        1 => reader.views(true),
        _ => reader,
    };
    drain(reader.filter(predicate))
}

fn take(file: &Bytes, rng: &mut Rng) -> Result<Check> {
    let reader = open(file)?.views(rng.bool());
    let reader = if rng.bool() { reader.dictionaries(Dictionaries::Strings) } else { reader };
    let rows = reader.file_rows()?.clamp(1, 1 << 40);
    let rows: Vec<u64> = (0..rng.usize(..30)).map(|_| rng.u64(..rows)).collect();
    let batch = reader.take(&rows)?;
    let found = batch.num_rows();
    let wrong = (found != rows.len()).then(|| format!("{found} rows for {}", rows.len()));
    Ok(Check { invalid: wrong.or_else(|| fault(&batch)), rows: None })
}

fn selection(file: &Bytes, rng: &mut Rng) -> Result<Check> {
    let mut reader = open(file)?;
    if rng.bool() {
        _ = reader.load_page_indexes();
    }
    let rows = reader.file_rows()?;
    let (mut at, mut ranges) = (0, Vec::new());
    while at < rows && ranges.len() < 20 {
        let start = at + rng.u64(..40);
        at = start + rng.u64(1..20);
        ranges.push(start.min(rows)..at.min(rows));
    }
    let selection = RowSelection::from_ranges(rows, ranges)?;
    let wanted = selection.count();
    let check = drain(reader.select(selection)?.dictionaries(Dictionaries::Strings))?;
    let found = check.rows.as_deref().map(count);
    let wrong = found.filter(|found| *found as u64 != wanted);
    let wrong = wrong.map(|found| format!("{found} rows for {wanted} selected"));
    Ok(Check { invalid: check.invalid.or(wrong), rows: None })
}

fn metadata(file: &Bytes, _: &mut Rng) -> Result<Check> {
    let mut reader = open(file)?;
    reader.metadata().index().to_file_meta_data()?;
    for row_group in 0..reader.metadata().row_groups() {
        for leaf in 0..reader.metadata().schema().leaves_len() {
            _ = reader.page_index(row_group, leaf);
        }
    }
    _ = reader.metadata().schema().to_string();
    _ = reader.explain();
    _ = reader.count();
    _ = reader.load_page_indexes();
    let bytes = Bytes::from(reader.metadata().to_bytes());
    _ = marquetry::Metadata::from_bytes(&bytes, &Limits::default());
    Ok(Check::default())
}

/// Levels and values without assembly; an error of one chunk does not keep the others from being
/// read.
fn entries(file: &Bytes, rng: &mut Rng) -> Result<Check> {
    let reader = open(file)?.batch_rows(*rng.choice(&[7, 1_000, usize::MAX]).expect("three"));
    let schema = reader.metadata().schema();
    let (start, mut seen, mut result) = (Instant::now(), 0, Ok(()));
    for row_group in 0..reader.metadata().row_groups() {
        for leaf in 0..schema.leaves_len() {
            let max_def = schema.leaf(leaf)?.max_def;
            let chunk = reader.leaf_entries(row_group, leaf);
            let read = || -> Result<Option<String>> {
                for entries in chunk? {
                    let entries = entries?;
                    seen += entries.rows;
                    let values = match max_def {
                        0 => entries.rows,
                        max => entries.definition_levels.iter().filter(|l| **l == max).count(),
                    };
                    if values != entries.values.len() {
                        let found = entries.values.len();
                        return Ok(Some(format!("{found} values for {values} entries")));
                    }
                    if seen > MAX_ROWS || start.elapsed() > ENOUGH_TIME {
                        break;
                    }
                }
                Ok(None)
            };
            match read() {
                Ok(None) => {}
                Ok(invalid) => return Ok(Check { invalid, rows: None }),
                Err(error) => result = Err(error),
            }
            if seen > MAX_ROWS || start.elapsed() > ENOUGH_TIME {
                return Ok(Check::default());
            }
        }
    }
    result.map(|()| Check::default())
}

fn stream(file: &Bytes, _: &mut Rng) -> Result<Check> {
    block_on(async {
        let reader = AsyncReader::open_async_within(file.clone(), limits()).await?.threads(1);
        let mut batches = reader.stream()?;
        let mut seen = Seen::default();
        while !seen.enough()
            && let Some(batch) = batches.try_next().await?
        {
            seen.look_at(batch);
        }
        Ok(seen.check())
    })
}

/// Writes the rows that were read, and reads them: few bytes, because the writer's memory is not
/// part of the reader's limit.
fn write(file: &Bytes, rng: &mut Rng) -> Result<Check> {
    let reader = open(file)?.batch_bytes(MAX_KEPT_BYTES);
    let mut batches = reader.batches()?;
    let mut written = Vec::new();
    let options = WriteOptions::new().with_dictionary(rng.bool());
    let mut writer = Writer::new(WriteSink(&mut written), batches.schema(), options)?;
    let (mut rows, mut bytes, start) = (0, 0, Instant::now());
    while rows < 10_000
        && bytes < MAX_KEPT_BYTES
        && start.elapsed() < ENOUGH_TIME
        && let Some(batch) = batches.next_batch()?
    {
        rows += batch.num_rows();
        bytes = bytes.saturating_add(batch.get_array_memory_size());
        writer.write(&batch)?;
    }
    writer.finish()?;
    let check = open(&written.into()).and_then(drain);
    let invalid = match check {
        Err(error) => Some(format!("what was written again: {error}")),
        Ok(check) => {
            let found = check.rows.as_deref().map(count);
            let wrong = found.filter(|found| *found != rows);
            let wrong = wrong.map(|found| format!("{found} rows of {rows} written"));
            check.invalid.or(wrong)
        }
    };
    Ok(Check { invalid, rows: None })
}

/// Row groups of files that a summary is made of here: making one takes memory for all of their
/// metadata as structs, which is not tested here.
const MAX_SUMMARISED: usize = 5_000;

/// As two files of a summary, which is changed too.
fn summary(file: &Bytes, rng: &mut Rng) -> Result<Check> {
    let metadata = open(file)?.metadata().index().to_file_meta_data()?;
    if metadata.row_groups.len() > MAX_SUMMARISED {
        return Ok(Check::default());
    }
    let folder = Folder::new(&["a.parquet", "b/c.parquet"], file);
    let files = [("a.parquet", &metadata), ("b/c.parquet", &metadata)];
    let joined = Bytes::from(marquetry::write::summary(files)?);
    let mut joined = open(&joined)?.metadata().index().to_file_meta_data()?;
    for _ in 0..rng.usize(..3) {
        mutate::external(&mut joined, rng);
    }
    let footer = joined.to_thrift();
    let len = u32::try_from(footer.len()).expect("a small footer").to_le_bytes();
    let bytes = Bytes::from([b"PAR1", &footer[..], &len, b"PAR1"].concat());
    let mut reader = open(&bytes)?.files_below(&folder.0)?;
    match rng.u8(..4) {
        0 => {
            let predicate = predicate(&reader, rng)?;
            drain(reader.filter(predicate))
        }
        1 => {
            _ = reader.load_page_indexes();
            drain(reader.threads(2))
        }
        _ => drain(reader),
    }
}

/// A folder with copies of a file.
struct Folder(std::path::PathBuf);

impl Folder {
    fn new(names: &[&str], file: &[u8]) -> Self {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("marquetry-mutant-{}-{number}", std::process::id());
        let folder = Self(std::env::temp_dir().join(name));
        for name in names {
            let path = folder.0.join(name);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("a scratch folder");
            std::fs::write(path, file).expect("a scratch file");
        }
        folder
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Runs a future to its end.
///
/// # Errors
/// Those of the future.
pub fn block_on<T>(future: impl Future<Output = Result<T, Error>>) -> Result<T> {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(done) => return done,
            Poll::Pending => thread::park(),
        }
    }
}
