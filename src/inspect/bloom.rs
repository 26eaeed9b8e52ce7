//! A bloom filter as spans: its header, and its blocks.
//!
//! Spec: BloomFilter.md. Trap: the footer of an older file does not say how long a filter is; its
//! header does.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use super::metadata::{self, Context, struct_len};
use super::module::{self, module_len};
use super::page::ChunkContext;
use super::span::{Cutter, Span, SpanKind, Spans};
use crate::crypt::Module;
use crate::error::Result;
use crate::format::BloomFilterHeader;
use crate::thrift::{Read, ThriftReader};

/// Bytes of a block.
const BLOCK: usize = 32;
/// No header is longer.
const MAX_HEADER: u64 = 1024;

/// How many bytes the filter at `start` takes, at most `max`.
///
/// # Errors
/// `Io`.
pub(super) fn stated_len(context: &ChunkContext, start: u64, max: u64) -> Result<u64> {
    let head = context.source.read(start..start + max.min(MAX_HEADER))?;
    let mut reader = ThriftReader::new(&head);
    let header = BloomFilterHeader::read(&mut reader);
    let bits = header.ok().and_then(|header| u64::try_from(header.num_bytes).ok());
    let len = bits.and_then(|bits| bits.checked_add(reader.position() as u64));
    Ok(len.filter(|len| *len <= max).unwrap_or(max))
}

/// Describes the filter in `range`.
pub(super) fn describe(context: &Arc<ChunkContext>, range: Range<u64>) -> Span {
    let span = context.span(range, SpanKind::BloomFilter, "bloom filter");
    let of = context.clone();
    context.with_parts(span, move |cutter| Spans::list(parts(&of, cutter)))
}

fn parts(context: &ChunkContext, mut cutter: Cutter) -> Vec<Span> {
    let (kind, name) = (SpanKind::BloomFilterHeader, "bloom filter header");
    if !context.is_encrypted {
        let len = struct_len(cutter.rest());
        let is_whole = len < cutter.rest().len();
        let header =
            metadata::cut::<BloomFilterHeader>(&mut cutter, kind, name, Context::default());
        let bits = cutter.cut_rest(SpanKind::BloomFilterBits, "bits").filter(|_| is_whole);
        return [Some(header), bits.map(describe_bits)].into_iter().flatten().collect();
    }
    let len = module_len(cutter.rest());
    let header = cutter.cut(len, kind, name);
    let header =
        module::describe(header, true, context.opener(Module::BloomFilterHeader), move |plain| {
            metadata::decrypted::<BloomFilterHeader>(plain, kind, name, Context::default())
        });
    let bits = cutter.cut_rest(SpanKind::BloomFilterBits, "bits").map(|span| {
        module::describe(span, true, context.opener(Module::BloomFilterBitset), |plain: Bytes| {
            let len = plain.len();
            let span = Cutter::new(plain, 0).cut(len, SpanKind::BloomFilterBits, "bits");
            Spans::list(vec![describe_bits(span)])
        })
    });
    [Some(header), bits].into_iter().flatten().collect()
}

fn describe_bits(span: Span) -> Span {
    let bytes = span.in_memory();
    let set: u64 = bytes.iter().map(|byte| u64::from(byte.count_ones())).sum();
    let of = bytes.len() as u64 * 8;
    let text = format!("{} blocks; {set} of {of} bits are set", bytes.len() / BLOCK);
    span.with_text(text).with_parts(|mut cutter| {
        let mut next = 0;
        Spans::infallible(std::iter::from_fn(move || {
            if cutter.is_empty() {
                return None;
            }
            let span = cutter.cut(BLOCK, SpanKind::BloomFilterBlock, format!("block {next}"));
            next += 1;
            let set: u32 = span.in_memory().iter().map(|byte| byte.count_ones()).sum();
            Some(span.with_text(format!("{set} of 256 bits are set")))
        }))
    })
}
