//! Writes row groups of the merged rows of some files, between others that are copied.

use std::ops::Range;

use super::splicer::{CopiedChunk, Splicer};
use crate::error::{Error, Result};
use crate::format::{ColumnChunk, RowGroup};
use crate::io::Sink;
use crate::rewrite::regroup::merged_rows;
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
        let sorting = merge.order.columns();
        let (mut held, mut held_rows, mut held_bytes) = (Vec::new(), 0u64, 0u64);
        let mut memory = self.budget.reservation("rows that are merged");
        let mut done: Vec<NewRowGroup> = Vec::new();
        let mut batches = merge.rows;
        loop {
            let batch = batches.next().transpose()?;
            let is_end = batch.is_none();
            if let Some(batch) = batch {
                let bytes = batch_bytes(&batch);
                // With what the rows become.
                memory.grow(usize::try_from(bytes.saturating_mul(2)).unwrap_or(usize::MAX))?;
                held_rows += batch.num_rows() as u64;
                held_bytes += bytes;
                held.push(batch);
            }
            let is_full = held_rows >= most || held_bytes.saturating_mul(8) >= self.budget.cap();
            if held.is_empty() || !(is_full || is_end) {
                match is_end {
                    true => return Ok(done),
                    false => continue,
                }
            }
            let encoded = merge.encoder.encode(&held)?;
            let start = self.out.here()?;
            let number = first + done.len();
            let mut columns: Vec<(ColumnChunk, CopiedChunk)> = Vec::new();
            for (leaf, chunk) in encoded.chunks.into_iter().enumerate() {
                columns.push(self.place_encoded((files.start, 0), leaf, number, chunk)?);
            }
            let (columns, copied): (Vec<ColumnChunk>, Vec<CopiedChunk>) =
                columns.into_iter().unzip();
            let sizes = columns.iter().filter_map(|chunk| chunk.meta_data.as_ref());
            let total_byte_size = sizes.map(|meta| meta.total_uncompressed_size).sum();
            let row_group = RowGroup {
                columns,
                total_byte_size,
                num_rows: i64::try_from(held_rows)
                    .map_err(|_| Error::usage("a row group of more than 2^63 rows"))?,
                sorting_columns: Some(sorting.clone()),
                total_compressed_size: Some(self.out.here()? - start),
                file_offset: Some(start),
                ordinal: i16::try_from(number).ok(),
                ..RowGroup::default()
            };
            done.push((row_group, copied));
            held.clear();
            (held_rows, held_bytes) = (0, 0);
            memory.resize(0)?;
        }
    }
}
