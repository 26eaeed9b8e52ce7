//! Divides batches whose rows share long values into pieces that can be copied.

use std::ops::Range;

use arrow_array::{Array, RecordBatch, RecordBatchOptions};
use marquetry::Error;
use marquetry::engine::rows::{text_bytes, trimmed, value_bytes};

use crate::args::Global;
use crate::failure::{Failure, Result};

/// Batches, one after the other.
pub(crate) type Batches = Box<dyn Iterator<Item = Result<RecordBatch>>>;

/// The rows of a batch, in their order, in pieces that take little if there are several: rows may
/// share long values, and text or a copy has them for each row. A row takes `more` beside its
/// values. Lists have no other elements than those of the piece, so that these alone are converted.
///
/// # Errors
/// `Unsupported` if a row has more than [`max_row_bytes`].
pub(crate) fn pieces(
    batch: &RecordBatch,
    more: u64,
    max_row_bytes: u64,
) -> Result<impl Iterator<Item = Result<RecordBatch>> + use<>> {
    divided(batch, ranges(batch, more, max_row_bytes, value_bytes)?)
}

/// The same for rows that become text: null and the names of members count, too.
///
/// # Errors
/// As `pieces`.
pub(crate) fn pieces_of_text(
    batch: &RecordBatch,
    more: u64,
    max_row_bytes: u64,
) -> Result<impl Iterator<Item = Result<RecordBatch>> + use<>> {
    divided(batch, ranges(batch, more, max_row_bytes, text_bytes)?)
}

fn divided(
    batch: &RecordBatch,
    ranges: Vec<Range<usize>>,
) -> Result<impl Iterator<Item = Result<RecordBatch>> + use<>> {
    let batch = batch.clone();
    Ok(ranges.into_iter().map(move |rows| {
        let piece = batch.slice(rows.start, rows.len());
        let columns = piece.columns().iter().map(trimmed).collect::<Result<_, _>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
        Ok(RecordBatch::try_new_with_options(piece.schema(), columns, &options)?)
    }))
}

/// Maximum bytes of the values of a row: those of `--mem`, where it is given.
pub(crate) fn max_row_bytes(global: &Global) -> u64 {
    global.mem.unwrap_or(ROW_BYTES)
}

fn ranges(
    batch: &RecordBatch,
    more: u64,
    max_row_bytes: u64,
    bytes_of: fn(&dyn Array) -> u64,
) -> Result<Vec<Range<usize>>> {
    let mut left: Vec<Range<usize>> = std::iter::once(0..batch.num_rows()).collect();
    let mut pieces = Vec::new();
    while let Some(rows) = left.pop() {
        let columns = batch.columns().iter();
        let bytes = columns.map(|column| bytes_of(&column.slice(rows.start, rows.len())));
        let bytes = bytes.fold(more.saturating_mul(rows.len() as u64), u64::saturating_add);
        if bytes <= PIECE_BYTES || rows.len() <= 1 {
            if bytes > max_row_bytes {
                let text = format!(
                    "a row takes {bytes} bytes, and at most {max_row_bytes} are held; raise \
                     --mem to read on"
                );
                return Err(Failure::File(Error::unsupported("rows of such a size", text)));
            }
            pieces.push(rows);
        } else {
            let middle = rows.start + rows.len() / 2;
            left.extend([middle..rows.end, rows.start..middle]);
        }
    }
    Ok(pieces)
}

const PIECE_BYTES: u64 = 2 << 20;

/// Maximum bytes of the values of a row, unless `--mem` says otherwise.
const ROW_BYTES: u64 = 4 << 30;

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::builder::StringViewBuilder;
    use arrow_array::{ArrayRef, Int64Array, ListArray};
    use arrow_buffer::OffsetBuffer;
    use arrow_schema::{DataType, Field};

    use super::*;

    #[test]
    fn rows_that_share_long_values_are_a_few_at_a_time() {
        let of = |column: ArrayRef| {
            let batch = RecordBatch::try_from_iter([("c", column)]).expect("a batch");
            ranges(&batch, 0, ROW_BYTES, value_bytes).expect("rows that are not too long")
        };
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..100_000));
        assert_eq!(of(numbers.clone()).len(), 1);
        let batch = RecordBatch::try_from_iter([("c", numbers)]).expect("a batch");
        assert_eq!(
            ranges(&batch, 30, ROW_BYTES, value_bytes).expect("short rows").len(),
            2,
            "they take 3.8 MB"
        );
        let mut views = StringViewBuilder::new();
        let block = views.append_block(vec![b'x'; 1 << 20].into());
        (0..9).for_each(|_| views.try_append_view(block, 0, 1 << 20).expect("a view"));
        (0..1000).for_each(|_| views.append_value("short"));
        let pieces = of(Arc::new(views.finish()));
        let mut next = 0;
        for rows in &pieces {
            assert_eq!(rows.start, next);
            assert!(rows.start >= 9 || rows.len() <= 2, "{pieces:?}");
            next = rows.end;
        }
        assert_eq!(next, 1009);
        assert!(pieces.len() < 24, "{pieces:?}");
    }

    #[test]
    fn a_row_of_more_than_the_limit_is_refused() {
        let mut views = StringViewBuilder::new();
        let block = views.append_block(vec![b'x'; 1 << 20].into());
        (0..9).for_each(|_| views.try_append_view(block, 0, 1 << 20).expect("a view"));
        let (item, views) = (Field::new_list_field(DataType::Utf8View, true), views.finish());
        let lengths = OffsetBuffer::from_lengths([4, 5]);
        let lists = ListArray::new(Arc::new(item), lengths, Arc::new(views), None);
        let batch = RecordBatch::try_from_iter([("l", Arc::new(lists) as ArrayRef)]);
        let batch = batch.expect("a batch");
        assert_eq!(
            ranges(&batch, 0, 5 << 20, value_bytes).expect("rows within the limit").len(),
            2
        );
        let refused =
            ranges(&batch, 0, (5 << 20) - 1, value_bytes).expect_err("a row beyond the limit");
        assert_eq!(refused.code(), 3);
    }
}
