//! Spans as JSON: made while they are written, so that nothing is held but the way to the span at
//! hand.

use std::borrow::Cow;
use std::cell::RefCell;
use std::fmt::{self, Display};

use bytes::Bytes;
use marquetry::inspect::{Slots, Span, Value};
use serde::ser::{Error as _, SerializeMap, SerializeSeq};
use serde::{Serialize, Serializer};

use super::dump::Dump;
use crate::json::AsText;

type SpanIter = Box<dyn Iterator<Item = marquetry::Result<Span>>>;

/// Spans that are serialised as they come.
pub(super) struct SpanList<'a> {
    dump: &'a Dump,
    spans: RefCell<Option<SpanIter>>,
    /// Whether their offsets are those of the file.
    is_stored: bool,
}

impl<'a> SpanList<'a> {
    pub(super) fn new(
        dump: &'a Dump,
        spans: impl Iterator<Item = marquetry::Result<Span>> + 'static,
        is_stored: bool,
    ) -> Self {
        Self { dump, spans: RefCell::new(Some(Box::new(spans))), is_stored }
    }
}

impl Serialize for SpanList<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut list = to.serialize_seq(None)?;
        for span in self.spans.borrow_mut().take().into_iter().flatten() {
            let Some(span) = self.dump.checked(span) else {
                return Err(S::Error::custom("the file cannot be read"));
            };
            if !self.is_stored || self.dump.wanted.has(&span) {
                let (dump, is_stored) = (self.dump, self.is_stored);
                list.serialize_element(&SpanRecord { dump, span, is_stored })?;
            }
        }
        list.end()
    }
}

struct SpanRecord<'a> {
    dump: &'a Dump,
    span: Span,
    is_stored: bool,
}

impl Serialize for SpanRecord<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let Self { dump, span, is_stored } = self;
        let mut map = to.serialize_map(None)?;
        map.serialize_entry("offset", &span.offset)?;
        map.serialize_entry("length", &span.length)?;
        map.serialize_entry("kind", span.kind.name())?;
        map.serialize_entry("name", &*span.name)?;
        if let Some(field) = span.field {
            map.serialize_entry("id", &field.id)?;
            map.serialize_entry("type", field.thrift_type)?;
        }
        if let Some(value) = &span.value {
            map.serialize_entry("value", &ValueRecord(value))?;
            if let Value::List(items) = value
                && items.len() > MAX_ITEMS
            {
                map.serialize_entry("truncated", &true)?;
                map.serialize_entry("total", &items.len())?;
            }
        }
        if let Some(text) = &span.text {
            map.serialize_entry("text", &**text)?;
        }
        if let Some(count) = span.count {
            map.serialize_entry("count", &count)?;
        }
        if let Some(row_group) = span.row_group {
            map.serialize_entry("row_group", &row_group)?;
        }
        if let Some(column) = &span.column {
            map.serialize_entry("column", &**column)?;
        }
        if let Some(page) = span.page {
            map.serialize_entry("page", &page)?;
        }
        if !span.references.is_empty() {
            map.serialize_entry("references", &References(span))?;
        }
        if dump.shows_levels() {
            self.serialize_page(&mut map)?;
        }
        match dump.children(span) {
            Some(children) => {
                map.serialize_entry("children", &SpanList::new(dump, children, *is_stored))?;
            }
            None => map.serialize_entry("hex", &AsText(Hex { dump, span }))?,
        }
        if let Some(inside) = dump.decrypted(span) {
            map.serialize_entry("decrypted", &SpanList::new(dump, inside, false))?;
        }
        if let Some(inside) = dump.decompressed(span) {
            map.serialize_entry("decompressed", &SpanList::new(dump, inside, false))?;
        }
        map.end()
    }
}

impl SpanRecord<'_> {
    /// The checksum and the slots of a page.
    fn serialize_page<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        if let Some(checksum) = self.span.checksum() {
            let checksum = checksum.map_err(|error| self.failed(error))?;
            let hex = |sum: u32| format!("{sum:#010x}");
            map.serialize_entry("checksum", &[hex(checksum.stated), hex(checksum.found)])?;
        }
        if let Some(slots) = self.span.slots() {
            let slots = SlotList { dump: self.dump, slots: RefCell::new(Some(slots)) };
            map.serialize_entry("slots", &slots)?;
        }
        Ok(())
    }

    fn failed<E: serde::ser::Error>(&self, error: marquetry::Error) -> E {
        self.dump.checked::<Span>(Err(error));
        E::custom("the file cannot be read")
    }
}

/// The bytes of a leaf, in hexadecimal digits: written as they are read, so that none is held.
struct Hex<'a> {
    dump: &'a Dump,
    span: &'a Span,
}

impl Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for bytes in self.span.bytes() {
            // A text cannot fail: the command ends with the error after it.
            let Some(bytes) = self.dump.checked(bytes) else { break };
            for piece in bytes.chunks(1 << 12) {
                f.write_str(&hex_of(piece))?;
            }
        }
        Ok(())
    }
}

fn hex_of(bytes: &[u8]) -> String {
    let digit = |nibble: u8| char::from_digit(nibble.into(), 16).unwrap_or_default();
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 0xF)]).collect()
}

/// Items of a list that JSON has; of a longer one it says how many there are.
const MAX_ITEMS: u64 = 1 << 20;

struct ValueRecord<'a>(&'a Value);

impl Serialize for ValueRecord<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Bool(value) => value.serialize(to),
            Value::Int(value) => value.serialize(to),
            Value::UInt(value) => value.serialize(to),
            // JSON has no number for these.
            Value::Float(value) if !value.is_finite() => value.to_string().serialize(to),
            Value::Double(value) if !value.is_finite() => value.to_string().serialize(to),
            Value::Float(value) => value.serialize(to),
            Value::Double(value) => value.serialize(to),
            Value::Text(text) => text.serialize(to),
            Value::Bytes(bytes) => format!("0x{}", hex_of(bytes)).serialize(to),
            Value::List(items) => {
                let max = usize::try_from(MAX_ITEMS).unwrap_or(usize::MAX);
                let mut list = to.serialize_seq(None)?;
                for item in items.iter().take(max) {
                    list.serialize_element(&ValueRecord(&item))?;
                }
                list.end()
            }
            _ => to.serialize_none(),
        }
    }
}

struct References<'a>(&'a Span);

impl Serialize for References<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct ReferenceRecord<'a> {
            offset: u64,
            length: u64,
            kind: &'static str,
            #[serde(skip_serializing_if = "Option::is_none")]
            row_group: Option<usize>,
            #[serde(skip_serializing_if = "Option::is_none")]
            column: Option<&'a str>,
        }
        to.collect_seq(self.0.references.iter().map(|reference| ReferenceRecord {
            offset: reference.offset,
            length: reference.length,
            kind: reference.kind.name(),
            row_group: reference.row_group,
            column: reference.column.as_deref(),
        }))
    }
}

/// The slots of a page, serialised as they come.
struct SlotList<'a> {
    dump: &'a Dump,
    slots: RefCell<Option<Slots>>,
}

impl Serialize for SlotList<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct SlotRecord {
            first: u64,
            count: u64,
            repetition_level: u16,
            definition_level: u16,
            text: String,
        }
        let mut list = to.serialize_seq(None)?;
        for slot in self.slots.borrow_mut().take().into_iter().flatten() {
            let slot = slot.map_err(|error| {
                *self.dump.failed.borrow_mut() = Some(error);
                S::Error::custom("the file cannot be read")
            })?;
            list.serialize_element(&SlotRecord {
                first: slot.first,
                count: slot.count,
                repetition_level: slot.repetition_level,
                definition_level: slot.definition_level,
                text: slot.text,
            })?;
        }
        list.end()
    }
}

/// Bytes of a line of CSV; a longer leaf has several, and the first says what it means.
const LINE_BYTES: u64 = 1 << 20;

/// A leaf of the file, or some bytes of it, as a line of CSV.
#[derive(Serialize)]
pub(super) struct LeafLine {
    offset: u64,
    length: u64,
    kind: &'static str,
    name: String,
    value: Option<String>,
    text: Option<String>,
    hex: String,
}

/// The leaves of the file, end to end.
pub(super) fn leaves(dump: &Dump) -> impl Iterator<Item = LeafLine> + '_ {
    leaf_spans(dump).flat_map(|span| lines_of(dump, span))
}

/// The lines of a leaf.
fn lines_of(dump: &Dump, mut span: Span) -> impl Iterator<Item = LeafLine> + '_ {
    let (mut bytes, mut read) = (span.bytes(), Bytes::new());
    let (mut next, mut is_first) = (span.offset, true);
    std::iter::from_fn(move || {
        let (offset, mut hex) = (next, String::new());
        while next - offset < LINE_BYTES {
            if read.is_empty() {
                let Some(more) = bytes.next() else { break };
                read = dump.checked(more)?;
            }
            let wanted = usize::try_from(LINE_BYTES - (next - offset)).unwrap_or(usize::MAX);
            let piece = read.split_to(wanted.min(read.len()));
            hex.push_str(&hex_of(&piece));
            next += piece.len() as u64;
        }
        if !std::mem::take(&mut is_first) && hex.is_empty() {
            return None;
        }
        let value = span.value.take().map(|value| match value {
            Value::Text(text) => Ok((*text).to_owned()),
            value => serde_json::to_string(&ValueRecord(&value)),
        });
        Some(LeafLine {
            offset,
            length: next - offset,
            kind: span.kind.name(),
            name: span.name.clone().into_owned(),
            value: value.and_then(Result::ok),
            text: span.text.take().map(Cow::into_owned),
            hex,
        })
    })
}

fn leaf_spans(dump: &Dump) -> impl Iterator<Item = Span> + '_ {
    let mut open: Vec<SpanIter> = vec![Box::new(dump.roots())];
    std::iter::from_fn(move || {
        loop {
            let Some(span) = open.last_mut()?.next() else {
                open.pop();
                continue;
            };
            let Some(span) = dump.checked(span) else {
                open.clear();
                return None;
            };
            if !dump.wanted.has(&span) {
                continue;
            }
            if let Some(children) = dump.children(&span) {
                open.push(Box::new(children));
                continue;
            }
            return Some(span);
        }
    })
}

impl Serialize for Dump {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        SpanList::new(self, self.roots(), true).serialize(to)
    }
}
