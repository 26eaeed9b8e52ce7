//! [`Variant`]: a value, looked at in place.

use super::malformed;
use super::metadata::{VariantMetadata, unsigned};
use crate::error::{Error, LimitKind, Result};

/// How deep objects and arrays may nest: deeper ones are refused, so that no value can exhaust a
/// stack of 1 MiB.
pub const MAX_DEPTH: usize = 200;

/// A value. Numbers of different widths are different members here, and equal in meaning.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum Variant<'a> {
    /// Null, which is a value, other than a missing one.
    Null,
    /// A boolean.
    Boolean(bool),
    /// An integer of 8 bits.
    Int8(i8),
    /// An integer of 16 bits.
    Int16(i16),
    /// An integer of 32 bits.
    Int32(i32),
    /// An integer of 64 bits.
    Int64(i64),
    /// A float of 32 bits.
    Float(f32),
    /// A float of 64 bits.
    Double(f64),
    /// A decimal: the digits, and how many of them stand after the point.
    Decimal(i128, u8),
    /// Days since 1970-01-01.
    Date(i32),
    /// Microseconds since 1970-01-01 00:00 UTC.
    TimestampMicros(i64),
    /// Microseconds since 1970-01-01 00:00 of no time zone.
    TimestampNtzMicros(i64),
    /// Nanoseconds since 1970-01-01 00:00 UTC.
    TimestampNanos(i64),
    /// Nanoseconds since 1970-01-01 00:00 of no time zone.
    TimestampNtzNanos(i64),
    /// Microseconds since midnight.
    TimeMicros(i64),
    /// Bytes.
    Binary(&'a [u8]),
    /// A text.
    String(&'a str),
    /// A UUID.
    Uuid([u8; 16]),
    /// Values by name.
    Object(VariantObject<'a>),
    /// Values in order.
    List(VariantList<'a>),
}

/// An object. Fields stand in the order of their names.
#[derive(Debug, Clone, Copy)]
pub struct VariantObject<'a> {
    metadata: VariantMetadata<'a>,
    ids: &'a [u8],
    id_size: usize,
    elements: Elements<'a>,
}

/// A field of an object, as it is stored.
#[derive(Debug, Clone, Copy)]
pub(super) struct Part<'a> {
    /// The number of its name in the metadata.
    pub(super) id: u32,
    pub(super) name: &'a str,
    pub(super) bytes: &'a [u8],
}

#[cold]
fn out_of_order(name: &str) -> Error {
    malformed(format_args!(
        "the fields of an object are not in the order of their names, each once: {name:?}"
    ))
}

/// An array.
#[derive(Debug, Clone, Copy)]
pub struct VariantList<'a> {
    metadata: VariantMetadata<'a>,
    elements: Elements<'a>,
}

/// The values of an object or an array.
#[derive(Debug, Clone, Copy)]
struct Elements<'a> {
    offsets: &'a [u8],
    offset_size: usize,
    values: &'a [u8],
    len: usize,
    depth: usize,
}

/// Takes bytes from the front of a value.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn take(&mut self, n: usize) -> Result<&'a [u8]> {
        let (taken, rest) = self
            .0
            .split_at_checked(n)
            .ok_or_else(|| malformed("a value ends before its contents"))?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut out = [0; N];
        out.copy_from_slice(self.take(N)?);
        Ok(out)
    }

    /// Bytes after their length of 4 bytes.
    fn prefixed(&mut self) -> Result<&'a [u8]> {
        let len = unsigned(self.take(4)?);
        self.take(len)
    }
}

impl<'a> Variant<'a> {
    /// The value at the start of `bytes`, whose names are in `metadata`. What is inside of objects
    /// and arrays is read when it is asked for.
    ///
    /// # Errors
    /// `Malformed(Variant)` if the value is cut short or no value, `Unsupported` if its type is not
    /// known.
    pub fn new(metadata: VariantMetadata<'a>, bytes: &'a [u8]) -> Result<Self> {
        Self::read(metadata, bytes, 0).map(|(value, _)| value)
    }

    /// The value, and how many bytes it takes.
    pub(super) fn read(
        metadata: VariantMetadata<'a>,
        bytes: &'a [u8],
        depth: usize,
    ) -> Result<(Self, usize)> {
        let mut rest = Bytes(bytes);
        let [header] = rest.array()?;
        let info = header >> 2;
        let value = match header & 3 {
            0 => Self::primitive(info, &mut rest)?,
            1 => Self::String(text(rest.take(info.into())?)?),
            2 => Self::Object(VariantObject::read(metadata, info, &mut rest, depth)?),
            _ => {
                let (offset_size, is_large) = (usize::from(info & 3) + 1, info & 4 != 0);
                let len = unsigned(rest.take(if is_large { 4 } else { 1 })?);
                let elements = Elements::read(len, offset_size, &mut rest, depth)?;
                Self::List(VariantList { metadata, elements })
            }
        };
        Ok((value, bytes.len() - rest.0.len()))
    }

    fn primitive(id: u8, rest: &mut Bytes<'a>) -> Result<Self> {
        Ok(match id {
            0 => Self::Null,
            1 => Self::Boolean(true),
            2 => Self::Boolean(false),
            3 => Self::Int8(i8::from_le_bytes(rest.array()?)),
            4 => Self::Int16(i16::from_le_bytes(rest.array()?)),
            5 => Self::Int32(i32::from_le_bytes(rest.array()?)),
            6 => Self::Int64(i64::from_le_bytes(rest.array()?)),
            7 => Self::Double(f64::from_le_bytes(rest.array()?)),
            8..=10 => {
                let [scale] = rest.array()?;
                if scale > 38 {
                    return Err(malformed(format_args!("a decimal of scale {scale}; at most 38")));
                }
                let digits = match id {
                    8 => i32::from_le_bytes(rest.array()?).into(),
                    9 => i64::from_le_bytes(rest.array()?).into(),
                    _ => i128::from_le_bytes(rest.array()?),
                };
                Self::Decimal(digits, scale)
            }
            11 => Self::Date(i32::from_le_bytes(rest.array()?)),
            12 => Self::TimestampMicros(i64::from_le_bytes(rest.array()?)),
            13 => Self::TimestampNtzMicros(i64::from_le_bytes(rest.array()?)),
            14 => Self::Float(f32::from_le_bytes(rest.array()?)),
            15 => Self::Binary(rest.prefixed()?),
            16 => Self::String(text(rest.prefixed()?)?),
            17 => Self::TimeMicros(i64::from_le_bytes(rest.array()?)),
            18 => Self::TimestampNanos(i64::from_le_bytes(rest.array()?)),
            19 => Self::TimestampNtzNanos(i64::from_le_bytes(rest.array()?)),
            20 => Self::Uuid(rest.array()?),
            other => {
                return Err(Error::unsupported(
                    "type of a VARIANT value",
                    format_args!("a VARIANT value of the primitive type {other}"),
                ));
            }
        })
    }
}

fn text(bytes: &[u8]) -> Result<&str> {
    str::from_utf8(bytes).map_err(|_| malformed("a text is not UTF-8"))
}

impl<'a> Elements<'a> {
    fn read(len: usize, offset_size: usize, rest: &mut Bytes<'a>, depth: usize) -> Result<Self> {
        if depth >= MAX_DEPTH {
            return Err(Error::limit(
                LimitKind::Nesting,
                format_args!("a VARIANT value nests deeper than {MAX_DEPTH} objects and arrays"),
            ));
        }
        let too_many =
            || malformed(format_args!("{len} values do not fit into an object or array"));
        let bytes = len.checked_add(1).and_then(|n| n.checked_mul(offset_size));
        let offsets = rest.take(bytes.ok_or_else(too_many)?)?;
        let total = offsets.rchunks_exact(offset_size).next().map_or(0, unsigned);
        let values = rest.take(total)?;
        Ok(Self { offsets, offset_size, values, len, depth })
    }

    /// The bytes of a value: from its offset on, as values may stand in any order.
    fn bytes(&self, i: usize) -> Result<&'a [u8]> {
        let at = Some(i).filter(|i| *i < self.len).and_then(|i| i.checked_mul(self.offset_size));
        let offset = at.and_then(|at| self.offsets.get(at..at + self.offset_size)).map(unsigned);
        offset.and_then(|offset| self.values.get(offset..)).ok_or_else(|| {
            malformed(format_args!("the value {i} of an object or array lies outside of it"))
        })
    }

    fn get(&self, metadata: VariantMetadata<'a>, i: usize) -> Result<(Variant<'a>, &'a [u8])> {
        let bytes = self.bytes(i)?;
        let (value, len) = Variant::read(metadata, bytes, self.depth + 1)?;
        Ok((value, bytes.get(..len).unwrap_or_default()))
    }
}

impl<'a> VariantObject<'a> {
    fn read(
        metadata: VariantMetadata<'a>,
        info: u8,
        rest: &mut Bytes<'a>,
        depth: usize,
    ) -> Result<Self> {
        let (offset_size, id_size) = (usize::from(info & 3) + 1, usize::from(info >> 2 & 3) + 1);
        let len = unsigned(rest.take(if info & 16 != 0 { 4 } else { 1 })?);
        let bytes = len.checked_mul(id_size);
        let ids = rest.take(bytes.ok_or_else(|| malformed("an object of too many fields"))?)?;
        let elements = Elements::read(len, offset_size, rest, depth)?;
        Ok(Self { metadata, ids, id_size, elements })
    }

    /// Number of fields.
    pub fn len(&self) -> usize {
        self.elements.len
    }

    /// Whether there are no fields.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The name of a field, by its place.
    ///
    /// # Errors
    /// `Malformed(Variant)` if there is no such name.
    pub fn name(&self, i: usize) -> Result<&'a str> {
        self.id(i).map(|(_, name)| name)
    }

    /// The name of a field, and its number in the metadata.
    fn id(&self, i: usize) -> Result<(u32, &'a str)> {
        let id = i.checked_mul(self.id_size).and_then(|at| self.ids.get(at..at + self.id_size));
        let id = id.map(unsigned);
        id.and_then(|id| Some((u32::try_from(id).ok()?, self.metadata.name(id)?)))
            .ok_or_else(|| malformed(format_args!("the name of field {i} is not in the metadata")))
    }

    /// The value of a field, by its place.
    ///
    /// # Errors
    /// As [`Variant::new`].
    pub fn value(&self, i: usize) -> Result<Variant<'a>> {
        self.elements.get(self.metadata, i).map(|(value, _)| value)
    }

    /// The bytes of a field's value.
    pub(super) fn value_bytes(&self, i: usize) -> Result<&'a [u8]> {
        self.elements.get(self.metadata, i).map(|(_, bytes)| bytes)
    }

    /// The value of the field of this name.
    ///
    /// # Errors
    /// As [`Variant::new`].
    pub fn get(&self, name: &str) -> Result<Option<Variant<'a>>> {
        self.place_of(name)?.map(|i| self.value(i)).transpose()
    }

    /// The bytes of the value of the field of this name.
    pub(super) fn find(&self, name: &str) -> Result<Option<&'a [u8]>> {
        self.place_of(name)?.map(|i| self.value_bytes(i)).transpose()
    }

    fn place_of(&self, name: &str) -> Result<Option<usize>> {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low + (high - low) / 2;
            match self.name(middle)?.cmp(name) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
                std::cmp::Ordering::Equal => return Ok(Some(middle)),
            }
        }
        Ok(None)
    }

    /// The fields as they are stored, checked to stand in the order of their names.
    pub(super) fn parts(&self) -> impl Iterator<Item = Result<Part<'a>>> + use<'a> {
        let this = *self;
        let mut previous: Option<&'a str> = None;
        (0..this.len()).map(move |i| {
            let (id, name) = this.id(i)?;
            if previous.is_some_and(|previous| previous >= name) {
                return Err(out_of_order(name));
            }
            previous = Some(name);
            Ok(Part { id, name, bytes: this.value_bytes(i)? })
        })
    }

    /// The fields, checked to stand in the order of their names, each once.
    pub fn iter(&self) -> impl Iterator<Item = Result<(&'a str, Variant<'a>)>> {
        let this = *self;
        let mut previous: Option<&'a str> = None;
        (0..self.len()).map(move |i| {
            let name = this.name(i)?;
            if previous.is_some_and(|previous| previous >= name) {
                return Err(out_of_order(name));
            }
            previous = Some(name);
            Ok((name, this.value(i)?))
        })
    }
}

impl<'a> VariantList<'a> {
    /// Number of values.
    pub fn len(&self) -> usize {
        self.elements.len
    }

    /// Whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A value, by its place.
    ///
    /// # Errors
    /// As [`Variant::new`].
    pub fn get(&self, i: usize) -> Result<Variant<'a>> {
        self.elements.get(self.metadata, i).map(|(value, _)| value)
    }

    /// The bytes of a value, if there are so many.
    pub(super) fn part(&self, i: usize) -> Result<Option<&'a [u8]>> {
        if i >= self.len() {
            return Ok(None);
        }
        self.elements.get(self.metadata, i).map(|(_, bytes)| Some(bytes))
    }

    /// The bytes of the values.
    pub(super) fn parts(&self) -> impl Iterator<Item = Result<&'a [u8]>> + use<'a> {
        let this = *self;
        (0..this.len()).map(move |i| this.elements.get(this.metadata, i).map(|(_, bytes)| bytes))
    }

    /// The values.
    pub fn iter(&self) -> impl Iterator<Item = Result<Variant<'a>>> {
        let this = *self;
        (0..self.len()).map(move |i| this.get(i))
    }
}
