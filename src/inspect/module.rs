//! The modules of encrypted files as spans: what frames them, and what they decrypt to.
//!
//! Spec: Encryption.md, "Encrypted module serialization". Trap: AES_GCM_CTR_V1 gives the bodies of
//! pages no tag.

use bytes::Bytes;

use super::levels::length;
use super::memory::holding;
use super::span::{Cutter, Span, SpanKind, Spans};
use crate::crypt::{ChunkDecryptor, Module};
use crate::error::Result;
use crate::limits::Budget;

pub(super) const NONCE_LEN: usize = 12;
pub(super) const TAG_LEN: usize = 16;
/// Bytes of the length in front of a module.
pub(super) const LENGTH_LEN: usize = 4;

/// The parts of a module.
pub(super) fn parts(mut cutter: Cutter, has_tag: bool) -> Spans {
    let mut out = vec![
        length(&mut cutter).with_text("bytes of the module after this length"),
        cutter.cut(NONCE_LEN, SpanKind::Nonce, "nonce"),
    ];
    let tag = if has_tag { TAG_LEN } else { 0 };
    let sealed = cutter.rest().len().saturating_sub(tag);
    out.push(cutter.cut(sealed, SpanKind::Ciphertext, "ciphertext"));
    out.extend(cutter.cut_rest(SpanKind::Tag, "tag"));
    // What is cut short has fewer parts.
    out.retain(|span| span.length > 0);
    Spans::list(out)
}

/// The module at the start of `bytes`: how many of them it takes, no more than there are.
pub(super) fn module_len(bytes: &[u8]) -> usize {
    ChunkDecryptor::module_len(bytes).unwrap_or(bytes.len())
}

/// Describes a module whose bytes `span` is; `inside` says what it decrypts to.
pub(super) fn describe(
    span: Span,
    has_tag: bool,
    opener: Option<Opener>,
    inside: impl Fn(Bytes) -> Spans + Send + Sync + 'static,
) -> Span {
    let sealed = span.in_memory();
    let span = span.with_parts(move |cutter| parts(cutter, has_tag));
    let Some(opener) = opener else {
        return match span.text {
            None => span.with_text("encrypted; its key is not known"),
            Some(_) => span,
        };
    };
    span.with_decrypted(move || match opener.open(&sealed) {
        Ok(plain) => inside(plain),
        Err(error) => no_bytes(&error),
    })
}

/// In place of bytes that do not come out.
pub(super) fn no_bytes(error: &crate::Error) -> Spans {
    let span = Cutter::new(Bytes::new(), 0).cut(0, SpanKind::Unparsed, "unparsed");
    Spans::list(vec![span.with_text(error.message().to_owned())])
}

/// Opens one module.
#[derive(Clone)]
pub(super) struct Opener {
    pub(super) decryptor: ChunkDecryptor,
    pub(super) module: Module,
    pub(super) budget: Budget,
}

impl Opener {
    /// # Errors
    /// `Crypto` if it is not authentic, `Limit(Memory)`.
    pub(super) fn open(&self, sealed: &[u8]) -> Result<Bytes> {
        let memory = self.budget.take_for("a decrypted module", sealed.len())?;
        let mut out = Vec::new();
        self.decryptor.open_into(self.module, sealed, &mut out)?;
        Ok(holding(memory, out.into()))
    }
}
