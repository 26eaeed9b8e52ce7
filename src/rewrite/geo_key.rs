//! Mends the key `geo` of GeoParquet in a copied footer.
//!
//! Trap: the key tells of columns by their names and of all rows, so that a copy with other columns
//! or with the rows of several files may not keep it as it is. One that cannot be read is copied.

use crate::error::{Error, Result};
use crate::format::KeyValue;
use crate::geo::{GeoCrs, GeoMetadata};
use crate::read::Footer;
use crate::schema::{
    ArrowOptions, HINT_KEY, Node, Projection, Schema, change_hint_metadata, to_arrow,
};

/// Whether the key is why two files have different values of `pair`; it becomes that of both.
pub(super) fn explains(pair: &KeyValue, first: &Footer, other: &Footer) -> bool {
    let is_geo = || first.key_values().iter().any(is_readable);
    is_readable(pair) || pair.key == HINT_KEY && is_geo() && have_same_hint(first, other)
}

/// Whether a pair is a key that can be mended.
fn is_readable(pair: &KeyValue) -> bool {
    pair.key == GeoMetadata::KEY && GeoMetadata::find(std::slice::from_ref(pair)).is_ok()
}

/// Whether the Arrow schemas that two files hint at are the same but for the key.
fn have_same_hint(a: &Footer, b: &Footer) -> bool {
    let schema = |of: &Footer| {
        let hint = of.key_values().iter().filter(|pair| pair.key == HINT_KEY);
        let hint: Vec<KeyValue> = hint.cloned().collect();
        let mapping = to_arrow(of.schema(), &hint, &Projection::all(), &ArrowOptions::new());
        let schema = mapping.ok()?.schema;
        let mut metadata = schema.metadata().clone();
        metadata.remove(GeoMetadata::KEY);
        Some((schema.fields().clone(), metadata))
    };
    schema(a).is_some_and(|of_a| schema(b).is_some_and(|of_b| of_a == of_b))
}

/// Mends the key in the key-values of a new file with this schema, which is made of files with the
/// key-values `of_files`. Returns what has changed, in sentences.
///
/// # Errors
/// `Usage` if the coordinates of a column mean another place in each file; `Limit(Memory)` if the
/// system has no memory for it.
pub(super) fn mend(
    key_values: &mut Vec<KeyValue>,
    schema: &Schema,
    of_files: &[&[KeyValue]],
) -> Result<Vec<String>> {
    let Ok(Some(mut geo)) = GeoMetadata::find(key_values) else { return Ok(Vec::new()) };
    let mut notes: Vec<String> = Vec::new();
    for of_file in of_files {
        let other = GeoMetadata::find(of_file).ok().flatten();
        if other.as_ref() != Some(&geo) {
            check_systems(&geo, other.as_ref())?;
            let mut changes = geo.add_rows_of(other.as_ref());
            // Each of many files may widen the same box.
            changes.retain(|change| !notes.contains(change));
            notes.extend(changes);
        }
    }
    notes.extend(geo.retain(|path| node_at(schema, path).is_some()));
    if notes.is_empty() {
        return Ok(notes);
    }
    if geo.columns.is_empty() {
        key_values.retain(|pair| pair.key != GeoMetadata::KEY);
        change_hint_metadata(key_values, GeoMetadata::KEY, None)?;
        return Ok(vec![format!("the key geo is left out: {}", notes.join("; "))]);
    }
    let mended = geo.to_json();
    change_hint_metadata(key_values, GeoMetadata::KEY, Some(&mended))?;
    for pair in key_values.iter_mut().filter(|pair| pair.key == GeoMetadata::KEY) {
        pair.value = Some(mended.clone());
    }
    Ok(vec![format!("the key geo is mended: {}", notes.join("; "))])
}

/// # Errors
/// `Usage` if a column has two coordinate systems, both in PROJJSON.
fn check_systems(geo: &GeoMetadata, other: Option<&GeoMetadata>) -> Result<()> {
    for (name, column) in &geo.columns {
        let of_other = other.and_then(|other| other.columns.get(name));
        if let Some(GeoCrs::Projjson(theirs)) = of_other.map(|of_other| &of_other.crs)
            && let GeoCrs::Projjson(ours) = &column.crs
            && !marks(ours).eq(marks(theirs))
        {
            return Err(Error::usage(
                "the files have different coordinate systems: transform the geometries of one, or \
                 leave the key geo out",
            )
            .at_column(name.as_str()));
        }
    }
    Ok(())
}

/// JSON without the space between its parts.
fn marks(json: &str) -> impl Iterator<Item = char> {
    json.chars().filter(|c| !c.is_whitespace())
}

fn node_at<'a>(schema: &'a Schema, path: &[String]) -> Option<Node<'a>> {
    let mut node = schema.root();
    for name in path {
        node = node.children().find(|child| child.name() == name)?;
    }
    Some(node)
}
