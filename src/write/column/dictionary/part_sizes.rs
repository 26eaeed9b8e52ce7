//! Sizes of the parts that threads intern.

use super::limits::BLOCK;

/// Minimum values of a part, because a thread is started for it, and its entries are looked up
/// twice.
pub(super) const MIN_PART_VALUES: usize = if cfg!(test) { 2 * BLOCK } else { 1 << 17 };

/// Codes that a thread maps at a time.
pub(super) const MAPPED_CODES: usize = if cfg!(test) { 1000 } else { 1 << 16 };
