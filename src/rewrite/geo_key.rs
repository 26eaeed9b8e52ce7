//! Mends the key `geo` of GeoParquet in a copied footer.
//!
//! Trap: the key tells of columns by their names and of all rows, so that a copy with other columns
//! or with the rows of several files may not keep it as it is. One that cannot be read is copied.

use crate::format::KeyValue;
use crate::geo::GeoMetadata;
use crate::schema::{Node, Schema, change_hint_metadata};

/// Whether a pair is a key that can be mended.
pub(super) fn is_readable(pair: &KeyValue) -> bool {
    pair.key == GeoMetadata::KEY && GeoMetadata::find(std::slice::from_ref(pair)).is_ok()
}

/// Mends the key in the key-values of a new file with this schema, which is made of files with the
/// key-values `of_files`. Returns what has changed, in sentences.
pub(super) fn mend(
    key_values: &mut Vec<KeyValue>,
    schema: &Schema,
    of_files: &[&[KeyValue]],
) -> Vec<String> {
    let Ok(Some(mut geo)) = GeoMetadata::find(key_values) else { return Vec::new() };
    let mut notes = Vec::new();
    for of_file in of_files {
        let other = GeoMetadata::find(of_file).ok().flatten();
        if other.as_ref() != Some(&geo) {
            notes.extend(geo.add_rows_of(other.as_ref()));
        }
    }
    notes.extend(geo.retain(|path| node_at(schema, path).is_some()));
    if notes.is_empty() {
        return notes;
    }
    if geo.columns.is_empty() {
        key_values.retain(|pair| pair.key != GeoMetadata::KEY);
        change_hint_metadata(key_values, GeoMetadata::KEY, None);
        return vec![format!("the key geo is left out: {}", notes.join("; "))];
    }
    let mended = geo.to_json();
    change_hint_metadata(key_values, GeoMetadata::KEY, Some(&mended));
    for pair in key_values.iter_mut().filter(|pair| pair.key == GeoMetadata::KEY) {
        pair.value = Some(mended.clone());
    }
    vec![format!("the key geo is mended: {}", notes.join("; "))]
}

fn node_at<'a>(schema: &'a Schema, path: &[String]) -> Option<Node<'a>> {
    let mut node = schema.root();
    for name in path {
        node = node.children().find(|child| child.name() == name)?;
    }
    Some(node)
}
