//! The pages of a column chunk, as their headers say: nothing is decompressed.

use marquetry::format::{ColumnChunk, ColumnMetaData, PageHeader, PageType, Thrift};
use marquetry::{Error, Reader, Spec};

use crate::failure::Result;

/// One page.
pub(crate) struct Page {
    /// Where its header begins in the file.
    pub(crate) offset: u64,
    /// Bytes of the header.
    pub(crate) header_len: usize,
    pub(crate) header: PageHeader,
}

impl Page {
    /// Level entries of a data page, values of a dictionary page.
    pub(crate) fn values(&self) -> Option<i32> {
        let header = &self.header;
        header
            .data_page_header
            .as_ref()
            .map(|h| h.num_values)
            .or_else(|| header.data_page_header_v2.as_ref().map(|h| h.num_values))
            .or_else(|| header.dictionary_page_header.as_ref().map(|h| h.num_values))
    }

    /// The encoding of the values.
    pub(crate) fn encoding(&self) -> Option<marquetry::format::Encoding> {
        let header = &self.header;
        header
            .data_page_header
            .as_ref()
            .map(|h| h.encoding)
            .or_else(|| header.data_page_header_v2.as_ref().map(|h| h.encoding))
            .or_else(|| header.dictionary_page_header.as_ref().map(|h| h.encoding))
    }

    /// Rows, where the page says so.
    pub(crate) fn rows(&self) -> Option<i32> {
        self.header.data_page_header_v2.as_ref().map(|h| h.num_rows)
    }

    /// Whether the page holds data, and not a dictionary or an index.
    pub(crate) fn is_data(&self) -> bool {
        matches!(self.header.r#type, PageType::DataPage | PageType::DataPageV2)
    }
}

/// The metadata of a chunk whose pages can be read.
///
/// # Errors
/// `Crypto` if it is encrypted.
pub(crate) fn readable(chunk: ColumnChunk) -> Result<ColumnMetaData> {
    match chunk.meta_data.filter(|_| chunk.crypto_metadata.is_none()) {
        Some(meta) => Ok(meta),
        None => {
            let text = "the column is encrypted: its pages need a key, and reading encrypted \
                        columns is not supported yet; leave it out with -c '!NAME'";
            Err(Error::crypto(text).into())
        }
    }
}

/// Walks from header to header through the chunk.
pub(crate) fn pages(reader: &Reader, meta: &ColumnMetaData) -> Result<Vec<Page>> {
    let wrong = |what: &str| Error::malformed(Spec::Metadata("ColumnMetaData"), what);
    let data =
        u64::try_from(meta.data_page_offset).map_err(|_| wrong("data_page_offset is negative"))?;
    let dictionary =
        meta.dictionary_page_offset.and_then(|at| u64::try_from(at).ok()).filter(|at| *at > 0);
    let start = dictionary.map_or(data, |at| at.min(data));
    let len = u64::try_from(meta.total_compressed_size)
        .map_err(|_| wrong("total_compressed_size is negative"))?;
    let end = start.checked_add(len).filter(|end| *end <= reader.file_len());
    let end = end.ok_or_else(|| wrong("the column chunk lies outside the file"))?;
    let bytes = reader.source().read(start..end)?;
    let mut pages = Vec::new();
    let (mut at, mut left) = (0usize, meta.num_values);
    while left > 0 && at < bytes.len() {
        let offset = start + at as u64;
        let (header, header_len) = PageHeader::from_thrift(&bytes[at..])
            .map_err(|e| e.at_offset(offset).at_page(pages.len()))?;
        let body = usize::try_from(header.compressed_page_size)
            .map_err(|_| wrong("compressed_page_size is negative").at_offset(offset))?;
        at = at.saturating_add(header_len).saturating_add(body);
        let page = Page { offset, header_len, header };
        if page.is_data() {
            left -= i64::from(page.values().unwrap_or(0).max(0));
        }
        pages.push(page);
    }
    Ok(pages)
}
