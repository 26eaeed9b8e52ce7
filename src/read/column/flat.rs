//! Decodes rows outside lists, where a row is one slot.

use super::reader::{LeafReader, too_few_rows};
use super::rows::{DecodedRows, RowOutput};
use crate::levels::{Decoded, leaf_validity};
use crate::read::supplied::Stop;

impl LeafReader {
    /// Decodes or skips rows, page by page.
    pub(super) fn decode_flat(&mut self, rows: usize, output: &mut RowOutput) -> Result<(), Stop> {
        let (max_def, max_rep) = (self.cursor.max_def, self.cursor.max_rep);
        let (slot, keep_levels) = (self.slot, self.keep_levels);
        while self.rows_begun < rows {
            let left = rows - self.rows_begun;
            let Some(page) = self.cursor.open()? else {
                return Err(too_few_rows(self.rows_begun, rows).into());
            };
            let n = left.min(page.slots_left);
            page.slots_left -= n;
            let mut skipped = DecodedRows::new(max_def, max_rep);
            let kept = output.rows().unwrap_or(&mut skipped);
            let first = kept.validity.len();
            let values = match max_def {
                0 => {
                    kept.validity.push_run(true, n);
                    n
                }
                1 => page.def.read_validity(n, &mut kept.validity)?,
                _ => 0,
            };
            let decoded = if max_def <= 1 {
                if keep_levels {
                    // A required leaf below an optional struct: its levels say where the struct is
                    // null.
                    kept.append_levels_of_validity(first, n);
                    kept.rep.push_run(0, n);
                }
                Decoded { slots: n, values }
            } else {
                let at = kept.def.len();
                page.def.read(n, &mut kept.def)?;
                let range = at..kept.def.len();
                let decoded = leaf_validity(&kept.def, range, slot, max_def, &mut kept.validity);
                if keep_levels {
                    kept.rep.push_run(0, n);
                } else {
                    kept.def.clear();
                }
                decoded
            };
            self.decode_values(decoded, first, output)?;
            self.rows_begun += n;
        }
        Ok(())
    }
}
