//! Compares what the footer states of a chunk with what all its pages were.

use std::collections::HashSet;

use super::state::{ColumnCheck, Tally};
use crate::check::boxes::BoxedGeometries;
use crate::check::distinct::DistinctValues;
use crate::check::finding::{CheckLevel, Finding, Findings};
use crate::check::kind::FindingKind as K;
use crate::check::levels::Nulls;
use crate::check::page_index::is_same;
use crate::check::page_kinds::{WrongCount, is_data};
use crate::check::statistics::{self, Scope, Truth};
use crate::check::survey::ChunkSurvey;
use crate::format::{Encoding, GeospatialStatistics, PageType};

impl ColumnCheck<'_> {
    /// Compares what the footer states of the chunk with what its pages were.
    pub(super) fn finish(&mut self, findings: &mut Findings) {
        if self.tally.has_all_pages {
            self.check_counts(findings);
            self.check_offsets(findings);
            self.check_encodings(findings);
            self.check_encoding_stats(findings);
        }
        let is_whole = self.tally.has_all_pages && self.tally.has_all_levels;
        let (order, shape) = (&self.place.order, &self.place.shape);
        if let Some(columns) = &self.columns {
            if self.tally.has_all_pages {
                columns.check_len(self.tally.data_pages, shape, findings);
            }
            columns.check_alone(order, findings);
        }
        if let Some(offsets) = self.offsets.as_ref().filter(|_| self.tally.has_all_pages) {
            offsets.check_len(self.tally.data_pages, self.is_byte_array(), findings);
        }
        if let Some(filter) = self.filter.take() {
            filter.finish(findings);
        }
        if self.file.level < CheckLevel::Truth {
            return;
        }
        let has_all_values = is_whole && self.tally.has_all_values;
        if let Some(stated) = &self.meta.statistics {
            let distinct = self.distinct.as_ref().map(DistinctValues::count);
            if stated.distinct_count.is_some() && distinct.is_none() && has_all_values {
                let text = "distinct_count: there is too little memory for the distinct values";
                findings.push(Finding::new(K::NotChecked, text));
            }
            let (facts, nulls) = (&self.tally.facts, Nulls::new(&self.tally.definitions, shape));
            let truth = Truth { facts, nulls, distinct, is_whole: has_all_values };
            statistics::check_against(stated, order, &truth, Scope::CHUNK, findings);
        }
        if is_whole {
            self.check_histograms(findings);
        }
        if has_all_values {
            self.check_bytes(findings);
            self.check_geometries(findings);
        } else {
            // Rows that could not be decoded cannot be compared.
            self.sorted = None;
        }
    }

    /// The facts of the chunk, if they were asked for.
    pub(super) fn take_survey(&mut self) -> Option<ChunkSurvey> {
        let mut survey = self.survey.take()?;
        let Tally { kinds, definitions, repetitions, facts, .. } = &self.tally;
        survey.kinds.clone_from(kinds);
        survey.definitions.clone_from(definitions);
        survey.repetitions.clone_from(repetitions);
        survey.bounds.clone_from(&facts.bounds);
        (survey.values, survey.nans, survey.bytes) = (facts.values, facts.nans, facts.bytes);
        survey.nulls = self.tally.slots.saturating_sub(facts.values);
        let is_indices = |(r#type, encoding, _): &&(PageType, Encoding, u64)| {
            !is_data(*r#type)
                || matches!(encoding, Encoding::PlainDictionary | Encoding::RleDictionary)
        };
        let dictionary = self.dictionary.as_ref().filter(|dictionary| dictionary.is_distinct);
        survey.distinct = dictionary
            .filter(|_| kinds.counts().iter().all(|of| is_indices(&of)))
            .map(|dictionary| dictionary.last_page.iter().filter(|page| **page > 0).count() as u64);
        survey.geospatial = self.geometries.as_ref().and_then(BoxedGeometries::finish);
        survey.sorted = self.sorted.take();
        Some(survey)
    }

    fn check_counts(&self, findings: &mut Findings) {
        let Tally { slots, rows, uncompressed, has_all_levels, .. } = self.tally;
        let stated = self.meta.num_values;
        if u64::try_from(stated) != Ok(slots) && stated >= 0 {
            findings.push(Finding::lie(K::ChunkValuesWrong, "num_values", stated, slots));
        }
        if has_all_levels && rows != self.place.rows {
            let text = format_args!(
                "the column chunk has {rows} rows, and its row group {}",
                self.place.rows
            );
            let mut finding = Finding::new(K::ChunkRowsWrong, text);
            finding.stated = Some(self.place.rows.to_string());
            finding.found = Some(rows.to_string());
            findings.push(finding);
        }
        let stated = self.meta.total_uncompressed_size;
        let is_encrypted = self.opener.context().decryptor.is_some();
        // Of encrypted pages, the format does not say what counts.
        if !is_encrypted && stated >= 0 && u64::try_from(stated) != Ok(uncompressed) {
            let name = "total_uncompressed_size";
            let kind = K::ChunkUncompressedSizeWrong;
            findings.push(Finding::lie(kind, name, stated, uncompressed));
        }
    }

    fn check_offsets(&self, findings: &mut Findings) {
        let Tally { dictionary_offset, data_offset, .. } = self.tally;
        let stated = self.meta.dictionary_page_offset.filter(|offset| *offset != 0);
        let stated = stated.and_then(|offset| u64::try_from(offset).ok());
        let or_none = |offset: Option<u64>| {
            offset.map_or_else(|| "none".to_owned(), |offset| offset.to_string())
        };
        if stated.is_none() && dictionary_offset.is_some() {
            // Old writers leave it out; readers find the page where the data pages should begin.
            let text = "there is a dictionary page, and dictionary_page_offset is not stated";
            findings.push(Finding::new(K::DictionaryOffsetMissing, text));
        } else if stated != dictionary_offset {
            let (stated, found) = (or_none(stated), or_none(dictionary_offset));
            let name = "dictionary_page_offset";
            findings.push(Finding::lie(K::DictionaryOffsetWrong, name, stated, found));
        }
        let stated_data = u64::try_from(self.meta.data_page_offset).ok();
        if data_offset.is_some() && stated_data != data_offset {
            // The chunk begins there, with a dictionary page that is not stated.
            let is_of_dictionary = stated.is_none() && stated_data == dictionary_offset;
            if !is_of_dictionary {
                let (stated, found) = (or_none(stated_data), or_none(data_offset));
                let name = "data_page_offset";
                findings.push(Finding::lie(K::DataPageOffsetWrong, name, stated, found));
            }
        }
    }

    fn check_encodings(&self, findings: &mut Findings) {
        // Old and new writers name dictionary pages differently.
        let is_plain = |of: Encoding| matches!(of, Encoding::Plain | Encoding::PlainDictionary);
        let found = self.tally.kinds.counts();
        let listed: HashSet<Encoding> = self.meta.encodings.iter().copied().collect();
        let has_plain = listed.iter().any(|of| is_plain(*of));
        // An empty list is as good as none.
        for (r#type, encoding, _) in found.iter().filter(|_| !listed.is_empty()) {
            let is_of_dictionary = *r#type == PageType::DictionaryPage && is_plain(*encoding);
            if !(listed.contains(encoding) || is_of_dictionary && has_plain) {
                let text = format_args!("there are pages in {encoding}, which is not listed");
                findings.push(Finding::new(K::EncodingUnlisted, text));
            }
        }
        let is_of_levels =
            |encoding: &Encoding| matches!(encoding, Encoding::Rle | Encoding::BitPacked);
        let used: HashSet<Encoding> = found.iter().map(|(_, encoding, _)| *encoding).collect();
        let is_used = |encoding: &Encoding| *encoding == Encoding::Plain || used.contains(encoding);
        let listed = self.meta.encodings.iter();
        for encoding in listed.filter(|of| !is_of_levels(of) && !is_used(of)) {
            let text = format_args!("{encoding} is listed, and no page is in it");
            findings.push(Finding::new(K::EncodingUnused, text));
        }
    }

    fn check_encoding_stats(&self, findings: &mut Findings) {
        let Some(stated) = self.meta.encoding_stats.as_ref().filter(|stats| !stats.is_empty())
        else {
            return;
        };
        for wrong in self.tally.kinds.wrong_counts(stated) {
            let WrongCount { kind: (r#type, encoding), stated, found, is_right_in_all } = wrong;
            if !is_right_in_all {
                let name = format!("the count of {type} in {encoding}");
                findings.push(Finding::lie(K::EncodingStatsWrong, &name, stated, found));
            } else if !findings.has(K::EncodingStatsPageType) {
                let text = format_args!("{stated} pages are {type} in {encoding}, not {found}");
                findings.push(Finding::new(K::EncodingStatsPageType, text));
            }
        }
    }

    fn check_histograms(&self, findings: &mut Findings) {
        let Some(sizes) = &self.meta.size_statistics else { return };
        let Tally { definitions, repetitions, .. } = &self.tally;
        for (kind, stated, found) in [
            (K::ChunkDefinitionHistogramWrong, &sizes.definition_level_histogram, definitions),
            (K::ChunkRepetitionHistogramWrong, &sizes.repetition_level_histogram, repetitions),
        ] {
            let stated = stated.as_ref().filter(|stated| stated.len() == found.len());
            let Some(stated) = stated.filter(|stated| !is_same(stated, found)) else { continue };
            let (stated, found) = (format!("{stated:?}"), format!("{found:?}"));
            findings.push(Finding::lie(kind, "a histogram", stated, found));
        }
    }

    fn check_bytes(&self, findings: &mut Findings) {
        let sizes = self.meta.size_statistics.as_ref();
        let stated = sizes.and_then(|sizes| sizes.unencoded_byte_array_data_bytes);
        let found = self.tally.facts.bytes;
        if let Some(stated) = stated.filter(|_| self.is_byte_array())
            && u64::try_from(stated) != Ok(found)
        {
            let name = "unencoded_byte_array_data_bytes";
            findings.push(Finding::lie(K::ChunkBytesWrong, name, stated, found));
        }
    }

    fn check_geometries(&self, findings: &mut Findings) {
        let Some(geometries) = &self.geometries else { return };
        let (stated, found) = (&self.meta.geospatial_statistics, geometries.finish());
        let (Some(stated), Some(found)) = (stated, found) else { return };
        if let (Some(stated), Some(found)) = (&stated.bbox, &found.bbox)
            && let Some((name, stated, found)) = geometries.side_without(stated, found)
        {
            let (stated, found) = (format!("{stated:?}"), format!("{found:?}"));
            findings.push(Finding::lie(K::ChunkBoxTooSmall, name, stated, found));
        }
        let GeospatialStatistics { geospatial_types: Some(types), .. } = stated else { return };
        let missing = found.geospatial_types.iter().flatten().find(|code| !types.contains(code));
        if let Some(code) = missing.filter(|_| !types.is_empty()) {
            let text = format_args!("there are geometries of the type {code}, which is not stated");
            findings.push(Finding::new(K::ChunkGeometryTypeMissing, text));
        }
    }
}
