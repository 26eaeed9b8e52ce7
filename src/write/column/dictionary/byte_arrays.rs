//! Interns byte strings, straight from the buffers that they lie in.
//!
//! A slot of the table has a part of the hash, a code, and the entry's bytes if there are at most
//! 16, else their place: entries of up to 128 bytes are copied to one vector, where they lie closer
//! together than in the rows. Short ones are padded with zeros. Trap: strings may be made to
//! collide; a lookup gives up after a while.

use arrow_buffer::ArrowNativeType;

use super::hash::{MIX, fold};
use super::limits::{AHEAD, BLOCK, DictionaryGrowth, MAX_PROBES, NONE};
use super::parts::DictionaryBuilder;
use crate::free_lists::FreeLists;
use crate::memory;
use crate::simd::prefetch;

/// Maximum bytes of a short string.
const MAX_SHORT: usize = 32;

/// Maximum bytes of a string that a slot holds.
const MAX_HELD: usize = 16;

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
    /// The value of at most `8 * N` bytes at this place; `None` if the buffer ends too soon after
    /// it.
    #[inline(always)]
    fn from_buffer<const N: usize>(buffer: &[u8], start: usize, len: usize) -> Option<Self> {
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

    /// The hash of a value of at most `8 * N` bytes; the same for each `N`.
    #[inline(always)]
    fn hash<const N: usize>(self, len: usize) -> u64 {
        let [a, b, c, d] = self.0;
        let hash = fold(a ^ MIX[0], b ^ MIX[1] ^ len as u64);
        if N <= 2 { hash } else { hash ^ fold(c, MIX[2]) ^ fold(d, MIX[3]) }
    }
}

/// Bytes of a step through a longer value.
const STEP: usize = 16;

/// The hash of a longer value.
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

/// A place of the table. All that is looked at of an entry of at most 16 bytes is here.
#[derive(Debug, Clone, Copy)]
struct TableSlot {
    /// See [`tag`].
    tag: u32,
    code: u32,
    /// The bytes of an entry of at most 16, padded with zeros. Of a longer one, how many there are,
    /// and where they are copied to, or [`NOWHERE`].
    words: [u64; 2],
}

impl TableSlot {
    /// No entry has this tag: there is no such length.
    const EMPTY: Self = Self { tag: LONGER - 1, code: NONE, words: [0; 2] };

    /// The bytes of an entry of more than 16.
    #[inline(always)]
    fn len(self) -> usize {
        let [len, _] = self.words;
        len.as_usize()
    }

    /// Where the bytes of an entry of more than 16 are copied to.
    #[inline(always)]
    fn at(self) -> usize {
        let [_, at] = self.words;
        at.as_usize()
    }

    /// Whether this is the entry for the value of this tag, which has at most 16 bytes.
    #[inline(always)]
    fn is_held(self, tag: u32, words: ShortValue) -> bool {
        let ShortValue([a, b, ..]) = words;
        let [c, d] = self.words;
        u64::from(self.tag ^ tag) | (a ^ c) | (b ^ d) == 0
    }
}

/// Distinguishes values without looking at them: a part of the hash, and the length of a short
/// value.
#[expect(clippy::cast_possible_truncation, reason = "the low half, and at most 32")]
#[inline(always)]
fn tag(hash: u64, len: usize) -> u32 {
    let class = if len <= MAX_SHORT { len as u32 } else { LONGER };
    (hash as u32) << 6 | class
}

/// The length of values that are not short in a [`tag`].
const LONGER: u32 = 63;

/// The place of a value that is not copied.
const NOWHERE: u64 = u64::MAX;

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
    fn new(buffer: &'v [u8], start: usize, len: usize) -> Option<Self> {
        let value = buffer.get(start..start.checked_add(len)?)?;
        if len > MAX_SHORT {
            // The format has 2 GiB at most.
            i32::try_from(len).ok()?;
            return Some(Self { words: ShortValue::default(), hash: hash_long(value)?, value });
        }
        let words = match ShortValue::from_buffer::<4>(buffer, start, len) {
            Some(words) => words,
            None => ShortValue::at_the_end(value)?,
        };
        Some(Self { words, hash: words.hash::<4>(len), value })
    }
}

/// A value of at most 16 bytes that is to be looked up.
#[derive(Debug, Clone, Copy, Default)]
struct HeldLookup {
    words: ShortValue,
    hash: u64,
    start: usize,
    len: usize,
}

/// Finds the distinct ones of the byte strings that are pushed.
pub(super) struct ByteArrayBuilder<'v> {
    table: ByteArrayTable<'v>,
    /// The values that are looked up next.
    block: [Lookup<'v>; AHEAD],
    filled: usize,
    /// How many are looked up together: fewer before a check of the growth.
    wanted: usize,
}

/// An open-addressed table of byte strings, and the values seen so far.
struct ByteArrayTable<'v> {
    slots: Vec<TableSlot>,
    bits: u32,
    entries: Vec<&'v [u8]>,
    hashes: Vec<u64>,
    copies: Vec<u8>,
    /// The entries that were new while the table was near; zeros replace those that are not short.
    near: Vec<ShortValue>,
    codes: Vec<u32>,
    free_lists: FreeLists,
    growth: DictionaryGrowth,
    /// A multiple of a block, greater than the number of codes.
    next_check: usize,
    /// Bytes of the entries up to `counted`, as PLAIN.
    bytes: usize,
    counted: usize,
}

impl<'v> ByteArrayBuilder<'v> {
    /// For `n` values.
    pub(super) fn new(n: usize, growth: DictionaryGrowth, free_lists: &FreeLists) -> Option<Self> {
        let table = ByteArrayTable {
            slots: empty(FIRST_BITS, free_lists)?,
            bits: FIRST_BITS,
            entries: Vec::new(),
            hashes: Vec::new(),
            copies: Vec::new(),
            near: Vec::new(),
            codes: free_lists.take(n).ok()?,
            free_lists: free_lists.clone(),
            growth,
            next_check: BLOCK,
            bytes: 0,
            counted: 0,
        };
        Some(Self { table, block: [Lookup::default(); AHEAD], filled: 0, wanted: AHEAD })
    }

    /// Looks up the value at this place of a buffer; `None` if it is time to give up.
    #[inline(always)]
    pub(super) fn push(&mut self, buffer: &'v [u8], start: usize, len: usize) -> Option<()> {
        *self.block.get_mut(self.filled)? = Lookup::new(buffer, start, len)?;
        self.filled += 1;
        if self.filled == self.wanted { self.flush() } else { Some(()) }
    }

    #[inline(never)]
    fn flush(&mut self) -> Option<()> {
        let block = self.block.get(..self.filled)?;
        self.filled = 0;
        self.table.look_up(block)?;
        self.wanted = self.table.until_check().min(AHEAD);
        Some(())
    }

    /// Looks up the values between offsets, one more than values; `None` if it is time to give up.
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
            let is_near = self.table.bits <= NEAR_BITS;
            let is_whole = starts.len() == AHEAD && self.table.until_check() >= self.filled + AHEAD;
            if is_whole && (longest <= MAX_HELD || is_near && longest <= MAX_SHORT) {
                if self.filled > 0 {
                    self.flush()?;
                }
                let places = places.clone();
                let done = match longest {
                    ..=MAX_HELD if is_near => self.table.look_up_near::<2>(buffer, places)?,
                    ..=MAX_HELD => self.table.look_up_held(buffer, places)?,
                    _ => self.table.look_up_near::<4>(buffer, places)?,
                };
                self.wanted = self.table.until_check().min(AHEAD);
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
}

impl<'v> DictionaryBuilder for ByteArrayBuilder<'v> {
    type Entry = &'v [u8];

    fn growth(&mut self) -> &mut DictionaryGrowth {
        &mut self.table.growth
    }

    fn size(&mut self) -> (usize, usize) {
        self.table.count_bytes();
        (self.table.counted, self.table.bytes)
    }

    fn merge(&mut self, entries: &[&'v [u8]]) -> Option<Vec<u32>> {
        let mut codes = memory::vec_for(entries.len()).ok()?;
        let mut block = [Lookup::default(); AHEAD];
        for some in entries.chunks(AHEAD) {
            for (entry, wanted) in some.iter().zip(&mut block) {
                *wanted = Lookup::new(entry, 0, entry.len())?;
            }
            let of_some = self.table.codes_of(block.get(..some.len())?)?;
            codes.extend_from_slice(of_some.get(..some.len())?);
        }
        Some(codes)
    }

    fn append_codes(&mut self, n: usize) -> Option<&mut [u32]> {
        let codes = &mut self.table.codes;
        let start = codes.len();
        memory::room(codes, n).ok()?;
        codes.resize(start + n, 0);
        self.table.next_check = (codes.len() / BLOCK + 1) * BLOCK;
        self.wanted = self.table.until_check().min(AHEAD);
        self.table.codes.get_mut(start..)
    }

    fn end(&mut self) -> Option<()> {
        self.flush()?;
        self.table.check()
    }

    fn into_dictionary(mut self) -> (Vec<&'v [u8]>, Vec<u32>) {
        let table = &mut self.table;
        (std::mem::take(&mut table.entries), std::mem::take(&mut table.codes))
    }
}

impl<'v> ByteArrayTable<'v> {
    #[inline]
    fn look_up(&mut self, block: &[Lookup<'v>]) -> Option<()> {
        let codes = self.codes_of(block)?;
        self.push(codes.get(..block.len())?)
    }

    /// The codes of a block of values.
    #[inline(always)]
    fn codes_of(&mut self, block: &[Lookup<'v>]) -> Option<[u32; AHEAD]> {
        self.reserve()?;
        if self.bits > NEAR_BITS {
            self.fetch(block);
        }
        let mut codes = [0; AHEAD];
        for (wanted, code) in block.iter().zip(&mut codes) {
            *code = self.code(wanted)?;
        }
        Some(codes)
    }

    /// Looks up values of at most 16 bytes in a table that is too large to be near; `Some(false)`
    /// if the buffer ends too soon after one.
    #[inline]
    fn look_up_held(
        &mut self,
        buffer: &'v [u8],
        places: impl Iterator<Item = (usize, usize)>,
    ) -> Option<bool> {
        self.reserve()?;
        let mut block = [HeldLookup::default(); AHEAD];
        for ((start, len), wanted) in places.zip(&mut block) {
            let Some(words) = ShortValue::from_buffer::<2>(buffer, start, len) else {
                return Some(false);
            };
            *wanted = HeldLookup { words, hash: words.hash::<2>(len), start, len };
        }
        for wanted in &block {
            prefetch(&self.slots, self.home(wanted.hash));
        }
        let mut codes = [0; AHEAD];
        for (&HeldLookup { words, hash, start, len }, code) in block.iter().zip(&mut codes) {
            let first = self.slots.get(self.home(hash))?;
            *code = match first.is_held(tag(hash, len), words) {
                true => first.code,
                false => {
                    let value = buffer.get(start..start + len)?;
                    self.code(&Lookup { words, hash, value })?
                }
            };
        }
        self.push(&codes)?;
        Some(true)
    }

    /// Looks up values of at most `8 * N` bytes, while the table is small enough to be near;
    /// `Some(false)` if the buffer ends too soon after one.
    #[inline]
    fn look_up_near<const N: usize>(
        &mut self,
        buffer: &'v [u8],
        places: impl Iterator<Item = (usize, usize)>,
    ) -> Option<bool> {
        self.reserve()?;
        let mut codes = [0; AHEAD];
        for ((start, len), code) in places.zip(&mut codes) {
            let Some(words) = ShortValue::from_buffer::<N>(buffer, start, len) else {
                // Values that were looked up already will be found again.
                return Some(false);
            };
            let hash = words.hash::<N>(len);
            let first = self.slots.get(self.home(hash))?;
            let tag = tag(hash, len);
            let is_first = match N {
                ..=2 => first.is_held(tag, words),
                _ => first.tag == tag && self.near.get(first.code as usize) == Some(&words),
            };
            *code = match is_first {
                true => first.code,
                false => {
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
        memory::append(&mut self.codes, codes).ok()?;
        if self.codes.len() >= self.next_check { self.check() } else { Some(()) }
    }

    /// Prefetches all that the lookups of a block read, so that the cache misses overlap.
    #[inline(always)]
    fn fetch(&self, block: &[Lookup<'v>]) {
        for wanted in block {
            prefetch(&self.slots, self.home(wanted.hash));
        }
        for wanted in block {
            if wanted.value.len() > MAX_HELD
                && let Some(slot) = self.slots.get(self.home(wanted.hash))
                && slot.tag == tag(wanted.hash, wanted.value.len())
            {
                prefetch(&self.copies, slot.at());
                prefetch(&self.copies, slot.at().saturating_add(slot.len() - 1));
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
        let (home, tag) = (self.home(wanted.hash), tag(wanted.hash, wanted.value.len()));
        for at in home..home + MAX_PROBES {
            let slot = *self.slots.get(at & mask)?;
            if slot.code == NONE {
                return self.insert(at & mask, wanted);
            }
            if slot.tag == tag && self.is(slot, wanted)? {
                return Some(slot.code);
            }
        }
        None
    }

    /// Whether an entry with the same tag is this value.
    #[inline(always)]
    fn is(&self, slot: TableSlot, wanted: &Lookup<'v>) -> Option<bool> {
        let len = wanted.value.len();
        if len <= MAX_HELD {
            return Some(slot.is_held(slot.tag, wanted.words));
        }
        if slot.len() != len {
            return Some(false);
        }
        let copy = self.copies.get(slot.at()..);
        Some(match len {
            ..=MAX_SHORT => wanted.words.begin_with(load::<4>(copy?)?),
            _ => match copy.and_then(|copy| copy.get(..len)) {
                Some(copy) => same(copy, wanted.value),
                None => self.entries.get(slot.code as usize)? == &wanted.value,
            },
        })
    }

    #[inline(never)]
    fn insert(&mut self, place: usize, wanted: &Lookup<'v>) -> Option<u32> {
        let code = u32::try_from(self.entries.len()).ok()?;
        let len = wanted.value.len();
        let words = if len <= MAX_HELD {
            let ShortValue([a, b, ..]) = wanted.words;
            [a, b]
        } else {
            let mut at = NOWHERE;
            if len <= MAX_COPIED {
                at = self.copies.len() as u64;
                self.free_lists.grow(&mut self.copies, MAX_COPIED).ok()?;
                self.copies.extend_from_slice(wanted.value);
                self.copies.resize(self.copies.len() + MAX_SHORT.saturating_sub(len), 0);
            }
            [len as u64, at]
        };
        *self.slots.get_mut(place)? = TableSlot { tag: tag(wanted.hash, len), code, words };
        if self.bits <= NEAR_BITS {
            memory::push(&mut self.near, wanted.words).ok()?;
        }
        memory::push(&mut self.entries, wanted.value).ok()?;
        self.free_lists.grow(&mut self.hashes, 1).ok()?;
        self.hashes.push(wanted.hash);
        Some(code)
    }

    #[cold]
    fn grow(&mut self) -> Option<()> {
        // Small tables grow faster, because they are soon too small again.
        self.bits += if self.bits < NEAR_BITS { 2 } else { 1 };
        let mask = (1 << self.bits) - 1;
        let mut slots = empty(self.bits, &self.free_lists)?;
        for old in self.slots.iter().filter(|slot| slot.code != NONE) {
            let mut at = self.home(*self.hashes.get(old.code as usize)?);
            while slots.get(at & mask)?.code != NONE {
                at += 1;
            }
            *slots.get_mut(at & mask)? = *old;
        }
        self.free_lists.put_back(std::mem::replace(&mut self.slots, slots));
        Some(())
    }

    /// Values before the next check of the growth.
    #[inline(always)]
    fn until_check(&self) -> usize {
        self.next_check - self.codes.len()
    }

    #[cold]
    fn check(&mut self) -> Option<()> {
        let seen = self.codes.len();
        self.next_check = (seen / BLOCK + 1) * BLOCK;
        self.count_bytes();
        self.growth.should_continue(seen, self.counted, self.bytes).then_some(())
    }

    fn count_bytes(&mut self) {
        let fresh = self.entries.get(self.counted..).expect("entries are only added");
        self.bytes += fresh.iter().map(|entry| entry.len() + size_of::<u32>()).sum::<usize>();
        self.counted = self.entries.len();
    }
}

/// The memory is used again by the table of another chunk.
impl Drop for ByteArrayTable<'_> {
    fn drop(&mut self) {
        self.free_lists.put_back(std::mem::take(&mut self.slots));
        self.free_lists.put_back(std::mem::take(&mut self.hashes));
        self.free_lists.put_back(std::mem::take(&mut self.copies));
        self.free_lists.put_back(std::mem::take(&mut self.codes));
    }
}

fn empty(bits: u32, free_lists: &FreeLists) -> Option<Vec<TableSlot>> {
    let mut slots = free_lists.take(1 << bits).ok()?;
    slots.resize(1 << bits, TableSlot::EMPTY);
    Some(slots)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::sync::Arc;

    use super::super::limits::DictionaryLimits;
    use super::*;

    /// The expected dictionary, from a table of the standard library.
    fn twin(values: &[&[u8]]) -> (Vec<Vec<u8>>, Vec<u32>) {
        let (mut known, mut entries) = (HashMap::new(), Vec::new());
        let codes = values.iter().map(|value| {
            *known.entry(value.to_vec()).or_insert_with(|| {
                entries.push(value.to_vec());
                u32::try_from(entries.len() - 1).unwrap()
            })
        });
        let codes = codes.collect();
        (entries, codes)
    }

    #[test]
    fn values_are_equal_if_all_their_bytes_are() {
        let value = |len: usize| (0..len).map(|i| i as u8).collect::<Vec<u8>>();
        let short = |value: &[u8]| ShortValue::at_the_end(value).unwrap();
        for len in [17, 31, 32, 33, 47, 48, 100] {
            assert!(same(&value(len), &value(len)));
            for other in [len - 1, len + 1, len + 16] {
                assert!(!same(&value(len), &value(other)), "{len} and {other}");
            }
            for at in 0..len {
                let mut other = value(len);
                other[at] ^= 0x40;
                assert!(!same(&value(len), &other), "{at} of {len}");
            }
        }
        for at in 0..32 {
            let mut other = value(32);
            other[at] ^= 0x40;
            let words = load::<4>(&other).unwrap();
            assert!(!short(&value(32)).begin_with(words) && short(&other).begin_with(words));
            assert_eq!(short(&value(32)).begin_with(load::<2>(&other).unwrap()), at >= 16);
        }
    }

    #[test]
    fn values_between_offsets_have_the_codes_that_a_map_gives() {
        let seed = 83;
        let mut rng = fastrand::Rng::with_seed(seed);
        // Few and many entries: small tables, and tables beyond the nearest caches.
        for (longest, letters) in [
            (0usize, 1u8),
            (1, 255),
            (7, 2),
            (8, 2),
            (8, 255),
            (9, 2),
            (16, 3),
            (17, 2),
            (32, 2),
            (33, 2),
            (200, 2),
        ] {
            let mut buffer = Vec::new();
            let mut offsets = vec![0i32];
            for _ in 0..20_000 {
                let len = if rng.bool() { longest } else { rng.usize(0..=longest) };
                buffer.extend((0..len).map(|_| rng.u8(0..letters)));
                offsets.push(i32::try_from(buffer.len()).unwrap());
            }
            let values: Vec<&[u8]> = offsets
                .windows(2)
                .map(|pair| &buffer[pair[0] as usize..pair[1] as usize])
                .collect();
            let expected = twin(&values);
            let large: Vec<i64> = offsets.iter().map(|offset| i64::from(*offset)).collect();
            for is_large in [false, true] {
                let lists = FreeLists::new(1 << 20);
                let growth =
                    DictionaryGrowth::new(values.len(), DictionaryLimits::NONE, Arc::default());
                let mut builder = ByteArrayBuilder::new(values.len(), growth, &lists).unwrap();
                // In pieces, so that blocks are not always whole; some values one by one.
                let mut at = 0;
                while at < values.len() {
                    let to = (at + rng.usize(1..200)).min(values.len());
                    match (rng.u8(0..4), is_large) {
                        (0, _) => (at..to).for_each(|i| {
                            let (start, end) = (offsets[i] as usize, offsets[i + 1] as usize);
                            builder.push(&buffer, start, end - start).unwrap();
                        }),
                        (_, false) => builder.push_all(&buffer, &offsets[at..=to]).unwrap(),
                        (_, true) => builder.push_all(&buffer, &large[at..=to]).unwrap(),
                    }
                    at = to;
                }
                builder.end().unwrap();
                let (entries, codes) = builder.into_dictionary();
                assert_eq!(entries, expected.0, "longest {longest}, seed {seed}");
                assert_eq!(codes, expected.1, "longest {longest}, seed {seed}");
            }
        }
    }

    #[test]
    fn an_empty_slot_is_no_value() {
        // Whatever the hash of a value, its tag is not that of an empty slot.
        for len in 0..100 {
            for hash in [0, u64::MAX, 1 << 28] {
                assert_ne!(tag(hash, len), TableSlot::EMPTY.tag);
            }
        }
    }
}
