//! GEOMETRY and GEOGRAPHY: values in well-known binary (WKB), and the boxes around them.
//!
//! Spec: Geospatial.md, `parquet.thrift` (GeospatialStatistics). The writer collects the statistics
//! of each column chunk with a [`GeospatialCollector`]; predicates compare the box
//! [around](Rectangle::around) a value with a [`Rectangle`], see
//! [`Column::intersects`](crate::predicate::Column::intersects).
//!
//! ```
//! use marquetry::geo::{Edges, GeospatialCollector, to_wkt};
//!
//! // Byte order, type, x, y.
//! let point = [&[1, 1, 0, 0, 0][..], &30f64.to_le_bytes(), &10f64.to_le_bytes()].concat();
//! assert_eq!(to_wkt(&point, 80)?, "POINT (30 10)");
//! let mut collector = GeospatialCollector::new(Edges::Planar);
//! collector.push(&point)?;
//! let found = collector.finish().expect("a value was seen");
//! assert_eq!(found.geospatial_types, Some(vec![1]));
//! assert_eq!(found.bbox.map(|bbox| (bbox.xmin, bbox.ymax)), Some((30.0, 10.0)));
//! # Ok::<(), marquetry::Error>(())
//! ```
//!
//! The writer writes values unchanged. A column chunk with a value that is no ISO WKB gets no
//! statistics, because a reader that prunes by a box must not lose rows that the box does not
//! cover.
//!
//! [`GeoMetadata`] is the key `geo` of GeoParquet: [reading](crate::schema) makes geometries of the
//! columns that it names, and [`GeoOptions`] asks for it in a written file. [`CoveringColumns`]
//! adds the boxes by which other readers leave out row groups and pages.
//!
//! Trap: the values come from a file. Each count is compared with the bytes that are left before it
//! is used, and nested collections are visited in a loop, so that no nesting can exhaust the stack.

mod wkb;
mod wkt;
mod bbox;
#[cfg(feature = "check")]
pub(crate) mod gap;
mod rectangle;
mod options;
mod covering;

pub use crate::schema::geo_key::{GeoColumn, GeoCovering, GeoCrs, GeoEncoding, GeoMetadata};
pub(crate) use bbox::type_name;
pub use bbox::{Edges, GeospatialCollector};
pub use covering::{BoxSides, CoveringColumns, boxes_around};
pub use options::GeoOptions;
pub use rectangle::Rectangle;
pub use wkt::to_wkt;

#[cfg(test)]
mod tests;
