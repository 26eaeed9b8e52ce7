//! [`Shape`]: an Arrow field, and how its nodes follow from the levels of its leaves. Shredding and
//! assembly work from it alone.

use std::sync::Arc;

use arrow_schema::{DataType, FieldRef, SchemaRef};

/// One node of the Arrow schema, with the levels that decide where it is null, empty or there.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Shape {
    /// The Arrow field that this node becomes.
    pub field: FieldRef,
    /// The levels at which the node has a slot, and is present.
    pub levels: Levels,
    /// The kind of the node.
    pub kind: Kind,
}

/// The definition and repetition levels of a node.
///
/// A level entry (def, rep) of any leaf below the node *is a slot of the node* iff `def >= slot`
/// (and, for nodes inside lists, every list above starts or continues an element there); the slot
/// is *present* (not null) iff `def >= present`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Levels {
    /// Definition level at which the node has a slot: the `element` of the innermost list around
    /// it, 0 outside lists.
    pub slot: u16,
    /// Definition level at which the node is not null. Equal to that of its parent (or `slot`) if
    /// the node is required.
    ///
    /// Trap: the key of a map is OPTIONAL in some files, and counts here, though its field is not
    /// nullable: a null there is a fault of the file.
    pub present: u16,
    /// Repetition level of the innermost list around the node, 0 outside lists.
    pub rep: u16,
}

impl Levels {
    /// Whether a slot of the node may be null: because the node is OPTIONAL, or a struct around it
    /// is.
    pub(crate) fn may_be_null(self) -> bool {
        self.present > self.slot
    }
}

/// The kind of a [`Shape`].
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Kind {
    /// A leaf of the file, read as the data type of the field.
    Leaf {
        /// Index of the leaf, depth-first.
        leaf: usize,
    },
    /// Child nodes side by side. At least one of them reads a leaf; only where the file has a
    /// struct that is never null may all be missing. A struct without fields has its stand-in in
    /// the file as its one child, which the array does not have.
    Struct(Vec<Shape>),
    /// `List`, `LargeList`, `ListView`, `LargeListView` or `FixedSizeList`, by the data type of the
    /// field.
    List {
        /// The element.
        item: Box<Shape>,
        /// Definition level at which the list has an element: `present` + 1. The `slot` of the
        /// item.
        element: u16,
        /// Repetition level of the repeated node: an entry with a smaller one begins another list.
        /// The `rep` of the item.
        rep: u16,
    },
    /// As `List`; the item is the struct of key and value.
    Map {
        /// The struct of key and value, never null.
        entries: Box<Shape>,
        /// As for lists.
        element: u16,
        /// As for lists.
        rep: u16,
    },
    /// A field of the wanted schema that the file does not have: all null.
    Missing,
}

impl Shape {
    /// Calls `visit` with every leaf of the shape, depth-first, with its field.
    pub(crate) fn for_each_leaf(&self, visit: &mut impl FnMut(usize, &Self)) {
        match &self.kind {
            Kind::Leaf { leaf } => visit(*leaf, self),
            Kind::Struct(children) => children.iter().for_each(|c| c.for_each_leaf(visit)),
            Kind::List { item: child, .. } | Kind::Map { entries: child, .. } => {
                child.for_each_leaf(visit);
            }
            Kind::Missing => {}
        }
    }
}

/// The Arrow schema of a read, and for each of its fields how it follows from the leaves.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Mapping {
    /// The schema of the rows.
    pub schema: SchemaRef,
    /// One per field of the schema.
    pub(crate) shapes: Vec<Shape>,
}

impl Mapping {
    /// The leaves that are read, in the order of the shapes. No leaf is read twice.
    pub fn leaves(&self) -> Vec<usize> {
        let mut leaves = Vec::new();
        for shape in &self.shapes {
            shape.for_each_leaf(&mut |leaf, _| leaves.push(leaf));
        }
        leaves
    }
}

/// The type of a struct of these fields.
pub(super) fn struct_of(children: &[Shape]) -> DataType {
    DataType::Struct(children.iter().map(|child| Arc::clone(&child.field)).collect())
}

/// The type `parent` with its child fields taken from `kind`.
pub(super) fn with_children(parent: &DataType, kind: &Kind) -> DataType {
    match kind {
        Kind::Struct(children) => struct_of(children),
        Kind::List { item: child, .. } | Kind::Map { entries: child, .. } => {
            let child = Arc::clone(&child.field);
            match parent {
                DataType::LargeList(_) => DataType::LargeList(child),
                DataType::ListView(_) => DataType::ListView(child),
                DataType::LargeListView(_) => DataType::LargeListView(child),
                DataType::FixedSizeList(_, length) => DataType::FixedSizeList(child, *length),
                DataType::Map(_, sorted) => DataType::Map(child, *sorted),
                _ => DataType::List(child),
            }
        }
        Kind::Leaf { .. } | Kind::Missing => parent.clone(),
    }
}

/// The field of the elements of a list, or of the entries of a map.
pub(crate) fn element_of(data_type: &DataType) -> Option<&FieldRef> {
    match data_type {
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::ListView(item)
        | DataType::LargeListView(item)
        | DataType::FixedSizeList(item, _)
        | DataType::Map(item, _) => Some(item),
        _ => None,
    }
}
