//! Divides pages into row groups: of each column as many pages as it takes until the rows are as
//! many as those of the first column.
//!
//! Nothing in a page names its column. Where dictionary pages, encodings, sizes and, at
//! last, decoded values leave more than one way to divide the pages, no row is taken from them.

use std::ops::Range;

use super::ground::PageGround;
use crate::error::Result;
use crate::format::{PageType, RowGroup};

/// The row groups of a range of pages.
#[derive(Default)]
pub(super) struct DividedPages {
    /// With whether all pages have checksums.
    pub(super) row_groups: Vec<(RowGroup, bool)>,
    pub(super) lost: Vec<LostPages>,
}

/// Pages that are no whole row group, or not certainly.
pub(super) struct LostPages {
    pub(super) bytes: Range<u64>,
    pub(super) rows: Option<u64>,
    pub(super) columns: Vec<String>,
    pub(super) page: Option<usize>,
    pub(super) offset: Option<u64>,
    pub(super) reason: String,
}

/// A way to read some pages as the chunks of a row group.
struct Division {
    rows: u64,
    /// By leaf, its pages. The leaves that are not there had no more pages.
    chunks: Vec<Range<usize>>,
    is_complete: bool,
}

impl Division {
    fn end(&self) -> usize {
        self.chunks.last().map_or(0, |chunk| chunk.end)
    }
}

/// Where the pages of one leaf may end.
#[derive(Default)]
struct ChunkEnds {
    /// Pages after the last one, each a way to end. A page without the start of a row may belong
    /// to the row before it, or be one of the next leaf that looks so.
    ends: Vec<usize>,
    /// Whether there are no more pages, and the rows are too few.
    is_out_of_pages: bool,
}

/// Divides all pages.
///
/// # Errors
/// `Io`; `Limit(Memory)`.
pub(super) fn divide(ground: &mut PageGround<'_>, group_rows: Option<u64>) -> Result<DividedPages> {
    let mut out = DividedPages::default();
    let mut at = 0;
    while let Some(first) = ground.page(at) {
        let start = first.start;
        let chosen = match choose(ground, at, group_rows)? {
            Ok(division) => division,
            Err(reason) => {
                let bytes = start..ground.found.end_offset;
                out.lost.push(LostPages {
                    bytes,
                    rows: None,
                    columns: Vec::new(),
                    page: None,
                    offset: Some(start),
                    reason,
                });
                break;
            }
        };
        let end = chosen.end();
        let end_offset =
            end.checked_sub(1).and_then(|last| ground.page(last)).map_or(start, |page| page.end);
        match accept(ground, &chosen)? {
            Ok(row_group) => out.row_groups.push((row_group, ground.have_checksums(at..end))),
            Err(lost) => out.lost.push(LostPages { bytes: start..end_offset, ..lost }),
        }
        ground.refill(end.saturating_sub(at));
        at = end.max(at + 1);
    }
    Ok(out)
}

/// Decodes all chunks. Returns the metadata of the row group, or what is wrong with it.
fn accept(
    ground: &mut PageGround<'_>,
    division: &Division,
) -> Result<std::result::Result<RowGroup, LostPages>> {
    let mut lost = LostPages {
        bytes: 0..0,
        rows: Some(division.rows),
        columns: Vec::new(),
        page: None,
        offset: None,
        reason: String::new(),
    };
    let Some((row_group, verdicts)) = ground.verdicts(&division.chunks, division.rows)? else {
        let reason = "no codec decompresses its pages".to_owned();
        return Ok(Err(LostPages { reason, ..lost }));
    };
    if let Some(leaf) = ground.doubtful(&division.chunks) {
        let reason = "PLAIN and BYTE_STREAM_SPLIT decode alike, and headers contradict each other";
        let columns = vec![leaf.path.dotted()];
        return Ok(Err(LostPages { reason: reason.to_owned(), columns, ..lost }));
    }
    for verdict in verdicts.iter().filter(|verdict| !verdict.is_true()) {
        if lost.columns.is_empty() {
            let at = verdict.finding.as_ref().map(|finding| &finding.at);
            (lost.page, lost.offset) = (at.and_then(|at| at.page), at.and_then(|at| at.offset));
            let reason = verdict.finding.as_ref().map(|finding| finding.message.clone());
            lost.reason = reason.unwrap_or_else(|| "not all values can be decoded".to_owned());
        }
        lost.columns.extend(ground.leaf(verdict.leaf).map(|leaf| leaf.path.dotted()));
    }
    Ok(if lost.columns.is_empty() { Ok(row_group) } else { Err(lost) })
}

/// The only way to divide the pages from `at` on, or why there is none.
fn choose(
    ground: &mut PageGround<'_>,
    at: usize,
    group_rows: Option<u64>,
) -> Result<std::result::Result<Division, String>> {
    let found = divisions(ground, at, group_rows)?;
    if !ground.step() {
        return Ok(Err("too many ways to divide the pages into columns".to_owned()));
    }
    let (complete, partial): (Vec<Division>, Vec<Division>) =
        found.into_iter().partition(|division| division.is_complete);
    if complete.is_empty() {
        let text = match partial.is_empty() {
            true => "the pages do not fit the columns of the schema",
            false => "the row group is not complete",
        };
        return Ok(Err(text.to_owned()));
    }
    let mut left = Vec::new();
    let is_only = complete.len() == 1 && partial.is_empty();
    for division in complete.into_iter().chain(partial) {
        if is_only || is_possible(ground, &division, group_rows)? {
            left.push(division);
        }
    }
    if left.len() == 1 && left.first().is_some_and(|only| only.is_complete) {
        return Ok(left.pop().ok_or_else(String::new));
    }
    let ways = left.len();
    Ok(Err(match ways {
        0 => "no way to divide the pages into columns can be decoded".to_owned(),
        _ => format!(
            "the pages can be divided into columns in {ways} ways, and nothing tells which is \
             right; a side footer, or the number of rows of a row group, would"
        ),
    }))
}

/// Whether all chunks of a way to divide can be decoded, and something fits what comes after.
fn is_possible(
    ground: &mut PageGround<'_>,
    division: &Division,
    group_rows: Option<u64>,
) -> Result<bool> {
    // The last first: after a chunk that ends too early, those after it are of other columns.
    for (leaf, pages) in division.chunks.iter().enumerate().rev() {
        let verdict = ground.verdict(pages, leaf, division.rows)?;
        if !verdict.is_some_and(|verdict| verdict.is_true()) {
            return Ok(false);
        }
    }
    if !division.is_complete || ground.page(division.end()).is_none() {
        return Ok(true);
    }
    Ok(!divisions(ground, division.end(), group_rows)?.is_empty())
}

/// All ways to take a row group from the pages from `at` on that their headers allow.
fn divisions(
    ground: &mut PageGround<'_>,
    at: usize,
    group_rows: Option<u64>,
) -> Result<Vec<Division>> {
    if ground.known.leaves.len() == 1 {
        return one_column(ground, at);
    }
    let mut out = Vec::new();
    let Some(leaf) = ground.leaf(0) else { return Ok(out) };
    let has_dictionary = ground.page(at).is_some_and(|page| page.is_dictionary());
    let (mut rows, mut end) = (0u64, at + usize::from(has_dictionary));
    while let Some(page) = ground.page_of_chunk(at, end) {
        if page.is_dictionary() || !ground.fits(page, leaf, has_dictionary) || !ground.step() {
            break;
        }
        let Some(more) = ground.rows(end, 0)? else { break };
        (rows, end) = (rows.saturating_add(more.rows), end + 1);
        if rows == 0 || group_rows.is_some_and(|wanted| rows > wanted) {
            continue;
        }
        let mut found = Vec::new();
        let first: Range<usize> = at..end;
        others(ground, std::iter::once(first).collect(), rows, &mut found)?;
        let is_wanted = |division: &Division| {
            group_rows.is_none_or(|wanted| rows == wanted || ground.page(division.end()).is_none())
        };
        out.extend(found.into_iter().filter(is_wanted));
    }
    // All pages that are left may be the start of one chunk.
    let is_open = ground.found.end.is_open() && ground.page(end).is_none();
    if is_open && out.is_empty() {
        out.push(Division { rows, chunks: Vec::new(), is_complete: false });
    }
    Ok(out)
}

/// Adds all ways in which the leaves after those of `chunks` can have as many rows, until there are
/// too many.
fn others(
    ground: &mut PageGround<'_>,
    chunks: Vec<Range<usize>>,
    rows: u64,
    out: &mut Vec<Division>,
) -> Result<()> {
    let mut open = vec![chunks];
    while let Some(chunks) = open.pop() {
        let end = chunks.last().map_or(0, |chunk| chunk.end);
        if chunks.len() == ground.known.leaves.len() {
            let is_complete = !may_go_on(ground, end);
            out.push(Division { rows, chunks, is_complete });
            continue;
        }
        let ChunkEnds { ends, is_out_of_pages } = chunk_ends(ground, end, chunks.len(), rows)?;
        let mut ways = ends.len() + usize::from(is_out_of_pages);
        let mut chunks = Some(chunks);
        // Each way but the last has a copy, which counts as a look at each of its chunks: what all
        // ways hold is bounded as looks are.
        let mut copy = |ground: &mut PageGround<'_>| {
            ways -= 1;
            match ways {
                0 => chunks.take(),
                _ => chunks.as_ref().filter(|of| ground.charge(of.len() as u64)).cloned(),
            }
        };
        for next in ends {
            let Some(mut chunks) = copy(ground) else { return Ok(()) };
            chunks.push(end..next);
            open.push(chunks);
        }
        if is_out_of_pages {
            let Some(chunks) = copy(ground) else { return Ok(()) };
            out.push(Division { rows, chunks, is_complete: false });
        }
    }
    Ok(())
}

/// Whether the last row of the last page before `end` may go on in a page that was cut off.
fn may_go_on(ground: &PageGround<'_>, end: usize) -> bool {
    let leaf = ground.known.leaves.last();
    let last = end.checked_sub(1).and_then(|last| ground.page(last));
    // A dictionary or a page of version 2 begins with a row.
    let goes_on = matches!(ground.found.cut, None | Some(PageType::DataPage));
    let is_open = ground.page(end).is_none() && ground.found.end.is_open() && goes_on;
    is_open && leaf.zip(last).is_some_and(|(leaf, page)| page.may_end_in_row(leaf))
}

/// Where the pages of a leaf from `at` on that have this many rows may end.
fn chunk_ends(
    ground: &mut PageGround<'_>,
    at: usize,
    leaf: usize,
    wanted: u64,
) -> Result<ChunkEnds> {
    let mut found = ChunkEnds::default();
    let Some(leaf_type) = ground.leaf(leaf) else { return Ok(found) };
    let has_dictionary = ground.page(at).is_some_and(|page| page.is_dictionary());
    let (mut rows, mut end) = (0u64, at + usize::from(has_dictionary));
    loop {
        if rows == wanted {
            found.ends.push(end);
        }
        let Some(page) = ground.page(end) else {
            // Where no page is missing, these are others.
            found.is_out_of_pages = rows < wanted && ground.found.end.is_open();
            return Ok(found);
        };
        let is_empty = page.slots == 0;
        if (end > at && page.begins_chunk) || page.is_dictionary() {
            return Ok(found);
        }
        if !ground.fits(page, leaf_type, has_dictionary) || !ground.step() {
            return Ok(found);
        }
        let Some(more) = ground.rows(end, leaf)? else { return Ok(found) };
        let begins = more.rows > 0 || (more.starts_row && !is_empty);
        (rows, end) = (rows.saturating_add(more.rows), end + 1);
        if rows > wanted || (begins && found.ends.last().is_some()) {
            return Ok(found);
        }
    }
}

/// The pages up to the next dictionary: of a single column, all pages are rows in their order.
fn one_column(ground: &mut PageGround<'_>, at: usize) -> Result<Vec<Division>> {
    let Some(leaf) = ground.leaf(0) else { return Ok(Vec::new()) };
    let has_dictionary = ground.page(at).is_some_and(|page| page.is_dictionary());
    let (mut rows, mut end) = (0u64, at + usize::from(has_dictionary));
    let start = end;
    let mut last = 0;
    while let Some(page) = ground.page_of_chunk(at, end) {
        if page.is_dictionary() || !ground.fits(page, leaf, has_dictionary) || !ground.step() {
            break;
        }
        let Some(more) = ground.rows(end, 0)? else { break };
        last = more.rows;
        (rows, end) = (rows.saturating_add(more.rows), end + 1);
    }
    if may_go_on(ground, end) && end > start {
        // The rows before those of the last page are complete, if it begins with a row.
        let begins = ground.rows(end - 1, 0)?.is_some_and(|rows| rows.starts_row);
        if !begins {
            return Ok(Vec::new());
        }
        (rows, end) = (rows - last, end - 1);
    }
    let chunks: Vec<Range<usize>> = std::iter::once(at..end).collect();
    Ok(if end > start { vec![Division { rows, chunks, is_complete: true }] } else { Vec::new() })
}
