//! From levels to the offsets of lists and the validity of nodes, in bulk: once per node, from the first leaf below it.
//!
//! Spec: README.md, "Nested Encoding" (Dremel). The rules stand at [`Levels`](crate::schema::Levels).
//! Trap: an empty list and a null list are both one entry without an element; only the definition level tells them apart.

use arrow_buffer::ArrowNativeType;

use super::{LevelBuffer, Validity};
use crate::error::{Error, LimitKind, Result};
use crate::schema::Levels;
use crate::simd::{Isa, masks};

/// The slots of a list node.
#[derive(Debug)]
pub struct Lists<O> {
    /// One more than there are lists; begins with 0 and never falls.
    pub offsets: Vec<O>,
    /// Which lists are not null.
    pub validity: Validity,
}

/// Finds the lists of a node: where each begins, and whether it is null.
///
/// `node` are the levels of the list node, `element` and `item_rep` those at which it has elements.
///
/// # Errors
/// `Limit(ArrayLength)` if the elements do not fit the offset type.
pub fn list_slots<O: ArrowNativeType>(
    def: &LevelBuffer,
    rep: &LevelBuffer,
    node: Levels,
    element: u16,
    item_rep: u16,
) -> Result<Lists<O>> {
    if O::from_usize(def.len()).is_none() {
        return Err(Error::limit(
            LimitKind::ArrayLength,
            format_args!("{} list elements in one batch; read fewer rows per batch", def.len()),
        ));
    }
    let isa = Isa::best();
    let n = def.len();
    let mut offsets = Vec::with_capacity(n / 2 + 1);
    let mut validity = Validity::default();
    let mut elements = 0usize;
    for at in (0..n).step_by(WORD) {
        let word = Word { isa, at, n: (n - at).min(WORD) };
        let begins = word.slots(def, rep, node);
        let is_element = word.at_least(def, element) & !word.at_least(rep, item_rep + 1);
        let present = word.at_least(def, node.present);
        validity.push_word(masks::select(isa, present, begins), begins.count_ones() as usize);
        if begins == masks::all(word.n) && is_element == begins {
            // Lists of one element: nothing to count.
            offsets.extend((elements..elements + word.n).map(O::usize_as));
        } else {
            let mut left = begins;
            while left != 0 {
                let lowest = left & left.wrapping_neg();
                let before = (is_element & (lowest - 1)).count_ones() as usize;
                offsets.push(O::usize_as(elements + before));
                left ^= lowest;
            }
        }
        elements += is_element.count_ones() as usize;
    }
    offsets.push(O::usize_as(elements));
    Ok(Lists { offsets, validity })
}

/// Entries handled at a time: a bit each.
const WORD: usize = 64;

/// A stretch of at most 64 entries.
#[derive(Clone, Copy)]
struct Word {
    isa: Isa,
    at: usize,
    n: usize,
}

impl Word {
    /// Which entries have at least this level.
    fn at_least(self, levels: &LevelBuffer, least: u16) -> u64 {
        match levels.mixed() {
            Some(levels) => masks::at_least(self.isa, &levels[self.at..self.at + self.n], least),
            None if levels.uniform().unwrap_or_default() >= least => masks::all(self.n),
            None => 0,
        }
    }

    /// Which entries are slots of a node.
    fn slots(self, def: &LevelBuffer, rep: &LevelBuffer, node: Levels) -> u64 {
        self.at_least(def, node.slot) & !self.at_least(rep, node.rep + 1)
    }
}

/// Finds the slots of a struct node, and which of them are not null.
pub fn validity(def: &LevelBuffer, rep: &LevelBuffer, node: Levels) -> Validity {
    let mut out = Validity::default();
    let n = def.len();
    if let Some(level) = def.uniform() {
        let slots = match rep.mixed() {
            _ if level < node.slot => 0,
            None => {
                if rep.uniform().is_some_and(|r| r <= node.rep) {
                    n
                } else {
                    0
                }
            }
            Some(rep) => rep.iter().filter(|&&r| r <= node.rep).count(),
        };
        out.push_run(level >= node.present, slots);
        return out;
    }
    let isa = Isa::best();
    for at in (0..n).step_by(WORD) {
        let word = Word { isa, at, n: (n - at).min(WORD) };
        let slots = word.slots(def, rep, node);
        let present = masks::select(isa, word.at_least(def, node.present), slots);
        out.push_word(present, slots.count_ones() as usize);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn levels(of: &[u16]) -> LevelBuffer {
        let mut out = LevelBuffer::default();
        out.push_slice(of);
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
        let lists = list_slots::<i32>(&def, &rep, node, 2, 1).unwrap();
        assert_eq!(lists.offsets, [0, 2, 2, 2, 3]);
        assert_eq!(bits(lists.validity), [true, false, true, true]);
    }

    /// list of list of required int: rows [[1, 2], []], [], [[3]].
    #[test]
    fn inner_lists_are_slots_of_the_outer_elements() {
        // required outer and inner lists: element of outer at 1, of inner at 2.
        let (def, rep) = (levels(&[2, 2, 1, 0, 2]), levels(&[0, 2, 1, 0, 0]));
        let outer = list_slots::<i64>(&def, &rep, Levels::default(), 1, 1).unwrap();
        assert_eq!(outer.offsets, [0, 2, 2, 3]);
        let inner =
            list_slots::<i64>(&def, &rep, Levels { slot: 1, present: 1, rep: 1 }, 2, 2).unwrap();
        assert_eq!(inner.offsets, [0, 2, 2, 3]);
    }

    #[test]
    fn uniform_levels_give_what_spelled_out_ones_give() {
        let node = Levels { slot: 1, present: 2, rep: 1 };
        let n = 200;
        for level in 0..4 {
            for r in 0..3 {
                let mut run = LevelBuffer::default();
                run.push_run(level, n);
                let mut rep_run = LevelBuffer::default();
                rep_run.push_run(r, n);
                let (def, rep) = (levels(&vec![level; n]), levels(&vec![r; n]));
                let expected = bits(validity(&def, &rep, node));
                assert_eq!(bits(validity(&run, &rep, node)), expected);
                assert_eq!(bits(validity(&run, &rep_run, node)), expected);
                assert_eq!(bits(validity(&def, &rep_run, node)), expected);
                let a = list_slots::<i32>(&run, &rep_run, node, 3, 2).unwrap();
                let b = list_slots::<i32>(&def, &rep, node, 3, 2).unwrap();
                assert_eq!(a.offsets, b.offsets);
                assert_eq!(bits(a.validity), bits(b.validity));
            }
        }
    }
}
