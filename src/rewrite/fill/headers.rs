//! [`HeaderTally`]: what the page headers of a chunk tell, without its values.

use super::gaps::LeafTarget;
use crate::check::{PageKinds, VisitedPage};
use crate::error::Result;
use crate::format::{PageHeader, PageType};
use crate::stats::page_index::PageStatistics;
use crate::thrift::Write;

/// The pages of a chunk, by their headers.
#[derive(Default)]
pub(super) struct HeaderTally {
    pub(super) kinds: PageKinds,
    /// Offset, length and first row of each data page.
    pub(super) pages: Vec<(u64, u64, u64)>,
    pub(super) rows: u64,
    /// Whether each slot is a row, or headers count rows.
    pub(super) is_exact: bool,
    /// By data page, as far as all have statistics.
    pub(super) bounds: Vec<PageStatistics>,
    /// Pages without checksums, and the bytes that these add to their headers.
    pub(super) unchecked: u64,
    pub(super) growth: u64,
}

impl HeaderTally {
    pub(super) fn add(
        &mut self,
        page: &VisitedPage,
        target: &LeafTarget,
        checksums: bool,
    ) -> Result<()> {
        let r#type = page.header.r#type;
        if let Some(encoding) = page.encoding() {
            self.kinds.add(r#type, encoding);
        }
        if checksums && page.header.crc.is_none() {
            let grown = header_with_checksum(&page.header, &page.body)?.len();
            self.unchecked += 1;
            self.growth += grown.saturating_sub(page.header_len) as u64;
        }
        let Some(slots) = page.slots()? else { return Ok(()) };
        let v2 = page.header.data_page_header_v2.as_ref();
        let v2 = v2.filter(|_| r#type == PageType::DataPageV2);
        let rows = match v2 {
            Some(v2) if target.leaf.max_rep > 0 => u64::try_from(v2.num_rows).unwrap_or(0),
            _ => slots,
        };
        self.is_exact &= target.leaf.max_rep == 0 || v2.is_some();
        self.pages.push((page.offset, page.end.saturating_sub(page.offset), self.rows));
        self.rows = self.rows.saturating_add(rows);
        let stated = page.statistics();
        let nulls = match (v2, stated.and_then(|stated| stated.null_count)) {
            (Some(v2), _) => u64::try_from(v2.num_nulls).ok(),
            (None, Some(nulls)) => u64::try_from(nulls).ok(),
            (None, None) => (target.leaf.max_def == 0).then_some(0),
        };
        let bounds = stated.and_then(|of| Some((of.min_value.clone()?, of.max_value.clone()?)));
        if let Some(nulls) = nulls.filter(|nulls| *nulls <= slots) {
            self.bounds.push(PageStatistics {
                bounds,
                nulls,
                nans: None,
                entries: slots,
                def_histogram: Vec::new(),
                rep_histogram: Vec::new(),
                geospatial: None,
            });
        }
        Ok(())
    }

    /// Whether all data pages have statistics.
    pub(super) fn has_bounds(&self) -> bool {
        self.bounds.len() == self.pages.len()
    }
}

/// A page header with the checksum of its body.
pub(super) fn header_with_checksum(header: &PageHeader, body: &[u8]) -> Result<Vec<u8>> {
    let header = PageHeader { crc: Some(crc32fast::hash(body).cast_signed()), ..header.clone() };
    let mut out = Vec::new();
    header.write(&mut out)?;
    Ok(out)
}
