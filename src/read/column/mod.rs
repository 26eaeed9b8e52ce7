//! Decodes the levels and values of one column chunk, row by row, into Arrow arrays.
//!
//! Spec: README.md, "Nested Encoding", "Data Pages". A `LeafReader` (`reader`) decodes the rows of
//! a leaf. It has three loops: `flat` for rows outside lists, `nested` for rows inside lists,
//! `selected` for some rows of many. A `PageCursor` (`cursor`) gives it pages and levels, a
//! `ValueReader` (`values`) the values.
//!
//! Types are matched twice: `values::value_reader` matches the physical type and the conversion
//! once for a chunk, and each page matches its encoding. The loops below work on slices of one
//! type. A column without nulls has neither levels nor a bitmap.

mod memory;
mod rows;
mod spec;
mod length_prefixes;
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
