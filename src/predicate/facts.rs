//! [`ColumnFacts`]: the trusted part of what the metadata of a file say of a leaf in a row group or
//! a page.
//!
//! Spec: `parquet.thrift`, Statistics and ColumnOrder; PageIndex.md. Used by
//! [`prune`](super::prune). It decides which bounds count: those whose order is defined and known.
//! Trap: a fact that is absent is unknown, never 0. If two facts contradict each other, neither
//! counts.

use std::cmp::Ordering;

use arrow_array::ArrayRef;

use crate::error::{Error, Result, Spec};
use crate::format::{
    ColumnIndex, ColumnMetaData, ColumnOrder, Encoding, OffsetIndex, PageEncodingStats, PageType,
    Statistics,
};
use crate::geo::{Edges, Rectangle};
use crate::schema::convert::is_interval;
use crate::schema::{Leaf, Physical};
use crate::stats::bloom::Blocks;
use crate::stats::bounds::StoredBound;
use crate::stats::order::ValueOrder;
use crate::stats::page_index;

/// The facts of a leaf in a row group or in a page. `None` is unknown.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub(crate) struct ColumnFacts {
    /// Rows.
    pub rows: u64,
    /// Level entries: values, nulls and empty lists.
    pub entries: Option<u64>,
    /// Entries without a value.
    pub nulls: Option<u64>,
    /// NaNs among the values.
    pub nans: Option<u64>,
    /// A lower bound of the values without NaNs, in the order that predicates compare by; `exact`
    /// unless the file says that it is not.
    pub min: Option<StoredBound>,
    /// An upper bound.
    pub max: Option<StoredBound>,
    /// The box around all geometries.
    pub rectangle: Option<Rectangle>,
    /// How often each definition level occurs, from 0 to the highest.
    pub def_histogram: Option<Vec<u64>>,
    /// The bloom filter of the leaf, as far as it was fetched.
    pub bloom: Option<Blocks>,
    /// All values that occur, and perhaps others, as an array of the Arrow type that the leaf is
    /// read as. See [`dictionary_is_complete`].
    pub dictionary: Option<ArrayRef>,
}

/// The facts of a leaf in each page of a column chunk.
#[derive(Debug, Clone, Default)]
pub(crate) struct PageFacts {
    /// One for each data page, in file order; their rows add up to those of the row group.
    pub pages: Vec<ColumnFacts>,
}

/// Which fields of statistics hold bounds that can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BoundsTrust {
    None,
    /// `min_value` and `max_value`.
    Ordered,
    /// The deprecated fields too.
    Signed,
    /// Only the deprecated ones.
    Deprecated,
}

/// Which bounds of a leaf count. `order` is its entry in the footer's list of column orders: `None`
/// if the list is absent or too short.
fn trust(leaf: &Leaf, order: Option<&ColumnOrder>) -> BoundsTrust {
    if !leaf.ordered || is_interval(leaf) {
        return BoundsTrust::None;
    }
    let of_type = ValueOrder::for_leaf(leaf, false);
    let is_float = of_type.has_nan();
    let ordered = match order {
        Some(ColumnOrder::TypeOrder) => of_type != ValueOrder::Undefined,
        Some(ColumnOrder::Ieee754TotalOrder) => is_float,
        Some(ColumnOrder::Int96TimestampOrder) => leaf.physical == Physical::Int96,
        Some(_) | None => false,
    };
    // SPEC parquet.thrift, Statistics: the deprecated fields are of signed order, which is that of
    // few types.
    let signed = matches!(of_type, ValueOrder::Signed)
        || (of_type == ValueOrder::Decimal
            && matches!(leaf.physical, Physical::Int32 | Physical::Int64))
        || (of_type == ValueOrder::Float);
    match (ordered, signed) {
        (true, true) => BoundsTrust::Signed,
        (true, false) => BoundsTrust::Ordered,
        (false, true) => BoundsTrust::Deprecated,
        (false, false) => BoundsTrust::None,
    }
}

impl ColumnFacts {
    /// Nothing is known but the number of rows.
    pub(crate) fn unknown(rows: u64) -> Self {
        Self { rows, ..Self::default() }
    }

    /// Whether all entries are null.
    pub(crate) fn all_null(&self) -> bool {
        self.entries.is_some() && self.nulls == self.entries
    }

    /// The facts of a column chunk of `rows` rows in the footer. `order` is the leaf's entry in the
    /// footer's `column_orders`, `None` if there is none (a list that is shorter than the leaves is
    /// ignored).
    pub(crate) fn of_chunk(
        leaf: &Leaf,
        order: Option<&ColumnOrder>,
        meta: &ColumnMetaData,
        rows: u64,
    ) -> Self {
        let sizes = meta.size_statistics.as_ref();
        let histogram = sizes.and_then(|sizes| sizes.definition_level_histogram.as_deref());
        let mut facts = Self::unknown(rows);
        facts.entries = u64::try_from(meta.num_values).ok();
        facts.def_histogram = histogram.and_then(|counts| histogram_of(counts, leaf));
        if let (Some(edges), Some(found)) = (Edges::for_leaf(leaf), &meta.geospatial_statistics) {
            facts.rectangle = Rectangle::from_statistics(found, edges);
        }
        if let Some(statistics) = &meta.statistics {
            facts.nulls = count(statistics.null_count);
            facts.nans = count(statistics.nan_count);
            (facts.min, facts.max) = bounds(statistics, trust(leaf, order));
        }
        facts.reconciled(leaf)
    }

    /// Drops what contradicts.
    fn reconciled(mut self, leaf: &Leaf) -> Self {
        // Outside of lists, a row is an entry.
        if leaf.max_rep == 0 {
            if self.entries.is_some_and(|entries| entries != self.rows) {
                return Self::unknown(self.rows);
            }
            self.entries = Some(self.rows);
        } else if self.entries.is_some_and(|entries| entries < self.rows) {
            return Self::unknown(self.rows);
        }
        if leaf.max_def == 0 {
            // Without definition levels there are no nulls, whatever the file states.
            self.nulls = Some(0);
        }
        let total = |counts: &Vec<u64>| counts.iter().try_fold(0u64, |sum, n| sum.checked_add(*n));
        if let Some(counts) = &self.def_histogram {
            let sum = total(counts);
            // A histogram has a count for each level, 0 among them.
            let values = counts.last().copied().unwrap_or_default();
            let nulls = sum.map(|sum| sum - values);
            let agrees = sum.is_some_and(|sum| sum >= self.rows)
                && self.entries.is_none_or(|entries| Some(entries) == sum)
                && self.nulls.is_none_or(|found| Some(found) == nulls);
            if agrees {
                (self.entries, self.nulls) = (sum, nulls);
            } else {
                self.def_histogram = None;
                self.nulls = None;
            }
        }
        if let (Some(nulls), Some(entries)) = (self.nulls, self.entries) {
            if nulls > entries {
                self.nulls = None;
            } else if self.nans.is_some_and(|nans| nans > entries - nulls) {
                self.nans = None;
            }
        }
        self
    }

    /// Values that are there, if that is known.
    pub(super) fn values(&self) -> Option<u64> {
        self.entries?.checked_sub(self.nulls?)
    }
}

/// The bounds of a page in a column index.
struct PageBounds<'a> {
    all_null: bool,
    min: &'a [u8],
    max: &'a [u8],
}

impl ColumnFacts {
    /// Adds the bounds of a page, which are trusted if values have this order; or returns their
    /// fault.
    fn set_bounds(
        &mut self,
        leaf: &Leaf,
        order: Option<ValueOrder>,
        page: &PageBounds<'_>,
    ) -> std::result::Result<(), &'static str> {
        if page.all_null {
            if !page.min.is_empty() || !page.max.is_empty() {
                return Err("a page of nulls has bounds");
            }
            if self.values().is_some_and(|values| values > 0) {
                return Err("a page of nulls has values");
            }
            self.nulls = self.nulls.or(self.entries);
            // The number of entries of a list is unknown; that all are null is known.
            if self.entries.is_none() {
                self.entries = self.nulls;
            }
        } else {
            if self.values() == Some(0) {
                return Err("a page of nulls is said to have values");
            }
            if let Some(compared) = order {
                let order = compared.compare(leaf.physical, page.min, page.max);
                if order.is_some_and(Ordering::is_gt) {
                    return Err("a lower bound lies above the upper one");
                }
                // A bound that is no value of the type is none: numbers are checked where they
                // become values.
                self.min = Some(StoredBound { bytes: page.min.to_vec(), exact: true });
                self.max = Some(StoredBound { bytes: page.max.to_vec(), exact: true });
            }
        }
        Ok(())
    }
}

impl PageFacts {
    /// Rows of all pages; `None` if they are more than can be.
    pub(super) fn rows(&self) -> Option<u64> {
        self.pages.iter().try_fold(0, |sum: u64, page| sum.checked_add(page.rows))
    }

    /// The facts of the pages of a column chunk in a row group of `rows` rows, in the page index.
    /// `order` is as for [`ColumnFacts::of_chunk`].
    ///
    /// # Errors
    /// `Malformed` if the indexes contradict themselves or each other: the caller then ignores
    /// them, and reports the error.
    pub(crate) fn of_indexes(
        leaf: &Leaf,
        order: Option<&ColumnOrder>,
        offsets: &OffsetIndex,
        columns: &ColumnIndex,
        rows: u64,
    ) -> Result<Self> {
        page_index::check(offsets, Some(columns), rows)?;
        let pages = offsets.page_locations.len();
        if pages == 0 && rows > 0 {
            return Err(Error::malformed(Spec::PageIndex, "no page for the rows"));
        }
        let believed = trusts_page_bounds(leaf, order);
        let is_total = matches!(order, Some(ColumnOrder::Ieee754TotalOrder));
        let order = believed.then(|| ValueOrder::for_leaf(leaf, is_total));
        let levels = usize::from(leaf.max_def) + 1;
        let histograms = match columns.definition_level_histograms.as_deref() {
            None | Some([]) => None,
            Some(counts) if pages.checked_mul(levels) == Some(counts.len()) => Some(counts),
            Some(counts) => {
                return Err(Error::mismatch(
                    Spec::PageIndex,
                    "definition_level_histograms",
                    format_args!("{pages} times {levels} counts"),
                    counts.len(),
                ));
            }
        };
        let indexes = CheckedIndexes { leaf, order, offsets, columns, histograms, rows };
        let facts = |page: usize| {
            let facts = indexes.facts_of_page(page);
            facts.map_err(|what| Error::malformed(Spec::PageIndex, what).at_page(page))
        };
        Ok(Self { pages: (0..pages).map(facts).collect::<Result<_>>()? })
    }
}

/// The indexes of a column chunk, with histograms of the right length.
struct CheckedIndexes<'a> {
    leaf: &'a Leaf,
    /// The order in which bounds are trusted.
    order: Option<ValueOrder>,
    offsets: &'a OffsetIndex,
    columns: &'a ColumnIndex,
    histograms: Option<&'a [i64]>,
    /// Rows of the row group.
    rows: u64,
}

impl CheckedIndexes<'_> {
    fn facts_of_page(&self, page: usize) -> std::result::Result<ColumnFacts, &'static str> {
        let Self { leaf, columns, .. } = *self;
        let first_row = |page: usize| {
            let location = self.offsets.page_locations.get(page);
            location.map_or(Some(self.rows), |page| u64::try_from(page.first_row_index).ok())
        };
        let ends = first_row(page + 1).zip(first_row(page));
        let rows = ends
            .and_then(|(end, start)| end.checked_sub(start))
            .ok_or("the first rows of pages do not ascend")?;
        let mut facts = ColumnFacts::unknown(rows);
        let of_page = |counts: &Option<Vec<i64>>| {
            counts.as_ref().and_then(|counts| counts.get(page)).copied()
        };
        facts.nulls = count(of_page(&columns.null_counts));
        facts.nans = count(of_page(&columns.nan_counts));
        if facts.nulls.is_none() && columns.null_counts.is_some() {
            return Err("a count of nulls is negative");
        }
        let levels = usize::from(leaf.max_def) + 1;
        let counts = self.histograms.and_then(|all| all.get(page * levels..(page + 1) * levels));
        if let Some(counts) = counts {
            let histogram = histogram_of(counts, leaf);
            let what = "a definition level occurs less than 0 times";
            facts.def_histogram = Some(histogram.ok_or(what)?);
        }
        let (nulls, has_histogram) = (facts.nulls, facts.def_histogram.is_some());
        let mut facts = facts.reconciled(leaf);
        let is_dropped = (has_histogram && facts.def_histogram.is_none())
            || (nulls.is_some() && nulls != facts.nulls);
        if is_dropped {
            return Err("the counts of nulls and of rows contradict each other");
        }
        let bounds = (columns.min_values.get(page), columns.max_values.get(page));
        let (Some(all_null), (Some(min), Some(max))) = (columns.null_pages.get(page), bounds)
        else {
            return Err("the column index has fewer pages than the offset index");
        };
        facts.set_bounds(leaf, self.order, &PageBounds { all_null: *all_null, min, max })?;
        Ok(facts)
    }
}

impl PageFacts {
    /// Compares the pages with the footer's facts of the whole chunk: as many nulls, and for
    /// integers, whose bounds are never truncated, the same bounds.
    ///
    /// # Errors
    /// `Malformed` if one of the two must be wrong: the page index is then ignored.
    pub(crate) fn check_against(&self, leaf: &Leaf, chunk: &ColumnFacts) -> Result<()> {
        let wrong = |what: &str, of_chunk: &dyn std::fmt::Debug, of_pages: &dyn std::fmt::Debug| {
            let (expected, found) = (format_args!("{of_chunk:?}"), format_args!("{of_pages:?}"));
            Err(Error::mismatch(Spec::PageIndex, what, expected, found))
        };
        let nulls = self.pages.iter().try_fold(0u64, |sum, page| sum.checked_add(page.nulls?));
        // Inside lists, the specification leaves open whether empty ones are counted.
        let nulls = nulls.filter(|_| leaf.max_rep == 0);
        if let (Some(of_chunk), Some(of_pages)) = (chunk.nulls, nulls)
            && of_chunk != of_pages
        {
            return wrong("nulls of all pages", &of_chunk, &of_pages);
        }
        let order = ValueOrder::for_leaf(leaf, false);
        let is_integer = matches!(leaf.physical, Physical::Int32 | Physical::Int64);
        if !is_integer || order == ValueOrder::Undefined {
            return Ok(());
        }
        let outermost = |bound: &dyn Fn(&ColumnFacts) -> Option<StoredBound>, wanted: Ordering| {
            let bounds = self.pages.iter().filter_map(bound).map(|bound| bound.bytes);
            bounds.reduce(|a, b| match order.compare(leaf.physical, &a, &b) {
                Some(found) if found == wanted => a,
                _ => b,
            })
        };
        let least = outermost(&|page| page.min.clone(), Ordering::Less);
        let greatest = outermost(&|page| page.max.clone(), Ordering::Greater);
        for (of_chunk, of_pages, what) in [
            (&chunk.min, least, "least lower bound"),
            (&chunk.max, greatest, "greatest upper bound"),
        ] {
            if let (Some(of_chunk), Some(of_pages)) = (of_chunk, of_pages)
                && of_chunk.exact
                && of_chunk.bytes != of_pages
            {
                return wrong(what, &of_chunk.bytes, &of_pages);
            }
        }
        Ok(())
    }
}

/// Whether the dictionary of a column chunk has all its values: the footer counts the encodings of
/// its pages, and all data pages use the dictionary.
pub(crate) fn dictionary_is_complete(meta: &ColumnMetaData) -> bool {
    all_pages_refer_to_dictionary(meta.encoding_stats.iter().flatten().cloned())
}

/// Like [`dictionary_is_complete`], for the counts in the metadata.
pub(crate) fn all_pages_refer_to_dictionary(
    stats: impl IntoIterator<Item = PageEncodingStats>,
) -> bool {
    let mut uses = false;
    for stats in stats {
        let is_dictionary =
            matches!(stats.encoding, Encoding::RleDictionary | Encoding::PlainDictionary);
        match stats.page_type {
            PageType::DictionaryPage | PageType::IndexPage => {}
            // A count of no pages is ignored; a negative one makes all doubtful.
            _ if stats.count == 0 => {}
            PageType::DataPage | PageType::DataPageV2 if is_dictionary && stats.count > 0 => {
                uses = true;
            }
            _ => return false,
        }
    }
    uses
}

fn count(count: Option<i64>) -> Option<u64> {
    u64::try_from(count?).ok()
}

/// A histogram as it is stored, if it can be one of the leaf.
fn histogram_of(counts: &[i64], leaf: &Leaf) -> Option<Vec<u64>> {
    if counts.len() != usize::from(leaf.max_def) + 1 {
        return None;
    }
    counts.iter().map(|count| u64::try_from(*count).ok()).collect()
}

/// The bounds of a chunk that count.
fn bounds(
    statistics: &Statistics,
    trust: BoundsTrust,
) -> (Option<StoredBound>, Option<StoredBound>) {
    let bound = |(bytes, exact): StatedBound<'_>| {
        Some(StoredBound { bytes: bytes?.to_vec(), exact: exact.unwrap_or(true) })
    };
    let (min, max) = stated_bounds(statistics, trust);
    (bound(min), bound(max))
}

/// A bound, and whether the file says that it is exact.
type StatedBound<'a> = (Option<&'a [u8]>, Option<bool>);

/// The lower and the upper bound in the fields that count.
fn stated_bounds(
    statistics: &Statistics,
    trust: BoundsTrust,
) -> (StatedBound<'_>, StatedBound<'_>) {
    let ordered = (
        (statistics.min_value.as_deref(), statistics.is_min_value_exact),
        (statistics.max_value.as_deref(), statistics.is_max_value_exact),
    );
    let deprecated = ((statistics.min.as_deref(), None), (statistics.max.as_deref(), None));
    match trust {
        BoundsTrust::None => Default::default(),
        BoundsTrust::Ordered => ordered,
        BoundsTrust::Deprecated => deprecated,
        BoundsTrust::Signed => match ordered {
            ((None, _), (None, _)) => deprecated,
            found => found,
        },
    }
}

/// The statistics with those bounds only that count, in `min_value` and `max_value`. `order` is as
/// for [`ColumnFacts::of_chunk`].
#[cfg(feature = "engine")]
pub(crate) fn with_trusted_bounds(
    leaf: &Leaf,
    order: Option<&ColumnOrder>,
    statistics: &Statistics,
) -> Statistics {
    let ((min, is_min_exact), (max, is_max_exact)) = stated_bounds(statistics, trust(leaf, order));
    Statistics {
        min: None,
        max: None,
        min_value: min.map(<[u8]>::to_vec),
        max_value: max.map(<[u8]>::to_vec),
        is_min_value_exact: is_min_exact,
        is_max_value_exact: is_max_exact,
        ..statistics.clone()
    }
}

/// Whether the bounds of pages in a column index count. `order` is as for
/// [`ColumnFacts::of_chunk`].
pub(crate) fn trusts_page_bounds(leaf: &Leaf, order: Option<&ColumnOrder>) -> bool {
    matches!(trust(leaf, order), BoundsTrust::Ordered | BoundsTrust::Signed)
}
