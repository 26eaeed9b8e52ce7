//! Prints rows as tables, JSON, or CSV.

pub(crate) mod csv;
mod lines;
mod formatters;
mod names;

use std::io::Write;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Schema, SchemaRef};
use marquetry::variant::VariantArray;

use self::csv::CsvForm;
use self::formatters::Formatters;
use self::lines::{Lines, wrong};
use crate::args::{Format, Global, ValueForms};
use crate::cells::{Forms, ValuesOf};
use crate::escape;
use crate::failure::{Failure, Result};
use crate::output::Sink;
use crate::pieces::{max_row_bytes, pieces_of_text};
use crate::table::{Align, Cell, NULL, Style, Table, TableColumn};

/// Prints rows in one of the forms.
pub(crate) struct Printer {
    out: Sink,
    format: Format,
    style: Style,
    csv: Arc<CsvForm>,
    forms: Forms,
    /// Threads that make text of rows, where it need not be seen at once.
    formatters: Option<Formatters>,
    rename: bool,
    /// The columns of the rows that come, with the names that are shown.
    schema: Option<SchemaRef>,
    /// The table that rows are added to.
    table: Option<Table>,
    /// Tables and titles so far.
    tables: u64,
    title: Option<String>,
    /// Rows so far.
    rows: u64,
    max_row_bytes: u64,
}

impl Printer {
    /// Opens the output.
    pub(crate) fn open(global: &Global) -> Result<Self> {
        let out = Sink::open(global)?;
        let table = out.terminal || global.wide || global.vertical;
        let format = global.format.unwrap_or(if table { Format::Table } else { Format::Jsonl });
        Ok(Self::new(out, format, global))
    }

    /// A printer of this form.
    pub(crate) fn new(out: Sink, format: Format, global: &Global) -> Self {
        Self {
            style: Style::new(format, global, &out),
            csv: Arc::new(CsvForm { terminal: out.terminal, ..CsvForm::default() }),
            forms: Forms::default(),
            formatters: formatters(format, &out, global),
            out,
            format,
            rename: false,
            schema: None,
            table: None,
            tables: 0,
            title: None,
            rows: 0,
            max_row_bytes: max_row_bytes(global),
        }
    }

    /// The same with another form of CSV.
    pub(crate) fn with_csv(mut self, csv: CsvForm) -> Self {
        self.csv = Arc::new(CsvForm { terminal: self.out.terminal, ..csv });
        self
    }

    /// The same with values in these forms.
    pub(crate) fn with_forms(mut self, forms: ValueForms) -> Self {
        self.forms = Forms::new(forms);
        self
    }

    /// Numbers columns of the same name, if `rename` is set.
    pub(crate) fn with_renamed_duplicates(mut self, rename: bool) -> Self {
        self.rename = rename;
        self
    }

    /// The title of the next table, should one begin.
    pub(crate) fn title(&mut self, title: &str) {
        self.title = Some(title.to_owned());
    }

    /// Announces the schema of the rows; again when it changes.
    pub(crate) fn schema(&mut self, schema: &Schema) -> Result<()> {
        let shown = names::shown(schema, self.rename);
        let same = |old: &SchemaRef| match self.format {
            Format::Table | Format::Md => columns(old) == columns(&shown),
            _ => old.fields() == shown.fields(),
        };
        if self.schema.as_ref().is_some_and(same) {
            return Ok(());
        }
        let objects = match self.format {
            Format::Json | Format::Jsonl => names::duplicate(shown.fields()),
            // A header may say a name twice, the JSON in a cell may not.
            Format::Csv => shown.fields().iter().find_map(|field| names::duplicate_below(field)),
            // SARIF is for reports, which the checks of the command line make sure of.
            Format::Table | Format::Md | Format::Sarif => None,
        };
        if let Some(path) = objects {
            return Err(Failure::Usage(format!(
                "column {path}: several columns have this name, and a JSON object holds one of them; \
                 --rename-duplicates numbers them"
            )));
        }
        match self.format {
            Format::Table | Format::Md => {
                self.end_table()?;
                if self.tables > 0 {
                    writeln!(self.out)?;
                }
                if let Some(title) = self.title.take() {
                    let mark = if self.format == Format::Md { "### " } else { "" };
                    writeln!(self.out, "{mark}{}", escape::escape(&title))?;
                    if self.format == Format::Md {
                        writeln!(self.out)?;
                    }
                }
                self.tables += 1;
                self.table = Some(Table::new(self.style, columns(&shown)));
            }
            Format::Csv if self.csv.header => {
                let same = |old: &SchemaRef| {
                    let name = |schema: &Schema, i: usize| schema.field(i).name().clone();
                    old.fields().len() == shown.fields().len()
                        && (0..shown.fields().len()).all(|i| name(old, i) == name(&shown, i))
                };
                if self.schema.is_some() && !self.schema.as_ref().is_some_and(same) {
                    return Err(Failure::OtherColumns(self.title.clone().unwrap_or_default()));
                }
                if self.schema.is_none() {
                    let names = shown.fields().iter().map(|field| Some(field.name().as_str()));
                    self.csv.line(&mut self.out, names)?;
                }
            }
            _ => {}
        }
        self.schema = Some(shown);
        self.forms.forget();
        Ok(())
    }

    /// Prints the rows of a batch.
    pub(crate) fn rows(&mut self, batch: &RecordBatch) -> Result<()> {
        self.schema(batch.schema_ref())?;
        self.forms.look(batch);
        // Tables go on where only what they do not show differs.
        let schema = names::shown(batch.schema_ref(), self.rename);
        match self.format {
            Format::Table | Format::Md => {
                let mut rows = self.rows;
                for piece in pieces_of_text(batch, 0, self.max_row_bytes)? {
                    let piece = piece?;
                    self.table_rows(&piece, &schema, rows)?;
                    rows += piece.num_rows() as u64;
                }
            }
            Format::Csv | Format::Json | Format::Jsonl | Format::Sarif => {
                let names = schema.fields().iter().map(|field| field.name().len() as u64);
                let around: u64 = names.map(|name| name + AROUND_NAME).sum();
                let (lines, mut rows) = (self.lines(schema), self.rows);
                for piece in pieces_of_text(batch, around, self.max_row_bytes)? {
                    let piece = piece?;
                    let of_piece = piece.num_rows() as u64;
                    self.piece(&lines, piece, rows)?;
                    rows += of_piece;
                }
            }
        }
        self.rows += batch.num_rows() as u64;
        if self.out.terminal {
            if let Some(table) = &mut self.table {
                table.show(&mut self.out)?;
            }
            self.out.flush()?;
        }
        Ok(())
    }

    /// Prints some rows, or leaves them to the threads. `rows` are the number of rows before them.
    fn piece(&mut self, lines: &Lines, piece: RecordBatch, rows: u64) -> Result<()> {
        if let Some(formatters) = &mut self.formatters {
            let text = formatters.push(lines.clone(), piece, rows)?;
            return text.map_or(Ok(()), |text| self.text(&text));
        }
        let mut text = Vec::new();
        lines.write(&piece, rows, &mut text)?;
        self.text(&text)
    }

    /// Prints what the threads still have.
    fn drain(&mut self) -> Result<()> {
        while let Some(formatters) = &mut self.formatters
            && let Some(text) = formatters.pop()?
        {
            self.text(&text)?;
        }
        Ok(())
    }

    fn lines(&self, schema: SchemaRef) -> Lines {
        Lines {
            format: self.format,
            csv: self.csv.clone(),
            forms: Arc::new(self.forms.clone()),
            schema,
        }
    }

    fn text(&mut self, text: &[u8]) -> Result<()> {
        match std::str::from_utf8(text) {
            Ok(json) if self.out.terminal && self.format != Format::Csv => {
                self.out.write_all(escape::escape_json(json).as_bytes())?;
            }
            _ => self.out.write_all(text)?,
        }
        Ok(())
    }

    /// Adds rows to the table. `rows` are the number of rows before them.
    fn table_rows(&mut self, batch: &RecordBatch, schema: &Schema, rows: u64) -> Result<()> {
        let mut values = ValuesOf::new(&self.forms);
        let columns = batch.columns().iter().zip(schema.fields()).map(|(column, field)| {
            values.column(column, field).map_err(|e| wrong(field.name(), rows, e))
        });
        let columns: Vec<_> = columns.collect::<Result<_>>()?;
        for i in 0..batch.num_rows() {
            let cells = columns.iter().zip(schema.fields()).map(|(values, field)| {
                let text = values.shown(i);
                let text = text.map_err(|e| wrong(field.name(), rows + i as u64, e))?;
                Ok(table_cell(text, values.are_texts()))
            });
            let cells = cells.collect::<Result<Vec<_>>>()?;
            if let Some(table) = &mut self.table {
                table.row(&mut self.out, cells)?;
            }
        }
        Ok(())
    }

    fn end_table(&mut self) -> Result<()> {
        match self.table.take() {
            Some(table) => table.end(&mut self.out),
            None => Ok(()),
        }
    }

    /// Ends the output.
    pub(crate) fn close(mut self) -> Result<u64> {
        self.end_table()?;
        self.drain()?;
        if self.format == Format::Json {
            self.out.write_all(if self.rows == 0 { b"[]\n" } else { b"\n]\n" })?;
        }
        self.out.close()
    }

    /// Shows the rows before a failure; an incomplete file is removed.
    pub(crate) fn abort(mut self) -> Result<()> {
        self.end_table()?;
        self.drain()?;
        if self.format == Format::Json && self.rows > 0 {
            self.out.write_all(b"\n]\n")?;
        }
        self.out.flush()?;
        Ok(())
    }
}

/// Threads for text that goes into a file or a pipe; none where one thread is asked for.
fn formatters(format: Format, out: &Sink, global: &Global) -> Option<Formatters> {
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    let threads = global.threads.unwrap_or_else(cores).min(MAX_FORMATTERS);
    let is_text = matches!(format, Format::Csv | Format::Json | Format::Jsonl);
    (is_text && !out.terminal && threads > 1).then(|| Formatters::new(threads))
}

/// The quotes and the colon of a name in JSON.
const AROUND_NAME: u64 = 3;

/// More would wait for the output.
const MAX_FORMATTERS: usize = 4;

/// Formats a cell of a table: text that looks like null, or that begins with a quote, is put in
/// quotes.
fn table_cell(text: Option<String>, any: bool) -> Cell {
    match text {
        None => Cell::Null,
        Some(text) if any && (text == NULL || text.starts_with('"')) => {
            Cell::Text(serde_json::Value::from(text).to_string())
        }
        Some(text) => Cell::Text(text),
    }
}

/// The columns of a table for these fields.
fn columns(schema: &Schema) -> Vec<TableColumn> {
    let column = |field: &arrow_schema::FieldRef| TableColumn {
        name: field.name().clone(),
        type_name: match field.extension_type_name() {
            Some("arrow.uuid") => "uuid".to_owned(),
            _ if VariantArray::is_variant(field) => "variant".to_owned(),
            _ => type_name(field.data_type()),
        },
        align: if is_number(field.data_type()) { Align::Right } else { Align::Left },
        is_path: false,
        // Half a number or half a timestamp is worth little.
        least: match field.data_type() {
            nested if nested.is_nested() => 12,
            text if text.is_string() || text.is_binary() => 12,
            DataType::Dictionary(..) => 12,
            _ => 30,
        },
    };
    schema.fields().iter().map(column).collect()
}

fn is_number(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(_, value) => is_number(value),
        DataType::RunEndEncoded(_, values) => is_number(values.data_type()),
        other => other.is_numeric(),
    }
}

/// A type in a word or two.
fn type_name(data_type: &DataType) -> String {
    let name = match data_type {
        DataType::Boolean => "bool",
        DataType::Float16 => "float16",
        DataType::Float32 => "float",
        DataType::Float64 => "double",
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "string",
        DataType::Binary
        | DataType::LargeBinary
        | DataType::BinaryView
        | DataType::FixedSizeBinary(_) => "binary",
        DataType::Date32 | DataType::Date64 => "date",
        DataType::Time32(_) | DataType::Time64(_) => "time",
        DataType::Timestamp(_, None) => "timestamp",
        DataType::Timestamp(_, Some(_)) => "timestamptz",
        DataType::Duration(_) => "duration",
        DataType::Interval(_) => "interval",
        DataType::Decimal32(p, s)
        | DataType::Decimal64(p, s)
        | DataType::Decimal128(p, s)
        | DataType::Decimal256(p, s) => return format!("decimal({p},{s})"),
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::ListView(item)
        | DataType::LargeListView(item)
        | DataType::FixedSizeList(item, _) => {
            return format!("{}[]", type_name(item.data_type()));
        }
        DataType::Struct(_) => "struct",
        DataType::Map(..) => "map",
        DataType::Dictionary(_, value) => return type_name(value),
        DataType::RunEndEncoded(_, values) => return type_name(values.data_type()),
        other => return other.to_string().to_ascii_lowercase(),
    };
    name.to_owned()
}
