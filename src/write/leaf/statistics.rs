//! Collects what the footer and the indexes say of a chunk, page by page.

use std::cmp::Ordering;
use std::ops::Range;

use super::intern::Interned;
use super::texts::Texts;
use super::values::Values;
use super::{LeafSettings, Sorted};
use crate::format::{ColumnIndex, LogicalType, Statistics};
use crate::levels::LeafLevels;
use crate::schema::{Leaf, Physical};
use crate::stats::bloom::Bloom;
use crate::stats::bounds::{Cut, lower, upper};
use crate::stats::collect::{self, Extremes};
use crate::stats::order::Order;
use crate::stats::page_index::{ColumnIndexBuilder, PageStatistics};
use crate::write::options::{BloomOptions, StatisticsLevel};

/// The values of a page.
pub(super) enum PageValues<'p, 'a> {
    /// Some of all values.
    Plain(&'p Values<'a>, Range<usize>),
    /// Those between these two, which are among them: byte strings that rise.
    Rising(&'p [u8], &'p [u8]),
    /// Indices into the dictionary.
    Codes(&'p [u32]),
}

/// Collects the statistics of a chunk.
pub(super) struct Statistician<'s, 'a> {
    leaf: &'s Leaf,
    settings: &'s LeafSettings,
    order: Order,
    cut: Cut,
    dictionary: Option<Dictionary<'s, 'a>>,
    builder: Option<ColumnIndexBuilder>,
    bounds: Option<(Vec<u8>, Vec<u8>)>,
    nulls: u64,
    nans: u64,
}

struct Dictionary<'s, 'a> {
    entries: &'s Values<'a>,
    /// The place of every entry in the order of the leaf; those that are NaN have none.
    ranks: Vec<u32>,
    /// The entries in order.
    by_rank: Vec<u32>,
    nan: Vec<bool>,
    /// The first bytes in which byte strings differ that are too many to be ranked, as numbers of the same order.
    prefixes: Vec<u64>,
    /// The length of each byte string.
    lengths: Vec<u64>,
    /// Whether the entries are all different.
    distinct: bool,
}

/// Values for each entry from which on the entries are ranked.
const FEW: usize = 16;

/// What was collected.
pub(super) struct Summary {
    pub(super) statistics: Statistics,
    pub(super) column_index: Option<ColumnIndex>,
    pub(super) def_histogram: Option<Vec<i64>>,
    pub(super) rep_histogram: Option<Vec<i64>>,
    pub(super) nulls: u64,
    pub(super) nans: Option<u64>,
    pub(super) distinct: Option<u64>,
}

impl<'s, 'a> Statistician<'s, 'a> {
    pub(super) fn new(
        leaf: &'s Leaf,
        settings: &'s LeafSettings,
        dictionary: Option<(&'s Interned<'a>, bool)>,
    ) -> Self {
        let order = Order::of(leaf, settings.total_order);
        let cut = Cut::of(leaf);
        let builder = (settings.statistics == StatisticsLevel::Page)
            .then(|| ColumnIndexBuilder::new(order, leaf.physical, cut, settings.bound_bytes));
        let wanted = settings.statistics.bounds() && order != Order::Undefined;
        let dictionary = dictionary.map(|(dictionary, only)| {
            let Interned { entries, codes, distinct } = dictionary;
            // Sorting many entries costs more than looking at the values, where there are some.
            let few = entries.len() * FEW <= codes.len();
            let texts = matches!(entries, Values::Bytes(_)) && order == Order::Bytes;
            let ranked = wanted && (few || (only && !texts));
            let ranked = if ranked { entries } else { &Values::new(leaf.physical) };
            let mut dictionary = Dictionary::new(entries, ranked, order, *distinct);
            if let Values::Bytes(Texts::Slices(entries)) = entries {
                dictionary.lengths = entries.iter().map(|e| e.len() as u64).collect();
                if wanted && texts && !few {
                    dictionary.prefixes = prefixes(entries);
                }
            }
            dictionary
        });
        Self { leaf, settings, order, cut, dictionary, builder, bounds: None, nulls: 0, nans: 0 }
    }

    /// Whether bounds of pages are found from indices: by the ranks of dictionary entries, or their first bytes.
    pub(super) fn by_codes(&self) -> bool {
        let by_codes = |d: &Dictionary<'_, '_>| !d.ranks.is_empty() || !d.prefixes.is_empty();
        self.dictionary.as_ref().is_some_and(by_codes)
    }

    /// What is to be said of a page of these level entries, of which `count` have values; see [`Statistician::add`].
    pub(super) fn page(
        &self,
        levels: &LeafLevels,
        entries: Range<usize>,
        count: usize,
        values: PageValues<'_, '_>,
    ) -> PageStatistics {
        let extremes = if self.settings.statistics.bounds() && self.order != Order::Undefined {
            self.extremes(values)
        } else {
            Extremes::default()
        };
        let histograms = self.builder.is_some();
        let histogram = |of: Vec<i64>| if histograms { of } else { Vec::new() };
        PageStatistics {
            bounds: extremes.bounds,
            nulls: (entries.len() - count) as u64,
            nans: self.order.has_nan().then_some(extremes.nans),
            entries: entries.len() as u64,
            def_histogram: histogram(levels.def_histogram(entries.clone())),
            rep_histogram: histogram(levels.rep_histogram(entries)),
        }
    }

    /// Adds the next page.
    pub(super) fn add(&mut self, page: PageStatistics) {
        self.nulls += page.nulls;
        self.nans += page.nans.unwrap_or(0);
        if let Some(builder) = &mut self.builder {
            builder.push(&page);
        }
        self.widen(page.bounds);
    }

    /// Widens the bounds of the chunk by those of a page.
    fn widen(&mut self, page: Option<(Vec<u8>, Vec<u8>)>) {
        let Some((min, max)) = page else {
            return;
        };
        let physical = self.leaf.physical;
        match &mut self.bounds {
            None => self.bounds = Some((min, max)),
            Some(bounds) => {
                let is_nan = |value: &[u8]| is_nan(self.order, physical, value);
                // In the total order, NaNs are bounds of pages that have nothing else; a number takes their place.
                match (is_nan(&bounds.0), is_nan(&min)) {
                    (true, false) => *bounds = (min, max),
                    (false, true) => {}
                    _ => {
                        let less = |a: &[u8], b: &[u8]| {
                            self.order.compare(physical, a, b).is_some_and(Ordering::is_lt)
                        };
                        if less(&min, &bounds.0) {
                            bounds.0 = min;
                        }
                        if less(&bounds.1, &max) {
                            bounds.1 = max;
                        }
                    }
                }
            }
        }
    }

    fn extremes(&self, values: PageValues<'_, '_>) -> Extremes {
        match values {
            PageValues::Plain(values, range) => self.of_values(values, range),
            PageValues::Rising(min, max) => {
                Extremes { bounds: Some((min.to_vec(), max.to_vec())), nans: 0 }
            }
            PageValues::Codes(codes) => match &self.dictionary {
                Some(dictionary) => dictionary.extremes(codes, self),
                None => Extremes::default(),
            },
        }
    }

    fn of_values(&self, values: &Values<'_>, range: Range<usize>) -> Extremes {
        let total = self.settings.total_order;
        match (values, self.order) {
            (Values::Bits(bits), _) => {
                collect::booleans(bits.count_ones(range.clone()), range.len())
            }
            (Values::Words32(values), order) => {
                let values = values.get(range).unwrap_or_default();
                match order {
                    Order::Float | Order::TotalFloat => collect::f32s(values, total),
                    order => collect::i32s(values, order == Order::Unsigned),
                }
            }
            (Values::Words64(values), order) => {
                let values = values.get(range).unwrap_or_default();
                match order {
                    Order::Float | Order::TotalFloat => collect::f64s(values, total),
                    order => collect::i64s(values, order == Order::Unsigned),
                }
            }
            (Values::Fixed { width, bytes }, Order::Float16 | Order::TotalFloat16) => {
                let bytes = bytes.get(range.start * width..range.end * width);
                collect::f16s(bytes.unwrap_or_default(), total)
            }
            (values, order) => {
                let found = match (values, order) {
                    (values, Order::Decimal) => collect::decimal_bytes(&values.slices(range)),
                    (Values::Bytes(texts), _) => collect::bytes(texts.iter(range)),
                    (values, _) => collect::bytes(values.slices(range).into_iter()),
                };
                let bounds = found.map(|(min, max)| (min.to_vec(), max.to_vec()));
                Extremes { bounds, nans: 0 }
            }
        }
    }

    /// Bytes of the byte strings that codes stand for, without lengths.
    pub(super) fn payload_of_codes(&self, codes: &[u32]) -> i64 {
        let Some(Dictionary { lengths, .. }) = self.dictionary.as_ref() else {
            return 0;
        };
        if lengths.is_empty() {
            return 0;
        }
        let len = |code: &u32| lengths.get(*code as usize).copied().unwrap_or(0);
        i64::try_from(codes.iter().map(len).sum::<u64>()).unwrap_or(i64::MAX)
    }

    /// The order of the leaf.
    pub(super) fn order(&self) -> Order {
        self.order
    }

    /// As [`Sorting`], of a dictionary's indices.
    pub(super) fn sorted_codes(&self, codes: &[u32]) -> Option<Sorted> {
        let dictionary = self.dictionary.as_ref()?;
        if let (Values::Bytes(Texts::Slices(entries)), false) =
            (dictionary.entries, dictionary.prefixes.is_empty())
        {
            return direction(codes, |a| entries.get(*a as usize).copied().unwrap_or_default());
        }
        if self.order.has_nan() || dictionary.ranks.is_empty() {
            return None;
        }
        direction(codes, |code| dictionary.ranks.get(*code as usize).copied().unwrap_or(0))
    }

    pub(super) fn finish(self, levels: &LeafLevels) -> Summary {
        let signed = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        let nans = self.order.has_nan() && self.settings.statistics.bounds();
        let nans = nans.then_some(self.nans);
        let unknown = matches!(self.leaf.logical, Some(LogicalType::Unknown));
        let distinct = self.dictionary.as_ref().filter(|d| d.distinct);
        let distinct = distinct.map(|d| d.entries.len() as u64);
        let mut statistics = Statistics {
            null_count: Some(signed(self.nulls)),
            distinct_count: distinct.map(signed),
            nan_count: nans.map(signed),
            ..Statistics::default()
        };
        if let Some((min, max)) = self.bounds.filter(|_| !unknown) {
            let min = lower(&min, self.cut, self.settings.bound_bytes);
            let max = upper(&max, self.cut, self.settings.bound_bytes);
            // Zeros of the older order of floats may be wider than the values.
            let exact = !matches!(self.order, Order::Float | Order::Float16);
            statistics.is_min_value_exact = Some(min.exact && (exact || !is_zero(&min.bytes)));
            statistics.is_max_value_exact = Some(max.exact && (exact || !is_zero(&max.bytes)));
            statistics.min_value = Some(min.bytes);
            statistics.max_value = Some(max.bytes);
        }
        let all = 0..levels.len();
        Summary {
            statistics,
            column_index: self.builder.and_then(ColumnIndexBuilder::finish),
            def_histogram: (levels.max_def() > 0).then(|| levels.def_histogram(all.clone())),
            rep_histogram: (levels.max_rep() > 0).then(|| levels.rep_histogram(all)),
            nulls: self.nulls,
            nans,
            distinct,
        }
    }
}

/// A bloom filter of values, which may repeat.
pub(super) struct Blooming {
    options: BloomOptions,
    bloom: Bloom,
    distinct: hashbrown::HashTable<u64>,
}

impl Blooming {
    /// For `n` values; `None` if no filter is wanted, or is of use.
    pub(super) fn new(leaf: &Leaf, settings: &LeafSettings, n: usize) -> Option<Self> {
        let options = settings.bloom?;
        let bloom = Bloom::new(n as u64, options.fpp);
        let distinct = hashbrown::HashTable::new();
        (leaf.physical != Physical::Boolean).then_some(Self { options, bloom, distinct })
    }

    pub(super) fn push(&mut self, values: &Values<'_>, range: Range<usize>) {
        let mut add = |value: &[u8]| {
            let hash = crate::stats::bloom::hash(value);
            if self.distinct.find(hash, |other| *other == hash).is_none() {
                self.distinct.insert_unique(hash, hash, |hash| *hash);
                self.bloom.insert_hash(hash);
            }
        };
        match values {
            Values::Bits(_) => {}
            Values::Words32(values) => {
                values.get(range).unwrap_or_default().iter().for_each(|v| add(&v.to_le_bytes()));
            }
            Values::Words64(values) => {
                values.get(range).unwrap_or_default().iter().for_each(|v| add(&v.to_le_bytes()));
            }
            Values::Bytes(texts) => texts.iter(range).for_each(add),
            Values::Fixed { .. } => values.slices(range).into_iter().for_each(add),
        }
    }

    /// The filter, with its header.
    pub(super) fn finish(self) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        self.bloom.folded(self.distinct.len() as u64, self.options.fpp).write(&mut out).ok()?;
        Some(out)
    }
}

/// Finds out whether values rise or fall; nothing is said of values that are all equal, of floats, or where no order is defined.
pub(super) struct Sorting<'a> {
    order: Order,
    rises: bool,
    falls: bool,
    /// The first of the values, and the last so far.
    first: Option<Key<'a>>,
    last: Option<Key<'a>>,
}

/// A value in its order.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Key<'a> {
    Word(i64),
    Bytes(&'a [u8]),
    Fixed(Vec<u8>),
}

impl<'a> Sorting<'a> {
    pub(super) fn new(order: Order) -> Self {
        Self { order, rises: true, falls: true, first: None, last: None }
    }

    /// Goes on with the values of a range.
    pub(super) fn push(&mut self, values: &Values<'a>, range: Range<usize>) {
        if range.is_empty() || !(self.rises || self.falls) {
            return;
        }
        let signed = matches!(self.order, Order::Signed | Order::Decimal);
        match (values, self.order) {
            (Values::Words32(values), Order::Signed | Order::Decimal | Order::Unsigned) => {
                let values = values.get(range).unwrap_or_default();
                let key = |value: &i32| match signed {
                    true => i64::from(*value),
                    false => i64::from(value.cast_unsigned()),
                };
                self.words(values, signed, key);
            }
            (Values::Words64(values), Order::Signed | Order::Decimal | Order::Unsigned) => {
                let values = values.get(range).unwrap_or_default();
                self.words(values, signed, |v: &i64| if signed { *v } else { *v ^ i64::MIN });
            }
            (Values::Bytes(texts), Order::Bytes) => {
                let mut values = texts.iter(range);
                let Some(mut last) = values.next() else {
                    return;
                };
                self.step(Key::Bytes(last));
                let (mut rises, mut falls) = (self.rises, self.falls);
                // Mostly the first few are enough.
                let _ = values.try_for_each(|value| {
                    match last.cmp(value) {
                        Ordering::Less => falls = false,
                        Ordering::Equal => {}
                        Ordering::Greater => rises = false,
                    }
                    last = value;
                    (rises || falls).then_some(())
                });
                (self.rises, self.falls, self.last) = (rises, falls, Some(Key::Bytes(last)));
            }
            (Values::Fixed { .. }, Order::Bytes) => {
                let values = values.slices(range);
                let (Some(first), Some(last)) = (values.first(), values.last()) else {
                    return;
                };
                self.step(Key::Fixed(first.to_vec()));
                self.rises = self.rises && values.is_sorted();
                self.falls = self.falls && values.is_sorted_by(|a, b| a >= b);
                self.last = Some(Key::Fixed(last.to_vec()));
            }
            _ => (self.rises, self.falls) = (false, false),
        }
    }

    fn words<T: Ord>(&mut self, values: &[T], signed: bool, key: impl Fn(&T) -> i64) {
        let (Some(first), Some(last)) = (values.first(), values.last()) else {
            return;
        };
        self.step(Key::Word(key(first)));
        if signed {
            self.rises = self.rises && values.is_sorted();
            self.falls = self.falls && values.is_sorted_by(|a, b| a >= b);
        } else {
            self.rises = self.rises && values.is_sorted_by_key(&key);
            self.falls = self.falls && values.is_sorted_by(|a, b| key(a) >= key(b));
        }
        self.last = Some(Key::Word(key(last)));
    }

    fn step(&mut self, next: Key<'a>) {
        if let Some(last) = &self.last {
            self.rises &= *last <= next;
            self.falls &= *last >= next;
        } else {
            self.first = Some(next.clone());
        }
        self.last = Some(next);
    }

    /// Whether no value so far is less than the one before.
    pub(super) fn rises(&self) -> bool {
        self.rises
    }

    /// Goes on with the values that another has seen.
    pub(super) fn join(&mut self, next: Self) {
        if let Some(first) = next.first {
            self.step(first);
        }
        self.rises &= next.rises;
        self.falls &= next.falls;
        if next.last.is_some() {
            self.last = next.last;
        }
    }

    pub(super) fn finish(self) -> Option<Sorted> {
        (self.rises != self.falls).then_some(Sorted { descending: self.falls })
    }
}

/// The first bytes behind those that all values have in common.
fn prefixes(values: &[&[u8]]) -> Vec<u64> {
    let first = values.first().copied().unwrap_or_default();
    let common = values.iter().fold(first.len(), |common, value| {
        let pairs = first.iter().zip(*value).take(common);
        pairs.take_while(|(a, b)| a == b).count()
    });
    values.iter().map(|value| collect::prefix(value.get(common..).unwrap_or_default())).collect()
}

/// Whether codes rise or fall by what they mean; `None` if they are all equal.
fn direction<K: Ord>(codes: &[u32], key: impl Fn(&u32) -> K) -> Option<Sorted> {
    let (mut ascending, mut descending) = (true, true);
    for pair in codes.windows(2) {
        if let [a, b] = pair {
            let order = key(a).cmp(&key(b));
            ascending &= order.is_le();
            descending &= order.is_ge();
        }
        if !ascending && !descending {
            return None;
        }
    }
    (ascending != descending).then_some(Sorted { descending })
}

/// Whether a float is a zero of either sign.
fn is_zero(bytes: &[u8]) -> bool {
    match bytes.split_last() {
        Some((last, rest)) => last & 0x7F == 0 && rest.iter().all(|byte| *byte == 0),
        None => false,
    }
}

fn is_nan(order: Order, physical: Physical, value: &[u8]) -> bool {
    match (order, physical) {
        (Order::TotalFloat, Physical::Float) => {
            value.try_into().is_ok_and(|bytes| f32::from_le_bytes(bytes).is_nan())
        }
        (Order::TotalFloat, _) => {
            value.try_into().is_ok_and(|bytes| f64::from_le_bytes(bytes).is_nan())
        }
        (Order::TotalFloat16, _) => {
            value.try_into().is_ok_and(|bytes| half::f16::from_le_bytes(bytes).is_nan())
        }
        _ => false,
    }
}

impl<'s, 'a> Dictionary<'s, 'a> {
    /// Ranks the entries, or none if there are none to rank.
    fn new(entries: &'s Values<'a>, ranked: &Values<'_>, order: Order, distinct: bool) -> Self {
        fn sorted<T>(values: &[T], key: impl Fn(&T, &T) -> Ordering) -> Vec<u32> {
            let mut by_rank: Vec<u32> = (0u32..).take(values.len()).collect();
            by_rank.sort_unstable_by(|a, b| {
                match (values.get(*a as usize), values.get(*b as usize)) {
                    (Some(a), Some(b)) => key(a, b),
                    _ => Ordering::Equal,
                }
            });
            by_rank
        }
        let float32 = |bits: &i32| f32::from_bits(bits.cast_unsigned());
        let float64 = |bits: &i64| f64::from_bits(bits.cast_unsigned());
        let floats = matches!(order, Order::Float | Order::TotalFloat);
        let mut nan = Vec::new();
        let by_rank = match ranked {
            Values::Bits(_) => Vec::new(),
            Values::Words32(values) if floats => {
                nan = values.iter().map(|v| float32(v).is_nan()).collect();
                sorted(values, |a, b| float32(a).total_cmp(&float32(b)))
            }
            Values::Words64(values) if floats => {
                nan = values.iter().map(|v| float64(v).is_nan()).collect();
                sorted(values, |a, b| float64(a).total_cmp(&float64(b)))
            }
            Values::Words32(values) if order == Order::Unsigned => {
                sorted(values, |a, b| a.cast_unsigned().cmp(&b.cast_unsigned()))
            }
            Values::Words64(values) if order == Order::Unsigned => {
                sorted(values, |a, b| a.cast_unsigned().cmp(&b.cast_unsigned()))
            }
            Values::Words32(values) => sorted(values, Ord::cmp),
            Values::Words64(values) => sorted(values, Ord::cmp),
            values => {
                let slices = values.slices(0..values.len());
                let half =
                    |v: &[u8]| v.try_into().map(half::f16::from_le_bytes).unwrap_or_default();
                match order {
                    Order::Float16 | Order::TotalFloat16 => {
                        nan = slices.iter().map(|v| half(v).is_nan()).collect();
                        sorted(&slices, |a, b| half(a).total_cmp(&half(b)))
                    }
                    Order::Decimal => sorted(&slices, |a, b| crate::stats::order::decimals(a, b)),
                    _ => sorted(&slices, Ord::cmp),
                }
            }
        };
        let mut ranks = vec![0u32; by_rank.len()];
        for (rank, entry) in (0u32..).zip(&by_rank) {
            if let Some(slot) = ranks.get_mut(*entry as usize) {
                *slot = rank;
            }
        }
        if !nan.contains(&true) {
            nan.clear();
        }
        let (prefixes, lengths) = (Vec::new(), Vec::new());
        Self { entries, ranks, by_rank, nan, prefixes, lengths, distinct }
    }

    /// The bounds of the values that codes stand for.
    fn extremes(&self, codes: &[u32], statistician: &Statistician<'_, '_>) -> Extremes {
        if let (Values::Bytes(Texts::Slices(entries)), false) =
            (self.entries, self.prefixes.is_empty())
        {
            return self.extremes_of_texts(entries, codes);
        }
        if self.ranks.is_empty() {
            return Extremes::default();
        }
        if !self.nan.is_empty() {
            // Rare: the rules for NaNs and zeros stand in one place only.
            let values = self.entries.take(codes);
            let n = values.len();
            return statistician.of_values(&values, 0..n);
        }
        let (mut least, mut greatest) = (u32::MAX, 0);
        for code in codes {
            let rank = self.ranks.get(*code as usize).copied().unwrap_or(0);
            least = least.min(rank);
            greatest = greatest.max(rank);
        }
        if codes.is_empty() {
            return Extremes::default();
        }
        let entry = |rank: u32| self.by_rank.get(rank as usize).copied().unwrap_or(0);
        let two = self.entries.take(&[entry(least), entry(greatest)]);
        statistician.of_values(&two, 0..2)
    }
    /// As [`Dictionary::extremes`], by the first bytes.
    fn extremes_of_texts(&self, entries: &[&[u8]], codes: &[u32]) -> Extremes {
        let prefix = |code: u32| self.prefixes.get(code as usize).copied().unwrap_or_default();
        let text = |code: u32| entries.get(code as usize).copied().unwrap_or_default();
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
