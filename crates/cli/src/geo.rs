//! What the metadata say of geometries, for people and programs.

use marquetry::Reader;
use marquetry::format::{BoundingBox, GeospatialStatistics, LogicalType};
use marquetry::schema::Leaf;
use serde_json::{Map, Value, json};

use crate::failure::Result;

/// Whether the values of a leaf are geometries.
pub(crate) fn is_geospatial(leaf: &Leaf) -> bool {
    matches!(leaf.logical, Some(LogicalType::Geometry(_) | LogicalType::Geography(_)))
}

/// The statistics of a chunk or a column as JSON.
pub(crate) fn json(found: &GeospatialStatistics) -> Value {
    json!({
        "bbox": found.bbox.as_ref().map(bbox_json),
        "types": found.geospatial_types.as_deref().unwrap_or_default(),
    })
}

fn bbox_json(bbox: &BoundingBox) -> Value {
    let mut sides = Map::new();
    for (name, value) in [
        ("xmin", Some(bbox.xmin)),
        ("xmax", Some(bbox.xmax)),
        ("ymin", Some(bbox.ymin)),
        ("ymax", Some(bbox.ymax)),
        ("zmin", bbox.zmin),
        ("zmax", bbox.zmax),
        ("mmin", bbox.mmin),
        ("mmax", bbox.mmax),
    ] {
        if let Some(value) = value {
            sides.insert(name.to_owned(), json!(value));
        }
    }
    sides.into()
}

/// The least, or the greatest, coordinates.
pub(crate) fn corner(bbox: &BoundingBox, least: bool) -> String {
    let pick = |least_value, greatest| if least { least_value } else { greatest };
    let mut corner = format!("x {}, y {}", pick(bbox.xmin, bbox.xmax), pick(bbox.ymin, bbox.ymax));
    for (name, value) in [
        ("z", pick_some(least, bbox.zmin, bbox.zmax)),
        ("m", pick_some(least, bbox.mmin, bbox.mmax)),
    ] {
        if let Some(value) = value {
            corner.push_str(&format!(", {name} {value}"));
        }
    }
    corner
}

fn pick_some(least: bool, a: Option<f64>, b: Option<f64>) -> Option<f64> {
    if least { a } else { b }
}

/// The statistics of two chunks together: what is unknown of one is unknown of both. If one of the
/// boxes crosses the antimeridian, no box is made of the two.
pub(crate) fn both(a: GeospatialStatistics, b: GeospatialStatistics) -> GeospatialStatistics {
    let bbox = a.bbox.zip(b.bbox).and_then(|(a, b)| join(&a, &b));
    let types = |of: Option<Vec<i32>>| of.filter(|types| !types.is_empty());
    let geospatial_types = types(a.geospatial_types).zip(types(b.geospatial_types));
    let geospatial_types = geospatial_types.map(|(a, b)| joined(a, b));
    let mut both = GeospatialStatistics::default();
    (both.bbox, both.geospatial_types) = (bbox, geospatial_types);
    both
}

fn joined(mut a: Vec<i32>, b: Vec<i32>) -> Vec<i32> {
    a.extend(b);
    a.sort_unstable();
    a.dedup();
    a
}

fn join(a: &BoundingBox, b: &BoundingBox) -> Option<BoundingBox> {
    if a.xmin > a.xmax || b.xmin > b.xmax {
        return None;
    }
    let some = |a: Option<f64>, b: Option<f64>, of: fn(f64, f64) -> f64| match (a, b) {
        (Some(a), Some(b)) => Some(of(a, b)),
        (a, b) => a.or(b),
    };
    let (xmin, xmax) = (a.xmin.min(b.xmin), a.xmax.max(b.xmax));
    let (ymin, ymax) = (a.ymin.min(b.ymin), a.ymax.max(b.ymax));
    let mut joined = BoundingBox::new(xmin, xmax, ymin, ymax);
    (joined.zmin, joined.zmax) = (some(a.zmin, b.zmin, f64::min), some(a.zmax, b.zmax, f64::max));
    (joined.mmin, joined.mmax) = (some(a.mmin, b.mmin, f64::min), some(a.mmax, b.mmax, f64::max));
    Some(joined)
}

/// What the row groups say of a column of geometries.
pub(crate) struct GeoColumn {
    pub(crate) name: String,
    row_groups: usize,
    /// Row groups that have a box, and the one around all boxes, unless one wraps.
    boxes: usize,
    bbox: Option<BoundingBox>,
    types: Vec<i32>,
}

/// The columns of geometries of a file.
pub(crate) fn columns(reader: &Reader) -> Result<Vec<GeoColumn>> {
    let footer = reader.metadata();
    let mut columns = Vec::new();
    for leaf in 0..footer.schema().leaves_len() {
        let leaf = footer.schema().leaf(leaf)?;
        if !is_geospatial(&leaf) {
            continue;
        }
        let (name, row_groups) = (leaf.path.dotted(), footer.row_groups());
        let mut column = GeoColumn { name, row_groups, boxes: 0, bbox: None, types: Vec::new() };
        for group in 0..row_groups {
            let meta = footer.column_chunk(group, leaf.index)?.meta_data;
            let Some(found) = meta.and_then(|meta| meta.geospatial_statistics) else { continue };
            column.types = joined(column.types, found.geospatial_types.unwrap_or_default());
            let Some(bbox) = found.bbox else { continue };
            column.bbox = match (column.boxes, &column.bbox) {
                (0, _) => Some(bbox),
                (_, Some(all)) => join(all, &bbox),
                (_, None) => None,
            };
            column.boxes += 1;
        }
        columns.push(column);
    }
    Ok(columns)
}

impl GeoColumn {
    pub(crate) fn json(&self) -> Value {
        json!({
            "column": self.name, "bbox": self.bbox.as_ref().map(bbox_json), "types": self.types,
            "row_groups_with_bbox": self.boxes,
        })
    }

    pub(crate) fn cells(&self) -> Vec<String> {
        let corner_of = |least| self.bbox.as_ref().map(|bbox| corner(bbox, least));
        vec![
            self.name.clone(),
            corner_of(true).unwrap_or_default(),
            corner_of(false).unwrap_or_default(),
            self.types.iter().map(|code| type_name(*code)).collect::<Vec<_>>().join(", "),
            format!("{} of {}", self.boxes, self.row_groups),
        ]
    }
}

/// The name of a type, as well-known text has it.
fn type_name(code: i32) -> String {
    let names = [
        "point",
        "linestring",
        "polygon",
        "multipoint",
        "multilinestring",
        "multipolygon",
        "geometrycollection",
    ];
    let place = usize::try_from(code % 1000).ok().and_then(|base| base.checked_sub(1));
    let dimensions = match code / 1000 {
        0 => Some(""),
        1 => Some(" z"),
        2 => Some(" m"),
        3 => Some(" zm"),
        _ => None,
    };
    match place.and_then(|place| names.get(place)).zip(dimensions) {
        Some((name, dimensions)) => format!("{name}{dimensions}"),
        None => code.to_string(),
    }
}
