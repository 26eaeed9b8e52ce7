//! Whether a stage is given the bytes that it wants.

use std::ops::Range;

use bytes::Bytes;

use crate::error::{Error, Result};

/// Checks that there are as many byte strings as ranges, and each is as long as its range.
///
/// # Errors
/// `Usage`, which names `stage`.
pub(super) fn check_ranges(stage: &str, needs: &[Range<u64>], given: &[Bytes]) -> Result<()> {
    same_number(stage, needs.len(), given.len())?;
    for (need, bytes) in needs.iter().zip(given) {
        let wanted = need.end - need.start;
        if bytes.len() as u64 != wanted {
            return Err(Error::usage(format_args!(
                "{stage} was given {} bytes for a range of {wanted}",
                bytes.len()
            )));
        }
    }
    Ok(())
}

/// Checks that there are as many byte strings as ranges.
///
/// # Errors
/// As [`check_ranges`].
pub(super) fn same_number(stage: &str, wanted: usize, given: usize) -> Result<()> {
    if wanted == given {
        return Ok(());
    }
    Err(Error::usage(format_args!("{stage} wants {wanted} ranges, and was given {given}")))
}
