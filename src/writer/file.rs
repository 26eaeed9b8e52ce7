//! [`Writer`]: record batches in, a Parquet file out, on the calling thread or on several.

use std::fmt;
use std::path::Path;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use bytes::Bytes;

use super::row_group_encoder::RowGroupEncoder;
use crate::bytes::saturated;
use crate::crypt::FileEncryptor;
use crate::error::{Error, Result};
use crate::format::{FileMetaData, KeyValue, RowGroup};
use crate::io::{InFlight, MAX_IN_FLIGHT, PathSink, Sink, WriteSink};
use crate::stats::order::ValueOrder;
use crate::trace;
use crate::write::{
    EncodedRowGroup, Indexes, PendingRowGroup, RowGroupEncryption, RowGroupReport, WriteOptions,
    WriteReport, batch_bytes, footer, indexes, level_bytes, magic, protect,
};

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
/// the sink in their order, and the file is the same for any number of threads. So an error in a
/// value may be given by a later call than the one that took the value.
///
/// What becomes of each Arrow type, and what files cannot hold, says
/// [`from_arrow`](fn@crate::schema::from_arrow#what-files-cannot-hold).
///
/// The first error poisons the writer: every later call fails, and no footer is written. A writer
/// that is dropped unfinished leaves no file that looks whole.
pub struct Writer<S: Sink = PathSink> {
    pub(super) sink: S,
    encoder: RowGroupEncoder,
    pending: PendingRowGroup,
    /// Full row groups that are not written yet.
    in_flight: InFlight,
    /// Bytes given to the sink.
    written: u64,
    row_groups: Vec<RowGroup>,
    indexes: Vec<Vec<Indexes>>,
    reports: Vec<RowGroupReport>,
    size_ratio: SizeRatio,
    /// What encrypts the file, once something of it is written.
    encryptor: Option<FileEncryptor>,
    pub(super) state: WriterState,
}

impl<S: Sink> fmt::Debug for Writer<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer")
            .field("encoder", &self.encoder)
            .field("written", &self.written)
            .finish_non_exhaustive()
    }
}

/// Encoded bytes for each byte of Arrow arrays, in the row groups so far.
#[derive(Debug)]
struct SizeRatio {
    /// What is expected before any is known.
    expected: f64,
    /// Bytes as Arrow arrays and in the file, both summed up from the first row group on.
    row_groups: Vec<(u64, u64)>,
}

impl SizeRatio {
    fn add(&mut self, bytes: u64, encoded: u64) {
        // Before the first row group, nothing was measured.
        let (before, encoded_before) = self.row_groups.last().copied().unwrap_or_default();
        self.row_groups.push((before + bytes, encoded_before + encoded));
    }

    /// The ratio for row group `next`. It counts only row groups that are encoded by then with any
    /// number of threads, so that the file is the same for any number. At most 1, so that no row
    /// group ends before its Arrow arrays have the bytes that are wanted.
    fn ratio(&self, next: usize) -> f64 {
        let known = next.saturating_sub(MAX_IN_FLIGHT + 1);
        let ratio = self
            .row_groups
            .get(known)
            .map_or(self.expected, |&(bytes, encoded)| encoded as f64 / bytes.max(1) as f64);
        ratio.min(1.0)
    }
}

/// The size of a row, if all rows of its batch are alike.
#[derive(Debug, Clone, Copy)]
struct RowSize {
    /// Bytes as Arrow arrays.
    width: u64,
    /// The same, and its levels.
    memory: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum WriterState {
    Open,
    /// What went wrong.
    Poisoned(String),
    Finished,
}

impl Writer<PathSink> {
    /// A writer of the file at `path`, with the default options. What stands there stays until the
    /// new file is whole.
    ///
    /// # Errors
    /// `Io` if no file can be made there, `Unsupported` if the schema has a type that Parquet has
    /// no place for.
    pub fn create(path: impl AsRef<Path>, schema: SchemaRef) -> Result<Self> {
        Self::create_with(path, schema, WriteOptions::default())
    }

    /// As [`Writer::create`], with options.
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
    /// A writer into anything that is [`std::io::Write`], with the default options.
    ///
    /// # Errors
    /// As [`Writer::create`].
    pub fn to(inner: W, schema: SchemaRef) -> Result<Self> {
        Self::new(WriteSink(inner), schema, WriteOptions::default())
    }

    /// Finishes the file, and gives back what it was written into.
    ///
    /// # Errors
    /// As [`Writer::finish`].
    pub fn into_inner(mut self) -> Result<(WriteReport, W)> {
        let report = self.finish_in_place()?;
        Ok((report, self.sink.0))
    }
}

impl<S: Sink> Writer<S> {
    /// A writer into any sink.
    ///
    /// # Errors
    /// As [`Writer::create_with`].
    pub fn new(sink: S, schema: SchemaRef, options: WriteOptions) -> Result<Self> {
        Ok(Self::over(sink, RowGroupEncoder::new(schema, options)?))
    }

    /// A writer into any sink, with an encoder that is shared with others.
    pub fn over(sink: S, encoder: RowGroupEncoder) -> Self {
        let in_flight = InFlight::new(encoder.threads.clone());
        Self {
            sink,
            encoder,
            pending: PendingRowGroup::default(),
            in_flight,
            written: 0,
            row_groups: Vec::new(),
            indexes: Vec::new(),
            reports: Vec::new(),
            size_ratio: SizeRatio { expected: 0.5, row_groups: Vec::new() },
            encryptor: None,
            state: WriterState::Open,
        }
    }

    /// The schema that batches must have.
    pub fn schema(&self) -> &SchemaRef {
        &self.encoder.layout.arrow
    }

    /// What encodes row groups for this file: clone it to encode on threads of your own, and
    /// [`Writer::append`] the results.
    pub fn encoder(&self) -> &RowGroupEncoder {
        &self.encoder
    }

    /// Bytes given to the sink so far.
    pub fn bytes_written(&self) -> u64 {
        self.written
    }

    /// Rows that are held for the next row group.
    pub fn rows_pending(&self) -> usize {
        self.pending.rows()
    }

    /// Bytes that the file would have if it were finished now, about.
    pub fn estimated_bytes(&self) -> u64 {
        self.written + self.estimated(self.in_flight.bytes() + self.pending.bytes())
    }

    /// Bytes of memory that are held: rows that wait, those that are being encoded and about what
    /// becomes of them, and the indexes.
    #[cfg(all(feature = "engine", feature = "object_store"))]
    pub(super) fn bytes_held(&self) -> u64 {
        let encoding = self.in_flight.memory() + self.estimated(self.in_flight.bytes());
        self.pending.memory() + encoding + self.index_bytes() as u64
    }

    /// Appends the rows of a batch. They are held until a row group is full.
    ///
    /// # Errors
    /// `Usage` if the batch has another schema; nothing of it is taken then. `Usage` if a value of
    /// this or an earlier row group does not fit, `Io` if the sink fails: nothing more is written
    /// then, see [`Writer`].
    pub fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        self.check_open()?;
        self.encoder.check(batch)?;
        let pushed = self.push(batch);
        self.poison(pushed)
    }

    fn push(&mut self, batch: &RecordBatch) -> Result<()> {
        let mut from = 0;
        while from < batch.num_rows() {
            let left = batch.num_rows() - from;
            let rest = batch.slice(from, left);
            let bytes = batch_bytes(&rest);
            let is_full = self.pending.bytes() + bytes >= self.encoder.options.row_group_bytes;
            // Until one row group is encoded, the ratio is a guess.
            if is_full && self.size_ratio.row_groups.is_empty() {
                self.write_oldest()?;
            }
            let width = (bytes / left as u64).max(1);
            let row = RowSize { width, memory: width + level_bytes(&rest) / left as u64 };
            let take = left.min(self.rows_that_fit(row));
            if take > 0 {
                self.wait_for_memory(row.memory.saturating_mul(take as u64))?;
                self.pending.push(rest.slice(0, take));
                from += take;
            }
            if take < left || self.pending.rows() >= self.max_rows() {
                self.begin_row_group()?;
            }
        }
        Ok(())
    }

    /// How many rows of this size the row group still takes: by its rows, its bytes in the file and
    /// the memory. At least one if it has none.
    fn rows_that_fit(&self, row: RowSize) -> usize {
        let rows_left = self.max_rows().saturating_sub(self.pending.rows());
        let by_memory = self.memory_share().saturating_sub(self.pending.memory()) / row.memory;
        let wanted = self.encoder.options.row_group_bytes;
        let by_size = wanted.saturating_sub(self.estimated(self.pending.bytes()))
            / self.estimated(row.width).max(1);
        let fit = saturated(by_memory.min(by_size));
        rows_left.min(fit.max(usize::from(self.pending.is_empty())))
    }

    /// Writes row groups until there is memory for `more` bytes beside those that are held, or
    /// nothing is left to write.
    fn wait_for_memory(&mut self, more: u64) -> Result<()> {
        while self.in_flight.len() > 0
            && self.in_flight.memory() + self.pending.memory() + more > self.memory_share()
        {
            self.write_oldest()?;
        }
        Ok(())
    }

    fn max_rows(&self) -> usize {
        saturated(self.encoder.options.row_group_rows)
    }

    /// What the rows that are held, and those that are being encoded, may take.
    fn memory_share(&self) -> u64 {
        self.encoder.options.memory / SHARES
    }

    /// Ends the row group: what is held is encoded and written, whatever its size.
    ///
    /// # Errors
    /// As [`Writer::write`].
    pub fn flush(&mut self) -> Result<()> {
        self.check_open()?;
        let flushed = self.flush_all();
        self.poison(flushed)
    }

    fn flush_all(&mut self) -> Result<()> {
        self.begin_row_group()?;
        while self.in_flight.len() > 0 {
            self.write_oldest()?;
        }
        Ok(())
    }

    /// Gives the rows that are held to the threads.
    fn begin_row_group(&mut self) -> Result<()> {
        if !self.pending.is_empty() {
            if !self.encoder.inferences.is_empty() {
                self.encoder = self.encoder.infer(self.pending.batches())?;
            }
            let row_group = self.row_groups.len() + self.in_flight.len();
            let encryption = self.encryption_of(row_group)?;
            let pending = std::mem::take(&mut self.pending);
            self.in_flight.begin(&self.encoder.layout, pending, encryption);
        }
        while self.in_flight.len() > self.encoder.threads.max_in_flight() {
            self.write_oldest()?;
        }
        Ok(())
    }

    /// Waits for the oldest row group, and writes it.
    fn write_oldest(&mut self) -> Result<()> {
        let Some((bytes, row_group)) = self.in_flight.next()? else {
            return Ok(());
        };
        self.size_ratio.add(bytes, row_group.bytes());
        self.put(row_group)
    }

    /// Appends a row group that was encoded elsewhere by [`Writer::encoder`], after the rows so
    /// far.
    ///
    /// # Errors
    /// As [`Writer::write`].
    pub fn append(&mut self, row_group: EncodedRowGroup) -> Result<()> {
        self.flush()?;
        if row_group.layout.leaves != self.encoder.layout.leaves {
            return Err(Error::usage("a row group of another schema"));
        }
        // What is encoded elsewhere is not shredded by what is found here.
        self.encoder.inferences.clear();
        let put = self.put(row_group);
        self.poison(put)
    }

    /// Adds a pair to the file's key-value metadata.
    pub fn add_key_value(&mut self, key: impl Into<String>, value: impl Into<String>) {
        let (key, value) = (key.into(), Some(value.into()));
        self.encoder.options.key_values.push(KeyValue { key, value, ..KeyValue::default() });
    }

    /// Writes what is held, the indexes and the footer, and makes the file whole.
    ///
    /// # Errors
    /// As [`Writer::write`].
    pub fn finish(mut self) -> Result<WriteReport> {
        self.finish_in_place()
    }

    pub(super) fn finish_in_place(&mut self) -> Result<WriteReport> {
        self.flush()?;
        let finished = self.end();
        let report = self.poison(finished)?;
        self.state = WriterState::Finished;
        Ok(report)
    }

    fn end(&mut self) -> Result<WriteReport> {
        let _span = trace::finish(self.row_groups.len());
        self.begin()?;
        let mut out = Vec::new();
        let encryptor = self.encryptor.as_ref();
        indexes(&mut self.row_groups, &self.indexes, self.written, encryptor, &mut out)?;
        let rows: u64 = self.reports.iter().map(|row_group| row_group.rows).sum();
        let mut key_values = self.encoder.key_values.clone();
        for pair in &self.encoder.options.key_values {
            key_values.retain(|old| old.key != pair.key);
            key_values.push(pair.clone());
        }
        let layout = &self.encoder.layout;
        let orders = layout.leaves.iter().zip(&layout.settings);
        let mut metadata = FileMetaData {
            version: 2,
            schema: self.encoder.schema.elements().collect(),
            num_rows: i64::try_from(rows).map_err(|_| Error::usage("more than 2^63 rows"))?,
            row_groups: std::mem::take(&mut self.row_groups),
            key_value_metadata: (!key_values.is_empty()).then_some(key_values),
            created_by: Some(self.encoder.options.created_by.clone()),
            column_orders: Some(
                orders
                    .map(|(leaf, of)| ValueOrder::of(leaf, of.total_order).column_order())
                    .collect(),
            ),
            ..FileMetaData::default()
        };
        if let Some(encryptor) = encryptor {
            protect(&mut metadata, &layout.leaves, encryptor)?;
        }
        footer(&metadata, encryptor, &mut out)?;
        self.send(out.into())?;
        self.sink.finish()?;
        let row_groups = std::mem::take(&mut self.reports);
        let shapes = self.encoder.shapes();
        Ok(WriteReport { rows, bytes: self.written, row_groups, metadata, shapes })
    }

    /// Writes the magic number once.
    fn begin(&mut self) -> Result<()> {
        if self.written > 0 {
            return Ok(());
        }
        self.prepare_encryption()?;
        self.send(Bytes::from_static(magic(self.encryptor.as_ref())))
    }

    /// Makes what encrypts this file and no other, once.
    fn prepare_encryption(&mut self) -> Result<()> {
        let encryption = self.encoder.options.encryption.as_ref();
        if let (None, Some(encryption), Some(protections)) =
            (&self.encryptor, encryption, &self.encoder.layout.protections)
        {
            self.encryptor = Some(FileEncryptor::new(encryption, protections)?);
        }
        Ok(())
    }

    fn encryption_of(&mut self, row_group: usize) -> Result<Option<RowGroupEncryption>> {
        self.prepare_encryption()?;
        let checksums = self.encoder.options.checksums;
        let of =
            |file: &FileEncryptor| RowGroupEncryption { file: file.clone(), row_group, checksums };
        Ok(self.encryptor.as_ref().map(of))
    }

    fn put(&mut self, mut row_group: EncodedRowGroup) -> Result<()> {
        let _span = trace::write_row_group(self.row_groups.len(), row_group.rows as u64);
        self.begin()?;
        if let Some(encryption) = self.encryption_of(self.row_groups.len())? {
            for (leaf, chunk) in row_group.chunks.iter_mut().enumerate() {
                encryption.encrypt(leaf, chunk)?;
            }
        }
        let (placed, report) = row_group.place(self.written, self.row_groups.len())?;
        let mut of_chunks = Vec::with_capacity(row_group.chunks.len());
        for mut chunk in row_group.chunks {
            of_chunks.push(Indexes::of(&mut chunk));
            for bytes in chunk.bytes {
                self.send(bytes)?;
            }
        }
        self.row_groups.push(placed);
        self.indexes.push(of_chunks);
        self.reports.push(report);
        Ok(())
    }

    fn send(&mut self, bytes: Bytes) -> Result<()> {
        let len = bytes.len() as u64;
        self.sink.write(bytes)?;
        self.written += len;
        Ok(())
    }

    /// Rows of a batch that the file takes until it has about `bytes` bytes, if they are all alike;
    /// at least 1.
    pub(crate) fn rows_until(&self, batch: &RecordBatch, bytes: u64) -> usize {
        let left = bytes.saturating_sub(self.estimated_bytes());
        let per_row = self.estimated(batch_bytes(batch)) / (batch.num_rows() as u64).max(1);
        usize::try_from(left / per_row.max(1)).unwrap_or(usize::MAX).saturating_add(1)
    }

    /// Encoded bytes for each byte of Arrow arrays, as far as is known.
    pub(crate) fn ratio(&self) -> f64 {
        self.size_ratio.ratio(self.size_ratio.row_groups.len() + self.in_flight.len())
    }

    /// Sets the ratio that is expected, as another file of the same kind of rows had it.
    pub(crate) fn expect_ratio(&mut self, ratio: f64) {
        self.size_ratio.expected = ratio;
    }

    /// Bytes in the file of so many bytes of Arrow arrays.
    fn estimated(&self, bytes: u64) -> u64 {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "an estimate, never negative"
        )]
        let estimate = (bytes as f64 * self.ratio()) as u64;
        estimate
    }

    fn check_open(&self) -> Result<()> {
        match &self.state {
            WriterState::Open => Ok(()),
            WriterState::Finished => Err(Error::usage("the file is finished")),
            WriterState::Poisoned(why) => {
                Err(Error::usage(format_args!("an earlier error ended the file: {why}")))
            }
        }
    }

    /// After an error nothing more is written.
    fn poison<T>(&mut self, result: Result<T>) -> Result<T> {
        if let Err(error) = &result {
            self.state = WriterState::Poisoned(error.to_string());
            self.pending = PendingRowGroup::default();
            self.in_flight.cancel();
        }
        result
    }

    /// Memory that indexes of finished row groups take until the end of the file.
    pub fn index_bytes(&self) -> usize {
        self.indexes.iter().flatten().map(Indexes::bytes_held).sum()
    }
}

/// Shares of the memory, because a row group takes three times its bytes: its rows, what is made of
/// them, and its bytes in the file.
const SHARES: u64 = 3;
