//! Tests values in every encoding that is allowed, and in many that are not.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{ArrayRef, BinaryArray, Int64Array, StructArray};
use arrow_schema::{DataType, Field, FieldRef, Fields};
use fastrand::Rng;

use super::*;
use crate::error::{ErrorKind, LimitKind, Result};
use twin::{append, assert_same, encode, tree};

mod json;
mod mutants;
mod path;
mod twin;

fn built(append: impl FnOnce(&mut VariantBuilder) -> Result<()>) -> VariantBuf {
    let mut builder = VariantBuilder::new();
    append(&mut builder).unwrap();
    builder.finish().unwrap()
}

fn from_json(text: &str) -> VariantBuf {
    built(|builder| builder.append_json(text))
}

const NO_NAMES: &[u8] = &[1, 0, 0];

/// The value of bytes whose metadata have the names `a`, `b` and `c`.
fn abc(bytes: &[u8]) -> Result<Variant<'_>> {
    Variant::new(VariantMetadata::new(b"\x01\x03\x00\x01\x02\x03abc").unwrap(), bytes)
}

#[test]
fn the_object_of_the_specification_lists_fields_by_name_and_values_as_they_came() {
    let buf = from_json(r#"{"c":3,"b":2,"a":1}"#);
    assert_eq!(buf.metadata(), b"\x01\x03\x00\x01\x02\x03cba");
    assert_eq!(buf.value(), [2, 3, 2, 1, 0, 4, 2, 0, 6, 12, 3, 12, 2, 12, 1]);
    assert_eq!(buf.as_variant().to_json().unwrap(), r#"{"a":1,"b":2,"c":3}"#);
}

#[test]
fn every_scalar_has_the_bytes_of_the_specification() {
    let uuid = *b"\x00\x11\x22\x33\x44\x55\x66\x77\x88\x99\xaa\xbb\xcc\xdd\xee\xff";
    let long = "x".repeat(64);
    let with = |front: &[u8], back: &[u8]| [front, back].concat();
    let cases: Vec<(Variant<'_>, Vec<u8>)> = vec![
        (Variant::Null, vec![0]),
        (true.into(), vec![1 << 2]),
        (false.into(), vec![2 << 2]),
        ((-2_i8).into(), vec![3 << 2, 0xfe]),
        (0x102_i16.into(), vec![4 << 2, 2, 1]),
        (0x1_0203_i32.into(), vec![5 << 2, 3, 2, 1, 0]),
        ((-1_i64).into(), with(&[6 << 2], &[0xff; 8])),
        (1.0_f64.into(), vec![7 << 2, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f]),
        (Variant::Decimal(999_999_999, 38), vec![8 << 2, 38, 0xff, 0xc9, 0x9a, 0x3b]),
        (Variant::Decimal(1_000_000_000, 0), vec![9 << 2, 0, 0, 0xca, 0x9a, 0x3b, 0, 0, 0, 0]),
        (
            Variant::Decimal(-(10_i128.pow(18)), 2),
            with(&[10 << 2, 2], &(-(10_i128.pow(18))).to_le_bytes()),
        ),
        (Variant::Date(258), vec![11 << 2, 2, 1, 0, 0]),
        (Variant::TimestampMicros(1), with(&[12 << 2], &1_i64.to_le_bytes())),
        (Variant::TimestampNtzMicros(2), with(&[13 << 2], &2_i64.to_le_bytes())),
        (1.0_f32.into(), vec![14 << 2, 0, 0, 0x80, 0x3f]),
        (b"\x00\xff".as_slice().into(), vec![15 << 2, 2, 0, 0, 0, 0, 0xff]),
        (long.as_str().into(), with(&[16 << 2, 64, 0, 0, 0], long.as_bytes())),
        (long[1..].into(), with(&[63 << 2 | 1], &long.as_bytes()[1..])),
        ("".into(), vec![1]),
        (Variant::TimeMicros(3), with(&[17 << 2], &3_i64.to_le_bytes())),
        (Variant::TimestampNanos(4), with(&[18 << 2], &4_i64.to_le_bytes())),
        (Variant::TimestampNtzNanos(5), with(&[19 << 2], &5_i64.to_le_bytes())),
        (uuid.into(), with(&[20 << 2], &uuid)),
    ];
    for (value, bytes) in cases {
        let buf = built(|builder| builder.append(value));
        assert_eq!(buf.value(), bytes, "{value:?}");
        let read = Variant::new(VariantMetadata::new(NO_NAMES).unwrap(), &bytes).unwrap();
        assert_eq!(format!("{read:?}"), format!("{value:?}"));
        for cut in 0..bytes.len() {
            assert!(abc(&bytes[..cut]).is_err(), "{value:?} cut to {cut} bytes");
        }
    }
}

#[test]
fn integers_take_the_smallest_width() {
    for (value, len) in [
        (-128, 2),
        (128, 3),
        (-32768, 3),
        (32768, 5),
        (i64::from(i32::MIN), 5),
        (1 << 31, 9),
        (i64::MIN, 9),
    ] {
        let buf = built(|builder| builder.append(Variant::integer(value)));
        assert_eq!(buf.value().len(), len, "{value}");
        assert_eq!(buf.as_variant(), Variant::Int64(value));
    }
}

#[test]
fn any_encoding_of_a_tree_is_read_as_the_tree_and_built_again() {
    for seed in 0..3000 {
        let mut rng = Rng::with_seed(seed);
        let tree = tree(&mut rng, 0);
        println!("seed {seed}");
        let (metadata, value) = encode(&tree, &mut rng);
        let parsed = VariantMetadata::new(&metadata).unwrap();
        assert_eq!(parsed.as_bytes().len(), metadata.len());
        let variant = Variant::new(parsed, &value).unwrap();
        variant.validate().unwrap();
        assert_same(&tree, variant);

        let direct = built(|builder| append(builder, &tree, &mut rng));
        direct.as_variant().validate().unwrap();
        assert_same(&tree, direct.as_variant());
        assert_eq!(direct.as_variant(), variant);
        let copied = built(|builder| builder.append(variant));
        assert_eq!(copied.as_variant(), variant);
        let again = built(|builder| builder.append(copied.as_variant()));
        assert_eq!((again.metadata(), again.value()), (copied.metadata(), copied.value()));
    }
}

/// Rows one after another: guesses of names are right and wrong, and what is kept does not leak.
#[test]
fn a_builder_that_is_used_again_builds_what_a_new_one_does() {
    let mut rng = Rng::with_seed(7);
    let mut builder = VariantBuilder::new();
    let mut sorting = VariantBuilder::with_sorted_names();
    for _ in 0..2000 {
        let tree = tree(&mut rng, 0);
        let order = rng.clone();
        append(&mut builder, &tree, &mut order.clone()).unwrap();
        let used = builder.finish().unwrap();
        let new = built(|builder| append(builder, &tree, &mut order.clone()));
        assert_eq!((used.metadata(), used.value()), (new.metadata(), new.value()));
        append(&mut sorting, &tree, &mut order.clone()).unwrap();
        let sorted = sorting.finish().unwrap();
        let metadata = VariantMetadata::new(sorted.metadata()).unwrap();
        assert_eq!(metadata.is_sorted(), !metadata.is_empty());
        assert!(metadata.is_ascending());
        sorted.as_variant().validate().unwrap();
        assert_same(&tree, sorted.as_variant());
        let names = VariantMetadata::new(new.metadata()).unwrap();
        assert_eq!(names.len(), metadata.len(), "no name that is not used");
        assert_eq!(names.is_sorted(), names.is_ascending() && !names.is_empty());
        if rng.u8(..10) == 0 {
            // What is dropped half way leaves nothing behind.
            builder.begin_list().unwrap();
            append(&mut builder, &tree, &mut rng).unwrap();
            builder.clear();
        }
    }
}

#[test]
fn ever_new_names_are_forgotten_and_values_stay_right() {
    let mut builder = VariantBuilder::new();
    for i in 0..40_000 {
        builder.begin_object().unwrap();
        for name in [format!("name {i}"), "same".to_owned()] {
            builder.name(&name).unwrap();
            builder.append(i).unwrap();
        }
        builder.end_object().unwrap();
        let buf = builder.finish().unwrap();
        let Variant::Object(object) = buf.as_variant() else { panic!() };
        assert_eq!(object.get(&format!("name {i}")).unwrap(), Some(Variant::Int32(i)));
        assert_eq!(object.get("same").unwrap(), Some(Variant::Int32(i)));
    }
    assert!(builder.remembered() <= 16_400, "{}", builder.remembered());
}

#[test]
fn finish_into_appends_to_what_is_there() {
    let mut builder = VariantBuilder::new();
    let (mut metadata, mut values, mut ends) = (Vec::new(), Vec::new(), vec![(0, 0)]);
    for i in 0..3_i8 {
        builder.append_json(&format!(r#"{{"n":{i}}}"#)).unwrap();
        builder.finish_into(&mut metadata, &mut values).unwrap();
        ends.push((metadata.len(), values.len()));
    }
    for (i, ends) in ends.windows(2).enumerate() {
        let first = VariantMetadata::new(&metadata).unwrap();
        let metadata = &metadata[ends[0].0..ends[1].0];
        let metadata = VariantMetadata::new_after(metadata, &first).unwrap();
        let value = Variant::new(metadata, &values[ends[0].1..ends[1].1]).unwrap();
        assert_eq!(value.to_json().unwrap(), format!(r#"{{"n":{i}}}"#));
    }
}

#[test]
fn a_builder_refuses_what_is_no_value_and_appends_nothing() {
    let usage = |result: Result<()>| assert_eq!(result.unwrap_err().kind(), ErrorKind::Usage);
    let mut builder = VariantBuilder::new();
    usage(builder.finish().map(drop));
    usage(builder.end_list());
    usage(builder.end_object());
    usage(builder.name("a"));
    builder.begin_object().unwrap();
    usage(builder.append(1));
    usage(builder.begin_list());
    usage(builder.end_list());
    usage(builder.finish().map(drop));
    builder.name("a").unwrap();
    usage(builder.name("b"));
    usage(builder.end_object());
    usage(builder.append(Variant::Decimal(10_i128.pow(38), 0)));
    usage(builder.append(Variant::Decimal(1, 39)));
    // Half of an object is copied when its second field turns out to be wrong.
    let half = abc(&[2, 2, 0, 1, 0, 1, 2, 0, 21 << 2]).unwrap();
    assert_eq!(builder.append(half).unwrap_err().kind(), unsupported());
    builder.append_json("[1,]").unwrap_err();
    builder.append(1_i8).unwrap();
    builder.end_object().unwrap();
    usage(builder.append(2));
    let buf = builder.finish().unwrap();
    assert_eq!(buf.as_variant().to_json().unwrap(), r#"{"a":1}"#);

    builder.begin_object().unwrap();
    for _ in 0..2 {
        builder.name("same").unwrap();
        builder.append(()).unwrap();
    }
    let twice = builder.end_object().unwrap_err();
    assert!(twice.message().contains("\"same\""), "{twice}");
    builder.clear();
    for _ in 0..MAX_DEPTH {
        builder.begin_list().unwrap();
    }
    assert_eq!(builder.begin_list().unwrap_err().kind(), ErrorKind::Limit(LimitKind::Nesting));
}

fn unsupported() -> ErrorKind {
    ErrorKind::Unsupported("type of a VARIANT value")
}

fn malformed_kind() -> ErrorKind {
    ErrorKind::Malformed(crate::error::Spec::Variant)
}

#[test]
fn a_value_of_an_unknown_type_hides_none_of_its_siblings() {
    // {"a": <type 33>, "b": 7}
    let value = abc(&[2, 2, 0, 1, 0, 3, 5, 33 << 2, 9, 9, 12, 7]).unwrap();
    let Variant::Object(object) = value else { panic!() };
    assert_eq!(object.value(0).unwrap_err().kind(), unsupported());
    assert_eq!(object.get("b").unwrap(), Some(Variant::Int8(7)));
    let fields: Vec<_> = object.iter().collect();
    assert!(fields[0].is_err());
    assert_eq!(*fields[1].as_ref().unwrap(), ("b", Variant::Int8(7)));
    assert_eq!(value.validate().unwrap_err().kind(), unsupported());
    assert_eq!(value.to_json().unwrap_err().kind(), unsupported());
}

#[test]
fn fields_out_of_order_are_found_and_sorted_and_invalid() {
    // {"c": 1, "a": 2}, and with a dictionary that does not ascend.
    let bytes = [2, 2, 2, 0, 0, 2, 4, 12, 1, 12, 2];
    let other = VariantMetadata::new(b"\x01\x03\x00\x01\x02\x03abb").unwrap();
    assert!(!other.is_ascending());
    let unsorted = VariantMetadata::new(b"\x01\x04\x00\x01\x02\x03\x04abcb").unwrap();
    let [value, again] = [abc(&bytes).unwrap(), Variant::new(unsorted, &bytes).unwrap()];
    for value in [value, again] {
        let Variant::Object(object) = value else { panic!() };
        assert_eq!(object.get("c").unwrap(), Some(Variant::Int8(1)));
        assert_eq!(object.get("a").unwrap(), Some(Variant::Int8(2)));
        assert_eq!(object.get("b").unwrap(), None);
        assert_eq!(value.to_json().unwrap(), r#"{"a":2,"c":1}"#);
        assert_eq!(value, from_json(r#"{"a":2,"c":1}"#).as_variant());
        assert_eq!(value.validate().unwrap_err().kind(), malformed_kind());
    }
}

/// Java compares strings by UTF-16, where U+10000 and above come before U+E000.
#[test]
fn an_object_that_was_sorted_by_utf_16_is_read() {
    let buf = from_json("{\"\u{10000}\":1,\"\u{ffff}\":2}");
    let mut bytes = buf.value().to_vec();
    let Variant::Object(right) = buf.as_variant() else { panic!() };
    assert_eq!(right.name(0).unwrap(), "\u{ffff}");
    bytes.swap(2, 3);
    bytes.swap(4, 5);
    let metadata = VariantMetadata::new(buf.metadata()).unwrap();
    let Variant::Object(object) = Variant::new(metadata, &bytes).unwrap() else { panic!() };
    assert_eq!(object.name(0).unwrap(), "\u{10000}");
    assert_eq!(object.get("\u{ffff}").unwrap(), Some(Variant::Int8(2)));
    assert_eq!(object.get("\u{10000}").unwrap(), Some(Variant::Int8(1)));
    assert_eq!(object, right);
}

#[test]
fn two_fields_of_one_name_are_refused() {
    // One id twice; two ids of one name; the same with another field between them.
    let doubled = VariantMetadata::new(b"\x01\x03\x00\x01\x02\x03bab").unwrap();
    for ids in [[0, 0, 1], [0, 2, 1], [0, 1, 2]] {
        let bytes = [&[2, 3][..], &ids, &[0, 1, 2, 3, 0, 0, 0]].concat();
        let value = Variant::new(doubled, &bytes).unwrap();
        assert_eq!(value.validate().unwrap_err().kind(), malformed_kind());
        assert_eq!(value.to_json().unwrap_err().kind(), malformed_kind());
        let Variant::Object(object) = value else { panic!() };
        assert!(object.iter().next().unwrap().unwrap_err().message().contains("\"b\""));
    }
}

#[test]
fn bytes_that_lie_are_errors_where_they_are_looked_at() {
    // An id that is no name, an offset outside, a value that is longer than what is left.
    for bytes in [&[2, 1, 3, 0, 1, 0][..], &[2, 1, 0, 2, 1, 0], &[2, 1, 0, 0, 1, 12], &[3, 1, 0, 0]]
    {
        let value = abc(bytes).unwrap();
        assert_eq!(value.validate().unwrap_err().kind(), malformed_kind(), "{bytes:?}");
        assert_eq!(value.to_json().unwrap_err().kind(), malformed_kind(), "{bytes:?}");
        assert_eq!(value.get_path(&"$".parse().unwrap()).unwrap().map(|_| ()), Some(()));
        assert_ne!(value, value, "what cannot be read is equal to nothing");
    }
    // More elements than bytes, a total beyond the end, no UTF-8, no scale.
    for bytes in [
        &[2 | 16 << 2, 255, 255, 255, 255, 0][..],
        &[3 | 7 << 2, 255, 255, 255, 255, 0, 0, 0, 0],
        &[3, 1, 0, 2, 0],
        &[3, 0],
        &[2, 0],
        &[2 << 2 | 1, 0xc3, 0x28],
        &[16 << 2, 1, 0, 0, 0, 0xff],
        &[15 << 2, 255, 255, 255, 255],
        &[8 << 2, 39, 0, 0, 0, 0],
        &[[10 << 2, 0].as_slice(), &10_i128.pow(38).to_le_bytes()].concat(),
        &[],
    ] {
        assert_eq!(abc(bytes).unwrap_err().kind(), malformed_kind(), "{bytes:?}");
    }
    assert_eq!(abc(&[21 << 2]).unwrap_err().kind(), unsupported());
    let Variant::List(list) = abc(&[3, 1, 0, 1, 0]).unwrap() else { panic!() };
    assert!(list.get(1).is_err());
}

#[test]
fn metadata_that_lie_are_errors() {
    for bytes in [
        &[][..],
        &[1],
        &[1, 0],
        &[1, 1, 0],
        &[1, 1, 0, 1],
        &[1, 1, 1, 1, b'a'],
        &[1, 2, 0, 2, 1, b'a', b'b'],
        &[1, 1, 0, 1, 0xff],
        // The two bytes of a letter, as two names.
        b"\x01\x02\x00\x01\x02\xc3\xa9",
        &[0xc1, 255, 255, 255, 255, 0, 0, 0, 0],
    ] {
        assert_eq!(VariantMetadata::new(bytes).unwrap_err().kind(), malformed_kind(), "{bytes:?}");
    }
    let later = VariantMetadata::new(&[2, 0, 0]).unwrap_err();
    assert_eq!(later.kind(), ErrorKind::Unsupported("version of VARIANT metadata"));
    // A reserved bit, and bytes that follow.
    let fine = VariantMetadata::new(b"\x21\x01\x00\x01abc").unwrap();
    assert_eq!((fine.len(), fine.name(0), fine.as_bytes().len()), (1, Some("a"), 5));
    assert_eq!((fine.find("a"), fine.find("b"), fine.name(1)), (Some(0), None, None));
    // Said to be sorted, and not: names are found all the same.
    let wrong = VariantMetadata::new(b"\x11\x03\x00\x01\x02\x03cab").unwrap();
    assert!(wrong.is_sorted());
    assert_eq!(
        ["a", "b", "c", "d"].map(|name| wrong.find(name)),
        [Some(1), Some(2), Some(0), None]
    );
}

/// Each array has the one below it twice: 2^200 values in a few kilobytes.
#[test]
fn values_that_share_bytes_are_refused_at_once() {
    let mut bytes = vec![0];
    for _ in 0..150 {
        let len = bytes.len();
        let mut outer = vec![3 | 1 << 2, 2, 0, 0, 0, 0];
        outer.extend_from_slice(&u16::try_from(len).unwrap().to_le_bytes());
        outer.extend_from_slice(&bytes);
        bytes = outer;
    }
    let value = abc(&bytes).unwrap();
    assert_eq!(value.validate().unwrap_err().kind(), malformed_kind());
    assert_eq!(value.to_json().unwrap_err().kind(), malformed_kind());
    assert_ne!(value, value);
    assert!(VariantBuilder::new().append(value).is_err());
}

/// `depth` arrays, one in the other, around a null.
fn nested(depth: usize) -> Vec<u8> {
    let mut bytes = vec![0];
    let mut out = Vec::new();
    for _ in 0..depth {
        let len = u32::try_from(bytes.len() + out.len()).unwrap();
        let header = [&[3 | 3 << 2, 1, 0, 0, 0, 0][..], &len.to_le_bytes()].concat();
        out.extend(header.into_iter().rev());
    }
    out.reverse();
    out.append(&mut bytes);
    out
}

#[test]
fn deep_values_take_a_mebibyte_of_stack_or_are_refused() {
    let work = || {
        let metadata = VariantMetadata::new(NO_NAMES).unwrap();
        let limit = ErrorKind::Limit(LimitKind::Nesting);
        for depth in [MAX_DEPTH + 1, 100_000] {
            let bytes = nested(depth);
            let value = Variant::new(metadata, &bytes).unwrap();
            assert_eq!(value.validate().unwrap_err().kind(), limit);
            assert_eq!(value.to_json().unwrap_err().kind(), limit);
            assert_eq!(VariantBuilder::new().append(value).unwrap_err().kind(), limit);
            assert_ne!(value, value);
            let path = format!("${}", "[0]".repeat(depth)).parse().unwrap();
            assert_eq!(value.get_path(&path).unwrap_err().kind(), limit);
            let text = "[".repeat(depth);
            assert_eq!(VariantBuilder::new().append_json(&text).unwrap_err().kind(), limit);
        }
        let bytes = nested(MAX_DEPTH);
        let value = Variant::new(metadata, &bytes).unwrap();
        value.validate().unwrap();
        assert_eq!(value, value);
        assert_eq!(value.to_json().unwrap().len(), 2 * MAX_DEPTH + 4);
        let objects = r#"{"a":"#.repeat(MAX_DEPTH) + "1" + &"}".repeat(MAX_DEPTH);
        let buf = from_json(&objects);
        let copy = built(|builder| builder.append(buf.as_variant()));
        assert_eq!(copy.as_variant(), buf.as_variant());
        assert_eq!(copy.as_variant().to_json().unwrap(), objects);
        copy.as_variant().to_json_pretty().unwrap();
    };
    let stack = std::env::var("MARQUETRY_STACK").ok().and_then(|n| n.parse().ok());
    let thread = std::thread::Builder::new().stack_size(stack.unwrap_or(1 << 20));
    thread.spawn(work).unwrap().join().unwrap();
}

#[test]
fn equality_goes_by_class_and_not_by_width() {
    let equal = [
        (Variant::Int8(1), Variant::Int64(1)),
        (Variant::Int16(1), Variant::Decimal(1_00, 2)),
        (Variant::Decimal(10, 1), Variant::Decimal(1_000, 3)),
        (Variant::Decimal(0, 0), Variant::Decimal(0, 38)),
        (Variant::Float(f32::NAN), Variant::Float(-f32::NAN)),
        (Variant::Double(f64::NAN), Variant::Double(-f64::NAN)),
        (Variant::Double(0.0), Variant::Double(-0.0)),
        (Variant::TimestampMicros(-1), Variant::TimestampNanos(-1000)),
        (Variant::TimestampNtzNanos(2000), Variant::TimestampNtzMicros(2)),
    ];
    for (a, b) in equal {
        assert_eq!(a, b);
        assert_eq!(b, a);
    }
    let unequal = [
        (Variant::Int8(1), Variant::Double(1.0)),
        (Variant::Int8(1), Variant::Boolean(true)),
        (Variant::Float(1.0), Variant::Double(1.0)),
        (Variant::Decimal(1, 0), Variant::Decimal(1, 1)),
        (Variant::Decimal(i128::MAX, 0), Variant::Decimal(i128::MAX, 38)),
        (Variant::TimestampMicros(1), Variant::TimestampNtzMicros(1)),
        (Variant::TimestampMicros(1), Variant::TimestampNanos(1001)),
        (Variant::Date(0), Variant::TimeMicros(0)),
        (Variant::Null, Variant::Int8(0)),
        ("a".into(), b"a".as_slice().into()),
    ];
    for (a, b) in unequal {
        assert_ne!(a, b);
        assert_ne!(b, a);
    }
    assert_eq!(
        from_json(r#"{"a":1,"b":[2.50]}"#).as_variant(),
        from_json(r#"{"b":[2.5],"a":1.0}"#).as_variant()
    );
    assert_ne!(from_json(r#"{"a":1}"#).as_variant(), from_json(r#"{"b":1}"#).as_variant());
    assert_ne!(from_json("[1,2]").as_variant(), from_json("[2,1]").as_variant());
    assert_ne!(from_json("[1]").as_variant(), from_json("[1,1]").as_variant());
}

/// Metadata of two names that do not ascend, each of `len` bytes, alike but for the last one.
fn long_names(len: usize) -> Vec<u8> {
    let mut out = vec![1 | 3 << 6];
    for number in [2, 0, len, 2 * len] {
        out.extend_from_slice(&u32::try_from(number).unwrap().to_le_bytes());
    }
    for last in *b"ba" {
        out.extend(std::iter::repeat_n(b'x', len - 1));
        out.push(last);
    }
    out
}

/// An object with `fields` nulls as fields, whose ids alternate.
fn alternating(fields: u32) -> Vec<u8> {
    let mut out = vec![2 | (3 | 16) << 2];
    out.extend_from_slice(&fields.to_le_bytes());
    out.extend((0..fields).map(|i| u8::try_from(i % 2).unwrap()));
    (0..=fields).for_each(|offset| out.extend_from_slice(&offset.to_le_bytes()));
    out.extend((0..fields).map(|_| 0));
    out
}

#[test]
fn a_long_name_is_not_compared_for_each_field_that_refers_to_it() {
    const LEN: usize = 64 << 10;
    const FIELDS: u32 = 10_000;
    let metadata = long_names(LEN);
    let metadata = VariantMetadata::new(&metadata).unwrap();
    let bytes = alternating(FIELDS);
    let value = Variant::new(metadata, &bytes).unwrap();
    let Variant::Object(object) = value else { panic!() };
    let steps = crate::steps::taken_by(|| {
        for error in [
            value.validate().unwrap_err(),
            value.to_json().unwrap_err(),
            object.iter().next().unwrap().unwrap_err(),
            VariantBuilder::new().append(value).unwrap_err(),
        ] {
            assert_eq!(error.kind(), malformed_kind());
            assert!(error.message().len() < 300, "{} bytes", error.message().len());
        }
        let absent = format!("{}c", "x".repeat(LEN - 1));
        assert_eq!(object.get(&absent).unwrap(), None);
        let there = metadata.name(1).unwrap();
        assert_eq!(object.get(there).unwrap(), Some(Variant::Null));
    });
    let names = steps / LEN;
    assert!(names < 200, "{names} names looked at for {FIELDS} fields");
}

#[test]
fn errors_show_the_beginning_of_a_long_name() {
    let mut builder = VariantBuilder::new();
    let said = builder.name(&"n".repeat(1 << 20)).unwrap_err();
    assert!(said.message().len() < 300);

    let long = "n".repeat(1 << 20);
    let twice = |name: &str| (name.to_owned(), VariantShape::any());
    let said = VariantShape::object([twice(&long), twice(&long)]).unwrap_err();
    assert!(said.message().len() < 300);
    let said = VariantShape::parse(&format!("{{{long}}}")).unwrap_err();
    assert!(said.message().len() < 300);
    let said = format!("$[{long}").parse::<VariantPath>().unwrap_err();
    assert!(said.message().len() < 300);

    // A shredded field whose name the metadata do not have, one that is no group, and one twice.
    let metadata: ArrayRef = Arc::new(BinaryArray::from_vec(vec![b"\x01\0\0"]));
    let column = |fields: Vec<(&str, ArrayRef)>| {
        let typed = fields.into_iter().map(|(name, array)| {
            (Arc::new(Field::new(name, array.data_type().clone(), true)), array)
        });
        let typed: ArrayRef = Arc::new(StructArray::from(typed.collect::<Vec<_>>()));
        let field = |name: &str, array: &ArrayRef| {
            (Arc::new(Field::new(name, array.data_type().clone(), true)), array.clone())
        };
        let columns = vec![field("metadata", &metadata), field("typed_value", &typed)];
        VariantArray::new(&StructArray::from(columns))
    };
    let number: ArrayRef = Arc::new(Int64Array::from(vec![1]));
    let typed = Arc::new(Field::new("typed_value", DataType::Int64, true));
    let pair: ArrayRef = Arc::new(StructArray::from(vec![(typed, number.clone())]));
    let said = column(vec![(&long, pair.clone())]).unwrap().unshred().unwrap_err();
    assert!(said.message().len() < 300);
    let said = column(vec![(&long, number)]).unwrap_err();
    assert!(said.message().len() < 300);
    let said = column(vec![(&long, pair.clone()), (&long, pair)]).unwrap_err();
    assert!(said.message().len() < 300);
}

#[test]
fn a_decimal_of_39_digits_of_a_shredded_column_is_an_error() {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, BinaryArray, Decimal128Array, StructArray};

    let column = |digits: i128| {
        let typed = Decimal128Array::from(vec![digits]).with_precision_and_scale(38, 2).unwrap();
        let group = StructArray::from(vec![
            (
                Arc::new(arrow_schema::Field::new(
                    "metadata",
                    arrow_schema::DataType::Binary,
                    false,
                )),
                Arc::new(BinaryArray::from(vec![NO_NAMES])) as ArrayRef,
            ),
            (
                Arc::new(arrow_schema::Field::new("typed_value", typed_type(), true)),
                Arc::new(typed) as ArrayRef,
            ),
        ]);
        VariantArray::new(&group).unwrap()
    };
    let max = 10_i128.pow(38) - 1;
    for digits in [max, -max] {
        let read = column(digits).value(0).unwrap().unwrap();
        assert_eq!(read.as_variant(), Variant::Decimal(digits, 2));
    }
    for digits in [max + 1, -max - 1, i128::MAX, i128::MIN] {
        let column = column(digits);
        assert_eq!(column.value(0).unwrap_err().kind(), malformed_kind(), "{digits}");
        let unshredded = column.unshred().unwrap_err();
        assert_eq!(unshredded.kind(), malformed_kind(), "{digits}");
        assert!(unshredded.message().contains("at most 38"), "{unshredded}");
    }
}

fn typed_type() -> arrow_schema::DataType {
    arrow_schema::DataType::Decimal128(38, 2)
}

#[test]
fn what_is_taken_back_leaves_no_name_in_the_metadata() {
    for mut builder in [VariantBuilder::new(), VariantBuilder::with_sorted_names()] {
        // The second time, names are known; the third, they are guessed of the value before.
        for row in 0..3 {
            builder.begin_object().unwrap();
            builder.name("kept").unwrap();
            builder.append_json(r#"{"secret":}"#).unwrap_err();
            builder.append_json(r#"{"also":1,"kept":{"secret":[}}"#).unwrap_err();
            builder.append_json(r#"[{"also":1,"kept":2}]"#).unwrap();
            builder.end_object().unwrap();
            let buf = builder.finish().unwrap();
            let metadata = VariantMetadata::new(buf.metadata()).unwrap();
            let mut names: Vec<&str> = (0..metadata.len()).flat_map(|i| metadata.name(i)).collect();
            names.sort_unstable();
            assert_eq!(names, ["also", "kept"], "row {row}");
            let json = r#"{"kept":[{"also":1,"kept":2}]}"#;
            assert_eq!(buf.as_variant().to_json().unwrap(), json);
            buf.as_variant().validate().unwrap();
            if row == 1 {
                builder.append_json(r#"{"kept":{"also":1,"secret":2}}"#).unwrap();
                builder.finish().unwrap();
            }
        }
    }
}

/// The JSON of an object that is shredded into fields `a` and ``, after the column of the latter
/// was renamed to `name`.
fn shredded_with_empty_name_called(name: &str, json: &str) -> Result<String> {
    let mut builder = VariantArrayBuilder::new();
    builder.append_json(json)?;
    let int = || VariantShape::scalar(DataType::Int64);
    let shape = VariantShape::object([("", int()?), ("a", int()?)])?;
    let shredded = VariantArray::new(&builder.finish()?)?.shred(&shape)?;
    let (fields, mut columns, nulls) = shredded.into_parts();
    let at = fields.find("typed_value").expect("a column").0;
    let (members, of_members, typed_nulls) = columns[at].as_struct().clone().into_parts();
    let called = |field: &FieldRef| match field.name().as_str() {
        "" => Arc::new(field.as_ref().clone().with_name(name)),
        _ => field.clone(),
    };
    let members: Fields = members.iter().map(called).collect();
    columns[at] = Arc::new(StructArray::new(members, of_members, typed_nulls));
    let field = |(field, column): (&FieldRef, &ArrayRef)| {
        Arc::new(field.as_ref().clone().with_data_type(column.data_type().clone()))
    };
    let fields: Fields = fields.iter().zip(&columns).map(field).collect();
    let column = VariantArray::new(&StructArray::new(fields, columns, nulls))?;
    let value = column.value(0)?.expect("a value");
    value.as_variant().validate()?;
    value.as_variant().to_json()
}

#[test]
fn a_field_that_duckdb_made_up_for_the_empty_name_has_the_empty_name() {
    let read = shredded_with_empty_name_called;
    assert_eq!(read("element2", r#"{"":1,"a":2}"#).expect("a value"), r#"{"":1,"a":2}"#);
    assert_eq!(read("element2", r#"{"a":2}"#).expect("a value"), r#"{"a":2}"#);
    // The name is of a field of its own.
    let own = read("element2", r#"{"":1,"a":2,"b":{"element2":3}}"#).expect("a value");
    assert_eq!(own, r#"{"a":2,"b":{"element2":3},"element2":1}"#);
    for name in ["element", "elementx", "x"] {
        let error = read(name, r#"{"":1,"a":2}"#).expect_err("a name that is nowhere");
        assert!(error.to_string().contains("not in the metadata"), "{error}");
    }
}
