//! [`Value`]: what bytes stand for; and [`ShownColumn`], which knows how the bytes of its values
//! are shown.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use bytes::Bytes;

use crate::calendar::TimeText;
use crate::error::Result;
use crate::format::{ConvertedType, LogicalType, TimeUnit};
use crate::read::Footer;
use crate::schema::{Leaf, Physical, Repetition};

/// What the bytes of a span stand for.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Value {
    /// A truth value.
    Bool(bool),
    /// A number with a sign.
    Int(i64),
    /// A number without a sign.
    UInt(u64),
    /// IEEE 754 binary32.
    Float(f32),
    /// IEEE 754 binary64.
    Double(f64),
    /// Text.
    Text(Text),
    /// Bytes that are not known to be text.
    Bytes(Bytes),
    /// Several values.
    List(Items),
}

/// Text that shares the bytes of its file.
#[derive(Clone, PartialEq, Eq)]
pub struct Text(Bytes);

impl Text {
    /// The text in `bytes`, if they are UTF-8.
    pub(super) fn new(bytes: Bytes) -> Result<Self, Bytes> {
        match simdutf8::basic::from_utf8(&bytes) {
            Ok(_) => Ok(Self(bytes)),
            Err(_) => Err(bytes),
        }
    }
}

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        // `new` has found that they are.
        simdutf8::basic::from_utf8(&self.0).unwrap_or_default()
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

/// Values that are made one after the other, as often as they are asked for: a run of a few bytes
/// may stand for millions.
#[derive(Clone)]
pub struct Items {
    len: u64,
    make: MakeItems,
}

type MakeItems = Arc<dyn Fn() -> Box<dyn Iterator<Item = Value> + Send> + Send + Sync>;

impl Items {
    pub(super) fn new<I>(len: u64, make: impl Fn() -> I + Send + Sync + 'static) -> Self
    where
        I: Iterator<Item = Value> + Send + 'static,
    {
        Self { len, make: Arc::new(move || Box::new(make())) }
    }

    /// How many there are; fewer where the bytes end early.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The values.
    pub fn iter(&self) -> impl Iterator<Item = Value> + Send + use<> {
        (self.make)()
    }
}

impl fmt::Debug for Items {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter().take(16)).finish()
    }
}

impl PartialEq for Items {
    fn eq(&self, other: &Self) -> bool {
        self.len == other.len && self.iter().eq(other.iter())
    }
}

/// A value, and what it means where that is not the value itself.
#[derive(Debug, Clone)]
pub(super) struct Shown {
    pub(super) value: Value,
    pub(super) text: Option<String>,
}

impl From<Value> for Shown {
    fn from(value: Value) -> Self {
        Self { value, text: None }
    }
}

/// A column of the file, whose values are shown.
#[derive(Debug)]
pub(super) struct ShownColumn {
    pub(super) leaf: Leaf,
    pub(super) path: Arc<str>,
    /// The optional and repeated nodes on the way to the leaf, one for each definition level.
    pub(super) steps: Vec<(Arc<str>, Repetition)>,
}

impl ShownColumn {
    /// The column of a leaf.
    ///
    /// # Errors
    /// If its type or its levels are not known.
    pub(super) fn new(footer: &Footer, leaf: usize) -> Result<Self> {
        let path = footer.schema().leaf_node(leaf)?.path().dotted();
        Self::with_path(footer, leaf, path.into())
    }

    /// The column of a leaf, whose dotted path is known.
    ///
    /// # Errors
    /// As [`ShownColumn::new`].
    pub(super) fn with_path(footer: &Footer, leaf: usize, path: Arc<str>) -> Result<Self> {
        let schema = footer.schema();
        let mut steps = Vec::new();
        let mut node = Some(schema.leaf_node(leaf)?);
        while let Some(at) = node {
            let above = at.parent();
            if above.is_some() {
                let repetition = at.repetition()?;
                if repetition != Repetition::Required {
                    steps.push((Arc::from(at.name()), repetition));
                }
            }
            node = above;
        }
        steps.reverse();
        Ok(Self { path, leaf: schema.leaf(leaf)?, steps })
    }

    /// What levels mean for the path.
    pub(super) fn meaning(&self, rep: u16, def: u16) -> String {
        let mut out = match self.leaf.max_rep {
            0 => String::new(),
            _ => format!("r={rep}, "),
        };
        out.push_str(&format!("d={def} of {}: ", self.leaf.max_def));
        let (def, rep) = (usize::from(def), usize::from(rep));
        if let Some(k) = rep.checked_sub(1) {
            let mut lists = self.steps.iter().filter(|(_, how)| *how == Repetition::Repeated);
            let name = lists.nth(k).map_or("", |(name, _)| name);
            out.push_str(&format!("another `{name}`: "));
        }
        let Some((name, repetition)) = self.steps.get(def) else {
            out.push_str("a value");
            return out;
        };
        if let Some((above, _)) = def.checked_sub(1).and_then(|above| self.steps.get(above)) {
            out.push_str(&format!("`{above}` is there, "));
        }
        let what = if *repetition == Repetition::Repeated { "empty" } else { "null" };
        out.push_str(&format!("`{name}` is {what}"));
        out
    }

    /// A value as PLAIN stores it, without the length of a BYTE_ARRAY.
    pub(super) fn plain(&self, bytes: Bytes) -> Shown {
        match (self.leaf.physical, bytes.first_chunk::<4>(), bytes.first_chunk::<8>()) {
            (Physical::Boolean, ..) => {
                Value::Bool(bytes.first().is_some_and(|byte| byte & 1 == 1)).into()
            }
            (Physical::Int32, Some(word), _) if bytes.len() == 4 => {
                self.word(u64::from(u32::from_le_bytes(*word)))
            }
            (Physical::Float, Some(word), _) if bytes.len() == 4 => {
                self.word(u64::from(u32::from_le_bytes(*word)))
            }
            (Physical::Int64 | Physical::Double, _, Some(word)) if bytes.len() == 8 => {
                self.word(u64::from_le_bytes(*word))
            }
            _ => self.byte_string(bytes),
        }
    }

    /// A number by its bits.
    pub(super) fn word(&self, bits: u64) -> Shown {
        let (low, logical) = (bits.to_le_bytes(), self.leaf.logical.as_ref());
        let [a, b, c, d, ..] = low;
        let half = [a, b, c, d];
        let is_unsigned = matches!(logical, Some(LogicalType::Integer(of)) if !of.is_signed);
        let number = match self.leaf.physical {
            Physical::Float => return Value::Float(f32::from_le_bytes(half)).into(),
            Physical::Double => return Value::Double(f64::from_le_bytes(low)).into(),
            Physical::Int32 if is_unsigned => {
                return Value::UInt(u32::from_le_bytes(half).into()).into();
            }
            Physical::Int32 => i64::from(i32::from_le_bytes(half)),
            _ if is_unsigned => return Value::UInt(bits).into(),
            _ => bits.cast_signed(),
        };
        Shown { value: Value::Int(number), text: self.number(number) }
    }

    /// What a number means by its logical type.
    fn number(&self, number: i64) -> Option<String> {
        match self.leaf.logical.as_ref()? {
            LogicalType::Decimal(of) => Some(decimal(i128::from(number), of.scale)),
            LogicalType::Date => Some(date(number)),
            LogicalType::Time(of) => time(number, &of.unit),
            LogicalType::Timestamp(of) => timestamp(number, &of.unit),
            _ => None,
        }
    }

    /// A value of bytes.
    pub(super) fn byte_string(&self, bytes: Bytes) -> Shown {
        if self.leaf.physical == Physical::Int96
            && let Some((nanos, day)) = bytes.split_first_chunk::<8>()
            && let Some(day) = day.first_chunk::<4>()
        {
            let (nanos, day) = (i64::from_le_bytes(*nanos), i32::from_le_bytes(*day));
            // The Julian day of 1970-01-01.
            let date = date(i64::from(day) - 2_440_588);
            let of_day = time(nanos, &TimeUnit::Nanos).unwrap_or_else(|| format!("{nanos} ns"));
            return Shown { value: Value::Bytes(bytes), text: Some(format!("{date} {of_day}")) };
        }
        let is_text = matches!(
            self.leaf.logical,
            Some(LogicalType::String | LogicalType::Enum | LogicalType::Json)
        );
        if is_text {
            return match Text::new(bytes) {
                Ok(text) => Value::Text(text).into(),
                Err(bytes) => Value::Bytes(bytes).into(),
            };
        }
        let text = match (&self.leaf.logical, self.leaf.converted) {
            (Some(LogicalType::Decimal(of)), _) => {
                unscaled(&bytes).map(|unscaled| decimal(unscaled, of.scale))
            }
            (Some(LogicalType::Uuid), _) => uuid(&bytes),
            (Some(LogicalType::Float16), _) => {
                bytes.first_chunk::<2>().map(|half| half::f16::from_le_bytes(*half).to_string())
            }
            (_, Some(ConvertedType::Interval)) => interval(&bytes),
            _ => None,
        };
        Shown { value: Value::Bytes(bytes), text }
    }
}

/// A big-endian number of at most 16 bytes.
fn unscaled(bytes: &[u8]) -> Option<i128> {
    let first = bytes.first()?;
    let mut wide = [if first & 0x80 == 0 { 0 } else { 0xFF }; 16];
    let start = wide.len().checked_sub(bytes.len())?;
    wide.get_mut(start..)?.copy_from_slice(bytes);
    Some(i128::from_be_bytes(wide))
}

fn decimal(unscaled: i128, scale: i32) -> String {
    // More digits than a decimal has are no scale that means something.
    let Ok(scale @ 1..=80) = usize::try_from(scale) else { return unscaled.to_string() };
    let digits = format!("{:0>width$}", unscaled.unsigned_abs(), width = scale + 1);
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    let sign = if unscaled < 0 { "-" } else { "" };
    format!("{sign}{whole}.{fraction}")
}

/// The digits after the point of a second that a unit has.
fn digits(unit: &TimeUnit) -> Option<u32> {
    match unit {
        TimeUnit::Millis => Some(3),
        TimeUnit::Micros => Some(6),
        TimeUnit::Nanos => Some(9),
        _ => None,
    }
}

fn date(days: i64) -> String {
    TimeText::date(days.clamp(-(1 << 40), 1 << 40)).to_string()
}

fn time(number: i64, unit: &TimeUnit) -> Option<String> {
    let sign = if number < 0 { "-" } else { "" };
    Some(format!("{sign}{}", TimeText::time(number.unsigned_abs(), digits(unit)?)))
}

fn timestamp(number: i64, unit: &TimeUnit) -> Option<String> {
    Some(TimeText::timestamp(number, digits(unit)?, b' ').to_string())
}

fn uuid(bytes: &[u8]) -> Option<String> {
    let number = u128::from_be_bytes(*bytes.first_chunk::<16>()?);
    let digits = format!("{number:032x}");
    let part = |range: std::ops::Range<usize>| digits.get(range).unwrap_or_default();
    let parts = [part(0..8), part(8..12), part(12..16), part(16..20), part(20..32)];
    Some(parts.join("-"))
}

fn interval(bytes: &[u8]) -> Option<String> {
    let (months, rest) = bytes.split_first_chunk::<4>()?;
    let (days, rest) = rest.split_first_chunk::<4>()?;
    let millis = rest.first_chunk::<4>()?;
    let [months, days, millis] = [months, days, millis].map(|part| u32::from_le_bytes(*part));
    Some(format!("{months} months, {days} days, {millis} ms"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_shown_as_their_logical_types_mean_them() {
        assert_eq!(decimal(-5, 2), "-0.05");
        assert_eq!(decimal(12_345, 0), "12345");
        assert_eq!(decimal(12_345, 4), "1.2345");
        assert_eq!(unscaled(&[0xFF, 0xFE]), Some(-2));
        assert_eq!(unscaled(&[0; 17]), None);
        assert_eq!(date(-1), "1969-12-31");
        assert_eq!(time(-1, &TimeUnit::Millis).unwrap(), "-00:00:00.001");
        assert_eq!(timestamp(-1, &TimeUnit::Micros).unwrap(), "1969-12-31 23:59:59.999999");
        assert_eq!(uuid(&[0x12; 16]).unwrap(), "12121212-1212-1212-1212-121212121212");
    }
}
