//! [`GivenLeaf`]: a leaf whose levels and values come from the caller, not from the arrays of a
//! batch. All of it is checked: what is written could be read otherwise as other rows, or not at
//! all.
//!
//! Spec: README.md, "Nested Encoding".

use arrow_array::{Array, ArrayRef};

use super::row_group::RowGroupLayout;
use super::shred::{ArrayPart, LeafColumn};
use crate::error::{Error, Result};
use crate::levels::{LevelBuffer, LevelDecoder, OfLeaf, Order, agree};
use crate::schema::convert::write_conversion;
use crate::schema::{Kind, Leaf, Shape};
use crate::simd::planes::LevelBitPlanes;

/// Levels and values of some rows, as the caller gives them.
pub(crate) struct GivenEntries<'a> {
    pub(crate) rows: usize,
    pub(crate) definition_levels: &'a [u16],
    pub(crate) repetition_levels: &'a [u16],
    pub(crate) values: &'a ArrayRef,
}

/// A leaf that is checked by itself.
pub(crate) struct GivenLeaf {
    pub(crate) column: LeafColumn,
    levels: GivenLevels,
}

/// The levels of a leaf, by which its siblings are compared with it.
pub(crate) struct GivenLevels {
    def: LevelBitPlanes,
    rep: LevelBitPlanes,
    max_rep: u16,
}

impl GivenLevels {
    fn of_leaf(&self) -> OfLeaf<'_> {
        OfLeaf { def: &self.def, rep: &self.rep, max_rep: self.max_rep }
    }
}

impl GivenLeaf {
    /// No rows yet.
    pub(crate) fn new(leaf: &Leaf) -> Self {
        let planes = LevelDecoder::planes;
        let (def, rep, max_rep) = (planes(leaf.max_def), planes(leaf.max_rep), leaf.max_rep);
        Self { column: LeafColumn::new(leaf), levels: GivenLevels { def, rep, max_rep } }
    }

    /// Appends rows.
    ///
    /// # Errors
    /// `Usage` if there are not as many levels, values or rows as there must be, a level is above
    /// its maximum, a value is null, or the values have a type that the leaf cannot store.
    pub(crate) fn push(&mut self, leaf: &Leaf, entries: &GivenEntries<'_>) -> Result<()> {
        let GivenEntries { rows, definition_levels: def, repetition_levels: rep, values } = entries;
        let wrong = |what: &dyn std::fmt::Display| Err(Error::usage(what));
        let (max_def, max_rep) = (leaf.max_def, leaf.max_rep);
        let n = match (max_def, max_rep) {
            (0, _) => *rows,
            _ => def.len(),
        };
        for (name, levels, max) in [("definition", def, max_def), ("repetition", rep, max_rep)] {
            let expected = if max == 0 { 0 } else { n };
            if levels.len() != expected {
                let found = levels.len();
                return wrong(&format_args!(
                    "{found} {name} levels, where {expected} are expected"
                ));
            }
            if let Some(at) = levels.iter().position(|level| *level > max) {
                let found = levels.get(at).copied().unwrap_or_default();
                return wrong(&format_args!(
                    "{name} level {found} of entry {at} is above the highest, {max}"
                ));
            }
        }
        let begun = if max_rep == 0 { n } else { rep.iter().filter(|level| **level == 0).count() };
        if begun != *rows || rep.first().is_some_and(|level| *level != 0) {
            return wrong(&format_args!(
                "the entries begin {begun} rows, where {rows} are stated; the first entry must \
                 begin one, by repetition level 0"
            ));
        }
        let there =
            if max_def == 0 { n } else { def.iter().filter(|level| **level == max_def).count() };
        if there != values.len() {
            let found = values.len();
            return wrong(&format_args!("{found} values, where the levels say {there}"));
        }
        if values.logical_null_count() > 0 {
            return wrong(&"a value is null: nulls are said by definition levels");
        }
        let found = values.data_type();
        if !values.is_empty() && write_conversion(found, leaf).is_none() {
            let physical = leaf.physical;
            return wrong(&format_args!("values of {found} cannot be stored as {physical}"));
        }
        self.append(leaf, entries, n)
    }

    fn append(&mut self, leaf: &Leaf, entries: &GivenEntries<'_>, n: usize) -> Result<()> {
        let add = |levels: &[u16], max: u16, planes: &mut LevelBitPlanes| {
            let mut buffer = LevelBuffer::default();
            match levels.first() {
                _ if max == 0 => buffer.push_run(0, n)?,
                Some(first) if levels.iter().all(|level| level == first) => {
                    buffer.push_run(*first, n)?;
                }
                _ => buffer.push_slice(levels)?,
            }
            match buffer.uniform() {
                Some(level) => planes.push_run(level, n),
                None => planes.push_levels(levels),
            }
            Ok::<_, Error>(buffer)
        };
        let def = add(entries.definition_levels, leaf.max_def, &mut self.levels.def)?;
        let rep = add(entries.repetition_levels, leaf.max_rep, &mut self.levels.rep)?;
        self.column.levels.append(def, rep)?;
        let array = entries.values.clone();
        if !array.is_empty() {
            let slots = std::iter::once(0..array.len()).collect();
            self.column.parts.push(ArrayPart { array, nulls: None, slots });
        }
        Ok(())
    }

    /// Checks which entries follow one another, and returns the leaf and its levels.
    ///
    /// # Errors
    /// `Usage` if an entry continues a list that is null or empty.
    pub(crate) fn finish(
        self,
        layout: &RowGroupLayout,
        leaf: &Leaf,
    ) -> Result<(LeafColumn, GivenLevels)> {
        let Self { column, levels } = self;
        let elements = elements(layout, leaf.index);
        // The rule that is broken is the caller's, not that of a file.
        Order::new(&elements).check(&levels.def, &levels.rep).map_err(Error::usage)?;
        Ok((column, levels))
    }
}

/// The definition level of an element of each list around a leaf, the outermost first.
fn elements(layout: &RowGroupLayout, leaf: usize) -> Vec<u16> {
    fn walk(shape: &Shape, wanted: usize, elements: &mut Vec<u16>) -> bool {
        match &shape.kind {
            Kind::Leaf { leaf } => *leaf == wanted,
            Kind::Struct(children) => children.iter().any(|child| walk(child, wanted, elements)),
            Kind::List { item, element, .. } | Kind::Map { entries: item, element, .. } => {
                elements.push(*element);
                let found = walk(item, wanted, elements);
                if !found {
                    elements.pop();
                }
                found
            }
            Kind::Missing => false,
        }
    }
    let mut elements = Vec::new();
    layout.shapes.iter().any(|shape| walk(shape, leaf, &mut elements));
    elements
}

/// Checks that the leaves of a column agree on the structs, lists and maps that they share.
/// `levels` has those of the leaves of the shape, depth-first.
///
/// # Errors
/// `Usage` if they do not.
pub(crate) fn check_siblings(shape: &Shape, levels: &[GivenLevels]) -> Result<()> {
    walk_siblings(shape, levels, &mut 0)
}

fn walk_siblings(shape: &Shape, levels: &[GivenLevels], next: &mut usize) -> Result<()> {
    match &shape.kind {
        Kind::Missing => Ok(()),
        Kind::Leaf { .. } => {
            *next += 1;
            Ok(())
        }
        Kind::List { item, .. } | Kind::Map { entries: item, .. } => {
            walk_siblings(item, levels, next)
        }
        Kind::Struct(children) => {
            let first = *next;
            for child in children {
                let of_child = *next;
                walk_siblings(child, levels, next)?;
                let (Some(a), Some(b)) = (levels.get(first), levels.get(of_child)) else {
                    return Err(Error::internal("a shape of other leaves than it has"));
                };
                if of_child > first && !agree(a.of_leaf(), b.of_leaf(), shape.levels) {
                    return Err(Error::usage(format_args!(
                        "the levels of two leaves below {:?} contradict each other: by one it is \
                         there, or the lists around it go on, where by another they do not",
                        shape.field.name()
                    )));
                }
            }
            Ok(())
        }
    }
}
