//! [`SchemaElements`]: the elements of a schema, decoded on demand from the bytes of the footer.
//!
//! Spec: `parquet.thrift`, SchemaElement. Read with [`FileHead`](super::FileHead); `schema` makes a
//! tree of them. Every element is decoded when the footer is read, or compared with one that was,
//! so that all are known to be valid. Of each, 24 bytes are kept: its place, the place of its name,
//! and what a walk over the tree asks for. The rest is decoded when it is asked for.
//! Trap: an element with unknown fields can be nearly as long as the footer, and every row group
//! asks for it. An element that takes long to decode is decoded once: see [`LongElement`].

use bytes::Bytes;

use super::borrowed::SchemaElementRef;
use super::enums::{ConvertedType, FieldRepetitionType, Type};
use super::schema::{LogicalType, SchemaElement};
use crate::error::{Error, LimitKind, Result};
use crate::memory;
use crate::thrift::{Read, ThriftReader, Unknown, Write, wire};

/// The elements of a schema: the bytes of the footer, and where each element is in them.
#[derive(Debug, Clone)]
pub(crate) struct SchemaElements {
    bytes: Bytes,
    heads: Box<[ElementHead]>,
    long: Box<[LongElement]>,
}

impl SchemaElements {
    /// Elements that were read from `bytes`.
    pub(super) fn new(bytes: Bytes, heads: ElementHeads) -> Self {
        Self { bytes, heads: heads.heads, long: heads.long }
    }

    /// Elements that are in no footer: they are encoded as in one.
    ///
    /// # Errors
    /// `Limit(Footer)` beyond 4 GiB.
    pub(crate) fn encode(elements: Vec<SchemaElement>) -> Result<Self> {
        let mut bytes = Vec::new();
        elements.write(&mut bytes)?;
        let heads = ElementHeads::read(&mut ThriftReader::new(&bytes))?;
        Ok(Self::new(bytes.into(), heads))
    }

    /// Number of elements.
    pub(crate) fn len(&self) -> usize {
        self.heads.len()
    }

    /// The head of the element at `index`.
    #[inline]
    pub(crate) fn head(&self, index: u32) -> &ElementHead {
        #[cfg(test)]
        crate::steps::add(1);
        &self.heads[index as usize]
    }

    /// The name of the element at `index`, which is UTF-8.
    #[inline]
    pub(crate) fn name_bytes(&self, index: u32) -> &[u8] {
        let head = self.head(index);
        let start = head.name_start as usize;
        self.bytes.get(start..start + head.name_len()).unwrap_or_default()
    }

    /// Whether the element at `index` has this name.
    #[inline]
    pub(crate) fn is_named(&self, index: u32, name: &[u8]) -> bool {
        if self.head(index).name_len() != name.len() {
            return false;
        }
        // The names of a wide schema nearly always differ at their ends.
        let own = self.name_bytes(index);
        own.last() == name.last() && own == name
    }

    /// The name of the element at `index`. Its bytes are checked once more: to compare it, take
    /// [`SchemaElements::name_bytes`].
    pub(crate) fn name(&self, index: u32) -> &str {
        std::str::from_utf8(self.name_bytes(index)).expect("checked when the footer was read")
    }

    /// The element at `index`; its name is not copied.
    pub(crate) fn get(&self, index: u32) -> SchemaElementRef<'_> {
        if self.head(index).is_long
            && let Ok(at) = self.long.binary_search_by_key(&index, |long| long.index)
            && let Some(long) = self.long.get(at)
        {
            return long.with_name(self.name(index));
        }
        self.decode(index)
    }

    /// The element at `index`, with the fields that are not known.
    pub(crate) fn get_owned(&self, index: u32) -> SchemaElement {
        self.decode(index)
    }

    fn decode<'a, T: Read<'a>>(&'a self, index: u32) -> T {
        T::read(&mut ThriftReader::new(self.bytes_from(index))).expect("read when the footer was")
    }

    fn bytes_from(&self, index: u32) -> &[u8] {
        self.bytes.get(self.head(index).start as usize..).unwrap_or_default()
    }

    /// Bytes of memory that it holds, about, without those of the footer.
    pub(crate) fn heap_bytes(&self) -> usize {
        size_of_val(&*self.heads) + size_of_val(&*self.long)
    }
}

impl PartialEq for SchemaElements {
    /// Equal if all elements are, wherever they are and however they are encoded.
    fn eq(&self, other: &Self) -> bool {
        let same = |index| self.get_owned(index) == other.get_owned(index);
        self.len() == other.len() && (0u32..).take(self.len()).all(same)
    }
}

/// The places of the schema elements in the footer, with the properties that a walk over the tree
/// needs. Two are equal if the elements are at the same places, whatever their names are.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ElementHeads {
    heads: Box<[ElementHead]>,
    long: Box<[LongElement]>,
}

impl ElementHeads {
    /// Number of elements.
    pub fn len(&self) -> usize {
        self.heads.len()
    }

    /// Whether there is no element.
    pub fn is_empty(&self) -> bool {
        self.heads.is_empty()
    }
}

impl<'a> Read<'a> for ElementHeads {
    const TYPE: u8 = wire::LIST;

    #[inline]
    fn fits(ty: u8, payload: &[u8]) -> bool {
        Vec::<SchemaElement>::fits(ty, payload)
    }

    fn read(reader: &mut ThriftReader<'a>) -> Result<Self> {
        let (_, n) = reader.list()?;
        // A number alone asks for no more memory than there are bytes; from there on it grows.
        let capacity = n.min(reader.rest().len() / size_of::<ElementHead>());
        let mut heads = memory::vec_for(capacity)?;
        let (mut template, mut long) = (Template::default(), Vec::new());
        for _ in 0..n {
            let head = match template.read_like(reader) {
                Some(head) => head,
                None => {
                    let index = u32::try_from(heads.len()).map_err(|_| too_large())?;
                    let keep = |element: SchemaElementRef<'_>| {
                        memory::push(&mut long, LongElement::new(index, element)?)
                    };
                    template.read_other(reader, keep)?
                }
            };
            memory::push(&mut heads, head)?;
        }
        Ok(Self { heads: heads.into_boxed_slice(), long: long.into_boxed_slice() })
    }
}

/// The element that was decoded last. In a wide schema many follow one another that differ in their
/// names alone: those are compared with it, not decoded.
#[derive(Debug, Default)]
struct Template<'a> {
    /// `None` if there is none to compare with.
    head: Option<ElementHead>,
    /// Its bytes up to the length of the name, which takes one byte.
    before: Prefix<'a>,
    /// Its bytes from the end of the name on.
    after: Prefix<'a>,
}

/// A few bytes, to be compared with what other bytes begin with.
#[derive(Debug, Default)]
struct Prefix<'a> {
    bytes: &'a [u8],
    /// The first eight of them, and which of their bits count.
    word: u64,
    mask: u64,
}

impl<'a> Prefix<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        let (mut word, mut mask) = ([0; 8], [0; 8]);
        for ((byte, word), mask) in bytes.iter().zip(&mut word).zip(&mut mask) {
            (*word, *mask) = (*byte, u8::MAX);
        }
        Self { bytes, word: u64::from_le_bytes(word), mask: u64::from_le_bytes(mask) }
    }

    /// What follows it in `bytes`, if they begin with it.
    #[inline]
    fn strip<'b>(&self, bytes: &'b [u8]) -> Option<&'b [u8]> {
        match bytes.first_chunk() {
            // Nearly always it is so short; then a call would take longer than to compare.
            Some(first) if self.bytes.len() <= size_of::<u64>() => {
                let same = u64::from_le_bytes(*first) & self.mask == self.word;
                same.then(|| bytes.get(self.bytes.len()..)).flatten()
            }
            _ => bytes.strip_prefix(self.bytes),
        }
    }
}

impl<'a> Template<'a> {
    /// Reads an element that differs from this one in its name alone; `None` if it does not, or is
    /// malformed.
    #[inline]
    fn read_like(&self, reader: &mut ThriftReader<'_>) -> Option<ElementHead> {
        let head = self.head?;
        let rest = self.before.strip(reader.rest())?;
        // A length of several bytes begins with a larger one.
        let (&name_len, rest) = rest.split_first().filter(|(first, _)| **first < 0x80)?;
        let (name, rest) = rest.split_at_checked(usize::from(name_len))?;
        self.after.strip(rest)?;
        // For short names, this check is faster.
        if !name.is_ascii() && std::str::from_utf8(name).is_err() {
            return None;
        }
        let (start, name_at) = (reader.position(), self.before.bytes.len() + 1);
        let name_start = u32::try_from(start + name_at).ok()?;
        let start = u32::try_from(start).ok()?;
        reader.skip_bytes(name_at + name.len() + self.after.bytes.len()).ok()?;
        Some(ElementHead { start, name_start, name_len: u32::from(name_len), ..head })
    }

    /// Decodes an element, and remembers it. One that takes long to decode is kept by the caller.
    fn read_other(
        &mut self,
        reader: &mut ThriftReader<'a>,
        keep: impl FnOnce(SchemaElementRef<'_>) -> Result<()>,
    ) -> Result<ElementHead> {
        let bytes = reader.rest();
        let (mut head, name_at, decoded) = ElementHead::read(reader)?;
        let element = reader.since(bytes);
        *self = Self::default();
        if element.len() - head.name_len() > LONG_BYTES {
            keep(decoded)?;
            head.is_long = true;
            return Ok(head);
        }
        // A length of 1 or more takes one byte if that byte alone says so: where it is the last of
        // several, it counts 128-fold.
        if let Some((name_len, before)) = element.get(..name_at).and_then(<[u8]>::split_last)
            && (1..0x80).contains(name_len)
            && usize::from(*name_len) == head.name_len()
        {
            let after = element.get(name_at + head.name_len()..).unwrap_or_default();
            let (before, after) = (Prefix::new(before), Prefix::new(after));
            *self = Self { head: Some(head), before, after };
        }
        Ok(head)
    }
}

/// Bytes without the name from which on an element is long.
const LONG_BYTES: usize = 256;

/// The known fields of an element that takes long to decode, but its name.
#[derive(Debug, Clone, PartialEq)]
struct LongElement {
    index: u32,
    element: Box<SchemaElement>,
}

impl LongElement {
    fn new(index: u32, element: SchemaElementRef<'_>) -> Result<Self> {
        let logical_type = match element.logical_type {
            // A member that is not known counts by its number alone.
            Some(LogicalType::Unrecognized(unknown)) => {
                Some(LogicalType::Unrecognized(unknown.first_alone()?))
            }
            known => known,
        };
        let element = SchemaElement {
            r#type: element.r#type,
            type_length: element.type_length,
            repetition_type: element.repetition_type,
            name: String::new(),
            num_children: element.num_children,
            converted_type: element.converted_type,
            scale: element.scale,
            precision: element.precision,
            field_id: element.field_id,
            logical_type,
            unknown: Unknown::default(),
        };
        Ok(Self { index, element: Box::new(element) })
    }

    fn with_name<'a>(&self, name: &'a str) -> SchemaElementRef<'a> {
        let SchemaElement {
            r#type,
            type_length,
            repetition_type,
            num_children,
            converted_type,
            scale,
            precision,
            field_id,
            ref logical_type,
            ..
        } = *self.element;
        SchemaElementRef {
            r#type,
            type_length,
            repetition_type,
            name,
            num_children,
            converted_type,
            scale,
            precision,
            field_id,
            logical_type: logical_type.clone(),
        }
    }
}

/// The properties of an element that are kept in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ElementHead {
    /// Where the element begins in the footer.
    start: u32,
    name_start: u32,
    name_len: u32,
    /// 0 if absent.
    num_children: i32,
    has_num_children: bool,
    has_field_id: bool,
    is_long: bool,
    /// These are numbers of the wire, see [`code`].
    r#type: u8,
    repetition_type: u8,
    converted_type: u8,
    logical: LogicalKind,
}

/// Which logical type an element has, as far as the tree depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LogicalKind {
    /// None.
    Absent,
    /// STRING.
    String,
    /// LIST.
    List,
    /// MAP.
    Map,
    /// VARIANT of specification version 1.
    Variant,
    /// FILE.
    File,
    /// Any other.
    Other,
}

impl ElementHead {
    /// Decodes an element; and where in it the name begins.
    fn read<'a>(reader: &mut ThriftReader<'a>) -> Result<(Self, usize, SchemaElementRef<'a>)> {
        let (start, bytes) = (reader.position(), reader.rest());
        let element = SchemaElementRef::read(reader)?;
        // The name is a part of these bytes.
        let name_at = element.name.as_ptr().addr().saturating_sub(bytes.as_ptr().addr());
        let offset = |at: usize| u32::try_from(at).map_err(|_| too_large());
        let head = Self {
            start: offset(start)?,
            name_start: offset(start + name_at)?,
            name_len: offset(element.name.len())?,
            num_children: element.num_children.unwrap_or(0),
            has_num_children: element.num_children.is_some(),
            has_field_id: element.field_id.is_some(),
            is_long: false,
            r#type: code(element.r#type),
            repetition_type: code(element.repetition_type),
            converted_type: code(element.converted_type),
            logical: element
                .logical_type
                .as_ref()
                .map_or(LogicalKind::Absent, LogicalKind::from_logical_type),
        };
        Ok((head, name_at, element))
    }

    /// Bytes of the name.
    #[inline]
    pub(crate) fn name_len(&self) -> usize {
        self.name_len as usize
    }

    /// `SchemaElement::num_children`.
    #[inline]
    pub(crate) fn num_children(&self) -> Option<i32> {
        self.has_num_children.then_some(self.num_children)
    }

    /// Whether there is a `SchemaElement::field_id`.
    #[inline]
    pub(crate) fn has_field_id(&self) -> bool {
        self.has_field_id
    }

    /// `SchemaElement::type`. One that is not known may have another number, not known either.
    #[inline]
    pub(crate) fn r#type(&self) -> Option<Type> {
        from_code(self.r#type)
    }

    /// `SchemaElement::repetition_type`. One that is not known may have another number, not known
    /// either.
    #[inline]
    pub(crate) fn repetition_type(&self) -> Option<FieldRepetitionType> {
        from_code(self.repetition_type)
    }

    /// `SchemaElement::converted_type`. One that is not known may have another number, not known
    /// either.
    #[inline]
    pub(crate) fn converted_type(&self) -> Option<ConvertedType> {
        from_code(self.converted_type)
    }

    /// Which logical type it has.
    #[inline]
    pub(crate) fn logical(&self) -> LogicalKind {
        self.logical
    }

    /// Whether there is an annotation of either kind, known or not.
    #[inline]
    pub(crate) fn is_annotated(&self) -> bool {
        self.logical != LogicalKind::Absent || self.converted_type != ABSENT
    }
}

impl LogicalKind {
    fn from_logical_type(logical: &LogicalType) -> Self {
        match logical {
            LogicalType::String => Self::String,
            LogicalType::List => Self::List,
            LogicalType::Map => Self::Map,
            LogicalType::Variant(of) if matches!(of.specification_version, None | Some(1)) => {
                Self::Variant
            }
            LogicalType::File => Self::File,
            _ => Self::Other,
        }
    }
}

/// An enum of the format in one byte: its number. All known numbers are below these two.
fn code(value: Option<impl Into<i32>>) -> u8 {
    match value.map(|value| u8::try_from(value.into())) {
        None => ABSENT,
        Some(Ok(number @ 0..OUT_OF_RANGE)) => number,
        Some(_) => OUT_OF_RANGE,
    }
}

#[inline]
fn from_code<T: From<i32>>(code: u8) -> Option<T> {
    (code != ABSENT).then(|| T::from(i32::from(code)))
}

const ABSENT: u8 = u8::MAX;

const OUT_OF_RANGE: u8 = u8::MAX - 1;

#[cold]
fn too_large() -> Error {
    Error::limit(LimitKind::Footer, "a footer of more than 4 GiB")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_is_stripped_whatever_its_length() {
        let bytes: Vec<u8> = (1..=20).collect();
        for prefix in 0..bytes.len() {
            for len in 0..=bytes.len() {
                let mut other = bytes[..len].to_vec();
                let same = Prefix::new(&bytes[..prefix]).strip(&other);
                assert_eq!(same, other.strip_prefix(&bytes[..prefix]), "{prefix} of {len}");
                if let Some(last) = prefix.checked_sub(1).filter(|last| *last < len) {
                    other[last] ^= 0x80;
                    assert_eq!(Prefix::new(&bytes[..prefix]).strip(&other), None, "{prefix}");
                }
            }
        }
    }
}
