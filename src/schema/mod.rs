//! The schema: the Parquet tree, its leaves, and its Arrow types.
//!
//! For a reader, [`Schema`] is the tree of the file, [`Leaf`] one column of it, a [`Projection`]
//! selects columns, and [`to_arrow`] returns the `Shape`s that the rest of the read uses. For a
//! writer, [`from_arrow`] goes the other way.
//!
//! # The natural types
//!
//! The Arrow type of a column if neither a hint (`ARROW:schema`) nor an option nor a wanted schema
//! says otherwise:
//!
//! | Parquet | Arrow |
//! |---|---|
//! | BOOLEAN | `Boolean` |
//! | INT32, INT64 | `Int32`, `Int64` |
//! | INT32, INT64 as INTEGER of 8 to 64 bits | `Int8` … `Int64`, `UInt8` … `UInt64` |
//! | INT96 | `Timestamp` without a zone, nanoseconds ([`ArrowOptions::with_int96`]) |
//! | FLOAT, DOUBLE | `Float32`, `Float64` |
//! | BYTE_ARRAY | `Binary`, or [views](ArrowOptions::with_views), or [strings] |
//! | FIXED_LEN_BYTE_ARRAY(n) | `FixedSizeBinary(n)`, also for n = 0 |
//! | STRING, ENUM | `Utf8` |
//! | JSON | `Utf8`, extension `arrow.json` |
//! | BSON | `Binary` |
//! | UUID | `FixedSizeBinary(16)`, extension `arrow.uuid` |
//! | FLOAT16 | `Float16` |
//! | DECIMAL(p, s) | `Decimal128` up to 38 digits, `Decimal256` up to 76 |
//! | DATE | `Date32` |
//! | TIME(MILLIS), (MICROS), (NANOS) | `Time32(ms)`, `Time64(us)`, `Time64(ns)` |
//! | TIMESTAMP, adjusted to UTC | `Timestamp` of its unit, zone `UTC` |
//! | TIMESTAMP, local | `Timestamp` of its unit, no zone |
//! | INTERVAL | `Interval(MonthDayNano)` |
//! | UNKNOWN | `Null` |
//! | GEOMETRY, GEOGRAPHY | `Binary`, extension `geoarrow.wkb` |
//! | an annotation that is unknown, or misplaced | as without annotation |
//! | group | `Struct` |
//! | LIST | `List`; its element by the five rules of LogicalTypes.md |
//! | MAP, or MAP_KEY_VALUE on the outer group | `Map`; without values the `List` of its keys |
//! | VARIANT | `Struct`, extension `arrow.parquet.variant` |
//! | FILE | `Struct`, marked `FILE` under [`LOGICAL_TYPE_KEY`] |
//! | repeated node outside LIST and MAP | `List`, neither it nor its elements null |
//! | LIST, MAP, VARIANT or FILE without the structure that it must have | `Struct` |
//!
//! A top-level column that the key `geo` ([`GeoMetadata`]) names gets the extension type of its
//! encoding, such as `geoarrow.wkb`, if it has no annotation; a key that cannot be read is ignored.
//!
//! OPTIONAL is nullable. The metadata of a field have its field id under [`FIELD_ID_KEY`].
//!
//! [`GeoMetadata`]: crate::geo::GeoMetadata
//! [strings]: ArrowOptions::with_binary_as_string

mod leaf;
mod annotation;
pub(crate) mod convert;
mod json_text;
pub(crate) mod geo_key;
mod geo_mending;
mod extension;
mod names;
mod node;
mod parse;
pub(crate) mod text;
pub(crate) mod nested;
mod projection;
mod fields;
mod shape;
mod match_by;
mod name_mapping;
mod geo_fields;
mod arrow_options;
mod natural;
mod stand_in;
mod hint;
mod hint_edit;
#[cfg(feature = "check")]
mod hint_fault;
mod target;
mod unite;
mod to_arrow;
mod from_arrow;
#[cfg(test)]
mod samples;

#[cfg(feature = "check")]
pub(crate) use annotation::converted as converted_of;
pub(crate) use arrow_options::TextColumns;
pub use arrow_options::{ArrowOptions, Dictionaries};
pub use extension::{FIELD_ID_KEY, FILE, LOGICAL_TYPE_KEY};
pub(crate) use extension::{has_geodesic_edges, is_wkb};
pub(crate) use fields::{arrow_fields, schema_like};
pub use from_arrow::{FromArrowOptions, Written, from_arrow};
pub(crate) use from_arrow::{binary_of_size_0, check_nesting};
pub(crate) use hint::KEY as HINT_KEY;
pub(crate) use hint_edit::change_hint_metadata;
#[cfg(feature = "check")]
pub(crate) use hint_fault::{HintFault, hint_fault};
pub use leaf::{Leaf, LeafPath, Physical};
pub use match_by::MatchBy;
pub use name_mapping::NameMapping;
pub(crate) use nested::{element_of_list, is_variant, key_and_value};
pub use node::{Node, Repetition, Schema};
pub(crate) use parse::is_leaf_element;
pub use projection::Projection;
pub use shape::Mapping;
pub(crate) use shape::{Kind, Levels, Shape, element_of};
pub(crate) use stand_in::is_empty_group;
pub(crate) use target::{Groups, find_field};
pub(crate) use text::leaf_type;
pub use to_arrow::to_arrow;
pub(crate) use to_arrow::{map_to_arrow, refusals};
pub use unite::unite;
