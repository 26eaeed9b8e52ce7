//! [`ValueOrder`] says how the values of a leaf are compared.
//!
//! Spec: `parquet.thrift`, ColumnOrder.

use std::cmp::Ordering;

use crate::format::{ColumnOrder, LogicalType};
use crate::schema::convert::is_interval;
use crate::schema::{Leaf, Physical};

/// The order of a leaf's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum ValueOrder {
    /// As signed numbers; false before true.
    Signed,
    /// As numbers without a sign.
    Unsigned,
    /// Floats of 32 and 64 bits, in the older order, which knows no NaN.
    Float,
    /// Floats of 32 and 64 bits, in the total order of IEEE 754.
    TotalFloat,
    /// 16-bit floats, in the older order.
    Float16,
    /// 16-bit floats, in the total order.
    TotalFloat16,
    /// As strings of bytes without a sign.
    Bytes,
    /// As big-endian numbers in two's complement, of any lengths.
    Decimal,
    /// No order is defined.
    Undefined,
}

impl ValueOrder {
    /// The order of a leaf; `total` asks for the total order of floats.
    pub(crate) fn for_leaf(leaf: &Leaf, total: bool) -> Self {
        if !leaf.ordered || is_interval(leaf) {
            return Self::Undefined;
        }
        match (leaf.physical, &leaf.logical) {
            (
                _,
                Some(
                    LogicalType::Unknown
                    | LogicalType::Geometry(_)
                    | LogicalType::Geography(_)
                    | LogicalType::Variant(_),
                ),
            )
            | (Physical::Int96, _) => Self::Undefined,
            (Physical::Boolean, _) => Self::Signed,
            (Physical::Int32 | Physical::Int64, Some(LogicalType::Integer(int)))
                if !int.is_signed =>
            {
                Self::Unsigned
            }
            (Physical::Int32 | Physical::Int64, _) => Self::Signed,
            (Physical::Float | Physical::Double, _) if total => Self::TotalFloat,
            (Physical::Float | Physical::Double, _) => Self::Float,
            (_, Some(LogicalType::Float16)) if total => Self::TotalFloat16,
            (_, Some(LogicalType::Float16)) => Self::Float16,
            (_, Some(LogicalType::Decimal(_))) => Self::Decimal,
            _ => Self::Bytes,
        }
    }

    /// The column order of the leaf in the footer.
    pub(crate) fn column_order(self) -> ColumnOrder {
        match self {
            Self::TotalFloat | Self::TotalFloat16 => ColumnOrder::Ieee754TotalOrder,
            _ => ColumnOrder::TypeOrder,
        }
    }

    /// Whether the values may be NaN.
    pub(crate) fn has_nan(self) -> bool {
        matches!(self, Self::Float | Self::TotalFloat | Self::Float16 | Self::TotalFloat16)
    }

    /// Compares two values as PLAIN has them, without lengths; `None` if the order is not defined
    /// for them or they have other lengths than the type.
    pub(crate) fn compare(self, physical: Physical, a: &[u8], b: &[u8]) -> Option<Ordering> {
        fn word<const N: usize>(bytes: &[u8]) -> Option<[u8; N]> {
            bytes.try_into().ok()
        }
        Some(match (self, physical) {
            (Self::Undefined, _) => return None,
            (Self::Signed, Physical::Boolean) | (Self::Bytes, _) => a.cmp(b),
            (Self::Signed, Physical::Int32) => {
                i32::from_le_bytes(word(a)?).cmp(&i32::from_le_bytes(word(b)?))
            }
            (Self::Signed, _) => i64::from_le_bytes(word(a)?).cmp(&i64::from_le_bytes(word(b)?)),
            (Self::Unsigned, Physical::Int32) => {
                u32::from_le_bytes(word(a)?).cmp(&u32::from_le_bytes(word(b)?))
            }
            (Self::Unsigned, _) => u64::from_le_bytes(word(a)?).cmp(&u64::from_le_bytes(word(b)?)),
            (Self::Float, Physical::Float) => {
                return f32::from_le_bytes(word(a)?).partial_cmp(&f32::from_le_bytes(word(b)?));
            }
            (Self::Float, _) => {
                return f64::from_le_bytes(word(a)?).partial_cmp(&f64::from_le_bytes(word(b)?));
            }
            (Self::TotalFloat, Physical::Float) => {
                f32::from_le_bytes(word(a)?).total_cmp(&f32::from_le_bytes(word(b)?))
            }
            (Self::TotalFloat, _) => {
                f64::from_le_bytes(word(a)?).total_cmp(&f64::from_le_bytes(word(b)?))
            }
            (Self::Float16, _) => {
                let (a, b) =
                    (half::f16::from_le_bytes(word(a)?), half::f16::from_le_bytes(word(b)?));
                return a.partial_cmp(&b);
            }
            (Self::TotalFloat16, _) => {
                half::f16::from_le_bytes(word(a)?).total_cmp(&half::f16::from_le_bytes(word(b)?))
            }
            (Self::Decimal, Physical::Int32 | Physical::Int64) => {
                return Self::Signed.compare(physical, a, b);
            }
            (Self::Decimal, _) => decimals(a, b),
        })
    }
}

/// Compares big-endian numbers in two's complement, of any lengths.
pub(crate) fn decimals(a: &[u8], b: &[u8]) -> Ordering {
    let negative = |bytes: &[u8]| bytes.first().is_some_and(|byte| byte & 0x80 != 0);
    match (negative(a), negative(b)) {
        (true, false) => Ordering::Less,
        (false, true) => Ordering::Greater,
        (sign, _) => {
            let fill = if sign { 0xFF } else { 0 };
            let max = a.len().max(b.len());
            let padded = |bytes: &[u8], i: usize| {
                let missing = max - bytes.len();
                if i < missing { fill } else { bytes.get(i - missing).copied().unwrap_or(fill) }
            };
            (0..max)
                .map(|i| padded(a, i).cmp(&padded(b, i)))
                .find(|order| order.is_ne())
                .unwrap_or(Ordering::Equal)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_of_unequal_lengths() {
        let of = |v: i64| v.to_be_bytes();
        for (a, b) in [(1i64, 2), (-1, 1), (-300, -2), (70_000, 70_001), (0, 0), (-1, -1)] {
            let (x, y) = (of(a), of(b));
            for cut in [0, 3, 4] {
                // As many leading bytes as are the sign may go.
                assert_eq!(decimals(&x[cut..], &y), a.cmp(&b), "{a} {b} {cut}");
                assert_eq!(decimals(&x, &y[cut..]), a.cmp(&b), "{a} {b} {cut}");
            }
        }
    }

    #[test]
    fn floats_have_two_orders() {
        let (nan, zero, minus) = (f64::NAN, 0.0f64, -0.0f64);
        let compare = |order: ValueOrder, a: f64, b: f64| {
            order.compare(Physical::Double, &a.to_le_bytes(), &b.to_le_bytes())
        };
        assert_eq!(compare(ValueOrder::Float, nan, zero), None);
        assert_eq!(compare(ValueOrder::Float, minus, zero), Some(Ordering::Equal));
        assert_eq!(compare(ValueOrder::TotalFloat, minus, zero), Some(Ordering::Less));
        assert_eq!(compare(ValueOrder::TotalFloat, nan, f64::INFINITY), Some(Ordering::Greater));
    }
}
