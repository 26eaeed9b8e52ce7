//! The pages of a column chunk, as their headers say: nothing is decompressed.

use marquetry::Reader;
use marquetry::format::{PageHeader, PageType};

use crate::failure::Result;
use crate::report::Listing;

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

/// The pages of a chunk; their headers are decrypted, where the column is encrypted.
pub(crate) fn pages(
    reader: &Reader,
    (row_group, leaf): (usize, usize),
    file: &str,
    listing: &Listing,
) -> Result<Vec<Page>> {
    let mut pages = Vec::new();
    for page in reader.stored_pages(row_group, leaf)? {
        let page = page?;
        pages.push(Page { offset: page.offset, header_len: page.header_len, header: page.header });
        listing.check(file, pages.len() * size_of::<Page>())?;
    }
    Ok(pages)
}
