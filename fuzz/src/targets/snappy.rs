//! Our decoder of Snappy against that of the crate `snap`, and its encoder against ours.

use marquetry::format::{CompressionCodec, Encoding, FieldRepetitionType, Type};
use marquetry_testkit::{Chunk, file, leaf, page, v1_header};

use super::reading::{open, rows, within_memory};
use crate::input::{Input, Output};

/// Bytes of a page, at most.
const MAX_LEN: usize = 1 << 20;

pub fn run(data: &[u8]) {
    let mut input = Input::new(data);
    let is_compressed = input.bool();
    let bytes = input.rest();
    if is_compressed {
        decode(bytes);
    } else {
        let compressed = snap::raw::Encoder::new().compress_vec(bytes).expect("a short input");
        assert_eq!(decode(&compressed), Some(bytes.to_vec()).filter(|bytes| !bytes.is_empty()));
    }
}

/// The output of both decoders, if they accept it.
fn decode(bytes: &[u8]) -> Option<Vec<u8>> {
    let len = snap::raw::decompress_len(bytes).ok().filter(|len| (1..=MAX_LEN).contains(len))?;
    let expected = snap::raw::Decoder::new().decompress_vec(bytes).ok();
    let found = within_memory(len, || ours(bytes, len));
    assert_eq!(found, expected);
    found
}

/// One value, as long as the page.
fn ours(bytes: &[u8], len: usize) -> Option<Vec<u8>> {
    let body = page(v1_header(1, Encoding::Plain, len, bytes.len()), bytes);
    let chunk = Chunk::new(Type::FixedLenByteArray, 1, &[body]).codec(CompressionCodec::Snappy);
    let mut element = leaf("v", Type::FixedLenByteArray, FieldRepetitionType::Required);
    element.type_length = i32::try_from(len).ok();
    let rows = rows(&open(file(vec![element], 1, vec![chunk])).ok()?).ok()?;
    let column = rows.batches[0].column(0).clone();
    let value = column.as_any().downcast_ref::<arrow_array::FixedSizeBinaryArray>()?;
    Some(value.value(0).to_vec())
}

pub fn seeds() -> Vec<Vec<u8>> {
    let mut rng = fastrand::Rng::with_seed(1);
    let mut texts: Vec<Vec<u8>> = vec![
        vec![7; 300],
        b"abcabcabcabcabcabcabcabcabcabcabcabcabd".to_vec(),
        (0..200).collect(),
        (0..2000).map(|i: u32| (i / 7 % 5) as u8).collect(),
    ];
    texts.push((0..400).map(|_| rng.u8(..)).collect());
    texts.push((0..4000).map(|i| if i % 90 < 70 { rng.u8(..4) } else { 9 }).collect());
    let mut seeds = Vec::new();
    for text in texts {
        let compressed = snap::raw::Encoder::new().compress_vec(&text).expect("a short text");
        seeds.push(Output::default().u8(1).rest(&compressed).bytes());
        seeds.push(Output::default().u8(0).rest(&text).bytes());
    }
    seeds
}
