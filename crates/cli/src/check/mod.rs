//! `check` recomputes what files state, and reports each lie with its place.

mod contract;
pub(crate) mod sarif;

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use marquetry::Threads;
use marquetry::check::{CheckLevel, CheckReport, Checker, Finding, Severity};
use serde::Serialize;

use self::contract::Contract;
use crate::args::{Check, Format, Global};
use crate::failure::{Failure, Result};
use crate::report::{self, Column, Report, ReportMemory, Tables};
use crate::{input, keys, sniff};

/// Checks each of the files.
pub(crate) fn run(command: &Check, global: &Global) -> Result<()> {
    let paths = input::paths(&command.files.files)?;
    let mut memory = ReportMemory::new(global);
    let contract = command.contract.as_deref().map(Contract::read).transpose()?;
    let each = |path: &str| checked(path, command, global, contract.as_ref(), &mut memory);
    let (files, end) = input::each_readable(&paths, global, each)?;
    let failed: Vec<String> = files.iter().filter_map(CheckedFile::failure).collect();
    let report = CheckedFiles { files };
    match global.format {
        // The exit code says it all.
        None if global.quiet && global.output.is_none() => {}
        Some(Format::Sarif) => sarif::print(&report, global)?,
        _ => report::print(&report, global)?,
    }
    if failed.is_empty() { end } else { Err(Failure::Found(failed)) }
}

#[derive(Serialize)]
struct CheckedFiles {
    files: Vec<CheckedFile>,
}

/// A file, and what is wrong with it.
#[derive(Serialize)]
struct CheckedFile {
    file: String,
    level: &'static str,
    rows: u64,
    row_groups: usize,
    chunks: u64,
    bytes_read: u64,
    errors: u64,
    warnings: u64,
    notes: u64,
    /// Findings that are counted, and not listed.
    left_out: u64,
    findings: Vec<FindingRecord>,
}

/// A finding, as it is printed.
#[derive(Serialize)]
struct FindingRecord {
    severity: &'static str,
    code: Cow<'static, str>,
    row_group: Option<usize>,
    column: Option<String>,
    /// The number of a data page, or that it is the dictionary page.
    page: Option<PageName>,
    offset: Option<u64>,
    stated: Option<String>,
    found: Option<String>,
    message: String,
}

#[derive(Serialize, Clone, Copy)]
#[serde(untagged)]
enum PageName {
    Number(usize),
    Dictionary(&'static str),
}

/// Findings of a file that are listed, at most.
const MAX_LISTED: usize = 10_000;

fn checked(
    path: &str,
    command: &Check,
    global: &Global,
    contract: Option<&Contract>,
    memory: &mut ReportMemory,
) -> Result<CheckedFile> {
    let source = input::source(path, global)?;
    if let Some(failure) = sniff::other_format(&source, path) {
        return Err(failure);
    }
    let mut checker =
        Checker::new(source).level(command.level.into()).limits(input::limits(global));
    if let Some(keys) = keys::decryption(global, path)? {
        checker = checker.keys(keys);
    }
    if let Some(threads) = global.threads {
        checker = checker.threads(Threads::Exactly(threads));
    }
    if let Some(folder) = summary_folder(path) {
        checker = checker.files_below(folder);
    }
    let mut file = CheckedFile::new(path, command.level.into());
    let least = Severity::from(command.severity);
    let mut list = Listed { file: &mut file, memory };
    let report = checker.run(|finding| {
        list.file.count(finding.severity());
        if finding.severity() >= least {
            list.push(FindingRecord::new(&finding));
        }
    });
    let report = report.map_err(|e| e.at_file(path))?;
    if let Some(contract) = contract {
        // What keeps the file from being read was found.
        if let Ok(reader) = input::open(path, global) {
            let checked = contract.check(&reader, &mut |record| {
                list.file.errors += 1;
                list.push(record);
            });
            checked.map_err(|e| e.at_file(path))?;
        }
    }
    file.add(report);
    Ok(file)
}

/// The findings of a file, as far as there is memory for them.
struct Listed<'a> {
    file: &'a mut CheckedFile,
    memory: &'a mut ReportMemory,
}

impl Listed<'_> {
    fn push(&mut self, record: FindingRecord) {
        let is_listed = self.file.findings.len() < MAX_LISTED
            && self.memory.take(&self.file.file, &record, record.heap_bytes()).is_ok();
        match is_listed {
            true => self.file.findings.push(record),
            false => self.file.left_out += 1,
        }
    }
}

/// The folder whose files a summary is of.
fn summary_folder(path: &str) -> Option<PathBuf> {
    let path = Path::new(path);
    let is_summary = path.file_name().is_some_and(|name| name == "_metadata");
    let here = || Path::new(".");
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    is_summary.then(|| folder.unwrap_or_else(here).to_owned())
}

impl CheckedFile {
    fn new(path: &str, level: CheckLevel) -> Self {
        Self {
            file: path.to_owned(),
            level: level.name(),
            rows: 0,
            row_groups: 0,
            chunks: 0,
            bytes_read: 0,
            errors: 0,
            warnings: 0,
            notes: 0,
            left_out: 0,
            findings: Vec::new(),
        }
    }

    fn count(&mut self, severity: Severity) {
        match severity {
            Severity::Error => self.errors += 1,
            Severity::Warning => self.warnings += 1,
            _ => self.notes += 1,
        }
    }

    fn add(&mut self, report: CheckReport) {
        (self.rows, self.row_groups) = (report.rows, report.row_groups);
        (self.chunks, self.bytes_read) = (report.chunks, report.bytes_read);
        self.left_out += report.left_out;
    }

    /// The line on standard error, if there are errors.
    fn failure(&self) -> Option<String> {
        (self.errors > 0).then(|| format!("{}: {}", self.file, self.counts()))
    }

    fn counts(&self) -> String {
        let of = |n: u64, what: &str| match n {
            0 => None,
            1 => Some(format!("1 {what}")),
            _ => Some(format!("{n} {what}s")),
        };
        let counts =
            [of(self.errors, "error"), of(self.warnings, "warning"), of(self.notes, "note")];
        let counts: Vec<String> = counts.into_iter().flatten().collect();
        if counts.is_empty() { "nothing found".to_owned() } else { counts.join(", ") }
    }
}

impl FindingRecord {
    fn new(finding: &Finding) -> Self {
        let at = &finding.at;
        let page = match at.is_dictionary_page {
            true => Some(PageName::Dictionary("dictionary")),
            false => at.page.map(PageName::Number),
        };
        Self {
            severity: finding.severity().name(),
            code: Cow::Borrowed(finding.kind.code()),
            row_group: at.row_group,
            column: at.column.as_deref().map(str::to_owned),
            page,
            offset: at.offset,
            stated: finding.stated.clone(),
            found: finding.found.clone(),
            message: finding.message.clone(),
        }
    }

    fn heap_bytes(&self) -> usize {
        let len = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        len(&self.column) + len(&self.stated) + len(&self.found) + self.message.len()
    }
}

impl PageName {
    fn text(self) -> String {
        match self {
            Self::Number(number) => number.to_string(),
            Self::Dictionary(name) => name.to_owned(),
        }
    }
}

impl Report for CheckedFiles {
    const COMMAND: &'static str = "check";

    fn lines(&self) -> impl Iterator<Item = impl Serialize> {
        #[derive(Serialize)]
        struct FindingOfFile<'a> {
            file: &'a str,
            #[serde(flatten)]
            finding: &'a FindingRecord,
        }
        self.files.iter().flat_map(|CheckedFile { file, findings, .. }| {
            findings.iter().map(move |finding| FindingOfFile { file, finding })
        })
    }

    fn tables(&self, out: &mut Tables<'_>) -> Result<()> {
        let columns = [
            Column::text("severity", |of: &FindingRecord| of.severity.to_owned()),
            Column::text("finding", |of| of.code.clone().into_owned()),
            Column::number("row group", |of| {
                of.row_group.map_or_else(String::new, |group| group.to_string())
            }),
            Column::text("column", |of| of.column.clone().unwrap_or_default()),
            Column::text("page", |of| of.page.map_or_else(String::new, PageName::text)),
            Column::number("offset", |of| {
                of.offset.map_or_else(String::new, |offset| offset.to_string())
            }),
            Column::prose("message", |of| of.message.clone()),
        ];
        for file in &self.files {
            let is_note = |finding: &FindingRecord| finding.severity == Severity::Note.name();
            let hides_notes = file.notes > 0 && !file.findings.iter().any(is_note);
            let hint = if hides_notes { "; --severity note lists notes" } else { "" };
            let title = format!("{}: level {}, {}{hint}", file.file, file.level, file.counts());
            if file.findings.is_empty() {
                out.line(&title)?;
            } else {
                out.show(&title, &columns, &file.findings, &["offset", "severity"])?;
            }
        }
        Ok(())
    }
}
