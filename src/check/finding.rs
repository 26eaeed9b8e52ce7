//! [`Finding`]: one thing that is wrong with a file, and where.

use std::fmt;
use std::sync::Arc;

use super::kind::{FindingKind, Severity};
use crate::error::{At, Error, ErrorKind};
use crate::read::footer::LATER_VERSIONS;

/// How much of a file is recomputed. Each level does what those before it do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
#[non_exhaustive]
pub enum CheckLevel {
    /// The footer, and what can be said from it alone.
    Footer,
    /// Pages: headers, checksums, sizes, levels, and the indexes against them.
    #[default]
    Pages,
    /// Values: all are decoded, and must be values of their types.
    Values,
    /// Statistics: bounds, counts, histograms, bloom filters, sort order, all recomputed.
    Truth,
}

impl CheckLevel {
    /// All levels.
    pub const ALL: &[Self] = &[Self::Footer, Self::Pages, Self::Values, Self::Truth];

    /// Its name, in lower case.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Footer => "footer",
            Self::Pages => "pages",
            Self::Values => "values",
            Self::Truth => "truth",
        }
    }
}

impl fmt::Display for CheckLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Something that is wrong with a file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// The rule that is broken.
    pub kind: FindingKind,
    /// Where: row group, column, page and offset, as far as they are known.
    pub at: At,
    /// The statement of the file, if the finding is about one statement.
    pub stated: Option<String>,
    /// The truth in place of it.
    pub found: Option<String>,
    /// A sentence on what is wrong, without the place.
    pub message: String,
}

impl Finding {
    /// How much it matters.
    pub fn severity(&self) -> Severity {
        self.kind.severity()
    }

    /// A finding at a place that is not known yet.
    pub(super) fn new(kind: FindingKind, message: impl fmt::Display) -> Self {
        let message = message.to_string();
        Self { kind, at: At::default(), stated: None, found: None, message }
    }

    /// A statement that is not true.
    pub(super) fn lie(
        kind: FindingKind,
        what: &str,
        stated: impl fmt::Display,
        found: impl fmt::Display,
    ) -> Self {
        let (stated, found) = (stated.to_string(), found.to_string());
        let message = format!("{what} is {stated}, and should be {found}");
        Self { kind, at: At::default(), stated: Some(stated), found: Some(found), message }
    }

    /// The finding of an error. A limit, a missing key or something unsupported is no fault of the
    /// file.
    pub(super) fn of_error(kind: FindingKind, error: &Error) -> Self {
        let kind = match error.kind() {
            ErrorKind::Malformed(_) => kind,
            ErrorKind::Unsupported(LATER_VERSIONS) => FindingKind::VersionUnknown,
            _ => FindingKind::NotChecked,
        };
        let At { page, is_dictionary_page, offset, .. } = error.at().clone();
        let at = At { page, is_dictionary_page, offset, ..At::default() };
        Self { at, ..Self::new(kind, error.message()) }
    }

    #[must_use]
    pub(super) fn with_page(mut self, page: Option<usize>) -> Self {
        self.at.page = page;
        self
    }

    #[must_use]
    pub(super) fn with_offset(mut self, offset: u64) -> Self {
        self.at.offset = Some(offset);
        self
    }

    #[must_use]
    pub(super) fn with_row_group(mut self, row_group: usize) -> Self {
        self.at.row_group = Some(row_group);
        self
    }

    #[must_use]
    pub(super) fn with_column(mut self, column: &Arc<str>) -> Self {
        self.at.column = Some(column.clone());
        self
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, message, .. } = self;
        write!(f, "{}: {message} ({kind})", self.severity())
    }
}

/// The findings of a part of the file. Of a kind, only the first few are kept, because a broken
/// chunk may have one for each of its pages; the others are counted.
#[derive(Debug, Default)]
pub(super) struct Findings {
    pub(super) list: Vec<Finding>,
    counts: Vec<(FindingKind, usize)>,
    pub(super) left_out: u64,
    at: At,
}

/// Findings of one kind that are kept of each part.
const MAX_OF_A_KIND: usize = 20;

impl Findings {
    /// Of a part at this place.
    pub(super) fn of_chunk(row_group: usize, column: &Arc<str>) -> Self {
        let column = Some(column.clone());
        let at = At { row_group: Some(row_group), column, ..At::default() };
        Self { at, ..Self::default() }
    }

    /// Adds a finding, at the place of the part where it has none of its own.
    pub(super) fn push(&mut self, mut finding: Finding) {
        let at = self.counts.iter().position(|(kind, _)| *kind == finding.kind);
        let count = match at.and_then(|at| self.counts.get_mut(at)) {
            Some((_, count)) => {
                *count += 1;
                *count
            }
            None => {
                self.counts.push((finding.kind, 1));
                1
            }
        };
        if count > MAX_OF_A_KIND {
            self.left_out += 1;
            return;
        }
        let At { row_group, column, .. } = &self.at;
        finding.at.row_group = finding.at.row_group.or(*row_group);
        if finding.at.column.is_none() {
            finding.at.column.clone_from(column);
        }
        self.list.push(finding);
    }

    /// Whether there is one of this kind.
    pub(super) fn has(&self, kind: FindingKind) -> bool {
        self.counts.iter().any(|(known, _)| *known == kind)
    }
}
