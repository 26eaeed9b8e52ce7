//! ZSTD: a page is a sequence of frames of RFC 8878, which may include skippable frames.

mod frames;
#[cfg_attr(target_family = "wasm", path = "portable.rs")]
#[cfg_attr(not(target_family = "wasm"), path = "libzstd.rs")]
mod library;
#[cfg(all(test, not(target_family = "wasm")))]
mod portable;

use super::output::clear_with_capacity;
use crate::error::{Error, Result};
use frames::{Frames, SPEC};
pub(super) use library::Encoder;

pub(super) struct Decoder;

impl Decoder {
    pub(super) fn new() -> Result<Self> {
        Ok(Self)
    }

    pub(super) fn working_bytes(&self, input: &[u8]) -> usize {
        library::working_bytes(input)
    }

    pub(super) fn decompress(&mut self, input: &[u8], len: usize, out: &mut Vec<u8>) -> Result<()> {
        let max = Frames::new(input)?.max_bytes;
        if max < len as u64 {
            return Err(Error::mismatch(
                SPEC,
                "uncompressed size",
                format_args!("at most {max}, which is what the blocks of the frames can become"),
                len,
            ));
        }
        clear_with_capacity(out, len)?;
        library::decompress(input, len, out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    fn compressed(values: &[u8], level: i32) -> Vec<u8> {
        let mut out = Vec::new();
        Encoder::new(level).unwrap().compress(values, &mut out).unwrap();
        out
    }

    #[test]
    fn blocks_say_what_they_become_at_most() {
        let seed = 3;
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut all = Vec::new();
        let mut bytes = 0;
        for len in [0, 1, 100, 131_071, 131_072, 131_073, 1_000_000] {
            for kind in 0..3 {
                let values: Vec<u8> = match kind {
                    0 => vec![7; len],
                    1 => (0..len).map(|_| rng.u8(..)).collect(),
                    _ => (0..len).map(|i| (i / 7 % 100) as u8 ^ rng.u8(..2)).collect(),
                };
                for level in [-3, 1, 19] {
                    let frame = compressed(&values, level);
                    let max = Frames::new(&frame).unwrap().max_bytes;
                    assert_eq!(max, len as u64, "{len} {kind}");
                    all.extend_from_slice(&frame);
                    all.extend_from_slice(&[0x53, 0x2A, 0x4D, 0x18, 2, 0, 0, 0, 9, 9]);
                    bytes += len;
                }
            }
        }
        assert!(Frames::new(&all).unwrap().max_bytes >= bytes as u64, "frame after frame");
        for end in (0..200).map(|_| rng.usize(1..all.len())) {
            // Whatever it says, it ends.
            let _ = Frames::new(&all[..end]);
        }
    }

    #[test]
    fn a_size_that_the_blocks_cannot_become_takes_no_memory() {
        let frame = compressed(b"short", 1);
        let mut out = Vec::new();
        let error = Decoder.decompress(&frame, 1 << 30, &mut out).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Malformed(SPEC), "{error}");
        assert_eq!(out.capacity(), 0);
        let error = Decoder.decompress(b"not a frame", 5, &mut out).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Malformed(SPEC), "{error}");
    }
}
