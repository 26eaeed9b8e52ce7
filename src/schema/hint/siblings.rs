//! Finds where in the file the shapes of a hint come from.

use std::collections::HashMap;

use crate::schema::nested::{self, Element, Group};
use crate::schema::node::{Node, Repetition};
use crate::schema::shape::{Kind, Shape};

/// Where in the file a shape comes from.
#[derive(Clone, Copy)]
pub(super) struct HintPlace<'a> {
    pub(super) node: Node<'a>,
    /// Whether the shape is an element of the list that the REPEATED of the node makes.
    pub(super) is_element: bool,
}

impl<'a> HintPlace<'a> {
    pub(super) fn new(node: Node<'a>) -> Self {
        Self { node, is_element: false }
    }

    pub(super) fn inside(node: Node<'a>) -> Self {
        Self { node, is_element: true }
    }

    pub(super) fn group(self) -> Group<'a> {
        nested::group(self.node)
    }

    /// Where the elements of a list come from.
    pub(super) fn item(self) -> Option<Self> {
        if !self.is_element && matches!(self.node.repetition(), Ok(Repetition::Repeated)) {
            return Some(Self::inside(self.node));
        }
        let Group::List(list) = self.group() else {
            return None;
        };
        Some(match (list.element, list.repeated.children().next()) {
            (Element::Child, Some(child)) => Self::new(child),
            _ => Self::inside(list.repeated),
        })
    }
}

/// A name among siblings, and how many before it have the same one.
pub(super) type NumberedName<'a> = (&'a str, usize);

/// Numbers equal names, so that each has one of its own.
pub(super) fn numbered<'a>(
    names: impl Iterator<Item = &'a str>,
) -> impl Iterator<Item = NumberedName<'a>> {
    let mut seen = HashMap::new();
    names.map(move |name| {
        let same = seen.entry(name).or_insert(0);
        *same += 1;
        (name, *same - 1)
    })
}

/// The children of a group, found by the fields that are read of them.
pub(super) struct Siblings<'a> {
    /// In the order of their leaves.
    pub(super) children: Vec<(Node<'a>, NumberedName<'a>)>,
}

impl<'a> Siblings<'a> {
    pub(super) fn from_group(group: Node<'a>) -> Self {
        let names = numbered(group.children().map(Node::name));
        let children = group.children().zip(names);
        Self { children: children.filter(|(node, _)| !node.leaves().is_empty()).collect() }
    }

    /// The child that `shape` is, or is a part of.
    pub(super) fn find(&self, shape: &Shape) -> Option<(Node<'a>, NumberedName<'a>)> {
        let leaf = first_leaf(shape)?;
        let after = self.children.partition_point(|(node, _)| node.leaves().start <= leaf);
        let found = *self.children.get(after.checked_sub(1)?)?;
        found.0.leaves().contains(&leaf).then_some(found)
    }
}

/// The first leaf that is read of a shape.
pub(super) fn first_leaf(shape: &Shape) -> Option<usize> {
    match &shape.kind {
        Kind::Leaf { leaf } => Some(*leaf),
        Kind::Struct(children) => children.iter().find_map(first_leaf),
        Kind::List { item: child, .. } | Kind::Map { entries: child, .. } => first_leaf(child),
        Kind::Missing => None,
    }
}
