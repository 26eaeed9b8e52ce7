//! RLE / bit-packed hybrid: stores runs of one repeated value, and groups of bit-packed values.
//!
//! Spec: Encodings.md, "Run Length Encoding / Bit-Packing Hybrid". Used for levels, dictionary
//! indices and booleans.
//!
//! ```text
//! hybrid   = run*
//! run      = uleb(n << 1)     value             n times the value, in ceil(w / 8) bytes
//!          | uleb(g << 1 | 1) packed            g groups of 8 values, w bits each, in g * w bytes
//! ```
//!
//! Trap: the last group is padded, so the stream may hold more values than there are; and some
//! writers cut the padding off.

mod bit_width;
mod encode;

use bytes::Bytes;

pub(crate) use self::bit_width::BitWidth;
use self::bit_width::SPEC;
#[cfg(test)]
pub(crate) use self::encode::{encode, estimated_len};
pub(crate) use self::encode::{
    encode_bits_into, encode_into, encode_levels_into, encode_packed_into, encode_run_into,
};
use crate::bytes::Cursor;
use crate::error::{Error, Result};
use crate::memory;
use crate::simd::bitmap::Bitmap;
use crate::simd::gather::{gather, gather_packed};
use crate::simd::native::PlainOldData;
use crate::simd::ops::{self, SimdOps, SimdTask};
use crate::simd::planes::LevelBitPlanes;
use crate::simd::unpack::unpack_u32;
use crate::simd::{Isa, Kernel};

/// Decodes a hybrid stream.
#[derive(Debug, Clone)]
pub(crate) struct Hybrid {
    bytes: Bytes,
    /// Where the next header is. Short runs are many: positions in the bytes are cheaper than
    /// slices of them.
    at: usize,
    width: BitWidth,
    /// Values that are still to come.
    left: usize,
    run: Current,
}

/// The run that is being read.
#[derive(Debug, Clone, Copy)]
enum Current {
    Rle {
        value: u32,
        left: usize,
    },
    /// Values `next` to `end` of the packed bytes `from` to `to`.
    Packed {
        from: usize,
        to: usize,
        next: usize,
        end: usize,
    },
}

/// A part of a run; all of its values can be used at once.
#[derive(Debug)]
pub(crate) enum Run<'a> {
    /// `n` times one value.
    Rle {
        /// The value.
        value: u32,
        /// How often.
        n: usize,
    },
    /// Packed values.
    Packed(Packed<'a>),
}

/// A stretch of packed values.
#[derive(Debug)]
pub(crate) struct Packed<'a> {
    bytes: &'a [u8],
    width: BitWidth,
    /// The first value, 0 to 7: packed values begin at a byte every 8.
    skip: usize,
    n: usize,
}

impl Packed<'_> {
    /// Number of values.
    pub(crate) fn len(&self) -> usize {
        self.n
    }

    /// Appends the values.
    pub(crate) fn unpack(&self, out: &mut Vec<u32>) {
        let bits = self.width.bits();
        if self.skip == 0 {
            unpack_u32(self.bytes, bits, self.n, out);
            return;
        }
        // The rest of the first group, then whole groups from a byte on.
        let before = out.len();
        unpack_u32(self.bytes, bits, 8.min(self.skip + self.n), out);
        out.drain(before..before + self.skip);
        let head = out.len() - before;
        // The padding of the last group may be cut off: bytes that are not there are 0.
        let rest = self.bytes.get(bits as usize..).unwrap_or_default();
        unpack_u32(rest, bits, self.n - head, out);
    }

    /// Appends the entries of `table` that the values index; false if one is beyond them. `scratch`
    /// is overwritten.
    pub(crate) fn gather<T: PlainOldData>(
        &self,
        table: &[T],
        scratch: &mut Vec<u32>,
        out: &mut Vec<T>,
    ) -> bool {
        let bits = self.width.bits();
        if self.skip == 0 {
            return gather_packed(self.bytes, bits, self.n, table, scratch, out);
        }
        // The rest of the first group, then whole groups from a byte on.
        let head = (8 - self.skip).min(self.n);
        scratch.clear();
        unpack_u32(self.bytes, bits, self.skip + head, scratch);
        // As in `unpack`.
        let rest = self.bytes.get(bits as usize..).unwrap_or_default();
        gather(scratch.get(self.skip..).expect("as many were unpacked, and more"), table, out)
            && gather_packed(rest, bits, self.n - head, table, scratch, out)
    }

    /// Appends the values as bits; for a width of 1.
    pub(crate) fn append_bits(&self, out: &mut Bitmap) {
        out.append_bits(self.bytes, self.skip, self.n);
    }

    /// Appends the values as levels of the same width.
    pub(crate) fn append_planes(&self, out: &mut LevelBitPlanes) {
        out.push_packed(self.bytes, self.skip, self.n);
    }
}

/// Where a run lies in its stream, and what it holds.
#[derive(Debug, Clone)]
#[cfg_attr(not(feature = "inspect"), allow(dead_code))]
pub(crate) struct RunPlace {
    /// Its header.
    pub header: std::ops::Range<usize>,
    /// Its value, or its packed values.
    pub body: std::ops::Range<usize>,
    /// Values that it holds, no more than are to come.
    pub n: usize,
    /// The value of a run of one.
    pub value: Option<u32>,
}

#[cfg_attr(not(feature = "inspect"), allow(dead_code))]
impl Hybrid {
    /// As [`Hybrid::new`], of a stream whose headers are read also where values take no bits.
    pub(crate) fn stored(bytes: Bytes, width: BitWidth, n: usize) -> Self {
        Self { bytes, at: 0, width, left: n, run: Current::Rle { value: 0, left: 0 } }
    }

    /// Reads the header of the next run, and says where it lies; its values are read after it.
    ///
    /// # Errors
    /// `Malformed` if the data end early.
    pub(crate) fn begin_run(&mut self) -> Result<RunPlace> {
        let start = self.at;
        self.read_header()?;
        let (body, value) = match self.run {
            Current::Rle { value, .. } => {
                (self.at - self.width.bits().div_ceil(8) as usize..self.at, Some(value))
            }
            Current::Packed { from, to, .. } => (from..to, None),
        };
        Ok(RunPlace { header: start..body.start, body, n: self.run_left(), value })
    }

    /// Values that are still to come.
    pub(crate) fn remaining(&self) -> usize {
        self.left
    }
}

impl Hybrid {
    /// A decoder of `n` values of `width` bits.
    ///
    /// # Errors
    /// Never at present: a stream that is too short is found when it is read.
    pub(crate) fn new(bytes: Bytes, width: BitWidth, n: usize) -> Result<Self> {
        // Values of no bits are all 0, and streams of them are often left out.
        let left = if width.0 == 0 { n } else { 0 };
        Ok(Self { bytes, at: 0, width, left: n, run: Current::Rle { value: 0, left } })
    }

    /// The next run, or as much of it as `max` values are. `max` must not be 0.
    ///
    /// # Errors
    /// `Malformed` if the data end early, or more values are asked for than there are.
    pub(crate) fn next_run(&mut self, max: usize) -> Result<Run<'_>> {
        let max = max.min(self.left);
        if max == 0 {
            return Err(Error::malformed(SPEC, "more values are wanted than the page declares"));
        }
        while self.run_left() == 0 {
            self.read_header()?;
        }
        let n = self.run_left().min(max);
        self.left -= n;
        let width = self.width;
        Ok(match &mut self.run {
            Current::Rle { value, left } => {
                *left -= n;
                Run::Rle { value: *value, n }
            }
            Current::Packed { from, to, next, .. } => {
                let first = *next;
                *next += n;
                let start = *from + first / 8 * width.bits() as usize;
                // The padding of the last group may be cut off, but it begins within the bytes.
                let bytes = self.bytes.get(start..*to).expect("a value there begins in its run");
                Run::Packed(Packed { bytes, width, skip: first % 8, n })
            }
        })
    }

    /// Appends the next `n` values.
    ///
    /// # Errors
    /// `Malformed` if there are fewer; `out` is as it was then.
    pub(crate) fn read(&mut self, n: usize, out: &mut Vec<u32>) -> Result<()> {
        let before = out.len();
        let result = self.read_runs(n, out);
        if result.is_err() {
            out.truncate(before);
        }
        result
    }

    fn read_runs(&mut self, n: usize, out: &mut Vec<u32>) -> Result<()> {
        let mut left = n;
        while left > 0 {
            match self.next_run(left)? {
                Run::Rle { value, n } => {
                    memory::room(out, n)?;
                    out.resize(out.len() + n, value);
                    left -= n;
                }
                Run::Packed(packed) => {
                    memory::room(out, packed.len() + 8)?;
                    packed.unpack(out);
                    left -= packed.len();
                }
            }
        }
        Ok(())
    }

    /// Appends the next `n` values as bits; for a width of 1.
    ///
    /// # Errors
    /// `Malformed` if there are fewer; `out` is as it was then.
    pub(crate) fn read_bits(&mut self, n: usize, out: &mut Bitmap) -> Result<()> {
        let before = out.len();
        out.try_reserve(n)?;
        let mut left = n;
        while left > 0 {
            left -= self.short_bit_runs(left, out);
            if left == 0 {
                break;
            }
            match self.next_run(left) {
                Ok(Run::Rle { value, n }) => {
                    out.append_run(value != 0, n);
                    left -= n;
                }
                Ok(Run::Packed(packed)) => {
                    packed.append_bits(out);
                    left -= packed.len();
                }
                Err(error) => {
                    out.truncate(before);
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Appends whole runs of up to 63 values, as long as they follow one another, and returns the
    /// number of values. If few values are null, runs are many and short, and [`Hybrid::next_run`]
    /// does more work for each than its values need.
    fn short_bit_runs(&mut self, max: usize, out: &mut Bitmap) -> usize {
        if self.run_left() > 0 || self.width.0 != 1 {
            return 0;
        }
        let max = max.min(self.left);
        let (mut at, mut done) = (self.at, 0);
        while let Some(&[header, first]) = self.bytes.get(at..).and_then(|rest| rest.first_chunk())
        {
            let n = usize::from(header >> 1);
            if header & 1 == 0 {
                if n > 63 || n > max - done || first > 1 {
                    break;
                }
                out.append_word(u64::from(first).wrapping_neg(), n);
                done += n;
                at += 2;
            } else {
                // Groups of 8 values are a byte each.
                if n > 7 || 8 * n > max - done {
                    break;
                }
                let Some(packed) =
                    self.bytes.get(at + 1..).and_then(|rest| rest.first_chunk::<8>())
                else {
                    break;
                };
                out.append_word(u64::from_le_bytes(*packed), 8 * n);
                done += 8 * n;
                at += 1 + n;
            }
        }
        self.at = at;
        self.left -= done;
        done
    }

    /// Appends the next `n` values as levels; for a width of at most 16, which that of `out` must
    /// be.
    ///
    /// # Errors
    /// `Malformed` if there are fewer; `out` has those before the error then.
    pub(crate) fn read_planes(&mut self, n: usize, out: &mut LevelBitPlanes) -> Result<()> {
        let isa = Isa::for_kernel(Kernel::Levels);
        let mut left = n;
        while left > 0 {
            if self.run_left() == 0 && !out.is_one_number() {
                let max = left.min(self.left);
                left -= ops::run(isa, ShortRuns { hybrid: self, max, out });
                if left == 0 {
                    break;
                }
            }
            match self.next_run(left)? {
                Run::Rle { value, n } => {
                    out.push_run(u16::try_from(value).unwrap_or(u16::MAX), n);
                    left -= n;
                }
                Run::Packed(packed) => {
                    packed.append_planes(out);
                    left -= packed.len();
                }
            }
        }
        Ok(())
    }

    /// Skips the next `n` values.
    ///
    /// # Errors
    /// `Malformed` if there are fewer.
    pub(crate) fn skip(&mut self, n: usize) -> Result<()> {
        let mut left = n;
        while left > 0 {
            left -= match self.next_run(left)? {
                Run::Rle { n, .. } => n,
                Run::Packed(packed) => packed.len(),
            };
        }
        Ok(())
    }

    fn run_left(&self) -> usize {
        match &self.run {
            Current::Rle { left, .. } => *left,
            Current::Packed { next, end, .. } => end - next,
        }
    }

    /// Reads the header of the next run. Runs of no values are passed over by the caller: each
    /// takes a byte, so that they end.
    fn read_header(&mut self) -> Result<()> {
        let rest = self.bytes.get(self.at..).expect("runs end within the bytes");
        let mut cursor = Cursor::new(rest, SPEC);
        let header = cursor.uleb128()?;
        // More than can be counted are more than are left, like any number that is too large.
        let n = usize::try_from(header >> 1).unwrap_or(usize::MAX);
        let bits = self.width.bits() as usize;
        self.run = if header & 1 == 0 {
            let value = match bits {
                // Levels and flags: one byte.
                1..=8 => u32::from(cursor.u8()?),
                _ => {
                    let mut value = [0; 4];
                    let stored = cursor.take(bits.div_ceil(8))?;
                    value.iter_mut().zip(stored).for_each(|(byte, stored)| *byte = *stored);
                    u32::from_le_bytes(value)
                }
            };
            if !self.width.holds(value) {
                return Err(Error::mismatch(
                    SPEC,
                    "value of a run",
                    format_args!("at most {bits} bits"),
                    value,
                ));
            }
            // Other readers leave out values beyond the declared count as well.
            Current::Rle { value, left: n.min(self.left) }
        } else {
            let wanted = n.saturating_mul(bits);
            // The padding of the last group may be cut off.
            let stored = wanted.min(cursor.remaining());
            let max = n.saturating_mul(8);
            let end = if stored == wanted { max } else { stored * 8 / bits.max(1) };
            if end == 0 && n > 0 {
                return Err(Error::malformed(SPEC, "a packed run ends before its first value"));
            }
            let from = self.at + cursor.position();
            cursor.skip(stored)?;
            Current::Packed { from, to: from + stored, next: 0, end: end.min(self.left) }
        };
        self.at += cursor.position();
        Ok(())
    }
}

/// Appends whole runs that have a header of one byte to levels that are stored one by one, as long
/// as they follow one another, and returns the number of levels. As [`Hybrid::short_bit_runs`], for
/// levels of more bits.
struct ShortRuns<'a> {
    hybrid: &'a mut Hybrid,
    max: usize,
    out: &'a mut LevelBitPlanes,
}

impl SimdTask for ShortRuns<'_> {
    type Output = usize;

    #[inline(always)]
    fn run(self, kernel: impl SimdOps) -> usize {
        match self.hybrid.width.0 {
            1 => self.append::<1>(kernel),
            2 => self.append::<2>(kernel),
            3 => self.append::<3>(kernel),
            4 => self.append::<4>(kernel),
            _ => 0,
        }
    }
}

impl ShortRuns<'_> {
    #[inline(always)]
    fn append<const W: usize>(self, kernel: impl SimdOps) -> usize {
        let Self { hybrid, max, out } = self;
        if out.stride() != W {
            return 0;
        }
        let mut end = out.end::<W>();
        let bytes = hybrid.bytes.get(hybrid.at..).expect("runs end within the bytes");
        let (mut at, mut done) = (0, 0);
        while let Some(&[header, first]) = bytes.get(at..).and_then(|rest| rest.first_chunk()) {
            let n = usize::from(header >> 1);
            if header & 1 == 0 {
                if header > 0x7F || n > max - done || first >> W != 0 {
                    break;
                }
                end.push_run(u16::from(first), n);
                done += n;
                at += 2;
            } else {
                if header > 0x7F || 8 * n > max - done {
                    break;
                }
                let Some(packed) = bytes.get(at + 1..at + 1 + n * W) else {
                    break;
                };
                end.push_packed(kernel, packed, 0, 8 * n);
                done += 8 * n;
                at += 1 + n * W;
            }
        }
        end.close();
        hybrid.at += at;
        hybrid.left -= done;
        done
    }
}

/// Decodes BOOLEAN values in RLE: the hybrid of width 1 after its length, in pages of both
/// versions.
#[derive(Debug)]
pub(crate) struct Booleans(Hybrid);

impl Booleans {
    /// A decoder of at most `n` values.
    ///
    /// # Errors
    /// `Malformed` if the length in front is more than there is.
    pub(crate) fn new(bytes: Bytes, n: usize) -> Result<Self> {
        let mut cursor = Cursor::new(&bytes, SPEC);
        let stream = bytes.slice_ref(cursor.prefixed()?);
        Ok(Self(Hybrid::new(stream, BitWidth(1), n)?))
    }

    /// Appends the next `n` values.
    ///
    /// # Errors
    /// `Malformed` if there are fewer.
    pub(crate) fn read(&mut self, n: usize, out: &mut Bitmap) -> Result<()> {
        self.0.read_bits(n, out)
    }

    /// Skips the next `n` values.
    ///
    /// # Errors
    /// `Malformed` if there are fewer.
    pub(crate) fn skip(&mut self, n: usize) -> Result<()> {
        self.0.skip(n)
    }
}

#[cfg(test)]
mod tests {
    use super::encode::put_uleb;
    use super::*;
    use crate::error::ErrorKind;

    fn decoder(bytes: &[u8], width: u8, n: usize) -> Hybrid {
        Hybrid::new(Bytes::copy_from_slice(bytes), BitWidth::new(width).unwrap(), n).unwrap()
    }

    #[test]
    fn example_of_the_specification() {
        let mut out = Vec::new();
        decoder(&[3, 0x88, 0xC6, 0xFA], 3, 8).read(8, &mut out).unwrap();
        assert_eq!(out, [0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(encode(&out, BitWidth::new(3).unwrap()), [3, 0x88, 0xC6, 0xFA]);
        let mut out = Vec::new();
        decoder(&[20, 5], 3, 10).read(10, &mut out).unwrap();
        assert_eq!(out, [5; 10]);
    }

    #[test]
    fn round_trip_of_every_width_read_in_pieces() {
        let seed = 11;
        let mut rng = fastrand::Rng::with_seed(seed);
        for width in 0..=32u8 {
            let max = ((1u64 << width) - 1) as u32;
            for _ in 0..20 {
                let mut values = Vec::new();
                for _ in 0..rng.usize(0..12) {
                    let n = rng.usize(1..70);
                    if rng.bool() {
                        values.extend(std::iter::repeat_n(rng.u32(0..=max), n));
                    } else {
                        values.extend((0..n).map(|_| rng.u32(0..=max)));
                    }
                }
                let bytes = encode(&values, BitWidth::new(width).unwrap());
                let mut decoder = decoder(&bytes, width, values.len());
                let (mut out, mut at) = (Vec::new(), 0);
                while at < values.len() {
                    let n = rng.usize(0..=values.len() - at);
                    if rng.bool() {
                        out.clear();
                        decoder.read(n, &mut out).unwrap();
                        assert_eq!(out, values[at..at + n], "width {width} seed {seed}");
                    } else {
                        decoder.skip(n).unwrap();
                    }
                    at += n;
                    assert_eq!(decoder.remaining(), values.len() - at);
                }
            }
        }
    }

    #[test]
    fn a_packed_run_without_groups_is_no_end() {
        let mut out = Vec::new();
        decoder(&[1, 20, 5], 3, 10).read(10, &mut out).unwrap();
        assert_eq!(out, [5; 10]);
    }

    #[test]
    fn bits_are_the_values_of_width_one() {
        let seed = 12;
        let mut rng = fastrand::Rng::with_seed(seed);
        for _ in 0..50 {
            let mut values = Vec::new();
            for _ in 0..rng.usize(1..8) {
                let (n, bit) = (rng.usize(1..90), rng.u32(0..2));
                values.extend((0..n).map(|_| if n > 40 { bit } else { rng.u32(0..2) }));
            }
            let stream = encode(&values, BitWidth::new(1).unwrap());
            let mut page = (stream.len() as u32).to_le_bytes().to_vec();
            page.extend(stream);
            let mut decoder = Booleans::new(page.into(), values.len()).unwrap();
            let skip = rng.usize(0..=values.len());
            decoder.skip(skip).unwrap();
            let mut bits = Bitmap::default();
            decoder.read(values.len() - skip, &mut bits).unwrap();
            let got: Vec<u32> = (0..bits.len()).map(|i| u32::from(bits.get(i))).collect();
            assert_eq!(got, values[skip..], "seed {seed}");
        }
    }

    #[test]
    fn values_are_appended_to_those_that_are_there() {
        let values: Vec<u32> = (0..40).map(|i| i * 5 % 8).collect();
        let bytes = encode(&values, BitWidth::new(3).unwrap());
        for first in 0..values.len() {
            let (mut decoder, mut out) = (decoder(&bytes, 3, values.len()), Vec::new());
            decoder.read(first, &mut out).unwrap();
            decoder.read(1, &mut out).unwrap();
            decoder.read(values.len() - first - 1, &mut out).unwrap();
            assert_eq!(out, values, "{first} first");
        }
    }

    #[test]
    fn bits_beyond_the_declared_ones_and_values_beyond_a_bit_are_malformed() {
        let mut bits = Bitmap::default();
        // Two runs of five, and two groups of packed bits: half of them are declared.
        for (stream, declared) in
            [(&[10, 1, 10, 0][..], 5), (&[3, 0x0F, 3, 0xF0, 0, 0, 0, 0, 0], 8)]
        {
            let mut decoder = decoder(stream, 1, declared);
            decoder.read_bits(declared, &mut bits).unwrap();
            let error = decoder.read_bits(1, &mut bits).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Malformed(SPEC));
        }
        let bits: Vec<bool> = (0..bits.len()).map(|i| bits.get(i)).collect();
        assert_eq!(bits, [[true; 9].as_slice(), &[false; 4]].concat());
        let error = decoder(&[10, 2], 1, 5).read_bits(5, &mut Bitmap::default()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Malformed(SPEC));
    }

    #[test]
    fn width_zero_needs_no_bytes() {
        let mut out = Vec::new();
        decoder(&[], 0, 5).read(5, &mut out).unwrap();
        assert_eq!(out, [0; 5]);
        let mut out = Vec::new();
        decoder(&[10], 0, 5).read(5, &mut out).unwrap();
        assert_eq!(out, [0; 5]);
    }

    #[test]
    fn cut_padding_is_tolerated_and_missing_values_are_not() {
        // One group of 8 values of 4 bits takes 4 bytes; the last two are padding here.
        let mut out = Vec::new();
        decoder(&[3, 0x21, 0x43], 4, 4).read(4, &mut out).unwrap();
        assert_eq!(out, [1, 2, 3, 4]);
        let mut short = decoder(&[3, 0x21, 0x43], 4, 5);
        assert_eq!(short.read(5, &mut out).unwrap_err().kind(), ErrorKind::Malformed(SPEC));
        assert_eq!(out.len(), 4, "a failed read appends nothing");
    }

    #[test]
    fn hostile_streams_are_malformed() {
        for (bytes, width, n) in [
            (&[][..], 1, 1),
            (&[2], 8, 1),
            (&[2, 4], 2, 1),
            (&[0, 0, 0, 0], 1, 1),
            (&[3], 4, 1),
            (&[0xFF; 12], 4, 100),
            (&[4, 1], 1, 5),
        ] {
            let error = decoder(bytes, width, n).read(n, &mut Vec::new()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Malformed(SPEC), "{bytes:?}");
        }
        assert!(BitWidth::new(33).is_err());
        let mut done = decoder(&[2, 1], 1, 1);
        done.skip(1).unwrap();
        assert!(done.skip(1).is_err(), "there is no second value");
    }

    #[test]
    fn a_run_of_a_billion_values_takes_no_memory() {
        let mut bytes = Vec::new();
        put_uleb(2_000_000_000 << 1, &mut bytes);
        bytes.push(1);
        let mut decoder = decoder(&bytes, 1, 2_000_000_000);
        decoder.skip(1_999_999_990).unwrap();
        let mut out = Vec::new();
        decoder.read(10, &mut out).unwrap();
        assert_eq!(out, [1; 10]);
    }

    fn wave(rng: &mut fastrand::Rng, max: u32) -> Vec<u32> {
        let mut values = Vec::new();
        for _ in 0..rng.usize(0..12) {
            let n = rng.usize(1..90);
            if rng.bool() {
                values.extend(std::iter::repeat_n(rng.u32(0..=max), n));
            } else {
                values.extend((0..n).map(|_| rng.u32(0..=max)));
            }
        }
        values
    }

    #[test]
    fn what_is_encoded_comes_back_for_every_width() {
        let seed = 61;
        let mut rng = fastrand::Rng::with_seed(seed);
        for width in 0..=32u8 {
            let max = ((1u64 << width) - 1) as u32;
            for round in 0..60 {
                let values = if round == 0 { vec![max] } else { wave(&mut rng, max) };
                let bits = BitWidth::new(width).unwrap();
                let mut bytes = vec![];
                encode_into(&values, bits, &mut bytes);
                assert_eq!(estimated_len(&values, bits), bytes.len(), "seed {seed}");
                let packed = values.len().div_ceil(8) * width as usize;
                assert!(bytes.len() <= packed + 16, "runs are never longer than what they replace");
                let mut out = Vec::new();
                let mut hybrid = decoder(&bytes, width, values.len());
                hybrid.read(values.len(), &mut out).unwrap();
                assert_eq!(out, values, "width {width} seed {seed}");
                assert!(width == 0 || hybrid.at == bytes.len(), "nothing is left over");
                if width <= 16 {
                    let levels: Vec<u16> = values.iter().map(|v| *v as u16).collect();
                    let mut same = vec![];
                    encode_levels_into(&levels, bits, &mut same);
                    assert_eq!(same, bytes, "width {width} seed {seed}");
                }
            }
        }
    }

    #[test]
    fn runs_by_hand() {
        let width = |bits| BitWidth::new(bits).unwrap();
        let encoded = |values: &[u32], bits| {
            let mut out = Vec::new();
            encode_into(values, width(bits), &mut out);
            out
        };
        assert_eq!(encoded(&[0, 1, 2, 3, 4, 5, 6, 7], 3), [3, 0x88, 0xC6, 0xFA]);
        assert_eq!(encoded(&[5; 10], 3), [20, 5]);
        assert_eq!(encoded(&[1], 1), [2, 1]);
        assert_eq!(encoded(&[0; 9], 0), [18]);
        assert!(encoded(&[], 7).is_empty());
        assert_eq!(encoded(&[0xABCDE; 100], 20), [0xC8, 0x01, 0xDE, 0xBC, 0x0A]);
        // A group, a run from where it ends, and three values after.
        let mut values = vec![1, 2, 3, 4, 5, 6, 7, 7];
        values.extend([7; 33]);
        values.extend([1, 0, 2]);
        assert_eq!(encoded(&values, 3), [3, 0xD1, 0x58, 0xFF, 66, 7, 3, 0x81, 0, 0]);
        let mut out = Vec::new();
        encode_run_into(3, 0, width(2), &mut out);
        assert!(out.is_empty());
        encode_run_into(1, (1 << 30) + 5, width(1), &mut out);
        assert_eq!(out, [0x80, 0x80, 0x80, 0x80, 0x08, 1, 10, 1]);
    }

    #[test]
    fn long_packed_runs_are_split() {
        let values: Vec<u32> = (0..(8 << 20) + 13).map(|i| i % 2).collect();
        let mut bytes = Vec::new();
        encode_into(&values, BitWidth(1), &mut bytes);
        assert_eq!(estimated_len(&values, BitWidth(1)), bytes.len());
        let mut out = Vec::new();
        decoder(&bytes, 1, values.len()).read(values.len(), &mut out).unwrap();
        assert!(out == values);
        let packed: Vec<u8> = vec![0xAA; (1 << 20) + 2];
        let mut same = Vec::new();
        encode_bits_into(&packed, 0, values.len(), &mut same);
        assert!(same == bytes);
    }

    #[test]
    fn bitmaps_are_the_same_bits() {
        let seed = 62;
        let mut rng = fastrand::Rng::with_seed(seed);
        for round in 0..2_000 {
            let mut values = Vec::new();
            while values.len() < 40 || rng.u32(0..8) > 0 {
                let n = rng.usize(1..200);
                match rng.u32(0..3) {
                    0 => values.extend(std::iter::repeat_n(rng.bool(), n)),
                    1 => values.extend((0..n).map(|_| rng.u32(0..50) == 0)),
                    _ => values.extend((0..n).map(|_| rng.bool())),
                }
            }
            if round % 5 == 0 {
                let bit = rng.bool();
                values.fill(bit);
            }
            let mut bits = vec![0u8; values.len().div_ceil(8)];
            values.iter().enumerate().for_each(|(i, &bit)| bits[i / 8] |= u8::from(bit) << (i % 8));
            let offset = rng.usize(0..values.len());
            let n = rng.usize(0..=values.len() - offset);
            let mut bytes = vec![];
            encode_bits_into(&bits, offset, n, &mut bytes);
            let mut out = Bitmap::default();
            let mut hybrid = decoder(&bytes, 1, n);
            hybrid.read_bits(n, &mut out).unwrap();
            let got: Vec<bool> = (0..n).map(|i| out.get(i)).collect();
            assert_eq!(got, values[offset..offset + n], "offset {offset} n {n} seed {seed}");
            assert_eq!(hybrid.at, bytes.len(), "nothing is left over");
            assert!(bytes.len() <= n.div_ceil(8) + 16);
            if n > 0 && got.iter().all(|bit| *bit == got[0]) {
                assert!(bytes.len() <= 4, "one run");
            }
        }
    }
}
