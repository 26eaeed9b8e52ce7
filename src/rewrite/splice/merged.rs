//! Writes row groups of the merged rows of some files, between others that are copied.

use std::ops::Range;

use arrow_array::RecordBatch;

use super::splicer::{CopiedChunk, Splicer};
use crate::error::{Error, Result};
use crate::format::{ColumnChunk, RowGroup, SortingColumn};
use crate::io::Sink;
use crate::rewrite::regroup::merged_rows;
use crate::write::EncodedRowGroup;
use crate::write::row_group::batch_bytes;

/// A row group, and what was copied for it.
pub(super) type NewRowGroup = (RowGroup, Vec<CopiedChunk>);

impl<S: Sink> Splicer<'_, S> {
    /// Merges the rows of these files, and writes them as row groups of about as many rows as the
    /// largest of the old ones; `first` is the number of the first.
    pub(super) fn merged(&mut self, files: Range<usize>, first: usize) -> Result<Vec<NewRowGroup>> {
        let inputs = self.inputs;
        let parts = inputs.files.get(files.clone()).unwrap_or_default();
        let rows = parts.iter().flat_map(|file| &file.row_groups).map(|part| part.rows);
        let most = rows.max().unwrap_or(0).max(1);
        let merge = merged_rows(inputs, self.settings, files.clone(), &self.budget)?;
        let mut held = HeldRows::default();
        let mut memory = self.budget.reservation("rows that are merged");
        let mut done: Vec<NewRowGroup> = Vec::new();
        let (mut batches, mut rest) = (merge.rows, None);
        loop {
            let batch: Option<RecordBatch> = match rest.take() {
                Some(rest) => Some(rest),
                None => batches.next().transpose()?,
            };
            let is_end = batch.is_none();
            if let Some(batch) = batch {
                let fit = usize::try_from(most - held.rows).unwrap_or(usize::MAX);
                let fit = fit.min(batch.num_rows());
                rest = (fit < batch.num_rows()).then(|| batch.slice(fit, batch.num_rows() - fit));
                let bytes = held.push(batch.slice(0, fit));
                // With what the rows become.
                memory.grow(usize::try_from(bytes.saturating_mul(2)).unwrap_or(usize::MAX))?;
            }
            let is_full = held.rows >= most || held.bytes.saturating_mul(8) >= self.budget.cap();
            if held.rows > 0 && (is_full || is_end) {
                let encoded = merge.encoder.encode(&held.batches)?;
                let sorting = merge.order.columns();
                let number = first + done.len();
                done.push(self.merged_group(encoded, sorting, files.start, number)?);
                held = HeldRows::default();
                memory.resize(0)?;
            }
            if is_end {
                return Ok(done);
            }
        }
    }

    /// Writes a row group of merged rows.
    fn merged_group(
        &mut self,
        encoded: EncodedRowGroup,
        sorting: Vec<SortingColumn>,
        file: usize,
        number: usize,
    ) -> Result<NewRowGroup> {
        let start = self.out.here()?;
        let num_rows = i64::try_from(encoded.rows())
            .map_err(|_| Error::usage("a row group of more than 2^63 rows"))?;
        let mut columns: Vec<(ColumnChunk, CopiedChunk)> = Vec::new();
        for (leaf, chunk) in encoded.chunks.into_iter().enumerate() {
            columns.push(self.place_encoded((file, 0), leaf, number, chunk)?);
        }
        let (columns, copied): (Vec<ColumnChunk>, Vec<CopiedChunk>) = columns.into_iter().unzip();
        let sizes = columns.iter().filter_map(|chunk| chunk.meta_data.as_ref());
        let total_byte_size = sizes.map(|meta| meta.total_uncompressed_size).sum();
        let row_group = RowGroup {
            columns,
            total_byte_size,
            num_rows,
            sorting_columns: Some(sorting),
            total_compressed_size: Some(self.out.here()? - start),
            file_offset: Some(start),
            ordinal: i16::try_from(number).ok(),
            ..RowGroup::default()
        };
        Ok((row_group, copied))
    }
}

/// The rows of the next row group.
#[derive(Default)]
struct HeldRows {
    batches: Vec<RecordBatch>,
    rows: u64,
    bytes: u64,
}

impl HeldRows {
    /// Returns the bytes of the rows.
    fn push(&mut self, batch: RecordBatch) -> u64 {
        let bytes = batch_bytes(&batch);
        self.rows += batch.num_rows() as u64;
        self.bytes += bytes;
        self.batches.push(batch);
        bytes
    }
}
