//! Declares the flags of writing Parquet: layout, and encryption.

use clap::ValueEnum;

use super::shared::{WRITING, size};

/// How Parquet is written.
#[derive(Debug, Default, clap::Args)]
#[command(next_help_heading = WRITING)]
pub(crate) struct WriteFlags {
    /// The purpose that the defaults are chosen for.
    #[arg(long, value_name = "PROFILE")]
    pub(crate) profile: Option<ProfileName>,
    /// The readers that the file is for, separated by commas: duckdb, polars, pyarrow,
    /// parquet-java, spark, spark-rows, arrow-rs, marquetry, or all (the default). Columns get only
    /// encodings that each of them decodes.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) readers: Vec<String>,
    /// The codec: none, snappy, gzip, zstd, brotli, lz4_raw; with a level: zstd:3.
    #[arg(long, visible_alias = "compression", value_name = "CODEC[:LEVEL]")]
    pub(crate) codec: Option<String>,
    /// The encoding of a column, without a dictionary, by its name in the specification.
    #[arg(long, value_name = "COL=ENC")]
    pub(crate) encoding: Vec<String>,
    /// Whether to use dictionaries where they make the file smaller.
    #[arg(long, value_name = "on|off")]
    pub(crate) dictionary: Option<Switch>,
    /// The version of data pages.
    #[arg(long, value_name = "1|2", value_parser = clap::value_parser!(u8).range(1..=2))]
    pub(crate) page_version: Option<u8>,
    /// Maximum rows of a row group.
    #[arg(long, value_name = "N")]
    pub(crate) row_group_rows: Option<u64>,
    /// Target size of a row group in the file, in bytes.
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) row_group_bytes: Option<u64>,
    /// A bloom filter for a column, with a false-positive rate (default: 0.01).
    #[arg(long, value_name = "COL[:FPP]")]
    pub(crate) bloom: Vec<String>,
    /// How to shred VARIANT columns: infer, from the first rows; none; or a shape, such as `{user:
    /// {id: int64}, tags: [string]}`. May be repeated, once per column.
    #[arg(long, value_name = "[COL=]infer|none|SHAPE")]
    pub(crate) shred: Vec<String>,
    /// Do not keep the Arrow schema in the file (`ARROW:schema`). Types that Parquet has not, such
    /// as durations and dictionaries, are then read as what they are stored as.
    #[arg(long)]
    pub(crate) no_arrow_schema: bool,
    /// Store dates of 64 bits as timestamps and intervals as 16 bytes, in which every value has a
    /// place. Otherwise times of day, signs and parts of milliseconds are errors.
    #[arg(long)]
    pub(crate) full_range: bool,
    /// After every N row groups, write a footer of those so far into OUTPUT.side-footer: if marq is
    /// killed, `marq salvage` recovers them from the temporary file. It is removed at the end.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) side_footer: Option<u32>,
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
            ("--no-arrow-schema", self.no_arrow_schema),
            ("--full-range", self.full_range),
            ("--side-footer", self.side_footer.is_some()),
        ];
        flags.into_iter().find_map(|(flag, given)| given.then_some(flag))
    }
}

/// Encryption of the output.
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
    /// Key metadata of the footer key, stored in the file.
    #[arg(long, value_name = "TEXT")]
    pub(crate) footer_key_metadata: Option<String>,
    /// Key metadata of a column key, stored in the file.
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
    /// Small files that all current engines read fast.
    Balanced,
    /// The smallest files.
    Small,
    /// Files that are read fastest.
    FastRead,
    /// Only features that readers of 2015 support.
    Compatible,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Switch {
    On,
    Off,
}

/// How a file is copied into a new one.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Copying {
    /// Write nothing, and show what would be copied and what encoded, and why.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Look at each page, and verify its checksum.
    #[arg(long)]
    pub(crate) verify_checksums: bool,
    /// Set a key of the key-value metadata; may be repeated.
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set_kv: Vec<String>,
    /// Leave out a key of the key-value metadata; may be repeated.
    #[arg(long, value_name = "KEY")]
    pub(crate) drop_kv: Vec<String>,
    #[command(flatten)]
    pub(crate) encrypt: EncryptFlags,
}
