//! [`CountingSink`]: where the bytes of the new file go, and how many went there; [`Spliced`]: that
//! file.

use crate::error::{Error, Result};
use crate::io::Sink;

/// A sink that counts.
pub(super) struct CountingSink<S> {
    sink: S,
    written: u64,
}

impl<S: Sink> CountingSink<S> {
    pub(super) fn new(sink: S) -> Self {
        Self { sink, written: 0 }
    }

    /// Counts bytes that the sink has already.
    pub(super) fn has(&mut self, bytes: u64) {
        self.written += bytes;
    }

    pub(super) fn send(&mut self, bytes: bytes::Bytes) -> Result<()> {
        self.written += bytes.len() as u64;
        self.sink.write(bytes)
    }

    pub(super) fn finish(&mut self) -> Result<()> {
        self.sink.finish()
    }

    /// Bytes so far.
    pub(super) fn written(&self) -> u64 {
        self.written
    }

    /// Where the next byte goes.
    pub(super) fn here(&self) -> Result<i64> {
        i64::try_from(self.written).map_err(|_| Error::usage("a file beyond 2^63 bytes"))
    }
}

/// The file that was written.
pub(super) struct Spliced {
    pub(super) rows: u64,
    pub(super) row_groups: usize,
    /// Pages that were looked at.
    pub(super) pages: u64,
    pub(super) bytes: u64,
}
