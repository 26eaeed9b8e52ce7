//! Checks the dictionary page of a chunk.

use super::state::{CheckedDictionary, ColumnCheck};
use crate::check::distinct::DistinctValues;
use crate::check::finding::{CheckLevel, Finding, Findings};
use crate::check::kind::FindingKind as K;
use crate::check::order::LeafOrder;
use crate::check::values::{DictionaryValues, ValueBlock};
use crate::error::Result;
use crate::memory;
use crate::page::PageMemory;

impl ColumnCheck<'_> {
    pub(super) fn dictionary_page(
        &mut self,
        (page, memory, body_len): (crate::page::DictionaryPage, PageMemory, usize),
        (is_first, is_sorted): (bool, bool),
        offset: u64,
        findings: &mut Findings,
    ) -> Result<()> {
        let at = |mut finding: Finding| {
            finding.at.is_dictionary_page = true;
            finding.with_offset(offset)
        };
        if !is_first {
            let text = "a dictionary page that is not the first page of its column chunk";
            findings.push(at(Finding::new(K::DictionaryPageMisplaced, text)));
            return Ok(());
        }
        if self.file.level < CheckLevel::Values {
            return Ok(());
        }
        let (file, order) = (self.file, &self.place.order);
        let physical = self.place.leaf.physical;
        // Values of no bytes may be any number.
        let values = file.expand(page.values as u64, body_len).and_then(|()| {
            let bytes = page.bytes;
            let mut values = DictionaryValues::new(physical, bytes, page.values, &file.budget)?;
            // They outlive what was read with them, whose memory is given back.
            if memory.is_none() && !file.source.in_memory() {
                values.copy_bytes()?;
            }
            Ok(values)
        });
        let values = match values {
            Ok(values) => values,
            Err(error) if self.must_wait(&error) => return Err(error),
            Err(error) => {
                findings.push(at(Finding::of_error(K::ValuesUnreadable, &error)));
                return Ok(());
            }
        };
        if let Some(invalid) = self.rule.check(values.block(), order) {
            let text = format_args!("entry {}: {}", invalid.index, invalid.message);
            findings.push(at(Finding::new(invalid.kind, text)));
        }
        if is_sorted && !is_ascending(values.block(), order) {
            let text = "the dictionary is said to be sorted, and is not";
            findings.push(at(Finding::new(K::DictionaryUnsorted, text)));
        }
        let mut is_distinct = false;
        if file.level == CheckLevel::Truth {
            let mut distinct = DistinctValues::new(&file.budget);
            match distinct.add(values.block()) {
                Err(error) if self.must_wait(&error) => return Err(error),
                Err(error) => {
                    let text = format_args!("whether its entries differ: {}", error.message());
                    findings.push(at(Finding::new(K::NotChecked, text)));
                }
                Ok(()) if distinct.count() < values.len() as u64 => {
                    let (all, different) = (values.len(), distinct.count());
                    let text = format_args!("{all} entries, {different} different");
                    findings.push(at(Finding::new(K::DictionaryValueRepeats, text)));
                }
                Ok(()) => is_distinct = true,
            }
        }
        let mut nans = Vec::new();
        if order.has_nan() {
            memory::room(&mut nans, values.len())?;
            values.block().each(|value| nans.push(order.is_nan(value)));
        }
        let entries = file.budget.take_for("the entries of a dictionary", values.len() * 5)?;
        let last_page = memory::filled(0, values.len())?;
        let memory = (memory, entries);
        let entries = CheckedDictionary { values, last_page, nans, is_distinct, _memory: memory };
        self.dictionary = Some(entries);
        Ok(())
    }
}

/// Whether no value is less than the one before it.
fn is_ascending(block: ValueBlock<'_>, order: &LeafOrder) -> bool {
    let Some(by) = order.natural else { return true };
    let (mut last, mut is_ascending): (Option<Vec<u8>>, bool) = (None, true);
    block.each(|value| {
        let is_less = last.as_ref().is_some_and(|last| {
            order.compare(by, last, value) == Some(std::cmp::Ordering::Greater)
        });
        is_ascending &= !is_less;
        let kept = last.get_or_insert_default();
        kept.clear();
        kept.extend_from_slice(value);
    });
    is_ascending
}
