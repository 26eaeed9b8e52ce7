//! Tests every codec: round trips, wrong sizes, truncated and mutated input.

use std::io::Write;

use super::*;
use crate::error::ErrorKind;

/// Data of some redundancy.
fn data(rng: &mut fastrand::Rng, len: usize) -> Vec<u8> {
    (0..len).map(|i| if i % 3 == 0 { rng.u8(0..8) } else { (i / 7) as u8 }).collect()
}

fn hadoop_framed(sections: &[&[u8]], block: impl Fn(&[u8]) -> Vec<u8>) -> Vec<u8> {
    let mut out = Vec::new();
    for section in sections {
        out.extend((section.len() as u32).to_be_bytes());
        for part in section.chunks(700) {
            let bytes = block(part);
            out.extend((bytes.len() as u32).to_be_bytes());
            out.extend(bytes);
        }
    }
    out
}

/// LZO1X of literals alone: runs of at most 238 - 17 + ... are told by the first byte.
#[cfg(feature = "lzo")]
fn lzo_literals(bytes: &[u8]) -> Vec<u8> {
    assert!((4..=238).contains(&bytes.len()), "one first run");
    let mut out = vec![bytes.len() as u8 + 17];
    out.extend(bytes);
    // The end of the stream: a match of distance 16384.
    out.extend([0x11, 0, 0]);
    out
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(zstd_safe::compress_bound(bytes.len()));
    zstd_safe::compress(&mut out, bytes, 3).unwrap();
    out
}

fn brotli_stream(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    ::brotli::CompressorWriter::new(&mut out, 4096, 4, 20).write_all(bytes).unwrap();
    out
}

fn lz4_frame(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = lz4_flex::frame::FrameEncoder::new(Vec::new());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Each codec, and each of its framings, over the same data.
fn samples(bytes: &[u8]) -> Vec<(CompressionCodec, &'static str, Vec<u8>)> {
    use CompressionCodec as C;
    let half = bytes.len() / 2;
    let (a, b) = bytes.split_at(half);
    let skippable =
        [&[0x50, 0x2A, 0x4D, 0x18, 3, 0, 0, 0, 1, 2, 3][..], &zstd(a), &zstd(b)].concat();
    let lz4 = |bytes: &[u8]| lz4_flex::block::compress(bytes);
    vec![
        (C::Uncompressed, "as it is", bytes.to_vec()),
        (C::Snappy, "block", snap::raw::Encoder::new().compress_vec(bytes).unwrap()),
        (C::Gzip, "one member", gzip(bytes)),
        (C::Gzip, "two members", [gzip(a), gzip(b)].concat()),
        (C::Brotli, "stream", brotli_stream(bytes)),
        (C::Zstd, "one frame", zstd(bytes)),
        (C::Zstd, "skippable frame and two frames", skippable),
        (C::Lz4Raw, "block", lz4(bytes)),
        (C::Lz4, "frame", lz4_frame(bytes)),
        (C::Lz4, "one section", hadoop_framed(&[bytes], lz4)),
        (C::Lz4, "two sections", hadoop_framed(&[a, b], lz4)),
        (C::Lz4, "raw block", lz4(bytes)),
    ]
}

#[test]
fn every_codec_and_framing_gives_back_the_data() {
    let seed = 21;
    let mut rng = fastrand::Rng::with_seed(seed);
    for len in [1, 2, 100, 5_000, 200_000] {
        let bytes = data(&mut rng, len);
        for (codec, framing, compressed) in samples(&bytes) {
            let mut decompressor = Decompressor::new(codec).unwrap();
            let mut out = vec![7; 50];
            for _ in 0..2 {
                decompressor.decompress(&compressed, len, &mut out).unwrap();
                assert!(out == bytes, "{codec} {framing} of {len}, seed {seed}");
            }
        }
    }
}

#[test]
fn what_follows_a_gzip_member_is_refused_unless_the_page_has_it() {
    let (first, second) = ([1u8, 2, 3, 4, 5].repeat(20), [7u8; 10]);
    for rest in [gzip(&second), gzip(&[9; 99]), vec![0; 8], vec![0xFF], b"anything".to_vec()] {
        let input = [gzip(&first), rest].concat();
        let mut decompressor = Decompressor::new(CompressionCodec::Gzip).unwrap();
        let error = decompressor.decompress(&input, first.len(), &mut Vec::new()).unwrap_err();
        let kind = error.kind();
        assert!(matches!(kind, ErrorKind::Malformed(Spec::Compression(_))), "{error}");
    }
}

#[test]
fn the_start_of_a_block_is_the_start_of_its_bytes() {
    let seed = 22;
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut started = 0;
    for case in 0..400 {
        let len = [100, 5_000, 70_000, 200_000][rng.usize(0..4)];
        // Stretches of anything, of little, and of nothing but one byte.
        let mut bytes = Vec::new();
        while bytes.len() < len {
            let (max, n) = ([1u16, 3, 256][rng.usize(0..3)], rng.usize(1..len));
            bytes.extend((0..n).map(|_| rng.u16(0..max) as u8));
        }
        bytes.truncate(len);
        let mut compressed = snap::raw::Encoder::new().compress_vec(&bytes).unwrap();
        let mut decompressor = Decompressor::new(CompressionCodec::Snappy).unwrap();
        let mut out = vec![7; 50];
        let wanted = rng.usize(0..len + 10);
        if decompressor.decompress_start(&compressed, len, wanted, &mut out) {
            started += 1;
            assert!(out.len() >= wanted && bytes.starts_with(&out), "seed {seed}, {case}");
        } else {
            assert!(wanted + 64 >= len, "seed {seed}, {case}");
        }
        assert!(!decompressor.decompress_start(&compressed, len + 1, wanted, &mut out));
        // Of what is broken, what comes before the fault, or nothing: never a panic, and never more
        // than there is.
        for _ in 0..10 {
            let at = rng.usize(0..compressed.len());
            match rng.bool() {
                true => compressed[at] = rng.u8(..),
                false => compressed.truncate(at.max(1)),
            }
            let found = decompressor.decompress_start(&compressed, len, wanted, &mut out);
            assert!(!found || (wanted..=wanted + 64).contains(&out.len()));
        }
    }
    assert!(started > 200, "{started}");
}

#[cfg(feature = "snappy")]
#[test]
fn broken_snappy_blocks_are_refused_where_the_snap_crate_refuses_them() {
    let seed = fastrand::u64(..);
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut decompressor = Decompressor::new(CompressionCodec::Snappy).unwrap();
    let (mut out, mut refused) = (Vec::new(), 0);
    for case in 0..20_000 {
        let len = rng.usize(1..[30, 300, 3000][case % 3]);
        let bytes = data(&mut rng, len);
        let mut block = snap::raw::Encoder::new().compress_vec(&bytes).unwrap();
        for _ in 0..rng.usize(0..8) {
            let at = rng.usize(..block.len());
            block[at] = rng.u8(..);
        }
        if rng.u8(0..8) == 0 {
            block.truncate(rng.usize(..block.len()));
        }
        let mut expected = vec![0; len];
        let theirs = match snap::raw::decompress_len(&block) {
            Ok(stated) if stated == len => {
                snap::raw::Decoder::new().decompress(&block, &mut expected)
            }
            _ => Err(snap::Error::Empty),
        };
        let ours = decompressor.decompress(&block, len, &mut out);
        assert_eq!(ours.is_ok(), theirs.is_ok(), "seed {seed}, case {case}: {ours:?}, {theirs:?}");
        match ours {
            Ok(()) => assert!(out == expected, "seed {seed}, case {case}"),
            Err(e) => {
                assert!(matches!(e.kind(), ErrorKind::Malformed(_)), "{e}, seed {seed}, {case}");
                refused += 1;
            }
        }
    }
    assert!((4_000..18_000).contains(&refused), "{refused} were refused, seed {seed}");
}

#[cfg(feature = "lzo")]
#[test]
fn lzo_in_each_of_its_framings() {
    let bytes: Vec<u8> = (0..200).map(|i| (i * 7) as u8).collect();
    let (a, b) = bytes.split_at(100);
    let block = lzo_literals(&bytes);
    let python = [&[0xF0], &200u32.to_be_bytes()[..], &block].concat();
    let hadoop = hadoop_framed(&[a, b], lzo_literals);
    for compressed in [block, python, hadoop] {
        let mut out = Vec::new();
        let mut decompressor = Decompressor::new(CompressionCodec::Lzo).unwrap();
        decompressor.decompress(&compressed, 200, &mut out).unwrap();
        assert_eq!(out, bytes);
        assert!(decompressor.decompress(&compressed, 199, &mut out).is_err());
        assert!(decompressor.decompress(&compressed[..100], 200, &mut out).is_err());
    }
}

#[test]
fn another_size_than_stated_is_malformed() {
    let mut rng = fastrand::Rng::with_seed(22);
    let bytes = data(&mut rng, 3_000);
    for (codec, framing, compressed) in samples(&bytes) {
        for len in [0, 2_999, 3_001, 40_000_000] {
            let mut decompressor = Decompressor::new(codec).unwrap();
            let error = decompressor.decompress(&compressed, len, &mut Vec::new()).unwrap_err();
            assert!(
                matches!(error.kind(), ErrorKind::Malformed(Spec::Compression(_))),
                "{codec} {framing} {len}"
            );
        }
    }
}

#[test]
fn broken_input_is_an_error_and_takes_no_memory_that_was_not_filled() {
    let seed = 23;
    let mut rng = fastrand::Rng::with_seed(seed);
    let bytes = data(&mut rng, 3_000);
    for (codec, framing, compressed) in samples(&bytes) {
        if codec == CompressionCodec::Uncompressed {
            continue;
        }
        let mut decompressor = Decompressor::new(codec).unwrap();
        for _ in 0..300 {
            let mut broken = compressed.clone();
            broken.truncate(rng.usize(0..=broken.len()));
            for _ in 0..rng.usize(0..4) {
                if !broken.is_empty() {
                    let at = rng.usize(0..broken.len());
                    broken[at] = rng.u8(..);
                }
            }
            let len = if rng.bool() { 3_000 } else { 1 << 31 };
            let mut out = Vec::new();
            match decompressor.decompress(&broken, len, &mut out) {
                Ok(()) => assert_eq!(out.len(), len, "{codec} {framing} seed {seed}"),
                Err(error) => {
                    assert!(matches!(error.kind(), ErrorKind::Malformed(_)), "{codec} {framing}")
                }
            }
            assert!(out.capacity() <= 4 << 20, "{codec} {framing} took {} bytes", out.capacity());
        }
    }
}

#[test]
fn a_codec_that_nobody_knows_is_unsupported() {
    let error = Decompressor::new(CompressionCodec::Unknown(42)).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Unsupported("compression codec"));
}

#[test]
fn what_is_compressed_comes_back() {
    let mut rng = fastrand::Rng::with_seed(3);
    let noise: Vec<u8> = (0..100_000).map(|_| rng.u8(..)).collect();
    let text = b"a page of values, a page of values, a page of numbers ".repeat(2000);
    let mut names = vec![
        "none", "snappy", "gzip", "gzip:1", "brotli", "brotli:0", "zstd", "zstd:-1", "zstd:19",
        "lz4_raw",
    ];
    if cfg!(feature = "lzo") {
        names.push("lzo");
    }
    for name in names {
        let compression: Compression = name.parse().unwrap();
        let mut compressor = Compressor::new(compression).unwrap();
        let mut decompressor = Decompressor::new(compression.codec()).unwrap();
        for input in [&[][..], b"x", &noise, &text] {
            let mut out = b"before".to_vec();
            compressor.compress(input, &mut out).unwrap();
            let mut back = Vec::new();
            let done = decompressor.decompress(&out[6..], input.len(), &mut back);
            assert!(done.is_ok(), "{name}, {} bytes: {done:?}", input.len());
            assert_eq!(back, input, "{name}, {} bytes", input.len());
            let n = input.len();
            let of_ten: Vec<usize> = (1..10).map(|i| n * i / 10).collect();
            for cuts in [&[0][..], &[n / 3], &[n], &[n / 3, n / 3, n / 2], &[n, n + 9], &of_ten] {
                let mut out = Vec::new();
                compressor.compress_apart(input, cuts, &mut out).unwrap();
                decompressor.decompress(&out, n, &mut back).unwrap();
                assert_eq!(back, input, "{name}, {n} bytes cut at {cuts:?}");
            }
        }
    }
}

#[test]
#[cfg(feature = "zstd")]
fn levels_before_noise_shrink_when_apart() {
    let mut rng = fastrand::Rng::with_seed(4);
    let mut page: Vec<u8> = (0..8_000).map(|_| rng.u8(..) & rng.u8(..) & rng.u8(..)).collect();
    page.extend((0..60_000).map(|_| rng.u8(..)));
    let mut compressor = Compressor::new(Compression::Zstd(1)).unwrap();
    let (mut whole, mut parts) = (Vec::new(), Vec::new());
    compressor.compress(&page, &mut whole).unwrap();
    compressor.compress_apart(&page, &[8_000], &mut parts).unwrap();
    assert!(parts.len() + 1_000 < whole.len(), "{} of {}", parts.len(), whole.len());
}

#[test]
fn codecs_are_named_with_their_levels() {
    assert_eq!("zstd:7".parse::<Compression>().unwrap(), Compression::Zstd(7));
    assert_eq!("NONE".parse::<Compression>().unwrap(), Compression::Uncompressed);
    for wrong in ["zstd:23", "zstd:x", "snappy:1", "brotli:12", "deflate", ""] {
        let error = wrong.parse::<Compression>().unwrap_err();
        assert_eq!(error.kind(), crate::error::ErrorKind::Usage, "{wrong}");
    }
    for wrong in [
        Compression::Gzip(-1),
        Compression::Gzip(13),
        Compression::Brotli(12),
        Compression::Zstd(-8),
        Compression::Zstd(23),
    ] {
        let error = Compressor::new(wrong).map(drop).unwrap_err();
        assert_eq!(error.kind(), crate::error::ErrorKind::Usage, "{wrong:?}");
    }
}
