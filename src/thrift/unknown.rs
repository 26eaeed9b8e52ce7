//! [`Unknown`] keeps what a struct holds that this version of the format does not know.

use std::fmt;

use super::read::{Field, ThriftReader};
use super::wire;
use super::write::field_header;
use crate::error::Result;
use crate::memory;

/// The unknown fields of a struct, or the unknown member of a union, kept so that they can be
/// written back.
///
/// One word; nothing is allocated while it is empty. It also keeps a *known* field whose value
/// holds more than its Rust type (a logical type with a parameter that was added later, free text
/// that is not UTF-8): that is written instead of the Rust value as long as both agree.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Unknown(
    // Fields with long headers, so that each is independent of the one before it.
    #[expect(clippy::box_collection, reason = "one word in every struct")] Option<Box<Vec<u8>>>,
);

/// One field of an [`Unknown`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct UnknownField<'a> {
    /// Id of the field.
    pub id: i16,
    /// Wire type, by the number that the compact protocol gives it.
    pub ty: u8,
    /// The value, as on the wire; none for a bool.
    pub payload: &'a [u8],
}

impl Unknown {
    /// Nothing.
    pub(crate) const NONE: Self = Self(None);

    /// Whether nothing is kept.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// The first of the fields, without its contents, as a bool.
    pub(crate) fn first_alone(&self) -> Result<Self> {
        let mut first = Self::default();
        if let Some(field) = self.fields().next() {
            first.push(Field { id: field.id, ty: wire::TRUE }, &[])?;
        }
        Ok(first)
    }

    /// The fields, in the order in which they were read.
    pub(crate) fn fields(&self) -> impl Iterator<Item = UnknownField<'_>> {
        let mut reader = ThriftReader::new(self.0.as_deref().map_or(&[], Vec::as_slice));
        std::iter::from_fn(move || {
            if reader.rest().is_empty() {
                return None;
            }
            // The bytes that `push` wrote are whole, so this cannot fail.
            let Field { id, ty } = reader.field(0).ok().flatten()?;
            let before = reader.rest();
            reader.skip(ty).ok()?;
            Some(UnknownField { id, ty, payload: reader.since(before) })
        })
    }

    /// Keeps a field with this payload, which is whole.
    #[cold]
    pub(crate) fn push(&mut self, field: Field, payload: &[u8]) -> Result<()> {
        let kept = self.0.get_or_insert_default();
        // No id is the successor of itself: this asks for the long form.
        let mut last = field.id;
        field_header(field.id, field.ty, &mut last, kept)?;
        memory::append(kept, payload)
    }

    /// Appends the fields but those with an id in `known`.
    pub(crate) fn write(&self, known: &[i16], last: &mut i16, out: &mut Vec<u8>) -> Result<()> {
        let mut unknown = self.fields().filter(|field| !known.contains(&field.id));
        unknown.try_for_each(|field| field.write(last, out))
    }

    /// Appends the field `id` as it was read, if it was kept and `same` finds that its value is
    /// unchanged.
    #[cold]
    pub(crate) fn write_known(
        &self,
        id: i16,
        last: &mut i16,
        out: &mut Vec<u8>,
        same: impl Fn(&mut ThriftReader<'_>, Field) -> Result<bool>,
    ) -> Result<bool> {
        let kept = self.fields().filter(|field| field.id == id).last();
        let Some(field) = kept else {
            return Ok(false);
        };
        let mut reader = ThriftReader::new(field.payload);
        if !same(&mut reader, Field { id, ty: field.ty }).unwrap_or(false) {
            return Ok(false);
        }
        field.write(last, out)?;
        Ok(true)
    }
}

impl ThriftReader<'_> {
    /// Moves the value of `field` to `unknown`.
    #[cold]
    pub(crate) fn keep(&mut self, field: Field, unknown: &mut Unknown) -> Result<()> {
        let before = self.rest();
        self.skip(field.ty)?;
        unknown.push(field, self.since(before))
    }
}

impl UnknownField<'_> {
    fn write(&self, last: &mut i16, out: &mut Vec<u8>) -> Result<()> {
        field_header(self.id, self.ty, last, out)?;
        memory::append(out, self.payload)
    }
}

impl fmt::Debug for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.fields()).finish()
    }
}
