//! [`ChildLookup`] finds the children of the groups of a schema by name and by position.
//!
//! Used by `node`. An index of the names of a wide schema costs as much as a few scans over them,
//! and a read of few columns looks up few names. So the first lookups scan, and the index is built
//! once they have visited enough nodes to pay for it. What scans have found is remembered: a read
//! looks its names up twice, when they are given and when it is planned.
//! Trap: the time must not grow with the product of the sizes of the file's schema and the
//! projection.

use std::hash::BuildHasher;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use foldhash::quality::RandomState;
use hashbrown::HashTable;

/// The result of looking a name up among siblings.
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
    /// The result, if each of the siblings says whether it has the name.
    pub(super) fn among(siblings: impl Iterator<Item = bool>) -> Self {
        let mut equal = siblings.enumerate().filter(|(_, has_name)| *has_name);
        match (equal.next(), equal.next()) {
            (None, _) => Self::None,
            (Some((position, _)), None) => Self::One(position),
            (Some((position, _)), Some(_)) => Self::Several(position),
        }
    }

    /// The position of the only or first one.
    pub(super) fn first(self) -> Option<usize> {
        match self {
            Self::None => None,
            Self::One(position) | Self::Several(position) => Some(position),
        }
    }
}

/// Finds children of the groups of one schema.
#[derive(Default)]
pub(super) struct ChildLookup {
    /// Nodes that scans have visited.
    visited: AtomicUsize,
    /// The results of the last scans.
    found: Mutex<Vec<FoundChild>>,
    index: OnceLock<Names>,
}

/// The result of looking a name up among the children of a node.
struct FoundChild {
    parent: u32,
    name: Box<str>,
    named: Named,
}

impl FoundChild {
    fn answers(&self, parent: u32, name: &str) -> bool {
        self.parent == parent && *self.name == *name
    }
}

impl ChildLookup {
    /// The child of `parent` with exactly this name. Each of `siblings` says whether it has it;
    /// `nodes` and `of` are as in [`Names::new`].
    pub(super) fn child_named<'s>(
        &self,
        (parent, name): (u32, &str),
        siblings: impl Iterator<Item = bool>,
        nodes: usize,
        of: impl Fn(u32) -> (u32, &'s [u8]) + Copy,
    ) -> Named {
        if let Some(index) = self.index(nodes, of) {
            return index.find(parent, name.as_bytes(), of);
        }
        let found = || self.found.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = found().iter().find(|found| found.answers(parent, name)) {
            return found.named;
        }
        let mut visited = 0;
        let named = Named::among(siblings.inspect(|_| visited += 1));
        self.visited.fetch_add(visited, Ordering::Relaxed);
        if visited > REMEMBERED {
            let mut found = found();
            found.truncate(REMEMBERED - 1);
            found.insert(0, FoundChild { parent, name: name.into(), named });
        }
        named
    }

    /// The child of `parent` at a position; `nodes` and `of` are as in [`Names::new`].
    pub(super) fn child_at<'s>(
        &self,
        (parent, position): (u32, usize),
        siblings: impl Iterator<Item = u32>,
        nodes: usize,
        of: impl Fn(u32) -> (u32, &'s [u8]),
    ) -> Option<u32> {
        if let Some(index) = self.index(nodes, of) {
            return index.child_at(parent, position);
        }
        let mut visited = 0;
        let child = siblings.inspect(|_| visited += 1).nth(position);
        self.visited.fetch_add(visited, Ordering::Relaxed);
        child
    }

    /// The index, if it is there, or pays now.
    fn index<'s>(&self, nodes: usize, of: impl Fn(u32) -> (u32, &'s [u8])) -> Option<&Names> {
        if self.visited.load(Ordering::Relaxed) < MAX_SCANS * nodes {
            return self.index.get();
        }
        Some(self.index.get_or_init(|| Names::new(nodes, of)))
    }

    /// Bytes of memory that it holds, estimated.
    pub(super) fn heap_bytes(&self) -> usize {
        self.index.get().map_or(0, Names::heap_bytes)
    }
}

impl Clone for ChildLookup {
    fn clone(&self) -> Self {
        let visited = self.visited.load(Ordering::Relaxed).into();
        Self { visited, found: Mutex::default(), index: self.index.clone() }
    }
}

/// How many times the nodes of the schema are visited by scans, because the index costs about as
/// much (bench meta, "open and read").
const MAX_SCANS: usize = 8;

/// Maximum finds that are remembered: as many as there are scans of all nodes before the index is
/// made. Fewer siblings than that are scanned each time.
const REMEMBERED: usize = MAX_SCANS;

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
    /// Indexes nodes that are numbered depth-first. `of` returns the parent and the name of a node;
    /// it is not called for node 0, the root.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::SchemaElement;
    use crate::limits::Limits;
    use crate::schema::samples;
    use crate::schema::{Node, Physical, Schema};

    /// A tree of groups and leaves with few different names.
    fn random(rng: &mut fastrand::Rng) -> Schema {
        fn below(rng: &mut fastrand::Rng, depth: usize, out: &mut Vec<SchemaElement>) {
            let at = out.len();
            let name = *rng.choice(&["a", "b", "ab", "ba", "", "a.b", "\u{e9}"]).unwrap();
            out.push(samples::leaf(name, Physical::Int32));
            if depth == 0 || at > 0 && rng.bool() {
                return;
            }
            let children = rng.i32(0..16);
            for _ in 0..children {
                below(rng, depth - 1, out);
            }
            out[at] = SchemaElement { num_children: Some(children), ..samples::element(name) };
        }
        let mut elements = Vec::new();
        below(rng, 3, &mut elements);
        Schema::parse(elements, &Limits::default()).unwrap()
    }

    fn nodes(schema: &Schema) -> impl Iterator<Item = Node<'_>> {
        schema.nodes().map(|node| schema.node(node))
    }

    fn is_indexed(schema: &Schema) -> bool {
        schema.lookup.index.get().is_some()
    }

    #[test]
    fn scans_and_the_index_agree() {
        for seed in 0..300 {
            let mut rng = fastrand::Rng::with_seed(seed);
            let schema = random(&mut rng);
            let all: Vec<_> = nodes(&schema).collect();
            let names: Vec<_> = all.iter().map(|node| node.name()).chain(["c", "aa"]).collect();
            // From the first look-up, which scans, to those that an index answers.
            for round in 0..50 {
                let parent = *rng.choice(&all).unwrap();
                let name = *rng.choice(&names).unwrap();
                let found = parent.child_named(name);
                let naive: Vec<_> = parent
                    .children()
                    .enumerate()
                    .filter_map(|(i, child)| (child.name() == name).then_some(i))
                    .collect();
                let expected = match *naive {
                    [] => Named::None,
                    [one] => Named::One(one),
                    [first, ..] => Named::Several(first),
                };
                assert_eq!(found, expected, "seed {seed}, round {round}: {name:?}");
                let position = rng.usize(..10);
                assert_eq!(
                    parent.child_at(position),
                    parent.children().nth(position),
                    "seed {seed}, round {round}: {position}"
                );
            }
        }
    }

    #[test]
    fn few_names_need_no_index_and_many_build_one() {
        let fields = (0..1000)
            .map(|i| samples::col(samples::Required, Physical::Int32, &format!("column {i}")));
        let schema = samples::schema(fields);
        for i in [0, 500, 999] {
            assert_eq!(schema.field_named(&format!("column {i}")), Named::One(i));
        }
        let visited = || schema.lookup.visited.load(Ordering::Relaxed);
        assert_eq!(visited(), 3 * 1000, "scans");
        for i in [0, 500, 999] {
            assert_eq!(schema.field_named(&format!("column {i}")), Named::One(i));
        }
        assert_eq!(visited(), 3 * 1000, "what was found is remembered");
        assert!(!is_indexed(&schema));
        let copy = schema.clone();
        for i in 0..1000 {
            assert_eq!(schema.field_named(&format!("column {i}")), Named::One(i));
        }
        assert!(is_indexed(&schema) && !is_indexed(&copy));
        // No more nodes are visited.
        let scanned = visited();
        assert!(scanned <= (MAX_SCANS + 1) * 1001, "{scanned}");
        assert_eq!(schema.field_named("column"), Named::None);
        assert_eq!(visited(), scanned);
    }
}
