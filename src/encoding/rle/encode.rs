//! Encodes the hybrid: repeated values become runs where a run is shorter, all others are packed.
//!
//! Spec: Encodings.md, "Run Length Encoding / Bit-Packing Hybrid". Trap: a run can only begin where
//! a group of 8 packed values ends.

use super::bit_width::BitWidth;
use crate::simd::bitmap;
use crate::simd::pack::pack_u32;

/// Appends the hybrid stream of values of `width` bits: runs that pay as such, all else packed. The
/// caller writes the length in front, if there is one. Spec: Encodings.md, "Run Length Encoding /
/// Bit-Packing Hybrid".
///
/// Higher bits of a value are left out. A stream of one value is one run.
pub(crate) fn encode_into(values: &[u32], width: BitWidth, out: &mut Vec<u8>) {
    encode_values(values, width, paying_run(width), out);
}

/// Like [`encode_into`], but all packed, unless all values are equal.
pub(crate) fn encode_packed_into(values: &[u32], width: BitWidth, out: &mut Vec<u8>) {
    encode_values(values, width, usize::MAX, out);
}

/// Like [`encode_into`] for levels.
pub(crate) fn encode_levels_into(levels: &[u16], width: BitWidth, out: &mut Vec<u8>) {
    encode_values(levels, width, paying_run(width), out);
}

/// Appends one run: `n` times `value`, or nothing if `n` is 0.
///
/// ```text
/// uleb(n << 1), value in ceil(w / 8) bytes
/// ```
pub(crate) fn encode_run_into(value: u32, n: usize, width: BitWidth, out: &mut Vec<u8>) {
    let value = (u64::from(value) & ((1 << width.bits()) - 1)).to_le_bytes();
    let mut left = n;
    while left > 0 {
        let n = left.min(MAX_RUN);
        put_uleb((n as u64) << 1, out);
        out.extend_from_slice(value.get(..value_len(width)).expect("at most 4 bytes"));
        left -= n;
    }
}

/// Appends the hybrid stream, of width 1, of `n` bits that begin at bit `offset` of `bits`: long
/// runs of equal bytes as runs, all else as it is.
///
/// # Panics
/// If `bits` has fewer than `offset + n` bits.
pub(crate) fn encode_bits_into(bits: &[u8], offset: usize, n: usize, out: &mut Vec<u8>) {
    let shifted;
    // Every group of the stream begins at a byte; the last one is padded with zeros, which a bitmap
    // need not have.
    let bytes = if offset.is_multiple_of(8) {
        bits.get(offset / 8..).and_then(|bits| bits.get(..n.div_ceil(8))).expect("n bits")
    } else {
        let mut aligned = Vec::new();
        bitmap::append_aligned(bits, offset, n, &mut aligned);
        shifted = aligned;
        &shifted
    };
    let (whole, last) = bytes.split_at(n / 8);
    // The bits after the last whole byte; there may be none.
    let last = last.first().map_or(0, |last| last & !(u8::MAX << (n % 8)));
    let one = BitWidth(1);
    let (mut packed, mut at) = (0, 0);
    while let Some(&byte) = whole.get(at) {
        if byte != 0 && byte != u8::MAX {
            at += 1;
            continue;
        }
        let run = equal_bytes(whole.get(at..).expect("it has a byte there"), byte);
        let end = at + run;
        // A run up to the end includes the rest of the last byte.
        let tail =
            if end == whole.len() && last == byte & !(u8::MAX << (n % 8)) { n % 8 } else { 0 };
        let all = packed == at && 8 * end + tail == n;
        if run >= PAYING_BYTES || all {
            put_packed_bytes(whole.get(packed..at).expect("packed is at most at"), out);
            encode_run_into(u32::from(byte & 1), 8 * run + tail, one, out);
            if 8 * end + tail == n {
                return;
            }
            packed = end;
        }
        at = end;
    }
    let whole = whole.get(packed..).expect("runs end within the bytes");
    let left = n % 8;
    if left == 0 {
        put_packed_bytes(whole, out);
    } else if whole.is_empty() && (last == 0 || last == !(u8::MAX << left)) {
        encode_run_into(u32::from(last & 1), left, one, out);
    } else if let Some(groups) = whole.get(whole.len() / MAX_GROUPS * MAX_GROUPS..) {
        // The last byte of the bitmap is not taken as it is, but belongs to the last of the runs.
        let before = whole.len() - groups.len();
        put_packed_bytes(whole.get(..before).expect("the groups are a part of it"), out);
        put_uleb((groups.len() as u64 + 1) << 1 | 1, out);
        out.extend_from_slice(groups);
        out.push(last);
    }
}

/// The bytes that [`encode_into`] appends for these values.
#[cfg(test)]
pub(crate) fn estimated_len(values: &[u32], width: BitWidth) -> usize {
    let mut len = 0;
    segments(values, paying_run(width), |segment| {
        len += match segment {
            Segment::Run(_, n) => {
                let (whole, rest) = (n / MAX_RUN, n % MAX_RUN);
                let last =
                    if rest > 0 { uleb_len((rest as u64) << 1) + value_len(width) } else { 0 };
                whole * (uleb_len((MAX_RUN as u64) << 1) + value_len(width)) + last
            }
            Segment::Packed(values) => values
                .chunks(8 * MAX_GROUPS)
                .map(|values| values.len().div_ceil(8))
                .map(|groups| uleb_len((groups as u64) << 1 | 1) + groups * width.bits() as usize)
                .sum(),
        }
    });
    len
}

/// Values of a run at most: readers count them in 32 bits with a sign.
const MAX_RUN: usize = 1 << 30;

/// Groups of a packed run at most.
const MAX_GROUPS: usize = 1 << 20;

/// Minimum equal bytes of a bitmap that become a run: fewer save almost nothing, and many short
/// runs are slow to read.
const PAYING_BYTES: usize = 8;

/// Bytes of the value of a run.
fn value_len(width: BitWidth) -> usize {
    width.bits().div_ceil(8) as usize
}

/// Minimum equal values that become a run. In 8 values of 1 bit a run saves nothing: it takes 2
/// bytes, and a header for the packed values after it.
fn paying_run(width: BitWidth) -> usize {
    match width.bits() {
        0 => 1,
        1..=2 => 32,
        3..=8 => 16,
        _ => 8,
    }
}

/// A part of the values, as it is to be written.
enum Segment<'a, T> {
    /// As many times the value.
    Run(T, usize),
    /// Values to be packed; the length of every stretch but the last is a multiple of 8.
    Packed(&'a [T]),
}

/// A value or a level.
trait RleValue: Copy + Eq {
    /// As a value.
    fn value(self) -> u32;

    /// Whether all of a group are equal.
    fn all_equal(group: &[Self; 8]) -> bool;

    /// Packs values after `out`.
    fn pack(values: &[Self], width: u32, out: &mut Vec<u8>);
}

macro_rules! all_equal {
    () => {
        #[inline(always)]
        fn all_equal(group: &[Self; 8]) -> bool {
            group.iter().fold(0, |differ, value| differ | (value ^ group[0])) == 0
        }
    };
}

impl RleValue for u32 {
    all_equal!();

    fn value(self) -> u32 {
        self
    }

    fn pack(values: &[Self], width: u32, out: &mut Vec<u8>) {
        pack_u32(values, width, out);
    }
}

impl RleValue for u16 {
    all_equal!();

    fn value(self) -> u32 {
        u32::from(self)
    }

    fn pack(values: &[Self], width: u32, out: &mut Vec<u8>) {
        // Blocks of a multiple of 8 end at a byte.
        let mut wide = [0; 1024];
        for block in values.chunks(wide.len()) {
            wide.iter_mut().zip(block).for_each(|(wide, &value)| *wide = u32::from(value));
            pack_u32(wide.get(..block.len()).expect("blocks are no longer"), width, out);
        }
    }
}

/// Cuts values into runs of at least `paying` and packed values between them. A run can only begin
/// where a group of 8 ends.
#[inline(always)]
fn segments<'a, T: RleValue>(
    values: &'a [T],
    paying: usize,
    mut visit: impl FnMut(Segment<'a, T>),
) {
    // The values that are not written yet.
    let mut rest = values;
    let mut at = 0;
    loop {
        let ahead = rest.get(at..).expect("whole groups, or whole runs, were seen");
        let Some(group) = ahead.first_chunk::<8>() else { break };
        if !T::all_equal(group) {
            at += 8;
            continue;
        }
        let run = equal_values(ahead);
        if run >= paying || (at == 0 && run == rest.len()) {
            if at > 0 {
                visit(Segment::Packed(rest.get(..at).expect("a run begins there")));
            }
            visit(Segment::Run(group[0], run));
            rest = ahead.get(run..).expect("runs end within the values");
            at = 0;
        } else {
            at += run / 8 * 8;
        }
    }
    match rest {
        [] => {}
        // Fewer than 8, or the loop would have found the run.
        [first, others @ ..] if at == 0 && others.iter().all(|value| value == first) => {
            visit(Segment::Run(*first, rest.len()));
        }
        _ => visit(Segment::Packed(rest)),
    }
}

/// How many values from the first on are equal.
#[inline(always)]
fn equal_values<T: RleValue>(values: &[T]) -> usize {
    let Some(&first) = values.first() else { return 0 };
    let (groups, _) = values.as_chunks::<8>();
    let equal = |group: &&[T; 8]| T::all_equal(group) && group[0] == first;
    let whole = 8 * groups.iter().take_while(equal).count();
    let rest = values.get(whole..).expect("whole groups of them");
    whole + rest.iter().take_while(|&&value| value == first).count()
}

/// How many bytes from the first on are `byte`.
fn equal_bytes(bytes: &[u8], byte: u8) -> usize {
    let (words, _) = bytes.as_chunks::<8>();
    let whole = 8 * words.iter().take_while(|&&word| word == [byte; 8]).count();
    let rest = bytes.get(whole..).expect("whole words of them");
    whole + rest.iter().take_while(|&&other| other == byte).count()
}

fn encode_values<T: RleValue>(values: &[T], width: BitWidth, paying: usize, out: &mut Vec<u8>) {
    let bits = width.bits();
    segments(values, paying, |segment| match segment {
        Segment::Run(value, n) => encode_run_into(value.value(), n, width, out),
        Segment::Packed(values) => {
            for values in values.chunks(8 * MAX_GROUPS) {
                let groups = values.len().div_ceil(8);
                put_uleb((groups as u64) << 1 | 1, out);
                let end = out.len() + groups * bits as usize;
                T::pack(values, bits, out);
                out.resize(end, 0);
            }
        }
    });
}

/// Packed runs of width 1: a group is a byte.
fn put_packed_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    for groups in bytes.chunks(MAX_GROUPS) {
        put_uleb((groups.len() as u64) << 1 | 1, out);
        out.extend_from_slice(groups);
    }
}

/// Bytes of a number in LEB128.
#[cfg(test)]
fn uleb_len(value: u64) -> usize {
    (u64::BITS - (value | 1).leading_zeros()).div_ceil(7) as usize
}

/// Encodes values of `width` bits: runs of at least 8 as such, the rest packed in groups. Value by
/// value: the twin of [`encode_into`] that tests read by.
///
/// # Panics
/// If a value takes more bits than `width`.
#[cfg(test)]
pub(crate) fn encode(values: &[u32], width: BitWidth) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = values;
    let mut packed: Vec<u32> = Vec::new();
    while let Some(&first) = rest.first() {
        let run = rest.iter().take_while(|&&value| value == first).count();
        // A run can only begin where a group ends.
        let to_group = packed.len().next_multiple_of(8) - packed.len();
        if run >= to_group + 8 {
            packed.extend(std::iter::repeat_n(first, to_group));
            flush_packed(&mut packed, width, &mut out);
            let n = run - to_group;
            put_uleb((n as u64) << 1, &mut out);
            assert!(width.holds(first), "a value of at most {} bits", width.bits());
            out.extend_from_slice(
                first.to_le_bytes().get(..width.bits().div_ceil(8) as usize).unwrap_or_default(),
            );
        } else {
            packed.extend(std::iter::repeat_n(first, run));
        }
        rest = rest.get(run..).unwrap_or_default();
    }
    flush_packed(&mut packed, width, &mut out);
    out
}

#[cfg(test)]
fn flush_packed(packed: &mut Vec<u32>, width: BitWidth, out: &mut Vec<u8>) {
    if packed.is_empty() {
        return;
    }
    packed.resize(packed.len().next_multiple_of(8), 0);
    put_uleb((packed.len() as u64 / 8) << 1 | 1, out);
    let (mut word, mut bits) = (0u64, 0);
    for value in packed.drain(..) {
        assert!(width.holds(value), "a value of at most {} bits", width.bits());
        word |= u64::from(value) << bits;
        bits += width.bits();
        while bits >= 8 {
            out.push(word.to_le_bytes()[0]);
            word >>= 8;
            bits -= 8;
        }
    }
}

pub(super) fn put_uleb(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    out.push(value.to_le_bytes()[0]);
}
