//! Tests of metadata without rows: cached metadata and statistics as arrays.

mod kept;
mod statistics;
