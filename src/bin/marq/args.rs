//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};
use marquetry::Error;

use crate::failure::{Failure, Result};

/// Look at Parquet files, and turn them into something else.
///
/// `marq FILE` is `marq info FILE`. Tables on a terminal, JSON in a pipe. Exit codes: 0 done, 1 I/O, 2 usage, 3 invalid or unsupported file or a
/// limit, 5 some files failed, 6 missing key.
#[derive(Debug, Parser)]
#[command(name = "marq", version, max_term_width = 100)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// One screen about a file: rows, row groups, where the bytes are, codecs, encodings, writer.
    Info(Info),
    /// The schema: as a tree, as Arrow, as the Parquet message, as JSON, or as a CREATE TABLE.
    Schema(Schema),
    /// The first rows.
    Head(Rows),
    /// The last rows.
    Tail(Rows),
    /// All rows.
    Cat(Rows),
    /// Some rows, chosen at random, in their order.
    Sample(Sample),
    /// The number of rows, from the metadata; with --where, of those that meet it.
    Count(Files),
    /// What a read will do: row groups and pages that are left, and why, bytes and requests.
    Explain(Explain),
    /// The pages of a column.
    Pages(Pages),
    /// Statistics: nulls, bounds, sizes.
    Stats(Stats),
    /// Parquet, Arrow IPC, CSV and JSON lines: each to each.
    Convert(Convert),
}

/// Flags that every command takes.
#[derive(Debug, clap::Args)]
pub(crate) struct Global {
    /// Colours: on a terminal, always, or never. NO_COLOR and CLICOLOR_FORCE are honoured.
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub(crate) color: When,
    /// The same as --color never.
    #[arg(long, global = true)]
    pub(crate) no_color: bool,
    /// Write to this file instead of standard output.
    #[arg(short, long, global = true, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Form of the output. Default: a table on a terminal, JSON (JSON lines for rows) in a pipe.
    #[arg(short, long, global = true)]
    pub(crate) format: Option<Format>,
    /// Tables as wide as they are: no column is left out, no cell is cut. A table where nothing else is asked for.
    #[arg(long, global = true)]
    pub(crate) wide: bool,
    /// Tables with one line a column, as psql's \\x. A table where nothing else is asked for.
    #[arg(long, global = true, conflicts_with = "wide")]
    pub(crate) vertical: bool,
    /// Exact numbers in tables, without units.
    #[arg(long, global = true)]
    pub(crate) raw: bool,
    /// Say nothing on standard error but errors.
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
    /// Say more.
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
    /// A progress bar on standard error: for long work on a terminal, always, or never.
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub(crate) progress: When,
    /// Threads that decode. Default: all cores.
    #[arg(short = 'j', long, global = true, value_name = "N")]
    pub(crate) threads: Option<usize>,
    /// Memory that reading may hold, as 512MiB.
    #[arg(long, global = true, value_name = "SIZE", value_parser = size)]
    pub(crate) mem: Option<u64>,
    /// The longest footer that is read.
    #[arg(long, global = true, value_name = "SIZE", value_parser = size)]
    pub(crate) limit_footer: Option<u64>,
    /// Unit that INT96 timestamps are read in.
    #[arg(long, global = true, value_name = "UNIT")]
    pub(crate) int96: Option<Unit>,
    /// Only rows that meet a condition, as `amount > 10 and country in ('NL', 'BE')`; for commands that read rows. --rows counts before it.
    #[arg(long = "where", global = true, value_name = "EXPR")]
    pub(crate) filter: Option<String>,
    /// Key of the footer, in hex (not there yet).
    #[arg(long, global = true, value_name = "HEX")]
    pub(crate) footer_key: Option<String>,
    /// Key of a column, in hex (not there yet).
    #[arg(long, global = true, value_name = "COL=HEX")]
    pub(crate) column_key: Vec<String>,
    /// AAD prefix that the file does not store (not there yet).
    #[arg(long, global = true, value_name = "TEXT")]
    pub(crate) aad_prefix: Option<String>,
}

impl Global {
    /// Flags whose capability is still to come are refused by name, never passed over.
    pub(crate) fn refuse_what_is_not_there(&self) -> Result<()> {
        let missing = [
            ("--footer-key", self.footer_key.is_some()),
            ("--column-key", !self.column_key.is_empty()),
            ("--aad-prefix", self.aad_prefix.is_some()),
        ];
        match missing.iter().find(|(_, given)| *given) {
            Some((flag, _)) => Err(not_there_yet(flag)),
            None => Ok(()),
        }
    }
}

impl Command {
    /// Refuses --where where it would say nothing.
    pub(crate) fn refuse_filter(&self, global: &Global) -> Result<()> {
        let reads_rows = matches!(
            self,
            Self::Head(_)
                | Self::Tail(_)
                | Self::Cat(_)
                | Self::Sample(_)
                | Self::Count(_)
                | Self::Convert(_)
                | Self::Explain(_)
        );
        match &global.filter {
            Some(_) if !reads_rows => {
                Err(Failure::Usage("--where is for commands that read rows".to_owned()))
            }
            _ => Ok(()),
        }
    }
}

/// A flag or a form whose capability is still to come.
pub(crate) fn not_there_yet(what: &str) -> Failure {
    Failure::File(Error::unsupported(
        "this version of marq",
        format!("{what} is not supported yet"),
    ))
}

/// Files to work on.
#[derive(Debug, clap::Args)]
pub(crate) struct Files {
    /// Files, globs, folders, or - for standard input.
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<String>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Info {
    #[command(flatten)]
    pub(crate) files: Files,
    /// Print one value of the key-value metadata, whole.
    #[arg(long, value_name = "KEY")]
    pub(crate) kv: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Schema {
    #[command(flatten)]
    pub(crate) files: Files,
    /// The form: tree, arrow, parquet, json, or sql:DIALECT (duckdb, postgres, spark, clickhouse, bigquery, snowflake).
    #[arg(long = "as", value_name = "FORM", default_value = "tree")]
    pub(crate) form: String,
}

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Rows {
    #[command(flatten)]
    pub(crate) files: FilesOfRows,
    /// Number of rows [default: 10; cat: all].
    #[arg(short = 'n', long, value_name = "N")]
    pub(crate) rows_max: Option<u64>,
}

/// Files whose rows are read, and which columns and rows of them.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct FilesOfRows {
    /// Files, globs, folders, or - for standard input.
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<String>,
    /// Columns: names and nested paths, globs, and !NAME to leave one out; separated by commas, or repeated.
    #[arg(short, long, value_name = "COLS", value_delimiter = ',')]
    pub(crate) columns: Vec<String>,
    /// Only this row group.
    #[arg(long, value_name = "N")]
    pub(crate) row_group: Vec<usize>,
    /// Only rows A to B, the last not included; counted from 0.
    #[arg(long, value_name = "A:B", value_parser = range)]
    pub(crate) rows: Option<(u64, u64)>,
    /// In JSON, CSV and tables, number columns and struct members that have one name: a, a_2. JSON cannot hold both otherwise.
    #[arg(long)]
    pub(crate) rename_duplicates: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Explain {
    #[command(flatten)]
    pub(crate) rows: FilesOfRows,
    /// Milliseconds that a request takes before its first byte, for the estimate of the time.
    #[arg(long, value_name = "MS", default_value_t = 30)]
    pub(crate) latency: u32,
    /// Megabytes that come in a second, for the estimate of the time.
    #[arg(long, value_name = "MB", default_value_t = 100)]
    pub(crate) bandwidth: u32,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Sample {
    #[command(flatten)]
    pub(crate) rows: Rows,
    /// The same seed gives the same rows.
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Pages {
    #[command(flatten)]
    pub(crate) files: Files,
    /// Columns: names and nested paths, globs, and !NAME to leave one out; separated by commas, or repeated. Default: all.
    #[arg(short, long, alias = "column", value_name = "COLS", value_delimiter = ',')]
    pub(crate) columns: Vec<String>,
    /// Only this row group.
    #[arg(long, value_name = "N")]
    pub(crate) row_group: Option<usize>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Stats {
    #[command(flatten)]
    pub(crate) files: Files,
    /// One line for each column, column chunk, row group, or page.
    #[arg(long, default_value = "column")]
    pub(crate) by: By,
    /// Columns: names and nested paths, globs, and !NAME to leave one out; separated by commas, or repeated. Default: all.
    #[arg(short, long, alias = "column", value_name = "COLS", value_delimiter = ',')]
    pub(crate) columns: Vec<String>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Convert {
    #[command(flatten)]
    pub(crate) files: FilesOfRows,
    /// Form of the output, where the ending of -o does not say it; needed with -o -.
    #[arg(long, value_name = "FORM")]
    pub(crate) to: Option<Target>,
    /// Form of the input, where neither its first bytes nor its ending say it.
    #[arg(long, value_name = "FORM")]
    pub(crate) from: Option<SourceForm>,
    /// Records of CSV and JSON lines that types are inferred from; 0 is all.
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    pub(crate) infer_rows: usize,
    /// Types of columns of CSV and JSON lines, as `id: int64, name: utf8 not null, tags: list<utf8>`; @FILE reads them from a file. Other columns are
    /// inferred.
    #[arg(long, value_name = "FIELDS")]
    pub(crate) schema: Option<String>,
    /// Infer nothing: --schema names all columns.
    #[arg(long, requires = "schema")]
    pub(crate) schema_only: bool,
    /// CSV has no header row, read or written.
    #[arg(long)]
    pub(crate) no_header: bool,
    /// The delimiter of CSV, read and written: one ASCII character, or tab. Default: a comma; a tab for .tsv.
    #[arg(long, value_name = "CHAR", value_parser = delimiter)]
    pub(crate) delimiter: Option<u8>,
    /// What stands for null in CSV, without quotes; may be repeated, the first is written. Default: nothing at all. A cell in quotes is never null:
    /// "" is the empty text.
    #[arg(long, value_name = "TEXT")]
    pub(crate) null: Vec<String>,
    /// How VARIANT columns are shown (not there yet).
    #[arg(long, value_name = "FORM")]
    pub(crate) variant: Option<String>,
    #[command(flatten)]
    pub(crate) write: WriteFlags,
}

/// How Parquet is written.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct WriteFlags {
    /// What the file is made for.
    #[arg(long, value_name = "PROFILE")]
    pub(crate) profile: Option<ProfileName>,
    /// The readers that the file is for, separated by commas: duckdb, polars, pyarrow, parquet-java, spark, or all (the default). Columns get only
    /// encodings that each of them decodes.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) readers: Vec<String>,
    /// The codec: none, snappy, gzip, zstd, brotli, lz4_raw; with a level: zstd:3.
    #[arg(long, value_name = "CODEC[:LEVEL]")]
    pub(crate) codec: Option<String>,
    /// The encoding of a column, without a dictionary, by its name in the specification.
    #[arg(long, value_name = "COL=ENC")]
    pub(crate) encoding: Vec<String>,
    /// The version of data pages.
    #[arg(long, value_name = "1|2", value_parser = clap::value_parser!(u8).range(1..=2))]
    pub(crate) page_version: Option<u8>,
    /// Whether dictionaries are made where they pay.
    #[arg(long, value_name = "on|off")]
    pub(crate) dictionary: Option<Switch>,
    /// The most rows of a row group.
    #[arg(long, value_name = "N")]
    pub(crate) row_group_rows: Option<u64>,
    /// The bytes that a row group should take in the file.
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) row_group_bytes: Option<u64>,
    /// A bloom filter for a column, with a false-positive rate (0.01 if none is said).
    #[arg(long, value_name = "COL[:FPP]")]
    pub(crate) bloom: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ProfileName {
    /// Small files that every current engine reads fast.
    Balanced,
    /// The smallest files.
    Small,
    /// Files that are read fastest.
    FastRead,
    /// Only what readers of 2015 know.
    Compatible,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Switch {
    On,
    Off,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum By {
    Column,
    Chunk,
    Rowgroup,
    Page,
}

/// A form that rows are read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SourceForm {
    /// Parquet.
    Parquet,
    /// Arrow IPC file.
    Arrow,
    /// Arrow IPC stream.
    Arrows,
    /// Comma-separated values.
    Csv,
    /// One JSON object a line.
    Jsonl,
}

/// A form that rows are converted to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Target {
    /// Arrow IPC file.
    Arrow,
    /// Arrow IPC stream.
    Arrows,
    /// Comma-separated values.
    Csv,
    /// One JSON object a line.
    Jsonl,
    /// Parquet.
    Parquet,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    Table,
    Json,
    Jsonl,
    Csv,
    Md,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum When {
    Auto,
    Always,
    Never,
}

impl When {
    /// Sets the colour choice of the process.
    pub(crate) fn apply(self) {
        use anstream::ColorChoice;
        match self {
            Self::Auto => {}
            Self::Always => ColorChoice::Always.write_global(),
            Self::Never => ColorChoice::Never.write_global(),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Unit {
    S,
    Ms,
    Us,
    Ns,
}

/// Puts `info` in front where the first word is no command: `marq FILE`.
pub(crate) fn with_default_command(args: impl Iterator<Item = OsString>) -> Vec<OsString> {
    const COMMANDS: [&str; 12] = [
        "info", "schema", "head", "tail", "cat", "sample", "count", "explain", "pages", "stats",
        "convert", "help",
    ];
    let mut args: Vec<OsString> = args.collect();
    let first = args.get(1).map(|arg| arg.to_string_lossy().into_owned());
    if let Some(first) = first {
        let is_flag = first.starts_with('-') && first != "-";
        if !is_flag && !COMMANDS.contains(&first.as_str()) {
            args.insert(1, "info".into());
        }
    }
    args
}

/// A number of bytes: 512MiB, 64KB, 1000.
fn size(text: &str) -> Result<u64, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let number: f64 = number.parse().map_err(|_| format!("{text:?} is not a size like 512MiB"))?;
    let factor: f64 = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1.0,
        "k" | "kib" => 1024.0,
        "m" | "mib" => 1024.0 * 1024.0,
        "g" | "gib" => 1024.0 * 1024.0 * 1024.0,
        "kb" => 1e3,
        "mb" => 1e6,
        "gb" => 1e9,
        other => return Err(format!("{other:?} is not a unit of size: KiB, MiB, GiB, KB, MB, GB")),
    };
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "no sign can be typed, and more than 2^64 is all of it"
    )]
    Ok((number * factor) as u64)
}

/// The delimiter of CSV.
fn delimiter(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        b"tab" | b"\\t" => Ok(b'\t'),
        [byte] if byte.is_ascii() && !matches!(byte, b'"' | b'\n' | b'\r') => Ok(*byte),
        _ => Err(format!("{text:?} is not one ASCII character that can stand between cells")),
    }
}

fn range(text: &str) -> Result<(u64, u64), String> {
    let wrong = || format!("{text:?} is not a range of rows like 100:200");
    let (from, to) = text.split_once(':').ok_or_else(wrong)?;
    let number = |text: &str, default| {
        if text.is_empty() { Ok(default) } else { text.parse().map_err(|_| wrong()) }
    };
    let (from, to) = (number(from, 0)?, number(to, u64::MAX)?);
    if from > to { Err(wrong()) } else { Ok((from, to)) }
}
