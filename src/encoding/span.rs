//! [`Span`]: where a byte string lies.

/// A byte string in the buffer of its decoder.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Span {
    /// Offset of the first byte.
    pub start: u32,
    /// Number of bytes.
    pub len: u32,
}

impl Span {
    /// The bytes in `buffer`; none if they are not there.
    #[inline]
    pub fn slice(self, buffer: &[u8]) -> &[u8] {
        let (start, len) = (self.start as usize, self.len as usize);
        buffer.get(start..start.saturating_add(len)).unwrap_or_default()
    }
}
