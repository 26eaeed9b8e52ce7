//! [`Writer`] writes record batches into a Parquet file, on the calling thread or on several.

use std::borrow::Cow;
use std::fmt;
use std::path::{Path, PathBuf};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use super::file_encoder::FileEncoder;
use super::row_group_encoder::RowGroupEncoder;
use super::side_footer::SideFooter;
use crate::error::{Error, Result};
use crate::io::{PathSink, Sink, WriteSink};
use crate::trace;
use crate::write::{EncodedRowGroup, WriteOptions, WriteReport};

/// Writes one Parquet file.
///
/// ```
/// use marquetry::{Reader, Writer};
///
/// # fn main() -> marquetry::Result<()> {
/// let batches = Reader::open("testdata/trips.parquet")?.batches()?;
/// let mut writer = Writer::to(Vec::new(), batches.schema())?;
/// for batch in batches {
///     writer.write(&batch?)?;
/// }
/// let (report, bytes) = writer.into_inner()?;
/// assert_eq!(report.bytes, bytes.len() as u64);
/// # Ok(())
/// # }
/// ```
///
/// Rows are held until a row group is full. All threads then encode it, column by column, while the
/// next one is filled, as far as the [memory](WriteOptions::with_memory) allows; row groups reach
/// the sink in their order, and the file is the same for any number of threads. So a later call
/// than the one that took a value may return the error of that value.
///
/// [`from_arrow`](fn@crate::schema::from_arrow#what-files-cannot-hold) lists the Parquet type of
/// each Arrow type, and what files cannot hold.
///
/// The first error poisons the writer, and so does a panic: every later call fails, and no footer
/// is written. A writer that is dropped unfinished leaves no file that looks whole.
pub struct Writer<S: Sink = PathSink> {
    sink: S,
    file: FileEncoder,
    side_footer: Option<SideFooter>,
    /// The error after which nothing more is written. Set while rows are encoded and written, where
    /// a panic may end the call.
    failure: Option<Cow<'static, str>>,
}

impl<S: Sink> fmt::Debug for Writer<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer").field("file", &self.file).finish_non_exhaustive()
    }
}

impl Writer<PathSink> {
    /// Makes a writer of the file at `path`, with the default options. An existing file stays until
    /// the new one is whole.
    ///
    /// # Errors
    /// `Io` if no file can be created there, `Unsupported` if the schema has a type that Parquet
    /// does not have.
    pub fn create(path: impl AsRef<Path>, schema: SchemaRef) -> Result<Self> {
        Self::create_with(path, schema, WriteOptions::default())
    }

    /// Like [`Writer::create`], with options.
    ///
    /// # Errors
    /// As [`Writer::create`]; `Usage` if an option does not fit the schema.
    pub fn create_with(
        path: impl AsRef<Path>,
        schema: SchemaRef,
        options: WriteOptions,
    ) -> Result<Self> {
        // The schema first: what cannot be written leaves no trace.
        let encoder = RowGroupEncoder::new(schema, options)?;
        Ok(Self::over(PathSink::create(path)?, encoder))
    }
}

impl<W: std::io::Write + Send> Writer<WriteSink<W>> {
    /// Makes a writer into anything that is [`std::io::Write`], with the default options.
    ///
    /// # Errors
    /// As [`Writer::create`].
    pub fn to(inner: W, schema: SchemaRef) -> Result<Self> {
        Self::new(WriteSink(inner), schema, WriteOptions::default())
    }

    /// Finishes the file, and returns the inner writer.
    ///
    /// # Errors
    /// As [`Writer::finish`].
    pub fn into_inner(mut self) -> Result<(WriteReport, W)> {
        let report = self.finish_in_place()?;
        Ok((report, self.sink.0))
    }
}

impl<S: Sink> Writer<S> {
    /// Makes a writer into any sink.
    ///
    /// # Errors
    /// As [`Writer::create_with`].
    pub fn new(sink: S, schema: SchemaRef, options: WriteOptions) -> Result<Self> {
        Ok(Self::over(sink, RowGroupEncoder::new(schema, options)?))
    }

    /// Makes a writer into any sink, with an encoder that is shared with others.
    pub fn over(sink: S, encoder: RowGroupEncoder) -> Self {
        Self { sink, file: FileEncoder::new(encoder), side_footer: None, failure: None }
    }

    /// Writes a footer of the row groups so far into the file at `path`, after every `row_groups`
    /// row groups: if the process is killed, `rewrite::Salvage` recovers with it what the
    /// unfinished file holds of them. The file is replaced as a whole, synced, and removed when
    /// the writer is finished or dropped. It describes no indexes and bloom filters, which are
    /// written at the end. That of an encrypted file is encrypted or signed as its footer will be.
    ///
    /// For writers into files; an object of a store is not there before it is whole.
    #[must_use]
    pub fn with_side_footer(mut self, path: impl Into<PathBuf>, row_groups: usize) -> Self {
        self.side_footer = Some(SideFooter::new(path.into(), row_groups));
        self
    }

    /// A file of only a footer of the row groups that were written so far, as
    /// [`Writer::with_side_footer`] keeps it.
    ///
    /// # Errors
    /// `Usage` if the footer becomes too large for the format, `Crypto` if a key was used too
    /// often.
    pub fn side_footer(&self) -> Result<bytes::Bytes> {
        self.file.side_footer()
    }

    /// The schema that batches must have.
    pub fn schema(&self) -> &SchemaRef {
        self.file.schema()
    }

    /// The encoder of row groups for this file: clone it to encode on threads of your own, and
    /// [`Writer::append`] the results.
    pub fn encoder(&self) -> &RowGroupEncoder {
        &self.file.encoder
    }

    /// Bytes passed to the sink so far.
    pub fn bytes_written(&self) -> u64 {
        self.file.bytes_written()
    }

    /// Rows that are held for the next row group.
    pub fn rows_pending(&self) -> usize {
        self.file.rows_pending()
    }

    /// Estimated bytes of the file if it were finished now.
    pub fn estimated_bytes(&self) -> u64 {
        self.file.estimated_bytes()
    }

    /// Bytes of memory that the metadata and the indexes of finished row groups take until the end
    /// of the file.
    pub fn metadata_bytes(&self) -> usize {
        self.file.metadata_bytes()
    }

    pub(crate) fn file(&self) -> &FileEncoder {
        &self.file
    }

    pub(crate) fn file_mut(&mut self) -> &mut FileEncoder {
        &mut self.file
    }

    /// Adds a pair to the file's key-value metadata.
    pub fn add_key_value(&mut self, key: impl Into<String>, value: impl Into<String>) {
        self.file.add_key_value(key, value);
    }

    /// Appends the rows of a batch. They are held until a row group is full.
    ///
    /// # Errors
    /// `Usage` if the batch has another schema; none of its rows are then taken. `Usage` if a value
    /// of this or an earlier row group does not fit, `Io` if the sink fails: nothing more is then
    /// written, see [`Writer`].
    pub fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        self.check_open()?;
        self.file.check(batch)?;
        self.file.push(batch);
        self.put_all(FileEncoder::next)
    }

    /// Ends the row group: the rows that are held are encoded and written, whatever their number.
    ///
    /// # Errors
    /// As [`Writer::write`].
    pub fn flush(&mut self) -> Result<()> {
        self.check_open()?;
        self.put_all(FileEncoder::flush)
    }

    /// Appends a row group that was encoded elsewhere by [`Writer::encoder`], after the rows so
    /// far.
    ///
    /// # Errors
    /// As [`Writer::write`].
    pub fn append(&mut self, row_group: EncodedRowGroup) -> Result<()> {
        self.flush()?;
        self.file.adopt(&row_group)?;
        self.poisoning(|writer| writer.put(row_group))
    }

    /// Writes the rows that are held, the indexes and the footer, and completes the file.
    ///
    /// # Errors
    /// As [`Writer::write`].
    pub fn finish(mut self) -> Result<WriteReport> {
        self.finish_in_place()
    }

    fn finish_in_place(&mut self) -> Result<WriteReport> {
        self.flush()?;
        let _span = trace::finish(self.file.row_groups());
        let (pieces, report) = self.file.end()?;
        pieces.into_iter().try_for_each(|bytes| self.sink.write(bytes))?;
        self.sink.finish()?;
        self.side_footer.take().into_iter().for_each(SideFooter::finish);
        Ok(report)
    }

    /// Writes the row groups that `next` returns.
    fn put_all(
        &mut self,
        next: impl Fn(&mut FileEncoder) -> Result<Option<EncodedRowGroup>>,
    ) -> Result<()> {
        self.poisoning(|writer| {
            while let Some(row_group) = next(&mut writer.file)? {
                writer.put(row_group)?;
            }
            Ok(())
        })
    }

    fn put(&mut self, row_group: EncodedRowGroup) -> Result<()> {
        let _span = trace::write_row_group(self.file.row_groups(), row_group.rows() as u64);
        let pieces = self.file.assemble(row_group)?;
        pieces.into_iter().try_for_each(|bytes| self.sink.write(bytes))?;
        let row_groups = self.file.row_groups();
        match self.side_footer.as_mut().filter(|side| side.is_due(row_groups)) {
            Some(side) => side.write(self.file.side_footer()?, row_groups),
            None => Ok(()),
        }
    }

    fn check_open(&self) -> Result<()> {
        match &self.failure {
            None => Ok(()),
            Some(why) => Err(Error::usage(format_args!("an earlier error ended the file: {why}"))),
        }
    }

    /// After an error or a panic of `work` nothing more is written.
    fn poisoning(&mut self, work: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        self.failure = Some(Cow::Borrowed("a panic"));
        let done = work(self);
        self.failure = None;
        if let Err(error) = &done {
            self.failure = Some(Cow::Owned(error.to_string()));
            self.file.cancel();
        }
        done
    }
}
