//! [`ReadOptions`]: what the user of a read asks for, in one struct with plain defaults.

use std::sync::Arc;
use std::time::Duration;

use arrow_schema::DataType;

use crate::free_lists::BufferPool;
use crate::limits::Limits;
use crate::predicate::Predicate;
use crate::schema::{ArrowOptions, Projection};
use crate::selection::RowSelection;
pub use crate::trusted::TrustedUtf8;
use crate::variant::{VariantPath, VariantShape};

/// Says what to read, and how.
///
/// The defaults read everything, verify checksums and UTF-8, and return batches of at most 65,536
/// rows.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ReadOptions {
    /// The columns, in their order. Default: all.
    pub projection: Projection,
    /// The row groups, by index, in this order. Default: all.
    pub row_groups: Option<Vec<usize>>,
    /// The rows, by their numbers in the file; the selection must cover all rows of the file.
    /// Default: all.
    pub selection: Option<RowSelection>,
    /// Rows that are not deleted, of all rows of the file, whatever else is selected. Default: all.
    pub not_deleted: Option<RowSelection>,
    /// The rows, by their values. Row groups and pages that cannot hold a match are not read.
    /// Default: all.
    pub filter: Option<Predicate>,
    /// When the page index is used to locate pages. Default: where it may save reading.
    pub page_index: PageIndexUse,
    /// Number of rows to skip, counted over the chosen rows of the chosen row groups, and only
    /// those that pass the filter. Default 0.
    pub offset: u64,
    /// Maximum rows to return. Default: all.
    pub limit: Option<u64>,
    /// Maximum rows of a batch; a batch never spans two row groups, unless a filter left few rows
    /// of each. Batches have fewer rows if these are so wide that a batch would exceed
    /// [`ReadOptions::batch_bytes`], or if arrays of rows of 64 bytes or more would exceed 4 MiB
    /// each. Default 65,536.
    pub batch_rows: usize,
    /// Target bytes of a batch, by the width of rows that the metadata state. If they state too
    /// little, as for long strings that a dictionary holds once, a batch ends when its arrays hold
    /// about twice as many. Default 64 MiB, and at most an eighth of
    /// [`Limits::memory_bytes`](crate::Limits::memory_bytes).
    pub batch_bytes: usize,
    /// How Arrow types are chosen.
    pub arrow: ArrowOptions,
    /// Whether page checksums are verified if they are present. Default true: it costs next to
    /// nothing.
    pub verify_checksums: bool,
    /// Whether statistics, page indexes, bloom filters and dictionaries are ignored: no rows are
    /// skipped or returned because of their claims, and the filter is evaluated for every row.
    /// Default false: they are trusted, but the filter is still evaluated for returned rows whose
    /// tested columns are read.
    pub verify_statistics: bool,
    /// Whether a file whose column chunks share bytes may be copied, although the copy may be far
    /// larger. Default: no.
    pub shared_bytes: bool,
    /// How strings that are not UTF-8 are handled. Default: they are an error.
    pub utf8: Utf8,
    /// How damaged row groups are handled. Default: the read ends with an error.
    pub on_damage: OnDamage,
    /// How VARIANT columns are returned. Default: as they are stored.
    pub variants: VariantOutput,
    /// Parts of VARIANT columns to add as columns of their own, after those of the file. Only the
    /// leaves that they need are read.
    pub variant_columns: Vec<VariantColumn>,
    /// Columns to add that are not in the file.
    pub virtual_columns: Vec<VirtualColumn>,
    /// The cost of a request for bytes. Default: what the source states.
    pub latency: Option<Latency>,
    /// How much an asynchronous read fetches before it is decoded. Default: what keeps a fast
    /// network busy for one reader.
    pub read_ahead: ReadAhead,
    /// The pool of memory that is reused. Default: [`BufferPool::global`]; a private pool if the
    /// file is decrypted, or if [`Limits::memory_bytes`] is below its default.
    pub pool: Option<BufferPool>,
    /// Limits of what the file may make the read allocate.
    pub limits: Limits,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self {
            projection: Projection::All,
            row_groups: None,
            selection: None,
            not_deleted: None,
            filter: None,
            page_index: PageIndexUse::Auto,
            offset: 0,
            limit: None,
            batch_rows: 65_536,
            batch_bytes: 64 << 20,
            arrow: ArrowOptions::default(),
            verify_checksums: true,
            verify_statistics: false,
            shared_bytes: false,
            utf8: Utf8::Strict,
            on_damage: OnDamage::Fail,
            variants: VariantOutput::Stored,
            variant_columns: Vec::new(),
            virtual_columns: Vec::new(),
            latency: None,
            read_ahead: ReadAhead::default(),
            pool: None,
            limits: Limits::default(),
        }
    }
}

/// Limits how much an asynchronous read fetches before it is decoded, if the memory allows. At
/// least one row group, or a part of one, is always fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReadAhead {
    /// Maximum row groups that are fetched side by side, or wait to be decoded. Default 32.
    pub row_groups: usize,
    /// Maximum bytes that are fetched and not decoded. Default 256 MiB: some seconds of a fast
    /// network.
    pub bytes: u64,
}

impl ReadAhead {
    /// Allows at most `row_groups` row groups and `bytes` bytes.
    pub const fn new(row_groups: usize, bytes: u64) -> Self {
        Self { row_groups, bytes }
    }
}

impl Default for ReadAhead {
    fn default() -> Self {
        Self { row_groups: 32, bytes: 256 << 20 }
    }
}

/// The cost of a request for bytes, which decides whether ranges that lie close are read in one
/// request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Latency {
    /// Time until the first byte arrives.
    pub per_request: Duration,
    /// Bytes per second after that.
    pub bytes_per_second: u64,
}

impl Latency {
    /// A local file.
    pub const LOCAL: Self =
        Self { per_request: Duration::from_micros(32), bytes_per_second: 2 << 30 };

    /// An object store in the same region.
    pub const STORE: Self =
        Self { per_request: Duration::from_millis(30), bytes_per_second: 100_000_000 };

    /// A local file that the operating system has in memory: a call of the system, and a copy.
    pub(crate) const CACHED: Self =
        Self { per_request: Duration::from_micros(1), bytes_per_second: 4 << 30 };

    /// The cost of a request whose first byte arrives after `per_request`, and the others at
    /// `bytes_per_second`.
    pub const fn new(per_request: Duration, bytes_per_second: u64) -> Self {
        Self { per_request, bytes_per_second }
    }

    /// Bytes that come in the time that a request takes: those are sooner read than skipped.
    /// Between 4 KiB and 32 MiB.
    pub(crate) fn gap(&self) -> u64 {
        let nanos = self.per_request.as_nanos();
        let bytes = nanos.saturating_mul(u128::from(self.bytes_per_second)) / 1_000_000_000;
        // A number that does not fit exceeds the maximum, too.
        u64::try_from(bytes).unwrap_or(u64::MAX).clamp(4 << 10, 32 << 20)
    }
}

/// When the page index is used to locate the pages of a column chunk.
///
/// An index that contradicts the pages that are read is ignored, and counted
/// ([`Progress::indexes_ignored`](crate::read::Progress::indexes_ignored)). What it states about
/// pages that are not read cannot be checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum PageIndexUse {
    /// If not all rows are wanted, and the column chunks are larger than the size that is read at a
    /// time anyway.
    #[default]
    Auto,
    /// Wherever not all rows are wanted.
    Always,
    /// Never: column chunks are fetched whole, and pages are skipped by their headers.
    Never,
}

/// How strings that are not UTF-8 are handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Utf8 {
    /// They are an error.
    #[default]
    Strict,
    /// Wrong sequences become U+FFFD.
    Lossy,
    /// Not checked: the caller has promised that all is well.
    Trusted(TrustedUtf8),
}

/// How a read handles a row group whose bytes break a rule of the format, or their checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum OnDamage {
    /// It ends with an error.
    #[default]
    Fail,
    /// It goes on with the next row group, and keeps an account.
    SkipRowGroup,
    /// The rows of a damaged page are null in its column, and the read keeps an account. The rows
    /// of pages are those of the offset index, or of the page headers where these count rows. A row
    /// group is skipped whose rows are not known, or whose damaged column must not be null, and
    /// each one in reads that filter rows or have a target schema.
    NullPages,
}

/// A column that tells where a row comes from.
///
/// ```
/// # fn main() -> marquetry::Result<()> {
/// use marquetry::Reader;
/// use marquetry::read::VirtualColumn;
///
/// let reader = Reader::open("testdata/trips.parquet")?.project(["fare"])?;
/// let reader = reader.virtual_column(VirtualColumn::RowNumber { name: "row".into() });
/// assert_eq!(reader.schema()?.field(1).name(), "row");
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum VirtualColumn {
    /// Number of the row in the file, from 0: Int64, never null.
    RowNumber {
        /// Name of the column.
        name: Arc<str>,
    },
    /// Index of the row group: Int32, never null.
    RowGroup {
        /// Name of the column.
        name: Arc<str>,
    },
    /// Name of the file as given to the reader: Utf8, null if it has none.
    FileName {
        /// Name of the column.
        name: Arc<str>,
    },
    /// The same text in each row, such as the value of a partition: Utf8, nullable.
    Constant {
        /// Name of the column.
        name: Arc<str>,
        /// The text; `None` is null.
        value: Option<Arc<str>>,
    },
}

/// How the VARIANT columns of a file are returned, those inside lists, maps and structs as well.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub enum VariantOutput {
    /// As they are stored: a struct of `metadata`, `value` and, where it is shredded,
    /// `typed_value`.
    #[default]
    Stored,
    /// Put together: a struct of `metadata` and `value`.
    Unshredded,
    /// In this shape, however each file has them.
    Shape(VariantShape),
    /// As JSON text: `Utf8` with the extension `arrow.json`.
    Json,
}

/// A part of the values of a VARIANT column, as a column of its own.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct VariantColumn {
    /// The VARIANT column: a name, or a path through structs.
    pub column: String,
    /// The path to the part.
    pub path: VariantPath,
    /// The type of the column; see [`VariantArray::get`](crate::variant::VariantArray::get).
    pub data_type: DataType,
    /// The name of the new column.
    pub name: String,
}

impl VariantColumn {
    /// The part at `path` of `column`, as `data_type`, in a column named `name`.
    pub fn new(
        column: impl Into<String>,
        path: VariantPath,
        data_type: DataType,
        name: impl Into<String>,
    ) -> Self {
        Self { column: column.into(), path, data_type, name: name.into() }
    }
}
