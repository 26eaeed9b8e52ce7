//! [`ThriftReader`] reads values from bytes; [`Read`] is implemented by what can be read.

use super::skip::{self, SimilarStructSkipper, SkipError};
use super::wire;
use crate::bytes::{Cursor, unzigzag};
use crate::error::{Error, LimitKind, Result, Spec};
use crate::memory;

/// A value of the compact protocol that can be read, and may borrow from the bytes. The macro
/// implements it for structs, unions and enums.
pub trait Read<'a>: Sized + Default {
    /// The type of the wire, as the writer emits it.
    const TYPE: u8;

    /// Whether a field of the wire type `ty`, whose payload begins with `payload`, is such a value.
    #[inline]
    fn fits(ty: u8, payload: &[u8]) -> bool {
        let _ = payload;
        ty == Self::TYPE
    }

    /// Reads a value by itself, or in a list.
    ///
    /// # Errors
    /// `Malformed(Thrift)`, or `Malformed(Metadata)` inside a struct; see the policy in
    /// [`thrift`](crate::thrift).
    fn read(reader: &mut ThriftReader<'a>) -> Result<Self>;

    /// As [`Read::read`], into `self`, which is the default: a large struct is filled where it
    /// stays, not moved there.
    ///
    /// # Errors
    /// As [`Read::read`]; `self` is then half filled.
    #[inline]
    fn read_over(&mut self, reader: &mut ThriftReader<'a>) -> Result<()> {
        *self = Self::read(reader)?;
        Ok(())
    }

    /// Reads a value that is a field of the type `ty`, which fits, into `self`, which is the
    /// default.
    ///
    /// # Errors
    /// As [`Read::read_over`].
    #[inline]
    fn read_field(&mut self, reader: &mut ThriftReader<'a>, ty: u8) -> Result<()> {
        let _ = ty;
        self.read_over(reader)
    }

    /// Whether an optional field with this value is to be taken as absent: a union without a
    /// member.
    #[inline]
    fn is_absent(&self) -> bool {
        false
    }
}

/// Reads values of the compact protocol from the front of a slice, without copying what is skipped.
#[derive(Debug)]
pub struct ThriftReader<'a> {
    cursor: Cursor<'a>,
    /// Whether a value was read that cannot be written back unchanged; see
    /// [`Unknown`](super::Unknown).
    lossy: bool,
}

/// The header of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Field {
    /// Id of the field in its struct.
    pub id: i16,
    /// Wire type, one of [`wire`]. For a bool it is the value.
    pub ty: u8,
}

impl<'a> ThriftReader<'a> {
    /// How deep a value that is skipped may be nested.
    pub(crate) const MAX_DEPTH: u32 = skip::MAX_DEPTH;

    /// A reader at the start of `bytes`.
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { cursor: Cursor::new(bytes, Spec::Thrift), lossy: false }
    }

    /// Bytes read so far: after a struct, where what follows it begins.
    #[inline]
    pub(crate) fn position(&self) -> usize {
        self.cursor.position()
    }

    /// The rest of the bytes.
    #[inline]
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.cursor.rest()
    }

    /// Reads the header of the next field of a struct, or its stop. `last` is the id of the field
    /// before, 0 at first.
    ///
    /// # Errors
    /// `Malformed(Thrift)` if the id does not fit in 16 bits, or the bytes end early.
    #[inline]
    pub(crate) fn field(&mut self, last: i16) -> Result<Option<Field>> {
        #[cfg(test)]
        crate::steps::add(1);
        let header = self.cursor.u8()?;
        let ty = header & 0x0F;
        if let Some(id) = last.checked_add(i16::from(header >> 4))
            && header >= 0x10
            && ty != wire::STOP
        {
            return Ok(Some(Field { id, ty }));
        }
        if header == wire::STOP {
            return Ok(None);
        }
        self.field_rare(header)
    }

    /// The long form, or a header that cannot be.
    #[cold]
    #[inline(never)]
    fn field_rare(&mut self, header: u8) -> Result<Option<Field>> {
        match header {
            1..0x10 => Ok(Some(Field { id: self.i16()?, ty: header })),
            _ => Err(Error::malformed(
                Spec::Thrift,
                "a field without a type, or with an id beyond 16 bits",
            )),
        }
    }

    /// Reads one byte.
    ///
    /// # Errors
    /// `Malformed(Thrift)` if none is left.
    #[inline]
    pub(crate) fn u8(&mut self) -> Result<u8> {
        self.cursor.u8()
    }

    /// Reads a 16-bit number.
    ///
    /// # Errors
    /// `Malformed(Thrift)` if it is longer than 3 bytes, overflows, or ends early.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "16 bits, zigzag keeps the width")]
    pub(crate) fn i16(&mut self) -> Result<i16> {
        Ok(unzigzag(self.varint::<16>()?) as i16)
    }

    /// Reads a 32-bit number.
    ///
    /// # Errors
    /// `Malformed(Thrift)` if it is longer than 5 bytes, overflows, or ends early.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "32 bits, zigzag keeps the width")]
    pub(crate) fn i32(&mut self) -> Result<i32> {
        Ok(unzigzag(self.varint::<32>()?) as i32)
    }

    /// Reads a 64-bit number.
    ///
    /// # Errors
    /// `Malformed(Thrift)` if it is longer than 10 bytes, overflows, or ends early.
    #[inline]
    pub(crate) fn i64(&mut self) -> Result<i64> {
        Ok(unzigzag(self.varint::<64>()?))
    }

    /// Reads a byte string, borrowed.
    ///
    /// # Errors
    /// `Malformed(Thrift)` if its length exceeds the rest.
    #[inline]
    pub(crate) fn binary(&mut self) -> Result<&'a [u8]> {
        let len = self.varint::<32>()?;
        match usize::try_from(len) {
            Ok(len) => self.cursor.take(len),
            Err(_) => Err(self.too_long(len)),
        }
    }

    /// Reads a name: text that must be UTF-8.
    ///
    /// # Errors
    /// `Malformed(Thrift)` if it is not, or as [`ThriftReader::binary`].
    #[inline]
    pub(crate) fn name(&mut self) -> Result<&'a str> {
        let bytes = self.binary()?;
        simdutf8::basic::from_utf8(bytes).map_err(|_| {
            Error::malformed(
                Spec::Thrift,
                format_args!("a name is not UTF-8: \"{}\"", excerpt(bytes).escape_ascii()),
            )
        })
    }

    /// Reads free text; invalid UTF-8 becomes replacement characters.
    ///
    /// # Errors
    /// As [`ThriftReader::binary`].
    pub(crate) fn text(&mut self) -> Result<String> {
        let bytes = self.binary()?;
        if let Ok(text) = simdutf8::basic::from_utf8(bytes) {
            return memory::text(text);
        }
        self.lossy = true;
        memory::lossy_text(bytes)
    }

    /// Reads the header of a list: the wire type of the elements, and how many follow.
    ///
    /// # Errors
    /// `Malformed(Thrift)` if there are more than bytes left.
    #[inline]
    pub(crate) fn list(&mut self) -> Result<(u8, usize)> {
        let header = self.cursor.u8()?;
        let size = match header >> 4 {
            15 => self.varint::<32>()?,
            size => u64::from(size),
        };
        match usize::try_from(size) {
            Ok(n) if n <= self.cursor.remaining() => Ok((header & 0x0F, n)),
            _ => Err(self.too_long(size)),
        }
    }

    /// Skips `n` bytes.
    ///
    /// # Errors
    /// `Malformed(Thrift)` if fewer are left.
    #[inline]
    pub(crate) fn skip_bytes(&mut self, n: usize) -> Result<()> {
        self.cursor.skip(n)
    }

    /// Skips the value of a field of the wire type `ty`.
    ///
    /// # Errors
    /// `Malformed(Thrift)` if it is not whole or has no known type; `Limit(Nesting)` if it is
    /// nested more than 64 deep.
    #[inline]
    pub(crate) fn skip(&mut self, ty: u8) -> Result<()> {
        self.move_to(skip::value(self.rest(), ty))
    }

    /// Skips a struct.
    ///
    /// # Errors
    /// As [`ThriftReader::skip`].
    #[inline]
    pub(crate) fn skip_struct(&mut self) -> Result<()> {
        self.move_to(skip::structure(self.rest()))
    }

    /// Skips a struct that may be like those that were skipped before it.
    #[inline]
    pub(crate) fn skip_alike(&mut self, alike: &mut SimilarStructSkipper<'a>) -> Result<()> {
        self.move_to(alike.skip(self.rest()))
    }

    /// Reads a struct without any known field.
    #[inline]
    pub(crate) fn empty_struct(&mut self) -> Result<()> {
        if self.rest().first() == Some(&wire::STOP) {
            return self.cursor.skip(1);
        }
        self.lossy = true;
        self.skip_struct()
    }

    /// Skips the value of `field`, which is lost because the struct keeps no unknown fields.
    #[cold]
    pub(crate) fn skip_lossy(&mut self, field: Field) -> Result<()> {
        self.lossy = true;
        self.skip(field.ty)
    }

    /// Notes that what was read holds more than its Rust value does.
    #[cold]
    pub(crate) fn set_lossy(&mut self) {
        self.lossy = true;
    }

    /// Whether a value since the last call holds more than its Rust value does.
    #[inline]
    pub(crate) fn take_lossy(&mut self) -> bool {
        std::mem::take(&mut self.lossy)
    }

    /// The bytes read since `before` was the rest.
    pub(crate) fn since(&self, before: &'a [u8]) -> &'a [u8] {
        before.get(..before.len().saturating_sub(self.cursor.remaining())).unwrap_or_default()
    }

    #[inline]
    fn move_to(&mut self, rest: std::result::Result<&'a [u8], SkipError>) -> Result<()> {
        match rest {
            Ok(rest) => self.cursor.skip(self.cursor.remaining().saturating_sub(rest.len())),
            Err(fault) => Err(self.fault(fault)),
        }
    }

    /// An unsigned number of at most `BITS` bits.
    #[inline(always)]
    fn varint<const BITS: u32>(&mut self) -> Result<u64> {
        let rest = self.rest();
        match rest.first() {
            Some(&first) if first < 0x80 => {
                self.cursor.skip(1)?;
                return Ok(u64::from(first));
            }
            _ => {}
        }
        // Most numbers of a footer take two to eight bytes, and the same field of the next chunk as
        // many.
        if let Some(word) = rest.first_chunk()
            && let Some((value, len)) = short_varint(u64::from_le_bytes(*word))
            && (BITS == 64 || (value >> BITS == 0 && len <= BITS.div_ceil(7) as usize))
        {
            self.cursor.skip(len)?;
            return Ok(value);
        }
        self.varint_slow(BITS)
    }

    /// Byte by byte: of the last seven bytes, and what no number may be.
    #[inline(never)]
    fn varint_slow(&mut self, bits: u32) -> Result<u64> {
        let (mut value, max) = (0u64, bits.div_ceil(7) as usize);
        for (i, &byte) in self.rest().iter().enumerate().take(max) {
            let group = u64::from(byte & 0x7F);
            let shifted = group << (7 * i);
            if shifted >> (7 * i) != group {
                break;
            }
            value |= shifted;
            if byte < 0x80 {
                if bits < u64::BITS && value >> bits != 0 {
                    break;
                }
                self.cursor.skip(i + 1)?;
                return Ok(value);
            }
        }
        match self.rest().iter().take(max).all(|byte| *byte >= 0x80) && self.rest().len() < max {
            // Reports that the data end early.
            true => self.cursor.skip(self.rest().len() + 1).map(|()| 0),
            false => Err(self.too_many_bits(bits)),
        }
    }

    #[cold]
    #[inline(never)]
    fn too_many_bits(&self, bits: u32) -> Error {
        Error::malformed(
            Spec::Thrift,
            format_args!("the number at byte {} has more than {bits} bits", self.position()),
        )
    }

    #[cold]
    #[inline(never)]
    fn too_long(&self, len: u64) -> Error {
        Error::malformed(
            Spec::Thrift,
            format_args!(
                "a length of {len} at byte {}, with {} bytes left",
                self.position(),
                self.cursor.remaining()
            ),
        )
    }

    #[cold]
    #[inline(never)]
    fn fault(&self, fault: SkipError) -> Error {
        let what = match fault {
            SkipError::Short => "ends early",
            SkipError::Type => "has a type that does not exist",
            SkipError::Number => "holds a number of more than 10 bytes",
            SkipError::Depth => {
                return Error::limit(
                    LimitKind::Nesting,
                    format_args!(
                        "the thrift value at byte {} is nested more than {} deep",
                        self.position(),
                        Self::MAX_DEPTH
                    ),
                );
            }
        };
        Error::malformed(
            Spec::Thrift,
            format_args!("the value skipped at byte {} {what}", self.position()),
        )
    }
}

/// The number at the front of a little-endian word, and its length, if it takes no more than these
/// 8 bytes.
#[inline]
fn short_varint(word: u64) -> Option<(u64, usize)> {
    let ends = !word & 0x8080_8080_8080_8080;
    if ends == 0 {
        return None;
    }
    // All bits up to the first end, without the highest of each byte; then groups of 7 become 14,
    // 28, 56.
    let x = word & (ends ^ (ends - 1)) & 0x7F7F_7F7F_7F7F_7F7F;
    let x = (x & 0x007F_007F_007F_007F) | ((x & 0x7F00_7F00_7F00_7F00) >> 1);
    let x = (x & 0x0000_3FFF_0000_3FFF) | ((x & 0x3FFF_0000_3FFF_0000) >> 2);
    let x = (x & 0x0000_0000_0FFF_FFFF) | ((x & 0x0FFF_FFFF_0000_0000) >> 4);
    Some((x, ends.trailing_zeros() as usize / 8 + 1))
}

/// The first bytes of a byte string, for an error.
fn excerpt(bytes: &[u8]) -> &[u8] {
    bytes.get(..64).unwrap_or(bytes)
}

/// Names the struct and the field in an error of the protocol; the innermost struct that sees it
/// wins.
#[cold]
#[inline(never)]
pub(crate) fn in_field(error: Error, name: &'static str, id: i16, field: &str) -> Error {
    if error.kind() != crate::error::ErrorKind::Malformed(Spec::Thrift) {
        return error;
    }
    let spec = Spec::Metadata(name);
    match field {
        // Before the first field.
        "" if id == 0 => Error::malformed(spec, format_args!("{name}: {}", error.message())),
        "" => Error::malformed(spec, format_args!("{name}, field {id}: {}", error.message())),
        _ => Error::malformed(spec, format_args!("{name}.{field}: {}", error.message())),
    }
}

impl Read<'_> for bool {
    const TYPE: u8 = wire::TRUE;

    #[inline]
    fn fits(ty: u8, _: &[u8]) -> bool {
        ty == wire::TRUE || ty == wire::FALSE
    }

    #[inline]
    fn read(reader: &mut ThriftReader<'_>) -> Result<Self> {
        match reader.u8()? {
            1 => Ok(true),
            0 | 2 => Ok(false),
            byte => Err(Error::mismatch(Spec::Thrift, "a bool in a list", "0, 1 or 2", byte)),
        }
    }

    #[inline]
    fn read_field(&mut self, _: &mut ThriftReader<'_>, ty: u8) -> Result<()> {
        *self = ty == wire::TRUE;
        Ok(())
    }
}

impl Read<'_> for i8 {
    const TYPE: u8 = wire::I8;

    #[inline]
    fn read(reader: &mut ThriftReader<'_>) -> Result<Self> {
        Ok(Self::from_le_bytes([reader.u8()?]))
    }
}

impl Read<'_> for i16 {
    const TYPE: u8 = wire::I16;

    #[inline]
    fn read(reader: &mut ThriftReader<'_>) -> Result<Self> {
        reader.i16()
    }
}

impl Read<'_> for i32 {
    const TYPE: u8 = wire::I32;

    #[inline]
    fn read(reader: &mut ThriftReader<'_>) -> Result<Self> {
        reader.i32()
    }
}

impl Read<'_> for i64 {
    const TYPE: u8 = wire::I64;

    #[inline]
    fn read(reader: &mut ThriftReader<'_>) -> Result<Self> {
        reader.i64()
    }
}

impl Read<'_> for f64 {
    const TYPE: u8 = wire::DOUBLE;

    #[inline]
    fn read(reader: &mut ThriftReader<'_>) -> Result<Self> {
        Ok(Self::from_le_bytes(reader.cursor.array()?))
    }
}

impl Read<'_> for String {
    const TYPE: u8 = wire::BINARY;

    #[inline]
    fn read(reader: &mut ThriftReader<'_>) -> Result<Self> {
        reader.name().map(str::to_owned)
    }
}

impl Read<'_> for Vec<u8> {
    const TYPE: u8 = wire::BINARY;

    #[inline]
    fn read(reader: &mut ThriftReader<'_>) -> Result<Self> {
        reader.binary().map(<[u8]>::to_vec)
    }
}

impl<'a> Read<'a> for &'a [u8] {
    const TYPE: u8 = wire::BINARY;

    #[inline]
    fn read(reader: &mut ThriftReader<'a>) -> Result<Self> {
        reader.binary()
    }
}

impl<'a> Read<'a> for &'a str {
    const TYPE: u8 = wire::BINARY;

    #[inline]
    fn read(reader: &mut ThriftReader<'a>) -> Result<Self> {
        reader.name()
    }
}

impl<'a, T: Read<'a>> Read<'a> for Vec<T> {
    const TYPE: u8 = wire::LIST;

    #[inline]
    fn fits(ty: u8, payload: &[u8]) -> bool {
        ty == wire::LIST && elements_fit::<T>(payload)
    }

    fn read(reader: &mut ThriftReader<'a>) -> Result<Self> {
        let (_, n) = reader.list()?;
        // An element takes a byte or more, but may be much larger here than there.
        let mut list = memory::vec_for(n.min(1024))?;
        for _ in 0..n {
            memory::push(&mut list, T::default())?;
            if let Some(element) = list.last_mut() {
                element.read_over(reader)?;
            }
        }
        Ok(list)
    }
}

/// Whether the list at the front of `payload` is one of such elements.
#[inline]
pub(super) fn elements_fit<'a, T: Read<'a>>(payload: &[u8]) -> bool {
    match payload {
        [header, ..] if header >> 4 == 0 => true,
        // The long form of an empty list.
        [header, 0, ..] if header >> 4 == 15 => true,
        [header, ..] => T::fits(header & 0x0F, &[]),
        [] => true,
    }
}
