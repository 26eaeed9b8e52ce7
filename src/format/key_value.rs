//! Key-value pairs: free text of the writer in the footer and in column chunks.
//!
//! Spec: `parquet.thrift`, "KeyValue".

use crate::thrift::derive::thrift;

thrift! {
    /// A key and perhaps a value: an absent value differs from an empty one.
    #[derive(Eq, Hash)]
    pub struct KeyValue {
        /// The key.
        1 required key: String as text,
        /// The value.
        2 optional value: String as text,
    }
}

impl KeyValue {
    /// A key with a value.
    pub fn new(key: impl Into<String>, value: impl Into<String>) -> Self {
        Self { key: key.into(), value: Some(value.into()), ..Self::default() }
    }
}
