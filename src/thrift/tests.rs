//! Tests the policy for bad input, rule by rule.

use fastrand::Rng;

use super::derive::thrift;
use super::oracle::{self, ProtocolValue};
use super::skip::{SimilarStructSkipper, SkipError};
use super::{LazyValue, List, Read, ThriftReader, Unknown, Write, skip, wire};
use crate::error::{Error, ErrorKind, LimitKind, Spec};
use crate::format::{
    ColumnIndex, ColumnMetaData, ColumnOrder, CompressionCodec, ConvertedType, Encoding,
    FileMetaData, KeyValue, LogicalType, PageHeader, PageType, SchemaElement, Statistics, TimeUnit,
    Type,
};

thrift! {
    /// One field of every kind.
    struct Sample {
        /// A number.
        1 required number: i32,
        /// A flag.
        2 optional flag: bool,
        /// Flags.
        3 optional flags: Vec<bool>,
        /// Numbers.
        4 optional numbers: Vec<i64>,
        /// A struct.
        5 optional inner: Inner,
        /// A small number.
        6 optional small: i16,
        /// A name.
        7 optional name: String,
        /// A text.
        8 optional text: String as text,
    }
}

thrift! {
    /// A struct in a struct.
    struct Inner {
        /// A number.
        1 required number: i32,
    }
}

fn read<T: for<'a> Read<'a>>(bytes: &[u8]) -> T {
    let mut reader = ThriftReader::new(bytes);
    let value = T::read(&mut reader).unwrap();
    assert_eq!(reader.rest(), b"", "all is read");
    value
}

fn error<T: for<'a> Read<'a> + std::fmt::Debug>(bytes: &[u8]) -> Error {
    T::read(&mut ThriftReader::new(bytes)).unwrap_err()
}

fn written(value: &impl Write) -> Vec<u8> {
    let mut out = Vec::new();
    value.write(&mut out).unwrap();
    out
}

fn malformed<T: for<'a> Read<'a> + std::fmt::Debug>(name: &'static str, field: &str, bytes: &[u8]) {
    let error = error::<T>(bytes);
    assert_eq!(error.kind(), ErrorKind::Malformed(Spec::Metadata(name)), "{error}");
    assert!(error.message().contains(field), "{error}");
}

#[test]
fn short_and_long_form_ids_in_any_order_and_restored_after_a_struct() {
    let expected = Sample {
        number: -1,
        inner: Some(Inner { number: 1, ..Default::default() }),
        small: Some(3),
        ..Default::default()
    };
    // Short: 1, 5 {1}, 6.
    let short = [0x15, 0x01, 0x4C, 0x15, 0x02, 0x00, 0x14, 0x06, 0x00];
    assert_eq!(read::<Sample>(&short), expected);
    assert_eq!(written(&expected), short);
    // Long, decreasing: 6, 5 {1}, 1.
    let long = [0x04, 0x0C, 0x06, 0x0C, 0x0A, 0x05, 0x02, 0x02, 0x00, 0x05, 0x02, 0x01, 0x00];
    assert_eq!(read::<Sample>(&long), expected);
    // Backwards by the long form, then on by the short one: 6, 1, 5 {1}.
    let mixed = [0x64, 0x06, 0x05, 0x02, 0x01, 0x4C, 0x15, 0x02, 0x00, 0x00];
    assert_eq!(read::<Sample>(&mixed), expected);
}

#[test]
fn field_id_beyond_16_bits_is_malformed() {
    // 32767, then one more.
    malformed::<Sample>("Sample", "", &[0x05, 0xFE, 0xFF, 0x03, 0x00, 0x15, 0x02, 0x00]);
    // A long form of 17 bits.
    malformed::<Sample>("Sample", "", &[0x05, 0xFE, 0xFF, 0x07, 0x00, 0x00]);
}

#[test]
fn bool_list_elements_under_nibble_1_and_2_with_false_as_2_and_0() {
    for (list, expected) in [
        (&[0x31, 1, 2, 1][..], vec![true, false, true]),
        (&[0x32, 1, 2, 1], vec![true, false, true]),
        (&[0x32, 1, 0, 0], vec![true, false, false]),
        (&[0x31, 0, 0, 1], vec![false, false, true]),
    ] {
        let bytes = [&[0x15, 0, 0x29], list, &[0]].concat();
        assert_eq!(read::<Sample>(&bytes).flags, Some(expected));
    }
    // parquet-go: a column index of one page that is not null.
    let parquet_go =
        [0x19, 0x12, 0x00, 0x19, 0x18, 0x01, b'a', 0x19, 0x18, 0x01, b'b', 0x15, 0x02, 0x00];
    let index: ColumnIndex = read(&parquet_go);
    assert_eq!(index.null_pages, [false]);
    assert_eq!((index.min_values, index.max_values), (vec![b"a".to_vec()], vec![b"b".to_vec()]));
    malformed::<Sample>("Sample", "flags", &[0x15, 0, 0x29, 0x11, 3, 0]);
}

#[test]
fn bool_field_is_its_nibble() {
    assert_eq!(read::<Sample>(&[0x15, 0, 0x11, 0]).flag, Some(true));
    assert_eq!(read::<Sample>(&[0x15, 0, 0x12, 0]).flag, Some(false));
    assert_eq!(read::<Sample>(&[0x15, 0, 0x02, 0x04, 0]).flag, Some(false), "in the long form too");
}

#[test]
fn list_of_15_and_more_has_its_size_behind_the_header() {
    let mut bytes = vec![0x15, 0, 0x39, 0xF6, 0x90, 0x01];
    bytes.extend([2; 144]);
    bytes.push(0);
    assert_eq!(read::<Sample>(&bytes).numbers, Some(vec![1; 144]));
    let short = Sample { numbers: Some(vec![1; 14]), ..Default::default() };
    assert_eq!(written(&short)[3], 0xE6);
    let long = Sample { numbers: Some(vec![1; 15]), ..Default::default() };
    assert_eq!(written(&long)[3..5], [0xF6, 15]);
    assert_eq!(read::<Sample>(&written(&long)), long);
}

#[test]
fn empty_list_with_any_element_nibble() {
    for nibble in 0..16 {
        let bytes = [0x15, 0, 0x39, nibble, 0];
        assert_eq!(read::<Sample>(&bytes).numbers, Some(vec![]), "short form");
        let bytes = [0x15, 0, 0x39, 0xF0 | nibble, 0, 0];
        assert_eq!(read::<Sample>(&bytes).numbers, Some(vec![]), "long form");
        assert_eq!(skip::value(&[nibble, 9], wire::LIST), Ok(&[9][..]));
    }
}

#[test]
fn empty_map_is_one_byte() {
    assert_eq!(skip::value(&[0, 9], wire::MAP), Ok(&[9][..]));
    let bytes = [0x15, 0, 0xEB, 0x00, 0x15, 0x04, 0x00];
    assert_eq!(written(&read::<Sample>(&bytes)), bytes);
}

#[test]
fn unknown_field_of_every_type_is_skipped_and_kept() {
    let payloads: [(u8, &[u8]); 16] = [
        (wire::TRUE, &[]),
        (wire::FALSE, &[]),
        (wire::I8, &[0xFF]),
        (wire::I16, &[0xFF, 0xFF, 0x03]),
        (wire::I32, &[0xFF, 0xFF, 0xFF, 0xFF, 0x0F]),
        (wire::I64, &[0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01]),
        (wire::DOUBLE, &[0; 8]),
        (wire::BINARY, &[2, 0, 0]),
        (wire::LIST, &[0x21, 1, 2]),
        (wire::LIST, &[0x19, 0x16, 0x80, 0x01]),
        (wire::SET, &[0x38, 0, 1, 0, 0]),
        (wire::MAP, &[2, 0x51, 1, 1, 2, 2]),
        (wire::MAP, &[1, 0xCD, 0x11, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]),
        (wire::STRUCT, &[0x11, 0x12, 0x1C, 0x00, 0x00]),
        (wire::STRUCT, &[0]),
        (wire::UUID, &[0; 16]),
    ];
    for (ty, payload) in payloads {
        // Id 40, then the known field 1.
        let bytes = [&[ty, 80], payload, &[0x05, 2, 2, 0]].concat();
        let value: Sample = read(&bytes);
        assert_eq!(value.number, 1);
        let kept: Vec<_> = value.unknown.fields().map(|f| (f.id, f.ty, f.payload)).collect();
        assert_eq!(kept, [(40, ty, payload)]);
        assert_eq!(written(&value), [&[0x15, 2, ty, 80], payload, &[0]].concat());
        assert_eq!(read::<Sample>(&written(&value)), value);
    }
}

#[test]
fn type_nibbles_14_and_15_are_malformed() {
    for ty in [14, 15] {
        malformed::<Sample>("Sample", "", &[ty, 80, 0, 0, 0]);
        assert_eq!(skip::value(&[0x10 | ty, 0, 0], wire::LIST), Err(SkipError::Type));
    }
}

#[test]
fn deep_nesting_is_an_error_not_a_stack_overflow() {
    let nest = |open: &[u8], n: usize, close: &[u8]| [open.repeat(n), close.repeat(n)].concat();
    assert_eq!(skip::structure(&nest(&[0x1C], 1_000_000, &[0])), Err(SkipError::Depth));
    assert_eq!(skip::value(&nest(&[0x19], 1_000_000, &[]), wire::LIST), Err(SkipError::Depth));
    assert_eq!(skip::value(&nest(&[1, 0xBB], 1_000_000, &[]), wire::MAP), Err(SkipError::Depth));
    // 63 structs in a field are whole.
    let deep = [&[0x15, 0, 0xFC][..], &nest(&[0x1C], 63, &[0]), &[0, 0]].concat();
    assert_eq!(read::<Sample>(&deep).unknown.fields().count(), 1);
    let deeper = [&[0x15, 0, 0xFC][..], &nest(&[0x1C], 64, &[0]), &[0, 0]].concat();
    assert_eq!(error::<Sample>(&deeper).kind(), ErrorKind::Limit(LimitKind::Nesting));
}

/// The extension field, in the long form: as the recipe of the format encodes its id, and as a
/// thrift writer does.
const EXTENSIONS: [&[u8]; 2] = [
    &[0x08, 0xFF, 0xFF, 0x01, 3, b'e', b'x', b't'],
    &[0x08, 0xFE, 0xFF, 0x03, 3, b'e', b'x', b't'],
];

fn keeps_the_extension<T: Write>(plain: &T, unknown: impl Fn(&T) -> &Unknown) {
    let bytes = written(plain);
    for (extension, id) in EXTENSIONS.into_iter().zip([-16384, 32767]) {
        // Before the stop, and before all fields: the long form does not care, but what follows it
        // does.
        let behind = [&bytes[..bytes.len() - 1], extension, &[0]].concat();
        let value: T = read(&behind);
        assert_eq!(
            unknown(&value).fields().map(|f| (f.id, f.payload)).collect::<Vec<_>>(),
            [(id, &b"\x03ext"[..])]
        );
        assert_eq!(written(&value), behind);
    }
}

#[test]
fn extension_field_survives_in_file_meta_data() {
    let plain = FileMetaData { created_by: Some("x".to_owned()), ..Default::default() };
    keeps_the_extension(&plain, |value| &value.unknown);
}

#[test]
fn extension_field_survives_in_column_meta_data() {
    keeps_the_extension(&ColumnMetaData::default(), |value| &value.unknown);
}

#[test]
fn extension_field_survives_in_page_header() {
    keeps_the_extension(&PageHeader { crc: Some(7), ..Default::default() }, |value| &value.unknown);
}

#[test]
fn extension_field_survives_inside_a_logical_type() {
    for extension in EXTENSIONS {
        // name "a", logical type INTEGER { 8, signed, extension } with an extension beside the
        // member.
        let bytes =
            [&[0x48, 1, b'a', 0x6C, 0xAC, 0x13, 8, 0x11][..], extension, &[0], extension, &[0, 0]]
                .concat();
        let mut element: SchemaElement = read(&bytes);
        assert!(
            matches!(element.logical_type, Some(LogicalType::Integer(t)) if t.bit_width == 8 && t.is_signed)
        );
        assert_eq!(written(&element), bytes);
        element.logical_type = Some(LogicalType::Date);
        assert_eq!(
            written(&element),
            [0x48, 1, b'a', 0x6C, 0x6C, 0, 0, 0],
            "a value that was changed is what is written"
        );
    }
}

#[test]
fn unknown_enum_value_is_kept() {
    let plain = ColumnMetaData {
        r#type: Type::from(99),
        encodings: vec![Encoding::from(1), Encoding::from(111), Encoding::from(-5)],
        codec: CompressionCodec::from(8),
        ..Default::default()
    };
    let back: ColumnMetaData = read(&written(&plain));
    assert_eq!(back, plain);
    assert_eq!(
        back.encodings,
        [Encoding::Unknown(1), Encoding::Unknown(111), Encoding::Unknown(-5)]
    );
    let page = PageHeader { r#type: PageType::from(4), ..Default::default() };
    assert_eq!(read::<PageHeader>(&written(&page)).r#type, PageType::Unknown(4));
    // PARQUET-1481: a schema enum out of all bounds.
    let element = SchemaElement {
        r#type: Some(Type::Unknown(i32::MIN)),
        converted_type: Some(ConvertedType::Unknown(i32::MAX)),
        ..Default::default()
    };
    assert_eq!(read::<SchemaElement>(&written(&element)), element);
}

#[test]
fn unknown_union_member_is_kept() {
    // Name "a", logical type 25 { 1: 5 }.
    let bytes = [0x48, 1, b'a', 0x6C, 0x0C, 50, 0x15, 10, 0, 0, 0];
    let element: SchemaElement = read(&bytes);
    assert!(matches!(&element.logical_type, Some(LogicalType::Unrecognized(_))));
    assert_eq!(element.logical_type.as_ref().unwrap().to_string(), "unknown (25)");
    assert_eq!(written(&element), bytes);
    let orders: Vec<ColumnOrder> = read(&[0x2C, 0x1C, 0, 0, 0x9C, 0, 0]);
    assert!(matches!(orders[..], [ColumnOrder::TypeOrder, ColumnOrder::Unrecognized(_)]));
    // A member of another wire type is not the member.
    assert!(matches!(read::<TimeUnit>(&[0x15, 2, 0]), TimeUnit::Unrecognized(_)));
}

#[test]
fn empty_union_is_absent_where_optional() {
    let element: SchemaElement = read(&[0x48, 1, b'a', 0x6C, 0, 0]);
    assert_eq!(element.logical_type, None);
    let orders: Vec<ColumnOrder> = read(&[0x2C, 0, 0x1C, 0, 0]);
    assert_eq!(
        orders,
        [ColumnOrder::default(), ColumnOrder::TypeOrder],
        "but keeps its place in a list"
    );
}

#[test]
fn last_of_several_fields_or_known_members_wins() {
    assert_eq!(read::<Sample>(&[0x15, 2, 0x05, 2, 4, 0]).number, 2);
    assert_eq!(read::<TimeUnit>(&[0x1C, 0, 0x2C, 0, 0]), TimeUnit::Nanos);
    assert_eq!(read::<TimeUnit>(&[0x1C, 0, 0x7C, 0, 0]), TimeUnit::Millis, "known before unknown");
}

#[test]
fn wrong_wire_type_is_skipped_if_optional_and_malformed_if_required() {
    // A string where a flag is due, numbers where flags are due, strings where numbers are due.
    let bytes = [0x15, 2, 0x18, 1, b'x', 0x19, 0x15, 2, 0x19, 0x18, 1, b'x', 0];
    assert_eq!(read::<Sample>(&bytes), Sample { number: 1, ..Default::default() });
    malformed::<Sample>("Sample", "number", &[0x16, 2, 0]);
    // `encodings` and `path_in_schema` are not required, so a string or a number in their place is
    // nothing; `codec` is.
    malformed::<ColumnMetaData>(
        "ColumnMetaData",
        "codec",
        &[0x15, 0, 0x18, 0, 0x15, 0, 0x18, 0, 0],
    );
}

#[test]
fn missing_required_field_is_malformed_and_named() {
    malformed::<Sample>("Sample", "number", &[0]);
    malformed::<Sample>("Inner", "number", &[0x15, 2, 0x4C, 0, 0]);
    malformed::<SchemaElement>("SchemaElement", "name", &[0]);
    malformed::<PageHeader>("PageHeader", "PageHeader.type", &[0]);
    malformed::<ColumnMetaData>("ColumnMetaData", "codec", &[0x15, 0, 0]);
    // The encodings and the path may be absent, and nothing else.
    let bytes = [0x15, 0, 0x29, 0x08, 0x15, 0, 0x16, 0, 0x16, 0, 0x16, 0, 0x26, 0, 0];
    assert_eq!(read::<ColumnMetaData>(&bytes), ColumnMetaData::default());
}

#[test]
fn number_that_is_too_long_is_malformed() {
    let cases: [(&str, &[u8]); 6] = [
        ("number", &[0x15, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00, 0]),
        ("number", &[0x15, 0xFF, 0xFF, 0xFF, 0xFF, 0x1F, 0, 0, 0, 0]),
        ("small", &[0x64, 0x80, 0x80, 0x80, 0x00, 0]),
        ("small", &[0x64, 0xFF, 0xFF, 0x07, 0, 0, 0, 0, 0, 0]),
        (
            "numbers",
            &[0x49, 0x16, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01, 0],
        ),
        ("numbers", &[0x49, 0x16, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x02, 0]),
    ];
    for (field, bytes) in cases {
        malformed::<Sample>("Sample", field, bytes);
    }
    // The longest legal ones, and one that is longer than it must be.
    assert_eq!(read::<Sample>(&[0x15, 0xFF, 0xFF, 0xFF, 0xFF, 0x0F, 0]).number, i32::MIN);
    assert_eq!(read::<Sample>(&[0x15, 0x82, 0x80, 0x80, 0x80, 0x00, 0]).number, 1);
    assert_eq!(read::<Sample>(&[0x15, 0, 0x54, 0xFF, 0xFF, 0x03, 0]).small, Some(i16::MIN));
    // In what is skipped.
    assert_eq!(skip::value(&[0xFF; 20], wire::I64), Err(SkipError::Number));
    assert_eq!(
        skip::value(
            &[0x26, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0],
            wire::LIST
        ),
        Err(SkipError::Number)
    );
    // A length has up to five bytes, which must be there before it can be too long.
    assert_eq!(skip::value(&[0x80; 5], wire::BINARY), Err(SkipError::Number));
    assert_eq!(skip::value(&[0x80; 4], wire::BINARY), Err(SkipError::Short));
}

#[test]
fn huge_claims_are_malformed_without_allocation() {
    // Each would need 4 GiB or more. The list of a wrong type, and the unknown one, are skipped:
    // the same check there.
    for bytes in [
        &[0x15, 0, 0x39, 0xF6, 0xFF, 0xFF, 0xFF, 0xFF, 0x0F, 0, 0][..],
        &[0x15, 0, 0x39, 0xF8, 0xFF, 0xFF, 0xFF, 0xFF, 0x0F, 0, 0],
        &[0x15, 0, 0x68, 0xFF, 0xFF, 0xFF, 0xFF, 0x07, 0, 0],
        &[0x15, 0, 0x78, 0xFF, 0xFF, 0xFF, 0xFF, 0x07, 0, 0],
        &[0x15, 0, 0xE9, 0xF3, 0xFF, 0xFF, 0xFF, 0xFF, 0x0F, 0, 0],
        &[0x15, 0, 0xEB, 0xFF, 0xFF, 0xFF, 0xFF, 0x0F, 0x11, 1, 1, 0],
        &[0x15, 0, 0xE8, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0, 0],
    ] {
        malformed::<Sample>("Sample", "", bytes);
    }
}

#[test]
fn name_that_is_not_utf8_is_malformed_and_text_is_kept() {
    malformed::<SchemaElement>("SchemaElement", "name", &[0x48, 1, 0xFF, 0]);
    malformed::<ColumnMetaData>(
        "ColumnMetaData",
        "path_in_schema",
        &[0x15, 0, 0x29, 0x18, 1, 0xFF, 0],
    );
    let bytes = [0x18, 2, b'k', 0xFF, 0x18, 1, b'v', 0];
    let mut pair: KeyValue = read(&bytes);
    assert_eq!(pair.key, "k\u{FFFD}");
    assert_eq!(written(&pair), bytes, "written as it was");
    pair.key = "other".to_owned();
    assert_eq!(read::<KeyValue>(&written(&pair)).key, "other");
}

#[test]
fn key_without_value_differs_from_empty_value() {
    let absent: KeyValue = read(&[0x18, 1, b'k', 0]);
    let empty: KeyValue = read(&[0x18, 1, b'k', 0x18, 0, 0]);
    assert_eq!((absent.value.as_deref(), empty.value.as_deref()), (None, Some("")));
    assert_eq!(written(&absent), [0x18, 1, b'k', 0]);
    assert_eq!(written(&empty), [0x18, 1, b'k', 0x18, 0, 0]);
}

#[test]
fn max_comes_before_min() {
    let statistics: Statistics =
        read(&[0x18, 1, b'z', 0x18, 1, b'a', 0x38, 1, b'y', 0x18, 1, b'b', 0]);
    assert_eq!((statistics.max, statistics.min), (Some(b"z".to_vec()), Some(b"a".to_vec())));
    assert_eq!(
        (statistics.max_value, statistics.min_value),
        (Some(b"y".to_vec()), Some(b"b".to_vec()))
    );
}

#[test]
fn skipping_ends_where_the_value_ends() {
    for seed in 0..3000 {
        let mut rng = Rng::with_seed(seed);
        let tree =
            ProtocolValue::Struct((1..5).map(|id| (id, oracle::random(&mut rng, 4))).collect());
        let bytes = oracle::write(&tree);
        for tail in [&b""[..], &[0xFF; 9], &[0x01; 30]] {
            assert_eq!(skip::structure(&[&bytes, tail].concat()), Ok(tail), "seed {seed}");
        }
        let end = rng.usize(..bytes.len());
        assert_eq!(
            skip::structure(&bytes[..end]),
            Err(SkipError::Short),
            "seed {seed}, {end} bytes"
        );
    }
}

#[test]
fn structs_alike_end_where_a_walk_ends() {
    for seed in 0..1000 {
        let mut rng = Rng::with_seed(seed);
        let kinds: Vec<_> = (0..rng.i16(1..7))
            .map(|_| {
                ProtocolValue::Struct((1..4).map(|id| (id, oracle::random(&mut rng, 3))).collect())
            })
            .map(|tree| oracle::write(&tree))
            .collect();
        // Structs of a few kinds, each a little different from the last of its kind: often alike,
        // often nearly.
        let mut bytes = Vec::new();
        for _ in 0..60 {
            let mut like = rng.choice(&kinds).unwrap().clone();
            if rng.bool() {
                let at = rng.usize(..like.len());
                like[at] ^= 1 << rng.u8(..8);
            }
            bytes.extend(like);
        }
        let (mut alike, mut rest) = (SimilarStructSkipper::default(), &bytes[..]);
        while !rest.is_empty() {
            let walked = skip::structure(rest);
            assert_eq!(alike.skip(rest), walked, "seed {seed}");
            let Ok(behind) = walked else { break };
            rest = behind;
        }
    }
}

#[test]
fn structs_whose_differences_cancel_are_not_alike() {
    // Two strings of one byte; then an empty one, and one of 24 bytes, whose first byte stands
    // where the second length did. Both times, the lengths differ in their last bit.
    let first = [0x18, 1, b'a', 0x18, 1, b'b', 0];
    let second = [&[0x18, 0, 0x18, 24][..], &[0; 24], &[0]].concat();
    let mut alike = SimilarStructSkipper::default();
    assert_eq!(alike.skip(&first), Ok(&[][..]));
    assert_eq!(alike.skip(&second), Ok(&[][..]));
}

#[test]
fn strings_of_every_length_are_skipped() {
    for len in [0, 1, 127, 128, 129, 255, 256, 16_383, 16_384, 16_512, 2_097_152] {
        let bytes = written(&vec![7u8; len]);
        assert_eq!(skip::value(&bytes, wire::BINARY), Ok(&[][..]), "{len} bytes");
        assert_eq!(skip::value(&bytes[..bytes.len() - 1], wire::BINARY), Err(SkipError::Short));
    }
}

#[test]
fn numbers_of_every_length_are_read_and_skipped() {
    let mut rng = Rng::with_seed(9);
    for n in 0..200 {
        let numbers: Vec<i64> =
            std::iter::repeat_with(|| rng.i64(..) >> rng.u32(..64)).take(n).collect();
        let bytes = written(&numbers);
        assert_eq!(read::<Vec<i64>>(&bytes), numbers);
        assert_eq!(skip::value(&bytes, wire::LIST), Ok(&[][..]));
    }
}

#[test]
fn lists_on_the_wire_give_what_vectors_hold() {
    for (bytes, expected) in [
        (&[0x38, 1, b'a', 0, 2, b'b', b'c'][..], &["a", "", "bc"][..]),
        (&[0x08], &[]),
        (&[0xF8, 0x01, 1, b'z'], &["z"]),
    ] {
        let mut reader = ThriftReader::new(bytes);
        let list = List::<&str>::read(&mut reader).unwrap();
        assert_eq!(reader.rest(), &[0u8; 0]);
        assert_eq!((list.len(), list.is_empty()), (expected.len(), expected.is_empty()));
        assert!(list.iter().eq(expected.iter().copied()));
        let copy = list;
        assert_eq!(list, copy);
        assert_eq!(read::<Vec<String>>(bytes), expected);
    }
    assert!(List::<i64>::default().is_empty());
    let list = |bytes: &'static [u8]| List::<&str>::read(&mut ThriftReader::new(bytes)).unwrap();
    assert_ne!(list(&[0x18, 1, b'a']), list(&[0x18, 1, b'b']));
    assert_ne!(list(&[0x18, 1, b'a']), list(&[0x28, 1, b'a', 0]));
    let lazy =
        |bytes: &'static [u8]| LazyValue::<i32>::read(&mut ThriftReader::new(bytes)).unwrap();
    // One in one byte and in two, and another number.
    assert_eq!(lazy(&[2]), lazy(&[0x82, 0]));
    assert_ne!(lazy(&[2]), lazy(&[4]));
    for bytes in [&[0x28, 1, b'a'][..], &[0x18, 1, 0xFF], &[0x18, 9, b'a'], &[]] {
        let error = List::<&str>::read(&mut ThriftReader::new(bytes)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Malformed(Spec::Thrift));
    }
}
