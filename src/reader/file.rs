//! [`Reader`]: an open file, and the options that were set so far.

use std::fmt;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use arrow_schema::SchemaRef;

use crate::crypt::Decryption;
use crate::error::{Error, Result};
use crate::io::{Pool, Source, open_footer};
use crate::limits::Limits;
use crate::memory;
use crate::read::{Metadata, OnDamage, PageCache, Plan, Progress, ReadOptions, ReadWiring};
use crate::schema::Projection;
use crate::selection::RowSelection;
use crate::trace;

/// An open Parquet file, and the options of a read of it.
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
/// The type parameter is the source of the bytes: a blocking [`Source`] by default. With the
/// feature `async`, an `AsyncReader` has the same options, and returns a stream.
#[derive(Clone)]
pub struct Reader<S = Arc<dyn Source>> {
    pub(super) source: S,
    pub(super) metadata: Metadata,
    pub(super) file_name: Option<Arc<str>>,
    pub(super) options: ReadOptions,
    pub(super) wiring: ReadWiring,
    pub(super) threads: Threads,
    pub(super) progress: Progress,
    /// Offset indexes and dictionaries that later reads use again.
    pub(super) page_cache: PageCache,
    /// The end of the file, if it is still in memory since the footer was read.
    #[cfg(feature = "async")]
    pub(super) end: Option<crate::io::FileEnd>,
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
#[non_exhaustive]
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

impl Threads {
    /// The pool, which `auto` chooses where the caller does not; `None` is the calling thread.
    pub(crate) fn pool(&self, auto: impl FnOnce() -> Option<Pool>) -> Result<Option<Pool>> {
        match self {
            Self::Auto => Ok(auto()),
            Self::Exactly(1) => Ok(None),
            Self::Exactly(n) => Pool::new(*n).map(Some),
            #[cfg(feature = "parallel")]
            Self::Pool(pool) => Ok(Some(Pool::Own(pool.clone()))),
        }
    }
}

/// Adds the name of the file to a reader, or to the error of opening it.
pub(super) trait WithFileName {
    fn named(self, name: Arc<str>) -> Self;
}

impl<S> WithFileName for Result<Reader<S>> {
    fn named(self, name: Arc<str>) -> Self {
        match self {
            Ok(reader) => Ok(reader.file_name(name)),
            Err(e) => Err(e.at_file(name)),
        }
    }
}

impl Reader {
    /// Opens a file by its path.
    ///
    /// # Errors
    /// `Io` if it cannot be read, `Malformed` if it is not a Parquet file.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::at_path(path.as_ref(), |file| Self::with_limits(file, Limits::default()))
    }

    /// Opens anything that provides ranges of bytes: [`bytes::Bytes`], a [`File`], any [`Source`].
    ///
    /// # Errors
    /// As [`Reader::open`].
    pub fn new(source: impl Source + 'static) -> Result<Self> {
        Self::with_limits(source, Limits::default())
    }

    /// Like [`Reader::new`], with limits of what the file may make a read allocate.
    ///
    /// # Errors
    /// As [`Reader::open`], and `Limit` if the footer exceeds a limit.
    pub fn with_limits(source: impl Source + 'static, limits: Limits) -> Result<Self> {
        Self::open_source(source, limits, None)
    }

    /// Opens an encrypted file by its path.
    ///
    /// ```
    /// # fn main() -> marquetry::Result<()> {
    /// # if !cfg!(feature = "encryption") { return Ok(()); }
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
    /// column is retrieved when the column is read.
    pub fn open_encrypted(path: impl AsRef<Path>, keys: &Decryption) -> Result<Self> {
        Self::at_path(path.as_ref(), |file| Self::with_keys(file, Limits::default(), keys))
    }

    /// Like [`Reader::with_limits`], for an encrypted file.
    ///
    /// # Errors
    /// As [`Reader::with_limits`] and [`Reader::open_encrypted`].
    pub fn with_keys(
        source: impl Source + 'static,
        limits: Limits,
        keys: &Decryption,
    ) -> Result<Self> {
        Self::open_source(source, limits, Some(keys))
    }

    fn at_path(path: &Path, open: impl FnOnce(File) -> Result<Self>) -> Result<Self> {
        let file = File::open(path).map_err(|e| Error::io("the file cannot be opened", e));
        file.and_then(open).named(path.to_string_lossy().into())
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
            ..Self::from_metadata(source, metadata)
        })
    }

    /// Opens a file by its path, with known metadata: its footer is not read again.
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
        Self::at_path(path.as_ref(), |file| Self::with_metadata(file, metadata))
    }

    /// Like [`Reader::new`], with known metadata: nothing is read.
    ///
    /// The caller must know whether they belong to this version of the file
    /// ([`Metadata::version`]); stale metadata cause errors, or rows that the file does not have.
    ///
    /// # Errors
    /// `Usage` if the file has another length, `Io` if its length cannot be determined.
    pub fn with_metadata(source: impl Source + 'static, metadata: Metadata) -> Result<Self> {
        let found = source.len()?;
        if found != metadata.file_len() {
            return Err(Error::usage(format_args!(
                "these are the metadata of a file of {} bytes, and this one has {found}",
                metadata.file_len()
            )));
        }
        Ok(Self::from_metadata(Arc::new(source), metadata))
    }
}

impl<S> Reader<S> {
    pub(super) fn from_metadata(source: S, metadata: Metadata) -> Self {
        Self {
            source,
            metadata,
            file_name: None,
            options: ReadOptions::default(),
            wiring: ReadWiring::default(),
            threads: Threads::Auto,
            progress: Progress::default(),
            page_cache: PageCache::default(),
            #[cfg(feature = "async")]
            end: None,
        }
    }

    /// Sets the wiring of the read to a driver. A part of a divided read stays that part.
    #[cfg(any(feature = "engine", test))]
    #[must_use]
    pub fn wired(mut self, wiring: ReadWiring) -> Self {
        let ReadWiring { part, counting, .. } = self.wiring;
        self.wiring = ReadWiring { part, counting, ..wiring };
        self
    }

    /// The threads that decode.
    #[cfg(feature = "check")]
    pub(crate) fn threads_chosen(&self) -> &Threads {
        &self.threads
    }

    /// Makes a budget for reads of this file with the options so far, which several of them can
    /// share.
    #[cfg(feature = "engine")]
    pub fn new_budget(&self) -> crate::limits::Budget {
        self.metadata.footer().budget(&self.options)
    }

    /// The options so far.
    pub fn read_options(&self) -> &ReadOptions {
        &self.options
    }

    /// The metadata of the file: the footer, and the page indexes that were loaded. A clone of it
    /// opens the file again.
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// Length of the file, in bytes.
    pub fn file_len(&self) -> u64 {
        self.metadata.file_len()
    }

    /// The source of the bytes.
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

    /// Number of rows that [`Reader::batches`] will return, from the metadata alone; with a filter
    /// their maximum number, and [`Reader::count`] counts them.
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

    /// Number of rows of the file, whatever the options select.
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

    /// Plans the read.
    ///
    /// # Errors
    /// `Usage` if the options name something that the file does not have, `Unsupported` if a column
    /// cannot be mapped to Arrow.
    pub fn plan(&self) -> Result<Plan> {
        let _span = trace::plan(self.metadata.row_groups());
        self.metadata
            .plan_wired(&self.options, &self.wiring, self.file_len(), self.file_name.clone())
            .map(|plan| plan.with_page_cache(&self.page_cache))
            .map_err(|e| self.name(e))
    }

    /// The threads for a plan: none but the caller's where there is little to do.
    ///
    /// One batch of one column is one piece of work: another thread would do it no sooner, and what
    /// one thread allocates and another frees costs page faults.
    pub(super) fn pool_for(&self, plan: &Plan) -> Result<Option<Pool>> {
        let batches = plan.rows().div_ceil(self.options.batch_rows as u64);
        let alone = plan.leaves().len() * plan.ranges().len() < 2;
        if plan.leaves().is_empty() || (alone && (batches < 2 || self.file_len() < SPLIT_FROM)) {
            return Ok(None);
        }
        let is_large = self.file_len() >= PARALLEL_FROM;
        self.threads.pool(|| (is_large && Pool::Global.has_threads()).then_some(Pool::Global))
    }

    /// For `take`: a reader of the rows in `rows`, each once, and the place of each of `rows` among
    /// them.
    pub(super) fn taking(&self, rows: &[u64]) -> Result<(Self, Vec<u64>)>
    where
        S: Clone,
    {
        if self.options.on_damage != OnDamage::Fail {
            return Err(self.refuses_damage("rows by their numbers"));
        }
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
        (options.filter, options.selection) = (None, Some(selection));
        options.not_deleted = None;
        reader.wiring.part = None;
        let place = |row: &u64| sorted.partition_point(|found| found < row) as u64;
        let places = rows.iter().map(place).collect();
        Ok((reader, places))
    }

    /// A reader of these rows of these row groups, which come from a plan of this reader.
    pub(super) fn of_rows(mut self, rows: Arc<[(usize, RowSelection)]>) -> Self {
        let options = &mut self.options;
        (options.row_groups, options.selection) = (None, None);
        (options.not_deleted, options.offset, options.limit) = (None, 0, None);
        self.wiring.part = Some(rows);
        self
    }

    /// The row groups and leaves that the options select.
    pub(super) fn index_wants(&self) -> Result<(Vec<usize>, Vec<usize>)> {
        let row_groups = self.wiring.chosen_row_groups(&self.options, self.metadata.row_groups());
        let row_groups = memory::collected(row_groups.into_iter().map(|(row_group, _)| row_group))?;
        let options = &self.options;
        let everything = matches!(options.projection, Projection::All)
            && options.arrow.target.is_none()
            && options.filter.is_none();
        let leaves = match everything {
            true => memory::collected(0..self.metadata.schema().leaves_len())?,
            false => {
                memory::collected(self.plan()?.leaves().iter().map(|column| column.leaf.index))?
            }
        };
        Ok((row_groups, leaves))
    }

    /// A reader of the same rows without columns.
    pub(super) fn counting(&self) -> Self
    where
        S: Clone,
    {
        let mut reader = self.clone();
        reader.options.projection = Projection::names::<String>([]);
        reader.options.virtual_columns.clear();
        reader.options.variant_columns.clear();
        reader.wiring.counting = true;
        reader
    }

    /// The error of reads that keep no account.
    pub(super) fn refuses_damage(&self, what: &'static str) -> Error {
        let text = format_args!("{what} keep no account; use Reader::batches");
        self.name(Error::unsupported("skipping damaged row groups", text))
    }

    pub(crate) fn name(&self, error: Error) -> Error {
        match &self.file_name {
            Some(name) => error.at_file(name.clone()),
            None => error,
        }
    }
}

/// Minimum bytes of a file that several threads decode, because one thread decodes a smaller one
/// before others are woken.
pub(super) const PARALLEL_FROM: u64 = 256 << 10;

/// Minimum bytes of a file that several threads decode although only one column chunk is read.
const SPLIT_FROM: u64 = 48 << 20;
