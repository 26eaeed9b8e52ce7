//! Content-defined chunking: the content decides where a page begins, not a count, so that an edit
//! in the middle of a column changes only the pages around it.
//!
//! A gear hash rolls over the levels and values of a leaf; where its highest bits are 0, the page
//! ends with the row. Stores that deduplicate equal pieces of files benefit from it, and so do
//! diffs.

use super::values::LeafValues;
use crate::levels::LeafLevels;
use crate::write::column_options::ChunkingOptions;

/// Rolls value `i` into the hash, and returns how many bytes it has.
pub(super) fn roll_value(values: &LeafValues<'_>, i: usize, hash: &mut u64) -> usize {
    match values {
        LeafValues::Bits(bits) => roll(&[u8::from(bits.get(i))], hash),
        LeafValues::Words32(words) => {
            words.get(i).map_or(0, |word| roll(&word.to_le_bytes(), hash))
        }
        LeafValues::Words64(words) => {
            words.get(i).map_or(0, |word| roll(&word.to_le_bytes(), hash))
        }
        LeafValues::Bytes(values) => values.get(i).map_or(0, |value| roll(value, hash)),
        LeafValues::Fixed { width, bytes } => {
            bytes.get(i * width..(i + 1) * width).map_or(0, |value| roll(value, hash))
        }
    }
}

/// Rolls bytes into a hash, which depends on the last 64 bytes.
fn roll(bytes: &[u8], hash: &mut u64) -> usize {
    for byte in bytes {
        let gear = GEAR[usize::from(*byte)];
        *hash = (*hash << 1).wrapping_add(gear);
    }
    bytes.len()
}

/// A random word for each byte: the numbers of SplitMix64 from 0 on.
const GEAR: [u64; 256] = {
    let mut gear = [0; 256];
    let mut state = 0u64;
    let mut i = 0;
    while i < 256 {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        gear[i] = z ^ (z >> 31);
        i += 1;
    }
    gear
};

/// The rows that pages begin with, and the end. `roll_value` rolls a value into the hash, and
/// returns its number of bytes.
pub(super) fn cuts(
    levels: &LeafLevels,
    rows: usize,
    options: ChunkingOptions,
    roll_value: impl Fn(usize, &mut u64) -> usize,
) -> Vec<usize> {
    // Between the smallest and the largest page, a cut is as likely at every byte: on average half
    // the way.
    let wanted = (options.max_bytes.saturating_sub(options.min_bytes) / 2).max(1);
    let mask = u64::MAX << (u64::BITS - wanted.ilog2().clamp(1, 48));
    let mut cuts = vec![0];
    let (mut hash, mut bytes, mut row, mut value) = (0u64, 0, 0, 0);
    let mut cut_here = false;
    for (def, rep) in levels.entries() {
        if rep == 0 {
            let begins_page = row > 0 && (cut_here || bytes >= options.max_bytes);
            if begins_page {
                cuts.push(row);
                bytes = 0;
            }
            cut_here = false;
            row += 1;
        }
        if levels.max_def() > 0 {
            bytes += roll(&def.to_le_bytes(), &mut hash);
        }
        if levels.max_rep() > 0 {
            bytes += roll(&rep.to_le_bytes(), &mut hash);
        }
        if def == levels.max_def() {
            bytes += roll_value(value, &mut hash);
            value += 1;
        }
        cut_here |= bytes >= options.min_bytes && hash & mask == 0;
    }
    cuts.push(rows);
    cuts.dedup();
    cuts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_the_content_does_not_end_has_the_maximum() {
        // Equal bytes never end a page. A row has two bytes of a level, and five of its value.
        let mut levels = LeafLevels::new(1, 0);
        levels.push_run(1, 100).unwrap();
        let values = LeafValues::Fixed { width: 5, bytes: vec![0; 500].into() };
        for (max_bytes, expected) in [
            (200, &[0, 29, 58, 87, 100][..]),
            (203, &[0, 29, 58, 87, 100]),
            (204, &[0, 30, 60, 90, 100]),
            (700, &[0, 100]),
        ] {
            let options = ChunkingOptions { min_bytes: 64, max_bytes };
            let found = cuts(&levels, 100, options, |i, hash| roll_value(&values, i, hash));
            assert_eq!(found, expected, "{max_bytes}");
        }
    }
}
