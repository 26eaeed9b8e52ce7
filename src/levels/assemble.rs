//! From levels to the offsets of lists and the validity of nodes, in bulk: once per node, from the first leaf below it.
//!
//! Spec: README.md, "Nested Encoding" (Dremel). The rules stand at [`Levels`](crate::schema::Levels).
//! Trap: an empty list and a null list are both one entry without an element; only the definition level tells them apart.

use arrow_buffer::ArrowNativeType;

use super::{LevelBuffer, Validity};
use crate::error::{Error, LimitKind, Result};
use crate::schema::Levels;

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
    let rules = ListRules { node, element, item_rep };
    let n = def.len();
    Ok(match (def.mixed(), rep.mixed()) {
        (Some(def), Some(rep)) => rules.walk(n, |i| def[i], |i| rep[i]),
        (Some(def), None) => rules.walk(n, |i| def[i], at_uniform(rep)),
        (None, Some(rep)) => rules.walk(n, at_uniform(def), |i| rep[i]),
        (None, None) => rules.walk(n, at_uniform(def), at_uniform(rep)),
    })
}

struct ListRules {
    node: Levels,
    element: u16,
    item_rep: u16,
}

/// Entries handled at a time: the block of offsets stays on the stack.
const BLOCK: usize = 64;

impl ListRules {
    fn walk<O: ArrowNativeType>(
        &self,
        n: usize,
        def: impl Fn(usize) -> u16,
        rep: impl Fn(usize) -> u16,
    ) -> Lists<O> {
        let Levels { slot, present, rep: node_rep } = self.node;
        let mut offsets = Vec::with_capacity(n / 2 + 1);
        let mut validity = Validity::default();
        let mut elements = 0usize;
        for start in (0..n).step_by(BLOCK) {
            let (mut block, mut lists, mut valid) = ([0usize; BLOCK], 0usize, 0u64);
            for i in start..n.min(start + BLOCK) {
                let (d, r) = (def(i), rep(i));
                // Branch-free: the slot is always written, and kept only if the entry begins a list.
                let begins = r <= node_rep && d >= slot;
                block[lists % BLOCK] = elements;
                valid |= u64::from(begins && d >= present) << (lists % BLOCK);
                lists += usize::from(begins);
                elements += usize::from(d >= self.element && r <= self.item_rep);
            }
            offsets.extend(block[..lists].iter().map(|&offset| O::usize_as(offset)));
            validity.push_word(valid, lists);
        }
        offsets.push(O::usize_as(elements));
        Lists { offsets, validity }
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
    let def = def.mixed().unwrap_or_default();
    match rep.mixed() {
        // Outside lists every entry is a slot.
        None if node.slot == 0 && rep.uniform() == Some(0) => {
            for block in def.chunks(BLOCK) {
                let mut word = 0u64;
                for (i, &d) in block.iter().enumerate() {
                    word |= u64::from(d >= node.present) << i;
                }
                out.push_word(word, block.len());
            }
        }
        None => walk_slots(n, |i| def[i], at_uniform(rep), node, &mut out),
        Some(rep) => walk_slots(n, |i| def[i], |i| rep[i], node, &mut out),
    }
    out
}

fn walk_slots(
    n: usize,
    def: impl Fn(usize) -> u16,
    rep: impl Fn(usize) -> u16,
    node: Levels,
    out: &mut Validity,
) {
    for start in (0..n).step_by(BLOCK) {
        let (mut word, mut slots) = (0u64, 0usize);
        for i in start..n.min(start + BLOCK) {
            let (d, r) = (def(i), rep(i));
            let is_slot = r <= node.rep && d >= node.slot;
            word |= u64::from(is_slot && d >= node.present) << (slots % BLOCK);
            slots += usize::from(is_slot);
        }
        out.push_word(word, slots);
    }
}

fn at_uniform(levels: &LevelBuffer) -> impl Fn(usize) -> u16 {
    let level = levels.uniform().unwrap_or_default();
    move |_| level
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
