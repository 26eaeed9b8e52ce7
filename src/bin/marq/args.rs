//! The command line.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ColorChoice, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};

use crate::failure::Result;

/// Look at Parquet files, and turn them into something else.
///
/// `marq FILE` is `marq info FILE`. Tables on a terminal, JSON in a pipe.
///
/// A folder stands for the .parquet files in it; parts of its name and below it that are KEY=VALUE
/// are columns (int64, date32 or utf8), which take the place of columns of the files with the same
/// name.
///
/// Exit codes: 0 done, 1 I/O, 2 usage, 3 invalid or unsupported file or a limit, 4 something that
/// was required is not so, 5 some files failed, 6 missing key or failed authentication, 130
/// interrupted, 143 terminated.
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
    Convert(Box<Convert>),
    /// Encryption: what is protected, and other protection for files, without decoding them.
    #[command(subcommand)]
    Crypt(Crypt),
}

/// Flags of every command, and those of all commands that read rows.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Global {
    /// Write to this file instead of standard output; its ending says the format, where -f does
    /// not.
    #[arg(short, long, global = true, value_name = "FILE", help_heading = OUTPUT)]
    pub(crate) output: Option<PathBuf>,
    /// Form of the output. Default: a table on a terminal, JSON (JSON lines for rows, a number for
    /// count) in a pipe.
    #[arg(short, long, global = true, help_heading = OUTPUT)]
    pub(crate) format: Option<Format>,
    /// Tables as wide as they are: no column is left out, no cell is cut. A table where nothing
    /// else is asked for.
    #[arg(long, global = true)]
    pub(crate) wide: bool,
    /// Tables with one line a column, as psql's \\x. A table where nothing else is asked for.
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
    /// Say nothing on standard error but errors.
    #[arg(short, long, global = true, conflicts_with = "verbose", help_heading = OUTPUT)]
    pub(crate) quiet: bool,
    /// Say what was written, also where standard error is no terminal.
    #[arg(short, long, global = true, action = clap::ArgAction::Count, help_heading = OUTPUT)]
    pub(crate) verbose: u8,
    /// Only rows that meet a condition, as `amount > 10 and country in ('NL', 'BE')`. --rows counts
    /// before it, -n after it.
    #[arg(
        long = "where",
        global = true,
        value_name = "EXPR",
        allow_hyphen_values = true,
        help_heading = READING
    )]
    pub(crate) filter: Option<String>,
    /// Folders named KEY=VALUE are no columns.
    #[arg(long, global = true, help_heading = READING)]
    pub(crate) no_hive: bool,
    /// Unit that INT96 timestamps are read in.
    #[arg(long, global = true, value_name = "UNIT", help_heading = READING)]
    pub(crate) int96: Option<Unit>,
    /// Threads that decode. Default: all cores.
    #[arg(short = 'j', long, global = true, value_name = "N", help_heading = READING)]
    pub(crate) threads: Option<usize>,
    /// Memory that reading may hold, as 512MiB.
    #[arg(long, global = true, value_name = "SIZE", value_parser = size, help_heading = READING)]
    pub(crate) mem: Option<u64>,
    /// The longest footer that is read. Default: 1GiB.
    #[arg(long, global = true, value_name = "SIZE", value_parser = size, help_heading = READING)]
    pub(crate) limit_footer: Option<u64>,
    /// Keys to read with, a line each: ID = HEX. The ID is footer, column:PATH, what the file
    /// stores to tell the key by, or the name of a master key that wraps keys. Lines that begin
    /// with # are comments.
    #[arg(long, global = true, value_name = "FILE", help_heading = KEYS)]
    pub(crate) key_file: Option<PathBuf>,
    /// A key to read with, in a file (hexadecimal digits, or the bytes) or in the environment
    /// (digits); the ID is as in --key-file.
    #[arg(long, global = true, value_name = "ID=@FILE|env:NAME", help_heading = KEYS)]
    pub(crate) key: Vec<String>,
    /// Key of encrypted footers, and of columns without a key of their own: in hexadecimal digits,
    /// @FILE or env:NAME. Others on this machine can see digits that are an argument.
    #[arg(long, global = true, value_name = "HEX", help_heading = KEYS)]
    pub(crate) footer_key: Option<String>,
    /// Key of an encrypted column, or of all columns in a field: HEX, @FILE or env:NAME.
    #[arg(long, global = true, value_name = "COL=HEX", help_heading = KEYS)]
    pub(crate) column_key: Vec<String>,
    /// AAD prefix that an encrypted file does not store.
    #[arg(long, global = true, value_name = "TEXT", help_heading = KEYS)]
    pub(crate) aad_prefix: Option<String>,
    /// With keys, read what is in plain text too: without this flag it is an error, as it may have
    /// been put in place of what was encrypted.
    #[arg(long, global = true, help_heading = KEYS)]
    pub(crate) allow_plain: bool,
}

/// Headings of the help.
const OUTPUT: &str = "Output";
const READING: &str = "Reading";
const WRITING: &str = "Writing Parquet";
const TEXT: &str = "CSV and JSON lines";
const KEYS: &str = "Encryption";

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
            Self::Stats(command) => &command.files.files,
            Self::Convert(command) => &command.files.files,
            Self::Crypt(command) => command.files(),
        }
    }
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
    #[arg(long, value_name = "KEY", allow_hyphen_values = true)]
    pub(crate) kv: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Schema {
    #[command(flatten)]
    pub(crate) files: Files,
    /// The form: tree, arrow, parquet, json, or sql:DIALECT (duckdb, postgres, spark, clickhouse,
    /// bigquery, snowflake).
    #[arg(long = "as", value_name = "FORM", default_value = "tree")]
    pub(crate) form: String,
}

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Rows {
    #[command(flatten)]
    pub(crate) files: FilesOfRows,
    /// Number of rows, of all files together [default: 10; cat: all].
    #[arg(short = 'n', long, value_name = "N")]
    pub(crate) rows_max: Option<u64>,
}

/// Files whose rows are read, and which columns and rows of them.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct FilesOfRows {
    /// Files, globs, folders, or - for standard input.
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<String>,
    #[command(flatten)]
    pub(crate) columns: Columns,
    /// Only this row group.
    #[arg(long, value_name = "N")]
    pub(crate) row_group: Vec<usize>,
    /// Only rows A to B, the last not included; counted from 0.
    #[arg(long, value_name = "A:B", value_parser = range)]
    pub(crate) rows: Option<(u64, u64)>,
    /// Of VARIANT columns only the part that a path leads to: `$.user.tags[0]`, `$['odd name']`.
    #[arg(long, value_name = "PATH")]
    pub(crate) variant_path: Option<String>,
    /// In JSON, CSV and tables, number columns and struct members that have one name: a, a_2. JSON
    /// cannot hold both otherwise.
    #[arg(long)]
    pub(crate) rename_duplicates: bool,
}

/// Which columns, in all commands alike.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct Columns {
    /// Columns: names and nested paths, globs, and !NAME to leave one out; separated by commas, or
    /// repeated.
    #[arg(
        short,
        long,
        alias = "column",
        value_name = "COLS",
        value_delimiter = ',',
        allow_hyphen_values = true
    )]
    pub(crate) columns: Vec<String>,
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
    #[command(flatten)]
    pub(crate) columns: Columns,
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
    #[command(flatten)]
    pub(crate) columns: Columns,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Convert {
    #[command(flatten)]
    pub(crate) files: FilesOfRows,
    /// Form of the output, where the ending of -o does not say it; needed with -o -.
    #[arg(long, value_name = "FORM")]
    pub(crate) to: Option<TargetForm>,
    /// Form of the input, where neither its first bytes nor its ending say it.
    #[arg(long, value_name = "FORM")]
    pub(crate) from: Option<SourceForm>,
    /// Replace the one file by what is made of it, when that is whole.
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
    pub(crate) write: WriteFlags,
    #[command(flatten)]
    pub(crate) encrypt: EncryptFlags,
}

/// What is done about encryption.
#[derive(Debug, Subcommand)]
pub(crate) enum Crypt {
    /// What protects files: each column, by which key, and what can be read without one.
    Audit(Audit),
    /// Encrypts a file.
    Encrypt(Box<Recrypt>),
    /// Decrypts a file.
    Decrypt(SourceFile),
    /// Encrypts a file with other keys: read with --key-file, --footer-key …, written with
    /// --encrypt-….
    Rekey(Box<Rekey>),
    /// Wraps the keys of files with other master keys, where their key material lies beside them
    /// (_KEY_MATERIAL_FOR_FILE.json). The files are not touched, so whoever has kept their keys
    /// can still read them.
    Rewrap(Rewrap),
}

impl Crypt {
    /// The files that are read.
    pub(crate) fn files(&self) -> &[String] {
        match self {
            Self::Audit(command) => &command.files.files,
            Self::Encrypt(command) => std::slice::from_ref(&command.source.file),
            Self::Decrypt(source) => std::slice::from_ref(&source.file),
            Self::Rekey(command) => std::slice::from_ref(&command.source.file),
            Self::Rewrap(command) => &command.files.files,
        }
    }
}

#[derive(Debug, clap::Args)]
pub(crate) struct Audit {
    #[command(flatten)]
    pub(crate) files: Files,
    /// Columns that must be encrypted in every file, by name, path or glob; may be repeated. Exit
    /// code 4 if one is not.
    #[arg(long, value_name = "PATTERN")]
    pub(crate) require: Vec<String>,
}

/// The file that another is made of.
#[derive(Debug, clap::Args)]
pub(crate) struct SourceFile {
    /// The file, or - for standard input.
    #[arg(value_name = "FILE")]
    pub(crate) file: String,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Recrypt {
    #[command(flatten)]
    pub(crate) source: SourceFile,
    #[command(flatten)]
    pub(crate) encrypt: EncryptFlags,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Rekey {
    #[command(flatten)]
    pub(crate) source: SourceFile,
    /// AAD prefix of the new file, "" for none [default: the one of --aad-prefix].
    #[arg(long, value_name = "TEXT")]
    pub(crate) new_aad_prefix: Option<String>,
    #[command(flatten)]
    pub(crate) encrypt: EncryptFlags,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Rewrap {
    #[command(flatten)]
    pub(crate) files: Files,
    /// Keys that the master key OLD has wrapped are wrapped with NEW; may be repeated. Both are
    /// given by --key or --key-file.
    #[arg(long, value_name = "OLD=NEW", required = true)]
    pub(crate) master_key: Vec<String>,
}

/// How CSV and JSON lines are read and written.
#[derive(Debug, Default, clap::Args)]
#[command(next_help_heading = TEXT)]
pub(crate) struct TextFlags {
    /// Types of columns of CSV and JSON lines, as `id: int64, name: utf8 not null, tags:
    /// list<utf8>`; @FILE reads them from a file. Other columns are inferred.
    #[arg(long, value_name = "FIELDS", allow_hyphen_values = true)]
    pub(crate) schema: Option<String>,
    /// Infer nothing: --schema names all columns.
    #[arg(long, requires = "schema")]
    pub(crate) schema_only: bool,
    /// Records of CSV and JSON lines that types are inferred from; 0 is all [default: 10000].
    #[arg(long, value_name = "N", conflicts_with = "schema_only")]
    pub(crate) infer_rows: Option<usize>,
    /// CSV has no header row, read or written.
    #[arg(long)]
    pub(crate) no_header: bool,
    /// The delimiter of CSV, read and written: one ASCII character, or tab. Default: a comma; a tab
    /// for .tsv.
    #[arg(long, value_name = "CHAR", value_parser = delimiter, allow_hyphen_values = true)]
    pub(crate) delimiter: Option<u8>,
    /// What stands for null in CSV, without quotes; may be repeated, the first is written. Default:
    /// nothing at all. A cell in quotes is never null: "" is the empty text.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) null: Vec<String>,
}

/// How Parquet is written.
#[derive(Debug, Default, clap::Args)]
#[command(next_help_heading = WRITING)]
pub(crate) struct WriteFlags {
    /// What the file is made for.
    #[arg(long, value_name = "PROFILE")]
    pub(crate) profile: Option<ProfileName>,
    /// The readers that the file is for, separated by commas: duckdb, polars, pyarrow,
    /// parquet-java, spark, or all (the default). Columns get only encodings that each of them
    /// decodes.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) readers: Vec<String>,
    /// The codec: none, snappy, gzip, zstd, brotli, lz4_raw; with a level: zstd:3.
    #[arg(long, value_name = "CODEC[:LEVEL]")]
    pub(crate) codec: Option<String>,
    /// The encoding of a column, without a dictionary, by its name in the specification.
    #[arg(long, value_name = "COL=ENC")]
    pub(crate) encoding: Vec<String>,
    /// Whether dictionaries are made where they pay.
    #[arg(long, value_name = "on|off")]
    pub(crate) dictionary: Option<Switch>,
    /// The version of data pages.
    #[arg(long, value_name = "1|2", value_parser = clap::value_parser!(u8).range(1..=2))]
    pub(crate) page_version: Option<u8>,
    /// The most rows of a row group.
    #[arg(long, value_name = "N")]
    pub(crate) row_group_rows: Option<u64>,
    /// The bytes that a row group should take in the file.
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) row_group_bytes: Option<u64>,
    /// A bloom filter for a column, with a false-positive rate (0.01 if none is said).
    #[arg(long, value_name = "COL[:FPP]")]
    pub(crate) bloom: Vec<String>,
    /// Which parts of VARIANT columns become columns of their own: infer, by what is in the first
    /// rows; none; or a shape, as `{user: {id: int64}, tags: [string]}`. May be repeated, for a
    /// column each.
    #[arg(long, value_name = "[COL=]infer|none|SHAPE")]
    pub(crate) shred: Vec<String>,
}

impl WriteFlags {
    /// The first of them that was given.
    pub(crate) fn given(&self) -> Option<&'static str> {
        let flags = [
            ("--profile", self.profile.is_some()),
            ("--codec", self.codec.is_some()),
            ("--encoding", !self.encoding.is_empty()),
            ("--dictionary", self.dictionary.is_some()),
            ("--page-version", self.page_version.is_some()),
            ("--row-group-rows", self.row_group_rows.is_some()),
            ("--row-group-bytes", self.row_group_bytes.is_some()),
            ("--bloom", !self.bloom.is_empty()),
            ("--shred", !self.shred.is_empty()),
        ];
        flags.into_iter().find_map(|(flag, given)| given.then_some(flag))
    }
}

/// Encryption on the way out.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Encrypting")]
pub(crate) struct EncryptFlags {
    /// Encrypts the file with this key; with keys of columns, those columns and the footer. A key
    /// is HEX, @FILE or env:NAME.
    #[arg(long, value_name = "HEX")]
    pub(crate) encrypt_footer_key: Option<String>,
    /// Encrypts a column, or all columns in a field, with a key of its own; columns without one
    /// stay in plain text.
    #[arg(long, value_name = "COL=HEX")]
    pub(crate) encrypt_column_key: Vec<String>,
    /// The algorithm: gcm, or gcm-ctr, which does not authenticate the pages.
    #[arg(long, value_name = "ALGORITHM")]
    pub(crate) algorithm: Option<AlgorithmName>,
    /// Leaves the footer in plain text, and signs it.
    #[arg(long)]
    pub(crate) plaintext_footer: bool,
    /// What the file stores to tell the key of the footer by.
    #[arg(long, value_name = "TEXT")]
    pub(crate) footer_key_metadata: Option<String>,
    /// What the file stores to tell the key of a column by.
    #[arg(long, value_name = "COL=TEXT")]
    pub(crate) column_key_metadata: Vec<String>,
}

/// An algorithm of Encryption.md.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum AlgorithmName {
    /// AES_GCM_V1: everything is authenticated.
    Gcm,
    /// AES_GCM_CTR_V1: the bodies of pages are encrypted, and not authenticated.
    GcmCtr,
}

impl EncryptFlags {
    /// The first of them that was given.
    pub(crate) fn given(&self) -> Option<&'static str> {
        let flags = [
            ("--encrypt-footer-key", self.encrypt_footer_key.is_some()),
            ("--encrypt-column-key", !self.encrypt_column_key.is_empty()),
            ("--algorithm", self.algorithm.is_some()),
            ("--plaintext-footer", self.plaintext_footer),
            ("--footer-key-metadata", self.footer_key_metadata.is_some()),
            ("--column-key-metadata", !self.column_key_metadata.is_empty()),
        ];
        flags.into_iter().find_map(|(flag, given)| given.then_some(flag))
    }
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
pub(crate) enum TargetForm {
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

/// Reads the command line. A word that is no command, and may be a file, is one: `marq FILE`.
///
/// # Errors
/// What is wrong with it; help and version, too.
pub(crate) fn parse() -> Result<Args, clap::Error> {
    let mut words: Vec<OsString> = std::env::args_os().collect();
    let command = Args::command().color(colors(&words));
    let parse = |command: clap::Command, words: &[OsString]| {
        let matches = command.try_get_matches_from(words)?;
        Args::from_arg_matches(&matches)
    };
    let error = match parse(command.clone(), &words) {
        Err(error) if error.kind() == ErrorKind::InvalidSubcommand => error,
        done => return done,
    };
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) else {
        return Err(error);
    };
    let at = words.iter().position(|found| found.to_string_lossy() == *word);
    match at.filter(|_| may_be_a_file(word)) {
        Some(at) => {
            words.insert(at, "info".into());
            parse(command, &words)
        }
        None => Err(error),
    }
}

fn may_be_a_file(word: &str) -> bool {
    word == "-" || word.contains(['.', '/', '\\', '*', '?', '[', ':']) || Path::new(word).exists()
}

/// What is said of a word that is neither a command nor a file.
pub(crate) fn unknown_command(error: &clap::Error) -> Option<String> {
    let ContextValue::String(word) = error.get(ContextKind::InvalidSubcommand)? else {
        return None;
    };
    let close = match error.get(ContextKind::SuggestedSubcommand) {
        Some(ContextValue::Strings(close)) => close.join(" or "),
        Some(ContextValue::String(close)) => close.clone(),
        _ => String::new(),
    };
    let close = if close.is_empty() { ".".to_owned() } else { format!("; did you mean {close}?") };
    let command = Args::command();
    let names: Vec<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
    let names = names.join(", ");
    Some(format!("{word:?} is neither a command nor a file{close} The commands are {names}"))
}

/// --color and --no-color, which the help obeys before they are parsed.
fn colors(words: &[OsString]) -> ColorChoice {
    let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
    let said = |when: &str| {
        let equals = format!("--color={when}");
        words.iter().any(|word| *word == equals)
            || words.windows(2).any(|pair| pair[0] == "--color" && pair[1] == when)
    };
    match () {
        () if said("never") || words.iter().any(|word| word == "--no-color") => ColorChoice::Never,
        () if said("always") => ColorChoice::Always,
        () => ColorChoice::Auto,
    }
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
