//! Lists the columns of geometries, with the boxes and types that the metadata state.

use marquetry::Reader;
use marquetry::format::{BoundingBox, GeospatialStatistics, LogicalType};
use marquetry::geo::{GeoColumn as KeyColumn, GeoCrs, GeoMetadata};
use marquetry::schema::Leaf;
use serde::{Serialize, Serializer};

use crate::failure::Result;
use crate::report::{Column, Tables};

/// Whether the values of a leaf are geometries.
pub(crate) fn is_geospatial(leaf: &Leaf) -> bool {
    matches!(leaf.logical, Some(LogicalType::Geometry(_) | LogicalType::Geography(_)))
}

/// Serialises the sides of a box, if there is one.
fn sides<S: Serializer>(bbox: &Option<BoundingBox>, to: S) -> Result<S::Ok, S::Error> {
    let Some(bbox) = bbox else { return to.serialize_none() };
    let sides = [
        ("xmin", Some(bbox.xmin)),
        ("xmax", Some(bbox.xmax)),
        ("ymin", Some(bbox.ymin)),
        ("ymax", Some(bbox.ymax)),
        ("zmin", bbox.zmin),
        ("zmax", bbox.zmax),
        ("mmin", bbox.mmin),
        ("mmax", bbox.mmax),
    ];
    to.collect_map(sides.into_iter().filter_map(|(name, side)| Some((name, side?))))
}

/// The statistics of a chunk or a column.
#[derive(Clone, Serialize)]
pub(crate) struct Shapes {
    #[serde(serialize_with = "sides")]
    bbox: Option<BoundingBox>,
    types: Vec<i32>,
}

impl Shapes {
    pub(crate) fn new(of: GeospatialStatistics) -> Self {
        Self { bbox: of.bbox, types: of.geospatial_types.unwrap_or_default() }
    }

    /// Joins the statistics of two chunks: a property that is unknown for one is unknown for both.
    /// If one of the boxes crosses the antimeridian, the result has no box.
    pub(crate) fn and(self, other: Self) -> Self {
        let bbox = self.bbox.zip(other.bbox).and_then(|(a, b)| join(&a, &b));
        let are_known = !self.types.is_empty() && !other.types.is_empty();
        let types = if are_known { joined(self.types, other.types) } else { Vec::new() };
        Self { bbox, types }
    }

    /// The least coordinates.
    pub(crate) fn least(&self) -> Option<String> {
        self.bbox.as_ref().map(least_corner)
    }

    /// The greatest coordinates.
    pub(crate) fn greatest(&self) -> Option<String> {
        self.bbox.as_ref().map(greatest_corner)
    }
}

fn least_corner(bbox: &BoundingBox) -> String {
    corner([Some(bbox.xmin), Some(bbox.ymin), bbox.zmin, bbox.mmin])
}

fn greatest_corner(bbox: &BoundingBox) -> String {
    corner([Some(bbox.xmax), Some(bbox.ymax), bbox.zmax, bbox.mmax])
}

fn corner(values: [Option<f64>; 4]) -> String {
    let named = ["x", "y", "z", "m"].into_iter().zip(values);
    let shown = named.filter_map(|(name, value)| Some(format!("{name} {}", value?)));
    shown.collect::<Vec<_>>().join(", ")
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
    let some = |a: Option<f64>, b: Option<f64>, choose: fn(f64, f64) -> f64| match (a, b) {
        (Some(a), Some(b)) => Some(choose(a, b)),
        (a, b) => a.or(b),
    };
    let (xmin, xmax) = (a.xmin.min(b.xmin), a.xmax.max(b.xmax));
    let (ymin, ymax) = (a.ymin.min(b.ymin), a.ymax.max(b.ymax));
    let mut joined = BoundingBox::new(xmin, xmax, ymin, ymax);
    (joined.zmin, joined.zmax) = (some(a.zmin, b.zmin, f64::min), some(a.zmax, b.zmax, f64::max));
    (joined.mmin, joined.mmax) = (some(a.mmin, b.mmin, f64::min), some(a.mmax, b.mmax, f64::max));
    Some(joined)
}

/// The statistics of a column of geometries in the row groups.
#[derive(Serialize)]
pub(crate) struct GeoColumn {
    column: String,
    /// The box around all boxes, unless one wraps.
    #[serde(serialize_with = "sides")]
    bbox: Option<BoundingBox>,
    /// Those of all row groups that state them.
    types: Vec<i32>,
    row_groups_with_bbox: usize,
    row_groups_with_types: usize,
    #[serde(skip)]
    row_groups: usize,
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
        let mut column = GeoColumn {
            column: leaf.path.dotted(),
            bbox: None,
            types: Vec::new(),
            row_groups_with_bbox: 0,
            row_groups_with_types: 0,
            row_groups: footer.row_groups(),
        };
        for group in 0..footer.row_groups() {
            let meta = footer.column_chunk(group, leaf.index)?.meta_data;
            let Some(found) = meta.and_then(|meta| meta.geospatial_statistics) else { continue };
            let types = found.geospatial_types.unwrap_or_default();
            column.row_groups_with_types += usize::from(!types.is_empty());
            column.types = joined(column.types, types);
            let Some(bbox) = found.bbox else { continue };
            column.bbox = match (column.row_groups_with_bbox, &column.bbox) {
                (0, _) => Some(bbox),
                (_, Some(all)) => join(all, &bbox),
                (_, None) => None,
            };
            column.row_groups_with_bbox += 1;
        }
        columns.push(column);
    }
    Ok(columns)
}

/// Prints the columns of geometries, if there are some.
pub(crate) fn show(columns: &[GeoColumn], out: &mut Tables<'_>) -> Result<()> {
    if columns.is_empty() {
        return Ok(());
    }
    let shown = [
        Column::text("geometries", |of: &GeoColumn| of.column.clone()),
        Column::text("least", |of| of.bbox.as_ref().map_or_else(String::new, least_corner)),
        Column::text("greatest", |of| of.bbox.as_ref().map_or_else(String::new, greatest_corner)),
        Column::text("types", |of| {
            of.types.iter().map(|code| type_name(*code)).collect::<Vec<_>>().join(", ")
        }),
        Column::text("row groups with a box", |of| {
            format!("{} of {}", of.row_groups_with_bbox, of.row_groups)
        }),
        Column::text("with types", |of| {
            format!("{} of {}", of.row_groups_with_types, of.row_groups)
        }),
    ];
    out.show("", &shown, columns, &[])
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

/// The key `geo` of a file.
#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum GeoKey {
    /// Its content.
    Stated { version: String, primary_column: String, columns: Vec<GeoKeyColumn> },
    /// Why it cannot be read.
    Unreadable { error: String },
}

/// A column of the key `geo`.
#[derive(Serialize)]
pub(crate) struct GeoKeyColumn {
    column: String,
    encoding: String,
    geometry_types: Vec<String>,
    /// A short name of the coordinate system.
    crs: String,
    edges: String,
    #[serde(serialize_with = "sides")]
    bbox: Option<BoundingBox>,
    /// The column of boxes.
    covering: Option<String>,
}

impl GeoKey {
    /// That of a file, if it has one.
    pub(crate) fn in_file(reader: &Reader) -> Option<Self> {
        Some(match GeoMetadata::find(reader.metadata().key_values()).transpose()? {
            Ok(geo) => Self::Stated {
                version: geo.version,
                primary_column: geo.primary_column,
                columns: geo.columns.into_iter().map(GeoKeyColumn::new).collect(),
            },
            Err(error) => Self::Unreadable { error: error.message().to_owned() },
        })
    }

    /// The line about it.
    pub(crate) fn about(&self) -> String {
        match self {
            Self::Stated { version, primary_column, .. } => {
                format!("{version}, primary column {primary_column}")
            }
            Self::Unreadable { error } => format!("the key geo cannot be read: {error}"),
        }
    }

    /// Prints its columns.
    pub(crate) fn show(&self, out: &mut Tables<'_>) -> Result<()> {
        let Self::Stated { columns, .. } = self else { return Ok(()) };
        let shown = [
            Column::text("GeoParquet", |of: &GeoKeyColumn| of.column.clone()),
            Column::text("encoding", |of| of.encoding.clone()),
            Column::text("types", |of| of.geometry_types.join(", ")),
            Column::text("crs", |of| of.crs.clone()),
            Column::text("edges", |of| of.edges.clone()),
            Column::text("least", |of| of.bbox.as_ref().map_or_else(String::new, least_corner)),
            Column::text("greatest", |of| {
                of.bbox.as_ref().map_or_else(String::new, greatest_corner)
            }),
            Column::text("covering", |of| of.covering.clone().unwrap_or_default()),
        ];
        out.show("", &shown, columns, &[])
    }
}

impl GeoKeyColumn {
    fn new((column, of): (String, KeyColumn)) -> Self {
        Self {
            column,
            encoding: of.encoding.name().to_owned(),
            geometry_types: of.geometry_types,
            crs: crs_name(&of.crs),
            edges: of.edges.unwrap_or_else(|| "planar".to_owned()),
            bbox: of.bbox,
            covering: of.covering.and_then(|covering| covering.xmin.into_iter().next()),
        }
    }
}

/// `AUTHORITY:CODE` of a coordinate system, or its name.
fn crs_name(crs: &GeoCrs) -> String {
    let GeoCrs::Projjson(json) = crs else {
        let is_default = *crs == GeoCrs::Default;
        return if is_default { "OGC:CRS84" } else { "unknown" }.to_owned();
    };
    let parsed: serde_json::Value = serde_json::from_str(json).unwrap_or_default();
    let text = |of: &serde_json::Value| match of {
        serde_json::Value::String(text) => Some(text.clone()),
        serde_json::Value::Number(number) => Some(number.to_string()),
        _ => None,
    };
    let id = &parsed["id"];
    match (text(&id["authority"]), text(&id["code"])) {
        (Some(authority), Some(code)) => format!("{authority}:{code}"),
        _ => text(&parsed["name"]).unwrap_or_else(|| "PROJJSON".to_owned()),
    }
}
