//! Splits PLAIN strings into payload and ends in one pass: a value is copied in whole steps as soon
//! as its length is read.
//!
//! A step is one of four numbers of bytes, chosen so that most values take no more. So no branch
//! depends on their lengths, which cannot be predicted. The next value overwrites what a step
//! writes after its value.

use bytes::Bytes;

use super::prefetch;
use crate::span::ValueSpan;

/// The end of a value in the payload.
pub(crate) trait OffsetInt: Copy {
    /// The furthest.
    const MAX: usize;

    /// From a number that is no more.
    fn at(end: usize) -> Self;
}

impl OffsetInt for i32 {
    const MAX: usize = Self::MAX as usize;

    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, clippy::cast_possible_wrap, reason = "no more")]
    fn at(end: usize) -> Self {
        end as Self
    }
}

impl OffsetInt for i64 {
    /// No vector is longer, and it fits.
    const MAX: usize = usize::MAX >> 1;

    #[inline(always)]
    #[expect(clippy::cast_possible_wrap, reason = "no more")]
    fn at(end: usize) -> Self {
        end as Self
    }
}

/// Bytes that must be free after the payload for the widest step.
pub(crate) const SLACK: usize = 128;

/// Where the next values go: after the payload, as far as it has memory, and no further than
/// allowed.
struct StringTarget<'a, O> {
    payload: &'a mut Vec<u8>,
    ends: &'a mut Vec<O>,
    /// Where the next value begins; all before it is written.
    to: usize,
    /// Where the last value may end, so that a step still fits after it.
    max: usize,
    /// Values that may be appended; none if there is no room for a step.
    n: usize,
    done: usize,
}

impl<'a, O: OffsetInt> StringTarget<'a, O> {
    /// Takes up to `n` values, and steps of `step` bytes.
    fn new(
        payload: &'a mut Vec<u8>,
        ends: &'a mut Vec<O>,
        n: usize,
        max: usize,
        step: usize,
    ) -> Self {
        ends.reserve(n);
        // Even a value of no bytes takes a step: where there is no room for one, nothing fits.
        let capacity = payload.capacity().checked_sub(step);
        // Without room, `n` is 0 below, and `max` has no effect.
        let max = max.min(O::MAX).min(capacity.unwrap_or(0));
        let to = payload.len();
        let n = if capacity.is_some() && to <= max { n } else { 0 };
        Self { to, payload, ends, max, n, done: 0 }
    }

    /// Whether there is room for a value of `len` bytes; only for values that may be appended.
    #[inline(always)]
    fn fits(&self, len: usize) -> bool {
        // Whatever a page calls a length, this does not overflow: where there are values to append,
        // `to` is at most `max`.
        len <= self.max - self.to
    }

    /// Appends a value of `len` bytes, at most `N`; `step` begins with it.
    ///
    /// # Safety
    /// It must fit, with steps of `N` bytes or more, and fewer values must be done than were
    /// announced.
    #[inline(always)]
    unsafe fn push<const N: usize>(&mut self, step: &[u8; N], len: usize) {
        // SAFETY: `to <= max`, after which `N` bytes of the capacity are left; `payload` is
        // borrowed mutably, so that the two do not overlap.
        unsafe {
            let to = self.payload.as_mut_ptr().add(self.to);
            std::ptr::copy_nonoverlapping(step.as_ptr(), to, N);
        }
        // SAFETY: as the caller's.
        unsafe { self.end(len) };
    }

    /// Appends a value of any length. Never inlined: the compiler would make one call of this copy
    /// and that of a step.
    ///
    /// # Safety
    /// As [`StringTarget::push`].
    #[cold]
    #[inline(never)]
    unsafe fn push_long(&mut self, value: &[u8]) {
        // SAFETY: it fits into the capacity; `payload` is borrowed mutably.
        unsafe {
            let to = self.payload.as_mut_ptr().add(self.to);
            std::ptr::copy_nonoverlapping(value.as_ptr(), to, value.len());
        }
        // SAFETY: as the caller's.
        unsafe { self.end(value.len()) };
    }

    /// Notes the end of a value that was written.
    ///
    /// # Safety
    /// As [`StringTarget::push`].
    #[inline(always)]
    unsafe fn end(&mut self, len: usize) {
        self.to += len;
        // SAFETY: there is room for as many ends as were announced, and not all are done.
        unsafe {
            let end = self.ends.spare_capacity_mut().as_mut_ptr().add(self.done);
            (*end).write(O::at(self.to));
        }
        self.done += 1;
    }

    /// Makes the values part of the vectors; returns how many they are.
    fn close(self) -> usize {
        let ends = self.ends.len() + self.done;
        // SAFETY: all of the payload up to `to` is written.
        unsafe { self.payload.set_len(self.to) };
        // SAFETY: `done` ends after the old length are written.
        unsafe { self.ends.set_len(ends) };
        self.done
    }
}

/// Calls `$kernel::<N>` for the shortest step that holds values of that length, or else the
/// longest.
macro_rules! with_step {
    ($bytes:expr, $kernel:ident $(::<$t:ty>)? ($($argument:expr),*)) => {
        match $bytes {
            0..=16 => $kernel::<16, $($t)?>($($argument),*),
            17..=32 => $kernel::<32, $($t)?>($($argument),*),
            33..=64 => $kernel::<64, $($t)?>($($argument),*),
            _ => $kernel::<128, $($t)?>($($argument),*),
        }
    };
}

/// The bytes that most values take no more than, if they have `mean` bytes, more or less.
fn max_of(mean: usize) -> usize {
    mean.saturating_add(mean / 2)
}

/// How far a walk over PLAIN byte strings came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Walked {
    /// Values that were appended.
    pub n: usize,
    /// Where the next value begins: its length.
    pub next: usize,
}

/// Appends payload and ends of the next `n` PLAIN byte strings from `start`, each after the four
/// bytes of its length; of fewer, if one reaches beyond the page, or would not fit into the
/// capacity of `payload` less [`SLACK`] bytes, or end beyond `max`. `mean` is how many bytes they
/// have, more or less.
pub(crate) fn append_plain<O: OffsetInt>(
    page: &[u8],
    start: usize,
    n: usize,
    mean: usize,
    max: usize,
    payload: &mut Vec<u8>,
    ends: &mut Vec<O>,
) -> Walked {
    with_step!(max_of(mean), plain::<O>(page, start, n, max, payload, ends))
}

fn plain<const N: usize, O: OffsetInt>(
    page: &[u8],
    start: usize,
    n: usize,
    max: usize,
    payload: &mut Vec<u8>,
    ends: &mut Vec<O>,
) -> Walked {
    const LEN: usize = size_of::<u32>();
    // How far before it is needed a line of the cache is asked for.
    let ahead = 512 + 8 * N;
    let mut target = StringTarget::new(payload, ends, n, max, N);
    // After the page, as at its end, there is no value.
    let mut rest = page.get(start..).unwrap_or_default();
    for _ in 0..target.n {
        let Some((len, after)) = rest.split_first_chunk::<LEN>() else { break };
        let len = u32::from_le_bytes(*len) as usize;
        if !target.fits(len) {
            break;
        }
        match after.first_chunk::<N>() {
            Some(step) if len <= N => {
                prefetch(after, ahead);
                // SAFETY: it fits, and the loop runs as often as values were announced.
                unsafe { target.push(step, len) };
                // SAFETY: `len <= N`, and a step is there.
                rest = unsafe { after.get_unchecked(len..) };
            }
            _ => {
                let Some((value, after)) = after.split_at_checked(len) else { break };
                // SAFETY: as above.
                unsafe { target.push_long(value) };
                rest = after;
            }
        }
    }
    let next = page.len() - rest.len();
    Walked { n: target.close(), next }
}

/// The entries of a dictionary of strings.
#[derive(Debug)]
pub(crate) struct Entries {
    lengths: Lengths,
    /// Bytes that a step should copy.
    step: usize,
}

#[derive(Debug)]
enum Lengths {
    /// None is longer than the shortest step, and all together stay in the cache, each in a stretch
    /// of its own.
    Short(Vec<([u8; SHORT], u32)>),
    /// All lie in the bytes; of a small dictionary so that a step fits after the start of each.
    Long(Bytes, Vec<ValueSpan>),
}

/// The shortest step.
const SHORT: usize = 16;

/// Short entries are copied to stretches of their own if they are no more than these.
const MAX_SHORT_BYTES: usize = 1 << 16;

/// A step of this many bytes costs no more than to distinguish shorter values from longer ones.
const CHEAP: usize = 32;

/// In a dictionary of more bytes few entries lie so close to its end that no step fits after their
/// start.
const MAX_PADDED_BYTES: usize = 64 << 10;

/// Entries of a dictionary of more bytes are asked for before they are needed.
const CACHED: usize = 128 << 10;

/// How many values before.
const AHEAD: usize = 12;

impl Entries {
    /// The values of `spans`.
    ///
    /// # Panics
    /// If a span reaches beyond `source`.
    pub(crate) fn new(source: &Bytes, spans: &[ValueSpan]) -> Self {
        let furthest = spans.iter().map(|span| u64::from(span.start) + u64::from(span.len)).max();
        assert!(furthest.unwrap_or(0) <= source.len() as u64, "spans lie within their source");
        let longest = spans.iter().map(|span| span.len as usize).max().unwrap_or(0);
        let total: u64 = spans.iter().map(|span| u64::from(span.len)).sum();
        let mean = total / (spans.len() as u64).max(1);
        let mean = usize::try_from(mean).expect("no span is longer than memory");
        let lengths = if longest <= SHORT && spans.len() <= MAX_SHORT_BYTES {
            let short = |span: &ValueSpan| {
                let mut bytes = [0; SHORT];
                bytes[..span.len as usize].copy_from_slice(span.slice(source));
                (bytes, span.len)
            };
            Lengths::Short(spans.iter().map(short).collect())
        } else if source.len() <= MAX_PADDED_BYTES {
            let mut padded = Vec::with_capacity(source.len() + SLACK);
            padded.extend_from_slice(source);
            padded.resize(source.len() + SLACK, 0);
            Lengths::Long(padded.into(), spans.to_vec())
        } else {
            Lengths::Long(source.clone(), spans.to_vec())
        };
        let step = if longest <= CHEAP { longest } else { max_of(mean) };
        Self { lengths, step }
    }

    /// Bytes that `n` entries take at most, besides those that they share with their source.
    pub(crate) fn max_bytes(n: usize) -> usize {
        if n <= MAX_SHORT_BYTES {
            n * size_of::<([u8; SHORT], u32)>()
                + MAX_PADDED_BYTES.min(n.saturating_mul(SHORT))
                + SLACK
        } else {
            n.saturating_mul(size_of::<ValueSpan>()).saturating_add(MAX_PADDED_BYTES + SLACK)
        }
    }

    /// Number of entries.
    pub(crate) fn len(&self) -> usize {
        match &self.lengths {
            Lengths::Short(entries) => entries.len(),
            Lengths::Long(_, spans) => spans.len(),
        }
    }

    /// Bytes of the entries of `indices`; indices beyond the entries count as none.
    pub(crate) fn total(&self, indices: &[u32]) -> u64 {
        let len = |index: &u32| {
            let index = *index as usize;
            u64::from(match &self.lengths {
                Lengths::Short(entries) => entries.get(index).map_or(0, |entry| entry.1),
                Lengths::Long(_, spans) => spans.get(index).map_or(0, |span| span.len),
            })
        };
        indices.iter().map(len).sum()
    }

    /// Appends payload and ends of the entries of `indices`, and returns how many: up to the first
    /// that would not fit into the capacity of `payload` less [`SLACK`] bytes, or end after `max`,
    /// or is beyond the entries.
    pub(crate) fn append<O: OffsetInt>(
        &self,
        indices: &[u32],
        max: usize,
        payload: &mut Vec<u8>,
        ends: &mut Vec<O>,
    ) -> usize {
        match &self.lengths {
            Lengths::Short(entries) => short(entries, indices, max, payload, ends),
            Lengths::Long(source, spans) => {
                with_step!(self.step, long::<O>(source, spans, indices, max, payload, ends))
            }
        }
    }
}

fn short<O: OffsetInt>(
    entries: &[([u8; SHORT], u32)],
    indices: &[u32],
    max: usize,
    payload: &mut Vec<u8>,
    ends: &mut Vec<O>,
) -> usize {
    let mut target = StringTarget::new(payload, ends, indices.len(), max, SHORT);
    for index in indices.iter().take(target.n) {
        let Some((step, len)) = entries.get(*index as usize) else { break };
        let len = *len as usize;
        if !target.fits(len) {
            break;
        }
        // SAFETY: it fits, and as many values as indices were announced.
        unsafe { target.push(step, len) };
    }
    target.close()
}

fn long<const N: usize, O: OffsetInt>(
    source: &[u8],
    spans: &[ValueSpan],
    indices: &[u32],
    max: usize,
    payload: &mut Vec<u8>,
    ends: &mut Vec<O>,
) -> usize {
    let is_far = source.len() > CACHED;
    let mut target = StringTarget::new(payload, ends, indices.len(), max, N);
    for (i, index) in indices.iter().enumerate().take(target.n) {
        if is_far && let Some(next) = indices.get(i + AHEAD) {
            // An index beyond the entries is found in its turn.
            if let Some(span) = spans.get(*next as usize) {
                prefetch(source, span.start as usize);
                prefetch(source, span.start as usize + 64);
            }
        }
        let Some(span) = spans.get(*index as usize) else { break };
        let len = span.len as usize;
        if !target.fits(len) {
            break;
        }
        let rest = source.get(span.start as usize..).expect("`new` has checked the spans");
        match rest.first_chunk::<N>() {
            // SAFETY: it fits, and as many values as indices were announced.
            Some(step) if len <= N => unsafe { target.push(step, len) },
            // SAFETY: as above.
            _ => unsafe { target.push_long(rest.get(..len).expect("`new` has checked the spans")) },
        }
    }
    target.close()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of around `mean` bytes, some of them far longer.
    fn values(rng: &mut fastrand::Rng, n: usize, mean: usize) -> Vec<Vec<u8>> {
        let mut len = || match rng.usize(0..20) {
            0 => rng.usize(0..300),
            _ => rng.usize(0..=2 * mean),
        };
        let lens: Vec<usize> = (0..n).map(|_| len()).collect();
        lens.iter().map(|len| (0..*len).map(|_| rng.u8(..)).collect()).collect()
    }

    #[test]
    fn plain_values_as_the_naive_twin_until_the_room_or_the_page_ends() {
        let seed = 17;
        let mut rng = fastrand::Rng::with_seed(seed);
        for _ in 0..500 {
            let (n, mean) = (rng.usize(0..50), *rng.choice(&[3, 12, 30, 60, 100]).unwrap());
            let values = values(&mut rng, n, mean);
            let mut page = vec![9; 5];
            for value in &values {
                page.extend((value.len() as u32).to_le_bytes());
                page.extend(value);
            }
            let total: usize = values.iter().map(Vec::len).sum();
            let cut = if rng.bool() { page.len() } else { rng.usize(5..=page.len()) };
            let max = if rng.bool() { usize::MAX } else { rng.usize(3..4 + total) };
            let mut payload = b"pre".to_vec();
            payload.reserve(if rng.bool() { total + SLACK } else { rng.usize(0..=total) });
            let capacity = max.min(payload.capacity().saturating_sub(SLACK));
            let held = payload.capacity();
            let (mut ends, mut wide) = (vec![3i32], vec![3i64]);
            let mut twin = payload.clone();
            twin.reserve(payload.capacity() - payload.len());
            let walked = append_plain(&page[..cut], 5, n, mean, max, &mut payload, &mut ends);
            let again = append_plain(&page[..cut], 5, n, mean, max, &mut twin, &mut wide);
            assert_eq!((walked, &payload), (again, &twin), "seed {seed}");
            assert!(wide.iter().map(|end| *end as i32).eq(ends.iter().copied()));
            let (mut next, mut expected) = (5, vec![3]);
            for value in &values[..walked.n] {
                next += 4 + value.len();
                expected.push(expected[expected.len() - 1] + value.len() as i32);
            }
            assert_eq!((walked.next, ends), (next, expected), "seed {seed}");
            assert_eq!(payload[3..], values[..walked.n].concat(), "seed {seed}");
            // The next one is not there, or has no room.
            if let Some(value) = values.get(walked.n) {
                let is_cut = next + 4 + value.len() > cut;
                assert!(is_cut || payload.len() + value.len() > capacity, "seed {seed}");
            }
            assert!(walked.next <= cut && payload.len() <= max.max(3));
            assert_eq!(payload.capacity(), held, "no memory is asked for");
        }
    }

    #[test]
    fn values_of_no_bytes_take_a_step_too() {
        let (mut payload, mut ends) = (Vec::new(), vec![0i64]);
        let entries = Entries::new(&Bytes::new(), &[ValueSpan::default()]);
        let walked = append_plain(&[0; 8], 0, 2, 0, usize::MAX, &mut payload, &mut ends);
        assert_eq!((walked.n, walked.next), (0, 0));
        assert_eq!(entries.append(&[0, 0], usize::MAX, &mut payload, &mut ends), 0);
        payload.reserve_exact(SHORT);
        let walked = append_plain(&[0; 8], 0, 2, 0, usize::MAX, &mut payload, &mut ends);
        assert_eq!((walked, &ends), (Walked { n: 2, next: 8 }, &vec![0, 0, 0]));
        assert_eq!(entries.append(&[0, 0], usize::MAX, &mut payload, &mut ends), 2);
        // After what is full there is no capacity for a step.
        let mut full = vec![7; 100];
        full.shrink_to_fit();
        assert_eq!(entries.append(&[0], usize::MAX, &mut full, &mut ends), 0);
        let walked = append_plain(&[0; 8], 0, 2, 100, usize::MAX, &mut full, &mut ends);
        assert_eq!((walked.n, full.capacity()), (0, 100));
    }

    #[test]
    fn lengths_around_each_step_and_room_to_the_byte() {
        let lens = [0, 1, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 300];
        for len in lens {
            let value = vec![b'v'; len];
            let page = [&(len as u32).to_le_bytes()[..], &value].concat().repeat(3);
            let mut source = b"front".to_vec();
            source.extend(&value);
            let span = ValueSpan { start: 5, len: len as u32 };
            let empty = ValueSpan { start: source.len() as u32, len: 0 };
            // The value is the last of its source, and an empty one stands after it.
            let entries = Entries::new(&Bytes::from(source), &[span, empty]);
            for mean in [0, 1, 16, 21, 22, 42, 43, 85, 86, 1_000] {
                for capacity in [0, 1, len, 3 * len, 3 * len + SLACK - 1, 3 * len + SLACK] {
                    let (mut payload, mut ends) = (Vec::with_capacity(capacity), vec![0i32]);
                    let held = payload.capacity();
                    let n = append_plain(&page, 0, 9, mean, usize::MAX, &mut payload, &mut ends).n;
                    assert!(n == 3 || capacity < 3 * len + SLACK, "{len} {mean} {capacity}: {n}");
                    assert_eq!((payload.len(), payload.capacity()), (n * len, held));
                    assert_eq!(ends.last(), Some(&((n * len) as i32)));
                    let (mut payload, mut ends) = (Vec::with_capacity(capacity), vec![0i64]);
                    let n = entries.append(&[0, 1, 0, 0, 2], usize::MAX, &mut payload, &mut ends);
                    assert!(n == 4 || capacity < 3 * len + SLACK, "{len} {capacity}: {n}");
                    assert!(n <= 4 && payload.iter().all(|byte| *byte == b'v'));
                    assert_eq!((ends.len(), *ends.last().unwrap()), (n + 1, payload.len() as i64));
                }
            }
        }
    }

    #[test]
    #[cfg(target_pointer_width = "64")]
    fn no_end_is_beyond_32_bits() {
        // Zeros that are never read take no memory.
        let mut payload = vec![0u8; i32::MAX as usize + 2 * SLACK];
        let before = i32::MAX as usize - 40;
        payload.truncate(before);
        let mut ends = vec![0i32];
        let page = [&30u32.to_le_bytes()[..], &[7; 30]].concat().repeat(3);
        let walked = append_plain(&page, 0, 3, 30, usize::MAX, &mut payload, &mut ends);
        assert_eq!((walked, &ends[1..]), (Walked { n: 1, next: 34 }, &[i32::MAX - 10][..]));
        let entries = Entries::new(&Bytes::from(vec![8; 11]), &[ValueSpan { start: 0, len: 11 }]);
        assert_eq!(entries.append(&[0], usize::MAX, &mut payload, &mut ends), 0);
        let entries = Entries::new(&Bytes::from(vec![8; 10]), &[ValueSpan { start: 0, len: 10 }]);
        assert_eq!(entries.append(&[0, 0], usize::MAX, &mut payload, &mut ends), 1);
        assert_eq!(ends.last(), Some(&i32::MAX));
        // Nor is anything appended after what is longer already.
        assert_eq!(entries.append(&[0], before, &mut payload, &mut ends), 0);
    }

    #[test]
    fn a_dictionary_of_nothing_has_no_entry() {
        let entries = Entries::new(&Bytes::new(), &[]);
        let (mut payload, mut ends) = (Vec::with_capacity(SLACK), vec![0i32]);
        assert_eq!(entries.append(&[0], usize::MAX, &mut payload, &mut ends), 0);
        assert_eq!(entries.append(&[], usize::MAX, &mut payload, &mut ends), 0);
        assert_eq!((entries.len(), entries.total(&[0, u32::MAX]), ends.len()), (0, 0, 1));
        // A length without its value, a start beyond the page, and no page.
        for (page, start) in [(&[1, 0, 0, 0][..], 0), (&[0; 4], 9), (&[255; 8], 0), (&[], 0)] {
            let walked = append_plain(page, start, 5, 0, usize::MAX, &mut payload, &mut ends);
            assert_eq!((walked.n, payload.len()), (0, 0));
        }
    }

    #[test]
    fn entries_are_what_the_spans_stand_for() {
        let seed = 5;
        let mut rng = fastrand::Rng::with_seed(seed);
        for round in 0..300 {
            let n = rng.usize(1..40);
            let mut entries = values(&mut rng, n, *[3, 12, 30, 60, 100].get(round % 5).unwrap());
            if rng.bool() {
                entries.iter_mut().for_each(|entry| entry.truncate(SHORT));
            }
            let (mut source, mut spans) = (Vec::new(), Vec::new());
            for entry in &entries {
                spans.push(ValueSpan { start: source.len() as u32, len: entry.len() as u32 });
                source.extend(entry);
            }
            let table = Entries::new(&Bytes::from(source), &spans);
            assert_eq!(table.len(), n);
            let mut indices: Vec<u32> =
                (0..rng.usize(0..300)).map(|_| rng.u32(0..n as u32)).collect();
            let wanted: Vec<&[u8]> = indices.iter().map(|i| &entries[*i as usize][..]).collect();
            let total: usize = wanted.iter().map(|value| value.len()).sum();
            assert_eq!(table.total(&indices), total as u64);
            let (mut payload, mut ends) = (b"before".to_vec(), vec![6i32]);
            payload.reserve(if rng.bool() { total + SLACK } else { rng.usize(0..=total) });
            let max = if rng.bool() { usize::MAX } else { rng.usize(6..7 + total) };
            let capacity = max.min(payload.capacity().saturating_sub(SLACK));
            if rng.bool() {
                indices.push(n as u32);
            }
            let done = table.append(&indices, max, &mut payload, &mut ends);
            assert_eq!(payload[6..], wanted[..done].concat(), "seed {seed}");
            assert_eq!(ends.len(), done + 1);
            assert_eq!(ends.last().map(|end| *end as usize), Some(payload.len()));
            if let Some(value) = wanted.get(done) {
                assert!(payload.len() + value.len() > capacity, "seed {seed}");
            }
        }
    }
}
