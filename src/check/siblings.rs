//! [`GroupLevels`]: what the levels of a leaf say of a group that other leaves are in as well.
//!
//! Spec: README.md, "Nested Encoding". Each leaf repeats where the groups around it are null, and
//! how long the lists are that they are in. Used by `column`, and by `sibling_rows` when all chunks
//! of a row group are known. Trap: leaves differ below the group, so levels are cut off at those of
//! it.

use std::hash::Hasher;
use std::ops::Range;

use twox_hash::XxHash64;

use crate::schema::Node;
use crate::simd::planes::LevelBitPlanes;

/// The levels of a leaf as far as a group is concerned, hashed: they are those of all leaves of it.
pub(super) struct GroupLevels {
    /// The leaves of the group.
    leaves: Range<usize>,
    max_def: u16,
    max_rep: u16,
    /// Null, empty and present groups.
    slots: u64,
    /// For each repetition and definition level above 0, which slots have it or a higher one.
    planes: Vec<Plane>,
    waiting: u32,
    /// Whether the words of the planes are kept.
    keeps: bool,
}

/// A bit for each slot.
struct Plane {
    /// Bits that wait for others to fill a word.
    word: u64,
    /// Those before them.
    hash: XxHash64,
    words: Vec<u64>,
}

/// Words of a plane that are kept at most: of 64 slots each.
const MAX_KEPT: usize = 1 << 20;

impl GroupLevels {
    /// Of the groups around a leaf that others are in, the outermost first.
    pub(super) fn around(leaf: Node<'_>) -> Vec<Self> {
        let mut found = Vec::new();
        let mut node = leaf.parent();
        while let Some(at) = node.filter(|at| !at.is_root()) {
            if at.max_def() > 0 && at.children().nth(1).is_some() {
                found.push(Self::new(at));
            }
            node = at.parent();
        }
        found.reverse();
        found
    }

    fn new(group: Node<'_>) -> Self {
        let (max_def, max_rep) = (group.max_def(), group.max_rep());
        let plane = |_| Plane { word: 0, hash: XxHash64::with_seed(0), words: Vec::new() };
        let planes = (0..max_def + max_rep).map(plane).collect();
        Self {
            leaves: group.leaves(),
            max_def,
            max_rep,
            slots: 0,
            planes,
            waiting: 0,
            keeps: false,
        }
    }

    /// Of a group, kept so that the first difference can be found.
    pub(super) fn kept(group: Node<'_>) -> Self {
        Self { keeps: true, ..Self::new(group) }
    }

    /// Bytes that are kept of this number of slots.
    pub(super) fn bytes_of(&self, slots: u64) -> usize {
        let words = usize::try_from(slots / 64).unwrap_or(usize::MAX).min(MAX_KEPT);
        // Vectors grow by doubling.
        words.saturating_mul(2 * size_of::<u64>()).saturating_mul(self.planes.len())
    }

    /// Adds levels of the leaf, all of whose definition levels are in `defs`.
    pub(super) fn add(&mut self, reps: &LevelBitPlanes, defs: &LevelBitPlanes, leaf_max_rep: u16) {
        for block in 0..defs.blocks() {
            let mut kept = defs.there(block);
            if leaf_max_rep > self.max_rep {
                // Elements of lists inside the group.
                kept &= !reps.at_least(block, self.max_rep + 1);
            }
            let n = kept.count_ones();
            self.slots += u64::from(n);
            let reps = (1..=self.max_rep).map(|level| reps.at_least(block, level));
            let defs = (1..=self.max_def).map(|level| defs.at_least(block, level));
            for (plane, bits) in self.planes.iter_mut().zip(reps.chain(defs)) {
                let bits = compress(bits, kept);
                plane.word |= bits << self.waiting;
                if self.waiting + n >= 64 {
                    plane.hash.write_u64(plane.word);
                    if self.keeps && plane.words.len() < MAX_KEPT {
                        plane.words.push(plane.word);
                    }
                    plane.word = bits.checked_shr(64 - self.waiting).unwrap_or(0);
                }
            }
            self.waiting = (self.waiting + n) % 64;
        }
    }

    /// The leaves of the group.
    pub(super) fn leaves(&self) -> Range<usize> {
        self.leaves.clone()
    }

    /// A number that is the same for the same levels.
    pub(super) fn digest(&self) -> (u64, u64) {
        let mut all = XxHash64::with_seed(0);
        for plane in &self.planes {
            all.write_u64(plane.hash.finish());
            all.write_u64(plane.word);
        }
        (self.slots, all.finish())
    }

    /// The first row in which the kept levels of two leaves differ, as far as they are kept.
    pub(super) fn first_difference(&self, other: &Self) -> Option<u64> {
        let slot = self.first_different_slot(other)?;
        let begins = |of: &Self, slot: u64| {
            slot < of.slots && (of.max_rep == 0 || of.bit(0, slot) == Some(false))
        };
        let continued = if self.max_rep == 0 { 0 } else { self.ones_before(0, slot) };
        let rows = slot - continued;
        // Where one begins a row and the other goes on with a list, the lists are of the row
        // before.
        let begin = begins(self, slot) && begins(other, slot);
        if begin { Some(rows) } else { rows.checked_sub(1) }
    }

    fn first_different_slot(&self, other: &Self) -> Option<u64> {
        let both = self.slots.min(other.slots);
        let words = both.div_ceil(64).min(MAX_KEPT as u64);
        let first = (0..words).find_map(|at| {
            let pairs = self.planes.iter().zip(&other.planes);
            let word = |plane: &Plane| {
                let at = usize::try_from(at).unwrap_or(usize::MAX);
                plane.words.get(at).copied().unwrap_or(plane.word)
            };
            let differ = pairs.fold(0, |bits, (a, b)| bits | (word(a) ^ word(b)));
            (differ != 0).then(|| at * 64 + u64::from(differ.trailing_zeros()))
        });
        let is_kept = both < MAX_KEPT as u64 * 64;
        let end = (is_kept && self.slots != other.slots).then_some(both);
        first.filter(|slot| *slot < both).or(end)
    }

    /// Whether a slot has at least the level of a plane.
    fn bit(&self, plane: usize, slot: u64) -> Option<bool> {
        let plane = self.planes.get(plane)?;
        let at = usize::try_from(slot / 64).ok()?;
        Some(plane.words.get(at).copied().unwrap_or(plane.word) >> (slot % 64) & 1 == 1)
    }

    /// How many slots before this one have at least the level of a plane.
    fn ones_before(&self, plane: usize, slot: u64) -> u64 {
        let Some(plane) = self.planes.get(plane) else { return 0 };
        let at = usize::try_from(slot / 64).unwrap_or(usize::MAX);
        let whole = plane.words.iter().take(at).map(|word| u64::from(word.count_ones()));
        let last = plane.words.get(at).copied().unwrap_or(plane.word);
        whole.sum::<u64>() + u64::from((last & ((1 << (slot % 64)) - 1)).count_ones())
    }
}

/// The bits where `kept` has one, next to each other.
fn compress(bits: u64, mut kept: u64) -> u64 {
    if kept & kept.wrapping_add(1) == 0 {
        return bits & kept;
    }
    let (mut out, mut at) = (0, 0);
    while kept != 0 {
        out |= (bits >> kept.trailing_zeros() & 1) << at;
        at += 1;
        kept &= kept - 1;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_compressed_as_one_by_one() {
        for (bits, kept) in [(0b1011, 0b0110), (u64::MAX, 1 << 63), (0xF0F0, 0xFF00), (7, 7)] {
            let each = (0..64).filter(|at| kept >> at & 1 == 1);
            let expected = each.enumerate().fold(0, |sum, (to, at)| sum | (bits >> at & 1) << to);
            assert_eq!(compress(bits, kept), expected, "{bits:b} {kept:b}");
        }
    }
}
