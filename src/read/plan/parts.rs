//! Divides large row groups into parts, which are fetched one by one.

use super::rows::RowRange;
use super::scan::{Plan, proportion};
use crate::error::Result;
use crate::read::options::PageIndexUse;
use crate::selection::RowSelection;

impl Plan {
    /// Divides a row group of [`Plan::ranges`] into parts of about `bytes` fetched bytes each, if
    /// page indexes locate their pages; else, or if it is hardly larger, it stays whole.
    ///
    /// # Errors
    /// `Malformed` if the metadata of a chunk are broken.
    pub(crate) fn parts(&self, range: &RowRange, bytes: u64) -> Result<Vec<RowRange>> {
        let row_group = self.row_group(range)?;
        let rows = row_group.rows_in_group;
        let wanted = proportion(row_group.chunk_bytes(), range.rows.end - range.rows.start, rows);
        let n = wanted / bytes.max(1);
        let never = self.options().page_index == PageIndexUse::Never;
        if n < 2 || never || self.footer().quirks().carries_prefix {
            return Ok(vec![range.clone()]);
        }
        for (column, chunk) in self.leaves().iter().zip(&row_group.chunks) {
            let meta = self.footer().column_chunk_ref(range.row_group, column.leaf.index)?;
            if chunk.slots > 0 && self.offset_index(&meta).is_none() {
                return Ok(vec![range.clone()]);
            }
        }
        let wanted = range.to_selection(rows)?;
        // Whole batches, where they are not large themselves.
        let len = (range.rows.end - range.rows.start).div_ceil(n);
        let batch = self.options().batch_rows as u64;
        let len = if batch < len { len - len % batch } else { len };
        let mut parts = Vec::new();
        let mut start = range.rows.start;
        while start < range.rows.end {
            let part = start..range.rows.end.min(start.saturating_add(len));
            start = part.end;
            let of_part = wanted.and(&RowSelection::from_ranges(rows, [part.clone()])?)?;
            let of_part = range.with_selection(of_part);
            parts.extend(of_part.map(|range| RowRange { part, ..range }));
        }
        Ok(parts)
    }
}
