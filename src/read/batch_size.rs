//! [`BatchSize`] decides how many rows the next batches of a row group have.
//!
//! The metadata state how many bytes a row takes, and may be wrong. If a batch was too large, the
//! next ones have fewer rows and are made one at a time, until it is known how many rows fit. If
//! batches are far smaller than the metadata state, the next ones have more rows.

use super::window::Window;
use crate::bytes::saturated;

/// The size of the next batches, from the sizes of earlier ones.
#[derive(Debug)]
pub(super) struct BatchSize {
    /// Rows of the next batch.
    pub(super) rows: usize,
    /// About how many bytes it takes.
    pub(super) bytes: u64,
    /// Bytes that a batch should not exceed.
    target_bytes: usize,
    /// Rows of a batch, as estimated from the metadata.
    estimated_rows: usize,
    /// Maximum rows of a batch: as estimated, unless the estimate was found to be far off.
    max_rows: usize,
    trust: Trust,
}

/// How far the estimate of the metadata is trusted.
#[derive(Debug, Clone, Copy)]
enum Trust {
    /// No batch was too large. Rows and bytes decoded so far.
    Estimated { rows: u64, bytes: u64 },
    /// `too_large` batches were too large. Batches are made one at a time until their size is
    /// `known`.
    Measured { too_large: u32, known: bool },
}

/// A batch that was too large is tried again with this many times fewer rows.
const FEWER: usize = 4;

/// How many times less than estimated rows must take for the estimate to be called wrong. Sane
/// metadata are off by less.
const FAR_OFF: u64 = 16;

/// The next batch has this many times more rows, if the metadata had stated far too much.
const WIDER: usize = 4;

/// Minimum rows of a batch by which the width of later rows is estimated.
const KNOWN_FROM: usize = 64;

/// Maximum batches that may be too large before all later ones are made one at a time.
const MAX_TOO_LARGE: u32 = 8;

impl BatchSize {
    /// By the metadata, batches of `rows` rows take `bytes` bytes each; they should take at most
    /// `target_bytes`.
    pub(super) fn new(rows: usize, bytes: u64, target_bytes: usize) -> Self {
        let trust = Trust::Estimated { rows: 0, bytes: 0 };
        Self { rows, bytes, target_bytes, estimated_rows: rows, max_rows: rows, trust }
    }

    /// Whether batches are made one at a time, because one was larger than the metadata had stated.
    pub(super) fn is_careful(&self) -> bool {
        matches!(self.trust, Trust::Measured { known: false, .. })
    }

    /// After a batch was too large: the next ones are made one at a time.
    pub(super) fn distrust(&mut self) {
        let too_large = match self.trust {
            Trust::Estimated { .. } => 1,
            Trust::Measured { too_large, .. } => too_large + 1,
        };
        self.trust = Trust::Measured { too_large, known: false };
        // The metadata may be right of the rows from here on.
        self.rows = self.rows.min(self.estimated_rows);
    }

    /// After a single batch of `rows` rows was too large.
    pub(super) fn shrink(&mut self, rows: usize) {
        self.distrust();
        self.rows = self.rows.min(rows / FEWER).max(1);
    }

    /// Makes the next batches larger, up to `cap` rows, if the rows decoded so far, these windows
    /// included, are far narrower than estimated: the metadata may lie, and a batch of each row
    /// takes long. Not once a batch was too large.
    pub(super) fn widen(&mut self, windows: &[Window], cap: usize) {
        let Trust::Estimated { rows: decoded, bytes } = &mut self.trust else { return };
        if self.rows >= cap {
            return;
        }
        for window in windows {
            *decoded = decoded.saturating_add(window.decoded() as u64);
            *bytes = bytes.saturating_add(window.weight.with_pages());
        }
        let width = (*bytes / (*decoded).max(1)).max(1);
        let per_row = self.bytes / self.rows as u64;
        if *decoded == 0 || width.saturating_mul(FAR_OFF) > per_row {
            return;
        }
        let fitting = saturated(self.target_bytes as u64 / width);
        let rows = fitting.min(self.rows.saturating_mul(WIDER)).min(cap);
        if rows > self.rows {
            self.max_rows = cap;
            // The width in the metadata is still compared with, and bounds the waves.
            self.bytes = per_row.saturating_mul(rows as u64);
            self.rows = rows;
        }
    }

    /// Adjusts the next batches to a batch that was made by itself: see [`BatchSize::widen`]. Once
    /// a batch was too large, its width bounds them.
    pub(super) fn learn(&mut self, window: &Window, cap: usize) {
        match self.trust {
            Trust::Estimated { .. } => self.widen(std::slice::from_ref(window), cap),
            Trust::Measured { too_large, .. } => self.measure(window, too_large),
        }
    }

    fn measure(&mut self, window: &Window, too_large: u32) {
        let width = (window.weight.bytes() / (window.decoded() as u64).max(1)).max(1);
        let fitting = saturated(self.target_bytes as u64 / width);
        let max = self.max_rows.min(self.rows.saturating_mul(2));
        let rows = fitting.clamp(1, max.max(1));
        // A single long row reveals nothing about the rows after it.
        let tells = rows <= self.rows && window.decoded() >= KNOWN_FROM;
        if tells && too_large <= MAX_TOO_LARGE {
            self.trust = Trust::Measured { too_large, known: true };
        }
        self.rows = rows;
        self.bytes = width.saturating_mul(rows as u64);
    }
}
