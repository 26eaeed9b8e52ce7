//! [`RewritePlan`]: what a rewrite does with each column chunk, and why.

use std::fmt;

/// The plan of a [`Rewrite`](super::Rewrite).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RewritePlan {
    /// The row groups of the new file, in its order. If row groups are [made
    /// anew](super::Rewrite::regroup), these are the ones whose rows are read, in their order.
    pub row_groups: Vec<PlannedRowGroup>,
    /// Whether row groups are made anew, so that the new file has others than
    /// [`RewritePlan::row_groups`].
    pub regroups: bool,
    /// The dotted paths of the leaves of the new file.
    pub columns: Vec<String>,
    /// Number of rows of the new file.
    pub rows: u64,
    /// Facts of the old files that the new one does not state, a sentence each.
    pub notes: Vec<String>,
}

impl RewritePlan {
    /// The column chunks that are treated so.
    pub fn total(&self, method: ChunkMethod) -> PlannedChunks {
        self.row_groups.iter().map(|row_group| row_group.total(method)).sum()
    }

    /// The column chunks that are copied as they are.
    pub fn copied(&self) -> PlannedChunks {
        self.total(ChunkMethod::Bytes)
    }

    /// The column chunks that are copied page by page, because their encryption or checksums
    /// change.
    pub fn copied_by_page(&self) -> PlannedChunks {
        self.total(ChunkMethod::Pages)
    }

    /// The column chunks whose pages are decompressed and compressed again.
    pub fn recompressed(&self) -> PlannedChunks {
        self.total(ChunkMethod::Recompressed)
    }

    /// The column chunks that are decoded and encoded.
    pub fn encoded(&self) -> PlannedChunks {
        self.total(ChunkMethod::Encoded)
    }

    /// Each method and reason that the plan has, with the chunks for which it is so, in the order
    /// in which they first come.
    pub fn by_reason(&self) -> Vec<(ChunkMethod, ChunkReason, PlannedChunks)> {
        let mut out: Vec<(ChunkMethod, ChunkReason, PlannedChunks)> = Vec::new();
        for chunk in self.row_groups.iter().flat_map(|row_group| &row_group.chunks) {
            let one = PlannedChunks { chunks: 1, bytes: chunk.bytes };
            let is_same = |(method, reason, _): &&mut (ChunkMethod, ChunkReason, _)| {
                (*method, *reason) == (chunk.method, chunk.reason)
            };
            match out.iter_mut().find(is_same) {
                Some((_, _, sum)) => *sum = [*sum, one].into_iter().sum(),
                None => out.push((chunk.method, chunk.reason, one)),
            }
        }
        out
    }
}

/// A row group of the new file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PlannedRowGroup {
    /// The file it comes from, by its position among the readers.
    pub file: usize,
    /// Its number there.
    pub row_group: usize,
    /// Number of rows.
    pub rows: u64,
    /// Its column chunks that are copied as they are.
    pub copied: PlannedChunks,
    /// Its column chunks that are copied page by page.
    pub copied_by_page: PlannedChunks,
    /// All its column chunks, in the order of [`RewritePlan::columns`].
    pub chunks: Vec<PlannedChunk>,
}

impl PlannedRowGroup {
    /// Its column chunks that are treated so.
    pub fn total(&self, method: ChunkMethod) -> PlannedChunks {
        let chunks = self.chunks.iter().filter(|chunk| chunk.method == method);
        chunks.map(|chunk| PlannedChunks { chunks: 1, bytes: chunk.bytes }).sum()
    }
}

/// A column chunk of the new file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct PlannedChunk {
    /// How it is made.
    pub method: ChunkMethod,
    /// Why.
    pub reason: ChunkReason,
    /// Bytes of its pages in the old file; 0 if it is not in the file.
    pub bytes: u64,
}

/// How a column chunk comes into the new file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ChunkMethod {
    /// Its bytes are copied, without looking at them.
    Bytes,
    /// It is copied page by page.
    Pages,
    /// Its pages are decompressed and compressed again. Values are not decoded.
    Recompressed,
    /// Its values are decoded and encoded.
    Encoded,
}

/// Why a column chunk is made as the plan says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ChunkReason {
    /// Nothing of it changes.
    Unchanged,
    /// Its encryption changes.
    Encryption,
    /// Its checksums are verified.
    Checksums,
    /// It gets another codec or level.
    Codec,
    /// Its encoding, pages, statistics or bloom filter are to be others.
    Settings,
    /// Its rows are a part of those of the row group.
    Cut,
    /// The file has not the column: all values are null.
    Missing,
    /// The column has another type in the new file.
    Type,
    /// Readers work around faults of its writer, by the name of the writer.
    Writer,
    /// Row groups are made anew.
    RowGroups,
    /// The rows are sorted.
    Sorted,
}

impl fmt::Display for ChunkReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unchanged => "nothing of it changes",
            Self::Encryption => "its encryption changes",
            Self::Checksums => "checksums are verified",
            Self::Codec => "another codec or level",
            Self::Settings => "another encoding, other pages, statistics or a bloom filter",
            Self::Cut => "only a part of the row group",
            Self::Missing => "not in the file: nulls",
            Self::Type => "another type in the new file",
            Self::Writer => "a writer with faults that readers know by its name",
            Self::RowGroups => "row groups are made anew",
            Self::Sorted => "rows are sorted",
        })
    }
}

/// Column chunks, and their bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PlannedChunks {
    /// Number of column chunks.
    pub chunks: usize,
    /// Bytes of their pages, as they are stored in the old file.
    pub bytes: u64,
}

impl std::iter::Sum for PlannedChunks {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |sum, one| Self {
            chunks: sum.chunks + one.chunks,
            bytes: sum.bytes.saturating_add(one.bytes),
        })
    }
}
