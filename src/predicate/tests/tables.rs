//! Makes random tables of all types, files of them, and predicates on them.

use std::sync::Arc;

use arrow_array::types::*;
use arrow_array::{
    Array, ArrayRef, DictionaryArray, ListArray, MapArray, RecordBatch, StructArray, new_null_array,
};
use arrow_buffer::{NullBuffer, OffsetBuffer, i256};
use arrow_schema::{DataType, Field, Fields, Schema as ArrowSchema, TimeUnit};
use bytes::Bytes;
use fastrand::Rng;

use super::super::arrays::array_of_one;
use super::super::expression::*;
use super::super::value::LiteralValue;
use super::twin::*;
use crate::io::WriteSink;
use crate::writer::Writer;
use crate::{BloomOptions, StatisticsLevel, WriteOptions};

/// Some values of a type, odd ones among them.
pub(super) fn pool(rng: &mut Rng, data_type: &DataType) -> Vec<LiteralValue> {
    let n = rng.usize(1..8);
    let ints = |rng: &mut Rng, least: i128, max: i128| -> Vec<LiteralValue> {
        let near = i128::from(rng.i64(-100..100));
        let mut one = || match rng.u8(0..6) {
            0 => least,
            1 => max,
            2 => 0,
            _ => near + i128::from(rng.i8(-3..4)),
        };
        (0..n).map(|_| LiteralValue::Int(one().clamp(least, max))).collect()
    };
    let floats = |rng: &mut Rng, narrow: fn(f64) -> f64| -> Vec<LiteralValue> {
        let odd =
            [0.0, -0.0, f64::NAN, -f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1.5, -2.5, 0.25];
        let calm = rng.bool();
        let mut one =
            || if calm { f64::from(rng.i8(-4..4)) / 2.0 } else { *rng.choice(&odd).unwrap() };
        (0..n).map(|_| LiteralValue::Float(narrow(one()))).collect()
    };
    let text = |rng: &mut Rng| -> Vec<LiteralValue> {
        let parts = ["", "a", "ab", "b", "é", "\u{10FFFF}", "zz", "prefix-", "\u{D7FF}", "\0"];
        let mut one =
            || (0..rng.usize(0..4)).map(|_| *rng.choice(&parts).unwrap()).collect::<String>();
        (0..n).map(|_| LiteralValue::Bytes(one().into_bytes())).collect()
    };
    let bytes = |rng: &mut Rng, len: Option<usize>| -> Vec<LiteralValue> {
        let mut one = || {
            let len = len.unwrap_or_else(|| rng.usize(0..6));
            (0..len).map(|_| *rng.choice(&[0, 1, 0x7F, 0x80, 0xFE, 0xFF]).unwrap()).collect()
        };
        (0..n).map(|_| LiteralValue::Bytes(one())).collect()
    };
    match data_type {
        DataType::Boolean => ints(rng, 0, 1),
        DataType::Int8 => ints(rng, i8::MIN.into(), i8::MAX.into()),
        DataType::Int16 => ints(rng, i16::MIN.into(), i16::MAX.into()),
        DataType::Int32 | DataType::Date32 => ints(rng, i32::MIN.into(), i32::MAX.into()),
        DataType::UInt8 => ints(rng, 0, u8::MAX.into()),
        DataType::UInt16 => ints(rng, 0, u16::MAX.into()),
        DataType::UInt32 => ints(rng, 0, u32::MAX.into()),
        DataType::UInt64 => ints(rng, 0, u64::MAX.into()),
        DataType::Time32(_) | DataType::Time64(_) => ints(rng, 0, 80_000),
        DataType::Timestamp(TimeUnit::Second, _) => ints(rng, -1 << 40, 1 << 40),
        DataType::Date64 => {
            let days = ints(rng, -10_000, 10_000);
            days.into_iter()
                .map(|day| match day {
                    LiteralValue::Int(v) => LiteralValue::Int(v * 86_400_000),
                    other => other,
                })
                .collect()
        }
        DataType::Float16 => floats(rng, |v| half::f16::from_f64(v).to_f64()),
        DataType::Float32 => floats(rng, |v| f64::from(v as f32)),
        DataType::Float64 => floats(rng, |v| v),
        DataType::Decimal32(p, _)
        | DataType::Decimal64(p, _)
        | DataType::Decimal128(p, _)
        | DataType::Decimal256(p, _) => {
            let max =
                i256::from_i128(10).checked_pow(u32::from(*p)).unwrap().wrapping_sub(i256::ONE);
            let small = i128::from(rng.i16(..));
            let mut one = || match rng.u8(0..5) {
                0 => max,
                1 => max.wrapping_neg(),
                _ => i256::from_i128(small + i128::from(rng.i8(-2..3))),
            };
            (0..n).map(|_| LiteralValue::Wide(one().min(max).max(max.wrapping_neg()))).collect()
        }
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => text(rng),
        DataType::Binary | DataType::BinaryView => bytes(rng, None),
        DataType::FixedSizeBinary(len) => bytes(rng, Some(usize::try_from(*len).unwrap())),
        DataType::Dictionary(_, value) => pool(rng, value),
        DataType::Null => Vec::new(),
        _ => ints(rng, i64::MIN.into(), i64::MAX.into()),
    }
}

/// An array of values of a pool; sometimes sorted, sometimes in long runs.
pub(super) fn array(
    rng: &mut Rng,
    data_type: &DataType,
    pool: &[LiteralValue],
    rows: usize,
    nulls: u8,
) -> ArrayRef {
    if *data_type == DataType::Null {
        return new_null_array(data_type, rows);
    }
    if let DataType::Dictionary(_, value) = data_type {
        let entries: Vec<ArrayRef> = pool.iter().map(|v| array_of_one(v, value).unwrap()).collect();
        let entries: Vec<&dyn Array> = entries.iter().map(|a| &**a).collect();
        let entries = arrow_select::concat::concat(&entries).unwrap();
        let keys = picks(rng, pool.len(), rows, nulls).into_iter().map(|k| k.map(|k| k as i32));
        return Arc::new(DictionaryArray::<Int32Type>::new(keys.collect(), entries));
    }
    let picks = picks(rng, pool.len(), rows, nulls);
    let entries: Vec<ArrayRef> = pool.iter().map(|v| array_of_one(v, data_type).unwrap()).collect();
    let entries: Vec<&dyn Array> = entries.iter().map(|a| &**a).collect();
    let entries = arrow_select::concat::concat(&entries).unwrap();
    let indexes: arrow_array::UInt32Array =
        picks.into_iter().map(|k| k.map(|k| k as u32)).collect();
    arrow_select::take::take(&entries, &indexes, None).unwrap()
}

pub(super) fn picks(rng: &mut Rng, n: usize, rows: usize, nulls: u8) -> Vec<Option<usize>> {
    let style = rng.u8(0..3);
    let mut picks: Vec<Option<usize>> = Vec::with_capacity(rows);
    for _ in 0..rows {
        let again = style == 1 && rng.u8(..) < 230;
        match picks.last() {
            Some(last) if again => picks.push(*last),
            _ if rng.u8(..) < nulls => picks.push(None),
            _ => picks.push(Some(rng.usize(0..n))),
        }
    }
    if style == 2 {
        picks.sort_unstable();
    }
    picks
}

pub(super) fn random_type(rng: &mut Rng) -> DataType {
    use DataType as D;
    let utc = || Some(Arc::<str>::from("UTC"));
    let p = |rng: &mut Rng, max: u8| rng.u8(1..=max);
    match rng.u8(0..35) {
        0 => D::Boolean,
        1 => D::Int8,
        2 => D::Int16,
        3 => D::Int32,
        4 => D::Int64,
        5 => D::UInt8,
        6 => D::UInt16,
        7 => D::UInt32,
        8 => D::UInt64,
        9 => D::Float16,
        10 | 11 => D::Float32,
        12 | 13 => D::Float64,
        14 => D::Decimal32(p(rng, 9), 1),
        15 => D::Decimal64(p(rng, 18), 1),
        16 => D::Decimal128(p(rng, 38), 0),
        17 => D::Decimal256(p(rng, 76), 1),
        18 => D::Date32,
        19 => D::Date64,
        20 => D::Time32(TimeUnit::Second),
        21 => D::Time32(TimeUnit::Millisecond),
        22 => D::Time64(TimeUnit::Nanosecond),
        23 => D::Timestamp(TimeUnit::Second, None),
        24 => D::Timestamp(TimeUnit::Microsecond, utc()),
        25 => D::Timestamp(TimeUnit::Nanosecond, None),
        26 => D::Duration(TimeUnit::Millisecond),
        27 => D::Utf8,
        28 => D::LargeUtf8,
        29 => D::Utf8View,
        30 => D::Binary,
        31 => D::BinaryView,
        32 => D::FixedSizeBinary(3),
        33 => D::Dictionary(Box::new(D::Int32), Box::new(D::Utf8)),
        _ => D::Null,
    }
}

/// A random table, and what can be asked of it.
pub(super) fn table(rng: &mut Rng) -> (RecordBatch, Vec<Target>) {
    let rows = rng.usize(0..120);
    let nulls = *rng.choice(&[0, 0, 40, 200]).unwrap();
    let mut fields = Vec::new();
    let mut columns: Vec<ArrayRef> = Vec::new();
    let mut targets = Vec::new();
    let value_type = |data_type: &DataType| match data_type {
        DataType::Dictionary(_, value) => (**value).clone(),
        other => other.clone(),
    };
    let mut add = |name: &str, column: ArrayRef| {
        let nullable = column.data_type() == &DataType::Null || column.is_nullable();
        fields.push(Field::new(name, column.data_type().clone(), nullable));
        columns.push(column);
    };
    for (path, path_steps) in [("a", &["a"][..]), ("b", &["b"]), ("c", &["c"])] {
        let data_type = random_type(rng);
        let pool = pool(rng, &data_type);
        add(path, array(rng, &data_type, &pool, rows, nulls));
        targets.push(Target { path, path_steps, data_type: value_type(&data_type), pool });
    }
    let valid = |rng: &mut Rng, rows: usize| {
        (rng.bool())
            .then(|| NullBuffer::from((0..rows).map(|_| rng.u8(..) < 200).collect::<Vec<_>>()))
    };
    let leaf = |rng: &mut Rng| loop {
        let data_type = random_type(rng);
        if !matches!(data_type, DataType::Null | DataType::Dictionary(..)) {
            return data_type;
        }
    };
    let any_nullable = |data_type: &DataType| Field::new("x", data_type.clone(), true);
    // A struct.
    let data_type = leaf(rng);
    let of_group = pool(rng, &data_type);
    let child = array(rng, &data_type, &of_group, rows, nulls);
    let nulls_of_group = valid(rng, rows);
    let group =
        StructArray::new(Fields::from(vec![any_nullable(&data_type)]), vec![child], nulls_of_group);
    add("g", Arc::new(group));
    targets.push(Target { path: "g.x", path_steps: &["g", "x"], data_type, pool: of_group });
    targets.push(Target {
        path: "g",
        path_steps: &["g"],
        data_type: DataType::Struct(Fields::empty()),
        pool: vec![],
    });
    // A list, of structs or not; and a map.
    let data_type = leaf(rng);
    let of_list = pool(rng, &data_type);
    let ends = |rng: &mut Rng| {
        let mut at = 0;
        let long = rng.i32(1..5);
        let offsets: Vec<i32> = std::iter::once(0)
            .chain((0..rows).map(|_| {
                at += rng.i32(0..long);
                at
            }))
            .collect();
        OffsetBuffer::new(offsets.into())
    };
    let offsets = ends(rng);
    let items = offsets.last().copied().unwrap_or_default() as usize;
    let child = array(rng, &data_type, &of_list, items, nulls);
    let item = StructArray::new(
        Fields::from(vec![any_nullable(&data_type)]),
        vec![child],
        valid(rng, items),
    );
    let item_field = Arc::new(Field::new("item", item.data_type().clone(), true));
    let list = ListArray::new(item_field, offsets, Arc::new(item), valid(rng, rows));
    add("l", Arc::new(list));
    targets.push(Target {
        path: "l.x",
        path_steps: &["l", "*", "x"],
        data_type: data_type.clone(),
        pool: of_list.clone(),
    });
    targets.push(Target {
        path: "l.list.element.x",
        path_steps: &["l", "*", "x"],
        data_type,
        pool: of_list,
    });
    let offsets = ends(rng);
    let items = offsets.last().copied().unwrap_or_default() as usize;
    let data_type = leaf(rng);
    let of_map = pool(rng, &data_type);
    let keys =
        array(rng, &DataType::Int16, &[LiteralValue::Int(1), LiteralValue::Int(2)], items, 0);
    let values = array(rng, &data_type, &of_map, items, nulls);
    let pair = Fields::from(vec![
        Field::new("key", DataType::Int16, false),
        Field::new("value", data_type.clone(), true),
    ]);
    let entries = StructArray::new(pair, vec![keys, values], None);
    let entries_field = Arc::new(Field::new("entries", entries.data_type().clone(), false));
    let map = MapArray::new(entries_field, offsets, entries, valid(rng, rows), false);
    add("m", Arc::new(map));
    targets.push(Target {
        path: "m.value",
        path_steps: &["m", "*", "value"],
        data_type,
        pool: of_map,
    });
    let list_type = DataType::List(Arc::new(Field::new("", DataType::Null, true)));
    targets.push(Target {
        path: "l",
        path_steps: &["l"],
        data_type: list_type.clone(),
        pool: vec![],
    });
    targets.push(Target { path: "m", path_steps: &["m"], data_type: list_type, pool: vec![] });
    let schema = Arc::new(ArrowSchema::new(fields));
    (RecordBatch::try_new(schema, columns).unwrap(), targets)
}

pub(super) fn random_test(rng: &mut Rng, target: &Target) -> TwinTest {
    let value = |rng: &mut Rng| {
        if rng.u8(..) < 60 {
            // One that is perhaps not there.
            return pool(rng, &target.data_type).swap_remove(0);
        }
        rng.choice(&target.pool).unwrap().clone()
    };
    let is_text =
        matches!(target.data_type, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
    let is_bytes = matches!(
        target.data_type,
        DataType::Binary | DataType::BinaryView | DataType::FixedSizeBinary(_)
    );
    if target.data_type.is_nested() {
        let is_list = matches!(target.data_type, DataType::List(_));
        return if is_list && rng.bool() { TwinTest::IsEmpty } else { TwinTest::IsNull };
    }
    if target.pool.is_empty() {
        return TwinTest::IsNull;
    }
    match rng.u8(0..12) {
        0 => TwinTest::IsNull,
        7 => TwinTest::Between(value(rng), value(rng)),
        1 | 2 => {
            let n = rng.usize(0..8);
            let one = |rng: &mut Rng| (rng.u8(..) > 20).then(|| value(rng));
            TwinTest::In((0..n).map(|_| one(rng)).collect())
        }
        3 | 4 if is_text || is_bytes => {
            let LiteralValue::Bytes(bytes) = value(rng) else { unreachable!() };
            let len = rng.usize(0..=bytes.len());
            let cut =
                (0..=len).rev().find(|&at| !is_text || std::str::from_utf8(&bytes[..at]).is_ok());
            TwinTest::Starts(bytes[..cut.unwrap()].to_vec())
        }
        5 | 6 if is_text => {
            let LiteralValue::Bytes(bytes) = value(rng) else { unreachable!() };
            let text = String::from_utf8(bytes).unwrap();
            let mut pattern: String =
                text.chars().map(|c| if rng.u8(..) < 60 { '_' } else { c }).collect();
            if rng.bool() {
                pattern.push('%');
            }
            if rng.u8(..) < 60 {
                pattern.insert(0, '%');
            }
            TwinTest::Like(pattern)
        }
        _ => {
            let ops = [Op::Eq, Op::NotEq, Op::Lt, Op::LtEq, Op::Gt, Op::GtEq];
            TwinTest::Compare(*rng.choice(&ops).unwrap(), value(rng))
        }
    }
}

pub(super) fn random_twin(rng: &mut Rng, targets: &[Target], depth: u8) -> Twin {
    if depth > 0 && rng.u8(..) < 140 {
        let parts = (0..rng.usize(1..4)).map(|_| random_twin(rng, targets, depth - 1)).collect();
        return match rng.u8(0..3) {
            0 => Twin::Not(Box::new(random_twin(rng, targets, depth - 1))),
            1 => Twin::And(parts),
            _ => Twin::Or(parts),
        };
    }
    if rng.u8(..) < 6 {
        return Twin::Constant(*rng.choice(&[None, Some(true), Some(false)]).unwrap());
    }
    let target = rng.choice(targets).unwrap().clone();
    let test = random_test(rng, &target);
    let elements = target
        .path_steps
        .contains(&"*")
        .then(|| *rng.choice(&[Quantifier::Any, Quantifier::All]).unwrap());
    Twin::Test(target, elements, test)
}

/// A file of the table.
pub(super) fn file(rng: &mut Rng, batch: &RecordBatch) -> Bytes {
    let level = *rng
        .choice(&[
            StatisticsLevel::Page,
            StatisticsLevel::Page,
            StatisticsLevel::Chunk,
            StatisticsLevel::None,
        ])
        .unwrap();
    let mut options = WriteOptions::default()
        .with_row_group_rows(rng.u64(1..80))
        .with_page_rows(rng.usize(1..20))
        .with_dictionary(rng.bool())
        .with_total_order(rng.bool())
        .with_statistics(level)
        .with_bound_bytes(rng.usize(1..10));
    for leaf in ["a", "b", "c", "g.x", "l.list.element.x", "m.key_value.value"] {
        let page_rows = rng.usize(1..20);
        let bloom = rng.bool();
        options = options.with_column(leaf, |column| {
            let column = column.with_page_rows(page_rows);
            if bloom { column.with_bloom(BloomOptions { fpp: 0.001 }) } else { column }
        });
    }
    let mut writer = Writer::new(WriteSink(Vec::new()), batch.schema(), options).unwrap();
    writer.write(batch).unwrap();
    writer.into_inner().unwrap().1.into()
}
