//! [`Order`] checks which levels may follow which; [`agree`] checks that the leaves of a group
//! agree.
//!
//! Spec: README.md, "Nested Encoding". Used by `read::column` before levels are interpreted, and by
//! `read::assemble`. An entry begins a row, or stands for an element of the innermost list that it
//! repeats. With `element(k)` the definition level of an element of the list whose repetition level
//! is `k`, only these entries may follow one another:
//!
//! | repetition level | definition level | that of the entry in front | the entry |
//! |---|---|---|---|
//! | 0 | any | any, or none | begins a row |
//! | `k` > 0 | at least `element(k)` | at least `element(k)` | another element of the open list |
//! | `k` > 0 | less | any | would be an element, and is none: nothing has a slot for it |
//! | `k` > 0 | any | less, or none | would continue a list that is null or empty |
//!
//! Trap: `element` grows with `k`, so what holds for the repetition level of an entry holds for all
//! smaller ones. That is why testing "at least `k`", for 64 entries at a time, is equivalent to the
//! table.

use super::validity::Validity;
use crate::error::{Error, Result, Spec};
use crate::schema::Levels;
use crate::simd::ops::{self, BLOCK, SimdOps, SimdTask};
use crate::simd::planes::LevelBitPlanes;
use crate::simd::{Isa, Kernel};

/// Checks the levels of a column chunk by the table, piece by piece.
#[derive(Debug, Clone)]
pub(crate) struct Order {
    /// The definition level of an element, for each list around the leaf, the outermost first.
    elements: Box<[u16]>,
    /// The definition level of the last entry so far.
    before: u16,
}

impl Order {
    /// The order of a leaf inside lists whose elements have these definition levels, the outermost
    /// first.
    pub(crate) fn new(elements: &[u16]) -> Self {
        Self { elements: elements.into(), before: 0 }
    }

    /// Checks the entries to come. The first entry of a chunk must begin a row, and so must the
    /// first entry of a page that was sought.
    ///
    /// # Errors
    /// `Malformed(Levels)` if one may not follow the previous one.
    pub(crate) fn check(&mut self, def: &LevelBitPlanes, rep: &LevelBitPlanes) -> Result<()> {
        let Some(last) = def.len().checked_sub(1) else {
            return Ok(());
        };
        let before = std::mem::replace(&mut self.before, def.get(last));
        // A leaf in no list has no elements, and its levels need none.
        let highest = self.elements.last().copied().unwrap_or(0);
        let all_have_elements = def.uniform().is_some_and(|level| level.min(before) >= highest);
        if rep.uniform() == Some(0) || all_have_elements {
            return Ok(());
        }
        let elements = &self.elements;
        match ops::run(Isa::for_kernel(Kernel::Levels), FindWrong { def, rep, elements, before }) {
            None => Ok(()),
            Some(wrong) => Err(self.wrong(def, rep, before, wrong)),
        }
    }

    /// Checks the entries to come, as [`Order::check`] does, once those are dropped by which a
    /// writer pads a list of fixed size that is null.
    ///
    /// DuckDB writes as many entries for a null ARRAY as an ARRAY has elements. From the second on
    /// they repeat its definition level, as elements of a list that has none, and hold no value.
    ///
    /// # Errors
    /// `Malformed(Levels)` if one of the others may not follow the previous one.
    pub(crate) fn check_without_padding(
        &mut self,
        def: &mut LevelBitPlanes,
        rep: &mut LevelBitPlanes,
    ) -> Result<()> {
        let before = self.before;
        let checked = self.check(def, rep);
        if checked.is_ok() || !self.drop_padding(before, def, rep) {
            return checked;
        }
        self.before = before;
        self.check(def, rep)
    }

    /// Drops the padding; false if there is none.
    #[cold]
    fn drop_padding(
        &self,
        before: u16,
        def: &mut LevelBitPlanes,
        rep: &mut LevelBitPlanes,
    ) -> bool {
        let (mut defs, mut reps) = (def.to_levels(), rep.to_levels());
        let (mut in_front, mut kept) = (before, 0);
        for i in 0..defs.len() {
            let (d, r) = (defs[i], reps[i]);
            let element = usize::from(r).checked_sub(1).and_then(|k| self.elements.get(k));
            let is_padding = d == in_front && element.is_some_and(|&element| d < element);
            in_front = d;
            if !is_padding {
                (defs[kept], reps[kept]) = (d, r);
                kept += 1;
            }
        }
        if kept == defs.len() {
            return false;
        }
        for (planes, levels) in [(def, &mut defs), (rep, &mut reps)] {
            levels.truncate(kept);
            planes.clear();
            planes.push_levels(levels);
        }
        true
    }

    #[cold]
    fn wrong(
        &self,
        def: &LevelBitPlanes,
        rep: &LevelBitPlanes,
        before: u16,
        wrong: usize,
    ) -> Error {
        let (d, r) = (def.get(wrong), rep.get(wrong));
        let before = wrong.checked_sub(1).map_or(before, |i| def.get(i));
        let k = usize::from(r).saturating_sub(1);
        // Only the text of the error goes by it; levels above the highest are refused elsewhere.
        let element = self.elements.get(k).copied().unwrap_or(0);
        let found = if d < element {
            format!("has definition level {d}")
        } else {
            format!("stands after one of definition level {before}: a list that is null or empty")
        };
        Error::malformed(
            Spec::Levels,
            format_args!(
                "an entry of repetition level {r} is an element of a list, which takes a definition \
                 level of at least {element}, there and in front of it; it {found}"
            ),
        )
    }
}

struct FindWrong<'a> {
    def: &'a LevelBitPlanes,
    rep: &'a LevelBitPlanes,
    elements: &'a [u16],
    before: u16,
}

impl SimdTask for FindWrong<'_> {
    /// The first misplaced entry, for the outermost list that has one.
    type Output = Option<usize>;

    #[inline(always)]
    fn run(self, _kernel: impl SimdOps) -> Option<usize> {
        let Self { def, rep, elements, before } = self;
        let (mut is_element, mut repeats) = ([0; AT_ONCE], [0; AT_ONCE]);
        for (k, &element) in (1..).zip(elements) {
            let mut in_front = u64::from(before >= element);
            for first in (0..def.blocks()).step_by(AT_ONCE) {
                def.at_least_each(first, element, &mut is_element);
                rep.at_least_each(first, k, &mut repeats);
                for (block, (is_element, repeats)) in (first..).zip(is_element.iter().zip(repeats))
                {
                    let allowed = is_element & (is_element << 1 | in_front);
                    let wrong = repeats & !allowed;
                    if wrong != 0 {
                        return Some(block * BLOCK + wrong.trailing_zeros() as usize);
                    }
                    in_front = is_element >> (BLOCK - 1);
                }
            }
        }
        None
    }
}

/// Blocks that are compared in one go.
const AT_ONCE: usize = 32;

/// Levels of a leaf.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OfLeaf<'a> {
    /// Definition levels.
    pub def: &'a LevelBitPlanes,
    /// Repetition levels.
    pub rep: &'a LevelBitPlanes,
    /// The maximum repetition level.
    pub max_rep: u16,
}

/// Whether two leaves below a struct agree on it, and on all nodes around it: where a list begins
/// and ends, which entries are null, and which are empty.
pub(crate) fn agree(a: OfLeaf<'_>, b: OfLeaf<'_>, node: Levels) -> bool {
    // Where no list is below the struct, its entries are those of the leaf.
    if a.max_rep == node.rep && b.max_rep == node.rep {
        return a.def.len() == b.def.len()
            && same_up_to(a.def, b.def, node.present)
            && same_up_to(a.rep, b.rep, node.rep);
    }
    let of = |leaf: OfLeaf<'_>, levels: &LevelBitPlanes, level: u16| {
        ops::run(
            Isa::for_kernel(Kernel::Levels),
            ElementLevels { levels, rep: leaf.rep, level, max: node.rep },
        )
    };
    let same = |a: Validity, b: Validity| a.len() == b.len() && a.into_nulls() == b.into_nulls();
    (0..=node.present).all(|level| same(of(a, a.def, level), of(b, b.def, level)))
        && (1..=node.rep).all(|level| same(of(a, a.rep, level), of(b, b.rep, level)))
}

/// Whether two leaves have the same levels in the same places, those above `max` taken as `max`.
fn same_up_to(a: &LevelBitPlanes, b: &LevelBitPlanes, max: u16) -> bool {
    if a.same_words(b) {
        return true;
    }
    (1..=max).all(|level| match (a.uniform(), b.uniform()) {
        (Some(a), Some(b)) => (a >= level) == (b >= level),
        _ => ops::run(Isa::for_kernel(Kernel::Levels), SameLevels { a, b, level }),
    })
}

struct SameLevels<'a> {
    a: &'a LevelBitPlanes,
    b: &'a LevelBitPlanes,
    level: u16,
}

impl SimdTask for SameLevels<'_> {
    type Output = bool;

    #[inline(always)]
    fn run(self, _kernel: impl SimdOps) -> bool {
        let Self { a, b, level } = self;
        let (mut of_a, mut of_b) = ([0; AT_ONCE], [0; AT_ONCE]);
        (0..a.blocks()).step_by(AT_ONCE).all(|first| {
            a.at_least_each(first, level, &mut of_a);
            b.at_least_each(first, level, &mut of_b);
            of_a == of_b
        })
    }
}

/// Which of the entries that begin something at repetition level `max` or above have at least a
/// level.
struct ElementLevels<'a> {
    levels: &'a LevelBitPlanes,
    rep: &'a LevelBitPlanes,
    level: u16,
    max: u16,
}

impl SimdTask for ElementLevels<'_> {
    type Output = Validity;

    #[inline(always)]
    fn run(self, kernel: impl SimdOps) -> Validity {
        let Self { levels, rep, level, max } = self;
        let mut out = Validity::default();
        for block in 0..levels.blocks() {
            let entries = levels.there(block) & !rep.at_least(block, max + 1);
            let bits = kernel.select(levels.at_least(block, level), entries);
            out.push_word(bits, entries.count_ones() as usize);
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use fastrand::Rng;

    use super::*;
    use crate::error::ErrorKind;

    /// A node on the way to a leaf.
    #[derive(Debug, Clone, Copy, PartialEq)]
    enum Step {
        Optional,
        Repeated,
    }

    /// The value of a record at a step.
    #[derive(Debug, Clone, PartialEq)]
    enum Value {
        Null,
        There(Box<Self>),
        List(Vec<Self>),
        Leaf,
    }

    fn random(steps: &[Step], rng: &mut Rng) -> Value {
        match steps.split_first() {
            None => Value::Leaf,
            Some((Step::Optional, _)) if rng.u8(..4) == 0 => Value::Null,
            Some((Step::Optional, rest)) => Value::There(Box::new(random(rest, rng))),
            Some((Step::Repeated, rest)) => {
                Value::List((0..rng.usize(..4)).map(|_| random(rest, rng)).collect())
            }
        }
    }

    /// The entries of a value, as Dremel has them.
    fn shred(value: &Value, rep: u16, def: u16, lists: u16, out: &mut Vec<(u16, u16)>) {
        match value {
            Value::Null | Value::Leaf => out.push((rep, def)),
            Value::There(value) => shred(value, rep, def + 1, lists, out),
            Value::List(values) if values.is_empty() => out.push((rep, def)),
            Value::List(values) => {
                for (i, value) in values.iter().enumerate() {
                    let rep = if i == 0 { rep } else { lists + 1 };
                    shred(value, rep, def + 1, lists + 1, out);
                }
            }
        }
    }

    /// A value with one path, as far as `def` goes.
    fn path(steps: &[Step], def: u16) -> Value {
        match steps.split_first() {
            None => Value::Leaf,
            Some((Step::Optional, _)) if def == 0 => Value::Null,
            Some((Step::Repeated, _)) if def == 0 => Value::List(Vec::new()),
            Some((Step::Optional, rest)) => Value::There(Box::new(path(rest, def - 1))),
            Some((Step::Repeated, rest)) => Value::List(vec![path(rest, def - 1)]),
        }
    }

    /// Puts what an entry says after the last element of list `rep`; false if that list is not
    /// open, or the entry has no element.
    fn extend(value: &mut Value, steps: &[Step], rep: u16, def: u16) -> bool {
        let Some((_, rest)) = steps.split_first() else { return false };
        if def == 0 {
            return false;
        }
        match value {
            Value::There(value) => extend(value, rest, rep, def - 1),
            Value::List(values) if rep == 1 && !values.is_empty() => {
                values.push(path(rest, def - 1));
                true
            }
            Value::List(values) if rep > 1 => {
                values.last_mut().is_some_and(|last| extend(last, rest, rep - 1, def - 1))
            }
            _ => false,
        }
    }

    /// The records that entries stand for, one by one; nothing if they contradict each other.
    fn naive_records(entries: &[(u16, u16)], steps: &[Step]) -> Option<Vec<Value>> {
        let mut records: Vec<Value> = Vec::new();
        for &(rep, def) in entries {
            match rep {
                0 => records.push(path(steps, def)),
                _ => {
                    let last = records.last_mut()?;
                    extend(last, steps, rep, def).then_some(())?;
                }
            }
        }
        Some(records)
    }

    fn elements(steps: &[Step]) -> Vec<u16> {
        let repeated = (1..).zip(steps).filter(|(_, step)| **step == Step::Repeated);
        repeated.map(|(def, _)| def).collect()
    }

    fn planes_of(levels: impl Iterator<Item = u16>, rng: &mut Rng) -> LevelBitPlanes {
        let levels: Vec<u16> = levels.collect();
        let mut out = LevelBitPlanes::new(5);
        match levels.first() {
            // One number where all are the same, or a vector of them.
            Some(first) if levels.iter().all(|level| level == first) && rng.bool() => {
                out.push_run(*first, levels.len());
            }
            _ => out.push_levels(&levels),
        }
        out
    }

    fn check(entries: &[(u16, u16)], steps: &[Step], rng: &mut Rng) -> Result<()> {
        let mut order = Order::new(&elements(steps));
        let mut left = entries;
        while !left.is_empty() {
            let (block, rest) = left.split_at(rng.usize(1..=left.len().min(200)));
            let rep = planes_of(block.iter().map(|(rep, _)| *rep), rng);
            let def = planes_of(block.iter().map(|(_, def)| *def), rng);
            order.check(&def, &rep)?;
            left = rest;
        }
        Ok(())
    }

    fn random_steps(rng: &mut Rng) -> Vec<Step> {
        let step = |rng: &mut Rng| if rng.bool() { Step::Optional } else { Step::Repeated };
        (0..rng.usize(1..8)).map(|_| step(rng)).collect()
    }

    fn random_entries(steps: &[Step], rng: &mut Rng) -> (Vec<Value>, Vec<(u16, u16)>) {
        let records: Vec<Value> = (0..rng.usize(1..40)).map(|_| random(steps, rng)).collect();
        let mut entries = Vec::new();
        records.iter().for_each(|record| shred(record, 0, 0, 0, &mut entries));
        (records, entries)
    }

    #[test]
    fn levels_that_no_records_have_are_malformed_and_no_others() {
        let seed = 131;
        let mut rng = Rng::with_seed(seed);
        let (mut good, mut bad) = (0, 0);
        for round in 0..4000 {
            let steps = random_steps(&mut rng);
            let (records, mut entries) = random_entries(&steps, &mut rng);
            assert_eq!(naive_records(&entries, &steps), Some(records), "the twin, seed {seed}");
            let max_rep = elements(&steps).len() as u16;
            for mutations in 0..3 {
                let expected = naive_records(&entries, &steps).is_some();
                let found = check(&entries, &steps, &mut rng);
                assert_eq!(found.is_ok(), expected, "{round} {steps:?} {entries:?} {found:?}");
                if let Err(error) = found {
                    assert_eq!(error.kind(), ErrorKind::Malformed(Spec::Levels));
                }
                *(if expected { &mut good } else { &mut bad }) += usize::from(mutations > 0);
                // The first begins a row: that is checked where the levels are decoded.
                let i = rng.usize(1..=entries.len());
                let Some((rep, def)) = entries.get_mut(i) else { continue };
                match rng.bool() {
                    true => *rep = rng.u16(0..=max_rep),
                    false => *def = rng.u16(0..=steps.len() as u16),
                }
            }
        }
        assert!(good > 1000 && bad > 1000, "{good} valid and {bad} invalid mutations");
    }

    #[test]
    fn padding_of_null_lists_is_dropped_and_other_faults_stay() {
        let seed = 135;
        let mut rng = Rng::with_seed(seed);
        let (mut padded, mut refused) = (0, 0);
        for round in 0..4000 {
            let steps = random_steps(&mut rng);
            let (_, mut entries) = random_entries(&steps, &mut rng);
            let of_elements = elements(&steps);
            let is_broken = rng.u8(..) < 40;
            if is_broken {
                let at = rng.usize(0..entries.len());
                entries[at] =
                    (rng.u16(0..=of_elements.len() as u16), rng.u16(0..=steps.len() as u16));
            }
            let mut with_padding = Vec::new();
            for &(rep, def) in &entries {
                with_padding.push((rep, def));
                let open = of_elements.iter().position(|&element| def < element);
                // A list that is null or empty, with entries for elements that it has not.
                if let Some(k) = open.filter(|_| rng.bool()) {
                    let more = rng.usize(1..100);
                    with_padding.extend(std::iter::repeat_n((k as u16 + 1, def), more));
                    padded += more;
                }
            }
            let mut order = Order::new(&of_elements);
            let (mut left, mut found) = (Vec::new(), Ok(()));
            let mut rest = &with_padding[..];
            while !rest.is_empty() && found.is_ok() {
                let (block, after) = rest.split_at(rng.usize(1..=rest.len()));
                let [mut rep, mut def] = [0, 1].map(|_| LevelBitPlanes::new(5));
                rep.push_levels(&block.iter().map(|entry| entry.0).collect::<Vec<_>>());
                def.push_levels(&block.iter().map(|entry| entry.1).collect::<Vec<_>>());
                found = order.check_without_padding(&mut def, &mut rep);
                left.extend(rep.to_levels().into_iter().zip(def.to_levels()));
                rest = after;
            }
            let expected = naive_records(&entries, &steps);
            if expected.is_some() {
                assert!(found.is_ok(), "round {round}, {steps:?} {with_padding:?}: {found:?}");
                assert_eq!(left, entries, "round {round}, {steps:?}, seed {seed}");
            } else if found.is_ok() {
                // The broken entry was padding itself.
                assert!(naive_records(&left, &steps).is_some(), "round {round}: {left:?}");
            } else {
                refused += 1;
            }
        }
        assert!(padded > 10_000 && refused > 50, "{padded} padded, {refused} refused");
    }

    /// optional group a (LIST) { repeated group list { optional group element (LIST) { repeated
    /// group list { required int32 element } } } }
    #[test]
    fn pairs_of_the_table() {
        use Step::{Optional, Repeated};
        let steps = [Optional, Repeated, Optional, Repeated];
        let rng = &mut Rng::with_seed(1);
        for before in 0..=4 {
            for rep in 0..=2 {
                for def in 0..=4 {
                    let least = [0, 2, 4][usize::from(rep)];
                    let allowed = rep == 0 || (before >= least && def >= least);
                    let found = check(&[(0, before), (rep, def)], &steps, rng);
                    assert_eq!(found.is_ok(), allowed, "({rep}, {def}) after {before}");
                }
            }
        }
    }

    /// Down to a struct that stands below `steps`.
    fn naive_outline(entries: &[(u16, u16)], steps: &[Step]) -> Vec<(u16, u16)> {
        let (present, max) = (steps.len() as u16, elements(steps).len() as u16);
        let outer = entries.iter().filter(|(rep, _)| *rep <= max);
        outer.map(|&(rep, def)| (rep, def.min(present))).collect()
    }

    #[test]
    fn leaves_agree_where_the_struct_above_them_is_the_same() {
        let seed = 132;
        let mut rng = Rng::with_seed(seed);
        let mut contradictions = 0;
        for _ in 0..4000 {
            let above = random_steps(&mut rng);
            let outer: Vec<Value> =
                (0..rng.usize(1..40)).map(|_| random(&above, &mut rng)).collect();
            let leaf = |rng: &mut Rng| {
                let below = random_steps(rng);
                let below = &below[..rng.usize(0..=below.len())];
                let mut entries = Vec::new();
                for value in &outer {
                    let whole = grown(value, below, rng);
                    shred(&whole, 0, 0, 0, &mut entries);
                }
                let steps = [&above[..], below].concat();
                (entries, steps)
            };
            let (a, a_steps) = leaf(&mut rng);
            let (mut b, b_steps) = leaf(&mut rng);
            if rng.bool() {
                // Another valid leaf, which most likely differs.
                b = random_entries(&b_steps, &mut rng).1;
            }
            let expected = naive_outline(&a, &above) == naive_outline(&b, &above);
            contradictions += usize::from(!expected);
            let levels = |entries: &[(u16, u16)], rng: &mut Rng| {
                let def = planes_of(entries.iter().map(|(_, def)| *def), rng);
                (def, planes_of(entries.iter().map(|(rep, _)| *rep), rng))
            };
            let (a_planes, b_planes) = (levels(&a, &mut rng), levels(&b, &mut rng));
            let of = |planes| {
                let ((def, rep), steps): (&(LevelBitPlanes, LevelBitPlanes), &[Step]) = planes;
                OfLeaf { def, rep, max_rep: elements(steps).len() as u16 }
            };
            let node =
                Levels { slot: 0, present: above.len() as u16, rep: elements(&above).len() as u16 };
            let found = agree(of((&a_planes, &a_steps)), of((&b_planes, &b_steps)), node);
            assert_eq!(found, expected, "seed {seed}: {above:?} {a:?} {b:?}");
        }
        assert!(contradictions > 1000, "{contradictions} contradictions");
    }

    #[test]
    fn levels_below_a_struct_count_as_its_own() {
        let levels = |level| {
            let mut planes = LevelBitPlanes::new(5);
            planes.push_run(level, 70);
            planes
        };
        for (a, b, expected) in
            [(2, 3, true), (3, 2, true), (2, 2, true), (1, 2, false), (2, 1, false), (3, 0, false)]
        {
            assert_eq!(same_up_to(&levels(a), &levels(b), 2), expected, "{a} and {b}");
        }
    }

    /// The value with something below each of its leaves.
    fn grown(value: &Value, below: &[Step], rng: &mut Rng) -> Value {
        match value {
            Value::Leaf => random(below, rng),
            Value::Null => Value::Null,
            Value::There(value) => Value::There(Box::new(grown(value, below, rng))),
            Value::List(values) => {
                Value::List(values.iter().map(|value| grown(value, below, rng)).collect())
            }
        }
    }
}
