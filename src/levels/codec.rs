//! Levels on the page: the hybrid of RLE and bit packing, or the deprecated BIT_PACKED.
//!
//! Spec: README.md, "Data Pages"; Encodings.md, RLE and BIT_PACKED. A page of version 1 states the length of each level block in the
//! block, one of version 2 in its header; `page::open` has cut them out by then.
//! Trap: a maximum of 0 stores nothing, not even a length.

use bytes::Bytes;

use super::{LevelBuffer, Validity};
use crate::encoding::legacy::{BitOrder, BitPacked};
use crate::encoding::rle::{BitWidth, Hybrid, Run};
use crate::error::{Error, Result, Spec};

/// Decodes the definition or the repetition levels of one page.
#[derive(Debug, Clone)]
pub struct LevelDecoder {
    max: u16,
    form: Form,
    scratch: Vec<u32>,
    narrow: Vec<u16>,
}

#[derive(Debug, Clone)]
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
        Self { max, form, scratch: Vec::new(), narrow: Vec::new() }
    }

    /// Appends the validity of the next `n` slots, and says how many hold a value; only for a maximum of 1, where the bits of the page are a
    /// validity bitmap as they stand.
    ///
    /// # Errors
    /// `Malformed` if the data end early.
    pub fn read_validity(&mut self, n: usize, out: &mut Validity) -> Result<usize> {
        let Form::Hybrid(hybrid) = &mut self.form else {
            let mut levels = LevelBuffer::default();
            self.read(n, &mut levels)?;
            let valid = |level: &u16| *level != 0;
            return Ok(match levels.mixed() {
                None => out.push_all(levels.uniform() != Some(0), n),
                Some(levels) => levels.iter().map(|level| out.push_all(valid(level), 1)).sum(),
            });
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

    /// How many of the `n` levels to come are 0, if the first of them is, and none otherwise; they are still to come afterwards.
    ///
    /// # Errors
    /// As [`LevelDecoder::read`].
    pub fn count_zeros(&self, n: usize) -> Result<usize> {
        let mut ahead = self.clone();
        let (mut levels, mut left, mut zeros) = (LevelBuffer::default(), n, 0);
        while left > 0 {
            let block = left.min(MAX_RUN);
            levels.clear();
            ahead.read(block, &mut levels)?;
            zeros += match levels.mixed() {
                None if levels.uniform() == Some(0) => block,
                None => 0,
                Some(levels) => levels.iter().filter(|level| **level == 0).count(),
            };
            let first = match levels.mixed() {
                None => levels.uniform(),
                Some(levels) => levels.first().copied(),
            };
            if left == n && first != Some(0) {
                return Ok(0);
            }
            left -= block;
        }
        Ok(zeros)
    }

    /// Appends the next `n` levels to `out`.
    ///
    /// # Errors
    /// `Malformed` if the data end early or a level is above the maximum.
    pub fn read(&mut self, mut n: usize, out: &mut LevelBuffer) -> Result<()> {
        let max = self.max;
        let check = |level: u32| {
            u16::try_from(level).ok().filter(|level| *level <= max).ok_or_else(|| {
                Error::mismatch(Spec::Levels, "level", format_args!("at most {max}"), level)
            })
        };
        match &mut self.form {
            Form::Absent => out.push_run(0, n),
            Form::BitPacked(packed) => {
                self.scratch.clear();
                packed.read(n, &mut self.scratch)?;
                self.narrow.clear();
                for &level in &self.scratch {
                    self.narrow.push(check(level)?);
                }
                out.push_slice(&self.narrow);
            }
            Form::Hybrid(hybrid) => {
                while n > 0 {
                    match hybrid.next_run(n.min(MAX_RUN))? {
                        Run::Rle { value, n: run } => {
                            out.push_run(check(value)?, run);
                            n -= run;
                        }
                        Run::Packed(run) => {
                            self.scratch.clear();
                            run.unpack(&mut self.scratch);
                            let top = self.scratch.iter().copied().max().unwrap_or(0);
                            check(top)?;
                            self.narrow.clear();
                            #[expect(
                                clippy::cast_possible_truncation,
                                reason = "at most `max`, checked above"
                            )]
                            self.narrow.extend(self.scratch.iter().map(|&level| level as u16));
                            out.push_slice(&self.narrow);
                            n -= run.len();
                        }
                    }
                }
            }
        }
        Ok(())
    }
}

/// Packed levels unpacked at a time: they and their narrow twins stay in the first-level cache.
const MAX_RUN: usize = 4096;

fn width_of(max: u16) -> BitWidth {
    BitWidth::for_max(u32::from(max))
}
