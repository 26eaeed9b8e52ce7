//! [`UrlSink`]: an object that is being uploaded, by blocking calls.
//!
//! A task owns the upload, so that parts are sent while the caller encodes, and a signal
//! can abort what another thread writes.

use std::pin::pin;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::{Either, poll_fn, select};
use marquetry::Error;
use marquetry::io::{AsyncSink, Sink, StoreSink};
use object_store::ObjectStore;
use object_store::path::Path;
use tokio::sync::{mpsc, watch};

use super::runtime;

/// A step of an upload.
enum Task {
    Write(Bytes),
    Finish,
}

/// A task, and where its result is awaited.
type Order = (Task, SyncSender<Result<(), Error>>);

/// An object that is being uploaded: in parts, or, if it is small, at once. It appears when it is
/// finished; one that is dropped before leaves nothing.
pub struct UrlSink {
    name: Arc<str>,
    orders: mpsc::UnboundedSender<Order>,
    upload: Arc<Upload>,
}

/// How an upload is aborted.
struct Upload {
    abort: watch::Sender<bool>,
    /// Gives nothing, and is closed at the end.
    ended: Mutex<Receiver<()>>,
}

/// The uploads of this process, those that have ended among them.
static UPLOADS: Mutex<Vec<Arc<Upload>>> = Mutex::new(Vec::new());

/// Aborts all uploads, and waits until their parts are removed; after a signal.
pub(crate) fn abort_uploads() {
    let uploads = UPLOADS.lock().unwrap_or_else(PoisonError::into_inner);
    for upload in uploads.iter() {
        let _ = upload.abort.send(true);
    }
    for upload in uploads.iter() {
        upload.wait();
    }
}

/// How long removing the parts of an upload may take.
const ABORT_TIME: Duration = Duration::from_secs(10);

impl Upload {
    fn wait(&self) {
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = ended.recv_timeout(ABORT_TIME);
    }
}

impl std::fmt::Debug for UrlSink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("UrlSink").field("name", &self.name).finish_non_exhaustive()
    }
}

impl UrlSink {
    pub(super) fn begin(
        name: Arc<str>,
        store: Arc<dyn ObjectStore>,
        path: Path,
    ) -> Result<Self, Error> {
        let (orders, taken) = mpsc::unbounded_channel();
        let (abort, aborted) = watch::channel(false);
        let (end, ended) = sync_channel(1);
        let sink = StoreSink::new(store, path);
        // Held meanwhile, so that a signal finds it, or it does not begin.
        let mut uploads = UPLOADS.lock().unwrap_or_else(PoisonError::into_inner);
        runtime::spawn(async move {
            serve(sink, taken, aborted).await;
            drop(end);
        })?;
        let upload = Arc::new(Upload { abort, ended: Mutex::new(ended) });
        uploads.push(upload.clone());
        Ok(Self { name, orders, upload })
    }

    fn order(&self, task: Task, what: &str) -> Result<(), Error> {
        let (give, take) = sync_channel(1);
        let done = self.orders.send((task, give)).is_ok().then(|| take.recv().ok()).flatten();
        let done = done.unwrap_or_else(|| Err(Error::cancelled("the upload")));
        done.map_err(|error| {
            let cause = error.get_ref().and_then(|cause| cause.downcast_ref::<std::io::Error>());
            let cause = cause.and_then(|cause| cause.get_ref());
            match cause.and_then(|cause| cause.downcast_ref::<object_store::Error>()) {
                Some(cause) => super::fault::of_store(cause).error(what, &self.name),
                None => error.at_file(self.name.clone()),
            }
        })
    }
}

impl Sink for UrlSink {
    fn write(&mut self, bytes: Bytes) -> Result<(), Error> {
        self.order(Task::Write(bytes), "uploading")
    }

    fn finish(&mut self) -> Result<(), Error> {
        self.order(Task::Finish, "ending the upload")
    }
}

impl Drop for UrlSink {
    fn drop(&mut self) {
        // Nothing is left to abort if it is finished.
        let _ = self.upload.abort.send(true);
        self.upload.wait();
    }
}

/// Does what is ordered, until it is finished, fails, or is aborted.
async fn serve(
    mut sink: StoreSink,
    mut orders: mpsc::UnboundedReceiver<Order>,
    mut aborted: watch::Receiver<bool>,
) {
    loop {
        let is_aborted = pin!(aborted.wait_for(|is_aborted| *is_aborted));
        match select(is_aborted, pin!(step(&mut sink, &mut orders))).await {
            Either::Right((Step::Written, _)) => {}
            Either::Right((Step::Finished, _)) => return,
            Either::Right((Step::Failed, _)) | Either::Left(_) => break,
        }
    }
    // What cannot be removed is left to the lifecycle rules of the bucket.
    let _ = sink.abort().await;
}

/// How an order ended.
enum Step {
    Written,
    Finished,
    Failed,
}

async fn step(sink: &mut StoreSink, orders: &mut mpsc::UnboundedReceiver<Order>) -> Step {
    // Parts go on while nothing is ordered.
    let order = poll_fn(|cx| {
        if let std::task::Poll::Ready(Err(error)) = sink.poll_progress(cx) {
            return std::task::Poll::Ready(Err(error));
        }
        orders.poll_recv(cx).map(Ok)
    });
    let (task, give) = match order.await {
        Ok(Some(order)) => order,
        Ok(None) => return Step::Failed,
        Err(error) => {
            // The next order is told of it.
            if let Some((_, give)) = orders.recv().await {
                let _ = give.send(Err(error));
            }
            return Step::Failed;
        }
    };
    let (done, after) = match task {
        Task::Write(bytes) => (sink.write(vec![bytes]).await, Step::Written),
        Task::Finish => (sink.finish().await, Step::Finished),
    };
    let after = if done.is_ok() { after } else { Step::Failed };
    let _ = give.send(done);
    after
}
