//! A column: levels and values of one column chunk, decoded row by row into Arrow arrays.
//!
//! Spec: README.md, "Nested Encoding", "Data Pages". Everything is decided once:
//! `values::value_reader` matches the physical type and the conversion, a page matches its
//! encoding. Below it, all is concrete over plain slices. "All present" has neither levels nor a
//! bitmap.

mod memory;
mod rows;
mod spec;
mod values;
mod cursor;
mod materialize;
mod reader;
mod flat;
mod nested;
mod selected;

pub(super) use self::materialize::{materialize, materialized_bytes};
pub(crate) use self::reader::LeafBatch;
pub(super) use self::reader::LeafReader;
pub(crate) use self::spec::ColumnSpec;
pub(super) use self::spec::column_specs;
