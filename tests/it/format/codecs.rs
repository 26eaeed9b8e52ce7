//! Tests codecs through whole files; unit tests of `compress` test their framings and faults.

use marquetry::ErrorKind;
use marquetry::format::{CompressionCodec, Encoding, Type};
use serde_json::json;

use crate::support::*;

/// A page whose body is compressed like this.
fn compressed(codec: CompressionCodec, body: &[u8], stored: &[u8]) -> Vec<u8> {
    let header = v1_header(3, Encoding::Plain, body.len(), stored.len());
    let chunk = Chunk::new(Type::Int32, 3, &[page(header, stored)]).codec(codec);
    file(vec![required("v", Type::Int32)], 3, vec![chunk])
}

fn hadoop(blocks: &[&[u8]], raw: usize) -> Vec<u8> {
    let mut out = u32::try_from(raw).expect("short").to_be_bytes().to_vec();
    for block in blocks {
        out.extend(u32::try_from(block.len()).expect("short").to_be_bytes());
        out.extend_from_slice(block);
    }
    out
}

/// LZ4 and LZO streams of literals alone, 12 bytes.
fn lz4_literals(bytes: &[u8]) -> Vec<u8> {
    [&[u8::try_from(bytes.len() << 4).expect("at most 15")][..], bytes].concat()
}

#[cfg(feature = "lzo")]
fn lzo_literals(bytes: &[u8]) -> Vec<u8> {
    [&[u8::try_from(bytes.len() + 17).expect("short")][..], bytes, &[0x11, 0, 0]].concat()
}

#[test]
fn lz4_in_hadoop_blocks_and_raw() {
    let body = ints(&[7, -1, 1 << 20]);
    let block = lz4_literals(&body);
    for stored in [hadoop(&[&block], 12), block.clone()] {
        let file = compressed(CompressionCodec::Lz4, &body, &stored);
        assert_eq!(column(&read(file).expect("rows")), [json!(7), json!(-1), json!(1 << 20)]);
    }
    let (a, b) = body.split_at(8);
    let two = hadoop(&[&lz4_literals(a), &lz4_literals(b)], 12);
    assert_eq!(
        column(&read(compressed(CompressionCodec::Lz4, &body, &two)).expect("rows")).len(),
        3
    );
    read(compressed(CompressionCodec::Lz4Raw, &body, &block)).expect("rows");
}

#[cfg(feature = "lzo")]
#[test]
fn lzo_in_hadoop_blocks() {
    let body = ints(&[7, -1, 1 << 20]);
    let stored = hadoop(&[&lzo_literals(&body)], 12);
    let file = compressed(CompressionCodec::Lzo, &body, &stored);
    assert_eq!(column(&read(file).expect("rows")), [json!(7), json!(-1), json!(1 << 20)]);
}

#[test]
fn another_size_than_stated_is_malformed() {
    let body = ints(&[1, 2, 3]);
    let short = lz4_literals(&body[..8]);
    assert!(is_malformed(compressed(CompressionCodec::Lz4Raw, &body, &short)));
}

#[test]
fn broken_input_of_each_codec_is_malformed() {
    use CompressionCodec as C;
    let body = ints(&[1, 2, 3]);
    for codec in [C::Snappy, C::Gzip, C::Brotli, C::Zstd, C::Lz4Raw, C::Lz4] {
        assert!(is_malformed(compressed(codec, &body, &[0xFF; 9])), "{codec}");
    }
}

#[test]
fn a_page_beyond_the_cap_is_a_limit() {
    let header = v1_header(3, Encoding::Plain, 1 << 30, 12);
    let chunk =
        Chunk::new(Type::Int32, 3, &[page(header, &[0; 12])]).codec(CompressionCodec::Snappy);
    let file = file(vec![required("v", Type::Int32)], 3, vec![chunk]);
    let mut limits = marquetry::Limits::default();
    limits.page_bytes = 1 << 20;
    let reader =
        marquetry::Reader::with_limits(bytes::Bytes::from(file), limits).expect("a footer");
    let error = read_with(reader.threads(1)).expect_err("too long");
    assert!(matches!(error.kind(), ErrorKind::Limit(_)));
}

#[test]
fn a_codec_that_nobody_knows_is_named() {
    let file = compressed(CompressionCodec::Unknown(42), &ints(&[1, 2, 3]), &ints(&[1, 2, 3]));
    let error = read(file).expect_err("unknown");
    assert_eq!(error.kind(), ErrorKind::Unsupported("compression codec"));
    assert!(error.to_string().contains("42"));
}
