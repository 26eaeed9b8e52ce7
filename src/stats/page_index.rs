//! Collects the column index page by page for a writer, and checks it for a reader.
//!
//! Spec: PageIndex.md.

use std::cmp::Ordering;

use super::bounds::{BoundCut, StoredBound, lower, upper};
use super::order::ValueOrder;
use crate::error::{Error, Result, Spec};
use crate::format::{BoundaryOrder, ColumnIndex, OffsetIndex};
use crate::geo::GeospatialCollector;
use crate::schema::Physical;

/// The statistics of a page.
#[derive(Debug, Clone)]
pub(crate) struct PageStatistics {
    /// Its bounds, PLAIN and whole; absent where there is no value that counts.
    pub bounds: Option<(Vec<u8>, Vec<u8>)>,
    /// Entries without a value.
    pub nulls: u64,
    /// NaNs, where there can be some.
    pub nans: Option<u64>,
    /// Entries.
    pub entries: u64,
    /// How often each definition level occurs.
    pub def_histogram: Vec<i64>,
    /// How often each repetition level occurs.
    pub rep_histogram: Vec<i64>,
    /// The bounding box and types of its geometries, if it has any.
    pub geospatial: Option<Box<GeospatialCollector>>,
}

/// Collects the bounds of pages.
#[derive(Debug)]
pub(crate) struct ColumnIndexBuilder {
    order: ValueOrder,
    physical: Physical,
    cut: BoundCut,
    max: usize,
    index: ColumnIndex,
    /// Whether a page has values and yet no bounds: then the whole chunk has no index.
    impossible: bool,
}

impl ColumnIndexBuilder {
    /// A builder for a leaf of this order, whose bounds may be cut to `max` bytes.
    pub(crate) fn new(order: ValueOrder, physical: Physical, cut: BoundCut, max: usize) -> Self {
        let index = ColumnIndex {
            null_counts: Some(Vec::new()),
            nan_counts: order.has_nan().then(Vec::new),
            ..ColumnIndex::default()
        };
        let impossible = order == ValueOrder::Undefined;
        Self { order, physical, cut, max, index, impossible }
    }

    /// Adds the next page.
    pub(crate) fn push(&mut self, page: &PageStatistics) {
        if self.impossible {
            return;
        }
        let index = &mut self.index;
        let all_null = page.nulls == page.entries;
        index.null_pages.push(all_null);
        match &page.bounds {
            Some((min, max)) if !all_null => {
                index.min_values.push(lower(min, self.cut, self.max).bytes);
                index.max_values.push(upper(max, self.cut, self.max).bytes);
            }
            _ => {
                // A page of NaNs only has no bounds in the older order of floats.
                self.impossible |= !all_null;
                index.min_values.push(Vec::new());
                index.max_values.push(Vec::new());
            }
        }
        let signed = |n: u64| i64::try_from(n).expect("values in memory are fewer than 2^63");
        if let Some(counts) = &mut index.null_counts {
            counts.push(signed(page.nulls));
        }
        if let Some(counts) = &mut index.nan_counts {
            // Pages of other types have none.
            counts.push(signed(page.nans.unwrap_or(0)));
        }
        if page.rep_histogram.len() > 1 {
            let all = index.repetition_level_histograms.get_or_insert_default();
            all.extend_from_slice(&page.rep_histogram);
        }
        if page.def_histogram.len() > 1 {
            let all = index.definition_level_histograms.get_or_insert_default();
            all.extend_from_slice(&page.def_histogram);
        }
    }

    /// The index; `None` where the format has none: undefined orders, and pages of NaNs in the
    /// older order of floats.
    pub(crate) fn finish(mut self) -> Option<ColumnIndex> {
        if self.impossible {
            return None;
        }
        let rises = |values: &[Vec<u8>], descending: bool| {
            let pages = values.iter().zip(&self.index.null_pages).filter(|(_, null)| !**null);
            let values: Vec<&Vec<u8>> = pages.map(|(value, _)| value).collect();
            values.windows(2).all(|pair| match pair {
                [a, b] => {
                    let wrong = if descending { Ordering::Less } else { Ordering::Greater };
                    self.order.compare(self.physical, a, b).is_some_and(|order| order != wrong)
                }
                _ => true,
            })
        };
        let both = |descending: bool| {
            rises(&self.index.min_values, descending) && rises(&self.index.max_values, descending)
        };
        self.index.boundary_order = if both(false) {
            BoundaryOrder::Ascending
        } else if both(true) {
            BoundaryOrder::Descending
        } else {
            BoundaryOrder::Unordered
        };
        Some(self.index)
    }
}

/// The bounds of a chunk, as they are stored in at most `max` bytes each.
pub(crate) fn stated_bounds(
    order: ValueOrder,
    cut: BoundCut,
    max: usize,
    (min, max_value): &(Vec<u8>, Vec<u8>),
) -> (StoredBound, StoredBound) {
    // In the type-defined order a zero is written with the sign that is wider, so it may not occur.
    let may_differ = matches!(order, ValueOrder::Float | ValueOrder::Float16);
    let stated = |bound: StoredBound| {
        let exact = bound.exact && !(may_differ && is_zero(&bound.bytes));
        StoredBound { exact, ..bound }
    };
    (stated(lower(min, cut, max)), stated(upper(max_value, cut, max)))
}

/// Whether a float is a zero of either sign.
fn is_zero(bytes: &[u8]) -> bool {
    match bytes.split_last() {
        Some((last, rest)) => last & 0x7F == 0 && rest.iter().all(|byte| *byte == 0),
        None => false,
    }
}

/// Checks that an offset index can be true of a chunk of `rows` rows, and that a column index
/// agrees with it.
///
/// # Errors
/// `Malformed` if pages are out of order, have no rows or no bytes, or the lists of the indexes
/// have other lengths.
pub(crate) fn check(offset: &OffsetIndex, column: Option<&ColumnIndex>, rows: u64) -> Result<()> {
    let spec = Spec::PageIndex;
    let pages = offset.page_locations.len();
    let mut last: Option<(i64, i64)> = None;
    for (i, page) in offset.page_locations.iter().enumerate() {
        let first_row = u64::try_from(page.first_row_index).ok().filter(|row| *row < rows.max(1));
        let rises = match last {
            None => page.first_row_index == 0 && page.offset >= 0,
            Some((end, row)) => page.offset >= end && page.first_row_index > row,
        };
        if first_row.is_none() || !rises || page.compressed_page_size <= 0 {
            return Err(Error::malformed(
                spec,
                format_args!("page {i} of the offset index is out of order or empty"),
            )
            .at_page(i));
        }
        let end = page.offset.checked_add(page.compressed_page_size.into());
        last = Some((
            end.ok_or_else(|| Error::malformed(spec, "an offset beyond 63 bits"))?,
            page.first_row_index,
        ));
    }
    let Some(column) = column else {
        return Ok(());
    };
    for (name, len) in [
        ("null_pages", Some(column.null_pages.len())),
        ("min_values", Some(column.min_values.len())),
        ("max_values", Some(column.max_values.len())),
        ("null_counts", column.null_counts.as_ref().map(Vec::len)),
        ("nan_counts", column.nan_counts.as_ref().map(Vec::len)),
    ] {
        if let Some(len) = len.filter(|len| *len != pages) {
            return Err(Error::mismatch(spec, name, pages, len));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::PageLocation;

    fn built(pages: &[Option<(i32, i32)>]) -> ColumnIndex {
        let mut builder =
            ColumnIndexBuilder::new(ValueOrder::Signed, Physical::Int32, BoundCut::Never, 64);
        for page in pages {
            let bounds = page.map(|(a, b)| (a.to_le_bytes().to_vec(), b.to_le_bytes().to_vec()));
            let nulls = if page.is_none() { 5 } else { 0 };
            builder.push(&PageStatistics {
                bounds,
                nulls,
                nans: None,
                entries: 5,
                def_histogram: vec![0, 5],
                rep_histogram: vec![5],
                geospatial: None,
            });
        }
        builder.finish().unwrap()
    }

    #[test]
    fn boundary_orders() {
        use BoundaryOrder::{Ascending, Descending, Unordered};
        for (pages, expected) in [
            (vec![Some((1, 2)), None, Some((1, 3))], Ascending),
            (vec![Some((5, 9)), Some((5, 9))], Ascending),
            (vec![Some((5, 9)), Some((4, 9)), None], Descending),
            (vec![Some((1, 9)), Some((2, 8))], Unordered),
            (vec![None], Ascending),
            (vec![], Ascending),
        ] {
            let index = built(&pages);
            assert_eq!(index.boundary_order, expected, "{pages:?}");
            let nulls: Vec<bool> = pages.iter().map(Option::is_none).collect();
            assert_eq!(index.null_pages, nulls);
        }
    }

    #[test]
    fn a_page_of_nans_leaves_no_index_in_the_older_order() {
        for (order, expected) in [(ValueOrder::Float, false), (ValueOrder::TotalFloat, true)] {
            let mut builder = ColumnIndexBuilder::new(order, Physical::Float, BoundCut::Never, 64);
            let nan = f32::NAN.to_le_bytes().to_vec();
            builder.push(&PageStatistics {
                bounds: expected.then(|| (nan.clone(), nan)),
                nulls: 0,
                nans: Some(2),
                entries: 2,
                def_histogram: vec![2],
                rep_histogram: vec![2],
                geospatial: None,
            });
            assert_eq!(builder.finish().is_some(), expected);
        }
    }

    #[test]
    fn indexes_that_cannot_be_true() {
        let page = |offset, size, row| PageLocation {
            offset,
            compressed_page_size: size,
            first_row_index: row,
        };
        let of = |pages: &[PageLocation]| OffsetIndex {
            page_locations: pages.to_vec(),
            ..OffsetIndex::default()
        };
        let good = of(&[page(4, 10, 0), page(14, 10, 3)]);
        check(&good, Some(&built(&[None, None])), 9).unwrap();
        assert!(check(&good, Some(&built(&[None])), 9).is_err());
        assert!(check(&good, None, 3).is_err(), "the last page begins after the last row");
        for bad in [
            vec![page(4, 10, 1)],
            vec![page(4, 10, 0), page(13, 10, 3)],
            vec![page(4, 10, 0), page(14, 10, 0)],
            vec![page(4, 0, 0)],
            vec![page(-4, 10, 0)],
            vec![page(i64::MAX, 10, 0)],
        ] {
            assert!(check(&of(&bad), None, 9).is_err(), "{bad:?}");
        }
    }
}
