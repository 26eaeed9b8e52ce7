//! [`ChunkRegions`]: the byte ranges of column chunks, which must not overlap.
//!
//! Used where a file is copied or encoded again (`rewrite`, `marq convert`); spec: README.md, "File
//! format". Trap: a footer of a few bytes may name the same chunk thousands of times. Limits bound
//! the reading of it; a copy would be that many times as large as the file.

use std::collections::BTreeMap;
use std::ops::Range;

use super::metadata::Metadata;
use super::plan::byte_range;
use crate::error::{Error, Result, Spec};

/// The bytes of the column chunks that were seen so far.
#[derive(Debug, Default)]
pub(crate) struct ChunkRegions {
    /// Start → end.
    seen: BTreeMap<u64, u64>,
}

impl ChunkRegions {
    /// Adds the bytes of a chunk; those of a chunk without values are none.
    ///
    /// # Errors
    /// `Malformed` if they overlap those of another chunk.
    pub(crate) fn add(&mut self, range: &Range<u64>) -> Result<()> {
        if range.is_empty() {
            return Ok(());
        }
        let before = self.seen.range(..range.end).next_back();
        if let Some((start, end)) = before.filter(|(_, end)| **end > range.start) {
            return Err(Error::malformed(
                Spec::Container,
                format_args!(
                    "the column chunk at bytes {} to {} shares bytes with the one at {start} to {end}, \
                     so a copy may be far larger than the file; Reader::shared_bytes(true) \
                     (marq: --shared-bytes) copies it all the same",
                    range.start, range.end
                ),
            ));
        }
        self.seen.insert(range.start, range.end);
        Ok(())
    }
}

impl Metadata {
    /// Checks that no two column chunks share bytes, because a copy of their rows might be far
    /// larger than the file. Chunks whose metadata are encrypted with a missing key are not
    /// checked.
    ///
    /// # Errors
    /// `Malformed`, naming the row group and the column.
    pub fn check_shared_bytes(&self) -> Result<()> {
        let mut regions = ChunkRegions::default();
        for row_group in 0..self.footer().row_groups() {
            for leaf in 0..self.footer().schema().leaves_len() {
                let Ok(chunk) = self.footer().column_chunk_ref(row_group, leaf) else { continue };
                let Some(meta) = chunk.meta_data else { continue };
                let slots = u64::try_from(meta.num_values).unwrap_or(0);
                let Ok(range) = byte_range(&meta, slots, self.file_len()) else { continue };
                let place = |e: Error| e.at_row_group(row_group).at_column(self.leaf_name(leaf));
                regions.add(&range).map_err(place)?;
            }
        }
        Ok(())
    }

    fn leaf_name(&self, leaf: usize) -> String {
        self.footer()
            .schema()
            .leaf_node(leaf)
            .map_or_else(|_| String::new(), |node| node.path().dotted())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_beside_each_other_are_fine_and_overlaps_are_not() {
        for (ranges, is_fine) in [
            (&[0..4, 4..8, 8..9][..], true),
            (&[4..8, 0..4], true),
            (&[4..4, 4..4, 0..8], true),
            (&[0..4, 3..5], false),
            (&[3..5, 0..4], false),
            (&[0..9, 2..3], false),
            (&[2..3, 0..9], false),
            (&[1..2, 1..2], false),
        ] {
            let mut regions = ChunkRegions::default();
            assert_eq!(
                ranges.iter().all(|range| regions.add(range).is_ok()),
                is_fine,
                "{ranges:?}"
            );
        }
    }
}
