//! Levels as bit planes: a word holds bit `p` of 64 levels, so that 64 comparisons are a few
//! operations on words.
//!
//! Used by `levels` and `read::column` for definition and repetition levels. Levels that are all
//! equal stay one number. Trap: `least` may exceed what the planes can hold; then no level is at
//! least that.

use std::ops::Range;

use super::ops::{BLOCK, SimdOps, SimdTask, all, run};
use super::{Isa, Kernel};

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

/// The most planes: levels have 16 bits.
const MAX: usize = 16;

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
                const $W: usize = MAX;
                $call
            }
        }
    };
}

impl LevelBitPlanes {
    /// No levels yet, of `width` bits each: at most 16.
    pub(crate) fn new(width: u32) -> Self {
        let width = (width as usize).min(MAX);
        let stride = match width {
            0..=1 => 1,
            2..=4 => width,
            5..=8 => 8,
            _ => MAX,
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

    /// Number of blocks of 64 levels; the last may be shorter.
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
        // No level is in blocks after the last.
        let planes = self.words.get(block * self.stride..).unwrap_or_default();
        let planes = planes.get(..self.stride).unwrap_or_default();
        if u32::from(least) >> planes.len() != 0 {
            return 0;
        }
        // From the highest bit down: a level that is above in one bit is above; one that is equal
        // so far may still be.
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

    /// Whether two have the same levels, if both are stored as planes; false decides nothing.
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

    /// The levels, a number each.
    pub(crate) fn to_levels(&self) -> Vec<u16> {
        if self.words.is_empty() {
            return vec![self.uniform; self.len];
        }
        let mut out = Vec::with_capacity(self.len.next_multiple_of(BLOCK));
        for planes in self.words.chunks(self.stride) {
            let mut block = [0; BLOCK];
            for (bit, plane) in planes.iter().enumerate() {
                for (i, level) in block.iter_mut().enumerate() {
                    *level |= u16::from(plane >> i & 1 != 0) << bit;
                }
            }
            out.extend_from_slice(&block);
        }
        out.truncate(self.len);
        out
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
        self.make_explicit();
        with_stride!(self.stride, W => {
            let mut end = self.end::<W>();
            end.push_run(level, n);
            end.close();
        });
    }

    /// Appends slots one by one.
    pub(crate) fn push_levels(&mut self, levels: &[u16]) {
        self.make_explicit();
        for levels in levels.chunks(BLOCK) {
            let mut planes = [0; MAX];
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
        run(Isa::for_kernel(Kernel::Levels), PushPacked { planes: self, bytes, skip, n });
    }

    /// Appends the bits of another's bitmap as levels 0 and 1: `word(at)` returns the 64 bits from
    /// `at` on.
    pub(crate) fn push_bits(&mut self, range: Range<usize>, word: impl Fn(usize) -> u64) {
        self.make_explicit();
        for at in range.clone().step_by(BLOCK) {
            let n = (range.end - at).min(BLOCK);
            let mut planes = [0; MAX];
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
            self.make_explicit();
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
    fn make_explicit(&mut self) {
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

    /// The end of the planes, made explicit, to append to. `W` must be the stride.
    #[inline(always)]
    pub(crate) fn end<const W: usize>(&mut self) -> PlanesEnd<'_, W> {
        assert_eq!(W, self.stride, "as many words as a block has");
        let mut block = [0; W];
        let n = self.len % BLOCK;
        if n > 0 && !self.words.is_empty() {
            let last = self.words.len().saturating_sub(W);
            block.copy_from_slice(&self.words[last..]);
            self.words.truncate(last);
        }
        self.len -= n;
        PlanesEnd { planes: self, block, n }
    }

    /// Words of a block, the generic parameter of what appends.
    #[inline]
    pub(crate) fn stride(&self) -> usize {
        self.stride
    }
}

/// Where levels are appended: the last block is kept in registers, and put after the others in the
/// end, by [`PlanesEnd::close`].
pub(crate) struct PlanesEnd<'a, const W: usize> {
    planes: &'a mut LevelBitPlanes,
    block: [u64; W],
    /// Levels of the block: fewer than 64.
    n: usize,
}

impl<const W: usize> PlanesEnd<'_, W> {
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
            // After the last block there are none.
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

/// The first words.
#[inline(always)]
fn first_of<const W: usize>(planes: &[u64; MAX]) -> [u64; W] {
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
        planes.make_explicit();
        with_stride!(planes.stride, W => {
            let mut end = planes.end::<W>();
            end.push_packed(kernel, bytes, skip, n);
            end.close();
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn levels(planes: &LevelBitPlanes) -> Vec<u16> {
        (0..planes.len()).map(|i| planes.get(i)).collect()
    }

    #[test]
    fn grows_like_a_vector_of_levels() {
        let seed = 72;
        let mut rng = fastrand::Rng::with_seed(seed);
        for _ in 0..400 {
            let width = rng.u32(1..=16);
            let max = u16::MAX >> (16 - width);
            let (mut planes, mut naive) = (LevelBitPlanes::new(width), Vec::new());
            let (mut other, mut other_naive) = (LevelBitPlanes::new(width), Vec::new());
            for _ in 0..rng.usize(1..12) {
                match rng.usize(0..5) {
                    0 => {
                        let (level, n) = (rng.u16(0..=max), rng.usize(0..200));
                        planes.push_run(level, n);
                        naive.extend(std::iter::repeat_n(level, n));
                    }
                    1 => {
                        let few: Vec<u16> =
                            (0..rng.usize(0..200)).map(|_| rng.u16(0..=max)).collect();
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
            for least in [0, 1, 2, max, max.saturating_add(1)] {
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
}
