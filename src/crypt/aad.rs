//! Builds the additional authenticated data (AAD) of a module from its type and its place in the
//! file.
//!
//! Spec: Encryption.md, "AAD suffix".

use crate::error::{Error, Result};

/// A module of a file, and its place. Pages are counted from 0 within their chunk, the dictionary
/// page not counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Module {
    Footer,
    ColumnMetaData,
    DataPage(usize),
    DictionaryPage,
    DataPageHeader(usize),
    DictionaryPageHeader,
    ColumnIndex,
    OffsetIndex,
    BloomFilterHeader,
    BloomFilterBitset,
}

impl Module {
    /// The number of the type.
    fn type_id(self) -> u8 {
        match self {
            Self::Footer => 0,
            Self::ColumnMetaData => 1,
            Self::DataPage(_) => 2,
            Self::DictionaryPage => 3,
            Self::DataPageHeader(_) => 4,
            Self::DictionaryPageHeader => 5,
            Self::ColumnIndex => 6,
            Self::OffsetIndex => 7,
            Self::BloomFilterHeader => 8,
            Self::BloomFilterBitset => 9,
        }
    }

    fn page(self) -> Option<usize> {
        match self {
            Self::DataPage(page) | Self::DataPageHeader(page) => Some(page),
            _ => None,
        }
    }

    /// Whether it is the body of a page, which AES_GCM_CTR_V1 does not authenticate.
    pub(super) fn is_page_body(self) -> bool {
        matches!(self, Self::DataPage(_) | Self::DictionaryPage)
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Footer => "the footer",
            Self::ColumnMetaData => "the metadata of the column chunk",
            Self::DataPage(_) => "a data page",
            Self::DictionaryPage => "the dictionary page",
            Self::DataPageHeader(_) => "the header of a data page",
            Self::DictionaryPageHeader => "the header of the dictionary page",
            Self::ColumnIndex => "the column index",
            Self::OffsetIndex => "the offset index",
            Self::BloomFilterHeader => "the header of the bloom filter",
            Self::BloomFilterBitset => "the bits of the bloom filter",
        }
    }

    /// The AAD of a module of this row group and column; `file` is what the AAD of all modules of
    /// the file begin with.
    ///
    /// # Errors
    /// `Crypto` if the number of the page does not fit into 16 bits.
    pub(super) fn aad(self, file: &[u8], place: ChunkOrdinals) -> Result<Vec<u8>> {
        let mut out = Vec::with_capacity(file.len() + 7);
        out.extend_from_slice(file);
        out.push(self.type_id());
        if self == Self::Footer {
            return Ok(out);
        }
        out.extend_from_slice(&place.row_group.to_le_bytes());
        out.extend_from_slice(&place.column.to_le_bytes());
        if let Some(page) = self.page() {
            out.extend_from_slice(&ordinal("pages in a column chunk", page)?.to_le_bytes());
        }
        Ok(out)
    }
}

/// The row group and the column of a module.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct ChunkOrdinals {
    row_group: i16,
    column: i16,
}

impl ChunkOrdinals {
    /// # Errors
    /// `Crypto` if one does not fit into 16 bits.
    pub(super) fn new(row_group: usize, column: usize) -> Result<Self> {
        Ok(Self {
            row_group: ordinal("row groups", row_group)?,
            column: ordinal("columns", column)?,
        })
    }
}

fn ordinal(what: &str, n: usize) -> Result<i16> {
    i16::try_from(n).map_err(|_| {
        Error::crypto(format_args!(
            "an encrypted file has at most 32,768 {what}, because their numbers are authenticated \
             as 16 bits, and this is number {n}: write larger ones, or several files"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_data_to_authenticate_are_laid_out_as_the_specification_says() {
        let place = ChunkOrdinals::new(258, 3).unwrap();
        assert_eq!(Module::Footer.aad(b"file", place).unwrap(), b"file\x00");
        assert_eq!(Module::ColumnMetaData.aad(b"f", place).unwrap(), b"f\x01\x02\x01\x03\x00");
        let page = Module::DataPageHeader(32_767).aad(b"", place).unwrap();
        assert_eq!(page, b"\x04\x02\x01\x03\x00\xff\x7f");
        assert_eq!(Module::DictionaryPage.aad(b"", place).unwrap(), b"\x03\x02\x01\x03\x00");
    }

    #[test]
    fn numbers_beyond_16_bits_are_refused() {
        let place = ChunkOrdinals::default();
        assert!(Module::DataPage(32_767).aad(b"", place).is_ok());
        let refused = Module::DataPage(32_768).aad(b"", place).unwrap_err();
        assert!(refused.to_string().contains("at most 32,768 pages in a column chunk"));
        assert!(ChunkOrdinals::new(32_767, 32_767).is_ok());
        assert!(ChunkOrdinals::new(32_768, 0).is_err());
        assert!(ChunkOrdinals::new(0, 32_768).is_err());
    }
}
