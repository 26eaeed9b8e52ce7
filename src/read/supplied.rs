//! Bytes that a stage wants and is given.

use std::ops::Range;

use bytes::Bytes;

use super::retry::Failed;
use crate::error::{Error, Result};

/// The result of a step of a stage: it is done, or continues once it is given more bytes.
#[derive(Debug)]
pub enum Step<T, More = Range<u64>> {
    /// The stage is done.
    Done(T),
    /// More bytes of the file are needed: these; or those that the stage in here wants.
    NeedsMore(More),
}

/// Why a column stops before its end.
#[derive(Debug)]
pub(super) enum Stop {
    Failed(Error),
    /// More bytes of the file are needed: these. Nothing is lost: the same call, once they are
    /// supplied, continues.
    NeedsMore(Range<u64>),
}

impl<T> Step<T> {
    /// The result of a step that is done.
    ///
    /// # Errors
    /// `Internal` if more bytes are needed: for a stage that was given all of them at the start.
    pub(super) fn done(self) -> Result<T> {
        match self {
            Self::Done(done) => Ok(done),
            Self::NeedsMore(range) => Err(Error::internal(format_args!(
                "the bytes {range:?} of the file are needed, and no one gives them"
            ))),
        }
    }

    /// The step of a column that ended, or stopped.
    pub(super) fn from_result(ended: Result<T, Stop>) -> Result<Self> {
        match ended {
            Ok(done) => Ok(Self::Done(done)),
            Err(Stop::NeedsMore(range)) => Ok(Self::NeedsMore(range)),
            Err(Stop::Failed(error)) => Err(error),
        }
    }
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl Stop {
    /// Adds details to the error, if there is one.
    pub(super) fn map(self, map: impl FnOnce(Error) -> Error) -> Self {
        match self {
            Self::NeedsMore(range) => Self::NeedsMore(range),
            Self::Failed(error) => Self::Failed(map(error)),
        }
    }
}

/// Drives a stage to its end; each step is given the bytes that `read` returned for the one before.
///
/// # Errors
/// Those of the steps; those of `read`, after which nothing is tried again.
pub(super) fn drive<T>(
    mut read: impl FnMut(Range<u64>) -> Result<Bytes>,
    mut step: impl FnMut(Option<Bytes>) -> Result<Step<T>, Failed>,
) -> Result<T, Failed> {
    let mut given = None;
    loop {
        given = match step(given)? {
            Step::Done(done) => return Ok(done),
            Step::NeedsMore(range) => {
                let start = range.start;
                Some(read(range).map_err(|e| Failed::at_last(e.at_offset(start)))?)
            }
        };
    }
}

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
