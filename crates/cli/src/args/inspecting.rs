//! The flags of the commands that look at parts of files: pages, dictionaries, filters, bytes.

use clap::ValueEnum;
use marquetry::check::{CheckLevel, Severity};

use super::shared::{By, Columns, Files, SourceFile, ValueForms};

#[derive(Debug, clap::Args)]
pub(crate) struct Pages {
    #[command(flatten)]
    pub(crate) files: Files,
    #[command(flatten)]
    pub(crate) columns: Columns,
    /// Only this row group.
    #[arg(long, value_name = "N")]
    pub(crate) row_group: Option<usize>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Dict {
    #[command(flatten)]
    pub(crate) source: SourceFile,
    /// The column: its name, or a nested path.
    #[arg(value_name = "COL")]
    pub(crate) column: String,
    /// Only this row group.
    #[arg(long, value_name = "N")]
    pub(crate) row_group: Option<usize>,
    /// Number of entries, over all row groups [default: all].
    #[arg(short = 'n', long, visible_alias = "limit", value_name = "N")]
    pub(crate) rows_max: Option<u64>,
    #[command(flatten)]
    pub(crate) values: ValueForms,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Bloom {
    #[command(flatten)]
    pub(crate) source: SourceFile,
    /// The column: its name, or a nested path.
    #[arg(value_name = "COL")]
    pub(crate) column: String,
    /// Values to look for, as text in the form that --where compares with: 42, Berlin, 2024-01-31;
    /// x'0aff' for bytes.
    #[arg(value_name = "VALUE", allow_negative_numbers = true)]
    pub(crate) values: Vec<String>,
    /// Only this row group.
    #[arg(long, value_name = "N")]
    pub(crate) row_group: Option<usize>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ReadersOf {
    #[command(flatten)]
    pub(crate) files: Files,
    /// Only these readers, separated by commas: duckdb, polars, pyarrow, parquet-java, spark,
    /// spark-rows, arrow-rs, marquetry. Exit code 4 if one of them does not read all columns.
    #[arg(long = "for", value_name = "READERS", value_delimiter = ',')]
    pub(crate) wanted: Vec<String>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Completions {
    /// The shell.
    #[arg(value_name = "SHELL")]
    pub(crate) shell: clap_complete::Shell,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Stats {
    #[command(flatten)]
    pub(crate) files: Files,
    /// One line for each column, column chunk, row group, or page.
    #[arg(long, default_value = "column")]
    pub(crate) by: By,
    /// Counts values: how many are distinct, and the most frequent, of all files together. Columns
    /// are decoded. With little memory, distinct values are estimated (~), and counts are lower
    /// bounds (≥).
    #[arg(long, conflicts_with = "by")]
    pub(crate) values: bool,
    /// How many of the most frequent values.
    #[arg(long, value_name = "N", default_value_t = 5, requires = "values")]
    pub(crate) top: usize,
    #[command(flatten)]
    pub(crate) columns: Columns,
}

/// Exit code 4 if there are errors: something contradicts the specification, or the file itself.
#[derive(Debug, clap::Args)]
pub(crate) struct Check {
    #[command(flatten)]
    pub(crate) files: Files,
    /// How much is recomputed; each level does what those before it do.
    #[arg(long, value_name = "LEVEL", default_value = "pages")]
    pub(crate) level: Level,
    /// The least that is listed: notes are of what is deprecated, missed or not checked.
    #[arg(long, value_name = "SEVERITY", default_value = "warning")]
    pub(crate) severity: LeastSeverity,
    /// Terms that must hold beyond the specification, in TOML: columns, types, nullability,
    /// codecs, sizes.
    #[arg(long, value_name = "FILE")]
    pub(crate) contract: Option<String>,
}

/// How much of a file is recomputed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Level {
    /// The footer, and what can be said from it alone.
    Footer,
    /// Pages and indexes: headers, checksums, sizes, levels.
    Pages,
    /// All values are decoded, and must be valid.
    Values,
    /// All statistics are recomputed: bounds, counts, bloom filters, sort order.
    Truth,
}

impl From<Level> for CheckLevel {
    fn from(level: Level) -> Self {
        match level {
            Level::Footer => Self::Footer,
            Level::Pages => Self::Pages,
            Level::Values => Self::Values,
            Level::Truth => Self::Truth,
        }
    }
}

/// The least severity of findings that are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LeastSeverity {
    Note,
    Warning,
    Error,
}

impl From<LeastSeverity> for Severity {
    fn from(least: LeastSeverity) -> Self {
        match least {
            LeastSeverity::Note => Self::Note,
            LeastSeverity::Warning => Self::Warning,
            LeastSeverity::Error => Self::Error,
        }
    }
}

#[derive(Debug, clap::Args)]
pub(crate) struct Hexdump {
    #[command(flatten)]
    pub(crate) source: SourceFile,
    /// Only what has bytes of this range, decimal or hexadecimal: 0x20, 0x20:64. Without a length,
    /// what the byte belongs to.
    #[arg(long, value_name = "OFF[:LEN]", value_parser = byte_range)]
    pub(crate) at: Option<(u64, Option<u64>)>,
    /// Only this page: the row group, the column (its path or its number), and the number of the
    /// data page, or dict for the dictionary page.
    #[arg(long, value_name = "RG/COL/N", value_parser = page_of_chunk, conflicts_with = "footer")]
    pub(crate) page: Option<PageOfChunk>,
    /// Only the footer, its length and the magic number after it.
    #[arg(long)]
    pub(crate) footer: bool,
    /// How far pages are taken apart.
    #[arg(long, value_name = "DEPTH", default_value = "values")]
    pub(crate) depth: Depth,
    /// Bytes on a line [default: 8 on a screen of less than 120 columns, else 16].
    #[arg(long, value_name = "N", value_parser = bytes_on_a_line)]
    pub(crate) width: Option<usize>,
}

/// How far pages are taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Depth {
    /// Headers only: no page is read.
    Header,
    /// Headers and levels.
    Levels,
    /// Headers, levels and values.
    Values,
}

/// A page of a column chunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PageOfChunk {
    pub(crate) row_group: usize,
    pub(crate) column: String,
    /// The number of the data page; the dictionary page if there is none.
    pub(crate) number: Option<usize>,
}

fn page_of_chunk(text: &str) -> Result<PageOfChunk, String> {
    let wrong = || format!("{text:?} is not a page like 0/user.name/2 or 0/user.name/dict");
    let (row_group, rest) = text.split_once('/').ok_or_else(wrong)?;
    let (column, number) = rest.rsplit_once('/').ok_or_else(wrong)?;
    let number = match number {
        "dict" | "dictionary" => None,
        number => Some(number.parse().map_err(|_| wrong())?),
    };
    let row_group = row_group.parse().map_err(|_| wrong())?;
    Ok(PageOfChunk { row_group, column: column.to_owned(), number })
}

fn bytes_on_a_line(text: &str) -> Result<usize, String> {
    let n = text.parse().ok().filter(|n| (1..=256).contains(n));
    n.ok_or_else(|| format!("{text:?} is not a number from 1 to 256"))
}

/// An offset and a length, decimal or hexadecimal.
fn byte_range(text: &str) -> Result<(u64, Option<u64>), String> {
    let number = |text: &str| {
        let parsed = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
            Some(digits) => u64::from_str_radix(digits, 16),
            None => text.parse(),
        };
        parsed.map_err(|_| format!("{text:?} is not an offset like 1024 or 0x400"))
    };
    match text.split_once(':') {
        None => Ok((number(text)?, None)),
        Some((offset, len)) => match number(len)? {
            0 => Err("a length of 0 bytes".to_owned()),
            len => Ok((number(offset)?, Some(len))),
        },
    }
}
