//! The extension module `marq_datafusion._marq_datafusion`: tables for the Python of DataFusion.
//!
//! ```text
//!  Table ── __datafusion_table_provider__ ── FFI_TableProvider ── Files
//!    paths     codec of the session             in a capsule           filters into the scan
//! ```
//!
//! DataFusion calls from threads of its own, without the GIL, and nothing here takes it: no object
//! of Python is kept.

#![warn(missing_docs, unsafe_op_in_unsafe_fn, clippy::undocumented_unsafe_blocks)]

mod capsule;
mod error;
mod files;
mod guard;
mod session;
mod table;

use pyo3::prelude::*;

/// The native half of the package `marq_datafusion`.
#[pymodule(gil_used = true)]
mod _marq_datafusion {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::table::Table;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
