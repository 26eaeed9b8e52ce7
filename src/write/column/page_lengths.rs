//! Decides where the pages of a chunk begin.
//!
//! The settings limit the rows and bytes of a page. If the caller did not set them, the defaults
//! are adapted: pages that encode to almost nothing are joined, because each takes some 60 bytes by
//! itself; and pages of byte strings are longer if the codec finds repeats farther apart.

use super::chunking::{cuts, roll_value};
use super::dictionary::ValueDictionary;
use super::encode::{code_width, encode, max_len};
use super::encoder::{ChosenForm, ChunkEncoder, ChunkForm};
use super::measure::sample_ranges;
use super::ranks::extremes_of;
use super::source::ValueSource;
use crate::compress::Compression;
use crate::encoding::choose::{
    LONG_PAGE, LONG_PAGE_COST, MIN_PAGE, MIN_PAGE_OF_POINTS, PLAIN_WORDS_PAGE, Profile,
};
use crate::encoding::delta_binary::DeltaBlocks;
use crate::error::Result;
use crate::format::Encoding;
use crate::schema::{Leaf, Physical};
use crate::stats::order::ValueOrder;
use crate::write::column_options::ChunkingOptions;

/// Maximum multiple of the rows of the settings in a page, if it compresses to almost nothing.
const MAX_JOINED: usize = 4;

/// As [`MAX_JOINED`], if the bounds of pages show which rows a filter needs.
const MAX_JOINED_SORTED: usize = 2;

/// As [`MAX_JOINED`], of files whose rows are read one by one, whose pages are short.
const MAX_JOINED_OF_POINTS: usize = 16;

/// Values by which a chunk is taken for sorted.
const SORT_SAMPLE_VALUES: usize = 512;

/// Minimum bytes of byte strings in a chunk for which longer pages are tried, because that takes as
/// long as to compress 12 MiB.
const MIN_LONG_PAGES: usize = if cfg!(test) { 8 << 20 } else { 64 << 20 };

/// How many times smaller the codec must make a page before longer ones are tried: only what
/// repeats a lot repeats far apart, and is compressed fast.
const MIN_REPEATS: usize = 8;

impl<'a> ChunkEncoder<'a> {
    /// The rows that pages begin with, and the end: multiples of the page's rows, or of a half, a
    /// quarter … of them where values are large, or of twice or four times as many, so that the
    /// pages of all columns begin at common rows.
    pub(super) fn cuts(&self, chosen: &ChosenForm<'a>) -> Result<Vec<usize>> {
        if let Some(cuts) =
            self.settings.chunking.and_then(|chunking| self.chunked(chosen, chunking))
        {
            return Ok(cuts);
        }
        let settings = self.settings;
        let levels = self.column.levels.len() * 2;
        let bytes =
            self.encoded_bytes(chosen) + if self.column.levels.max_rep() > 0 { levels } else { 0 };
        let max = self.max_page_bytes(chosen)?;
        let bytes_of = |rows: usize| bytes.saturating_mul(rows) / self.rows.max(1);
        let mut step = settings.page_rows.max(1);
        if !settings.page_rows_are_fixed {
            let stored = |rows: usize| chosen.likely_bytes.saturating_mul(rows) / self.rows.max(1);
            let is_for_points = settings.profile == Profile::Points;
            let min_page = if is_for_points { MIN_PAGE_OF_POINTS } else { MIN_PAGE };
            let may_join = |rows: usize| {
                rows < self.rows && stored(rows) < min_page && bytes_of(rows * 2) <= max
            };
            if may_join(step) {
                let times = match is_for_points {
                    true => MAX_JOINED_OF_POINTS,
                    false if self.is_sorted(chosen)? => MAX_JOINED_SORTED,
                    false => MAX_JOINED,
                };
                let most = step.saturating_mul(times);
                while step < most && may_join(step) {
                    step *= 2;
                }
            }
        }
        while step > 1 && bytes_of(step) > max {
            step = step.div_ceil(2);
        }
        let mut cuts: Vec<usize> = (0..self.rows).step_by(step).collect();
        cuts.push(self.rows);
        Ok(cuts)
    }

    /// The rows that pages begin with where the content says so.
    fn chunked(&self, chosen: &ChosenForm<'_>, chunking: ChunkingOptions) -> Option<Vec<usize>> {
        let levels = &self.column.levels;
        match &chosen.form {
            ChunkForm::Plain { values: ValueSource::Whole(values), .. } => {
                Some(cuts(levels, self.rows, chunking, |i, hash| roll_value(values, i, hash)))
            }
            // With chunking, all values are gathered.
            ChunkForm::Plain { values: ValueSource::Parts(_), .. } => None,
            ChunkForm::Dictionary {
                dictionary: ValueDictionary { entries, codes, .. }, ..
            } => Some(cuts(levels, self.rows, chunking, |i, hash| {
                roll_value(entries, codes[i] as usize, hash)
            })),
        }
    }

    /// Bytes of the values as they are encoded, about.
    fn encoded_bytes(&self, chosen: &ChosenForm<'_>) -> usize {
        match &chosen.form {
            ChunkForm::Plain { values, .. } => values.plain_len(self.leaf),
            ChunkForm::Dictionary {
                dictionary: ValueDictionary { entries, codes, .. },
                layout,
                ..
            } => {
                let max = u32::try_from(entries.len()).unwrap_or(u32::MAX).saturating_sub(1);
                codes.len() * code_width(max, *layout).bits().max(1) as usize / 8
            }
        }
    }

    fn max_page_bytes(&self, chosen: &ChosenForm<'a>) -> Result<usize> {
        let ChosenForm { form, small_pages, .. } = chosen;
        let settings = self.settings;
        match form {
            ChunkForm::Plain { encoding, .. }
                if *encoding == Encoding::Plain
                    && is_words(self.leaf)
                    && *small_pages
                    && self.column.levels.max_rep() == 0 =>
            {
                Ok(settings.page_bytes.min(PLAIN_WORDS_PAGE))
            }
            ChunkForm::Plain { values, encoding, .. }
                if !settings.page_bytes_are_fixed
                    && settings.page_bytes < LONG_PAGE
                    && self.are_long_pages_smaller(chosen, values, *encoding)? =>
            {
                Ok(LONG_PAGE)
            }
            _ => Ok(settings.page_bytes),
        }
    }

    /// Whether the codec leaves less of byte strings in long pages, by the middle of the chunk.
    fn are_long_pages_smaller(
        &self,
        chosen: &ChosenForm<'a>,
        values: &ValueSource<'a>,
        encoding: Encoding,
    ) -> Result<bool> {
        let (leaf, settings) = (self.leaf, self.settings);
        let (n, plain_bytes) = (values.len(), values.plain_len(leaf));
        if leaf.physical != Physical::ByteArray
            || chosen.codec == Compression::Uncompressed
            || plain_bytes < MIN_LONG_PAGES
        {
            return Ok(false);
        }
        // Pages have between a half of what they may have, and all of it.
        let (long_page, short_page) = (LONG_PAGE / 4 * 3, settings.page_bytes.div_ceil(4) * 3);
        let len = n.saturating_mul(long_page) / plain_bytes.max(1);
        let start = (n - len.min(n)) / 2;
        let page = start..start + len.min(n);
        let sample = values.sample(std::slice::from_ref(&page), leaf)?.thinned(2 * LONG_PAGE)?;
        let (free_lists, all) = (&self.context.free_lists, 0..sample.len());
        let mut bytes = free_lists.take(max_len(&sample, all.clone(), encoding))?;
        let blocks = DeltaBlocks::Short;
        encode(&sample, all, leaf.physical, encoding, blocks, free_lists, &mut bytes)?;
        let (version, checksums) = (settings.page_version, settings.checksums);
        let mut sealer = self.context.sealer(chosen.codec, version, checksums)?;
        let mut pages = bytes.chunks(short_page);
        let first = pages.next().unwrap_or_default();
        let mut short = sealer.compressed_len(first)?;
        let mut is_smaller = short.saturating_mul(MIN_REPEATS) < first.len();
        if is_smaller {
            for page in pages {
                short += sealer.compressed_len(page)?;
            }
            let long = sealer.compressed_len(&bytes)?;
            is_smaller = (long as f64) * LONG_PAGE_COST < short as f64;
        }
        self.context.return_sealer(sealer);
        free_lists.put_back(bytes);
        Ok(is_smaller)
    }

    /// Whether the values rise or fall from one stretch of a sample to the next.
    fn is_sorted(&self, chosen: &ChosenForm<'a>) -> Result<bool> {
        match &chosen.form {
            ChunkForm::Dictionary { dictionary: ValueDictionary { codes, .. }, .. } => {
                // Entries are in the order of their first occurrence.
                let bounds = sample_ranges(codes.len(), SORT_SAMPLE_VALUES)
                    .into_iter()
                    .filter_map(|range| {
                        let codes = codes.get(range)?;
                        Some((*codes.iter().min()?, *codes.iter().max()?))
                    })
                    .collect::<Vec<_>>();
                Ok(are_apart(&bounds, |a, b| a <= b))
            }
            ChunkForm::Plain { values, .. } => {
                let total = self.settings.total_order;
                let order = ValueOrder::for_leaf(self.leaf, total);
                if order == ValueOrder::Undefined {
                    return Ok(false);
                }
                let ranges = sample_ranges(values.len(), SORT_SAMPLE_VALUES);
                let sample = values.sample(&ranges, self.leaf)?;
                let (n, physical) = (ranges.len(), self.leaf.physical);
                let mut bounds = Vec::new();
                for i in 0..n {
                    let range = sample.len() * i / n..sample.len() * (i + 1) / n;
                    bounds.extend(extremes_of(&sample, range, order, total)?.bounds);
                }
                Ok(are_apart(&bounds, |a, b| {
                    order.compare(physical, a, b).is_some_and(std::cmp::Ordering::is_le)
                }))
            }
        }
    }
}

fn is_words(leaf: &Leaf) -> bool {
    let physical = leaf.physical;
    matches!(physical, Physical::Int32 | Physical::Float | Physical::Int64 | Physical::Double)
}

/// Whether bounds rise, or fall, from one pair to the next, and are not all the same.
fn are_apart<T>(bounds: &[(T, T)], is_le: impl Fn(&T, &T) -> bool) -> bool {
    let (Some(first), Some(last)) = (bounds.first(), bounds.last()) else { return false };
    let mut pairs = bounds.windows(2);
    let rise = |pair: &[(T, T)]| matches!(pair, [a, b] if is_le(&a.1, &b.0));
    let fall = |pair: &[(T, T)]| matches!(pair, [a, b] if is_le(&b.1, &a.0));
    let are_equal = is_le(&first.0, &last.1)
        && is_le(&last.1, &first.0)
        && is_le(&first.1, &last.0)
        && is_le(&last.0, &first.1);
    bounds.len() > 1 && !are_equal && (pairs.clone().all(rise) || pairs.all(fall))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
    use bytes::Bytes;

    use super::*;
    use crate::io::WriteSink;
    use crate::write::WriteOptions;
    use crate::{Reader, Writer};

    /// Bytes of the chunk, and how many pages it has.
    fn written(array: ArrayRef, options: WriteOptions) -> (usize, usize) {
        let batch = RecordBatch::try_from_iter([("c", array)]).unwrap();
        let mut writer = Writer::new(WriteSink(Vec::new()), batch.schema(), options).unwrap();
        writer.write(&batch).unwrap();
        let (report, file) = writer.into_inner().unwrap();
        let reader = Reader::new(Bytes::from(file)).unwrap();
        let pages = reader.page_index(0, 0).unwrap().offset_index.unwrap().page_locations;
        (report.row_group(0).unwrap().bytes as usize, pages.len())
    }

    fn texts_written(texts: &[String], options: WriteOptions) -> (usize, usize) {
        let array: StringArray = texts.iter().map(Some).collect();
        written(Arc::new(array), options.with_dictionary(false))
    }

    #[test]
    fn pages_are_longer_where_byte_strings_come_again_far_apart() {
        let seed = 33;
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut text = |_| format!("{:012x}", rng.u64(..)).repeat(100);
        // Again after 1.2 MB.
        let some: Vec<String> = (0..1_000).map(&mut text).collect();
        let far: Vec<String> =
            (0..MIN_LONG_PAGES / 1_000).map(|i| some[i % 1_000].clone()).collect();
        let fixed = WriteOptions::new().with_page_bytes(1 << 20);
        let (long, few) = texts_written(&far, WriteOptions::new());
        let (short, many) = texts_written(&far, fixed);
        assert!(few * 2 <= many, "{few} and {many} pages");
        assert!(long * 3 < short * 2, "{long} and {short} bytes");
    }

    #[test]
    fn pages_are_not_longer_where_that_saves_nothing() {
        let seed = 34;
        let mut rng = fastrand::Rng::with_seed(seed);
        let once: Vec<String> = (0..MIN_LONG_PAGES / 1_000)
            .map(|_| format!("{:012x}", rng.u64(..)).repeat(100))
            .collect();
        let fixed = WriteOptions::new().with_page_bytes(1 << 20);
        assert_eq!(texts_written(&once, WriteOptions::new()), texts_written(&once, fixed));
    }

    #[test]
    fn pages_of_almost_nothing_are_joined_and_fewer_of_them_where_values_rise() {
        let pages = |value: fn(i64) -> i64| {
            let array: ArrayRef = Arc::new(Int64Array::from_iter_values((0..1 << 20).map(value)));
            let options = WriteOptions::new()
                .with_column("c", |column| column.with_encoding(Encoding::RleDictionary));
            written(array, options).1
        };
        let rising = pages(|i| i >> 18);
        assert_eq!(pages(|i| i % 4), rising / 2);
        assert_eq!(pages(|i| 4 - (i >> 18)), rising);
        assert_eq!(pages(|_| 7), rising / 2);
    }

    #[test]
    fn bounds_that_rise_or_fall_are_sorted_and_equal_ones_are_not() {
        for (bounds, expected) in [
            (&[(1, 2), (2, 3), (5, 5)][..], true),
            (&[(5, 6), (2, 4), (2, 2)], true),
            (&[(1, 2), (2, 3), (2, 5)], false),
            (&[(1, 5), (1, 5)], false),
            (&[(3, 3), (3, 3), (3, 3)], false),
            (&[(1, 2)], false),
            (&[], false),
        ] {
            assert_eq!(are_apart(bounds, |a, b| a <= b), expected, "{bounds:?}");
        }
    }
}
