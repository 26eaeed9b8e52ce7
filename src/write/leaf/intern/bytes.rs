//! Interning of byte strings, straight from the buffers that they lie in.
//!
//! What tells strings apart is their first and last eight bytes and their length: all of one of up to 16 bytes. These stand in the slots of the table,
//! so that a short string costs one look at one line of the cache. Trap: strings may be made to collide; a lookup gives up after a while.

use std::hash::BuildHasher;

use foldhash::fast::FixedState;

use super::{AHEAD, BLOCK, DictionaryLimits, NONE, Watch};
use crate::simd::prefetch;

/// What tells byte strings apart: all of one of up to 16 bytes, most of a longer one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Key {
    /// The first eight bytes.
    first: u64,
    /// Those behind them; of more than 16 the last eight. Where there are fewer, zeros follow.
    last: u64,
    len: u32,
}

/// Odd numbers without a pattern.
const MIX: [u64; 4] =
    [0x9E37_79B9_7F4A_7C15, 0xD1B5_4A32_D192_ED03, 0x8CB9_2BA7_2F3D_8DD7, 0xABC9_8388_FB8F_AC03];

/// Both halves of a product: every bit of the factors counts.
#[expect(clippy::cast_possible_truncation, reason = "both halves of the product")]
#[inline(always)]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

#[inline(always)]
fn word(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

impl Key {
    /// Of the value that stands at `start` of a buffer, `len` bytes long; without a branch on the length where the buffer goes on behind it.
    #[inline(always)]
    fn of(buffer: &[u8], start: usize, len: usize) -> Option<Self> {
        let second = start + if len > 16 { len - 8 } else { 8 };
        let of_second = len.saturating_sub(8).min(8);
        match (word(buffer, start), word(buffer, second)) {
            (Some(first), Some(last)) => Some(Self {
                first: first & low_bytes(len.min(8)),
                last: last & low_bytes(of_second),
                len: u32::try_from(len).ok()?,
            }),
            _ => Self::at_the_end(buffer.get(start..start + len)?),
        }
    }

    #[cold]
    fn at_the_end(value: &[u8]) -> Option<Self> {
        let mut bytes = [0; 16];
        let (head, tail) = value.split_at(value.len().min(8));
        let tail = if value.len() > 16 { value.get(value.len() - 8..)? } else { tail };
        bytes.get_mut(..head.len())?.copy_from_slice(head);
        bytes.get_mut(8..8 + tail.len())?.copy_from_slice(tail);
        let len = u32::try_from(value.len()).ok()?;
        Some(Self { first: word(&bytes, 0)?, last: word(&bytes, 8)?, len })
    }

    /// Whether it is all that there is.
    #[inline(always)]
    fn is_all(self) -> bool {
        self.len <= 16
    }

    #[inline(always)]
    fn hash(self, value: &[u8], state: &FixedState) -> u64 {
        let ends = fold(self.first ^ MIX[0], self.last ^ u64::from(self.len) ^ MIX[1]);
        if self.is_all() {
            return ends;
        }
        match (word(value, 8), word(value, value.len() - 16)) {
            (Some(a), Some(b)) if value.len() <= 32 => ends ^ fold(a ^ MIX[2], b ^ MIX[3]),
            _ => state.hash_one(value),
        }
    }
}

/// The lowest `n` bytes of a word, of at most 8.
#[inline(always)]
fn low_bytes(n: usize) -> u64 {
    let bits = 8 * (n & 7);
    if n >= 8 { u64::MAX } else { (1 << bits) - 1 }
}

#[derive(Debug, Clone, Copy)]
struct Slot {
    first: u64,
    last: u64,
    len: u32,
    code: u32,
}

/// Bits of the first table: its slots take 6 KiB.
const FIRST_BITS: u32 = 8;

/// Tables of more bits are likely to lie beyond the nearest caches.
const NEAR_BITS: u32 = 11;

/// Slots looked at for one value: more are a sign of values that were made to collide.
const MOST_PROBES: usize = 1 << 10;

/// A value that is to be looked up.
#[derive(Debug, Clone, Copy, Default)]
struct Wanted<'v> {
    key: Key,
    hash: u64,
    value: &'v [u8],
}

/// Finds the distinct ones of the values that are pushed.
pub(super) struct Interner<'v> {
    table: Table<'v>,
    /// Those that are looked up next.
    block: [Wanted<'v>; AHEAD],
    filled: usize,
}

/// An open-addressed table of byte strings, and the values seen so far.
struct Table<'v> {
    slots: Vec<Slot>,
    bits: u32,
    entries: Vec<&'v [u8]>,
    hashes: Vec<u64>,
    codes: Vec<u32>,
    state: FixedState,
    limits: DictionaryLimits,
    watch: Watch,
    next_check: usize,
    /// Of the entries up to `counted`, as PLAIN.
    bytes: usize,
    counted: usize,
}

impl<'v> Interner<'v> {
    /// For `n` values.
    pub(super) fn new(n: usize, limits: DictionaryLimits) -> Self {
        let table = Table {
            slots: empty(FIRST_BITS),
            bits: FIRST_BITS,
            entries: Vec::new(),
            hashes: Vec::new(),
            codes: Vec::with_capacity(n),
            state: FixedState::default(),
            limits,
            watch: Watch::new(n, size_of::<u32>(), limits),
            next_check: BLOCK,
            bytes: 0,
            counted: 0,
        };
        Self { table, block: [Wanted::default(); AHEAD], filled: 0 }
    }

    /// Looks up the values that stand at these places of a buffer, where each starts and how long it is; `None` where it is time to give up.
    #[inline(always)]
    pub(super) fn push(
        &mut self,
        buffer: &'v [u8],
        places: impl Iterator<Item = (usize, usize)>,
    ) -> Option<()> {
        for (start, len) in places {
            let value = buffer.get(start..start + len)?;
            let key = Key::of(buffer, start, len)?;
            let hash = key.hash(value, &self.table.state);
            *self.block.get_mut(self.filled)? = Wanted { key, hash, value };
            self.filled += 1;
            if self.filled == AHEAD {
                self.filled = 0;
                self.table.look_up(&self.block)?;
            }
        }
        Some(())
    }

    /// The entries, and the code of every value; `None` if it is better to give up.
    pub(super) fn finish(mut self) -> Option<(Vec<&'v [u8]>, Vec<u32>)> {
        self.table.look_up(self.block.get(..self.filled)?)?;
        self.table.check()?;
        Some((self.table.entries, self.table.codes))
    }
}

impl<'v> Table<'v> {
    #[inline(never)]
    fn look_up(&mut self, block: &[Wanted<'v>]) -> Option<()> {
        if (self.entries.len() + AHEAD) * 2 > self.slots.len() {
            self.grow()?;
        }
        if self.bits > NEAR_BITS {
            self.fetch(block);
        }
        let mut codes = [0; AHEAD];
        for (wanted, code) in block.iter().zip(&mut codes) {
            *code = self.code(wanted)?;
        }
        self.codes.extend_from_slice(codes.get(..block.len())?);
        if self.codes.len() >= self.next_check {
            self.check()?;
        }
        Some(())
    }

    /// Asks for all that will be looked at, step by step: the misses of a block overlap.
    #[inline]
    fn fetch(&self, block: &[Wanted<'v>]) {
        for wanted in block {
            prefetch(&self.slots, self.home(wanted.hash));
        }
        let entry = |wanted: &Wanted<'v>| match self.slots.get(self.home(wanted.hash)) {
            Some(slot) if !wanted.key.is_all() && slot.first == wanted.key.first => {
                Some(slot.code as usize)
            }
            _ => None,
        };
        for code in block.iter().filter_map(entry) {
            prefetch(&self.entries, code);
        }
        for code in block.iter().filter_map(entry) {
            if let Some(entry) = self.entries.get(code) {
                prefetch(entry, 0);
                prefetch(entry, entry.len().saturating_sub(1));
            }
        }
    }

    /// The slot where a value is looked for first.
    #[inline(always)]
    fn home(&self, hash: u64) -> usize {
        usize::try_from(hash >> (64 - self.bits)).unwrap_or(0)
    }

    /// The code of a value; the next one if it is new. `None` if it cannot be found in reasonable time.
    #[inline(always)]
    fn code(&mut self, wanted: &Wanted<'v>) -> Option<u32> {
        let Wanted { key, hash, value } = *wanted;
        let mask = self.slots.len() - 1;
        let home = self.home(hash);
        for at in home..home + MOST_PROBES {
            let slot = self.slots.get(at & mask)?;
            let alike = (slot.first ^ key.first) | (slot.last ^ key.last);
            if alike | u64::from(slot.len ^ key.len) == 0
                && slot.code != NONE
                && (key.is_all() || self.entries.get(slot.code as usize) == Some(&value))
            {
                return Some(slot.code);
            }
            if slot.code == NONE {
                return self.insert(at & mask, wanted);
            }
        }
        None
    }

    #[inline(never)]
    fn insert(&mut self, at: usize, wanted: &Wanted<'v>) -> Option<u32> {
        let code = u32::try_from(self.entries.len()).ok()?;
        let Key { first, last, len } = wanted.key;
        *self.slots.get_mut(at)? = Slot { first, last, len, code };
        self.entries.push(wanted.value);
        self.hashes.push(wanted.hash);
        Some(code)
    }

    #[cold]
    fn grow(&mut self) -> Option<()> {
        // Small ones soon are too small.
        self.bits += if self.bits < NEAR_BITS { 2 } else { 1 };
        let mask = (1 << self.bits) - 1;
        let mut slots = empty(self.bits);
        for old in self.slots.iter().filter(|slot| slot.code != NONE) {
            let mut at = self.home(*self.hashes.get(old.code as usize)?);
            while slots.get(at & mask)?.code != NONE {
                at += 1;
            }
            *slots.get_mut(at & mask)? = *old;
        }
        self.slots = slots;
        Some(())
    }

    #[cold]
    fn check(&mut self) -> Option<()> {
        let seen = self.codes.len();
        self.next_check = seen + BLOCK;
        let fresh = self.entries.get(self.counted..).unwrap_or_default();
        self.bytes += fresh.iter().map(|entry| entry.len() + size_of::<u32>()).sum::<usize>();
        self.counted = self.entries.len();
        (self.bytes <= self.limits.bytes && self.watch.goes_on(seen, self.counted)).then_some(())
    }
}

fn empty(bits: u32) -> Vec<Slot> {
    vec![Slot { first: 0, last: 0, len: 0, code: NONE }; 1 << bits]
}
