//! Encodes a column chunk: chooses its form, makes its pages, and records their statistics.

use bytes::Bytes;

use super::bloom::BloomBuilder;
use super::dictionary::ValueDictionary;
use super::encode::{encode, max_len};
use super::encoder::{ChosenForm, ChunkEncoder, ChunkForm};
use super::measure::EncodingChoice;
use super::metadata::{EncodedChunk, WrittenPages};
use super::pages::PagePlan;
use super::sorted::SortDetector;
use super::statistics::StatisticsCollector;
use crate::compress::Compression;
use crate::encoding::delta_binary::DeltaBlocks;
use crate::error::{Error, Result};
use crate::format::{Encoding, LogicalType};
use crate::memory;
use crate::page::{PageVersion, SealedPage};
use crate::schema::{Leaf, Physical};

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
        self.context.return_sealer(sealer);
        let gate = settings.page_version == PageVersion::V1 && !settings.codec_is_fixed;
        let codec = if gate && !helps { Compression::Uncompressed } else { settings.compression };
        // Where the codec does not help, small pages do not help it either.
        let small_pages = helps && codec != Compression::Uncompressed;
        let chosen = ChosenForm { form, codec, small_pages, likely_bytes: bytes };
        let encoded = self.write(&chosen)?;
        chosen.form.put_back(&self.context.free_lists);
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
        let mut first = free_lists.take(capacity)?;
        let mut written = WrittenPages::new(form.encoding(), *codec, plan.len());
        written.dictionary = self.dictionary_page(chosen, &mut first)?;
        let mut bloom = match form {
            ChunkForm::Plain { .. } => None,
            ChunkForm::Dictionary { dictionary: ValueDictionary { entries, .. }, .. } => {
                let mut bloom = BloomBuilder::new(leaf, settings, entries.len())?;
                bloom.iter_mut().try_for_each(|bloom| bloom.push(entries, 0..entries.len()))?;
                bloom
            }
        };
        let dictionary = match form {
            ChunkForm::Dictionary { dictionary, values, .. } => {
                Some((dictionary, values.is_none()))
            }
            ChunkForm::Plain { .. } => None,
        };
        let mut collector = StatisticsCollector::new(leaf, settings, dictionary)?;
        let in_order = levels.max_rep() == 0 && form.len() == levels.len();
        let mut sort_detector = in_order.then(|| SortDetector::new(collector.order()));
        for run in self.pages(chosen, &plan, first, &collector)? {
            for page in run.pages {
                let offset = written.len + page.sealed.offset;
                written.push(SealedPage { offset, ..page.sealed }, page.row, page.payload);
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
        let rows = self.cuts(chosen)?;
        let entries = levels.entries_of_rows(&rows)?;
        let mut values = memory::vec_for(entries.len())?;
        values.push(0);
        let mut next = 0;
        for pair in entries.windows(2) {
            if let ([start, end], true) = (pair, leaf_stores_values(self.leaf)) {
                next += levels.values(*start..*end);
            }
            values.push(next);
        }
        if next != chosen.form.len() {
            return Err(Error::internal("levels and values disagree"));
        }
        let in_pieces = self.in_pieces(chosen, rows.len() - 1);
        Ok(PagePlan { rows, entries, values, in_pieces })
    }

    /// Appends the dictionary page, if there is a dictionary.
    fn dictionary_page(
        &self,
        chosen: &ChosenForm<'a>,
        out: &mut Vec<u8>,
    ) -> Result<Option<SealedPage>> {
        let ChosenForm { form, codec, .. } = chosen;
        let ChunkForm::Dictionary { dictionary: ValueDictionary { entries, .. }, .. } = form else {
            return Ok(None);
        };
        let (settings, free_lists) = (self.settings, &self.context.free_lists);
        let all = 0..entries.len();
        let mut plain = free_lists.take(max_len(entries, all.clone(), Encoding::Plain))?;
        let (physical, blocks) = (self.leaf.physical, DeltaBlocks::Short);
        encode(entries, all, physical, Encoding::Plain, blocks, free_lists, &mut plain)?;
        let codec = self.dictionary_codec(*codec, &plain)?;
        let mut sealer = self.context.sealer(codec, settings.page_version, settings.checksums)?;
        let sealed = sealer.dictionary(entries.len(), &plain, false, out)?;
        self.context.return_sealer(sealer);
        free_lists.put_back(plain);
        Ok(Some(sealed))
    }

    /// The codec of a dictionary page of byte strings: ZSTD of level 1 where that leaves less. Of
    /// hashes in hexadecimal and the like the higher levels find short matches, which take more
    /// than the literals they replace (1515 hashes of 128 digits: 113 KB by level 3, 102 KB).
    fn dictionary_codec(&self, codec: Compression, plain: &[u8]) -> Result<Compression> {
        let are_byte_arrays =
            matches!(self.leaf.physical, Physical::ByteArray | Physical::FixedLenByteArray(_));
        let is_higher = matches!(codec, Compression::Zstd(level) if level > 1);
        if !are_byte_arrays || !is_higher || plain.len() < MIN_LEVEL_SAMPLE_BYTES {
            return Ok(codec);
        }
        let sample = plain.get(..LEVEL_SAMPLE_BYTES).unwrap_or(plain);
        let compressed_len = |codec| {
            let (version, checksums) = (self.settings.page_version, self.settings.checksums);
            let mut sealer = self.context.sealer(codec, version, checksums)?;
            let len = sealer.compressed_len(sample);
            self.context.return_sealer(sealer);
            len
        };
        let fast = Compression::Zstd(1);
        Ok(if compressed_len(fast)? < compressed_len(codec)? { fast } else { codec })
    }
}

/// Bytes of a dictionary by which the level of its codec is chosen.
const LEVEL_SAMPLE_BYTES: usize = 256 << 10;

/// Minimum bytes of a dictionary for which the level of its codec is chosen.
const MIN_LEVEL_SAMPLE_BYTES: usize = 4 << 10;

/// Whether the leaf stores values at all: an UNKNOWN one has nothing but nulls.
fn leaf_stores_values(leaf: &Leaf) -> bool {
    !matches!(leaf.logical, Some(LogicalType::Unknown))
}
