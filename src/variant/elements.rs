//! [`VariantObject`] and [`VariantList`] find the values inside a value, and their names.

use std::cmp::Ordering;

use super::malformed::malformed;
use super::metadata::{VariantMetadata, unsigned, unsigned_at};
use crate::error::{Error, LimitKind, Result, quoted};

/// How deep objects and arrays may nest: deeper ones are refused, so that no value can exhaust a
/// stack of 1 MiB.
pub const MAX_DEPTH: usize = 200;

/// Minimum length of a name, in bytes, that is searched in the metadata, which store each name
/// once, rather than in the fields, because many of these may refer to one name.
const LONG_NAME: usize = 64;

/// An object. Its fields are in the order of their names.
#[derive(Debug, Clone, Copy)]
pub struct VariantObject<'a>(pub(super) Elements<'a>);

/// An array.
#[derive(Debug, Clone, Copy)]
pub struct VariantList<'a>(pub(super) Elements<'a>);

/// Takes bytes from the front of a value.
pub(super) struct ValueBytes<'a>(pub(super) &'a [u8]);

impl<'a> ValueBytes<'a> {
    #[inline]
    pub(super) fn take(&mut self, n: usize) -> Result<&'a [u8]> {
        let (taken, rest) = self
            .0
            .split_at_checked(n)
            .ok_or_else(|| malformed("a value ends before its contents"))?;
        self.0 = rest;
        Ok(taken)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut out = [0; N];
        out.copy_from_slice(self.take(N)?);
        Ok(out)
    }

    /// Bytes after their length of 4 bytes.
    pub(super) fn prefixed(&mut self) -> Result<&'a [u8]> {
        let len = unsigned(self.take(4)?);
        self.take(len)
    }
}

/// The values of an object or an array.
#[derive(Debug, Clone, Copy)]
pub(super) struct Elements<'a> {
    pub(super) metadata: VariantMetadata<'a>,
    /// `len` ids of names if it is an object, `len + 1` offsets, and the values.
    bytes: &'a [u8],
    len: usize,
    /// 0 in an array.
    id_size: u8,
    offset_size: u8,
    pub(super) depth: u8,
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

    /// Bytes of the values.
    pub(super) fn values_len(&self) -> usize {
        self.bytes.len() - self.values()
    }

    /// Offset of the values.
    fn values(&self) -> usize {
        let (id, offset) = (usize::from(self.id_size), usize::from(self.offset_size));
        self.len * (id + offset) + offset
    }

    /// The bytes from the offset of a value on: values may be stored in any order.
    #[inline]
    pub(super) fn bytes(&self, i: usize) -> Result<&'a [u8]> {
        let size = usize::from(self.offset_size);
        let offset = (i < self.len)
            .then(|| unsigned_at(self.bytes, self.len * usize::from(self.id_size) + i * size, size))
            .flatten();
        let values = self.bytes.get(self.values()..).unwrap_or_default();
        offset.and_then(|offset| values.get(offset..)).ok_or_else(|| {
            malformed(format_args!("the value {i} of an object or array lies outside of it"))
        })
    }
}

#[cold]
pub(super) fn too_deep() -> Error {
    Error::limit(
        LimitKind::Nesting,
        format_args!("a VARIANT value nests deeper than {MAX_DEPTH} objects and arrays"),
    )
}

#[cold]
pub(super) fn no_name(i: usize) -> Error {
    malformed(format_args!("the name of field {i} is not in the metadata"))
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

    /// The index of the field `name`.
    pub(super) fn position(&self, name: &str) -> Result<Option<usize>> {
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

    /// The indexes of fields in the order of their names, or one error.
    pub(super) fn places(&self) -> impl Iterator<Item = Result<usize>> + use<> {
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
}
