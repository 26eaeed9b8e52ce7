//! Decodes the values of a data page, and looks at each: where it is stored, or once for a page
//! that holds indices.

use super::headers::encoding_fits;
use super::state::{CheckedDictionary, ColumnCheck, EntriesSeen, PageNumber};
use crate::check::distinct::DistinctValues;
use crate::check::facts::ValueFacts;
use crate::check::finding::{CheckLevel, Finding, Findings};
use crate::check::kind::FindingKind as K;
use crate::check::levels::{LevelFacts, ValidSlots};
use crate::check::values::{ValueBlock, ValueDecoder, indices};
use crate::encoding::rle::Run;
use crate::error::Result;
use crate::format::Encoding;
use crate::memory;
use crate::page::DataPage;
use crate::schema::Physical;

/// A data page whose levels are known.
pub(super) struct LeveledPage<'a> {
    pub(super) page: DataPage,
    pub(super) levels: &'a LevelFacts,
    pub(super) at: PageNumber,
    pub(super) body_len: usize,
}

impl ColumnCheck<'_> {
    /// Decodes the values of a page; `None` if a fault was found, and reported.
    pub(super) fn values(
        &mut self,
        values: LeveledPage<'_>,
        of_page: &mut Option<DistinctValues>,
        findings: &mut Findings,
    ) -> Result<Option<ValueFacts>> {
        let n = usize::try_from(values.levels.values).unwrap_or(usize::MAX);
        match values.page.encoding {
            Encoding::PlainDictionary | Encoding::RleDictionary => {
                self.indices(&values, n, of_page, findings)
            }
            Encoding::Unknown(_) => {
                let text = format!("pages in {}", values.page.encoding);
                findings.push(values.at.at(Finding::new(K::NotChecked, text)));
                Ok(None)
            }
            // Reported with the header.
            other if !encoding_fits(other, self.place.leaf.physical) => Ok(None),
            _ => self.dense_values(&values, n, of_page, findings),
        }
    }

    fn dense_values(
        &mut self,
        values: &LeveledPage<'_>,
        n: usize,
        of_page: &mut Option<DistinctValues>,
        findings: &mut Findings,
    ) -> Result<Option<ValueFacts>> {
        let LeveledPage { page, at, body_len, .. } = values;
        self.file.expand(n as u64, *body_len)?;
        let physical = self.place.leaf.physical;
        let previous = self.previous.take().filter(|_| self.file.footer.carries_prefix());
        let (bytes, budget) = (page.bytes.clone(), &self.file.budget);
        let mut decoder = ValueDecoder::new(physical, page.encoding, bytes, n, previous, budget)?;
        let mut slots = self.sorted.is_some().then(|| ValidSlots::new(page, &self.place.shape));
        let (mut facts, mut left, mut byte_len) = (ValueFacts::default(), n, 0u64);
        let mut is_valid = true;
        while left > 0 {
            let block = decoder.next_block(left)?;
            if is_valid && let Some(invalid) = self.rule.check(block, &self.place.order) {
                is_valid = false;
                let index = n - left + invalid.index;
                let text = format_args!("value {index} of the page: {}", invalid.message);
                findings.push(at.at(Finding::new(invalid.kind, text)));
            }
            byte_len = byte_len.saturating_add(block.byte_len());
            if self.file.level == CheckLevel::Truth {
                facts.add(block, &self.place.order)?;
                if let Some(of_page) = of_page {
                    of_page.add(block)?;
                }
                self.look_at(block, Some(at.number))?;
                if let (Some(sorted), Some(slots)) = (&mut self.sorted, &mut slots) {
                    sorted.add(block, slots, &self.place.order)?;
                }
            }
            left -= block.len();
        }
        if let (Some(sorted), Some(slots)) = (&mut self.sorted, &mut slots) {
            sorted.after_values(slots, &self.place.order)?;
        }
        self.previous = decoder.last_value();
        let prefixes = if self.is_byte_array() { 4 * n as u64 } else { 0 };
        let is_plain = page.encoding == Encoding::Plain && physical != Physical::Boolean;
        let rest = (page.bytes.len() as u64).saturating_sub(byte_len.saturating_add(prefixes));
        if is_plain && rest > 0 {
            let text = format_args!("{rest} bytes follow the last value of the page");
            findings.push(at.at(Finding::new(K::PageBytesLeft, text)));
        }
        Ok(Some(facts))
    }

    /// Looks at values that were not seen in the chunk before, or may have been.
    fn look_at(&mut self, block: ValueBlock<'_>, page: Option<usize>) -> Result<()> {
        if let Some(filter) = &mut self.filter {
            filter.add(block, page, &self.place.order);
        }
        if let Some(distinct) = &mut self.distinct
            && let Err(error) = distinct.add(block)
        {
            // Where there is not enough memory for all, they are not counted.
            self.distinct = None;
            if !self.place.is_alone {
                return Err(error);
            }
        }
        if let Some(geometries) = &mut self.geometries {
            // One that is no geometry is reported where it is found.
            let _ = block.slices().try_for_each(|value| geometries.push(value));
        }
        self.survey.as_mut().map_or(Ok(()), |survey| survey.look_at(block))
    }

    /// Checks the indices of a page, and looks at the entries that occur in it.
    fn indices(
        &mut self,
        values: &LeveledPage<'_>,
        n: usize,
        of_page: &mut Option<DistinctValues>,
        findings: &mut Findings,
    ) -> Result<Option<ValueFacts>> {
        let LeveledPage { page, at, .. } = values;
        let Some(mut dictionary) = self.dictionary.take() else {
            let is_missing = n > 0 && self.tally.dictionary_offset.is_none();
            if is_missing && !findings.has(K::DictionaryMissing) {
                let text = "a page of indices, and no dictionary page before it";
                findings.push(at.at(Finding::new(K::DictionaryMissing, text)));
            }
            return Ok((n == 0).then(ValueFacts::default));
        };
        let found = self.look_up(&mut dictionary, page, n, *at);
        let facts = match found {
            Ok(Ok(seen)) => {
                let mut facts = ValueFacts { values: n as u64, ..ValueFacts::default() };
                (facts.bytes, facts.nans) = (seen.bytes, seen.nans);
                if self.file.level == CheckLevel::Truth {
                    let order = &self.place.order;
                    dictionary.values.with_entries(&seen.in_page, |block| -> Result<()> {
                        facts.widen(block, order)?;
                        of_page.as_mut().map_or(Ok(()), |of_page| of_page.add(block))
                    })?;
                    let number = Some(at.number);
                    let look = |block: ValueBlock<'_>| self.look_at(block, number);
                    dictionary.values.with_entries(&seen.new, look)?;
                }
                Some(facts)
            }
            Ok(Err(index)) => {
                let entries = dictionary.values.len();
                let text = format_args!("index {index} of a dictionary of {entries} values");
                findings.push(at.at(Finding::new(K::DictionaryIndexInvalid, text)));
                None
            }
            Err(error) => {
                self.dictionary = Some(dictionary);
                return Err(error);
            }
        };
        self.dictionary = Some(dictionary);
        Ok(facts)
    }

    /// Reads the indices of a page; the first that has no entry is the inner error.
    fn look_up(
        &mut self,
        dictionary: &mut CheckedDictionary,
        page: &DataPage,
        n: usize,
        at: PageNumber,
    ) -> Result<Result<EntriesSeen, u32>> {
        /// Indices that are unpacked at a time.
        const SOME: usize = 1 << 14;
        let number = u32::try_from(at.number + 1).unwrap_or(u32::MAX);
        let mut seen = EntriesSeen::default();
        let mut slots = self.sorted.is_some().then(|| ValidSlots::new(page, &self.place.shape));
        let mut runs = indices(page.bytes.clone(), n)?;
        let (mut left, mut unpacked, mut value) = (n, Vec::new(), Vec::new());
        while left > 0 {
            unpacked.clear();
            let times = match runs.next_run(left.min(SOME))? {
                Run::Rle { value, n } => {
                    unpacked.push(value);
                    n
                }
                Run::Packed(packed) => {
                    memory::room_for_vectors(&mut unpacked, packed.len() + 8)?;
                    packed.unpack(&mut unpacked);
                    1
                }
            };
            left = left.saturating_sub(times * unpacked.len());
            for index in &unpacked {
                if !dictionary.mark(*index, number, times as u64, &mut seen)? {
                    return Ok(Err(*index));
                }
            }
            if let (Some(sorted), Some(slots)) = (&mut self.sorted, &mut slots) {
                for index in unpacked.iter().flat_map(|index| std::iter::repeat_n(index, times)) {
                    sorted.before_value(slots, &self.place.order)?;
                    dictionary.values.block().get(*index as usize, &mut value);
                    sorted.push(Some(&value), &self.place.order)?;
                }
            }
        }
        if let (Some(sorted), Some(slots)) = (&mut self.sorted, &mut slots) {
            sorted.after_values(slots, &self.place.order)?;
        }
        Ok(Ok(seen))
    }
}
