//! Rows that are decoded but not yet an array, and levels that are decoded ahead of them.

use crate::levels::{LevelDecoder, Validity, rows};
use crate::simd::planes::LevelBitPlanes;

/// Validity and levels of the rows that are decoded since the last batch.
pub(super) struct DecodedRows {
    pub(super) validity: Validity,
    pub(super) def: LevelBitPlanes,
    pub(super) rep: LevelBitPlanes,
}

impl DecodedRows {
    pub(super) fn new(max_def: u16, max_rep: u16) -> Self {
        let (def, rep) = (LevelDecoder::planes(max_def), LevelDecoder::planes(max_rep));
        Self { validity: Validity::default(), def, rep }
    }

    /// Bytes of the levels.
    pub(super) fn bytes_held(&self) -> usize {
        self.def.bytes_held() + self.rep.bytes_held()
    }

    /// Appends the definition levels of the `n` slots from `first` on, of a leaf whose maximum
    /// definition level is 1: they are the bits of its validity.
    pub(super) fn append_levels_of_validity(&mut self, first: usize, n: usize) {
        match self.validity.bitmap() {
            None => self.def.push_run(1, n),
            Some(bitmap) => self.def.push_bits(first..first + n, |at| bitmap.word_at(at)),
        }
    }
}

/// The destination of decoded rows.
pub(super) enum RowOutput {
    /// They are appended to these.
    Append(DecodedRows),
    /// They are skipped.
    Skip,
}

impl RowOutput {
    /// The rows that are appended to.
    pub(super) fn rows(&mut self) -> Option<&mut DecodedRows> {
        match self {
            Self::Append(rows) => Some(rows),
            Self::Skip => None,
        }
    }
}

/// Levels decoded ahead to find where a row ends. They belong to the current page.
pub(super) struct LevelsAhead {
    pub(super) def: LevelBitPlanes,
    pub(super) rep: LevelBitPlanes,
    /// Slots of them that are used up.
    used: usize,
}

impl LevelsAhead {
    pub(super) fn new(max_def: u16, max_rep: u16) -> Self {
        let (def, rep) = (LevelDecoder::planes(max_def), LevelDecoder::planes(max_rep));
        Self { def, rep, used: 0 }
    }

    pub(super) fn clear(&mut self) {
        self.def.clear();
        self.rep.clear();
        self.used = 0;
    }

    /// Slots that are left.
    pub(super) fn left(&self) -> usize {
        self.rep.len() - self.used
    }

    /// Uses up slots until `max` rows have begun and the next one would begin, or until none are
    /// left. `begun` counts the rows that have begun; the result is the range of slots.
    pub(super) fn take_rows(&mut self, begun: &mut usize, max: usize) -> (usize, usize) {
        let start = self.used;
        let (n, end) = rows(&self.rep, start..self.rep.len(), max - *begun);
        *begun += n;
        self.used = end;
        (start, end)
    }
}
