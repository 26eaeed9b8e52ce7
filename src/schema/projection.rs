//! Selects columns: by name, by exact path, by column index or by field index.
//!
//! Called by `to_arrow` when a read is planned. The result, [`ProjectedChildren`], has the wanted
//! children of every group. A name is first the exact name of a field; only then do its dots
//! separate the names of nested fields. The intermediate nodes of lists and maps (`list`,
//! `element`, `key_value`) may be named or left out.
//! Trap: names may contain dots, may be empty, and may repeat.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::names::Named;
use super::nested::{self, Element, Group};
use super::node::{Node, Schema};
use crate::error::{Error, Result, quoted};
use crate::memory;

/// The columns that a read wants, and their order.
///
/// Fields are returned in the order in which they are first named, at every level of nesting; a
/// field that is named twice, or below a group that is named too, is read once. Fields inside lists
/// and maps can be chosen too: of a list of structs only the named fields are read, of a map always
/// the key. An empty projection reads no column, only the number of rows.
///
/// ```
/// use marquetry::schema::Projection;
///
/// let wanted = Projection::names(["id", "user.name", "tags"]);
/// assert_ne!(wanted, Projection::All);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Projection {
    /// Every column, in the order of the file.
    #[default]
    All,
    /// Fields by name, nested ones by their dotted path: see [`Projection::names`].
    Names(Vec<String>),
    /// Fields by the names on the way to them: see [`Projection::paths`].
    Paths(Vec<Vec<String>>),
    /// Columns by index, in the order of the file.
    Leaves(Vec<usize>),
    /// Top-level fields by index, in this order.
    Fields(Vec<usize>),
}

impl Projection {
    /// Every column, in the order of the file.
    pub fn all() -> Self {
        Self::All
    }

    /// Fields by name, nested ones by their dotted path: `user.name`.
    ///
    /// A field whose name is exactly the text wins over a path; so does, on the path, the longest
    /// name that contains a dot. If the elements of a list have a field with the name of the
    /// repeated node around them (`tags.list`), the field is meant: the list itself is `tags`.
    pub fn names<S: Into<String>>(names: impl IntoIterator<Item = S>) -> Self {
        Self::Names(names.into_iter().map(Into::into).collect())
    }

    /// Fields by the exact names on the path to them, for names that contain dots.
    pub fn paths<S: Into<String>, P: IntoIterator<Item = S>>(
        paths: impl IntoIterator<Item = P>,
    ) -> Self {
        let path = |path: P| path.into_iter().map(Into::into).collect();
        Self::Paths(paths.into_iter().map(path).collect())
    }

    /// Columns by their index among the leaves of the file, read in the order of the file.
    pub fn leaves(leaves: impl IntoIterator<Item = usize>) -> Self {
        Self::Leaves(leaves.into_iter().collect())
    }

    /// Top-level fields by index, in the order given.
    pub fn fields(fields: impl IntoIterator<Item = usize>) -> Self {
        Self::Fields(fields.into_iter().collect())
    }

    /// Resolves the projection against `schema`.
    ///
    /// # Errors
    /// `Usage` if a name, path or index does not exist, or a name is ambiguous.
    pub(super) fn resolve(&self, schema: &Schema) -> Result<Option<ProjectedChildren>> {
        match self {
            Self::Leaves(leaves) => {
                for &leaf in leaves {
                    schema.leaf_node(leaf)?;
                }
                let mut leaves = memory::copied(leaves)?;
                leaves.sort_unstable();
                Ok(Some(children_of_leaves(schema.root(), &leaves)?))
            }
            _ => self.resolve_in(schema.root()),
        }
    }

    /// Resolves the projection below `root`; `None` for all fields.
    pub(super) fn resolve_in<T: NamedTree>(&self, root: T) -> Result<Option<ProjectedChildren>> {
        let mut projected = ProjectedChildren::default();
        let mut path = Vec::new();
        match self {
            Self::All => return Ok(None),
            Self::Names(names) => {
                for name in names {
                    path.clear();
                    if !find_name(root, name, &mut path)? {
                        return Err(unknown(name, root));
                    }
                    projected.insert(&path)?;
                }
            }
            Self::Paths(paths) => {
                for names in paths {
                    path.clear();
                    if names.is_empty() || !find_path(root, names, &mut path)? {
                        return Err(unknown(&names.join("."), root));
                    }
                    projected.insert(&path)?;
                }
            }
            Self::Leaves(_) => {
                return Err(Error::usage(
                    "columns chosen by index are those of the file; with a target schema choose by name",
                ));
            }
            Self::Fields(fields) => {
                let len = root.len();
                for &field in fields {
                    if field >= len {
                        return Err(Error::usage(format_args!(
                            "there is no field {field}: the schema has {len}"
                        )));
                    }
                    projected.insert(&[field])?;
                }
            }
        }
        Ok(Some(projected))
    }
}

impl<S: Into<String>, const N: usize> From<[S; N]> for Projection {
    fn from(names: [S; N]) -> Self {
        Self::names(names)
    }
}

impl<S: Into<String>> From<Vec<S>> for Projection {
    fn from(names: Vec<S>) -> Self {
        Self::names(names)
    }
}

impl Schema {
    /// Finds the index of the leaf with `name`, by the rules of [`Projection::names`].
    ///
    /// # Errors
    /// `Usage` if there is none, or if it is a group of several columns.
    pub fn leaf_named(&self, name: &str) -> Result<usize> {
        let leaves = self.node_named(name)?.leaves();
        if leaves.len() != 1 {
            return Err(Error::usage(format_args!(
                "{name:?} stands for {} columns, not for one",
                leaves.len()
            )));
        }
        Ok(leaves.start)
    }

    /// Finds the node with `name`, by the rules of [`Projection::names`].
    ///
    /// # Errors
    /// `Usage` if there is none, or if there are several.
    pub fn node_named(&self, name: &str) -> Result<Node<'_>> {
        let mut path = Vec::new();
        if !find_name(self.root(), name, &mut path)? {
            return Err(unknown(name, self.root()));
        }
        let mut node = self.root();
        for position in path {
            node = node.child(position).expect("the path was found in this schema");
        }
        Ok(node)
    }
}

/// The wanted children of a group, in order; each whole, or with a selection below it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ProjectedChildren {
    list: Vec<ProjectedChild>,
    /// Position among the children → position in `list`.
    at: HashMap<usize, usize>,
}

/// A wanted child.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ProjectedChild {
    /// Position among the children of its group.
    pub(super) position: usize,
    /// The selection below it; `None` for all.
    pub(super) inner: Option<ProjectedChildren>,
}

impl ProjectedChildren {
    /// The wanted children, in order.
    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = &ProjectedChild> {
        self.list.iter()
    }

    /// The selection below the child at `position`; `None` for all of it, also if the child was not
    /// named.
    pub(super) fn inside(&self, position: usize) -> Option<&Self> {
        self.list.get(*self.at.get(&position)?)?.inner.as_ref()
    }

    /// The node at the end of a path alone; `None`, which is all, if the path is empty.
    pub(super) fn path_to(path: &[usize]) -> Result<Option<Self>> {
        let mut projected = Self::default();
        projected.insert(path)?;
        Ok((!path.is_empty()).then_some(projected))
    }

    /// Adds the node at the end of `path`, which names positions from here.
    fn insert(&mut self, path: &[usize]) -> Result<()> {
        let Some((&position, rest)) = path.split_first() else {
            return Ok(());
        };
        let whole = rest.is_empty();
        self.room()?;
        let slot = match self.at.entry(position) {
            Entry::Occupied(slot) => *slot.get(),
            Entry::Vacant(vacant) => {
                let slot = *vacant.insert(self.list.len());
                self.list.push(ProjectedChild { position, inner: (!whole).then(Self::default) });
                slot
            }
        };
        let Some(wanted) = self.list.get_mut(slot) else {
            return Ok(());
        };
        match &mut wanted.inner {
            inner if whole => *inner = None,
            Some(inner) => inner.insert(rest)?,
            None => {}
        }
        Ok(())
    }

    fn push(&mut self, position: usize, inner: Option<Self>) -> Result<()> {
        self.room()?;
        self.at.insert(position, self.list.len());
        self.list.push(ProjectedChild { position, inner });
        Ok(())
    }

    /// Makes room for a child.
    fn room(&mut self) -> Result<()> {
        self.at.try_reserve(1)?;
        memory::room(&mut self.list, 1)
    }
}

/// The children of `group` with a leaf of `leaves`, which are sorted.
fn children_of_leaves(group: Node<'_>, leaves: &[usize]) -> Result<ProjectedChildren> {
    let mut projected = ProjectedChildren::default();
    for (position, child) in group.children().enumerate() {
        let range = child.leaves();
        let from = leaves.partition_point(|&leaf| leaf < range.start);
        let to = leaves.partition_point(|&leaf| leaf < range.end);
        match leaves.get(from..to) {
            Some([]) | None => {}
            Some(_) if child.is_leaf() => projected.push(position, None)?,
            Some(below) => {
                projected.push(position, Some(children_of_leaves(child, below)?))?;
            }
        }
    }
    Ok(projected)
}

/// A tree with named nodes in which names are looked up: the schema of a file, or the wanted one.
pub(super) trait NamedTree: Copy {
    /// How many children there are.
    fn len(self) -> usize;
    /// The child at a position.
    fn child(self, position: usize) -> Option<Self>;
    /// The child with exactly this name.
    fn named(self, name: &str) -> Named;
    /// The names of the children.
    fn names(self) -> impl Iterator<Item = String>;
    /// Position of the child whose name may be omitted in a path.
    fn implied_child(self) -> Option<usize>;
    /// Whether rows have no such node: the repeated node of a list, which is neither the list nor
    /// its element.
    fn is_wrapper(self) -> bool;
}

impl NamedTree for Node<'_> {
    fn len(self) -> usize {
        self.children().count()
    }

    fn child(self, position: usize) -> Option<Self> {
        self.child_at(position)
    }

    fn named(self, name: &str) -> Named {
        self.child_named(name)
    }

    fn names(self) -> impl Iterator<Item = String> {
        self.children().map(|child| child.name().to_owned())
    }

    fn implied_child(self) -> Option<usize> {
        if self.is_root() || self.is_leaf() {
            return None;
        }
        // The repeated node of a list or map, and the element below it.
        let is_between =
            |group: Node<'_>| matches!(nested::group(group), Group::List(_) | Group::Map(_));
        (is_between(self) || self.is_wrapper()).then_some(0)
    }

    fn is_wrapper(self) -> bool {
        let parent = self.parent().filter(|parent| !parent.is_root()).map(nested::group);
        matches!(parent, Some(Group::List(list))
            if list.repeated == self && list.element == Element::Child)
    }
}

/// Finds the node named `text` below `group`, and leaves the positions on the path to it in `path`.
pub(super) fn find_name<T: NamedTree>(group: T, text: &str, path: &mut Vec<usize>) -> Result<bool> {
    // The whole text first, then the part before each dot, the longest first.
    let mut name = text;
    loop {
        if let Some(position) = unambiguous(group, name)? {
            path.push(position);
            let rest = text.get(name.len() + 1..);
            match (rest, group.child(position)) {
                (None, _) => {
                    let within = |child: T, path: &mut Vec<usize>| find_name(child, text, path);
                    return accept_child(group, position, path, within);
                }
                (Some(rest), Some(child)) if find_name(child, rest, path)? => return Ok(true),
                _ => path.pop(),
            };
        }
        match name.rfind('.').and_then(|dot| name.get(..dot)) {
            Some(shorter) => name = shorter,
            None => break,
        }
    }
    find_below_implied_child(group, path, |child, path| find_name(child, text, path))
}

/// Like [`find_name`], with the names on the way already apart.
fn find_path<T: NamedTree>(group: T, names: &[String], path: &mut Vec<usize>) -> Result<bool> {
    let Some((name, rest)) = names.split_first() else {
        return Ok(true);
    };
    if let Some(position) = unambiguous(group, name)? {
        path.push(position);
        match group.child(position) {
            Some(_) if rest.is_empty() => {
                let within = |child: T, path: &mut Vec<usize>| find_path(child, names, path);
                return accept_child(group, position, path, within);
            }
            Some(child) if find_path(child, rest, path)? => return Ok(true),
            _ => path.pop(),
        };
    }
    find_below_implied_child(group, path, |child, path| find_path(child, names, path))
}

/// Accepts the child at `position`, the last of `path`. Exception: the repeated node of a list; if
/// its element has a field of that name, the field is meant.
fn accept_child<T: NamedTree>(
    group: T,
    position: usize,
    path: &mut Vec<usize>,
    within: impl FnOnce(T, &mut Vec<usize>) -> Result<bool>,
) -> Result<bool> {
    if !group.child(position).is_some_and(NamedTree::is_wrapper) {
        return Ok(true);
    }
    path.pop();
    if !find_below_implied_child(group, path, within)? {
        path.push(position);
    }
    Ok(true)
}

fn find_below_implied_child<T: NamedTree>(
    group: T,
    path: &mut Vec<usize>,
    find: impl FnOnce(T, &mut Vec<usize>) -> Result<bool>,
) -> Result<bool> {
    let Some(position) = group.implied_child() else {
        return Ok(false);
    };
    let Some(child) = group.child(position) else {
        return Ok(false);
    };
    path.push(position);
    if find(child, path)? {
        return Ok(true);
    }
    path.pop();
    Ok(false)
}

fn unambiguous<T: NamedTree>(group: T, name: &str) -> Result<Option<usize>> {
    #[cfg(test)]
    crate::steps::add(1);
    match group.named(name) {
        Named::None => Ok(None),
        Named::One(position) => Ok(Some(position)),
        Named::Several(_) => {
            Err(Error::usage(format_args!("several fields are named {name:?}; choose by index")))
        }
    }
}

/// Parts of a path, from its beginning, that an error looks for in the schema.
const MAX_PARTS: usize = 100;

/// The error for an unknown name, with similar names.
#[cold]
pub(super) fn unknown<T: NamedTree>(name: &str, root: T) -> Error {
    let mut near = Vec::new();
    // Looking for each part of a very long path would take long.
    let long = name.match_indices('.').nth(MAX_PARTS).and_then(|(dot, _)| name.get(..dot));
    let mut parent = long.unwrap_or(name);
    while let Some((above, _)) = parent.rsplit_once('.') {
        parent = above;
        // The rest of a path, below the last field that exists.
        if let Some(group) = node_at(root, parent) {
            let rest = &name[parent.len() + 1..];
            near = near_names(rest, group);
            near.iter_mut().for_each(|near| *near = format!("{parent}.{near}"));
            break;
        }
    }
    if near.is_empty() {
        near = near_names(name, root);
    }
    let names: Vec<String> = near.into_iter().map(|name| format!("{name:?}")).collect();
    if names.is_empty() {
        Error::usage(format_args!("there is no field {}", quoted(name)))
    } else {
        Error::usage(format_args!(
            "there is no field {}; did you mean {}?",
            quoted(name),
            names.join(" or ")
        ))
    }
}

/// The names of the children of `group` that look like `name`, the nearest first.
fn near_names<T: NamedTree>(name: &str, group: T) -> Vec<String> {
    let mut near: Vec<(usize, String)> =
        group.names().filter_map(|other| Some((distance(name, &other)?, other))).collect();
    near.sort();
    near.truncate(NEAR_MISSES);
    near.into_iter().map(|(_, name)| name).collect()
}

/// The node called `name`, down to where its fields are; `None` if there is none.
fn node_at<T: NamedTree>(root: T, name: &str) -> Option<T> {
    let mut path = Vec::new();
    find_name(root, name, &mut path).ok().filter(|found| *found)?;
    let mut node = root;
    for position in path {
        node = node.child(position)?;
    }
    while let Some(position) = node.implied_child() {
        node = node.child(position)?;
    }
    Some(node)
}

/// How far apart two names are, letter case aside, if they are near: the edit distance.
fn distance(a: &str, b: &str) -> Option<usize> {
    if a.len() > LONGEST_COMPARED || b.len() > LONGEST_COMPARED {
        return None;
    }
    let (a, b) = (a.to_lowercase(), b.to_lowercase());
    let b: Vec<char> = b.chars().collect();
    // `row[j]` is the distance from what was read of `a` to the first j characters of `b`.
    let mut row: Vec<usize> = (0..=b.len()).collect();
    let mut len = 0;
    for x in a.chars() {
        len += 1;
        let mut diagonal = std::mem::replace(&mut row[0], len);
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    let distance = row[b.len()];
    (distance <= 1 + len.max(b.len()) / 4).then_some(distance)
}

/// Names that the error for an unknown one offers.
const NEAR_MISSES: usize = 3;

/// Longer names are not compared: a file may hold thousands of long ones.
const LONGEST_COMPARED: usize = 64;

#[cfg(test)]
mod tests;
