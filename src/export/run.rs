//! [`ExportRun`]: an export that is under way.

use std::collections::HashSet;
use std::future::Future;
use std::io;
use std::path::Path;
use std::pin::pin;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};

use arrow_array::RecordBatch;

use super::builder::Export;
use super::partition::{PartitionKey, Partitioning};
use super::progress::{ExportProgress, ExportedFile};
use super::target::{CreatedFiles, OutFile, Target, lock};
use crate::error::{Error, Result};
use crate::memory;
use crate::write::summary;
use crate::writer::{FileEncoder, RowGroupEncoder};

impl Export {
    /// Writes the streams, and returns the files in the order of their numbers. A thread takes a
    /// stream when it is free.
    ///
    /// # Errors
    /// The first error of a stream or of a file, with the number of the stream
    /// ([`At::stream`](crate::At)): the other streams then end at their next batch, and no file of
    /// this run stays. `Usage` for settings that do not fit, a name that is no file name, and a
    /// file that exists already.
    pub fn run<I, S, E>(self, streams: I) -> Result<Vec<ExportedFile>>
    where
        I: IntoIterator<Item = S>,
        I::IntoIter: Send,
        S: Iterator<Item = Result<RecordBatch, E>>,
        E: Into<Error>,
    {
        if !self.target.is_local() {
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
            // Joins all threads, so that nothing is written after a panic is resumed.
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
}

/// State that the workers of an export share.
pub(super) struct ExportRun {
    encoder: RowGroupEncoder,
    target: Box<dyn Target>,
    partitioning: Option<Partitioning>,
    /// The most files that a worker has open.
    open_files: usize,
    max_partitions: usize,
    summary: bool,
    file_bytes: u64,
    file_name: Box<dyn Fn(usize) -> String + Send + Sync>,
    progress: ExportProgress,
    /// Set when something went wrong.
    stop: AtomicBool,
    /// The first error.
    error: Mutex<Option<Error>>,
    begun: Mutex<Begun>,
    made: CreatedFiles,
    finished: Mutex<Vec<Finished>>,
}

/// The files that were begun: as many as there are numbers.
#[derive(Default)]
struct Begun {
    paths: HashSet<String>,
    folders: HashSet<String>,
}

/// A file that is whole, by its number and its path within the target.
struct Finished {
    number: usize,
    path: String,
    file: ExportedFile,
}

/// A file that is being written.
struct OpenFile {
    number: usize,
    path: String,
    key: PartitionKey,
    out: Box<dyn OutFile>,
}

/// How far a stream is.
pub(super) struct ExportState {
    number: usize,
    /// The one that was written to last is the last.
    open: Vec<OpenFile>,
    /// Ratio by which the size of the next file is estimated, from earlier files of the stream.
    ratio: Option<f64>,
}

impl ExportState {
    pub(super) fn new(number: usize) -> Self {
        Self { number, open: Vec::new(), ratio: None }
    }
}

impl ExportRun {
    /// Begins the run of `export` with `workers` workers, which encode on their own threads
    /// (`alone`) or on those of a pool.
    pub(super) fn new(export: Export, workers: usize, alone: bool) -> Result<Self> {
        if export.file_bytes == 0 {
            return Err(Error::usage("the bytes of a file must be more than 0"));
        }
        if export.summary && export.options.is_encrypted() {
            let what = "a summary of encrypted files";
            return Err(Error::unsupported(what, "write them without Export::summary"));
        }
        let partitioning = match &export.partition_by[..] {
            [] => None,
            names => Some(Partitioning::new(&export.schema, names)?),
        };
        let mut target = export.target;
        let open_files = match partitioning {
            Some(_) => {
                let max = target.max_open(export.memory / workers as u64);
                (export.open_files / workers).clamp(1, max)
            }
            None => 1,
        };
        let of_file = export.memory / workers as u64 / open_files as u64;
        let share = target.take_share(of_file);
        let schema = partitioning.as_ref().map_or(export.schema, |of| of.schema.clone());
        let encoder = RowGroupEncoder::new(schema, export.options.with_memory(share))?;
        if export.summary && encoder.infers_shapes() {
            // Each file may have another schema.
            let what = "a summary of files whose VARIANT shapes are inferred";
            return Err(Error::unsupported(what, "give the shapes, or leave the summary out"));
        }
        Ok(Self {
            encoder: if alone { encoder.with_threads(1)? } else { encoder },
            target,
            partitioning,
            open_files,
            max_partitions: export.max_partitions,
            summary: export.summary,
            file_bytes: export.file_bytes,
            file_name: export.file_name,
            progress: export.progress,
            stop: AtomicBool::new(false),
            error: Mutex::new(None),
            begun: Mutex::new(Begun::default()),
            made: CreatedFiles::default(),
            finished: Mutex::new(Vec::new()),
        })
    }

    /// Writes one stream after the other until none is left.
    pub(super) fn work<S, E>(&self, streams: &Mutex<impl Iterator<Item = (usize, S)>>)
    where
        S: Iterator<Item = Result<RecordBatch, E>>,
        E: Into<Error>,
    {
        let _stop = StopOnPanic(&self.stop);
        while !self.stopped() {
            let Some((number, stream)) = lock(streams).next() else {
                return;
            };
            let mut state = ExportState::new(number);
            let done = self.write_all(&mut state, stream);
            ready(self.end_stream(state, done));
        }
    }

    fn write_all<E: Into<Error>>(
        &self,
        state: &mut ExportState,
        stream: impl Iterator<Item = Result<RecordBatch, E>>,
    ) -> Result<()> {
        for batch in stream {
            let batch = batch.map_err(Into::into)?;
            if self.stopped() {
                break;
            }
            ready(self.write(state, &batch))?;
        }
        Ok(())
    }

    /// Finishes the files of a stream, or discards them after an error.
    pub(super) async fn end_stream(&self, state: ExportState, done: Result<()>) {
        let ExportState { number, open, .. } = state;
        let mut done = done;
        for file in open {
            if done.is_err() || self.stopped() {
                file.out.abort().await;
            } else {
                done = self.finish(number, file).await;
            }
        }
        if let Err(error) = done {
            self.stop.store(true, Ordering::Relaxed);
            lock(&self.error).get_or_insert_with(|| error.at_stream(number));
        }
    }

    pub(super) fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    pub(super) async fn write(&self, state: &mut ExportState, batch: &RecordBatch) -> Result<()> {
        let Some(partitioning) = &self.partitioning else {
            return self.write_rows(state, &PartitionKey::default(), batch.clone()).await;
        };
        for part in partitioning.split(batch)? {
            let (key, rows) = part?;
            self.write_rows(state, &key, rows).await?;
        }
        Ok(())
    }

    /// Writes rows of one key.
    async fn write_rows(
        &self,
        state: &mut ExportState,
        key: &PartitionKey,
        mut rest: RecordBatch,
    ) -> Result<()> {
        while rest.num_rows() > 0 {
            if self.stopped() {
                return Ok(());
            }
            let mut file = match state.open.iter().position(|file| file.key == *key) {
                Some(place) => state.open.remove(place),
                None => {
                    if state.open.len() >= self.open_files {
                        let oldest = state.open.remove(0);
                        self.finish(state.number, oldest).await?;
                    }
                    self.begin(key, state.ratio).await?
                }
            };
            let before = file.out.bytes_written();
            let rows_until = |encoder: &FileEncoder| encoder.rows_until(&rest, self.file_bytes);
            let rows = file.out.file().map_or(usize::MAX, rows_until).min(rest.num_rows());
            let written = self.write_some(&mut file, &rest.slice(0, rows)).await;
            rest = rest.slice(rows, rest.num_rows() - rows);
            self.progress.wrote(rows as u64, file.out.bytes_written().saturating_sub(before));
            let ratio = file.out.file().map_or(1.0, FileEncoder::ratio);
            let number = state.number;
            match written {
                Ok(true) => {
                    state.ratio = Some(ratio);
                    self.finish(number, file).await?;
                }
                Ok(false) => state.open.push(file),
                Err(e) => {
                    file.out.abort().await;
                    return Err(e);
                }
            }
        }
        Ok(())
    }

    /// Writes rows, and returns whether the file has its size. If the estimate reaches the size,
    /// the rows that are held are written, and their real size decides.
    async fn write_some(&self, file: &mut OpenFile, rows: &RecordBatch) -> Result<bool> {
        file.out.write(rows).await?;
        if file.out.estimated_bytes() < self.file_bytes {
            return Ok(false);
        }
        file.out.flush().await?;
        Ok(file.out.bytes_written() >= self.file_bytes - self.file_bytes / TOLERANCE_DIVISOR)
    }

    async fn begin(&self, key: &PartitionKey, ratio: Option<f64>) -> Result<OpenFile> {
        let (number, path) = self.name(key)?;
        let placed = |e: Error| e.at_file(self.target.path(&path).display().to_string());
        if self.target.is_taken(&path).await.map_err(placed)? {
            return Err(placed(wrong(number, "there is such a file already")));
        }
        let mut out = self.target.begin(&path, self.encoder.clone(), &self.made)?;
        if let (Some(encoder), Some(ratio)) = (out.file_mut(), ratio) {
            encoder.expect_ratio(ratio);
        }
        Ok(OpenFile { number, path, key: key.clone(), out })
    }

    /// The number and the path of the next file: one at a time, so that numbers have no gaps and
    /// names no doubles.
    fn name(&self, key: &PartitionKey) -> Result<(usize, String)> {
        let mut begun = lock(&self.begun);
        let number = begun.paths.len();
        let name = (self.file_name)(number);
        let path = format!("{}{name}", key.folder);
        let placed = |e: Error| e.at_file(self.target.path(&path).display().to_string());
        if Path::new(&name).file_name() != Some(name.as_ref()) {
            return Err(placed(wrong(number, "the name is no file name")));
        }
        if self.summary && key.folder.is_empty() && name == SUMMARY {
            return Err(placed(wrong(number, "the name is that of the summary")));
        }
        if !begun.paths.insert(path.clone()) {
            return Err(placed(wrong(number, "the name was given before")));
        }
        begun.folders.insert(key.folder.clone());
        if begun.folders.len() > self.max_partitions.max(1) {
            return Err(placed(Error::usage(format_args!(
                "the columns to partition by have more than {} combinations of values: partition \
                 by others, or raise Export::max_partitions",
                self.max_partitions
            ))));
        }
        Ok((number, path))
    }

    async fn finish(&self, stream: usize, file: OpenFile) -> Result<()> {
        let OpenFile { number, path, key, out } = file;
        let before = out.bytes_written();
        // Beforehand: a folder that cannot be synced is an error, and leaves the file.
        lock(&self.made.files).push(path.clone());
        let report = out.finish().await.inspect_err(|e| self.keep_others(&path, e))?;
        self.progress.finished(report.bytes - before);
        let file =
            ExportedFile { path: self.target.path(&path), stream, partition: key.values, report };
        lock(&self.finished).push(Finished { number, path, file });
        Ok(())
    }

    /// The files, once all streams are at their end; after an error, none is left.
    pub(super) async fn end(mut self) -> Result<Vec<ExportedFile>> {
        let error = std::mem::take(&mut self.error);
        let error = error.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut finished = std::mem::take(&mut *lock(&self.finished));
        finished.sort_by_key(|finished| finished.number);
        let done = match error {
            Some(error) => Err(error),
            None if self.summary && !finished.is_empty() => self.summarize(&finished).await,
            None => Ok(()),
        };
        match done {
            Ok(()) => Ok(finished.into_iter().map(|finished| finished.file).collect()),
            Err(error) => {
                self.remove().await;
                Err(error)
            }
        }
    }

    async fn summarize(&self, finished: &[Finished]) -> Result<()> {
        let placed = |e: Error| e.at_file(self.target.path(SUMMARY).display().to_string());
        let write = async {
            if self.target.is_taken(SUMMARY).await? {
                return Err(Error::usage("there is such a file already"));
            }
            let footers = finished.iter().map(|of| Ok((&*of.path, of.file.report.metadata()?)));
            let footers = memory::try_collected::<_, Error>(footers)?;
            let bytes = summary(footers.iter().map(|(path, metadata)| (*path, metadata)))?;
            lock(&self.made.files).push(SUMMARY.to_owned());
            let put = self.target.put(SUMMARY, bytes.into()).await;
            put.inspect_err(|e| self.keep_others(SUMMARY, e))
        };
        write.await.map_err(placed)
    }

    /// A file that another writer has put to the path meanwhile is not removed.
    fn keep_others(&self, path: &str, error: &Error) {
        let source = error.get_ref().and_then(|e| e.downcast_ref::<io::Error>());
        if source.is_some_and(|e| e.kind() == io::ErrorKind::AlreadyExists) {
            lock(&self.made.files).retain(|made| made != path);
        }
    }

    /// Removes what was made.
    pub(super) async fn remove(&self) {
        self.target.remove(&self.made).await;
    }
}

#[cold]
fn wrong(number: usize, what: &str) -> Error {
    Error::usage(format_args!("file {number}: {what}"))
}

/// Polls a future that never waits, such as those of local files.
pub(super) fn ready<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(done) => done,
        Poll::Pending => unreachable!("local files are written at once"),
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

/// A file is large enough if it lacks at most one part in this many of the wanted size.
const TOLERANCE_DIVISOR: u64 = 8;

/// The name of a summary.
const SUMMARY: &str = "_metadata";
