//! ZSTD: a page is a sequence of frames of RFC 8878, which may include skippable frames.

use std::cell::RefCell;

use zstd_safe::{CCtx, CParameter, DCtx, OutBuffer};

use super::output::clear_with_capacity;
use crate::bytes::Cursor;
use crate::error::{Error, Result, Spec};
use crate::memory;

const SPEC: Spec = Spec::Compression("ZSTD");

thread_local! {
    /// One for each thread, because a context takes some 100 KiB, and a read has hundreds of open
    /// column chunks. Whole pages are decompressed at a time, so that it never has a window.
    static CONTEXT: RefCell<Option<DCtx<'static>>> = const { RefCell::new(None) };
}

pub(super) struct Decoder;

impl Decoder {
    pub(super) fn new() -> Result<Self> {
        Ok(Self)
    }

    pub(super) fn decompress(&mut self, input: &[u8], len: usize, out: &mut Vec<u8>) -> Result<()> {
        let max = max_bytes(input)?;
        if max < len as u64 {
            return Err(Error::mismatch(
                SPEC,
                "uncompressed size",
                format_args!("at most {max}, which is what the blocks of the frames can become"),
                len,
            ));
        }
        clear_with_capacity(out, len)?;
        CONTEXT.with_borrow_mut(|context| {
            let context = match context {
                Some(context) => context,
                empty => empty.insert(DCtx::try_create().ok_or_else(no_tables)?),
            };
            // Frames are read one after the other until the input ends; the bytes go into the
            // unused capacity.
            context.decompress(out, input).map(drop).map_err(broken)
        })
    }
}

/// Bytes that the frames become at most: what each states, if it does, and no more than its blocks
/// can: they state their sizes too, or are compressed, and become at most 128 KiB. Nothing is
/// decompressed to know it, so that a page that lies about its size takes no memory.
///
/// ```text
/// frame  = FD2FB528, descriptor, [window], [dictionary id], [content size], block*, [checksum]
/// block  = u24le: last 1 bit, type 2 bits, size 21 bits; then the bytes, or one byte for a run
/// skip   = 184D2A5?, u32le n, n bytes
/// ```
fn max_bytes(input: &[u8]) -> Result<u64> {
    let mut cursor = Cursor::new(input, SPEC);
    let mut total = 0u64;
    while !cursor.is_empty() {
        let magic = cursor.u32()?;
        if magic & 0xFFFF_FFF0 == 0x184D_2A50 {
            cursor.prefixed()?;
            continue;
        }
        if magic != 0xFD2F_B528 {
            return Err(Error::malformed(SPEC, "a frame does not begin with its magic number"));
        }
        let descriptor = cursor.u8()?;
        let single_segment = descriptor & 0x20 != 0;
        let dictionary_id = [0, 1, 2, 4][usize::from(descriptor & 3)];
        cursor.skip(usize::from(!single_segment) + dictionary_id)?;
        let stated = match descriptor >> 6 {
            0 if single_segment => u64::from(cursor.u8()?),
            0 => u64::MAX,
            1 => u64::from(cursor.u16()?) + 256,
            2 => u64::from(cursor.u32()?),
            _ => cursor.u64()?,
        };
        let mut of_blocks = 0u64;
        loop {
            let [a, b, c] = cursor.array::<3>()?;
            let header = u32::from_le_bytes([a, b, c, 0]);
            let size = header >> 3;
            let (stored, max) = match header >> 1 & 3 {
                0 => (size, size),
                1 => (1, size),
                2 => (size, BLOCK),
                _ => return Err(Error::malformed(SPEC, "a block is of the reserved type")),
            };
            cursor.skip(stored as usize)?;
            of_blocks = of_blocks.saturating_add(u64::from(max.min(BLOCK)));
            if header & 1 != 0 {
                break;
            }
        }
        // Encoders may cut blocks short, so that what the frame states is less.
        total = total.saturating_add(of_blocks.min(stated));
        cursor.skip(if descriptor & 4 != 0 { 4 } else { 0 })?;
    }
    Ok(total)
}

/// The most bytes that a block can become.
const BLOCK: u32 = 128 << 10;

#[cold]
fn no_tables() -> Error {
    Error::limit(crate::error::LimitKind::Memory, "no memory for the tables of ZSTD")
}

#[cold]
fn broken(code: usize) -> Error {
    Error::malformed(
        Spec::Compression("ZSTD"),
        format_args!("the frame is broken: {}", zstd_safe::get_error_name(code)),
    )
}

pub(super) struct Encoder {
    context: CCtx<'static>,
}

impl Encoder {
    pub(super) fn new(level: i32) -> Result<Self> {
        let mut context = CCtx::try_create().ok_or_else(no_tables)?;
        context.set_parameter(CParameter::CompressionLevel(level)).map_err(refused)?;
        Ok(Self { context })
    }

    /// Appends one frame, which states its size.
    pub(super) fn compress(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<()> {
        self.compress_apart(input, 0, out)
    }

    /// As `compress`; the first `apart` bytes have blocks, and so tables, of their own.
    pub(super) fn compress_apart(
        &mut self,
        input: &[u8],
        apart: usize,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        use zstd_safe::zstd_sys::ZSTD_EndDirective::{ZSTD_e_end, ZSTD_e_flush};
        // The bound does not count on a block that ends early.
        memory::room(out, zstd_safe::compress_bound(input.len()) + 16)?;
        let start = out.len();
        let mut target = OutBuffer::around_pos(out, start);
        self.context.set_pledged_src_size(Some(input.len() as u64)).map_err(refused)?;
        let (first, rest) = input.split_at(apart.min(input.len()));
        let mut put = |part: &[u8], directive| {
            let mut source = zstd_safe::InBuffer::around(part);
            match self.context.compress_stream2(&mut target, &mut source, directive) {
                Ok(0) => Ok(()),
                Ok(_) => Err(Error::internal("ZSTD wants more room than its bound")),
                Err(code) => Err(refused(code)),
            }
        };
        if !first.is_empty() {
            put(first, ZSTD_e_flush)?;
        }
        put(rest, ZSTD_e_end)
    }
}

#[cold]
fn refused(code: usize) -> Error {
    Error::usage(format_args!("ZSTD refuses: {}", zstd_safe::get_error_name(code)))
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
                    let max = max_bytes(&frame).unwrap();
                    assert_eq!(max, len as u64, "{len} {kind}");
                    all.extend_from_slice(&frame);
                    all.extend_from_slice(&[0x53, 0x2A, 0x4D, 0x18, 2, 0, 0, 0, 9, 9]);
                    bytes += len;
                }
            }
        }
        assert!(max_bytes(&all).unwrap() >= bytes as u64, "frame after frame");
        for end in (0..200).map(|_| rng.usize(1..all.len())) {
            // Whatever it says, it ends.
            let _ = max_bytes(&all[..end]);
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
