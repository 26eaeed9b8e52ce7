//! One page of any type, encoding, codec and version: the kernels give what their scalar
//! definitions give, and rows that are reached by skipping are the same.

use marquetry::format::{
    CompressionCodec, ConvertedType, DataPageHeaderV2, DictionaryPageHeader, Encoding,
    FieldRepetitionType, PageHeader, PageType, Type,
};
use marquetry::{Compression, RowSelection};
use marquetry_testkit::cells::cells;
use marquetry_testkit::mutants::codecs::compress;
use marquetry_testkit::mutants::file::Parts;
use marquetry_testkit::{Chunk, file, leaf, page, v1_header};

use super::reading::{
    Rows, assert_agree, assert_same, one, open, rows, with_kernels, within_memory,
};
use crate::input::{Input, Output};

const TYPES: [Type; 8] = [
    Type::Boolean,
    Type::Int32,
    Type::Int64,
    Type::Int96,
    Type::Float,
    Type::Double,
    Type::ByteArray,
    Type::FixedLenByteArray,
];
const ENCODINGS: [Encoding; 11] = [
    Encoding::Plain,
    Encoding::PlainDictionary,
    Encoding::RleDictionary,
    Encoding::Rle,
    Encoding::BitPacked,
    Encoding::DeltaBinaryPacked,
    Encoding::DeltaLengthByteArray,
    Encoding::DeltaByteArray,
    Encoding::ByteStreamSplit,
    Encoding::Alp,
    Encoding::Pfor,
];
/// Codecs; LZ4 of Hadoop only with bodies that are compressed already.
const CODECS: [(CompressionCodec, Compression); 8] = [
    (CompressionCodec::Uncompressed, Compression::Uncompressed),
    (CompressionCodec::Snappy, Compression::Snappy),
    (CompressionCodec::Gzip, Compression::Gzip(1)),
    (CompressionCodec::Brotli, Compression::Brotli(1)),
    (CompressionCodec::Zstd, Compression::Zstd(1)),
    (CompressionCodec::Lz4Raw, Compression::Lz4Raw),
    (CompressionCodec::Lzo, Compression::Lzo),
    (CompressionCodec::Lz4, Compression::Uncompressed),
];
const REPETITIONS: [FieldRepetitionType; 3] =
    [FieldRepetitionType::Required, FieldRepetitionType::Optional, FieldRepetitionType::Repeated];
const ANNOTATIONS: [Option<ConvertedType>; 8] = [
    None,
    Some(ConvertedType::Utf8),
    Some(ConvertedType::Decimal),
    Some(ConvertedType::Date),
    Some(ConvertedType::Uint8),
    Some(ConvertedType::Uint64),
    Some(ConvertedType::TimestampMicros),
    Some(ConvertedType::Interval),
];

/// A page, and the dictionary page before it.
#[derive(Default, Clone)]
struct OnePage<'a> {
    /// Places in the tables above.
    r#type: u8,
    encoding: u8,
    codec: u8,
    repetition: u8,
    annotation: u8,
    type_length: u8,
    is_v2: bool,
    /// Whether the values are compressed already.
    is_compressed: bool,
    has_dictionary: bool,
    slots: u16,
    nulls: u16,
    rows: u16,
    dictionary_count: u16,
    dictionary: &'a [u8],
    rep: &'a [u8],
    def: &'a [u8],
    values: &'a [u8],
}

impl<'a> OnePage<'a> {
    fn from_bytes(data: &'a [u8]) -> Self {
        let mut input = Input::new(data);
        let (r#type, encoding, codec) = (input.u8(), input.u8(), input.u8());
        let (repetition, annotation, type_length) = (input.u8(), input.u8(), input.u8());
        let flags = input.u8();
        Self {
            r#type,
            encoding,
            codec,
            repetition,
            annotation,
            type_length,
            is_v2: flags & 1 > 0,
            is_compressed: flags & 2 > 0,
            has_dictionary: flags & 4 > 0,
            slots: input.u16(),
            nulls: input.u16(),
            rows: input.u16(),
            dictionary_count: input.u16(),
            dictionary: input.part(),
            rep: input.part(),
            def: input.part(),
            values: input.rest(),
        }
    }

    fn to_bytes(&self) -> Vec<u8> {
        let flags = u8::from(self.is_v2)
            | u8::from(self.is_compressed) << 1
            | u8::from(self.has_dictionary) << 2;
        let kinds = [self.r#type, self.encoding, self.codec, self.repetition, self.annotation];
        Output::default()
            .rest(&kinds)
            .rest(&[self.type_length, flags])
            .u16(self.slots)
            .u16(self.nulls)
            .u16(self.rows)
            .u16(self.dictionary_count)
            .part(self.dictionary)
            .part(self.rep)
            .part(self.def)
            .rest(self.values)
            .bytes()
    }

    /// A file of it, whose sizes fit.
    fn file(&self) -> Vec<u8> {
        let pick = |number: u8, len: usize| usize::from(number) % len;
        let physical = TYPES[pick(self.r#type, TYPES.len())];
        let codec = CODECS[pick(self.codec, CODECS.len())];
        let repetition = REPETITIONS[pick(self.repetition, REPETITIONS.len())];
        let slots = self.slots & 0x3FFF;
        let rows = if repetition == FieldRepetitionType::Repeated { self.rows } else { slots };
        let mut element = leaf("v", physical, repetition);
        element.converted_type = ANNOTATIONS[pick(self.annotation, ANNOTATIONS.len())];
        if physical == Type::FixedLenByteArray {
            element.type_length = Some(i32::from(self.type_length));
        }
        if element.converted_type == Some(ConvertedType::Decimal) {
            (element.precision, element.scale) = (Some(i32::from(self.nulls & 63)), Some(2));
        }
        let mut chunk = Chunk::new(physical, slots.into(), &[self.data_page(slots, codec)]);
        if self.has_dictionary {
            chunk = chunk.with_dictionary(self.dictionary_page(codec.1));
        }
        file(vec![element], rows.into(), vec![chunk.codec(codec.0)])
    }

    /// The bytes that are stored, and how many they were.
    fn seal(&self, bytes: &[u8], codec: Compression) -> (Vec<u8>, usize) {
        match self.is_compressed {
            // As large as the page says it is, in some number that may fit.
            true => (bytes.to_vec(), usize::from(self.nulls)),
            false => (compress(codec, bytes), bytes.len()),
        }
    }

    fn data_page(&self, slots: u16, codec: (CompressionCodec, Compression)) -> Vec<u8> {
        let encoding = ENCODINGS[usize::from(self.encoding) % ENCODINGS.len()];
        let size = |n: usize| i32::try_from(n).expect("a small page");
        if self.is_v2 {
            let (values, len) = self.seal(self.values, codec.1);
            let levels = self.rep.len() + self.def.len();
            let mut v2 = DataPageHeaderV2::default();
            v2.num_values = slots.into();
            v2.num_nulls = self.nulls.into();
            v2.num_rows = self.rows.into();
            v2.encoding = encoding;
            v2.definition_levels_byte_length = size(self.def.len());
            v2.repetition_levels_byte_length = size(self.rep.len());
            let mut header = PageHeader::default();
            header.r#type = PageType::DataPageV2;
            header.uncompressed_page_size = size(levels + len);
            header.compressed_page_size = size(levels + values.len());
            header.data_page_header_v2 = Some(v2);
            return page(header, &[self.rep, self.def, &values].concat());
        }
        let prefixed = |levels: &[u8]| -> Vec<u8> {
            if levels.is_empty() {
                return Vec::new();
            }
            let len = u32::try_from(levels.len()).expect("a part");
            [&len.to_le_bytes()[..], levels].concat()
        };
        let body = [&prefixed(self.rep)[..], &prefixed(self.def), self.values].concat();
        let (body, len) = self.seal(&body, codec.1);
        page(v1_header(slots.into(), encoding, len, body.len()), &body)
    }

    fn dictionary_page(&self, codec: Compression) -> Vec<u8> {
        let (values, len) = match self.is_compressed {
            true => (compress(codec, self.dictionary), self.dictionary.len()),
            false => self.seal(self.dictionary, codec),
        };
        let mut header = PageHeader::default();
        header.r#type = PageType::DictionaryPage;
        header.uncompressed_page_size = i32::try_from(len).expect("a small page");
        header.compressed_page_size = i32::try_from(values.len()).expect("a small page");
        let mut dictionary = DictionaryPageHeader::default();
        dictionary.num_values = self.dictionary_count.into();
        header.dictionary_page_header = Some(dictionary);
        page(header, &values)
    }
}

pub fn run(data: &[u8]) {
    let file = OnePage::from_bytes(data).file();
    let Ok(reader) = open(file.clone()) else { return };
    let best = within_memory(file.len(), || rows(&reader));
    for level in ["scalar", "avx2"] {
        let Some(twin) = with_kernels(level, || rows(&reader)) else { break };
        assert_agree(&best, &twin, level);
    }
    let small = reader.clone().batch_rows(7);
    assert_agree(&best, &rows(&small), "small batches");
    // A dictionary that no row refers to is looked at by one of them.
    if let (Ok(views), Ok(best)) = (rows(&reader.clone().views(true)), &best) {
        assert_eq!(views.count(), best.count(), "views");
        if views.is_all && best.is_all {
            let values = |rows: &Rows| {
                rows.batches.iter().flat_map(|batch| cells(batch.column(0))).collect::<Vec<_>>()
            };
            assert!(values(&views) == values(best), "values of views");
        }
    }
    if let Ok(Rows { batches, is_all: true }) = &best {
        skipping(&reader, batches);
    }
}

/// Every second run of five rows.
fn skipping(reader: &marquetry::Reader, batches: &[arrow_array::RecordBatch]) {
    let Some(all) = one(batches) else { return };
    let n = all.num_rows();
    let ranges: Vec<_> = (0..n).step_by(10).map(|at| at..n.min(at + 5)).collect();
    let expected: Vec<_> = ranges.iter().map(|at| all.slice(at.start, at.len())).collect();
    let ranges = ranges.into_iter().map(|at| at.start as u64..at.end as u64);
    let selection = RowSelection::from_ranges(n as u64, ranges).expect("ranges in order");
    let found = rows(&reader.clone().select(selection).expect("all rows")).expect("some rows");
    assert_same(&found.batches, &expected, "skipping");
}

/// The pages of a file of one column.
fn pages(file: &[u8], codec: u8) -> Vec<Vec<u8>> {
    let Some(parts) = Parts::new(&bytes::Bytes::copy_from_slice(file)) else { return Vec::new() };
    let element = &parts.meta.schema[1];
    let place = |found: Option<usize>| u8::try_from(found.unwrap_or(0)).expect("a short table");
    let chunk = &parts.chunks[0][0];
    let (dictionary, data): (Vec<_>, Vec<_>) =
        chunk.pages.iter().partition(|page| page.header.r#type == PageType::DictionaryPage);
    let seed = |page: &&marquetry_testkit::mutants::file::Page| {
        let v1 = page.header.data_page_header.as_ref();
        let v2 = page.header.data_page_header_v2.as_ref();
        let encoding = v1.map(|v1| v1.encoding).or_else(|| v2.map(|v2| v2.encoding))?;
        let slots = v1.map(|v1| v1.num_values).or_else(|| v2.map(|v2| v2.num_values))?;
        let short = |number: i32| u16::try_from(number).ok();
        let page = OnePage {
            r#type: place(TYPES.iter().position(|of| Some(*of) == element.r#type)),
            encoding: place(ENCODINGS.iter().position(|of| *of == encoding)),
            codec,
            repetition: place(REPETITIONS.iter().position(|r| Some(*r) == element.repetition_type)),
            annotation: place(ANNOTATIONS.iter().position(|of| *of == element.converted_type)),
            type_length: u8::try_from(element.type_length.unwrap_or(0)).ok()?,
            is_v2: v2.is_some(),
            slots: short(slots)?,
            nulls: short(v2.map_or(9, |v2| v2.num_nulls))?,
            rows: short(v2.map_or(slots, |v2| v2.num_rows))?,
            has_dictionary: !dictionary.is_empty(),
            dictionary_count: dictionary.first().map_or(0, |page| {
                let header = page.header.dictionary_page_header.as_ref();
                header.and_then(|header| short(header.num_values)).unwrap_or(0)
            }),
            dictionary: dictionary.first().map_or(&[], |page| &page.values),
            rep: page.rep.as_deref().unwrap_or(&[]),
            def: page.def.as_deref().unwrap_or(&[]),
            values: &page.values,
            ..OnePage::default()
        };
        Some(page.to_bytes())
    };
    data.iter().filter_map(seed).take(1).collect()
}

pub fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for (i, file) in crate::seeds::matrix().iter().enumerate() {
        // Each codec with each version of a page, type and encoding, one after the other.
        let codec = u8::try_from(i % 7).expect("few codecs");
        for codec in [0, codec] {
            seeds.extend(pages(file, codec));
        }
    }
    // Bodies that are compressed already.
    let text: Vec<u8> = (0..400u32).map(|i| (i * i / 50 % 7) as u8).collect();
    for (codec, (_, compression)) in CODECS.iter().enumerate() {
        let (codec, values) = (u8::try_from(codec).expect("few"), compress(*compression, &text));
        let page = OnePage {
            r#type: 1,
            codec,
            is_compressed: true,
            slots: 100,
            nulls: 400,
            ..OnePage::default()
        };
        seeds.push(OnePage { values: &values, ..page }.to_bytes());
    }
    seeds
}

/// The seeds as files.
pub fn files() -> Vec<Vec<u8>> {
    seeds().iter().map(|seed| OnePage::from_bytes(seed).file()).collect()
}
