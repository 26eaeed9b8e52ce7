//! Tests of metadata without rows: cached metadata, statistics as arrays, wide footers.

mod kept;
mod statistics;
mod wide_footers;
