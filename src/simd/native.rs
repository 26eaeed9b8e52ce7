//! Converts words from little-endian bytes and back, without a zeroed buffer in between.

use std::mem::MaybeUninit;

/// A word that any bytes of its size are a value of.
pub(crate) trait Native: Copy + Default + Send + Sync + 'static + sealed::Sealed {
    /// From little-endian to the order of this machine.
    fn le_to_native(self) -> Self;
}

mod sealed {
    /// Numbers: they have no padding, and every pattern of their bytes is a value.
    pub(crate) trait Sealed {}
    macro_rules! sealed {
        ($($word:ty)*) => { $(impl Sealed for $word {})* };
    }
    sealed!(i32 i64 i128 f32 f64);
}

impl Native for i32 {
    fn le_to_native(self) -> Self {
        Self::from_le(self)
    }
}

impl Native for i64 {
    fn le_to_native(self) -> Self {
        Self::from_le(self)
    }
}

/// A value that kernels may read and write as bits, and move as a whole.
///
/// # Safety
/// The type has no padding, all zero bits are a value of it, and it refers to nothing. If it has 4
/// or 8 bytes, any bits are a value: of ends, kernels make others.
pub(crate) unsafe trait PlainOldData: Copy {
    /// The value whose bits are all zero.
    const ZERO: Self;
}

macro_rules! plain_old_data {
    ($($type:ty = $zero:expr),*) => {
        $(
            // SAFETY: numbers have no padding, and any bits are one; a `bool` has one byte, and is
            // false if its bits are zero.
            unsafe impl PlainOldData for $type {
                const ZERO: Self = $zero;
            }
        )*
    };
}
plain_old_data!(
    bool = false,
    u8 = 0,
    u16 = 0,
    u32 = 0,
    u64 = 0,
    u128 = 0,
    i8 = 0,
    i16 = 0,
    i32 = 0,
    i64 = 0,
    i128 = 0,
    f32 = 0.0,
    f64 = 0.0
);

// SAFETY: nothing lies between the items of an array, and they are what the trait asks for.
unsafe impl<const N: usize> PlainOldData for [u8; N] {
    const ZERO: Self = [0; N];
}

// SAFETY: two words of one size, between which nothing lies; any bits are a span.
unsafe impl PlainOldData for crate::span::ValueSpan {
    const ZERO: Self = Self { start: 0, len: 0 };
}

// SAFETY: as of one span.
#[cfg(test)]
unsafe impl PlainOldData for [u64; 4] {
    const ZERO: Self = [0; 4];
}

/// Appends the little-endian words of `bytes`; a rest that is no whole word is left out.
pub(crate) fn append_le<T: Native>(bytes: &[u8], out: &mut Vec<T>) {
    let n = bytes.len() / size_of::<T>();
    out.reserve(n);
    let start = out.len();
    let target = out.spare_capacity_mut().as_mut_ptr().cast::<u8>();
    // SAFETY: `reserve` reserved memory for `n` words after the length, which is
    // `n * size_of::<T>()` bytes, and `bytes` has at least as many; `out` is borrowed mutably, so
    // that the two do not overlap.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), target, n * size_of::<T>()) };
    // SAFETY: the `n` words after the old length are written, and any bytes are a value of `T`
    // (`Native` is sealed).
    unsafe { out.set_len(start + n) };
    if cfg!(target_endian = "big") {
        for word in out.iter_mut().skip(start) {
            *word = word.le_to_native();
        }
    }
}

/// The bytes of words, where this machine has them in little-endian order anyway.
pub(crate) fn as_bytes_le<T: Word>(values: &[T]) -> Option<&[u8]> {
    if cfg!(target_endian = "big") {
        return None;
    }
    // SAFETY: every byte of a word is initialised (`Word` is sealed, and its types have no
    // padding); bytes have alignment 1, and the life of the slice is that of the words.
    Some(unsafe {
        std::slice::from_raw_parts(values.as_ptr().cast(), std::mem::size_of_val(values))
    })
}

/// Appends words `first` to `first + n` from their `K` byte streams; `K` is the size of the word.
///
/// # Panics
/// If the streams are not whole, or `K` is another size.
pub(crate) fn append_transposed<T: Native, const K: usize>(
    bytes: &[u8],
    len: usize,
    first: usize,
    n: usize,
    out: &mut Vec<T>,
) {
    assert_eq!(K, size_of::<T>(), "as many streams as a word has bytes");
    out.reserve(n);
    let start = out.len();
    let target = out.spare_capacity_mut().as_mut_ptr().cast::<MaybeUninit<[u8; K]>>();
    // SAFETY: `reserve` reserved memory for `n` words, which have the size of `K` bytes; the
    // alignment of bytes is 1, and nothing else refers to them.
    let target = unsafe { std::slice::from_raw_parts_mut(target, n) };
    super::transpose::transpose(bytes, len, first, target);
    // SAFETY: `transpose` has initialised all `n` words, and any bytes are a value of `T` (`Native`
    // is sealed).
    unsafe { out.set_len(start + n) };
    if cfg!(target_endian = "big") {
        for word in out.iter_mut().skip(start) {
            *word = word.le_to_native();
        }
    }
}

/// A word whose bytes are all initialised: `i32`, `i64`, `i128`, `f32` or `f64`.
pub(crate) trait Word: Copy + sealed::Sealed {}

macro_rules! words {
    ($($word:ty)*) => { $(impl Word for $word {})* };
}
words!(i32 i64 i128 f32 f64);

/// Appends the little-endian bytes of `values`.
pub(crate) fn append_bytes_le<T: Word>(values: &[T], out: &mut Vec<u8>) {
    let start = out.len();
    // SAFETY: the slice is `size_of_val` bytes long and lives as long; its type has no padding
    // (`Word` is sealed), and bytes have no alignment.
    let bytes =
        unsafe { std::slice::from_raw_parts(values.as_ptr().cast::<u8>(), size_of_val(values)) };
    out.extend_from_slice(bytes);
    if cfg!(target_endian = "big") {
        out[start..].chunks_exact_mut(size_of::<T>()).for_each(<[u8]>::reverse);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn appends_whole_words() {
        let mut out = vec![9i32];
        append_le(&[1, 0, 0, 0, 0xFE, 0xFF, 0xFF, 0xFF, 7], &mut out);
        assert_eq!(out, [9, 1, -2]);
    }

    #[test]
    fn zero_is_all_zero_bits() {
        assert_eq!(<f64 as PlainOldData>::ZERO.to_bits(), 0);
        assert_eq!(<f32 as PlainOldData>::ZERO.to_bits(), 0);
        assert_eq!(size_of::<crate::span::ValueSpan>(), 2 * size_of::<u32>(), "no padding");
    }

    #[test]
    fn bytes_of_words_are_little_endian() {
        let mut out = vec![9];
        append_bytes_le(&[1i32, -2], &mut out);
        assert_eq!(out, [9, 1, 0, 0, 0, 0xFE, 0xFF, 0xFF, 0xFF]);
        let seed = 77;
        let mut rng = fastrand::Rng::with_seed(seed);
        let words: Vec<i64> = (0..100).map(|_| rng.i64(..)).collect();
        let (mut bytes, mut back) = (Vec::new(), Vec::<i64>::new());
        append_bytes_le(&words, &mut bytes);
        append_le(&bytes, &mut back);
        assert_eq!(back, words, "seed {seed}");
        let mut out = Vec::new();
        append_bytes_le(&[1.5f64, -0.0], &mut out);
        append_bytes_le(&[f32::NAN], &mut out);
        append_bytes_le(&[i128::MIN], &mut out);
        let expected = [
            &1.5f64.to_le_bytes()[..],
            &(-0.0f64).to_le_bytes(),
            &f32::NAN.to_le_bytes(),
            &i128::MIN.to_le_bytes(),
        ];
        assert_eq!(out, expected.concat());
        append_bytes_le::<i32>(&[], &mut out);
        assert_eq!(out.len(), 36);
    }
}
