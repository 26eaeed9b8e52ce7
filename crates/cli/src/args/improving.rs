//! The flags of `fill`, `bench`, `doctor` and `optimize`.

use std::path::PathBuf;

use clap::ValueEnum;
use serde::Serialize;

use super::shared::{Columns, SourceFile, size};

#[derive(Debug, clap::Args)]
pub(crate) struct Fill {
    #[command(flatten)]
    pub(crate) source: SourceFile,
    /// Parts to fill in, separated by commas: encoding-stats, statistics, size-statistics,
    /// offset-index, column-index, column-orders, checksums, or all [default: all but checksums,
    /// for which page headers change].
    #[arg(long, value_name = "PARTS", value_delimiter = ',')]
    pub(crate) what: Vec<String>,
    /// A bloom filter for a column, with a false-positive rate (default: 0.01); may be repeated.
    #[arg(long, value_name = "COL[:FPP]")]
    pub(crate) bloom: Vec<String>,
    /// State that the rows are sorted by these columns, separated by commas; it is checked.
    #[arg(long, value_name = "COL[:desc][:nulls-first]", value_delimiter = ',')]
    pub(crate) sorted: Vec<String>,
    /// Read page headers only, and fill in what they tell.
    #[arg(long, conflicts_with_all = ["bloom", "sorted"])]
    pub(crate) headers_only: bool,
    /// Replace the file by the filled one, once that is complete.
    #[arg(long)]
    pub(crate) in_place: bool,
    /// Write nothing, and show what would be filled in.
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Bench {
    #[command(flatten)]
    pub(crate) source: SourceFile,
    #[command(flatten)]
    pub(crate) columns: Columns,
    /// Rounds of each measurement; the median is shown.
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub(crate) rounds: usize,
    /// Seconds after which no further measurement begins.
    #[arg(long, value_name = "S", default_value_t = 30)]
    pub(crate) seconds: u64,
    /// Bytes of the file that are read and written, in whole row groups.
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = "64MiB")]
    pub(crate) sample: u64,
    /// Codecs to write with, separated by commas.
    #[arg(
        long,
        value_name = "CODECS",
        value_delimiter = ',',
        default_value = "none,snappy,lz4_raw,zstd:1,zstd:3,zstd:9,gzip"
    )]
    pub(crate) codecs: Vec<String>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Doctor {
    #[command(flatten)]
    pub(crate) source: SourceFile,
    #[command(flatten)]
    pub(crate) goal: GoalFlags,
    /// Exit with code 4 if there is a finding of this severity, or a higher one.
    #[arg(long, value_name = "warn|error")]
    pub(crate) fail_on: Option<FailOn>,
    /// Write what is recommended to this file, for `optimize --recipe`.
    #[arg(long, value_name = "FILE")]
    pub(crate) recipe: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Optimize {
    #[command(flatten)]
    pub(crate) source: SourceFile,
    #[command(flatten)]
    pub(crate) goal: GoalFlags,
    /// Do what this file says, without trials.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["target", "sample"])]
    pub(crate) recipe: Option<PathBuf>,
    /// Write nothing, and show what would be done.
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// The aim by which a file is judged.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct GoalFlags {
    /// The aim: fewer bytes, faster reads, both, or few bytes in few requests.
    #[arg(long, value_name = "GOAL", default_value = "balanced")]
    pub(crate) target: GoalName,
    /// Bytes of the file that trials are made with, in whole row groups.
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = "64MiB")]
    pub(crate) sample: u64,
}

impl Default for GoalFlags {
    fn default() -> Self {
        Self { target: GoalName::Balanced, sample: 64 << 20 }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum GoalName {
    /// The smallest file.
    Size,
    /// The fastest reads of whole columns.
    Scan,
    /// Small and fast.
    Balanced,
    /// Few bytes, in few requests.
    ObjectStore,
    /// Single rows, by their numbers.
    Points,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum FailOn {
    Warn,
    Error,
}
