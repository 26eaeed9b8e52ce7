//! [`SideFooter`]: a footer of the row groups so far, in a file beside the one that is written.

use std::path::PathBuf;

use bytes::Bytes;

use crate::error::Result;
use crate::io::{PathSink, Sink};

/// Where footers of unfinished files go, and how often.
///
/// The file is removed when it is dropped: only a process that is killed leaves it.
pub(super) struct SideFooter {
    path: PathBuf,
    /// Row groups between two footers.
    every: usize,
    /// Row groups that the last footer has.
    written: usize,
}

impl SideFooter {
    pub(super) fn new(path: PathBuf, every: usize) -> Self {
        Self { path, every: every.max(1), written: 0 }
    }

    /// Whether a footer is due after this number of row groups.
    pub(super) fn is_due(&self, row_groups: usize) -> bool {
        row_groups >= self.written.saturating_add(self.every)
    }

    /// Replaces the file: there is the last footer or this one, and never a part.
    ///
    /// # Errors
    /// `Io`.
    pub(super) fn write(&mut self, footer: Bytes, row_groups: usize) -> Result<()> {
        let mut sink = PathSink::create(&self.path)?;
        sink.write(footer)?;
        sink.finish()?;
        self.written = row_groups;
        Ok(())
    }

    /// Removes the file when the one that it tells of is whole, also that of a process which was
    /// killed before.
    pub(super) fn finish(mut self) {
        self.written = self.written.max(1);
    }
}

impl Drop for SideFooter {
    fn drop(&mut self) {
        if self.written > 0 {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}
