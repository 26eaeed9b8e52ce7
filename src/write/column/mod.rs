//! A leaf of a row group, from its arrays to the bytes of its column chunk.
//!
//! The whole row group is in memory when a leaf is written. So the encoding is chosen from all of
//! the data, and is the same for all pages; and no bytes are written of a dictionary that
//! does not pay.
//!
//! `encoder` is what is known of a chunk, `chunk` encodes it. `choose` chooses the form of the
//! values: it looks for a `dictionary`, and `select` compares what `measure` finds of samples.
//! `pages` encodes the values, which a `source` gives page by page, converted from Arrow by
//! `convert`. `statistics`, `sorted` and `bloom` look at each page. `metadata` is what the footer
//! says of the finished chunk. `page_lengths` cuts it into pages.

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

pub(super) use self::encoder::ChunkEncoder;
pub(crate) use self::metadata::EncodedChunk;
pub(crate) use self::parallelism::{Parallelism, SingleThread};
