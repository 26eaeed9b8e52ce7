//! Field ids of the new file: only its footer says them, so that no chunk changes.
//!
//! Spec: `parquet.thrift`, `SchemaElement.field_id`. Trap: the repeated group of a LIST or MAP is
//! no field of the user's schema, and neither are the parts of a VARIANT.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_schema::{DataType, FieldRef, Fields};

use crate::error::{Error, Result};
use crate::format::{ConvertedType, FieldRepetitionType, LogicalType, SchemaElement};
use crate::schema::{FIELD_ID_KEY, is_leaf_element};

/// A wish for the field ids; later ones win.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum FieldIdChange {
    /// The field at this dotted path has this one, or none.
    Of(String, Option<i32>),
    /// All fields are numbered from 1, depth first.
    Number,
    /// No field has one.
    Clear,
}

/// An element below the root.
struct IdElement {
    /// Its place among the elements.
    at: usize,
    path: String,
    kind: FieldKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FieldKind {
    /// A field of the user's schema.
    Field,
    /// The repeated group of a LIST or MAP.
    Wrapper,
    /// A part of a VARIANT.
    OfVariant,
}

/// Changes the ids of the elements of a schema.
///
/// # Errors
/// `Usage` if there is no field at a path, or several; if an id is negative, or would be that of
/// two fields.
pub(super) fn change(elements: &mut [SchemaElement], changes: &[FieldIdChange]) -> Result<()> {
    if changes.is_empty() {
        return Ok(());
    }
    let fields = fields(elements);
    let mut by_path: HashMap<&str, Vec<usize>> = HashMap::new();
    for field in &fields {
        by_path.entry(&field.path).or_default().push(field.at);
    }
    let mut given = Vec::new();
    for change in changes {
        match change {
            FieldIdChange::Clear => elements.iter_mut().for_each(|of| of.field_id = None),
            FieldIdChange::Number => {
                elements.iter_mut().for_each(|of| of.field_id = None);
                let numbered = fields.iter().filter(|field| field.kind == FieldKind::Field);
                for (id, field) in (1..).zip(numbered) {
                    set(elements, field.at, Some(id));
                }
            }
            FieldIdChange::Of(path, id) => {
                let at = match by_path.get(path.as_str()).map(Vec::as_slice) {
                    Some(&[at]) => at,
                    Some(_) => return Err(wrong(path, "several fields have this path")),
                    None => return Err(wrong(path, "there is no such field")),
                };
                if id.is_some_and(|id| id < 0) {
                    return Err(wrong(path, "the id is negative"));
                }
                set(elements, at, *id);
                given.extend(id.map(|_| at));
            }
        }
    }
    let id = |at: usize| elements.get(at).and_then(|element| element.field_id);
    for at in given {
        let others = fields.iter().filter(|other| other.at != at && id(other.at) == id(at));
        if let (Some(id), Some(other)) = (id(at), others.into_iter().next()) {
            let path = fields.iter().find(|field| field.at == at).map_or("", |field| &field.path);
            let what = format!("its id {id} is also that of {:?}", other.path);
            return Err(wrong(path, what));
        }
    }
    Ok(())
}

fn set(elements: &mut [SchemaElement], at: usize, id: Option<i32>) {
    if let Some(element) = elements.get_mut(at) {
        element.field_id = id;
    }
}

fn wrong(path: &str, what: impl std::fmt::Display) -> Error {
    Error::usage(format_args!("a field id is for {path:?}: {what}"))
}

/// The elements below the root, depth first.
fn fields(elements: &[SchemaElement]) -> Vec<IdElement> {
    let children = |of: &SchemaElement| usize::try_from(of.num_children.unwrap_or(0)).unwrap_or(0);
    let mut out: Vec<IdElement> = Vec::with_capacity(elements.len());
    // The groups around an element: the place of each in `out`, and its children that are to come.
    let mut around: Vec<(usize, usize)> = Vec::new();
    for (at, element) in elements.iter().enumerate().skip(1) {
        while around.last().is_some_and(|(_, left)| *left == 0) {
            around.pop();
        }
        if let Some((_, left)) = around.last_mut() {
            *left -= 1;
        }
        let parent = around.last().and_then(|(place, _)| out.get(*place));
        let path = match parent {
            Some(parent) => format!("{}.{}", parent.path, element.name),
            None => element.name.clone(),
        };
        let of_parent = parent.and_then(|parent| Some((parent, elements.get(parent.at)?)));
        let kind = match of_parent {
            None => FieldKind::Field,
            Some((parent, group)) if parent.kind == FieldKind::OfVariant || is_variant(group) => {
                FieldKind::OfVariant
            }
            Some((_, group)) if is_wrapper(group, element) => FieldKind::Wrapper,
            Some(_) => FieldKind::Field,
        };
        if !is_leaf_element(element) {
            around.push((out.len(), children(element)));
        }
        out.push(IdElement { at, path, kind });
    }
    out
}

fn is_variant(group: &SchemaElement) -> bool {
    matches!(group.logical_type, Some(LogicalType::Variant(_)))
}

/// Whether an element is the repeated group of a LIST or MAP, around its elements.
fn is_wrapper(group: &SchemaElement, child: &SchemaElement) -> bool {
    let is_map = matches!(group.logical_type, Some(LogicalType::Map))
        || matches!(group.converted_type, Some(ConvertedType::Map | ConvertedType::MapKeyValue));
    let is_list = matches!(group.logical_type, Some(LogicalType::List))
        || group.converted_type == Some(ConvertedType::List);
    let is_group = !is_leaf_element(child);
    if child.repetition_type != Some(FieldRepetitionType::Repeated) || !is_group {
        return false;
    }
    // Of the older lists, whose repeated group is the element.
    let is_element = child.num_children != Some(1)
        || child.name == "array"
        || child.name == format!("{}_tuple", group.name);
    is_map || (is_list && !is_element)
}

/// An Arrow field without the ids that it and those below it have.
pub(super) fn without_ids(field: &FieldRef) -> FieldRef {
    let data_type = match field.data_type() {
        DataType::Struct(fields) => {
            DataType::Struct(fields.iter().map(without_ids).collect::<Fields>())
        }
        DataType::List(item) => DataType::List(without_ids(item)),
        DataType::LargeList(item) => DataType::LargeList(without_ids(item)),
        DataType::ListView(item) => DataType::ListView(without_ids(item)),
        DataType::LargeListView(item) => DataType::LargeListView(without_ids(item)),
        DataType::FixedSizeList(item, size) => DataType::FixedSizeList(without_ids(item), *size),
        DataType::Map(entries, is_sorted) => DataType::Map(without_ids(entries), *is_sorted),
        other => other.clone(),
    };
    let mut metadata = field.metadata().clone();
    metadata.remove(FIELD_ID_KEY);
    Arc::new(field.as_ref().clone().with_data_type(data_type).with_metadata(metadata))
}
