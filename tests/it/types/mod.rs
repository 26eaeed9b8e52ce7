//! Tests of types: logical and physical ones of Parquet, those of Arrow, and the mapping between
//! them.

mod coverings;
mod dictionaries;
mod every_arrow_type;
mod file_references;
pub mod geometry;
pub mod geoparquet;
mod hints_and_targets;
mod logical;
