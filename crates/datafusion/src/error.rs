//! Converts errors of marquetry to those of DataFusion, and back.

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;

use arrow_schema::ArrowError;
use datafusion_common::DataFusionError;
use marquetry::{Error, ErrorKind};

/// An error of marquetry as one of DataFusion. An error of DataFusion that went through a read,
/// such as that of an expression, comes out as it was.
#[cold]
pub(crate) fn to_datafusion(error: Error) -> DataFusionError {
    match error.get_ref().and_then(|cause| cause.downcast_ref::<Passing>()) {
        Some(Passing(cause)) => DataFusionError::Shared(Arc::clone(cause)),
        None => DataFusionError::External(Box::new(error)),
    }
}

/// An error of what the user has set: settings that are wrong are of the configuration.
#[cold]
pub(crate) fn settings_error(error: Error) -> DataFusionError {
    match error.kind() {
        ErrorKind::Usage | ErrorKind::FeatureDisabled(_) => {
            DataFusionError::Configuration(error.to_string())
        }
        _ => to_datafusion(error),
    }
}

/// An error of DataFusion on its way through a read.
#[derive(Debug)]
struct Passing(Arc<DataFusionError>);

impl fmt::Display for Passing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl StdError for Passing {}

/// An error of DataFusion as one of marquetry.
#[cold]
pub(crate) fn to_marquetry(error: DataFusionError) -> Error {
    ArrowError::ExternalError(Box::new(Passing(Arc::new(error)))).into()
}
