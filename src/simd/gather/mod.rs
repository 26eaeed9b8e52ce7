//! Looks indices up in a table, to decode dictionary-encoded values.
//!
//! Small tables lie in registers with AVX2 and AVX-512, where a look-up is a permutation.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;

#[cfg(target_arch = "x86_64")]
use super::Level;
use super::native::PlainOldData;
use super::unpack::unpack_u32_with;
use super::{Isa, Kernel};

/// Appends `table[i]` for every index; false, and nothing appended, if one is out of range.
///
/// The bounds are checked once, by the highest index, so that the loop has no branch.
#[must_use]
pub(crate) fn gather<T: Copy>(indices: &[u32], table: &[T], out: &mut Vec<T>) -> bool {
    // Not `max`: an option is in the way of vectors.
    let highest = indices.iter().fold(0, |highest, index| *index.max(&highest));
    if indices.is_empty() || highest as usize >= table.len() {
        return indices.is_empty();
    }
    out.reserve(indices.len());
    let slots = out.spare_capacity_mut();
    for (slot, &index) in slots.iter_mut().zip(indices) {
        // SAFETY: `index <= highest < table.len()`.
        slot.write(unsafe { *table.get_unchecked(index as usize) });
    }
    // SAFETY: `reserve` reserved memory for `indices.len()` values, and the loop has written that
    // many after the length.
    unsafe { out.set_len(out.len() + indices.len()) };
    true
}

/// Like [`gather`], for `n` indices of `width` bits, the first at bit 0 of `bytes`. Bytes that are
/// not there read as 0. Entries are looked up as bits, so that they have no padding.
///
/// # Panics
/// If `width` is over 32.
#[must_use]
pub(crate) fn gather_packed<T: PlainOldData>(
    bytes: &[u8],
    width: u32,
    n: usize,
    table: &[T],
    scratch: &mut Vec<u32>,
    out: &mut Vec<T>,
) -> bool {
    gather_packed_with(Isa::for_kernel(Kernel::Gather), bytes, width, n, table, scratch, out)
}

fn gather_packed_with<T: PlainOldData>(
    isa: Isa,
    bytes: &[u8],
    width: u32,
    n: usize,
    table: &[T],
    scratch: &mut Vec<u32>,
    out: &mut Vec<T>,
) -> bool {
    #[cfg(target_arch = "x86_64")]
    if isa.level() == Level::Avx512
        && (1..=super::unpack::avx512::WIDEST_32).contains(&width)
        && !table.is_empty()
        && avx512::fits::<T>(table.len())
    {
        // SAFETY: an `Isa` of this level exists only where the features were found.
        return unsafe { avx512::gather_packed(bytes, width, n, table, out) };
    }
    scratch.clear();
    unpack_u32_with(isa, bytes, width, n, scratch);
    #[cfg(target_arch = "x86_64")]
    if isa != Isa::SCALAR {
        // SAFETY: as above; AVX-512 comes with AVX2.
        return unsafe { avx2::gather(scratch, table, out) };
    }
    gather(scratch, table, out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::pack::pack_u32_with;

    #[test]
    fn looks_up_or_appends_nothing() {
        let mut out = vec![1u64];
        assert!(gather(&[2, 0, 1], &[10, 20, 30], &mut out));
        assert_eq!(out, [1, 30, 10, 20]);
        assert!(!gather(&[0, 3], &[10, 20, 30], &mut out));
        assert_eq!(out.len(), 4);
        assert!(gather(&[], &[], &mut out));
        assert!(!gather(&[0], &[], &mut out));
    }

    fn check<T: PlainOldData + PartialEq + std::fmt::Debug>(
        rng: &mut fastrand::Rng,
        entry: impl Fn(u32) -> T,
    ) {
        for entries in [1, 2, 7, 16, 17, 31, 32, 33, 64, 65, 100, 128, 129, 1000] {
            let table: Vec<T> = (0..entries).map(&entry).collect();
            let least = u32::BITS - (entries - 1).leading_zeros();
            for n in [0, 1, 7, 8, 9, 15, 16, 17, 40, 63, 504] {
                let width = rng.u32(least.max(1)..=32);
                let indices: Vec<u32> = (0..n).map(|_| rng.u32(0..entries)).collect();
                let mut bytes = Vec::new();
                pack_u32_with(Isa::SCALAR, &indices, width, &mut bytes);
                // Indices after the last one do not count, wherever they point.
                bytes.resize(bytes.len() + rng.usize(0..3), 0xFF);
                for isa in Isa::available() {
                    let (mut out, mut scratch) = (vec![entry(7)], Vec::new());
                    let packed = |bytes: &[u8], scratch: &mut _, out: &mut _| {
                        gather_packed_with(isa, bytes, width, n, &table, scratch, out)
                    };
                    assert!(packed(&bytes, &mut scratch, &mut out));
                    let expected: Vec<T> = indices.iter().map(|i| table[*i as usize]).collect();
                    assert_eq!(out[1..], expected, "{isa:?} width {width} n {n}");
                    if n > 0 && u64::from(entries) < 1 << width {
                        let mut wrong = indices.clone();
                        let at = rng.usize(0..n);
                        wrong[at] = if width == 32 { u32::MAX } else { (1 << width) - 1 };
                        let mut bytes = Vec::new();
                        pack_u32_with(Isa::SCALAR, &wrong, width, &mut bytes);
                        assert!(!packed(&bytes, &mut scratch, &mut out));
                        assert_eq!(out.len(), n + 1, "{isa:?} width {width} n {n}");
                    }
                }
            }
        }
    }

    #[test]
    fn packed_indices_are_looked_up_as_by_the_twin() {
        let seed = 15;
        let mut rng = fastrand::Rng::with_seed(seed);
        check(&mut rng, |i| i as u8);
        check(&mut rng, |i| i.wrapping_mul(0x9E37_79B9));
        check(&mut rng, |i| u64::from(i) << 33 | 5);
        // As wide as words, but not aligned like them.
        check(&mut rng, |i| i.to_le_bytes());
        check(&mut rng, |i| (u64::from(i) << 20 | 7).to_le_bytes());
        check(&mut rng, |i| u128::from(i) << 90 | 6);
    }
}
