//! [`ChunkPlan`]: the bytes of a column chunk that are wanted.
//!
//! Spec: `ColumnMetaData` of parquet.thrift, PageIndex.md. `Plan::row_group` finds the chunk in the
//! metadata; `PageList` walks its pages. Trap: the metadata may state any offset; one outside the
//! file is refused here.

use std::ops::Range;
use std::sync::Arc;

use arrow_schema::DataType;
use bytes::Bytes;

use super::scan::Plan;
use crate::crypt::ChunkDecryptor;
use crate::error::{Error, Result, Spec};
use crate::format::{ColumnMetaDataRef, CompressionCodec, PageEncodingStats, PageType};
use crate::memory;
use crate::page::PageContext;
use crate::predicate::all_pages_refer_to_dictionary;
use crate::read::column::ColumnSpec;
use crate::read::footer::Footer;
use crate::read::page_list::{LocatedPage, PageList};
use crate::selection::{PageMap, RowSelection};

/// A column chunk of a row group.
#[derive(Debug)]
pub(super) struct ChunkPlan {
    pub(super) slots: u64,
    pub(super) codec: CompressionCodec,
    /// The decryptor of its pages and indexes, if they are encrypted.
    pub(super) decryptor: Option<ChunkDecryptor>,
    pub(super) bytes: Range<u64>,
    /// About how many bytes it takes as an Arrow array.
    pub(super) arrow_bytes: u64,
    /// About how much work it is to begin in the midst of it.
    pub(super) entry_work: u64,
    pub(super) pages: Option<WantedPages>,
    /// Whether the bytes are given while they are decoded, and not before.
    pub(super) in_pieces: bool,
    /// Whether all data pages refer to the dictionary, as the metadata state.
    pub(super) all_refer: bool,
    /// When the dictionary page is fetched, where the pages wanted are known.
    pub(super) dictionary: DictionaryFetch,
}

/// When to fetch the dictionary page of a chunk if only some of its pages are wanted. Writers give
/// a dictionary up after some pages; later pages are read without it.
#[derive(Debug)]
pub(super) enum DictionaryFetch {
    /// With the pages.
    WithPages,
    /// After the pages, if one of them refers to it.
    AfterPages,
    /// Now: the pages are here, and one refers to it.
    Referred(Vec<Bytes>),
    /// Never: the pages are here, and none refers to it.
    Unreferred(Vec<Bytes>),
}

/// A column chunk that was found in the metadata.
pub(super) struct ChunkToRead {
    pub(super) chunk: ChunkPlan,
    /// Where its offset index lies, if it has one.
    pub(super) offset_index: Option<Range<u64>>,
}

/// The pages that are wanted of a chunk.
#[derive(Debug)]
pub(super) struct WantedPages {
    pub(super) map: Arc<PageMap>,
    /// Indices of them, in runs of pages that follow each other without a gap.
    pub(super) page_runs: Vec<Range<usize>>,
}

impl Plan {
    /// The chunk of a column: what and where it is.
    pub(super) fn chunk(
        &self,
        row_group: usize,
        rows_in_group: u64,
        column: &ColumnSpec,
    ) -> Result<ChunkToRead> {
        let chunk = self.footer().column_chunk_ref(row_group, column.leaf.index)?;
        if let Some(path) = chunk.file_path.filter(|path| !path.is_empty()) {
            return Err(in_other_file(path));
        }
        let offset_index = self.offset_index(&chunk);
        let decryptor = self.footer().chunk_decryptor(row_group, column.leaf.index, &chunk)?;
        let Some(meta) = chunk.meta_data else {
            return Err(Error::malformed(Spec::Metadata("ColumnChunk"), "meta_data is missing"));
        };
        let found = meta.r#type;
        let expected = column.leaf.physical.format_type();
        if found != expected {
            return Err(Error::mismatch(Spec::Metadata("ColumnMetaData"), "type", expected, found));
        }
        let slots = not_negative(meta.num_values, "num_values")?;
        // Even an empty list takes a slot.
        if slots < rows_in_group {
            return Err(Error::mismatch(
                Spec::Metadata("ColumnMetaData"),
                "num_values",
                format_args!("at least the {rows_in_group} rows of the row group"),
                slots,
            ));
        }
        let mut bytes = byte_range(&meta, slots, self.file_len())?;
        if self.footer().quirks().short_chunks && slots > 0 {
            bytes.end = end_of_short_chunk(
                self.footer(),
                self.file_len(),
                row_group,
                column.leaf.index,
                &bytes,
            );
        }
        // Outside lists every row is one slot, whatever the chunk states.
        let max = if column.leaf.max_rep == 0 { rows_in_group } else { slots };
        let arrow_bytes = memory_of(&meta, slots.min(max), &column.data_type);
        let offset_index = offset_index.filter(|_| slots > 0);
        let entry_work = entry_work(&meta, arrow_bytes.saturating_add(bytes.end - bytes.start));
        let all_refer = all_pages_refer_to_dictionary(meta.encoding_stats.into_iter().flatten());
        let chunk = ChunkPlan {
            slots,
            codec: meta.codec,
            decryptor,
            bytes,
            arrow_bytes,
            entry_work,
            pages: None,
            in_pieces: false,
            all_refer,
            dictionary: DictionaryFetch::WithPages,
        };
        Ok(ChunkToRead { chunk, offset_index })
    }
}

#[cold]
fn in_other_file(path: &str) -> Error {
    Error::unsupported(
        "column chunks in other files",
        format_args!(
            "the data lie in the file {path:?}, as in a _metadata summary; say below which folder, \
             with Reader::files_below, or read that file instead"
        ),
    )
}

/// Where a chunk lies (`ColumnMetaData` of parquet.thrift): from its dictionary page, if it has
/// one, else from its first data page.
///
/// # Errors
/// `Malformed` if that is not in the file.
pub(in crate::read) fn byte_range(
    meta: &ColumnMetaDataRef<'_>,
    slots: u64,
    file_len: u64,
) -> Result<Range<u64>> {
    // Without values there is nothing to read, and the offsets may be meaningless.
    if slots == 0 {
        return Ok(0..0);
    }
    let data = not_negative(meta.data_page_offset, "data_page_offset")?;
    let dictionary = meta.dictionary_page_offset.unwrap_or(0);
    let dictionary = not_negative(dictionary, "dictionary_page_offset")?;
    // 0 means that there is none.
    let start = if dictionary > 0 && (data == 0 || dictionary <= data) { dictionary } else { data };
    let len = not_negative(meta.total_compressed_size, "total_compressed_size")?;
    let end_of_data = file_len.saturating_sub(8);
    match start.checked_add(len).filter(|end| *end <= end_of_data) {
        Some(end) => Ok(start..end),
        None => Err(Error::mismatch(
            Spec::Container,
            "byte range of the column chunk",
            format_args!("within the first {end_of_data} bytes of the file"),
            format_args!("{len} bytes at {start}"),
        )),
    }
}

/// Where a chunk ends whose size leaves out the header of its dictionary page: no header is longer
/// than 100 bytes, and none is where the next chunk, or the footer, begins.
pub(in crate::read) fn end_of_short_chunk(
    footer: &Footer,
    file_len: u64,
    row_group: usize,
    leaf: usize,
    bytes: &Range<u64>,
) -> u64 {
    let start_of = |row_group, leaf| {
        let meta = footer.column_chunk_ref(row_group, leaf).ok()?.meta_data?;
        let starts = [meta.dictionary_page_offset, Some(meta.data_page_offset)];
        let starts = starts.into_iter().flatten().filter_map(|start| u64::try_from(start).ok());
        starts.filter(|start| *start > 0).min()
    };
    let next = match leaf + 1 < footer.schema().leaves_len() {
        true => start_of(row_group, leaf + 1),
        false => start_of(row_group + 1, 0),
    };
    let before_footer = file_len.saturating_sub(8 + footer.byte_len() as u64);
    let max = bytes.end.saturating_add(100).min(before_footer);
    next.filter(|next| bytes.start < *next).map_or(max, |next| max.min(next)).max(bytes.end)
}

impl WantedPages {
    pub(super) fn new(map: Arc<PageMap>, selection: &RowSelection) -> Self {
        let mut page_runs: Vec<Range<usize>> = Vec::new();
        for page in map.needed(selection) {
            match page_runs.last_mut() {
                Some(last) if last.end == page => last.end += 1,
                _ => page_runs.push(page..page + 1),
            }
        }
        Self { map, page_runs }
    }
}

/// Minimum bytes of a chunk that is given while it is decoded.
pub(super) const LARGE: u64 = 512 << 10;

/// Bytes of a dictionary page that is fetched after the pages: to read fewer takes no longer than
/// to ask twice.
const LARGE_DICTIONARY: u64 = 32 << 10;

/// The bytes wanted of all chunks of a row group, in their order.
pub(super) fn needs(chunks: &[ChunkPlan]) -> Result<Vec<Range<u64>>> {
    let mut needs = memory::vec_for(chunks.len())?;
    chunks.iter().try_for_each(|chunk| chunk.add_needs(&mut needs))?;
    Ok(needs)
}

/// The result of taking the bytes of a chunk.
pub(super) enum Listed {
    Pages(PageList),
    /// The dictionary page is wanted too.
    Referred,
}

impl ChunkPlan {
    /// Lets a large chunk that is wanted whole be given while it is decoded, and of one that is
    /// not a large dictionary page be fetched after the pages that may refer to it.
    pub(super) fn take_pieces(&mut self) {
        match &self.pages {
            None if self.bytes.end - self.bytes.start >= LARGE => self.in_pieces = true,
            Some(WantedPages { map, .. }) if !self.all_refer => {
                let head = map.head();
                let is_undecided = matches!(self.dictionary, DictionaryFetch::WithPages);
                if is_undecided && head.end - head.start >= LARGE_DICTIONARY {
                    self.dictionary = DictionaryFetch::AfterPages;
                }
            }
            _ => {}
        }
    }

    /// Wants all of the chunk, and ignores its index.
    pub(super) fn without_index(&mut self) {
        (self.pages, self.dictionary) = (None, DictionaryFetch::WithPages);
    }

    /// Appends the wanted bytes of the chunk: all of it, or the bytes before its first data page
    /// and then the runs of pages.
    fn add_needs(&self, out: &mut Vec<Range<u64>>) -> Result<()> {
        let Some(WantedPages { map, page_runs }) = &self.pages else {
            if !self.in_pieces {
                memory::push(out, self.bytes.clone())?;
            }
            return Ok(());
        };
        let bytes_of = |run: &Range<usize>| {
            let pages = map.pages().get(run.clone()).unwrap_or_default();
            let ends = pages.first().zip(pages.last());
            ends.map_or(0..0, |(first, last)| first.bytes.start..last.bytes.end)
        };
        let pages = page_runs.iter().map(bytes_of);
        match self.dictionary {
            DictionaryFetch::WithPages => {
                memory::extend(out, std::iter::once(map.head()).chain(pages))
            }
            DictionaryFetch::AfterPages => memory::extend(out, pages),
            DictionaryFetch::Referred(_) => memory::push(out, map.head()),
            DictionaryFetch::Unreferred(_) => Ok(()),
        }
    }

    /// Splits bytes into those of [`ChunkPlan::add_needs`] and those of the chunks after this one.
    pub(super) fn split_needs<'a>(&self, bytes: &'a [Bytes]) -> (&'a [Bytes], &'a [Bytes]) {
        let own = match (&self.pages, &self.dictionary) {
            (None, _) => usize::from(!self.in_pieces),
            (Some(wanted), DictionaryFetch::WithPages) => 1 + wanted.page_runs.len(),
            (Some(wanted), DictionaryFetch::AfterPages) => wanted.page_runs.len(),
            (Some(_), DictionaryFetch::Referred(_)) => 1,
            (Some(_), DictionaryFetch::Unreferred(_)) => 0,
        };
        bytes.split_at(own.min(bytes.len()))
    }

    /// The pages of what was fetched for [`ChunkPlan::add_needs`]; or a need of the dictionary
    /// page, once only.
    pub(super) fn list(&mut self, bytes: &[Bytes], context: &PageContext) -> Result<Listed> {
        let Some(wanted) = &self.pages else {
            return Ok(Listed::Pages(if self.in_pieces {
                PageList::in_pieces(self.bytes.clone(), self.slots)
            } else {
                let whole = bytes.first().cloned().unwrap_or_default();
                PageList::whole(whole, self.bytes.start, self.slots)
            }));
        };
        let head = || bytes.first().cloned().unwrap_or_default();
        let (head, pages) = match &self.dictionary {
            DictionaryFetch::WithPages => (head(), bytes.get(1..).unwrap_or_default()),
            DictionaryFetch::AfterPages => (Bytes::new(), bytes),
            DictionaryFetch::Referred(pages) => (head(), &pages[..]),
            DictionaryFetch::Unreferred(pages) => (Bytes::new(), &pages[..]),
        };
        let start = wanted.map.head().start;
        let (list, refers) = PageList::located(head, start, wanted.located(pages), context)?;
        if !matches!(self.dictionary, DictionaryFetch::AfterPages) {
            return Ok(Listed::Pages(list));
        }
        if refers {
            self.dictionary = DictionaryFetch::Referred(bytes.to_vec());
            return Ok(Listed::Referred);
        }
        self.dictionary = DictionaryFetch::Unreferred(bytes.to_vec());
        Ok(Listed::Pages(list))
    }
}

impl WantedPages {
    /// The pages of the bytes of their runs.
    fn located(&self, page_runs: &[Bytes]) -> Vec<LocatedPage> {
        let mut pages = Vec::new();
        for (run, bytes) in self.page_runs.iter().zip(page_runs) {
            let mut bytes = bytes.clone();
            for index in run.clone() {
                let Some(place) = self.map.pages().get(index) else { continue };
                let len = usize::try_from(place.bytes.end - place.bytes.start);
                let bytes = bytes.split_to(len.unwrap_or(usize::MAX).min(bytes.len()));
                let (range, rows) = (place.bytes.clone(), place.rows.clone());
                pages.push(LocatedPage { bytes, range, rows, index });
            }
        }
        pages
    }
}

/// About how many bytes a chunk takes as an Arrow array.
fn memory_of(meta: &ColumnMetaDataRef<'_>, slots: u64, data_type: &DataType) -> u64 {
    let fixed = match data_type {
        DataType::Dictionary(key, _) => key.primitive_width(),
        DataType::FixedSizeBinary(width) => usize::try_from(*width).ok(),
        other => other.primitive_width(),
    };
    if let Some(width) = fixed {
        return slots.saturating_mul(width as u64);
    }
    let exact = meta
        .size_statistics
        .as_ref()
        .and_then(|sizes| sizes.unencoded_byte_array_data_bytes)
        .and_then(|bytes| u64::try_from(bytes).ok());
    let stated = u64::try_from(meta.total_uncompressed_size).unwrap_or_default();
    exact.unwrap_or(stated).saturating_add(slots.saturating_mul(4))
}

/// Bytes of a page of most writers, before it is compressed.
const USUAL_PAGE: u64 = 1 << 20;

/// Estimated cost of beginning in the middle of a chunk: a data page and the dictionary page, as
/// far as the metadata state their sizes.
fn entry_work(meta: &ColumnMetaDataRef<'_>, work: u64) -> u64 {
    let is_data = |stats: &PageEncodingStats| {
        matches!(stats.page_type, PageType::DataPage | PageType::DataPageV2)
    };
    let stats = meta.encoding_stats.into_iter().flatten().filter(is_data);
    let counted: u64 = stats.map(|stats| u64::try_from(stats.count).unwrap_or_default()).sum();
    let stated = u64::try_from(meta.total_uncompressed_size).unwrap_or_default();
    let pages = if counted > 0 { counted } else { (stated / USUAL_PAGE).max(1) };
    let dictionary = meta.dictionary_page_offset.filter(|offset| *offset > 0).map(|offset| {
        let len = u64::try_from(meta.data_page_offset.saturating_sub(offset)).unwrap_or_default();
        let of = u64::try_from(meta.total_compressed_size).unwrap_or_default().max(1);
        u128::from(work) * u128::from(len.min(of)) / u128::from(of)
    });
    (work / pages).saturating_add(u64::try_from(dictionary.unwrap_or(0)).unwrap_or(u64::MAX))
}

pub(super) fn not_negative(value: i64, name: &str) -> Result<u64> {
    u64::try_from(value)
        .map_err(|_| Error::mismatch(Spec::Metadata("ColumnMetaData"), name, "not negative", value))
}
