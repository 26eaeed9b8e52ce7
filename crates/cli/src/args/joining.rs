//! The flags of `concat` and `append`.

use super::shared::{Columns, Files};
use super::writing::Copying;

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
    #[arg(value_name = "TARGET")]
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
    #[command(flatten)]
    pub(crate) copying: Copying,
}
