//! [`GeoKey`] makes the key `geo` of GeoParquet 1.1 from a finished footer.
//!
//! Spec: GeoParquet 1.1, "Metadata". Used by the writer and by rewrites, before the footer is
//! protected.
//! Trap: what the key states of all geometries may not be too narrow. A row group without
//! geospatial statistics leaves types and box unknown, and a covering is named only if the
//! statistics of its columns agree with the boxes of the geometries.

use std::collections::BTreeMap;

use crate::error::{Error, Result};
use crate::format::{
    BoundingBox, ColumnMetaData, EdgeInterpolationAlgorithm, FileMetaData, KeyValue, LogicalType,
};
use crate::geo::{GeoColumn, GeoCovering, GeoCrs, GeoMetadata, GeoOptions, type_name};
use crate::schema::{Node, Physical, Repetition, Schema, change_hint_metadata};

/// Makes the key of a file.
pub(crate) struct GeoKey<'a> {
    pub(crate) options: &'a GeoOptions,
    pub(crate) schema: &'a Schema,
    /// Whether the values of a leaf are encrypted, so that the key must not tell of them.
    pub(crate) is_hidden: &'a dyn Fn(usize) -> bool,
    /// Whether the old key, if there is one, is of the same rows.
    pub(crate) is_of_same_rows: bool,
}

impl GeoKey<'_> {
    /// States the key in a footer, in place of an old one.
    ///
    /// # Errors
    /// `Usage` if there is no geometry column, or one that is named is none; `Unsupported` if a
    /// coordinate system is not PROJJSON, or edges are neither straight nor spherical.
    pub(crate) fn state(&self, metadata: &mut FileMetaData) -> Result<()> {
        let key_values = metadata.key_value_metadata.take().unwrap_or_default();
        let old = GeoMetadata::find(&key_values).ok().flatten();
        let made = self.make(metadata, &key_values, old.as_ref());
        metadata.key_value_metadata = Some(key_values);
        let value = made?.to_json();
        if let Some(key_values) = &mut metadata.key_value_metadata {
            key_values.retain(|pair| pair.key != GeoMetadata::KEY);
            change_hint_metadata(key_values, GeoMetadata::KEY, Some(&value))?;
            key_values.push(KeyValue::new(GeoMetadata::KEY, value));
        }
        Ok(())
    }

    fn make(
        &self,
        metadata: &FileMetaData,
        key_values: &[KeyValue],
        old: Option<&GeoMetadata>,
    ) -> Result<GeoMetadata> {
        let (mut columns, mut first) = (BTreeMap::new(), None);
        for node in self.schema.fields() {
            let name = node.name();
            let of_old = old.and_then(|old| old.columns.get(name));
            let column = match self.column(node, key_values, of_old)? {
                Some(column) => self.with_statistics(column, node, metadata, of_old)?,
                None => match of_old {
                    Some(column) => self.as_before(column.clone()),
                    None => continue,
                },
            };
            first.get_or_insert_with(|| name.to_owned());
            columns.insert(name.to_owned(), column);
        }
        let Some(first) = first else {
            return Err(Error::usage(
                "the key geo is of geometry columns, and no top-level column is GEOMETRY or \
                 GEOGRAPHY: fields of those have the extension type geoarrow.wkb",
            ));
        };
        let named = self.options.primary_column.iter().chain(self.options.crs.keys());
        if let Some(name) = named.into_iter().find(|name| !columns.contains_key(*name)) {
            return Err(Error::usage(format_args!(
                "\"{name}\" is no geometry column; there are: {}",
                columns.keys().map(String::as_str).collect::<Vec<_>>().join(", ")
            )));
        }
        let of_old = old.map(|old| &old.primary_column).filter(|name| columns.contains_key(*name));
        let primary = self.options.primary_column.as_ref().or(of_old).unwrap_or(&first);
        Ok(GeoMetadata { columns, ..GeoMetadata::new(primary.as_str()) })
    }

    /// A column that is geometries by its type; `None` if it is not.
    fn column(
        &self,
        node: Node<'_>,
        key_values: &[KeyValue],
        old: Option<&GeoColumn>,
    ) -> Result<Option<GeoColumn>> {
        use EdgeInterpolationAlgorithm as Algorithm;
        if !node.is_leaf() || matches!(node.repetition()?, Repetition::Repeated) {
            return Ok(None);
        }
        let (crs, edges) = match self.schema.leaf(node.leaves().start)?.logical {
            Some(LogicalType::Geometry(of)) => (of.crs, None),
            Some(LogicalType::Geography(of)) => match of.algorithm {
                None | Some(Algorithm::Spherical) => (of.crs, Some("spherical".to_owned())),
                Some(other) => {
                    return Err(Error::unsupported(
                        "edges of GeoParquet",
                        format_args!("{other}: there are planar and spherical ones"),
                    )
                    .at_column(node.name()));
                }
            },
            _ => return Ok(None),
        };
        let crs = match self.options.crs.get(node.name()) {
            Some(crs) => crs.clone(),
            None => {
                crs_of(crs.as_deref(), key_values, old).map_err(|e| e.at_column(node.name()))?
            }
        };
        let mut column = GeoColumn { crs, edges, ..GeoColumn::new() };
        if let Some(old) = old {
            (column.epoch, column.orientation) = (old.epoch, old.orientation.clone());
        }
        Ok(Some(column))
    }

    /// A column of an old key that is no geometries by its type.
    fn as_before(&self, mut column: GeoColumn) -> GeoColumn {
        if !self.is_of_same_rows {
            (column.bbox, column.geometry_types) = (None, Vec::new());
        }
        let has_covering = column.covering.as_ref().is_some_and(|covering| {
            let name = covering.xmin.first().map_or("", String::as_str);
            *covering == GeoCovering::of_struct(name) && self.boxes(name).is_some()
        });
        column.covering = column.covering.filter(|_| has_covering);
        column
    }

    /// The column with what the statistics of its chunks say.
    fn with_statistics(
        &self,
        mut column: GeoColumn,
        node: Node<'_>,
        metadata: &FileMetaData,
        old: Option<&GeoColumn>,
    ) -> Result<GeoColumn> {
        let leaf = node.leaves().start;
        if (self.is_hidden)(leaf) {
            return Ok(column);
        }
        let mut found = GeoSummary::default();
        for row_group in &metadata.row_groups {
            found.add(row_group.columns.get(leaf).and_then(|chunk| chunk.meta_data.as_ref()));
        }
        column.geometry_types = found.geometry_types();
        column.bbox = found.bbox.filter(|_| found.is_known);
        let of_old = old.and_then(|old| old.covering.as_ref()?.xmin.first().cloned());
        let usual = format!("{}_bbox", node.name());
        let names = of_old.into_iter().chain([usual, "bbox".to_owned()]);
        for name in names {
            let Some(boxes) = self.boxes(&name) else { continue };
            let is_alike = boxes.repetition()? == node.repetition()?;
            if is_alike && covers(metadata, leaf, boxes) {
                column.covering = Some(GeoCovering::of_struct(&name));
                break;
            }
        }
        Ok(column)
    }

    /// The top-level struct with this name, if it has the fields of a box.
    fn boxes(&self, name: &str) -> Option<Node<'_>> {
        let node = self.schema.fields().find(|field| field.name() == name)?;
        let names: Vec<&str> = node.children().map(Node::name).collect();
        let sides = matches!(
            names[..],
            ["xmin", "ymin", "xmax", "ymax"] | ["xmin", "ymin", "zmin", "xmax", "ymax", "zmax"]
        );
        let mut types = node.children().map(|child| child.physical().ok());
        let first = types.next().flatten()?;
        let is_number = matches!(first, Physical::Float | Physical::Double);
        let is_single = node.children().all(|child| child.is_leaf() && child.max_rep() == 0);
        let is_shown = !node.leaves().any(|leaf| (self.is_hidden)(leaf));
        let fits = sides && is_number && types.all(|other| other == Some(first));
        (fits && is_single && is_shown).then_some(node)
    }
}

/// The coordinate system of a type as the key has it.
fn crs_of(crs: Option<&str>, key_values: &[KeyValue], old: Option<&GeoColumn>) -> Result<GeoCrs> {
    let crs = crs.unwrap_or_default();
    match crs {
        // Axes are x, y in any case: both are longitudes and latitudes.
        "" | "OGC:CRS84" | "EPSG:4326" | "srid:4326" => return Ok(GeoCrs::Default),
        "srid:0" => return Ok(GeoCrs::Unknown),
        _ => {}
    }
    let stored = crs.strip_prefix("projjson:").and_then(|key| {
        key_values.iter().find(|pair| pair.key == key).and_then(|pair| pair.value.as_deref())
    });
    let json = stored.unwrap_or(crs).trim();
    let parsed = serde_json::from_str::<&serde_json::value::RawValue>(json);
    if json.starts_with('{') && parsed.is_ok() {
        return Ok(GeoCrs::Projjson(json.to_owned()));
    }
    // A file with both has the same system in other words.
    match old.map(|old| &old.crs) {
        Some(crs @ GeoCrs::Projjson(_)) => Ok(crs.clone()),
        _ => Err(Error::unsupported(
            "coordinate systems of GeoParquet",
            format_args!(
                "{crs:?} is no PROJJSON, which GeoParquet wants: give it with GeoOptions::with_crs"
            ),
        )),
    }
}

/// The geospatial statistics of all row groups.
struct GeoSummary {
    /// Whether each chunk with geometries has statistics with a box.
    is_known: bool,
    are_types_known: bool,
    codes: Vec<i32>,
    bbox: Option<BoundingBox>,
}

impl Default for GeoSummary {
    fn default() -> Self {
        Self { is_known: true, are_types_known: true, codes: Vec::new(), bbox: None }
    }
}

impl GeoSummary {
    fn add(&mut self, meta: Option<&ColumnMetaData>) {
        if meta.is_some_and(is_all_null) {
            return;
        }
        let found = meta.and_then(|meta| meta.geospatial_statistics.as_ref());
        let codes = found.and_then(|found| found.geospatial_types.as_deref()).unwrap_or_default();
        self.are_types_known &= !codes.is_empty();
        self.codes.extend_from_slice(codes);
        let bbox = found.and_then(|found| found.bbox.clone());
        let Some(bbox) = bbox.filter(|bbox| bbox.xmin <= bbox.xmax && bbox.ymin <= bbox.ymax)
        else {
            self.is_known = false;
            return;
        };
        self.bbox = Some(match self.bbox.take() {
            Some(all) => joined(&all, &bbox),
            None => bbox,
        });
    }

    /// The names of the types; none if they are unknown, or one is none of GeoParquet.
    fn geometry_types(&self) -> Vec<String> {
        let mut codes = self.codes.clone();
        codes.sort_unstable();
        codes.dedup();
        let names = codes.into_iter().filter(|_| self.are_types_known).map(type_name);
        names.collect::<Option<Vec<_>>>().unwrap_or_default()
    }
}

fn is_all_null(meta: &ColumnMetaData) -> bool {
    let nulls = meta.statistics.as_ref().and_then(|statistics| statistics.null_count);
    nulls == Some(meta.num_values)
}

fn joined(a: &BoundingBox, b: &BoundingBox) -> BoundingBox {
    let some = |a: Option<f64>, b: Option<f64>, choose: fn(f64, f64) -> f64| match (a, b) {
        (Some(a), Some(b)) => Some(choose(a, b)),
        (a, b) => a.or(b),
    };
    BoundingBox {
        zmin: some(a.zmin, b.zmin, f64::min),
        zmax: some(a.zmax, b.zmax, f64::max),
        ..BoundingBox::new(
            a.xmin.min(b.xmin),
            a.xmax.max(b.xmax),
            a.ymin.min(b.ymin),
            a.ymax.max(b.ymax),
        )
    }
}

/// Whether the statistics of `boxes` are those of boxes around all geometries of the leaf, in each
/// row group.
fn covers(metadata: &FileMetaData, leaf: usize, boxes: Node<'_>) -> bool {
    let sides: Vec<(&str, usize)> =
        boxes.children().map(|child| (child.name(), child.leaves().start)).collect();
    metadata.row_groups.iter().all(|row_group| {
        let meta = |leaf: usize| row_group.columns.get(leaf)?.meta_data.as_ref();
        let nulls = |of: &ColumnMetaData| of.statistics.as_ref()?.null_count;
        let Some(geometries) = meta(leaf) else { return false };
        let found = geometries.geospatial_statistics.as_ref();
        let bbox = found.and_then(|found| found.bbox.as_ref());
        sides.iter().all(|(side, leaf)| {
            let Some(of_side) = meta(*leaf) else { return false };
            if nulls(of_side).is_none() || nulls(of_side) != nulls(geometries) {
                return false;
            }
            let (Some(bbox), false) = (bbox, is_all_null(geometries)) else {
                return is_all_null(geometries);
            };
            match *side {
                "xmin" => least(of_side).is_some_and(|least| least <= bbox.xmin),
                "ymin" => least(of_side).is_some_and(|least| least <= bbox.ymin),
                "xmax" => greatest(of_side).is_some_and(|greatest| greatest >= bbox.xmax),
                "ymax" => greatest(of_side).is_some_and(|greatest| greatest >= bbox.ymax),
                _ => true,
            }
        })
    })
}

fn least(meta: &ColumnMetaData) -> Option<f64> {
    number(meta.statistics.as_ref()?.min_value.as_deref()?, f32::next_down)
}

fn greatest(meta: &ColumnMetaData) -> Option<f64> {
    number(meta.statistics.as_ref()?.max_value.as_deref()?, f32::next_up)
}

/// The number of a bound; a FLOAT may have been rounded in the other direction than `widen`.
fn number(bytes: &[u8], widen: fn(f32) -> f32) -> Option<f64> {
    match bytes.len() {
        4 => Some(f64::from(widen(f32::from_le_bytes(bytes.try_into().ok()?)))),
        8 => Some(f64::from_le_bytes(bytes.try_into().ok()?)),
        _ => None,
    }
}
