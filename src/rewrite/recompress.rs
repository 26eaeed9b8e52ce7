//! [`Recompressor`] decompresses the body of a page and compresses it with another codec or level,
//! without decoding levels or values.
//!
//! Spec: README.md, "Data Pages"; Compression.md. Trap: pages of version 2 store their levels
//! without a codec, and say themselves whether their values have one.

use crate::compress::{Compression, Compressor, Decompressor};
use crate::error::{Error, LimitKind, Result, Spec};
use crate::format::{CompressionCodec, PageHeader, PageType};
use crate::limits::Budget;
use crate::memory;
use crate::page::count;

/// Compresses the pages of a chunk anew.
pub(super) struct Recompressor {
    from: CompressionCodec,
    to: Compression,
    decompressor: Decompressor,
    compressor: Compressor,
    /// Maximum bytes of a page, uncompressed.
    page_bytes: u64,
    budget: Budget,
    plain: Vec<u8>,
    /// The new body.
    body: Vec<u8>,
}

impl Recompressor {
    /// For pages that are compressed with `from`.
    ///
    /// # Errors
    /// `FeatureDisabled` if this build lacks a codec, `Unsupported` if one is unknown, `Usage` if
    /// there is no such level.
    pub(super) fn new(
        from: CompressionCodec,
        to: Compression,
        page_bytes: u64,
        budget: &Budget,
    ) -> Result<Self> {
        Ok(Self {
            from,
            to,
            decompressor: Decompressor::new(from)?,
            compressor: Compressor::new(to)?,
            page_bytes,
            budget: budget.clone(),
            plain: Vec::new(),
            body: Vec::new(),
        })
    }

    /// The new codec.
    pub(super) fn codec(&self) -> CompressionCodec {
        self.to.codec()
    }

    /// The new body of a page, in plain text; its header says how its values are stored then. The
    /// size and checksum of the body are left to the caller.
    ///
    /// # Errors
    /// `Malformed` if the body is not what its header says, `Limit` if it is too large.
    pub(super) fn body(&mut self, header: &mut PageHeader, body: &[u8]) -> Result<&[u8]> {
        let uncompressed = count(header.uncompressed_page_size, "uncompressed_page_size")?;
        if uncompressed as u64 > self.page_bytes {
            return Err(Error::limit(
                LimitKind::Page,
                format_args!(
                    "a page of {uncompressed} bytes; Limits::page_bytes allows {}: raise it to \
                     read on",
                    self.page_bytes
                ),
            ));
        }
        let working = self.decompressor.working_bytes(body);
        // In plain text, and compressed anew, which may take a little more.
        let bytes = uncompressed.saturating_mul(2).saturating_add(uncompressed / 4);
        let _memory = self.budget.take_for("a page", bytes.saturating_add(working))?;
        self.body.clear();
        if header.r#type != PageType::DataPageV2 {
            self.decompress(body, uncompressed)?;
            self.compressor.compress(&self.plain, &mut self.body)?;
            return Ok(&self.body);
        }
        let inner = header.data_page_header_v2.as_mut().ok_or_else(|| {
            Error::malformed(Spec::Metadata("PageHeader"), "data_page_header_v2 is missing")
        })?;
        let def = count(inner.definition_levels_byte_length, "definition_levels_byte_length")?;
        let rep = count(inner.repetition_levels_byte_length, "repetition_levels_byte_length")?;
        let levels_len = def.saturating_add(rep);
        let expected = uncompressed.checked_sub(levels_len);
        let parts = body.split_at_checked(levels_len).zip(expected);
        let Some(((levels, values), values_len)) = parts else {
            let expected = format_args!("at most the {} of the page", body.len().min(uncompressed));
            return Err(Error::mismatch(Spec::Pages, "bytes of levels", expected, levels_len));
        };
        let is_compressed = inner.is_compressed.unwrap_or(true) && values_len > 0;
        self.body.extend_from_slice(levels);
        match is_compressed {
            true => self.decompress(values, values_len)?,
            // Nothing, or a frame of nothing.
            false if values_len == 0 => self.plain.clear(),
            false => self.keep(values, values_len)?,
        }
        self.compressor.compress(&self.plain, &mut self.body)?;
        let is_smaller = self.body.len() - levels_len < values_len;
        let is_compressed = is_smaller && self.to != Compression::Uncompressed;
        inner.is_compressed = Some(is_compressed);
        if !is_compressed {
            self.body.truncate(levels_len);
            self.body.extend_from_slice(&self.plain);
        }
        Ok(&self.body)
    }

    fn decompress(&mut self, body: &[u8], len: usize) -> Result<()> {
        match self.from {
            CompressionCodec::Uncompressed => self.keep(body, len),
            _ => self.decompressor.decompress(body, len, &mut self.plain),
        }
    }

    /// Takes bytes that are stored as they are.
    fn keep(&mut self, body: &[u8], len: usize) -> Result<()> {
        if body.len() != len {
            return Err(Error::mismatch(Spec::Pages, "uncompressed page, bytes", len, body.len()));
        }
        self.plain.clear();
        memory::append(&mut self.plain, body)
    }
}
