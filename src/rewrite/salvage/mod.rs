//! [`Salvage`]: recovers the row groups of a damaged file that are whole.
//!
//! | file | what it does |
//! |---|---|
//! | `account` | what was recovered, and what was lost |
//! | `other_parts` | filters, indexes and footers between pages and after them |
//! | `pages` | finds pages by their headers |
//! | `overlay` | a file with another footer |
//! | `encrypted` | a file that is encrypted, by its footers alone |
//! | `rebuilt` | metadata, made of the headers of pages |
//! | `ground` | what a page may be: its column, its codec, its rows |
//! | `groups` | divides pages into row groups |
//! | `covered` | the bytes that ranges cover |
//! | `search` | tries footers first, then the bytes that they leave |
//!
//! A row group is recovered if each of its columns decodes in full, all have the same number of
//! rows, checksums are right, and no statistics contradict the values. Its bytes are then copied.

mod account;
mod other_parts;
mod pages;
mod overlay;
mod encrypted;
mod rebuilt;
mod ground;
mod groups;
mod covered;
mod search;

use std::sync::Arc;

pub use self::account::{FoundBy, LostPart, RecoveredRowGroup, SalvageAccount};
use self::rebuilt::Described;
use self::search::{Search, SearchInput};
use super::files::{Rewrite, Rewritten};
use crate::crypt::Decryption;
use crate::error::{Error, Result, Spec};
use crate::format::FileMetaData;
use crate::io::{Sink, Source, open_footer};
use crate::limits::Limits;
use crate::reader::Reader;

/// Recovers the row groups of a damaged file that are whole: one without a footer, with its end cut
/// off, or with damaged pages or headers.
///
/// The footer of the file is tried first, then a side footer
/// ([`Writer::with_side_footer`](crate::Writer::with_side_footer)); of the bytes that
/// are left, page headers are read one after the other, with the schema of a file that has the
/// same. Codecs are not in page headers: they are those of that file, or are found by trial.
///
/// No row is made up. Where pages can be divided into columns in more than one way, as for
/// columns of one type without dictionaries, they are lost, and the account says so.
///
/// ```
/// # fn main() -> marquetry::Result<()> {
/// use marquetry::Reader;
/// use marquetry::io::WriteSink;
/// use marquetry::rewrite::Salvage;
///
/// let whole = std::fs::read("testdata/trips.parquet").unwrap();
/// // The footer is lost.
/// let cut = bytes::Bytes::from(whole).slice(..60_000);
/// let found = Salvage::new(cut).schema_of(&Reader::open("testdata/trips.parquet")?)?.find()?;
/// let account = found.account();
/// println!("{} rows, {} bytes lost", account.rows_recovered(), account.bytes_lost());
/// if account.rows_recovered() > 0 {
///     found.write(WriteSink(Vec::new()))?;
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
#[must_use]
pub struct Salvage {
    input: SearchInput,
    keys: Option<Decryption>,
    /// The side footer, not parsed.
    side_footer: Option<Arc<dyn Source>>,
}

impl std::fmt::Debug for Salvage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Salvage")
            .field("group_rows", &self.input.group_rows)
            .finish_non_exhaustive()
    }
}

impl Salvage {
    /// Of this file.
    pub fn new(source: impl Source + 'static) -> Self {
        let source: Arc<dyn Source> = Arc::new(source);
        let (schema, side_footer, group_rows) = (None, None, None);
        let limits = Limits::default();
        let input = SearchInput { source, limits, schema, side_footer, group_rows };
        Self { input, keys: None, side_footer: None }
    }

    /// Caps on what the file may ask for.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.input.limits = limits;
        self
    }

    /// Gives the keys of an encrypted file. It is recovered by its footer or a [side
    /// footer](Salvage::side_footer) alone: each page is authenticated with a number of the file,
    /// which only these have.
    pub fn decryption(mut self, keys: Decryption) -> Self {
        self.keys = Some(keys);
        self
    }

    /// Gives the schema of the rows: that of another file, best of the same writer and of the same
    /// options. A footer with another schema is not trusted then.
    ///
    /// # Errors
    /// `Unsupported` if that file is encrypted: its schema does not help, see
    /// [`Salvage::decryption`].
    pub fn schema_of(mut self, reader: &Reader) -> Result<Self> {
        let footer = reader.metadata().footer();
        if footer.is_encrypted() || footer.signature() != crate::crypt::Signature::None {
            let text = "the pages of an encrypted file are read by a footer of that file";
            return Err(Error::unsupported("salvage by the schema of an encrypted file", text));
        }
        self.input.schema = Some(reader.metadata().index().to_file_meta_data()?);
        Ok(self)
    }

    /// Gives a side footer.
    ///
    /// # Errors
    /// As [`Reader::new`], if it is not encrypted; else as [`Salvage::find`].
    pub fn side_footer(mut self, source: impl Source + 'static) -> Result<Self> {
        let source: Arc<dyn Source> = Arc::new(source);
        if !encrypted::is_encrypted(&*source, &self.input.limits)? {
            let (footer, _) = open_footer(&*source, &self.input.limits, None)?;
            self.input.side_footer = Some(footer.index().to_file_meta_data()?);
        }
        self.side_footer = Some(source);
        Ok(self)
    }

    /// Says how many rows each row group has, but for the last one: where no footer is, that tells
    /// columns of one type apart.
    pub fn row_group_rows(mut self, rows: u64) -> Self {
        self.input.group_rows = Some(rows);
        self
    }

    /// Looks at the whole file, and decodes it.
    ///
    /// # Errors
    /// `Io`; `Limit(Memory)`; `Crypto` if the file is encrypted, and a key is missing or wrong;
    /// `Unsupported` if it is, and neither its footer nor a side footer can be read; `Malformed` if
    /// its footer cannot be read, and no schema was given.
    pub fn find(self) -> Result<Salvaged> {
        let (source, limits) = (self.input.source.clone(), self.input.limits.clone());
        let side = self.side_footer.as_ref();
        let is_encrypted = encrypted::is_encrypted(&*source, &limits)?
            || match side {
                Some(side) => encrypted::is_encrypted(&**side, &limits)?,
                None => false,
            };
        if is_encrypted {
            let keys = self.keys.as_ref().ok_or_else(encrypted::without_keys)?;
            let (account, reader) = encrypted::find(&source, side, keys, &limits)?;
            return Ok(Salvaged {
                source,
                limits,
                account,
                rows: RecoveredRows::Encrypted(Box::new(reader)),
            });
        }
        let (account, metadata) = Search::new(self.input)?.run()?;
        let rows = RecoveredRows::Plain(Box::new(metadata));
        Ok(Salvaged { source, limits, account, rows })
    }
}

/// The outcome of [`Salvage::find`].
#[must_use]
pub struct Salvaged {
    source: Arc<dyn Source>,
    limits: Limits,
    account: SalvageAccount,
    rows: RecoveredRows,
}

/// How the rows are read that were recovered.
enum RecoveredRows {
    /// By this footer.
    Plain(Box<FileMetaData>),
    Encrypted(Box<Reader>),
}

impl std::fmt::Debug for Salvaged {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Salvaged").field("account", &self.account).finish_non_exhaustive()
    }
}

impl Salvaged {
    /// The recovered and the lost parts.
    pub fn account(&self) -> &SalvageAccount {
        &self.account
    }

    /// A reader of the rows that were recovered, from the damaged file.
    ///
    /// # Errors
    /// As [`Reader::new`].
    pub fn reader(&self) -> Result<Reader> {
        let metadata = match &self.rows {
            RecoveredRows::Encrypted(reader) => return Ok((**reader).clone()),
            RecoveredRows::Plain(metadata) => metadata,
        };
        let described = Described::new(&self.source, metadata, &self.limits)?;
        Reader::with_limits(described.source, self.limits.clone())
    }

    /// A copy of the row groups that were recovered, as [`Salvaged::write`] has it: for another
    /// encryption, or other settings.
    ///
    /// # Errors
    /// As [`Reader::new`].
    pub fn rewrite(&self) -> Result<Rewrite> {
        Ok(Rewrite::new([self.reader()?]))
    }

    /// Writes a file of the row groups that were recovered, whose pages are copied. It is not
    /// encrypted.
    ///
    /// # Errors
    /// `Malformed` if there are none in a file that is not whole; as [`Rewrite::run`].
    pub fn write(&self, sink: impl Sink) -> Result<Rewritten> {
        if self.account.recovered.is_empty() && !self.account.is_complete() {
            return Err(Error::malformed(Spec::Container, "no row group is whole"));
        }
        self.rewrite()?.run(sink)
    }
}
