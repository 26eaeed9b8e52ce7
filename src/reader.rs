//! [`Reader`]: a file, and what is wanted of it.

mod dataset;
mod external;
mod parts;
#[cfg(feature = "async")]
mod stream;

use std::fmt;
use std::fs::File;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, DataType, SchemaRef, TimeUnit};
use bytes::Bytes;

use crate::crypt::{Decryption, Module, opened};
use crate::error::{Error, Result};
use crate::free_lists::BufferPool;
use crate::io::{
    Explanation, Indexed, Parallel, Pool, Progress, Serial, Source, load_indexes, open_footer,
    read_exactly,
};
use crate::limits::{Budget, Limits};
use crate::predicate::{ColumnStatistics, Predicate};
use crate::read::Coalescer;
use crate::read::row_filter;
use crate::read::{
    ChunkWalk, Latency, Metadata, PageCache, PageIndex, Plan, ReadOptions, RowRange, StoredPages,
    TrustedUtf8, Utf8, VariantColumn, VariantOutput, VirtualColumn, column_index_range, decode,
    offset_index_range,
};
use crate::schema::{Dictionaries, MatchBy, Projection};
use crate::selection::RowSelection;
use crate::trace;
use crate::variant::VariantPath;

#[cfg(feature = "async")]
pub use dataset::DatasetStream;
pub use dataset::{Dataset, DatasetBatches};
#[cfg(feature = "async")]
pub use stream::{AsyncReader, BatchStream};

/// A Parquet file that is open, and what is wanted of it.
///
/// Cheap to clone, and shared freely: the footer is parsed once, and reading does not change the
/// reader.
///
/// ```
/// # fn main() -> marquetry::Result<()> {
/// use marquetry::Reader;
///
/// let reader = Reader::open("testdata/trips.parquet")?;
/// println!("{} rows of {}", reader.rows()?, reader.schema()?);
/// for batch in reader.batches()? {
///     println!("{} rows", batch?.num_rows());
/// }
/// # Ok(())
/// # }
/// ```
///
/// The parameter is where the bytes come from: a blocking [`Source`] unless said otherwise. With
/// the feature `async`, an `AsyncReader` has the same options, and gives a stream.
#[derive(Clone)]
pub struct Reader<S = Arc<dyn Source>> {
    source: S,
    metadata: Metadata,
    file_name: Option<Arc<str>>,
    options: ReadOptions,
    threads: Threads,
    progress: Progress,
    /// Offset indexes and dictionaries that later reads use again.
    page_cache: PageCache,
    /// The end of the file, if it is still in memory since the footer was read.
    #[cfg(feature = "async")]
    end: Option<crate::io::FileEnd>,
}

impl<S> fmt::Debug for Reader<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader")
            .field("file_name", &self.file_name)
            .field("metadata", &self.metadata)
            .field("options", &self.options)
            .field("threads", &self.threads)
            .finish_non_exhaustive()
    }
}

/// The threads that decode.
#[derive(Debug, Clone, Default)]
pub enum Threads {
    /// All cores, where the file is large enough for more than one.
    #[default]
    Auto,
    /// This many threads. With 1, the thread that asks for batches decodes them, without any
    /// synchronisation.
    Exactly(usize),
    /// A pool of the caller's.
    #[cfg(feature = "parallel")]
    Pool(Arc<rayon::ThreadPool>),
}

impl Reader {
    /// Opens a file by its path.
    ///
    /// # Errors
    /// `Io` if it cannot be read, `Malformed` if it is not a Parquet file.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let name: Arc<str> = path.to_string_lossy().into();
        let file = File::open(path)
            .map_err(|e| Error::io("the file cannot be opened", e).at_file(name.clone()))?;
        Self::with_limits(file, Limits::default())
            .map(|reader| reader.file_name(name.clone()))
            .map_err(|e| e.at_file(name))
    }

    /// Opens anything that gives ranges of bytes: [`bytes::Bytes`], a [`File`], any [`Source`].
    ///
    /// # Errors
    /// As [`Reader::open`].
    pub fn new(source: impl Source + 'static) -> Result<Self> {
        Self::with_limits(source, Limits::default())
    }

    /// As [`Reader::new`], with caps on what the file may ask for.
    ///
    /// # Errors
    /// As [`Reader::open`], and `Limit` if the footer goes over a cap.
    pub fn with_limits(source: impl Source + 'static, limits: Limits) -> Result<Self> {
        Self::open_source(source, limits, None)
    }

    /// Opens an encrypted file by its path.
    ///
    /// ```
    /// # fn main() -> marquetry::Result<()> {
    /// use marquetry::crypt::{Decryption, Key};
    /// # use marquetry::{WriteOptions, Writer, crypt::Encryption};
    /// use marquetry::Reader;
    ///
    /// # let folder = std::env::temp_dir().join(format!("marquetry-keys-{}", std::process::id()));
    /// # std::fs::create_dir_all(&folder).unwrap();
    /// # let path = folder.join("encrypted.parquet");
    /// # let plain = Reader::open("testdata/trips.parquet")?;
    /// # let key = Key::new(b"0123456789012345")?;
    /// # let options = WriteOptions::new().with_encryption(Encryption::new(key));
    /// # let mut writer = Writer::create_with(&path, plain.schema()?, options)?;
    /// # for batch in plain.batches()? { writer.write(&batch?)?; }
    /// # writer.finish()?;
    /// let keys = Decryption::new().with_footer_key(Key::new(b"0123456789012345")?);
    /// let reader = Reader::open_encrypted(&path, &keys)?;
    /// assert_eq!(reader.rows()?, 1_000);
    /// # std::fs::remove_dir_all(&folder).unwrap();
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Reader::open`]; `Crypto` if the key of the footer is missing or wrong, the footer was
    /// changed, or nothing is encrypted (see [`Decryption::with_plaintext_files`]). The key of a
    /// column is looked for when the column is read.
    #[cfg(feature = "encryption")]
    pub fn open_encrypted(path: impl AsRef<Path>, keys: &Decryption) -> Result<Self> {
        let path = path.as_ref();
        let name: Arc<str> = path.to_string_lossy().into();
        let file = File::open(path)
            .map_err(|e| Error::io("the file cannot be opened", e).at_file(name.clone()))?;
        Self::with_keys(file, Limits::default(), keys)
            .map(|reader| reader.file_name(name.clone()))
            .map_err(|e| e.at_file(name))
    }

    /// As [`Reader::with_limits`], of an encrypted file.
    ///
    /// # Errors
    /// As [`Reader::with_limits`] and [`Reader::open_encrypted`].
    #[cfg(feature = "encryption")]
    pub fn with_keys(
        source: impl Source + 'static,
        limits: Limits,
        keys: &Decryption,
    ) -> Result<Self> {
        Self::open_source(source, limits, Some(keys))
    }

    fn open_source(
        source: impl Source + 'static,
        limits: Limits,
        keys: Option<&Decryption>,
    ) -> Result<Self> {
        let _span = trace::open();
        let source: Arc<dyn Source> = Arc::new(source);
        let (footer, file_len) = open_footer(&*source, &limits, keys)?;
        let metadata = Metadata::new(footer, file_len);
        Ok(Self {
            options: ReadOptions { limits, ..ReadOptions::default() },
            ..Self::of(source, metadata)
        })
    }

    /// Opens a file by its path, with metadata that are known from before: its footer is not read
    /// again.
    ///
    /// ```
    /// # fn main() -> marquetry::Result<()> {
    /// use marquetry::Reader;
    ///
    /// let metadata = Reader::open("testdata/trips.parquet")?.metadata().clone();
    /// println!("{} bytes in the cache", metadata.heap_bytes());
    /// let reader = Reader::open_with("testdata/trips.parquet", metadata)?;
    /// assert_eq!(reader.rows()?, 1_000);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `Io` if it cannot be opened; as [`Reader::with_metadata`].
    pub fn open_with(path: impl AsRef<Path>, metadata: Metadata) -> Result<Self> {
        let path = path.as_ref();
        let name: Arc<str> = path.to_string_lossy().into();
        let file = File::open(path)
            .map_err(|e| Error::io("the file cannot be opened", e).at_file(name.clone()))?;
        Self::with_metadata(file, metadata)
            .map(|reader| reader.file_name(name.clone()))
            .map_err(|e| e.at_file(name))
    }

    /// As [`Reader::new`], with metadata that are known from before: nothing is read.
    ///
    /// Whether they are those of this very version of the file is for the caller to know
    /// ([`Metadata::version`]); stale metadata make errors, or rows that the file does not have.
    ///
    /// # Errors
    /// `Usage` if the file is of another length, `Io` if that cannot be found out.
    pub fn with_metadata(source: impl Source + 'static, metadata: Metadata) -> Result<Self> {
        let found = source.len()?;
        if found != metadata.file_len() {
            return Err(Error::usage(format_args!(
                "these are the metadata of a file of {} bytes, and this one has {found}",
                metadata.file_len()
            )));
        }
        Ok(Self::of(Arc::new(source), metadata))
    }
}

impl<S> Reader<S> {
    fn of(source: S, metadata: Metadata) -> Self {
        Self {
            source,
            metadata,
            file_name: None,
            options: ReadOptions::default(),
            threads: Threads::Auto,
            progress: Progress::default(),
            page_cache: PageCache::default(),
            #[cfg(feature = "async")]
            end: None,
        }
    }

    /// Reads these columns only, in this order: names, and dotted paths of nested fields.
    ///
    /// A name that is a column wins over a path; names that hold dots can be given exactly with
    /// [`ReadOptions::projection`].
    ///
    /// # Errors
    /// `Usage` if the file has no such column.
    pub fn project<N: AsRef<str>>(mut self, names: impl IntoIterator<Item = N>) -> Result<Self> {
        let names = names.into_iter().map(|name| name.as_ref().to_owned()).collect::<Vec<_>>();
        if self.options.arrow.target.is_none() {
            // The rest of the plan is made when it is needed, and once.
            for name in &names {
                self.metadata.schema().node_named(name).map_err(|e| self.name(e))?;
            }
        }
        self.options.projection = Projection::Names(names);
        Ok(self)
    }

    /// Reads these row groups only, in this order.
    ///
    /// # Errors
    /// `Usage` if the file has no such row group.
    pub fn row_groups(mut self, row_groups: impl IntoIterator<Item = usize>) -> Result<Self> {
        let row_groups: Vec<usize> = row_groups.into_iter().collect();
        for &row_group in &row_groups {
            self.metadata.row_group_rows(row_group)?;
        }
        self.options.row_groups = Some(row_groups);
        Ok(self)
    }

    /// Reads these rows only, by their numbers in the file; [`Reader::file_rows`] says how many the
    /// selection must speak of.
    ///
    /// Pages that hold none of them are not fetched where the file has a page index.
    ///
    /// # Errors
    /// `Usage` if it does not speak of as many rows as the file has.
    pub fn select(mut self, rows: RowSelection) -> Result<Self> {
        let found = self.file_rows()?;
        if rows.len() != found {
            return Err(self.name(Error::usage(format_args!(
                "a selection of {} rows, and the file has {found}",
                rows.len()
            ))));
        }
        self.options.selection = Some(rows);
        Ok(self)
    }

    /// Reads the rows only for which the predicate is true; a second one is `and`ed.
    ///
    /// The predicate is checked against the schema when the read is planned ([`Reader::schema`],
    /// [`Reader::rows`], [`Reader::batches`] …), because a target schema may still follow;
    /// [`Reader::try_filter`] checks at once.
    ///
    /// Row groups and pages of which the metadata prove that they hold no such row are not read,
    /// nor is the predicate evaluated where they prove that it is true. Of the other columns, only
    /// the rows that are left are decoded where that is less work. Offset and limit count the rows
    /// that pass.
    ///
    /// ```
    /// # fn main() -> marquetry::Result<()> {
    /// use marquetry::{Reader, col};
    ///
    /// let reader = Reader::open("testdata/trips.parquet")?.project(["id"])?;
    /// let reader = reader.filter(col("id").lt(10));
    /// for batch in reader.batches()? {
    ///     println!("{} rows", batch?.num_rows());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn filter(mut self, predicate: Predicate) -> Self {
        self.options.filter = Some(match self.options.filter.take() {
            Some(first) => first.and(predicate),
            None => predicate,
        });
        self
    }

    /// As [`Reader::filter`], and says at once what is wrong with the predicate: a column that the
    /// file, or the target schema where one was set before, does not have, or a literal that is
    /// none of its type.
    ///
    /// ```
    /// # fn main() -> marquetry::Result<()> {
    /// use marquetry::{Reader, col};
    ///
    /// let reader = Reader::open("testdata/trips.parquet")?;
    /// let error = reader.clone().try_filter(col("vendr").eq("a")).expect_err("a typo");
    /// assert!(error.to_string().contains("did you mean \"vendor\"?"));
    /// assert!(reader.try_filter(col("vendor").is_not_null())?.count()? <= 1_000);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `Usage`, as [`Predicate::bind`].
    pub fn try_filter(self, predicate: Predicate) -> Result<Self> {
        let (schema, key_values) = (self.metadata.schema(), self.metadata.key_values());
        predicate.bind(schema, key_values, &self.options.arrow).map_err(|e| self.name(e))?;
        Ok(self.filter(predicate))
    }

    /// Skips this many rows.
    #[must_use]
    pub fn offset(mut self, rows: u64) -> Self {
        self.options.offset = rows;
        self
    }

    /// Reads at most this many rows.
    #[must_use]
    pub fn limit(mut self, rows: u64) -> Self {
        self.options.limit = Some(rows);
        self
    }

    /// Gives batches of at most this many rows, and of fewer where they are wide: see
    /// [`ReadOptions::batch_rows`].
    #[must_use]
    pub fn batch_rows(mut self, rows: usize) -> Self {
        self.options.batch_rows = rows.max(1);
        self
    }

    /// Gives batches of about this many bytes at most: see [`ReadOptions::batch_bytes`].
    #[must_use]
    pub fn batch_bytes(mut self, bytes: usize) -> Self {
        self.options.batch_bytes = bytes.max(1);
        self
    }

    /// Holds at most this many bytes: fetched column chunks, pages, and batches that are not given
    /// out yet.
    #[must_use]
    pub fn memory(mut self, bytes: u64) -> Self {
        self.options.limits.memory_bytes = bytes;
        self
    }

    /// Decodes with this many threads; 1 keeps everything on the thread that asks.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = Threads::Exactly(threads.max(1));
        self
    }

    /// Decodes on a pool of the caller's.
    #[cfg(feature = "parallel")]
    #[must_use]
    pub fn pool(mut self, pool: Arc<rayon::ThreadPool>) -> Self {
        self.threads = Threads::Pool(pool);
        self
    }

    /// Overrides the latency that the source states. Ranges that lie closer than the bytes that
    /// come in the time of a request are read in one request.
    #[must_use]
    pub fn latency(mut self, latency: Latency) -> Self {
        self.options.latency = Some(latency);
        self
    }

    /// Gives strings and bytes as views.
    #[must_use]
    pub fn views(mut self, views: bool) -> Self {
        self.options.arrow.views = views;
        self
    }

    /// Keeps these columns dictionary-encoded.
    #[must_use]
    pub fn dictionaries(mut self, dictionaries: Dictionaries) -> Self {
        self.options.arrow.dictionaries = dictionaries;
        self
    }

    /// Reads INT96 timestamps in this unit. Default: nanoseconds, which end in the year 2262.
    #[must_use]
    pub fn int96(mut self, unit: TimeUnit) -> Self {
        self.options.arrow.int96 = unit;
        self
    }

    /// Reads into this schema: wider types, other orders, columns that the file does not have as
    /// nulls.
    ///
    /// # Errors
    /// `Usage`, naming the column, if a type is not reachable without loss.
    pub fn target(mut self, schema: SchemaRef, match_by: MatchBy) -> Result<Self> {
        self.options.arrow.target = Some(schema);
        self.options.arrow.match_by = match_by;
        self.plan()?;
        Ok(self)
    }

    /// What to do with strings that are not UTF-8: an error (the default), or U+FFFD in their
    /// place.
    #[must_use]
    pub fn lossy_utf8(mut self, lossy: bool) -> Self {
        self.options.utf8 = if lossy { Utf8::Lossy } else { Utf8::Strict };
        self
    }

    /// Does not check that strings are UTF-8.
    #[must_use]
    pub fn trusted_utf8(mut self, trusted: TrustedUtf8) -> Self {
        self.options.utf8 = Utf8::Trusted(trusted);
        self
    }

    /// Whether page checksums are verified where a file has them. Default: yes.
    #[must_use]
    pub fn verify_checksums(mut self, verify: bool) -> Self {
        self.options.verify_checksums = verify;
        self
    }

    /// How VARIANT columns are given: put together, in one shape, as JSON text, or as they are
    /// stored.
    #[must_use]
    pub fn variants(mut self, output: VariantOutput) -> Self {
        self.options.variants = output;
        self
    }

    /// Adds a column of what `path` leads to in the VARIANT column `column`, as `data_type`, called
    /// `name`. Only the leaves are read that it needs: where the part is shredded in all rows, one.
    /// The VARIANT itself is read only if it is projected.
    ///
    /// ```no_run
    /// # fn main() -> marquetry::Result<()> {
    /// use marquetry::Reader;
    /// use marquetry::arrow_schema::DataType;
    ///
    /// let reader = Reader::open("events.parquet")?
    ///     .project(["id"])?
    ///     .variant_get("payload", "$.user.age".parse()?, DataType::Int64, "age");
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn variant_get(
        mut self,
        column: impl Into<String>,
        path: VariantPath,
        data_type: DataType,
        name: impl Into<String>,
    ) -> Self {
        self.options.variant_columns.push(VariantColumn::new(column, path, data_type, name));
        self
    }

    /// Adds a column that says where each row comes from.
    #[must_use]
    pub fn virtual_column(mut self, column: VirtualColumn) -> Self {
        self.options.virtual_columns.push(column);
        self
    }

    /// Uses memory of `pool`, and gives it back to it: for callers that read one file after the
    /// other, or keep many batches.
    #[must_use]
    pub fn buffer_pool(mut self, pool: &BufferPool) -> Self {
        self.options.pool = Some(pool.clone());
        self
    }

    /// Replaces all options.
    #[must_use]
    pub fn options(mut self, options: ReadOptions) -> Self {
        self.options = options;
        self
    }

    /// The name that errors and the file name column give; [`Reader::open`] sets the path.
    #[must_use]
    pub fn file_name(mut self, name: impl Into<Arc<str>>) -> Self {
        self.file_name = Some(name.into());
        self
    }

    /// The options so far.
    pub fn read_options(&self) -> &ReadOptions {
        &self.options
    }

    /// The metadata of the file: the footer, and the page indexes that were loaded. A clone of them
    /// opens the file again.
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// Length of the file, in bytes.
    pub fn file_len(&self) -> u64 {
        self.metadata.file_len()
    }

    /// Where the bytes come from.
    pub fn source(&self) -> &S {
        &self.source
    }

    /// The Arrow schema of the batches.
    ///
    /// # Errors
    /// `Usage` or `Unsupported`, as [`Reader::batches`].
    pub fn schema(&self) -> Result<SchemaRef> {
        Ok(self.plan()?.schema().clone())
    }

    /// Rows that [`Reader::batches`] will give, from the metadata alone; with a filter, at most so
    /// many, and [`Reader::count`] says how many.
    ///
    /// # Errors
    /// `Malformed` if the metadata contradict themselves.
    pub fn rows(&self) -> Result<u64> {
        let rows = self.plan()?.rows();
        if self.options.filter.is_none() {
            return Ok(rows);
        }
        let rows = rows.saturating_sub(self.options.offset);
        Ok(rows.min(self.options.limit.unwrap_or(u64::MAX)))
    }

    /// Rows of the file, whatever the options select.
    ///
    /// # Errors
    /// `Malformed` if the metadata contradict themselves.
    pub fn file_rows(&self) -> Result<u64> {
        self.metadata.rows().map_err(|e| self.name(e))
    }

    /// Counters of the batches that are being read.
    pub fn progress(&self) -> &Progress {
        &self.progress
    }

    /// What the read will do.
    ///
    /// # Errors
    /// `Usage` if the options name what the file does not have, `Unsupported` if a column cannot be
    /// mapped to Arrow.
    pub fn plan(&self) -> Result<Plan> {
        let _span = trace::plan(self.metadata.row_groups());
        self.metadata
            .plan(&self.options, self.file_len(), self.file_name.clone())
            .map(|plan| plan.with_page_cache(&self.page_cache))
            .map_err(|e| self.name(e))
    }

    /// The threads for a plan: none but the caller's where there is little to do.
    ///
    /// One batch of one column is one piece of work: another thread would do it no sooner, and what
    /// one thread allocates and another frees costs page faults.
    fn pool_for(&self, plan: &Plan) -> Result<Option<Pool>> {
        let batches = plan.rows().div_ceil(self.options.batch_rows as u64);
        let alone = plan.leaves().len() * plan.ranges().len() < 2;
        if plan.leaves().is_empty() || (alone && (batches < 2 || self.file_len() < SPLIT_FROM)) {
            return Ok(None);
        }
        match &self.threads {
            Threads::Exactly(1) => Ok(None),
            Threads::Exactly(n) => Pool::new(*n).map(Some),
            #[cfg(feature = "parallel")]
            Threads::Pool(pool) => Ok(Some(Pool::Own(pool.clone()))),
            Threads::Auto => {
                let small = self.file_len() < PARALLEL_FROM || plan.leaves().is_empty();
                Ok((!small && Pool::Global.threads() > 1).then_some(Pool::Global))
            }
        }
    }

    /// For `take`: a reader of the rows in `rows`, each once, and the place of each of `rows` among
    /// them.
    fn taking(&self, rows: &[u64]) -> Result<(Self, Vec<u64>)>
    where
        S: Clone,
    {
        let mut sorted = rows.to_vec();
        sorted.sort_unstable();
        sorted.dedup();
        let len = self.file_rows()?;
        if let Some(row) = sorted.last().filter(|row| **row >= len) {
            let last = match len.checked_sub(1) {
                Some(last) => format!("its {len} rows are 0 to {last}"),
                None => "it has no rows".to_owned(),
            };
            let error = format_args!("row {row} was asked for, which lies beyond the file: {last}");
            return Err(self.name(Error::usage(error)));
        }
        let selection =
            RowSelection::from_rows(len, sorted.iter().copied()).map_err(|e| self.name(e))?;
        let mut reader = self.clone();
        let options = &mut reader.options;
        (options.row_groups, options.offset, options.limit) = (None, 0, None);
        (options.filter, options.part) = (None, None);
        options.selection = Some(selection);
        let place = |row: &u64| sorted.partition_point(|found| found < row) as u64;
        let places = rows.iter().map(place).collect();
        Ok((reader, places))
    }

    /// The row groups and leaves that the options select.
    fn index_wants(&self) -> Result<(Vec<usize>, Vec<usize>)> {
        let row_groups = self.options.chosen_row_groups(self.metadata.row_groups());
        let row_groups = row_groups.into_iter().map(|(row_group, _)| row_group).collect();
        let options = &self.options;
        let everything = matches!(options.projection, Projection::All)
            && options.arrow.target.is_none()
            && options.filter.is_none();
        let leaves = match everything {
            true => (0..self.metadata.schema().leaves_len()).collect(),
            false => self.plan()?.leaves().iter().map(|leaf| leaf.leaf.index).collect::<Vec<_>>(),
        };
        Ok((row_groups, leaves))
    }

    /// A reader of the same rows that gives no columns.
    fn counting(&self) -> Self
    where
        S: Clone,
    {
        let mut reader = self.clone();
        reader.options.projection = Projection::names::<String>([]);
        reader.options.virtual_columns.clear();
        reader.options.variant_columns.clear();
        reader.options.counting = true;
        reader
    }

    pub(crate) fn name(&self, error: Error) -> Error {
        match &self.file_name {
            Some(name) => error.at_file(name.clone()),
            None => error,
        }
    }
}

impl Reader {
    /// Rows that [`Reader::batches`] will give. With a filter, what it needs is read, but not where
    /// the metadata say enough.
    ///
    /// # Errors
    /// As [`Reader::batches`] and its batches.
    pub fn count(&self) -> Result<u64> {
        if self.options.filter.is_none() {
            return self.rows();
        }
        let mut reader = self.counting();
        let (offset, limit) = (reader.options.offset, reader.options.limit);
        // Row groups whose rows all pass, as the metadata prove, are not read.
        let plan = reader.plan()?;
        let proven = plan.ranges().iter().filter(|range| range.is_proven()).map(RowRange::count);
        let mut rows = proven.fold(0u64, u64::saturating_add);
        let doubtful = plan.ranges().iter().filter(|range| !range.is_proven());
        let doubtful: Vec<usize> = doubtful.map(|range| range.row_group).collect();
        match &reader.options.part {
            Some(part) => {
                let of_doubtful = part.iter().filter(|(row_group, _)| doubtful.contains(row_group));
                reader.options.part = Some(of_doubtful.cloned().collect());
            }
            None => reader.options.row_groups = Some(doubtful),
        }
        // Offset and limit count all rows that pass.
        let wanted = limit.map(|limit| limit.saturating_add(offset).saturating_sub(rows));
        (reader.options.offset, reader.options.limit) = (0, wanted);
        let mut batches = reader.batches()?;
        while let Some(batch) = batches.next_batch()? {
            rows = rows.saturating_add(batch.num_rows() as u64);
        }
        Ok(rows.saturating_sub(offset).min(limit.unwrap_or(u64::MAX)))
    }

    /// Reads rows by their numbers in the file, in any order, and repeatedly if asked: one batch,
    /// its rows in the order of `rows`.
    ///
    /// Each page is read once. If the file has a page index, only pages that hold a row are read.
    /// Later reads of this reader and its clones use again the page indexes that were read, and
    /// dictionaries that were decompressed twice: at most 32 MiB in all. Selection, filter, row
    /// groups, offset and limit of this reader do not count here.
    ///
    /// ```
    /// # fn main() -> marquetry::Result<()> {
    /// let reader = marquetry::Reader::open("testdata/trips.parquet")?;
    /// let batch = reader.project(["id"])?.take(&[700, 3, 3])?;
    /// assert_eq!(batch.num_rows(), 3);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `Usage` if the file has no such row; else as [`Reader::batches`] and its batches.
    pub fn take(&self, rows: &[u64]) -> Result<RecordBatch> {
        let (reader, places) = self.taking(rows)?;
        let mut batches = reader.batches()?;
        let mut found = Vec::new();
        while let Some(batch) = batches.next_batch()? {
            found.push(batch);
        }
        row_filter::take(&batches.schema, &found, &places).map_err(|e| self.name(e))
    }

    /// The page index of a column chunk, as it is written: each half is `None` if the file does not
    /// have it.
    ///
    /// Fetches it, unless it was loaded ([`Reader::load_page_indexes`]); for many chunks, load them
    /// first.
    ///
    /// # Errors
    /// `Usage` if there is no such chunk, `Malformed` if an index lies outside the file or is not
    /// what the format says, `Io`.
    pub fn page_index(&self, row_group: usize, leaf: usize) -> Result<PageIndex> {
        let read = || -> Result<PageIndex> {
            let places = self.metadata.index().index_places(row_group, [leaf])?;
            let places = places.first().copied().unwrap_or_default();
            let fetch = |range: Option<Range<u64>>| -> Result<Option<Bytes>> {
                let Some(range) = range else { return Ok(None) };
                match self.metadata.loaded(&range) {
                    Some(bytes) => Ok(Some(bytes)),
                    None => read_exactly(&*self.source, range).map(Some),
                }
            };
            let file_len = self.metadata.file_len();
            let offsets = fetch(offset_index_range(&places, file_len)?)?;
            let columns = fetch(column_index_range(&places, file_len)?)?;
            let footer = self.metadata.footer();
            let chunk = footer.column_chunk_ref(row_group, leaf)?;
            let opener = footer.chunk_decryptor(row_group, leaf, &chunk)?;
            let opener = opener.as_ref();
            let offsets = offsets.as_ref().map(|bytes| opened(opener, Module::OffsetIndex, bytes));
            let columns = columns.as_ref().map(|bytes| opened(opener, Module::ColumnIndex, bytes));
            let (offsets, columns) = (offsets.transpose()?, columns.transpose()?);
            Ok(PageIndex {
                offset_index: decode(offsets.as_deref())?,
                column_index: decode(columns.as_deref())?,
            })
        };
        read().map_err(|e| self.name(e.at_row_group(row_group)))
    }

    /// The pages of a column chunk as they are stored: where they lie, and what their headers say.
    /// The chunk is fetched, and nothing of it is decompressed. Headers of an encrypted column are
    /// decrypted.
    ///
    /// ```
    /// # fn main() -> marquetry::Result<()> {
    /// let reader = marquetry::Reader::open("testdata/trips.parquet")?;
    /// for page in reader.stored_pages(0, 0)? {
    ///     let page = page?;
    ///     println!("{} at byte {}", page.header.r#type, page.offset);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `Usage` if there is no such chunk, `Malformed` if its metadata are broken, `Crypto` if its
    /// key is missing, `Limit(Memory)` if it is larger than the memory, `Io`.
    pub fn stored_pages(&self, row_group: usize, leaf: usize) -> Result<StoredPages> {
        let read = || {
            let footer = self.metadata.footer();
            let limits = &self.options.limits;
            let walk = ChunkWalk::new(footer, self.file_len(), row_group, leaf, limits)?;
            let len = walk.range.end - walk.range.start;
            let len = usize::try_from(len).unwrap_or(usize::MAX);
            let memory = Budget::new(limits.memory_bytes).take_for("a column chunk", len)?;
            let bytes = read_exactly(&*self.source, walk.range.clone())?;
            Ok(walk.pages(bytes, memory))
        };
        read().map_err(|e| self.name(e))
    }

    /// The statistics of a column, one row for each row group of the file: bounds as Arrow arrays
    /// of the type that the column is read as. The column is named as in [`Reader::project`], down
    /// to a leaf. Nothing is fetched.
    ///
    /// See [`ColumnStatistics`] for an example.
    ///
    /// # Errors
    /// `Usage` if the file has no such column; as [`Metadata::column_statistics`].
    pub fn column_statistics(&self, column: &str) -> Result<ColumnStatistics> {
        let leaf = self.metadata.schema().leaf_named(column).map_err(|e| self.name(e))?;
        let found = self.metadata.column_statistics(leaf, &self.options.arrow);
        found.map_err(|e| self.name(e))
    }

    /// As [`Reader::column_statistics`], one row for each data page. Fetches the page indexes of
    /// the column, unless they were loaded.
    ///
    /// ```
    /// # fn main() -> marquetry::Result<()> {
    /// let reader = marquetry::Reader::open("testdata/trips.parquet")?;
    /// let pages = reader.page_statistics("id")?;
    /// assert_eq!(pages.row_count.values().iter().sum::<u64>(), reader.file_rows()?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Reader::column_statistics`]; `Limit` if the indexes are too long, `Io`.
    pub fn page_statistics(&self, column: &str) -> Result<ColumnStatistics> {
        let leaf = self.metadata.schema().leaf_named(column).map_err(|e| self.name(e))?;
        let mut metadata = self.metadata.clone();
        let groups = 0..metadata.row_groups();
        let limits = &self.options.limits;
        load_indexes(&*self.source, &mut metadata, groups, [leaf], limits)
            .and_then(|()| metadata.page_statistics(leaf, &self.options.arrow))
            .map_err(|e| self.name(e))
    }

    /// Loads the page indexes of the columns and row groups that the options select, in few reads.
    /// They stay in the [`Metadata`]: neither this reader nor others that are opened with the
    /// metadata fetch them again.
    ///
    /// ```
    /// # fn main() -> marquetry::Result<()> {
    /// let mut reader = marquetry::Reader::open("testdata/trips.parquet")?.project(["id"])?;
    /// reader.load_page_indexes()?;
    /// let index = reader.metadata().page_index(0, 0)?;
    /// println!("{} pages", index.offset_index.map_or(0, |index| index.page_locations.len()));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Reader::plan`]; `Malformed` if a column chunk is broken, `Limit` if the indexes are too
    /// long, `Io`.
    pub fn load_page_indexes(&mut self) -> Result<()> {
        let (row_groups, leaves) = self.index_wants()?;
        let (options, leaves) = (&self.options, leaves.iter().copied());
        load_indexes(&*self.source, &mut self.metadata, row_groups, leaves, &options.limits)
            .map_err(|e| match &self.file_name {
                Some(name) => e.at_file(name.clone()),
                None => e,
            })
    }

    /// What the read will do: which row groups and pages are left, and what pruned the others,
    /// bytes and requests. Fetches indexes, as the read will.
    ///
    /// # Errors
    /// As [`Reader::plan`], and whatever is wrong with the metadata of the row groups.
    pub fn explain(&self) -> Result<Explanation> {
        // Without what this reader has read before, so that the answer is always the same.
        let plan = self.plan()?.with_page_cache(&PageCache::default());
        Explanation::new(self.indexed_source(), &plan).map_err(|e| self.name(e))
    }

    /// Reads: gives the batches in order.
    ///
    /// # Errors
    /// As [`Reader::plan`]. Faults of the data come with the batches.
    pub fn batches(&self) -> Result<Batches> {
        let plan = self.plan()?;
        let schema = plan.schema().clone();
        let gathered = BatchOutput::new(&plan);
        let driver = match self.pool_for(&plan)? {
            None => Driver::Serial(Box::new(Serial::new(
                self.indexed_source(),
                plan,
                self.progress.clone(),
            ))),
            Some(pool) => Driver::Parallel(Box::new(Parallel::new(
                self.indexed_source(),
                plan,
                pool,
                self.progress.clone(),
            ))),
        };
        let file_name = self.file_name.clone();
        Ok(Batches { schema, driver, gathered, file_name })
    }

    /// The source, with the page indexes that are loaded served from memory.
    fn indexed_source(&self) -> Arc<dyn Source> {
        if self.metadata.index_bytes() == 0 || self.source.in_memory() {
            return self.source.clone();
        }
        Arc::new(Indexed::new(self.source.clone(), self.metadata.clone()))
    }
}

/// Minimum bytes of a file that several threads decode, because one thread decodes a smaller one
/// before others are woken.
const PARALLEL_FROM: u64 = 256 << 10;

/// Minimum bytes of a file that several threads decode although only one column chunk is read.
const SPLIT_FROM: u64 = 48 << 20;

/// The batches of a read, in order. After an error there are no more.
///
/// Dropping it stops the work that is under way.
pub struct Batches {
    schema: SchemaRef,
    driver: Driver,
    gathered: BatchOutput,
    file_name: Option<Arc<str>>,
}

impl fmt::Debug for Batches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batches")
            .field("schema", &self.schema)
            .field("file_name", &self.file_name)
            .finish_non_exhaustive()
    }
}

enum Driver {
    Serial(Box<Serial>),
    Parallel(Box<Parallel>),
    Done,
}

impl Batches {
    /// The schema of the batches.
    pub fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    /// The next batch, with an error of this crate; `None` after the last.
    ///
    /// # Errors
    /// Whatever is wrong with the data, and where.
    pub fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        let next = loop {
            if let Some(next) = self.gathered.end() {
                break next;
            }
            let next = self.driver.next_batch();
            if let Some(given) = self.gathered.take(next) {
                break given;
            }
        };
        if self.gathered.is_done() {
            self.driver = Driver::Done;
        }
        next.map_err(|e| match &self.file_name {
            Some(name) => e.at_file(name.clone()),
            None => e,
        })
    }
}

/// Between the driver and the caller: with a filter, joins small batches, and applies offset and
/// limit to the rows that pass.
struct BatchOutput {
    /// Where the rows that pass a filter wait.
    gather: Option<Coalescer>,
    /// The last result, once the driver is at its end: an error is given once, then `None`.
    end: Option<Result<()>>,
}

impl BatchOutput {
    fn new(plan: &Plan) -> Self {
        let gather = plan.options().filter.is_some().then(|| Coalescer::new(plan));
        Self { gather, end: None }
    }

    /// Whether the driver is not needed any more.
    fn is_done(&self) -> bool {
        self.end.is_some() || self.gather.as_ref().is_some_and(Coalescer::is_full)
    }

    /// The next result, if it does not come from the driver; `None` if it does.
    fn end(&mut self) -> Option<Result<Option<RecordBatch>>> {
        if self.end.is_none() && self.gather.as_ref().is_some_and(Coalescer::is_full) {
            return self.take(Ok(None));
        }
        let end = self.end.as_mut()?;
        Some(std::mem::replace(end, Ok(())).map(|()| None))
    }

    /// Takes what the driver gave, `Ok(None)` at its end, and says what to give out: `None` if
    /// nothing yet.
    fn take(&mut self, next: Result<Option<RecordBatch>>) -> Option<Result<Option<RecordBatch>>> {
        let end = match (next, &mut self.gather) {
            (Ok(Some(batch)), None) => return Some(Ok(Some(batch))),
            (Ok(Some(batch)), Some(gather)) => match gather.push(batch) {
                Ok(None) => return None,
                Ok(given) => return Some(Ok(given)),
                Err(e) => Err(e),
            },
            (Ok(None), _) => Ok(()),
            (Err(e), _) => Err(e),
        };
        self.end = Some(end);
        // Rows before the fault are given first.
        match self.gather.take().map(|mut gather| gather.take()) {
            Some(Ok(Some(waiting))) => Some(Ok(Some(waiting))),
            Some(Err(e)) => {
                self.end = Some(Ok(()));
                Some(Err(e))
            }
            Some(Ok(None)) | None => self.end(),
        }
    }
}

impl Driver {
    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        match self {
            Self::Serial(serial) => serial.next_batch(),
            Self::Parallel(parallel) => parallel.next_batch(),
            Self::Done => Ok(None),
        }
    }
}

impl Iterator for Batches {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_batch().map_err(ArrowError::from).transpose()
    }
}

impl RecordBatchReader for Batches {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}
