//! Key-value pairs: free text of the writer in the footer and in column chunks.
//!
//! Spec: `parquet.thrift`, "KeyValue".

use crate::error::Result;
use crate::memory;
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
    /// A copy, allocated fallibly.
    pub(crate) fn copied(&self) -> Result<Self> {
        let (key, value) = (memory::text(&self.key)?, self.value.as_deref());
        let value = value.map(memory::text).transpose()?;
        Ok(Self { key, value, unknown: self.unknown.clone() })
    }

    /// Copies of all.
    pub(crate) fn copied_all(pairs: &[Self]) -> Result<Vec<Self>> {
        memory::try_collected(pairs.iter().map(Self::copied))
    }

    /// A key with a value.
    pub fn new(key: impl Into<String>, value: impl Into<String>) -> Self {
        Self { key: key.into(), value: Some(value.into()), ..Self::default() }
    }
}
