//! Rows of every nested type, sorted with less memory than they take.

use std::sync::Arc;

use arrow_select::concat::concat_batches;
use arrow_select::take::take_record_batch;
use fastrand::Rng;
use marquetry::SortColumn;
use marquetry::arrow_array::*;
use marquetry::arrow_schema::{DataType, Field, Fields, Schema};
use marquetry::rewrite::RowSorter;

use crate::support::generate::{array, every_case};

/// A nested field whose leaves are views, with other leaves beside them.
fn field(rng: &mut Rng, depth: usize, nullable: bool) -> Field {
    let inner = |rng: &mut Rng| Arc::new(field(rng, depth + 1, true).with_name("element"));
    let choice = if depth == 3 { rng.u8(0..3) } else { rng.u8(0..9) };
    let data_type = match choice {
        0 => DataType::Utf8View,
        1 => DataType::BinaryView,
        2 => DataType::Int32,
        3 => DataType::List(inner(rng)),
        4 => DataType::LargeList(inner(rng)),
        5 => DataType::FixedSizeList(inner(rng), rng.i32(1..4)),
        6 | 7 => {
            let members = (0..rng.usize(1..4)).map(|i| {
                let nullable = rng.bool();
                field(rng, depth + 1, nullable).with_name(format!("member {i}"))
            });
            DataType::Struct(members.collect())
        }
        _ => {
            let key = Field::new("key", DataType::Utf8View, false);
            let value = field(rng, depth + 1, true).with_name("value");
            let entries = DataType::Struct(Fields::from(vec![key, value]));
            DataType::Map(Arc::new(Field::new("entries", entries, false)), false)
        }
    };
    Field::new("value", data_type, nullable)
}

#[test]
fn rows_of_nested_views_are_the_same_after_they_were_spilled() {
    let cases = every_case(60, |seed| {
        let mut rng = Rng::with_seed(seed);
        let values: Vec<Field> = (0..rng.usize(1..4))
            .map(|i| field(&mut rng, 0, true).with_name(format!("value {i}")))
            .collect();
        let key = Field::new("key", DataType::Int64, false);
        let fields: Vec<Field> = std::iter::once(key).chain(values.iter().cloned()).collect();
        let schema = Arc::new(Schema::new(fields));
        let mut keys: Vec<i64> = (0..1_200).collect();
        rng.shuffle(&mut keys);
        let batches: Vec<RecordBatch> = keys
            .chunks(100)
            .map(|keys| {
                let mut columns: Vec<ArrayRef> = vec![Arc::new(Int64Array::from(keys.to_vec()))];
                columns.extend(values.iter().map(|of| array(&mut rng, of, keys.len(), None)));
                RecordBatch::try_new(schema.clone(), columns).unwrap()
            })
            .collect();
        let folder = tempfile::tempdir().unwrap();
        let sorter = RowSorter::new(schema.clone(), [SortColumn::ascending("key")]).unwrap();
        let mut sorter = sorter.memory(20 << 10).temp_folder(folder.path());
        for batch in &batches {
            sorter.push(batch).unwrap();
        }
        let rows = sorter.finish().unwrap();
        assert!(rows.spilled_bytes() > 0);
        let sorted: Vec<RecordBatch> = rows.map(|batch| batch.unwrap()).collect();
        let sorted = concat_batches(&schema, &sorted).unwrap();
        let all = concat_batches(&schema, &batches).unwrap();
        let mut order: Vec<u32> = (0..1_200).collect();
        order.sort_by_key(|row| keys[*row as usize]);
        let expected = take_record_batch(&all, &UInt32Array::from(order)).unwrap();
        assert_eq!(sorted, expected, "seed {seed}, {schema}");
    });
    assert!(cases > 0);
}
