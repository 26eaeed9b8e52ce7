//! Makes the pages of a chunk, in one stretch or in several by several threads. The bytes are the same: pages know nothing of each other.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;

use super::encode::{as_plain, encode, encode_codes};
use super::source::{Source, SourceReader};
use super::statistics::{Blooming, PageValues, Sorting, Statistician};
use super::texts::Texts;
use super::values::Values;
use super::{Encoder, Form};
use crate::compress::Compression;
use crate::error::{Error, Result};
use crate::format::Encoding;
use crate::page::{PageParts, Sealed};
use crate::stats::page_index::PageStatistics;

/// Lets other threads help with a chunk.
pub(crate) trait Share: Sync {
    /// Threads that are likely to help now, the calling one among them.
    fn threads(&self) -> usize;

    /// Calls `work` with every number below `n`, on any of them; returns when all calls have.
    fn share(&self, n: usize, work: &(dyn Fn(usize) + Sync));
}

/// Nobody helps.
pub(crate) struct Alone;

impl Share for Alone {
    fn threads(&self) -> usize {
        1
    }

    fn share(&self, n: usize, work: &(dyn Fn(usize) + Sync)) {
        (0..n).for_each(work);
    }
}

/// Where pages begin.
pub(super) struct Plan {
    /// With these rows; and the end.
    pub(super) rows: Vec<usize>,
    /// With these level entries; and the end.
    pub(super) entries: Vec<usize>,
    /// With these values; and the end.
    pub(super) values: Vec<usize>,
    /// Whether the values of most pages become pieces of the file by themselves: see [`Encoder::in_pieces`].
    pub(super) in_pieces: bool,
}

impl Plan {
    fn len(&self) -> usize {
        self.rows.len().saturating_sub(1)
    }

    /// What a page has.
    fn page(&self, page: usize) -> Option<[Range<usize>; 3]> {
        let of = |starts: &[usize]| Some(*starts.get(page)?..*starts.get(page + 1)?);
        Some([of(&self.rows)?, of(&self.entries)?, of(&self.values)?])
    }
}

/// Consecutive pages.
pub(super) struct Stretch<'a> {
    /// Their bytes, behind those that were there, in pieces.
    pub(super) bytes: Vec<Bytes>,
    pub(super) pages: Vec<Page>,
    pub(super) sorting: Option<Sorting<'a>>,
    pub(super) bloom: Option<Blooming>,
}

/// A page that is made.
pub(super) struct Page {
    /// Its place in the stretch.
    pub(super) sealed: Sealed,
    /// The row that it begins with.
    pub(super) row: usize,
    /// Bytes of its byte strings, without lengths.
    pub(super) payload: i64,
    pub(super) statistics: PageStatistics,
}

/// Bytes of a chunk, before compression, from which on it is made in several stretches if threads can help.
const WORTH_SHARING: usize = 1 << 20;

/// Values of so many bytes that are stored as they are become a piece of the file: they are not copied again.
const PIECE: usize = 32 << 10;

/// Stretches for each thread: one may be slower than another.
const STRETCHES: usize = 3;

impl<'a> Encoder<'a> {
    /// Makes all pages. `first` is what the chunk begins with, and the first stretch goes on with.
    ///
    /// # Errors
    /// `Usage` if a value does not fit its leaf, or the encoding.
    pub(super) fn pages(
        &self,
        form: &Form<'a>,
        codec: Compression,
        plan: &Plan,
        likely_bytes: usize,
        first: Vec<u8>,
        statistician: &Statistician<'_, 'a>,
    ) -> Result<Vec<Stretch<'a>>> {
        let threads = self.share.threads();
        let is_plain = matches!(form, Form::Plain { .. });
        let in_one = threads < 2
            || likely_bytes < WORTH_SHARING
            || (self.settings.bloom.is_some() && is_plain);
        let n = if in_one { 1 } else { (threads * STRETCHES).min(plan.len()).max(1) };
        let pages = |i: usize| plan.len() * i / n;
        let first = Mutex::new(Some(first));
        let made = Mutex::new(Vec::with_capacity(n));
        let make = |i: usize| {
            let lock = |first: &Mutex<Option<Vec<u8>>>| {
                first.lock().unwrap_or_else(PoisonError::into_inner).take()
            };
            let start = if i == 0 { lock(&first) } else { None };
            let start = start.unwrap_or_else(|| {
                self.tools.spare.take(if plan.in_pieces { 0 } else { likely_bytes / n })
            });
            let stretch =
                self.stretch(form, codec, plan, pages(i)..pages(i + 1), start, statistician);
            made.lock().unwrap_or_else(PoisonError::into_inner).push((i, stretch));
        };
        match n {
            1 => make(0),
            n => self.share.share(n, &make),
        }
        let mut made = made.into_inner().unwrap_or_else(PoisonError::into_inner);
        made.sort_by_key(|(i, _)| *i);
        made.into_iter().map(|(_, stretch)| stretch).collect()
    }

    /// Whether the values of most pages will be pieces of the file by themselves: large ones, stored as they are.
    pub(super) fn in_pieces(
        &self,
        form: &Form<'a>,
        codec: Compression,
        pages: usize,
        likely_bytes: usize,
    ) -> bool {
        let plain_bytes = match form {
            Form::Plain { values, .. } if codec == Compression::Uncompressed => {
                values.plain_len(self.leaf)
            }
            _ => return false,
        };
        likely_bytes / pages.max(1) >= PIECE && likely_bytes >= plain_bytes / 2
    }

    fn stretch(
        &self,
        form: &Form<'a>,
        codec: Compression,
        plan: &Plan,
        pages: Range<usize>,
        mut bytes: Vec<u8>,
        statistician: &Statistician<'_, 'a>,
    ) -> Result<Stretch<'a>> {
        let (leaf, settings, spare) = (self.leaf, self.settings, &self.tools.spare);
        let levels = &self.column.levels;
        let mut sealer = self.tools.sealer(codec, settings.page_version, settings.checksums)?;
        let encoding = match form {
            Form::Plain { encoding, .. } => *encoding,
            Form::Dictionary { .. } => Encoding::RleDictionary,
        };
        let of_pages = pages.clone().filter_map(|page| plan.page(page));
        let most = of_pages.clone().map(|[_, _, values]| values.len()).max().unwrap_or(0);
        let begin = plan.values.get(pages.start).copied().unwrap_or_default();
        let mut source = match form {
            Form::Plain { values, .. } => Some(values.read(leaf, begin, most)?),
            Form::Dictionary { .. } => None,
        };
        let mut bloom = match form {
            Form::Plain { values: Source::Whole(values), .. } => {
                Blooming::new(leaf, settings, values.len())
            }
            Form::Plain { .. } => {
                Blooming::new(leaf, settings, plan.values.last().copied().unwrap_or_default())
            }
            Form::Dictionary { .. } => None,
        };
        // Rows have an order by a column in which each has a value.
        let in_order = levels.max_rep() == 0 && plan.values.last() == Some(&levels.len());
        let mut sorting = in_order.then(|| Sorting::new(statistician.order()));
        let mut buffer: Vec<u8> = spare.take(0);
        let mut made = Vec::with_capacity(pages.len());
        let (mut pieces, mut before) = (Vec::new(), 0);
        let own = source.as_ref().is_some_and(SourceReader::has_own);
        for [rows, entries, values] in of_pages {
            buffer.clear();
            let count = values.len();
            let mut ready = None;
            let (of_page, payload) = match (form, &mut source) {
                (Form::Plain { encoding, .. }, Some(source)) => {
                    let (some, range) = source.next(count, spare)?;
                    if *encoding == Encoding::Plain {
                        ready = as_plain(some, range.clone());
                    }
                    if ready.is_none() {
                        let room = some.plain_len(range.clone());
                        match plan.in_pieces && buffer.capacity() == 0 {
                            true => buffer = spare.take(room),
                            false => spare.grow(&mut buffer, room),
                        }
                        let physical = leaf.physical;
                        encode(some, range.clone(), physical, *encoding, spare, &mut buffer)?;
                    }
                    if let Some(sorting) = &mut sorting {
                        sorting.push(some, range.clone());
                    }
                    if let Some(bloom) = &mut bloom {
                        bloom.push(some, range.clone());
                    }
                    let payload = payload(some, range.clone());
                    let rises = sorting.as_ref().is_some_and(Sorting::rises);
                    let of_page = match some {
                        Values::Bytes(texts) if rises => rising(texts, range.clone()),
                        _ => None,
                    };
                    (of_page.unwrap_or(PageValues::Plain(some, range)), payload)
                }
                (Form::Dictionary { dictionary, values: all }, _) => {
                    let codes = dictionary.codes.get(values.clone()).unwrap_or_default();
                    spare.grow(&mut buffer, codes.len());
                    encode_codes(codes, &mut buffer)?;
                    let payload = statistician.payload_of_codes(codes);
                    // By the ranks of the entries where there are few of them, else by the values themselves.
                    let of_page = match all {
                        Some(all) if !statistician.by_codes() => {
                            if let Some(sorting) = &mut sorting {
                                sorting.push(all, values.clone());
                            }
                            PageValues::Plain(all, values)
                        }
                        _ => PageValues::Codes(codes),
                    };
                    (of_page, payload)
                }
                (Form::Plain { .. }, None) => {
                    return Err(Error::usage("no values to read; this is a fault of marquetry"));
                }
            };
            let parts = PageParts {
                nulls: entries.len() - count,
                rows: rows.len(),
                levels,
                entries: entries.clone(),
                encoding,
                values: ready.unwrap_or(&buffer),
            };
            let is_ready = ready.is_some();
            let can_be_taken = if is_ready { own } else { buffer.len() >= buffer.capacity() / 2 };
            let apart = plan.in_pieces && can_be_taken && parts.values.len() >= PIECE;
            let sealed = sealer.data(&parts, apart, &mut bytes)?;
            let sealed = Sealed { offset: before + sealed.offset, ..sealed };
            let statistics = statistician.page(levels, entries, count, of_page);
            made.push(Page { sealed, row: rows.start, payload, statistics });
            if sealed.apart > 0 {
                let values = match &mut source {
                    Some(source) if is_ready => source.take_bytes(spare),
                    _ => Some(spare.lend_bytes(std::mem::take(&mut buffer))),
                };
                let values = values.filter(|values| values.len() == sealed.apart);
                let values = values.ok_or_else(|| {
                    Error::usage("values that are not there; this is a fault of marquetry")
                })?;
                before += bytes.len() + values.len();
                pieces.push(spare.lend_bytes(std::mem::take(&mut bytes)));
                pieces.push(values);
            }
        }
        if !bytes.is_empty() {
            pieces.push(spare.lend_bytes(bytes));
        }
        spare.give(buffer);
        source.into_iter().for_each(|source| source.give(spare));
        self.tools.give_sealer(sealer);
        Ok(Stretch { bytes: pieces, pages: made, sorting, bloom })
    }
}

/// What is said of byte strings that rise.
fn rising<'p>(texts: &Texts<'p>, range: Range<usize>) -> Option<PageValues<'p, 'p>> {
    let last = range.end.checked_sub(1)?;
    Some(PageValues::Rising(texts.get(range.start)?, texts.get(last)?))
}

/// Bytes of byte strings, without lengths.
fn payload(values: &Values<'_>, range: Range<usize>) -> i64 {
    match values {
        Values::Bytes(texts) => i64::try_from(texts.payload(range)).unwrap_or(i64::MAX),
        _ => 0,
    }
}
