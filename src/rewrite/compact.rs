//! [`Compact`]: the small files of a folder become few large ones.
//!
//! The folder changes at once. Beside it a folder is made of the new files, and of hard links to
//! all that stays; it is synced, and the two change places (`renameat2` with `RENAME_EXCHANGE`;
//! `renameatx_np` of macOS). Where a system or a file system has no such call, the folder is
//! renamed out of the way first, so that for a moment it is not there; the next run puts right what
//! a kill leaves then. A process that is killed before leaves the old folder, and one that is
//! killed after it the new one; what is left beside it has no data that the folder has not. A
//! reader that has listed the old folder finds the same files, or an error because a file is gone:
//! never rows twice, because a new file has a name that no old one had.
//!
//! A kill before the exchange leaves a folder beside it that the next run removes; one after it the
//! old folder, which the next run asks about, because others may have added files to it after it
//! was listed.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::exchange::{FolderTree, exchange, recover};
use super::files::Rewrite;
use super::key_order::{key_ordered, merge_ordered, sorted_streams, states_order};
use super::plan::RewritePlan;
use crate::crypt::Encryption;
use crate::error::{Error, Result};
use crate::format::SchemaElement;
use crate::io::{PathSink, ReopenedFile};
use crate::memory;
use crate::reader::Reader;

/// Joins the small files of a folder, by copying their row groups.
///
/// Files of one folder and of one schema are joined up to a size; those in folders below it, as of
/// Hive, stay in theirs. Names that begin with `_` or `.` are not looked at. Files that are sorted
/// by the same columns are joined in the order of their keys; where the keys of row groups overlap,
/// the new file is not sorted, and does not say so.
///
/// ```
/// # fn main() -> marquetry::Result<()> {
/// use marquetry::rewrite::Compact;
///
/// # let folder = tempfile::tempdir().unwrap();
/// # for i in 0..3 {
/// #     let name = folder.path().join(format!("{i}.parquet"));
/// #     std::fs::copy("testdata/trips.parquet", name).unwrap();
/// # }
/// let compact = Compact::new(folder.path()).file_bytes(256 << 20);
/// for join in compact.plan()?.joins {
///     println!("{:?} become {:?}", join.inputs, join.output);
/// }
/// assert_eq!(compact.run()?.files_made, 1);
/// # Ok(())
/// # }
/// ```
pub struct Compact {
    folder: PathBuf,
    file_bytes: u64,
    verifies_checksums: bool,
    merges: bool,
    encryption: Option<Encryption>,
    open: Box<Open>,
}

type Open = dyn Fn(&Path) -> Result<Reader> + Send + Sync;

impl std::fmt::Debug for Compact {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Compact")
            .field("folder", &self.folder)
            .field("file_bytes", &self.file_bytes)
            .finish_non_exhaustive()
    }
}

/// The plan of a [`Compact`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CompactPlan {
    /// The new files.
    pub joins: Vec<PlannedJoin>,
    /// Files that stay as they are.
    pub files_kept: usize,
}

/// Files that become one.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PlannedJoin {
    /// The old files, by their paths in the folder.
    pub inputs: Vec<PathBuf>,
    /// Bytes of the old files.
    pub bytes: u64,
    /// The new file, by its path in the folder.
    pub output: PathBuf,
    /// The methods for their column chunks; its files are numbered as they are read, by their
    /// keys where they are sorted.
    pub plan: RewritePlan,
}

/// The account of a [`Compact`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Compacted {
    /// Old files that were joined.
    pub files_joined: usize,
    /// New files.
    pub files_made: usize,
    /// Bytes of the new files.
    pub bytes: u64,
}

/// A file of the folder.
struct SmallFile {
    /// Its path in the folder.
    path: PathBuf,
    bytes: u64,
    modified: Option<SystemTime>,
    permissions: fs::Permissions,
    reader: Reader,
}

/// Makes an empty file with the permissions that all of the old ones have.
#[cfg(unix)]
fn make_empty(path: &Path, old: &[SmallFile]) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let modes = old.iter().map(|file| file.permissions.mode());
    let mode = modes.fold(0o666, |all, mode| all & mode);
    let made = fs::File::create_new(path)
        .and_then(|file| file.set_permissions(fs::Permissions::from_mode(mode)));
    made.map_err(|e| Error::io("creating the file", e).at_file(path.display().to_string()))
}

/// Here the permissions of a file are those of its folder.
#[cfg(not(unix))]
fn make_empty(_path: &Path, old: &[SmallFile]) -> Result<()> {
    let _ = old.iter().map(|file| &file.permissions);
    Ok(())
}

/// The files of a folder that have one schema, in the order of their names.
struct FilesOfSchema {
    schema: Vec<SchemaElement>,
    files: Vec<SmallFile>,
}

/// Files that become one, and how.
struct Join {
    files: Vec<SmallFile>,
    output: PathBuf,
    rewrite: Rewrite,
    note: Option<String>,
}

impl Compact {
    /// Joins files of a folder.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
            file_bytes: 256 << 20,
            verifies_checksums: false,
            merges: false,
            encryption: None,
            open: Box::new(|path| Reader::open(path)),
        }
    }

    /// The size that files are joined up to. Default 256 MiB.
    #[must_use]
    pub fn file_bytes(mut self, bytes: u64) -> Self {
        self.file_bytes = bytes;
        self
    }

    /// Sets whether the checksums of all pages are verified. Default: those that change.
    #[must_use]
    pub fn verify_checksums(mut self, verify: bool) -> Self {
        self.verifies_checksums = verify;
        self
    }

    /// Sets whether sorted files whose keys overlap are merged. Row groups whose keys lie apart
    /// from those of all others are copied; the rows of the others are decoded, and encoded in
    /// their order. By default all are copied, and the new file is not sorted.
    #[must_use]
    pub fn merge(mut self, merge: bool) -> Self {
        self.merges = merge;
        self
    }

    /// Encrypts the new files. By default they are not encrypted, whatever the old ones are.
    #[must_use]
    pub fn encryption(mut self, encryption: Encryption) -> Self {
        self.encryption = Some(encryption);
        self
    }

    /// Opens files otherwise than [`Reader::open`], with keys or limits.
    #[must_use]
    pub fn open_with(
        mut self,
        open: impl Fn(&Path) -> Result<Reader> + Send + Sync + 'static,
    ) -> Self {
        self.open = Box::new(open);
        self
    }

    /// Gives the folder its name back, if a process was killed while folders changed places by
    /// renames: where the system cannot exchange them at once. [`Compact::run`] begins with it.
    ///
    /// # Errors
    /// `Io`.
    pub fn recover(&self) -> Result<()> {
        recover(&self.folder)
    }

    /// Looks at the footers, and says what [`Compact::run`] will do.
    ///
    /// # Errors
    /// `Io` if the folder or a file cannot be read, `Malformed` if a file is broken, `Usage` if the
    /// folder is that of a table whose metadata name its files; as [`Rewrite::plan`].
    pub fn plan(&self) -> Result<CompactPlan> {
        let tree = FolderTree::read(&self.folder)?;
        let joins = self.joins(&tree)?;
        let joined: usize = joins.iter().map(|join| join.files.len()).sum();
        let files_kept = tree.parquet_files().count().saturating_sub(joined);
        let mut planned = Vec::with_capacity(joins.len());
        for join in joins {
            let mut plan = join.rewrite.plan()?;
            plan.notes.extend(join.note);
            planned.push(PlannedJoin {
                bytes: join.files.iter().map(|file| file.bytes).sum(),
                inputs: join.files.into_iter().map(|file| file.path).collect(),
                output: join.output,
                plan,
            });
        }
        Ok(CompactPlan { joins: planned, files_kept })
    }

    /// Joins the files.
    ///
    /// While it runs, no other process may replace or remove files of the folder; those that are
    /// added meanwhile are kept.
    ///
    /// # Errors
    /// As [`Compact::plan`] and [`Rewrite::run`]; `Unsupported` where folders cannot change places,
    /// as for a mount point. The folder is then as it was.
    pub fn run(&self) -> Result<Compacted> {
        self.recover()?;
        let tree = FolderTree::read(&self.folder)?;
        let joins = self.joins(&tree)?;
        let mut done = Compacted { files_joined: 0, files_made: 0, bytes: 0 };
        if joins.is_empty() {
            return Ok(done);
        }
        let joined: HashSet<&Path> =
            joins.iter().flat_map(|join| &join.files).map(|file| file.path.as_path()).collect();
        let beside = tree.link_beside(&|path| joined.contains(path))?;
        for join in &joins {
            let path = beside.path().join(&join.output);
            // The sink gives the file that is written the permissions of the one that is there.
            make_empty(&path, &join.files)?;
            let sink = PathSink::create(&path)?;
            done.bytes += join.rewrite.run(sink)?.bytes;
            done.files_joined += join.files.len();
            done.files_made += 1;
        }
        for file in joins.iter().flat_map(|join| &join.files) {
            self.check_unchanged(file)?;
        }
        exchange(&tree, beside)?;
        Ok(done)
    }

    fn check_unchanged(&self, file: &SmallFile) -> Result<()> {
        let path = self.folder.join(&file.path);
        let name = path.display().to_string();
        let failed = |e| Error::io("reading", e).at_file(name.clone());
        let now = fs::metadata(&path).map_err(failed)?;
        if (now.len(), now.modified().ok()) != (file.bytes, file.modified) {
            let changed = std::io::Error::other("it was changed while it was read");
            return Err(Error::io("the folder is left as it was", changed).at_file(name));
        }
        Ok(())
    }

    /// The files that become one each.
    fn joins(&self, tree: &FolderTree) -> Result<Vec<Join>> {
        if let Some(name) = tree.table_metadata() {
            return Err(Error::usage(format_args!(
                "{}: {name} lists the files of a table, and would not know the new ones",
                self.folder.display()
            )));
        }
        let stamp = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let mut joins: Vec<Join> = Vec::new();
        let mut folders: BTreeMap<PathBuf, Vec<FilesOfSchema>> = BTreeMap::new();
        for path in tree.parquet_files() {
            let Some(file) = self.small_file(path)? else { continue };
            let schema = memory::collected(file.reader.metadata().schema().elements())?;
            let folder = path.parent().map(Path::to_owned).unwrap_or_default();
            let of_folder = folders.entry(folder).or_default();
            match of_folder.iter_mut().find(|known| known.schema == schema) {
                Some(known) => known.files.push(file),
                None => of_folder.push(FilesOfSchema { schema, files: vec![file] }),
            }
        }
        for (folder, of_folder) in folders {
            for files in of_folder.into_iter().flat_map(|of| self.bins(of.files)) {
                let name = format!("compact-{:x}-{:05}.parquet", stamp.as_millis(), joins.len());
                joins.push(self.join(files, folder.join(name))?);
            }
        }
        Ok(joins)
    }

    /// A file that is small enough; `None` for others.
    fn small_file(&self, path: &Path) -> Result<Option<SmallFile>> {
        let whole = self.folder.join(path);
        let failed = |e| Error::io("reading", e).at_file(whole.display().to_string());
        let metadata = fs::metadata(&whole).map_err(failed)?;
        if metadata.len() >= self.file_bytes {
            return Ok(None);
        }
        let (bytes, modified) = (metadata.len(), metadata.modified().ok());
        let permissions = metadata.permissions();
        let reader = (self.open)(&whole)?;
        if !reader.read_options().shared_bytes {
            // Its row groups may be copied one by one.
            reader.metadata().check_shared_bytes().map_err(|e| reader.name(e))?;
        }
        // A folder may have more files than a process may open.
        let closed = Reader::with_metadata(ReopenedFile::new(&whole)?, reader.metadata().clone())?;
        let reader =
            closed.options(reader.read_options().clone()).file_name(whole.display().to_string());
        Ok(Some(SmallFile { path: path.to_owned(), bytes, modified, permissions, reader }))
    }

    /// Files in a row that are together not larger than the size.
    fn bins(&self, files: Vec<SmallFile>) -> Vec<Vec<SmallFile>> {
        let mut bins: Vec<(u64, Vec<SmallFile>)> = Vec::new();
        for file in files {
            match bins.last_mut().filter(|(sum, _)| sum + file.bytes <= self.file_bytes) {
                Some((sum, bin)) => {
                    *sum += file.bytes;
                    bin.push(file);
                }
                None => bins.push((file.bytes, vec![file])),
            }
        }
        bins.into_iter().map(|(_, bin)| bin).filter(|bin| bin.len() > 1).collect()
    }

    fn join(&self, files: Vec<SmallFile>, output: PathBuf) -> Result<Join> {
        let readers: Vec<Reader> = files.iter().map(|file| file.reader.clone()).collect();
        let mut note = None;
        let merged = if self.merges { merge_ordered(&readers)? } else { None };
        let streams = if self.merges { sorted_streams(&readers)? } else { None };
        let mut rewrite = match (key_ordered(&readers)?, merged, streams) {
            (Some(order), ..) if order.is_sorted => Rewrite::new(order.readers),
            (_, Some(order), _) => {
                Rewrite::new(order.readers).merge_ranges(order.merged, order.columns)
            }
            // The keys of row groups are not known.
            (.., Some((streams, columns))) => Rewrite::new(streams).merge_by(columns),
            (order, None, None) => {
                let mut states = false;
                for reader in &readers {
                    states |= states_order(reader)?;
                }
                if states {
                    note = Some(
                        "the keys of the files overlap, so that the new file is not sorted, and \
                         does not say that it is (marq: --merge)"
                            .to_owned(),
                    );
                }
                let readers = order.map_or(readers, |order| order.readers);
                Rewrite::new(readers).forget_order(states)
            }
        };
        rewrite = rewrite.verify_checksums(self.verifies_checksums);
        if let Some(encryption) = &self.encryption {
            rewrite = rewrite.encryption(encryption.clone());
        }
        Ok(Join { files, output, rewrite, note })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::cast::AsArray;
    use arrow_array::types::Int64Type;
    use arrow_array::{ArrayRef, Int64Array, RecordBatch};

    use super::*;
    use crate::write::WriteOptions;
    use crate::write::sorting::SortColumn;
    use crate::writer::Writer;

    #[test]
    fn the_new_folder_is_whole_before_it_is_exchanged() {
        // A failure at the last moment leaves the folder as it was.
        let scratch = tempfile::tempdir().unwrap();
        let folder = scratch.path().join("data");
        fs::create_dir(&folder).unwrap();
        for i in 0..3 {
            fs::copy("testdata/trips.parquet", folder.join(format!("{i}.parquet"))).unwrap();
        }
        let compact = Compact::new(&folder);
        let tree = FolderTree::read(&folder).unwrap();
        let joins = compact.joins(&tree).unwrap();
        fs::copy("testdata/nested.parquet", folder.join("1.parquet")).unwrap();
        let changed = joins[0].files.iter().map(|file| compact.check_unchanged(file).is_err());
        assert_eq!(changed.collect::<Vec<_>>(), [false, true, false]);
        drop(tree.link_beside(&|_: &Path| false).unwrap());
        assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 1, "nothing is left beside it");
    }

    #[cfg(unix)]
    #[test]
    fn a_new_file_permits_what_all_of_the_old_ones_permit() {
        use std::os::unix::fs::PermissionsExt;
        for (modes, expected) in
            [([0o600, 0o600], 0o600), ([0o640, 0o604], 0o600), ([0o664, 0o674], 0o664)]
        {
            let scratch = tempfile::tempdir().unwrap();
            let folder = scratch.path().join("data");
            fs::create_dir(&folder).unwrap();
            for (at, mode) in modes.into_iter().enumerate() {
                let path = folder.join(format!("{at}.parquet"));
                fs::copy("testdata/trips.parquet", &path).unwrap();
                fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            }
            assert_eq!(Compact::new(&folder).run().unwrap().files_made, 1);
            let made = fs::read_dir(&folder).unwrap().next().unwrap().unwrap();
            let mode = made.metadata().unwrap().permissions().mode() & 0o777;
            assert_eq!(mode, expected, "{modes:?} became {mode:o}");
        }
    }

    /// A file of sorted numbers in row groups of 50 rows.
    fn put_numbers(path: &Path, numbers: std::ops::Range<i64>) {
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(numbers));
        let batch = RecordBatch::try_from_iter([("id", numbers)]).unwrap();
        let options = WriteOptions::new().with_row_group_rows(50);
        let options = options.with_sort_order([SortColumn::ascending("id")]);
        let mut writer = Writer::create_with(path, batch.schema(), options).unwrap();
        writer.write(&batch).unwrap();
        writer.finish().unwrap();
    }

    #[test]
    fn only_row_groups_whose_keys_overlap_are_decoded() {
        let scratch = tempfile::tempdir().unwrap();
        let folder = scratch.path().join("data");
        fs::create_dir(&folder).unwrap();
        let parts = [0..300, 70..90, 250..400];
        for (name, numbers) in ["a", "b", "c"].into_iter().zip(parts.clone()) {
            put_numbers(&folder.join(format!("{name}.parquet")), numbers);
        }
        let compact = Compact::new(&folder).merge(true);
        let plan = compact.plan().unwrap();
        let [join] = plan.joins.as_slice() else { panic!("{plan:?}") };
        // 50..100 with 70..90, and 250..300 of both.
        assert_eq!((join.plan.encoded().chunks, join.plan.copied().chunks), (4, 6));
        assert_eq!(compact.run().unwrap().files_made, 1);
        let made = fs::read_dir(&folder).unwrap().next().unwrap().unwrap();
        let reader = Reader::open(made.path()).unwrap();
        let mut ids: Vec<i64> = Vec::new();
        for batch in reader.batches().unwrap() {
            ids.extend(batch.unwrap().column(0).as_primitive::<Int64Type>().values().iter());
        }
        let mut expected: Vec<i64> = parts.into_iter().flatten().collect();
        expected.sort_unstable();
        assert_eq!(ids, expected);
        let footer = reader.metadata().index().to_file_meta_data().unwrap();
        assert!(footer.row_groups.iter().all(|group| group.sorting_columns.is_some()));
        let rows: Vec<i64> = footer.row_groups.iter().map(|group| group.num_rows).collect();
        assert_eq!(rows, [50, 50, 20, 50, 50, 50, 50, 50, 50, 50]);
    }
}
