//! Makes deeply nested files and arrays.

use std::sync::Arc;

use arrow_buffer::OffsetBuffer;
use bytes::Bytes;
use marquetry::arrow_array::{Array, ArrayRef, Int32Array, ListArray, StructArray};
use marquetry::arrow_schema::Field;
use marquetry::format::*;

use super::files::{Chunk, file, group, ints, levels_v1, optional, v1};

/// How many groups may be around a column. `MARQUETRY_DEPTH` is another limit, to measure; it must
/// be below that of the crate.
pub fn deepest(nest: Nest, limit: usize) -> usize {
    let limit = std::env::var("MARQUETRY_DEPTH").ok().and_then(|n| n.parse().ok()).unwrap_or(limit);
    match nest {
        // Every group but the root counts twice.
        Nest::Repeated => limit / 2,
        _ => limit,
    }
}

#[derive(Clone, Copy, Debug)]
pub enum Nest {
    Structs,
    Lists,
    Maps,
    Repeated,
}

pub const NESTS: [Nest; 4] = [Nest::Structs, Nest::Lists, Nest::Maps, Nest::Repeated];

/// A file of two rows, whose only leaf has `depth` groups above it, the root among them.
pub fn deep(nest: Nest, depth: usize) -> Bytes {
    use FieldRepetitionType::{Optional, Repeated};
    let annotated = |converted, mut element: SchemaElement| {
        element.converted_type = Some(converted);
        element
    };
    let (mut schema, mut def, mut rep) = (Vec::new(), 1, 0);
    while schema.len() + 1 < depth {
        let pair = schema.len() + 2 < depth;
        match nest {
            Nest::Lists if pair => {
                schema.push(annotated(ConvertedType::List, group("l", Optional, 1)));
                schema.push(group("list", Repeated, 1));
                (def, rep) = (def + 2, rep + 1);
            }
            Nest::Maps if pair => {
                schema.push(annotated(ConvertedType::Map, group("m", Optional, 1)));
                schema.push(group("key_value", Repeated, 1));
                (def, rep) = (def + 2, rep + 1);
            }
            Nest::Repeated => {
                schema.push(group("r", Repeated, 1));
                (def, rep) = (def + 1, rep + 1);
            }
            _ => {
                schema.push(group("g", Optional, 1));
                def += 1;
            }
        }
    }
    schema.push(optional("v", Type::Int32));
    let reps = if rep > 0 { levels_v1(&[0, 0], rep) } else { Vec::new() };
    let body = [reps, levels_v1(&[def, 0], def), ints(&[7])].concat();
    let chunk = Chunk::new(Type::Int32, 2, &[v1(2, Encoding::Plain, &body)]);
    file(schema, 2, vec![chunk]).into()
}

/// An array of two rows, one value and one null, with `levels` levels around it. Names are those of
/// the format: a hint that is nested deeper than 64 tables is ignored.
pub fn nested(nest: Nest, levels: usize) -> ArrayRef {
    let mut array: ArrayRef = Arc::new(Int32Array::from(vec![Some(7), None]));
    for _ in 0..levels {
        let field = Arc::new(Field::new("element", array.data_type().clone(), true));
        array = match nest {
            Nest::Structs => Arc::new(StructArray::from(vec![(field, array)])),
            _ => Arc::new(ListArray::new(field, OffsetBuffer::from_lengths([1, 1]), array, None)),
        };
    }
    array
}
