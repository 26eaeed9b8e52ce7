//! AVX2: small tables lie in registers of 32 bytes each; the bits of an index above those within a
//! register select the register.

use std::arch::x86_64::{
    __m256i, _mm_loadu_si128, _mm256_add_epi32, _mm256_blendv_ps, _mm256_castps_si256,
    _mm256_castsi256_ps, _mm256_cvtepu32_epi64, _mm256_loadu_si256, _mm256_or_si256,
    _mm256_permutevar8x32_epi32, _mm256_set1_epi64x, _mm256_slli_epi32, _mm256_slli_epi64,
    _mm256_storeu_si256,
};

use crate::simd::native::PlainOldData;

/// Indices of a vector.
const LANES: usize = 8;

/// Appends the entries of indices; false, and nothing appended, if one is out of range.
///
/// # Safety
/// The machine must have AVX2.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn gather<T: PlainOldData>(
    indices: &[u32],
    table: &[T],
    out: &mut Vec<T>,
) -> bool {
    // As the definition's.
    let highest = indices.iter().fold(0, |highest, index| *index.max(&highest));
    if indices.is_empty() || highest as usize >= table.len() {
        return indices.is_empty();
    }
    let (vectors, _) = indices.as_chunks::<LANES>();
    out.reserve(indices.len());
    let start = out.len();
    let to = out.spare_capacity_mut().as_mut_ptr().cast::<T>();
    // SAFETY: `reserve` reserved memory for all indices, and none is beyond the table; a table with
    // this number of entries fits the registers.
    let done = unsafe {
        match (size_of::<T>(), table.len()) {
            (4, ..=8) => by_vectors(vectors, &registers::<T, 1>(table), to),
            (4, ..=16) => by_vectors(vectors, &registers::<T, 2>(table), to),
            (4, ..=32) => by_vectors(vectors, &registers::<T, 4>(table), to),
            (8, ..=4) => by_vectors(vectors, &registers::<T, 1>(table), to),
            (8, ..=8) => by_vectors(vectors, &registers::<T, 2>(table), to),
            _ => 0,
        }
    };
    for (i, index) in indices.iter().enumerate().skip(done) {
        // SAFETY: as above.
        unsafe { to.add(i).write(*table.get_unchecked(*index as usize)) };
    }
    // SAFETY: whole vectors and the rest are written after the old length, and were reserved.
    unsafe { out.set_len(start + indices.len()) };
    true
}

/// A table of at most `32 * N` bytes in registers; after its end, anything.
#[inline]
#[target_feature(enable = "avx2")]
fn registers<T: PlainOldData, const N: usize>(table: &[T]) -> [__m256i; N] {
    let mut padded = [[0u8; 32]; N];
    let n = size_of_val(table).min(32 * N);
    // SAFETY: no more bytes than the table has, and than the registers hold.
    unsafe {
        std::ptr::copy_nonoverlapping(table.as_ptr().cast::<u8>(), padded.as_mut_ptr().cast(), n);
    }
    // SAFETY: each is 32 bytes long.
    padded.map(|register| unsafe { _mm256_loadu_si256(register.as_ptr().cast()) })
}

/// Looks whole vectors up; returns how many indices those are.
///
/// # Safety
/// The machine must have AVX2; `to` must have capacity for all indices, and values have 4 or 8
/// bytes.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn by_vectors<T, const N: usize>(
    indices: &[[u32; LANES]],
    table: &[__m256i; N],
    to: *mut T,
) -> usize {
    for (i, vector) in indices.iter().enumerate() {
        let to = to.wrapping_add(LANES * i);
        if size_of::<T>() == 4 {
            // SAFETY: 8 indices of 4 bytes.
            let words = unsafe { _mm256_loadu_si256(vector.as_ptr().cast()) };
            // SAFETY: the caller guarantees the capacity.
            unsafe { _mm256_storeu_si256(to.cast(), look_up(table, words, words, 3)) };
            continue;
        }
        for half in 0..2 {
            // SAFETY: 4 indices of 4 bytes.
            let four = unsafe { _mm_loadu_si128(vector.as_ptr().add(4 * half).cast()) };
            let index = _mm256_cvtepu32_epi64(four);
            // Each is two words: twice the index, and the one after that.
            let both = _mm256_or_si256(index, _mm256_slli_epi64::<32>(index));
            let words = _mm256_add_epi32(both, both);
            let words = _mm256_or_si256(words, _mm256_set1_epi64x(1 << 32));
            let found = look_up(table, words, both, 2);
            // SAFETY: as above.
            unsafe { _mm256_storeu_si256(to.add(4 * half).cast(), found) };
        }
    }
    LANES * indices.len()
}

/// Looks words up in a table; the bits of `which` from `bit` on select the register.
#[inline]
#[target_feature(enable = "avx2")]
fn look_up<const N: usize>(
    table: &[__m256i; N],
    words: __m256i,
    which: __m256i,
    bit: u32,
) -> __m256i {
    // A blend looks at the highest bit.
    let sign = |above: u32| {
        _mm256_castsi256_ps(match bit + above {
            2 => _mm256_slli_epi32::<29>(which),
            3 => _mm256_slli_epi32::<28>(which),
            _ => _mm256_slli_epi32::<27>(which),
        })
    };
    let found =
        |register: usize| _mm256_castsi256_ps(_mm256_permutevar8x32_epi32(table[register], words));
    let pair = |register: usize| _mm256_blendv_ps(found(register), found(register + 1), sign(0));
    _mm256_castps_si256(match N {
        1 => found(0),
        2 => pair(0),
        _ => _mm256_blendv_ps(pair(0), pair(2), sign(1)),
    })
}
