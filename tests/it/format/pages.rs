//! Tests levels and pages.

use marquetry::ErrorKind;
use marquetry::format::*;
use serde_json::json;

use crate::support::*;

fn optional_ints(body: &[u8], slots: usize) -> Vec<u8> {
    let chunk = Chunk::new(Type::Int32, slots, &[v1(slots, Encoding::Plain, body)]);
    file(vec![optional("v", Type::Int32)], i64::try_from(slots).expect("few"), vec![chunk])
}

/// A list of required ints: two levels of repetition and definition, 0 and 1.
fn list_schema() -> Vec<SchemaElement> {
    let list = filled!(SchemaElement {
        logical_type: Some(LogicalType::List),
        ..group("v", FieldRepetitionType::Required, 1)
    });
    vec![list, group("list", FieldRepetitionType::Repeated, 1), required("element", Type::Int32)]
}

fn list_page(rep: &[u32], def: &[u32], values: &[i32]) -> Vec<u8> {
    v1(rep.len(), Encoding::Plain, &[levels_v1(rep, 1), levels_v1(def, 1), ints(values)].concat())
}

#[test]
fn v1_has_repetition_definition_values_in_that_order() {
    let page = list_page(&[0, 1, 0, 0], &[1, 1, 0, 1], &[1, 2, 3]);
    let file = file(list_schema(), 3, vec![Chunk::new(Type::Int32, 4, &[page])]);
    assert_eq!(column(&read(file).expect("rows")), [json!([1, 2]), json!([]), json!([3])]);
}

#[test]
fn v2_has_the_same_order_without_lengths() {
    let page = v2(
        4,
        1,
        3,
        Encoding::Plain,
        &levels_v2(&[0, 1, 0, 0], 1),
        &levels_v2(&[1, 1, 0, 1], 1),
        &ints(&[1, 2, 3]),
    );
    let file = file(list_schema(), 3, vec![Chunk::new(Type::Int32, 4, &[page])]);
    assert_eq!(column(&read(file).expect("rows")), [json!([1, 2]), json!([]), json!([3])]);
}

/// A V2 page of an optional column, its values part as given.
fn v2_stored(is_compressed: Option<bool>, raw_len: usize, stored: &[u8]) -> Vec<u8> {
    let def = levels_v2(&[1, 0, 1], 1);
    let size = |n: usize| i32::try_from(n).expect("small");
    let header = filled!(PageHeader {
        r#type: PageType::DataPageV2,
        uncompressed_page_size: size(def.len() + raw_len),
        compressed_page_size: size(def.len() + stored.len()),
        data_page_header_v2: Some(filled!(DataPageHeaderV2 {
            num_values: 3,
            num_nulls: 1,
            num_rows: 3,
            encoding: Encoding::Plain,
            definition_levels_byte_length: size(def.len()),
            is_compressed
        }))
    });
    page(header, &[def, stored.to_vec()].concat())
}

fn snappy_literal(bytes: &[u8]) -> Vec<u8> {
    let len = u8::try_from(bytes.len()).expect("short");
    [&[len, (len - 1) << 2][..], bytes].concat()
}

#[test]
fn v2_is_compressed_unless_it_says_no_or_there_is_no_codec() {
    let raw = ints(&[4, 5]);
    let expected = [json!(4), json!(null), json!(5)];
    for (flag, codec, stored) in [
        (None, CompressionCodec::Snappy, snappy_literal(&raw)),
        (Some(true), CompressionCodec::Snappy, snappy_literal(&raw)),
        (Some(false), CompressionCodec::Snappy, raw.clone()),
        (Some(true), CompressionCodec::Uncompressed, raw.clone()),
        (None, CompressionCodec::Uncompressed, raw.clone()),
    ] {
        let chunk = Chunk::new(Type::Int32, 3, &[v2_stored(flag, raw.len(), &stored)]).codec(codec);
        let file = file(vec![optional("v", Type::Int32)], 3, vec![chunk]);
        assert_eq!(column(&read(file).expect("rows")), expected, "{flag:?} {codec}");
    }
}

#[test]
fn an_empty_value_part_is_not_decompressed() {
    let def = levels_v2(&[0, 0], 1);
    for stored in [&[][..], &[0x28, 0xB5, 0x2F, 0xFD, 0x20, 0x00, 0x01, 0x00, 0x00]] {
        let header = filled!(PageHeader {
            r#type: PageType::DataPageV2,
            uncompressed_page_size: i32::try_from(def.len()).expect("small"),
            compressed_page_size: i32::try_from(def.len() + stored.len()).expect("small"),
            data_page_header_v2: Some(filled!(DataPageHeaderV2 {
                num_values: 2,
                num_nulls: 2,
                num_rows: 2,
                encoding: Encoding::Plain,
                definition_levels_byte_length: i32::try_from(def.len()).expect("small")
            }))
        });
        let chunk = Chunk::new(Type::Int32, 2, &[page(header, &[&def, stored].concat())])
            .codec(CompressionCodec::Zstd);
        let file = file(vec![optional("v", Type::Int32)], 2, vec![chunk]);
        assert_eq!(column(&read(file).expect("rows")), [json!(null), json!(null)]);
    }
}

#[test]
fn a_page_of_no_bytes_is_not_decompressed() {
    for codec in [CompressionCodec::Zstd, CompressionCodec::Snappy, CompressionCodec::Gzip] {
        // Values of no bytes take none, and neither does a dictionary without entries.
        let data = page(v1_header(2, Encoding::Plain, 0, 0), &[]);
        let chunk = Chunk::new(Type::FixedLenByteArray, 2, &[data]).codec(codec);
        let chunk = chunk.with_dictionary(dictionary(0, &[]));
        let element = filled!(SchemaElement {
            type_length: Some(0),
            ..required("v", Type::FixedLenByteArray)
        });
        let rows = read(file(vec![element], 2, vec![chunk])).expect("rows");
        assert_eq!(column(&rows), [json!("0x"), json!("0x")], "{codec}");
    }
}

#[test]
fn a_page_of_nulls_may_have_no_values_in_any_encoding() {
    for (r#type, encoding) in [
        (Type::Boolean, Encoding::Plain),
        (Type::Boolean, Encoding::Rle),
        (Type::Int32, Encoding::Plain),
        (Type::Int32, Encoding::RleDictionary),
        (Type::Int32, Encoding::DeltaBinaryPacked),
        (Type::Int64, Encoding::ByteStreamSplit),
        (Type::Double, Encoding::Alp),
        (Type::ByteArray, Encoding::DeltaLengthByteArray),
        (Type::ByteArray, Encoding::DeltaByteArray),
        (Type::FixedLenByteArray, Encoding::Plain),
        (Type::FixedLenByteArray, Encoding::DeltaByteArray),
    ] {
        let element = filled!(SchemaElement { type_length: Some(4), ..optional("v", r#type) });
        let of = |levels: &[u32]| {
            let pages = [v1(2, encoding, &levels_v1(levels, 1))];
            file(vec![element.clone()], 2, vec![Chunk::new(r#type, 2, &pages)])
        };
        let rows = read(of(&[0, 0])).unwrap_or_else(|e| panic!("{type} {encoding}: {e}"));
        assert_eq!(column(&rows), [json!(null), json!(null)], "{type} {encoding}");
        assert!(is_malformed(of(&[0, 1])), "{type} {encoding}");
    }
}

#[test]
fn old_parquet_cpp_says_not_compressed_and_compresses() {
    let raw = ints(&[4, 5]);
    let chunk =
        Chunk::new(Type::Int32, 3, &[v2_stored(Some(false), raw.len(), &snappy_literal(&raw))]);
    let chunk = chunk.codec(CompressionCodec::Snappy);
    let file_by = |writer: &str| {
        file_with(vec![optional("v", Type::Int32)], vec![(3, vec![chunk.clone()])], |meta| {
            meta.created_by = Some(writer.to_owned());
        })
    };
    let rows = read(file_by("parquet-cpp version 1.5.1-SNAPSHOT")).expect("rows");
    assert_eq!(column(&rows), [json!(4), json!(null), json!(5)]);
    assert!(is_malformed(file_by("parquet-cpp-arrow version 12.0.0")));
}

fn bit_packed(levels: u8) -> Chunk {
    let body = [&[levels][..], &ints(&[1, 2])].concat();
    let mut header = v1_header(3, Encoding::Plain, body.len(), body.len());
    header.data_page_header.as_mut().expect("V1").definition_level_encoding = Encoding::BitPacked;
    Chunk::new(Type::Int32, 3, &[page(header, &body)])
}

#[test]
fn bit_packed_levels_begin_at_the_most_significant_bit() {
    let schema = vec![optional("v", Type::Int32)];
    let rows = read(file(schema.clone(), 3, vec![bit_packed(0b0110_0000)])).expect("rows");
    assert_eq!(column(&rows), [json!(null), json!(1), json!(2)]);
    let impala = file_with(schema, vec![(3, vec![bit_packed(0b0000_0110)])], |meta| {
        meta.created_by = Some("impala version 2.3.0 (build x)".into());
    });
    assert_eq!(column(&read(impala.clone()).expect("rows")), [json!(null), json!(1), json!(2)]);
    let reader = marquetry::Reader::new(bytes::Bytes::from(impala)).expect("a footer");
    let entries: Vec<_> = reader.leaf_entries(0, 0).expect("a leaf").collect();
    let [Ok(entries)] = &entries[..] else { panic!("entries of all rows: {entries:?}") };
    assert_eq!((&entries.definition_levels[..], entries.values.len()), (&[0, 1, 1][..], 2));
}

#[test]
fn a_v1_page_may_begin_inside_a_row() {
    let pages =
        [list_page(&[0, 1], &[1, 1], &[1, 2]), list_page(&[1, 1, 0], &[1, 1, 1], &[3, 4, 5])];
    let file = file(list_schema(), 2, vec![Chunk::new(Type::Int32, 5, &pages)]);
    let expected = [json!([1, 2, 3, 4]), json!([5])];
    assert_eq!(column(&read(file.clone()).expect("rows")), expected);
    let reader = marquetry::Reader::new(bytes::Bytes::from(file)).expect("a footer").threads(1);
    assert_eq!(column(&read_with(reader.offset(1)).expect("rows")), expected[1..]);
}

#[test]
fn fewer_levels_than_values_are_malformed() {
    let short = [levels_v1(&[1; 8], 1), ints(&[1; 16])].concat();
    // A run of 8, where 16 are declared.
    assert!(is_malformed(optional_ints(&short, 16)));
    let cut = [&100u32.to_le_bytes()[..], &[2, 1]].concat();
    assert!(is_malformed(optional_ints(&cut, 3)));
}

#[test]
fn first_repetition_level_must_be_0_and_none_above_the_highest() {
    let page = list_page(&[1, 0], &[1, 1], &[1, 2]);
    assert!(is_malformed(file(list_schema(), 1, vec![Chunk::new(Type::Int32, 2, &[page])])));
    // Two levels of definition take two bits; 3 is one too many.
    let schema = vec![group("g", FieldRepetitionType::Optional, 1), optional("v", Type::Int32)];
    let body = [levels_v1(&[2, 3, 0], 3), ints(&[1, 2])].concat();
    let chunk = Chunk::new(Type::Int32, 3, &[v1(3, Encoding::Plain, &body)]);
    assert!(is_malformed(file(schema, 3, vec![chunk])));
}

#[test]
fn a_required_column_with_levels_or_too_few_values_is_malformed() {
    let chunk = Chunk::new(Type::Int32, 3, &[v1(3, Encoding::Plain, &ints(&[1, 2]))]);
    assert!(is_malformed(file(vec![required("v", Type::Int32)], 3, vec![chunk])));
}

#[test]
fn columns_with_other_numbers_of_rows_are_malformed() {
    let chunk = |n: i32| {
        let values: Vec<i32> = (0..n).collect();
        let slots = usize::try_from(n).expect("few");
        Chunk::new(Type::Int32, slots, &[v1(slots, Encoding::Plain, &ints(&values))])
    };
    let schema = vec![required("a", Type::Int32), required("b", Type::Int32)];
    assert!(is_malformed(file(schema.clone(), 3, vec![chunk(3), chunk(2)])));
    assert!(is_malformed(file(schema.clone(), 3, vec![chunk(3), chunk(4)])));
    read(file(schema, 3, vec![chunk(3), chunk(3)])).expect("rows");
    // Lists whose leaves disagree on the number of elements.
    let list = filled!(SchemaElement {
        logical_type: Some(LogicalType::List),
        ..group("v", FieldRepetitionType::Required, 1)
    });
    let element = group("element", FieldRepetitionType::Required, 2);
    let schema = vec![
        list,
        group("list", FieldRepetitionType::Repeated, 1),
        element,
        required("a", Type::Int32),
        required("b", Type::Int32),
    ];
    let a = Chunk::new(Type::Int32, 3, &[list_page(&[0, 1, 0], &[1, 1, 1], &[1, 2, 3])]);
    let b = Chunk::new(Type::Int32, 2, &[list_page(&[0, 0], &[1, 1], &[1, 2])]);
    assert!(is_malformed(file(schema, 2, vec![a, b])));
}

fn coded(indices: &[u8], dictionary: Vec<u8>) -> Vec<u8> {
    let chunk = Chunk::new(Type::Int32, 3, &[v1(3, Encoding::RleDictionary, indices)])
        .with_dictionary(dictionary);
    file(vec![required("v", Type::Int32)], 3, vec![chunk])
}

#[test]
fn a_negative_count_in_a_dictionary_page_is_malformed() {
    let indices = [&[1][..], &levels_v2(&[0, 1, 0], 1)].concat();
    assert!(is_malformed(coded(&indices, dictionary(-1, &ints(&[5, 6])))));
    assert!(is_malformed(coded(&indices, dictionary(i32::MAX, &ints(&[5, 6])))));
}

#[test]
fn indices_out_of_range_and_missing_dictionaries_are_malformed() {
    let indices = [&[2][..], &levels_v2(&[0, 1, 3], 3)].concat();
    assert!(is_malformed(coded(&indices, dictionary(3, &ints(&[5, 6, 7])))));
    let chunk = Chunk::new(Type::Int32, 3, &[v1(3, Encoding::RleDictionary, &indices)]);
    assert!(is_malformed(file(vec![required("v", Type::Int32)], 3, vec![chunk])));
    assert!(is_malformed(coded(&[40, 1, 1], dictionary(2, &ints(&[5, 6])))));
}

#[test]
fn dictionary_indices_of_no_bits_are_all_0() {
    for stored in [&[0][..], &[0, 6]] {
        let rows = read(coded(stored, dictionary(1, &ints(&[9])))).expect("rows");
        assert_eq!(column(&rows), [json!(9), json!(9), json!(9)]);
    }
}

#[test]
fn a_chunk_may_fall_back_from_its_dictionary() {
    let indices = [&[1][..], &levels_v2(&[0, 1, 0], 1)].concat();
    let pages =
        [v1(3, Encoding::PlainDictionary, &indices), v1(2, Encoding::Plain, &ints(&[7, 8]))];
    let chunk = Chunk::new(Type::Int32, 5, &pages).with_dictionary(dictionary(2, &ints(&[5, 6])));
    let bytes = file(vec![required("v", Type::Int32)], 5, vec![chunk]);
    let expected = [json!(5), json!(6), json!(5), json!(7), json!(8)];
    assert_eq!(column(&read(bytes.clone()).expect("rows")), expected);
    // The same with the dictionary kept.
    let reader = marquetry::Reader::new(bytes::Bytes::from(bytes)).expect("a footer").threads(1);
    let named = marquetry::schema::Dictionaries::Named(vec!["v".into()]);
    for batch_rows in [2, 100] {
        let kept = read_with(reader.clone().dictionaries(named.clone()).batch_rows(batch_rows))
            .expect("rows");
        assert!(matches!(
            kept[0].schema().field(0).data_type(),
            marquetry::arrow_schema::DataType::Dictionary(..)
        ));
        assert_eq!(column(&kept), expected);
    }
}

#[test]
fn many_pages_and_pages_of_other_types() {
    let n = 33_000;
    let pages: Vec<Vec<u8>> = (0..n).map(|i| v1(1, Encoding::Plain, &ints(&[i]))).collect();
    let rows = usize::try_from(n).expect("few");
    let bytes = file(
        vec![required("v", Type::Int32)],
        i64::from(n),
        vec![Chunk::new(Type::Int32, rows, &pages)],
    );
    let found = column(&read(bytes).expect("rows"));
    assert_eq!((found.len(), &found[rows - 1]), (rows, &json!(n - 1)));

    let odd = |r#type| {
        page(
            filled!(PageHeader { r#type, uncompressed_page_size: 3, compressed_page_size: 3 }),
            &[1, 2, 3],
        )
    };
    let pages = [
        odd(PageType::IndexPage),
        v1(2, Encoding::Plain, &ints(&[1, 2])),
        odd(PageType::Unknown(9)),
        v1(1, Encoding::Plain, &ints(&[3])),
    ];
    let bytes = file(vec![required("v", Type::Int32)], 3, vec![Chunk::new(Type::Int32, 3, &pages)]);
    assert_eq!(column(&read(bytes).expect("rows")), [json!(1), json!(2), json!(3)]);
}

#[test]
fn checksums_are_verified_unless_turned_off() {
    let body = ints(&[1, 2, 3]);
    let good = crc32fast::hash(&body).cast_signed();
    let with = |crc: i32| {
        let header = filled!(PageHeader {
            crc: Some(crc),
            ..v1_header(3, Encoding::Plain, body.len(), body.len())
        });
        file(
            vec![required("v", Type::Int32)],
            3,
            vec![Chunk::new(Type::Int32, 3, &[page(header, &body)])],
        )
    };
    read(with(good)).expect("rows");
    assert!(is_malformed(with(good ^ 1)));
    let reader = marquetry::Reader::new(bytes::Bytes::from(with(good ^ 1))).expect("a footer");
    read_with(reader.threads(1).verify_checksums(false)).expect("rows");
    // The dictionary page too.
    let indices = [&[1][..], &levels_v2(&[0, 1, 0], 1)].concat();
    let values = ints(&[5, 6]);
    let header = filled!(PageHeader {
        r#type: PageType::DictionaryPage,
        uncompressed_page_size: 8,
        compressed_page_size: 8,
        crc: Some(7),
        dictionary_page_header: Some(filled!(DictionaryPageHeader { num_values: 2 }))
    });
    assert!(is_malformed(coded(&indices, page(header, &values))));
}

#[test]
fn the_checksum_of_the_specification_is_the_one_of_gzip() {
    let body = texts(&["text1", "text2", "text3", "text4", "text5"]);
    assert_eq!(crc32fast::hash(&body), 0xE4BF_772A);
    let header = filled!(PageHeader {
        crc: Some(0xE4BF_772Au32.cast_signed()),
        ..v1_header(5, Encoding::Plain, 45, 45)
    });
    let text = filled!(SchemaElement {
        converted_type: Some(ConvertedType::Utf8),
        ..required("v", Type::ByteArray)
    });
    let bytes = file(vec![text], 5, vec![Chunk::new(Type::ByteArray, 5, &[page(header, &body)])]);
    assert_eq!(column(&read(bytes).expect("rows"))[4], json!("text5"));
}

#[test]
fn nulls_and_empty_lists_at_every_depth() {
    // optional list of optional ints: null, [], [null], [1, null].
    let list = filled!(SchemaElement {
        logical_type: Some(LogicalType::List),
        ..group("v", FieldRepetitionType::Optional, 1)
    });
    let schema = vec![
        list,
        group("list", FieldRepetitionType::Repeated, 1),
        optional("element", Type::Int32),
    ];
    let body =
        [levels_v1(&[0, 0, 0, 0, 1], 1), levels_v1(&[0, 1, 2, 3, 2], 3), ints(&[1])].concat();
    let chunk = Chunk::new(Type::Int32, 5, &[v1(5, Encoding::Plain, &body)]);
    let rows = read(file(schema, 4, vec![chunk])).expect("rows");
    assert_eq!(column(&rows), [json!(null), json!([]), json!([null]), json!([1, null])]);
}

#[test]
fn sizes_that_are_negative_or_too_long_are_malformed() {
    let body = ints(&[1, 2, 3]);
    for (raw, stored) in [(-1, 12), (12, -1), (12, 1 << 30), (11, 12), (13, 12)] {
        let mut header = v1_header(3, Encoding::Plain, 12, 12);
        (header.uncompressed_page_size, header.compressed_page_size) = (raw, stored);
        let chunk = Chunk::new(Type::Int32, 3, &[page(header, &body)]);
        assert!(
            is_malformed(file(vec![required("v", Type::Int32)], 3, vec![chunk])),
            "{raw} {stored}"
        );
    }
    let mut header = v1_header(3, Encoding::Plain, 12, 12);
    header.data_page_header = None;
    let chunk = Chunk::new(Type::Int32, 3, &[page(header, &body)]);
    assert!(is_malformed(file(vec![required("v", Type::Int32)], 3, vec![chunk])));
}

#[test]
fn a_page_of_a_billion_nulls_takes_no_memory() {
    // One run, where the declared count is a lie of the metadata alone: the read is limited, and
    // ends.
    let n = 1_000_000_000usize;
    let mut def = Vec::new();
    let mut header = (n as u64) << 1;
    while header >= 0x80 {
        def.push((header & 0x7F) as u8 | 0x80);
        header >>= 7;
    }
    def.extend([header as u8, 0]);
    let body = [&u32::try_from(def.len()).expect("short").to_le_bytes()[..], &def].concat();
    let chunk = Chunk::new(Type::Int32, n, &[v1(n, Encoding::Plain, &body)]);
    let bytes =
        file(vec![optional("v", Type::Int32)], i64::try_from(n).expect("fits"), vec![chunk]);
    let reader = marquetry::Reader::new(bytes::Bytes::from(bytes)).expect("a footer").threads(1);
    let rows = read_with(reader.offset(999_999_990)).expect("the last rows");
    assert_eq!(column(&rows), vec![json!(null); 10]);
}

#[test]
fn the_kind_of_a_bad_page_is_malformed_and_not_arrow() {
    assert!(matches!(kind(optional_ints(&[], 3)), ErrorKind::Malformed(_)));
}
