//! [`find`] recovers the row groups of a damaged file that is encrypted, by a footer of it.
//!
//! Spec: Encryption.md, "Additional Authenticated Data". Each page is authenticated with a number
//! of its file (`aad_file_unique`), which stands in the footer alone, so that nothing can be read
//! without the footer or a side footer of the same file: the schema of another file does not help.

use std::ops::Range;
use std::sync::Arc;

use super::account::{FoundBy, LostPart, RecoveredRowGroup, SalvageAccount};
use super::overlay::WithFooter;
use crate::check::{ChunkVerdict, ChunkVerifier};
use crate::crypt::Decryption;
use crate::error::{Error, ErrorKind, Result};
use crate::format::tail::MAGIC_ENCRYPTED;
use crate::io::{Source, open_footer, read_exactly};
use crate::limits::Limits;
use crate::read::{Footer, chunk_range};
use crate::reader::Reader;

/// Bytes of the magic number.
const MAGIC_LEN: u64 = 4;

/// Whether a file begins as an encrypted one, or has a footer that says that its columns are.
///
/// # Errors
/// `Io`.
pub(super) fn is_encrypted(source: &dyn Source, limits: &Limits) -> Result<bool> {
    if source.len()? >= MAGIC_LEN && source.read(0..MAGIC_LEN)?[..] == MAGIC_ENCRYPTED {
        return Ok(true);
    }
    match open_footer(source, limits, None) {
        Ok((footer, _)) => Ok(footer.index().head().encryption_algorithm.is_some()),
        Err(error) if error.kind() == ErrorKind::Io => Err(error),
        Err(_) => Ok(false),
    }
}

/// The error for files that need keys.
pub(super) fn without_keys() -> Error {
    Error::crypto(
        "the file is encrypted, and its pages cannot be looked at: give the keys \
         (Salvage::decryption; marq: --footer-key)",
    )
}

/// A file by one of its footers.
struct ByFooter {
    by: FoundBy,
    reader: Reader,
}

/// The row groups that are whole, with a reader of them.
///
/// # Errors
/// `Io`; `Crypto` if a key is missing or wrong; `Unsupported` if no footer can be read.
pub(super) fn find(
    source: &Arc<dyn Source>,
    side_footer: Option<&Arc<dyn Source>>,
    keys: &Decryption,
    limits: &Limits,
) -> Result<(SalvageAccount, Reader)> {
    let file_len = source.len()?;
    let mut account = SalvageAccount { file_bytes: file_len, ..SalvageAccount::default() };
    let ByFooter { by, reader } =
        open(source, side_footer, (keys, limits), file_len, &mut account.notes)?;
    let footer = reader.metadata().footer();
    account.columns = footer.schema().leaves_len();
    let verifier =
        ChunkVerifier::new(reader.source().clone(), footer.clone(), reader.file_len(), limits);
    let (mut whole, mut end) = (Vec::new(), MAGIC_LEN);
    for number in 0..reader.metadata().row_groups() {
        let rows = footer.row_group_rows(number)?;
        if rows == 0 {
            continue;
        }
        let bytes = extent(footer, file_len, number);
        let bytes = bytes.as_ref().map_err(|error| error.message().to_string()).cloned();
        let verdicts = match &bytes {
            Ok(bytes) if bytes.end <= file_len => verifier.row_group(number)?,
            _ => Vec::new(),
        };
        let within = bytes.clone().unwrap_or(file_len..file_len);
        let within = within.start.min(file_len)..within.end.min(file_len);
        end = end.max(within.end);
        if !verdicts.is_empty() && verdicts.iter().all(ChunkVerdict::is_true) {
            account.recovered.push(RecoveredRowGroup { rows, bytes: within, found_by: by });
            whole.push(number);
            continue;
        }
        let reason = bytes.err();
        account.lost.push(lost(footer, number, rows, within, &verdicts, reason)?);
    }
    if by == FoundBy::SideFooter && end < file_len {
        account.lost.push(LostPart {
            bytes: end..file_len,
            row_group: None,
            rows: None,
            columns: Vec::new(),
            page: None,
            offset: Some(end),
            reason: "the side footer was written before these bytes".to_owned(),
        });
    }
    Ok((account, reader.row_groups(whole)?))
}

/// Opens the file by its own footer, or by the side footer.
fn open(
    source: &Arc<dyn Source>,
    side_footer: Option<&Arc<dyn Source>>,
    (keys, limits): (&Decryption, &Limits),
    file_len: u64,
    notes: &mut Vec<String>,
) -> Result<ByFooter> {
    let with_tail = |tail| {
        let described = WithFooter::with_tail(source.clone(), file_len, tail);
        Reader::with_keys(described, limits.clone(), keys)
    };
    match with_tail(bytes::Bytes::new()) {
        Ok(reader) => return Ok(ByFooter { by: FoundBy::Footer, reader }),
        Err(error) if error.kind() == ErrorKind::Io => return Err(error),
        // The key of a footer that is whole is wrong, as far as anything tells.
        Err(error) if error.kind() == ErrorKind::Crypto && side_footer.is_none() => {
            return Err(error);
        }
        Err(error) => notes.push(format!("the footer cannot be read: {}", error.message())),
    }
    let Some(side) = side_footer else {
        return Err(Error::unsupported(
            "salvage of an encrypted file without its footer",
            "each page is authenticated with a number of the file (aad_file_unique), which was in \
             the footer; only a side footer of the same file has it (Salvage::side_footer; marq: \
             --side-footer)",
        ));
    };
    let side_len = side.len()?;
    let tail = read_exactly(&**side, MAGIC_LEN.min(side_len)..side_len)?;
    Ok(ByFooter { by: FoundBy::SideFooter, reader: with_tail(tail)? })
}

/// The bytes from the first page of a row group to its last.
fn extent(footer: &Footer, file_len: u64, row_group: usize) -> Result<Range<u64>> {
    let (mut start, mut end) = (u64::MAX, 0);
    for leaf in 0..footer.schema().leaves_len() {
        // With the key of the column, where its metadata are encrypted.
        footer.column_chunk(row_group, leaf)?;
        let chunk = footer.column_chunk_ref(row_group, leaf)?;
        let range = chunk_range(footer, file_len, row_group, leaf, &chunk)?;
        (start, end) = (start.min(range.start), end.max(range.end));
    }
    Ok(start.min(end)..end)
}

fn lost(
    footer: &Footer,
    number: usize,
    rows: u64,
    bytes: Range<u64>,
    verdicts: &[ChunkVerdict],
    reason: Option<String>,
) -> Result<LostPart> {
    let bad: Vec<&ChunkVerdict> = verdicts.iter().filter(|verdict| !verdict.is_true()).collect();
    let finding = bad.iter().find_map(|verdict| verdict.finding.as_ref());
    let columns = bad.iter().map(|verdict| Ok(footer.schema().leaf(verdict.leaf)?.path.dotted()));
    let otherwise = || match verdicts.is_empty() {
        true => "its column chunks are not within the file".to_owned(),
        false => "not all values can be decoded".to_owned(),
    };
    Ok(LostPart {
        bytes,
        row_group: Some(number),
        rows: Some(rows),
        columns: columns.collect::<Result<_>>()?,
        page: finding.and_then(|finding| finding.at.page),
        offset: finding.and_then(|finding| finding.at.offset),
        reason: reason
            .or_else(|| finding.map(|finding| finding.message.clone()))
            .unwrap_or_else(otherwise),
    })
}
