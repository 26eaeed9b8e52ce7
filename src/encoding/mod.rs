//! Encodings decode the values of a page, and encode them. Each has one file: grammar, decoder,
//! encoder, tests.
//!
//! Spec: Encodings.md. Used by `levels` and `read::column`. Every decoder checks its header in
//! `new`, owns its [`Bytes`](bytes::Bytes), and has three methods: `new(bytes, n)`, `read(n, out)`,
//! `skip(n)`. `read` returns exactly `n` values, or an error. Encoders append to a buffer and
//! cannot fail: `encode_into(values, out)`. An `encode` beside it is slow and simple, and tests
//! compare with it. Trap: a legal page may be one run of a hundred million values, so memory is
//! allocated for the values that are asked for, never for a count in the file.

mod too_few_values;
pub(crate) mod choose;
pub(crate) mod plain;
pub(crate) mod rle;
pub(crate) mod dictionary;
pub(crate) mod delta_binary;
pub(crate) mod delta_length;
pub(crate) mod delta_bytes;
pub(crate) mod split;
pub(crate) mod vectors;
pub(crate) mod alp;
pub(crate) mod pfor;
pub(crate) mod legacy;
pub(crate) mod readers;

pub(crate) use crate::span::{EndToEnd, ValueSpan};
use too_few_values::too_few_values;
