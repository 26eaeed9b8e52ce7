//! The definition: the value of a slot is the next one if its bit is set, and 0 otherwise.

use crate::simd::bitmap::WORD;
use crate::simd::native::PlainOldData;

/// A block of values with room after it, so that a vector can be read from any of the 64.
pub(super) type Block<T> = [T; 2 * WORD];

/// Spreads the values at the front of `block` to the set bits of `word`, none of them beyond
/// `target`.
#[inline]
pub(super) fn expand<T: PlainOldData>(block: &Block<T>, mut word: u64, target: &mut [T]) {
    // From bit to bit: a test of each would be guessed wrong as often as not.
    target.fill(T::ZERO);
    for value in block {
        if word == 0 {
            return;
        }
        target[word.trailing_zeros() as usize] = *value;
        word &= word - 1;
    }
}

/// Ends at the set bits of `word` are those of `block` from 1 on; the others are the one before.
pub(super) fn expand_ends<T: Copy>(block: &Block<T>, word: u64, target: &mut [T]) {
    let mut next = 0;
    for (i, slot) in target.iter_mut().enumerate() {
        next += (word >> i & 1) as usize;
        *slot = block[next % block.len()];
    }
}
