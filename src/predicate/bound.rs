//! [`Bound`]: a predicate held against a schema. Its columns are found, its literals are values of
//! their types.
//!
//! Every column is a way through the Arrow schema (fields by name, elements of lists), and for a
//! file also its [`ColumnOrigin`]: the leaf that tells of it, with the levels that decide.
//! Evaluation goes the first way, pruning looks at the second.

use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_schema::DataType;

use super::computed::BoundComputed;
use super::expression::{Function, Op, Quantifier, VariantPart};
use super::set::ValueSet;
use super::value::LiteralValue;
use crate::geo::{Edges, Rectangle};
use crate::schema::convert::ReadConversion;
use crate::schema::{Leaf, Projection};

/// A predicate that was checked against a schema: it can be pruned by, and evaluated. Cheap to
/// clone.
#[derive(Debug, Clone)]
pub struct Bound {
    pub(super) root: Arc<BoundNode>,
    pub(super) columns: Arc<[BoundColumn]>,
    /// Columns are named, not numbered, in what is to be read.
    pub(super) by_name: bool,
}

/// A predicate whose columns are numbers and whose literals are values.
#[derive(Debug, Clone)]
pub(super) enum BoundNode {
    Constant(Option<bool>),
    Test(usize, BoundTest),
    Not(Arc<Self>),
    And(Vec<Arc<Self>>),
    Or(Vec<Arc<Self>>),
    Function(Vec<usize>, Function),
    Computed(Box<BoundComputed>),
}

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
    /// Of the text in small letters.
    Lowered(Box<Self>),
    /// The box around a geometry meets this one.
    Intersects(Rectangle),
}

impl BoundTest {
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
    /// The type of what is tested: of the values, where they are in dictionaries or runs.
    pub(super) data_type: DataType,
    /// The edges of its geometries, if it has any.
    pub(super) edges: Edges,
    /// What is tested of a VARIANT.
    pub(super) part: Option<Box<VariantPart>>,
    pub(super) origin: ColumnOrigin,
    pub(super) read: ReadOf,
}

/// What must be read of a column that is named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ReadOf {
    /// What the name says.
    Named,
    /// Nothing: the file does not have it, and it is null in every row.
    Nothing,
    /// The whole column with this name around it: the file does not have what is named, but has the
    /// list that it would lie in, and how many elements that has must be known.
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
    /// Whether what the metadata say of the leaf holds for what is tested.
    pub(super) facts: FactsHold,
    /// How the values of the tested leaf become those of Arrow.
    pub(super) conversion: Option<ReadConversion>,
    /// Definition level from which on it is not null.
    pub(super) present: u64,
    /// Definition level from which on the tested list or map has elements.
    pub(super) element: Option<u64>,
    /// The lists on the way, outermost first.
    pub(super) lists: Vec<ListLevels>,
    /// All leaves that the tests need read.
    pub(super) needed: Vec<usize>,
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

/// What a bloom filter of a leaf can be asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BloomProbe {
    /// Index of the leaf.
    pub leaf: usize,
    /// Hashes of all literals that the predicate looks for in it, sorted.
    /// [`Layout::ranges`](crate::stats::bloom::BloomLayout::ranges) says which bytes of the filter
    /// answer for them.
    pub hashes: Vec<u64>,
}

impl Bound {
    /// A predicate of these columns, for batches.
    pub(super) fn new(root: BoundNode, columns: Vec<BoundColumn>) -> Self {
        Self { root: Arc::new(root), columns: columns.into(), by_name: true }
    }

    /// The leaves of the file that the predicate needs, by index, sorted. Empty where there is no
    /// file.
    pub(crate) fn columns(&self) -> Vec<usize> {
        let mut leaves = Vec::new();
        self.root.for_each_column(&mut |column| {
            if let Some(ColumnOrigin::File(file)) =
                self.columns.get(column).map(|column| &column.origin)
            {
                leaves.extend_from_slice(&file.needed);
            }
        });
        leaves.sort_unstable();
        leaves.dedup();
        leaves
    }

    /// The names of the columns that the predicate needs, as they were said, each once.
    pub fn paths(&self) -> Vec<&str> {
        let mut paths = Vec::new();
        self.root.for_each_column(&mut |column| {
            let path = self.columns.get(column).map_or("", |column| &column.path);
            if !paths.contains(&path) {
                paths.push(path);
            }
        });
        paths
    }

    /// The names of what must be read.
    fn names_to_read(&self) -> Vec<&str> {
        let mut names = Vec::new();
        self.root.for_each_column(&mut |column| {
            let name = self.columns.get(column).and_then(|column| match &column.read {
                ReadOf::Named => Some(column.path.as_str()),
                ReadOf::Nothing => None,
                ReadOf::Around(name) => Some(name.as_str()),
            });
            names.extend(name);
        });
        names
    }

    /// What must be read for [`Bound::evaluate`], with the options that the predicate was bound
    /// with.
    pub(crate) fn projection(&self) -> Projection {
        if self.by_name {
            return Projection::names(self.names_to_read());
        }
        Projection::leaves(self.columns())
    }

    /// The predicates all of which must be true: one for each side of the outermost `and`s, in the
    /// order in which they were said.
    #[cfg(test)]
    pub(crate) fn conjuncts(&self) -> Vec<Self> {
        let of = |root: &Arc<BoundNode>| Self { root: Arc::clone(root), ..self.clone() };
        match &*self.root {
            BoundNode::And(parts) => parts.iter().map(of).collect(),
            _ => vec![self.clone()],
        }
    }

    /// The leaves that functions of the user look at.
    pub(crate) fn function_leaves(&self) -> Vec<usize> {
        fn visit(node: &BoundNode, columns: &mut Vec<usize>) {
            match node {
                BoundNode::Function(of_function, _) => columns.extend(of_function),
                BoundNode::Not(inner) => visit(inner, columns),
                BoundNode::And(parts) | BoundNode::Or(parts) => {
                    parts.iter().for_each(|part| visit(part, columns));
                }
                BoundNode::Constant(_) | BoundNode::Test(..) | BoundNode::Computed(_) => {}
            }
        }
        let mut columns = Vec::new();
        visit(&self.root, &mut columns);
        let origins = columns.into_iter().filter_map(|column| self.columns.get(column));
        let needed = |column: &BoundColumn| match &column.origin {
            ColumnOrigin::File(file) => file.needed.clone(),
            _ => Vec::new(),
        };
        origins.flat_map(needed).collect()
    }
}

impl BoundNode {
    /// Whether it is evaluated only for rows that pass the other parts of a conjunction.
    pub(super) fn is_last(&self) -> bool {
        match self {
            Self::Function(_, function) => function.is_last,
            Self::Computed(computed) => computed.may_fail,
            Self::Not(inner) => inner.is_last(),
            Self::And(parts) | Self::Or(parts) => parts.iter().any(|part| part.is_last()),
            Self::Constant(_) | Self::Test(..) => false,
        }
    }

    pub(super) fn for_each_column(&self, visit: &mut impl FnMut(usize)) {
        match self {
            Self::Constant(_) => {}
            Self::Test(column, _) => visit(*column),
            Self::Not(inner) => inner.for_each_column(visit),
            Self::And(parts) | Self::Or(parts) => {
                parts.iter().for_each(|part| part.for_each_column(visit));
            }
            Self::Function(columns, _) => columns.iter().for_each(|column| visit(*column)),
            Self::Computed(computed) => computed.columns.iter().for_each(|column| visit(*column)),
        }
    }

    /// Calls `visit` with every test and its column.
    pub(super) fn for_each_test(&self, visit: &mut impl FnMut(usize, &BoundTest)) {
        match self {
            Self::Constant(_) | Self::Function(..) | Self::Computed(_) => {}
            Self::Test(column, test) => visit(*column, test),
            Self::Not(inner) => inner.for_each_test(visit),
            Self::And(parts) | Self::Or(parts) => {
                parts.iter().for_each(|part| part.for_each_test(visit));
            }
        }
    }
}
