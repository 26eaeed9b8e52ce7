//! [`Columns`]: the columns of a schema as its elements have them, and how those of two files
//! differ.

use std::ops::Range;

use crate::error::{Error, Result};
use crate::format::{FieldRepetitionType, SchemaElement};
use crate::memory;
use crate::reader::Reader;
use crate::schema::{Schema, is_leaf_element};

/// The columns of a schema: the children of its root.
pub(super) struct Columns<'a> {
    pub(super) elements: &'a [SchemaElement],
    pub(super) list: Vec<TopLevelColumn>,
}

/// A column: its elements, and its leaves.
#[derive(Debug, Clone)]
pub(super) struct TopLevelColumn {
    pub(super) elements: Range<usize>,
    pub(super) leaves: Range<usize>,
}

impl<'a> Columns<'a> {
    /// Finds them.
    ///
    /// # Errors
    /// `Limit(Memory)` if the system has no memory; so for all of this module.
    pub(super) fn new(elements: &'a [SchemaElement]) -> Result<Self> {
        Ok(Self { elements, list: top_level_columns(elements)? })
    }

    /// For each column, the same column of another file.
    ///
    /// # Errors
    /// `Usage` if the other file has other columns, or another order of them.
    pub(super) fn same_in(&self, reader: &Reader) -> Result<Vec<TopLevelColumn>> {
        let elements = memory::collected(reader.metadata().schema().elements())?;
        let other = Columns::new(&elements)?;
        let mut same = memory::vec_for(self.list.len())?;
        for (at, column) in self.list.iter().enumerate() {
            let mine = self.elements_of(column);
            let name = mine.first().map_or("", |element| element.name.as_str());
            let Some(found) = other.list.get(at) else {
                return Err(Error::usage(format_args!(
                    "it has no column {name:?}, which the first file has"
                )));
            };
            if let Some(what) = difference(mine, other.elements_of(found)) {
                let help = match other.named(name)?.is_some() {
                    true => " (marq: --by-name)",
                    false => "",
                };
                return Err(Error::usage(format_args!(
                    "its schema is not that of the first file: {what}{help}"
                )));
            }
            same.push(found.clone());
        }
        if other.list.len() != self.list.len() {
            let known = |name: &str| matches!(self.named(name), Ok(Some(_)));
            let names = other.list.iter().filter_map(|column| other.name(column));
            let extra = names.filter(|name| !known(name)).collect::<Vec<_>>().join(", ");
            return Err(Error::usage(format_args!(
                "it has columns that the first file has not: {extra}"
            )));
        }
        Ok(same)
    }

    pub(super) fn elements_of(&self, column: &TopLevelColumn) -> &'a [SchemaElement] {
        self.elements.get(column.elements.clone()).unwrap_or_default()
    }

    pub(super) fn name(&self, column: &TopLevelColumn) -> Option<&'a str> {
        self.elements.get(column.elements.start).map(|element| element.name.as_str())
    }

    /// The column of a name.
    ///
    /// # Errors
    /// `Usage` if there are several.
    pub(super) fn named(&self, name: &str) -> Result<Option<&TopLevelColumn>> {
        #[cfg(test)]
        crate::steps::add(self.list.len());
        let mut found = self.list.iter().filter(|column| self.name(column) == Some(name));
        let first = found.next();
        match found.next() {
            None => Ok(first),
            Some(_) => Err(Error::usage(format_args!("several columns are called {name:?}"))),
        }
    }
}

/// The children of the root.
fn top_level_columns(elements: &[SchemaElement]) -> Result<Vec<TopLevelColumn>> {
    let mut out: Vec<TopLevelColumn> = Vec::new();
    let mut leaf = 0;
    // Elements of the current column that are still to come.
    let mut left = 0usize;
    for (at, element) in elements.iter().enumerate().skip(1) {
        if left == 0 {
            memory::push(&mut out, TopLevelColumn { elements: at..at, leaves: leaf..leaf })?;
            left = 1;
        }
        let children = usize::try_from(element.num_children.unwrap_or(0)).unwrap_or(0);
        left = left.saturating_sub(1).saturating_add(children);
        leaf += usize::from(is_leaf_element(element));
        if let Some(column) = out.last_mut() {
            (column.elements.end, column.leaves.end) = (at + 1, leaf);
        }
    }
    Ok(out)
}

/// The first element in which two columns differ, as the message form of a schema has it.
pub(super) fn difference(mine: &[SchemaElement], theirs: &[SchemaElement]) -> Option<String> {
    if mine == theirs {
        return None;
    }
    let message = |column| {
        let elements = alone(&SchemaElement::default(), column).ok()?;
        Some(Schema::parse(elements, &Default::default()).ok()?.to_string())
    };
    let (mine, theirs) = (message(mine), message(theirs));
    let elements = |message: &Option<String>| {
        let lines = message.iter().flat_map(|text| text.lines().skip(1));
        let elements = lines.map(str::trim_start).filter_map(|line| {
            let element = line.strip_suffix(';').or_else(|| line.strip_suffix(" {"))?;
            Some(element.to_owned())
        });
        elements.collect::<Vec<_>>()
    };
    let (mine, theirs) = (elements(&mine), elements(&theirs));
    let show = |elements: &[String], at: usize| match elements.get(at) {
        Some(element) => format!("`{element}`"),
        None => "nothing".to_owned(),
    };
    let differs = |at: &usize| mine.get(*at) != theirs.get(*at);
    Some(match (0..mine.len().max(theirs.len())).find(differs) {
        Some(at) => format!("{} there, {} here", show(&mine, at), show(&theirs, at)),
        None => format!("{} in both, annotated otherwise", show(&mine, 0)),
    })
}

/// Whether the chunks of two columns are the same bytes for the same values: they differ at most in
/// field ids.
pub(super) fn has_same_chunks(mine: &[SchemaElement], theirs: &[SchemaElement]) -> bool {
    let without_id = |element: &SchemaElement| SchemaElement { field_id: None, ..element.clone() };
    mine.len() == theirs.len()
        && mine.iter().zip(theirs).all(|(a, b)| without_id(a) == without_id(b))
}

/// Whether the column may be null, by its outermost element.
pub(super) fn repetition(column: &[SchemaElement]) -> FieldRepetitionType {
    let first = column.first().and_then(|element| element.repetition_type);
    first.unwrap_or(FieldRepetitionType::Required)
}

/// The elements of a schema with this column alone.
pub(super) fn alone(root: &SchemaElement, column: &[SchemaElement]) -> Result<Vec<SchemaElement>> {
    let root = SchemaElement { num_children: Some(1), ..root.clone() };
    memory::collected(std::iter::once(root).chain(column.iter().cloned()))
}

/// The elements of a schema with these leaves only, and with the groups around them.
pub(super) fn kept_elements(
    elements: &[SchemaElement],
    kept: &[bool],
) -> Result<Vec<SchemaElement>> {
    let mut out = memory::vec_for(elements.len())?;
    // Of the elements after this one, those whose parent comes before it: whether each is kept.
    let mut later: Vec<bool> = memory::vec_for(elements.len())?;
    let mut leaves = kept.iter().rev();
    for (index, element) in elements.iter().enumerate().rev() {
        if index > 0 && is_leaf_element(element) {
            let is_kept = leaves.next().copied().unwrap_or(false);
            later.push(is_kept);
            if is_kept {
                out.push(element.clone());
            }
            continue;
        }
        let children = usize::try_from(element.num_children.unwrap_or(0)).unwrap_or(0);
        let children = later.drain(later.len().saturating_sub(children)..);
        let is_empty = children.len() == 0;
        let kept = children.filter(|kept| *kept).count();
        // A group without children stays as it is; the root always stays.
        let is_kept = kept > 0 || is_empty || index == 0;
        if is_kept {
            let num_children = i32::try_from(kept).ok().or(element.num_children);
            out.push(SchemaElement { num_children, ..element.clone() });
        }
        later.push(is_kept);
    }
    out.reverse();
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::Type;

    /// Two leaves, the first of them in a group; each element has a type and a number of children,
    /// as some writers state them.
    fn elements() -> Vec<SchemaElement> {
        let element = |name: &str, children| SchemaElement {
            r#type: Some(Type::Int32),
            num_children: Some(children),
            ..SchemaElement::new(name)
        };
        vec![element("root", 2), element("group", 1), element("a", 0), element("b", 0)]
    }

    #[test]
    fn groups_that_state_a_type_are_groups() {
        let elements = elements();
        let columns = Columns::new(&elements).unwrap();
        let found = columns.list.iter().map(|of| (of.elements.clone(), of.leaves.clone()));
        assert_eq!(found.collect::<Vec<_>>(), [(1..3, 0..1), (3..4, 1..2)]);
        assert_eq!(kept_elements(&elements, &[true, true]).unwrap(), elements);
        let mut second = vec![elements[0].clone(), elements[3].clone()];
        second[0].num_children = Some(1);
        assert_eq!(kept_elements(&elements, &[false, true]).unwrap(), second);
        // A root alone has no columns.
        assert_eq!(kept_elements(&elements[3..], &[]).unwrap(), elements[3..]);
    }
}
