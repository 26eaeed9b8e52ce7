//! [`Reader::files_below`] reads column chunks that lie in other files, as a `_metadata` summary
//! has them.
//!
//! Spec: `ColumnChunk.file_path` of parquet.thrift. The files become one source
//! ([`FileSet`](crate::io::FileSet)), and the offsets in the metadata those of that source, so the
//! rest of a read is unaffected. Trap: the path comes from a file, and must not lead out of the
//! folder that the caller trusts.

use std::collections::{HashMap, HashSet};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use super::Reader;
use crate::error::{Error, Result, Spec};
use crate::format::{ColumnChunk, ColumnMetaData, FileMetaData};
use crate::io::{FileSet, ReopenedFile, Source};
use crate::limits::Limits;
use crate::read::{Footer, Metadata, PageCache};
use crate::thrift::Write;

impl Reader {
    /// Finds the column chunks that lie in other files below `base`: for a `_metadata` summary, as
    /// Spark, Dask and [`Export::summary`](crate::Export::summary) write it, usually in that
    /// folder. All files are then read as one.
    ///
    /// ```no_run
    /// # fn main() -> marquetry::Result<()> {
    /// let reader = marquetry::Reader::open("table/_metadata")?.files_below("table")?;
    /// for part in reader.streams(4)? {
    ///     // …
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// The paths in a summary are as untrusted as the rest of it. A path that is absolute, contains
    /// `..`, or leads out of `base` through a link, is refused, and only regular files are opened:
    /// when they are read, and they do not stay open. Links are checked before each of those times,
    /// not while a file is being opened: in a folder that others may write to, a link that is made
    /// at that moment can still lead out of it.
    ///
    /// # Errors
    /// `Unsupported` for such a path, and for encrypted files; `Io` if a file is missing or no
    /// regular file; `Malformed` if a chunk does not lie in its file.
    pub fn files_below(mut self, base: impl AsRef<Path>) -> Result<Self> {
        let found = self.find_files(base.as_ref()).map_err(|e| self.name(e))?;
        if let Some((set, metadata)) = found {
            (self.source, self.metadata) = (Arc::new(set), metadata);
            self.page_cache = PageCache::default();
        }
        Ok(self)
    }

    fn find_files(&self, base: &Path) -> Result<Option<Found<Arc<dyn Source>>>> {
        let Some(summary) = Summary::new(&self.metadata)? else { return Ok(None) };
        let at_base = |e| Error::io("the base folder", e).at_file(base.display().to_string());
        let base = base.canonicalize().map_err(at_base)?;
        let own = (self.own_name(), self.file_len(), self.source.clone());
        let mut files = vec![own];
        for path in &summary.paths {
            let file = inside(&base, path)?;
            let name: Arc<str> = file.to_string_lossy().into();
            let open = ReopenedFile::within(&file, &base);
            let source: Arc<dyn Source> = Arc::new(open.map_err(|e| e.at_file(name.clone()))?);
            files.push((name, source.len()?, source));
        }
        let set = FileSet::new(files)?;
        let metadata = summary.moved(&set, &self.options.limits)?;
        Ok(Some((set, metadata)))
    }
}

impl<S> Reader<S> {
    pub(super) fn own_name(&self) -> Arc<str> {
        self.file_name.clone().unwrap_or_else(|| "the summary".into())
    }
}

/// The files of a summary as one source, and the metadata that fit it.
pub(super) type Found<S> = (FileSet<S>, Metadata);

/// The metadata of a summary, and the files that they name, in the order in which they do.
pub(super) struct Summary {
    metadata: FileMetaData,
    pub(super) paths: Vec<String>,
}

impl Summary {
    /// `None` if no chunk lies in another file.
    pub(super) fn new(of: &Metadata) -> Result<Option<Self>> {
        let metadata = of.index().to_file_meta_data()?;
        let chunks = || metadata.row_groups.iter().flat_map(|row_group| &row_group.columns);
        let mut known = HashSet::new();
        let mut paths = Vec::new();
        for path in chunks().filter_map(external) {
            // One file however its path is spelled: there are no more of them than in the folder.
            let path = names_of(path)?.join("/");
            if known.insert(path.clone()) {
                paths.push(path);
            }
        }
        if paths.is_empty() {
            return Ok(None);
        }
        if of.is_encrypted() || chunks().any(|chunk| chunk.crypto_metadata.is_some()) {
            let what = "chunks in other files of an encrypted summary";
            return Err(Error::unsupported(what, "read the files that it names instead"));
        }
        Ok(Some(Self { metadata, paths }))
    }

    /// The metadata with the offsets of the set.
    pub(super) fn moved<S>(mut self, set: &FileSet<S>, limits: &Limits) -> Result<Metadata> {
        let numbers: HashMap<&str, usize> =
            self.paths.iter().enumerate().map(|(i, path)| (&**path, i + 1)).collect();
        for (i, row_group) in self.metadata.row_groups.iter_mut().enumerate() {
            for chunk in &mut row_group.columns {
                let Some(path) = external(chunk) else { continue };
                let path = names_of(path)?.join("/");
                let Some(&number) = numbers.get(&*path) else { continue };
                chunk.file_path = None;
                let place = set.place(number);
                moved(chunk, place.start, place.end - place.start)
                    .map_err(|e| e.at_row_group(i).within(path_text(&path)))?;
            }
        }
        let mut footer = Vec::new();
        self.metadata.write(&mut footer)?;
        let footer = Footer::parse(footer.into(), limits)?;
        Ok(Metadata::new(footer, set.byte_len()))
    }
}

/// The file of a chunk, if it is another.
fn external(chunk: &ColumnChunk) -> Option<&str> {
    chunk.file_path.as_deref().filter(|path| !path.is_empty())
}

/// Moves the offsets of a chunk, which must lie within `len` bytes, by `by`.
fn moved(chunk: &mut ColumnChunk, by: u64, len: u64) -> Result<()> {
    let shift = |offset: &mut i64, what: &str| {
        let moved = u64::try_from(*offset).ok().filter(|offset| *offset <= len);
        // The places of the files end below 2^62.
        let moved = moved.and_then(|offset| i64::try_from(offset + by).ok());
        *offset = moved.ok_or_else(|| {
            let expected = format_args!("within the {len} bytes of the file");
            Error::mismatch(Spec::Metadata("ColumnChunk"), what, expected, *offset)
        })?;
        Ok::<_, Error>(())
    };
    let shift_some = |offset: &mut Option<i64>, what: &str| match offset {
        // 0 is absent too.
        Some(offset) if *offset != 0 => shift(offset, what),
        _ => Ok(()),
    };
    shift_some(&mut chunk.offset_index_offset, "offset_index_offset")?;
    shift_some(&mut chunk.column_index_offset, "column_index_offset")?;
    chunk.file_offset = 0;
    let Some(meta) = &mut chunk.meta_data else { return Ok(()) };
    if meta.num_values != 0 {
        check_within(meta, len)?;
        shift(&mut meta.data_page_offset, "data_page_offset")?;
    }
    shift_some(&mut meta.dictionary_page_offset, "dictionary_page_offset")?;
    shift_some(&mut meta.bloom_filter_offset, "bloom_filter_offset")?;
    meta.index_page_offset = None;
    Ok(())
}

/// Checks that the pages of a chunk lie in its file.
fn check_within(meta: &ColumnMetaData, len: u64) -> Result<()> {
    let dictionary = meta.dictionary_page_offset.filter(|offset| *offset > 0);
    let start = dictionary.unwrap_or(i64::MAX).min(meta.data_page_offset);
    let end = start.checked_add(meta.total_compressed_size);
    let end = end.and_then(|end| u64::try_from(end).ok());
    match end.filter(|end| start >= 0 && *end <= len) {
        Some(_) => Ok(()),
        None => Err(Error::mismatch(
            Spec::Container,
            "byte range of the column chunk",
            format_args!("within the {len} bytes of the file"),
            format_args!("{} bytes at {start}", meta.total_compressed_size),
        )),
    }
}

/// The names that a relative path is made of.
///
/// # Errors
/// `Unsupported` if it is absolute, or goes up.
pub(super) fn names_of(path: &str) -> Result<Vec<&str>> {
    if path.starts_with('/') {
        return Err(refused(path_text(path), "the path is absolute"));
    }
    let names = path.split('/').filter(|name| !name.is_empty() && *name != ".");
    let names: Vec<&str> = names.collect();
    if names.contains(&"..") {
        return Err(refused(path_text(path), "the path goes up, by \"..\""));
    }
    Ok(names)
}

/// The file at a path of a summary, below `base`, whatever links there are.
pub(crate) fn inside(base: &Path, path: &str) -> Result<PathBuf> {
    let names = names_of(path)?;
    // Systems with other separators, or with drives, have more ways out.
    let is_plain = |name: &&str| {
        let mut parts = Path::new(name).components();
        matches!((parts.next(), parts.next()), (Some(Component::Normal(_)), None))
    };
    if !names.iter().all(is_plain) {
        return Err(refused(path_text(path), "the path is not relative on this system"));
    }
    let file = names.iter().fold(base.to_path_buf(), |folder, name| folder.join(name));
    let real = file.canonicalize().map_err(|e| {
        Error::io("the file of a column chunk cannot be opened", e)
            .at_file(file.display().to_string())
    })?;
    if !real.starts_with(base) {
        return Err(refused(path_text(path), "a link leads out of the base folder"));
    }
    Ok(real)
}

pub(super) fn path_text(path: &str) -> String {
    format!("column chunks in {path:?}")
}

#[cold]
pub(super) fn refused(path: String, why: impl std::fmt::Display) -> Error {
    Error::unsupported("column chunks outside of the base folder", why).within(path)
}
