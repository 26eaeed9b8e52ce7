//! [`Verdict`]: whether a reader reads a column.

use std::borrow::Cow;

/// Whether a reader reads a column.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Verdict {
    /// The reader returns the values of the file, if perhaps in a type of its own.
    Reads,
    /// The reader returns something else than the file means: this.
    ReadsAs(Cow<'static, str>),
    /// The reader returns the values, if it is given this.
    ReadsIf(Cow<'static, str>),
    /// The reader does not read it, for this reason.
    Refuses(Cow<'static, str>),
}

impl Verdict {
    /// Whether the reader reads the column, with what it is to be given.
    pub fn is_read(&self) -> bool {
        !matches!(self, Self::Refuses(_))
    }

    /// The worse of two verdicts, the first of equals.
    pub(super) fn or(self, other: Self) -> Self {
        if other.rank() > self.rank() { other } else { self }
    }

    fn rank(&self) -> u8 {
        match self {
            Self::Reads => 0,
            Self::ReadsIf(_) => 1,
            Self::ReadsAs(_) => 2,
            Self::Refuses(_) => 3,
        }
    }
}
