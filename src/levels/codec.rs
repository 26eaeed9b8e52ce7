//! Decodes and encodes the levels of a page, as the RLE / bit-packed hybrid or as the deprecated
//! BIT_PACKED.
//!
//! Spec: README.md, "Data Pages"; Encodings.md, RLE and BIT_PACKED. A page of version 1 states the
//! length of each level block in the block, one of version 2 in its header; `page::open` has
//! separated the blocks already. Trap: levels whose maximum is 0 are not stored, not even their
//! length.

use bytes::Bytes;

use super::assemble::rows;
use super::validity::Validity;
use crate::encoding::legacy::{BitOrder, BitPacked};
use crate::encoding::rle::{BitWidth, Hybrid, Run};
use crate::error::{Error, Result, Spec};
use crate::simd::ops::BLOCK;
use crate::simd::planes::LevelBitPlanes;

/// Decodes the definition or the repetition levels of one page.
#[derive(Debug, Clone)]
pub(crate) struct LevelDecoder {
    max: u16,
    form: LevelEncoding,
    scratch: Vec<u32>,
}

#[derive(Debug, Clone)]
enum LevelEncoding {
    /// Nothing is stored: every level is 0.
    Absent,
    Hybrid(Hybrid),
    BitPacked(BitPacked),
}

impl LevelDecoder {
    /// Levels that are not stored, because their maximum is 0.
    pub(crate) fn absent() -> Self {
        Self::new(0, LevelEncoding::Absent)
    }

    /// Levels 0 to `max` of `slots` slots in the hybrid encoding, without a length in front.
    ///
    /// # Errors
    /// `Malformed` if the data cannot hold them.
    pub(crate) fn hybrid(bytes: Bytes, max: u16, slots: usize) -> Result<Self> {
        if max == 0 {
            return Ok(Self::absent());
        }
        let hybrid = Hybrid::new(bytes, width_of(max), slots)?;
        Ok(Self::new(max, LevelEncoding::Hybrid(hybrid)))
    }

    /// Levels 0 to `max` of `slots` slots in the deprecated BIT_PACKED encoding.
    ///
    /// # Errors
    /// `Malformed` if the data end early.
    pub(crate) fn bit_packed(
        bytes: Bytes,
        order: BitOrder,
        max: u16,
        slots: usize,
    ) -> Result<Self> {
        if max == 0 {
            return Ok(Self::absent());
        }
        let packed = BitPacked::new(bytes, order, width_of(max), slots)?;
        Ok(Self::new(max, LevelEncoding::BitPacked(packed)))
    }

    fn new(max: u16, form: LevelEncoding) -> Self {
        Self { max, form, scratch: Vec::new() }
    }

    /// Appends the validity of the next `n` slots, and returns how many hold a value; only for a
    /// maximum of 1, where the bits of the page are a validity bitmap as they stand.
    ///
    /// # Errors
    /// `Malformed` if the data end early.
    pub(crate) fn read_validity(&mut self, n: usize, out: &mut Validity) -> Result<usize> {
        let LevelEncoding::Hybrid(hybrid) = &mut self.form else {
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

    /// How many of the `n` levels to come are 0, if the first of them is, and none otherwise; they
    /// are still to come afterwards.
    ///
    /// # Errors
    /// As [`LevelDecoder::read`].
    pub(crate) fn count_zeros(&self, n: usize) -> Result<usize> {
        let mut ahead = self.clone();
        let mut levels = Self::planes(self.max);
        let (mut left, mut zeros) = (n, 0);
        while left > 0 {
            let block = left.min(MAX_AHEAD);
            levels.clear();
            ahead.read(block, &mut levels)?;
            if left == n && levels.get(0) != 0 {
                return Ok(0);
            }
            zeros += rows(&levels, 0..block, block).0;
            left -= block;
        }
        Ok(zeros)
    }

    /// How many of the `n` levels to come are the maximum: of definition levels, those of values.
    /// They are still to come afterwards.
    ///
    /// # Errors
    /// As [`LevelDecoder::read`].
    pub(crate) fn count_max(&self, n: usize) -> Result<usize> {
        let mut ahead = self.clone();
        let mut levels = Self::planes(self.max);
        let (mut left, mut found) = (n, 0);
        while left > 0 {
            let block = left.min(MAX_AHEAD);
            levels.clear();
            ahead.read(block, &mut levels)?;
            let in_word = |word| levels.at_least(word, self.max).count_ones() as usize;
            found += (0..levels.blocks()).map(in_word).sum::<usize>();
            left -= block;
        }
        Ok(found)
    }

    /// No levels yet, of as many bits as these.
    pub(crate) fn planes(max: u16) -> LevelBitPlanes {
        LevelBitPlanes::new(width_of(max).bits())
    }

    /// Appends the next `n` levels to `out`, which must be of the same width.
    ///
    /// # Errors
    /// `Malformed` if the data end early or a level is above the maximum.
    pub(crate) fn read(&mut self, n: usize, out: &mut LevelBitPlanes) -> Result<()> {
        let (max, before) = (self.max, out.len());
        match &mut self.form {
            LevelEncoding::Absent => {
                out.push_run(0, n);
                Ok(())
            }
            LevelEncoding::BitPacked(packed) => {
                self.scratch.clear();
                packed.read(n, &mut self.scratch)?;
                let level = |&level: &u32| u16::try_from(level).unwrap_or(u16::MAX);
                let levels: Vec<u16> = self.scratch.iter().map(level).collect();
                out.push_levels(&levels);
                check(out, before, max)
            }
            LevelEncoding::Hybrid(hybrid) => {
                let read = hybrid.read_planes(n, out);
                // A level that is too high is reported before a fault after it.
                check(out, before, max)?;
                read
            }
        }
    }
}

/// Levels that are read ahead at a time, because a page may be one run of very many.
const MAX_AHEAD: usize = 1 << 16;

/// Checks the levels from `start` on.
fn check(levels: &LevelBitPlanes, start: usize, max: u16) -> Result<()> {
    if max.count_ones() == width_of(max).bits() {
        // Their bits cannot hold more.
        return Ok(());
    }
    let mut shown = u64::MAX << (start % BLOCK);
    for block in start / BLOCK..levels.blocks() {
        let above = levels.at_least(block, max + 1) & shown;
        if above != 0 {
            let i = block * BLOCK + above.trailing_zeros() as usize;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encoding::rle;
    use crate::error::ErrorKind;

    fn read(bytes: &[u8], max: u16, n: usize) -> Result<Vec<u16>> {
        let mut levels = LevelDecoder::planes(max);
        LevelDecoder::hybrid(Bytes::copy_from_slice(bytes), max, n)?.read(n, &mut levels)?;
        Ok((0..levels.len()).map(|i| levels.get(i)).collect())
    }

    /// Encodings.md: the numbers 0 to 7 in 3 bits each.
    #[test]
    fn example_of_the_specification() {
        assert_eq!(read(&[3, 0x88, 0xC6, 0xFA], 7, 8).unwrap(), [0, 1, 2, 3, 4, 5, 6, 7]);
    }

    #[test]
    fn levels_of_every_maximum_come_back_in_pieces() {
        let seed = 81;
        let mut rng = fastrand::Rng::with_seed(seed);
        for max in (1..20).chain([31, 100, 255, 256, 1000, u16::MAX]) {
            let mut levels = Vec::new();
            while levels.len() < 3000 {
                let n = rng.usize(1..80);
                match rng.bool() {
                    true => levels.extend(std::iter::repeat_n(rng.u16(0..=max), n)),
                    false => levels.extend((0..n).map(|_| rng.u16(0..=max))),
                }
            }
            let mut bytes = Vec::new();
            rle::encode_levels_into(&levels, width_of(max), &mut bytes);
            let mut decoder = LevelDecoder::hybrid(bytes.into(), max, levels.len()).unwrap();
            let mut planes = LevelDecoder::planes(max);
            while planes.len() < levels.len() {
                let n = rng.usize(0..1000).min(levels.len() - planes.len());
                decoder.read(n, &mut planes).unwrap();
            }
            let found: Vec<u16> = (0..planes.len()).map(|i| planes.get(i)).collect();
            assert_eq!(found, levels, "max {max} seed {seed}");
            assert!(decoder.read(1, &mut planes).is_err(), "no more are declared");
        }
    }

    #[test]
    fn levels_are_counted_without_being_read() {
        let mut rng = fastrand::Rng::with_seed(82);
        for max in [1, 2, 3, 5] {
            let n = MAX_AHEAD + 100;
            let levels: Vec<u16> = (0..n).map(|_| rng.u16(0..=max)).collect();
            let mut bytes = Vec::new();
            rle::encode_levels_into(&levels, width_of(max), &mut bytes);
            let mut decoder = LevelDecoder::hybrid(bytes.into(), max, n).unwrap();
            for n in [n, n - 1, 70, 0] {
                let found = levels[..n].iter().filter(|level| **level == max).count();
                assert_eq!(decoder.count_max(n).unwrap(), found, "max {max}, {n} levels");
            }
            assert!(decoder.count_max(n + 1).is_err(), "no more are declared");
            decoder.read(n, &mut LevelDecoder::planes(max)).unwrap();
        }
    }

    #[test]
    fn a_level_above_the_maximum_is_malformed() {
        // Runs of 8 times 2, then packed: the last of 8 is 3.
        assert_eq!(read(&[16, 2, 3, 0b1010_1010, 0b1010_1010], 2, 16).unwrap(), [2; 16]);
        for bytes in [
            &[16, 2, 3, 0b1010_1010, 0b1110_1010][..],
            &[16, 3],
            &[16, 2, 16, 3],
            // The fault comes after the levels that are read.
            &[3, 0b1010_1010, 0b1110_1010],
        ] {
            let error = read(bytes, 2, 16).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Malformed(Spec::Levels), "{bytes:?}");
        }
        // The last group is padded with anything.
        assert_eq!(read(&[3, 0b1010_1010, 0b1110_1010], 2, 7).unwrap(), [2; 7]);
        // The value of a run has more bits than a level.
        let error = read(&[16, 4], 2, 8).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Malformed(Spec::Encodings("RLE")));
        for bytes in [&[][..], &[16], &[0x90], &[3], &[16, 2]] {
            let error = read(bytes, 2, 16).unwrap_err();
            assert!(matches!(error.kind(), ErrorKind::Malformed(_)), "{bytes:?}");
        }
    }
}
