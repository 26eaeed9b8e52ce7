//! [`ColumnCheck`]: the state of the check of a column chunk.

use crate::check::boxes::BoxedGeometries;
use crate::check::context::FileContext;
use crate::check::distinct::DistinctValues;
use crate::check::facts::ValueFacts;
use crate::check::filter::FilterCheck;
use crate::check::finding::Finding;
use crate::check::levels::{LevelFacts, LevelShape};
use crate::check::order::LeafOrder;
use crate::check::page_index::{ColumnEntries, OffsetEntries};
use crate::check::page_kinds::PageKinds;
use crate::check::rules::ValueRule;
use crate::check::siblings::GroupLevels;
use crate::check::sorting::SortedSlots;
use crate::check::survey::ChunkSurvey;
use crate::check::values::DictionaryValues;
use crate::error::{Error, ErrorKind, LimitKind, Result};
use crate::format::{ColumnMetaData, PageHeader};
use crate::limits::Reservation;
use crate::memory;
use crate::page::{PageMemory, PageOpener};
use crate::schema::{Leaf, Physical};

/// The chunk that is checked.
pub(super) struct ChunkPlace {
    pub(super) row_group: usize,
    pub(super) leaf: Leaf,
    pub(super) order: LeafOrder,
    pub(super) shape: LevelShape,
    /// Rows of the row group.
    pub(super) rows: u64,
    pub(super) is_alone: bool,
}

/// Checks the pages of a column chunk.
pub(super) struct ColumnCheck<'f> {
    pub(super) file: &'f FileContext,
    pub(super) meta: &'f ColumnMetaData,
    pub(super) place: ChunkPlace,
    pub(super) rule: ValueRule,
    pub(super) opener: PageOpener,
    pub(super) offsets: Option<OffsetEntries>,
    pub(super) columns: Option<ColumnEntries<'f>>,
    pub(super) dictionary: Option<CheckedDictionary>,
    /// The last value of the page before, where pages depend on each other.
    pub(super) previous: Option<Vec<u8>>,
    pub(super) filter: Option<FilterCheck>,
    pub(super) distinct: Option<DistinctValues>,
    pub(super) geometries: Option<BoxedGeometries>,
    pub(super) sorted: Option<SortedSlots>,
    pub(super) survey: Option<ChunkSurvey>,
    /// The groups around the leaf, by its levels.
    pub(super) groups: Vec<GroupLevels>,
    pub(super) tally: Tally,
}

/// The pages of a chunk that were found so far, counted.
pub(super) struct Tally {
    pub(super) pages: usize,
    pub(super) data_pages: usize,
    pub(super) slots: u64,
    pub(super) rows: u64,
    /// Bytes of all pages, uncompressed, with their headers.
    pub(super) uncompressed: u64,
    pub(super) kinds: PageKinds,
    pub(super) definitions: Vec<u64>,
    pub(super) repetitions: Vec<u64>,
    /// The definition level of the last slot.
    pub(super) last_definition: Option<u16>,
    pub(super) facts: ValueFacts,
    /// Where the dictionary page and the first data page are.
    pub(super) dictionary_offset: Option<u64>,
    pub(super) data_offset: Option<u64>,
    /// Whether all pages were found, and whether all levels and all values were decoded.
    pub(super) has_all_pages: bool,
    pub(super) has_all_levels: bool,
    pub(super) has_all_values: bool,
}

impl Tally {
    pub(super) fn new(shape: &LevelShape) -> Self {
        Self {
            pages: 0,
            data_pages: 0,
            slots: 0,
            rows: 0,
            uncompressed: 0,
            kinds: PageKinds::default(),
            definitions: vec![0; usize::from(shape.max_def) + 1],
            repetitions: vec![0; usize::from(shape.max_rep) + 1],
            last_definition: None,
            facts: ValueFacts::default(),
            dictionary_offset: None,
            data_offset: None,
            has_all_pages: true,
            has_all_levels: true,
            has_all_values: true,
        }
    }

    pub(super) fn add_levels(&mut self, levels: &LevelFacts) {
        self.slots += levels.slots;
        self.rows += levels.rows;
        self.last_definition = levels.last_definition.or(self.last_definition);
        for (all, of_page) in [
            (&mut self.definitions, &levels.definitions),
            (&mut self.repetitions, &levels.repetitions),
        ] {
            all.iter_mut().zip(of_page).for_each(|(all, of_page)| *all += of_page);
        }
    }
}

/// The dictionary of a chunk, and which of its entries occur.
pub(super) struct CheckedDictionary {
    pub(super) values: DictionaryValues,
    /// For each entry, the last page that has it, counted from 1.
    pub(super) last_page: Vec<u32>,
    /// Which entries are NaN, if some can be.
    pub(super) nans: Vec<bool>,
    /// Whether the entries are known to differ.
    pub(super) is_distinct: bool,
    pub(super) _memory: (PageMemory, Reservation),
}

impl CheckedDictionary {
    /// Notes that an entry occurs; false if there is none.
    pub(super) fn mark(
        &mut self,
        index: u32,
        page: u32,
        times: u64,
        seen: &mut EntriesSeen,
    ) -> Result<bool> {
        let at = index as usize;
        let Some(last) = self.last_page.get_mut(at) else { return Ok(false) };
        if *last == 0 {
            memory::push(&mut seen.new, index)?;
        }
        if *last != page {
            memory::push(&mut seen.in_page, index)?;
            *last = page;
        }
        let bytes = self.values.byte_len_of(index).saturating_mul(times);
        seen.bytes = seen.bytes.saturating_add(bytes);
        if self.nans.get(at).copied().unwrap_or(false) {
            seen.nans += times;
        }
        Ok(true)
    }
}

/// The entries of a dictionary that occur in a page.
#[derive(Default)]
pub(super) struct EntriesSeen {
    pub(super) in_page: Vec<u32>,
    /// Those that occurred in no page before.
    pub(super) new: Vec<u32>,
    pub(super) bytes: u64,
    pub(super) nans: u64,
}

/// A data page that is decoded.
#[derive(Clone, Copy)]
pub(super) struct PageNumber {
    pub(super) number: usize,
    pub(super) offset: u64,
}

impl PageNumber {
    pub(super) fn at(self, finding: Finding) -> Finding {
        finding.with_page(Some(self.number)).with_offset(self.offset)
    }
}

impl ColumnCheck<'_> {
    /// Whether an error ends the check of the chunk: for want of memory it is checked again alone.
    pub(super) fn must_wait(&self, error: &Error) -> bool {
        is_passed_on(error) && (error.kind() == ErrorKind::Io || !self.place.is_alone)
    }

    pub(super) fn is_byte_array(&self) -> bool {
        self.place.leaf.physical == Physical::ByteArray
    }

    /// Counts the slots of a page that could not be opened.
    pub(super) fn miss_page(&mut self, header: &PageHeader) {
        let v1 = header.data_page_header.as_ref().map(|inner| inner.num_values);
        let v2 = header.data_page_header_v2.as_ref().map(|inner| inner.num_values);
        let Some(slots) = v1.or(v2) else { return };
        self.tally.slots += u64::try_from(slots).unwrap_or(0);
        self.tally.has_all_levels = false;
        self.tally.has_all_values = false;
    }
}

/// Whether an error is not one of the page: the source failed, or there is no memory.
pub(super) fn is_passed_on(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Io | ErrorKind::Limit(LimitKind::Memory))
}
