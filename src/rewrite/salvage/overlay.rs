//! [`WithFooter`]: the bytes of a file, and a footer after them that describes what is in them.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use crate::error::Result;
use crate::format::FileMetaData;
use crate::io::{Source, read_exactly};
use crate::read::Latency;
use crate::write::footer;

/// A source that ends with another footer.
pub(super) struct WithFooter {
    inner: Arc<dyn Source>,
    inner_len: u64,
    end: Bytes,
}

impl WithFooter {
    /// # Errors
    /// `Usage` if the footer is too large for the format.
    pub(super) fn new(
        inner: Arc<dyn Source>,
        inner_len: u64,
        metadata: &FileMetaData,
    ) -> Result<Self> {
        let mut end = Vec::new();
        footer(metadata.clone(), &[], None, &mut end)?;
        Ok(Self::with_tail(inner, inner_len, end.into()))
    }

    /// A source that ends with these bytes: a footer, the length of it, and the magic number.
    pub(super) fn with_tail(inner: Arc<dyn Source>, inner_len: u64, end: Bytes) -> Self {
        Self { inner, inner_len, end }
    }
}

impl Source for WithFooter {
    fn len(&self) -> Result<u64> {
        Ok(self.inner_len.saturating_add(self.end.len() as u64))
    }

    fn read(&self, range: Range<u64>) -> Result<Bytes> {
        if range.end <= self.inner_len {
            return read_exactly(&*self.inner, range);
        }
        let in_end = |offset: u64| offset.saturating_sub(self.inner_len);
        let end = read_exactly(&self.end, in_end(range.start)..in_end(range.end))?;
        if range.start >= self.inner_len {
            return Ok(end);
        }
        let mut bytes = read_exactly(&*self.inner, range.start..self.inner_len)?.to_vec();
        bytes.extend_from_slice(&end);
        Ok(bytes.into())
    }

    fn in_memory(&self) -> bool {
        self.inner.in_memory()
    }

    fn is_local(&self) -> bool {
        self.inner.is_local()
    }

    fn latency(&self) -> Latency {
        self.inner.latency()
    }
}
