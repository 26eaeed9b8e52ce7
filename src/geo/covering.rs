//! [`CoveringColumns`] adds columns of boxes to batches with geometries.
//!
//! Spec: GeoParquet 1.1, "covering". The writer names them in the key `geo`, see
//! [`GeoOptions`](super::GeoOptions).
//! Trap: a box that is smaller than its geometry loses rows, so that sides of 32 bits are rounded
//! outwards. A row has a box if and only if it has a geometry: the sides of an empty one are NaN,
//! which statistics leave out and which meets nothing.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, Float32Array, Float64Array, RecordBatch, StructArray};
use arrow_schema::{DataType, Field, FieldRef, Fields, Schema, SchemaRef};

use super::bbox::Edges;
use super::rectangle::Rectangle;
use crate::error::{Error, Result};
use crate::schema::geo_key::{GeoCovering, GeoMetadata};
use crate::schema::{has_geodesic_edges, is_wkb};

/// The type of the sides of boxes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum BoxSides {
    /// 32 bits, rounded outwards: half the size, and boxes that are a little larger.
    #[default]
    Float32,
    /// 64 bits: the smallest boxes.
    Float64,
}

impl BoxSides {
    fn fields(self) -> Fields {
        let side = match self {
            Self::Float32 => DataType::Float32,
            Self::Float64 => DataType::Float64,
        };
        let fields = SIDES.map(|name| Field::new(name, side.clone(), false));
        fields.into_iter().collect()
    }

    /// The values of a side, rounded down if they are the least coordinates, and else up.
    fn array(self, values: Vec<f64>, is_least: bool) -> ArrayRef {
        match (self, is_least) {
            (Self::Float64, _) => Arc::new(Float64Array::from(values)),
            (Self::Float32, true) => {
                Arc::new(Float32Array::from_iter_values(values.into_iter().map(at_most)))
            }
            (Self::Float32, false) => {
                Arc::new(Float32Array::from_iter_values(values.into_iter().map(at_least)))
            }
        }
    }
}

/// The sides in the order of the specification.
const SIDES: [&str; 4] = ["xmin", "ymin", "xmax", "ymax"];

/// The nearest number of 32 bits that is not greater.
#[expect(clippy::cast_possible_truncation, reason = "rounded, and then compared")]
fn at_most(value: f64) -> f32 {
    let near = value as f32;
    if f64::from(near) > value { near.next_down() } else { near }
}

/// The nearest number of 32 bits that is not less.
#[expect(clippy::cast_possible_truncation, reason = "rounded, and then compared")]
fn at_least(value: f64) -> f32 {
    let near = value as f32;
    if f64::from(near) < value { near.next_up() } else { near }
}

/// The boxes around values in WKB with planar edges: structs of `xmin`, `ymin`, `xmax` and `ymax`.
///
/// Null where the geometry is null, as GeoParquet wants it; the sides of an empty geometry are NaN.
///
/// # Errors
/// `Malformed(Geospatial)` if a value is no ISO WKB; `Usage` if the array is not binary.
pub fn boxes_around(geometries: &dyn Array, sides: BoxSides) -> Result<StructArray> {
    let of_rows = match geometries.data_type() {
        DataType::Binary => sides_of(geometries.as_binary::<i32>().iter()),
        DataType::LargeBinary => sides_of(geometries.as_binary::<i64>().iter()),
        DataType::BinaryView => sides_of(geometries.as_binary_view().iter()),
        other => Err(Error::usage(format_args!(
            "boxes around geometries: expected Binary, LargeBinary or BinaryView, found {other}"
        ))),
    };
    let [xmin, ymin, xmax, ymax] = of_rows?;
    let arrays = vec![
        sides.array(xmin, true),
        sides.array(ymin, true),
        sides.array(xmax, false),
        sides.array(ymax, false),
    ];
    Ok(StructArray::try_new(sides.fields(), arrays, geometries.nulls().cloned())?)
}

fn sides_of<'a>(values: impl Iterator<Item = Option<&'a [u8]>>) -> Result<[Vec<f64>; 4]> {
    let mut sides = [const { Vec::new() }; 4];
    for side in &mut sides {
        side.reserve_exact(values.size_hint().0);
    }
    for (row, value) in values.enumerate() {
        let around = value.map(|wkb| Rectangle::around(wkb, Edges::Planar)).transpose();
        let around = around.map_err(|e| e.within(format_args!("row {row} of a batch")))?.flatten();
        let of_row = around.map_or([f64::NAN; 4], |of| [of.xmin, of.ymin, of.xmax, of.ymax]);
        for (side, value) in sides.iter_mut().zip(of_row) {
            side.push(value);
        }
    }
    Ok(sides)
}

/// Adds to each batch a column of boxes for each column of geometries, so that readers which know
/// the coverings of GeoParquet read only the row groups and pages of a region.
///
/// Columns with the extension type `geoarrow.wkb` get one, those with edges on a sphere excepted: a
/// box around the ends of such an edge need not cover it. It is named `bbox`, or `NAME_bbox` if
/// that is taken or several columns get one, and stands at the end. A covering that the key `geo`
/// in the metadata of the schema names is computed anew in its place.
///
/// ```
/// # fn main() -> marquetry::Result<()> {
/// # use std::sync::Arc;
/// # use arrow_array::{BinaryArray, RecordBatch};
/// # use arrow_schema::{DataType, Field, Schema};
/// use marquetry::geo::{BoxSides, CoveringColumns, GeoMetadata, GeoOptions};
/// use marquetry::io::WriteSink;
/// use marquetry::{Reader, WriteOptions, Writer};
///
/// # let point = [&[1, 1, 0, 0, 0][..], &30f64.to_le_bytes(), &10f64.to_le_bytes()].concat();
/// # let extension = [("ARROW:extension:name".to_owned(), "geoarrow.wkb".to_owned())];
/// # let field = Field::new("place", DataType::Binary, true).with_metadata(extension.into());
/// # let schema = Arc::new(Schema::new(vec![field]));
/// # let places = Arc::new(BinaryArray::from_iter_values([point]));
/// # let batch = RecordBatch::try_new(schema, vec![places])?;
/// // A batch with a column "place" of geometries.
/// let coverings = CoveringColumns::new(batch.schema_ref(), BoxSides::Float32)?;
/// let options = WriteOptions::new().with_geo(GeoOptions::new());
/// let mut writer = Writer::new(WriteSink(Vec::new()), coverings.schema().clone(), options)?;
/// writer.write(&coverings.add_to(&batch)?)?;
/// let (_, file) = writer.into_inner()?;
///
/// let reader = Reader::new(bytes::Bytes::from(file))?;
/// let geo = GeoMetadata::find(reader.metadata().key_values())?.expect("it was asked for");
/// let covering = geo.columns["place"].covering.as_ref().expect("a covering");
/// assert_eq!(covering.xmin, ["bbox", "xmin"]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct CoveringColumns {
    sides: BoxSides,
    /// Number of columns of a batch.
    width: usize,
    schema: SchemaRef,
    columns: Vec<CoveringColumn>,
}

#[derive(Debug, Clone)]
struct CoveringColumn {
    geometries: usize,
    /// Its place in the new schema.
    boxes: usize,
}

impl CoveringColumns {
    /// The columns for batches of this schema.
    ///
    /// # Errors
    /// `Usage` if no column has geometries with planar edges, or the names for the boxes are taken.
    pub fn new(schema: &Schema, sides: BoxSides) -> Result<Self> {
        let is_covered = |field: &Field| is_wkb(field) && !has_geodesic_edges(field);
        let places = 0..schema.fields().len();
        let geometries: Vec<usize> =
            places.filter(|place| is_covered(schema.field(*place))).collect();
        if geometries.is_empty() {
            return Err(Error::usage(
                "a covering is of geometries with planar edges, and no column has these: fields of \
                 those have the extension type geoarrow.wkb",
            ));
        }
        let old = schema.metadata().get(GeoMetadata::KEY);
        let old = old.and_then(|text| GeoMetadata::parse(text).ok());
        let mut fields: Vec<FieldRef> = schema.fields().to_vec();
        let mut columns = Vec::with_capacity(geometries.len());
        let is_one = geometries.len() == 1;
        for place in geometries {
            let geometry = schema.field(place);
            let stated = old.as_ref().and_then(|old| boxes_in(old, geometry.name(), schema));
            // Two columns may name the same boxes.
            let is_used =
                |place: &usize| columns.iter().any(|of: &CoveringColumn| of.boxes == *place);
            let stated = stated.filter(|place| !is_used(place));
            let name = match stated {
                Some(boxes) => schema.field(boxes).name().clone(),
                None => free_name(geometry.name(), is_one, &fields)?,
            };
            let boxes = DataType::Struct(sides.fields());
            let field = Arc::new(Field::new(name, boxes, geometry.is_nullable()));
            let boxes = stated.unwrap_or(fields.len());
            match fields.get_mut(boxes) {
                Some(old) => *old = field,
                None => fields.push(field),
            }
            columns.push(CoveringColumn { geometries: place, boxes });
        }
        let width = schema.fields().len();
        let schema = Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()));
        Ok(Self { sides, width, schema, columns })
    }

    /// The schema of batches with the columns.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The coverings, with the name of the column that each is of.
    ///
    /// A written file states them by itself in the key `geo` if [that is asked
    /// for](crate::WriteOptions::with_geo), and its columns have statistics.
    pub fn coverings(&self) -> impl Iterator<Item = (&str, GeoCovering)> {
        self.columns.iter().map(|column| {
            let name = |place: usize| self.schema.field(place).name().as_str();
            (name(column.geometries), GeoCovering::of_struct(name(column.boxes)))
        })
    }

    /// A batch with the columns.
    ///
    /// # Errors
    /// `Malformed(Geospatial)` if a value is no ISO WKB; `Usage` if the batch has another schema
    /// than that which was given.
    pub fn add_to(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        if batch.num_columns() != self.width {
            return Err(Error::usage(format_args!(
                "a batch for coverings: expected {} columns, found {}",
                self.width,
                batch.num_columns()
            )));
        }
        let mut arrays = batch.columns().to_vec();
        for column in &self.columns {
            let name = || self.schema.field(column.geometries).name().as_str();
            let boxes = boxes_around(batch.column(column.geometries), self.sides);
            let boxes: ArrayRef = Arc::new(boxes.map_err(|e| e.at_column(name()))?);
            match arrays.get_mut(column.boxes) {
                Some(old) => *old = boxes,
                None => arrays.push(boxes),
            }
        }
        Ok(RecordBatch::try_new(Arc::clone(&self.schema), arrays)?)
    }
}

/// The place of the boxes that a key names for a column.
fn boxes_in(key: &GeoMetadata, geometry: &str, schema: &Schema) -> Option<usize> {
    let covering = key.columns.get(geometry)?.covering.as_ref()?;
    let name = covering.xmin.first()?;
    let place = schema.index_of(name).ok()?;
    let is_struct = matches!(schema.field(place).data_type(), DataType::Struct(_));
    (*covering == GeoCovering::of_struct(name) && is_struct).then_some(place)
}

/// A name for the boxes of a column that no field has.
fn free_name(geometry: &str, is_one: bool, fields: &[FieldRef]) -> Result<String> {
    let is_free = |name: &String| fields.iter().all(|field| field.name() != name);
    let usual = is_one.then(|| "bbox".to_owned());
    let mut names = usual.into_iter().chain([format!("{geometry}_bbox")]);
    names.find(is_free).ok_or_else(|| {
        Error::usage(format_args!(
            "there is a column \"{geometry}_bbox\" already, which the key geo does not name as the \
             covering of \"{geometry}\": rename it, or leave it out"
        ))
        .at_column(geometry)
    })
}
