//! [`PlanReport`]: what a rewrite does with the chunks of files, as a record.

use marquetry::rewrite::{ChunkMethod, PlannedChunks, RewritePlan};
use serde::Serialize;

use crate::failure::Result;
use crate::output;
use crate::report::{Column, Report, Tables};

/// The plan of one new file.
#[derive(Serialize)]
pub(crate) struct PlanReport {
    output: String,
    rows: u64,
    row_groups: usize,
    /// Whether the row groups are made anew, so that there will be others.
    regroups: bool,
    copied: ChunkTotal,
    copied_by_page: ChunkTotal,
    recompressed: ChunkTotal,
    encoded: ChunkTotal,
    /// Bytes of the first file that stay where they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    kept_bytes: Option<u64>,
    reasons: Vec<ReasonOfPlan>,
    files: Vec<FileOfPlan>,
    notes: Vec<String>,
}

#[derive(Serialize)]
struct ChunkTotal {
    chunks: usize,
    bytes: u64,
}

impl From<PlannedChunks> for ChunkTotal {
    fn from(planned: PlannedChunks) -> Self {
        Self { chunks: planned.chunks, bytes: planned.bytes }
    }
}

/// How chunks are made, and why.
#[derive(Serialize)]
struct ReasonOfPlan {
    method: &'static str,
    reason: String,
    chunks: usize,
    bytes: u64,
}

/// The part of a file that goes into the new one.
#[derive(Serialize)]
struct FileOfPlan {
    file: String,
    row_groups: usize,
    rows: u64,
    copied_bytes: u64,
    copied_by_page_bytes: u64,
    recompressed_bytes: u64,
    encoded_bytes: u64,
}

/// The names of methods in reports.
fn name(method: ChunkMethod) -> &'static str {
    match method {
        ChunkMethod::Bytes => "copied as it is",
        ChunkMethod::Pages => "page by page",
        ChunkMethod::Recompressed => "compressed again",
        ChunkMethod::Encoded => "encoded again",
        _ => "otherwise",
    }
}

impl PlanReport {
    pub(crate) fn new(paths: &[String], output: String, plan: RewritePlan) -> Self {
        let file = |(at, path): (usize, &String)| {
            let of_file = || plan.row_groups.iter().filter(move |group| group.file == at);
            let bytes = |method| of_file().map(|group| group.total(method).bytes).sum();
            FileOfPlan {
                file: path.clone(),
                row_groups: of_file().count(),
                rows: of_file().map(|group| group.rows).sum(),
                copied_bytes: bytes(ChunkMethod::Bytes),
                copied_by_page_bytes: bytes(ChunkMethod::Pages),
                recompressed_bytes: bytes(ChunkMethod::Recompressed),
                encoded_bytes: bytes(ChunkMethod::Encoded),
            }
        };
        let reasons = plan.by_reason().into_iter().map(|(method, reason, total)| ReasonOfPlan {
            method: name(method),
            reason: reason.to_string(),
            chunks: total.chunks,
            bytes: total.bytes,
        });
        let reasons = reasons.collect();
        Self {
            output,
            rows: plan.rows,
            row_groups: plan.row_groups.len(),
            regroups: plan.regroups,
            copied: plan.copied().into(),
            copied_by_page: plan.copied_by_page().into(),
            recompressed: plan.recompressed().into(),
            encoded: plan.encoded().into(),
            kept_bytes: None,
            reasons,
            files: paths.iter().enumerate().map(file).collect(),
            notes: plan.notes,
        }
    }
}

impl PlanReport {
    /// The same, with these bytes of the first file where they are.
    pub(crate) fn with_kept(self, kept_bytes: Option<u64>) -> Self {
        Self { kept_bytes, ..self }
    }
}

impl Report for PlanReport {
    const COMMAND: &'static str = "concat";

    fn lines(&self) -> impl Iterator<Item = impl Serialize> {
        self.files.iter()
    }

    fn tables(&self, out: &mut Tables<'_>) -> Result<()> {
        let global = out.global;
        let number = |n: u64| output::count(n, global);
        let bytes = |n: u64| output::bytes(n, global);
        let mut columns = vec![
            Column::text("file", |file: &FileOfPlan| file.file.clone()),
            Column::count("row groups", |file: &FileOfPlan| Some(file.row_groups as u64)),
            Column::count("rows", |file: &FileOfPlan| Some(file.rows)),
            Column::bytes("copied as it is", |file: &FileOfPlan| Some(file.copied_bytes)),
            Column::bytes("page by page", |file: &FileOfPlan| Some(file.copied_by_page_bytes)),
        ];
        if self.recompressed.chunks > 0 {
            let of = |file: &FileOfPlan| Some(file.recompressed_bytes);
            columns.push(Column::bytes("compressed again", of));
        }
        if self.encoded.chunks > 0 {
            columns
                .push(Column::bytes("encoded again", |file: &FileOfPlan| Some(file.encoded_bytes)));
        }
        out.show("", &columns, &self.files, &[])?;
        let why = [
            Column::text("what", |of: &ReasonOfPlan| of.method.to_owned()),
            Column::text("why", |of: &ReasonOfPlan| of.reason.clone()),
            Column::count("column chunks", |of: &ReasonOfPlan| Some(of.chunks as u64)),
            Column::bytes("bytes", |of: &ReasonOfPlan| Some(of.bytes)),
        ];
        out.show("", &why, &self.reasons, &[])?;
        let sum = |chunks: &ChunkTotal| match chunks.chunks {
            0 => "nothing".to_owned(),
            n => format!("{} column chunks, {}", number(n as u64), bytes(chunks.bytes)),
        };
        let row_groups = match self.regroups {
            true => format!("made anew, from {}", number(self.row_groups as u64)),
            false => number(self.row_groups as u64),
        };
        let mut lines = vec![
            ("rows", number(self.rows)),
            ("row groups", row_groups),
            ("copied as it is", sum(&self.copied)),
            ("page by page", sum(&self.copied_by_page)),
            ("compressed again", sum(&self.recompressed)),
            ("encoded again", sum(&self.encoded)),
        ];
        if let Some(kept) = self.kept_bytes {
            let text = "share their blocks with the old file, or are copied by the file system";
            lines.push(("stay in place", format!("{}, which {text}", bytes(kept))));
        }
        lines.extend(self.notes.iter().map(|note| ("note", note.clone())));
        out.about(&self.output, &lines)
    }
}

/// The plan of `rewrite`, which is that of `concat` for one file.
#[derive(Serialize)]
#[serde(transparent)]
pub(crate) struct RewriteReport(pub(crate) PlanReport);

impl Report for RewriteReport {
    const COMMAND: &'static str = "rewrite";

    fn lines(&self) -> impl Iterator<Item = impl Serialize> {
        self.0.lines()
    }

    fn tables(&self, out: &mut Tables<'_>) -> Result<()> {
        self.0.tables(out)
    }
}

/// The plans of several new files.
#[derive(Serialize)]
pub(crate) struct SplitReport {
    pub(crate) files: Vec<PlanReport>,
}

/// A new file, on one line.
#[derive(Serialize)]
struct NewFile {
    output: String,
    row_groups: usize,
    rows: u64,
    copied_bytes: u64,
    encoded_bytes: u64,
}

impl SplitReport {
    fn rows(&self) -> Vec<NewFile> {
        let file = |plan: &PlanReport| NewFile {
            output: plan.output.clone(),
            row_groups: plan.row_groups,
            rows: plan.rows,
            copied_bytes: plan.copied.bytes + plan.copied_by_page.bytes,
            encoded_bytes: plan.encoded.bytes,
        };
        self.files.iter().map(file).collect()
    }
}

impl Report for SplitReport {
    const COMMAND: &'static str = "split";

    fn lines(&self) -> impl Iterator<Item = impl Serialize> {
        self.rows().into_iter()
    }

    fn tables(&self, out: &mut Tables<'_>) -> Result<()> {
        let columns = [
            Column::text("new file", |file: &NewFile| file.output.clone()),
            Column::count("row groups", |file: &NewFile| Some(file.row_groups as u64)),
            Column::count("rows", |file: &NewFile| Some(file.rows)),
            Column::bytes("copied", |file: &NewFile| Some(file.copied_bytes)),
            Column::bytes("cut: encoded again", |file: &NewFile| Some(file.encoded_bytes)),
        ];
        out.show("", &columns, &self.rows(), &[])
    }
}
