//! The independent codec of the tests: value trees, read and written by the `thrift` crate.

use fastrand::Rng;
use thrift::protocol::{
    TCompactInputProtocol, TCompactOutputProtocol, TFieldIdentifier, TInputProtocol,
    TListIdentifier, TMapIdentifier, TOutputProtocol, TSetIdentifier, TStructIdentifier, TType,
};

/// Any value of the protocol.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ProtocolValue {
    Bool(bool),
    I8(i8),
    I16(i16),
    I32(i32),
    I64(i64),
    /// The bits, so that NaN equals itself.
    Double(u64),
    Binary(Vec<u8>),
    List(TType, Vec<Self>),
    Set(TType, Vec<Self>),
    /// Not empty: an empty map has no types.
    Map(Vec<(Self, Self)>),
    Struct(Vec<(i16, Self)>),
    Uuid([u8; 16]),
}

impl ProtocolValue {
    fn ty(&self) -> TType {
        match self {
            Self::Bool(_) => TType::Bool,
            Self::I8(_) => TType::I08,
            Self::I16(_) => TType::I16,
            Self::I32(_) => TType::I32,
            Self::I64(_) => TType::I64,
            Self::Double(_) => TType::Double,
            Self::Binary(_) => TType::String,
            Self::List(..) => TType::List,
            Self::Set(..) => TType::Set,
            Self::Map(_) => TType::Map,
            Self::Struct(_) => TType::Struct,
            Self::Uuid(_) => TType::Uuid,
        }
    }
}

/// Writes a struct.
pub(crate) fn write(tree: &ProtocolValue) -> Vec<u8> {
    let mut out = Vec::new();
    emit(tree, &mut TCompactOutputProtocol::new(&mut out)).unwrap();
    out
}

/// Reads the struct at the start of `bytes`.
pub(crate) fn read(bytes: &[u8]) -> ProtocolValue {
    parse(TType::Struct, &mut TCompactInputProtocol::new(bytes)).unwrap()
}

fn emit(tree: &ProtocolValue, out: &mut impl TOutputProtocol) -> thrift::Result<()> {
    match tree {
        ProtocolValue::Bool(value) => out.write_bool(*value),
        ProtocolValue::I8(value) => out.write_i8(*value),
        ProtocolValue::I16(value) => out.write_i16(*value),
        ProtocolValue::I32(value) => out.write_i32(*value),
        ProtocolValue::I64(value) => out.write_i64(*value),
        ProtocolValue::Double(bits) => out.write_double(f64::from_bits(*bits)),
        ProtocolValue::Binary(bytes) => out.write_bytes(bytes),
        ProtocolValue::Uuid(bytes) => {
            // The type of the `uuid` crate cannot be named here, but a reader makes one.
            out.write_uuid(&TCompactInputProtocol::new(&bytes[..]).read_uuid()?)
        }
        ProtocolValue::List(ty, elements) => {
            out.write_list_begin(&TListIdentifier::new(*ty, elements.len() as i32))?;
            elements.iter().try_for_each(|element| emit(element, out))?;
            out.write_list_end()
        }
        ProtocolValue::Set(ty, elements) => {
            out.write_set_begin(&TSetIdentifier::new(*ty, elements.len() as i32))?;
            elements.iter().try_for_each(|element| emit(element, out))?;
            out.write_set_end()
        }
        ProtocolValue::Map(pairs) => {
            let (key, value) = &pairs[0];
            out.write_map_begin(&TMapIdentifier::new(key.ty(), value.ty(), pairs.len() as i32))?;
            for (key, value) in pairs {
                emit(key, out)?;
                emit(value, out)?;
            }
            out.write_map_end()
        }
        ProtocolValue::Struct(fields) => {
            out.write_struct_begin(&TStructIdentifier::new("any"))?;
            for (id, value) in fields {
                out.write_field_begin(&TFieldIdentifier::new("any", value.ty(), *id))?;
                emit(value, out)?;
                out.write_field_end()?;
            }
            out.write_field_stop()?;
            out.write_struct_end()
        }
    }
}

fn parse(ty: TType, from: &mut impl TInputProtocol) -> thrift::Result<ProtocolValue> {
    Ok(match ty {
        TType::Bool => ProtocolValue::Bool(from.read_bool()?),
        TType::I08 => ProtocolValue::I8(from.read_i8()?),
        TType::I16 => ProtocolValue::I16(from.read_i16()?),
        TType::I32 => ProtocolValue::I32(from.read_i32()?),
        TType::I64 => ProtocolValue::I64(from.read_i64()?),
        TType::Double => ProtocolValue::Double(from.read_double()?.to_bits()),
        TType::String => ProtocolValue::Binary(from.read_bytes()?),
        TType::Uuid => ProtocolValue::Uuid(from.read_uuid()?.into_bytes()),
        TType::List => {
            let list = from.read_list_begin()?;
            let elements =
                (0..list.size).map(|_| parse(list.element_type, from)).collect::<Result<_, _>>()?;
            from.read_list_end()?;
            ProtocolValue::List(list.element_type, elements)
        }
        TType::Set => {
            let set = from.read_set_begin()?;
            let elements =
                (0..set.size).map(|_| parse(set.element_type, from)).collect::<Result<_, _>>()?;
            from.read_set_end()?;
            ProtocolValue::Set(set.element_type, elements)
        }
        TType::Map => {
            let map = from.read_map_begin()?;
            let (key, value) = (map.key_type.unwrap(), map.value_type.unwrap());
            let pairs = (0..map.size)
                .map(|_| Ok((parse(key, from)?, parse(value, from)?)))
                .collect::<thrift::Result<_>>()?;
            from.read_map_end()?;
            ProtocolValue::Map(pairs)
        }
        TType::Struct => {
            from.read_struct_begin()?;
            let mut fields = Vec::new();
            loop {
                let field = from.read_field_begin()?;
                if field.field_type == TType::Stop {
                    break;
                }
                fields.push((field.id.unwrap(), parse(field.field_type, from)?));
                from.read_field_end()?;
            }
            from.read_struct_end()?;
            ProtocolValue::Struct(fields)
        }
        other => panic!("{other}"),
    })
}

/// Adds unknown fields to some structs, at any place among the others.
pub(crate) fn add_unknown_fields(tree: &mut ProtocolValue, rng: &mut Rng) {
    match tree {
        ProtocolValue::List(_, elements) => {
            elements.iter_mut().for_each(|element| add_unknown_fields(element, rng))
        }
        ProtocolValue::Struct(fields) => {
            fields.iter_mut().for_each(|(_, value)| add_unknown_fields(value, rng));
            // Not both: the oracle subtracts ids without care for overflow.
            let extremes = if rng.bool() { [32767, 32766] } else { [-16384, -1] };
            for id in extremes.into_iter().chain([31, 32, 33, 40, 300]) {
                if rng.u8(..8) == 0 {
                    fields.insert(rng.usize(..=fields.len()), (id, random(rng, 3)));
                }
            }
        }
        _ => {}
    }
}

/// Any value, nested up to `depth` deep.
pub(crate) fn random(rng: &mut Rng, depth: u32) -> ProtocolValue {
    match rng.u8(..if depth == 0 { 8 } else { 12 }) {
        0 => ProtocolValue::Bool(rng.bool()),
        1 => ProtocolValue::I8(rng.i8(..)),
        2 => ProtocolValue::I16(rng.i16(..) >> rng.u32(..16)),
        3 => ProtocolValue::I32(rng.i32(..) >> rng.u32(..32)),
        4 => ProtocolValue::I64(rng.i64(..) >> rng.u32(..64)),
        5 => ProtocolValue::Double(rng.u64(..)),
        6 => ProtocolValue::Binary(vec![7; rng.usize(..200)]),
        7 => ProtocolValue::Uuid(rng.u128(..).to_le_bytes()),
        8 => {
            let elements = alike(rng, depth - 1);
            ProtocolValue::List(elements[0].ty(), elements)
        }
        9 => {
            let elements = alike(rng, depth - 1);
            ProtocolValue::Set(elements[0].ty(), elements)
        }
        10 => {
            let (keys, values) = (alike(rng, depth - 1), alike(rng, depth - 1));
            ProtocolValue::Map(keys.into_iter().zip(values).collect())
        }
        _ => {
            let field = |id: i16| (id * rng.i16(1..20), random(rng, depth - 1));
            ProtocolValue::Struct((0..4).map(field).collect())
        }
    }
}

/// Some values of one type.
fn alike(rng: &mut Rng, depth: u32) -> Vec<ProtocolValue> {
    let mut values = vec![random(rng, depth)];
    let n = if rng.u8(..6) == 0 { 16 } else { rng.usize(1..4) };
    while values.len() < n {
        let value = random(rng, depth);
        if value.ty() == values[0].ty() {
            values.push(value);
        }
    }
    values
}

/// Sorts the fields of every struct by id.
pub(crate) fn sort_fields(tree: &mut ProtocolValue) {
    visit_structs(tree, &mut |fields| fields.sort_by_key(|(id, _)| *id));
}

/// Shuffles the fields of every struct.
pub(crate) fn shuffle_fields(tree: &mut ProtocolValue, rng: &mut Rng) {
    visit_structs(tree, &mut |fields| rng.shuffle(fields));
}

fn visit_structs(tree: &mut ProtocolValue, visit: &mut impl FnMut(&mut [(i16, ProtocolValue)])) {
    match tree {
        ProtocolValue::List(_, elements) | ProtocolValue::Set(_, elements) => {
            elements.iter_mut().for_each(|element| visit_structs(element, visit));
        }
        ProtocolValue::Map(pairs) => {
            for (key, value) in pairs {
                visit_structs(key, visit);
                visit_structs(value, visit);
            }
        }
        ProtocolValue::Struct(fields) => {
            visit(fields);
            fields.iter_mut().for_each(|(_, value)| visit_structs(value, visit));
        }
        _ => {}
    }
}
