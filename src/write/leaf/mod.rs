//! A leaf of a row group, from its arrays to the bytes of its column chunk. The inverse of `read::leaf`.
//!
//! The whole row group is there when a leaf is written, so that the encoding is chosen from all of the data, is the same for all pages, and a
//! dictionary that does not pay leaves nothing behind.

mod cdc;
mod encode;
mod intern;
mod pages;
mod source;
mod statistics;
mod texts;
mod values;

use std::ops::Range;

use self::cdc::InOrder;
use self::encode::{encode, encode_codes};
use self::intern::{DictionaryLimits, Interned, intern, intern_parts};
use self::pages::Plan;
pub(crate) use self::pages::{Alone, Share};
use self::source::Source;
use self::statistics::{Blooming, Sorting, Statistician};
use self::values::{Gathered, Values, are_texts, gather, is_keyed};
use super::options::{LeafSettings, StatisticsLevel};
use super::report::ColumnReport;
use super::shred::LeafColumn;
use super::tools::Tools;
use crate::compress::Compression;
use crate::encoding::choose::{Estimate, PLAIN_WORDS_PAGE, candidates, choose};
use crate::error::{Error, Result};
use crate::format::{
    ColumnIndex, ColumnMetaData, Encoding, OffsetIndex, PageEncodingStats, PageLocation, PageType,
    SizeStatistics,
};
use crate::page::{PageVersion, Sealed, Sealer};
use crate::schema::{Leaf, Physical};
use crate::spare::Spare;

/// A column chunk that is ready to be written. All offsets count from its first byte.
pub(crate) struct EncodedChunk {
    /// The pages, in pieces.
    pub(crate) bytes: Vec<Vec<u8>>,
    /// What the footer will say.
    pub(crate) meta_data: ColumnMetaData,
    /// Where the pages are.
    pub(crate) offset_index: OffsetIndex,
    /// What bounds they have.
    pub(crate) column_index: Option<ColumnIndex>,
    /// The bloom filter, with its header.
    pub(crate) bloom: Option<Vec<u8>>,
    /// Whether the values of the leaf rise or fall from row to row, where there are no nulls or lists.
    pub(crate) sorted: Option<Sorted>,
    /// What the writer's report will say.
    pub(crate) report: ColumnReport,
}

/// The order that the rows have by one column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sorted {
    pub(crate) descending: bool,
}

/// Writes the chunk of a leaf.
///
/// # Errors
/// `Usage` if a value does not fit the leaf, or a setting does not fit its values.
pub(crate) fn encode_leaf(
    column: &LeafColumn,
    leaf: &Leaf,
    settings: &LeafSettings,
    rows: usize,
    tools: &Tools,
    share: &dyn Share,
) -> Result<EncodedChunk> {
    let encoded = Encoder { column, leaf, settings, rows, tools, share }.run();
    encoded.map_err(|e| e.at_column(column.path.as_str()))
}

struct Encoder<'a> {
    column: &'a LeafColumn,
    leaf: &'a Leaf,
    settings: &'a LeafSettings,
    rows: usize,
    tools: &'a Tools,
    share: &'a dyn Share,
}

/// The values of the chunk in the form in which they are written.
enum Form<'a> {
    /// As they are, in one encoding.
    Plain { values: Source<'a>, encoding: Encoding },
    /// As indices into a dictionary.
    Dictionary {
        dictionary: Interned<'a>,
        /// The values one by one, where they were handed in so.
        values: Option<Values<'a>>,
    },
}

impl Form<'_> {
    /// Gives the memory back.
    fn give(self, spare: &Spare) {
        match self {
            Self::Plain { values, .. } => values.give(spare),
            Self::Dictionary { dictionary, values } => {
                spare.give(dictionary.codes);
                values.into_iter().for_each(|values| values.give(spare));
            }
        }
    }
}

/// How the chunk will be written.
struct Choice<'a> {
    form: Form<'a>,
    /// Whether the codec makes it smaller.
    helps: bool,
    /// What it is likely to take.
    bytes: usize,
}

/// Whether nothing was gathered: the values are those of a dictionary.
fn is_empty(values: &Source<'_>) -> bool {
    matches!(values, Source::Whole(values) if values.len() == 0)
}

fn is_words(leaf: &Leaf) -> bool {
    let physical = leaf.physical;
    matches!(physical, Physical::Int32 | Physical::Float | Physical::Int64 | Physical::Double)
}

impl<'a> Encoder<'a> {
    fn run(self) -> Result<EncodedChunk> {
        let settings = self.settings;
        let (version, checksums) = (settings.page_version, settings.checksums);
        let mut sealer = self.tools.sealer(settings.compression, version, checksums)?;
        let Choice { form, helps, bytes } = self.choose(&mut sealer)?;
        self.tools.give_sealer(sealer);
        let gate = settings.page_version == PageVersion::V1 && !settings.codec_is_fixed;
        let codec = if gate && !helps { Compression::Uncompressed } else { settings.compression };
        // Where the codec does not help, small pages do not help it either.
        let small = helps && codec != Compression::Uncompressed;
        let encoded = self.write(&form, codec, small, bytes)?;
        form.give(&self.tools.spare);
        Ok(encoded)
    }

    /// Picks the form with the fewest bytes, by a sample.
    fn choose(&self, sealer: &mut Sealer) -> Result<Choice<'a>> {
        let (settings, spare) = (self.settings, &self.tools.spare);
        let forced = settings.encoding.filter(|encoding| *encoding != Encoding::RleDictionary);
        let forced_dictionary = settings.encoding == Some(Encoding::RleDictionary);
        let limits = match forced_dictionary {
            true => DictionaryLimits::NONE,
            false => DictionaryLimits { bytes: settings.dictionary_bytes, must_pay: true },
        };
        let wants_dictionary = settings.dictionary && self.leaf.physical != Physical::Boolean;
        let parts = &self.column.parts;
        let wants_dictionary = wants_dictionary && forced.is_none();
        // Page by page, if nobody wants to see them all.
        let by_pages = !is_keyed(parts) && settings.chunking.is_none();
        let as_texts = wants_dictionary
            && self.leaf.physical == Physical::ByteArray
            && are_texts(parts, self.leaf);
        let texts = if as_texts { intern_parts(parts, self.leaf, limits, spare) } else { None };
        let none = || Source::Whole(Values::new(self.leaf.physical));
        let (values, dictionary) = match texts {
            Some(dictionary) => (none(), Some(dictionary)),
            None if by_pages && (as_texts || !wants_dictionary) => (Source::Parts(parts), None),
            None => match gather(parts, self.leaf, spare)? {
                Gathered::Plain(values) => {
                    let interned = wants_dictionary && !as_texts;
                    let dictionary = if interned { intern(&values, limits, spare) } else { None };
                    (Source::Whole(values), dictionary)
                }
                Gathered::Keyed { entries, keys } => {
                    let dictionary =
                        if wants_dictionary { unify(&entries, &keys, spare) } else { None };
                    let values = match &dictionary {
                        Some(_) => none(),
                        None => Source::Whole(entries.take(&keys)),
                    };
                    spare.give(keys);
                    (values, dictionary)
                }
            },
        };
        if let Some(encoding) = forced {
            let bytes = match (encoding, settings.compression) {
                (Encoding::Plain, Compression::Uncompressed) => values.plain_len(self.leaf),
                _ => self.likely_bytes(&values, encoding, sealer)?,
            };
            return Ok(Choice { form: Form::Plain { values, encoding }, helps: true, bytes });
        }
        let n = dictionary.as_ref().map_or_else(|| values.len(), |d| d.codes.len());
        let plain_bytes = match &dictionary {
            Some(Interned { entries, .. }) if is_empty(&values) => {
                entries.plain_len(0..entries.len()).saturating_mul(n) / entries.len().max(1)
            }
            _ => values.plain_len(self.leaf),
        };
        let ranges = sample_ranges(n, self.sample_len(n, plain_bytes));
        let sampled: usize = ranges.iter().map(Range::len).sum();
        let scale = if sampled == 0 { 1.0 } else { n as f64 / sampled as f64 };
        let mut estimates = Vec::new();
        let (mut raw_bytes, mut bytes) = (Vec::new(), Vec::new());
        let measure = |raw: &[u8], sealer: &mut Sealer| -> Result<(f64, f64)> {
            let stored = match settings.compression {
                Compression::Uncompressed => raw.len(),
                _ => sealer.compressed_len(raw)?,
            };
            Ok((raw.len() as f64, stored.min(raw.len().max(1)) as f64))
        };
        let mut ratios = Vec::new();
        if let Some(dictionary) = &dictionary {
            bytes.clear();
            let codes: Vec<u32> = ranges
                .iter()
                .filter_map(|range| dictionary.codes.get(range.clone()))
                .flatten()
                .copied()
                .collect();
            encode_codes(&codes, &mut bytes)?;
            let (raw, stored) = measure(&bytes, sealer)?;
            // Of the entries a sample as well: they stand in the order in which they first occur, which may begin unlike it goes on.
            let all = dictionary.entries.len();
            let dictionary_bytes = dictionary.entries.plain_len(0..all);
            let some = self.sample_len(all, dictionary_bytes);
            let entries = dictionary.entries.sample(&sample_ranges(all, some));
            raw_bytes.clear();
            let plain = Encoding::Plain;
            let some = entries.len();
            encode(&entries, 0..some, self.leaf.physical, plain, spare, &mut raw_bytes)?;
            let (entries_raw, entries_stored) = measure(&raw_bytes, sealer)?;
            let more = if some == 0 { 1.0 } else { all as f64 / some as f64 };
            let total = stored * scale + entries_stored * more;
            let encoding = Encoding::RleDictionary;
            estimates.push(Estimate { encoding, bytes: total, dictionary_bytes });
            ratios.push((Encoding::RleDictionary, total / (raw * scale + entries_raw * more)));
        }
        let sample = match &dictionary {
            // What was keyed has no values of its own.
            Some(dictionary) if is_empty(&values) => {
                let codes = ranges.iter().filter_map(|range| dictionary.codes.get(range.clone()));
                dictionary.entries.take(&codes.flatten().copied().collect::<Vec<_>>())
            }
            _ => values.sample(&ranges, self.leaf)?,
        };
        for &encoding in candidates(settings.profile, self.leaf.physical.format_type()) {
            if forced_dictionary {
                break;
            }
            bytes.clear();
            encode(&sample, 0..sample.len(), self.leaf.physical, encoding, spare, &mut bytes)?;
            let (raw, stored) = measure(&bytes, sealer)?;
            estimates.push(Estimate { encoding, bytes: stored * scale, dictionary_bytes: 0 });
            ratios.push((encoding, stored / raw.max(1.0)));
        }
        let encoding = choose(settings.profile, &estimates);
        let ratio = ratios.iter().find(|(of, _)| *of == encoding).map_or(1.0, |(_, ratio)| *ratio);
        let helps = ratio < HELPS;
        let best = estimates.iter().find(|of| of.encoding == encoding);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "an estimate, never negative"
        )]
        let bytes = best.map_or(0, |best| best.bytes as usize);
        let keyed = is_empty(&values);
        let form = match dictionary {
            Some(dictionary) if encoding == Encoding::RleDictionary => {
                let values = match values {
                    Source::Whole(values) if !keyed => Some(values),
                    _ => None,
                };
                Form::Dictionary { dictionary, values }
            }
            Some(Interned { entries, codes, .. }) => {
                let values = match (keyed, as_texts && by_pages) {
                    (false, _) => values,
                    (true, true) => Source::Parts(parts),
                    (true, false) => Source::Whole(entries.take(&codes)),
                };
                spare.give(codes);
                Form::Plain { values, encoding }
            }
            None => Form::Plain { values, encoding },
        };
        Ok(Choice { form, helps, bytes })
    }

    /// How many of `n` values a sample has, which take so many bytes as PLAIN.
    fn sample_len(&self, n: usize, plain_bytes: usize) -> usize {
        let is_tuned = self.settings.compression != Compression::Uncompressed
            && self.leaf.physical == Physical::ByteArray;
        match is_tuned {
            true => (n.saturating_mul(TUNED) / plain_bytes.max(1)).clamp(SAMPLE, SAMPLE * 3),
            false => SAMPLE,
        }
    }

    /// What values are likely to take, by a sample.
    fn likely_bytes(
        &self,
        values: &Source<'a>,
        encoding: Encoding,
        sealer: &mut Sealer,
    ) -> Result<usize> {
        let ranges = sample_ranges(values.len(), SAMPLE);
        let sample = values.sample(&ranges, self.leaf)?;
        let (mut bytes, all) = (Vec::new(), 0..sample.len());
        let spare = &self.tools.spare;
        encode(&sample, all, self.leaf.physical, encoding, spare, &mut bytes)?;
        let stored = match self.settings.compression {
            Compression::Uncompressed => bytes.len(),
            _ => sealer.compressed_len(&bytes)?,
        };
        Ok(stored.saturating_mul(values.len()) / sample.len().max(1))
    }

    fn write(
        &self,
        form: &Form<'a>,
        codec: Compression,
        small_pages: bool,
        likely_bytes: usize,
    ) -> Result<EncodedChunk> {
        let (leaf, settings, spare) = (self.leaf, self.settings, &self.tools.spare);
        let levels = &self.column.levels;
        let n = match form {
            Form::Plain { values, .. } => values.len(),
            Form::Dictionary { dictionary, .. } => dictionary.codes.len(),
        };
        let cuts = self.cuts(form, small_pages);
        let entries = levels.entries_of_rows(&cuts);
        let mut values = Vec::with_capacity(entries.len());
        values.push(0);
        let mut next = 0;
        for pair in entries.windows(2) {
            if let ([start, end], true) = (pair, leaf_stores_values(leaf)) {
                next += levels.values(*start..*end);
            }
            values.push(next);
        }
        if next != n {
            return Err(Error::usage("levels and values disagree; this is a fault of marquetry"));
        }
        let plan = Plan { rows: cuts, entries, values };
        let of_levels = levels.bytes_held().min(levels.len() / 4);
        let mut first = spare.take(likely_bytes + likely_bytes / 16 + of_levels);
        let mut uncompressed = 0usize;
        let mut bloom = None;
        let dictionary_page = match form {
            Form::Dictionary { dictionary: Interned { entries, .. }, .. } => {
                let all = 0..entries.len();
                let mut plain = spare.take(entries.plain_len(all.clone()));
                encode(entries, all.clone(), leaf.physical, Encoding::Plain, spare, &mut plain)?;
                let (version, checksums) = (settings.page_version, settings.checksums);
                let mut sealer = self.tools.sealer(codec, version, checksums)?;
                let sealed = sealer.dictionary(entries.len(), &plain, false, &mut first)?;
                self.tools.give_sealer(sealer);
                spare.give(plain);
                bloom = Blooming::new(leaf, settings, entries.len());
                bloom.iter_mut().for_each(|bloom| bloom.push(entries, all.clone()));
                uncompressed += sealed.raw;
                Some(sealed)
            }
            Form::Plain { .. } => None,
        };
        let mut statistician = Statistician::new(leaf, settings, form_dictionary(form));
        let encoding = match form {
            Form::Plain { encoding, .. } => *encoding,
            Form::Dictionary { .. } => Encoding::RleDictionary,
        };
        let in_order = levels.max_rep() == 0 && n == levels.len();
        let mut sorting = in_order.then(|| Sorting::new(statistician.order()));
        let mut pages: Vec<(Sealed, usize)> = Vec::with_capacity(plan.rows.len());
        let mut byte_array_bytes = Vec::with_capacity(plan.rows.len());
        let made = self.pages(form, codec, &plan, likely_bytes, first, &statistician)?;
        let mut out = Vec::with_capacity(made.len());
        let mut len = 0;
        for stretch in made {
            for page in stretch.pages {
                let sealed = Sealed { offset: len + page.sealed.offset, ..page.sealed };
                uncompressed += sealed.raw;
                pages.push((sealed, page.row));
                byte_array_bytes.push(page.payload);
                statistician.add(page.statistics);
            }
            if let (Some(sorting), Some(next)) = (&mut sorting, stretch.sorting) {
                sorting.join(next);
            }
            bloom = bloom.or(stretch.bloom);
            len += stretch.bytes.len();
            out.push(stretch.bytes);
        }
        let bloom = bloom.and_then(Blooming::finish);
        let sorted = match form {
            Form::Dictionary { dictionary, values }
                if in_order && (values.is_none() || statistician.by_codes()) =>
            {
                statistician.sorted_codes(&dictionary.codes)
            }
            _ => sorting.and_then(Sorting::finish),
        };
        let summary = statistician.finish(levels);
        let is_bytes = leaf.physical == Physical::ByteArray;
        let unencoded: i64 = byte_array_bytes.iter().sum();
        let data_page_offset = pages.first().map_or(len, |(page, _)| page.offset);
        let page_type = match settings.page_version {
            PageVersion::V1 => PageType::DataPage,
            PageVersion::V2 => PageType::DataPageV2,
        };
        let mut encoding_stats = Vec::new();
        let mut encodings = Vec::new();
        if dictionary_page.is_some() {
            encoding_stats.push(pages_of(PageType::DictionaryPage, Encoding::Plain, 1));
            encodings.push(Encoding::Plain);
        }
        encoding_stats.push(pages_of(page_type, encoding, pages.len()));
        for encoding in [Encoding::Rle, encoding] {
            if !encodings.contains(&encoding) {
                encodings.push(encoding);
            }
        }
        let meta_data = ColumnMetaData {
            r#type: leaf.physical.format_type(),
            encodings: encodings.clone(),
            path_in_schema: leaf.path.names().iter().map(|name| name.to_string()).collect(),
            codec: codec.codec(),
            num_values: wide(levels.len()),
            total_uncompressed_size: wide(uncompressed),
            total_compressed_size: wide(len),
            data_page_offset: wide(data_page_offset),
            dictionary_page_offset: dictionary_page.map(|page| wide(page.offset)),
            statistics: Some(summary.statistics.clone()),
            encoding_stats: Some(encoding_stats),
            size_statistics: Some(SizeStatistics {
                unencoded_byte_array_data_bytes: is_bytes.then_some(unencoded),
                repetition_level_histogram: summary.rep_histogram,
                definition_level_histogram: summary.def_histogram,
                ..SizeStatistics::default()
            }),
            ..ColumnMetaData::default()
        };
        let offset_index = OffsetIndex {
            page_locations: pages
                .iter()
                .map(|(page, row)| {
                    Ok(PageLocation {
                        offset: wide(page.offset),
                        compressed_page_size: i32::try_from(page.stored)
                            .map_err(|_| Error::usage("a page of more than 2 GiB"))?,
                        first_row_index: wide(*row),
                    })
                })
                .collect::<Result<_>>()?,
            unencoded_byte_array_data_bytes: is_bytes.then_some(byte_array_bytes),
            ..OffsetIndex::default()
        };
        let column_index = summary.column_index;
        let report = ColumnReport {
            path: leaf.path.dotted(),
            field_id: leaf.field_id,
            values: levels.len() as u64,
            nulls: summary.nulls,
            nans: summary.nans,
            distinct: summary.distinct,
            min: summary.statistics.min_value.clone(),
            max: summary.statistics.max_value,
            bytes: len as u64,
            uncompressed_bytes: uncompressed as u64,
            offset: 0,
            encodings,
            codec: codec.codec(),
            pages: pages.len(),
        };
        Ok(EncodedChunk {
            bytes: out,
            meta_data,
            offset_index,
            column_index,
            bloom,
            sorted,
            report,
        })
    }

    /// The rows that pages begin with, and the end: multiples of the page's rows, or of a half, a quarter … of them where values are large, so
    /// that the pages of all columns begin at common rows.
    fn cuts(&self, form: &Form<'_>, small_pages: bool) -> Vec<usize> {
        let settings = self.settings;
        if let Some(chunking) = settings.chunking {
            let values = match form {
                Form::Plain { values: Source::Whole(values), .. } => Some(InOrder::Plain(values)),
                // With chunking, all values are gathered.
                Form::Plain { values: Source::Parts(_), .. } => None,
                Form::Dictionary { dictionary: Interned { entries, codes, .. }, .. } => {
                    Some(InOrder::Codes(entries, codes))
                }
            };
            if let Some(values) = values {
                return cdc::cuts(&self.column.levels, &values, self.rows, chunking);
            }
        }
        let bytes = match form {
            Form::Plain { values, .. } => values.plain_len(self.leaf),
            Form::Dictionary { dictionary: Interned { entries, codes, .. }, .. } => {
                codes.len() * (entries.len().max(2).ilog2() as usize + 1) / 8
            }
        };
        let levels = self.column.levels.len() * 2;
        let all = bytes + if self.column.levels.max_rep() > 0 { levels } else { 0 };
        let most = match form {
            Form::Plain { encoding, .. }
                if *encoding == Encoding::Plain
                    && is_words(self.leaf)
                    && small_pages
                    && self.column.levels.max_rep() == 0 =>
            {
                settings.page_bytes.min(PLAIN_WORDS_PAGE)
            }
            _ => settings.page_bytes,
        };
        let mut step = settings.page_rows.max(1);
        while step > 1 && all.saturating_mul(step) / self.rows.max(1) > most {
            step = step.div_ceil(2);
        }
        let mut cuts: Vec<usize> = (0..self.rows).step_by(step).collect();
        cuts.push(self.rows);
        cuts
    }
}

/// Whether the leaf stores values at all: an UNKNOWN one has nothing but nulls.
fn leaf_stores_values(leaf: &Leaf) -> bool {
    !matches!(leaf.logical, Some(crate::format::LogicalType::Unknown))
}

fn form_dictionary<'f, 'a>(form: &'f Form<'a>) -> Option<(&'f Interned<'a>, bool)> {
    match form {
        Form::Dictionary { dictionary, values } => Some((dictionary, values.is_none())),
        Form::Plain { .. } => None,
    }
}

fn pages_of(page_type: PageType, encoding: Encoding, count: usize) -> PageEncodingStats {
    let count = i32::try_from(count).unwrap_or(i32::MAX);
    PageEncodingStats { page_type, encoding, count }
}

/// A size as the format has it.
fn wide(n: usize) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

/// A codec that leaves more than this of a chunk is not worth the reading time.
const HELPS: f64 = 0.97;

/// Values of a sample, and the stretches it is made of: they lie all over the chunk, as its beginning may be unlike the rest.
const SAMPLE: usize = 16 << 10;
const STRETCHES: usize = 8;

/// Bytes of a sample of byte strings that are compressed: ZSTD looks for other matches in less than 256 KiB than in more, as pages have (a
/// dictionary of 7 MB: 8 % smaller by a sample of 240 KiB than it was).
const TUNED: usize = 320 << 10;

fn sample_ranges(n: usize, some: usize) -> Vec<Range<usize>> {
    if n <= some + SAMPLE {
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

impl StatisticsLevel {
    /// Whether bounds are wanted.
    pub(super) fn bounds(self) -> bool {
        self >= Self::Chunk
    }
}
