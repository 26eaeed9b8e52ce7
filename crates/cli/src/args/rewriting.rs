//! The flags of `rewrite`, `split` and `compact`.

use std::path::PathBuf;

use clap::ValueEnum;

use super::shared::{Columns, SourceFile, size};
use super::writing::{Copying, EncryptFlags, WriteFlags};

/// Flags that say how a file is written anew.
const SETTINGS: [&str; 12] = [
    "Columns",
    "EncryptFlags",
    "WriteFlags",
    "row_groups",
    "drop_row_groups",
    "verify_checksums",
    "set_kv",
    "drop_kv",
    "sort",
    "stats",
    "page_bytes",
    "page_rows",
];

#[derive(Debug, clap::Args)]
pub(crate) struct Rewrite {
    #[command(flatten)]
    pub(crate) source: SourceFile,
    #[command(flatten)]
    pub(crate) columns: Columns,
    /// Only these row groups, in this order: 0,3-5.
    #[arg(long, value_name = "LIST")]
    pub(crate) row_groups: Option<String>,
    /// All row groups but these: 0,3-5.
    #[arg(long, value_name = "LIST", conflicts_with = "row_groups")]
    pub(crate) drop_row_groups: Option<String>,
    /// Replace FILE: the new one is written beside it, and takes its place once it is complete.
    #[arg(long)]
    pub(crate) in_place: bool,
    /// Add what the writer of the file left out; fill has the choices.
    #[arg(long, conflicts_with_all = SETTINGS)]
    pub(crate) fill: bool,
    /// Write the file as this recipe says, which doctor has made.
    #[arg(long, value_name = "FILE", conflicts_with_all = SETTINGS, conflicts_with_all = ["fill", "dry_run"])]
    pub(crate) recipe: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) copying: Copying,
    /// Sort all rows, in memory, by these columns: COL, COL:desc, COL:nulls-first,
    /// COL:desc:nulls-first.
    #[arg(long, value_name = "COLS", value_delimiter = ',')]
    pub(crate) sort: Vec<String>,
    /// Which statistics are collected: counts alone, bounds of column chunks, or of pages too.
    #[arg(long, value_name = "LEVEL")]
    pub(crate) stats: Option<StatsLevel>,
    /// Maximum bytes of a page before compression, about.
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) page_bytes: Option<u64>,
    /// Maximum rows of a page.
    #[arg(long, value_name = "N")]
    pub(crate) page_rows: Option<usize>,
    #[command(flatten)]
    pub(crate) write: WriteFlags,
}

/// Which statistics are collected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum StatsLevel {
    /// Nothing but counts.
    None,
    /// Bounds of column chunks.
    Chunk,
    /// Bounds of column chunks and pages.
    Page,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Split {
    #[command(flatten)]
    pub(crate) source: SourceFile,
    #[command(flatten)]
    pub(crate) into: Into,
    #[command(flatten)]
    pub(crate) copying: Copying,
}

/// Where a file is cut.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
pub(crate) struct Into {
    /// Files of this many rows.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) rows: Option<u64>,
    /// Files of about this size; of whole row groups, where these are not larger.
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) bytes: Option<u64>,
    /// This many files of about as many rows; of whole row groups, if there are as many.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) files: Option<u64>,
    /// A folder COL=VALUE for each value of a column, which the files leave out; rows are read and
    /// written.
    #[arg(long, value_name = "COL")]
    pub(crate) by: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Compact {
    /// The folder; files in folders within it stay in theirs.
    #[arg(value_name = "DIR")]
    pub(crate) folder: String,
    /// The size that files are joined up to; larger ones stay.
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = "256MiB")]
    pub(crate) file_size: u64,
    /// Merge sorted files whose keys overlap, for which their rows are decoded. Otherwise the new
    /// file is not sorted.
    #[arg(long)]
    pub(crate) merge: bool,
    /// Write nothing, and show which files would be joined.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Look at each page, and verify its checksum.
    #[arg(long)]
    pub(crate) verify_checksums: bool,
    #[command(flatten)]
    pub(crate) encrypt: EncryptFlags,
}
