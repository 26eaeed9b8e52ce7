//! The modules of a file whose footer is encrypted with a key that is not known.
//!
//! Spec: Encryption.md, "Encrypted module serialization". Modules lie end to end, each with its
//! length in front; what belongs to columns that are not encrypted is plain metadata. Trap: which
//! module belongs to what, only the footer says, so that in AES_GCM_CTR_V1 nothing tells the body
//! of a page, which has no tag, from what has one.

use std::ops::Range;
use std::sync::Arc;

use super::memory::{self, MIN_READ, ReadAhead};
use super::metadata::{self, Context};
use super::module::{LENGTH_LEN, NONCE_LEN, TAG_LEN};
use super::span::{Cutter, Span, SpanKind, Spans};
use super::value::Value;
use crate::error::{Error, ErrorKind, Result};
use crate::format::{
    BloomFilterHeader, ColumnIndex, EncryptionAlgorithm, FileCryptoMetaData, OffsetIndex,
    PageHeader, PageType,
};
use crate::io::Source;
use crate::limits::Budget;
use crate::thrift::Thrift;
use crate::thrift::describe::Describe;

/// Bytes of what is not encrypted that are looked at: more than most headers and indexes have.
const PLAIN_LEN: u64 = 256 << 10;
/// Bytes of `FileCryptoMetaData` that are looked at.
const CRYPTO_LEN: u64 = 64 << 10;

/// Walks over modules and pages, from the magic number to the footer.
pub(super) struct SealedModules {
    source: Arc<dyn Source>,
    budget: Budget,
    range: Range<u64>,
    /// The bytes of the range.
    ahead: ReadAhead,
    /// Whether all modules have a tag; `None` if the algorithm is not known.
    has_tags: Option<bool>,
}

impl SealedModules {
    /// Those of `range`, in a file with this footer.
    ///
    /// # Errors
    /// `Io`.
    pub(super) fn new(
        source: &Arc<dyn Source>,
        budget: &Budget,
        range: Range<u64>,
        footer: &Range<u64>,
    ) -> Result<Self> {
        let bytes = source.read(footer.start..footer.end.min(footer.start + CRYPTO_LEN))?;
        let crypto = FileCryptoMetaData::from_thrift(&bytes).ok();
        let has_tags = crypto.and_then(|(crypto, _)| match crypto.encryption_algorithm {
            EncryptionAlgorithm::AesGcmV1(_) => Some(true),
            EncryptionAlgorithm::AesGcmCtrV1(_) => Some(false),
            _ => None,
        });
        let ahead = ReadAhead::new(source, budget, range.end);
        Ok(Self { source: source.clone(), budget: budget.clone(), range, ahead, has_tags })
    }

    fn next_span(&mut self) -> Result<Span> {
        let Range { start, end } = self.range;
        let left = end - start;
        let length = match self.ahead.bytes_from(start, LENGTH_LEN as u64) {
            Ok(length) => length,
            Err(error) if error.kind() == ErrorKind::Io => return Err(error),
            Err(error) => {
                self.range.start = end;
                return Ok(self.unparsed(start..end, error.message().to_owned()));
            }
        };
        let length = length.first_chunk().map(|bytes| u64::from(u32::from_le_bytes(*bytes)));
        let least = NONCE_LEN + if self.has_tags == Some(true) { TAG_LEN } else { 0 };
        let module_len = length.map_or(u64::MAX, |length| length + LENGTH_LEN as u64);
        if length.is_some_and(|length| length >= least as u64) && module_len <= left {
            self.range.start += module_len;
            return Ok(self.module(start..start + module_len));
        }
        if let Some(plain) = self.plain()? {
            self.range.start = plain.end();
            return Ok(plain);
        }
        self.range.start = end;
        let why = match length {
            Some(length) => format!(
                "neither a module, whose length would be {length} of the {left} bytes up to the \
                 footer, nor a page, a bloom filter or an index that is not encrypted: what \
                 follows, the footer says"
            ),
            None => format!("{left} bytes, too few for the length of a module"),
        };
        Ok(self.unparsed(start..end, why))
    }

    fn unparsed(&self, range: Range<u64>, why: String) -> Span {
        Span::in_file(&self.source, range, SpanKind::Unparsed, "unparsed").with_text(why)
    }

    /// The parts of a module, which are not read.
    fn module(&self, range: Range<u64>) -> Span {
        let span = Span::in_file(&self.source, range.clone(), SpanKind::Module, "module");
        let span = span.with_text("encrypted; what it is, the footer says, whose key is not known");
        let (source, has_tags) = (self.source.clone(), self.has_tags);
        span.with_children(move || {
            let (start, end) = (range.start, range.end);
            let nonce = start + LENGTH_LEN as u64;
            let sealed = nonce + NONCE_LEN as u64;
            let tag = if has_tags == Some(true) { end - TAG_LEN as u64 } else { end };
            let part = |range: Range<u64>, kind, name| {
                (!range.is_empty()).then(|| Span::in_file(&source, range, kind, name))
            };
            let ciphertext = part(sealed..tag, SpanKind::Ciphertext, "ciphertext");
            let ciphertext = ciphertext.map(|span| match has_tags {
                Some(true) => span,
                _ => {
                    span.with_text("the last 16 bytes are its tag, unless it is the body of a page")
                }
            });
            let length = part(start..nonce, SpanKind::Length, "length");
            let length = length.map(|span| {
                let span = span.with_value(Value::UInt(end - nonce));
                span.with_text("bytes of the module after this length")
            });
            let nonce = part(nonce..sealed, SpanKind::Nonce, "nonce");
            let parts = [length, nonce, ciphertext, part(tag..end, SpanKind::Tag, "tag")];
            Spans::list(parts.into_iter().flatten().collect())
        })
    }

    /// The page, the bloom filter or the index that begins here, if one does that is not encrypted.
    fn plain(&mut self) -> Result<Option<Span>> {
        let Range { start, end } = self.range;
        // Whatever is left of what was read before is tried first.
        let mut len = 1;
        loop {
            let head = match self.ahead.bytes_from(start, len) {
                Ok(head) => head,
                Err(error) if error.kind() == ErrorKind::Io => return Err(error),
                Err(_) => return Ok(None),
            };
            let found = head.len() as u64;
            let span = self.headed_by(&head);
            if span.is_some() || found >= PLAIN_LEN.min(end - start) {
                return Ok(span);
            }
            len = found.saturating_mul(4).clamp(MIN_READ, PLAIN_LEN);
        }
    }

    /// The page, the filter or the index that begins with `head`.
    fn headed_by(&self, head: &[u8]) -> Option<Span> {
        if let Ok((header, len)) = PageHeader::from_thrift(head) {
            let inner = match header.r#type {
                PageType::DataPage => header.data_page_header.is_some(),
                PageType::DataPageV2 => header.data_page_header_v2.is_some(),
                PageType::DictionaryPage => header.dictionary_page_header.is_some(),
                _ => false,
            };
            if let Some(body) = self.body(len, header.compressed_page_size.into(), inner) {
                let kinds = (SpanKind::OtherPage, SpanKind::PageHeader, SpanKind::PageBody);
                return Some(self.headed::<PageHeader>("page", kinds, body));
            }
        }
        if let Ok((header, len)) = BloomFilterHeader::from_thrift(head)
            && let Some(body) = self.body(len, header.num_bytes.into(), header.num_bytes > 0)
        {
            let kinds =
                (SpanKind::BloomFilter, SpanKind::BloomFilterHeader, SpanKind::BloomFilterBits);
            return Some(self.headed::<BloomFilterHeader>("bloom filter", kinds, body));
        }
        if let Ok((_, len)) = ColumnIndex::from_thrift(head) {
            let kind = SpanKind::ColumnIndex;
            return Some(self.index::<ColumnIndex>("column index", kind, len));
        }
        if let Ok((_, len)) = OffsetIndex::from_thrift(head) {
            let kind = SpanKind::OffsetIndex;
            return Some(self.index::<OffsetIndex>("offset index", kind, len));
        }
        None
    }

    /// Where a body of `len` bytes lies after a header of `header_len`, if there is room.
    fn body(&self, header_len: usize, len: i64, is_whole: bool) -> Option<Range<u64>> {
        let body = self.range.start.checked_add(header_len as u64)?;
        let end = body.checked_add(u64::try_from(len).ok()?)?;
        (is_whole && end <= self.range.end).then_some(body..end)
    }

    /// A header of type `T`, and a body.
    fn headed<T: Describe>(
        &self,
        name: &'static str,
        (kind, head, rest): (SpanKind, SpanKind, SpanKind),
        body: Range<u64>,
    ) -> Span {
        let start = self.range.start;
        let span = Span::in_file(&self.source, start..body.end, kind, name);
        let (source, budget) = (self.source.clone(), self.budget.clone());
        span.with_text(PLAIN).with_children(move || {
            let bytes = match memory::read(&*source, start..body.start, &budget) {
                Ok(bytes) => bytes,
                Err(error) => return unread(&source, start..body.end, error),
            };
            let mut cutter = Cutter::new(bytes, start);
            let header = metadata::cut::<T>(&mut cutter, head, "header", Context::default());
            let rest = (!body.is_empty())
                .then(|| Span::in_file(&source, body.clone(), rest, "body"))
                .map(|span| span.with_text("its type is known to the footer"));
            Spans::infallible([header].into_iter().chain(rest))
        })
    }

    fn index<T: Describe>(&self, name: &'static str, kind: SpanKind, len: usize) -> Span {
        let range = self.range.start..self.range.start + len as u64;
        let span = Span::in_file(&self.source, range.clone(), kind, name).with_text(PLAIN);
        let (source, budget) = (self.source.clone(), self.budget.clone());
        span.with_children(move || match memory::read(&*source, range.clone(), &budget) {
            Ok(bytes) => metadata::fields::<T>(Cutter::new(bytes, range.start), Context::default()),
            Err(error) => unread(&source, range.clone(), error),
        })
    }
}

/// In place of bytes that there is no memory for.
fn unread(source: &Arc<dyn Source>, range: Range<u64>, error: Error) -> Spans {
    if error.kind() == ErrorKind::Io {
        return Spans::failed(error);
    }
    let span = Span::in_file(source, range, SpanKind::Unparsed, "unparsed");
    Spans::list(vec![span.with_text(error.message().to_owned())])
}

/// The text of spans that are not encrypted in such a file.
const PLAIN: &str = "not encrypted; the footer, whose key is not known, says of what column it is";

impl Iterator for SealedModules {
    type Item = Result<Span>;

    fn next(&mut self) -> Option<Result<Span>> {
        if self.range.is_empty() {
            return None;
        }
        let span = self.next_span();
        if span.is_err() {
            self.range.start = self.range.end;
        }
        Some(span)
    }
}
