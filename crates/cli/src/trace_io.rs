//! `--trace-io`: what was read, what it is, and how long it took.
//!
//! Reads of local files are recorded where the reader makes them, and those of URLs where requests
//! are made: bytes that are there already cost none.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use marquetry::format::ColumnChunk;
use marquetry::io::Source;
use marquetry::read::{Footer, Latency};
use serde::Serialize;

use crate::args::{Format, Global};
use crate::escape::{escape, escape_json};
use crate::urls::Request;

/// Whether reads are recorded.
static IS_ON: AtomicBool = AtomicBool::new(false);
static READS: Mutex<Reads> = Mutex::new(Reads { made: Vec::new(), known: Vec::new() });

/// The reads so far.
#[derive(Default)]
struct Reads {
    made: Vec<Request>,
    /// The lengths and footers of files.
    known: Vec<(String, u64, Footer)>,
}

/// Footers that are read for the report alone.
const MAX_FOOTERS: usize = 8;

/// Reads that are shown one by one; the totals are of all.
const MAX_SHOWN: usize = 1000;

/// Records from now on, if the flag is given.
pub(crate) fn begin(global: &Global) {
    IS_ON.store(global.trace_io, Ordering::Relaxed);
}

/// Records a read.
pub(crate) fn record(request: &Request) {
    if IS_ON.load(Ordering::Relaxed) {
        READS.lock().unwrap_or_else(PoisonError::into_inner).made.push(request.clone());
    }
}

/// Keeps the footer of a file, which tells what its bytes are.
pub(crate) fn know(name: &str, file_len: u64, footer: &Footer) {
    if !IS_ON.load(Ordering::Relaxed) {
        return;
    }
    let mut reads = READS.lock().unwrap_or_else(PoisonError::into_inner);
    if reads.known.iter().all(|(known, ..)| known != name) {
        reads.known.push((name.to_owned(), file_len, footer.clone()));
    }
}

/// The same source, whose reads are recorded if the flag is given.
pub(crate) fn traced(name: &str, source: impl Source + 'static) -> Arc<dyn Source> {
    match IS_ON.load(Ordering::Relaxed) {
        true => Arc::new(Traced { name: name.into(), source }),
        false => Arc::new(source),
    }
}

/// A source whose reads are recorded.
struct Traced<S> {
    name: Arc<str>,
    source: S,
}

impl<S> Traced<S> {
    fn timed<T>(&self, range: &Range<u64>, read: impl FnOnce() -> T) -> T {
        let begun = Instant::now();
        let done = read();
        record(&Request::new(self.name.clone(), range.clone(), begun.elapsed()));
        done
    }
}

impl<S: Source> Source for Traced<S> {
    fn len(&self) -> marquetry::Result<u64> {
        self.source.len()
    }

    fn read(&self, range: Range<u64>) -> marquetry::Result<Bytes> {
        self.timed(&range.clone(), || self.source.read(range))
    }

    fn in_memory(&self) -> bool {
        self.source.in_memory()
    }

    fn is_local(&self) -> bool {
        self.source.is_local()
    }

    fn latency(&self) -> Latency {
        self.source.latency()
    }

    fn loaded(&self, range: &Range<u64>) -> Option<Bytes> {
        self.source.loaded(range)
    }

    fn read_into(&self, range: Range<u64>, out: &mut Vec<u8>) -> marquetry::Result<()> {
        self.timed(&range.clone(), || self.source.read_into(range, out))
    }
}

/// A read, as a record.
#[derive(Serialize)]
struct ReadRecord {
    file: String,
    offset: u64,
    bytes: u64,
    what: String,
    milliseconds: f64,
}

/// Reads and their sum.
#[derive(Serialize)]
struct TraceReport {
    trace_io: Vec<ReadRecord>,
    left_out: usize,
    requests: usize,
    bytes: u64,
    milliseconds: f64,
}

/// Prints what was read since [`begin`], on standard error. `footer` gives the lengths and footers
/// of files whose footers the command did not keep.
pub(crate) fn report(global: &Global, footer: impl Fn(&str) -> Option<(u64, Footer)>) {
    if !IS_ON.swap(false, Ordering::Relaxed) {
        return;
    }
    let mut reads = std::mem::take(&mut *READS.lock().unwrap_or_else(PoisonError::into_inner));
    let mut names: Vec<&str> = reads.made.iter().map(|read| &*read.name).collect();
    names.sort_unstable();
    names.dedup();
    names.retain(|name| reads.known.iter().all(|(known, ..)| known != name));
    let found = names.into_iter().take(MAX_FOOTERS);
    let found = found.filter_map(|name| footer(name).map(|(len, of)| (name.to_owned(), len, of)));
    let found: Vec<_> = found.collect();
    reads.known.extend(found);
    let regions: BTreeMap<&str, Vec<TracedRegion>> =
        reads.known.iter().map(|(name, len, footer)| (&**name, regions(*len, footer))).collect();
    let records = reads.made.iter().take(MAX_SHOWN).map(|read| ReadRecord {
        file: read.name.to_string(),
        offset: read.range.start,
        bytes: read.range.end - read.range.start,
        what: regions.get(&*read.name).map_or_else(String::new, |of| what(of, &read.range)),
        milliseconds: milliseconds(read.elapsed),
    });
    let report = TraceReport {
        trace_io: records.collect(),
        left_out: reads.made.len().saturating_sub(MAX_SHOWN),
        requests: reads.made.len(),
        bytes: reads.made.iter().map(|read| read.range.end - read.range.start).sum(),
        milliseconds: milliseconds(reads.made.iter().map(|read| read.elapsed).sum()),
    };
    if matches!(global.format, Some(Format::Json | Format::Jsonl)) {
        let json = serde_json::to_string(&report).unwrap_or_default();
        eprintln!("{}", escape_json(&json));
    } else {
        report.print();
    }
}

impl TraceReport {
    fn print(&self) {
        let mut file = "";
        for read in &self.trace_io {
            if read.file != file {
                file = &read.file;
                eprintln!("{}\n{:>14} {:>11} {:>9}  what", escape(file), "offset", "bytes", "ms");
            }
            let ReadRecord { offset, bytes, what, milliseconds, .. } = read;
            eprintln!("{offset:>14} {bytes:>11} {milliseconds:>9.1}  {}", escape(what));
        }
        if self.left_out > 0 {
            eprintln!("{:>14} more", self.left_out);
        }
        let Self { requests, bytes, milliseconds, .. } = self;
        let plural = if *requests == 1 { "" } else { "s" };
        eprintln!("{requests} request{plural}, {bytes} bytes, {milliseconds:.1} ms of waiting");
    }
}

fn milliseconds(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e4).round() / 10.0
}

/// A part of a file, and its meaning.
struct TracedRegion {
    range: Range<u64>,
    what: RegionKind,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
enum RegionKind {
    Footer,
    PageIndex,
    BloomFilter(Arc<str>),
    Column(usize, Arc<str>),
}

fn regions(file_len: u64, footer: &Footer) -> Vec<TracedRegion> {
    let mut regions = Vec::new();
    let mut last = 0;
    let schema = footer.schema();
    let name = |leaf| schema.leaf_node(leaf).map_or(String::new(), |node| node.path().dotted());
    // Chunks share them: a path may be long.
    let names: Vec<Arc<str>> = (0..schema.leaves_len()).map(|leaf| name(leaf).into()).collect();
    for row_group in 0..footer.row_groups() {
        for (leaf, name) in names.iter().enumerate() {
            let Ok(chunk) = footer.column_chunk(row_group, leaf) else { continue };
            for (range, what) in parts(row_group, name, &chunk) {
                last = last.max(range.end);
                regions.push(TracedRegion { range, what });
            }
        }
    }
    // With the magic number, the length and whatever else is there.
    regions.push(TracedRegion { range: last.min(file_len)..file_len, what: RegionKind::Footer });
    regions
}

/// The parts of a file that belong to a column chunk.
fn parts(row_group: usize, name: &Arc<str>, chunk: &ColumnChunk) -> Vec<(Range<u64>, RegionKind)> {
    let range = |start: Option<i64>, len: Option<i64>| {
        let (start, len) = (u64::try_from(start?).ok()?, u64::try_from(len?).ok()?);
        Some(start..start.checked_add(len)?)
    };
    let column_index = range(chunk.column_index_offset, chunk.column_index_length.map(i64::from));
    let offset_index = range(chunk.offset_index_offset, chunk.offset_index_length.map(i64::from));
    let mut parts: Vec<_> = [column_index, offset_index]
        .into_iter()
        .flatten()
        .map(|range| (range, RegionKind::PageIndex))
        .collect();
    if let Some(meta) = &chunk.meta_data {
        let first = meta.dictionary_page_offset.filter(|at| *at > 0 && *at < meta.data_page_offset);
        let start = first.unwrap_or(meta.data_page_offset);
        let pages = range(Some(start), Some(meta.total_compressed_size));
        parts.extend(pages.map(|range| (range, RegionKind::Column(row_group, name.clone()))));
        let length = meta.bloom_filter_length.map_or(64, i64::from);
        let filter = range(meta.bloom_filter_offset, Some(length));
        parts.extend(filter.map(|range| (range, RegionKind::BloomFilter(name.clone()))));
    }
    parts
}

/// The parts that a range has bytes of, in a line.
fn what(regions: &[TracedRegion], range: &Range<u64>) -> String {
    let is_in = |of: &&TracedRegion| of.range.start < range.end && range.start < of.range.end;
    let mut found: Vec<RegionKind> =
        regions.iter().filter(is_in).map(|region| region.what.clone()).collect();
    found.sort();
    found.dedup();
    let mut words: Vec<String> = Vec::new();
    let mut columns: BTreeMap<usize, Vec<&str>> = BTreeMap::new();
    for kind in &found {
        match kind {
            RegionKind::Footer => words.push("footer".to_owned()),
            RegionKind::PageIndex => words.push("page index".to_owned()),
            RegionKind::BloomFilter(name) => words.push(format!("bloom filter of {name}")),
            RegionKind::Column(row_group, name) => {
                columns.entry(*row_group).or_default().push(name);
            }
        }
    }
    for (row_group, names) in columns {
        let (first, more) = (names.iter().take(3), names.len().saturating_sub(3));
        let first = first.copied().collect::<Vec<_>>().join(", ");
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        words.push(format!("row group {row_group}: {first}{more}"));
    }
    words.truncate(6);
    if words.is_empty() { "the beginning".to_owned() } else { words.join("; ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chunks_of_a_column_share_its_path() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/trips.parquet");
        let reader = marquetry::Reader::open(file).expect("a file");
        let mut paths: Vec<Arc<str>> = Vec::new();
        for region in regions(reader.file_len(), reader.metadata()) {
            let RegionKind::Column(_, path) = region.what else { continue };
            assert!(paths.iter().all(|known| *known != path || Arc::ptr_eq(known, &path)));
            paths.push(path);
        }
        assert!(paths.len() > reader.metadata().schema().leaves_len(), "several row groups");
    }
}
