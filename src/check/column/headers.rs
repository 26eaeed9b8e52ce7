//! Page headers by themselves, and which encodings fit which types.
//!
//! Spec: `parquet.thrift`, PageHeader; Encodings.md.

use crate::format::{Encoding, PageHeader, PageType, Statistics};
use crate::schema::Physical;

/// Checks a header by itself; the error says what is wrong.
pub(crate) fn check_header(header: &PageHeader) -> Result<(), String> {
    let count = |name: &str, number: i32| match number {
        0.. => Ok(()),
        _ => Err(format!("{name} is {number}")),
    };
    count("uncompressed_page_size", header.uncompressed_page_size)?;
    let missing =
        |name: &str| format!("{name} is missing, in a page of the type {}", header.r#type);
    match header.r#type {
        PageType::DataPage => {
            let inner = header.data_page_header.as_ref();
            count("num_values", inner.ok_or_else(|| missing("data_page_header"))?.num_values)
        }
        PageType::DataPageV2 => {
            let inner = header.data_page_header_v2.as_ref();
            let inner = inner.ok_or_else(|| missing("data_page_header_v2"))?;
            count("num_values", inner.num_values)?;
            count("num_nulls", inner.num_nulls)?;
            count("num_rows", inner.num_rows)?;
            count("definition_levels_byte_length", inner.definition_levels_byte_length)?;
            count("repetition_levels_byte_length", inner.repetition_levels_byte_length)
        }
        PageType::DictionaryPage => {
            let inner = header.dictionary_page_header.as_ref();
            count("num_values", inner.ok_or_else(|| missing("dictionary_page_header"))?.num_values)
        }
        _ => Ok(()),
    }
}

pub(crate) fn encoding_of(header: &PageHeader) -> Option<Encoding> {
    match header.r#type {
        PageType::DataPage => header.data_page_header.as_ref().map(|inner| inner.encoding),
        PageType::DataPageV2 => header.data_page_header_v2.as_ref().map(|inner| inner.encoding),
        PageType::DictionaryPage => {
            header.dictionary_page_header.as_ref().map(|inner| inner.encoding)
        }
        _ => None,
    }
}

pub(in crate::check) fn statistics_of(header: &PageHeader) -> Option<&Statistics> {
    match header.r#type {
        PageType::DataPage => header.data_page_header.as_ref()?.statistics.as_ref(),
        PageType::DataPageV2 => header.data_page_header_v2.as_ref()?.statistics.as_ref(),
        _ => None,
    }
}

/// Whether data pages of a type may be in an encoding, by the table of Encodings.md.
pub(crate) fn encoding_fits(encoding: Encoding, physical: Physical) -> bool {
    use Physical as P;
    match encoding {
        Encoding::Plain
        | Encoding::PlainDictionary
        | Encoding::RleDictionary
        | Encoding::Unknown(_) => true,
        Encoding::Rle => physical == P::Boolean,
        Encoding::BitPacked => false,
        Encoding::DeltaBinaryPacked | Encoding::Pfor => matches!(physical, P::Int32 | P::Int64),
        Encoding::DeltaLengthByteArray => physical == P::ByteArray,
        Encoding::DeltaByteArray => matches!(physical, P::ByteArray | P::FixedLenByteArray(_)),
        Encoding::ByteStreamSplit => !matches!(physical, P::Boolean | P::Int96 | P::ByteArray),
        Encoding::Alp => matches!(physical, P::Float | P::Double),
    }
}
