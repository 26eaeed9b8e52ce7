//! The page index of a column chunk says where its data pages are, and which bounds they have.
//!
//! Spec: PageIndex.md, `parquet.thrift`. Fetched by `read::plan` when a filter or a selection can
//! skip pages. Both indexes count data pages only, in file order. `stats::page_index` checks that
//! their lists have one length. Trap: the bounds of a page of nulls are empty byte strings, which
//! are also legal bounds of a page of strings.

use super::enums::BoundaryOrder;
use crate::thrift::derive::thrift;

thrift! {
    /// Where a data page is, and which row it begins with.
    #[derive(Copy, Eq, Hash)]
    pub closed struct PageLocation {
        /// Where the header of the page begins in the file.
        1 required offset: i64,
        /// Bytes of the page as stored, its header included.
        2 required compressed_page_size: i32,
        /// First row of the page, counted from the first of the row group.
        3 required first_row_index: i64,
    }
}

impl PageLocation {
    /// A page of `compressed_page_size` bytes at `offset`, which begins with the row
    /// `first_row_index` of the row group.
    pub const fn new(offset: i64, compressed_page_size: i32, first_row_index: i64) -> Self {
        Self { offset, compressed_page_size, first_row_index }
    }
}

thrift! {
    /// Where the data pages of a column chunk are.
    #[derive(Eq, Hash)]
    pub struct OffsetIndex {
        /// One for each data page, in file order.
        1 required page_locations: Vec<PageLocation>,
        /// Bytes of the BYTE_ARRAY values of each page.
        2 optional unencoded_byte_array_data_bytes: Vec<i64>,
    }
}

thrift! {
    /// Bounds and counts of the data pages of a column chunk; every list has one entry for each
    /// page.
    #[derive(Eq, Hash)]
    pub struct ColumnIndex {
        /// For each page, whether it has no values at all.
        1 required null_pages: Vec<bool>,
        /// Lower bounds; empty for pages of nulls.
        2 required min_values: Vec<Vec<u8>>,
        /// Upper bounds; empty for pages of nulls.
        3 required max_values: Vec<Vec<u8>>,
        /// Whether the bounds are sorted.
        4 required boundary_order: BoundaryOrder,
        /// Nulls in each page.
        5 optional null_counts: Vec<i64>,
        /// Repetition level histograms of all pages, one after the other.
        6 optional repetition_level_histograms: Vec<i64>,
        /// Definition level histograms of all pages, one after the other.
        7 optional definition_level_histograms: Vec<i64>,
        /// NaNs in each page.
        8 optional nan_counts: Vec<i64>,
    }
}
