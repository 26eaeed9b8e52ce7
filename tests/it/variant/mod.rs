//! Tests of VARIANT columns.

pub mod shredding;
