//! Tests of the elements of a schema that are decoded on demand.

use super::spelled::Spelled;
use super::*;

/// Reads a list of elements in both forms: the same, or the same error.
fn assert_read_alike(bytes: &[u8], what: &str) {
    let (mut one, mut other) = (ThriftReader::new(bytes), ThriftReader::new(bytes));
    match (Vec::<SchemaElement>::read(&mut one), ElementHeads::read(&mut other)) {
        (Ok(owned), Ok(heads)) => {
            assert_eq!(one.position(), other.position(), "{what}");
            let elements = SchemaElements::new(Bytes::copy_from_slice(bytes), heads);
            assert_eq!(elements.len(), owned.len(), "{what}");
            for (i, element) in (0u32..).zip(&owned) {
                assert_is_same(&elements, i, element);
            }
        }
        (Err(owned), Err(heads)) => assert_eq!(owned.to_string(), heads.to_string(), "{what}"),
        (owned, heads) => panic!("{what}: {owned:?} is not {heads:?}"),
    }
}

#[test]
fn elements_in_place_are_those_that_are_owned() {
    let spelled = Spelled::new();
    let names = ["", "a", "b", "feature_00001", "feature_00002", "\u{e9}", "\u{20ac}"];
    let long = ["n".repeat(127), "n".repeat(128), "n".repeat(300)];
    for seed in 0..300 {
        let mut rng = Rng::with_seed(seed);
        let kinds: [SchemaElement; 3] = std::array::from_fn(|_| {
            let (mut tree, _) = spelled.random("SchemaElement", &mut rng);
            if rng.bool() {
                oracle::add_unknown_fields(&mut tree, &mut rng);
            }
            SchemaElement::read(&mut ThriftReader::new(&oracle::write(&tree))).unwrap()
        });
        // Many differ from the one before in their name alone.
        let (mut elements, mut kind) = (Vec::new(), 0);
        for _ in 0..rng.usize(..40) {
            kind = if rng.u8(..4) == 0 { rng.usize(..3) } else { kind };
            let name = match rng.u8(..8) {
                0 => rng.choice(&long).unwrap().clone(),
                _ => (*rng.choice(&names).unwrap()).to_owned(),
            };
            elements.push(SchemaElement { name, ..kinds[kind].clone() });
        }
        let mut whole = Vec::new();
        elements.write(&mut whole).unwrap();
        assert_read_alike(&whole, &format!("seed {seed}"));
        for round in 0..30 {
            let mut bytes = whole.clone();
            for _ in 0..rng.usize(1..4) {
                mutate(&mut bytes, &mut rng);
            }
            assert_read_alike(&bytes, &format!("seed {seed}, round {round}"));
        }
    }
}

#[test]
fn names_of_odd_lengths_are_read_alike() {
    // Elements of a name with this many bytes, its length as given. A byte 0 could be a stop.
    let list = |elements: &[(&[u8], usize)], byte: u8| {
        let mut bytes = vec![(elements.len() as u8) << 4 | wire::STRUCT];
        for (len, n) in elements {
            bytes.push(0x48);
            bytes.extend_from_slice(len);
            bytes.extend(vec![byte; *n]);
            bytes.push(wire::STOP);
        }
        bytes
    };
    let lens: [(&[u8], usize); 8] = [
        (&[0], 0),
        (&[1], 1),
        (&[0x7F], 127),
        // In more bytes than they need.
        (&[0x80, 0], 0),
        (&[0x81, 0], 1),
        (&[0x80, 0x80, 0], 0),
        (&[0x80, 1], 128),
        (&[0x81, 1], 129),
    ];
    for a in lens {
        for b in lens {
            for byte in [b'n', 0] {
                let bytes = list(&[a, b], byte);
                assert!(ElementHeads::read(&mut ThriftReader::new(&bytes)).is_ok(), "{a:?} {b:?}");
                assert_read_alike(&bytes, &format!("{a:?} {b:?}"));
            }
        }
    }
}

#[test]
fn elements_of_odd_shapes_are_read_alike() {
    // What stands before and after the length and the bytes of a name.
    let shapes: [(&[u8], &[u8]); 9] = [
        // The name twice, the first always the same; the last always the same.
        (&[0x48, 1, b'x', 0x08, 8], &[0]),
        (&[0x48], &[0x08, 8, 1, b'x', 0]),
        // The long form of the header.
        (&[0x08, 8], &[0]),
        // After the fields 5 and 9; and before field 3.
        (&[0x55, 2, 0x45, 4, 0x08, 8], &[0]),
        (&[0x48], &[0x05, 6, 2, 0]),
        // After a struct that is not known, which has a field 4 too, and before another.
        (&[0x0C, 60, 0x48, 1, b'y', 0, 0x08, 8], &[0]),
        (&[0x48], &[0x0C, 60, 0x48, 1, b'y', 0, 0]),
        // Beside a name of another type.
        (&[0x45, 2, 0x08, 8], &[0]),
        (&[0x48], &[0x05, 8, 2, 0]),
    ];
    let names: [&[u8]; 5] = [b"a", b"bb", b"", b"\xFF", b"\x00\x00"];
    for (before, after) in shapes {
        for first in names {
            for second in names {
                let mut bytes = vec![3 << 4 | wire::STRUCT];
                for name in [first, second, b"z"] {
                    bytes.extend_from_slice(before);
                    bytes.push(u8::try_from(name.len()).unwrap());
                    bytes.extend_from_slice(name);
                    bytes.extend_from_slice(after);
                }
                let place = format!("{before:x?} {first:x?} {second:x?} {after:x?}");
                assert_read_alike(&bytes, &place);
                for cut in 1..bytes.len() {
                    assert_read_alike(&bytes[..cut], &format!("{place}, {cut} bytes"));
                }
            }
        }
    }
}

#[test]
fn a_long_element_is_decoded_once() {
    // A BOOLEAN named "a" with a member of its logical type, and a field, that are not known and
    // hold a million fields each: the annotation, then the field 17.
    let fields = |header: &[u8]| [header, &vec![0x11; 1 << 20], &[0]].concat();
    let mut bytes = vec![1 << 4 | wire::STRUCT, 0x15, 0, 0x38, 1, b'a', 0x6C];
    bytes.extend(fields(&[0x0C, 120]));
    bytes.push(0);
    bytes.extend(fields(&[0x7C]));
    bytes.push(0);
    assert_read_alike(&bytes, "a long element");
    let heads = ElementHeads::read(&mut ThriftReader::new(&bytes)).unwrap();
    let elements = SchemaElements::new(bytes.into(), heads);
    assert_eq!(elements.get_owned(0).logical_type.unwrap().to_string(), "unknown (60)");
    let steps = crate::steps::taken_by(|| {
        for _ in 0..100 {
            assert_eq!(elements.get(0).logical_type.unwrap().to_string(), "unknown (60)");
        }
    });
    assert!(steps < 100_000, "{steps} fields and elements looked at");
}

#[test]
fn a_name_that_is_not_utf_8_is_malformed_wherever_it_is() {
    for names in [[b'a', b'a', 0xFF], [b'a', 0xFF, b'a'], [0xFF, b'a', b'a']] {
        let mut bytes = vec![3 << 4 | wire::STRUCT];
        for name in names {
            bytes.extend([0x48, 1, name, wire::STOP]);
        }
        assert_read_alike(&bytes, "names");
        let error = ElementHeads::read(&mut ThriftReader::new(&bytes)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Malformed(Spec::Metadata("SchemaElement")));
        assert!(error.message().contains("SchemaElement.name"), "{error}");
    }
}

/// Compares all that is known of an element with the owned one.
pub(super) fn assert_is_same(elements: &SchemaElements, i: u32, whole: &SchemaElement) {
    assert_eq!(&elements.get_owned(i), whole);
    let borrowed = elements.get(i);
    assert_eq!(borrowed.r#type, whole.r#type);
    assert_eq!(borrowed.type_length, whole.type_length);
    assert_eq!(borrowed.repetition_type, whole.repetition_type);
    assert_eq!(borrowed.name, whole.name);
    assert_eq!(borrowed.num_children, whole.num_children);
    assert_eq!(borrowed.converted_type, whole.converted_type);
    assert_eq!(borrowed.scale, whole.scale);
    assert_eq!(borrowed.precision, whole.precision);
    assert_eq!(borrowed.field_id, whole.field_id);
    match (&borrowed.logical_type, &whole.logical_type) {
        // Of a long element the numbers alone are known.
        (Some(found @ LogicalType::Unrecognized(_)), Some(of @ LogicalType::Unrecognized(_))) => {
            assert_eq!(found.to_string(), of.to_string());
        }
        (found, of) => assert_eq!(found, of),
    }
    let head = elements.head(i);
    assert_eq!(elements.name(i), whole.name);
    assert_eq!(head.name_len(), whole.name.len());
    assert_eq!(head.num_children(), whole.num_children);
    assert_eq!(head.has_field_id(), whole.field_id.is_some());
    assert_eq!(head.is_annotated(), whole.logical_type.is_some() || whole.converted_type.is_some());
    // Numbers that are not known need not be the same.
    let is_known = |text: String| !text.starts_with("unknown");
    let text = |text: Option<String>| text.filter(|text| is_known(text.clone()));
    assert_eq!(head.r#type().is_some(), whole.r#type.is_some());
    assert_eq!(
        text(head.r#type().map(|t| t.to_string())),
        text(whole.r#type.map(|t| t.to_string()))
    );
    assert_eq!(head.repetition_type().is_some(), whole.repetition_type.is_some());
    assert_eq!(
        text(head.repetition_type().map(|t| t.to_string())),
        text(whole.repetition_type.map(|t| t.to_string()))
    );
    assert_eq!(head.converted_type().is_some(), whole.converted_type.is_some());
    assert_eq!(
        text(head.converted_type().map(|t| t.to_string())),
        text(whole.converted_type.map(|t| t.to_string()))
    );
}

#[test]
fn elements_are_equal_wherever_they_are() {
    let element = |name: &str| SchemaElement { num_children: Some(1), ..SchemaElement::new(name) };
    let all = || vec![element("a"), element("b")];
    let elements = SchemaElements::encode(all()).unwrap();
    assert!(elements.is_named(0, b"a") && !elements.is_named(0, b"b"));
    assert!(!elements.is_named(1, b"bb"));
    // The same below other bytes.
    let mut bytes = vec![0; 9];
    all().write(&mut bytes).unwrap();
    let mut reader = ThriftReader::new(&bytes);
    reader.skip_bytes(9).unwrap();
    let heads = ElementHeads::read(&mut reader).unwrap();
    assert_eq!((heads.len(), heads.is_empty()), (2, false));
    let others = SchemaElements::new(bytes.into(), heads);
    assert_eq!(others, elements);
    for other in [vec![element("a")], vec![element("a"), element("c")]] {
        assert_ne!(SchemaElements::encode(other).unwrap(), elements);
    }
}
