//! [`Explanation`]: what a read will do, found out without reading a column chunk.
//!
//! Made by `Reader::explain`. Bloom filters and page indexes are fetched, as the read itself would; how many rows then pass the filter is not known.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use super::blocking::Opener;
use super::{Progress, Source, coalesce};
use crate::error::Result;
use crate::read::{Found, Plan, RowRange};

/// What a read will do. [`Display`](fmt::Display) gives it as text.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Explanation {
    /// The filter, as text.
    pub filter: Option<String>,
    /// The leaves that are read, by their dotted paths: those of the output, then those that only the filter needs.
    pub leaves: Vec<String>,
    /// The chosen row groups, in the order in which they are read.
    pub row_groups: Vec<ExplainedRowGroup>,
}

/// What becomes of a row group.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExplainedRowGroup {
    /// Its index.
    pub row_group: usize,
    /// Its rows.
    pub rows: u64,
    /// Rows that are left to be read.
    pub rows_left: u64,
    /// Why.
    pub outcome: Outcome,
    /// Data pages of the filter's leaves of which the page index told.
    pub pages: u64,
    /// Those of them that hold no row that is left.
    pub pages_pruned: u64,
    /// Bytes of the column chunks that are read, all their pages counted.
    pub chunk_bytes: u64,
    /// Bytes that are fetched of them.
    pub fetch_bytes: u64,
    /// Bytes of bloom filters and page indexes that are fetched before.
    pub index_bytes: u64,
    /// Requests, ranges that lie close joined.
    pub requests: u64,
    /// What was wrong with the indexes that are put aside.
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
    Sure,
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

impl Explanation {
    /// Asks what a plan will do.
    ///
    /// # Errors
    /// `Io`, or whatever is wrong with the metadata.
    pub fn new(source: Arc<dyn Source>, plan: Plan) -> Result<Self> {
        let opener = Opener::new(source, plan, Progress::default());
        let plan = &opener.plan;
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
                group.ask(&opener, range)?;
            }
            row_groups.push(group);
        }
        let filter = options.filter.as_ref().map(ToString::to_string);
        let leaves = plan.leaves().iter().map(|leaf| leaf.leaf.path.dotted()).collect();
        Ok(Self { filter, leaves, row_groups })
    }

    /// Rows that are read, before the filter is evaluated.
    pub fn rows_left(&self) -> u64 {
        self.row_groups.iter().map(|group| group.rows_left).sum()
    }

    /// Bytes that are fetched, the footer left out.
    pub fn bytes(&self) -> u64 {
        self.row_groups.iter().map(|group| group.fetch_bytes + group.index_bytes).sum()
    }

    /// Requests, the footer left out.
    pub fn requests(&self) -> u64 {
        self.row_groups.iter().map(|group| group.requests).sum()
    }

    /// About how long fetching takes where a request takes so long, and so many bytes come in a second, one request after the other.
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    pub fn time(&self, latency: Duration, bytes_per_second: f64) -> Duration {
        let transfer = self.bytes() as f64 / bytes_per_second.max(1.0);
        let waiting = latency.as_secs_f64() * self.requests() as f64;
        Duration::try_from_secs_f64(waiting + transfer).unwrap_or(Duration::MAX)
    }
}

impl ExplainedRowGroup {
    fn ask(&mut self, opener: &Opener, range: &RowRange) -> Result<()> {
        let bytes_of =
            |needs: &[Range<u64>]| -> u64 { needs.iter().map(|need| need.end - need.start).sum() };
        let needs = opener.plan.sieve(range)?;
        self.index_bytes += bytes_of(needs.needs());
        self.requests += coalesce(needs.needs()).len() as u64;
        let (left, found) = opener.sift(range)?;
        (self.pages, self.pages_pruned) = (found.pages, found.pages_pruned);
        self.ignored.extend(found.ignored.iter().map(ToString::to_string));
        let Some(left) = left else {
            self.outcome = match found {
                Found { by_pages: true, .. } => Outcome::ByPageIndex,
                Found { by_dictionary: true, .. } => Outcome::ByDictionary,
                _ => Outcome::ByBloomFilter,
            };
            return Ok(());
        };
        self.outcome = match opener.plan.options().filter {
            None => Outcome::Read,
            Some(_) if left.is_sure() => Outcome::Sure,
            Some(_) => Outcome::Evaluated,
        };
        self.rows_left = left.count();
        let indexes = opener.plan.row_group(&left)?;
        self.chunk_bytes = indexes.chunk_bytes();
        self.index_bytes += bytes_of(indexes.needs());
        self.requests += coalesce(indexes.needs()).len() as u64;
        let bytes = opener.fetch(indexes.needs(), &left)?;
        let wanted = indexes.supply(&bytes)?;
        self.fetch_bytes = wanted.fetch_bytes();
        self.requests += coalesce(wanted.needs()).len() as u64;
        self.ignored.extend(wanted.ignored_indexes().iter().map(ToString::to_string));
        Ok(())
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Read => "read",
            Self::Evaluated => "read, filter evaluated",
            Self::Sure => "read, filter true of all",
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
