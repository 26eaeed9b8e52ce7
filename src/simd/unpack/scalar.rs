//! The definition: a block is `w` words of 32 bits (or `w` halves of words of 64), and value `i`
//! begins at bit `i * w`.

use super::BLOCK;

/// Calls `$kernel::<W>` for the width `$width`, one of the list.
macro_rules! for_width {
    ($kernel:ident, $width:expr, $bytes:expr, $out:expr, [$($w:literal)*]) => {
        match $width {
            $($w => $kernel::<$w>($bytes, $out),)*
            _ => unreachable!("the door has checked the width"),
        }
    };
}

/// Unpacks whole blocks of 1 to 32 bits.
#[inline(always)]
pub(super) fn blocks_u32(bytes: &[u8], width: u32, out: &mut [[u32; BLOCK]]) {
    for_width!(kernel_u32, width, bytes, out, [
        1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32
    ]);
}

#[inline(always)]
fn kernel_u32<const W: usize>(bytes: &[u8], out: &mut [[u32; BLOCK]]) {
    let (words, _) = bytes.as_chunks::<4>();
    for (packed, values) in words.chunks_exact(W).zip(out) {
        let mut block = [0u32; W];
        for (word, bytes) in block.iter_mut().zip(packed) {
            *word = u32::from_le_bytes(*bytes);
        }
        let mask = u32::MAX >> (32 - W);
        for (i, value) in values.iter_mut().enumerate() {
            let (word, shift) = (i * W / 32, i * W % 32);
            let low = block[word] >> shift;
            let high = if shift + W > 32 { block[word + 1] << (32 - shift) } else { 0 };
            *value = (low | high) & mask;
        }
    }
}

/// Unpacks whole blocks of 1 to 64 bits.
#[inline(always)]
pub(super) fn blocks_u64(bytes: &[u8], width: u32, out: &mut [[u64; BLOCK]]) {
    for_width!(kernel_u64, width, bytes, out, [
        1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32
        33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61 62 63 64
    ]);
}

#[inline(always)]
fn kernel_u64<const W: usize>(bytes: &[u8], out: &mut [[u64; BLOCK]]) {
    let (halves, _) = bytes.as_chunks::<4>();
    for (packed, values) in halves.chunks_exact(W).zip(out) {
        // An odd width ends in the middle of a word.
        let mut block = [0u64; 33];
        for (i, bytes) in packed.iter().enumerate() {
            block[i / 2] |= u64::from(u32::from_le_bytes(*bytes)) << (32 * (i % 2));
        }
        let mask = u64::MAX >> (64 - W);
        for (i, value) in values.iter_mut().enumerate() {
            let (word, shift) = (i * W / 64, i * W % 64);
            let low = block[word] >> shift;
            let high = if shift + W > 64 { block[word + 1] << (64 - shift) } else { 0 };
            *value = (low | high) & mask;
        }
    }
}
