//! Tests of metadata without rows: cached metadata and statistics as arrays.

mod chunk_parts;
pub mod kept;
mod statistics;
