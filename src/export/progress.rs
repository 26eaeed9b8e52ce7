//! Reports the progress of an export, and the files that it has written.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::write::WriteReport;

/// Progress of an [`Export`](crate::Export). Cheap to clone; clones watch the same export, from any
/// thread.
#[derive(Debug, Clone, Default)]
pub struct ExportProgress {
    shared: Arc<ExportCounters>,
}

#[derive(Debug, Default)]
struct ExportCounters {
    rows: AtomicU64,
    bytes: AtomicU64,
    files: AtomicU64,
}

impl ExportProgress {
    /// Rows taken from the streams so far.
    pub fn rows(&self) -> u64 {
        self.shared.rows.load(Ordering::Relaxed)
    }

    /// Bytes written to the files so far.
    pub fn bytes(&self) -> u64 {
        self.shared.bytes.load(Ordering::Relaxed)
    }

    /// Files finished so far.
    pub fn files(&self) -> u64 {
        self.shared.files.load(Ordering::Relaxed)
    }

    pub(super) fn wrote(&self, rows: u64, bytes: u64) {
        self.shared.rows.fetch_add(rows, Ordering::Relaxed);
        self.shared.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn finished(&self, bytes: u64) {
        self.shared.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.shared.files.fetch_add(1, Ordering::Relaxed);
    }
}

/// A file that an [`Export`](crate::Export) has written.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ExportedFile {
    /// Path of the file.
    pub path: PathBuf,
    /// Number of the stream that its rows came from.
    pub stream: usize,
    /// The columns that the export is [partitioned by](crate::Export::partition_by), and the value
    /// that all rows of the file have in them, as text; `None` is null.
    pub partition: Vec<(String, Option<String>)>,
    /// Report of the written file.
    pub report: WriteReport,
}
