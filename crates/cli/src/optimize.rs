//! `optimize` writes a file anew as `doctor` recommends, or a recipe says.

use std::path::Path;

use marquetry::Reader;
use serde::Serialize;

use crate::args::{Global, Optimize};
use crate::doctor::{self, Diagnosis};
use crate::failure::{Failure, Result};
use crate::recipe::{self, Recipe};
use crate::report::{self, Column, Report, Tables};
use crate::trial::{median_of, read_all};
use crate::{input, output};

/// Writes a file anew, or shows how it would be.
pub(crate) fn run(command: &Optimize, global: &Global) -> Result<()> {
    let file = command.source.file.as_str();
    let path = global.output.as_deref();
    if path.is_none() && !command.dry_run {
        let text = "say the new file with -o; - is standard output, --dry-run shows the findings";
        return Err(Failure::Usage(text.to_owned()));
    }
    let to_screen = Global { output: None, ..global.clone() };
    let (recipe, diagnosis) = match &command.recipe {
        Some(path) => (Recipe::read(path)?, None),
        None => {
            let reader = input::open(file, global)?;
            let diagnosis = doctor::diagnose(file, &reader, &command.goal, global)?;
            (diagnosis.recipe.clone(), Some(diagnosis))
        }
    };
    if command.dry_run {
        return match diagnosis {
            Some(diagnosis) => report::print(&diagnosis, &to_screen),
            None => Err(Failure::Usage("--dry-run shows findings, not a recipe".to_owned())),
        };
    }
    let path = path.filter(|path| *path != Path::new("-"));
    recipe::rewrite(file, &recipe, path, global)?;
    let Some(path) = path.filter(|_| !global.quiet) else { return Ok(()) };
    let report = Optimized::new(file, path, diagnosis.as_ref(), global)?;
    report::print(&report, &to_screen)
}

/// A file before and after.
#[derive(Serialize)]
struct Optimized {
    file: String,
    output: String,
    rows: u64,
    bytes: u64,
    new_bytes: u64,
    /// By the trial.
    predicted_bytes: Option<u64>,
    read_seconds: f64,
    new_read_seconds: f64,
    columns: Vec<ColumnChange>,
    #[serde(skip)]
    row_groups: (usize, usize),
}

#[derive(Serialize)]
struct ColumnChange {
    column: String,
    bytes: u64,
    new_bytes: u64,
}

/// Rounds of a read; the median is shown.
const ROUNDS: usize = 3;

impl Optimized {
    fn new(
        file: &str,
        path: &Path,
        diagnosis: Option<&Diagnosis>,
        global: &Global,
    ) -> Result<Self> {
        let (old, new) =
            (input::open(file, global)?, input::open(&path.display().to_string(), global)?);
        let (rows, new_rows) = (old.rows()?, new.rows()?);
        if rows != new_rows {
            let text = format_args!("the new file has {new_rows} rows, and the old one {rows}");
            return Err(marquetry::Error::internal(text).into());
        }
        let (before, after) = (column_bytes(&old)?, column_bytes(&new)?);
        let mut columns: Vec<ColumnChange> = before
            .into_iter()
            .zip(after)
            .map(|((column, bytes), (_, new_bytes))| ColumnChange { column, bytes, new_bytes })
            .collect();
        columns.sort_by_key(|column| std::cmp::Reverse(column.bytes));
        let seconds = |reader: &Reader| -> Result<f64> {
            Ok(median_of(ROUNDS, || read_all(reader).map(|_| ()))?.as_secs_f64())
        };
        Ok(Self {
            file: file.to_owned(),
            output: path.display().to_string(),
            rows,
            bytes: old.file_len(),
            new_bytes: new.file_len(),
            predicted_bytes: diagnosis.and_then(|diagnosis| diagnosis.predicted_bytes),
            read_seconds: seconds(&old)?,
            new_read_seconds: seconds(&new)?,
            columns,
            row_groups: (old.metadata().row_groups(), new.metadata().row_groups()),
        })
    }
}

/// Bytes of each column.
fn column_bytes(reader: &Reader) -> Result<Vec<(String, u64)>> {
    let footer = reader.metadata();
    let mut out = Vec::new();
    for node in footer.schema().root().children() {
        let mut bytes = 0u64;
        for group in 0..footer.row_groups() {
            for leaf in node.leaves() {
                let meta = footer.column_chunk(group, leaf)?.meta_data;
                let size = meta.map_or(0, |meta| meta.total_compressed_size);
                bytes = bytes.saturating_add(u64::try_from(size).unwrap_or(0));
            }
        }
        out.push((node.name().to_owned(), bytes));
    }
    Ok(out)
}

impl Report for Optimized {
    const COMMAND: &'static str = "optimize";

    fn lines(&self) -> impl Iterator<Item = impl Serialize> {
        self.columns.iter()
    }

    fn tables(&self, out: &mut Tables<'_>) -> Result<()> {
        /// Columns that are listed.
        const MAX_LISTED: usize = 20;
        let global = out.global;
        let columns = [
            Column::text("column", |of: &ColumnChange| of.column.clone()),
            Column::bytes("before", |of| Some(of.bytes)),
            Column::bytes("after", |of| Some(of.new_bytes)),
            Column::number("change", |of| percent(of.bytes, of.new_bytes)),
        ];
        out.show("", &columns, self.columns.iter().take(MAX_LISTED), &[])?;
        let size = |n: u64| output::bytes(n, global);
        let (bytes, new_bytes) = (self.bytes, self.new_bytes);
        let change = percent(bytes, new_bytes);
        let mut lines = vec![
            ("rows", output::count(self.rows, global)),
            ("row groups", format!("{} before, {} after", self.row_groups.0, self.row_groups.1)),
            ("size", format!("{} before, {} after ({change})", size(bytes), size(new_bytes))),
        ];
        if let Some(predicted) = self.predicted_bytes {
            lines.push((
                "by the trial",
                format!("{} ({})", size(predicted), percent(bytes, predicted)),
            ));
        }
        let (before, after) = (self.read_seconds * 1e3, self.new_read_seconds * 1e3);
        lines.push(("read", format!("{before:.1} ms before, {after:.1} ms after")));
        out.about(&self.output, &lines)
    }
}

fn percent(before: u64, after: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "shown with one digit after the point")]
    let change = (after as f64 / before.max(1) as f64 - 1.0) * 100.0;
    format!("{change:+.1} %")
}
