//! Statistics: bounds and counts of a column chunk or page, sizes in memory, and geospatial bounds.
//!
//! Spec: `parquet.thrift`. `stats` makes typed bounds of them, or rejects them. They must not be
//! trusted before the column order and the writer's version are known. Trap: fields 1 and 2 are max
//! and min, in this order, deprecated, and in the wrong order of values for many types.

use crate::thrift::derive::thrift;

thrift! {
    /// Bounds and counts of a column chunk or page. An absent field is unknown; an absent count is
    /// not 0.
    #[derive(Eq, Hash)]
    pub struct Statistics {
        /// Deprecated: largest value in signed order.
        1 optional max: Vec<u8>,
        /// Deprecated: smallest value in signed order.
        2 optional min: Vec<u8>,
        /// Nulls; for leaves in lists also the entries of empty and null lists.
        3 optional null_count: i64,
        /// Distinct values.
        4 optional distinct_count: i64,
        /// Upper bound in the column order.
        5 optional max_value: Vec<u8>,
        /// Lower bound in the column order.
        6 optional min_value: Vec<u8>,
        /// Whether `max_value` occurs.
        7 optional is_max_value_exact: bool,
        /// Whether `min_value` occurs.
        8 optional is_min_value_exact: bool,
        /// NaNs; absent means that there may be some.
        9 optional nan_count: i64,
    }
}

thrift! {
    /// Sizes of a column chunk in memory.
    #[derive(Eq, Hash)]
    pub struct SizeStatistics {
        /// Bytes of all BYTE_ARRAY values, without lengths and with the dictionary expanded.
        1 optional unencoded_byte_array_data_bytes: i64,
        /// How often each repetition level occurs; empty is absent.
        2 optional repetition_level_histogram: Vec<i64>,
        /// How often each definition level occurs; empty is absent.
        3 optional definition_level_histogram: Vec<i64>,
    }
}

thrift! {
    /// The box and the types of the geometries in a GEOMETRY or GEOGRAPHY column chunk.
    pub struct GeospatialStatistics {
        /// Box around all shapes.
        1 optional bbox: BoundingBox,
        /// WKB codes of the kinds that occur; empty is unknown.
        2 optional geospatial_types: Vec<i32>,
    }
}

thrift! {
    /// A box around geometries. For GEOGRAPHY `xmin > xmax` means that it crosses the antimeridian.
    pub struct BoundingBox {
        /// Smallest x: longitude, easting.
        1 required xmin: f64,
        /// Largest x.
        2 required xmax: f64,
        /// Smallest y: latitude, northing.
        3 required ymin: f64,
        /// Largest y.
        4 required ymax: f64,
        /// Smallest z.
        5 optional zmin: f64,
        /// Largest z.
        6 optional zmax: f64,
        /// Smallest m.
        7 optional mmin: f64,
        /// Largest m.
        8 optional mmax: f64,
    }
}

impl BoundingBox {
    /// A box of x and y, without bounds of z and m.
    pub fn new(xmin: f64, xmax: f64, ymin: f64, ymax: f64) -> Self {
        Self { xmin, xmax, ymin, ymax, ..Self::default() }
    }
}
