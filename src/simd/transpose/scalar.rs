//! The definition: byte `k` of value `i` is byte `i` of stream `k`.

/// Appends the values from `from` on.
#[inline]
pub(super) fn transpose<const K: usize>(streams: &[&[u8]; K], from: usize, out: &mut Vec<[u8; K]>) {
    let n = streams.first().map_or(0, |stream| stream.len());
    out.extend((from..n).map(|i| std::array::from_fn(|k| streams[k][i])));
}
