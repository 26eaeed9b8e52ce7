//! Combines [`BooleanBuffer`]s whose bits stand for the set bits of another: [`within`] and
//! [`repeated`].

use arrow_buffer::{BooleanBuffer, Buffer};

use crate::simd::bitmap::deposit;
use crate::simd::{Isa, Kernel};

/// The set bits of `outer` that `inner`, which has a bit for each of them, sets too.
pub(crate) fn within(outer: &BooleanBuffer, inner: &BooleanBuffer) -> BooleanBuffer {
    words(outer, inner, |_, results| results)
}

/// Repeats each bit of `results` from its set bit of `first` up to the next one. Bits before the
/// first set bit are not set.
#[cfg_attr(not(feature = "engine"), allow(dead_code))]
pub fn repeated(results: &BooleanBuffer, first: &BooleanBuffer) -> BooleanBuffer {
    let mut carry = false;
    words(first, results, |first, results| {
        // A bit is set where a result is, or where the bit before it is and no place: that is how
        // an addition carries.
        let (sum, over) = (results | !first).overflowing_add(results);
        let (sum, over_again) = sum.overflowing_add(u64::from(carry));
        let carried_in = sum ^ !first;
        carry = over || over_again;
        carried_in >> 1 | u64::from(carry) << 63
    })
}

/// Applies `make` to the words of `outer` and the bits of `inner`, which are moved to the set bits
/// of `outer`.
fn words(
    outer: &BooleanBuffer,
    inner: &BooleanBuffer,
    mut make: impl FnMut(u64, u64) -> u64,
) -> BooleanBuffer {
    let isa = Isa::for_kernel(Kernel::Bits);
    let mut out = Vec::with_capacity(outer.len().div_ceil(64) + 1);
    let mut inner = Bits { words: inner.bit_chunks().iter_padded(), word: 0, left: 0 };
    for mask in outer.bit_chunks().iter_padded() {
        let bits = inner.next(mask.count_ones());
        out.push(make(mask, deposit(isa, bits, mask)));
    }
    BooleanBuffer::new(Buffer::from_vec(out), 0, outer.len())
}

/// The bits of words, taken a few at a time.
struct Bits<I> {
    words: I,
    /// The remaining bits of a word, the next one lowest.
    word: u64,
    left: u32,
}

impl<I: Iterator<Item = u64>> Bits<I> {
    /// The next `n` bits, at most 64; zeros after the last.
    fn next(&mut self, n: u32) -> u64 {
        let (mut bits, had) = (self.word, self.left);
        if n <= had {
            self.word = self.word.checked_shr(n).unwrap_or(0);
            self.left = had - n;
        } else {
            let word = self.words.next().unwrap_or(0);
            bits |= word << had;
            self.word = word.checked_shr(n - had).unwrap_or(0);
            self.left = 64 - (n - had);
        }
        bits & u64::MAX.checked_shr(64 - n).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_for_some_rows_are_put_in_their_places_and_repeated_up_to_the_next() {
        let seed = 5;
        let mut rng = fastrand::Rng::with_seed(seed);
        for case in 0..300 {
            let (len, density) = (rng.usize(0..400), rng.u8(0..=8));
            let bits = |rng: &mut fastrand::Rng, len, density| {
                BooleanBuffer::collect_bool(len, |_| rng.u8(0..8) < density)
            };
            let start = rng.usize(0..70);
            let outer = bits(&mut rng, start + len, density).slice(start, len);
            let (start, left) = (rng.usize(0..70), outer.count_set_bits());
            let density = rng.u8(0..=8);
            let inner = bits(&mut rng, start + left, density).slice(start, left);
            let expected: Vec<usize> =
                outer.set_indices().zip(&inner).filter(|(_, is)| *is).map(|(at, _)| at).collect();
            let found = within(&outer, &inner);
            assert_eq!(found.len(), len);
            assert_eq!(found.set_indices().collect::<Vec<_>>(), expected, "seed {seed}, {case}");
            let mut of_rows = outer.iter().zip(&found);
            let mut last = false;
            let repeats = BooleanBuffer::collect_bool(len, |_| {
                let (is_first, result) = of_rows.next().unwrap();
                last = if is_first { result } else { last };
                last
            });
            assert_eq!(repeated(&inner, &outer), repeats, "seed {seed}, {case}");
        }
    }

    #[test]
    fn words_without_rows_stand_before_those_of_all_rows() {
        let outer = BooleanBuffer::collect_bool(192, |i| i >= 64);
        let inner = BooleanBuffer::collect_bool(128, |i| i % 3 == 0);
        let expected: Vec<usize> = (64..192).filter(|i| (i - 64) % 3 == 0).collect();
        assert_eq!(within(&outer, &inner).set_indices().collect::<Vec<_>>(), expected);
    }
}
