//! Converts values to JSON text, and JSON text to values.
//!
//! Spec: VariantEncoding.md; RFC 8259 for JSON.
//!
//! The parser is our own, because `serde_json` keeps the digits of decimals only with its feature
//! `arbitrary_precision`, which a library must not switch on for a whole program, and stops at a
//! depth of 128. With decimals as doubles, `serde_json` takes 1.10 times as long (quarters 1.10 to
//! 1.11, `benches/variant`).

mod plain;
mod parse;
mod write;

pub use parse::VariantJsonOptions;
