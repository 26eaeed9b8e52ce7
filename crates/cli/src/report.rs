//! The result of a command, in its output formats.

use std::borrow::Cow;
use std::io::Write;

use marquetry::Limits;
use serde_json::{Map, Value, json};

use crate::args::{Format, Global};
use crate::escape::{escape, escape_json};
use crate::failure::{Failure, Result};
use crate::output::{self, Sink};
use crate::printer::csv::CsvForm;
use crate::table::{Align, Cell, Column, Style, Table, width};

/// The result of a command as JSON, as records for CSV, and as tables.
pub(crate) struct Report {
    /// Name of the command; `marq/1/NAME` is the name of its JSON form.
    pub(crate) command: &'static str,
    /// The JSON object.
    pub(crate) json: Value,
    /// Objects with the same keys, which are the lines of CSV.
    pub(crate) records: Vec<Value>,
    /// The tables.
    pub(crate) sections: Vec<Section>,
}

/// The form of a report on a terminal, or elsewhere.
fn format(global: &Global, at_terminal: bool) -> Format {
    let is_table = at_terminal || global.wide || global.vertical;
    global.format.unwrap_or(if is_table { Format::Table } else { Format::Json })
}

/// A report that grows with the pages of a file: it holds what its form shows alone, within the
/// memory limit.
pub(crate) struct Listing {
    form: Format,
    limit: u64,
    left: u64,
}

impl Listing {
    pub(crate) fn new(global: &Global) -> Self {
        let limit = global.mem.unwrap_or_else(|| Limits::default().memory_bytes);
        Self { form: format(global, output::is_at_terminal(global)), limit, left: limit }
    }

    /// Whether tables are shown.
    pub(crate) fn is_table(&self) -> bool {
        matches!(self.form, Format::Table | Format::Md)
    }

    /// Whether records are shown, one a line.
    pub(crate) fn is_csv(&self) -> bool {
        self.form == Format::Csv
    }

    /// Keeps the row of a table in mind.
    ///
    /// # Errors
    /// If it takes more memory than is left.
    pub(crate) fn take_row(&mut self, file: &str, cells: &[String]) -> Result<()> {
        self.take(file, cells.iter().map(|cell| cell.capacity() + size_of::<String>()).sum())
    }

    /// The same of a JSON value.
    pub(crate) fn take_json(&mut self, file: &str, json: &Value) -> Result<()> {
        self.take(file, held(json))
    }

    fn take(&mut self, file: &str, bytes: usize) -> Result<()> {
        self.check(file, bytes)?;
        self.left -= bytes as u64;
        Ok(())
    }

    /// Checks that this number of bytes is left.
    ///
    /// # Errors
    /// If they are not.
    pub(crate) fn check(&self, file: &str, bytes: usize) -> Result<()> {
        if bytes as u64 <= self.left {
            return Ok(());
        }
        let text = format!(
            "the report takes more than {} bytes; choose columns with -c, or raise --mem",
            self.limit
        );
        Err(Failure::content(file, None, text))
    }
}

/// The memory that a JSON value holds, about.
fn held(json: &Value) -> usize {
    /// A member beside its name and its value: its hash, and its place in the table.
    const MEMBER: usize = 24;
    let below = match json {
        Value::String(text) => text.capacity(),
        Value::Array(items) => items.iter().map(held).sum(),
        Value::Object(members) => members
            .iter()
            .map(|(name, value)| name.capacity() + size_of::<String>() + MEMBER + held(value))
            .sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    };
    size_of::<Value>() + below
}

/// A table with a title.
pub(crate) struct Section {
    pub(crate) title: String,
    /// Headers; those that begin with `>` are of numbers, which are aligned to the right.
    pub(crate) headers: Vec<Cow<'static, str>>,
    pub(crate) rows: Vec<Vec<String>>,
    /// Headers of columns that a narrow screen leaves out, the least important first.
    pub(crate) expendable: &'static [&'static str],
}

impl Report {
    /// Prints the report in the format of the flags, or the default for the output.
    pub(crate) fn print(self, global: &Global) -> Result<()> {
        let mut out = Sink::open(global)?;
        let format = format(global, out.terminal);
        match format {
            Format::Json => {
                let named = self.named();
                match out.terminal {
                    true => json_line(&mut out, &format!("{named:#}"))?,
                    // Not held as text as well.
                    false => {
                        serde_json::to_writer_pretty(&mut out, &named)
                            .map_err(std::io::Error::from)?;
                        writeln!(out)?;
                    }
                }
            }
            Format::Jsonl => json_line(&mut out, &self.named().to_string())?,
            Format::Csv => records(&mut out, &self.records)?,
            Format::Table | Format::Md => {
                let style = Style::new(format, global, &out);
                for (i, section) in self.sections.iter().enumerate() {
                    if i > 0 {
                        writeln!(out)?;
                    }
                    if !section.title.is_empty() {
                        let title = escape(&section.title);
                        match format {
                            Format::Md => writeln!(out, "### {title}\n")?,
                            _ => writeln!(out, "{title}")?,
                        }
                    }
                    section.print(style, &mut out)?;
                }
            }
        }
        out.close()?;
        Ok(())
    }

    fn named(self) -> Value {
        let mut named = json!({ "schema": format!("marq/1/{}", self.command) });
        if let (Some(named), Value::Object(json)) = (named.as_object_mut(), self.json) {
            named.extend(json);
        }
        named
    }
}

/// Writes JSON, escaped on a terminal.
pub(crate) fn json_line(out: &mut Sink, json: &str) -> Result<()> {
    if out.terminal {
        writeln!(out, "{}", escape_json(json))?
    } else {
        writeln!(out, "{json}")?
    }
    Ok(())
}

/// Objects as lines of CSV: names once, numbers plain, lists as JSON.
fn records(out: &mut Sink, records: &[Value]) -> Result<()> {
    let form = CsvForm { terminal: out.terminal, ..CsvForm::default() };
    let objects = || records.iter().filter_map(Value::as_object);
    let Some(first) = objects().next() else { return Ok(()) };
    form.line(out, first.keys().map(|key| Some(key.as_str())))?;
    for object in objects() {
        let cells = first.keys().map(|key| match object.get(key) {
            None | Some(Value::Null) => None,
            Some(Value::String(text)) => Some(text.clone()),
            Some(other) => Some(other.to_string()),
        });
        let cells: Vec<Option<String>> = cells.collect();
        form.line(out, cells.iter().map(Option::as_deref))?;
    }
    Ok(())
}

/// The object with these keys in front.
pub(crate) fn with_keys<const N: usize>(keys: [(&str, Value); N], object: &Value) -> Value {
    let mut out: Map<String, Value> =
        keys.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
    out.extend(object.as_object().into_iter().flatten().map(|(k, v)| (k.clone(), v.clone())));
    Value::Object(out)
}

impl Section {
    /// A table with these headers.
    pub(crate) fn new(title: impl Into<String>, headers: &[&'static str]) -> Self {
        let headers = headers.iter().map(|header| Cow::Borrowed(*header)).collect();
        Self { title: title.into(), headers, rows: Vec::new(), expendable: &[] }
    }

    /// The same with these rows.
    pub(crate) fn with(mut self, rows: Vec<Vec<String>>) -> Self {
        self.rows = rows;
        self
    }

    /// The same with columns that a narrow screen leaves out, the least important first.
    pub(crate) fn with_expendable(mut self, headers: &'static [&'static str]) -> Self {
        self.expendable = headers;
        self
    }

    /// Prints the columns that are not empty, and on a narrow screen those that matter most.
    fn print(&self, style: Style, out: &mut Sink) -> Result<()> {
        let mut shown: Vec<usize> = (0..self.headers.len()).filter(|i| self.is_used(*i)).collect();
        let mut left_out = Vec::new();
        for name in self.expendable {
            if style.screen().is_none_or(|screen| self.wanted_width(&shown) <= screen) {
                break;
            }
            let before = shown.len();
            shown.retain(|i| self.header(*i).0 != *name);
            left_out.extend((shown.len() < before).then_some(*name));
        }
        let columns = shown.iter().map(|i| {
            let (name, align) = self.header(*i);
            // Of a report, all columns are wanted.
            let least = if align == Align::Right { 30 } else { 10 };
            let is_path = matches!(name, "column" | "file");
            Column { name: name.to_owned(), type_name: String::new(), align, least, is_path }
        });
        let mut table = Table::new(style, columns.collect());
        for row in &self.rows {
            let cells = shown.iter().map(|i| row.get(*i).cloned().unwrap_or_default());
            table.row(out, cells.map(Cell::Text).collect())?;
        }
        table.end(out)?;
        if !left_out.is_empty() {
            writeln!(out, "left out: {}; --wide or --vertical shows all", left_out.join(", "))?;
        }
        Ok(())
    }

    fn header(&self, i: usize) -> (&str, Align) {
        let header = self.headers.get(i).map_or("", |header| header);
        match header.strip_prefix('>') {
            Some(name) => (name, Align::Right),
            None => (header, Align::Left),
        }
    }

    fn is_used(&self, i: usize) -> bool {
        self.rows.is_empty()
            || self.rows.iter().any(|row| row.get(i).is_some_and(|cell| !cell.is_empty()))
    }

    /// The width at which these columns say enough: numbers whole, texts up to 24 characters,
    /// which is a date with its time of day, or the ends of a path.
    fn wanted_width(&self, shown: &[usize]) -> usize {
        let of_column = |i: &usize| {
            let (name, align) = self.header(*i);
            let cells = self.rows.iter().filter_map(|row| row.get(*i)).map(|cell| width(cell));
            let widest = cells.max().unwrap_or_default();
            let most = if align == Align::Right { usize::MAX } else { 24 };
            // The frame: `│ ` and ` `.
            widest.min(most).max(width(name)) + 3
        };
        shown.iter().map(of_column).sum::<usize>() + 1
    }
}
