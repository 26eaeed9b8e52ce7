//! Makes the error of a value that contradicts the specification.

use std::fmt::Display;

use crate::error::{Error, Spec};

#[cold]
pub(super) fn malformed(message: impl Display) -> Error {
    Error::malformed(Spec::Variant, message)
}
