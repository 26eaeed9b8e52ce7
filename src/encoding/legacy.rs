//! BIT_PACKED: the deprecated encoding of levels, packed from the most significant bit on.
//!
//! Spec: Encodings.md, "Bit-packed (Deprecated)". Used by `levels`, in pages of version 1 only.
//! Trap: the bit order is the opposite of the packed runs of the hybrid, and there is neither
//! header nor padding.

use bytes::Bytes;

use super::rle::BitWidth;
use crate::error::{Error, Result, Spec};

const SPEC: Spec = Spec::Encodings("BIT_PACKED");

/// From which end of a byte values are packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum BitOrder {
    /// From the most significant bit, as the format says.
    #[default]
    MostSignificantFirst,
    /// From the least significant bit, as Impala wrote its levels.
    LeastSignificantFirst,
}

/// Decodes BIT_PACKED levels.
#[derive(Debug, Clone)]
pub(crate) struct BitPacked {
    order: BitOrder,
    bytes: Bytes,
    width: BitWidth,
    /// Index of the next value.
    next: usize,
    n: usize,
}

impl BitPacked {
    /// A decoder of `n` values of `width` bits.
    ///
    /// # Errors
    /// `Malformed` if the bytes are too few for them.
    pub(crate) fn new(bytes: Bytes, order: BitOrder, width: BitWidth, n: usize) -> Result<Self> {
        let wanted = (n as u64 * u64::from(width.bits())).div_ceil(8);
        if wanted > bytes.len() as u64 {
            return Err(Error::mismatch(SPEC, "bytes of the levels", wanted, bytes.len()));
        }
        Ok(Self { order, bytes, width, next: 0, n })
    }

    /// Appends the next `n` values.
    ///
    /// # Errors
    /// `Malformed` if there are fewer.
    pub(crate) fn read(&mut self, n: usize, out: &mut Vec<u32>) -> Result<()> {
        let end = self.advance(n)?;
        let width = self.width.bits() as usize;
        let bit = |at: usize, shift: usize| {
            let byte = self.bytes.get(at / 8).expect("`new` has checked that all are there");
            u32::from(byte >> shift & 1)
        };
        out.extend((end - n..end).map(|i| {
            let bits = i * width..(i + 1) * width;
            match self.order {
                BitOrder::MostSignificantFirst => {
                    bits.fold(0, |value, at| value << 1 | bit(at, 7 - at % 8))
                }
                BitOrder::LeastSignificantFirst => {
                    bits.rev().fold(0, |value, at| value << 1 | bit(at, at % 8))
                }
            }
        }));
        Ok(())
    }

    /// Skips the next `n` values.
    ///
    /// # Errors
    /// `Malformed` if there are fewer.
    #[cfg(test)]
    pub(crate) fn skip(&mut self, n: usize) -> Result<()> {
        self.advance(n).map(drop)
    }

    fn advance(&mut self, n: usize) -> Result<usize> {
        let end = self.next.checked_add(n).filter(|end| *end <= self.n).ok_or_else(|| {
            Error::mismatch(
                SPEC,
                "levels left in the page",
                format_args!("at least {n}"),
                self.n - self.next,
            )
        })?;
        self.next = end;
        Ok(end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn example_of_the_specification() {
        let bytes = Bytes::from_static(&[0x05, 0x39, 0x77]);
        let mut decoder =
            BitPacked::new(bytes, BitOrder::default(), BitWidth::new(3).unwrap(), 8).unwrap();
        let mut out = Vec::new();
        decoder.skip(2).unwrap();
        decoder.read(6, &mut out).unwrap();
        assert_eq!(out, [2, 3, 4, 5, 6, 7]);
        assert_eq!(decoder.read(1, &mut out).unwrap_err().kind(), ErrorKind::Malformed(SPEC));
    }

    #[test]
    fn impala_packs_from_the_other_end() {
        let bytes = Bytes::from_static(&[0x88, 0xC6, 0xFA]);
        let order = BitOrder::LeastSignificantFirst;
        let mut out = Vec::new();
        BitPacked::new(bytes, order, BitWidth::new(3).unwrap(), 8)
            .unwrap()
            .read(8, &mut out)
            .unwrap();
        assert_eq!(out, [0, 1, 2, 3, 4, 5, 6, 7]);
    }

    #[test]
    fn too_few_bytes_are_malformed() {
        let bytes = Bytes::from_static(&[0x05, 0x39]);
        let error =
            BitPacked::new(bytes, BitOrder::default(), BitWidth::new(3).unwrap(), 8).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Malformed(SPEC));
    }
}
