//! Byte transposes: the streams of BYTE_STREAM_SPLIT to values.
//!
//! Blocks of values are gathered stream by stream; the compiler makes byte shuffles of the constant strides.

/// Appends values `first` to `first + n` of `K` bytes from `K` streams of `len` bytes each, laid end to end in `bytes`.
///
/// # Panics
/// If the streams are not whole, or the values not in them.
pub fn transpose<const K: usize>(
    bytes: &[u8],
    len: usize,
    first: usize,
    n: usize,
    out: &mut Vec<[u8; K]>,
) {
    assert!(bytes.len() == len * K && first + n <= len, "values lie within the streams");
    let mut streams = [&bytes[..0]; K];
    for (k, stream) in streams.iter_mut().enumerate() {
        *stream = &bytes[k * len + first..k * len + first + n];
    }
    out.reserve(n);
    const BLOCK: usize = 32;
    let mut at = 0;
    while at + BLOCK <= n {
        let mut block = [[0u8; K]; BLOCK];
        for (k, stream) in streams.iter().enumerate() {
            let part: &[u8; BLOCK] = stream[at..].first_chunk().expect("a whole block is left");
            for (value, byte) in block.iter_mut().zip(part) {
                value[k] = *byte;
            }
        }
        out.extend_from_slice(&block);
        at += BLOCK;
    }
    out.extend((at..n).map(|i| {
        let mut value = [0; K];
        for (byte, stream) in value.iter_mut().zip(&streams) {
            *byte = stream[i];
        }
        value
    }));
}

/// As [`transpose`] for a width that is known only at run time, as bytes.
///
/// # Panics
/// If the streams are not whole, or the values not in them.
pub fn transpose_any(
    bytes: &[u8],
    width: usize,
    len: usize,
    first: usize,
    n: usize,
    out: &mut Vec<u8>,
) {
    assert!(bytes.len() == len * width && first + n <= len, "values lie within the streams");
    let start = out.len();
    out.resize(start + n * width, 0);
    let target = &mut out[start..];
    // By blocks of values, so that what is written stays in the cache.
    for at in (0..n).step_by(64) {
        let block = (n - at).min(64);
        for k in 0..width {
            let from = k * len + first + at;
            for (i, byte) in bytes[from..from + block].iter().enumerate() {
                target[(at + i) * width + k] = *byte;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<const K: usize>() {
        let len = 150;
        let values: Vec<[u8; K]> =
            (0..len).map(|i| std::array::from_fn(|k| (i * 7 + k * 13) as u8)).collect();
        let streams: Vec<u8> = (0..K).flat_map(|k| values.iter().map(move |v| v[k])).collect();
        for (first, n) in [(0, 0), (0, len), (3, 31), (5, 32), (7, 100), (149, 1)] {
            let mut out = vec![[9; K]];
            transpose::<K>(&streams, len, first, n, &mut out);
            assert_eq!(out[1..], values[first..first + n]);
            let mut any = vec![9];
            transpose_any(&streams, K, len, first, n, &mut any);
            assert_eq!(any[1..], *values[first..first + n].as_flattened());
        }
    }

    #[test]
    fn values_come_back_together() {
        check::<1>();
        check::<2>();
        check::<4>();
        check::<5>();
        check::<8>();
        check::<16>();
    }
}
