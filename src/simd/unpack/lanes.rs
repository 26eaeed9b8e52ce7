//! Plans for machines that permute 16 bytes: which bytes go into each lane, and how far a lane is
//! shifted. A group of 8 values takes as many bytes as a value has bits.

use super::BLOCK;

/// Bytes of a vector of either plan.
pub(super) const VECTOR: usize = 16;

/// Lanes of 4 bytes hold a value and the bits before it up to this width.
pub(super) const WIDEST_32: u32 = 25;
/// The same for lanes of 8 bytes.
pub(super) const WIDEST_64: u32 = 57;

/// A group of 8 values as `PARTS` vectors of `LANES` values of one width.
pub(super) struct LanePlan<T, const LANES: usize, const PARTS: usize> {
    /// For each lane the bytes of its value in the vector.
    pub bytes: [[u8; VECTOR]; PARTS],
    /// Bits before the value in its lane.
    pub shifts: [[T; LANES]; PARTS],
}

/// Plans for lanes of 4 bytes.
pub(super) type Plan32 = LanePlan<u32, 4, 2>;
/// Plans for lanes of 8 bytes.
pub(super) type Plan64 = LanePlan<u64, 2, 4>;

/// Where part `part` of `parts` of a group begins in it.
pub(super) const fn part_start(width: usize, part: usize, parts: usize) -> usize {
    width * part / parts
}

/// Number of blocks, at most `blocks`, that can be read in vectors; the last vector reaches beyond
/// its group.
pub(super) fn readable_blocks(len: usize, width: usize, parts: usize, blocks: usize) -> usize {
    let reach = 3 * width + part_start(width, parts - 1, parts) + VECTOR;
    len.checked_sub(reach).map_or(0, |spare| spare / (BLOCK / 8 * width) + 1).min(blocks)
}

#[expect(clippy::cast_possible_truncation, reason = "at most 15, and no conversion is const")]
const fn narrow(byte: usize) -> u8 {
    byte as u8
}

macro_rules! plans {
    ($name:ident, $plan:ty, $word:ty, $lanes:literal, $parts:literal, $widest:ident) => {
        /// The plan of each width.
        pub(super) static $name: [$plan; $widest as usize + 1] = {
            const EMPTY: $plan =
                LanePlan { bytes: [[0; VECTOR]; $parts], shifts: [[0; $lanes]; $parts] };
            let mut plans = [const { EMPTY }; $widest as usize + 1];
            let mut width = 0;
            while width < plans.len() {
                let mut value = 0;
                while value < 8 {
                    let (part, lane) = (value / $lanes, value % $lanes);
                    let bit = value * width - 8 * part_start(width, part, $parts);
                    plans[width].shifts[part][lane] = narrow(bit % 8) as $word;
                    let mut byte = 0;
                    while byte < VECTOR / $lanes {
                        // The wanted bits are in the vector; other bits are shifted or masked away.
                        let from = bit / 8 + byte;
                        let from = if from < VECTOR { from } else { VECTOR - 1 };
                        plans[width].bytes[part][lane * (VECTOR / $lanes) + byte] = narrow(from);
                        byte += 1;
                    }
                    value += 1;
                }
                width += 1;
            }
            plans
        };
    };
}
plans!(PLANS_32, Plan32, u32, 4, 2, WIDEST_32);
plans!(PLANS_64, Plan64, u64, 2, 4, WIDEST_64);
