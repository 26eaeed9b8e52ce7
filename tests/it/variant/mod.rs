//! Tests of VARIANT columns.

mod casts;
mod nested;
pub mod shredding;
