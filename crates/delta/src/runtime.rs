//! The runtime under which object stores are asked, and the way to wait for it.
//!
//! The kernel calls synchronously, perhaps from a thread of some runtime: waiting must not depend
//! on which.

use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Wake};
use std::thread::Thread;

use delta_kernel::{KernelError, KernelResult};
use tokio::runtime::{Builder, Handle};

/// A runtime: the caller's, or one that starts when it is first needed.
#[derive(Debug, Default)]
pub(crate) struct Runtime {
    lent: Option<Handle>,
    own: OnceLock<Owned>,
}

impl Runtime {
    /// That of the caller.
    pub(crate) fn lent(handle: Handle) -> Self {
        Self { lent: Some(handle), own: OnceLock::new() }
    }

    pub(crate) fn handle(&self) -> KernelResult<Handle> {
        if let Some(handle) = &self.lent {
            return Ok(handle.clone());
        }
        if self.own.get().is_none() {
            let mut builder = Builder::new_multi_thread();
            builder.worker_threads(2).thread_name("marquetry-delta").enable_all();
            let runtime = builder.build().map_err(KernelError::generic_err)?;
            // Another thread may have been faster; its runtime is as good.
            let _ = self.own.set(Owned(Some(runtime)));
        }
        let own = self.own.get().and_then(|own| own.0.as_ref());
        own.map(|own| own.handle().clone())
            .ok_or_else(|| KernelError::internal_error("there is no runtime"))
    }
}

/// Ends in the background: a runtime may not be waited for on a thread of another one.
#[derive(Debug)]
struct Owned(Option<tokio::runtime::Runtime>);

impl Drop for Owned {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

/// Polls `future` on this thread until it is ready.
pub(crate) fn wait<F: Future>(future: F) -> F::Output {
    struct Unpark(Thread);

    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }

    let waker = Arc::new(Unpark(std::thread::current())).into();
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park(),
        }
    }
}
