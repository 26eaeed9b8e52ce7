//! The flags of `concat` and `append`.

use super::shared::{Columns, Files};
use super::writing::EncryptFlags;
use crate::urls;

#[derive(Debug, clap::Args)]
pub(crate) struct Concat {
    #[command(flatten)]
    pub(crate) files: Files,
    #[command(flatten)]
    pub(crate) columns: Columns,
    #[command(flatten)]
    pub(crate) joining: Joining,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Append {
    /// The file that becomes longer: a new one is written beside it, of its bytes and those of the
    /// others, and takes its place once it is complete.
    #[arg(value_name = "TARGET", value_parser = urls::argument)]
    pub(crate) file: String,
    #[command(flatten)]
    pub(crate) files: Files,
    #[command(flatten)]
    pub(crate) joining: Joining,
}

/// How files become one.
#[derive(Debug, clap::Args)]
pub(crate) struct Joining {
    /// Match columns by name: their order may differ, missing ones are null, and types become as
    /// wide as it takes. Only column chunks of another type are decoded.
    #[arg(long)]
    pub(crate) by_name: bool,
    /// Write nothing, and show what would be copied.
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
