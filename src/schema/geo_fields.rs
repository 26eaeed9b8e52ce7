//! Marks the columns that the key `geo` names as geometries, with extension types of GeoArrow.
//!
//! Spec: GeoParquet 1.1, "encoding"; GeoArrow, "Extension types". Used by `to_arrow`.
//! Trap: the key is not trusted. A column that is not stored as the key says, or has an annotation
//! of its own, stays what it is.

use std::sync::Arc;

use arrow_schema::DataType;

use super::extension::Extension;
use super::geo_key::{GeoEncoding, GeoMetadata};
use super::leaf::Physical;
use super::node::{Node, Schema};
use super::shape::{Kind, Shape};
use crate::error::Result;
use crate::format::KeyValue;

/// Marks geometry columns among the top-level `shapes`. A key that cannot be read marks none.
pub(super) fn mark(schema: &Schema, key_values: &[KeyValue], shapes: &mut [Shape]) -> Result<()> {
    let Ok(Some(geo)) = GeoMetadata::find(key_values) else { return Ok(()) };
    for shape in shapes {
        let mut first = None;
        shape.for_each_leaf(&mut |leaf, _| _ = first.get_or_insert(leaf));
        let Some(leaf) = first else { continue };
        let path = schema.leaf_node(leaf)?.path();
        let Some(column) = path.names().first().and_then(|name| geo.columns.get(&**name)) else {
            continue;
        };
        let is_stored_so = match column.encoding {
            GeoEncoding::Wkb => is_wkb(schema.leaf_node(leaf)?, shape),
            _ => is_native(&column.encoding, shape.field.data_type()),
        };
        if !is_stored_so || shape.field.extension_type_name().is_some() {
            continue;
        }
        if let Some(extension) = Extension::of_geo_key(column) {
            let field = Arc::make_mut(&mut shape.field);
            // Collected, because Arrow 60 has a type of its own for metadata.
            let mut metadata = std::mem::take(field.metadata_mut()).into_iter().collect();
            extension.write(&mut metadata);
            field.set_metadata(metadata);
        }
    }
    Ok(())
}

/// Whether a column is bytes without annotation, one a row.
fn is_wkb(node: Node<'_>, shape: &Shape) -> bool {
    let is_bytes = matches!(
        shape.field.data_type(),
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView
    );
    let element = node.element();
    let is_plain = element.logical_type.is_none() && element.converted_type.is_none();
    let is_byte_array = matches!(node.physical(), Ok(Physical::ByteArray));
    matches!(shape.kind, Kind::Leaf { .. }) && is_bytes && is_plain && is_byte_array
}

/// Whether a type is that of a native encoding: lists, and structs of coordinates in them.
fn is_native(encoding: &GeoEncoding, data_type: &DataType) -> bool {
    let lists = match encoding {
        GeoEncoding::Point => 0,
        GeoEncoding::LineString | GeoEncoding::MultiPoint => 1,
        GeoEncoding::Polygon | GeoEncoding::MultiLineString => 2,
        GeoEncoding::MultiPolygon => 3,
        GeoEncoding::Wkb | GeoEncoding::Other(_) => return false,
    };
    let mut inner = data_type;
    for _ in 0..lists {
        let (DataType::List(item) | DataType::LargeList(item)) = inner else { return false };
        inner = item.data_type();
    }
    let DataType::Struct(fields) = inner else { return false };
    let names: Vec<&str> = fields.iter().map(|field| field.name().as_str()).collect();
    let is_number = fields.iter().all(|field| *field.data_type() == DataType::Float64);
    is_number && matches!(names[..], ["x", "y"] | ["x", "y", "z"])
}
