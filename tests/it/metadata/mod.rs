//! Metadata without rows: kept ones and statistics as arrays.

mod kept;
mod statistics;
