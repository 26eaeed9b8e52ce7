//! [`Failed`]: why rows were not decoded, and whether they can be decoded in another way.
//!
//! Only this module sets [`Retry`], which decides how a read goes on. An error of the caller's own
//! code, such as a function of a predicate or a source, never sets it, whatever its kind.

use crate::error::{Error, ErrorKind, LimitKind, Spec};

/// Another way to decode rows that could not be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Retry {
    /// Without the page index, because pages do not hold the rows that it states.
    WithoutIndex,
    /// With less memory at a time, because the budget has no room.
    WithLessMemory,
    /// In batches of fewer rows, because an array of one would be too long.
    WithFewerRows,
}

/// An error, and whether the rows can be decoded in another way.
#[derive(Debug)]
pub(crate) struct Failed {
    pub(crate) error: Error,
    pub(crate) retry: Option<Retry>,
}

impl Failed {
    /// An error after which nothing is tried again.
    pub(crate) fn at_last(error: Error) -> Self {
        Self { error, retry: None }
    }

    /// Whether fewer rows at a time may help.
    pub(crate) fn is_too_large(&self) -> bool {
        matches!(self.retry, Some(Retry::WithLessMemory | Retry::WithFewerRows))
    }

    /// Adds details to the error.
    pub(crate) fn map(self, map: impl FnOnce(Error) -> Error) -> Self {
        Self { error: map(self.error), ..self }
    }
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        let retry = match error.kind() {
            _ if error.is_of_caller() => None,
            ErrorKind::Malformed(Spec::PageIndex) => Some(Retry::WithoutIndex),
            ErrorKind::Limit(LimitKind::Memory) => Some(Retry::WithLessMemory),
            ErrorKind::Limit(LimitKind::ArrayLength) => Some(Retry::WithFewerRows),
            _ => None,
        };
        Self { error, retry }
    }
}

impl From<Failed> for Error {
    fn from(failed: Failed) -> Self {
        failed.error
    }
}
