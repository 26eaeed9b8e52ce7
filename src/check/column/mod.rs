//! [`ColumnCheck`]: walks over the pages of a column chunk, and compares what they hold with what
//! the file states.
//!
//! One pass: each page is read, opened, and its levels and values decoded once. Values are looked
//! at where they are decoded, and none is kept. Of pages of indices, the entries that occur are
//! looked at, each once for a page.

mod headers;
mod state;
mod values;
mod dictionary;
mod data_page;
mod whole;

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

pub(super) use self::headers::statistics_of;
pub(crate) use self::headers::{check_header, encoding_fits, encoding_of};
use self::state::{ChunkPlace, ColumnCheck, PageNumber, Tally, is_passed_on};
use crate::check::boxes::BoxedGeometries;
use crate::check::chunk_metadata::{ChunkFooter, range_of};
use crate::check::context::FileContext;
use crate::check::distinct::DistinctValues;
use crate::check::filter::FilterCheck;
use crate::check::finding::{CheckLevel, Finding, Findings};
use crate::check::kind::FindingKind as K;
use crate::check::levels::LevelShape;
use crate::check::order::LeafOrder;
use crate::check::page_index::{ColumnEntries, OffsetEntries};
use crate::check::pages::{FoundBytes, PageWalk};
use crate::check::rules::ValueRule;
use crate::check::siblings::GroupLevels;
use crate::check::sorting::SortedSlots;
use crate::check::survey::{ChunkSurvey, SurveyRequest};
use crate::crypt::{ChunkDecryptor, Module};
use crate::error::{Error, ErrorKind, LimitKind, Result, Spec};
use crate::format::{ColumnChunk, Encoding, PageHeader, PageType, SortingColumn};
use crate::geo::Edges;
use crate::limits::Reservation;
use crate::page::{Page, PageOpener, PagePosition};
use crate::read::chunk_range;

/// The outcome of the check of a chunk.
pub(super) struct ChunkOutcome {
    pub(super) findings: Findings,
    /// How its rows compare, if the row group is sorted by it.
    pub(super) sorted: Option<SortedSlots>,
    /// What its levels say of the groups that it shares with other chunks, if they are all known,
    /// and nothing else is wrong with them.
    pub(super) groups: Vec<GroupLevels>,
    /// Whether there was too little memory while other chunks were checked.
    pub(super) is_starved: bool,
    /// Whether all its values were decoded.
    pub(super) is_whole: bool,
    /// Its facts, if they were asked for.
    pub(super) survey: Option<ChunkSurvey>,
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
    request: Option<&SurveyRequest>,
) -> Result<ChunkOutcome> {
    let mut out = ChunkOutcome {
        findings: Findings::default(),
        sorted: None,
        groups: Vec::new(),
        is_starved: false,
        is_whole: false,
        survey: None,
    };
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
    let stated = orders.and_then(|orders| orders.get(leaf.index));
    let assumed = request.and_then(|request| request.order.as_ref());
    let order = LeafOrder::new(&leaf, stated.or(assumed));
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
    check_bytes(file, &chunk, place, request, &mut out)?;
    Ok(out)
}

/// Checks the bytes of a chunk.
fn check_bytes(
    file: &FileContext,
    chunk: &ColumnChunk,
    place: ChunkPlace,
    request: Option<&SurveyRequest>,
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
    let checked = ColumnCheck::run(file, chunk, (place, request), decryptor, range, out);
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

impl ColumnCheck<'_> {
    fn run(
        file: &FileContext,
        chunk: &ColumnChunk,
        (place, request): (ChunkPlace, Option<&SurveyRequest>),
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
        let mut context = file.footer.page_context(&place.leaf, meta.codec, &file.limits);
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
            survey: request.map(|request| ChunkSurvey::new(request, &file.budget)),
            groups: GroupLevels::around(file.footer.schema().leaf_node(place.leaf.index)?),
            tally: Tally::new(&place.shape),
            place,
        };
        check.prepare(request);
        check.walk(range, findings)?;
        check.finish(findings);
        out.survey = check.take_survey();
        check.hand_over(out);
        Ok(())
    }

    /// Hands over what is compared when the other chunks of the row group are known.
    fn hand_over(self, out: &mut ChunkOutcome) {
        let are_wrong = [K::LevelsInconsistent, K::ChunkStartsInRow, K::ChunkRowsWrong]
            .into_iter()
            .any(|kind| out.findings.has(kind));
        let Tally { has_all_pages, has_all_levels, has_all_values, .. } = self.tally;
        out.sorted = self.sorted;
        if has_all_pages && has_all_levels && !are_wrong {
            out.groups = self.groups;
        }
        out.is_whole = has_all_pages && has_all_levels && has_all_values;
    }

    /// Makes what collects the statistics that are stated.
    fn prepare(&mut self, request: Option<&SurveyRequest>) {
        if self.file.level < CheckLevel::Truth {
            return;
        }
        let (file, place) = (self.file, &self.place);
        let stated = self.meta.statistics.as_ref();
        if stated.is_some_and(|stated| stated.distinct_count.is_some()) {
            self.distinct = Some(DistinctValues::new(&file.budget));
        }
        let stated = self.meta.geospatial_statistics.as_ref();
        if stated.is_some() || request.is_some() {
            let bbox = stated.and_then(|stated| stated.bbox.as_ref());
            let edges = Edges::for_leaf(&place.leaf);
            self.geometries = edges.map(|edges| BoxedGeometries::new(edges, bbox));
        }
        let groups = &file.footer.index().head().row_groups;
        let sorting = groups.get(place.row_group).and_then(|group| group.sorting_columns.as_ref());
        let is_this =
            |sorting: &&SortingColumn| usize::try_from(sorting.column_idx) == Ok(place.leaf.index);
        let asked = request.and_then(|request| request.sorting.as_ref());
        if let Some(sorting) = sorting.into_iter().flatten().find(is_this).or(asked) {
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
        if is_dictionary && self.tally.pages == 1 {
            self.tally.dictionary_offset = Some(offset);
        }
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
            // How many values it has is not known.
            self.tally.has_all_pages &= !is_data;
            self.tally.has_all_levels &= !is_data;
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
                let page = (page, memory, body_len);
                self.dictionary_page(page, (is_first, is_sorted), offset, findings)
            }
            Some(Page::Data(page)) => {
                let byte_len = end.saturating_sub(offset);
                let page_number = PageNumber { number: number.unwrap_or(0), offset };
                self.data_page(*page, header, page_number, (byte_len, body_len), findings)
            }
        }
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
        self.tally.kinds.add(header.r#type, encoding);
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
}

/// The value that was read; a fault of it becomes a finding.
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
