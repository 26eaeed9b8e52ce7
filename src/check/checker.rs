//! [`Checker`]: recomputes what a file states, and reports what is not true.

use std::collections::BTreeSet;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::column::{ChunkOutcome, check_chunk};
use super::context::FileContext;
use super::finding::{CheckLevel, Finding, Findings};
use super::footer;
use super::geo_key::{self, GeometryColumn};
use super::groups;
use super::kind::{FindingKind as K, Severity};
use super::schema;
use super::sibling_rows;
use super::siblings::GroupLevels;
use super::sorting::{SortedSlots, first_unsorted};
use super::summary;
use crate::crypt::Decryption;
use crate::error::{ErrorKind, Result};
use crate::format::tail::{MAGIC, MAGIC_ENCRYPTED, MIN_FILE_LEN};
use crate::format::{RowGroupHead, SortingColumn};
use crate::io::{Pool, Source, map_in, open_footer};
use crate::limits::{Budget, Limits};
use crate::memory;
use crate::reader::Threads;

/// Recomputes what a file states, and reports each lie with its place.
///
/// Column chunks are checked side by side, page by page, within [`Limits`]. The findings come in
/// the order of the file: first those of the footer, then those of the chunks of each row group.
///
/// ```
/// use std::fs::File;
/// use marquetry::check::{CheckLevel, Checker, Severity};
///
/// # fn main() -> marquetry::Result<()> {
/// let checker = Checker::new(File::open("testdata/trips.parquet").unwrap());
/// let mut findings = Vec::new();
/// let report = checker.level(CheckLevel::Truth).run(|finding| findings.push(finding))?;
/// assert_eq!(report.count(Severity::Error), 0, "{findings:?}");
/// assert_eq!((report.rows, report.chunks), (1_000, 52));
/// # Ok(())
/// # }
/// ```
pub struct Checker {
    source: Arc<dyn Source>,
    level: CheckLevel,
    limits: Limits,
    keys: Option<Decryption>,
    threads: Threads,
    folder: Option<PathBuf>,
}

impl fmt::Debug for Checker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Checker").field("level", &self.level).finish_non_exhaustive()
    }
}

/// Counts of what a check has looked at, and of its findings.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct CheckReport {
    /// Rows that the row groups state.
    pub rows: u64,
    /// Row groups.
    pub row_groups: usize,
    /// Column chunks that were checked.
    pub chunks: u64,
    /// Bytes of the file that were read, the footer not counted.
    pub bytes_read: u64,
    /// Findings that were not reported, because their chunks have many of the same kind.
    pub left_out: u64,
    counts: [u64; 3],
}

impl CheckReport {
    /// Number of findings of this severity that were reported.
    pub fn count(&self, severity: Severity) -> u64 {
        let at = Severity::ALL.iter().position(|known| *known == severity);
        at.and_then(|at| self.counts.get(at)).copied().unwrap_or(0)
    }

    fn add(&mut self, severity: Severity) {
        let at = Severity::ALL.iter().position(|known| *known == severity);
        if let Some(count) = at.and_then(|at| self.counts.get_mut(at)) {
            *count += 1;
        }
    }
}

impl Checker {
    /// Of a file that is not encrypted, or whose keys are not known.
    pub fn new(source: impl Source + 'static) -> Self {
        Self {
            source: Arc::new(source),
            level: CheckLevel::default(),
            limits: Limits::default(),
            keys: None,
            threads: Threads::Auto,
            folder: None,
        }
    }

    /// How much is recomputed; [`CheckLevel::Pages`] by default.
    #[must_use]
    pub fn level(mut self, level: CheckLevel) -> Self {
        self.level = level;
        self
    }

    /// Caps on what the file may ask for. What exceeds them is not checked, which is a finding.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Keys, for an encrypted file.
    #[must_use]
    pub fn keys(mut self, keys: Decryption) -> Self {
        self.keys = Some(keys);
        self
    }

    /// How many threads check column chunks.
    #[must_use]
    pub fn threads(mut self, threads: Threads) -> Self {
        self.threads = threads;
        self
    }

    /// The folder that the files of a `_metadata` summary are in: it is compared with them.
    #[must_use]
    pub fn files_below(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folder = Some(folder.into());
        self
    }

    /// Checks the file, and gives each finding to `each` as soon as those before it are known.
    ///
    /// # Errors
    /// `Io`; `Crypto` if a key that is given does not open the footer, or is missing. What is wrong
    /// with the file is a finding.
    pub fn run(self, mut each: impl FnMut(Finding)) -> Result<CheckReport> {
        let mut report = CheckReport::default();
        let mut give = |findings: Findings, report: &mut CheckReport| {
            report.left_out += findings.left_out;
            for finding in findings.list {
                report.add(finding.severity());
                each(finding);
            }
        };
        let mut findings = Findings::default();
        let file_len = self.source.len()?;
        self.check_magic(file_len, &mut findings)?;
        let footer = match open_footer(&*self.source, &self.limits, self.keys.as_ref()) {
            Ok((footer, _)) => footer,
            Err(error) if matches!(error.kind(), ErrorKind::Io | ErrorKind::Crypto) => {
                return Err(error);
            }
            Err(error) => {
                if !findings.has(K::MagicWrong) {
                    findings.push(Finding::of_error(K::FooterUnreadable, &error));
                }
                give(findings, &mut report);
                return Ok(report);
            }
        };
        let file = FileContext {
            source: self.source.clone(),
            footer,
            file_len,
            budget: Budget::new(self.limits.memory_bytes),
            limits: self.limits.clone(),
            level: self.level,
            has_unordered_bounds: AtomicBool::new(false),
            bytes_read: AtomicU64::new(0),
            expanded: AtomicU64::new(0),
        };
        report.row_groups = file.footer.row_groups();
        report.rows = file.footer.rows().unwrap_or(0);
        footer::check(&file, &mut findings)?;
        schema::check(&file, &mut findings)?;
        let geometries = geo_key::check_key(&file, &mut findings);
        if let Some(folder) = &self.folder {
            summary::check(&file, folder, &mut findings);
        }
        give(findings, &mut report);
        self.check_chunks(&file, &geometries, &mut report, &mut give)?;
        if file.has_unordered_bounds.load(Ordering::Relaxed) {
            let mut findings = Findings::default();
            let text = "there are minima and maxima, and no column_orders";
            findings.push(Finding::new(K::ColumnOrdersMissing, text));
            give(findings, &mut report);
        }
        report.bytes_read = file.bytes_read.load(Ordering::Relaxed);
        Ok(report)
    }

    fn check_magic(&self, file_len: u64, findings: &mut Findings) -> Result<()> {
        if file_len < MIN_FILE_LEN {
            let text = format_args!("a file of {file_len} bytes is none of Parquet");
            findings.push(Finding::new(K::MagicWrong, text));
            return Ok(());
        }
        let (head, tail) = (self.source.read(0..4)?, self.source.read(file_len - 4..file_len)?);
        let is_magic = |bytes: &[u8]| bytes == MAGIC || bytes == MAGIC_ENCRYPTED;
        for (bytes, offset) in [(&head, 0), (&tail, file_len - 4)] {
            if !is_magic(bytes) || head != tail {
                let text = format_args!("the bytes {:02x?}, and not PAR1 or PARE", &bytes[..]);
                findings.push(Finding::new(K::MagicWrong, text).with_offset(offset));
                return Ok(());
            }
        }
        Ok(())
    }

    /// Checks the column chunks, some at a time.
    fn check_chunks(
        &self,
        file: &FileContext,
        geometries: &[GeometryColumn],
        report: &mut CheckReport,
        give: &mut impl FnMut(Findings, &mut CheckReport),
    ) -> Result<()> {
        /// Chunks whose findings are held, at most. They may be of several row groups, so that all
        /// threads have work while the last chunk of a row group is checked.
        const SOME: usize = 64;
        let pool = self.pool()?;
        let groups = groups::find(file);
        let leaves = file.footer.schema().leaves_len();
        let row_groups = &file.footer.index().head().row_groups;
        let present = |row_group: &RowGroupHead| row_group.columns.len().min(leaves);
        let mut chunks = row_groups.iter().enumerate().flat_map(|(row_group, head)| {
            let leaves = 0..present(head);
            let last = leaves.end;
            leaves.map(move |leaf| (row_group, leaf, leaf + 1 == last))
        });
        let mut sorted: Vec<(usize, SortedSlots)> = Vec::new();
        let mut shared: Vec<(usize, Vec<GroupLevels>)> = Vec::new();
        let mut broken = BTreeSet::new();
        loop {
            let some: Vec<(usize, usize, bool)> = chunks.by_ref().take(SOME).collect();
            if some.is_empty() {
                return Ok(());
            }
            let check =
                |(row_group, leaf, _): &_| check_chunk(file, *row_group, *leaf, false, None);
            let outcomes = map_in(pool.as_ref(), some.iter().collect(), check)?;
            for ((row_group, leaf, is_last), mut outcome) in some.into_iter().zip(outcomes) {
                if outcome.is_starved {
                    outcome = check_chunk(file, row_group, leaf, true, None)?;
                }
                let ChunkOutcome {
                    findings, sorted: of_chunk, groups: of_groups, is_whole, ..
                } = outcome;
                if !is_whole {
                    broken.insert(leaf);
                }
                report.chunks += 1;
                give(findings, report);
                memory::extend(&mut sorted, of_chunk.map(|slots| (leaf, slots)))?;
                memory::push(&mut shared, (leaf, of_groups))?;
                if is_last {
                    let mut findings = Findings::default();
                    check_sorting(file, row_group, &std::mem::take(&mut sorted), &mut findings);
                    let shared = std::mem::take(&mut shared);
                    sibling_rows::compare(file, row_group, &shared, &mut broken, &mut findings);
                    check_groups(file, row_group, &groups, &broken, &mut findings)?;
                    for column in geometries {
                        if !column.leaves().any(|leaf| broken.contains(&leaf)) {
                            geo_key::check_rows(file, row_group, column, &mut findings)?;
                        }
                    }
                    broken.clear();
                    give(findings, report);
                }
            }
        }
    }

    fn pool(&self) -> Result<Option<Pool>> {
        Ok(match &self.threads {
            Threads::Exactly(0 | 1) => None,
            Threads::Exactly(threads) => Some(Pool::new(*threads)?),
            #[cfg(feature = "parallel")]
            Threads::Pool(pool) => Some(Pool::Own(pool.clone())),
            Threads::Auto => Some(Pool::Global),
        })
    }
}

/// Checks the values of a row group that are made of several columns.
fn check_groups(
    file: &FileContext,
    row_group: usize,
    fields: &[groups::ValueField],
    broken: &BTreeSet<usize>,
    findings: &mut Findings,
) -> Result<()> {
    for field in fields.iter().filter(|_| file.level >= CheckLevel::Values) {
        // What is wrong with a column was reported.
        if broken.range(field.leaves.clone()).next().is_none() {
            groups::check(file, row_group, field, findings)?;
        }
    }
    Ok(())
}

/// Checks that the rows of a row group are sorted as it says, as far as its columns tell.
fn check_sorting(
    file: &FileContext,
    row_group: usize,
    sorted: &[(usize, SortedSlots)],
    findings: &mut Findings,
) {
    let head = file.footer.index().head().row_groups.get(row_group);
    let Some(stated) = head.and_then(|group| group.sorting_columns.as_ref()) else { return };
    // A column that is stated again decides nothing.
    let mut seen = BTreeSet::new();
    let new = stated.iter().filter(|sorting| seen.insert(sorting.column_idx));
    let of = |sorting: &SortingColumn| {
        let leaf = usize::try_from(sorting.column_idx).ok()?;
        sorted.iter().find(|(found, _)| *found == leaf).map(|(_, slots)| slots)
    };
    // After a column that could not be compared, the others say nothing.
    let columns: Vec<&SortedSlots> = new.map_while(of).collect();
    let Some(row) = first_unsorted(&columns) else { return };
    let text = format_args!("row {row} of the row group must not come after the row before it");
    findings.push(Finding::new(K::RowsUnsorted, text).with_row_group(row_group));
}
