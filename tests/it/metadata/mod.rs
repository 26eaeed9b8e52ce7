//! Tests of metadata without rows: cached metadata and statistics as arrays.

mod chunk_parts;
mod kept;
mod statistics;
