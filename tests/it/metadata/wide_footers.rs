//! Tests that the work for a footer of some hundred KB grows with its length, not with its square.

use crate::support::filled;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use marquetry::Reader;
use marquetry::arrow_schema::{DataType, Field, Fields, Schema};
use marquetry::format::*;
use marquetry::schema::MatchBy;

use crate::support::{Chunk, file_with, group, optional, v1};

/// A footer of many parts.
type Make = fn(usize) -> Bytes;

fn name(i: usize) -> String {
    format!("c{i}")
}

fn empty() -> Chunk {
    Chunk::new(Type::Int32, 0, &[v1(0, Encoding::Plain, &[])])
}

fn flat(n: usize) -> Bytes {
    let columns = (0..n).map(|i| optional(&name(i), Type::Int32)).collect();
    file_with(columns, vec![(0, vec![empty(); n])], |_| {}).into()
}

fn one_struct(n: usize) -> Bytes {
    let mut elements = vec![group("s", FieldRepetitionType::Optional, n as i32)];
    elements.extend((0..n).map(|i| optional(&name(i), Type::Int32)));
    file_with(elements, vec![(0, vec![empty(); n])], |_| {}).into()
}

fn equal_names(n: usize) -> Bytes {
    let mut elements = vec![group("s", FieldRepetitionType::Optional, n as i32)];
    elements.extend((0..n).map(|_| optional("c0", Type::Int32)));
    file_with(elements, vec![(0, vec![empty(); n])], |_| {}).into()
}

fn row_groups(n: usize) -> Bytes {
    let groups = vec![(0, vec![empty(); 4]); n / 4];
    file_with((0..4).map(|i| optional(&name(i), Type::Int32)).collect(), groups, |_| {}).into()
}

fn key_values(n: usize) -> Bytes {
    file_with(vec![optional("c0", Type::Int32)], vec![(0, vec![empty()])], |meta| {
        let pair = |i| filled!(KeyValue { key: name(i), value: Some(name(i)) });
        meta.key_value_metadata = Some((0..n).map(pair).collect());
    })
    .into()
}

fn coordinate_systems(n: usize) -> Bytes {
    let column = |i: usize| {
        filled!(SchemaElement {
            logical_type: Some(LogicalType::Geometry(filled!(GeometryType {
                crs: Some(format!("projjson:{}", name(i)))
            }))),
            ..optional(&name(i), Type::ByteArray)
        })
    };
    let chunk = Chunk::new(Type::ByteArray, 0, &[v1(0, Encoding::Plain, &[])]);
    file_with((0..n).map(column).collect(), vec![(0, vec![chunk; n])], |meta| {
        let value = || Some("{\"a\":1}".to_owned());
        let pair = |i| filled!(KeyValue { key: name(i), value: value() });
        meta.key_value_metadata = Some((0..n).map(pair).collect());
    })
    .into()
}

/// All that needs no rows.
fn look_at_all(file: Bytes) {
    let reader = Reader::new(file).expect("a footer").threads(1);
    let arrow = reader.schema().expect("a schema");
    let metadata = reader.metadata();
    let schema = metadata.schema();
    let leaves: Vec<_> =
        (0..schema.leaves_len()).map(|i| schema.leaf(i).expect("a leaf")).collect();
    assert_eq!(schema.to_string().is_empty(), leaves.is_empty());
    for row_group in 0..metadata.row_groups() {
        for chunk in metadata.column_chunks(row_group).expect("chunks") {
            chunk.expect("a chunk");
        }
        for leaf in 0..schema.leaves_len() {
            metadata.column_chunk(row_group, leaf).expect("a chunk");
        }
    }
    // By name, each for itself and all at once; equal names are refused, and soon.
    let paths: Vec<String> = leaves.iter().map(|leaf| leaf.path.dotted()).collect();
    let found = paths.iter().filter(|path| schema.leaf_named(path).is_ok()).count();
    if found == paths.len() {
        let all = reader.clone().project(&paths).expect("columns");
        assert_eq!(all.schema().expect("a schema").fields().len(), arrow.fields().len());
    }
    let some = metadata.column_statistics(0, &reader.read_options().arrow);
    assert_eq!(some.expect("statistics").len(), metadata.row_groups());
    assert_eq!(reader.count().expect("a count"), 0);
    // As a target, in another order.
    let back = |fields: &Fields| -> Fields { fields.iter().rev().cloned().collect() };
    let turned = arrow.fields().iter().map(|field| match field.data_type() {
        DataType::Struct(fields) => {
            let data_type = DataType::Struct(back(fields));
            Arc::new(Field::new(field.name(), data_type, field.is_nullable()))
        }
        _ => Arc::clone(field),
    });
    let target = Schema::new(back(&turned.collect()));
    if found == paths.len() {
        reader.target(Arc::new(target), MatchBy::Name).expect("reachable");
    }
}

#[test]
fn work_grows_with_the_length_of_the_footer_and_not_faster() {
    const TIMES: usize = 6;
    let kinds: [(&str, Make); 6] = [
        ("columns", flat),
        ("children of one struct", one_struct),
        ("children with one name", equal_names),
        ("row groups", row_groups),
        ("key-values", key_values),
        ("coordinate systems", coordinate_systems),
    ];
    for (kind, make) in kinds {
        let (few, many) = (make(1_500), make(1_500 * TIMES));
        let time = |file: &Bytes| {
            let once = |_| {
                let begun = processor_time();
                look_at_all(file.clone());
                processor_time() - begun
            };
            (0..3).map(once).min().unwrap_or_default()
        };
        // Caches and their other users may still tell the two apart: several tries, and half as
        // much time again is allowed.
        let is_linear = |_| {
            let (short, long) = (time(&few).max(Duration::from_micros(100)), time(&many));
            let ratio = long.as_secs_f64() / short.as_secs_f64();
            (ratio > 1.5 * TIMES as f64).then_some((short, long))
        };
        let ratios: Vec<_> = (0..4).map_while(is_linear).collect();
        assert!(ratios.len() < 4, "{kind}: {ratios:?}");
    }
}

/// The time that this thread has had a processor. On a busy machine, what takes longer than a time
/// slice takes twice the time by the clock, and what does not does not.
#[cfg(unix)]
fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(time).expect("no time before the thread began")
}

/// The time by the clock.
#[cfg(not(unix))]
fn processor_time() -> Duration {
    use std::sync::OnceLock;
    static BEGUN: OnceLock<std::time::Instant> = OnceLock::new();
    BEGUN.get_or_init(std::time::Instant::now).elapsed()
}
