//! Checks a data page: its levels against its header and the offset index, and its values against
//! its statistics and the column index.

use super::headers::statistics_of;
use super::state::{ColumnCheck, PageNumber, Tally};
use super::values::LeveledPage;
use crate::check::distinct::DistinctValues;
use crate::check::facts::ValueFacts;
use crate::check::finding::{CheckLevel, Finding, Findings};
use crate::check::kind::FindingKind as K;
use crate::check::levels::{self, LevelFacts, Nulls};
use crate::check::page_index::{FoundPage, PageTruth};
use crate::check::statistics::{self, Scope, Truth};
use crate::error::Result;
use crate::format::{PageHeader, PageType, Statistics};
use crate::page::DataPage;

impl ColumnCheck<'_> {
    pub(super) fn data_page(
        &mut self,
        page: DataPage,
        header: &PageHeader,
        at: PageNumber,
        (byte_len, body_len): (u64, usize),
        findings: &mut Findings,
    ) -> Result<()> {
        // Levels are counted 64 at a time.
        let counted = self.file.expand(page.slots as u64 / 64, body_len).and_then(|()| {
            let Tally { last_definition, .. } = self.tally;
            levels::count(&page, &self.place.shape, last_definition, &mut self.groups)
        });
        let first_row = self.tally.rows;
        let found = FoundPage { number: at.number, offset: at.offset, byte_len, first_row };
        if let Some(offsets) = &self.offsets {
            offsets.check_page(&found, self.tally.has_all_levels, findings);
        }
        let levels = match counted {
            Ok(levels) => levels,
            Err(error) if self.must_wait(&error) => return Err(error),
            Err(error) => {
                findings.push(at.at(Finding::of_error(K::PageLevelsUnreadable, &error)));
                self.miss_page(header);
                return Ok(());
            }
        };
        self.check_levels(&levels, header, at, findings);
        self.tally.add_levels(&levels);
        let scope = Scope { page: Some(at.number), offset: Some(at.offset) };
        let stated = statistics_of(header);
        if let Some(stated) = stated {
            let order = &self.place.order;
            statistics::check_alone(stated, order, Some(levels.slots), scope, findings);
            if self.columns.is_some() && !findings.has(K::PageStatisticsRedundant) {
                let text = "pages have statistics, and there is a column index";
                findings.push(Finding::new(K::PageStatisticsRedundant, text));
            }
        }
        if self.file.level < CheckLevel::Values {
            return Ok(());
        }
        let values = LeveledPage { page, levels: &levels, at, body_len };
        let facts = self.check_values(values, stated, scope, findings)?;
        if let (Some(survey), Some(facts)) = (&mut self.survey, facts) {
            let has_nan = self.place.order.has_nan();
            survey.add_page((at.offset, byte_len, first_row), &levels, &facts, has_nan)?;
        }
        Ok(())
    }

    /// Decodes the values of a page, and compares what is stated of them.
    fn check_values(
        &mut self,
        values: LeveledPage<'_>,
        stated: Option<&Statistics>,
        scope: Scope,
        findings: &mut Findings,
    ) -> Result<Option<ValueFacts>> {
        let (at, levels) = (values.at, values.levels);
        let wants_distinct = self.file.level == CheckLevel::Truth
            && stated.is_some_and(|stated| stated.distinct_count.is_some());
        let mut of_page = wants_distinct.then(|| DistinctValues::new(&self.file.budget));
        let decoded = self.values(values, &mut of_page, findings);
        let facts = match decoded {
            Ok(facts) => facts,
            Err(error) if self.must_wait(&error) => return Err(error),
            Err(error) => {
                findings.push(at.at(Finding::of_error(K::ValuesUnreadable, &error)));
                None
            }
        };
        self.tally.has_all_values &= facts.is_some();
        if self.file.level < CheckLevel::Truth {
            return Ok(None);
        }
        let order = &self.place.order;
        if let Some(columns) = &self.columns {
            let PageNumber { number, offset } = at;
            let page = PageTruth { number, offset, levels, facts: facts.as_ref() };
            columns.check_page(&page, order, &self.place.shape, findings);
        }
        let Some(facts) = facts else { return Ok(None) };
        if let Some(offsets) = self.offsets.as_ref().filter(|_| self.is_byte_array()) {
            offsets.check_bytes(at.number, facts.bytes, findings);
        }
        if let Some(stated) = stated {
            let distinct = of_page.map(|values| values.count());
            let nulls = Nulls::new(&levels.definitions, &self.place.shape);
            let truth = Truth { facts: &facts, nulls, distinct, is_whole: true };
            statistics::check_against(stated, order, &truth, scope, findings);
        }
        self.tally.facts.merge(&facts, order)?;
        Ok(Some(facts))
    }

    /// Compares the levels of a page with its header.
    fn check_levels(
        &self,
        levels: &LevelFacts,
        header: &PageHeader,
        at: PageNumber,
        findings: &mut Findings,
    ) {
        let v2 = header.data_page_header_v2.as_ref();
        if let Some(v2) = v2.filter(|_| header.r#type == PageType::DataPageV2) {
            let nulls = levels.slots - levels.values;
            for (kind, name, stated, found) in [
                (K::PageRowsWrong, "num_rows", v2.num_rows, levels.rows),
                (K::PageNullsWrong, "num_nulls", v2.num_nulls, nulls),
            ] {
                if u64::try_from(stated) != Ok(found) {
                    findings.push(at.at(Finding::lie(kind, name, stated, found)));
                }
            }
        }
        if !levels.starts_row && levels.slots > 0 {
            let must = v2.is_some() || self.offsets.is_some();
            if self.tally.slots == 0 && self.tally.has_all_levels {
                let text = "the first page of the column chunk does not begin with a row";
                findings.push(at.at(Finding::new(K::ChunkStartsInRow, text)));
            } else if must {
                let text = "the page begins within a row";
                findings.push(at.at(Finding::new(K::PageStartsInRow, text)));
            }
        }
        if let Some(slot) = levels.broken {
            let text = format_args!(
                "slot {slot} of the page continues a list, and is no element of it or follows none"
            );
            findings.push(at.at(Finding::new(K::LevelsInconsistent, text)));
        }
    }
}
