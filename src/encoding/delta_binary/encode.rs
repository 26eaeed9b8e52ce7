//! Encodes DELTA_BINARY_PACKED.

use super::int::Int;
use crate::simd::deltas::{BLOCK, Differences, MINIBLOCK, MINIBLOCKS};
use crate::simd::{Isa, Kernel};

/// Appends values, in blocks of 128 with 4 miniblocks of 32, which is what pyarrow writes. Spec:
/// Encodings.md, "Delta Encoding".
///
/// The last block ends with its last miniblock in use, of full size; the widths of the absent ones
/// are 0.
pub(crate) fn encode_into<T: Int>(values: &[T], out: &mut Vec<u8>) {
    put_header(BLOCK, MINIBLOCKS, values, out);
    let isa = Isa::for_kernel(Kernel::Deltas);
    let mut deltas = [T::Delta::default(); BLOCK];
    for block in blocks(values) {
        let Differences { least, widths } = T::differences(isa, block, &mut deltas);
        put_zigzag(least.into(), out);
        // After the last value the differences are 0, and so are the widths.
        out.extend_from_slice(&widths);
        let used = (block.len() - 1).div_ceil(MINIBLOCK);
        if used == MINIBLOCKS && widths == [widths[0]; MINIBLOCKS] {
            T::pack(isa, &deltas, u32::from(widths[0]), out);
            continue;
        }
        for (miniblock, width) in deltas.chunks(MINIBLOCK).zip(widths).take(used) {
            T::pack(isa, miniblock, u32::from(width), out);
        }
    }
}

/// How long the blocks are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum DeltaBlocks {
    /// Blocks of 128 and miniblocks of 32, which follow differences that change their size.
    Short,
    /// Blocks of 2048 and miniblocks of 256, as DuckDB writes: next to no bytes beside the
    /// differences, and one smallest difference for many, so that what repeats looks the same to a
    /// codec.
    Long,
}

/// Like [`encode_into`], in blocks of some length.
pub(crate) fn encode_blocks_into<T: Int>(values: &[T], blocks: DeltaBlocks, out: &mut Vec<u8>) {
    match blocks {
        DeltaBlocks::Short => encode_into(values, out),
        DeltaBlocks::Long => encode_long_into(values, out),
    }
}

/// Differences of a long block.
const LONG_BLOCK: usize = 2048;

/// Differences of a miniblock of a long block.
const LONG_MINIBLOCK: usize = 256;

/// Miniblocks of a long block.
const LONG_MINIBLOCKS: usize = LONG_BLOCK / LONG_MINIBLOCK;

/// Like [`encode_into`], in long blocks. The differences are found as those of short ones, each
/// less its own smallest, and brought to the smallest of all.
fn encode_long_into<T: Int>(values: &[T], out: &mut Vec<u8>) {
    put_header(LONG_BLOCK, LONG_MINIBLOCKS, values, out);
    let isa = Isa::for_kernel(Kernel::Deltas);
    let mut parts = [[T::Delta::default(); BLOCK]; LONG_BLOCK / BLOCK];
    let mut smallest = Vec::with_capacity(parts.len());
    let starts = (0..values.len().saturating_sub(1)).step_by(LONG_BLOCK);
    for start in starts {
        let end = values.len().min(start + LONG_BLOCK + 1);
        let block = values.get(start..end).expect("cut at the end of the values");
        smallest.clear();
        for (short, part) in blocks(block).zip(&mut parts) {
            smallest.push(T::differences(isa, short, part).least);
        }
        let Some(least) = smallest.iter().copied().min() else { continue };
        put_zigzag(least.into(), out);
        let widths_at = out.len();
        out.extend_from_slice(&[0; LONG_MINIBLOCKS]);
        let per_miniblock = LONG_MINIBLOCK / BLOCK;
        let mut left = block.len() - 1;
        let miniblocks = parts.chunks_mut(per_miniblock).zip(smallest.chunks(per_miniblock));
        for (miniblock, (parts, smallest)) in miniblocks.enumerate() {
            let mut width = 0;
            for (part, own) in parts.iter_mut().zip(smallest) {
                let used = left.min(BLOCK);
                left -= used;
                let used = part.get_mut(..used).expect("no more than a part has");
                width = width.max(T::raise(isa, used, *own, least));
            }
            // The unused rest of the last block is arbitrary: 0 compresses well.
            parts.iter_mut().skip(smallest.len()).for_each(|part| part.fill(T::Delta::default()));
            *out.get_mut(widths_at + miniblock).expect("a width for each") = width;
            T::pack(isa, parts.as_flattened(), u32::from(width), out);
        }
    }
}

/// The bytes that [`encode_into`] appends for these values.
#[cfg(test)]
pub(crate) fn estimated_len<T: Int>(values: &[T]) -> usize {
    let mut header = Vec::new();
    put_header(BLOCK, MINIBLOCKS, values, &mut header);
    let isa = Isa::for_kernel(Kernel::Deltas);
    let mut deltas = [T::Delta::default(); BLOCK];
    let mut len = header.len();
    for block in blocks(values) {
        let Differences { least, widths } = T::differences(isa, block, &mut deltas);
        let packed =
            widths.iter().map(|&width| usize::from(width) * (MINIBLOCK / 8)).sum::<usize>();
        len += uleb_len(zigzag(least.into())) + MINIBLOCKS + packed;
    }
    len
}

/// Blocks of up to 128 differences, each with the value before the first of them.
fn blocks<T>(values: &[T]) -> impl Iterator<Item = &[T]> {
    let starts = (0..values.len().saturating_sub(1)).step_by(BLOCK);
    starts.filter_map(move |at| values.get(at..values.len().min(at + BLOCK + 1)))
}

fn put_header<T: Int>(block: usize, miniblocks: usize, values: &[T], out: &mut Vec<u8>) {
    put_uleb(block as u64, out);
    put_uleb(miniblocks as u64, out);
    put_uleb(values.len() as u64, out);
    // Without values, the first value is 0.
    put_zigzag(values.first().map_or(0, |&first| first.into()), out);
}

/// Bytes of a number in LEB128.
#[cfg(test)]
fn uleb_len(value: u64) -> usize {
    (u64::BITS - (value | 1).leading_zeros()).div_ceil(7) as usize
}

fn zigzag(value: i64) -> u64 {
    (value << 1 ^ value >> 63).cast_unsigned()
}

/// Encodes values, in blocks of 128 and miniblocks of 32: the twin of [`encode_into`] that tests
/// read by.
#[cfg(test)]
pub(crate) fn encode<T: Int>(values: &[T]) -> Vec<u8> {
    encode_slowly(values, BLOCK, MINIBLOCK)
}

/// Like [`encode`], in long blocks.
#[cfg(test)]
pub(crate) fn encode_long<T: Int>(values: &[T]) -> Vec<u8> {
    encode_slowly(values, LONG_BLOCK, LONG_MINIBLOCK)
}

/// Value by value.
#[cfg(test)]
fn encode_slowly<T: Int>(values: &[T], block_len: usize, miniblock_len: usize) -> Vec<u8> {
    let values: Vec<i64> = values.iter().map(|&value| value.into()).collect();
    let mut out = Vec::new();
    put_uleb(block_len as u64, &mut out);
    put_uleb((block_len / miniblock_len) as u64, &mut out);
    put_uleb(values.len() as u64, &mut out);
    put_zigzag(values.first().copied().unwrap_or(0), &mut out);
    let deltas: Vec<i64> = values
        .windows(2)
        .map(|pair| {
            let delta = pair[1].wrapping_sub(pair[0]);
            // A difference of 32 bits wraps in 32 bits.
            let unused = 64 - T::BITS;
            delta << unused >> unused
        })
        .collect();
    let mask = u64::MAX >> (64 - T::BITS);
    for block in deltas.chunks(block_len) {
        let least = block.iter().copied().min().unwrap_or(0);
        put_zigzag(least, &mut out);
        let packed: Vec<u64> =
            block.iter().map(|d| d.wrapping_sub(least).cast_unsigned() & mask).collect();
        let width = |miniblock: &[u64]| {
            let highest = miniblock.iter().copied().max().unwrap_or(0);
            u8::try_from(u64::BITS - highest.leading_zeros()).expect("at most 64")
        };
        let mut widths = packed.chunks(miniblock_len).map(width).collect::<Vec<_>>();
        widths.resize(block_len / miniblock_len, 0);
        out.extend_from_slice(&widths);
        for (miniblock, &width) in packed.chunks(miniblock_len).zip(&widths) {
            let (mut bits, mut count) = (0u128, 0u32);
            for i in 0..miniblock_len {
                bits |= u128::from(miniblock.get(i).copied().unwrap_or(0)) << count;
                count += u32::from(width);
                while count >= 8 {
                    out.push(bits.to_le_bytes()[0]);
                    bits >>= 8;
                    count -= 8;
                }
            }
        }
    }
    out
}

fn put_uleb(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    out.push(value.to_le_bytes()[0]);
}

fn put_zigzag(value: i64, out: &mut Vec<u8>) {
    put_uleb(zigzag(value), out);
}
