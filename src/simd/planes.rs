//! Levels as bit planes: bit `p` of 64 levels is one word, so that 64 comparisons are a few
//! operations on words.
//!
//! Used by `levels` and `read::column` for definition and repetition levels. Levels that are all
//! the same stay one number. Trap: `least` may be above what the planes can hold; no level is at
//! least that.

use std::ops::Range;

use super::{Isa, Level};

/// The levels of consecutive slots.
#[derive(Debug, Clone)]
pub(crate) struct LevelBitPlanes {
    /// Bits of a level.
    width: usize,
    /// Words of a block of 64 levels, one for each plane; those above the width are 0.
    stride: usize,
    /// The level of all slots, while `words` is empty.
    uniform: u16,
    len: usize,
    /// The planes of a block side by side; bits beyond the length are 0.
    words: Vec<u64>,
}

/// Levels of a block: a bit each.
pub(crate) const BLOCK: usize = 64;

/// The most planes: levels have 16 bits.
const MOST: usize = 16;

/// Calls a method that is generic over the stride.
macro_rules! with_stride {
    ($stride:expr, $W:ident => $call:expr) => {
        match $stride {
            1 => {
                const $W: usize = 1;
                $call
            }
            2 => {
                const $W: usize = 2;
                $call
            }
            3 => {
                const $W: usize = 3;
                $call
            }
            4 => {
                const $W: usize = 4;
                $call
            }
            8 => {
                const $W: usize = 8;
                $call
            }
            _ => {
                const $W: usize = MOST;
                $call
            }
        }
    };
}

impl LevelBitPlanes {
    /// No levels yet, of `width` bits each: at most 16.
    pub(crate) fn new(width: u32) -> Self {
        let width = (width as usize).min(MOST);
        let stride = match width {
            0..=1 => 1,
            2..=4 => width,
            5..=8 => 8,
            _ => MOST,
        };
        Self { width, stride, uniform: 0, len: 0, words: Vec::new() }
    }

    /// Slots held.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The level of all slots, if all are known to be the same (also if there are none).
    #[inline]
    pub(crate) fn uniform(&self) -> Option<u16> {
        self.words.is_empty().then_some(self.uniform)
    }

    /// Bytes of memory held.
    pub(crate) fn bytes_held(&self) -> usize {
        self.words.capacity() * size_of::<u64>()
    }

    /// Blocks of 64 levels, of which the last may be shorter.
    #[inline]
    pub(crate) fn blocks(&self) -> usize {
        self.len.div_ceil(BLOCK)
    }

    /// Which of the levels of a block are there.
    #[inline(always)]
    pub(crate) fn there(&self, block: usize) -> u64 {
        all(self.len.saturating_sub(BLOCK * block).min(BLOCK))
    }

    /// Which levels of a block are at least `least`.
    #[inline(always)]
    pub(crate) fn at_least(&self, block: usize, least: u16) -> u64 {
        let there = self.there(block);
        if self.words.is_empty() {
            return if self.uniform >= least { there } else { 0 };
        }
        // No level is in blocks behind the last.
        let planes = self.words.get(block * self.stride..).unwrap_or_default();
        let planes = planes.get(..self.stride).unwrap_or_default();
        if u32::from(least) >> planes.len() != 0 {
            return 0;
        }
        // From the highest bit down: what is above in one is above, what is equal so far may still
        // be.
        let (mut above, mut equal) = (0, there);
        for (bit, plane) in planes.iter().enumerate().rev() {
            if least >> bit & 1 != 0 {
                equal &= plane;
            } else {
                above |= equal & plane;
            }
        }
        above | equal
    }

    /// [`Self::at_least`] of consecutive blocks, for a level above 0; no level is in blocks beyond
    /// the end.
    #[inline(always)]
    pub(crate) fn at_least_each(&self, first: usize, least: u16, out: &mut [u64]) {
        if self.words.is_empty() {
            for (block, out) in (first..).zip(out) {
                *out = if self.uniform >= least { self.there(block) } else { 0 };
            }
            return;
        }
        out.fill(0);
        if u32::from(least) >> self.stride == 0 {
            with_stride!(self.stride, W => self.at_least_with::<W>(first, least, out));
        }
    }

    #[inline(always)]
    fn at_least_with<const W: usize>(&self, first: usize, least: u16, out: &mut [u64]) {
        // Bits beyond the length are levels of 0, which are below all that is asked for.
        debug_assert!(least > 0, "no level is below 0");
        // As above.
        let (blocks, _) = self.words.get(first * W..).unwrap_or_default().as_chunks::<W>();
        for (planes, out) in blocks.iter().zip(out) {
            let (mut above, mut equal) = (0, u64::MAX);
            for (bit, plane) in planes.iter().enumerate().rev() {
                if least >> bit & 1 != 0 {
                    equal &= plane;
                } else {
                    above |= equal & plane;
                }
            }
            *out = above | equal;
        }
    }

    /// Whether two have the same levels, if they are spelled out alike; nothing is said of others.
    #[inline]
    pub(crate) fn same_words(&self, other: &Self) -> bool {
        self.len == other.len
            && self.stride == other.stride
            && self.words == other.words
            && (!self.words.is_empty() || self.uniform == other.uniform)
    }

    /// The level of slot `i`; 0 beyond the end.
    pub(crate) fn get(&self, i: usize) -> u16 {
        if i >= self.len {
            return 0;
        }
        if self.words.is_empty() {
            return self.uniform;
        }
        let planes = self.words.iter().skip(i / BLOCK * self.stride).take(self.stride);
        planes
            .enumerate()
            .fold(0, |level, (bit, plane)| level | u16::from(plane >> (i % BLOCK) & 1 != 0) << bit)
    }

    /// Appends `n` slots of one level.
    pub(crate) fn push_run(&mut self, level: u16, n: usize) {
        if n == 0 {
            return;
        }
        if self.words.is_empty() && (self.len == 0 || self.uniform == level) {
            self.uniform = level;
            self.len += n;
            return;
        }
        self.spell_out();
        with_stride!(self.stride, W => {
            let mut end = self.end::<W>();
            end.push_run(level, n);
            end.close();
        });
    }

    /// Appends slots one by one.
    pub(crate) fn push_levels(&mut self, levels: &[u16]) {
        self.spell_out();
        for levels in levels.chunks(BLOCK) {
            let mut planes = [0; MOST];
            for (i, level) in levels.iter().enumerate() {
                for (bit, plane) in planes.iter_mut().enumerate() {
                    *plane |= u64::from(level >> bit & 1) << i;
                }
            }
            with_stride!(self.stride, W => {
                let mut end = self.end::<W>();
                end.push(first_of(&planes), levels.len());
                end.close();
            });
        }
    }

    /// Appends `n` levels that are packed in `bytes`, from the least significant bit of the first
    /// byte on, after `skip` others.
    pub(crate) fn push_packed(&mut self, bytes: &[u8], skip: usize, n: usize) {
        run(Isa::best(), PushPacked { planes: self, bytes, skip, n });
    }

    /// Appends the bits of another's bitmap as levels 0 and 1: `word(at)` gives the 64 bits from
    /// `at` on.
    pub(crate) fn push_bits(&mut self, range: Range<usize>, word: impl Fn(usize) -> u64) {
        self.spell_out();
        for at in range.clone().step_by(BLOCK) {
            let n = (range.end - at).min(BLOCK);
            let mut planes = [0; MOST];
            planes[0] = word(at) & all(n);
            with_stride!(self.stride, W => {
                let mut end = self.end::<W>();
                end.push(first_of(&planes), n);
                end.close();
            });
        }
    }

    /// Appends slots of another, whose levels have as many bits.
    pub(crate) fn push_range(&mut self, other: &Self, range: Range<usize>) {
        if other.words.is_empty() {
            self.push_run(other.uniform, range.len());
        } else if !range.is_empty() {
            self.spell_out();
            with_stride!(self.stride, W => {
                let mut end = self.end::<W>();
                end.push_range(other, range);
                end.close();
            });
        }
    }

    /// Forgets the slots, keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.len = 0;
        self.words.clear();
    }

    /// Whether levels are one number.
    #[inline]
    pub(crate) fn is_one_number(&self) -> bool {
        self.words.is_empty()
    }

    /// Makes one number words, so that others can be appended.
    fn spell_out(&mut self) {
        if self.words.is_empty() && self.len > 0 {
            let n = std::mem::take(&mut self.len);
            let level = self.uniform;
            with_stride!(self.stride, W => {
                let mut end = self.end::<W>();
                end.push_run(level, n);
                end.close();
            });
        }
    }

    /// The end of the planes, spelled out, to append to. `W` must be the stride.
    #[inline(always)]
    pub(crate) fn end<const W: usize>(&mut self) -> End<'_, W> {
        assert_eq!(W, self.stride, "as many words as a block has");
        let mut block = [0; W];
        let n = self.len % BLOCK;
        if n > 0 && !self.words.is_empty() {
            let last = self.words.len().saturating_sub(W);
            block.copy_from_slice(&self.words[last..]);
            self.words.truncate(last);
        }
        self.len -= n;
        End { planes: self, block, n }
    }

    /// Words of a block, the generic parameter of what appends.
    #[inline]
    pub(crate) fn stride(&self) -> usize {
        self.stride
    }
}

/// Where levels are appended: the last block is kept in registers, and put after the others in the
/// end, by [`End::close`].
pub(crate) struct End<'a, const W: usize> {
    planes: &'a mut LevelBitPlanes,
    block: [u64; W],
    /// Levels of the block: fewer than 64.
    n: usize,
}

impl<const W: usize> End<'_, W> {
    /// Appends at most 64 slots by their planes; bits from `n` on must be 0.
    #[inline(always)]
    pub(crate) fn push(&mut self, planes: [u64; W], n: usize) {
        debug_assert!(n <= BLOCK, "planes of a block");
        let shift = self.n;
        for (word, plane) in self.block.iter_mut().zip(&planes) {
            *word |= plane << shift;
        }
        self.n += n;
        if self.n >= BLOCK {
            self.planes.words.extend_from_slice(&self.block);
            self.planes.len += BLOCK;
            self.n -= BLOCK;
            // Shifted twice, as a shift by 64 is none.
            self.block = planes.map(|plane| plane >> 1 >> (BLOCK - 1 - shift));
        }
    }

    /// Appends `n` slots of one level.
    #[inline(always)]
    pub(crate) fn push_run(&mut self, level: u16, n: usize) {
        let constant: [u64; W] =
            std::array::from_fn(|bit| u64::from(level >> bit & 1).wrapping_neg());
        let mut left = n;
        while left > 0 {
            let n = left.min(BLOCK);
            self.push(constant.map(|plane| plane & all(n)), n);
            left -= n;
        }
    }

    /// Appends `n` packed levels, after `skip` others.
    #[inline(always)]
    pub(crate) fn push_packed(
        &mut self,
        kernel: impl SimdOps,
        bytes: &[u8],
        skip: usize,
        n: usize,
    ) {
        let width = self.planes.width;
        let step = 8 * width;
        let (mut bytes, mut skip, mut left) = (bytes, skip, n);
        while left > 0 {
            let planes = kernel.split::<W>(&bytes[..step.min(bytes.len())], width);
            let n = left.min(BLOCK - skip);
            self.push(planes.map(|plane| plane >> skip & all(n)), n);
            left -= n;
            skip = 0;
            // Bytes that are not there are 0.
            bytes = bytes.get(step..).unwrap_or_default();
        }
    }

    #[inline(always)]
    fn push_range(&mut self, other: &LevelBitPlanes, range: Range<usize>) {
        debug_assert_eq!(other.stride, W, "levels of one width");
        let shift = range.start % BLOCK;
        let mut words = &other.words[range.start / BLOCK * W..];
        let mut left = range.len();
        if shift == 0 && self.n == 0 {
            // Whole blocks, as they are.
            let whole = left / BLOCK;
            self.planes.words.extend_from_slice(&words[..whole * W]);
            self.planes.len += whole * BLOCK;
            left -= whole * BLOCK;
            words = &words[whole * W..];
        }
        while left > 0 {
            let n = left.min(BLOCK);
            let planes: [u64; W] = std::array::from_fn(|plane| {
                let low = words.get(plane).map_or(0, |word| word >> shift);
                let high = words.get(W + plane).map_or(0, |word| word << 1 << (BLOCK - 1 - shift));
                (low | high) & all(n)
            });
            self.push(planes, n);
            left -= n;
            // Behind the last block there are none.
            words = words.get(W..).unwrap_or_default();
        }
    }

    /// Puts the last block after the others.
    #[inline(always)]
    pub(crate) fn close(self) {
        if self.n > 0 {
            self.planes.words.extend_from_slice(&self.block);
            self.planes.len += self.n;
        }
    }
}

/// A word whose `n` lowest bits are set; `n` is at most 64.
#[inline(always)]
pub(crate) fn all(n: usize) -> u64 {
    debug_assert!(n <= BLOCK, "a word has 64 bits");
    if n == 0 { 0 } else { u64::MAX >> (BLOCK - n) }
}

/// Where the `n`th set bit of a word is, the first being the 0th; 64 if there are not so many.
#[inline(always)]
pub(crate) fn nth_set(word: u64, n: usize) -> usize {
    (0..n.min(BLOCK)).fold(word, |word, _| word & word.wrapping_sub(1)).trailing_zeros() as usize
}

/// The first words.
#[inline(always)]
fn first_of<const W: usize>(planes: &[u64; MOST]) -> [u64; W] {
    std::array::from_fn(|i| planes[i])
}

struct PushPacked<'a> {
    planes: &'a mut LevelBitPlanes,
    bytes: &'a [u8],
    skip: usize,
    n: usize,
}

impl SimdTask for PushPacked<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self, kernel: impl SimdOps) {
        let Self { planes, bytes, skip, n } = self;
        planes.spell_out();
        with_stride!(planes.stride, W => {
            let mut end = planes.end::<W>();
            end.push_packed(kernel, bytes, skip, n);
            end.close();
        });
    }
}

/// SimdTask on words that is compiled once for each instruction set; its `run` is to be
/// `#[inline(always)]`.
pub(crate) trait SimdTask {
    /// What comes of it.
    type Output;

    /// Does the work.
    fn run(self, kernel: impl SimdOps) -> Self::Output;
}

/// The operations that differ by instruction set.
pub(crate) trait SimdOps: Copy {
    /// The bits of `bits` where `mask` is set, moved together.
    fn select(self, bits: u64, mask: u64) -> u64;

    /// The planes of 64 levels of `width` bits, which is at most `W`; bytes that are not there are
    /// 0.
    fn split<const W: usize>(self, bytes: &[u8], width: usize) -> [u64; W];
}

/// Does the work, compiled for an instruction set.
#[inline]
pub(crate) fn run<W: SimdTask>(isa: Isa, work: W) -> W::Output {
    match isa.level() {
        Level::Scalar => work.run(Scalar),
        #[cfg(target_arch = "x86_64")]
        // SAFETY: an `Isa` of this level exists only where BMI2 and POPCNT were found, and BMI1
        // comes with BMI2.
        Level::Avx2 => unsafe { x86::run_bmi(work) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: an `Isa` of this level exists only where its features were found, and those of
        // AVX2.
        Level::Avx512 => unsafe { x86::run_avx512(work) },
    }
}

/// The definition.
#[derive(Clone, Copy)]
struct Scalar;

impl SimdOps for Scalar {
    #[inline(always)]
    fn select(self, bits: u64, mask: u64) -> u64 {
        if mask == u64::MAX {
            return bits;
        }
        let (mut mask, mut out, mut n) = (mask, 0, 0);
        while mask != 0 {
            let lowest = mask & mask.wrapping_neg();
            out |= u64::from(bits & lowest != 0) << n;
            n += 1;
            mask ^= lowest;
        }
        out
    }

    #[inline(always)]
    fn split<const W: usize>(self, bytes: &[u8], width: usize) -> [u64; W] {
        let mut planes = [0; W];
        if width > 8 {
            let bit =
                |at: usize| bytes.get(at / 8).map_or(0, |byte| u64::from(byte >> (at % 8) & 1));
            for (p, plane) in planes.iter_mut().enumerate().take(width) {
                *plane = (0..BLOCK).fold(0, |word, i| word | bit(i * width + p) << i);
            }
            return planes;
        }
        for (group, bytes) in bytes.chunks(width.max(1)).enumerate().take(8) {
            let mut packed = [0; 8];
            packed[..bytes.len()].copy_from_slice(bytes);
            let packed = u64::from_le_bytes(packed);
            // A byte for each of the 8 levels; of every byte one bit at a time.
            let spread = (0..8).fold(0, |word, i| word | (packed >> (i * width) & 0xFF) << (8 * i));
            for (p, plane) in planes.iter_mut().enumerate().take(width) {
                let bits = spread >> p & 0x0101_0101_0101_0101;
                *plane |= bits.wrapping_mul(0x0102_0408_1020_4080) >> 56 << (8 * group);
            }
        }
        planes
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{
        _mm512_loadu_si512, _mm512_maskz_loadu_epi8, _mm512_multishift_epi64_epi8,
        _mm512_permutexvar_epi8, _mm512_set1_epi8, _mm512_test_epi8_mask, _pext_u64,
    };

    use super::{Scalar, SimdOps, SimdTask, all};

    /// Does the work with BMI.
    ///
    /// # Safety
    /// The machine must have BMI1, BMI2 and POPCNT.
    #[target_feature(enable = "bmi1,bmi2,popcnt")]
    pub(super) unsafe fn run_bmi<W: SimdTask>(work: W) -> W::Output {
        work.run(Bmi(()))
    }

    /// Does the work with AVX-512.
    ///
    /// # Safety
    /// The machine must have BMI1, BMI2, POPCNT, and AVX-512 F, BW and VBMI.
    #[target_feature(enable = "bmi1,bmi2,popcnt,avx512f,avx512bw,avx512vbmi")]
    pub(super) unsafe fn run_avx512<W: SimdTask>(work: W) -> W::Output {
        work.run(Avx512(()))
    }

    /// Made only by [`run_bmi`].
    #[derive(Clone, Copy)]
    struct Bmi(());

    impl SimdOps for Bmi {
        #[inline(always)]
        fn select(self, bits: u64, mask: u64) -> u64 {
            // SAFETY: a `Bmi` is made only where BMI2 was found.
            unsafe { _pext_u64(bits, mask) }
        }

        #[inline(always)]
        fn split<const W: usize>(self, bytes: &[u8], width: usize) -> [u64; W] {
            if W > 4 || width == 0 {
                return Scalar.split(bytes, width);
            }
            let mut planes = [0; W];
            let mut at = [0; W];
            for (k, bytes) in bytes.chunks(8).enumerate().take(W) {
                let mut word = [0; 8];
                word[..bytes.len()].copy_from_slice(bytes);
                let word = u64::from_le_bytes(word);
                for (p, plane) in planes.iter_mut().enumerate() {
                    // The first bit of this plane in the word, and every `width`th from there on.
                    let first = (p + width - 64 * k % width) % width;
                    let mask = EVERY[width] << first;
                    // SAFETY: as above.
                    *plane |= unsafe { _pext_u64(word, mask) } << at[p];
                    at[p] += mask.count_ones();
                }
            }
            planes
        }
    }

    /// Every `width`th bit, from the first on.
    const EVERY: [u64; 5] =
        [0, u64::MAX, 0x5555_5555_5555_5555, 0x9249_2492_4924_9249, 0x1111_1111_1111_1111];

    /// Made only by [`run_avx512`].
    #[derive(Clone, Copy)]
    struct Avx512(());

    /// The bytes of every 8 levels of a width, in 8 bytes.
    #[expect(clippy::cast_possible_truncation, reason = "bytes of a vector are fewer than 64")]
    const GROUPS: [[u8; 64]; 9] = {
        let mut tables = [[0; 64]; 9];
        let mut width = 0;
        while width < 9 {
            let mut i = 0;
            while i < 64 {
                // Bytes above the width are looked at by no level.
                let byte = i / 8 * width + if i % 8 < width { i % 8 } else { 0 };
                tables[width][i] = if byte < 64 { byte as u8 } else { 0 };
                i += 1;
            }
            width += 1;
        }
        tables
    };

    /// Where the 8 levels of a width begin in their bytes.
    #[expect(clippy::cast_possible_truncation, reason = "bits of 8 bytes are 64")]
    const SHIFTS: [[u8; 64]; 9] = {
        let mut tables = [[0; 64]; 9];
        let mut width = 0;
        while width < 9 {
            let mut i = 0;
            while i < 64 {
                tables[width][i] = (i % 8 * width) as u8;
                i += 1;
            }
            width += 1;
        }
        tables
    };

    impl SimdOps for Avx512 {
        #[inline(always)]
        fn select(self, bits: u64, mask: u64) -> u64 {
            // SAFETY: an `Avx512` is made only where BMI2 was found too.
            unsafe { _pext_u64(bits, mask) }
        }

        #[inline(always)]
        fn split<const W: usize>(self, bytes: &[u8], width: usize) -> [u64; W] {
            let (Some(groups), Some(shifts)) = (GROUPS.get(width), SHIFTS.get(width)) else {
                return Scalar.split(bytes, width);
            };
            // SAFETY: an `Avx512` is made only where the features were found.
            unsafe { split(bytes, width, groups, shifts) }
        }
    }

    /// A byte for every level, then a test of each bit.
    ///
    /// # Safety
    /// The machine must have AVX-512 F, BW and VBMI.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
    unsafe fn split<const W: usize>(
        bytes: &[u8],
        width: usize,
        groups: &[u8; 64],
        shifts: &[u8; 64],
    ) -> [u64; W] {
        // SAFETY: the mask lets no byte be read but those of the slice.
        let packed =
            unsafe { _mm512_maskz_loadu_epi8(all(bytes.len().min(64)), bytes.as_ptr().cast()) };
        // SAFETY: the table has 64 bytes.
        let groups = unsafe { _mm512_loadu_si512(groups.as_ptr().cast()) };
        // SAFETY: as above.
        let shifts = unsafe { _mm512_loadu_si512(shifts.as_ptr().cast()) };
        let levels = _mm512_multishift_epi64_epi8(shifts, _mm512_permutexvar_epi8(groups, packed));
        std::array::from_fn(|plane| {
            // Above the width there are bits of the next level.
            if plane < width {
                _mm512_test_epi8_mask(levels, _mm512_set1_epi8((1u8 << (plane % 8)).cast_signed()))
            } else {
                0
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn levels(planes: &LevelBitPlanes) -> Vec<u16> {
        (0..planes.len()).map(|i| planes.get(i)).collect()
    }

    struct Split<'a>(&'a [u8], usize);

    impl SimdTask for Split<'_> {
        type Output = Vec<u64>;

        #[inline(always)]
        fn run(self, kernel: impl SimdOps) -> Vec<u64> {
            match self.1 {
                0..=1 => kernel.split::<1>(self.0, self.1).to_vec(),
                2 => kernel.split::<2>(self.0, self.1).to_vec(),
                3 => kernel.split::<3>(self.0, self.1).to_vec(),
                4 => kernel.split::<4>(self.0, self.1).to_vec(),
                5..=8 => kernel.split::<8>(self.0, self.1).to_vec(),
                _ => kernel.split::<16>(self.0, self.1).to_vec(),
            }
        }
    }

    struct Select(u64, u64);

    impl SimdTask for Select {
        type Output = u64;

        #[inline(always)]
        fn run(self, kernel: impl SimdOps) -> u64 {
            kernel.select(self.0, self.1)
        }
    }

    #[test]
    fn every_isa_splits_and_selects_as_the_naive_twin() {
        let seed = 71;
        let mut rng = fastrand::Rng::with_seed(seed);
        assert_eq!(run(Isa::SCALAR, Select(0b1010_1100, 0b1111_0000)), 0b1010);
        for width in 0..=16usize {
            for _ in 0..50 {
                let bytes: Vec<u8> = (0..rng.usize(0..=8 * width)).map(|_| rng.u8(..)).collect();
                let bit = |at: usize| bytes.get(at / 8).map_or(0, |b| u64::from(b >> (at % 8) & 1));
                let naive: Vec<u64> = (0..width)
                    .map(|p| (0..64).fold(0, |word, i| word | bit(i * width + p) << i))
                    .collect();
                for isa in Isa::available() {
                    let planes = run(isa, Split(&bytes, width));
                    let (planes, above) = planes.split_at(width.min(planes.len()));
                    assert_eq!(planes, naive, "{isa:?} width {width} seed {seed}");
                    assert!(above.iter().all(|plane| *plane == 0), "{isa:?} width {width}");
                    let (bits, mask) = (rng.u64(..), rng.u64(..) & rng.u64(..));
                    assert_eq!(
                        run(isa, Select(bits, mask)),
                        run(Isa::SCALAR, Select(bits, mask)),
                        "{isa:?} seed {seed}"
                    );
                }
            }
        }
    }

    #[test]
    fn grows_like_a_vector_of_levels() {
        let seed = 72;
        let mut rng = fastrand::Rng::with_seed(seed);
        for _ in 0..400 {
            let width = rng.u32(1..=16);
            let most = u16::MAX >> (16 - width);
            let (mut planes, mut naive) = (LevelBitPlanes::new(width), Vec::new());
            let (mut other, mut other_naive) = (LevelBitPlanes::new(width), Vec::new());
            for _ in 0..rng.usize(1..12) {
                match rng.usize(0..5) {
                    0 => {
                        let (level, n) = (rng.u16(0..=most), rng.usize(0..200));
                        planes.push_run(level, n);
                        naive.extend(std::iter::repeat_n(level, n));
                    }
                    1 => {
                        let few: Vec<u16> =
                            (0..rng.usize(0..200)).map(|_| rng.u16(0..=most)).collect();
                        planes.push_levels(&few);
                        naive.extend(few);
                    }
                    2 => {
                        let bytes: Vec<u8> =
                            (0..rng.usize(0..40) * width as usize).map(|_| rng.u8(..)).collect();
                        let skip = rng.usize(0..8);
                        let n = (bytes.len() * 8 / width as usize).saturating_sub(skip);
                        planes.push_packed(&bytes, skip, n);
                        let mut all = Vec::new();
                        crate::simd::unpack::unpack_u32(&bytes, width, skip + n, &mut all);
                        naive.extend(all.iter().skip(skip).map(|level| *level as u16));
                    }
                    3 => {
                        let a = rng.usize(0..=other.len());
                        let b = rng.usize(a..=other.len());
                        planes.push_range(&other, a..b);
                        naive.extend_from_slice(&other_naive[a..b]);
                    }
                    _ => {
                        (other, other_naive) = (planes.clone(), naive.clone());
                        if rng.bool() {
                            planes.clear();
                            naive.clear();
                        }
                    }
                }
                assert_eq!(levels(&planes), naive, "width {width} seed {seed}");
            }
            for least in [0, 1, 2, most, most.saturating_add(1)] {
                for block in 0..planes.blocks() {
                    let of = &naive[64 * block..naive.len().min(64 * block + 64)];
                    let expected = of
                        .iter()
                        .enumerate()
                        .fold(0, |word, (i, level)| word | u64::from(*level >= least) << i);
                    assert_eq!(planes.at_least(block, least), expected, "seed {seed}");
                }
            }
        }
    }

    #[test]
    fn stays_one_number_until_a_level_differs() {
        let mut planes = LevelBitPlanes::new(2);
        planes.push_run(2, 3);
        planes.push_run(2, 100);
        assert_eq!((planes.len(), planes.uniform()), (103, Some(2)));
        assert_eq!(planes.at_least(1, 2), all(39));
        planes.push_run(0, 1);
        assert_eq!((planes.len(), planes.uniform()), (104, None));
        assert_eq!(planes.at_least(1, 2), all(39));
    }

    #[test]
    fn finds_the_nth_set_bit() {
        assert_eq!(nth_set(0b1011_0000, 0), 4);
        assert_eq!(nth_set(0b1011_0000, 2), 7);
        assert_eq!(nth_set(0b1011_0000, 3), 64);
    }
}
