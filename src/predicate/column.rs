//! [`Column`] names what a predicate tests; [`Op`] says how values are compared.

use std::cmp::Ordering;

use arrow_schema::DataType;

use crate::variant::VariantPath;

/// How two values are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Op {
    Eq,
    NotEq,
    Lt,
    LtEq,
    Gt,
    GtEq,
}

impl Op {
    /// Whether a value that compares so with another passes.
    pub(super) fn holds(self, order: Ordering) -> bool {
        match self {
            Self::Eq => order.is_eq(),
            Self::NotEq => order.is_ne(),
            Self::Lt => order.is_lt(),
            Self::LtEq => order.is_le(),
            Self::Gt => order.is_gt(),
            Self::GtEq => order.is_ge(),
        }
    }

    /// The operator with its sides exchanged.
    pub(super) fn flipped(self) -> Self {
        match self {
            Self::Eq => Self::Eq,
            Self::NotEq => Self::NotEq,
            Self::Lt => Self::Gt,
            Self::LtEq => Self::GtEq,
            Self::Gt => Self::Lt,
            Self::GtEq => Self::LtEq,
        }
    }
}

/// A column, or some elements of a list, that a predicate tests.
///
/// ```
/// # fn main() -> marquetry::Result<()> {
/// use marquetry::{Predicate, all, any, col};
///
/// let _: Predicate = col("fare").gt_eq(20.0);
/// let _: Predicate = any("stops.list.element.name").eq("Harbour");
/// let _: Predicate = all("stops.list.element.lat").is_not_null();
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "a column is not a predicate: compare it with something"]
pub struct Column {
    pub(super) path: String,
    pub(super) elements: Option<Quantifier>,
    /// Which part of the values of a VARIANT is tested, and as which type.
    pub(super) part: Option<Box<VariantPart>>,
}

/// A part of the values of a VARIANT column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct VariantPart {
    pub(super) path: VariantPath,
    pub(super) data_type: DataType,
}

/// Which elements of a list must pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Quantifier {
    Any,
    All,
}

/// Names a column; a nested one by its dotted path, as in
/// [`Projection::names`](crate::schema::Projection::names).
pub fn col(path: impl Into<String>) -> Column {
    Column { path: path.into(), elements: None, part: None }
}

/// Quantifies over the elements of a list: at least one passes. A path may go below the list:
/// `any("orders.price")`.
pub fn any(list: impl Into<Column>) -> Column {
    Column { elements: Some(Quantifier::Any), ..list.into() }
}

/// Quantifies over the elements of a list: all pass, also those of an empty list.
pub fn all(list: impl Into<Column>) -> Column {
    Column { elements: Some(Quantifier::All), ..list.into() }
}

impl From<&str> for Column {
    fn from(path: &str) -> Self {
        col(path)
    }
}

impl From<String> for Column {
    fn from(path: String) -> Self {
        col(path)
    }
}
