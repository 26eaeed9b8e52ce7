//! VARIANT columns.

mod shredding;
