//! [`Variant`]: a value, looked at in place.

use super::malformed;
use super::metadata::{VariantMetadata, unsigned, unsigned_at};
use crate::error::{Error, LimitKind, Result, quoted};

/// How deep objects and arrays may nest: deeper ones are refused, so that no value can exhaust a
/// stack of 1 MiB.
pub const MAX_DEPTH: usize = 200;

/// Bytes of a name from which on it is sought in the metadata, where it stands once for many
/// fields that may refer to it.
const LONG_NAME: usize = 64;

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
pub struct VariantObject<'a>(Elements<'a>);

/// A field of an object, as it is stored.
#[derive(Debug, Clone, Copy)]
pub(super) struct ObjectField<'a> {
    /// The number of its name in the metadata.
    pub(super) id: u32,
    pub(super) name: &'a str,
    pub(super) bytes: &'a [u8],
}

/// An array.
#[derive(Debug, Clone, Copy)]
pub struct VariantList<'a>(Elements<'a>);

/// The values of an object or an array.
#[derive(Debug, Clone, Copy)]
struct Elements<'a> {
    metadata: VariantMetadata<'a>,
    /// `len` ids of names if it is an object, `len + 1` offsets, and the values.
    bytes: &'a [u8],
    len: usize,
    /// 0 in an array.
    id_size: u8,
    offset_size: u8,
    depth: u8,
}

/// Takes bytes from the front of a value.
struct ValueBytes<'a>(&'a [u8]);

impl<'a> ValueBytes<'a> {
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

macro_rules! from {
    ($($from:ty => $member:ident),*) => {$(
        impl<'a> From<$from> for Variant<'a> {
            fn from(value: $from) -> Self {
                Self::$member(value)
            }
        }
    )*};
}

from!(bool => Boolean, i8 => Int8, i16 => Int16, i32 => Int32, i64 => Int64, f32 => Float,
    f64 => Double, &'a str => String, &'a [u8] => Binary, [u8; 16] => Uuid,
    VariantObject<'a> => Object, VariantList<'a> => List);

impl From<()> for Variant<'_> {
    fn from((): ()) -> Self {
        Self::Null
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

    /// An integer in the smallest width that holds it.
    pub fn integer(value: i64) -> Self {
        if let Ok(value) = i8::try_from(value) {
            Self::Int8(value)
        } else if let Ok(value) = i16::try_from(value) {
            Self::Int16(value)
        } else if let Ok(value) = i32::try_from(value) {
            Self::Int32(value)
        } else {
            Self::Int64(value)
        }
    }

    /// The value, and how many bytes it takes.
    pub(super) fn read(
        metadata: VariantMetadata<'a>,
        bytes: &'a [u8],
        depth: u8,
    ) -> Result<(Self, usize)> {
        let mut rest = ValueBytes(bytes);
        let [header] = rest.array()?;
        let info = header >> 2;
        let value = match header & 3 {
            0 => Self::primitive(info, &mut rest)?,
            1 => Self::String(text(rest.take(info.into())?)?),
            2 => {
                let (id_size, is_large) = ((info >> 2 & 3) + 1, info & 16 != 0);
                Self::Object(VariantObject(Elements::read(
                    metadata, id_size, info, is_large, &mut rest, depth,
                )?))
            }
            _ => {
                let is_large = info & 4 != 0;
                Self::List(VariantList(Elements::read(
                    metadata, 0, info, is_large, &mut rest, depth,
                )?))
            }
        };
        Ok((value, bytes.len() - rest.0.len()))
    }

    #[inline]
    fn primitive(id: u8, rest: &mut ValueBytes<'a>) -> Result<Self> {
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
                if digits.unsigned_abs() >= 10_u128.pow(38) {
                    return Err(malformed(format_args!(
                        "a decimal of {digits}; at most 38 digits"
                    )));
                }
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
    fn read(
        metadata: VariantMetadata<'a>,
        id_size: u8,
        info: u8,
        is_large: bool,
        rest: &mut ValueBytes<'a>,
        depth: u8,
    ) -> Result<Self> {
        if usize::from(depth) >= MAX_DEPTH {
            return Err(too_deep());
        }
        let offset_size = (info & 3) + 1;
        let len = unsigned(rest.take(if is_large { 4 } else { 1 })?);
        let offset = usize::from(offset_size);
        let too_many =
            || malformed(format_args!("{len} values do not fit into an object or array"));
        let offsets = len.checked_mul(usize::from(id_size) + offset).ok_or_else(too_many)?;
        let start = offsets.checked_add(offset).ok_or_else(too_many)?;
        let total = unsigned_at(rest.0, offsets, offset).ok_or_else(too_many)?;
        let bytes = rest.take(start.checked_add(total).ok_or_else(too_many)?)?;
        Ok(Self { metadata, bytes, len, id_size, offset_size, depth })
    }

    /// The id of the name of a field.
    #[inline]
    fn id(&self, i: usize) -> Option<usize> {
        let size = usize::from(self.id_size);
        unsigned_at(self.bytes, i.checked_mul(size).filter(|_| i < self.len)?, size)
    }

    /// The name of a field.
    #[inline]
    fn name(&self, i: usize) -> Result<&'a str> {
        self.id(i).and_then(|id| self.metadata.name(id)).ok_or_else(|| no_name(i))
    }

    /// Where the values begin.
    fn values(&self) -> usize {
        let (id, offset) = (usize::from(self.id_size), usize::from(self.offset_size));
        self.len * (id + offset) + offset
    }

    /// The bytes of a value: from its offset on, as values may stand in any order.
    #[inline]
    fn bytes(&self, i: usize) -> Result<&'a [u8]> {
        let size = usize::from(self.offset_size);
        let offset = (i < self.len)
            .then(|| unsigned_at(self.bytes, self.len * usize::from(self.id_size) + i * size, size))
            .flatten();
        let values = self.bytes.get(self.values()..).unwrap_or_default();
        offset.and_then(|offset| values.get(offset..)).ok_or_else(|| {
            malformed(format_args!("the value {i} of an object or array lies outside of it"))
        })
    }

    fn get(&self, i: usize) -> Result<(Variant<'a>, &'a [u8])> {
        let bytes = self.bytes(i)?;
        let (value, len) = Variant::read(self.metadata, bytes, self.depth + 1)?;
        Ok((value, bytes.get(..len).unwrap_or_default()))
    }
}

#[cold]
fn no_name(i: usize) -> Error {
    malformed(format_args!("the name of field {i} is not in the metadata"))
}

#[cold]
pub(super) fn too_deep() -> Error {
    Error::limit(
        LimitKind::Nesting,
        format_args!("a VARIANT value nests deeper than {MAX_DEPTH} objects and arrays"),
    )
}

/// Values one after another, which are found not to share bytes: a value whose parts are its
/// parts' parts over and over has no end.
#[derive(Debug)]
struct Distinct<'a> {
    elements: Elements<'a>,
    /// Bytes that are left for values.
    left: usize,
}

impl<'a> Distinct<'a> {
    fn new(elements: Elements<'a>) -> Self {
        Self { elements, left: elements.bytes.len() - elements.values() }
    }

    fn get(&mut self, i: usize) -> Result<(Variant<'a>, &'a [u8])> {
        let (value, bytes) = self.elements.get(i)?;
        self.left = self.left.checked_sub(bytes.len()).ok_or_else(|| {
            malformed("the values of an object or array share bytes, or lie outside of it")
        })?;
        Ok((value, bytes))
    }
}

impl<'a> VariantObject<'a> {
    /// Number of fields.
    pub fn len(&self) -> usize {
        self.0.len
    }

    /// Whether there are no fields.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The dictionary of names that the value refers to.
    pub fn metadata(&self) -> VariantMetadata<'a> {
        self.0.metadata
    }

    /// The number of a field's name in the metadata, by its place.
    ///
    /// # Errors
    /// `Malformed(Variant)` if there is no such name.
    pub fn name_id(&self, i: usize) -> Result<usize> {
        self.0.id(i).filter(|id| *id < self.0.metadata.len()).ok_or_else(|| no_name(i))
    }

    /// The name of a field, by its place.
    ///
    /// # Errors
    /// `Malformed(Variant)` if there is no such name.
    pub fn name(&self, i: usize) -> Result<&'a str> {
        self.0.name(i)
    }

    /// The value of a field, by its place.
    ///
    /// # Errors
    /// As [`Variant::new`].
    pub fn value(&self, i: usize) -> Result<Variant<'a>> {
        self.0.get(i).map(|(value, _)| value)
    }

    /// The value of the field of this name.
    ///
    /// It is also found where fields are out of order, as those of writers that compare names by
    /// UTF-16 may be.
    ///
    /// # Errors
    /// As [`Variant::new`].
    pub fn get(&self, name: &str) -> Result<Option<Variant<'a>>> {
        self.position(name)?.map(|i| self.value(i)).transpose()
    }

    /// The bytes of the value of the field of this name.
    pub(super) fn find(&self, name: &str) -> Result<Option<&'a [u8]>> {
        Ok(self.position(name)?.map(|i| self.0.get(i)).transpose()?.map(|(_, bytes)| bytes))
    }

    /// The place of the field of this name.
    fn position(&self, name: &str) -> Result<Option<usize>> {
        let this = &self.0;
        if this.metadata.is_ascending() {
            // Each name has one id, and ids compare as names do.
            let Some(id) = this.metadata.find(name) else { return Ok(None) };
            let found = search(this.len, |i| Ok(this.id(i).unwrap_or(0).cmp(&id)))?;
            return Ok(found.or_else(|| (0..this.len).find(|&i| this.id(i) == Some(id))));
        }
        if let Some(found) = search(this.len, |i| Ok(this.name(i)?.cmp(name)))? {
            return Ok(Some(found));
        }
        // It is not there, or fields are out of order.
        if name.len() > LONG_NAME {
            let ids = this.metadata.find_all(name);
            let is_one = |i: &usize| this.id(*i).is_some_and(|id| ids.binary_search(&id).is_ok());
            return Ok((0..this.len).find(is_one));
        }
        for i in 0..this.len {
            if this.name(i)? == name {
                return Ok(Some(i));
            }
        }
        Ok(None)
    }

    /// Whether fields stand in the order of their names, each once, as they must.
    pub(super) fn is_ascending(&self) -> Result<bool> {
        let this = &self.0;
        if this.metadata.is_ascending() {
            let mut next = 0;
            for i in 0..this.len {
                let id = this.id(i).filter(|id| *id < this.metadata.len());
                let id = id.ok_or_else(|| no_name(i))?;
                if id < next {
                    return Ok(false);
                }
                next = id + 1;
            }
            return Ok(true);
        }
        let mut previous: Option<&str> = None;
        for i in 0..this.len {
            let name = this.name(i)?;
            if previous.is_some_and(|previous| previous >= name) {
                return Ok(false);
            }
            previous = Some(name);
        }
        Ok(true)
    }

    /// The places of fields in the order of their names. None if that is how they stand.
    fn order(&self) -> Result<Option<Vec<usize>>> {
        if self.is_ascending()? {
            return Ok(None);
        }
        let ids: Result<Vec<usize>> = (0..self.len()).map(|i| self.name_id(i)).collect();
        let ids = ids?;
        let mut order: Vec<usize> = (0..self.len()).collect();
        order.sort_unstable_by_key(|&i| ids[i]);
        // Before names are compared: sorting then takes time by how long all of them are, and not
        // by how often an object refers to a long one.
        if let Some(pair) = order.windows(2).find(|pair| ids[pair[0]] == ids[pair[1]]) {
            return Err(self.twice(pair[1]));
        }
        if !self.0.metadata.is_ascending() {
            let names: Result<Vec<&str>> = (0..self.len()).map(|i| self.name(i)).collect();
            let names = names?;
            order.sort_by_key(|&i| names[i]);
            if let Some(pair) = order.windows(2).find(|pair| names[pair[0]] == names[pair[1]]) {
                return Err(self.twice(pair[1]));
            }
        }
        Ok(Some(order))
    }

    #[cold]
    fn twice(&self, i: usize) -> Error {
        let name = self.name(i).unwrap_or_default();
        malformed(format_args!("an object has two fields of the name {}", quoted(name)))
    }

    /// The fields in the order of their names, each once. Those that a writer put out of order are
    /// sorted.
    ///
    /// # Errors
    /// Items are errors as those of [`Variant::new`], and `Malformed(Variant)` if two fields have
    /// one name, or values share bytes.
    pub fn iter(&self) -> impl Iterator<Item = Result<(&'a str, Variant<'a>)>> + use<'a> {
        let (this, mut values) = (*self, Distinct::new(self.0));
        self.places().map(move |i| {
            let i = i?;
            Ok((this.name(i)?, values.get(i)?.0))
        })
    }

    /// The same, as they are stored.
    pub(super) fn parts(&self) -> impl Iterator<Item = Result<ObjectField<'a>>> + use<'a> {
        let (this, mut values) = (*self, Distinct::new(self.0));
        self.places().map(move |i| {
            let i = i?;
            let id = u32::try_from(this.name_id(i)?).map_err(|_| no_name(i))?;
            Ok(ObjectField { id, name: this.name(i)?, bytes: values.get(i)?.1 })
        })
    }

    /// The places of fields in the order of their names, or one error.
    fn places(&self) -> impl Iterator<Item = Result<usize>> + use<> {
        let (order, mut error) = match self.order() {
            Ok(order) => (order, None),
            Err(error) => (None, Some(error)),
        };
        let len = if error.is_some() { 1 } else { self.len() };
        (0..len).map(move |i| match error.take() {
            Some(error) => Err(error),
            None => Ok(order.as_ref().map_or(i, |order| order[i])),
        })
    }
}

/// The place in a sorted row of `len` that compares as equal.
fn search(
    len: usize,
    compare: impl Fn(usize) -> Result<std::cmp::Ordering>,
) -> Result<Option<usize>> {
    let (mut low, mut high) = (0, len);
    while low < high {
        let middle = low + (high - low) / 2;
        match compare(middle)? {
            std::cmp::Ordering::Less => low = middle + 1,
            std::cmp::Ordering::Greater => high = middle,
            std::cmp::Ordering::Equal => return Ok(Some(middle)),
        }
    }
    Ok(None)
}

impl<'a> VariantList<'a> {
    /// Number of values.
    pub fn len(&self) -> usize {
        self.0.len
    }

    /// Whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The dictionary of names that the value refers to.
    pub fn metadata(&self) -> VariantMetadata<'a> {
        self.0.metadata
    }

    /// A value, by its place.
    ///
    /// # Errors
    /// As [`Variant::new`].
    pub fn get(&self, i: usize) -> Result<Variant<'a>> {
        self.0.get(i).map(|(value, _)| value)
    }

    /// The bytes of a value, if there are so many.
    pub(super) fn part(&self, i: usize) -> Result<Option<&'a [u8]>> {
        if i >= self.len() {
            return Ok(None);
        }
        self.0.get(i).map(|(_, bytes)| Some(bytes))
    }

    /// The values.
    ///
    /// # Errors
    /// Items are errors as those of [`Variant::new`], and `Malformed(Variant)` if values share
    /// bytes.
    pub fn iter(&self) -> impl Iterator<Item = Result<Variant<'a>>> + use<'a> {
        let mut values = Distinct::new(self.0);
        (0..self.len()).map(move |i| values.get(i).map(|(value, _)| value))
    }

    /// The bytes of the values.
    pub(super) fn parts(&self) -> impl Iterator<Item = Result<&'a [u8]>> + use<'a> {
        let mut values = Distinct::new(self.0);
        (0..self.len()).map(move |i| values.get(i).map(|(_, bytes)| bytes))
    }
}
