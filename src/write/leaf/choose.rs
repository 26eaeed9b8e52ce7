//! [`Encoder::choose`]: in which form a chunk is written, by samples.
//!
//! Samples lie all over the chunk, and are compressed as pages will be. A few values tell which encodings are far behind, more of them which of the
//! others is best. Trap: to make a dictionary is the dearest part of writing; the values of a sample that repeat tell how many there are in all, and
//! so what it takes at the least, before it is begun.

use std::ops::Range;

use super::encode::{encode, encode_codes};
use super::intern::{DictionaryLimits, Interned, intern, intern_parts};
use super::source::Source;
use super::values::{Gathered, Values, are_texts, gather, is_keyed};
use super::{Encoder, Form};
use crate::compress::Compression;
use crate::encoding::choose::{Estimate, Profile, candidates};
use crate::error::Result;
use crate::format::Encoding;
use crate::page::Sealer;
use crate::schema::Physical;
use crate::spare::Spare;

/// How the chunk will be written.
pub(super) struct Choice<'a> {
    pub(super) form: Form<'a>,
    /// Whether the codec makes it smaller.
    pub(super) helps: bool,
    /// What it is likely to take.
    pub(super) bytes: usize,
}

/// A codec that leaves more than this of a chunk is not worth the time of those who write and read it (a table of 100 columns of numbers: 2 % of the
/// bytes are not compressed, for 0.2 % more in the file).
const HELPS: f64 = 0.94;

/// Values of a sample, and the stretches it is made of: they lie all over the chunk, as its beginning may be unlike the rest.
const SAMPLE: usize = 16 << 10;
const STRETCHES: usize = 8;

/// Values of the first sample, which tells what is far behind.
const QUICK: usize = 4 << 10;

/// What takes so much more than the best by the first sample is not measured again.
const BEHIND: f64 = 1.12;

/// Bytes of a sample of byte strings that are compressed: ZSTD looks for other matches in less than 256 KiB than in more, as pages have (a
/// dictionary of 7 MB: 8 % smaller by a sample of 240 KiB than it was).
const TUNED: usize = 320 << 10;

/// The share of values that may be distinct, or a dictionary is not worth its hashing.
const HOPELESS: f64 = 0.5;

impl<'a> Encoder<'a> {
    /// Picks the form that is best.
    ///
    /// # Errors
    /// `Usage` if a value does not fit the leaf, or the encoding that was asked for.
    pub(super) fn choose(&self, sealer: &mut Sealer) -> Result<Choice<'a>> {
        let (settings, spare) = (self.settings, &self.tools.spare);
        let must = settings.encoding == Some(Encoding::RleDictionary);
        if let Some(encoding) = settings.encoding
            && !must
        {
            return self.given(encoding, sealer);
        }
        let wants_dictionary = settings.dictionary && self.leaf.physical != Physical::Boolean;
        if wants_dictionary && let Some(dictionary) = self.keyed()? {
            return self.choose_keyed(dictionary, sealer);
        }
        let source = self.source()?;
        let mut race = Race::new(self, Of::Values(&source), sealer);
        let mut gathered = None;
        if wants_dictionary && (must || race.may_be_won_by_a_dictionary()?) {
            let limits = match must {
                true => DictionaryLimits::NONE,
                false => DictionaryLimits { bytes: settings.dictionary_bytes, must_pay: true },
            };
            let (values, dictionary) = self.intern(&source, limits)?;
            gathered = values;
            if let Some(dictionary) = dictionary {
                let of = race.dictionary(&dictionary)?;
                if must || race.is_won_by(of)? {
                    return Ok(of.choice(Form::Dictionary { dictionary, values: gathered }));
                }
                spare.give(dictionary.codes);
            }
        }
        let best = race.best()?;
        let values = gathered.map_or(source, Source::Whole);
        Ok(best.choice(Form::Plain { values, encoding: best.estimate.encoding }))
    }

    /// The form of values that came as keys into others.
    fn choose_keyed(&self, dictionary: Interned<'a>, sealer: &mut Sealer) -> Result<Choice<'a>> {
        let mut race = Race::new(self, Of::Keys(&dictionary), sealer);
        let of = race.dictionary(&dictionary)?;
        if self.settings.encoding.is_some() || race.is_won_by(of)? {
            return Ok(of.choice(Form::Dictionary { dictionary, values: None }));
        }
        let best = race.best()?;
        let values = Source::Whole(dictionary.entries.take(&dictionary.codes));
        self.tools.spare.give(dictionary.codes);
        Ok(best.choice(Form::Plain { values, encoding: best.estimate.encoding }))
    }

    /// The form in an encoding that was asked for.
    fn given(&self, encoding: Encoding, sealer: &mut Sealer) -> Result<Choice<'a>> {
        let values = self.source()?;
        let bytes = match (encoding, self.settings.compression) {
            (Encoding::Plain, Compression::Uncompressed) => values.plain_len(self.leaf),
            _ => {
                let sample = values.sample(&sample_ranges(values.len(), SAMPLE), self.leaf)?;
                let (_, stored) = self.measure(&sample, encoding, sealer)?;
                stored.saturating_mul(values.len()) / sample.len().max(1)
            }
        };
        Ok(Choice { form: Form::Plain { values, encoding }, helps: true, bytes })
    }

    /// The values: page by page, if nobody wants to see them all.
    fn source(&self) -> Result<Source<'a>> {
        let parts = &self.column.parts;
        if !is_keyed(parts) && self.settings.chunking.is_none() {
            return Ok(Source::Parts(parts));
        }
        Ok(Source::Whole(match gather(parts, self.leaf, &self.tools.spare)? {
            Gathered::Plain(values) => values,
            Gathered::Keyed { entries, keys } => entries.take(&keys),
        }))
    }

    /// The dictionary of values that came as keys, if they did.
    fn keyed(&self) -> Result<Option<Interned<'a>>> {
        let (parts, spare) = (&self.column.parts, &self.tools.spare);
        if !is_keyed(parts) {
            return Ok(None);
        }
        Ok(match gather(parts, self.leaf, spare)? {
            Gathered::Plain(_) => None,
            Gathered::Keyed { entries, keys } => {
                let dictionary = unify(&entries, &keys, spare);
                spare.give(keys);
                dictionary
            }
        })
    }

    /// Looks for a dictionary; and gives the values if they had to be gathered for it.
    fn intern(
        &self,
        source: &Source<'a>,
        limits: DictionaryLimits,
    ) -> Result<(Option<Values<'a>>, Option<Interned<'a>>)> {
        let (parts, spare) = (&self.column.parts, &self.tools.spare);
        if self.leaf.physical == Physical::ByteArray && are_texts(parts, self.leaf) {
            return Ok((None, intern_parts(parts, self.leaf, limits, spare)));
        }
        let values = match source {
            Source::Whole(values) => return Ok((None, intern(values, limits, spare))),
            Source::Parts(parts) => match gather(parts, self.leaf, spare)? {
                Gathered::Plain(values) => values,
                Gathered::Keyed { entries, keys } => entries.take(&keys),
            },
        };
        let dictionary = intern(&values, limits, spare);
        Ok((Some(values), dictionary))
    }

    /// Bytes of some values in an encoding: as they are, and as they are stored.
    fn measure(
        &self,
        values: &Values<'_>,
        encoding: Encoding,
        sealer: &mut Sealer,
    ) -> Result<(usize, usize)> {
        let (spare, all) = (&self.tools.spare, 0..values.len());
        let mut bytes = spare.take(values.plain_len(all.clone()));
        encode(values, all, self.leaf.physical, encoding, spare, &mut bytes)?;
        let measured = self.stored(&bytes, sealer);
        spare.give(bytes);
        measured
    }

    /// As [`Encoder::measure`], of indices into a dictionary.
    fn measure_codes(&self, codes: &[u32], sealer: &mut Sealer) -> Result<(usize, usize)> {
        let mut bytes = self.tools.spare.take(codes.len() * 2);
        encode_codes(codes, &mut bytes)?;
        let measured = self.stored(&bytes, sealer);
        self.tools.spare.give(bytes);
        measured
    }

    fn stored(&self, bytes: &[u8], sealer: &mut Sealer) -> Result<(usize, usize)> {
        let stored = match self.settings.compression {
            Compression::Uncompressed => bytes.len(),
            _ => sealer.compressed_len(bytes)?.min(bytes.len()),
        };
        Ok((bytes.len(), stored))
    }

    /// How many of `n` values a sample has, which take so many bytes as PLAIN.
    fn sample_len(&self, n: usize, plain_bytes: usize) -> usize {
        let is_tuned = self.settings.compression != Compression::Uncompressed
            && self.leaf.physical == Physical::ByteArray;
        match is_tuned {
            true => (n.saturating_mul(TUNED) / plain_bytes.max(1)).clamp(SAMPLE / 2, SAMPLE * 3),
            false => SAMPLE,
        }
    }
}

/// What a sample says of an encoding.
#[derive(Debug, Clone, Copy)]
struct Measured {
    estimate: Estimate,
    /// What the codec leaves of it.
    ratio: f64,
}

impl Measured {
    /// Of the whole chunk, by the bytes of its parts as they are and as they are stored, and how many such parts it has.
    fn new(encoding: Encoding, dictionary_bytes: usize, parts: &[((usize, usize), f64)]) -> Self {
        let of = |bytes: usize, times: f64| bytes as f64 * times;
        let raw: f64 = parts.iter().map(|((raw, _), times)| of(*raw, *times)).sum();
        let bytes: f64 = parts.iter().map(|((_, stored), times)| of(*stored, *times)).sum();
        let ratio = if raw > 0.0 { bytes / raw } else { 1.0 };
        Self { estimate: Estimate { encoding, bytes, dictionary_bytes }, ratio }
    }

    fn cost(&self, profile: Profile) -> f64 {
        self.estimate.cost(profile)
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "an estimate, never negative"
    )]
    fn choice<'a>(&self, form: Form<'a>) -> Choice<'a> {
        Choice { form, helps: self.ratio < HELPS, bytes: self.estimate.bytes as usize }
    }
}

/// What is sampled.
enum Of<'s, 'a> {
    Values(&'s Source<'a>),
    Keys(&'s Interned<'a>),
}

impl<'a> Of<'_, 'a> {
    fn len(&self) -> usize {
        match self {
            Self::Values(source) => source.len(),
            Self::Keys(dictionary) => dictionary.codes.len(),
        }
    }

    fn plain_len(&self, encoder: &Encoder<'a>) -> usize {
        match self {
            Self::Values(source) => source.plain_len(encoder.leaf),
            Self::Keys(Interned { entries, codes, .. }) => {
                let all = entries.plain_len(0..entries.len());
                all.saturating_mul(codes.len()) / entries.len().max(1)
            }
        }
    }

    fn sample(&self, some: usize, encoder: &Encoder<'a>) -> Result<Values<'a>> {
        let ranges = sample_ranges(self.len(), some);
        match self {
            Self::Values(source) => source.sample(&ranges, encoder.leaf),
            Self::Keys(dictionary) => Ok(dictionary.entries.take(&dictionary.sample(&ranges))),
        }
    }
}

impl Interned<'_> {
    fn sample(&self, ranges: &[Range<usize>]) -> Vec<u32> {
        let codes = ranges.iter().filter_map(|range| self.codes.get(range.clone()));
        codes.flatten().copied().collect()
    }
}

/// The encodings of a chunk, measured as far as is needed to tell which is best.
struct Race<'r, 'a> {
    encoder: &'r Encoder<'a>,
    of: Of<'r, 'a>,
    sealer: &'r mut Sealer,
    /// How many values there are.
    n: usize,
    /// How many a sample should have.
    some: usize,
    /// All but a dictionary, by a sample of so many; those that are far behind by the first are left out of the second.
    others: Option<(Vec<Measured>, Values<'a>)>,
    is_final: bool,
}

impl<'r, 'a> Race<'r, 'a> {
    fn new(encoder: &'r Encoder<'a>, of: Of<'r, 'a>, sealer: &'r mut Sealer) -> Self {
        let n = of.len();
        let some = encoder.sample_len(n, of.plain_len(encoder));
        Self { encoder, of, sealer, n, some, others: None, is_final: false }
    }

    fn profile(&self) -> Profile {
        self.encoder.settings.profile
    }

    /// Measures the encodings by a few values.
    fn begin(&mut self) -> Result<()> {
        if self.others.is_some() {
            return Ok(());
        }
        let sample = self.of.sample(QUICK, self.encoder)?;
        self.is_final = sample.len() == self.n;
        let (leaf, settings) = (self.encoder.leaf, self.encoder.settings);
        let encodings = candidates(self.profile(), leaf.physical.format_type())
            .iter()
            .filter(|encoding| settings.is_read_in(**encoding, leaf));
        let others = encodings.map(|encoding| self.measure(*encoding, &sample));
        self.others = Some((others.collect::<Result<_>>()?, sample));
        Ok(())
    }

    /// Measures those that are not far behind by more values.
    fn go_on(&mut self) -> Result<()> {
        self.begin()?;
        if self.is_final {
            return Ok(());
        }
        self.is_final = true;
        let best = self.least();
        let profile = self.profile();
        let sample = self.of.sample(self.some, self.encoder)?;
        let mut others = self.others.take().map(|(others, _)| others).unwrap_or_default();
        others.retain(|of| of.cost(profile) <= best * BEHIND);
        if others.len() > 1 {
            for of in &mut others {
                *of = self.measure(of.estimate.encoding, &sample)?;
            }
        }
        self.others = Some((others, sample));
        Ok(())
    }

    fn measure(&mut self, encoding: Encoding, sample: &Values<'a>) -> Result<Measured> {
        let measured = self.encoder.measure(sample, encoding, self.sealer)?;
        Ok(Measured::new(encoding, 0, &[(measured, times(self.n, sample.len()))]))
    }

    fn others(&self) -> &[Measured] {
        self.others.as_ref().map_or(&[], |(others, _)| others)
    }

    /// What the best of them costs, as far as it is known.
    fn least(&self) -> f64 {
        let costs = self.others().iter().map(|of| of.cost(self.profile()));
        costs.fold(f64::INFINITY, f64::min)
    }

    /// The best of those that are no dictionary.
    fn best(&mut self) -> Result<Measured> {
        self.go_on()?;
        let profile = self.profile();
        let best = self.others().iter().min_by(|a, b| a.cost(profile).total_cmp(&b.cost(profile)));
        match best.copied() {
            Some(best) if best.estimate.encoding == Encoding::DeltaBinaryPacked => {
                self.or_split(best)
            }
            Some(best) => Ok(best),
            None => Ok(Measured::new(Encoding::Plain, 0, &[])),
        }
    }

    /// Integers that no dictionary suits may be smaller with their bytes apart, if a codec sees them; beside a dictionary that is seldom worth its time.
    fn or_split(&mut self, deltas: Measured) -> Result<Measured> {
        let is_compressed = self.encoder.settings.compression != Compression::Uncompressed;
        let (leaf, settings) = (self.encoder.leaf, self.encoder.settings);
        let is_read = settings.is_read_in(Encoding::ByteStreamSplit, leaf);
        if self.profile() != Profile::Balanced || !is_compressed || !is_read {
            return Ok(deltas);
        }
        let sample = self.of.sample(self.some, self.encoder)?;
        let split = self.measure(Encoding::ByteStreamSplit, &sample)?;
        let is_smaller = split.estimate.bytes < deltas.estimate.bytes;
        Ok(if is_smaller { split } else { deltas })
    }

    /// Whether a dictionary is worth looking for.
    fn may_be_won_by_a_dictionary(&mut self) -> Result<bool> {
        self.begin()?;
        if self.is_final {
            return Ok(true);
        }
        let least_of_dictionary = self.guess()?;
        if least_of_dictionary * BEHIND < self.least() {
            return Ok(true);
        }
        if least_of_dictionary > self.least() * BEHIND {
            return Ok(false);
        }
        self.go_on()?;
        Ok(self.guess()? <= self.least())
    }

    /// What a dictionary costs at the least, by the values of the sample that repeat.
    fn guess(&mut self) -> Result<f64> {
        let Some((_, sample)) = &self.others else {
            return Ok(0.0);
        };
        let spare = &self.encoder.tools.spare;
        let Some(Interned { entries, codes, .. }) = intern(sample, DictionaryLimits::NONE, spare)
        else {
            return Ok(f64::INFINITY);
        };
        let (some, n) = (sample.len(), self.n);
        // Equal values that stand together tell nothing of whether others come again.
        let runs = 1 + codes.windows(2).filter(|pair| matches!(pair, [a, b] if a != b)).count();
        let all = distinct(entries.len(), runs, times(n, some) * runs as f64);
        if all > n as f64 * HOPELESS {
            return Ok(f64::INFINITY);
        }
        let of_codes = self.encoder.measure_codes(&codes, self.sealer)?;
        spare.give(codes);
        let of_entries = self.encoder.measure(&entries, Encoding::Plain, self.sealer)?;
        // Indices have as many bits as the last of them.
        let bits = |entries: f64| entries.log2().ceil().max(1.0);
        let wider = bits(all) / bits(entries.len() as f64);
        let more = all / entries.len().max(1) as f64;
        let parts = [(of_codes, times(n, some) * wider), (of_entries, more)];
        Ok(Measured::new(Encoding::RleDictionary, 0, &parts).cost(self.profile()))
    }

    /// What the chunk takes with a dictionary.
    fn dictionary(&mut self, dictionary: &Interned<'a>) -> Result<Measured> {
        let codes = dictionary.sample(&sample_ranges(self.n, self.some));
        let of_codes = self.encoder.measure_codes(&codes, self.sealer)?;
        // Of the entries a sample as well: they stand in the order in which they first occur, which may begin unlike it goes on.
        let all = dictionary.entries.len();
        let dictionary_bytes = dictionary.entries.plain_len(0..all);
        let some = self.encoder.sample_len(all, dictionary_bytes);
        let entries = dictionary.entries.sample(&sample_ranges(all, some));
        let of_entries = self.encoder.measure(&entries, Encoding::Plain, self.sealer)?;
        let parts =
            [(of_codes, times(self.n, codes.len())), (of_entries, times(all, entries.len()))];
        Ok(Measured::new(Encoding::RleDictionary, dictionary_bytes, &parts))
    }

    /// Whether nothing is better than this dictionary.
    fn is_won_by(&mut self, dictionary: Measured) -> Result<bool> {
        self.begin()?;
        let cost = dictionary.cost(self.profile());
        if cost * BEHIND > self.least() {
            self.go_on()?;
        }
        Ok(cost <= self.least())
    }
}

/// How often a part is in the whole.
fn times(all: usize, some: usize) -> f64 {
    if some == 0 { 1.0 } else { all as f64 / some as f64 }
}

/// How many of `n` values are different, at the least but for chance, if so many of `some` are. As if all were equally likely: if they are not, there
/// are more.
fn distinct(different: usize, some: usize, n: f64) -> f64 {
    let seen_before = some.saturating_sub(different) as f64;
    let by_chance = 2.0 * seen_before.sqrt() + 1.0;
    let some = some as f64;
    let at_least = (some - seen_before - by_chance).max(1.0);
    // Of `k` values, so many are among `some` of them.
    let seen = |k: f64| k * -(-some / k).exp_m1();
    let (mut least, mut most) = (different.max(1) as f64, n.max(1.0));
    while most > least * 1.001 {
        let middle = f64::midpoint(least, most);
        if seen(middle) < at_least { least = middle } else { most = middle }
    }
    least
}

fn sample_ranges(n: usize, some: usize) -> Vec<Range<usize>> {
    if n <= some * 2 {
        return vec![Range { start: 0, end: n }];
    }
    let len = some / STRETCHES;
    (0..STRETCHES)
        .map(|i| {
            let start = (n - len) * i / (STRETCHES - 1);
            start..start + len
        })
        .collect()
}

/// One entry for each distinct value that is used, and the codes that follow; `None` where nothing repeats.
fn unify<'a>(entries: &Values<'a>, keys: &[u32], spare: &Spare) -> Option<Interned<'a>> {
    let limits = DictionaryLimits::NONE;
    // First those that are used, in the order of their first use; then those that are equal become one.
    const UNUSED: u32 = u32::MAX;
    let mut place = vec![UNUSED; entries.len()];
    let mut used = Vec::new();
    let mut codes = spare.take(keys.len());
    for &key in keys {
        let slot = place.get_mut(key as usize)?;
        if *slot == UNUSED {
            *slot = u32::try_from(used.len()).ok()?;
            used.push(key);
        }
        codes.push(*slot);
    }
    let entries = entries.take(&used);
    match intern(&entries, limits, spare) {
        Some(unified) if unified.entries.len() < entries.len() => {
            for code in &mut codes {
                *code = unified.codes.get(*code as usize).copied()?;
            }
            spare.give(unified.codes);
            Some(Interned { entries: unified.entries, codes, distinct: true })
        }
        Some(_) => Some(Interned { entries, codes, distinct: true }),
        // Given up as hopeless: entries that are equal do no harm.
        None => Some(Interned { entries, codes, distinct: false }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_repeat_tell_how_many_there_are() {
        let seed = 61;
        let mut rng = fastrand::Rng::with_seed(seed);
        for all in [1usize, 10, 1_000, 30_000, 100_000] {
            let sample: Vec<usize> = (0..QUICK).map(|_| rng.usize(0..all)).collect();
            let different = sample.iter().collect::<std::collections::HashSet<_>>().len();
            let apart = distinct(different, QUICK, 1e6) / all as f64;
            assert!((0.5..1.3).contains(&apart), "{apart} of {all}; seed {seed}");
        }
        assert!(distinct(QUICK, QUICK, 1e6) > 0.9e6, "nothing repeats");
        assert!(distinct(0, 0, 0.0) <= 1.0);
    }

    #[test]
    fn samples_lie_within_the_values_and_apart() {
        for n in [0, 1, QUICK, QUICK * 2, QUICK * 2 + 1, 1 << 20] {
            for some in [QUICK, SAMPLE] {
                let ranges = sample_ranges(n, some);
                assert!(ranges.windows(2).all(|pair| pair[0].end <= pair[1].start));
                assert_eq!(ranges.last().map(|last| last.end), Some(n));
                let len: usize = ranges.iter().map(Range::len).sum();
                assert!(len == n || len == some);
            }
        }
    }
}
