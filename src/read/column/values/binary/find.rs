//! [`SpanDecoder`] finds where the byte strings of a page lie, in any encoding.

use bytes::Bytes;

use super::layout::Payload;
use crate::encoding::dictionary::Indices;
use crate::encoding::{ValueSpan, delta_binary, delta_bytes, delta_length, plain};
use crate::error::{Error, Result, Spec};
use crate::format::Encoding;
use crate::memory;
use crate::read::column::values::reader::{Count, illegal, no_page};
use crate::schema::Physical;
use crate::trusted::Place;

/// Finds the byte strings of a page.
pub(in crate::read::column) struct SpanDecoder {
    pub(super) physical: Physical,
    carries_prefix: bool,
    /// Maximum bytes of a value that must be put together.
    longest: usize,
    pub(super) decoder: StringDecoder,
}

pub(super) enum StringDecoder {
    Nothing,
    Dictionary(Indices),
    Plain(plain::ByteArrays),
    DeltaLength(delta_length::Decoder),
    DeltaBytes(Box<delta_bytes::Decoder>),
    /// FIXED_LEN_BYTE_ARRAY read as strings of any length.
    Fixed {
        bytes: Bytes,
        width: usize,
        next: usize,
        left: usize,
    },
}

impl SpanDecoder {
    pub(in crate::read::column) fn new(physical: Physical, carries_prefix: bool) -> Self {
        let (longest, decoder) = (usize::MAX, StringDecoder::Nothing);
        Self { physical, carries_prefix, longest, decoder }
    }

    /// The same; see [`delta_bytes::Decoder::with_longest`].
    pub(in crate::read::column) fn with_longest(mut self, longest: usize) -> Self {
        self.longest = longest;
        self
    }

    pub(in crate::read::column) fn set_page(
        &mut self,
        encoding: Encoding,
        bytes: Bytes,
        count: Count,
    ) -> Result<()> {
        let text = self.physical == Physical::ByteArray;
        self.decoder = match encoding {
            Encoding::RleDictionary | Encoding::PlainDictionary => {
                StringDecoder::Dictionary(Indices::new(bytes, count.max())?)
            }
            Encoding::Plain => match self.physical {
                Physical::FixedLenByteArray(width) => {
                    let left = match count {
                        Count::Exactly(n) => n,
                        Count::AtMost(n) => n.min(bytes.len().checked_div(width).unwrap_or(n)),
                    };
                    if left.checked_mul(width).is_none_or(|len| len > bytes.len()) {
                        return Err(Error::mismatch(
                            Spec::Encodings("PLAIN"),
                            "bytes of the values",
                            format_args!("{left} times {width}"),
                            bytes.len(),
                        ));
                    }
                    StringDecoder::Fixed { bytes, width, next: 0, left }
                }
                _ => {
                    let n = match count {
                        Count::Exactly(n) => n,
                        Count::AtMost(n) => n.min(bytes.len() / size_of::<u32>()),
                    };
                    StringDecoder::Plain(plain::ByteArrays::new(bytes, n)?)
                }
            },
            Encoding::DeltaLengthByteArray if text => {
                let n =
                    count.settle(delta_binary::stated_len(&bytes)?, "DELTA_LENGTH_BYTE_ARRAY")?;
                StringDecoder::DeltaLength(delta_length::Decoder::new(bytes, n)?)
            }
            Encoding::DeltaByteArray => {
                let n = count.settle(delta_binary::stated_len(&bytes)?, "DELTA_BYTE_ARRAY")?;
                let previous = match &self.decoder {
                    StringDecoder::DeltaBytes(last) if self.carries_prefix => {
                        Some(last.last_value().to_vec())
                    }
                    _ => None,
                };
                let decoder = delta_bytes::Decoder::new(bytes, n, previous)?;
                StringDecoder::DeltaBytes(Box::new(decoder.with_longest(self.longest)))
            }
            other => return Err(illegal(other, self.physical)),
        };
        Ok(())
    }

    /// The indices, if the page holds some.
    pub(in crate::read::column) fn indices(&mut self) -> Option<&mut Indices> {
        match &mut self.decoder {
            StringDecoder::Dictionary(indices) => Some(indices),
            _ => None,
        }
    }

    /// Appends where the next `n` values lie in [`SpanDecoder::buffer`], or those of the next block
    /// if these are fewer, but at least one. Not for dictionary pages. A decoder that must put
    /// values together takes at most `max_bytes` bytes for them.
    pub(in crate::read::column) fn read_spans(
        &mut self,
        n: usize,
        max_bytes: usize,
        out: &mut Vec<ValueSpan>,
    ) -> Result<()> {
        match &mut self.decoder {
            StringDecoder::Plain(decoder) => decoder.read_spans(n, out),
            StringDecoder::DeltaLength(decoder) => decoder.read_spans(n, out),
            StringDecoder::DeltaBytes(decoder) => {
                memory::extend(out, decoder.read_block(n, max_bytes)?.spans())
            }
            StringDecoder::Fixed { width, next, left, .. } => {
                *left = left.checked_sub(n).ok_or_else(no_page)?;
                let len = u32::try_from(*width).map_err(|_| no_page())?;
                memory::room(out, n)?;
                for _ in 0..n {
                    let start = u32::try_from(*next).map_err(|_| no_page())?;
                    out.push(ValueSpan { start, len });
                    *next += *width;
                }
                Ok(())
            }
            StringDecoder::Dictionary(_) | StringDecoder::Nothing => Err(no_page()),
        }
    }

    /// The buffer that the spans refer to, until the next call that reads.
    pub(in crate::read::column) fn buffer(&self) -> Result<&[u8]> {
        self.payload().map(Payload::bytes)
    }

    pub(super) fn payload(&self) -> Result<Payload<'_>> {
        Ok(match &self.decoder {
            StringDecoder::Plain(decoder) => Payload::Shared(decoder.buffer()),
            StringDecoder::DeltaLength(decoder) => Payload::Shared(decoder.buffer()),
            StringDecoder::Fixed { bytes, .. } => Payload::Shared(bytes),
            StringDecoder::DeltaBytes(decoder) => Payload::Borrowed(decoder.buffer()),
            StringDecoder::Dictionary(_) | StringDecoder::Nothing => return Err(no_page()),
        })
    }

    /// How the values lie in the buffer.
    pub(super) fn place(&self) -> Place {
        match self.decoder {
            StringDecoder::Plain(_) => Place::BehindLengths,
            _ => Place::EndToEnd,
        }
    }

    /// Drops the page, unless the next one may continue from its last value.
    pub(in crate::read::column) fn leave_page(&mut self) {
        if !self.carries_prefix {
            self.decoder = StringDecoder::Nothing;
        }
    }

    pub(in crate::read::column) fn skip(&mut self, n: usize) -> Result<()> {
        match &mut self.decoder {
            StringDecoder::Plain(decoder) => decoder.skip(n),
            StringDecoder::DeltaLength(decoder) => decoder.skip(n),
            StringDecoder::DeltaBytes(decoder) => decoder.skip(n),
            StringDecoder::Dictionary(indices) => indices.skip(n),
            StringDecoder::Fixed { width, next, left, .. } => {
                *left = left.checked_sub(n).ok_or_else(no_page)?;
                *next += n * *width;
                Ok(())
            }
            StringDecoder::Nothing if n == 0 => Ok(()),
            StringDecoder::Nothing => Err(no_page()),
        }
    }
}
