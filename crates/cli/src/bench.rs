//! `bench` reads and writes a file of the user's, and shows how fast that is.

use std::time::{Duration, Instant};

use marquetry::schema::Projection;
use marquetry::{Compression, Error, Reader, WriteOptions};
use serde::Serialize;

use crate::args::{Bench, Global};
use crate::failure::{Failure, Result};
use crate::report::{self, Column, Report, Tables};
use crate::trial::{SamplePlan, SampleRows, TrialFile, median, memory_bytes, read_all};
use crate::{input, output};

#[derive(Serialize)]
struct BenchReport {
    file: String,
    /// Rows that were read and written.
    rows: u64,
    /// Rows of the file.
    file_rows: u64,
    row_groups: usize,
    threads: usize,
    reads: Vec<ReadMeasured>,
    writes: Vec<WriteMeasured>,
    /// Measurements for which there was no time.
    not_measured: Vec<String>,
}

#[derive(Serialize)]
struct ReadMeasured {
    column: String,
    threads: usize,
    rounds: usize,
    seconds: f64,
    /// Of the fastest round and of the slowest.
    min_seconds: f64,
    max_seconds: f64,
    stored_bytes: u64,
    memory_bytes: u64,
    rows_per_second: f64,
    memory_bytes_per_second: f64,
}

#[derive(Serialize)]
struct WriteMeasured {
    codec: String,
    threads: usize,
    rounds: usize,
    seconds: f64,
    min_seconds: f64,
    max_seconds: f64,
    bytes: u64,
    memory_bytes: u64,
    rows_per_second: f64,
    memory_bytes_per_second: f64,
}

/// Times of the rounds of a measurement.
struct Rounds {
    median: Duration,
    min: Duration,
    max: Duration,
    n: usize,
}

/// The rounds that are left, and the time.
struct Clock {
    until: Instant,
    rounds: usize,
}

impl Clock {
    fn is_over(&self) -> bool {
        Instant::now() >= self.until
    }

    /// Runs rounds until there are enough, or the time is over; the first is always run, and one
    /// before it, which warms up, is not counted where there is time.
    fn measure(&self, mut run: impl FnMut() -> Result<(), Error>) -> Result<Rounds> {
        run()?;
        let mut times = Vec::new();
        while times.is_empty() || (times.len() < self.rounds && !self.is_over()) {
            let begun = Instant::now();
            run()?;
            times.push(begun.elapsed());
        }
        let n = times.len();
        let median = median(&mut times);
        let (min, max) = (times.first().copied(), times.last().copied());
        Ok(Rounds { median, min: min.unwrap_or_default(), max: max.unwrap_or_default(), n })
    }
}

/// Measures reads and writes of a file.
pub(crate) fn run(command: &Bench, global: &Global) -> Result<()> {
    let file = command.source.file.as_str();
    let codecs: Vec<(String, Compression)> = command
        .codecs
        .iter()
        .map(|name| Ok((name.clone(), name.parse::<Compression>()?)))
        .collect::<Result<_, Error>>()?;
    let reader = input::open(file, global)?;
    let (all, each) = columns(&reader, &command.columns.names())?;
    let plan = SamplePlan::new(&reader, command.sample, &all.projection, global)?;
    let seconds = Duration::from_secs(command.seconds.min(1 << 20));
    let (begun, rounds) = (Instant::now(), command.rounds.max(1));
    // Reads have half of the time.
    let clock = Clock { until: begun + seconds / 2, rounds };
    let cores = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let threads = global.threads.unwrap_or_else(cores).max(1);
    let mut bench =
        Benched { reader: &reader, plan: &plan, clock: &clock, not_measured: Vec::new() };
    let mut reads = Vec::new();
    for threads in if threads > 1 { vec![threads, 1] } else { vec![1] } {
        reads.extend(bench.read(&all, threads)?);
    }
    for column in &each {
        reads.extend(bench.read(column, 1)?);
    }
    let clock = Clock { until: begun + seconds, rounds };
    bench.clock = &clock;
    let writes = bench.writes(&all.projection, &codecs, threads)?;
    if reads.is_empty() && writes.is_empty() {
        return Err(Failure::Usage("there was no time for any measurement: --seconds".to_owned()));
    }
    let report = BenchReport {
        file: file.to_owned(),
        rows: plan.rows,
        file_rows: plan.all_rows,
        row_groups: plan.row_groups.len(),
        threads,
        reads,
        writes,
        not_measured: bench.not_measured,
    };
    report::print(&report, global)
}

/// Columns that are read together.
struct ReadColumns {
    name: String,
    projection: Projection,
    leaves: Vec<usize>,
}

/// The wanted columns (all by default) together, and each of them.
fn columns(reader: &Reader, wanted: &[String]) -> Result<(ReadColumns, Vec<ReadColumns>)> {
    let schema = reader.metadata().schema();
    let mut each = Vec::new();
    let projection = if wanted.is_empty() {
        // By their indices, because several may have one name.
        let nodes = schema.fields().enumerate().filter(|(_, node)| !node.leaves().is_empty());
        each.extend(nodes.map(|(field, node)| ReadColumns {
            name: node.name().to_owned(),
            projection: Projection::fields([field]),
            leaves: node.leaves().collect(),
        }));
        Projection::All
    } else {
        let fields = schema.fields().filter(|node| !node.leaves().is_empty());
        let all: Vec<String> = fields.map(|node| node.name().to_owned()).collect();
        let names = input::columns(&all, wanted)?;
        for name in &names {
            let leaves = schema.node_named(name)?.leaves().collect();
            let projection = Projection::names([name]);
            each.push(ReadColumns { name: name.clone(), projection, leaves });
        }
        Projection::names(names)
    };
    let leaves = each.iter().flat_map(|column| column.leaves.iter().copied()).collect();
    Ok((ReadColumns { name: "all".to_owned(), projection, leaves }, each))
}

/// A file that is measured.
struct Benched<'a> {
    reader: &'a Reader,
    plan: &'a SamplePlan,
    clock: &'a Clock,
    not_measured: Vec<String>,
}

impl Benched<'_> {
    fn read(&mut self, columns: &ReadColumns, threads: usize) -> Result<Option<ReadMeasured>> {
        if self.clock.is_over() {
            self.not_measured.push(format!("reading {}", columns.name));
            return Ok(None);
        }
        let reader = self.plan.reader(self.reader, &columns.projection)?.threads(threads);
        let leaves = columns.leaves.iter().copied();
        let stored_bytes = stored_bytes(self.reader, self.plan, leaves)?;
        let memory_bytes = memory_bytes(&reader)?;
        let rounds = self.clock.measure(|| read_all(&reader).map(|_| ()))?;
        let seconds = rounds.median.as_secs_f64();
        Ok(Some(ReadMeasured {
            column: columns.name.clone(),
            threads,
            rounds: rounds.n,
            seconds,
            min_seconds: rounds.min.as_secs_f64(),
            max_seconds: rounds.max.as_secs_f64(),
            stored_bytes,
            memory_bytes,
            rows_per_second: per_second(self.plan.rows, seconds),
            memory_bytes_per_second: per_second(memory_bytes, seconds),
        }))
    }

    fn writes(
        &mut self,
        columns: &Projection,
        codecs: &[(String, Compression)],
        threads: usize,
    ) -> Result<Vec<WriteMeasured>> {
        let mut out = Vec::new();
        if self.clock.is_over() {
            self.not_measured.push("writing".to_owned());
            return Ok(out);
        }
        let rows = SampleRows::read(&self.plan.reader(self.reader, columns)?)?;
        for (name, codec) in codecs {
            if self.clock.is_over() {
                self.not_measured.push(format!("writing with {name}"));
                continue;
            }
            let options = WriteOptions::new().with_compression(*codec);
            let mut bytes = 0;
            let rounds = self.clock.measure(|| {
                bytes = TrialFile::write(&rows, &options, threads)?.bytes.len() as u64;
                Ok(())
            })?;
            let seconds = rounds.median.as_secs_f64();
            out.push(WriteMeasured {
                codec: name.clone(),
                threads,
                rounds: rounds.n,
                seconds,
                min_seconds: rounds.min.as_secs_f64(),
                max_seconds: rounds.max.as_secs_f64(),
                bytes,
                memory_bytes: rows.memory_bytes,
                rows_per_second: per_second(rows.rows, seconds),
                memory_bytes_per_second: per_second(rows.memory_bytes, seconds),
            });
        }
        Ok(out)
    }
}

/// Bytes of leaves in the file, as far as they belong to the sample.
pub(crate) fn stored_bytes(
    reader: &Reader,
    plan: &SamplePlan,
    leaves: impl Iterator<Item = usize> + Clone,
) -> Result<u64> {
    let footer = reader.metadata();
    let (mut bytes, mut rows) = (0u64, 0u64);
    for group in &plan.row_groups {
        rows += footer.row_group_rows(*group)?;
        for leaf in leaves.clone() {
            let chunk = footer.column_chunk(*group, leaf)?;
            let size = chunk.meta_data.map_or(0, |meta| meta.total_compressed_size);
            bytes = bytes.saturating_add(u64::try_from(size).unwrap_or(0));
        }
    }
    Ok(plan.share_of(bytes, rows))
}

#[expect(clippy::cast_precision_loss, reason = "a rate")]
fn per_second(n: u64, seconds: f64) -> f64 {
    if seconds > 0.0 { n as f64 / seconds } else { 0.0 }
}

/// Megabytes per second.
fn megabytes(rate: f64) -> String {
    format!("{:.0}", rate / 1e6)
}

/// Millions of rows per second.
fn millions(rate: f64) -> String {
    format!("{:.2}", rate / 1e6)
}

impl Report for BenchReport {
    const COMMAND: &'static str = "bench";

    fn lines(&self) -> impl Iterator<Item = impl Serialize> {
        #[derive(Serialize)]
        struct BenchLine<'a> {
            what: &'static str,
            name: &'a str,
            threads: usize,
            rounds: usize,
            seconds: f64,
            bytes: u64,
            rows_per_second: f64,
            memory_bytes_per_second: f64,
        }
        let reads = self.reads.iter().map(|of| BenchLine {
            what: "read",
            name: &of.column,
            threads: of.threads,
            rounds: of.rounds,
            seconds: of.seconds,
            bytes: of.stored_bytes,
            rows_per_second: of.rows_per_second,
            memory_bytes_per_second: of.memory_bytes_per_second,
        });
        let writes = self.writes.iter().map(|of| BenchLine {
            what: "write",
            name: &of.codec,
            threads: of.threads,
            rounds: of.rounds,
            seconds: of.seconds,
            bytes: of.bytes,
            rows_per_second: of.rows_per_second,
            memory_bytes_per_second: of.memory_bytes_per_second,
        });
        reads.chain(writes)
    }

    fn tables(&self, out: &mut Tables<'_>) -> Result<()> {
        let global = out.global;
        let (rows, all) = (output::count(self.rows, global), output::count(self.file_rows, global));
        let reads = [
            Column::text("read", |of: &ReadMeasured| of.column.clone()),
            Column::count("threads", |of| Some(of.threads as u64)),
            Column::bytes("stored", |of| Some(of.stored_bytes)),
            Column::bytes("in memory", |of| Some(of.memory_bytes)),
            Column::number("MB/s", |of| megabytes(of.memory_bytes_per_second)),
            Column::number("million rows/s", |of| millions(of.rows_per_second)),
            Column::number("median", |of| format!("{:.2} ms", of.seconds * 1e3)),
            Column::count("rounds", |of| Some(of.rounds as u64)),
        ];
        let title = format!("{}: {rows} of {all} rows", self.file);
        out.show(&title, &reads, &self.reads, &["rounds", "median", "stored"])?;
        let writes = [
            Column::text("write", |of: &WriteMeasured| of.codec.clone()),
            Column::count("threads", |of| Some(of.threads as u64)),
            Column::bytes("file", |of| Some(of.bytes)),
            Column::number("share of memory", |of| output::share(of.bytes, of.memory_bytes)),
            Column::number("MB/s", |of| megabytes(of.memory_bytes_per_second)),
            Column::number("million rows/s", |of| millions(of.rows_per_second)),
            Column::number("median", |of| format!("{:.2} ms", of.seconds * 1e3)),
            Column::count("rounds", |of| Some(of.rounds as u64)),
        ];
        out.show("", &writes, &self.writes, &["rounds", "median", "share of memory"])?;
        if !self.not_measured.is_empty() {
            let left_out = self.not_measured.join(", ");
            out.line(&format!("no time was left (--seconds) for: {left_out}"))?;
        }
        Ok(())
    }
}
