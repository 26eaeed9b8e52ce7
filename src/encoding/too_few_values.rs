//! Makes the error of a decoder that is asked for more values than its page has.

use crate::error::{Error, Spec};

/// A page of `spec` that has `left` values more, where `wanted` are wanted.
#[cold]
pub(super) fn too_few_values(spec: Spec, wanted: usize, left: usize) -> Error {
    Error::mismatch(spec, "values left in the page", format_args!("at least {wanted}"), left)
}
