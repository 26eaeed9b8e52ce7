//! Prints reports: what a command found is one record, from which JSON, CSV and tables come.

use std::io::Write;

use marquetry::Limits;
use serde::Serialize;

use crate::args::{Format, Global};
use crate::escape::{JsonEscaper, escape};
use crate::failure::{Failure, Result};
use crate::json;
use crate::output::{self, Sink};
use crate::printer::csv::CsvForm;
use crate::table::{Align, Cell, Layout, Style, Table, TableColumn, markdown, width};

/// The findings of a command. Their JSON is that of the record, with the name of its schema in
/// front.
pub(crate) trait Report: Serialize {
    /// Name of the command; `marq/1/NAME` is the name of the schema.
    const COMMAND: &'static str;

    /// The lines of CSV: objects with the same keys.
    fn lines(&self) -> impl Iterator<Item = impl Serialize>;

    /// Prints the tables.
    fn tables(&self, out: &mut Tables<'_>) -> Result<()>;
}

/// Prints a report in the format of the flags, or the default for the output.
pub(crate) fn print<R: Report>(report: &R, global: &Global) -> Result<()> {
    #[derive(Serialize)]
    struct Named<'a, R> {
        schema: String,
        #[serde(flatten)]
        report: &'a R,
    }
    let mut out = Sink::open(global)?;
    let is_table = out.terminal || global.wide || global.vertical;
    let default = if is_table { Format::Table } else { Format::Json };
    let format = global.format.unwrap_or(default);
    match format {
        Format::Json | Format::Jsonl => {
            let schema = format!("marq/1/{}", R::COMMAND);
            print_json(&mut out, &Named { schema, report }, format == Format::Json)?;
        }
        Format::Sarif => return Err(Failure::Usage("-f sarif is for check and doctor".to_owned())),
        Format::Csv => print_csv(&mut out, report.lines())?,
        Format::Table | Format::Md => {
            let style = Style::new(format, global, &out);
            let (is_markdown, is_first) = (format == Format::Md, true);
            report.tables(&mut Tables { out: &mut out, style, is_markdown, global, is_first })?;
        }
    }
    out.close()?;
    Ok(())
}

/// Prints a record as JSON, on one line or on several; escaped on a terminal.
pub(crate) fn print_json(out: &mut Sink, record: &impl Serialize, is_pretty: bool) -> Result<()> {
    // Not held as text as well.
    let written = match (out.terminal, is_pretty) {
        (false, true) => serde_json::to_writer_pretty(&mut *out, record),
        (false, false) => serde_json::to_writer(&mut *out, record),
        (true, true) => serde_json::to_writer_pretty(JsonEscaper::new(&mut *out), record),
        (true, false) => serde_json::to_writer(JsonEscaper::new(&mut *out), record),
    };
    written.map_err(std::io::Error::from)?;
    writeln!(out)?;
    Ok(())
}

/// Prints objects as CSV: names once, numbers plain, lists as JSON.
fn print_csv(out: &mut Sink, records: impl Iterator<Item = impl Serialize>) -> Result<()> {
    let form = CsvForm { terminal: out.terminal, ..CsvForm::default() };
    let mut names: Vec<String> = Vec::new();
    for record in records {
        let text = serde_json::to_string(&record).map_err(std::io::Error::from)?;
        let members = json::members(&text).map_err(std::io::Error::from)?;
        if names.is_empty() {
            names = members.iter().map(|(name, _)| name.to_string()).collect();
            form.line(out, names.iter().map(|name| Some(name.as_str())))?;
        }
        let cells = names.iter().map(|name| {
            let (_, value) = members.iter().find(|(known, _)| known == name)?;
            json::cell(value)
        });
        let cells: Vec<_> = cells.collect();
        form.line(out, cells.iter().map(Option::as_deref))?;
    }
    Ok(())
}

/// A column of a table: its header, and what it shows of each record.
pub(crate) struct Column<'a, T> {
    header: &'a str,
    content: CellContent<T>,
}

/// The content of a column; numbers are aligned right.
enum CellContent<T> {
    Text(fn(&T) -> String),
    /// Sentences, which go on on the next line where they are too long: the last column.
    Prose(fn(&T) -> String),
    Number(fn(&T) -> String),
    Count(fn(&T) -> Option<u64>),
    Bytes(fn(&T) -> Option<u64>),
}

impl<'a, T> Column<'a, T> {
    pub(crate) const fn text(header: &'a str, of: fn(&T) -> String) -> Self {
        Self { header, content: CellContent::Text(of) }
    }

    pub(crate) const fn prose(header: &'a str, of: fn(&T) -> String) -> Self {
        Self { header, content: CellContent::Prose(of) }
    }

    /// Numbers that are text already.
    pub(crate) const fn number(header: &'a str, of: fn(&T) -> String) -> Self {
        Self { header, content: CellContent::Number(of) }
    }

    pub(crate) const fn count(header: &'a str, of: fn(&T) -> Option<u64>) -> Self {
        Self { header, content: CellContent::Count(of) }
    }

    pub(crate) const fn bytes(header: &'a str, of: fn(&T) -> Option<u64>) -> Self {
        Self { header, content: CellContent::Bytes(of) }
    }

    fn align(&self) -> Align {
        let is_text = matches!(self.content, CellContent::Text(_) | CellContent::Prose(_));
        if is_text { Align::Left } else { Align::Right }
    }

    fn cell(&self, record: &T, global: &Global) -> String {
        match self.content {
            CellContent::Text(of) | CellContent::Prose(of) | CellContent::Number(of) => of(record),
            CellContent::Count(of) => {
                of(record).map(|n| output::count(n, global)).unwrap_or_default()
            }
            CellContent::Bytes(of) => {
                of(record).map(|n| output::bytes(n, global)).unwrap_or_default()
            }
        }
    }

    fn for_table(&self) -> TableColumn {
        let (name, align) = (self.header.to_owned(), self.align());
        // A report shows all columns.
        let least = match self.content {
            CellContent::Text(_) => 10,
            CellContent::Prose(_) => 20,
            _ => 30,
        };
        let is_path = matches!(self.header, "column" | "file");
        TableColumn { name, type_name: String::new(), align, least, is_path }
    }

    /// The width at which the column is useful: numbers whole, texts up to 24 characters, which is
    /// a date with its time of day, or the ends of a path.
    fn wanted_width(&self, widest: usize) -> usize {
        let most = if self.align() == Align::Right { usize::MAX } else { 24 };
        // The frame: `│ ` and ` `.
        widest.min(most).max(width(self.header)) + 3
    }
}

/// Where the tables of a report go.
pub(crate) struct Tables<'a> {
    out: &'a mut Sink,
    style: Style,
    is_markdown: bool,
    pub(crate) global: &'a Global,
    is_first: bool,
}

impl Tables<'_> {
    /// Where text goes that is no table, and how it looks.
    pub(crate) fn raw(&mut self) -> (&mut Sink, Style) {
        (self.out, self.style)
    }

    /// Prints a table of the columns that are not empty. On a narrow screen the `expendable` ones
    /// are left out, the first of them first.
    pub(crate) fn show<'r, T: 'r>(
        &mut self,
        title: &str,
        columns: &[Column<'_, T>],
        records: impl IntoIterator<Item = &'r T>,
        expendable: &[&str],
    ) -> Result<()> {
        // The cells are made twice and not kept: all pages of a file may be listed.
        let records: Vec<&T> = records.into_iter().collect();
        let mut widest = vec![0; columns.len()];
        for record in &records {
            for (widest, column) in widest.iter_mut().zip(columns) {
                *widest = width(&column.cell(record, self.global)).max(*widest);
            }
        }
        let mut shown: Vec<(usize, &Column<'_, T>)> = widest
            .into_iter()
            .zip(columns)
            .filter(|(widest, _)| records.is_empty() || *widest > 0)
            .collect();
        let mut left_out = Vec::new();
        for name in expendable {
            let widths = shown.iter().map(|(widest, column)| column.wanted_width(*widest));
            let wanted = widths.sum::<usize>() + 1;
            if self.style.screen().is_none_or(|screen| wanted <= screen) {
                break;
            }
            let before = shown.len();
            shown.retain(|(_, column)| column.header != *name);
            left_out.extend((shown.len() < before).then_some(*name));
        }
        self.title(title)?;
        let headers = shown.iter().map(|(_, column)| column.for_table());
        let mut table = Table::new(self.style, headers.collect());
        let prose = self.prose_width(&shown);
        for record in records {
            let cells = shown.iter().map(|(_, column)| column.cell(record, self.global));
            let mut cells: Vec<String> = cells.collect();
            let mut more = Vec::new();
            if let (Some(width), Some(last)) = (prose, cells.last_mut()) {
                let mut lines = wrapped(&escape(last), width).into_iter();
                *last = lines.next().unwrap_or_default();
                more.extend(lines);
            }
            let before = cells.len().saturating_sub(1);
            table.row(self.out, cells.into_iter().map(Cell::Text).collect())?;
            for line in more {
                let blank = std::iter::repeat_n(String::new(), before);
                table.row(self.out, blank.chain([line]).map(Cell::Text).collect())?;
            }
        }
        table.end(self.out)?;
        if !left_out.is_empty() {
            let left_out = left_out.join(", ");
            writeln!(self.out, "left out: {left_out}; --wide or --vertical shows all")?;
        }
        Ok(())
    }

    /// The width at which sentences in the last column are broken, if they are too long: what is
    /// left for it where long columns are cut.
    fn prose_width<T>(&self, shown: &[(usize, &Column<'_, T>)]) -> Option<usize> {
        let screen = self.style.screen()?;
        let (widest, last) = shown.last()?;
        let natural = shown.iter().map(|(widest, column)| width(column.header).max(*widest));
        let natural: Vec<usize> = natural.collect();
        let least: Vec<usize> = shown.iter().map(|(_, column)| column.for_table().least).collect();
        let layout = Layout::fit(&natural, &least, screen);
        let (_, room) = layout.shown().last()?;
        (matches!(last.content, CellContent::Prose(_)) && *widest > room).then_some(room)
    }

    /// Prints a line that is no table.
    pub(crate) fn line(&mut self, text: &str) -> Result<()> {
        self.title(text)
    }

    /// Prints facts about a file, a line for each name.
    pub(crate) fn about(&mut self, file: &str, lines: &[(&str, String)]) -> Result<()> {
        let name = Column::text("file", |line: &(&str, String)| line.0.to_owned());
        self.show("", &[name, Column::prose(file, |line| line.1.clone())], lines, &[])
    }

    fn title(&mut self, title: &str) -> Result<()> {
        if !std::mem::take(&mut self.is_first) {
            writeln!(self.out)?;
        }
        let title = escape(title);
        match self.is_markdown {
            _ if title.is_empty() => {}
            true => writeln!(self.out, "### {}\n", markdown(&title))?,
            false => writeln!(self.out, "{title}")?,
        }
        Ok(())
    }
}

/// The text in lines of at most `columns`, broken between words; a longer word has a line.
fn wrapped(text: &str, columns: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if width(line) + 1 + width(word) <= columns => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// The memory that the records of a report may take together.
pub(crate) struct ReportMemory {
    limit: u64,
    left: u64,
}

impl ReportMemory {
    pub(crate) fn new(global: &Global) -> Self {
        let limit = global.mem.unwrap_or_else(|| Limits::default().memory_bytes);
        Self { limit, left: limit }
    }

    /// Counts a record of a file, which holds `inside` bytes beside itself.
    ///
    /// # Errors
    /// If it takes more memory than is left.
    pub(crate) fn take<T>(&mut self, file: &str, _record: &T, inside: usize) -> Result<()> {
        let bytes = size_of::<T>() + inside;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_are_broken_between_words() {
        assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
        assert_eq!(wrapped("a verylongword b", 5), ["a", "verylongword", "b"]);
        assert_eq!(wrapped("", 5), [""]);
        assert_eq!(wrapped("日本 日本", 8), ["日本", "日本"]);
    }
}
