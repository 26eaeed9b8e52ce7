//! Decides how large a dictionary may grow, and when to give it up.

use crate::sync::Arc;
use crate::sync::atomic::{AtomicBool, Ordering};

/// How large a dictionary may grow.
#[derive(Debug, Clone, Copy)]
pub(in crate::write::column) struct DictionaryLimits {
    /// Bytes of its entries, as PLAIN.
    pub(in crate::write::column) bytes: usize,
    /// Whether to give up where most values are likely to be distinct.
    pub(in crate::write::column) must_pay: bool,
}

impl DictionaryLimits {
    /// The limits of a dictionary that is wanted in any case.
    pub(in crate::write::column) const NONE: Self = Self { bytes: usize::MAX, must_pay: false };
}

/// Values before the first check of the growth; each later check comes at twice as many.
pub(super) const FIRST_LOOK: usize = 1 << 12;

/// Maximum share of distinct values, because above it hashing costs more than a dictionary saves.
pub(super) const MAX_DISTINCT_SHARE: f64 = 0.5;

/// Minimum average repeats of a value in a part that another thread interns, because each distinct
/// value is looked up again when the parts become one.
const MIN_REPEATS_IN_PART: usize = 4;

/// Maximum entries: codes have 32 bits, and one of them means none.
const MAX_ENTRIES: usize = u32::MAX as usize / 2;

/// Watches a dictionary grow.
pub(super) struct DictionaryGrowth {
    max_bytes: usize,
    /// Set where it is known that the dictionary of all values is to be given up.
    stop: Arc<AtomicBool>,
    watch: Watch,
}

enum Watch {
    Any,
    /// The dictionary must pay.
    Share(ShareWatch),
    Part(PartWatch),
}

/// Watches the share of distinct values.
struct ShareWatch {
    /// Values in all.
    n: usize,
    next_look: usize,
    /// Values and entries at the check before.
    seen_then: usize,
    entries_then: usize,
}

/// Watches the dictionary of a part that is not the first.
struct PartWatch {
    max_entries: usize,
    progress: Vec<DictionaryProgress>,
}

/// How far a dictionary has come.
#[derive(Debug, Clone, Copy)]
pub(super) struct DictionaryProgress {
    /// Values looked up.
    pub(super) seen: usize,
    pub(super) entries: usize,
}

impl DictionaryGrowth {
    /// Watches the dictionary of `n` values. The watches of its parts share `stop`.
    pub(super) fn new(n: usize, limits: DictionaryLimits, stop: Arc<AtomicBool>) -> Self {
        let watch = match limits.must_pay {
            true => {
                Watch::Share(ShareWatch { n, next_look: FIRST_LOOK, seen_then: 0, entries_then: 0 })
            }
            false => Watch::Any,
        };
        Self { max_bytes: limits.bytes, stop, watch }
    }

    /// Watches the dictionary of `n` consecutive values, which are not the first.
    pub(super) fn of_part(n: usize, limits: DictionaryLimits, stop: Arc<AtomicBool>) -> Self {
        let max_entries = n / MIN_REPEATS_IN_PART;
        let watch = Watch::Part(PartWatch { max_entries, progress: Vec::new() });
        Self { max_bytes: limits.bytes, stop, watch }
    }

    /// Whether to go on after `seen` values, given the entries and their bytes as PLAIN. Must be
    /// called at each multiple of [`BLOCK`], and at the end.
    pub(super) fn should_continue(&mut self, seen: usize, entries: usize, bytes: usize) -> bool {
        self.fits(entries, bytes)
            && !self.stop.load(Ordering::Relaxed)
            && self.pays(DictionaryProgress { seen, entries })
    }

    /// Whether a dictionary of this size is within the limits. If the dictionary of a part is not,
    /// that of all values is not either.
    pub(super) fn fits(&self, entries: usize, bytes: usize) -> bool {
        let fits = entries <= MAX_ENTRIES && bytes <= self.max_bytes;
        if !fits {
            self.stop.store(true, Ordering::Relaxed);
        }
        fits
    }

    /// Whether to go on, by the share of distinct values.
    pub(super) fn pays(&mut self, at: DictionaryProgress) -> bool {
        match &mut self.watch {
            Watch::Any => true,
            Watch::Share(watch) => watch.pays(at),
            Watch::Part(watch) => {
                watch.progress.push(at);
                at.entries <= watch.max_entries
            }
        }
    }

    /// How a part grew: what was asked so far.
    pub(super) fn take_progress(&mut self) -> Vec<DictionaryProgress> {
        match &mut self.watch {
            Watch::Part(watch) => std::mem::take(&mut watch.progress),
            Watch::Any | Watch::Share(_) => Vec::new(),
        }
    }
}

impl ShareWatch {
    fn pays(&mut self, DictionaryProgress { seen, entries }: DictionaryProgress) -> bool {
        if seen < self.next_look {
            return true;
        }
        let half = seen / 2;
        let is_first = self.entries_then == 0;
        let fresh = (entries - self.entries_then) as f64 / (seen - self.seen_then) as f64;
        let before = (seen + self.seen_then) as f64 / 2.0;
        (self.seen_then, self.entries_then) = (seen, entries);
        self.next_look = seen / FIRST_LOOK * FIRST_LOOK * 2;
        if is_first || fresh >= 1.0 {
            // All values since half this number were new: 16,384 of them are enough to decide.
            return is_first || seen < FIRST_LOOK * 4;
        }
        // If all values are equally likely, the number of new ones among `k` after `x` others is k
        // * e^(-x/k).
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
