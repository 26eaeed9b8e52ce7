//! Definition and repetition levels: decodes them from a page as bit [planes](crate::simd::planes)
//! and converts these to Arrow validity and offsets; for writing, collects them in [`LevelBuffer`]s
//! and [`LeafLevels`].
//!
//! Spec: README.md, "Nested Encoding". Used by `read::column`, which decodes levels, and by
//! `read::assemble`, which builds nested arrays from them. Trap: "all present" is the common case
//! and must stay cheap: one run of the highest level stays one number, never a vector.

mod buffer;
mod leaf;
mod stored;
mod validity;
mod assemble;
mod codec;
mod order;

pub(crate) use assemble::{Decoded, leaf_validity, list_slots, rows, validity};
pub(crate) use buffer::{LevelBuffer, LevelView, Period};
pub(crate) use codec::LevelDecoder;
pub(crate) use leaf::LeafLevels;
pub(crate) use order::{OfLeaf, Order, agree};
pub(crate) use validity::Validity;
