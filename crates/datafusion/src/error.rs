//! Errors of this crate as those of DataFusion.

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;

use arrow_schema::ArrowError;
use datafusion_common::DataFusionError;

use crate::{Error, ErrorKind};

impl From<Error> for DataFusionError {
    /// An error of DataFusion that went through a read, such as that of an expression, comes out as
    /// it was.
    fn from(error: Error) -> Self {
        match error.get_ref().and_then(|cause| cause.downcast_ref::<OfDataFusion>()) {
            Some(OfDataFusion(cause)) => Self::Shared(Arc::clone(cause)),
            None => Self::External(Box::new(error)),
        }
    }
}

/// An error of what the user has set: settings that are wrong are of the configuration.
#[cold]
pub(super) fn of_settings(error: Error) -> DataFusionError {
    match error.kind() {
        ErrorKind::Usage | ErrorKind::FeatureDisabled(_) => {
            DataFusionError::Configuration(error.to_string())
        }
        _ => error.into(),
    }
}

/// An error of DataFusion on its way through a read.
#[derive(Debug)]
struct OfDataFusion(Arc<DataFusionError>);

impl fmt::Display for OfDataFusion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl StdError for OfDataFusion {}

/// An error of DataFusion as one of this crate.
#[cold]
pub(super) fn of_datafusion(error: DataFusionError) -> Error {
    ArrowError::ExternalError(Box::new(OfDataFusion(Arc::new(error)))).into()
}
