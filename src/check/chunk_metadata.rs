//! Checks the metadata of a column chunk by themselves: nothing but the footer is read.
//!
//! Spec: `parquet.thrift`, ColumnChunk and ColumnMetaData. Used by `column`.

use std::ops::Range;
use std::sync::atomic::Ordering;

use super::context::FileContext;
use super::finding::{Finding, Findings};
use super::kind::FindingKind as K;
use super::levels::LevelShape;
use super::order::LeafOrder;
use super::statistics::{self, Scope};
use crate::format::{
    BoundingBox, ColumnChunk, ColumnMetaData, CompressionCodec, SizeStatistics, Type,
};
use crate::geo::Edges;
use crate::schema::{Leaf, Physical};

/// A column chunk whose metadata are checked.
pub(super) struct ChunkFooter<'a> {
    pub(super) file: &'a FileContext,
    pub(super) leaf: &'a Leaf,
    pub(super) order: &'a LeafOrder,
    pub(super) shape: &'a LevelShape,
    pub(super) rows: u64,
}

impl ChunkFooter<'_> {
    pub(super) fn check(&self, chunk: &ColumnChunk, findings: &mut Findings) {
        let is_elsewhere = chunk.file_path.as_ref().is_some_and(|path| !path.is_empty());
        if !is_elsewhere {
            self.check_places(chunk, findings);
        }
        let Some(meta) = &chunk.meta_data else {
            findings.push(match chunk.encrypted_column_metadata {
                None => Finding::new(K::ChunkMetadataMissing, "a column chunk without metadata"),
                Some(_) => Finding::new(
                    K::NotChecked,
                    "the metadata are encrypted, and no key opened them",
                ),
            });
            return;
        };
        self.check_schema(meta, findings);
        self.check_sizes(meta, findings);
        let slots = u64::try_from(meta.num_values).ok();
        if let Some(stated) = &meta.statistics {
            statistics::check_alone(stated, self.order, slots, Scope::CHUNK, findings);
            let has_bounds = stated.min_value.is_some() || stated.max_value.is_some();
            let orders = &self.file.footer.index().head().column_orders;
            if has_bounds && orders.is_none() {
                self.file.has_unordered_bounds.store(true, Ordering::Relaxed);
            }
        }
        if let Some(sizes) = &meta.size_statistics {
            self.check_size_statistics(sizes, slots, findings);
        }
        self.check_geometries(meta, findings);
        for pages in meta.encoding_stats.iter().flatten().filter(|pages| pages.count < 0) {
            let text = format_args!("{} pages of {}", pages.count, pages.encoding);
            findings.push(Finding::new(K::EncodingStatsNegative, text));
        }
    }

    /// Where indexes and the bloom filter are.
    fn check_places(&self, chunk: &ColumnChunk, findings: &mut Findings) {
        let places = [
            (
                K::OffsetIndexOutsideFile,
                "offset index",
                chunk.offset_index_offset,
                chunk.offset_index_length,
            ),
            (
                K::ColumnIndexOutsideFile,
                "column index",
                chunk.column_index_offset,
                chunk.column_index_length,
            ),
        ];
        for (kind, what, offset, length) in places {
            if let Err(text) = self.place(offset, length) {
                findings.push(Finding::new(kind, format_args!("the {what} has {text}")));
            }
        }
        if chunk.column_index_offset.is_some() && chunk.offset_index_offset.is_none() {
            let text = "a column index without an offset index";
            findings.push(Finding::new(K::ColumnIndexAlone, text));
        }
        let Some(meta) = &chunk.meta_data else { return };
        let Some(offset) = meta.bloom_filter_offset else { return };
        if meta.r#type == Type::Boolean {
            // The format does not say how a BOOLEAN is hashed.
            let text = "a bloom filter of a BOOLEAN column";
            findings.push(Finding::new(K::BloomFilterOfBoolean, text));
        }
        let length = meta.bloom_filter_length;
        if length.is_none() {
            let text = "the length of the bloom filter is not stated";
            findings.push(Finding::new(K::BloomFilterLengthMissing, text));
        }
        if let Err(text) = self.place(Some(offset), length.or(Some(1))) {
            let text = format_args!("the bloom filter has {text}");
            findings.push(Finding::new(K::BloomFilterOutsideFile, text));
        }
    }

    /// The bytes of what is stated to be there, if anything is; or what is wrong with it.
    fn place(&self, offset: Option<i64>, length: Option<i32>) -> Result<(), String> {
        let (offset, length) = match (offset, length) {
            (None, None) => return Ok(()),
            (Some(offset), Some(length)) => (offset, length),
            (Some(_), None) => return Err("an offset, and no length".to_owned()),
            (None, Some(_)) => return Err("a length, and no offset".to_owned()),
        };
        let range = range_of(offset, length).filter(|range| self.file.has_room_for(range));
        match range {
            Some(_) => Ok(()),
            None => {
                let end = self.file.footer_start();
                Err(format!("{length} bytes at {offset}, not within 4 to {end}"))
            }
        }
    }

    fn check_schema(&self, meta: &ColumnMetaData, findings: &mut Findings) {
        let expected = self.leaf.physical.format_type();
        if meta.r#type != expected {
            findings.push(Finding::lie(K::ChunkTypeDiffers, "type", meta.r#type, expected));
        }
        if meta.r#type == Type::Int96 {
            findings.push(Finding::new(K::TypeDeprecated, "values are INT96"));
        }
        let names = self.leaf.path.names();
        let stated = &meta.path_in_schema;
        // Some writers leave the path out: the schema has it.
        let is_same = stated.is_empty()
            || stated.iter().map(String::as_str).eq(names.iter().map(|name| &**name));
        if !is_same {
            let (stated, found) = (stated.join("."), self.leaf.path.dotted());
            findings.push(Finding::lie(K::ChunkPathDiffers, "path_in_schema", stated, found));
        }
        match meta.codec {
            CompressionCodec::Unknown(codec) => {
                let text = format_args!("codec {codec} is none of the specification");
                findings.push(Finding::new(K::ChunkCodecUnknown, text));
            }
            CompressionCodec::Lz4 => {
                let text = "pages are compressed with LZ4, whose framing is not specified";
                findings.push(Finding::new(K::CodecDeprecated, text));
            }
            _ => {}
        }
    }

    fn check_sizes(&self, meta: &ColumnMetaData, findings: &mut Findings) {
        for (name, number) in [
            ("num_values", meta.num_values),
            ("total_uncompressed_size", meta.total_uncompressed_size),
            ("total_compressed_size", meta.total_compressed_size),
            ("data_page_offset", meta.data_page_offset),
            ("dictionary_page_offset", meta.dictionary_page_offset.unwrap_or(0)),
        ] {
            if number < 0 {
                let text = format_args!("{name} is {number}");
                findings.push(Finding::new(K::ChunkSizeNegative, text));
            }
        }
        let Ok(slots) = u64::try_from(meta.num_values) else { return };
        let is_flat = self.shape.max_rep == 0;
        if slots < self.rows || (is_flat && slots != self.rows) {
            let more = if is_flat { "" } else { " or more" };
            let found = format!("{}{more}", self.rows);
            findings.push(Finding::lie(K::ChunkValuesTooFew, "num_values", slots, found));
        }
        let dictionary = meta.dictionary_page_offset.unwrap_or(0);
        if slots > 0 && dictionary > 0 && dictionary >= meta.data_page_offset {
            let text = format_args!(
                "the dictionary page is said to be at {dictionary}, after the data pages at {}",
                meta.data_page_offset
            );
            findings.push(Finding::new(K::DictionaryOffsetMisplaced, text));
        }
    }

    fn check_size_statistics(
        &self,
        sizes: &SizeStatistics,
        slots: Option<u64>,
        findings: &mut Findings,
    ) {
        if let Some(bytes) = sizes.unencoded_byte_array_data_bytes
            && (bytes < 0 || self.leaf.physical != Physical::ByteArray)
        {
            let text = format_args!(
                "{bytes} unencoded bytes of {} values",
                self.leaf.physical.format_type()
            );
            findings.push(Finding::new(K::UnencodedBytesMisplaced, text));
        }
        for (name, histogram, max) in [
            ("repetition", &sizes.repetition_level_histogram, self.shape.max_rep),
            ("definition", &sizes.definition_level_histogram, self.shape.max_def),
        ] {
            let Some(counts) = histogram.as_ref().filter(|counts| !counts.is_empty()) else {
                continue;
            };
            let sum = counts
                .iter()
                .try_fold(0u64, |sum, count| sum.checked_add(u64::try_from(*count).ok()?));
            let levels = usize::from(max) + 1;
            if counts.len() != levels
                || sum.is_none()
                || slots.is_some_and(|slots| sum != Some(slots))
            {
                let sum = sum.map_or_else(|| "no number".to_owned(), |sum| sum.to_string());
                let text = format_args!(
                    "the histogram of {name} levels has {} counts, for {levels} levels, and their \
                     sum is {sum}",
                    counts.len()
                );
                findings.push(Finding::new(K::HistogramMiscounted, text));
            }
        }
    }

    fn check_geometries(&self, meta: &ColumnMetaData, findings: &mut Findings) {
        let Some(stated) = &meta.geospatial_statistics else { return };
        let mut push = |text: String| {
            findings.push(Finding::new(K::GeometryStatisticsInvalid, text));
        };
        if Edges::for_leaf(self.leaf).is_none() {
            push("geospatial statistics of values that are no geometries".to_owned());
            return;
        }
        if let Some(bbox) = &stated.bbox
            && let Some(text) = box_fault(bbox)
        {
            push(text);
        }
        let is_type =
            |code: &i32| (0..4).contains(&(code / 1000)) && (1..=7).contains(&(code % 1000));
        if let Some(code) = stated.geospatial_types.iter().flatten().find(|code| !is_type(code)) {
            push(format!("{code} is no type of a geometry"));
        }
    }
}

/// Says what is wrong with a box, if anything is. Only x may go around the antimeridian.
fn box_fault(bbox: &BoundingBox) -> Option<String> {
    let &BoundingBox { xmin, xmax, ymin, ymax, zmin, zmax, mmin, mmax, .. } = bbox;
    if [xmin, xmax, ymin, ymax].iter().any(|side| side.is_nan()) {
        return Some("a side of the bounding box is NaN".to_owned());
    }
    if ymin > ymax {
        return Some(format!("ymin {ymin:?} is greater than ymax {ymax:?}"));
    }
    for (name, min, max) in [("z", zmin, zmax), ("m", mmin, mmax)] {
        match (min, max) {
            (Some(min), Some(max)) if min > max => {
                return Some(format!("{name}min {min:?} is greater than {name}max {max:?}"));
            }
            (Some(_), None) | (None, Some(_)) => {
                return Some(format!("one of {name}min and {name}max is missing"));
            }
            _ => {}
        }
    }
    None
}

/// The range of bytes from `offset`, if the numbers can be one.
pub(super) fn range_of(offset: i64, length: i32) -> Option<Range<u64>> {
    let (start, len) = (u64::try_from(offset).ok()?, u64::try_from(length).ok()?);
    Some(start..start.checked_add(len)?).filter(|range| !range.is_empty())
}
