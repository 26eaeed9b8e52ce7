//! [`GroupLevels`]: what the levels of a leaf say of a group that other leaves are in as well.
//!
//! Spec: README.md, "Nested Encoding". Each leaf repeats where the groups around it are null, and
//! how long the lists are that they are in. Used by `column`, and by `checker` when all chunks of a
//! row group are known. Trap: leaves differ below the group, so levels are cut off at those of it.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::Hasher;
use std::ops::Range;
use std::sync::Arc;

use twox_hash::XxHash64;

use super::context::FileContext;
use super::finding::{Finding, Findings};
use super::kind::FindingKind as K;
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
    /// For each repetition and definition level above 0, which slots have it or a higher one: bits
    /// that wait for others to fill a word, and those before them.
    planes: Vec<(u64, XxHash64)>,
    waiting: u32,
}

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
        let planes = (0..max_def + max_rep).map(|_| (0, XxHash64::with_seed(0))).collect();
        Self { leaves: group.leaves(), max_def, max_rep, slots: 0, planes, waiting: 0 }
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
            for ((word, hash), bits) in self.planes.iter_mut().zip(reps.chain(defs)) {
                let bits = compress(bits, kept);
                *word |= bits << self.waiting;
                if self.waiting + n >= 64 {
                    hash.write_u64(*word);
                    *word = bits.checked_shr(64 - self.waiting).unwrap_or(0);
                }
            }
            self.waiting = (self.waiting + n) % 64;
        }
    }

    /// A number that is the same for the same levels.
    fn digest(&self) -> (u64, u64) {
        let mut all = XxHash64::with_seed(0);
        for (word, hash) in &self.planes {
            all.write_u64(hash.finish());
            all.write_u64(*word);
        }
        (self.slots, all.finish())
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

/// Compares what the leaves of a row group say of the groups that they share. Those that contradict
/// more of their siblings than they agree with are added to `broken`.
pub(super) fn compare(
    file: &FileContext,
    row_group: usize,
    of_leaves: &[(usize, Vec<GroupLevels>)],
    broken: &mut BTreeSet<usize>,
    findings: &mut Findings,
) {
    let mut groups = BTreeMap::new();
    for (leaf, of_leaf) in of_leaves {
        for levels in of_leaf {
            // The outer group first.
            let key = (levels.leaves.start, std::cmp::Reverse(levels.leaves.end));
            groups.entry(key).or_insert_with(Vec::new).push((*leaf, levels.digest()));
        }
    }
    for ((start, end), of_group) in groups {
        let mut counts = BTreeMap::new();
        for (leaf, digest) in &of_group {
            counts.entry(*digest).or_insert((0, *leaf)).0 += 1;
        }
        // Of as many, those of the first leaf.
        let most =
            counts.iter().max_by_key(|(_, (count, first))| (*count, std::cmp::Reverse(*first)));
        let Some((&expected, &(_, model))) = most else { continue };
        for (leaf, digest) in of_group {
            if digest == expected || !broken.insert(leaf) {
                continue;
            }
            let path = |leaf: usize| {
                let node = file.footer.schema().leaf_node(leaf).ok();
                node.map(|node| node.path().dotted()).unwrap_or_default()
            };
            let group = group_of(file, start..end.0);
            let column: Arc<str> = path(leaf).into();
            let text = match (digest.0, expected.0) {
                (found, expected) if found != expected => format!(
                    "its levels have {found} places for {group}, and those of {} {expected}",
                    path(model)
                ),
                _ => format!(
                    "its levels say otherwise than those of {} where {group} is null or begins \
                     a row",
                    path(model)
                ),
            };
            let finding = Finding::new(K::SiblingLevelsDiffer, text);
            findings.push(finding.with_row_group(row_group).with_column(&column));
        }
    }
}

/// The path of the group that has these leaves.
fn group_of(file: &FileContext, leaves: Range<usize>) -> String {
    let mut node = file.footer.schema().leaf_node(leaves.start).ok();
    while let Some(at) = node {
        if at.leaves() == leaves {
            return at.path().dotted();
        }
        node = at.parent();
    }
    String::new()
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
