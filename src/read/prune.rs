//! [`RowGroupPruner`] consults bloom filters, dictionaries and page indexes of a predicate's leaves
//! before a row group is read.
//!
//! Spec: PageIndex.md, BloomFilter.md. It runs after `Plan` and before `PageIndexPlan`, and returns
//! the row range without the pages that cannot hold a match. Trap: all of it may be wrong or
//! missing. Anything unsound is ignored, and the rows stay.

use std::ops::Range;
use std::sync::Arc;

use arrow_schema::DataType;
use bytes::Bytes;

use super::chunk::Pages;
use super::column::{ColumnSpec, LeafReader};
use super::filter::{Filter, LeafFacts, find};
use super::footer::WriterQuirks;
use super::page_list::PageList;
use super::plan::{Plan, RowRange};
use super::supplied::Step;
use crate::clock::Instant;
use crate::crypt::{ChunkDecryptor, Module, opened};
use crate::error::{Error, ErrorKind, Result, Spec};
use crate::format::{ColumnIndex, OffsetIndex};
use crate::limits::Reservation;
use crate::predicate::{PageFacts, PruneResult, dictionary_is_complete};
use crate::schema::convert::read_conversion;
use crate::selection::RowSelection;
use crate::stats::bloom::BloomLayout;
use crate::thrift::{self, Read};

/// A row group that is being pruned: whether, and where, it may hold a match of a predicate.
#[derive(Debug)]
pub(crate) struct RowGroupPruner {
    plan: Plan,
    range: RowRange,
    rows_in_group: u64,
    facts: Vec<LeafFacts>,
    pub(super) asked: Vec<IndexRequest>,
    pub(super) needs: Vec<Range<u64>>,
    found: PruneReport,
    pages: Vec<(usize, PageFacts)>,
    /// The memory of the dictionaries among the facts.
    dictionary_memory: Vec<Arc<Reservation>>,
}

/// Purpose of each requested range.
#[derive(Debug, Clone)]
pub(super) enum IndexRequest {
    /// The begin of a bloom filter, or all of it, and the hashes that are looked for.
    Bloom { leaf: usize, hashes: Vec<u64> },
    /// Blocks of a bloom filter; further ranges of the same follow.
    Blocks { leaf: usize, layout: BloomLayout, ranges: Vec<Range<u64>> },
    /// The next of the blocks.
    NextBlock,
    /// A dictionary page, and the type of its values.
    Dictionary { leaf: usize, data_type: DataType },
    /// A column index; the offset index of the same leaf follows.
    ColumnIndex { leaf: usize },
    /// Its offset index.
    OffsetIndex,
}

/// The findings of pruning a row group, and the indexes that they come from.
#[derive(Debug, Default)]
pub(crate) struct PruneReport {
    /// Number of data pages of the predicate's leaves that the page index covers.
    pub pages: u64,
    /// Number of those pages without any wanted row.
    pub pages_pruned: u64,
    /// The index that proved that no row can match, if none can.
    pub pruned_by: Option<PrunedBy>,
    /// Faults of the indexes that were ignored.
    pub ignored: Vec<Error>,
}

/// An index that proves that no row of a row group can match.
#[derive(Debug, Clone, Copy)]
pub(crate) enum PrunedBy {
    BloomFilter,
    Dictionary,
    PageIndex,
}

impl PruneReport {
    /// Counts the pages of leaves that begin in `part` of a row group: all, and those none of whose
    /// rows are in `wanted`.
    fn count_pages(
        &mut self,
        pages: &[(usize, PageFacts)],
        part: &Range<u64>,
        wanted: &RowSelection,
    ) {
        for (_, pages) in pages {
            let mut start = 0u64;
            for page in &pages.pages {
                let end = start.saturating_add(page.rows);
                if part.contains(&start) {
                    self.pages += 1;
                    self.pages_pruned += u64::from(!wanted.intersects(start..end));
                }
                start = end;
            }
        }
    }
}

/// The result of supplying a pruner: the remaining rows, `None` if there are none, and the report.
pub(crate) type PruneStep = Step<(Option<RowRange>, Box<PruneReport>), Box<RowGroupPruner>>;

/// Maximum size of a dictionary that is fetched for pruning, as a fraction (1/16) of the bytes to
/// read.
const DICTIONARY_SHARE: u64 = 16;

/// Maximum bytes of such a dictionary page.
const MAX_DICTIONARY_BYTES: u64 = 1 << 20;

/// The methods by which an engine inspects a plan before it reads.
#[cfg(feature = "engine")]
impl Plan {
    /// The parts of row groups whose metadata claim that all rows pass the filter, each as the
    /// index of its row group and its number of rows.
    pub fn claimed_rows(&self) -> impl Iterator<Item = (usize, u64)> {
        let claimed = self.ranges().iter().filter(|range| range.is_claimed_or_proven());
        claimed.map(|range| (range.row_group, range.count()))
    }

    /// Estimated bytes of column chunks that the read wants.
    ///
    /// # Errors
    /// `Malformed` if the metadata of a chunk are broken.
    pub fn wanted_bytes(&self) -> Result<u64> {
        let wanted = |range| self.row_group(range).map(|row_group| row_group.wanted_bytes());
        let mut bytes = self.ranges().iter().map(wanted);
        bytes.try_fold(0, |sum: u64, bytes| Ok(sum.saturating_add(bytes?)))
    }

    /// Whether page indexes cannot exclude rows of any remaining row group, though the filter tests
    /// columns: statistics prove that all rows pass, or no tested column has a page index.
    ///
    /// # Errors
    /// `Malformed` if the metadata of a chunk are broken.
    pub fn skips_page_indexes(&self) -> Result<bool> {
        let Some(filter) = self.filter() else { return Ok(false) };
        let tested = filter.bound.tested_leaves();
        if tested.is_empty() || self.ranges().is_empty() {
            return Ok(false);
        }
        for range in self.ranges().iter().filter(|range| !range.is_claimed_or_proven()) {
            for leaf in filter.bound.leaves_with_facts() {
                let chunk = self.footer().column_chunk_ref(range.row_group, leaf)?;
                if self.column_index(&chunk).is_some() && self.offset_index(&chunk).is_some() {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }
}

impl Plan {
    /// Asks more of a row group of [`Plan::ranges`] before it is read for the filter. Without one
    /// there is nothing to ask.
    ///
    /// # Errors
    /// `Malformed` if the metadata of a chunk are broken.
    pub(crate) fn pruner(&self, range: &RowRange) -> Result<RowGroupPruner> {
        RowGroupPruner::new(self, range)
    }
}

impl RowGroupPruner {
    pub(super) fn new(plan: &Plan, range: &RowRange) -> Result<Self> {
        let rows_in_group = plan.footer().row_group_rows(range.row_group)?;
        let mut pruner = Self {
            plan: plan.clone(),
            range: range.clone(),
            rows_in_group,
            facts: Vec::new(),
            asked: Vec::new(),
            needs: Vec::new(),
            found: PruneReport::default(),
            pages: Vec::new(),
            dictionary_memory: Vec::new(),
        };
        let Some(filter) = plan.filter().filter(|_| !range.is_claimed_or_proven()) else {
            return Ok(pruner);
        };
        if !filter.asks_metadata() {
            return Ok(pruner);
        }
        let footer = plan.footer();
        pruner.facts = filter.facts(footer, range.row_group, rows_in_group);
        let probes = plan.wiring().bloom_filters.then(|| filter.bound.bloom_probes());
        for probe in probes.into_iter().flatten() {
            let Some(found) = find(&pruner.facts, probe.leaf) else { continue };
            let Some(range) = plan.bloom_range(&found.meta, found.decryptor.is_some()) else {
                continue;
            };
            pruner.asked.push(IndexRequest::Bloom { leaf: probe.leaf, hashes: probe.hashes });
            pruner.needs.push(range);
        }
        let max = plan.bytes_of(range.row_group)? / DICTIONARY_SHARE;
        for (leaf, data_type) in filter.bound.tested_leaves() {
            let found =
                find(&pruner.facts, leaf).filter(|found| dictionary_is_complete(&found.meta));
            let Some(range) = found.and_then(|found| plan.dictionary_range(&found.meta)) else {
                continue;
            };
            if range.end - range.start <= max.min(MAX_DICTIONARY_BYTES) {
                pruner.asked.push(IndexRequest::Dictionary { leaf, data_type });
                pruner.needs.push(range);
            }
        }
        if plan.index_may_help(range.row_group)? {
            for found in &pruner.facts {
                let chunk = footer.column_chunk_ref(range.row_group, found.leaf)?;
                let (columns, offsets) = (plan.column_index(&chunk), plan.offset_index(&chunk));
                if let (Some(columns), Some(offsets)) = (columns, offsets) {
                    pruner.asked.extend([
                        IndexRequest::ColumnIndex { leaf: found.leaf },
                        IndexRequest::OffsetIndex,
                    ]);
                    pruner.needs.extend([columns, offsets]);
                }
            }
        }
        Ok(pruner)
    }

    /// The bytes wanted; often none.
    pub(crate) fn needs(&self) -> &[Range<u64>] {
        &self.needs
    }

    /// Takes the bytes wanted, in the same order.
    ///
    /// # Errors
    /// `Usage` if they are not as many as wanted.
    pub(crate) fn supply(mut self, bytes: &[Bytes]) -> Result<PruneStep> {
        super::supplied::same_number("RowGroupPruner::supply", self.needs.len(), bytes.len())?;
        let asked = std::mem::take(&mut self.asked);
        let needs = std::mem::take(&mut self.needs);
        for (i, asked) in asked.into_iter().enumerate() {
            let at = |i: usize| &bytes[i][..];
            if !matches!(asked, IndexRequest::Dictionary { .. }) {
                self.plan.keep_index(needs[i].start, at(i));
            }
            let leaf = match asked {
                IndexRequest::Bloom { leaf, .. }
                | IndexRequest::Blocks { leaf, .. }
                | IndexRequest::Dictionary { leaf, .. }
                | IndexRequest::ColumnIndex { leaf } => leaf,
                IndexRequest::NextBlock | IndexRequest::OffsetIndex => continue,
            };
            let is_bloom = matches!(asked, IndexRequest::Bloom { .. });
            let is_index = matches!(asked, IndexRequest::ColumnIndex { .. });
            let counters = self.plan.wiring().counters.clone();
            let start = counters.as_ref().map(|_| Instant::now());
            let read = match asked {
                IndexRequest::Bloom { leaf, hashes } => {
                    self.bloom(leaf, &hashes, needs[i].start, at(i))
                }
                IndexRequest::Blocks { leaf, layout, ranges } => {
                    let parts = (i..).take(ranges.len()).map(at);
                    self.set_bloom(leaf, layout.blocks(&ranges, parts));
                    Ok(())
                }
                IndexRequest::Dictionary { leaf, data_type } => {
                    self.dictionary(leaf, data_type, bytes[i].clone())
                }
                _ => self.page_facts(leaf, at(i), at(i + 1)),
            };
            if let (Some(counters), Some(start)) = (counters, start) {
                let nanos = if is_index { &counters.page_nanos } else { &counters.bloom_nanos };
                nanos.add_since(start);
            }
            if let Err(e) = read {
                let column = self.plan.footer().schema().leaf(leaf)?.path.dotted();
                let e = e.at_column(column).at_row_group(self.range.row_group);
                // A failed authentication ends the read. Some writers leave bloom filters
                // unencrypted although the column is encrypted: those are ignored.
                let is_plain_filter = is_bloom && e.kind() != ErrorKind::Crypto;
                if e.is_of_encryption() && !is_plain_filter {
                    return Err(e);
                }
                self.found.ignored.push(e);
            }
        }
        if !self.needs.is_empty() {
            return Ok(Step::NeedsMore(Box::new(self)));
        }
        self.finish()
    }

    /// Reads a bloom filter as far as it was fetched, or asks for the probed blocks.
    fn bloom(&mut self, leaf: usize, hashes: &[u64], start: u64, bytes: &[u8]) -> Result<()> {
        let decrypted = self.decryptor(leaf).map(|opener| decrypted_bloom(opener, bytes));
        let decrypted = decrypted.transpose()?;
        let bytes = decrypted.as_deref().unwrap_or(bytes);
        let Some(layout) = BloomLayout::parse(bytes)? else { return Ok(()) };
        let ranges = layout.ranges(hashes);
        let part = |range: &Range<u64>| {
            let at = |n: u64| usize::try_from(n).ok();
            bytes.get(at(range.start)?..at(range.end)?)
        };
        let parts: Option<Vec<&[u8]>> = ranges.iter().map(part).collect();
        if let Some(parts) = parts {
            self.set_bloom(leaf, layout.blocks(&ranges, parts));
            return Ok(());
        }
        if decrypted.is_some() {
            return Err(Error::malformed(
                Spec::BloomFilter,
                "the bits of the filter are fewer than its header says",
            ));
        }
        let of_file = |range: &Range<u64>| {
            let end = start.checked_add(range.end).filter(|end| *end <= self.plan.file_len())?;
            Some(start + range.start..end)
        };
        let Some(wanted) = ranges.iter().map(of_file).collect::<Option<Vec<_>>>() else {
            return Err(Error::malformed(
                Spec::BloomFilter,
                "the filter ends beyond the end of the file",
            ));
        };
        self.asked.push(IndexRequest::Blocks { leaf, layout, ranges });
        self.asked
            .extend(std::iter::repeat_n(IndexRequest::NextBlock, wanted.len().saturating_sub(1)));
        self.needs.extend(wanted);
        Ok(())
    }

    /// The decryptor of the modules of a leaf, if they are encrypted.
    fn decryptor(&self, leaf: usize) -> Option<&ChunkDecryptor> {
        find(&self.facts, leaf).and_then(|found| found.decryptor.as_ref())
    }

    fn set_bloom(&mut self, leaf: usize, blocks: crate::stats::bloom::Blocks) {
        if let Some(found) = self.facts.iter_mut().find(|found| found.leaf == leaf) {
            found.facts.bloom = Some(blocks);
        }
    }

    /// Decodes a dictionary page.
    fn dictionary(&mut self, leaf: usize, data_type: DataType, bytes: Bytes) -> Result<()> {
        let plan = &self.plan;
        let described = plan.footer().schema().leaf(leaf)?;
        let data_type = DataType::Dictionary(Box::new(DataType::Int32), Box::new(data_type));
        let conversion = read_conversion(&described, &data_type);
        let found = self.facts.iter_mut().find(|found| found.leaf == leaf);
        let (Some(conversion), Some(found)) = (conversion, found) else { return Ok(()) };
        let (keep_levels, slot, elements) = (false, 0, Vec::new());
        let leaf =
            ColumnSpec { leaf: described, data_type, conversion, keep_levels, slot, elements };
        let context = plan.page_context(&leaf, found.meta.codec, found.decryptor.as_ref());
        let slots = found.meta.num_values;
        let slots = u64::try_from(slots).map_err(|_| {
            let spec = Spec::Metadata("ColumnMetaData");
            Error::mismatch(spec, "num_values", "not negative", slots)
        })?;
        let pages = Pages::new(&PageList::whole(bytes, 0, slots), context, plan.budget());
        let mut reader = LeafReader::new(
            &leaf,
            pages,
            plan.options().utf8,
            WriterQuirks::default(),
            plan.budget(),
        )?;
        found.facts.dictionary = Step::from_result(reader.dictionary())?.done()?;
        self.dictionary_memory.extend(reader.into_dictionary_memory());
        Ok(())
    }

    /// Reads the two indexes of a leaf.
    fn page_facts(&mut self, leaf: usize, columns: &[u8], offsets: &[u8]) -> Result<()> {
        let opener = self.decryptor(leaf);
        let columns = opened(opener, Module::ColumnIndex, columns)?;
        let offsets = opened(opener, Module::OffsetIndex, offsets)?;
        let columns = ColumnIndex::read(&mut thrift::ThriftReader::new(&columns))?;
        let offsets = OffsetIndex::read(&mut thrift::ThriftReader::new(&offsets))?;
        let footer = self.plan.footer();
        let described = footer.schema().leaf(leaf)?;
        let order = footer.column_order(leaf);
        let pages =
            PageFacts::of_indexes(&described, order, &offsets, &columns, self.rows_in_group)?;
        if let Some(found) = find(&self.facts, leaf) {
            pages.check_against(&described, &found.facts)?;
            self.plan.keep_pages(self.range.row_group, leaf, &offsets);
        }
        self.pages.push((leaf, pages));
        Ok(())
    }

    /// The result, once all bytes were supplied.
    fn finish(mut self) -> Result<PruneStep> {
        let left = self.rows_left()?;
        Ok(Step::Done((left, self.found.into())))
    }

    fn rows_left(&mut self) -> Result<Option<RowRange>> {
        let (plan, range, rows) = (self.plan.clone(), self.range.clone(), self.rows_in_group);
        let Some(filter) = plan.filter().filter(|_| !range.is_claimed_or_proven()) else {
            return Ok(Some(range));
        };
        let result = filter.prune_result(rows, &self.facts);
        // A row group that is read in parts counts once.
        if let Some(counters) = plan.wiring().counters.as_deref().filter(|_| range.part.start == 0)
        {
            counters.add_row_group(result == PruneResult::Cannot);
        }
        Ok(match result {
            PruneResult::Cannot => {
                self.facts.iter_mut().for_each(|found| found.facts.dictionary = None);
                self.found.pruned_by = Some(match filter.prune_result(rows, &self.facts) {
                    PruneResult::Cannot => PrunedBy::BloomFilter,
                    _ => PrunedBy::Dictionary,
                });
                None
            }
            PruneResult::Always => Some(range.with_claim(filter, rows)),
            PruneResult::Might if !self.pages.is_empty() => self.rows_left_by_pages(filter)?,
            PruneResult::Might if plan.wiring().only_prunes => {
                Some(range.with_proven(RowSelection::all(rows)))
            }
            PruneResult::Might => Some(range),
        })
    }

    /// The rows whose pages may hold a match, by the page index.
    fn rows_left_by_pages(&mut self, filter: &Filter) -> Result<Option<RowRange>> {
        let Self { plan, range, rows_in_group: rows, facts, found, pages, .. } = self;
        let (rows, wiring) = (*rows, plan.wiring());
        let timed = wiring.counters.as_deref().map(|counters| (counters, Instant::now()));
        let parts = filter.bound.prune_pages(
            rows,
            |leaf| find(facts, leaf).map(|found| &found.facts),
            |leaf| pages.iter().find(|(of, _)| *of == leaf).map(|(_, pages)| pages),
        );
        let rows_with = |wanted: &dyn Fn(PruneResult) -> bool| {
            let ranges = parts.iter().filter(|(_, result)| wanted(*result));
            RowSelection::from_ranges(rows, ranges.map(|(range, _)| range.clone()))
        };
        let left = rows_with(&|result| result != PruneResult::Cannot)?;
        let kept = range.to_selection(rows)?.and(&left)?;
        let proven = match wiring.only_prunes {
            true => RowSelection::all(rows),
            false if !filter.trusts_claims() => RowSelection::none(rows),
            false => rows_with(&|result| result == PruneResult::Always)?,
        };
        // Of a row group that is read in parts, each page counts with the part that it begins in.
        let is_whole = range.part == (0..rows);
        found.count_pages(pages, &range.part, if is_whole { &kept } else { &left });
        found.pruned_by = kept.is_none().then_some(PrunedBy::PageIndex);
        if let Some((counters, start)) = timed {
            counters.page_nanos.add_since(start);
            counters.pages_pruned.add(found.pages_pruned);
            counters.pages_matched.add(found.pages - found.pages_pruned);
            counters.page_rows_pruned.add(range.count() - kept.count());
            counters.page_rows_matched.add(kept.count());
        }
        Ok(range.with_selection(kept).map(|range| range.with_proven(proven)))
    }
}

/// A bloom filter as it is where nothing is encrypted: its header, then its bits. Each is a module.
pub(super) fn decrypted_bloom(opener: &ChunkDecryptor, bytes: &[u8]) -> Result<Vec<u8>> {
    let (header, rest) = bytes.split_at(ChunkDecryptor::module_len(bytes)?);
    let bitset = rest.split_at(ChunkDecryptor::module_len(rest)?).0;
    let mut out = opener.open(Module::BloomFilterHeader, header)?;
    out.extend(opener.open(Module::BloomFilterBitset, bitset)?);
    Ok(out)
}
