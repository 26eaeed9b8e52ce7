//! The twin of a predicate evaluates one row at a time, value by value, without arrays.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType};
use arrow_buffer::i256;
use arrow_schema::DataType;

use super::super::expression::*;
use super::super::literal::{Literal, LiteralKind};
use super::super::value::LiteralValue;

/// A value of a row, as the twin sees it.
#[derive(Debug, Clone)]
pub(super) enum Cell {
    Null,
    Int(i128),
    Float(f64),
    Wide(i256),
    Bytes(Vec<u8>),
    List(Vec<Self>),
    Group(Vec<(String, Self)>),
}

pub(super) fn cell(array: &ArrayRef, i: usize) -> Cell {
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

/// A column that is tested: its path, the names on the way (`*` for elements), and what literals it
/// has.
#[derive(Debug, Clone)]
pub(super) struct Target {
    pub(super) path: &'static str,
    pub(super) path_steps: &'static [&'static str],
    pub(super) data_type: DataType,
    pub(super) pool: Vec<LiteralValue>,
}

/// The predicate of the twin.
#[derive(Debug, Clone)]
pub(super) enum Twin {
    Constant(Option<bool>),
    Test(Target, Option<Quantifier>, TwinTest),
    Not(Box<Self>),
    And(Vec<Self>),
    Or(Vec<Self>),
}

#[derive(Debug, Clone)]
pub(super) enum TwinTest {
    Compare(Op, LiteralValue),
    Between(LiteralValue, LiteralValue),
    In(Vec<Option<LiteralValue>>),
    IsNull,
    IsEmpty,
    Starts(Vec<u8>),
    Like(String),
}

/// The order of predicates, stated in another way: by a key that begins with whether the value is
/// NaN.
pub(super) fn naive_order(cell: &Cell, value: &LiteralValue) -> Ordering {
    match (cell, value) {
        (Cell::Int(a), LiteralValue::Int(b)) => a.cmp(b),
        (Cell::Wide(a), LiteralValue::Wide(b)) => a.cmp(b),
        (Cell::Bytes(a), LiteralValue::Bytes(b)) => a.cmp(b),
        (Cell::Float(a), LiteralValue::Float(b)) => {
            let key = |x: f64| if x.is_nan() { (1, 0.0) } else { (0, x) };
            key(*a).partial_cmp(&key(*b)).unwrap()
        }
        other => panic!("{other:?}"),
    }
}

pub(super) fn naive_like(text: &[char], pattern: &[char]) -> bool {
    match pattern {
        [] => text.is_empty(),
        ['%', rest @ ..] => (0..=text.len()).any(|i| naive_like(&text[i..], rest)),
        ['_', rest @ ..] => !text.is_empty() && naive_like(&text[1..], rest),
        [c, rest @ ..] => text.first() == Some(c) && naive_like(&text[1..], rest),
    }
}

pub(super) fn naive_and(parts: impl Iterator<Item = Option<bool>>) -> Option<bool> {
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
    pub(super) fn evaluate(
        &self,
        cell: &Cell,
        elements: Option<Quantifier>,
        path_steps: &[&str],
    ) -> Option<bool> {
        match (path_steps, cell) {
            ([], cell) => self.here(cell),
            (["*", ..], Cell::Null) => None,
            (["*", rest @ ..], Cell::List(items)) => {
                let each = items.iter().map(|item| self.evaluate(item, elements, rest));
                match elements.unwrap() {
                    Quantifier::All => naive_and(each),
                    Quantifier::Any => naive_and(each.map(|one| one.map(|b| !b))).map(|b| !b),
                }
            }
            (_, Cell::Null) => {
                // What is below a null is null, and a list below it is one that is.
                if path_steps.contains(&"*") { None } else { self.here(&Cell::Null) }
            }
            ([name, rest @ ..], Cell::Group(fields)) => {
                let field = &fields.iter().find(|(other, _)| other == name).unwrap().1;
                self.evaluate(field, elements, rest)
            }
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn here(&self, cell: &Cell) -> Option<bool> {
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
                let equal = |value: &LiteralValue| naive_order(cell, value).is_eq();
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
    pub(super) fn evaluate(&self, row: &Cell) -> Option<bool> {
        match self {
            Self::Constant(value) => *value,
            Self::Test(target, elements, test) => test.evaluate(row, *elements, target.path_steps),
            Self::Not(inner) => inner.evaluate(row).map(|b| !b),
            Self::And(parts) => naive_and(parts.iter().map(|part| part.evaluate(row))),
            Self::Or(parts) => {
                naive_and(parts.iter().map(|part| part.evaluate(row).map(|b| !b))).map(|b| !b)
            }
        }
    }

    pub(super) fn predicate(&self) -> Predicate {
        match self {
            Self::Constant(value) => Predicate::new(Term::Constant(*value)),
            Self::Not(inner) => not(inner.predicate()),
            Self::And(parts) => Predicate::all_of(parts.iter().map(Self::predicate)),
            Self::Or(parts) => Predicate::any_of(parts.iter().map(Self::predicate)),
            Self::Test(target, elements, test) => {
                let column = Column { path: target.path.into(), elements: *elements, part: None };
                let literal = |value: &LiteralValue| literal(value, &target.data_type);
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
pub(super) fn literal(value: &LiteralValue, data_type: &DataType) -> Literal {
    match (value, data_type) {
        (LiteralValue::Int(v), DataType::Boolean) => (*v != 0).into(),
        (LiteralValue::Int(v), _) => (*v).into(),
        (LiteralValue::Float(v), _) if v.is_nan() => Literal::new(LiteralKind::Float(*v)),
        (LiteralValue::Float(v), _) => (*v).into(),
        (
            LiteralValue::Wide(v),
            DataType::Decimal32(_, s)
            | DataType::Decimal64(_, s)
            | DataType::Decimal128(_, s)
            | DataType::Decimal256(_, s),
        ) => Literal::decimal(*v, u8::try_from(*s).unwrap()),
        (LiteralValue::Bytes(v), _) => v.clone().into(),
        other => panic!("{other:?}"),
    }
}
