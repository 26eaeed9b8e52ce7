//! [`ValueRule`]: what makes the values of a leaf valid, beyond that they can be decoded.
//!
//! Spec: LogicalTypes.md, Geospatial.md. Used by `column`.

use super::kind::FindingKind;
use super::order::{LeafOrder, int96};
use super::values::ValueBlock;
use crate::format::{IntType, LogicalType, TimeUnit};
use crate::geo::{Edges, GeospatialCollector};
use crate::schema::{Leaf, Physical};

/// The rule for the values of a leaf.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ValueRule {
    Any,
    Text,
    Json,
    Bson,
    /// Unscaled decimals, at most this in absolute value; as big-endian bytes or as words.
    Decimal(Option<u128>),
    /// Words from the first to the second.
    Range(FindingKind, i64, i64),
    Geometry,
    /// No value but null.
    Nothing,
    Int96,
}

/// A value that breaks the rule of its leaf.
pub(super) struct InvalidValue {
    pub(super) kind: FindingKind,
    /// Its index in the block.
    pub(super) index: usize,
    /// A sentence on what is wrong with it.
    pub(super) message: String,
}

impl ValueRule {
    pub(super) fn new(leaf: &Leaf) -> Self {
        let Some(logical) = &leaf.logical else {
            return if leaf.physical == Physical::Int96 { Self::Int96 } else { Self::Any };
        };
        match logical {
            LogicalType::String | LogicalType::Enum => Self::Text,
            LogicalType::Json => Self::Json,
            LogicalType::Bson => Self::Bson,
            LogicalType::Decimal(decimal) => {
                let digits = u32::try_from(decimal.precision).unwrap_or(0);
                // Of more digits, every value of 16 bytes is one.
                Self::Decimal(10u128.checked_pow(digits).map(|limit| limit - 1))
            }
            LogicalType::Integer(IntType { bit_width: bits @ (8 | 16), is_signed }) => {
                let half = 1i64 << (bits - 1);
                let (least, most) = match is_signed {
                    true => (-half, half - 1),
                    false => (0, 2 * half - 1),
                };
                Self::Range(FindingKind::IntegerTooWide, least, most)
            }
            LogicalType::Time(time) => {
                const SECONDS: i64 = 86_400;
                let units = match time.unit {
                    TimeUnit::Millis => 1_000,
                    TimeUnit::Micros => 1_000_000,
                    TimeUnit::Nanos => 1_000_000_000,
                    TimeUnit::Unrecognized(..) => return Self::Any,
                };
                Self::Range(FindingKind::TimeOutsideDay, 0, SECONDS * units - 1)
            }
            LogicalType::Geometry(_) | LogicalType::Geography(_) => Self::Geometry,
            LogicalType::Unknown => Self::Nothing,
            _ => Self::Any,
        }
    }

    /// The first value of the block that breaks the rule.
    pub(super) fn check(self, block: ValueBlock<'_>, order: &LeafOrder) -> Option<InvalidValue> {
        let kind = match self {
            Self::Any => return None,
            Self::Text => FindingKind::TextNotUtf8,
            Self::Json => FindingKind::JsonInvalid,
            Self::Bson => FindingKind::BsonInvalid,
            Self::Decimal(limit) => return check_decimals(block, limit?, order),
            Self::Range(kind, least, most) => return check_range(block, kind, least, most),
            Self::Geometry => FindingKind::GeometryInvalid,
            Self::Nothing => FindingKind::ValueOfUnknownType,
            Self::Int96 => FindingKind::Int96NanosOutsideDay,
        };
        if self == Self::Nothing {
            let message = "a value that is not null".to_owned();
            return (block.len() > 0).then_some(InvalidValue { kind, index: 0, message });
        }
        block.slices().enumerate().find_map(|(index, value)| {
            let (kind, message) = self.fault(kind, value)?;
            Some(InvalidValue { kind, index, message })
        })
    }

    /// Says what is wrong with a value, if anything is.
    fn fault(self, kind: FindingKind, value: &[u8]) -> Option<(FindingKind, String)> {
        let of = |message: String| Some((kind, message));
        match self {
            Self::Text => simdutf8::basic::from_utf8(value).is_err().then(|| not_utf8(value)),
            Self::Json => match simdutf8::basic::from_utf8(value) {
                Err(_) => Some(not_utf8(value)),
                Ok(text) => match serde_json::from_str::<&serde_json::value::RawValue>(text) {
                    Err(error) => of(error.to_string()),
                    Ok(_) => None,
                },
            },
            Self::Bson => {
                let len = value.first_chunk().map(|len| u32::from_le_bytes(*len) as usize);
                let is_whole = len == Some(value.len()) && value.len() > 4;
                let ends = value.last() == Some(&0);
                (!is_whole || !ends).then(|| {
                    (kind, format!("a document of {} bytes that does not say so", value.len()))
                })
            }
            Self::Geometry => {
                let pushed = GeospatialCollector::new(Edges::Planar).push(value);
                pushed.err().and_then(|error| of(error.message().to_owned()))
            }
            Self::Int96 => {
                const DAY: i64 = 86_400_000_000_000;
                let (_, nanos) = int96(value)?;
                (!(0..DAY).contains(&nanos))
                    .then(|| (kind, format!("{nanos} nanoseconds of a day")))
            }
            _ => None,
        }
    }
}

fn not_utf8(value: &[u8]) -> (FindingKind, String) {
    let at = std::str::from_utf8(value).err().map_or(0, |error| error.valid_up_to());
    let text = format!("a string of {} bytes that is no UTF-8 from byte {at} on", value.len());
    (FindingKind::TextNotUtf8, text)
}

fn check_range(
    block: ValueBlock<'_>,
    kind: FindingKind,
    least: i64,
    most: i64,
) -> Option<InvalidValue> {
    let range = least..=most;
    let (index, value) = match block {
        ValueBlock::Words32(words) => {
            let found = words.iter().position(|word| !range.contains(&i64::from(*word)))?;
            (found, i64::from(*words.get(found)?))
        }
        ValueBlock::Words64(words) => {
            let found = words.iter().position(|word| !range.contains(word))?;
            (found, *words.get(found)?)
        }
        _ => return None,
    };
    Some(InvalidValue { kind, index, message: format!("{value}, outside {least} to {most}") })
}

fn check_decimals(block: ValueBlock<'_>, limit: u128, order: &LeafOrder) -> Option<InvalidValue> {
    let kind = FindingKind::DecimalTooLarge;
    let message = |value: String| format!("the unscaled value {value}, beyond ±{limit}");
    match block {
        ValueBlock::Words32(words) => {
            let is_large = |word: &i32| u128::from(word.unsigned_abs()) > limit;
            let index = words.iter().position(is_large)?;
            Some(InvalidValue { kind, index, message: message(words.get(index)?.to_string()) })
        }
        ValueBlock::Words64(words) => {
            let is_large = |word: &i64| u128::from(word.unsigned_abs()) > limit;
            let index = words.iter().position(is_large)?;
            Some(InvalidValue { kind, index, message: message(words.get(index)?.to_string()) })
        }
        _ => {
            let is_large = |value: &[u8]| match word_of(value) {
                Some(word) => word.unsigned_abs() > limit,
                None => true,
            };
            let found = block.slices().enumerate().find(|(_, value)| is_large(value));
            let (index, value) = found?;
            Some(InvalidValue { kind, index, message: message(order.show(value)) })
        }
    }
}

/// A big-endian number in two's complement, if 16 bytes hold it.
fn word_of(value: &[u8]) -> Option<i128> {
    let fill = if value.first().is_some_and(|byte| byte & 0x80 != 0) { 0xFF } else { 0 };
    let extra = value.len().saturating_sub(16);
    let (sign, low) = value.split_at_checked(extra)?;
    if sign.iter().any(|byte| *byte != fill) {
        return None;
    }
    let mut bytes = [fill; 16];
    bytes.get_mut(16 - low.len()..)?.copy_from_slice(low);
    let word = i128::from_be_bytes(bytes);
    // The sign of what is left must be that of the whole.
    ((word < 0) == (fill == 0xFF)).then_some(word)
}
