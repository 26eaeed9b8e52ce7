//! [`BitWidth`]: the number of bits of a packed value.

use crate::error::{Error, Result, Spec};

pub(super) const SPEC: Spec = Spec::Encodings("RLE");

/// A number of bits from 0 to 32.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BitWidth(pub(super) u8);

impl BitWidth {
    /// A width that the file states.
    ///
    /// # Errors
    /// `Malformed` if it is over 32.
    pub(crate) fn new(bits: u8) -> Result<Self> {
        if bits > 32 {
            return Err(Error::mismatch(SPEC, "bit width", "at most 32", bits));
        }
        Ok(Self(bits))
    }

    /// The bits that the numbers up to `max` take.
    pub(crate) fn for_max(max: u32) -> Self {
        Self(u8::try_from(u32::BITS - max.leading_zeros()).expect("at most 32"))
    }

    /// The number of bits.
    pub(crate) fn bits(self) -> u32 {
        u32::from(self.0)
    }

    /// Whether `value` takes no more bits.
    pub(super) fn holds(self, value: u32) -> bool {
        u64::from(value) >> self.0 == 0
    }
}
