//! ZSTD without C, for WebAssembly, whose builds have no compiler of it: frames are decompressed by
//! `ruzstd`. Nothing is compressed.

use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

use super::frames::{BLOCK, Frames, SPEC, broken};
use crate::error::{Error, Result};

/// Appends the bytes of the frames to `out`, at most `len`.
pub(super) fn decompress(mut input: &[u8], len: usize, out: &mut Vec<u8>) -> Result<()> {
    while !input.is_empty() {
        // One for each frame: used again, it would allocate the window that the frame states,
        // whatever its size. Pages are one frame.
        let mut decoder = FrameDecoder::new();
        // The window was counted by `working_bytes`.
        decoder.set_max_window_size(u64::MAX);
        match decoder.init(&mut input) {
            Ok(()) => frame(&mut decoder, &mut input, len, out)?,
            Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                length,
                ..
            })) => {
                let rest = usize::try_from(length).ok().and_then(|length| input.get(length..));
                input = rest.ok_or_else(|| broken("a skippable frame ends early"))?;
            }
            Err(error) => return Err(broken(error)),
        }
    }
    Ok(())
}

fn frame(
    decoder: &mut FrameDecoder,
    input: &mut &[u8],
    len: usize,
    out: &mut Vec<u8>,
) -> Result<()> {
    loop {
        let step = BlockDecodingStrategy::UptoBytes(BLOCK as usize);
        decoder.decode_blocks(&mut *input, step).map_err(broken)?;
        if decoder.can_collect() > len.saturating_sub(out.len()) {
            return Err(Error::mismatch(
                SPEC,
                "uncompressed size",
                len,
                format_args!("at least {}", out.len().saturating_add(decoder.can_collect())),
            ));
        }
        decoder.collect_to_writer(&mut *out).map_err(broken)?;
        if decoder.is_finished() {
            break;
        }
    }
    let stated = decoder.get_checksum_from_data();
    if stated.is_some() && stated != decoder.get_calculated_checksum() {
        return Err(broken("its checksum is of other bytes"));
    }
    Ok(())
}

/// Bytes of memory beside the output: the last bytes that a window states are kept until they have
/// left it, in a buffer that doubles as it grows.
pub(super) fn working_bytes(input: &[u8]) -> usize {
    let Ok(frames) = Frames::new(input) else { return 0 };
    let kept = crate::bytes::saturated(frames.window.min(frames.max_bytes));
    kept.saturating_add(2 * BLOCK as usize).saturating_mul(3)
}

/// Cannot be made.
#[cfg(target_family = "wasm")]
pub(in crate::compress) enum Encoder {}

#[cfg(target_family = "wasm")]
impl Encoder {
    pub(in crate::compress) fn new(_: i32) -> Result<Self> {
        Err(Error::unsupported("ZSTD compression", "WebAssembly only decompresses ZSTD"))
    }

    pub(in crate::compress) fn compress(&mut self, _: &[u8], _: &mut Vec<u8>) -> Result<()> {
        match *self {}
    }

    pub(in crate::compress) fn compress_apart(
        &mut self,
        _: &[u8],
        _: &[usize],
        _: &mut Vec<u8>,
    ) -> Result<()> {
        match *self {}
    }
}

#[cfg(test)]
mod tests {
    use super::super::library::{self, Encoder};
    use super::*;

    fn compressed(values: &[u8], level: i32, out: &mut Vec<u8>) {
        Encoder::new(level).unwrap().compress(values, out).unwrap();
    }

    /// Bytes with some pattern.
    fn values(rng: &mut fastrand::Rng) -> Vec<u8> {
        let max = [10, 1_000, 300_000][rng.usize(..3)];
        let len = rng.usize(..max);
        let (kind, period) = (rng.u8(..3), rng.usize(1..5_000));
        let byte = |i: usize, rng: &mut fastrand::Rng| match kind {
            0 => (i / period) as u8,
            1 => rng.u8(..),
            _ => (i % period) as u8 ^ rng.u8(..2),
        };
        (0..len).map(|i| byte(i, rng)).collect()
    }

    #[test]
    fn frames_become_what_the_library_of_zstd_makes_of_them() {
        let seed = fastrand::u64(..);
        let mut rng = fastrand::Rng::with_seed(seed);
        for case in 0..60 {
            let (mut all, mut frames) = (Vec::new(), Vec::new());
            for _ in 0..rng.usize(1..4) {
                let values = values(&mut rng);
                compressed(&values, [-5, 1, 3, 19][rng.usize(..4)], &mut frames);
                frames.extend_from_slice(&[0x53, 0x2A, 0x4D, 0x18, 2, 0, 0, 0, 9, 9]);
                all.extend(values);
            }
            let mut out = Vec::new();
            decompress(&frames, all.len(), &mut out).unwrap();
            assert!(out == all, "seed {seed}, case {case}");
            if let Some(less) = all.len().checked_sub(1) {
                let error = decompress(&frames, less, &mut Vec::new()).unwrap_err();
                let malformed = crate::error::ErrorKind::Malformed(SPEC);
                assert_eq!(error.kind(), malformed, "seed {seed}, case {case}: {error}");
            }
        }
    }

    #[test]
    fn mutants_become_the_same_bytes_or_an_error() {
        let seed = fastrand::u64(..);
        let mut rng = fastrand::Rng::with_seed(seed);
        let (mut same, mut refused) = (0, 0);
        for case in 0..2_000 {
            let mut values = values(&mut rng);
            values.truncate(3_000);
            let mut frame = Vec::new();
            compressed(&values, [1, 19][rng.usize(..2)], &mut frame);
            for _ in 0..rng.usize(1..4) {
                let at = rng.usize(..frame.len());
                frame[at] = rng.u8(..);
            }
            let (mut ours, mut theirs) = (Vec::new(), Vec::new());
            let len = values.len();
            let ours_are = Frames::new(&frame).and_then(|_| decompress(&frame, len, &mut ours));
            theirs.reserve_exact(len);
            let theirs_are = library::decompress(&frame, len, &mut theirs);
            assert!(ours.len() <= len, "seed {seed}, case {case}");
            match (ours_are, theirs_are) {
                (Ok(()), Ok(())) => {
                    assert!(ours == theirs, "seed {seed}, case {case}");
                    same += 1;
                }
                // Each takes some frames that break a rule.
                _ => refused += 1,
            }
        }
        assert!(same > 0 && refused > 0, "seed {seed}: {same} and {refused}");
    }

    #[test]
    fn a_wrong_checksum_is_an_error() {
        // Magic number; descriptor with a checksum and a size of one byte; the size; one raw block,
        // the last one, of one byte; the checksum of that byte.
        let mut frame = vec![0x28, 0xB5, 0x2F, 0xFD, 0x24, 1, 9, 0, 0, b'a'];
        let hash = twox_hash::XxHash64::oneshot(0, b"a") as u32;
        frame.extend_from_slice(&hash.to_le_bytes());
        let mut out = Vec::new();
        decompress(&frame, 1, &mut out).unwrap();
        assert_eq!(out, b"a");
        *frame.last_mut().unwrap() ^= 1;
        let error = decompress(&frame, 1, &mut Vec::new()).unwrap_err();
        assert_eq!(error.kind(), crate::error::ErrorKind::Malformed(SPEC), "{error}");
    }

    #[test]
    fn the_window_is_counted_as_far_as_the_frame_can_fill_it() {
        // A window of 2 MiB, and one byte in it.
        let frame = [0x28, 0xB5, 0x2F, 0xFD, 0, 11 << 3, 9, 0, 0, b'a'];
        assert!(working_bytes(&frame) < 1 << 20);
        let mut large = Vec::new();
        compressed(&vec![7; 4 << 20], 1, &mut large);
        assert!(working_bytes(&large) > 2 << 20);
    }
}
