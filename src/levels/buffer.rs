//! [`LevelBuffer`] collects the levels that are to be written.

use std::ops::Range;

use crate::error::Result;
use crate::memory;

/// The levels of consecutive slots: one number where all are equal, a period where lists of one
/// length follow each other, a vector otherwise.
///
/// # Errors
/// `Limit(Memory)` of all that appends or copies slots, if the system has no memory.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct LevelBuffer {
    len: usize,
    form: BufferForm,
}

#[derive(Debug, PartialEq, Eq)]
enum BufferForm {
    Uniform(u16),
    Regular(Period),
    Mixed(Vec<u16>),
}

/// Levels that come again and again: of lists that have the same number of elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Period {
    /// The level of the first slot of each list.
    pub(crate) first: u16,
    /// That of the others.
    pub(crate) rest: u16,
    /// Slots of a list, at least one.
    pub(crate) slots: usize,
}

impl Period {
    /// The level of a slot.
    pub(crate) fn level(&self, slot: usize) -> u16 {
        if slot.is_multiple_of(self.slots) { self.first } else { self.rest }
    }

    /// Whether slots are whole lists.
    pub(crate) fn is_whole(&self, range: &Range<usize>) -> bool {
        range.start.is_multiple_of(self.slots) && range.end.is_multiple_of(self.slots)
    }

    /// The levels of some slots.
    ///
    /// # Errors
    /// `Limit(Memory)` if the system has no memory.
    pub(crate) fn levels(&self, range: Range<usize>) -> Result<Vec<u16>> {
        let mut levels = memory::filled(self.rest, range.len())?;
        let firsts = range.start.next_multiple_of(self.slots)..range.end;
        for first in firsts.step_by(self.slots) {
            levels[first - range.start] = self.first;
        }
        Ok(levels)
    }
}

/// The levels of a buffer.
#[derive(Debug, Clone, Copy)]
pub(crate) enum LevelView<'a> {
    /// All slots have this level, also if there are none.
    Uniform(u16),
    /// Whole periods.
    Regular(Period),
    /// The level of each slot.
    Mixed(&'a [u16]),
}

impl Default for LevelBuffer {
    fn default() -> Self {
        Self { len: 0, form: BufferForm::Uniform(0) }
    }
}

impl LevelBuffer {
    /// Slots held.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Bytes of memory held.
    pub(crate) fn bytes_held(&self) -> usize {
        match &self.form {
            BufferForm::Mixed(levels) => levels.len() * size_of::<u16>(),
            BufferForm::Uniform(_) | BufferForm::Regular(_) => 0,
        }
    }

    /// The level of all slots, or those of each.
    pub(crate) fn view(&self) -> LevelView<'_> {
        match &self.form {
            BufferForm::Uniform(level) => LevelView::Uniform(*level),
            BufferForm::Regular(period) => LevelView::Regular(*period),
            BufferForm::Mixed(levels) => LevelView::Mixed(levels),
        }
    }

    /// The level of a slot, which must be there.
    pub(crate) fn level(&self, slot: usize) -> u16 {
        match &self.form {
            BufferForm::Uniform(level) => *level,
            BufferForm::Regular(period) => period.level(slot),
            BufferForm::Mixed(levels) => levels[slot],
        }
    }

    /// The level of all slots, if all are the same (also if there are none).
    pub(crate) fn uniform(&self) -> Option<u16> {
        match self.form {
            BufferForm::Uniform(level) => Some(level),
            BufferForm::Regular(_) | BufferForm::Mixed(_) => None,
        }
    }

    /// Appends `n` slots of one level.
    pub(crate) fn push_run(&mut self, level: u16, n: usize) -> Result<()> {
        if n == 0 {
            return Ok(());
        }
        match &self.form {
            _ if self.len == 0 => self.form = BufferForm::Uniform(level),
            BufferForm::Uniform(uniform) if *uniform == level => {}
            _ => {
                let end = self.len + n;
                self.make_explicit(n)?.resize(end, level);
            }
        }
        self.len += n;
        Ok(())
    }

    /// Appends `lists` lists whose slots have the levels of a period.
    pub(crate) fn push_regular(&mut self, period: Period, lists: usize) -> Result<()> {
        let n = lists * period.slots;
        match &self.form {
            _ if n == 0 => {}
            _ if self.len == 0 => self.form = BufferForm::Regular(period),
            BufferForm::Regular(before) if *before == period => {}
            _ => self.make_explicit(n)?.extend(period.levels(0..n)?),
        }
        self.len += n;
        Ok(())
    }

    /// Appends slots one by one.
    pub(crate) fn push_slice(&mut self, levels: &[u16]) -> Result<()> {
        if levels.is_empty() {
            return Ok(());
        }
        self.make_explicit(levels.len())?.extend_from_slice(levels);
        self.len += levels.len();
        Ok(())
    }

    /// Like [`LevelBuffer::push_slice`]; the memory is taken over if nothing is held yet.
    pub(crate) fn push_vec(&mut self, levels: Vec<u16>) -> Result<()> {
        if self.len > 0 || levels.is_empty() {
            return self.push_slice(&levels);
        }
        self.len = levels.len();
        self.form = BufferForm::Mixed(levels);
        Ok(())
    }

    /// Appends the slots `[start, end)` of another buffer.
    pub(crate) fn push_range(&mut self, other: &Self, start: usize, end: usize) -> Result<()> {
        match other.view() {
            LevelView::Uniform(level) => self.push_run(level, end - start),
            LevelView::Regular(period) if period.is_whole(&(start..end)) => {
                self.push_regular(period, (end - start) / period.slots)
            }
            LevelView::Regular(period) => self.push_slice(&period.levels(start..end)?),
            LevelView::Mixed(levels) => self.push_slice(&levels[start..end]),
        }
    }

    /// The same slots once more.
    pub(crate) fn copied(&self) -> Result<Self> {
        let form = match &self.form {
            BufferForm::Uniform(level) => BufferForm::Uniform(*level),
            BufferForm::Regular(period) => BufferForm::Regular(*period),
            BufferForm::Mixed(levels) => BufferForm::Mixed(memory::copied(levels)?),
        };
        Ok(Self { len: self.len, form })
    }

    /// Forgets the slots.
    #[cfg(test)]
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// The vector form of the slots so far, with room for `more`.
    fn make_explicit(&mut self, more: usize) -> Result<&mut Vec<u16>> {
        let explicit = match &self.form {
            BufferForm::Mixed(_) => None,
            BufferForm::Uniform(level) => {
                let mut levels = memory::vec_for(self.len + more)?;
                levels.resize(self.len, *level);
                Some(levels)
            }
            BufferForm::Regular(period) => Some(period.levels(0..self.len)?),
        };
        if let Some(levels) = explicit {
            self.form = BufferForm::Mixed(levels);
        }
        match &mut self.form {
            BufferForm::Mixed(levels) => {
                memory::room(levels, more)?;
                Ok(levels)
            }
            BufferForm::Uniform(_) | BufferForm::Regular(_) => unreachable!("made explicit above"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mixed(levels: &LevelBuffer) -> &[u16] {
        match levels.view() {
            LevelView::Mixed(levels) => levels,
            other => panic!("{other:?}"),
        }
    }

    fn all(levels: &LevelBuffer) -> Vec<u16> {
        (0..levels.len()).map(|slot| levels.level(slot)).collect()
    }

    #[test]
    fn lists_of_one_length_stay_a_period_until_another_comes() {
        let period = Period { first: 0, rest: 1, slots: 3 };
        let mut levels = LevelBuffer::default();
        levels.push_regular(period, 2).unwrap();
        levels.push_regular(period, 1).unwrap();
        let three = [0, 1, 1, 0, 1, 1, 0, 1, 1];
        assert_eq!(all(&levels), three);
        assert!(matches!(levels.view(), LevelView::Regular(_)) && levels.bytes_held() == 0);
        let mut copy = LevelBuffer::default();
        copy.push_range(&levels, 3, 9).unwrap();
        copy.push_range(&levels, 0, 3).unwrap();
        assert_eq!(copy, levels);
        copy.push_range(&levels, 1, 4).unwrap();
        assert_eq!(mixed(&copy), [&three[..], &[1, 1, 0]].concat());
        for (more, expected) in [(0, [0, 0]), (1, [1, 1])] {
            let mut levels = levels.copied().unwrap();
            levels.push_run(more, 2).unwrap();
            assert_eq!(all(&levels), [&three[..], &expected].concat());
        }
        levels.push_regular(Period { slots: 2, ..period }, 1).unwrap();
        assert_eq!(all(&levels), [&three[..], &[0, 1]].concat());
    }

    #[test]
    fn any_range_of_lists_has_their_levels() {
        let mut lists = LevelBuffer::default();
        lists.push_regular(Period { first: 0, rest: 1, slots: 3 }, 3).unwrap();
        let expected = [0, 1, 1, 0, 1, 1, 0, 1, 1];
        for start in 0..=9 {
            for end in start..=9 {
                let mut some = LevelBuffer::default();
                some.push_range(&lists, start, end).unwrap();
                assert_eq!(some.len(), end - start);
                assert_eq!(all(&some), expected[start..end], "{start}..{end}");
                let slots = (0..some.len()).map(|slot| some.level(slot));
                assert!(slots.eq(expected[start..end].iter().copied()), "{start}..{end}");
            }
        }
    }

    #[test]
    fn no_lists_change_nothing() {
        let period = Period { first: 0, rest: 1, slots: 3 };
        let mut levels = LevelBuffer::default();
        levels.push_regular(period, 0).unwrap();
        assert_eq!(levels.uniform(), LevelBuffer::default().uniform());
        levels.push_regular(period, 2).unwrap();
        levels.push_regular(Period { slots: 4, ..period }, 0).unwrap();
        assert!(matches!(levels.view(), LevelView::Regular(_)) && levels.bytes_held() == 0);
        levels.push_run(1, 1).unwrap();
        assert_eq!(levels.bytes_held(), 14);
    }

    #[test]
    fn stays_one_number_until_a_level_differs() {
        let mut levels = LevelBuffer::default();
        levels.push_run(2, 3).unwrap();
        levels.push_run(2, 4).unwrap();
        assert_eq!((levels.len(), levels.uniform()), (7, Some(2)));
        levels.push_run(0, 1).unwrap();
        assert_eq!(mixed(&levels), [2, 2, 2, 2, 2, 2, 2, 0]);
        levels.push_slice(&[1]).unwrap();
        levels.push_run(1, 1).unwrap();
        assert_eq!(mixed(&levels), [2, 2, 2, 2, 2, 2, 2, 0, 1, 1]);
        levels.clear();
        levels.push_slice(&[1, 1]).unwrap();
        assert_eq!(levels.len(), 2);
        let mut same = LevelBuffer::default();
        same.push_vec(vec![1]).unwrap();
        same.push_vec(vec![1]).unwrap();
        assert_eq!(mixed(&same), mixed(&levels));
    }
}
