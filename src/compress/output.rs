//! Allocates the memory that a codec decompresses into. The size that a page states may be a lie,
//! so memory is allocated as data arrive, or within what the codec can expand to.

use crate::error::{Error, LimitKind, Result};

/// Initial capacity for `len` bytes from `input_len` bytes of input: enough for usual data. `len`
/// may be a lie, so a codec that can expand without bound allocates the rest only once that much
/// has been decompressed.
pub(crate) fn first_capacity(input_len: usize, len: usize) -> usize {
    len.min(input_len.saturating_mul(32).max(1 << 20))
}

/// Bytes that the decoder of SNAPPY may write beyond its output. A vector without memory for them
/// is made anew.
pub(crate) const SLACK: usize = 80;

/// Empties `out`, and reserves memory for `len` bytes if there is not as much.
pub(super) fn clear_with_capacity(out: &mut Vec<u8>, len: usize) -> Result<()> {
    out.clear();
    if out.capacity() < len {
        // First what was there goes: the two together would be more than was reserved.
        *out = Vec::new();
        out.try_reserve_exact(len).map_err(|_| no_memory(len))?;
    }
    Ok(())
}

#[cold]
pub(super) fn no_memory(len: usize) -> Error {
    Error::limit(
        LimitKind::Memory,
        format_args!("the system has no memory for a page of {len} bytes, uncompressed"),
    )
}

/// Makes `out` exactly `len` bytes long, to be overwritten, if the codec can expand `input` to that
/// length.
///
/// `ratio` is the maximum number of bytes that one byte of input can expand to.
pub(super) fn exact_len(
    input: &[u8],
    len: usize,
    ratio: usize,
    name: &'static str,
    out: &mut Vec<u8>,
) -> Result<()> {
    check_ratio(input, len, ratio, name)?;
    set_len(out, len)
}

/// Checks that `input` can become `len` bytes, if each of its bytes becomes at most `ratio`.
pub(super) fn check_ratio(
    input: &[u8],
    len: usize,
    ratio: usize,
    name: &'static str,
) -> Result<()> {
    let max = input.len().saturating_mul(ratio).saturating_add(64);
    if len > max {
        return Err(Error::mismatch(
            crate::error::Spec::Compression(name),
            "uncompressed size",
            format_args!("at most {max}, which {} bytes can become", input.len()),
            len,
        ));
    }
    Ok(())
}

/// Makes `out` exactly `len` bytes long, to be written over.
pub(super) fn set_len(out: &mut Vec<u8>, len: usize) -> Result<()> {
    if out.capacity() < len {
        clear_with_capacity(out, len)?;
    }
    out.resize(len, 0);
    Ok(())
}

/// Reads a stream to its end, or to one byte more than is wanted.
///
/// Where usual data would have ended, and more bytes come, the size is no lie: the stream is read
/// anew into all of the memory. To grow it on the way would take up to twice as much.
pub(super) fn read_stream<R: std::io::Read>(
    stream: impl Fn() -> R,
    input_len: usize,
    len: usize,
    name: &'static str,
    out: &mut Vec<u8>,
) -> Result<()> {
    use std::io::Read;
    let mut max_bytes = first_capacity(input_len, len);
    loop {
        clear_with_capacity(out, max_bytes.saturating_add(1))?;
        stream().take(max_bytes as u64 + 1).read_to_end(out).map_err(|e| match e.kind() {
            std::io::ErrorKind::OutOfMemory => no_memory(len),
            _ => Error::malformed(
                crate::error::Spec::Compression(name),
                format_args!("the stream is broken: {e}"),
            ),
        })?;
        if out.len() <= max_bytes || max_bytes == len {
            return Ok(());
        }
        max_bytes = len;
    }
}
