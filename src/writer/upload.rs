//! [`AsyncWriter`] writes record batches into a Parquet file whose bytes go out asynchronously.

use std::any::Any;
use std::fmt;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::PathBuf;
use std::pin::Pin;
use std::task::Poll;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use bytes::Bytes;
use futures_channel::oneshot;

use super::file_encoder::FileEncoder;
use super::row_group_encoder::RowGroupEncoder;
use super::side_footer::SideFooter;
use crate::error::{Error, Result};
use crate::io::{AsyncSink, Pool};
use crate::trace;
use crate::write::{EncodedRowGroup, WriteOptions, WriteReport};

/// Writes one Parquet file into an [`AsyncSink`], such as an object of an object store, under any
/// runtime.
///
/// The file is that of a [`Writer`](crate::Writer), encoded in parallel by the threads of a pool,
/// never by those of the runtime, unless the encoder [has one
/// thread](RowGroupEncoder::with_threads). Bytes are uploaded while rows are encoded and written.
///
/// The first error poisons the writer and aborts the upload. A call whose future is dropped before
/// its end poisons it too. A writer that is dropped unfinished leaves no file that looks whole;
/// [`AsyncWriter::abort`] also removes uploaded parts that listings do not show.
pub struct AsyncWriter<S: AsyncSink> {
    sink: S,
    /// With the pool while it works; gone after an error.
    file: Option<FileEncoder>,
    schema: SchemaRef,
    pool: Option<Pool>,
    side_footer: Option<SideFooter>,
}

impl<S: AsyncSink> fmt::Debug for AsyncWriter<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AsyncWriter").field("file", &self.file).finish_non_exhaustive()
    }
}

/// The result that comes back from the pool.
struct Worked<T> {
    file: FileEncoder,
    done: Result<Result<T>, Box<dyn Any + Send>>,
}

#[cfg(feature = "object_store")]
impl AsyncWriter<crate::io::StoreSink> {
    /// Makes a writer of the object at `path`, with the default options. An existing object stays
    /// until the new one is whole.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> marquetry::Result<()> {
    /// # use std::sync::Arc;
    /// # use object_store::{ObjectStore, memory::InMemory};
    /// use marquetry::{AsyncWriter, Reader};
    ///
    /// let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    /// let batches = Reader::open("testdata/trips.parquet")?.batches()?;
    /// let mut writer = AsyncWriter::to_store(store, "trips.parquet", batches.schema())?;
    /// for batch in batches {
    ///     writer.write(&batch?).await?;
    /// }
    /// assert_eq!(writer.finish().await?.rows, 1_000);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`AsyncWriter::new`].
    pub fn to_store(
        store: std::sync::Arc<dyn object_store::ObjectStore>,
        path: impl Into<object_store::path::Path>,
        schema: SchemaRef,
    ) -> Result<Self> {
        let sink = crate::io::StoreSink::new(store, path.into());
        Self::new(sink, schema, WriteOptions::default())
    }

    /// The encoder of the rows; none after an error.
    pub(crate) fn file(&self) -> Option<&FileEncoder> {
        self.file.as_ref()
    }

    pub(crate) fn file_mut(&mut self) -> Option<&mut FileEncoder> {
        self.file.as_mut()
    }
}

/// The methods by which an engine counts the memory of a writer.
#[cfg(all(feature = "engine", feature = "object_store"))]
impl AsyncWriter<crate::io::StoreSink> {
    /// Bytes of memory that are held: waiting rows, rows that are being encoded and their estimated
    /// output, the metadata and indexes of finished row groups, the footer of those, and bytes that
    /// are being uploaded.
    pub fn bytes_held(&self) -> u64 {
        self.file.as_ref().map_or(0, FileEncoder::bytes_held) + self.sink.bytes_held()
    }

    /// Lets the parts of a large object grow beyond the memory of its
    /// [sink](crate::io::StoreSink::with_memory), if they need to and `has_memory`, which is called
    /// with the bytes of two parts, returns true.
    pub fn grow_parts(&mut self, has_memory: impl FnOnce(u64) -> bool) {
        self.sink.grow_parts(has_memory);
    }

    /// Waits until no bytes are being uploaded.
    ///
    /// # Errors
    /// As [`AsyncWriter::write`].
    pub async fn drain(&mut self) -> Result<()> {
        match self.sink.drain().await {
            Ok(()) => Ok(()),
            Err(e) => Err(self.fail(e).await),
        }
    }
}

impl<S: AsyncSink> AsyncWriter<S> {
    /// Makes a writer into any sink.
    ///
    /// # Errors
    /// `Unsupported` if the schema has a type that Parquet does not have, `Usage` if an option does
    /// not fit it.
    pub fn new(sink: S, schema: SchemaRef, options: WriteOptions) -> Result<Self> {
        Ok(Self::over(sink, RowGroupEncoder::new(schema, options)?))
    }

    /// Makes a writer into any sink, with an encoder whose threads were chosen, or that is shared
    /// with others.
    pub fn over(sink: S, encoder: RowGroupEncoder) -> Self {
        let pool = encoder.threads.pool_of_jobs();
        let file = FileEncoder::new(encoder);
        Self { sink, schema: file.schema().clone(), file: Some(file), pool, side_footer: None }
    }

    /// Keeps a footer of the row groups so far in the local file at `path`, as
    /// [`Writer::with_side_footer`](crate::Writer::with_side_footer): for sinks whose bytes are
    /// there before the file is whole. A thread of the pool writes it, after the bytes of its row
    /// groups went to the sink.
    #[must_use]
    pub fn with_side_footer(mut self, path: impl Into<PathBuf>, row_groups: usize) -> Self {
        self.side_footer = Some(SideFooter::new(path.into(), row_groups));
        self
    }

    /// A file of only a footer of the row groups so far, for a caller that keeps it elsewhere.
    ///
    /// # Errors
    /// As [`Writer::side_footer`](crate::Writer::side_footer); `Usage` after an error.
    pub fn side_footer(&self) -> Result<Bytes> {
        self.file.as_ref().ok_or_else(ended)?.side_footer()
    }

    /// The schema that batches must have.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Bytes passed to the sink so far.
    pub fn bytes_written(&self) -> u64 {
        self.file.as_ref().map_or(0, FileEncoder::bytes_written)
    }

    /// Estimated bytes of the file if it were finished now.
    pub fn estimated_bytes(&self) -> u64 {
        self.file.as_ref().map_or(0, FileEncoder::estimated_bytes)
    }

    /// Appends the rows of a batch, as [`Writer::write`](crate::Writer::write).
    ///
    /// # Errors
    /// As [`Writer::write`](crate::Writer::write).
    pub async fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        self.file.as_ref().ok_or_else(ended)?.check(batch)?;
        let mut file = self.file.take().ok_or_else(ended)?;
        file.push(batch);
        self.send_all(file, FileEncoder::next).await
    }

    /// Ends the row group, as [`Writer::flush`](crate::Writer::flush).
    ///
    /// # Errors
    /// As [`AsyncWriter::write`].
    pub async fn flush(&mut self) -> Result<()> {
        let file = self.file.take().ok_or_else(ended)?;
        self.send_all(file, FileEncoder::flush).await
    }

    /// Appends a row group that was encoded elsewhere, as
    /// [`Writer::append`](crate::Writer::append).
    ///
    /// # Errors
    /// As [`Writer::append`](crate::Writer::append).
    pub async fn append(&mut self, row_group: EncodedRowGroup) -> Result<()> {
        self.flush().await?;
        self.file.as_mut().ok_or_else(ended)?.adopt(&row_group)?;
        let file = self.file.take().ok_or_else(ended)?;
        let assemble = move |file: &mut FileEncoder| {
            let _span = trace::write_row_group(file.row_groups(), row_group.rows() as u64);
            file.assemble(row_group)
        };
        let (file, pieces) = self.work(file, assemble).await?;
        self.send(pieces).await?;
        self.file = Some(self.keep_side_footer(file).await?);
        Ok(())
    }

    /// Adds a pair to the file's key-value metadata.
    pub fn add_key_value(&mut self, key: impl Into<String>, value: impl Into<String>) {
        if let Some(file) = &mut self.file {
            file.add_key_value(key, value);
        }
    }

    /// Writes the rows that are held, the indexes and the footer, and completes the file.
    ///
    /// # Errors
    /// As [`AsyncWriter::write`].
    pub async fn finish(mut self) -> Result<WriteReport> {
        self.flush().await?;
        let file = self.file.take().ok_or_else(ended)?;
        let end = |file: &mut FileEncoder| {
            let _span = trace::finish(file.row_groups());
            file.end()
        };
        let (_, (pieces, report)) = self.work(file, end).await?;
        self.send(pieces).await?;
        match self.sink.finish().await {
            Ok(()) => {
                self.side_footer.take().into_iter().for_each(SideFooter::finish);
                Ok(report)
            }
            Err(e) => Err(self.fail(e).await),
        }
    }

    /// Aborts: nothing of the file stays.
    ///
    /// # Errors
    /// `Io` if something may stay.
    pub async fn abort(mut self) -> Result<()> {
        self.file = None;
        self.sink.abort().await
    }

    /// Sends the row groups that `next` returns. The file is lost if this ends early.
    async fn send_all(
        &mut self,
        mut file: FileEncoder,
        next: fn(&mut FileEncoder) -> Result<Option<EncodedRowGroup>>,
    ) -> Result<()> {
        let assemble = move |file: &mut FileEncoder| {
            let Some(row_group) = next(file)? else { return Ok(None) };
            let _span = trace::write_row_group(file.row_groups(), row_group.rows() as u64);
            file.assemble(row_group).map(Some)
        };
        loop {
            let (back, pieces) = self.work(file, assemble).await?;
            file = back;
            match pieces {
                Some(pieces) => self.send(pieces).await?,
                None => break,
            }
            file = self.keep_side_footer(file).await?;
        }
        self.file = Some(file);
        Ok(())
    }

    /// Writes the side footer, if it is due.
    async fn keep_side_footer(&mut self, file: FileEncoder) -> Result<FileEncoder> {
        let row_groups = file.row_groups();
        let Some(mut side) = self.side_footer.take_if(|side| side.is_due(row_groups)) else {
            return Ok(file);
        };
        let write = move |file: &mut FileEncoder| {
            side.write(file.side_footer()?, row_groups).map(|()| side)
        };
        let (file, side) = self.work(file, write).await?;
        self.side_footer = Some(side);
        Ok(file)
    }

    async fn send(&mut self, pieces: Vec<Bytes>) -> Result<()> {
        match self.sink.write(pieces).await {
            Ok(()) => Ok(()),
            Err(e) => Err(self.fail(e).await),
        }
    }

    /// Lets the pool work on the file, while bytes are being uploaded.
    async fn work<T: Send + 'static>(
        &mut self,
        mut file: FileEncoder,
        work: impl FnOnce(&mut FileEncoder) -> Result<T> + Send + 'static,
    ) -> Result<(FileEncoder, T)> {
        let (send, mut receive) = oneshot::channel();
        let job = move || {
            let done = catch_unwind(AssertUnwindSafe(|| work(&mut file)));
            // The receiver may be gone.
            let _ = send.send(Worked { file, done });
        };
        match &self.pool {
            Some(pool) => pool.spawn(job),
            None => job(),
        }
        let sink = &mut self.sink;
        let worked = poll_fn(|cx| {
            if let Poll::Ready(Err(e)) = sink.poll_progress(cx) {
                return Poll::Ready(Err(e));
            }
            let worked = Pin::new(&mut receive).poll(cx);
            worked.map_err(|_| Error::cancelled("the pool's work on the file"))
        });
        let done = match worked.await {
            Ok(Worked { file, done: Ok(done) }) => done.map(|done| (file, done)),
            Ok(Worked { done: Err(panic), .. }) => resume_unwind(panic),
            Err(e) => Err(e),
        };
        match done {
            Ok(done) => Ok(done),
            Err(e) => Err(self.fail(e).await),
        }
    }

    /// After an error nothing is left.
    async fn fail(&mut self, error: Error) -> Error {
        self.file = None;
        // The first error is the one that is reported.
        let _ = self.sink.abort().await;
        error
    }
}

#[cold]
fn ended() -> Error {
    Error::usage("an earlier error, or a call that was dropped, ended the file")
}
