//! A leaf of a row group, from its arrays to the bytes of its column chunk.
//!
//! The whole row group is there when a leaf is written, so that the encoding is chosen from all of
//! the data, is the same for all pages, and a dictionary that does not pay leaves nothing behind.

mod ints;
mod byte_arrays;
mod values;
mod arrays;
mod convert;
mod decimals;
mod gather;
mod source;
mod dictionary;
mod encode;
mod job;
mod measure;
mod select;
mod choose;
mod chunking;
mod sorted;
mod bloom;
mod ranks;
mod statistics;
mod pages;
mod metadata;
mod chunk;

pub(crate) use self::chunk::encode_leaf;
pub(crate) use self::job::{Parallelism, SingleThread};
pub(crate) use self::metadata::EncodedChunk;
