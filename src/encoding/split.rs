//! BYTE_STREAM_SPLIT: stores the first bytes of all values, then the second bytes, and so on.
//!
//! Spec: Encodings.md, "Byte Stream Split". Used by `read::column` for words and for
//! FIXED_LEN_BYTE_ARRAY.
//!
//! ```text
//! byte j of value i lies at j * n + i; there is no padding
//! ```
//!
//! Trap: n is the number of values that are stored, so it follows from the length, and must agree
//! with the page.

use bytes::Bytes;

use super::too_few_values;
use crate::error::{Error, Result, Spec};
use crate::memory;
use crate::simd::native;
use crate::simd::transpose::{split, transpose_any};

const SPEC: Spec = Spec::Encodings("BYTE_STREAM_SPLIT");

/// A word of 4 or 8 bytes.
pub(crate) trait SplitWord: Copy {
    /// Appends values `first` to `first + n` of `len` from their streams.
    fn append(bytes: &[u8], len: usize, first: usize, n: usize, out: &mut Vec<Self>);
}

macro_rules! native {
    ($word:ty) => {
        impl SplitWord for $word {
            fn append(bytes: &[u8], len: usize, first: usize, n: usize, out: &mut Vec<Self>) {
                native::append_transposed::<Self, { size_of::<Self>() }>(bytes, len, first, n, out);
            }
        }
    };
}
native!(i32);
native!(i64);

/// Decodes the values of a page.
#[derive(Debug)]
pub(crate) struct Decoder {
    bytes: Bytes,
    width: usize,
    next: usize,
    n: usize,
}

impl Decoder {
    /// A decoder of `n` values of `width` bytes.
    ///
    /// # Errors
    /// `Malformed` if the page is not exactly as long as they are.
    pub(crate) fn new(bytes: Bytes, width: usize, n: usize) -> Result<Self> {
        if width.checked_mul(n) != Some(bytes.len()) {
            return Err(Error::mismatch(
                SPEC,
                "bytes of the values",
                format_args!("{n} times {width}"),
                bytes.len(),
            ));
        }
        Ok(Self { bytes, width, next: 0, n })
    }

    /// Appends the bytes of the next `n` values.
    ///
    /// # Errors
    /// `Malformed` if there are fewer.
    pub(crate) fn read(&mut self, n: usize, out: &mut Vec<u8>) -> Result<()> {
        let first = self.advance(n)?;
        memory::room(out, n * self.width)?;
        transpose_any(&self.bytes, self.width, self.n, first, n, out);
        Ok(())
    }

    /// Appends the next `n` values as words.
    ///
    /// # Errors
    /// `Malformed` if there are fewer, or the width is not that of the word.
    pub(crate) fn read_into<T: SplitWord>(&mut self, n: usize, out: &mut Vec<T>) -> Result<()> {
        if self.width != size_of::<T>() {
            return Err(Error::mismatch(SPEC, "bytes of a value", size_of::<T>(), self.width));
        }
        let first = self.advance(n)?;
        memory::room(out, n)?;
        T::append(&self.bytes, self.n, first, n, out);
        Ok(())
    }

    /// Skips the next `n` values.
    ///
    /// # Errors
    /// `Malformed` if there are fewer.
    pub(crate) fn skip(&mut self, n: usize) -> Result<()> {
        self.advance(n).map(drop)
    }

    fn advance(&mut self, n: usize) -> Result<usize> {
        let left = self.n - self.next;
        if n > left {
            return Err(too_few_values(SPEC, n, left));
        }
        self.next += n;
        Ok(self.next - n)
    }
}

/// Appends values of `width` bytes each, laid end to end, as their streams: byte `j` of value `i`
/// at `j * n + i`. Spec: Encodings.md, "Byte Stream Split".
///
/// # Panics
/// If the last value is not whole.
pub(crate) fn encode_into(values: &[u8], width: usize, out: &mut Vec<u8>) {
    split(values, width, out);
}

/// Encodes values of `width` bytes each, laid end to end: the twin of [`encode_into`] that tests
/// read by.
#[cfg(test)]
pub(crate) fn encode(values: &[u8], width: usize) -> Vec<u8> {
    (0..width).flat_map(|k| values.iter().skip(k).step_by(width).copied()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn example_of_the_specification() {
        // Three values AABBCCDD 00112233 A3B4C5D6.
        let bytes = [0xAA, 0x00, 0xA3, 0xBB, 0x11, 0xB4, 0xCC, 0x22, 0xC5, 0xDD, 0x33, 0xD6];
        let values = [0xAA, 0xBB, 0xCC, 0xDD, 0x00, 0x11, 0x22, 0x33, 0xA3, 0xB4, 0xC5, 0xD6];
        let mut out = Vec::new();
        Decoder::new(Bytes::copy_from_slice(&bytes), 4, 3).unwrap().read(3, &mut out).unwrap();
        assert_eq!(out, values);
        assert_eq!(encode(&values, 4), bytes);
    }

    #[test]
    fn round_trip_of_words_and_odd_widths_with_skips() {
        let n = 3000;
        let words: Vec<i64> = (0..n).map(|i| i * -987_654_321_987).collect();
        let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
        let mut decoder = Decoder::new(encode(&bytes, 8).into(), 8, n as usize).unwrap();
        let mut out = Vec::<i64>::new();
        decoder.skip(7).unwrap();
        decoder.read_into(100, &mut out).unwrap();
        decoder.read_into(n as usize - 107, &mut out).unwrap();
        assert_eq!(out, words[7..]);
        assert!(decoder.skip(1).is_err());
        for width in [1, 2, 3, 5, 12, 16] {
            let len = bytes.len() / width;
            let bytes = &bytes[..len * width];
            let mut decoder = Decoder::new(encode(bytes, width).into(), width, len).unwrap();
            let mut out = Vec::new();
            decoder.skip(5).unwrap();
            decoder.read(len - 5, &mut out).unwrap();
            assert_eq!(out, bytes[5 * width..]);
        }
    }

    #[test]
    fn page_of_another_length_is_malformed() {
        for len in [11, 13] {
            let error = Decoder::new(vec![0; len].into(), 4, 3).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Malformed(SPEC));
        }
        assert!(Decoder::new(Bytes::new(), 8, usize::MAX).is_err());
    }

    #[test]
    fn streams_are_as_the_slow_twin_writes_them() {
        let seed = 76;
        let mut rng = fastrand::Rng::with_seed(seed);
        for width in [1, 2, 3, 4, 5, 7, 8, 12, 16, 17, 32] {
            for n in [0, 1, 15, 16, 17, 63, 64, 65, 1000] {
                let values: Vec<u8> = (0..n * width).map(|_| rng.u8(..)).collect();
                let mut bytes = vec![9];
                encode_into(&values, width, &mut bytes);
                assert_eq!(bytes[1..], encode(&values, width), "width {width} n {n} seed {seed}");
                let bytes = Bytes::from(bytes).slice(1..);
                let mut out = Vec::new();
                Decoder::new(bytes, width, n).unwrap().read(n, &mut out).unwrap();
                assert_eq!(out, values, "width {width} n {n} seed {seed}");
            }
        }
        let mut bytes = vec![];
        encode_into(&[], 0, &mut bytes);
        assert!(bytes.is_empty());
    }
}
