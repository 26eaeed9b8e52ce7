//! Levels on the page: the hybrid of RLE and bit packing, or the deprecated BIT_PACKED.
//!
//! Spec: README.md, "Data Pages"; Encodings.md, RLE and BIT_PACKED. A page of version 1 states the length of each level block in the
//! block, one of version 2 in its header; `page::open` has cut them out by then.
//! Trap: a maximum of 0 stores nothing, not even a length.

use bytes::Bytes;

use super::LevelBuffer;
use crate::encoding::legacy::{BitOrder, BitPacked};
use crate::encoding::rle::{BitWidth, Hybrid, Run};
use crate::error::{Error, Result, Spec};

/// Decodes the definition or the repetition levels of one page.
#[derive(Debug)]
pub struct LevelDecoder {
    max: u16,
    form: Form,
    scratch: Vec<u32>,
    narrow: Vec<u16>,
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
        Self { max, form, scratch: Vec::new(), narrow: Vec::new() }
    }

    /// The next run, of at most `max_slots` slots: levels of the same value, or packed bits.
    ///
    /// Only for a maximum of 1, where packed bits are a validity bitmap as they stand, and only for the hybrid; otherwise `None`.
    ///
    /// # Errors
    /// `Malformed` if the data end early.
    pub fn next_bit_run(&mut self, max_slots: usize) -> Result<Option<Run<'_>>> {
        match &mut self.form {
            Form::Hybrid(hybrid) if self.max == 1 => hybrid.next_run(max_slots).map(Some),
            _ => Ok(None),
        }
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
