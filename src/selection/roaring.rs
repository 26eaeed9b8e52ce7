//! Roaring bitmaps in their portable form: sets of 64-bit numbers, as a set of 32-bit numbers for
//! each high half.
//!
//! ```text
//! 64 bits   u64 n | n × ( u32 high half | set of 32 bits )
//! 32 bits   u32 12347 + (n - 1 << 16) | flags of runs, n bits   |  or  u32 12346 | u32 n
//!           n × ( u16 high half | u16 values - 1 )
//!           n × u32 offset, unless there are flags of runs and n < 4
//!           n containers: runs   u16 m | m × ( u16 first | u16 values - 1 )
//!                         array  u16 for each value, if there are at most 4096
//!                         bitmap 8192 bytes
//! ```
//!
//! Spec: RoaringFormatSpec, which the deletion vectors of Delta and Iceberg refer to. All numbers
//! are little-endian and ascend; a set that breaks a rule is an error. Containers are not copied.

use std::ops::Range;

use bytes::Bytes;

use crate::bytes::{Cursor, saturated};
use crate::error::{Error, Result, Spec};

/// 2^16 numbers with the same high bits.
#[derive(Debug, Clone)]
pub(super) struct Container {
    /// The first of them.
    base: u64,
    values: Values,
}

#[derive(Debug, Clone)]
enum Values {
    Runs(Bytes),
    Array(Bytes),
    Bitmap(Bytes),
}

const SPEC: Spec = Spec::DeletionVectors;

/// The cookie of a set without runs, and that of one with runs.
const COOKIE: u32 = 12346;
const COOKIE_OF_RUNS: u32 = 12347;

/// Sets of fewer containers that may have runs state no offsets.
const MIN_WITH_OFFSETS: usize = 4;

/// Maximum values of an array.
const MAX_ARRAY: usize = 4096;

/// Bytes of a bitmap.
const BITMAP_BYTES: usize = 8192;

/// Minimum bytes of a set of 32-bit numbers, its high half included.
const MIN_SET: usize = 12;

/// The containers of a set of 64-bit numbers, ascending.
///
/// # Errors
/// `Malformed` if the bytes are no such set, or go on after it.
pub(super) fn parse(bytes: &Bytes) -> Result<Vec<Container>> {
    let mut cursor = Cursor::new(bytes, SPEC);
    let sets = cursor.u64()?;
    let max = (cursor.remaining() / MIN_SET) as u64;
    if sets > max {
        let most = format_args!("at most {max}, by its length");
        return Err(Error::mismatch(SPEC, "sets of 32-bit numbers", most, sets));
    }
    let mut containers = Vec::new();
    let mut last = None;
    for _ in 0..sets {
        let high = cursor.u32()?;
        if last.is_some_and(|last| last >= high) {
            return Err(not_ascending("high halves"));
        }
        last = Some(high);
        set(bytes, &mut cursor, u64::from(high) << 32, &mut containers)?;
    }
    match cursor.is_empty() {
        true => Ok(containers),
        false => Err(Error::mismatch(SPEC, "bytes after the set", 0, cursor.remaining())),
    }
}

fn set(bytes: &Bytes, cursor: &mut Cursor<'_>, base: u64, out: &mut Vec<Container>) -> Result<()> {
    let cookie = cursor.u32()?;
    let (n, flags) = match (cookie, cookie & 0xffff) {
        (COOKIE, _) => (cursor.u32()? as usize, &[][..]),
        (_, COOKIE_OF_RUNS) => {
            let n = (cookie >> 16) as usize + 1;
            (n, cursor.take(n.div_ceil(8))?)
        }
        _ => {
            let expected = format_args!("{COOKIE} or {COOKIE_OF_RUNS}");
            return Err(Error::mismatch(SPEC, "cookie of a set", expected, cookie));
        }
    };
    if n > 1 << 16 {
        return Err(Error::mismatch(SPEC, "containers of a set", "at most 65536", n));
    }
    let mut headers = Cursor::new(cursor.take(4 * n)?, SPEC);
    let has_offsets = flags.is_empty() || n >= MIN_WITH_OFFSETS;
    // Containers follow each other: where they are is known without the offsets.
    cursor.skip(if has_offsets { 4 * n } else { 0 })?;
    let mut last = None;
    for i in 0..n {
        let (high, values) = (headers.u16()?, usize::from(headers.u16()?) + 1);
        if last.is_some_and(|last| last >= high) {
            return Err(not_ascending("containers"));
        }
        last = Some(high);
        let base = base | u64::from(high) << 16;
        let of_runs = flags.get(i / 8).is_some_and(|flags| flags >> (i % 8) & 1 == 1);
        let values = match of_runs {
            true => runs(bytes, cursor, values)?,
            false if values <= MAX_ARRAY => {
                let array = cursor.take(2 * values)?;
                let ascends = |pair: &[u16]| matches!(pair, [a, b] if a < b);
                let numbers: Vec<u16> = words(array).collect();
                if !numbers.windows(2).all(ascends) {
                    return Err(not_ascending("values of an array"));
                }
                Values::Array(bytes.slice_ref(array))
            }
            false => {
                let bitmap = cursor.take(BITMAP_BYTES)?;
                let found: u32 = bitmap.iter().map(|byte| byte.count_ones()).sum();
                if found as usize != values {
                    return Err(Error::mismatch(SPEC, "bits of a bitmap", values, found));
                }
                Values::Bitmap(bytes.slice_ref(bitmap))
            }
        };
        out.push(Container { base, values });
    }
    Ok(())
}

fn runs(bytes: &Bytes, cursor: &mut Cursor<'_>, values: usize) -> Result<Values> {
    let n = usize::from(cursor.u16()?);
    let runs = cursor.take(4 * n)?;
    let (mut next, mut found) = (0, 0);
    for (first, more) in pairs(runs) {
        let (first, len) = (usize::from(first), usize::from(more) + 1);
        if first < next || first + len > 1 << 16 {
            return Err(not_ascending("runs"));
        }
        (next, found) = (first + len, found + len);
    }
    match found == values {
        true => Ok(Values::Runs(bytes.slice_ref(runs))),
        false => Err(Error::mismatch(SPEC, "values of runs", values, found)),
    }
}

fn words(bytes: &[u8]) -> impl Iterator<Item = u16> + '_ {
    bytes.as_chunks::<2>().0.iter().map(|word| u16::from_le_bytes(*word))
}

fn pairs(bytes: &[u8]) -> impl Iterator<Item = (u16, u16)> + '_ {
    let of = |[a, b, c, d]: &[u8; 4]| (u16::from_le_bytes([*a, *b]), u16::from_le_bytes([*c, *d]));
    bytes.as_chunks::<4>().0.iter().map(of)
}

#[cold]
fn not_ascending(what: &str) -> Error {
    Error::malformed(SPEC, format_args!("the {what} of a set do not ascend"))
}

impl Container {
    /// How many numbers there are.
    pub(super) fn count(&self) -> u64 {
        match &self.values {
            Values::Runs(runs) => pairs(runs).map(|(_, more)| u64::from(more) + 1).sum(),
            Values::Array(array) => array.len() as u64 / 2,
            Values::Bitmap(bits) => bits.iter().map(|byte| u64::from(byte.count_ones())).sum(),
        }
    }

    /// How many ranges there are, about.
    pub(super) fn pieces(&self) -> u64 {
        match &self.values {
            Values::Runs(runs) => runs.len() as u64 / 4,
            Values::Array(array) => array.len() as u64 / 2,
            // It would be another form if there were few.
            Values::Bitmap(bits) => bits.len() as u64 / 4,
        }
    }

    /// Clears the bits of the numbers, as far as there are bits.
    pub(super) fn clear(&self, bits: &mut [u8]) {
        // A container begins with a byte.
        let bits = bits.get_mut(saturated(self.base / 8)..).unwrap_or_default();
        if let Values::Bitmap(ones) = &self.values {
            bits.iter_mut().zip(ones).for_each(|(bits, ones)| *bits &= !ones);
            return;
        }
        for Range { start, end } in self.ranges() {
            for value in start - self.base..end - self.base {
                if let Some(byte) = bits.get_mut(saturated(value / 8)) {
                    *byte &= !(1 << (value % 8));
                }
            }
        }
    }

    /// The numbers, as ranges that ascend; they may touch.
    pub(super) fn ranges(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        let base = self.base;
        let (runs, array, bits) = match &self.values {
            Values::Runs(runs) => (&runs[..], &[][..], &[][..]),
            Values::Array(array) => (&[][..], &array[..], &[][..]),
            Values::Bitmap(bits) => (&[][..], &[][..], &bits[..]),
        };
        let of_runs = pairs(runs).map(|(first, more)| (u64::from(first), u64::from(more) + 1));
        let of_array = words(array).map(|value| (u64::from(value), 1));
        let of_bits = ones(bits);
        let all = of_runs.chain(of_array).chain(of_bits);
        all.map(move |(first, len)| base + first..base + first + len)
    }
}

/// The runs of set bits, each within a word: first bit and length.
fn ones(bits: &[u8]) -> impl Iterator<Item = (u64, u64)> + '_ {
    let words = bits.as_chunks::<8>().0.iter().zip((0u64..).step_by(64));
    words.flat_map(|(word, at)| {
        let mut word = u64::from_le_bytes(*word);
        let mut done = 0;
        std::iter::from_fn(move || {
            if word == 0 {
                return None;
            }
            let zeros = word.trailing_zeros();
            let run = (word >> zeros).trailing_ones();
            let first = done + zeros;
            done = first + run;
            word = (word >> zeros).checked_shr(run).unwrap_or(0);
            Some((at + u64::from(first), u64::from(run)))
        })
    })
}
