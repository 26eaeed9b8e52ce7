//! [`Variant`]: a value, read in place.

use super::elements::{Elements, ValueBytes, VariantList, VariantObject};
use super::malformed::malformed;
use super::metadata::VariantMetadata;
use crate::error::{Error, Result};

/// A value. Numbers of different widths are different variants of the enum, but may be equal: see
/// `PartialEq`.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum Variant<'a> {
    /// Null, which is a value: a missing field has none.
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
    /// A decimal: the unscaled value and the scale.
    Decimal(i128, u8),
    /// Days since 1970-01-01.
    Date(i32),
    /// Microseconds since 1970-01-01 00:00 UTC.
    TimestampMicros(i64),
    /// Microseconds since 1970-01-01 00:00, without a time zone.
    TimestampNtzMicros(i64),
    /// Nanoseconds since 1970-01-01 00:00 UTC.
    TimestampNanos(i64),
    /// Nanoseconds since 1970-01-01 00:00, without a time zone.
    TimestampNtzNanos(i64),
    /// Microseconds since midnight.
    TimeMicros(i64),
    /// Bytes.
    Binary(&'a [u8]),
    /// A string.
    String(&'a str),
    /// A UUID.
    Uuid([u8; 16]),
    /// An object: values by name.
    Object(VariantObject<'a>),
    /// An array: values in order.
    List(VariantList<'a>),
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
    /// The value at the start of `bytes`, whose names are in `metadata`. Values inside objects and
    /// arrays are read when they are accessed.
    ///
    /// # Errors
    /// `Malformed(Variant)` if the value is truncated or invalid, `Unsupported` if its type is
    /// unknown.
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
    str::from_utf8(bytes).map_err(|_| malformed("a string is not UTF-8"))
}
