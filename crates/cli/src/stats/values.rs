//! `stats --values`: what the values of columns are, which only decoding them tells.

use std::collections::HashMap;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_buffer::NullBuffer;
use arrow_schema::{ArrowError, DataType, Field};
use marquetry::Limits;
use marquetry::variant::VariantArray;
use serde_json::{Value, json};

use super::tally::Tally;
use crate::args::{DecimalForm, FilesOfRows, Global, Stats};
use crate::cells::{Forms, ValuesOf};
use crate::failure::Result;
use crate::input;
use crate::output::{count, share};
use crate::progress::{Bar, Read, Work};
use crate::report::{Report, Section};

/// Share of the memory limit that counts take.
const SHARE_OF_MEMORY: u64 = 4;

/// Characters that a frequent value takes at most on a screen.
const SHOWN: usize = 24;

/// Lists the distinct and the most frequent values of columns, those of all files together.
pub(super) fn run(command: &Stats, global: &Global) -> Result<()> {
    let rows = FilesOfRows {
        files: command.files.files.clone(),
        columns: command.columns.clone(),
        ..FilesOfRows::default()
    };
    let inputs = input::unpruned(&rows.files, global)?;
    let paths: Vec<String> = inputs.iter().map(|input| input.path.clone()).collect();
    let mut bar = Bar::new(Work::Unknown, global, Read::default());
    let mut counters = Counters::new(global);
    let mut next = inputs.iter();
    let (_, end) = input::each_readable(&paths, global, |_| {
        let Some(input) = next.next() else { return Ok(()) };
        let opened = input::open_rows(input, &rows, global)?;
        let mut batches = opened.reader.batches()?;
        while let Some(batch) = batches.next_batch()? {
            let rows = batch.num_rows();
            counters.add(&opened.complete(batch)?)?;
            bar.gave(rows);
        }
        Ok(())
    })?;
    let columns = counters.finish()?;
    drop(bar);
    print(&columns, command.top, global)?;
    end
}

fn print(columns: &[Column], top: usize, global: &Global) -> Result<()> {
    let lines: Vec<Value> = columns.iter().map(|column| column.json(top)).collect();
    let headers = ["column", ">values", ">nulls", ">distinct", "most frequent"];
    let rows = columns.iter().map(|column| column.cells(top, global));
    let section = Section::new("", &headers).with(rows.collect());
    let json = json!({ "by": "values", "stats": lines });
    Report { command: "stats", json, records: lines, sections: vec![section] }.print(global)
}

/// A column, or a member of struct columns.
struct Column {
    /// Where the column stands among all.
    place: usize,
    path: String,
    tally: Tally,
}

impl Column {
    fn cells(&self, top: usize, global: &Global) -> Vec<String> {
        let Self { path, tally, .. } = self;
        let about = if tally.is_exact() { "" } else { "~" };
        let shown = |(value, times): (&[u8], u64)| {
            let least = if tally.is_exact() { "" } else { "≥ " };
            format!("{} ({least}{})", cut(&text(value)), share(times, tally.rows()))
        };
        let frequent = match tally.all_differ() {
            true => "all different".to_owned(),
            false => tally.most_frequent(top).into_iter().map(shown).collect::<Vec<_>>().join(", "),
        };
        vec![
            path.clone(),
            count(tally.rows(), global),
            count(tally.nulls, global),
            format!("{about}{}", count(tally.distinct(), global)),
            frequent,
        ]
    }

    fn json(&self, top: usize) -> Value {
        let Self { path, tally, .. } = self;
        let value = |value: &[u8]| serde_json::from_slice(value).unwrap_or(Value::Null);
        let frequent = tally.most_frequent(top).into_iter();
        let frequent = frequent.map(|(of, times)| json!({ "value": value(of), "count": times }));
        json!({
            "column": path, "values": tally.rows(), "nulls": tally.nulls,
            "distinct": tally.distinct(), "exact": tally.is_exact(),
            "most_frequent": frequent.collect::<Vec<_>>(),
        })
    }
}

/// A value for people: texts without quotes.
fn text(json: &[u8]) -> String {
    match serde_json::from_slice(json) {
        Ok(Value::String(text)) if !text.is_empty() => text,
        _ => String::from_utf8_lossy(json).into_owned(),
    }
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Threads that count, each the values of some columns.
struct Counters {
    threads: Vec<Thread>,
    /// Where columns stand among those of all files: by their names, and which of that name.
    places: HashMap<(String, usize), usize>,
}

struct Thread {
    work: SyncSender<Part>,
    counted: JoinHandle<Result<Vec<Column>, ArrowError>>,
}

/// Some columns of a batch, and their places among all.
struct Part {
    places: Vec<usize>,
    columns: RecordBatch,
}

impl Counters {
    fn new(global: &Global) -> Self {
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        let threads = global.threads.unwrap_or_else(cores).max(1);
        let memory = global.mem.unwrap_or_else(|| Limits::default().memory_bytes) / SHARE_OF_MEMORY;
        let memory = usize::try_from(memory).unwrap_or(usize::MAX) / threads;
        let thread = |_| {
            let (work, parts) = sync_channel::<Part>(1);
            let count = move || {
                let mut counter = Counter { memory, ..Counter::default() };
                parts.iter().try_for_each(|part| counter.add(&part))?;
                Ok(counter.columns)
            };
            Thread { work, counted: std::thread::spawn(count) }
        };
        Self { threads: (0..threads).map(thread).collect(), places: HashMap::new() }
    }

    fn add(&mut self, batch: &RecordBatch) -> Result<()> {
        let mut parts = vec![(Vec::new(), Vec::new()); self.threads.len()];
        let mut same = HashMap::new();
        for (i, field) in batch.schema_ref().fields().iter().enumerate() {
            let nth = same.entry(field.name()).and_modify(|nth| *nth += 1).or_insert(0usize);
            let next = self.places.len();
            let place = *self.places.entry((field.name().clone(), *nth)).or_insert(next);
            if let Some((places, columns)) = parts.get_mut(place % self.threads.len()) {
                places.push(place);
                columns.push(i);
            }
        }
        for (thread, (places, columns)) in self.threads.iter().zip(parts) {
            let part = Part { places, columns: batch.project(&columns)? };
            // If the thread has ended, its result says why.
            let _ = thread.work.send(part);
        }
        Ok(())
    }

    /// The columns in their order.
    fn finish(self) -> Result<Vec<Column>> {
        let mut columns = Vec::new();
        for Thread { work, counted } in self.threads {
            drop(work);
            let ended = |_| std::io::Error::other("a thread that counts values has ended");
            columns.extend(counted.join().map_err(ended)??);
        }
        columns.sort_by_key(|column| column.place);
        Ok(columns)
    }
}

/// Counts the values of some columns.
#[derive(Default)]
struct Counter {
    /// Bytes that counts may take.
    memory: usize,
    columns: Vec<Column>,
    /// Which of them a place and a path mean.
    known: HashMap<(usize, String), usize>,
    forms: Forms,
}

impl Counter {
    fn add(&mut self, part: &Part) -> Result<(), ArrowError> {
        // As in all reports, decimals keep their digits.
        self.forms.values.decimals = Some(DecimalForm::Text);
        self.forms.look(&part.columns);
        let forms = std::mem::take(&mut self.forms);
        let mut values = ValuesOf::new(&forms);
        let columns = part.columns.schema_ref().fields().iter().zip(part.columns.columns());
        for ((field, column), place) in columns.zip(&part.places) {
            self.column(*place, field.name(), (field, column), None, &mut values)?;
        }
        self.forms = forms;
        Ok(())
    }

    /// Counts the values of a column; of a struct column those of its members, which are null where
    /// it is.
    fn column(
        &mut self,
        place: usize,
        path: &str,
        (field, column): (&Field, &ArrayRef),
        nulls: Option<&NullBuffer>,
        values: &mut ValuesOf<'_>,
    ) -> Result<(), ArrowError> {
        if let (DataType::Struct(fields), false) =
            (field.data_type(), VariantArray::is_variant(field))
        {
            let nulls = NullBuffer::union(nulls, column.nulls());
            for member in fields.iter().zip(column.as_struct().columns()) {
                let path = format!("{path}.{}", member.0.name());
                self.column(place, &path, (member.0, member.1), nulls.as_ref(), values)?;
            }
            return Ok(());
        }
        let next = self.columns.len();
        let known = *self.known.entry((place, path.to_owned())).or_insert(next);
        if known == next {
            self.columns.push(Column { place, path: path.to_owned(), tally: Tally::default() });
        }
        let Some(Column { tally, .. }) = self.columns.get_mut(known) else { return Ok(()) };
        let (before, mut text) = (tally.bytes(), Vec::new());
        let values = values.column(column, field)?;
        for i in 0..column.len() {
            if nulls.is_some_and(|nulls| nulls.is_null(i)) || values.is_null(i) {
                tally.nulls += 1;
                continue;
            }
            text.clear();
            values.json(i, &mut text)?;
            tally.add(&text);
        }
        if tally.bytes() > before {
            self.keep_within_memory();
        }
        Ok(())
    }

    fn keep_within_memory(&mut self) {
        while self.columns.iter().map(|column| column.tally.bytes()).sum::<usize>() > self.memory {
            let largest = self.columns.iter_mut().max_by_key(|column| column.tally.bytes());
            let Some(largest) = largest.filter(|column| column.tally.bytes() > 0) else { break };
            largest.tally.forget_rare();
        }
    }
}
