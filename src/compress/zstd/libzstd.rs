//! The library of ZSTD itself, in C.

use std::cell::RefCell;

use zstd_safe::{CCtx, CParameter, DCtx, OutBuffer};

use super::frames::broken;
use crate::error::{Error, Result};
use crate::memory;

thread_local! {
    /// One for each thread, because a context takes some 100 KiB, and a read has hundreds of open
    /// column chunks. Whole pages are decompressed at a time, so that it never has a window.
    static CONTEXT: RefCell<Option<DCtx<'static>>> = const { RefCell::new(None) };
}

/// Appends the bytes of the frames to `out`, which has the memory for them.
pub(super) fn decompress(input: &[u8], _: usize, out: &mut Vec<u8>) -> Result<()> {
    CONTEXT.with_borrow_mut(|context| {
        let context = match context {
            Some(context) => context,
            empty => empty.insert(DCtx::try_create().ok_or_else(no_tables)?),
        };
        // Frames are read one after the other until the input ends; the bytes go into the unused
        // capacity.
        let failed = |code| broken(zstd_safe::get_error_name(code));
        context.decompress(out, input).map(drop).map_err(failed)
    })
}

/// Bytes of memory beside the output: none that depend on the input.
pub(super) fn working_bytes(_: &[u8]) -> usize {
    0
}

#[cold]
fn no_tables() -> Error {
    Error::limit(crate::error::LimitKind::Memory, "no memory for the tables of ZSTD")
}

pub(in crate::compress) struct Encoder {
    context: CCtx<'static>,
}

impl Encoder {
    pub(in crate::compress) fn new(level: i32) -> Result<Self> {
        let mut context = CCtx::try_create().ok_or_else(no_tables)?;
        context.set_parameter(CParameter::CompressionLevel(level)).map_err(refused)?;
        Ok(Self { context })
    }

    /// Appends one frame, which states its size.
    pub(in crate::compress) fn compress(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<()> {
        self.compress_apart(input, &[], out)
    }

    /// As `compress`; what lies between two of `cuts`, which rise, has blocks, and so tables, of
    /// its own.
    pub(in crate::compress) fn compress_apart(
        &mut self,
        input: &[u8],
        cuts: &[usize],
        out: &mut Vec<u8>,
    ) -> Result<()> {
        use zstd_safe::zstd_sys::ZSTD_EndDirective::{ZSTD_e_end, ZSTD_e_flush};
        // The bound does not count on blocks that end early.
        memory::room(out, zstd_safe::compress_bound(input.len()) + 16 * (cuts.len() + 1))?;
        let start = out.len();
        let mut target = OutBuffer::around_pos(out, start);
        self.context.set_pledged_src_size(Some(input.len() as u64)).map_err(refused)?;
        let mut put = |part: &[u8], directive| {
            let mut source = zstd_safe::InBuffer::around(part);
            match self.context.compress_stream2(&mut target, &mut source, directive) {
                Ok(0) => Ok(()),
                Ok(_) => Err(Error::internal("ZSTD wants more room than its bound")),
                Err(code) => Err(refused(code)),
            }
        };
        let (mut rest, mut start) = (input, 0);
        for &cut in cuts {
            let (part, after) = rest.split_at(cut.saturating_sub(start).min(rest.len()));
            (rest, start) = (after, start.max(cut));
            if !part.is_empty() {
                put(part, ZSTD_e_flush)?;
            }
        }
        put(rest, ZSTD_e_end)
    }
}

#[cold]
fn refused(code: usize) -> Error {
    Error::usage(format_args!("ZSTD refuses: {}", zstd_safe::get_error_name(code)))
}
