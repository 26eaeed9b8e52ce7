//! [`Fill`]: adds to a file what its writer left out, without touching a value.
//!
//! | file | what it does |
//! |---|---|
//! | `parts` | what can be filled in, counted |
//! | `request` | what is asked for |
//! | `gaps` | what of it a column chunk lacks |
//! | `additions` | what is filled in, from what its pages hold |
//! | `headers` | what page headers tell |
//! | `planning` | looks at all chunks |
//! | `writing` | copies the pages, and writes what is new around them |
//!
//! The checks ([`check`](crate::check)) find what a chunk holds, and check with it what is stated
//! already: a file that states what is not true is refused.

mod parts;
mod request;
mod gaps;
mod additions;
mod headers;
mod planning;
mod writing;

pub use parts::{FillPart, FilledPart};

use self::planning::{Planned, Planner};
use self::request::FillRequest;
use self::writing::FillWriter;
use crate::error::{Error, Result};
use crate::io::Sink;
use crate::limits::Budget;
use crate::reader::Reader;
use crate::schema::Projection;
use crate::write::column_options::BloomOptions;
use crate::write::sorting::SortColumn;

/// Adds to a file what its writer left out: statistics, the page index, bloom filters, checksums.
///
/// Data pages are copied byte for byte (page headers are new where checksums are added), so the
/// rows are the same. What the file states already stays as it is, and is checked where values are
/// decoded. A file without column orders gets them, and its bounds are computed anew, because the
/// old ones may have been written in another order.
///
/// ```
/// # fn main() -> marquetry::Result<()> {
/// use marquetry::Reader;
/// use marquetry::io::WriteSink;
/// use marquetry::rewrite::{Fill, FillPart};
///
/// let trips = Reader::open("testdata/trips.parquet")?;
/// let mut out = Vec::new();
/// let fill = Fill::new(trips).bloom("id", Default::default());
/// let done = fill.run(WriteSink(&mut out))?;
/// assert!(done.parts.iter().any(|part| part.part == FillPart::BloomFilters));
/// assert_eq!(Reader::new(bytes::Bytes::from(out))?.rows()?, 1_000);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct Fill {
    request: FillRequest,
}

/// The plan of a [`Fill`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FillPlan {
    /// Number of rows.
    pub rows: u64,
    /// Number of row groups.
    pub row_groups: usize,
    /// The parts that are added.
    pub parts: Vec<FilledPart>,
    /// Parts that are left out, a sentence each.
    pub notes: Vec<String>,
}

/// The file that a [`Fill`] has written.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Filled {
    /// Number of rows.
    pub rows: u64,
    /// Number of row groups.
    pub row_groups: usize,
    /// Bytes of the new file.
    pub bytes: u64,
    /// The parts that were added.
    pub parts: Vec<FilledPart>,
    /// Parts that were left out, a sentence each.
    pub notes: Vec<String>,
}

impl Fill {
    /// Fills in everything but checksums, bloom filters and sorting columns.
    pub fn new(reader: Reader) -> Self {
        let asked = [FillPart::Checksums, FillPart::BloomFilters, FillPart::SortingColumns];
        let parts = FillPart::ALL.iter().copied().filter(|part| !asked.contains(part)).collect();
        let request = FillRequest {
            reader,
            parts,
            blooms: Vec::new(),
            sorted: Vec::new(),
            decodes_values: true,
            bound_bytes: 64,
        };
        Self { request }
    }

    /// Fills in these parts only, and the bloom filters and sorting columns that are asked for.
    pub fn only(mut self, parts: impl IntoIterator<Item = FillPart>) -> Self {
        self.request.parts = parts.into_iter().collect();
        self
    }

    /// Adds a bloom filter to each chunk of a leaf, given by its dotted path, that has none. Its
    /// size follows from the number of distinct values.
    pub fn bloom(mut self, column: impl Into<String>, options: BloomOptions) -> Self {
        self.request.blooms.push((column.into(), options));
        self
    }

    /// States that the rows of each row group are sorted by these columns. All are decoded, and it
    /// is an error if they are not, or if another order is stated already.
    pub fn sorted(mut self, columns: impl IntoIterator<Item = SortColumn>) -> Self {
        self.request.sorted = columns.into_iter().collect();
        self
    }

    /// Sets whether levels and values are decoded where that is needed; by default they are.
    /// Otherwise only page headers are read: they tell the encodings, the offset indexes of columns
    /// outside lists, and column indexes if each header has statistics, which are believed.
    pub fn decode_values(mut self, decode: bool) -> Self {
        self.request.decodes_values = decode;
        self
    }

    /// Sets the maximum bytes of a bound of a byte string; 64 by default.
    pub fn bound_bytes(mut self, bytes: usize) -> Self {
        self.request.bound_bytes = bytes;
        self
    }

    /// Looks at the file, and says what [`Fill::run`] adds. It takes as long as the decoding of all
    /// values that are needed.
    ///
    /// # Errors
    /// As [`Fill::run`].
    pub fn plan(&self) -> Result<FillPlan> {
        let planned = self.planned(&self.budget()).map_err(|e| self.request.reader.name(e))?;
        let Planned { rows, tally, notes, row_groups, .. } = planned;
        let (row_groups, parts) = (row_groups.len(), tally.finish());
        Ok(FillPlan { rows, row_groups, parts, notes })
    }

    /// Writes the file with what was left out. Nothing is written before the whole file was looked
    /// at.
    ///
    /// A page and a dictionary of each thread are in memory, and what is added, within the
    /// [`Limits::memory_bytes`](crate::Limits::memory_bytes) of the reader.
    ///
    /// # Errors
    /// `Usage` if the reader selects rows or columns, there is no column of a name, or rows are not
    /// sorted as was said; `Unsupported` if the file is encrypted, or has its columns in other
    /// files; `Malformed` if it violates the format or states what is not true; `Limit`, `Io`.
    pub fn run(&self, sink: impl Sink) -> Result<Filled> {
        let budget = self.budget();
        let write = || {
            let planned = self.planned(&budget)?;
            let (rows, row_groups) = (planned.rows, planned.row_groups.len());
            let bytes = FillWriter::new(&self.request.reader, &planned, sink, &budget).run()?;
            let (parts, notes) = (planned.tally.finish(), planned.notes);
            Ok(Filled { rows, row_groups, bytes, parts, notes })
        };
        write().map_err(|e| self.request.reader.name(e))
    }

    fn budget(&self) -> Budget {
        Budget::new(self.request.reader.read_options().limits.memory_bytes)
    }

    fn planned(&self, budget: &Budget) -> Result<Planned> {
        let options = self.request.reader.read_options();
        let selects = options.filter.is_some()
            || options.selection.is_some()
            || options.not_deleted.is_some()
            || options.offset > 0
            || options.limit.is_some()
            || options.row_groups.is_some()
            || !matches!(options.projection, Projection::All);
        if selects {
            let text = "a file is filled in as a whole: the reader selects rows or columns";
            return Err(Error::usage(text));
        }
        let footer = self.request.reader.metadata().footer();
        if footer.is_encrypted() || footer.index().head().encryption_algorithm.is_some() {
            let text = "decrypt the file first (marq crypt decrypt), and encrypt the filled one";
            return Err(Error::unsupported("filling in encrypted files", text));
        }
        Planner::new(&self.request, budget)?.run()
    }
}
