//! DELTA_BYTE_ARRAY: each value as the length that it shares with the one before, and the rest.
//!
//! Spec: Encodings.md, "Delta Strings". Used by `read::leaf` for BYTE_ARRAY and FIXED_LEN_BYTE_ARRAY.
//!
//! ```text
//! | prefix lengths, DELTA_BINARY_PACKED of INT32 | suffixes, DELTA_LENGTH_BYTE_ARRAY |
//! ```
//!
//! Trap: a page of some bytes can spell out gigabytes, as every value may repeat the one before: what is spelled out is counted first.

use bytes::Bytes;

use super::{Span, delta_binary, delta_length};
use crate::error::{Error, LimitKind, Result, Spec};
use crate::simd::spans::join;

const SPEC: Spec = Spec::Encodings("DELTA_BYTE_ARRAY");

/// The number of values that a page says it has.
///
/// # Errors
/// `Malformed` if the header is broken.
pub fn stated_len(bytes: &[u8]) -> Result<usize> {
    delta_binary::stated_len(bytes)
}

/// Spells out the values of a page.
#[derive(Debug)]
pub struct Decoder {
    prefixes: delta_binary::Decoder<i32>,
    suffixes: delta_length::Decoder,
    /// The values of the last read, end to end.
    values: Vec<u8>,
    /// The value before the next one.
    last: Vec<u8>,
    prefix_block: Vec<i32>,
    suffix_block: Vec<Span>,
}

impl Decoder {
    /// A decoder of `n` values. `previous` is what the first prefix refers to: nothing, but for files of old parquet-mr, where it is the last
    /// value of the page before (PARQUET-246).
    ///
    /// # Errors
    /// `Malformed` if the lengths are broken, or are not so many.
    pub fn new(bytes: Bytes, n: usize, previous: Option<Vec<u8>>) -> Result<Self> {
        let suffixes = bytes.slice(delta_binary::end_offset(&bytes)?..);
        let stated = delta_length::stated_len(&suffixes)?;
        if stated != n {
            return Err(Error::mismatch(SPEC, "suffixes", n, stated));
        }
        Ok(Self {
            prefixes: delta_binary::Decoder::new(bytes, n)?,
            suffixes: delta_length::Decoder::new(suffixes, n)?,
            values: Vec::new(),
            last: previous.unwrap_or_default(),
            prefix_block: Vec::new(),
            suffix_block: Vec::new(),
        })
    }

    /// What the spans of the last read lie in.
    pub fn buffer(&self) -> &[u8] {
        &self.values
    }

    /// The last value that was read or skipped.
    pub fn last_value(&self) -> &[u8] {
        &self.last
    }

    /// Spells out the next `n` values, and appends where they lie in [`Decoder::buffer`], which held others before.
    ///
    /// # Errors
    /// `Malformed` if there are fewer, or a prefix is longer than the value before; `Limit(Memory)` if they take more than `room` bytes. `out` is as it
    /// was then.
    pub fn read_spans(&mut self, n: usize, room: usize, out: &mut Vec<Span>) -> Result<()> {
        let before = out.len();
        let result = self.spell_out(n, room, out);
        if result.is_err() {
            out.truncate(before);
        }
        result
    }

    /// Skips the next `n` values: they are spelled out all the same, block by block, as a later one may refer to them.
    ///
    /// # Errors
    /// As [`Decoder::read_spans`], but for the room, of which there is enough.
    pub fn skip(&mut self, n: usize) -> Result<()> {
        let mut spans = Vec::new();
        for at in (0..n).step_by(SKIP_BLOCK) {
            spans.clear();
            self.read_spans((n - at).min(SKIP_BLOCK), usize::MAX, &mut spans)?;
        }
        Ok(())
    }

    fn spell_out(&mut self, n: usize, room: usize, out: &mut Vec<Span>) -> Result<()> {
        self.values.clear();
        self.prefix_block.clear();
        self.prefixes.read(n, &mut self.prefix_block)?;
        self.suffix_block.clear();
        self.suffixes.read_spans(n, &mut self.suffix_block)?;
        let total = self.total_len(room)?;
        let source = self.suffixes.buffer();
        // `total_len` has found every prefix to be within the value before, and all of it to be countable.
        join(
            &self.last,
            &self.prefix_block,
            source,
            &self.suffix_block,
            total,
            &mut self.values,
            out,
        );
        if let Some(last) = out.last().filter(|_| n > 0) {
            self.last.clear();
            self.last.extend_from_slice(last.slice(&self.values));
        }
        Ok(())
    }

    /// Bytes of the values of a block, every prefix checked.
    fn total_len(&self, room: usize) -> Result<usize> {
        let mut previous = self.last.len() as u64;
        let mut total = 0u64;
        for (&prefix, suffix) in self.prefix_block.iter().zip(&self.suffix_block) {
            let Some(shared) = u64::try_from(prefix).ok().filter(|prefix| *prefix <= previous)
            else {
                return Err(Error::mismatch(
                    SPEC,
                    "length of a prefix",
                    format_args!("0 to {previous}, which the value before has"),
                    prefix,
                ));
            };
            previous = shared + u64::from(suffix.len);
            total = total.saturating_add(previous);
        }
        // Half of 32 bits, so that the value before can lie in front of them.
        let most = (room as u64).min(u64::from(u32::MAX / 2));
        if total > most {
            return Err(too_long(total, room));
        }
        Ok(usize::try_from(total).unwrap_or(usize::MAX))
    }
}

/// Values spelled out at a time where they are skipped.
const SKIP_BLOCK: usize = 256;

#[cold]
fn too_long(total: u64, room: usize) -> Error {
    Error::limit(
        LimitKind::Memory,
        format_args!("the values of a DELTA_BYTE_ARRAY block take {total} bytes, {room} are left"),
    )
}

/// Encodes values.
///
/// # Panics
/// If a value is longer than `i32::MAX`.
pub fn encode<V: AsRef<[u8]>>(values: &[V]) -> Vec<u8> {
    let mut previous: &[u8] = &[];
    let (mut prefixes, mut suffixes) = (Vec::new(), Vec::new());
    for value in values {
        let value = value.as_ref();
        let shared = value.iter().zip(previous).take_while(|(a, b)| a == b).count();
        prefixes.push(i32::try_from(shared).expect("a value of at most 2 GiB"));
        suffixes.push(value.get(shared..).unwrap_or_default());
        previous = value;
    }
    let mut out = delta_binary::encode(&prefixes);
    out.extend(delta_length::encode(&suffixes));
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    fn read_all(decoder: &mut Decoder, n: usize) -> Vec<Vec<u8>> {
        let mut spans = Vec::new();
        decoder.read_spans(n, usize::MAX, &mut spans).unwrap();
        spans.iter().map(|span| span.slice(decoder.buffer()).to_vec()).collect()
    }

    #[test]
    fn example_of_the_specification() {
        let values = ["axis", "axle", "babble", "babyhood"];
        let bytes = encode(&values);
        assert!(bytes.ends_with(b"axislebabbleyhood"));
        let mut decoder = Decoder::new(bytes.into(), 4, None).unwrap();
        assert_eq!(read_all(&mut decoder, 4), values.map(|v| v.as_bytes().to_vec()));
        assert_eq!(decoder.last_value(), b"babyhood");
    }

    #[test]
    fn round_trip_with_skips() {
        let seed = 18;
        let mut rng = fastrand::Rng::with_seed(seed);
        let values: Vec<Vec<u8>> =
            (0..2000).map(|_| (0..rng.usize(0..12)).map(|_| rng.u8(0..2)).collect()).collect();
        let mut decoder = Decoder::new(encode(&values).into(), values.len(), None).unwrap();
        let mut at = 0;
        while at < values.len() {
            let n = rng.usize(0..=(values.len() - at).min(600));
            if rng.bool() {
                decoder.skip(n).unwrap();
            } else {
                assert_eq!(read_all(&mut decoder, n), values[at..at + n], "seed {seed}");
            }
            at += n;
        }
        assert!(decoder.skip(1).is_err());
    }

    #[test]
    fn old_pages_refer_to_the_page_before() {
        let mut bytes = delta_binary::encode(&[3, 2]);
        bytes.extend(delta_length::encode(&["x", "y"]));
        let bytes = Bytes::from(bytes);
        let mut decoder = Decoder::new(bytes.clone(), 2, Some(b"abcdef".to_vec())).unwrap();
        assert_eq!(read_all(&mut decoder, 2), [b"abcx".to_vec(), b"aby".to_vec()]);
        let error =
            Decoder::new(bytes, 2, None).unwrap().read_spans(2, 100, &mut Vec::new()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Malformed(SPEC), "there is no value before the first");
    }

    #[test]
    fn a_page_that_spells_out_more_than_there_is_room_for_is_refused() {
        let n = 100_000;
        let prefixes: Vec<i32> = (0..n).collect();
        let suffixes = vec!["x"; n as usize];
        let mut bytes = delta_binary::encode(&prefixes);
        bytes.extend(delta_length::encode(&suffixes));
        let mut decoder = Decoder::new(bytes.into(), n as usize, None).unwrap();
        let error = decoder.read_spans(n as usize, 1 << 20, &mut Vec::new()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Limit(LimitKind::Memory));
    }
}
