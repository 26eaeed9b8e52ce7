//! [`Explanation`] describes what a read will do, without reading a column chunk.
//!
//! `Reader::explain` makes it. It fetches bloom filters and page indexes, as the read itself would;
//! it does not find out how many of the remaining rows pass the filter.

use std::fmt;
use std::future::Future;
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;

use super::ranges::{coalesce, fetch};
use super::source::Source;
use crate::error::{Error, Result};
#[cfg(feature = "async")]
use crate::read::Metadata;
use crate::read::{Latency, Plan, PrunedBy, RowRange, Step};

/// Describes what a read will do. [`Display`](fmt::Display) formats it as text.
///
/// ```
/// # fn main() -> marquetry::Result<()> {
/// use marquetry::{Reader, col};
///
/// let reader = Reader::open("testdata/trips.parquet")?.project(["fare"])?;
/// let explanation = reader.filter(col("id").lt(10)).explain()?;
/// println!("{explanation}");
/// assert!(explanation.bytes() < 10_000 && explanation.rows_left() <= 250);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Explanation {
    /// The filter, as text.
    pub filter: Option<String>,
    /// The leaves that are read, by their dotted paths: those of the output, then those that only
    /// the filter needs.
    pub leaves: Vec<String>,
    /// The chosen row groups, in the order in which they are read.
    pub row_groups: Vec<ExplainedRowGroup>,
}

/// The fate of a row group in a read.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExplainedRowGroup {
    /// Index of the row group.
    pub row_group: usize,
    /// Number of its rows.
    pub rows: u64,
    /// Number of rows that are left to be read.
    pub rows_left: u64,
    /// Those rows, as ranges that are counted from the first row of the row group.
    pub ranges_left: Vec<Range<u64>>,
    /// Why they are read, or not.
    pub outcome: Outcome,
    /// Number of data pages of the filter's leaves that the page index covers.
    pub pages: u64,
    /// Number of those pages that hold no row that is left.
    pub pages_pruned: u64,
    /// Bytes of the column chunks that are read, all their pages counted.
    pub chunk_bytes: u64,
    /// Bytes of them that are fetched.
    pub fetch_bytes: u64,
    /// Bytes of bloom filters and page indexes that are fetched before.
    pub index_bytes: u64,
    /// Number of requests, after joining ranges that lie close.
    pub requests: u64,
    /// Faults of the indexes that are ignored.
    pub ignored: Vec<String>,
}

/// Why rows of a row group are read, or are not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Outcome {
    /// There is no filter.
    Read,
    /// The filter is evaluated.
    Evaluated,
    /// The metadata prove that the filter is true of all rows: it is not evaluated.
    AlwaysTrue,
    /// No row of it was selected.
    NotSelected,
    /// Pruned by the statistics of the footer.
    ByStatistics,
    /// Pruned by a bloom filter.
    ByBloomFilter,
    /// Pruned by a dictionary: it has all values, and none passes.
    ByDictionary,
    /// Pruned by the page index.
    ByPageIndex,
}

/// Fetches the bytes of ranges: at once from a blocking source, after a while from an asynchronous
/// one.
type Fetcher<'a> = dyn Fn(&[Range<u64>]) -> Fetching<'a> + Send + Sync + 'a;
type Fetching<'a> = Pin<Box<dyn Future<Output = Result<Vec<Bytes>>> + Send + 'a>>;

impl Explanation {
    /// Asks what a plan will do.
    ///
    /// # Errors
    /// `Io`, or whatever is wrong with the metadata.
    pub(crate) fn new(source: Arc<dyn Source>, plan: &Plan) -> Result<Self> {
        let latency = plan.options().latency.unwrap_or_else(|| source.latency());
        let fetch = |ranges: &[Range<u64>]| -> Fetching<'_> {
            let fetched =
                fetch(&*source, ranges, Some(latency), None, false).map(|fetched| fetched.bytes);
            Box::pin(std::future::ready(fetched))
        };
        let explained = std::pin::pin!(Self::ask(plan, latency, &fetch));
        // The future is ready at once, because the source blocks.
        match explained.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(explained) => explained,
            Poll::Pending => Err(Error::internal("a source that blocks gives all it is asked for")),
        }
    }

    /// As [`Explanation::new`], asynchronously.
    ///
    /// # Errors
    /// As [`Explanation::new`].
    #[cfg(feature = "async")]
    pub(crate) async fn new_async(
        source: Arc<dyn super::stream::AsyncSource>,
        metadata: Metadata,
        plan: &Plan,
    ) -> Result<Self> {
        let held = super::stream::CachedSource::new(source, plan.options().latency);
        let held = held.knowing(metadata);
        let fetch = |ranges: &[Range<u64>]| -> Fetching<'_> {
            let (held, ranges) = (held.clone(), ranges.to_vec());
            Box::pin(async move { Ok(held.fetch(&ranges).await?.bytes) })
        };
        Self::ask(plan, held.latency(), &fetch).await
    }

    async fn ask(plan: &Plan, latency: Latency, fetch: &Fetcher<'_>) -> Result<Self> {
        let footer = plan.footer();
        let options = plan.options();
        let chosen = options.row_groups.clone();
        let chosen = chosen.unwrap_or_else(|| (0..footer.row_groups()).collect());
        let mut ranges = plan.ranges().iter().peekable();
        let mut row_groups = Vec::with_capacity(chosen.len());
        for row_group in chosen {
            let rows = footer.row_group_rows(row_group)?;
            let outcome = match plan.pruned().contains(&row_group) {
                true => Outcome::ByStatistics,
                false => Outcome::NotSelected,
            };
            let mut group = ExplainedRowGroup {
                row_group,
                rows,
                rows_left: 0,
                ranges_left: Vec::new(),
                outcome,
                pages: 0,
                pages_pruned: 0,
                chunk_bytes: 0,
                fetch_bytes: 0,
                index_bytes: 0,
                requests: 0,
                ignored: Vec::new(),
            };
            if let Some(range) = ranges.next_if(|range| range.row_group == row_group) {
                group.ask(plan, latency, fetch, range).await?;
            }
            row_groups.push(group);
        }
        let filter = options.filter.as_ref().map(ToString::to_string);
        let leaves = plan.leaves().iter().map(|column| column.leaf.path.dotted()).collect();
        Ok(Self { filter, leaves, row_groups })
    }

    /// Number of rows that are read, before the filter is evaluated.
    pub fn rows_left(&self) -> u64 {
        self.row_groups.iter().fold(0, |sum, group| sum.saturating_add(group.rows_left))
    }

    /// Bytes that are fetched, without the footer.
    pub fn bytes(&self) -> u64 {
        self.row_groups.iter().map(|group| group.fetch_bytes + group.index_bytes).sum()
    }

    /// Number of requests, without those for the footer.
    pub fn requests(&self) -> u64 {
        self.row_groups.iter().map(|group| group.requests).sum()
    }

    /// Estimated time to fetch everything, one request after the other.
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    pub fn time(&self, latency: Latency) -> Duration {
        let transfer = self.bytes() as f64 / latency.bytes_per_second.max(1) as f64;
        let waiting = latency.per_request.as_secs_f64() * self.requests() as f64;
        Duration::try_from_secs_f64(waiting + transfer).unwrap_or(Duration::MAX)
    }
}

impl ExplainedRowGroup {
    async fn ask(
        &mut self,
        plan: &Plan,
        latency: Latency,
        fetch: &Fetcher<'_>,
        range: &RowRange,
    ) -> Result<()> {
        let bytes_of =
            |needs: &[Range<u64>]| -> u64 { needs.iter().map(|need| need.end - need.start).sum() };
        let mut pruner = plan.pruner(range)?;
        let (left, found) = loop {
            let needs = pruner.needs();
            self.index_bytes += bytes_of(needs);
            self.requests += coalesce(needs, latency).len() as u64;
            let bytes = fetch(needs).await.map_err(|e| e.at_row_group(range.row_group))?;
            match pruner.supply(&bytes)? {
                // At most twice: the header of a bloom filter, then the blocks that it locates.
                Step::NeedsMore(again) => pruner = *again,
                Step::Done((left, found)) => break (left, found),
            }
        };
        (self.pages, self.pages_pruned) = (found.pages, found.pages_pruned);
        self.ignored.extend(found.ignored.iter().map(ToString::to_string));
        let Some(left) = left else {
            self.outcome = match found.pruned_by {
                Some(PrunedBy::PageIndex) => Outcome::ByPageIndex,
                Some(PrunedBy::Dictionary) => Outcome::ByDictionary,
                _ => Outcome::ByBloomFilter,
            };
            return Ok(());
        };
        self.outcome = match plan.options().filter {
            None => Outcome::Read,
            Some(_) if left.is_claimed_or_proven() => Outcome::AlwaysTrue,
            Some(_) => Outcome::Evaluated,
        };
        self.rows_left = left.count();
        self.ranges_left = left.ranges();
        let indexes = plan.row_group(&left)?;
        self.chunk_bytes = indexes.chunk_bytes();
        self.index_bytes += bytes_of(indexes.needs());
        self.requests += coalesce(indexes.needs(), latency).len() as u64;
        let bytes = fetch(indexes.needs()).await;
        let bytes = bytes.map_err(|e| e.at_row_group(left.row_group))?;
        let wanted = indexes.supply(&bytes)?;
        self.fetch_bytes = wanted.fetch_bytes();
        self.requests += coalesce(wanted.needs(), latency).len() as u64;
        self.ignored.extend(wanted.ignored_indexes().iter().map(ToString::to_string));
        Ok(())
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Read => "read",
            Self::Evaluated => "read, filter evaluated",
            Self::AlwaysTrue => "read, filter true of all",
            Self::NotSelected => "not selected",
            Self::ByStatistics => "pruned by statistics",
            Self::ByBloomFilter => "pruned by a bloom filter",
            Self::ByDictionary => "pruned by a dictionary",
            Self::ByPageIndex => "pruned by the page index",
        })
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(filter) = &self.filter {
            writeln!(f, "filter {filter}")?;
        }
        writeln!(f, "leaves {}", self.leaves.join(", "))?;
        for group in &self.row_groups {
            write!(f, "row group {}: {}", group.row_group, group.outcome)?;
            if group.rows_left > 0 {
                write!(
                    f,
                    ", {} of {} rows, {} of {} bytes",
                    group.rows_left, group.rows, group.fetch_bytes, group.chunk_bytes
                )?;
            }
            if group.pages_pruned > 0 {
                write!(f, ", {} of {} pages pruned", group.pages_pruned, group.pages)?;
            }
            writeln!(f)?;
        }
        write!(f, "{} bytes in {} requests", self.bytes(), self.requests())
    }
}
