//! Tests of VARIANT columns.

mod shredding;
