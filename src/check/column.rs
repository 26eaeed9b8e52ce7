//! [`ColumnCheck`]: walks over the pages of a column chunk, and compares what they hold with what
//! the file states.
//!
//! One pass: each page is read, opened, and its levels and values decoded once. Values are looked
//! at where they are decoded, and none is kept. Of pages of indices, the entries that occur are
//! looked at, each once for a page.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use super::chunk_metadata::{ChunkFooter, range_of};
use super::context::FileContext;
use super::distinct::DistinctValues;
use super::facts::ValueFacts;
use super::filter::FilterCheck;
use super::finding::{CheckLevel, Finding, Findings};
use super::kind::FindingKind as K;
use super::levels::{self, LevelFacts, LevelShape, ValidSlots};
use super::order::LeafOrder;
use super::page_index::{ColumnEntries, FoundPage, OffsetEntries, PageTruth, is_same};
use super::pages::{FoundBytes, PageWalk};
use super::rules::ValueRule;
use super::sorting::SortedSlots;
use super::statistics::{self, Scope, Truth};
use super::values::{Block, DictionaryValues, ValueDecoder, indices};
use crate::crypt::{ChunkDecryptor, Module};
use crate::encoding::rle::Run;
use crate::error::{Error, ErrorKind, LimitKind, Result, Spec};
use crate::format::{
    BoundingBox, ColumnChunk, ColumnMetaData, Encoding, GeospatialStatistics, PageHeader, PageType,
    SortingColumn, Statistics,
};
use crate::geo::{Edges, GeospatialCollector};
use crate::limits::Reservation;
use crate::page::{DataPage, Page, PageMemory, PageOpener, PagePosition};
use crate::read::{chunk_range, page_context};
use crate::schema::{Leaf, Physical};

/// What came of the check of a chunk.
pub(super) struct ChunkOutcome {
    pub(super) findings: Findings,
    /// How its rows compare, if the row group is sorted by it.
    pub(super) sorted: Option<SortedSlots>,
    /// Whether there was too little memory while other chunks were checked.
    pub(super) is_starved: bool,
}

/// Checks a column chunk as far as the level says. `is_alone` says that no other is checked at the
/// same time, so that a page that does not fit into memory never will.
///
/// # Errors
/// `Io`.
pub(super) fn check_chunk(
    file: &FileContext,
    row_group: usize,
    leaf: usize,
    is_alone: bool,
) -> Result<ChunkOutcome> {
    let mut out = ChunkOutcome { findings: Findings::default(), sorted: None, is_starved: false };
    let node = file.footer.schema().leaf_node(leaf)?;
    let column: Arc<str> = node.path().dotted().into();
    out.findings = Findings::of_chunk(row_group, &column);
    // What is wrong with the leaf is said of the schema.
    let Ok(leaf) = file.footer.schema().leaf(leaf) else { return Ok(out) };
    let chunk = match file.footer.column_chunk(row_group, leaf.index) {
        Ok(chunk) => chunk,
        Err(error) => {
            out.findings.push(Finding::of_error(K::ChunkUnreadable, &error));
            return Ok(out);
        }
    };
    let orders = file.footer.index().head().column_orders.as_ref();
    // A list that is shorter than the leaves is none.
    let orders = orders.filter(|orders| orders.len() >= file.footer.schema().leaves_len());
    let order = LeafOrder::new(&leaf, orders.and_then(|orders| orders.get(leaf.index)));
    let shape = LevelShape::new(node);
    let rows = file.footer.row_group_rows(row_group).unwrap_or(0);
    let footer = ChunkFooter { file, leaf: &leaf, order: &order, shape: &shape, rows };
    footer.check(&chunk, &mut out.findings);
    let is_elsewhere = chunk.file_path.as_ref().is_some_and(|path| !path.is_empty());
    let is_same_type =
        chunk.meta_data.as_ref().is_some_and(|meta| meta.r#type == leaf.physical.format_type());
    if file.level == CheckLevel::Footer || is_elsewhere || !is_same_type {
        return Ok(out);
    }
    let place = ChunkPlace { row_group, leaf, order, shape, rows, is_alone };
    check_bytes(file, &chunk, place, &mut out)?;
    Ok(out)
}

/// Checks the bytes of a chunk.
fn check_bytes(
    file: &FileContext,
    chunk: &ColumnChunk,
    place: ChunkPlace,
    out: &mut ChunkOutcome,
) -> Result<()> {
    let (row_group, index) = (place.row_group, place.leaf.index);
    let found = file.footer.column_chunk_ref(row_group, index).and_then(|found| {
        let range = chunk_range(&file.footer, file.file_len, row_group, index, &found);
        let decryptor = file.footer.chunk_decryptor(row_group, index, &found)?;
        Ok((range, decryptor))
    });
    let (range, decryptor) = match found {
        Ok(found) => found,
        Err(error) => {
            out.findings.push(Finding::of_error(K::ChunkUnreadable, &error));
            return Ok(());
        }
    };
    let range = match range {
        Ok(range) if range.is_empty() || file.has_room_for(&range) => range,
        Ok(range) => {
            let text = format_args!("the pages lie in {} to {}", range.start, range.end);
            out.findings.push(Finding::new(K::ChunkOutsideFile, text));
            return Ok(());
        }
        Err(error) => {
            // A negative number was reported already.
            if !out.findings.has(K::ChunkSizeNegative) {
                out.findings.push(Finding::of_error(K::ChunkOutsideFile, &error));
            }
            return Ok(());
        }
    };
    let checked = ColumnCheck::run(file, chunk, place, decryptor, range, out);
    match checked {
        Err(error) if error.kind() == ErrorKind::Io => Err(error),
        Err(error) => {
            out.is_starved = error.kind() == ErrorKind::Limit(LimitKind::Memory);
            out.findings.push(Finding::of_error(K::ValuesUnreadable, &error));
            Ok(())
        }
        Ok(()) => Ok(()),
    }
}

/// The chunk that is checked.
struct ChunkPlace {
    row_group: usize,
    leaf: Leaf,
    order: LeafOrder,
    shape: LevelShape,
    /// Rows of the row group.
    rows: u64,
    is_alone: bool,
}

/// What was found in the pages of a chunk so far.
struct Tally {
    pages: usize,
    data_pages: usize,
    slots: u64,
    rows: u64,
    /// Bytes of all pages, uncompressed, with their headers.
    uncompressed: u64,
    encodings: Vec<(PageType, Encoding, u64)>,
    definitions: Vec<u64>,
    repetitions: Vec<u64>,
    facts: ValueFacts,
    /// Where the dictionary page and the first data page are.
    dictionary_offset: Option<u64>,
    data_offset: Option<u64>,
    /// Whether all pages were found, and whether all levels and all values were decoded.
    has_all_pages: bool,
    has_all_levels: bool,
    has_all_values: bool,
}

/// The dictionary of a chunk, and which of its entries occur.
struct ChunkDictionary {
    values: DictionaryValues,
    /// For each entry, the last page that has it, counted from 1.
    last_page: Vec<u32>,
    /// Which entries are NaN, if some can be.
    nans: Vec<bool>,
    _memory: (PageMemory, Reservation),
}

/// Checks the pages of a column chunk.
struct ColumnCheck<'f> {
    file: &'f FileContext,
    meta: &'f ColumnMetaData,
    place: ChunkPlace,
    rule: ValueRule,
    opener: PageOpener,
    offsets: Option<OffsetEntries>,
    columns: Option<ColumnEntries<'f>>,
    dictionary: Option<ChunkDictionary>,
    /// The last value of the page before, where pages depend on each other.
    previous: Option<Vec<u8>>,
    filter: Option<FilterCheck>,
    distinct: Option<DistinctValues>,
    geometries: Option<GeospatialCollector>,
    sorted: Option<SortedSlots>,
    tally: Tally,
}

/// A data page that is decoded.
#[derive(Clone, Copy)]
struct PageNumber {
    number: usize,
    offset: u64,
}

impl PageNumber {
    fn at(self, finding: Finding) -> Finding {
        finding.with_page(Some(self.number)).with_offset(self.offset)
    }
}

impl ColumnCheck<'_> {
    fn run(
        file: &FileContext,
        chunk: &ColumnChunk,
        place: ChunkPlace,
        decryptor: Option<ChunkDecryptor>,
        range: Range<u64>,
        out: &mut ChunkOutcome,
    ) -> Result<()> {
        let Some(meta) = &chunk.meta_data else { return Ok(()) };
        let findings = &mut out.findings;
        let places = [
            (Module::OffsetIndex, chunk.offset_index_offset, chunk.offset_index_length),
            (Module::ColumnIndex, chunk.column_index_offset, chunk.column_index_length),
        ];
        let [offset_bytes, column_bytes] = places.map(|(module, offset, length)| {
            index_bytes(file, module, (offset, length), decryptor.as_ref())
        });
        let offsets = opened(offset_bytes, K::OffsetIndexUnreadable, findings)?;
        let columns = opened(column_bytes, K::ColumnIndexUnreadable, findings)?;
        let read =
            |(bytes, _memory): &(Bytes, Reservation)| OffsetEntries::read(bytes, &file.budget);
        let offsets =
            opened(offsets.as_ref().map(read).transpose(), K::OffsetIndexUnreadable, findings)?;
        let read = |(bytes, _memory)| ColumnEntries::read(bytes, &file.budget);
        let columns = columns.as_ref().map(|(bytes, memory)| (&bytes[..], memory));
        let columns = opened(columns.map(read).transpose(), K::ColumnIndexUnreadable, findings)?;
        let filter = FilterCheck::read(file, meta, decryptor.as_ref(), findings);
        let filter = opened(filter, K::BloomFilterUnreadable, findings)?;
        let mut context = page_context(&file.footer, &place.leaf, meta.codec, &file.limits);
        context.verify_checksums = false;
        context.decryptor = decryptor;
        let mut check = ColumnCheck {
            file,
            meta,
            rule: ValueRule::new(&place.leaf),
            opener: PageOpener::new(context, &file.budget),
            offsets,
            columns,
            dictionary: None,
            previous: None,
            filter,
            distinct: None,
            geometries: None,
            sorted: None,
            tally: Tally::new(&place.shape),
            place,
        };
        check.prepare();
        check.walk(range, findings)?;
        check.finish(findings);
        out.sorted = check.sorted.take();
        Ok(())
    }

    /// Makes what collects the statistics that are stated.
    fn prepare(&mut self) {
        if self.file.level < CheckLevel::Truth {
            return;
        }
        let (file, place) = (self.file, &self.place);
        let stated = self.meta.statistics.as_ref();
        if stated.is_some_and(|stated| stated.distinct_count.is_some()) {
            self.distinct = Some(DistinctValues::new(&file.budget));
        }
        if self.meta.geospatial_statistics.is_some() {
            self.geometries = Edges::for_leaf(&place.leaf).map(GeospatialCollector::new);
        }
        let groups = &file.footer.index().head().row_groups;
        let sorting = groups.get(place.row_group).and_then(|group| group.sorting_columns.as_ref());
        let is_this =
            |sorting: &&SortingColumn| usize::try_from(sorting.column_idx) == Ok(place.leaf.index);
        if let Some(sorting) = sorting.into_iter().flatten().find(is_this) {
            self.sorted = SortedSlots::new(&place.order, &place.shape, sorting, &file.budget);
        }
    }

    fn walk(&mut self, range: Range<u64>, findings: &mut Findings) -> Result<()> {
        let slots = u64::try_from(self.meta.num_values).unwrap_or(0);
        let mut walk = PageWalk::new(self.file, range);
        while !walk.is_done() {
            let is_complete = self.tally.slots >= slots && self.tally.pages > 0;
            if is_complete && self.file.footer.has_short_chunks() {
                break;
            }
            let Tally { pages, data_pages, .. } = self.tally;
            let position = PagePosition { is_first: pages == 0, data_pages };
            let page = match walk.next_page(self.opener.context(), position) {
                Ok(page) => page,
                Err(error) if is_passed_on(&error) => return Err(error),
                Err(error) => {
                    self.lose(&walk, is_complete, &error, findings);
                    break;
                }
            };
            self.page(page, findings)?;
        }
        Ok(())
    }

    /// Reports what stands where a page should.
    fn lose(
        &mut self,
        walk: &PageWalk<'_>,
        is_complete: bool,
        error: &Error,
        findings: &mut Findings,
    ) {
        let offset = walk.offset();
        if is_complete {
            let left = walk.bytes_left();
            let stated = self.meta.total_compressed_size;
            let found = stated.saturating_sub(i64::try_from(left).unwrap_or(i64::MAX));
            let finding = Finding::lie(K::ChunkBytesLeft, "total_compressed_size", stated, found);
            findings.push(finding.with_offset(offset));
            return;
        }
        self.tally.has_all_pages = false;
        let kind = match error.kind() {
            ErrorKind::Malformed(Spec::Pages) => K::PageOutsideChunk,
            _ => K::PageHeaderUnreadable,
        };
        let number = (self.tally.data_pages > 0).then_some(self.tally.data_pages);
        let finding = Finding::of_error(kind, error);
        findings.push(finding.with_page(number).with_offset(offset));
    }

    fn page(&mut self, page: FoundBytes, findings: &mut Findings) -> Result<()> {
        let FoundBytes { stored, body, offset, end } = page;
        let header = &*stored.header;
        let is_data = matches!(header.r#type, PageType::DataPage | PageType::DataPageV2);
        let number = is_data.then_some(self.tally.data_pages);
        let is_dictionary = header.r#type == PageType::DictionaryPage;
        let at = |mut finding: Finding| {
            finding.at.is_dictionary_page = is_dictionary;
            finding.with_page(number).with_offset(offset)
        };
        let raw = u64::try_from(header.uncompressed_page_size).unwrap_or(0);
        self.tally.uncompressed += raw + stored.len as u64;
        self.tally.pages += 1;
        self.tally.data_pages += usize::from(is_data);
        if is_data {
            self.tally.data_offset.get_or_insert(offset);
        }
        if let Some(stated) = header.crc {
            let (stated, found) = (stated.cast_unsigned(), crc32fast::hash(&body));
            if stated != found {
                let (stated, found) = (format!("{stated:#010x}"), format!("{found:#010x}"));
                let name = "the checksum of the page";
                findings.push(at(Finding::lie(K::PageChecksumWrong, name, stated, found)));
            }
        }
        if let Err(text) = check_header(header) {
            findings.push(at(Finding::new(K::PageHeaderIncomplete, text)));
            self.tally.has_all_levels &= !is_data;
            self.tally.has_all_values &= !is_data;
            return Ok(());
        }
        self.check_encoding(header, number, offset, findings);
        let body_len = body.len();
        let opened = match self.opener.open_verified(header, body, stored.body) {
            Ok(opened) => opened,
            Err(error) if self.must_wait(&error) => return Err(error),
            Err(error) => {
                findings.push(at(Finding::of_error(K::PageBodyUnreadable, &error)));
                self.miss_page(header);
                None
            }
        };
        match opened {
            None => Ok(()),
            Some(Page::Dictionary(page, memory)) => {
                let is_sorted = header.dictionary_page_header.as_ref();
                let is_sorted = is_sorted.and_then(|inner| inner.is_sorted) == Some(true);
                let is_first = self.tally.pages == 1;
                self.dictionary_page((page, memory), (is_first, is_sorted), offset, findings)
            }
            Some(Page::Data(page)) => {
                let byte_len = end.saturating_sub(offset);
                let page_number = PageNumber { number: number.unwrap_or(0), offset };
                self.data_page(*page, header, page_number, (byte_len, body_len), findings)
            }
        }
    }

    /// Whether an error ends the check of the chunk: for want of memory it is checked again alone.
    fn must_wait(&self, error: &Error) -> bool {
        is_passed_on(error) && (error.kind() == ErrorKind::Io || !self.place.is_alone)
    }

    /// Counts the slots of a page that could not be opened.
    fn miss_page(&mut self, header: &PageHeader) {
        let v1 = header.data_page_header.as_ref().map(|inner| inner.num_values);
        let v2 = header.data_page_header_v2.as_ref().map(|inner| inner.num_values);
        let Some(slots) = v1.or(v2) else { return };
        self.tally.slots += u64::try_from(slots).unwrap_or(0);
        self.tally.has_all_levels = false;
        self.tally.has_all_values = false;
    }

    /// Counts the page by its encoding, and checks that its type may be in it.
    fn check_encoding(
        &mut self,
        header: &PageHeader,
        number: Option<usize>,
        offset: u64,
        findings: &mut Findings,
    ) {
        let Some(encoding) = encoding_of(header) else { return };
        let known = &mut self.tally.encodings;
        let is_it = |(r#type, of, _): &&mut (PageType, Encoding, u64)| {
            *r#type == header.r#type && *of == encoding
        };
        match known.iter_mut().find(is_it) {
            Some((.., count)) => *count += 1,
            None => known.push((header.r#type, encoding, 1)),
        }
        let is_dictionary = header.r#type == PageType::DictionaryPage;
        let fits = match is_dictionary {
            true => matches!(encoding, Encoding::Plain | Encoding::PlainDictionary),
            false => encoding_fits(encoding, self.place.leaf.physical),
        };
        if !fits {
            let physical = self.place.leaf.physical;
            let (kind, text) = match is_dictionary {
                true => (K::DictionaryEncodingWrong, format!("a dictionary page in {encoding}")),
                false => (K::EncodingMisplaced, format!("{physical} in {encoding}")),
            };
            let mut finding = Finding::new(kind, text);
            finding.at.is_dictionary_page = is_dictionary;
            findings.push(finding.with_page(number).with_offset(offset));
        }
        let levels = header.data_page_header.as_ref();
        let is_packed = levels.is_some_and(|inner| {
            let LevelShape { max_def, max_rep, .. } = self.place.shape;
            (max_def > 0 && inner.definition_level_encoding == Encoding::BitPacked)
                || (max_rep > 0 && inner.repetition_level_encoding == Encoding::BitPacked)
        });
        let is_old = encoding == Encoding::PlainDictionary || is_packed;
        if is_old && !findings.has(K::EncodingDeprecated) {
            let text = format_args!("pages in PLAIN_DICTIONARY, or levels in BIT_PACKED");
            findings.push(Finding::new(K::EncodingDeprecated, text));
        }
    }

    fn dictionary_page(
        &mut self,
        (page, memory): (crate::page::DictionaryPage, PageMemory),
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
        self.tally.dictionary_offset = Some(offset);
        if self.file.level < CheckLevel::Values {
            return Ok(());
        }
        let (file, order) = (self.file, &self.place.order);
        let physical = self.place.leaf.physical;
        let values = DictionaryValues::new(physical, page.bytes, page.values, &file.budget);
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
        if file.level == CheckLevel::Truth {
            let mut distinct = DistinctValues::new(&file.budget);
            let is_counted = distinct.add(values.block()).is_ok();
            if is_counted && distinct.count() < values.len() as u64 {
                let text = format_args!("{} entries, {} different", values.len(), distinct.count());
                findings.push(at(Finding::new(K::DictionaryValueRepeats, text)));
            }
        }
        let mut nans = Vec::new();
        if order.has_nan() {
            values.block().each(|value| nans.push(order.is_nan(value)));
        }
        let entries = file.budget.take_for("the entries of a dictionary", values.len() * 5)?;
        let last_page = vec![0; values.len()];
        let memory = (memory, entries);
        self.dictionary = Some(ChunkDictionary { values, last_page, nans, _memory: memory });
        Ok(())
    }
}

impl ColumnCheck<'_> {
    fn data_page(
        &mut self,
        page: DataPage,
        header: &PageHeader,
        at: PageNumber,
        (byte_len, body_len): (u64, usize),
        findings: &mut Findings,
    ) -> Result<()> {
        // Levels are counted 64 at a time.
        let counted = self
            .file
            .expand(page.slots as u64 / 64, body_len)
            .and_then(|()| levels::count(&page, &self.place.shape));
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
        let wants_distinct = self.file.level == CheckLevel::Truth
            && stated.is_some_and(|stated| stated.distinct_count.is_some());
        let mut of_page = wants_distinct.then(|| DistinctValues::new(&self.file.budget));
        let values = PageValues { page, levels: &levels, at, body_len };
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
            return Ok(());
        }
        let order = &self.place.order;
        if let Some(columns) = &self.columns {
            let PageNumber { number, offset } = at;
            let page = PageTruth { number, offset, levels: &levels, facts: facts.as_ref() };
            columns.check_page(&page, order, findings);
        }
        let Some(facts) = facts else { return Ok(()) };
        if let Some(offsets) = self.offsets.as_ref().filter(|_| self.is_byte_array()) {
            offsets.check_bytes(at.number, facts.bytes, findings);
        }
        if let Some(stated) = stated {
            let distinct = of_page.map(|values| values.count());
            let nulls = levels.slots - levels.values;
            let truth = Truth { facts: &facts, nulls, distinct, is_whole: true };
            statistics::check_against(stated, order, &truth, scope, findings);
        }
        self.tally.facts.merge(&facts, order);
        Ok(())
    }

    fn is_byte_array(&self) -> bool {
        self.place.leaf.physical == Physical::ByteArray
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

    /// Decodes the values of a page; `None` if a fault was found, and reported.
    fn values(
        &mut self,
        values: PageValues<'_>,
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
        values: &PageValues<'_>,
        n: usize,
        of_page: &mut Option<DistinctValues>,
        findings: &mut Findings,
    ) -> Result<Option<ValueFacts>> {
        let PageValues { page, at, body_len, .. } = values;
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
                facts.add(block, &self.place.order);
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
    fn look_at(&mut self, block: Block<'_>, page: Option<usize>) -> Result<()> {
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
        Ok(())
    }

    /// Checks the indices of a page, and looks at the entries that occur in it.
    fn indices(
        &mut self,
        values: &PageValues<'_>,
        n: usize,
        of_page: &mut Option<DistinctValues>,
        findings: &mut Findings,
    ) -> Result<Option<ValueFacts>> {
        let PageValues { page, at, .. } = values;
        let Some(mut dictionary) = self.dictionary.take() else {
            if n > 0 && self.tally.dictionary_offset.is_none() {
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
                        facts.widen(block, order);
                        of_page.as_mut().map_or(Ok(()), |of_page| of_page.add(block))
                    })?;
                    let number = Some(at.number);
                    let look = |block: Block<'_>| self.look_at(block, number);
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
        dictionary: &mut ChunkDictionary,
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
                    packed.unpack(&mut unpacked);
                    1
                }
            };
            left = left.saturating_sub(times * unpacked.len());
            for index in &unpacked {
                if !dictionary.mark(*index, number, times as u64, &mut seen) {
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

/// A data page whose levels are known.
struct PageValues<'a> {
    page: DataPage,
    levels: &'a LevelFacts,
    at: PageNumber,
    body_len: usize,
}

/// The entries of a dictionary that occur in a page.
#[derive(Default)]
struct EntriesSeen {
    in_page: Vec<u32>,
    /// Those that occurred in no page before.
    new: Vec<u32>,
    bytes: u64,
    nans: u64,
}

impl ChunkDictionary {
    /// Notes that an entry occurs; false if there is none.
    fn mark(&mut self, index: u32, page: u32, times: u64, seen: &mut EntriesSeen) -> bool {
        let at = index as usize;
        let Some(last) = self.last_page.get_mut(at) else { return false };
        if *last == 0 {
            seen.new.push(index);
        }
        if *last != page {
            seen.in_page.push(index);
            *last = page;
        }
        let bytes = self.values.byte_len_of(index).saturating_mul(times);
        seen.bytes = seen.bytes.saturating_add(bytes);
        if self.nans.get(at).copied().unwrap_or(false) {
            seen.nans += times;
        }
        true
    }
}

impl Tally {
    fn new(shape: &LevelShape) -> Self {
        Self {
            pages: 0,
            data_pages: 0,
            slots: 0,
            rows: 0,
            uncompressed: 0,
            encodings: Vec::new(),
            definitions: vec![0; usize::from(shape.max_def) + 1],
            repetitions: vec![0; usize::from(shape.max_rep) + 1],
            facts: ValueFacts::default(),
            dictionary_offset: None,
            data_offset: None,
            has_all_pages: true,
            has_all_levels: true,
            has_all_values: true,
        }
    }

    fn add_levels(&mut self, levels: &LevelFacts) {
        self.slots += levels.slots;
        self.rows += levels.rows;
        for (all, of_page) in [
            (&mut self.definitions, &levels.definitions),
            (&mut self.repetitions, &levels.repetitions),
        ] {
            all.iter_mut().zip(of_page).for_each(|(all, of_page)| *all += of_page);
        }
    }

    /// Slots without a value.
    fn nulls(&self) -> u64 {
        self.slots - self.definitions.last().copied().unwrap_or(0).min(self.slots)
    }
}

impl ColumnCheck<'_> {
    /// Compares what the footer states of the chunk with what its pages were.
    fn finish(&mut self, findings: &mut Findings) {
        if self.tally.has_all_pages {
            self.check_counts(findings);
            self.check_offsets(findings);
            self.check_encodings(findings);
        }
        let is_whole = self.tally.has_all_pages && self.tally.has_all_levels;
        let (order, shape) = (&self.place.order, &self.place.shape);
        if let Some(columns) = &self.columns {
            if self.tally.has_all_pages {
                columns.check_len(self.tally.data_pages, shape, findings);
            }
            columns.check_alone(order, findings);
        }
        if let Some(offsets) = self.offsets.as_ref().filter(|_| self.tally.has_all_pages) {
            offsets.check_len(self.tally.data_pages, self.is_byte_array(), findings);
        }
        if let Some(filter) = self.filter.take() {
            filter.finish(findings);
        }
        if self.file.level < CheckLevel::Truth {
            return;
        }
        let has_all_values = is_whole && self.tally.has_all_values;
        if let Some(stated) = &self.meta.statistics {
            let distinct = self.distinct.as_ref().map(DistinctValues::count);
            let (facts, nulls) = (&self.tally.facts, self.tally.nulls());
            let truth = Truth { facts, nulls, distinct, is_whole: has_all_values };
            statistics::check_against(stated, order, &truth, Scope::CHUNK, findings);
        }
        if is_whole {
            self.check_histograms(findings);
        }
        if has_all_values {
            self.check_bytes(findings);
            self.check_geometries(findings);
        } else {
            // Rows that could not be decoded cannot be compared.
            self.sorted = None;
        }
    }

    fn check_counts(&self, findings: &mut Findings) {
        let Tally { slots, rows, uncompressed, has_all_levels, .. } = self.tally;
        let stated = self.meta.num_values;
        if u64::try_from(stated) != Ok(slots) && stated >= 0 {
            findings.push(Finding::lie(K::ChunkValuesWrong, "num_values", stated, slots));
        }
        if has_all_levels && rows != self.place.rows {
            let text = format_args!(
                "the column chunk has {rows} rows, and its row group {}",
                self.place.rows
            );
            let mut finding = Finding::new(K::ChunkRowsWrong, text);
            finding.stated = Some(self.place.rows.to_string());
            finding.found = Some(rows.to_string());
            findings.push(finding);
        }
        let stated = self.meta.total_uncompressed_size;
        let is_encrypted = self.opener.context().decryptor.is_some();
        // Of encrypted pages, the format does not say what counts.
        if !is_encrypted && stated >= 0 && u64::try_from(stated) != Ok(uncompressed) {
            let name = "total_uncompressed_size";
            let kind = K::ChunkUncompressedSizeWrong;
            findings.push(Finding::lie(kind, name, stated, uncompressed));
        }
    }

    fn check_offsets(&self, findings: &mut Findings) {
        let Tally { dictionary_offset, data_offset, .. } = self.tally;
        let stated = self.meta.dictionary_page_offset.filter(|offset| *offset != 0);
        let stated = stated.and_then(|offset| u64::try_from(offset).ok());
        let or_none = |offset: Option<u64>| {
            offset.map_or_else(|| "none".to_owned(), |offset| offset.to_string())
        };
        if stated != dictionary_offset {
            let (stated, found) = (or_none(stated), or_none(dictionary_offset));
            let name = "dictionary_page_offset";
            findings.push(Finding::lie(K::DictionaryOffsetWrong, name, stated, found));
        }
        let stated_data = u64::try_from(self.meta.data_page_offset).ok();
        if data_offset.is_some() && stated_data != data_offset {
            // The chunk begins there, with a dictionary page that is not stated.
            let is_of_dictionary = stated.is_none() && stated_data == dictionary_offset;
            if !is_of_dictionary {
                let (stated, found) = (or_none(stated_data), or_none(data_offset));
                let name = "data_page_offset";
                findings.push(Finding::lie(K::DataPageOffsetWrong, name, stated, found));
            }
        }
    }

    fn check_encodings(&self, findings: &mut Findings) {
        let found = &self.tally.encodings;
        let listed = &self.meta.encodings;
        // An empty list is as good as none.
        for (r#type, encoding, _) in found.iter().filter(|_| !listed.is_empty()) {
            // Old and new writers name dictionary pages differently.
            let is_same = |listed: &Encoding| {
                let is_plain =
                    |of: Encoding| matches!(of, Encoding::Plain | Encoding::PlainDictionary);
                listed == encoding
                    || (*r#type == PageType::DictionaryPage
                        && is_plain(*listed)
                        && is_plain(*encoding))
            };
            if !listed.iter().any(is_same) {
                let text = format_args!("there are pages in {encoding}, which is not listed");
                findings.push(Finding::new(K::EncodingUnlisted, text));
            }
        }
        let is_of_levels =
            |encoding: &Encoding| matches!(encoding, Encoding::Rle | Encoding::BitPacked);
        let is_used = |encoding: &Encoding| {
            *encoding == Encoding::Plain || found.iter().any(|(_, of, _)| of == encoding)
        };
        for encoding in listed.iter().filter(|of| !is_of_levels(of) && !is_used(of)) {
            let text = format_args!("{encoding} is listed, and no page is in it");
            findings.push(Finding::new(K::EncodingUnused, text));
        }
        let Some(stated) = self.meta.encoding_stats.as_ref().filter(|stats| !stats.is_empty())
        else {
            return;
        };
        let mut kinds: Vec<(PageType, Encoding)> =
            found.iter().map(|(r#type, encoding, _)| (*r#type, *encoding)).collect();
        for stats in stated {
            if !kinds.contains(&(stats.page_type, stats.encoding)) {
                kinds.push((stats.page_type, stats.encoding));
            }
        }
        for (r#type, encoding) in kinds {
            let of_found = found.iter().filter(|(t, e, _)| (*t, *e) == (r#type, encoding));
            let count: u64 = of_found.map(|(.., count)| count).sum();
            let same = stated.iter().filter(|s| (s.page_type, s.encoding) == (r#type, encoding));
            let sum: i64 = same.map(|stats| i64::from(stats.count)).sum();
            if u64::try_from(sum) != Ok(count) && sum >= 0 {
                let name = format!("the count of {type} in {encoding}");
                findings.push(Finding::lie(K::EncodingStatsWrong, &name, sum, count));
            }
        }
    }

    fn check_histograms(&self, findings: &mut Findings) {
        let Some(sizes) = &self.meta.size_statistics else { return };
        let Tally { definitions, repetitions, .. } = &self.tally;
        for (kind, stated, found) in [
            (K::ChunkDefinitionHistogramWrong, &sizes.definition_level_histogram, definitions),
            (K::ChunkRepetitionHistogramWrong, &sizes.repetition_level_histogram, repetitions),
        ] {
            let stated = stated.as_ref().filter(|stated| stated.len() == found.len());
            let Some(stated) = stated.filter(|stated| !is_same(stated, found)) else { continue };
            let (stated, found) = (format!("{stated:?}"), format!("{found:?}"));
            findings.push(Finding::lie(kind, "a histogram", stated, found));
        }
    }

    fn check_bytes(&self, findings: &mut Findings) {
        let sizes = self.meta.size_statistics.as_ref();
        let stated = sizes.and_then(|sizes| sizes.unencoded_byte_array_data_bytes);
        let found = self.tally.facts.bytes;
        if let Some(stated) = stated.filter(|_| self.is_byte_array())
            && u64::try_from(stated) != Ok(found)
        {
            let name = "unencoded_byte_array_data_bytes";
            findings.push(Finding::lie(K::ChunkBytesWrong, name, stated, found));
        }
    }

    fn check_geometries(&self, findings: &mut Findings) {
        let found = self.geometries.as_ref().and_then(GeospatialCollector::finish);
        let (Some(stated), Some(found)) = (&self.meta.geospatial_statistics, found) else { return };
        if let (Some(stated), Some(found)) = (&stated.bbox, &found.bbox)
            && let Some((name, stated, found)) = outside(stated, found)
        {
            let (stated, found) = (format!("{stated:?}"), format!("{found:?}"));
            findings.push(Finding::lie(K::ChunkBoxTooSmall, name, stated, found));
        }
        let GeospatialStatistics { geospatial_types: Some(types), .. } = stated else { return };
        let missing = found.geospatial_types.iter().flatten().find(|code| !types.contains(code));
        if let Some(code) = missing.filter(|_| !types.is_empty()) {
            let text = format_args!("there are geometries of the type {code}, which is not stated");
            findings.push(Finding::new(K::ChunkGeometryTypeMissing, text));
        }
    }
}

/// A side of a box that some geometry is outside of.
fn outside(stated: &BoundingBox, found: &BoundingBox) -> Option<(&'static str, f64, f64)> {
    // A box around the antimeridian has what is east of the one, or west of the other.
    let wraps = stated.xmin > stated.xmax;
    let x = [("xmin", stated.xmin, found.xmin, false), ("xmax", stated.xmax, found.xmax, true)];
    let y = [("ymin", stated.ymin, found.ymin, false), ("ymax", stated.ymax, found.ymax, true)];
    let pair = |name, stated: Option<f64>, found: Option<f64>, is_max| {
        Some((name, stated?, found?, is_max))
    };
    let others = [
        pair("zmin", stated.zmin, found.zmin, false),
        pair("zmax", stated.zmax, found.zmax, true),
        pair("mmin", stated.mmin, found.mmin, false),
        pair("mmax", stated.mmax, found.mmax, true),
    ];
    let x = x.into_iter().filter(|_| !wraps);
    let sides = x.chain(y).chain(others.into_iter().flatten());
    sides
        .filter(|(_, stated, found, is_max)| if *is_max { stated < found } else { stated > found })
        .map(|(name, stated, found, _)| (name, stated, found))
        .next()
}

/// What is wrong with a header by itself.
fn check_header(header: &PageHeader) -> Result<(), String> {
    let count = |name: &str, number: i32| match number {
        0.. => Ok(()),
        _ => Err(format!("{name} is {number}")),
    };
    count("uncompressed_page_size", header.uncompressed_page_size)?;
    let missing =
        |name: &str| format!("{name} is missing, in a page of the type {}", header.r#type);
    match header.r#type {
        PageType::DataPage => {
            let inner = header.data_page_header.as_ref();
            count("num_values", inner.ok_or_else(|| missing("data_page_header"))?.num_values)
        }
        PageType::DataPageV2 => {
            let inner = header.data_page_header_v2.as_ref();
            let inner = inner.ok_or_else(|| missing("data_page_header_v2"))?;
            count("num_values", inner.num_values)?;
            count("num_nulls", inner.num_nulls)?;
            count("num_rows", inner.num_rows)?;
            count("definition_levels_byte_length", inner.definition_levels_byte_length)?;
            count("repetition_levels_byte_length", inner.repetition_levels_byte_length)
        }
        PageType::DictionaryPage => {
            let inner = header.dictionary_page_header.as_ref();
            count("num_values", inner.ok_or_else(|| missing("dictionary_page_header"))?.num_values)
        }
        _ => Ok(()),
    }
}

fn encoding_of(header: &PageHeader) -> Option<Encoding> {
    match header.r#type {
        PageType::DataPage => header.data_page_header.as_ref().map(|inner| inner.encoding),
        PageType::DataPageV2 => header.data_page_header_v2.as_ref().map(|inner| inner.encoding),
        PageType::DictionaryPage => {
            header.dictionary_page_header.as_ref().map(|inner| inner.encoding)
        }
        _ => None,
    }
}

fn statistics_of(header: &PageHeader) -> Option<&Statistics> {
    match header.r#type {
        PageType::DataPage => header.data_page_header.as_ref()?.statistics.as_ref(),
        PageType::DataPageV2 => header.data_page_header_v2.as_ref()?.statistics.as_ref(),
        _ => None,
    }
}

/// Whether data pages of a type may be in an encoding, by the table of Encodings.md.
fn encoding_fits(encoding: Encoding, physical: Physical) -> bool {
    use Physical as P;
    match encoding {
        Encoding::Plain
        | Encoding::PlainDictionary
        | Encoding::RleDictionary
        | Encoding::Unknown(_) => true,
        Encoding::Rle => physical == P::Boolean,
        Encoding::BitPacked => false,
        Encoding::DeltaBinaryPacked => matches!(physical, P::Int32 | P::Int64),
        Encoding::DeltaLengthByteArray => physical == P::ByteArray,
        Encoding::DeltaByteArray => matches!(physical, P::ByteArray | P::FixedLenByteArray(_)),
        Encoding::ByteStreamSplit => !matches!(physical, P::Boolean | P::Int96 | P::ByteArray),
        Encoding::Alp => matches!(physical, P::Float | P::Double),
    }
}

/// Whether no value is less than the one before it.
fn is_ascending(block: Block<'_>, order: &LeafOrder) -> bool {
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

/// Whether an error is not one of the page: the source failed, or there is no memory.
fn is_passed_on(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Io | ErrorKind::Limit(LimitKind::Memory))
}

/// What was read; a fault of it is a finding.
fn opened<T>(found: Result<Option<T>>, kind: K, findings: &mut Findings) -> Result<Option<T>> {
    match found {
        Ok(found) => Ok(found),
        Err(error) if is_passed_on(&error) => Err(error),
        Err(error) => {
            findings.push(Finding::of_error(kind, &error));
            Ok(None)
        }
    }
}

/// The bytes of an index, decrypted, and their memory; `None` if there is none where one can be.
fn index_bytes(
    file: &FileContext,
    module: Module,
    (offset, length): (Option<i64>, Option<i32>),
    decryptor: Option<&ChunkDecryptor>,
) -> Result<Option<(Bytes, Reservation)>> {
    let (Some(offset), Some(length)) = (offset, length) else { return Ok(None) };
    let range = range_of(offset, length).filter(|range| file.has_room_for(range));
    let Some(range) = range else { return Ok(None) };
    let (bytes, mut memory) = file.read(range)?;
    let Some(decryptor) = decryptor else { return Ok(Some((bytes, memory))) };
    memory.grow(bytes.len())?;
    let plain = decryptor.open(module, &bytes)?;
    Ok(Some((plain.into(), memory)))
}
