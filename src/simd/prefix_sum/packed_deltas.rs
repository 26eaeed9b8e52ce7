//! [`PackedDeltas`]: the packed differences of a page.

/// Packed differences, the first at bit 0.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PackedDeltas<'a> {
    /// Bytes that are not there read as 0.
    pub bytes: &'a [u8],
    /// Bits of each.
    pub width: u32,
    /// How many.
    pub n: usize,
}
