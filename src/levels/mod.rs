//! Definition and repetition levels: from the bytes of a page, as bit
//! [planes](crate::simd::planes), to Arrow validity and offsets; and back, as [`LevelBuffer`]s and
//! [`LeafLevels`].
//!
//! Spec: README.md, "Nested Encoding". Used by `read::column`, which decodes levels, and by
//! `read::assemble`, which turns them into nested arrays. Trap: "all present" is the common case
//! and is never a vector: one run of the highest level stays one number.

mod buffer;
mod leaf;
mod validity;
mod assemble;
mod codec;
mod order;

pub(crate) use assemble::{Decoded, leaf_validity, list_slots, rows, validity};
pub(crate) use buffer::LevelBuffer;
pub(crate) use codec::LevelDecoder;
pub(crate) use leaf::LeafLevels;
pub(crate) use order::{OfLeaf, Order, agree};
pub(crate) use validity::Validity;
