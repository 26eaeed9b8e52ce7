//! From spans to the bytes and offsets, or the views, of an Arrow array of strings.

use std::collections::TryReserveError;

use crate::encoding::Span;

/// Bytes copied at a time: most strings are shorter, so that one load and one store does.
const STEP: usize = 16;

/// Appends the payload of every span, end to end.
///
/// # Errors
/// If there is no memory for it; nothing is appended then.
///
/// # Panics
/// If a span reaches beyond `source`.
pub fn append_payload(
    source: &[u8],
    spans: &[Span],
    out: &mut Vec<u8>,
) -> Result<(), TryReserveError> {
    let total: usize = spans.iter().map(|span| span.len as usize).sum();
    let furthest = spans.iter().map(|span| u64::from(span.start) + u64::from(span.len)).max();
    assert!(furthest.unwrap_or(0) <= source.len() as u64, "spans lie within their source");
    // The last copy may write up to a step beyond its value.
    grow(out, total + STEP)?;
    let mut to = out.len();
    let target = out.as_mut_ptr();
    // The last start from which a whole step can be read.
    let last_step = source.len().checked_sub(STEP);
    for span in spans {
        let (start, len) = (span.start as usize, span.len as usize);
        if len <= STEP && last_step.is_some_and(|last| start <= last) {
            // SAFETY: `start + STEP <= source.len()`, and `out` has room for `total + STEP` bytes behind its length, of which at most `total`
            // lie before `to + len`; the two do not overlap, as `out` is borrowed mutably.
            unsafe { copy_step(source.as_ptr().add(start), target.add(to)) };
        } else {
            // SAFETY: `start + len <= source.len()` (asserted for all spans), and `to + len` is at most the length plus `total`.
            unsafe {
                std::ptr::copy_nonoverlapping(source.as_ptr().add(start), target.add(to), len)
            };
        }
        to += len;
    }
    // SAFETY: the loop has written every byte from the old length up to `to`, and there is room for them.
    unsafe { out.set_len(to) };
    Ok(())
}

/// Copies 16 bytes.
///
/// # Safety
/// Both pointers must have 16 bytes, and the two stretches must not overlap.
#[inline(always)]
unsafe fn copy_step(from: *const u8, to: *mut u8) {
    // SAFETY: the caller vouches for 16 readable bytes; any bytes are a value of the array.
    let step = unsafe { from.cast::<[u8; STEP]>().read_unaligned() };
    // SAFETY: the caller vouches for 16 writable bytes.
    unsafe { to.cast::<[u8; STEP]>().write_unaligned(step) };
}

/// Makes room for `more` bytes, at least doubling, as one batch calls often.
fn grow(out: &mut Vec<u8>, more: usize) -> Result<(), TryReserveError> {
    if out.capacity() - out.len() < more {
        out.try_reserve(more.max(4096))?;
    }
    Ok(())
}

/// Appends the ends of values of these lengths behind the last offset; `None`, and nothing appended, if one is beyond `i32::MAX`.
///
/// # Panics
/// If there is no offset yet.
#[must_use]
pub fn append_offsets_i32(spans: &[Span], offsets: &mut Vec<i32>) -> Option<()> {
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

/// As [`append_offsets_i32`], with 64 bits.
///
/// # Panics
/// If there is no offset yet.
#[must_use]
pub fn append_offsets_i64(spans: &[Span], offsets: &mut Vec<i64>) -> Option<()> {
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

/// The longest value that lies in the view itself.
const INLINE: u32 = 12;

/// Appends an Arrow view of every span: values of up to 12 bytes lie in the view, others are a prefix, the number of their buffer, and
/// their place in it, which is `base` plus their start.
///
/// ```text
/// | len u32 | up to 12 bytes, then zeros            |
/// | len u32 | first 4 bytes | buffer u32 | offset u32 |
/// ```
///
/// # Panics
/// If a span reaches beyond `source`.
pub fn make_views(source: &[u8], spans: &[Span], buffer: u32, base: u32, out: &mut Vec<u128>) {
    let furthest = spans.iter().map(|span| u64::from(span.start) + u64::from(span.len)).max();
    assert!(furthest.unwrap_or(0) <= source.len() as u64, "spans lie within their source");
    // From here on a whole step can be read; behind it, the few values at the end are padded.
    let whole = source.len().saturating_sub(STEP - 1);
    out.extend(spans.iter().map(|span| {
        let start = span.start as usize;
        let step = if start < whole {
            // SAFETY: `start + STEP <= source.len()`; any bytes are a value of the array.
            unsafe { source.as_ptr().add(start).cast::<[u8; STEP]>().read_unaligned() }
        } else {
            let mut step = [0; STEP];
            let rest = source.get(start..).unwrap_or_default();
            let n = rest.len().min(STEP);
            step[..n].copy_from_slice(&rest[..n]);
            step
        };
        let bytes = u128::from_le_bytes(step);
        if span.len <= INLINE {
            (bytes & KEEP[span.len as usize]) << 32 | u128::from(span.len)
        } else {
            u128::from(span.len)
                | (bytes & 0xFFFF_FFFF) << 32
                | u128::from(buffer) << 64
                | u128::from(base.wrapping_add(span.start)) << 96
        }
    }));
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

/// Appends values that each share a prefix with the one before, and says where they lie in `out`, which must be empty.
///
/// The first shares its prefix with `before`; the rest of each value lies in `source`. `total` is the number of bytes of all values.
///
/// # Panics
/// If a prefix is longer than the value before or a suffix reaches beyond `source`, or `total` is not what they add up to.
pub fn join(
    before: &[u8],
    prefixes: &[i32],
    source: &[u8],
    suffixes: &[Span],
    total: usize,
    out: &mut Vec<u8>,
    spans: &mut Vec<Span>,
) {
    assert!(
        out.is_empty() && u32::try_from(before.len() + total).is_ok(),
        "32 bits count the bytes"
    );
    let furthest = suffixes.iter().map(|span| u64::from(span.start) + u64::from(span.len)).max();
    assert!(furthest.unwrap_or(0) <= source.len() as u64, "suffixes lie within their source");
    // The value before the first lies in front, so that every prefix is copied from `out` itself; it is cut off by the spans.
    out.reserve(before.len() + total + STEP);
    out.extend_from_slice(before);
    let room = before.len() + total;
    let target = out.as_mut_ptr();
    let last_step = source.len().checked_sub(STEP);
    let (mut previous, mut previous_len, mut to) = (0usize, before.len(), before.len());
    for (&prefix, suffix) in prefixes.iter().zip(suffixes) {
        let (prefix, len) = (prefix.cast_unsigned() as usize, suffix.len as usize);
        assert!(prefix <= previous_len && prefix + len <= room - to, "a value that was counted");
        // SAFETY: `previous + prefix <= to`, so that both stretches lie in what is written, or behind it within the room asserted above; they do
        // not overlap, as the first ends where the second begins at the latest. One step more is reserved.
        unsafe { copy_short(target.add(previous), target.add(to), prefix) };
        let start = suffix.start as usize;
        if len <= STEP && last_step.is_some_and(|last| start <= last) {
            // SAFETY: `start + STEP <= source.len()`, and the room ends at least a step behind `to + prefix + len`.
            unsafe { copy_step(source.as_ptr().add(start), target.add(to + prefix)) };
        } else {
            // SAFETY: `start + len <= source.len()` (asserted for all), and `to + prefix + len <= room` (asserted).
            unsafe {
                std::ptr::copy_nonoverlapping(
                    source.as_ptr().add(start),
                    target.add(to + prefix),
                    len,
                )
            };
        }
        #[expect(
            clippy::cast_possible_truncation,
            reason = "32 bits count `total`, and `before` is one value of it or of the block before"
        )]
        spans.push(Span { start: to as u32, len: (prefix + len) as u32 });
        (previous, previous_len) = (to, prefix + len);
        to += prefix + len;
    }
    // SAFETY: every byte up to `to` is written, and `to <= room`, which is reserved.
    unsafe { out.set_len(to) };
}

/// Copies `len` bytes forward within one buffer, in steps that may write up to 15 bytes more.
///
/// # Safety
/// `from + len <= to`; up to `to + len + 15` must be writable, and from `from` to `to` initialised up to `from + len`, allocated up to a step more.
#[inline(always)]
unsafe fn copy_short(from: *const u8, to: *mut u8, len: usize) {
    let apart = to as usize - from as usize;
    if len <= STEP && apart >= STEP {
        // SAFETY: the step is read and written within the allocation, and the two are a step apart. What is read beyond `len` may not be initialised
        // yet, so it goes through `MaybeUninit` and is overwritten or cut off before anyone looks.
        unsafe {
            let step = from.cast::<std::mem::MaybeUninit<[u8; STEP]>>().read_unaligned();
            to.cast::<std::mem::MaybeUninit<[u8; STEP]>>().write_unaligned(step);
        }
    } else {
        // SAFETY: `from + len <= to`, so that the stretches do not overlap.
        unsafe { std::ptr::copy_nonoverlapping(from, to, len) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn random_spans(rng: &mut fastrand::Rng, len: usize, n: usize) -> Vec<Span> {
        (0..n)
            .map(|_| {
                let start = rng.usize(0..=len);
                let most = (len - start).min(if rng.bool() { 12 } else { 60 });
                Span { start: start as u32, len: rng.usize(0..=most) as u32 }
            })
            .collect()
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
        assert_eq!(append_offsets_i32(&[Span { start: 0, len: 2 }], &mut offsets), None);
        assert_eq!(append_offsets_i32(&[Span { start: 0, len: u32::MAX }], &mut offsets), None);
        assert_eq!(offsets.len(), 1);
        append_offsets_i32(&[Span { start: 0, len: 1 }], &mut offsets).unwrap();
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
}
