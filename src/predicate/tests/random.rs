//! Random tables are written to files, and random predicates on them are held against a naive twin: row by row when they are evaluated, and range by
//! range when row groups and pages are pruned, by the metadata as written and by any other that would be lawful.

use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{
    Array, ArrayRef, ArrowPrimitiveType, BooleanArray, DictionaryArray, ListArray, MapArray,
    RecordBatch, StructArray, make_array, new_null_array,
};
use arrow_buffer::{NullBuffer, OffsetBuffer, i256};
use arrow_schema::{DataType, Field, Fields, Schema as ArrowSchema, TimeUnit};
use bytes::Bytes;
use fastrand::Rng;

use super::super::facts::{Facts, PageFacts};
use super::super::literal::{Kind as LiteralKind, array_of};
use super::super::value::Value;
use super::super::*;
use crate::io::WriteSink;
use crate::read::{PageIndexUse, VirtualColumn};
use crate::reader::Reader;
use crate::schema::ArrowOptions;
use crate::selection::RowSelection;
use crate::stats::bloom::{Blocks, Bloom, Layout};
use crate::stats::bounds::{Bound as StoredBound, Cut, lower, upper};
use crate::write::{BloomOptions, StatisticsLevel, WriteOptions};
use crate::writer::Writer;

/// So many cases, or as many as MARQUETRY_CASES says.
pub(super) fn cases(default: u64) -> u64 {
    std::env::var("MARQUETRY_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(default)
}

/// A value of a row, as the twin sees it.
#[derive(Debug, Clone)]
enum Cell {
    Null,
    Int(i128),
    Float(f64),
    Wide(i256),
    Bytes(Vec<u8>),
    List(Vec<Self>),
    Group(Vec<(String, Self)>),
}

fn cell(array: &ArrayRef, i: usize) -> Cell {
    fn number<T: ArrowPrimitiveType>(array: &ArrayRef, i: usize) -> i128
    where
        T::Native: Into<i128>,
    {
        array.as_primitive::<T>().value(i).into()
    }
    let raw64 = || i128::from(array.to_data().buffer::<i64>(0)[array.to_data().offset() + i]);
    let raw32 = || i128::from(array.to_data().buffer::<i32>(0)[array.to_data().offset() + i]);
    if array.data_type() == &DataType::Null || array.is_null(i) {
        return Cell::Null;
    }
    let list = |values: ArrayRef| Cell::List((0..values.len()).map(|i| cell(&values, i)).collect());
    match array.data_type() {
        DataType::Boolean => Cell::Int(array.as_boolean().value(i).into()),
        DataType::Int8 => Cell::Int(number::<Int8Type>(array, i)),
        DataType::Int16 => Cell::Int(number::<Int16Type>(array, i)),
        DataType::Int32 => Cell::Int(number::<Int32Type>(array, i)),
        DataType::Int64 => Cell::Int(number::<Int64Type>(array, i)),
        DataType::UInt8 => Cell::Int(number::<UInt8Type>(array, i)),
        DataType::UInt16 => Cell::Int(number::<UInt16Type>(array, i)),
        DataType::UInt32 => Cell::Int(number::<UInt32Type>(array, i)),
        DataType::UInt64 => Cell::Int(number::<UInt64Type>(array, i)),
        DataType::Float16 => Cell::Float(array.as_primitive::<Float16Type>().value(i).to_f64()),
        DataType::Float32 => Cell::Float(array.as_primitive::<Float32Type>().value(i).into()),
        DataType::Float64 => Cell::Float(array.as_primitive::<Float64Type>().value(i)),
        DataType::Decimal32(..) => {
            Cell::Wide(array.as_primitive::<Decimal32Type>().value(i).into())
        }
        DataType::Decimal64(..) => {
            Cell::Wide(array.as_primitive::<Decimal64Type>().value(i).into())
        }
        DataType::Decimal128(..) => {
            Cell::Wide(i256::from_i128(array.as_primitive::<Decimal128Type>().value(i)))
        }
        DataType::Decimal256(..) => Cell::Wide(array.as_primitive::<Decimal256Type>().value(i)),
        DataType::Date32 | DataType::Time32(_) => Cell::Int(raw32()),
        DataType::Date64
        | DataType::Time64(_)
        | DataType::Timestamp(..)
        | DataType::Duration(_) => Cell::Int(raw64()),
        DataType::Utf8 => Cell::Bytes(array.as_string::<i32>().value(i).into()),
        DataType::LargeUtf8 => Cell::Bytes(array.as_string::<i64>().value(i).into()),
        DataType::Utf8View => Cell::Bytes(array.as_string_view().value(i).into()),
        DataType::Binary => Cell::Bytes(array.as_binary::<i32>().value(i).into()),
        DataType::BinaryView => Cell::Bytes(array.as_binary_view().value(i).into()),
        DataType::FixedSizeBinary(_) => Cell::Bytes(array.as_fixed_size_binary().value(i).into()),
        DataType::Dictionary(..) => {
            let dictionary = array.as_any_dictionary();
            cell(dictionary.values(), dictionary.normalized_keys()[i])
        }
        DataType::Struct(fields) => Cell::Group(
            fields
                .iter()
                .zip(array.as_struct().columns())
                .map(|(field, child)| (field.name().clone(), cell(child, i)))
                .collect(),
        ),
        DataType::List(_) => list(array.as_list::<i32>().value(i)),
        DataType::Map(..) => list(Arc::new(array.as_map().value(i))),
        other => panic!("{other}"),
    }
}

/// A column that is tested: its path, the names on the way (`*` for elements), and what literals it has.
#[derive(Debug, Clone)]
struct Target {
    path: &'static str,
    way: &'static [&'static str],
    data_type: DataType,
    pool: Vec<Value>,
}

/// The predicate of the twin.
#[derive(Debug, Clone)]
enum Twin {
    Constant(Option<bool>),
    Test(Target, Option<Elements>, TwinTest),
    Not(Box<Self>),
    And(Vec<Self>),
    Or(Vec<Self>),
}

#[derive(Debug, Clone)]
enum TwinTest {
    Compare(Op, Value),
    Between(Value, Value),
    In(Vec<Option<Value>>),
    IsNull,
    IsEmpty,
    Starts(Vec<u8>),
    Like(String),
}

/// The order of predicates, said another way: by a key of which the first part is whether it is NaN.
fn naive_order(cell: &Cell, value: &Value) -> Ordering {
    match (cell, value) {
        (Cell::Int(a), Value::Int(b)) => a.cmp(b),
        (Cell::Wide(a), Value::Wide(b)) => a.cmp(b),
        (Cell::Bytes(a), Value::Bytes(b)) => a.cmp(b),
        (Cell::Float(a), Value::Float(b)) => {
            let key = |x: f64| if x.is_nan() { (1, 0.0) } else { (0, x) };
            key(*a).partial_cmp(&key(*b)).unwrap()
        }
        other => panic!("{other:?}"),
    }
}

fn naive_like(text: &[char], pattern: &[char]) -> bool {
    match pattern {
        [] => text.is_empty(),
        ['%', rest @ ..] => (0..=text.len()).any(|i| naive_like(&text[i..], rest)),
        ['_', rest @ ..] => !text.is_empty() && naive_like(&text[1..], rest),
        [c, rest @ ..] => text.first() == Some(c) && naive_like(&text[1..], rest),
    }
}

fn naive_and(parts: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    let parts: Vec<_> = parts.collect();
    if parts.contains(&Some(false)) {
        Some(false)
    } else if parts.contains(&None) {
        None
    } else {
        Some(true)
    }
}

impl TwinTest {
    fn of(&self, cell: &Cell, elements: Option<Elements>, way: &[&str]) -> Option<bool> {
        match (way, cell) {
            ([], cell) => self.here(cell),
            (["*", ..], Cell::Null) => None,
            (["*", rest @ ..], Cell::List(items)) => {
                let each = items.iter().map(|item| self.of(item, elements, rest));
                match elements.unwrap() {
                    Elements::All => naive_and(each),
                    Elements::Any => naive_and(each.map(|one| one.map(|b| !b))).map(|b| !b),
                }
            }
            (_, Cell::Null) => {
                // What is below a null is null, and a list below it is one that is.
                if way.contains(&"*") { None } else { self.here(&Cell::Null) }
            }
            ([name, rest @ ..], Cell::Group(fields)) => {
                let field = &fields.iter().find(|(other, _)| other == name).unwrap().1;
                self.of(field, elements, rest)
            }
            other => panic!("{other:?}"),
        }
    }

    fn here(&self, cell: &Cell) -> Option<bool> {
        let null = matches!(cell, Cell::Null);
        match (self, cell) {
            (Self::IsNull, _) => Some(null),
            _ if null => None,
            (Self::IsEmpty, Cell::List(items)) => Some(items.is_empty()),
            (Self::Compare(op, value), cell) => {
                let order = naive_order(cell, value);
                Some(match op {
                    Op::Eq => order.is_eq(),
                    Op::NotEq => order.is_ne(),
                    Op::Lt => order.is_lt(),
                    Op::LtEq => order.is_le(),
                    Op::Gt => order.is_gt(),
                    Op::GtEq => order.is_ge(),
                })
            }
            (Self::Between(low, high), cell) => {
                Some(naive_order(cell, low).is_ge() && naive_order(cell, high).is_le())
            }
            (Self::In(values), cell) => {
                let equal = |value: &Value| naive_order(cell, value).is_eq();
                if values.iter().flatten().any(equal) {
                    Some(true)
                } else if values.iter().any(Option::is_none) {
                    None
                } else {
                    Some(false)
                }
            }
            (Self::Starts(prefix), Cell::Bytes(bytes)) => Some(bytes.starts_with(prefix)),
            (Self::Like(pattern), Cell::Bytes(bytes)) => {
                let chars = |text: &str| text.chars().collect::<Vec<_>>();
                let text = std::str::from_utf8(bytes).unwrap();
                Some(naive_like(&chars(text), &chars(pattern)))
            }
            other => panic!("{other:?}"),
        }
    }
}

impl Twin {
    fn of(&self, row: &Cell) -> Option<bool> {
        match self {
            Self::Constant(value) => *value,
            Self::Test(target, elements, test) => test.of(row, *elements, target.way),
            Self::Not(inner) => inner.of(row).map(|b| !b),
            Self::And(parts) => naive_and(parts.iter().map(|part| part.of(row))),
            Self::Or(parts) => {
                naive_and(parts.iter().map(|part| part.of(row).map(|b| !b))).map(|b| !b)
            }
        }
    }

    fn predicate(&self) -> Predicate {
        match self {
            Self::Constant(value) => Predicate(Expr::Constant(*value)),
            Self::Not(inner) => not(inner.predicate()),
            Self::And(parts) => Predicate::all_of(parts.iter().map(Self::predicate)),
            Self::Or(parts) => Predicate::any_of(parts.iter().map(Self::predicate)),
            Self::Test(target, elements, test) => {
                let column = Column { path: target.path.into(), elements: *elements };
                let literal = |value: &Value| literal(value, &target.data_type);
                match test {
                    TwinTest::Compare(op, value) => column.compare(*op, literal(value)),
                    TwinTest::Between(low, high) => column.between(literal(low), literal(high)),
                    TwinTest::In(values) => column.is_in(
                        values
                            .iter()
                            .map(|v| v.as_ref().map_or(Literal::NULL, literal))
                            .collect::<Vec<_>>(),
                    ),
                    TwinTest::IsNull => column.is_null(),
                    TwinTest::IsEmpty => column.is_empty(),
                    TwinTest::Starts(prefix) => column.starts_with(prefix.clone()),
                    TwinTest::Like(pattern) => column.like(pattern.clone()),
                }
            }
        }
    }
}

/// The literal that fits as this value.
fn literal(value: &Value, data_type: &DataType) -> Literal {
    match (value, data_type) {
        (Value::Int(v), DataType::Boolean) => (*v != 0).into(),
        (Value::Int(v), _) => (*v).into(),
        (Value::Float(v), _) if v.is_nan() => Literal(LiteralKind::Float(*v)),
        (Value::Float(v), _) => (*v).into(),
        (
            Value::Wide(v),
            DataType::Decimal32(_, s)
            | DataType::Decimal64(_, s)
            | DataType::Decimal128(_, s)
            | DataType::Decimal256(_, s),
        ) => Literal::decimal(*v, u8::try_from(*s).unwrap()),
        (Value::Bytes(v), _) => v.clone().into(),
        other => panic!("{other:?}"),
    }
}

/// Some values of a type, odd ones among them.
fn pool(rng: &mut Rng, data_type: &DataType) -> Vec<Value> {
    let n = rng.usize(1..8);
    let ints = |rng: &mut Rng, least: i128, most: i128| -> Vec<Value> {
        let near = i128::from(rng.i64(-100..100));
        let mut one = || match rng.u8(0..6) {
            0 => least,
            1 => most,
            2 => 0,
            _ => near + i128::from(rng.i8(-3..4)),
        };
        (0..n).map(|_| Value::Int(one().clamp(least, most))).collect()
    };
    let floats = |rng: &mut Rng, narrow: fn(f64) -> f64| -> Vec<Value> {
        let odd =
            [0.0, -0.0, f64::NAN, -f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1.5, -2.5, 0.25];
        let calm = rng.bool();
        let mut one =
            || if calm { f64::from(rng.i8(-4..4)) / 2.0 } else { *rng.choice(&odd).unwrap() };
        (0..n).map(|_| Value::Float(narrow(one()))).collect()
    };
    let text = |rng: &mut Rng| -> Vec<Value> {
        let parts = ["", "a", "ab", "b", "é", "\u{10FFFF}", "zz", "prefix-", "\u{D7FF}", "\0"];
        let mut one =
            || (0..rng.usize(0..4)).map(|_| *rng.choice(&parts).unwrap()).collect::<String>();
        (0..n).map(|_| Value::Bytes(one().into_bytes())).collect()
    };
    let bytes = |rng: &mut Rng, len: Option<usize>| -> Vec<Value> {
        let mut one = || {
            let len = len.unwrap_or_else(|| rng.usize(0..6));
            (0..len).map(|_| *rng.choice(&[0, 1, 0x7F, 0x80, 0xFE, 0xFF]).unwrap()).collect()
        };
        (0..n).map(|_| Value::Bytes(one())).collect()
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
                    Value::Int(v) => Value::Int(v * 86_400_000),
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
            let most =
                i256::from_i128(10).checked_pow(u32::from(*p)).unwrap().wrapping_sub(i256::ONE);
            let small = i128::from(rng.i16(..));
            let mut one = || match rng.u8(0..5) {
                0 => most,
                1 => most.wrapping_neg(),
                _ => i256::from_i128(small + i128::from(rng.i8(-2..3))),
            };
            (0..n).map(|_| Value::Wide(one().min(most).max(most.wrapping_neg()))).collect()
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
fn array(rng: &mut Rng, data_type: &DataType, pool: &[Value], rows: usize, nulls: u8) -> ArrayRef {
    if *data_type == DataType::Null {
        return new_null_array(data_type, rows);
    }
    if let DataType::Dictionary(_, value) = data_type {
        let entries: Vec<ArrayRef> = pool.iter().map(|v| array_of(v, value).unwrap()).collect();
        let entries: Vec<&dyn Array> = entries.iter().map(|a| &**a).collect();
        let entries = arrow_select::concat::concat(&entries).unwrap();
        let keys = picks(rng, pool.len(), rows, nulls).into_iter().map(|k| k.map(|k| k as i32));
        return Arc::new(DictionaryArray::<Int32Type>::new(keys.collect(), entries));
    }
    let picks = picks(rng, pool.len(), rows, nulls);
    let entries: Vec<ArrayRef> = pool.iter().map(|v| array_of(v, data_type).unwrap()).collect();
    let entries: Vec<&dyn Array> = entries.iter().map(|a| &**a).collect();
    let entries = arrow_select::concat::concat(&entries).unwrap();
    let indexes: arrow_array::UInt32Array =
        picks.into_iter().map(|k| k.map(|k| k as u32)).collect();
    arrow_select::take::take(&entries, &indexes, None).unwrap()
}

fn picks(rng: &mut Rng, n: usize, rows: usize, nulls: u8) -> Vec<Option<usize>> {
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

fn random_type(rng: &mut Rng) -> DataType {
    use DataType as D;
    let utc = || Some(Arc::<str>::from("UTC"));
    let p = |rng: &mut Rng, most: u8| rng.u8(1..=most);
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
fn table(rng: &mut Rng) -> (RecordBatch, Vec<Target>) {
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
    for (path, way) in [("a", &["a"][..]), ("b", &["b"]), ("c", &["c"])] {
        let data_type = random_type(rng);
        let pool = pool(rng, &data_type);
        add(path, array(rng, &data_type, &pool, rows, nulls));
        targets.push(Target { path, way, data_type: value_type(&data_type), pool });
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
    targets.push(Target { path: "g.x", way: &["g", "x"], data_type, pool: of_group });
    targets.push(Target {
        path: "g",
        way: &["g"],
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
        way: &["l", "*", "x"],
        data_type: data_type.clone(),
        pool: of_list.clone(),
    });
    targets.push(Target {
        path: "l.list.element.x",
        way: &["l", "*", "x"],
        data_type,
        pool: of_list,
    });
    let offsets = ends(rng);
    let items = offsets.last().copied().unwrap_or_default() as usize;
    let data_type = leaf(rng);
    let of_map = pool(rng, &data_type);
    let keys = array(rng, &DataType::Int16, &[Value::Int(1), Value::Int(2)], items, 0);
    let values = array(rng, &data_type, &of_map, items, nulls);
    let pair = Fields::from(vec![
        Field::new("key", DataType::Int16, false),
        Field::new("value", data_type.clone(), true),
    ]);
    let entries = StructArray::new(pair, vec![keys, values], None);
    let entries_field = Arc::new(Field::new("entries", entries.data_type().clone(), false));
    let map = MapArray::new(entries_field, offsets, entries, valid(rng, rows), false);
    add("m", Arc::new(map));
    targets.push(Target { path: "m.value", way: &["m", "*", "value"], data_type, pool: of_map });
    let list_type = DataType::List(Arc::new(Field::new("", DataType::Null, true)));
    targets.push(Target { path: "l", way: &["l"], data_type: list_type.clone(), pool: vec![] });
    targets.push(Target { path: "m", way: &["m"], data_type: list_type, pool: vec![] });
    let schema = Arc::new(ArrowSchema::new(fields));
    (RecordBatch::try_new(schema, columns).unwrap(), targets)
}

fn random_test(rng: &mut Rng, target: &Target) -> TwinTest {
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
            let Value::Bytes(bytes) = value(rng) else { unreachable!() };
            let len = rng.usize(0..=bytes.len());
            let cut =
                (0..=len).rev().find(|&at| !is_text || std::str::from_utf8(&bytes[..at]).is_ok());
            TwinTest::Starts(bytes[..cut.unwrap()].to_vec())
        }
        5 | 6 if is_text => {
            let Value::Bytes(bytes) = value(rng) else { unreachable!() };
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

fn random_twin(rng: &mut Rng, targets: &[Target], depth: u8) -> Twin {
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
    let elements =
        target.way.contains(&"*").then(|| *rng.choice(&[Elements::Any, Elements::All]).unwrap());
    Twin::Test(target, elements, test)
}

/// A file of the table.
fn file(rng: &mut Rng, batch: &RecordBatch) -> Bytes {
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

/// Facts that are true too: some are missing, bounds are looser.
fn lawful(rng: &mut Rng, facts: &Facts, leaf: &crate::schema::Leaf) -> Facts {
    let mut facts = facts.clone();
    let often = rng.u8(0..3);
    let mut drop = |n: u8| rng.u8(0..3) < often && n > 0;
    if drop(1) {
        facts.nulls = None;
    }
    if drop(1) {
        facts.nans = None;
    }
    if drop(1) {
        facts.min = None;
    }
    if drop(1) {
        facts.max = None;
    }
    if drop(1) {
        facts.def_histogram = None;
    }
    if drop(1) {
        facts.bloom = None;
    }
    let most = rng.usize(1..6);
    let cut = match Cut::of(leaf) {
        Cut::Never => None,
        cut => Some(cut),
    };
    let zero = |bytes: &[u8]| {
        bytes.iter().rev().skip(1).all(|b| *b == 0) && bytes.last().is_some_and(|b| b & 0x7F == 0)
    };
    for (bound, is_min) in [(&mut facts.min, true), (&mut facts.max, false)] {
        let Some(found) = bound else { continue };
        if rng.bool() {
            // It may be said of any bound that it is not exact.
            found.exact = false;
        }
        if let Some(cut) = cut.filter(|_| rng.bool()) {
            let shorter = if is_min {
                lower(&found.bytes, cut, most)
            } else {
                upper(&found.bytes, cut, most)
            };
            *found = StoredBound { exact: shorter.exact && found.exact, ..shorter };
        }
        let is_float = matches!(
            leaf.physical,
            crate::schema::Physical::Float | crate::schema::Physical::Double
        );
        if is_float && zero(&found.bytes) && rng.bool() {
            // Writers of the older order may store either zero.
            *found.bytes.last_mut().unwrap() ^= 0x80;
        }
    }
    facts
}

fn check(
    answers: &[(Range<u64>, Answer)],
    verdicts: &[Option<bool>],
    context: &dyn Fn() -> String,
) -> [u64; 2] {
    let mut proven = [0; 2];
    let mut at = 0;
    for (range, answer) in answers {
        assert_eq!(range.start, at, "{}", context());
        at = range.end;
        let rows = &verdicts[range.start as usize..range.end as usize];
        match answer {
            Answer::Cannot => {
                assert!(!rows.contains(&Some(true)), "cannot {range:?}: {rows:?} {}", context());
                proven[0] += rows.len() as u64;
            }
            Answer::Always => {
                assert!(
                    rows.iter().all(|row| *row == Some(true)),
                    "always {range:?}: {rows:?} {}",
                    context()
                );
                proven[1] += rows.len() as u64;
            }
            Answer::Might => {}
        }
    }
    assert_eq!(at, verdicts.len() as u64, "{}", context());
    assert!(answers.windows(2).all(|pair| pair[0].1 != pair[1].1), "{}", context());
    proven
}

/// What became of the rows of a case, over all predicates.
#[derive(Debug, Default)]
struct Tally {
    rows: u64,
    cannot: u64,
    always: u64,
    pages: u64,
}

/// A read with the predicate as its filter gives the rows for which the twin says true, whatever else is asked of it.
fn filtered(
    rng: &mut Rng,
    reader: &Reader,
    predicate: &Predicate,
    verdicts: &[Option<bool>],
    context: &impl Fn() -> String,
) {
    let mut wanted: Vec<i64> = Vec::new();
    let trues = (0..).zip(verdicts).filter(|(_, verdict)| **verdict == Some(true));
    wanted.extend(trues.map(|(row, _)| row));
    let names: Vec<String> =
        reader.schema().unwrap().fields().iter().map(|f| f.name().clone()).collect();
    let names: Vec<&String> = names.iter().filter(|_| rng.bool()).collect();
    let mut reader = reader
        .clone()
        .project(&names)
        .unwrap()
        .filter(predicate.clone())
        .virtual_column(VirtualColumn::RowNumber { name: "number".into() })
        .batch_rows(rng.usize(1..60))
        .threads(rng.usize(1..3));
    let mut options = reader.read_options().clone();
    options.page_index =
        [PageIndexUse::Always, PageIndexUse::Auto, PageIndexUse::Never][rng.usize(0..3)];
    reader = reader.options(options);
    if rng.u8(0..4) == 0 {
        let rows = verdicts.len();
        let selection = RowSelection::from_bits((0..rows).map(|_| rng.u8(0..3) > 0).collect());
        let bits = selection.to_bits();
        wanted.retain(|row| bits.value(*row as usize));
        reader = reader.select(selection).unwrap();
    }
    if rng.u8(0..4) == 0 {
        let (offset, limit) = (rng.usize(0..20), rng.usize(0..50));
        wanted = wanted.into_iter().skip(offset).take(limit).collect();
        reader = reader.offset(offset as u64).limit(limit as u64);
    }
    let mut found: Vec<i64> = Vec::new();
    let batches = reader.batches().unwrap_or_else(|e| panic!("{e}: {}", context()));
    let mut batches: Vec<RecordBatch> =
        batches.map(|batch| batch.unwrap_or_else(|e| panic!("{e}: {}", context()))).collect();
    for batch in &batches {
        let most = reader.read_options().batch_rows;
        assert!((1..=most).contains(&batch.num_rows()), "{}", context());
        let numbers = batch.column(batch.num_columns() - 1).as_primitive::<Int64Type>();
        found.extend_from_slice(numbers.values());
    }
    assert_eq!(found, wanted, "{}", context());
    assert_eq!(reader.progress().indexes_ignored(), 0, "{}", context());
    assert_eq!(reader.count().unwrap(), wanted.len() as u64, "{}", context());
    // The values are those of the rows.
    let expected: Vec<Cell> = {
        let rows: Vec<u64> = wanted.iter().map(|row| *row as u64).collect();
        // What else was asked does not count.
        let taken = reader.threads(1).take(&rows).unwrap();
        let taken: ArrayRef = Arc::new(StructArray::from(taken));
        (0..taken.len()).map(|i| cell(&taken, i)).collect()
    };
    let of_rows = batches.drain(..).flat_map(|batch| {
        let batch: ArrayRef = Arc::new(StructArray::from(batch));
        (0..batch.len()).map(move |i| cell(&batch, i)).collect::<Vec<_>>()
    });
    for (found, expected) in of_rows.zip(expected) {
        assert_eq!(format!("{found:?}"), format!("{expected:?}"), "{}", context());
    }
}

fn one_case(seed: u64, tally: &mut Tally) {
    let mut rng = Rng::with_seed(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ seed);
    let (batch, targets) = table(&mut rng);
    let bytes = file(&mut rng, &batch);
    let reader = Reader::new(bytes.clone()).unwrap().threads(1);
    let footer = reader.metadata().clone();
    let whole: ArrayRef = Arc::new(StructArray::from(batch.clone()));
    for _ in 0..6 {
        let twin = random_twin(&mut rng, &targets, 3);
        let predicate = twin.predicate();
        let context = || format!("seed {seed}: {predicate} on {}", batch.schema());
        let verdicts: Vec<Option<bool>> =
            (0..batch.num_rows()).map(|i| twin.of(&cell(&whole, i))).collect();
        let bound = predicate.bind(footer.schema(), footer.key_values(), &ArrowOptions::default());
        let bound = bound.unwrap_or_else(|e| panic!("{e}: {}", context()));
        // As it is in memory.
        if !predicate.to_string().contains("list.element") {
            let in_memory = predicate.bind_to(&batch.schema()).unwrap().evaluate(&batch).unwrap();
            let expected: Vec<bool> = verdicts.iter().map(|v| *v == Some(true)).collect();
            assert_eq!(in_memory, BooleanArray::from(expected), "{}", context());
        }
        filtered(&mut rng, &reader, &predicate, &verdicts, &context);
        let mut first = 0;
        for group in 0..footer.row_groups() {
            let rows = footer.row_group_rows(group).unwrap();
            let verdicts = &verdicts[first..first + rows as usize];
            first += rows as usize;
            // Read back.
            let mut options = reader.read_options().clone();
            options.projection = bound.projection();
            options.row_groups = Some(vec![group]);
            let read: Vec<RecordBatch> =
                reader.clone().options(options).batches().unwrap().map(Result::unwrap).collect();
            let kept: Vec<bool> = read
                .iter()
                .flat_map(|batch| {
                    bound
                        .evaluate(batch)
                        .unwrap_or_else(|e| panic!("{e}: {}", context()))
                        .iter()
                        .map(Option::unwrap)
                        .collect::<Vec<_>>()
                })
                .collect();
            let expected: Vec<bool> = verdicts.iter().map(|v| *v == Some(true)).collect();
            assert_eq!(kept, expected, "{}", context());
            let mut by_parts = vec![true; kept.len()];
            for part in bound.conjuncts() {
                let mut at = 0;
                for batch in &read {
                    for row in part.evaluate(batch).unwrap().values() {
                        by_parts[at] &= row;
                        at += 1;
                    }
                }
            }
            assert_eq!(by_parts, expected, "{}", context());
            // What is known.
            let orders = footer.index().head().column_orders.clone();
            let probes = bound.bloom_probes();
            let mut facts: Vec<Facts> = Vec::new();
            let mut pages: Vec<Option<PageFacts>> = Vec::new();
            for index in 0..footer.schema().leaves_len() {
                let leaf = footer.schema().leaf(index).unwrap();
                let order = orders.as_ref().and_then(|orders| orders.get(index));
                let chunk = footer.column_chunk(group, index).unwrap();
                let meta = chunk.meta_data.unwrap();
                let mut known = Facts::of_chunk(&leaf, order, &meta, rows);
                if let (Some(at), Some(len)) = (meta.bloom_filter_offset, meta.bloom_filter_length)
                {
                    let stored = &bytes[at as usize..][..len as usize];
                    let probe = probes.iter().find(|probe| probe.leaf == index);
                    known.bloom = Some(match probe {
                        Some(probe) if rng.bool() => {
                            let layout = Layout::parse(stored).unwrap().unwrap();
                            let ranges = layout.ranges(&probe.hashes);
                            let parts = ranges
                                .iter()
                                .map(|range| &stored[range.start as usize..range.end as usize]);
                            layout.blocks(&ranges, parts)
                        }
                        _ => Blocks::from(Bloom::parse(stored).unwrap().unwrap()),
                    });
                }
                if leaf.max_rep == 0 && leaf.path.names().len() == 1 && rng.bool() {
                    // The values of the row group stand for a dictionary that has them all.
                    let column = batch.column_by_name(&leaf.path.dotted()).unwrap();
                    if !matches!(column.data_type(), DataType::Null | DataType::Dictionary(..)) {
                        known.dictionary = Some(column.slice(first - rows as usize, rows as usize))
                            .filter(|a| a.null_count() < a.len());
                        known.dictionary = known.dictionary.map(|array| {
                            let some = arrow_select::filter::filter(
                                &array,
                                &arrow_array_is_not_null(&array),
                            )
                            .unwrap();
                            make_array(some.to_data())
                        });
                    }
                }
                let index = reader.page_index(group, index).unwrap();
                pages.push(index.offset_index.zip(index.column_index).map(|(offsets, columns)| {
                    PageFacts::of_indexes(&leaf, order, &offsets, &columns, rows)
                        .unwrap_or_else(|e| panic!("{e}: {}", context()))
                }));
                facts.push(known);
            }
            let answer = bound.prune_row_group(rows, |leaf| facts.get(leaf));
            let one = check(&[(0..rows, answer)], verdicts, &context);
            let ranges = bound.prune_pages(
                rows,
                |leaf| facts.get(leaf),
                |leaf| pages.get(leaf).and_then(Option::as_ref),
            );
            let [cannot, always] = check(&ranges, verdicts, &context);
            assert!(
                cannot >= one[0] && always >= one[1],
                "pages know less than the row group: {}",
                context()
            );
            tally.rows += rows;
            tally.cannot += cannot;
            tally.always += always;
            tally.pages += cannot + always - one[0] - one[1];
            // As true as before, but less.
            for _ in 0..2 {
                let mut of = |index: usize, facts: &Facts| {
                    lawful(&mut rng, facts, &footer.schema().leaf(index).unwrap())
                };
                let facts: Vec<Facts> =
                    facts.iter().enumerate().map(|(i, facts)| of(i, facts)).collect();
                let pages: Vec<Option<PageFacts>> = pages
                    .iter()
                    .enumerate()
                    .map(|(i, pages)| {
                        let pages = pages.as_ref()?;
                        Some(PageFacts {
                            pages: pages.pages.iter().map(|page| of(i, page)).collect(),
                        })
                    })
                    .collect();
                let answer = bound.prune_row_group(rows, |leaf| facts.get(leaf));
                check(&[(0..rows, answer)], verdicts, &context);
                let ranges = bound.prune_pages(
                    rows,
                    |leaf| facts.get(leaf),
                    |leaf| pages.get(leaf).and_then(Option::as_ref),
                );
                check(&ranges, verdicts, &context);
            }
        }
    }
}

fn arrow_array_is_not_null(array: &ArrayRef) -> BooleanArray {
    BooleanArray::from((0..array.len()).map(|i| array.is_valid(i)).collect::<Vec<_>>())
}

#[test]
fn predicates_as_the_naive_twin() {
    let n = cases(400);
    let mut tally = Tally::default();
    (0..n).for_each(|seed| one_case(seed, &mut tally));
    println!("{n} cases: {tally:?}");
    // A test that prunes nothing would prove nothing.
    if n >= 100 {
        assert!(
            tally.cannot * 8 > tally.rows
                && tally.always * 30 > tally.rows
                && tally.pages * 30 > tally.rows,
            "{tally:?}"
        );
    }
}
