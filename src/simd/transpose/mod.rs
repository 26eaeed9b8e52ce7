//! Transposes bytes: the streams of BYTE_STREAM_SPLIT to values, and back.
//!
//! 4 and 8 streams are interleaved 16 bytes at a time by instructions that every x86-64 and every
//! aarch64 has; other widths, and other machines, go through the scalar definition, by blocks that
//! stay in the cache.

use std::mem::MaybeUninit;

use super::Kernel;

#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
mod aarch64;
mod scalar;
#[cfg(target_arch = "x86_64")]
mod x86;

#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
use aarch64 as vectors;
#[cfg(target_arch = "x86_64")]
use x86 as vectors;

/// Writes values `first` to `first + out.len()` of `K` bytes from `K` streams of `len` bytes each,
/// laid end to end in `bytes`; every value of `out` is initialised then.
///
/// # Panics
/// If the streams are not whole, or the values not in them.
pub(crate) fn transpose<const K: usize>(
    bytes: &[u8],
    len: usize,
    first: usize,
    out: &mut [MaybeUninit<[u8; K]>],
) {
    let n = out.len();
    assert!(bytes.len() == len * K && first + n <= len, "values lie within the streams");
    interleave(std::array::from_fn(|k| &bytes[k * len + first..k * len + first + n]), out);
}

/// Writes values of a byte of each stream.
///
/// # Panics
/// If a stream has not as many bytes as `out` has values.
fn interleave<const K: usize>(streams: [&[u8]; K], out: &mut [MaybeUninit<[u8; K]>]) {
    let n = out.len();
    assert!(streams.iter().all(|stream| stream.len() == n), "streams of one length");
    let done = match K {
        _ if Kernel::Transpose.is_off() => 0,
        #[cfg(any(target_arch = "x86_64", all(target_arch = "aarch64", target_endian = "little")))]
        4 => {
            let whole = n / vectors::STEP * vectors::STEP;
            let streams = std::array::from_fn(|k| streams[k].as_ptr());
            // SAFETY: each stream has `n >= whole` bytes, and `out` has capacity for `n` values of
            // 4 bytes.
            unsafe { vectors::interleave_4(streams, whole, out.as_mut_ptr().cast()) };
            whole
        }
        #[cfg(any(target_arch = "x86_64", all(target_arch = "aarch64", target_endian = "little")))]
        8 => {
            let whole = n / vectors::STEP * vectors::STEP;
            let streams = std::array::from_fn(|k| streams[k].as_ptr());
            // SAFETY: each stream has `n >= whole` bytes, and `out` has capacity for `n` values of
            // 8 bytes.
            unsafe { vectors::interleave_8(streams, whole, out.as_mut_ptr().cast()) };
            whole
        }
        _ => 0,
    };
    scalar::transpose(&streams, done, &mut out[done..]);
}

/// Like [`transpose`] for a width that is known only at run time, as bytes.
///
/// # Panics
/// If the streams are not whole, or the values not in them.
pub(crate) fn transpose_any(
    bytes: &[u8],
    width: usize,
    len: usize,
    first: usize,
    n: usize,
    out: &mut Vec<u8>,
) {
    assert!(bytes.len() == len * width && first + n <= len, "values lie within the streams");
    let start = out.len();
    out.resize(start + n * width, 0);
    if width == 0 {
        return;
    }
    // By blocks of values, so that the output stays in the cache.
    for (at, block) in (0..n).step_by(BLOCK).zip(out[start..].chunks_mut(BLOCK * width)) {
        let values = block.len() / width;
        let stream = |k: usize| &bytes[k * len + first + at..][..values];
        let mut k = 0;
        while k + 8 <= width {
            put::<8>(std::array::from_fn(|i| stream(k + i)), block, width, k);
            k += 8;
        }
        if k + 4 <= width {
            put::<4>(std::array::from_fn(|i| stream(k + i)), block, width, k);
            k += 4;
        }
        for k in k..width {
            put::<1>([stream(k)], block, width, k);
        }
    }
}

/// Values of a block.
const BLOCK: usize = 64;

/// Writes bytes `at` to `at + K` of the values of a block, which have `width` bytes.
fn put<const K: usize>(streams: [&[u8]; K], block: &mut [u8], width: usize, at: usize) {
    let mut parts = [MaybeUninit::<[u8; K]>::uninit(); BLOCK];
    let parts = &mut parts[..block.len() / width];
    interleave(streams, parts);
    for (value, part) in block.chunks_exact_mut(width).zip(parts) {
        // SAFETY: `interleave` writes every value.
        value[at..at + K].copy_from_slice(&unsafe { part.assume_init() });
    }
}

/// Appends the streams of values of `width` bytes: the first bytes of all values, then the second
/// ones, and so on.
///
/// # Panics
/// If the last value is not whole.
pub(crate) fn split(values: &[u8], width: usize, out: &mut Vec<u8>) {
    // Without bytes there are no values; others are not whole then.
    let n = values.len().checked_div(width).unwrap_or(0);
    assert_eq!(n * width, values.len(), "whole values");
    let start = out.len();
    if width == 1 {
        out.extend_from_slice(values);
        return;
    }
    out.resize(start + values.len(), 0);
    let target = &mut out[start..];
    let done = match width {
        #[cfg(any(target_arch = "x86_64", all(target_arch = "aarch64", target_endian = "little")))]
        2 | 4 | 8 => {
            let whole = n / vectors::STEP * vectors::STEP;
            let (from, to) = (values.as_ptr(), target.as_mut_ptr());
            // SAFETY: `values` and `target` have `n * width` bytes each, and `whole <= n`; the
            // target is borrowed mutably, so that they do not overlap.
            unsafe {
                match width {
                    2 => vectors::split::<2>(from, n, whole, to),
                    4 => vectors::split::<4>(from, n, whole, to),
                    _ => vectors::split::<8>(from, n, whole, to),
                }
            };
            whole
        }
        #[cfg(target_arch = "x86_64")]
        16 => {
            let whole = n / vectors::STEP * vectors::STEP;
            // SAFETY: as above.
            unsafe { x86::split::<16>(values.as_ptr(), n, whole, target.as_mut_ptr()) };
            whole
        }
        _ => 0,
    };
    // By blocks of values, so that the input stays in the cache.
    for at in (done..n).step_by(64) {
        let block = (n - at).min(64);
        for k in 0..width {
            let stream = &mut target[k * n + at..k * n + at + block];
            let bytes = values[at * width + k..].iter().step_by(width);
            stream.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<const K: usize>() {
        let len = 150;
        let values: Vec<[u8; K]> =
            (0..len).map(|i| std::array::from_fn(|k| (i * 7 + k * 13) as u8)).collect();
        let streams: Vec<u8> = (0..K).flat_map(|k| values.iter().map(move |v| v[k])).collect();
        for (first, n) in [(0, 0), (0, len), (3, 31), (5, 32), (7, 100), (149, 1)] {
            let mut out = vec![MaybeUninit::uninit(); n];
            transpose::<K>(&streams, len, first, &mut out);
            // SAFETY: every value is initialised.
            let out: Vec<_> = out.into_iter().map(|v| unsafe { v.assume_init() }).collect();
            assert_eq!(out, values[first..first + n]);
            let mut any = vec![9];
            transpose_any(&streams, K, len, first, n, &mut any);
            assert_eq!(any[1..], *values[first..first + n].as_flattened());
        }
        for n in [0, 1, 15, 16, 17, 31, 32, 33, len] {
            let mut out = vec![9];
            split(values[..n].as_flattened(), K, &mut out);
            let expected: Vec<u8> =
                (0..K).flat_map(|k| values[..n].iter().map(move |v| v[k])).collect();
            assert_eq!(out[1..], expected, "{n} values of {K} bytes");
        }
    }

    #[test]
    fn values_come_back_together_and_apart() {
        check::<1>();
        check::<2>();
        check::<4>();
        check::<5>();
        check::<8>();
        check::<3>();
        check::<12>();
        check::<15>();
        check::<16>();
    }
}
