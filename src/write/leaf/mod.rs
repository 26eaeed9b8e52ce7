//! A leaf of a row group, from its arrays to the bytes of its column chunk. The inverse of `read::leaf`.
//!
//! The whole row group is there when a leaf is written, so that the encoding is chosen from all of the data, is the same for all pages, and a
//! dictionary that does not pay leaves nothing behind.

mod cdc;
mod encode;
mod intern;
mod statistics;
mod values;

use std::ops::Range;

use self::cdc::InOrder;
use self::encode::{as_plain, encode, encode_codes};
use self::intern::{DictionaryLimits, Interned, intern, intern_parts};
use self::statistics::{PageValues, Statistician};
use self::values::{Gathered, Values, are_texts, gather};
use super::options::{LeafSettings, StatisticsLevel};
use super::report::ColumnReport;
use super::shred::LeafColumn;
use crate::compress::Compression;
use crate::encoding::choose::{Estimate, PLAIN_WORDS_PAGE, candidates, choose};
use crate::error::{Error, Result};
use crate::format::{
    ColumnIndex, ColumnMetaData, Encoding, OffsetIndex, PageEncodingStats, PageLocation, PageType,
    SizeStatistics,
};
use crate::page::{PageParts, PageVersion, Sealed, Sealer};
use crate::schema::{Leaf, Physical};

/// A column chunk that is ready to be written. All offsets count from its first byte.
pub(crate) struct EncodedChunk {
    /// The pages.
    pub(crate) bytes: Vec<u8>,
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
) -> Result<EncodedChunk> {
    let encoded = Encoder { column, leaf, settings, rows }.run();
    encoded.map_err(|e| e.at_column(column.path.as_str()))
}

struct Encoder<'a> {
    column: &'a LeafColumn,
    leaf: &'a Leaf,
    settings: &'a LeafSettings,
    rows: usize,
}

/// The values of the chunk in the form in which they are written.
enum Form<'a> {
    /// As they are, in one encoding.
    Plain { values: Values<'a>, encoding: Encoding },
    /// As indices into a dictionary.
    Dictionary {
        dictionary: Interned<'a>,
        /// The values one by one, where they were handed in so.
        values: Option<Values<'a>>,
    },
}

impl<'a> Encoder<'a> {
    fn run(self) -> Result<EncodedChunk> {
        let settings = self.settings;
        let mut sealer =
            Sealer::new(settings.compression, settings.page_version, settings.checksums)?;
        let (form, helps) = self.choose(&mut sealer)?;
        let gate = settings.page_version == PageVersion::V1 && !settings.codec_is_fixed;
        let codec = if gate && !helps { Compression::Uncompressed } else { settings.compression };
        if codec != settings.compression {
            sealer = Sealer::new(codec, settings.page_version, settings.checksums)?;
        }
        // Where the codec does not help, small pages do not help it either.
        let small = helps && codec != Compression::Uncompressed;
        self.write(&form, codec, small, &mut sealer)
    }

    /// Picks the form with the fewest bytes, by a sample; says too whether the codec helps.
    fn choose(&self, sealer: &mut Sealer) -> Result<(Form<'a>, bool)> {
        let settings = self.settings;
        let forced = settings.encoding.filter(|encoding| *encoding != Encoding::RleDictionary);
        let forced_dictionary = settings.encoding == Some(Encoding::RleDictionary);
        let limits = match forced_dictionary {
            true => DictionaryLimits::NONE,
            false => DictionaryLimits { bytes: settings.dictionary_bytes, must_pay: true },
        };
        let wants_dictionary = settings.dictionary && self.leaf.physical != Physical::Boolean;
        let parts = &self.column.parts;
        // Byte strings are gathered only if it comes to nothing.
        let lazily = wants_dictionary
            && forced.is_none()
            && self.leaf.physical == Physical::ByteArray
            && are_texts(parts, self.leaf);
        let texts = if lazily { intern_parts(parts, self.leaf, limits) } else { None };
        let (values, dictionary) = match texts {
            Some(dictionary) => (Values::new(self.leaf.physical), Some(dictionary)),
            None => match gather(parts, self.leaf)? {
                Gathered::Plain(values) if lazily => (values, None),
                Gathered::Plain(values) => {
                    let dictionary = if wants_dictionary { intern(&values, limits) } else { None };
                    (values, dictionary)
                }
                Gathered::Keyed { entries, keys } => {
                    if wants_dictionary && let Some(dictionary) = unify(&entries, &keys) {
                        (Values::new(self.leaf.physical), Some(dictionary))
                    } else {
                        (entries.take(&keys), None)
                    }
                }
            },
        };
        if let Some(encoding) = forced {
            let helps = true;
            return Ok((Form::Plain { values, encoding }, helps));
        }
        let n = dictionary.as_ref().map_or(values.len(), |d| d.codes.len());
        let ranges = sample_ranges(n);
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
            // All entries, as many as the sample has, compressed like them.
            let entries = &dictionary.entries;
            let some = entries.len().min(SAMPLE);
            raw_bytes.clear();
            encode(entries, 0..some, self.leaf.physical, Encoding::Plain, &mut raw_bytes)?;
            let (entries_raw, entries_stored) = measure(&raw_bytes, sealer)?;
            let more = if some == 0 { 1.0 } else { entries.len() as f64 / some as f64 };
            let total = stored * scale + entries_stored * more;
            estimates.push(Estimate { encoding: Encoding::RleDictionary, bytes: total });
            ratios.push((Encoding::RleDictionary, total / (raw * scale + entries_raw * more)));
        }
        let sample = match &dictionary {
            // What was keyed has no values of its own.
            Some(dictionary) if values.len() == 0 => {
                let codes = ranges.iter().filter_map(|range| dictionary.codes.get(range.clone()));
                dictionary.entries.take(&codes.flatten().copied().collect::<Vec<_>>())
            }
            _ => values.sample(&ranges),
        };
        for &encoding in candidates(settings.profile, self.leaf.physical.format_type()) {
            if forced_dictionary {
                break;
            }
            bytes.clear();
            encode(&sample, 0..sample.len(), self.leaf.physical, encoding, &mut bytes)?;
            let (raw, stored) = measure(&bytes, sealer)?;
            estimates.push(Estimate { encoding, bytes: stored * scale });
            ratios.push((encoding, stored / raw.max(1.0)));
        }
        let encoding = choose(settings.profile, &estimates);
        let ratio = ratios.iter().find(|(of, _)| *of == encoding).map_or(1.0, |(_, ratio)| *ratio);
        let helps = ratio < HELPS;
        let keyed = values.len() == 0;
        Ok(match dictionary {
            Some(dictionary) if encoding == Encoding::RleDictionary => {
                (Form::Dictionary { dictionary, values: (!keyed).then_some(values) }, helps)
            }
            Some(Interned { entries, codes, .. }) if keyed => {
                let values = match lazily.then(|| gather(parts, self.leaf)) {
                    Some(Ok(Gathered::Plain(values))) => values,
                    _ => entries.take(&codes),
                };
                (Form::Plain { values, encoding }, helps)
            }
            _ => (Form::Plain { values, encoding }, helps),
        })
    }

    fn write(
        &self,
        form: &Form<'_>,
        codec: Compression,
        small_pages: bool,
        sealer: &mut Sealer,
    ) -> Result<EncodedChunk> {
        let (leaf, settings) = (self.leaf, self.settings);
        let levels = &self.column.levels;
        let n = match form {
            Form::Plain { values, .. } => values.len(),
            Form::Dictionary { dictionary, .. } => dictionary.codes.len(),
        };
        let mut out = Vec::new();
        if let (Form::Plain { values, encoding: Encoding::Plain }, Compression::Uncompressed) =
            (form, codec)
        {
            let levels = levels.len() / 4;
            out.reserve(values.plain_len(0..n) + levels);
        }
        let mut uncompressed = 0usize;
        let dictionary_page = match form {
            Form::Dictionary { dictionary: Interned { entries, .. }, .. } => {
                let mut plain = Vec::new();
                encode(entries, 0..entries.len(), leaf.physical, Encoding::Plain, &mut plain)?;
                let sealed = sealer.dictionary(entries.len(), &plain, false, &mut out)?;
                uncompressed += sealed.raw;
                Some(sealed)
            }
            Form::Plain { .. } => None,
        };
        let mut statistician = Statistician::new(leaf, settings, form_dictionary(form));
        let cuts = self.cuts(form, n, small_pages);
        let entries = levels.entries_of_rows(&cuts);
        let encoding = match form {
            Form::Plain { encoding, .. } => *encoding,
            Form::Dictionary { .. } => Encoding::RleDictionary,
        };
        let mut pages: Vec<(Sealed, usize)> = Vec::with_capacity(cuts.len());
        let mut buffer = Vec::new();
        let mut next = 0usize;
        let mut byte_array_bytes = Vec::new();
        for (rows, entries) in cuts.windows(2).zip(entries.windows(2)) {
            let ([row, row_end], [first, end]) = (rows, entries) else {
                continue;
            };
            let entries = *first..*end;
            let count = if leaf_stores_values(leaf) { levels.values(entries.clone()) } else { 0 };
            let values = next..next + count;
            next += count;
            buffer.clear();
            let mut ready = None;
            match form {
                Form::Plain { values: all, encoding } => {
                    if *encoding == Encoding::Plain {
                        ready = as_plain(all, values.clone());
                    }
                    if ready.is_none() {
                        encode(all, values.clone(), leaf.physical, *encoding, &mut buffer)?;
                    }
                    byte_array_bytes.push(payload(all, values.clone()));
                }
                Form::Dictionary { dictionary: Interned { codes, .. }, .. } => {
                    let codes = codes.get(values.clone()).unwrap_or_default();
                    encode_codes(codes, &mut buffer)?;
                    byte_array_bytes.push(statistician.payload_of_codes(codes));
                }
            }
            let parts = PageParts {
                nulls: entries.len() - count,
                rows: row_end - row,
                levels,
                entries: entries.clone(),
                encoding,
                values: ready.unwrap_or(&buffer),
            };
            let sealed = sealer.data(&parts, &mut out)?;
            uncompressed += sealed.raw;
            pages.push((sealed, *row));
            let values = match form {
                Form::Plain { values: all, .. } => PageValues::Plain(all, values),
                // By the ranks of the entries where there are few of them, else by the values themselves.
                Form::Dictionary { values: Some(all), .. } if !statistician.by_codes() => {
                    PageValues::Plain(all, values)
                }
                Form::Dictionary { dictionary, .. } => {
                    PageValues::Codes(dictionary.codes.get(values).unwrap_or_default())
                }
            };
            statistician.page(levels, entries, count, values);
        }
        if next != n {
            return Err(Error::usage("levels and values disagree; this is a fault of marquetry"));
        }
        let bloom = match form {
            _ if settings.bloom.is_none() => None,
            Form::Plain { values, .. } => statistician.bloom(values),
            Form::Dictionary { dictionary, .. } => statistician.bloom(&dictionary.entries),
        };
        let sorted = match form {
            Form::Plain { values, .. } if levels.max_rep() == 0 && n == levels.len() => {
                statistician.sorted(values)
            }
            Form::Dictionary { values: Some(values), .. }
                if levels.max_rep() == 0 && n == levels.len() && !statistician.by_codes() =>
            {
                statistician.sorted(values)
            }
            Form::Dictionary { dictionary, .. } if levels.max_rep() == 0 && n == levels.len() => {
                statistician.sorted_codes(&dictionary.codes)
            }
            _ => None,
        };
        let summary = statistician.finish(levels);
        let is_bytes = leaf.physical == Physical::ByteArray;
        let unencoded: i64 = byte_array_bytes.iter().sum();
        let data_page_offset = pages.first().map_or(out.len(), |(page, _)| page.offset);
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
            total_compressed_size: wide(out.len()),
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
            bytes: out.len() as u64,
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
    fn cuts(&self, form: &Form<'_>, n: usize, small_pages: bool) -> Vec<usize> {
        let settings = self.settings;
        if let Some(chunking) = settings.chunking {
            let values = match form {
                Form::Plain { values, .. } => InOrder::Plain(values),
                Form::Dictionary { dictionary: Interned { entries, codes, .. }, .. } => {
                    InOrder::Codes(entries, codes)
                }
            };
            return cdc::cuts(&self.column.levels, &values, self.rows, chunking);
        }
        let bytes = match form {
            Form::Plain { values, .. } => values.plain_len(0..n),
            Form::Dictionary { dictionary: Interned { entries, codes, .. }, .. } => {
                codes.len() * (entries.len().max(2).ilog2() as usize + 1) / 8
            }
        };
        let levels = self.column.levels.len() * 2;
        let all = bytes + if self.column.levels.max_rep() > 0 { levels } else { 0 };
        let most = match form {
            Form::Plain { values: Values::Words32(_) | Values::Words64(_), encoding }
                if *encoding == Encoding::Plain
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

/// Bytes of byte strings, without lengths.
fn payload(values: &Values<'_>, range: Range<usize>) -> i64 {
    match values {
        Values::Bytes(values) => {
            let values = values.get(range).unwrap_or_default();
            wide(values.iter().map(|value| value.len()).sum())
        }
        _ => 0,
    }
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

fn sample_ranges(n: usize) -> Vec<Range<usize>> {
    if n <= SAMPLE * 2 {
        return vec![Range { start: 0, end: n }];
    }
    let len = SAMPLE / STRETCHES;
    (0..STRETCHES)
        .map(|i| {
            let start = (n - len) * i / (STRETCHES - 1);
            start..start + len
        })
        .collect()
}

/// One entry for each distinct value that is used, and the codes that follow; `None` where nothing repeats.
fn unify<'a>(entries: &Values<'a>, keys: &[u32]) -> Option<Interned<'a>> {
    let limits = DictionaryLimits::NONE;
    // First those that are used, in the order of their first use; then those that are equal become one.
    const UNUSED: u32 = u32::MAX;
    let mut place = vec![UNUSED; entries.len()];
    let mut used = Vec::new();
    let mut codes = Vec::with_capacity(keys.len());
    for &key in keys {
        let slot = place.get_mut(key as usize)?;
        if *slot == UNUSED {
            *slot = u32::try_from(used.len()).ok()?;
            used.push(key);
        }
        codes.push(*slot);
    }
    let entries = entries.take(&used);
    match intern(&entries, limits) {
        Some(unified) if unified.entries.len() < entries.len() => {
            for code in &mut codes {
                *code = unified.codes.get(*code as usize).copied()?;
            }
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
