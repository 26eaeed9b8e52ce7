//! Asks the cache, and the operating system, for memory ahead of its use.

/// Asks for the line of the cache that item `at` of a slice lies in, if there is one.
#[inline(always)]
pub(crate) fn prefetch<T>(items: &[T], at: usize) {
    #[cfg(target_arch = "x86_64")]
    if let Some(item) = items.get(at) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: every x86-64 has the instruction, and the address is that of an item that is
        // there.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(item).cast()) };
    }
    #[cfg(target_arch = "aarch64")]
    if let Some(item) = items.get(at) {
        // SAFETY: the instruction reads nothing and writes nothing, and the address is that of an
        // item that is there.
        unsafe {
            std::arch::asm!(
                "prfm pldl1keep, [{}]",
                in(reg) std::ptr::from_ref(item),
                options(nostack, preserves_flags, readonly)
            );
        }
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = (items, at);
}

/// Asks the system for the pages of the unused capacity of `values` at once, which costs less than
/// a fault for each when it is written.
///
/// Does nothing where the system knows no such call; the memory is the same to the program either
/// way.
pub(crate) fn prefault<T>(values: &mut Vec<T>) {
    populate::spare_capacity(values.spare_capacity_mut());
}

#[cfg(target_os = "linux")]
mod populate {
    use std::mem::MaybeUninit;

    use rustix::mm::{Advice, madvise};

    /// The smallest page of the system; where pages are larger, the call may be refused.
    const PAGE: usize = 4096;

    pub(super) fn spare_capacity<T>(spare: &mut [MaybeUninit<T>]) {
        let bytes = size_of_val(spare);
        let start = spare.as_mut_ptr().cast::<u8>();
        // Whole pages of the vector's own.
        let before = start.align_offset(PAGE);
        let Some(len) = bytes.checked_sub(before).map(|len| len / PAGE * PAGE) else { return };
        // SAFETY: `before` is at most `bytes`, so that the place is within the allocation or right
        // after it.
        let first = unsafe { start.add(before) };
        // SAFETY: the range is within memory that is borrowed for writing. The call makes pages
        // present and changes no byte of them; its result is ignored, because pages that are not
        // present come when they are written.
        let _ = unsafe { madvise(first.cast(), len, Advice::LinuxPopulateWrite) };
    }
}

#[cfg(not(target_os = "linux"))]
mod populate {
    use std::mem::MaybeUninit;

    pub(super) fn spare_capacity<T>(_spare: &mut [MaybeUninit<T>]) {}
}
