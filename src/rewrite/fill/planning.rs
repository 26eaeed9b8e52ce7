//! [`Planner`]: looks at all column chunks of a file, and decides what is filled in.
//!
//! The chunks of a row group are looked at side by side; one for which there is too little memory
//! is looked at again alone.

use std::sync::Arc;

use super::additions::{
    ChunkAdditions, StoredIndexes, column_index_of_headers, encoded_len, located,
};
use super::gaps::{ChunkGaps, LeafTarget};
use super::headers::HeaderTally;
use super::parts::{FillPart, PartTally};
use super::request::FillRequest;
use crate::check::{
    ChunkSurvey, Finding, FindingKind as K, Severity, SortedSlots, SurveyRequest, Surveyor,
    first_unsorted,
};
use crate::error::{Error, Result, Spec};
use crate::format::{ColumnMetaData, ColumnOrder, SortingColumn};
use crate::io::{Pool, Source, map_in, read_exactly};
use crate::limits::Budget;
use crate::read::{ChunkWalk, column_index_range, decode, offset_index_range};
use crate::schema::Physical;
use crate::stats::page_index::PageStatistics;
use crate::write::CheckedSortOrder;
use crate::write::sorting::SortOrder;

/// The parts that are filled in.
pub(super) struct Planned {
    pub(super) rows: u64,
    pub(super) row_groups: Vec<PlannedGroup>,
    /// Whether the footer gets column orders.
    pub(super) declares_orders: bool,
    pub(super) tally: PartTally,
    pub(super) notes: Vec<String>,
}

/// Those that are filled in for a row group.
pub(super) struct PlannedGroup {
    /// By leaf.
    pub(super) chunks: Vec<ChunkAdditions>,
    pub(super) sorting: Option<Vec<SortingColumn>>,
}

/// The outcome of a look at a chunk.
#[derive(Default)]
struct ChunkFilling {
    additions: ChunkAdditions,
    tally: PartTally,
    sorted: Option<SortedSlots>,
    note: Option<String>,
    is_starved: bool,
}

/// Looks at a file.
pub(super) struct Planner<'a> {
    fill: &'a FillRequest,
    surveyor: Surveyor,
    leaves: Vec<LeafTarget>,
    sorting: Vec<SortingColumn>,
    declares_orders: bool,
    budget: &'a Budget,
}

/// Kinds of findings about values, which stay as they are.
const OF_VALUES: [K; 11] = [
    K::TextNotUtf8,
    K::JsonInvalid,
    K::BsonInvalid,
    K::DecimalTooLarge,
    K::IntegerTooWide,
    K::GeometryInvalid,
    K::VariantInvalid,
    K::FileReferenceInvalid,
    K::DictionaryUnsorted,
    // Of statements that are made anew with the page sizes.
    K::ChunkUncompressedSizeWrong,
    K::EncodingStatsPageType,
];

/// Kinds of findings about bounds that are replaced.
const OF_BOUNDS: [K; 8] = [
    K::ChunkMinTooLarge,
    K::ChunkMaxTooSmall,
    K::ChunkMinNotExact,
    K::ChunkMaxNotExact,
    K::BoundsReversed,
    K::ColumnIndexMinTooLarge,
    K::ColumnIndexMaxTooSmall,
    K::ColumnIndexBoundsReversed,
];

impl<'a> Planner<'a> {
    pub(super) fn new(fill: &'a FillRequest, budget: &'a Budget) -> Result<Self> {
        let metadata = fill.reader.metadata();
        let footer = metadata.footer();
        let orders = footer.index().head().column_orders.as_ref();
        let has_orders = orders.is_some_and(|orders| orders.len() >= footer.schema().leaves_len());
        let declares_orders =
            !has_orders && fill.decodes_values && fill.parts.contains(&FillPart::ColumnOrders);
        let leaves = footer.schema().leaves()?;
        let by = SortOrder { columns: fill.sorted.clone(), is_checked: true };
        let sorting = CheckedSortOrder::new(&by, leaves.iter().map(|leaf| (leaf, 0)))?;
        let sorting = sorting.map(|by| by.columns()).unwrap_or_default();
        let mut leaves: Vec<LeafTarget> = leaves
            .into_iter()
            .map(|leaf| {
                let stated = footer.column_order(leaf.index);
                LeafTarget::new(leaf, stated, declares_orders)
            })
            .collect();
        for by in &sorting {
            let leaf = usize::try_from(by.column_idx).ok().and_then(|at| leaves.get_mut(at));
            if let Some(leaf) = leaf {
                leaf.sorting = Some(by.clone());
            }
        }
        set_blooms(fill, &mut leaves)?;
        let wants_values = !sorting.is_empty() || !fill.blooms.is_empty();
        if wants_values && !fill.decodes_values {
            let text = "bloom filters and sorting columns need the values, not only page headers";
            return Err(Error::usage(text));
        }
        let source: Arc<dyn Source> = fill.reader.source().clone();
        let limits = fill.reader.read_options().limits.clone();
        let file_len = fill.reader.file_len();
        let surveyor = Surveyor::new(source, footer.clone(), file_len, limits, budget.clone());
        Ok(Self { fill, surveyor, leaves, sorting, declares_orders, budget })
    }

    pub(super) fn run(self) -> Result<Planned> {
        let footer = self.fill.reader.metadata().footer();
        let pool = self.fill.reader.threads_chosen().pool(|| Some(Pool::Global))?;
        let (mut row_groups, mut tally) = (Vec::new(), PartTally::default());
        let mut notes = Vec::new();
        let mut rows = 0u64;
        for row_group in 0..footer.row_groups() {
            rows = rows.saturating_add(footer.row_group_rows(row_group)?);
            let head = footer.index().head().row_groups.get(row_group);
            let present = head.map_or(0, |head| head.columns.len());
            if present != self.leaves.len() {
                let (spec, expected) = (Spec::Metadata("RowGroup"), self.leaves.len());
                let wrong = Error::mismatch(spec, "columns", expected, present);
                return Err(wrong.at_row_group(row_group));
            }
            let stated = head.and_then(|head| head.sorting_columns.as_ref());
            let is_sorted = self.is_stated(stated).map_err(|e| e.at_row_group(row_group))?;
            let look = |leaf: usize| self.chunk(row_group, leaf, is_sorted, false);
            let all = map_in(pool.as_ref(), (0..present).collect(), look)?;
            let mut chunks = Vec::with_capacity(present);
            let mut sorted = Vec::new();
            for (leaf, mut chunk) in all.into_iter().enumerate() {
                if chunk.is_starved {
                    chunk = self.chunk(row_group, leaf, is_sorted, true)?;
                }
                tally.join(chunk.tally);
                sorted.extend(chunk.sorted.map(|slots| (leaf, slots)));
                notes.extend(chunk.note);
                chunks.push(chunk.additions);
            }
            let sorting = self.sorting(row_group, is_sorted, &sorted)?;
            if let Some(sorting) = &sorting {
                let bytes = sorting.iter().map(encoded_len).sum::<Result<_>>()?;
                tally.add(FillPart::SortingColumns, 1, bytes);
            }
            row_groups.push(PlannedGroup { chunks, sorting });
        }
        if self.declares_orders {
            let orders = self.leaves.len() as u64;
            let bytes = orders.saturating_mul(encoded_len(&ColumnOrder::TypeOrder)?);
            tally.add(FillPart::ColumnOrders, orders, bytes);
        }
        Ok(Planned { rows, row_groups, declares_orders: self.declares_orders, tally, notes })
    }

    /// Whether a row group states a sort order already.
    fn is_stated(&self, stated: Option<&Vec<SortingColumn>>) -> Result<bool> {
        let Some(stated) = stated.filter(|stated| !stated.is_empty()) else { return Ok(false) };
        if stated.starts_with(&self.sorting) {
            return Ok(true);
        }
        Err(Error::usage("the file states already that its rows are sorted by other columns"))
    }

    /// The sorting columns of a row group, if they are added.
    fn sorting(
        &self,
        row_group: usize,
        is_sorted: bool,
        found: &[(usize, SortedSlots)],
    ) -> Result<Option<Vec<SortingColumn>>> {
        if self.sorting.is_empty() || is_sorted {
            return Ok(None);
        }
        let of = |by: &SortingColumn| {
            let leaf = usize::try_from(by.column_idx).ok()?;
            found.iter().find(|(at, _)| *at == leaf).map(|(_, slots)| slots)
        };
        let columns: Vec<&SortedSlots> = self.sorting.iter().filter_map(of).collect();
        let text = if columns.len() < self.sorting.len() {
            "the rows could not be compared by all columns that they are said to be sorted by"
                .to_owned()
        } else if let Some(row) = first_unsorted(&columns) {
            format!("row {row} of the row group is not sorted as was said")
        } else {
            return Ok(Some(self.sorting.clone()));
        };
        Err(Error::usage(text).at_row_group(row_group))
    }

    /// Looks at a chunk.
    fn chunk(
        &self,
        row_group: usize,
        leaf: usize,
        is_sorted: bool,
        is_alone: bool,
    ) -> Result<ChunkFilling> {
        let target =
            self.leaves.get(leaf).ok_or_else(|| Error::internal("there is no such leaf"))?;
        let look = || self.look(row_group, target, is_sorted, is_alone);
        look().map_err(|e| e.at_row_group(row_group).at_column(target.leaf.path.dotted()))
    }

    fn look(
        &self,
        row_group: usize,
        target: &LeafTarget,
        is_sorted: bool,
        is_alone: bool,
    ) -> Result<ChunkFilling> {
        let reader = &self.fill.reader;
        let (footer, limits) = (reader.metadata().footer(), &reader.read_options().limits);
        let leaf = target.leaf.index;
        ChunkWalk::new(footer, reader.file_len(), row_group, leaf, limits)?;
        let chunk = footer.column_chunk(row_group, leaf)?;
        let meta = chunk.meta_data.as_ref().ok_or_else(|| {
            Error::malformed(Spec::Metadata("ColumnChunk"), "meta_data is missing")
        })?;
        let mut gaps = ChunkGaps::find(&chunk, meta, target, &self.fill.parts);
        if is_sorted {
            gaps.sorting = None;
        }
        let mut out = ChunkFilling::default();
        if self.fill.decodes_values && gaps.needs_values(&target.leaf) {
            let survey = self.survey(row_group, target, &gaps, is_alone, &mut out)?;
            if let Some(mut survey) = survey {
                out.sorted = survey.sorted.take();
                let old = self.old_indexes(row_group, leaf)?;
                let bound_bytes = (&gaps, self.fill.bound_bytes);
                let (meta, tally) = ((meta, old), &mut out.tally);
                out.additions.add_survey(&survey, meta, target, bound_bytes, tally)?;
                self.note_missing(row_group, target, &gaps, &mut out);
                (gaps.encoding_stats, gaps.offset_index) = (false, false);
                let held = out.additions.byte_len();
                out.additions.memory.push(self.budget.take_for("what is filled in", held)?);
            }
        }
        if !out.is_starved && gaps.needs_headers() {
            self.add_headers(row_group, target, &gaps, &mut out)?;
        }
        Ok(out)
    }

    fn note_missing(
        &self,
        row_group: usize,
        target: &LeafTarget,
        gaps: &ChunkGaps,
        out: &mut ChunkFilling,
    ) {
        let name = target.leaf.path.dotted();
        if gaps.offset_index && out.additions.offset_index.is_none() {
            out.note = Some(format!(
                "row group {row_group}, column {name}: a page does not begin with a row, so that \
                 there can be no page index"
            ));
        } else if gaps.column_index && out.additions.column_index.is_none() {
            out.note = Some(format!(
                "row group {row_group}, column {name}: a page has no bounds (its values are NaN), \
                 so that there can be no column index"
            ));
        }
    }

    /// Decodes a chunk; without a survey, a note says why.
    fn survey(
        &self,
        row_group: usize,
        target: &LeafTarget,
        gaps: &ChunkGaps,
        is_alone: bool,
        out: &mut ChunkFilling,
    ) -> Result<Option<ChunkSurvey>> {
        let request = SurveyRequest {
            order: target.replaces_bounds.then_some(ColumnOrder::TypeOrder),
            hashes: gaps.bloom.is_some(),
            sorting: gaps.sorting.clone(),
        };
        let done = self.surveyor.chunk(row_group, target.leaf.index, &request, is_alone)?;
        if done.is_starved && !is_alone {
            out.is_starved = true;
            return Ok(None);
        }
        let is_replaced = |kind: &K| target.replaces_bounds && OF_BOUNDS.contains(kind);
        let is_lie = |finding: &&Finding| {
            let kind = &finding.kind;
            finding.severity() == Severity::Error && !OF_VALUES.contains(kind) && !is_replaced(kind)
        };
        if let Some(lie) = done.findings.iter().find(is_lie) {
            return Err(refusal(lie));
        }
        if done.survey.is_none() {
            let why = done.findings.iter().find(|finding| finding.kind == K::NotChecked);
            let why = why.map_or("not all of it could be decoded", |finding| &finding.message);
            let name = target.leaf.path.dotted();
            out.note = Some(format!("row group {row_group}, column {name}: {why}"));
            if gaps.sorting.is_some() || gaps.replaces_bounds {
                return Err(Error::unsupported("filling in", why));
            }
        }
        Ok(done.survey)
    }

    /// Adds what page headers tell.
    fn add_headers(
        &self,
        row_group: usize,
        target: &LeafTarget,
        gaps: &ChunkGaps,
        out: &mut ChunkFilling,
    ) -> Result<()> {
        let mut found = HeaderTally { is_exact: true, ..Default::default() };
        let mut memory = self.budget.reservation("what is known of pages");
        self.surveyor.pages(row_group, target.leaf.index, |page| {
            memory.grow(size_of::<PageStatistics>() + page.header_len)?;
            found.add(&page, target, gaps.checksums)
        })?;
        if gaps.encoding_stats {
            out.additions.set_encoding_stats(found.kinds.counts(), &mut out.tally)?;
        }
        if gaps.checksums && found.unchecked > 0 {
            out.tally.add(FillPart::Checksums, found.unchecked, found.growth);
            out.additions.checksums = true;
        }
        if !gaps.offset_index {
            return Ok(());
        }
        let index = found.is_exact.then(|| located(found.pages.iter().copied(), found.rows));
        let Some(index) = index.flatten() else {
            let name = target.leaf.path.dotted();
            out.note = Some(format!(
                "row group {row_group}, column {name}: page headers do not tell the rows of pages"
            ));
            return Ok(());
        };
        out.additions.set_offset_index(index, &mut out.tally)?;
        if gaps.column_index && found.has_bounds() {
            let index = column_index_of_headers(&found.bounds, target, self.fill.bound_bytes);
            if let Some(index) = index {
                out.tally.add(FillPart::ColumnIndex, 1, encoded_len(&index)?);
                out.additions.column_index = Some(index);
            }
        }
        out.additions.memory.push(memory);
        Ok(())
    }

    fn old_indexes(&self, row_group: usize, leaf: usize) -> Result<StoredIndexes> {
        let reader = &self.fill.reader;
        let (footer, file_len) = (reader.metadata().footer(), reader.file_len());
        let places = footer.index().index_places(row_group, [leaf])?;
        let places = places.first().copied().unwrap_or_default();
        let read = |range: Option<std::ops::Range<u64>>| -> Result<_> {
            let Some(range) = range else { return Ok(None) };
            let len = usize::try_from(range.end - range.start).unwrap_or(usize::MAX);
            let _memory = self.budget.take_for("an index", len)?;
            let source: &dyn Source = &**reader.source();
            Ok(Some(read_exactly(source, range)?))
        };
        Ok(StoredIndexes {
            offset: decode(read(offset_index_range(&places, file_len)?)?.as_deref())?,
            column: decode(read(column_index_range(&places, file_len)?)?.as_deref())?,
        })
    }
}

/// The error for a file that states what is not true.
fn refusal(lie: &Finding) -> Error {
    let text = format_args!(
        "{} ({}); nothing is added to a file that states what is not true (marq check tells more)",
        lie.message, lie.kind
    );
    let mut error = Error::malformed(Spec::Metadata("ColumnChunk"), text);
    if let Some(page) = lie.at.page {
        error = error.at_page(page);
    }
    match lie.at.offset {
        Some(offset) => error.at_offset(offset),
        None => error,
    }
}

fn set_blooms(fill: &FillRequest, leaves: &mut [LeafTarget]) -> Result<()> {
    for (name, options) in &fill.blooms {
        let fpp = options.fpp;
        if !(fpp > 0.0 && fpp < 1.0) {
            let text = format_args!("{name}: a false positive probability of {fpp}");
            return Err(Error::usage(text));
        }
        let found = leaves.iter_mut().find(|target| target.leaf.path.is_dotted(name));
        let Some(target) = found else {
            return Err(Error::usage(format_args!(
                "there is no column \"{name}\" for a bloom filter"
            )));
        };
        if target.leaf.physical == Physical::Boolean {
            let text = format_args!("{name}: the format has no bloom filters of BOOLEAN columns");
            return Err(Error::usage(text));
        }
        target.bloom = Some(*options);
    }
    Ok(())
}

impl ChunkAdditions {
    /// Bytes of memory held, about.
    fn byte_len(&self) -> usize {
        let offsets = self.offset_index.as_ref().map_or(0, |index| index.page_locations.len() * 32);
        let bounds = self.column_index.as_ref().map_or(0, |index| {
            let values = index.min_values.iter().chain(&index.max_values);
            values.map(|bound| bound.len() + 32).sum()
        });
        offsets + bounds + self.bloom.as_ref().map_or(0, Vec::len)
    }
}

/// The parts of a chunk's metadata that are written anew.
pub(super) fn apply(meta: &mut ColumnMetaData, additions: &ChunkAdditions) {
    let ChunkAdditions { encoding_stats, statistics, geospatial, sizes, .. } = additions;
    if let Some(stats) = encoding_stats {
        meta.encoding_stats = Some(stats.clone());
    }
    if let Some(statistics) = statistics {
        meta.statistics = Some(statistics.clone());
    }
    if let Some(geospatial) = geospatial {
        meta.geospatial_statistics = Some(geospatial.clone());
    }
    if let Some(sizes) = sizes {
        meta.size_statistics = Some(sizes.clone());
    }
}
