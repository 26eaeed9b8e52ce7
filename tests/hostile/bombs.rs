//! Small files that ask for much: each built here, read in every way, and held to the time, the memory and the kind of error.

use bytes::Bytes;
use fastrand::Rng;
use marquetry::format::*;
use marquetry::{Compression, ErrorKind, Reader};

use crate::structure::codecs::compress as compressed;
use crate::structure::read_every_way;
use crate::support::{
    Chunk, close, dictionary, file, file_with, group, ints, leaf, optional, page, required, v1,
    v1_header, v2, with_index,
};
use crate::{HEAP, alone};

use FieldRepetitionType::{Optional, Repeated};

/// How the plain read must end.
#[derive(Debug, Clone, Copy, PartialEq)]
enum End {
    /// As malformed, or over a limit.
    Refused,
    /// With rows.
    Rows,
    /// In any of these ways.
    Any,
}

/// Reads a file in every way.
fn check(name: &str, file: impl Into<Bytes>, end: End) {
    let file = file.into();
    let findings = read_every_way(&file, &mut Rng::with_seed(7), Some(HEAP), &[]);
    assert!(findings.is_empty(), "{name}: {findings:?}");
    let found = Reader::new(file).map(|reader| reader.threads(1).memory(64 << 20)).and_then(|r| {
        let mut batches = r.batches()?;
        let mut rows = 0;
        while let Some(batch) = batches.next_batch()?
            && rows < 1 << 20
        {
            rows += batch.num_rows();
        }
        Ok(rows)
    });
    match (end, found) {
        (End::Rows | End::Any, Ok(_)) => {}
        (End::Refused | End::Any, Err(error)) => assert!(
            matches!(
                error.kind(),
                ErrorKind::Malformed(_) | ErrorKind::Limit(_) | ErrorKind::Unsupported(_)
            ),
            "{name}: {error}"
        ),
        (_, found) => panic!("{name}: {:?}, not {end:?}", found.map_err(|e| e.to_string())),
    }
}

fn column(r#type: Type) -> Vec<SchemaElement> {
    vec![SchemaElement { type_length: Some(4), ..required("v", r#type) }]
}

/// A file of one required column and one chunk.
fn one(r#type: Type, rows: usize, pages: &[Vec<u8>]) -> Vec<u8> {
    file(column(r#type), rows as i64, vec![Chunk::new(r#type, rows, pages)])
}

fn varint(mut n: u64) -> Vec<u8> {
    let mut out = Vec::new();
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
    out
}

/// A page of a codec, with what its header says of the size.
fn stored(codec: CompressionCodec, slots: usize, len: usize, body: &[u8]) -> Vec<u8> {
    let pages = [page(v1_header(slots, Encoding::Plain, len, body.len()), body)];
    let chunk = Chunk::new(Type::Int32, slots, &pages).codec(codec);
    file(column(Type::Int32), slots as i64, vec![chunk])
}

const CODECS: [Compression; 6] = [
    Compression::Snappy,
    Compression::Gzip(6),
    Compression::Brotli(5),
    Compression::Zstd(3),
    Compression::Lz4Raw,
    Compression::Lzo,
];

#[test]
fn pages_that_lie_about_what_they_decompress_to_are_refused() {
    let _alone = alone();
    let zeros = compressed_zeros();
    for (codec, body) in &zeros {
        let name = format!("{codec:?}");
        let most = i32::MAX as usize;
        // More than there is, and less.
        check(&name, stored(codec.codec(), 1 << 20, most, body), End::Refused);
        check(&name, stored(codec.codec(), 4, 16, body), End::Refused);
        check(&name, stored(codec.codec(), 4, 0, body), End::Refused);
        let half = &body[..body.len() / 2];
        check(&name, stored(codec.codec(), 1 << 20, 4 << 20, half), End::Refused);
        check(&name, stored(codec.codec(), 1 << 20, 4 << 20, body), End::Rows);
    }
}

/// 4 MiB of zeros.
fn compressed_zeros() -> Vec<(Compression, Vec<u8>)> {
    CODECS.map(|codec| (codec, compressed(codec, &vec![0; 4 << 20]))).to_vec()
}

#[test]
fn streams_in_very_many_pieces_end_soon() {
    let _alone = alone();
    const PIECES: usize = 100_000;
    let (gzip, zstd) = (CompressionCodec::Gzip, CompressionCodec::Zstd);
    let four = ints(&[1, 2, 3, 4]);
    let empty = compressed(Compression::Gzip(6), &[]);
    let members = [empty.repeat(PIECES), compressed(Compression::Gzip(6), &four)].concat();
    check("gzip members", stored(gzip, 4, 16, &members), End::Any);
    check("gzip members of nothing", stored(gzip, 4, 16, &empty.repeat(PIECES)), End::Refused);
    // A skippable frame of no bytes.
    let skip = [0x50, 0x2A, 0x4D, 0x18, 0, 0, 0, 0].repeat(PIECES);
    let frames = [&skip[..], &compressed(Compression::Zstd(3), &four)].concat();
    check("zstd skippable frames", stored(zstd, 4, 16, &frames), End::Any);
    check("zstd of nothing", stored(zstd, 4, 16, &skip), End::Refused);
    let empty = compressed(Compression::Zstd(3), &[]);
    let frames = [empty.repeat(PIECES), compressed(Compression::Zstd(3), &four)].concat();
    check("zstd frames", stored(zstd, 4, 16, &frames), End::Any);
    // Windows of 128 MiB to 2 TiB around one raw block; and blocks of no bytes.
    for window in [17 << 3, 18 << 3, 20 << 3, 31 << 3] {
        let frame = [&[0x28, 0xB5, 0x2F, 0xFD, 0, window, 16 << 3 | 1, 0, 0], &four[..]].concat();
        check(&format!("zstd window {window}"), stored(zstd, 4, 16, &frame), End::Any);
        let blocks = [0u8, 0, 0].repeat(PIECES);
        let frame = [&[0x28, 0xB5, 0x2F, 0xFD, 0, window][..], &blocks].concat();
        check("zstd blocks", stored(zstd, 4, 16, &frame), End::Refused);
    }
    for start in [0x11, 0x91, 0x0B] {
        let body = [&[start, 0x1E][..], &[0; 64]].concat();
        check("brotli window", stored(CompressionCodec::Brotli, 4, 16, &body), End::Any);
    }
    // Lengths of literals and matches that go on and on.
    for token in [0xF0, 0x0F, 0xFF, 0x1F] {
        let body = [&[token][..], &[0xFF; PIECES]].concat();
        for codec in [CompressionCodec::Lz4Raw, CompressionCodec::Lz4, CompressionCodec::Lzo] {
            check("runs without end", stored(codec, 4, 16, &body), End::Refused);
            let most = i32::MAX as usize;
            check("runs without end", stored(codec, 4, most, &body), End::Refused);
        }
    }
    for frame in [[0u8, 0, 0, 0, 0, 0, 0, 0], [0xFF; 8], [0, 0, 0, 16, 0, 0, 0, 0]] {
        for codec in [CompressionCodec::Lz4, CompressionCodec::Lzo] {
            check("hadoop frames", stored(codec, 4, 16, &frame.repeat(PIECES)), End::Refused);
        }
    }
}

const ENCODINGS: [Encoding; 10] = [
    Encoding::Plain,
    Encoding::PlainDictionary,
    Encoding::Rle,
    Encoding::BitPacked,
    Encoding::DeltaBinaryPacked,
    Encoding::DeltaLengthByteArray,
    Encoding::DeltaByteArray,
    Encoding::RleDictionary,
    Encoding::ByteStreamSplit,
    Encoding::Alp,
];

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

#[test]
fn headers_that_claim_more_values_than_there_are_are_refused() {
    let _alone = alone();
    let most = i32::MAX as usize;
    for r#type in TYPES {
        for encoding in ENCODINGS {
            // Nothing; a header of each delta encoding that says so many; noise.
            let many = [&[0x80, 1, 4][..], &varint(u64::from(u32::MAX)), &[0]].concat();
            for body in [&[][..], &many, &[0xFF; 40], &[0; 40]] {
                let pages = [v1(most, encoding, body), v2(most, 0, most, encoding, &[], &[], body)];
                for page in pages {
                    let plain = one(r#type, most, &[page]);
                    let name = format!("{type} {encoding}");
                    // Runs of one bit may well stand for so many.
                    let end = match (r#type, encoding) {
                        (Type::Boolean, Encoding::Rle) => End::Any,
                        _ => End::Refused,
                    };
                    check(&name, plain, end);
                }
            }
        }
    }
}

#[test]
fn dictionaries_that_lie_or_come_late_or_twice_are_refused() {
    let _alone = alone();
    let indexes = |width: u8, run: &[u8]| [&[width][..], run].concat();
    let two = dictionary(2, &ints(&[7, 8]));
    let chunk = |page: Vec<u8>, body: &[u8], slots: usize| {
        let data = v1(slots, Encoding::RleDictionary, body);
        file(
            column(Type::Int32),
            slots as i64,
            vec![Chunk::new(Type::Int32, slots, &[data]).with_dictionary(page)],
        )
    };
    let good = indexes(1, &[8, 1]);
    check("good", chunk(two.clone(), &good, 4), End::Rows);
    for n in [-1, 3, i32::MAX, i32::MIN] {
        check("size", chunk(dictionary(n, &ints(&[7, 8])), &good, 4), End::Refused);
    }
    // Indexes beyond it, of all widths.
    for width in 0..=40 {
        let run = [&[8][..], &[0xFF; 4]].concat();
        let end = if width == 0 { End::Rows } else { End::Any };
        check("width", chunk(two.clone(), &indexes(width, &run), 4), end);
        let packed = [&varint(u64::from(u32::MAX) << 1 | 1)[..], &[0xFF; 32]].concat();
        check("packed", chunk(two.clone(), &indexes(width, &packed), 4), End::Any);
    }
    // Runs of nothing, and then one of something.
    let runs = indexes(1, &[&[0, 1].repeat(100_000)[..], &[8, 1]].concat());
    check("runs of nothing", chunk(two.clone(), &runs, 4), End::Any);
    let runs = indexes(1, &[1].repeat(100_000));
    check("packs of nothing", chunk(two.clone(), &runs, 4), End::Refused);
    let data = v1(4, Encoding::RleDictionary, &good);
    let pages = [data.clone(), two.clone(), data.clone()];
    check("late", one(Type::Int32, 8, &pages), End::Refused);
    let pages = [two.clone(), two.clone(), data.clone()];
    let twice = Chunk::new(Type::Int32, 4, &pages);
    check("twice", file(column(Type::Int32), 4, vec![twice]), End::Any);
    let pages: Vec<_> = std::iter::repeat_n(two, 50_000).chain([data]).collect();
    let many = Chunk::new(Type::Int32, 4, &pages);
    check("very often", file(column(Type::Int32), 4, vec![many]), End::Any);
}

#[test]
fn values_that_grow_out_of_little_are_counted_first() {
    let _alone = alone();
    // Every value is the one before and a byte more: 1.25 GB in all.
    const N: i32 = 50_000;
    let lengths =
        |lengths: &[i32]| delta(&lengths.iter().map(|n| i64::from(*n)).collect::<Vec<_>>());
    let prefixes = lengths(&(0..N).collect::<Vec<_>>());
    let ones = lengths(&vec![1; N as usize]);
    let body = [&prefixes[..], &ones, &vec![b'a'; N as usize]].concat();
    let pages = [v1(N as usize, Encoding::DeltaByteArray, &body)];
    check("prefixes", one(Type::ByteArray, N as usize, &pages), End::Any);
    // Every value is the first one, of 100 kB.
    let prefixes = lengths(&(0..N).map(|i| if i == 0 { 0 } else { 100_000 }).collect::<Vec<_>>());
    let rests = lengths(&(0..N).map(|i| if i == 0 { 100_000 } else { 0 }).collect::<Vec<_>>());
    let body = [&prefixes[..], &rests, &vec![b'a'; 100_000]].concat();
    let pages = [v1(N as usize, Encoding::DeltaByteArray, &body)];
    check("the same again", one(Type::ByteArray, N as usize, &pages), End::Any);
    for header in [
        // Blocks and miniblocks of no values, of odd numbers, of very many.
        [0, 1, 4, 0],
        [128, 0, 4, 0],
        [128, 3, 4, 0],
        [1 << 31, 1 << 31, 4, 0],
        [1 << 31, 1, 4, 0],
        [1 << 31, 1 << 24, 4, 0],
        [u64::MAX, 4, 4, 0],
        [128, u64::MAX, 4, 0],
        [128, 4, u64::MAX, 0],
    ] {
        let body = [header.map(varint).concat(), vec![0; 64]].concat();
        for (r#type, encoding) in [
            (Type::Int32, Encoding::DeltaBinaryPacked),
            (Type::Int64, Encoding::DeltaBinaryPacked),
            (Type::ByteArray, Encoding::DeltaLengthByteArray),
            (Type::ByteArray, Encoding::DeltaByteArray),
        ] {
            let pages = [v1(4, encoding, &body)];
            check(&format!("{header:?}"), one(r#type, 4, &pages), End::Any);
        }
    }
    // Every byte of a header of ALP at its boundaries.
    for at in 0..16 {
        for byte in [0, 1, 3, 10, 16, 31, 32, 33, 0x7F, 0x80, 0xFF] {
            let mut body = vec![0, 0, 10, 4, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
            body[at] = byte;
            let pages = [v1(4, Encoding::Alp, &body)];
            check("alp", one(Type::Double, 4, &pages), End::Any);
        }
    }
}

/// Numbers in DELTA_BINARY_PACKED, each miniblock of 64 bits.
fn delta(values: &[i64]) -> Vec<u8> {
    let zigzag = |n: i64| varint(((n << 1) ^ (n >> 63)).cast_unsigned());
    let mut out = [varint(128), varint(4), varint(values.len() as u64), zigzag(values[0])].concat();
    let deltas: Vec<i64> = values.windows(2).map(|pair| pair[1] - pair[0]).collect();
    for block in deltas.chunks(128) {
        let least = *block.iter().min().unwrap();
        out.extend(zigzag(least));
        let width = |mini: usize| if mini * 32 < block.len() { 64 } else { 0 };
        out.extend((0..4).map(width));
        for i in 0..block.len().next_multiple_of(32) {
            out.extend(block.get(i).map_or(0, |delta| delta - least).to_le_bytes());
        }
    }
    out
}

#[test]
fn levels_without_end_are_refused() {
    let _alone = alone();
    let schema = || vec![optional("v", Type::Int32)];
    let with = |slots: usize, levels: &[u8], values: &[u8]| {
        let len = (levels.len() as u32).to_le_bytes();
        let body = [&len[..], levels, values].concat();
        let pages = [v1(slots, Encoding::Plain, &body)];
        file(schema(), slots as i64, vec![Chunk::new(Type::Int32, slots, &pages)])
    };
    check("runs of nothing", with(4, &[0, 1].repeat(100_000), &[]), End::Refused);
    check("packs of nothing", with(4, &[1].repeat(100_000), &[]), End::Refused);
    let run = [&varint(u64::MAX)[..], &[1]].concat();
    check("a pack too long", with(4, &run, &ints(&[1, 2, 3, 4])), End::Any);
    let run = [&varint(u64::MAX - 1)[..], &[1]].concat();
    check("a run too long", with(4, &run, &ints(&[1, 2, 3, 4])), End::Any);
    for len in [-1, i32::MIN, i32::MAX, 1 << 30] {
        let body = [&len.to_le_bytes()[..], &[8, 1]].concat();
        let pages = [v1(4, Encoding::Plain, &body)];
        check("length", file(schema(), 4, vec![Chunk::new(Type::Int32, 4, &pages)]), End::Refused);
    }
    // Lists in one row without end: all of it is one row.
    let list = vec![leaf("v", Type::Int32, Repeated)];
    let n = 1 << 20;
    let rep = [&varint((n as u64 - 1) << 1)[..], &[1]].concat();
    let rep = [&[2, 0][..], &rep].concat();
    let def = [&varint((n as u64) << 1)[..], &[0]].concat();
    let sized = |bytes: &[u8]| [&(bytes.len() as u32).to_le_bytes()[..], bytes].concat();
    let pages = [v1(n, Encoding::Plain, &[sized(&rep), sized(&def)].concat())];
    check("one row", file(list, 1, vec![Chunk::new(Type::Int32, n, &pages)]), End::Any);
}

#[test]
fn very_many_pages_row_groups_columns_and_keys_take_their_time_once() {
    let _alone = alone();
    const N: usize = 100_000;
    let four = v1(4, Encoding::Plain, &ints(&[1, 2, 3, 4]));
    let index = page(PageHeader { r#type: PageType::IndexPage, ..Default::default() }, &[]);
    let empties = [v1(0, Encoding::Plain, &[]), v2(0, 0, 0, Encoding::Plain, &[], &[], &[]), index];
    for (i, empty) in empties.iter().enumerate() {
        let pages = [empty.repeat(N), four.clone()];
        check(&format!("empty pages {i}"), one(Type::Int32, 4, &pages), End::Any);
        let pages = [empty.repeat(N)];
        check(&format!("only empty pages {i}"), one(Type::Int32, 4, &pages), End::Refused);
    }
    let chunk = Chunk::new(Type::Int32, 4, &[four]);
    let good = |change: &dyn Fn(&mut FileMetaData)| {
        file_with(column(Type::Int32), vec![(4, vec![chunk.clone()])], change)
    };
    check("good", good(&|_| {}), End::Rows);
    let empty = good(&|meta| {
        let mut group = meta.row_groups[0].clone();
        group.num_rows = 0;
        meta.row_groups.extend(std::iter::repeat_n(group, N / 4));
    });
    check("row groups without rows", empty, End::Any);
    let bare = good(&|meta| {
        meta.row_groups.extend(std::iter::repeat_n(RowGroup::default(), N));
    });
    check("row groups without columns", bare, End::Any);
    let same = good(&|meta| {
        let group = meta.row_groups[0].clone();
        meta.row_groups.extend(std::iter::repeat_n(group, N / 10));
        meta.num_rows = (N / 10 + 1) as i64 * 4;
    });
    check("the same chunk very often", same, End::Any);
    let keys = good(&|meta| {
        let pair = KeyValue { key: "k".into(), value: Some("v".into()), ..Default::default() };
        meta.key_value_metadata = Some(vec![pair; N]);
    });
    check("keys", keys, End::Rows);
    let long = good(&|meta| {
        let value = Some("v".repeat(4 << 20));
        let pair = KeyValue { key: "ARROW:schema".into(), value, ..Default::default() };
        meta.key_value_metadata = Some(vec![pair]);
    });
    check("a long value", long, End::Rows);
    // Columns of one name, all in the same place.
    let n = 2_000;
    let alike = file_with(column(Type::Int32), vec![(4, vec![chunk.clone()])], |meta| {
        let (element, column) = (meta.schema[1].clone(), meta.row_groups[0].columns[0].clone());
        meta.schema[0].num_children = Some(n);
        meta.schema.extend(std::iter::repeat_n(element, n as usize - 1));
        meta.row_groups[0].columns.extend(std::iter::repeat_n(column, n as usize - 1));
    });
    check("columns alike", alike, End::Any);
    let groups = good(&|meta| {
        let n = N as i32;
        meta.schema[0].num_children = Some(n + 1);
        meta.schema.extend(std::iter::repeat_n(group("g", Optional, 0), N));
    });
    check("groups of nothing", groups, End::Any);
    for n in [-1, 0, 2, i32::MAX, i32::MIN] {
        check("children", good(&|meta| meta.schema[0].num_children = Some(n)), End::Refused);
    }
}

#[test]
fn offsets_and_indexes_that_loop_or_overlap_are_refused_or_of_no_use() {
    let _alone = alone();
    let n = 400;
    let page = v1(4, Encoding::Plain, &ints(&[1, 2, 3, 4]));
    let pages = vec![page.clone(); n];
    let plain: Bytes = one(Type::Int32, 4 * n, &pages).into();
    let at = |i: usize| PageLocation {
        offset: (4 + i * page.len()) as i64,
        compressed_page_size: page.len() as i32,
        first_row_index: 4 * i as i64,
    };
    let lies: [fn(&mut PageLocation, usize); 8] = [
        |_, _| {},
        |page, _| page.offset = 4,
        |page, i| page.offset -= 3 * i64::from(i > 0),
        |page, _| page.offset = i64::MAX,
        |page, _| page.compressed_page_size = i32::MAX,
        |page, _| page.compressed_page_size = 0,
        |page, _| page.first_row_index = 0,
        |page, i| page.first_row_index = 2000 - i as i64,
    ];
    for (which, lie) in lies.into_iter().enumerate() {
        let mut locations: Vec<_> = (0..n).map(at).collect();
        locations.iter_mut().enumerate().for_each(|(i, page)| lie(page, i));
        check(&format!("index {which}"), with_index(&plain, None, locations), End::Any);
    }
    let many = (0..100_000).map(|_| at(0)).collect();
    check("an index far too long", with_index(&plain, None, many), End::Any);
    let columns = ColumnIndex {
        null_pages: vec![true; 100_000],
        min_values: vec![Vec::new(); 100_000],
        max_values: vec![Vec::new(); 100_000],
        ..Default::default()
    };
    let locations: Vec<_> = (0..n).map(at).collect();
    check("columns", with_index(&plain, Some(&columns), locations), End::Any);
    let chunk = Chunk::new(Type::Int32, 4 * n, &pages);
    type Lie = fn(&mut ColumnChunk);
    let lies: [Lie; 9] = [
        |chunk| (chunk.offset_index_offset, chunk.offset_index_length) = (Some(0), Some(i32::MAX)),
        |chunk| (chunk.offset_index_offset, chunk.offset_index_length) = (Some(4), Some(-1)),
        |chunk| (chunk.column_index_offset, chunk.column_index_length) = (Some(-1), Some(9)),
        |chunk| meta(chunk).data_page_offset = -1,
        |chunk| meta(chunk).total_compressed_size = i64::MAX,
        |chunk| meta(chunk).total_compressed_size = -1,
        |chunk| meta(chunk).num_values = i64::MAX,
        |chunk| meta(chunk).dictionary_page_offset = Some(i64::MIN),
        |chunk| meta(chunk).bloom_filter_offset = Some(5),
    ];
    for (which, lie) in lies.into_iter().enumerate() {
        let groups = vec![(4 * n as i64, vec![chunk.clone()])];
        let file = file_with(column(Type::Int32), groups, |meta| {
            lie(&mut meta.row_groups[0].columns[0]);
        });
        check(&format!("place {which}"), file, End::Any);
    }
    for num_bytes in [-1, 0, 1, 31, 33, 1 << 20, i32::MAX] {
        for said in [None, Some(-1), Some(0), Some(i32::MAX)] {
            let header = BloomFilterHeader { num_bytes, ..Default::default() };
            let mut bits = header.to_thrift();
            bits.extend([0; 64]);
            let mut pages = pages.clone();
            let start = 4 + pages.concat().len() as i64;
            pages.push(Vec::new());
            let mut chunk = chunk.clone();
            chunk.meta.bloom_filter_offset = Some(start);
            chunk.meta.bloom_filter_length = said;
            chunk.bytes.extend_from_slice(&bits);
            let groups = vec![(4 * n as i64, vec![chunk])];
            let file = file_with(column(Type::Int32), groups, |_| {});
            check(&format!("bloom filter of {num_bytes}"), file, End::Any);
        }
    }
}

fn meta(chunk: &mut ColumnChunk) -> &mut ColumnMetaData {
    chunk.meta_data.as_mut().unwrap()
}

#[test]
fn footers_of_lists_without_end_are_refused() {
    let _alone = alone();
    // Every kind of field, each as a list of each kind of element, of as many as can be said.
    for field in 0..=12u8 {
        for element in 0..=15u8 {
            for size in [u64::from(u32::MAX), i32::MAX as u64, 1 << 20] {
                let list = [&[field << 4 | 9, 0xF0 | element][..], &varint(size)].concat();
                let footer = [&list[..], &[0; 200]].concat();
                check("list", close(b"PAR1".to_vec(), &footer), End::Refused);
            }
        }
    }
    // Structs, lists and maps in one another, in a field that is not known.
    for unit in [&[0x1C][..], &[0x19], &[0x1B, 1, 0xCC], &[0x1C, 0x19, 0x1C]] {
        let footer = [&[0x09, 0x7F][..], &unit.repeat(100_000), &[0; 64]].concat();
        check("nested", close(b"PAR1".to_vec(), &footer), End::Refused);
    }
}
