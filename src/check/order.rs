//! [`LeafOrder`]: in which order the stated bounds of a leaf are bounds, and how values are shown.
//!
//! Spec: `parquet.thrift`, ColumnOrder and Statistics. Trap: without column orders, and in the
//! deprecated fields, only bounds of signed orders mean anything.

use std::cmp::Ordering;

use crate::format::{ColumnOrder, LogicalType};
use crate::schema::{Leaf, Physical};
use crate::stats::order::ValueOrder;

/// How the values of a leaf are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Comparison {
    Values(ValueOrder),
    /// Of INT96 timestamps: by day, and then by the time of the day.
    Int96,
}

/// The order of a leaf.
#[derive(Debug, Clone)]
pub(super) struct LeafOrder {
    pub(super) physical: Physical,
    /// Of `min_value` and `max_value`, and of the column index; `None` if they mean nothing.
    pub(super) bounds: Option<Comparison>,
    /// Of the deprecated `min` and `max`.
    pub(super) legacy: Option<Comparison>,
    /// Of the type, for values that are sorted.
    pub(super) natural: Option<Comparison>,
    is_decimal: bool,
    is_unsigned: bool,
    is_text: bool,
    /// Whether bounds may be shorter than the values, because they are ordered as bytes.
    is_cut: bool,
}

impl LeafOrder {
    /// `stated` is the entry of the footer, `None` if it has no column orders.
    pub(super) fn new(leaf: &Leaf, stated: Option<&ColumnOrder>) -> Self {
        let of_type = ValueOrder::for_leaf(leaf, false);
        let defined = (of_type != ValueOrder::Undefined).then_some(Comparison::Values(of_type));
        let is_fixed_decimal = of_type == ValueOrder::Decimal
            && matches!(leaf.physical, Physical::Int32 | Physical::Int64);
        let is_signed =
            is_fixed_decimal || matches!(of_type, ValueOrder::Signed | ValueOrder::Float);
        let signed = defined.filter(|_| is_signed);
        let bounds = match stated {
            None => signed,
            Some(ColumnOrder::TypeOrder) => defined,
            Some(ColumnOrder::Ieee754TotalOrder) => {
                of_type.has_nan().then(|| Comparison::Values(ValueOrder::for_leaf(leaf, true)))
            }
            Some(ColumnOrder::Int96TimestampOrder) => {
                (leaf.physical == Physical::Int96 && leaf.ordered).then_some(Comparison::Int96)
            }
            Some(_) => None,
        };
        let natural = match leaf.physical {
            Physical::Int96 => Some(Comparison::Int96),
            _ => defined,
        };
        Self {
            physical: leaf.physical,
            bounds,
            legacy: signed,
            natural,
            is_decimal: matches!(leaf.logical, Some(LogicalType::Decimal(_))),
            is_cut: of_type == ValueOrder::Bytes,
            is_unsigned: of_type == ValueOrder::Unsigned,
            is_text: matches!(
                leaf.logical,
                Some(LogicalType::String | LogicalType::Enum | LogicalType::Json)
            ),
        }
    }

    /// Compares two values; `None` if that has no answer.
    pub(super) fn compare(&self, by: Comparison, a: &[u8], b: &[u8]) -> Option<Ordering> {
        match by {
            Comparison::Values(order) => order.compare(self.physical, a, b),
            Comparison::Int96 => Some(int96(a)?.cmp(&int96(b)?)),
        }
    }

    /// Whether a value can be NaN.
    pub(super) fn has_nan(&self) -> bool {
        matches!(self.natural, Some(Comparison::Values(order)) if order.has_nan())
    }

    /// Whether bounds are in the total order of floating-point numbers, which has a place for NaN.
    pub(super) fn is_total(&self) -> bool {
        use ValueOrder::{TotalFloat, TotalFloat16};
        matches!(self.bounds, Some(Comparison::Values(TotalFloat | TotalFloat16)))
    }

    /// Whether a value is NaN.
    pub(super) fn is_nan(&self, value: &[u8]) -> bool {
        if !self.has_nan() {
            return false;
        }
        match *value {
            [a, b] => half::f16::from_le_bytes([a, b]).is_nan(),
            [a, b, c, d] => f32::from_le_bytes([a, b, c, d]).is_nan(),
            _ => value.try_into().is_ok_and(|bytes| f64::from_le_bytes(bytes).is_nan()),
        }
    }

    /// Whether the bytes are as many as a value of the type has.
    pub(super) fn fits(&self, value: &[u8]) -> bool {
        match self.physical {
            Physical::Boolean => matches!(value, [0 | 1]),
            // parquet-java cuts bounds of fixed length, too, where they are ordered as bytes.
            Physical::FixedLenByteArray(width) if self.is_cut => value.len() <= width,
            physical => physical.byte_width().is_none_or(|width| width == value.len()),
        }
    }

    /// Whether the values are text.
    pub(super) fn is_text(&self) -> bool {
        self.is_text
    }

    /// A value for people, in a few characters.
    pub(super) fn show(&self, value: &[u8]) -> String {
        let shown = match self.physical {
            Physical::Boolean => match value {
                [0] => Some("false".to_owned()),
                [1] => Some("true".to_owned()),
                _ => None,
            },
            Physical::Int32 => value.try_into().ok().map(|bytes| match self.is_unsigned {
                true => u32::from_le_bytes(bytes).to_string(),
                false => i32::from_le_bytes(bytes).to_string(),
            }),
            Physical::Int64 => value.try_into().ok().map(|bytes| match self.is_unsigned {
                true => u64::from_le_bytes(bytes).to_string(),
                false => i64::from_le_bytes(bytes).to_string(),
            }),
            Physical::Float => {
                value.try_into().ok().map(|bytes| format!("{:?}", f32::from_le_bytes(bytes)))
            }
            Physical::Double => {
                value.try_into().ok().map(|bytes| format!("{:?}", f64::from_le_bytes(bytes)))
            }
            _ => self.show_bytes(value),
        };
        shown.unwrap_or_else(|| hexadecimal(value))
    }

    fn show_bytes(&self, value: &[u8]) -> Option<String> {
        if self.is_decimal && (1..=16).contains(&value.len()) {
            let fill = if value.first().is_some_and(|byte| byte & 0x80 != 0) { 0xFF } else { 0 };
            let mut bytes = [fill; 16];
            bytes.get_mut(16 - value.len()..)?.copy_from_slice(value);
            return Some(i128::from_be_bytes(bytes).to_string());
        }
        let text = std::str::from_utf8(value).ok()?;
        let is_shown = self.is_text || (!text.is_empty() && text.chars().all(|c| !c.is_control()));
        is_shown.then(|| short_text(text))
    }
}

/// Characters and bytes of a value that are shown.
const SHOWN: usize = 40;

fn short_text(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{:?}…", text.get(..end).unwrap_or_default()),
        None => format!("{text:?}"),
    }
}

fn hexadecimal(value: &[u8]) -> String {
    let shown = value.iter().take(SHOWN / 2).map(|byte| format!("{byte:02x}")).collect::<String>();
    let more = if value.len() > SHOWN / 2 { "…" } else { "" };
    format!("0x{shown}{more}")
}

/// Day and time of the day of an INT96 timestamp.
pub(super) fn int96(value: &[u8]) -> Option<(i32, i64)> {
    let (nanos, day) = value.split_first_chunk::<8>()?;
    Some((i32::from_le_bytes(day.try_into().ok()?), i64::from_le_bytes(*nanos)))
}
