//! [`ValueFacts`]: what the values of a page or a chunk make true.
//!
//! Used by `column`. The kernels are those of the writer's statistics (`stats::collect`).

use std::cmp::Ordering;

use super::order::{Comparison, LeafOrder};
use super::values::ValueBlock;
use crate::error::Result;
use crate::memory;
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
    ///
    /// # Errors
    /// `Limit(Memory)` if the system has no memory; so for all of this module.
    pub(super) fn add(&mut self, block: ValueBlock<'_>, order: &LeafOrder) -> Result<()> {
        self.values += block.len() as u64;
        self.bytes += block.byte_len();
        self.nans += self.widen(block, order)?;
        Ok(())
    }

    /// Widens the bounds only; returns the number of NaNs.
    pub(super) fn widen(&mut self, block: ValueBlock<'_>, order: &LeafOrder) -> Result<u64> {
        let Some(by) = order.bounds.or(order.legacy).or(order.natural) else { return Ok(0) };
        let Extremes { bounds, nans } = extremes(block, order, by)?;
        self.join(bounds, order);
        Ok(nans)
    }

    /// Adds those of other values.
    pub(super) fn merge(&mut self, other: &Self, order: &LeafOrder) -> Result<()> {
        self.values += other.values;
        self.nans += other.nans;
        self.bytes = self.bytes.saturating_add(other.bytes);
        let bounds = other.bounds.as_ref().map(|(min, max)| copied((min, max))).transpose()?;
        self.join(bounds, order);
        Ok(())
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

/// Copies of bounds.
fn copied((min, max): (&[u8], &[u8])) -> Result<(Vec<u8>, Vec<u8>)> {
    Ok((memory::copied(min)?, memory::copied(max)?))
}

fn extremes(block: ValueBlock<'_>, order: &LeafOrder, by: Comparison) -> Result<Extremes> {
    let Comparison::Values(of) = by else {
        return Ok(Extremes { bounds: by_comparison(block, order, by)?, nans: 0 });
    };
    let total = matches!(of, ValueOrder::TotalFloat | ValueOrder::TotalFloat16);
    Ok(match (block, of) {
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
            let bounds = collect::bytes(block.slices()).map(copied).transpose()?;
            Extremes { bounds, nans: 0 }
        }
        (_, ValueOrder::Decimal) => {
            let values: Vec<&[u8]> = memory::collected(block.slices())?;
            let bounds = collect::decimal_bytes(&values).map(copied).transpose()?;
            Extremes { bounds, nans: 0 }
        }
        _ => Extremes::default(),
    })
}

fn by_comparison(
    block: ValueBlock<'_>,
    order: &LeafOrder,
    by: Comparison,
) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
    let mut values = block.slices();
    let Some(first) = values.next() else { return Ok(None) };
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
    copied((min, max)).map(Some)
}
