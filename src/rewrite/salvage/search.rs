//! [`Search`]: tries what footers say of row groups, then the bytes that these leave.

use std::ops::Range;
use std::sync::Arc;

use super::account::{FoundBy, LostPart, RecoveredRowGroup, SalvageAccount};
use super::covered::Covered;
use super::encrypted::without_keys;
use super::ground::PageGround;
use super::groups::{self, DividedPages};
use super::pages::{FoundPages, PagesEnd};
use super::rebuilt::{Described, KnownSchema, chunk_ranges, extent};
use crate::check::{ChunkVerdict, ChunkVerifier};
use crate::error::{Error, ErrorKind, Result, Spec};
use crate::format::tail::MAGIC_ENCRYPTED;
use crate::format::{CompressionCodec, FileMetaData, RowGroup};
use crate::io::{Source, open_footer};
use crate::limits::{Budget, Limits};
use crate::page::PageContext;
use crate::schema::Leaf;

/// The file that is searched, and what is known of it.
#[derive(Clone)]
pub(super) struct SearchInput {
    pub(super) source: Arc<dyn Source>,
    pub(super) limits: Limits,
    /// The footer of a file with the same schema.
    pub(super) schema: Option<FileMetaData>,
    pub(super) side_footer: Option<FileMetaData>,
    pub(super) group_rows: Option<u64>,
}

/// A search for row groups.
pub(super) struct Search {
    source: Arc<dyn Source>,
    file_len: u64,
    limits: Limits,
    budget: Budget,
    known: KnownSchema,
    /// Footers whose row groups are tried, with what they are.
    footers: Vec<(FoundBy, Vec<RowGroup>)>,
    group_rows: Option<u64>,
    /// Rows of the file, as its footer says.
    stated_rows: Option<i64>,
    found: Vec<FoundRowGroup>,
    /// The bytes from the first page to the last of each row group that was found, and those of its
    /// chunks.
    extents: Covered,
    chunks: Covered,
    /// Row groups of the footer of the file that are not as it says.
    failed: Vec<FailedRowGroup>,
    failed_by_start: Vec<FailedPlace>,
    lost: Vec<LostPart>,
    notes: Vec<String>,
    verifier: Option<ChunkVerifier>,
}

struct FoundRowGroup {
    row_group: RowGroup,
    extent: Range<u64>,
    by: FoundBy,
}

struct FailedRowGroup {
    by: FoundBy,
    lost: LostPart,
    /// Whether all values can be decoded, and statistics contradict them.
    contradicts: bool,
}

/// One of `failed`, in the order of their first bytes.
struct FailedPlace {
    at: usize,
    start: u64,
    /// The end of the last bytes of this one and those before it.
    reach: u64,
}

/// Bytes of the magic number.
const MAGIC_LEN: u64 = 4;

impl Search {
    /// # Errors
    /// `Io`; `Crypto` if the file is encrypted; `Malformed` if nothing tells its schema.
    pub(super) fn new(input: SearchInput) -> Result<Self> {
        let SearchInput { source, limits, schema, side_footer, group_rows } = input;
        let file_len = source.len()?;
        let mut notes = Vec::new();
        let own = own_footer(&*source, file_len, &limits)?;
        let own = own.inspect_err(|error| {
            notes.push(format!("the footer cannot be read: {}", error.message()));
        });
        let (mut footers, base) = (Vec::new(), schema);
        let of = |metadata: &FileMetaData, base: &Option<FileMetaData>| {
            base.as_ref().is_none_or(|base| base.schema == metadata.schema)
        };
        let mut base = base;
        let given = base.is_some();
        let all =
            [(FoundBy::Footer, own.as_ref().ok()), (FoundBy::SideFooter, side_footer.as_ref())];
        for (by, metadata) in all {
            let Some(metadata) = metadata else { continue };
            if !of(metadata, &base) {
                let name = by.name();
                notes.push(format!("the {name} has another schema, and was not used"));
                continue;
            }
            footers.push((by, metadata.row_groups.clone()));
            if !given || by == FoundBy::Footer {
                base.get_or_insert_with(|| metadata.clone());
            }
        }
        // What the file says of itself goes before what a file of the same schema says.
        if let (Ok(own), true) = (&own, footers.iter().any(|(by, _)| *by == FoundBy::Footer)) {
            base = Some(own.clone());
        }
        let Some(base) = base else {
            return Err(match own {
                Err(error) => error,
                Ok(_) => Error::internal("a footer has no schema"),
            });
        };
        let is_used = footers.iter().any(|(by, _)| *by == FoundBy::Footer);
        let stated_rows = own.ok().filter(|_| is_used).map(|own| own.num_rows);
        let known = KnownSchema::new(base, &limits)?;
        let budget = Budget::new(limits.memory_bytes);
        let (found, failed, lost, verifier) = Default::default();
        let (extents, chunks, failed_by_start) = Default::default();
        Ok(Self {
            source,
            file_len,
            limits,
            budget,
            known,
            footers,
            group_rows,
            stated_rows,
            found,
            extents,
            chunks,
            failed,
            failed_by_start,
            lost,
            notes,
            verifier,
        })
    }

    /// Returns the account, and the footer of what was recovered.
    ///
    /// # Errors
    /// `Io`; `Limit(Memory)`.
    pub(super) fn run(mut self) -> Result<(SalvageAccount, FileMetaData)> {
        for (by, row_groups) in std::mem::take(&mut self.footers) {
            self.try_footer(by, &row_groups)?;
        }
        let rows = self.found.iter().map(|of| of.row_group.num_rows);
        // A list of row groups that damage has shortened has less.
        let has_all =
            self.failed.is_empty() && self.stated_rows == Some(rows.fold(0, i64::saturating_add));
        if !has_all {
            self.order_failed();
            self.try_gaps()?;
            if self.found.is_empty() && self.lost.is_empty() && self.failed.is_empty() {
                // How much there was, nothing tells.
                self.lose(0..self.file_len, None, "there are no pages".to_owned());
            }
        }
        Ok(self.end())
    }

    /// Checks the row groups of a footer, as far as none was found that shares bytes with them.
    fn try_footer(&mut self, by: FoundBy, row_groups: &[RowGroup]) -> Result<()> {
        let metadata = self.known.with(row_groups.to_vec());
        let described = match Described::new(&self.source, &metadata, &self.limits) {
            Ok(described) => described,
            Err(error) if error.kind() == ErrorKind::Io => return Err(error),
            Err(error) => {
                self.notes.push(format!("the {}: {}", by.name(), error.message()));
                return Ok(());
            }
        };
        for (number, row_group) in row_groups.iter().enumerate() {
            let bytes = extent(row_group);
            if by == FoundBy::SideFooter && self.extents.overlaps(&bytes) {
                continue;
            }
            if row_group.num_rows == 0 {
                continue;
            }
            let verdicts = match self.is_possible(row_group) {
                true => described.verifier(&mut self.verifier, &self.limits).row_group(number)?,
                false => Vec::new(),
            };
            if !verdicts.is_empty() && verdicts.iter().all(ChunkVerdict::is_true) {
                self.take(row_group.clone(), by);
                continue;
            }
            let is_sound = |verdict: &ChunkVerdict| verdict.is_whole && !verdict.is_damaged;
            if !verdicts.is_empty()
                && verdicts.iter().all(is_sound)
                && let Some(rebuilt) = self.rebuilt(row_group)?
            {
                let first = verdicts.iter().find_map(|verdict| verdict.finding.as_ref());
                let why = first.map(|finding| finding.message.clone()).unwrap_or_default();
                self.notes
                    .push(format!("row group {number}: {why}; what the footer says was left out"));
                self.take(rebuilt, FoundBy::FooterInPart);
                continue;
            }
            let lost = self.lost_group(number, row_group, &verdicts);
            let contradicts =
                !verdicts.is_empty() && verdicts.iter().all(|verdict| verdict.is_whole);
            self.failed.push(FailedRowGroup { by, lost, contradicts });
        }
        Ok(())
    }

    /// Whether a row group has a chunk for each leaf, within the file, and none shares its bytes
    /// with another.
    fn is_possible(&self, row_group: &RowGroup) -> bool {
        let mut ranges = chunk_ranges(row_group);
        ranges.sort_unstable_by_key(|range| range.start);
        let is_apart = ranges.windows(2).all(|pair| match pair {
            [before, after] => before.end <= after.start,
            _ => true,
        });
        let is_within =
            ranges.iter().all(|range| range.start >= MAGIC_LEN && range.end <= self.file_len);
        let is_free = ranges.iter().all(|range| !self.chunks.overlaps(range));
        row_group.columns.len() == self.known.leaves.len() && is_apart && is_within && is_free
    }

    /// A row group whose pages are where the footer says, described by the headers of its pages;
    /// `None` if these do not agree.
    fn rebuilt(&mut self, row_group: &RowGroup) -> Result<Option<RowGroup>> {
        let mut columns = Vec::new();
        let rows = u64::try_from(row_group.num_rows).unwrap_or(0);
        for (leaf, chunk) in row_group.columns.iter().enumerate() {
            let (Some(of), Some(meta)) = (self.known.leaves.get(leaf), &chunk.meta_data) else {
                return Ok(None);
            };
            let single = RowGroup { columns: vec![chunk.clone()], ..RowGroup::default() };
            let found = self.walk(extent(&single), true, of)?;
            if found.end != PagesEnd::Proper {
                return Ok(None);
            }
            columns.push(super::rebuilt::chunk(&found.pages, of, meta.codec));
        }
        let rebuilt = super::rebuilt::row_group(columns, rows);
        let metadata = self.known.with(vec![rebuilt.clone()]);
        let described = Described::new(&self.source, &metadata, &self.limits)?;
        let verdicts = described.verifier(&mut self.verifier, &self.limits).row_group(0)?;
        Ok(verdicts.iter().all(ChunkVerdict::is_true).then_some(rebuilt))
    }

    fn walk(&self, range: Range<u64>, ends_there: bool, leaf: &Leaf) -> Result<FoundPages> {
        // Headers of plain text are the same for all leaves.
        let context = PageContext::new(leaf, CompressionCodec::Uncompressed, &self.limits);
        FoundPages::walk(&*self.source, range, ends_there, &context, &self.budget)
    }

    fn take(&mut self, row_group: RowGroup, by: FoundBy) {
        let extent = extent(&row_group);
        self.extents.add(&extent);
        chunk_ranges(&row_group).iter().for_each(|range| self.chunks.add(range));
        self.found.push(FoundRowGroup { row_group, extent, by });
    }

    fn lost_group(&self, number: usize, group: &RowGroup, verdicts: &[ChunkVerdict]) -> LostPart {
        let bad: Vec<&ChunkVerdict> =
            verdicts.iter().filter(|verdict| !verdict.is_true()).collect();
        let finding = bad.iter().find_map(|verdict| verdict.finding.as_ref());
        let path = |verdict: &&ChunkVerdict| {
            self.known.leaves.get(verdict.leaf).map(|leaf| leaf.path.dotted())
        };
        let reason = match (finding, verdicts.is_empty()) {
            (Some(finding), _) => finding.message.clone(),
            (None, true) => "its column chunks are not within the file, each by itself".to_owned(),
            (None, false) => "not all values can be decoded".to_owned(),
        };
        let bytes = extent(group);
        LostPart {
            bytes: bytes.start.min(self.file_len)..bytes.end.min(self.file_len),
            row_group: Some(number),
            rows: u64::try_from(group.num_rows).ok(),
            columns: bad.iter().filter_map(path).collect(),
            page: finding.and_then(|finding| finding.at.page),
            offset: finding.and_then(|finding| finding.at.offset),
            reason,
        }
    }

    /// Looks for pages in the bytes that no row group has.
    fn try_gaps(&mut self) -> Result<()> {
        let Some(leaf) = self.known.leaves.first().cloned() else { return Ok(()) };
        for (gap, is_last) in self.gaps() {
            let found = self.walk(gap.clone(), !is_last, &leaf)?;
            let (end, end_offset) = (found.end, found.end_offset);
            let mut ground = PageGround::new(
                &self.source,
                &self.known,
                (&self.limits, &self.budget),
                found,
                &mut self.verifier,
            );
            let DividedPages { row_groups, lost } = groups::divide(&mut ground, self.group_rows)?;
            for (row_group, have_checksums) in row_groups {
                if self.agrees(&row_group, have_checksums) {
                    self.take(row_group, FoundBy::PageHeaders);
                }
            }
            for part in lost {
                self.lost.push(LostPart {
                    bytes: part.bytes,
                    row_group: None,
                    rows: part.rows,
                    columns: part.columns,
                    page: part.page,
                    offset: part.offset,
                    reason: part.reason,
                });
            }
            self.note_rest(end, end_offset..gap.end);
        }
        Ok(())
    }

    /// The ranges that no row group has, and whether each is the last.
    fn gaps(&self) -> Vec<(Range<u64>, bool)> {
        let mut taken: Vec<Range<u64>> = self.found.iter().map(|of| of.extent.clone()).collect();
        taken.sort_unstable_by_key(|range| range.start);
        let (mut gaps, mut at) = (Vec::new(), MAGIC_LEN);
        for range in taken {
            if range.start > at {
                gaps.push((at..range.start, false));
            }
            at = at.max(range.end);
        }
        if at < self.file_len {
            gaps.push((at..self.file_len, true));
        }
        gaps
    }

    /// Whether a row group that was found by its pages is one that a footer lists: as many rows, or
    /// the same bytes. Without a footer that lists one there, it is. Where statistics of a footer
    /// contradict the values, checksums tell that it is not these that are damaged.
    fn agrees(&self, row_group: &RowGroup, have_checksums: bool) -> bool {
        let bytes = extent(row_group);
        let mut here = self.failed_at(&bytes).peekable();
        here.peek().is_none()
            || here.any(|of| {
                if of.contradicts && !have_checksums {
                    return false;
                }
                of.lost.bytes == bytes || of.lost.rows == u64::try_from(row_group.num_rows).ok()
            })
    }

    /// Prepares [`Self::failed_at`].
    fn order_failed(&mut self) {
        let mut places: Vec<(u64, usize)> =
            self.failed.iter().map(|of| of.lost.bytes.start).zip(0..).collect();
        places.sort_unstable();
        let mut reach = 0;
        let places = places.into_iter().filter_map(|(start, at)| {
            reach = reach.max(self.failed.get(at)?.lost.bytes.end);
            Some(FailedPlace { at, start, reach })
        });
        self.failed_by_start = places.collect();
    }

    /// The row groups of footers that are not as these say, and have some of the bytes.
    fn failed_at<'a>(
        &'a self,
        bytes: &'a Range<u64>,
    ) -> impl Iterator<Item = &'a FailedRowGroup> + use<'a> {
        let before = self.failed_by_start.partition_point(|place| place.start < bytes.end);
        let before = self.failed_by_start.get(..before).unwrap_or_default();
        let near = before.iter().rev().take_while(|place| place.reach > bytes.start);
        near.filter_map(|place| self.failed.get(place.at))
            .filter(|of| overlap(&of.lost.bytes, bytes))
    }

    /// Says what the bytes are after the last page.
    fn note_rest(&mut self, end: PagesEnd, rest: Range<u64>) {
        let reason = match end {
            PagesEnd::Proper => return,
            PagesEnd::Cut if rest.is_empty() => return,
            PagesEnd::Cut => "the file ends within a page",
            PagesEnd::Broken | PagesEnd::BrokenLater => {
                "no page header is here, so that the pages after it cannot be found"
            }
        };
        match self.lost.last_mut().filter(|part| part.bytes.end == rest.start) {
            Some(part) => {
                part.bytes.end = rest.end;
                part.offset = Some(rest.start);
                part.reason = format!("{}; {reason}", part.reason);
            }
            None => self.lose(rest.clone(), Some(rest.start), reason.to_owned()),
        }
    }

    fn lose(&mut self, bytes: Range<u64>, offset: Option<u64>, reason: String) {
        let (row_group, rows, page) = (None, None, None);
        let columns = Vec::new();
        self.lost.push(LostPart { bytes, row_group, rows, columns, page, offset, reason });
    }

    fn end(mut self) -> (SalvageAccount, FileMetaData) {
        self.found.sort_by_key(|of| of.extent.start);
        let (found, mut lost, mut told) = (&self.found, Vec::new(), Covered::default());
        // What a footer says of a lost row group is more than what its pages say.
        for FailedRowGroup { by, lost: part, .. } in self.failed {
            let is_found = self.extents.overlaps(&part.bytes);
            if !is_found && (by == FoundBy::Footer || !told.overlaps(&part.bytes)) {
                told.add(&part.bytes);
                lost.push(part);
            }
        }
        lost.extend(self.lost.into_iter().filter(|part| !told.overlaps(&part.bytes)));
        lost.sort_by_key(|part| part.bytes.start);
        let recovered = found.iter().map(|of| RecoveredRowGroup {
            rows: u64::try_from(of.row_group.num_rows).unwrap_or(0),
            bytes: of.extent.clone(),
            found_by: of.by,
        });
        let account = SalvageAccount {
            file_bytes: self.file_len,
            columns: self.known.leaves.len(),
            recovered: recovered.collect(),
            lost,
            notes: self.notes,
        };
        let row_groups = self.found.iter().map(|of| of.row_group.clone()).collect();
        (account, self.known.with(row_groups))
    }
}

/// The footer of the file, or what is wrong with it.
fn own_footer(
    source: &dyn Source,
    file_len: u64,
    limits: &Limits,
) -> Result<std::result::Result<FileMetaData, Error>> {
    if file_len >= MAGIC_LEN && source.read(0..MAGIC_LEN)?[..] == MAGIC_ENCRYPTED {
        return Err(without_keys());
    }
    let opened = open_footer(source, limits, None);
    let footer = match opened {
        Ok((footer, _)) => footer,
        Err(error) if error.kind() == ErrorKind::Io => return Err(error),
        // A magic number of encrypted files at the end only is a damaged one.
        Err(error) => return Ok(Err(error)),
    };
    let metadata = footer.index().to_file_meta_data();
    let is_encrypted = |metadata: &FileMetaData| {
        metadata.encryption_algorithm.is_some()
            || metadata
                .row_groups
                .iter()
                .flat_map(|group| &group.columns)
                .any(|chunk| chunk.crypto_metadata.is_some())
    };
    match metadata {
        Ok(metadata) if is_encrypted(&metadata) => Err(without_keys()),
        Ok(metadata) if metadata.schema.is_empty() => {
            let text = "the footer has no schema";
            Ok(Err(Error::malformed(Spec::Metadata("FileMetaData"), text)))
        }
        metadata => Ok(metadata),
    }
}

fn overlap(a: &Range<u64>, b: &Range<u64>) -> bool {
    a.start < b.end && b.start < a.end
}
