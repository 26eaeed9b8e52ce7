//! [`to_arrow`] maps the schema of a file to Arrow fields, and says how they follow from levels.
//!
//! Called when a read is planned; `read::column` and `levels::assemble` follow the [`Shape`]s. Only
//! projected columns are mapped: by the natural mapping (the table in [`crate::schema`]), then by
//! `hint`, then by the options; a target schema (`target`) replaces the last two.
//! Trap: the levels of a node follow from the tree of the file alone. Neither a hint nor a target
//! changes them.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arrow_schema::DataType;

use super::arrow_options::{ArrowOptions, Dictionaries};
use super::convert::read_conversion;
use super::extension::{self, CrsTexts};
use super::fields::arrow_fields;
use super::geo_fields;
use super::hint::{self, Hint};
use super::natural::{Mapper, text_leaves};
use super::node::Schema;
use super::projection::Projection;
use super::shape::{Kind, Mapping, Shape, with_children};
use super::target::{self, Groups};
use super::text;
use crate::error::{Error, Result};
use crate::format::KeyValue;
use crate::memory;

/// Maps the projected part of `schema` to Arrow. `key_values` are those of the file.
///
/// # Errors
/// `Usage` if the projection, a named dictionary column or the target does not fit the file;
/// `Unsupported` if a projected column has no Arrow type.
pub fn to_arrow(
    schema: &Schema,
    key_values: &[KeyValue],
    projection: &Projection,
    options: &ArrowOptions,
) -> Result<Mapping> {
    map_to_arrow(schema, key_values, projection, options, Groups::AreRead)
}

/// As [`to_arrow`]; with a target, groups that are not read may be without any field that the file
/// has.
pub(crate) fn map_to_arrow(
    schema: &Schema,
    key_values: &[KeyValue],
    projection: &Projection,
    options: &ArrowOptions,
    groups: Groups,
) -> Result<Mapping> {
    let text = text_leaves(schema, &options.text)?;
    let ids = options.name_mapping.as_ref().map(|mapping| mapping.ids(schema)).unwrap_or_default();
    let mapper = Mapper { options, crs: CrsTexts::new(key_values), text, ids };
    if let Some(target) = &options.target {
        return target::to_target(schema, &mapper, projection, target, groups);
    }
    let hint = if options.hint { Hint::find(key_values)? } else { None };
    let hint = hint.as_ref().and_then(Hint::open).map(|hint| hint.used(options.hint_use));
    let shapes = mapper.fields(schema, projection, |position, shape| match &hint {
        Some(hint) => hint.refine(schema, position, shape),
        None => Ok(shape),
    })?;
    let mut shapes = with_texts(shapes, &mapper.text)?;
    geo_fields::mark(schema, key_values, &mut shapes)?;
    let shapes = refine_by_options(schema, shapes, options)?;
    let fields = arrow_fields(shapes.iter().map(|shape| Arc::clone(&shape.field)));
    // Without a hint, the metadata are the key-values alone.
    let mut metadata = hint.map(|hint| hint.metadata()).transpose()?.unwrap_or_default();
    // A key without a value differs from one with an empty value, and Arrow has only the latter.
    metadata.try_reserve(key_values.len())?;
    for entry in key_values.iter().filter(|entry| entry.key != hint::KEY) {
        if let Some(value) = &entry.value {
            metadata.insert(memory::text(&entry.key)?, memory::text(value)?);
        }
    }
    let schema = Arc::new(arrow_schema::Schema::new_with_metadata(fields, metadata));
    Ok(Mapping { schema, shapes })
}

/// For each leaf, why it has no Arrow type when it is read by itself, if it has none. Hints and
/// other keys of a file refuse nothing.
pub(crate) fn refusals(schema: &Schema) -> Vec<Option<Error>> {
    let options = ArrowOptions::default();
    let (text, ids) = (HashSet::new(), HashMap::new());
    let mapper = Mapper { options: &options, crs: CrsTexts::new(&[]), text, ids };
    let mut found = Vec::with_capacity(schema.leaves_len());
    for field in schema.fields() {
        mapper.each_leaf(field, &mut |mapped| found.push(mapped.err()));
    }
    found
}

/// Makes strings of the leaves `texts` that are bytes by the hint.
fn with_texts(mut shapes: Vec<Shape>, texts: &HashSet<usize>) -> Result<Vec<Shape>> {
    let mut wanted =
        |leaf, found: &DataType| Ok(if texts.contains(&leaf) { text_type(found) } else { None });
    for shape in shapes.iter_mut().filter(|_| !texts.is_empty()) {
        retype_leaves(shape, &mut wanted)?;
    }
    Ok(shapes)
}

/// The type of strings that are held as these bytes are.
fn text_type(bytes: &DataType) -> Option<DataType> {
    Some(match bytes {
        DataType::Binary => DataType::Utf8,
        DataType::LargeBinary => DataType::LargeUtf8,
        DataType::BinaryView => DataType::Utf8View,
        DataType::Dictionary(key, value) => {
            DataType::Dictionary(key.clone(), Box::new(text_type(value)?))
        }
        DataType::RunEndEncoded(ends, values) => {
            let data_type = text_type(values.data_type())?;
            let values = values.as_ref().clone().with_data_type(data_type);
            DataType::RunEndEncoded(Arc::clone(ends), Arc::new(values))
        }
        _ => return None,
    })
}

/// Applies `views` and `dictionaries`.
fn refine_by_options(
    schema: &Schema,
    mut shapes: Vec<Shape>,
    options: &ArrowOptions,
) -> Result<Vec<Shape>> {
    let kept = match &options.dictionaries {
        Dictionaries::None if !options.views => return Ok(shapes),
        Dictionaries::Named(names) => KeptDictionaries::named(schema, names)?,
        Dictionaries::None | Dictionaries::Strings => KeptDictionaries::default(),
    };
    let strings = options.dictionaries == Dictionaries::Strings;
    let mut wanted = |leaf: usize, found: &DataType| {
        use DataType as D;
        let (text, bytes) = match found {
            D::Dictionary(..) | D::RunEndEncoded(..) => return Ok(None),
            D::Utf8 | D::LargeUtf8 | D::Utf8View => (true, false),
            D::Binary | D::LargeBinary | D::BinaryView => (false, true),
            _ => (false, false),
        };
        let by_name = kept.leaves.contains(&leaf);
        if by_name || strings && text || (text || bytes) && kept.in_groups.contains(&leaf) {
            let value = match found {
                D::Utf8View => D::Utf8,
                D::BinaryView => D::Binary,
                other => other.clone(),
            };
            let dictionary = D::Dictionary(Box::new(D::Int32), Box::new(value));
            let leaf = schema.leaf(leaf)?;
            if read_conversion(&leaf, &dictionary).is_some() {
                return Ok(Some(dictionary));
            }
            if by_name {
                return Err(Error::usage(format_args!(
                    "column {} is {}, which has no dictionary form",
                    leaf.path,
                    text::leaf_type(&leaf)
                )));
            }
        }
        Ok(match found {
            _ if !options.views => None,
            D::Utf8 | D::LargeUtf8 => Some(D::Utf8View),
            D::Binary | D::LargeBinary => Some(D::BinaryView),
            _ => None,
        })
    };
    for shape in &mut shapes {
        retype_leaves(shape, &mut wanted)?;
    }
    Ok(shapes)
}

/// Leaves whose dictionaries are kept.
#[derive(Default)]
struct KeptDictionaries {
    /// Named themselves.
    leaves: HashSet<usize>,
    /// Below a named group.
    in_groups: HashSet<usize>,
}

impl KeptDictionaries {
    fn named(schema: &Schema, names: &[String]) -> Result<Self> {
        let mut kept = Self::default();
        for name in names {
            let node = schema.node_named(name)?;
            let leaves = if node.is_leaf() { &mut kept.leaves } else { &mut kept.in_groups };
            leaves.extend(node.leaves());
        }
        Ok(kept)
    }
}

/// Gives each leaf the type that `wanted` returns, if it returns one, and updates the nodes above.
/// Returns whether anything changed.
fn retype_leaves(
    shape: &mut Shape,
    wanted: &mut impl FnMut(usize, &DataType) -> Result<Option<DataType>>,
) -> Result<bool> {
    let changed = match &mut shape.kind {
        Kind::Leaf { leaf } => {
            let Some(data_type) = wanted(*leaf, shape.field.data_type())? else {
                return Ok(false);
            };
            let field = Arc::make_mut(&mut shape.field);
            field.set_data_type(data_type);
            extension::keep_if_fitting(field);
            return Ok(true);
        }
        Kind::Struct(children) => {
            let mut changed = false;
            for child in children {
                changed |= retype_leaves(child, wanted)?;
            }
            changed
        }
        Kind::List { item: child, .. } | Kind::Map { entries: child, .. } => {
            retype_leaves(child, wanted)?
        }
        Kind::Missing => false,
    };
    if changed {
        let data_type = with_children(shape.field.data_type(), &shape.kind);
        Arc::make_mut(&mut shape.field).set_data_type(data_type);
    }
    Ok(changed)
}

#[cfg(test)]
mod tests;
