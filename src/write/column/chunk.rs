//! A column chunk: its form is chosen, its pages are made, and what they came to is noted.

use bytes::Bytes;

use super::bloom::BloomBuilder;
use super::chunking::{cuts, roll_value};
use super::dictionary::ValueDictionary;
use super::encode::{code_width, encode};
use super::encoder::{ChosenForm, ChunkEncoder, ChunkForm};
use super::measure::EncodingChoice;
use super::metadata::{EncodedChunk, WrittenPages};
use super::pages::PagePlan;
use super::sorted::SortDetector;
use super::source::ValueSource;
use super::statistics::StatisticsCollector;
use crate::compress::Compression;
use crate::encoding::choose::PLAIN_WORDS_PAGE;
use crate::error::{Error, Result};
use crate::format::{Encoding, LogicalType};
use crate::page::{PageVersion, Sealed};
use crate::schema::{Leaf, Physical};

fn is_words(leaf: &Leaf) -> bool {
    let physical = leaf.physical;
    matches!(physical, Physical::Int32 | Physical::Float | Physical::Int64 | Physical::Double)
}

impl<'a> ChunkEncoder<'a> {
    /// Encodes the chunk.
    ///
    /// # Errors
    /// `Usage` if a value does not fit the leaf, or a setting does not fit its values.
    pub(in crate::write) fn encode(self) -> Result<EncodedChunk> {
        self.encode_chunk().map_err(|e| e.at_column(self.column.path.as_str()))
    }

    fn encode_chunk(&self) -> Result<EncodedChunk> {
        let settings = self.settings;
        let (version, checksums) = (settings.page_version, settings.checksums);
        let mut sealer = self.context.sealer(settings.compression, version, checksums)?;
        let EncodingChoice { form, helps, bytes } = self.choose(&mut sealer)?;
        self.context.give_sealer(sealer);
        let gate = settings.page_version == PageVersion::V1 && !settings.codec_is_fixed;
        let codec = if gate && !helps { Compression::Uncompressed } else { settings.compression };
        // Where the codec does not help, small pages do not help it either.
        let small_pages = helps && codec != Compression::Uncompressed;
        let chosen = ChosenForm { form, codec, small_pages, likely_bytes: bytes };
        let encoded = self.write(&chosen)?;
        chosen.form.give(&self.context.free_lists);
        Ok(encoded)
    }

    fn write(&self, chosen: &ChosenForm<'a>) -> Result<EncodedChunk> {
        let ChosenForm { form, codec, likely_bytes, .. } = chosen;
        let (leaf, settings, free_lists) = (self.leaf, self.settings, &self.context.free_lists);
        let levels = &self.column.levels;
        let plan = self.plan(chosen)?;
        let of_levels = levels.bytes_held().min(levels.len() / 4);
        let capacity =
            if plan.in_pieces { 0 } else { likely_bytes + likely_bytes / 16 + of_levels };
        let mut first = free_lists.take(capacity);
        let mut written = WrittenPages::new(form.encoding(), *codec, plan.len());
        written.dictionary = self.dictionary_page(chosen, &mut first)?;
        let mut bloom = match form {
            ChunkForm::Plain { .. } => None,
            ChunkForm::Dictionary { dictionary: ValueDictionary { entries, .. }, .. } => {
                let mut bloom = BloomBuilder::new(leaf, settings, entries.len());
                bloom.iter_mut().for_each(|bloom| bloom.push(entries, 0..entries.len()));
                bloom
            }
        };
        let dictionary = match form {
            ChunkForm::Dictionary { dictionary, values, .. } => Some((dictionary, values.is_none())),
            ChunkForm::Plain { .. } => None,
        };
        let mut collector = StatisticsCollector::new(leaf, settings, dictionary);
        let in_order = levels.max_rep() == 0 && form.len() == levels.len();
        let mut sort_detector = in_order.then(|| SortDetector::new(collector.order()));
        for run in self.pages(chosen, &plan, first, &collector)? {
            for page in run.pages {
                let offset = written.len + page.sealed.offset;
                written.push(Sealed { offset, ..page.sealed }, page.row, page.payload);
                collector.add(page.statistics);
            }
            if let (Some(sort_detector), Some(next)) = (&mut sort_detector, run.sort_detector) {
                sort_detector.join(next);
            }
            bloom = bloom.or(run.bloom);
            written.len += run.bytes.iter().map(Bytes::len).sum::<usize>();
            written.bytes.extend(run.bytes);
        }
        let sorted = match form {
            ChunkForm::Dictionary { dictionary, values, .. }
                if in_order && (values.is_none() || collector.by_codes()) =>
            {
                collector.sorted_codes(&dictionary.codes)
            }
            _ => sort_detector.and_then(SortDetector::finish),
        };
        let bloom = bloom.and_then(BloomBuilder::finish);
        written.finish(leaf, settings, levels.len(), collector.finish(levels), bloom, sorted)
    }

    /// Where pages begin.
    fn plan(&self, chosen: &ChosenForm<'a>) -> Result<PagePlan> {
        let levels = &self.column.levels;
        let rows = self.cuts(chosen);
        let entries = levels.entries_of_rows(&rows);
        let mut values = Vec::with_capacity(entries.len());
        values.push(0);
        let mut next = 0;
        for pair in entries.windows(2) {
            if let ([start, end], true) = (pair, leaf_stores_values(self.leaf)) {
                next += levels.values(*start..*end);
            }
            values.push(next);
        }
        if next != chosen.form.len() {
            return Err(Error::usage("levels and values disagree; this is a fault of marquetry"));
        }
        let in_pieces = self.in_pieces(chosen, rows.len() - 1);
        Ok(PagePlan { rows, entries, values, in_pieces })
    }

    /// Appends the dictionary page, if there is a dictionary.
    fn dictionary_page(
        &self,
        chosen: &ChosenForm<'a>,
        out: &mut Vec<u8>,
    ) -> Result<Option<Sealed>> {
        let ChosenForm { form, codec, .. } = chosen;
        let ChunkForm::Dictionary { dictionary: ValueDictionary { entries, .. }, .. } = form else {
            return Ok(None);
        };
        let (settings, free_lists) = (self.settings, &self.context.free_lists);
        let all = 0..entries.len();
        let mut plain = free_lists.take(entries.plain_len(all.clone()));
        encode(entries, all, self.leaf.physical, Encoding::Plain, free_lists, &mut plain)?;
        let mut sealer = self.context.sealer(*codec, settings.page_version, settings.checksums)?;
        let sealed = sealer.dictionary(entries.len(), &plain, false, out)?;
        self.context.give_sealer(sealer);
        free_lists.give(plain);
        Ok(Some(sealed))
    }

    /// The rows that pages begin with, and the end: multiples of the page's rows, or of a half, a
    /// quarter … of them where values are large, so that the pages of all columns begin at common
    /// rows.
    fn cuts(&self, chosen: &ChosenForm<'_>) -> Vec<usize> {
        let ChosenForm { form, small_pages, .. } = chosen;
        let settings = self.settings;
        if let Some(chunking) = settings.chunking {
            let levels = &self.column.levels;
            match form {
                ChunkForm::Plain { values: ValueSource::Whole(values), .. } => {
                    return cuts(levels, self.rows, chunking, |i, hash| {
                        roll_value(values, i, hash)
                    });
                }
                // With chunking, all values are gathered.
                ChunkForm::Plain { values: ValueSource::Parts(_), .. } => {}
                ChunkForm::Dictionary {
                    dictionary: ValueDictionary { entries, codes, .. },
                    ..
                } => {
                    return cuts(levels, self.rows, chunking, |i, hash| {
                        roll_value(entries, codes[i] as usize, hash)
                    });
                }
            }
        }
        let bytes = match form {
            ChunkForm::Plain { values, .. } => values.plain_len(self.leaf),
            ChunkForm::Dictionary {
                dictionary: ValueDictionary { entries, codes, .. },
                layout,
                ..
            } => {
                let max = u32::try_from(entries.len()).unwrap_or(u32::MAX).saturating_sub(1);
                codes.len() * code_width(max, *layout).bits().max(1) as usize / 8
            }
        };
        let levels = self.column.levels.len() * 2;
        let all = bytes + if self.column.levels.max_rep() > 0 { levels } else { 0 };
        let max = match form {
            ChunkForm::Plain { encoding, .. }
                if *encoding == Encoding::Plain
                    && is_words(self.leaf)
                    && *small_pages
                    && self.column.levels.max_rep() == 0 =>
            {
                settings.page_bytes.min(PLAIN_WORDS_PAGE)
            }
            _ => settings.page_bytes,
        };
        let mut step = settings.page_rows.max(1);
        while step > 1 && all.saturating_mul(step) / self.rows.max(1) > max {
            step = step.div_ceil(2);
        }
        let mut cuts: Vec<usize> = (0..self.rows).step_by(step).collect();
        cuts.push(self.rows);
        cuts
    }
}

/// Whether the leaf stores values at all: an UNKNOWN one has nothing but nulls.
fn leaf_stores_values(leaf: &Leaf) -> bool {
    !matches!(leaf.logical, Some(LogicalType::Unknown))
}
