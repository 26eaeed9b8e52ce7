//! `salvage` recovers the row groups of a damaged file that are whole.

use std::path::{Path, PathBuf};

use marquetry::io::{Sink, WriteSink};
use marquetry::rewrite::{LostPart, RecoveredRowGroup, Salvage, SalvageAccount, Salvaged};
use marquetry::{Error, ErrorKind};
use serde::Serialize;

use crate::args::{Global, SalvageFile};
use crate::failure::{Failure, Result, after_printing};
use crate::report::{self, Column, Report, Tables};
use crate::{crypt, escape, input, keys, locations, output};

/// Recovers what is whole, and says what is not.
pub(crate) fn run(command: &SalvageFile, global: &Global) -> Result<()> {
    let to_stdout = global.output.as_deref() == Some(Path::new("-"));
    let is_reported = command.report || global.format.is_some() || global.output.is_none();
    if to_stdout && is_reported {
        let text = "the file and the report cannot both go to standard output: say a file with -o";
        return Err(Failure::Usage(text.to_owned()));
    }
    let found = find(command, global)?;
    let account = found.account();
    // A file may be whole without a row group.
    let is_written = account.is_complete() || !account.recovered.is_empty();
    if let Some(path) = global.output.as_deref().filter(|_| is_written) {
        let sink: Box<dyn Sink> = match to_stdout {
            false => locations::sink(path)?,
            true => Box::new(WriteSink(std::io::stdout())),
        };
        write(&found, command, global, sink)?;
    }
    let mut printed = Ok(());
    if is_reported {
        // The output is that of the command, and the account is shown.
        let to_screen = Global { output: None, ..global.clone() };
        printed = report::print(&SalvageReport::new(command, global, account), &to_screen);
    } else if !global.quiet {
        summary(command, account, global);
    }
    let end = match (account.is_complete(), account.recovered.is_empty()) {
        (true, _) => Ok(()),
        (false, false) => Err(Failure::Partial),
        (false, true) => {
            let text = "no row group is whole: nothing was written";
            Err(Failure::content(&command.file, None, text))
        }
    };
    after_printing(printed, end)
}

/// Writes what was recovered, encrypted if that is asked for.
fn write(found: &Salvaged, command: &SalvageFile, global: &Global, sink: impl Sink) -> Result<()> {
    match keys::encryption(&command.encrypt, global)? {
        Some(encryption) => found.rewrite()?.encryption(encryption).run(sink)?,
        None => {
            if !global.quiet && crypt::footer::is_encrypted(&found.reader()?) {
                crypt::footer::note_plain(global);
            }
            found.write(sink)?
        }
    };
    Ok(())
}

/// The file in which `convert --side-footer` keeps footers while it writes `output`.
pub(crate) fn side_footer_of(output: &Path) -> PathBuf {
    let mut name = output.as_os_str().to_owned();
    name.push(".side-footer");
    name.into()
}

/// The side footer that lies beside a file, or beside the one whose temporary file it is.
fn side_footer_beside(file: &str) -> Option<PathBuf> {
    let path = Path::new(file);
    let own = side_footer_of(path);
    let name = path.file_name()?.to_str()?;
    let of_temporary = || {
        let rest = name.strip_prefix('.')?.strip_suffix(".tmp")?;
        let (name, _) = rest.rsplit_once('.')?;
        Some(side_footer_of(&path.with_file_name(name)))
    };
    [Some(own), of_temporary()].into_iter().flatten().find(|side| side.is_file())
}

fn find(command: &SalvageFile, global: &Global) -> Result<Salvaged> {
    let mut salvage = Salvage::new(input::source(&command.file, global)?);
    salvage = salvage.limits(input::limits(global));
    let side = command.side_footer.clone().map(PathBuf::from);
    if let Some(side) = side.or_else(|| side_footer_beside(&command.file)) {
        let name = side.to_string_lossy().into_owned();
        if command.side_footer.is_none() && !global.quiet {
            eprintln!("marq: note: with the side footer {}", escape::escape(&name));
        }
        let source = input::source(&name, global)?;
        salvage = salvage.side_footer(source).map_err(|e| e.at_file(name))?;
    }
    if let Some(keys) = keys::decryption(global, &command.file)? {
        salvage = salvage.decryption(keys);
    }
    if let Some(other) = &command.schema_from {
        salvage = salvage.schema_of(&input::open(other, global)?)?;
    }
    if let Some(rows) = command.row_group_rows {
        salvage = salvage.row_group_rows(rows);
    }
    salvage.find().map_err(|error| without_schema(command, error))
}

/// The error, with what may help.
fn without_schema(command: &SalvageFile, error: Error) -> Failure {
    let is_footer =
        matches!(error.kind(), ErrorKind::Malformed(_)) && command.schema_from.is_none();
    match is_footer {
        true => Failure::content(&command.file, None, error.message())
            .with_hint(Some("give a file with the same schema: --schema-from OTHER.parquet")),
        false => error.at_file(command.file.as_str()).into(),
    }
}

/// Prints the lost parts, in a line each.
fn summary(command: &SalvageFile, account: &SalvageAccount, global: &Global) {
    let file = escape::escape(&command.file);
    for note in &account.notes {
        eprintln!("marq: note: {file}: {}", escape::escape(note));
    }
    for part in &account.lost {
        eprintln!("marq: {file}: lost: {}", escape::escape(&LostRecord::new(part).text()));
    }
    let rows = output::counted(account.rows_recovered(), "row", global);
    let groups = output::counted(account.recovered.len() as u64, "row group", global);
    eprintln!("marq: {file}: recovered {rows} in {groups}");
}

#[derive(Serialize)]
struct SalvageReport {
    file: String,
    output: Option<String>,
    complete: bool,
    file_bytes: u64,
    columns: usize,
    rows_recovered: u64,
    rows_lost: Option<u64>,
    row_groups_recovered: usize,
    parts_lost: usize,
    bytes_recovered: u64,
    bytes_lost: u64,
    recovered: Vec<RecoveredRecord>,
    lost: Vec<LostRecord>,
    notes: Vec<String>,
}

#[derive(Serialize)]
struct RecoveredRecord {
    rows: u64,
    start: u64,
    end: u64,
    found_by: &'static str,
}

#[derive(Serialize)]
struct LostRecord {
    start: u64,
    end: u64,
    row_group: Option<usize>,
    rows: Option<u64>,
    columns: Vec<String>,
    page: Option<usize>,
    offset: Option<u64>,
    reason: String,
}

impl LostRecord {
    fn new(part: &LostPart) -> Self {
        Self {
            start: part.bytes.start,
            end: part.bytes.end,
            row_group: part.row_group,
            rows: part.rows,
            columns: part.columns.clone(),
            page: part.page,
            offset: part.offset,
            reason: part.reason.clone(),
        }
    }

    fn text(&self) -> String {
        let mut text = match (self.row_group, self.rows) {
            (Some(group), Some(rows)) => format!("row group {group} of {rows} rows, "),
            (Some(group), None) => format!("row group {group}, "),
            (None, Some(rows)) => format!("{rows} rows, "),
            (None, None) => String::new(),
        };
        text.push_str(&format!("bytes {} to {}", self.start, self.end));
        if let Some(column) = self.columns.first() {
            text.push_str(&format!(", column {column}"));
        }
        format!("{text}: {}", self.reason)
    }
}

impl SalvageReport {
    fn new(command: &SalvageFile, global: &Global, account: &SalvageAccount) -> Self {
        let recovered = |group: &RecoveredRowGroup| RecoveredRecord {
            rows: group.rows,
            start: group.bytes.start,
            end: group.bytes.end,
            found_by: group.found_by.name(),
        };
        let output = global.output.as_ref().filter(|_| !account.recovered.is_empty());
        Self {
            file: command.file.clone(),
            output: output.map(|path| path.display().to_string()),
            complete: account.is_complete(),
            file_bytes: account.file_bytes,
            columns: account.columns,
            rows_recovered: account.rows_recovered(),
            rows_lost: account.rows_lost(),
            row_groups_recovered: account.recovered.len(),
            parts_lost: account.lost.len(),
            bytes_recovered: account.bytes_recovered(),
            bytes_lost: account.bytes_lost(),
            recovered: account.recovered.iter().map(recovered).collect(),
            lost: account.lost.iter().map(LostRecord::new).collect(),
            notes: account.notes.clone(),
        }
    }
}

impl Report for SalvageReport {
    const COMMAND: &'static str = "salvage";

    fn lines(&self) -> impl Iterator<Item = impl Serialize> {
        self.lost.iter()
    }

    fn tables(&self, out: &mut Tables<'_>) -> Result<()> {
        let global = out.global;
        let number = |n: u64| output::count(n, global);
        let mut lines = vec![
            ("rows recovered", number(self.rows_recovered)),
            ("rows lost", self.rows_lost.map_or_else(|| "not known".to_owned(), number)),
            ("row groups recovered", number(self.row_groups_recovered as u64)),
            ("bytes recovered", output::bytes(self.bytes_recovered, global)),
            ("bytes lost", output::bytes(self.bytes_lost, global)),
        ];
        lines.extend(self.notes.iter().map(|note| ("note", note.clone())));
        out.about(&self.file, &lines)?;
        if self.lost.is_empty() {
            return Ok(());
        }
        let columns = [
            Column::count("row group", |lost: &LostRecord| lost.row_group.map(|n| n as u64)),
            Column::count("rows", |lost: &LostRecord| lost.rows),
            Column::number("bytes", |lost: &LostRecord| format!("{}..{}", lost.start, lost.end)),
            Column::text("column", |lost: &LostRecord| lost.columns.join(", ")),
            Column::count("page", |lost: &LostRecord| lost.page.map(|n| n as u64)),
            Column::text("why", |lost: &LostRecord| lost.reason.clone()),
        ];
        out.show("lost", &columns, &self.lost, &["page"])
    }
}
