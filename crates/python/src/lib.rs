//! The extension module `marq._marq`: the library `marquetry` for Python, and the tool `marq`.

#![warn(missing_docs, unsafe_op_in_unsafe_fn, clippy::undocumented_unsafe_blocks)]

mod chain;
mod error;
mod extras;
mod files;
mod gil;
mod hive;
mod job;
mod keys;
mod look;
mod rewrite;
mod source;
mod table;
mod values;
mod write;

use std::sync::atomic::{AtomicI64, Ordering};

use pyo3::exceptions::PyImportError;
use pyo3::prelude::*;

/// Threads that allocate large arrays do not wait for each other, as they do in glibc.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The native half of the package `marq`. Its classes cannot be changed but behind locks, and no
/// lock is waited for by a thread that is attached while its owner may call into Python: so the
/// builds of Python without a GIL need none.
#[pymodule(gil_used = false)]
mod _marq {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::chain::PyBatches;
    #[pymodule_export]
    use crate::files::Files;
    #[pymodule_export]
    use crate::table::{Column, PySchema, Table, concat_tables};

    #[pymodule_export]
    use super::command;
    #[pymodule_export]
    use crate::extras::{
        geo_bounds, geo_to_wkt, read_into, variant_from_json, variant_get, variant_to_json,
    };
    #[pymodule_export]
    use crate::look::check;
    #[pymodule_export]
    use crate::rewrite::{compact, salvage};
    #[pymodule_export]
    use crate::write::{PyWriteReport, PyWriter, export};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        super::refuse_subinterpreters()?;
        crate::job::remember_main_thread(module.py());
        let end = wrap_pyfunction!(crate::gil::end, module)?;
        module.py().import("atexit")?.call_method1("register", (end,))?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}

/// The interpreter that imported the module first; -1 if none has.
static INTERPRETER: AtomicI64 = AtomicI64::new(-1);

/// Objects are shared between all uses of the library in a process, and must be of one interpreter.
fn refuse_subinterpreters() -> PyResult<()> {
    // SAFETY: the thread is attached to an interpreter, because it imports the module.
    let current =
        unsafe { pyo3::ffi::PyInterpreterState_GetID(pyo3::ffi::PyInterpreterState_Get()) };
    let first = INTERPRETER.compare_exchange(-1, current, Ordering::Relaxed, Ordering::Relaxed);
    match first {
        Err(other) if other != current => Err(PyImportError::new_err(
            "marq works in one interpreter of a process, and another one has imported it",
        )),
        _ => Ok(()),
    }
}

/// Runs the command line of the tool, and returns its exit code.
#[pyfunction]
fn command(py: Python<'_>, args: Vec<std::ffi::OsString>) -> u8 {
    use std::io::Write;
    py.detach(|| {
        let code = marquetry_cli::run(args);
        // The interpreter ends the process without what Rust does at the end of one.
        let _ = std::io::stdout().flush();
        // The number inside has no other way out.
        (0..=u8::MAX).find(|n| std::process::ExitCode::from(*n) == code).unwrap_or(1)
    })
}
