//! Metadata as spans: a struct of the compact protocol, field by field.
//!
//! Spec: `thrift-compact-protocol.md`, `parquet.thrift`. Names and types are those that the structs
//! of `format` describe; fields that they do not know are walked by their wire types. Trap: these
//! may be nested as deep as they are long, and the spans are walked recursively.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;

use super::span::{Cutter, FieldOfMetadata, Span, SpanKind, Spans};
use super::value::{Items, ShownColumn, Text, Value};
use crate::error::Result;
use crate::read::Footer;
use crate::thrift::describe::{Describe, Description, FieldDescription, StructDescription};
use crate::thrift::{ThriftReader, wire};

/// What is known about the place of metadata.
#[derive(Clone, Default)]
pub(super) struct Context {
    /// The footer, whose leaves the columns of its row groups are.
    footer: Option<Footer>,
    /// The column whose bounds these are.
    column: Option<Arc<ShownColumn>>,
    row_group: Option<usize>,
}

impl Context {
    /// Of the metadata of a file, if they can be read.
    pub(super) fn of_file(footer: Option<&Footer>) -> Self {
        Self { footer: footer.cloned(), ..Self::default() }
    }

    /// Of metadata that belong to a column.
    pub(super) fn of_column(column: &Arc<ShownColumn>) -> Self {
        Self { column: Some(column.clone()), ..Self::default() }
    }

    /// The context of an element of a list in a field of a struct; says whether the element is a
    /// row group or a column chunk.
    fn element(&self, parent: &str, field: &str, index: usize) -> Option<Self> {
        let row_group = match (parent, field) {
            ("FileMetaData", "row_groups") => {
                return Some(Self { row_group: Some(index), ..self.clone() });
            }
            ("RowGroup", "columns") => self.row_group,
            _ => return None,
        };
        let column = self.footer.as_ref().and_then(|of| ShownColumn::new(of, index).ok());
        Some(Self { column: column.map(Arc::new), row_group, ..self.clone() })
    }
}

/// Bytes of the struct at the start of `bytes`; all of them where it is not whole.
pub(super) fn struct_len(bytes: &[u8]) -> usize {
    let mut reader = ThriftReader::new(bytes);
    reader.skip_struct().map_or(bytes.len(), |()| reader.position())
}

/// A struct of the metadata of type `T`, at the start of `cutter`.
pub(super) fn cut<T: Describe>(
    cutter: &mut Cutter,
    kind: SpanKind,
    name: &'static str,
    context: Context,
) -> Span {
    let len = struct_len(cutter.rest());
    let span = cutter.cut(len, kind, name);
    span.with_parts(move |cutter| fields::<T>(cutter, context.clone()))
}

/// A module that was decrypted: a struct of type `T`, and what follows it.
pub(super) fn decrypted<T: Describe>(
    plain: Bytes,
    kind: SpanKind,
    name: &'static str,
    context: Context,
) -> Spans {
    let mut cutter = Cutter::new(plain, 0);
    let span = cut::<T>(&mut cutter, kind, name, context);
    let rest = cutter.cut_rest(SpanKind::Unused, "unused");
    Spans::infallible([span].into_iter().chain(rest))
}

/// The fields of a struct of type `T`, which `cutter` begins with, and what follows them.
pub(super) fn fields<T: Describe>(cutter: Cutter, context: Context) -> Spans {
    let of = match T::DESCRIPTION {
        Description::Struct(of) => Some(of),
        _ => None,
    };
    Spans::infallible(Fields::new(cutter, of, context))
}

/// The fields of a struct.
struct Fields {
    cutter: Cutter,
    of: Option<&'static StructDescription>,
    context: Context,
    /// How many values are around the fields that no description knows.
    unknown_depth: u32,
    last: i16,
    is_done: bool,
}

impl Fields {
    fn new(cutter: Cutter, of: Option<&'static StructDescription>, context: Context) -> Self {
        Self { cutter, of, context, unknown_depth: 0, last: 0, is_done: false }
    }

    /// The same, inside this many values that no description knows.
    fn at_depth(self, unknown_depth: u32) -> Self {
        Self { unknown_depth, ..self }
    }

    fn next_field(&mut self) -> Result<Span> {
        let rest = self.cutter.rest().clone();
        let mut reader = ThriftReader::new(&rest);
        let Some(field) = reader.field(self.last)? else {
            self.is_done = true;
            return Ok(self.cutter.cut(1, SpanKind::Stop, "end"));
        };
        self.last = field.id;
        let header = reader.position();
        let known = self.of.and_then(|of| of.fields.iter().find(|known| known.id == field.id));
        let description = known.map(|known| known.value).filter(|known| fits(known, field.ty));
        let name: Cow<'static, str> = match known {
            Some(known) => known.name_in_specification().into(),
            None => format!("field {}", field.id).into(),
        };
        let place = ElementPlace { parent: self.of.map_or("", |of| of.name), field: name.clone() };
        let payload = rest.slice(header..);
        let len = match (reader.skip(field.ty), is_nested(field.ty)) {
            (Ok(()), _) => reader.position(),
            // What is broken lies inside it.
            (Err(_), true) => rest.len(),
            (Err(error), false) => return Err(error),
        };
        let ty = field.ty;
        let mut span =
            self.value(StoredValue { len, header, payload, ty, description, name, place });
        span.field = Some(FieldOfMetadata {
            id: field.id,
            thrift_type: description.map_or_else(|| wire_name(field.ty), |of| type_name(&of)),
        });
        if let Some(meaning) = known.and_then(meaning) {
            span.text = Some(match span.text {
                Some(text) => format!("{text}: {meaning}").into(),
                None => meaning.into(),
            });
        }
        Ok(span)
    }

    fn value(&mut self, value: StoredValue) -> Span {
        if !is_nested(value.ty) {
            return self.scalar_span(&value);
        }
        // Those that are described are nested as deep as the format says.
        let depth = self.unknown_depth + u32::from(value.description.is_none());
        if depth > ThriftReader::MAX_DEPTH {
            let span = self.cutter.cut(value.len, SpanKind::Unparsed, value.name);
            return span
                .with_text(format!("it is nested more than {} deep", ThriftReader::MAX_DEPTH));
        }
        match value.ty {
            wire::STRUCT => self.struct_span(value, depth),
            _ => self.list_span(value, depth),
        }
    }

    fn struct_span(&mut self, value: StoredValue, depth: u32) -> Span {
        let of = match value.description {
            Some(Description::Struct(of)) => Some(of),
            _ => None,
        };
        let span = self.cutter.cut(value.len, SpanKind::Struct, value.name);
        let span = span.with_any_text(of.map(|of| of.name).filter(|name| !name.is_empty()));
        let (header, context) = (value.header, self.context.clone());
        span.with_parts(move |mut cutter| {
            let head =
                (header > 0).then(|| cutter.cut(header, SpanKind::FieldHeader, "field header"));
            let fields = Self::new(cutter, of, context.clone()).at_depth(depth);
            Spans::infallible(head.into_iter().chain(fields))
        })
    }

    fn list_span(&mut self, value: StoredValue, depth: u32) -> Span {
        let StoredValue { len, header, payload, ty, description, name, place } = value;
        let of = match description {
            Some(Description::List(of)) => Some(*of),
            _ => None,
        };
        // The type and the number of the elements, and the bytes that say so.
        let size = move |bytes: &[u8]| {
            let mut reader = ThriftReader::new(bytes);
            let size = if ty == wire::MAP { None } else { reader.list().ok() };
            size.map(|(element, n)| (element, n, reader.position()))
        };
        let span = self.cutter.cut(len, SpanKind::List, name);
        let context = self.context.clone();
        let span = match size(&payload) {
            Some((_, n, _)) => span.with_count(n),
            None => span,
        };
        span.with_parts(move |mut cutter| {
            let list = cutter.rest().get(header..).unwrap_or_default();
            let Some((element, n, len)) = size(list) else {
                let unparsed = cutter.unparsed("a list or a map that cannot be read");
                return Spans::infallible(unparsed.into_iter());
            };
            let head = cutter.cut(header + len, SpanKind::FieldHeader, "list header");
            let elements = ElementSpans {
                fields: Self::new(cutter, None, context.clone()).at_depth(depth),
                ty: element,
                of: of.filter(|of| fits(of, element)),
                place: place.clone(),
                next: 0,
                n,
            };
            let head = head.with_value(Value::UInt(n as u64));
            Spans::infallible(std::iter::once(head).chain(elements))
        })
    }

    fn scalar_span(&mut self, of: &StoredValue) -> Span {
        let is_element = of.header == 0;
        let kind = if is_element { SpanKind::Element } else { SpanKind::Field };
        let (value, text) = self.scalar(&of.payload, of.ty, is_element, of.description, &of.place);
        let mut span = self.cutter.cut(of.len, kind, of.name.clone());
        span.value = value;
        span.with_any_text(text)
    }

    /// A value that holds no others, and what its number stands for.
    fn scalar(
        &self,
        payload: &Bytes,
        ty: u8,
        is_element: bool,
        description: Option<Description>,
        place: &ElementPlace,
    ) -> (Option<Value>, Option<String>) {
        let mut reader = ThriftReader::new(payload);
        let int = |number: i64| Some(Value::Int(number));
        let value = match ty {
            wire::TRUE | wire::FALSE if is_element => {
                reader.u8().ok().map(|byte| Value::Bool(byte == 1))
            }
            wire::TRUE => Some(Value::Bool(true)),
            wire::FALSE => Some(Value::Bool(false)),
            wire::I8 => reader.u8().ok().and_then(|byte| int(byte.cast_signed().into())),
            wire::I16 => reader.i16().ok().and_then(|number| int(number.into())),
            wire::I32 => reader.i32().ok().and_then(|number| int(number.into())),
            wire::I64 => reader.i64().ok().and_then(int),
            wire::DOUBLE => {
                payload.first_chunk().map(|bytes| Value::Double(f64::from_le_bytes(*bytes)))
            }
            wire::BINARY => match reader.binary() {
                Ok(bytes) => return self.binary(payload.slice_ref(bytes), description, place),
                Err(_) => None,
            },
            _ => None,
        };
        let text = match (&value, description) {
            (Some(Value::Int(number)), Some(Description::Enum(of))) => {
                i32::try_from(*number).ok().map(of.text)
            }
            (Some(Value::Int(number)), _) if place.field == "crc" => {
                i32::try_from(*number).ok().map(|crc| format!("{:#010x}", crc.cast_unsigned()))
            }
            _ => None,
        };
        (value, text)
    }

    fn binary(
        &self,
        bytes: Bytes,
        description: Option<Description>,
        place: &ElementPlace,
    ) -> (Option<Value>, Option<String>) {
        let is_bound = matches!(
            &*place.field,
            "min" | "max" | "min_value" | "max_value" | "min_values" | "max_values"
        );
        if let Some(column) = self.context.column.as_ref().filter(|_| is_bound) {
            if bytes.is_empty() {
                return (Some(Value::Bytes(bytes)), None);
            }
            let shown = column.plain(bytes);
            return (Some(shown.value), shown.text);
        }
        let value = match description {
            Some(Description::Text) => Text::new(bytes).map_or_else(Value::Bytes, Value::Text),
            _ => Value::Bytes(bytes),
        };
        (Some(value), None)
    }
}

impl Iterator for Fields {
    type Item = Span;

    fn next(&mut self) -> Option<Span> {
        if self.is_done {
            return self.cutter.cut_rest(SpanKind::Unused, "unused");
        }
        match self.next_field() {
            Ok(span) => Some(span),
            Err(error) => {
                self.is_done = true;
                self.cutter.unparsed(error.message())
            }
        }
    }
}

/// A field of a struct, or an element of a list.
struct StoredValue {
    /// Bytes of all of it.
    len: usize,
    /// Bytes of its field header; none of an element.
    header: usize,
    /// The bytes after the header, and what follows them.
    payload: Bytes,
    ty: u8,
    description: Option<Description>,
    name: Cow<'static, str>,
    place: ElementPlace,
}

/// The field of a struct that holds a list.
#[derive(Clone)]
struct ElementPlace {
    parent: &'static str,
    field: Cow<'static, str>,
}

/// The elements of a list.
struct ElementSpans {
    fields: Fields,
    ty: u8,
    of: Option<Description>,
    place: ElementPlace,
    next: usize,
    n: usize,
}

impl Iterator for ElementSpans {
    type Item = Span;

    fn next(&mut self) -> Option<Span> {
        if self.next == self.n {
            return self.fields.cutter.cut_rest(SpanKind::Unused, "unused");
        }
        let index = self.next;
        let payload = self.fields.cutter.rest().clone();
        let mut reader = ThriftReader::new(&payload);
        let skipped = match self.ty {
            // In a list it takes a byte.
            wire::TRUE | wire::FALSE => reader.skip_bytes(1),
            ty => reader.skip(ty),
        };
        let len = match (skipped, is_nested(self.ty)) {
            (Ok(()), _) => reader.position(),
            (Err(_), true) => payload.len(),
            (Err(error), false) => {
                self.next = self.n;
                return self.fields.cutter.unparsed(error.message());
            }
        };
        if payload.is_empty() {
            self.next = self.n;
            return None;
        }
        self.next += 1;
        let inner = self.fields.context.element(self.place.parent, &self.place.field, index);
        let name = format!("{}[{index}]", self.place.field).into();
        let (ty, description, place) = (self.ty, self.of, self.place.clone());
        let value = StoredValue { len, header: 0, payload, ty, description, name, place };
        let Some(inner) = inner else { return Some(self.fields.value(value)) };
        let outer = std::mem::replace(&mut self.fields.context, inner);
        let mut span = self.fields.value(value);
        let inner = std::mem::replace(&mut self.fields.context, outer);
        span.row_group = inner.row_group;
        span.leaf = inner.column.as_ref().map(|column| column.leaf.index);
        span.column = inner.column.map(|column| column.path.clone());
        Some(span)
    }
}

/// Whether values of this wire type hold others.
fn is_nested(ty: u8) -> bool {
    matches!(ty, wire::LIST | wire::SET | wire::MAP | wire::STRUCT)
}

/// Whether a field of this wire type is such a value.
fn fits(of: &Description, ty: u8) -> bool {
    match of {
        Description::Bool => matches!(ty, wire::TRUE | wire::FALSE),
        Description::I8 => ty == wire::I8,
        Description::I16 => ty == wire::I16,
        Description::I32 | Description::Enum(_) => ty == wire::I32,
        Description::I64 => ty == wire::I64,
        Description::Double => ty == wire::DOUBLE,
        Description::Binary | Description::Text => ty == wire::BINARY,
        Description::List(_) => ty == wire::LIST,
        Description::Struct(_) => ty == wire::STRUCT,
    }
}

fn type_name(of: &Description) -> &'static str {
    match of {
        Description::Bool => "bool",
        Description::I8 => "i8",
        Description::I16 => "i16",
        Description::I32 => "i32",
        Description::I64 => "i64",
        Description::Double => "double",
        Description::Binary => "binary",
        Description::Text => "string",
        Description::Enum(of) => of.name,
        Description::List(_) => "list",
        Description::Struct(of) if of.name.is_empty() => "struct",
        Description::Struct(of) => of.name,
    }
}

fn wire_name(ty: u8) -> &'static str {
    match ty {
        wire::TRUE | wire::FALSE => "bool",
        wire::I8 => "i8",
        wire::I16 => "i16",
        wire::I32 => "i32",
        wire::I64 => "i64",
        wire::DOUBLE => "double",
        wire::BINARY => "binary",
        wire::LIST => "list",
        wire::SET => "set",
        wire::MAP => "map",
        wire::STRUCT => "struct",
        wire::UUID => "uuid",
        _ => "unknown",
    }
}

/// What a field means: its documentation, without the links.
fn meaning(field: &FieldDescription) -> Option<String> {
    let mut out = String::new();
    for attribute in field.attributes {
        // `doc = "…"`, or with `r"…"`, on one line or two.
        let literal = attribute.strip_prefix("doc").and_then(|rest| rest.split_once('"'));
        let line = literal.map(|(_, text)| text.trim_end_matches(['#', '"']).trim());
        let Some(line) = line.filter(|line| !line.is_empty()) else { break };
        out.push_str(if out.is_empty() { "" } else { " " });
        out.push_str(line);
    }
    // Of a link, the text is left.
    while let Some((before, rest)) = out.split_once("](") {
        let Some((_, after)) = rest.split_once(')') else { break };
        out = format!("{}{after}", before.replacen("[`", "", 1).replacen('[', "", 1));
    }
    let out = out.replace("[`", "").replace("`]", "").replace('`', "");
    (!out.is_empty()).then_some(out)
}

/// A list of numbers, as the value of a span.
pub(super) fn numbers(values: Vec<Value>) -> Value {
    let values: Arc<[Value]> = values.into();
    Value::List(Items::new(values.len() as u64, move || {
        let values = values.clone();
        (0..values.len()).filter_map(move |i| values.get(i).cloned())
    }))
}
