//! The flags of the commands of encryption.

use clap::Subcommand;

use super::shared::{Files, SourceFile};
use super::writing::EncryptFlags;

/// Encryption commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Crypt {
    /// Show how files are protected: each column, by which key, and what can be read without one.
    Audit(Audit),
    /// Encrypts a file.
    Encrypt(Box<Recrypt>),
    /// Decrypts a file.
    Decrypt(SourceFile),
    /// Encrypts a file with other keys: read with --key-file, --footer-key …, written with
    /// --encrypt-….
    Rekey(Box<Rekey>),
    /// Wraps the keys of files with other master keys, if their key material is stored beside them
    /// (_KEY_MATERIAL_FOR_FILE.json). The files do not change: a reader that kept their keys can
    /// still read them.
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
    /// Wrap keys with the master key NEW that were wrapped with OLD; may be repeated. Both are
    /// given by --key or --key-file.
    #[arg(long, value_name = "OLD=NEW", required = true)]
    pub(crate) master_key: Vec<String>,
}
