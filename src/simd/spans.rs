//! Copies spans to the bytes and offsets, or the views, of an Arrow array of strings.

use std::collections::TryReserveError;

use super::lengths;
use super::prefetch;
use super::prefix_sum::prefix_sum_i32;
use crate::span::ValueSpan;

/// Bytes copied at a time: most strings are shorter, so that one load and one store does.
const STEP: usize = 16;

/// Appends the payload of every span, end to end.
///
/// # Errors
/// If there is no memory for it; nothing is appended then.
///
/// # Panics
/// If a span reaches beyond `source`.
pub(crate) fn append_payload(
    source: &[u8],
    spans: &[ValueSpan],
    out: &mut Vec<u8>,
) -> Result<(), TryReserveError> {
    // Spans may overlap: they can be more than all memory.
    let total = total_len(spans.iter().map(|span| u64::from(span.len)));
    let furthest = spans.iter().map(|span| u64::from(span.start) + u64::from(span.len)).max();
    assert!(furthest.unwrap_or(0) <= source.len() as u64, "spans lie within their source");
    // The last copy may write up to a step beyond its value.
    grow(out, total.saturating_add(STEP))?;
    let mut to = out.len();
    let target = out.as_mut_ptr();
    // The last start from which a whole step can be read.
    let last_step = source.len().checked_sub(STEP);
    for span in spans {
        let (start, len) = (span.start as usize, span.len as usize);
        if len <= STEP && last_step.is_some_and(|last| start <= last) {
            // SAFETY: `start + STEP <= source.len()`, and `out` has capacity for `total + STEP`
            // bytes after its length, at most `total` of them before `to + len`; the two do not
            // overlap, as `out` is borrowed mutably.
            unsafe { copy_step(source.as_ptr().add(start), target.add(to)) };
        } else {
            // SAFETY: `start + len <= source.len()` (asserted for all spans), and `to + len` is at
            // most the length plus `total`.
            unsafe {
                std::ptr::copy_nonoverlapping(source.as_ptr().add(start), target.add(to), len)
            };
        }
        to += len;
    }
    // SAFETY: the loop has written every byte from the old length up to `to`, and there is room for
    // them.
    unsafe { out.set_len(to) };
    Ok(())
}

/// The sum of lengths, or more than all memory if it overflows.
fn total_len(lengths: impl Iterator<Item = u64>) -> usize {
    let total = lengths.fold(0u64, u64::saturating_add);
    // No memory is given for so much.
    usize::try_from(total).unwrap_or(usize::MAX)
}

/// Copies 16 bytes.
///
/// # Safety
/// Both pointers must have 16 bytes, and the two stretches must not overlap.
#[inline(always)]
unsafe fn copy_step(from: *const u8, to: *mut u8) {
    // SAFETY: the caller guarantees 16 readable bytes; any bytes are a value of the array.
    let step = unsafe { from.cast::<[u8; STEP]>().read_unaligned() };
    // SAFETY: the caller guarantees 16 writable bytes.
    unsafe { to.cast::<[u8; STEP]>().write_unaligned(step) };
}

/// Reserves memory for `more` bytes, at least doubling, as one batch calls often.
fn grow(out: &mut Vec<u8>, more: usize) -> Result<(), TryReserveError> {
    if out.capacity() - out.len() < more {
        out.try_reserve(more.max(4096))?;
    }
    Ok(())
}

/// Appends the ends of values of these lengths after the last offset; `None`, and nothing
/// appended, if one is beyond `i32::MAX`.
///
/// # Panics
/// If there is no offset yet.
#[must_use]
pub(crate) fn append_offsets_i32(spans: &[ValueSpan], offsets: &mut Vec<i32>) -> Option<()> {
    let last = *offsets.last().expect("an array of offsets begins with one");
    let total: u64 = spans.iter().map(|span| u64::from(span.len)).sum();
    i32::try_from(total).ok()?.checked_add(last)?;
    let mut end = last;
    offsets.extend(spans.iter().map(|span| {
        // No end is beyond the last one, which fits.
        end = end.wrapping_add(span.len.cast_signed());
        end
    }));
    Some(())
}

/// Like [`append_offsets_i32`], with 64 bits.
///
/// # Panics
/// If there is no offset yet.
#[must_use]
pub(crate) fn append_offsets_i64(spans: &[ValueSpan], offsets: &mut Vec<i64>) -> Option<()> {
    let last = *offsets.last().expect("an array of offsets begins with one");
    let total: u64 = spans.iter().map(|span| u64::from(span.len)).sum();
    i64::try_from(total).ok()?.checked_add(last)?;
    let mut end = last;
    offsets.extend(spans.iter().map(|span| {
        end = end.wrapping_add(i64::from(span.len));
        end
    }));
    Some(())
}

/// Appends the ends of values of these lengths after the last offset; `None`, and nothing
/// appended, if one is beyond `i32::MAX`.
///
/// # Panics
/// If there is no offset yet.
#[must_use]
pub(crate) fn append_ends_i32(lengths: &[i32], offsets: &mut Vec<i32>) -> Option<()> {
    let last = *offsets.last().expect("an array of offsets begins with one");
    let total = lengths::total(lengths);
    i32::try_from(total).ok()?.checked_add(last)?;
    prefix_sum_i32(unsigned(lengths), 0, last, offsets);
    Some(())
}

/// Like [`append_ends_i32`], with 64 bits.
///
/// # Panics
/// If there is no offset yet.
#[must_use]
pub(crate) fn append_ends_i64(lengths: &[i32], offsets: &mut Vec<i64>) -> Option<()> {
    let last = *offsets.last().expect("an array of offsets begins with one");
    let total = lengths::total(lengths);
    i64::try_from(total).ok()?.checked_add(last)?;
    let mut end = last;
    offsets.extend(lengths.iter().map(|len| {
        end = end.wrapping_add(i64::from(len.cast_unsigned()));
        end
    }));
    Some(())
}

/// The same bits, without their sign.
fn unsigned(values: &[i32]) -> &[u32] {
    // SAFETY: the two types have one size and alignment, and every pattern of bits is a value of
    // both.
    unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), values.len()) }
}

/// The longest value that lies in the view itself.
const INLINE: u32 = 12;

/// The Arrow view of a value: up to 12 bytes lie in the view itself; of a longer one a prefix, the
/// number of its buffer, and its place there.
///
/// ```text
/// | len u32 | up to 12 bytes, then zeros               |
/// | len u32 | first 4 bytes | buffer u32 | offset u32 |
/// ```
///
/// `step` begins with the value, as far as 16 bytes go.
#[inline(always)]
fn view(step: [u8; STEP], len: u32, buffer: u32, offset: u32) -> u128 {
    let bytes = u128::from_le_bytes(step);
    if len <= INLINE {
        (bytes & KEEP[len as usize]) << 32 | u128::from(len)
    } else {
        u128::from(len)
            | (bytes & 0xFFFF_FFFF) << 32
            | u128::from(buffer) << 64
            | u128::from(offset) << 96
    }
}

/// The bits of the first 0 to 12 bytes.
const KEEP: [u128; INLINE as usize + 1] = {
    let mut masks = [0; INLINE as usize + 1];
    let mut len = 1;
    while len < masks.len() {
        masks[len] = u128::MAX >> (128 - 8 * len);
        len += 1;
    }
    masks
};

/// 16 bytes from `start`, padded with zeros after the end.
#[inline(always)]
fn step_at(source: &[u8], start: usize) -> [u8; STEP] {
    if let Some(step) = source.get(start..).and_then(|rest| rest.first_chunk::<STEP>()) {
        return *step;
    }
    let mut step = [0; STEP];
    let rest = source.get(start..).expect("spans begin within their source");
    step[..rest.len()].copy_from_slice(rest);
    step
}

/// Appends the view of every span; the offset of a long one is `base` plus its start.
///
/// # Panics
/// If a span reaches beyond `source`.
pub(crate) fn make_views(
    source: &[u8],
    spans: &[ValueSpan],
    buffer: u32,
    base: u32,
    out: &mut Vec<u128>,
) {
    let furthest = spans.iter().map(|span| u64::from(span.start) + u64::from(span.len)).max();
    assert!(furthest.unwrap_or(0) <= source.len() as u64, "spans lie within their source");
    out.extend(spans.iter().map(|span| {
        let step = step_at(source, span.start as usize);
        view(step, span.len, buffer, base.wrapping_add(span.start))
    }));
}

/// Appends the views of values that lie end to end from `start`; the offset of a long one is `base`
/// plus its start.
///
/// # Panics
/// If a length is negative, or the values reach beyond `source`.
pub(crate) fn make_views_end_to_end(
    source: &[u8],
    start: u32,
    lengths: &[i32],
    buffer: u32,
    base: u32,
    out: &mut Vec<u128>,
) {
    let total = lengths::total(lengths);
    assert!(u64::from(start) + total <= source.len() as u64, "values lie within their source");
    let mut next = start;
    out.extend(lengths.iter().map(|len| {
        let (at, len) = (next, len.cast_unsigned());
        next = next.wrapping_add(len);
        view(step_at(source, at as usize), len, buffer, base.wrapping_add(at))
    }));
}

/// The measurements of a walk over PLAIN byte strings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Walk {
    /// Where the next value begins: its length.
    pub next: usize,
    /// Bytes of the longest value.
    pub longest: u32,
    /// Bytes of all values that do not lie in their views.
    pub outside: u64,
}

/// How far before it is needed a line of the cache is asked for.
const AHEAD: usize = 512;

/// Appends the views of the next `n` PLAIN byte strings from `start`, each after the four bytes of
/// its length; `None`, and nothing appended, if one reaches beyond the page.
///
/// Each length locates the next one: the walk is one chain of loads, and making the views beside it
/// costs nothing more.
pub(crate) fn plain_views(
    page: &[u8],
    start: usize,
    n: usize,
    buffer: u32,
    out: &mut Vec<u128>,
) -> Option<Walk> {
    const LEN: usize = size_of::<u32>();
    let before = out.len();
    out.reserve(n);
    let mut walk = Walk { next: start, longest: 0, outside: 0 };
    for view_of in &mut out.spare_capacity_mut()[..n] {
        let rest = page.get(walk.next..)?;
        let (len, step) = match rest.first_chunk::<{ LEN + STEP }>() {
            Some(chunk) => {
                let [a, b, c, d, step @ ..] = *chunk;
                (u32::from_le_bytes([a, b, c, d]), step)
            }
            None => (u32::from_le_bytes(*rest.first_chunk()?), step_at(rest, LEN)),
        };
        if len as usize > rest.len() - LEN {
            return None;
        }
        let at = walk.next + LEN;
        prefetch(page, at + AHEAD);
        #[expect(clippy::cast_possible_truncation, reason = "a page of at most 32 bits")]
        view_of.write(view(step, len, buffer, at as u32));
        walk.longest = walk.longest.max(len);
        walk.outside += if len > INLINE { u64::from(len) } else { 0 };
        walk.next = at + len as usize;
    }
    // SAFETY: the loop has written each of the `n` slots after the old length, which were
    // reserved.
    unsafe { out.set_len(before + n) };
    Some(walk)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn random_spans(rng: &mut fastrand::Rng, len: usize, n: usize) -> Vec<ValueSpan> {
        (0..n)
            .map(|_| {
                let start = rng.usize(0..=len);
                let max = (len - start).min(if rng.bool() { 12 } else { 60 });
                ValueSpan { start: start as u32, len: rng.usize(0..=max) as u32 }
            })
            .collect()
    }

    #[test]
    fn a_sum_that_overflows_is_more_than_all_memory() {
        assert_eq!(total_len([3, 4].into_iter()), 7);
        let total = total_len([u64::MAX, 20].into_iter());
        assert_eq!(total, usize::MAX, "not 19, for which there would be room");
        assert!(grow(&mut Vec::new(), total).is_err());
    }

    #[test]
    fn payload_and_offsets_are_those_of_the_naive_twin() {
        let seed = 8;
        let mut rng = fastrand::Rng::with_seed(seed);
        for _ in 0..300 {
            let len = rng.usize(0..200);
            let source: Vec<u8> = (0..len).map(|_| rng.u8(..)).collect();
            let n = rng.usize(0..40);
            let spans = random_spans(&mut rng, len, n);
            let mut out = vec![1, 2, 3];
            append_payload(&source, &spans, &mut out).unwrap();
            let expected: Vec<u8> = spans.iter().flat_map(|s| s.slice(&source).to_vec()).collect();
            assert_eq!(out[..3], [1, 2, 3]);
            assert_eq!(out[3..], expected, "seed {seed}");
            let (mut narrow, mut wide) = (vec![5], vec![5]);
            append_offsets_i32(&spans, &mut narrow).unwrap();
            append_offsets_i64(&spans, &mut wide).unwrap();
            assert_eq!(narrow.last().copied().map(i64::from), wide.last().copied());
            assert_eq!(wide.last(), Some(&(5 + expected.len() as i64)));
            assert_eq!(narrow.len(), n + 1);
        }
    }

    #[test]
    fn offsets_that_overflow_append_nothing() {
        let mut offsets = vec![i32::MAX - 1];
        assert_eq!(append_offsets_i32(&[ValueSpan { start: 0, len: 2 }], &mut offsets), None);
        assert_eq!(
            append_offsets_i32(&[ValueSpan { start: 0, len: u32::MAX }], &mut offsets),
            None
        );
        assert_eq!(offsets.len(), 1);
        append_offsets_i32(&[ValueSpan { start: 0, len: 1 }], &mut offsets).unwrap();
        assert_eq!(offsets, [i32::MAX - 1, i32::MAX]);
    }

    #[test]
    fn views_say_what_arrow_makes_of_the_values() {
        use arrow_array::BinaryViewArray;
        use arrow_buffer::Buffer;
        let seed = 9;
        let mut rng = fastrand::Rng::with_seed(seed);
        for _ in 0..100 {
            let source: Vec<u8> = (0..rng.usize(0..120)).map(|_| rng.u8(..)).collect();
            let n = rng.usize(0..40);
            let spans = random_spans(&mut rng, source.len(), n);
            let mut views = Vec::new();
            make_views(&source, &spans, 0, 0, &mut views);
            let array = BinaryViewArray::try_new(
                views.into(),
                vec![Buffer::from_vec(source.clone())],
                None,
            )
            .unwrap();
            for (i, span) in spans.iter().enumerate() {
                assert_eq!(array.value(i), span.slice(&source), "seed {seed}");
            }
        }
    }

    #[test]
    fn ends_and_views_of_lengths_are_those_of_spans() {
        let seed = 10;
        let mut rng = fastrand::Rng::with_seed(seed);
        for _ in 0..200 {
            let lengths: Vec<i32> = (0..rng.usize(0..50)).map(|_| rng.i32(0..30)).collect();
            let total: i32 = lengths.iter().sum();
            let start = rng.usize(0..9);
            let source: Vec<u8> =
                (0..start + total as usize + rng.usize(0..20)).map(|_| rng.u8(..)).collect();
            let mut next = start as u32;
            let spans: Vec<ValueSpan> = lengths
                .iter()
                .map(|len| {
                    let span = ValueSpan { start: next, len: *len as u32 };
                    next += *len as u32;
                    span
                })
                .collect();
            let (mut a, mut b) = (vec![3], vec![3]);
            append_offsets_i32(&spans, &mut a).unwrap();
            append_ends_i32(&lengths, &mut b).unwrap();
            assert_eq!(a, b, "seed {seed}");
            let (mut a, mut b) = (vec![3], vec![3]);
            append_offsets_i64(&spans, &mut a).unwrap();
            append_ends_i64(&lengths, &mut b).unwrap();
            assert_eq!(a, b, "seed {seed}");
            let (mut a, mut b) = (Vec::new(), Vec::new());
            make_views(&source, &spans, 7, 100, &mut a);
            make_views_end_to_end(&source, start as u32, &lengths, 7, 100, &mut b);
            assert_eq!(a, b, "seed {seed}");
        }
        assert_eq!(append_ends_i32(&[1], &mut vec![i32::MAX]), None);
    }

    #[test]
    fn views_of_a_plain_page_are_those_of_its_spans() {
        let seed = 11;
        let mut rng = fastrand::Rng::with_seed(seed);
        for _ in 0..200 {
            let n = rng.usize(0..30);
            let (mut page, mut spans) = (vec![9; 5], Vec::new());
            for _ in 0..n {
                let len = rng.usize(0..30);
                page.extend((len as u32).to_le_bytes());
                spans.push(ValueSpan { start: page.len() as u32, len: len as u32 });
                page.extend((0..len).map(|_| rng.u8(..)));
            }
            let (mut expected, mut views) = (vec![1], vec![1]);
            make_views(&page, &spans, 3, 0, &mut expected);
            let walk = plain_views(&page, 5, n, 3, &mut views).unwrap();
            assert_eq!(views, expected, "seed {seed}");
            assert_eq!(walk.next, page.len());
            assert_eq!(walk.longest, spans.iter().map(|span| span.len).max().unwrap_or(0));
            let outside = spans.iter().filter(|span| span.len > 12).map(|span| u64::from(span.len));
            assert_eq!(walk.outside, outside.sum::<u64>());
            if n > 0 {
                let cut = rng.usize(5..page.len());
                assert_eq!(plain_views(&page[..cut], 5, n, 3, &mut views), None);
                assert_eq!(views.len(), n + 1);
            }
        }
    }
}
