//! How large a dictionary may grow, and when to give it up.

/// How large a dictionary may grow.
#[derive(Debug, Clone, Copy)]
pub(in crate::write::column) struct DictionaryLimits {
    /// Bytes of its entries, as PLAIN.
    pub(in crate::write::column) bytes: usize,
    /// Whether to give up where most values are likely to be distinct.
    pub(in crate::write::column) must_pay: bool,
}

impl DictionaryLimits {
    /// Of a dictionary that is wanted in any case.
    pub(in crate::write::column) const NONE: Self = Self { bytes: usize::MAX, must_pay: false };
}

/// Values before the first check of the growth; each later check comes at twice as many.
pub(super) const FIRST_LOOK: usize = 1 << 12;

/// Maximum share of distinct values, because above it hashing costs more than a dictionary saves.
pub(super) const MAX_DISTINCT_SHARE: f64 = 0.5;

/// Watches a dictionary grow.
pub(super) struct DictionaryGrowth {
    /// Maximum entries.
    max: usize,
    /// Values in all.
    n: usize,
    next_look: usize,
    /// Values and entries at the check before.
    seen_then: usize,
    entries_then: usize,
    must_pay: bool,
}

impl DictionaryGrowth {
    /// For `n` values of `width` bytes each.
    pub(super) fn new(n: usize, width: usize, limits: DictionaryLimits) -> Self {
        // Codes have 32 bits, and one of them means none.
        let max = (limits.bytes / width.max(1)).min(u32::MAX as usize / 2);
        Self {
            max,
            n,
            next_look: FIRST_LOOK,
            seen_then: 0,
            entries_then: 0,
            must_pay: limits.must_pay,
        }
    }

    /// Whether to go on, `seen` values into it.
    pub(super) fn goes_on(&mut self, seen: usize, entries: usize) -> bool {
        if entries > self.max {
            return false;
        }
        if seen < self.next_look || !self.must_pay {
            return true;
        }
        let half = seen / 2;
        let is_first = self.entries_then == 0;
        let fresh = (entries - self.entries_then) as f64 / (seen - self.seen_then) as f64;
        let before = (seen + self.seen_then) as f64 / 2.0;
        (self.seen_then, self.entries_then) = (seen, entries);
        self.next_look = seen / FIRST_LOOK * FIRST_LOOK * 2;
        if is_first || fresh >= 1.0 {
            // All values since half the way here were new: 16,384 of them tell enough.
            return is_first || seen < FIRST_LOOK * 4;
        }
        // If all values are equally likely, of `k` so many are new after `x` others: e^(-x/k).
        let distinct = before / -fresh.ln();
        distinct < self.n as f64 * MAX_DISTINCT_SHARE
            || (entries as f64) < half as f64 * MAX_DISTINCT_SHARE
    }
}

/// Values between two checks of the growth.
pub(super) const BLOCK: usize = 4096;

/// No entry.
pub(super) const NONE: u32 = u32::MAX;

/// Values looked up at a time. Their slots are prefetched first, so that the cache misses overlap.
pub(super) const AHEAD: usize = 32;

/// Maximum slots probed for one value, because more are a sign of crafted collisions.
pub(super) const MAX_PROBES: usize = 1 << 10;
