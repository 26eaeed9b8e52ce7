//! Metadata without rows: kept ones, statistics as arrays, wide footers.

mod kept;
mod statistics;
mod wide_footers;
