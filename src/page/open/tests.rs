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

/// Seals and opens the modules of a chunk.
#[cfg(feature = "encryption")]
fn keys() -> (crate::crypt::ChunkEncryptor, ChunkDecryptor) {
    use crate::crypt::{Decryption, Encryption, FileDecryptor, FileEncryptor, Key, LeafProtection};
    let key = || Key::new(b"0123456789abcdef").unwrap();
    let protections = [LeafProtection::FooterKey(key())];
    let file = FileEncryptor::new(&Encryption::new(key()), &protections).unwrap();
    let keys = Decryption::new().with_footer_key(key());
    let of_file = FileDecryptor::new(&keys, &file.algorithm(), None, true).unwrap();
    (file.chunk(0, 0).unwrap().unwrap(), of_file.chunk(key(), 0, 0).unwrap())
}

#[cfg(feature = "encryption")]
#[test]
fn a_header_is_of_the_page_that_it_is_authenticated_as() {
    use crate::thrift::Write;
    let (encryptor, decryptor) = keys();
    let mut context = context(CompressionCodec::Uncompressed, 0);
    context.decryptor = Some(decryptor);
    let stored = |module: Module, r#type: PageType| {
        let (mut plain, mut out) = (Vec::new(), Vec::new());
        header(r#type).write(&mut plain).unwrap();
        encryptor.seal(module, &plain, &mut out).unwrap();
        out
    };
    let at = |is_first, data_pages| PagePosition { is_first, data_pages };
    let dictionary = stored(Module::DictionaryPageHeader, PageType::DictionaryPage);
    let data = stored(Module::DataPageHeader(3), PageType::DataPage);
    let read = |bytes: &[u8], position| context.read_header(bytes, position);
    // More bytes may follow.
    let longer = [&dictionary[..], &[0; 9]].concat();
    let found = read(&longer, at(true, 0)).unwrap();
    assert_eq!((found.len, found.body), (dictionary.len(), Some(Module::DictionaryPage)));
    assert_eq!(read(&data, at(false, 3)).unwrap().body, Some(Module::DataPage(3)));
    // At another place, or cut.
    for (bytes, position) in [(&dictionary, at(false, 0)), (&data, at(false, 2))] {
        assert_eq!(read(bytes, position).unwrap_err().kind(), ErrorKind::Crypto);
    }
    const ENCRYPTION: ErrorKind = ErrorKind::Malformed(Spec::Encryption);
    for len in [0, 3, data.len() - 1] {
        assert_eq!(read(&data[..len], at(false, 3)).unwrap_err().kind(), ENCRYPTION, "{len}");
    }
    // Authentic, and of another type.
    let wrong = [
        (stored(Module::DictionaryPageHeader, PageType::DataPage), at(true, 0)),
        (stored(Module::DataPageHeader(0), PageType::DictionaryPage), at(true, 0)),
    ];
    for (bytes, position) in wrong {
        assert_eq!(read(&bytes, position).unwrap_err().kind(), ENCRYPTION);
    }
    // Larger than any header.
    let mut large = vec![0; MAX_HEADER_BYTES + 1];
    large[..4].copy_from_slice(&u32::try_from(MAX_HEADER_BYTES - 3).unwrap().to_le_bytes());
    assert_eq!(read(&large, at(false, 0)).unwrap_err().kind(), ENCRYPTION);
    large[..4].copy_from_slice(&u32::try_from(MAX_HEADER_BYTES - 4).unwrap().to_le_bytes());
    assert_eq!(read(&large, at(false, 0)).unwrap_err().kind(), ErrorKind::Crypto);
}

#[cfg(feature = "encryption")]
#[test]
fn the_memory_of_a_page_is_what_it_was_decrypted_and_decompressed_into() {
    let (encryptor, decryptor) = keys();
    let values = vec![7; 90];
    let packed = snap::raw::Encoder::new().compress_vec(&values).unwrap();
    let mut body = Vec::new();
    encryptor.seal(Module::DataPage(0), &packed, &mut body).unwrap();
    let opened = |r#type, budget: u64| {
        let mut context = context(CompressionCodec::Snappy, 0);
        context.decryptor = Some(decryptor.clone());
        let mut header = header(r#type);
        header.uncompressed_page_size = 90;
        // It is not looked at, because the body is authentic.
        header.crc = Some(1);
        header.data_page_header_v2.as_mut().unwrap().is_compressed = None;
        let mut opener = PageOpener::new(context, &Budget::new(budget));
        opener.open(&header, body.clone().into(), Some(Module::DataPage(0)))
    };
    let decrypted = ChunkDecryptor::plain_len(body.len()) as u64;
    for (r#type, held) in [(PageType::DataPage, 90), (PageType::DataPageV2, 90 + decrypted)] {
        let Some(Page::Data(page)) = opened(r#type, 1 << 20).unwrap() else { panic!() };
        assert_eq!(page.bytes, values);
        assert_eq!(page.memory.unwrap().bytes(), held, "{}", r#type);
        for budget in [decrypted - 1, decrypted + 89] {
            let refused = opened(r#type, budget).unwrap_err().kind();
            assert_eq!(refused, ErrorKind::Limit(LimitKind::Memory), "{budget} bytes");
        }
    }
}

#[test]
fn levels_and_values_of_a_start_are_those_of_the_whole_page() {
    // Every third of 4,000 numbers is null.
    let present: Vec<bool> = (0..4_000).map(|i| i % 3 != 0).collect();
    let values: Vec<u8> = (0i64..2_666).flat_map(|i| (i * 1_000_003).to_le_bytes()).collect();
    // One run of 500 groups of 8 bits.
    let mut levels = vec![0xE9, 0x07];
    levels.extend(
        present
            .chunks(8)
            .map(|of| of.iter().enumerate().fold(0u8, |byte, (i, is)| byte | u8::from(*is) << i)),
    );
    let pack = |bytes: &[u8]| snap::raw::Encoder::new().compress_vec(bytes).unwrap();
    let prefixed = [&(levels.len() as u32).to_le_bytes()[..], &levels].concat();
    let v1 = pack(&[&prefixed[..], &values].concat());
    let v2 = [&levels[..], &pack(&values)].concat();
    for (r#type, body, before) in
        [(PageType::DataPage, v1, prefixed.len()), (PageType::DataPageV2, v2, levels.len())]
    {
        let mut header = header(r#type);
        let sizes = [before + values.len(), body.len()].map(|len| i32::try_from(len).unwrap());
        [header.uncompressed_page_size, header.compressed_page_size] = sizes;
        let inner = header.data_page_header.as_mut().unwrap();
        (inner.num_values, inner.definition_level_encoding) = (4_000, Encoding::Rle);
        let inner = header.data_page_header_v2.as_mut().unwrap();
        (inner.num_values, inner.num_nulls, inner.is_compressed) = (4_000, 1_334, None);
        inner.definition_levels_byte_length = i32::try_from(levels.len()).unwrap();
        let start = |header: &PageHeader, body: &Bytes, budget: u64| {
            let mut context = context(CompressionCodec::Snappy, 1);
            context.page_bytes = 1 << 20;
            PageOpener::new(context, &Budget::new(budget)).open_start(header, body, 600)
        };
        let body = Bytes::from(body);
        let mut page = start(&header, &body, 1 << 20).unwrap();
        assert_eq!((page.slots, page.slots_left_out, page.values), (600, 3_400, None));
        assert!(values.starts_with(&page.bytes) && page.bytes.len() >= 8 * 400, "{}", r#type);
        let mut found = LevelDecoder::planes(1);
        page.def.read(600, &mut found).unwrap();
        assert!((0..600).all(|i| (found.get(i) == 1) == present[i]));
        // A wrong checksum, no memory, and what is no frame of the codec.
        let mut wrong = header.clone();
        wrong.crc = Some(1);
        assert!(start(&wrong, &body, 1 << 20).is_none());
        assert!(start(&header, &body, 100).is_none());
        let broken = Bytes::from(vec![0xFF; body.len()]);
        assert!(start(&header, &broken, 1 << 20).is_none());
        // Levels that do not fit, and lists.
        let inner = wrong.data_page_header_v2.as_mut().unwrap();
        (inner.definition_levels_byte_length, wrong.crc) = (1 << 20, None);
        if r#type == PageType::DataPageV2 {
            assert!(start(&wrong, &body, 1 << 20).is_none());
            let inner = wrong.data_page_header_v2.as_mut().unwrap();
            inner.definition_levels_byte_length = -1;
            assert!(start(&wrong, &body, 1 << 20).is_none());
        }
    }
}
