//! [`ChunkDictionary`] decodes the dictionary page of a column chunk alone.
//!
//! Spec: README.md, "Dictionary Page". Trap: some writers do not state where the dictionary page
//! is; it is the first page of the chunk then.

use std::ops::Range;

use arrow_array::ArrayRef;
use arrow_schema::DataType;
use bytes::Bytes;

use super::chunk::Pages;
use super::column::{ColumnSpec, LeafReader};
use super::footer::WriterQuirks;
use super::metadata::Metadata;
use super::options::ReadOptions;
use super::page_list::PageList;
use super::supplied::Step;
use super::walk::ChunkWalk;
use crate::error::{Error, Result};
use crate::format::Encoding;
use crate::limits::Budget;
use crate::page::PageContext;
use crate::schema::convert::read_conversion;

/// A column chunk whose dictionary is wanted.
pub(crate) struct ChunkDictionary {
    slots: u64,
    context: PageContext,
    spec: ColumnSpec,
    /// The bytes to fetch: the dictionary page, or the chunk if the footer does not say where that
    /// page ends.
    pub(crate) range: Range<u64>,
}

impl ChunkDictionary {
    /// The dictionary of a column chunk; `None` if the footer says that there is none.
    ///
    /// # Errors
    /// `Usage` if there is no such chunk, `Malformed` if its metadata are broken, `Unsupported` if
    /// the column has no Arrow type, `Crypto` if its key is missing.
    pub(crate) fn new(
        metadata: &Metadata,
        row_group: usize,
        leaf: usize,
        options: &ReadOptions,
    ) -> Result<Option<Self>> {
        let footer = metadata.footer();
        let described = footer.schema().leaf(leaf)?;
        let walk = ChunkWalk::new(footer, metadata.file_len(), row_group, leaf, &options.limits)?;
        let data_type = match metadata.leaf_type(&described, &options.arrow)? {
            DataType::Dictionary(_, value) => *value,
            DataType::RunEndEncoded(_, values) => values.data_type().clone(),
            other => other,
        };
        let conversion = read_conversion(&described, &data_type).ok_or_else(|| {
            Error::unsupported(
                "the dictionary of a column of this type",
                format_args!("{} as {data_type}", described.physical),
            )
            .at_column(described.path.dotted())
        })?;
        let data_type = DataType::Dictionary(Box::new(DataType::Int32), Box::new(data_type));
        let meta = footer.column_chunk(row_group, leaf)?.meta_data.unwrap_or_default();
        let is_dictionary = |encoding: &Encoding| {
            matches!(encoding, Encoding::RleDictionary | Encoding::PlainDictionary)
        };
        let data = u64::try_from(meta.data_page_offset).ok();
        let stated = meta.dictionary_page_offset.and_then(|at| u64::try_from(at).ok());
        let stated = stated.filter(|at| *at > 0);
        if stated.is_none() && !meta.encodings.iter().any(is_dictionary) {
            return Ok(None);
        }
        let mut range = walk.range.clone();
        let (slots, mut context) = walk.into_parts();
        context.verify_checksums = options.verify_checksums;
        if let (Some(start), Some(end)) = (stated, data)
            && range.start == start
            && start < end
            && end <= range.end
        {
            range.end = end;
        }
        let (keep_levels, slot, elements) = (false, 0, Vec::new());
        let spec =
            ColumnSpec { leaf: described, data_type, conversion, keep_levels, slot, elements };
        Ok(Some(Self { slots, context, spec, range }))
    }

    /// Decodes the dictionary in `bytes`, which are those of [`ChunkDictionary::range`]; `None` if
    /// the chunk does not begin with one.
    ///
    /// # Errors
    /// `Malformed` if the page breaks a rule, `Limit` if it is too large, `Crypto`.
    pub(crate) fn decode(
        self,
        bytes: Bytes,
        options: &ReadOptions,
        budget: &Budget,
    ) -> Result<Option<ArrayRef>> {
        let Self { slots, context, spec, range } = self;
        if range.is_empty() {
            return Ok(None);
        }
        let pages = Pages::new(&PageList::whole(bytes, range.start, slots), context, budget);
        let mut reader =
            LeafReader::new(&spec, pages, options.utf8, WriterQuirks::default(), budget)?;
        Step::from_result(reader.dictionary())?.done()
    }
}
