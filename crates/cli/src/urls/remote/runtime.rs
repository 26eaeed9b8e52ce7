//! The runtime that requests run on. Callers wait for them, on whatever thread they are.

use std::future::Future;
use std::sync::OnceLock;
use std::sync::mpsc::sync_channel;

use marquetry::Error;
use tokio::runtime::{Builder, Runtime};

fn runtime() -> Result<&'static Runtime, Error> {
    static RUNTIME: OnceLock<Result<Runtime, std::io::ErrorKind>> = OnceLock::new();
    let made = RUNTIME.get_or_init(|| {
        let mut builder = Builder::new_multi_thread();
        builder.worker_threads(2).thread_name("urls").enable_all();
        builder.build().map_err(|e| e.kind())
    });
    made.as_ref().map_err(|kind| Error::io("the threads of requests", (*kind).into()))
}

/// Lets a future run beside the caller.
///
/// # Errors
/// `Io` if the system refuses threads.
pub(super) fn spawn(future: impl Future<Output = ()> + Send + 'static) -> Result<(), Error> {
    drop(runtime()?.spawn(future));
    Ok(())
}

/// Waits for a future, which runs on the threads of the runtime: the caller may be one of another
/// runtime.
///
/// # Errors
/// `Io` if the system refuses threads.
pub(super) fn wait<T: Send + 'static>(
    future: impl Future<Output = T> + Send + 'static,
) -> Result<T, Error> {
    let (give, take) = sync_channel(1);
    spawn(async move {
        // A caller that has panicked waits no more.
        let _ = give.send(future.await);
    })?;
    take.recv().map_err(|_| Error::internal("a request ended without an answer"))
}
