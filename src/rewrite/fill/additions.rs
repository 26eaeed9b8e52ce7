//! [`ChunkAdditions`]: what is filled in for a column chunk.

use super::gaps::{ChunkGaps, LeafTarget};
use super::parts::{FillPart, PartTally};
use crate::check::{ChunkSurvey, signed};
use crate::error::Result;
use crate::format::{
    ColumnIndex, ColumnMetaData, Encoding, GeospatialStatistics, OffsetIndex, PageEncodingStats,
    PageLocation, PageType, SizeStatistics, Statistics,
};
use crate::limits::Reservation;
use crate::stats::bloom::Bloom;
use crate::stats::bounds::BoundCut;
use crate::stats::order::ValueOrder;
use crate::stats::page_index::{self, ColumnIndexBuilder, PageStatistics, stated_bounds};
use crate::thrift::Write;

/// The parts that are filled in for a chunk. Offsets are those of the old file.
#[derive(Default)]
pub(super) struct ChunkAdditions {
    pub(super) encoding_stats: Option<Vec<PageEncodingStats>>,
    pub(super) statistics: Option<Statistics>,
    pub(super) geospatial: Option<GeospatialStatistics>,
    pub(super) sizes: Option<SizeStatistics>,
    pub(super) offset_index: Option<OffsetIndex>,
    pub(super) column_index: Option<ColumnIndex>,
    /// Whether the old column index goes, because its order is not known.
    pub(super) drops_column_index: bool,
    pub(super) bloom: Option<Vec<u8>>,
    /// Whether pages get checksums.
    pub(super) checksums: bool,
    pub(super) memory: Vec<Reservation>,
}

/// The indexes that a chunk has.
#[derive(Default)]
pub(super) struct StoredIndexes {
    pub(super) offset: Option<OffsetIndex>,
    pub(super) column: Option<ColumnIndex>,
}

impl ChunkAdditions {
    /// Adds what the values of a chunk tell.
    ///
    /// # Errors
    /// `Usage` if a bloom filter is too large.
    pub(super) fn add_survey(
        &mut self,
        survey: &ChunkSurvey,
        (meta, old): (&ColumnMetaData, StoredIndexes),
        target: &LeafTarget,
        (gaps, max_bytes): (&ChunkGaps, usize),
        tally: &mut PartTally,
    ) -> Result<()> {
        if gaps.encoding_stats {
            self.set_encoding_stats(survey.kinds.counts(), tally)?;
        }
        let replaces = gaps.replaces_bounds;
        if gaps.statistics || replaces {
            let stated = meta.statistics.clone().unwrap_or_default();
            let before = encoded_len(&stated)?;
            let stated = statistics(stated, survey, target, replaces, max_bytes);
            let added = encoded_len(&stated)?.saturating_sub(before);
            if meta.statistics.as_ref() != Some(&stated) {
                tally.add(FillPart::Statistics, 1, added);
                self.statistics = Some(stated);
            }
        }
        if let Some(found) = survey.geospatial.clone().filter(|_| gaps.geospatial) {
            tally.add(FillPart::Statistics, 1, encoded_len(&found)?);
            self.geospatial = Some(found);
        }
        if gaps.sizes {
            let stated = meta.size_statistics.clone().unwrap_or_default();
            let before = encoded_len(&stated)?;
            let stated = sizes(stated, survey, target);
            tally.add(FillPart::SizeStatistics, 1, encoded_len(&stated)?.saturating_sub(before));
            self.sizes = Some(stated);
        }
        self.add_indexes(survey, old, target, (gaps, max_bytes), tally)?;
        if let (Some(options), Some(hashes)) = (&gaps.bloom, &survey.hashes) {
            let mut bloom = Bloom::new(hashes.len(), options.fpp)?;
            hashes.iter().for_each(|hash| bloom.insert_hash(hash));
            let mut out = Vec::new();
            bloom.folded(hashes.len(), options.fpp).write(&mut out)?;
            tally.add(FillPart::BloomFilters, 1, out.len() as u64);
            self.bloom = Some(out);
        }
        Ok(())
    }

    /// Adds how many pages have which encoding.
    pub(super) fn set_encoding_stats(
        &mut self,
        found: &[(PageType, Encoding, u64)],
        tally: &mut PartTally,
    ) -> Result<()> {
        let stats = |(page_type, encoding, count): &(PageType, Encoding, u64)| {
            let count = i32::try_from(*count).ok()?;
            Some(PageEncodingStats { page_type: *page_type, encoding: *encoding, count })
        };
        let Some(stats) = found.iter().map(stats).collect::<Option<Vec<_>>>() else {
            return Ok(());
        };
        if !stats.is_empty() {
            let len = stats.iter().map(encoded_len).sum::<Result<u64>>()? + LIST_HEAD;
            tally.add(FillPart::EncodingStats, 1, len);
            self.encoding_stats = Some(stats);
        }
        Ok(())
    }

    /// Sets the offset index.
    pub(super) fn set_offset_index(
        &mut self,
        index: OffsetIndex,
        tally: &mut PartTally,
    ) -> Result<()> {
        tally.add(FillPart::OffsetIndex, 1, encoded_len(&index)?);
        self.offset_index = Some(index);
        Ok(())
    }

    fn add_indexes(
        &mut self,
        survey: &ChunkSurvey,
        old: StoredIndexes,
        target: &LeafTarget,
        (gaps, max_bytes): (&ChunkGaps, usize),
        tally: &mut PartTally,
    ) -> Result<()> {
        let with_sizes = gaps.sizes;
        if gaps.offset_index
            && let Some(index) = offset_index(survey, target)
        {
            self.set_offset_index(index, tally)?;
        }
        let has_offsets = self.offset_index.is_some() || old.offset.is_some();
        let pages = survey.pages.iter().map(|page| &page.statistics);
        let new = column_index(pages, target, max_bytes).filter(|_| has_offsets);
        if gaps.column_index {
            self.drops_column_index = gaps.replaces_bounds;
            if let Some(new) = new {
                tally.add(FillPart::ColumnIndex, 1, encoded_len(&new)?);
                self.column_index = Some(new);
            }
            return Ok(());
        }
        self.drops_column_index = gaps.replaces_bounds && old.column.is_some();
        if !with_sizes {
            return Ok(());
        }
        if let Some(mut index) = old.offset.filter(|_| target.is_byte_array())
            && index.unencoded_byte_array_data_bytes.is_none()
        {
            let before = encoded_len(&index)?;
            index.unencoded_byte_array_data_bytes = Some(page_bytes(survey));
            tally.add(FillPart::SizeStatistics, 1, encoded_len(&index)?.saturating_sub(before));
            self.offset_index = Some(index);
        }
        if let (Some(mut index), Some(new)) = (old.column, new) {
            let before = encoded_len(&index)?;
            for (stated, found) in [
                (&mut index.null_counts, new.null_counts),
                (&mut index.nan_counts, new.nan_counts),
                (&mut index.definition_level_histograms, new.definition_level_histograms),
                (&mut index.repetition_level_histograms, new.repetition_level_histograms),
            ] {
                if stated.as_ref().is_none_or(Vec::is_empty) {
                    *stated = found;
                }
            }
            let added = encoded_len(&index)?.saturating_sub(before);
            if added > 0 {
                tally.add(FillPart::SizeStatistics, 1, added);
                self.column_index = Some(index);
            }
        }
        Ok(())
    }
}

/// Bytes of the head of a field and of a list.
const LIST_HEAD: u64 = 2;

/// Bytes of a struct in the footer, or as an index.
pub(super) fn encoded_len(value: &impl Write) -> Result<u64> {
    let mut out = Vec::new();
    value.write(&mut out)?;
    Ok(out.len() as u64)
}

/// Adds to statistics what they do not say; bounds of an unknown order are replaced.
fn statistics(
    mut stated: Statistics,
    survey: &ChunkSurvey,
    target: &LeafTarget,
    replaces_bounds: bool,
    max_bytes: usize,
) -> Statistics {
    let signed = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
    stated.null_count = stated.null_count.or_else(|| Some(signed(survey.nulls)));
    stated.distinct_count = stated.distinct_count.or_else(|| survey.distinct.map(signed));
    if target.order.has_nan() {
        stated.nan_count = stated.nan_count.or_else(|| Some(signed(survey.nans)));
    }
    if replaces_bounds {
        (stated.min_value, stated.max_value) = (None, None);
        (stated.is_min_value_exact, stated.is_max_value_exact) = (None, None);
    }
    let Some(found) = survey.bounds.as_ref().filter(|_| target.order != ValueOrder::Undefined)
    else {
        return stated;
    };
    let cut = BoundCut::for_leaf(&target.leaf);
    let (min, max) = stated_bounds(target.order, cut, max_bytes, found);
    for (value, flag, new, found) in [
        (&mut stated.min_value, &mut stated.is_min_value_exact, min, &found.0),
        (&mut stated.max_value, &mut stated.is_max_value_exact, max, &found.1),
    ] {
        match value {
            None => (*value, *flag) = (Some(new.bytes), Some(new.exact)),
            // What was found is exact, unless it is a zero.
            Some(value) if flag.is_none() => {
                let whole = stated_bounds(
                    target.order,
                    BoundCut::Never,
                    max_bytes,
                    &(found.clone(), found.clone()),
                );
                *flag = Some(value == found && whole.0.exact);
            }
            Some(_) => {}
        }
    }
    stated
}

fn sizes(mut stated: SizeStatistics, survey: &ChunkSurvey, target: &LeafTarget) -> SizeStatistics {
    let is_missing = |list: &Option<Vec<i64>>| list.as_ref().is_none_or(Vec::is_empty);
    if target.is_byte_array() {
        let found = i64::try_from(survey.bytes).unwrap_or(i64::MAX);
        stated.unencoded_byte_array_data_bytes.get_or_insert(found);
    }
    if target.leaf.max_def > 0 && is_missing(&stated.definition_level_histogram) {
        stated.definition_level_histogram = Some(signed(&survey.definitions));
    }
    if target.leaf.max_rep > 0 && is_missing(&stated.repetition_level_histogram) {
        stated.repetition_level_histogram = Some(signed(&survey.repetitions));
    }
    stated
}

fn page_bytes(survey: &ChunkSurvey) -> Vec<i64> {
    survey.pages.iter().map(|page| i64::try_from(page.bytes).unwrap_or(i64::MAX)).collect()
}

/// An offset index, if each page begins with a row.
fn offset_index(survey: &ChunkSurvey, target: &LeafTarget) -> Option<OffsetIndex> {
    if !survey.pages.iter().all(|page| page.starts_row) {
        return None;
    }
    let rows = survey.repetitions.first().copied()?;
    let pages = survey.pages.iter().map(|page| (page.offset, page.byte_len, page.first_row));
    let mut index = located(pages, rows)?;
    if target.is_byte_array() {
        index.unencoded_byte_array_data_bytes = Some(page_bytes(survey));
    }
    Some(index)
}

/// The offset index of pages, given by offset, length and first row.
pub(super) fn located(
    pages: impl Iterator<Item = (u64, u64, u64)>,
    rows: u64,
) -> Option<OffsetIndex> {
    let location = |(offset, len, row): (u64, u64, u64)| {
        Some(PageLocation {
            offset: i64::try_from(offset).ok()?,
            compressed_page_size: i32::try_from(len).ok()?,
            first_row_index: i64::try_from(row).ok()?,
        })
    };
    let page_locations: Vec<PageLocation> = pages.map(location).collect::<Option<_>>()?;
    let index = OffsetIndex { page_locations, ..OffsetIndex::default() };
    (!index.page_locations.is_empty() && page_index::check(&index, None, rows).is_ok())
        .then_some(index)
}

/// The column index of pages with these statistics.
fn column_index<'a>(
    pages: impl Iterator<Item = &'a PageStatistics>,
    target: &LeafTarget,
    max_bytes: usize,
) -> Option<ColumnIndex> {
    let cut = BoundCut::for_leaf(&target.leaf);
    let physical = target.leaf.physical;
    let mut builder = ColumnIndexBuilder::new(target.order, physical, cut, max_bytes);
    pages.for_each(|page| builder.push(page));
    builder.finish()
}

/// The column index of pages whose headers have statistics, which do not count NaNs.
pub(super) fn column_index_of_headers(
    pages: &[PageStatistics],
    target: &LeafTarget,
    max_bytes: usize,
) -> Option<ColumnIndex> {
    let index = column_index(pages.iter(), target, max_bytes)?;
    Some(ColumnIndex { nan_counts: None, ..index })
}
