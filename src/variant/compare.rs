//! Compares values for equality, and validates them.

use super::elements::{VariantList, VariantObject};
use super::malformed::malformed;
use super::value::Variant;
use crate::error::Result;

/// Logical equality, as VariantEncoding.md defines it: of values of one equivalence class, whatever
/// their widths.
///
/// - Integers and decimals are one class: 1, 1.0 and 1.00 are equal. Floats and doubles are a class
///   each: the float 1.0 equals neither the double 1.0 nor the integer 1.
/// - Timestamps in microseconds and nanoseconds are one class; those with and without a time zone
///   are two.
/// - Strings are equal if their bytes are, in the short and the long encoding.
/// - Objects are equal if they have the same names with equal values, whatever the order in which
///   they are stored and the metadata that they refer to.
/// - NaN is equal to NaN, and 0.0 to -0.0.
/// - A malformed value equals nothing, itself included, so that `Eq` is not implemented.
impl PartialEq for Variant<'_> {
    fn eq(&self, other: &Self) -> bool {
        if let (Some(a), Some(b)) = (self.exact_number(), other.exact_number()) {
            return same_number(a, b);
        }
        match (self, other) {
            (Self::Null, Self::Null) => true,
            (Self::Boolean(a), Self::Boolean(b)) => a == b,
            (Self::Float(a), Self::Float(b)) => a == b || (a.is_nan() && b.is_nan()),
            (Self::Double(a), Self::Double(b)) => a == b || (a.is_nan() && b.is_nan()),
            (Self::Date(a), Self::Date(b)) => a == b,
            (Self::TimeMicros(a), Self::TimeMicros(b)) => a == b,
            (Self::Binary(a), Self::Binary(b)) => a == b,
            (Self::String(a), Self::String(b)) => a == b,
            (Self::Uuid(a), Self::Uuid(b)) => a == b,
            (Self::Object(a), Self::Object(b)) => a == b,
            (Self::List(a), Self::List(b)) => a == b,
            _ => self.moment().is_some_and(|moment| other.moment() == Some(moment)),
        }
    }
}

/// See [`Variant`].
impl PartialEq for VariantObject<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len()
            && self.iter().zip(other.iter()).all(|fields| match fields {
                (Ok((a, x)), Ok((b, y))) => a == b && x == y,
                _ => false,
            })
    }
}

/// See [`Variant`].
impl PartialEq for VariantList<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len()
            && self.iter().zip(other.iter()).all(|values| match values {
                (Ok(a), Ok(b)) => a == b,
                _ => false,
            })
    }
}

impl Variant<'_> {
    /// The digits and the scale of an integer or decimal.
    pub(super) fn exact_number(&self) -> Option<(i128, u8)> {
        Some(match *self {
            Self::Int8(v) => (v.into(), 0),
            Self::Int16(v) => (v.into(), 0),
            Self::Int32(v) => (v.into(), 0),
            Self::Int64(v) => (v.into(), 0),
            Self::Decimal(digits, scale) => (digits, scale),
            _ => return None,
        })
    }

    /// Whether a timestamp is in UTC, and its nanoseconds.
    fn moment(&self) -> Option<(bool, i128)> {
        Some(match *self {
            Self::TimestampMicros(v) => (true, i128::from(v) * 1000),
            Self::TimestampNanos(v) => (true, v.into()),
            Self::TimestampNtzMicros(v) => (false, i128::from(v) * 1000),
            Self::TimestampNtzNanos(v) => (false, v.into()),
            _ => return None,
        })
    }

    /// Checks the whole value: every offset and name is valid, strings are UTF-8, the fields of
    /// objects are in the order of their names without duplicates, values do not share bytes, and
    /// nest at most [`MAX_DEPTH`](super::MAX_DEPTH) deep.
    ///
    /// A value that passes can be read completely without an error.
    ///
    /// # Errors
    /// `Malformed(Variant)` for a fault, `Limit(Nesting)` if it is deeper than
    /// [`MAX_DEPTH`](super::MAX_DEPTH), `Unsupported` for an unknown type.
    pub fn validate(&self) -> Result<()> {
        match self {
            Self::Object(object) => {
                if !object.is_ascending()? {
                    // Duplicate names have an error of their own.
                    object.iter().next().transpose()?;
                    return Err(malformed(
                        "the fields of an object are not in the order of their names",
                    ));
                }
                object.iter().try_for_each(|field| field?.1.validate())
            }
            Self::List(list) => list.iter().try_for_each(|value| value?.validate()),
            _ => Ok(()),
        }
    }
}

/// Whether digits of two scales are one number.
fn same_number((a, a_scale): (i128, u8), (b, b_scale): (i128, u8)) -> bool {
    if a_scale > b_scale {
        return same_number((b, b_scale), (a, a_scale));
    }
    // A number that does not fit is larger than any that does.
    let factor = 10_i128.checked_pow(u32::from(b_scale - a_scale));
    a == 0 && b == 0 || factor.and_then(|factor| a.checked_mul(factor)) == Some(b)
}
