//! DELTA_BINARY_PACKED: stores the differences between consecutive integers, bit-packed.
//!
//! Spec: Encodings.md, "Delta Encoding". Used by `read::column`, and by the two delta encodings of
//! strings for their lengths.
//!
//! ```text
//! stream  = block size, miniblocks in a block, total count    uleb
//!           first value                                       zigzag
//!           block*
//! block   = min delta                                         zigzag
//!           bit width of each miniblock                       1 byte each
//!           miniblocks                                        width * values / 8 bytes each
//! ```
//!
//! Trap: the last block may carry fewer miniblocks than its header says, and the widths of the
//! absent ones are junk.

mod int;
mod encode;

use bytes::Bytes;

pub(crate) use self::encode::{DeltaBlocks, encode_blocks_into, encode_into};
#[cfg(test)]
pub(crate) use self::encode::{encode, encode_long, estimated_len};
pub(crate) use self::int::Int;
use super::too_few_values;
use crate::bytes::Cursor;
use crate::error::{Error, Result, Spec};
use crate::memory;
use crate::simd::prefix_sum::{GROUP, PackedDeltas};

const SPEC: Spec = Spec::Encodings("DELTA_BINARY_PACKED");

/// The number of values that a stream states. The pages of DELTA_LENGTH_BYTE_ARRAY and
/// DELTA_BYTE_ARRAY begin with one, which has as many values as they.
///
/// # Errors
/// `Malformed` if the header is broken.
pub(crate) fn stated_len(bytes: &[u8]) -> Result<usize> {
    Ok(StreamHeader::read(&mut Cursor::new(bytes, SPEC))?.count)
}

/// Where a stream ends in `bytes`: walks from block to block, and reads no value.
///
/// # Errors
/// `Malformed` if a block ends early.
pub(crate) fn end_offset(bytes: &[u8]) -> Result<usize> {
    let mut layout = StreamLayout::new(bytes)?;
    while let Some(part) = layout.next_part()? {
        if let Part::Miniblock { is_whole: false, .. } = part {
            return Err(Error::malformed(SPEC, "a miniblock ends early"));
        }
    }
    Ok(layout.position())
}

/// Where the parts of a stream lie: the header, and then what each block has.
#[derive(Debug, Clone)]
pub(crate) struct StreamLayout<'a> {
    cursor: Cursor<'a>,
    header: StreamHeader,
    /// Values that no miniblock has had yet.
    left: usize,
    /// The widths of the miniblocks of this block that are to come.
    widths: &'a [u8],
    /// Whether the least difference of this block was given, and its widths come next.
    has_min_delta: bool,
}

/// A part of a block, from where the one before it ends to the position of the layout.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(not(feature = "inspect"), allow(dead_code))]
pub(crate) enum Part<'a> {
    /// The least difference of the block that begins.
    MinDelta(i64),
    /// The bit widths of its miniblocks.
    Widths(&'a [u8]),
    /// The packed differences of a miniblock.
    Miniblock {
        /// The bits of each.
        width: u32,
        /// How many stand for values.
        values: usize,
        /// Whether all bytes of it are there.
        is_whole: bool,
    },
}

impl<'a> StreamLayout<'a> {
    /// Of the stream at the start of `bytes`.
    ///
    /// # Errors
    /// `Malformed` if its header is broken.
    pub(crate) fn new(bytes: &'a [u8]) -> Result<Self> {
        let mut cursor = Cursor::new(bytes, SPEC);
        let header = StreamHeader::read(&mut cursor)?;
        Ok(Self {
            cursor,
            header,
            left: header.count.saturating_sub(1),
            widths: &[],
            has_min_delta: false,
        })
    }

    /// Continues a stream at the block that begins at `start`, with `left` values still to be read.
    ///
    /// # Errors
    /// `Malformed` if the bytes end before.
    #[cfg_attr(not(feature = "inspect"), allow(dead_code))]
    pub(crate) fn at(
        bytes: &'a [u8],
        header: StreamHeader,
        start: usize,
        left: usize,
    ) -> Result<Self> {
        let mut cursor = Cursor::new(bytes, SPEC);
        cursor.skip(start)?;
        Ok(Self { cursor, header, left, widths: &[], has_min_delta: false })
    }

    /// Bytes of the parts so far.
    pub(crate) fn position(&self) -> usize {
        self.cursor.position()
    }

    /// The header.
    #[cfg_attr(not(feature = "inspect"), allow(dead_code))]
    pub(crate) fn header(&self) -> StreamHeader {
        self.header
    }

    /// The next part; `None` at the end of the stream.
    ///
    /// # Errors
    /// `Malformed` if a block ends early.
    #[inline]
    pub(crate) fn next_part(&mut self) -> Result<Option<Part<'a>>> {
        if self.left == 0 {
            return Ok(None);
        }
        let Some((&width, widths)) = self.widths.split_first() else {
            if std::mem::replace(&mut self.has_min_delta, true) {
                self.has_min_delta = false;
                self.widths = self.cursor.take(self.header.miniblocks)?;
                return Ok(Some(Part::Widths(self.widths)));
            }
            return Ok(Some(Part::MinDelta(self.cursor.zigzag()?)));
        };
        self.widths = widths;
        let width = u32::from(width);
        let len = self.header.miniblock_len(width);
        let stored = len.min(self.cursor.remaining());
        self.cursor.skip(stored)?;
        let values = self.left.min(self.header.miniblock_values);
        self.left -= values;
        Ok(Some(Part::Miniblock { width, values, is_whole: stored == len }))
    }
}

/// The header of a stream.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StreamHeader {
    /// Miniblocks of a block.
    pub miniblocks: usize,
    /// Values of a miniblock.
    pub miniblock_values: usize,
    /// Values in all.
    pub count: usize,
    /// The first value.
    pub first: i64,
}

/// No writer packs more values into a block; the next largest known are 2^15.
const MAX_BLOCK_VALUES: u64 = 1 << 28;

impl StreamHeader {
    fn read(cursor: &mut Cursor<'_>) -> Result<Self> {
        let block_values = cursor.uleb128()?;
        let miniblocks = cursor.uleb128()?;
        let count = cursor.uleb128()?;
        let first = cursor.zigzag()?;
        if block_values == 0 || !block_values.is_multiple_of(128) || block_values > MAX_BLOCK_VALUES
        {
            return Err(Error::mismatch(SPEC, "block size", "a multiple of 128", block_values));
        }
        let miniblock_values = block_values.checked_div(miniblocks).filter(|values| {
            values * miniblocks == block_values && values.is_multiple_of(32) && *values > 0
        });
        let Some(miniblock_values) = miniblock_values else {
            return Err(Error::mismatch(
                SPEC,
                "miniblocks of a block",
                format_args!("a divisor of {block_values} that leaves a multiple of 32"),
                miniblocks,
            ));
        };
        // A count beyond all memory is no count that a page can have: it differs from all of them.
        let fits = |value: u64| usize::try_from(value).unwrap_or(usize::MAX);
        Ok(Self {
            miniblocks: fits(miniblocks),
            miniblock_values: fits(miniblock_values),
            count: fits(count),
            first,
        })
    }

    /// Bytes of a miniblock.
    fn miniblock_len(&self, width: u32) -> usize {
        self.miniblock_values / 8 * width as usize
    }
}

/// Decodes a stream.
#[derive(Debug)]
pub(crate) struct Decoder<T: Int> {
    bytes: Bytes,
    /// Where the next byte is that is not read yet.
    at: usize,
    header: StreamHeader,
    /// Values that are still to come.
    left: usize,
    /// The last value that was given; before that, the first.
    last: T,
    /// Whether the first value, which is in the header, has been returned.
    begun: bool,
    step: T,
    /// Where the widths of the miniblocks of this block are that are not begun.
    widths: std::ops::Range<usize>,
    miniblock: Miniblock,
    /// The last group that was decoded, if a read stopped inside it, and how many of its values
    /// are given.
    ahead: Vec<T>,
    ahead_used: usize,
    scratch: Vec<T::Delta>,
    /// Differences that were wider than the type.
    narrowed: Vec<u8>,
}

/// The rest of a miniblock.
#[derive(Debug, Default)]
struct Miniblock {
    /// Where its packed bytes begin.
    start: usize,
    width: u32,
    /// Values decoded, of `values`: whole groups, unless it has no bits or is at its end.
    next: usize,
    values: usize,
}

impl<T: Int> Decoder<T> {
    /// A decoder of `n` values.
    ///
    /// # Errors
    /// `Malformed` if the header is broken, or states another number.
    pub(crate) fn new(bytes: Bytes, n: usize) -> Result<Self> {
        let mut cursor = Cursor::new(&bytes, SPEC);
        let header = StreamHeader::read(&mut cursor)?;
        if header.count != n {
            return Err(Error::mismatch(SPEC, "values in the page", n, header.count));
        }
        Ok(Self {
            at: cursor.position(),
            bytes: bytes.clone(),
            header,
            left: n,
            last: T::wrap(header.first),
            begun: false,
            step: T::default(),
            widths: 0..0,
            miniblock: Miniblock::default(),
            ahead: Vec::new(),
            ahead_used: 0,
            scratch: Vec::new(),
            narrowed: Vec::new(),
        })
    }

    /// Appends the next `n` values.
    ///
    /// # Errors
    /// `Malformed` if there are fewer, or a block is broken; `out` is as it was then.
    pub(crate) fn read(&mut self, n: usize, out: &mut Vec<T>) -> Result<()> {
        let before = out.len();
        // Every value is at most a byte of the page away, or in a miniblock of no bits; `n` was
        // asked for by levels that are there.
        memory::room_for_vectors(out, n.min(self.left))?;
        let result = self.read_all(n, out);
        if result.is_err() {
            out.truncate(before);
        }
        result
    }

    fn read_all(&mut self, n: usize, out: &mut Vec<T>) -> Result<()> {
        let mut wanted = n;
        self.left = self.left.checked_sub(n).ok_or_else(|| too_few_values(SPEC, n, self.left))?;
        if wanted > 0 && !self.begun {
            self.begun = true;
            out.push(self.last);
            wanted -= 1;
        }
        while wanted > 0 {
            if let Some(ahead) = self.ahead.get(self.ahead_used..).filter(|rest| !rest.is_empty()) {
                let n = ahead.len().min(wanted);
                out.extend_from_slice(&ahead[..n]);
                self.ahead_used += n;
                wanted -= n;
                continue;
            }
            if self.miniblock.next == self.miniblock.values {
                self.next_miniblock()?;
            }
            let Miniblock { width, next, values, .. } = self.miniblock;
            let n = wanted.min(values - next);
            let whole = if width == 0 || n == values - next { n } else { n / GROUP * GROUP };
            if whole > 0 {
                self.sum(whole, out)?;
                wanted -= whole;
            } else {
                // The read stops inside a group: it is decoded as a whole.
                let mut ahead = std::mem::take(&mut self.ahead);
                ahead.clear();
                self.sum(GROUP.min(values - next), &mut ahead)?;
                (self.ahead, self.ahead_used) = (ahead, 0);
            }
        }
        Ok(())
    }

    /// Appends the next `n` values of the miniblock: whole groups, or up to its end.
    fn sum(&mut self, n: usize, out: &mut Vec<T>) -> Result<()> {
        let Miniblock { start, width, next, .. } = &mut self.miniblock;
        let mut width = *width;
        // Kernels read whole words, so they get the bytes after the miniblock too.
        let bytes = self.bytes.get(*start + *next / GROUP * width as usize..);
        let mut bytes = bytes.expect("the values of a group begin in the miniblock");
        *next += n;
        if width > T::BITS {
            narrow(bytes, width as usize, n, &mut self.narrowed)?;
            (bytes, width) = (&self.narrowed, T::BITS);
        }
        self.last = match width {
            0 => T::progression(n, self.step, self.last, out),
            _ => {
                self.scratch.clear();
                memory::room(&mut self.scratch, n)?;
                let packed = PackedDeltas { bytes, width, n };
                T::sum_packed(packed, self.step, self.last, &mut self.scratch, out)
            }
        };
        Ok(())
    }

    /// Skips the next `n` values: they must be summed up all the same.
    ///
    /// # Errors
    /// As [`Decoder::read`].
    pub(crate) fn skip(&mut self, n: usize) -> Result<()> {
        let mut scratch = Vec::new();
        let mut left = n;
        while left > 0 {
            scratch.clear();
            let block = left.min(1024);
            self.read(block, &mut scratch)?;
            left -= block;
        }
        Ok(())
    }

    fn next_miniblock(&mut self) -> Result<()> {
        let rest = self.bytes.get(self.at..).expect("miniblocks end within the bytes");
        let mut cursor = Cursor::new(rest, SPEC);
        if self.widths.is_empty() {
            self.step = T::wrap(cursor.zigzag()?);
            let from = self.at + cursor.position();
            cursor.skip(self.header.miniblocks)?;
            self.widths = from..from + self.header.miniblocks;
        }
        let width = self.widths.next().and_then(|at| self.bytes.get(at).copied());
        let width = u32::from(width.expect("the widths of a block were skipped as a whole"));
        if width > T::MAX_WIDTH {
            return Err(Error::mismatch(
                SPEC,
                "bit width of a miniblock",
                format_args!("at most {}", T::MAX_WIDTH),
                width,
            ));
        }
        let len = self.header.miniblock_len(width);
        // The last miniblock of a stream is stored whole; peers read one that is cut after its
        // last value.
        let stored = len.min(cursor.remaining());
        let values = if stored == len {
            self.header.miniblock_values
        } else {
            stored * 8 / width.max(1) as usize
        };
        if values == 0 {
            return Err(Error::malformed(SPEC, "a miniblock ends before its first value"));
        }
        let from = self.at + cursor.position();
        self.at = from + stored;
        self.miniblock = Miniblock { start: from, width, next: 0, values };
        self.join_alike();
        Ok(())
    }

    /// Miniblocks of one width that follow each other in a block are one run of packed differences:
    /// they are read in one go. Miniblocks after the last value, as the header of the last block
    /// states them, may join too; their values are never asked for.
    fn join_alike(&mut self) {
        let len = self.header.miniblock_len(self.miniblock.width);
        while let Some(&width) = self.bytes.get(self.widths.start)
            && !self.widths.is_empty()
            && u32::from(width) == self.miniblock.width
            && self.bytes.len() - self.at >= len
        {
            self.widths.start += 1;
            self.at += len;
            self.miniblock.values += self.header.miniblock_values;
        }
    }
}

/// Packs the low 32 bits of each of `n` packed differences of `width` bits, at most 57; of bytes
/// that are not there, 0.
fn narrow(packed: &[u8], width: usize, n: usize, out: &mut Vec<u8>) -> Result<()> {
    out.clear();
    memory::room(out, n * size_of::<u32>())?;
    for first in (0..n).map(|i| i * width) {
        // As for kernels, bytes that are not there are 0.
        let bytes = packed.get(first / 8..).unwrap_or_default();
        let mut word = [0; 8];
        let there = bytes.len().min(word.len());
        word[..there].copy_from_slice(&bytes[..there]);
        let [a, b, c, d, ..] = (u64::from_le_bytes(word) >> (first % 8)).to_le_bytes();
        out.extend_from_slice(&[a, b, c, d]);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn example_of_datapage_v2_snappy() {
        let bytes = [0x80, 0x01, 0x04, 0x05, 0x02, 0x02, 0, 0, 0, 0];
        let mut out = Vec::new();
        Decoder::<i32>::new(Bytes::copy_from_slice(&bytes), 5).unwrap().read(5, &mut out).unwrap();
        assert_eq!(out, [1, 2, 3, 4, 5]);
        assert_eq!(encode(&out), bytes);
        assert_eq!(end_offset(&bytes).unwrap(), bytes.len());
    }

    #[test]
    fn blocks_have_a_greatest_size() {
        let stream = |high: u8| [0x80, 0x80, 0x80, 0x80, high, 4, 1, 10];
        let decoder = |high| Decoder::<i32>::new(Bytes::copy_from_slice(&stream(high)), 1);
        let mut out = Vec::new();
        decoder(1).unwrap().read(1, &mut out).unwrap();
        assert_eq!(out, [5]);
        assert_eq!(decoder(2).unwrap_err().kind(), ErrorKind::Malformed(SPEC));
    }

    fn random(rng: &mut fastrand::Rng, width: u32, n: usize) -> Vec<i64> {
        let mut value = rng.i64(..);
        (0..n)
            .map(|_| {
                let delta = if width == 0 { 3 } else { rng.u64(..) >> (64 - width) };
                value = value.wrapping_add(delta as i64);
                value
            })
            .collect()
    }

    #[test]
    fn round_trip_of_every_width_read_in_pieces() {
        let seed = 15;
        let mut rng = fastrand::Rng::with_seed(seed);
        for width in 0..=64 {
            for n in [0, 1, 2, 32, 33, 128, 129, 130, 500] {
                let values = random(&mut rng, width, n);
                let mut bytes = encode(&values);
                assert_eq!(end_offset(&bytes).unwrap(), bytes.len());
                assert_eq!(stated_len(&bytes).unwrap(), n);
                bytes.extend([0xAB; 9]);
                assert_eq!(end_offset(&bytes).unwrap(), bytes.len() - 9);
                let mut decoder = Decoder::<i64>::new(bytes.into(), n).unwrap();
                let mut at = 0;
                while at < n {
                    let k = rng.usize(0..=(n - at).min(90));
                    let mut out = Vec::new();
                    if rng.bool() {
                        decoder.read(k, &mut out).unwrap();
                        assert_eq!(out, values[at..at + k], "width {width} n {n} seed {seed}");
                    } else {
                        decoder.skip(k).unwrap();
                    }
                    at += k;
                }
                assert!(decoder.skip(1).is_err());

                let narrow: Vec<i32> = values.iter().map(|v| *v as i32).collect();
                let mut out = Vec::new();
                Decoder::<i32>::new(encode(&narrow).into(), n).unwrap().read(n, &mut out).unwrap();
                assert_eq!(out, narrow, "width {width} n {n} seed {seed}");
            }
        }
    }

    #[test]
    fn differences_wrap_around() {
        let values = [i64::MIN, i64::MAX, i64::MIN, 0, i64::MAX];
        let mut out = Vec::new();
        Decoder::<i64>::new(encode(&values).into(), 5).unwrap().read(5, &mut out).unwrap();
        assert_eq!(out, values);
        let values = [i32::MIN, i32::MAX, i32::MIN, 0, i32::MAX];
        let mut out = Vec::new();
        Decoder::<i32>::new(encode(&values).into(), 5).unwrap().read(5, &mut out).unwrap();
        assert_eq!(out, values);
    }

    #[test]
    fn junk_widths_of_absent_miniblocks_are_tolerated_and_wide_ones_in_use_are_not() {
        let mut bytes = vec![0x80, 0x01, 0x04, 0x05, 0x02, 0x02, 0, 0xFF, 0xFE, 0xFD];
        let mut out = Vec::new();
        Decoder::<i32>::new(bytes.clone().into(), 5).unwrap().read(5, &mut out).unwrap();
        assert_eq!(out, [1, 2, 3, 4, 5]);
        bytes[6] = 34;
        bytes.extend([0; 200]);
        let error =
            Decoder::<i32>::new(bytes.clone().into(), 5).unwrap().read(5, &mut out).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Malformed(SPEC));
        Decoder::<i64>::new(bytes.into(), 5).unwrap().read(5, &mut Vec::new()).unwrap();
    }

    /// The stream of INT64 with these values says what DuckDB writes for INT32.
    #[test]
    fn differences_of_33_bits_are_those_of_int32_that_wrap() {
        let seed = 17;
        let mut rng = fastrand::Rng::with_seed(seed);
        for n in [2, 5, 32, 33, 34, 65, 129, 130, 300, 1000] {
            let mut values: Vec<i32> = (0..n).map(|_| rng.i32(..)).collect();
            // The difference that is least, and the largest.
            values[..2].copy_from_slice(&[i32::MAX, i32::MIN]);
            if n > 4 {
                values[2..5].copy_from_slice(&[i32::MAX, 0, i32::MAX]);
            }
            let wide: Vec<i64> = values.iter().map(|value| i64::from(*value)).collect();
            let bytes = encode(&wide);
            assert!(n < 5 || bytes[bytes.len().min(13)..].len() > n * 4, "33 bits, n {n}");
            let mut decoder = Decoder::<i32>::new(bytes.clone().into(), n).unwrap();
            let mut at = 0;
            while at < n {
                let k = rng.usize(1..=(n - at).min(150));
                if rng.bool() {
                    let mut out = Vec::new();
                    decoder.read(k, &mut out).unwrap();
                    assert_eq!(out, values[at..at + k], "n {n} at {at} seed {seed}");
                } else {
                    decoder.skip(k).unwrap();
                }
                at += k;
            }
            // Cut after the last value.
            let used = (n - 1) % 32 * 33;
            if used > 0 && (5..33).contains(&n) {
                let cut = bytes.len() - 32 * 33 / 8 + used.div_ceil(8);
                let mut out = Vec::new();
                let cut = Bytes::copy_from_slice(&bytes[..cut]);
                Decoder::<i32>::new(cut, n).unwrap().read(n, &mut out).unwrap();
                assert_eq!(out, values, "n {n}");
            }
        }
    }

    #[test]
    fn broken_streams_are_errors_and_append_nothing() {
        let seed = 16;
        let mut rng = fastrand::Rng::with_seed(seed);
        let values = random(&mut rng, 20, 300);
        let bytes = encode(&values);
        for cut in 0..bytes.len() - 80 {
            let bytes = Bytes::copy_from_slice(&bytes[..cut]);
            let Ok(mut decoder) = Decoder::<i64>::new(bytes, 300) else {
                continue;
            };
            let mut out = vec![1];
            assert!(decoder.read(300, &mut out).is_err(), "cut at {cut}");
            assert_eq!(out, [1]);
        }
        for _ in 0..5_000 {
            let mut bytes = bytes.clone();
            for _ in 0..rng.usize(1..4) {
                let at = rng.usize(0..bytes.len().min(40));
                bytes[at] = rng.u8(..);
            }
            let bytes = Bytes::from(bytes);
            let _ = end_offset(&bytes);
            if let Ok(mut decoder) = Decoder::<i32>::new(bytes, 300) {
                let _ = decoder.read(300, &mut Vec::new());
            }
        }
    }

    fn check<T: Int + PartialEq + std::fmt::Debug>(values: &[T], seed: u64) {
        let mut bytes = vec![];
        encode_into(values, &mut bytes);
        assert_eq!(bytes, encode(values), "n {} seed {seed}", values.len());
        assert_eq!(estimated_len(values), bytes.len());
        let mut out = Vec::<T>::new();
        let mut decoder = Decoder::new(bytes.into(), values.len()).unwrap();
        decoder.read(values.len(), &mut out).unwrap();
        assert_eq!(out, values, "seed {seed}");
        let mut bytes = vec![];
        encode_blocks_into(values, DeltaBlocks::Long, &mut bytes);
        assert_eq!(bytes, encode_long(values), "long blocks, n {} seed {seed}", values.len());
        assert_eq!(end_offset(&bytes).unwrap(), bytes.len());
        out.clear();
        let mut decoder = Decoder::new(bytes.into(), values.len()).unwrap();
        decoder.read(values.len(), &mut out).unwrap();
        assert_eq!(out, values, "long blocks, seed {seed}");
    }

    #[test]
    fn blocks_are_as_the_slow_twin_writes_them() {
        let seed = 72;
        let mut rng = fastrand::Rng::with_seed(seed);
        for width in 0..=64 {
            for n in [0, 1, 2, 3, 32, 33, 34, 64, 65, 128, 129, 130, 161, 257, 500] {
                let values = random(&mut rng, width, n);
                check(&values, seed);
                check(&values.iter().map(|v| *v as i32).collect::<Vec<_>>(), seed);
                // Miniblocks of unlike widths, ups and downs.
                let values: Vec<i64> = (0..n).map(|_| rng.i64(..) >> rng.u32(0..64)).collect();
                check(&values, seed);
                check(&values.iter().map(|v| (*v >> 20) as i32).collect::<Vec<_>>(), seed);
            }
        }
        for n in [1023, 1024, 1025, 1100, 2048, 2049, 2050, 2177, 4097, 5000] {
            let shift = rng.u32(0..64);
            let values = random(&mut rng, 64 - shift, n);
            check(&values, seed);
            check(&values.iter().map(|v| *v as i32).collect::<Vec<_>>(), seed);
            let values: Vec<i64> = (0..n).map(|_| rng.i64(..) >> rng.u32(0..64)).collect();
            check(&values, seed);
            check(&values.iter().map(|v| (*v >> 20) as i32).collect::<Vec<_>>(), seed);
        }
        check(&[i64::MIN, i64::MAX, i64::MIN, 0, i64::MAX], seed);
        check(&[i32::MIN, i32::MAX, i32::MIN, 0, i32::MAX], seed);
        check(&[i64::MIN; 300], seed);
        check(&[i32::MAX; 300], seed);
        let mut bytes = vec![9];
        encode_into(&[1, 2, 3, 4, 5], &mut bytes);
        assert_eq!(bytes, [9, 0x80, 0x01, 0x04, 0x05, 0x02, 0x02, 0, 0, 0, 0]);
    }
}
