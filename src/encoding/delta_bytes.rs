//! DELTA_BYTE_ARRAY: stores of each value the length of the prefix that it shares with the previous
//! value, and its suffix.
//!
//! Spec: Encodings.md, "Delta Strings". Used by `read::column` for BYTE_ARRAY and
//! FIXED_LEN_BYTE_ARRAY.
//!
//! ```text
//! | prefix lengths, DELTA_BINARY_PACKED of INT32 | suffixes, DELTA_LENGTH_BYTE_ARRAY |
//! ```
//!
//! Trap: a page of some bytes can stand for gigabytes, because every value may repeat the one
//! before. So bytes are counted before values are built.

use bytes::Bytes;

use super::{EndToEnd, delta_binary, delta_length};
use crate::error::{Error, LimitKind, Result, Spec};
use crate::memory;
use crate::simd::join::{Rests, join};
use crate::simd::lengths;

const SPEC: Spec = Spec::Encodings("DELTA_BYTE_ARRAY");

/// Decodes the values of a page, each with its whole prefix.
#[derive(Debug)]
pub(crate) struct Decoder {
    prefixes: delta_binary::Decoder<i32>,
    suffixes: delta_length::Decoder,
    /// The values of the last read, end to end.
    values: Vec<u8>,
    /// The value before the next one.
    last: Vec<u8>,
    /// Prefixes that were read, and how many of them are used.
    prefix_block: Vec<i32>,
    prefixes_used: usize,
    /// Lengths of the values of the last read.
    lengths: Vec<i32>,
    /// Maximum bytes of a value that is read.
    longest: usize,
}

impl Decoder {
    /// A decoder of `n` values. `previous` is the value that the first prefix refers to: none,
    /// except in files of old parquet-mr, where it is the last value of the previous page
    /// (PARQUET-246).
    ///
    /// # Errors
    /// `Malformed` if the lengths are broken, or if there are not `n` of them.
    pub(crate) fn new(bytes: Bytes, n: usize, previous: Option<Vec<u8>>) -> Result<Self> {
        let suffixes = bytes.slice(delta_binary::end_offset(&bytes)?..);
        let stated = delta_binary::stated_len(&suffixes)?;
        if stated != n {
            return Err(Error::mismatch(SPEC, "suffixes", n, stated));
        }
        Ok(Self {
            prefixes: delta_binary::Decoder::new(bytes, n)?,
            suffixes: delta_length::Decoder::new(suffixes, n)?,
            values: Vec::new(),
            // The first value follows an empty one.
            last: previous.unwrap_or_default(),
            prefix_block: Vec::new(),
            prefixes_used: 0,
            lengths: Vec::new(),
            longest: usize::MAX,
        })
    }

    /// The same, but refuses to read values of more than `longest` bytes, before they are joined:
    /// where nothing is kept of a value but a number, no memory would limit how long they are.
    pub(crate) fn with_longest(mut self, longest: usize) -> Self {
        self.longest = longest;
        self
    }

    /// The buffer that the spans of the last read refer to.
    pub(crate) fn buffer(&self) -> &[u8] {
        &self.values
    }

    /// The last value that was read or skipped.
    pub(crate) fn last_value(&self) -> &[u8] {
        &self.last
    }

    /// Decodes the next `n` values, or fewer, in place of those of the last call: at most 1,024,
    /// and at least one, but no more after their prefixes have taken [`MAX_REPEATED`] bytes.
    ///
    /// # Errors
    /// `Malformed` if there are fewer values, or a prefix is longer than the previous value;
    /// `Limit(Memory)` if they take more than `max_bytes` bytes; `Unsupported` if one is longer
    /// than the longest that is read.
    pub(crate) fn read_block(&mut self, n: usize, max_bytes: usize) -> Result<EndToEnd<'_>> {
        self.fill_prefixes(n)?;
        let (prefixes, repeated) = few_enough(unused(&self.prefix_block, self.prefixes_used, n));
        self.prefixes_used += prefixes.len();
        let suffixes = self.suffixes.read_block(prefixes.len())?;
        let before = self.last.len();
        self.lengths.clear();
        memory::room(&mut self.lengths, prefixes.len())?;
        let whole = lengths::add(before, prefixes, suffixes.lengths, &mut self.lengths);
        let total = repeated + u64::from(suffixes.total);
        // Half of 32 bits, so that the value before can lie in front of them.
        let max = (max_bytes as u64).min(u64::from(u32::MAX / 2));
        if whole.bad_prefix || total > max {
            return Err(refused(before, prefixes, suffixes.lengths, max_bytes));
        }
        if whole.longest as usize > self.longest {
            return Err(longer(whole.longest, self.longest));
        }
        self.values.clear();
        let total = usize::try_from(total).expect("no more than half of 32 bits count");
        let rests = Rests {
            prefixes,
            suffixes: suffixes.lengths,
            source: suffixes.source,
            start: suffixes.start as usize,
        };
        memory::room_for_vectors(&mut self.values, before + total + JOINED)?;
        join(&self.last, rests, whole.longest, total, &mut self.values);
        let values = self.values.len();
        if let Some(len) = self.lengths.last() {
            let last = values - len.cast_unsigned() as usize;
            self.last.clear();
            memory::append(&mut self.last, self.values.get(last..).expect("the last of them"))?;
        }
        #[expect(clippy::cast_possible_truncation, reason = "each at most half of 32 bits")]
        let (start, total) = ((values - total) as u32, total as u32);
        Ok(EndToEnd { lengths: &self.lengths, total, source: &self.values, start, page: None })
    }

    /// Skips the next `n` values. Only the last is joined, because the next one may refer to it: of
    /// those before it, no more bytes are copied than the page has.
    ///
    /// # Errors
    /// `Malformed` if there are fewer values, or a prefix is longer than the previous value.
    pub(crate) fn skip(&mut self, n: usize) -> Result<()> {
        let mut left = n;
        while left > 0 {
            self.fill_prefixes(left)?;
            let prefixes = unused(&self.prefix_block, self.prefixes_used, left);
            let suffixes = self.suffixes.read_block(prefixes.len())?;
            let mut rest = suffixes.source.get(suffixes.start as usize..).unwrap_or_default();
            memory::room(&mut self.last, suffixes.total as usize)?;
            for (&prefix, &suffix) in prefixes.iter().zip(suffixes.lengths) {
                let shared = usize::try_from(prefix).ok().filter(|len| *len <= self.last.len());
                let Some(shared) = shared else { return Err(bad_prefix(prefix, self.last.len())) };
                // The lengths of a block are not negative, and no more than its bytes.
                let (suffix, after) =
                    rest.split_at_checked(suffix.cast_unsigned() as usize).unwrap_or((rest, &[]));
                self.last.truncate(shared);
                self.last.extend_from_slice(suffix);
                rest = after;
                #[cfg(test)]
                crate::steps::add(suffix.len());
            }
            let skipped = prefixes.len();
            self.prefixes_used += skipped;
            left -= skipped;
        }
        Ok(())
    }

    /// Decodes more prefixes if all are used, for the next `n` values.
    fn fill_prefixes(&mut self, n: usize) -> Result<()> {
        if self.prefixes_used == self.prefix_block.len() {
            self.prefix_block.clear();
            self.prefixes_used = 0;
            self.prefixes.read(n.min(delta_length::BLOCK), &mut self.prefix_block)?;
        }
        Ok(())
    }
}

/// Of the prefixes that are decoded, those that are not used, but at most `n`.
fn unused(prefixes: &[i32], used: usize, n: usize) -> &[i32] {
    let prefixes = prefixes.get(used..).unwrap_or_default();
    prefixes.get(..n).unwrap_or(prefixes)
}

/// Maximum bytes of prefixes that a block repeats, because a decoded block is scratch memory beside
/// the values that are kept.
const MAX_REPEATED: u64 = 1 << 20;

/// Bytes that joining may write beyond its last value.
const JOINED: usize = 128;

/// The first of the prefixes that together take no more than [`MAX_REPEATED`] bytes, but at least
/// one; and the bytes that they take.
fn few_enough(prefixes: &[i32]) -> (&[i32], u64) {
    let total = lengths::total(prefixes);
    if total <= MAX_REPEATED {
        return (prefixes, total);
    }
    let mut total = 0;
    let fit = prefixes.iter().take_while(|prefix| {
        total += u64::from(prefix.cast_unsigned());
        total <= MAX_REPEATED
    });
    let n = fit.count().max(1);
    let few = prefixes.get(..n).unwrap_or(prefixes);
    (few, lengths::total(few))
}

/// The error for a block that is not sound or not small enough.
#[cold]
fn refused(before: usize, prefixes: &[i32], suffixes: &[i32], max_bytes: usize) -> Error {
    let (mut previous, mut total) = (before as u64, 0u64);
    for (&prefix, &suffix) in prefixes.iter().zip(suffixes) {
        let Some(shared) = u64::try_from(prefix).ok().filter(|prefix| *prefix <= previous) else {
            return bad_prefix(prefix, previous);
        };
        previous = shared + u64::from(suffix.cast_unsigned());
        total += previous;
    }
    too_long(total, max_bytes)
}

#[cold]
fn bad_prefix(prefix: i32, previous: impl std::fmt::Display) -> Error {
    let expected = format_args!("0 to {previous}, which the value before has");
    Error::mismatch(SPEC, "length of a prefix", expected, prefix)
}

#[cold]
fn longer(found: u32, longest: usize) -> Error {
    Error::unsupported(
        "long values in DELTA_BYTE_ARRAY",
        format_args!(
            "a value of {found} bytes in a column whose values are read up to {longest} bytes; \
             without the column the rest can be read"
        ),
    )
}

#[cold]
fn too_long(total: u64, max_bytes: usize) -> Error {
    Error::limit(
        LimitKind::Memory,
        format_args!(
            "the values of a DELTA_BYTE_ARRAY block take {total} bytes, {max_bytes} are left; \
             raise Limits::memory_bytes to read on"
        ),
    )
}

/// Appends values: the lengths that each shares with the one before, DELTA_BINARY_PACKED of INT32,
/// then the rests, DELTA_LENGTH_BYTE_ARRAY. Spec: Encodings.md, "Delta Strings".
///
/// # Panics
/// If a value is longer than `i32::MAX`.
pub(crate) fn encode_into<V: AsRef<[u8]>>(values: &[V], out: &mut Vec<u8>) {
    let (mut prefixes, mut suffixes) = (Vec::new(), Vec::new());
    encode_all_into(values.iter().map(AsRef::as_ref), &mut prefixes, &mut suffixes, out);
}

/// Like [`encode_into`]; the lengths of prefixes and suffixes go through vectors of the caller's,
/// whose values they replace.
///
/// # Panics
/// If a value is longer than `i32::MAX`.
pub(crate) fn encode_all_into<'a>(
    values: impl Iterator<Item = &'a [u8]> + Clone,
    prefixes: &mut Vec<i32>,
    suffixes: &mut Vec<i32>,
    out: &mut Vec<u8>,
) {
    let mut previous: &[u8] = &[];
    prefixes.clear();
    suffixes.clear();
    // From inside of the iterator, here and below: it may have several parts.
    values.clone().for_each(|value| {
        let shared = shared_prefix(previous, value);
        // No longer than the value, whose own length is looked at as well.
        let len = delta_length::length(value);
        let prefix = value.get(..shared).expect("it shares no more than it has");
        let prefix = delta_length::length(prefix);
        prefixes.push(prefix);
        suffixes.push(len - prefix);
        previous = value;
    });
    delta_binary::encode_into(prefixes, out);
    delta_binary::encode_into(suffixes, out);
    let bytes: i64 = suffixes.iter().map(|len| i64::from(*len)).sum();
    out.reserve(usize::try_from(bytes).expect("no suffix is negative") + SHORT);
    let mut prefixes = prefixes.iter();
    values.for_each(|value| {
        let prefix = *prefixes.next().expect("one for each value");
        append_tail(value, usize::try_from(prefix).expect("none is negative"), out);
    });
}

/// The most bytes of a tail that is short.
const SHORT: usize = 16;

/// Appends the bytes from `start` on. Few of them are taken from the last of the value, which are
/// copied in one piece.
#[inline(always)]
fn append_tail(value: &[u8], start: usize, out: &mut Vec<u8>) {
    let tail = value.get(start..).expect("a value shares no more than it has");
    match value.last_chunk::<SHORT>() {
        Some(last) if tail.len() <= SHORT => {
            if !tail.is_empty() {
                let whole = out.len() + tail.len();
                let last = u128::from_le_bytes(*last) >> (8 * (SHORT - tail.len()));
                out.extend_from_slice(&last.to_le_bytes());
                out.truncate(whole);
            }
        }
        _ => match value.last_chunk::<8>() {
            Some(last) if !tail.is_empty() && tail.len() <= 8 => {
                let whole = out.len() + tail.len();
                let last = u64::from_le_bytes(*last) >> (8 * (8 - tail.len()));
                out.extend_from_slice(&last.to_le_bytes());
                out.truncate(whole);
            }
            _ => out.extend_from_slice(tail),
        },
    }
}

/// How many bytes from the first on are the same, 8 at a time.
#[inline]
fn shared_prefix(a: &[u8], b: &[u8]) -> usize {
    let max = a.len().min(b.len());
    let mut at = 0;
    while let (Some(x), Some(y)) = (word(a, at), word(b, at)) {
        let differ = x ^ y;
        if differ != 0 {
            // The first byte is the lowest.
            return at + differ.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    // The last bytes: with some that are known to be equal where there are 8, else one by one.
    match max.checked_sub(8).map(|from| (from, word(a, from), word(b, from))) {
        Some((from, Some(x), Some(y))) => max.min(from + (x ^ y).trailing_zeros() as usize / 8),
        _ => a.iter().zip(b).take_while(|(x, y)| x == y).count(),
    }
}

#[inline]
fn word(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().map(|word| u64::from_le_bytes(*word))
}

/// Encodes values byte by byte: the twin of [`encode_into`] that tests read by.
///
/// # Panics
/// If a value is longer than `i32::MAX`.
#[cfg(test)]
pub(crate) fn encode<V: AsRef<[u8]>>(values: &[V]) -> Vec<u8> {
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
        let mut values = Vec::new();
        while values.len() < n {
            let block = decoder.read_block(n - values.len(), usize::MAX).unwrap();
            values.extend(block.spans().map(|span| span.slice(block.source).to_vec()));
        }
        values
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
        let error = Decoder::new(bytes, 2, None).unwrap().read_block(2, 100).unwrap_err();
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
        let max_bytes = 1 << 19;
        let error = loop {
            match decoder.read_block(n as usize, max_bytes) {
                Ok(block) => assert!(block.total as usize <= max_bytes),
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind(), ErrorKind::Limit(LimitKind::Memory));
    }

    #[test]
    fn prefixes_are_joined_until_they_take_a_mebibyte() {
        let half = 1 << 19;
        assert_eq!(few_enough(&[half, half]).0.len(), 2);
        assert_eq!(few_enough(&[half, half, 0, 1]), (&[half, half, 0][..], MAX_REPEATED));
        assert_eq!(few_enough(&[half, half + 1]), (&[half][..], MAX_REPEATED / 2));
        assert_eq!(few_enough(&[3 * half, 1]), (&[3 * half][..], 3 * MAX_REPEATED / 2));
        assert_eq!(few_enough(&[]).0.len(), 0);
    }

    #[test]
    fn what_repeats_much_is_spelled_out_in_short_blocks() {
        let n = 3000usize;
        let prefixes: Vec<i32> = (0..n as i32).collect();
        let mut bytes = delta_binary::encode(&prefixes);
        bytes.extend(delta_length::encode(&vec!["x"; n]));
        for max in [1, 100, 1024, n] {
            let mut decoder = Decoder::new(bytes.clone().into(), n, None).unwrap();
            let mut done = 0;
            while done < n {
                let block = decoder.read_block(max.min(n - done), usize::MAX).unwrap();
                assert!((1..=max.min(1024)).contains(&block.lengths.len()));
                assert!(u64::from(block.total) <= MAX_REPEATED + 1024);
                for len in block.lengths {
                    done += 1;
                    assert_eq!(*len, done as i32);
                }
                assert_eq!(decoder.last_value(), "x".repeat(done).as_bytes());
            }
        }
        // A value that is longer than that comes alone.
        let long = "y".repeat(3 << 20);
        let mut decoder = Decoder::new(encode(&[&long, &long, &long]).into(), 3, None).unwrap();
        for _ in 0..3 {
            let block = decoder.read_block(3, usize::MAX).unwrap();
            let len = block.lengths.len();
            assert!(len < 3, "{len}");
            if decoder.prefixes_used == 3 {
                break;
            }
        }
        assert_eq!(decoder.last_value(), long.as_bytes());
    }

    /// A page of `n` values: the first is `first`, and each of the others repeats it.
    fn repeated(first: &[u8], n: usize) -> Bytes {
        let len = first.len() as i32;
        let lengths = |of_first, of_others| -> Vec<i32> {
            std::iter::once(of_first).chain(std::iter::repeat_n(of_others, n - 1)).collect()
        };
        let mut bytes = delta_binary::encode(&lengths(0, len));
        bytes.extend(delta_binary::encode(&lengths(len, 0)));
        bytes.extend_from_slice(first);
        bytes.into()
    }

    #[test]
    fn values_that_are_skipped_are_not_joined() {
        let (n, long) = (100_000, vec![b'z'; 1 << 20]);
        let mut decoder = Decoder::new(repeated(&long, n), n, None).unwrap();
        let steps = crate::steps::taken_by(|| decoder.skip(n - 2).unwrap());
        assert_eq!(steps, long.len());
        let block = decoder.read_block(2, usize::MAX).unwrap();
        assert_eq!(block.lengths, [1 << 20]);
        decoder.skip(1).unwrap();
        assert_eq!(decoder.last_value(), long);
        assert!(decoder.skip(1).is_err(), "no more are there");
    }

    #[test]
    fn skips_and_reads_take_turns_at_any_place() {
        let seed = 75;
        let mut rng = fastrand::Rng::with_seed(seed);
        let base: Vec<u8> = (0..4_000).map(|_| rng.u8(..)).collect();
        let values: Vec<&[u8]> = (0..5_000).map(|_| &base[..rng.usize(0..base.len())]).collect();
        let bytes = Bytes::from(encode(&values));
        for _ in 0..20 {
            let mut decoder = Decoder::new(bytes.clone(), values.len(), None).unwrap();
            let mut at = 0;
            while at < values.len() {
                let n = rng.usize(1..=2_000).min(values.len() - at);
                if rng.bool() {
                    decoder.skip(n).unwrap();
                    at += n;
                } else {
                    let block = decoder.read_block(n, usize::MAX).unwrap();
                    for span in block.spans() {
                        assert_eq!(span.slice(block.source), values[at], "{at} seed {seed}");
                        at += 1;
                    }
                }
                assert_eq!(decoder.last_value(), values[at - 1], "{at} seed {seed}");
            }
        }
    }

    #[test]
    fn values_longer_than_the_longest_are_refused_before_they_are_joined() {
        let bytes = repeated(b"four", 3);
        let decoder = || Decoder::new(bytes.clone(), 3, None).unwrap();
        assert_eq!(decoder().with_longest(4).read_block(3, 99).unwrap().lengths, [4; 3]);
        let mut short = decoder().with_longest(3);
        let error = short.read_block(3, usize::MAX).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Unsupported(_)), "{error}");
        assert!(short.buffer().is_empty());
    }

    #[test]
    fn values_are_as_the_slow_twin_writes_them() {
        let seed = 74;
        let mut rng = fastrand::Rng::with_seed(seed);
        for n in [0, 1, 2, 33, 129, 1000] {
            let equal = vec![b"the same value".to_vec(); n];
            // Prefixes of any length, values that are prefixes of their neighbours.
            let base: Vec<u8> = (0..60).map(|_| rng.u8(..)).collect();
            let random: Vec<Vec<u8>> = (0..n)
                .map(|_| {
                    let mut value = base[..rng.usize(0..60)].to_vec();
                    value.extend((0..rng.usize(0..9)).map(|_| rng.u8(0..3)));
                    value
                })
                .collect();
            for values in [equal, random, vec![Vec::new(); n]] {
                let mut bytes = vec![9];
                encode_into(&values, &mut bytes);
                assert_eq!(bytes[1..], encode(&values), "n {n} seed {seed}");
                let mut decoder = Decoder::new(Bytes::from(bytes).slice(1..), n, None).unwrap();
                assert_eq!(read_all(&mut decoder, n), values, "n {n} seed {seed}");
            }
        }
    }
}
