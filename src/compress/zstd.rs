//! ZSTD: frames of RFC 8878, skippable ones among them.

use zstd_safe::{CCtx, CParameter, DCtx, InBuffer, OutBuffer};

use super::first_room;
use crate::error::{Error, Result, Spec};

pub(super) struct Decoder(DCtx<'static>);

impl Decoder {
    pub(super) fn new() -> Result<Self> {
        DCtx::try_create().map(Self).ok_or_else(|| {
            Error::limit(crate::error::LimitKind::Memory, "no memory for the tables of ZSTD")
        })
    }

    pub(super) fn decompress(&mut self, input: &[u8], len: usize, out: &mut Vec<u8>) -> Result<()> {
        out.clear();
        if first_room(input.len(), len) < len {
            return self.stream(input, len, out);
        }
        out.reserve_exact(len);
        // Frames are read one after the other until the input ends; the bytes go into the unused capacity.
        self.0.decompress(out, input).map(drop).map_err(broken)
    }

    /// Takes memory as data arrive, for a size that may be a lie.
    fn stream(&mut self, input: &[u8], len: usize, out: &mut Vec<u8>) -> Result<()> {
        self.0.reset(zstd_safe::ResetDirective::SessionOnly).map_err(broken)?;
        let mut source = InBuffer::around(input);
        loop {
            if out.len() == out.capacity() {
                if out.len() > len {
                    break;
                }
                out.reserve(out.len().max(1 << 20).min(len + 1 - out.len()));
            }
            let before = (out.len(), source.pos());
            let filled = out.len();
            let mut target = OutBuffer::around_pos(out, filled);
            let hint = self.0.decompress_stream(&mut target, &mut source).map_err(broken)?;
            let stuck = (out.len(), source.pos()) == before;
            if source.pos() == input.len() && (hint == 0 || stuck) {
                if hint != 0 {
                    return Err(Error::malformed(
                        Spec::Compression("ZSTD"),
                        "the last frame ends early",
                    ));
                }
                break;
            }
            if stuck && out.len() < out.capacity() {
                return Err(Error::malformed(
                    Spec::Compression("ZSTD"),
                    "a frame makes no progress",
                ));
            }
        }
        Ok(())
    }
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
        let mut context = CCtx::try_create().ok_or_else(|| {
            Error::limit(crate::error::LimitKind::Memory, "no memory for the tables of ZSTD")
        })?;
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
        out.reserve(zstd_safe::compress_bound(input.len()) + 16);
        let start = out.len();
        let mut target = OutBuffer::around_pos(out, start);
        self.context.set_pledged_src_size(Some(input.len() as u64)).map_err(refused)?;
        let (first, rest) = input.split_at(apart.min(input.len()));
        let mut put = |part: &[u8], directive| {
            let mut source = InBuffer::around(part);
            match self.context.compress_stream2(&mut target, &mut source, directive) {
                Ok(0) => Ok(()),
                Ok(_) => Err(Error::usage("ZSTD wants more room than its bound")),
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
