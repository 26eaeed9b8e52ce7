//! Capsules with structures of `datafusion-ffi`: all that crosses to DataFusion's Python.

use std::ffi::CStr;
use std::sync::Arc;

use datafusion_ffi::proto::logical_extension_codec::FFI_LogicalExtensionCodec;
use datafusion_ffi::table_provider::FFI_TableProvider;
use datafusion_session::TableProvider;
use marquetry::ffi::{self, FFI_ArrowArrayStream, ImportedBatches};
use pyo3::exceptions::{PyImportError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::session::{RUNTIME, no_session};

/// The table as a capsule for a session, which knows the functions that filters call. Without one,
/// filters stay in DataFusion.
///
/// # Errors
/// `TypeError` if the session is none; `ImportError` if it is of another version of DataFusion.
pub(crate) fn of_table<'py>(
    table: Arc<dyn TableProvider>,
    session: Option<&Bound<'py, PyAny>>,
    py: Python<'py>,
) -> PyResult<Bound<'py, PyCapsule>> {
    let runtime = Some(RUNTIME.handle().clone());
    let table = match session {
        Some(session) => {
            FFI_TableProvider::new_with_ffi_codec(table, true, runtime, codec_of(session)?)
        }
        None => FFI_TableProvider::new(table, false, runtime, &no_session(), None),
    };
    PyCapsule::new_with_value(py, table, TABLE)
}

/// The codec of a session, or of the capsule that is given in place of one.
fn codec_of(session: &Bound<'_, PyAny>) -> PyResult<FFI_LogicalExtensionCodec> {
    check_version(session.py())?;
    let given = match session.getattr_opt("__datafusion_logical_extension_codec__")? {
        Some(method) => method.call0()?,
        None => session.clone(),
    };
    let capsule = given.cast::<PyCapsule>().map_err(|_| {
        let name = session.get_type().name().map(|name| name.to_string()).unwrap_or_default();
        PyTypeError::new_err(format!("{name} is no session of DataFusion"))
    })?;
    let codec = capsule.pointer_checked(Some(CODEC))?.cast::<FFI_LogicalExtensionCodec>();
    // SAFETY: by its name the capsule holds such a structure; the version says that it has this
    // layout. It lives as long as the capsule, which is kept here.
    Ok(unsafe { codec.as_ref() }.clone())
}

/// The batches of the capsule of an Arrow stream, which is empty afterwards.
///
/// # Errors
/// `ValueError` if the capsule holds something else, or the schema is none of Arrow.
pub(crate) fn stream_of(capsule: &Bound<'_, PyCapsule>) -> PyResult<ImportedBatches> {
    let stream = capsule.pointer_checked(Some(STREAM))?.cast::<FFI_ArrowArrayStream>();
    // SAFETY: a capsule of this name holds such a stream (the Arrow PyCapsule interface);
    // `from_raw` moves it out, and leaves a released one.
    let stream = unsafe { FFI_ArrowArrayStream::from_raw(stream.as_ptr()) };
    ffi::import(stream).map_err(|e| PyValueError::new_err(e.to_string()))
}

/// The layout of the structures is that of a major version.
fn check_version(py: Python<'_>) -> PyResult<()> {
    let found: String = py.import("datafusion")?.getattr("__version__")?.extract()?;
    if found.split('.').next() == DATAFUSION.split('.').next() {
        return Ok(());
    }
    let version = env!("CARGO_PKG_VERSION");
    Err(PyImportError::new_err(format!(
        "marq-datafusion {version} is for datafusion {DATAFUSION}, and {found} is installed"
    )))
}

const DATAFUSION: &str = "55";
const STREAM: &CStr = c"arrow_array_stream";
const TABLE: &CStr = c"datafusion_table_provider";
const CODEC: &CStr = c"datafusion_logical_extension_codec";
