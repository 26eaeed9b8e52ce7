//! The place of a value in a text file.

use std::sync::Arc;

use crate::failure::Failure;

/// A line of a file.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) file: Arc<str>,
    pub(super) line: u64,
}

impl Place {
    pub(super) fn failure(&self, path: &str, text: impl std::fmt::Display) -> Failure {
        Failure::content(&self.file, Some(self.line), format!("column {path}: {text}"))
    }
}
