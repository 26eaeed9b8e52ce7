//! Seals a page: joins levels and values, compresses them, computes the checksum, and appends
//! header and body to the chunk.
//!
//! This is the inverse of `open`, which draws the layouts of both versions.

use std::ops::Range;

use crate::compress::{Compression, Compressor};
use crate::error::{Error, LimitKind, Result};
use crate::format::{
    DataPageHeader, DataPageHeaderV2, DictionaryPageHeader, Encoding, PageHeader, PageType,
};
use crate::levels::LeafLevels;
use crate::memory;
use crate::thrift::Write;

/// Which layout data pages have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum PageVersion {
    /// Everything is compressed together; every reader knows it.
    #[default]
    V1,
    /// Levels are not compressed, and values only where it helps.
    V2,
}

/// The levels and values of a data page.
#[derive(Debug)]
pub(crate) struct PageParts<'a> {
    /// Entries without a value.
    pub nulls: usize,
    /// Rows that begin in the page.
    pub rows: usize,
    /// The levels of the chunk.
    pub levels: &'a LeafLevels,
    /// The entries of the page among them.
    pub entries: Range<usize>,
    /// Encoding of the values.
    pub encoding: Encoding,
    /// The values, encoded.
    pub values: &'a [u8],
}

/// Sizes of a page in its chunk, header included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SealedPage {
    /// Where it begins in the chunk.
    pub offset: usize,
    /// Bytes as stored.
    pub stored: usize,
    /// Bytes before compression.
    pub raw: usize,
    /// Bytes at the end of the page that the caller must append: values as they are.
    pub bytes_left_to_caller: usize,
}

impl std::fmt::Debug for Sealer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sealer").field("compression", &self.compression).finish_non_exhaustive()
    }
}

/// Seals the pages of a column chunk; keeps its tables and buffers from chunk to chunk.
pub(crate) struct Sealer {
    compression: Compression,
    compressor: Compressor,
    version: PageVersion,
    checksums: bool,
    /// Buffer of the uncompressed body.
    body: Vec<u8>,
    /// Buffer of the compressed body.
    compressed: Vec<u8>,
}

/// A page that shrinks by less than one part in this many is stored as it is, where the format
/// allows: reading it compressed costs more.
const SHRINKAGE_DIVISOR: usize = 32;

/// Minimum bytes of levels, and of the values after them, that are compressed in separate blocks,
/// because the tables of a block take about 100 bytes.
const MIN_SEPARATE_LEVEL_BYTES: usize = 1 << 10;

/// Minimum bytes of each stream of BYTE_STREAM_SPLIT that is compressed in blocks of its own,
/// because tables take time to read, too: two embeddings of 768 floats take 5 % fewer bytes in
/// four blocks than in one, and a fifth more time.
const MIN_SEPARATE_STREAM_BYTES: usize = 8 << 10;

/// Appends to `cuts` where the streams of BYTE_STREAM_SPLIT begin in what is compressed, if
/// `values` bytes of `n` values begin at `start`: the first bytes of floats have a pattern, and
/// the last ones none, and are then stored as they are.
fn cut_streams(encoding: Encoding, start: usize, values: usize, n: usize, cuts: &mut Vec<usize>) {
    if encoding == Encoding::ByteStreamSplit && n >= MIN_SEPARATE_STREAM_BYTES {
        cuts.extend((1..values / n).map(|stream| start + stream * n));
    }
}

impl Sealer {
    /// A sealer.
    ///
    /// # Errors
    /// As [`Compressor::new`].
    pub(crate) fn new(
        compression: Compression,
        version: PageVersion,
        checksums: bool,
    ) -> Result<Self> {
        let compressor = Compressor::new(compression)?;
        let (body, compressed) = (Vec::new(), Vec::new());
        Ok(Self { compression, compressor, version, checksums, body, compressed })
    }

    /// Whether it was made for these settings.
    pub(crate) fn is(
        &self,
        compression: Compression,
        version: PageVersion,
        checksums: bool,
    ) -> bool {
        (self.compression, self.version, self.checksums) == (compression, version, checksums)
    }

    /// Bytes that `input` takes when compressed.
    ///
    /// # Errors
    /// As [`Compressor::compress`].
    pub(crate) fn compressed_len(&mut self, input: &[u8]) -> Result<usize> {
        self.compressed_len_of(input, Encoding::Plain, 0)
    }

    /// As [`Sealer::compressed_len`], of `n` values in an encoding.
    ///
    /// # Errors
    /// As [`Compressor::compress`].
    pub(crate) fn compressed_len_of(
        &mut self,
        input: &[u8],
        encoding: Encoding,
        n: usize,
    ) -> Result<usize> {
        let mut cuts = Vec::new();
        cut_streams(encoding, 0, input.len(), n, &mut cuts);
        self.compressed.clear();
        self.compressor.compress_apart(input, &cuts, &mut self.compressed)?;
        Ok(self.compressed.len())
    }

    /// Appends a dictionary page of `n` PLAIN values.
    ///
    /// # Errors
    /// `Limit` if the page is larger than the format can say.
    pub(crate) fn dictionary(
        &mut self,
        n: usize,
        values: &[u8],
        sorted: bool,
        out: &mut Vec<u8>,
    ) -> Result<SealedPage> {
        self.compressed.clear();
        self.compressor.compress(values, &mut self.compressed)?;
        let header = PageHeader {
            r#type: PageType::DictionaryPage,
            dictionary_page_header: Some(DictionaryPageHeader {
                num_values: size(n)?,
                encoding: Encoding::Plain,
                is_sorted: Some(sorted),
                ..DictionaryPageHeader::default()
            }),
            ..PageHeader::default()
        };
        append(header, self.checksums, values.len(), &self.compressed, Rest::NONE, out)
    }

    /// Appends a data page. With `values_by_caller`, and without a codec, all but its values: the
    /// caller must append them.
    ///
    /// # Errors
    /// `Limit` if the page is larger than the format can say.
    pub(crate) fn data(
        &mut self,
        page: &PageParts<'_>,
        values_by_caller: bool,
        out: &mut Vec<u8>,
    ) -> Result<SealedPage> {
        let values_by_caller = values_by_caller && self.compression == Compression::Uncompressed;
        match self.version {
            PageVersion::V1 => self.v1(page, values_by_caller, out),
            PageVersion::V2 => self.v2(page, values_by_caller, out),
        }
    }

    /// Empties the body, and makes room for the levels of a page: packed, or in runs that are no
    /// longer, with a byte or two more for each eight of them.
    fn room_for_levels(&mut self, page: &PageParts<'_>) -> Result<()> {
        let bits = |max: u16| (u16::BITS - max.leading_zeros()) as usize + 3;
        let (def, rep) = (bits(page.levels.max_def()), bits(page.levels.max_rep()));
        self.body.clear();
        memory::room(&mut self.body, (page.entries.len() / 8 + 1) * (def + rep) + 256)
    }

    fn v1(
        &mut self,
        page: &PageParts<'_>,
        values_by_caller: bool,
        out: &mut Vec<u8>,
    ) -> Result<SealedPage> {
        self.room_for_levels(page)?;
        with_length(&mut self.body, |out| page.levels.encode_rep(page.entries.clone(), out))?;
        with_length(&mut self.body, |out| page.levels.encode_def(page.entries.clone(), out))?;
        let header = PageHeader {
            r#type: PageType::DataPage,
            data_page_header: Some(DataPageHeader {
                num_values: size(page.entries.len())?,
                encoding: page.encoding,
                definition_level_encoding: Encoding::Rle,
                repetition_level_encoding: Encoding::Rle,
                ..DataPageHeader::default()
            }),
            ..PageHeader::default()
        };
        let raw = self.body.len() + page.values.len();
        if self.compression == Compression::Uncompressed {
            let rest = Rest::new(page.values, values_by_caller);
            return append(header, self.checksums, raw, &self.body, rest, out);
        }
        let level_bytes = self.body.len();
        let mut cuts = Vec::new();
        if level_bytes.min(page.values.len()) >= MIN_SEPARATE_LEVEL_BYTES {
            cuts.push(level_bytes);
        }
        let n = page.entries.len() - page.nulls;
        cut_streams(page.encoding, level_bytes, page.values.len(), n, &mut cuts);
        memory::append(&mut self.body, page.values)?;
        self.compressed.clear();
        self.compressor.compress_apart(&self.body, &cuts, &mut self.compressed)?;
        append(header, self.checksums, raw, &self.compressed, Rest::NONE, out)
    }

    fn v2(
        &mut self,
        page: &PageParts<'_>,
        values_by_caller: bool,
        out: &mut Vec<u8>,
    ) -> Result<SealedPage> {
        self.room_for_levels(page)?;
        page.levels.encode_rep(page.entries.clone(), &mut self.body)?;
        let rep_len = self.body.len();
        page.levels.encode_def(page.entries.clone(), &mut self.body)?;
        let def_len = self.body.len() - rep_len;
        self.compressed.clear();
        if self.compression != Compression::Uncompressed && !page.values.is_empty() {
            let mut cuts = Vec::new();
            let n = page.entries.len() - page.nulls;
            cut_streams(page.encoding, 0, page.values.len(), n, &mut cuts);
            self.compressor.compress_apart(page.values, &cuts, &mut self.compressed)?;
        }
        let shrinks =
            self.compressed.len() + page.values.len() / SHRINKAGE_DIVISOR < page.values.len();
        let is_compressed = shrinks && self.compression != Compression::Uncompressed;
        let values = if is_compressed { &self.compressed[..] } else { page.values };
        let header = PageHeader {
            r#type: PageType::DataPageV2,
            data_page_header_v2: Some(DataPageHeaderV2 {
                num_values: size(page.entries.len())?,
                num_nulls: size(page.nulls)?,
                num_rows: size(page.rows)?,
                encoding: page.encoding,
                definition_levels_byte_length: size(def_len)?,
                repetition_levels_byte_length: size(rep_len)?,
                is_compressed: Some(is_compressed),
                ..DataPageHeaderV2::default()
            }),
            ..PageHeader::default()
        };
        append(
            header,
            self.checksums,
            self.body.len() + page.values.len(),
            &self.body,
            Rest::new(values, values_by_caller),
            out,
        )
    }
}

/// Appends levels after their length; nothing if there are none.
fn with_length(out: &mut Vec<u8>, put: impl FnOnce(&mut Vec<u8>) -> Result<bool>) -> Result<()> {
    let start = out.len();
    out.extend([0; 4]);
    if !put(out)? {
        out.truncate(start);
        return Ok(());
    }
    let len = u32::try_from(out.len() - start - 4).map_err(|_| too_large())?;
    if let Some(prefix) = out.get_mut(start..start + 4) {
        prefix.copy_from_slice(&len.to_le_bytes());
    }
    Ok(())
}

/// The end of a body.
#[derive(Clone, Copy)]
struct Rest<'a> {
    bytes: &'a [u8],
    /// Whether the caller appends it.
    by_caller: bool,
}

impl<'a> Rest<'a> {
    const NONE: Self = Self { bytes: &[], by_caller: false };

    fn new(bytes: &'a [u8], by_caller: bool) -> Self {
        Self { bytes, by_caller }
    }
}

/// Bytes of a usual header, and more.
const USUAL_HEADER: usize = 1 << 10;

/// Appends header and body.
fn append(
    mut header: PageHeader,
    checksums: bool,
    raw: usize,
    body: &[u8],
    rest: Rest<'_>,
    out: &mut Vec<u8>,
) -> Result<SealedPage> {
    let offset = out.len();
    let stored = body.len() + rest.bytes.len();
    header.uncompressed_page_size = size(raw)?;
    header.compressed_page_size = size(stored)?;
    if checksums {
        let mut crc = crc32fast::Hasher::new();
        crc.update(body);
        crc.update(rest.bytes);
        header.crc = Some(crc.finalize().cast_signed());
    }
    // Bounds are cut to a few bytes: longer headers are rare.
    memory::room(out, USUAL_HEADER)?;
    header.write(out)?;
    let header_len = out.len() - offset;
    memory::room(out, body.len() + if rest.by_caller { 0 } else { rest.bytes.len() })?;
    out.extend_from_slice(body);
    let bytes_left_to_caller = if rest.by_caller { rest.bytes.len() } else { 0 };
    if !rest.by_caller {
        out.extend_from_slice(rest.bytes);
    }
    let (stored, raw) = (stored + header_len, raw + header_len);
    Ok(SealedPage { offset, stored, raw, bytes_left_to_caller })
}

fn size(n: usize) -> Result<i32> {
    i32::try_from(n).map_err(|_| too_large())
}

#[cold]
fn too_large() -> Error {
    Error::limit(LimitKind::Page, "a page takes more than 2 GiB; write fewer rows per page")
}

#[cfg(all(test, feature = "zstd"))]
mod tests {
    use super::*;

    #[test]
    fn streams_of_numbers_are_compressed_apart_unless_they_are_short() {
        let mut rng = fastrand::Rng::with_seed(5);
        for n in [MIN_SEPARATE_STREAM_BYTES - 1, MIN_SEPARATE_STREAM_BYTES, 50_000] {
            // Three streams of noise, and one of few values.
            let noise: Vec<u8> = (0..3 * n).map(|_| rng.u8(..)).collect();
            let few: Vec<u8> = (0..n).map(|_| rng.u8(..4)).collect();
            let values = [&noise[..], &few].concat();
            let mut sealer = Sealer::new(Compression::Zstd(4), PageVersion::V1, true).unwrap();
            let whole = sealer.compressed_len(&values).unwrap();
            let apart = sealer.compressed_len_of(&values, Encoding::ByteStreamSplit, n).unwrap();
            if n < MIN_SEPARATE_STREAM_BYTES {
                assert_eq!(apart, whole);
                continue;
            }
            // Noise is stored as it is, but for the head of each block of at most 128 KiB; in few
            // values after it, an encoder finds matches that gain little.
            let alone = sealer.compressed_len(&few).unwrap();
            assert!(
                apart < 3 * n + alone + alone / 8,
                "{apart} bytes; the few values alone take {alone}"
            );
            assert!(apart < whole, "{apart} of {whole} bytes");
        }
    }
}
