//! The schema is stored as a tree of elements, flattened depth-first, with their logical types.
//!
//! Spec: `parquet.thrift`, LogicalTypes.md. Read by `read::footer`; `schema` derives leaves and
//! shapes. Only the wire format is validated here: `schema` checks whether the elements form a
//! tree, and whether an annotation fits its physical type. Trap: some writers store an empty
//! `logicalType` union, which is read as none.

use super::enums::{ConvertedType, EdgeInterpolationAlgorithm, FieldRepetitionType, Type};
use crate::thrift::derive::thrift;

thrift! {
    /// A node of the schema tree; the list of nodes is in depth-first order, the root first.
    pub struct SchemaElement {
        /// Physical type; on leaves only.
        1 optional r#type: Type,
        /// Bytes of a value; only for FIXED_LEN_BYTE_ARRAY.
        2 optional type_length: i32,
        /// Required on all but the root, where it means nothing.
        3 optional repetition_type: FieldRepetitionType,
        /// Name of the node. Any text: it may hold dots, and may be empty.
        4 required name: String,
        /// Number of children; on groups. A leaf may carry 0.
        5 optional num_children: i32,
        /// The older annotation.
        6 optional converted_type: ConvertedType,
        /// Scale of a DECIMAL, for old readers.
        7 optional scale: i32,
        /// Precision of a DECIMAL, for old readers.
        8 optional precision: i32,
        /// Id of the field in the user's schema.
        9 optional field_id: i32,
        /// The annotation; wins over `converted_type`.
        10 optional logical_type: LogicalType,
    }
}

impl SchemaElement {
    /// A node with a name and nothing else.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }
}

thrift! {
    /// The meaning of the values of a leaf, or of the children of a group.
    pub union LogicalType {
        /// UTF-8 text.
        1 String "STRING",
        /// A map.
        2 Map "MAP",
        /// A list.
        3 List "LIST",
        /// The name of an enum value, UTF-8.
        4 Enum "ENUM",
        /// An unscaled integer with a scale.
        5 Decimal(DecimalType) "DECIMAL",
        /// Days since 1970-01-01.
        6 Date "DATE",
        /// Time of day.
        7 Time(TimeType) "TIME",
        /// A point in time, or a wall-clock time.
        8 Timestamp(TimestampType) "TIMESTAMP",
        /// An integer of fewer bits, or an unsigned one.
        10 Integer(IntType) "INTEGER",
        /// The type whose every value is null.
        11 Unknown "UNKNOWN",
        /// A JSON document, UTF-8.
        12 Json "JSON",
        /// A BSON document.
        13 Bson "BSON",
        /// 16 bytes, big-endian.
        14 Uuid "UUID",
        /// IEEE 754 binary16.
        15 Float16 "FLOAT16",
        /// A semi-structured value: a group of metadata and value.
        16 Variant(VariantType) "VARIANT",
        /// Shapes in a plane, WKB.
        17 Geometry(GeometryType) "GEOMETRY",
        /// Shapes on the ellipsoid, WKB.
        18 Geography(GeographyType) "GEOGRAPHY",
        /// A file: a group of its location and its bytes.
        19 File "FILE",
    }
}

thrift! {
    /// Parameters of DECIMAL: the value is `unscaled × 10^-scale`.
    #[derive(Copy, Eq, Hash)]
    pub closed struct DecimalType {
        /// Digits after the point.
        1 required scale: i32,
        /// Digits in all.
        2 required precision: i32,
    }
}

impl DecimalType {
    /// DECIMAL(`precision`, `scale`).
    pub const fn new(precision: i32, scale: i32) -> Self {
        Self { scale, precision }
    }
}

thrift! {
    /// Unit of TIME and TIMESTAMP.
    #[derive(Eq, Hash)]
    pub union TimeUnit {
        /// Thousandths of a second.
        1 Millis "MILLIS",
        /// Millionths of a second.
        2 Micros "MICROS",
        /// Billionths of a second.
        3 Nanos "NANOS",
    }
}

thrift! {
    /// Parameters of TIME.
    #[derive(Eq, Hash)]
    pub closed struct TimeType {
        /// Whether the time is in UTC, not on a clock of unknown place.
        1 required is_adjusted_to_utc: bool,
        /// Unit of the value.
        2 required unit: TimeUnit,
    }
}

impl TimeType {
    /// A time of day in UTC, in `unit`.
    pub const fn utc(unit: TimeUnit) -> Self {
        Self { is_adjusted_to_utc: true, unit }
    }

    /// A time of day on a clock in an unknown time zone, in `unit`.
    pub const fn local(unit: TimeUnit) -> Self {
        Self { is_adjusted_to_utc: false, unit }
    }
}

thrift! {
    /// Parameters of TIMESTAMP.
    #[derive(Eq, Hash)]
    pub closed struct TimestampType {
        /// Whether the value is an instant (UTC), not the reading of a clock of unknown place.
        1 required is_adjusted_to_utc: bool,
        /// Unit of the value, counted from 1970-01-01 00:00.
        2 required unit: TimeUnit,
    }
}

impl TimestampType {
    /// An instant, in `unit`.
    pub const fn utc(unit: TimeUnit) -> Self {
        Self { is_adjusted_to_utc: true, unit }
    }

    /// The reading of a clock in an unknown time zone, in `unit`.
    pub const fn local(unit: TimeUnit) -> Self {
        Self { is_adjusted_to_utc: false, unit }
    }
}

thrift! {
    /// Parameters of INTEGER.
    #[derive(Copy, Eq, Hash)]
    pub closed struct IntType {
        /// 8, 16, 32 or 64.
        1 required bit_width: i8,
        /// Whether the value has a sign.
        2 required is_signed: bool,
    }
}

impl IntType {
    /// A signed integer of 8, 16, 32 or 64 bits.
    pub const fn signed(bit_width: i8) -> Self {
        Self { bit_width, is_signed: true }
    }

    /// An unsigned integer of 8, 16, 32 or 64 bits.
    pub const fn unsigned(bit_width: i8) -> Self {
        Self { bit_width, is_signed: false }
    }
}

thrift! {
    /// Parameters of VARIANT.
    #[derive(Eq, Hash)]
    pub struct VariantType {
        /// Version of the variant specification; 1 if absent.
        1 optional specification_version: i8,
    }
}

thrift! {
    /// Parameters of GEOMETRY.
    #[derive(Eq, Hash)]
    pub struct GeometryType {
        /// Coordinate reference system; `OGC:CRS84` if absent.
        1 optional crs: String as text,
    }
}

impl GeometryType {
    /// Shapes in the coordinate reference system `crs`.
    pub fn new(crs: impl Into<String>) -> Self {
        Self { crs: Some(crs.into()), ..Self::default() }
    }
}

thrift! {
    /// Parameters of GEOGRAPHY.
    #[derive(Eq, Hash)]
    pub struct GeographyType {
        /// Coordinate reference system; `OGC:CRS84` if absent.
        1 optional crs: String as text,
        /// How edges run; SPHERICAL if absent.
        2 optional algorithm: EdgeInterpolationAlgorithm,
    }
}

impl GeographyType {
    /// Shapes in the coordinate reference system `crs`, their edges along great circles.
    pub fn new(crs: impl Into<String>) -> Self {
        Self { crs: Some(crs.into()), ..Self::default() }
    }

    /// Sets how edges run.
    #[must_use]
    pub fn with_algorithm(mut self, algorithm: EdgeInterpolationAlgorithm) -> Self {
        self.algorithm = Some(algorithm);
        self
    }
}
