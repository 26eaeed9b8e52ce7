//! [`WriteOptions`]: the settings of a file.

use std::sync::Arc;

use arrow_schema::{Field, Schema as ArrowSchema};

use super::column_options::{ChunkingOptions, ColumnOptions, LeafSettings, StatisticsLevel};
use super::leaf_names::{LeafNames, matches_pattern};
use super::sorting::{SortColumn, SortOrder};
use super::spill_store::SpillStore;
use crate::compress::Compression;
use crate::crypt::Encryption;
use crate::encoding::choose::Profile;
use crate::encoding::readers::TargetReader;
use crate::error::{Error, Result};
use crate::format::KeyValue;
use crate::geo::GeoOptions;
use crate::memory;
use crate::page::PageVersion;
use crate::schema::{Leaf, Schema};
use crate::variant::{VariantPlaces, VariantShredding};

/// Settings of a written file. The defaults make small files that every engine reads fast: ZSTD,
/// encodings chosen from the data, statistics, the page index, checksums.
///
/// ```
/// use marquetry::{Compression, WriteOptions};
///
/// let options = WriteOptions::new()
///     .with_compression(Compression::Zstd(9))
///     .with_column("id", |column| column.with_bloom(Default::default()));
/// ```
#[derive(Debug, Clone)]
pub struct WriteOptions {
    pub(crate) profile: Profile,
    pub(crate) readers: Vec<TargetReader>,
    /// The options of all columns.
    all: ColumnOptions,
    pub(crate) page_version: Option<PageVersion>,
    pub(crate) dictionary_bytes: usize,
    row_group_rows: Option<u64>,
    pub(crate) row_group_bytes: u64,
    pub(crate) memory: u64,
    pub(crate) spill: Option<Arc<dyn SpillStore>>,
    pub(crate) checksums: bool,
    pub(crate) chunking: Option<ChunkingOptions>,
    pub(crate) bound_bytes: usize,
    pub(crate) hint: bool,
    pub(crate) full_range: bool,
    pub(crate) path_in_schema: bool,
    pub(crate) created_by: String,
    pub(crate) key_values: Vec<KeyValue>,
    pub(crate) columns: Vec<(String, ColumnOptions)>,
    /// Those of single leaves, by their number in the schema that is written: after those by name.
    pub(crate) leaves: Vec<(usize, ColumnOptions)>,
    pub(crate) sort_order: SortOrder,
    pub(crate) encryption: Option<Encryption>,
    pub(crate) shredding: Vec<(String, VariantShredding)>,
    pub(crate) geo: Option<GeoOptions>,
}

impl Default for WriteOptions {
    fn default() -> Self {
        Self {
            profile: Profile::Balanced,
            readers: TargetReader::ALL.to_vec(),
            all: ColumnOptions::default(),
            page_version: None,
            dictionary_bytes: 16 << 20,
            row_group_rows: None,
            row_group_bytes: 128 << 20,
            memory: 1 << 30,
            spill: None,
            checksums: true,
            chunking: None,
            bound_bytes: 64,
            hint: true,
            full_range: false,
            path_in_schema: true,
            created_by: concat!("marquetry version ", env!("CARGO_PKG_VERSION")).to_owned(),
            key_values: Vec::new(),
            columns: Vec::new(),
            leaves: Vec::new(),
            sort_order: SortOrder::default(),
            encryption: None,
            shredding: Vec::new(),
            geo: None,
        }
    }
}

impl WriteOptions {
    /// The default settings.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether files are encrypted.
    pub(crate) fn is_encrypted(&self) -> bool {
        self.encryption.is_some()
    }

    /// Encrypts the file, or columns of it.
    #[must_use]
    pub fn with_encryption(mut self, encryption: Encryption) -> Self {
        self.encryption = Some(encryption);
        self
    }

    /// Sets the aim of the writer.
    #[must_use]
    pub fn with_profile(mut self, profile: Profile) -> Self {
        self.profile = profile;
        self
    }

    /// The readers that the file is for; by default all that are known. A column gets only
    /// encodings that each of them decodes for its type, so that a shorter list may give smaller
    /// files:
    ///
    /// | left out | then tried too |
    /// |---|---|
    /// | [`Polars`](TargetReader::Polars) | DELTA_BYTE_ARRAY of FIXED_LEN_BYTE_ARRAY |
    /// | `Polars` and [`DuckDb`](TargetReader::DuckDb) | BYTE_STREAM_SPLIT of those as well |
    /// | [`Spark`](TargetReader::Spark) | BYTE_STREAM_SPLIT of unsigned 32 and 64 bits |
    /// | [`PyArrow`](TargetReader::PyArrow) | DELTA encodings of dictionary arrays |
    /// | all but [`Marquetry`](TargetReader::Marquetry) | ALP of floats |
    ///
    /// Encodings that are [set](ColumnOptions::with_encoding) are written for any reader.
    ///
    /// ```
    /// use marquetry::{TargetReader, WriteOptions};
    ///
    /// let readers = [TargetReader::PyArrow, TargetReader::Spark];
    /// let options = WriteOptions::new().with_readers(readers);
    /// ```
    #[must_use]
    pub fn with_readers(mut self, readers: impl IntoIterator<Item = TargetReader>) -> Self {
        self.readers = readers.into_iter().collect();
        self
    }

    /// The codec of all columns; by default that of the profile.
    #[must_use]
    pub fn with_compression(mut self, compression: Compression) -> Self {
        self.all = self.all.with_compression(compression);
        self
    }

    /// The layout of data pages; by default that of the profile.
    #[must_use]
    pub fn with_page_version(mut self, version: PageVersion) -> Self {
        self.page_version = Some(version);
        self
    }

    /// Whether dictionaries are used if they make the file smaller (the default).
    #[must_use]
    pub fn with_dictionary(mut self, dictionary: bool) -> Self {
        self.all = self.all.with_dictionary(dictionary);
        self
    }

    /// Maximum bytes of a dictionary, as PLAIN.
    #[must_use]
    pub fn with_dictionary_bytes(mut self, bytes: usize) -> Self {
        self.dictionary_bytes = bytes;
        self
    }

    /// Maximum bytes of a data page before compression, about; by default that of the profile, and
    /// more for byte strings whose longer pages are much smaller once compressed.
    #[must_use]
    pub fn with_page_bytes(mut self, bytes: usize) -> Self {
        self.all = self.all.with_page_bytes(bytes);
        self
    }

    /// Maximum rows of a data page. Pages of all columns begin at multiples of it, or of a half, a
    /// quarter … of it. By default that of the profile, or two or four times that for pages that
    /// encode to almost nothing.
    #[must_use]
    pub fn with_page_rows(mut self, rows: usize) -> Self {
        self.all = self.all.with_page_rows(rows);
        self
    }

    /// Maximum rows of a row group. By default 1,048,576; for [`Profile::Points`] 16 times as many,
    /// because who takes a few rows pays for the dictionaries of each row group.
    #[must_use]
    pub fn with_row_group_rows(mut self, rows: u64) -> Self {
        self.row_group_rows = Some(rows);
        self
    }

    /// Target bytes of a row group in the file.
    #[must_use]
    pub fn with_row_group_bytes(mut self, bytes: u64) -> Self {
        self.row_group_bytes = bytes;
        self
    }

    /// Memory that the writer may hold, in bytes: batches that are not encoded yet, and encoded row
    /// groups. A row group ends before its rows take more, unless they may
    /// [spill](WriteOptions::with_spill).
    #[must_use]
    pub fn with_memory(mut self, bytes: u64) -> Self {
        self.memory = bytes;
        self
    }

    /// Lets rows that do not fit into the [memory](WriteOptions::with_memory) go to a temporary
    /// file, so that a row group of many columns has as many rows as it is to have by
    /// [rows](WriteOptions::with_row_group_rows) and [bytes](WriteOptions::with_row_group_bytes).
    /// Its file is that of a writer with more memory. By default nothing goes there.
    ///
    /// The temporary file takes about as many bytes as the rows as Arrow arrays, compressed by LZ4;
    /// only its writer can read it, and if the file is [encrypted](WriteOptions::with_encryption),
    /// it is, too, as a whole, by a key that is never stored. If it cannot be written, as when the
    /// disk is full, writing ends with an error (`Io`).
    ///
    /// Memory is still needed for a batch as it comes; for all rows of a leaf, so that a row group
    /// ends before one takes too much; and for the metadata and indexes of all column chunks, and
    /// bloom filters, until the end of the file.
    ///
    /// ```
    /// use marquetry::WriteOptions;
    /// use marquetry::io::TempFolder;
    ///
    /// let options = WriteOptions::new()
    ///     .with_memory(256 << 20)
    ///     .with_row_group_bytes(16 << 30)
    ///     .with_spill(TempFolder::new("/var/tmp"));
    /// ```
    #[must_use]
    pub fn with_spill(mut self, store: impl SpillStore + 'static) -> Self {
        self.spill = Some(Arc::new(store));
        self
    }

    /// Which statistics are collected; by default the bounds of pages.
    #[must_use]
    pub fn with_statistics(mut self, level: StatisticsLevel) -> Self {
        self.all = self.all.with_statistics(level);
        self
    }

    /// Whether floats have the total order of IEEE 754 instead of the type-defined order, which
    /// excludes NaNs.
    #[must_use]
    pub fn with_total_order(mut self, total_order: bool) -> Self {
        self.all = self.all.with_total_order(total_order);
        self
    }

    /// Whether pages have checksums (the default).
    #[must_use]
    pub fn with_checksums(mut self, checksums: bool) -> Self {
        self.checksums = checksums;
        self
    }

    /// Ends pages where the content says so, for stores that deduplicate equal pieces of files; the
    /// limits of pages by rows and bytes are then ignored.
    #[must_use]
    pub fn with_content_defined_chunking(mut self, chunking: ChunkingOptions) -> Self {
        self.chunking = Some(chunking);
        self
    }

    /// Maximum bytes of a bound in statistics and page index; longer ones are truncated.
    #[must_use]
    pub fn with_bound_bytes(mut self, bytes: usize) -> Self {
        self.bound_bytes = bytes;
        self
    }

    /// Whether the Arrow schema is stored under `ARROW:schema` (the default), which restores types
    /// that Parquet does not have.
    #[must_use]
    pub fn with_hint(mut self, hint: bool) -> Self {
        self.hint = hint;
        self
    }

    /// Whether `Date64` and `Interval` are stored so that every value fits: as TIMESTAMP(MILLIS),
    /// and as 16 bytes of months, days and nanoseconds. This library restores them; other readers
    /// read timestamps and bytes. Off by default: then they are DATE and INTERVAL, and a time of
    /// day, a sign, or nanoseconds are errors.
    /// [`from_arrow`](fn@crate::schema::from_arrow#what-files-cannot-hold) lists what else files
    /// cannot hold.
    #[must_use]
    pub fn with_full_range(mut self, full_range: bool) -> Self {
        self.full_range = full_range;
        self
    }

    /// Whether the footer states the path of each column chunk (`ColumnMetaData.path_in_schema`),
    /// as the specification requires. On by default.
    ///
    /// Without them the footer of a wide file is smaller: by 5 % with 10,000 columns of short names
    /// and their statistics, by more with long or nested names. This library, arrow-rs 60 and
    /// polars find columns by their order instead; other readers refuse the file. A
    /// [`Rewrite`](crate::rewrite::Rewrite) states them again, unless its options say this, too.
    #[must_use]
    pub fn with_path_in_schema(mut self, path_in_schema: bool) -> Self {
        self.path_in_schema = path_in_schema;
        self
    }

    /// Sets the name of the writer in the file.
    #[must_use]
    pub fn with_created_by(mut self, created_by: impl Into<String>) -> Self {
        self.created_by = created_by.into();
        self
    }

    /// Adds a pair to the file's key-value metadata.
    #[must_use]
    pub fn with_key_value(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        let (key, value) = (key.into(), Some(value.into()));
        self.key_values.push(KeyValue { key, value, ..KeyValue::default() });
        self
    }

    /// States that the rows of each row group are sorted by these columns, so that engines need not
    /// sort them again. The rows are checked for this order, but not sorted. Without this option,
    /// the file states an order only if a column without nulls has one.
    ///
    /// Floats must be in their total order: -0 before 0, NaN at an end. A column that does not
    /// exist, lies in a list or has no order is an error (`Usage`) when the writer is made; rows
    /// that are not in order are an error when they are written.
    ///
    /// ```
    /// use marquetry::{SortColumn, WriteOptions};
    ///
    /// let options = WriteOptions::new()
    ///     .with_sort_order([
    ///         SortColumn::ascending("country"),
    ///         SortColumn::descending("ts").nulls_first(),
    ///     ]);
    /// ```
    #[must_use]
    pub fn with_sort_order(mut self, columns: impl IntoIterator<Item = SortColumn>) -> Self {
        self.sort_order = SortOrder { columns: columns.into_iter().collect(), is_checked: true };
        self
    }

    /// Like [`WriteOptions::with_sort_order`], but unchecked: readers of a file that is not sorted
    /// as it states may get wrong results.
    #[must_use]
    pub fn with_unchecked_sort_order(
        mut self,
        columns: impl IntoIterator<Item = SortColumn>,
    ) -> Self {
        self.sort_order = SortOrder { columns: columns.into_iter().collect(), is_checked: false };
        self
    }

    /// States the key `geo` of [GeoParquet](crate::geo::GeoMetadata) 1.1 for the geometry columns,
    /// with what `geo` adds. By default the file has no such key, unless the schema's metadata have
    /// one, which is then copied as it is.
    #[must_use]
    pub fn with_geo(mut self, geo: GeoOptions) -> Self {
        self.geo = Some(geo);
        self
    }

    /// Sets options for the columns that match a pattern: a dotted path, the name of a top-level
    /// column for all below it, or either with `*` for any text, unless a column has that name.
    /// Later settings win. A pattern without any column is an error when the writer is made.
    #[must_use]
    pub fn with_column(
        mut self,
        pattern: impl Into<String>,
        set: impl FnOnce(ColumnOptions) -> ColumnOptions,
    ) -> Self {
        self.columns.push((pattern.into(), set(ColumnOptions::default())));
        self
    }

    /// Sets which parts of the values of a VARIANT column become columns of their own: for the
    /// column with this path, or for all whose paths match a pattern with `*` for any text. A
    /// column inside others has their names before its own, those of lists and maps as in Parquet:
    /// `struct.payload`, `lists.list.element`, `map.key_value.value`. Later settings win. Default:
    /// none is shredded, and values that come shredded stay shredded. Options for single leaves of
    /// a shape that is inferred cannot be set, because the leaves are not known yet: name the whole
    /// column.
    ///
    /// ```
    /// use marquetry::WriteOptions;
    /// use marquetry::variant::{VariantInference, VariantShape, VariantShredding};
    ///
    /// let shape = VariantShape::parse("{event: string, at: timestamp}")?;
    /// let options = WriteOptions::new()
    ///     .with_shredding("*", VariantShredding::Infer(VariantInference::new()))
    ///     .with_shredding("payload", VariantShredding::Shape(shape));
    /// # Ok::<(), marquetry::Error>(())
    /// ```
    #[must_use]
    pub fn with_shredding(
        mut self,
        pattern: impl Into<String>,
        shredding: VariantShredding,
    ) -> Self {
        self.shredding.push((pattern.into(), shredding));
        self
    }

    /// How the VARIANT columns in each top-level column are shredded, with their paths.
    ///
    /// # Errors
    /// `Usage` if a setting is for no VARIANT column.
    pub(crate) fn shredding_of(
        &self,
        schema: &ArrowSchema,
    ) -> Result<Vec<VariantPlaces<(String, VariantShredding)>>> {
        let mut found = memory::filled(false, self.shredding.len())?;
        let mut of = |path: &str, _: &Field, _: Option<&Field>| {
            let mut shredding = None;
            for ((pattern, of), found) in self.shredding.iter().zip(&mut found) {
                if matches_pattern(pattern, path) {
                    (*found, shredding) = (true, Some(of));
                }
            }
            let shredding = shredding.filter(|of| **of != VariantShredding::Stored);
            Ok(shredding.map(|of| (path.to_owned(), of.clone())))
        };
        let fields = schema.fields().iter();
        let out = fields.map(|field| VariantPlaces::find(field, None, &mut of));
        let out = memory::try_collected(out)?;
        let missing = self.shredding.iter().zip(found);
        let missing = missing.map(|((pattern, _), found)| (pattern, found));
        match missing.into_iter().find(|(pattern, found)| !found && *pattern != "*") {
            None => Ok(out),
            Some((pattern, _)) => Err(Error::usage(format_args!(
                "shredding is set for \"{pattern}\", and there is no such VARIANT column"
            ))),
        }
    }

    /// The options for a file of these leaves alone, which is a part of another: what is said of
    /// other columns, of the order of rows and of the file as a whole is left out.
    ///
    /// # Errors
    /// `Limit(Memory)`.
    pub(crate) fn for_part(&self, leaves: &[Leaf]) -> Result<Self> {
        let names = LeafNames::new(leaves)?;
        let mut part = self.clone();
        part.columns.clear();
        for column in &self.columns {
            if !names.named(&column.0)?.is_empty() {
                memory::push(&mut part.columns, column.clone())?;
            }
        }
        part.leaves.clear();
        part.sort_order = SortOrder::default();
        (part.encryption, part.key_values) = (None, Vec::new());
        part.shredding.clear();
        part.geo = None;
        Ok(part)
    }

    /// The settings of every leaf.
    ///
    /// # Errors
    /// `Usage` if a number is 0, a pattern names no column, or an encoding is not for the type of a
    /// column that is named.
    pub(crate) fn resolve(&self, schema: &Schema) -> Result<Vec<LeafSettings>> {
        for (what, value) in [
            ("rows of a row group", self.row_group_rows()),
            ("bytes of a row group", self.row_group_bytes),
            ("memory of the writer", self.memory),
            ("rows of a page", self.all.page_rows.unwrap_or(1) as u64),
            ("bytes of a page", self.all.page_bytes.unwrap_or(1) as u64),
        ] {
            if value == 0 {
                return Err(Error::usage(format_args!("the {what} must be more than 0")));
            }
        }
        if let Some(chunking) = self.chunking
            && (chunking.min_bytes == 0 || chunking.min_bytes >= chunking.max_bytes)
        {
            return Err(Error::usage(
                "content-defined chunking needs a largest page that is larger than the smallest",
            ));
        }
        let leaves = schema.leaves()?;
        let mut settings = memory::filled(self.of_profile(), leaves.len())?;
        let mut set =
            |at: usize, column: &ColumnOptions| match (leaves.get(at), settings.get_mut(at)) {
                (Some(leaf), Some(settings)) => column.apply(leaf, settings),
                _ => Err(Error::internal("a setting is for a leaf that is not there")),
            };
        let names = LeafNames::new(&leaves)?;
        for (pattern, column) in &self.columns {
            let named = names.named(pattern)?;
            for leaf in &named {
                set(*leaf, column)?;
            }
            if named.is_empty() {
                return Err(Error::usage(format_args!(
                    "a setting is for \"{pattern}\", and there is no such column"
                )));
            }
        }
        for (leaf, column) in &self.leaves {
            set(*leaf, column)?;
        }
        Ok(settings)
    }

    /// Maximum rows of a row group.
    pub(crate) fn row_group_rows(&self) -> u64 {
        // The number of a page is stated in 16 bits in encrypted files.
        let for_points = self.profile == Profile::Points && self.encryption.is_none();
        self.row_group_rows.unwrap_or(if for_points { 1 << 24 } else { 1 << 20 })
    }

    fn of_profile(&self) -> LeafSettings {
        let (compression, version, page_bytes, page_rows) = match self.profile {
            Profile::Balanced => (Compression::Zstd(3), PageVersion::V1, 1 << 20, 1 << 16),
            Profile::Small => (Compression::Zstd(12), PageVersion::V1, 1 << 20, 1 << 20),
            Profile::FastRead => (Compression::Lz4Raw, PageVersion::V2, 256 << 10, 20 << 10),
            Profile::Points => (Compression::Zstd(4), PageVersion::V1, 16 << 10, 1 << 9),
            Profile::Compatible => (Compression::Snappy, PageVersion::V1, 1 << 20, 1 << 16),
        };
        let mut settings = LeafSettings {
            profile: self.profile,
            readers: self.readers.clone().into(),
            arrow_dictionary: false,
            compression: usable(compression),
            codec_is_fixed: false,
            page_version: self.page_version.unwrap_or(version),
            encoding: None,
            dictionary: true,
            dictionary_bytes: self.dictionary_bytes,
            page_bytes,
            page_bytes_are_fixed: self.profile == Profile::Points,
            page_rows,
            page_rows_are_fixed: false,
            statistics: StatisticsLevel::Page,
            total_order: false,
            checksums: self.checksums,
            chunking: self.chunking,
            bound_bytes: self.bound_bytes,
            bloom: None,
        };
        self.all.set(&mut settings);
        settings
    }
}

/// The codec of a profile, or none where this build lacks it.
fn usable(compression: Compression) -> Compression {
    if compression.is_built() { compression } else { Compression::Uncompressed }
}
