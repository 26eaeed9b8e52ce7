//! [`Lookup`]: the children of the groups of a schema, by name and by position.
//!
//! Used by `projection` and `target`. The index is built when it is first asked for.

use std::hash::BuildHasher;
use std::sync::OnceLock;

use foldhash::quality::RandomState;
use hashbrown::HashTable;

use super::node::Node;

/// What a name among siblings stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Named {
    /// No sibling has the name.
    None,
    /// Exactly one: its position among the siblings.
    One(usize),
    /// More than one; the position of the first.
    Several(usize),
}

impl Named {
    /// What a name stands for, when each of the siblings says whether it has it.
    pub(super) fn among(siblings: impl Iterator<Item = bool>) -> Self {
        let mut equal = siblings.enumerate().filter(|(_, has_name)| *has_name);
        match (equal.next(), equal.next()) {
            (None, _) => Self::None,
            (Some((position, _)), None) => Self::One(position),
            (Some((position, _)), Some(_)) => Self::Several(position),
        }
    }
}

/// Finds children of the groups of one schema.
#[derive(Clone, Default)]
pub(super) struct Lookup {
    index: OnceLock<Names>,
}

impl Lookup {
    /// The child of `parent` with exactly this name.
    pub(super) fn child_named(&self, parent: Node<'_>, name: &str) -> Named {
        let of = |node| parent_and_name(parent.schema().node(node));
        self.index(parent).find(parent.index(), name.as_bytes(), of)
    }

    /// The child of `parent` at a position.
    pub(super) fn child_at<'a>(&self, parent: Node<'a>, position: usize) -> Option<Node<'a>> {
        let child = self.index(parent).child_at(parent.index(), position);
        child.map(|node| parent.schema().node(node))
    }

    /// The index of the schema of `node`.
    fn index(&self, node: Node<'_>) -> &Names {
        let of = |of| parent_and_name(node.schema().node(of));
        self.index.get_or_init(|| Names::new(node.schema().nodes().len(), of))
    }

    /// Bytes of memory that it holds, estimated.
    pub(super) fn heap_bytes(&self) -> usize {
        self.index.get().map_or(0, Names::heap_bytes)
    }
}

fn parent_and_name(node: Node<'_>) -> (u32, &[u8]) {
    // The root, which has none, is not asked for.
    (node.parent().map_or(0, Node::index), node.name_bytes())
}

/// The children of all groups by name and by position.
#[derive(Clone)]
struct Names {
    state: RandomState,
    /// Node numbers, hashed by parent and name. Of siblings with one name, only the first.
    table: HashTable<u32>,
    /// The nodes of `table` that have siblings with the same name, sorted.
    repeated: Vec<u32>,
    /// The children of all groups, group by group.
    children: Vec<u32>,
    /// For each node, where its children begin in `children`; and the end of the last ones.
    starts: Vec<u32>,
    /// For each node, its position among its siblings.
    positions: Vec<u32>,
}

impl Names {
    /// Of nodes numbered depth-first. `of` gives the parent and the name of a node; it is not
    /// called for node 0, the root.
    fn new<'s>(nodes: usize, of: impl Fn(u32) -> (u32, &'s [u8])) -> Self {
        // The root is no child.
        let below = || (0u32..).take(nodes).skip(1);
        let mut starts = vec![0; nodes + 1];
        for node in below() {
            starts[of(node).0 as usize + 1] += 1;
        }
        for at in 0..nodes {
            starts[at + 1] += starts[at];
        }
        let mut next = starts.clone();
        let mut children = vec![0; nodes.saturating_sub(1)];
        let mut positions = vec![0; nodes];
        let state = RandomState::default();
        let mut table = HashTable::with_capacity(nodes);
        let mut repeated = Vec::new();
        for node in below() {
            let (parent, name) = of(node);
            let at = &mut next[parent as usize];
            children[*at as usize] = node;
            positions[node as usize] = *at - starts[parent as usize];
            *at += 1;
            match table.find(state.hash_one((parent, name)), |&other| of(other) == (parent, name)) {
                Some(&first) => repeated.push(first),
                None => {
                    let hash = |&node: &u32| state.hash_one(of(node));
                    table.insert_unique(hash(&node), node, hash);
                }
            }
        }
        repeated.sort_unstable();
        Self { state, table, repeated, children, starts, positions }
    }

    /// The child of `parent` with exactly this name; `of` as in [`Names::new`].
    fn find<'s>(&self, parent: u32, name: &[u8], of: impl Fn(u32) -> (u32, &'s [u8])) -> Named {
        let hash = self.state.hash_one((parent, name));
        let position = |node: u32| self.positions.get(node as usize).map_or(0, |at| *at as usize);
        match self.table.find(hash, |&node| of(node) == (parent, name)) {
            None => Named::None,
            Some(node) if self.repeated.binary_search(node).is_ok() => {
                Named::Several(position(*node))
            }
            Some(node) => Named::One(position(*node)),
        }
    }

    /// The child of `parent` at a position.
    fn child_at(&self, parent: u32, position: usize) -> Option<u32> {
        let start = *self.starts.get(parent as usize)? as usize;
        let end = *self.starts.get(parent as usize + 1)? as usize;
        self.children.get(start..end)?.get(position).copied()
    }

    /// Bytes of memory that it holds, estimated.
    fn heap_bytes(&self) -> usize {
        let numbers = self.repeated.capacity()
            + self.children.capacity()
            + self.starts.capacity()
            + self.positions.capacity();
        self.table.allocation_size() + numbers * size_of::<u32>()
    }
}
