//! [`PageMap`]: the bytes of a column chunk that hold its rows, by its OffsetIndex.
//!
//! Spec: PageIndex.md. Made by `read::plan`, which asks for the pages that a selection needs. Trap:
//! an index may be wrong. One that contradicts itself or the chunk is refused here; whether the
//! pages agree is checked when they are read.

use std::ops::Range;

use super::row_selection::RowSelection;
use crate::error::{Error, Result, Spec};
use crate::format::OffsetIndex;

/// The data pages of a column chunk, which follow each other without a gap and hold all rows of the
/// row group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PageMap {
    chunk: Range<u64>,
    pages: Vec<PagePlace>,
}

/// A data page: where it is, and which rows it holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PagePlace {
    /// Bytes of the file: header and body.
    pub bytes: Range<u64>,
    /// Rows, counted from the first of the row group.
    pub rows: Range<u64>,
}

impl PageMap {
    /// The pages of `index`, of a chunk that lies at `chunk` of the file and holds `rows` rows.
    ///
    /// # Errors
    /// `Malformed(PageIndex)` if the pages leave out bytes or rows of the chunk, overlap, or do not
    /// begin at row 0.
    pub(crate) fn new(index: &OffsetIndex, chunk: Range<u64>, rows: u64) -> Result<Self> {
        let locations = &index.page_locations;
        let mut pages: Vec<PagePlace> = Vec::with_capacity(locations.len());
        for location in locations {
            let number = |value: i64, name| {
                u64::try_from(value).map_err(|_| wrong(name, "not negative", value))
            };
            let start = number(location.offset, "offset")?;
            let len = number(location.compressed_page_size.into(), "compressed_page_size")?;
            let row = number(location.first_row_index, "first_row_index")?;
            match pages.last_mut() {
                None if row != 0 => return Err(wrong("first_row_index of the first page", 0, row)),
                None if start < chunk.start => {
                    return Err(wrong("offset of the first page", chunk.start, start));
                }
                None => {}
                Some(last) => {
                    if start != last.bytes.end {
                        return Err(wrong("offset", last.bytes.end, start));
                    }
                    if row <= last.rows.start {
                        let more = format_args!("more than {}", last.rows.start).to_string();
                        return Err(wrong("first_row_index", more, row));
                    }
                    last.rows.end = row;
                }
            }
            let end = start.checked_add(len).filter(|end| len > 0 && *end <= chunk.end);
            let end = end.ok_or_else(|| wrong("end of the page", chunk.end, start))?;
            if row >= rows {
                return Err(wrong("first_row_index", format!("less than {rows}"), row));
            }
            pages.push(PagePlace { bytes: start..end, rows: row..rows });
        }
        let end = pages.last().map_or(chunk.start, |page| page.bytes.end);
        if pages.is_empty() || end != chunk.end {
            return Err(wrong("end of the last page", chunk.end, end));
        }
        Ok(Self { chunk, pages })
    }

    /// The bytes before the first data page: the dictionary page, or nothing.
    pub(crate) fn head(&self) -> Range<u64> {
        self.chunk.start..self.pages.first().map_or(self.chunk.start, |page| page.bytes.start)
    }

    /// The data pages, in file order.
    pub(crate) fn pages(&self) -> &[PagePlace] {
        &self.pages
    }

    /// Bytes of memory held.
    pub(crate) fn bytes_held(&self) -> usize {
        self.pages.len() * size_of::<PagePlace>()
    }

    /// Indices of the pages that hold a row of the selection, ascending.
    pub(crate) fn needed(&self, selection: &RowSelection) -> Vec<usize> {
        let mut needed = Vec::new();
        let mut next = 0;
        for run in selection.runs() {
            next = self.page_of(run.start, next);
            while let Some(page) = self.pages.get(next).filter(|page| page.rows.start < run.end) {
                needed.push(next);
                if page.rows.end > run.end {
                    // The next run may lie in the same page, which is not needed twice.
                    next += 1;
                    break;
                }
                next += 1;
            }
        }
        needed
    }

    /// The index of the page that holds `row`, which does not lie before page `first`; the number
    /// of pages if there is none.
    fn page_of(&self, row: u64, first: usize) -> usize {
        let rest = self.pages.get(first..).unwrap_or_default();
        let Some(page) = rest.first() else { return first };
        // Most pages of a chunk have the same number of rows: a search among all of them looks at
        // some twenty places of memory, and this at one.
        let rows = (page.rows.end - page.rows.start).max(1);
        let guess = row.saturating_sub(page.rows.start) / rows;
        let guess = usize::try_from(guess).unwrap_or(usize::MAX);
        if rest.get(guess).is_some_and(|page| page.rows.contains(&row)) {
            return first + guess;
        }
        first + rest.partition_point(|page| page.rows.end <= row)
    }

    /// The selection of the rows of a page, counted from its first row.
    #[cfg(test)]
    pub(crate) fn within(&self, page: usize, selection: &RowSelection) -> RowSelection {
        match self.pages.get(page) {
            Some(page) => selection.slice(page.rows.clone()),
            None => RowSelection::none(0),
        }
    }
}

#[cold]
fn wrong(what: &str, expected: impl std::fmt::Display, found: impl std::fmt::Display) -> Error {
    Error::mismatch(Spec::PageIndex, &format!("{what} in the offset index"), expected, found)
}
