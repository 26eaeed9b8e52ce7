//! Unpacks values of 0 to 64 bits, packed from the least significant bit of the first byte.
//!
//! Spec: Encodings.md, "Run Length Encoding / Bit-Packing Hybrid" and "Delta Encoding". Used by
//! both decoders. The definition has one kernel for each width, unrolled over a block of 32 values,
//! so that every shift is a constant; the width is matched once a call. With byte permutations by a
//! table (AVX2, NEON), one permutation puts the bytes of each value into its lane, and one shift by
//! lane does the rest, for all widths alike. With AVX-512 VBMI that is of use only to kernels that
//! take the values on at once.

mod block;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod lanes;
mod scalar;
#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "x86_64")]
mod x86;
#[cfg(target_arch = "x86_64")]
pub(super) mod avx512;

use super::{Isa, Kernel, Level};
pub(crate) use block::BLOCK;
pub(super) use block::unroll;

/// Appends `n` values of `width` bits to `out`, the first at bit 0 of `bytes`. Bytes that are not
/// there read as 0.
///
/// # Panics
/// If `width` is over 32.
pub(crate) fn unpack_u32(bytes: &[u8], width: u32, n: usize, out: &mut Vec<u32>) {
    unpack_u32_with(Isa::for_kernel(Kernel::Unpack), bytes, width, n, out);
}

/// Like [`unpack_u32`], with the kernel of an instruction set.
///
/// # Panics
/// If `width` is over 32.
pub(crate) fn unpack_u32_with(isa: Isa, bytes: &[u8], width: u32, n: usize, out: &mut Vec<u32>) {
    assert!(width <= 32, "a value of 32 bits");
    let isa = isa.part(Kernel::Unpack);
    append(bytes, width, n, out, |bytes, blocks| match isa.level() {
        #[cfg(target_arch = "aarch64")]
        Level::Scalar if isa.neon() => aarch64::blocks_u32(bytes, width, blocks),
        Level::Scalar => scalar::blocks_u32(bytes, width, blocks),
        #[cfg(target_arch = "x86_64")]
        // SAFETY: these exist only where `Isa::best` has found the features.
        Level::Avx2 | Level::Avx512 => unsafe { x86::blocks_u32(bytes, width, blocks) },
    });
}

/// Appends `n` values of `width` bits to `out`, the first at bit 0 of `bytes`. Bytes that are not
/// there read as 0.
///
/// # Panics
/// If `width` is over 64.
pub(crate) fn unpack_u64(bytes: &[u8], width: u32, n: usize, out: &mut Vec<u64>) {
    unpack_u64_with(Isa::for_kernel(Kernel::Unpack), bytes, width, n, out);
}

/// Like [`unpack_u64`], with the kernel of an instruction set.
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
    let isa = isa.part(Kernel::Unpack);
    append(bytes, width, n, out, |bytes, blocks| match isa.level() {
        #[cfg(target_arch = "aarch64")]
        Level::Scalar if isa.neon() => aarch64::blocks_u64(bytes, width, blocks),
        Level::Scalar => scalar::blocks_u64(bytes, width, blocks),
        #[cfg(target_arch = "x86_64")]
        // SAFETY: these exist only where `Isa::best` has found the features.
        Level::Avx2 | Level::Avx512 => unsafe { x86::blocks_u64(bytes, width, blocks) },
    });
}

/// Bytes after the last block that vectors may reach into.
const PADDING: usize = 16;

/// Whole blocks go straight into `out`; the rest through a block that is padded with zeros. Kernels
/// are given at least the bytes of their blocks.
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
    // At once: the last block would make it grow again.
    out.reserve(n);
    let block_len = 4 * width as usize;
    let whole = (n / BLOCK).min(bytes.len() / block_len);
    let start = out.len();
    out.resize(start + whole * BLOCK, T::default());
    let (blocks, _) = out[start..].as_chunks_mut::<BLOCK>();
    unpack(bytes, blocks);
    let mut left = n - whole * BLOCK;
    let mut rest = &bytes[whole * block_len..];
    while left > 0 {
        let mut padded = [0u8; 4 * 64 + PADDING];
        let take = rest.len().min(block_len);
        padded[..take].copy_from_slice(&rest[..take]);
        rest = &rest[take..];
        let mut block = [[T::default(); BLOCK]];
        unpack(&padded[..block_len + PADDING], &mut block);
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
                    // Of as many bytes as are wanted, too, after which vectors may not reach.
                    let len = (n * width as usize).div_ceil(8);
                    for range in [0..1200, 1..1200, 3..1200, 700..1200, 0..len, 1..1 + len] {
                        let bytes = &bytes[range];
                        let expected = naive(bytes, width, n);
                        let mut out = vec![7];
                        unpack_u64_with(isa, bytes, width, n, &mut out);
                        let case = format!("{isa:?} width {width} n {n} seed {seed}");
                        assert_eq!(out[1..], expected, "u64 {case}");
                        if width <= 32 {
                            let mut out = vec![7];
                            unpack_u32_with(isa, bytes, width, n, &mut out);
                            let out: Vec<u64> = out[1..].iter().map(|&v| u64::from(v)).collect();
                            assert_eq!(out, expected, "u32 {case}");
                        }
                    }
                }
            }
        }
    }
}
