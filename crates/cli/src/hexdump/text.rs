//! Spans as text: bytes on the left, what they mean on the right, indented by their depth.

use std::borrow::Cow;
use std::io::Write;

use marquetry::inspect::{Span, SpanKind, Value};

use super::dump::Dump;
use crate::args::Global;
use crate::escape::escape;
use crate::failure::{Failure, Result};
use crate::output::Sink;
use crate::table::{Style, cut, width};

/// How wide things are.
pub(super) struct DumpLayout {
    /// Digits of an offset.
    digits: usize,
    /// Bytes on a line.
    bytes: usize,
    /// Columns for what bytes mean; any number if there is no screen.
    meaning: Option<usize>,
    /// Columns of a level of depth.
    indent: usize,
    has_colors: bool,
    /// Whether all bytes are shown.
    is_wide: bool,
}

/// Columns of a screen from which on it has room for 16 bytes and a sentence.
const WIDE_SCREEN: usize = 120;

impl DumpLayout {
    pub(super) fn new(file_len: u64, bytes: Option<usize>, style: Style, global: &Global) -> Self {
        let screen = style.screen();
        let is_narrow = screen.is_some_and(|columns| columns < WIDE_SCREEN);
        let bytes = bytes.unwrap_or(if is_narrow { 8 } else { 16 });
        let digits = format!("{file_len:x}").len().max(8);
        let meaning = screen.filter(|_| !global.wide);
        let meaning = meaning.map(|columns| columns.saturating_sub(digits + 3 + 3 * bytes).max(16));
        let indent = if is_narrow { 1 } else { 2 };
        Self {
            digits,
            bytes,
            meaning,
            indent,
            has_colors: style.has_colors(),
            is_wide: global.wide,
        }
    }
}

/// Prints spans.
pub(super) struct SpanPrinter<'a> {
    out: &'a mut Sink,
    dump: &'a Dump,
    layout: DumpLayout,
    /// Whether nothing was printed.
    is_first: bool,
    /// The page whose levels are not explained yet.
    page: Option<Span>,
}

/// In which bytes an offset counts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Space {
    File,
    /// What was decompressed or decrypted.
    Inside,
}

/// Lines of bytes that are shown of what has no parts, and of all else.
const OPAQUE_LINES: u64 = 4;
const LINES: u64 = 16;

impl<'a> SpanPrinter<'a> {
    pub(super) fn new(out: &'a mut Sink, dump: &'a Dump, layout: DumpLayout) -> Self {
        Self { out, dump, layout, is_first: true, page: None }
    }

    pub(super) fn print(&mut self) -> Result<()> {
        for span in self.dump.roots() {
            let Some(span) = self.dump.checked(span) else { return Ok(()) };
            self.span(&span, 0, Space::File)?;
            self.is_first = false;
        }
        Ok(())
    }

    /// Prints a span and what is inside it.
    fn span(&mut self, span: &Span, depth: usize, space: Space) -> Result<()> {
        if space == Space::File && !self.dump.wanted.has(span) {
            return Ok(());
        }
        if matches!(span.kind, SpanKind::Values | SpanKind::Compressed) {
            // The levels of the page have been printed.
            self.slots(depth)?;
        }
        let title = Title::new(span, self.dump);
        let Some(children) = self.dump.children(span) else {
            self.leaf(span, &title, depth, space)?;
            return self.inside(span, depth + 1);
        };
        let mut children = children.peekable();
        // What stands in front of a struct, a list or a value bears its title.
        let is_head = |kind| {
            kind == SpanKind::FieldHeader
                || (kind == SpanKind::Length && span.kind == SpanKind::Value)
        };
        match children.next_if(|first| first.as_ref().is_ok_and(|first| is_head(first.kind))) {
            Some(Ok(mut head)) => {
                head.kind = span.kind;
                match children.peek() {
                    Some(Ok(bytes)) if bytes.kind == SpanKind::ValueBytes => {
                        let length = bytes.length;
                        let name = format!("{}, length {length}", span.name);
                        self.leaf(&head, &Title::named(name), depth, space)?;
                        let bytes = children.next().transpose().ok().flatten();
                        let title = Title { name: String::new(), ..title };
                        return match bytes {
                            Some(bytes) => self.leaf(&bytes, &title, depth + 1, space),
                            None => Ok(()),
                        };
                    }
                    _ => self.leaf(&head, &title, depth, space)?,
                }
            }
            _ if is_heading(span.kind) => {
                if depth == 0 && !self.is_first {
                    writeln!(self.out)?;
                }
                let offset = Some((span.offset, space));
                self.heading(offset, &title, span.kind, depth)?;
            }
            _ => self.line(Some(span.offset), &[], &title, span.kind, depth, space)?,
        }
        self.notes(span, depth + 1)?;
        if span.has_slots() && self.dump.shows_levels() {
            self.page = Some(span.clone());
        }
        for child in children {
            let Some(child) = self.dump.checked(child) else { return Ok(()) };
            self.span(&child, depth + 1, space)?;
        }
        self.inside(span, depth + 1)?;
        if span.has_slots() {
            // No values came after the levels.
            self.slots(depth + 2)?;
        }
        Ok(())
    }

    /// Prints what a span decrypts or decompresses to.
    fn inside(&mut self, span: &Span, depth: usize) -> Result<()> {
        let (decrypted, decompressed) = (self.dump.decrypted(span), self.dump.decompressed(span));
        for (what, spans) in [("decrypted", decrypted), ("decompressed", decompressed)] {
            let Some(spans) = spans else { continue };
            let title = Title::named(what.to_owned());
            self.heading(None, &title, SpanKind::Compressed, depth)?;
            for span in spans {
                let Some(span) = self.dump.checked(span) else { return Ok(()) };
                self.span(&span, depth + 1, Space::Inside)?;
            }
        }
        Ok(())
    }

    /// Prints what else there is to say of a span.
    fn notes(&mut self, span: &Span, depth: usize) -> Result<()> {
        for reference in &span.references {
            let place = match (&reference.row_group, &reference.column) {
                (Some(row_group), Some(column)) => format!(" of row group {row_group}, {column}"),
                _ => String::new(),
            };
            let text = format!(
                "{} bytes at {:#x}, {}{place}",
                reference.length,
                reference.offset,
                reference.kind.name().replace('_', " ")
            );
            let title = Title { name: "also claimed".to_owned(), value: None, text: Some(text) };
            self.line(None, &[], &title, SpanKind::Unparsed, depth, Space::File)?;
        }
        Ok(())
    }

    /// Prints what the levels of the page mean, unless that was done.
    fn slots(&mut self, depth: usize) -> Result<()> {
        let Some(page) = self.page.take() else { return Ok(()) };
        for slot in page.slots().into_iter().flatten() {
            let slot = match slot {
                Ok(slot) => slot,
                Err(error) => {
                    self.dump.checked::<Span>(Err(error));
                    return Ok(());
                }
            };
            let name = match slot.count {
                1 => format!("slot {}", slot.first),
                n => format!("slots {} to {}", slot.first, slot.first + n - 1),
            };
            let title = Title { name, value: Some(slot.text), text: None };
            self.heading(None, &title, SpanKind::DefinitionLevels, depth)?;
        }
        Ok(())
    }

    /// Prints the bytes of a leaf.
    fn leaf(&mut self, span: &Span, title: &Title, depth: usize, space: Space) -> Result<()> {
        let part = match space {
            Space::File => self.dump.wanted.part(span),
            Space::Inside => span.offset..span.end(),
        };
        let per_line = self.layout.bytes.max(1) as u64;
        let most = if is_opaque(span.kind) { OPAQUE_LINES } else { LINES };
        let shown = match part.end.saturating_sub(part.start) {
            all if self.layout.is_wide || all <= most * per_line => all,
            // The line that says how many are left out takes the place of one.
            _ => (most - 1) * per_line,
        };
        let end = part.start + shown;
        if shown == 0 {
            return self.line(Some(span.offset), &[], title, span.kind, depth, space);
        }
        let (mut at, mut line) = (span.offset, Vec::new());
        let empty = Title::named(String::new());
        let (mut line_start, mut title) = (part.start, title);
        'all: for bytes in span.bytes() {
            let bytes = match bytes {
                Ok(bytes) => bytes,
                Err(error) => {
                    self.dump.checked::<Span>(Err(error));
                    return Ok(());
                }
            };
            for byte in bytes {
                if at >= end {
                    break 'all;
                }
                if at >= part.start {
                    line.push(byte);
                }
                at += 1;
                if line.len() as u64 == per_line {
                    self.line(Some(line_start), &line, title, span.kind, depth, space)?;
                    (line_start, title) = (at, &empty);
                    line.clear();
                }
            }
        }
        if !line.is_empty() {
            self.line(Some(line_start), &line, title, span.kind, depth, space)?;
        }
        let left = part.end.saturating_sub(end);
        if left > 0 {
            let more = Title::named(format!("… {left} bytes more, --wide shows them"));
            self.line(Some(end), &[], &more, SpanKind::Gap, depth, space)?;
        }
        Ok(())
    }

    /// Prints the line of what has bytes only in its parts, over the whole width.
    fn heading(
        &mut self,
        offset: Option<(u64, Space)>,
        title: &Title,
        kind: SpanKind,
        depth: usize,
    ) -> Result<()> {
        let DumpLayout { digits, bytes, meaning, .. } = self.layout;
        let (color, dim, plain) = self.colors(kind);
        let space = offset.map_or(Space::Inside, |(_, space)| space);
        let offset = self.offset(offset.map(|(offset, _)| offset), space);
        let room = meaning.map(|columns| columns + 3 * bytes + 1);
        let indent = " ".repeat(depth);
        let lines = title.lines(room.map(|room| room.saturating_sub(depth)), kind);
        let text = lines.first().map(|line| line.painted(color, dim, plain)).unwrap_or_default();
        let line = format!("{dim}{offset:<digits$}{plain}  {indent}{text}");
        writeln!(self.out, "{}", line.trim_end()).map_err(Failure::from)
    }

    fn colors(&self, kind: SpanKind) -> (&'static str, &'static str, &'static str) {
        if self.layout.has_colors { (color(kind), "\x1b[2m", "\x1b[0m") } else { ("", "", "") }
    }

    fn offset(&self, offset: Option<u64>, space: Space) -> String {
        let digits = self.layout.digits;
        match (offset, space) {
            (None, _) => String::new(),
            (Some(offset), Space::File) => format!("{offset:0digits$x}"),
            (Some(offset), Space::Inside) => format!("+{offset:0width$x}", width = digits - 1),
        }
    }

    /// Prints a line, and more below it if the text must be read to its end.
    fn line(
        &mut self,
        offset: Option<u64>,
        bytes: &[u8],
        title: &Title,
        kind: SpanKind,
        depth: usize,
        space: Space,
    ) -> Result<()> {
        let DumpLayout { digits, bytes: per_line, meaning, indent, .. } = self.layout;
        let (color, dim, plain) = self.colors(kind);
        let offset = self.offset(offset, space);
        let hex: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let hex = hex.join(" ");
        let hex_width = 3 * per_line - 1;
        // A deep one leaves half of the place.
        let most = meaning.map_or(usize::MAX, |columns| columns / 2);
        let indent = (depth * indent).min(most);
        let lines = title.lines(meaning.map(|columns| columns.saturating_sub(indent)), kind);
        for (i, line) in lines.iter().enumerate() {
            let (offset, hex) = if i == 0 { (&*offset, &*hex) } else { ("", "") };
            let text = line.painted(color, dim, plain);
            let line = format!(
                "{dim}{offset:<digits$}{plain}  {color}{hex:<hex_width$}{plain}  {:indent$}{text}",
                "",
            );
            writeln!(self.out, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

/// What a line says: a name, a value, and what that means.
struct Title {
    name: String,
    value: Option<String>,
    text: Option<String>,
}

/// A line that fits.
struct Line {
    name: String,
    value: String,
    text: String,
}

impl Line {
    fn painted(&self, color: &str, dim: &str, plain: &str) -> String {
        let Self { name, value, text } = self;
        format!("{color}{name}{plain}{value}{dim}{text}{plain}")
    }
}

impl Title {
    fn named(name: String) -> Self {
        Self { name, value: None, text: None }
    }

    /// What a span is, and what it means.
    fn new(span: &Span, dump: &Dump) -> Self {
        let mut name = match (span.row_group, &span.column, span.kind) {
            (Some(row_group), Some(column), SpanKind::ColumnChunk) => {
                format!("column chunk {column} of row group {row_group}")
            }
            (Some(_), Some(column), kind) if is_of_column(kind) => {
                format!("{} of {column}", span.name)
            }
            _ => span.name.to_string(),
        };
        if has_parts(span) {
            name.push_str(&format!(", {}", counted(span.length, "byte")));
        }
        let value = span.value.as_ref().map(show);
        let value = match (span.kind, span.count, value) {
            (SpanKind::RleRun | SpanKind::BitPackedRun, Some(count), Some(value)) => {
                Some(format!("{count} × {value}"))
            }
            (SpanKind::List, Some(count), None) => Some(counted(count, "element")),
            (_, _, value) => value,
        };
        let mut text = span.text.as_ref().map(|text| text.to_string());
        if dump.shows_levels()
            && let Some(checksum) = span.checksum()
            && let Some(sums) = dump.checked(checksum)
        {
            let sums = match sums.stated == sums.found {
                true => "its checksum is right".to_owned(),
                false => format!(
                    "its checksum is WRONG: {:#010x} is stated, {:#010x} found",
                    sums.stated, sums.found
                ),
            };
            text = Some(match text {
                Some(text) => format!("{text}; {sums}"),
                None => sums,
            });
        }
        Self { name, value, text }
    }

    /// The lines that it takes in these columns. What cannot be parsed is explained to the end; of
    /// other texts, as many clauses are shown as fit.
    fn lines(&self, columns: Option<usize>, kind: SpanKind) -> Vec<Line> {
        let name = escape(&self.name).into_owned();
        let value = match &self.value {
            Some(value) if name.is_empty() => escape(value).into_owned(),
            Some(value) => format!(": {}", escape(value)),
            None => String::new(),
        };
        let text = self.text.as_deref().map(escape).unwrap_or_default();
        let Some(columns) = columns else {
            let text = if text.is_empty() { String::new() } else { format!("  {text}") };
            return vec![Line { name, value, text }];
        };
        let name = cut(&name, columns).into_owned();
        let value = cut(&value, columns.saturating_sub(width(&name))).into_owned();
        let left = columns.saturating_sub(width(&name) + width(&value) + 2);
        if kind == SpanKind::Unparsed {
            let mut lines = wrap(&text, left, columns).into_iter();
            let first = lines.next().map_or_else(String::new, |first| format!("  {first}"));
            let mut out = vec![Line { name, value, text: first }];
            let below = |text| Line { name: String::new(), value: String::new(), text };
            out.extend(lines.map(below));
            return out;
        }
        let text = match &*clauses(&text, left) {
            "" => String::new(),
            text => format!("  {text}"),
        };
        vec![Line { name, value, text }]
    }
}

/// As many clauses of a text as fit. Where a list is cut, that is marked.
fn clauses(text: &str, columns: usize) -> Cow<'_, str> {
    if width(text) <= columns {
        return text.trim_end_matches('.').into();
    }
    let ends = text
        .match_indices([';', ',', '.', ':'])
        .filter(|(at, _)| text.get(at + 1..).is_some_and(|rest| rest.starts_with(' ')));
    let fitting = ends.map(|(at, _)| text.get(..at).unwrap_or_default());
    let fitting = fitting.take_while(|text| width(text) < columns).last().unwrap_or_default();
    match text.get(fitting.len()..).is_some_and(|rest| rest.starts_with(',')) {
        true => format!("{fitting}…").into(),
        false => fitting.into(),
    }
}

/// A text in lines: the first of `first` columns, the others of `columns`.
fn wrap(text: &str, first: usize, columns: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let is_below = lines.len() > 1;
        let room = if is_below { columns } else { first };
        let Some(line) = lines.last_mut() else { break };
        let before = if line.is_empty() { 0 } else { width(line) + 1 };
        if before + width(word) <= room || (line.is_empty() && is_below) {
            if before > 0 {
                line.push(' ');
            }
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

/// Whether the bytes of a kind say nothing to people.
fn is_opaque(kind: SpanKind) -> bool {
    use SpanKind::{ByteStream, Ciphertext, Compressed, Gap, PageBody, Unparsed, Unused, Values};
    matches!(
        kind,
        ByteStream | Ciphertext | Compressed | Gap | PageBody | Unparsed | Unused | Values
    )
}

/// The colour of a kind: one for what is about the same thing.
fn color(kind: SpanKind) -> &'static str {
    use SpanKind as K;
    match kind {
        K::Magic | K::FooterLength | K::Length | K::Offset => "\x1b[33m",
        K::ColumnChunk | K::DictionaryPage | K::DataPage | K::DataPageV2 | K::OtherPage => {
            "\x1b[1m"
        }
        K::RepetitionLevels
        | K::DefinitionLevels
        | K::RleRun
        | K::BitPackedRun
        | K::RunHeader
        | K::Packed
        | K::BitWidth => "\x1b[35m",
        K::Values
        | K::Value
        | K::ValueBytes
        | K::ByteStream
        | K::DeltaStream
        | K::DeltaBlock
        | K::MinDelta
        | K::Miniblock
        | K::EncodingParameter
        | K::AlpVector
        | K::PforVector => "\x1b[32m",
        K::BloomFilter | K::BloomFilterHeader | K::BloomFilterBits | K::BloomFilterBlock => {
            "\x1b[34m"
        }
        K::Module | K::Nonce | K::Ciphertext | K::Tag | K::Signature => "\x1b[31m",
        K::Unparsed => "\x1b[1;31m",
        K::Gap | K::Unused | K::Stop | K::FieldHeader => "\x1b[2m",
        _ => "\x1b[36m",
    }
}

fn counted(n: u64, what: &str) -> String {
    if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") }
}

/// Whether a span is a section of the file, whose line has no bytes.
fn is_heading(kind: SpanKind) -> bool {
    use SpanKind as K;
    matches!(
        kind,
        K::ColumnChunk
            | K::DictionaryPage
            | K::DataPage
            | K::DataPageV2
            | K::OtherPage
            | K::BloomFilter
            | K::ColumnIndex
            | K::OffsetIndex
            | K::Footer
            | K::FileMetaData
            | K::FileCryptoMetaData
            | K::Module
            | K::PageHeader
            | K::PageBody
            | K::RepetitionLevels
            | K::DefinitionLevels
            | K::Values
            | K::DeltaStream
            | K::DeltaBlock
            | K::AlpVector
            | K::PforVector
            | K::BloomFilterHeader
            | K::BloomFilterBits
    )
}

/// Whether a span is named after its column.
fn is_of_column(kind: SpanKind) -> bool {
    use SpanKind::{BloomFilter, ColumnIndex, OffsetIndex};
    matches!(kind, BloomFilter | ColumnIndex | OffsetIndex)
}

/// Whether the size of a span is said: it has parts, or is opaque.
fn has_parts(span: &Span) -> bool {
    use SpanKind as K;
    !matches!(span.kind, K::Struct | K::List | K::Value)
        && (!span.is_leaf() || is_opaque(span.kind))
}

/// Items of a list that a line may have room for.
const MAX_ITEMS: usize = 64;
/// Characters of a text that a line may have room for.
const MAX_CHARS: usize = 200;

fn show(value: &Value) -> String {
    match value {
        Value::Bool(value) => value.to_string(),
        Value::Int(value) => value.to_string(),
        Value::UInt(value) => value.to_string(),
        Value::Float(value) => value.to_string(),
        Value::Double(value) => value.to_string(),
        Value::Text(text) => quoted(text),
        Value::Bytes(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) if !text.is_empty() && !text.chars().any(char::is_control) => quoted(text),
            _ => {
                let hex = bytes.iter().take(MAX_CHARS / 2).map(|byte| format!("{byte:02x}"));
                format!("0x{}", hex.collect::<String>())
            }
        },
        Value::List(items) => {
            let mut shown: Vec<String> =
                items.iter().take(MAX_ITEMS).map(|item| show(&item)).collect();
            if items.len() > MAX_ITEMS as u64 {
                shown.push("…".to_owned());
            }
            shown.join(", ")
        }
        _ => String::new(),
    }
}

fn quoted(text: &str) -> String {
    match text.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("\"{}…\"", text.get(..end).unwrap_or_default()),
        None => format!("\"{text}\""),
    }
}
