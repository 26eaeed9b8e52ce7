//! [`Cursor`]: the only parser of untrusted bytes.
//!
//! [`Cursor`] takes bytes from the front of a slice. No method panics or reads past the end, and
//! every length is compared with the bytes that are left before it is used. Numbers are
//! little-endian, as in the format.

use crate::error::{Error, Result, Spec};

/// Converts a number of bytes, rows or values to `usize` for counting memory. A number that does
/// not fit becomes the maximum, which no memory can hold.
#[inline]
pub(crate) fn saturated(n: u64) -> usize {
    usize::try_from(n).unwrap_or(usize::MAX)
}

/// A slice of a file, read from the front.
///
/// Carries the section of the specification that the bytes belong to, so that the error of an early
/// end can name the broken rule.
#[derive(Debug, Clone)]
pub(crate) struct Cursor<'a> {
    rest: &'a [u8],
    len: usize,
    spec: Spec,
}

impl<'a> Cursor<'a> {
    /// A cursor at the start of `bytes`, which belong to `spec`.
    pub(crate) fn new(bytes: &'a [u8], spec: Spec) -> Self {
        Self { rest: bytes, len: bytes.len(), spec }
    }

    /// Bytes already read.
    #[inline]
    pub(crate) fn position(&self) -> usize {
        self.len - self.rest.len()
    }

    /// Bytes left.
    #[inline]
    pub(crate) fn remaining(&self) -> usize {
        self.rest.len()
    }

    /// Whether no byte is left.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Returns the rest of the bytes, without reading it.
    #[inline]
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Reads the next `n` bytes.
    ///
    /// # Errors
    /// `Malformed` if fewer are left.
    #[inline]
    pub(crate) fn take(&mut self, n: usize) -> Result<&'a [u8]> {
        let Some((head, rest)) = self.rest.split_at_checked(n) else {
            return Err(self.short(n));
        };
        self.rest = rest;
        Ok(head)
    }

    /// Reads the next `N` bytes as an array.
    ///
    /// # Errors
    /// `Malformed` if fewer are left.
    #[inline]
    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let Some((head, rest)) = self.rest.split_first_chunk::<N>() else {
            return Err(self.short(N));
        };
        self.rest = rest;
        Ok(*head)
    }

    /// Skips `n` bytes.
    ///
    /// # Errors
    /// `Malformed` if fewer are left.
    #[inline]
    pub(crate) fn skip(&mut self, n: usize) -> Result<()> {
        self.take(n).map(drop)
    }

    /// Reads one byte.
    ///
    /// # Errors
    /// `Malformed` if none is left.
    #[inline]
    pub(crate) fn u8(&mut self) -> Result<u8> {
        Ok(self.array::<1>()?[0])
    }

    /// Reads a little-endian `u16`.
    ///
    /// # Errors
    /// `Malformed` if fewer than 2 bytes are left.
    #[inline]
    pub(crate) fn u16(&mut self) -> Result<u16> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    /// Reads a little-endian `u32`.
    ///
    /// # Errors
    /// `Malformed` if fewer than 4 bytes are left.
    #[inline]
    pub(crate) fn u32(&mut self) -> Result<u32> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    /// Reads a little-endian `i32`.
    ///
    /// # Errors
    /// `Malformed` if fewer than 4 bytes are left.
    #[inline]
    pub(crate) fn i32(&mut self) -> Result<i32> {
        Ok(i32::from_le_bytes(self.array()?))
    }

    /// Reads a little-endian `u64`.
    ///
    /// # Errors
    /// `Malformed` if fewer than 8 bytes are left.
    #[inline]
    pub(crate) fn u64(&mut self) -> Result<u64> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    /// Reads a little-endian `u32` length, and that many bytes.
    ///
    /// # Errors
    /// `Malformed` if the length exceeds the bytes that are left.
    #[inline]
    pub(crate) fn prefixed(&mut self) -> Result<&'a [u8]> {
        let n = self.u32()?;
        self.take(n as usize)
    }

    /// Reads an unsigned LEB128 number of at most 64 bits.
    ///
    /// # Errors
    /// `Malformed` if it takes more than 10 bytes, overflows, or ends early.
    #[inline]
    pub(crate) fn uleb128(&mut self) -> Result<u64> {
        // Most numbers of a file are short.
        if let Some((&first, rest)) = self.rest.split_first()
            && first < 0x80
        {
            self.rest = rest;
            return Ok(u64::from(first));
        }
        self.uleb128_long()
    }

    fn uleb128_long(&mut self) -> Result<u64> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.u8()?;
            let bits = u64::from(byte & 0x7F);
            if shift == 63 && bits > 1 {
                break;
            }
            value |= bits << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(Error::malformed(self.spec, "a variable-length number overflows 64 bits"))
    }

    /// Reads a zigzag LEB128 number of at most 64 bits.
    ///
    /// # Errors
    /// As [`Cursor::uleb128`].
    #[inline]
    pub(crate) fn zigzag(&mut self) -> Result<i64> {
        Ok(unzigzag(self.uleb128()?))
    }

    #[cold]
    #[inline(never)]
    fn short(&self, wanted: usize) -> Error {
        Error::malformed(
            self.spec,
            format_args!(
                "the data end early at byte {}: {wanted} bytes wanted, {} left",
                self.position(),
                self.rest.len()
            ),
        )
    }
}

/// Undoes the zigzag mapping: 0, 1, 2, 3 → 0, −1, 1, −2.
#[inline]
#[expect(clippy::cast_possible_wrap, reason = "zigzag reinterprets the bits by definition")]
pub(crate) fn unzigzag(value: u64) -> i64 {
    ((value >> 1) as i64) ^ -((value & 1) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    const SPEC: Spec = Spec::Thrift;

    #[test]
    fn reads_in_order_and_stops_at_the_end() {
        let mut cursor = Cursor::new(&[1, 2, 0, 3, 0, 0, 0, 9], SPEC);
        assert_eq!(cursor.u8().unwrap(), 1);
        assert_eq!(cursor.u16().unwrap(), 2);
        assert_eq!(cursor.u32().unwrap(), 3);
        assert_eq!((cursor.position(), cursor.remaining()), (7, 1));
        let error = cursor.u32().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Malformed(SPEC));
        assert_eq!(cursor.rest(), &[9], "a failed read takes nothing");
    }

    #[test]
    fn leb128_of_every_length() {
        for shift in 0..64 {
            for value in [1u64 << shift, (1u64 << shift) - 1, u64::MAX >> shift] {
                let (mut bytes, mut rest) = (Vec::new(), value);
                while rest >= 0x80 {
                    bytes.push(rest as u8 | 0x80);
                    rest >>= 7;
                }
                bytes.push(rest as u8);
                assert_eq!(Cursor::new(&bytes, SPEC).uleb128().unwrap(), value);
            }
        }
    }

    #[test]
    fn leb128_that_overflows_is_malformed() {
        for bytes in [
            &[0xFF; 11][..],
            &[0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x02],
            &[0x80],
        ] {
            let error = Cursor::new(bytes, SPEC).uleb128().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Malformed(SPEC));
        }
    }

    #[test]
    fn zigzag_by_hand() {
        for (byte, value) in [(0, 0), (1, -1), (2, 1), (3, -2), (0x7F, -64)] {
            assert_eq!(Cursor::new(&[byte], SPEC).zigzag().unwrap(), value);
        }
    }

    #[test]
    fn prefix_longer_than_the_rest_is_malformed() {
        let error = Cursor::new(&[255, 255, 255, 255, 0], SPEC).prefixed().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Malformed(SPEC));
    }
}
