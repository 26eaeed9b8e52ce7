//! Skips a value without reading it: the fast half of the codec.
//!
//! Used for unknown fields, and by `format::FooterIndex`, which skips every column chunk of a
//! footer ([`SimilarStructSkipper`]). It works on a slice, keeps no ids, and allocates no more than
//! a few masks; a number of up to 8 bytes costs no branch per byte. Trap: recursion follows the
//! file, so its depth is counted.

use super::wire;

/// How deep an unknown value may be nested.
pub(super) const MAX_DEPTH: u32 = 64;

/// Why a value could not be passed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SkipError {
    /// The bytes end inside the value.
    Short,
    /// A type nibble that no value has.
    Type,
    /// A number of more than 10 bytes.
    Number,
    /// Nested more than 64 deep.
    Depth,
}

type Rest<'a> = Result<&'a [u8], SkipError>;

/// What follows a field value of type `ty` at the start of `bytes`.
pub(super) fn value(bytes: &[u8], ty: u8) -> Rest<'_> {
    field_value(bytes, ty, MAX_DEPTH, &mut ())
}

/// What follows the struct at the start of `bytes`.
pub(super) fn structure(bytes: &[u8]) -> Rest<'_> {
    fields(bytes, MAX_DEPTH, &mut ())
}

/// Bytes of the struct at the start of `bytes`.
#[cfg(feature = "check")]
pub(crate) fn struct_len(bytes: &[u8]) -> Result<usize, SkipError> {
    structure(bytes).map(|rest| bytes.len() - rest.len())
}

/// Passes over structs that follow one another and are much alike, as the column chunks of a footer
/// are.
///
/// Where a struct ends follows from some of its bits: field and list headers, lengths, and the
/// highest bit of each byte of a number. If a struct has the same such bits as one seen before, at
/// the same places, it ends after as many bytes; and comparing costs a tenth of walking. The last
/// few structs that were walked are remembered, with a mask of the bits that matter.
#[derive(Debug, Default)]
pub(crate) struct SimilarStructSkipper<'a> {
    /// The one that was of use last is the first.
    templates: [SkipTemplate<'a>; 4],
    /// How many structs in a row were like none of these.
    misses: usize,
}

#[derive(Debug, Default)]
struct SkipTemplate<'a> {
    /// A struct, whole.
    bytes: &'a [u8],
    /// The bits of it that decide where it ends.
    mask: Mask,
}

/// The bits of the bytes that were passed over which decide where a struct ends.
#[derive(Debug, Default)]
struct Mask {
    bits: Vec<u8>,
    /// Whether it has become too long, or there was no memory for it: then it is of no use.
    is_cut: bool,
}

impl<'a> SimilarStructSkipper<'a> {
    /// What follows the struct at the start of `bytes`.
    #[inline]
    pub(super) fn skip(&mut self, bytes: &'a [u8]) -> Rest<'a> {
        let [template, ..] = &self.templates;
        match template.end(bytes) {
            Some(rest) => {
                self.misses = 0;
                Ok(rest)
            }
            None => self.skip_other(bytes),
        }
    }

    #[inline(never)]
    fn skip_other(&mut self, bytes: &'a [u8]) -> Rest<'a> {
        for i in 1..self.templates.len() {
            if let Some(rest) = self.templates.get(i).and_then(|template| template.end(bytes)) {
                self.templates.swap(0, i);
                self.misses = 0;
                return Ok(rest);
            }
        }
        self.misses += 1;
        // Where all are different, remembering is a waste; but try now and then.
        if self.misses > 8 && !self.misses.is_multiple_of(8) {
            return structure(bytes);
        }
        self.templates.rotate_right(1);
        let [template, ..] = &mut self.templates;
        template.mask.clear();
        // Nothing is like it until the walk has ended well.
        template.bytes = &[];
        let rest = fields(bytes, MAX_DEPTH, &mut template.mask)?;
        if !template.mask.is_cut {
            template.bytes = bytes.get(..template.mask.bits.len()).unwrap_or_default();
        }
        Ok(rest)
    }
}

impl SkipTemplate<'_> {
    /// What follows the struct at the start of `bytes`, if it is like this one.
    #[inline]
    fn end<'a>(&self, bytes: &'a [u8]) -> Option<&'a [u8]> {
        if self.bytes.is_empty() {
            return None;
        }
        let (head, rest) = bytes.split_at_checked(self.bytes.len())?;
        let (want, mask) = (self.bytes, &self.mask.bits[..]);
        let last =
            (head.last_chunk::<BLOCK>(), want.last_chunk::<BLOCK>(), mask.last_chunk::<BLOCK>());
        let same = match last {
            // The last block overlaps the one before it: byte by byte, the rest would take as long
            // as all whole blocks.
            (Some(last_head), Some(last_want), Some(last_mask)) => {
                let (heads, wants) = (head.as_chunks::<BLOCK>().0, want.as_chunks::<BLOCK>().0);
                let mut blocks = heads.iter().zip(wants).zip(mask.as_chunks::<BLOCK>().0);
                blocks.all(|((a, b), m)| agree(a, b, m)) && agree(last_head, last_want, last_mask)
            }
            _ => agree(head, want, mask),
        };
        same.then_some(rest)
    }
}

/// Bytes compared at a time.
const BLOCK: usize = 32;

/// Whether `a` and `b` have the same bits where `mask` is set.
#[inline(always)]
fn agree(a: &[u8], b: &[u8], mask: &[u8]) -> bool {
    a.iter().zip(b).zip(mask).fold(0, |all, ((a, b), m)| all | ((a ^ b) & m)) == 0
}

/// Learns, byte by byte, which bits of a value decide where it ends.
trait MaskRecorder {
    /// All bits of the next `n` bytes: a header, or a length.
    fn all(&mut self, n: usize);
    /// The highest bit of the next `n` bytes: a number.
    fn highest(&mut self, n: usize);
    /// Records that none of the next `n` bytes matters.
    fn none(&mut self, n: usize);
}

/// Learns nothing.
impl MaskRecorder for () {
    #[inline(always)]
    fn all(&mut self, _: usize) {}
    #[inline(always)]
    fn highest(&mut self, _: usize) {}
    #[inline(always)]
    fn none(&mut self, _: usize) {}
}

/// Maximum bytes of a mask, because a struct may be as long as the footer: few column chunks have
/// more than some KiB of statistics.
const MAX_MASK: usize = 64 << 10;

impl Mask {
    fn clear(&mut self) {
        self.bits.clear();
        self.is_cut = false;
    }

    fn append(&mut self, n: usize, bits: u8) {
        let len = self.bits.len().saturating_add(n);
        self.is_cut |= len > MAX_MASK || self.bits.try_reserve(n).is_err();
        if !self.is_cut {
            self.bits.resize(len, bits);
        }
    }
}

impl MaskRecorder for Mask {
    fn all(&mut self, n: usize) {
        self.append(n, 0xFF);
    }
    fn highest(&mut self, n: usize) {
        self.append(n, 0x80);
    }
    fn none(&mut self, n: usize) {
        self.append(n, 0);
    }
}

/// The fields of a struct and its stop. `depth` is how many levels may still be opened, this one
/// included.
fn fields<'a>(mut bytes: &'a [u8], depth: u32, mark: &mut impl MaskRecorder) -> Rest<'a> {
    let Some(depth) = depth.checked_sub(1) else {
        return Err(SkipError::Depth);
    };
    loop {
        let Some((&header, rest)) = bytes.split_first() else {
            return Err(SkipError::Short);
        };
        #[cfg(test)]
        crate::steps::add(1);
        bytes = rest;
        mark.all(1);
        if header < 0x10 {
            if header == wire::STOP {
                return Ok(bytes);
            }
            // The long form: the id follows. Which one does not matter here.
            bytes = number(bytes, mark)?;
        }
        bytes = field_value(bytes, header & 0x0F, depth, mark)?;
    }
}

#[inline(always)]
fn field_value<'a>(bytes: &'a [u8], ty: u8, depth: u32, mark: &mut impl MaskRecorder) -> Rest<'a> {
    match ty {
        wire::I16 | wire::I32 | wire::I64 => number(bytes, mark),
        wire::BINARY => binary(bytes, mark),
        wire::TRUE | wire::FALSE => Ok(bytes),
        wire::STRUCT => fields(bytes, depth, mark),
        wire::LIST | wire::SET => list(bytes, depth, mark),
        wire::MAP => map(bytes, depth, mark),
        _ => fixed(bytes, ty, mark),
    }
}

/// As a field value, but a bool takes a byte.
fn element<'a>(bytes: &'a [u8], ty: u8, depth: u32, mark: &mut impl MaskRecorder) -> Rest<'a> {
    match ty {
        wire::TRUE | wire::FALSE => jump(bytes, 1, mark),
        _ => field_value(bytes, ty, depth, mark),
    }
}

fn list<'a>(bytes: &'a [u8], depth: u32, mark: &mut impl MaskRecorder) -> Rest<'a> {
    let Some(depth) = depth.checked_sub(1) else {
        return Err(SkipError::Depth);
    };
    let Some((&header, mut bytes)) = bytes.split_first() else {
        return Err(SkipError::Short);
    };
    mark.all(1);
    let mut size = u64::from(header >> 4);
    if size == 15 {
        (size, bytes) = length(bytes, mark)?;
    }
    if size == 0 {
        return Ok(bytes);
    }
    // Every element takes a byte or more.
    let n = match usize::try_from(size) {
        Ok(n) if n <= bytes.len() => n,
        _ => return Err(SkipError::Short),
    };
    match header & 0x0F {
        wire::TRUE | wire::FALSE | wire::I8 => jump(bytes, n, mark),
        wire::I16 | wire::I32 | wire::I64 => numbers(bytes, n, mark),
        wire::BINARY => (0..n).try_fold(bytes, |bytes, _| binary(bytes, mark)),
        wire::STRUCT => (0..n).try_fold(bytes, |bytes, _| fields(bytes, depth, mark)),
        ty => (0..n).try_fold(bytes, |bytes, _| element(bytes, ty, depth, mark)),
    }
}

#[inline(never)]
fn map<'a>(bytes: &'a [u8], depth: u32, mark: &mut impl MaskRecorder) -> Rest<'a> {
    let Some(depth) = depth.checked_sub(1) else {
        return Err(SkipError::Depth);
    };
    let (size, bytes) = length(bytes, mark)?;
    if size == 0 {
        return Ok(bytes);
    }
    let Some((&types, bytes)) = bytes.split_first() else {
        return Err(SkipError::Short);
    };
    mark.all(1);
    // Each pair takes two bytes or more, so that the bytes end before the count is out of hand.
    (0..size).try_fold(bytes, |bytes, _| {
        let bytes = element(bytes, types >> 4, depth, mark)?;
        element(bytes, types & 0x0F, depth, mark)
    })
}

#[inline(never)]
fn fixed<'a>(bytes: &'a [u8], ty: u8, mark: &mut impl MaskRecorder) -> Rest<'a> {
    let n = match ty {
        wire::I8 => 1,
        wire::DOUBLE => 8,
        wire::UUID => 16,
        _ => return Err(SkipError::Type),
    };
    jump(bytes, n, mark)
}

#[inline(always)]
fn binary<'a>(bytes: &'a [u8], mark: &mut impl MaskRecorder) -> Rest<'a> {
    let (len, bytes) = length(bytes, mark)?;
    jump(bytes, usize::try_from(len).map_err(|_| SkipError::Short)?, mark)
}

/// Past `n` bytes that may be anything.
#[inline(always)]
fn jump<'a>(bytes: &'a [u8], n: usize, mark: &mut impl MaskRecorder) -> Rest<'a> {
    let rest = bytes.get(n..).ok_or(SkipError::Short)?;
    mark.none(n);
    Ok(rest)
}

/// The highest bit of each byte, which is set if the number continues.
const MORE: u64 = 0x8080_8080_8080_8080;

#[inline(always)]
fn number<'a>(bytes: &'a [u8], mark: &mut impl MaskRecorder) -> Rest<'a> {
    let rest = number_end(bytes)?;
    mark.highest(bytes.len() - rest.len());
    Ok(rest)
}

#[inline(always)]
fn number_end(bytes: &[u8]) -> Rest<'_> {
    if let Some(word) = bytes.first_chunk() {
        let ends = !u64::from_le_bytes(*word) & MORE;
        if ends != 0 {
            // At most 8, and 8 are there.
            let len = ends.trailing_zeros() as usize / 8 + 1;
            return bytes.get(len..).ok_or(SkipError::Short);
        }
    }
    number_end_slow(bytes)
}

#[cold]
fn number_end_slow(bytes: &[u8]) -> Rest<'_> {
    match bytes.iter().take(10).position(|&byte| byte < 0x80) {
        Some(last) => bytes.get(last + 1..).ok_or(SkipError::Short),
        None if bytes.len() < 10 => Err(SkipError::Short),
        None => Err(SkipError::Number),
    }
}

/// `n` numbers, those that end in the next eight bytes at a time: as many as have a byte with the
/// highest bit clear.
fn numbers<'a>(mut bytes: &'a [u8], mut n: usize, mark: &mut impl MaskRecorder) -> Rest<'a> {
    while n > 0 {
        if let Some(word) = bytes.first_chunk() {
            let ends = !u64::from_le_bytes(*word) & MORE;
            let count = ends.count_ones() as usize;
            if (1..=n).contains(&count) {
                let len = 8 - ends.leading_zeros() as usize / 8;
                bytes = bytes.get(len..).ok_or(SkipError::Short)?;
                mark.highest(len);
                n -= count;
                continue;
            }
        }
        bytes = number(bytes, mark)?;
        n -= 1;
    }
    Ok(bytes)
}

/// The length of a byte string, or the size of a list, and what follows it.
#[inline(always)]
fn length<'a>(bytes: &'a [u8], mark: &mut impl MaskRecorder) -> Result<(u64, &'a [u8]), SkipError> {
    let (value, rest) = match bytes.split_first() {
        Some((&first, rest)) if first < 0x80 => (u64::from(first), rest),
        _ => length_slow(bytes)?,
    };
    mark.all(bytes.len() - rest.len());
    Ok((value, rest))
}

#[inline(never)]
fn length_slow(bytes: &[u8]) -> Result<(u64, &[u8]), SkipError> {
    let mut value = 0;
    for (i, &byte) in bytes.iter().take(5).enumerate() {
        value |= u64::from(byte & 0x7F) << (7 * i);
        if byte < 0x80 {
            return Ok((value, bytes.get(i + 1..).unwrap_or_default()));
        }
    }
    Err(if bytes.len() < 5 { SkipError::Short } else { SkipError::Number })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A struct with a string of this length.
    fn with_string(len: u32) -> Vec<u8> {
        let mut bytes = vec![0x18];
        let (mut rest, more) = (len, 0x80);
        while rest > 0x7F {
            bytes.push((rest & 0x7F) as u8 | more);
            rest >>= 7;
        }
        bytes.push(rest as u8);
        bytes.resize(bytes.len() + len as usize, b'x');
        bytes.push(wire::STOP);
        bytes
    }

    #[test]
    fn long_structs_are_passed_over_without_a_mask_as_long() {
        let (short, long) = (with_string(1_000), with_string(1_000_000));
        let bytes = [&long[..], &long, &short, &short, &long].concat();
        let (mut alike, mut rest) = (SimilarStructSkipper::default(), &bytes[..]);
        for len in [&long, &long, &short, &short, &long].map(Vec::len) {
            let after = alike.skip(rest).unwrap();
            assert_eq!(rest.len() - after.len(), len);
            rest = after;
        }
        assert_eq!(rest, [0u8; 0]);
        let remembered = alike.templates.iter().map(|template| template.bytes.len());
        assert_eq!(remembered.max(), Some(short.len()));
        let masks = alike.templates.iter().map(|template| template.mask.bits.capacity());
        assert!(masks.max() <= Some(2 * MAX_MASK));
    }
}
