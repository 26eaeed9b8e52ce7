//! [`Export`]: many streams of record batches into files of a folder or an object store, in
//! parallel, within one memory number.

mod partition;
mod run;
mod target;

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use self::run::{ExportRun, ready};
use self::target::Target;
use crate::error::{Error, Result};
use crate::write::{WriteOptions, WriteReport};

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
/// stream without rows makes none.
///
/// It is all or nothing: a file has its name only when it is whole, and after an error (or a panic
/// of a stream) the files that this run has finished are removed again. A file that exists already
/// is an error, and is never removed. The folder is left.
///
/// Streams are those of [`Reader::streams`](crate::Reader::streams),
/// [`Dataset::streams`](crate::Dataset::streams), or of any engine.
pub struct Export {
    target: Target,
    schema: SchemaRef,
    options: WriteOptions,
    file_bytes: u64,
    file_name: Box<dyn Fn(usize) -> String + Send + Sync>,
    partition_by: Vec<String>,
    open_files: usize,
    max_partitions: usize,
    summary: bool,
    threads: usize,
    memory: u64,
    progress: ExportProgress,
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

/// A file that an [`Export`] has written.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ExportedFile {
    /// Where it is.
    pub path: PathBuf,
    /// The number of the stream that its rows came from.
    pub stream: usize,
    /// The columns that the export is [partitioned by](Export::partition_by), and what all rows of
    /// the file have in them, as text; `None` is null.
    pub partition: Vec<(String, Option<String>)>,
    /// What it holds.
    pub report: WriteReport,
}

impl Export {
    /// An export into `folder`, which is made if it is missing, of batches of `schema`.
    ///
    /// # Errors
    /// `Io` if the folder cannot be made.
    pub fn to(folder: impl AsRef<Path>, schema: SchemaRef) -> Result<Self> {
        let folder = folder.as_ref().to_path_buf();
        fs::create_dir_all(&folder)
            .map_err(|e| Error::io("making the folder", e).at_file(folder.display().to_string()))?;
        Ok(Self::new(Target::Folder(folder), schema))
    }

    /// An export of objects whose paths begin with `prefix`, of batches of `schema`: for
    /// [`Export::run_async`].
    #[cfg(feature = "object_store")]
    pub fn to_store(
        store: Arc<dyn object_store::ObjectStore>,
        prefix: impl Into<object_store::path::Path>,
        schema: SchemaRef,
    ) -> Self {
        Self::new(Target::Store { store, prefix: prefix.into(), upload: 0 }, schema)
    }

    fn new(target: Target, schema: SchemaRef) -> Self {
        Self {
            target,
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
    /// Columns of numbers, booleans, texts, dates, times and timestamps can be partitioned by, also
    /// as dictionaries or runs. Their text is that of Spark: `12.50`, `1.5`, `2024-01-31`, and
    /// `2024-01-31 12:00:00` in UTC. Not all readers take it back for the same type: text that
    /// looks like a number is one to most of them, `1` and `01` the same. Rows that come sorted by them make the fewest files: see [`Export::open_files`].
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

    /// The most files that are open at a time where rows are [partitioned](Export::partition_by),
    /// in all streams; 16 by default, and at least one for each stream that is worked on. They
    /// share the memory. The file that was not written to for longest is finished when another must
    /// be begun, so that rows in no order make more and smaller files.
    #[must_use]
    pub fn open_files(mut self, files: usize) -> Self {
        self.open_files = files.max(1);
        self
    }

    /// The most combinations of values that may be [partitioned by](Export::partition_by), because
    /// a column of many values would make as many files; 1024 by default.
    #[must_use]
    pub fn max_partitions(mut self, partitions: usize) -> Self {
        self.max_partitions = partitions;
        self
    }

    /// Whether a file `_metadata` is written, with the row groups of all files: readers plan a scan
    /// by it without opening each. [`Reader::files_below`](crate::Reader::files_below) reads it, as
    /// pyarrow and Dask do. None is written if there are no rows. polars 2.1 refuses to scan a folder
    /// that has such a file; it reads `folder/*.parquet`.
    #[must_use]
    pub fn summary(mut self, summary: bool) -> Self {
        self.summary = summary;
        self
    }

    /// How the files are written. Their memory is that of [`Export::memory`].
    #[must_use]
    pub fn options(mut self, options: WriteOptions) -> Self {
        self.options = options;
        self
    }

    /// The bytes that a file should have, about: the next one begins when they are reached. 256 MiB
    /// by default.
    #[must_use]
    pub fn file_bytes(mut self, bytes: u64) -> Self {
        self.file_bytes = bytes;
        self
    }

    /// The name of a file by its number; `part-00000.parquet` by default.
    #[must_use]
    pub fn file_name(mut self, name: impl Fn(usize) -> String + Send + Sync + 'static) -> Self {
        self.file_name = Box::new(name);
        self
    }

    /// The streams that are worked on at a time, each on a thread of its own; as many as there are
    /// cores by default. One alone is encoded on all cores.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads.max(1);
        self
    }

    /// The memory that all open writers share; what the streams hold is theirs, and the reports
    /// that [`Export::run`] gives come on top: about 1 KiB for each column of each row group. 512
    /// MiB by default.
    ///
    /// An object store takes a third of it for the parts of objects that are on their way, and at
    /// least 10 MiB for each object that is open, because parts are of 5 MiB or more. Fewer are
    /// open than [`Export::open_files`] says where there is no memory for them.
    #[must_use]
    pub fn memory(mut self, bytes: u64) -> Self {
        self.memory = bytes;
        self
    }

    /// A handle by which to watch the export, from any thread.
    pub fn progress(&self) -> ExportProgress {
        self.progress.clone()
    }

    /// Writes the streams, and says which files came of them, by number. A stream is taken when a
    /// thread is free for it.
    ///
    /// # Errors
    /// The first error of a stream or of a file, with the number of the stream
    /// ([`At::stream`](crate::At)): the other streams end at their next batch then, and no file of
    /// this run is left. `Usage` for settings that do not fit, a name that is no file name, and a
    /// file that stands there already.
    pub fn run<I, S, E>(self, streams: I) -> Result<Vec<ExportedFile>>
    where
        I: IntoIterator<Item = S>,
        I::IntoIter: Send,
        S: Iterator<Item = Result<RecordBatch, E>>,
        E: Into<Error>,
    {
        #[cfg(feature = "object_store")]
        if matches!(self.target, Target::Store { .. }) {
            return Err(Error::usage("an object store is written to asynchronously: run_async"));
        }
        let streams = streams.into_iter();
        // How many streams there are may be unknown.
        let workers = self.threads.min(streams.size_hint().1.unwrap_or(usize::MAX)).max(1);
        let run = ExportRun::new(self, workers, workers > 1)?;
        let streams = Mutex::new(streams.enumerate());
        let ends: Vec<_> = std::thread::scope(|scope| {
            let work = || run.work(&streams);
            let threads: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
            // All of them, so that nothing is written any more when a panic goes on.
            threads.into_iter().map(|thread| thread.join()).collect()
        });
        for end in ends {
            if let Err(panic) = end {
                ready(run.remove());
                std::panic::resume_unwind(panic);
            }
        }
        ready(run.end())
    }

    /// Writes asynchronous streams, into an object store or a folder, as [`Export::run`]: as many
    /// at a time as there are [threads](Export::threads), in the task that polls. Rows are encoded
    /// by the threads of a pool. Files of a folder are written where the future is polled.
    ///
    /// A future that is dropped before its end leaves the objects that were finished.
    ///
    /// # Errors
    /// As [`Export::run`].
    #[cfg(feature = "object_store")]
    pub async fn run_async<I, S, E>(self, streams: I) -> Result<Vec<ExportedFile>>
    where
        I: IntoIterator<Item = S>,
        S: futures_core::Stream<Item = Result<RecordBatch, E>>,
        E: Into<Error>,
    {
        use futures_util::StreamExt;
        let streams = streams.into_iter();
        let workers = self.threads.min(streams.size_hint().1.unwrap_or(usize::MAX)).max(1);
        let run = ExportRun::new(self, workers, false)?;
        let work = streams.enumerate().map(|(number, stream)| run.work_async(number, stream));
        futures_util::stream::iter(work).buffer_unordered(workers).collect::<()>().await;
        run.end().await
    }
}

/// How far an [`Export`] is. Cheap to clone; clones watch the same export, from any thread.
#[derive(Debug, Clone, Default)]
pub struct ExportProgress {
    shared: Arc<ExportCounters>,
}

#[derive(Debug, Default)]
struct ExportCounters {
    rows: AtomicU64,
    bytes: AtomicU64,
    files: AtomicU64,
}

impl ExportProgress {
    /// Rows taken from the streams so far.
    pub fn rows(&self) -> u64 {
        self.shared.rows.load(Ordering::Relaxed)
    }

    /// Bytes given to the files so far.
    pub fn bytes(&self) -> u64 {
        self.shared.bytes.load(Ordering::Relaxed)
    }

    /// Files finished so far.
    pub fn files(&self) -> u64 {
        self.shared.files.load(Ordering::Relaxed)
    }

    fn wrote(&self, rows: u64, bytes: u64) {
        self.shared.rows.fetch_add(rows, Ordering::Relaxed);
        self.shared.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    fn finished(&self, bytes: u64) {
        self.shared.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.shared.files.fetch_add(1, Ordering::Relaxed);
    }
}

/// A panic of another thread leaves nothing half done here.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
