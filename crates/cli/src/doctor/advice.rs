//! [`Advice`]: something that could be better, and what it brings.

use serde::Serialize;

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Weight {
    Note,
    Warning,
    Error,
}

impl Weight {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// A finding. What is not measured is not stated.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Advice {
    pub(crate) severity: Weight,
    pub(crate) code: &'static str,
    pub(crate) column: Option<String>,
    pub(crate) message: String,
    /// Bytes that it adds to the file; less than 0 if it saves some.
    pub(crate) bytes: Option<i64>,
    /// The same as a share of the bytes that it is about.
    pub(crate) share: Option<f64>,
    /// The change of the time of writes and of reads, as a share.
    pub(crate) write_time: Option<f64>,
    pub(crate) read_time: Option<f64>,
    pub(crate) command: String,
}

impl Advice {
    pub(crate) fn new(
        severity: Weight,
        code: &'static str,
        message: impl Into<String>,
        command: String,
    ) -> Self {
        let (column, bytes, share, write_time, read_time) = Default::default();
        let message = message.into();
        Self { severity, code, column, message, bytes, share, write_time, read_time, command }
    }

    pub(crate) fn of_column(mut self, column: &str) -> Self {
        self.column = Some(column.to_owned());
        self
    }

    /// States what it brings: bytes before and after.
    pub(crate) fn priced(mut self, before: u64, after: u64) -> Self {
        let signed = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        self.bytes = Some(signed(after).saturating_sub(signed(before)));
        self.share = (before > 0).then(|| change(before, after));
        self
    }

    /// The change of bytes, in a few characters.
    pub(crate) fn bytes_changed(&self) -> String {
        match (self.share, self.bytes) {
            (Some(share), _) => percent(Some(share)),
            (None, Some(bytes)) => format!("{bytes:+}"),
            (None, None) => String::new(),
        }
    }
}

/// A change in per cent.
pub(crate) fn percent(share: Option<f64>) -> String {
    share.map_or_else(String::new, |share| format!("{:+.0} %", share * 100.0))
}

/// The change from one number to another, as a share of the first.
#[expect(clippy::cast_precision_loss, reason = "a share")]
pub(crate) fn change(before: u64, after: u64) -> f64 {
    after as f64 / before.max(1) as f64 - 1.0
}
