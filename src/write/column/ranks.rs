//! Finds the bounds of some values, or of some indices into a dictionary whose entries were ranked
//! before.

use std::cmp::Ordering;
use std::ops::Range;

use super::byte_arrays::ByteArrayValues;
use super::values::LeafValues;
use crate::error::Result;
use crate::memory;
use crate::stats::collect::{self, Extremes};
use crate::stats::order::ValueOrder;

/// Why there is an entry for each index.
pub(super) const IS_ENTRY: &str = "indices are those of entries";

/// The bounds of the values of `range`, and how many of them are NaN.
pub(super) fn extremes_of(
    values: &LeafValues<'_>,
    range: Range<usize>,
    order: ValueOrder,
    total: bool,
) -> Result<Extremes> {
    Ok(match (values, order) {
        (LeafValues::Bits(bits), _) => {
            collect::booleans(bits.count_ones(range.clone()), range.len())
        }
        (LeafValues::Words32(values), order) => {
            let values = values.get(range).expect("pages and samples lie within the values");
            match order {
                ValueOrder::Float | ValueOrder::TotalFloat => collect::f32s(values, total),
                order => collect::i32s(values, order == ValueOrder::Unsigned),
            }
        }
        (LeafValues::Words64(values), order) => {
            let values = values.get(range).expect("pages and samples lie within the values");
            match order {
                ValueOrder::Float | ValueOrder::TotalFloat => collect::f64s(values, total),
                order => collect::i64s(values, order == ValueOrder::Unsigned),
            }
        }
        (LeafValues::Fixed { width, bytes }, ValueOrder::Float16 | ValueOrder::TotalFloat16) => {
            let bytes = bytes.get(range.start * width..range.end * width);
            collect::f16s(bytes.expect("pages and samples lie within the values"), total)
        }
        (values, order) => {
            let found = match (values, order) {
                (values, ValueOrder::Decimal) => collect::decimal_bytes(&values.slices(range)?),
                (LeafValues::Bytes(byte_arrays), _) => collect::bytes(byte_arrays.iter(range)),
                (values, _) => collect::bytes(values.slices(range)?.into_iter()),
            };
            let bounds = found.map(|(min, max)| (min.to_vec(), max.to_vec()));
            Extremes { bounds, nans: 0 }
        }
    })
}

/// The entries of a dictionary, ranked by the order of the leaf.
pub(super) struct RankedDictionary<'s, 'a> {
    pub(super) entries: &'s LeafValues<'a>,
    /// The rank of every entry in the order of the leaf. Not used if some are NaN.
    pub(super) ranks: Vec<u32>,
    /// The entries in order.
    pub(super) by_rank: Vec<u32>,
    /// Whether each entry is NaN; empty if none is.
    pub(super) nan: Vec<bool>,
    /// The bytes after the common prefix of byte strings that are too many to be ranked, as numbers
    /// of the same order.
    pub(super) prefixes: Vec<u64>,
    /// The length of each byte string.
    pub(super) lengths: Vec<u64>,
    /// Whether the entries are all different.
    pub(super) distinct: bool,
}

impl<'s, 'a> RankedDictionary<'s, 'a> {
    /// Ranks the entries, or none if there are none to rank.
    pub(super) fn new(
        entries: &'s LeafValues<'a>,
        ranked: &LeafValues<'_>,
        order: ValueOrder,
        distinct: bool,
    ) -> Result<Self> {
        let (by_rank, mut nan) = sorted_entries(ranked, order)?;
        let mut ranks = memory::filled(0u32, by_rank.len())?;
        for (rank, entry) in (0u32..).zip(&by_rank) {
            ranks[*entry as usize] = rank;
        }
        if !nan.contains(&true) {
            nan.clear();
        }
        let (prefixes, lengths) = (Vec::new(), Vec::new());
        Ok(Self { entries, ranks, by_rank, nan, prefixes, lengths, distinct })
    }

    /// The bounds of the values of codes.
    pub(super) fn extremes(
        &self,
        codes: &[u32],
        order: ValueOrder,
        total: bool,
    ) -> Result<Extremes> {
        if let (LeafValues::Bytes(ByteArrayValues::Slices(entries)), false) =
            (self.entries, self.prefixes.is_empty())
        {
            return Ok(self.extremes_of_texts(entries, codes));
        }
        if self.ranks.is_empty() {
            return Ok(Extremes::default());
        }
        if !self.nan.is_empty() {
            // Rare, so that the rules for NaNs and zeros are in one place only.
            let values = self.entries.take(codes)?;
            let n = values.len();
            return extremes_of(&values, 0..n, order, total);
        }
        let (mut least, mut greatest) = (u32::MAX, 0);
        for code in codes {
            let rank = *self.ranks.get(*code as usize).expect(IS_ENTRY);
            least = least.min(rank);
            greatest = greatest.max(rank);
        }
        if codes.is_empty() {
            return Ok(Extremes::default());
        }
        let entry =
            |rank: u32| *self.by_rank.get(rank as usize).expect("ranks are those of entries");
        let two = self.entries.take(&[entry(least), entry(greatest)])?;
        extremes_of(&two, 0..2, order, total)
    }

    /// Like [`RankedDictionary::extremes`], by `prefixes`.
    fn extremes_of_texts(&self, entries: &[&[u8]], codes: &[u32]) -> Extremes {
        let prefix = |code: u32| *self.prefixes.get(code as usize).expect(IS_ENTRY);
        let text = |code: u32| *entries.get(code as usize).expect(IS_ENTRY);
        let Some(&first) = codes.first() else {
            return Extremes::default();
        };
        let (mut min, mut max) = ((prefix(first), first), (prefix(first), first));
        for &code in codes {
            let of = prefix(code);
            if of < min.0 || (of == min.0 && code != min.1 && text(code) < text(min.1)) {
                min = (of, code);
            }
            if of > max.0 || (of == max.0 && code != max.1 && text(code) > text(max.1)) {
                max = (of, code);
            }
        }
        Extremes { bounds: Some((text(min.1).to_vec(), text(max.1).to_vec())), nans: 0 }
    }
}

/// The entries in order, and whether each is NaN if they are floats.
fn sorted_entries(ranked: &LeafValues<'_>, order: ValueOrder) -> Result<(Vec<u32>, Vec<bool>)> {
    let float32 = |bits: &i32| f32::from_bits(bits.cast_unsigned());
    let float64 = |bits: &i64| f64::from_bits(bits.cast_unsigned());
    let floats = matches!(order, ValueOrder::Float | ValueOrder::TotalFloat);
    let mut nan = Vec::new();
    let by_rank = match ranked {
        LeafValues::Bits(_) => Ok(Vec::new()),
        LeafValues::Words32(values) if floats => {
            nan = memory::collected(values.iter().map(|v| float32(v).is_nan()))?;
            sorted(values, |a, b| float32(a).total_cmp(&float32(b)))
        }
        LeafValues::Words64(values) if floats => {
            nan = memory::collected(values.iter().map(|v| float64(v).is_nan()))?;
            sorted(values, |a, b| float64(a).total_cmp(&float64(b)))
        }
        LeafValues::Words32(values) if order == ValueOrder::Unsigned => {
            sorted(values, |a, b| a.cast_unsigned().cmp(&b.cast_unsigned()))
        }
        LeafValues::Words64(values) if order == ValueOrder::Unsigned => {
            sorted(values, |a, b| a.cast_unsigned().cmp(&b.cast_unsigned()))
        }
        LeafValues::Words32(values) => sorted(values, Ord::cmp),
        LeafValues::Words64(values) => sorted(values, Ord::cmp),
        values => {
            let slices = values.slices(0..values.len())?;
            let half =
                |v: &[u8]| half::f16::from_le_bytes(v.try_into().expect("FLOAT16 has two bytes"));
            match order {
                ValueOrder::Float16 | ValueOrder::TotalFloat16 => {
                    nan = memory::collected(slices.iter().map(|v| half(v).is_nan()))?;
                    sorted(&slices, |a, b| half(a).total_cmp(&half(b)))
                }
                ValueOrder::Decimal => sorted(&slices, |a, b| crate::stats::order::decimals(a, b)),
                _ => sorted(&slices, Ord::cmp),
            }
        }
    };
    Ok((by_rank?, nan))
}

/// The entries in an order.
fn sorted<T>(values: &[T], key: impl Fn(&T, &T) -> Ordering) -> Result<Vec<u32>> {
    let mut by_rank = memory::collected((0u32..).take(values.len()))?;
    by_rank.sort_unstable_by(|a, b| match (values.get(*a as usize), values.get(*b as usize)) {
        (Some(a), Some(b)) => key(a, b),
        _ => Ordering::Equal,
    });
    Ok(by_rank)
}

/// The first bytes after the prefix that all values have in common, as numbers of the same order.
pub(super) fn prefixes(values: &[&[u8]]) -> Result<Vec<u64>> {
    // Without values there are no prefixes.
    let first = values.first().copied().unwrap_or_default();
    let common = values.iter().fold(first.len(), |common, value| {
        let pairs = first.iter().zip(*value).take(common);
        pairs.take_while(|(a, b)| a == b).count()
    });
    memory::collected(values.iter().map(|value| collect::prefix(&value[common..])))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Some codes of `n` entries, at least one.
    fn random_codes(rng: &mut fastrand::Rng, n: usize) -> Vec<u32> {
        (0..rng.usize(1..6)).map(|_| rng.u32(0..n as u32)).collect()
    }

    #[test]
    fn ranks_of_entries_find_the_bounds_that_their_values_have() {
        let words = |words: &[i32]| LeafValues::Words32(words.to_vec().into());
        let longs = |words: &[i64]| LeafValues::Words64(words.to_vec().into());
        let floats = [1.5f32, -0.0, 0.0, -7.0, f32::INFINITY].map(|v| v.to_bits().cast_signed());
        let doubles = [1.5f64, f64::NAN, -0.0, 0.0, -7.0].map(|v| v.to_bits().cast_signed());
        let halves = [1.5f32, -0.0, -7.0, 0.25].map(|v| half::f16::from_f32(v).to_le_bytes());
        let fixed =
            |width: usize, bytes: &[u8]| LeafValues::Fixed { width, bytes: bytes.to_vec().into() };
        let of_three = [0, 0, 9, 0xFF, 0xFF, 1, 0, 1, 0, 0x80, 0, 0];
        let texts: Vec<&[u8]> = vec![b"b", b"", b"abc", b"ab"];
        let texts = LeafValues::Bytes(ByteArrayValues::Slices(texts));
        let seed = 72;
        let mut rng = fastrand::Rng::with_seed(seed);
        for (values, order) in [
            (words(&[5, -3, 7, i32::MIN]), ValueOrder::Signed),
            (words(&[5, -3, 7, i32::MIN]), ValueOrder::Unsigned),
            (words(&floats), ValueOrder::Float),
            (longs(&[5, -3, 7, i64::MIN]), ValueOrder::Signed),
            (longs(&[5, -3, 7, i64::MIN]), ValueOrder::Unsigned),
            (longs(&doubles), ValueOrder::Float),
            (fixed(2, halves.as_flattened()), ValueOrder::Float16),
            (fixed(3, &of_three), ValueOrder::Bytes),
            (fixed(3, &of_three), ValueOrder::Decimal),
            (texts, ValueOrder::Bytes),
        ] {
            let ranked = RankedDictionary::new(&values, &values, order, true).unwrap();
            for _ in 0..100 {
                let codes = random_codes(&mut rng, values.len());
                let taken = values.take(&codes).unwrap();
                let expected = extremes_of(&taken, 0..codes.len(), order, false).unwrap();
                let found = ranked.extremes(&codes, order, false).unwrap();
                assert_eq!(found, expected, "{order:?} {codes:?}, seed {seed}");
                // The same of a range.
                let (skipped, n) = (vec![0; rng.usize(0..3)], codes.len());
                let all = values.take(&[&skipped[..], &codes, &skipped].concat()).unwrap();
                let range = skipped.len()..skipped.len() + n;
                assert_eq!(extremes_of(&all, range, order, false).unwrap(), expected);
            }
            assert_eq!(ranked.extremes(&[], order, false).unwrap(), Extremes::default());
        }
    }

    #[test]
    fn byte_strings_with_equal_prefixes_are_compared_whole() {
        let texts: Vec<&[u8]> =
            vec![b"x12345678b", b"x12345678a", b"x12345678", b"x2", b"x", b"x12345678c"];
        let entries = LeafValues::Bytes(ByteArrayValues::Slices(texts.clone()));
        let ranked = RankedDictionary {
            entries: &entries,
            ranks: Vec::new(),
            by_rank: Vec::new(),
            nan: Vec::new(),
            prefixes: prefixes(&texts).unwrap(),
            lengths: Vec::new(),
            distinct: true,
        };
        let seed = 73;
        let mut rng = fastrand::Rng::with_seed(seed);
        for _ in 0..500 {
            let codes = random_codes(&mut rng, texts.len());
            let of = || codes.iter().map(|code| texts[*code as usize].to_vec());
            let found = ranked.extremes(&codes, ValueOrder::Bytes, false).unwrap();
            assert_eq!(found.bounds, of().min().zip(of().max()), "{codes:?}, seed {seed}");
        }
    }
}
