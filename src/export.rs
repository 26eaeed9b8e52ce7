//! [`Export`]: many streams of record batches into files of a folder, in parallel, within one
//! memory number.

use std::collections::HashSet;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use crate::error::{Error, Result};
use crate::io::PathSink;
use crate::write::{WriteOptions, WriteReport};
use crate::writer::{RowGroupEncoder, Writer};

/// Writes streams of record batches as Parquet files of about the same size into a local folder,
/// several streams at a time.
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
pub struct Export {
    folder: PathBuf,
    schema: SchemaRef,
    options: WriteOptions,
    file_bytes: u64,
    file_name: Box<dyn Fn(usize) -> String + Send + Sync>,
    threads: usize,
    memory: u64,
    progress: ExportProgress,
}

impl fmt::Debug for Export {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Export")
            .field("folder", &self.folder)
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
        Ok(Self {
            folder,
            schema,
            options: WriteOptions::default(),
            file_bytes: 256 << 20,
            file_name: Box::new(|n| format!("part-{n:05}.parquet")),
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            memory: 512 << 20,
            progress: ExportProgress::default(),
        })
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

    /// The memory that all open writers share; what the streams hold is theirs. 512 MiB by default.
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
        if self.file_bytes == 0 {
            return Err(Error::usage("the bytes of a file must be more than 0"));
        }
        let streams = streams.into_iter();
        // How many streams there are may be unknown.
        let workers = self.threads.min(streams.size_hint().1.unwrap_or(usize::MAX)).max(1);
        let options = self.options.with_memory(self.memory / workers as u64);
        let encoder = RowGroupEncoder::new(self.schema, options)?;
        let run = ExportRun {
            encoder: if workers > 1 { encoder.with_threads(1)? } else { encoder },
            folder: self.folder,
            file_bytes: self.file_bytes,
            file_name: self.file_name,
            progress: self.progress,
            stop: AtomicBool::new(false),
            error: Mutex::new(None),
            names: Mutex::new(HashSet::new()),
            finished: Mutex::new(FinishedFiles::default()),
        };
        let streams = Mutex::new(streams.enumerate());
        std::thread::scope(|scope| {
            let work = || run.work(&streams);
            let threads: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
            // All of them, so that nothing is written any more when a panic goes on.
            let ends: Vec<_> = threads.into_iter().map(|thread| thread.join()).collect();
            for end in ends {
                end.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            }
        });
        match run.error.into_inner().unwrap_or_else(PoisonError::into_inner) {
            Some(error) => Err(error),
            None => Ok(run.finished.into_inner().unwrap_or_else(PoisonError::into_inner).keep()),
        }
    }
}

/// What the threads of an export share.
struct ExportRun {
    encoder: RowGroupEncoder,
    folder: PathBuf,
    file_bytes: u64,
    file_name: Box<dyn Fn(usize) -> String + Send + Sync>,
    progress: ExportProgress,
    /// Set when something went wrong.
    stop: AtomicBool,
    /// The first error.
    error: Mutex<Option<Error>>,
    /// The names of the files that were begun: as many as there are numbers.
    names: Mutex<HashSet<String>>,
    finished: Mutex<FinishedFiles>,
}

/// A file that is being written.
struct OpenFile {
    number: usize,
    path: PathBuf,
    writer: Writer<PathSink>,
}

impl ExportRun {
    /// Writes one stream after the other until none is left.
    fn work<S, E>(&self, streams: &Mutex<impl Iterator<Item = (usize, S)>>)
    where
        S: Iterator<Item = Result<RecordBatch, E>>,
        E: Into<Error>,
    {
        let _stop = StopOnPanic(&self.stop);
        while !self.stopped() {
            let Some((number, stream)) = lock(streams).next() else {
                return;
            };
            if let Err(error) = self.write(number, stream) {
                self.stop.store(true, Ordering::Relaxed);
                lock(&self.error).get_or_insert_with(|| error.at_stream(number));
            }
        }
    }

    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn write<E: Into<Error>>(
        &self,
        stream: usize,
        batches: impl Iterator<Item = Result<RecordBatch, E>>,
    ) -> Result<()> {
        let mut open: Option<OpenFile> = None;
        // What the files of the stream so far have told of the next one.
        let mut ratio = None;
        for batch in batches {
            let mut rest = batch.map_err(Into::into)?;
            while rest.num_rows() > 0 {
                if self.stopped() {
                    return Ok(());
                }
                let mut file = match open.take() {
                    Some(file) => file,
                    None => self.begin(ratio)?,
                };
                let before = file.writer.bytes_written();
                let rows = file.writer.rows_until(&rest, self.file_bytes).min(rest.num_rows());
                file.writer.write(&rest.slice(0, rows))?;
                rest = rest.slice(rows, rest.num_rows() - rows);
                let full = self.is_full(&mut file.writer)?;
                self.progress.wrote(rows as u64, file.writer.bytes_written() - before);
                if full {
                    ratio = Some(file.writer.ratio());
                    self.finish(stream, file)?;
                } else {
                    open = Some(file);
                }
            }
        }
        match open.filter(|_| !self.stopped()) {
            Some(file) => self.finish(stream, file),
            None => Ok(()),
        }
    }

    /// Whether the file has its size. Where the estimate says so, the rows that are held are
    /// written, and what they came to is looked at.
    fn is_full(&self, writer: &mut Writer<PathSink>) -> Result<bool> {
        if writer.estimated_bytes() < self.file_bytes {
            return Ok(false);
        }
        writer.flush()?;
        Ok(writer.bytes_written() >= self.file_bytes - self.file_bytes / NEAR)
    }

    fn begin(&self, ratio: Option<f64>) -> Result<OpenFile> {
        // One at a time, so that numbers have no gaps and names no doubles.
        let mut names = lock(&self.names);
        let number = names.len();
        let name = (self.file_name)(number);
        let path = self.folder.join(&name);
        let wrong = |what: &str| {
            Err(Error::usage(format_args!("file {number}: {what}"))
                .at_file(path.display().to_string()))
        };
        if Path::new(&name).file_name() != Some(name.as_ref()) {
            return wrong("the name is no file name");
        }
        if names.contains(&name) {
            return wrong("the name was given before");
        }
        if path.symlink_metadata().is_ok() {
            return wrong("there is such a file already");
        }
        let mut writer = Writer::over(PathSink::create(&path)?, self.encoder.clone());
        names.insert(name);
        if let Some(ratio) = ratio {
            writer.expect_ratio(ratio);
        }
        Ok(OpenFile { number, path, writer })
    }

    fn finish(&self, stream: usize, file: OpenFile) -> Result<()> {
        let OpenFile { number, path, writer } = file;
        let before = writer.bytes_written();
        // Beforehand: a folder that cannot be synced is an error, and leaves the file.
        lock(&self.finished).paths.push(path.clone());
        let report = writer.finish()?;
        self.progress.finished(report.bytes - before);
        lock(&self.finished).files.push((number, ExportedFile { path, stream, report }));
        Ok(())
    }
}

/// The files of a run; removed when it fails.
#[derive(Default)]
struct FinishedFiles {
    files: Vec<(usize, ExportedFile)>,
    /// Those that are there, or may be.
    paths: Vec<PathBuf>,
}

impl FinishedFiles {
    fn keep(mut self) -> Vec<ExportedFile> {
        self.paths.clear();
        let mut files = std::mem::take(&mut self.files);
        files.sort_by_key(|(number, _)| *number);
        files.into_iter().map(|(_, file)| file).collect()
    }
}

impl Drop for FinishedFiles {
    fn drop(&mut self) {
        for path in &self.paths {
            let _ = fs::remove_file(path);
        }
    }
}

struct StopOnPanic<'a>(&'a AtomicBool);

impl Drop for StopOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.store(true, Ordering::Relaxed);
        }
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

/// A file that lacks one part in so many is large enough.
const NEAR: u64 = 8;
