//! The methods of [`Reader`] that set an option each.

use std::sync::Arc;

use arrow_schema::{DataType, SchemaRef, TimeUnit};

use super::{Reader, Threads};
use crate::error::{Error, Result};
use crate::free_lists::BufferPool;
use crate::predicate::Predicate;
use crate::read::{
    Latency, OnDamage, ReadAhead, ReadOptions, TrustedUtf8, Utf8, VariantColumn, VariantOutput,
    VirtualColumn,
};
use crate::schema::{Dictionaries, MatchBy, NameMapping, Projection, TextColumns};
use crate::selection::{DeletionVector, RowSelection};
use crate::variant::VariantPath;

impl<S> Reader<S> {
    /// Reads these columns only, in this order: names, and dotted paths of nested fields.
    ///
    /// A name that is a column wins over a path; names that contain dots can be given exactly with
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

    /// Reads these rows only, by their numbers in the file. The selection must cover
    /// [`Reader::file_rows`] rows.
    ///
    /// Pages that hold none of them are not fetched if the file has a page index.
    ///
    /// # Errors
    /// `Usage` if the selection has another length than the file.
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

    /// Leaves out the rows that a table has deleted, whatever else is selected; those of a second
    /// deletion vector as well. Pages without any other row are not read, and
    /// [`Reader::rows`], [`Reader::count`], offset and limit do not count the rows.
    ///
    /// Rows keep their numbers ([`VirtualColumn::RowNumber`]), and [`Reader::take`] returns deleted
    /// rows, too. Deleted rows beyond the file are ignored. See [`DeletionVector`] for an example.
    ///
    /// # Errors
    /// `Malformed` if the metadata contradict themselves.
    pub fn exclude(mut self, deleted: &DeletionVector) -> Result<Self> {
        let kept = deleted.kept(self.file_rows()?);
        let options = &mut self.options;
        options.not_deleted = Some(match options.not_deleted.take() {
            Some(earlier) => earlier.and(&kept)?,
            None => kept,
        });
        Ok(self)
    }

    /// Reads only the rows for which the predicate is true; a second predicate is `and`ed.
    ///
    /// The predicate is checked against the schema when the read is planned ([`Reader::schema`],
    /// [`Reader::rows`], [`Reader::batches`] …), because a target schema may still follow;
    /// [`Reader::try_filter`] checks at once.
    ///
    /// Row groups and pages whose metadata prove that they hold no such row are not read, and the
    /// predicate is not evaluated where they prove that it is true. Of the other columns, and of
    /// those that only later parts of the predicate need, only the rows that passed so far are
    /// decoded, if that is less work. Faults in other rows may thus go unnoticed in one read and
    /// not in the next, because the order of the parts follows measured times. Offset and limit
    /// count the rows that pass.
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

    /// Like [`Reader::filter`], but checks the predicate at once: whether the file, or the target
    /// schema that was set before, has its columns, and whether its literals fit their types.
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

    /// Returns batches of at most this many rows, and of fewer if they are wide: see
    /// [`ReadOptions::batch_rows`].
    #[must_use]
    pub fn batch_rows(mut self, rows: usize) -> Self {
        self.options.batch_rows = rows.max(1);
        self
    }

    /// Returns batches of at most about this many bytes: see [`ReadOptions::batch_bytes`].
    #[must_use]
    pub fn batch_bytes(mut self, bytes: usize) -> Self {
        self.options.batch_bytes = bytes.max(1);
        self
    }

    /// Holds at most this many bytes: fetched column chunks, pages, and batches that are not
    /// returned yet.
    #[must_use]
    pub fn memory(mut self, bytes: u64) -> Self {
        self.options.limits.memory_bytes = bytes;
        self
    }

    /// Decodes with this many threads; with 1, on the calling thread.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = Threads::Exactly(threads.max(1));
        self
    }

    /// Decodes on the caller's pool.
    #[cfg(feature = "parallel")]
    #[must_use]
    pub fn pool(mut self, pool: Arc<rayon::ThreadPool>) -> Self {
        self.threads = Threads::Pool(pool);
        self
    }

    /// Overrides the latency that the source states. Ranges closer than the bytes that arrive
    /// during one request are read in one request.
    #[must_use]
    pub fn latency(mut self, latency: Latency) -> Self {
        self.options.latency = Some(latency);
        self
    }

    /// Limits what is fetched before it is decoded, if bytes come asynchronously: for many streams
    /// at a time, because each would keep the network busy alone.
    #[must_use]
    pub fn read_ahead(mut self, read_ahead: ReadAhead) -> Self {
        self.options.read_ahead = read_ahead;
        self
    }

    /// Reads strings and byte strings as views.
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

    /// Reads BYTE_ARRAY columns without annotation as strings, at every depth: columns of Impala,
    /// and of old versions of Spark and Hive. A value that is not UTF-8 is an error that names the
    /// column, unless [`Reader::lossy_utf8`] is set. Default: bytes.
    ///
    /// ```no_run
    /// # fn main() -> marquetry::Result<()> {
    /// let reader = marquetry::Reader::open("hits.parquet")?.binary_as_utf8(true);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn binary_as_utf8(mut self, strings: bool) -> Self {
        self.options.arrow = self.options.arrow.with_binary_as_string(strings);
        self
    }

    /// Like [`Reader::binary_as_utf8`], for the columns with these names, or below groups with
    /// these names.
    #[must_use]
    pub fn binary_columns_as_utf8<N: Into<String>>(
        mut self,
        names: impl IntoIterator<Item = N>,
    ) -> Self {
        let names = names.into_iter().map(Into::into).collect();
        self.options.arrow.text = TextColumns::Named(names);
        self
    }

    /// Gives field ids to the fields of a file that has none, by their names. It stands before
    /// [`Reader::target`], which finds fields by their ids.
    #[must_use]
    pub fn name_mapping(mut self, mapping: NameMapping) -> Self {
        self.options.arrow = self.options.arrow.with_name_mapping(mapping);
        self
    }

    /// Reads into this schema: wider types, another order, and nulls for columns that the file does
    /// not have.
    ///
    /// # Errors
    /// `Usage`, naming the column, if a type cannot be reached without loss.
    pub fn target(mut self, schema: SchemaRef, match_by: MatchBy) -> Result<Self> {
        self.options.arrow.target = Some(schema);
        self.options.arrow.match_by = match_by;
        self.plan()?;
        Ok(self)
    }

    /// Whether strings that are not UTF-8 get U+FFFD in place of their invalid bytes. Default: they
    /// are an error.
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

    /// Whether page checksums are verified if a file has them. Default: yes.
    #[must_use]
    pub fn verify_checksums(mut self, verify: bool) -> Self {
        self.options.verify_checksums = verify;
        self
    }

    /// Whether the filter is evaluated for every row, whatever statistics, page indexes, bloom
    /// filters and dictionaries claim: for filters that protect something, over files of untrusted
    /// writers. Default: no.
    ///
    /// By default their claims are trusted, as by other readers. If they are wrong, rows that pass
    /// the filter may be missing, and rows that do not pass may be returned if the filter's columns
    /// are not among those that are read; if they are, the filter is evaluated.
    #[must_use]
    pub fn verify_statistics(mut self, verify: bool) -> Self {
        self.options.verify_statistics = verify;
        self
    }

    /// Whether a file whose column chunks share bytes may be copied, as by `rewrite::recrypt`,
    /// although the copy may be far larger than the file. Default: no.
    #[must_use]
    pub fn shared_bytes(mut self, shared: bool) -> Self {
        self.options.shared_bytes = shared;
        self
    }

    /// How damaged row groups are handled. With [`OnDamage::SkipRowGroup`],
    /// [`Reader::batches`] goes on with the next one, and
    /// [`Batches::damage`](crate::Batches::damage) says what was skipped: the rows of the row group
    /// from the damaged batch on. With [`OnDamage::NullPages`], the rows of a damaged page are
    /// returned with nulls in its column, and [`Batches::nulled`](crate::Batches::nulled) lists the
    /// pages. Other reads refuse.
    ///
    /// ```
    /// # fn main() -> marquetry::Result<()> {
    /// use marquetry::Reader;
    /// use marquetry::read::OnDamage;
    ///
    /// let reader = Reader::open("testdata/trips.parquet")?.on_damage(OnDamage::SkipRowGroup);
    /// let mut batches = reader.batches()?;
    /// while let Some(batch) = batches.next_batch()? {
    ///     println!("{} rows", batch.num_rows());
    /// }
    /// for lost in batches.damage() {
    ///     println!("{} of {} rows: {}", lost.rows_returned, lost.rows, lost.error);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn on_damage(mut self, on_damage: OnDamage) -> Self {
        self.options.on_damage = on_damage;
        self
    }

    /// How VARIANT columns are returned: reconstructed, in one shape, as JSON text, or as they are
    /// stored.
    #[must_use]
    pub fn variants(mut self, output: VariantOutput) -> Self {
        self.options.variants = output;
        self
    }

    /// Adds a column `name` of the part at `path` of the VARIANT column `column`, as `data_type`.
    /// Only the leaves that it needs are read: one, if the part is shredded in all rows. The
    /// VARIANT itself is read only if it is projected.
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

    /// Adds a column that tells where each row comes from.
    #[must_use]
    pub fn virtual_column(mut self, column: VirtualColumn) -> Self {
        self.options.virtual_columns.push(column);
        self
    }

    /// Takes memory from `pool`, and returns it there: for callers that read one file after the
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

    /// Sets the name for errors and for the file name column; [`Reader::open`] sets the path.
    #[must_use]
    pub fn file_name(mut self, name: impl Into<Arc<str>>) -> Self {
        self.file_name = Some(name.into());
        self
    }
}
