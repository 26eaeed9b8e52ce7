//! Sums the lengths of byte strings: each block of them is checked before a value is made.

use super::{Isa, Kernel, Level};

/// The sum and the maximum of a block of lengths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Measure {
    /// Bytes of all values.
    pub total: u64,
    /// Bytes of the longest value; of none, 0. A negative length is more than `i32::MAX`.
    pub longest: u32,
}

/// Adds up lengths, as if they had no sign.
pub(crate) fn measure(lengths: &[i32]) -> Measure {
    measure_with(Isa::for_kernel(Kernel::Lengths), lengths)
}

fn measure_with(isa: Isa, lengths: &[i32]) -> Measure {
    match isa.level() {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: these exist only where `Isa::best` has found AVX2.
        Level::Avx2 | Level::Avx512 => unsafe { x86::measured(lengths) },
        Level::Scalar => measured(lengths),
    }
}

/// The scalar definition.
#[inline(always)]
fn measured(lengths: &[i32]) -> Measure {
    let total = lengths.iter().map(|len| u64::from(len.cast_unsigned())).sum();
    // Machines without AVX have no greatest of unsigned numbers: those with a sign are looked for
    // apart.
    let (longest, signs) =
        lengths.iter().fold((0, 0), |(longest, signs), len| ((*len).max(longest), signs | *len));
    let unsigned = lengths.iter().map(|len| len.cast_unsigned());
    let longest = match signs {
        0.. => longest.cast_unsigned(),
        _ => unsigned.max().unwrap_or_default(),
    };
    Measure { total, longest }
}

/// Sum of lengths; `None` if one is negative.
pub(crate) fn sum(lengths: &[i32]) -> Option<u64> {
    sum_with(Isa::for_kernel(Kernel::Lengths), lengths)
}

fn sum_with(isa: Isa, lengths: &[i32]) -> Option<u64> {
    match isa.level() {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: these exist only where `Isa::best` has found AVX2.
        Level::Avx2 | Level::Avx512 => unsafe { x86::summed(lengths) },
        Level::Scalar => summed(lengths),
    }
}

/// The scalar definition, in words of 32 bits where that is enough.
#[inline(always)]
fn summed(lengths: &[i32]) -> Option<u64> {
    let add = |(sum, bits): (u32, u32), len: &i32| {
        (sum.wrapping_add(len.cast_unsigned()), bits | len.cast_unsigned())
    };
    let (sum, bits) = lengths.iter().fold((0, 0), add);
    if bits > MAX_LENGTH {
        return None;
    }
    // No length is over `bits`.
    let most = u64::from(bits).saturating_mul(lengths.len() as u64);
    Some(match u32::try_from(most) {
        Ok(_) => sum.into(),
        Err(_) => lengths.iter().map(|len| u64::from(len.cast_unsigned())).sum(),
    })
}

/// Maximum length, because a larger one is negative as `i32`.
const MAX_LENGTH: u32 = i32::MAX.cast_unsigned();

/// Sum of lengths, as if they had no sign.
pub(crate) fn total(lengths: &[i32]) -> u64 {
    match Isa::for_kernel(Kernel::Lengths).level() {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: these exist only where `Isa::best` has found AVX2.
        Level::Avx2 | Level::Avx512 => unsafe { x86::measured(lengths).total },
        Level::Scalar => lengths.iter().map(|len| u64::from(len.cast_unsigned())).sum(),
    }
}

/// The measurements of lengths of prefixes and suffixes together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Whole {
    /// Bytes of the longest value, where nothing overflows.
    pub longest: u32,
    /// Whether a prefix is longer than the value before it.
    pub bad_prefix: bool,
}

/// Writes the length of each value, which is a prefix of the one before and a suffix, in place of
/// what `lengths` holds. `before` is the length of the value before the first. What overflows
/// wraps.
///
/// # Panics
/// If there are not as many suffixes as prefixes.
pub(crate) fn add(
    before: usize,
    prefixes: &[i32],
    suffixes: &[i32],
    lengths: &mut Vec<i32>,
) -> Whole {
    add_with(Isa::for_kernel(Kernel::Lengths), before, prefixes, suffixes, lengths)
}

fn add_with(
    isa: Isa,
    before: usize,
    prefixes: &[i32],
    suffixes: &[i32],
    lengths: &mut Vec<i32>,
) -> Whole {
    assert_eq!(prefixes.len(), suffixes.len(), "each value has both");
    match isa.level() {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: these exist only where `Isa::best` has found AVX2.
        Level::Avx2 | Level::Avx512 => unsafe { x86::added(before, prefixes, suffixes, lengths) },
        Level::Scalar => added(before, prefixes, suffixes, lengths),
    }
}

/// The scalar definition.
#[inline(always)]
fn added(before: usize, prefixes: &[i32], suffixes: &[i32], lengths: &mut Vec<i32>) -> Whole {
    lengths.clear();
    lengths.extend(prefixes.iter().zip(suffixes).map(|(a, b)| a.wrapping_add(*b)));
    // Without values, there is neither.
    let (first, others) = match prefixes {
        [first, others @ ..] => (first.cast_unsigned() as usize, others),
        [] => (0, prefixes),
    };
    let bad = others
        .iter()
        .zip(&*lengths)
        .fold(false, |bad, (prefix, last)| bad | (prefix.cast_unsigned() > last.cast_unsigned()));
    let longest = lengths.iter().fold(0, |longest, len| len.cast_unsigned().max(longest));
    Whole { longest, bad_prefix: first > before || bad }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{Measure, Whole};

    /// With AVX2: the definition, eight lengths at a time.
    #[target_feature(enable = "avx2")]
    pub(super) fn measured(lengths: &[i32]) -> Measure {
        super::measured(lengths)
    }

    /// With AVX2.
    #[target_feature(enable = "avx2")]
    pub(super) fn summed(lengths: &[i32]) -> Option<u64> {
        super::summed(lengths)
    }

    /// With AVX2.
    #[target_feature(enable = "avx2")]
    pub(super) fn added(
        before: usize,
        prefixes: &[i32],
        suffixes: &[i32],
        lengths: &mut Vec<i32>,
    ) -> Whole {
        super::added(before, prefixes, suffixes, lengths)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kernel_finds_what_the_naive_twin_finds() {
        let seed = 21;
        let mut rng = fastrand::Rng::with_seed(seed);
        for _ in 0..300 {
            let n = rng.usize(0..70);
            let least = if rng.bool() { 0 } else { i32::MIN };
            let lengths: Vec<i32> = (0..n).map(|_| rng.i32(least..)).collect();
            let others: Vec<i32> = (0..n).map(|_| rng.i32(0..40)).collect();
            let total = lengths.iter().map(|len| u64::from(*len as u32)).sum();
            let longest = lengths.iter().map(|len| *len as u32).max().unwrap_or(0);
            for isa in Isa::available() {
                let found = measure_with(isa, &lengths);
                assert_eq!(found, Measure { total, longest }, "{isa:?} seed {seed}");
                assert_eq!(super::total(&lengths), total, "seed {seed}");
                let negative = lengths.iter().any(|len| *len < 0);
                let sum = (!negative).then_some(total);
                assert_eq!(sum_with(isa, &lengths), sum, "{isa:?} seed {seed}");
                let few: Vec<i32> = lengths.iter().map(|len| len & 0xFFFF).collect();
                let sum = few.iter().map(|len| u64::from(*len as u32)).sum();
                assert_eq!(sum_with(isa, &few), Some(sum), "{isa:?} seed {seed}");
                let before = rng.usize(0..60);
                let prefixes: Vec<i32> =
                    if rng.bool() { others.clone() } else { vec![rng.i32(-1..5); n] };
                let (mut expected, mut previous, mut bad) = (Vec::new(), before, false);
                for (prefix, suffix) in prefixes.iter().zip(&others) {
                    bad |= *prefix as u32 as usize > previous;
                    expected.push(prefix.wrapping_add(*suffix));
                    previous = prefix.wrapping_add(*suffix) as u32 as usize;
                }
                let mut sums = vec![9];
                let whole = add_with(isa, before, &prefixes, &others, &mut sums);
                assert_eq!(sums, expected, "{isa:?} seed {seed}");
                assert_eq!(whole.bad_prefix, bad, "{isa:?} seed {seed}");
                let longest = expected.iter().map(|len| *len as u32).max().unwrap_or(0);
                assert_eq!(whole.longest, longest, "{isa:?} seed {seed}");
            }
        }
    }
}
