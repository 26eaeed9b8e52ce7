//! Calls into Python where another library may have released the GIL unseen by pyo3.
//!
//! pyo3 counts how often a thread is attached, and a library such as DuckDB detaches it without
//! that count. So code that another library may call asks the interpreter itself ([`attached`]),
//! and an object that another library may drop is dropped by the main thread ([`Kept`]). What waits
//! for threads when it is dropped is dropped without the GIL ([`Detached`]).

use std::any::Any;
use std::ffi::{c_int, c_void};
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use marquetry::{Error, Result};
use pyo3::ffi;
use pyo3::prelude::*;

use crate::error::raised;
use crate::job;

/// Calls `work` with the GIL.
pub(crate) fn attached<T>(work: impl FnOnce(Python<'_>) -> T) -> T {
    struct Attached(ffi::PyGILState_STATE);
    impl Drop for Attached {
        fn drop(&mut self) {
            // SAFETY: the state is that of the call below, on the same thread.
            unsafe { ffi::PyGILState_Release(self.0) };
        }
    }
    // SAFETY: the interpreter is initialized, because it has imported the module. Unlike pyo3, the
    // call finds out whether the thread is attached.
    let _attached = Attached(unsafe { ffi::PyGILState_Ensure() });
    Python::attach(work)
}

/// Calls code of the caller, such as `read` of a file object; `what` is what it does.
///
/// # Errors
/// Its exception; `Cancelled` once the interpreter ends, which ends threads that wait for the GIL.
pub(crate) fn call<T>(what: &str, work: impl FnOnce(Python<'_>) -> PyResult<T>) -> Result<T> {
    struct Call;
    impl Drop for Call {
        fn drop(&mut self) {
            CALLS.fetch_sub(1, Ordering::SeqCst);
        }
    }
    CALLS.fetch_add(1, Ordering::SeqCst);
    let _call = Call;
    if IS_ENDING.load(Ordering::SeqCst) {
        return Err(Error::cancelled("the work, because the interpreter ends"));
    }
    attached(work).map_err(|e| raised(what, e))
}

/// Calls that are going on. Each either is counted before the interpreter ends, or sees that it
/// does.
static CALLS: AtomicUsize = AtomicUsize::new(0);
static IS_ENDING: AtomicBool = AtomicBool::new(false);

/// Ends the calls of other threads; the interpreter runs it before it ends.
#[pyfunction]
pub(crate) fn end(py: Python<'_>) {
    IS_ENDING.store(true, Ordering::SeqCst);
    // A fork copies the count, and not the threads.
    if job::is_child() {
        return;
    }
    let begun = Instant::now();
    py.detach(|| {
        while CALLS.load(Ordering::SeqCst) > 0 && begun.elapsed() < END_AFTER {
            std::thread::sleep(Duration::from_millis(1));
        }
    });
}

/// How long a call may take to return when the interpreter ends.
const END_AFTER: Duration = Duration::from_secs(5);

/// Calls `work` without the GIL, whether or not the thread has it, and so that pyo3 knows.
pub(crate) fn detached<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    attached(|py| py.detach(work))
}

/// A value that waits for threads when it is dropped, which may need the GIL to end: it is dropped
/// without.
pub(crate) struct Detached<T: Send>(Option<T>);

impl<T: Send> Detached<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(Some(value))
    }
}

impl<T: Send> Deref for Detached<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0.as_ref().expect("it is taken when it is dropped")
    }
}

impl<T: Send> Drop for Detached<T> {
    fn drop(&mut self) {
        let value = self.0.take();
        detached(|| drop(value));
    }
}

/// A value with an object of Python, which any thread may drop.
pub(crate) struct Kept<T: Send + 'static>(Option<T>);

impl<T: Send + 'static> Kept<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(Some(value))
    }

    pub(crate) fn get(&self) -> &T {
        self.0.as_ref().expect("it is taken when it is dropped")
    }
}

impl<T: AsRef<[u8]> + Send + 'static> AsRef<[u8]> for Kept<T> {
    fn as_ref(&self) -> &[u8] {
        self.get().as_ref()
    }
}

static DROPPED: Mutex<Vec<Box<dyn Any + Send>>> = Mutex::new(Vec::new());

impl<T: Send + 'static> Drop for Kept<T> {
    fn drop(&mut self) {
        let Some(value) = self.0.take() else { return };
        DROPPED.lock().unwrap_or_else(PoisonError::into_inner).push(Box::new(value));
        // SAFETY: any thread may call it, attached or not, and `drop_all` needs no argument. If the
        // queue is full, the next call that fits drops everything.
        unsafe { ffi::Py_AddPendingCall(Some(drop_all), std::ptr::null_mut()) };
    }
}

/// Drops what other threads could not; the interpreter calls it on its main thread.
extern "C" fn drop_all(_: *mut c_void) -> c_int {
    let dropped = std::mem::take(&mut *DROPPED.lock().unwrap_or_else(PoisonError::into_inner));
    Python::attach(|_| drop(dropped));
    0
}
