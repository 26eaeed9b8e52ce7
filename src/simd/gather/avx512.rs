//! AVX-512: indices are looked up while they are unpacked; small tables lie in registers, where a
//! look-up is a permutation.

use std::arch::x86_64::{
    __m512i, _mm512_castsi512_si256, _mm512_cvtepu32_epi64, _mm512_extracti64x4_epi64,
    _mm512_loadu_si512, _mm512_mask_blend_epi32, _mm512_maskz_loadu_epi32, _mm512_maskz_mov_epi32,
    _mm512_max_epu32, _mm512_min_epu32, _mm512_permutex2var_epi32, _mm512_permutex2var_epi64,
    _mm512_reduce_max_epu32, _mm512_set1_epi32, _mm512_setzero_si512, _mm512_storeu_si512,
    _mm512_test_epi32_mask,
};

use crate::simd::native::PlainOldData;
use crate::simd::unpack::avx512::Cut;

/// Indices of a vector.
const LANES: usize = 16;

/// Whether a table of `entries` entries is looked up faster than by AVX2: in registers, or in
/// memory if its entries are not words.
pub(super) const fn fits<T>(entries: usize) -> bool {
    match size_of::<T>() {
        4 => entries <= 128,
        8 => entries <= 16,
        _ => true,
    }
}

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
    // SAFETY: `reserve` reserved memory for all vectors of indices, and the table has as many
    // entries as `packed` says.
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

/// Packed indices that are looked up in a table of `entries` entries.
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
                // Lanes after the last index become 0.
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
                // SAFETY: the caller guarantees the capacity.
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
            // SAFETY: the caller guarantees the capacity.
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
        // SAFETY: the caller guarantees `entries` entries, at most 16, of 8 bytes; they are copied
        // as bytes, because they need not be aligned as words are.
        unsafe { std::ptr::copy_nonoverlapping(from, copy, size_of::<i64>() * self.entries) };
        // SAFETY: a half has 8 entries of 8 bytes.
        let [low, high] =
            [0, 8].map(|at| unsafe { _mm512_loadu_si512(pair.as_ptr().add(at).cast()) });
        self.each(|at, indices| {
            let halves = [_mm512_castsi512_si256(indices), _mm512_extracti64x4_epi64::<1>(indices)];
            for (half, indices) in halves.into_iter().enumerate() {
                let indices = _mm512_cvtepu32_epi64(indices);
                let found = _mm512_permutex2var_epi64(low, indices, high);
                // SAFETY: the caller guarantees the capacity.
                unsafe { _mm512_storeu_si512(to.add(at + 8 * half).cast(), found) };
            }
        })
    }
}
