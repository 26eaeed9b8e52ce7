//! [`FileEncoder`] turns batches into the bytes of a file. The writers drive it; they differ in
//! where the bytes go.

use std::fmt;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use bytes::Bytes;

use super::row_group_encoder::RowGroupEncoder;
use crate::error::{Error, Result};
use crate::format::KeyValue;
use crate::io::InFlight;
use crate::write::{
    EncodedRowGroup, FileAssembler, PendingRowGroup, RowGroupEncryption, SpilledRows, WriteReport,
    WriteSchedule, WriteStep,
};

/// A file that is being encoded: the schedule chooses rows, threads encode them, and the assembler
/// makes a file of the results.
pub(crate) struct FileEncoder {
    pub(super) encoder: RowGroupEncoder,
    schedule: WriteSchedule,
    /// Full row groups that are not assembled yet.
    in_flight: InFlight,
    assembler: FileAssembler,
    /// Rows of the next row group in a temporary file.
    spilled: Option<SpilledRows>,
    /// A row group that is encoded from a temporary file, some leaves at a time.
    unspilling: Option<Unspilling>,
}

/// A row group that comes from a temporary file.
struct Unspilling {
    rows: SpilledRows,
    encryption: Option<RowGroupEncryption>,
    /// Bytes that were encoded so far.
    encoded: u64,
}

impl fmt::Debug for FileEncoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileEncoder")
            .field("encoder", &self.encoder)
            .field("assembled", &self.assembler.len())
            .finish_non_exhaustive()
    }
}

impl FileEncoder {
    pub(super) fn new(encoder: RowGroupEncoder) -> Self {
        Self {
            schedule: WriteSchedule::new(&encoder.file.options, &encoder.file.row_groups.sizes),
            in_flight: InFlight::new(encoder.threads.clone()),
            assembler: FileAssembler::default(),
            spilled: None,
            unspilling: None,
            encoder,
        }
    }

    /// The schema that batches must have.
    pub(super) fn schema(&self) -> &SchemaRef {
        &self.encoder.file.row_groups.arrow
    }

    /// Checks that a batch has the schema.
    ///
    /// # Errors
    /// `Usage` if it does not.
    pub(super) fn check(&self, batch: &RecordBatch) -> Result<()> {
        self.encoder.file.check(batch)
    }

    /// Takes a batch that was checked: [`FileEncoder::next`] is to be called until nothing comes.
    pub(super) fn push(&mut self, batch: &RecordBatch) {
        self.schedule.push(batch.clone());
    }

    /// The next row group, or the next leaves of one, that must be written before more rows are
    /// held; `None` if there is none.
    ///
    /// # Errors
    /// `Usage` if a value does not fit its leaf; nothing more may be asked for then.
    pub(super) fn next(&mut self) -> Result<Option<EncodedRowGroup>> {
        let max_in_flight = self.encoder.threads.max_in_flight();
        self.run(|schedule| schedule.next(max_in_flight))
    }

    /// The next row group, until all rows so far are in one.
    ///
    /// # Errors
    /// As [`FileEncoder::next`].
    pub(super) fn flush(&mut self) -> Result<Option<EncodedRowGroup>> {
        self.run(WriteSchedule::flush)
    }

    fn run(
        &mut self,
        mut next: impl FnMut(&mut WriteSchedule) -> Result<WriteStep>,
    ) -> Result<Option<EncodedRowGroup>> {
        loop {
            if let Some(leaves) = self.next_unspilled()? {
                return Ok(Some(leaves));
            }
            match next(&mut self.schedule)? {
                WriteStep::Encode(rows) => {
                    self.encoder.file.infer(rows.batches())?;
                    // The schedule counts the new one already.
                    let ordinal = self.assembler.row_groups() + self.schedule.in_flight() - 1;
                    let encryption = self.assembler.encryption(&self.encoder.file, ordinal)?;
                    match self.spilled.take() {
                        None => {
                            let layout = &self.encoder.file.row_groups;
                            self.in_flight.begin(layout, Box::new(rows), encryption)?;
                        }
                        Some(mut spilled) => {
                            spilled.push(rows, &self.encoder.threads.parallelism())?;
                            let (rows, encoded) = (spilled, 0);
                            self.unspilling = Some(Unspilling { rows, encryption, encoded });
                        }
                    }
                }
                WriteStep::Spill(rows) => {
                    self.encoder.file.infer(rows.batches())?;
                    self.spill(rows)?;
                }
                WriteStep::Wait => {
                    let row_group = self.in_flight.next()?.ok_or_else(not_given_back)?;
                    self.schedule.encoded(row_group.bytes());
                    return Ok(Some(row_group));
                }
                WriteStep::Done => return Ok(None),
            }
        }
    }

    /// Appends rows to a temporary file.
    fn spill(&mut self, rows: PendingRowGroup) -> Result<()> {
        let mut spilled = match (self.spilled.take(), &self.encoder.file.options.spill) {
            (Some(spilled), _) => spilled,
            (None, Some(store)) => {
                SpilledRows::new(self.encoder.file.row_groups.clone(), store.as_ref())?
            }
            (None, None) => return Err(Error::internal("rows spill, and may not")),
        };
        spilled.push(rows, &self.encoder.threads.parallelism())?;
        self.schedule.spilled(spilled.largest_leaf());
        self.spilled = Some(spilled);
        Ok(())
    }

    /// The next leaves of a row group that was spilled; `None` after the last, or if there is none.
    fn next_unspilled(&mut self) -> Result<Option<EncodedRowGroup>> {
        let Some(group) = &mut self.unspilling else { return Ok(None) };
        let Some(leaves) = group.rows.next_leaves(self.schedule.bytes_to_unspill())? else {
            self.schedule.encoded(group.encoded);
            self.unspilling = None;
            return Ok(None);
        };
        let (layout, encryption) = (&self.encoder.file.row_groups, group.encryption.clone());
        self.in_flight.begin(layout, Box::new(leaves), encryption)?;
        let encoded = self.in_flight.next()?.ok_or_else(not_given_back)?;
        group.encoded += encoded.bytes();
        Ok(Some(encoded))
    }

    /// Checks that a row group that was encoded elsewhere fits the file, and prepares for it.
    ///
    /// # Errors
    /// `Usage` if it is of another schema.
    pub(super) fn adopt(&mut self, row_group: &EncodedRowGroup) -> Result<()> {
        if row_group.layout.leaves != self.encoder.file.row_groups.leaves {
            return Err(Error::usage("a row group of another schema"));
        }
        // Row groups that are encoded elsewhere are not shredded by shapes that are inferred here.
        self.encoder.file.end_inference();
        Ok(())
    }

    /// The bytes of a row group, which is the next one of the file.
    ///
    /// # Errors
    /// `Usage` if the file becomes too large for the format, `Crypto` if it cannot be encrypted.
    pub(super) fn assemble(&mut self, row_group: EncodedRowGroup) -> Result<Vec<Bytes>> {
        self.assembler.row_group(&self.encoder.file, row_group)
    }

    /// The bytes of the end of the file, after a [flush](FileEncoder::flush), and what it holds.
    ///
    /// # Errors
    /// As [`FileEncoder::assemble`].
    pub(super) fn end(&mut self) -> Result<(Vec<Bytes>, WriteReport)> {
        std::mem::take(&mut self.assembler).end(&self.encoder.file)
    }

    /// A file of only a footer, for the row groups so far.
    ///
    /// # Errors
    /// As [`FileEncoder::assemble`].
    pub(super) fn side_footer(&self) -> Result<Bytes> {
        self.assembler.side_footer(&self.encoder.file)
    }

    /// Forgets all rows: the file is not written to its end.
    pub(super) fn cancel(&mut self) {
        self.schedule.clear();
        self.in_flight.cancel();
        (self.spilled, self.unspilling) = (None, None);
    }

    pub(super) fn add_key_value(&mut self, key: impl Into<String>, value: impl Into<String>) {
        let (key, value) = (key.into(), Some(value.into()));
        self.encoder.file.options.key_values.push(KeyValue { key, value, ..KeyValue::default() });
    }

    /// Row groups that were assembled so far.
    pub(super) fn row_groups(&self) -> usize {
        self.assembler.row_groups()
    }

    /// Bytes that were assembled so far.
    pub(crate) fn bytes_written(&self) -> u64 {
        self.assembler.len()
    }

    /// Rows that are held for the next row group.
    pub(super) fn rows_pending(&self) -> usize {
        self.schedule.rows_pending()
    }

    /// Bytes that the file would have if it were finished now, about.
    pub(crate) fn estimated_bytes(&self) -> u64 {
        self.assembler.len() + self.schedule.estimated_bytes()
    }

    /// Bytes of memory that are held: waiting rows, rows that are being encoded and their estimated
    /// output, the metadata and indexes of finished row groups, and the footer of those.
    #[cfg_attr(not(all(feature = "object_store", feature = "engine")), allow(dead_code))]
    pub(super) fn bytes_held(&self) -> u64 {
        let footer = self.assembler.footer_bytes(&self.encoder.file);
        let metadata = self.assembler.metadata_bytes();
        self.schedule.bytes_held() + (metadata + footer) as u64
    }

    /// Memory that metadata and indexes of finished row groups take until the end of the file.
    pub(super) fn metadata_bytes(&self) -> usize {
        self.assembler.metadata_bytes()
    }

    /// Rows of a batch that the file takes until it has about `bytes` bytes, if they are all alike;
    /// at least 1.
    pub(crate) fn rows_until(&self, batch: &RecordBatch, bytes: u64) -> usize {
        self.schedule.rows_of(batch, bytes.saturating_sub(self.estimated_bytes()))
    }

    /// Encoded bytes for each byte of Arrow arrays, as far as is known.
    pub(crate) fn ratio(&self) -> f64 {
        self.schedule.ratio()
    }

    /// Sets the ratio that is expected, as another file with similar rows had it.
    pub(crate) fn expect_ratio(&mut self, ratio: f64) {
        self.schedule.expect_ratio(ratio);
    }
}

#[cold]
fn not_given_back() -> Error {
    Error::internal("a row group that was begun is not given back")
}
