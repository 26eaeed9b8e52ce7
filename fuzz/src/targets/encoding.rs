//! Values of any type through any encoding and codec: encoded, decoded, and compared; the codec's
//! own crate decompresses the pages, and a naive encoder's pages are decoded too.

use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, FixedSizeBinaryArray, Float32Array, Float64Array,
    Int32Array, Int64Array, RecordBatch,
};
use bytes::Bytes;
use marquetry::format::{Encoding, FieldRepetitionType, Type};
use marquetry::io::WriteSink;
use marquetry::write::is_legal;
use marquetry::{PageVersion, WriteOptions, Writer};
use marquetry_testkit::mutants::file::Parts;
use marquetry_testkit::{Chunk, encode, file, leaf, v1};

use super::reading::{assert_same, open, rows, with_kernels, within_memory};
use crate::input::{Input, Output};
use crate::seeds::{CODECS, ENCODINGS};

const TYPES: [Type; 7] = [
    Type::Boolean,
    Type::Int32,
    Type::Int64,
    Type::Float,
    Type::Double,
    Type::ByteArray,
    Type::FixedLenByteArray,
];
/// Values, at most.
const MAX_VALUES: usize = 5000;

/// Numbers of 64 bits from bytes: each byte is a number, a step, a run of the last one, or the
/// begin of eight bytes.
fn numbers(mut bytes: &[u8]) -> Vec<u64> {
    let mut out: Vec<u64> = Vec::new();
    while let [first, rest @ ..] = bytes
        && out.len() < MAX_VALUES
    {
        bytes = rest;
        let last = out.last().copied().unwrap_or(0);
        match first {
            0..=0x5F => out.push(u64::from(*first)),
            0x60..=0x9F => out.push(last.wrapping_add(u64::from(*first)).wrapping_sub(0x80)),
            0xA0..=0xCF => out.extend(std::iter::repeat_n(last, usize::from(first - 0x9F) * 3)),
            0xD0..=0xDF => out.push(last.rotate_left(u32::from(first & 15) + 1)),
            _ => {
                let (word, after) = rest.split_at(rest.len().min(8));
                let mut eight = [0; 8];
                eight[..word.len()].copy_from_slice(word);
                out.push(u64::from_le_bytes(eight));
                bytes = after;
            }
        }
    }
    out
}

/// The values as texts; neighbours have a common prefix.
fn texts(numbers: &[u64]) -> Vec<Vec<u8>> {
    let text = |number: &u64| {
        let all = format!("{:020}{number:x}", number / 1000);
        all.as_bytes()[..all.len().min((number % 31) as usize)].to_vec()
    };
    numbers.iter().map(text).collect()
}

fn column(physical: Type, numbers: &[u64], nulls: u8) -> ArrayRef {
    let is_null = |i: usize| nulls > 0 && (i * 31 + usize::from(nulls)) % 255 < usize::from(nulls);
    let present = numbers.iter().enumerate().map(|(i, n)| (!is_null(i)).then_some(*n));
    match physical {
        Type::Boolean => Arc::new(BooleanArray::from_iter(present.map(|n| n.map(|n| n & 1 > 0)))),
        Type::Int32 => Arc::new(Int32Array::from_iter(present.map(|n| n.map(|n| n as i32)))),
        Type::Int64 => Arc::new(Int64Array::from_iter(present.map(|n| n.map(u64::cast_signed)))),
        // Some are decimals, as ALP likes them.
        Type::Float => Arc::new(Float32Array::from_iter(present.map(|n| {
            n.map(|n| if n > 1 << 40 { f32::from_bits(n as u32) } else { n as f32 / 100.0 })
        }))),
        Type::Double => {
            Arc::new(Float64Array::from_iter(present.map(|n| {
                n.map(|n| if n > 1 << 60 { f64::from_bits(n) } else { n as f64 / 1000.0 })
            })))
        }
        Type::ByteArray => {
            let texts = texts(numbers);
            Arc::new(BinaryArray::from_iter(
                texts.iter().enumerate().map(|(i, text)| (!is_null(i)).then_some(text)),
            ))
        }
        _ => {
            let values = present.map(|n| n.map(|n| [&n.to_be_bytes()[..], b"abcd"].concat()));
            let array = FixedSizeBinaryArray::try_from_sparse_iter_with_size(values, 12);
            Arc::new(array.expect("values of one size"))
        }
    }
}

pub fn run(data: &[u8]) {
    let mut input = Input::new(data);
    let (physical, encoding) = (input.pick(&TYPES), input.pick(&ENCODINGS));
    let (codec, nulls, page_rows) = (input.pick(&CODECS), input.u8(), input.u16());
    let version = input.pick(&[PageVersion::V1, PageVersion::V2]);
    let numbers = numbers(input.rest());
    let is_written = match encoding {
        Encoding::RleDictionary => physical != Type::Boolean,
        _ => is_legal(encoding, physical),
    };
    if numbers.is_empty() || !is_written {
        return;
    }
    let array = column(physical, &numbers, nulls);
    let batch = RecordBatch::try_from_iter([("v", array)]).expect("a batch");
    let options = WriteOptions::new()
        .with_compression(codec)
        .with_page_version(version)
        .with_page_rows(usize::from(page_rows % 4096) + 1)
        .with_column("v", |of| of.with_encoding(encoding));
    let write = || {
        let sink = WriteSink(Vec::new());
        let mut writer = Writer::new(sink, batch.schema(), options.clone()).expect("a writer");
        writer.write(&batch).expect("rows");
        Bytes::from(writer.into_inner().expect("a file").1)
    };
    let file = write();
    let reader = open(file.clone()).expect("a file");
    let found = within_memory(file.len(), || rows(&reader)).expect("what was written");
    assert_same(&found.batches, std::slice::from_ref(&batch), "read again");
    // The codecs' own crates decompress it.
    assert!(Parts::new(&file).is_some(), "{codec:?}");
    if let Some(scalar) = with_kernels("scalar", write) {
        assert!(scalar == file, "scalar kernels write another file");
    }
    if batch.column(0).null_count() == 0 {
        naive(physical, encoding, &numbers, &batch);
    }
}

/// A page of the naive encoder gives the same values.
fn naive(physical: Type, encoding: Encoding, numbers: &[u64], batch: &RecordBatch) {
    let body = match (encoding, physical) {
        (Encoding::DeltaBinaryPacked, Type::Int32) => {
            encode::delta(&numbers.iter().map(|n| *n as i32).collect::<Vec<_>>())
        }
        (Encoding::DeltaBinaryPacked, Type::Int64) => {
            encode::delta(&numbers.iter().map(|n| n.cast_signed()).collect::<Vec<_>>())
        }
        (Encoding::DeltaLengthByteArray, Type::ByteArray) => encode::delta_length(&texts(numbers)),
        (Encoding::DeltaByteArray, Type::ByteArray) => encode::delta_bytes(&texts(numbers)),
        (Encoding::ByteStreamSplit, Type::Int64) => {
            let values: Vec<u8> = numbers.iter().flat_map(|n| n.to_le_bytes()).collect();
            encode::split(&values, 8)
        }
        (Encoding::Rle, Type::Boolean) => {
            let bits: Vec<u32> = numbers.iter().map(|n| u32::from(n & 1 > 0)).collect();
            let runs = encode::rle(&bits, 1);
            [&u32::try_from(runs.len()).expect("few").to_le_bytes()[..], &runs].concat()
        }
        _ => return,
    };
    let chunk = Chunk::new(physical, numbers.len(), &[v1(numbers.len(), encoding, &body)]);
    let element = leaf("v", physical, FieldRepetitionType::Required);
    let rows_in_file = i64::try_from(numbers.len()).expect("few");
    let reader = open(file(vec![element], rows_in_file, vec![chunk])).expect("a file");
    let found = rows(&reader).expect("the naive encoder's page");
    let found: Vec<ArrayRef> = found.batches.iter().map(|batch| batch.column(0).clone()).collect();
    let found: Vec<&dyn Array> = found.iter().map(|array| &**array).collect();
    let found = arrow_select::concat::concat(&found).expect("one array");
    assert!(found.to_data() == batch.column(0).to_data(), "of the naive encoder");
}

pub fn seeds() -> Vec<Vec<u8>> {
    let mut rng = fastrand::Rng::with_seed(1);
    let mut seeds = Vec::new();
    for r#type in 0..TYPES.len() {
        for encoding in 0..ENCODINGS.len() {
            for version in [0, 1] {
                let (r#type, encoding) = (r#type as u8, encoding as u8);
                let codec = rng.u8(..7);
                let kind = seeds.len() % 4;
                let values: Vec<u8> = (0..rng.usize(1..200))
                    .map(|_| match kind {
                        0 => rng.u8(..0x60),
                        1 => rng.u8(0x60..0xA0),
                        2 => rng.u8(..),
                        _ => rng.u8(0x90..),
                    })
                    .collect();
                let nulls = if rng.bool() { 0 } else { rng.u8(..) };
                let head = Output::default().u8(r#type).u8(encoding).u8(codec).u8(nulls);
                seeds.push(head.u16(rng.u16(..100)).u8(version).rest(&values).bytes());
            }
        }
    }
    seeds
}
