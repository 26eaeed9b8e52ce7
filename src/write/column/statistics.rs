//! Collects the statistics of a chunk for the footer and the indexes, page by page.

use std::cmp::Ordering;
use std::ops::Range;

use super::byte_arrays::ByteArrayValues;
use super::dictionary::ValueDictionary;
use super::ranks::{IS_ENTRY, RankedDictionary, extremes_of, prefixes};
use super::sorted::{SortDirection, direction};
use super::values::LeafValues;
use crate::error::Result;
use crate::format::{ColumnIndex, GeospatialStatistics, LogicalType, Statistics};
use crate::geo::{Edges, GeospatialCollector};
use crate::levels::LeafLevels;
use crate::memory;
use crate::schema::{Leaf, Physical};
use crate::stats::bounds::BoundCut;
use crate::stats::collect::Extremes;
use crate::stats::order::ValueOrder;
use crate::stats::page_index::{ColumnIndexBuilder, PageStatistics, stated_bounds};
use crate::write::column_options::{LeafSettings, StatisticsLevel};

/// The values of a page.
pub(super) enum PageValues<'p, 'a> {
    /// A range of the values.
    Plain(&'p LeafValues<'a>, Range<usize>),
    /// The first and the last of byte strings that rise.
    Rising(&'p [u8], &'p [u8]),
    /// Indices into the dictionary.
    Codes(&'p [u32]),
}

/// Collects the statistics of a chunk.
pub(super) struct StatisticsCollector<'s, 'a> {
    leaf: &'s Leaf,
    settings: &'s LeafSettings,
    order: ValueOrder,
    cut: BoundCut,
    dictionary: Option<RankedDictionary<'s, 'a>>,
    builder: Option<ColumnIndexBuilder>,
    bounds: Option<(Vec<u8>, Vec<u8>)>,
    nulls: u64,
    nans: u64,
    /// The box and the types of GEOMETRY and GEOGRAPHY values. With a dictionary, those of its
    /// entries, because each of them occurs.
    geospatial: Option<GeospatialCollector>,
}

/// Minimum values for each entry of a dictionary whose entries are ranked, because ranking many
/// entries costs more than comparing the values.
const MIN_VALUES_PER_ENTRY: usize = 16;

/// The collected statistics of a chunk.
pub(super) struct ChunkSummary {
    pub(super) statistics: Statistics,
    pub(super) column_index: Option<ColumnIndex>,
    pub(super) def_histogram: Option<Vec<i64>>,
    pub(super) rep_histogram: Option<Vec<i64>>,
    pub(super) geospatial: Option<GeospatialStatistics>,
}

impl<'s, 'a> StatisticsCollector<'s, 'a> {
    /// `dictionary` is the dictionary of the chunk, and whether the values are known by its codes
    /// only.
    pub(super) fn new(
        leaf: &'s Leaf,
        settings: &'s LeafSettings,
        dictionary: Option<(&'s ValueDictionary<'a>, bool)>,
    ) -> Result<Self> {
        let order = ValueOrder::for_leaf(leaf, settings.total_order);
        let cut = BoundCut::for_leaf(leaf);
        let builder = (settings.statistics == StatisticsLevel::Page)
            .then(|| ColumnIndexBuilder::new(order, leaf.physical, cut, settings.bound_bytes));
        let wanted = settings.statistics.bounds() && order != ValueOrder::Undefined;
        let mut geospatial = geospatial_collector(leaf, settings);
        if let (Some(collector), Some((dictionary, _))) = (&mut geospatial, dictionary) {
            let entries = &dictionary.entries;
            collect(collector, entries, 0..entries.len());
        }
        let rank = |(dictionary, only): (&'s ValueDictionary<'a>, bool)| -> Result<_> {
            let ValueDictionary { entries, codes, distinct } = dictionary;
            // Sorting many entries costs more than looking at the values, where there are some.
            let few = entries.len() * MIN_VALUES_PER_ENTRY <= codes.len();
            let byte_arrays = matches!(entries, LeafValues::Bytes(_)) && order == ValueOrder::Bytes;
            let ranked = wanted && (few || (only && !byte_arrays));
            let ranked = if ranked { entries } else { &LeafValues::new(leaf.physical) };
            let mut dictionary = RankedDictionary::new(entries, ranked, order, *distinct)?;
            if let LeafValues::Bytes(ByteArrayValues::Slices(entries)) = entries {
                dictionary.lengths = memory::collected(entries.iter().map(|e| e.len() as u64))?;
                if wanted && byte_arrays && !few {
                    dictionary.prefixes = prefixes(entries)?;
                }
            }
            Ok(dictionary)
        };
        let dictionary = dictionary.map(rank).transpose()?;
        let (bounds, nulls, nans) = (None, 0, 0);
        Ok(Self {
            leaf,
            settings,
            order,
            cut,
            dictionary,
            builder,
            bounds,
            nulls,
            nans,
            geospatial,
        })
    }

    /// Whether bounds of pages are found from indices: by the ranks of dictionary entries, or their
    /// first bytes.
    pub(super) fn by_codes(&self) -> bool {
        let by_codes = |d: &RankedDictionary<'_, '_>| !d.ranks.is_empty() || !d.prefixes.is_empty();
        self.dictionary.as_ref().is_some_and(by_codes)
    }

    /// The statistics of a page of these level entries, if `count` of them have values; see
    /// [`StatisticsCollector::add`].
    pub(super) fn page(
        &self,
        levels: &LeafLevels,
        entries: Range<usize>,
        count: usize,
        values: PageValues<'_, '_>,
    ) -> Result<PageStatistics> {
        let geospatial = self.geospatial_of(&values);
        let extremes = if self.settings.statistics.bounds() && self.order != ValueOrder::Undefined {
            self.extremes(values)?
        } else {
            Extremes::default()
        };
        let histograms = self.builder.is_some();
        let histogram = |of: Vec<i64>| if histograms { of } else { Vec::new() };
        Ok(PageStatistics {
            bounds: extremes.bounds,
            nulls: (entries.len() - count) as u64,
            nans: self.order.has_nan().then_some(extremes.nans),
            entries: entries.len() as u64,
            def_histogram: histogram(levels.def_histogram(entries.clone())),
            rep_histogram: histogram(levels.rep_histogram(entries)),
            geospatial,
        })
    }

    /// The geospatial statistics of a page, unless the dictionary has provided them.
    fn geospatial_of(&self, values: &PageValues<'_, '_>) -> Option<Box<GeospatialCollector>> {
        if self.geospatial.is_none() || self.dictionary.is_some() {
            return None;
        }
        let mut collector = geospatial_collector(self.leaf, self.settings)?;
        if let PageValues::Plain(values, range) = values {
            collect(&mut collector, values, range.clone());
        }
        Some(Box::new(collector))
    }

    /// Adds the next page.
    pub(super) fn add(&mut self, page: PageStatistics) {
        self.nulls += page.nulls;
        self.nans += page.nans.unwrap_or(0);
        if let Some(builder) = &mut self.builder {
            builder.push(&page);
        }
        if let (Some(all), Some(of_page)) = (&mut self.geospatial, &page.geospatial) {
            all.merge(of_page);
        }
        self.widen(page.bounds);
    }

    /// Widens the bounds of the chunk by those of a page.
    fn widen(&mut self, page: Option<(Vec<u8>, Vec<u8>)>) {
        let Some((min, max)) = page else {
            return;
        };
        let physical = self.leaf.physical;
        match &mut self.bounds {
            None => self.bounds = Some((min, max)),
            Some(bounds) => {
                let is_nan = |value: &[u8]| is_nan(self.order, physical, value);
                // In the total order, NaNs are bounds of pages that have nothing else; a number
                // takes their place.
                match (is_nan(&bounds.0), is_nan(&min)) {
                    (true, false) => *bounds = (min, max),
                    (false, true) => {}
                    _ => {
                        let less = |a: &[u8], b: &[u8]| {
                            self.order.compare(physical, a, b).is_some_and(Ordering::is_lt)
                        };
                        if less(&min, &bounds.0) {
                            bounds.0 = min;
                        }
                        if less(&bounds.1, &max) {
                            bounds.1 = max;
                        }
                    }
                }
            }
        }
    }

    fn extremes(&self, values: PageValues<'_, '_>) -> Result<Extremes> {
        match values {
            PageValues::Plain(values, range) => {
                extremes_of(values, range, self.order, self.settings.total_order)
            }
            PageValues::Rising(min, max) => {
                Ok(Extremes { bounds: Some((min.to_vec(), max.to_vec())), nans: 0 })
            }
            PageValues::Codes(codes) => match &self.dictionary {
                Some(dictionary) => {
                    dictionary.extremes(codes, self.order, self.settings.total_order)
                }
                None => Ok(Extremes::default()),
            },
        }
    }

    /// Bytes of the byte strings of codes, without lengths.
    pub(super) fn payload_of_codes(&self, codes: &[u32]) -> i64 {
        let Some(RankedDictionary { lengths, .. }) = self.dictionary.as_ref() else {
            return 0;
        };
        if lengths.is_empty() {
            return 0;
        }
        let len = |code: &u32| *lengths.get(*code as usize).expect(IS_ENTRY);
        i64::try_from(codes.iter().map(len).sum::<u64>())
            .expect("the values of a page have less than 2^63 bytes")
    }

    /// The order of the leaf.
    pub(super) fn order(&self) -> ValueOrder {
        self.order
    }

    /// The order of the values of a dictionary's codes, as `SortDetector` finds it for values.
    pub(super) fn sorted_codes(&self, codes: &[u32]) -> Option<SortDirection> {
        let dictionary = self.dictionary.as_ref()?;
        if let (LeafValues::Bytes(ByteArrayValues::Slices(entries)), false) =
            (dictionary.entries, dictionary.prefixes.is_empty())
        {
            return direction(codes, |a| *entries.get(*a as usize).expect(IS_ENTRY));
        }
        if self.order.has_nan() || dictionary.ranks.is_empty() {
            return None;
        }
        direction(codes, |code| *dictionary.ranks.get(*code as usize).expect(IS_ENTRY))
    }

    pub(super) fn finish(self, levels: &LeafLevels) -> ChunkSummary {
        let signed = |n: u64| i64::try_from(n).expect("values in memory are fewer than 2^63");
        let nans = self.order.has_nan() && self.settings.statistics.bounds();
        let nans = nans.then_some(self.nans);
        let unknown = matches!(self.leaf.logical, Some(LogicalType::Unknown));
        let distinct = self.dictionary.as_ref().filter(|d| d.distinct);
        let distinct = distinct.map(|d| d.entries.len() as u64);
        let mut statistics = Statistics {
            null_count: Some(signed(self.nulls)),
            distinct_count: distinct.map(signed),
            nan_count: nans.map(signed),
            ..Statistics::default()
        };
        if let Some(bounds) = self.bounds.filter(|_| !unknown) {
            let (min, max) =
                stated_bounds(self.order, self.cut, self.settings.bound_bytes, &bounds);
            statistics.is_min_value_exact = Some(min.exact);
            statistics.is_max_value_exact = Some(max.exact);
            statistics.min_value = Some(min.bytes);
            statistics.max_value = Some(max.bytes);
        }
        let all = 0..levels.len();
        ChunkSummary {
            statistics,
            column_index: self.builder.and_then(ColumnIndexBuilder::finish),
            def_histogram: (levels.max_def() > 0).then(|| levels.def_histogram(all.clone())),
            rep_histogram: (levels.max_rep() > 0).then(|| levels.rep_histogram(all)),
            geospatial: self.geospatial.and_then(|found| found.finish()),
        }
    }
}

/// The collector of geospatial statistics for a leaf of geometries, if they are wanted.
fn geospatial_collector(leaf: &Leaf, settings: &LeafSettings) -> Option<GeospatialCollector> {
    let edges = Edges::for_leaf(leaf)?;
    settings.statistics.bounds().then(|| GeospatialCollector::new(edges))
}

/// Adds geometries. The first value that is no WKB ends the collection, because statistics must
/// cover all values.
fn collect(collector: &mut GeospatialCollector, values: &LeafValues<'_>, range: Range<usize>) {
    if let LeafValues::Bytes(values) = values {
        let _ = values.iter(range).try_for_each(|wkb| collector.push(wkb));
    }
}

fn is_nan(order: ValueOrder, physical: Physical, value: &[u8]) -> bool {
    match (order, physical) {
        (ValueOrder::TotalFloat, Physical::Float) => {
            value.try_into().is_ok_and(|bytes| f32::from_le_bytes(bytes).is_nan())
        }
        (ValueOrder::TotalFloat, _) => {
            value.try_into().is_ok_and(|bytes| f64::from_le_bytes(bytes).is_nan())
        }
        (ValueOrder::TotalFloat16, _) => {
            value.try_into().is_ok_and(|bytes| half::f16::from_le_bytes(bytes).is_nan())
        }
        _ => false,
    }
}
