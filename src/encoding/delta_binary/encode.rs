//! The encoder of DELTA_BINARY_PACKED.

use super::int::Int;
use crate::simd::Isa;
use crate::simd::deltas::{BLOCK, Differences, MINIBLOCK, MINIBLOCKS};

/// Appends values, in blocks of 128 with 4 miniblocks of 32, which is what pyarrow writes. Spec:
/// Encodings.md, "Delta Encoding".
///
/// The last block ends with its last miniblock in use, of full size; the widths of the absent ones
/// are 0.
pub(crate) fn encode_into<T: Int>(values: &[T], out: &mut Vec<u8>) {
    // Of no values, the first is 0.
    put_header(values.len(), values.first().map_or(0, |&first| first.into()), out);
    let isa = Isa::best();
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

/// The bytes that [`encode_into`] appends for these values.
#[cfg(test)]
pub(crate) fn estimated_len<T: Int>(values: &[T]) -> usize {
    let mut header = Vec::new();
    put_header(values.len(), values.first().map_or(0, |&first| first.into()), &mut header);
    let isa = Isa::best();
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

fn put_header(n: usize, first: i64, out: &mut Vec<u8>) {
    put_uleb(BLOCK as u64, out);
    put_uleb(MINIBLOCKS as u64, out);
    put_uleb(n as u64, out);
    put_zigzag(first, out);
}

/// Bytes of a number in LEB128.
#[cfg(test)]
fn uleb_len(value: u64) -> usize {
    (u64::BITS - (value | 1).leading_zeros()).div_ceil(7) as usize
}

fn zigzag(value: i64) -> u64 {
    (value << 1 ^ value >> 63).cast_unsigned()
}

/// Encodes values, in blocks of 128 and miniblocks of 32. Value by value: the twin of
/// [`encode_into`] that tests read by.
#[cfg(test)]
pub(crate) fn encode<T: Int>(values: &[T]) -> Vec<u8> {
    let values: Vec<i64> = values.iter().map(|&value| value.into()).collect();
    let mut out = Vec::new();
    put_uleb(BLOCK as u64, &mut out);
    put_uleb((BLOCK / MINIBLOCK) as u64, &mut out);
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
    for block in deltas.chunks(BLOCK) {
        let least = block.iter().copied().min().unwrap_or(0);
        put_zigzag(least, &mut out);
        let packed: Vec<u64> =
            block.iter().map(|d| d.wrapping_sub(least).cast_unsigned() & mask).collect();
        let width = |miniblock: &[u64]| {
            let highest = miniblock.iter().copied().max().unwrap_or(0);
            u8::try_from(u64::BITS - highest.leading_zeros()).expect("at most 64")
        };
        let mut widths = packed.chunks(MINIBLOCK).map(width).collect::<Vec<_>>();
        widths.resize(BLOCK / MINIBLOCK, 0);
        out.extend_from_slice(&widths);
        for (miniblock, &width) in packed.chunks(MINIBLOCK).zip(&widths) {
            let (mut bits, mut count) = (0u128, 0u32);
            for i in 0..MINIBLOCK {
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
