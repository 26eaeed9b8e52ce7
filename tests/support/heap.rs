//! An allocator that counts the allocated bytes and their peak, and that refuses one allocation
//! when it is told to.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The allocator of the system, counted.
pub struct Counting;

static NOW: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

/// Begins to count anew; the bytes that are allocated now.
pub fn start() -> usize {
    let now = NOW.load(Ordering::Relaxed);
    PEAK.store(now, Ordering::Relaxed);
    now
}

/// The bytes that are allocated now.
pub fn now() -> usize {
    NOW.load(Ordering::Relaxed)
}

/// The most bytes that were allocated at a time since [`start`].
pub fn peak() -> usize {
    PEAK.load(Ordering::Relaxed)
}

/// Which allocations of a thread are numbered, and which of them is refused.
#[derive(Clone, Copy)]
pub struct Refusal {
    /// Bytes of the smallest allocation that is numbered. A block that grows counts with its new
    /// size, and one that shrinks not at all.
    pub min_bytes: usize,
    /// The number of the one that is refused.
    pub refused: usize,
    /// Whether all after it are refused, too.
    pub all_after: bool,
    /// Called with the number and the bytes of each; what it allocates itself is not numbered.
    pub seen: fn(usize, usize),
}

thread_local! {
    static REFUSAL: Cell<Option<Refusal>> = const { Cell::new(None) };
    static NUMBERED: Cell<usize> = const { Cell::new(0) };
}

/// Numbers the allocations of this thread while `work` is done, and says how many there were.
pub fn refusing<T>(refusal: Refusal, work: impl FnOnce() -> T) -> (T, usize) {
    struct Off;
    impl Drop for Off {
        fn drop(&mut self) {
            REFUSAL.set(None);
        }
    }
    NUMBERED.set(0);
    REFUSAL.set(Some(refusal));
    let _off = Off;
    let done = work();
    REFUSAL.set(None);
    (done, NUMBERED.get())
}

fn is_refused(bytes: usize) -> bool {
    // A thread that ends has no such value any more.
    let Some(refusal) = REFUSAL.try_with(Cell::get).ok().flatten() else { return false };
    if bytes < refusal.min_bytes {
        return false;
    }
    REFUSAL.set(None);
    let number = NUMBERED.replace(NUMBERED.get() + 1);
    (refusal.seen)(number, bytes);
    REFUSAL.set(Some(refusal));
    number == refusal.refused || refusal.all_after && number > refusal.refused
}

fn grew(bytes: usize) {
    let now = NOW.fetch_add(bytes, Ordering::Relaxed) + bytes;
    PEAK.fetch_max(now, Ordering::Relaxed);
}

// SAFETY: every call goes to the system's allocator as it is, or gives no memory; the counters do
// not touch the memory.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if is_refused(layout.size()) {
            return std::ptr::null_mut();
        }
        grew(layout.size());
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if is_refused(layout.size()) {
            return std::ptr::null_mut();
        }
        grew(layout.size());
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if size > layout.size() && is_refused(size) {
            return std::ptr::null_mut();
        }
        grew(size);
        NOW.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.realloc(at, layout, size) }
    }
}
