//! Measures the bytes that an encoding of a chunk takes, by samples from all over it that are
//! compressed as pages will be.

use std::ops::Range;

use super::dictionary::ValueDictionary;
use super::encode::{CodeLayout, encode, encode_codes, max_len};
use super::encoder::{ChunkEncoder, ChunkForm};
use super::source::ValueSource;
use super::values::LeafValues;
use crate::compress::Compression;
use crate::encoding::choose::{Estimate, LAYOUT_COST, LONG_BLOCKS_COST, Profile};
use crate::encoding::delta_binary::DeltaBlocks;
use crate::error::Result;
use crate::format::Encoding;
use crate::memory;
use crate::page::Sealer;
use crate::schema::Physical;

/// How the chunk will be written.
pub(super) struct EncodingChoice<'a> {
    pub(super) form: ChunkForm<'a>,
    /// Whether the codec makes it smaller.
    pub(super) helps: bool,
    /// Estimated bytes.
    pub(super) bytes: usize,
}

/// Maximum ratio of compressed to uncompressed bytes at which a chunk is stored compressed: a
/// higher one is not worth the time to write and read it, although a writer that always compresses
/// makes a smaller file.
const MAX_USEFUL_RATIO: f64 = 0.985;

/// Values of a sample, and the stretches it is made of: they lie all over the chunk, as its
/// beginning may be unlike the rest.
pub(super) const SAMPLE_VALUES: usize = 16 << 10;
pub(super) const SAMPLE_RUNS: usize = 8;

/// Number of values of a sample that the codec compresses to almost nothing: such encodings differ
/// by the fixed bytes of each page, and by repeats farther apart than a smaller sample.
pub(super) const TINY_SAMPLE_VALUES: usize = 32 << 10;

/// Number of values per compressed byte from which on a chunk counts as almost nothing.
pub(super) const TINY_VALUES_PER_BYTE: f64 = 2.0;

/// Bytes of a sample of byte strings that are compressed: ZSTD looks for other matches in less than
/// 256 KiB than in more, as pages have (a dictionary of 7 MB: 8 % smaller by a sample of 240 KiB
/// than it was).
const SAMPLE_BYTES: usize = 320 << 10;

/// Maximum bytes of a sample as PLAIN, which is how it is encoded: long values that rows share take
/// less until then.
pub(super) const MAX_SAMPLE_BYTES: usize = 8 << 20;

/// Which blocks of DELTA_BINARY_PACKED are measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BlocksTried {
    Short,
    All,
}

impl ChunkEncoder<'_> {
    /// Estimates the bytes of `n` values in an encoding, by a sample of them; for
    /// DELTA_BINARY_PACKED with the best block size.
    pub(super) fn measure_encoding(
        &self,
        sample: &LeafValues<'_>,
        n: usize,
        encoding: Encoding,
        tried: BlocksTried,
        sealer: &mut Sealer,
    ) -> Result<Measurement> {
        let of = |blocks, measured| Measurement {
            blocks,
            ..Measurement::new(encoding, 0, &[(measured, times(n, sample.len()))])
        };
        if encoding != Encoding::DeltaBinaryPacked {
            let measured = self.measure(sample, encoding, sealer)?;
            return Ok(of(DeltaBlocks::Short, measured));
        }
        // The stretches of a sample have nothing to do with each other, and the differences between
        // them would be those of many values.
        let stretches = if sample.len() == n { 1 } else { SAMPLE_RUNS };
        let short = self.measure_deltas(sample, stretches, DeltaBlocks::Short, sealer)?;
        if tried == BlocksTried::All {
            let long = self.measure_deltas(sample, stretches, DeltaBlocks::Long, sealer)?;
            if (long.1 as f64) * LONG_BLOCKS_COST < short.1 as f64 {
                return Ok(of(DeltaBlocks::Long, long));
            }
        }
        Ok(of(DeltaBlocks::Short, short))
    }

    /// Bytes of some values in an encoding: as they are, and as they are stored.
    pub(super) fn measure(
        &self,
        values: &LeafValues<'_>,
        encoding: Encoding,
        sealer: &mut Sealer,
    ) -> Result<(usize, usize)> {
        let (free_lists, all) = (&self.context.free_lists, 0..values.len());
        let mut bytes = free_lists.take(max_len(values, all.clone(), encoding))?;
        let (physical, blocks) = (self.leaf.physical, DeltaBlocks::Short);
        encode(values, all, physical, encoding, blocks, free_lists, &mut bytes)?;
        let measured = self.stored(&bytes, encoding, values.len(), sealer);
        free_lists.put_back(bytes);
        measured
    }

    /// Like [`ChunkEncoder::measure`], for DELTA_BINARY_PACKED of a sample of some stretches.
    fn measure_deltas(
        &self,
        sample: &LeafValues<'_>,
        stretches: usize,
        blocks: DeltaBlocks,
        sealer: &mut Sealer,
    ) -> Result<(usize, usize)> {
        let (free_lists, n) = (&self.context.free_lists, sample.len());
        let encoding = Encoding::DeltaBinaryPacked;
        let mut bytes = free_lists.take(max_len(sample, 0..n, encoding))?;
        for i in 0..stretches {
            let stretch = n * i / stretches..n * (i + 1) / stretches;
            let physical = self.leaf.physical;
            encode(sample, stretch, physical, encoding, blocks, free_lists, &mut bytes)?;
        }
        let measured = self.stored(&bytes, encoding, n, sealer);
        free_lists.put_back(bytes);
        measured
    }

    /// Like [`ChunkEncoder::measure`], for indices into a dictionary, in the layout that is best.
    /// The bytes as they are, are those without a codec in any case.
    pub(super) fn measure_codes(
        &self,
        codes: &[u32],
        sealer: &mut Sealer,
    ) -> Result<(CodeLayout, (usize, usize))> {
        let mut bytes = self.context.free_lists.take(codes.len() * 2)?;
        encode_codes(codes, CodeLayout::Runs, &mut bytes)?;
        let (encoding, n) = (Encoding::RleDictionary, codes.len());
        let (raw, stored) = self.stored(&bytes, encoding, n, sealer)?;
        let mut best = (CodeLayout::Runs, stored);
        if self.settings.compression != Compression::Uncompressed {
            for layout in [CodeLayout::Packed, CodeLayout::Bytes] {
                let before = std::mem::take(&mut bytes);
                bytes = self.context.free_lists.take(before.len())?;
                encode_codes(codes, layout, &mut bytes)?;
                let is_new = bytes != before;
                self.context.free_lists.put_back(before);
                if !is_new {
                    continue;
                }
                let (_, stored) = self.stored(&bytes, encoding, n, sealer)?;
                if (stored as f64) * LAYOUT_COST < best.1 as f64 {
                    best = (layout, stored);
                }
            }
        }
        self.context.free_lists.put_back(bytes);
        let (layout, stored) = best;
        Ok((layout, (raw, stored)))
    }

    /// Bytes of `n` values in an encoding, as they are, and as they are stored.
    fn stored(
        &self,
        bytes: &[u8],
        encoding: Encoding,
        n: usize,
        sealer: &mut Sealer,
    ) -> Result<(usize, usize)> {
        let stored = match self.settings.compression {
            Compression::Uncompressed => bytes.len(),
            _ => sealer.compressed_len_of(bytes, encoding, n)?.min(bytes.len()),
        };
        Ok((bytes.len(), stored))
    }

    /// Number of values of a sample of `n` values, which take `plain_bytes` bytes as PLAIN.
    pub(super) fn sample_len(&self, n: usize, plain_bytes: usize) -> usize {
        let is_tuned = self.settings.compression != Compression::Uncompressed
            && matches!(
                self.leaf.physical,
                Physical::ByteArray | Physical::FixedLenByteArray(_) | Physical::Int96
            );
        match is_tuned {
            true => (n.saturating_mul(SAMPLE_BYTES) / plain_bytes.max(1))
                .clamp(SAMPLE_VALUES / 2, SAMPLE_VALUES * 3),
            false => SAMPLE_VALUES,
        }
    }
}

/// The measurement of an encoding by a sample.
#[derive(Debug, Clone, Copy)]
pub(super) struct Measurement {
    pub(super) estimate: Estimate,
    /// Ratio of compressed to uncompressed bytes.
    ratio: f64,
    /// The blocks that are best, of DELTA_BINARY_PACKED.
    pub(super) blocks: DeltaBlocks,
}

impl Measurement {
    /// The measurement of the whole chunk, by the uncompressed and the compressed bytes of its
    /// parts, and the number of such parts.
    pub(super) fn new(
        encoding: Encoding,
        dictionary_bytes: usize,
        parts: &[((usize, usize), f64)],
    ) -> Self {
        let of = |bytes: usize, times: f64| bytes as f64 * times;
        let raw: f64 = parts.iter().map(|((raw, _), times)| of(*raw, *times)).sum();
        let bytes: f64 = parts.iter().map(|((_, stored), times)| of(*stored, *times)).sum();
        let ratio = if raw > 0.0 { bytes / raw } else { 1.0 };
        let estimate = Estimate { encoding, bytes, dictionary_bytes };
        Self { estimate, ratio, blocks: DeltaBlocks::Short }
    }

    pub(super) fn cost(&self, profile: Profile) -> f64 {
        self.estimate.cost(profile)
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "an estimate, never negative"
    )]
    pub(super) fn bytes(&self) -> usize {
        self.estimate.bytes as usize
    }

    /// The form of values as they are.
    pub(super) fn plain<'a>(&self, values: ValueSource<'a>) -> ChunkForm<'a> {
        ChunkForm::Plain { values, encoding: self.estimate.encoding, blocks: self.blocks }
    }

    pub(super) fn choice<'a>(&self, form: ChunkForm<'a>) -> EncodingChoice<'a> {
        EncodingChoice { form, helps: self.ratio < MAX_USEFUL_RATIO, bytes: self.bytes() }
    }
}

/// The source of a sample.
pub(super) enum SampleSource<'s, 'a> {
    Plain(&'s ValueSource<'a>),
    Keyed(&'s ValueDictionary<'a>),
}

impl<'a> SampleSource<'_, 'a> {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Plain(source) => source.len(),
            Self::Keyed(dictionary) => dictionary.codes.len(),
        }
    }

    pub(super) fn plain_len(&self, encoder: &ChunkEncoder<'a>) -> usize {
        match self {
            Self::Plain(source) => source.plain_len(encoder.leaf),
            Self::Keyed(ValueDictionary { entries, codes, .. }) => {
                let all = entries.plain_len(0..entries.len());
                all.saturating_mul(codes.len()) / entries.len().max(1)
            }
        }
    }

    pub(super) fn sample(&self, some: usize, encoder: &ChunkEncoder<'a>) -> Result<LeafValues<'a>> {
        let ranges = sample_ranges(self.len(), some);
        let sample = match self {
            Self::Plain(source) => source.sample(&ranges, encoder.leaf),
            Self::Keyed(dictionary) => dictionary.entries.take(&dictionary.sample(&ranges)?),
        };
        sample?.thinned(MAX_SAMPLE_BYTES)
    }
}

impl ValueDictionary<'_> {
    pub(super) fn sample(&self, ranges: &[Range<usize>]) -> Result<Vec<u32>> {
        let codes = ranges.iter().filter_map(|range| self.codes.get(range.clone()));
        let mut out = memory::vec_for(codes.clone().map(<[u32]>::len).sum())?;
        codes.for_each(|codes| out.extend_from_slice(codes));
        Ok(out)
    }
}

/// How often a part is in the whole.
pub(super) fn times(all: usize, some: usize) -> f64 {
    if some == 0 { 1.0 } else { all as f64 / some as f64 }
}

/// Lower-bound estimate of the distinct values among `n`, if `some` of them have `different`
/// distinct ones. It assumes that all values are equally likely; if they are not, there are more.
pub(super) fn distinct(different: usize, some: usize, n: f64) -> f64 {
    let seen_before = some.saturating_sub(different) as f64;
    let by_chance = 2.0 * seen_before.sqrt() + 1.0;
    let some = some as f64;
    let at_least = (some - seen_before - by_chance).max(1.0);
    // Of `k` distinct values, this many are expected among `some` values.
    let seen = |k: f64| k * -(-some / k).exp_m1();
    let (mut least, mut max) = (different.max(1) as f64, n.max(1.0));
    while max > least * 1.001 {
        let middle = f64::midpoint(least, max);
        if seen(middle) < at_least { least = middle } else { max = middle }
    }
    least
}

pub(super) fn sample_ranges(n: usize, some: usize) -> Vec<Range<usize>> {
    if n <= some * 2 {
        return vec![Range { start: 0, end: n }];
    }
    let len = some / SAMPLE_RUNS;
    (0..SAMPLE_RUNS)
        .map(|i| {
            let start = (n - len) * i / (SAMPLE_RUNS - 1);
            start..start + len
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUICK: usize = SAMPLE_VALUES / 4;

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
        assert!(distinct(10, 10, 1e6) < 1e3, "that few do not repeat may be chance");
    }

    #[test]
    fn samples_lie_within_the_values_and_apart() {
        for n in [0, 1, QUICK, QUICK * 2, QUICK * 2 + 1, 1 << 20] {
            for some in [QUICK, SAMPLE_VALUES] {
                let ranges = sample_ranges(n, some);
                assert!(ranges.windows(2).all(|pair| pair[0].end <= pair[1].start));
                assert_eq!(ranges.last().map(|last| last.end), Some(n));
                let len: usize = ranges.iter().map(Range::len).sum();
                assert!(len == n || len == some);
            }
        }
    }
}
