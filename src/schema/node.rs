//! The tree of a schema: flat, in the order of the file.
//!
//! Spec: parquet.thrift, `SchemaElement`. Parsed once when a file is opened; all other parts of `schema` walk it.
//! Layout: the elements stay where thrift put them; beside each stands a `Link` with its place in the tree. Leaves are
//! described ([`Leaf`]) only when asked for, so that opening a file with ten thousand columns allocates three vectors.
//! Trap: the depth is capped here, once; every later walk may recurse because of it, Arrow's own among them.

use std::fmt;
use std::hash::BuildHasher;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use foldhash::quality::RandomState;
use hashbrown::HashTable;

use super::annotation::{self, Annotation};
use super::{Leaf, LeafPath, Physical};
use crate::error::{Error, LimitKind, Result, Spec};
use crate::format::{ConvertedType, FieldRepetitionType, LogicalType, SchemaElement, Type};
use crate::limits::Limits;

/// The schema of a file: a tree of named nodes whose leaves are the columns.
#[derive(Clone)]
pub struct Schema {
    /// Depth-first, the root first. Never empty.
    elements: Vec<SchemaElement>,
    /// One per element.
    links: Vec<Link>,
    /// Nodes of the top-level fields.
    fields: Vec<u32>,
    /// Nodes of the leaves.
    leaves: Vec<u32>,
    names: OnceLock<Names>,
}

/// The place of a node in the tree.
#[derive(Debug, Clone, Copy)]
struct Link {
    /// The node above; the root is its own.
    parent: u32,
    /// One past the last node below.
    end: u32,
    /// Leaves before this node: the index of the first leaf at or below it.
    leaf: u32,
    max_def: u16,
    max_rep: u16,
    is_leaf: bool,
    /// Whether a repetition from below the root down to this node is unknown: its levels cannot be told.
    flawed: bool,
}

/// The children of all groups by name and by position, made when first asked for.
#[derive(Clone)]
struct Names {
    state: RandomState,
    /// Nodes, by the group that they are in and their names; of equal names, the first.
    table: HashTable<u32>,
    /// Those of them that have siblings with the same name, sorted.
    repeated: Vec<u32>,
    /// Nodes, group by group.
    children: Vec<u32>,
    /// For each node, where its children begin among them; and where the last ones end.
    starts: Vec<u32>,
    /// For each node, its position among its siblings.
    positions: Vec<u32>,
}

/// What a name among siblings stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Named {
    /// No sibling has the name.
    None,
    /// Exactly one: its position among the siblings.
    One(usize),
    /// More than one; the position of the first.
    Several(usize),
}

impl Schema {
    /// The schema that `elements` list depth-first.
    ///
    /// A type or repetition that this crate does not know is accepted here, and refused when the column is asked for. A
    /// missing repetition is REQUIRED, as peers read it.
    ///
    /// # Errors
    /// `Malformed(Schema)` if the elements are not exactly one tree, a child count is negative, an element is neither leaf
    /// nor group, or a FIXED_LEN_BYTE_ARRAY has no length. `Limit(Nesting)` if the tree is deeper than `limits.nesting`;
    /// `Limit(Memory)` if the paths of all leaves would take a quarter of `limits.memory_bytes`.
    pub fn parse(elements: Vec<SchemaElement>, limits: &Limits) -> Result<Self> {
        if elements.is_empty() {
            return Err(malformed("the schema has no element, not even a root"));
        }
        let mut links = Vec::<Link>::with_capacity(elements.len());
        let (mut fields, mut leaves) = (Vec::new(), Vec::new());
        let mut leaves_before = 0;
        // Each leaf is told by its whole path: few bytes of a deep and wide tree stand for many.
        let (mut path_bytes, max_path_bytes) = (0u64, limits.memory_bytes / 4);
        // The groups around the next element, with how many children each still waits for.
        let mut open = Vec::<Open>::new();
        for (index, element) in (0u32..).zip(&elements) {
            let parent = match open.last_mut() {
                Some(group) => {
                    group.waits_for -= 1;
                    group.node
                }
                None if index == 0 => 0,
                None => {
                    let found = elements.len();
                    return Err(Error::mismatch(
                        Spec::Schema,
                        "elements in the tree",
                        index,
                        found,
                    ));
                }
            };
            let mut depth = open.last().map_or(0, |group| group.depth);
            if depth > limits.nesting.min(Limits::MAX_NESTING) {
                return Err(too_deep(limits.nesting));
            }
            let mut link = Link {
                parent,
                end: index + 1,
                leaf: leaves_before,
                max_def: 0,
                max_rep: 0,
                is_leaf: false,
                flawed: false,
            };
            if let Some(parent) = links.get(parent as usize) {
                link.is_leaf = is_leaf(element)?;
                link.descend_from(parent, element)?;
            }
            if open.len() == 1 {
                fields.push(index);
            }
            let around = open.last().map_or(0, |group| group.path_bytes);
            let path = around + (element.name.len() + size_of::<Arc<str>>()) as u64;
            if link.is_leaf {
                leaves.push(index);
                leaves_before += 1;
                path_bytes += path;
                if path_bytes > max_path_bytes {
                    return Err(paths_too_long(leaves_before, max_path_bytes));
                }
            } else {
                depth += 1 + usize::from(is_bare_list(element, elements.get(parent as usize)));
                let waits_for = child_count(element)?;
                open.push(Open { node: index, waits_for, path_bytes: path, depth });
            }
            links.push(link);
            while let Some(group) = open.pop_if(|group| group.waits_for == 0) {
                if let Some(link) = links.get_mut(group.node as usize) {
                    link.end = index + 1;
                }
            }
        }
        if let Some(group) = open.last() {
            let name = elements.get(group.node as usize).map_or("", |element| &element.name);
            return Err(malformed(format_args!(
                "the schema ends early: group {name:?} lacks {} of its children",
                group.waits_for
            )));
        }
        Ok(Self { elements, links, fields, leaves, names: OnceLock::new() })
    }

    /// The node above all fields.
    pub fn root(&self) -> Node<'_> {
        self.node(0)
    }

    /// The elements as the file lists them, depth-first, the root first.
    pub fn elements(&self) -> &[SchemaElement] {
        &self.elements
    }

    /// How many top-level fields there are.
    pub fn fields_len(&self) -> usize {
        self.fields.len()
    }

    /// The top-level field at `index`, if there are so many.
    pub fn field(&self, index: usize) -> Option<Node<'_>> {
        self.fields.get(index).map(|&node| self.node(node))
    }

    /// The top-level fields in order.
    pub fn fields(&self) -> impl ExactSizeIterator<Item = Node<'_>> {
        self.fields.iter().map(|&node| self.node(node))
    }

    /// The top-level field with exactly this name.
    ///
    /// The first call hashes all names; later ones cost one look-up.
    pub fn field_named(&self, name: &str) -> Named {
        self.child_named(0, name)
    }

    /// The child of a node with exactly this name.
    fn child_named(&self, parent: u32, name: &str) -> Named {
        let names = self.names();
        let hash = names.state.hash_one((parent, name));
        let is_same = |node: &u32| self.is_child(*node, parent, name);
        let position = |node: u32| names.positions.get(node as usize).map_or(0, |at| *at as usize);
        match names.table.find(hash, is_same) {
            None => Named::None,
            Some(node) if names.repeated.binary_search(node).is_ok() => {
                Named::Several(position(*node))
            }
            Some(node) => Named::One(position(*node)),
        }
    }

    /// The child of a node at a position.
    fn child_at(&self, parent: u32, position: usize) -> Option<Node<'_>> {
        let names = self.names();
        let start = *names.starts.get(parent as usize)? as usize;
        let end = *names.starts.get(parent as usize + 1)? as usize;
        let node = names.children.get(start..end)?.get(position)?;
        Some(self.node(*node))
    }

    fn names(&self) -> &Names {
        self.names.get_or_init(|| Names::new(self))
    }

    fn is_child(&self, node: u32, parent: u32, name: &str) -> bool {
        let link = self.links.get(node as usize);
        link.is_some_and(|link| link.parent == parent) && self.node(node).name() == name
    }

    /// How many leaves, and so columns, there are.
    pub fn leaves_len(&self) -> usize {
        self.leaves.len()
    }

    /// The description of the leaf at `index`, made on demand.
    ///
    /// # Errors
    /// `Usage` if there are fewer leaves; `Unsupported` if its type, or a repetition on the way to it, is not one that this
    /// crate knows.
    pub fn leaf(&self, index: usize) -> Result<Leaf> {
        let node = self.leaf_node(index)?;
        node.check_levels()?;
        let physical = node.physical()?;
        let Annotation { logical, ordered } = annotation::in_force(node.element(), physical)
            .map_err(|e| e.at_column(node.path().dotted()))?;
        Ok(Leaf {
            index,
            path: node.path(),
            physical,
            logical: logical.map(std::borrow::Cow::into_owned),
            converted: node.element().converted_type,
            ordered,
            max_def: node.max_def(),
            max_rep: node.max_rep(),
            nullable: node.repetition()? != Repetition::Required,
            field_id: node.element().field_id,
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

    /// Bytes of memory that it holds, about.
    pub fn heap_bytes(&self) -> usize {
        let names = self.elements.iter().map(|element| element.name.capacity()).sum::<usize>();
        let table = self.names.get().map_or(0, Names::heap_bytes);
        self.elements.capacity() * size_of::<SchemaElement>()
            + self.links.capacity() * size_of::<Link>()
            + (self.fields.capacity() + self.leaves.capacity()) * size_of::<u32>()
            + names
            + table
    }

    fn node(&self, index: u32) -> Node<'_> {
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

impl Names {
    fn new(schema: &Schema) -> Self {
        let nodes = schema.links.len();
        // The root is its own parent, and nobody's child.
        let below = || (0u32..).zip(&schema.links).skip(1);
        let mut starts = vec![0; nodes + 1];
        for (_, link) in below() {
            starts[link.parent as usize + 1] += 1;
        }
        for at in 0..nodes {
            starts[at + 1] += starts[at];
        }
        let mut next = starts.clone();
        let mut children = vec![0; nodes.saturating_sub(1)];
        let mut positions = vec![0; nodes];
        let state = RandomState::default();
        let hash_of = |node: u32| {
            let parent = schema.links.get(node as usize).map_or(0, |link| link.parent);
            state.hash_one((parent, schema.node(node).name()))
        };
        let mut table = HashTable::with_capacity(nodes);
        let mut repeated = Vec::new();
        for (node, link) in below() {
            let at = &mut next[link.parent as usize];
            children[*at as usize] = node;
            positions[node as usize] = *at - starts[link.parent as usize];
            *at += 1;
            let (hash, name) = (hash_of(node), schema.node(node).name());
            let is_same = |other: &u32| schema.is_child(*other, link.parent, name);
            match table.find(hash, is_same) {
                Some(&first) => repeated.push(first),
                None => {
                    table.insert_unique(hash, node, |&node| hash_of(node));
                }
            }
        }
        repeated.sort_unstable();
        Self { state, table, repeated, children, starts, positions }
    }

    fn heap_bytes(&self) -> usize {
        let numbers = self.repeated.capacity()
            + self.children.capacity()
            + self.starts.capacity()
            + self.positions.capacity();
        self.table.allocation_size() + numbers * size_of::<u32>()
    }
}

/// A group whose children are not all there yet.
struct Open {
    node: u32,
    waits_for: u32,
    /// Bytes of the path to it.
    path_bytes: u64,
    /// How deep it is nested, itself counted: at least as deep as the Arrow type will be.
    depth: usize,
}

impl Link {
    /// Counts the levels of `element` on top of those of its parent.
    fn descend_from(&mut self, parent: &Self, element: &SchemaElement) -> Result<()> {
        let (def, rep) = match element.repetition_type {
            None | Some(FieldRepetitionType::Required) => (0, 0),
            Some(FieldRepetitionType::Optional) => (1, 0),
            Some(FieldRepetitionType::Repeated) => (1, 1),
            Some(FieldRepetitionType::Unknown(_)) => {
                self.flawed = true;
                (0, 0)
            }
        };
        self.flawed |= parent.flawed;
        // The nesting is capped far below.
        let too_many = || too_deep(usize::from(u16::MAX));
        self.max_def = parent.max_def.checked_add(def).ok_or_else(too_many)?;
        self.max_rep = parent.max_rep.checked_add(rep).ok_or_else(too_many)?;
        Ok(())
    }
}

/// Whether an element below the root is a leaf, with what a leaf needs.
fn is_leaf(element: &SchemaElement) -> Result<bool> {
    let SchemaElement { r#type, num_children, name, .. } = element;
    match (r#type, num_children) {
        // Some writers give leaves a child count of 0, others give groups a type.
        (Some(Type::FixedLenByteArray), None | Some(0)) => match element.type_length {
            Some(0..) => Ok(true),
            Some(length) => Err(Error::mismatch(
                Spec::Schema,
                "type_length of a FIXED_LEN_BYTE_ARRAY",
                "at least 0",
                length,
            )
            .at_column(name.as_str())),
            None => {
                Err(malformed("a FIXED_LEN_BYTE_ARRAY has no type_length").at_column(name.as_str()))
            }
        },
        (Some(_), None | Some(0)) => Ok(true),
        (_, Some(_)) => Ok(false),
        (None, None) => {
            Err(malformed("an element has neither type nor num_children").at_column(name.as_str()))
        }
    }
}

fn child_count(group: &SchemaElement) -> Result<u32> {
    let count = group.num_children.unwrap_or(0);
    u32::try_from(count).map_err(|_| {
        Error::mismatch(Spec::Schema, "num_children", "at least 0", count)
            .at_column(group.name.as_str())
    })
}

/// Whether a group becomes a list and a struct: it is repeated, and no LIST or MAP is around it to be the list.
fn is_bare_list(group: &SchemaElement, parent: Option<&SchemaElement>) -> bool {
    let is_list = |parent: &SchemaElement| {
        let is_logical = matches!(parent.logical_type, Some(LogicalType::List | LogicalType::Map));
        let is_converted = matches!(
            parent.converted_type,
            Some(ConvertedType::List | ConvertedType::Map | ConvertedType::MapKeyValue)
        );
        (is_logical || is_converted) && parent.num_children == Some(1)
    };
    group.repetition_type == Some(FieldRepetitionType::Repeated) && !parent.is_some_and(is_list)
}

#[cold]
fn too_deep(levels: usize) -> Error {
    let most = Limits::MAX_NESTING;
    let (levels, advice) = if levels < most {
        (levels, format!("Limits::nesting can be raised to {most}"))
    } else {
        (most, "no deeper one can be read, because every level takes stack".to_owned())
    };
    Error::limit(
        LimitKind::Nesting,
        format_args!("the schema is nested deeper than {levels} levels; {advice}"),
    )
}

#[cold]
fn paths_too_long(leaves: u32, allowed: u64) -> Error {
    Error::limit(
        LimitKind::Memory,
        format_args!(
            "the paths of the first {leaves} columns take more than {allowed} bytes, a quarter of Limits::memory_bytes; raise it to read on"
        ),
    )
}

#[cold]
fn malformed(message: impl fmt::Display) -> Error {
    Error::malformed(Spec::Schema, message)
}

/// How often a node stands in its parent.
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
    pub fn schema(self) -> &'a Schema {
        self.schema
    }

    /// The element as the file has it.
    pub fn element(self) -> &'a SchemaElement {
        &self.schema.elements[self.index as usize]
    }

    /// The name; may be empty, may hold dots.
    pub fn name(self) -> &'a str {
        &self.element().name
    }

    /// Whether the node is a column.
    pub fn is_leaf(self) -> bool {
        self.link().is_leaf
    }

    /// Whether the node is the root.
    pub fn is_root(self) -> bool {
        self.index == 0
    }

    /// How often the node stands in its parent. The root is REQUIRED, and so is a node that does not say.
    ///
    /// # Errors
    /// `Unsupported` if the number in the file is none of the three.
    pub fn repetition(self) -> Result<Repetition> {
        if self.is_root() {
            return Ok(Repetition::Required);
        }
        match self.element().repetition_type {
            None | Some(FieldRepetitionType::Required) => Ok(Repetition::Required),
            Some(FieldRepetitionType::Optional) => Ok(Repetition::Optional),
            Some(FieldRepetitionType::Repeated) => Ok(Repetition::Repeated),
            Some(FieldRepetitionType::Unknown(number)) => Err(Error::unsupported(
                "repetition type",
                format_args!("repetition type {number} is unknown"),
            )
            .at_column(self.path().dotted())),
        }
    }

    /// The physical type of a leaf.
    ///
    /// # Errors
    /// `Unsupported` if the number in the file is none of the eight; `Usage` if the node is a group.
    pub fn physical(self) -> Result<Physical> {
        let element = self.element();
        let known = match element.r#type.filter(|_| self.is_leaf()) {
            Some(Type::Boolean) => Physical::Boolean,
            Some(Type::Int32) => Physical::Int32,
            Some(Type::Int64) => Physical::Int64,
            Some(Type::Int96) => Physical::Int96,
            Some(Type::Float) => Physical::Float,
            Some(Type::Double) => Physical::Double,
            Some(Type::ByteArray) => Physical::ByteArray,
            Some(Type::FixedLenByteArray) => {
                // Checked when the schema was parsed.
                let length = element.type_length.and_then(|length| usize::try_from(length).ok());
                Physical::FixedLenByteArray(length.unwrap_or(0))
            }
            Some(Type::Unknown(number)) => {
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
        self.link().max_def
    }

    /// Highest repetition level: REPEATED nodes from below the root down to this one.
    pub fn max_rep(self) -> u16 {
        self.link().max_rep
    }

    /// The node above; the root has none.
    pub fn parent(self) -> Option<Self> {
        (!self.is_root()).then(|| self.schema.node(self.link().parent))
    }

    /// The child with exactly this name.
    pub(super) fn child_named(self, name: &str) -> Named {
        self.schema.child_named(self.index, name)
    }

    /// The child at a position.
    pub(super) fn child_at(self, position: usize) -> Option<Self> {
        self.schema.child_at(self.index, position)
    }

    /// The nodes directly below, in order.
    pub fn children(self) -> Children<'a> {
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
pub struct Children<'a> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;
    use crate::schema::samples::{self, Optional, Repeated, Required, col, group, list, schema};

    fn parse(elements: Vec<SchemaElement>) -> Result<Schema> {
        Schema::parse(elements, &Limits::default())
    }

    /// A group that claims this many children.
    fn claims(name: &str, children: i32) -> SchemaElement {
        SchemaElement { num_children: Some(children), ..samples::element(name) }
    }

    fn leaf(name: &str) -> SchemaElement {
        samples::leaf(name, Physical::Int32)
    }

    #[test]
    fn levels_leaves_and_paths_of_the_dremel_document() {
        // README.md, "Nested Encoding", and the Dremel paper, figure 2.
        let schema = schema([
            col(Required, Physical::Int64, "DocId"),
            group(
                Optional,
                "Links",
                [
                    col(Repeated, Physical::Int64, "Backward"),
                    col(Repeated, Physical::Int64, "Forward"),
                ],
            ),
            group(
                Repeated,
                "Name",
                [
                    group(
                        Repeated,
                        "Language",
                        [
                            col(Required, Physical::ByteArray, "Code"),
                            col(Optional, Physical::ByteArray, "Country"),
                        ],
                    ),
                    col(Optional, Physical::ByteArray, "Url"),
                ],
            ),
        ]);
        let expected = [
            ("DocId", 0, 0, false),
            ("Links.Backward", 2, 1, true),
            ("Links.Forward", 2, 1, true),
            ("Name.Language.Code", 2, 2, false),
            ("Name.Language.Country", 3, 2, true),
            ("Name.Url", 2, 1, true),
        ];
        assert_eq!(schema.leaves_len(), expected.len());
        for (index, (path, max_def, max_rep, nullable)) in expected.into_iter().enumerate() {
            let leaf = schema.leaf(index).unwrap();
            assert_eq!(leaf.path.dotted(), path);
            assert_eq!((leaf.max_def, leaf.max_rep), (max_def, max_rep), "{path}");
            assert_eq!((leaf.index, leaf.nullable), (index, nullable), "{path}");
        }
        assert_eq!(schema.leaf(6).unwrap_err().kind(), ErrorKind::Usage);
        let leaves: Vec<_> = schema.fields().map(Node::leaves).collect();
        assert_eq!(leaves, [0..1, 1..3, 3..6]);
        assert_eq!(schema.root().leaves(), 0..6);
        assert_eq!(schema.root().children().count(), 3);
    }

    #[test]
    fn odd_but_readable_trees() {
        // A leaf that says 0 children, a group that also has a type, groups without children.
        let elements = vec![
            claims("root", 4),
            SchemaElement { num_children: Some(0), ..leaf("a") },
            SchemaElement { num_children: Some(1), ..leaf("g") },
            leaf("b"),
            claims("empty", 0),
            SchemaElement { repetition_type: None, ..leaf("") },
        ];
        let schema = parse(elements).unwrap();
        let names: Vec<_> = schema.fields().map(Node::name).collect();
        assert_eq!(names, ["a", "g", "empty", ""]);
        assert_eq!(schema.leaves_len(), 3);
        assert_eq!(schema.field(2).unwrap().leaves(), 2..2);
        assert!(!schema.leaf(2).unwrap().nullable, "no repetition is REQUIRED");

        let root_only = parse(vec![samples::element("root")]).unwrap();
        assert_eq!((root_only.fields_len(), root_only.leaves_len()), (0, 0));
        let empty_root = parse(vec![claims("root", 0)]).unwrap();
        assert_eq!(empty_root.root().children().count(), 0);
    }

    #[test]
    fn broken_trees_are_malformed() {
        let fixed = |type_length| SchemaElement {
            type_length,
            ..samples::leaf("f", Physical::FixedLenByteArray(1))
        };
        let broken = [
            vec![],
            vec![claims("root", 1)],
            vec![claims("root", i32::MAX), leaf("a")],
            vec![claims("root", 1), leaf("a"), leaf("b")],
            vec![claims("root", 0), leaf("a")],
            vec![samples::element("root"), leaf("a")],
            vec![claims("root", -1)],
            vec![claims("root", 1), claims("g", -1)],
            vec![claims("root", 1), SchemaElement { num_children: Some(-1), ..leaf("a") }],
            vec![claims("root", 1), claims("g", 2), leaf("a")],
            vec![claims("root", 1), samples::element("neither")],
            vec![claims("root", 1), fixed(None)],
            vec![claims("root", 1), fixed(Some(-1))],
        ];
        for elements in broken {
            let error = parse(elements.clone()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Malformed(Spec::Schema), "{elements:?}");
        }
        parse(vec![claims("root", 1), fixed(Some(0))]).unwrap();
    }

    #[test]
    fn depth_is_capped() {
        let nested = |depth: usize| {
            let mut elements = vec![claims("g", 1); depth];
            elements.push(leaf("a"));
            parse(elements)
        };
        assert_eq!(nested(208).unwrap().leaf(0).unwrap().path.names().len(), 208);
        for depth in [209, 100_000] {
            let error = nested(depth).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Limit(LimitKind::Nesting));
            let text = "deeper than 208 levels; Limits::nesting can be raised to 224";
            assert!(error.to_string().contains(text), "{error}");
        }
        let limits = Limits { nesting: usize::MAX, ..Limits::default() };
        let raised = |depth: usize| {
            let mut elements = vec![claims("g", 1); depth];
            elements.push(leaf("a"));
            Schema::parse(elements, &limits)
        };
        raised(Limits::MAX_NESTING).unwrap();
        for depth in [225, 70_000] {
            let error = raised(depth).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Limit(LimitKind::Nesting));
            let text = "deeper than 224 levels; no deeper one can be read";
            assert!(error.to_string().contains(text), "{error}");
        }
    }

    #[test]
    fn a_repeated_group_counts_twice_unless_it_is_that_of_a_list() {
        let repeated = SchemaElement { repetition_type: Some(Repeated), ..claims("r", 1) };
        let list = |logical_type| SchemaElement { logical_type, ..claims("l", 1) };
        let nested = |groups: &[SchemaElement], times: usize| {
            let mut elements = vec![claims("g", 1); 2];
            elements.extend(groups.iter().cloned().cycle().take(groups.len() * times));
            elements.push(leaf("a"));
            parse(elements)
        };
        nested(std::slice::from_ref(&repeated), 103).unwrap();
        nested(std::slice::from_ref(&repeated), 104).unwrap_err();
        let lists = [list(Some(LogicalType::List)), repeated.clone()];
        nested(&lists, 103).unwrap();
        nested(&lists, 104).unwrap_err();
        nested(&[list(None), repeated], 69).unwrap_err();
    }

    #[test]
    fn paths_of_a_deep_and_wide_tree_are_bounded() {
        // 100 names of 1,000 bytes above 10,000 leaves: 300 KB that stand for 1 GB.
        let parse = |leaves: usize, memory_bytes: u64| {
            let mut elements = vec![claims("root", 1)];
            elements.extend(vec![claims(&"g".repeat(1_000), 1); 100]);
            elements.last_mut().unwrap().num_children = Some(leaves as i32);
            elements.extend(vec![leaf("a"); leaves]);
            Schema::parse(elements, &Limits { memory_bytes, ..Limits::default() })
        };
        assert_eq!(parse(100, 64 << 20).unwrap().leaves_len(), 100);
        let error = parse(10_000, 64 << 20).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Limit(LimitKind::Memory));
        parse(10_000, 8 << 30).unwrap();
    }

    #[test]
    fn unknown_types_and_repetitions_fail_only_when_asked_for() {
        let unknown = FieldRepetitionType::Unknown(-7);
        let schema = parse(vec![
            claims("root", 3),
            leaf("a"),
            SchemaElement { r#type: Some(Type::Unknown(-7)), ..leaf("b") },
            SchemaElement { repetition_type: Some(unknown), ..claims("g", 1) },
            leaf("c"),
        ])
        .unwrap();
        schema.leaf(0).unwrap();
        assert_eq!(schema.leaf(1).unwrap_err().kind(), ErrorKind::Unsupported("physical type"));
        assert_eq!(schema.leaf(2).unwrap_err().kind(), ErrorKind::Unsupported("repetition type"));
    }

    #[test]
    fn fields_by_name() {
        let names = ["a", "b", "a", "", "a.b", "A", "a"];
        let schema = schema(names.map(|name| col(Required, Physical::Int32, name)));
        for (name, expected) in [
            ("a", Named::Several(0)),
            ("b", Named::One(1)),
            ("", Named::One(3)),
            ("a.b", Named::One(4)),
            ("A", Named::One(5)),
            ("B", Named::None),
        ] {
            assert_eq!(schema.field_named(name), expected, "{name:?}");
        }
    }

    #[test]
    fn random_trees_are_read_back_or_refused() {
        for seed in 0..2000 {
            let mut rng = fastrand::Rng::with_seed(seed);
            let mut elements = vec![claims("root", rng.i32(-1..4))];
            for _ in 0..rng.usize(..12) {
                let mut element = leaf("x");
                element.r#type = rng.bool().then_some(Type::from(rng.i32(-1..9)));
                element.num_children = rng.bool().then(|| rng.i32(-1..4));
                element.type_length = rng.bool().then(|| rng.i32(-1..4));
                element.repetition_type =
                    rng.bool().then(|| FieldRepetitionType::from(rng.i32(0..4)));
                elements.push(element);
            }
            let Ok(schema) = parse(elements.clone()) else {
                continue;
            };
            // Every node is reached exactly once from the root.
            let mut reached = 0;
            let mut leaves = 0;
            let mut stack = vec![schema.root()];
            while let Some(node) = stack.pop() {
                reached += 1;
                leaves += usize::from(node.is_leaf());
                stack.extend(node.children());
                let below = node.children().map(|child| child.leaves().len()).sum::<usize>();
                assert_eq!(node.leaves().len(), below + usize::from(node.is_leaf()), "{seed}");
            }
            assert_eq!((reached, leaves), (elements.len(), schema.leaves_len()), "seed {seed}");
            for index in 0..leaves {
                let _ = schema.leaf(index);
            }
        }
    }

    #[test]
    fn list_levels() {
        let schema = schema([list(Optional, "a", col(Optional, Physical::Int32, "element"))]);
        let leaf = schema.leaf(0).unwrap();
        assert_eq!((leaf.max_def, leaf.max_rep), (3, 1));
        assert_eq!(leaf.path.dotted(), "a.list.element");
    }
}
