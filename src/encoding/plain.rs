//! PLAIN: stores values one after the other.
//!
//! Spec: Encodings.md, "Plain". Used by `read::column` for data pages and for every dictionary
//! page.
//!
//! ```text
//! BOOLEAN                        1 bit each, the first in the lowest
//! INT32, INT64, FLOAT, DOUBLE    4 or 8 bytes, little-endian
//! INT96, FIXED_LEN_BYTE_ARRAY    12 bytes, or the length of the type
//! BYTE_ARRAY                     u32le length, then as many bytes
//! ```
//!
//! Trap: the number of values is not stored; it follows from the levels, or from the end of the
//! bytes.

use bytes::Bytes;

use super::{ValueSpan, too_few_values};
use crate::bytes::Cursor;
use crate::error::{Error, Result, Spec};
use crate::memory;
#[cfg(test)]
use crate::simd::bitmap;
use crate::simd::bitmap::Bitmap;
use crate::simd::native;
pub(crate) use crate::simd::native::Native;
use crate::simd::spans::{Walk, plain_views};
use crate::simd::strings::{OffsetInt, append_plain};

const SPEC: Spec = Spec::Encodings("PLAIN");

/// Checks that `bytes` has `n` values of `width` bytes; returns how many bytes that is.
fn checked_len(bytes: &Bytes, width: usize, n: usize) -> Result<usize> {
    n.checked_mul(width).filter(|len| *len <= bytes.len()).ok_or_else(|| {
        Error::mismatch(SPEC, "bytes of the values", format_args!("{n} times {width}"), bytes.len())
    })
}

/// Decodes words: INT32, INT64, FLOAT and DOUBLE as their bits.
#[derive(Debug)]
pub(crate) struct Fixed<T> {
    bytes: Bytes,
    /// The first byte of the next value: to split the bytes would count references at each read,
    /// and where a filter leaves rows, a read may be of a single value.
    next: usize,
    native: std::marker::PhantomData<T>,
}

impl<T: Native> Fixed<T> {
    /// A decoder of `n` values.
    ///
    /// # Errors
    /// `Malformed` if the bytes are too few for them.
    pub(crate) fn new(mut bytes: Bytes, n: usize) -> Result<Self> {
        let len = checked_len(&bytes, size_of::<T>(), n)?;
        bytes.truncate(len);
        Ok(Self { bytes, next: 0, native: std::marker::PhantomData })
    }

    /// Appends the next `n` values.
    ///
    /// # Errors
    /// `Malformed` if there are fewer.
    pub(crate) fn read(&mut self, n: usize, out: &mut Vec<T>) -> Result<()> {
        let bytes = self.take(n)?;
        memory::room(out, n)?;
        native::append_le(bytes, out);
        Ok(())
    }

    /// Skips the next `n` values.
    ///
    /// # Errors
    /// `Malformed` if there are fewer.
    pub(crate) fn skip(&mut self, n: usize) -> Result<()> {
        self.take(n).map(drop)
    }

    /// Values that are left.
    pub(crate) fn left(&self) -> usize {
        (self.bytes.len() - self.next) / size_of::<T>()
    }

    fn take(&mut self, n: usize) -> Result<&[u8]> {
        let left = self.left();
        if n > left {
            return Err(too_few_values(SPEC, n, left));
        }
        let start = self.next;
        self.next += n * size_of::<T>();
        Ok(&self.bytes[start..self.next])
    }
}

/// Decodes values of a fixed number of bytes: INT96 and FIXED_LEN_BYTE_ARRAY.
#[derive(Debug)]
pub(crate) struct FixedBytes {
    bytes: Bytes,
    width: usize,
    left: usize,
}

impl FixedBytes {
    /// A decoder of `n` values of `width` bytes, which may be 0.
    ///
    /// # Errors
    /// `Malformed` if the bytes are too few for them.
    pub(crate) fn new(bytes: Bytes, width: usize, n: usize) -> Result<Self> {
        checked_len(&bytes, width, n)?;
        Ok(Self { bytes, width, left: n })
    }

    /// Appends the bytes of the next `n` values.
    ///
    /// # Errors
    /// `Malformed` if there are fewer.
    pub(crate) fn read(&mut self, n: usize, out: &mut Vec<u8>) -> Result<()> {
        memory::append(out, &self.take(n)?)
    }

    /// Skips the next `n` values.
    ///
    /// # Errors
    /// `Malformed` if there are fewer.
    pub(crate) fn skip(&mut self, n: usize) -> Result<()> {
        self.take(n).map(drop)
    }

    fn take(&mut self, n: usize) -> Result<Bytes> {
        self.left = self.left.checked_sub(n).ok_or_else(|| too_few_values(SPEC, n, self.left))?;
        // `new` has checked that all of them are there.
        Ok(self.bytes.split_to(n * self.width))
    }
}

/// Decodes BOOLEAN.
#[derive(Debug)]
pub(crate) struct PlainBooleans {
    bytes: Bytes,
    next: usize,
    n: usize,
}

impl PlainBooleans {
    /// A decoder of `n` values.
    ///
    /// # Errors
    /// `Malformed` if the bytes are too few for them.
    pub(crate) fn new(bytes: Bytes, n: usize) -> Result<Self> {
        if n.div_ceil(8) > bytes.len() {
            return Err(Error::mismatch(SPEC, "bytes of the values", n.div_ceil(8), bytes.len()));
        }
        Ok(Self { bytes, next: 0, n })
    }

    /// Appends the next `n` values.
    ///
    /// # Errors
    /// `Malformed` if there are fewer.
    pub(crate) fn read(&mut self, n: usize, out: &mut Bitmap) -> Result<()> {
        let start = self.next;
        self.skip(n)?;
        out.append_bits(&self.bytes, start, n);
        Ok(())
    }

    /// Skips the next `n` values.
    ///
    /// # Errors
    /// `Malformed` if there are fewer.
    pub(crate) fn skip(&mut self, n: usize) -> Result<()> {
        if n > self.n - self.next {
            return Err(too_few_values(SPEC, n, self.n - self.next));
        }
        self.next += n;
        Ok(())
    }
}

/// Values that were read as views, and where the decoder stood before.
#[derive(Debug)]
pub(crate) struct PlainBlock {
    next: usize,
    left: usize,
    /// The measurements of the values.
    pub walk: Walk,
}

/// Where a decoder stood.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PlainPosition {
    next: usize,
    left: usize,
}

/// Finds the values of BYTE_ARRAY.
#[derive(Debug)]
pub(crate) struct ByteArrays {
    bytes: Bytes,
    /// Offset in `bytes` of the first byte that is not read yet.
    next: usize,
    left: usize,
}

impl ByteArrays {
    /// A decoder of at most `n` values.
    ///
    /// # Errors
    /// `Malformed` if the bytes cannot hold `n` lengths, or are longer than a 32-bit offset can
    /// address.
    pub(crate) fn new(bytes: Bytes, n: usize) -> Result<Self> {
        checked_len(&bytes, size_of::<u32>(), n)?;
        if u32::try_from(bytes.len()).is_err() {
            return Err(Error::mismatch(SPEC, "bytes of the page", "at most 32 bits", bytes.len()));
        }
        Ok(Self { bytes, next: 0, left: n })
    }

    /// The buffer that the spans refer to.
    pub(crate) fn buffer(&self) -> &Bytes {
        &self.bytes
    }

    /// Appends where the next `n` values lie.
    ///
    /// # Errors
    /// `Malformed` if there are fewer, or a length reaches beyond the page; `out` is as it was
    /// then.
    pub(crate) fn read_spans(&mut self, n: usize, out: &mut Vec<ValueSpan>) -> Result<()> {
        let before = out.len();
        memory::room(out, n)?;
        out.resize(before + n, ValueSpan::default());
        let mut slots = out.get_mut(before..).expect("it has just grown").iter_mut();
        let walked = self.walk(n, |span| {
            if let Some(slot) = slots.next() {
                *slot = span;
            }
        });
        if walked.is_err() {
            out.truncate(before);
        }
        walked
    }

    /// Appends the views of the next `n` values as those of buffer `buffer`, and returns their
    /// measurements; `None`, and nothing is read, if there are fewer or one reaches beyond the page
    /// ([`ByteArrays::read_spans`] reports where).
    pub(crate) fn read_views(
        &mut self,
        n: usize,
        buffer: u32,
        out: &mut Vec<u128>,
    ) -> Option<PlainBlock> {
        let left = self.left.checked_sub(n)?;
        let walk = plain_views(&self.bytes, self.next, n, buffer, out)?;
        let block = PlainBlock { next: self.next, left: self.left, walk };
        (self.next, self.left) = (walk.next, left);
        Some(block)
    }

    /// Appends payload and ends of the next `n` values, and returns how many it were: up to the
    /// first that does not fit into the capacity of `payload` less some slack, would end beyond
    /// `max`, or is not there.
    pub(crate) fn read_strings<O: OffsetInt>(
        &mut self,
        n: usize,
        max: usize,
        payload: &mut Vec<u8>,
        ends: &mut Vec<O>,
    ) -> usize {
        let n = n.min(self.left);
        let mean = self.mean();
        let walked = append_plain(&self.bytes, self.next, n, mean, max, payload, ends);
        self.next = walked.next;
        self.left -= walked.n;
        walked.n
    }

    /// Bytes of a value, as far as is known: the mean of those that are left, if all that were
    /// announced are there.
    pub(crate) fn mean(&self) -> usize {
        let rest = self.bytes.len() - self.next;
        (rest / self.left.max(1)).saturating_sub(size_of::<u32>())
    }

    /// The position of the decoder.
    pub(crate) fn mark(&self) -> PlainPosition {
        PlainPosition { next: self.next, left: self.left }
    }

    /// Goes back to where the decoder stood.
    pub(crate) fn restart_carefully(&mut self, mark: PlainPosition) {
        (self.next, self.left) = (mark.next, mark.left);
    }

    /// The bytes of a block, lengths included.
    pub(crate) fn bytes_of(&self, block: &PlainBlock) -> &[u8] {
        self.bytes.get(block.next..block.walk.next).expect("the walk went through the page")
    }

    /// Goes back to before a block, which is then read anew.
    pub(crate) fn unread(&mut self, block: &PlainBlock) {
        (self.next, self.left) = (block.next, block.left);
    }

    /// Whether the next `n` values are there as a whole.
    pub(crate) fn holds(&self, n: usize) -> bool {
        let mut rest = self.bytes.get(self.next..).expect("values end within the page");
        n <= self.left
            && (0..n).all(|_| {
                let Some((len, after)) = rest.split_first_chunk::<4>() else { return false };
                let after = after.get(u32::from_le_bytes(*len) as usize..);
                after.is_some_and(|after| {
                    rest = after;
                    true
                })
            })
    }

    /// Skips the next `n` values.
    ///
    /// # Errors
    /// `Malformed` if there are fewer, or a length reaches beyond the page.
    pub(crate) fn skip(&mut self, n: usize) -> Result<()> {
        self.walk(n, |_| {})
    }

    /// Walks from length to length, because each length locates the next one.
    #[inline(always)]
    fn walk(&mut self, n: usize, mut visit: impl FnMut(ValueSpan)) -> Result<()> {
        self.left = self.left.checked_sub(n).ok_or_else(|| too_few_values(SPEC, n, self.left))?;
        let bytes = &self.bytes[..];
        let mut rest = bytes.get(self.next..).expect("values end within the page");
        for _ in 0..n {
            let at = bytes.len() - rest.len();
            let Some((len, after)) = rest.split_first_chunk::<4>() else {
                return Err(self.cut(at));
            };
            let len = u32::from_le_bytes(*len);
            let Some((_, after)) = after.split_at_checked(len as usize) else {
                return Err(self.cut(at));
            };
            // The page is at most 4 GiB: `new` has checked it.
            #[expect(
                clippy::cast_possible_truncation,
                reason = "below the length of the page, which 32 bits can count"
            )]
            visit(ValueSpan { start: (at + size_of::<u32>()) as u32, len });
            rest = after;
        }
        self.next = bytes.len() - rest.len();
        Ok(())
    }

    /// The error for a value at `at` that is not whole, found by reading it again.
    #[cold]
    fn cut(&self, at: usize) -> Error {
        let rest = self.bytes.get(at..).expect("values end within the page");
        match Cursor::new(rest, SPEC).prefixed() {
            Err(error) => error,
            Ok(_) => too_few_values(SPEC, 1, 0),
        }
    }
}

/// Appends BYTE_ARRAY values: `u32le` length, then as many bytes. Spec: Encodings.md, "Plain".
///
/// # Panics
/// If a value is longer than `i32::MAX`, which is what readers take.
pub(crate) fn encode_bytes_into<V: AsRef<[u8]>>(values: &[V], out: &mut Vec<u8>) {
    let total: usize = values.iter().map(|value| size_of::<u32>() + value.as_ref().len()).sum();
    out.reserve(total);
    for value in values {
        let value = value.as_ref();
        let len = i32::try_from(value.len()).expect("a value of at most 2 GiB");
        out.extend_from_slice(&len.to_le_bytes());
        out.extend_from_slice(value);
    }
}

/// Like [`encode_bytes_into`], for values that lie end to end: value `i` from `ends[i]` to
/// `ends[i + 1]` of `bytes`.
///
/// # Panics
/// If the ends fall, or lie beyond the bytes.
pub(crate) fn encode_between_into<O: Copy + Into<i64>>(
    bytes: &[u8],
    ends: &[O],
    out: &mut Vec<u8>,
) {
    let place = |end: O| usize::try_from(end.into()).expect("an end is never negative");
    let (Some(&first), Some(&last)) = (ends.first(), ends.last()) else {
        return;
    };
    let lengths = (ends.len() - 1) * size_of::<u32>();
    out.reserve(place(last) - place(first) + lengths + MIDDLE);
    for pair in ends.windows(2) {
        let [start, end] = pair else { continue };
        let value = bytes.get(place(*start)..place(*end)).expect("ends rise to that of the bytes");
        let len = i32::try_from(value.len()).expect("a value of at most 2 GiB");
        out.extend_from_slice(&len.to_le_bytes());
        let rest = bytes.get(place(*start)..).expect("the value was there");
        // A copy of a known length is a few instructions; the excess is truncated.
        let whole = out.len() + value.len();
        if let (true, Some(chunk)) = (value.len() <= SHORT, rest.first_chunk::<SHORT>()) {
            out.extend_from_slice(chunk);
            out.truncate(whole);
        } else if let (true, Some(chunk)) = (value.len() <= MIDDLE, rest.first_chunk::<MIDDLE>()) {
            out.extend_from_slice(chunk);
            out.truncate(whole);
        } else {
            out.extend_from_slice(value);
        }
    }
}

/// Bytes of a value up to which more are copied than it has: in one of two lengths.
const SHORT: usize = 32;
const MIDDLE: usize = 64;

/// Appends BOOLEAN values: `n` bits that begin at bit `offset` of `bits`, the last byte padded with
/// zeros. Spec: Encodings.md, "Plain".
///
/// # Panics
/// If `bits` has fewer than `offset + n` bits.
#[cfg(test)]
pub(crate) fn encode_bits_into(bits: &[u8], offset: usize, n: usize, out: &mut Vec<u8>) {
    bitmap::append_aligned(bits, offset, n, out);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn words_are_little_endian_at_any_alignment() {
        let values: Vec<i64> = (0..100).map(|i| i * -1_000_000_007).collect();
        let mut bytes = vec![0u8; 3];
        bytes.extend(values.iter().flat_map(|v| v.to_le_bytes()));
        let mut decoder = Fixed::<i64>::new(Bytes::from(bytes).slice(3..), 100).unwrap();
        decoder.skip(10).unwrap();
        let mut out = vec![1];
        decoder.read(90, &mut out).unwrap();
        assert_eq!(out[1..], values[10..]);
        assert_eq!(decoder.read(1, &mut out).unwrap_err().kind(), ErrorKind::Malformed(SPEC));
    }

    #[test]
    fn booleans_around_a_byte() {
        for n in [0, 1, 7, 8, 9, 15, 16, 17, 63, 64, 65] {
            let bits: Vec<bool> = (0..n).map(|i| i % 3 == 0).collect();
            let mut bytes = vec![0u8; (n as usize).div_ceil(8)];
            bits.iter().enumerate().for_each(|(i, &bit)| bytes[i / 8] |= u8::from(bit) << (i % 8));
            let mut decoder = PlainBooleans::new(bytes.into(), n as usize).unwrap();
            let skip = n as usize / 3;
            decoder.skip(skip).unwrap();
            let mut out = Bitmap::default();
            decoder.read(n as usize - skip, &mut out).unwrap();
            let got: Vec<bool> = (0..out.len()).map(|i| out.get(i)).collect();
            assert_eq!(got, bits[skip..]);
            assert!(decoder.skip(1).is_err());
        }
    }

    #[test]
    fn byte_arrays_lie_behind_their_lengths() {
        let values = ["", "a", "longer than twelve bytes", "", "x"];
        let mut bytes = Vec::new();
        for value in values {
            bytes.extend((value.len() as u32).to_le_bytes());
            bytes.extend(value.as_bytes());
        }
        let mut decoder = ByteArrays::new(bytes.clone().into(), 5).unwrap();
        let mut spans = Vec::new();
        decoder.skip(1).unwrap();
        decoder.read_spans(4, &mut spans).unwrap();
        let got: Vec<&[u8]> = spans.iter().map(|span| span.slice(decoder.buffer())).collect();
        assert_eq!(got, values[1..].iter().map(|v| v.as_bytes()).collect::<Vec<_>>());
        for cut in 20..bytes.len() {
            let mut decoder = ByteArrays::new(Bytes::copy_from_slice(&bytes[..cut]), 5).unwrap();
            let error = decoder.read_spans(5, &mut spans).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Malformed(SPEC));
            assert_eq!(spans.len(), 4);
        }
    }

    #[test]
    fn no_more_strings_are_read_than_were_announced() {
        let bytes: Vec<u8> = b"abc".iter().flat_map(|byte| [1, 0, 0, 0, *byte]).collect();
        let mut decoder = ByteArrays::new(bytes.into(), 2).unwrap();
        let mut payload = Vec::with_capacity(1_000);
        let mut ends: Vec<i32> = Vec::with_capacity(10);
        assert_eq!(decoder.read_strings(1, 1_000, &mut payload, &mut ends), 1);
        assert_eq!(decoder.read_strings(5, 1_000, &mut payload, &mut ends), 1);
        assert_eq!((payload, ends), (b"ab".to_vec(), vec![1, 2]));
    }

    #[test]
    fn counts_that_the_bytes_cannot_hold_are_malformed() {
        let bytes = Bytes::from_static(&[0; 12]);
        assert!(Fixed::<i32>::new(bytes.clone(), 4).is_err());
        assert!(Fixed::<i64>::new(bytes.clone(), usize::MAX).is_err());
        assert!(FixedBytes::new(bytes.clone(), 12, 2).is_err());
        assert!(FixedBytes::new(bytes.clone(), 0, 1 << 40).is_ok());
        assert!(PlainBooleans::new(bytes.clone(), 97).is_err());
        assert!(ByteArrays::new(bytes, 4).is_err());
    }

    #[test]
    fn encoded_values_come_back() {
        let seed = 75;
        let mut rng = fastrand::Rng::with_seed(seed);
        for n in [0, 1, 2, 100] {
            let values: Vec<Vec<u8>> =
                (0..n).map(|_| (0..rng.usize(0..40)).map(|_| rng.u8(..)).collect()).collect();
            let mut bytes = Vec::new();
            encode_bytes_into(&values, &mut bytes);
            let len = bytes.len();
            let mut decoder = ByteArrays::new(bytes.into(), n).unwrap();
            let mut spans = Vec::new();
            decoder.read_spans(n, &mut spans).unwrap();
            assert_eq!(decoder.next, len);
            for (span, value) in spans.iter().zip(&values) {
                assert_eq!(span.slice(decoder.buffer()), value, "n {n} seed {seed}");
            }
        }
        let mut bytes = vec![];
        encode_bytes_into(&["ab", ""], &mut bytes);
        assert_eq!(bytes, b"\x02\0\0\0ab\0\0\0\0");
        for longest in [3, 40, 100] {
            let source: Vec<u8> = (0..3_000).map(|_| rng.u8(..)).collect();
            let mut ends = vec![rng.i32(0..9)];
            while ends[ends.len() - 1] + longest < 3_000 {
                ends.push(ends[ends.len() - 1] + rng.i32(0..=longest));
            }
            ends.push(3_000);
            let values = ends.windows(2).map(|pair| &source[pair[0] as usize..pair[1] as usize]);
            let (mut between, mut expected) = (Vec::new(), Vec::new());
            encode_bytes_into(&values.collect::<Vec<_>>(), &mut expected);
            encode_between_into(&source, &ends, &mut between);
            assert_eq!(between, expected, "longest {longest} seed {seed}");
        }
        let source: Vec<u8> = (0..20).map(|_| rng.u8(..)).collect();
        for offset in 0..20 {
            for n in [0, 1, 7, 8, 9, 64, 65, 140] {
                let mut bytes = vec![];
                encode_bits_into(&source, offset, n, &mut bytes);
                assert_eq!(bytes.len(), n.div_ceil(8));
                let (mut out, mut expected) = (Bitmap::default(), Bitmap::default());
                PlainBooleans::new(bytes.into(), n).unwrap().read(n, &mut out).unwrap();
                expected.append_bits(&source, offset, n);
                assert_eq!(out, expected, "offset {offset} n {n} seed {seed}");
            }
        }
        let mut bytes = vec![];
        encode_bits_into(&[0xFF, 0xFF], 3, 10, &mut bytes);
        assert_eq!(bytes, [0xFF, 0x03]);
    }
}
