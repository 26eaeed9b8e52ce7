//! The definition: byte `k` of value `i` is byte `i` of stream `k`.

use std::mem::MaybeUninit;

/// Writes the values from `from` on: all of `out`.
#[inline]
pub(super) fn transpose<const K: usize>(
    streams: &[&[u8]; K],
    from: usize,
    out: &mut [MaybeUninit<[u8; K]>],
) {
    for (i, value) in (from..).zip(out) {
        value.write(std::array::from_fn(|k| streams[k][i]));
    }
}
