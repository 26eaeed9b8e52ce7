//! [`LevelBuffer`] collects the levels that are to be written.

/// The levels of consecutive slots: one number where all are equal, a vector otherwise.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct LevelBuffer {
    /// Used while every level is the same: `mixed` is empty then.
    uniform: u16,
    len: usize,
    mixed: Vec<u16>,
}

/// The levels of a buffer.
#[derive(Debug, Clone, Copy)]
pub(crate) enum LevelView<'a> {
    /// All slots have this level, also if there are none.
    Uniform(u16),
    /// The level of each slot.
    Mixed(&'a [u16]),
}

impl LevelBuffer {
    /// Slots held.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Whether no slot is held.
    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The level of all slots, or those of each.
    pub(crate) fn view(&self) -> LevelView<'_> {
        if self.mixed.is_empty() {
            LevelView::Uniform(self.uniform)
        } else {
            LevelView::Mixed(&self.mixed)
        }
    }

    /// The level of all slots, if all are the same (also if there are none).
    pub(crate) fn uniform(&self) -> Option<u16> {
        self.mixed.is_empty().then_some(self.uniform)
    }

    /// The levels, if they are not all the same.
    pub(crate) fn mixed(&self) -> Option<&[u16]> {
        (!self.mixed.is_empty()).then_some(&self.mixed)
    }

    /// Appends `n` slots of one level.
    pub(crate) fn push_run(&mut self, level: u16, n: usize) {
        if n == 0 {
            return;
        }
        if self.len == 0 {
            self.uniform = level;
        }
        self.len += n;
        if self.mixed.is_empty() && self.uniform == level {
            return;
        }
        self.make_explicit(self.len - n);
        self.mixed.resize(self.len, level);
    }

    /// Appends slots one by one.
    pub(crate) fn push_slice(&mut self, levels: &[u16]) {
        if levels.is_empty() {
            return;
        }
        self.make_explicit(self.len);
        self.mixed.extend_from_slice(levels);
        self.len += levels.len();
    }

    /// Like [`LevelBuffer::push_slice`]; the memory is taken over if nothing is held yet.
    pub(crate) fn push_vec(&mut self, levels: Vec<u16>) {
        if self.is_empty() {
            self.len = levels.len();
            self.mixed = levels;
        } else {
            self.push_slice(&levels);
        }
    }

    /// Appends the slots `[start, end)` of another buffer.
    pub(crate) fn push_range(&mut self, other: &Self, start: usize, end: usize) {
        match other.mixed() {
            None => self.push_run(other.uniform, end - start),
            Some(levels) => self.push_slice(&levels[start..end]),
        }
    }

    /// Forgets the slots, keeps the memory.
    #[cfg(test)]
    pub(crate) fn clear(&mut self) {
        self.len = 0;
        self.mixed.clear();
    }

    /// Makes room to append to the vector form: the first `n` slots stand in it afterwards.
    fn make_explicit(&mut self, n: usize) {
        if self.mixed.is_empty() {
            self.mixed.resize(n, self.uniform);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stays_one_number_until_a_level_differs() {
        let mut levels = LevelBuffer::default();
        levels.push_run(2, 3);
        levels.push_run(2, 4);
        assert_eq!((levels.len(), levels.uniform()), (7, Some(2)));
        levels.push_run(0, 1);
        assert_eq!(levels.mixed(), Some(&[2, 2, 2, 2, 2, 2, 2, 0][..]));
        levels.push_slice(&[1]);
        levels.push_run(1, 1);
        assert_eq!(levels.mixed(), Some(&[2, 2, 2, 2, 2, 2, 2, 0, 1, 1][..]));
        levels.clear();
        levels.push_slice(&[1, 1]);
        assert_eq!(levels.len(), 2);
        let mut same = LevelBuffer::default();
        same.push_vec(vec![1]);
        same.push_vec(vec![1]);
        assert_eq!(same.mixed(), levels.mixed());
    }
}
