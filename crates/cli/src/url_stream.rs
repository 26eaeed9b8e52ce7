//! [`UrlStream`]: a file at a URL, read from its beginning on.

use std::io::{self, Read, Seek, SeekFrom};
use std::sync::Arc;

use bytes::Bytes;
use marquetry::io::Source;

/// A file at a URL, with a position.
pub(crate) struct UrlStream {
    pub(crate) source: Arc<dyn Source>,
    pub(crate) len: u64,
    at: u64,
    /// Bytes that were read ahead, and where they begin.
    ahead: (u64, Bytes),
}

/// Bytes of the first request after a change of position, and of those that follow one another.
const FIRST_BYTES: u64 = 64 << 10;
const MAX_BYTES: u64 = 16 << 20;

impl UrlStream {
    pub(crate) fn new(source: Arc<dyn Source>, len: u64) -> Self {
        Self { source, len, at: 0, ahead: (0, Bytes::new()) }
    }

    /// The bytes at the position that were read ahead.
    fn held(&self) -> Option<Bytes> {
        let (start, bytes) = &self.ahead;
        let from = usize::try_from(self.at.checked_sub(*start)?).ok()?;
        (from < bytes.len()).then(|| bytes.slice(from..))
    }
}

impl Read for UrlStream {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.at >= self.len || out.is_empty() {
            return Ok(0);
        }
        let held = match self.held() {
            Some(held) => held,
            None => {
                let (start, before) = &self.ahead;
                let follows = *start + before.len() as u64 == self.at && !before.is_empty();
                let bytes = if follows { before.len() as u64 * 4 } else { FIRST_BYTES };
                let end = self.len.min(self.at + bytes.clamp(FIRST_BYTES, MAX_BYTES));
                let read = self.source.read(self.at..end).map_err(io::Error::other)?;
                self.ahead = (self.at, read.clone());
                read
            }
        };
        let n = held.len().min(out.len());
        let (from, to) = (held.get(..n), out.get_mut(..n));
        if let (Some(from), Some(to)) = (from, to) {
            to.copy_from_slice(from);
        }
        self.at += n as u64;
        Ok(n)
    }
}

impl Seek for UrlStream {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::End(by) => self.len.checked_add_signed(by),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
        };
        self.at = at.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
        Ok(self.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_in_order_and_after_a_seek() {
        let bytes: Vec<u8> = (0..300_000u32).map(|i| (i % 251) as u8).collect();
        let source: Arc<dyn Source> = Arc::new(Bytes::from(bytes.clone()));
        let mut stream = UrlStream::new(source, bytes.len() as u64);
        let mut all = Vec::new();
        stream.read_to_end(&mut all).expect("bytes");
        assert_eq!(all, bytes);
        stream.seek(SeekFrom::End(-5)).expect("a position");
        let mut end = Vec::new();
        stream.read_to_end(&mut end).expect("bytes");
        assert_eq!(end, bytes[bytes.len() - 5..]);
        assert!(stream.seek(SeekFrom::Current(-1_000_000)).is_err());
    }
}
