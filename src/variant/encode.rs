//! Encodes values: scalars, and the headers of objects and arrays.
//!
//! Spec: VariantEncoding.md, "Value encoding". The values of an object or array are written first;
//! its header, whose widths depend on them, is then put in front of them.

use super::malformed::malformed;
use super::value::Variant;
use crate::error::Result;

/// Maximum length of a string whose length is stored in the header.
const SHORT_STRING: usize = 63;

/// Bytes of a scalar, at most.
pub(super) fn max_bytes(value: &Variant<'_>) -> usize {
    match value {
        Variant::Binary(bytes) => 5 + bytes.len(),
        Variant::String(text) => 5 + text.len(),
        // The widest is a decimal of 16 bytes, with its scale.
        _ => 18,
    }
}

/// Bytes of the header of an object or array of `len` values, at most.
pub(super) fn max_header(len: usize) -> usize {
    // Header byte, length and end; the id of its name and the offset of each.
    9 + 8 * len
}

/// Appends a value without elements. Objects and arrays are not scalars: nothing is appended, and
/// false returned.
pub(super) fn scalar(out: &mut Vec<u8>, value: &Variant<'_>) -> Result<bool> {
    match *value {
        Variant::Null => out.push(0),
        Variant::Boolean(true) => out.push(1 << 2),
        Variant::Boolean(false) => out.push(2 << 2),
        Variant::Int8(v) => fixed(out, 3, &v.to_le_bytes()),
        Variant::Int16(v) => fixed(out, 4, &v.to_le_bytes()),
        Variant::Int32(v) => fixed(out, 5, &v.to_le_bytes()),
        Variant::Int64(v) => fixed(out, 6, &v.to_le_bytes()),
        Variant::Double(v) => fixed(out, 7, &v.to_le_bytes()),
        Variant::Decimal(digits, scale) => decimal(out, digits, scale)?,
        Variant::Date(v) => fixed(out, 11, &v.to_le_bytes()),
        Variant::TimestampMicros(v) => fixed(out, 12, &v.to_le_bytes()),
        Variant::TimestampNtzMicros(v) => fixed(out, 13, &v.to_le_bytes()),
        Variant::Float(v) => fixed(out, 14, &v.to_le_bytes()),
        Variant::Binary(bytes) => prefixed(out, 15, bytes)?,
        Variant::String(text) => string(out, text)?,
        Variant::TimeMicros(v) => fixed(out, 17, &v.to_le_bytes()),
        Variant::TimestampNanos(v) => fixed(out, 18, &v.to_le_bytes()),
        Variant::TimestampNtzNanos(v) => fixed(out, 19, &v.to_le_bytes()),
        Variant::Uuid(bytes) => fixed(out, 20, &bytes),
        Variant::Object(_) | Variant::List(_) => return Ok(false),
    }
    Ok(true)
}

#[inline]
fn fixed(out: &mut Vec<u8>, id: u8, payload: &[u8]) {
    out.push(id << 2);
    out.extend_from_slice(payload);
}

fn decimal(out: &mut Vec<u8>, digits: i128, scale: u8) -> Result<()> {
    let magnitude = digits.unsigned_abs();
    // Arrow does not check the values of its arrays against their precision.
    if magnitude >= 10_u128.pow(38) || scale > 38 {
        return Err(no_decimal(digits, scale));
    }
    // Decimal4, Decimal8 and Decimal16 hold at most 9, 18 and 38 digits.
    let (id, width) = match magnitude {
        0..1_000_000_000 => (8, 4),
        1_000_000_000..1_000_000_000_000_000_000 => (9, 8),
        _ => (10, 16),
    };
    out.push(id << 2);
    out.push(scale);
    out.extend_from_slice(&digits.to_le_bytes()[..width]);
    Ok(())
}

#[cold]
fn no_decimal(digits: i128, scale: u8) -> crate::error::Error {
    malformed(format_args!(
        "a decimal of the digits {digits} and the scale {scale}: VARIANT has at most 38 of both"
    ))
}

pub(super) fn string(out: &mut Vec<u8>, text: &str) -> Result<()> {
    match u8::try_from(text.len()) {
        Ok(len) if text.len() <= SHORT_STRING => {
            out.push(len << 2 | 1);
            out.extend_from_slice(text.as_bytes());
            Ok(())
        }
        _ => prefixed(out, 16, text.as_bytes()),
    }
}

fn prefixed(out: &mut Vec<u8>, id: u8, bytes: &[u8]) -> Result<()> {
    let len = u32::try_from(bytes.len()).map_err(|_| too_long(bytes.len()))?;
    out.push(id << 2);
    out.extend_from_slice(&len.to_le_bytes());
    out.extend_from_slice(bytes);
    Ok(())
}

#[cold]
fn too_long(len: usize) -> crate::error::Error {
    malformed(format_args!("{len} bytes are more than a VARIANT value can hold (4 GiB)"))
}

/// Puts the header of an object in front of its values, which are the bytes of `out` from `start`
/// on. `fields` are the ids of the names and where each value begins, counted from `start`, in the
/// order of the names.
pub(super) fn object(out: &mut Vec<u8>, start: usize, fields: &[(u32, u32)]) -> Result<()> {
    let total = total(out, start)?;
    let id_size = width(fields.iter().map(|field| field.0).max().unwrap_or(0));
    let offset_size = width(total);
    let (len, len_size) = length(fields.len())?;
    let is_large = u8::from(len_size == 4);
    let header = 2 | ((offset_size - 1) | (id_size - 1) << 2 | is_large << 4) << 2;
    let (offset_size, id_size) = (usize::from(offset_size), usize::from(id_size));
    let size = 1 + len_size + fields.len() * id_size + (fields.len() + 1) * offset_size;
    let mut rest = reserve_front(out, start, size);
    put(&mut rest, &[header], 1);
    put(&mut rest, &len, len_size);
    for (id, _) in fields {
        put(&mut rest, &id.to_le_bytes(), id_size);
    }
    for (_, offset) in fields {
        put(&mut rest, &offset.to_le_bytes(), offset_size);
    }
    put(&mut rest, &total.to_le_bytes(), offset_size);
    Ok(())
}

/// Like [`object`], for an array; `offsets` are where its elements begin.
pub(super) fn list(out: &mut Vec<u8>, start: usize, offsets: &[u32]) -> Result<()> {
    let total = total(out, start)?;
    let offset_size = width(total);
    let (len, len_size) = length(offsets.len())?;
    let is_large = u8::from(len_size == 4);
    let header = 3 | ((offset_size - 1) | is_large << 2) << 2;
    let offset_size = usize::from(offset_size);
    let size = 1 + len_size + (offsets.len() + 1) * offset_size;
    let mut rest = reserve_front(out, start, size);
    put(&mut rest, &[header], 1);
    put(&mut rest, &len, len_size);
    for offset in offsets.iter().chain([&total]) {
        put(&mut rest, &offset.to_le_bytes(), offset_size);
    }
    Ok(())
}

/// The offset of the next value in an object or array that begins at `start`.
pub(super) fn offset(out: &[u8], start: usize) -> Result<u32> {
    total(out, start)
}

fn total(out: &[u8], start: usize) -> Result<u32> {
    let len = out.len() - start;
    u32::try_from(len).map_err(|_| too_long(len))
}

/// Number of bytes that a number takes.
pub(super) fn width(value: u32) -> u8 {
    match value {
        0..=0xff => 1,
        0x100..=0xffff => 2,
        0x1_0000..=0xff_ffff => 3,
        _ => 4,
    }
}

/// The number of elements, and how many bytes it takes: 1 or 4.
fn length(len: usize) -> Result<([u8; 4], usize)> {
    let len = u32::try_from(len).map_err(|_| too_long(len))?;
    Ok((len.to_le_bytes(), if len > 255 { 4 } else { 1 }))
}

/// Inserts `size` bytes at `start`, and returns them.
fn reserve_front(out: &mut Vec<u8>, start: usize, size: usize) -> &mut [u8] {
    let end = out.len();
    out.resize(end + size, 0);
    out.copy_within(start..end, start + size);
    &mut out[start..start + size]
}

#[inline]
fn put(rest: &mut &mut [u8], bytes: &[u8], n: usize) {
    let (front, after) = std::mem::take(rest).split_at_mut(n);
    front.copy_from_slice(&bytes[..n]);
    *rest = after;
}
