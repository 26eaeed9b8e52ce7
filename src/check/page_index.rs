//! [`OffsetEntries`] and [`ColumnEntries`]: the page index of a chunk, entry by entry.
//!
//! Spec: PageIndex.md. Used by `column`, which compares an entry with each page. Trap: the lists of
//! an index may have any lengths; an entry that is missing is reported once, and not compared.

use std::cmp::Ordering;

use super::facts::ValueFacts;
use super::finding::{Finding, Findings};
use super::kind::FindingKind;
use super::levels::{LevelFacts, LevelShape, Nulls};
use super::order::LeafOrder;
use crate::error::Result;
use crate::format::{BoundaryOrder, ColumnIndexRef, OffsetIndexRef, PageLocation};
use crate::limits::{Budget, Reservation};
use crate::memory;
use crate::thrift::{Read, ThriftReader};

/// The entries of an offset index.
pub(super) struct OffsetEntries {
    locations: Vec<PageLocation>,
    bytes: Option<Vec<i64>>,
    _memory: Reservation,
}

/// A data page, as it was found.
pub(super) struct FoundPage {
    pub(super) number: usize,
    pub(super) offset: u64,
    /// Header and body.
    pub(super) byte_len: u64,
    /// Rows of the chunk before it.
    pub(super) first_row: u64,
}

impl OffsetEntries {
    /// # Errors
    /// `Malformed`; `Limit(Memory)`.
    pub(super) fn read(bytes: &[u8], budget: &Budget) -> Result<Self> {
        let index = OffsetIndexRef::read(&mut ThriftReader::new(bytes))?;
        let of_bytes = index.unencoded_byte_array_data_bytes;
        let len = index.page_locations.len() * size_of::<PageLocation>()
            + of_bytes.map_or(0, |list| list.len() * size_of::<i64>());
        let reservation = budget.take_for("an offset index", len)?;
        Ok(Self {
            locations: memory::collected(index.page_locations.iter())?,
            bytes: of_bytes.map(|list| memory::collected(list.iter())).transpose()?,
            _memory: reservation,
        })
    }

    /// Compares the entry of a page with it. `rows` are those that begin before it, if levels could
    /// be read so far.
    pub(super) fn check_page(&self, page: &FoundPage, rows_known: bool, findings: &mut Findings) {
        let Some(entry) = self.locations.get(page.number) else { return };
        let mut push = |kind, name, stated: i64, found: u64| {
            if u64::try_from(stated) != Ok(found) {
                let finding = Finding::lie(kind, name, stated, found);
                findings.push(finding.with_page(Some(page.number)).with_offset(page.offset));
            }
        };
        push(FindingKind::OffsetIndexOffsetWrong, "offset", entry.offset, page.offset);
        let size = i64::from(entry.compressed_page_size);
        push(FindingKind::OffsetIndexSizeWrong, "compressed_page_size", size, page.byte_len);
        if rows_known {
            let row = entry.first_row_index;
            push(FindingKind::OffsetIndexRowWrong, "first_row_index", row, page.first_row);
        }
    }

    /// Compares the bytes of the values of a page.
    pub(super) fn check_bytes(&self, page: usize, found: u64, findings: &mut Findings) {
        let stated = self.bytes.as_ref().and_then(|bytes| bytes.get(page));
        if let Some(stated) = stated.filter(|stated| u64::try_from(**stated) != Ok(found)) {
            let name = "unencoded_byte_array_data_bytes";
            let finding = Finding::lie(FindingKind::OffsetIndexBytesWrong, name, stated, found);
            findings.push(finding.with_page(Some(page)));
        }
    }

    /// Compares the number of entries with that of the data pages.
    pub(super) fn check_len(&self, pages: usize, is_byte_array: bool, findings: &mut Findings) {
        let kind = FindingKind::OffsetIndexMiscounted;
        if self.locations.len() != pages {
            let stated = self.locations.len();
            findings.push(Finding::lie(kind, "the number of page_locations", stated, pages));
        }
        let Some(bytes) = &self.bytes else { return };
        if !is_byte_array {
            let text = "unencoded_byte_array_data_bytes of values that are no BYTE_ARRAY";
            findings.push(Finding::new(FindingKind::OffsetIndexBytesWrong, text));
        } else if bytes.len() != pages {
            let name = "the number of unencoded_byte_array_data_bytes";
            findings.push(Finding::lie(kind, name, bytes.len(), pages));
        }
    }
}

/// The entries of a column index.
pub(super) struct ColumnEntries<'a> {
    null_pages: Vec<bool>,
    min_values: Vec<&'a [u8]>,
    max_values: Vec<&'a [u8]>,
    boundary_order: BoundaryOrder,
    null_counts: Option<Vec<i64>>,
    nan_counts: Option<Vec<i64>>,
    repetitions: Option<Vec<i64>>,
    definitions: Option<Vec<i64>>,
    _memory: Reservation,
}

/// The levels and values of a page, for its entry in a column index.
pub(super) struct PageTruth<'a> {
    pub(super) number: usize,
    pub(super) offset: u64,
    pub(super) levels: &'a LevelFacts,
    /// Missing where the values could not be decoded.
    pub(super) facts: Option<&'a ValueFacts>,
}

impl<'a> ColumnEntries<'a> {
    /// # Errors
    /// `Malformed`; `Limit(Memory)`.
    pub(super) fn read(bytes: &'a [u8], budget: &Budget) -> Result<Self> {
        let index = ColumnIndexRef::<'a>::read(&mut ThriftReader::new(bytes))?;
        let lists = [
            index.null_counts,
            index.nan_counts,
            index.repetition_level_histograms,
            index.definition_level_histograms,
        ];
        let numbers: usize = lists.iter().flatten().map(|list| list.len()).sum();
        let bounds = index.min_values.len() + index.max_values.len();
        let len = index.null_pages.len() + bounds * size_of::<&[u8]>() + numbers * 8;
        let reservation = budget.take_for("a column index", len)?;
        let [null_counts, nan_counts, repetitions, definitions] =
            lists.map(|list| list.map(|list| memory::collected(list.iter())).transpose());
        Ok(Self {
            null_pages: memory::collected(index.null_pages.iter())?,
            min_values: memory::collected(index.min_values.iter())?,
            max_values: memory::collected(index.max_values.iter())?,
            boundary_order: index.boundary_order,
            null_counts: null_counts?,
            nan_counts: nan_counts?,
            repetitions: repetitions?,
            definitions: definitions?,
            _memory: reservation,
        })
    }

    /// Checks the lengths of the lists for a chunk of `pages` data pages.
    pub(super) fn check_len(&self, pages: usize, shape: &LevelShape, findings: &mut Findings) {
        let of_levels = |max: u16| pages.saturating_mul(usize::from(max) + 1);
        let len = |list: &Option<Vec<i64>>| list.as_ref().map(Vec::len);
        // An empty list of histograms is as good as none.
        let histogram = |list| len(list).filter(|len| *len > 0);
        for (name, stated, expected) in [
            ("null_pages", Some(self.null_pages.len()), pages),
            ("min_values", Some(self.min_values.len()), pages),
            ("max_values", Some(self.max_values.len()), pages),
            ("null_counts", len(&self.null_counts), pages),
            ("nan_counts", len(&self.nan_counts), pages),
            ("repetition_level_histograms", histogram(&self.repetitions), of_levels(shape.max_rep)),
            ("definition_level_histograms", histogram(&self.definitions), of_levels(shape.max_def)),
        ] {
            if let Some(stated) = stated.filter(|stated| *stated != expected) {
                let name = format!("the number of {name}");
                let kind = FindingKind::ColumnIndexMiscounted;
                findings.push(Finding::lie(kind, &name, stated, expected));
            }
        }
    }

    /// Checks the bounds by themselves, and their order.
    pub(super) fn check_alone(&self, order: &LeafOrder, findings: &mut Findings) {
        if order.bounds.is_none() && order.natural.is_none() {
            let text = "a column index of values that have no order";
            findings.push(Finding::new(FindingKind::ColumnIndexImpossible, text));
            return;
        }
        let bounds = self.null_pages.iter().zip(&self.min_values).zip(&self.max_values);
        for (page, ((is_null, min), max)) in bounds.enumerate() {
            let mut push = |kind, text: String| {
                findings.push(Finding::new(kind, text).with_page(Some(page)));
            };
            if *is_null {
                if !min.is_empty() || !max.is_empty() {
                    let text = "bounds of a page of nulls are not empty".to_owned();
                    push(FindingKind::ColumnIndexNullBounds, text);
                }
                continue;
            }
            for (bound, name) in [(min, "minimum"), (max, "maximum")] {
                if !order.fits(bound) {
                    let text =
                        format!("a {name} of {} bytes: it is no {}", bound.len(), order.physical);
                    push(FindingKind::ColumnIndexBoundLengthWrong, text);
                } else if order.is_nan(bound) && !order.is_total() {
                    push(FindingKind::BoundNan, format!("the {name} is NaN"));
                }
            }
            let Some(by) = order.bounds else { continue };
            if order.compare(by, min, max) == Some(Ordering::Greater) {
                let (least, most) = (order.show(min), order.show(max));
                let text = format!("the minimum {least} is greater than the maximum {most}");
                push(FindingKind::ColumnIndexBoundsReversed, text);
            }
        }
        self.check_boundary_order(order, findings);
    }

    fn check_boundary_order(&self, order: &LeafOrder, findings: &mut Findings) {
        let (Some(by), wrong) = (order.bounds, self.boundary_order) else { return };
        let wrong = match wrong {
            BoundaryOrder::Ascending => Ordering::Greater,
            BoundaryOrder::Descending => Ordering::Less,
            BoundaryOrder::Unordered => return,
            other => {
                let text = format_args!("boundary_order is {other}");
                findings.push(Finding::new(FindingKind::BoundaryOrderWrong, text));
                return;
            }
        };
        for (name, values) in [("minima", &self.min_values), ("maxima", &self.max_values)] {
            let pages = self.null_pages.iter().zip(values).enumerate();
            let mut before: Option<&[u8]> = None;
            for (page, (_, value)) in pages.filter(|(_, (is_null, _))| !**is_null) {
                let is_wrong =
                    before.is_some_and(|before| order.compare(by, before, value) == Some(wrong));
                if is_wrong {
                    let text = format!("the {name} are not {}", self.boundary_order);
                    let finding = Finding::new(FindingKind::BoundaryOrderWrong, text);
                    findings.push(finding.with_page(Some(page)));
                    return;
                }
                before = Some(value);
            }
        }
    }

    /// Compares the entry of a page with what was found in it.
    pub(super) fn check_page(
        &self,
        page: &PageTruth<'_>,
        order: &LeafOrder,
        shape: &LevelShape,
        findings: &mut Findings,
    ) {
        use FindingKind as K;
        let mut push = |finding: Finding| {
            findings.push(finding.with_page(Some(page.number)).with_offset(page.offset));
        };
        let levels = page.levels;
        let is_null = levels.values == 0;
        if let Some(stated) = self.null_pages.get(page.number).filter(|stated| **stated != is_null)
        {
            push(Finding::lie(K::ColumnIndexNullPageWrong, "null_pages", stated, is_null));
        }
        let mut count = |list: &Option<Vec<i64>>, found: u64, kind, name| {
            let stated = list.as_ref().and_then(|list| list.get(page.number));
            if let Some(stated) = stated.filter(|stated| u64::try_from(**stated) != Ok(found)) {
                push(Finding::lie(kind, name, stated, found));
            }
        };
        let nulls = Nulls::new(&levels.definitions, shape);
        let stated = self.null_counts.as_ref().and_then(|list| list.get(page.number)).copied();
        let stated = stated.filter(|stated| nulls.is_like(*stated));
        let nulls = stated.and_then(|stated| u64::try_from(stated).ok()).unwrap_or(nulls.all);
        count(&self.null_counts, nulls, K::ColumnIndexNullCountWrong, "null_counts");
        if let Some(facts) = page.facts.filter(|_| order.has_nan()) {
            count(&self.nan_counts, facts.nans, K::ColumnIndexNanCountWrong, "nan_counts");
        }
        for (list, found, kind) in [
            (&self.definitions, &levels.definitions, K::ColumnIndexDefinitionHistogramWrong),
            (&self.repetitions, &levels.repetitions, K::ColumnIndexRepetitionHistogramWrong),
        ] {
            let start = page.number.saturating_mul(found.len());
            let stated = list.as_ref().and_then(|list| list.get(start..start + found.len()));
            if let Some(stated) = stated.filter(|stated| !is_same(stated, found)) {
                let (stated, found) = (format!("{stated:?}"), format!("{found:?}"));
                push(Finding::lie(kind, "a histogram", stated, found));
            }
        }
        let (Some(by), Some(facts)) = (order.bounds, page.facts) else { return };
        let Some((least, most)) = facts.bounds.as_ref().filter(|_| !is_null) else { return };
        let (less, greater) = (Ordering::Less, Ordering::Greater);
        for (values, found, wrong, kind, name) in [
            (&self.min_values, least, greater, K::ColumnIndexMinTooLarge, "min_values"),
            (&self.max_values, most, less, K::ColumnIndexMaxTooSmall, "max_values"),
        ] {
            let is_said_null = self.null_pages.get(page.number) == Some(&true);
            let Some(stated) = values.get(page.number).filter(|_| !is_said_null) else { continue };
            if order.fits(stated) && order.compare(by, stated, found) == Some(wrong) {
                push(Finding::lie(kind, name, order.show(stated), order.show(found)));
            }
        }
    }
}

/// Whether a histogram that is stated is the one that was found.
pub(super) fn is_same(stated: &[i64], found: &[u64]) -> bool {
    stated.len() == found.len()
        && stated.iter().zip(found).all(|(stated, found)| u64::try_from(*stated) == Ok(*found))
}
