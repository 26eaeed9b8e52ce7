//! Decodes and encodes the elements of a SNAPPY block: literals, and copies of earlier output.
//!
//! ```text
//! 0b_llllll_00  literal of l + 1 bytes; l of 60 to 63: the next 1 to 4 bytes are its length - 1
//! 0b_ooolll_01  copy of l + 4 bytes, 11 bits of offset: o, and the next byte
//! 0b_llllll_10  copy of l + 1 bytes, the next 2 bytes are the offset
//! 0b_llllll_11  copy of l + 1 bytes, the next 4 bytes are the offset
//! ```
//!
//! Most elements are short, and whether the next one is a literal or a copy cannot be predicted.
//! Both therefore do the same work, without a branch: they copy 16 bytes, from the block or from
//! the output, and advance by the length of the element. The next element overwrites the excess, so
//! the output needs [`SLACK`]. Rare elements, and the last ones, are decoded one by one, by code
//! that checks each access ([`SnappyBlock::step`]), which is also the definition.

use std::hint::select_unpredictable;

use super::{Isa, Kernel, Level};

/// Bytes after the last one of the output that may be written over: a copy of 64 bytes that begins
/// with the last byte, in steps of 16.
pub(crate) const SLACK: usize = 80;

/// The longest element that is not a long literal.
pub(crate) const MAX_SHORT: usize = 64;

/// How far a block was decompressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SnappyProgress {
    /// Bytes of the block before the first element that is not done. A literal that does not fit is
    /// done as far as it fits, and does not count here.
    pub read: usize,
    /// Bytes of the output.
    pub written: usize,
}

/// The faults of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SnappyFault {
    /// It ends within the element at this byte.
    Cut(usize),
    /// The copy at byte `at` has an offset of 0, or one beyond the start of the output.
    Offset { at: usize, offset: usize, written: usize },
    /// More bytes than the output has come out, with the element at this byte.
    Long(usize),
}

/// Decompresses the elements of `block` to the start of `out`, until at least `wanted` bytes are
/// there, or the block ends. The output is at most the length of `out` less [`SLACK`]; a literal
/// beyond that is truncated.
///
/// # Errors
/// The fault of the block; `out` may then hold anything.
///
/// # Panics
/// If `out` has fewer than [`SLACK`] bytes, or fewer than `wanted` besides these.
pub(crate) fn decompress(
    block: &[u8],
    wanted: usize,
    out: &mut [u8],
) -> Result<SnappyProgress, SnappyFault> {
    decompress_with(Isa::for_kernel(Kernel::Snappy), block, wanted, out)
}

/// Like [`decompress`], with the kernel of an instruction set.
fn decompress_with(
    isa: Isa,
    block: &[u8],
    wanted: usize,
    out: &mut [u8],
) -> Result<SnappyProgress, SnappyFault> {
    let max = out.len().checked_sub(SLACK).expect("the output has slack");
    assert!(wanted <= max, "no more is wanted than the output has");
    let elements = SnappyBlock { block, out, max };
    match isa.level() {
        Level::Scalar => elements.run(Doubling, wanted),
        // SAFETY: an `Isa` of these levels exists only where AVX2 and BMI2 were found, and SSSE3
        // comes with AVX2.
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 | Level::Avx512 => unsafe { x86::run(elements, wanted) },
    }
}

/// Bytes that the fast loop may read after a tag: a literal is copied in four steps of 16.
const AHEAD: usize = MAX_SHORT;

/// The meaning of a tag: the length of its element in bits 0 to 6; in bit 7 whether it may be a
/// copy of a part of the previous word; and, from bit 8 on, what is added to the offset after the
/// tag. For a copy these are bits 8 to 10 of the offset; for a literal, an offset that no check
/// refuses; and for a rare element one that is beyond any output.
const TAGS: [usize; 256] = {
    let mut tags = [0; 256];
    let mut tag = 0;
    while tag < tags.len() {
        let bits = tag >> 2;
        tags[tag] = match tag & 3 {
            0 if bits < 60 => (bits + 1) | (MIN_PLAIN_OFFSET << 8),
            1 if bits < 4 => (bits + 4) | PART_OF_WORD,
            1 => ((bits & 7) + 4) | ((bits >> 3) << 8 << 8),
            2 => bits + 1,
            // The length follows the tag, or an offset of 4 bytes.
            _ => RARE << 8,
        };
        tag += 1;
    }
    tags
};

/// More than any length of an output.
const RARE: usize = 1 << (usize::BITS - 9);

/// The bit of a copy of 4 to 7 bytes with a small offset: if that is [`WORD`], numbers may follow
/// each other ([`words`]).
const PART_OF_WORD: usize = 1 << 7;

/// Bytes of a word; runs of repeated words are handled in a register.
const WORD: usize = 8;

/// Smaller offsets are a pattern that is repeated within a copy of 8 bytes.
const MIN_PLAIN_OFFSET: usize = 8;

/// Masks of the bits of the two bytes after a tag that are an offset, by the kind of the element.
const OFFSET_MASKS: [u16; 4] = [0, 0xFF, 0xFFFF, 0];

/// A block that is decompressed.
struct SnappyBlock<'a> {
    block: &'a [u8],
    out: &'a mut [u8],
    /// Bytes that may come out; `out` has [`SLACK`] more.
    max: usize,
}

/// Copies a pattern: what differs by instruction set.
trait Repeat: Copy {
    /// Copies `len` bytes from `offset` bytes before `to`, each after the one before it.
    ///
    /// # Safety
    /// `offset` must be 1 to 15 and `len` at most 64; there must be `offset` bytes before `to`, and
    /// [`SLACK`] writable bytes from `to` on.
    unsafe fn repeat(self, to: *mut u8, offset: usize, len: usize);
}

impl SnappyBlock<'_> {
    #[inline(always)]
    fn run(mut self, kernel: impl Repeat, wanted: usize) -> Result<SnappyProgress, SnappyFault> {
        let len = self.block.len();
        let mut at = SnappyProgress { read: 0, written: 0 };
        // From 9 bytes on, one comparison shows whether an offset is near or beyond the start.
        while at.written < (MIN_PLAIN_OFFSET + 1).min(wanted) && at.read < len {
            at = self.step(at)?;
        }
        let fast_end = len.saturating_sub(AHEAD);
        while at.written < wanted && at.read < fast_end {
            // Pointers in registers: the compiler cannot know that the written bytes are not
            // `self`.
            let pointers = (self.block.as_ptr(), self.out.as_mut_ptr());
            while at.written < wanted && at.read < fast_end {
                // SAFETY: the pointers are those of the block, with `AHEAD` bytes left after
                // `read`, and of `out`, with more than `MIN_PLAIN_OFFSET` bytes written: else the
                // block has ended, or no more is wanted. `written` is less than `wanted`, which is
                // at most `max`, and `out` has `SLACK` bytes more than that.
                match unsafe { short(kernel, pointers, at, (fast_end, wanted)) } {
                    Some(next) => at = next,
                    None => break,
                }
            }
            if at.written < wanted && at.read < len {
                at = self.step(at)?;
            }
        }
        while at.written < wanted && at.read < len {
            at = self.step(at)?;
        }
        if at.written > self.max {
            return Err(SnappyFault::Long(at.read));
        }
        Ok(at)
    }

    /// Takes the next element, whatever it is, with each access checked.
    #[inline(never)]
    fn step(&mut self, at: SnappyProgress) -> Result<SnappyProgress, SnappyFault> {
        let SnappyProgress { read, written } = at;
        let cut = SnappyFault::Cut(read);
        let left = self.max.checked_sub(written).ok_or(SnappyFault::Long(read))?;
        let tag = usize::from(*self.block.get(read).ok_or(cut)?);
        let number = |len: usize| {
            let bytes = self.block.get(read + 1..read + 1 + len).ok_or(cut)?;
            Ok(bytes.iter().rev().fold(0, |number, byte| number << 8 | usize::from(*byte)))
        };
        let (len, offset, kind) = match (tag & 3, tag >> 2) {
            (0, bits @ 0..60) => return self.literal(at, read + 1, bits + 1),
            (0, bits) => {
                let len = number(bits - 59)?.checked_add(1).ok_or(cut)?;
                return self.literal(at, read + 1 + bits - 59, len);
            }
            (1, bits) => ((bits & 7) + 4, (bits >> 3) << 8 | number(1)?, 1),
            (2, bits) => (bits + 1, number(2)?, 2),
            (_, bits) => (bits + 1, number(4)?, 4),
        };
        if offset == 0 || offset > written {
            return Err(SnappyFault::Offset { at: read, offset, written });
        }
        if len > left {
            return Err(SnappyFault::Long(read));
        }
        for to in written..written + len {
            self.out[to] = self.out[to - offset];
        }
        Ok(SnappyProgress { read: read + 1 + kind, written: written + len })
    }

    /// Takes the literal of `len` bytes from `start` of the block on, as far as it fits.
    fn literal(
        &mut self,
        at: SnappyProgress,
        start: usize,
        len: usize,
    ) -> Result<SnappyProgress, SnappyFault> {
        let SnappyProgress { read, written } = at;
        let rest = self.block.get(start..).filter(|rest| rest.len() >= len);
        let rest = rest.ok_or(SnappyFault::Cut(read))?;
        let fits = len.min(self.max - written);
        if fits == 0 {
            return Err(SnappyFault::Long(read));
        }
        self.out[written..written + fits].copy_from_slice(&rest[..fits]);
        let end = if fits == len { start + len } else { read };
        Ok(SnappyProgress { read: end, written: written + fits })
    }
}

/// Takes the next element of the block, at the first pointer, to the output, at the second, if it
/// is a short literal, or a copy with an offset of at most 2 bytes. `None`, and nothing is taken,
/// if it is another, or its offset is 0 or beyond the start.
///
/// # Safety
/// The block must have `1 + AHEAD` bytes from each byte before `fast_end` on, among them `read`,
/// and the output `SLACK` bytes from each before `wanted` on. The output must be initialised, and
/// have `SLACK` bytes from `written` on, which is more than [`MIN_PLAIN_OFFSET`]; nothing else may
/// refer to it.
#[inline(always)]
unsafe fn short(
    kernel: impl Repeat,
    (block, out): (*const u8, *mut u8),
    SnappyProgress { read, written }: SnappyProgress,
    (fast_end, wanted): (usize, usize),
) -> Option<SnappyProgress> {
    // SAFETY: the tag and the two bytes after it are among the `1 + AHEAD`.
    let (tag, after, next) = unsafe {
        let after = block.add(read + 1);
        (block.add(read).read(), after, after.cast::<[u8; 2]>().read_unaligned())
    };
    let (tag, kind) = (usize::from(tag), usize::from(tag & 3));
    let entry = TAGS[tag];
    let len = entry & 0x7F;
    let offset = usize::from(u16::from_le_bytes(next) & OFFSET_MASKS[kind]) + (entry >> 8);
    let is_literal = kind == 0;
    // SAFETY: `written` is within the output.
    let to = unsafe { out.add(written) };
    // One comparison for two, as `written` is more than `MIN_PLAIN_OFFSET`. An offset of `written`
    // counts as beyond the start, and is taken elsewhere; of a part of a word, an offset of 8 is
    // near.
    let near = MIN_PLAIN_OFFSET + (entry >> 7 & 1);
    let is_near_or_beyond = offset.wrapping_sub(near) > written - (MIN_PLAIN_OFFSET + 1);
    if is_near_or_beyond {
        if offset == WORD {
            let after = SnappyProgress { read: read + 1 + kind, written };
            // SAFETY: more than `MIN_PLAIN_OFFSET` bytes, which are a word, are written; `len` is
            // at most 7, as else an offset of 8 is not near; the caller guarantees the rest.
            return Some(unsafe { words((block, out), after, len, (fast_end, wanted)) });
        }
        if !(1..MIN_PLAIN_OFFSET).contains(&offset) || entry >> 8 >= RARE {
            return None;
        }
        // SAFETY: the offset is 1 to 7, and `MIN_PLAIN_OFFSET` bytes are written; `len` is at most
        // 64, as no tag says more; `to` has `SLACK` bytes.
        unsafe { kernel.repeat(to, offset, len) };
        return Some(SnappyProgress { read: read + 1 + kind, written: written + len });
    }
    // For a literal, too, the second pointer lies within the output: its offset is
    // `MIN_PLAIN_OFFSET`.
    let from = select_unpredictable(is_literal, after, to.wrapping_sub(offset).cast_const());
    // SAFETY: `to` has `SLACK` bytes. A literal has `AHEAD` bytes from `after` on. A copy begins at
    // least 8 bytes before `to`, and at or after the start of the output, so that the first word
    // lies before `to`, and the second is read after the first was written.
    unsafe {
        copy_word(from, to);
        copy_word(from.add(8), to.add(8));
    }
    if len > 16 {
        // SAFETY: an offset below 16 is 8 to 15, which is at most `written`, and `len` is at most
        // 64. Else as of the first 16 bytes: each step of a copy ends at or before where it is
        // written to, as the offset is at least 16.
        unsafe {
            if !is_literal && offset < 16 {
                kernel.repeat(to, offset, len);
            } else {
                copy_step(from.add(16), to.add(16));
                copy_step(from.add(32), to.add(32));
                copy_step(from.add(48), to.add(48));
            }
        }
    }
    let taken = select_unpredictable(is_literal, (tag >> 2) + 1, kind);
    Some(SnappyProgress { read: read + 1 + taken, written: written + len })
}

/// Copies `len` bytes, fewer than a word, from a word before `written`, and takes the elements
/// after it that are a literal of 1 to 4 bytes and a copy of the other bytes of the word before: so
/// numbers that follow each other are compressed. Read from memory, each copy would wait for the
/// literal before it.
///
/// # Safety
/// At least [`WORD`] bytes of the output must be written; otherwise as [`short`], but `read` may
/// lie anywhere, and is where the next element begins.
#[inline(always)]
unsafe fn words(
    (block, out): (*const u8, *mut u8),
    SnappyProgress { mut read, mut written }: SnappyProgress,
    len: usize,
    (fast_end, wanted): (usize, usize),
) -> SnappyProgress {
    /// The copy after a literal of each length: its tag and the byte after it.
    const COPIES: [u64; 5] = {
        let mut copies = [0; 5];
        let mut len = 1;
        while len < copies.len() {
            copies[len] = ((WORD - len - 4) << 2 | 1 | WORD << 8) as u64;
            len += 1;
        }
        copies
    };
    // SAFETY: the caller guarantees the word before `written`, and `SLACK` bytes from there
    // on.
    let word = unsafe {
        let to = out.add(written);
        let word = to.sub(WORD).cast::<[u8; WORD]>().read_unaligned();
        to.cast::<[u8; WORD]>().write_unaligned(word);
        u64::from_le_bytes(word)
    };
    written += len;
    // The last 8 bytes.
    #[expect(clippy::cast_possible_truncation, reason = "fewer bits than a word has")]
    let mut word = word.rotate_right((8 * len) as u32);
    while read < fast_end && written < wanted {
        // SAFETY: `read` is before `fast_end`, so that there are `1 + AHEAD` bytes.
        let next = unsafe { block.add(read).cast::<[u8; 8]>().read_unaligned() };
        let (tag, literal) = (usize::from(next[0]), u64::from_le_bytes(next) >> 8);
        let len = (tag >> 2) + 1;
        if tag & 3 != 0 || len >= COPIES.len() {
            break;
        }
        if literal >> (8 * len) & 0xFFFF != COPIES[len] {
            break;
        }
        let changed = (1 << (8 * len)) - 1;
        word = word & !changed | literal & changed;
        // SAFETY: `written` is before `wanted`, so that there are `SLACK` bytes.
        unsafe { out.add(written).cast::<[u8; WORD]>().write_unaligned(word.to_le_bytes()) };
        written += WORD;
        read += 1 + len + 2;
    }
    SnappyProgress { read, written }
}

/// Copies 8 bytes, which are read before any is written.
///
/// # Safety
/// Both pointers must have 8 initialised bytes; those of `to` may be written.
#[inline(always)]
unsafe fn copy_word(from: *const u8, to: *mut u8) {
    // SAFETY: the caller guarantees the bytes of both.
    unsafe { to.cast::<[u8; 8]>().write_unaligned(from.cast::<[u8; 8]>().read_unaligned()) };
}

/// Copies 16 bytes, which are read before any is written.
///
/// # Safety
/// Both pointers must have 16 initialised bytes; those of `to` may be written.
#[inline(always)]
unsafe fn copy_step(from: *const u8, to: *mut u8) {
    // SAFETY: the caller guarantees the bytes of both.
    unsafe { to.cast::<[u8; 16]>().write_unaligned(from.cast::<[u8; 16]>().read_unaligned()) };
}

/// Repeats a pattern by doubling it.
#[derive(Clone, Copy)]
struct Doubling;

impl Repeat for Doubling {
    #[inline(always)]
    unsafe fn repeat(self, to: *mut u8, offset: usize, len: usize) {
        let (mut done, mut distance) = (0, offset);
        // SAFETY: the caller guarantees `offset` bytes before `to` and `SLACK` from there on. Each
        // step writes 16 bytes, and the first `distance` of them are right: these are read from
        // `offset` before `to`. `done` is less than 16 in the first loop (it is `distance` less
        // `offset`), and less than `len`, at most 64, in the second, so that at most `64 + 16`
        // bytes, which is `SLACK`, are written. In the second `distance` is a multiple of `offset`
        // of at least 16, and the bytes that far before `to + done` are done.
        unsafe {
            let from = to.sub(offset);
            while distance < 16 {
                copy_step(from, to.add(done));
                done += distance;
                distance *= 2;
            }
            while done < len {
                let to = to.add(done);
                copy_step(to.sub(distance), to);
                done += 16;
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{_mm_loadu_si128, _mm_shuffle_epi8, _mm_storeu_si128};

    use super::{Repeat, SnappyBlock, SnappyFault, SnappyProgress};

    /// The loop, compiled for AVX2.
    ///
    /// # Safety
    /// The machine must have AVX2, BMI1 and BMI2.
    #[target_feature(enable = "avx2,bmi1,bmi2")]
    pub(super) unsafe fn run(
        elements: SnappyBlock<'_>,
        wanted: usize,
    ) -> Result<SnappyProgress, SnappyFault> {
        elements.run(ShuffledPattern, wanted)
    }

    /// Repeats a pattern in a register; made in [`run`] alone, where its instructions are there.
    #[derive(Clone, Copy)]
    struct ShuffledPattern;

    /// For each length of a pattern, the indices that repeat it.
    const REPEATED: [[u8; 16]; 16] = {
        let mut table = [[0; 16]; 16];
        let mut len: u8 = 1;
        while len < 16 {
            let mut at: u8 = 0;
            while at < 16 {
                table[len as usize][at as usize] = at % len;
                at += 1;
            }
            len += 1;
        }
        table
    };

    /// For each length of a pattern, bytes of as many whole ones as a register holds.
    const WHOLE: [usize; 16] = [0, 16, 16, 15, 16, 15, 12, 14, 16, 9, 10, 11, 12, 13, 14, 15];

    impl Repeat for ShuffledPattern {
        #[inline(always)]
        unsafe fn repeat(self, to: *mut u8, offset: usize, len: usize) {
            let (indices, step) = (&REPEATED[offset], WHOLE[offset]);
            // SAFETY: the caller guarantees `offset` bytes before `to`, and `SLACK`, which is
            // `64 + 16`, from there on; a store begins before `len`, at most 64. Every machine that
            // runs this has SSSE3, as `ShuffledPattern` is made where AVX2 is.
            unsafe {
                let bytes = _mm_loadu_si128(to.sub(offset).cast());
                let pattern = _mm_shuffle_epi8(bytes, _mm_loadu_si128(indices.as_ptr().cast()));
                let mut done = 0;
                while done < len {
                    _mm_storeu_si128(to.add(done).cast(), pattern);
                    done += step;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An element as it is thought of.
    #[derive(Debug, Clone, Copy)]
    enum Element {
        Literal(usize),
        /// Length, offset, and bytes of the offset.
        Copy(usize, usize, usize),
    }

    /// Random elements, as bytes of a block, and what comes out.
    fn block(rng: &mut fastrand::Rng, n: usize) -> (Vec<u8>, Vec<u8>) {
        let (mut block, mut out) = (Vec::new(), Vec::new());
        let mut next = Vec::new();
        for _ in 0..n {
            if out.len() >= WORD && next.is_empty() && rng.u8(0..9) == 0 {
                // Words whose first bytes change, from the last to the first.
                for _ in 0..rng.usize(0..5) {
                    let changed = rng.usize(1..5);
                    next.push(Element::Copy(WORD - changed, WORD, 1));
                    next.push(Element::Literal(changed));
                }
                next.push(Element::Copy(rng.usize(4..12), WORD, 1));
            }
            let element = match rng.u8(0..8) {
                _ if !next.is_empty() => next.pop().expect("not empty"),
                _ if out.is_empty() => Element::Literal(rng.usize(1..100)),
                0 => Element::Literal(rng.usize(1..=16)),
                1 => Element::Literal(rng.usize(1..70)),
                2 if rng.u8(0..20) == 0 => Element::Literal(rng.usize(1..70_000)),
                2 | 3 => Element::Copy(rng.usize(4..12), rng.usize(1..=out.len().min(2047)), 1),
                4 => Element::Copy(rng.usize(4..12), rng.usize(1..=out.len().min(20)), 1),
                5 => Element::Copy(rng.usize(1..=64), rng.usize(1..=out.len().min(20)), 2),
                6 => Element::Copy(rng.usize(1..=64), rng.usize(1..=out.len().min(65_535)), 2),
                _ => Element::Copy(rng.usize(1..=64), rng.usize(1..=out.len()), 4),
            };
            match element {
                Element::Literal(len) => {
                    let extra = match len - 1 {
                        0..60 if rng.u8(0..10) > 0 => 0,
                        60..256 => 1,
                        0..65_536 => 2,
                        _ => 3,
                    };
                    let tag = if extra == 0 { len - 1 } else { 59 + extra };
                    block.push((tag << 2) as u8);
                    block.extend(&(len - 1).to_le_bytes()[..extra]);
                    let bytes: Vec<u8> = (0..len).map(|_| rng.u8(..)).collect();
                    block.extend(&bytes);
                    out.extend(&bytes);
                }
                Element::Copy(len, offset, bytes) => {
                    let tag = match bytes {
                        1 => 1 | (len - 4) << 2 | (offset >> 8) << 5,
                        2 => 2 | (len - 1) << 2,
                        _ => 3 | (len - 1) << 2,
                    };
                    block.push(tag as u8);
                    block.extend(&offset.to_le_bytes()[..bytes]);
                    for _ in 0..len {
                        out.push(out[out.len() - offset]);
                    }
                }
            }
        }
        (block, out)
    }

    #[test]
    fn random_elements_come_out_as_they_are_thought_of() {
        let seed = fastrand::u64(..);
        let mut rng = fastrand::Rng::with_seed(seed);
        for case in 0..(if cfg!(miri) { 6 } else { 300 }) {
            let n = rng.usize(0..400);
            let (block, expected) = block(&mut rng, n);
            for isa in Isa::available() {
                let mut out = vec![0xA5; expected.len() + SLACK];
                let done = decompress_with(isa, &block, expected.len(), &mut out);
                let all = SnappyProgress { read: block.len(), written: expected.len() };
                assert_eq!(done, Ok(all), "seed {seed}, case {case}, {isa:?}");
                assert_eq!(out[..expected.len()], expected, "seed {seed}, case {case}, {isa:?}");
            }
        }
    }

    #[test]
    fn the_start_of_a_block_is_the_start_of_what_comes_out() {
        let seed = fastrand::u64(..);
        let mut rng = fastrand::Rng::with_seed(seed);
        for case in 0..(if cfg!(miri) { 20 } else { 2000 }) {
            let n = rng.usize(1..60);
            let (block, expected) = block(&mut rng, n);
            let wanted = rng.usize(0..=expected.len());
            for isa in Isa::available() {
                let mut out = vec![0; wanted + MAX_SHORT + SLACK];
                let done = decompress_with(isa, &block, wanted, &mut out).unwrap();
                assert!(done.written >= wanted, "seed {seed}, case {case}, {isa:?}");
                let (found, expected) = (&out[..done.written], &expected[..done.written]);
                assert_eq!(found, expected, "seed {seed}, case {case}, {isa:?}");
            }
        }
    }

    #[test]
    fn broken_blocks_end_alike_with_every_instruction_set_and_never_beyond_the_output() {
        let seed = fastrand::u64(..);
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut refused = 0;
        let cases = if cfg!(miri) { 40 } else { 5000 };
        for case in 0..cases {
            let n = rng.usize(1..80);
            let (mut block, expected) = block(&mut rng, n);
            for _ in 0..rng.usize(1..4) {
                let at = rng.usize(..block.len());
                block[at] = rng.u8(..);
            }
            block.truncate(rng.usize(..=block.len()));
            let len = expected.len().saturating_sub(rng.usize(0..3));
            let ends: Vec<_> = Isa::available()
                .into_iter()
                .map(|isa| {
                    let mut out = vec![0; len + SLACK];
                    let end = decompress_with(isa, &block, len, &mut out);
                    assert!(end.is_ok_and(|done| done.written <= len) || end.is_err());
                    end.ok().map(|done| (done, out[..done.written].to_vec()))
                })
                .collect();
            assert!(ends.iter().all(|end| *end == ends[0]), "seed {seed}, case {case}");
            refused += usize::from(ends[0].is_none());
        }
        assert!(
            (cases / 10..cases / 50 * 49).contains(&refused) || cfg!(miri),
            "{refused} of {cases} were refused, seed {seed}"
        );
    }

    #[test]
    fn words_that_follow_each_other_come_out() {
        // Nine bytes, then the word before with its first byte changed, a thousand times.
        let mut block = vec![8 << 2, 0, 1, 2, 3, 4, 5, 6, 7, 8];
        let mut expected = block[1..].to_vec();
        block.extend([(7 - 4) << 2 | 1, WORD as u8]);
        expected.extend([1, 2, 3, 4, 5, 6, 7]);
        for i in 0..1000u32 {
            block.extend([0, i as u8, (7 - 4) << 2 | 1, WORD as u8]);
            expected.push(i as u8);
            let at = expected.len() - WORD;
            expected.extend_from_within(at..at + 7);
        }
        for isa in Isa::available() {
            for wanted in [expected.len(), 1000, 9, 17] {
                let mut out = vec![0; expected.len() + SLACK];
                let done = decompress_with(isa, &block, wanted, &mut out).unwrap();
                assert!(done.written >= wanted, "{isa:?}");
                assert_eq!(out[..done.written], expected[..done.written], "{isa:?}");
            }
        }
    }

    #[test]
    fn faults_say_where_they_are() {
        let end = |block: &[u8], len: usize| {
            let mut out = vec![0; len + SLACK];
            decompress(block, len, &mut out)
        };
        // A literal "ab", then a copy of 4 from 3 bytes before.
        let beyond = SnappyFault::Offset { at: 3, offset: 3, written: 2 };
        assert_eq!(end(&[1 << 2, b'a', b'b', 1, 3], 6), Err(beyond));
        let zero = SnappyFault::Offset { at: 3, offset: 0, written: 2 };
        assert_eq!(end(&[1 << 2, b'a', b'b', 1, 0], 6), Err(zero));
        assert_eq!(end(&[1 << 2, b'a'], 2), Err(SnappyFault::Cut(0)));
        assert_eq!(end(&[1 << 2, b'a', b'b', 2, 1], 6), Err(SnappyFault::Cut(3)));
        assert_eq!(end(&[1 << 2, b'a', b'b', 1, 2], 5), Err(SnappyFault::Long(3)));
        // Of a literal that does not fit, the start.
        assert_eq!(end(&[2 << 2, 7, 8, 9], 2), Ok(SnappyProgress { read: 0, written: 2 }));
    }
}
