//! Sizes that the headers of frames and blocks state. Nothing is decompressed to know it, so that a
//! page that lies about its size takes no memory.
//!
//! ```text
//! frame  = FD2FB528, descriptor, [window], [dictionary id], [content size], block*, [checksum]
//! block  = u24le: last 1 bit, type 2 bits, size 21 bits; then the bytes, or one byte for a run
//! skip   = 184D2A5?, u32le n, n bytes
//! ```

use std::fmt::Display;

use crate::bytes::Cursor;
use crate::error::{Error, Result, Spec};

pub(super) const SPEC: Spec = Spec::Compression("ZSTD");

#[cold]
pub(super) fn broken(what: impl Display) -> Error {
    Error::malformed(SPEC, format_args!("the frame is broken: {what}"))
}

/// Sizes of a sequence of frames.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Frames {
    /// Bytes that they become at most: what each states, if it does, and no more than its blocks
    /// can: they state their sizes too, or are compressed, and become at most 128 KiB.
    pub(super) max_bytes: u64,
    /// The largest window: how far back a frame may refer.
    #[cfg_attr(not(any(test, target_family = "wasm")), allow(dead_code))]
    pub(super) window: u64,
}

impl Frames {
    /// # Errors
    /// `Malformed` if a header is broken, or the input ends in a frame.
    pub(super) fn new(input: &[u8]) -> Result<Self> {
        let mut cursor = Cursor::new(input, SPEC);
        let mut all = Self::default();
        while !cursor.is_empty() {
            let magic = cursor.u32()?;
            if magic & 0xFFFF_FFF0 == 0x184D_2A50 {
                cursor.prefixed()?;
                continue;
            }
            if magic != 0xFD2F_B528 {
                return Err(Error::malformed(SPEC, "a frame does not begin with its magic number"));
            }
            all.add_frame(&mut cursor)?;
        }
        Ok(all)
    }

    /// Adds the frame whose magic number was read.
    fn add_frame(&mut self, cursor: &mut Cursor<'_>) -> Result<()> {
        let descriptor = cursor.u8()?;
        let single_segment = descriptor & 0x20 != 0;
        let window = if single_segment { None } else { Some(window(cursor.u8()?)) };
        cursor.skip([0, 1, 2, 4][usize::from(descriptor & 3)])?;
        let stated = match descriptor >> 6 {
            0 if single_segment => u64::from(cursor.u8()?),
            0 => u64::MAX,
            1 => u64::from(cursor.u16()?) + 256,
            2 => u64::from(cursor.u32()?),
            _ => cursor.u64()?,
        };
        // Encoders may cut blocks short, so that what the frame states is less.
        let bytes = blocks(cursor)?.min(stated);
        self.max_bytes = self.max_bytes.saturating_add(bytes);
        // A single segment is a window.
        self.window = self.window.max(window.unwrap_or(stated));
        cursor.skip(if descriptor & 4 != 0 { 4 } else { 0 })
    }
}

/// The size of a window: a power of two from 1 KiB, and some eighths of it.
fn window(descriptor: u8) -> u64 {
    let base = 1u64 << (10 + (descriptor >> 3));
    base + base / 8 * u64::from(descriptor & 7)
}

/// Bytes that the blocks of a frame become at most.
fn blocks(cursor: &mut Cursor<'_>) -> Result<u64> {
    let mut bytes = 0u64;
    loop {
        let [a, b, c] = cursor.array::<3>()?;
        let header = u32::from_le_bytes([a, b, c, 0]);
        let size = header >> 3;
        let (stored, max) = match header >> 1 & 3 {
            0 => (size, size),
            1 => (1, size),
            2 => (size, BLOCK),
            _ => return Err(Error::malformed(SPEC, "a block is of the reserved type")),
        };
        cursor.skip(stored as usize)?;
        bytes = bytes.saturating_add(u64::from(max.min(BLOCK)));
        if header & 1 != 0 {
            return Ok(bytes);
        }
    }
}

/// The most bytes that a block can become.
pub(super) const BLOCK: u32 = 128 << 10;
