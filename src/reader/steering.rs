//! The methods with which an engine opens files and controls the streams of their batches; see
//! [`crate::engine`].

use std::task::Context;

use super::stream::{AsyncReader, BatchStream};
use crate::error::Result;
use crate::io::{AsyncSource, FileEnd, Streamed};
use crate::limits::Limits;
use crate::read::{Metadata, Plan};

/// The metadata of a file, and its end, if it was read with them: the whole file, if it is small.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct KnownFile {
    /// The footer, and the page indexes that were loaded.
    pub metadata: Metadata,
    /// The last bytes of the file.
    pub end: Option<FileEnd>,
}

impl KnownFile {
    /// Reads the footer of a file, usually with one request: for the last `size_hint` bytes, or,
    /// without a hint, for as many as a usual footer has.
    ///
    /// # Errors
    /// As [`AsyncReader::open_async_within`].
    pub async fn fetch(
        source: impl AsyncSource + 'static,
        limits: Limits,
        size_hint: Option<u64>,
    ) -> Result<Self> {
        let reader = AsyncReader::open_source_async(source, limits, None, size_hint).await?;
        Ok(Self { metadata: reader.metadata, end: reader.end })
    }
}

impl From<Metadata> for KnownFile {
    fn from(metadata: Metadata) -> Self {
        Self { metadata, end: None }
    }
}

impl AsyncReader {
    /// Like [`AsyncReader::open_async_with`]; the end of the file, if it is known, is not read
    /// again.
    pub fn open_known(source: impl AsyncSource + 'static, known: KnownFile) -> Self {
        Self { end: known.end, ..Self::open_async_with(source, known.metadata) }
    }

    /// Like [`AsyncReader::stream`], for a plan of this reader that was made before.
    ///
    /// # Errors
    /// As [`AsyncReader::stream`].
    pub fn stream_plan(&self, plan: Plan) -> Result<BatchStream> {
        self.stream_of(plan)
    }
}

/// Steering a read. After its end, there is nothing to steer: it has all that it wants, and lacks
/// nothing.
impl BatchStream {
    /// Fetches row groups before their turn, and decodes no batches of them. Indexes are read,
    /// dictionaries that may prune row groups are decoded, and, from a far source, the columns of a
    /// filter that is evaluated first. The task of `cx` is woken when there is more to do.
    pub fn fetch(&mut self, cx: &mut Context<'_>) {
        if let Some(driver) = &mut self.driver {
            driver.fetch(cx);
        }
    }

    /// Whether all that the read wants was fetched.
    pub fn is_fetched(&self) -> bool {
        self.driver.as_ref().is_none_or(Streamed::is_fetched)
    }

    /// Fetches more row groups at a time from now on, as long as at most `bytes` are held, because
    /// waiting for each small one would take longer than decoding it.
    pub fn fetch_small(&mut self, bytes: u64) {
        if let Some(driver) = &mut self.driver {
            driver.scan.open_small(bytes);
        }
    }

    /// Fetches one row group at a time from now on.
    pub fn hold_back(&mut self) {
        if let Some(driver) = &mut self.driver {
            driver.scan.hold_back();
        }
    }

    /// Keeps the bytes that are fetched from now on, for a read that may [take this one's
    /// place](Self::take_over); or keeps no more, and frees those that were kept.
    pub fn keep_fetched(&self, keep: bool) {
        if let Some(driver) = &self.driver {
            driver.keep_fetched(keep);
        }
    }

    /// Takes the place of a read of its first row group. What that read has
    /// [kept](Self::keep_fetched) is not fetched again if there is memory for it until the row
    /// group is open.
    pub fn take_over(&mut self, other: Self) {
        if let (Some(driver), Some(other)) = (&mut self.driver, other.driver) {
            driver.take_over(other);
        }
    }

    /// Tells whether another read holds memory of the same [`Budget`](crate::engine::Budget). If
    /// the budget does not suffice for this one, it is pending and
    /// [`lacks_memory`](Self::lacks_memory) until the other has returned its memory, and this
    /// method is called again.
    pub fn share_memory(&mut self, with_other: bool) {
        if let Some(driver) = &mut self.driver {
            driver.share_memory(with_other);
        }
    }

    /// Whether another read should return the memory that it holds of the same budget.
    pub fn lacks_memory(&self) -> bool {
        self.driver.as_ref().is_some_and(Streamed::lacks_memory)
    }
}
