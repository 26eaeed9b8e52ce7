//! Errors of this crate as those of DataFusion.

use datafusion_common::DataFusionError;

use crate::error::Error;

impl From<Error> for DataFusionError {
    fn from(error: Error) -> Self {
        Self::External(Box::new(error))
    }
}
