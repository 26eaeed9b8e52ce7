//! Reads the tail of a file, which is read first and says where the footer lies.
//!
//! Spec: README.md, "File format". [`Tail`] asks for enough bytes at the end of the file to hold a
//! usual footer, so that most files are opened with one request; if the footer is longer,
//! [`FooterTail`] asks for the rest.

use std::ops::Range;

use bytes::Bytes;

use super::footer::{Footer, SealedFooter};
use super::supplied::check_ranges;
use crate::crypt::Decryption;
use crate::error::{Error, LimitKind, Result, Spec};
use crate::format::tail as format_tail;
use crate::limits::Limits;

/// The first stage of opening a file; it wants the end of the file.
#[derive(Debug)]
pub struct Tail {
    file_len: u64,
    /// The head, unless the end includes it, and the end.
    need: Vec<Range<u64>>,
}

/// The stage that wants the whole footer, and holds the part that was fetched already.
#[derive(Debug)]
pub struct FooterTail {
    need: Option<Range<u64>>,
    /// The end of the file, the 8 bytes of the tail cut off.
    have: Bytes,
    footer_len: usize,
    is_encrypted: bool,
}

/// Bytes read first: footers of files with some dozens of columns and row groups fit.
const GUESS: u64 = 64 << 10;

/// A footer that is much longer than the first request.
const LONG_FOOTER_BYTES: u64 = 8 * GUESS;

/// Footer length and magic number.
const TAIL_LEN: usize = 8;

impl Tail {
    /// Makes the first stage for a file of `file_len` bytes.
    ///
    /// # Errors
    /// `Malformed(Container)` if a Parquet file cannot be that short.
    pub fn new(file_len: u64) -> Result<Self> {
        if file_len < 12 {
            return Err(Error::mismatch(
                Spec::Container,
                "length of the file in bytes",
                "at least 12",
                file_len,
            ));
        }
        let end = file_len.saturating_sub(GUESS)..file_len;
        let head = (end.start > 0).then_some(0..4);
        Ok(Self { file_len, need: head.into_iter().chain([end]).collect() })
    }

    /// The same without the magic number at the head, which costs a request of its own where bytes
    /// come from far away.
    ///
    /// # Errors
    /// As [`Tail::new`].
    pub(crate) fn without_head(file_len: u64) -> Result<Self> {
        let mut whole = Self::new(file_len)?;
        whole.need.retain(|need| need.end == file_len);
        Ok(whole)
    }

    /// For a file whose last `len` bytes are in memory already. The magic number at the head is
    /// checked only if they include it.
    ///
    /// # Errors
    /// As [`Tail::new`].
    #[cfg_attr(not(all(feature = "async", feature = "engine")), allow(dead_code))]
    pub(crate) fn at_end(file_len: u64, len: u64) -> Result<Self> {
        let whole = Self::new(file_len)?;
        let Some(start) = file_len.checked_sub(len) else {
            return Err(Error::usage(format_args!("{len} bytes of a file of {file_len}")));
        };
        Ok(Self { need: std::iter::once(start..file_len).collect(), ..whole })
    }

    /// The wanted bytes: the magic number at the head, and the end of the file, in one range if
    /// they lie close.
    pub fn needs(&self) -> &[Range<u64>] {
        &self.need
    }

    /// Takes the wanted bytes.
    ///
    /// # Errors
    /// `Usage` if their number is wrong, `Malformed(Container)` if they do not end as a Parquet
    /// file ends, `Limit(Footer)` if the footer is too long.
    pub fn supply(self, bytes: &[Bytes], limits: &Limits) -> Result<FooterTail> {
        check_ranges("Tail::supply", &self.need, bytes)?;
        let (Some(head), Some(end)) = (bytes.first(), bytes.last()) else {
            return Err(Error::usage("Tail::supply was given no bytes"));
        };
        let mut have = end.clone();
        let Some((_, &end)) = end.split_last_chunk::<TAIL_LEN>() else {
            return Err(Error::malformed(
                Spec::Container,
                "fewer bytes were supplied than the tail has",
            ));
        };
        let tail = format_tail::parse(&end, self.file_len)?;
        let has_head = self.need.first().is_some_and(|need| need.start == 0);
        if has_head && !head.starts_with(&end[4..]) {
            return Err(Error::mismatch(
                Spec::Container,
                "magic number at the head",
                end[4..].escape_ascii(),
                head[..4.min(head.len())].escape_ascii(),
            ));
        }
        have.truncate(have.len() - TAIL_LEN);
        if u64::from(tail.footer_len) > limits.footer_bytes {
            return Err(Error::limit(
                LimitKind::Footer,
                format_args!(
                    "a footer of {} bytes; Limits::footer_bytes allows {}: raise it to read on",
                    tail.footer_len, limits.footer_bytes
                ),
            ));
        }
        let footer_len = tail.footer_len as usize;
        // `parse` has compared the length with that of the file.
        let footer_end = self.file_len - TAIL_LEN as u64;
        let footer_start = footer_end - footer_len as u64;
        let have_start = footer_end - have.len() as u64;
        let mut need = (footer_start < have_start).then_some(footer_start..have_start);
        if footer_len as u64 > LONG_FOOTER_BYTES {
            // Reading the end again costs less than putting two pieces together.
            need = Some(footer_start..footer_end);
            have = Bytes::new();
        }
        Ok(FooterTail { need, have, footer_len, is_encrypted: tail.encrypted })
    }
}

impl FooterTail {
    /// The wanted bytes: the part of the footer that is missing, `None` if none is.
    pub fn needs(&self) -> Option<Range<u64>> {
        self.need.clone()
    }

    /// Takes the wanted bytes (none if none were wanted) and parses the footer.
    ///
    /// # Errors
    /// `Malformed` if the footer violates the format, `Crypto` if it is encrypted.
    pub fn supply(self, missing: Option<Bytes>, limits: &Limits) -> Result<Footer> {
        self.seal(missing, None)?.open(limits)
    }

    /// Like [`FooterTail::supply`], for a file that may be encrypted.
    ///
    /// # Errors
    /// As [`FooterTail::supply`]; `Crypto` if the key of the footer is missing or wrong, the footer
    /// was changed, or nothing is encrypted (see [`Decryption::with_plaintext_files`]).
    pub fn supply_encrypted(
        self,
        missing: Option<Bytes>,
        limits: &Limits,
        keys: &Decryption,
    ) -> Result<Footer> {
        self.seal(missing, Some(keys))?.open(limits)
    }

    /// The footer before its key is looked for.
    pub(crate) fn seal(
        self,
        missing: Option<Bytes>,
        keys: Option<&Decryption>,
    ) -> Result<SealedFooter> {
        let footer = match missing {
            None => {
                let footer = self.have.slice(self.have.len().saturating_sub(self.footer_len)..);
                // The metadata may be held for long: without the pages that the guess has brought
                // too.
                let most_is_other = self.have.len() / 2 > footer.len();
                if most_is_other { Bytes::copy_from_slice(&footer) } else { footer }
            }
            Some(whole) if self.have.is_empty() => whole,
            Some(front) => [&front[..], &self.have[..]].concat().into(),
        };
        if footer.len() != self.footer_len {
            return Err(Error::mismatch(
                Spec::Container,
                "bytes of the footer",
                self.footer_len,
                footer.len(),
            ));
        }
        SealedFooter::new(footer, self.is_encrypted, keys)
    }
}
