//! [`DatasetStream`], and the division of asynchronous reads into streams.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use futures_core::Stream;
use futures_util::TryStreamExt;

use super::dataset::{Chain, Dataset};
use super::points::WantedRows;
use super::stream::{AsyncReader, BatchStream};
use crate::error::Result;
use crate::io::AsyncSource;

impl AsyncReader {
    /// The batches of each of the [`Reader::parts`](crate::Reader::parts), as streams: at most `n`,
    /// which different tasks can poll. Nothing is fetched before they are polled.
    ///
    /// # Errors
    /// As [`Reader::parts`](crate::Reader::parts).
    pub fn streams(&self, n: usize) -> Result<Vec<BatchStream>> {
        self.parts(n)?.iter().map(Self::stream).collect()
    }
}

impl Dataset<Arc<dyn AsyncSource>> {
    /// Starts the read, and streams the batches of all files, in order.
    ///
    /// # Errors
    /// As [`Dataset::schema`]. Faults of the data come with the batches.
    pub fn stream(&self) -> Result<DatasetStream> {
        Ok(DatasetStream { chain: self.chain()?, open: None })
    }

    /// Reads rows by their numbers, as [`Dataset::take`]: one file after the other.
    ///
    /// # Errors
    /// As [`Dataset::take`].
    pub async fn take(&self, rows: &[u64]) -> Result<RecordBatch> {
        let WantedRows { of_files, places } = self.wanted(rows)?;
        let mut found: Vec<RecordBatch> = Vec::new();
        for (file, rows) in of_files {
            let (reader, _) = self.reader(file)?.taking(&rows)?;
            found.append(&mut reader.stream()?.try_collect().await?);
        }
        self.in_order(&found, &places)
    }

    /// The batches of each of the [`Dataset::parts`], as streams: at most `n`, which different
    /// tasks can poll.
    ///
    /// # Errors
    /// As [`Dataset::parts`].
    pub fn streams(&self, n: usize) -> Result<Vec<DatasetStream>> {
        let streams = self.chains(n)?.into_iter();
        Ok(streams.map(|chain| DatasetStream { chain, open: None }).collect())
    }
}

/// The batches of a dataset whose bytes come asynchronously, in order. After an error there are no
/// more.
pub struct DatasetStream {
    chain: Chain<Arc<dyn AsyncSource>>,
    open: Option<BatchStream>,
}

impl fmt::Debug for DatasetStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DatasetStream")
            .field("schema", &self.chain.schema)
            .field("files_left", &self.chain.readers.len())
            .finish_non_exhaustive()
    }
}

impl DatasetStream {
    /// The schema of the batches.
    pub fn schema(&self) -> SchemaRef {
        self.chain.schema.clone()
    }

    fn poll_given(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<RecordBatch>>> {
        loop {
            let Some(open) = self.open.as_mut().filter(|_| self.chain.left > 0) else {
                self.open = match self.chain.next() {
                    Some(reader) => Some(reader.stream()?),
                    None => return Poll::Ready(Ok(None)),
                };
                continue;
            };
            match ready!(Pin::new(open).poll_next(cx)).transpose()? {
                None => self.open = None,
                Some(batch) => {
                    if let Some(batch) = self.chain.select(&batch)? {
                        return Poll::Ready(Ok(Some(batch)));
                    }
                }
            }
        }
    }
}

impl Stream for DatasetStream {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let next = ready!(self.poll_given(cx));
        if next.is_err() {
            (self.chain.left, self.open) = (0, None);
        }
        Poll::Ready(next.transpose())
    }
}
