//! [`ChunkSurvey`]: what the pages of a column chunk hold, for statistics that its file lacks.
//!
//! Used by `column`, which fills it in while it checks, and by `rewrite::Fill`.

use foldhash::fast::RandomState;
use hashbrown::HashSet;

use super::facts::ValueFacts;
use super::levels::LevelFacts;
use super::page_kinds::PageKinds;
use super::sorting::SortedSlots;
use super::values::ValueBlock;
use crate::error::Result;
use crate::format::{ColumnOrder, GeospatialStatistics, SortingColumn};
use crate::limits::{Budget, Reservation};
use crate::memory;
use crate::stats::bloom;
use crate::stats::page_index::PageStatistics;

/// The request for a survey.
#[derive(Debug, Clone, Default)]
pub(crate) struct SurveyRequest {
    /// The order of its bounds, where the footer states none.
    pub(crate) order: Option<ColumnOrder>,
    /// Whether the hashes of its values are kept.
    pub(crate) hashes: bool,
    /// How its rows are compared, if they are.
    pub(crate) sorting: Option<SortingColumn>,
}

/// The pages of a chunk, and what all of them hold.
pub(crate) struct ChunkSurvey {
    pub(crate) pages: Vec<SurveyedPage>,
    /// How many pages there are of each type and encoding.
    pub(crate) kinds: PageKinds,
    pub(crate) definitions: Vec<u64>,
    pub(crate) repetitions: Vec<u64>,
    pub(crate) bounds: Option<(Vec<u8>, Vec<u8>)>,
    /// Values that are not null.
    pub(crate) values: u64,
    pub(crate) nulls: u64,
    pub(crate) nans: u64,
    /// Bytes of the values, without lengths.
    pub(crate) bytes: u64,
    /// Distinct values, if all pages are of one dictionary.
    pub(crate) distinct: Option<u64>,
    /// Hashes of the distinct values, if they were asked for.
    pub(crate) hashes: Option<ValueHashes>,
    pub(crate) geospatial: Option<GeospatialStatistics>,
    /// How the rows compare, if that was asked for.
    pub(crate) sorted: Option<SortedSlots>,
    memory: Reservation,
}

/// A data page.
pub(crate) struct SurveyedPage {
    pub(crate) offset: u64,
    /// Header and body.
    pub(crate) byte_len: u64,
    /// Rows of the chunk before it.
    pub(crate) first_row: u64,
    /// Whether it begins with a row, and has one.
    pub(crate) starts_row: bool,
    /// Bytes of its values, without lengths.
    pub(crate) bytes: u64,
    pub(crate) statistics: PageStatistics,
}

/// Hashes of values, as bloom filters have them.
pub(crate) struct ValueHashes {
    seen: HashSet<u64, RandomState>,
    memory: Reservation,
}

impl ValueHashes {
    fn new(budget: &Budget) -> Self {
        let memory = budget.reservation("the hashes of values");
        Self { seen: HashSet::with_hasher(RandomState::default()), memory }
    }

    /// Adds the values of a block.
    ///
    /// # Errors
    /// `Limit(Memory)`.
    fn add(&mut self, block: ValueBlock<'_>) -> Result<()> {
        /// Of an entry, with the share of what is empty, and of a table that is being copied.
        const ENTRY: usize = 3 * (size_of::<u64>() + 1);
        let needed = self.seen.len() + block.len();
        if needed > self.seen.capacity() {
            self.memory.resize(needed.max(2 * self.seen.capacity()).saturating_mul(ENTRY))?;
            let room = self.seen.try_reserve(block.len());
            room.map_err(|_| memory::none_for("the hashes of values"))?;
        }
        block.each(|value| {
            self.seen.insert(bloom::hash(value));
        });
        Ok(())
    }

    pub(crate) fn len(&self) -> u64 {
        self.seen.len() as u64
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = u64> {
        self.seen.iter().copied()
    }
}

impl ChunkSurvey {
    pub(super) fn new(request: &SurveyRequest, budget: &Budget) -> Self {
        Self {
            pages: Vec::new(),
            kinds: PageKinds::default(),
            definitions: Vec::new(),
            repetitions: Vec::new(),
            bounds: None,
            values: 0,
            nulls: 0,
            nans: 0,
            bytes: 0,
            distinct: None,
            hashes: request.hashes.then(|| ValueHashes::new(budget)),
            geospatial: None,
            sorted: None,
            memory: budget.reservation("what is known of pages"),
        }
    }

    /// Adds values that were not seen in the chunk before, or may have been.
    ///
    /// # Errors
    /// `Limit(Memory)`.
    pub(super) fn look_at(&mut self, block: ValueBlock<'_>) -> Result<()> {
        self.hashes.as_mut().map_or(Ok(()), |hashes| hashes.add(block))
    }

    /// Adds a page. Its bounds are in the order of the leaf.
    ///
    /// # Errors
    /// `Limit(Memory)`.
    pub(super) fn add_page(
        &mut self,
        (offset, byte_len, first_row): (u64, u64, u64),
        levels: &LevelFacts,
        facts: &ValueFacts,
        has_nan: bool,
    ) -> Result<()> {
        let of_bounds = facts.bounds.as_ref().map_or(0, |(min, max)| min.len() + max.len());
        let of_levels = (levels.definitions.len() + levels.repetitions.len()) * size_of::<i64>();
        self.memory.grow(size_of::<SurveyedPage>() + of_bounds + of_levels)?;
        let statistics = PageStatistics {
            bounds: facts.bounds.clone(),
            nulls: levels.slots - levels.values,
            nans: has_nan.then_some(facts.nans),
            entries: levels.slots,
            def_histogram: signed(&levels.definitions),
            rep_histogram: signed(&levels.repetitions),
            geospatial: None,
        };
        let starts_row = levels.starts_row && levels.rows > 0;
        let bytes = facts.bytes;
        let page = SurveyedPage { offset, byte_len, first_row, starts_row, bytes, statistics };
        memory::push(&mut self.pages, page)
    }
}

/// Counts as the format has them.
pub(crate) fn signed(counts: &[u64]) -> Vec<i64> {
    counts.iter().map(|count| i64::try_from(*count).unwrap_or(i64::MAX)).collect()
}
