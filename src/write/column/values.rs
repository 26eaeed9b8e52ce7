//! [`LeafValues`]: the values of a leaf, densely and in their physical type.

use std::ops::Range;

use arrow_array::Array;
use bytes::Bytes;

use super::byte_arrays::ByteArrayValues;
use super::ints::Ints;
use crate::error::Result;
use crate::free_lists::FreeLists;
use crate::memory;
use crate::schema::convert::{Scale, Storage, WriteConversion, write_conversion};
use crate::schema::{Leaf, Physical};
use crate::simd::bitmap::Bitmap;

/// Values of one physical type, end to end, without nulls.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum LeafValues<'a> {
    /// BOOLEAN.
    Bits(Bitmap),
    /// INT32, and FLOAT as its bits.
    Words32(Ints<i32>),
    /// INT64, and DOUBLE as its bits.
    Words64(Ints<i64>),
    /// BYTE_ARRAY.
    Bytes(ByteArrayValues<'a>),
    /// FIXED_LEN_BYTE_ARRAY and INT96.
    Fixed { width: usize, bytes: Ints<u8> },
}

impl<'a> LeafValues<'a> {
    /// No values.
    pub(super) fn new(physical: Physical) -> Self {
        match physical {
            Physical::Boolean => Self::Bits(Bitmap::default()),
            Physical::Int32 | Physical::Float => Self::Words32(Vec::new().into()),
            Physical::Int64 | Physical::Double => Self::Words64(Vec::new().into()),
            Physical::ByteArray => Self::Bytes(ByteArrayValues::new()),
            Physical::FixedLenByteArray(width) => Self::Fixed { width, bytes: Vec::new().into() },
            Physical::Int96 => Self::Fixed { width: 12, bytes: Vec::new().into() },
        }
    }

    /// No values yet, with capacity for `n` of them; see [`LeafValues::put_back`].
    ///
    /// # Errors
    /// `Limit(Memory)` if the system has no memory.
    pub(super) fn with_capacity(
        physical: Physical,
        n: usize,
        free_lists: &FreeLists,
    ) -> Result<Self> {
        Ok(match Self::new(physical) {
            Self::Bits(mut bits) => {
                bits.try_reserve(n)?;
                Self::Bits(bits)
            }
            Self::Words32(_) => Self::Words32(free_lists.take(n)?.into()),
            Self::Words64(_) => Self::Words64(free_lists.take(n)?.into()),
            Self::Bytes(byte_arrays) => Self::Bytes(byte_arrays),
            Self::Fixed { width, .. } => {
                Self::Fixed { width, bytes: free_lists.take(n * width)?.into() }
            }
        })
    }

    /// Makes room for `n` values more; byte strings are made room for as they are appended.
    ///
    /// # Errors
    /// `Limit(Memory)` if the system has no memory.
    pub(super) fn room_for(&mut self, n: usize) -> Result<()> {
        match self {
            Self::Bits(bits) => bits.try_reserve(n),
            Self::Words32(Ints::Own(values)) => memory::room(values, n),
            Self::Words64(Ints::Own(values)) => memory::room(values, n),
            Self::Fixed { width, bytes: Ints::Own(bytes) } => memory::room(bytes, n * *width),
            _ => Ok(()),
        }
    }

    /// `n` values from slot `from` on, not copied, if their bytes in the array are those of PLAIN.
    /// None of the slots may be null.
    pub(super) fn shared(array: &dyn Array, from: usize, n: usize, leaf: &Leaf) -> Option<Self> {
        if cfg!(target_endian = "big") {
            return None;
        }
        let conversion = write_conversion(array.data_type(), leaf)?;
        let values = |width| {
            let data = array.to_data();
            let start = (data.offset() + from) * width;
            let buffer = data.buffers().first()?;
            let fits = start + n * width <= buffer.len();
            fits.then(|| buffer.slice_with_length(start, n * width))
        };
        match (conversion, leaf.physical) {
            (
                WriteConversion::Integer { from: Storage::I32, scale: Scale::Keep, .. },
                Physical::Int32,
            )
            | (WriteConversion::Float, Physical::Float) => {
                Some(Self::Words32(Ints::Shared(values(4)?.into())))
            }
            (
                WriteConversion::Integer { from: Storage::I64, scale: Scale::Keep, .. },
                Physical::Int64,
            )
            | (WriteConversion::Float, Physical::Double) => {
                Some(Self::Words64(Ints::Shared(values(8)?.into())))
            }
            (WriteConversion::FixedBytes(of), Physical::FixedLenByteArray(width))
                if of == width =>
            {
                Some(Self::Fixed { width, bytes: Ints::Shared(values(width)?.into()) })
            }
            _ => None,
        }
    }

    /// The bytes of a range, if the values are those of an array, not copied.
    pub(super) fn shared_bytes(&self, range: Range<usize>) -> Option<Bytes> {
        match self {
            Self::Words32(words) => words.shared(range),
            Self::Words64(words) => words.shared(range),
            Self::Fixed { width, bytes } => bytes.shared(range.start * width..range.end * width),
            Self::Bits(_) | Self::Bytes(_) => None,
        }
    }

    /// Takes the bytes of values that were gathered, in the byte order of this machine. No values
    /// are left.
    pub(super) fn take_bytes(&mut self, free_lists: &FreeLists) -> Option<Bytes> {
        Some(match self {
            Self::Words32(words) => free_lists.pooled_bytes(std::mem::take(words.own())),
            Self::Words64(words) => free_lists.pooled_bytes(std::mem::take(words.own())),
            Self::Fixed { bytes, .. } => free_lists.pooled_bytes(std::mem::take(bytes.own())),
            Self::Bits(_) | Self::Bytes(_) => return None,
        })
    }

    /// Returns the memory to its pool.
    pub(super) fn put_back(self, free_lists: &FreeLists) {
        match self {
            Self::Words32(values) => values.put_back(free_lists),
            Self::Words64(values) => values.put_back(free_lists),
            Self::Fixed { bytes, .. } => bytes.put_back(free_lists),
            Self::Bits(_) | Self::Bytes(_) => {}
        }
    }

    /// Whether it has no memory yet that values could be gathered into.
    pub(super) fn needs_memory(&self) -> bool {
        match self {
            Self::Words32(Ints::Own(values)) => values.capacity() == 0,
            Self::Words64(Ints::Own(values)) => values.capacity() == 0,
            Self::Fixed { bytes: Ints::Own(values), .. } => values.capacity() == 0,
            _ => false,
        }
    }

    /// Forgets the values, and keeps the memory.
    pub(super) fn clear(&mut self) {
        match self {
            Self::Bits(bits) => bits.clear(),
            Self::Words32(values) => values.own().clear(),
            Self::Words64(values) => values.own().clear(),
            Self::Bytes(byte_arrays) => byte_arrays.clear(),
            Self::Fixed { bytes, .. } => bytes.own().clear(),
        }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Self::Bits(bits) => bits.len(),
            Self::Words32(values) => values.len(),
            Self::Words64(values) => values.len(),
            Self::Bytes(values) => values.len(),
            Self::Fixed { width: 0, .. } => 0,
            Self::Fixed { width, bytes } => bytes.len() / width,
        }
    }

    /// Bytes that the values of `range` take as PLAIN.
    pub(super) fn plain_len(&self, range: Range<usize>) -> usize {
        match self {
            Self::Bits(_) => range.len().div_ceil(8),
            Self::Words32(_) => range.len() * 4,
            Self::Words64(_) => range.len() * 8,
            Self::Bytes(byte_arrays) => range.len() * size_of::<u32>() + byte_arrays.payload(range),
            Self::Fixed { width, .. } => range.len() * width,
        }
    }

    /// The values at `indices`.
    ///
    /// # Errors
    /// `Limit(Memory)` if the system has no memory.
    pub(super) fn take(&self, indices: &[u32]) -> Result<Self> {
        fn at<T: Copy>(values: &[T], indices: &[u32]) -> Result<Vec<T>> {
            memory::collected(indices.iter().map(|&i| values[i as usize]))
        }
        Ok(match self {
            Self::Bits(bits) => {
                let mut taken = Bitmap::default();
                taken.try_reserve(indices.len())?;
                indices.iter().for_each(|&i| taken.append_run(bits.get(i as usize), 1));
                Self::Bits(taken)
            }
            Self::Words32(values) => Self::Words32(at(values, indices)?.into()),
            Self::Words64(values) => Self::Words64(at(values, indices)?.into()),
            Self::Bytes(ByteArrayValues::Slices(slices)) => {
                Self::Bytes(ByteArrayValues::Slices(at(slices, indices)?))
            }
            Self::Bytes(byte_arrays) => {
                let of =
                    |&i: &u32| byte_arrays.get(i as usize).expect("indices are those of values");
                let taken = memory::collected(indices.iter().map(of))?;
                Self::Bytes(ByteArrayValues::Slices(taken))
            }
            Self::Fixed { width, bytes } => {
                let mut taken = memory::vec_for(indices.len() * width)?;
                for &i in indices {
                    let start = i as usize * width;
                    let value =
                        bytes.get(start..start + width).expect("indices are those of values");
                    taken.extend_from_slice(value);
                }
                Self::Fixed { width: *width, bytes: taken.into() }
            }
        })
    }

    /// Values at equal distances, as many as take no more than `max` bytes as PLAIN, or one.
    ///
    /// # Errors
    /// `Limit(Memory)` if the system has no memory.
    pub(super) fn thinned(mut self, max: usize) -> Result<Self> {
        loop {
            let (n, bytes) = (self.len(), self.plain_len(0..self.len()));
            if n <= 1 || bytes <= max {
                return Ok(self);
            }
            let step = (bytes / max.max(1)).clamp(2, n);
            let indices = (0..n).step_by(step).map_while(|i| u32::try_from(i).ok());
            self = self.take(&memory::collected(indices)?)?;
        }
    }

    /// The values of some ranges, concatenated.
    ///
    /// # Errors
    /// `Limit(Memory)` if the system has no memory.
    pub(super) fn sample(&self, ranges: &[Range<usize>]) -> Result<Self> {
        fn copied_ranges<T: Copy>(
            values: &[T],
            ranges: impl Iterator<Item = Range<usize>> + Clone,
        ) -> Result<Vec<T>> {
            let mut out = memory::vec_for(ranges.clone().map(|range| range.len()).sum())?;
            ranges.for_each(|range| out.extend_from_slice(&values[range]));
            Ok(out)
        }
        let all = || ranges.iter().cloned();
        let n = all().map(|range| range.len()).sum();
        Ok(match self {
            Self::Bits(bits) => {
                let mut taken = Bitmap::default();
                taken.try_reserve(n)?;
                ranges.iter().for_each(|range| taken.append_range(bits, range.clone()));
                Self::Bits(taken)
            }
            Self::Words32(values) => Self::Words32(copied_ranges(values, all())?.into()),
            Self::Words64(values) => Self::Words64(copied_ranges(values, all())?.into()),
            Self::Bytes(byte_arrays) => {
                let mut taken = memory::vec_for(n)?;
                all().for_each(|range| taken.extend(byte_arrays.iter(range)));
                Self::Bytes(ByteArrayValues::Slices(taken))
            }
            Self::Fixed { width, bytes } => {
                let of = |range: Range<usize>| range.start * width..range.end * width;
                let taken = copied_ranges(bytes, all().map(of))?;
                Self::Fixed { width: *width, bytes: taken.into() }
            }
        })
    }

    /// The values of FIXED_LEN_BYTE_ARRAY and BYTE_ARRAY as slices.
    ///
    /// # Errors
    /// `Limit(Memory)` if the system has no memory.
    pub(super) fn slices(&self, range: Range<usize>) -> Result<Vec<&[u8]>> {
        match self {
            Self::Bytes(byte_arrays) => memory::collected(byte_arrays.iter(range)),
            Self::Fixed { width, bytes } => {
                let bytes = bytes
                    .get(range.start * width..range.end * width)
                    .expect("pages and samples lie within the values");
                memory::collected(bytes.chunks_exact((*width).max(1)))
            }
            _ => Ok(Vec::new()),
        }
    }
}
