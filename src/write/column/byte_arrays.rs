//! [`ByteArrayValues`]: the byte strings of a leaf, where they lie in the arrays.
//!
//! Values that lie end to end in an array stay together: a segment is two slices, however many
//! values it has, and is encoded as a whole. Trap: arrays of views, and those with many nulls, have
//! no such segments; their values are slices, one by one.

use std::ops::Range;

use crate::error::Result;
use crate::memory;

/// Byte strings, without nulls.
#[derive(Debug, Clone)]
pub(super) enum ByteArrayValues<'a> {
    /// One by one.
    Slices(Vec<&'a [u8]>),
    /// By segments of arrays.
    Segments { segments: Vec<ByteSegment<'a>>, len: usize },
}

/// Byte strings that lie end to end.
#[derive(Debug, Clone, Copy)]
pub(super) struct ByteSegment<'a> {
    /// The number of its first value.
    first: usize,
    /// The bytes that the ends count in.
    bytes: &'a [u8],
    ends: Ends<'a>,
}

/// Some byte strings that lie in one buffer.
pub(super) enum ByteRun<'a> {
    /// Between offsets, one more than values.
    Between(&'a [u8], Ends<'a>),
    /// One value: where it starts, and its length.
    One(&'a [u8], usize, usize),
}

/// Arrow's offsets: where the first value begins, and where each ends.
#[derive(Debug, Clone, Copy)]
pub(super) enum Ends<'a> {
    Small(&'a [i32]),
    Large(&'a [i64]),
}

impl Ends<'_> {
    /// How many values there are.
    fn values(&self) -> usize {
        match self {
            Self::Small(ends) => ends.len().saturating_sub(1),
            Self::Large(ends) => ends.len().saturating_sub(1),
        }
    }

    /// The offsets of a range of values.
    fn slice(&self, range: Range<usize>) -> Self {
        match self {
            Self::Small(ends) => Self::Small(
                ends.get(range.start..=range.end).expect("runs lie within their offsets"),
            ),
            Self::Large(ends) => Self::Large(
                ends.get(range.start..=range.end).expect("runs lie within their offsets"),
            ),
        }
    }

    /// Where the bytes of all values lie.
    pub(super) fn bounds(&self) -> Range<usize> {
        let (start, end) = match self {
            Self::Small([start, .., end]) => (i64::from(*start), i64::from(*end)),
            Self::Large([start, .., end]) => (*start, *end),
            _ => (0, 0),
        };
        place(start)..place(end)
    }
}

/// Arrow's offsets are never negative.
fn place(offset: impl Into<i64>) -> usize {
    usize::try_from(offset.into()).expect("Arrow has no negative offsets")
}

/// The values between ends.
fn between<'a, O: Copy + Into<i64>>(
    bytes: &'a [u8],
    ends: &'a [O],
) -> impl Iterator<Item = &'a [u8]> + Clone {
    ends.windows(2).map(move |pair| match pair {
        [start, end] => {
            bytes.get(place(*start)..place(*end)).expect("offsets lie within their buffer")
        }
        _ => &[],
    })
}

/// Minimum values of a segment, on average, because shorter ones cost more than slices.
const VALUES_PER_SEGMENT: usize = 4;

/// Values that are added to that, because the first segments may be short by chance.
const SPARE_SEGMENTS: usize = 64;

/// Why lengths have 31 bits.
const CHECKED: &str = "longer values were refused when they were appended";

impl<'a> ByteArrayValues<'a> {
    /// No values.
    pub(super) fn new() -> Self {
        Self::Segments { segments: Vec::new(), len: 0 }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Self::Slices(slices) => slices.len(),
            Self::Segments { len, .. } => *len,
        }
    }

    /// Forgets the values, and keeps the memory.
    pub(super) fn clear(&mut self) {
        match self {
            Self::Slices(slices) => slices.clear(),
            Self::Segments { segments, len } => {
                segments.clear();
                *len = 0;
            }
        }
    }

    /// Appends values that lie end to end.
    ///
    /// # Errors
    /// `Limit(Memory)` if the system has no memory.
    pub(super) fn push_segment(&mut self, bytes: &'a [u8], ends: Ends<'a>) -> Result<()> {
        let n = ends.values();
        if let Self::Segments { segments, len } = self {
            if n == 0 {
                return Ok(());
            }
            if segments.len() * VALUES_PER_SEGMENT <= *len + SPARE_SEGMENTS {
                memory::push(segments, ByteSegment { first: *len, bytes, ends })?;
                *len += n;
                return Ok(());
            }
        }
        let slices = self.slices_mut()?;
        memory::room(slices, n)?;
        match ends {
            Ends::Small(ends) => slices.extend(between(bytes, ends)),
            Ends::Large(ends) => slices.extend(between(bytes, ends)),
        }
        Ok(())
    }

    /// Changes to slices: the values one by one, from now on.
    ///
    /// # Errors
    /// `Limit(Memory)` if the system has no memory.
    pub(super) fn slices_mut(&mut self) -> Result<&mut Vec<&'a [u8]>> {
        if let Self::Segments { len, .. } = self {
            let mut slices = memory::vec_for(*len)?;
            slices.extend(self.iter(0..self.len()));
            *self = Self::Slices(slices);
        }
        match self {
            Self::Slices(slices) => Ok(slices),
            Self::Segments { .. } => unreachable!("made slices above"),
        }
    }

    /// The value of this number.
    pub(super) fn get(&self, i: usize) -> Option<&'a [u8]> {
        match self {
            Self::Slices(slices) => slices.get(i).copied(),
            Self::Segments { .. } => self.iter(i..i + 1).next(),
        }
    }

    /// The segments of the values of `range`; `None` if the values are slices.
    pub(super) fn segments(
        &self,
        range: Range<usize>,
    ) -> Option<impl Iterator<Item = (&'a [u8], Ends<'a>)> + Clone + '_> {
        match self {
            Self::Slices(_) => None,
            Self::Segments { segments, len } => {
                let range = range.start.min(*len)..range.end.min(*len);
                Some(segments_of(segments, range))
            }
        }
    }

    /// The values of `range`.
    pub(super) fn iter(&self, range: Range<usize>) -> impl Iterator<Item = &'a [u8]> + Clone + '_ {
        let (slices, segments): (&[&[u8]], &[ByteSegment<'_>]) = match self {
            Self::Slices(slices) => {
                (slices.get(range.clone()).expect("pages and samples lie within the values"), &[])
            }
            Self::Segments { segments, .. } => (&[], segments),
        };
        let range = range.start.min(self.len())..range.end.min(self.len());
        let segments = segments_of(segments, range).flat_map(|(bytes, ends)| {
            let (small, large): (&[i32], &[i64]) = match ends {
                Ends::Small(ends) => (ends, &[]),
                Ends::Large(ends) => (&[], ends),
            };
            between(bytes, small).chain(between(bytes, large))
        });
        slices.iter().copied().chain(segments)
    }

    /// Bytes of the values of `range`, without lengths.
    pub(super) fn payload(&self, range: Range<usize>) -> usize {
        match self.segments(range.clone()) {
            Some(segments) => segments.map(|(_, ends)| ends.bounds().len()).sum(),
            None => self.iter(range).map(<[u8]>::len).sum(),
        }
    }

    /// The bytes of the values of `range`, one after the other, in as few pieces as they lie in.
    pub(super) fn payload_slices(
        &self,
        range: Range<usize>,
    ) -> impl Iterator<Item = &'a [u8]> + '_ {
        let slices = match self {
            Self::Slices(slices) => {
                slices.get(range.clone()).expect("pages and samples lie within the values")
            }
            Self::Segments { .. } => &[],
        };
        let segments = self.segments(range).into_iter().flatten();
        let segments = segments.map(|(bytes, ends)| {
            bytes.get(ends.bounds()).expect("offsets lie within their buffer")
        });
        slices.iter().copied().chain(segments)
    }

    /// Appends the lengths of the values of `range`, which the format counts with 31 bits.
    pub(super) fn append_lengths(&self, range: Range<usize>, out: &mut Vec<i32>) {
        let of = |value: &[u8]| i32::try_from(value.len()).expect(CHECKED);
        match self.segments(range.clone()) {
            None => out.extend(self.iter(range).map(of)),
            Some(segments) => {
                for (_, ends) in segments {
                    match ends {
                        Ends::Small(ends) => out.extend(ends.windows(2).map(|pair| match pair {
                            [start, end] => end - start,
                            _ => 0,
                        })),
                        Ends::Large(ends) => out.extend(ends.windows(2).map(|pair| match pair {
                            [start, end] => i32::try_from(end - start).expect(CHECKED),
                            _ => 0,
                        })),
                    }
                }
            }
        }
    }
}

impl PartialEq for ByteArrayValues<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.iter(0..self.len()).eq(other.iter(0..other.len()))
    }
}

/// The parts of segments that have the values of `range`.
fn segments_of<'s, 'a>(
    segments: &'s [ByteSegment<'a>],
    range: Range<usize>,
) -> impl Iterator<Item = (&'a [u8], Ends<'a>)> + Clone + use<'s, 'a> {
    let from = segments.partition_point(|s| s.first + s.ends.values() <= range.start);
    let to = segments.partition_point(|s| s.first < range.end);
    let some = segments.get(from..to.max(from)).expect("both are places among them");
    some.iter().map(move |segment| {
        let start = range.start.saturating_sub(segment.first);
        let end = (range.end - segment.first).min(segment.ends.values());
        (segment.bytes, segment.ends.slice(start..end))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_what_slices_are() {
        let seed = 51;
        let mut rng = fastrand::Rng::with_seed(seed);
        let bytes: Vec<u8> = (0..5_000).map(|_| rng.u8(..)).collect();
        let mut small = vec![3];
        while small.last().is_some_and(|end| *end < 4_000) {
            small.push(small.last().unwrap() + rng.i32(0..9));
        }
        let large: Vec<i64> = small.iter().map(|end| i64::from(*end)).collect();
        for longest in [2usize, 40] {
            let (mut byte_arrays, mut slices) =
                (ByteArrayValues::new(), ByteArrayValues::Slices(Vec::new()));
            let mut at = 0;
            while at < small.len() {
                let to = (at + rng.usize(1..=longest)).min(small.len());
                let ends = match rng.bool() {
                    true => Ends::Small(&small[at..to]),
                    false => Ends::Large(&large[at..to]),
                };
                byte_arrays.push_segment(&bytes, ends).unwrap();
                slices.push_segment(&bytes, ends).unwrap();
                at = to;
            }
            assert!(matches!(slices, ByteArrayValues::Slices(_)));
            let is_whole = matches!(byte_arrays, ByteArrayValues::Segments { .. });
            assert_eq!(is_whole, longest > 2, "many short stretches become slices");
            assert_eq!(byte_arrays, slices, "seed {seed}");
            for _ in 0..200 {
                let start = rng.usize(0..=byte_arrays.len());
                let range = start..rng.usize(start..=byte_arrays.len());
                let values: Vec<&[u8]> = slices.iter(range.clone()).collect();
                assert_eq!(
                    byte_arrays.iter(range.clone()).collect::<Vec<_>>(),
                    values,
                    "seed {seed}"
                );
                assert_eq!(byte_arrays.get(range.start), slices.get(range.start));
                for byte_arrays in [&byte_arrays, &slices] {
                    assert_eq!(byte_arrays.payload(range.clone()), values.concat().len());
                    let payload_slices: Vec<&[u8]> =
                        byte_arrays.payload_slices(range.clone()).collect();
                    assert_eq!(payload_slices.concat(), values.concat(), "seed {seed}");
                    let mut lengths = Vec::new();
                    byte_arrays.append_lengths(range.clone(), &mut lengths);
                    assert!(
                        lengths.iter().map(|len| *len as usize).eq(values.iter().map(|v| v.len()))
                    );
                }
            }
            let len = byte_arrays.len();
            assert_eq!(byte_arrays.slices_mut().unwrap().len(), len);
            byte_arrays.clear();
            assert_eq!(byte_arrays.len(), 0);
        }
    }
}
