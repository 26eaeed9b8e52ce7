//! Tests small files that demand much: each is built here, read in every way, and checked for time,
//! memory and the kind of error.

use bytes::Bytes;
use fastrand::Rng;
use marquetry::format::*;
use marquetry::inspect::Inspector;
use marquetry::{Compression, ErrorKind, LimitKind, Predicate, Reader, RowSelection, Spec, col};

use crate::support::mutants::codecs::compress as compressed;
use crate::support::mutants::read_every_way;
use crate::support::{
    Chunk, close, dictionary, file, file_with, filled, group, ints, leaf, levels_v1, optional,
    page, required, texts, v1, v1_header, v2, with_index,
};
use crate::{HEAP, alone};

use FieldRepetitionType::{Optional, Repeated};

/// How the plain read must end.
#[derive(Debug, Clone, Copy, PartialEq)]
enum End {
    /// As malformed, or over a limit.
    Refused,
    /// A file of this many rows.
    Rows(usize),
    /// With this error, in the page of this number, or in none.
    Error(ErrorKind, Option<usize>),
    /// Over this limit.
    Limit(LimitKind),
}

/// Malformed in the first page.
const fn broken(spec: Spec) -> End {
    End::Error(ErrorKind::Malformed(spec), Some(0))
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
    let is_right = match (end, &found) {
        (End::Rows(wanted), Ok(rows)) => *rows == wanted,
        (End::Refused, Err(error)) => matches!(
            error.kind(),
            ErrorKind::Malformed(_) | ErrorKind::Limit(_) | ErrorKind::Unsupported(_)
        ),
        (End::Error(kind, page), Err(error)) => {
            let at = error.at();
            let place = (at.row_group, at.column.as_deref(), at.page);
            error.kind() == kind && place == (Some(0), Some("v"), page)
        }
        (End::Limit(kind), Err(error)) => error.kind() == ErrorKind::Limit(kind),
        _ => false,
    };
    assert!(is_right, "{name}: {:?}, not {end:?}", found.map_err(|e| e.to_string()));
}

fn column(r#type: Type) -> Vec<SchemaElement> {
    vec![filled!(SchemaElement { type_length: Some(4), ..required("v", r#type) })]
}

/// A file of one required column and one chunk.
fn one(r#type: Type, rows: usize, pages: &[Vec<u8>]) -> Vec<u8> {
    file(column(r#type), rows as i64, vec![Chunk::new(r#type, rows, pages)])
}

#[test]
fn a_dictionary_that_states_more_entries_than_it_has_asks_for_no_memory() {
    let _alone = alone();
    let decimal = || Some(LogicalType::Decimal(filled!(DecimalType { scale: 2, precision: 9 })));
    let columns = [
        (Type::Int32, None, ints(&[7, 8])),
        (Type::Int32, decimal(), ints(&[7, 8])),
        (Type::Int64, decimal(), vec![0; 16]),
        (Type::Int96, None, vec![0; 24]),
        (Type::Double, None, vec![0; 16]),
        (Type::Boolean, None, vec![1]),
        (Type::ByteArray, None, texts(&["a", "b"])),
        (Type::ByteArray, Some(LogicalType::String), texts(&["a", "b"])),
        // An Arrow value of 16 bytes is made of each entry.
        (Type::ByteArray, decimal(), texts(&["a", "b"])),
        (Type::FixedLenByteArray, decimal(), vec![0; 8]),
        (Type::FixedLenByteArray, None, vec![0; 8]),
    ];
    for (r#type, logical_type, entries) in columns {
        let column = filled!(SchemaElement {
            type_length: (r#type == Type::FixedLenByteArray).then_some(4),
            logical_type: logical_type.clone(),
            ..required("v", r#type)
        });
        // One bit an index, one run of four.
        let data = v1(4, Encoding::RleDictionary, &[1, 8, 0]);
        for stated in [i32::MAX, 1 << 24, 1000] {
            let chunk = Chunk::new(r#type, 4, std::slice::from_ref(&data));
            let chunk = chunk.with_dictionary(dictionary(stated, &entries));
            let name = format!("{type:?} {logical_type:?} {stated}");
            check(&name, file(vec![column.clone()], 4, vec![chunk]), End::Refused);
        }
    }
}

#[test]
fn nulls_among_values_of_two_gigabytes_each_take_no_memory_that_was_not_given() {
    let _alone = alone();
    let wide = |repetition| {
        filled!(SchemaElement {
            type_length: Some(i32::MAX - 1),
            repetition_type: Some(repetition),
            ..required("v", Type::FixedLenByteArray)
        })
    };
    // Four nulls, and no value.
    let levels = levels_v1(&[0, 0, 0, 0], 1);
    let page = v1(4, Encoding::Plain, &levels);
    let chunk = || Chunk::new(Type::FixedLenByteArray, 4, std::slice::from_ref(&page));
    let limit = End::Limit(LimitKind::Memory);
    check("optional", file(vec![wide(Optional)], 4, vec![chunk()]), limit);
    // Empty lists have no slots.
    let page = v1(4, Encoding::Plain, &[levels_v1(&[0; 4], 1), levels_v1(&[0; 4], 1)].concat());
    let chunk = Chunk::new(Type::FixedLenByteArray, 4, std::slice::from_ref(&page));
    check("repeated", file(vec![wide(Repeated)], 4, vec![chunk]), End::Rows(4));
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

/// A page of a codec, with the size that its header states.
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
        let max = i32::MAX as usize;
        // More than there is, and less.
        check(&name, stored(codec.codec(), 1 << 20, max, body), End::Refused);
        check(&name, stored(codec.codec(), 4, 16, body), End::Refused);
        check(&name, stored(codec.codec(), 4, 0, body), End::Refused);
        let half = &body[..body.len() / 2];
        check(&name, stored(codec.codec(), 1 << 20, 4 << 20, half), End::Refused);
        check(&name, stored(codec.codec(), 1 << 20, 4 << 20, body), End::Rows(1 << 20));
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
    check("gzip members", stored(gzip, 4, 16, &members), End::Rows(4));
    check("gzip members of nothing", stored(gzip, 4, 16, &empty.repeat(PIECES)), End::Refused);
    // A skippable frame of no bytes.
    let skip = [0x50, 0x2A, 0x4D, 0x18, 0, 0, 0, 0].repeat(PIECES);
    let frames = [&skip[..], &compressed(Compression::Zstd(3), &four)].concat();
    check("zstd skippable frames", stored(zstd, 4, 16, &frames), End::Rows(4));
    check("zstd of nothing", stored(zstd, 4, 16, &skip), End::Refused);
    let empty = compressed(Compression::Zstd(3), &[]);
    let frames = [empty.repeat(PIECES), compressed(Compression::Zstd(3), &four)].concat();
    check("zstd frames", stored(zstd, 4, 16, &frames), End::Rows(4));
    // Windows of 128 MiB to 2 TiB around one raw block; and blocks of no bytes.
    let too_wide = broken(Spec::Compression("ZSTD"));
    let four_rows = End::Rows(4);
    for (window, end) in
        [(17 << 3, four_rows), (18 << 3, four_rows), (20 << 3, four_rows), (31 << 3, too_wide)]
    {
        let frame = [&[0x28, 0xB5, 0x2F, 0xFD, 0, window, 16 << 3 | 1, 0, 0], &four[..]].concat();
        check(&format!("zstd window {window}"), stored(zstd, 4, 16, &frame), end);
        let blocks = [0u8, 0, 0].repeat(PIECES);
        let frame = [&[0x28, 0xB5, 0x2F, 0xFD, 0, window][..], &blocks].concat();
        check("zstd blocks", stored(zstd, 4, 16, &frame), End::Refused);
    }
    for start in [0x11, 0x91, 0x0B] {
        let body = [&[start, 0x1E][..], &[0; 64]].concat();
        let end = broken(Spec::Compression("BROTLI"));
        check("brotli window", stored(CompressionCodec::Brotli, 4, 16, &body), end);
    }
    // Lengths of literals and matches that go on and on.
    for token in [0xF0, 0x0F, 0xFF, 0x1F] {
        let body = [&[token][..], &[0xFF; PIECES]].concat();
        for codec in [CompressionCodec::Lz4Raw, CompressionCodec::Lz4, CompressionCodec::Lzo] {
            check("runs without end", stored(codec, 4, 16, &body), End::Refused);
            let max = i32::MAX as usize;
            check("runs without end", stored(codec, 4, max, &body), End::Refused);
        }
    }
    for frame in [[0u8, 0, 0, 0, 0, 0, 0, 0], [0xFF; 8], [0, 0, 0, 16, 0, 0, 0, 0]] {
        for codec in [CompressionCodec::Lz4, CompressionCodec::Lzo] {
            check("hadoop frames", stored(codec, 4, 16, &frame.repeat(PIECES)), End::Refused);
        }
    }
}

const ENCODINGS: [Encoding; 11] = [
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
    Encoding::Pfor,
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
    let max = i32::MAX as usize;
    for r#type in TYPES {
        for encoding in ENCODINGS {
            // Nothing; a header of each delta encoding that states 2^32 - 1 values; noise.
            let many = [&[0x80, 1, 4][..], &varint(u64::from(u32::MAX)), &[0]].concat();
            for body in [&[][..], &many, &[0xFF; 40], &[0; 40]] {
                let pages = [v1(max, encoding, body), v2(max, 0, max, encoding, &[], &[], body)];
                for page in pages {
                    let plain = one(r#type, max, &[page]);
                    let name = format!("{type} {encoding}");
                    check(&name, plain, End::Refused);
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
    check("good", chunk(two.clone(), &good, 4), End::Rows(4));
    for n in [-1, 3, i32::MAX, i32::MIN] {
        check("size", chunk(dictionary(n, &ints(&[7, 8])), &good, 4), End::Refused);
    }
    // Indexes beyond it, of all widths: a run, whose value takes whole bytes, and a pack.
    let (rle, indices) = (Spec::Encodings("RLE"), Spec::Encodings("RLE_DICTIONARY"));
    for width in 0..=40u8 {
        let run = [&[8][..], &[0xFF; 4]].concat();
        let end = match width {
            0 => End::Rows(4),
            1..=31 if width % 8 > 0 => broken(rle),
            _ => broken(indices),
        };
        check("width", chunk(two.clone(), &indexes(width, &run), 4), end);
        let packed = [&varint(u64::from(u32::MAX) << 1 | 1)[..], &[0xFF; 32]].concat();
        let end = if width < 2 { End::Rows(4) } else { broken(indices) };
        check("packed", chunk(two.clone(), &indexes(width, &packed), 4), end);
    }
    // Runs of nothing, and then one of something.
    let runs = indexes(1, &[&[0, 1].repeat(100_000)[..], &[8, 1]].concat());
    check("runs of nothing", chunk(two.clone(), &runs, 4), End::Rows(4));
    let runs = indexes(1, &[1].repeat(100_000));
    check("packs of nothing", chunk(two.clone(), &runs, 4), End::Refused);
    let data = v1(4, Encoding::RleDictionary, &good);
    let pages = [data.clone(), two.clone(), data.clone()];
    check("late", one(Type::Int32, 8, &pages), End::Refused);
    let pages = [two.clone(), two.clone(), data.clone()];
    let twice = Chunk::new(Type::Int32, 4, &pages);
    check("twice", file(column(Type::Int32), 4, vec![twice]), broken(Spec::Pages));
    let pages: Vec<_> = std::iter::repeat_n(two, 50_000).chain([data]).collect();
    let many = Chunk::new(Type::Int32, 4, &pages);
    check("very often", file(column(Type::Int32), 4, vec![many]), broken(Spec::Pages));
}

#[test]
fn values_that_grow_out_of_little_are_counted_first() {
    let _alone = alone();
    // Every value is the one before and a byte more: 1.25 GB in all.
    const N: i32 = 50_000;
    let prefixes = delta(&(0..N).collect::<Vec<_>>());
    let ones = delta(&vec![1; N as usize]);
    let body = [&prefixes[..], &ones, &vec![b'a'; N as usize]].concat();
    let pages = [v1(N as usize, Encoding::DeltaByteArray, &body)];
    check("prefixes", one(Type::ByteArray, N as usize, &pages), End::Rows(N as usize));
    // Every value is the first one, of 100 kB.
    let prefixes = delta(&(0..N).map(|i| if i == 0 { 0 } else { 100_000 }).collect::<Vec<_>>());
    let rests = delta(&(0..N).map(|i| if i == 0 { 100_000 } else { 0 }).collect::<Vec<_>>());
    let body = [&prefixes[..], &rests, &vec![b'a'; 100_000]].concat();
    let pages = [v1(N as usize, Encoding::DeltaByteArray, &body)];
    check("the same again", one(Type::ByteArray, N as usize, &pages), End::Rows(N as usize));
    // Every value is the first one, of 16 MiB, where a number is made of it: the bytes of all are
    // 800 GB, the numbers few.
    const LONG: i32 = 16 << 20;
    let prefixes = delta(&(0..N).map(|i| if i == 0 { 0 } else { LONG }).collect::<Vec<_>>());
    let rests = delta(&(0..N).map(|i| if i == 0 { LONG } else { 0 }).collect::<Vec<_>>());
    let body = [&prefixes[..], &rests, &vec![0; LONG as usize]].concat();
    let stored = compressed(Compression::Zstd(3), &body);
    for r#type in [Type::ByteArray, Type::FixedLenByteArray] {
        let header = v1_header(N as usize, Encoding::DeltaByteArray, body.len(), stored.len());
        let chunk = Chunk::new(r#type, N as usize, &[page(header, &stored)]);
        let element = filled!(SchemaElement {
            type_length: Some(LONG),
            logical_type: Some(LogicalType::Decimal(filled!(DecimalType {
                scale: 0,
                precision: 38
            }))),
            ..required("v", r#type)
        });
        let chunk = chunk.codec(CompressionCodec::Zstd);
        let end = End::Error(ErrorKind::Unsupported("long values in DELTA_BYTE_ARRAY"), Some(0));
        check("long decimals", file(vec![element], i64::from(N), vec![chunk]), end);
    }
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
    ]
    .into_iter()
    {
        let body = [header.map(varint).concat(), vec![0; 64]].concat();
        for (r#type, encoding) in [
            (Type::Int32, Encoding::DeltaBinaryPacked),
            (Type::Int64, Encoding::DeltaBinaryPacked),
            (Type::ByteArray, Encoding::DeltaLengthByteArray),
            (Type::ByteArray, Encoding::DeltaByteArray),
        ] {
            let pages = [v1(4, encoding, &body)];
            // The encoding around it states their number, and distinguishes it from the page.
            let name = match (header, r#type) {
                ([128, 4, ..], Type::ByteArray) => encoding.to_string(),
                _ => "DELTA_BINARY_PACKED".to_owned(),
            };
            let spec = ["DELTA_BINARY_PACKED", "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY"];
            let spec = spec.into_iter().find(|spec| *spec == name).expect("one of them");
            let end = broken(Spec::Encodings(spec));
            check(&format!("{header:?}"), one(r#type, 4, &pages), end);
        }
    }
    // Every byte of a page of ALP, four zeros, at its boundaries.
    let zeros = [&[0, 0, 10, 4, 0, 0, 0, 4][..], &[0; 16]].concat();
    for at in 0..zeros.len() {
        for byte in [0, 1, 3, 10, 16, 31, 32, 33, 0x7F, 0x80, 0xFF] {
            let mut body = zeros.clone();
            body[at] = byte;
            let is_sound = match at {
                _ if byte == zeros[at] => true,
                // The size of a vector, the exponent, the frame of reference.
                2 => (3..=15).contains(&byte),
                11 => byte <= 18,
                15..=22 => true,
                _ => false,
            };
            let end = match at {
                _ if is_sound => End::Rows(4),
                0 | 1 => End::Error(ErrorKind::Unsupported("ALP mode"), Some(0)),
                _ => broken(Spec::Encodings("ALP")),
            };
            let pages = [v1(4, Encoding::Alp, &body)];
            check(&format!("alp {at} {byte}"), one(Type::Double, 4, &pages), end);
        }
    }
}

/// Every byte of a page of PFOR, four zeros, as values and as differences, at its boundaries.
#[test]
#[cfg_attr(not(feature = "preview"), ignore = "PFOR is a preview")]
fn every_byte_of_a_page_of_pfor_at_its_boundaries() {
    let _alone = alone();
    for (r#type, bytes, flag) in
        [(Type::Int32, 4, 0), (Type::Int64, 8, 0), (Type::Int32, 4, 0x80), (Type::Int64, 8, 0x80)]
    {
        let start = if flag == 0 { 0 } else { bytes };
        let mut zeros = vec![0; 11 + bytes + 3 + start];
        let width = 11 + bytes;
        (zeros[1], zeros[2], zeros[3], zeros[7], zeros[width]) = (10, bytes as u8, 4, 4, flag);
        for at in 0..zeros.len() {
            for byte in [0, 1, 3, 10, 16, 31, 32, 33, 64, 65, 0x7F, 0x80, 0xFF] {
                let mut body = zeros.clone();
                body[at] = byte;
                let is_sound = match at {
                    _ if byte == zeros[at] => true,
                    1 => (3..=15).contains(&byte),
                    // Without the flag, the start value is four packed zeros.
                    _ if at == width && usize::from(byte) * 4 == start * 8 => true,
                    // The frame of reference, and the start value.
                    _ => (11..width).contains(&at) || at > width + 2,
                };
                let end = match at {
                    _ if is_sound => End::Rows(4),
                    0 => End::Error(ErrorKind::Unsupported("PFOR mode"), Some(0)),
                    _ => broken(Spec::Encodings("PFOR")),
                };
                let pages = [v1(4, Encoding::Pfor, &body)];
                check(&format!("pfor {at} {byte} {flag}"), one(r#type, 4, &pages), end);
            }
        }
    }
}

/// Numbers in DELTA_BINARY_PACKED, each miniblock of 32 bits.
fn delta(values: &[i32]) -> Vec<u8> {
    let zigzag = |n: i64| varint(((n << 1) ^ (n >> 63)).cast_unsigned());
    let first = zigzag(i64::from(values[0]));
    let mut out = [varint(128), varint(4), varint(values.len() as u64), first].concat();
    let deltas: Vec<i32> = values.windows(2).map(|pair| pair[1] - pair[0]).collect();
    for block in deltas.chunks(128) {
        let least = *block.iter().min().unwrap();
        out.extend(zigzag(i64::from(least)));
        let width = |mini: usize| if mini * 32 < block.len() { 32 } else { 0 };
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
    check("a pack too long", with(4, &run, &ints(&[1, 2, 3, 4])), End::Rows(4));
    let run = [&varint(u64::MAX - 1)[..], &[1]].concat();
    check("a run too long", with(4, &run, &ints(&[1, 2, 3, 4])), End::Rows(4));
    for len in [-1, i32::MIN, i32::MAX, 1 << 30] {
        let body = [&len.to_le_bytes()[..], &[8, 1]].concat();
        let pages = [v1(4, Encoding::Plain, &body)];
        check("length", file(schema(), 4, vec![Chunk::new(Type::Int32, 4, &pages)]), End::Refused);
    }
    // Lists in one row without end: all of it is one row, or none, where the elements are of no
    // list.
    let list = vec![leaf("v", Type::Int32, Repeated)];
    let n = 1 << 20;
    let rep = [&varint((n as u64 - 1) << 1)[..], &[1]].concat();
    let rep = [&[2, 0][..], &rep].concat();
    let sized = |bytes: &[u8]| [&(bytes.len() as u32).to_le_bytes()[..], bytes].concat();
    for (level, end) in [(0, broken(Spec::Levels)), (1, End::Rows(1))] {
        let def = [&varint((n as u64) << 1)[..], &[level]].concat();
        let values = vec![0; 4 * n * usize::from(level)];
        let pages = [v1(n, Encoding::Plain, &[sized(&rep), sized(&def), values].concat())];
        let chunk = Chunk::new(Type::Int32, n, &pages);
        check("one row", file(list.clone(), 1, vec![chunk]), end);
    }
}

#[test]
fn very_many_pages_row_groups_columns_and_keys_take_their_time_once() {
    let _alone = alone();
    const N: usize = 100_000;
    let four = v1(4, Encoding::Plain, &ints(&[1, 2, 3, 4]));
    let index = page(filled!(PageHeader { r#type: PageType::IndexPage }), &[]);
    let empties = [v1(0, Encoding::Plain, &[]), v2(0, 0, 0, Encoding::Plain, &[], &[], &[]), index];
    for (i, empty) in empties.iter().enumerate() {
        let pages = [empty.repeat(N), four.clone()];
        check(&format!("empty pages {i}"), one(Type::Int32, 4, &pages), End::Rows(4));
        let pages = [empty.repeat(N)];
        check(&format!("only empty pages {i}"), one(Type::Int32, 4, &pages), End::Refused);
    }
    let chunk = Chunk::new(Type::Int32, 4, &[four]);
    let good = |change: &dyn Fn(&mut FileMetaData)| {
        file_with(column(Type::Int32), vec![(4, vec![chunk.clone()])], change)
    };
    check("good", good(&|_| {}), End::Rows(4));
    let empty = good(&|meta| {
        let mut group = meta.row_groups[0].clone();
        group.num_rows = 0;
        meta.row_groups.extend(std::iter::repeat_n(group, N / 4));
    });
    check("row groups without rows", empty, End::Rows(4));
    let bare = good(&|meta| {
        meta.row_groups.extend(std::iter::repeat_n(RowGroup::default(), N));
    });
    check("row groups without columns", bare, End::Rows(4));
    let same = good(&|meta| {
        let group = meta.row_groups[0].clone();
        meta.row_groups.extend(std::iter::repeat_n(group, N / 10));
        meta.num_rows = (N / 10 + 1) as i64 * 4;
    });
    check("the same chunk very often", same, End::Rows(4 * (N / 10 + 1)));
    let keys = good(&|meta| {
        let pair = filled!(KeyValue { key: "k".into(), value: Some("v".into()) });
        meta.key_value_metadata = Some(vec![pair; N]);
    });
    check("keys", keys, End::Rows(4));
    let long = good(&|meta| {
        let value = Some("v".repeat(4 << 20));
        let pair = filled!(KeyValue { key: "ARROW:schema".into(), value });
        meta.key_value_metadata = Some(vec![pair]);
    });
    check("a long value", long, End::Rows(4));
    // Columns of one name, all in the same place.
    let n = 2_000;
    let alike = file_with(column(Type::Int32), vec![(4, vec![chunk.clone()])], |meta| {
        let (element, column) = (meta.schema[1].clone(), meta.row_groups[0].columns[0].clone());
        meta.schema[0].num_children = Some(n);
        meta.schema.extend(std::iter::repeat_n(element, n as usize - 1));
        meta.row_groups[0].columns.extend(std::iter::repeat_n(column, n as usize - 1));
    });
    check("columns alike", alike, End::Rows(4));
    let groups = good(&|meta| {
        let n = N as i32;
        meta.schema[0].num_children = Some(n + 1);
        meta.schema.extend(std::iter::repeat_n(group("g", Optional, 0), N));
    });
    check("groups of nothing", groups, End::Rows(4));
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
    let at = |i: usize| {
        filled!(PageLocation {
            offset: (4 + i * page.len()) as i64,
            compressed_page_size: page.len() as i32,
            first_row_index: 4 * i as i64,
        })
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
        check(&format!("index {which}"), with_index(&plain, None, locations), End::Rows(4 * n));
    }
    let many = (0..100_000).map(|_| at(0)).collect();
    check("an index far too long", with_index(&plain, None, many), End::Rows(4 * n));
    let columns = filled!(ColumnIndex {
        null_pages: vec![true; 100_000],
        min_values: vec![Vec::new(); 100_000],
        max_values: vec![Vec::new(); 100_000]
    });
    let locations: Vec<_> = (0..n).map(at).collect();
    check("columns", with_index(&plain, Some(&columns), locations), End::Rows(4 * n));
    let chunk = Chunk::new(Type::Int32, 4 * n, &pages);
    type Lie = fn(&mut ColumnChunk);
    let negative = End::Error(ErrorKind::Malformed(Spec::Metadata("ColumnMetaData")), None);
    let outside = End::Error(ErrorKind::Malformed(Spec::Container), None);
    let (rows, missing) =
        (End::Rows(4 * n), End::Error(ErrorKind::Malformed(Spec::Pages), Some(n)));
    let lies: [(Lie, End); 9] = [
        (|chunk| chunk.offset_index_length = Some(i32::MAX), rows),
        (|chunk| chunk.offset_index_length = Some(-1), rows),
        (
            |chunk| (chunk.column_index_offset, chunk.column_index_length) = (Some(-1), Some(9)),
            rows,
        ),
        (|chunk| meta(chunk).data_page_offset = -1, negative),
        (|chunk| meta(chunk).total_compressed_size = i64::MAX, outside),
        (|chunk| meta(chunk).total_compressed_size = -1, negative),
        (|chunk| meta(chunk).num_values = i64::MAX, missing),
        (|chunk| meta(chunk).dictionary_page_offset = Some(i64::MIN), negative),
        (|chunk| meta(chunk).bloom_filter_offset = Some(5), rows),
    ];
    for (which, (lie, end)) in lies.into_iter().enumerate() {
        let groups = vec![(4 * n as i64, vec![chunk.clone()])];
        let file = file_with(column(Type::Int32), groups, |meta| {
            let chunk = &mut meta.row_groups[0].columns[0];
            chunk.offset_index_offset = Some(4);
            lie(chunk);
        });
        check(&format!("place {which}"), file, end);
    }
    for num_bytes in [-1, 0, 1, 31, 33, 1 << 20, i32::MAX] {
        for said in [None, Some(-1), Some(0), Some(i32::MAX)] {
            let header = filled!(BloomFilterHeader { num_bytes });
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
            check(&format!("bloom filter of {num_bytes}"), file, End::Rows(4 * n));
        }
    }
}

fn meta(chunk: &mut ColumnChunk) -> &mut ColumnMetaData {
    chunk.meta_data.as_mut().unwrap()
}

#[test]
fn footers_of_lists_without_end_are_refused() {
    let _alone = alone();
    // Every kind of field, each as a list of each kind of element, with the maximum length.
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

/// Rows of a row group that a file of some ten KiB could hold, in pages of one run.
const VERY_MANY: i64 = 1 << 41;

/// Pages of a chunk that is large enough for its index to be asked.
const PAGES: i32 = 2500;

/// A column of pages of four values, 1 to 4 and so on, with an index that bounds them. The last
/// page goes to the end of the row group, which states `rows`; the chunk states `slots`.
fn bounded(rows: i64, slots: i64) -> Bytes {
    let values = |i: i32| ints(&[4 * i + 1, 4 * i + 2, 4 * i + 3, 4 * i + 4]);
    let pages: Vec<_> = (0..PAGES).map(|i| v1(4, Encoding::Plain, &values(i))).collect();
    let mut chunk = Chunk::new(Type::Int32, 4, &pages);
    chunk.meta.num_values = slots;
    let plain = file_with(column(Type::Int32), vec![(rows, vec![chunk])], |meta| {
        meta.column_orders = Some(vec![ColumnOrder::TypeOrder]);
    });
    let locations = (0..PAGES).map(|i| {
        filled!(PageLocation {
            offset: 4 + i64::from(i) * pages[0].len() as i64,
            compressed_page_size: pages[0].len() as i32,
            first_row_index: 4 * i64::from(i),
        })
    });
    let bound = |n: i32| (0..PAGES).map(|i| (4 * i + n).to_le_bytes().to_vec()).collect();
    let columns = filled!(ColumnIndex {
        null_pages: vec![false; PAGES as usize],
        min_values: bound(1),
        max_values: bound(4),
        boundary_order: BoundaryOrder::Ascending,
        null_counts: Some(vec![0; PAGES as usize])
    });
    with_index(&plain.into(), Some(&columns), locations.collect())
}

#[test]
fn rows_that_the_page_index_proves_are_counted_by_a_sum() {
    let _alone = alone();
    let reader = Reader::new(bounded(VERY_MANY, VERY_MANY)).unwrap().threads(1);
    let wanted = |test: Predicate| reader.clone().filter(test);
    for (least, rows) in [(1, VERY_MANY), (5, VERY_MANY - 4), (9997, VERY_MANY - 9996)] {
        let before = (HEAP.start)();
        let test = col("v").gt_eq(least);
        assert_eq!(wanted(test.clone()).count().unwrap(), rows as u64);
        assert_eq!(wanted(test.clone()).threads(2).count().unwrap(), rows as u64);
        let some = wanted(test.clone()).offset(10).limit(1 << 40);
        assert_eq!(some.count().unwrap(), 1 << 40);
        let halves = [0..1 << 20, 1 << 21..VERY_MANY as u64];
        let halves = RowSelection::from_ranges(VERY_MANY as u64, halves).unwrap();
        let half = wanted(test).select(halves).unwrap();
        assert_eq!(half.count().unwrap(), rows as u64 - (1 << 20));
        // One by one they would take hours, and a bit for each more than all memory.
        let peak = (HEAP.peak)() - before;
        assert!(peak < 16 << 20, "{peak} bytes for {rows} rows");
    }
    // Where a page must be looked at, it is found to hold less.
    let error = wanted(col("v").gt_eq(9998)).count().unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Malformed(_)), "{error}");
}

#[test]
fn a_row_group_of_more_rows_than_a_chunk_has_slots_is_refused() {
    let _alone = alone();
    for rows in [10_001, 1 << 20, VERY_MANY] {
        let file = bounded(rows, 10_000);
        check(
            "rows",
            file.clone(),
            End::Error(ErrorKind::Malformed(Spec::Metadata("ColumnMetaData")), None),
        );
        let reader = Reader::new(file).unwrap().threads(1);
        for read in [reader.clone(), reader.clone().limit(1), reader.filter(col("v").gt_eq(5))] {
            let error = read.batches().and_then(|mut batches| batches.next_batch());
            let error = error.expect_err("there are too many");
            assert_eq!(error.kind(), ErrorKind::Malformed(Spec::Metadata("ColumnMetaData")));
            assert_eq!(error.at().row_group, Some(0));
        }
    }
}

#[test]
fn rows_without_columns_are_counted_and_given_up_to_a_limit() {
    let _alone = alone();
    let max = i64::MAX as u64;
    let bare = file_with(Vec::new(), vec![(i64::MAX, Vec::new())], |_| {});
    check("rows of no columns", bare.clone(), End::Limit(LimitKind::Rows));
    let reader = Reader::new(Bytes::from(bare)).unwrap().threads(1);
    assert_eq!(reader.count().unwrap(), max);
    assert_eq!(reader.clone().filter(Predicate::TRUE).count().unwrap(), max);
    let taken = reader.take(&[0, 1 << 60]).unwrap();
    assert_eq!(taken.num_rows(), 2);
    let first = |reader: Reader| reader.batches().and_then(|mut batches| batches.next_batch());
    let few = first(reader.clone().limit(7)).unwrap().unwrap();
    assert_eq!((few.num_rows(), few.num_columns()), (7, 0));
    let error = first(reader.clone()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Limit(LimitKind::Rows));
    assert!(error.to_string().contains("9223372036854775807 rows of no columns"), "{error}");
    // No columns are asked for, of a file that has one.
    let file = bounded(VERY_MANY, VERY_MANY);
    let reader = Reader::new(file).unwrap().threads(1).project(Vec::<&str>::new()).unwrap();
    assert_eq!(first(reader.clone()).unwrap_err().kind(), ErrorKind::Limit(LimitKind::Rows));
    let proven = reader.clone().filter(col("v").gt_eq(1));
    assert_eq!(proven.count().unwrap(), VERY_MANY as u64);
    assert_eq!(first(proven).unwrap_err().kind(), ErrorKind::Limit(LimitKind::Rows));
    assert_eq!(first(reader.limit(9)).unwrap().unwrap().num_rows(), 9);
}

#[test]
fn metadata_that_state_huge_strings_cost_a_few_small_batches() {
    let _alone = alone();
    const ROWS: usize = 200_000;
    // A bit width of 1, and runs of 2,000 values that are entry 0.
    let run = [&[1][..], &[0xA0, 0x1F, 0]].concat();
    let indices = vec![v1(2000, Encoding::RleDictionary, &run); ROWS / 2000];
    let plain = vec![v1(2000, Encoding::Plain, &texts(&["abcdefghijklmnop"; 2000])); ROWS / 2000];
    let indexed = Chunk::new(Type::ByteArray, ROWS, &indices);
    let chunks = [
        indexed.with_dictionary(dictionary(1, &texts(&["abcdefghijklmnop"]))),
        Chunk::new(Type::ByteArray, ROWS, &plain),
    ];
    for (i, chunk) in chunks.into_iter().enumerate() {
        for stated in [i64::MAX, 1 << 50, 1 << 36, 1 << 33] {
            let mut liar = Chunk { bytes: chunk.bytes.clone(), meta: chunk.meta.clone(), ..chunk };
            liar.meta.total_uncompressed_size = stated;
            let file = Bytes::from(file(column(Type::ByteArray), ROWS as i64, vec![liar]));
            for threads in [1, 2] {
                for views in [false, true] {
                    for (filter, kept, max) in [
                        (None, ROWS, 20),
                        (Some(col("v").lt("b")), ROWS, 220),
                        (Some(col("v").gt("b")), 0, 0),
                    ] {
                        let name = format!("{i} {stated} {threads} {views} {filter:?}");
                        let reader = Reader::new(file.clone()).unwrap().memory(64 << 20);
                        let reader = reader.threads(threads).views(views);
                        let reader = match filter {
                            Some(filter) => reader.filter(filter),
                            None => reader,
                        };
                        let sizes: Vec<usize> =
                            reader.batches().unwrap().map(|b| b.unwrap().num_rows()).collect();
                        assert_eq!(sizes.iter().sum::<usize>(), kept, "{name}");
                        assert!(sizes.len() <= max, "{name}: {} batches", sizes.len());
                    }
                }
            }
        }
    }
}

#[test]
fn claims_of_the_same_columns_share_their_paths() {
    let _alone = alone();
    let (leaves, row_groups) = (100, 100);
    let mut schema = vec![group(&"g".repeat(64 << 10), FieldRepetitionType::Required, leaves)];
    schema.extend((0..leaves).map(|i| required(&format!("{i}"), Type::Int32)));
    let chunks = vec![Chunk::new(Type::Int32, 0, &[]); leaves as usize];
    // Each claims a byte of the magic number.
    let file = file_with(schema, vec![(0, chunks); row_groups], |meta| {
        for chunk in meta.row_groups.iter_mut().flat_map(|group| &mut group.columns) {
            (chunk.column_index_offset, chunk.column_index_length) = (Some(0), Some(1));
        }
    });
    let inspector = Inspector::new(Bytes::from(file)).unwrap();
    let before = (HEAP.start)();
    let head = inspector.spans().next().unwrap().unwrap();
    assert_eq!(head.references.len(), leaves as usize * row_groups);
    assert!(head.references.iter().all(|of| of.column.as_ref().unwrap().len() > 64 << 10));
    let held = (HEAP.peak)() - before;
    assert!(held < 16 << 20, "{held} bytes; the paths alone are {}", leaves << 16);
}
