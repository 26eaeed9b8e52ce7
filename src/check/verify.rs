//! [`ChunkVerifier`]: checks single row groups and column chunks, whatever the footer is that
//! describes them.
//!
//! Used by `rewrite::salvage`, which makes footers of what it finds.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

use super::column::check_chunk;
use super::context::FileContext;
use super::finding::{CheckLevel, Finding};
use super::kind::{FindingKind as K, Severity};
use crate::error::Result;
use crate::io::{Pool, Source, map_in};
use crate::limits::{Budget, Limits};
use crate::read::Footer;

/// Checks chunks of one file, down to their values and statistics.
pub(crate) struct ChunkVerifier {
    file: FileContext,
}

/// The outcome of a check.
#[derive(Debug)]
pub(crate) struct ChunkVerdict {
    pub(crate) leaf: usize,
    /// Whether all its values were decoded.
    pub(crate) is_whole: bool,
    /// Whether bytes or values contradict each other, and not only what the footer says of them.
    pub(crate) is_damaged: bool,
    /// The first thing that is wrong, if anything is.
    pub(crate) finding: Option<Finding>,
}

impl ChunkVerdict {
    /// Whether nothing is wrong.
    pub(crate) fn is_true(&self) -> bool {
        self.is_whole && self.finding.is_none()
    }
}

impl ChunkVerifier {
    /// Of a file whose chunks `footer` describes.
    pub(crate) fn new(
        source: Arc<dyn Source>,
        footer: Footer,
        file_len: u64,
        limits: &Limits,
    ) -> Self {
        let file = FileContext {
            source,
            footer,
            file_len,
            budget: Budget::new(limits.memory_bytes),
            limits: limits.clone(),
            level: CheckLevel::Truth,
            has_unordered_bounds: AtomicBool::new(false),
            bytes_read: AtomicU64::new(0),
            expanded: AtomicU64::new(0),
        };
        Self { file }
    }

    /// Goes on with another footer, and with what may still be expanded.
    pub(crate) fn describe(&mut self, source: Arc<dyn Source>, footer: Footer, file_len: u64) {
        (self.file.source, self.file.footer, self.file.file_len) = (source, footer, file_len);
    }

    /// Checks a chunk.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn chunk(&self, row_group: usize, leaf: usize) -> Result<ChunkVerdict> {
        self.checked(row_group, leaf, true)
    }

    fn checked(&self, row_group: usize, leaf: usize, is_alone: bool) -> Result<ChunkVerdict> {
        let mut outcome = check_chunk(&self.file, row_group, leaf, is_alone, None)?;
        if outcome.is_starved && !is_alone {
            outcome = check_chunk(&self.file, row_group, leaf, true, None)?;
        }
        let list = outcome.findings.list;
        let is_fault = |finding: &Finding| match finding.kind {
            K::PageBytesLeft => true,
            // What is stated of values that are all known is not wrong for want of memory.
            K::NotChecked => !outcome.is_whole,
            // Values that break a rule of their type may have been written so.
            K::JsonInvalid | K::BsonInvalid | K::DecimalTooLarge | K::IntegerTooWide => false,
            _ => finding.severity() == Severity::Error,
        };
        let is_damaged = list.iter().any(|finding| is_fault(finding) && is_of_data(finding.kind));
        let finding = list.into_iter().find(is_fault);
        Ok(ChunkVerdict { leaf, is_whole: outcome.is_whole, is_damaged, finding })
    }

    /// Checks the chunks of a row group, side by side.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn row_group(&self, row_group: usize) -> Result<Vec<ChunkVerdict>> {
        let leaves = (0..self.file.footer.schema().leaves_len()).collect();
        map_in(Some(&Pool::Global), leaves, |leaf| self.checked(row_group, leaf, false))
    }
}

/// Whether a finding is about bytes, values, or the bounds and counts that contradict them, and not
/// about other things that the footer and the indexes say, in which writers have faults.
fn is_of_data(kind: K) -> bool {
    let code = kind.code();
    let of_footer = [
        "chunk-path-differs",
        "chunk-uncompressed-size-wrong",
        "chunk-bytes-wrong",
        "chunk-definition-histogram-wrong",
        "chunk-repetition-histogram-wrong",
        "chunk-distinct-count-wrong",
        "chunk-nan-count-wrong",
        "chunk-min-not-exact",
        "chunk-max-not-exact",
        "chunk-box-too-small",
        "chunk-geometry-type-missing",
        "column-index-outside-file",
        "column-index-alone",
        "column-index-unreadable",
        "column-index-miscounted",
        "column-index-bound",
        "column-index-null-page-wrong",
        "column-index-nan-count-wrong",
        "column-index-definition-histogram-wrong",
        "column-index-repetition-histogram-wrong",
        "offset-index",
        "bloom-filter-outside-file",
        "bloom-filter-unreadable",
        "bloom-filter-length-wrong",
        "boundary-order-wrong",
        "dictionary-offset",
        "data-page-offset-wrong",
        "encoding-stats",
        "unencoded-bytes-misplaced",
        "null-count-impossible",
        "distinct-count-impossible",
        "nan-count-impossible",
        "bound-length-wrong",
        "histogram-miscounted",
        "geometry-statistics-invalid",
    ];
    !of_footer.iter().any(|known| code.starts_with(known))
}
