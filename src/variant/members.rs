//! Iterates over the values inside an object or an array.

use super::elements::{Elements, VariantList, VariantObject, no_name};
use super::malformed::malformed;
use super::value::Variant;
use crate::error::Result;

/// A field of an object, as it is stored.
#[derive(Debug, Clone, Copy)]
pub(super) struct ObjectField<'a> {
    /// The number of its name in the metadata.
    pub(super) id: u32,
    pub(super) name: &'a str,
    pub(super) bytes: &'a [u8],
}

impl<'a> Elements<'a> {
    fn get(&self, i: usize) -> Result<(Variant<'a>, &'a [u8])> {
        let bytes = self.bytes(i)?;
        let (value, len) = Variant::read(self.metadata, bytes, self.depth + 1)?;
        Ok((value, bytes.get(..len).unwrap_or_default()))
    }
}

/// Reads values in order, and checks that they do not share bytes: otherwise a small value could
/// expand to any size.
#[derive(Debug)]
struct Distinct<'a> {
    elements: Elements<'a>,
    /// Bytes that no value has taken yet.
    left: usize,
}

impl<'a> Distinct<'a> {
    fn new(elements: Elements<'a>) -> Self {
        Self { elements, left: elements.values_len() }
    }

    fn get(&mut self, i: usize) -> Result<(Variant<'a>, &'a [u8])> {
        let (value, bytes) = self.elements.get(i)?;
        self.left = self.left.checked_sub(bytes.len()).ok_or_else(|| {
            malformed("the values of an object or array share bytes, or lie outside of it")
        })?;
        Ok((value, bytes))
    }
}

impl<'a> VariantObject<'a> {
    /// The value of field `i`.
    ///
    /// # Errors
    /// As [`Variant::new`].
    pub fn value(&self, i: usize) -> Result<Variant<'a>> {
        self.0.get(i).map(|(value, _)| value)
    }

    /// The value of the field `name`.
    ///
    /// Fields out of order are found too: some writers compare names by UTF-16.
    ///
    /// # Errors
    /// As [`Variant::new`].
    pub fn get(&self, name: &str) -> Result<Option<Variant<'a>>> {
        self.position(name)?.map(|i| self.value(i)).transpose()
    }

    /// The bytes of the value of the field `name`.
    pub(super) fn find(&self, name: &str) -> Result<Option<&'a [u8]>> {
        Ok(self.position(name)?.map(|i| self.0.get(i)).transpose()?.map(|(_, bytes)| bytes))
    }

    /// The fields in the order of their names, sorted if they are stored in another one.
    ///
    /// # Errors
    /// Items are errors as those of [`Variant::new`], and `Malformed(Variant)` if two fields have
    /// one name, or values share bytes.
    pub fn iter(&self) -> impl Iterator<Item = Result<(&'a str, Variant<'a>)>> + use<'a> {
        let (this, mut values) = (*self, Distinct::new(self.0));
        self.places().map(move |i| {
            let i = i?;
            Ok((this.name(i)?, values.get(i)?.0))
        })
    }

    /// Like [`iter`](Self::iter), with the values as bytes.
    pub(super) fn parts(&self) -> impl Iterator<Item = Result<ObjectField<'a>>> + use<'a> {
        let (this, mut values) = (*self, Distinct::new(self.0));
        self.places().map(move |i| {
            let i = i?;
            let id = u32::try_from(this.name_id(i)?).map_err(|_| no_name(i))?;
            Ok(ObjectField { id, name: this.name(i)?, bytes: values.get(i)?.1 })
        })
    }
}

impl<'a> VariantList<'a> {
    /// Value `i`.
    ///
    /// # Errors
    /// As [`Variant::new`].
    pub fn get(&self, i: usize) -> Result<Variant<'a>> {
        self.0.get(i).map(|(value, _)| value)
    }

    /// The bytes of value `i`; `None` if there are fewer values.
    pub(super) fn part(&self, i: usize) -> Result<Option<&'a [u8]>> {
        if i >= self.len() {
            return Ok(None);
        }
        self.0.get(i).map(|(_, bytes)| Some(bytes))
    }

    /// The values.
    ///
    /// # Errors
    /// Items are errors as those of [`Variant::new`], and `Malformed(Variant)` if values share
    /// bytes.
    pub fn iter(&self) -> impl Iterator<Item = Result<Variant<'a>>> + use<'a> {
        let mut values = Distinct::new(self.0);
        (0..self.len()).map(move |i| values.get(i).map(|(value, _)| value))
    }

    /// The bytes of the values.
    pub(super) fn parts(&self) -> impl Iterator<Item = Result<&'a [u8]>> + use<'a> {
        let mut values = Distinct::new(self.0);
        (0..self.len()).map(move |i| values.get(i).map(|(_, bytes)| bytes))
    }
}
