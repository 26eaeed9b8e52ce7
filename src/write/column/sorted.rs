//! [`SortDetector`] finds out whether the values of a chunk ascend or descend.

use std::cmp::Ordering;
use std::ops::Range;

use super::values::LeafValues;
use crate::error::Result;
use crate::stats::order::ValueOrder;

/// The order that the rows have by one column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SortDirection {
    pub(crate) descending: bool,
}

/// Finds out whether values ascend or descend; undecided for values that are all equal, for floats,
/// and if no order is defined.
pub(super) struct SortDetector<'a> {
    order: ValueOrder,
    rises: bool,
    falls: bool,
    /// The first of the values, and the last so far.
    first: Option<SortValue<'a>>,
    last: Option<SortValue<'a>>,
}

/// A value in its order.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum SortValue<'a> {
    Word(i64),
    Bytes(&'a [u8]),
    Fixed(Vec<u8>),
}

impl<'a> SortDetector<'a> {
    pub(super) fn new(order: ValueOrder) -> Self {
        Self { order, rises: true, falls: true, first: None, last: None }
    }

    /// Continues with the values of a range.
    pub(super) fn push(&mut self, values: &LeafValues<'a>, range: Range<usize>) -> Result<()> {
        if range.is_empty() || !(self.rises || self.falls) {
            return Ok(());
        }
        let signed = matches!(self.order, ValueOrder::Signed | ValueOrder::Decimal);
        match (values, self.order) {
            (
                LeafValues::Words32(values),
                ValueOrder::Signed | ValueOrder::Decimal | ValueOrder::Unsigned,
            ) => {
                let values = values.get(range).expect("pages and samples lie within the values");
                let key = |value: &i32| match signed {
                    true => i64::from(*value),
                    false => i64::from(value.cast_unsigned()),
                };
                self.words(values, signed, key);
            }
            (
                LeafValues::Words64(values),
                ValueOrder::Signed | ValueOrder::Decimal | ValueOrder::Unsigned,
            ) => {
                let values = values.get(range).expect("pages and samples lie within the values");
                self.words(values, signed, |v: &i64| if signed { *v } else { *v ^ i64::MIN });
            }
            (LeafValues::Bytes(byte_arrays), ValueOrder::Bytes) => {
                let mut values = byte_arrays.iter(range);
                let Some(mut last) = values.next() else {
                    return Ok(());
                };
                self.step(SortValue::Bytes(last));
                let (mut rises, mut falls) = (self.rises, self.falls);
                // Mostly the first few are enough.
                let _ = values.try_for_each(|value| {
                    match last.cmp(value) {
                        Ordering::Less => falls = false,
                        Ordering::Equal => {}
                        Ordering::Greater => rises = false,
                    }
                    last = value;
                    (rises || falls).then_some(())
                });
                (self.rises, self.falls, self.last) = (rises, falls, Some(SortValue::Bytes(last)));
            }
            (LeafValues::Fixed { .. }, ValueOrder::Bytes) => {
                let values = values.slices(range)?;
                let (Some(first), Some(last)) = (values.first(), values.last()) else {
                    return Ok(());
                };
                self.step(SortValue::Fixed(first.to_vec()));
                self.rises = self.rises && values.is_sorted();
                self.falls = self.falls && values.is_sorted_by(|a, b| a >= b);
                self.last = Some(SortValue::Fixed(last.to_vec()));
            }
            _ => (self.rises, self.falls) = (false, false),
        }
        Ok(())
    }

    fn words<T: Ord>(&mut self, values: &[T], signed: bool, key: impl Fn(&T) -> i64) {
        let (Some(first), Some(last)) = (values.first(), values.last()) else {
            return;
        };
        self.step(SortValue::Word(key(first)));
        if signed {
            self.rises = self.rises && values.is_sorted();
            self.falls = self.falls && values.is_sorted_by(|a, b| a >= b);
        } else {
            self.rises = self.rises && values.is_sorted_by_key(&key);
            self.falls = self.falls && values.is_sorted_by(|a, b| key(a) >= key(b));
        }
        self.last = Some(SortValue::Word(key(last)));
    }

    fn step(&mut self, next: SortValue<'a>) {
        if let Some(last) = &self.last {
            self.rises &= *last <= next;
            self.falls &= *last >= next;
        } else {
            self.first = Some(next.clone());
        }
        self.last = Some(next);
    }

    /// Whether no value so far is less than the one before.
    pub(super) fn rises(&self) -> bool {
        self.rises
    }

    /// Continues with the values that another detector has seen.
    pub(super) fn join(&mut self, next: Self) {
        if let Some(first) = next.first {
            self.step(first);
        }
        self.rises &= next.rises;
        self.falls &= next.falls;
        if next.last.is_some() {
            self.last = next.last;
        }
    }

    pub(super) fn finish(self) -> Option<SortDirection> {
        (self.rises != self.falls).then_some(SortDirection { descending: self.falls })
    }
}

/// Whether codes rise or fall by what they mean; `None` if they are all equal.
pub(super) fn direction<K: Ord>(codes: &[u32], key: impl Fn(&u32) -> K) -> Option<SortDirection> {
    let (mut ascending, mut descending) = (true, true);
    for pair in codes.windows(2) {
        if let [a, b] = pair {
            let order = key(a).cmp(&key(b));
            ascending &= order.is_le();
            descending &= order.is_ge();
        }
        if !ascending && !descending {
            return None;
        }
    }
    (ascending != descending).then_some(SortDirection { descending })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The direction of values whose parts are seen by detectors of their own.
    fn found(parts: &[&[i32]], order: ValueOrder) -> Option<bool> {
        let mut all = SortDetector::new(order);
        for part in parts {
            let values = LeafValues::Words32(part.to_vec().into());
            let mut detector = SortDetector::new(order);
            // In two steps, as pages are.
            detector.push(&values, 0..part.len() / 2).unwrap();
            detector.push(&values, part.len() / 2..part.len()).unwrap();
            all.join(detector);
        }
        all.finish().map(|direction| direction.descending)
    }

    #[test]
    fn values_are_sorted_within_parts_and_from_one_to_the_next() {
        let cases: [(&[&[i32]], Option<bool>); 11] = [
            (&[&[1, 2, 2], &[2, 3]], Some(false)),
            (&[&[3, 2, 2], &[2, 1]], Some(true)),
            (&[&[], &[1], &[], &[2]], Some(false)),
            (&[&[2], &[], &[1]], Some(true)),
            (&[&[1, 2], &[1, 3]], None),
            (&[&[3, 2], &[3, 1]], None),
            (&[&[1, 2], &[5, 4]], None),
            (&[&[5, 4], &[1, 2]], None),
            (&[&[1, 3, 2]], None),
            (&[&[1, 1], &[1]], None),
            (&[], None),
        ];
        for (parts, expected) in cases {
            assert_eq!(found(parts, ValueOrder::Signed), expected, "{parts:?}");
        }
        assert_eq!(found(&[&[1, 2], &[-2, -1]], ValueOrder::Unsigned), Some(false));
        assert_eq!(found(&[&[1, 2], &[-2, -1]], ValueOrder::Signed), None);
    }
}
