//! The definition: a block is `w` words of 32 bits (or `w` halves of words of 64), and value `i`
//! begins at bit `i * w`. Loops are unrolled, so that all shifts are constants, except where the
//! compiler vectorises the loop.

use super::{BLOCK, unroll};

/// Calls `$kernel::<W>` for the width `$width`, one of the list.
macro_rules! for_width {
    ($kernel:ident, $width:expr, $bytes:expr, $out:expr, [$($w:literal)*]) => {
        match $width {
            $($w => $kernel::<$w>($bytes, $out),)*
            _ => unreachable!("the caller has checked the width"),
        }
    };
}

/// Unpacks whole blocks of 1 to 32 bits.
pub(super) fn blocks_u32(bytes: &[u8], width: u32, out: &mut [[u32; BLOCK]]) {
    if 32 % width == 0 {
        return even_blocks_u32(bytes, width, out);
    }
    for_width!(unrolled_u32, width, bytes, out, [
        3 5 6 7 9 10 11 12 13 14 15 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31
    ]);
}

/// Like [`blocks_u32`], for a width that divides that of a word: the compiler makes vectors of it.
#[inline(always)]
pub(super) fn even_blocks_u32(bytes: &[u8], width: u32, out: &mut [[u32; BLOCK]]) {
    match width {
        8 => unrolled_u32::<8>(bytes, out),
        16 => unrolled_u32::<16>(bytes, out),
        _ => for_width!(looped_u32, width, bytes, out, [1 2 4 32]),
    }
}

/// Like [`blocks_u32`], for the blocks after the first `done`.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(super) fn rest_u32(bytes: &[u8], width: u32, done: usize, out: &mut [[u32; BLOCK]]) {
    blocks_u32(&bytes[4 * width as usize * done..], width, &mut out[done..]);
}

#[inline(always)]
fn looped_u32<const W: usize>(bytes: &[u8], out: &mut [[u32; BLOCK]]) {
    let mask = u32::MAX >> (32 - W);
    let (words, _) = bytes.as_chunks::<4>();
    for (packed, values) in words.as_chunks::<W>().0.iter().zip(out) {
        let block = packed.map(u32::from_le_bytes);
        for (i, value) in values.iter_mut().enumerate() {
            *value = block[i * W / 32] >> (i * W % 32) & mask;
        }
    }
}

#[inline(always)]
fn unrolled_u32<const W: usize>(bytes: &[u8], out: &mut [[u32; BLOCK]]) {
    let mask = u32::MAX >> (32 - W);
    let (words, _) = bytes.as_chunks::<4>();
    for (packed, values) in words.as_chunks::<W>().0.iter().zip(out) {
        let block = packed.map(u32::from_le_bytes);
        unroll!(I => {
            let (word, shift) = (I * W / 32, I * W % 32);
            let low = block[word] >> shift;
            let high = if shift + W > 32 { block[word + 1] << (32 - shift) } else { 0 };
            values[I] = (low | high) & mask;
        });
    }
}

/// Unpacks whole blocks of 1 to 64 bits.
pub(super) fn blocks_u64(bytes: &[u8], width: u32, out: &mut [[u64; BLOCK]]) {
    if !(1..58).contains(&width) || 32 % width == 0 {
        return even_blocks_u64(bytes, width, out);
    }
    for_width!(unrolled_u64, width, bytes, out, [
        3 5 6 7 9 10 11 12 13 14 15 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31
        33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57
    ]);
}

/// As [`blocks_u64`], for a width that divides that of a half, which the compiler vectorises, or
/// that is too wide for lanes.
#[inline(always)]
pub(super) fn even_blocks_u64(bytes: &[u8], width: u32, out: &mut [[u64; BLOCK]]) {
    match width {
        1 | 2 | 4 | 8 | 16 => for_width!(looped_u64, width, bytes, out, [1 2 4 8 16]),
        _ => for_width!(unrolled_u64, width, bytes, out, [32 58 59 60 61 62 63 64]),
    }
}

/// Like [`blocks_u64`], for the blocks after the first `done`.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(super) fn rest_u64(bytes: &[u8], width: u32, done: usize, out: &mut [[u64; BLOCK]]) {
    blocks_u64(&bytes[4 * width as usize * done..], width, &mut out[done..]);
}

#[inline(always)]
fn looped_u64<const W: usize>(bytes: &[u8], out: &mut [[u64; BLOCK]]) {
    let mask = u64::MAX >> (64 - W);
    let (halves, _) = bytes.as_chunks::<4>();
    for (packed, values) in halves.as_chunks::<W>().0.iter().zip(out) {
        // An odd width ends in the middle of a word.
        let mut block = [0u64; 8];
        for (i, bytes) in packed.iter().enumerate() {
            block[i / 2] |= u64::from(u32::from_le_bytes(*bytes)) << (32 * (i % 2));
        }
        for (i, value) in values.iter_mut().enumerate() {
            *value = block[i * W / 64] >> (i * W % 64) & mask;
        }
    }
}

#[inline(always)]
fn unrolled_u64<const W: usize>(bytes: &[u8], out: &mut [[u64; BLOCK]]) {
    let mask = u64::MAX >> (64 - W);
    let (halves, _) = bytes.as_chunks::<4>();
    for (packed, values) in halves.as_chunks::<W>().0.iter().zip(out) {
        // The word that begins with a half; an odd width ends in the middle of one.
        let word = |half: usize| {
            let high = if half + 1 < W { u32::from_le_bytes(packed[half + 1]) } else { 0 };
            u64::from(u32::from_le_bytes(packed[half])) | u64::from(high) << 32
        };
        unroll!(I => {
            let (at, shift) = (I * W / 64 * 2, I * W % 64);
            let low = word(at) >> shift;
            let high = if shift + W > 64 { word(at + 2) << (64 - shift) } else { 0 };
            values[I] = (low | high) & mask;
        });
    }
}
