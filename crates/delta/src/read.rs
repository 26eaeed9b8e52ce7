//! Reads files in their order, with as much done at a time as the source bears.

use std::sync::Arc;
use std::vec;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions, StringArray, new_null_array};
use arrow_schema::TimeUnit;
use delta_kernel::engine::arrow_data::ArrowEngineData;
use delta_kernel::{
    CancellationTokenRef, EngineData, FileMeta, KernelError, KernelResult, PredicateRef,
};
use futures_channel::mpsc;
use futures_util::future::{Either, select};
use futures_util::{SinkExt, StreamExt};
use marquetry::read::ReadOptions;
use marquetry::schema::ArrowOptions;
use marquetry::{Batches, Reader};
use object_store::ObjectStore;
use object_store::path::Path;
use tokio::runtime::Handle;
use tokio::task::{JoinError, JoinHandle};
use url::Url;

use crate::error::{at, refused};
use crate::plan::{Column, FilePlan, Wanted};
use crate::runtime::wait;

/// The parts of a call of the kernel that are the same for each file.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) wanted: Wanted,
    pub(crate) predicate: Option<PredicateRef>,
    pub(crate) batch_rows: Option<usize>,
}

/// Files of a store that are opened ahead.
const OPENED_AHEAD: usize = 16;

/// Options of all reads: the types of the columns are those that the format states, and INT96 has
/// the unit of the kernel, because nanoseconds end in the year 2262.
fn options() -> ReadOptions {
    let mut options = ReadOptions::default();
    options.arrow = ArrowOptions::new().with_hint(false).with_int96(TimeUnit::Microsecond);
    options
}

impl Request {
    fn plan<S>(&self, reader: Reader<S>, location: &Url) -> KernelResult<(Reader<S>, Rows)> {
        let reader = reader.options(options());
        let file = reader.schema().map_err(at(location))?;
        let plan = FilePlan::new(&self.wanted, file.fields(), location)?;
        let mut reader = plan.apply(reader);
        if let Some(rows) = self.batch_rows {
            reader = reader.batch_rows(rows);
        }
        Ok((
            reader,
            Rows { plan, wanted: Arc::clone(&self.wanted.arrow), location: location.clone() },
        ))
    }
}

/// `reader`, of the rows that may pass.
fn filtered<S: Clone>(reader: Reader<S>, rows: &Rows, request: &Request) -> Reader<S> {
    let predicate = request.predicate.as_ref().and_then(|p| rows.plan.comparable.translate(p));
    match predicate {
        // A predicate that does not fit prunes nothing, and is no error.
        Some(predicate) => reader.clone().try_filter(predicate).unwrap_or(reader),
        None => reader,
    }
}

/// Makes the batches of one file.
struct Rows {
    plan: FilePlan,
    wanted: arrow_schema::SchemaRef,
    location: Url,
}

impl Rows {
    fn batch(&self, read: &RecordBatch) -> KernelResult<RecordBatch> {
        let rows = read.num_rows();
        let column = |(column, field): (&Column, &Arc<arrow_schema::Field>)| {
            let lost = || KernelError::internal_error("a column was not read");
            let array: ArrayRef = match column {
                Column::Read(at, shape) => {
                    let array = read.columns().get(*at).ok_or_else(lost)?;
                    shape.apply(array, field.data_type(), None)?
                }
                Column::Missing => new_null_array(field.data_type(), rows),
                Column::RowNumber => Arc::clone(read.columns().last().ok_or_else(lost)?),
                Column::FileName => {
                    let name = self.location.as_str();
                    Arc::new(StringArray::from_iter_values(std::iter::repeat_n(name, rows)))
                }
            };
            Ok::<_, KernelError>(array)
        };
        let columns = self.plan.columns.iter().zip(self.wanted.fields()).map(column);
        let columns = columns.collect::<KernelResult<Vec<_>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let batch = RecordBatch::try_new_with_options(Arc::clone(&self.wanted), columns, &options);
        batch.map_err(|e| refused(&self.location, format_args!("{e}")))
    }
}

/// Batches as the kernel takes them, until a token cancels the read.
pub(crate) struct Cancellable<I> {
    batches: Option<I>,
    token: Option<CancellationTokenRef>,
}

impl<I> Cancellable<I> {
    pub(crate) fn new(batches: I, token: Option<CancellationTokenRef>) -> Self {
        Self { batches: Some(batches), token }
    }
}

impl<I: Pull> Iterator for Cancellable<I> {
    type Item = KernelResult<Box<dyn EngineData>>;

    fn next(&mut self) -> Option<Self::Item> {
        let batches = self.batches.as_mut()?;
        let next = match &self.token {
            Some(token) if token.is_cancelled() => Some(Err(KernelError::Cancelled)),
            token => batches.pull(token.as_ref()),
        };
        if !matches!(next, Some(Ok(_))) {
            // Requests that run end with it.
            self.batches = None;
        }
        next.map(|next| {
            next.map(|batch| Box::new(ArrowEngineData::new(batch)) as Box<dyn EngineData>)
        })
    }
}

/// Batches one after the other.
pub(crate) trait Pull {
    fn pull(&mut self, token: Option<&CancellationTokenRef>) -> Option<KernelResult<RecordBatch>>;
}

/// Local files, read on the threads of the library.
pub(crate) struct LocalFiles {
    request: Request,
    files: vec::IntoIter<FileMeta>,
    current: Option<(Batches, Rows)>,
}

impl LocalFiles {
    pub(crate) fn new(request: Request, files: Vec<FileMeta>) -> Self {
        Self { request, files: files.into_iter(), current: None }
    }

    fn open(&self, location: &Url) -> KernelResult<(Batches, Rows)> {
        let reader = Reader::open(local_path(location)?).map_err(at(location))?;
        let (reader, rows) = self.request.plan(reader, location)?;
        let reader = filtered(reader, &rows, &self.request);
        Ok((reader.batches().map_err(at(location))?, rows))
    }
}

impl Pull for LocalFiles {
    fn pull(&mut self, _: Option<&CancellationTokenRef>) -> Option<KernelResult<RecordBatch>> {
        loop {
            if let Some((batches, rows)) = &mut self.current {
                match batches.next() {
                    Some(Ok(batch)) => return Some(rows.batch(&batch)),
                    Some(Err(error)) => return Some(Err(at(&rows.location)(error.into()))),
                    None => self.current = None,
                }
            }
            let file = self.files.next()?;
            match self.open(&file.location) {
                Ok(opened) => self.current = Some(opened),
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

/// The path of a `file:` URL.
pub(crate) fn local_path(location: &Url) -> KernelResult<std::path::PathBuf> {
    let path = location.to_file_path();
    path.map_err(|()| refused(location, format_args!("this URL is no path of a local file")))
}

/// Files of an object store: a task reads them while the kernel works.
pub(crate) struct StoredFiles {
    batches: mpsc::Receiver<KernelResult<RecordBatch>>,
    task: JoinHandle<()>,
}

impl StoredFiles {
    pub(crate) fn new(
        request: Request,
        files: Vec<FileMeta>,
        store: Arc<dyn ObjectStore>,
        runtime: &Handle,
    ) -> Self {
        // One batch waits, and one more in the hands of the sender.
        let (mut sender, batches) = mpsc::channel(0);
        let read = async move {
            if let Err(error) = send_all(request, files, store, &mut sender).await {
                // The receiver of a read that was given up is gone.
                let _ = sender.send(Err(error)).await;
            }
        };
        Self { batches, task: runtime.spawn(read) }
    }
}

impl Drop for StoredFiles {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Pull for StoredFiles {
    fn pull(&mut self, token: Option<&CancellationTokenRef>) -> Option<KernelResult<RecordBatch>> {
        let next = match token {
            None => wait(self.batches.next()),
            Some(token) => match wait(select(self.batches.next(), token.cancelled_future())) {
                Either::Left((next, _)) => next,
                Either::Right(_) => return Some(Err(KernelError::Cancelled)),
            },
        };
        // Batches also end where the task did not: it panicked, or its runtime was shut down.
        next.or_else(|| wait(&mut self.task).err().map(|error| Err(lost(&error))))
    }
}

#[cold]
fn lost(error: &JoinError) -> KernelError {
    KernelError::generic(format_args!(
        "the files were not read to their end: {error}; a runtime that was lent must run until \
         its reads have ended"
    ))
}

async fn send_all(
    request: Request,
    files: Vec<FileMeta>,
    store: Arc<dyn ObjectStore>,
    sender: &mut mpsc::Sender<KernelResult<RecordBatch>>,
) -> KernelResult<()> {
    let opened = files.into_iter().map(|file| {
        let store = Arc::clone(&store);
        // On its own, so that it goes on while the batches of an earlier file are awaited.
        let task = tokio::spawn(async move {
            let path =
                Path::from_url_path(file.location.path()).map_err(KernelError::generic_err)?;
            let reader = Reader::open_store(store, path).await.map_err(at(&file.location))?;
            Ok::<_, KernelError>((reader, file.location))
        });
        AbortOnDrop(task)
    });
    let mut opened = futures_util::stream::iter(opened).buffered(OPENED_AHEAD);
    while let Some(file) = opened.next().await {
        let (reader, location) = file.map_err(KernelError::generic_err)??;
        let (reader, rows) = request.plan(reader, &location)?;
        let mut batches = filtered(reader, &rows, &request).stream().map_err(at(&location))?;
        while let Some(batch) = batches.next().await {
            let batch = rows.batch(&batch.map_err(at(&location))?)?;
            if sender.send(Ok(batch)).await.is_err() {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// A task that ends with the one who waits for it.
struct AbortOnDrop<T>(JoinHandle<T>);

impl<T> std::future::Future for AbortOnDrop<T> {
    type Output = Result<T, JoinError>;

    fn poll(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Self::Output> {
        std::pin::Pin::new(&mut self.0).poll(context)
    }
}

impl<T> Drop for AbortOnDrop<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}
