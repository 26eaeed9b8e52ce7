//! [`List`] and [`LazyValue`] decode values from the wire on demand.
//!
//! Used by the borrowed structs of `format`, which occur in large numbers: a vector for each list
//! of each column chunk is what makes wide footers slow. Reading one decodes every element, so that
//! all of them are known to be valid, and keeps none; asking for them decodes them again.

use std::fmt;
use std::iter::FusedIterator;
use std::marker::PhantomData;

use super::read::{Read, ThriftReader, elements_fit};
use super::wire;
use crate::error::Result;

/// A list on the wire, which was read once and is valid. Two words.
pub struct List<'a, T> {
    /// From the header of the list to the end of its last element; nothing at all is an empty list.
    bytes: &'a [u8],
    element: PhantomData<fn() -> T>,
}

impl<'a, T: Read<'a>> List<'a, T> {
    /// The list in `bytes`, header and elements, which were all read before.
    pub(super) fn sound(bytes: &'a [u8]) -> Self {
        Self { bytes, element: PhantomData }
    }

    /// Number of elements.
    #[inline]
    pub fn len(self) -> usize {
        self.iter().left
    }

    /// Whether there is no element.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The elements, decoded one by one.
    #[inline]
    pub fn iter(self) -> ListIter<'a, T> {
        let mut reader = ThriftReader::new(self.bytes);
        let left = reader.list().map_or(0, |(_, n)| n);
        ListIter { reader, left, element: PhantomData }
    }
}

impl<'a, T: Read<'a>> Read<'a> for List<'a, T> {
    const TYPE: u8 = wire::LIST;

    #[inline]
    fn fits(ty: u8, payload: &[u8]) -> bool {
        ty == wire::LIST && elements_fit::<T>(payload)
    }

    #[inline]
    fn read(reader: &mut ThriftReader<'a>) -> Result<Self> {
        let before = reader.rest();
        let (_, n) = reader.list()?;
        for _ in 0..n {
            T::read(reader)?;
        }
        Ok(Self::sound(reader.since(before)))
    }
}

/// The elements of a [`List`].
#[derive(Debug)]
pub struct ListIter<'a, T> {
    reader: ThriftReader<'a>,
    left: usize,
    element: PhantomData<fn() -> T>,
}

impl<'a, T: Read<'a>> Iterator for ListIter<'a, T> {
    type Item = T;

    #[inline]
    fn next(&mut self) -> Option<T> {
        self.left = self.left.checked_sub(1)?;
        // It was read before, so it is sound.
        T::read(&mut self.reader).ok()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl<'a, T: Read<'a>> ExactSizeIterator for ListIter<'a, T> {}

impl<'a, T: Read<'a>> FusedIterator for ListIter<'a, T> {}

impl<'a, T: Read<'a>> IntoIterator for List<'a, T> {
    type Item = T;
    type IntoIter = ListIter<'a, T>;

    fn into_iter(self) -> ListIter<'a, T> {
        self.iter()
    }
}

impl<T> Clone for List<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for List<'_, T> {}

impl<T> Default for List<'_, T> {
    /// The empty list.
    fn default() -> Self {
        Self { bytes: &[], element: PhantomData }
    }
}

impl<'a, T: Read<'a> + PartialEq> PartialEq for List<'a, T> {
    /// Equal if the elements are; headers come in several forms.
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl<'a, T: Read<'a> + fmt::Debug> fmt::Debug for List<'a, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// A rare and large value on the wire, which was read once and is valid. Two words.
pub struct LazyValue<'a, T> {
    /// The value, and no more than that; nothing at all is the default.
    bytes: &'a [u8],
    value: PhantomData<fn() -> T>,
}

impl<'a, T: Read<'a>> LazyValue<'a, T> {
    /// The value that `bytes` are, which has been read before.
    pub(super) fn sound(bytes: &'a [u8]) -> Self {
        Self { bytes, value: PhantomData }
    }

    /// Whether there is nothing to decode.
    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The value, decoded.
    pub fn get(self) -> T {
        // It was read before, so it is sound; and nothing at all is the default.
        T::read(&mut ThriftReader::new(self.bytes)).unwrap_or_default()
    }
}

impl<'a, T: Read<'a>> Read<'a> for LazyValue<'a, T> {
    const TYPE: u8 = T::TYPE;

    #[inline]
    fn fits(ty: u8, payload: &[u8]) -> bool {
        T::fits(ty, payload)
    }

    fn read(reader: &mut ThriftReader<'a>) -> Result<Self> {
        let before = reader.rest();
        let value = T::read(reader)?;
        Ok(if value.is_absent() { Self::default() } else { Self::sound(reader.since(before)) })
    }

    #[inline]
    fn is_absent(&self) -> bool {
        self.is_empty()
    }
}

impl<T> Clone for LazyValue<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for LazyValue<'_, T> {}

impl<T> Default for LazyValue<'_, T> {
    /// The default of the value.
    fn default() -> Self {
        Self { bytes: &[], value: PhantomData }
    }
}

impl<'a, T: Read<'a> + PartialEq> PartialEq for LazyValue<'a, T> {
    /// Equal if the values are.
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl<'a, T: Read<'a> + fmt::Debug> fmt::Debug for LazyValue<'a, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(f)
    }
}
