//! A leaf of a row group, from its arrays to the bytes of its column chunk. The inverse of `read::column`.
//!
//! The whole row group is there when a leaf is written, so that the encoding is chosen from all of the data, is the same for all pages, and a
//! dictionary that does not pay leaves nothing behind.

mod cdc;
mod choose;
mod encode;
mod intern;
mod pages;
mod slots;
mod source;
mod statistics;
mod texts;
mod values;
mod words;

use bytes::Bytes;

use self::cdc::InOrder;
use self::choose::Choice;
use self::encode::encode;
use self::intern::Interned;
use self::pages::Plan;
pub(crate) use self::pages::{Alone, Share};
use self::source::Source;
use self::statistics::{Blooming, Sorting, Statistician};
use self::values::Values;
use super::options::{LeafSettings, StatisticsLevel};
use super::report::ColumnReport;
use super::shred::LeafColumn;
use super::tools::Tools;
use crate::compress::Compression;
use crate::encoding::choose::PLAIN_WORDS_PAGE;
use crate::error::{Error, Result};
use crate::format::{
    ColumnIndex, ColumnMetaData, Encoding, OffsetIndex, PageEncodingStats, PageLocation, PageType,
    SizeStatistics,
};
use crate::page::{PageVersion, Sealed};
use crate::schema::{Leaf, Physical};
use crate::spare::Spare;

/// A column chunk that is ready to be written. All offsets count from its first byte.
pub(crate) struct EncodedChunk {
    /// The pages, in pieces.
    pub(crate) bytes: Vec<Bytes>,
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
        let in_pieces = self.in_pieces(form, codec, cuts.len() - 1, likely_bytes);
        let plan = Plan { rows: cuts, entries, values, in_pieces };
        let of_levels = levels.bytes_held().min(levels.len() / 4);
        let room = if in_pieces { 0 } else { likely_bytes + likely_bytes / 16 + of_levels };
        let mut first = spare.take(room);
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
        let mut out = Vec::new();
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
            len += stretch.bytes.iter().map(Bytes::len).sum::<usize>();
            out.extend(stretch.bytes);
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

impl StatisticsLevel {
    /// Whether bounds are wanted.
    pub(super) fn bounds(self) -> bool {
        self >= Self::Chunk
    }
}
