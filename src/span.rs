//! [`ValueSpan`] and [`EndToEnd`] say where byte strings lie.

use bytes::Bytes;

/// A byte string in the buffer of its decoder.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ValueSpan {
    /// Offset of the first byte.
    pub start: u32,
    /// Number of bytes.
    pub len: u32,
}

impl ValueSpan {
    /// The bytes in `buffer`; none if they are not there.
    #[inline]
    pub(crate) fn slice(self, buffer: &[u8]) -> &[u8] {
        let (start, len) = (self.start as usize, self.len as usize);
        // Bytes that do not exist are no part of the value: kernels assert before that all do.
        buffer.get(start..start.saturating_add(len)).unwrap_or_default()
    }
}

/// Byte strings that lie end to end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EndToEnd<'a> {
    /// Bytes of each; none is negative.
    pub lengths: &'a [i32],
    /// Bytes of all of them.
    pub total: u32,
    /// The bytes that contain all values, from `start`.
    pub source: &'a [u8],
    /// Where the first begins.
    pub start: u32,
    /// The page, if it is what they lie in: it may be kept.
    pub page: Option<&'a Bytes>,
}

impl<'a> EndToEnd<'a> {
    /// Where each lies.
    pub(crate) fn spans(self) -> impl Iterator<Item = ValueSpan> + 'a {
        let mut next = self.start;
        self.lengths.iter().map(move |len| {
            let span = ValueSpan { start: next, len: len.cast_unsigned() };
            next += span.len;
            span
        })
    }

    /// Whether all bytes of the values exist, and 32 bits can address them. The lengths are not
    /// checked.
    pub(crate) fn is_whole(self) -> bool {
        let end = self.start.checked_add(self.total);
        end.is_some_and(|end| end as usize <= self.source.len())
    }

    /// The bytes of all of them; none if not all exist, which [`EndToEnd::is_whole`] checks.
    pub(crate) fn all_bytes(self) -> &'a [u8] {
        let start = self.start as usize;
        self.source.get(start..start.saturating_add(self.total as usize)).unwrap_or_default()
    }
}
