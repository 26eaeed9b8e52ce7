//! Takes a file apart, and assembles a file of parts.

use bytes::Bytes;
use marquetry::format::*;
use marquetry::{Compression, Reader};

use super::codecs::{compress, decompress};

/// A file taken apart.
#[derive(Clone)]
pub struct Parts {
    pub meta: FileMetaData,
    /// By row group, then by column.
    pub chunks: Vec<Vec<Chunk>>,
}

/// A column chunk.
#[derive(Clone)]
pub struct Chunk {
    pub pages: Vec<Page>,
    pub columns: Option<ColumnIndex>,
    pub offsets: Option<OffsetIndex>,
    pub bloom: Option<(BloomFilterHeader, Vec<u8>)>,
    pub max_def: u16,
    pub max_rep: u16,
}

/// A page, decompressed. Levels are without the length that a V1 page has in front of them.
#[derive(Clone)]
pub struct Page {
    pub header: PageHeader,
    pub rep: Option<Vec<u8>>,
    pub def: Option<Vec<u8>>,
    pub values: Vec<u8>,
    /// The false statements of the page header, once its sizes and its checksum fit.
    pub lies: Vec<Lie>,
}

/// A number of a page header that shall not fit.
#[derive(Clone, Copy)]
pub enum Lie {
    Uncompressed(i32),
    Compressed(i32),
    Crc(i32),
    /// Length of the repetition levels, and of the definition levels.
    Rep(i32),
    Def(i32),
}

impl Parts {
    /// Takes a file apart.
    pub fn new(file: &Bytes) -> Option<Self> {
        let reader = Reader::new(file.clone()).ok()?;
        let mut meta = reader.metadata().index().to_file_meta_data().ok()?;
        let schema = reader.metadata().schema();
        let mut chunks = Vec::new();
        for group in &mut meta.row_groups {
            let mut columns = Vec::new();
            for (leaf, chunk) in group.columns.iter_mut().enumerate() {
                let node = schema.leaf_node(leaf).ok()?;
                columns.push(Chunk::new(file, chunk, node.max_def(), node.max_rep())?);
            }
            chunks.push(columns);
        }
        let pages = |chunk: &Chunk| chunk.pages.iter().map(|page| page.values.len()).sum::<usize>();
        let bytes: usize = chunks.iter().flatten().map(pages).sum();
        (bytes < 1 << 20 && !chunks.is_empty()).then_some(Self { meta, chunks })
    }

    /// Puts it together. `late` changes the metadata when they fit.
    pub fn lay_out(mut self, late: impl FnOnce(&mut FileMetaData)) -> Vec<u8> {
        let mut out = b"PAR1".to_vec();
        let mut places = Vec::new();
        for (group, chunks) in self.meta.row_groups.iter_mut().zip(&mut self.chunks) {
            for (meta, chunk) in group.columns.iter_mut().zip(chunks) {
                places.push(chunk.lay_out(meta, &mut out));
            }
        }
        let mut places = places.into_iter();
        for (group, chunks) in self.meta.row_groups.iter_mut().zip(&mut self.chunks) {
            for (meta, chunk) in group.columns.iter_mut().zip(chunks) {
                chunk.lay_out_indexes(meta, &places.next().unwrap_or_default(), &mut out);
            }
        }
        late(&mut self.meta);
        let start = out.len();
        out.extend(self.meta.to_thrift());
        let footer = u32::try_from(out.len() - start).unwrap_or(u32::MAX);
        out.extend(footer.to_le_bytes());
        out.extend(b"PAR1");
        out
    }
}

impl Chunk {
    fn new(file: &[u8], chunk: &mut ColumnChunk, max_def: u16, max_rep: u16) -> Option<Self> {
        let meta = chunk.meta_data.as_mut()?;
        let range = |offset: i64, len: i64| {
            let start = usize::try_from(offset).ok()?;
            file.get(start..start.checked_add(usize::try_from(len).ok()?)?)
        };
        let first = meta.dictionary_page_offset.filter(|at| *at > 0);
        let start = first.unwrap_or(i64::MAX).min(meta.data_page_offset);
        let mut bytes = range(start, meta.total_compressed_size)?;
        let mut pages = Vec::new();
        while !bytes.is_empty() && pages.len() < 1000 {
            let (header, len) = PageHeader::from_thrift(bytes).ok()?;
            let (_, rest) = bytes.split_at(len);
            let body = rest.get(..usize::try_from(header.compressed_page_size).ok()?)?;
            bytes = &rest[body.len()..];
            pages.push(Page::new(header, body, meta.codec, max_def, max_rep)?);
        }
        // Pages of codecs that cannot be written are stored uncompressed.
        if compression(meta.codec).is_none() {
            meta.codec = CompressionCodec::Uncompressed;
        }
        let columns = chunk.column_index_offset.and_then(|at| {
            let bytes = range(at, chunk.column_index_length?.into())?;
            Some(ColumnIndex::from_thrift(bytes).ok()?.0)
        });
        let offsets = chunk.offset_index_offset.and_then(|at| {
            let bytes = range(at, chunk.offset_index_length?.into())?;
            Some(OffsetIndex::from_thrift(bytes).ok()?.0)
        });
        let bloom = meta.bloom_filter_offset.and_then(|at| {
            let bytes = file.get(usize::try_from(at).ok()?..)?;
            let (header, len) = BloomFilterHeader::from_thrift(bytes).ok()?;
            let bits = bytes[len..].get(..usize::try_from(header.num_bytes).ok()?)?.to_vec();
            Some((header, bits))
        });
        Some(Self { pages, columns, offsets, bloom, max_def, max_rep })
    }

    /// Appends the pages and the bloom filter; the offset and the length of every data page.
    fn lay_out(&self, chunk: &mut ColumnChunk, out: &mut Vec<u8>) -> Vec<(i64, i32)> {
        let Some(meta) = &mut chunk.meta_data else {
            return Vec::new();
        };
        let compression = compression(meta.codec).unwrap_or(Compression::Uncompressed);
        let start = out.len();
        let (mut uncompressed, mut places) = (0i64, Vec::new());
        let (mut dictionary, mut data) = (None, None);
        for page in &self.pages {
            let at = out.len();
            let size = page.write(compression, out);
            uncompressed += i64::from(size) + 30;
            if page.header.r#type == PageType::DictionaryPage {
                dictionary.get_or_insert(at as i64);
            } else {
                data.get_or_insert(at as i64);
                places.push((at as i64, i32::try_from(out.len() - at).unwrap_or(i32::MAX)));
            }
        }
        meta.dictionary_page_offset = dictionary;
        meta.data_page_offset = data.unwrap_or(start as i64);
        meta.total_compressed_size = (out.len() - start) as i64;
        meta.total_uncompressed_size = uncompressed;
        if let Some((header, bits)) = &self.bloom {
            let start = out.len();
            out.extend(header.to_thrift());
            out.extend_from_slice(bits);
            meta.bloom_filter_offset = Some(start as i64);
            meta.bloom_filter_length = i32::try_from(out.len() - start).ok();
        }
        places
    }

    fn lay_out_indexes(
        &mut self,
        chunk: &mut ColumnChunk,
        places: &[(i64, i32)],
        out: &mut Vec<u8>,
    ) {
        (chunk.column_index_offset, chunk.column_index_length) = (None, None);
        (chunk.offset_index_offset, chunk.offset_index_length) = (None, None);
        if let Some(columns) = &self.columns {
            let start = out.len();
            out.extend(columns.to_thrift());
            chunk.column_index_offset = Some(start as i64);
            chunk.column_index_length = i32::try_from(out.len() - start).ok();
        }
        if let Some(offsets) = &mut self.offsets {
            for (location, (offset, size)) in offsets.page_locations.iter_mut().zip(places) {
                // Not where it was changed.
                if location.offset >= 0 {
                    location.offset = *offset;
                }
                if location.compressed_page_size >= 0 {
                    location.compressed_page_size = *size;
                }
            }
            let start = out.len();
            out.extend(offsets.to_thrift());
            chunk.offset_index_offset = Some(start as i64);
            chunk.offset_index_length = i32::try_from(out.len() - start).ok();
        }
    }
}

impl Page {
    fn new(
        header: PageHeader,
        body: &[u8],
        codec: CompressionCodec,
        max_def: u16,
        max_rep: u16,
    ) -> Option<Self> {
        let len = usize::try_from(header.uncompressed_page_size).ok()?;
        let mut page = Self { header, rep: None, def: None, values: Vec::new(), lies: Vec::new() };
        let plain;
        if let Some(v2) = &page.header.data_page_header_v2 {
            let (rep, rest) =
                body.split_at_checked(v2.repetition_levels_byte_length.try_into().ok()?)?;
            let (def, rest) =
                rest.split_at_checked(v2.definition_levels_byte_length.try_into().ok()?)?;
            page.rep = Some(rep.to_vec());
            page.def = Some(def.to_vec());
            if v2.is_compressed == Some(false) || rest.is_empty() {
                plain = rest.to_vec();
            } else {
                let len = len.checked_sub(rep.len() + def.len())?;
                plain = decompress(codec, rest, len)?;
            }
        } else {
            plain = decompress(codec, body, len)?;
        }
        let mut values = &plain[..];
        if let Some(v1) = &page.header.data_page_header {
            if max_rep > 0 && v1.repetition_level_encoding == Encoding::Rle {
                page.rep = Some(with_length(&mut values)?);
            }
            if max_def > 0
                && v1.definition_level_encoding == Encoding::Rle
                && (max_rep == 0 || page.rep.is_some())
            {
                page.def = Some(with_length(&mut values)?);
            }
        }
        page.values = values.to_vec();
        Some(page)
    }

    /// Appends header and body; the uncompressed size.
    fn write(&self, compression: Compression, out: &mut Vec<u8>) -> i32 {
        let mut header = self.header.clone();
        let (rep, def) = (self.rep.as_deref(), self.def.as_deref());
        let mut body = Vec::new();
        let size = |n: usize| i32::try_from(n).unwrap_or(i32::MAX);
        let mut len = self.values.len();
        if let Some(v2) = &mut header.data_page_header_v2 {
            let (rep, def) = (rep.unwrap_or_default(), def.unwrap_or_default());
            body.extend_from_slice(rep);
            body.extend_from_slice(def);
            len += rep.len() + def.len();
            v2.repetition_levels_byte_length = size(rep.len());
            v2.definition_levels_byte_length = size(def.len());
            if v2.is_compressed == Some(false) {
                body.extend_from_slice(&self.values);
            } else {
                body.extend(compress(compression, &self.values));
            }
        } else {
            let mut plain = Vec::new();
            for levels in [rep, def].into_iter().flatten() {
                plain.extend(size(levels.len()).to_le_bytes());
                plain.extend_from_slice(levels);
            }
            plain.extend_from_slice(&self.values);
            len = plain.len();
            body.extend(compress(compression, &plain));
        }
        header.uncompressed_page_size = size(len);
        header.compressed_page_size = size(body.len());
        header.crc = header.crc.map(|_| crc32fast::hash(&body).cast_signed());
        for lie in &self.lies {
            match (*lie, &mut header.data_page_header_v2) {
                (Lie::Uncompressed(n), _) => header.uncompressed_page_size = n,
                (Lie::Compressed(n), _) => header.compressed_page_size = n,
                (Lie::Crc(n), _) => header.crc = Some(n),
                (Lie::Rep(n), Some(v2)) => v2.repetition_levels_byte_length = n,
                (Lie::Def(n), Some(v2)) => v2.definition_levels_byte_length = n,
                _ => {}
            }
        }
        out.extend(header.to_thrift());
        out.extend_from_slice(&body);
        size(len)
    }

    /// Number of level entries in the header.
    pub fn slots(&self) -> usize {
        let v1 = self.header.data_page_header.as_ref().map(|header| header.num_values);
        let v2 = self.header.data_page_header_v2.as_ref().map(|header| header.num_values);
        usize::try_from(v1.or(v2).unwrap_or(0)).unwrap_or(0)
    }
}

/// Takes bytes that have their length in front.
fn with_length(bytes: &mut &[u8]) -> Option<Vec<u8>> {
    let (len, rest) = bytes.split_first_chunk::<4>()?;
    let (levels, rest) = rest.split_at_checked(usize::try_from(u32::from_le_bytes(*len)).ok()?)?;
    *bytes = rest;
    Some(levels.to_vec())
}

/// How pages of a codec are made, if they can be.
pub fn compression(codec: CompressionCodec) -> Option<Compression> {
    Some(match codec {
        CompressionCodec::Uncompressed => Compression::Uncompressed,
        CompressionCodec::Snappy => Compression::Snappy,
        CompressionCodec::Gzip => Compression::Gzip(1),
        CompressionCodec::Brotli => Compression::Brotli(1),
        CompressionCodec::Zstd => Compression::Zstd(1),
        CompressionCodec::Lz4Raw => Compression::Lz4Raw,
        _ => return None,
    })
}
