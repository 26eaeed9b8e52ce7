//! Memory that is used again: what a read, the arrays that it gave, or a writer no longer need.
//!
//! Fresh memory costs a page fault for every 4 KiB, which is more than to fill it, and allocators give large stretches back to the system as soon
//! as they are free. Arrays and encoded chunks lend theirs: it comes back when the last holder lets go, from whichever thread, as long as the work goes on.

use std::any::{Any, TypeId};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use arrow_buffer::{ArrowNativeType, Buffer, ToByteSlice};
use bytes::Bytes;

use crate::trusted;

/// The spare memory of a read, or of a writer. Cheap to clone: clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Spare(Arc<Pool>);

#[derive(Debug)]
struct Pool {
    /// Bytes that are kept.
    most: usize,
    stretches: Mutex<Vec<Stretch>>,
}

/// A vector that nobody holds; what is in it is of no meaning.
#[derive(Debug)]
struct Stretch {
    of: TypeId,
    bytes: usize,
    vector: Box<dyn Any + Send>,
}

/// What takes less memory is not worth keeping.
const STEP: usize = 32 << 10;

/// Memory is taken in multiples of this.
const PAGE: usize = 4 << 10;

/// Bytes that kernels may ask for beyond what they are to write, so as to write whole vectors: a vector that has no room for them is copied.
const SLACK: usize = 64;

/// Bytes of fresh memory from which on it pays to ask for its pages beforehand.
const POPULATE_FROM: usize = 128 << 10;

/// Memory is used again for what needs at least this part of it.
const PART: usize = 4;

impl Spare {
    /// No memory yet; at most `most` bytes will be kept.
    pub(crate) fn new(most: usize) -> Self {
        Self(Arc::new(Pool { most, stretches: Mutex::default() }))
    }

    /// An empty vector with room for `n` values; with less if there is no memory.
    pub(crate) fn take<T: Send + 'static>(&self, n: usize) -> Vec<T> {
        let mut values = self.take_used(n);
        values.clear();
        values
    }

    /// As [`Spare::take`], with whatever the vector held when it came back: room that need not be filled before it can be written over.
    pub(crate) fn take_used<T: Send + 'static>(&self, n: usize) -> Vec<T> {
        let bytes = n.saturating_mul(size_of::<T>()).saturating_add(SLACK);
        let mut out = Vec::new();
        if bytes < STEP {
            let _ = out.try_reserve_exact(n);
            return out;
        }
        self.0.find(bytes).unwrap_or_else(|| {
            // More than all memory stays so.
            let bytes = bytes.checked_next_multiple_of(PAGE).unwrap_or(bytes);
            let _ = out.try_reserve_exact(bytes / size_of::<T>());
            if bytes >= POPULATE_FROM {
                trusted::populate(&mut out);
            }
            out
        })
    }

    /// Gives a vector back, to be taken again.
    pub(crate) fn give<T: Send + 'static>(&self, values: Vec<T>) {
        self.0.give(values);
    }

    /// Makes room for `n` values more, in memory that was used before if there is none yet.
    pub(crate) fn reserve<T: ArrowNativeType>(&self, values: &mut Vec<T>, n: usize) {
        if values.capacity() == 0 {
            *values = self.take(n);
        }
        values.reserve_exact(n);
    }

    /// Makes room for `n` values more, as a vector does by itself, in memory that was used before if there is some.
    #[inline]
    pub(crate) fn grow<T: Send + 'static>(&self, values: &mut Vec<T>, n: usize) {
        if values.capacity() - values.len() < n {
            let bytes = values.len().saturating_add(n).saturating_mul(2 * size_of::<T>());
            let found = if bytes < STEP { None } else { self.0.find::<T>(bytes) };
            match found {
                Some(mut grown) => {
                    grown.clear();
                    grown.append(values);
                    self.give(std::mem::replace(values, grown));
                }
                None => values.reserve(n),
            }
        }
    }

    /// A buffer of the values, whose memory comes back.
    pub(crate) fn lend<T: ArrowNativeType>(&self, values: Vec<T>) -> Buffer {
        if values.capacity() * size_of::<T>() < STEP {
            return Buffer::from_vec(values);
        }
        Buffer::from(self.lend_bytes(values))
    }

    /// As [`Spare::lend`], as bytes.
    pub(crate) fn lend_bytes<T: ArrowNativeType>(&self, values: Vec<T>) -> Bytes {
        Bytes::from_owner(Lent { values, pool: Arc::downgrade(&self.0) })
    }
}

impl Pool {
    /// Nothing panics while it holds the lock.
    fn lock(&self) -> MutexGuard<'_, Vec<Stretch>> {
        self.stretches.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A vector of so many bytes, or a few times as many, with whatever is in it.
    fn find<T: 'static>(&self, bytes: usize) -> Option<Vec<T>> {
        let mut stretches = self.lock();
        let fits = |stretch: &Stretch| {
            stretch.of == TypeId::of::<T>()
                && (bytes..=bytes.saturating_mul(PART)).contains(&stretch.bytes)
        };
        let fitting = stretches.iter().enumerate().filter(|(_, stretch)| fits(stretch));
        let found = fitting.min_by_key(|(_, stretch)| stretch.bytes).map(|(at, _)| at)?;
        // Those that stay keep their order, by age.
        let stretch = stretches.remove(found);
        drop(stretches);
        stretch.vector.downcast::<Vec<T>>().ok().map(|vector| *vector)
    }

    fn give<T: Send + 'static>(&self, values: Vec<T>) {
        let bytes = values.capacity() * size_of::<T>();
        if bytes < STEP || bytes > self.most {
            return;
        }
        let mut stretches = self.lock();
        let mut held: usize = stretches.iter().map(|stretch| stretch.bytes).sum();
        // The oldest may be of a size that nobody wants any more.
        while held + bytes > self.most && !stretches.is_empty() {
            held -= stretches.remove(0).bytes;
        }
        stretches.push(Stretch { of: TypeId::of::<T>(), bytes, vector: Box::new(values) });
    }
}

/// Values in the hands of others.
struct Lent<T: ArrowNativeType> {
    values: Vec<T>,
    /// Gone when the read is over.
    pool: Weak<Pool>,
}

impl<T: ArrowNativeType> AsRef<[u8]> for Lent<T> {
    fn as_ref(&self) -> &[u8] {
        self.values.as_slice().to_byte_slice()
    }
}

impl<T: ArrowNativeType> Drop for Lent<T> {
    fn drop(&mut self) {
        if let Some(pool) = self.pool.upgrade() {
            pool.give(std::mem::take(&mut self.values));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_comes_back_when_the_last_holder_lets_go() {
        let spare = Spare::new(1 << 20);
        let mut values: Vec<i64> = spare.take(10_000);
        values.extend(0..10_000);
        let place = address(&values);
        let buffer = spare.lend(values);
        let part = buffer.slice_with_length(8, 16);
        drop(buffer);
        assert_ne!(address(&spare.take::<i64>(10_000)), place, "a part of it is still held");
        assert_eq!(part.typed_data::<i64>(), [1, 2]);
        drop(part);
        assert_ne!(address(&spare.take::<i32>(20_000)), place, "of another type");
        assert_ne!(address(&spare.take::<i64>(50_000)), place, "too small");
        let again: Vec<i64> = spare.take(9_000);
        assert_eq!((address(&again), again.len()), (place, 0));
        drop(spare.lend([again, vec![7; 9_100]].concat()));
        assert_eq!(spare.take_used::<i64>(9_000), [7; 9_100]);
    }

    #[test]
    fn what_is_too_large_to_be_kept_drives_nothing_out() {
        let spare = Spare::new(1 << 20);
        let kept: Vec<u8> = spare.take(100_000);
        let place = address(&kept);
        spare.give(kept);
        spare.give(Vec::<u8>::with_capacity(2 << 20));
        assert_eq!(address(&spare.take::<u8>(100_000)), place);
        assert_eq!(spare.take::<u64>(usize::MAX).capacity(), 0, "there is no such memory");
    }

    #[expect(clippy::ptr_arg, reason = "a vector, whose memory it is")]
    fn address<T>(values: &Vec<T>) -> usize {
        values.as_ptr() as usize
    }

    #[test]
    fn no_more_is_kept_than_allowed_and_nothing_when_the_read_is_over() {
        let spare = Spare::new(1 << 20);
        let lent: Vec<Buffer> =
            (0..64).map(|_| spare.lend(spare.take::<i32>((1 << 14) - SLACK / 4))).collect();
        drop(lent);
        let held: usize = spare.0.lock().iter().map(|stretch| stretch.bytes).sum();
        assert_eq!(held, 1 << 20);
        let mut last: Vec<u8> = spare.take(40_000);
        last.push(7);
        let last = spare.lend(last);
        let pool = Arc::downgrade(&spare.0);
        drop(spare);
        assert!(pool.upgrade().is_none());
        assert_eq!(last.as_slice(), [7]);
    }
}
