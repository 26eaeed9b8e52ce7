//! `fill` adds to a file what its writer left out, without touching a value.

use std::path::{Path, PathBuf};

use marquetry::io::{Sink, WriteSink};
use marquetry::rewrite::{Fill, FillPart, FilledPart};
use marquetry::{BloomOptions, Reader, SortColumn};
use serde::Serialize;

use crate::args::{self, Global};
use crate::failure::{Failure, Result};
use crate::hive::Input;
use crate::json::AsText;
use crate::report::{self, Column, Report, Tables};
use crate::sorting::sort_column;
use crate::{input, interrupt, locations, output, parquet_out};

/// The parts to fill in, and where the new file goes.
pub(crate) struct FillOptions {
    pub(crate) file: String,
    /// All but checksums, if there is none.
    pub(crate) parts: Vec<FillPart>,
    pub(crate) blooms: Vec<(String, BloomOptions)>,
    pub(crate) sorted: Vec<SortColumn>,
    pub(crate) headers_only: bool,
    pub(crate) in_place: bool,
    pub(crate) dry_run: bool,
}

impl FillOptions {
    /// Those that the flags say.
    pub(crate) fn new(flags: &args::Fill) -> Result<Self> {
        let mut parts = Vec::new();
        for name in &flags.what {
            match FillPart::ALL.iter().find(|part| part.name() == name) {
                Some(part) => parts.push(*part),
                None if name == "all" => parts.extend(FillPart::ALL),
                None => {
                    let names: Vec<&str> = FillPart::ALL.iter().map(|part| part.name()).collect();
                    let names = names.join(", ");
                    return Err(Failure::Usage(format!(
                        "--what {name}: it is one of {names}, all"
                    )));
                }
            }
        }
        let blooms = flags.bloom.iter().map(|setting| parquet_out::bloom(setting));
        let blooms = blooms.map(|(column, options)| (column.to_owned(), options)).collect();
        let sorted = flags.sorted.iter().map(|text| sort_column(text)).collect::<Result<_>>()?;
        Ok(Self {
            file: flags.source.file.clone(),
            parts,
            blooms,
            sorted,
            headers_only: flags.headers_only,
            in_place: flags.in_place,
            dry_run: flags.dry_run,
        })
    }

    /// All parts but checksums.
    pub(crate) fn all(file: &str, in_place: bool, dry_run: bool) -> Self {
        let (parts, blooms, sorted) = Default::default();
        let file = file.to_owned();
        Self { file, parts, blooms, sorted, headers_only: false, in_place, dry_run }
    }

    fn fill(&self, reader: Reader) -> Fill {
        let mut fill = Fill::new(reader).decode_values(!self.headers_only);
        if !self.parts.is_empty() {
            fill = fill.only(self.parts.iter().copied());
        }
        for (column, options) in &self.blooms {
            fill = fill.bloom(column.as_str(), *options);
        }
        fill.sorted(self.sorted.iter().cloned())
    }
}

/// Fills in a file, or shows what would be.
pub(crate) fn run(command: &args::Fill, global: &Global) -> Result<()> {
    fill(&FillOptions::new(command)?, global)
}

/// The same, as the options say.
pub(crate) fn fill(options: &FillOptions, global: &Global) -> Result<()> {
    let file = options.file.as_str();
    let reader = input::open(file, global)?;
    let old_bytes = reader.file_len();
    let before = pruning(file, &reader, global)?;
    let to = target(options, global)?;
    let fill = options.fill(reader);
    let report = match (&to, options.dry_run) {
        (_, true) => {
            let plan = fill.plan()?;
            let mut report = FillReport::new(file, old_bytes, plan.rows, plan.parts, plan.notes);
            if before.is_some() {
                let scratch = Scratch::new()?;
                let path = scratch.0.join("filled.parquet");
                fill.run(interrupt::create(&path)?)?;
                report.set_pruning(before, pruning_of_file(&path, global)?);
            }
            report
        }
        (None, _) => {
            fill.run(WriteSink(std::io::stdout()))?;
            return Ok(());
        }
        (Some(path), false) => {
            let sink: Box<dyn Sink> = locations::sink(path)?;
            let done = fill.run(sink)?;
            let mut report = FillReport::new(file, old_bytes, done.rows, done.parts, done.notes);
            report.output = Some(path.display().to_string());
            report.new_bytes = Some(done.bytes);
            if before.is_some() {
                report.set_pruning(before, pruning_of_file(path, global)?);
            }
            report
        }
    };
    if global.quiet {
        return Ok(());
    }
    // The output is that of the command, and what was done is shown.
    report::print(&report, &Global { output: None, ..global.clone() })
}

/// The new file; none is standard output.
fn target(options: &FillOptions, global: &Global) -> Result<Option<PathBuf>> {
    let dash = Path::new("-");
    match (&global.output, options.in_place) {
        (Some(_), true) => {
            Err(Failure::Usage("--in-place names the output: leave out -o".to_owned()))
        }
        (None, true) if options.file == "-" || !Path::new(&options.file).is_file() => {
            Err(Failure::Usage(format!("{}: --in-place changes a file", options.file)))
        }
        (None, true) => Ok(Some(PathBuf::from(&options.file))),
        (Some(path), false) => Ok(Some(path.clone()).filter(|path| path != dash)),
        (None, false) if options.dry_run => Ok(None),
        (None, false) => {
            let text = "say the new file with -o, or --in-place; --dry-run shows what is missing";
            Err(Failure::Usage(text.to_owned()))
        }
    }
}

/// The cost of a read with the filter of the flags, if there is one.
fn pruning(file: &str, reader: &Reader, global: &Global) -> Result<Option<FilteredRead>> {
    let Some(filter) = &global.filter else { return Ok(None) };
    let input = Input { path: file.to_owned(), partitions: None, target: None };
    let plan = reader.clone().filter(input.filter(filter)?).explain()?;
    Ok(Some(FilteredRead {
        rows_left: plan.rows_left(),
        bytes: plan.bytes(),
        requests: plan.requests(),
    }))
}

fn pruning_of_file(path: &Path, global: &Global) -> Result<Option<FilteredRead>> {
    let name = path.display().to_string();
    pruning(&name, &input::open(&name, global)?, global)
}

/// A folder for a file that is looked at and thrown away.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Result<Self> {
        let mut tries = 0u32;
        loop {
            let name = format!("marq-{}-{tries}", std::process::id());
            let path = std::env::temp_dir().join(name);
            match std::fs::create_dir(&path) {
                Ok(()) => return Ok(Self(path)),
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists && tries < 100 => {
                    tries += 1;
                }
                Err(error) => {
                    let name = path.display().to_string();
                    return Err(marquetry::Error::io("a temporary folder", error)
                        .at_file(name)
                        .into());
                }
            }
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The parts that were filled in.
#[derive(Serialize)]
struct FillReport {
    file: String,
    output: Option<String>,
    rows: u64,
    bytes: u64,
    new_bytes: Option<u64>,
    added_bytes: u64,
    parts: Vec<PartRecord>,
    #[serde(rename = "where")]
    pruning: Option<Pruning>,
    notes: Vec<String>,
}

#[derive(Serialize)]
struct PartRecord {
    part: AsText<FillPart>,
    count: u64,
    unit: &'static str,
    bytes: u64,
}

/// The cost of a read with a filter.
#[derive(Serialize, Clone, Copy)]
struct FilteredRead {
    rows_left: u64,
    bytes: u64,
    requests: u64,
}

#[derive(Serialize)]
struct Pruning {
    before: FilteredRead,
    after: FilteredRead,
}

impl FillReport {
    fn new(
        file: &str,
        bytes: u64,
        rows: u64,
        parts: Vec<FilledPart>,
        mut notes: Vec<String>,
    ) -> Self {
        /// Notes that are printed.
        const SOME: usize = 20;
        if notes.len() > SOME {
            let more = notes.len() - SOME;
            notes.truncate(SOME);
            notes.push(format!("and {more} more"));
        }
        let added_bytes = parts.iter().map(|part| part.bytes).sum();
        let record = |of: FilledPart| PartRecord {
            part: AsText(of.part),
            count: of.count,
            unit: of.part.unit(),
            bytes: of.bytes,
        };
        let parts = parts.into_iter().map(record).collect();
        let file = file.to_owned();
        let (output, new_bytes, pruning) = (None, None, None);
        Self { file, output, rows, bytes, new_bytes, added_bytes, parts, pruning, notes }
    }

    fn set_pruning(&mut self, before: Option<FilteredRead>, after: Option<FilteredRead>) {
        self.pruning = before.zip(after).map(|(before, after)| Pruning { before, after });
    }
}

impl Report for FillReport {
    const COMMAND: &'static str = "fill";

    fn lines(&self) -> impl Iterator<Item = impl Serialize> {
        self.parts.iter()
    }

    fn tables(&self, out: &mut Tables<'_>) -> Result<()> {
        let global = out.global;
        let columns = [
            Column::text("filled in", |of: &PartRecord| of.part.0.to_string()),
            Column::count("count", |of| Some(of.count)),
            Column::text("of", |of| of.unit.to_owned()),
            Column::bytes("bytes", |of| Some(of.bytes)),
        ];
        match self.parts.is_empty() {
            true => out.line("nothing is missing")?,
            false => out.show("", &columns, &self.parts, &[])?,
        }
        let mut lines = vec![
            ("rows", output::count(self.rows, global)),
            ("size", output::bytes(self.bytes, global)),
        ];
        if let Some(bytes) = self.new_bytes {
            lines.push(("size now", output::bytes(bytes, global)));
        }
        if let (Some(Pruning { before, after }), Some(filter)) = (&self.pruning, &global.filter) {
            let show = |read: &FilteredRead| {
                let (rows, bytes) =
                    (output::count(read.rows_left, global), output::bytes(read.bytes, global));
                format!("{rows} rows, {bytes}, {} requests", read.requests)
            };
            lines.push(("where", filter.clone()));
            lines.push(("reads before", show(before)));
            lines.push(("reads after", show(after)));
        }
        lines.extend(self.notes.iter().map(|note| ("note", note.clone())));
        out.about(self.output.as_deref().unwrap_or(&self.file), &lines)
    }
}
