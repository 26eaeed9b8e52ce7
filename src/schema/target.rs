//! A target schema decides the fields of the rows and their order, whatever the file has (schema
//! evolution).
//!
//! Used by `to_arrow` in place of the hint. Every target field is looked up among the fields of the
//! file, by name or field id, and its natural shape is adapted to the target: wider types by
//! [`read_conversion`], fields in another order, fields that are left out, and fields that the file
//! does not have ([`Kind::Missing`]).
//! Trap: a column that may hold nulls is not read into a non-null field. That is refused before
//! anything is read.

use std::borrow::Cow;
use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef, Fields, SchemaRef};

use super::convert::read_conversion;
use super::fields::{arrow_fields, schema_like};
use super::match_by::{FieldIds, MatchBy};
use super::names::Named;
use super::natural::{Mapper, has_columns};
use super::node::Schema;
use super::projection::{self, NamedTree, ProjectedChildren, Projection};
use super::shape::{Kind, Levels, Mapping, Shape, element_of, with_children};
use super::stand_in::is_empty_group;
use super::text;
use crate::error::{Error, Result};
use crate::memory;

/// How the groups of a mapping are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Groups {
    /// Rows are made of them: a leaf must show where they are null or empty.
    AreRead,
    /// They are only looked at, and need not have one.
    AreDescribed,
}

/// Maps the fields of `target` that are projected to those of the file.
pub(super) fn to_target(
    file: &Schema,
    mapper: &Mapper<'_>,
    projection: &Projection,
    target: &SchemaRef,
    groups: Groups,
) -> Result<Mapping> {
    let projected = projection.resolve_in(TargetNode::Group(target.fields()))?;
    let schema = match projected {
        None => Arc::clone(target),
        Some(projected) => {
            let fields = prune(target.fields(), &projected);
            Arc::new(schema_like(target, fields.iter().cloned())?)
        }
    };
    let by = mapper.options.match_by;
    let mut retarget = Retarget { file, by, groups, path: Vec::new() };
    let ids =
        FieldIds::new(by, schema.fields(), || file.fields().map(|node| mapper.field_id(node)));
    let shapes = schema.fields().iter().map(|wanted| {
        let found = match ids.find(wanted, |name| file.field_named(name)) {
            Named::One(position) => file.field(position),
            Named::Several(_) => return Err(retarget.ambiguous(wanted)),
            Named::None => None,
        };
        match found.filter(|node| has_columns(*node)) {
            Some(node) => retarget.field(mapper.whole_field(node)?, wanted),
            None => retarget.missing(Levels::default(), wanted),
        }
    });
    let shapes = memory::try_collected(shapes)?;
    let is_as_wanted = schema.fields().iter().zip(&shapes).all(|(of, shape)| *of == shape.field);
    let schema = match is_as_wanted {
        true => schema,
        false => {
            let fields = shapes.iter().map(|shape| shape.field.clone());
            Arc::new(schema_like(&schema, fields)?)
        }
    };
    Ok(Mapping { schema, shapes })
}

fn is_variant(field: &Field) -> bool {
    field.extension_type_name() == Some(super::extension::VARIANT)
}

/// Adapts shapes to a target.
struct Retarget<'a> {
    file: &'a Schema,
    by: MatchBy,
    groups: Groups,
    /// Names from the top-level field to the current one.
    path: Vec<String>,
}

impl Retarget<'_> {
    /// `shape`, as the field `wanted`.
    fn field(&mut self, shape: Shape, wanted: &FieldRef) -> Result<Shape> {
        self.path.push(wanted.name().clone());
        let retargeted = self.node(shape, wanted)?;
        self.path.pop();
        Ok(retargeted)
    }

    fn node(&mut self, shape: Shape, wanted: &FieldRef) -> Result<Shape> {
        if shape.field.is_nullable() && !wanted.is_nullable() {
            return Err(Error::usage(format_args!(
                "column {}: the file may hold nulls, the wanted {} may not",
                self.dotted(),
                wanted.data_type()
            )));
        }
        if is_variant(&shape.field) && is_variant(wanted) {
            return Ok(Self::variant(shape, wanted));
        }
        let Shape { field, levels, kind } = shape;
        let kind = match (kind, wanted.data_type()) {
            (Kind::Leaf { leaf }, _) => self.leaf(leaf, &field, wanted)?,
            (Kind::Struct(children), DataType::Struct(fields))
                if fields.is_empty() && is_empty_group(&children) =>
            {
                Kind::Struct(children)
            }
            (Kind::Struct(children), DataType::Struct(fields)) => {
                let children = self.children(children, fields, levels)?;
                // The levels of a leaf show which structs are null.
                if field.is_nullable() && self.is_lost(|| children.iter().any(reads_leaf)) {
                    return Err(self.without_columns());
                }
                Kind::Struct(children)
            }
            (
                Kind::List { item, element, rep },
                DataType::List(to)
                | DataType::LargeList(to)
                | DataType::ListView(to)
                | DataType::LargeListView(to)
                | DataType::FixedSizeList(to, _),
            ) => {
                let item = Box::new(self.field(*item, to)?);
                if self.is_lost(|| reads_leaf(&item)) {
                    return Err(self.without_columns());
                }
                Kind::List { item, element, rep }
            }
            (Kind::Map { entries, element, rep }, DataType::Map(to, _)) => {
                let entries = Box::new(self.entries(*entries, to)?);
                if self.is_lost(|| reads_leaf(&entries)) {
                    return Err(self.without_columns());
                }
                Kind::Map { entries, element, rep }
            }
            (_, to) => return Err(self.no_way(field.data_type(), to)),
        };
        Ok(Shape { field: as_read(wanted, &kind), levels, kind })
    }

    fn leaf(&self, leaf: usize, field: &Field, wanted: &Field) -> Result<Kind> {
        if field.data_type() == wanted.data_type() {
            return Ok(Kind::Leaf { leaf });
        }
        let described = self.file.leaf(leaf)?;
        if read_conversion(&described, wanted.data_type()).is_some() {
            Ok(Kind::Leaf { leaf })
        } else if *field.data_type() == DataType::Null && wanted.is_nullable() {
            // UNKNOWN: a column of nulls is one of any type.
            Ok(Kind::Missing)
        } else {
            let from = text::leaf_type(&described);
            let from = format_args!("{from} ({})", field.data_type());
            Err(self.no_way(from, wanted.data_type()))
        }
    }

    /// A VARIANT. Its parts mean something together only, so none of them is left out: it is read
    /// as it is stored, and converted afterwards.
    fn variant(shape: Shape, wanted: &FieldRef) -> Shape {
        if shape.field.data_type() == wanted.data_type() {
            return Shape { field: Arc::clone(wanted), ..shape };
        }
        let data_type = shape.field.data_type().clone();
        let field = wanted.as_ref().clone().with_data_type(data_type);
        Shape { field: Arc::new(field), ..shape }
    }

    /// The fields of a struct: each finds its own among `children`, or is missing.
    fn children(
        &mut self,
        children: Vec<Shape>,
        wanted: &Fields,
        levels: Levels,
    ) -> Result<Vec<Shape>> {
        let places = self.places(&children, wanted)?;
        let mut children: Vec<Option<Shape>> = children.into_iter().map(Some).collect();
        let mut retargeted = Vec::with_capacity(wanted.len());
        for (field, place) in wanted.iter().zip(places) {
            // Taken at most once, even if two fields of the target want it.
            retargeted.push(match place.and_then(|at| children.get_mut(at)?.take()) {
                Some(child) => self.field(child, field)?,
                None => self.missing(levels, field)?,
            });
        }
        Ok(retargeted)
    }

    /// Where among `children` the fields of a struct are.
    fn places(&self, children: &[Shape], wanted: &Fields) -> Result<Vec<Option<usize>>> {
        let places = self.by.places(wanted, || children.iter().map(|child| &child.field));
        let place = |(field, place): (&FieldRef, Named)| match place {
            Named::Several(_) => Err(self.ambiguous(field)),
            Named::One(at) => Ok(Some(at)),
            Named::None => Ok(None),
        };
        wanted.iter().zip(places).map(place).collect()
    }

    /// The struct of key and value of a map: by position, whatever the names.
    fn entries(&mut self, shape: Shape, wanted: &FieldRef) -> Result<Shape> {
        let Shape { levels, kind, field } = shape;
        let (Kind::Struct(pair), DataType::Struct(to)) = (kind, wanted.data_type()) else {
            return Err(self.no_way(field.data_type(), wanted.data_type()));
        };
        if to.len() != pair.len() {
            return Err(self.no_way(field.data_type(), wanted.data_type()));
        }
        let pair = pair.into_iter().zip(to).map(|(child, to)| self.field(child, to));
        let pair = pair.collect::<Result<Vec<_>>>()?;
        let kind = Kind::Struct(pair);
        Ok(Shape { field: as_read(wanted, &kind), levels, kind })
    }

    /// A field that the file does not have, in a group with these levels.
    fn missing(&self, levels: Levels, wanted: &FieldRef) -> Result<Shape> {
        if !wanted.is_nullable() {
            return Err(Error::usage(format_args!(
                "the file has no column {}, and the wanted {} may not be null",
                self.dotted_with(wanted),
                wanted.data_type()
            )));
        }
        Ok(Shape { field: Arc::clone(wanted), levels, kind: Kind::Missing })
    }

    fn no_way(&self, from: impl std::fmt::Display, to: &DataType) -> Error {
        Error::usage(format_args!(
            "column {}: the file has {from}, which does not read as {to} without loss",
            self.dotted()
        ))
    }

    fn ambiguous(&self, wanted: &Field) -> Error {
        Error::usage(format_args!("the file has several columns {}", self.dotted_with(wanted)))
    }

    /// Whether no leaf would show where a group is null or empty, and that matters.
    fn is_lost(&self, reads_leaf: impl FnOnce() -> bool) -> bool {
        self.groups == Groups::AreRead && !reads_leaf()
    }

    fn without_columns(&self) -> Error {
        Error::unsupported(
            "group of missing columns",
            format_args!(
                "column {}: none of the wanted fields in it is in the file, so nothing tells where it is null or empty",
                self.dotted()
            ),
        )
    }

    fn dotted(&self) -> String {
        self.path.join(".")
    }

    fn dotted_with(&self, field: &Field) -> String {
        let names = self.path.iter().map(|name| Cow::Borrowed(name.as_str()));
        let names: Vec<_> = names.chain([Cow::Borrowed(field.name().as_str())]).collect();
        names.join(".")
    }
}

/// A wanted field, as it is read: with the VARIANT columns in it as they are stored.
fn as_read(wanted: &FieldRef, kind: &Kind) -> FieldRef {
    let same = |child: &Shape, wanted: &FieldRef| {
        Arc::ptr_eq(&child.field, wanted) || child.field.data_type() == wanted.data_type()
    };
    let is_as_wanted = match (kind, wanted.data_type()) {
        (Kind::Struct(children), DataType::Struct(fields)) => {
            children.iter().zip(fields).all(|(child, wanted)| same(child, wanted))
        }
        (Kind::List { item: child, .. } | Kind::Map { entries: child, .. }, of) => {
            element_of(of).is_none_or(|of| same(child, of))
        }
        _ => true,
    };
    match is_as_wanted {
        true => Arc::clone(wanted),
        false => {
            let data_type = with_children(wanted.data_type(), kind);
            Arc::new(wanted.as_ref().clone().with_data_type(data_type))
        }
    }
}

fn reads_leaf(shape: &Shape) -> bool {
    match &shape.kind {
        Kind::Leaf { .. } => true,
        Kind::Struct(children) => children.iter().any(reads_leaf),
        Kind::List { item: child, .. } | Kind::Map { entries: child, .. } => reads_leaf(child),
        Kind::Missing => false,
    }
}

/// The fields of `fields` that are projected. A map keeps its key, and its value if nothing of it
/// was named.
fn prune(fields: &Fields, projected: &ProjectedChildren) -> Fields {
    let kept =
        projected.iter().filter_map(|wanted| Some((fields.get(wanted.position)?, &wanted.inner)));
    arrow_fields(kept.map(|(field, inner)| match inner {
        None => Arc::clone(field),
        Some(inner) => Arc::new(prune_field(field, inner)),
    }))
}

fn prune_field(field: &Field, projected: &ProjectedChildren) -> Field {
    let child = |child: &FieldRef| match projected.inside(0) {
        None => Arc::clone(child),
        Some(inner) => Arc::new(prune_field(child, inner)),
    };
    let data_type = match field.data_type() {
        DataType::Struct(fields) => DataType::Struct(prune(fields, projected)),
        DataType::List(item) => DataType::List(child(item)),
        DataType::LargeList(item) => DataType::LargeList(child(item)),
        DataType::ListView(item) => DataType::ListView(child(item)),
        DataType::LargeListView(item) => DataType::LargeListView(child(item)),
        DataType::FixedSizeList(item, length) => DataType::FixedSizeList(child(item), *length),
        DataType::Map(entries, sorted) => {
            DataType::Map(Arc::new(prune_entries(entries, projected.inside(0))), *sorted)
        }
        other => other.clone(),
    };
    field.clone().with_data_type(data_type)
}

fn prune_entries(entries: &Field, projected: Option<&ProjectedChildren>) -> Field {
    let DataType::Struct(fields) = entries.data_type() else {
        return entries.clone();
    };
    let pair = fields.iter().enumerate().map(|(position, field)| {
        match projected.and_then(|projected| projected.inside(position)) {
            Some(inner) if position > 0 => Arc::new(prune_field(field, inner)),
            _ => Arc::clone(field),
        }
    });
    entries.clone().with_data_type(DataType::Struct(pair.collect()))
}

/// The positions on the path from `fields` to the field called `name`, by the rules of
/// [`Projection::names`]: among the fields of a struct, or 0 for the element of a list or the
/// entries of a map.
///
/// # Errors
/// `Usage` if there is none, or if there are several.
pub(crate) fn find_field(fields: &Fields, name: &str) -> Result<Vec<usize>> {
    let mut path = Vec::new();
    if !projection::find_name(TargetNode::Group(fields), name, &mut path)? {
        return Err(projection::unknown(name, TargetNode::Group(fields)));
    }
    Ok(path)
}

/// A node of a target, as names are looked up in it.
#[derive(Clone, Copy)]
enum TargetNode<'a> {
    /// The schema or a struct.
    Group(&'a Fields),
    /// A list or a map, whose only child need not be named.
    Repeated(&'a FieldRef),
    Leaf,
}

impl<'a> TargetNode<'a> {
    fn fields(self) -> &'a [FieldRef] {
        match self {
            Self::Group(fields) => fields,
            Self::Repeated(child) => std::slice::from_ref(child),
            Self::Leaf => &[],
        }
    }
}

impl NamedTree for TargetNode<'_> {
    fn len(self) -> usize {
        self.fields().len()
    }

    fn child(self, position: usize) -> Option<Self> {
        Some(match self.fields().get(position)?.data_type() {
            DataType::Struct(fields) => Self::Group(fields),
            DataType::List(child)
            | DataType::LargeList(child)
            | DataType::ListView(child)
            | DataType::LargeListView(child)
            | DataType::FixedSizeList(child, _)
            | DataType::Map(child, _) => Self::Repeated(child),
            _ => Self::Leaf,
        })
    }

    fn named(self, name: &str) -> Named {
        Named::among(self.fields().iter().map(|field| field.name() == name))
    }

    fn names(self) -> impl Iterator<Item = String> {
        self.fields().iter().map(|field| field.name().clone())
    }

    fn implied_child(self) -> Option<usize> {
        matches!(self, Self::Repeated(_)).then_some(0)
    }

    fn is_wrapper(self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests;
