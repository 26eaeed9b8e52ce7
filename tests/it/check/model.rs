//! A file taken apart, so that one thing in it can be made wrong while all else stays true.

use bytes::Bytes;
use marquetry::arrow_array::RecordBatch;
use marquetry::check::{CheckLevel, Checker, Finding};
use marquetry::format::*;
use marquetry::io::WriteSink;
use marquetry::{WriteOptions, Writer};

/// A file, its parts in the order of the file.
#[derive(Clone)]
pub struct Model {
    pub meta: FileMetaData,
    /// By row group, then by column.
    pub chunks: Vec<Vec<ChunkModel>>,
}

/// A column chunk.
#[derive(Clone)]
pub struct ChunkModel {
    pub pages: Vec<PageModel>,
    pub columns: Option<ColumnIndex>,
    pub offsets: Option<OffsetIndex>,
    /// Changes the offset index when it fits.
    pub offsets_lie: Option<fn(&mut OffsetIndex)>,
    pub bloom: Option<(BloomFilterHeader, Vec<u8>)>,
}

/// A page, its body as it is stored.
#[derive(Clone)]
pub struct PageModel {
    pub header: PageHeader,
    pub body: Vec<u8>,
    /// Changes the header when it fits.
    pub lie: Option<fn(&mut PageHeader)>,
}

impl Model {
    /// Takes a file apart that is not compressed.
    pub fn new(file: &[u8]) -> Self {
        let meta = footer(file);
        let chunk = |chunk: &ColumnChunk| ChunkModel::new(file, chunk);
        let chunks = meta.row_groups.iter().map(|group| group.columns.iter().map(chunk).collect());
        Self { chunks: chunks.collect(), meta }
    }

    /// Puts it together, with sizes, offsets and checksums that fit. `late` changes the footer when
    /// it does.
    pub fn write(mut self, late: impl FnOnce(&mut FileMetaData)) -> Vec<u8> {
        let mut out = b"PAR1".to_vec();
        let mut places = Vec::new();
        for (group, chunks) in self.meta.row_groups.iter_mut().zip(&self.chunks) {
            let (start, mut raw, mut stored) = (out.len() as i64, 0, 0);
            for (column, chunk) in group.columns.iter_mut().zip(chunks) {
                places.push(chunk.write_pages(column, &mut out));
                let meta = column.meta_data.as_ref().unwrap();
                raw += meta.total_uncompressed_size;
                stored += meta.total_compressed_size;
            }
            (group.total_byte_size, group.total_compressed_size) = (raw, Some(stored));
            group.file_offset = Some(start);
        }
        let columns = self.meta.row_groups.iter_mut().flat_map(|group| &mut group.columns);
        for ((column, chunk), places) in columns.zip(self.chunks.iter().flatten()).zip(places) {
            chunk.write_indexes(column, &places, &mut out);
        }
        late(&mut self.meta);
        let start = out.len();
        out.extend(self.meta.to_thrift());
        let len = u32::try_from(out.len() - start).unwrap();
        out.extend(len.to_le_bytes());
        out.extend(b"PAR1");
        out
    }
}

impl ChunkModel {
    fn new(file: &[u8], chunk: &ColumnChunk) -> Self {
        let meta = chunk.meta_data.as_ref().unwrap();
        assert_eq!(meta.codec, CompressionCodec::Uncompressed);
        let start = meta.dictionary_page_offset.unwrap_or(meta.data_page_offset) as usize;
        let end = start + meta.total_compressed_size as usize;
        let (mut at, mut pages) = (start, Vec::new());
        while at < end {
            let (header, len) = PageHeader::from_thrift(&file[at..]).unwrap();
            let body_end = at + len + header.compressed_page_size as usize;
            let body = file[at + len..body_end].to_vec();
            pages.push(PageModel { header, body, lie: None });
            at = body_end;
        }
        let of = |offset: Option<i64>| offset.map(|offset| &file[offset as usize..]);
        let bloom = of(meta.bloom_filter_offset).map(|bytes| {
            let (header, len) = BloomFilterHeader::from_thrift(bytes).unwrap();
            let bits = bytes[len..len + header.num_bytes as usize].to_vec();
            (header, bits)
        });
        Self {
            pages,
            columns: of(chunk.column_index_offset)
                .map(|bytes| ColumnIndex::from_thrift(bytes).unwrap().0),
            offsets: of(chunk.offset_index_offset)
                .map(|bytes| OffsetIndex::from_thrift(bytes).unwrap().0),
            offsets_lie: None,
            bloom,
        }
    }

    /// Appends the pages and the bloom filter; where the data pages are, and how long.
    fn write_pages(&self, column: &mut ColumnChunk, out: &mut Vec<u8>) -> Vec<(i64, i32)> {
        let meta = column.meta_data.as_mut().unwrap();
        let start = out.len() as i64;
        let (mut raw, mut places, mut dictionary) = (0i64, Vec::new(), None);
        for (i, page) in self.pages.iter().enumerate() {
            let at = out.len() as i64;
            raw += page.write(out);
            if page.header.r#type != PageType::DictionaryPage {
                places.push((at, (out.len() as i64 - at) as i32));
            } else if i == 0 {
                dictionary = Some(at);
            }
        }
        meta.dictionary_page_offset = dictionary;
        meta.data_page_offset = places.first().map_or(start, |(at, _)| *at);
        (meta.total_compressed_size, meta.total_uncompressed_size) =
            (out.len() as i64 - start, raw);
        if let Some((header, bits)) = &self.bloom {
            let start = out.len();
            out.extend(header.to_thrift());
            out.extend(bits);
            meta.bloom_filter_offset = Some(start as i64);
            meta.bloom_filter_length = Some((out.len() - start) as i32);
        }
        places
    }

    fn write_indexes(&self, column: &mut ColumnChunk, places: &[(i64, i32)], out: &mut Vec<u8>) {
        let mut append = |bytes: Option<Vec<u8>>| {
            let place = (out.len() as i64, bytes.as_ref().map_or(0, Vec::len) as i32);
            out.extend(bytes.as_deref().unwrap_or_default());
            bytes.map(|_| place).unzip()
        };
        let columns = append(self.columns.as_ref().map(Thrift::to_thrift));
        (column.column_index_offset, column.column_index_length) = columns;
        let offsets = self.offsets.clone().map(|mut offsets| {
            for (location, (offset, size)) in offsets.page_locations.iter_mut().zip(places) {
                (location.offset, location.compressed_page_size) = (*offset, *size);
            }
            if let Some(lie) = self.offsets_lie {
                lie(&mut offsets);
            }
            offsets.to_thrift()
        });
        (column.offset_index_offset, column.offset_index_length) = append(offsets);
    }
}

impl PageModel {
    /// Appends header and body; how many bytes they are, uncompressed, as the header says.
    fn write(&self, out: &mut Vec<u8>) -> i64 {
        let mut header = self.header.clone();
        header.uncompressed_page_size = self.body.len() as i32;
        header.compressed_page_size = self.body.len() as i32;
        header.crc = header.crc.map(|_| crc32fast::hash(&self.body).cast_signed());
        if let Some(lie) = self.lie {
            lie(&mut header);
        }
        let bytes = header.to_thrift();
        out.extend(&bytes);
        out.extend(&self.body);
        bytes.len() as i64 + i64::from(header.uncompressed_page_size)
    }
}

/// The footer of a file.
pub fn footer(file: &[u8]) -> FileMetaData {
    let end = file.len() - 8;
    let len = u32::from_le_bytes(file[end..end + 4].try_into().unwrap()) as usize;
    FileMetaData::from_thrift(&file[end - len..]).unwrap().0
}

/// Writes a table.
pub fn written(batch: &RecordBatch, options: WriteOptions) -> Vec<u8> {
    let sink = WriteSink(Vec::new());
    let mut writer = Writer::new(sink, batch.schema(), options).expect("a writer");
    writer.write(batch).expect("a batch");
    writer.into_inner().expect("a file").1
}

/// The findings of a check.
pub fn findings(file: impl Into<Bytes>, level: CheckLevel) -> Vec<Finding> {
    let mut found = Vec::new();
    let checker = Checker::new(file.into()).level(level);
    let report = checker.run(|finding| found.push(finding)).expect("no I/O");
    assert_eq!(report.left_out, 0);
    found
}

/// A finding in a line.
pub fn line(finding: &Finding) -> String {
    let at = &finding.at;
    let mut out = finding.kind.code().to_owned();
    out.extend(at.row_group.map(|group| format!(" g{group}")));
    out.extend(at.column.as_ref().map(|column| format!(" {column}")));
    out.extend(at.page.map(|page| format!(" p{page}")));
    if at.is_dictionary_page {
        out.push_str(" dictionary");
    }
    out
}
