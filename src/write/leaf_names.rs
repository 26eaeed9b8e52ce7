//! [`LeafNames`]: which leaves the pattern of a setting names.

use crate::error::Result;
use crate::memory;
use crate::schema::Leaf;

/// The leaves of a schema by their paths, and by the names of the columns that they are in.
pub(crate) struct LeafNames<'a> {
    leaves: &'a [Leaf],
    /// By leaf.
    paths: Vec<String>,
    /// Leaves in the order of their paths.
    by_path: Vec<usize>,
    /// Leaves in the order of the names of their columns.
    by_column: Vec<usize>,
}

impl<'a> LeafNames<'a> {
    pub(crate) fn new(leaves: &'a [Leaf]) -> Result<Self> {
        let paths: Vec<String> = memory::collected(leaves.iter().map(|leaf| leaf.path.dotted()))?;
        let mut by_path: Vec<usize> = memory::collected(0..leaves.len())?;
        by_path.sort_unstable_by_key(|leaf| (paths.get(*leaf), *leaf));
        let mut by_column: Vec<usize> = memory::collected(0..leaves.len())?;
        by_column.sort_unstable_by_key(|leaf| (leaves.get(*leaf).map(column), *leaf));
        Ok(Self { leaves, paths, by_path, by_column })
    }

    /// The leaves that a pattern names, in which `*` is any text: by their path, or by the name of
    /// their column. A pattern that is a name by itself stands for no other: names may have `*`.
    pub(crate) fn named(&self, pattern: &str) -> Result<Vec<usize>> {
        let by_path = equal(&self.by_path, pattern, |leaf| self.path(leaf));
        let by_column =
            equal(&self.by_column, pattern, |leaf| self.leaves.get(leaf).map_or("", column));
        let mut found = memory::copied(by_path)?;
        memory::append(&mut found, by_column)?;
        if found.is_empty() && pattern.contains('*') {
            let all = self.leaves.iter().enumerate().filter(|(at, leaf)| {
                matches_pattern(pattern, self.path(*at)) || matches_pattern(pattern, column(leaf))
            });
            return memory::collected(all.map(|(at, _)| at));
        }
        found.sort_unstable();
        found.dedup();
        Ok(found)
    }

    fn path(&self, leaf: usize) -> &str {
        self.paths.get(leaf).map_or("", String::as_str)
    }
}

fn column(leaf: &Leaf) -> &str {
    leaf.path.names().first().map_or("", |name| &**name)
}

/// The leaves of a list in the order of their names that have this one.
fn equal<'a>(leaves: &'a [usize], name: &str, name_of: impl Fn(usize) -> &'a str) -> &'a [usize] {
    #[cfg(test)]
    crate::steps::add(1);
    let start = leaves.partition_point(|leaf| name_of(*leaf) < name);
    let rest = leaves.get(start..).unwrap_or_default();
    let len = rest.partition_point(|leaf| name_of(*leaf) == name);
    rest.get(..len).unwrap_or_default()
}

/// Whether a text matches a pattern, in which `*` is any text.
pub(super) fn matches_pattern(pattern: &str, text: &str) -> bool {
    #[cfg(test)]
    crate::steps::add(1);
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| text.strip_prefix(first)) else {
        return false;
    };
    let Some(last) = parts.next_back() else {
        return rest.is_empty();
    };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::from_arrow;
    use arrow_schema::{DataType, Field, Schema as ArrowSchema};

    fn leaves(names: &[&str]) -> Vec<Leaf> {
        let field = |name: &&str| match name.split_once('/') {
            None => Field::new(*name, DataType::Int32, true),
            Some((outer, inner)) => {
                let inner = inner.split(',').map(|name| Field::new(name, DataType::Int32, true));
                Field::new(outer, DataType::Struct(inner.collect()), true)
            }
        };
        let schema = ArrowSchema::new(names.iter().map(field).collect::<Vec<_>>());
        from_arrow(&schema, &Default::default()).unwrap().schema.leaves().unwrap()
    }

    #[test]
    fn a_pattern_names_paths_and_columns() {
        let leaves = leaves(&["a", "s/a,b", "ab", "a*", "s.a", "a"]);
        let names = LeafNames::new(&leaves).unwrap();
        for (pattern, expected) in [
            ("a", &[0, 6][..]),
            ("s", &[1, 2]),
            ("s.a", &[1, 5]),
            ("s.b", &[2]),
            ("*", &[0, 1, 2, 3, 4, 5, 6]),
            ("s*", &[1, 2, 5]),
            ("*b", &[2, 3]),
            // The name of a column.
            ("a*", &[4]),
            ("c", &[]),
            ("", &[]),
            ("c*", &[]),
        ] {
            assert_eq!(names.named(pattern).unwrap(), expected, "{pattern}");
        }
    }

    #[test]
    fn as_many_names_as_leaves_take_few_steps() {
        let names: Vec<String> = (0..2_000).map(|i| format!("c{i}")).collect();
        let leaves = leaves(&names.iter().map(String::as_str).collect::<Vec<_>>());
        let steps = crate::steps::taken_by(|| {
            let by_name = LeafNames::new(&leaves).unwrap();
            for (i, name) in names.iter().enumerate() {
                assert_eq!(by_name.named(name).unwrap(), [i]);
            }
        });
        assert!(steps < 10_000, "{steps} steps");
    }

    #[test]
    fn stars_are_any_text() {
        for (pattern, text, expected) in [
            ("*", "", true),
            ("a*c", "abc", true),
            ("a*c", "ac", true),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "acb", false),
            ("ab*ba", "aba", false),
            ("*.*", "a.b", true),
            ("a", "ab", false),
        ] {
            assert_eq!(matches_pattern(pattern, text), expected, "{pattern} {text}");
        }
    }
}
