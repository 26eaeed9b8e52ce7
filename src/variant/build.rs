//! [`VariantBuilder`] builds values.
//!
//! Spec: VariantEncoding.md. The values of an object or array are appended one after another. Its
//! header is inserted in front of them when it ends, because its widths depend on them.
//!
//! Most rows have the same names: the builder keeps those of earlier values, and tries the name
//! first that followed the last one before.

use super::elements::{MAX_DEPTH, too_deep};
use super::value::Variant;
use super::{VariantMetadata, encode};
use crate::error::{Error, Result, quoted};
use names::NameDictionary;

mod names;

/// Builds values, one after another, and reuses its memory.
///
/// ```
/// use marquetry::variant::{Variant, VariantBuilder};
///
/// # fn main() -> marquetry::Result<()> {
/// let mut builder = VariantBuilder::new();
/// builder.begin_object()?;
/// builder.name("user")?;
/// builder.append("ada")?;
/// builder.name("scores")?;
/// builder.begin_list()?;
/// builder.append(Variant::integer(3))?;
/// builder.append(2.5)?;
/// builder.end_list()?;
/// builder.end_object()?;
/// let event = builder.finish()?;
/// let Variant::Object(object) = event.as_variant() else { panic!("it is an object") };
/// assert_eq!(object.name(0)?, "scores");
/// assert_eq!(object.get("user")?, Some(Variant::String("ada")));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default)]
pub struct VariantBuilder {
    names: NameDictionary,
    /// The value so far, without the headers of open objects and arrays.
    bytes: Vec<u8>,
    open: Vec<Open>,
    /// The fields of open objects: the name, and where the value begins in the object.
    fields: Vec<(u32, u32)>,
    /// Where the elements of open arrays begin in them.
    elements: Vec<u32>,
    /// Whether the innermost object was given the name of its next field.
    is_named: bool,
    /// Scratch: a JSON string without its escapes.
    pub(super) unescaped: String,
    /// Rebuilds a value with sorted names, if the guessed names were wrong.
    sorter: Option<Box<Self>>,
}

/// An object or array that has not ended.
#[derive(Debug, Clone, Copy)]
struct Open {
    is_object: bool,
    /// Where its values begin.
    start: usize,
    /// Its first field or element.
    first: usize,
}

/// How an object handles two fields of one name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Duplicates {
    Refuse,
    /// The last one is kept.
    Last,
}

impl VariantBuilder {
    /// A builder that lists names in the metadata in the order of their first use.
    pub fn new() -> Self {
        Self::default()
    }

    /// A builder whose metadata are sorted, and marked as sorted: slower to build if values differ
    /// in their names, and faster to search.
    pub fn with_sorted_names() -> Self {
        Self { sorter: Some(Box::default()), ..Self::default() }
    }

    /// Appends a value. An object or array is copied with its names.
    ///
    /// # Errors
    /// `Usage` where no value is allowed: a second one at the top level, or the value of a field
    /// without a name; and for a decimal of more than 38 digits. `Limit(Nesting)` if it would be
    /// too deep. As [`Variant::new`] for a malformed value inside. Nothing is appended then.
    #[inline]
    pub fn append<'v>(&mut self, value: impl Into<Variant<'v>>) -> Result<()> {
        self.append_value(&value.into())
    }

    fn append_value(&mut self, value: &Variant<'_>) -> Result<()> {
        self.all_or_nothing(|this| this.copy(value))
    }

    /// Calls `append`, and removes what it appended if it fails.
    #[inline]
    pub(super) fn all_or_nothing(
        &mut self,
        append: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<()> {
        let (bytes, open, is_named) = (self.bytes.len(), self.open.len(), self.is_named);
        let (fields, elements) = (self.fields.len(), self.elements.len());
        let names = self.names.mark();
        let appended = append(self);
        if appended.is_err() {
            self.bytes.truncate(bytes);
            self.open.truncate(open);
            self.fields.truncate(fields);
            self.elements.truncate(elements);
            self.is_named = is_named;
            self.names.take_back(&names);
        }
        appended
    }

    /// How many names are remembered.
    #[cfg(test)]
    pub(super) fn remembered(&self) -> usize {
        self.names.remembered()
    }

    /// How many objects and arrays are open.
    pub(super) fn depth(&self) -> usize {
        self.open.len()
    }

    /// Whether the innermost open value is an object.
    pub(super) fn is_in_object(&self) -> bool {
        self.open.last().is_some_and(|open| open.is_object)
    }

    fn copy(&mut self, value: &Variant<'_>) -> Result<()> {
        match value {
            Variant::Object(object) => {
                self.begin_object()?;
                for field in object.iter() {
                    let (name, value) = field?;
                    self.name(name)?;
                    self.copy(&value)?;
                }
                self.end_object()
            }
            Variant::List(list) => {
                self.begin_list()?;
                for value in list.iter() {
                    self.copy(&value?)?;
                }
                self.end_list()
            }
            scalar => {
                self.begin_value()?;
                check_decimal(scalar)?;
                encode::scalar(&mut self.bytes, scalar).map(drop)
            }
        }
    }

    /// Begins an object. [`name`](Self::name) and a value follow for each field, in any order.
    ///
    /// # Errors
    /// As [`append`](Self::append).
    pub fn begin_object(&mut self) -> Result<()> {
        self.begin(true)
    }

    /// Begins an array.
    ///
    /// # Errors
    /// As [`append`](Self::append).
    pub fn begin_list(&mut self) -> Result<()> {
        self.begin(false)
    }

    fn begin(&mut self, is_object: bool) -> Result<()> {
        if self.open.len() >= MAX_DEPTH {
            return Err(too_deep());
        }
        self.begin_value()?;
        let first = if is_object { self.fields.len() } else { self.elements.len() };
        self.open.push(Open { is_object, start: self.bytes.len(), first });
        Ok(())
    }

    /// Names the field whose value comes next.
    ///
    /// # Errors
    /// `Usage` if the innermost open value is no object, or its last name has no value.
    #[inline]
    pub fn name(&mut self, name: &str) -> Result<()> {
        let Some(&Open { is_object: true, start, .. }) = self.open.last() else {
            return Err(Error::usage(format_args!(
                "the name {} is outside of an object: call begin_object first",
                quoted(name)
            )));
        };
        if self.is_named {
            return Err(Error::usage(format_args!(
                "the field before {} has a name, but no value: append one",
                quoted(name)
            )));
        }
        let offset = encode::offset(&self.bytes, start)?;
        self.fields.push((self.names.number(name)?, offset));
        self.is_named = true;
        Ok(())
    }

    /// Checks that a value is allowed here, and records its offset.
    #[inline]
    fn begin_value(&mut self) -> Result<()> {
        match self.open.last() {
            Some(Open { is_object: true, .. }) => {
                if std::mem::take(&mut self.is_named) {
                    return Ok(());
                }
                Err(Error::usage("a value of an object has no name: call `name` before it"))
            }
            Some(open) => {
                self.elements.push(encode::offset(&self.bytes, open.start)?);
                Ok(())
            }
            // A value has at least one byte.
            None if self.bytes.is_empty() => Ok(()),
            None => Err(Error::usage(
                "a builder holds one value: call `finish` before the next, or begin_list",
            )),
        }
    }

    /// Ends the innermost object.
    ///
    /// # Errors
    /// `Usage` if the innermost open value is no object, a name has no value, or two fields have
    /// the same name.
    pub fn end_object(&mut self) -> Result<()> {
        self.end_object_with(Duplicates::Refuse)
    }

    pub(super) fn end_object_with(&mut self, duplicates: Duplicates) -> Result<()> {
        let Some(&Open { is_object: true, start, first }) = self.open.last() else {
            return Err(Error::usage("end_object, but the innermost open value is no object"));
        };
        if self.is_named {
            return Err(Error::usage("end_object after a name that has no value"));
        }
        let Self { names, bytes, fields, .. } = self;
        if !names.sort(&mut fields[first..]) {
            if duplicates == Duplicates::Refuse {
                return Err(names.twice(&fields[first..]));
            }
            keep_last(bytes, start, fields, first)?;
        }
        for (name, _) in &mut fields[first..] {
            *name = names.id(*name);
        }
        encode::object(bytes, start, &fields[first..])?;
        fields.truncate(first);
        self.open.pop();
        Ok(())
    }

    /// Ends the innermost array.
    ///
    /// # Errors
    /// `Usage` if the innermost open value is no array.
    pub fn end_list(&mut self) -> Result<()> {
        let Some(&Open { is_object: false, start, first }) = self.open.last() else {
            return Err(Error::usage("end_list, but the innermost open value is no array"));
        };
        encode::list(&mut self.bytes, start, &self.elements[first..])?;
        self.elements.truncate(first);
        self.open.pop();
        Ok(())
    }

    /// Returns the value, and empties the builder for the next one.
    ///
    /// # Errors
    /// `Usage` if there is no value, or an object or array is open.
    pub fn finish(&mut self) -> Result<VariantBuf> {
        let mut out = VariantBuf { metadata: Vec::new(), value: Vec::new() };
        self.finish_into(&mut out.metadata, &mut out.value)?;
        Ok(out)
    }

    /// Like [`finish`](Self::finish), but appends metadata and value to buffers.
    ///
    /// # Errors
    /// As [`finish`](Self::finish); nothing is appended then.
    pub fn finish_into(&mut self, metadata: &mut Vec<u8>, value: &mut Vec<u8>) -> Result<()> {
        if let Some(open) = self.open.last() {
            let what = if open.is_object { "an object" } else { "an array" };
            return Err(Error::usage(format_args!("{what} is open: end it before `finish`")));
        }
        if self.bytes.is_empty() {
            return Err(Error::usage("there is no value to finish: append one"));
        }
        if self.sorter.is_some() && !self.names.is_sorted_and_used() {
            self.sort_names()?;
        }
        self.names.write(metadata)?;
        value.extend_from_slice(&self.bytes);
        self.clear();
        Ok(())
    }

    /// Discards the unfinished value.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.open.clear();
        self.fields.clear();
        self.elements.clear();
        self.is_named = false;
        self.names.next_value(self.sorter.is_some());
    }

    /// Rebuilds the value with ids in the order of names.
    fn sort_names(&mut self) -> Result<()> {
        let Some(mut sorter) = self.sorter.take() else { return Ok(()) };
        let mut metadata = Vec::new();
        self.names.write(&mut metadata)?;
        self.names.sort_used();
        sorter.clear();
        std::mem::swap(&mut sorter.names, &mut self.names);
        let value = Variant::new(VariantMetadata::new(&metadata)?, &self.bytes)?;
        let sorted = sorter.append_value(&value);
        std::mem::swap(&mut sorter.names, &mut self.names);
        std::mem::swap(&mut sorter.bytes, &mut self.bytes);
        sorter.clear();
        self.sorter = Some(sorter);
        sorted
    }
}

/// Keeps the last of the fields with the same name, which are adjacent in `fields[first..]`, and
/// removes the values of the others from `bytes`.
fn keep_last(
    bytes: &mut Vec<u8>,
    start: usize,
    fields: &mut Vec<(u32, u32)>,
    first: usize,
) -> Result<()> {
    let total = encode::offset(bytes, start)?;
    let values = bytes.split_off(start);
    let mut begins: Vec<u32> = fields[first..].iter().map(|field| field.1).collect();
    begins.push(total);
    begins.sort_unstable();
    let all = fields.split_off(first);
    for (i, &(name, begin)) in all.iter().enumerate() {
        if all.get(i + 1).is_some_and(|next| next.0 == name) {
            continue;
        }
        let end = begins[begins.partition_point(|at| *at <= begin)];
        fields.push((name, encode::offset(bytes, start)?));
        bytes.extend_from_slice(&values[begin as usize..end as usize]);
    }
    Ok(())
}

fn check_decimal(value: &Variant<'_>) -> Result<()> {
    let Variant::Decimal(digits, scale) = value else { return Ok(()) };
    if digits.unsigned_abs() >= 10_u128.pow(38) || *scale > 38 {
        return Err(Error::usage(format_args!(
            "a decimal of the digits {digits} and the scale {scale}: VARIANT has at most 38 of both"
        )));
    }
    Ok(())
}

/// An owned value with its metadata.
#[derive(Debug, Clone)]
pub struct VariantBuf {
    metadata: Vec<u8>,
    value: Vec<u8>,
}

impl VariantBuf {
    /// The bytes of a value and its metadata, checked as [`Variant::new`] does.
    ///
    /// # Errors
    /// As [`VariantMetadata::new`] and [`Variant::new`].
    pub fn new(metadata: Vec<u8>, value: Vec<u8>) -> Result<Self> {
        Variant::new(VariantMetadata::new(&metadata)?, &value)?;
        Ok(Self { metadata, value })
    }

    /// The value, borrowed.
    pub fn as_variant(&self) -> Variant<'_> {
        let metadata = VariantMetadata::checked(&self.metadata);
        metadata
            .and_then(|metadata| Variant::new(metadata, &self.value).ok())
            .expect("the bytes were checked, or written here")
    }

    /// The bytes of the metadata.
    pub fn metadata(&self) -> &[u8] {
        &self.metadata
    }

    /// The bytes of the value.
    pub fn value(&self) -> &[u8] {
        &self.value
    }

    /// The bytes of the metadata, and those of the value.
    pub fn into_parts(self) -> (Vec<u8>, Vec<u8>) {
        (self.metadata, self.value)
    }
}
