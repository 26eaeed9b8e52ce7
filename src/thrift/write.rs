//! [`Write`] is implemented by what can be written; the rest are the few forms of the wire format.

use super::{Read, ThriftReader, wire};
use crate::error::Result;
use crate::memory;

/// A value of the compact protocol that can be written. The macro implements it for structs, unions
/// and enums.
pub trait Write: for<'a> Read<'a> {
    /// Appends the value by itself, or in a list.
    ///
    /// # Errors
    /// `Limit(Memory)` if the system has no memory; so for all of this module.
    fn write(&self, out: &mut Vec<u8>) -> Result<()>;

    /// Appends the value as the field `id` of a struct. `last` is the id of the field before, and
    /// becomes `id`.
    fn write_field(&self, id: i16, last: &mut i16, out: &mut Vec<u8>) -> Result<()> {
        field_header(id, <Self as Read<'_>>::TYPE, last, out)?;
        self.write(out)
    }
}

/// Appends a field header, short where the id is 1 to 15 more than the last one.
pub(super) fn field_header(id: i16, ty: u8, last: &mut i16, out: &mut Vec<u8>) -> Result<()> {
    let delta = i32::from(id) - i32::from(*last);
    *last = id;
    match u8::try_from(delta) {
        Ok(delta @ 1..=15) => memory::push(out, delta << 4 | ty),
        _ => {
            memory::push(out, ty)?;
            varint(zigzag(i64::from(id)), out)
        }
    }
}

/// Appends a field that is a struct without fields.
pub(crate) fn empty_struct_field(id: i16, last: &mut i16, out: &mut Vec<u8>) -> Result<()> {
    field_header(id, wire::STRUCT, last, out)?;
    memory::push(out, wire::STOP)
}

/// Appends a struct, whose list in the field `id` is empty, with `n` structs in that list, which
/// `elements` appends.
pub(crate) fn with_elements(
    of: &impl Write,
    id: i16,
    n: usize,
    elements: impl FnOnce(&mut Vec<u8>) -> Result<()>,
    out: &mut Vec<u8>,
) -> Result<()> {
    let mut empty = Vec::new();
    of.write(&mut empty)?;
    let mut reader = ThriftReader::new(&empty);
    let mut last = 0;
    while let Some(field) = reader.field(last)?.filter(|field| field.id < id) {
        reader.skip(field.ty)?;
        last = field.id;
    }
    memory::append(out, empty.get(..reader.position()).unwrap_or_default())?;
    reader.list()?;
    list_header(n, wire::STRUCT, out)?;
    elements(out)?;
    memory::append(out, reader.rest())
}

/// Appends a list header.
fn list_header(n: usize, ty: u8, out: &mut Vec<u8>) -> Result<()> {
    match u8::try_from(n) {
        Ok(n @ 0..=14) => memory::push(out, n << 4 | ty),
        _ => {
            memory::push(out, 0xF0 | ty)?;
            varint(n as u64, out)
        }
    }
}

/// Appends an unsigned number.
#[expect(clippy::cast_possible_truncation, reason = "seven bits at a time")]
fn varint(mut value: u64, out: &mut Vec<u8>) -> Result<()> {
    memory::room(out, MAX_VARINT)?;
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
    Ok(())
}

/// Bytes of the longest number: 64 bits, seven in each.
const MAX_VARINT: usize = 10;

#[expect(clippy::cast_sign_loss, reason = "zigzag reinterprets the bits by definition")]
fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

impl Write for bool {
    fn write(&self, out: &mut Vec<u8>) -> Result<()> {
        memory::push(out, if *self { wire::TRUE } else { wire::FALSE })
    }

    fn write_field(&self, id: i16, last: &mut i16, out: &mut Vec<u8>) -> Result<()> {
        field_header(id, if *self { wire::TRUE } else { wire::FALSE }, last, out)
    }
}

impl Write for i8 {
    fn write(&self, out: &mut Vec<u8>) -> Result<()> {
        memory::append(out, &self.to_le_bytes())
    }
}

impl Write for i16 {
    fn write(&self, out: &mut Vec<u8>) -> Result<()> {
        varint(zigzag(i64::from(*self)), out)
    }
}

impl Write for i32 {
    fn write(&self, out: &mut Vec<u8>) -> Result<()> {
        varint(zigzag(i64::from(*self)), out)
    }
}

impl Write for i64 {
    fn write(&self, out: &mut Vec<u8>) -> Result<()> {
        varint(zigzag(*self), out)
    }
}

impl Write for f64 {
    fn write(&self, out: &mut Vec<u8>) -> Result<()> {
        memory::append(out, &self.to_le_bytes())
    }
}

impl Write for String {
    fn write(&self, out: &mut Vec<u8>) -> Result<()> {
        binary(self.as_bytes(), out)
    }
}

impl Write for Vec<u8> {
    fn write(&self, out: &mut Vec<u8>) -> Result<()> {
        binary(self, out)
    }
}

fn binary(bytes: &[u8], out: &mut Vec<u8>) -> Result<()> {
    varint(bytes.len() as u64, out)?;
    memory::append(out, bytes)
}

impl<T: Write> Write for Vec<T> {
    fn write(&self, out: &mut Vec<u8>) -> Result<()> {
        list_header(self.len(), T::TYPE, out)?;
        self.iter().try_for_each(|element| element.write(out))
    }
}
