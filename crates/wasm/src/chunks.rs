//! [`Chunk`]: what the footer says of a column chunk.

use marquetry::Result;
use marquetry::format::{ColumnChunkRef, ColumnMetaDataRef, CompressionCodec, Encoding, PageType};
use marquetry::read::Footer;

/// A column chunk, by its metadata alone.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Chunk {
    pub(crate) bytes: u64,
    pub(crate) dictionary_bytes: u64,
    pub(crate) uncompressed_bytes: u64,
    pub(crate) index_bytes: u64,
    pub(crate) bloom_bytes: u64,
    /// Values, nulls included.
    pub(crate) values: u64,
    pub(crate) nulls: Option<u64>,
    pub(crate) codec: Option<CompressionCodec>,
    /// The encoding of most data pages.
    pub(crate) encoding: Option<Encoding>,
    pub(crate) is_encrypted: bool,
}

impl Chunk {
    fn new(chunk: &ColumnChunkRef<'_>) -> Self {
        let index = [chunk.offset_index_length, chunk.column_index_length];
        let found = Self {
            index_bytes: index.into_iter().map(len).sum(),
            is_encrypted: chunk.is_encrypted(),
            ..Self::default()
        };
        let Some(meta) = &chunk.meta_data else { return found };
        let bytes = size(meta.total_compressed_size);
        let dictionary = meta.dictionary_page_offset.filter(|at| *at > 0);
        let before_data = |at: i64| size(meta.data_page_offset.saturating_sub(at)).min(bytes);
        Self {
            bytes,
            dictionary_bytes: dictionary.map_or(0, before_data),
            uncompressed_bytes: size(meta.total_uncompressed_size),
            bloom_bytes: len(meta.bloom_filter_length),
            values: size(meta.num_values),
            nulls: meta.statistics.and_then(|of| u64::try_from(of.null_count?).ok()),
            codec: Some(meta.codec),
            encoding: encoding(meta),
            ..found
        }
    }
}

/// The column chunks of a row group, in the order of the leaves.
///
/// # Errors
/// `Malformed` if the footer is broken there.
pub(crate) fn chunks(footer: &Footer, row_group: usize) -> Result<Vec<Chunk>> {
    let of_group = footer.column_chunks(row_group)?;
    of_group.map(|chunk| Ok(Chunk::new(&chunk?))).collect()
}

/// A size of the metadata, which is not negative in files that are right.
fn size(n: i64) -> u64 {
    u64::try_from(n).unwrap_or_default()
}

fn len(n: Option<i32>) -> u64 {
    n.and_then(|n| u64::try_from(n).ok()).unwrap_or_default()
}

/// The encoding of most data pages, or the likely one among those of values, levels and dictionary.
fn encoding(meta: &ColumnMetaDataRef<'_>) -> Option<Encoding> {
    let stats = meta.encoding_stats.iter().flat_map(|stats| stats.iter());
    let of_data = stats.take(MAX_ENCODINGS).filter(|of| {
        matches!(of.page_type, PageType::DataPage | PageType::DataPageV2) && of.count > 0
    });
    let most = of_data.max_by_key(|of| of.count).map(|of| of.encoding);
    let rank = |encoding: &Encoding| match encoding {
        Encoding::RleDictionary | Encoding::PlainDictionary => 0,
        Encoding::Plain => 2,
        Encoding::Rle => 3,
        Encoding::BitPacked => 4,
        _ => 1,
    };
    most.or_else(|| meta.encodings.iter().take(MAX_ENCODINGS).min_by_key(rank))
}

/// There are fewer; a file may say otherwise.
const MAX_ENCODINGS: usize = 64;
