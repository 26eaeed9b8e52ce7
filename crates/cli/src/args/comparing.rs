//! The flags of `diff` and `salvage`.

use std::path::PathBuf;

use clap::ValueEnum;
use serde::Serialize;

use super::writing::EncryptFlags;
use crate::urls;

/// Compares two files.
///
/// Files that are written otherwise, and hold the same rows, are equal. NaN is equal to NaN, and
/// -0.0 is not equal to 0.0. Columns are matched by name.
///
/// Rows are compared in their order, or, with --key COLS, by the columns of a key: files that are
/// sorted by it take constant memory, others are sorted within --mem, by temporary files if they
/// do not fit.
///
/// Exit codes: 0 if nothing differs, 4 if something does.
#[derive(Debug, clap::Args)]
pub(crate) struct Diff {
    /// The two files.
    #[arg(required = true, num_args = 2, value_names = ["A", "B"], value_parser = urls::argument)]
    pub(crate) files: Vec<String>,
    /// The parts that are compared: schema, layout (how the files are written), stats (what they
    /// state of their values), data (rows).
    #[arg(long, value_delimiter = ',', value_name = "WHAT", default_value = "schema,data")]
    pub(crate) what: Vec<Compared>,
    /// Differences of the data that are listed, at most; all are counted.
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(crate) max: usize,
    /// The folder of these temporary files, which hold values in plain text. Default: that of the
    /// system; none for encrypted files.
    #[arg(long, value_name = "DIR")]
    pub(crate) temp: Option<PathBuf>,
}

/// A part of two files that is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Compared {
    Schema,
    Layout,
    Stats,
    Data,
}

/// Recovers the row groups of a damaged file that are whole: one without a footer, with its end cut
/// off, or with damaged pages.
///
/// Each column of a row group must decode in full, with right checksums; its pages are then copied
/// into the file of -o. What is lost is listed with its place. Without -o, only the list is made.
///
/// Exit codes: 0 if everything was recovered, 5 if a part was, 3 if nothing was.
#[derive(Debug, clap::Args)]
pub(crate) struct SalvageFile {
    /// The damaged file.
    #[arg(value_name = "FILE", value_parser = urls::argument)]
    pub(crate) file: String,
    /// A file with the same schema, best of the same writer: where the footer is lost, it tells
    /// columns and codecs.
    #[arg(long, value_name = "OTHER", value_parser = urls::argument)]
    pub(crate) schema_from: Option<String>,
    /// The side footer of an export that was killed. Default: FILE.side-footer, if it is there.
    #[arg(long, value_name = "FILE")]
    pub(crate) side_footer: Option<String>,
    /// Rows of each row group, but for the last: where the footer is lost, that tells columns of
    /// one type apart.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) row_group_rows: Option<u64>,
    /// Print what was recovered and what was lost, also if a file is written.
    #[arg(long)]
    pub(crate) report: bool,
    #[command(flatten)]
    pub(crate) encrypt: EncryptFlags,
}

impl SalvageFile {
    /// The file that must not be the output.
    pub(crate) fn named(&self) -> &[String] {
        std::slice::from_ref(&self.file)
    }
}
