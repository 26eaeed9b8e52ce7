//! [`Dataset`]: several files of one schema that are read one after the other, or divided into
//! parts.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use arrow_array::{RecordBatch, RecordBatchOptions, RecordBatchReader};
use arrow_schema::{ArrowError, Field, Schema, SchemaRef};

use super::file::WithFileName;
use super::parts::{RowCost, divide, rows_of};
use super::{Batches, Reader};
use crate::error::{Error, Result};
use crate::io::{ReopenedFile, Source, find_files};
use crate::predicate::Predicate;
use crate::read::{OnDamage, Plan, Progress};
use crate::schema::{MatchBy, NameMapping};

/// Several files that are read as one: their rows follow in the order of the files.
///
/// ```
/// # fn main() -> marquetry::Result<()> {
/// use marquetry::{Dataset, col};
///
/// let files = ["testdata/trips.parquet", "testdata/trips.parquet"];
/// let dataset = Dataset::open(files)?.project(["id", "fare"])?.filter(col("id").lt(10));
/// let streams = dataset.streams(4)?; // independent, about equal, to be sent to any thread
/// # let mut rows = 0;
/// for mut stream in streams {
///     while let Some(batch) = stream.next_batch()? {
///         println!("{} rows", batch.num_rows());
///         # rows += batch.num_rows();
///     }
/// }
/// # assert!(0 < rows as u64 && rows as u64 <= dataset.rows()?);
/// # Ok(())
/// # }
/// ```
///
/// All files must have the same columns: names, types and order. If they differ,
/// [`Dataset::target`] sets the schema that they are read into. [`Dataset::map`] sets other options
/// of each file, as on a [`Reader`].
#[derive(Clone)]
pub struct Dataset<S = Arc<dyn Source>> {
    readers: Vec<Reader<S>>,
    offset: u64,
    limit: Option<u64>,
    progress: Progress,
    /// The schema of the batches, once it is known.
    schema: OnceLock<SchemaRef>,
}

impl<S> fmt::Debug for Dataset<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dataset")
            .field("readers", &self.readers)
            .field("offset", &self.offset)
            .field("limit", &self.limit)
            .finish_non_exhaustive()
    }
}

impl Dataset {
    /// Opens files by their paths, and reads their footers. The files do not stay open; a file that
    /// changes before it is read is an error.
    ///
    /// A folder stands for the Parquet files in it and in its folders, and a path that does not
    /// exist may be a pattern: `*` and `?` for any text and letter of a name, `[a-z]` for some
    /// letters, `**` for any folders. These files come in the order of their paths; names that
    /// begin with `_` or `.` are left out. [`Dataset::with_partitions`] adds the keys of folders.
    ///
    /// ```
    /// # fn main() -> marquetry::Result<()> {
    /// let dataset = marquetry::Dataset::open(["testdata/trips.parq*"])?;
    /// assert_eq!(dataset.rows()?, 1_000);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Reader::open`]; `Usage` if a folder has no Parquet file, or nothing matches a pattern.
    pub fn open<P: AsRef<Path>>(paths: impl IntoIterator<Item = P>) -> Result<Self> {
        let open = |path: PathBuf| {
            let name: Arc<str> = path.to_string_lossy().into();
            ReopenedFile::new(&path).and_then(Reader::new).named(name)
        };
        let mut readers = Vec::new();
        for path in paths {
            for file in find_files(path.as_ref())? {
                readers.push(open(file)?);
            }
        }
        Ok(Self::new(readers))
    }
}

impl<S> Dataset<S> {
    /// Makes a dataset of files that are open already, with the options of each.
    pub fn new(readers: impl IntoIterator<Item = Reader<S>>) -> Self {
        let progress = Progress::default();
        let readers =
            readers.into_iter().map(|reader| Reader { progress: progress.of_part(), ..reader });
        let schema = OnceLock::new();
        Self { readers: readers.collect(), offset: 0, limit: None, progress, schema }
    }

    /// Changes the options of each file.
    ///
    /// ```
    /// # fn main() -> marquetry::Result<()> {
    /// let dataset = marquetry::Dataset::open(["testdata/trips.parquet"])?;
    /// let dataset = dataset.map(|reader| Ok(reader.views(true).batch_rows(1_000)))?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The first error of `with`.
    pub fn map(mut self, with: impl FnMut(Reader<S>) -> Result<Reader<S>>) -> Result<Self> {
        self.readers = self.readers.into_iter().map(with).collect::<Result<_>>()?;
        self.schema = OnceLock::new();
        Ok(self)
    }

    /// Reads these columns only, as [`Reader::project`].
    ///
    /// # Errors
    /// `Usage` if a file has no such column.
    pub fn project<N: AsRef<str>>(self, names: impl IntoIterator<Item = N>) -> Result<Self> {
        let names: Vec<String> = names.into_iter().map(|name| name.as_ref().to_owned()).collect();
        self.map(|reader| reader.project(&names))
    }

    /// Reads only the rows for which the predicate is true, as [`Reader::filter`].
    #[must_use]
    pub fn filter(mut self, predicate: Predicate) -> Self {
        let with = |reader: Reader<S>| reader.filter(predicate.clone());
        self.readers = self.readers.into_iter().map(with).collect();
        self
    }

    /// Gives field ids to the fields of files that have none, as [`Reader::name_mapping`].
    #[must_use]
    pub fn name_mapping(mut self, mapping: NameMapping) -> Self {
        let with = |reader: Reader<S>| reader.name_mapping(mapping.clone());
        self.readers = self.readers.into_iter().map(with).collect();
        self
    }

    /// Reads all files into this schema, as [`Reader::target`].
    ///
    /// # Errors
    /// `Usage`, naming the file and the column, if a type cannot be reached without loss.
    pub fn target(self, schema: SchemaRef, match_by: MatchBy) -> Result<Self> {
        self.map(|reader| reader.target(schema.clone(), match_by))
    }

    /// Skips this many rows, counted over all files.
    #[must_use]
    pub fn offset(mut self, rows: u64) -> Self {
        self.offset = rows;
        self
    }

    /// Reads at most this many rows of all files.
    #[must_use]
    pub fn limit(mut self, rows: u64) -> Self {
        self.limit = Some(rows);
        self
    }

    /// Holds at most this many bytes, as [`Reader::memory`]: one file is read at a time.
    #[must_use]
    pub fn memory(mut self, bytes: u64) -> Self {
        self.readers = self.readers.into_iter().map(|reader| reader.memory(bytes)).collect();
        self
    }

    /// The files, in order.
    pub fn readers(&self) -> &[Reader<S>] {
        &self.readers
    }

    /// Counters of all reads of this dataset and of its parts.
    pub fn progress(&self) -> &Progress {
        &self.progress
    }

    /// The Arrow schema of the batches: that of the first file, where a column is nullable if it is
    /// in any file.
    ///
    /// # Errors
    /// `Usage` if there is no file, or if a file has other columns than the first; as
    /// [`Reader::schema`].
    pub fn schema(&self) -> Result<SchemaRef> {
        if let Some(schema) = self.schema.get() {
            return Ok(schema.clone());
        }
        let schema = self.united_schema()?;
        Ok(self.schema.get_or_init(|| schema).clone())
    }

    fn united_schema(&self) -> Result<SchemaRef> {
        let Some((first, others)) = self.readers.split_first() else {
            return Err(Error::usage("a dataset of no files has no schema"));
        };
        let schema = first.schema()?;
        let mut fields: Vec<Field> = schema.fields().iter().map(|of| (**of).clone()).collect();
        for other in others {
            let found = other.schema()?;
            let same_number = found.fields().len() == fields.len();
            for (field, found) in fields.iter_mut().zip(found.fields()) {
                if field.name() != found.name() || field.data_type() != found.data_type() {
                    return Err(other.name(differs(field, found)));
                }
                field.set_nullable(field.is_nullable() || found.is_nullable());
            }
            if !same_number {
                return Err(other.name(Error::usage(format_args!(
                    "the file has {} columns, and the first of the dataset {}: read all into one \
                     schema, with Dataset::target",
                    found.fields().len(),
                    fields.len()
                ))));
            }
        }
        Ok(Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone())))
    }

    /// Number of rows of the batches; with a filter, their maximum number.
    ///
    /// # Errors
    /// As [`Reader::rows`].
    pub fn rows(&self) -> Result<u64> {
        let rows = sum(self.readers.iter().map(Reader::rows))?.saturating_sub(self.offset);
        Ok(rows.min(self.limit.unwrap_or(u64::MAX)))
    }

    /// The estimated cost of all files, as [`Reader::estimated_cost`]. Offset and limit of the
    /// dataset do not reduce it.
    ///
    /// # Errors
    /// As [`Reader::estimated_cost`].
    pub fn estimated_cost(&self) -> Result<u64>
    where
        S: Clone,
    {
        sum(self.readers.iter().map(Reader::estimated_cost))
    }

    fn is_filtered(&self) -> bool {
        self.readers.iter().any(|reader| reader.options.filter.is_some())
    }

    /// Turns offset and limit into those of each file, unless filters must be evaluated first.
    /// Files without any remaining row are left out, except the first, which has the schema.
    pub(super) fn resolved(&self) -> Result<Self>
    where
        S: Clone,
    {
        if self.is_filtered() || (self.offset == 0 && self.limit.is_none()) {
            return Ok(self.clone());
        }
        let (mut skip, mut left) = (self.offset, self.limit.unwrap_or(u64::MAX));
        let mut readers = Vec::new();
        for reader in &self.readers {
            let rows = reader.rows()?;
            let skipped = skip.min(rows);
            let wanted = left.min(rows - skipped);
            (skip, left) = (skip - skipped, left - wanted);
            if wanted > 0 || readers.is_empty() {
                let offset = reader.options.offset.saturating_add(skipped);
                readers.push(reader.clone().offset(offset).limit(wanted));
            }
        }
        Ok(Self { readers, offset: 0, limit: None, ..self.clone() })
    }
}

#[cold]
fn differs(field: &Field, found: &Field) -> Error {
    Error::usage(format_args!(
        "column {:?} is {}, and the first file of the dataset has {:?} as {} in its place: read all \
         into one schema, with Dataset::target",
        found.name(),
        found.data_type(),
        field.name(),
        field.data_type()
    ))
}

impl<S: Clone> Dataset<S> {
    /// Divides the dataset into at most `n` parts, each a dataset of its own, as [`Reader::parts`]
    /// divides a file: all rows, in order, and about the same cost in each part. A part may have
    /// rows of several files, and files rows in several parts.
    ///
    /// # Errors
    /// As [`Reader::parts`] and [`Dataset::schema`].
    pub fn parts(&self, n: usize) -> Result<Vec<Self>> {
        if n > 1 && self.is_filtered() && (self.offset > 0 || self.limit.is_some()) {
            let first = self.readers.iter().find(|reader| reader.options.filter.is_some());
            let limited = first.cloned().map(|reader| reader.limit(0));
            limited.map_or(Ok(()), |reader| reader.check_parts(n))?;
        }
        self.readers.iter().try_for_each(|reader| reader.check_parts(n))?;
        // All parts are to have the same schema.
        self.schema()?;
        if n == 1 {
            let readers = self.readers.iter().map(|reader| reader.part(None, 1)).collect();
            return Ok(vec![Self { readers, ..self.clone() }]);
        }
        let resolved = self.resolved()?;
        let plans = resolved.readers.iter().map(Reader::plan).collect::<Result<Vec<Plan>>>()?;
        let (mut costs, mut places) = (Vec::new(), Vec::new());
        for (file, plan) in plans.iter().enumerate() {
            for (index, range) in plan.ranges().iter().enumerate() {
                let cost = plan.cost(range.row_group, range.count());
                costs.push(RowCost { cost, rows: range.count() });
                places.push((file, index));
            }
        }
        let parts = divide(&costs, n);
        let of = parts.len().max(1);
        let part_of = |readers| Self { readers, ..resolved.clone() };
        if parts.is_empty() {
            let first = resolved.readers.first().map(|first| first.part(Some(Arc::from([])), 1));
            return Ok(vec![part_of(first.into_iter().collect())]);
        }
        let mut out = Vec::with_capacity(of);
        for part in &parts {
            let file_of = |piece: usize| places.get(piece).map_or(0, |place| place.0);
            let of_files = part.chunk_by(|a, b| file_of(a.0) == file_of(b.0));
            let readers = of_files.map(|of_file| {
                let file = of_file.first().map_or(0, |first| file_of(first.0));
                let within = of_file.iter().map(|(piece, rows)| {
                    (places.get(*piece).map_or(0, |place| place.1), rows.clone())
                });
                let rows = rows_of(&plans[file], &within.collect::<Vec<_>>())?;
                Ok(resolved.readers[file].part(Some(rows), of))
            });
            out.push(part_of(readers.collect::<Result<_>>()?));
        }
        Ok(out)
    }

    pub(super) fn chain(&self) -> Result<Chain<S>> {
        let (schema, resolved) = (self.schema()?, self.resolved()?);
        let left = resolved.limit.unwrap_or(u64::MAX);
        Ok(Chain { schema, readers: resolved.readers.into_iter(), skip: resolved.offset, left })
    }

    /// The chain of each of the [`Dataset::parts`], all of one schema.
    pub(super) fn chains(&self, n: usize) -> Result<Vec<Chain<S>>> {
        let schema = self.schema()?;
        let chain = |part: &Self| Ok(Chain { schema: schema.clone(), ..part.chain()? });
        self.parts(n)?.iter().map(chain).collect()
    }
}

impl Dataset {
    /// Starts the read, and returns the batches of all files, in order. A file is opened when its
    /// turn comes.
    ///
    /// # Errors
    /// As [`Dataset::schema`]. Faults of the data come with the batches.
    pub fn batches(&self) -> Result<DatasetBatches> {
        Ok(DatasetBatches { chain: self.chain()?, open: None })
    }

    /// The batches of each of the [`Dataset::parts`]: at most `n` independent streams, which can be
    /// sent to other threads.
    ///
    /// # Errors
    /// As [`Dataset::parts`].
    pub fn streams(&self, n: usize) -> Result<Vec<DatasetBatches>> {
        let streams = self.chains(n)?.into_iter();
        Ok(streams.map(|chain| DatasetBatches { chain, open: None }).collect())
    }
}

/// The files that are still to be read, and the offset and limit of the rows that pass their
/// filters.
pub(super) struct Chain<S> {
    pub(super) schema: SchemaRef,
    pub(super) readers: std::vec::IntoIter<Reader<S>>,
    skip: u64,
    pub(super) left: u64,
}

impl<S> Chain<S> {
    /// The next file; `None` if no more rows are wanted.
    pub(super) fn next(&mut self) -> Option<Reader<S>> {
        if self.left == 0 {
            return None;
        }
        let reader = self.readers.next()?;
        let most = reader.options.limit.unwrap_or(u64::MAX);
        match self.skip.saturating_add(self.left).min(most) {
            u64::MAX => Some(reader),
            limit => Some(reader.limit(limit)),
        }
    }

    /// The rows of a batch that are wanted, in the schema of the dataset.
    pub(super) fn select(&mut self, batch: &RecordBatch) -> Result<Option<RecordBatch>> {
        let rows = batch.num_rows() as u64;
        let skipped = self.skip.min(rows);
        let wanted = self.left.min(rows - skipped);
        self.skip -= skipped;
        if self.left != u64::MAX {
            self.left -= wanted;
        }
        if wanted == 0 {
            return Ok(None);
        }
        // Both are at most the rows of a batch.
        let (from, len) = (usize::try_from(skipped), usize::try_from(wanted));
        let batch = batch.slice(from.unwrap_or_default(), len.unwrap_or_default());
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        let columns = batch.columns().to_vec();
        Ok(Some(RecordBatch::try_new_with_options(self.schema.clone(), columns, &options)?))
    }
}

/// The batches of a dataset, in order. After an error there are no more.
pub struct DatasetBatches {
    chain: Chain<Arc<dyn Source>>,
    open: Option<Batches>,
}

impl fmt::Debug for DatasetBatches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DatasetBatches")
            .field("schema", &self.chain.schema)
            .field("files_left", &self.chain.readers.len())
            .finish_non_exhaustive()
    }
}

impl DatasetBatches {
    /// The schema of the batches.
    pub fn schema(&self) -> SchemaRef {
        self.chain.schema.clone()
    }

    /// Returns the next batch, or an error of this crate; `None` after the last.
    ///
    /// # Errors
    /// Any fault of the data, with its place.
    pub fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        let next = self.advance();
        if next.is_err() {
            (self.chain.left, self.open) = (0, None);
        }
        next
    }

    fn advance(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            let Some(open) = self.open.as_mut().filter(|_| self.chain.left > 0) else {
                self.open = match self.chain.next() {
                    Some(reader) if reader.options.on_damage != OnDamage::Fail => {
                        return Err(reader.refuses_damage("datasets"));
                    }
                    Some(reader) => Some(reader.batches()?),
                    None => return Ok(None),
                };
                continue;
            };
            match open.next_batch()? {
                None => self.open = None,
                Some(batch) => {
                    if let Some(batch) = self.chain.select(&batch)? {
                        return Ok(Some(batch));
                    }
                }
            }
        }
    }
}

impl Iterator for DatasetBatches {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_batch().map_err(ArrowError::from).transpose()
    }
}

impl RecordBatchReader for DatasetBatches {
    fn schema(&self) -> SchemaRef {
        self.chain.schema.clone()
    }
}

/// The sum of numbers that the files state: the greatest number if it is more.
fn sum(mut numbers: impl Iterator<Item = Result<u64>>) -> Result<u64> {
    numbers.try_fold(0, |sum: u64, number| Ok(sum.saturating_add(number?)))
}
