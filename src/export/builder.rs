//! [`Export`]: the settings of an export.

use std::fmt;
use std::fs;
use std::path::Path;

use arrow_schema::SchemaRef;

use super::progress::ExportProgress;
use super::target::{Folder, Target};
use crate::error::{Error, Result};
use crate::write::WriteOptions;

/// Writes streams of record batches as Parquet files of about the same size into a local folder or
/// an object store, several streams at a time.
///
/// ```
/// use marquetry::{Export, Reader};
///
/// # fn main() -> marquetry::Result<()> {
/// # let folder = tempfile::tempdir()?;
/// let streams = [Reader::open("testdata/trips.parquet")?.batches()?];
/// let files = Export::to(folder.path(), streams[0].schema())?
///     .file_bytes(256 << 20)
///     .file_name(|n| format!("trips-{n:05}.parquet"))
///     .memory(512 << 20)
///     .run(streams)?;
/// assert_eq!(files[0].report.rows, 1000);
/// # Ok(())
/// # }
/// ```
///
/// Rows of a stream keep their order: they go into one file after the other, and no file has rows
/// of two streams. Files are numbered from 0 without gaps, in the order in which they are begun; a
/// stream without rows makes no file.
///
/// An export is all or nothing: a file has its name only once it is whole, and after an error (or a
/// panic of a stream) the files that this run has finished are removed again. A file that exists
/// already is an error, and is never removed. The folder stays.
///
/// Streams may come from [`Reader::streams`](crate::Reader::streams), from
/// [`Dataset::streams`](crate::Dataset::streams), or from any engine.
pub struct Export {
    pub(super) target: Box<dyn Target>,
    pub(super) schema: SchemaRef,
    pub(super) options: WriteOptions,
    pub(super) file_bytes: u64,
    pub(super) file_name: Box<dyn Fn(usize) -> String + Send + Sync>,
    pub(super) partition_by: Vec<String>,
    pub(super) open_files: usize,
    pub(super) max_partitions: usize,
    pub(super) summary: bool,
    pub(super) threads: usize,
    pub(super) memory: u64,
    pub(super) progress: ExportProgress,
}

impl fmt::Debug for Export {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Export")
            .field("target", &self.target)
            .field("options", &self.options)
            .field("threads", &self.threads)
            .finish_non_exhaustive()
    }
}

impl Export {
    /// Exports batches of `schema` into `folder`, which is created if it is missing.
    ///
    /// # Errors
    /// `Io` if the folder cannot be created.
    pub fn to(folder: impl AsRef<Path>, schema: SchemaRef) -> Result<Self> {
        let folder = folder.as_ref().to_path_buf();
        fs::create_dir_all(&folder)
            .map_err(|e| Error::io("making the folder", e).at_file(folder.display().to_string()))?;
        Ok(Self::new(Folder(folder), schema))
    }

    pub(super) fn new(target: impl Target + 'static, schema: SchemaRef) -> Self {
        Self {
            target: Box::new(target),
            schema,
            options: WriteOptions::default(),
            file_bytes: 256 << 20,
            file_name: Box::new(|n| format!("part-{n:05}.parquet")),
            partition_by: Vec::new(),
            open_files: 16,
            max_partitions: 1024,
            summary: false,
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            memory: 512 << 20,
            progress: ExportProgress::default(),
        }
    }

    /// Divides rows by the values of these columns: each combination has a folder, such as
    /// `country=NL/day=2026-11-22/`, and the files in it leave the columns out. Null is
    /// `__HIVE_DEFAULT_PARTITION__`; characters that Hive escapes in values are percent-encoded.
    ///
    /// Columns of numbers, booleans, strings, dates, times and timestamps can be partitioned by,
    /// also as dictionaries or runs. Their text is that of Spark: `12.50`, `1.5`, `2024-01-31`, and
    /// `2024-01-31 12:00:00` in UTC. Not all readers restore the type: most take text that looks
    /// like a number for one, and `1` and `01` for the same. Rows that are sorted by these columns
    /// make the fewest files: see [`Export::open_files`].
    ///
    /// ```
    /// use marquetry::{Export, Reader};
    ///
    /// # fn main() -> marquetry::Result<()> {
    /// # let folder = tempfile::tempdir()?;
    /// let reader = Reader::open("testdata/trips.parquet")?;
    /// let export = Export::to(folder.path(), reader.schema()?)?.partition_by(["vendor"]);
    /// for file in export.run(reader.streams(2)?)? {
    ///     println!("{}: {} rows", file.path.display(), file.report.rows);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn partition_by<N: Into<String>>(mut self, columns: impl IntoIterator<Item = N>) -> Self {
        self.partition_by = columns.into_iter().map(Into::into).collect();
        self
    }

    /// Maximum files that are open at a time if rows are [partitioned](Export::partition_by), over
    /// all streams. Default 16, and at least one for each stream that is worked on. The files share
    /// the memory. When another file must be begun, the one that was not written to for longest is
    /// finished, so that rows in no order make more and smaller files.
    #[must_use]
    pub fn open_files(mut self, files: usize) -> Self {
        self.open_files = files.max(1);
        self
    }

    /// Maximum combinations of values that may be [partitioned by](Export::partition_by), because a
    /// column of many values would make that many files. Default 1024.
    #[must_use]
    pub fn max_partitions(mut self, partitions: usize) -> Self {
        self.max_partitions = partitions;
        self
    }

    /// Whether to write a file `_metadata` with the row groups of all files, so that readers can
    /// plan a scan without opening each file. [`Reader::files_below`](crate::Reader::files_below)
    /// reads it, as pyarrow and Dask do. It is not written if there are no rows. polars 2.1 refuses
    /// to scan a folder that has such a file; it reads `folder/*.parquet`. Files that are encrypted
    /// have none (`Unsupported`), nor those whose VARIANT shapes are
    /// [inferred](crate::variant::VariantShredding::Infer): their schemas may differ.
    #[must_use]
    pub fn summary(mut self, summary: bool) -> Self {
        self.summary = summary;
        self
    }

    /// Sets how the files are written. Their memory is that of [`Export::memory`].
    #[must_use]
    pub fn options(mut self, options: WriteOptions) -> Self {
        self.options = options;
        self
    }

    /// Target bytes of a file: the next one begins when they are reached. Default 256 MiB.
    #[must_use]
    pub fn file_bytes(mut self, bytes: u64) -> Self {
        self.file_bytes = bytes;
        self
    }

    /// Names a file by its number. Default: `part-00000.parquet`.
    #[must_use]
    pub fn file_name(mut self, name: impl Fn(usize) -> String + Send + Sync + 'static) -> Self {
        self.file_name = Box::new(name);
        self
    }

    /// Number of streams that are worked on at a time, each on a thread of its own. Default: the
    /// number of cores. A single stream is encoded on all cores.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads.max(1);
        self
    }

    /// Memory that all open writers share, in bytes. Default 512 MiB. It excludes what the streams
    /// hold, and the reports that [`Export::run`] returns: about 1 KiB for each column of each row
    /// group.
    ///
    /// An export into an object store uses a third of it for the parts of objects that are being
    /// uploaded, and at least 10 MiB for each open object, because parts have 5 MiB or more. Fewer
    /// objects than [`Export::open_files`] are open if there is no memory for them.
    #[must_use]
    pub fn memory(mut self, bytes: u64) -> Self {
        self.memory = bytes;
        self
    }

    /// Returns a handle that reports the progress of the export, from any thread.
    pub fn progress(&self) -> ExportProgress {
        self.progress.clone()
    }
}
