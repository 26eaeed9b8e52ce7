//! Keeps freed buffers of reads, of their arrays and of writers for reuse.
//!
//! Fresh memory costs a page fault for every 4 KiB, which takes longer than to fill it, and
//! allocators return large blocks to the system as soon as they are freed. The buffers of arrays
//! and encoded chunks return to their pool when the last holder drops them, on whichever thread, as
//! long as the pool exists. The reads of a process share a small pool. A read with a low memory
//! limit, or of an encrypted file, has its own pool, which is freed with it.

use std::any::{Any, TypeId};
use std::collections::{BTreeMap, VecDeque};
use std::ops::RangeInclusive;
use std::sync::LazyLock;

use arrow_buffer::{ArrowNativeType, Buffer, ToByteSlice};
use bytes::Bytes;

use crate::error::Result;
use crate::simd::prefault;
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Memory that is reused by reads, one after the other or side by side.
///
/// Reads without a pool of their own share [`BufferPool::global`], which keeps at most 64 MiB. With
/// a larger pool, the arrays of the next read are written where those of the last one were, so that
/// the system need not allocate, zero and map that memory again: up to half the time of a read
/// whose batches are all kept. Memory returns to the pool when the last array over it is dropped,
/// on any thread.
///
/// [`crate::Limits::memory_bytes`] does not count what the pool keeps. Cheap to clone: clones share
/// the memory, which is freed when the last clone and the last read with it are dropped.
///
/// ```
/// # fn main() -> marquetry::Result<()> {
/// use marquetry::{BufferPool, Reader};
///
/// let pool = BufferPool::new(256 << 20);
/// for _ in 0..3 {
///     let reader = Reader::open("testdata/trips.parquet")?.buffer_pool(&pool);
///     let mut rows = 0;
///     for batch in reader.batches()? {
///         rows += batch?.num_rows();
///     }
///     assert_eq!(rows, 1_000);
/// }
/// println!("{} bytes are ready to be used again", pool.held_bytes());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct BufferPool {
    free_lists: FreeLists,
}

/// The pool of [`BufferPool::global`].
static GLOBAL: LazyLock<BufferPool> =
    LazyLock::new(|| BufferPool::new(BufferPool::DEFAULT_MAX_BYTES));

impl BufferPool {
    /// Maximum bytes of unused memory that [`BufferPool::global`] keeps by default: 64 MiB.
    pub const DEFAULT_MAX_BYTES: usize = 64 << 20;

    /// The pool of all reads of this process without a pool of their own, except reads whose memory
    /// limit is below that of [`Limits::default`](crate::Limits::default), and reads of encrypted
    /// files, because decrypted bytes must not stay in memory after their read.
    ///
    /// `BufferPool::global().set_max_bytes(0)` turns it off.
    pub fn global() -> Self {
        GLOBAL.clone()
    }

    /// Sets how many bytes of unused memory the pool keeps at most; the excess is freed, the oldest
    /// first.
    pub fn set_max_bytes(&self, max_bytes: usize) {
        let pool = self.free_lists.shared();
        pool.max.store(max_bytes, Ordering::Relaxed);
        drop(pool.lock().take_oldest_until(max_bytes));
    }

    /// Makes an empty pool that keeps at most `max_bytes` bytes of unused memory, and frees the
    /// oldest first.
    pub fn new(max_bytes: usize) -> Self {
        Self { free_lists: FreeLists::new(max_bytes) }
    }

    /// Bytes of unused memory that the pool keeps.
    pub fn held_bytes(&self) -> usize {
        self.free_lists.shared().lock().bytes
    }

    /// Returns all unused memory to the allocator.
    pub fn clear(&self) {
        let size_classes = std::mem::take(&mut *self.free_lists.shared().lock());
        drop(size_classes);
    }

    pub(crate) fn free_lists(&self) -> &FreeLists {
        &self.free_lists
    }
}

/// Two are equal if they share their memory.
impl PartialEq for BufferPool {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.free_lists.shared(), other.free_lists.shared())
    }
}

/// The unused memory of a read, or of a writer. Cheap to clone: clones share it.
#[derive(Debug, Clone)]
pub(crate) struct FreeLists(Option<Arc<SharedLists>>);

#[derive(Debug)]
struct SharedLists {
    /// Maximum bytes that are kept.
    max: AtomicUsize,
    size_classes: Mutex<SizeClasses>,
}

/// Vectors that are not in use, by type and size. Their contents have no meaning.
#[derive(Debug, Default)]
struct SizeClasses {
    /// Bytes of all vectors.
    bytes: usize,
    /// By type and size, and of these the oldest first. No class is empty.
    by_size: BTreeMap<FreeListKey, VecDeque<FreeBuffer>>,
    /// Where each is, by age.
    by_age: BTreeMap<u64, FreeListKey>,
    /// The age of the next.
    next: u64,
}

/// The type of the values, and the bytes of the vector.
type FreeListKey = (TypeId, usize);

#[derive(Debug)]
struct FreeBuffer {
    age: u64,
    vector: Box<dyn Any + Send>,
}

/// Minimum bytes of a vector that is kept, because allocators keep smaller ones themselves.
const STEP: usize = 32 << 10;

/// Memory is taken in multiples of this.
const PAGE: usize = 4 << 10;

/// Bytes that kernels may ask for beyond what they are to write, so as to write whole vectors: a
/// vector that has no room for them is copied.
const SLACK: usize = 64;

/// Bytes of fresh memory from which on it pays to ask for its pages beforehand.
const POPULATE_FROM: usize = 128 << 10;

/// Memory is used again only if at least this part of it is needed.
const PART: usize = 4;

impl FreeLists {
    /// No memory yet; at most `max` bytes will be kept.
    pub(crate) fn new(max: usize) -> Self {
        Self(Some(Arc::new(SharedLists { max: max.into(), size_classes: Mutex::default() })))
    }

    /// Lists that keep nothing, the default.
    pub(crate) fn none() -> Self {
        Self(None)
    }

    /// The lists of a pool.
    fn shared(&self) -> &SharedLists {
        self.0.as_deref().expect("a pool keeps memory")
    }

    /// An empty vector with room for `n` values.
    ///
    /// # Errors
    /// `Limit(Memory)` if the system has no memory; so for all that takes some.
    pub(crate) fn take<T: Send + 'static>(&self, n: usize) -> Result<Vec<T>> {
        let mut values = self.take_used(n)?;
        values.clear();
        Ok(values)
    }

    /// As [`FreeLists::take`], for what may be held for long: there is hardly more room than for
    /// `n` values.
    pub(crate) fn take_fitting<T: Send + 'static>(&self, n: usize) -> Result<Vec<T>> {
        let mut values = self.take_within(n, |bytes| bytes.saturating_add(bytes / 8))?;
        values.clear();
        Ok(values)
    }

    /// Like [`FreeLists::take`], but the vector keeps stale contents, which can be overwritten
    /// without being filled first.
    pub(crate) fn take_used<T: Send + 'static>(&self, n: usize) -> Result<Vec<T>> {
        self.take_within(n, |bytes| bytes.saturating_mul(PART))
    }

    /// A vector for `n` values with stale contents; of unused memory, at most `max` of the bytes
    /// needed is taken.
    fn take_within<T: Send + 'static>(
        &self,
        n: usize,
        max: impl Fn(usize) -> usize,
    ) -> Result<Vec<T>> {
        const { assert!(size_of::<T>() > 0) };
        let bytes = n.saturating_mul(size_of::<T>()).saturating_add(SLACK);
        let mut out = Vec::new();
        if bytes < STEP {
            // A vector that had no room for the slack would grow, and be kept at a size that is
            // never asked for.
            out.try_reserve_exact(bytes / size_of::<T>())?;
            return Ok(out);
        }
        if let Some(used) = self.find(bytes, max(bytes)) {
            return Ok(used);
        }
        // More than all memory stays so.
        let bytes = bytes.checked_next_multiple_of(PAGE).unwrap_or(bytes);
        out.try_reserve_exact(bytes / size_of::<T>())?;
        if bytes >= POPULATE_FROM {
            prefault(&mut out);
        }
        Ok(out)
    }

    /// Returns a vector to the lists, to be taken again.
    pub(crate) fn put_back<T: Send + 'static>(&self, values: Vec<T>) {
        if let Some(shared) = &self.0 {
            shared.put_back(values);
        }
    }

    fn find<T: 'static>(&self, bytes: usize, max: usize) -> Option<Vec<T>> {
        self.0.as_ref()?.find(bytes, max)
    }

    /// Reserves memory for `n` values more. An empty vector takes its memory from the lists.
    pub(crate) fn reserve<T: ArrowNativeType>(&self, values: &mut Vec<T>, n: usize) -> Result<()> {
        if values.capacity() == 0 {
            *values = self.take(n)?;
        }
        Ok(values.try_reserve_exact(n)?)
    }

    /// Like [`Vec::reserve`], but grows into memory of the lists, if there is some.
    #[inline]
    pub(crate) fn grow<T: Send + 'static>(&self, values: &mut Vec<T>, n: usize) -> Result<()> {
        if values.capacity() - values.len() < n {
            let bytes = values.len().saturating_add(n).saturating_mul(2 * size_of::<T>());
            let found = match bytes {
                ..STEP => None,
                _ => self.find::<T>(bytes, bytes.saturating_mul(PART)),
            };
            match found {
                Some(mut grown) => {
                    grown.clear();
                    grown.append(values);
                    self.put_back(std::mem::replace(values, grown));
                }
                None => values.try_reserve(n)?,
            }
        }
        Ok(())
    }

    /// Copies the values into memory of their exact size, and keeps the old memory.
    pub(crate) fn fitted<T: Copy + Send + 'static>(&self, values: Vec<T>) -> Vec<T> {
        let mut fitted = Vec::new();
        if fitted.try_reserve_exact(values.len()).is_err() {
            return values;
        }
        fitted.extend_from_slice(&values);
        self.put_back(values);
        fitted
    }

    /// A buffer of the values. Its memory comes back when it is dropped.
    pub(crate) fn pooled<T: ArrowNativeType>(&self, values: Vec<T>) -> Buffer {
        if values.capacity() * size_of::<T>() < STEP {
            return Buffer::from_vec(values);
        }
        Buffer::from(self.pooled_bytes(values))
    }

    /// As [`FreeLists::pooled`], as bytes.
    pub(crate) fn pooled_bytes<T: ArrowNativeType>(&self, values: Vec<T>) -> Bytes {
        let is_kept = values.capacity() * size_of::<T>() >= STEP;
        let shared = self.0.as_ref().filter(|_| is_kept);
        Bytes::from_owner(PooledBuffer {
            values,
            pool: shared.map_or_else(Weak::new, Arc::downgrade),
        })
    }
}

/// A guess at a size, rounded up by a few in a hundred, so that guesses that differ by less are
/// served by the memory of each other.
pub(crate) fn round_to_size_class(n: usize) -> usize {
    n.checked_next_multiple_of((n >> 5).next_power_of_two()).unwrap_or(n)
}

impl SharedLists {
    /// Nothing panics while it holds the lock.
    fn lock(&self) -> MutexGuard<'_, SizeClasses> {
        self.size_classes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A vector of `bytes` to `max` bytes, with whatever is in it.
    fn find<T: 'static>(&self, bytes: usize, max: usize) -> Option<Vec<T>> {
        let vector = self.lock().take(TypeId::of::<T>(), bytes..=max)?;
        vector.downcast::<Vec<T>>().ok().map(|vector| *vector)
    }

    fn put_back<T: Send + 'static>(&self, values: Vec<T>) {
        let bytes = values.capacity() * size_of::<T>();
        let max = self.max.load(Ordering::Relaxed);
        if bytes < STEP || bytes > max {
            return;
        }
        let vector = Box::new(values);
        let mut size_classes = self.lock();
        // The oldest may be of a size that is not used any more.
        let gone = size_classes.take_oldest_until(max - bytes);
        size_classes.put((TypeId::of::<T>(), bytes), vector);
        // Memory goes back to the system when others need not wait for it.
        drop(size_classes);
        drop(gone);
    }
}

impl SizeClasses {
    /// The smallest vector that fits, and of these the youngest: it may still be in a cache.
    fn take(&mut self, of: TypeId, bytes: RangeInclusive<usize>) -> Option<Box<dyn Any + Send>> {
        let fitting = (of, *bytes.start())..=(of, *bytes.end());
        let key = *self.by_size.range(fitting).next()?.0;
        let kept = self.take_from(key, VecDeque::pop_back)?;
        self.by_age.remove(&kept.age);
        Some(kept.vector)
    }

    /// Takes the oldest vectors out until those that are left have at most `bytes`.
    fn take_oldest_until(&mut self, bytes: usize) -> Vec<Box<dyn Any + Send>> {
        let mut gone = Vec::new();
        while self.bytes > bytes {
            let Some((_, key)) = self.by_age.pop_first() else { break };
            gone.extend(self.take_from(key, VecDeque::pop_front).map(|oldest| oldest.vector));
        }
        gone
    }

    fn take_from(
        &mut self,
        key: FreeListKey,
        pop: fn(&mut VecDeque<FreeBuffer>) -> Option<FreeBuffer>,
    ) -> Option<FreeBuffer> {
        let all = self.by_size.get_mut(&key)?;
        let kept = pop(all);
        if all.is_empty() {
            self.by_size.remove(&key);
        }
        self.bytes -= key.1;
        kept
    }

    fn put(&mut self, key: FreeListKey, vector: Box<dyn Any + Send>) {
        let age = self.next;
        self.next += 1;
        self.by_age.insert(age, key);
        self.by_size.entry(key).or_default().push_back(FreeBuffer { age, vector });
        self.bytes += key.1;
    }
}

/// A buffer that returns to the pool when it is dropped.
struct PooledBuffer<T: ArrowNativeType> {
    values: Vec<T>,
    /// Gone when the read is over, or when the pool of the caller is dropped.
    pool: Weak<SharedLists>,
}

impl<T: ArrowNativeType> AsRef<[u8]> for PooledBuffer<T> {
    fn as_ref(&self) -> &[u8] {
        self.values.as_slice().to_byte_slice()
    }
}

impl<T: ArrowNativeType> Drop for PooledBuffer<T> {
    fn drop(&mut self) {
        if let Some(pool) = self.pool.upgrade() {
            pool.put_back(std::mem::take(&mut self.values));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_comes_back_when_the_last_holder_lets_go() {
        let free_lists = FreeLists::new(1 << 20);
        let mut values: Vec<i64> = free_lists.take(10_000).unwrap();
        values.extend(0..10_000);
        let place = address(&values);
        let buffer = free_lists.pooled(values);
        let part = buffer.slice_with_length(8, 16);
        drop(buffer);
        assert_ne!(
            address(&free_lists.take::<i64>(10_000).unwrap()),
            place,
            "a part of it is still held"
        );
        assert_eq!(part.typed_data::<i64>(), [1, 2]);
        drop(part);
        assert_ne!(address(&free_lists.take::<i32>(20_000).unwrap()), place, "of another type");
        assert_ne!(address(&free_lists.take::<i64>(50_000).unwrap()), place, "too small");
        let again: Vec<i64> = free_lists.take(9_000).unwrap();
        assert_eq!((address(&again), again.len()), (place, 0));
        drop(free_lists.pooled([again, vec![7; 9_100]].concat()));
        assert_eq!(free_lists.take_used::<i64>(9_000).unwrap(), [7; 9_100]);
    }

    #[test]
    fn what_is_held_for_long_does_not_hold_much_more_than_it_needs() {
        let free_lists = FreeLists::new(1 << 20);
        let values: Vec<u8> = Vec::with_capacity(100_000);
        let place = address(&values);
        free_lists.put_back(values);
        assert_ne!(address(&free_lists.take_fitting::<u8>(80_000).unwrap()), place);
        assert_eq!(address(&free_lists.take_fitting::<u8>(95_000).unwrap()), place);
    }

    #[test]
    fn a_pool_that_is_told_a_smaller_number_frees_the_oldest() {
        let pool = BufferPool::new(1 << 20);
        let vectors: Vec<Vec<u8>> = (0..4).map(|_| Vec::with_capacity(100_000)).collect();
        let youngest = address(&vectors[3]);
        vectors.into_iter().for_each(|vector| pool.free_lists().put_back(vector));
        assert_eq!(pool.held_bytes(), 400_000);
        pool.set_max_bytes(150_000);
        assert_eq!(pool.held_bytes(), 100_000);
        assert_eq!(address(&pool.free_lists().take::<u8>(99_000).unwrap()), youngest);
        pool.set_max_bytes(0);
        pool.free_lists().put_back(Vec::<u8>::with_capacity(100_000));
        assert_eq!(pool.held_bytes(), 0);
    }

    #[test]
    fn what_is_too_large_to_be_kept_drives_nothing_out() {
        let free_lists = FreeLists::new(1 << 20);
        let kept: Vec<u8> = free_lists.take(100_000).unwrap();
        let place = address(&kept);
        free_lists.put_back(kept);
        free_lists.put_back(Vec::<u8>::with_capacity(2 << 20));
        assert_eq!(address(&free_lists.take::<u8>(100_000).unwrap()), place);
        assert!(free_lists.take::<u64>(usize::MAX).is_err(), "there is no such memory");
    }

    #[test]
    fn the_free_lists_agree_whatever_comes_and_goes() {
        let seed = 11;
        let mut rng = fastrand::Rng::with_seed(seed);
        let max = 4 << 20;
        let pool = BufferPool::new(max);
        let free_lists = pool.free_lists();
        let mut held: Vec<Buffer> = Vec::new();
        for step in 0..2_000 {
            if rng.bool() && !held.is_empty() {
                held.swap_remove(rng.usize(..held.len()));
            } else if rng.bool() {
                held.push(free_lists.pooled(free_lists.take::<i64>(rng.usize(..100_000)).unwrap()));
            } else {
                held.push(free_lists.pooled(free_lists.take::<u8>(rng.usize(..400_000)).unwrap()));
            }
            let size_classes = free_lists.shared().lock();
            let counted: usize =
                size_classes.by_size.iter().map(|((_, bytes), all)| bytes * all.len()).sum();
            let ages: usize = size_classes.by_size.values().map(VecDeque::len).sum();
            let place = format!("seed {seed}, step {step}");
            assert_eq!(size_classes.bytes, counted, "{place}");
            assert_eq!(size_classes.by_age.len(), ages, "{place}");
            assert!(size_classes.bytes <= max, "{place}");
            assert!(size_classes.by_size.values().all(|all| !all.is_empty()), "{place}");
        }
        drop(held);
        assert!(pool.held_bytes() > 0);
        pool.clear();
        assert_eq!(pool.held_bytes(), 0);
    }

    #[test]
    fn of_vectors_of_one_size_the_youngest_is_taken_and_the_oldest_let_go() {
        let free_lists = FreeLists::new(3 * 40_960);
        let vectors: Vec<Vec<u8>> = (0..4).map(|_| Vec::with_capacity(40_960)).collect();
        let places: Vec<usize> = vectors.iter().map(address).collect();
        vectors.into_iter().for_each(|vector| free_lists.put_back(vector));
        let taken: Vec<Vec<u8>> = (0..3).map(|_| free_lists.take(40_000).unwrap()).collect();
        let found: Vec<usize> = taken.iter().map(address).collect();
        assert_eq!(found, [places[3], places[2], places[1]]);
    }

    #[expect(clippy::ptr_arg, reason = "a vector, whose memory it is")]
    fn address<T>(values: &Vec<T>) -> usize {
        values.as_ptr() as usize
    }

    #[test]
    fn no_more_is_kept_than_allowed_and_nothing_when_the_read_is_over() {
        let free_lists = FreeLists::new(1 << 20);
        let lent: Vec<Buffer> = (0..64)
            .map(|_| free_lists.pooled(free_lists.take::<i32>((1 << 14) - SLACK / 4).unwrap()))
            .collect();
        drop(lent);
        assert_eq!(free_lists.shared().lock().bytes, 1 << 20);
        let mut last: Vec<u8> = free_lists.take(40_000).unwrap();
        last.push(7);
        let last = free_lists.pooled(last);
        let pool = free_lists.0.as_ref().map(Arc::downgrade).unwrap();
        drop(free_lists);
        assert!(pool.upgrade().is_none());
        assert_eq!(last.as_slice(), [7]);
    }
}
