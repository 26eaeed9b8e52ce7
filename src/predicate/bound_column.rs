//! [`BoundColumn`] and [`BoundTest`]: a column that was found in a schema, and a test whose
//! literals have the type of the column.

use arrow_array::ArrayRef;
use arrow_schema::DataType;

use super::column::{Op, Quantifier, VariantPart};
use super::covering::Covering;
use super::set::ValueSet;
use super::value::LiteralValue;
use crate::geo::{Edges, Rectangle};
use crate::schema::Leaf;
use crate::schema::convert::ReadConversion;

/// A test with values of the type of its column.
#[derive(Debug, Clone)]
pub(super) enum BoundTest {
    /// Never true or false: compared with null.
    Null,
    /// The same of every value, null of null.
    Constant(bool),
    IsNull,
    IsEmpty,
    Compare {
        op: Op,
        value: LiteralValue,
        /// The same as one value of Arrow.
        scalar: ArrayRef,
    },
    /// Equal to one value of a type that has no order here. Negated for "not equal".
    Same {
        scalar: ArrayRef,
        negated: bool,
    },
    In {
        values: Vec<LiteralValue>,
        set: ValueSet,
        has_null: bool,
    },
    /// Both must hold.
    Both(Box<[Self; 2]>),
    StartsWith(Vec<u8>),
    Like {
        prefix: String,
        pattern: String,
    },
    /// Compares the string in lowercase.
    Lowered(Box<Self>),
    /// The box around a geometry meets this one.
    Intersects(Rectangle),
}

impl BoundTest {
    /// Its truth for a null.
    pub(super) fn of_null(&self) -> Option<bool> {
        match self {
            Self::IsNull => Some(true),
            Self::Both(both) => {
                both.iter().all(|test| test.of_null() == Some(true)).then_some(true)
            }
            _ => None,
        }
    }

    /// Whether more is asked than which values are null.
    pub(super) fn asks_for_values(&self) -> bool {
        !matches!(self, Self::Null | Self::Constant(_) | Self::IsNull | Self::IsEmpty)
    }
}

/// A column that a predicate tests.
#[derive(Debug, Clone)]
pub(super) struct BoundColumn {
    /// As it was named.
    pub(super) path: String,
    pub(super) elements: Option<Quantifier>,
    pub(super) path_steps: Vec<PathStep>,
    /// The type of the tested values: without dictionaries and runs.
    pub(super) data_type: DataType,
    /// The edges of its geometries, if it has any.
    pub(super) edges: Edges,
    /// The tested part of a VARIANT.
    pub(super) part: Option<Box<VariantPart>>,
    pub(super) origin: ColumnOrigin,
    pub(super) read: ReadOf,
}

/// The columns that must be read for a named column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ReadOf {
    /// The named column.
    Named,
    /// Nothing: the file does not have it, and it is null in every row.
    Nothing,
    /// The whole column with this name: the file does not have the named one, but it has the list
    /// around it, whose lengths are needed.
    Around(String),
}

/// A step from an array into one inside of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PathStep {
    /// A column of the batch or a field of a struct.
    Field(String),
    /// The elements of a list, or the entries of a map.
    Elements,
}

/// Where a column comes from.
#[derive(Debug, Clone)]
pub(super) enum ColumnOrigin {
    /// Not stated.
    Unknown,
    /// The file does not have it: all null.
    Missing,
    /// Leaves of the file.
    File(Box<BoundLeaf>),
}

/// A column of a file.
#[derive(Debug, Clone)]
pub(super) struct BoundLeaf {
    /// The leaf that is tested, or one below the struct, list or map that is.
    pub(super) leaf: Leaf,
    /// Whether the metadata of the leaf hold for the tested values.
    pub(super) facts: FactsHold,
    /// How the values of the tested leaf become those of Arrow, and its bounds with them; `None` if
    /// bounds and bloom filters are not to be asked.
    pub(super) conversion: Option<ReadConversion>,
    /// Definition level from which on it is not null.
    pub(super) present: u64,
    /// Definition level from which on the tested list or map has elements.
    pub(super) element: Option<u64>,
    /// The lists on the way, outermost first.
    pub(super) lists: Vec<ListLevels>,
    /// All leaves that the tests need read.
    pub(super) needed: Vec<usize>,
    /// The boxes of the geometries that a rectangle is compared with, as columns.
    pub(super) covering: Option<Box<Covering>>,
}

/// Whether facts of a leaf are facts of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FactsHold {
    Always,
    /// Where this leaf is null in all rows: it holds the values that are not shredded.
    WhereNull(usize),
    Never,
}

/// The definition levels of a list on the way to a column.
#[derive(Debug, Clone, Copy)]
pub(super) struct ListLevels {
    /// From here on it has a slot.
    pub(super) slot: u64,
    /// From here on it is not null.
    pub(super) present: u64,
    /// From here on it has an element.
    pub(super) element: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whether_it_is_null_is_true_of_a_null() {
        let both = |one, other| BoundTest::Both(Box::new([one, other])).of_null();
        assert_eq!(BoundTest::IsEmpty.of_null(), None);
        assert_eq!(both(BoundTest::IsNull, BoundTest::IsNull), Some(true));
        assert_eq!(both(BoundTest::IsNull, BoundTest::IsEmpty), None);
        assert_eq!(both(BoundTest::IsEmpty, BoundTest::IsEmpty), None);
    }
}
