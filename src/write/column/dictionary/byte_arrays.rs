//! Interning of byte strings, straight from the buffers that they lie in.
//!
//! A slot of the table has a part of the hash, a code, and the place of the entry's bytes. Bytes
//! are copied to one vector, where they lie closer together than in the rows. Short ones are padded
//! with zeros. Trap: strings may be made to collide; a lookup gives up after a while.

use arrow_buffer::ArrowNativeType;

use super::hash::{MIX, fold};
use super::limits::{AHEAD, BLOCK, DictionaryGrowth, DictionaryLimits, MAX_PROBES, NONE};
use crate::free_lists::FreeLists;
use crate::simd::prefetch;

/// Maximum bytes of a short string.
const MAX_SHORT: usize = 32;

/// Maximum bytes of a string that two words hold.
const MAX_HALF: usize = 16;

/// All bytes of a short string, padded with zeros.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct ShortValue([u64; 4]);

/// Masks that keep the first bytes of 32, by their number.
const MASKS: [ShortValue; MAX_SHORT + 1] = {
    let mut masks = [ShortValue([0; 4]); MAX_SHORT + 1];
    let mut n = 1;
    while n <= MAX_SHORT {
        masks[n] = masks[n - 1];
        masks[n].0[(n - 1) / 8] |= 0xFF << ((n - 1) % 8 * 8);
        n += 1;
    }
    masks
};

/// The words at the beginning of some bytes.
#[inline(always)]
fn load<const N: usize>(bytes: &[u8]) -> Option<[u64; N]> {
    let (words, _) = bytes.as_chunks::<8>();
    let words = words.first_chunk::<N>()?;
    Some(words.map(u64::from_le_bytes))
}

impl ShortValue {
    /// A value of at most `8 * N` bytes that stands at this place; `None` if the buffer ends too
    /// soon after it.
    #[inline(always)]
    fn of<const N: usize>(buffer: &[u8], start: usize, len: usize) -> Option<Self> {
        let mut words = Self(MASKS.get(len)?.0);
        let found = load::<N>(buffer.get(start..)?)?;
        for (i, word) in words.0.iter_mut().enumerate() {
            *word = if let Some(found) = found.get(i) { *word & found } else { 0 };
        }
        Some(words)
    }

    #[inline(always)]
    fn begin_with<const N: usize>(self, words: [u64; N]) -> bool {
        self.0.iter().zip(words).fold(0, |unlike, (a, b)| unlike | (a ^ b)) == 0
    }

    #[cold]
    fn at_the_end(value: &[u8]) -> Option<Self> {
        let mut bytes = [0; MAX_SHORT];
        bytes.get_mut(..value.len())?.copy_from_slice(value);
        Some(Self(load(&bytes)?))
    }

    /// Of a value of at most `8 * N` bytes; the same for each `N` that there is.
    #[inline(always)]
    fn hash<const N: usize>(self, len: usize) -> u64 {
        let [a, b, c, d] = self.0;
        let hash = fold(a ^ MIX[0], b ^ MIX[1] ^ len as u64);
        if N <= 2 { hash } else { hash ^ fold(c, MIX[2]) ^ fold(d, MIX[3]) }
    }
}

/// Bytes of a step through a longer value.
const STEP: usize = 16;

/// Of a longer value.
#[inline(always)]
fn hash_long(value: &[u8]) -> Option<u64> {
    let mut hash = value.len() as u64 ^ MIX[2];
    let (steps, _) = value.as_chunks::<STEP>();
    for step in steps {
        let [a, b] = load(step)?;
        hash = fold(a ^ hash, b ^ MIX[3]);
    }
    let [a, b] = load(value.last_chunk::<STEP>()?)?;
    Some(fold(a ^ hash, b ^ MIX[1]))
}

/// Whether longer values are equal.
#[inline(always)]
fn same(a: &[u8], b: &[u8]) -> bool {
    let (pairs, _) = a.as_chunks::<STEP>();
    let (others, _) = b.as_chunks::<STEP>();
    let last = |value: &[u8]| value.last_chunk::<STEP>().copied().map(u128::from_le_bytes);
    a.len() == b.len()
        && pairs.iter().zip(others).all(|(a, b)| u128::from_le_bytes(*a) == u128::from_le_bytes(*b))
        && last(a) == last(b)
}

#[derive(Debug, Clone, Copy)]
struct Slot {
    /// A part of the hash.
    tag: u32,
    code: u32,
    /// Where the bytes are copied to, if they are.
    at: u32,
    len: u32,
}

/// The part of a hash that tells values apart without looking at them.
#[expect(clippy::cast_possible_truncation, reason = "the low half")]
#[inline(always)]
fn tag(hash: u64) -> u32 {
    hash as u32
}

/// The place of a value that is not copied.
const NOWHERE: u32 = u32::MAX;

/// Bits of the first table.
const FIRST_BITS: u32 = 8;

/// Tables of more bits are likely to lie beyond the nearest caches.
const NEAR_BITS: u32 = 12;

/// Maximum bytes of a string that is copied.
const MAX_COPIED: usize = 128;

/// A value that is to be looked up.
#[derive(Debug, Clone, Copy, Default)]
struct Lookup<'v> {
    words: ShortValue,
    hash: u64,
    value: &'v [u8],
}

impl<'v> Lookup<'v> {
    #[inline(always)]
    fn of(buffer: &'v [u8], start: usize, len: usize) -> Option<Self> {
        let value = buffer.get(start..start.checked_add(len)?)?;
        if len > MAX_SHORT {
            // The format has 2 GiB at most.
            i32::try_from(len).ok()?;
            return Some(Self { words: ShortValue::default(), hash: hash_long(value)?, value });
        }
        let words = match ShortValue::of::<4>(buffer, start, len) {
            Some(words) => words,
            None => ShortValue::at_the_end(value)?,
        };
        Some(Self { words, hash: words.hash::<4>(len), value })
    }
}

/// Finds the distinct ones of the values that are pushed.
pub(super) struct DictionaryBuilder<'v> {
    table: ByteArrayTable<'v>,
    /// Those that are looked up next.
    block: [Lookup<'v>; AHEAD],
    filled: usize,
}

/// An open-addressed table of byte strings, and the values seen so far.
struct ByteArrayTable<'v> {
    slots: Vec<Slot>,
    bits: u32,
    entries: Vec<&'v [u8]>,
    hashes: Vec<u64>,
    copies: Vec<u8>,
    codes: Vec<u32>,
    free_lists: FreeLists,
    limits: DictionaryLimits,
    growth: DictionaryGrowth,
    next_check: usize,
    /// Of the entries up to `counted`, as PLAIN.
    bytes: usize,
    counted: usize,
}

impl<'v> DictionaryBuilder<'v> {
    /// For `n` values.
    pub(super) fn new(n: usize, limits: DictionaryLimits, free_lists: &FreeLists) -> Self {
        let table = ByteArrayTable {
            slots: empty(FIRST_BITS, free_lists),
            bits: FIRST_BITS,
            entries: Vec::new(),
            hashes: Vec::new(),
            copies: Vec::new(),
            codes: free_lists.take(n),
            free_lists: free_lists.clone(),
            limits,
            growth: DictionaryGrowth::new(n, size_of::<u32>(), limits),
            next_check: BLOCK,
            bytes: 0,
            counted: 0,
        };
        Self { table, block: [Lookup::default(); AHEAD], filled: 0 }
    }

    /// Looks up the value that stands at this place of a buffer; `None` where it is time to give
    /// up.
    #[inline(always)]
    pub(super) fn push(&mut self, buffer: &'v [u8], start: usize, len: usize) -> Option<()> {
        *self.block.get_mut(self.filled)? = Lookup::of(buffer, start, len)?;
        self.filled += 1;
        if self.filled == AHEAD { self.flush() } else { Some(()) }
    }

    #[inline(never)]
    fn flush(&mut self) -> Option<()> {
        let block = self.block.get(..self.filled)?;
        self.filled = 0;
        self.table.look_up(block)
    }

    /// Looks up the values that stand between offsets, one more than values; `None` where it is
    /// time to give up.
    pub(super) fn push_all<O: ArrowNativeType>(
        &mut self,
        buffer: &'v [u8],
        offsets: &[O],
    ) -> Option<()> {
        let n = offsets.len().saturating_sub(1);
        for first in (0..n).step_by(AHEAD) {
            let offsets = offsets.get(first..=(first + AHEAD).min(n))?;
            let (starts, ends) = (offsets.get(..offsets.len() - 1)?, offsets.get(1..)?);
            let places = starts.iter().zip(ends).map(|(start, end)| {
                let start = start.as_usize();
                (start, end.as_usize().wrapping_sub(start))
            });
            let longest = places.clone().map(|(_, len)| len).max().unwrap_or(0);
            if longest <= MAX_SHORT && self.table.bits <= NEAR_BITS && starts.len() == AHEAD {
                if self.filled > 0 {
                    self.flush()?;
                }
                let done = match longest {
                    ..=MAX_HALF => self.table.look_up_near::<2>(buffer, places.clone())?,
                    _ => self.table.look_up_near::<4>(buffer, places.clone())?,
                };
                if done {
                    continue;
                }
            }
            for (start, len) in places {
                self.push(buffer, start, len)?;
            }
        }
        Some(())
    }

    /// The entries, and the code of every value; `None` if it is better to give up.
    pub(super) fn finish(mut self) -> Option<(Vec<&'v [u8]>, Vec<u32>)> {
        self.flush()?;
        self.table.check()?;
        let table = &mut self.table;
        Some((std::mem::take(&mut table.entries), std::mem::take(&mut table.codes)))
    }
}

impl<'v> ByteArrayTable<'v> {
    #[inline]
    fn look_up(&mut self, block: &[Lookup<'v>]) -> Option<()> {
        self.reserve()?;
        if self.bits > NEAR_BITS {
            self.fetch(block);
        }
        let mut codes = [0; AHEAD];
        for (wanted, code) in block.iter().zip(&mut codes) {
            *code = self.code(wanted)?;
        }
        self.push(codes.get(..block.len())?)
    }

    /// Looks up short values, while the table is small enough to be near; `Some(false)` if this is
    /// not for them.
    #[inline]
    fn look_up_near<const N: usize>(
        &mut self,
        buffer: &'v [u8],
        places: impl Iterator<Item = (usize, usize)>,
    ) -> Option<bool> {
        self.reserve()?;
        let mut codes = [0; AHEAD];
        for ((start, len), code) in places.zip(&mut codes) {
            let Some(words) = ShortValue::of::<N>(buffer, start, len) else {
                // At the end of the buffer. Those that were looked up already will be found again.
                return Some(false);
            };
            let hash = words.hash::<N>(len);
            let first = self.slots.get(self.home(hash))?;
            *code = match self.copies.get(first.at as usize..).and_then(load::<N>) {
                Some(copy) if first.len as usize == len && words.begin_with(copy) => first.code,
                _ => {
                    let value = buffer.get(start..start + len)?;
                    self.code(&Lookup { words, hash, value })?
                }
            };
        }
        self.push(&codes)?;
        Some(true)
    }

    /// For another block of values.
    #[inline(always)]
    fn reserve(&mut self) -> Option<()> {
        if (self.entries.len() + AHEAD) * 2 > self.slots.len() { self.grow() } else { Some(()) }
    }

    #[inline(always)]
    fn push(&mut self, codes: &[u32]) -> Option<()> {
        self.codes.extend_from_slice(codes);
        if self.codes.len() >= self.next_check { self.check() } else { Some(()) }
    }

    /// Prefetches all that the lookups of a block read, so that the cache misses overlap.
    #[inline(always)]
    fn fetch(&self, block: &[Lookup<'v>]) {
        for wanted in block {
            prefetch(&self.slots, self.home(wanted.hash));
        }
        for wanted in block {
            if let Some(slot) = self.slots.get(self.home(wanted.hash))
                && slot.tag == tag(wanted.hash)
            {
                let at = slot.at as usize;
                prefetch(&self.copies, at);
                prefetch(&self.copies, at + (slot.len as usize).saturating_sub(1));
            }
        }
    }

    /// The slot where a value is looked for first.
    #[inline(always)]
    fn home(&self, hash: u64) -> usize {
        usize::try_from(hash >> (64 - self.bits)).expect("a table has fewer than 2^32 slots")
    }

    /// The code of a value; the next one if it is new. `None` if it cannot be found in reasonable
    /// time.
    #[inline(always)]
    fn code(&mut self, wanted: &Lookup<'v>) -> Option<u32> {
        let mask = self.slots.len() - 1;
        let home = self.home(wanted.hash);
        for at in home..home + MAX_PROBES {
            let slot = *self.slots.get(at & mask)?;
            if slot.code == NONE {
                return self.insert(at & mask, wanted);
            }
            if slot.tag == tag(wanted.hash) && self.is(slot, wanted)? {
                return Some(slot.code);
            }
        }
        None
    }

    /// Whether an entry with the same tag is this value.
    #[inline(always)]
    fn is(&self, slot: Slot, wanted: &Lookup<'v>) -> Option<bool> {
        let len = wanted.value.len();
        if slot.len as usize != len {
            return Some(false);
        }
        let at = slot.at as usize;
        Some(match len {
            ..=MAX_SHORT => wanted.words.begin_with(load::<4>(self.copies.get(at..)?)?),
            _ => match self.copies.get(at..at + len) {
                Some(copy) => same(copy, wanted.value),
                None => self.entries.get(slot.code as usize)? == &wanted.value,
            },
        })
    }

    #[inline(never)]
    fn insert(&mut self, place: usize, wanted: &Lookup<'v>) -> Option<u32> {
        let code = u32::try_from(self.entries.len()).ok()?;
        let len = u32::try_from(wanted.value.len()).ok()?;
        let mut at = NOWHERE;
        if wanted.value.len() <= MAX_COPIED {
            at = u32::try_from(self.copies.len()).ok()?;
            self.free_lists.grow(&mut self.copies, MAX_COPIED);
            self.copies.extend_from_slice(wanted.value);
            self.copies.resize(at as usize + wanted.value.len().max(MAX_SHORT), 0);
        }
        *self.slots.get_mut(place)? = Slot { tag: tag(wanted.hash), code, at, len };
        self.entries.push(wanted.value);
        self.free_lists.grow(&mut self.hashes, 1);
        self.hashes.push(wanted.hash);
        Some(code)
    }

    #[cold]
    fn grow(&mut self) -> Option<()> {
        // Small tables grow faster, because they are soon too small again.
        self.bits += if self.bits < NEAR_BITS { 2 } else { 1 };
        let mask = (1 << self.bits) - 1;
        let mut slots = empty(self.bits, &self.free_lists);
        for old in self.slots.iter().filter(|slot| slot.code != NONE) {
            let mut at = self.home(*self.hashes.get(old.code as usize)?);
            while slots.get(at & mask)?.code != NONE {
                at += 1;
            }
            *slots.get_mut(at & mask)? = *old;
        }
        self.free_lists.give(std::mem::replace(&mut self.slots, slots));
        Some(())
    }

    #[cold]
    fn check(&mut self) -> Option<()> {
        let seen = self.codes.len();
        // At multiples, wherever the last block of values ended.
        self.next_check = (seen / BLOCK + 1) * BLOCK;
        let fresh = self.entries.get(self.counted..).expect("entries are only added");
        self.bytes += fresh.iter().map(|entry| entry.len() + size_of::<u32>()).sum::<usize>();
        self.counted = self.entries.len();
        (self.bytes <= self.limits.bytes && self.growth.goes_on(seen, self.counted)).then_some(())
    }
}

/// The memory is used again by the table of another chunk.
impl Drop for ByteArrayTable<'_> {
    fn drop(&mut self) {
        self.free_lists.give(std::mem::take(&mut self.slots));
        self.free_lists.give(std::mem::take(&mut self.hashes));
        self.free_lists.give(std::mem::take(&mut self.copies));
        self.free_lists.give(std::mem::take(&mut self.codes));
    }
}

fn empty(bits: u32, free_lists: &FreeLists) -> Vec<Slot> {
    let mut slots = free_lists.take(1 << bits);
    slots.resize(1 << bits, Slot { tag: 0, code: NONE, at: NOWHERE, len: 0 });
    slots
}
