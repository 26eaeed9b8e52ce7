//! Declares the command line.

mod shared;
mod writing;
mod comparing;
mod crypt;
mod improving;
mod inspecting;
mod pictures;
mod rewriting;
mod joining;

use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};

pub(crate) use self::comparing::{Compared, Diff, SalvageFile};
pub(crate) use self::crypt::{Audit, Crypt, Recrypt, Rekey, Rewrap};
pub(crate) use self::improving::{Bench, Doctor, FailOn, Fill, GoalFlags, GoalName, Optimize};
pub(crate) use self::inspecting::{
    Bloom, Check, Completions, Depth, Dict, Hexdump, PageOfChunk, Pages, ReadersOf, Stats,
};
pub(crate) use self::joining::{Append, Concat, Joining};
pub(crate) use self::pictures::{ColorBy, FileReport, Map, Picture, Section, Size, SizeBy};
pub(crate) use self::rewriting::{Compact, Copying, FieldIds, Rewrite, Split, StatsLevel};
pub(crate) use self::shared::{
    BinaryForm, By, Columns, DecimalForm, Files, MapForm, SourceFile, ValueForms, size,
};
use self::shared::{KEYS, OUTPUT, READING, TEXT, WRITING};
pub(crate) use self::writing::{
    AlgorithmName, BoxSidesName, EncryptFlags, FolderFlags, ProfileName, SortFlags, Switch,
    WriteFlags,
};
use crate::urls;

/// Inspect Parquet files, and convert them to and from other formats.
///
/// `marq FILE` is `marq info FILE`. Tables on a terminal, JSON in a pipe.
///
/// A folder means the .parquet files in it. Folders named KEY=VALUE become columns (int64, date32
/// or utf8), which replace columns of the files with the same name.
///
/// Exit codes: 0 done, 1 I/O or a fault of marq, 2 usage, 3 invalid or unsupported file or a limit,
/// 4 a requirement is not met, 5 some files or rows are missing, 6 missing key or failed
/// authentication, 130 interrupted, 143 terminated.
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
    /// One screen about a file: rows, bytes, codecs, writer.
    Info(Info),
    /// The schema: as a tree, a message, Arrow, JSON or a CREATE TABLE.
    Schema(Schema),
    /// The first rows.
    Head(Rows),
    /// The last rows.
    Tail(Rows),
    /// All rows.
    Cat(Rows),
    /// Some rows, chosen at random, in their order.
    Sample(Sample),
    /// The number of rows, or of those that meet --where.
    Count(Files),
    /// Shows what a read will do, and why: row groups, pages, requests.
    Explain(Explain),
    /// The pages of a column.
    Pages(Pages),
    /// The entries of the dictionaries of a column, with their sizes.
    Dict(Dict),
    /// Asks the bloom filters of a column for values.
    Bloom(Bloom),
    /// Which readers open a file, and what stops the others.
    Readers(ReadersOf),
    /// Statistics: nulls, bounds, sizes.
    Stats(Stats),
    /// What takes the bytes: columns, structures, encodings, codecs.
    Size(Size),
    /// A picture of the layout: row groups and columns to scale.
    Map(Map),
    /// A page about a file, for a browser: pictures and tables.
    Report(FileReport),
    /// Every byte explained: bytes on the left, meaning on the right.
    Hexdump(Hexdump),
    /// Recomputes what files state, and reports what is not true.
    Check(Check),
    /// Compares two files: schemas, layouts, statistics, rows.
    Diff(Diff),
    /// Convert between Parquet, Arrow IPC, CSV and JSON lines.
    Convert(Box<Convert>),
    /// Joins files into one, without decoding them.
    Concat(Box<Concat>),
    /// Recovers what is whole of a damaged file.
    Salvage(SalvageFile),
    /// Adds the rows of files to the end of a file, without decoding.
    Append(Box<Append>),
    /// Writes a file anew, and encodes only what changes.
    Rewrite(Box<Rewrite>),
    /// Splits a file by rows, bytes or values, and copies what is not cut.
    Split(Box<Split>),
    /// Joins the small files of a folder, by copying them.
    Compact(Box<Compact>),
    /// Adds what a writer left out, without decoding the rows anew: statistics, indexes, filters.
    Fill(Box<Fill>),
    /// Finds what could be better in a file, and what that would bring, by trials with a sample.
    Doctor(Doctor),
    /// Writes a file anew as doctor recommends, or as a recipe says.
    Optimize(Optimize),
    /// How fast a file is read and written here: by column, and by codec.
    Bench(Bench),
    /// Encryption: audit files, encrypt, decrypt, change keys.
    #[command(subcommand)]
    Crypt(Crypt),
    /// A script by which a shell completes the command line.
    Completions(Completions),
    /// The manual pages.
    Man,
}

/// Flags of every command, and those of all commands that read rows.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Global {
    /// Write to this file or URL instead of standard output; its extension sets the format, unless
    /// -f does.
    #[arg(short, long, global = true, value_name = "FILE", value_parser = path, help_heading = OUTPUT)]
    pub(crate) output: Option<PathBuf>,
    /// Form of the output. Default: a table on a terminal, JSON (JSON lines for rows, a number for
    /// count) in a pipe.
    #[arg(short, long, global = true, help_heading = OUTPUT)]
    pub(crate) format: Option<Format>,
    /// Full-width tables: no column is left out, no cell is cut. Implies a table, unless -f is
    /// given.
    #[arg(long, global = true)]
    pub(crate) wide: bool,
    /// Tables with one line per column, as psql's \\x. Implies a table, unless -f is given.
    #[arg(long, global = true, conflicts_with = "wide")]
    pub(crate) vertical: bool,
    /// Exact numbers in tables, without units.
    #[arg(long, global = true, help_heading = OUTPUT)]
    pub(crate) raw: bool,
    /// Colours in messages and in this help: on a terminal, always, or never. NO_COLOR and
    /// CLICOLOR_FORCE are honoured.
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto", help_heading = OUTPUT)]
    pub(crate) color: When,
    /// The same as --color never.
    #[arg(long, global = true, help_heading = OUTPUT)]
    pub(crate) no_color: bool,
    /// A progress bar on standard error: for long work on a terminal, always, or never.
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto", help_heading = OUTPUT)]
    pub(crate) progress: When,
    /// Print nothing but errors on standard error.
    #[arg(short, long, global = true, conflicts_with = "verbose", help_heading = OUTPUT)]
    pub(crate) quiet: bool,
    /// Print a summary of what was written, also if standard error is no terminal; readers: column
    /// by column.
    #[arg(short, long, global = true, action = clap::ArgAction::Count, help_heading = OUTPUT)]
    pub(crate) verbose: u8,
    /// Only rows that meet a condition, such as `amount > 10 and country in ('NL', 'BE')`: see
    /// `marq help where`. --rows is applied before it, -n after it.
    #[arg(
        long = "where",
        global = true,
        value_name = "EXPR",
        allow_hyphen_values = true,
        help_heading = READING
    )]
    pub(crate) filter: Option<String>,
    /// Do not make columns of folders named KEY=VALUE.
    #[arg(long, global = true, help_heading = READING)]
    pub(crate) no_hive: bool,
    /// How values in the names of folders are typed: as integers or dates if all of them are such,
    /// or as text. Numbers with zeros in front are integers only if all have one length: 01 and 02
    /// are, 1 and 01 are text.
    #[arg(long, global = true, value_name = "infer|text", default_value = "infer", hide_default_value = true, help_heading = READING)]
    pub(crate) hive_types: HiveTypes,
    /// Unit of INT96 timestamps.
    #[arg(long, global = true, value_name = "UNIT", help_heading = READING)]
    pub(crate) int96: Option<Unit>,
    /// Threads that decode. Default: all cores.
    #[arg(short = 'j', long, global = true, value_name = "N", help_heading = READING)]
    pub(crate) threads: Option<usize>,
    /// Memory limit of reading and of reports, such as 512MiB; writing Parquet takes at most as
    /// much again.
    #[arg(long, global = true, value_name = "SIZE", value_parser = size, help_heading = READING)]
    pub(crate) mem: Option<u64>,
    /// Maximum length of a footer. Default: 1GiB.
    #[arg(long, global = true, value_name = "SIZE", value_parser = size, help_heading = READING)]
    pub(crate) limit_footer: Option<u64>,
    /// Copy files in which column chunks share bytes, although the copy may be far larger.
    #[arg(long, global = true, help_heading = READING)]
    pub(crate) shared_bytes: bool,
    /// Evaluate --where for every row, whatever statistics and indexes claim: for files of writers
    /// that are not trusted.
    #[arg(long, global = true, help_heading = READING)]
    pub(crate) verify_statistics: bool,
    /// Where bytes of a file are damaged: fail, go on with the next row group, or return null for
    /// the rows of the page in its column. What is lost is said on standard error, and the exit
    /// code is 5.
    #[arg(
        long,
        global = true,
        value_name = "WHAT",
        default_value = "fail",
        help_heading = READING
    )]
    pub(crate) on_damage: DamageFlag,
    /// After the run, print what was read: bytes, what they are, and how long it took.
    #[arg(long, global = true, help_heading = READING)]
    pub(crate) trace_io: bool,
    /// The server of the store, such as `http://127.0.0.1:9000`, in place of that of its provider.
    #[arg(long, global = true, value_name = "URL", help_heading = URLS)]
    pub(crate) endpoint: Option<String>,
    /// Region of the bucket (s3://). Default: AWS_REGION, the profile, or what the bucket says.
    #[arg(long, global = true, value_name = "NAME", help_heading = URLS)]
    pub(crate) region: Option<String>,
    /// Sign nothing, and send no password: for public objects.
    #[arg(long, global = true, help_heading = URLS)]
    pub(crate) anonymous: bool,
    /// Certificates (PEM) to trust beside those of the system.
    #[arg(long, global = true, value_name = "FILE", help_heading = URLS)]
    pub(crate) ca_file: Option<PathBuf>,
    /// Seconds that a server may be silent. Default: 30.
    #[arg(long, global = true, value_name = "SECONDS", help_heading = URLS)]
    pub(crate) timeout: Option<u32>,
    /// How often a request is made again that fails. Default: 4.
    #[arg(long, global = true, value_name = "N", help_heading = URLS)]
    pub(crate) retries: Option<u32>,
    /// A file of keys to read with, one per line: ID = HEX. The ID is footer, column:PATH, the key
    /// metadata that the file stores, or the name of a master key that wraps keys. Lines that begin
    /// with # are comments.
    #[arg(long, global = true, value_name = "FILE", help_heading = KEYS)]
    pub(crate) key_file: Option<PathBuf>,
    /// A key to read with, in a file (hexadecimal digits, or the bytes) or in the environment
    /// (digits); the ID is as in --key-file.
    #[arg(long, global = true, value_name = "ID=@FILE|env:NAME", help_heading = KEYS)]
    pub(crate) key: Vec<String>,
    /// Key of encrypted footers, and of columns without a key of their own: hexadecimal digits,
    /// @FILE or env:NAME. Other users of this machine can see digits given as an argument.
    #[arg(long, global = true, value_name = "HEX", help_heading = KEYS)]
    pub(crate) footer_key: Option<String>,
    /// Key of an encrypted column, or of all columns in a field: HEX, @FILE or env:NAME.
    #[arg(long, global = true, value_name = "COL=HEX", help_heading = KEYS)]
    pub(crate) column_key: Vec<String>,
    /// AAD prefix that an encrypted file does not store.
    #[arg(long, global = true, value_name = "TEXT", help_heading = KEYS)]
    pub(crate) aad_prefix: Option<String>,
    /// With keys, also read files and columns in plain text: without this flag they are an error,
    /// because they may have replaced encrypted ones.
    #[arg(long, global = true, help_heading = KEYS)]
    pub(crate) allow_plain: bool,
}

const URLS: &str = "URLs";

/// A path or a URL.
fn path(text: &str) -> Result<PathBuf, String> {
    urls::argument(text).map(PathBuf::from)
}

impl Global {
    /// Whether keys to read with are given.
    pub(crate) fn has_keys(&self) -> bool {
        self.footer_key.is_some()
            || !self.column_key.is_empty()
            || !self.key.is_empty()
            || self.key_file.is_some()
    }

    /// Whether messages have colours.
    pub(crate) fn color(&self) -> When {
        if self.no_color { When::Never } else { self.color }
    }
}

impl Command {
    /// Its name, with that of the command within it.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Info(_) => "info",
            Self::Schema(_) => "schema",
            Self::Head(_) => "head",
            Self::Tail(_) => "tail",
            Self::Cat(_) => "cat",
            Self::Sample(_) => "sample",
            Self::Count(_) => "count",
            Self::Explain(_) => "explain",
            Self::Pages(_) => "pages",
            Self::Dict(_) => "dict",
            Self::Bloom(_) => "bloom",
            Self::Readers(_) => "readers",
            Self::Stats(_) => "stats",
            Self::Size(_) => "size",
            Self::Map(_) => "map",
            Self::Report(_) => "report",
            Self::Hexdump(_) => "hexdump",
            Self::Check(_) => "check",
            Self::Diff(_) => "diff",
            Self::Convert(_) => "convert",
            Self::Concat(_) => "concat",
            Self::Salvage(_) => "salvage",
            Self::Append(_) => "append",
            Self::Rewrite(_) => "rewrite",
            Self::Split(_) => "split",
            Self::Compact(_) => "compact",
            Self::Fill(_) => "fill",
            Self::Doctor(_) => "doctor",
            Self::Optimize(_) => "optimize",
            Self::Bench(_) => "bench",
            Self::Crypt(Crypt::Audit(_)) => "crypt audit",
            Self::Crypt(Crypt::Encrypt(_)) => "crypt encrypt",
            Self::Crypt(Crypt::Decrypt(_)) => "crypt decrypt",
            Self::Crypt(Crypt::Rekey(_)) => "crypt rekey",
            Self::Crypt(Crypt::Rewrap(_)) => "crypt rewrap",
            Self::Completions(_) => "completions",
            Self::Man => "man",
        }
    }

    /// The files that are read.
    pub(crate) fn files(&self) -> &[String] {
        match self {
            Self::Info(command) => &command.files.files,
            Self::Schema(command) => &command.files.files,
            Self::Head(command) | Self::Tail(command) | Self::Cat(command) => &command.files.files,
            Self::Sample(command) => &command.rows.files.files,
            Self::Count(command) => &command.files,
            Self::Explain(command) => &command.rows.files,
            Self::Pages(command) => &command.files.files,
            Self::Dict(Dict { source, .. }) | Self::Bloom(Bloom { source, .. }) => {
                std::slice::from_ref(&source.file)
            }
            Self::Readers(command) => &command.files.files,
            Self::Stats(command) => &command.files.files,
            Self::Size(command) => &command.files.files,
            Self::Map(command) => std::slice::from_ref(&command.source.file),
            Self::Report(command) => std::slice::from_ref(&command.source.file),
            Self::Hexdump(command) => std::slice::from_ref(&command.source.file),
            Self::Check(command) => &command.files.files,
            Self::Diff(command) => &command.files,
            Self::Convert(command) => &command.files.files,
            Self::Concat(command) => &command.files.files,
            Self::Salvage(command) => command.named(),
            Self::Append(command) => &command.files.files,
            Self::Rewrite(command) => std::slice::from_ref(&command.source.file),
            Self::Split(command) => std::slice::from_ref(&command.source.file),
            Self::Compact(command) => std::slice::from_ref(&command.folder),
            Self::Fill(command) => std::slice::from_ref(&command.source.file),
            Self::Doctor(command) => std::slice::from_ref(&command.source.file),
            Self::Optimize(command) => std::slice::from_ref(&command.source.file),
            Self::Bench(command) => std::slice::from_ref(&command.source.file),
            Self::Crypt(command) => command.files(),
            Self::Completions(_) | Self::Man => &[],
        }
    }
}

#[derive(Debug, clap::Args)]
pub(crate) struct Info {
    #[command(flatten)]
    pub(crate) files: Files,
    /// Print one value of the key-value metadata, whole.
    #[arg(long, value_name = "KEY", allow_hyphen_values = true)]
    pub(crate) kv: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Schema {
    #[command(flatten)]
    pub(crate) files: Files,
    /// The form: tree, arrow, parquet, json, or sql:DIALECT (duckdb, postgres, spark, clickhouse,
    /// bigquery, snowflake). Default: a tree on a terminal, JSON in a pipe.
    #[arg(long = "as", value_name = "FORM")]
    pub(crate) form: Option<String>,
}

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Rows {
    #[command(flatten)]
    pub(crate) files: FilesOfRows,
    /// Number of rows, over all files [default: 10; cat: all]. `head -5` is `head -n 5`.
    #[arg(short = 'n', long, visible_alias = "limit", value_name = "N")]
    pub(crate) rows_max: Option<u64>,
    /// Rows to pass over first, over all files: of those that meet --where. For head and cat.
    #[arg(long, visible_alias = "offset", value_name = "N")]
    pub(crate) skip: Option<u64>,
    #[command(flatten)]
    pub(crate) values: ValueForms,
}

/// Files whose rows are read, and which columns and rows of them.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct FilesOfRows {
    /// Files, globs, folders, URLs, or - for standard input.
    #[arg(required = true, value_name = "FILE", value_parser = urls::argument)]
    pub(crate) files: Vec<String>,
    #[command(flatten)]
    pub(crate) columns: Columns,
    /// Only this row group.
    #[arg(long, value_name = "N")]
    pub(crate) row_group: Vec<usize>,
    /// Only rows A to B, without B; counted from 0.
    #[arg(long, value_name = "A:B", value_parser = range)]
    pub(crate) rows: Option<(u64, u64)>,
    /// Only the part of VARIANT columns at this path: `$.user.tags[0]`, `$['odd name']`.
    #[arg(long, value_name = "PATH")]
    pub(crate) variant_path: Option<String>,
    /// In JSON, CSV and tables, number columns and struct members that have the same name: a, a_2.
    /// JSON cannot hold both otherwise.
    #[arg(long)]
    pub(crate) rename_duplicates: bool,
    /// Unite the columns of files of different schemas by their names: missing ones are null, types
    /// become as wide as it takes to lose nothing.
    #[arg(long)]
    pub(crate) by_name: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Explain {
    #[command(flatten)]
    pub(crate) rows: FilesOfRows,
    /// Latency of a request in milliseconds, for the time estimate.
    #[arg(long, value_name = "MS", default_value_t = 30)]
    pub(crate) latency: u32,
    /// Throughput in megabytes per second, for the time estimate.
    #[arg(long, value_name = "MB", default_value_t = 100)]
    pub(crate) bandwidth: u32,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Sample {
    #[command(flatten)]
    pub(crate) rows: Rows,
    /// The same seed selects the same rows.
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Convert {
    #[command(flatten)]
    pub(crate) files: FilesOfRows,
    /// Format of the output, if the extension of -o does not set it; required with -o -.
    #[arg(long, value_name = "FORM")]
    pub(crate) to: Option<TargetForm>,
    /// Format of the input, if neither its first bytes nor its extension show it.
    #[arg(long, value_name = "FORM")]
    pub(crate) from: Option<SourceForm>,
    /// Replace the input file by the output, once that is complete.
    #[arg(long)]
    pub(crate) in_place: bool,
    /// Fields of JSON lines that become VARIANT columns, separated by commas, whatever their values
    /// are; with all, each line is one value of one column, json. For JSON lines and CSV as an
    /// output, json: VARIANT columns are shown as JSON, as they are without this flag.
    #[arg(long, value_name = "COLS|all|json")]
    pub(crate) variant: Option<String>,
    #[command(flatten)]
    pub(crate) text: TextFlags,
    #[command(flatten)]
    pub(crate) values: ValueForms,
    #[command(flatten)]
    pub(crate) write: WriteFlags,
    /// Rows of a row group that exceed the memory limit go to a temporary file in DIR, so that row
    /// groups of very many columns have as many rows as --row-group-rows and --row-group-bytes say.
    /// That of an encrypted output is encrypted.
    #[arg(long, value_name = "DIR", help_heading = WRITING)]
    pub(crate) spill: Option<PathBuf>,
    /// Compute the box of each geometry into a column bbox, which the key geo names as its
    /// covering, so that readers of GeoParquet leave out row groups and pages of other regions.
    /// Sides of float32, which are rounded outwards, are the default. Implies --geo.
    #[arg(
        long,
        value_name = "float32|float64",
        help_heading = WRITING,
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "float32"
    )]
    pub(crate) geo_covering: Option<BoxSidesName>,
    #[command(flatten)]
    pub(crate) sorting: SortFlags,
    #[command(flatten)]
    pub(crate) folder: FolderFlags,
    #[command(flatten)]
    pub(crate) encrypt: EncryptFlags,
}

/// How CSV and JSON lines are read and written.
#[derive(Debug, Default, clap::Args)]
#[command(next_help_heading = TEXT)]
pub(crate) struct TextFlags {
    /// Types of columns of CSV and JSON lines, as `id: int64, name: utf8 not null, tags:
    /// list<utf8>`; @FILE reads them from a file. Other columns are inferred. Columns that have one
    /// name are all named, in their order.
    #[arg(long, value_name = "FIELDS", allow_hyphen_values = true)]
    pub(crate) schema: Option<String>,
    /// Infer nothing: --schema names all columns.
    #[arg(long, requires = "schema")]
    pub(crate) schema_only: bool,
    /// Records of CSV and JSON lines that types are inferred from; 0 is all [default: 10000].
    /// Numbers with zeros in front, as codes have them, are text.
    #[arg(long, value_name = "N", conflicts_with = "schema_only")]
    pub(crate) infer_rows: Option<usize>,
    /// CSV has no header row, read or written.
    #[arg(long)]
    pub(crate) no_header: bool,
    /// The delimiter of CSV, read and written: one ASCII character, or tab. Default: a comma; a tab
    /// for .tsv.
    #[arg(long, value_name = "CHAR", value_parser = delimiter, allow_hyphen_values = true)]
    pub(crate) delimiter: Option<u8>,
    /// The text of null in CSV, without quotes; may be repeated, the first is written. Default: the
    /// empty cell. A cell in quotes is never null: "" is the empty string.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) null: Vec<String>,
}

/// How partition values are typed.
/// How a read goes on where bytes are damaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DamageFlag {
    /// End with an error.
    Fail,
    /// Leave the rest of the row group out.
    SkipRowGroup,
    /// Return null for the rows of the page; where that cannot be, leave the row group out.
    NullPages,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum HiveTypes {
    Infer,
    Text,
}

/// An input format.
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
    /// One JSON object a line, or an array of them.
    #[value(alias = "json")]
    Jsonl,
}

/// An output format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TargetForm {
    /// Arrow IPC file.
    Arrow,
    /// Arrow IPC stream.
    Arrows,
    /// Comma-separated values.
    Csv,
    /// An array of JSON objects.
    Json,
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
    /// For check: SARIF 2.1.0.
    Sarif,
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
