//! Levels as spans, and as the slots of a page.
//!
//! Spec: README.md, "Nested Encoding". A block of levels is read as often as it is asked for, run
//! by run: nothing is held for each level.

use std::sync::Arc;

use bytes::Bytes;

use super::runs::{self, PackedSpans, Show};
use super::span::{Cutter, Slot, Slots, Span, SpanKind, Spans, is_of_file};
use super::value::{Items, ShownColumn, Value};
use crate::encoding::legacy::{BitOrder, BitPacked};
use crate::encoding::rle::{BitWidth, Hybrid, Run};
use crate::error::Result;
use crate::memory;

/// The levels of a page, of one sort.
#[derive(Debug, Clone)]
pub(super) struct StoredLevels {
    max: u16,
    slots: usize,
    form: LevelForm,
}

#[derive(Debug, Clone)]
enum LevelForm {
    /// The highest level is 0: nothing is stored.
    Absent,
    Hybrid(Bytes),
    BitPacked(Bytes, BitOrder),
}

impl StoredLevels {
    pub(super) fn absent(slots: usize) -> Self {
        Self { max: 0, slots, form: LevelForm::Absent }
    }

    /// In the hybrid encoding, without a length in front.
    pub(super) fn hybrid(bytes: Bytes, max: u16, slots: usize) -> Self {
        Self { max, slots, form: LevelForm::Hybrid(bytes) }
    }

    pub(super) fn bit_packed(bytes: Bytes, order: BitOrder, max: u16, slots: usize) -> Self {
        Self { max, slots, form: LevelForm::BitPacked(bytes, order) }
    }

    /// How many bits a level takes.
    pub(super) fn width(max: u16) -> BitWidth {
        BitWidth::for_max(u32::from(max))
    }

    /// How many slots hold a value, if these are definition levels.
    pub(super) fn count_values(&self) -> Result<usize> {
        let mut values = 0u64;
        for run in self.runs() {
            let (level, n) = run?;
            values += if level == self.max { n } else { 0 };
        }
        Ok(usize::try_from(values).unwrap_or(usize::MAX))
    }

    /// The levels, as runs of equal ones.
    fn runs(&self) -> LevelRuns {
        let width = Self::width(self.max);
        let source = match &self.form {
            LevelForm::Absent => LevelSource::Absent,
            // `new` never fails; it would be the error of the first run.
            LevelForm::Hybrid(bytes) => match Hybrid::new(bytes.clone(), width, self.slots) {
                Ok(hybrid) => LevelSource::Hybrid(hybrid),
                Err(_) => LevelSource::Absent,
            },
            LevelForm::BitPacked(bytes, order) => {
                match BitPacked::new(bytes.clone(), *order, width, self.slots) {
                    Ok(packed) => LevelSource::BitPacked(packed),
                    Err(error) => LevelSource::Failed(Some(error)),
                }
            }
        };
        LevelRuns { source, left: self.slots, block: Vec::new(), next: 0 }
    }

    /// Describes the bytes that the levels are in, which `span` is: with a length of `prefix` bytes
    /// in front.
    pub(super) fn describe(&self, span: Span, prefix: usize) -> Span {
        let (levels, of) = (self.clone(), self.clone());
        let list = Items::new(self.slots as u64, move || {
            let runs = of.runs().map_while(Result::ok);
            runs.flat_map(|(level, n)| {
                std::iter::repeat_n(level, usize::try_from(n).unwrap_or(usize::MAX))
                    .map(|level| Value::Int(level.into()))
            })
        });
        let text = match self.form {
            LevelForm::BitPacked(..) => "BIT_PACKED",
            _ => "RLE",
        };
        let bits = Self::width(self.max).bits();
        let unit = if bits == 1 { "bit" } else { "bits" };
        let text = format!("{text}, {bits} {unit}, highest {}", self.max);
        let span = span.with_value(Value::List(list)).with_count(self.slots).with_text(text);
        span.with_parts(move |mut cutter| {
            let head = (prefix > 0).then(|| length(&mut cutter));
            let show: Show = Arc::new(|level| Value::Int(level.into()).into());
            let width = Self::width(levels.max);
            let inside = match levels.form {
                LevelForm::BitPacked(_, order) => {
                    Spans::infallible(PackedSpans::legacy(cutter, order, width, levels.slots, show))
                }
                _ => runs::hybrid(cutter, width, levels.slots, show),
            };
            Spans::new(head.map(Ok).into_iter().chain(inside))
        })
    }
}

/// A length of 4 bytes, little-endian.
pub(super) fn length(cutter: &mut Cutter) -> Span {
    let span = cutter.cut(4, SpanKind::Length, "length");
    let bytes = span.in_memory();
    match bytes.first_chunk() {
        Some(bytes) => span.with_value(Value::UInt(u32::from_le_bytes(*bytes).into())),
        None => span,
    }
}

struct LevelRuns {
    source: LevelSource,
    left: usize,
    /// Levels that were packed, and how many of them are given.
    block: Vec<u32>,
    next: usize,
}

enum LevelSource {
    Absent,
    Hybrid(Hybrid),
    BitPacked(BitPacked),
    Failed(Option<crate::Error>),
}

/// Levels that are read at a time.
const BLOCK: usize = 1 << 16;

impl LevelRuns {
    fn next_run(&mut self) -> Result<(u16, u64)> {
        let level = |level: u32| u16::try_from(level).unwrap_or(u16::MAX);
        if self.next == self.block.len() {
            self.block.clear();
            self.next = 0;
            match &mut self.source {
                LevelSource::Absent => return Ok((0, std::mem::take(&mut self.left) as u64)),
                LevelSource::Failed(error) => {
                    self.left = 0;
                    return match error.take() {
                        Some(error) => Err(error),
                        None => Ok((0, 0)),
                    };
                }
                LevelSource::Hybrid(hybrid) => {
                    let first = hybrid.next_run(self.left.min(BLOCK))?;
                    match first {
                        Run::Rle { value, n } => {
                            self.left -= n;
                            return Ok((level(value), n as u64));
                        }
                        Run::Packed(packed) => {
                            memory::room(&mut self.block, packed.len() + 8)?;
                            packed.unpack(&mut self.block);
                        }
                    }
                }
                LevelSource::BitPacked(packed) => {
                    packed.read(self.left.min(BLOCK), &mut self.block)?;
                }
            }
        }
        let rest = self.block.get(self.next..).unwrap_or_default();
        let Some(&first) = rest.first() else { return Ok((0, 0)) };
        let n = rest.iter().take_while(|level| **level == first).count();
        self.next += n;
        self.left -= n;
        Ok((level(first), n as u64))
    }
}

impl Iterator for LevelRuns {
    type Item = Result<(u16, u64)>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.left == 0 {
            return None;
        }
        let run = self.next_run();
        if run.is_err() {
            self.left = 0;
        }
        Some(run)
    }
}

/// The slots of a page: each run of equal pairs of levels is one.
pub(super) fn slots(rep: &StoredLevels, def: &StoredLevels, column: &Arc<ShownColumn>) -> Slots {
    let (mut rep, mut def) = (rep.runs(), def.runs());
    let (mut r, mut d) = ((0, 0), (0, 0));
    let mut first = 0u64;
    let column = column.clone();
    let mut next = move || -> Option<Result<Slot>> {
        for (runs, run) in [(&mut rep, &mut r), (&mut def, &mut d)] {
            while run.1 == 0 {
                *run = match runs.next()? {
                    Ok(run) => run,
                    Err(error) => return Some(Err(error)),
                };
            }
        }
        let count = r.1.min(d.1);
        r.1 -= count;
        d.1 -= count;
        let slot = Slot {
            first,
            count,
            repetition_level: r.0,
            definition_level: d.0,
            text: column.meaning(r.0, d.0),
        };
        first += count;
        Some(Ok(slot))
    };
    let mut pending: Option<Slot> = None;
    let merged = std::iter::from_fn(move || {
        loop {
            match next() {
                None => return pending.take().map(Ok),
                Some(Err(error)) => return Some(Err(error)),
                Some(Ok(slot)) => match &mut pending {
                    Some(before)
                        if before.repetition_level == slot.repetition_level
                            && before.definition_level == slot.definition_level =>
                    {
                        before.count += slot.count;
                    }
                    _ => {
                        if let Some(before) = pending.replace(slot) {
                            return Some(Ok(before));
                        }
                    }
                },
            }
        }
    });
    // What is wrong with the levels, their own spans say.
    let is_right = |slot: &Result<Slot>| !slot.as_ref().is_err_and(is_of_file);
    Slots::new(merged.take_while(is_right))
}
