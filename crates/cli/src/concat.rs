//! `concat` and `append` copy files into one, without decoding a value.

use std::path::Path;
use std::time::Instant;

use marquetry::Reader;
use marquetry::io::{Sink, WriteSink};
use marquetry::rewrite::{PlannedChunks, Rewrite, RewritePlan};
use serde::Serialize;

use crate::args::{Append, Concat, Global, Joining};
use crate::failure::{Failure, Result};
use crate::report::{self, Column, Report, Tables};
use crate::{crypt, input, interrupt, keys, output};

/// Joins files into a new one.
pub(crate) fn concat(command: &Concat, global: &Global) -> Result<()> {
    let paths = input::paths(&command.files.files)?;
    let first = |reader: Reader| match command.columns.names() {
        names if names.is_empty() => Ok(reader),
        names => {
            let all: Vec<String> = reader
                .metadata()
                .schema()
                .root()
                .children()
                .map(|node| node.name().to_owned())
                .collect();
            reader.project(input::columns(&all, &names)?).map_err(Failure::from)
        }
    };
    let output = match (&global.output, command.joining.dry_run) {
        (Some(path), _) => path.clone(),
        (None, true) => "-".into(),
        (None, false) => {
            let text = "say the new file with -o; - is standard output, --dry-run shows the plan";
            return Err(Failure::Usage(text.to_owned()));
        }
    };
    let joined = Joined::new(&paths, &command.joining, global, first)?;
    if let (true, false, false) = (joined.has_encrypted, joined.is_encrypted, global.quiet) {
        eprintln!(
            "marq: note: an input is encrypted, and the output is not (--encrypt-footer-key \
             encrypts it)"
        );
    }
    joined.run("concat", &output, &command.joining, global)
}

/// Adds the rows of files to a file.
pub(crate) fn append(command: &Append, global: &Global) -> Result<()> {
    if global.output.is_some() && !command.joining.dry_run {
        return Err(Failure::Usage(
            "append changes its first file: leave out -o, or use concat".to_owned(),
        ));
    }
    if command.file == "-" || !Path::new(&command.file).is_file() {
        return Err(Failure::Usage(format!(
            "{}: append changes a file, and there is no such file",
            command.file
        )));
    }
    let mut paths = vec![command.file.clone()];
    paths.extend(input::paths(&command.files.files)?);
    let joined = Joined::new(&paths, &command.joining, global, Ok)?;
    if joined.has_encrypted && !joined.is_encrypted {
        return Err(Failure::Usage(
            "a file is encrypted, and the result would be in plain text: encrypt it with \
             --encrypt-footer-key"
                .to_owned(),
        ));
    }
    joined.run("append", Path::new(&command.file), &command.joining, global)
}

/// Files to be copied into one.
struct Joined {
    paths: Vec<String>,
    rewrite: Rewrite,
    has_encrypted: bool,
    is_encrypted: bool,
}

impl Joined {
    fn new(
        paths: &[String],
        joining: &Joining,
        global: &Global,
        first: impl FnOnce(Reader) -> Result<Reader>,
    ) -> Result<Self> {
        // The prefix is that of the new file.
        let encryption = keys::encryption(&joining.encrypt, global)?;
        let mut readers = Vec::with_capacity(paths.len());
        for path in paths {
            readers.push(input::open(path, global)?);
        }
        if let Some(reader) = readers.first_mut() {
            *reader = first(reader.clone())?;
        }
        let has_encrypted = readers.iter().any(crypt::footer::is_encrypted);
        let is_encrypted = encryption.is_some();
        let mut rewrite = Rewrite::new(readers)
            .by_name(joining.by_name)
            .verify_checksums(joining.verify_checksums);
        for pair in &joining.set_kv {
            let Some((key, value)) = pair.split_once('=') else {
                return Err(Failure::Usage(format!("--set-kv {pair}: write KEY=VALUE")));
            };
            rewrite = rewrite.set_key_value(key, value);
        }
        for key in &joining.drop_kv {
            rewrite = rewrite.drop_key_value(key.as_str());
        }
        if let Some(encryption) = encryption {
            rewrite = rewrite.encryption(encryption);
        }
        Ok(Self { paths: paths.to_vec(), rewrite, has_encrypted, is_encrypted })
    }

    /// Shows the plan, or does what it says.
    fn run(
        &self,
        command: &'static str,
        output: &Path,
        joining: &Joining,
        global: &Global,
    ) -> Result<()> {
        let plan = self.rewrite.plan()?;
        if joining.dry_run {
            // The output is that of the command, and the plan is shown.
            let to_screen = Global { output: None, ..global.clone() };
            return report::print(&ConcatReport::new(&self.paths, output, plan), &to_screen);
        }
        let begun = Instant::now();
        let is_file = output != Path::new("-");
        let sink: Box<dyn Sink> = match is_file {
            true => Box::new(interrupt::create(output)?),
            false => Box::new(WriteSink(std::io::stdout())),
        };
        for note in plan.notes.iter().filter(|_| !global.quiet) {
            eprintln!("marq: note: {}", crate::escape::escape(note));
        }
        let done = self.rewrite.run(sink)?;
        if !global.quiet && global.verbose > 0 {
            let (rows, size) =
                (output::count(done.rows, global), output::bytes(done.bytes, global));
            let files = self.paths.len();
            let seconds = begun.elapsed().as_secs_f64();
            eprintln!("{command}: {files} files, {rows} rows, {size}, {seconds:.1} s");
        }
        Ok(())
    }
}

/// The plan, as a record.
#[derive(Serialize)]
struct ConcatReport {
    output: String,
    rows: u64,
    row_groups: usize,
    copied: ChunkTotal,
    copied_by_page: ChunkTotal,
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

/// The part of a file that is copied.
#[derive(Serialize)]
struct FileOfPlan {
    file: String,
    row_groups: usize,
    rows: u64,
    copied_bytes: u64,
    copied_by_page_bytes: u64,
}

impl ConcatReport {
    fn new(paths: &[String], output: &Path, plan: RewritePlan) -> Self {
        let file = |(at, path): (usize, &String)| {
            let of_file = || plan.row_groups.iter().filter(move |group| group.file == at);
            FileOfPlan {
                file: path.clone(),
                row_groups: of_file().count(),
                rows: of_file().map(|group| group.rows).sum(),
                copied_bytes: of_file().map(|group| group.copied.bytes).sum(),
                copied_by_page_bytes: of_file().map(|group| group.copied_by_page.bytes).sum(),
            }
        };
        Self {
            output: output.display().to_string(),
            rows: plan.rows,
            row_groups: plan.row_groups.len(),
            copied: plan.copied().into(),
            copied_by_page: plan.copied_by_page().into(),
            files: paths.iter().enumerate().map(file).collect(),
            notes: plan.notes,
        }
    }
}

impl Report for ConcatReport {
    const COMMAND: &'static str = "concat";

    fn lines(&self) -> impl Iterator<Item = impl Serialize> {
        self.files.iter()
    }

    fn tables(&self, out: &mut Tables<'_>) -> Result<()> {
        let global = out.global;
        let number = |n: u64| output::count(n, global);
        let bytes = |n: u64| output::bytes(n, global);
        let columns = [
            Column::text("file", |file: &FileOfPlan| file.file.clone()),
            Column::count("row groups", |file: &FileOfPlan| Some(file.row_groups as u64)),
            Column::count("rows", |file: &FileOfPlan| Some(file.rows)),
            Column::bytes("copied as it is", |file: &FileOfPlan| Some(file.copied_bytes)),
            Column::bytes("page by page", |file: &FileOfPlan| Some(file.copied_by_page_bytes)),
        ];
        out.show("", &columns, &self.files, &[])?;
        let sum = |chunks: &ChunkTotal| {
            format!("{} column chunks, {}", number(chunks.chunks as u64), bytes(chunks.bytes))
        };
        let mut lines = vec![
            ("rows", number(self.rows)),
            ("row groups", number(self.row_groups as u64)),
            ("copied as it is", sum(&self.copied)),
            ("page by page", sum(&self.copied_by_page)),
            ("encoded again", "nothing".to_owned()),
        ];
        lines.extend(self.notes.iter().map(|note| ("note", note.clone())));
        out.about(&self.output, &lines)
    }
}
