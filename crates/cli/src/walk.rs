//! Lists the pages of a column chunk by their headers: nothing is decompressed.

use marquetry::Reader;
use marquetry::format::{Encoding, PageType};
use serde::Serialize;

use crate::failure::Result;
use crate::json::AsText;
use crate::report::ReportMemory;

/// One page.
#[derive(Serialize)]
pub(crate) struct Page {
    /// Its number among the data pages, if it is one.
    #[serde(skip)]
    pub(crate) number: Option<usize>,
    #[serde(rename = "type")]
    pub(crate) kind: AsText<PageType>,
    /// The encoding of the values.
    pub(crate) encoding: Option<AsText<Encoding>>,
    /// Level entries of a data page, values of a dictionary page.
    pub(crate) values: Option<i32>,
    /// Number of rows, if the header states it.
    pub(crate) rows: Option<i32>,
    /// Where its header begins in the file.
    pub(crate) offset: u64,
    header_bytes: usize,
    pub(crate) compressed_bytes: i32,
    pub(crate) uncompressed_bytes: i32,
    pub(crate) crc: Option<u32>,
}

/// The pages of a chunk; their headers are decrypted, where the column is encrypted.
pub(crate) fn pages(
    reader: &Reader,
    (row_group, leaf): (usize, usize),
    file: &str,
    memory: &ReportMemory,
) -> Result<Vec<Page>> {
    let (mut pages, mut data_pages) = (Vec::new(), 0..);
    for page in reader.stored_pages(row_group, leaf)? {
        let page = page?;
        let header = page.header;
        let (v1, v2) = (header.data_page_header.as_ref(), header.data_page_header_v2.as_ref());
        let dictionary = header.dictionary_page_header.as_ref();
        let values = v1.map(|of| (of.num_values, of.encoding));
        let values = values.or_else(|| v2.map(|of| (of.num_values, of.encoding)));
        let values = values.or_else(|| dictionary.map(|of| (of.num_values, of.encoding)));
        let is_data = matches!(header.r#type, PageType::DataPage | PageType::DataPageV2);
        pages.push(Page {
            number: if is_data { data_pages.next() } else { None },
            kind: AsText(header.r#type),
            encoding: values.map(|(_, encoding)| AsText(encoding)),
            values: values.map(|(values, _)| values),
            rows: v2.map(|of| of.num_rows),
            offset: page.offset,
            header_bytes: page.header_len,
            compressed_bytes: header.compressed_page_size,
            uncompressed_bytes: header.uncompressed_page_size,
            crc: header.crc.map(i32::cast_unsigned),
        });
        memory.check(file, pages.len() * size_of::<Page>())?;
    }
    Ok(pages)
}
