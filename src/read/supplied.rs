//! Bytes that stages want and are given.

use std::ops::Range;

use bytes::Bytes;

use crate::error::{Error, Result};

/// What comes of a step of a stage that is given its bytes while it works. Each step takes the
/// bytes that the one before asked for.
#[derive(Debug)]
pub(crate) enum Step<T> {
    /// The stage is done.
    Done(T),
    /// More bytes of the file are needed. The same step, given them, goes on.
    NeedsMore(Range<u64>),
}

impl<T> Step<T> {
    /// What is done.
    ///
    /// # Errors
    /// `Usage` if more bytes are needed: for a stage that was given all of them at the start.
    pub(super) fn done(self) -> Result<T> {
        match self {
            Self::Done(done) => Ok(done),
            Self::NeedsMore(range) => Err(Error::usage(format_args!(
                "the bytes {range:?} of the file are needed, and no one gives them"
            ))),
        }
    }

    /// The step of a column that ended, or stopped.
    pub(super) fn of(ended: Result<T, Stop>) -> Result<Self> {
        match ended {
            Ok(done) => Ok(Self::Done(done)),
            Err(Stop::NeedsMore(range)) => Ok(Self::NeedsMore(range)),
            Err(Stop::Failed(e)) => Err(e),
        }
    }
}

/// Why a column stops before its end.
#[derive(Debug)]
pub(super) enum Stop {
    /// More bytes of the file are needed. Nothing is lost: the same call, once they are supplied,
    /// goes on.
    NeedsMore(Range<u64>),
    /// Something is wrong.
    Failed(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl Stop {
    /// Says more of what is wrong, if something is.
    pub(super) fn map(self, map: impl FnOnce(Error) -> Error) -> Self {
        match self {
            Self::NeedsMore(range) => Self::NeedsMore(range),
            Self::Failed(error) => Self::Failed(map(error)),
        }
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
