//! [`Bound`]: a predicate that is bound to a schema. Its columns are found, and its literals are
//! values of their types.
//!
//! Every column is a path through the Arrow schema (fields by name, elements of lists), and for a
//! file also its [`ColumnOrigin`]: the leaf that has its metadata, and the levels at which it is
//! null. Evaluation follows the path, pruning uses the origin.

use std::sync::Arc;

pub(super) use super::bound_column::{
    BoundColumn, BoundLeaf, BoundTest, ColumnOrigin, FactsHold, ListLevels, PathStep, ReadOf,
};
use super::computed::BoundComputed;
use super::expression::Function;
use crate::schema::Projection;
use crate::schema::convert::ReadConversion;

/// A predicate that was checked against a schema, and can prune and be evaluated. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Bound {
    pub(super) root: Arc<BoundNode>,
    pub(super) columns: Arc<[BoundColumn]>,
    /// Whether columns are named, not numbered, in the projection.
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

/// The probe of a bloom filter of a leaf.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BloomProbe {
    /// Index of the leaf.
    pub leaf: usize,
    /// Hashes of all literals that the predicate compares it with, sorted.
    /// [`Layout::ranges`](crate::stats::bloom::BloomLayout::ranges) returns the bytes of the filter
    /// that decide for them.
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

    /// The leaves whose statistics and indexes may prove something, by index, sorted: those that
    /// the predicate needs, and the boxes of geometries.
    pub(crate) fn leaves_with_facts(&self) -> Vec<usize> {
        let mut leaves = self.columns();
        leaves.extend(
            self.columns
                .iter()
                .flat_map(|column| match &column.origin {
                    ColumnOrigin::File(file) => file.covering.as_ref().map(|of| of.leaves()),
                    _ => None,
                })
                .flatten(),
        );
        leaves.sort_unstable();
        leaves.dedup();
        leaves
    }

    /// The paths of the columns that the predicate needs, as written, each once.
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

    /// Without the bounds and bloom filters of strings: they are those of the stored bytes, and the
    /// strings that are read have other bytes where these are not UTF-8. Counts of nulls stay, and
    /// dictionaries, because their entries are read as the values are.
    pub(crate) fn without_bounds_of_strings(mut self) -> Self {
        let mut columns = self.columns.to_vec();
        for column in &mut columns {
            if let ColumnOrigin::File(file) = &mut column.origin
                && matches!(file.conversion, Some(ReadConversion::Bytes { utf8: true, .. }))
            {
                file.conversion = None;
            }
        }
        self.columns = columns.into();
        self
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

    /// The columns that must be read for [`Bound::evaluate`], with the options that the predicate
    /// was bound with.
    pub(crate) fn projection(&self) -> Projection {
        if self.by_name {
            return Projection::names(self.names_to_read());
        }
        Projection::leaves(self.columns())
    }

    /// The predicates that must all be true: one for each side of the outermost `and`s, in the
    /// order of the predicate's text.
    #[cfg(test)]
    pub(crate) fn conjuncts(&self) -> Vec<Self> {
        let of = |root: &Arc<BoundNode>| Self { root: Arc::clone(root), ..self.clone() };
        match &*self.root {
            BoundNode::And(operands) => operands.iter().map(of).collect(),
            _ => vec![self.clone()],
        }
    }

    /// The leaves that functions of the user look at.
    pub(crate) fn function_leaves(&self) -> Vec<usize> {
        fn visit(node: &BoundNode, columns: &mut Vec<usize>) {
            match node {
                BoundNode::Function(of_function, _) => columns.extend(of_function),
                BoundNode::Not(inner) => visit(inner, columns),
                BoundNode::And(operands) | BoundNode::Or(operands) => {
                    operands.iter().for_each(|operand| visit(operand, columns));
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
    /// Whether it is evaluated only for rows that pass the other conjuncts.
    pub(super) fn is_last(&self) -> bool {
        match self {
            Self::Function(_, function) => function.is_last,
            Self::Computed(computed) => computed.may_fail,
            Self::Not(inner) => inner.is_last(),
            Self::And(operands) | Self::Or(operands) => {
                operands.iter().any(|operand| operand.is_last())
            }
            Self::Constant(_) | Self::Test(..) => false,
        }
    }

    pub(super) fn for_each_column(&self, visit: &mut impl FnMut(usize)) {
        match self {
            Self::Constant(_) => {}
            Self::Test(column, _) => visit(*column),
            Self::Not(inner) => inner.for_each_column(visit),
            Self::And(operands) | Self::Or(operands) => {
                operands.iter().for_each(|operand| operand.for_each_column(visit));
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
            Self::And(operands) | Self::Or(operands) => {
                operands.iter().for_each(|operand| operand.for_each_test(visit));
            }
        }
    }
}
