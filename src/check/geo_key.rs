//! Checks the key `geo`: that it can be read, that it fits the schema, and that its boxes, types
//! and coverings are those of the geometries.
//!
//! Spec: GeoParquet 1.1, "Metadata". Geometries and their boxes are read once more, as rows.
//! Trap: the sides of boxes that are FLOAT are rounded; one step beside is not a lie.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::DataType;

use super::boxes::BoxedGeometries;
use super::context::FileContext;
use super::finding::{CheckLevel, Finding, Findings};
use super::kind::FindingKind as K;
use crate::error::{ErrorKind, Result};
use crate::format::BoundingBox;
use crate::geo::gap::{gap, least_x_between};
use crate::geo::{
    Edges, GeoColumn, GeoCovering, GeoEncoding, GeoMetadata, GeospatialCollector, type_name,
};
use crate::read::Metadata;
use crate::reader::Reader;
use crate::schema::{Leaf, Node, Physical, Projection, Repetition, Schema};

/// A geometry column of the key, whose values are compared with what the key says.
pub(super) struct GeometryColumn {
    name: Arc<str>,
    column: GeoColumn,
    leaf: usize,
    /// The leaves of the sides of the boxes, if the column has a covering.
    sides: Option<[usize; 4]>,
}

impl GeometryColumn {
    /// The leaves that are read.
    pub(super) fn leaves(&self) -> impl Iterator<Item = usize> {
        std::iter::once(self.leaf).chain(self.sides.into_iter().flatten())
    }
}

/// Checks the key against the schema. Returns the columns whose values can be compared with it.
pub(super) fn check_key(file: &FileContext, findings: &mut Findings) -> Vec<GeometryColumn> {
    let geo = match GeoMetadata::find(file.footer.key_values()) {
        Ok(Some(geo)) => geo,
        Ok(None) => return Vec::new(),
        Err(error) => {
            findings.push(Finding::new(K::GeoKeyUnreadable, error.message()));
            return Vec::new();
        }
    };
    if !geo.columns.contains_key(&geo.primary_column) {
        let text = format_args!("primary_column {:?} is none of columns", geo.primary_column);
        findings.push(Finding::new(K::GeoKeyInvalid, text));
    }
    let schema = file.footer.schema();
    let mut fields = HashMap::new();
    for field in schema.fields() {
        fields.entry(field.name()).or_insert(field);
    }
    let mut found = Vec::new();
    for (name, column) in geo.columns {
        let name: Arc<str> = name.into();
        let mut invalid = |text: String| {
            findings.push(Finding::new(K::GeoKeyInvalid, text).with_column(&name));
        };
        let Some(&node) = fields.get(&*name) else {
            invalid("the file has no such top-level column".to_owned());
            continue;
        };
        check_members(&column, &mut invalid);
        if column.encoding != GeoEncoding::Wkb {
            continue;
        }
        if node.physical().ok() != Some(Physical::ByteArray) || is_repeated(node) {
            invalid("well-known binary is BYTE_ARRAY, one value a row".to_owned());
            continue;
        }
        let sides = column.covering.as_ref().and_then(|covering| {
            let found = covering_sides(schema, &fields, covering, node);
            found.map_err(|text| invalid(format!("covering: {text}"))).ok()
        });
        found.push(GeometryColumn { name, column, leaf: node.leaves().start, sides });
    }
    found
}

/// Checks the values of members that the specification lists.
fn check_members(column: &GeoColumn, invalid: &mut impl FnMut(String)) {
    if let GeoEncoding::Other(name) = &column.encoding {
        invalid(format!("the encoding {name:?} is none of the specification"));
    }
    let known: Vec<String> = [0, 1000]
        .into_iter()
        .flat_map(|dimensions| (1..=7).filter_map(move |base| type_name(dimensions + base)))
        .collect();
    if let Some(other) = column.geometry_types.iter().find(|name| !known.contains(name)) {
        invalid(format!("{other:?} in geometry_types is none of the specification"));
    }
    if let Some(edges) = column.edges.as_deref().filter(|of| !["planar", "spherical"].contains(of))
    {
        invalid(format!("edges {edges:?} are neither \"planar\" nor \"spherical\""));
    }
    if let Some(order) = column.orientation.as_deref().filter(|of| *of != "counterclockwise") {
        invalid(format!("the orientation {order:?} is not \"counterclockwise\""));
    }
}

fn is_repeated(node: Node<'_>) -> bool {
    matches!(node.repetition(), Ok(Repetition::Repeated))
}

/// The leaves of the top-level struct that is a covering, or why it cannot be one. `fields` are the
/// top-level columns by their names.
fn covering_sides(
    schema: &Schema,
    fields: &HashMap<&str, Node<'_>>,
    covering: &GeoCovering,
    geometries: Node<'_>,
) -> std::result::Result<[usize; 4], String> {
    let name = covering.xmin.first().map_or("", String::as_str);
    if *covering != GeoCovering::of_struct(name) {
        return Err("its paths are not xmin, ymin, xmax and ymax of one column".to_owned());
    }
    let Some(&node) = fields.get(name) else {
        return Err(format!("the file has no top-level column {name:?}"));
    };
    let leaf = |side: &str| -> Option<Leaf> {
        let child = node.children().find(|child| child.name() == side && child.is_leaf())?;
        schema.leaf(child.leaves().start).ok()
    };
    let sides = ["xmin", "ymin", "xmax", "ymax"].map(leaf);
    let first = sides.iter().flatten().map(|leaf| leaf.physical).next();
    let is_number = matches!(first, Some(Physical::Float | Physical::Double));
    let fits = |leaf: Option<Leaf>| {
        leaf.filter(|leaf| Some(leaf.physical) == first && leaf.max_rep == 0).map(|leaf| leaf.index)
    };
    let [Some(xmin), Some(ymin), Some(xmax), Some(ymax)] =
        sides.map(fits).map(|leaf| leaf.filter(|_| is_number))
    else {
        return Err(format!(
            "column {name:?} has no xmin, ymin, xmax and ymax, all FLOAT or DOUBLE"
        ));
    };
    if node.repetition().ok() != geometries.repetition().ok() {
        return Err(format!(
            "column {name:?} is optional, or required, where the geometries are not"
        ));
    }
    Ok([xmin, ymin, xmax, ymax])
}

/// Compares the values of a column in a row group with what the key says.
///
/// # Errors
/// `Io`.
pub(super) fn check_rows(
    file: &FileContext,
    row_group: usize,
    geometries: &GeometryColumn,
    findings: &mut Findings,
) -> Result<()> {
    if file.level < CheckLevel::Values {
        return Ok(());
    }
    let column = &geometries.column;
    let edges = match column.has_geodesic_edges() {
        true => Edges::Geodesic,
        false => Edges::Planar,
    };
    let all = BoxedGeometries::new(edges, column.bbox.as_ref());
    let mut rows = GeometryRows { column, all, wrong_box: None };
    let mut place = |finding: Finding| {
        findings.push(finding.with_row_group(row_group).with_column(&geometries.name));
    };
    match rows.read(file, row_group, geometries) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::Io => return Err(error),
        Err(error) => {
            place(Finding::new(K::NotChecked, error.message()).with_page(error.at().page));
            return Ok(());
        }
    }
    rows.compare(&mut place);
    Ok(())
}

/// The geometries of a row group, as far as they were read.
struct GeometryRows<'a> {
    column: &'a GeoColumn,
    all: BoxedGeometries,
    /// The first row whose box in the covering is not one of its geometry.
    wrong_box: Option<(usize, &'static str)>,
}

impl GeometryRows<'_> {
    fn read(
        &mut self,
        file: &FileContext,
        row_group: usize,
        geometries: &GeometryColumn,
    ) -> Result<()> {
        let metadata = Metadata::new(file.footer.clone(), file.file_len);
        let reader = Reader::with_metadata(file.source.clone(), metadata)?;
        let mut options = reader.read_options().clone();
        options.projection = Projection::leaves(geometries.leaves());
        options.limits = file.limits.clone();
        options.arrow = options.arrow.with_hint(false);
        let reader = reader.options(options).threads(1);
        let mut first = 0;
        for batch in reader.row_groups([row_group])?.batches()? {
            let batch = batch?;
            // Fields come in the order of the file.
            let of_covering =
                geometries.sides.map(|[xmin, ..]| usize::from(xmin > geometries.leaf));
            let values = batch.column(of_covering.map_or(0, |at| 1 - at));
            self.batch(first, values, of_covering.map(|at| Boxes::new(&batch, at)).as_ref())?;
            first += batch.num_rows();
        }
        Ok(())
    }

    fn batch(&mut self, first: usize, values: &ArrayRef, boxes: Option<&Boxes>) -> Result<()> {
        let Some(values) = values.as_binary_opt::<i32>() else { return Ok(()) };
        for (row, value) in values.iter().enumerate() {
            let found = value.map(|value| {
                let mut one = GeospatialCollector::new(Edges::Planar);
                // That it is no WKB was reported.
                one.push(value).ok()?;
                self.all.push(value).ok()?;
                one.finish()
            });
            let Some(boxes) = boxes.filter(|_| self.wrong_box.is_none()) else { continue };
            let bbox = found.map(|found| found.and_then(|found| found.bbox));
            let fault = boxes.fault(row, value.unwrap_or_default(), bbox.as_ref());
            self.wrong_box = fault.map(|why| (first + row, why));
        }
        Ok(())
    }

    fn compare(&self, place: &mut impl FnMut(Finding)) {
        if let Some((row, why)) = self.wrong_box {
            let text = format_args!("row {row} of the row group: {why}");
            place(Finding::new(K::GeoCoveringWrong, text));
        }
        let Some(found) = self.all.finish() else { return };
        if let (Some(stated), Some(found)) = (&self.column.bbox, &found.bbox)
            && let Some((name, stated, found)) = self.all.side_without(stated, found)
        {
            let (stated, found) = (format!("{stated:?}"), format!("{found:?}"));
            place(Finding::lie(K::GeoBoxTooSmall, name, stated, found));
        }
        let types = &self.column.geometry_types;
        let is_stated = |code: &&i32| {
            let name = type_name(**code);
            name.is_some_and(|name| types.contains(&name))
        };
        let missing = found.geospatial_types.iter().flatten().find(|code| !is_stated(code));
        if let Some(code) = missing.filter(|_| !types.is_empty()) {
            let name = type_name(*code).unwrap_or_else(|| code.to_string());
            let text = format_args!("there are geometries of the type {name}, which is not stated");
            place(Finding::new(K::GeoTypeMissing, text));
        }
    }
}

/// The boxes of a batch.
struct Boxes {
    array: ArrayRef,
    /// xmin, ymin, xmax, ymax.
    sides: [Option<ArrayRef>; 4],
}

impl Boxes {
    fn new(batch: &RecordBatch, column: usize) -> Self {
        let array = batch.column(column).clone();
        let side = |name: &str| array.as_struct_opt()?.column_by_name(name).cloned();
        let sides = ["xmin", "ymin", "xmax", "ymax"].map(side);
        Self { array, sides }
    }

    /// The least or greatest number that the writer may have meant.
    fn side(&self, side: usize, row: usize) -> Option<f64> {
        let array = self.sides.get(side)?.as_ref().filter(|array| array.is_valid(row))?;
        match array.data_type() {
            DataType::Float32 => {
                let number = array.as_primitive::<Float32Type>().value(row);
                let number = if side < 2 { number.next_down() } else { number.next_up() };
                Some(f64::from(number))
            }
            DataType::Float64 => Some(array.as_primitive::<Float64Type>().value(row)),
            _ => None,
        }
    }

    /// A fault of the box of a row, if it has one. `bbox` is that of the geometry in `wkb`: `None`
    /// without a geometry, and `Some(None)` of an empty one.
    fn fault(
        &self,
        row: usize,
        wkb: &[u8],
        bbox: Option<&Option<BoundingBox>>,
    ) -> Option<&'static str> {
        let Some(bbox) = bbox else {
            // Some writers have a box of NaNs there, which says nothing.
            let is_number = |side| self.side(side, row).is_some_and(|side| !side.is_nan());
            let has_side = self.array.is_valid(row) && (0..4).any(is_number);
            return has_side.then_some("there is a box, and no geometry");
        };
        if self.array.is_null(row) {
            return Some("there is a geometry, and no box");
        }
        let BoundingBox { xmin, xmax, ymin, ymax, .. } = bbox.as_ref()?;
        let sides = [0, 1, 2, 3].map(|side| self.side(side, row));
        let [Some(left), Some(bottom), Some(right), Some(top)] = sides else {
            return Some("a side of the box is null");
        };
        let is_inside_x = match gap(left, right) {
            // Of a box that crosses the antimeridian.
            Some(gap) => !matches!(least_x_between(wkb, gap), Ok(Some(_))),
            None => left <= *xmin && *xmax <= right,
        };
        let is_inside = is_inside_x && bottom <= *ymin && *ymax <= top;
        (!is_inside).then_some("the geometry is not inside its box")
    }
}
