//! Runs work of the library with the GIL released, so that Ctrl-C ends it at once, and so that it
//! also runs in a process that was forked from one where it ran before.
//!
//! Python handles signals on its main thread, between instructions. Work that the main thread waits
//! for runs on another thread, and the main thread looks for signals meanwhile. If there is one,
//! the work is told so ([`Cancel`]): the next read or write of bytes fails, and whatever it was
//! writing is removed. On other threads work runs directly.
//!
//! A fork copies no threads, so a child has neither those of rayon's global pool nor ours. It gets
//! a pool of its own, and objects that wait for threads of the parent are refused.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::ThreadId;
use std::time::Duration;

use marquetry::{Error, Result};
use pyo3::exceptions::{PyKeyboardInterrupt, PyRuntimeError};
use pyo3::panic::PanicException;
use pyo3::prelude::*;

use crate::error::OrRaise;

/// Tells the reads and writes of one job, or of one object, to stop.
#[derive(Clone, Default, Debug)]
pub(crate) struct Cancel(Arc<AtomicBool>);

impl Cancel {
    pub(crate) fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// # Errors
    /// `Cancelled` from then on.
    pub(crate) fn check(&self) -> Result<()> {
        if self.is_set() { Err(Error::cancelled("the work")) } else { Ok(()) }
    }
}

/// Runs `work` without the GIL, and raises what it fails with.
///
/// # Errors
/// The exception of a signal; else that of the work.
pub(crate) fn run<T: Send + 'static>(
    py: Python<'_>,
    cancel: &Cancel,
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> PyResult<T> {
    let done = if is_main_thread(py) {
        run_aside(py, cancel, work)?
    } else {
        py.detach(|| catch_unwind(AssertUnwindSafe(|| here(work))))
    };
    match done {
        Ok(done) => done.or_raise(py),
        Err(panic) => Err(panicked(&*panic)),
    }
}

/// The same, with the result as it is; an error is the exception of a signal, or of a panic.
///
/// # Errors
/// The exception of a signal.
pub(crate) fn run_raw<T: Send + 'static>(
    py: Python<'_>,
    cancel: &Cancel,
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> PyResult<Result<T>> {
    run_aside(py, cancel, work)?.map_err(|panic| panicked(&*panic))
}

/// Raises an exception of a signal anew, when the interpreter goes on: the library that asked for
/// the batch knows only that it failed.
pub(crate) fn interrupt_again(py: Python<'_>, exception: PyErr) {
    if exception.is_instance_of::<PyKeyboardInterrupt>(py) {
        // SAFETY: sets a flag that the interpreter looks at; it is initialized, as `py` proves.
        unsafe { pyo3::ffi::PyErr_SetInterrupt() };
    } else {
        exception.write_unraisable(py, None);
    }
}

static MAIN_THREAD: OnceLock<ThreadId> = OnceLock::new();

/// Remembers this thread as the main one, if it is; called when the module is imported.
pub(crate) fn remember_main_thread(py: Python<'_>) {
    if is_main_thread(py) {
        let _ = MAIN_THREAD.set(std::thread::current().id());
    }
}

/// Whether signals are handled on this thread, without asking the interpreter.
pub(crate) fn on_main_thread() -> bool {
    MAIN_THREAD.get() == Some(&std::thread::current().id())
}

/// The exception for a panic: one that `except Exception` does not hide.
fn panicked(panic: &(dyn std::any::Any + Send)) -> PyErr {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    let text = text.unwrap_or_else(|| "no reason given".to_owned());
    PanicException::new_err((format!("a fault of marquetry, please report it: {text}"),))
}

fn run_aside<T: Send + 'static>(
    py: Python<'_>,
    cancel: &Cancel,
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> PyResult<std::thread::Result<Result<T>>> {
    let (send, receive) = mpsc::sync_channel(1);
    let job = Box::new(move || {
        let done = catch_unwind(AssertUnwindSafe(|| here(work)));
        // The main thread may have left.
        let _ = send.send(done);
    });
    start(job).or_raise(py)?;
    let receive = Mutex::new(receive);
    let wait =
        |time: Duration| receive.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(time);
    loop {
        let next = py.detach(|| wait(SIGNALS_EVERY));
        match next {
            Ok(done) => return Ok(done),
            Err(RecvTimeoutError::Disconnected) => {
                return Err(PyRuntimeError::new_err("the thread of the work ended"));
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
        if let Err(signal) = py.check_signals() {
            cancel.set();
            // What was being written is removed by the thread that writes it.
            let _ = py.detach(|| wait(LEAVE_AFTER));
            return Err(signal);
        }
    }
}

/// How often signals are looked for, because a person who presses Ctrl-C notices 100 ms.
const SIGNALS_EVERY: Duration = Duration::from_millis(30);

/// How long the work that a signal ended may take to clean up; then it goes on by itself, to its
/// next read or write.
const LEAVE_AFTER: Duration = Duration::from_secs(2);

type Job = Box<dyn FnOnce() + Send>;

/// Threads that wait for a job. They are kept, because the library keeps buffers for each thread.
static IDLE: Mutex<(u32, Vec<Sender<Job>>)> = Mutex::new((0, Vec::new()));

fn start(job: Job) -> Result<()> {
    let mut job = job;
    loop {
        let idle = {
            let mut idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner);
            let pid = std::process::id();
            if idle.0 != pid {
                // Threads of the parent of a fork.
                *idle = (pid, Vec::new());
            }
            idle.1.pop()
        };
        let Some(thread) = idle else { break };
        match thread.send(job) {
            Ok(()) => return Ok(()),
            Err(unsent) => job = unsent.0,
        }
    }
    let (send, receive) = mpsc::channel::<Job>();
    let first = job;
    let thread = std::thread::Builder::new().name("marq-job".to_owned());
    let again = move || {
        let mut next = Some(first);
        while let Some(job) = next.take() {
            job();
            let mut idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner);
            if idle.0 != std::process::id() || idle.1.len() >= MAX_IDLE {
                return;
            }
            idle.1.push(send.clone());
            drop(idle);
            next = receive.recv().ok();
        }
    };
    thread.spawn(again).map(drop).map_err(|e| Error::io("starting a thread", e))
}

/// Threads that are kept.
const MAX_IDLE: usize = 4;

/// The process that the library was first used in, or is used in since a fork.
static HOME: AtomicU32 = AtomicU32::new(0);

/// Runs `work` on this thread, with a pool of this process.
fn here<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    let pid = std::process::id();
    let home = HOME.load(Ordering::Relaxed);
    if home == 0 {
        // The first work starts rayon's pool.
        HOME.store(pid, Ordering::Relaxed);
    } else if home != pid
        && let Some(pool) = pool_of_child(pid)
    {
        return pool.install(work);
    }
    work()
}

/// Whether this process was forked after the library was used.
pub(crate) fn is_child() -> bool {
    let home = HOME.load(Ordering::Relaxed);
    home != 0 && home != std::process::id()
}

/// Refuses what needs threads that a fork does not copy.
///
/// # Errors
/// `Unsupported` in a process that was forked after the library was used.
pub(crate) fn refuse_child() -> Result<()> {
    if !is_child() {
        return Ok(());
    }
    Err(Error::unsupported(
        "URLs after a fork",
        "the threads of requests are those of the parent: start the process with \"spawn\"",
    ))
}

/// The pool of a process that was forked; `None` if its threads cannot be started.
fn pool_of_child(pid: u32) -> Option<Arc<rayon::ThreadPool>> {
    /// The process that a pool is of, and the pool.
    type PoolOf = (u32, Arc<rayon::ThreadPool>);
    static POOL: Mutex<Option<PoolOf>> = Mutex::new(None);
    let mut pool = POOL.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((of, pool)) = &*pool
        && *of == pid
    {
        return Some(pool.clone());
    }
    let new = Arc::new(rayon::ThreadPoolBuilder::new().build().ok()?);
    // The pool of a parent has no threads here that could be joined.
    std::mem::forget(pool.replace((pid, new.clone())));
    Some(new)
}

/// Whether signals are handled on this thread.
pub(crate) fn is_main_thread(py: Python<'_>) -> bool {
    static MAIN: OnceLock<Option<u64>> = OnceLock::new();
    let ident = || -> PyResult<u64> {
        py.import("threading")?.call_method0("main_thread")?.getattr("ident")?.extract()
    };
    let Some(main) = *MAIN.get_or_init(|| ident().ok()) else { return false };
    // A fork from another thread makes that thread the main one of the child.
    let current = py.import("_thread").and_then(|m| m.call_method0("get_ident"));
    current.and_then(|ident| ident.extract::<u64>()).is_ok_and(|ident| ident == main)
}

/// Something that may wait for threads of the process that made it: not used, and not dropped, in a
/// child.
pub(crate) struct Local<T> {
    pid: u32,
    value: Option<T>,
}

impl<T> Local<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { pid: std::process::id(), value: Some(value) }
    }

    /// # Errors
    /// `Usage` in a process that was forked after it was made.
    pub(crate) fn get(&mut self) -> Result<&mut T> {
        match &mut self.value {
            Some(value) if self.pid == std::process::id() => Ok(value),
            _ => Err(Error::usage(
                "a read that began before a fork cannot go on in the child: begin it there",
            )),
        }
    }
}

impl<T> Drop for Local<T> {
    fn drop(&mut self) {
        if self.pid != std::process::id() {
            std::mem::forget(self.value.take());
        }
    }
}
