//! Errors of the library as exceptions of `marq._errors`, and exceptions of Python that pass
//! through the library.

use std::fmt;

use arrow_schema::ArrowError;
use marquetry::{Error, ErrorKind};
use pyo3::exceptions::{PyKeyboardInterrupt, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// An exception that code of the caller raised, such as `read` of a file object: it is raised again
/// as it was.
pub(crate) struct Raised(pub(crate) PyErr);

impl fmt::Debug for Raised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Raised")
    }
}

impl fmt::Display for Raised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl std::error::Error for Raised {}

/// An exception of the caller's code as an error of the library.
pub(crate) fn raised(what: &str, error: PyErr) -> Error {
    Error::io(what, std::io::Error::other(Raised(error)))
}

/// The exception for an error of the library.
pub(crate) fn to_py(py: Python<'_>, error: &Error) -> PyErr {
    if let Some(original) = original(py, error) {
        return original;
    }
    // A stream below another library may have ended by a signal, which that library did not see.
    if let Err(signal) = py.check_signals() {
        return signal;
    }
    match build(py, error) {
        Ok(exception) => exception,
        Err(signal) if signal.is_instance_of::<PyKeyboardInterrupt>(py) => signal,
        Err(_) => PyRuntimeError::new_err(error.to_string()),
    }
}

/// The exception that caused the error, if code of the caller raised one.
fn original(py: Python<'_>, error: &Error) -> Option<PyErr> {
    let io = error.get_ref()?.downcast_ref::<std::io::Error>()?;
    let raised = io.get_ref()?.downcast_ref::<Raised>()?;
    Some(raised.0.clone_ref(py))
}

fn build(py: Python<'_>, error: &Error) -> PyResult<PyErr> {
    let at = error.at();
    let (kind, detail) = kind(error.kind());
    let known = PyDict::new(py);
    known.set_item("kind", kind)?;
    known.set_item("detail", detail)?;
    known.set_item("message", error.message())?;
    known.set_item("file", at.file.as_deref())?;
    known.set_item("stream", at.stream)?;
    known.set_item("row_group", at.row_group)?;
    known.set_item("column", at.column.as_deref())?;
    known.set_item("page", at.page)?;
    known.set_item("is_dictionary_page", at.is_dictionary_page)?;
    known.set_item("offset", at.offset)?;
    let io = error.get_ref().and_then(|e| e.downcast_ref::<std::io::Error>());
    known.set_item("errno", io.and_then(std::io::Error::raw_os_error))?;
    let make = py.import("marq._errors")?.getattr("_make")?;
    Ok(PyErr::from_value(make.call1((error.to_string(), known))?))
}

/// The name of a kind, and its detail: the section of the specification, the limit, the feature.
fn kind(kind: ErrorKind) -> (&'static str, Option<String>) {
    match kind {
        ErrorKind::Io => ("io", None),
        ErrorKind::Malformed(spec) => ("malformed", Some(spec.to_string())),
        ErrorKind::Unsupported(what) => ("unsupported", Some(what.to_owned())),
        ErrorKind::Limit(which) => ("limit", Some(format!("{which:?}").to_lowercase())),
        ErrorKind::FeatureDisabled(name) => ("feature", Some(name.to_owned())),
        ErrorKind::Crypto => ("crypto", None),
        ErrorKind::Arrow => ("arrow", None),
        ErrorKind::Usage => ("usage", None),
        ErrorKind::Internal => ("internal", None),
        ErrorKind::Cancelled => ("cancelled", None),
        _ => ("other", None),
    }
}

/// Turns results of the library and of Arrow into those of Python.
pub(crate) trait OrRaise<T> {
    /// # Errors
    /// The exception for the error.
    fn or_raise(self, py: Python<'_>) -> PyResult<T>;
}

impl<T> OrRaise<T> for Result<T, Error> {
    fn or_raise(self, py: Python<'_>) -> PyResult<T> {
        self.map_err(|e| to_py(py, &e))
    }
}

impl<T> OrRaise<T> for Result<T, ArrowError> {
    fn or_raise(self, py: Python<'_>) -> PyResult<T> {
        self.map_err(|e| to_py(py, &Error::from(e)))
    }
}

/// A `UsageError`.
pub(crate) fn usage(py: Python<'_>, text: impl fmt::Display) -> PyErr {
    to_py(py, &Error::usage(text))
}
