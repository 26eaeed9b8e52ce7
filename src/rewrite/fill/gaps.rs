//! [`ChunkGaps`]: what a column chunk lacks of what is wanted.

use super::parts::FillPart;
use crate::format::{ColumnChunk, ColumnMetaData, ColumnOrder, SortingColumn, Statistics};
use crate::geo::Edges;
use crate::schema::{Leaf, Physical};
use crate::stats::order::ValueOrder;
use crate::write::column_options::BloomOptions;

/// A leaf, and what is wanted for it.
pub(super) struct LeafTarget {
    pub(super) leaf: Leaf,
    /// The order that the new footer states; no bounds are written where it is undefined.
    pub(super) order: ValueOrder,
    /// Whether the old footer states none, so that its bounds are replaced.
    pub(super) replaces_bounds: bool,
    pub(super) bloom: Option<BloomOptions>,
    /// How rows are compared, if they are to be sorted by it.
    pub(super) sorting: Option<SortingColumn>,
}

impl LeafTarget {
    /// `stated` is the order in the old footer, if that has one for each leaf.
    pub(super) fn new(leaf: Leaf, stated: Option<&ColumnOrder>, declares_orders: bool) -> Self {
        let order = match stated {
            None if declares_orders => ValueOrder::for_leaf(&leaf, false),
            Some(ColumnOrder::TypeOrder) => ValueOrder::for_leaf(&leaf, false),
            Some(ColumnOrder::Ieee754TotalOrder) => Some(ValueOrder::for_leaf(&leaf, true))
                .filter(|order| order.has_nan())
                .unwrap_or(ValueOrder::Undefined),
            _ => ValueOrder::Undefined,
        };
        let replaces_bounds = stated.is_none() && declares_orders;
        Self { leaf, order, replaces_bounds, bloom: None, sorting: None }
    }

    fn has_order(&self) -> bool {
        self.order != ValueOrder::Undefined
    }

    pub(super) fn is_byte_array(&self) -> bool {
        self.leaf.physical == Physical::ByteArray
    }
}

/// The parts that are missing in a chunk, and wanted.
#[derive(Debug, Clone, Default)]
pub(super) struct ChunkGaps {
    pub(super) encoding_stats: bool,
    pub(super) statistics: bool,
    pub(super) geospatial: bool,
    pub(super) sizes: bool,
    pub(super) offset_index: bool,
    pub(super) column_index: bool,
    pub(super) bloom: Option<BloomOptions>,
    pub(super) sorting: Option<SortingColumn>,
    pub(super) checksums: bool,
    /// Whether bounds of no stated order are replaced.
    pub(super) replaces_bounds: bool,
}

impl ChunkGaps {
    pub(super) fn find(
        chunk: &ColumnChunk,
        meta: &ColumnMetaData,
        target: &LeafTarget,
        wanted: &[FillPart],
    ) -> Self {
        let wants = |part| wanted.contains(&part);
        let has_pages = meta.num_values > 0;
        let old_index = chunk.column_index_offset.is_some();
        let stated = meta.statistics.as_ref();
        // The old one stays, or is replaced if there is no order for its bounds.
        let is_wanted = match old_index {
            true => target.replaces_bounds,
            false => wants(FillPart::ColumnIndex),
        };
        let column_index = target.has_order() && has_pages && is_wanted;
        Self {
            encoding_stats: wants(FillPart::EncodingStats)
                && meta.encoding_stats.as_ref().is_none_or(Vec::is_empty)
                && has_pages,
            statistics: wants(FillPart::Statistics)
                && !stated.is_some_and(|stated| is_complete(stated, meta, target)),
            geospatial: wants(FillPart::Statistics)
                && meta.geospatial_statistics.is_none()
                && Edges::for_leaf(&target.leaf).is_some(),
            sizes: wants(FillPart::SizeStatistics) && lacks_sizes(meta, target),
            offset_index: (wants(FillPart::OffsetIndex) || column_index)
                && chunk.offset_index_offset.is_none()
                && has_pages,
            column_index,
            bloom: target.bloom.filter(|_| meta.bloom_filter_offset.is_none()),
            sorting: target.sorting.clone(),
            checksums: wants(FillPart::Checksums) && has_pages,
            // Page headers may have bounds, too.
            replaces_bounds: target.replaces_bounds,
        }
    }

    /// Whether levels and values are decoded; page headers tell the rest.
    pub(super) fn needs_values(&self, leaf: &Leaf) -> bool {
        self.statistics
            || self.geospatial
            || self.sizes
            || self.column_index
            || self.bloom.is_some()
            || self.sorting.is_some()
            || self.replaces_bounds
            || (self.offset_index && leaf.max_rep > 0)
    }

    pub(super) fn needs_headers(&self) -> bool {
        self.encoding_stats || self.offset_index || self.checksums
    }
}

/// Whether statistics say all that can be said, distinct values aside.
fn is_complete(stated: &Statistics, meta: &ColumnMetaData, target: &LeafTarget) -> bool {
    let Some(nulls) = stated.null_count else { return false };
    if target.order.has_nan() && stated.nan_count.is_none() {
        return false;
    }
    let is_null = nulls == meta.num_values;
    let has_bounds = stated.min_value.is_some() && stated.max_value.is_some();
    let has_flags = stated.is_min_value_exact.is_some() && stated.is_max_value_exact.is_some();
    // Values that are all NaN have no bounds.
    let is_nan = stated.nan_count.is_some_and(|nans| nans.saturating_add(nulls) == meta.num_values);
    !target.has_order() || is_null || is_nan || (has_bounds && has_flags)
}

fn lacks_sizes(meta: &ColumnMetaData, target: &LeafTarget) -> bool {
    let Some(sizes) = &meta.size_statistics else {
        let leaf = &target.leaf;
        return target.is_byte_array() || leaf.max_def > 0 || leaf.max_rep > 0;
    };
    let is_empty = |list: &Option<Vec<i64>>| list.as_ref().is_none_or(Vec::is_empty);
    // A histogram of one bit says what the number of nulls says.
    (target.is_byte_array() && sizes.unencoded_byte_array_data_bytes.is_none())
        || (target.leaf.max_def > 1 && is_empty(&sizes.definition_level_histogram))
        || (target.leaf.max_rep > 0 && is_empty(&sizes.repetition_level_histogram))
}
