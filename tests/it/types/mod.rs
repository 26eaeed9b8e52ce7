//! Types: logical and physical ones of Parquet, those of Arrow, and what maps one to the other.

mod every_arrow_type;
mod file_references;
mod geometry;
mod hints_and_targets;
mod logical;
