//! [`Span`] and [`EndToEnd`] say where byte strings lie.

use bytes::Bytes;

/// A byte string in the buffer of its decoder.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Span {
    /// Offset of the first byte.
    pub start: u32,
    /// Number of bytes.
    pub len: u32,
}

impl Span {
    /// The bytes in `buffer`; none if they are not there.
    #[inline]
    pub(crate) fn slice(self, buffer: &[u8]) -> &[u8] {
        let (start, len) = (self.start as usize, self.len as usize);
        // What is not there is no part of the value: kernels assert before that all is.
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
    /// What they lie in, from `start`; all of them do.
    pub source: &'a [u8],
    /// Where the first begins.
    pub start: u32,
    /// The page, if it is what they lie in: it may be kept.
    pub page: Option<&'a Bytes>,
}

impl<'a> EndToEnd<'a> {
    /// Where each lies.
    pub(crate) fn spans(self) -> impl Iterator<Item = Span> + 'a {
        let mut next = self.start;
        self.lengths.iter().map(move |len| {
            let span = Span { start: next, len: len.cast_unsigned() };
            next += span.len;
            span
        })
    }

    /// Whether all that they are said to lie in is there, where 32 bits can count it. Nothing is
    /// said of the lengths.
    pub(crate) fn is_whole(self) -> bool {
        let end = self.start.checked_add(self.total);
        end.is_some_and(|end| end as usize <= self.source.len())
    }

    /// The bytes of all of them; none if not all are there, which [`EndToEnd::is_whole`] says.
    pub(crate) fn all_bytes(self) -> &'a [u8] {
        let start = self.start as usize;
        self.source.get(start..start.saturating_add(self.total as usize)).unwrap_or_default()
    }
}
