//! [`Reader`]: a file, and what is wanted of it.

mod batch_output;
mod batches;
mod builder;
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

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use bytes::Bytes;

use crate::crypt::{Decryption, Module, opened};
use crate::error::{Error, Result};
use crate::io::{
    Explanation, Indexed, Pool, Progress, Source, load_indexes, open_footer, read_exactly,
};
use crate::limits::{Budget, Limits};
use crate::predicate::ColumnStatistics;
use crate::read::row_filter;
use crate::read::{
    ChunkWalk, Metadata, PageCache, PageIndex, Plan, ReadOptions, RowRange, StoredPages,
    column_index_range, decode, offset_index_range,
};
use crate::schema::Projection;
use crate::selection::RowSelection;
use crate::trace;

pub use batches::Batches;
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
            false => {
                self.plan()?.leaves().iter().map(|column| column.leaf.index).collect::<Vec<_>>()
            }
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
        row_filter::take(&batches.schema(), &found, &places).map_err(|e| self.name(e))
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
        let metadata = &mut self.metadata;
        let loaded = load_indexes(&*self.source, metadata, row_groups, leaves, &options.limits);
        loaded.map_err(|e| self.name(e))
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
