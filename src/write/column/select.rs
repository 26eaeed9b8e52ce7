//! Selects the encoding of a chunk; each is measured only as far as is needed to tell which is
//! best.
//!
//! A small sample excludes the encodings that are far from the best; a larger one compares the
//! Trap: building a dictionary is the most expensive part of writing. Values that repeat in a
//! sample give a lower bound for the number of distinct values, and so for the size of a
//! dictionary, before it is built.

use super::dictionary::{DictionaryLimits, ValueDictionary, intern};
use super::encode::CodeLayout;
use super::encoder::ChunkEncoder;
use super::measure::{
    BlocksTried, MAX_SAMPLE_BYTES, Measurement, SampleSource, TINY_SAMPLE_VALUES,
    TINY_VALUES_PER_BYTE, distinct, sample_ranges, times,
};
use super::parallelism::SingleThread;
use super::values::LeafValues;
use crate::compress::Compression;
use crate::encoding::choose::{Profile, SPLIT_INTEGERS_COST, candidates};
use crate::error::Result;
use crate::format::Encoding;
use crate::page::Sealer;

/// Number of values of the first sample, which excludes encodings far from the best.
const FIRST_SAMPLE_VALUES: usize = 4 << 10;

/// An encoding that takes this many times the best by the first sample is not measured again.
const MARGIN: f64 = 1.12;

/// How many samples a chunk has at least whose only encoding is measured once more.
const MIN_SAMPLES: usize = 8;

/// Maximum share of distinct values, because above it hashing costs more than a dictionary saves.
const MAX_DISTINCT_SHARE: f64 = 0.5;

/// The encodings of a chunk, measured as far as is needed to tell which is best.
pub(super) struct EncodingSelector<'r, 'a> {
    encoder: &'r ChunkEncoder<'a>,
    of: SampleSource<'r, 'a>,
    sealer: &'r mut Sealer,
    /// How many values there are.
    n: usize,
    /// How many a sample should have.
    some: usize,
    /// All but a dictionary, and the sample that they were measured by. The second sample leaves
    /// out those that are far from the best by the first.
    others: Option<(Vec<Measurement>, LeafValues<'a>)>,
    /// Whether `others` were measured by the second sample, or by all values.
    is_final: bool,
}

impl<'r, 'a> EncodingSelector<'r, 'a> {
    pub(super) fn new(
        encoder: &'r ChunkEncoder<'a>,
        of: SampleSource<'r, 'a>,
        sealer: &'r mut Sealer,
    ) -> Self {
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
        let sample = self.of.sample(FIRST_SAMPLE_VALUES, self.encoder)?;
        self.is_final = sample.len() == self.n;
        let (leaf, settings) = (self.encoder.leaf, self.encoder.settings);
        let encodings = candidates(self.profile(), leaf.physical.format_type())
            .iter()
            .filter(|encoding| settings.is_read_in(**encoding, leaf));
        let others = encodings.map(|encoding| self.measure(*encoding, &sample));
        self.others = Some((others.collect::<Result<_>>()?, sample));
        if self.is_tiny() {
            self.some = self.some.max(TINY_SAMPLE_VALUES);
        }
        Ok(())
    }

    /// Whether the values compress to almost nothing.
    fn is_tiny(&self) -> bool {
        self.least() * TINY_VALUES_PER_BYTE < self.n as f64
    }

    /// Measures those that are close to the best, by more values.
    fn measure_more(&mut self) -> Result<()> {
        self.begin()?;
        if self.is_final {
            return Ok(());
        }
        self.is_final = true;
        // Most of what a small sample takes is then what each page takes by itself, and it sees no
        // repeats that are far apart: it excludes nothing.
        let max_cost = if self.is_tiny() { f64::INFINITY } else { self.least() * MARGIN };
        let profile = self.profile();
        let sample = self.of.sample(self.some, self.encoder)?;
        let (mut others, _) = self.others.take().expect("measured by the first sample above");
        others.retain(|of| of.cost(profile) <= max_cost);
        // Alone, it is measured for its blocks, unless that takes longer than it may save.
        let is_delta = |of: &Measurement| of.estimate.encoding == Encoding::DeltaBinaryPacked;
        let is_long_chunk = self.n >= self.some.saturating_mul(MIN_SAMPLES);
        if others.len() > 1 || (is_long_chunk && others.iter().any(is_delta)) {
            for of in &mut others {
                *of = self.measure(of.estimate.encoding, &sample)?;
            }
        }
        self.others = Some((others, sample));
        Ok(())
    }

    fn measure(&mut self, encoding: Encoding, sample: &LeafValues<'a>) -> Result<Measurement> {
        // Long blocks are not what excludes an encoding.
        let tried = if self.is_final { BlocksTried::All } else { BlocksTried::Short };
        self.encoder.measure_encoding(sample, self.n, encoding, tried, self.sealer)
    }

    fn others(&self) -> &[Measurement] {
        self.others.as_ref().map_or(&[], |(others, _)| others)
    }

    /// The lowest cost so far.
    fn least(&self) -> f64 {
        let costs = self.others().iter().map(|of| of.cost(self.profile()));
        costs.fold(f64::INFINITY, f64::min)
    }

    /// The best of those that are no dictionary.
    pub(super) fn best(&mut self) -> Result<Measurement> {
        self.measure_more()?;
        let profile = self.profile();
        let best = self.others().iter().min_by(|a, b| a.cost(profile).total_cmp(&b.cost(profile)));
        match best.copied() {
            Some(best) if best.estimate.encoding == Encoding::DeltaBinaryPacked => {
                self.or_byte_stream_split(best)
            }
            Some(best) => Ok(best),
            None => Ok(Measurement::new(Encoding::Plain, 0, &[])),
        }
    }

    /// BYTE_STREAM_SPLIT of integers, if it is far smaller and the chunk is compressed. Tried after
    /// a dictionary was excluded, because beside one it is seldom worth its time.
    fn or_byte_stream_split(&mut self, deltas: Measurement) -> Result<Measurement> {
        let is_compressed = self.encoder.settings.compression != Compression::Uncompressed;
        let (leaf, settings) = (self.encoder.leaf, self.encoder.settings);
        let is_read = settings.is_read_in(Encoding::ByteStreamSplit, leaf);
        if self.profile() != Profile::Balanced || !is_compressed || !is_read {
            return Ok(deltas);
        }
        let sample = self.of.sample(self.some, self.encoder)?;
        let split = self.measure(Encoding::ByteStreamSplit, &sample)?;
        let is_smaller = split.estimate.bytes * SPLIT_INTEGERS_COST < deltas.estimate.bytes;
        Ok(if is_smaller { split } else { deltas })
    }

    /// Whether building a dictionary is worth its cost.
    pub(super) fn may_dictionary_be_best(&mut self) -> Result<bool> {
        self.begin()?;
        if self.is_final {
            return Ok(true);
        }
        let least_of_dictionary = self.estimate_dictionary()?;
        if least_of_dictionary * MARGIN < self.least() {
            return Ok(true);
        }
        if least_of_dictionary > self.least() * MARGIN && !self.is_tiny() {
            return Ok(false);
        }
        self.measure_more()?;
        Ok(self.estimate_dictionary()? <= self.least())
    }

    /// Lower bound of the cost of a dictionary, from the repeated values of a sample.
    fn estimate_dictionary(&mut self) -> Result<f64> {
        let Some((_, sample)) = &self.others else {
            return Ok(0.0);
        };
        let free_lists = &self.encoder.context.free_lists;
        let Some(ValueDictionary { entries, codes, .. }) =
            intern(sample, DictionaryLimits::NONE, &SingleThread, free_lists)
        else {
            return Ok(f64::INFINITY);
        };
        let (some, n) = (sample.len(), self.n);
        // Runs of equal values reveal nothing about repetition elsewhere.
        let runs = 1 + codes.windows(2).filter(|pair| matches!(pair, [a, b] if a != b)).count();
        let all = distinct(entries.len(), runs, times(n, some) * runs as f64);
        if all > n as f64 * MAX_DISTINCT_SHARE {
            return Ok(f64::INFINITY);
        }
        let (_, of_codes) = self.encoder.measure_codes(&codes, self.sealer)?;
        free_lists.put_back(codes);
        let of_entries = self.encoder.measure(&entries, Encoding::Plain, self.sealer)?;
        // Indices have as many bits as the last of them.
        let bits = |entries: f64| entries.log2().ceil().max(1.0);
        let wider = bits(all) / bits(entries.len() as f64);
        let more = all / entries.len().max(1) as f64;
        let parts = [(of_codes, times(n, some) * wider), (of_entries, more)];
        Ok(Measurement::new(Encoding::RleDictionary, 0, &parts).cost(self.profile()))
    }

    /// The bytes of the chunk with a dictionary.
    pub(super) fn dictionary(
        &mut self,
        dictionary: &ValueDictionary<'a>,
    ) -> Result<(CodeLayout, Measurement)> {
        // It decides how large a sample should be.
        self.begin()?;
        let codes = dictionary.sample(&sample_ranges(self.n, self.some))?;
        let (layout, of_codes) = self.encoder.measure_codes(&codes, self.sealer)?;
        // A sample of the entries as well: they are in the order of their first occurrence, so that
        // the first may be unlike the rest.
        let all = dictionary.entries.len();
        let dictionary_bytes = dictionary.entries.plain_len(0..all);
        let some = self.encoder.sample_len(all, dictionary_bytes);
        let entries = dictionary.entries.sample(&sample_ranges(all, some))?;
        let entries = entries.thinned(MAX_SAMPLE_BYTES)?;
        let of_entries = self.encoder.measure(&entries, Encoding::Plain, self.sealer)?;
        let parts =
            [(of_codes, times(self.n, codes.len())), (of_entries, times(all, entries.len()))];
        Ok((layout, Measurement::new(Encoding::RleDictionary, dictionary_bytes, &parts)))
    }

    /// Whether nothing is better than this dictionary.
    pub(super) fn is_best(&mut self, dictionary: Measurement) -> Result<bool> {
        self.begin()?;
        let cost = dictionary.cost(self.profile());
        if cost * MARGIN > self.least() {
            self.measure_more()?;
        }
        Ok(cost <= self.least())
    }
}
