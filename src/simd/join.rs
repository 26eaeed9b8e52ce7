//! Joins values that share prefixes with the previous value, as DELTA_BYTE_ARRAY stores them.

#[cfg(target_arch = "x86_64")]
use super::Level;
use super::{Isa, Kernel};

/// Values, each a prefix of the previous value and a rest.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rests<'a> {
    /// Bytes that each shares with the one before.
    pub prefixes: &'a [i32],
    /// Bytes of each rest.
    pub suffixes: &'a [i32],
    /// The bytes of the rests, end to end from `start`.
    pub source: &'a [u8],
    /// Where the first begins.
    pub start: usize,
}

/// Appends values that each share a prefix with the previous one, end to end; the first shares its
/// prefix with `before`.
///
/// `longest` is at least the length of the longest value, `total` the number of bytes of all
/// values.
///
/// The previous value is kept in a register and not read back from where it was just written, which
/// would wait for the stores: a value consists of its shared bytes, followed by the bytes of the
/// source that begin that many bytes before the rest.
///
/// # Panics
/// If `out` is not empty, a prefix is longer than the previous value, a rest reaches beyond the
/// source, or `total` is not the sum of the lengths.
pub(crate) fn join(before: &[u8], rests: Rests<'_>, longest: u32, total: usize, out: &mut Vec<u8>) {
    join_with(Isa::for_kernel(Kernel::Join), before, rests, longest, total, out);
}

fn join_with(
    isa: Isa,
    before: &[u8],
    rests: Rests<'_>,
    longest: u32,
    total: usize,
    out: &mut Vec<u8>,
) {
    assert!(out.is_empty(), "a buffer of its own");
    assert!(rests.start <= rests.source.len(), "rests lie within their source");
    match (isa.level(), longest) {
        // SAFETY: words are what every machine has; so for the last three.
        (_, ..=16) => unsafe { joined::<16, [u64; 2]>(before, rests, total, out) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: these exist only where `Isa::best` has found the features.
        (Level::Avx2 | Level::Avx512, ..=32) => unsafe {
            x86::joined_32(before, rests, total, out)
        },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        (Level::Avx2 | Level::Avx512, ..=64) => unsafe {
            x86::joined_64(before, rests, total, out)
        },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        (Level::Avx2 | Level::Avx512, _) => unsafe { x86::joined_128(before, rests, total, out) },
        // SAFETY: as the first.
        (_, ..=32) => unsafe { joined::<32, [u64; 4]>(before, rests, total, out) },
        // SAFETY: as the first.
        (_, ..=64) => unsafe { joined::<64, [u64; 8]>(before, rests, total, out) },
        // SAFETY: as the first.
        _ => unsafe { joined::<128, [u64; 16]>(before, rests, total, out) },
    }
}

/// The first `N` bytes of a value, in registers.
trait Register<const N: usize>: Copy {
    /// Loads bytes.
    ///
    /// # Safety
    /// The machine must have what the type is made of; so for all that follow.
    unsafe fn load(bytes: &[u8; N]) -> Self;

    /// Keeps the first `prefix` bytes, at most all, and takes the others from `window`.
    unsafe fn keep(self, prefix: usize, window: &[u8; N]) -> Self;

    /// Writes all `N` bytes.
    ///
    /// # Safety
    /// They must be writable.
    unsafe fn write(self, to: *mut u8);
}

/// As many bytes that are kept as a register has, and as many that are not: a mask begins as many
/// before the second half as bytes are kept.
static MASKS: [u8; 2 * WIDEST] = {
    let mut masks = [0; 2 * WIDEST];
    let mut i = 0;
    while i < WIDEST {
        masks[i] = u8::MAX;
        i += 1;
    }
    masks
};

/// Bytes of the widest register.
const WIDEST: usize = 128;

/// The scalar definition.
impl<const N: usize, const W: usize> Register<N> for [u64; W] {
    #[inline(always)]
    unsafe fn load(bytes: &[u8; N]) -> Self {
        let (words, _) = bytes.as_chunks();
        std::array::from_fn(|i| u64::from_le_bytes(words[i]))
    }

    #[inline(always)]
    unsafe fn keep(self, prefix: usize, window: &[u8; N]) -> Self {
        let (masks, _) = MASKS[WIDEST - prefix..][..N].as_chunks();
        let (others, _) = window.as_chunks();
        std::array::from_fn(|i| {
            let mask = u64::from_le_bytes(masks[i]);
            self[i] & mask | u64::from_le_bytes(others[i]) & !mask
        })
    }

    #[inline(always)]
    unsafe fn write(self, to: *mut u8) {
        // SAFETY: the caller guarantees `N` bytes, which is as many as `W` words have.
        unsafe { to.cast::<[[u8; 8]; W]>().write_unaligned(self.map(u64::to_le_bytes)) };
    }
}

/// The first `N` bytes of a value, with zeros after its end.
fn padded<const N: usize>(value: &[u8]) -> [u8; N] {
    let mut padded = [0; N];
    let n = value.len().min(N);
    padded[..n].copy_from_slice(&value[..n]);
    padded
}

/// Joins values with the first `N` bytes of the last one in a register; longer ones are copied from
/// where they were written.
///
/// # Safety
/// The machine must have the instructions of `H`.
#[inline(always)]
unsafe fn joined<const N: usize, H: Register<N>>(
    before: &[u8],
    rests: Rests<'_>,
    total: usize,
    out: &mut Vec<u8>,
) {
    let Rests { prefixes, suffixes, source, mut start } = rests;
    // The value before the first lies in front, so that every prefix can be copied from `out`
    // itself.
    let end = before.len().saturating_add(total);
    out.reserve(end.saturating_add(N));
    out.extend_from_slice(before);
    let target = out.as_mut_ptr();
    // SAFETY: the caller guarantees the instructions.
    let mut last = unsafe { H::load(&padded(before)) };
    let (mut previous, mut to) = (before.len(), before.len());
    for (prefix, suffix) in prefixes.iter().zip(suffixes) {
        let (prefix, len) = (prefix.cast_unsigned() as usize, suffix.cast_unsigned() as usize);
        let whole = prefix + len;
        // One branch for all of it.
        let counted = (prefix <= previous) & (whole <= end - to) & (len <= source.len() - start);
        assert!(counted, "values that were counted");
        let window = source.get(start.wrapping_sub(prefix)..).and_then(<[u8]>::first_chunk::<N>);
        match window {
            Some(window) if whole <= N => {
                // SAFETY: the caller guarantees the instructions, and `prefix <= whole <= N`.
                last = unsafe { last.keep(prefix, window) };
                // SAFETY: `to <= end`, and `N` bytes more are reserved; bytes that are written
                // after `whole` are overwritten or never counted.
                unsafe { last.write(target.add(to)) };
            }
            _ => {
                // SAFETY: the value before lies in the `previous >= prefix` bytes that end at `to`,
                // all written; `to + prefix <= end`, which is reserved. The two meet at most at
                // `to`.
                unsafe {
                    std::ptr::copy_nonoverlapping(
                        target.add(to - previous),
                        target.add(to),
                        prefix,
                    );
                }
                // SAFETY: `start + len <= source.len()` and `to + prefix + len <= end`, both
                // asserted; `out` is borrowed mutably.
                unsafe {
                    let rest = source.as_ptr().add(start);
                    std::ptr::copy_nonoverlapping(rest, target.add(to + prefix), len);
                }
                // SAFETY: the `whole` bytes from `to` were just written.
                let written = unsafe { std::slice::from_raw_parts(target.add(to), whole) };
                // SAFETY: the caller guarantees the instructions.
                last = unsafe { H::load(&padded(written)) };
            }
        }
        previous = whole;
        to += whole;
        start += len;
    }
    // SAFETY: every byte up to `to` is written, and `to <= end`, which is reserved.
    unsafe { out.set_len(to) };
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{
        __m256i, _mm256_blendv_epi8, _mm256_loadu_si256, _mm256_setzero_si256, _mm256_storeu_si256,
    };

    use super::{MASKS, Register, Rests, WIDEST};

    macro_rules! joined {
        ($($name:ident($n:literal, $register:ty, $features:literal);)*) => {
            $(
                /// Joins values of at most this many bytes in a register.
                ///
                /// # Safety
                /// The machine must have the features.
                #[target_feature(enable = $features)]
                pub(super) unsafe fn $name(
                    before: &[u8],
                    rests: Rests<'_>,
                    total: usize,
                    out: &mut Vec<u8>,
                ) {
                    // SAFETY: the machine has the features.
                    unsafe { super::joined::<$n, $register>(before, rests, total, out) };
                }
            )*
        };
    }
    joined! {
        joined_32(32, [__m256i; 1], "avx2");
        joined_64(64, [__m256i; 2], "avx2");
        joined_128(128, [__m256i; 4], "avx2");
    }

    // Loops, not closures: those are functions of their own without AVX2, and `from_fn` kept them
    // apart in builds without LTO, which made all of it 8 times as slow as the definition.
    impl<const N: usize, const V: usize> Register<N> for [__m256i; V] {
        #[inline(always)]
        unsafe fn load(bytes: &[u8; N]) -> Self {
            // SAFETY: the caller guarantees the instructions.
            let mut register = [unsafe { _mm256_setzero_si256() }; V];
            for (part, bytes) in register.iter_mut().zip(bytes.as_chunks::<32>().0) {
                // SAFETY: 32 bytes are there; the caller guarantees the instructions.
                *part = unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) };
            }
            register
        }

        #[inline(always)]
        unsafe fn keep(mut self, prefix: usize, window: &[u8; N]) -> Self {
            let (masks, _) = MASKS[WIDEST - prefix..][..N].as_chunks::<32>();
            for ((part, mask), others) in self.iter_mut().zip(masks).zip(window.as_chunks().0) {
                let others: &[u8; 32] = others;
                // SAFETY: 32 bytes are there of both; the caller guarantees the instructions.
                *part = unsafe {
                    let mask = _mm256_loadu_si256(mask.as_ptr().cast());
                    let others = _mm256_loadu_si256(others.as_ptr().cast());
                    _mm256_blendv_epi8(others, *part, mask)
                };
            }
            self
        }

        #[inline(always)]
        unsafe fn write(self, to: *mut u8) {
            for (i, vector) in self.into_iter().enumerate() {
                // SAFETY: the caller guarantees `N` bytes, which is as many as `V` vectors have,
                // and the machine.
                unsafe { _mm256_storeu_si256(to.add(32 * i).cast(), vector) };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joined_values_are_those_of_the_naive_twin() {
        let seed = 12;
        let mut rng = fastrand::Rng::with_seed(seed);
        for _ in 0..600 {
            let longest = *rng.choice(&[3, 9, 20, 50, 70, 120, 200]).unwrap();
            let before: Vec<u8> = (0..rng.usize(0..longest)).map(|_| rng.u8(..)).collect();
            let mut source = vec![7; rng.usize(0..3)];
            let start = source.len();
            let (mut prefixes, mut suffixes) = (Vec::new(), Vec::new());
            let mut expected = vec![before.clone()];
            for _ in 0..rng.usize(0..40) {
                let previous = expected.last().unwrap();
                let prefix = rng.usize(0..=previous.len().min(longest));
                let suffix: Vec<u8> = (0..rng.usize(0..longest)).map(|_| rng.u8(..)).collect();
                prefixes.push(prefix as i32);
                suffixes.push(suffix.len() as i32);
                source.extend(&suffix);
                expected.push([&previous[..prefix], &suffix[..]].concat());
            }
            let total = expected[1..].iter().map(Vec::len).sum();
            let max = expected[1..].iter().map(Vec::len).max().unwrap_or(0) as u32;
            let rests = Rests { prefixes: &prefixes, suffixes: &suffixes, source: &source, start };
            for isa in Isa::available() {
                let mut out = Vec::new();
                join_with(isa, &before, rests, max, total, &mut out);
                assert_eq!(out, expected.concat(), "{isa:?} seed {seed}");
            }
        }
    }
}
