//! [`Rewrite`]: files copied into one, with a plan that can be looked at before.

use super::inputs::{self, Inputs};
use super::splice::{Spliced, Splicer};
use crate::crypt::{Encryption, FileEncryptor};
use crate::error::Result;
use crate::io::Sink;
use crate::limits::Budget;
use crate::read::chunk_range;
use crate::reader::Reader;

/// Copies files into one, without decoding a value.
///
/// Of each [`Reader`] its row groups ([`Reader::row_groups`]) are copied, one file after the other;
/// of the columns those of the first reader's projection ([`Reader::project`]), in the order of the
/// file. Page indexes, bloom filters, statistics, size statistics, sorting columns and unknown
/// fields are copied with the pages.
///
/// A footer says some things once for all of its row groups:
///
/// | of the footer | in the new file |
/// |---|---|
/// | key-value metadata | those of the first file, and the keys that only others have |
/// | column orders | the first known order of each leaf; bounds in another are left out |
/// | `created_by` | as in the files if it is one writer, else that of this library |
///
/// ```
/// # fn main() -> marquetry::Result<()> {
/// use marquetry::Reader;
/// use marquetry::io::WriteSink;
/// use marquetry::rewrite::Rewrite;
///
/// let trips = Reader::open("testdata/trips.parquet")?;
/// let mut out = Vec::new();
/// let done = Rewrite::new([trips.clone(), trips]).run(WriteSink(&mut out))?;
/// assert_eq!(done.rows, 2_000);
/// assert_eq!(Reader::new(bytes::Bytes::from(out))?.rows()?, 2_000);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct Rewrite {
    readers: Vec<Reader>,
    is_by_name: bool,
    encryption: Option<Encryption>,
    key_values: Vec<(String, Option<String>)>,
    verifies_checksums: bool,
}

/// The plan of a [`Rewrite`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RewritePlan {
    /// The row groups of the new file, in its order.
    pub row_groups: Vec<PlannedRowGroup>,
    /// Number of rows of the new file.
    pub rows: u64,
    /// Facts of the old files that the new one does not state, a sentence each.
    pub notes: Vec<String>,
}

impl RewritePlan {
    /// The column chunks that are copied as they are.
    pub fn copied(&self) -> PlannedChunks {
        self.row_groups.iter().map(|row_group| row_group.copied).sum()
    }

    /// The column chunks that are copied page by page, because their encryption or checksums
    /// change.
    pub fn copied_by_page(&self) -> PlannedChunks {
        self.row_groups.iter().map(|row_group| row_group.copied_by_page).sum()
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

/// The file that a [`Rewrite`] has written.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rewritten {
    /// Number of rows, by the row groups.
    pub rows: u64,
    /// Number of row groups.
    pub row_groups: usize,
    /// Bytes of the new file.
    pub bytes: u64,
}

impl Rewrite {
    /// Copies these files, one after the other.
    pub fn new(readers: impl IntoIterator<Item = Reader>) -> Self {
        Self {
            readers: readers.into_iter().collect(),
            is_by_name: false,
            encryption: None,
            key_values: Vec::new(),
            verifies_checksums: false,
        }
    }

    /// Sets whether the columns of the files are matched by name, so that their order may differ.
    /// By default, the files have the same columns in the same order.
    pub fn by_name(mut self, by_name: bool) -> Self {
        self.is_by_name = by_name;
        self
    }

    /// Encrypts the new file. By default it is not encrypted, whatever the files are.
    pub fn encryption(mut self, encryption: Encryption) -> Self {
        self.encryption = Some(encryption);
        self
    }

    /// Sets a key of the key-value metadata of the new file, in place of what the files say.
    pub fn set_key_value(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.key_values.push((key.into(), Some(value.into())));
        self
    }

    /// Leaves out a key of the key-value metadata of the files.
    pub fn drop_key_value(mut self, key: impl Into<String>) -> Self {
        self.key_values.push((key.into(), None));
        self
    }

    /// Sets whether the checksums of all pages are verified, for which each page is looked at.
    /// Those that get another checksum are always verified.
    pub fn verify_checksums(mut self, verify: bool) -> Self {
        self.verifies_checksums = verify;
        self
    }

    /// Looks at the footers, and says what [`Rewrite::run`] will do.
    ///
    /// # Errors
    /// As [`Rewrite::run`], as far as the footers tell.
    pub fn plan(&self) -> Result<RewritePlan> {
        let inputs = self.inputs()?;
        let encryptor = self.encryptor(&inputs)?;
        let mut row_groups = Vec::new();
        for (at, file) in inputs.files.iter().enumerate() {
            for &row_group in &file.row_groups {
                let new = row_groups.len();
                let planned = self.planned(&inputs, encryptor.as_ref(), (at, row_group), new);
                let place = |e| file.reader.name(e);
                row_groups.push(planned.map_err(place)?);
            }
        }
        let rows = row_groups.iter().fold(0u64, |sum, group| sum.saturating_add(group.rows));
        Ok(RewritePlan { row_groups, rows, notes: inputs.notes })
    }

    /// Copies the files.
    ///
    /// A window of a column chunk is in memory at a time (a whole chunk where its protection
    /// changes), the footers, and a place for each page, within the
    /// [`Limits::memory_bytes`](crate::Limits::memory_bytes) of the first reader.
    ///
    /// # Errors
    /// `Usage` if there is no file, the columns of the files differ, a reader selects single rows,
    /// or an encryption has a key for a column that does not exist; `Unsupported` if one of several
    /// writers has faults that readers know by its name; `Crypto` if a key is missing, something is
    /// not authentic, or a signature was not verified; `Malformed` if a file violates the format,
    /// as far as it is read, or column chunks share bytes ([`Reader::shared_bytes`] allows it);
    /// `Limit(Memory)`, `Io`.
    pub fn run(&self, sink: impl Sink) -> Result<Rewritten> {
        let Spliced { rows, row_groups, bytes, .. } = self.splice(sink)?;
        Ok(Rewritten { rows, row_groups, bytes })
    }

    pub(super) fn splice(&self, sink: impl Sink) -> Result<Spliced> {
        let inputs = self.inputs()?;
        let encryptor = self.encryptor(&inputs)?;
        let limits = inputs.files.first().map(|file| file.reader.read_options().limits.clone());
        let budget = Budget::new(limits.unwrap_or_default().memory_bytes);
        Splicer::new(&inputs, sink, encryptor, self.verifies_checksums, budget).run()
    }

    fn inputs(&self) -> Result<Inputs<'_>> {
        let mut inputs = Inputs::new(&self.readers, self.is_by_name)?;
        inputs::change_key_values(&mut inputs.footer, &self.key_values);
        Ok(inputs)
    }

    fn encryptor(&self, inputs: &Inputs<'_>) -> Result<Option<FileEncryptor>> {
        let encryption = self.encryption.as_ref();
        encryption.map(|of| FileEncryptor::new(of, &of.protections(&inputs.leaves)?)).transpose()
    }

    fn planned(
        &self,
        inputs: &Inputs<'_>,
        encryptor: Option<&FileEncryptor>,
        (file, row_group): (usize, usize),
        new: usize,
    ) -> Result<PlannedRowGroup> {
        let (mut copied, mut copied_by_page) = Default::default();
        let Some(input) = inputs.files.get(file) else {
            return Err(crate::Error::internal("there is no such input"));
        };
        let footer = input.footer();
        for (new_leaf, &leaf) in input.leaves.iter().enumerate() {
            let chunk = footer.column_chunk_ref(row_group, leaf)?;
            let range = chunk_range(footer, input.reader.file_len(), row_group, leaf, &chunk)?;
            let is_sealed = match encryptor {
                Some(encryptor) => encryptor.chunk(new, new_leaf)?.is_some(),
                None => false,
            };
            let by_page = is_sealed || chunk.is_encrypted() || self.verifies_checksums;
            let sum: &mut PlannedChunks = if by_page { &mut copied_by_page } else { &mut copied };
            sum.chunks += 1;
            sum.bytes = sum.bytes.saturating_add(range.end - range.start);
        }
        let rows = footer.row_group_rows(row_group)?;
        Ok(PlannedRowGroup { file, row_group, rows, copied, copied_by_page })
    }
}
