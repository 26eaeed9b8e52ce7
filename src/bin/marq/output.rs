//! Where a command writes to, and the forms that a report can take.

use std::borrow::Cow;
use std::fs::File;
use std::io::{BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use serde_json::{Value, json};

use crate::args::{Format, Global};
use crate::failure::Result;

/// What a command found out: the same as JSON, and as tables for people.
pub(crate) struct Report {
    /// Name of the command; `marq/1/NAME` is the name of its JSON form.
    pub(crate) command: &'static str,
    /// The JSON object.
    pub(crate) json: Value,
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
    /// Prints the report in the form that the flags, or the place that it goes to, ask for.
    pub(crate) fn print(&self, global: &Global) -> Result<()> {
        let mut out = Sink::open(global)?;
        let format =
            global.format.unwrap_or(if out.terminal { Format::Table } else { Format::Json });
        match format {
            Format::Json => writeln!(out, "{:#}", self.named())?,
            Format::Jsonl => writeln!(out, "{}", self.named())?,
            Format::Csv => {
                for section in self.sections.iter().filter(|section| !section.headers.is_empty()) {
                    let headers: Vec<String> = section
                        .headers
                        .iter()
                        .map(|h| h.trim_start_matches('>').to_owned())
                        .collect();
                    for row in std::iter::once(&headers).chain(&section.rows) {
                        writeln!(
                            out,
                            "{}",
                            row.iter().map(|cell| csv(cell)).collect::<Vec<_>>().join(",")
                        )?;
                    }
                }
            }
            Format::Table | Format::Md => {
                for (i, section) in self.sections.iter().enumerate() {
                    if i > 0 {
                        writeln!(out)?;
                    }
                    if !section.title.is_empty() {
                        writeln!(
                            out,
                            "{}{}",
                            if format == Format::Md { "### " } else { "" },
                            section.title
                        )?;
                    }
                    writeln!(out, "{}", section.table(format))?;
                }
            }
        }
        out.close()
    }

    fn named(&self) -> Value {
        let mut named = json!({ "schema": format!("marq/1/{}", self.command) });
        if let (Some(named), Some(json)) = (named.as_object_mut(), self.json.as_object()) {
            named.extend(json.clone());
        }
        named
    }
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

    fn table(&self, format: Format) -> Table {
        let mut table = Table::new();
        table.load_style(if format == Format::Md {
            presets::ASCII_MARKDOWN
        } else {
            presets::UTF8_FULL_CONDENSED
        });
        if format == Format::Table {
            table.set_content_arrangement(ContentArrangement::Dynamic);
            if let Some(width) =
                std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok())
            {
                table.set_width(width);
            }
        }
        table.set_header(self.headers.iter().map(|header| header.trim_start_matches('>')));
        for row in &self.rows {
            table.add_row(row);
        }
        for (i, header) in self.headers.iter().enumerate() {
            if header.starts_with('>')
                && let Some(column) = table.column_mut(i)
            {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        table
    }
}

fn csv(cell: &str) -> String {
    if cell.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", cell.replace('"', "\"\""))
    } else {
        cell.to_owned()
    }
}

/// Where the output goes: standard output, or a file that appears when it is whole.
pub(crate) struct Sink {
    out: Box<dyn Write>,
    /// Whether a person reads it.
    pub(crate) terminal: bool,
    /// The file that is written, and the one that it becomes.
    rename: Option<(PathBuf, PathBuf)>,
}

impl Sink {
    /// Opens what `-o` names; `-` and nothing are standard output.
    pub(crate) fn open(global: &Global) -> Result<Self> {
        match global.output.as_deref().filter(|path| *path != Path::new("-")) {
            None => {
                let stdout = std::io::stdout();
                let terminal = stdout.is_terminal();
                Ok(Self {
                    out: Box::new(BufWriter::with_capacity(1 << 16, stdout)),
                    terminal,
                    rename: None,
                })
            }
            Some(path) if is_special(path) => {
                let file = File::options().write(true).open(path)?;
                let terminal = file.is_terminal();
                Ok(Self { out: Box::new(BufWriter::new(file)), terminal, rename: None })
            }
            Some(path) => {
                let mut beside = path.as_os_str().to_owned();
                beside.push(format!(".{}.part", std::process::id()));
                let beside = PathBuf::from(beside);
                let file = File::create(&beside)?;
                let out = Box::new(BufWriter::with_capacity(1 << 20, file));
                Ok(Self { out, terminal: false, rename: Some((beside, path.to_owned())) })
            }
        }
    }

    /// Ends the output: only now does a file have its name.
    pub(crate) fn close(mut self) -> Result<()> {
        self.out.flush()?;
        if let Some((from, to)) = self.rename.take() {
            File::open(&from)?.sync_all()?;
            std::fs::rename(from, to)?;
        }
        Ok(())
    }
}

/// Whether a path is a device or a pipe, which is written to and not replaced.
pub(crate) fn is_special(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir())
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.out.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.out.flush()
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        // Not closed: what is there is not whole, and does not stay.
        if let Some((from, _)) = self.rename.take() {
            let _ = std::fs::remove_file(from);
        }
    }
}

/// Bytes for people: 1.5 MiB; exact with --raw.
pub(crate) fn bytes(n: u64, global: &Global) -> String {
    if global.raw || n < 1024 {
        return if global.raw { n.to_string() } else { format!("{n} B") };
    }
    #[expect(clippy::cast_precision_loss, reason = "shown with one digit behind the point")]
    let mut value = n as f64;
    let mut unit = "B";
    for larger in ["KiB", "MiB", "GiB", "TiB"] {
        if value < 1024.0 {
            break;
        }
        value /= 1024.0;
        unit = larger;
    }
    format!("{value:.1} {unit}")
}

/// A count for people: 1 234 567; exact with --raw.
pub(crate) fn count(n: u64, global: &Global) -> String {
    let digits = n.to_string();
    if global.raw {
        return digits;
    }
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(' ');
        }
        out.push(digit);
    }
    out
}

/// A share in per cent.
pub(crate) fn share(part: u64, whole: u64) -> String {
    if whole == 0 {
        return "–".to_owned();
    }
    #[expect(clippy::cast_precision_loss, reason = "shown with one digit behind the point")]
    let percent = part as f64 * 100.0 / whole as f64;
    format!("{percent:.1} %")
}
