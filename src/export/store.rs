//! Exports into object stores.

use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use bytes::Bytes;
use futures_core::Stream;
use futures_util::StreamExt;
use object_store::{ObjectStore, ObjectStoreExt, path::Path as ObjectPath};

use super::builder::Export;
use super::progress::ExportedFile;
use super::run::{ExportRun, ExportState};
use super::target::{CreatedFiles, Later, OutFile, Target, lock};
use crate::bytes::saturated;
use crate::error::{Error, Result};
use crate::io::{AsyncSink, StoreSink};
use crate::write::WriteReport;
use crate::writer::{AsyncWriter, FileEncoder, RowGroupEncoder};

/// Objects whose paths begin with a prefix.
#[derive(Debug)]
struct StorePrefix {
    store: Arc<dyn ObjectStore>,
    prefix: ObjectPath,
    /// The memory of an upload.
    upload: u64,
}

/// An upload takes one part in three of the memory of a file, or as much as two parts take.
const UPLOAD_SHARE: u64 = 3;

impl StorePrefix {
    /// The object of a file. Names of folders are escaped already, as the store wants them or not.
    fn object(&self, file: &str) -> ObjectPath {
        let whole = match self.prefix.as_ref() {
            "" => file.to_owned(),
            prefix => format!("{prefix}/{file}"),
        };
        ObjectPath::parse(&whole).unwrap_or_else(|_| ObjectPath::from(whole))
    }
}

impl Target for StorePrefix {
    fn is_local(&self) -> bool {
        false
    }

    fn max_open(&self, memory: u64) -> usize {
        // As much for rows as for the upload.
        saturated(memory / (2 * StoreSink::MIN_MEMORY)).max(1)
    }

    fn take_share(&mut self, memory: u64) -> u64 {
        self.upload = (memory / UPLOAD_SHARE).max(StoreSink::MIN_MEMORY.min(memory / 2));
        memory - self.upload
    }

    fn path(&self, file: &str) -> PathBuf {
        PathBuf::from(self.object(file).to_string())
    }

    fn is_taken<'a>(&'a self, file: &'a str) -> Later<'a, Result<bool>> {
        Box::pin(async move {
            match self.store.head(&self.object(file)).await {
                Ok(_) => Ok(true),
                Err(object_store::Error::NotFound { .. }) => Ok(false),
                Err(e) => Err(Error::io("looking for an object of the name", e.into())),
            }
        })
    }

    fn begin(
        &self,
        file: &str,
        encoder: RowGroupEncoder,
        _: &CreatedFiles,
    ) -> Result<Box<dyn OutFile>> {
        let sink = StoreSink::new(self.store.clone(), self.object(file)).with_memory(self.upload);
        Ok(Box::new(AsyncWriter::over(sink, encoder)))
    }

    fn put<'a>(&'a self, file: &'a str, bytes: Bytes) -> Later<'a, Result<()>> {
        Box::pin(async move {
            let mut sink = StoreSink::new(self.store.clone(), self.object(file));
            sink.write(vec![bytes]).await?;
            sink.finish().await
        })
    }

    fn remove<'a>(&'a self, made: &'a CreatedFiles) -> Later<'a, ()> {
        let files = std::mem::take(&mut *lock(&made.files));
        Box::pin(async move {
            for file in files {
                let _ = self.store.delete(&self.object(&file)).await;
            }
        })
    }
}

impl OutFile for AsyncWriter<StoreSink> {
    fn file(&self) -> Option<&FileEncoder> {
        self.file()
    }

    fn file_mut(&mut self) -> Option<&mut FileEncoder> {
        self.file_mut()
    }

    fn write<'a>(&'a mut self, batch: &'a RecordBatch) -> Later<'a, Result<()>> {
        Box::pin(self.write(batch))
    }

    fn flush(&mut self) -> Later<'_, Result<()>> {
        Box::pin(self.flush())
    }

    fn finish(self: Box<Self>) -> Later<'static, Result<WriteReport>> {
        Box::pin((*self).finish())
    }

    fn abort(self: Box<Self>) -> Later<'static, ()> {
        Box::pin(async move {
            let _ = (*self).abort().await;
        })
    }
}

impl Export {
    /// Exports batches of `schema` into objects whose paths begin with `prefix`, with
    /// [`Export::run_async`].
    pub fn to_store(
        store: Arc<dyn ObjectStore>,
        prefix: impl Into<ObjectPath>,
        schema: SchemaRef,
    ) -> Self {
        Self::new(StorePrefix { store, prefix: prefix.into(), upload: 0 }, schema)
    }

    /// Writes asynchronous streams, into an object store or a folder, as [`Export::run`]: as many
    /// at a time as there are [threads](Export::threads), in the task that polls. Rows are encoded
    /// by the threads of a pool. Files of a folder are written where the future is polled.
    ///
    /// A future that is dropped before its end leaves the objects that were finished.
    ///
    /// # Errors
    /// As [`Export::run`].
    pub async fn run_async<I, S, E>(self, streams: I) -> Result<Vec<ExportedFile>>
    where
        I: IntoIterator<Item = S>,
        S: Stream<Item = Result<RecordBatch, E>>,
        E: Into<Error>,
    {
        let streams = streams.into_iter();
        let workers = self.threads.min(streams.size_hint().1.unwrap_or(usize::MAX)).max(1);
        let run = ExportRun::new(self, workers, false)?;
        let work = streams.enumerate().map(|(number, stream)| run.work_async(number, stream));
        futures_util::stream::iter(work).buffer_unordered(workers).collect::<()>().await;
        run.end().await
    }
}

impl ExportRun {
    /// Writes a stream.
    async fn work_async<S, E>(&self, number: usize, stream: S)
    where
        S: Stream<Item = Result<RecordBatch, E>>,
        E: Into<Error>,
    {
        let mut stream = pin!(stream);
        let mut state = ExportState::new(number);
        let mut done = Ok(());
        while done.is_ok()
            && !self.stopped()
            && let Some(batch) = stream.next().await
        {
            done = match batch {
                Ok(batch) => self.write(&mut state, &batch).await,
                Err(e) => Err(e.into()),
            };
        }
        self.end_stream(state, done).await;
    }
}
