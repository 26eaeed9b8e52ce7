//! PFOR: integers as packed differences to a frame of reference, with exceptions for those that do
//! not fit. Experimental: a proposal, parquet-format pull request 617.
//!
//! Spec: PforEncoding.md of the proposal. Used by `read::column` for INT32 and INT64, with the
//! feature `preview`.
//!
//! ```text
//! page     = mode u8 (0), log2 of the vector size u8, bytes of a value u8 (4 | 8), values u32
//!            offset of each vector u32, counted from the first offset
//!            vector*
//! vector   = frame of reference i32 | i64, bit width u8 (bit 7: differences), exceptions u16
//!            start value i32 | i64, of differences alone
//!            packed differences to the frame, ceil(n * width / 8) bytes
//!            position of each exception u16
//!            value of each exception, as it is
//! ```
//!
//! All sums wrap. Traps: the width takes seven bits, as 64 is one; an exception among differences
//! is a difference, so that it is put in its place before they are summed up. Writers store 0 as
//! the first difference; readers add what is there to the start value.

use std::marker::PhantomData;

use super::choose::HAS_PFOR;
use super::vectors::{self, Exceptions, Header, Packed, VectorEncoding, VectorWord};
use crate::bytes::Cursor;
use crate::error::{Error, Result, Spec};
use crate::simd::native::append_bytes_le;
use crate::simd::{Isa, Kernel};

const SPEC: Spec = Spec::Encodings("PFOR");

/// Bit 7 of the byte of the width: the vector has differences.
const DIFFERENCES: u8 = 0x80;

/// PFOR of integers of a type.
#[derive(Debug)]
pub(crate) struct Pfor<T>(PhantomData<T>);

/// Decodes the values of a page.
pub(crate) type Decoder<T> = vectors::Decoder<Pfor<T>>;

impl<T: VectorWord> VectorEncoding for Pfor<T> {
    type Word = T;
    const SPEC: Spec = SPEC;

    fn header(cursor: &mut Cursor<'_>) -> Result<Header> {
        if !HAS_PFOR {
            let what = "the experimental encoding PFOR (parquet-format pull request 617)";
            return Err(Error::feature_disabled("preview", what));
        }
        let (mode, log_vector, value_bytes) = (cursor.u8()?, cursor.u8()?, cursor.u8()?);
        if mode != 0 {
            return Err(Error::unsupported("PFOR mode", format_args!("packing mode {mode}")));
        }
        if usize::from(value_bytes) != size_of::<T>() {
            return Err(Error::mismatch(SPEC, "value_byte_width", size_of::<T>(), value_bytes));
        }
        Ok(Header { log_vector, n: cursor.u32()? as usize })
    }

    fn decode(vector: &mut Cursor<'_>, n: usize, out: &mut Vec<T>) -> Result<()> {
        let frame = T::read(vector)?;
        let width = vector.u8()?;
        let exceptions = usize::from(vector.u16()?);
        let start = match width & DIFFERENCES {
            0 => None,
            _ => Some(T::read(vector)?),
        };
        let packed = Packed::take(vector, n, width & !DIFFERENCES, frame, SPEC)?;
        let exceptions = Exceptions::read::<T>(vector, exceptions, n, SPEC)?;
        let first = out.len();
        T::unpack(packed, n, |value| value, out)?;
        let values = out.get_mut(first..).unwrap_or_default();
        exceptions.patch(values)?;
        if let Some(mut sum) = start {
            for value in values {
                sum = sum.plus(*value);
                *value = sum;
            }
        }
        Ok(())
    }
}

/// Appends a page of values, in vectors of 1,024, each as values or as differences, whichever takes
/// fewer bytes.
///
/// # Errors
/// `Limit(Page)` if the page takes more than 2 GiB.
pub(crate) fn encode_into<T: VectorWord>(values: &[T], out: &mut Vec<u8>) -> Result<()> {
    let isa = Isa::for_kernel(Kernel::Pack);
    let value_bytes = u8::try_from(size_of::<T>()).expect("4 or 8");
    let mut scratch = Scratch::default();
    vectors::encode_into([0, vectors::LOG_VECTOR, value_bytes], values, out, |vector, out| {
        scratch.encode(isa, vector, out);
    })
}

/// A frame and a width, and the bits that a vector takes with them.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Window<T> {
    frame: T,
    width: u32,
    bits: usize,
}

impl<T: VectorWord> Window<T> {
    /// The window that takes the fewest bits: for each width the one that most values lie in.
    /// `sorted` is overwritten.
    fn cheapest(values: &[T], sorted: &mut Vec<T>) -> Self {
        sorted.clear();
        sorted.extend_from_slice(values);
        sorted.sort_unstable();
        let (Some(&least), Some(&most)) = (sorted.first(), sorted.last()) else {
            return Self { frame: T::default(), width: 0, bits: 0 };
        };
        let n = sorted.len();
        let all = T::width(least, most);
        let mut best = Self { frame: least, width: all, bits: n * all as usize };
        let exception = (u16::BITS + T::BITS) as usize;
        for width in 0..all {
            if n * width as usize >= best.bits {
                break;
            }
            let mut end = 0;
            for (start, &frame) in sorted.iter().enumerate() {
                // The window grows to its right end, and its left end moves on.
                let fits = |value: &&T| T::width(frame, **value) <= width;
                end += sorted.get(end..).unwrap_or_default().iter().take_while(fits).count();
                let bits = n * width as usize + (n - (end - start)) * exception;
                if bits < best.bits {
                    best = Self { frame, width, bits };
                }
                if end == n {
                    break;
                }
            }
        }
        best
    }
}

/// A vector that is being encoded.
#[derive(Debug)]
struct Scratch<T> {
    sorted: Vec<T>,
    differences: Vec<T>,
    packed: Vec<T>,
    positions: Vec<u16>,
    exceptions: Vec<T>,
}

impl<T> Default for Scratch<T> {
    fn default() -> Self {
        Self {
            sorted: Vec::new(),
            differences: Vec::new(),
            packed: Vec::new(),
            positions: Vec::new(),
            exceptions: Vec::new(),
        }
    }
}

impl<T: VectorWord> Scratch<T> {
    /// Appends a vector of at most 1,024 values.
    fn encode(&mut self, isa: Isa, vector: &[T], out: &mut Vec<u8>) {
        let of_values = Window::cheapest(vector, &mut self.sorted);
        self.differences.clear();
        self.differences.resize(vector.len().min(1), T::default());
        self.differences.extend(vector.iter().zip(vector.iter().skip(1)).map(|(a, b)| b.minus(*a)));
        let of_differences = Window::cheapest(&self.differences, &mut self.sorted);
        let differ = of_differences.bits + (T::BITS as usize) < of_values.bits;
        let (window, values) = match differ {
            true => (of_differences, &self.differences[..]),
            false => (of_values, vector),
        };
        let Window { frame, width, .. } = window;
        self.packed.clear();
        self.positions.clear();
        self.exceptions.clear();
        for (position, &value) in (0u16..).zip(values) {
            if T::width(frame, value) <= width {
                self.packed.push(value);
            } else {
                self.packed.push(frame);
                self.positions.push(position);
                self.exceptions.push(value);
            }
        }
        append_bytes_le(&[frame], out);
        let flag = if differ { DIFFERENCES } else { 0 };
        out.push(u8::try_from(width).expect("at most 64") | flag);
        let count = u16::try_from(self.positions.len()).expect("at most 1,024");
        out.extend_from_slice(&count.to_le_bytes());
        if differ {
            append_bytes_le(vector.get(..1).unwrap_or_default(), out);
        }
        T::pack(isa, &self.packed, frame, width, out);
        out.extend(self.positions.iter().flat_map(|position| position.to_le_bytes()));
        append_bytes_le(&self.exceptions, out);
    }
}

#[cfg(all(test, feature = "preview"))]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::error::ErrorKind;

    fn decode<T: VectorWord>(page: &[u8], n: usize) -> Result<Vec<T>> {
        let mut out = Vec::new();
        let mut decoder = Decoder::<T>::new(Bytes::copy_from_slice(page), n)?;
        decoder.read(n, &mut out)?;
        Ok(out)
    }

    /// A page of one vector of up to 8 values.
    fn page(value_bytes: u8, n: u8, vector: &[u8]) -> Vec<u8> {
        [&[0, 3, value_bytes, n, 0, 0, 0, 4, 0, 0, 0], vector].concat()
    }

    /// The first example of the proposal: 100, 102, 101, 103, 100, 99, 50000, 104.
    const EXAMPLE: [u8; 16] = [99, 0, 0, 0, 3, 1, 0, 0x99, 0x18, 0xA0, 6, 0, 0x50, 0xC3, 0, 0];

    #[test]
    fn first_example_of_the_proposal() {
        let values = [100, 102, 101, 103, 100, 99, 50_000, 104];
        assert_eq!(decode::<i32>(&page(4, 8, &EXAMPLE), 8).unwrap(), values);
        let mut written = Vec::new();
        encode_into(&values, &mut written).unwrap();
        // The example counts the offset from its own array, and has vectors of 1,024 values.
        let expected = [&[0, 10, 4, 8, 0, 0, 0, 4, 0, 0, 0][..], &EXAMPLE].concat();
        assert_eq!(written, expected);
    }

    #[test]
    fn sizes_of_the_other_examples() {
        let len = |values: &[i32]| {
            let mut page = Vec::new();
            encode_into(values, &mut page).unwrap();
            page.len() - 11
        };
        // Second: 1,000 to 1,255 in any order.
        let spread: Vec<i32> = (0..1024).map(|i| 1000 + i * 77 % 256).collect();
        assert_eq!(len(&spread), 7 + 1024);
        // Third: keys of dates, and ten of a date long before, in any order. The proposal counts 11
        // bits for differences of up to 2,190, which take 12.
        let dates: Vec<i32> = (0..1024)
            .map(|i| if i % 100 == 50 { 2_415_022 } else { 2_450_815 + i * 1_013 % 2_191 })
            .collect();
        assert_eq!(len(&dates), 7 + 1024 * 12 / 8 + 10 * 6);

        // Fourth: points in time at equal distances. One exception, the first difference, takes
        // less than the three bits of each value that the proposal takes.
        let mut times: Vec<i64> = (0..1024).map(|i| 1_700_000_000_000 + i * 7).collect();
        let mut page = Vec::new();
        encode_into(&times, &mut page).unwrap();
        assert_eq!(page.len() - 11, 11 + 8 + 10);
        assert_eq!(decode::<i64>(&page, 1024).unwrap(), times);
        times[500..].iter_mut().for_each(|time| *time += 1_000_000_000);
        let mut page = Vec::new();
        encode_into(&times, &mut page).unwrap();
        assert_eq!(page.len() - 11, 11 + 8 + 2 * 10);
        assert_eq!(decode::<i64>(&page, 1024).unwrap(), times);
    }

    #[test]
    fn fourth_example_as_the_proposal_writes_it() {
        // Frame 0, width 3 and the flag, one exception; the gap is at 5 in place of 500.
        let mut vector = vec![0; 8];
        vector.extend([0x83, 1, 0]);
        vector.extend(1_700_000_000_000_i64.to_le_bytes());
        // 0 7 7 7 7 0 7 7
        vector.extend([0b1111_1000, 0b0111_1111, 0b1111_1100]);
        vector.extend([5, 0]);
        vector.extend(1_000_000_007_i64.to_le_bytes());
        let gap = |i: i64| if i < 5 { 0 } else { 1_000_000_000 };
        let expected: Vec<i64> = (0..8).map(|i| 1_700_000_000_000 + i * 7 + gap(i)).collect();
        assert_eq!(decode::<i64>(&page(8, 8, &vector), 8).unwrap(), expected);
    }

    #[test]
    fn values_below_the_frame_are_exceptions() {
        // Frame 100, width 2, two exceptions: -58 and 1000 around 101 and 102.
        let mut vector = vec![100, 0, 0, 0, 2, 2, 0, 0b0010_0100, 0, 0, 3, 0];
        vector.extend((-58_i32).to_le_bytes());
        vector.extend(1000_i32.to_le_bytes());
        assert_eq!(decode::<i32>(&page(4, 4, &vector), 4).unwrap(), [-58, 101, 102, 1000]);
    }

    #[test]
    fn sums_and_differences_wrap() {
        // Start i32::MAX, differences 0 and 1.
        let mut vector = vec![0, 0, 0, 0, 0x81, 0, 0];
        vector.extend(i32::MAX.to_le_bytes());
        vector.push(0b10);
        assert_eq!(decode::<i32>(&page(4, 2, &vector), 2).unwrap(), [i32::MAX, i32::MIN]);
        // A width of 64, which takes the seventh bit.
        let values = [i64::MIN, i64::MAX, -1, 0];
        let mut vector = i64::MIN.to_le_bytes().to_vec();
        vector.extend([64, 0, 0]);
        vector.extend(values.iter().flat_map(|v| v.wrapping_sub(i64::MIN).to_le_bytes()));
        assert_eq!(decode::<i64>(&page(8, 4, &vector), 4).unwrap(), values);
    }

    /// The proposal's steps, a bit and a value at a time.
    fn slowly(page: &[u8], n: usize, bytes: usize) -> Vec<i64> {
        let number = |at: usize, len: usize| {
            let mut word = [0; 8];
            word[..len].copy_from_slice(&page[at..at + len]);
            u64::from_le_bytes(word)
        };
        let wrap = |value: u64| match bytes {
            4 => i64::from(value as u32 as i32),
            _ => value as i64,
        };
        let vector_len = 1 << page[1];
        let mut out = Vec::new();
        for v in 0..n.div_ceil(vector_len) {
            let mut at = 7 + number(7 + 4 * v, 4) as usize;
            let frame = number(at, bytes);
            let width = usize::from(page[at + bytes] & 0x7f);
            let differ = page[at + bytes] & 0x80 != 0;
            let exceptions = number(at + bytes + 1, 2) as usize;
            at += bytes + 3;
            let start = if differ { number(at, bytes) } else { 0 };
            at += if differ { bytes } else { 0 };
            let len = vector_len.min(n - v * vector_len);
            let bit = |i: usize| u64::from(page[at + i / 8] >> (i % 8) & 1);
            let mut values: Vec<u64> = (0..len)
                .map(|i| (0..width).map(|b| bit(i * width + b) << b).sum::<u64>())
                .map(|residual| residual.wrapping_add(frame))
                .collect();
            let positions = at + (len * width).div_ceil(8);
            for e in 0..exceptions {
                values[number(positions + 2 * e, 2) as usize] =
                    number(positions + 2 * exceptions + bytes * e, bytes);
            }
            let mut sum = start;
            for value in values {
                sum = if differ { sum.wrapping_add(value) } else { value };
                out.push(wrap(sum));
            }
        }
        out
    }

    fn check<T: VectorWord + Into<i64>>(values: &[T], what: &str) -> usize {
        let mut written = vec![9];
        encode_into(values, &mut written).unwrap();
        let page = Bytes::from(written).slice(1..);
        assert!(decode::<T>(&page, values.len()).unwrap() == values, "{what}");
        let wide: Vec<i64> = values.iter().map(|value| (*value).into()).collect();
        assert!(slowly(&page, values.len(), size_of::<T>()) == wide, "{what}, slowly");
        // Some are read, some skipped.
        let mut decoder = Decoder::<T>::new(page.clone(), values.len()).unwrap();
        let mut rest = values;
        for part in [3, 1500, 0, 7, 900].into_iter().cycle().take(20) {
            let (now, later) = rest.split_at(part.min(rest.len()));
            if part % 2 == 0 {
                decoder.skip(now.len()).unwrap();
            } else {
                let mut out = Vec::new();
                decoder.read(now.len(), &mut out).unwrap();
                assert!(out == now, "{what}, in parts");
            }
            rest = later;
        }
        page.len()
    }

    #[test]
    fn every_value_comes_back() {
        let seed = 617;
        let mut rng = fastrand::Rng::with_seed(seed);
        for n in [0_usize, 1, 2, 8, 31, 1023, 1024, 1025, 5000] {
            let what = format!("n {n} seed {seed}");
            let mut sum = 0i64;
            let odd = [i64::MIN, i64::MAX, 0, -1, 1, i64::from(i32::MIN), 1 << 40];
            for range in [1, 2, 255, 256, 1 << 20, 1 << 40, i64::MAX] {
                let flat: Vec<i64> = (0..n).map(|_| rng.i64(0..range)).collect();
                let rising: Vec<i64> = (flat.iter())
                    .map(|step| {
                        sum = sum.wrapping_add(*step);
                        sum
                    })
                    .collect();
                let mixed: Vec<i64> = (rising.iter())
                    .map(|value| if rng.u8(..) < 9 { odd[rng.usize(0..odd.len())] } else { *value })
                    .collect();
                for values in [flat, rising, mixed] {
                    let len = check(&values, &what);
                    let most = 11 + n.div_ceil(1024) * 19 + n * 8;
                    assert!(len <= most, "{len} of {most} bytes, {what}");
                    check(&values.iter().map(|value| *value as i32).collect::<Vec<_>>(), &what);
                }
            }
        }
    }

    /// Vectors begin where the one before them ends, as their offsets say.
    #[test]
    fn offsets_of_vectors_are_checked() {
        let mut whole = Vec::new();
        encode_into(&(0..2500).map(|i| i * i % 97).collect::<Vec<i32>>(), &mut whole).unwrap();
        let offset = |i: usize| u32::from_le_bytes(*whole[7 + 4 * i..].first_chunk().unwrap());
        for (i, wrong) in [
            (0, offset(0) + 1),
            (1, 0),
            (1, offset(1) - 1),
            (1, offset(1) + 1),
            (1, offset(2) + 1),
            (2, offset(1)),
            (2, u32::MAX),
            (2, u32::try_from(whole.len()).unwrap()),
        ] {
            let mut bytes = whole.clone();
            bytes[7 + 4 * i..][..4].copy_from_slice(&wrong.to_le_bytes());
            let kind = decode::<i32>(&bytes, 2500).unwrap_err().kind();
            assert_eq!(kind, ErrorKind::Malformed(SPEC), "offset {i} is {wrong}");
        }
    }

    /// The window by trying all frames and widths.
    fn cheapest_slowly(values: &[i32]) -> usize {
        let bits = |frame: i32, width: u32| {
            let fits = |value: &&i32| {
                **value >= frame && <i32 as VectorWord>::width(frame, **value) <= width
            };
            let exceptions = values.len() - values.iter().filter(fits).count();
            values.len() * width as usize + exceptions * 48
        };
        let widths = |frame: i32| (0..=32).map(move |width| (frame, width));
        values.iter().copied().flat_map(widths).map(|(f, w)| bits(f, w)).min().unwrap_or(0)
    }

    #[test]
    fn no_window_is_cheaper() {
        let seed = 618;
        let mut rng = fastrand::Rng::with_seed(seed);
        for _ in 0..300 {
            let n = rng.usize(0..40);
            let range = 1 << rng.u32(0..30);
            let values: Vec<i32> = (0..n)
                .map(|_| if rng.u8(..) < 30 { rng.i32(..) } else { rng.i32(-range..range) })
                .collect();
            let found = Window::cheapest(&values, &mut Vec::new());
            assert_eq!(found.bits, cheapest_slowly(&values), "{values:?} seed {seed}");
        }
    }

    #[test]
    fn broken_pages_are_malformed() {
        let whole = page(4, 8, &EXAMPLE);
        let broken = |at: usize, byte: u8| {
            let mut bytes = whole.clone();
            bytes[at] = byte;
            decode::<i32>(&bytes, 8).unwrap_err().kind()
        };
        assert_eq!(broken(0, 1), ErrorKind::Unsupported("PFOR mode"));
        // Vector size, value width, count, offset, bit width, exceptions, position.
        for (at, byte) in [
            (1, 2),
            (1, 16),
            (2, 8),
            (3, 7),
            (7, 5),
            (7, 3),
            (15, 33),
            (15, 0x83),
            (15, 4),
            (16, 2),
            (16, 0),
            (21, 8),
        ] {
            assert_eq!(broken(at, byte), ErrorKind::Malformed(SPEC), "byte {at} = {byte}");
        }
        for cut in 0..whole.len() {
            assert!(decode::<i32>(&whole[..cut], 8).is_err(), "cut at {cut}");
        }
        assert!(decode::<i64>(&whole, 8).is_err());
        // More exceptions than values: two, both at the same place.
        let twice = [&[7, 0, 0, 0, 0, 2, 0][..], &[0; 12]].concat();
        assert!(decode::<i32>(&page(4, 1, &twice), 1).is_err());
        assert!(decode::<i64>(&[0, 10, 8, 0, 0, 0, 0], 0).unwrap().is_empty());
    }
}

#[cfg(all(test, not(feature = "preview")))]
mod tests {
    use super::*;
    use crate::encoding::choose::{encoding_named, is_legal};
    use crate::error::ErrorKind;
    use crate::format::{Encoding, Type};

    #[test]
    fn a_build_without_the_feature_names_it() {
        let page = bytes::Bytes::from_static(&[0, 10, 4, 0, 0, 0, 0]);
        let error = Decoder::<i32>::new(page, 0).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::FeatureDisabled("preview"), "{error}");
        assert!(!is_legal(Encoding::Pfor, Type::Int32));
        let error = encoding_named("PFOR").unwrap_err().to_string();
        assert!(error.ends_with("ALP"), "{error}");
    }
}
