//! The key `geo` of rows that are written anew, and the boxes of their geometries.

use std::sync::Arc;

use arrow_schema::{DataType, Schema, SchemaRef};
use marquetry::geo::{BoxSides, CoveringColumns, GeoMetadata};

use crate::args::{BoxSidesName, Global};
use crate::escape::escape;
use crate::failure::Result;
use crate::source::Source;

/// The boxes that are asked for.
pub(crate) fn coverings(
    sides: Option<BoxSidesName>,
    schema: &SchemaRef,
) -> Result<Option<CoveringColumns>> {
    let Some(sides) = sides else { return Ok(None) };
    let sides = match sides {
        BoxSidesName::Float32 => BoxSides::Float32,
        BoxSidesName::Float64 => BoxSides::Float64,
    };
    Ok(Some(CoveringColumns::new(schema, sides)?))
}

/// The schema with a key `geo` that is true of the rows of all sources: that of the first file may
/// name columns that are not read.
pub(crate) fn with_mended_key(
    schema: &SchemaRef,
    sources: &[Source],
    global: &Global,
) -> SchemaRef {
    let key = |schema: &Schema| GeoMetadata::parse(schema.metadata().get(GeoMetadata::KEY)?).ok();
    let Some(mut geo) = key(schema) else { return schema.clone() };
    let mut changes: Vec<String> = Vec::new();
    for source in sources {
        let other = key(&source.schema);
        if other.as_ref() != Some(&geo) {
            let mut new = geo.add_rows_of(other.as_ref());
            // Each of many files may widen the same box.
            new.retain(|change| !changes.contains(change));
            changes.extend(new);
        }
    }
    changes.extend(geo.retain(|path| is_there(schema, path)));
    if changes.is_empty() {
        return schema.clone();
    }
    let is_left_out = geo.columns.is_empty();
    if !global.quiet {
        let what = if is_left_out { "left out" } else { "mended" };
        let text = format!("the key geo is {what}: {}", changes.join("; "));
        eprintln!("marq: note: {}", escape(&text));
    }
    let mut metadata = schema.metadata().clone();
    match is_left_out {
        true => metadata.remove(GeoMetadata::KEY),
        false => metadata.insert(GeoMetadata::KEY.to_owned(), geo.to_json()),
    };
    Arc::new(Schema::new_with_metadata(schema.fields().clone(), metadata))
}

/// Whether there is a column with this path.
fn is_there(schema: &Schema, path: &[String]) -> bool {
    let mut fields = schema.fields();
    for (depth, name) in path.iter().enumerate() {
        let Some((_, field)) = fields.find(name) else { return false };
        match field.data_type() {
            DataType::Struct(children) => fields = children,
            _ => return depth + 1 == path.len(),
        }
    }
    true
}
