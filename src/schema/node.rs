//! [`Schema`] holds the tree of a file, flattened in the order of the file.
//!
//! Spec: parquet.thrift, `SchemaElement`. It is parsed once when a file is opened; all other parts
//! of `schema` walk it.
//! The elements stay in the bytes of the footer ([`SchemaElements`]); a `Link` holds the place of
//! each in the tree. Both take 40 bytes a node together. Elements are decoded, and leaves described
//! ([`Leaf`]), only when asked for, so that opening a file with ten thousand columns allocates four
//! vectors.
//! Trap: the depth is limited here, once, so that every later walk may recurse, Arrow's own among
//! them.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use super::annotation::{self, Annotation};
use super::leaf::{Leaf, LeafPath, Physical};
use super::names::{ChildLookup, Named};
use crate::error::{Error, Result};
use crate::format::{
    ElementHead, FieldRepetitionType, SchemaElement, SchemaElementRef, SchemaElements, Type,
};
use crate::memory;

/// The schema of a file: a tree of named nodes whose leaves are the columns.
///
/// The schema of a file shares the bytes of its footer, and keeps them in memory.
///
/// ```
/// # fn main() -> marquetry::Result<()> {
/// use marquetry::Reader;
///
/// let reader = Reader::open("testdata/trips.parquet")?;
/// let schema = reader.metadata().schema();
/// print!("{}", schema.tree());
/// let leaf = schema.leaf(schema.leaf_named("tags.key_value.key")?)?;
/// assert_eq!((leaf.max_def, leaf.max_rep), (2, 1));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Schema {
    /// Depth-first, the root first. Never empty.
    pub(super) elements: SchemaElements,
    /// One per element.
    pub(super) links: Vec<Link>,
    /// Nodes of the top-level fields.
    pub(super) fields: Vec<u32>,
    /// Nodes of the leaves.
    pub(super) leaves: Vec<u32>,
    pub(super) lookup: ChildLookup,
}

/// The place of a node in the tree.
#[derive(Debug, Clone, Copy)]
pub(super) struct Link {
    /// The node above; the root is its own.
    pub(super) parent: u32,
    /// One past the last node below.
    pub(super) end: u32,
    /// Leaves before this node: the index of the first leaf at or below it.
    pub(super) leaf: u32,
    /// The nesting is capped below 256.
    pub(super) max_def: u8,
    pub(super) max_rep: u8,
    pub(super) is_leaf: bool,
    /// Whether a repetition from below the root down to this node is unknown, and so its levels.
    pub(super) flawed: bool,
}

impl Schema {
    /// The node above all fields.
    pub fn root(&self) -> Node<'_> {
        self.node(0)
    }

    /// The elements as the file lists them, depth-first, the root first, with their unknown fields.
    /// Each is decoded when the iterator reaches it.
    pub fn elements(&self) -> impl ExactSizeIterator<Item = SchemaElement> {
        self.nodes().map(|index| self.elements.get_owned(index))
    }

    pub(super) fn nodes(&self) -> Range<u32> {
        // The links of `parse` count them in 32 bits.
        0..self.elements.len().try_into().unwrap_or(u32::MAX)
    }

    /// How many top-level fields there are.
    #[cfg(test)]
    pub(crate) fn fields_len(&self) -> usize {
        self.fields.len()
    }

    /// The top-level field at `index`, or `None` if there are fewer.
    pub fn field(&self, index: usize) -> Option<Node<'_>> {
        self.fields.get(index).map(|&node| self.node(node))
    }

    /// The top-level fields in order.
    pub fn fields(&self) -> impl ExactSizeIterator<Item = Node<'_>> {
        self.fields.iter().map(|&node| self.node(node))
    }

    /// The top-level field with exactly this name.
    pub(crate) fn field_named(&self, name: &str) -> Named {
        self.root().child_named(name)
    }

    fn parent_and_name(&self, node: u32) -> (u32, &[u8]) {
        let node = self.node(node);
        (node.link().parent, node.name_bytes())
    }

    /// Number of leaves, which are the columns.
    pub fn leaves_len(&self) -> usize {
        self.leaves.len()
    }

    /// Describes all leaves.
    ///
    /// # Errors
    /// As [`Schema::leaf`]; `Limit(Memory)` if the system has no memory.
    pub(crate) fn leaves(&self) -> Result<Vec<Leaf>> {
        memory::try_collected((0..self.leaves_len()).map(|index| self.leaf(index)))
    }

    /// Describes the leaf at `index`, on demand.
    ///
    /// # Errors
    /// `Usage` if there are fewer leaves; `Unsupported` if its type, or a repetition on the path to
    /// it, is not one that this crate knows.
    pub fn leaf(&self, index: usize) -> Result<Leaf> {
        let node = self.leaf_node(index)?;
        node.check_levels()?;
        let physical = node.physical()?;
        let element = node.element();
        let (converted, field_id) = (element.converted_type, element.field_id);
        let Annotation { logical, ordered } = annotation::in_force(element, physical)
            .map_err(|e| e.at_column(node.path().dotted()))?;
        Ok(Leaf {
            index,
            path: node.path(),
            physical,
            logical,
            converted,
            ordered,
            max_def: node.max_def(),
            max_rep: node.max_rep(),
            nullable: node.repetition()? != Repetition::Required,
            field_id,
        })
    }

    /// The node of the leaf at `index`.
    ///
    /// # Errors
    /// `Usage` if there are fewer leaves.
    pub fn leaf_node(&self, index: usize) -> Result<Node<'_>> {
        match self.leaves.get(index) {
            Some(&node) => Ok(self.node(node)),
            None => Err(Error::usage(format_args!(
                "there is no column {index}: the file has {}",
                self.leaves.len()
            ))),
        }
    }

    /// Bytes of memory that it holds, about, without those of the footer.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.elements.heap_bytes()
            + self.links.capacity() * size_of::<Link>()
            + (self.fields.capacity() + self.leaves.capacity()) * size_of::<u32>()
            + self.lookup.heap_bytes()
    }

    pub(super) fn node(&self, index: u32) -> Node<'_> {
        Node { schema: self, index }
    }
}

impl fmt::Debug for Schema {
    /// The message form.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl PartialEq for Schema {
    /// Equal if all elements are, the root's name included.
    fn eq(&self, other: &Self) -> bool {
        self.elements == other.elements
    }
}

/// How often a node occurs in its parent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Repetition {
    /// Exactly once.
    Required,
    /// Once or not at all.
    Optional,
    /// Any number of times.
    Repeated,
}

/// A node of a [`Schema`]: the root, a group or a leaf. A cheap handle.
#[derive(Clone, Copy)]
pub struct Node<'a> {
    schema: &'a Schema,
    index: u32,
}

impl<'a> Node<'a> {
    /// The schema that the node belongs to.
    pub(crate) fn schema(self) -> &'a Schema {
        self.schema
    }

    /// The element as the file has it, decoded again by each call.
    pub fn element(self) -> SchemaElementRef<'a> {
        self.schema.elements.get(self.index)
    }

    /// The position of the element among those of the schema.
    pub(super) fn index(self) -> u32 {
        self.index
    }

    /// The properties of the element that need no decoding.
    pub(super) fn head(self) -> &'a ElementHead {
        self.schema.elements.head(self.index)
    }

    /// The name; it may be empty, and may contain dots.
    pub fn name(self) -> &'a str {
        self.schema.elements.name(self.index)
    }

    /// Whether this is the name.
    pub(super) fn is_named(self, name: &str) -> bool {
        self.schema.elements.is_named(self.index, name.as_bytes())
    }

    /// The name, which is UTF-8: to be compared.
    pub(super) fn name_bytes(self) -> &'a [u8] {
        self.schema.elements.name_bytes(self.index)
    }

    /// `SchemaElement::field_id`.
    pub(super) fn field_id(self) -> Option<i32> {
        self.head().has_field_id().then(|| self.element().field_id).flatten()
    }

    /// Whether the node is a column.
    pub fn is_leaf(self) -> bool {
        self.link().is_leaf
    }

    /// Whether the node is the root.
    pub(crate) fn is_root(self) -> bool {
        self.index == 0
    }

    /// How often the node occurs in its parent. The root is REQUIRED, and so is a node without a
    /// repetition.
    ///
    /// # Errors
    /// `Unsupported` if the number in the file is none of the three.
    pub fn repetition(self) -> Result<Repetition> {
        if self.is_root() {
            return Ok(Repetition::Required);
        }
        match self.head().repetition_type() {
            None | Some(FieldRepetitionType::Required) => Ok(Repetition::Required),
            Some(FieldRepetitionType::Optional) => Ok(Repetition::Optional),
            Some(FieldRepetitionType::Repeated) => Ok(Repetition::Repeated),
            Some(FieldRepetitionType::Unknown(_)) => Err(self.unknown_repetition()),
        }
    }

    #[cold]
    fn unknown_repetition(self) -> Error {
        let number = self.element().repetition_type.map_or(0, i32::from);
        let draft = if number == 3 { " (VECTOR in proposals for fixed-size lists)" } else { "" };
        let text = format_args!("repetition type {number}{draft} is not in the specification");
        Error::unsupported("repetition type", text).at_column(self.path().dotted())
    }

    /// Whether the node is known to be REPEATED. The root is not.
    pub(super) fn is_repeated(self) -> bool {
        !self.is_root() && self.head().repetition_type() == Some(FieldRepetitionType::Repeated)
    }

    /// Whether the node is a leaf of this physical type.
    pub(super) fn has_type(self, r#type: Type) -> bool {
        self.is_leaf() && self.head().r#type() == Some(r#type)
    }

    /// The physical type of a leaf.
    ///
    /// # Errors
    /// `Unsupported` if the number in the file is none of the eight; `Usage` if the node is a
    /// group.
    pub fn physical(self) -> Result<Physical> {
        let known = match self.head().r#type().filter(|_| self.is_leaf()) {
            Some(Type::Boolean) => Physical::Boolean,
            Some(Type::Int32) => Physical::Int32,
            Some(Type::Int64) => Physical::Int64,
            Some(Type::Int96) => Physical::Int96,
            Some(Type::Float) => Physical::Float,
            Some(Type::Double) => Physical::Double,
            Some(Type::ByteArray) => Physical::ByteArray,
            Some(Type::FixedLenByteArray) => {
                let length = self.element().type_length;
                let length = length.and_then(|length| usize::try_from(length).ok());
                Physical::FixedLenByteArray(length.expect("checked when the schema was parsed"))
            }
            Some(Type::Unknown(_)) => {
                let number = self.element().r#type.map_or(0, i32::from);
                return Err(Error::unsupported(
                    "physical type",
                    format_args!("physical type {number} is unknown"),
                )
                .at_column(self.path().dotted()));
            }
            None => {
                return Err(Error::usage(format_args!("{} is not a column", self.path())));
            }
        };
        Ok(known)
    }

    /// Highest definition level: OPTIONAL and REPEATED nodes from below the root down to this one.
    pub fn max_def(self) -> u16 {
        u16::from(self.link().max_def)
    }

    /// Highest repetition level: REPEATED nodes from below the root down to this one.
    pub fn max_rep(self) -> u16 {
        u16::from(self.link().max_rep)
    }

    /// The node above; the root has none.
    pub fn parent(self) -> Option<Self> {
        (!self.is_root()).then(|| self.schema.node(self.link().parent))
    }

    /// The child with exactly this name.
    pub(super) fn child_named(self, name: &str) -> Named {
        let schema = self.schema;
        let of = |node| schema.parent_and_name(node);
        let nodes = schema.links.len();
        let wanted = (self.index, name);
        match self.is_root() {
            // Their list is walked faster than their links.
            true => {
                let siblings = schema.fields().map(|node| node.is_named(name));
                schema.lookup.child_named(wanted, siblings, nodes, of)
            }
            false => {
                let siblings = self.children().map(|node| node.is_named(name));
                schema.lookup.child_named(wanted, siblings, nodes, of)
            }
        }
    }

    /// The child at a position.
    pub(super) fn child_at(self, position: usize) -> Option<Self> {
        if self.is_root() {
            return self.schema.field(position);
        }
        let schema = self.schema;
        let of = |node| schema.parent_and_name(node);
        let siblings = self.children().map(|node| node.index);
        let child =
            schema.lookup.child_at((self.index, position), siblings, schema.links.len(), of);
        child.map(|node| schema.node(node))
    }

    /// The nodes directly below, in order.
    pub fn children(self) -> impl Iterator<Item = Node<'a>> + Clone {
        Children { schema: self.schema, next: self.index + 1, end: self.link().end }
    }

    /// The indexes of the leaves at and below the node.
    pub fn leaves(self) -> Range<usize> {
        let after = self.schema.links.get(self.link().end as usize);
        let end = after.map_or(self.schema.leaves.len(), |after| after.leaf as usize);
        self.link().leaf as usize..end
    }

    /// The names from below the root to the node.
    pub fn path(self) -> LeafPath {
        let mut names = Vec::new();
        let mut node = self;
        while let Some(parent) = node.parent() {
            names.push(Arc::<str>::from(node.name()));
            node = parent;
        }
        names.reverse();
        LeafPath::new(names)
    }

    /// Fails if a repetition at or above the node is unknown.
    fn check_levels(self) -> Result<()> {
        let mut node = self;
        while node.link().flawed {
            node.repetition()?;
            node = node.schema.node(node.link().parent);
        }
        Ok(())
    }

    fn link(self) -> &'a Link {
        &self.schema.links[self.index as usize]
    }
}

impl PartialEq for Node<'_> {
    /// Equal if it is the same node of the same schema.
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.schema, other.schema) && self.index == other.index
    }
}

impl fmt::Debug for Node<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Node({} {:?})", self.index, self.name())
    }
}

/// The nodes directly below a node.
#[derive(Debug, Clone)]
pub(crate) struct Children<'a> {
    schema: &'a Schema,
    next: u32,
    end: u32,
}

impl<'a> Iterator for Children<'a> {
    type Item = Node<'a>;

    fn next(&mut self) -> Option<Node<'a>> {
        if self.next >= self.end {
            return None;
        }
        let node = self.schema.node(self.next);
        self.next = node.link().end;
        Some(node)
    }
}
