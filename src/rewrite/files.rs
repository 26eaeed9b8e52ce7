//! [`Rewrite`]: files copied into one, with a plan that can be looked at before.

use std::ops::Range;
use std::path::PathBuf;

use super::decide::Decisions;
use super::field_ids::FieldIdChange;
use super::inputs::{self, Inputs};
use super::output::Spliced;
use super::plan::RewritePlan;
use super::regroup::regroup;
use super::settings::RewriteSettings;
use super::splice::Splicer;
use crate::compress::Compression;
use crate::crypt::{Encryption, FileEncryptor};
use crate::error::Result;
use crate::io::Sink;
use crate::limits::Budget;
use crate::reader::Reader;
use crate::write::WriteOptions;
use crate::write::sorting::SortColumn;

/// Copies files into one; what cannot be copied is decoded and encoded.
///
/// Of each [`Reader`] its row groups ([`Reader::row_groups`]) are copied, one file after the other;
/// of the columns those of the first reader's projection ([`Reader::project`]), in the order of the
/// file. Page indexes, bloom filters, statistics, size statistics, sorting columns and unknown
/// fields are copied with the pages.
///
/// Each column chunk is made in the cheapest way that does what is asked for; [`Rewrite::plan`]
/// says which, and why:
///
/// | way | for |
/// |---|---|
/// | its bytes are copied | what stays |
/// | page by page | another encryption; checksums that are verified |
/// | pages compressed anew | [`Rewrite::codec`] |
/// | decoded and encoded | [`Rewrite::encode`]; columns of another type ([`Rewrite::by_name`]) |
/// | the same | row groups that [`Reader::offset`] or [`Reader::limit`] cuts |
///
/// A footer says some things once for all of its row groups:
///
/// | of the footer | in the new file |
/// |---|---|
/// | key-value metadata | those of the first file, and the keys that only others have |
/// | column orders | the first known order of each leaf; bounds in another are left out |
/// | `created_by` | as in the files if it is one writer, else that of this library |
///
/// ```
/// # fn main() -> marquetry::Result<()> {
/// use marquetry::Reader;
/// use marquetry::io::WriteSink;
/// use marquetry::rewrite::Rewrite;
///
/// let trips = Reader::open("testdata/trips.parquet")?;
/// let mut out = Vec::new();
/// let done = Rewrite::new([trips.clone(), trips]).run(WriteSink(&mut out))?;
/// assert_eq!(done.rows, 2_000);
/// assert_eq!(Reader::new(bytes::Bytes::from(out))?.rows()?, 2_000);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct Rewrite {
    readers: Vec<Reader>,
    settings: RewriteSettings,
}

/// The file that a [`Rewrite`] has written.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rewritten {
    /// Number of rows, by the row groups.
    pub rows: u64,
    /// Number of row groups.
    pub row_groups: usize,
    /// Bytes of the new file.
    pub bytes: u64,
}

impl Rewrite {
    /// Copies these files, one after the other.
    pub fn new(readers: impl IntoIterator<Item = Reader>) -> Self {
        Self { readers: readers.into_iter().collect(), settings: RewriteSettings::default() }
    }

    /// Sets whether the columns of the files are matched by name. By default, the files have the
    /// same columns in the same order.
    ///
    /// The new file has the columns of all files, those of the first one first. A column that a
    /// file has not is null there. If its types differ, the new one is that of a file which holds
    /// the values of all of them, by the rules of [`Reader::target`] for wider types, or else what
    /// [`unite`](crate::schema::unite) makes of them. Only chunks of another type are decoded.
    ///
    /// ```
    /// # fn main() -> marquetry::Result<()> {
    /// use marquetry::Reader;
    /// use marquetry::io::WriteSink;
    /// use marquetry::rewrite::{ChunkReason, Rewrite};
    ///
    /// let trips = Reader::open("testdata/trips.parquet")?;
    /// let mut stops = Vec::new();
    /// Rewrite::new([trips.clone().project(["stops"])?]).run(WriteSink(&mut stops))?;
    /// let stops = Reader::new(bytes::Bytes::from(stops))?;
    /// let plan = Rewrite::new([trips, stops]).by_name(true).plan();
    /// # let _ = (plan, ChunkReason::Missing);
    /// # Ok(())
    /// # }
    /// ```
    pub fn by_name(mut self, by_name: bool) -> Self {
        self.settings.is_by_name = by_name;
        self
    }

    /// Encrypts the new file. By default it is not encrypted, whatever the files are.
    pub fn encryption(mut self, encryption: Encryption) -> Self {
        self.settings.encryption = Some(encryption);
        self
    }

    /// Sets a key of the key-value metadata of the new file, in place of what the files say.
    pub fn set_key_value(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.settings.key_values.push((key.into(), Some(value.into())));
        self
    }

    /// Leaves out a key of the key-value metadata of the files.
    pub fn drop_key_value(mut self, key: impl Into<String>) -> Self {
        self.settings.key_values.push((key.into(), None));
        self
    }

    /// Gives the field at a dotted path this id, as of a table format: a column, a field below one,
    /// or a part of a list or a map, such as `tags.list.element`. Chunks are copied: ids are in the
    /// footer alone. Of several calls about ids, later ones win.
    ///
    /// ```
    /// # fn main() -> marquetry::Result<()> {
    /// use marquetry::Reader;
    /// use marquetry::io::WriteSink;
    /// use marquetry::rewrite::Rewrite;
    ///
    /// let trips = Reader::open("testdata/trips.parquet")?;
    /// let rewrite = Rewrite::new([trips]).number_fields().field_id("fare", 100);
    /// let plan = rewrite.plan()?;
    /// assert_eq!(plan.encoded().chunks, 0);
    /// rewrite.run(WriteSink(Vec::new()))?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn field_id(mut self, path: impl Into<String>, id: i32) -> Self {
        self.settings.field_ids.push(FieldIdChange::Of(path.into(), Some(id)));
        self
    }

    /// Leaves out the id of the field at a dotted path.
    pub fn drop_field_id(mut self, path: impl Into<String>) -> Self {
        self.settings.field_ids.push(FieldIdChange::Of(path.into(), None));
        self
    }

    /// Numbers all fields from 1, depth first: columns, the fields below them, and the elements,
    /// keys and values of lists and maps; not the repeated groups around these, and not the parts
    /// of VARIANT columns.
    pub fn number_fields(mut self) -> Self {
        self.settings.field_ids.push(FieldIdChange::Number);
        self
    }

    /// Leaves out the ids of all fields.
    pub fn drop_field_ids(mut self) -> Self {
        self.settings.field_ids.push(FieldIdChange::Clear);
        self
    }

    /// Sets whether the checksums of all pages are verified, for which each page is looked at.
    /// Those that get another checksum are always verified.
    pub fn verify_checksums(mut self, verify: bool) -> Self {
        self.settings.verifies_checksums = verify;
        self
    }

    /// Gives the pages of the columns that match a pattern another codec, without decoding their
    /// values. A pattern is that of [`WriteOptions::with_column`]; later settings win. Chunks that
    /// have the codec already are copied, unless it has levels: that of a chunk is not known.
    ///
    /// ```
    /// # fn main() -> marquetry::Result<()> {
    /// use marquetry::io::WriteSink;
    /// use marquetry::rewrite::Rewrite;
    /// use marquetry::{Compression, Reader};
    ///
    /// let trips = Reader::open("testdata/trips.parquet")?;
    /// let rewrite = Rewrite::new([trips]).codec("*", Compression::Uncompressed);
    /// let mut out = Vec::new();
    /// rewrite.run(WriteSink(&mut out))?;
    /// assert!(rewrite.plan()?.recompressed().chunks > 0);
    /// # Ok(())
    /// # }
    /// ```
    pub fn codec(mut self, pattern: impl Into<String>, codec: Compression) -> Self {
        self.settings.codecs.push((pattern.into(), codec));
        self
    }

    /// Decodes the columns that match a pattern, and encodes them with the
    /// [options](Rewrite::options). A pattern is that of [`WriteOptions::with_column`].
    ///
    /// ```
    /// # fn main() -> marquetry::Result<()> {
    /// use marquetry::io::WriteSink;
    /// use marquetry::rewrite::Rewrite;
    /// use marquetry::{Reader, WriteOptions};
    ///
    /// let options =
    ///     WriteOptions::new().with_column("id", |column| column.with_bloom(Default::default()));
    /// let trips = Reader::open("testdata/trips.parquet")?;
    /// let rewrite = Rewrite::new([trips]).options(options).encode("id");
    /// let mut out = Vec::new();
    /// rewrite.run(WriteSink(&mut out))?;
    /// let plan = rewrite.plan()?;
    /// assert_eq!(plan.encoded().chunks, plan.row_groups.len());
    /// # Ok(())
    /// # }
    /// ```
    pub fn encode(mut self, pattern: impl Into<String>) -> Self {
        self.settings.encoded.push(pattern.into());
        self
    }

    /// Sets how columns are written that are encoded, for whatever reason. A codec that they do not
    /// name is that of the old chunk, and a bloom filter that this had is made again; their
    /// encryption, key-value metadata, sort order and shredding are ignored.
    pub fn options(mut self, options: WriteOptions) -> Self {
        self.settings.options = options;
        self
    }

    /// Sets whether the row groups are made anew, as the [options](Rewrite::options) say: all rows
    /// are read, and written. Default: the new file has the row groups of the old ones.
    ///
    /// ```
    /// # fn main() -> marquetry::Result<()> {
    /// use marquetry::io::WriteSink;
    /// use marquetry::rewrite::Rewrite;
    /// use marquetry::{Reader, WriteOptions};
    ///
    /// let options = WriteOptions::new().with_row_group_rows(400);
    /// let trips = Reader::open("testdata/trips.parquet")?;
    /// let rewrite = Rewrite::new([trips]).options(options).regroup(true);
    /// assert_eq!(rewrite.run(WriteSink(Vec::new()))?.row_groups, 3);
    /// # Ok(())
    /// # }
    /// ```
    pub fn regroup(mut self, regroup: bool) -> Self {
        self.settings.regroups = regroup;
        self
    }

    /// Sorts all rows by these columns: they are read, and written into new row groups, which state
    /// the order. Rows that do not fit into half of the memory of the first reader go to temporary
    /// files ([`Rewrite::temp_folder`]). Equal rows keep their order.
    ///
    /// ```
    /// # fn main() -> marquetry::Result<()> {
    /// use marquetry::io::WriteSink;
    /// use marquetry::rewrite::Rewrite;
    /// use marquetry::{Reader, SortColumn};
    ///
    /// let trips = Reader::open("testdata/trips.parquet")?;
    /// let rewrite = Rewrite::new([trips]).sort_by([SortColumn::descending("fare")]);
    /// assert_eq!(rewrite.run(WriteSink(Vec::new()))?.rows, 1_000);
    /// # Ok(())
    /// # }
    /// ```
    pub fn sort_by(mut self, columns: impl IntoIterator<Item = SortColumn>) -> Self {
        self.settings.sort_by = columns.into_iter().collect();
        (self.settings.merges, self.settings.sorts_row_groups) = (false, false);
        self
    }

    /// Sorts the rows of each row group by these columns. The new file has the row groups of the
    /// readers, if none of them exceeds what the [options](Rewrite::options) allow, and states
    /// their order.
    ///
    /// ```
    /// # fn main() -> marquetry::Result<()> {
    /// use marquetry::io::WriteSink;
    /// use marquetry::rewrite::Rewrite;
    /// use marquetry::{Reader, SortColumn};
    ///
    /// let trips = Reader::open("testdata/trips.parquet")?;
    /// let rewrite = Rewrite::new([trips]).sort_row_groups_by([SortColumn::ascending("fare")]);
    /// assert_eq!(rewrite.run(WriteSink(Vec::new()))?.row_groups, 4);
    /// # Ok(())
    /// # }
    /// ```
    pub fn sort_row_groups_by(self, columns: impl IntoIterator<Item = SortColumn>) -> Self {
        let mut sorted = self.sort_by(columns);
        sorted.settings.sorts_row_groups = true;
        sorted
    }

    /// The folder of temporary files, for rows that are sorted and do not fit into memory. They
    /// hold values in plain text. Default: the folder of the system ([`std::env::temp_dir`]), and
    /// none if a file is encrypted: rows that do not fit are an error then.
    pub fn temp_folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.settings.temp_folder = Some(folder.into());
        self
    }

    /// Merges the rows of the readers, where those of each are sorted by these columns, into new
    /// row groups, which state the order. Of each reader some batches are held in memory. Equal
    /// rows come in the order of the readers.
    ///
    /// ```
    /// # fn main() -> marquetry::Result<()> {
    /// use marquetry::io::WriteSink;
    /// use marquetry::rewrite::Rewrite;
    /// use marquetry::{Reader, SortColumn};
    ///
    /// let trips = Reader::open("testdata/trips.parquet")?;
    /// let by_id = [SortColumn::ascending("id")];
    /// let rewrite = Rewrite::new([trips.clone(), trips]).merge_by(by_id);
    /// assert_eq!(rewrite.run(WriteSink(Vec::new()))?.rows, 2_000);
    /// # Ok(())
    /// # }
    /// ```
    pub fn merge_by(self, columns: impl IntoIterator<Item = SortColumn>) -> Self {
        let mut sorted = self.sort_by(columns);
        sorted.settings.merges = true;
        sorted
    }

    /// Merges the rows of the readers in each of these ranges with one another, by these columns;
    /// the row groups of the others are copied.
    pub(super) fn merge_ranges(
        mut self,
        ranges: Vec<Range<usize>>,
        columns: impl IntoIterator<Item = SortColumn>,
    ) -> Self {
        self.settings.merged = ranges;
        self.settings.merged_by = columns.into_iter().collect();
        self
    }

    /// Sets whether the new file leaves out by what the rows of its row groups are sorted. By
    /// default it states that, although the rows of two row groups need not be sorted: some readers
    /// take it for the order of the whole file.
    pub fn forget_order(mut self, forget: bool) -> Self {
        self.settings.forgets_order = forget;
        self
    }

    /// Looks at the footers, and says what [`Rewrite::run`] will do.
    ///
    /// # Errors
    /// As [`Rewrite::run`], as far as the footers tell.
    pub fn plan(&self) -> Result<RewritePlan> {
        let inputs = self.inputs()?;
        let encryptor = self.encryptor(&inputs)?;
        let decisions = self.decisions(&inputs);
        let mut row_groups = Vec::new();
        for (at, file) in inputs.files.iter().enumerate() {
            for part in &file.row_groups {
                let new = row_groups.len();
                let planned = decisions.row_group(at, part, encryptor.as_ref(), new);
                let place = |e| file.reader.name(e);
                row_groups.push(planned.map_err(place)?);
            }
        }
        let rows = row_groups.iter().fold(0u64, |sum, group| sum.saturating_add(group.rows));
        Ok(RewritePlan {
            row_groups,
            regroups: inputs.remake.is_some() || !self.settings.merged.is_empty(),
            columns: inputs.leaves.iter().map(|leaf| leaf.path.dotted()).collect(),
            rows,
            notes: inputs.notes,
        })
    }

    /// Writes the new file.
    ///
    /// A window of a column chunk is in memory at a time, a whole chunk where its protection or
    /// codec changes, the values of a column of a row group where they are encoded; the footers,
    /// and a place for each page, within the [`Limits::memory_bytes`](crate::Limits::memory_bytes)
    /// of the first reader.
    ///
    /// # Errors
    /// `Usage` if there is no file, the columns of the files differ, a setting is for a column that
    /// does not exist, a reader filters or selects rows, or one that is merged is not sorted;
    /// `Unsupported` if one of several writers
    /// has faults that readers know by its name, or a column that must be encoded has a type that
    /// is not written; `Crypto` if a key is missing, something is not authentic, or a signature was
    /// not verified; `Malformed` if a file violates the format, as far as it is read, or column
    /// chunks share bytes ([`Reader::shared_bytes`] allows it); `Limit(Memory)`, `Io`.
    pub fn run(&self, sink: impl Sink) -> Result<Rewritten> {
        let Spliced { rows, row_groups, bytes, .. } = self.splice(sink)?;
        Ok(Rewritten { rows, row_groups, bytes })
    }

    pub(super) fn splice(&self, sink: impl Sink) -> Result<Spliced> {
        self.splice_after(sink, 0)
    }

    /// Like [`Rewrite::splice`], into a sink that has the first `kept` bytes of the first file.
    pub(super) fn splice_after(&self, sink: impl Sink, kept: u64) -> Result<Spliced> {
        let inputs = self.inputs()?;
        inputs.check_shared_bytes()?;
        let limits = inputs.files.first().map(|file| file.reader.read_options().limits.clone());
        let budget = Budget::new(limits.unwrap_or_default().memory_bytes);
        if inputs.remake.is_some() {
            return regroup(&inputs, &self.settings, sink, &budget);
        }
        let encryptor = self.encryptor(&inputs)?;
        let decisions = self.decisions(&inputs);
        Splicer::new(decisions, sink, encryptor, &self.settings, budget).run(kept)
    }

    pub(super) fn readers(&self) -> &[Reader] {
        &self.readers
    }

    /// The same settings, for other readers.
    pub(super) fn with_readers(&self, readers: impl IntoIterator<Item = Reader>) -> Self {
        Self { readers: readers.into_iter().collect(), settings: self.settings.clone() }
    }

    pub(super) fn is_encrypting(&self) -> bool {
        self.settings.encryption.is_some()
    }

    pub(super) fn inputs(&self) -> Result<Inputs<'_>> {
        let mut inputs = Inputs::new(&self.readers, &self.settings)?;
        inputs::change_key_values(&mut inputs.footer, &self.settings.key_values)?;
        Ok(inputs)
    }

    fn decisions<'a>(&self, inputs: &'a Inputs<'a>) -> Decisions<'a> {
        Decisions {
            inputs,
            verifies_checksums: self.settings.verifies_checksums,
            forgets_order: self.settings.forgets_order,
        }
    }

    fn encryptor(&self, inputs: &Inputs<'_>) -> Result<Option<FileEncryptor>> {
        let encryption = self.settings.encryption.as_ref();
        encryption.map(|of| FileEncryptor::new(of, &of.protections(&inputs.leaves)?)).transpose()
    }
}
