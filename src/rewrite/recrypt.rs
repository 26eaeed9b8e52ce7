//! [`recrypt`] copies a file page by page, from one protection to another.
//!
//! Spec: Encryption.md.

use super::files::Rewrite;
use crate::crypt::Encryption;
use crate::error::Result;
use crate::io::Sink;
use crate::reader::Reader;
use crate::schema::Projection;

/// Describes what [`recrypt`] has written.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recrypted {
    /// Number of rows of the file, by its row groups.
    pub rows: u64,
    /// Number of row groups.
    pub row_groups: usize,
    /// Number of pages, dictionary pages included.
    pub pages: u64,
    /// Bytes of the new file.
    pub bytes: u64,
}

/// Copies the file of `reader` to `sink` with another protection: encrypted as `encryption` says,
/// or not encrypted. The reader has the keys of the file, if it is encrypted; its projection, rows
/// and filter are ignored.
///
/// Pages stay compressed as they are; only their encryption, checksums and offsets change. Page
/// indexes and bloom filters are copied, and none are made. The rest of the footer stays: the
/// schema, row groups, statistics, sorting columns, key-values, unknown fields. `created_by` stays
/// too, because readers work around the faults of old writers by it.
///
/// One column chunk at a time is held in memory, and a place for each page, within
/// [`Limits::memory_bytes`](crate::Limits::memory_bytes).
///
/// ```
/// # fn main() -> marquetry::Result<()> {
/// # if !cfg!(feature = "encryption") { return Ok(()); }
/// use marquetry::Reader;
/// use marquetry::crypt::{Decryption, Encryption, Key};
/// use marquetry::io::WriteSink;
/// use marquetry::rewrite::recrypt;
///
/// let key = Key::new(b"0123456789012345")?;
/// let plain = Reader::open("testdata/trips.parquet")?;
/// let mut encrypted = Vec::new();
/// recrypt(&plain, WriteSink(&mut encrypted), Some(&Encryption::new(key.clone())))?;
///
/// let keys = Decryption::new().with_footer_key(key);
/// let reader = Reader::with_keys(bytes::Bytes::from(encrypted), Default::default(), &keys)?;
/// assert_eq!(reader.rows()?, plain.rows()?);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// `Crypto` if a key is missing, something is not authentic, the signature of a plaintext footer
/// was not verified, or there are too many row groups, columns or pages for encryption; `Malformed`
/// if the file violates the format, as far as it is read, or column chunks share bytes
/// ([`Reader::shared_bytes`] allows it); `Usage` if a key is given for a column that does not
/// exist; `Limit(Memory)`, `Io`.
pub fn recrypt(
    reader: &Reader,
    sink: impl Sink,
    encryption: Option<&Encryption>,
) -> Result<Recrypted> {
    let whole = {
        let mut options = reader.read_options().clone();
        options.projection = Projection::All;
        (options.row_groups, options.selection, options.filter) = (None, None, None);
        (options.not_deleted, options.offset, options.limit) = (None, 0, None);
        reader.clone().options(options)
    };
    let mut rewrite = Rewrite::new([whole]).verify_checksums(true);
    if let Some(encryption) = encryption {
        rewrite = rewrite.encryption(encryption.clone());
    }
    let done = rewrite.splice(sink).map_err(|e| reader.name(e))?;
    let (rows, row_groups, pages, bytes) = (done.rows, done.row_groups, done.pages, done.bytes);
    Ok(Recrypted { rows, row_groups, pages, bytes })
}
