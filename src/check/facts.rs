//! [`ValueFacts`]: what the values of a page or a chunk make true.
//!
//! Used by `column`. The kernels are those of the writer's statistics (`stats::collect`).

use std::cmp::Ordering;

use super::order::{Comparison, LeafOrder};
use super::values::ValueBlock;
use crate::schema::Physical;
use crate::stats::collect::{self, Extremes};
use crate::stats::order::ValueOrder;

/// Bounds and counts of some values.
#[derive(Debug, Clone, Default)]
pub(super) struct ValueFacts {
    /// Values, nulls not counted.
    pub(super) values: u64,
    pub(super) nans: u64,
    /// Bytes of the values, without lengths.
    pub(super) bytes: u64,
    /// Minimum and maximum in the order of the bounds.
    pub(super) bounds: Option<(Vec<u8>, Vec<u8>)>,
}

impl ValueFacts {
    /// Widens the bounds by the values of a block, and counts NaNs if they are counted once each.
    pub(super) fn add(&mut self, block: ValueBlock<'_>, order: &LeafOrder) {
        self.values += block.len() as u64;
        self.bytes += block.byte_len();
        self.nans += self.widen(block, order);
    }

    /// Widens the bounds only; returns the number of NaNs.
    pub(super) fn widen(&mut self, block: ValueBlock<'_>, order: &LeafOrder) -> u64 {
        let Some(by) = order.bounds.or(order.legacy).or(order.natural) else { return 0 };
        let Extremes { bounds, nans } = extremes(block, order, by);
        self.join(bounds, order);
        nans
    }

    /// Adds those of other values.
    pub(super) fn merge(&mut self, other: &Self, order: &LeafOrder) {
        self.values += other.values;
        self.nans += other.nans;
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.join(other.bounds.clone(), order);
    }

    fn join(&mut self, other: Option<(Vec<u8>, Vec<u8>)>, order: &LeafOrder) {
        let Some(by) = order.bounds.or(order.legacy).or(order.natural) else { return };
        let Some((min, max)) = other else { return };
        let Some(bounds) = &mut self.bounds else {
            self.bounds = Some((min, max));
            return;
        };
        // In the total order, NaNs are the bounds of values that are nothing else.
        match (order.is_nan(&bounds.0), order.is_nan(&min)) {
            (true, false) => *bounds = (min, max),
            (false, true) => {}
            _ => {
                if order.compare(by, &min, &bounds.0) == Some(Ordering::Less) {
                    bounds.0 = min;
                }
                if order.compare(by, &max, &bounds.1) == Some(Ordering::Greater) {
                    bounds.1 = max;
                }
            }
        }
    }
}

fn extremes(block: ValueBlock<'_>, order: &LeafOrder, by: Comparison) -> Extremes {
    let Comparison::Values(of) = by else {
        return Extremes { bounds: by_comparison(block, order, by), nans: 0 };
    };
    let total = matches!(of, ValueOrder::TotalFloat | ValueOrder::TotalFloat16);
    match (block, of) {
        (ValueBlock::Words32(words), ValueOrder::Float | ValueOrder::TotalFloat) => {
            collect::f32s(words, total)
        }
        (ValueBlock::Words64(words), ValueOrder::Float | ValueOrder::TotalFloat) => {
            collect::f64s(words, total)
        }
        (ValueBlock::Words32(words), _) => collect::i32s(words, of == ValueOrder::Unsigned),
        (ValueBlock::Words64(words), _) => collect::i64s(words, of == ValueOrder::Unsigned),
        (ValueBlock::Fixed { bytes, .. }, ValueOrder::Float16 | ValueOrder::TotalFloat16) => {
            collect::f16s(bytes, total)
        }
        (_, ValueOrder::Bytes) | (ValueBlock::Fixed { .. }, ValueOrder::Signed) => {
            let found = collect::bytes(block.slices());
            let bounds = found.map(|(min, max)| (min.to_vec(), max.to_vec()));
            Extremes { bounds, nans: 0 }
        }
        (_, ValueOrder::Decimal) => {
            let values: Vec<&[u8]> = block.slices().collect();
            let found = collect::decimal_bytes(&values);
            let bounds = found.map(|(min, max)| (min.to_vec(), max.to_vec()));
            Extremes { bounds, nans: 0 }
        }
        _ => Extremes::default(),
    }
}

fn by_comparison(
    block: ValueBlock<'_>,
    order: &LeafOrder,
    by: Comparison,
) -> Option<(Vec<u8>, Vec<u8>)> {
    let mut values = block.slices();
    let first = values.next()?;
    let (mut min, mut max) = (first, first);
    for value in values {
        if order.compare(by, value, min) == Some(Ordering::Less) {
            min = value;
        }
        if order.compare(by, value, max) == Some(Ordering::Greater) {
            max = value;
        }
    }
    debug_assert!(order.physical == Physical::Int96, "other orders have kernels");
    Some((min.to_vec(), max.to_vec()))
}
