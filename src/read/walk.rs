//! [`StoredPages`] walks the pages of a column chunk as they are stored, without decompressing
//! them.
//!
//! Spec: README.md, "Data Pages". Used by commands that list or copy pages; `read::chunk` walks
//! those that are decoded. Trap: the size of a chunk may leave out the header of its dictionary
//! page, or a page without values may follow the last value.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use super::footer::Footer;
use super::plan::{byte_range, end_of_short_chunk};
use crate::crypt::{ChunkDecryptor, Module};
use crate::error::{Error, Result, Spec};
use crate::format::{ColumnChunkRef, PageHeader, PageType};
use crate::limits::{Limits, Reservation};
use crate::page::{PageContext, PagePosition, StoredHeader, count};

/// A page as it is stored.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct StoredPage {
    /// Offset of its header in the file.
    pub offset: u64,
    /// Length of the stored header in bytes: encrypted, if the column is.
    pub header_len: usize,
    /// The header.
    pub header: PageHeader,
    /// Header and body as they are stored.
    pub(crate) bytes: Bytes,
    /// The module of the body, if it is encrypted.
    pub(crate) module: Option<Module>,
}

impl StoredPage {
    /// The body as it is stored.
    pub(crate) fn body(&self) -> &[u8] {
        self.bytes.get(self.header_len..).unwrap_or_default()
    }

    /// Whether it holds levels and values.
    pub(crate) fn is_data(&self) -> bool {
        matches!(self.header.r#type, PageType::DataPage | PageType::DataPageV2)
    }
}

/// Where a column chunk is, and what its pages are read with.
#[derive(Debug)]
pub(crate) struct ChunkWalk {
    /// The bytes of its pages in the file.
    pub(crate) range: Range<u64>,
    row_group: usize,
    column: Arc<str>,
    slots: u64,
    context: PageContext,
}

impl ChunkWalk {
    /// The chunk of a leaf, in a file of `file_len` bytes.
    ///
    /// # Errors
    /// `Usage` if there is no such chunk, `Malformed` if its metadata are broken or it lies outside
    /// the file, `Unsupported` if it lies in another file, `Crypto` if its key is missing.
    pub(crate) fn new(
        footer: &Footer,
        file_len: u64,
        row_group: usize,
        leaf: usize,
        limits: &Limits,
    ) -> Result<Self> {
        let described = footer.schema().leaf(leaf)?;
        let column: Arc<str> = described.path.dotted().into();
        let read = || {
            let chunk = footer.column_chunk_ref(row_group, leaf)?;
            chunk.check_is_here()?;
            let decryptor = footer.chunk_decryptor(row_group, leaf, &chunk)?;
            let slots = slots(&chunk)?;
            let range = chunk_range(footer, file_len, row_group, leaf, &chunk)?;
            let codec = chunk.meta_data.map(|meta| meta.codec).unwrap_or_default();
            let mut context = footer.page_context(&described, codec, limits);
            context.decryptor = decryptor;
            Ok((range, slots, context))
        };
        let placed = |e: Error| e.at_row_group(row_group).at_column(column.clone());
        let (range, slots, context) = read().map_err(placed)?;
        Ok(Self { range, row_group, column, slots, context })
    }

    /// The decryptor of its modules, if it is encrypted.
    pub(crate) fn decryptor(&self) -> Option<&ChunkDecryptor> {
        self.context.decryptor.as_ref()
    }

    /// The slots of the chunk, and what its pages are opened with.
    pub(super) fn into_parts(self) -> (u64, PageContext) {
        (self.slots, self.context)
    }

    /// The pages of the chunk from `bytes`, which are those of [`ChunkWalk::range`]; `memory`
    /// counts them.
    pub(crate) fn pages(self, bytes: Bytes, memory: Reservation) -> StoredPages {
        StoredPages {
            rest: bytes,
            offset: self.range.start,
            slots_left: self.slots,
            context: self.context,
            row_group: self.row_group,
            column: self.column,
            data_pages: 0,
            has_dictionary: false,
            is_done: false,
            _memory: memory,
        }
    }
}

/// The slots of a chunk, as its metadata say.
fn slots(chunk: &ColumnChunkRef<'_>) -> Result<u64> {
    let meta = chunk
        .meta_data
        .as_ref()
        .ok_or_else(|| Error::malformed(Spec::Metadata("ColumnChunk"), "meta_data is missing"))?;
    u64::try_from(meta.num_values).map_err(|_| {
        let spec = Spec::Metadata("ColumnMetaData");
        Error::mismatch(spec, "num_values", "not negative", meta.num_values)
    })
}

/// Where the pages of a chunk are, in a file of `file_len` bytes.
///
/// # Errors
/// `Malformed` if its metadata are missing or broken, or it lies outside the file.
pub(crate) fn chunk_range(
    footer: &Footer,
    file_len: u64,
    row_group: usize,
    leaf: usize,
    chunk: &ColumnChunkRef<'_>,
) -> Result<Range<u64>> {
    let slots = slots(chunk)?;
    let Some(meta) = &chunk.meta_data else { return Ok(0..0) };
    let mut range = match byte_range(meta, slots.max(1), file_len) {
        // Without values, the offsets may be meaningless.
        Err(_) if slots == 0 => 0..0,
        range => range?,
    };
    if footer.quirks().short_chunks && slots > 0 {
        range.end = end_of_short_chunk(footer, file_len, row_group, leaf, &range);
    }
    Ok(range)
}

/// The pages of a column chunk, in the order of the file.
/// [`Reader::stored_pages`](crate::Reader::stored_pages) makes it.
#[derive(Debug)]
pub struct StoredPages {
    /// The rest of the chunk.
    rest: Bytes,
    /// Where that begins in the file.
    offset: u64,
    /// Level entries that no page has had yet.
    slots_left: u64,
    context: PageContext,
    row_group: usize,
    column: Arc<str>,
    data_pages: usize,
    has_dictionary: bool,
    is_done: bool,
    _memory: Reservation,
}

impl StoredPages {
    /// Where those that are left end in the file.
    pub(crate) fn end(&self) -> u64 {
        self.offset + self.rest.len() as u64
    }

    fn page(&mut self) -> Result<Option<StoredPage>> {
        if self.slots_left == 0 {
            // A page without values may follow.
            let page = (!self.rest.is_empty()).then(|| self.take().ok()).flatten();
            return Ok(page.filter(|page| self.note(page).is_ok()));
        }
        if self.rest.is_empty() {
            return Err(Error::malformed(
                Spec::Pages,
                format_args!("the column chunk ends with {} values missing", self.slots_left),
            ));
        }
        let page = self.take()?;
        self.note(&page)?;
        Ok(Some(page))
    }

    /// Takes the next page from the rest.
    fn take(&mut self) -> Result<StoredPage> {
        let is_first = !self.has_dictionary && self.data_pages == 0;
        let position = PagePosition { is_first, data_pages: self.data_pages };
        let StoredHeader { header, len: header_len, body: module } =
            self.context.read_header(&self.rest, position)?;
        let body_len = count(header.compressed_page_size, "PageHeader.compressed_page_size")?;
        let left = self.rest.len().saturating_sub(header_len);
        if body_len > left {
            return Err(Error::mismatch(
                Spec::Pages,
                "compressed_page_size",
                format_args!("at most the {left} bytes left of the column chunk"),
                body_len,
            ));
        }
        let bytes = self.rest.split_to(header_len + body_len);
        let offset = self.offset;
        self.offset += bytes.len() as u64;
        Ok(StoredPage { offset, header_len, header: *header, bytes, module })
    }

    /// Counts a page.
    fn note(&mut self, page: &StoredPage) -> Result<()> {
        if page.header.r#type == PageType::DictionaryPage {
            if self.has_dictionary || self.data_pages > 0 {
                return Err(Error::malformed(
                    Spec::Pages,
                    "a dictionary page must be the first of its column chunk, and the only one",
                ));
            }
            self.has_dictionary = true;
            return Ok(());
        }
        if !page.is_data() {
            return Ok(());
        }
        let header = &page.header;
        let values = match (&header.data_page_header, &header.data_page_header_v2) {
            (Some(v1), _) if header.r#type == PageType::DataPage => v1.num_values,
            (_, Some(v2)) if header.r#type == PageType::DataPageV2 => v2.num_values,
            _ => {
                let spec = Spec::Metadata("PageHeader");
                return Err(Error::malformed(spec, "the header of the data page is missing"));
            }
        };
        let slots = count(values, "num_values")? as u64;
        self.slots_left = self.slots_left.checked_sub(slots).ok_or_else(|| {
            let expected = format_args!("at most the {} left of the chunk", self.slots_left);
            Error::mismatch(Spec::Pages, "num_values of the page", expected, slots)
        })?;
        self.data_pages += 1;
        Ok(())
    }
}

impl Iterator for StoredPages {
    type Item = Result<StoredPage>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_done {
            return None;
        }
        let (offset, page) = (self.offset, self.data_pages);
        let found = self.page();
        self.is_done = !matches!(found, Ok(Some(_)));
        let place = |e: Error| {
            let e = e.at_offset(offset).at_page(page);
            e.at_row_group(self.row_group).at_column(self.column.clone())
        };
        found.map_err(place).transpose()
    }
}
