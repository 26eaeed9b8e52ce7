//! A slow twin of the encoder: values as a tree, encoded with any choice that the specification
//! leaves, and formatted as JSON by hand.

use std::collections::BTreeMap;

use fastrand::Rng;

use super::super::{Variant, VariantBuilder};
use crate::error::Result;

#[derive(Debug, Clone)]
pub(super) enum Tree {
    Scalar(Scalar),
    List(Vec<Self>),
    Object(BTreeMap<String, Self>),
}

/// Scalars that own their bytes.
#[derive(Debug, Clone)]
pub(super) enum Scalar {
    Fixed(Variant<'static>),
    Binary(Vec<u8>),
    String(String),
}

impl Scalar {
    pub(super) fn as_variant(&self) -> Variant<'_> {
        match self {
            Self::Fixed(value) => *value,
            Self::Binary(bytes) => Variant::Binary(bytes),
            Self::String(text) => Variant::String(text),
        }
    }
}

/// A random name; most of them come again and again, and some share their first eight bytes.
pub(super) fn name(rng: &mut Rng) -> String {
    match rng.u8(..10) {
        0 => String::new(),
        1 => format!("property_{}", rng.u8(..4)),
        2 => ["é", "\u{ffff}", "\u{10000}", "a\0", "a", "ab"][rng.usize(..6)].to_owned(),
        _ => format!("{}", rng.u8(..12)),
    }
}

fn text(rng: &mut Rng) -> String {
    let len = [0, 1, 7, 8, 9, 62, 63, 64, 65, 300][rng.usize(..10)];
    (0..len).map(|_| if rng.u8(..20) == 0 { rng.char(..) } else { rng.alphanumeric() }).collect()
}

pub(super) fn scalar(rng: &mut Rng) -> Scalar {
    let i = rng.i64(..) >> rng.u32(..64);
    Scalar::Fixed(match rng.u8(..20) {
        0 => Variant::Null,
        1 => Variant::Boolean(rng.bool()),
        2 => Variant::Int8(rng.i8(..)),
        3 => Variant::Int16(rng.i16(..)),
        4 => Variant::Int32(rng.i32(..)),
        5 => Variant::Int64(i),
        6 => Variant::Float(f32::from_bits(rng.u32(..))),
        7 => Variant::Double(f64::from_bits(rng.u64(..))),
        8 => Variant::Double(f64::from(rng.i16(..)) / 100.0),
        9 => Variant::Decimal(i.into(), rng.u8(..=38)),
        10 => Variant::Decimal(rng.i128(..) % 10_i128.pow(rng.u32(1..=38)), rng.u8(..=38)),
        11 => Variant::Date(rng.i32(..) >> rng.u32(..32)),
        12 => Variant::TimestampMicros(i),
        13 => Variant::TimestampNtzMicros(i),
        14 => Variant::TimestampNanos(i),
        15 => Variant::TimestampNtzNanos(i),
        16 => Variant::TimeMicros(rng.i64(..86_400_000_000)),
        17 => Variant::Uuid(rng.u128(..).to_be_bytes()),
        18 => return Scalar::Binary((0..rng.usize(..80)).map(|_| rng.u8(..)).collect()),
        _ => return Scalar::String(text(rng)),
    })
}

pub(super) fn tree(rng: &mut Rng, depth: usize) -> Tree {
    let many = if rng.u8(..60) == 0 { 300 } else { 6 };
    match rng.u8(..if depth > 4 { 1 } else { 4 }) {
        2 => Tree::List((0..rng.usize(..many)).map(|_| tree(rng, depth + 1)).collect()),
        3 => {
            let name =
                |rng: &mut Rng| if many == 6 { name(rng) } else { format!("{}", rng.u16(..)) };
            Tree::Object(
                (0..rng.usize(..many)).map(|_| (name(rng), tree(rng, depth + 1))).collect(),
            )
        }
        _ => Tree::Scalar(scalar(rng)),
    }
}

/// Appends a tree, with the fields of objects in random order.
pub(super) fn append(builder: &mut VariantBuilder, tree: &Tree, rng: &mut Rng) -> Result<()> {
    match tree {
        Tree::Scalar(scalar) => builder.append(scalar.as_variant()),
        Tree::List(values) => {
            builder.begin_list()?;
            values.iter().try_for_each(|value| append(builder, value, rng))?;
            builder.end_list()
        }
        Tree::Object(fields) => {
            builder.begin_object()?;
            let mut fields: Vec<_> = fields.iter().collect();
            if rng.bool() {
                rng.shuffle(&mut fields);
            }
            for (name, value) in fields {
                builder.name(name)?;
                append(builder, value, rng)?;
            }
            builder.end_object()
        }
    }
}

/// Whether a value is what the tree is, looked at in every way.
pub(super) fn assert_same(tree: &Tree, value: Variant<'_>) {
    match (tree, value) {
        (Tree::Scalar(scalar), value) => assert_eq!(scalar.as_variant(), value),
        (Tree::List(values), Variant::List(list)) => {
            assert_eq!(list.len(), values.len());
            for (i, (value, found)) in values.iter().zip(list.iter()).enumerate() {
                assert_same(value, found.unwrap());
                assert_same(value, list.get(i).unwrap());
            }
        }
        (Tree::Object(fields), Variant::Object(object)) => {
            assert_eq!(object.len(), fields.len());
            for ((name, value), found) in fields.iter().zip(object.iter()) {
                let (found_name, found) = found.unwrap();
                assert_eq!(found_name, name);
                assert_same(value, found);
                assert_same(value, object.get(name).unwrap().unwrap());
            }
            assert!(object.get("no such name").unwrap().is_none());
        }
        (tree, value) => panic!("{tree:?} is not {value:?}"),
    }
}

fn names_of(tree: &Tree, out: &mut Vec<String>) {
    match tree {
        Tree::Scalar(_) => {}
        Tree::List(values) => values.iter().for_each(|value| names_of(value, out)),
        Tree::Object(fields) => fields.iter().for_each(|(name, value)| {
            out.push(name.clone());
            names_of(value, out);
        }),
    }
}

/// Bytes that a number takes at least.
fn width(n: usize) -> usize {
    (1..=4).find(|bytes| n < 1 << (8 * bytes)).expect("fits 32 bits")
}

fn put(out: &mut Vec<u8>, n: usize, width: usize) {
    out.extend_from_slice(&n.to_le_bytes()[..width]);
}

/// A tree as metadata and value, with random choices where the specification leaves them: sorted
/// dictionaries, doubled and unused names, widths, `is_large`, reserved bits, the order of values.
pub(super) fn encode(tree: &Tree, rng: &mut Rng) -> (Vec<u8>, Vec<u8>) {
    let mut names = Vec::new();
    names_of(tree, &mut names);
    names.push("unused".to_owned());
    let is_sorted = rng.bool();
    if is_sorted {
        names.sort();
        names.dedup();
    } else {
        rng.shuffle(&mut names);
    }
    let total: usize = names.iter().map(String::len).sum();
    let size = rng.usize(width(total.max(names.len()))..=4);
    let header = 1 | usize::from(is_sorted) << 4 | rng.usize(..2) << 5 | (size - 1) << 6;
    let mut metadata = Vec::new();
    put(&mut metadata, header, 1);
    put(&mut metadata, names.len(), size);
    let mut end = 0;
    put(&mut metadata, 0, size);
    for name in &names {
        end += name.len();
        put(&mut metadata, end, size);
    }
    names.iter().for_each(|name| metadata.extend_from_slice(name.as_bytes()));
    let mut value = Vec::new();
    encode_value(tree, &names, rng, &mut value);
    (metadata, value)
}

fn encode_value(tree: &Tree, names: &[String], rng: &mut Rng, out: &mut Vec<u8>) {
    let (ids, values): (Vec<usize>, Vec<&Tree>) = match tree {
        Tree::Scalar(scalar) => return encode_scalar(scalar, rng, out),
        Tree::List(values) => (Vec::new(), values.iter().collect()),
        Tree::Object(fields) => fields
            .iter()
            .map(|(name, value)| {
                // Any of the places of a name that is there twice.
                let places: Vec<usize> = (0..names.len()).filter(|&i| names[i] == *name).collect();
                (places[rng.usize(..places.len())], value)
            })
            .unzip(),
    };
    let is_object = matches!(tree, Tree::Object(_));
    let mut order: Vec<usize> = (0..values.len()).collect();
    if is_object {
        rng.shuffle(&mut order);
    }
    let mut bytes = Vec::new();
    let mut offsets = vec![0; values.len()];
    for i in order {
        offsets[i] = bytes.len();
        encode_value(values[i], names, rng, &mut bytes);
    }
    offsets.push(bytes.len());
    let is_large = values.len() > 255 || rng.bool();
    let offset_size = rng.usize(width(bytes.len())..=4);
    let id_size = rng.usize(width(ids.iter().copied().max().unwrap_or(0))..=4);
    let info = if is_object {
        (offset_size - 1) | (id_size - 1) << 2 | usize::from(is_large) << 4 | rng.usize(..2) << 5
    } else {
        (offset_size - 1) | usize::from(is_large) << 2 | rng.usize(..8) << 3
    };
    put(out, info << 2 | if is_object { 2 } else { 3 }, 1);
    put(out, values.len(), if is_large { 4 } else { 1 });
    ids.iter().for_each(|id| put(out, *id, id_size));
    offsets.iter().for_each(|offset| put(out, *offset, offset_size));
    out.extend_from_slice(&bytes);
}

fn encode_scalar(scalar: &Scalar, rng: &mut Rng, out: &mut Vec<u8>) {
    fn fixed(out: &mut Vec<u8>, id: u8, payload: &[u8]) {
        out.push(id << 2);
        out.extend_from_slice(payload);
    }
    match scalar {
        Scalar::String(text) if text.len() < 64 && rng.bool() => {
            out.push(u8::try_from(text.len()).unwrap() << 2 | 1);
            out.extend_from_slice(text.as_bytes());
        }
        Scalar::String(text) => {
            fixed(out, 16, &u32::try_from(text.len()).unwrap().to_le_bytes());
            out.extend_from_slice(text.as_bytes());
        }
        Scalar::Binary(bytes) => {
            fixed(out, 15, &u32::try_from(bytes.len()).unwrap().to_le_bytes());
            out.extend_from_slice(bytes);
        }
        Scalar::Fixed(value) => match *value {
            Variant::Null => fixed(out, 0, &[]),
            Variant::Boolean(v) => fixed(out, if v { 1 } else { 2 }, &[]),
            Variant::Int8(v) => fixed(out, 3, &v.to_le_bytes()),
            Variant::Int16(v) => fixed(out, 4, &v.to_le_bytes()),
            Variant::Int32(v) => fixed(out, 5, &v.to_le_bytes()),
            Variant::Int64(v) => fixed(out, 6, &v.to_le_bytes()),
            Variant::Double(v) => fixed(out, 7, &v.to_le_bytes()),
            Variant::Decimal(digits, scale) => {
                let fits = |bits: u32| digits.unsigned_abs() < 1 << (bits - 1);
                let least = if fits(32) {
                    8
                } else if fits(64) {
                    9
                } else {
                    10
                };
                let id = rng.u8(least..=10);
                fixed(out, id, &[scale]);
                out.extend_from_slice(&digits.to_le_bytes()[..4 << (id - 8)]);
            }
            Variant::Date(v) => fixed(out, 11, &v.to_le_bytes()),
            Variant::TimestampMicros(v) => fixed(out, 12, &v.to_le_bytes()),
            Variant::TimestampNtzMicros(v) => fixed(out, 13, &v.to_le_bytes()),
            Variant::Float(v) => fixed(out, 14, &v.to_le_bytes()),
            Variant::TimeMicros(v) => fixed(out, 17, &v.to_le_bytes()),
            Variant::TimestampNanos(v) => fixed(out, 18, &v.to_le_bytes()),
            Variant::TimestampNtzNanos(v) => fixed(out, 19, &v.to_le_bytes()),
            Variant::Uuid(bytes) => fixed(out, 20, &bytes),
            ref other => panic!("{other:?} is not of a fixed width"),
        },
    }
}
