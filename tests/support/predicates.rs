//! Random predicates, and their naive twins.

use std::cmp::Ordering;

use fastrand::Rng;
use marquetry::arrow_schema::{DataType, Schema};
use marquetry::{Literal, Predicate, col, lit, not};

use super::cells::{Cell, plain_type};

/// A predicate that is not ours.
pub enum Twin {
    Compare(usize, fn(Ordering) -> bool, Cell),
    IsNull(usize),
    Not(Box<Self>),
    And(Box<[Self; 2]>),
    Or(Box<[Self; 2]>),
}

impl Twin {
    /// The result for a row of these columns.
    pub fn evaluate(&self, all: &[Vec<Cell>], row: usize) -> Option<bool> {
        match self {
            Self::Compare(column, holds, to) => {
                let order = match (&all[*column][row], to) {
                    (Cell::Word(a), Cell::Word(b)) => a.cmp(b),
                    (Cell::Bytes(a), Cell::Bytes(b)) => a.cmp(b),
                    _ => return None,
                };
                Some(holds(order))
            }
            Self::IsNull(column) => Some(all[*column][row] == Cell::Null),
            Self::Not(inner) => inner.evaluate(all, row).map(|result| !result),
            Self::And(both) => match (both[0].evaluate(all, row), both[1].evaluate(all, row)) {
                (Some(false), _) | (_, Some(false)) => Some(false),
                (Some(true), Some(true)) => Some(true),
                _ => None,
            },
            Self::Or(both) => match (both[0].evaluate(all, row), both[1].evaluate(all, row)) {
                (Some(true), _) | (_, Some(true)) => Some(true),
                (Some(false), Some(false)) => Some(false),
                _ => None,
            },
        }
    }
}

/// A column that the twin can compare: its place and its name.
pub type Target = (usize, String);

/// A predicate on values of these columns, and its twin.
pub fn random(
    rng: &mut Rng,
    targets: &[Target],
    all: &[Vec<Cell>],
    depth: u8,
) -> (Predicate, Twin) {
    if depth > 0 && rng.bool() {
        let (a, of_a) = random(rng, targets, all, depth - 1);
        if rng.u8(0..3) == 0 {
            return (not(a), Twin::Not(of_a.into()));
        }
        let (b, of_b) = random(rng, targets, all, depth - 1);
        let both = Box::new([of_a, of_b]);
        return if rng.bool() { (a.and(b), Twin::And(both)) } else { (a.or(b), Twin::Or(both)) };
    }
    let (column, name) = rng.choice(targets).expect("a column");
    let cells = &all[*column];
    let value =
        if cells.is_empty() { Cell::Null } else { cells[rng.usize(0..cells.len())].clone() };
    let literal: Literal = match &value {
        Cell::Word(word) => match i64::try_from(*word) {
            Ok(word) => lit(word),
            Err(_) => lit(*word as u64),
        },
        Cell::Bytes(text) => lit(std::str::from_utf8(text).expect("UTF-8")),
        _ => return (col(name).is_null(), Twin::IsNull(*column)),
    };
    let column_named = col(name);
    let (predicate, holds): (_, fn(Ordering) -> bool) = match rng.u8(0..6) {
        0 => (column_named.eq(literal), Ordering::is_eq),
        1 => (column_named.not_eq(literal), Ordering::is_ne),
        2 => (column_named.lt(literal), Ordering::is_lt),
        3 => (column_named.lt_eq(literal), Ordering::is_le),
        4 => (column_named.gt(literal), Ordering::is_gt),
        _ => (column_named.gt_eq(literal), Ordering::is_ge),
    };
    (predicate, Twin::Compare(*column, holds, value))
}

/// The columns of a schema that are compared with literals here.
pub fn comparable(schema: &Schema) -> Vec<Target> {
    let is_comparable = |data_type: &DataType| {
        let plain = plain_type(data_type);
        let is_text = matches!(plain, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
        is_text || plain.is_integer()
    };
    let fields = schema.fields().iter().enumerate();
    let found = fields.filter(|(_, field)| is_comparable(field.data_type()));
    found.map(|(i, field)| (i, field.name().clone())).collect()
}
