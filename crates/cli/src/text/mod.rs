//! Reads CSV and JSON lines: the schema is inferred or given by `--schema`, then rows follow.

mod place;
mod inference;
mod maps;
mod names;
mod decimals;
mod datetimes;
mod times;
mod numbers;
mod columns;
mod nulls;
mod csv;
mod infer;
mod lines;
mod json;

pub(crate) use csv::{csv, csv_schema};
pub(crate) use json::{json, json_schema};
