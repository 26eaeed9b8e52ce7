//! DELTA_LENGTH_BYTE_ARRAY: stores the lengths of all values, then their bytes.
//!
//! Spec: Encodings.md, "Delta-length byte array". Used by `read::column`, and by DELTA_BYTE_ARRAY
//! for its suffixes.
//!
//! ```text
//! | lengths, DELTA_BINARY_PACKED of INT32 | the bytes of all values, end to end |
//! ```
//!
//! Trap: only decoding all lengths tells where the bytes begin.

use bytes::Bytes;

use super::{EndToEnd, ValueSpan, delta_binary};
use crate::error::{Error, Result, Spec};
use crate::memory;
use crate::simd::lengths;

const SPEC: Spec = Spec::Encodings("DELTA_LENGTH_BYTE_ARRAY");

/// Finds the values of a page.
#[derive(Debug)]
pub(crate) struct Decoder {
    lengths: delta_binary::Decoder<i32>,
    payload: Bytes,
    /// Where the next value begins in the payload.
    next: usize,
    scratch: Vec<i32>,
}

/// Values decoded at a time.
pub(super) const BLOCK: usize = 1024;

impl Decoder {
    /// A decoder of `n` values.
    ///
    /// # Errors
    /// `Malformed` if the lengths are broken, or if there are not `n` of them.
    pub(crate) fn new(bytes: Bytes, n: usize) -> Result<Self> {
        let payload = bytes.slice(delta_binary::end_offset(&bytes)?..);
        if u32::try_from(payload.len()).is_err() {
            return Err(Error::mismatch(
                SPEC,
                "bytes of the page",
                "at most 32 bits",
                payload.len(),
            ));
        }
        let lengths = delta_binary::Decoder::new(bytes, n)?;
        Ok(Self { lengths, payload, next: 0, scratch: Vec::new() })
    }

    /// The buffer that the spans refer to.
    pub(crate) fn buffer(&self) -> &Bytes {
        &self.payload
    }

    /// Appends where the next `n` values lie.
    ///
    /// # Errors
    /// `Malformed` if there are fewer, or one reaches beyond the page; `out` is as it was then.
    pub(crate) fn read_spans(&mut self, n: usize, out: &mut Vec<ValueSpan>) -> Result<()> {
        let before = out.len();
        memory::room(out, n)?;
        let walked = self.walk(n, |span| out.push(span));
        if walked.is_err() {
            out.truncate(before);
        }
        walked
    }

    /// Skips the next `n` values.
    ///
    /// # Errors
    /// As [`Decoder::read_spans`].
    pub(crate) fn skip(&mut self, n: usize) -> Result<()> {
        self.walk(n, |_| {})
    }

    /// The next `n` values, or the next 1,024 if these are fewer.
    ///
    /// # Errors
    /// As [`Decoder::read_spans`].
    pub(crate) fn read_block(&mut self, n: usize) -> Result<EndToEnd<'_>> {
        self.scratch.clear();
        self.lengths.read(n.min(BLOCK), &mut self.scratch)?;
        // All of them at once: none negative, and together no more than there is.
        let max_bytes = (self.payload.len() - self.next) as u64;
        let Some(total) = lengths::sum(&self.scratch).filter(|total| *total <= max_bytes) else {
            return Err(self.bad_length(max_bytes));
        };
        #[expect(
            clippy::cast_possible_truncation,
            reason = "below the length of the payload, which 32 bits can count"
        )]
        let (start, total) = (self.next as u32, total as u32);
        self.next += total as usize;
        Ok(EndToEnd {
            lengths: &self.scratch,
            total,
            source: &self.payload,
            start,
            page: Some(&self.payload),
        })
    }

    fn walk(&mut self, n: usize, mut visit: impl FnMut(ValueSpan)) -> Result<()> {
        let mut left = n;
        while left > 0 {
            let block = self.read_block(left)?;
            block.spans().for_each(&mut visit);
            left -= block.lengths.len();
        }
        Ok(())
    }

    /// The error for a block of lengths that do not fit into `max_bytes` bytes.
    #[cold]
    fn bad_length(&self, max_bytes: u64) -> Error {
        let mut max_bytes = max_bytes;
        for &len in &self.scratch {
            match u64::try_from(len).ok().and_then(|len| max_bytes.checked_sub(len)) {
                Some(left) => max_bytes = left,
                None => {
                    return Error::mismatch(
                        SPEC,
                        "length of a value",
                        format_args!("0 to {max_bytes}"),
                        len,
                    );
                }
            }
        }
        Error::malformed(SPEC, "the lengths do not fit the page")
    }
}

/// Appends values: all lengths, DELTA_BINARY_PACKED of INT32, then all bytes. Spec: Encodings.md,
/// "Delta-length byte array".
///
/// # Panics
/// If a value is longer than `i32::MAX`.
#[cfg(test)]
pub(crate) fn encode_into<V: AsRef<[u8]>>(values: &[V], out: &mut Vec<u8>) {
    let lengths: Vec<i32> = values.iter().map(|value| length(value.as_ref())).collect();
    encode_pieces_into(&lengths, values.iter().map(AsRef::as_ref), out);
}

/// Like [`encode_into`], for values of these lengths whose bytes, one after the other, come in any
/// pieces.
pub(crate) fn encode_pieces_into<'a>(
    lengths: &[i32],
    pieces: impl Iterator<Item = &'a [u8]>,
    out: &mut Vec<u8>,
) {
    delta_binary::encode_into(lengths, out);
    let bytes: i64 = lengths.iter().map(|len| i64::from(*len)).sum();
    out.reserve(usize::try_from(bytes).expect("no length is negative"));
    pieces.for_each(|piece| out.extend_from_slice(piece));
}

/// The length of a value, as the format counts it.
pub(super) fn length(value: &[u8]) -> i32 {
    i32::try_from(value.len()).expect("a value of at most 2 GiB")
}

/// Encodes values with the slow twin of the lengths.
///
/// # Panics
/// If a value is longer than `i32::MAX`.
#[cfg(test)]
pub(crate) fn encode<V: AsRef<[u8]>>(values: &[V]) -> Vec<u8> {
    let lengths: Vec<i32> = values.iter().map(|value| length(value.as_ref())).collect();
    let mut out = delta_binary::encode(&lengths);
    values.iter().for_each(|value| out.extend_from_slice(value.as_ref()));
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn example_of_the_specification() {
        // "Hello", "World", "Foobar", "ABCDEF": lengths 5, 5, 6, 6 and then the bytes.
        let values = ["Hello", "World", "Foobar", "ABCDEF"];
        let bytes = encode(&values);
        assert!(bytes.ends_with(b"HelloWorldFoobarABCDEF"));
        let mut decoder = Decoder::new(bytes.into(), 4).unwrap();
        let mut spans = Vec::new();
        decoder.read_spans(4, &mut spans).unwrap();
        let got: Vec<&[u8]> = spans.iter().map(|span| span.slice(decoder.buffer())).collect();
        assert_eq!(got, values.map(str::as_bytes));
    }

    #[test]
    fn round_trip_with_skips() {
        let seed = 17;
        let mut rng = fastrand::Rng::with_seed(seed);
        let values: Vec<Vec<u8>> =
            (0..3000).map(|_| (0..rng.usize(0..20)).map(|_| rng.u8(..)).collect()).collect();
        let mut decoder = Decoder::new(encode(&values).into(), values.len()).unwrap();
        let mut at = 0;
        while at < values.len() {
            let n = rng.usize(0..=(values.len() - at).min(1500));
            if rng.bool() {
                decoder.skip(n).unwrap();
            } else {
                let mut spans = Vec::new();
                decoder.read_spans(n, &mut spans).unwrap();
                for (span, value) in spans.iter().zip(&values[at..]) {
                    assert_eq!(span.slice(decoder.buffer()), value, "seed {seed}");
                }
            }
            at += n;
        }
        assert!(decoder.skip(1).is_err());
    }

    #[test]
    fn lengths_that_are_negative_or_too_long_are_malformed() {
        for lengths in [[3, -1, 1], [1, 1, 2]] {
            let mut bytes = delta_binary::encode(&lengths);
            bytes.extend(b"abc");
            let mut decoder = Decoder::new(bytes.into(), 3).unwrap();
            let mut spans = Vec::new();
            let error = decoder.read_spans(3, &mut spans).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Malformed(SPEC));
            assert!(spans.is_empty());
        }
    }

    #[test]
    fn a_count_that_lies_is_found_when_read_and_allocates_nothing() {
        // A header of 2^31 - 1 lengths, without any block.
        let bytes = [0x80, 0x01, 0x04, 0xFF, 0xFF, 0xFF, 0xFF, 0x07, 0x02];
        assert!(Decoder::new(Bytes::copy_from_slice(&bytes), i32::MAX as usize).is_err());
    }

    #[test]
    fn values_are_as_the_slow_twin_writes_them() {
        let seed = 73;
        let mut rng = fastrand::Rng::with_seed(seed);
        for n in [0, 1, 2, 33, 129, 1000] {
            let equal = vec![b"same".to_vec(); n];
            let random: Vec<Vec<u8>> =
                (0..n).map(|_| (0..rng.usize(0..90)).map(|_| rng.u8(..)).collect()).collect();
            for values in [equal, random, vec![Vec::new(); n]] {
                let mut bytes = vec![9];
                encode_into(&values, &mut bytes);
                assert_eq!(bytes[1..], encode(&values), "n {n} seed {seed}");
                let bytes = Bytes::from(bytes).slice(1..);
                let mut decoder = Decoder::new(bytes, n).unwrap();
                let mut spans = Vec::new();
                decoder.read_spans(n, &mut spans).unwrap();
                for (span, value) in spans.iter().zip(&values) {
                    assert_eq!(span.slice(decoder.buffer()), value, "n {n} seed {seed}");
                }
            }
        }
    }
}
