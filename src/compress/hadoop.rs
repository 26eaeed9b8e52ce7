//! Parses the framing of Hadoop's block codecs.
//!
//! ```text
//! stream   = section*
//! section  = uncompressed size u32be, block*        until the blocks have become that many bytes
//! block    = compressed size u32be, compressed bytes
//! ```

/// Decompresses a stream of sections to exactly `out`; `None` if it is not one, or a block is
/// broken.
///
/// `block` decompresses one block into the front of a slice, and returns how many bytes it became.
pub(super) fn sections(
    input: &[u8],
    out: &mut [u8],
    mut block: impl FnMut(&[u8], &mut [u8]) -> Option<usize>,
) -> Option<()> {
    let (mut rest, mut written) = (input, 0usize);
    while !rest.is_empty() {
        let mut left = take_u32(&mut rest)?;
        while left > 0 {
            let compressed = take_u32(&mut rest)?;
            let (bytes, after) = rest.split_at_checked(compressed)?;
            rest = after;
            let target = out.get_mut(written..written.checked_add(left)?)?;
            let n = block(bytes, target)?;
            if n == 0 {
                return None;
            }
            written += n;
            left = left.checked_sub(n)?;
        }
    }
    (written == out.len()).then_some(())
}

fn take_u32(rest: &mut &[u8]) -> Option<usize> {
    let (size, after) = rest.split_first_chunk::<4>()?;
    *rest = after;
    usize::try_from(u32::from_be_bytes(*size)).ok()
}
