//! ZSTD: frames of RFC 8878, skippable ones among them.

use zstd_safe::{DCtx, InBuffer, OutBuffer};

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
