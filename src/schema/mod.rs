//! The schema: the Parquet tree, its leaves, and what it becomes in Arrow.

pub mod convert;
mod leaf;
mod shape;

pub use leaf::{Leaf, LeafPath, Physical};
pub use shape::{Kind, Levels, Shape};
