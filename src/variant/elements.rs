//! [`VariantObject`] and [`VariantList`]: the values inside a value, read in place.

use std::cmp::Ordering;

use super::malformed;
use super::metadata::{VariantMetadata, unsigned, unsigned_at};
use super::value::{MAX_DEPTH, ValueBytes, Variant, too_deep};
use crate::error::{Error, Result, quoted};

/// Minimum length of a name, in bytes, for which the metadata are searched, where each name is
/// stored once, rather than the fields, of which many may refer to it.
const LONG_NAME: usize = 64;

/// An object. Its fields are in the order of their names.
#[derive(Debug, Clone, Copy)]
pub struct VariantObject<'a>(pub(super) Elements<'a>);

/// A field of an object, as it is stored.
#[derive(Debug, Clone, Copy)]
pub(super) struct ObjectField<'a> {
    /// The number of its name in the metadata.
    pub(super) id: u32,
    pub(super) name: &'a str,
    pub(super) bytes: &'a [u8],
}

/// An array.
#[derive(Debug, Clone, Copy)]
pub struct VariantList<'a>(pub(super) Elements<'a>);

/// The values of an object or an array.
#[derive(Debug, Clone, Copy)]
pub(super) struct Elements<'a> {
    metadata: VariantMetadata<'a>,
    /// `len` ids of names if it is an object, `len + 1` offsets, and the values.
    bytes: &'a [u8],
    len: usize,
    /// 0 in an array.
    id_size: u8,
    offset_size: u8,
    depth: u8,
}

impl<'a> Elements<'a> {
    pub(super) fn read(
        metadata: VariantMetadata<'a>,
        id_size: u8,
        info: u8,
        is_large: bool,
        rest: &mut ValueBytes<'a>,
        depth: u8,
    ) -> Result<Self> {
        if usize::from(depth) >= MAX_DEPTH {
            return Err(too_deep());
        }
        let offset_size = (info & 3) + 1;
        let len = unsigned(rest.take(if is_large { 4 } else { 1 })?);
        let offset = usize::from(offset_size);
        let too_many =
            || malformed(format_args!("{len} values do not fit into an object or array"));
        let offsets = len.checked_mul(usize::from(id_size) + offset).ok_or_else(too_many)?;
        let start = offsets.checked_add(offset).ok_or_else(too_many)?;
        let total = unsigned_at(rest.0, offsets, offset).ok_or_else(too_many)?;
        let bytes = rest.take(start.checked_add(total).ok_or_else(too_many)?)?;
        Ok(Self { metadata, bytes, len, id_size, offset_size, depth })
    }

    /// The id of the name of a field.
    #[inline]
    fn id(&self, i: usize) -> Option<usize> {
        let size = usize::from(self.id_size);
        unsigned_at(self.bytes, i.checked_mul(size).filter(|_| i < self.len)?, size)
    }

    /// The name of a field.
    #[inline]
    fn name(&self, i: usize) -> Result<&'a str> {
        self.id(i).and_then(|id| self.metadata.name(id)).ok_or_else(|| no_name(i))
    }

    /// Offset of the values.
    fn values(&self) -> usize {
        let (id, offset) = (usize::from(self.id_size), usize::from(self.offset_size));
        self.len * (id + offset) + offset
    }

    /// The bytes from the offset of a value on: values may be stored in any order.
    #[inline]
    fn bytes(&self, i: usize) -> Result<&'a [u8]> {
        let size = usize::from(self.offset_size);
        let offset = (i < self.len)
            .then(|| unsigned_at(self.bytes, self.len * usize::from(self.id_size) + i * size, size))
            .flatten();
        let values = self.bytes.get(self.values()..).unwrap_or_default();
        offset.and_then(|offset| values.get(offset..)).ok_or_else(|| {
            malformed(format_args!("the value {i} of an object or array lies outside of it"))
        })
    }

    fn get(&self, i: usize) -> Result<(Variant<'a>, &'a [u8])> {
        let bytes = self.bytes(i)?;
        let (value, len) = Variant::read(self.metadata, bytes, self.depth + 1)?;
        Ok((value, bytes.get(..len).unwrap_or_default()))
    }
}

#[cold]
fn no_name(i: usize) -> Error {
    malformed(format_args!("the name of field {i} is not in the metadata"))
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
        Self { elements, left: elements.bytes.len() - elements.values() }
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
    /// Number of fields.
    pub fn len(&self) -> usize {
        self.0.len
    }

    /// Whether there are no fields.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The dictionary of names that the value refers to.
    pub fn metadata(&self) -> VariantMetadata<'a> {
        self.0.metadata
    }

    /// The id of the name of field `i` in the metadata.
    ///
    /// # Errors
    /// `Malformed(Variant)` if there is no such name.
    pub(super) fn name_id(&self, i: usize) -> Result<usize> {
        self.0.id(i).filter(|id| *id < self.0.metadata.len()).ok_or_else(|| no_name(i))
    }

    /// The name of field `i`.
    ///
    /// # Errors
    /// `Malformed(Variant)` if there is no such name.
    pub fn name(&self, i: usize) -> Result<&'a str> {
        self.0.name(i)
    }

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

    /// The index of the field `name`.
    fn position(&self, name: &str) -> Result<Option<usize>> {
        let this = &self.0;
        if this.metadata.is_ascending() {
            // Each name has one id, and ids compare as names do.
            let Some(id) = this.metadata.find(name) else { return Ok(None) };
            let found = search(this.len, |i| Ok(this.id(i).unwrap_or(0).cmp(&id)))?;
            return Ok(found.or_else(|| (0..this.len).find(|&i| this.id(i) == Some(id))));
        }
        if let Some(found) = search(this.len, |i| Ok(this.name(i)?.cmp(name)))? {
            return Ok(Some(found));
        }
        // It is not there, or fields are out of order.
        if name.len() > LONG_NAME {
            let ids = this.metadata.find_all(name);
            let is_one = |i: &usize| this.id(*i).is_some_and(|id| ids.binary_search(&id).is_ok());
            return Ok((0..this.len).find(is_one));
        }
        for i in 0..this.len {
            if this.name(i)? == name {
                return Ok(Some(i));
            }
        }
        Ok(None)
    }

    /// Whether fields are in the order of their names, without duplicates, as the specification
    /// demands.
    pub(super) fn is_ascending(&self) -> Result<bool> {
        let this = &self.0;
        if this.metadata.is_ascending() {
            let mut next = 0;
            for i in 0..this.len {
                let id = this.id(i).filter(|id| *id < this.metadata.len());
                let id = id.ok_or_else(|| no_name(i))?;
                if id < next {
                    return Ok(false);
                }
                next = id + 1;
            }
            return Ok(true);
        }
        let mut previous: Option<&str> = None;
        for i in 0..this.len {
            let name = this.name(i)?;
            if previous.is_some_and(|previous| previous >= name) {
                return Ok(false);
            }
            previous = Some(name);
        }
        Ok(true)
    }

    /// The indexes of fields in the order of their names; `None` if they are stored so.
    fn order(&self) -> Result<Option<Vec<usize>>> {
        if self.is_ascending()? {
            return Ok(None);
        }
        let ids: Result<Vec<usize>> = (0..self.len()).map(|i| self.name_id(i)).collect();
        let ids = ids?;
        let mut order: Vec<usize> = (0..self.len()).collect();
        order.sort_unstable_by_key(|&i| ids[i]);
        // Before names are compared: sorting then takes time by how long all of them are, and not
        // by how often an object refers to a long one.
        if let Some(pair) = order.windows(2).find(|pair| ids[pair[0]] == ids[pair[1]]) {
            return Err(self.twice(pair[1]));
        }
        if !self.0.metadata.is_ascending() {
            let names: Result<Vec<&str>> = (0..self.len()).map(|i| self.name(i)).collect();
            let names = names?;
            order.sort_by_key(|&i| names[i]);
            if let Some(pair) = order.windows(2).find(|pair| names[pair[0]] == names[pair[1]]) {
                return Err(self.twice(pair[1]));
            }
        }
        Ok(Some(order))
    }

    #[cold]
    fn twice(&self, i: usize) -> Error {
        let name = self.name(i).unwrap_or_default();
        malformed(format_args!("an object has two fields of the name {}", quoted(name)))
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

    /// The indexes of fields in the order of their names, or one error.
    fn places(&self) -> impl Iterator<Item = Result<usize>> + use<> {
        let (order, mut error) = match self.order() {
            Ok(order) => (order, None),
            Err(error) => (None, Some(error)),
        };
        let len = if error.is_some() { 1 } else { self.len() };
        (0..len).map(move |i| match error.take() {
            Some(error) => Err(error),
            None => Ok(order.as_ref().map_or(i, |order| order[i])),
        })
    }
}

/// Binary search in `len` sorted entries: the index of one that compares as equal.
fn search(len: usize, compare: impl Fn(usize) -> Result<Ordering>) -> Result<Option<usize>> {
    let (mut low, mut high) = (0, len);
    while low < high {
        let middle = low + (high - low) / 2;
        match compare(middle)? {
            Ordering::Less => low = middle + 1,
            Ordering::Greater => high = middle,
            Ordering::Equal => return Ok(Some(middle)),
        }
    }
    Ok(None)
}

impl<'a> VariantList<'a> {
    /// Number of values.
    pub fn len(&self) -> usize {
        self.0.len
    }

    /// Whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The dictionary of names that the value refers to.
    pub fn metadata(&self) -> VariantMetadata<'a> {
        self.0.metadata
    }

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
