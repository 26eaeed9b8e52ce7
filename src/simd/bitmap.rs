//! [`Bitmap`] is a growable bitmap for validity, booleans and selections. The first bit is the
//! lowest of the first byte, as in Arrow and in the format.

use super::{Isa, Kernel};
use crate::error::Result;
use crate::memory;

/// Bits of a word.
pub(super) const WORD: usize = 64;

/// Bits in words of 64; those beyond the length are 0.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Bitmap {
    words: Vec<u64>,
    len: usize,
}

impl Bitmap {
    /// Number of bits.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Reserves memory for `n` more bits.
    pub(crate) fn reserve(&mut self, n: usize) {
        let words = (self.len + n).div_ceil(64);
        self.words.reserve(words.saturating_sub(self.words.len()));
    }

    /// As [`Bitmap::reserve`].
    ///
    /// # Errors
    /// `Limit(Memory)` if the system has no memory.
    pub(crate) fn try_reserve(&mut self, n: usize) -> Result<()> {
        let words = self.len.saturating_add(n).div_ceil(64);
        let more = words.saturating_sub(self.words.len());
        memory::room(&mut self.words, more)
    }

    /// The bit at `i`; false beyond the end.
    #[inline]
    pub(crate) fn get(&self, i: usize) -> bool {
        self.words.get(i / 64).is_some_and(|word| word >> (i % 64) & 1 != 0)
    }

    /// The 64 bits from `at` on, the first in the lowest; 0 beyond the end.
    #[inline]
    pub(crate) fn word_at(&self, at: usize) -> u64 {
        let (word, shift) = (at / 64, at % 64);
        let low = self.words.get(word).map_or(0, |w| w >> shift);
        if shift == 0 {
            return low;
        }
        low | self.words.get(word + 1).map_or(0, |w| w << (64 - shift))
    }

    /// Appends `n` times `bit`.
    pub(crate) fn append_run(&mut self, bit: bool, n: usize) {
        let end = self.len + n;
        let fill = if bit { u64::MAX } else { 0 };
        if bit
            && !self.len.is_multiple_of(64)
            && let Some(last) = self.words.last_mut()
        {
            *last |= u64::MAX << (self.len % 64);
        }
        self.words.resize(end.div_ceil(64), fill);
        self.len = end;
        self.clear_tail();
    }

    /// Appends the bits `range` of another bitmap.
    pub(crate) fn append_range(&mut self, other: &Self, range: std::ops::Range<usize>) {
        self.reserve(range.len());
        for at in range.clone().step_by(64) {
            self.append_word(other.word_at(at), (range.end - at).min(64));
        }
    }

    /// The bits as bytes, the first in the lowest; those beyond the length are 0.
    ///
    /// # Errors
    /// `Limit(Memory)` if the system has no memory.
    pub(crate) fn to_bytes(&self, range: std::ops::Range<usize>) -> Result<Vec<u8>> {
        let mut bytes = memory::vec_for(range.len().div_ceil(64) * 8)?;
        for at in range.clone().step_by(64) {
            let n = (range.end - at).min(64);
            bytes.extend_from_slice(&(self.word_at(at) & (u64::MAX >> (64 - n))).to_le_bytes());
        }
        bytes.truncate(range.len().div_ceil(8));
        Ok(bytes)
    }

    /// Appends the `n` lowest bits of `word`; `n` is at most 64.
    #[inline]
    pub(crate) fn append_word(&mut self, word: u64, n: usize) {
        debug_assert!(n <= 64, "a word has 64 bits");
        if n == 0 {
            return;
        }
        let word = word & (u64::MAX >> (64 - n));
        let shift = self.len % 64;
        if shift == 0 {
            self.words.push(word);
        } else {
            if let Some(last) = self.words.last_mut() {
                *last |= word << shift;
            }
            if shift + n > 64 {
                self.words.push(word >> (64 - shift));
            }
        }
        self.len += n;
    }

    /// Appends `n` bits that begin at bit `offset` of `bytes`; bits that are not there are 0.
    pub(crate) fn append_bits(&mut self, bytes: &[u8], offset: usize, n: usize) {
        self.reserve(n);
        // As of those that are cut off, bits after the bytes are 0.
        let bytes = bytes.get(offset / 8..).unwrap_or_default();
        let shift = offset % 8;
        let mut at = 0;
        while at < n {
            let word = load(bytes, at / 8);
            let word = if shift == 0 {
                word
            } else {
                // As above.
                let next = bytes.get(at / 8 + 8).copied().unwrap_or(0);
                word >> shift | u64::from(next) << (64 - shift)
            };
            self.append_word(word, (n - at).min(64));
            at += 64;
        }
    }

    /// How many bits of `range` are set.
    pub(crate) fn count_ones(&self, range: std::ops::Range<usize>) -> usize {
        let mut ones = 0;
        let mut at = range.start;
        while at < range.end {
            let n = (range.end - at).min(64);
            ones += (self.word_at(at) & (u64::MAX >> (64 - n))).count_ones() as usize;
            at += 64;
        }
        ones
    }

    /// Moves the bits from `start` on to the set bits of `validity[first..first + slots]`; the
    /// others become 0.
    pub(crate) fn spread(&mut self, start: usize, validity: &Self, first: usize, slots: usize) {
        let dense: Vec<u64> = (start..self.len).step_by(64).map(|at| self.word_at(at)).collect();
        self.truncate(start);
        let isa = Isa::for_kernel(Kernel::Bits);
        let dense = Self { len: dense.len() * 64, words: dense };
        let mut from = 0;
        for at in (0..slots).step_by(64) {
            let n = (slots - at).min(64);
            let valid = validity.word_at(first + at) & (u64::MAX >> (64 - n));
            self.append_word(deposit(isa, dense.word_at(from), valid), n);
            from += valid.count_ones() as usize;
        }
    }

    /// Appends those bits of `other`, from `from` on, whose bits of `keep`, from `first` on, are
    /// set, of `n`.
    pub(crate) fn append_kept(
        &mut self,
        other: &Self,
        from: usize,
        keep: &Self,
        first: usize,
        n: usize,
    ) {
        let isa = Isa::for_kernel(Kernel::Bits);
        for at in (0..n).step_by(64) {
            let mask = keep.word_at(first + at) & (u64::MAX >> (64 - (n - at).min(64)));
            let word = extract(isa, other.word_at(from + at), mask);
            self.append_word(word, mask.count_ones() as usize);
        }
    }

    /// Keeps those bits from `start` on whose bits of `keep` are set.
    pub(crate) fn compact(&mut self, start: usize, keep: &Self) {
        let n = self.len - start;
        let mut kept = Self::default();
        kept.append_kept(self, start, keep, 0, n);
        self.truncate(start);
        self.append_range(&kept, 0..kept.len);
    }

    /// The stretches of set bits, ascending.
    pub(crate) fn runs(&self) -> impl Iterator<Item = std::ops::Range<usize>> + '_ {
        let mut at = 0;
        std::iter::from_fn(move || {
            let start = self.next(true, at)?;
            at = self.next(false, start).unwrap_or(self.len);
            Some(start..at)
        })
    }

    /// The first bit from `at` on that is `bit`.
    fn next(&self, bit: bool, at: usize) -> Option<usize> {
        let mut at = at;
        while at < self.len {
            let word = self.word_at(at);
            let word = if bit { word } else { !word };
            if word != 0 {
                return Some(at + word.trailing_zeros() as usize).filter(|at| *at < self.len);
            }
            at += 64;
        }
        None
    }

    /// Cuts to `len` bits.
    pub(crate) fn truncate(&mut self, len: usize) {
        if len < self.len {
            self.words.truncate(len.div_ceil(64));
            self.len = len;
            self.clear_tail();
        }
    }

    /// Forgets all bits, keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.words.clear();
        self.len = 0;
    }

    /// The words, as Arrow has bits in memory: the first in the lowest byte. And the number of
    /// bits.
    pub(crate) fn into_words(mut self) -> (Vec<u64>, usize) {
        if cfg!(target_endian = "big") {
            self.words.iter_mut().for_each(|word| *word = word.to_le());
        }
        (self.words, self.len)
    }

    fn clear_tail(&mut self) {
        let used = self.len % 64;
        if used != 0
            && let Some(last) = self.words.last_mut()
        {
            *last &= u64::MAX >> (64 - used);
        }
    }
}

/// Appends `n` bits that begin at bit `offset` of `bits` as bytes; the last byte is padded with
/// zeros.
///
/// # Panics
/// If `bits` has fewer than `offset + n` bits.
pub(crate) fn append_aligned(bits: &[u8], offset: usize, n: usize, out: &mut Vec<u8>) {
    let bytes = &bits[offset / 8..(offset + n).div_ceil(8)];
    let shift = offset % 8;
    let start = out.len();
    let len = n.div_ceil(8);
    if shift == 0 {
        out.extend_from_slice(bytes);
    } else {
        out.reserve(len);
        // Every byte but the last has one after it to take bits from.
        out.extend(bytes.windows(2).map(|pair| pair[0] >> shift | pair[1] << (8 - shift)));
        if out.len() - start < len {
            out.extend(bytes.last().map(|last| last >> shift));
        }
    }
    out.truncate(start + len);
    if !n.is_multiple_of(8)
        && let Some(last) = out.last_mut()
    {
        *last &= !(u8::MAX << (n % 8));
    }
}

/// The 8 bytes at `at`; 0 where there are none.
#[inline]
fn load(bytes: &[u8], at: usize) -> u64 {
    let rest = bytes.get(at..).unwrap_or_default();
    if let Some(word) = rest.first_chunk::<8>() {
        return u64::from_le_bytes(*word);
    }
    let mut word = [0; 8];
    word[..rest.len()].copy_from_slice(rest);
    u64::from_le_bytes(word)
}

/// Puts the low bits of `bits` at the set bits of `mask`, in order.
#[inline]
pub(crate) fn deposit(isa: Isa, bits: u64, mask: u64) -> u64 {
    if mask == u64::MAX {
        return bits;
    }
    #[cfg(target_arch = "x86_64")]
    if isa != Isa::SCALAR {
        // SAFETY: an `Isa` other than `SCALAR` exists only where BMI2 was found.
        return unsafe { std::arch::x86_64::_pdep_u64(bits, mask) };
    }
    #[cfg(target_arch = "aarch64")]
    if isa.neon() {
        // SAFETY: every aarch64 has NEON.
        return unsafe { super::bits::deposit(bits, mask) };
    }
    let _ = isa;
    let (mut bits, mut mask, mut out) = (bits, mask, 0);
    while mask != 0 {
        let lowest = mask & mask.wrapping_neg();
        out |= lowest * (bits & 1);
        bits >>= 1;
        mask ^= lowest;
    }
    out
}

/// Puts the bits of `bits` at the set bits of `mask` together, in order: the opposite of
/// [`deposit`].
fn extract(isa: Isa, bits: u64, mask: u64) -> u64 {
    if mask == u64::MAX {
        return bits;
    }
    #[cfg(target_arch = "x86_64")]
    if isa != Isa::SCALAR {
        // SAFETY: an `Isa` other than `SCALAR` exists only where BMI2 was found.
        return unsafe { std::arch::x86_64::_pext_u64(bits, mask) };
    }
    #[cfg(target_arch = "aarch64")]
    if isa.neon() {
        // SAFETY: every aarch64 has NEON.
        return unsafe { super::bits::extract(bits, mask) };
    }
    let _ = isa;
    let (mut mask, mut out, mut at) = (mask, 0, 0);
    while mask != 0 {
        let lowest = mask & mask.wrapping_neg();
        out |= u64::from(bits & lowest != 0) << at;
        at += 1;
        mask ^= lowest;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bits(bitmap: &Bitmap) -> Vec<bool> {
        (0..bitmap.len()).map(|i| bitmap.get(i)).collect()
    }

    #[test]
    fn grows_like_a_vector_of_bools() {
        let seed = 3;
        let mut rng = fastrand::Rng::with_seed(seed);
        let bytes: Vec<u8> = (0..64).map(|_| rng.u8(..)).collect();
        for _ in 0..200 {
            let (mut bitmap, mut naive) = (Bitmap::default(), Vec::new());
            for _ in 0..rng.usize(1..8) {
                match rng.usize(0..4) {
                    0 => {
                        let (bit, n) = (rng.bool(), rng.usize(0..150));
                        bitmap.append_run(bit, n);
                        naive.extend(std::iter::repeat_n(bit, n));
                    }
                    1 => {
                        let (word, n) = (rng.u64(..), rng.usize(0..=64));
                        bitmap.append_word(word, n);
                        naive.extend((0..n).map(|i| word >> i & 1 != 0));
                    }
                    2 => {
                        let (offset, n) = (rng.usize(0..100), rng.usize(0..400));
                        bitmap.append_bits(&bytes, offset, n);
                        naive
                            .extend((offset..offset + n).map(|i| bytes[i / 8] >> (i % 8) & 1 != 0));
                    }
                    _ => {
                        let len = rng.usize(0..=naive.len());
                        bitmap.truncate(len);
                        naive.truncate(len);
                    }
                }
                assert_eq!(bits(&bitmap), naive, "seed {seed}");
                let a = rng.usize(0..=naive.len());
                let b = rng.usize(a..=naive.len());
                assert_eq!(bitmap.count_ones(a..b), naive[a..b].iter().filter(|b| **b).count());
            }
        }
    }

    #[test]
    fn deposits_as_the_scalar_definition() {
        let mut rng = fastrand::Rng::with_seed(5);
        for _ in 0..1000 {
            let (bits, mask) = (rng.u64(..), rng.u64(..) & rng.u64(..));
            for isa in Isa::available() {
                assert_eq!(deposit(isa, bits, mask), deposit(Isa::SCALAR, bits, mask));
                assert_eq!(extract(isa, bits, mask), extract(Isa::SCALAR, bits, mask));
                assert_eq!(deposit(isa, extract(isa, bits, mask), mask), bits & mask);
            }
        }
    }

    #[test]
    fn keeps_the_bits_that_a_filter_keeps() {
        let seed = 8;
        let mut rng = fastrand::Rng::with_seed(seed);
        for _ in 0..300 {
            let (before, n) = (rng.usize(0..70), rng.usize(0..300));
            let (mut bitmap, mut keep) = (Bitmap::default(), Bitmap::default());
            (0..before + n).for_each(|_| bitmap.append_run(rng.bool(), 1));
            while keep.len() < n {
                let len = [1, 3, 80][rng.usize(0..3)].min(n - keep.len());
                keep.append_run(rng.bool(), len);
            }
            let runs: Vec<usize> = keep.runs().flatten().collect();
            let ones: Vec<usize> = (0..n).filter(|i| keep.get(*i)).collect();
            assert_eq!(runs, ones, "seed {seed}");
            let mut expected: Vec<bool> = (0..before).map(|i| bitmap.get(i)).collect();
            expected.extend(ones.iter().map(|i| bitmap.get(before + i)));
            bitmap.compact(before, &keep);
            assert_eq!(bits(&bitmap), expected, "seed {seed}");
        }
    }

    #[test]
    fn spreads_bits_to_their_slots() {
        let seed = 4;
        let mut rng = fastrand::Rng::with_seed(seed);
        for _ in 0..200 {
            let (mut bitmap, mut validity) = (Bitmap::default(), Bitmap::default());
            let (before, first, slots) = (rng.usize(0..70), rng.usize(0..70), rng.usize(0..200));
            (0..before).for_each(|_| bitmap.append_run(rng.bool(), 1));
            (0..first).for_each(|_| validity.append_run(rng.bool(), 1));
            let mut expected = bits(&bitmap);
            for _ in 0..slots {
                let valid = rng.bool();
                validity.append_run(valid, 1);
                let bit = valid && rng.bool();
                if valid {
                    bitmap.append_run(bit, 1);
                }
                expected.push(bit);
            }
            bitmap.spread(before, &validity, first, slots);
            assert_eq!(bits(&bitmap), expected, "seed {seed}");
        }
    }

    #[test]
    fn aligned_bytes_are_the_same_bits() {
        let seed = 63;
        let mut rng = fastrand::Rng::with_seed(seed);
        let bytes: Vec<u8> = (0..40).map(|_| rng.u8(..)).collect();
        for offset in 0..40 {
            for n in 0..=200 {
                let mut expected = Bitmap::default();
                expected.append_bits(&bytes, offset, n);
                let mut out = vec![7];
                append_aligned(&bytes, offset, n, &mut out);
                assert_eq!(out.len(), 1 + n.div_ceil(8));
                let mut got = Bitmap::default();
                got.append_bits(&out[1..], 0, 8 * (out.len() - 1));
                assert_eq!(got.count_ones(n..got.len()), 0, "the padding is zeros");
                got.truncate(n);
                assert_eq!(got, expected, "offset {offset} n {n} seed {seed}");
            }
        }
    }
}
