//! `rewrite` and `split` copy a file, and encode only what must change; `concat` and `append` use
//! the same.

use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime};

use marquetry::io::{Sink, WriteSink};
use marquetry::rewrite::{Rewrite, Rewritten, SplitBy};
use marquetry::{Error, Export, PageVersion, Reader, StatisticsLevel, WriteOptions};

use crate::args::{self, Copying, FieldIds, Global, Split, StatsLevel};
use crate::failure::{Failure, Result};
use crate::fill::{self, FillOptions};
use crate::folder_out::FolderOut;
use crate::parquet_out;
use crate::plan_report::{PlanReport, RewriteReport, SplitReport};
use crate::recipe::{self, Recipe};
use crate::{checks, crypt, input, interrupt, keys, locations, output, report, sorting};

/// Writes a file anew.
pub(crate) fn rewrite(command: &args::Rewrite, global: &Global) -> Result<()> {
    let path = &command.source.file;
    if command.fill {
        let options = FillOptions::all(path, command.in_place, command.copying.dry_run);
        return fill::fill(&options, global);
    }
    let output = output(command, global)?;
    if let Some(recipe) = &command.recipe {
        let recipe = Recipe::read(recipe)?;
        let file = (output != Path::new("-")).then_some(&*output);
        return recipe::rewrite(path, &recipe, file, global);
    }
    let reader = input::open(path, global)?;
    let (reader, is_encrypted) =
        (chosen(reader.clone(), command)?, crypt::footer::is_encrypted(&reader));
    let rewrite = copying(Rewrite::new([reader]), &command.copying, global)?;
    let mut rewrite = field_ids(settings(rewrite, command, global)?, command)?;
    let is_secret = is_encrypted || command.copying.encrypt.encrypt_footer_key.is_some();
    if let Some(folder) = sorting::temp_folder(&command.sorting, Some(&output), is_secret) {
        rewrite = rewrite.temp_folder(folder);
    }
    note_plain(is_encrypted, &command.copying, command.in_place, global)?;
    let paths = [path.clone()];
    if command.copying.dry_run {
        let plan = rewrite.plan()?;
        let to_screen = Global { output: None, ..global.clone() };
        let plan = PlanReport::new(&paths, output.display().to_string(), plan);
        return report::print(&RewriteReport(plan), &to_screen);
    }
    run("rewrite", &rewrite, &paths, &output, global)
}

/// Where the new file goes.
fn output(command: &args::Rewrite, global: &Global) -> Result<PathBuf> {
    let path = &command.source.file;
    match (&global.output, command.in_place) {
        (Some(output), true) if !checks::is_same_file(Path::new(path), output) => {
            Err(Failure::Usage(
                "--in-place: the output is another file; leave out -o, or --in-place".to_owned(),
            ))
        }
        (_, true) if path == "-" || !Path::new(path).is_file() => {
            Err(Failure::Usage(format!("{path}: --in-place replaces a file, and this is none")))
        }
        (_, true) => Ok(path.into()),
        (Some(output), false) => Ok(output.clone()),
        (None, false) if command.copying.dry_run => Ok("-".into()),
        (None, false) => Err(Failure::Usage(
            "say the new file with -o, or --in-place; - is standard output, --dry-run shows the \
             plan"
                .to_owned(),
        )),
    }
}

/// The columns and row groups that are wanted.
fn chosen(reader: Reader, command: &args::Rewrite) -> Result<Reader> {
    let reader = project(reader, &command.columns.names())?;
    let all = reader.metadata().row_groups();
    if let Some(list) = &command.row_groups {
        return Ok(reader.row_groups(numbers("--row-groups", list, all)?)?);
    }
    let Some(list) = &command.drop_row_groups else { return Ok(reader) };
    let dropped = numbers("--drop-row-groups", list, all)?;
    Ok(reader.row_groups((0..all).filter(|i| !dropped.contains(i)))?)
}

/// Only these columns, if some are named.
pub(crate) fn project(reader: Reader, names: &[String]) -> Result<Reader> {
    if names.is_empty() {
        return Ok(reader);
    }
    let schema = reader.metadata().schema();
    let all: Vec<String> = schema.root().children().map(|node| node.name().to_owned()).collect();
    let columns = input::columns(&all, names)?;
    reader.project(columns).map_err(Failure::from)
}

/// A list of numbers and ranges, `0,3-5`, all below `end`.
fn numbers(flag: &str, list: &str, end: usize) -> Result<Vec<usize>> {
    let wrong = |part: &str| {
        let last = match end.checked_sub(1) {
            Some(last) => format!("the row groups are 0 to {last}"),
            None => "there are no row groups".to_owned(),
        };
        Failure::Usage(format!("{flag} {part}: write numbers and ranges, such as 0,3-5; {last}"))
    };
    let mut out = Vec::new();
    for part in list.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = first
            .trim()
            .parse::<usize>()
            .ok()
            .zip(last.trim().parse().ok())
            .ok_or_else(|| wrong(part))?;
        if first > last || last >= end {
            return Err(wrong(part));
        }
        out.extend(first..=last);
    }
    Ok(out)
}

/// Applies the flags of writing: only the columns that they are about are encoded.
fn settings(rewrite: Rewrite, command: &args::Rewrite, global: &Global) -> Result<Rewrite> {
    let flags = &command.write;
    let of_convert = [
        ("--shred", !flags.shred.is_empty()),
        ("--no-arrow-schema", flags.no_arrow_schema),
        ("--full-range", flags.full_range),
    ];
    if let Some((flag, _)) = of_convert.iter().find(|(_, given)| *given) {
        return Err(Failure::Usage(format!(
            "{flag} changes the schema, which rewrite keeps: marq convert FILE -o NEW.parquet {flag}"
        )));
    }
    let mut options = parquet_out::options(flags, global)?;
    let mut rewrite = rewrite;
    if let Some(codec) = &flags.codec {
        rewrite = rewrite.codec("*", codec.parse()?);
    }
    for setting in &flags.encoding {
        let column = setting.rsplit_once('=').map_or(&**setting, |(column, _)| column);
        rewrite = rewrite.encode(column);
    }
    for setting in &flags.bloom {
        let column = match setting.rsplit_once(':') {
            Some((column, fpp)) if fpp.parse::<f64>().is_ok() => column,
            _ => setting,
        };
        rewrite = rewrite.encode(column);
    }
    options = pages(options, command)?;
    let of_all = flags.page_version.is_some()
        || flags.dictionary.is_some()
        || flags.profile.is_some()
        || !flags.readers.is_empty()
        || command.stats.is_some()
        || command.page_bytes.is_some()
        || command.page_rows.is_some();
    if of_all {
        rewrite = rewrite.encode("*");
    }
    let regroups = flags.row_group_rows.is_some() || flags.row_group_bytes.is_some();
    let sort = sorting::columns(&command.sorting)?;
    Ok(rewrite.options(options).regroup(regroups).sort_by(sort))
}

/// Changes the ids of fields.
fn field_ids(mut rewrite: Rewrite, command: &args::Rewrite) -> Result<Rewrite> {
    rewrite = match command.field_ids {
        Some(FieldIds::Auto) => rewrite.number_fields(),
        Some(FieldIds::None) => rewrite.drop_field_ids(),
        None => rewrite,
    };
    for setting in &command.field_id {
        rewrite = match setting.rsplit_once('=') {
            Some((column, "none")) => rewrite.drop_field_id(column),
            Some((column, id)) if id.parse::<i32>().is_ok() => {
                rewrite.field_id(column, id.parse().unwrap_or_default())
            }
            _ => {
                let text = format!("--field-id {setting}: write COL=N, or COL=none");
                return Err(Failure::Usage(text));
            }
        };
    }
    Ok(rewrite)
}

fn pages(mut options: WriteOptions, command: &args::Rewrite) -> Result<WriteOptions> {
    if let Some(level) = command.stats {
        options = options.with_statistics(match level {
            StatsLevel::None => StatisticsLevel::None,
            StatsLevel::Chunk => StatisticsLevel::Chunk,
            StatsLevel::Page => StatisticsLevel::Page,
        });
    }
    if let Some(bytes) = command.page_bytes {
        let bytes = usize::try_from(bytes);
        let bytes = bytes.map_err(|_| Failure::Usage("--page-bytes: too many".to_owned()))?;
        options = options.with_page_bytes(bytes);
    }
    if let Some(rows) = command.page_rows {
        options = options.with_page_rows(rows);
    }
    if command.write.page_version == Some(2) {
        options = options.with_page_version(PageVersion::V2);
    }
    Ok(options)
}

/// Applies the settings of each new file.
pub(crate) fn copying(rewrite: Rewrite, flags: &Copying, global: &Global) -> Result<Rewrite> {
    let rewrite = rewrite.verify_checksums(flags.verify_checksums);
    let rewrite = key_values(rewrite, &flags.set_kv, &flags.drop_kv)?;
    Ok(match keys::encryption(&flags.encrypt, global)? {
        Some(encryption) => rewrite.encryption(encryption),
        None => rewrite,
    })
}

/// Changes the key-value metadata.
pub(crate) fn key_values(
    mut rewrite: Rewrite,
    set: &[String],
    dropped: &[String],
) -> Result<Rewrite> {
    for pair in set {
        let Some((key, value)) = pair.split_once('=') else {
            return Err(Failure::Usage(format!("--set-kv {pair}: write KEY=VALUE")));
        };
        rewrite = rewrite.set_key_value(key, value);
    }
    for key in dropped {
        rewrite = rewrite.drop_key_value(key.as_str());
    }
    Ok(rewrite)
}

/// Says that the new file is not encrypted; it does not replace an encrypted one.
fn note_plain(is_encrypted: bool, flags: &Copying, in_place: bool, global: &Global) -> Result<()> {
    if !is_encrypted || flags.encrypt.encrypt_footer_key.is_some() {
        return Ok(());
    }
    if in_place {
        return Err(Failure::Usage(
            "the file is encrypted, and would be left in plain text: encrypt it with \
             --encrypt-footer-key, or write to another file with -o"
                .to_owned(),
        ));
    }
    crypt::footer::note_plain(global);
    Ok(())
}

/// Writes the new file, after the notes of its plan.
pub(crate) fn run(
    command: &'static str,
    rewrite: &Rewrite,
    paths: &[String],
    output: &Path,
    global: &Global,
) -> Result<()> {
    let begun = begin(rewrite, global)?;
    let sink: Box<dyn Sink> = match output != Path::new("-") {
        true => locations::sink(output)?,
        false => Box::new(WriteSink(std::io::stdout())),
    };
    let done = rewrite.run(Unchanged::new(sink, paths))?;
    end(command, paths, &done, begun, global);
    Ok(())
}

/// Prints the notes of the plan.
pub(crate) fn begin(rewrite: &Rewrite, global: &Global) -> Result<Instant> {
    let begun = Instant::now();
    for note in rewrite.plan()?.notes.iter().filter(|_| !global.quiet) {
        eprintln!("marq: note: {}", crate::escape::escape(note));
    }
    Ok(begun)
}

/// Prints what was written, if that is asked for.
pub(crate) fn end(
    command: &'static str,
    paths: &[String],
    done: &Rewritten,
    begun: Instant,
    global: &Global,
) {
    if !global.quiet && global.verbose > 0 {
        let (rows, size) = (output::count(done.rows, global), output::bytes(done.bytes, global));
        let files = paths.len();
        let plural = if files == 1 { "" } else { "s" };
        let seconds = begun.elapsed().as_secs_f64();
        eprintln!("{command}: {files} file{plural}, {rows} rows, {size}, {seconds:.1} s");
    }
}

/// A sink that is finished only if no input was changed meanwhile, by length or time.
pub(crate) struct Unchanged<S> {
    sink: S,
    inputs: Vec<(String, Option<(u64, SystemTime)>)>,
}

fn state(path: &str) -> Option<(u64, SystemTime)> {
    let metadata = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file)?;
    Some((metadata.len(), metadata.modified().ok()?))
}

impl<S: Sink> Unchanged<S> {
    pub(crate) fn new(sink: S, paths: &[String]) -> Self {
        Self { sink, inputs: paths.iter().map(|path| (path.clone(), state(path))).collect() }
    }
}

impl<S: Sink> Sink for Unchanged<S> {
    fn write(&mut self, bytes: bytes::Bytes) -> Result<(), Error> {
        self.sink.write(bytes)
    }

    fn finish(&mut self) -> Result<(), Error> {
        if let Some((path, _)) = self.inputs.iter().find(|(path, then)| state(path) != *then) {
            let changed = std::io::Error::other("it was changed while it was read");
            return Err(Error::io("the file is not copied", changed).at_file(path.clone()));
        }
        self.sink.finish()
    }
}

/// Writes a file as several.
pub(crate) fn split(command: &Split, global: &Global) -> Result<()> {
    let path = &command.source.file;
    let Some(output) = &global.output else {
        return Err(Failure::Usage(
            "say with -o where the parts go: a folder, or names with {} for their number"
                .to_owned(),
        ));
    };
    let reader = input::open(path, global)?;
    note_plain(crypt::footer::is_encrypted(&reader), &command.copying, false, global)?;
    if let Some(column) = &command.into.by {
        return by_value(&reader, column, output, command, global);
    }
    let by = match (command.into.rows, command.into.bytes, command.into.files) {
        (Some(rows), ..) => SplitBy::Rows(rows),
        (_, Some(bytes), _) => SplitBy::Bytes(bytes),
        (.., files) => SplitBy::Files(files.unwrap_or(1)),
    };
    let parts = copying(Rewrite::new([reader]), &command.copying, global)?.split(by)?;
    let names = names(output, path, parts.len())?;
    if command.copying.dry_run {
        let mut files = Vec::with_capacity(parts.len());
        for (part, name) in parts.iter().zip(&names) {
            let name = name.display().to_string();
            files.push(PlanReport::new(std::slice::from_ref(path), name, part.plan()?));
        }
        let to_screen = Global { output: None, ..global.clone() };
        return report::print(&SplitReport { files }, &to_screen);
    }
    for name in &names {
        if locations::exists(name)? {
            return Err(Failure::Usage(format!("{}: it exists already", name.display())));
        }
    }
    let is_url = locations::url(output).is_some();
    if let Some(folder) = names.first().and_then(|name| name.parent()).filter(|_| !is_url) {
        let failed = |e| Error::io("making the folder", e).at_file(folder.display().to_string());
        std::fs::create_dir_all(folder).map_err(failed)?;
    }
    let mut made: Vec<&PathBuf> = Vec::new();
    for (part, name) in parts.iter().zip(&names) {
        if !is_url {
            // A signal removes the parts that are whole, too: all, or none.
            interrupt::remove_at_end(name);
        }
        let done = run("split", part, std::slice::from_ref(path), name, global);
        if let Err(error) = done {
            made.iter().for_each(|name| locations::remove(name));
            return Err(error);
        }
        made.push(name);
    }
    Ok(())
}

/// The names of parts: in a folder that of the file with their number, else the pattern.
fn names(output: &Path, input: &str, parts: usize) -> Result<Vec<PathBuf>> {
    let digits = parts.saturating_sub(1).to_string().len().max(3);
    let text = output.to_string_lossy();
    let is_folder = output.is_dir() || text.ends_with('/') || output.extension().is_none();
    let number = |at: usize| format!("{at:0digits$}");
    if let Some((before, after)) = text.split_once("{}") {
        return Ok((0..parts).map(|at| format!("{before}{}{after}", number(at)).into()).collect());
    }
    if !is_folder {
        return Err(Failure::Usage(format!(
            "{text}: say a folder, or a name with {{}} in the place of the number"
        )));
    }
    let stem = Path::new(input).file_stem().filter(|_| input != "-");
    let stem = stem.map_or_else(|| "part".into(), |stem| stem.to_string_lossy());
    Ok((0..parts).map(|at| output.join(format!("{stem}-{}.parquet", number(at)))).collect())
}

/// A folder for each value of a column.
fn by_value(
    reader: &Reader,
    column: &str,
    output: &Path,
    command: &Split,
    global: &Global,
) -> Result<()> {
    let flags = &command.copying;
    if flags.dry_run {
        let plan = Rewrite::new([reader.clone()]).regroup(true).plan()?;
        let to_screen = Global { output: None, ..global.clone() };
        let name = output.join(format!("{column}=…")).display().to_string();
        let plan = PlanReport::new(std::slice::from_ref(&command.source.file), name, plan);
        return report::print(&SplitReport { files: vec![plan] }, &to_screen);
    }
    if locations::url(output).is_some() {
        let text = "--by writes folders, not objects: say a local folder with -o";
        return Err(Failure::Usage(text.to_owned()));
    }
    let mut options = WriteOptions::new();
    for pair in &flags.set_kv {
        let Some((key, value)) = pair.split_once('=') else {
            return Err(Failure::Usage(format!("--set-kv {pair}: write KEY=VALUE")));
        };
        options = options.with_key_value(key, value);
    }
    if let Some(key) = flags.drop_kv.first() {
        return Err(Failure::Usage(format!(
            "--drop-kv {key}: with --by, rows are written anew; rewrite the file first"
        )));
    }
    if let Some(encryption) = keys::encryption(&flags.encrypt, global)? {
        options = options.with_encryption(encryption);
    }
    let schema = reader.schema()?;
    let batches = reader.batches()?;
    let out = FolderOut::create(output)?;
    let mut export = Export::to(out.path(), schema)?.options(options).partition_by([column]);
    if let Some(bytes) = global.mem {
        export = export.memory(bytes);
    }
    let files = export.run([batches])?;
    out.finish()?;
    if !global.quiet && global.verbose > 0 {
        let rows = files.iter().map(|file| file.report.rows).sum();
        eprintln!("split: {} files, {} rows", files.len(), output::count(rows, global));
    }
    Ok(())
}
