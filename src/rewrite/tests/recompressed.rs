//! Tests of pages that get another codec.

use crate::compress::Compression;
use crate::error::{ErrorKind, LimitKind, Spec};
use crate::format::{CompressionCodec, DataPageHeaderV2, PageHeader, PageType};
use crate::limits::Budget;
use crate::rewrite::recompress::Recompressor;

fn recompressor(from: CompressionCodec, to: Compression) -> Recompressor {
    Recompressor::new(from, to, 4_000, &Budget::new(1 << 20)).unwrap()
}

/// A page of version 2 with 2 bytes of levels, whose body is not compressed.
fn v2(body: &[u8]) -> PageHeader {
    let inner = DataPageHeaderV2 {
        repetition_levels_byte_length: 0,
        definition_levels_byte_length: 2,
        is_compressed: Some(false),
        ..DataPageHeaderV2::default()
    };
    PageHeader {
        r#type: PageType::DataPageV2,
        uncompressed_page_size: i32::try_from(body.len()).unwrap(),
        data_page_header_v2: Some(inner),
        ..PageHeader::default()
    }
}

#[test]
fn a_header_that_its_body_does_not_fit_is_refused() {
    type Change = fn(&mut PageHeader);
    const HEADER: ErrorKind = ErrorKind::Malformed(Spec::Metadata("PageHeader"));
    const PAGES: ErrorKind = ErrorKind::Malformed(Spec::Pages);
    fn inner(header: &mut PageHeader) -> &mut DataPageHeaderV2 {
        header.data_page_header_v2.as_mut().unwrap()
    }
    let cases: [(Change, ErrorKind); 9] = [
        (|header| header.uncompressed_page_size = -1, HEADER),
        (|header| header.uncompressed_page_size = 4_001, ErrorKind::Limit(LimitKind::Page)),
        (|header| header.data_page_header_v2 = None, HEADER),
        (|header| inner(header).definition_levels_byte_length = -1, HEADER),
        (|header| inner(header).repetition_levels_byte_length = -1, HEADER),
        // More levels than there are bytes, stored or uncompressed.
        (|header| inner(header).definition_levels_byte_length = 9, PAGES),
        (|header| header.uncompressed_page_size = 1, PAGES),
        // Values as they are, of another length.
        (|header| header.uncompressed_page_size = 9, PAGES),
        (
            |header| {
                header.r#type = PageType::DataPage;
                header.uncompressed_page_size = 7;
            },
            PAGES,
        ),
    ];
    let body = [0; 8];
    for (case, (change, kind)) in cases.into_iter().enumerate() {
        let mut header = v2(&body);
        change(&mut header);
        let mut to = recompressor(CompressionCodec::Uncompressed, Compression::Snappy);
        assert_eq!(to.body(&mut header, &body).unwrap_err().kind(), kind, "case {case}");
    }
    // What is no frame of the codec; and more memory than there is.
    let mut broken = v2(&body);
    broken.data_page_header_v2.as_mut().unwrap().is_compressed = Some(true);
    let mut from = recompressor(CompressionCodec::Snappy, Compression::Uncompressed);
    let refused = from.body(&mut broken, &[0xFF; 8]).unwrap_err().kind();
    assert!(matches!(refused, ErrorKind::Malformed(_)), "{refused:?}");
    let small = Budget::new(10);
    let codec = CompressionCodec::Uncompressed;
    let mut to = Recompressor::new(codec, Compression::Snappy, 4_000, &small).unwrap();
    let refused = to.body(&mut v2(&body), &body).unwrap_err().kind();
    assert_eq!(refused, ErrorKind::Limit(LimitKind::Memory));
}

#[test]
fn values_of_version_2_are_compressed_only_where_that_is_smaller() {
    let stored = |to: Compression, body: &[u8]| {
        let mut header = v2(body);
        let mut to = recompressor(CompressionCodec::Uncompressed, to);
        let new = to.body(&mut header, body).unwrap().to_vec();
        (new, header.data_page_header_v2.unwrap().is_compressed)
    };
    let alike = [&[3, 9][..], &[7; 1_000]].concat();
    let (packed, is_compressed) = stored(Compression::Snappy, &alike);
    assert_eq!((&packed[..2], is_compressed), (&alike[..2], Some(true)));
    assert!(packed.len() < 200, "{} bytes", packed.len());
    let different: Vec<u8> = (0..30).collect();
    assert_eq!(stored(Compression::Snappy, &different), (different.clone(), Some(false)));
    assert_eq!(stored(Compression::Uncompressed, &alike), (alike.clone(), Some(false)));
    // No values: a frame of nothing is not stored.
    assert_eq!(stored(Compression::Snappy, &[3, 9]), (vec![3, 9], Some(false)));
    // And back; what is said to be compressed and has no values has a frame of nothing, or none.
    let mut header = v2(&alike);
    header.data_page_header_v2.as_mut().unwrap().is_compressed = None;
    let mut back = recompressor(CompressionCodec::Snappy, Compression::Uncompressed);
    assert_eq!(back.body(&mut header, &packed).unwrap(), alike);
    assert_eq!(back.codec(), CompressionCodec::Uncompressed);
    for body in [&[3, 9][..], &[3, 9, 0]] {
        let mut header = v2(&[3, 9]);
        header.data_page_header_v2.as_mut().unwrap().is_compressed = None;
        assert_eq!(back.body(&mut header, body).unwrap(), [3, 9]);
        assert_eq!(header.data_page_header_v2.unwrap().is_compressed, Some(false));
    }
}
