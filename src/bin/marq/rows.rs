//! `head`, `tail`, `cat`, `sample`: rows.

use std::io::Write;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use comfy_table::{ContentArrangement, Table, presets};
use marquetry::read::VirtualColumn;
use marquetry::{Reader, RowSelection};
use serde_json::{Map, Value};

use crate::args::{Format, Global, Rows, Sample};
use crate::cells;
use crate::failure::Result;
use crate::input;
use crate::output::Sink;

/// Rows shown where nobody says how many.
const DEFAULT_ROWS: u64 = 10;

/// The first rows of each file.
pub(crate) fn head(command: &Rows, global: &Global) -> Result<()> {
    print(command, global, |reader, n| first_rows(reader, n.unwrap_or(DEFAULT_ROWS)))
}

/// The last rows of each file.
pub(crate) fn tail(command: &Rows, global: &Global) -> Result<()> {
    print(command, global, |reader, n| {
        let rows = reader.count()?;
        let first = rows.saturating_sub(n.unwrap_or(DEFAULT_ROWS));
        Ok(vec![stretch(reader, first..rows)])
    })
}

/// All rows of each file.
pub(crate) fn cat(command: &Rows, global: &Global) -> Result<()> {
    print(command, global, |reader, n| match n {
        Some(n) => first_rows(reader, n),
        None => Ok(vec![reader.clone()]),
    })
}

/// Some rows of each file, chosen at random.
pub(crate) fn sample(command: &Sample, global: &Global) -> Result<()> {
    print(&command.rows, global, |reader, n| {
        let numbers = numbers(reader)?;
        let rows = match &numbers {
            Some(numbers) => numbers.len() as u64,
            None => reader.rows()?,
        };
        let mut rng = fastrand::Rng::with_seed(command.seed);
        let wanted = n.unwrap_or(DEFAULT_ROWS).min(rows);
        let mut chosen = std::collections::BTreeSet::new();
        // Floyd's choice: every set of rows is equally likely.
        for last in rows - wanted..rows {
            let row = rng.u64(0..=last);
            if !chosen.insert(row) {
                chosen.insert(last);
            }
        }
        let Some(numbers) = numbers else {
            return Ok(chosen.into_iter().map(|row| stretch(reader, row..row + 1)).collect());
        };
        let mut of_file: Vec<u64> = numbers
            .iter()
            .zip(0u64..)
            .filter_map(|(number, row)| chosen.contains(&row).then_some(*number))
            .collect();
        of_file.sort_unstable();
        let mut options = reader.read_options().clone();
        (options.filter, options.selection) = (None, None);
        let rows = RowSelection::from_rows(reader.file_rows()?, of_file)?;
        Ok(vec![reader.clone().options(options).select(rows)?])
    })
}

/// The numbers in the file of the rows that pass the filter; `None` if there is no filter.
fn numbers(reader: &Reader) -> Result<Option<Vec<u64>>> {
    if reader.read_options().filter.is_none() {
        return Ok(None);
    }
    let number = VirtualColumn::RowNumber { name: "row".into() };
    let reader = reader.clone().project::<&str>([])?.virtual_column(number);
    let mut batches = reader.batches()?;
    let mut numbers = Vec::new();
    while let Some(batch) = batches.next_batch()? {
        let column = batch.column(0).as_primitive::<Int64Type>();
        numbers.extend(column.values().iter().map(|row| row.unsigned_abs()));
    }
    Ok(Some(numbers))
}

fn first_rows(reader: &Reader, n: u64) -> Result<Vec<Reader>> {
    let rows = match reader.read_options().filter {
        Some(_) => n,
        None => n.min(reader.rows()?),
    };
    Ok(vec![stretch(reader, 0..rows)])
}

/// Some rows of those that the flags leave.
fn stretch(reader: &Reader, rows: std::ops::Range<u64>) -> Reader {
    let first = reader.read_options().offset;
    reader.clone().offset(first + rows.start).limit(rows.end - rows.start)
}

fn print(
    command: &Rows,
    global: &Global,
    choose: impl Fn(&Reader, Option<u64>) -> Result<Vec<Reader>>,
) -> Result<()> {
    let mut printer = Printer::open(global)?;
    for path in input::paths(&command.files.files)? {
        let reader = input::open_rows(&path, &command.files, global)?;
        for stretch in choose(&reader, command.rows_max)? {
            let mut batches = stretch.batches()?;
            printer.columns(&batches_schema(&reader)?)?;
            while let Some(batch) = batches.next_batch()? {
                printer.rows(&batch)?;
            }
        }
    }
    printer.close()
}

fn batches_schema(reader: &Reader) -> Result<Vec<String>> {
    Ok(reader.schema()?.fields().iter().map(|field| field.name().clone()).collect())
}

/// Prints rows in one of the forms.
pub(crate) struct Printer {
    out: Sink,
    format: Format,
    table: Option<Table>,
    /// Objects of the JSON array so far.
    objects: u64,
    header: Vec<String>,
    csv: CsvForm,
}

/// How CSV is written.
#[derive(Debug, Clone)]
pub(crate) struct CsvForm {
    pub(crate) delimiter: char,
    pub(crate) header: bool,
    /// What stands for null.
    pub(crate) null: String,
}

impl Default for CsvForm {
    fn default() -> Self {
        Self { delimiter: ',', header: true, null: String::new() }
    }
}

impl Printer {
    /// Opens the output.
    pub(crate) fn open(global: &Global) -> Result<Self> {
        let out = Sink::open(global)?;
        let format =
            global.format.unwrap_or(if out.terminal { Format::Table } else { Format::Jsonl });
        Ok(Self::new(out, format))
    }

    /// A printer of this form.
    pub(crate) fn new(out: Sink, format: Format) -> Self {
        Self { out, format, table: None, objects: 0, header: Vec::new(), csv: CsvForm::default() }
    }

    /// The same with another form of CSV.
    pub(crate) fn with_csv(mut self, csv: CsvForm) -> Self {
        self.csv = csv;
        self
    }

    /// Says the names of the columns; said again when they change.
    pub(crate) fn columns(&mut self, names: &[String]) -> Result<()> {
        if self.header == names {
            return Ok(());
        }
        self.header = names.to_vec();
        if matches!(self.format, Format::Table | Format::Md) {
            let mut table = Table::new();
            table.load_style(if self.format == Format::Md {
                presets::ASCII_MARKDOWN
            } else {
                presets::UTF8_FULL_CONDENSED
            });
            if self.format == Format::Table {
                table.set_content_arrangement(ContentArrangement::Dynamic);
                if let Some(width) =
                    std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok())
                {
                    table.set_width(width);
                }
            }
            table.set_header(names);
            self.table = Some(table);
        }
        if self.format == Format::Csv && self.csv.header {
            csv_line(&mut self.out, self.csv.delimiter, names.iter().map(String::as_str))?;
        }
        Ok(())
    }

    /// Prints the rows of a batch.
    pub(crate) fn rows(&mut self, batch: &RecordBatch) -> Result<()> {
        let names: Vec<String> =
            batch.schema().fields().iter().map(|field| field.name().clone()).collect();
        self.columns(&names)?;
        for i in 0..batch.num_rows() {
            match self.format {
                Format::Table | Format::Md => {
                    let cells = batch.columns().iter().map(|column| cells::cell(column, i, "null"));
                    let cells = cells.collect::<Result<Vec<_>, _>>()?;
                    if let Some(table) = &mut self.table {
                        table.add_row(cells);
                    }
                }
                Format::Csv => {
                    let null = &self.csv.null;
                    let cells = batch.columns().iter().map(|column| cells::cell(column, i, null));
                    let cells = cells.collect::<Result<Vec<_>, _>>()?;
                    csv_line(&mut self.out, self.csv.delimiter, cells.iter().map(String::as_str))?;
                }
                Format::Json | Format::Jsonl => self.object(batch, i)?,
            }
        }
        Ok(())
    }

    fn object(&mut self, batch: &RecordBatch, i: usize) -> Result<()> {
        let mut object = Map::new();
        for (field, column) in batch.schema().fields().iter().zip(batch.columns()) {
            object.insert(field.name().clone(), cells::json(column, i)?);
        }
        if self.format == Format::Json {
            self.out.write_all(if self.objects == 0 { b"[\n" } else { b",\n" })?;
        }
        self.objects += 1;
        serde_json::to_writer(&mut self.out, &Value::Object(object))
            .map_err(std::io::Error::from)?;
        if self.format == Format::Jsonl {
            self.out.write_all(b"\n")?;
        }
        Ok(())
    }

    /// Ends the output.
    pub(crate) fn close(mut self) -> Result<()> {
        match self.format {
            Format::Json => {
                self.out.write_all(if self.objects == 0 { b"[]\n" } else { b"\n]\n" })?
            }
            Format::Table | Format::Md => {
                if let Some(table) = &self.table {
                    writeln!(self.out, "{table}")?;
                }
            }
            Format::Csv | Format::Jsonl => {}
        }
        self.out.close()
    }
}

/// A line of CSV (RFC 4180): cells with delimiters, quotes or line ends are quoted.
fn csv_line<'a>(
    out: &mut impl Write,
    delimiter: char,
    cells: impl ExactSizeIterator<Item = &'a str>,
) -> Result<()> {
    // A line with nothing on it is no record to most readers.
    let alone = cells.len() == 1;
    for (i, cell) in cells.enumerate() {
        if i > 0 {
            write!(out, "{delimiter}")?;
        }
        if cell.contains([delimiter, '"', '\n', '\r']) || (alone && cell.is_empty()) {
            write!(out, "\"{}\"", cell.replace('"', "\"\""))?;
        } else {
            out.write_all(cell.as_bytes())?;
        }
    }
    out.write_all(b"\n")?;
    Ok(())
}
