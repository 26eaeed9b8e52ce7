//! Unpacks values of 0 to 64 bits, packed from the least significant bit of the first byte.
//!
//! Spec: Encodings.md, "Run Length Encoding / Bit-Packing Hybrid" and "Delta Encoding". Used by
//! both. One kernel for each width, unrolled over a block of 32 values, so that every shift is a
//! constant; the width is matched once a call. With AVX-512 VBMI one byte permutation puts the
//! bytes of each value into its lane, and one variable shift does the rest, for all widths alike.

#[cfg(target_arch = "x86_64")]
pub(super) mod avx512;
mod scalar;
#[cfg(target_arch = "x86_64")]
mod x86;

use super::{Isa, Level};

/// Values in a block: a block of width `w` takes `4 * w` bytes.
pub(crate) const BLOCK: usize = 32;

/// Appends `n` values of `width` bits to `out`, the first at bit 0 of `bytes`. Bytes that are not
/// there read as 0.
///
/// # Panics
/// If `width` is over 32.
pub(crate) fn unpack_u32(bytes: &[u8], width: u32, n: usize, out: &mut Vec<u32>) {
    unpack_u32_with(Isa::best(), bytes, width, n, out);
}

/// As [`unpack_u32`], with the kernel of an instruction set.
///
/// # Panics
/// If `width` is over 32.
pub(crate) fn unpack_u32_with(isa: Isa, bytes: &[u8], width: u32, n: usize, out: &mut Vec<u32>) {
    assert!(width <= 32, "a value of 32 bits");
    append(bytes, width, n, out, |bytes, blocks| match isa.level() {
        Level::Scalar => scalar::blocks_u32(bytes, width, blocks),
        #[cfg(target_arch = "x86_64")]
        // SAFETY: these exist only where `Isa::best` has found the features.
        Level::Avx2 => unsafe { x86::blocks_u32(bytes, width, blocks) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above; `append` gives as many bytes as the blocks take.
        Level::Avx512 => unsafe { avx512::blocks_u32(bytes, width, blocks) },
    });
}

/// Appends `n` values of `width` bits to `out`, the first at bit 0 of `bytes`. Bytes that are not
/// there read as 0.
///
/// # Panics
/// If `width` is over 64.
pub(crate) fn unpack_u64(bytes: &[u8], width: u32, n: usize, out: &mut Vec<u64>) {
    unpack_u64_with(Isa::best(), bytes, width, n, out);
}

/// As [`unpack_u64`], with the kernel of an instruction set.
///
/// # Panics
/// If `width` is over 64.
pub(crate) fn unpack_u64_with(isa: Isa, bytes: &[u8], width: u32, n: usize, out: &mut Vec<u64>) {
    assert!(width <= 64, "a value of 64 bits");
    if width == 64 {
        // Whole words: nothing is packed.
        let (words, rest) = bytes.as_chunks::<8>();
        let there = words.len().min(n);
        out.extend(words[..there].iter().map(|word| u64::from_le_bytes(*word)));
        if there < n {
            let mut word = [0; 8];
            word[..rest.len()].copy_from_slice(rest);
            out.push(u64::from_le_bytes(word));
            out.resize(out.len() + n - there - 1, 0);
        }
        return;
    }
    append(bytes, width, n, out, |bytes, blocks| match isa.level() {
        Level::Scalar => scalar::blocks_u64(bytes, width, blocks),
        #[cfg(target_arch = "x86_64")]
        // SAFETY: these exist only where `Isa::best` has found the features.
        Level::Avx2 => unsafe { x86::blocks_u64(bytes, width, blocks) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above; `append` gives as many bytes as the blocks take.
        Level::Avx512 => unsafe { avx512::blocks_u64(bytes, width, blocks) },
    });
}

/// Whole blocks go straight into `out`; the rest through a block that is padded with zeros.
fn append<T: Copy + Default>(
    bytes: &[u8],
    width: u32,
    n: usize,
    out: &mut Vec<T>,
    unpack: impl Fn(&[u8], &mut [[T; BLOCK]]),
) {
    if width == 0 {
        out.resize(out.len() + n, T::default());
        return;
    }
    let block_len = 4 * width as usize;
    let whole = (n / BLOCK).min(bytes.len() / block_len);
    let start = out.len();
    out.resize(start + whole * BLOCK, T::default());
    let (blocks, _) = out[start..].as_chunks_mut::<BLOCK>();
    unpack(&bytes[..whole * block_len], blocks);
    let mut left = n - whole * BLOCK;
    let mut rest = &bytes[whole * block_len..];
    while left > 0 {
        let mut padded = [0u8; 4 * 64];
        let take = rest.len().min(block_len);
        padded[..take].copy_from_slice(&rest[..take]);
        rest = &rest[take..];
        let mut block = [[T::default(); BLOCK]];
        unpack(&padded[..block_len], &mut block);
        let take = left.min(BLOCK);
        out.extend_from_slice(&block[0][..take]);
        left -= take;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn naive(bytes: &[u8], width: u32, n: usize) -> Vec<u64> {
        let bit = |at: usize| u64::from(bytes.get(at / 8).map_or(0, |byte| byte >> (at % 8) & 1));
        (0..n)
            .map(|i| (0..width as usize).map(|b| bit(i * width as usize + b) << b).sum())
            .collect()
    }

    #[test]
    fn example_of_the_specification() {
        let mut out = Vec::new();
        unpack_u32(&[0x88, 0xC6, 0xFA], 3, 8, &mut out);
        assert_eq!(out, [0, 1, 2, 3, 4, 5, 6, 7]);
    }

    #[test]
    fn every_isa_width_length_and_offset_as_the_naive_twin() {
        let seed = 42;
        let mut rng = fastrand::Rng::with_seed(seed);
        let bytes: Vec<u8> = (0..1200).map(|_| rng.u8(..)).collect();
        for isa in Isa::available() {
            for width in 0..=64u32 {
                for n in [0, 1, 7, 8, 31, 32, 33, 64, 95, 97, 128] {
                    for offset in [0, 1, 3, 700] {
                        let bytes = &bytes[offset..];
                        let expected = naive(bytes, width, n);
                        let mut out = vec![7];
                        unpack_u64_with(isa, bytes, width, n, &mut out);
                        assert_eq!(
                            out[1..],
                            expected,
                            "{isa:?} u64 width {width} n {n} seed {seed}"
                        );
                        if width <= 32 {
                            let mut out = vec![7];
                            unpack_u32_with(isa, bytes, width, n, &mut out);
                            let out: Vec<u64> = out[1..].iter().map(|&v| u64::from(v)).collect();
                            assert_eq!(
                                out, expected,
                                "{isa:?} u32 width {width} n {n} seed {seed}"
                            );
                        }
                    }
                }
            }
        }
    }
}
