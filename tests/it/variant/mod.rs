//! Tests of VARIANT columns.

mod casts;
pub mod shredding;
