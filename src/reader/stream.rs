//! [`AsyncReader`]: a file whose bytes come asynchronously, and the stream of its batches.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use futures_core::Stream;
use futures_util::TryStreamExt;

use super::batch_output::BatchOutput;
use super::file::{PARALLEL_FROM, Reader};
use super::leaf_entries::LeafBatches;
use crate::crypt::Decryption;
use crate::error::Result;
use crate::io::{
    AsyncSource, Explanation, Pool, Streamed, load_indexes_async, open_footer_async,
    read_range_async,
};
use crate::limits::Limits;
use crate::read::{LeafEntries, Metadata, OnDamage, PageCache, Plan, Step};
use crate::rows;

/// An open Parquet file whose bytes come from an [`AsyncSource`], such as an object store.
///
/// It has the options of every [`Reader`], and [`stream`](Reader::stream)s the batches, under any
/// runtime. Row groups are fetched ahead while the stream is polled, as many as a share of the
/// [memory](Reader::memory) holds. They are decoded on the [threads](Reader::threads) of a reader,
/// not on those of the runtime; with one thread, where the stream is polled, so that the caller can
/// choose the executor.
pub type AsyncReader = Reader<Arc<dyn AsyncSource>>;

impl AsyncReader {
    /// Opens a file, usually with one request.
    ///
    /// # Errors
    /// `Io` if it cannot be read, `Malformed` if it is not a Parquet file.
    pub async fn open_async(source: impl AsyncSource + 'static) -> Result<Self> {
        Self::open_async_within(source, Limits::default()).await
    }

    /// Like [`Reader::open_async`], with limits of what the file may make a read allocate.
    ///
    /// # Errors
    /// As [`Reader::open_async`], and `Limit` if the footer exceeds a limit.
    pub async fn open_async_within(
        source: impl AsyncSource + 'static,
        limits: Limits,
    ) -> Result<Self> {
        Self::open_source_async(source, limits, None, None).await
    }

    /// Like [`Reader::open_async_within`], for an encrypted file. An asynchronous retriever is
    /// asked for its keys now, each once and side by side.
    ///
    /// # Errors
    /// As [`Reader::open_async_within`]; `Crypto` if the key of the footer is missing or wrong, the
    /// footer was changed, or nothing is encrypted (see [`Decryption::with_plaintext_files`]).
    pub async fn open_async_encrypted(
        source: impl AsyncSource + 'static,
        limits: Limits,
        keys: &Decryption,
    ) -> Result<Self> {
        Self::open_source_async(source, limits, Some(keys), None).await
    }

    pub(super) async fn open_source_async(
        source: impl AsyncSource + 'static,
        limits: Limits,
        keys: Option<&Decryption>,
        guess: Option<u64>,
    ) -> Result<Self> {
        let source: Arc<dyn AsyncSource> = Arc::new(source);
        let (footer, end) = open_footer_async(&source, &limits, keys, guess).await?;
        let mut reader = Self::from_metadata(source, Metadata::new(footer, end.file_len));
        reader.options.limits = limits;
        reader.end = Some(end);
        Ok(reader)
    }

    /// Opens a file with known metadata: nothing is read.
    ///
    /// The caller must know whether they belong to this version of the file, as for
    /// [`Reader::with_metadata`]; the length of the file is not requested.
    pub fn open_async_with(source: impl AsyncSource + 'static, metadata: Metadata) -> Self {
        Self::from_metadata(Arc::new(source), metadata)
    }

    /// Starts the read, and streams its batches in order.
    ///
    /// # Errors
    /// As [`Reader::plan`]. Faults of the data come with the batches.
    pub fn stream(&self) -> Result<BatchStream> {
        self.stream_of(self.plan()?)
    }

    /// Like [`Reader::stream`], for a plan that was made before.
    pub(super) fn stream_of(&self, plan: Plan) -> Result<BatchStream> {
        if self.options.on_damage != OnDamage::Fail {
            return Err(self.refuses_damage("asynchronous reads"));
        }
        let pool = self.pool_beside(&plan)?;
        let (source, end, progress) = (self.source.clone(), self.end.clone(), &self.progress);
        let metadata = self.metadata.clone();
        let output = BatchOutput::new(&plan);
        let driver = Streamed::new(source, end, metadata, plan, pool, progress.clone());
        Ok(BatchStream { driver: Some(driver), output })
    }

    /// The threads for a plan: none but the one that polls where it is done at once, or where the
    /// caller wants it so.
    fn pool_beside(&self, plan: &Plan) -> Result<Option<Pool>> {
        if plan.leaves().is_empty() {
            return Ok(None);
        }
        let is_large = self.file_len() >= PARALLEL_FROM;
        self.threads.pool(|| (is_large && cfg!(feature = "parallel")).then_some(Pool::Global))
    }

    /// Counts the rows that [`Reader::stream`] would return, like [`Reader::count`].
    ///
    /// # Errors
    /// As [`Reader::stream`] and its batches.
    pub async fn count(&self) -> Result<u64> {
        if self.options.filter.is_none() {
            return self.rows();
        }
        let mut batches = self.counting().stream()?;
        let mut rows = 0u64;
        while let Some(batch) = batches.try_next().await? {
            rows = rows.saturating_add(batch.num_rows() as u64);
        }
        Ok(rows)
    }

    /// Reads rows by their numbers in the file, as [`Reader::take`].
    ///
    /// # Errors
    /// `Usage` if the file has no such row; else as [`Reader::stream`] and its batches.
    pub async fn take(&self, rows: &[u64]) -> Result<RecordBatch> {
        let (reader, places) = self.taking(rows)?;
        let batches = reader.stream()?;
        let schema = batches.schema();
        let found: Vec<RecordBatch> = batches.try_collect().await?;
        rows::take(&schema, &found, &places).map_err(|e| self.name(e))
    }

    /// Explains what the read will do, like [`Reader::explain`]. Requests are counted row group by
    /// row group, and may be fewer.
    ///
    /// # Errors
    /// As [`Reader::plan`], and any fault of the metadata of the row groups.
    pub async fn explain(&self) -> Result<Explanation> {
        let (source, metadata) = (self.source.clone(), self.metadata.clone());
        // Without what this reader has read before, so that the result is always the same.
        let plan = self.plan()?.with_page_cache(&PageCache::default());
        let explained = Explanation::new_async(source, metadata, &plan).await;
        explained.map_err(|e| self.name(e))
    }

    /// Loads the page indexes of the wanted columns in the wanted row groups, as
    /// [`Reader::load_page_indexes`].
    ///
    /// # Errors
    /// As [`Reader::load_page_indexes`].
    pub async fn load_page_indexes(&mut self) -> Result<()> {
        let (row_groups, leaves) = self.index_wants()?;
        let (leaves, limits) = (leaves.iter().copied(), &self.options.limits);
        let (end, metadata) = (self.end.clone(), &mut self.metadata);
        let loaded =
            load_indexes_async(&self.source, end, metadata, row_groups, leaves, limits).await;
        loaded.map_err(|e| self.name(e))
    }
}

/// The batches of an asynchronous read, in order. After an error there are no more.
///
/// Dropping it ends the requests that are under way; a thread of the pool stops after the column
/// that it decodes.
pub struct BatchStream {
    pub(super) driver: Option<Streamed>,
    output: BatchOutput,
}

impl fmt::Debug for BatchStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.output.fmt_as("BatchStream", f)
    }
}

impl BatchStream {
    /// The schema of the batches.
    pub fn schema(&self) -> SchemaRef {
        self.output.schema().clone()
    }

    fn poll_given(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<RecordBatch>>> {
        loop {
            if let Some(next) = self.output.end() {
                return Poll::Ready(next);
            }
            let next = match &mut self.driver {
                Some(driver) => ready!(Pin::new(driver).poll_next(cx)).transpose(),
                None => Ok(None),
            };
            if let Some(given) = self.output.take(next) {
                return Poll::Ready(given);
            }
        }
    }
}

impl Stream for BatchStream {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let next = ready!(self.poll_given(cx));
        if self.output.is_done() {
            self.driver = None;
        }
        Poll::Ready(next.transpose())
    }
}

impl LeafBatches<'_, Arc<dyn AsyncSource>> {
    /// The next rows; `None` after the last.
    ///
    /// # Errors
    /// As the items of a [`Reader`] whose bytes do not come asynchronously: `Malformed` if the
    /// chunk has fewer or more rows than its row group, or a page breaks a rule; `Limit(Memory)`;
    /// `Io`.
    pub async fn next_batch(&mut self) -> Result<Option<LeafEntries>> {
        if self.is_done {
            return Ok(None);
        }
        let next = self.fetch_next().await;
        self.ended(next).transpose()
    }

    async fn fetch_next(&mut self) -> Result<Option<LeafEntries>> {
        let mut given = None;
        loop {
            given = match self.step(given)? {
                Step::Done(entries) => return Ok(entries),
                Step::NeedsMore(range) => Some(
                    read_range_async(&self.reader.source, self.reader.end.clone(), range).await?,
                ),
            };
        }
    }
}
