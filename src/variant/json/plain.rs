//! Finds the characters of a string that need no escape.

/// Position of the next quote, backslash or control character from `at` on; the end if there is
/// none.
#[inline]
pub(super) fn plain_end(bytes: &[u8], mut at: usize) -> usize {
    // Eight bytes at once: of a byte that is less than n, bit 7 of the byte - n is set.
    const ONES: u64 = u64::MAX / 255;
    const HIGH: u64 = ONES << 7;
    while let Some(word) = bytes.get(at..).and_then(<[u8]>::first_chunk::<8>) {
        let word = u64::from_le_bytes(*word);
        let (quote, backslash) = (word ^ (ONES * 0x22), word ^ (ONES * 0x5c));
        let is_below = |word: u64, n: u64| word.wrapping_sub(ONES * n) & !word & HIGH;
        let found = is_below(quote, 1) | is_below(backslash, 1) | is_below(word, 0x20);
        if found != 0 {
            // A borrow can only set bits of higher bytes: the lowest one is right.
            return at + (found.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    while let Some(byte) = bytes.get(at)
        && !matches!(byte, b'"' | b'\\' | 0..=0x1f)
    {
        at += 1;
    }
    at.min(bytes.len())
}
