//! Looks indices up in a table: the dictionary step.
//!
//! Packed indices are cut out of their bytes and looked up in one go. With AVX-512 small tables lie
//! in registers, where a look-up is a permutation.

use super::native::PlainOldData;
use super::unpack::unpack_u32_with;
use super::{Isa, Level};

/// Appends `table[i]` for every index; false, and nothing appended, if one is out of range.
///
/// The bounds are checked once, by the highest index, so that the loop has no branch.
#[must_use]
pub(crate) fn gather<T: Copy>(indices: &[u32], table: &[T], out: &mut Vec<T>) -> bool {
    let Some(highest) = indices.iter().copied().max() else {
        return true;
    };
    if highest as usize >= table.len() {
        return false;
    }
    out.reserve(indices.len());
    let free_lists = out.spare_capacity_mut();
    for (slot, &index) in free_lists.iter_mut().zip(indices) {
        // SAFETY: `index <= highest < table.len()`.
        slot.write(unsafe { *table.get_unchecked(index as usize) });
    }
    // SAFETY: `reserve` made room for `indices.len()` values, and the loop has written that many
    // after the length.
    unsafe { out.set_len(out.len() + indices.len()) };
    true
}

/// As [`gather`], of `n` indices of `width` bits, the first at bit 0 of `bytes`. Bytes that are not
/// there read as 0. Entries are looked up as bits, so that they have no padding.
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
    gather_packed_with(Isa::best(), bytes, width, n, table, scratch, out)
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
    {
        // SAFETY: an `Isa` of this level exists only where the features were found.
        return unsafe { x86::gather_packed(bytes, width, n, table, out) };
    }
    scratch.clear();
    unpack_u32_with(isa, bytes, width, n, scratch);
    gather(scratch, table, out)
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{
        __m512i, _mm512_castsi512_si256, _mm512_cvtepu32_epi64, _mm512_extracti64x4_epi64,
        _mm512_loadu_si512, _mm512_mask_blend_epi32, _mm512_maskz_loadu_epi32,
        _mm512_maskz_mov_epi32, _mm512_max_epu32, _mm512_min_epu32, _mm512_permutex2var_epi32,
        _mm512_permutex2var_epi64, _mm512_reduce_max_epu32, _mm512_set1_epi32,
        _mm512_setzero_si512, _mm512_storeu_si512, _mm512_test_epi32_mask,
    };

    use crate::simd::native::PlainOldData;
    use crate::simd::unpack::avx512::Cut;

    /// Indices of a vector.
    const LANES: usize = 16;

    /// Appends the entries of packed indices; false, and nothing appended, if one is out of range.
    ///
    /// # Safety
    /// The machine must have AVX-512 F, BW, VL and VBMI.
    ///
    /// # Panics
    /// If the table is empty, or `width` is not one that a lane holds.
    #[target_feature(enable = "avx2,bmi2,avx512f,avx512bw,avx512vl,avx512vbmi")]
    pub(super) unsafe fn gather_packed<T: PlainOldData>(
        bytes: &[u8],
        width: u32,
        n: usize,
        table: &[T],
        out: &mut Vec<T>,
    ) -> bool {
        let packed = PackedIndices { bytes, cut: Cut::into_32(width), n, entries: table.len() };
        out.reserve(n.checked_next_multiple_of(LANES).expect("more than all memory"));
        let to = out.spare_capacity_mut().as_mut_ptr().cast::<T>();
        // SAFETY: `reserve` made room for all vectors of indices, and the table has as many entries
        // as `packed` says.
        let in_range = unsafe {
            match (size_of::<T>(), table.len()) {
                (4, ..=32) => packed.permute_32::<1>(table.as_ptr().cast(), to.cast()),
                (4, ..=64) => packed.permute_32::<2>(table.as_ptr().cast(), to.cast()),
                (4, ..=128) => packed.permute_32::<4>(table.as_ptr().cast(), to.cast()),
                (8, ..=16) => packed.permute_64(table.as_ptr().cast(), to.cast()),
                _ => packed.load(table, to),
            }
        };
        if in_range {
            // SAFETY: every one of the `n` slots after the old length is written, and was
            // reserved.
            unsafe { out.set_len(out.len() + n) };
        }
        in_range
    }

    /// Indices that are looked up in a table of so many entries.
    struct PackedIndices<'a> {
        bytes: &'a [u8],
        cut: Cut,
        n: usize,
        entries: usize,
    }

    impl PackedIndices<'_> {
        /// Hands vectors of indices on, none of them beyond the table; whether none was to begin
        /// with.
        #[inline]
        #[target_feature(enable = "avx2,bmi2,avx512f,avx512bw,avx512vl,avx512vbmi")]
        fn each(&self, mut look_up: impl FnMut(usize, __m512i)) -> bool {
            // An index has 32 bits: none is beyond more entries.
            let last = u32::try_from(self.entries - 1).unwrap_or(u32::MAX);
            let last = _mm512_set1_epi32(last.cast_signed());
            let mut highest = _mm512_setzero_si512();
            let mut rest = self.bytes;
            for at in (0..self.n).step_by(LANES) {
                let mut indices = self.cut.sixteen(rest);
                // Bytes that are not there are 0.
                rest = rest.get(self.cut.step..).unwrap_or_default();
                if self.n - at < LANES {
                    // What is after the last index is none.
                    indices = _mm512_maskz_mov_epi32((1 << (self.n - at)) - 1, indices);
                }
                highest = _mm512_max_epu32(highest, indices);
                look_up(at, _mm512_min_epu32(indices, last));
            }
            (_mm512_reduce_max_epu32(highest) as usize) < self.entries
        }

        /// Looks up in memory.
        ///
        /// # Safety
        /// There must be room for all indices, rounded up to whole vectors, and `table` must have
        /// the entries.
        #[target_feature(enable = "avx2,bmi2,avx512f,avx512bw,avx512vl,avx512vbmi")]
        unsafe fn load<T: PlainOldData>(&self, table: &[T], to: *mut T) -> bool {
            self.each(|at, indices| {
                let mut lanes = [0u32; LANES];
                // SAFETY: 16 indices of 4 bytes.
                unsafe { _mm512_storeu_si512(lanes.as_mut_ptr().cast(), indices) };
                for (lane, index) in lanes.into_iter().enumerate() {
                    // SAFETY: no index is beyond the table.
                    let entry = unsafe { *table.get_unchecked(index as usize) };
                    // SAFETY: the caller vouches for the room.
                    unsafe { to.add(at + lane).write(entry) };
                }
            })
        }

        /// Looks up in `PAIRS` pairs of registers, of 32 entries each.
        ///
        /// # Safety
        /// As [`PackedIndices::load`]; no more than 32 entries a pair.
        #[target_feature(enable = "avx2,bmi2,avx512f,avx512bw,avx512vl,avx512vbmi")]
        unsafe fn permute_32<const PAIRS: usize>(&self, table: *const i32, to: *mut i32) -> bool {
            let mut pairs = [[_mm512_setzero_si512(); 2]; PAIRS];
            for (i, part) in pairs.as_flattened_mut().iter_mut().enumerate() {
                let there = self.entries.saturating_sub(i * LANES).min(LANES);
                let mask = if there == 0 { 0 } else { u16::MAX >> (LANES - there) };
                let from = table.wrapping_add(i * LANES);
                // SAFETY: the mask lets no entry be read that is not there.
                *part = unsafe { _mm512_maskz_loadu_epi32(mask, from) };
            }
            let (second, third) = (_mm512_set1_epi32(32), _mm512_set1_epi32(64));
            self.each(|at, indices| {
                let look = |pair: usize| {
                    let [low, high] = pairs[pair];
                    _mm512_permutex2var_epi32(low, indices, high)
                };
                let two = |pair: usize| {
                    let odd = _mm512_test_epi32_mask(indices, second);
                    _mm512_mask_blend_epi32(odd, look(pair), look(pair + 1))
                };
                let found = match PAIRS {
                    1 => look(0),
                    2 => two(0),
                    _ => {
                        let high = _mm512_test_epi32_mask(indices, third);
                        _mm512_mask_blend_epi32(high, two(0), two(2))
                    }
                };
                // SAFETY: the caller vouches for the room.
                unsafe { _mm512_storeu_si512(to.add(at).cast(), found) };
            })
        }

        /// Looks up in a pair of registers, of 16 entries.
        ///
        /// # Safety
        /// As [`PackedIndices::load`]; no more than 16 entries.
        #[target_feature(enable = "avx2,bmi2,avx512f,avx512bw,avx512vl,avx512vbmi")]
        unsafe fn permute_64(&self, table: *const i64, to: *mut i64) -> bool {
            let mut pair = [0i64; 16];
            let (from, copy) = (table.cast::<u8>(), pair.as_mut_ptr().cast::<u8>());
            // SAFETY: the caller vouches for so many entries, at most 16, of 8 bytes; as bytes, for
            // they need not be aligned as words are.
            unsafe { std::ptr::copy_nonoverlapping(from, copy, size_of::<i64>() * self.entries) };
            // SAFETY: a half has 8 entries of 8 bytes.
            let [low, high] =
                [0, 8].map(|at| unsafe { _mm512_loadu_si512(pair.as_ptr().add(at).cast()) });
            self.each(|at, indices| {
                let halves =
                    [_mm512_castsi512_si256(indices), _mm512_extracti64x4_epi64::<1>(indices)];
                for (half, indices) in halves.into_iter().enumerate() {
                    let indices = _mm512_cvtepu32_epi64(indices);
                    let found = _mm512_permutex2var_epi64(low, indices, high);
                    // SAFETY: the caller vouches for the room.
                    unsafe { _mm512_storeu_si512(to.add(at + 8 * half).cast(), found) };
                }
            })
        }
    }
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
