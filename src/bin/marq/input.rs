//! Which files a command works on, and how they are opened.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow_array::RecordBatch;
use arrow_schema::{SchemaRef, TimeUnit};
use bytes::Bytes;
use marquetry::crypt::Decryption;
use marquetry::io::Source;
use marquetry::{Error, Limits, Predicate, Reader, RowSelection};

use crate::args::{FilesOfRows, Global, Unit};
use crate::checks;
use crate::escape;
use crate::failure::{Failure, Result};
use crate::hive::{self, Completed, Input};
use crate::keys;
use crate::variants::Part;

/// Expands globs and folders, in the order of the arguments.
pub(crate) fn paths(files: &[String]) -> Result<Vec<String>> {
    Ok(expanded(files)?.into_iter().map(|(path, _)| path).collect())
}

/// The same for rows: files that a folder or a glob stands for have the partition columns that
/// their folders say.
pub(crate) fn inputs(files: &[String], global: &Global) -> Result<Vec<Input>> {
    let files = expanded(files)?;
    let in_folders: Vec<Option<&str>> = files
        .iter()
        .map(|(path, found)| (*found && !global.no_hive).then_some(path.as_str()))
        .collect();
    let known = hive::partitions(&in_folders)?;
    Ok(files.into_iter().zip(known).map(|((path, _), known)| Input { path, known }).collect())
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

/// The files, and whether each was found in a folder or by a glob.
fn expanded(files: &[String]) -> Result<Vec<(String, bool)>> {
    let mut out = Vec::new();
    for file in files {
        let path = Path::new(file);
        if file == "-" || path.is_file() {
            out.push((file.clone(), false));
        } else if path.is_dir() {
            let found = matches(&format!("{}/**/*.parquet", glob::Pattern::escape(file)))?;
            if found.is_empty() {
                return Err(Failure::Usage(format!("{file}: no .parquet file in this folder")));
            }
            out.extend(found.into_iter().map(|path| (path, true)));
        } else if file.contains("://") {
            return Err(checks::unknown_scheme(file));
        } else if file.contains(['*', '?', '[']) {
            let found = matches(file)?;
            if found.is_empty() {
                return Err(Failure::Usage(format!("no file matches {file}")));
            }
            out.extend(found.into_iter().map(|path| (path, true)));
        } else {
            // Opening it says what is wrong.
            out.push((file.clone(), false));
        }
    }
    Ok(out)
}

fn matches(pattern: &str) -> Result<Vec<String>> {
    let found = glob::glob(pattern).map_err(|e| Failure::Usage(format!("{pattern}: {e}")))?;
    let mut paths: Vec<String> = found
        .filter_map(|path| path.ok())
        .map(|path| path.to_string_lossy().into_owned())
        .collect();
    paths.sort();
    Ok(paths)
}

/// Opens a file, or standard input, with what the global flags say.
pub(crate) fn open(path: &str, global: &Global) -> Result<Reader> {
    configure(source(path)?, path, global)
}

/// The same with these keys, or none.
pub(crate) fn open_with(path: &str, global: &Global, keys: Option<&Decryption>) -> Result<Reader> {
    configure_with(source(path)?, path, global, keys)
}

/// The bytes of a file, or of standard input, which is read whole.
pub(crate) fn source(path: &str) -> Result<Arc<dyn Source>> {
    if path == "-" {
        let mut bytes = Vec::new();
        std::io::stdin()
            .lock()
            .read_to_end(&mut bytes)
            .map_err(|e| Error::io("reading standard input", e).at_file(path))?;
        return Ok(Arc::new(Bytes::from(bytes)));
    }
    let file = std::fs::File::open(path)
        .map_err(|e| Error::io("the file cannot be opened", e).at_file(path))?;
    Ok(Arc::new(file))
}

/// A reader of `source` with what the global flags say.
pub(crate) fn configure(
    source: impl Source + 'static,
    path: &str,
    global: &Global,
) -> Result<Reader> {
    configure_with(source, path, global, keys::decryption(global, path)?.as_ref())
}

/// Whether the warning about unauthenticated pages was printed: once is enough for many files.
static SAID_CTR: AtomicBool = AtomicBool::new(false);

pub(crate) fn configure_with(
    source: impl Source + 'static,
    path: &str,
    global: &Global,
    keys: Option<&Decryption>,
) -> Result<Reader> {
    let mut limits = Limits::default();
    if let Some(bytes) = global.mem {
        limits.memory_bytes = bytes;
    }
    if let Some(bytes) = global.limit_footer {
        limits.footer_bytes = bytes;
    }
    let opened = match keys {
        Some(keys) => Reader::with_keys(source, limits, keys),
        None => Reader::with_limits(source, limits),
    };
    let reader = opened.map_err(|e| e.at_file(path))?;
    let is_of_ctr = keys.is_some() && reader.metadata().has_unauthenticated_pages();
    if is_of_ctr && !global.quiet && !SAID_CTR.swap(true, Ordering::Relaxed) {
        let path = escape::escape(path);
        eprintln!("marq: note: {path}: its pages are not authenticated (AES_GCM_CTR_V1)");
    }
    let mut reader = reader.file_name(path);
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
    /// Says how batches get their partition columns.
    completed: Option<Completed>,
    /// What is shown of VARIANT columns, if not all.
    part: Option<Part>,
}

impl Opened {
    /// The schema of the rows.
    pub(crate) fn schema(&self) -> Result<SchemaRef> {
        let schema = match &self.completed {
            Some(completed) => completed.schema.clone(),
            None => self.reader.schema()?,
        };
        Ok(self.part.as_ref().map_or_else(|| schema.clone(), |part| part.schema(&schema)))
    }

    /// A batch of the reader, with its partition columns.
    pub(crate) fn complete(&self, batch: RecordBatch) -> Result<RecordBatch> {
        let batch = match &self.completed {
            Some(completed) => completed.complete(&batch)?,
            None => batch,
        };
        self.part.as_ref().map_or_else(|| Ok(batch.clone()), |part| part.of(&batch))
    }
}

/// Opens a file of which rows are counted or read: those that meet the filter.
pub(crate) fn open_filtered(input: &Input, global: &Global) -> Result<Reader> {
    filtered(open(&input.path, global)?, input, global)
}

fn filtered(reader: Reader, input: &Input, global: &Global) -> Result<Reader> {
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
    let mut reader = filtered(reader, input, global)?;
    let mut completed = None;
    let wanted = &rows.columns.columns;
    if let Some(known) = &input.known {
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
        // Offset and limit would count the rows that pass.
        Some((from, to)) if reader.read_options().filter.is_some() => {
            let rows = chosen_rows(&reader, from, to)?;
            reader = reader.select(rows)?;
        }
        Some((from, to)) => reader = reader.offset(from).limit(to - from),
        None => {}
    }
    let mut opened = Opened { reader, completed, part: None };
    opened.part = Part::new(rows.variant_path.as_deref(), opened.schema()?.as_ref())?;
    Ok(opened)
}

/// The rows `from` to `to` of the chosen row groups, by their numbers in the file.
fn chosen_rows(reader: &Reader, from: u64, to: u64) -> Result<RowSelection> {
    let footer = reader.metadata();
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
        let rows = footer.row_group_rows(row_group)?;
        let start = first.get(row_group).copied().unwrap_or_default();
        let within = |row: u64| start + row.clamp(counted, counted + rows) - counted;
        ranges.push(within(from)..within(to));
        counted += rows;
    }
    ranges.sort_by_key(|range| range.start);
    ranges.dedup();
    Ok(RowSelection::from_ranges(at, ranges)?)
}

/// The leaves that names, nested paths, globs and exclusions mean; all where nothing is said.
pub(crate) fn leaves(reader: &Reader, path: &str, wanted: &[String]) -> Result<Vec<usize>> {
    let schema = reader.metadata().schema();
    let mut paths = Vec::new();
    for leaf in 0..schema.leaves_len() {
        paths.push(schema.leaf_node(leaf)?.path().dotted());
    }
    let matching = |text: &str| -> Result<Vec<usize>> {
        if !text.contains(['*', '?', '[']) || paths.iter().any(|path| path == text) {
            let found = schema.node_named(text);
            return Ok(found.map_err(|e| e.at_file(path))?.leaves().collect());
        }
        let glob = glob::Pattern::new(text).map_err(|e| Failure::Usage(format!("{text}: {e}")))?;
        let found = paths.iter().enumerate().filter(|(_, path)| glob.matches(path));
        let found: Vec<usize> = found.map(|(leaf, _)| leaf).collect();
        if found.is_empty() {
            return Err(no_column(text, &paths));
        }
        Ok(found)
    };
    let mut leaves: Vec<usize> = Vec::new();
    if wanted.iter().all(|name| name.starts_with('!')) {
        leaves.extend(0..paths.len());
    }
    for name in wanted {
        match name.strip_prefix('!') {
            Some(out) => {
                let out = matching(out)?;
                leaves.retain(|leaf| !out.contains(leaf));
            }
            None => {
                let found = matching(name)?;
                leaves.extend(
                    found.into_iter().filter(|leaf| !leaves.contains(leaf)).collect::<Vec<_>>(),
                );
            }
        }
    }
    if leaves.is_empty() && !wanted.is_empty() {
        return Err(Failure::Usage("no column is left".to_owned()));
    }
    Ok(leaves)
}

/// The columns that names, globs and exclusions mean, in the order of the file where globs leave it
/// open.
pub(crate) fn columns(all: &[String], wanted: &[String]) -> Result<Vec<String>> {
    let pattern =
        |text: &str| glob::Pattern::new(text).map_err(|e| Failure::Usage(format!("{text}: {e}")));
    let mut names: Vec<String> = Vec::new();
    if wanted.iter().all(|name| name.starts_with('!')) {
        names = all.to_vec();
    }
    for name in wanted {
        if let Some(out) = name.strip_prefix('!') {
            let pattern = pattern(out)?;
            if !all.iter().any(|name| pattern.matches(name) || name == out) {
                return Err(no_column(&format!("!{out}"), all));
            }
            names.retain(|name| !pattern.matches(name) && name != out);
        } else if name.contains(['*', '?', '[']) && !all.contains(name) {
            let glob = pattern(name)?;
            let found: Vec<String> =
                all.iter().filter(|name| glob.matches(name)).cloned().collect();
            if found.is_empty() {
                return Err(no_column(name, all));
            }
            names.extend(found);
        } else {
            names.push(name.clone());
        }
    }
    if names.is_empty() {
        return Err(Failure::Usage("no column is left to read".to_owned()));
    }
    Ok(names)
}

fn no_column(pattern: &str, all: &[String]) -> Failure {
    let shown: Vec<&str> = all.iter().take(20).map(String::as_str).collect();
    let more = if shown.len() < all.len() { ", …" } else { "" };
    let names = shown.join(", ");
    Failure::Usage(format!("no column matches {pattern}; the columns are {names}{more}"))
}
