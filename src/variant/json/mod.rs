//! Converts values to JSON text, and JSON text to values.
//!
//! Spec: VariantEncoding.md; RFC 8259 for JSON.

mod plain;
mod parse;
mod write;

pub use parse::VariantJsonOptions;
