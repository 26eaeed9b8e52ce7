//! Passing over a value without reading it: the fast half of the codec.
//!
//! Used for unknown fields, and by `format::FooterIndex`, which passes over every column chunk of a footer.
//! It works on a slice, keeps no ids, and returns what is left in two registers; a number of up to 8 bytes costs no branch per byte.
//! Trap: recursion follows the file, so it is counted.

use super::wire;

/// How deep an unknown value may be nested.
const MAX_DEPTH: u32 = 64;

/// Why a value could not be passed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The bytes end inside the value.
    Short,
    /// A type nibble that no value has.
    Type,
    /// A number of more than 10 bytes.
    Number,
    /// Nested more than 64 deep.
    Depth,
}

type Rest<'a> = Result<&'a [u8], Fault>;

/// What follows a field value of type `ty` at the start of `bytes`.
#[inline]
pub(super) fn value(bytes: &[u8], ty: u8) -> Rest<'_> {
    field_value(bytes, ty, MAX_DEPTH)
}

/// What follows the struct at the start of `bytes`.
#[inline]
pub(super) fn structure(bytes: &[u8]) -> Rest<'_> {
    fields(bytes, MAX_DEPTH)
}

/// The fields of a struct and its stop. `depth` counts the levels that may still be opened, this one included.
fn fields(mut bytes: &[u8], depth: u32) -> Rest<'_> {
    let Some(depth) = depth.checked_sub(1) else {
        return Err(Fault::Depth);
    };
    loop {
        let Some((&header, rest)) = bytes.split_first() else {
            return Err(Fault::Short);
        };
        bytes = rest;
        if header < 0x10 {
            if header == wire::STOP {
                return Ok(bytes);
            }
            // The long form: the id follows. Which one does not matter here.
            bytes = number(bytes)?;
        }
        bytes = field_value(bytes, header & 0x0F, depth)?;
    }
}

#[inline(always)]
fn field_value(bytes: &[u8], ty: u8, depth: u32) -> Rest<'_> {
    match ty {
        wire::I16 | wire::I32 | wire::I64 => number(bytes),
        wire::BINARY => binary(bytes),
        wire::TRUE | wire::FALSE => Ok(bytes),
        wire::STRUCT => fields(bytes, depth),
        wire::LIST | wire::SET => list(bytes, depth),
        wire::MAP => map(bytes, depth),
        _ => fixed(bytes, ty),
    }
}

/// As a field value, but a bool takes a byte.
fn element(bytes: &[u8], ty: u8, depth: u32) -> Rest<'_> {
    match ty {
        wire::TRUE | wire::FALSE => bytes.get(1..).ok_or(Fault::Short),
        _ => field_value(bytes, ty, depth),
    }
}

fn list(bytes: &[u8], depth: u32) -> Rest<'_> {
    let Some(depth) = depth.checked_sub(1) else {
        return Err(Fault::Depth);
    };
    let Some((&header, mut bytes)) = bytes.split_first() else {
        return Err(Fault::Short);
    };
    let mut size = u64::from(header >> 4);
    if size == 15 {
        (size, bytes) = length(bytes)?;
    }
    if size == 0 {
        return Ok(bytes);
    }
    let n = match usize::try_from(size) {
        Ok(n) if n <= bytes.len() => n,
        _ => return Err(Fault::Short),
    };
    match header & 0x0F {
        wire::TRUE | wire::FALSE | wire::I8 => bytes.get(n..).ok_or(Fault::Short),
        wire::I16 | wire::I32 | wire::I64 => numbers(bytes, n),
        wire::BINARY => (0..n).try_fold(bytes, |bytes, _| binary(bytes)),
        wire::STRUCT => (0..n).try_fold(bytes, |bytes, _| fields(bytes, depth)),
        ty => (0..n).try_fold(bytes, |bytes, _| element(bytes, ty, depth)),
    }
}

#[cold]
fn map(bytes: &[u8], depth: u32) -> Rest<'_> {
    let Some(depth) = depth.checked_sub(1) else {
        return Err(Fault::Depth);
    };
    let (size, bytes) = length(bytes)?;
    if size == 0 {
        return Ok(bytes);
    }
    let Some((&types, bytes)) = bytes.split_first() else {
        return Err(Fault::Short);
    };
    // Each pair takes two bytes or more, so that the bytes end before the count is out of hand.
    (0..size).try_fold(bytes, |bytes, _| {
        let bytes = element(bytes, types >> 4, depth)?;
        element(bytes, types & 0x0F, depth)
    })
}

#[cold]
fn fixed(bytes: &[u8], ty: u8) -> Rest<'_> {
    let n = match ty {
        wire::I8 => 1,
        wire::DOUBLE => 8,
        wire::UUID => 16,
        _ => return Err(Fault::Type),
    };
    bytes.get(n..).ok_or(Fault::Short)
}

#[inline(always)]
fn binary(bytes: &[u8]) -> Rest<'_> {
    let (len, bytes) = length(bytes)?;
    let len = usize::try_from(len).map_err(|_| Fault::Short)?;
    bytes.get(len..).ok_or(Fault::Short)
}

/// The highest bit of each byte: set where the number goes on.
const MORE: u64 = 0x8080_8080_8080_8080;

#[inline(always)]
fn number(bytes: &[u8]) -> Rest<'_> {
    if let Some(word) = bytes.first_chunk() {
        let ends = !u64::from_le_bytes(*word) & MORE;
        if ends != 0 {
            // At most 8, and 8 are there.
            let len = ends.trailing_zeros() as usize / 8 + 1;
            return bytes.get(len..).ok_or(Fault::Short);
        }
    }
    number_slow(bytes)
}

#[cold]
fn number_slow(bytes: &[u8]) -> Rest<'_> {
    match bytes.iter().take(10).position(|&byte| byte < 0x80) {
        Some(last) => bytes.get(last + 1..).ok_or(Fault::Short),
        None if bytes.len() < 10 => Err(Fault::Short),
        None => Err(Fault::Number),
    }
}

/// `n` numbers, those that end in the next eight bytes at a time: as many as have a byte with the highest bit clear.
fn numbers(mut bytes: &[u8], mut n: usize) -> Rest<'_> {
    while n > 0 {
        if let Some(word) = bytes.first_chunk() {
            let ends = !u64::from_le_bytes(*word) & MORE;
            let count = ends.count_ones() as usize;
            if (1..=n).contains(&count) {
                let len = 8 - ends.leading_zeros() as usize / 8;
                bytes = bytes.get(len..).ok_or(Fault::Short)?;
                n -= count;
                continue;
            }
        }
        bytes = number(bytes)?;
        n -= 1;
    }
    Ok(bytes)
}

/// The length of a byte string, or the size of a list, and what follows it.
#[inline(always)]
fn length(bytes: &[u8]) -> Result<(u64, &[u8]), Fault> {
    match bytes.split_first() {
        Some((&first, rest)) if first < 0x80 => Ok((u64::from(first), rest)),
        _ => length_slow(bytes),
    }
}

#[inline(never)]
fn length_slow(bytes: &[u8]) -> Result<(u64, &[u8]), Fault> {
    let mut value = 0;
    for (i, &byte) in bytes.iter().take(5).enumerate() {
        value |= u64::from(byte & 0x7F) << (7 * i);
        if byte < 0x80 {
            return Ok((value, bytes.get(i + 1..).unwrap_or_default()));
        }
    }
    Err(if bytes.len() < 5 {
        Fault::Short
    } else {
        Fault::Number
    })
}
