//! `compact` joins the small files of a folder.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use marquetry::Error;
use marquetry::rewrite::{self, CompactPlan};
use serde::Serialize;

use crate::args::{Compact, Global};
use crate::failure::{Failure, Result};
use crate::report::{self, Column, Report, Tables};
use crate::{crypt, input, keys, output};

/// Joins the files, or shows which.
pub(crate) fn run(command: &Compact, global: &Global) -> Result<()> {
    let folder = Path::new(&command.folder);
    rewrite::Compact::new(folder).recover()?;
    if !folder.is_dir() {
        return Err(Failure::Usage(format!("{}: it is no folder", command.folder)));
    }
    if global.output.is_some() && !command.dry_run {
        return Err(Failure::Usage(
            "compact changes its folder: leave out -o, or join files with concat".to_owned(),
        ));
    }
    let encryption = keys::encryption(&command.encrypt, global)?;
    let is_encrypted = encryption.is_some();
    let found_encrypted = Arc::new(AtomicBool::new(false));
    let (of_open, found) = (global.clone(), found_encrypted.clone());
    let open = move |path: &Path| {
        let name = path.to_string_lossy();
        let reader = input::open(&name, &of_open).map_err(|failure| match failure {
            Failure::File(error) => error,
            other => Error::usage(format_args!("{other:?}")).at_file(name.into_owned()),
        })?;
        if crypt::footer::is_encrypted(&reader) {
            found.store(true, Ordering::Relaxed);
        }
        Ok(reader)
    };
    let mut compact = rewrite::Compact::new(folder)
        .file_bytes(command.file_size)
        .verify_checksums(command.verify_checksums)
        .merge(command.merge)
        .open_with(open);
    if let Some(encryption) = encryption {
        compact = compact.encryption(encryption);
    }
    let plan = compact.plan()?;
    if command.dry_run {
        let to_screen = Global { output: None, ..global.clone() };
        return report::print(&CompactReport::new(&command.folder, plan), &to_screen);
    }
    if found_encrypted.load(Ordering::Relaxed) && !is_encrypted {
        return Err(Failure::Usage(
            "a file is encrypted, and the new ones would be in plain text: encrypt them with \
             --encrypt-footer-key"
                .to_owned(),
        ));
    }
    let begun = Instant::now();
    for note in plan.joins.iter().flat_map(|join| &join.plan.notes).filter(|_| !global.quiet) {
        eprintln!("marq: note: {}", crate::escape::escape(note));
    }
    let done = compact.run()?;
    if !global.quiet && global.verbose > 0 {
        let (size, seconds) = (output::bytes(done.bytes, global), begun.elapsed().as_secs_f64());
        let (joined, made) = (done.files_joined, done.files_made);
        eprintln!("compact: {joined} files became {made}, {size}, {seconds:.1} s");
    }
    Ok(())
}

/// The plan, as a record.
#[derive(Serialize)]
struct CompactReport {
    folder: String,
    files_joined: usize,
    files_made: usize,
    files_kept: usize,
    joins: Vec<JoinOfPlan>,
}

/// Files that become one.
#[derive(Serialize)]
struct JoinOfPlan {
    output: String,
    files: usize,
    bytes: u64,
    rows: u64,
    row_groups: usize,
    inputs: Vec<String>,
    notes: Vec<String>,
}

impl CompactReport {
    fn new(folder: &str, plan: CompactPlan) -> Self {
        let joins: Vec<JoinOfPlan> = plan
            .joins
            .into_iter()
            .map(|join| JoinOfPlan {
                output: join.output.display().to_string(),
                files: join.inputs.len(),
                bytes: join.bytes,
                rows: join.plan.rows,
                row_groups: join.plan.row_groups.len(),
                inputs: join.inputs.iter().map(|path| path.display().to_string()).collect(),
                notes: join.plan.notes,
            })
            .collect();
        Self {
            folder: folder.to_owned(),
            files_joined: joins.iter().map(|join| join.files).sum(),
            files_made: joins.len(),
            files_kept: plan.files_kept,
            joins,
        }
    }
}

impl Report for CompactReport {
    const COMMAND: &'static str = "compact";

    fn lines(&self) -> impl Iterator<Item = impl Serialize> {
        self.joins.iter()
    }

    fn tables(&self, out: &mut Tables<'_>) -> Result<()> {
        let global = out.global;
        let columns = [
            Column::text("new file", |join: &JoinOfPlan| join.output.clone()),
            Column::count("files", |join: &JoinOfPlan| Some(join.files as u64)),
            Column::count("row groups", |join: &JoinOfPlan| Some(join.row_groups as u64)),
            Column::count("rows", |join: &JoinOfPlan| Some(join.rows)),
            Column::bytes("bytes", |join: &JoinOfPlan| Some(join.bytes)),
        ];
        out.show("", &columns, &self.joins, &[])?;
        let number = |n: usize| output::count(n as u64, global);
        let mut lines = vec![
            ("joined", format!("{} files", number(self.files_joined))),
            ("new files", number(self.files_made)),
            ("stay", format!("{} files", number(self.files_kept))),
        ];
        let notes = self.joins.iter().flat_map(|join| &join.notes);
        lines.extend(notes.map(|note| ("note", note.clone())));
        out.about(&self.folder, &lines)
    }
}
