//! `stats --values` decodes columns, and lists their distinct and most frequent values.

use std::collections::HashMap;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_buffer::NullBuffer;
use arrow_schema::{ArrowError, DataType, FieldRef};
use marquetry::variant::VariantArray;
use marquetry::{Error, Limits};
use serde::Serialize;
use serde_json::value::RawValue;

use super::value_counts::ValueCounts;
use crate::args::{FilesOfRows, Global, Stats};
use crate::failure::{Result, after_printing};
use crate::input;
use crate::json;
use crate::output::{count, share};
use crate::pieces::{max_row_bytes, pieces};
use crate::progress::{Bar, Extent, Read};
use crate::report::{self, Column, Report, Tables};

/// Share of the memory limit that counts take.
const SHARE_OF_MEMORY: u64 = 4;

/// Threads for each core, at most: more would wait for each other.
const MAX_THREADS: usize = 4;

/// Characters that a frequent value takes at most on a screen.
const MAX_SHOWN: usize = 24;

/// Lists the distinct and the most frequent values of columns, those of all files together.
pub(super) fn run(command: &Stats, global: &Global) -> Result<()> {
    let rows = FilesOfRows {
        files: command.files.files.clone(),
        columns: command.columns.clone(),
        ..FilesOfRows::default()
    };
    let inputs = input::unpruned(&rows.files, global)?;
    let paths: Vec<String> = inputs.iter().map(|input| input.path.clone()).collect();
    let mut bar = Bar::new(Extent::Unknown, global, Read::default());
    let mut counters = Counters::new(global)?;
    let mut next = inputs.iter();
    let (_, end) = input::each_readable(&paths, global, |_| {
        let Some(input) = next.next() else { return Ok(()) };
        let opened = input::open_rows(input, &rows, global)?;
        let mut batches = opened.reader.batches()?;
        while let Some(batch) = batches.next_batch()? {
            let rows = batch.num_rows();
            for batch in opened.complete(batch)? {
                for piece in pieces(&batch?, 0, max_row_bytes(global))? {
                    counters.add(&piece?)?;
                }
            }
            bar.gave(rows);
        }
        Ok(())
    })?;
    let columns = counters.finish()?;
    drop(bar);
    let stats = columns.iter().map(|column| ColumnValues::new(column, command.top));
    let stats = stats.collect::<Result<_, _>>()?;
    after_printing(report::print(&AllValues { by: "values", stats }, global), end)
}

#[derive(Serialize)]
struct AllValues {
    by: &'static str,
    stats: Vec<ColumnValues>,
}

/// The values of a column, or of a member of struct columns.
#[derive(Serialize)]
struct ColumnValues {
    column: String,
    values: u64,
    nulls: u64,
    distinct: u64,
    exact: bool,
    #[serde(skip)]
    all_differ: bool,
    most_frequent: Vec<FrequentValue>,
}

#[derive(Serialize)]
struct FrequentValue {
    value: Box<RawValue>,
    count: u64,
}

impl ColumnValues {
    fn new(column: &CountedColumn, top: usize) -> Result<Self, ArrowError> {
        let tally = &column.counts.tally;
        let frequent = column.counts.most_frequent(top)?.into_iter();
        Ok(Self {
            column: column.path.clone(),
            values: tally.rows(),
            nulls: tally.nulls,
            distinct: tally.distinct(),
            exact: tally.is_exact(),
            all_differ: tally.all_differ(),
            most_frequent: frequent.map(|(value, count)| FrequentValue { value, count }).collect(),
        })
    }

    fn shown(&self) -> String {
        if self.all_differ {
            return "all different".to_owned();
        }
        let least = if self.exact { "" } else { "≥ " };
        let one = |FrequentValue { value, count }: &FrequentValue| {
            format!("{} ({least}{})", cut(value), share(*count, self.values))
        };
        self.most_frequent.iter().map(one).collect::<Vec<_>>().join(", ")
    }
}

impl Report for AllValues {
    const COMMAND: &'static str = "stats";

    fn lines(&self) -> impl Iterator<Item = impl Serialize> {
        self.stats.iter()
    }

    fn tables(&self, out: &mut Tables<'_>) -> Result<()> {
        type Line<'a> = (&'a ColumnValues, String);
        let distinct = |of: &ColumnValues| {
            let about = if of.exact { "" } else { "~" };
            format!("{about}{}", count(of.distinct, out.global))
        };
        let lines: Vec<Line<'_>> = self.stats.iter().map(|of| (of, distinct(of))).collect();
        let columns = [
            Column::text("column", |(of, _): &Line<'_>| of.column.clone()),
            Column::count("values", |(of, _)| Some(of.values)),
            Column::count("nulls", |(of, _)| Some(of.nulls)),
            Column::number("distinct", |(_, distinct)| distinct.clone()),
            Column::text("most frequent", |(of, _)| of.shown()),
        ];
        out.show("", &columns, &lines, &[])
    }
}

/// A value for people, short, and texts without quotes.
fn cut(value: &RawValue) -> String {
    let text = json::cell(value).filter(|text| !text.is_empty());
    let text = text.as_deref().unwrap_or_else(|| value.get());
    match text.char_indices().nth(MAX_SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Threads that count, each the values of some columns.
struct Counters {
    threads: Vec<Thread>,
    /// Positions of columns among those of all files, by their names and their index among equal
    /// names.
    places: HashMap<(String, usize), usize>,
}

struct Thread {
    batches: SyncSender<PlacedColumns>,
    counted: JoinHandle<Result<Vec<CountedColumn>, ArrowError>>,
}

/// Some columns of a batch, and their places among all.
struct PlacedColumns {
    places: Vec<usize>,
    columns: RecordBatch,
}

impl Counters {
    fn new(global: &Global) -> Result<Self> {
        let threads = threads(global.threads);
        let memory = global.mem.unwrap_or_else(|| Limits::default().memory_bytes) / SHARE_OF_MEMORY;
        let memory = usize::try_from(memory).unwrap_or(usize::MAX) / threads;
        let thread = |_| -> Result<Thread> {
            let (batches, received) = sync_channel::<PlacedColumns>(1);
            let count = move || {
                let mut counter = Counter { memory, ..Counter::default() };
                received.iter().try_for_each(|columns| counter.add(&columns))?;
                counter.finish()
            };
            let counted = std::thread::Builder::new().spawn(count);
            let counted = counted.map_err(|e| Error::io("a thread cannot be started", e))?;
            Ok(Thread { batches, counted })
        };
        let threads = (0..threads).map(thread).collect::<Result<_>>()?;
        Ok(Self { threads, places: HashMap::new() })
    }

    fn add(&mut self, batch: &RecordBatch) -> Result<()> {
        let mut shares = vec![(Vec::new(), Vec::new()); self.threads.len()];
        let mut same = HashMap::new();
        for (i, field) in batch.schema_ref().fields().iter().enumerate() {
            let nth = same.entry(field.name()).and_modify(|nth| *nth += 1).or_insert(0usize);
            let next = self.places.len();
            let place = *self.places.entry((field.name().clone(), *nth)).or_insert(next);
            if let Some((places, columns)) = shares.get_mut(place % self.threads.len()) {
                places.push(place);
                columns.push(i);
            }
        }
        for (thread, (places, columns)) in self.threads.iter().zip(shares) {
            let columns = PlacedColumns { places, columns: batch.project(&columns)? };
            // If the thread has ended, its result has the error.
            let _ = thread.batches.send(columns);
        }
        Ok(())
    }

    /// The columns in their order.
    fn finish(self) -> Result<Vec<CountedColumn>> {
        let mut columns = Vec::new();
        for Thread { batches, counted } in self.threads {
            drop(batches);
            let ended = |_| std::io::Error::other("a thread that counts values has ended");
            columns.extend(counted.join().map_err(ended)??);
        }
        columns.sort_by_key(|column| column.place);
        Ok(columns)
    }
}

/// The number of threads, for the number that is asked for.
fn threads(wanted: Option<usize>) -> usize {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    wanted.unwrap_or(cores).clamp(1, MAX_THREADS * cores)
}

/// A column, or a member of struct columns.
struct CountedColumn {
    /// Position of the column among all.
    place: usize,
    path: String,
    counts: ValueCounts,
}

/// Counts the values of some columns.
#[derive(Default)]
struct Counter {
    /// Bytes that counts may take.
    memory: usize,
    columns: Vec<CountedColumn>,
    /// Which of them a place and the members on the way from there mean.
    known: HashMap<(usize, Vec<Member>), usize>,
}

/// A member of a struct: its name, and its index among equal names. Names may have dots, so that
/// two members may have one dotted path.
type Member = (String, usize);

impl Counter {
    fn add(&mut self, placed: &PlacedColumns) -> Result<(), ArrowError> {
        let columns = placed.columns.schema_ref().fields().iter().zip(placed.columns.columns());
        for (column, place) in columns.zip(&placed.places) {
            self.column(*place, (column.0.name(), &mut Vec::new()), column, None)?;
        }
        Ok(())
    }

    /// Counts the values of a column; of a struct column those of its members, which are null where
    /// it is.
    fn column(
        &mut self,
        place: usize,
        (path, members): (&str, &mut Vec<Member>),
        (field, column): (&FieldRef, &ArrayRef),
        nulls: Option<&NullBuffer>,
    ) -> Result<(), ArrowError> {
        if let (DataType::Struct(fields), false) =
            (field.data_type(), VariantArray::is_variant(field))
        {
            let nulls = NullBuffer::union(nulls, column.nulls());
            let mut same = HashMap::new();
            for member in fields.iter().zip(column.as_struct().columns()) {
                let name = member.0.name();
                let nth = same.entry(name).and_modify(|nth| *nth += 1).or_insert(0usize);
                members.push((name.clone(), *nth));
                let path = format!("{path}.{name}");
                self.column(place, (&path, &mut *members), member, nulls.as_ref())?;
                members.pop();
            }
            return Ok(());
        }
        let next = self.columns.len();
        let known = *self.known.entry((place, members.clone())).or_insert(next);
        if known == next {
            let counts = ValueCounts::new(field.clone());
            self.columns.push(CountedColumn { place, path: path.to_owned(), counts });
        }
        let Some(CountedColumn { counts, .. }) = self.columns.get_mut(known) else { return Ok(()) };
        let before = counts.tally.bytes();
        counts.add(field, column, nulls)?;
        if counts.tally.bytes() > before {
            self.keep_within_memory();
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Vec<CountedColumn>, ArrowError> {
        self.columns.iter_mut().try_for_each(|column| column.counts.flush())?;
        self.keep_within_memory();
        Ok(self.columns)
    }

    fn keep_within_memory(&mut self) {
        let bytes = |column: &CountedColumn| column.counts.tally.bytes();
        while self.columns.iter().map(bytes).sum::<usize>() > self.memory {
            let largest = self.columns.iter_mut().max_by_key(|column| bytes(column));
            let Some(largest) = largest.filter(|column| bytes(column) > 0) else { break };
            largest.counts.tally.forget_rare();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_number_of_threads_is_not_started() {
        let cores = threads(None);
        for (wanted, started) in [(0, 1), (1, 1), (100_000, MAX_THREADS * cores)] {
            assert_eq!(threads(Some(wanted)), started);
        }
    }
}
