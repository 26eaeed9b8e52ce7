use super::*;
use crate::error::ErrorKind;

/// A page of `slots` numbers, and how far it was opened for some of them.
fn opened(numbers: &[i64], slots: usize, version: PageType) -> Option<(Bytes, usize)> {
    let values: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
    let body = snap::raw::Encoder::new().compress_vec(&values).unwrap();
    let n = i32::try_from(numbers.len()).unwrap();
    let (v1, v2) = (
        DataPageHeader {
            num_values: n,
            encoding: Encoding::Plain,
            definition_level_encoding: Encoding::Rle,
            repetition_level_encoding: Encoding::Rle,
            statistics: None,
            unknown: Default::default(),
        },
        DataPageHeaderV2 {
            num_values: n,
            num_nulls: 0,
            num_rows: n,
            encoding: Encoding::Plain,
            definition_levels_byte_length: 0,
            repetition_levels_byte_length: 0,
            is_compressed: None,
            statistics: None,
            unknown: Default::default(),
        },
    );
    let is_v2 = version == PageType::DataPageV2;
    let header = PageHeader {
        r#type: version,
        uncompressed_page_size: i32::try_from(values.len()).unwrap(),
        compressed_page_size: i32::try_from(body.len()).unwrap(),
        crc: None,
        data_page_header: (!is_v2).then_some(v1),
        index_page_header: None,
        dictionary_page_header: None,
        data_page_header_v2: is_v2.then_some(v2),
        unknown: Default::default(),
    };
    let context = PageContext {
        codec: CompressionCodec::Snappy,
        max_def: 0,
        max_rep: 0,
        verify_checksums: true,
        ignore_is_compressed: false,
        bit_order: BitOrder::default(),
        page_bytes: 1 << 20,
        decryptor: None,
    };
    let mut opener = PageOpener::new(context, &Budget::new(1 << 20));
    let page = opener.open_start(&header, &body.into(), slots)?;
    assert_eq!(page.slots, slots);
    assert!(values.starts_with(&page.bytes) && page.bytes.len() >= 8 * slots);
    Some((page.bytes, page.slots_left_out))
}

#[test]
fn a_page_is_opened_as_far_as_the_slots_that_are_wanted() {
    let rising: Vec<i64> = (0..4_000).map(|i| i * 1_000_003).collect();
    let mut rng = fastrand::Rng::with_seed(5);
    let random: Vec<i64> = (0..4_000).map(|_| rng.i64(..)).collect();
    for numbers in [rising, random] {
        for version in [PageType::DataPage, PageType::DataPageV2] {
            for slots in [1, 100, 2_000, 3_000] {
                let (bytes, left_out) = opened(&numbers, slots, version).unwrap();
                assert_eq!(left_out, 4_000 - slots);
                assert!(bytes.len() < 8 * slots + 2_000);
            }
            // Opening a part would not save work, or the page has fewer slots.
            for slots in [3_999, 4_000, 5_000] {
                assert!(opened(&numbers, slots, version).is_none());
            }
        }
    }
}

fn context(codec: CompressionCodec, max_def: u16) -> PageContext {
    PageContext {
        codec,
        max_def,
        max_rep: 0,
        verify_checksums: true,
        ignore_is_compressed: false,
        bit_order: BitOrder::default(),
        page_bytes: 100,
        decryptor: None,
    }
}

/// A page of 8 bytes: one number that may be null, or a dictionary.
fn header(r#type: PageType) -> PageHeader {
    PageHeader {
        r#type,
        uncompressed_page_size: 8,
        compressed_page_size: 8,
        data_page_header: Some(DataPageHeader { num_values: 1, ..Default::default() }),
        dictionary_page_header: Some(DictionaryPageHeader { num_values: 1, ..Default::default() }),
        data_page_header_v2: Some(DataPageHeaderV2 {
            num_values: 1,
            num_rows: 1,
            is_compressed: Some(false),
            ..Default::default()
        }),
        ..Default::default()
    }
}

fn open(header: &PageHeader, max_def: u16) -> Result<Option<Page>> {
    let context = context(CompressionCodec::Uncompressed, max_def);
    let body = Bytes::from_static(&[0; 8]);
    PageOpener::new(context, &Budget::new(1 << 20)).open(header, body, None)
}

#[test]
fn pages_of_other_types_are_skipped() {
    for r#type in [PageType::IndexPage, PageType::Unknown(9)] {
        assert!(open(&header(r#type), 0).unwrap().is_none());
    }
    for r#type in [PageType::DictionaryPage, PageType::DataPage, PageType::DataPageV2] {
        assert!(open(&header(r#type), 0).unwrap().is_some());
    }
}

#[test]
fn a_header_that_its_page_does_not_fit_is_refused() {
    type Change = fn(&mut PageHeader);
    use PageType::{DataPage, DataPageV2, DictionaryPage};
    const HEADER: ErrorKind = ErrorKind::Malformed(Spec::Metadata("PageHeader"));
    const PAGES: ErrorKind = ErrorKind::Malformed(Spec::Pages);
    fn v1(header: &mut PageHeader) -> &mut DataPageHeader {
        header.data_page_header.as_mut().unwrap()
    }
    fn v2(header: &mut PageHeader) -> &mut DataPageHeaderV2 {
        header.data_page_header_v2.as_mut().unwrap()
    }
    let cases: [(PageType, Change, ErrorKind); 15] = [
        (DictionaryPage, |header| header.dictionary_page_header = None, HEADER),
        (DataPage, |header| header.data_page_header = None, HEADER),
        (DataPageV2, |header| header.data_page_header_v2 = None, HEADER),
        (DataPage, |header| v1(header).num_values = -1, HEADER),
        (DataPage, |header| header.uncompressed_page_size = -1, HEADER),
        (DataPageV2, |header| v2(header).num_nulls = -1, HEADER),
        (DataPageV2, |header| v2(header).num_nulls = 2, PAGES),
        (DataPageV2, |header| v2(header).definition_levels_byte_length = 9, PAGES),
        (DataPageV2, |header| v2(header).repetition_levels_byte_length = -9, HEADER),
        (
            DataPageV2,
            |header| {
                v2(header).definition_levels_byte_length = 8;
                header.uncompressed_page_size = 7;
            },
            PAGES,
        ),
        (DataPageV2, |header| header.uncompressed_page_size = 7, PAGES),
        (DataPage, |header| header.uncompressed_page_size = 9, PAGES),
        (DictionaryPage, |header| header.crc = Some(1), PAGES),
        (DataPage, |header| header.uncompressed_page_size = 101, ErrorKind::Limit(LimitKind::Page)),
        (
            DictionaryPage,
            |header| {
                let inner = header.dictionary_page_header.as_mut().unwrap();
                inner.encoding = Encoding::RleDictionary;
            },
            ErrorKind::Unsupported("dictionary page encoding"),
        ),
    ];
    for (case, (r#type, change, kind)) in cases.into_iter().enumerate() {
        let mut header = header(r#type);
        change(&mut header);
        assert_eq!(open(&header, 0).unwrap_err().kind(), kind, "case {case}");
    }
    // Of a leaf that may be null, there must be levels.
    let mut plain = header(DataPage);
    let refused = open(&plain, 1).unwrap_err().kind();
    assert_eq!(refused, ErrorKind::Unsupported("level encoding"));
    v1(&mut plain).definition_level_encoding = Encoding::Rle;
    assert!(open(&plain, 1).is_ok());
    // One bit each: more than there are bytes.
    v1(&mut plain).definition_level_encoding = Encoding::BitPacked;
    v1(&mut plain).num_values = 65;
    assert_eq!(open(&plain, 1).unwrap_err().kind(), PAGES);
}

#[test]
fn a_page_that_cannot_be_opened_in_part_is_none() {
    let start = |header: &PageHeader, context: PageContext| {
        let body = Bytes::from_static(&[0; 8]);
        PageOpener::new(context, &Budget::new(1 << 20)).open_start(header, &body, 1).is_some()
    };
    let snappy = || context(CompressionCodec::Snappy, 1);
    let mut many = header(PageType::DataPageV2);
    let inner = many.data_page_header_v2.as_mut().unwrap();
    inner.num_values = 1_000_000;
    many.uncompressed_page_size = 50;
    // Of another codec, not compressed, of an index, and with levels in another encoding.
    assert!(!start(&many, context(CompressionCodec::Uncompressed, 0)));
    assert!(!start(&many, snappy()));
    assert!(!start(&header(PageType::IndexPage), snappy()));
    let mut packed = header(PageType::DataPage);
    let inner = packed.data_page_header.as_mut().unwrap();
    (inner.num_values, inner.definition_level_encoding) = (1_000_000, Encoding::BitPacked);
    assert!(!start(&packed, snappy()));
}
