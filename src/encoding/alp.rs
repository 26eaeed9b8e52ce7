//! ALP: stores floats that are decimal numbers as scaled integers.
//!
//! Spec: AlpEncoding.md. Used by `read::column` for FLOAT and DOUBLE.
//!
//! ```text
//! page     = mode u8 (0), integer encoding u8 (0), log2 of the vector size u8, values i32
//!            offset of each vector u32, counted from the first offset
//!            vector*
//! vector   = exponent u8, factor u8, exceptions u16
//!            frame of reference i32 | i64, bit width u8
//!            packed differences to the frame, ceil(n * width / 8) bytes
//!            position of each exception u16
//!            value of each exception, as it is
//! ```
//!
//! Trap: a value is `(integer * 10^factor) * 10^-exponent`, two multiplications one after the
//! other; anything else is another number in the last bit.

use super::vectors::{self, Exceptions, Header, Packed, VECTOR, VectorEncoding, VectorWord};
use crate::bytes::Cursor;
use crate::error::{Error, Result, Spec};
use crate::simd::decimals::{Fit, Powers, QUICK_32, QUICK_64, integers_f32, integers_f64};
use crate::simd::native::{Word, append_bytes_le};
use crate::simd::{Isa, Kernel};

const SPEC: Spec = Spec::Encodings("ALP");

/// `f32` or `f64`.
pub(crate) trait Float: Copy + Default + Send + Word {
    /// The integer of the same width, which also holds the bits.
    type Int: VectorWord;
    /// The highest exponent.
    const MAX_EXPONENT: u8;

    /// Appends the bits of `n` values: packed differences to the frame, decoded with exponent and
    /// factor.
    fn decode(
        packed: Packed<'_, Self::Int>,
        n: usize,
        pair: ScaleFactors,
        out: &mut Vec<Self::Int>,
    ) -> Result<()>;

    /// The integers of values at `pair`, and which values do not come back from them.
    fn integers(
        isa: Isa,
        values: &[Self],
        pair: ScaleFactors,
        out: &mut [Self::Int],
        bad: &mut [bool],
    ) -> Fit<Self::Int>;

    /// The integer of a value that is too large for the quick way to round, if the value comes back
    /// from it.
    fn large_integer(self, pair: ScaleFactors) -> Option<Self::Int>;
}

/// The factors by which values are scaled: 10^exponent, then 10^-factor.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ScaleFactors {
    exponent: u8,
    factor: u8,
}

macro_rules! float {
    (
        $float:ty, $int:ty, $max:literal, $positive:ident, $negative:ident, $integers:ident, $quick:ident
    ) => {
        impl Float for $float {
            type Int = $int;
            const MAX_EXPONENT: u8 = $max;

            fn decode(
                packed: Packed<'_, $int>,
                n: usize,
                pair: ScaleFactors,
                out: &mut Vec<$int>,
            ) -> Result<()> {
                // Both were checked against the tables when they were read.
                let up = $positive.get(usize::from(pair.factor)).copied().unwrap_or(1.0);
                let down = $negative.get(usize::from(pair.exponent)).copied().unwrap_or(1.0);
                let value = |integer: $int| {
                    #[expect(clippy::cast_precision_loss, reason = "the format says so")]
                    let value = integer as $float * up * down;
                    value.to_bits().cast_signed()
                };
                <$int>::unpack(packed, n, value, out)
            }

            fn integers(
                isa: Isa,
                values: &[Self],
                pair: ScaleFactors,
                out: &mut [$int],
                bad: &mut [bool],
            ) -> Fit<$int> {
                let (exponent, factor) = (usize::from(pair.exponent), usize::from(pair.factor));
                let powers = Powers {
                    exponent_up: $positive[exponent],
                    exponent_down: $negative[exponent],
                    factor_up: $positive[factor],
                    factor_down: $negative[factor],
                };
                $integers(isa, values, &powers, out, bad)
            }

            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_precision_loss,
                reason = "what does not come back is left out"
            )]
            fn large_integer(self, pair: ScaleFactors) -> Option<$int> {
                let (exponent, factor) = (usize::from(pair.exponent), usize::from(pair.factor));
                let scaled = self * $positive[exponent] * $negative[factor];
                // The largest integer is no float: it becomes the one above it. Smaller ones were
                // tried before.
                let size = scaled.abs();
                if size.is_nan() || f64::from(size) < $quick || size >= <$int>::MAX as $float {
                    return None;
                }
                let scaled = scaled.round_ties_even();
                let integer = scaled as $int;
                let back = integer as $float * $positive[factor] * $negative[exponent];
                (back.to_bits() == self.to_bits()).then_some(integer)
            }
        }
    };
}
float!(f32, i32, 10, POSITIVE_32, NEGATIVE_32, integers_f32, QUICK_32);
float!(f64, i64, 18, POSITIVE_64, NEGATIVE_64, integers_f64, QUICK_64);

const POSITIVE_32: [f32; 11] = [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10];
const NEGATIVE_32: [f32; 11] = [1e0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10];
const POSITIVE_64: [f64; 19] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
    1e17, 1e18,
];
const NEGATIVE_64: [f64; 19] = [
    1e0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10, 1e-11, 1e-12, 1e-13, 1e-14,
    1e-15, 1e-16, 1e-17, 1e-18,
];

/// ALP of floats of a type.
#[derive(Debug)]
pub(crate) struct Alp<F>(std::marker::PhantomData<F>);

/// Decodes the values of a page; as bits, which is what an Arrow buffer wants.
pub(crate) type Decoder<F> = vectors::Decoder<Alp<F>>;

impl<F: Float> VectorEncoding for Alp<F> {
    type Word = F::Int;
    const SPEC: Spec = SPEC;

    fn header(cursor: &mut Cursor<'_>) -> Result<Header> {
        let (mode, integer_encoding, log_vector) = (cursor.u8()?, cursor.u8()?, cursor.u8()?);
        if mode != 0 || integer_encoding != 0 {
            return Err(Error::unsupported(
                "ALP mode",
                format_args!("compression mode {mode} with integer encoding {integer_encoding}"),
            ));
        }
        let n = cursor.i32()?;
        let n = usize::try_from(n)
            .map_err(|_| Error::mismatch(SPEC, "num_elements", "not negative", n))?;
        Ok(Header { log_vector, n })
    }

    fn decode(vector: &mut Cursor<'_>, n: usize, out: &mut Vec<F::Int>) -> Result<()> {
        let (exponent, factor) = (vector.u8()?, vector.u8()?);
        if exponent > F::MAX_EXPONENT {
            let expected = format_args!("at most {}", F::MAX_EXPONENT);
            return Err(Error::mismatch(SPEC, "exponent", expected, exponent));
        }
        if factor > exponent {
            let expected = format_args!("at most the exponent {exponent}");
            return Err(Error::mismatch(SPEC, "factor", expected, factor));
        }
        let exceptions = usize::from(vector.u16()?);
        let frame = F::Int::read(vector)?;
        let width = vector.u8()?;
        let packed = Packed::take(vector, n, width, frame, SPEC)?;
        let exceptions = Exceptions::read::<F::Int>(vector, exceptions, n, SPEC)?;
        let first = out.len();
        F::decode(packed, n, ScaleFactors { exponent, factor }, out)?;
        exceptions.patch(out.get_mut(first..).unwrap_or_default())
    }
}

/// Appends a page of values, in vectors of 1,024; every value comes back bit for bit. Spec:
/// AlpEncoding.md.
///
/// # Errors
/// `Limit(Page)` if the page takes more than 2 GiB.
pub(crate) fn encode_into<F: Float>(values: &[F], out: &mut Vec<u8>) -> Result<()> {
    let isa = Isa::for_kernel(Kernel::Decimals);
    let pairs = candidates(isa, values);
    let mut scratch = Scratch::new();
    vectors::encode_into([0, 0, vectors::LOG_VECTOR], values, out, |vector, out| {
        let pair = match pairs.as_slice() {
            [] => ScaleFactors::default(),
            [pair] => *pair,
            pairs => best(isa, &sample(vector), pairs.iter().copied()),
        };
        scratch.encode(isa, vector, pair, out);
    })
}

/// Values looked at to choose a pair for a vector.
const SAMPLE: usize = 32;
/// Vectors for which all pairs are tried.
const SAMPLED_VECTORS: usize = 8;
/// Pairs that are tried for each of the others.
const CANDIDATES: usize = 5;

/// Values from all over a vector.
fn sample<F: Float>(vector: &[F]) -> Vec<F> {
    vector.iter().step_by(vector.len().div_ceil(SAMPLE).max(1)).copied().collect()
}

/// The scale factors that suit most of some sampled vectors; all factors are tried on these.
fn candidates<F: Float>(isa: Isa, values: &[F]) -> Vec<ScaleFactors> {
    let vectors = values.len().div_ceil(VECTOR);
    let mut votes: Vec<(usize, ScaleFactors)> = Vec::new();
    for vector in values.chunks(VECTOR).step_by(vectors.div_ceil(SAMPLED_VECTORS).max(1)) {
        let all = (0..=F::MAX_EXPONENT).flat_map(|exponent| {
            (0..=exponent).map(move |factor| ScaleFactors { exponent, factor })
        });
        let pair = best(isa, &sample(vector), all);
        match votes.iter_mut().find(|(_, other)| *other == pair) {
            Some((votes, _)) => *votes += 1,
            None => votes.push((1, pair)),
        }
    }
    votes.sort_by_key(|(votes, _)| std::cmp::Reverse(*votes));
    votes.into_iter().take(CANDIDATES).map(|(_, pair)| pair).collect()
}

/// The pair that takes the fewest bits for at most [`SAMPLE`] values. Of equal ones the last: with
/// high exponents fewer values are lost to rounding. If no pair fits, no scaling at all, as large
/// integers may fit still.
fn best<F: Float>(
    isa: Isa,
    sample: &[F],
    pairs: impl Iterator<Item = ScaleFactors>,
) -> ScaleFactors {
    let (mut integers, mut bad) = ([F::Int::default(); SAMPLE], [false; SAMPLE]);
    let (Some(integers), Some(bad)) =
        (integers.get_mut(..sample.len()), bad.get_mut(..sample.len()))
    else {
        return ScaleFactors::default();
    };
    let mut best = ScaleFactors::default();
    let mut least_cost = usize::MAX;
    for pair in pairs {
        let fit = F::integers(isa, sample, pair, integers, bad);
        if fit.bad == sample.len() {
            continue;
        }
        let exception = (u16::BITS + F::Int::BITS) as usize;
        let cost = sample.len() * F::Int::width(fit.least, fit.max) as usize + fit.bad * exception;
        if cost <= least_cost {
            (best, least_cost) = (pair, cost);
        }
    }
    best
}

/// A vector that is being encoded.
struct Scratch<F: Float> {
    integers: Vec<F::Int>,
    bad: Vec<bool>,
    positions: Vec<u16>,
    exceptions: Vec<F>,
}

impl<F: Float> Scratch<F> {
    fn new() -> Self {
        Self {
            integers: vec![F::Int::default(); VECTOR],
            bad: vec![false; VECTOR],
            positions: Vec::new(),
            exceptions: Vec::new(),
        }
    }

    /// Appends a vector of at most 1,024 values.
    fn encode(&mut self, isa: Isa, vector: &[F], pair: ScaleFactors, out: &mut Vec<u8>) {
        self.integers.resize(vector.len(), F::Int::default());
        self.bad.resize(vector.len(), false);
        let mut fit = F::integers(isa, vector, pair, &mut self.integers, &mut self.bad);
        self.positions.clear();
        self.exceptions.clear();
        if fit.bad > 0 {
            let slots = self.integers.iter_mut().zip(&self.bad).zip(vector);
            for (position, ((slot, _), &value)) in (0u16..).zip(slots).filter(|(_, s)| *s.0.1) {
                if let Some(integer) = value.large_integer(pair) {
                    *slot = integer;
                    fit.least = fit.least.min(integer);
                    fit.max = fit.max.max(integer);
                } else {
                    self.positions.push(position);
                    self.exceptions.push(value);
                }
            }
        }
        let mut frame = fit.least;
        let mut width = 0;
        if self.positions.len() < vector.len() {
            width = F::Int::width(fit.least, fit.max);
        }
        // A few that fit and lie far apart may cost more than they save: all are exceptions then.
        let exception = (u16::BITS + F::Int::BITS) as usize;
        let cost = vector.len() * width as usize + self.positions.len() * exception;
        if self.positions.len() == vector.len() || cost > vector.len() * exception {
            (frame, width) = (F::Int::default(), 0);
            self.exceptions.clear();
            self.exceptions.extend_from_slice(vector);
            self.positions.clear();
            self.positions.extend((0u16..).take(vector.len()));
        }
        for &position in &self.positions {
            // An exception has a slot all the same: one of the frame widens nothing.
            if let Some(slot) = self.integers.get_mut(usize::from(position)) {
                *slot = frame;
            }
        }
        let count = u16::try_from(self.positions.len()).expect("at most 1,024");
        out.extend_from_slice(&[pair.exponent, pair.factor]);
        out.extend_from_slice(&count.to_le_bytes());
        append_bytes_le(&[frame], out);
        out.push(u8::try_from(width).expect("at most 64"));
        F::Int::pack(isa, &self.integers, frame, width, out);
        out.extend(self.positions.iter().flat_map(|position| position.to_le_bytes()));
        append_bytes_le(&self.exceptions, out);
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::error::ErrorKind;

    /// The doubles 1.5, 2.5, NaN, −0.0 in one vector of 8, exponent 1, factor 0.
    const EXAMPLE: [u8; 46] = [
        0, 0, 3, 4, 0, 0, 0, 4, 0, 0, 0, 1, 0, 2, 0, 0x0F, 0, 0, 0, 0, 0, 0, 0, 4, 0xA0, 0, 2, 0,
        3, 0, 0, 0, 0, 0, 0, 0, 0xF8, 0x7F, 0, 0, 0, 0, 0, 0, 0, 0x80,
    ];

    #[test]
    fn example_of_the_format_notes() {
        let mut decoder = Decoder::<f64>::new(Bytes::from_static(&EXAMPLE), 4).unwrap();
        let mut out = Vec::new();
        decoder.read(4, &mut out).unwrap();
        let expected =
            [1.5f64, 2.5, f64::from_bits(0x7FF8_0000_0000_0000), -0.0].map(|v| v.to_bits() as i64);
        assert_eq!(out, expected);
        assert_eq!(vectors::stated_len::<Alp<f64>>(&EXAMPLE).unwrap(), 4);
    }

    /// A page of vectors of 8 doubles at `exponent`, `factor`, all of them integers of 64 bits.
    fn page(integers: &[i64], exponent: u8, factor: u8) -> Vec<u8> {
        let mut vectors = Vec::new();
        for vector in integers.chunks(8) {
            let mut bytes = vec![exponent, factor, 0, 0];
            bytes.extend(0i64.to_le_bytes());
            bytes.push(64);
            vector.iter().for_each(|v| bytes.extend(v.to_le_bytes()));
            vectors.push(bytes);
        }
        let mut out = vec![0, 0, 3];
        out.extend((integers.len() as i32).to_le_bytes());
        let mut offset = vectors.len() * 4;
        for vector in &vectors {
            out.extend((offset as u32).to_le_bytes());
            offset += vector.len();
        }
        vectors.iter().for_each(|vector| out.extend(vector));
        out
    }

    #[test]
    fn two_multiplications_one_after_the_other() {
        let seed = 19;
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut one_step_differs = false;
        for exponent in 0..=18u8 {
            for factor in 0..=exponent {
                let integers: Vec<i64> = (0..20).map(|_| rng.i64(-1_000_000..1_000_000)).collect();
                let mut decoder =
                    Decoder::<f64>::new(page(&integers, exponent, factor).into(), 20).unwrap();
                let mut out = Vec::new();
                decoder.read(5, &mut out).unwrap();
                decoder.skip(2).unwrap();
                decoder.read(13, &mut out).unwrap();
                for (i, bits) in (0..5).chain(7..20).zip(out) {
                    let up: f64 = format!("1e{factor}").parse().unwrap();
                    let down: f64 = format!("1e-{exponent}").parse().unwrap();
                    let scaled = integers[i] as f64 * up;
                    assert_eq!(bits as u64, (scaled * down).to_bits(), "seed {seed}");
                    one_step_differs |= (scaled * down) != integers[i] as f64 * (up * down);
                }
            }
        }
        assert!(one_step_differs, "the test would not tell the two apart");
    }

    #[test]
    fn broken_pages_are_malformed() {
        let broken = |at: usize, byte: u8| {
            let mut bytes = EXAMPLE;
            bytes[at] = byte;
            Decoder::<f64>::new(Bytes::copy_from_slice(&bytes), 4)
                .and_then(|mut decoder| decoder.read(4, &mut Vec::new()))
                .unwrap_err()
                .kind()
        };
        assert_eq!(broken(0, 1), ErrorKind::Unsupported("ALP mode"));
        for (at, byte) in [
            (2, 2),
            (2, 16),
            (3, 5),
            (7, 5),
            (11, 19),
            (12, 2),
            (13, 3),
            (23, 65),
            (23, 5),
            (26, 4),
        ] {
            assert_eq!(broken(at, byte), ErrorKind::Malformed(SPEC), "byte {at} = {byte}");
        }
        for cut in 0..EXAMPLE.len() {
            let bytes = Bytes::copy_from_slice(&EXAMPLE[..cut]);
            let read = Decoder::<f64>::new(bytes, 4).and_then(|mut d| d.read(4, &mut Vec::new()));
            assert!(read.is_err(), "cut at {cut}");
        }
    }

    #[test]
    fn page_without_values_is_a_header() {
        let mut decoder =
            Decoder::<f32>::new(Bytes::from_static(&[0, 0, 10, 0, 0, 0, 0]), 0).unwrap();
        decoder.read(0, &mut Vec::new()).unwrap();
        assert!(decoder.skip(1).is_err());
    }

    fn check_64(values: &[f64], what: &str) -> usize {
        let mut bytes = vec![9];
        encode_into(values, &mut bytes).unwrap();
        let bytes = Bytes::from(bytes).slice(1..);
        let len = bytes.len();
        let mut out = Vec::new();
        let mut decoder = Decoder::<f64>::new(bytes, values.len()).unwrap();
        decoder.read(values.len(), &mut out).unwrap();
        let expected: Vec<i64> = values.iter().map(|v| v.to_bits() as i64).collect();
        assert!(out == expected, "{what}");
        len
    }

    fn check_32(values: &[f32], what: &str) -> usize {
        let mut bytes = vec![9];
        encode_into(values, &mut bytes).unwrap();
        let bytes = Bytes::from(bytes).slice(1..);
        let len = bytes.len();
        let mut out = Vec::new();
        let mut decoder = Decoder::<f32>::new(bytes, values.len()).unwrap();
        decoder.read(values.len(), &mut out).unwrap();
        let expected: Vec<i32> = values.iter().map(|v| v.to_bits() as i32).collect();
        assert!(out == expected, "{what}");
        len
    }

    #[test]
    fn every_value_comes_back_bit_for_bit() {
        let seed = 82;
        let mut rng = fastrand::Rng::with_seed(seed);
        let odd = [
            f64::NAN,
            f64::from_bits(0xFFF0_0000_0000_0001),
            f64::from_bits(0x7FF8_0000_0000_1234),
            f64::INFINITY,
            f64::NEG_INFINITY,
            -0.0,
            0.0,
            f64::MAX,
            f64::MIN,
            f64::MIN_POSITIVE,
            5e-324,
            9_223_372_036_854_775_807.0,
            -9_223_372_036_854_775_808.0,
            9_223_372_036_854_774_784.0,
            4_503_599_627_370_497.0,
        ];
        for n in [0, 1, 2, 31, 1023, 1024, 1025, 5000] {
            let what = format!("n {n} seed {seed}");
            for digits in 0..9 {
                let power = 10f64.powi(digits);
                let decimals: Vec<f64> =
                    (0..n).map(|_| f64::from(rng.i32(-1_000_000..1_000_000)) / power).collect();
                let len = check_64(&decimals, &what);
                assert!(n < 1024 || len < n * 4, "{digits} digits: {len} bytes for {n} values");
                let mixed: Vec<f64> = (0..n)
                    .map(
                        |i| if rng.u8(..) < 9 { odd[rng.usize(0..odd.len())] } else { decimals[i] },
                    )
                    .collect();
                check_64(&mixed, &what);
                let narrow: Vec<f32> = decimals.iter().map(|v| *v as f32).collect();
                let len = check_32(&narrow, &what);
                assert!(n < 1024 || len < n * 5, "{digits} digits: {len} bytes for {n} values");
                check_32(&mixed.iter().map(|v| *v as f32).collect::<Vec<_>>(), &what);
            }
            check_64(&(0..n).map(|_| f64::from_bits(rng.u64(..))).collect::<Vec<_>>(), &what);
            check_32(&(0..n).map(|_| f32::from_bits(rng.u32(..))).collect::<Vec<_>>(), &what);
            check_64(&(0..n).map(|i| odd[i % odd.len()]).collect::<Vec<_>>(), &what);
            for value in odd {
                check_64(&vec![value; n], &what);
                check_32(&vec![value as f32; n], &what);
            }
            let large: Vec<f64> =
                (0..n).map(|_| (rng.i64(0..1 << 20) + (1 << 52)) as f64).collect();
            let len = check_64(&large, &what);
            assert!(n < 1024 || len < n * 3, "large integers are integers: {len}");
        }
    }

    #[test]
    fn no_vector_takes_more_than_exceptions_do() {
        let seed = 83;
        let mut rng = fastrand::Rng::with_seed(seed);
        // Half are integers of more than 45 bits, and the others no decimals.
        let values: Vec<f64> = (0..1024u64)
            .map(|i| match i % 2 {
                0 => (rng.i64(0..1 << 50) - (1 << 49)) as f64,
                _ => f64::from_bits(rng.u64(..)),
            })
            .collect();
        let len = check_64(&values, "wide integers");
        assert!(len <= 1024 * 10 + 64, "{len} bytes, seed {seed}");
    }

    #[test]
    fn a_page_by_hand() {
        let mut bytes = Vec::new();
        encode_into::<f32>(&[], &mut bytes).unwrap();
        assert_eq!(bytes, [0, 0, 10, 0, 0, 0, 0]);
        let mut bytes = Vec::new();
        encode_into(&[f64::NAN], &mut bytes).unwrap();
        let mut expected = vec![0, 0, 10, 1, 0, 0, 0, 4, 0, 0, 0, 0, 0, 1, 0];
        expected.extend([0; 9]);
        expected.extend([0, 0]);
        expected.extend(f64::NAN.to_le_bytes());
        assert_eq!(bytes, expected);
    }
}
