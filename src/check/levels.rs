//! [`LevelFacts`]: what the levels of a page make true.
//!
//! Spec: README.md, "Nested Encoding". Used by `column`. Trap: a page may be one run of any number
//! of levels, so they are read in blocks, which are long only while all levels are alike.

use super::siblings::GroupLevels;
use crate::error::{Error, Result, Spec};
use crate::levels::LevelDecoder;
use crate::page::DataPage;
use crate::schema::{Node, Repetition};
use crate::simd::planes::LevelBitPlanes;

/// The levels that a leaf may have.
#[derive(Debug, Clone)]
pub(super) struct LevelShape {
    pub(super) max_def: u16,
    pub(super) max_rep: u16,
    /// For each repeated node from the root to the leaf, the definition level of an element of it.
    elements: Vec<u16>,
}

impl LevelShape {
    pub(super) fn new(leaf: Node<'_>) -> Self {
        let mut elements = Vec::new();
        let mut node = Some(leaf);
        while let Some(at) = node {
            if at.repetition().is_ok_and(|repetition| repetition == Repetition::Repeated) {
                elements.push(at.max_def());
            }
            node = at.parent();
        }
        elements.reverse();
        Self { max_def: leaf.max_def(), max_rep: leaf.max_rep(), elements }
    }
}

/// Counts of the levels of a page.
#[derive(Debug, Clone, Default)]
pub(super) struct LevelFacts {
    pub(super) slots: u64,
    /// Rows that begin in the page.
    pub(super) rows: u64,
    /// Slots with a value.
    pub(super) values: u64,
    /// How often each definition level occurs.
    pub(super) definitions: Vec<u64>,
    pub(super) repetitions: Vec<u64>,
    /// Whether the first slot begins a row.
    pub(super) starts_row: bool,
    /// The first slot that continues a list without an element of it before it, or in it.
    pub(super) broken: Option<u64>,
    /// The definition level of the last slot.
    pub(super) last_definition: Option<u16>,
}

/// Nulls, and how many of them a writer counts that leaves out the places of empty and null lists,
/// as Arrow C++ does in some columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Nulls {
    pub(super) all: u64,
    pub(super) of_leaf: u64,
}

impl Nulls {
    /// Of slots whose definition levels occur as often as `definitions` say.
    pub(super) fn new(definitions: &[u64], shape: &LevelShape) -> Self {
        let others = definitions.split_last().map_or(&[][..], |(_, others)| others);
        let all = others.iter().sum();
        // A leaf that is not optional has no nulls of its own; its parents may.
        let of_leaf = if shape.max_rep == 0 { all } else { others.last().copied().unwrap_or(0) };
        let is_element = shape.elements.last() == Some(&shape.max_def);
        Self { all, of_leaf: if is_element { 0 } else { of_leaf } }
    }

    /// Whether a stated number is that of the nulls, with or without those places.
    pub(super) fn is_like(self, stated: i64) -> bool {
        u64::try_from(stated).is_ok_and(|stated| (self.of_leaf..=self.all).contains(&stated))
    }
}

/// Slots that are read at a time, at least and at most.
const SHORT: usize = 1 << 16;
const LONG: usize = 1 << 22;

/// Counts the levels of a page, and adds them to those of the `groups` around the leaf. `before` is
/// the definition level of the slot before it, if that is known.
///
/// # Errors
/// `Malformed` if they end early, or one is above the highest of the leaf.
pub(super) fn count(
    page: &DataPage,
    shape: &LevelShape,
    before: Option<u16>,
    groups: &mut [GroupLevels],
) -> Result<LevelFacts> {
    let slots = page.slots;
    let mut facts = LevelFacts {
        slots: slots as u64,
        definitions: vec![0; usize::from(shape.max_def) + 1],
        repetitions: vec![0; usize::from(shape.max_rep) + 1],
        starts_row: true,
        ..LevelFacts::default()
    };
    let (mut rep, mut def) = (page.rep.clone(), page.def.clone());
    let (mut reps, mut defs) =
        (LevelDecoder::planes(shape.max_rep), LevelDecoder::planes(shape.max_def));
    // Nothing is wrong with what follows a slot that is not known.
    let mut last_def = before.or(Some(u16::MAX));
    let (mut left, mut block) = (slots, SHORT);
    while left > 0 {
        let n = block.min(left);
        reps.clear();
        defs.clear();
        rep.read(n, &mut reps)?;
        def.read(n, &mut defs)?;
        if left == slots {
            facts.starts_row = reps.get(0) == 0;
        }
        add(&reps, &mut facts.repetitions);
        add(&defs, &mut facts.definitions);
        groups.iter_mut().for_each(|group| group.add(&reps, &defs, shape.max_rep));
        if facts.broken.is_none() && shape.max_rep > 0 {
            let found = broken(&reps, &defs, shape, last_def);
            facts.broken = found.map(|at| (slots - left + at) as u64);
        }
        last_def = n.checked_sub(1).map(|last| defs.get(last));
        let is_uniform = reps.uniform().is_some() && defs.uniform().is_some();
        block = if is_uniform { (block * 4).min(LONG) } else { SHORT };
        left -= n;
    }
    facts.last_definition = last_def.filter(|_| slots > 0);
    facts.rows = facts.repetitions.first().copied().unwrap_or(0);
    facts.values = facts.definitions.last().copied().unwrap_or(0);
    Ok(facts)
}

/// Counts how often each level occurs.
fn add(levels: &LevelBitPlanes, histogram: &mut [u64]) {
    if let Some(level) = levels.uniform() {
        if let Some(count) = histogram.get_mut(usize::from(level)) {
            *count += levels.len() as u64;
        }
        return;
    }
    let at_least = |least: usize| -> u64 {
        let least = u16::try_from(least).unwrap_or(u16::MAX);
        (0..levels.blocks())
            .map(|block| u64::from(levels.at_least(block, least).count_ones()))
            .sum()
    };
    let mut above = levels.len() as u64;
    for level in 0..histogram.len() {
        let higher = if level + 1 < histogram.len() { at_least(level + 1) } else { 0 };
        if let Some(count) = histogram.get_mut(level) {
            *count += above - higher;
        }
        above = higher;
    }
}

/// The first slot that continues a list, and is no element of it, or comes after none.
fn broken(
    reps: &LevelBitPlanes,
    defs: &LevelBitPlanes,
    shape: &LevelShape,
    last_def: Option<u16>,
) -> Option<usize> {
    if reps.uniform() == Some(0) {
        return None;
    }
    let mut first: Option<usize> = None;
    for (depth, &element) in (1u16..).zip(&shape.elements) {
        // Of the slot before the first: the last of the block before; a chunk begins with a row.
        let mut carried = u64::from(last_def.is_some_and(|def| def >= element));
        for block in 0..reps.blocks() {
            let continues = reps.at_least(block, depth);
            let is_element = defs.at_least(block, element);
            let wrong = continues & !(is_element & (is_element << 1 | carried));
            carried = is_element >> 63;
            if wrong != 0 {
                let at = block * 64 + wrong.trailing_zeros() as usize;
                first = Some(first.map_or(at, |first| first.min(at)));
                break;
            }
        }
    }
    first
}

/// The slots of a page of a leaf outside lists: which of them have a value.
pub(super) struct ValidSlots {
    def: LevelDecoder,
    planes: LevelBitPlanes,
    max_def: u16,
    at: usize,
    left: usize,
}

impl ValidSlots {
    pub(super) fn new(page: &DataPage, shape: &LevelShape) -> Self {
        Self {
            def: page.def.clone(),
            planes: LevelDecoder::planes(shape.max_def),
            max_def: shape.max_def,
            at: 0,
            left: page.slots,
        }
    }

    /// Whether the next slot has a value; `None` after the last.
    ///
    /// # Errors
    /// `Malformed` if the levels end early.
    pub(super) fn next_slot(&mut self) -> Result<Option<bool>> {
        if self.at == self.planes.len() {
            if self.left == 0 {
                return Ok(None);
            }
            let n = self.left.min(SHORT);
            self.planes.clear();
            self.def.read(n, &mut self.planes)?;
            (self.at, self.left) = (0, self.left - n);
        }
        self.at += 1;
        Ok(Some(self.planes.get(self.at - 1) == self.max_def))
    }
}

/// The error for a page whose values are more than its levels say.
pub(super) fn too_many_values() -> Error {
    Error::malformed(Spec::Pages, "the page has more values than its levels say")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nulls_are_counted_with_or_without_empty_lists() {
        let of = |max_rep, elements: &[u16]| LevelShape {
            max_def: 3,
            max_rep,
            elements: elements.to_vec(),
        };
        // Null lists, empty lists, null elements, values.
        let counts = [5, 3, 2, 10];
        let list = Nulls::new(&counts, &of(1, &[2]));
        assert_eq!((list.all, list.of_leaf), (10, 2));
        assert!(list.is_like(10) && list.is_like(2) && list.is_like(5));
        assert!(!list.is_like(1) && !list.is_like(11) && !list.is_like(-1));
        // Elements that are required have no nulls of their own.
        assert_eq!(Nulls::new(&counts, &of(1, &[3])).of_leaf, 0);
        // Outside lists, all nulls count.
        assert_eq!(Nulls::new(&counts, &of(0, &[])), Nulls { all: 10, of_leaf: 10 });
    }
}
