//! [`ScanSettings`] say how files are read, whatever plans the scan.

use datafusion_common::config::{ParquetOptions, TableParquetOptions};
use datafusion_common::{DataFusionError, Result};
use marquetry::Limits;

/// How files are read: what a [`MarquetrySource`](crate::MarquetrySource) goes by, and what
/// formats, tables and the rule `ReplaceParquet` hand on to their scans.
///
/// ```
/// use marquetry::Limits;
/// use marquetry_datafusion::{MarquetryFormat, ScanSettings};
///
/// let mut limits = Limits::default();
/// limits.memory_bytes = 256 << 20;
/// let settings = ScanSettings::new().with_pushdown(false).with_limits(limits);
/// let format = MarquetryFormat::new().with_settings(settings);
/// # assert!(!format.settings().is_pushdown());
/// ```
#[derive(Debug, Clone)]
pub struct ScanSettings {
    options: TableParquetOptions,
    pushdown: bool,
    limits: Limits,
    portable: bool,
}

impl Default for ScanSettings {
    fn default() -> Self {
        let (options, limits) = (TableParquetOptions::default(), Limits::default());
        Self { options, pushdown: true, limits, portable: false }
    }
}

impl ScanSettings {
    /// The defaults, with the options that DataFusion has by default.
    pub fn new() -> Self {
        Self::default()
    }

    /// Goes by these options of DataFusion: for reading see
    /// [`MarquetrySource`](crate::MarquetrySource), for writing
    /// [`MarquetrySink`](crate::MarquetrySink).
    #[must_use]
    pub fn with_options(mut self, options: TableParquetOptions) -> Self {
        self.options = options;
        self
    }

    /// Whether filters are evaluated in the scan, row by row. Default true. Otherwise they only
    /// decide which row groups are read.
    #[must_use]
    pub fn with_pushdown(mut self, pushdown: bool) -> Self {
        self.pushdown = pushdown;
        self
    }

    /// Caps on what a file may ask for; they hold for schemas and statistics too. They go with a
    /// scan that is sent to a worker, but not with one that is sent as one of DataFusion's own
    /// source.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Sends the scan to the workers of distributed engines as one of DataFusion's own source,
    /// which all workers know. Default false: as ours, for workers that have
    /// `MarquetryPhysicalCodec`.
    #[cfg(feature = "proto")]
    #[must_use]
    pub fn with_portable_plans(mut self, portable: bool) -> Self {
        self.portable = portable;
        self
    }

    /// The options of DataFusion.
    pub fn options(&self) -> &TableParquetOptions {
        &self.options
    }

    /// Whether filters are to be evaluated in the scan.
    pub fn is_pushdown(&self) -> bool {
        self.pushdown
    }

    /// The caps on what a file may ask for.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Whether scans travel as those of DataFusion's own source.
    #[cfg(feature = "proto")]
    pub(crate) fn is_portable(&self) -> bool {
        self.portable
    }

    /// Whether a scan leaves out rows that do not pass, here and wherever it is sent.
    pub(crate) fn filters_rows(&self) -> bool {
        self.pushdown && !self.portable
    }

    /// Number of bytes at the end of a file that are read first. DataFusion's default is ignored,
    /// because it is not about the file: the read then guesses by itself.
    pub(crate) fn size_hint(&self) -> Option<usize> {
        let hint = self.options.global.metadata_size_hint;
        hint.filter(|_| hint != ParquetOptions::default().metadata_size_hint)
    }
}

/// Checks that the options of DataFusion ask for nothing that cannot be done.
///
/// # Errors
/// `NotImplemented`, which names the option.
pub(crate) fn check_options(options: &TableParquetOptions) -> Result<()> {
    let crypto = &options.crypto;
    let set = [
        ("crypto.file_decryption", crypto.file_decryption.is_some()),
        ("crypto.file_encryption", crypto.file_encryption.is_some()),
        ("crypto.factory_id", crypto.factory_id.is_some()),
    ];
    match set.iter().find(|(_, is_set)| *is_set) {
        None => Ok(()),
        Some((name, _)) => Err(DataFusionError::NotImplemented(format!(
            "marquetry: the option {name}; read and write encrypted files with marquetry::Reader \
             and marquetry::Writer"
        ))),
    }
}
