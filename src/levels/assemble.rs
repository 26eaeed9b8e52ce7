//! Computes the offsets of lists and the validity of nodes from levels, in bulk: once for each
//! node, from the first leaf below it.
//!
//! Spec: README.md, "Nested Encoding" (Dremel). [`Levels`](crate::schema::Levels) states the rules.
//! Trap: an empty list and a null list are both one entry without an element; only the definition
//! level tells them apart.

use std::ops::Range;

use arrow_array::OffsetSizeTrait;
use arrow_buffer::OffsetBuffer;

use super::validity::Validity;
use crate::error::{Error, LimitKind, Result};
use crate::schema::Levels;
use crate::simd::ops::{self, BLOCK, SimdOps, SimdTask, all, nth_set};
use crate::simd::planes::LevelBitPlanes;
use crate::simd::{Isa, Kernel};
use crate::trusted::ListOffsets;

/// The slots of a list node.
#[derive(Debug)]
pub(crate) struct Lists<O: OffsetSizeTrait> {
    /// Offsets of the lists, one more than there are lists.
    pub offsets: OffsetBuffer<O>,
    /// Which lists are not null.
    pub validity: Validity,
}

/// Finds the lists of a node: where each begins, and whether it is null.
///
/// `node` are the levels of the list node, `element` and `item_rep` those at which it has elements.
/// `expected` is how many lists there should be.
///
/// # Errors
/// `Limit(ArrayLength)` if the elements do not fit the offset type.
pub(crate) fn list_slots<O: OffsetSizeTrait>(
    def: &LevelBitPlanes,
    rep: &LevelBitPlanes,
    node: Levels,
    element: u16,
    item_rep: u16,
    expected: usize,
) -> Result<Lists<O>> {
    let offsets = ListOffsets::with_capacity(expected.min(def.len()))?;
    let find = FindLists { def, rep, node, element, item_rep, offsets };
    let (offsets, validity) = ops::run(Isa::for_kernel(Kernel::Levels), find);
    let offsets = offsets.finish().ok_or_else(|| {
        Error::limit(
            LimitKind::ArrayLength,
            format_args!("{} list elements in one batch; read fewer rows per batch", def.len()),
        )
    })?;
    Ok(Lists { offsets, validity })
}

struct FindLists<'a, O> {
    def: &'a LevelBitPlanes,
    rep: &'a LevelBitPlanes,
    node: Levels,
    element: u16,
    item_rep: u16,
    offsets: ListOffsets<O>,
}

impl<O: OffsetSizeTrait> SimdTask for FindLists<'_, O> {
    type Output = (ListOffsets<O>, Validity);

    #[inline(always)]
    fn run(self, kernel: impl SimdOps) -> Self::Output {
        let Self { def, rep, node, element, item_rep, mut offsets } = self;
        let mut validity = Validity::default();
        for block in 0..def.blocks() {
            let begins = slots(def, rep, block, node);
            let is_element = def.at_least(block, element) & !rep.at_least(block, item_rep + 1);
            if begins != 0 {
                let present = def.at_least(block, node.present);
                validity.push_word(kernel.select(present, begins), begins.count_ones() as usize);
            }
            offsets.push_block(begins, is_element);
        }
        (offsets, validity)
    }
}

/// Which entries of a block are slots of a node.
#[inline(always)]
fn slots(def: &LevelBitPlanes, rep: &LevelBitPlanes, block: usize, node: Levels) -> u64 {
    def.at_least(block, node.slot) & !rep.at_least(block, node.rep + 1)
}

/// Finds the slots of a struct node, and which of them are not null.
pub(crate) fn validity(def: &LevelBitPlanes, rep: &LevelBitPlanes, node: Levels) -> Validity {
    if let (Some(level), Some(r)) = (def.uniform(), rep.uniform()) {
        let mut out = Validity::default();
        let slots = if level >= node.slot && r <= node.rep { def.len() } else { 0 };
        out.push_run(level >= node.present, slots);
        return out;
    }
    ops::run(Isa::for_kernel(Kernel::Levels), FindSlots { def, rep, node })
}

struct FindSlots<'a> {
    def: &'a LevelBitPlanes,
    rep: &'a LevelBitPlanes,
    node: Levels,
}

impl SimdTask for FindSlots<'_> {
    type Output = Validity;

    #[inline(always)]
    fn run(self, kernel: impl SimdOps) -> Validity {
        let Self { def, rep, node } = self;
        let mut out = Validity::default();
        for block in 0..def.blocks() {
            let slots = slots(def, rep, block, node);
            let present = kernel.select(def.at_least(block, node.present), slots);
            out.push_word(present, slots.count_ones() as usize);
        }
        out
    }
}

/// Counts of the entries of a stretch, for the value decoder.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Decoded {
    /// Slots of the leaf, nulls included.
    pub slots: usize,
    /// Values that are stored.
    pub values: usize,
}

/// Appends the validity of a leaf for the entries of `range`; returns how many slots and values
/// there are.
///
/// `slot` is the level from which on an entry is a slot of the leaf, `present` the one at which it
/// has a value.
pub(crate) fn leaf_validity(
    def: &LevelBitPlanes,
    range: Range<usize>,
    slot: u16,
    present: u16,
    validity: &mut Validity,
) -> Decoded {
    if let Some(level) = def.uniform() {
        let slots = if level < slot { 0 } else { range.len() };
        let values = validity.push_all(level >= present, slots);
        return Decoded { slots, values };
    }
    ops::run(Isa::for_kernel(Kernel::Levels), FindValues { def, range, slot, present, validity })
}

struct FindValues<'a> {
    def: &'a LevelBitPlanes,
    range: Range<usize>,
    slot: u16,
    present: u16,
    validity: &'a mut Validity,
}

impl SimdTask for FindValues<'_> {
    type Output = Decoded;

    #[inline(always)]
    fn run(self, kernel: impl SimdOps) -> Decoded {
        let Self { def, range, slot, present, validity } = self;
        let mut decoded = Decoded::default();
        for block in blocks(&range) {
            let shown = shown(&range, block);
            let slots = def.at_least(block, slot) & shown;
            let valid = def.at_least(block, present) & shown;
            let n = slots.count_ones() as usize;
            validity.push_word(kernel.select(valid, slots), n);
            decoded.slots += n;
            decoded.values += valid.count_ones() as usize;
        }
        decoded
    }
}

/// Finds where row `max` ends of those that begin in `range`, if it does: how many rows begin
/// before there, and where that is.
pub(crate) fn rows(rep: &LevelBitPlanes, range: Range<usize>, max: usize) -> (usize, usize) {
    match rep.uniform() {
        Some(0) => {
            let n = range.len().min(max);
            (n, range.start + n)
        }
        // No row begins here: all of it belongs to the row that is open.
        Some(_) => (0, range.end),
        None => ops::run(Isa::for_kernel(Kernel::Levels), FindRows { rep, range, max }),
    }
}

struct FindRows<'a> {
    rep: &'a LevelBitPlanes,
    range: Range<usize>,
    max: usize,
}

impl SimdTask for FindRows<'_> {
    type Output = (usize, usize);

    #[inline(always)]
    fn run(self, _kernel: impl SimdOps) -> (usize, usize) {
        let Self { rep, range, max } = self;
        let mut left = max;
        for block in blocks(&range) {
            let begins = !rep.at_least(block, 1) & shown(&range, block);
            let n = begins.count_ones() as usize;
            if n > left {
                return (max, block * BLOCK + nth_set(begins, left));
            }
            left -= n;
        }
        (max - left, range.end)
    }
}

/// The blocks that hold the entries of a range.
#[inline(always)]
fn blocks(range: &Range<usize>) -> Range<usize> {
    range.start / BLOCK..range.end.div_ceil(BLOCK)
}

/// Marks the entries of a block that are within `range`, which includes at least one of them.
#[inline(always)]
fn shown(range: &Range<usize>, block: usize) -> u64 {
    let at = block * BLOCK;
    let before = all(range.start.saturating_sub(at).min(BLOCK));
    all(range.end.saturating_sub(at).min(BLOCK)) & !before
}

#[cfg(test)]
mod tests {
    use super::*;

    fn levels(of: &[u16]) -> LevelBitPlanes {
        let mut out = LevelBitPlanes::new(2);
        out.push_levels(of);
        out
    }

    fn bits(validity: Validity) -> Vec<bool> {
        let n = validity.len();
        match validity.into_nulls() {
            None => vec![true; n],
            Some(nulls) => nulls.iter().collect(),
        }
    }

    /// optional group a (LIST) { repeated group list { optional int32 element } }:
    /// rows [1, null], null, [], [2].
    #[test]
    fn empty_list_differs_from_null_list() {
        let (def, rep) = (levels(&[3, 2, 0, 1, 3]), levels(&[0, 1, 0, 0, 0]));
        let node = Levels { slot: 0, present: 1, rep: 0 };
        let lists = list_slots::<i32>(&def, &rep, node, 2, 1, 4).unwrap();
        assert_eq!(lists.offsets.as_ref(), [0, 2, 2, 2, 3]);
        assert_eq!(bits(lists.validity), [true, false, true, true]);
    }

    /// list of list of required int: rows [[1, 2], []], [], [[3]].
    #[test]
    fn inner_lists_are_slots_of_the_outer_elements() {
        // required outer and inner lists: element of outer at 1, of inner at 2.
        let (def, rep) = (levels(&[2, 2, 1, 0, 2]), levels(&[0, 2, 1, 0, 0]));
        let outer = list_slots::<i64>(&def, &rep, Levels::default(), 1, 1, 3).unwrap();
        assert_eq!(outer.offsets.as_ref(), [0, 2, 2, 3]);
        let inner =
            list_slots::<i64>(&def, &rep, Levels { slot: 1, present: 1, rep: 1 }, 2, 2, 3).unwrap();
        assert_eq!(inner.offsets.as_ref(), [0, 2, 2, 3]);
    }

    #[test]
    fn uniform_levels_give_what_single_ones_give() {
        let node = Levels { slot: 1, present: 2, rep: 1 };
        let n = 200;
        for level in 0..4 {
            for r in 0..3 {
                let mut run = LevelBitPlanes::new(2);
                run.push_run(level, n);
                let mut rep_run = LevelBitPlanes::new(2);
                rep_run.push_run(r, n);
                let (def, rep) = (levels(&vec![level; n]), levels(&vec![r; n]));
                let expected = bits(validity(&def, &rep, node));
                assert_eq!(bits(validity(&run, &rep, node)), expected);
                assert_eq!(bits(validity(&run, &rep_run, node)), expected);
                assert_eq!(bits(validity(&def, &rep_run, node)), expected);
                let a = list_slots::<i32>(&run, &rep_run, node, 3, 2, n).unwrap();
                let b = list_slots::<i32>(&def, &rep, node, 3, 2, n).unwrap();
                assert_eq!(a.offsets, b.offsets);
                assert_eq!(bits(a.validity), bits(b.validity));
            }
        }
    }

    /// Entry by entry, as the rules say.
    #[test]
    fn blocks_of_levels_give_what_single_ones_do() {
        let seed = 82;
        let mut rng = fastrand::Rng::with_seed(seed);
        for _ in 0..300 {
            let n = rng.usize(1..400);
            let def: Vec<u16> = (0..n).map(|_| rng.u16(0..4)).collect();
            let rep: Vec<u16> = (0..n).map(|i| if i == 0 { 0 } else { rng.u16(0..3) }).collect();
            let (d, r) = (levels(&def), levels(&rep));
            let start = rng.usize(0..n);
            let range = start..rng.usize(start..=n);
            let entries = || range.clone().map(|i| (def[i], rep[i]));

            let mut found = Validity::default();
            let decoded = leaf_validity(&d, range.clone(), 2, 3, &mut found);
            let valid: Vec<bool> =
                entries().filter(|(d, _)| *d >= 2).map(|(d, _)| d >= 3).collect();
            assert_eq!(decoded.slots, valid.len(), "seed {seed}");
            assert_eq!(decoded.values, valid.iter().filter(|valid| **valid).count());
            assert_eq!(bits(found), valid, "seed {seed}");

            let max = rng.usize(0..20);
            let begins: Vec<usize> = range.clone().filter(|i| rep[*i] == 0).collect();
            let expected = match begins.get(max) {
                Some(next) => (max, *next),
                None => (begins.len(), range.end),
            };
            assert_eq!(rows(&r, range.clone(), max), expected, "seed {seed}");

            let node = Levels { slot: 1, present: 2, rep: 1 };
            let slots = || (0..n).filter(|&i| def[i] >= node.slot && rep[i] <= node.rep);
            let lists = list_slots::<i64>(&d, &r, node, 3, 2, 7).unwrap();
            let is_element = |i: &usize| def[*i] >= 3 && rep[*i] <= 2;
            let mut offsets: Vec<i64> =
                slots().map(|slot| (0..slot).filter(is_element).count() as i64).collect();
            offsets.push((0..n).filter(is_element).count() as i64);
            assert_eq!(lists.offsets.as_ref(), offsets, "seed {seed}");
            let present: Vec<bool> = slots().map(|i| def[i] >= node.present).collect();
            assert_eq!(bits(lists.validity), present, "seed {seed}");
            assert_eq!(bits(validity(&d, &r, node)), present, "seed {seed}");
        }
    }
}
