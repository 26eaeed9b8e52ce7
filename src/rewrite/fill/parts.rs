//! [`FillPart`]: what can be filled in, and [`FilledPart`]: how much of it was.

use std::fmt;

/// Something that a writer may leave out, and that can be filled in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum FillPart {
    /// How many pages of a column chunk have which encoding.
    EncodingStats,
    /// Bounds, whether they are exact, counts of nulls, NaNs and distinct values, geospatial
    /// statistics.
    Statistics,
    /// Histograms of levels, and bytes of BYTE_ARRAY values; those of pages are in the indexes.
    SizeStatistics,
    /// Where the pages are.
    OffsetIndex,
    /// Bounds and counts of the pages. It brings an offset index.
    ColumnIndex,
    /// The orders of the bounds, which are computed anew then.
    ColumnOrders,
    /// Bloom filters of named columns ([`Fill::bloom`](super::Fill::bloom)).
    BloomFilters,
    /// The order of the rows ([`Fill::sorted`](super::Fill::sorted)).
    SortingColumns,
    /// A CRC-32 of each page, for which page headers are written anew.
    Checksums,
}

impl FillPart {
    /// All parts.
    pub const ALL: &[Self] = &[
        Self::EncodingStats,
        Self::Statistics,
        Self::SizeStatistics,
        Self::OffsetIndex,
        Self::ColumnIndex,
        Self::ColumnOrders,
        Self::BloomFilters,
        Self::SortingColumns,
        Self::Checksums,
    ];

    /// Its name, in kebab case.
    pub const fn name(self) -> &'static str {
        match self {
            Self::EncodingStats => "encoding-stats",
            Self::Statistics => "statistics",
            Self::SizeStatistics => "size-statistics",
            Self::OffsetIndex => "offset-index",
            Self::ColumnIndex => "column-index",
            Self::ColumnOrders => "column-orders",
            Self::BloomFilters => "bloom-filters",
            Self::SortingColumns => "sorting-columns",
            Self::Checksums => "checksums",
        }
    }

    /// The unit that it is counted by.
    pub const fn unit(self) -> &'static str {
        match self {
            Self::ColumnOrders => "columns",
            Self::SortingColumns => "row groups",
            Self::Checksums => "pages",
            _ => "column chunks",
        }
    }
}

impl fmt::Display for FillPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How much of a part is filled in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct FilledPart {
    /// The part.
    pub part: FillPart,
    /// How often it is filled in, counted by [`FillPart::unit`].
    pub count: u64,
    /// Bytes that it adds to the file.
    pub bytes: u64,
}

/// Counts what is filled in.
#[derive(Debug, Clone, Default)]
pub(super) struct PartTally {
    found: Vec<FilledPart>,
}

impl PartTally {
    pub(super) fn add(&mut self, part: FillPart, count: u64, bytes: u64) {
        if count == 0 {
            return;
        }
        match self.found.iter_mut().find(|found| found.part == part) {
            Some(found) => {
                found.count += count;
                found.bytes = found.bytes.saturating_add(bytes);
            }
            None => self.found.push(FilledPart { part, count, bytes }),
        }
    }

    pub(super) fn join(&mut self, other: Self) {
        for FilledPart { part, count, bytes } in other.found {
            self.add(part, count, bytes);
        }
    }

    /// In the order of [`FillPart::ALL`].
    pub(super) fn finish(mut self) -> Vec<FilledPart> {
        self.found.sort_by_key(|found| found.part);
        self.found
    }
}
