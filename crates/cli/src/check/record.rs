//! The findings of a check, as they are printed.

use std::borrow::Cow;

use marquetry::check::{CheckLevel, CheckReport, Finding, Severity};
use serde::Serialize;

use crate::failure::Result;
use crate::report::{Column, Report, Tables};

#[derive(Serialize)]
pub(super) struct CheckedFiles {
    pub(super) files: Vec<CheckedFile>,
}

/// A file, and what is wrong with it.
#[derive(Serialize)]
pub(super) struct CheckedFile {
    pub(super) file: String,
    pub(super) level: &'static str,
    pub(super) rows: u64,
    pub(super) row_groups: usize,
    pub(super) chunks: u64,
    pub(super) bytes_read: u64,
    pub(super) errors: u64,
    pub(super) warnings: u64,
    pub(super) notes: u64,
    /// Findings that are counted, and not listed.
    pub(super) left_out: u64,
    pub(super) findings: Vec<FindingRecord>,
}

/// A finding, as it is printed.
#[derive(Serialize)]
pub(super) struct FindingRecord {
    pub(super) severity: &'static str,
    pub(super) code: Cow<'static, str>,
    pub(super) row_group: Option<usize>,
    pub(super) column: Option<String>,
    /// The number of a data page, or that it is the dictionary page.
    pub(super) page: Option<PageName>,
    pub(super) offset: Option<u64>,
    pub(super) stated: Option<String>,
    pub(super) found: Option<String>,
    pub(super) message: String,
}

#[derive(Serialize, Clone, Copy)]
#[serde(untagged)]
pub(super) enum PageName {
    Number(usize),
    Dictionary(&'static str),
}

impl CheckedFile {
    pub(super) fn new(path: &str, level: CheckLevel) -> Self {
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

    pub(super) fn count(&mut self, severity: Severity) {
        match severity {
            Severity::Error => self.errors += 1,
            Severity::Warning => self.warnings += 1,
            _ => self.notes += 1,
        }
    }

    pub(super) fn add(&mut self, report: CheckReport) {
        (self.rows, self.row_groups) = (report.rows, report.row_groups);
        (self.chunks, self.bytes_read) = (report.chunks, report.bytes_read);
        self.left_out += report.left_out;
    }

    /// The line on standard error, if there are errors.
    pub(super) fn failure(&self) -> Option<String> {
        (self.errors > 0).then(|| format!("{}: {}", self.file, self.counts()))
    }

    pub(super) fn counts(&self) -> String {
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
    pub(super) fn new(finding: &Finding) -> Self {
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

    pub(super) fn heap_bytes(&self) -> usize {
        let len = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        len(&self.column) + len(&self.stated) + len(&self.found) + self.message.len()
    }
}

impl PageName {
    pub(super) fn text(self) -> String {
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
