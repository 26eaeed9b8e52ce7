//! Errors of DataFusion as exceptions of Python.

use std::io;

use datafusion_common::DataFusionError;
use marquetry::ErrorKind;
use pyo3::exceptions::{
    PyFileNotFoundError, PyNotImplementedError, PyOSError, PyRuntimeError, PyValueError,
};
use pyo3::prelude::*;

/// The exception for an error. What a file breaks, and what does not fit it, is a `ValueError`.
pub(crate) fn to_py(error: &DataFusionError) -> PyErr {
    let text = error.to_string();
    match kind(error.find_root()) {
        Kind::NotFound => PyFileNotFoundError::new_err(text),
        Kind::Io => PyOSError::new_err(text),
        Kind::Unsupported => PyNotImplementedError::new_err(text),
        Kind::Value => PyValueError::new_err(text),
        Kind::Other => PyRuntimeError::new_err(text),
    }
}

enum Kind {
    NotFound,
    Io,
    Unsupported,
    Value,
    Other,
}

fn kind(error: &DataFusionError) -> Kind {
    use DataFusionError as D;
    match error {
        D::ObjectStore(error) if error.to_string().contains("not found") => Kind::NotFound,
        D::ObjectStore(_) => Kind::Io,
        D::IoError(error) => of_io(error),
        D::NotImplemented(_) => Kind::Unsupported,
        D::Plan(_) | D::Configuration(_) | D::SchemaError(..) | D::ArrowError(..) => Kind::Value,
        D::External(error) => match error.downcast_ref::<marquetry::Error>() {
            Some(error) => of_marquetry(error),
            None => Kind::Other,
        },
        _ => Kind::Other,
    }
}

fn of_marquetry(error: &marquetry::Error) -> Kind {
    match error.kind() {
        ErrorKind::Io => error.get_ref().and_then(|e| e.downcast_ref()).map_or(Kind::Io, of_io),
        ErrorKind::Unsupported(_) | ErrorKind::FeatureDisabled(_) => Kind::Unsupported,
        ErrorKind::Malformed(_) | ErrorKind::Usage | ErrorKind::Arrow | ErrorKind::Limit(_) => {
            Kind::Value
        }
        _ => Kind::Other,
    }
}

fn of_io(error: &io::Error) -> Kind {
    match error.kind() {
        io::ErrorKind::NotFound => Kind::NotFound,
        _ => Kind::Io,
    }
}
