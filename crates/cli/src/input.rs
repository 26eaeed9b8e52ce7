//! Finds the files that a command works on, and opens them.

use std::io::Read;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::{SchemaRef, TimeUnit};
use bytes::Bytes;
use marquetry::crypt::Decryption;
use marquetry::io::Source;
use marquetry::read::{OnDamage, ReadOptions};
use marquetry::schema::{MatchBy, unite};
use marquetry::{Error, Limits, Predicate, Reader, RowSelection};

use crate::args::{FilesOfRows, Global, Unit};
use crate::damage;
use crate::escape;
use crate::failure::{Failure, Result};
use crate::files;
use crate::hive::{self, Completed, Input};
use crate::keys;
use crate::pieces::Batches;
use crate::sniff;
use crate::variants::Part;
use crate::{locations, trace_io, urls};

pub(crate) use crate::named_columns::{columns, leaves};

/// The files, in the order of the arguments.
pub(crate) fn paths(files: &[String]) -> Result<Vec<String>> {
    Ok(files::expand(files)?.into_iter().map(|file| file.path).collect())
}

/// The same with the partition columns that their folders say: those below the deepest folder that
/// all files have in common, whether the shell expanded a glob or `marq` did.
pub(crate) fn inputs(files: &[String], global: &Global) -> Result<Vec<Input>> {
    let files = files::expand(files)?;
    if global.no_hive {
        let input = |path| Input { path, partitions: None, target: None };
        return Ok(files.into_iter().map(|file| input(file.path)).collect());
    }
    let common = files::common_folder(&files);
    let paths: Vec<String> = files.into_iter().map(|file| file.path).collect();
    let known = hive::partitions(&paths, &common, global.hive_types);
    let input = |(path, partitions)| Input { path, partitions, target: None };
    Ok(paths.into_iter().zip(known).map(input).collect())
}

/// The same without those whose folders say that no row meets the filter; one is kept at least, for
/// its columns.
pub(crate) fn unpruned(files: &[String], global: &Global) -> Result<Vec<Input>> {
    let inputs = inputs(files, global)?;
    let mut kept = Vec::new();
    for input in &inputs {
        if !input.is_pruned(global.filter.as_deref())? {
            kept.push(input.clone());
        }
    }
    if kept.is_empty() {
        kept.extend(inputs.into_iter().next());
    }
    Ok(kept)
}

/// The same files, to be read into the columns of all of them.
///
/// # Errors
/// `Usage` if columns of one name have types that nothing holds the values of.
pub(crate) fn united(inputs: Vec<Input>, global: &Global) -> Result<Vec<Input>> {
    let mut united: Option<SchemaRef> = None;
    for input in &inputs {
        // An error of a file is reported when its turn comes.
        let Ok(reader) = open(&input.path, global) else { continue };
        let schema = reader.views(true).schema()?;
        let before = united.unwrap_or_else(|| schema.clone());
        let both = unite([&before, &schema]).map_err(|e| e.at_file(input.path.as_str()))?;
        united = Some(both);
    }
    let with_target = |input| Input { target: united.clone(), ..input };
    Ok(inputs.into_iter().map(with_target).collect())
}

/// Opens a file, or standard input, with what the global flags say.
pub(crate) fn open(path: &str, global: &Global) -> Result<Reader> {
    configure(source(path, global)?, path, global)
}

/// The same with these keys, or none.
pub(crate) fn open_with(path: &str, global: &Global, keys: Option<&Decryption>) -> Result<Reader> {
    configure_with(source(path, global)?, path, global, keys)
}

/// Pipes that were read: they give their bytes once, and some commands open their files twice.
static PIPES: Mutex<Vec<(String, Bytes)>> = Mutex::new(Vec::new());

/// The bytes of a file, or of standard input or another pipe, which is read whole.
pub(crate) fn source(path: &str, global: &Global) -> Result<Arc<dyn Source>> {
    if urls::is_url(path) {
        return locations::source(path);
    }
    let mut pipes = PIPES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, bytes)) = pipes.iter().find(|(pipe, _)| pipe == path) {
        return Ok(Arc::new(bytes.clone()));
    }
    let bytes = if path == "-" {
        read_whole(&mut std::io::stdin().lock(), path, global)?
    } else {
        let failed = |e| Error::io("the file cannot be opened", e).at_file(path);
        let mut file = std::fs::File::open(path).map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        if metadata.is_file() || metadata.is_dir() {
            return Ok(trace_io::traced(path, file));
        }
        read_whole(&mut file, path, global)?
    };
    let bytes = Bytes::from(bytes);
    pipes.push((path.to_owned(), bytes.clone()));
    Ok(Arc::new(bytes))
}

/// All bytes of a pipe, within the memory limit.
pub(crate) fn read_whole(stream: &mut dyn Read, name: &str, global: &Global) -> Result<Vec<u8>> {
    let limit = global.mem.unwrap_or_else(|| Limits::default().memory_bytes);
    let mut bytes = Vec::new();
    let read = stream.take(limit).read_to_end(&mut bytes);
    let read = read.and_then(|_| stream.read(&mut [0]));
    if read.map_err(|e| Error::io("reading", e).at_file(name))? > 0 {
        let text = format!(
            "more than {limit} bytes come through the pipe, which is held in memory; raise --mem, \
             or write them to a file"
        );
        return Err(Failure::content(name, None, text));
    }
    Ok(bytes)
}

/// Returns the results of `each` for the files that can be read, and reports the others. The second
/// value is the exit code of the command: `Partial` if there were such.
///
/// # Errors
/// For a single file, its error; for several, that of the last file if none can be read; and errors
/// of the command line.
pub(crate) fn each_readable<T>(
    paths: &[String],
    global: &Global,
    mut each: impl FnMut(&str) -> Result<T>,
) -> Result<(Vec<T>, Result<()>)> {
    let (mut found, mut end) = (Vec::new(), Ok(()));
    for (i, path) in paths.iter().enumerate() {
        match each(path) {
            Ok(one) => found.push(one),
            Err(failure) if failure.code() == 2 => return Err(failure),
            Err(failure) if found.is_empty() && i + 1 == paths.len() => return Err(failure),
            Err(failure) => {
                let _ = failure.report(global.format);
                end = Err(Failure::Partial);
            }
        }
    }
    Ok((found, end))
}

/// A reader of `source` with what the global flags say.
pub(crate) fn configure(
    source: impl Source + 'static,
    path: &str,
    global: &Global,
) -> Result<Reader> {
    configure_with(source, path, global, keys::decryption(global, path)?.as_ref())
}

/// The limits that the global flags say.
pub(crate) fn limits(global: &Global) -> Limits {
    let mut limits = Limits::default();
    if let Some(bytes) = global.mem {
        limits.memory_bytes = bytes;
    }
    if let Some(bytes) = global.limit_footer {
        limits.footer_bytes = bytes;
    }
    limits
}

/// Whether the warning about unauthenticated pages was printed: once is enough for many files.
static SAID_CTR: AtomicBool = AtomicBool::new(false);

pub(crate) fn configure_with(
    source: impl Source + 'static,
    path: &str,
    global: &Global,
    keys: Option<&Decryption>,
) -> Result<Reader> {
    if let Some(failure) = sniff::not_parquet(&source, path) {
        return Err(failure);
    }
    let limits = limits(global);
    let opened = match keys {
        Some(keys) => Reader::with_keys(source, limits, keys),
        None => Reader::with_limits(source, limits),
    };
    let reader = opened.map_err(|e| e.at_file(path))?;
    trace_io::know(path, reader.file_len(), reader.metadata());
    let is_of_ctr = keys.is_some() && reader.metadata().has_unauthenticated_pages();
    if is_of_ctr && !global.quiet && !SAID_CTR.swap(true, Ordering::Relaxed) {
        let path = escape::escape(path);
        eprintln!("marq: note: {path}: its pages are not authenticated (AES_GCM_CTR_V1)");
    }
    let mut reader = reader.file_name(path).shared_bytes(global.shared_bytes);
    reader = reader.verify_statistics(global.verify_statistics);
    if let Some(threads) = global.threads {
        reader = reader.threads(threads);
    }
    if let Some(unit) = global.int96 {
        reader = reader.int96(match unit {
            Unit::S => TimeUnit::Second,
            Unit::Ms => TimeUnit::Millisecond,
            Unit::Us => TimeUnit::Microsecond,
            Unit::Ns => TimeUnit::Nanosecond,
        });
    }
    Ok(reader)
}

/// A file whose rows are read.
pub(crate) struct Opened {
    pub(crate) reader: Reader,
    /// How batches get their partition columns.
    completed: Option<Completed>,
    /// The shown part of VARIANT columns, if not all.
    part: Option<Part>,
    parts: Option<ReadParts>,
}

/// The parts of VARIANT columns where the reader extracts them, within its memory.
struct ReadParts {
    /// That of the rows.
    schema: SchemaRef,
    /// Where the reader gives each column.
    order: Vec<usize>,
}

impl Opened {
    /// The schema of the rows.
    pub(crate) fn schema(&self) -> Result<SchemaRef> {
        if let Some(parts) = &self.parts {
            return Ok(parts.schema.clone());
        }
        let schema = match &self.completed {
            Some(completed) => completed.schema.clone(),
            None => self.reader.schema()?,
        };
        Ok(self.part.as_ref().map_or_else(|| schema.clone(), |part| part.schema(&schema)))
    }

    /// The rows of a batch of the reader, with its partition columns.
    pub(crate) fn complete(&self, batch: RecordBatch) -> Result<Batches> {
        if let Some(ReadParts { schema, order }) = &self.parts {
            let columns = order.iter().map(|column| batch.column(*column).clone());
            let rows = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
            let (schema, columns) = (schema.clone(), columns.collect());
            let batch = RecordBatch::try_new_with_options(schema, columns, &rows)?;
            return Ok(Box::new(std::iter::once(Ok(batch))));
        }
        let batch = match &self.completed {
            Some(completed) => completed.complete(&batch)?,
            None => batch,
        };
        match &self.part {
            Some(part) => part.extract(&batch),
            None => Ok(Box::new(std::iter::once(Ok(batch)))),
        }
    }
}

/// Opens a file whose rows are counted or read: those that pass the filter.
pub(crate) fn open_filtered(input: &Input, global: &Global) -> Result<Reader> {
    filtered(open(&input.path, global)?, input, global)
}

fn filtered(reader: Reader, input: &Input, global: &Global) -> Result<Reader> {
    let reader = damage::configure(reader, global);
    let Some(filter) = &global.filter else { return Ok(reader) };
    Ok(match input.filter(filter)? {
        filter if filter == Predicate::TRUE => reader,
        filter => reader.filter(filter),
    })
}

/// Opens a file whose rows are shown: columns, row groups and rows as the flags say.
///
/// Strings are read as views, so that one that many rows share is held once.
pub(crate) fn open_rows(input: &Input, rows: &FilesOfRows, global: &Global) -> Result<Opened> {
    narrow(open(&input.path, global)?.views(true), input, rows, global)
}

/// Leaves the columns, row groups and rows that the flags say.
pub(crate) fn narrow(
    reader: Reader,
    input: &Input,
    rows: &FilesOfRows,
    global: &Global,
) -> Result<Opened> {
    let path = input.path.as_str();
    let reader = match &input.target {
        Some(target) => reader.target(target.clone(), MatchBy::Name)?,
        None => reader,
    };
    let mut reader = filtered(reader, input, global)?;
    let mut completed = None;
    let wanted = &rows.columns.names();
    if let Some(known) = &input.partitions {
        let (projected, how) = Completed::new(reader, known, wanted)?;
        (reader, completed) = (projected, Some(how));
    } else if !wanted.is_empty() {
        let schema = reader.schema()?;
        let all: Vec<String> = schema.fields().iter().map(|field| field.name().clone()).collect();
        let names = columns(&all, wanted)?;
        reader = reader.project(names).map_err(|e| e.at_file(path))?;
    }
    if !rows.row_group.is_empty() {
        reader = reader.row_groups(rows.row_group.iter().copied()).map_err(|e| e.at_file(path))?;
    }
    match rows.rows {
        // Offset and limit would count the rows that pass, and those that are not damaged.
        Some((from, to)) if counts_others(reader.read_options()) => {
            let rows = chosen_rows(&reader, from, to)?;
            reader = reader.select(rows)?;
        }
        Some((from, to)) => reader = reader.offset(from).limit(to - from),
        None => {}
    }
    let mut opened = Opened { reader, completed, part: None, parts: None };
    let schema = opened.schema()?;
    opened.part = Part::new(rows.variant_path.as_deref(), &schema, global)?;
    if let Some(part) = &opened.part
        && opened.completed.is_none()
        && input.target.is_none()
        && let Some((reader, order)) = part.read_by(&opened.reader)?
    {
        opened.parts = Some(ReadParts { schema: part.schema(&schema), order });
        opened.reader = reader;
    }
    Ok(opened)
}

/// The sum of numbers of rows.
///
/// # Errors
/// `Unsupported` if there is no number for it: files without columns may state any number.
pub(crate) fn sum_of_rows(rows: impl IntoIterator<Item = u64>) -> Result<u64, Error> {
    let sum = rows.into_iter().try_fold(0u64, u64::checked_add);
    let text = "the files state more than 2^64 rows in all";
    sum.ok_or_else(|| Error::unsupported("rows of such a number", text))
}

/// Whether offset and limit count other rows than those of the file.
fn counts_others(options: &ReadOptions) -> bool {
    options.filter.is_some() || options.on_damage != OnDamage::Fail
}

/// The rows `from` to `to` of the chosen row groups, by their numbers in the file.
fn chosen_rows(reader: &Reader, from: u64, to: u64) -> Result<RowSelection> {
    let footer = reader.metadata();
    let rows = footer.rows()?;
    let mut first = Vec::new();
    let mut at = 0;
    for row_group in 0..footer.row_groups() {
        first.push(at);
        at += footer.row_group_rows(row_group)?;
    }
    let all = (0..footer.row_groups()).collect();
    let chosen: Vec<usize> = reader.read_options().row_groups.clone().unwrap_or(all);
    let (mut ranges, mut counted) = (Vec::new(), 0u64);
    for row_group in chosen {
        let end = sum_of_rows([counted, footer.row_group_rows(row_group)?])?;
        let start = first.get(row_group).copied().unwrap_or_default();
        let within = |row: u64| start + (row.clamp(counted, end) - counted);
        ranges.push(within(from)..within(to));
        counted = end;
    }
    ranges.sort_by_key(|range| range.start);
    ranges.dedup();
    Ok(RowSelection::from_ranges(rows, ranges)?)
}
