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
    if let Some(Passing(cause)) = error.get_ref().and_then(|cause| cause.downcast_ref()) {
        return DataFusionError::Shared(Arc::clone(cause));
    }
    match error.kind() {
        ErrorKind::Internal => DataFusionError::Internal(error.to_string()),
        ErrorKind::Cancelled => DataFusionError::Execution(error.to_string()),
        _ => DataFusionError::External(Box::new(error)),
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

/// An error of DataFusion that passes through a read.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variant_of_datafusion_follows_the_kind() {
        use DataFusionError as D;
        let internal = to_datafusion(Error::internal("levels and values disagree"));
        assert!(matches!(internal, D::Internal(_)), "{internal}");
        let cancelled = to_datafusion(Error::cancelled("the read"));
        assert!(matches!(cancelled, D::Execution(_)), "{cancelled}");
        let usage = to_datafusion(Error::usage("no such column"));
        assert!(matches!(&usage, D::External(e) if e.is::<Error>()), "{usage}");
        let passing = to_datafusion(to_marquetry(D::Plan("none".to_owned())));
        assert!(matches!(&passing, D::Shared(e) if matches!(**e, D::Plan(_))), "{passing}");
    }
}
