//! [`GeoOptions`]: settings of the key `geo` of a written file.

use std::collections::BTreeMap;

use crate::schema::geo_key::GeoCrs;

/// Settings of the key `geo` of a written file.
///
/// The key names each top-level GEOMETRY and GEOGRAPHY column, with its coordinate system and
/// edges, and with the types and the box of the geometries as the geospatial statistics have them.
/// A struct of `xmin`, `ymin`, `xmax` and `ymax` that is named `bbox`, or `NAME_bbox` for the
/// column NAME, becomes the covering of the column, if its statistics agree. The orientation, epoch
/// and covering of a key `geo` in the metadata of the schema are kept.
/// [`CoveringColumns`](super::CoveringColumns) makes such structs.
///
/// ```
/// # fn main() -> marquetry::Result<()> {
/// use std::collections::HashMap;
/// use std::sync::Arc;
///
/// use arrow_array::{BinaryArray, RecordBatch};
/// use arrow_schema::{DataType, Field, Schema};
/// use marquetry::geo::{GeoMetadata, GeoOptions};
/// use marquetry::io::WriteSink;
/// use marquetry::{Reader, WriteOptions, Writer};
///
/// // Byte order, type, x, y.
/// let point = [&[1, 1, 0, 0, 0][..], &30f64.to_le_bytes(), &10f64.to_le_bytes()].concat();
/// let extension = [
///     ("ARROW:extension:name", "geoarrow.wkb"),
///     ("ARROW:extension:metadata", r#"{"crs":"OGC:CRS84"}"#),
/// ];
/// let extension = extension.map(|(key, value)| (key.to_owned(), value.to_owned()));
/// let field = Field::new("place", DataType::Binary, true).with_metadata(extension.into());
/// let schema = Arc::new(Schema::new(vec![field]));
/// let batch = RecordBatch::try_new(
///     schema.clone(),
///     vec![Arc::new(BinaryArray::from_iter_values([point]))],
/// )?;
///
/// let options = WriteOptions::new().with_geo(GeoOptions::new());
/// let mut writer = Writer::new(WriteSink(Vec::new()), schema, options)?;
/// writer.write(&batch)?;
/// let (_, file) = writer.into_inner()?;
///
/// let reader = Reader::new(bytes::Bytes::from(file))?;
/// let geo = GeoMetadata::find(reader.metadata().key_values())?.expect("it was asked for");
/// assert_eq!(geo.primary_column, "place");
/// assert_eq!(geo.columns["place"].geometry_types, ["Point"]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct GeoOptions {
    pub(crate) primary_column: Option<String>,
    pub(crate) crs: BTreeMap<String, GeoCrs>,
}

impl GeoOptions {
    /// The key as it follows from the columns.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the primary column. Default: that of a key `geo` in the metadata of the schema, or the
    /// first geometry column.
    #[must_use]
    pub fn with_primary_column(mut self, column: impl Into<String>) -> Self {
        self.primary_column = Some(column.into());
        self
    }

    /// Sets the coordinate system that the key states for a column, in place of that of its type:
    /// needed where that is not PROJJSON, such as `EPSG:3857`.
    #[must_use]
    pub fn with_crs(mut self, column: impl Into<String>, crs: GeoCrs) -> Self {
        self.crs.insert(column.into(), crs);
        self
    }
}
