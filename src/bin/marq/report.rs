//! The result of a command, in its output formats.

use std::borrow::Cow;
use std::io::Write;

use serde_json::{Map, Value, json};

use crate::args::{Format, Global};
use crate::escape::{escape, escape_json};
use crate::failure::Result;
use crate::output::Sink;
use crate::printer::csv::CsvForm;
use crate::table::{Align, Cell, Column, Style, Table};

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

/// A table with a title.
pub(crate) struct Section {
    pub(crate) title: String,
    /// Headers; those that begin with `>` are of numbers, which are aligned to the right.
    pub(crate) headers: Vec<Cow<'static, str>>,
    pub(crate) rows: Vec<Vec<String>>,
}

impl Report {
    /// Prints the report in the format of the flags, or the default for the output.
    pub(crate) fn print(&self, global: &Global) -> Result<()> {
        let mut out = Sink::open(global)?;
        let table = out.terminal || global.wide || global.vertical;
        let format = global.format.unwrap_or(if table { Format::Table } else { Format::Json });
        match format {
            Format::Json => json_line(&mut out, &format!("{:#}", self.named()))?,
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

    fn named(&self) -> Value {
        let mut named = json!({ "schema": format!("marq/1/{}", self.command) });
        if let (Some(named), Some(json)) = (named.as_object_mut(), self.json.as_object()) {
            named.extend(json.clone());
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
    let form = CsvForm::default();
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
        Self { title: title.into(), headers, rows: Vec::new() }
    }

    /// The same with these rows.
    pub(crate) fn with(mut self, rows: Vec<Vec<String>>) -> Self {
        self.rows = rows;
        self
    }

    /// Prints the columns that are not empty.
    fn print(&self, style: Style, out: &mut Sink) -> Result<()> {
        let used = |i: usize| {
            self.rows.is_empty()
                || self.rows.iter().any(|row| row.get(i).is_some_and(|cell| !cell.is_empty()))
        };
        let columns = self.headers.iter().enumerate().filter(|(i, _)| used(*i));
        let columns = columns.map(|(_, header)| {
            let (name, align) = match header.strip_prefix('>') {
                Some(name) => (name, Align::Right),
                None => (&**header, Align::Left),
            };
            // Of a report, all columns are wanted.
            let least = if align == Align::Right { 30 } else { 10 };
            Column { name: name.to_owned(), type_name: String::new(), align, least }
        });
        let mut table = Table::new(style, columns.collect());
        for row in &self.rows {
            let cells = row.iter().enumerate().filter(|(i, _)| used(*i));
            table.row(out, cells.map(|(_, cell)| Cell::Text(cell.clone())).collect())?;
        }
        table.end(out)
    }
}
