//! Encodes a leaf of a row group, from its arrays to the bytes of its column chunk.
//!
//! The whole row group is in memory when a leaf is written. So the encoding is chosen from all of
//! the data, and is the same for all pages; and a dictionary that does not pay is never written.
//!
//! `encoder` describes a chunk, `chunk` encodes it. `choose` chooses the form of the values: it
//! tries a `dictionary`, and `select` compares the samples that `measure` encodes. `pages` encodes
//! the values, which a `source` provides page by page, converted from Arrow by `convert`.
//! `page_lengths` decides where pages begin. `statistics`, `sorted` and `bloom` look at each page.
//! `metadata` is the footer's part of the finished chunk.

mod parallelism;
mod ints;
mod byte_arrays;
mod values;
mod arrays;
mod convert;
mod decimals;
mod intervals;
mod gather;
mod source;
mod dictionary;
mod encode;
mod encoder;
mod measure;
mod select;
mod choose;
mod chunking;
mod sorted;
mod bloom;
mod ranks;
mod statistics;
mod pages;
mod page_lengths;
mod metadata;
mod chunk;

pub(super) use self::arrays::{WantedSlots, values_of};
pub(super) use self::encoder::ChunkEncoder;
pub(super) use self::gather::{has_keys, innermost_keys};
pub(crate) use self::metadata::EncodedChunk;
pub(crate) use self::parallelism::{Parallelism, SingleThread};
