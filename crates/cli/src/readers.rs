//! `readers` says which readers open a file, and what stands in the way of the others.

use std::collections::BTreeMap;

use marquetry::TargetReader;
use marquetry::readers::{ReaderReport, Verdict, readers_of};
use serde::Serialize;

use crate::args::{Global, ReadersOf};
use crate::failure::{Failure, Result, after_printing};
use crate::input;
use crate::report::{self, Column, Report, ReportMemory, Tables};

#[derive(Serialize)]
struct ReadersReport {
    files: Vec<FileOfReaders>,
    #[serde(skip)]
    by_column: bool,
}

#[derive(Serialize)]
struct FileOfReaders {
    file: String,
    readers: Vec<OneReader>,
}

/// How a reader reads a file.
#[derive(Serialize)]
struct OneReader {
    reader: &'static str,
    version: &'static str,
    since: Option<String>,
    #[serde(skip)]
    title: String,
    reads_all: bool,
    refuses_file: Option<WholeFile>,
    columns: Vec<OneColumn>,
}

/// Why a file is not opened.
#[derive(Serialize)]
struct WholeFile {
    column: Option<String>,
    reason: String,
}

/// How a reader reads a column.
#[derive(Serialize)]
struct OneColumn {
    column: String,
    verdict: &'static str,
    detail: Option<String>,
}

/// Prints what each reader makes of each file.
pub(crate) fn run(command: &ReadersOf, global: &Global) -> Result<()> {
    let parsed = command.wanted.iter().map(|name| name.parse::<TargetReader>());
    let wanted: Vec<TargetReader> = parsed.collect::<Result<_, _>>()?;
    let (mut memory, mut files, mut missing) = (ReportMemory::new(global), Vec::new(), Vec::new());
    for path in input::paths(&command.files.files)? {
        let reader = input::open(&path, global)?;
        let found = readers_of(reader.metadata()).map_err(|e| e.at_file(path.as_str()))?;
        let asked = |of: &&ReaderReport| wanted.is_empty() || wanted.contains(&of.reader);
        let readers: Vec<OneReader> = found.iter().filter(asked).map(OneReader::new).collect();
        for of in readers.iter().filter(|of| !of.reads_all && !wanted.is_empty()) {
            missing.push(format!("{path}: {} does not read it: {}", of.title, of.first_reason()));
        }
        let texts = readers.iter().flat_map(|of| &of.columns).map(OneColumn::bytes);
        let inside = path.len() + texts.sum::<usize>();
        let file = FileOfReaders { file: path.clone(), readers };
        memory.take(&path, &file, inside)?;
        files.push(file);
    }
    let by_column = global.verbose > 0;
    let verdict = if missing.is_empty() { Ok(()) } else { Err(Failure::Found(missing)) };
    after_printing(report::print(&ReadersReport { files, by_column }, global), verdict)
}

impl OneReader {
    fn new(report: &ReaderReport) -> Self {
        let columns = report.columns.iter().map(|of| {
            let (verdict, detail) = match &of.verdict {
                Verdict::Reads => ("reads", None),
                Verdict::ReadsAs(what) => ("reads as", Some(what)),
                Verdict::ReadsIf(what) => ("reads if given", Some(what)),
                Verdict::Refuses(reason) => ("refuses", Some(reason)),
                _ => ("unknown", None),
            };
            let detail = detail.map(|text| text.clone().into_owned());
            OneColumn { column: of.path.clone(), verdict, detail }
        });
        let refusal = report.refuses_file.as_ref();
        Self {
            reader: report.reader.name(),
            version: report.reader.version(),
            since: report.since.clone(),
            title: report.reader.to_string(),
            reads_all: report.reads_all(),
            refuses_file: refusal.map(|of| WholeFile {
                column: of.column.clone(),
                reason: of.reason.clone().into_owned(),
            }),
            columns: columns.collect(),
        }
    }

    /// The first obstacle, in words.
    fn first_reason(&self) -> String {
        let of_column = |column: &str, reason: &str| format!("column {column}: {reason}");
        if let Some(WholeFile { column, reason }) = &self.refuses_file {
            return column.as_ref().map_or_else(|| reason.clone(), |of| of_column(of, reason));
        }
        let refused = self.columns.iter().find(|of| of.verdict == "refuses");
        refused.map_or_else(String::new, |of| {
            of_column(&of.column, of.detail.as_deref().unwrap_or_default())
        })
    }

    /// How many columns are read.
    fn reads(&self) -> String {
        let all = self.columns.len();
        let read = self.columns.iter().filter(|of| of.verdict != "refuses").count();
        match () {
            () if self.refuses_file.is_some() => "not at all".to_owned(),
            () if read == all => "all columns".to_owned(),
            () => format!("{read} of {all} columns"),
        }
    }

    /// The lines of the table: what stands in the way, and the columns.
    fn lines(&self) -> Vec<ReaderLine> {
        let mut lines = Vec::new();
        if let Some(WholeFile { column, reason }) = &self.refuses_file {
            let columns = column.clone().unwrap_or_default();
            lines.push(ReaderLine { columns, why: reason.clone(), ..ReaderLine::default() });
        } else {
            let mut of_reasons: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
            for column in &self.columns {
                if let Some(detail) = &column.detail {
                    of_reasons.entry((column.verdict, detail)).or_default().push(&column.column);
                }
            }
            // The refusals first.
            let in_order = ["refuses", "reads if given", "reads as"].into_iter();
            for wanted in in_order {
                let of = of_reasons.iter().filter(|((verdict, _), _)| *verdict == wanted);
                lines.extend(of.map(|((verdict, detail), columns)| ReaderLine {
                    columns: few(columns),
                    why: why(verdict, detail),
                    ..ReaderLine::default()
                }));
            }
        }
        if lines.is_empty() {
            lines.push(ReaderLine::default());
        }
        if let Some(first) = lines.first_mut() {
            first.reader = self.title.clone();
            first.reads = self.reads();
            if self.refuses_file.is_none() {
                first.since = self.since.clone().unwrap_or_default();
            }
        }
        lines
    }
}

impl OneColumn {
    /// Bytes of the texts.
    fn bytes(&self) -> usize {
        size_of::<Self>() + self.column.len() + self.detail.as_ref().map_or(0, String::len)
    }
}

/// The words for a verdict.
fn why(verdict: &str, detail: &str) -> String {
    match verdict {
        "reads as" => format!("as {detail}"),
        "reads if given" => format!("if given {detail}"),
        _ => detail.to_owned(),
    }
}

/// The first names, and how many more there are.
fn few(names: &[&str]) -> String {
    const SHOWN: usize = 3;
    let shown = names.iter().take(SHOWN).copied().collect::<Vec<_>>().join(", ");
    match names.len().checked_sub(SHOWN).filter(|more| *more > 0) {
        Some(more) => format!("{shown} and {more} more"),
        None => shown,
    }
}

/// A line of the tables.
#[derive(Default)]
struct ReaderLine {
    reader: String,
    /// The oldest version that was tried and reads it.
    since: String,
    reads: String,
    columns: String,
    why: String,
}

impl FileOfReaders {
    /// The lines of the table by columns: readers of the same verdict together.
    fn by_column(&self) -> Vec<ReaderLine> {
        let mut lines = Vec::new();
        let columns = self.readers.first().map_or(0, |of| of.columns.len());
        for column in 0..columns {
            let mut groups: Vec<(String, Vec<&str>)> = Vec::new();
            let mut name = String::new();
            for of in &self.readers {
                let Some(OneColumn { column, verdict, detail }) = of.columns.get(column) else {
                    continue;
                };
                name.clone_from(column);
                let text = match (&of.refuses_file, detail) {
                    (Some(_), _) => format!("not at all: {}", of.first_reason()),
                    (None, Some(detail)) if *verdict == "refuses" => format!("no: {detail}"),
                    (None, Some(detail)) => why(verdict, detail),
                    (None, None) => "reads".to_owned(),
                };
                match groups.iter_mut().find(|(known, _)| *known == text) {
                    Some((_, readers)) => readers.push(of.reader),
                    None => groups.push((text, vec![of.reader])),
                }
            }
            for (i, (why, readers)) in groups.into_iter().enumerate() {
                let columns = if i == 0 { name.clone() } else { String::new() };
                let reader = match readers.len() == self.readers.len() {
                    true => "all".to_owned(),
                    false => readers.join(", "),
                };
                lines.push(ReaderLine { reader, columns, why, ..ReaderLine::default() });
            }
        }
        lines
    }
}

impl Report for ReadersReport {
    const COMMAND: &'static str = "readers";

    fn lines(&self) -> impl Iterator<Item = impl Serialize> {
        #[derive(Serialize)]
        struct Verdicts<'a> {
            file: &'a str,
            reader: &'static str,
            version: &'static str,
            opens: bool,
            #[serde(flatten)]
            column: &'a OneColumn,
        }
        self.files.iter().flat_map(|FileOfReaders { file, readers }| {
            readers.iter().flat_map(move |of| {
                of.columns.iter().map(move |column| Verdicts {
                    file,
                    reader: of.reader,
                    version: of.version,
                    opens: of.refuses_file.is_none(),
                    column,
                })
            })
        })
    }

    fn tables(&self, out: &mut Tables<'_>) -> Result<()> {
        for file in &self.files {
            if self.by_column {
                let columns = [
                    Column::text("column", |line: &ReaderLine| line.columns.clone()),
                    Column::text("readers", |line| line.reader.clone()),
                    Column::text("what they make of it", |line| line.why.clone()),
                ];
                out.show(&file.file, &columns, &file.by_column(), &[])?;
                continue;
            }
            let columns = [
                Column::text("reader", |line: &ReaderLine| line.reader.clone()),
                Column::text("since", |line| line.since.clone()),
                Column::text("reads", |line| line.reads.clone()),
                Column::text("columns", |line| line.columns.clone()),
                Column::prose("what stands in the way", |line| line.why.clone()),
            ];
            let lines: Vec<ReaderLine> = file.readers.iter().flat_map(OneReader::lines).collect();
            out.show(&file.file, &columns, &lines, &[])?;
        }
        Ok(())
    }
}
