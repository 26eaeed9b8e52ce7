//! JSON text of values, and values of JSON text.
//!
//! Spec: VariantEncoding.md; RFC 8259 for JSON.

mod plain;
mod parse;
mod write;

pub use parse::VariantJsonOptions;
