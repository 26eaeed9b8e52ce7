//! [`Ints`]: numbers end to end, gathered, or borrowed from an array.

use std::ops::{Deref, Range};

use arrow_buffer::{ArrowNativeType, ScalarBuffer};
use bytes::Bytes;

use crate::free_lists::FreeLists;

/// Numbers of one width.
#[derive(Debug, Clone)]
pub(super) enum Ints<T: ArrowNativeType> {
    /// Gathered.
    Own(Vec<T>),
    /// Values of an array, which lives as long as they do.
    Shared(ScalarBuffer<T>),
}

impl<T: ArrowNativeType> Ints<T> {
    /// The numbers, to append to. Those of an array are dropped first.
    pub(super) fn own(&mut self) -> &mut Vec<T> {
        if let Self::Shared(_) = self {
            *self = Self::Own(Vec::new());
        }
        match self {
            Self::Own(values) => values,
            Self::Shared(_) => unreachable!("they are gathered ones now"),
        }
    }

    /// Returns the memory to its pool.
    pub(super) fn put_back(self, free_lists: &FreeLists) {
        if let Self::Own(values) = self {
            free_lists.put_back(values);
        }
    }

    /// The bytes of a range, if the numbers are those of an array, in the byte order of this
    /// machine.
    pub(super) fn shared(&self, range: Range<usize>) -> Option<Bytes> {
        let Self::Shared(values) = self else {
            return None;
        };
        let width = size_of::<T>();
        values.get(range.clone())?;
        let of_range = values.inner().slice_with_length(range.start * width, range.len() * width);
        Some(Bytes::from_owner(ScalarBuffer::<u8>::from(of_range)))
    }
}

impl<T: ArrowNativeType> Deref for Ints<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match self {
            Self::Own(values) => values,
            Self::Shared(values) => values,
        }
    }
}

impl<T: ArrowNativeType> PartialEq for Ints<T> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<T: ArrowNativeType> From<Vec<T>> for Ints<T> {
    fn from(values: Vec<T>) -> Self {
        Self::Own(values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_equal_wherever_they_lie() {
        let own = Ints::from(vec![1, 2]);
        assert_eq!(own, Ints::Shared(ScalarBuffer::from(vec![1, 2])));
        for others in [vec![], vec![1, 3], vec![1, 2, 3]] {
            assert_ne!(own, Ints::Shared(ScalarBuffer::from(others)));
        }
    }
}
