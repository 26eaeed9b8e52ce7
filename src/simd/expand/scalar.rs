//! The definition: the value of a slot is the next one if its bit is set, and 0 otherwise.

use super::Block;

/// Spreads the values at the front of `block` to the set bits of `word`.
#[inline]
pub(super) fn expand<T: Copy + Default>(block: &Block<T>, word: u64, target: &mut [T]) {
    // Index 0 is the null: a look-up, where a branch would be guessed wrong.
    let mut table: Block<T> = [T::default(); 128];
    table[1..=64].copy_from_slice(&block[..64]);
    let mut next = 0;
    for (i, slot) in target.iter_mut().enumerate() {
        let bit = (word >> i & 1) as usize;
        next += bit;
        *slot = table[next & bit.wrapping_neg() & 127];
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
