//! Tests random expressions against a twin that computes one row at a time, without arrays.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, Decimal128Array, Float64Array, Int16Array, Int64Array, RecordBatch, StringArray,
};

use super::batch;
use crate::predicate::calculation::{Arithmetic, Expression};
use crate::predicate::expression::{Op, Predicate, not};
use crate::predicate::tests::random::cases;
use crate::{col, lit};
use fastrand::Rng;

/// A value of a row, as the twin sees it.
#[derive(Debug, Clone, PartialEq)]
enum Cell {
    Null,
    Int(i128),
    /// Unscaled, and the scale.
    Decimal(i128, u32),
    Float(f64),
    Text(String),
}

/// A value that the twin cannot compute, because it overflows or is not allowed.
struct Fails;

#[derive(Debug, Clone)]
enum Twin {
    Column(&'static str),
    Literal(Cell),
    Negate(Box<Self>),
    Abs(Box<Self>),
    Lower(Box<Self>),
    Upper(Box<Self>),
    Length(Box<Self>),
    ToText(Box<Self>),
    Calculate(Arithmetic, Box<Self>, Box<Self>),
}

#[derive(Debug, Clone)]
enum Condition {
    Compare(Op, Twin, Twin),
    IsNull(Twin),
    Not(Box<Self>),
    And(Vec<Self>),
    Or(Vec<Self>),
}

const COLUMNS: [&str; 5] = ["small", "long", "money", "real", "word"];

type Row = [Cell; 5];

fn random_row(rng: &mut Rng) -> Row {
    let mut cell = |make: &dyn Fn(&mut Rng) -> Cell| match rng.u8(0..6) {
        0 => Cell::Null,
        _ => make(rng),
    };
    [
        cell(&|rng| Cell::Int(rng.i16(-5..5).into())),
        cell(&|rng| Cell::Int(*rng.choice(&[0, 3, -4, i64::MAX, i64::MIN]).unwrap() as i128)),
        cell(&|rng| Cell::Decimal(rng.i32(-500..500).into(), 2)),
        cell(&|rng| Cell::Float(*rng.choice(&[0.0, -0.0, 1.5, -3.0, f64::NAN, 1e300]).unwrap())),
        cell(&|rng| Cell::Text((*rng.choice(&["", "ab", "AB", "-3", "É", "aé"]).unwrap()).into())),
    ]
}

fn table(rows: &[Row]) -> RecordBatch {
    let ints = |at: usize| {
        rows.iter().map(move |row| match row[at] {
            Cell::Int(value) => Some(value),
            _ => None,
        })
    };
    let money = rows.iter().map(|row| match row[2] {
        Cell::Decimal(value, _) => Some(value),
        _ => None,
    });
    let real = rows.iter().map(|row| match row[3] {
        Cell::Float(value) => Some(value),
        _ => None,
    });
    let word = rows.iter().map(|row| match &row[4] {
        Cell::Text(value) => Some(value.as_str()),
        _ => None,
    });
    let money = Decimal128Array::from_iter(money).with_precision_and_scale(9, 2).unwrap();
    let arrays: [ArrayRef; 5] = [
        Arc::new(Int16Array::from_iter(ints(0).map(|v| v.map(|v| i16::try_from(v).unwrap())))),
        Arc::new(Int64Array::from_iter(ints(1).map(|v| v.map(|v| i64::try_from(v).unwrap())))),
        Arc::new(money),
        Arc::new(Float64Array::from_iter(real)),
        Arc::new(StringArray::from_iter(word)),
    ];
    batch(COLUMNS.into_iter().zip(arrays).collect())
}

fn number(rng: &mut Rng, depth: u8) -> Twin {
    let inner = |rng: &mut Rng| Box::new(number(rng, depth - 1));
    match rng.u8(0..if depth == 0 { 5 } else { 13 }) {
        0 => Twin::Literal(Cell::Int(rng.i16(-20..20).into())),
        1 => Twin::Literal(Cell::Decimal(i128::from(rng.i16(..)) * 10 + 1, 3)),
        2..5 => Twin::Column(COLUMNS[rng.usize(0..4)]),
        5 => Twin::Negate(inner(rng)),
        6 => Twin::Abs(inner(rng)),
        7 => Twin::Length(Box::new(text(rng, depth - 1))),
        _ => {
            use Arithmetic as A;
            let op = *rng.choice(&[A::Add, A::Subtract, A::Multiply, A::Divide]).unwrap();
            Twin::Calculate(op, inner(rng), inner(rng))
        }
    }
}

fn text(rng: &mut Rng, depth: u8) -> Twin {
    let inner = |rng: &mut Rng| Box::new(text(rng, depth - 1));
    match rng.u8(0..if depth == 0 { 3 } else { 6 }) {
        0 => Twin::Literal(Cell::Text("aB-3é"[..rng.usize(0..5)].into())),
        1 | 2 => Twin::Column("word"),
        3 => Twin::Lower(inner(rng)),
        4 => Twin::Upper(inner(rng)),
        _ => Twin::ToText(Box::new(Twin::Column(COLUMNS[rng.usize(0..3)]))),
    }
}

fn condition(rng: &mut Rng, depth: u8) -> Condition {
    let parts = |rng: &mut Rng| (0..2).map(|_| condition(rng, depth - 1)).collect();
    match rng.u8(0..if depth == 0 { 4 } else { 7 }) {
        4 => Condition::Not(Box::new(condition(rng, depth - 1))),
        5 => Condition::And(parts(rng)),
        6 => Condition::Or(parts(rng)),
        3 => Condition::IsNull(number(rng, 2)),
        n => {
            let ops = [Op::Eq, Op::NotEq, Op::Lt, Op::LtEq, Op::Gt, Op::GtEq];
            let op = *rng.choice(&ops).unwrap();
            match n {
                0 => Condition::Compare(op, text(rng, 2), text(rng, 2)),
                _ => Condition::Compare(op, number(rng, 2), number(rng, 2)),
            }
        }
    }
}

fn ten(scale: u32) -> i128 {
    10i128.pow(scale)
}

/// The float of a number.
#[expect(clippy::cast_precision_loss, reason = "what a cast to double does")]
fn float(cell: &Cell) -> f64 {
    match cell {
        Cell::Int(value) => *value as f64,
        Cell::Decimal(unscaled, scale) => *unscaled as f64 / 10f64.powi(*scale as i32),
        Cell::Float(value) => *value,
        other => panic!("{other:?}"),
    }
}

fn scaled(cell: &Cell) -> (i128, u32) {
    match cell {
        Cell::Int(value) => (*value, 0),
        Cell::Decimal(unscaled, scale) => (*unscaled, *scale),
        other => panic!("{other:?}"),
    }
}

fn calculate(op: Arithmetic, left: &Cell, right: &Cell) -> Result<Cell, Fails> {
    let is_float = |cell: &Cell| matches!(cell, Cell::Float(_));
    if is_float(left) || is_float(right) || op == Arithmetic::Divide {
        let (left, right) = (float(left), float(right));
        return Ok(Cell::Float(match op {
            Arithmetic::Add => left + right,
            Arithmetic::Subtract => left - right,
            Arithmetic::Multiply => left * right,
            _ => left / right,
        }));
    }
    if let (Cell::Int(left), Cell::Int(right)) = (left, right) {
        let exact = match op {
            Arithmetic::Add => left + right,
            Arithmetic::Subtract => left - right,
            _ => left * right,
        };
        return i64::try_from(exact).map(|exact| Cell::Int(exact.into())).map_err(|_| Fails);
    }
    let ((l, ls), (r, rs)) = (scaled(left), scaled(right));
    if op == Arithmetic::Multiply {
        return l.checked_mul(r).map(|exact| Cell::Decimal(exact, ls + rs)).ok_or(Fails);
    }
    let scale = ls.max(rs);
    let (l, r) = (l.checked_mul(ten(scale - ls)), r.checked_mul(ten(scale - rs)));
    let (l, r) = (l.ok_or(Fails)?, r.ok_or(Fails)?);
    let exact = if op == Arithmetic::Add { l.checked_add(r) } else { l.checked_sub(r) };
    exact.map(|exact| Cell::Decimal(exact, scale)).ok_or(Fails)
}

fn spelled(cell: &Cell) -> String {
    match cell {
        Cell::Int(value) => value.to_string(),
        Cell::Decimal(value, scale) => {
            let sign = if *value < 0 { "-" } else { "" };
            let (whole, rest) = (value.abs() / ten(*scale), value.abs() % ten(*scale));
            format!("{sign}{whole}.{rest:0>width$}", width = *scale as usize)
        }
        Cell::Text(text) => text.clone(),
        other => panic!("{other:?}"),
    }
}

impl Twin {
    fn evaluate(&self, row: &Row) -> Result<Cell, Fails> {
        let one =
            |inner: &Self, map: &dyn Fn(Cell) -> Result<Cell, Fails>| match inner.evaluate(row)? {
                Cell::Null => Ok(Cell::Null),
                cell => map(cell),
            };
        let negated = |cell: Cell| match cell {
            Cell::Int(value) if value == i64::MIN.into() => Err(Fails),
            Cell::Int(value) => Ok(Cell::Int(-value)),
            Cell::Decimal(value, scale) => Ok(Cell::Decimal(-value, scale)),
            Cell::Float(value) => Ok(Cell::Float(-value)),
            other => panic!("{other:?}"),
        };
        let is_negative = |cell: &Cell| match cell {
            Cell::Int(value) | Cell::Decimal(value, _) => *value < 0,
            Cell::Float(value) => value.is_sign_negative(),
            _ => false,
        };
        let text = |cell: Cell| spelled(&cell);
        match self {
            Self::Column(name) => {
                let at = COLUMNS.iter().position(|column| column == name).unwrap();
                Ok(row[at].clone())
            }
            Self::Literal(cell) => Ok(cell.clone()),
            Self::Negate(inner) => one(inner, &negated),
            Self::Abs(inner) => {
                one(inner, &|cell| if is_negative(&cell) { negated(cell) } else { Ok(cell) })
            }
            Self::Lower(inner) => one(inner, &|cell| Ok(Cell::Text(text(cell).to_lowercase()))),
            Self::Upper(inner) => one(inner, &|cell| Ok(Cell::Text(text(cell).to_uppercase()))),
            Self::Length(inner) => {
                one(inner, &|cell| Ok(Cell::Int(text(cell).chars().count() as i128)))
            }
            Self::ToText(inner) => one(inner, &|cell| Ok(Cell::Text(text(cell)))),
            Self::Calculate(op, left, right) => match (left.evaluate(row)?, right.evaluate(row)?) {
                (Cell::Null, _) | (_, Cell::Null) => Ok(Cell::Null),
                (left, right) => calculate(*op, &left, &right),
            },
        }
    }

    fn expression(&self) -> Expression {
        match self {
            Self::Column(name) => col(*name).into(),
            Self::Literal(Cell::Int(value)) => (*value).into(),
            Self::Literal(Cell::Decimal(value, scale)) => {
                crate::Literal::decimal(*value, u8::try_from(*scale).unwrap()).into()
            }
            Self::Literal(Cell::Text(text)) => lit(text.as_str()).into(),
            Self::Literal(other) => panic!("{other:?}"),
            Self::Negate(inner) => -inner.expression(),
            Self::Abs(inner) => inner.expression().abs(),
            Self::Lower(inner) => inner.expression().lower(),
            Self::Upper(inner) => inner.expression().upper(),
            Self::Length(inner) => inner.expression().length(),
            Self::ToText(inner) => inner.expression().cast(arrow_schema::DataType::Utf8),
            Self::Calculate(op, left, right) => left.expression().binary(*op, right.expression()),
        }
    }
}

/// How two values compare: numbers by value, but with a float as floats.
fn order(left: &Cell, right: &Cell) -> std::cmp::Ordering {
    if let (Cell::Text(left), Cell::Text(right)) = (left, right) {
        return left.cmp(right);
    }
    if matches!(left, Cell::Float(_)) || matches!(right, Cell::Float(_)) {
        let key = |x: f64| if x.is_nan() { (1, 0.0) } else { (0, x) };
        return key(float(left)).partial_cmp(&key(float(right))).unwrap();
    }
    let ((l, ls), (r, rs)) = (scaled(left), scaled(right));
    let scale = ls.max(rs);
    (l * ten(scale - ls)).cmp(&(r * ten(scale - rs)))
}

impl Condition {
    fn evaluate(&self, row: &Row) -> Result<Option<bool>, Fails> {
        let all = |parts: &[Self], decides: bool| {
            let parts: Vec<_> =
                parts.iter().map(|part| part.evaluate(row)).collect::<Result<_, _>>()?;
            Ok(if parts.contains(&Some(decides)) {
                Some(decides)
            } else if parts.contains(&None) {
                None
            } else {
                Some(!decides)
            })
        };
        match self {
            Self::Compare(op, left, right) => {
                Ok(match (left.evaluate(row)?, right.evaluate(row)?) {
                    (Cell::Null, _) | (_, Cell::Null) => None,
                    (left, right) => Some(op.holds(order(&left, &right))),
                })
            }
            Self::IsNull(value) => Ok(Some(value.evaluate(row)? == Cell::Null)),
            Self::Not(inner) => Ok(inner.evaluate(row)?.map(|holds| !holds)),
            Self::And(parts) => all(parts, false),
            Self::Or(parts) => all(parts, true),
        }
    }

    fn predicate(&self) -> Predicate {
        match self {
            Self::Compare(op, left, right) => left.expression().compare(*op, right.expression()),
            Self::IsNull(value) => value.expression().is_null(),
            Self::Not(inner) => not(inner.predicate()),
            Self::And(parts) => Predicate::all_of(parts.iter().map(Self::predicate)),
            Self::Or(parts) => Predicate::any_of(parts.iter().map(Self::predicate)),
        }
    }
}

/// Most of the cases can be computed, and are.
#[test]
fn expressions_as_the_twin_computes_them() {
    let (mut compared, mut failed) = (0, 0);
    for seed in 0..cases(2_000) {
        let mut rng = Rng::with_seed(seed);
        let rows: Vec<Row> = (0..8).map(|_| random_row(&mut rng)).collect();
        let condition = condition(&mut rng, 2);
        let predicate = condition.predicate();
        let text = predicate.to_string();
        let parsed = Predicate::parse(&text).unwrap_or_else(|e| panic!("seed {seed}: {text}\n{e}"));
        assert_eq!(parsed, predicate, "seed {seed}: {text}");
        let table = table(&rows);
        let found = parsed.bind_to(&table.schema()).and_then(|bound| bound.evaluate(&table));
        let expected: Result<Vec<_>, Fails> =
            rows.iter().map(|row| condition.evaluate(row)).collect();
        match (found, expected) {
            (Ok(found), Ok(expected)) => {
                let found: Vec<bool> = found.values().iter().collect();
                let expected: Vec<bool> =
                    expected.into_iter().map(|holds| holds == Some(true)).collect();
                assert_eq!(found, expected, "seed {seed}: {text}\n{rows:?}");
                compared += 1;
            }
            // What the twin cannot compute may have been left out, or be wider than it knows.
            (_, Err(Fails)) => failed += 1,
            (Err(error), Ok(_)) => panic!("seed {seed}: {text}: {error}\n{rows:?}"),
        }
    }
    assert!(compared > failed, "{compared} compared, {failed} failed");
}
