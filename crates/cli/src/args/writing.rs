//! Declares the flags of writing Parquet: layout, and encryption.

use std::path::PathBuf;

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
    /// Leave out the path of each column chunk, which makes the footer of a wide file smaller:
    /// marq, arrow-rs 60 and polars read it, other readers refuse it.
    #[arg(long)]
    pub(crate) omit_path_in_schema: bool,
    /// Write the key `geo` of GeoParquet 1.1, for the columns of geometries: their coordinate
    /// systems, types and boxes, and a covering if there is a column of boxes. The primary column
    /// is COL, or else the first.
    #[arg(long, value_name = "COL", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub(crate) geo: Option<String>,
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
            ("--omit-path-in-schema", self.omit_path_in_schema),
            ("--geo", self.geo.is_some()),
            ("--side-footer", self.side_footer.is_some()),
        ];
        flags.into_iter().find_map(|(flag, given)| given.then_some(flag))
    }
}

/// By what rows are sorted.
#[derive(Debug, Default, clap::Args)]
#[command(next_help_heading = WRITING)]
pub(crate) struct SortFlags {
    /// Sort all rows by these columns: COL, COL:desc, COL:nulls-first, COL:desc:nulls-first. Rows
    /// beyond the memory limit go to temporary files beside the output.
    #[arg(long, value_name = "COLS", value_delimiter = ',')]
    pub(crate) sort: Vec<String>,
    /// The folder of these temporary files; those of encrypted rows, which are in plain text, need
    /// it.
    #[arg(long, value_name = "DIR", requires = "sort")]
    pub(crate) temp: Option<PathBuf>,
}

/// A folder of files in place of one file.
#[derive(Debug, Default, clap::Args)]
#[command(next_help_heading = WRITING)]
pub(crate) struct FolderFlags {
    /// Write a folder -o with folders COL=VALUE for the values of these columns, which the files in
    /// them leave out.
    #[arg(long, value_name = "COLS", value_delimiter = ',')]
    pub(crate) partition_by: Vec<String>,
    /// Write a folder -o of files of about this size.
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) file_size: Option<u64>,
}

impl FolderFlags {
    /// The first of them that was given.
    pub(crate) fn given(&self) -> Option<&'static str> {
        let flags = [
            ("--partition-by", !self.partition_by.is_empty()),
            ("--file-size", self.file_size.is_some()),
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
    /// Files whose rows are read one by one.
    Points,
    /// Only features that readers of 2015 support.
    Compatible,
}

/// The type of the sides of boxes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum BoxSidesName {
    /// 32 bits, rounded outwards.
    Float32,
    /// 64 bits.
    Float64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Switch {
    On,
    Off,
}
