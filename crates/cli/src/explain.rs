//! `explain` describes what a read will do, without doing it.

use std::time::Duration;

use marquetry::io::{ExplainedRowGroup, Outcome};
use marquetry::read::Latency;
use serde::Serialize;

use crate::args::{Explain, Global};
use crate::failure::Result;
use crate::input;
use crate::json::AsText;
use crate::report::{self, Column, Report, Tables};

#[derive(Serialize)]
struct FileReads {
    files: Vec<FileRead>,
}

/// The read of a file.
#[derive(Serialize)]
struct FileRead {
    file: String,
    filter: Option<String>,
    leaves: Vec<String>,
    rows_left: u64,
    bytes: u64,
    requests: u64,
    estimated_seconds: f64,
    #[serde(skip)]
    time: Duration,
    row_groups: Vec<RowGroupRead>,
}

#[derive(Serialize)]
struct RowGroupRead {
    row_group: usize,
    outcome: AsText<Outcome>,
    rows: u64,
    rows_left: u64,
    pages: u64,
    pages_pruned: u64,
    chunk_bytes: u64,
    fetch_bytes: u64,
    index_bytes: u64,
    requests: u64,
    ignored_indexes: Vec<String>,
}

/// Explains the read of each file.
pub(crate) fn run(command: &Explain, global: &Global) -> Result<()> {
    let latency = Latency::new(
        Duration::from_millis(command.latency.into()),
        u64::from(command.bandwidth) * 1_000_000,
    );
    let mut files = Vec::new();
    for input in input::inputs(&command.rows.files, global)? {
        let plan = input::open_rows(&input, &command.rows, global)?.reader.explain()?;
        let time = plan.time(latency);
        files.push(FileRead {
            rows_left: plan.rows_left(),
            bytes: plan.bytes(),
            requests: plan.requests(),
            estimated_seconds: time.as_secs_f64(),
            time,
            row_groups: plan.row_groups.into_iter().map(RowGroupRead::new).collect(),
            file: input.path,
            filter: plan.filter,
            leaves: plan.leaves,
        });
    }
    report::print(&FileReads { files }, global)
}

impl RowGroupRead {
    fn new(of: ExplainedRowGroup) -> Self {
        Self {
            row_group: of.row_group,
            outcome: AsText(of.outcome),
            rows: of.rows,
            rows_left: of.rows_left,
            pages: of.pages,
            pages_pruned: of.pages_pruned,
            chunk_bytes: of.chunk_bytes,
            fetch_bytes: of.fetch_bytes,
            index_bytes: of.index_bytes,
            requests: of.requests,
            ignored_indexes: of.ignored,
        }
    }
}

impl Report for FileReads {
    const COMMAND: &'static str = "explain";

    fn lines(&self) -> impl Iterator<Item = impl Serialize> {
        #[derive(Serialize)]
        struct RowGroupOfFile<'a> {
            file: &'a str,
            #[serde(flatten)]
            row_group: &'a RowGroupRead,
        }
        self.files.iter().flat_map(|FileRead { file, row_groups, .. }| {
            row_groups.iter().map(move |row_group| RowGroupOfFile { file, row_group })
        })
    }

    fn tables(&self, out: &mut Tables<'_>) -> Result<()> {
        let columns = [
            Column::number("row group", |of: &RowGroupRead| of.row_group.to_string()),
            Column::text("outcome", |of| of.outcome.0.to_string()),
            Column::count("rows", |of| Some(of.rows)),
            Column::count("rows left", |of| Some(of.rows_left)),
            Column::count("pages pruned", |of| Some(of.pages_pruned)),
            Column::bytes("bytes", |of| Some(of.fetch_bytes)),
            Column::count("requests", |of| Some(of.requests)),
        ];
        let in_all = [
            Column::count("rows left", |of: &FileRead| Some(of.rows_left)),
            Column::bytes("bytes", |of| Some(of.bytes)),
            Column::count("requests", |of| Some(of.requests)),
            Column::number("estimated time from a store", |of| format!("{:.2?}", of.time)),
        ];
        for file in &self.files {
            let expendable = ["requests", "rows", "pages pruned"];
            out.show(&file.file, &columns, &file.row_groups, &expendable)?;
            out.show("in all", &in_all, [file], &[])?;
        }
        Ok(())
    }
}
