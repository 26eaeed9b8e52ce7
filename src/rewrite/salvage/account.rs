//! [`SalvageAccount`]: what was recovered of a damaged file, and what was not.

use std::ops::Range;

/// The recovered and the lost parts of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SalvageAccount {
    /// Bytes of the file.
    pub file_bytes: u64,
    /// Columns of its schema: leaves.
    pub columns: usize,
    /// The row groups that are whole, in the order of the file.
    pub recovered: Vec<RecoveredRowGroup>,
    /// The parts that are not, in the order of the file.
    pub lost: Vec<LostPart>,
    /// Facts that are worth to know, in sentences.
    pub notes: Vec<String>,
}

/// A row group that is whole.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecoveredRowGroup {
    /// Number of rows.
    pub rows: u64,
    /// The bytes from its first page to its last.
    pub bytes: Range<u64>,
    /// The source of the places of its pages.
    pub found_by: FoundBy,
}

/// The source of the places of pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FoundBy {
    /// The footer of the file.
    Footer,
    /// The footer of the file; what else it says of them is not true, and was left out.
    FooterInPart,
    /// A side footer.
    SideFooter,
    /// The headers of the pages.
    PageHeaders,
}

impl FoundBy {
    /// Its name, in lower case.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Footer => "footer",
            Self::FooterInPart => "footer in part",
            Self::SideFooter => "side footer",
            Self::PageHeaders => "page headers",
        }
    }
}

/// A part of the file that was not recovered.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LostPart {
    /// Its bytes.
    pub bytes: Range<u64>,
    /// The number of the row group, if a footer lists it.
    pub row_group: Option<usize>,
    /// Its rows, as far as anything tells.
    pub rows: Option<u64>,
    /// The columns whose chunks are damaged, if the others are known to be whole.
    pub columns: Vec<String>,
    /// The data page of the first of them.
    pub page: Option<usize>,
    /// Where in the file the damage was met.
    pub offset: Option<u64>,
    /// The reason, in a sentence.
    pub reason: String,
}

impl SalvageAccount {
    /// Rows that were recovered.
    pub fn rows_recovered(&self) -> u64 {
        self.recovered.iter().fold(0, |sum, group| sum.saturating_add(group.rows))
    }

    /// Rows that are known to be lost; `None` if nothing tells how many there were.
    pub fn rows_lost(&self) -> Option<u64> {
        self.lost.iter().try_fold(0u64, |sum, part| Some(sum.saturating_add(part.rows?)))
    }

    /// Bytes of the row groups that were recovered.
    pub fn bytes_recovered(&self) -> u64 {
        let bytes = self.recovered.iter().map(|group| group.bytes.end - group.bytes.start);
        bytes.fold(0, u64::saturating_add)
    }

    /// Bytes of the parts that were not.
    pub fn bytes_lost(&self) -> u64 {
        let bytes = self.lost.iter().map(|part| part.bytes.end.saturating_sub(part.bytes.start));
        bytes.fold(0, u64::saturating_add)
    }

    /// Whether everything was recovered.
    pub fn is_complete(&self) -> bool {
        self.lost.is_empty()
    }
}
