//! Tests of filters: the rows that pass, and what need not be read for them.

mod conjunctions;
mod pruning;
pub mod rows;
mod untrue_statistics;
