//! The definition: value `i` of a block begins at bit `i * w` of its `w` words of 32 bits. The loop
//! is unrolled, so that all shifts are constants.

use super::BLOCK;
use crate::simd::unpack::unroll;

/// Bytes after the last block that a kernel may write to: a vector.
pub(super) const SLACK: usize = 64;

/// Calls `$kernel::<W>` for the width `$width`, one of the list.
macro_rules! for_width {
    ($kernel:ident, $width:expr, $blocks:expr, $out:expr, [$($w:literal)*]) => {
        match $width {
            $($w => $kernel::<$w>($blocks, $out),)*
            _ => unreachable!("the caller has checked the width"),
        }
    };
}

/// Packs whole blocks of 1 to 32 bits.
pub(super) fn blocks_u32(blocks: &[[u32; BLOCK]], width: u32, out: &mut [u8]) {
    for_width!(kernel_u32, width, blocks, out, [
        1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32
    ]);
}

#[inline(always)]
fn kernel_u32<const W: usize>(blocks: &[[u32; BLOCK]], out: &mut [u8]) {
    let mask = u32::MAX >> (32 - W);
    let (words, _) = out.as_chunks_mut::<4>();
    for (values, packed) in blocks.iter().zip(words.as_chunks_mut::<W>().0) {
        let mut block = [0u32; W];
        unroll!(I => {
            let (word, shift) = (I * W / 32, I * W % 32);
            let field = values[I] & mask;
            block[word] |= field << shift;
            if shift + W > 32 {
                block[word + 1] |= field >> (32 - shift);
            }
        });
        *packed = block.map(u32::to_le_bytes);
    }
}

/// Packs whole blocks of 1 to 64 bits.
pub(super) fn blocks_u64(blocks: &[[u64; BLOCK]], width: u32, out: &mut [u8]) {
    for_width!(kernel_u64, width, blocks, out, [
        1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32
        33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61 62 63 64
    ]);
}

#[inline(always)]
fn kernel_u64<const W: usize>(blocks: &[[u64; BLOCK]], out: &mut [u8]) {
    let mask = u64::MAX >> (64 - W);
    let (words, _) = out.as_chunks_mut::<4>();
    for (values, packed) in blocks.iter().zip(words.as_chunks_mut::<W>().0) {
        let mut block = [0u64; BLOCK];
        unroll!(I => {
            let (word, shift) = (I * W / 64, I * W % 64);
            let field = values[I] & mask;
            block[word] |= field << shift;
            if shift + W > 64 {
                block[word + 1] |= field >> (64 - shift);
            }
        });
        store(&block, packed);
    }
}

/// Stores the words as little-endian halves: an odd width ends in the middle of a word.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "halves of a word")]
fn store<const W: usize>(block: &[u64; BLOCK], packed: &mut [[u8; 4]; W]) {
    for (i, half) in packed.iter_mut().enumerate() {
        *half = ((block[i / 2] >> (32 * (i % 2))) as u32).to_le_bytes();
    }
}
