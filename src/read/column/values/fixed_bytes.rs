//! [`FixedBytesDecoder`] decodes byte strings of one length, from any encoding that has them.

use bytes::Bytes;

use super::binary::SpanDecoder;
use super::reader::{Count, illegal, no_page};
use crate::encoding::{ValueSpan, plain, split};
use crate::error::{Error, Result, Spec};
use crate::format::Encoding;
use crate::memory;
use crate::schema::Physical;

/// Decodes byte strings of one length.
pub(super) struct FixedBytesDecoder {
    width: usize,
    carries_prefix: bool,
    /// Maximum bytes of a value that must be put together.
    longest: usize,
    decoder: PageBytes,
}

enum PageBytes {
    Nothing,
    Plain(plain::FixedBytes),
    Split(split::Decoder),
    Delta(Box<SpanDecoder>, Vec<ValueSpan>),
}

impl FixedBytesDecoder {
    pub(super) fn new(width: usize, carries_prefix: bool) -> Self {
        Self { width, carries_prefix, longest: usize::MAX, decoder: PageBytes::Nothing }
    }

    /// The same; see [`SpanDecoder::with_longest`].
    pub(super) fn with_longest(mut self, longest: usize) -> Self {
        self.longest = longest;
        self
    }

    fn physical(&self) -> Physical {
        if self.width == 12 { Physical::Int96 } else { Physical::FixedLenByteArray(self.width) }
    }

    pub(super) fn set_page(
        &mut self,
        encoding: Encoding,
        bytes: Bytes,
        count: Count,
    ) -> Result<()> {
        let stated = bytes.len().checked_div(self.width).unwrap_or_else(|| count.max());
        self.decoder = match encoding {
            Encoding::Plain => {
                let n = match count {
                    Count::Exactly(n) => n,
                    Count::AtMost(n) => n.min(stated),
                };
                PageBytes::Plain(plain::FixedBytes::new(bytes, self.width, n)?)
            }
            Encoding::ByteStreamSplit => {
                let n = count.settle(stated, "BYTE_STREAM_SPLIT")?;
                PageBytes::Split(split::Decoder::new(bytes, self.width, n)?)
            }
            Encoding::DeltaByteArray => {
                // Kept, because some writers continue from the last value of the page before.
                let mut spans = match std::mem::replace(&mut self.decoder, PageBytes::Nothing) {
                    PageBytes::Delta(spans, _) => spans,
                    _ => {
                        let spans = SpanDecoder::new(Physical::ByteArray, self.carries_prefix);
                        Box::new(spans.with_longest(self.longest))
                    }
                };
                spans.set_page(encoding, bytes, count)?;
                PageBytes::Delta(spans, Vec::new())
            }
            other => return Err(illegal(other, self.physical())),
        };
        Ok(())
    }

    /// Appends the bytes of the next `n` values.
    pub(super) fn read(&mut self, n: usize, max_bytes: usize, out: &mut Vec<u8>) -> Result<()> {
        match &mut self.decoder {
            PageBytes::Plain(decoder) => decoder.read(n, out),
            PageBytes::Split(decoder) => decoder.read(n, out),
            PageBytes::Delta(decoder, spans) => {
                let mut left = n;
                while left > 0 {
                    spans.clear();
                    decoder.read_spans(left, max_bytes, spans)?;
                    let source = decoder.buffer()?;
                    for span in &*spans {
                        let value = span.slice(source);
                        if value.len() != self.width {
                            return Err(Error::mismatch(
                                Spec::Encodings("DELTA_BYTE_ARRAY"),
                                "bytes of a FIXED_LEN_BYTE_ARRAY",
                                self.width,
                                value.len(),
                            ));
                        }
                        memory::append(out, value)?;
                    }
                    left -= spans.len();
                }
                Ok(())
            }
            PageBytes::Nothing => Err(no_page()),
        }
    }

    /// Drops the page, unless the next one may continue from its last value.
    pub(super) fn leave_page(&mut self) {
        if !self.carries_prefix {
            self.decoder = PageBytes::Nothing;
        }
    }

    pub(super) fn skip(&mut self, n: usize) -> Result<()> {
        match &mut self.decoder {
            PageBytes::Plain(decoder) => decoder.skip(n),
            PageBytes::Split(decoder) => decoder.skip(n),
            PageBytes::Delta(decoder, _) => decoder.skip(n),
            PageBytes::Nothing if n == 0 => Ok(()),
            PageBytes::Nothing => Err(no_page()),
        }
    }
}
