//! Levels on the page: the hybrid of RLE and bit packing, or the deprecated BIT_PACKED.
//!
//! Spec: README.md, "Data Pages"; Encodings.md, RLE and BIT_PACKED. A page of version 1 states the length of each level block in the
//! block, one of version 2 in its header; `page::open` has cut them out by then.
//! Trap: a maximum of 0 stores nothing, not even a length.

use bytes::Bytes;

use super::Validity;
use crate::encoding::legacy::{BitOrder, BitPacked};
use crate::encoding::rle::{BitWidth, Hybrid, Run};
use crate::error::{Error, Result, Spec};
use crate::simd::planes::{self, Planes};

/// Decodes the definition or the repetition levels of one page.
#[derive(Debug)]
pub struct LevelDecoder {
    max: u16,
    form: Form,
    scratch: Vec<u32>,
}

#[derive(Debug)]
enum Form {
    /// Nothing is stored: every level is 0.
    Absent,
    Hybrid(Hybrid),
    BitPacked(BitPacked),
}

impl LevelDecoder {
    /// Levels that are not stored, because their maximum is 0.
    pub fn absent() -> Self {
        Self::new(0, Form::Absent)
    }

    /// Levels 0 to `max` of `slots` slots in the hybrid encoding, without a length in front.
    ///
    /// # Errors
    /// `Malformed` if the data cannot hold them.
    pub fn hybrid(bytes: Bytes, max: u16, slots: usize) -> Result<Self> {
        if max == 0 {
            return Ok(Self::absent());
        }
        let hybrid = Hybrid::new(bytes, width_of(max), slots)?;
        Ok(Self::new(max, Form::Hybrid(hybrid)))
    }

    /// Levels 0 to `max` of `slots` slots in the deprecated BIT_PACKED encoding.
    ///
    /// # Errors
    /// `Malformed` if the data end early.
    pub fn bit_packed(bytes: Bytes, order: BitOrder, max: u16, slots: usize) -> Result<Self> {
        if max == 0 {
            return Ok(Self::absent());
        }
        let packed = BitPacked::new(bytes, order, width_of(max), slots)?;
        Ok(Self::new(max, Form::BitPacked(packed)))
    }

    fn new(max: u16, form: Form) -> Self {
        Self { max, form, scratch: Vec::new() }
    }

    /// Appends the validity of the next `n` slots, and says how many hold a value; only for a maximum of 1, where the bits of the page are a
    /// validity bitmap as they stand.
    ///
    /// # Errors
    /// `Malformed` if the data end early.
    pub fn read_validity(&mut self, n: usize, out: &mut Validity) -> Result<usize> {
        let Form::Hybrid(hybrid) = &mut self.form else {
            let mut levels = Self::planes(self.max);
            self.read(n, &mut levels)?;
            if let Some(level) = levels.uniform() {
                return Ok(out.push_all(level != 0, n));
            }
            let mut values = 0;
            for block in 0..levels.blocks() {
                let valid = levels.at_least(block, 1);
                values += valid.count_ones() as usize;
                out.push_word(valid, levels.there(block).count_ones() as usize);
            }
            return Ok(values);
        };
        let mut left = n;
        let mut values = 0;
        // While nothing is null there is no bitmap, and long runs are what there is.
        while left > 0 && out.bitmap().is_none() {
            match hybrid.next_run(left)? {
                Run::Rle { value, n } => {
                    values += out.push_all(value != 0, n);
                    left -= n;
                }
                Run::Packed(packed) => {
                    left -= packed.len();
                    values += out.push_bits(packed.len(), |bitmap| {
                        packed.append_bits(bitmap);
                        Ok(())
                    })?;
                }
            }
        }
        if left > 0 {
            values += out.push_bits(left, |bitmap| hybrid.read_bits(left, bitmap))?;
        }
        Ok(values)
    }

    /// No levels yet, of as many bits as these.
    pub fn planes(max: u16) -> Planes {
        Planes::new(width_of(max).bits())
    }

    /// Appends the next `n` levels to `out`, which must be of the same width.
    ///
    /// # Errors
    /// `Malformed` if the data end early or a level is above the maximum.
    pub fn read(&mut self, n: usize, out: &mut Planes) -> Result<()> {
        let (max, before) = (self.max, out.len());
        match &mut self.form {
            Form::Absent => {
                out.push_run(0, n);
                Ok(())
            }
            Form::BitPacked(packed) => {
                self.scratch.clear();
                packed.read(n, &mut self.scratch)?;
                let level = |&level: &u32| u16::try_from(level).unwrap_or(u16::MAX);
                let levels: Vec<u16> = self.scratch.iter().map(level).collect();
                out.push_levels(&levels);
                check(out, before, max)
            }
            Form::Hybrid(hybrid) => {
                let read = hybrid.read_planes(n, out);
                // A level that is too high comes before what is wrong behind it.
                check(out, before, max)?;
                read
            }
        }
    }
}

/// Checks the levels from `start` on.
fn check(levels: &Planes, start: usize, max: u16) -> Result<()> {
    if (max + 1).is_power_of_two() {
        // Their bits cannot hold more.
        return Ok(());
    }
    let mut shown = u64::MAX << (start % planes::BLOCK);
    for block in start / planes::BLOCK..levels.blocks() {
        let above = levels.at_least(block, max + 1) & shown;
        if above != 0 {
            let i = block * planes::BLOCK + above.trailing_zeros() as usize;
            return Err(Error::mismatch(
                Spec::Levels,
                "level",
                format_args!("at most {max}"),
                levels.get(i),
            ));
        }
        shown = u64::MAX;
    }
    Ok(())
}

fn width_of(max: u16) -> BitWidth {
    BitWidth::for_max(u32::from(max))
}
