//! Tests encodings through whole files: with values, without, with nulls alone, across pages, and
//! skipped into. Unit tests of `encoding` test the contents of a page.

use marquetry::format::*;
use marquetry::{ErrorKind, Reader, RowSelection, col};
use serde_json::{Value, json};

use crate::support::encode::{delta, delta_bytes, delta_length, rle, split};
use crate::support::*;

/// An encoding over a type: the bytes of values, and the values as they print.
struct Case {
    name: &'static str,
    element: SchemaElement,
    encoding: Encoding,
    encode: Box<dyn Fn(usize, usize) -> Vec<u8>>,
    value: Box<dyn Fn(usize) -> Value>,
}

fn words<const N: usize>(at: usize, n: usize, bytes: impl Fn(usize) -> [u8; N]) -> Vec<u8> {
    (at..at + n).flat_map(bytes).collect()
}

fn int(i: usize) -> i32 {
    i32::try_from(i * i % 10_007).expect("small") - 5_000
}

fn text(i: usize) -> String {
    format!("{}{}", "prefix/".repeat(i % 4), i * 7 % 101)
}

fn cases() -> Vec<Case> {
    let case = |name,
                element,
                encoding,
                encode: fn(usize, usize) -> Vec<u8>,
                value: fn(usize) -> Value| Case {
        name,
        element,
        encoding,
        encode: Box::new(encode),
        value: Box::new(value),
    };
    let string = || {
        filled!(SchemaElement {
            logical_type: Some(LogicalType::String),
            ..optional("v", Type::ByteArray)
        })
    };
    let fixed = || {
        filled!(SchemaElement { type_length: Some(5), ..optional("v", Type::FixedLenByteArray) })
    };
    let five = |i: usize| [i as u8, 1, 2, 3, (i / 256) as u8];
    let _ = five;
    vec![
        case(
            "i32 plain",
            optional("v", Type::Int32),
            Encoding::Plain,
            |at, n| words(at, n, |i| int(i).to_le_bytes()),
            |i| json!(int(i)),
        ),
        case(
            "i64 plain",
            optional("v", Type::Int64),
            Encoding::Plain,
            |at, n| words(at, n, |i| i64::from(int(i)).to_le_bytes()),
            |i| json!(int(i)),
        ),
        case(
            "f32 plain",
            optional("v", Type::Float),
            Encoding::Plain,
            |at, n| words(at, n, |i| (int(i) as f32 / 4.0).to_le_bytes()),
            |i| json!(f64::from(int(i)) / 4.0),
        ),
        case(
            "f64 plain",
            optional("v", Type::Double),
            Encoding::Plain,
            |at, n| words(at, n, |i| (f64::from(int(i)) / 4.0).to_le_bytes()),
            |i| json!(f64::from(int(i)) / 4.0),
        ),
        case(
            "boolean plain",
            optional("v", Type::Boolean),
            Encoding::Plain,
            |at, n| {
                let mut bytes = vec![0u8; n.div_ceil(8)];
                (0..n).for_each(|i| bytes[i / 8] |= u8::from((at + i) % 3 == 0) << (i % 8));
                bytes
            },
            |i| json!(i % 3 == 0),
        ),
        case(
            "boolean rle",
            optional("v", Type::Boolean),
            Encoding::Rle,
            |at, n| levels_v1(&(at..at + n).map(|i| u32::from(i % 50 < 25)).collect::<Vec<_>>(), 1),
            |i| json!(i % 50 < 25),
        ),
        case(
            "text plain",
            string(),
            Encoding::Plain,
            |at, n| {
                texts(
                    &(at..at + n)
                        .map(text)
                        .collect::<Vec<_>>()
                        .iter()
                        .map(String::as_str)
                        .collect::<Vec<_>>(),
                )
            },
            |i| json!(text(i)),
        ),
        case(
            "fixed plain",
            fixed(),
            Encoding::Plain,
            |at, n| words(at, n, |i| [i as u8, 1, 2, 3, (i / 256) as u8]),
            |i| hex(&[i as u8, 1, 2, 3, (i / 256) as u8]),
        ),
        case(
            "i32 delta",
            optional("v", Type::Int32),
            Encoding::DeltaBinaryPacked,
            |at, n| delta(&(at..at + n).map(int).collect::<Vec<_>>()),
            |i| json!(int(i)),
        ),
        case(
            "i64 delta",
            optional("v", Type::Int64),
            Encoding::DeltaBinaryPacked,
            |at, n| delta(&(at..at + n).map(|i| i64::from(int(i)) << 40).collect::<Vec<_>>()),
            |i| json!(i64::from(int(i)) << 40),
        ),
        case(
            "text delta length",
            string(),
            Encoding::DeltaLengthByteArray,
            |at, n| delta_length(&(at..at + n).map(text).collect::<Vec<_>>()),
            |i| json!(text(i)),
        ),
        case(
            "text delta bytes",
            string(),
            Encoding::DeltaByteArray,
            |at, n| delta_bytes(&(at..at + n).map(text).collect::<Vec<_>>()),
            |i| json!(text(i)),
        ),
        case(
            "fixed delta bytes",
            fixed(),
            Encoding::DeltaByteArray,
            |at, n| {
                delta_bytes(
                    &(at..at + n).map(|i| [i as u8, 1, 2, 3, (i / 256) as u8]).collect::<Vec<_>>(),
                )
            },
            |i| hex(&[i as u8, 1, 2, 3, (i / 256) as u8]),
        ),
        case(
            "f32 split",
            optional("v", Type::Float),
            Encoding::ByteStreamSplit,
            |at, n| split(&words(at, n, |i| (int(i) as f32 / 4.0).to_le_bytes()), 4),
            |i| json!(f64::from(int(i)) / 4.0),
        ),
        case(
            "f64 split",
            optional("v", Type::Double),
            Encoding::ByteStreamSplit,
            |at, n| split(&words(at, n, |i| (f64::from(int(i)) / 4.0).to_le_bytes()), 8),
            |i| json!(f64::from(int(i)) / 4.0),
        ),
        case(
            "i32 split",
            optional("v", Type::Int32),
            Encoding::ByteStreamSplit,
            |at, n| split(&words(at, n, |i| int(i).to_le_bytes()), 4),
            |i| json!(int(i)),
        ),
        case(
            "i64 split",
            optional("v", Type::Int64),
            Encoding::ByteStreamSplit,
            |at, n| split(&words(at, n, |i| i64::from(int(i)).to_le_bytes()), 8),
            |i| json!(int(i)),
        ),
        case(
            "fixed split",
            fixed(),
            Encoding::ByteStreamSplit,
            |at, n| split(&words(at, n, |i| [i as u8, 1, 2, 3, (i / 256) as u8]), 5),
            |i| hex(&[i as u8, 1, 2, 3, (i / 256) as u8]),
        ),
    ]
}

/// Pages of these numbers of slots; every slot whose number `null` names is null. The versions of
/// the pages take turns.
fn paged(case: &Case, pages: &[usize], null: fn(usize) -> bool) -> (Vec<u8>, Vec<Value>) {
    let (mut values, mut slot) = (0, 0);
    let (mut out, mut expected) = (Vec::new(), Vec::new());
    for (i, &slots) in pages.iter().enumerate() {
        let levels: Vec<u32> = (slot..slot + slots).map(|s| u32::from(!null(s))).collect();
        let n = levels.iter().filter(|level| **level == 1).count();
        let body = (case.encode)(values, n);
        out.push(if i % 2 == 0 {
            v1(slots, case.encoding, &[levels_v1(&levels, 1), body].concat())
        } else {
            v2(slots, slots - n, slots, case.encoding, &[], &levels_v2(&levels, 1), &body)
        });
        for level in levels {
            expected.push(if level == 1 {
                values += 1;
                (case.value)(values - 1)
            } else {
                Value::Null
            });
        }
        slot += slots;
    }
    let r#type = case.element.r#type.expect("a leaf");
    let bytes = file(
        vec![case.element.clone()],
        i64::try_from(slot).expect("few"),
        vec![Chunk::new(r#type, slot, &out)],
    );
    (bytes, expected)
}

#[test]
fn every_encoding_with_and_without_nulls_across_pages_and_skips() {
    let nulls: [fn(usize) -> bool; 4] = [|_| false, |_| true, |i| i % 3 == 0, |i| i / 40 % 2 == 0];
    let seed = 45;
    let mut rng = fastrand::Rng::with_seed(seed);
    for case in cases() {
        for pages in [&[0][..], &[1], &[7, 8, 9], &[100, 1, 0, 63, 64, 65], &[300, 300]] {
            for null in nulls {
                let (bytes, expected) = paged(&case, pages, null);
                let reader = Reader::new(bytes::Bytes::from(bytes)).expect("a footer").threads(1);
                let found = column(&read_with(reader.clone()).expect(case.name));
                assert_eq!(found, expected, "{} pages {pages:?}", case.name);
                for _ in 0..3 {
                    let offset = rng.usize(0..=expected.len());
                    let reader = reader.clone().offset(offset as u64).batch_rows(rng.usize(1..90));
                    let found = column(&read_with(reader).expect(case.name));
                    assert_eq!(
                        found,
                        expected[offset..],
                        "{} pages {pages:?} offset {offset} seed {seed}",
                        case.name
                    );
                }
            }
        }
    }
}

#[test]
fn dictionaries_of_every_type() {
    let indices = [&[2][..], &levels_v2(&[2, 0, 1, 2], 3)].concat();
    let check = |element: SchemaElement, values: Vec<u8>, expected: [Value; 4]| {
        let r#type = element.r#type.expect("a leaf");
        for encoding in [Encoding::RleDictionary, Encoding::PlainDictionary] {
            let chunk = Chunk::new(r#type, 4, &[v1(4, encoding, &indices)])
                .with_dictionary(dictionary(3, &values));
            let bytes = file(vec![element.clone()], 4, vec![chunk]);
            assert_eq!(column(&read(bytes).expect("rows")), expected, "{type}");
        }
    };
    let four = |v: [Value; 3]| [v[2].clone(), v[0].clone(), v[1].clone(), v[2].clone()];
    check(required("v", Type::Int32), ints(&[1, 2, 3]), four([json!(1), json!(2), json!(3)]));
    check(
        required("v", Type::Int64),
        words(0, 3, |i| (i as i64).to_le_bytes()),
        four([json!(0), json!(1), json!(2)]),
    );
    check(
        required("v", Type::Float),
        words(0, 3, |i| (i as f32).to_le_bytes()),
        four([json!(0.0), json!(1.0), json!(2.0)]),
    );
    check(
        required("v", Type::Double),
        words(0, 3, |i| (i as f64).to_le_bytes()),
        four([json!(0.0), json!(1.0), json!(2.0)]),
    );
    check(
        required("v", Type::ByteArray),
        texts(&["a", "", "bcd"]),
        four([hex(b"a"), hex(b""), hex(b"bcd")]),
    );
    let fixed =
        filled!(SchemaElement { type_length: Some(2), ..required("v", Type::FixedLenByteArray) });
    check(fixed, b"aabbcc".to_vec(), four([hex(b"aa"), hex(b"bb"), hex(b"cc")]));
    let days = |i: usize| {
        [0u8, 0, 0, 0, 0, 0, 0, 0]
            .into_iter()
            .chain((2_440_588 + i as i32).to_le_bytes())
            .collect::<Vec<_>>()
    };
    let int96 = (0..3).flat_map(days).collect();
    let day = 86_400_000_000_000i64;
    check(required("v", Type::Int96), int96, four([json!(0), json!(day), json!(2 * day)]));
    check(
        required("v", Type::Boolean),
        vec![0b101],
        four([json!(true), json!(false), json!(true)]),
    );
}

/// Values of four bytes with lengths before them, as arrow-rs before 60.1 writes the entries and
/// the PLAIN values of `Dictionary(_, FixedSizeBinary)`.
fn with_lengths(values: &[&[u8; 4]]) -> Vec<u8> {
    values.iter().flat_map(|value| [&[4, 0, 0, 0], &value[..]].concat()).collect()
}

#[test]
fn lengths_before_values_of_fixed_length_are_removed() {
    let (a, b, length) = (b"ABCD", b"wxyz", &[4, 0, 0, 0]);
    let levels = [1, 0, 1, 1, 0];
    let nulls = levels_v1(&levels, 1);
    let values = |values: &[&[u8; 4]]| [&nulls[..], &with_lengths(values)].concat();
    let coded = [&nulls[..], &[1], &rle(&[0, 1, 0], 1)].concat();
    let plain = Encoding::Plain;
    let v2 = |values| v2(5, 2, 5, plain, &[], &levels_v2(&levels, 1), values);
    let entries = dictionary(2, &with_lengths(&[a, b]));
    for (name, entries, page, expected) in [
        ("dictionary", Some(entries), v1(5, Encoding::RleDictionary, &coded), [a, b, a]),
        ("version 1", None, v1(5, plain, &values(&[a, b, a])), [a, b, a]),
        ("version 2", None, v2(&with_lengths(&[a, b, a])), [a, b, a]),
        ("lengths of lengths", None, v1(5, plain, &values(&[length; 3])), [length; 3]),
        ("lengths of lengths", None, v2(&with_lengths(&[length; 3])), [length; 3]),
        // As the format wants them, whatever they are.
        ("values", None, v1(5, plain, &[&nulls[..], a, b, a].concat()), [a, b, a]),
        ("values", None, v2(&length.repeat(3)), [length; 3]),
        (
            "values",
            None,
            v1(5, plain, &[&nulls[..], length, length, a].concat()),
            [length, length, a],
        ),
    ] {
        let chunk = || {
            let chunk = Chunk::new(Type::FixedLenByteArray, 5, std::slice::from_ref(&page));
            match &entries {
                Some(entries) => chunk.with_dictionary(entries.clone()),
                None => chunk,
            }
        };
        let element = filled!(SchemaElement {
            type_length: Some(4),
            ..optional("v", Type::FixedLenByteArray)
        });
        let file = bytes::Bytes::from(file(vec![element], 5, vec![chunk()]));
        let [first, second, third] = expected.map(|value| hex(value));
        let expected = [first, Value::Null, second, third, Value::Null];
        let reader = Reader::new(file.clone()).expect("a footer");
        assert_eq!(column(&read_with(reader.clone()).expect(name)), expected, "{name}");
        for offset in 0..5 {
            let found = read_with(reader.clone().offset(offset as u64)).expect(name);
            assert_eq!(column(&found), expected[offset..], "{name}");
        }
        let found = read_with(reader.filter(col("v").is_not_null())).expect(name);
        let not_null: Vec<_> = expected.iter().filter(|value| !value.is_null()).collect();
        assert_eq!(column(&found).iter().collect::<Vec<_>>(), not_null, "{name}");
    }
}

/// A block of Snappy that has no match.
fn snappy_literals(bytes: &[u8]) -> Vec<u8> {
    let n = bytes.len();
    assert!((1 << 7..1 << 14).contains(&n), "a length of two bytes");
    let mut out = vec![n as u8 | 0x80, (n >> 7) as u8];
    for literal in bytes.chunks(60) {
        out.push((literal.len() as u8 - 1) << 2);
        out.extend(literal);
    }
    out
}

#[test]
fn lengths_are_removed_from_a_page_that_would_be_opened_in_part() {
    const ROWS: usize = 1_000;
    let value = |i: usize| (i as u32).to_be_bytes();
    let body: Vec<u8> = (0..ROWS).flat_map(|i| with_lengths(&[&value(i)])).collect();
    let stored = snappy_literals(&body);
    let element =
        filled!(SchemaElement { type_length: Some(4), ..required("v", Type::FixedLenByteArray) });
    for cut in [0, 100] {
        let stored = &stored[..stored.len() - cut];
        let page = page(v1_header(ROWS, Encoding::Plain, body.len(), stored.len()), stored);
        let place = filled!(PageLocation { offset: 4, compressed_page_size: page.len() as i32 });
        let chunk = Chunk::new(Type::FixedLenByteArray, ROWS, &[page]);
        let chunk = chunk.codec(CompressionCodec::Snappy);
        let file = file(vec![element.clone()], ROWS as i64, vec![chunk]);
        let reader = Reader::new(with_index(&file.into(), None, vec![place])).expect("a footer");
        let rows =
            RowSelection::from_ranges(ROWS as u64, std::iter::once(2..5)).expect("rows in order");
        let found = read_with(reader.select(rows).expect("of as many rows"));
        if cut == 0 {
            let expected: Vec<_> = (2..5).map(|i| hex(&value(i))).collect();
            assert_eq!(column(&found.expect("rows")), expected);
        } else {
            let error = found.unwrap_err();
            assert_eq!((error.at().row_group, error.at().page), (Some(0), Some(0)), "{error}");
        }
    }
}

#[test]
fn values_of_fixed_length_with_anything_else_between_or_behind_them_are_malformed() {
    let element =
        filled!(SchemaElement { type_length: Some(4), ..required("v", Type::FixedLenByteArray) });
    let wrong_length = [with_lengths(&[b"ABCD"]), [&[3, 0, 0, 0], &b"wxyz"[..]].concat()].concat();
    for values in [&b"ABCDwxyz!"[..], b"ABCDwxyz1234", b"ABCDwxy", &wrong_length] {
        let nullable = [&levels_v1(&[1, 1, 0], 1)[..], values].concat();
        let optional = filled!(SchemaElement {
            repetition_type: Some(FieldRepetitionType::Optional),
            ..element.clone()
        });
        let indices = v1(2, Encoding::RleDictionary, &[1, 3, 2]);
        for (element, chunk) in [
            (&element, Chunk::new(Type::FixedLenByteArray, 2, &[v1(2, Encoding::Plain, values)])),
            (
                &element,
                Chunk::new(Type::FixedLenByteArray, 2, &[indices])
                    .with_dictionary(dictionary(2, values)),
            ),
            (
                &optional,
                Chunk::new(Type::FixedLenByteArray, 3, &[v1(3, Encoding::Plain, &nullable)]),
            ),
        ] {
            let rows = chunk.meta.num_values;
            // A multiple of the length could be values of slots that are null.
            let is_hidden = rows == 3 && values.len() == 12;
            let file = file(vec![element.clone()], rows, vec![chunk]);
            assert!(is_hidden || is_malformed(file), "{values:?}");
        }
    }
}

#[test]
fn lengths_and_prefixes_that_lie_are_malformed() {
    let page = |encoding, body: &[u8]| {
        let chunk = Chunk::new(Type::ByteArray, 3, &[v1(3, encoding, body)]);
        file(vec![required("v", Type::ByteArray)], 3, vec![chunk])
    };
    let lengths = [delta(&[1, -1, 1]), b"abc".to_vec()].concat();
    assert!(is_malformed(page(Encoding::DeltaLengthByteArray, &lengths)));
    let prefixes = [delta(&[0, 2, 0]), delta_length(&["a", "b", "c"])].concat();
    assert!(is_malformed(page(Encoding::DeltaByteArray, &prefixes)));
}

#[test]
fn old_parquet_mr_carries_the_prefix_from_page_to_page() {
    let first = delta_bytes(&["abc", "abd"]);
    let second = [delta(&[2, 3]), delta_length(&["x", "y"])].concat();
    let pages = [v1(2, Encoding::DeltaByteArray, &first), v1(2, Encoding::DeltaByteArray, &second)];
    let by = |writer: &str| {
        let chunk = Chunk::new(Type::ByteArray, 4, &pages);
        file_with(vec![required("v", Type::ByteArray)], vec![(4, vec![chunk])], |meta| {
            meta.created_by = Some(writer.into())
        })
    };
    let expected = [hex(b"abc"), hex(b"abd"), hex(b"abx"), hex(b"abxy")];
    let old = by("parquet-mr version 1.6.0 (build x)");
    assert_eq!(column(&read(old.clone()).expect("rows")), expected);
    let reader = Reader::new(bytes::Bytes::from(old)).expect("a footer").threads(1).offset(3);
    assert_eq!(
        column(&read_with(reader).expect("rows")),
        expected[3..],
        "pages do not stand alone"
    );
    assert!(is_malformed(by("parquet-mr version 1.8.0 (build x)")));
}

#[test]
fn a_split_page_that_is_no_multiple_is_malformed() {
    let chunk = Chunk::new(Type::Double, 3, &[v1(3, Encoding::ByteStreamSplit, &[0; 23])]);
    assert!(is_malformed(file(vec![required("v", Type::Double)], 3, vec![chunk])));
}

#[test]
fn alp_as_the_format_shows_it() {
    let body = [
        0u8, 0, 3, 4, 0, 0, 0, 4, 0, 0, 0, 1, 0, 2, 0, 0x0F, 0, 0, 0, 0, 0, 0, 0, 4, 0xA0, 0, 2, 0,
        3, 0, 0, 0, 0, 0, 0, 0, 0xF8, 0x7F, 0, 0, 0, 0, 0, 0, 0, 0x80,
    ];
    let chunk = Chunk::new(Type::Double, 4, &[v1(4, Encoding::Alp, &body)]);
    let rows = read(file(vec![required("v", Type::Double)], 4, vec![chunk])).expect("rows");
    assert_eq!(column(&rows), [json!(1.5), json!(2.5), json!("NaN"), json!(-0.0)]);
}

/// The first example of the proposal, its values between nulls; whole, and some rows of it.
#[test]
fn pfor_as_its_proposal_shows_it() {
    // Definition levels: a run of eight ones, and one of two zeros.
    let body = [
        4u8, 0, 0, 0, 16, 1, 4, 0, //
        0, 3, 4, 8, 0, 0, 0, 4, 0, 0, 0, 99, 0, 0, 0, 3, 1, 0, 0x99, 0x18, 0xA0, 6, 0, 0x50, 0xC3,
        0, 0,
    ];
    let element = filled!(SchemaElement {
        repetition_type: Some(FieldRepetitionType::Optional),
        ..required("v", Type::Int32)
    });
    let chunk = Chunk::new(Type::Int32, 10, &[v1(10, Encoding::Pfor, &body)]);
    let bytes = file(vec![element], 10, vec![chunk]);
    if !cfg!(feature = "preview") {
        let error = read(bytes).expect_err("not in this build");
        assert_eq!(error.kind(), ErrorKind::FeatureDisabled("preview"), "{error}");
        return;
    }
    let values = [100, 102, 101, 103, 100, 99, 50_000, 104].map(|v| json!(v));
    let all = [&values[..], &[json!(null), json!(null)]].concat();
    assert_eq!(column(&read(bytes.clone()).expect("rows")), all);
    let reader = Reader::new(bytes::Bytes::from(bytes)).expect("a footer").threads(1);
    let some = RowSelection::from_ranges(10, [1..2, 5..7, 9..10]).expect("rows in order");
    let rows = read_with(reader.select(some).expect("as many rows")).expect("rows");
    assert_eq!(column(&rows), [json!(102), json!(99), json!(50_000), json!(null)]);
}

#[test]
fn encodings_that_a_type_may_not_have_are_malformed_and_unknown_ones_unsupported() {
    let with = |r#type, encoding| {
        let element = filled!(SchemaElement { type_length: Some(4), ..required("v", r#type) });
        file(vec![element], 3, vec![Chunk::new(r#type, 3, &[v1(3, encoding, &[0; 24])])])
    };
    for (r#type, encoding) in [
        (Type::Boolean, Encoding::DeltaBinaryPacked),
        (Type::Int32, Encoding::Rle),
        (Type::Int32, Encoding::Alp),
        (Type::Int64, Encoding::DeltaByteArray),
        (Type::Int96, Encoding::DeltaBinaryPacked),
        (Type::Float, Encoding::DeltaBinaryPacked),
        (Type::Double, Encoding::Pfor),
        (Type::Double, Encoding::BitPacked),
        (Type::ByteArray, Encoding::ByteStreamSplit),
        (Type::ByteArray, Encoding::DeltaBinaryPacked),
        (Type::FixedLenByteArray, Encoding::DeltaLengthByteArray),
    ] {
        assert!(is_malformed(with(r#type, encoding)), "{encoding} on {type}");
    }
    assert_eq!(kind(with(Type::Int32, Encoding::Unknown(12))), ErrorKind::Unsupported("encoding"));
}

#[test]
fn strings_that_are_not_utf8_are_malformed_or_mended() {
    let text = filled!(SchemaElement {
        logical_type: Some(LogicalType::String),
        ..required("v", Type::ByteArray)
    });
    let wrong: [&[u8]; 3] = [b"ok", b"a\xFFb", b"\xC3"];
    let plain = wrong
        .iter()
        .flat_map(|v| [&u32::try_from(v.len()).expect("short").to_le_bytes()[..], v].concat())
        .collect::<Vec<_>>();
    for (encoding, body) in [
        (Encoding::Plain, plain),
        (Encoding::DeltaLengthByteArray, delta_length(&wrong)),
        (Encoding::DeltaByteArray, delta_bytes(&wrong)),
    ] {
        let bytes = file(
            vec![text.clone()],
            3,
            vec![Chunk::new(Type::ByteArray, 3, &[v1(3, encoding, &body)])],
        );
        for views in [false, true] {
            let reader = Reader::new(bytes::Bytes::from(bytes.clone()))
                .expect("a footer")
                .threads(1)
                .views(views);
            let error = read_with(reader.clone()).expect_err("not text");
            assert!(matches!(error.kind(), ErrorKind::Malformed(_)), "{encoding}");
            let mended = column(&read_with(reader.lossy_utf8(true)).expect("rows"));
            assert_eq!(mended, [json!("ok"), json!("a\u{FFFD}b"), json!("\u{FFFD}")], "{encoding}");
        }
    }
    // A character that is cut between two values.
    let cut = delta_length(&[&b"\xC3"[..], b"\xA9", b"x"]);
    let bytes = file(
        vec![text],
        3,
        vec![Chunk::new(Type::ByteArray, 3, &[v1(3, Encoding::DeltaLengthByteArray, &cut)])],
    );
    assert!(is_malformed(bytes));
}
