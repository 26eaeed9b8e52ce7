//! Packs values of 0 to 64 bits from the least significant bit of the first byte: the inverse of
//! [`unpack`](super::unpack).
//!
//! Spec: Encodings.md, "Run Length Encoding / Bit-Packing Hybrid" and "Delta Encoding". Used by
//! both encoders. One kernel for each width, unrolled over a block of 32 values, so that every
//! shift is a constant; the width is matched once a call. With AVX-512 VBMI shifts by lane and byte
//! permutations do the same for all widths alike.

mod scalar;
#[cfg(target_arch = "x86_64")]
mod avx512;

#[cfg(target_arch = "x86_64")]
use super::Level;
pub(crate) use super::unpack::BLOCK;
use super::{Isa, Kernel};
use scalar::SLACK;

/// Appends `values` with `width` bits each to `out`, the first at bit 0: `ceil(n * width / 8)`
/// bytes, the last padded with zeros. Higher bits of a value are dropped.
///
/// # Panics
/// If `width` is over 32.
pub(crate) fn pack_u32(values: &[u32], width: u32, out: &mut Vec<u8>) {
    pack_u32_with(Isa::for_kernel(Kernel::Pack), values, width, out);
}

/// Like [`pack_u32`], with the kernel of an instruction set.
///
/// # Panics
/// If `width` is over 32.
pub(crate) fn pack_u32_with(isa: Isa, values: &[u32], width: u32, out: &mut Vec<u8>) {
    assert!(width <= 32, "a value of 32 bits");
    let isa = isa.part(Kernel::Pack);
    append(values, width, out, |blocks, bytes| match isa.level() {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: it exists only where `Isa::best` has found the features; `append` gives the bytes
        // of the blocks and the slack.
        Level::Avx512 => unsafe { avx512::blocks_u32(blocks, width, bytes) },
        // The definition compiled for AVX2 was no faster.
        _ => scalar::blocks_u32(blocks, width, bytes),
    });
}

/// Appends `values` with `width` bits each to `out`, the first at bit 0: `ceil(n * width / 8)`
/// bytes, the last padded with zeros. Higher bits of a value are dropped.
///
/// # Panics
/// If `width` is over 64.
pub(crate) fn pack_u64_with(isa: Isa, values: &[u64], width: u32, out: &mut Vec<u8>) {
    assert!(width <= 64, "a value of 64 bits");
    let isa = isa.part(Kernel::Pack);
    append(values, width, out, |blocks, bytes| match isa.level() {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: it exists only where `Isa::best` has found the features; `append` gives the bytes
        // of the blocks and the slack.
        Level::Avx512 => unsafe { avx512::blocks_u64(blocks, width, bytes) },
        // The definition compiled for AVX2 was no faster.
        _ => scalar::blocks_u64(blocks, width, bytes),
    });
}

/// Whole blocks go straight into `out`; the rest through a block that is padded with zeros.
#[inline(always)]
fn append<T: Copy + Default>(
    values: &[T],
    width: u32,
    out: &mut Vec<u8>,
    pack: impl Fn(&[[T; BLOCK]], &mut [u8]),
) {
    if width == 0 {
        return;
    }
    let block_len = 4 * width as usize;
    let (blocks, rest) = values.as_chunks::<BLOCK>();
    let start = out.len();
    let whole = blocks.len() * block_len;
    if whole > 0 {
        out.resize(start + whole + SLACK, 0);
        pack(blocks, &mut out[start..]);
        out.truncate(start + whole);
    }
    if !rest.is_empty() {
        let mut padded = [[T::default(); BLOCK]];
        padded[0][..rest.len()].copy_from_slice(rest);
        let mut bytes = [0u8; 4 * 64 + SLACK];
        pack(&padded, &mut bytes[..block_len + SLACK]);
        out.extend_from_slice(&bytes[..(rest.len() * width as usize).div_ceil(8)]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::unpack::{unpack_u32, unpack_u64};

    #[test]
    fn example_of_the_specification() {
        let mut out = vec![9];
        pack_u32(&[0, 1, 2, 3, 4, 5, 6, 7], 3, &mut out);
        assert_eq!(out, [9, 0x88, 0xC6, 0xFA]);
    }

    #[test]
    fn every_isa_width_and_length_comes_back() {
        let seed = 51;
        let mut rng = fastrand::Rng::with_seed(seed);
        for isa in Isa::available() {
            for width in 0..=64u32 {
                for n in [0, 1, 7, 8, 31, 32, 33, 64, 95, 97, 128] {
                    // Not masked: higher bits must not spill over.
                    let values: Vec<u64> = (0..n).map(|_| rng.u64(..)).collect();
                    let mask = u64::MAX.checked_shr(64 - width).unwrap_or(0);
                    let expected: Vec<u64> = values.iter().map(|v| v & mask).collect();
                    let mut packed = Vec::new();
                    pack_u64_with(isa, &values, width, &mut packed);
                    assert_eq!(packed.len(), (n * width as usize).div_ceil(8));
                    let mut out = Vec::new();
                    unpack_u64(&packed, width, n, &mut out);
                    assert_eq!(out, expected, "{isa:?} u64 width {width} n {n} seed {seed}");
                    let used = n * width as usize % 8;
                    if used != 0 {
                        assert_eq!(packed[packed.len() - 1] >> used, 0, "the padding is zeros");
                    }
                    if width <= 32 {
                        let values: Vec<u32> = values.iter().map(|v| *v as u32).collect();
                        let mut narrow = Vec::new();
                        pack_u32_with(isa, &values, width, &mut narrow);
                        assert_eq!(narrow, packed, "{isa:?} u32 width {width} n {n} seed {seed}");
                        let mut out = Vec::new();
                        unpack_u32(&narrow, width, n, &mut out);
                        let out: Vec<u64> = out.iter().map(|&v| u64::from(v)).collect();
                        assert_eq!(out, expected, "{isa:?} u32 width {width} n {n} seed {seed}");
                    }
                }
            }
        }
    }
}
