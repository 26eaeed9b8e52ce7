//! [`Chunk`]: what the footer says of a column chunk.

use marquetry::format::{ColumnChunkRef, CompressionCodec, Encoding, PageEncodingStats, PageType};
use serde::Serialize;

use crate::json::AsText;

/// A column chunk, by its metadata alone.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Chunk {
    pub(crate) row_group: usize,
    /// Index of its leaf.
    pub(crate) column: usize,
    /// Where its pages begin.
    pub(crate) offset: Option<u64>,
    pub(crate) bytes: u64,
    pub(crate) uncompressed_bytes: u64,
    /// Level entries.
    pub(crate) values: u64,
    pub(crate) nulls: Option<u64>,
    #[serde(serialize_with = "as_text")]
    pub(crate) codec: Option<CompressionCodec>,
    /// The encoding of most data pages, as far as the footer says.
    #[serde(serialize_with = "as_text")]
    pub(crate) encoding: Option<Encoding>,
    /// Whether data pages do without the dictionary that others use.
    pub(crate) dictionary_fallback: bool,
    pub(crate) has_bloom_filter: bool,
    pub(crate) has_page_index: bool,
    pub(crate) is_encrypted: bool,
    /// Why nothing is known of it, if that is so.
    pub(crate) problem: Option<String>,
}

fn as_text<T: ToString, S: serde::Serializer>(value: &Option<T>, to: S) -> Result<S::Ok, S::Error> {
    value.as_ref().map(|value| AsText(value.to_string())).serialize(to)
}

impl Chunk {
    pub(super) fn new(
        (row_group, column): (usize, usize),
        chunk: marquetry::Result<ColumnChunkRef<'_>>,
    ) -> Self {
        let found = Self { row_group, column, ..Self::default() };
        let chunk = match chunk {
            Ok(chunk) => chunk,
            Err(error) => return Self { problem: Some(error.message().to_owned()), ..found },
        };
        let is_encrypted = chunk.is_encrypted();
        let Some(meta) = chunk.meta_data else {
            let why = if is_encrypted { "its key is not known" } else { "it has no metadata" };
            return Self { is_encrypted, problem: Some(why.to_owned()), ..found };
        };
        let is_elsewhere = chunk.file_path.is_some_and(|path| !path.is_empty());
        let dictionary = meta.dictionary_page_offset.filter(|at| *at > 0);
        let first = dictionary.map_or(meta.data_page_offset, |at| at.min(meta.data_page_offset));
        let stats = meta.encoding_stats.iter().flat_map(|stats| stats.iter());
        let of_pages = DataPages::new(stats);
        Self {
            offset: u64::try_from(first).ok().filter(|_| !is_elsewhere),
            bytes: size(meta.total_compressed_size),
            uncompressed_bytes: size(meta.total_uncompressed_size),
            values: size(meta.num_values),
            nulls: meta.statistics.and_then(|of| u64::try_from(of.null_count?).ok()),
            codec: Some(meta.codec),
            encoding: of_pages.most.or_else(|| listed(meta.encodings.iter())),
            dictionary_fallback: of_pages.gave_up,
            has_bloom_filter: meta.bloom_filter_offset.is_some(),
            has_page_index: chunk.offset_index_offset.is_some()
                && chunk.column_index_offset.is_some(),
            is_encrypted,
            problem: is_elsewhere.then(|| "its pages lie in another file".to_owned()),
            ..found
        }
    }
}

fn size(n: i64) -> u64 {
    u64::try_from(n).unwrap_or_default()
}

/// The data pages, as encoding_stats state them.
struct DataPages {
    /// The encoding of most.
    most: Option<Encoding>,
    /// Whether some use the dictionary and others do not.
    gave_up: bool,
}

impl DataPages {
    fn new(stats: impl Iterator<Item = PageEncodingStats>) -> Self {
        let mut pages: Vec<(Encoding, i32)> = Vec::new();
        for of in stats {
            let is_data = matches!(of.page_type, PageType::DataPage | PageType::DataPageV2);
            if !is_data || of.count <= 0 || pages.len() >= MAX_ENCODINGS {
                continue;
            }
            match pages.iter_mut().find(|(encoding, _)| *encoding == of.encoding) {
                Some((_, count)) => *count = count.saturating_add(of.count),
                None => pages.push((of.encoding, of.count)),
            }
        }
        let with = pages.iter().filter(|(encoding, _)| is_dictionary(*encoding)).count();
        Self {
            gave_up: with > 0 && with < pages.len(),
            most: pages.iter().max_by_key(|(_, count)| *count).map(|(encoding, _)| *encoding),
        }
    }
}

/// There are fewer; a file may say otherwise.
const MAX_ENCODINGS: usize = 64;

/// Whether pages of it are indexes into a dictionary.
pub(super) fn is_dictionary(encoding: Encoding) -> bool {
    matches!(encoding, Encoding::RleDictionary | Encoding::PlainDictionary)
}

/// The likely encoding of values among those of values, levels and the dictionary.
fn listed(encodings: impl Iterator<Item = Encoding>) -> Option<Encoding> {
    let all: Vec<Encoding> = encodings.take(MAX_ENCODINGS).collect();
    let rank = |encoding: &Encoding| match encoding {
        encoding if is_dictionary(*encoding) => 0,
        Encoding::Plain => 2,
        Encoding::Rle => 3,
        Encoding::BitPacked => 4,
        _ => 1,
    };
    all.into_iter().min_by_key(rank)
}
