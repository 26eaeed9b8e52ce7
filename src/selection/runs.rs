//! [`Runs`] iterates over the runs of a selection, whichever form it has.

use std::ops::Range;

use arrow_buffer::BooleanBuffer;
use arrow_buffer::bit_iterator::BitSliceIterator;

use crate::bytes::saturated;

/// The runs of rows that are wanted: ascending, none empty, no two touching.
#[derive(Debug)]
pub(crate) struct Runs<'a>(RunsForm<'a>);

#[derive(Debug)]
enum RunsForm<'a> {
    Ranges(std::slice::Iter<'a, Range<u64>>),
    Bits {
        slices: BitSliceIterator<'a>,
        /// Row of the first bit.
        first: u64,
    },
}

impl<'a> Runs<'a> {
    pub(super) fn from_ranges(runs: &'a [Range<u64>]) -> Self {
        Self(RunsForm::Ranges(runs.iter()))
    }

    pub(super) fn from_bits(bits: &'a BooleanBuffer) -> Self {
        Self(RunsForm::Bits { slices: bits.set_slices(), first: 0 })
    }

    /// From `row` on: a run that it lies in begins with it.
    pub(super) fn from_bits_after(bits: &'a BooleanBuffer, row: u64) -> Self {
        let skip = saturated(row).min(bits.len());
        let slices = BitSliceIterator::new(bits.values(), bits.offset() + skip, bits.len() - skip);
        Self(RunsForm::Bits { slices, first: skip as u64 })
    }
}

impl Iterator for Runs<'_> {
    type Item = Range<u64>;

    fn next(&mut self) -> Option<Self::Item> {
        match &mut self.0 {
            RunsForm::Ranges(runs) => runs.next().cloned(),
            RunsForm::Bits { slices, first } => {
                slices.next().map(|(start, end)| *first + start as u64..*first + end as u64)
            }
        }
    }
}
