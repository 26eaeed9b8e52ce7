//! [`VariantBuilder::append_json`] parses JSON text into a value.
//!
//! The text is read once, and appended as it is read. Open objects and arrays are kept by the
//! builder, so that no text can exhaust the stack.

use super::plain::plain_end;
use crate::error::{Error, ErrorKind, Result, Spec};
use crate::variant::build::Duplicates;
use crate::variant::{Variant, VariantBuilder};

/// How JSON text becomes values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct VariantJsonOptions {
    doubles: bool,
    duplicates: Duplicates,
}

impl Default for VariantJsonOptions {
    fn default() -> Self {
        Self { doubles: false, duplicates: Duplicates::Refuse }
    }
}

impl VariantJsonOptions {
    /// The defaults: numbers with a fraction are exact decimals, and two fields of the same name
    /// are an error.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether numbers with a fraction become doubles instead of decimals.
    #[must_use]
    pub fn with_doubles(mut self, doubles: bool) -> Self {
        self.doubles = doubles;
        self
    }

    /// Whether the last of several fields of the same name is kept; otherwise they are an error.
    #[must_use]
    pub fn with_last_duplicate(mut self, last: bool) -> Self {
        self.duplicates = if last { Duplicates::Last } else { Duplicates::Refuse };
        self
    }
}

impl VariantBuilder {
    /// Appends the value of a JSON text.
    ///
    /// An integer takes the smallest width that holds it. Larger integers, and numbers with a
    /// fraction and no exponent, become decimals with all written digits: `1.10` keeps its zero.
    /// Numbers with an exponent, or more than 38 digits, and `-0.0` become doubles. Strings stay
    /// strings, also if they look like dates.
    ///
    /// # Errors
    /// `Malformed(LogicalTypes("JSON"))` with the byte where the text is no JSON, a number is too
    /// large for a double, or an object has two fields of the same name; as
    /// [`append`](Self::append) where no value is allowed. Nothing is appended then.
    pub fn append_json(&mut self, text: &str) -> Result<()> {
        self.append_json_with(text, &VariantJsonOptions::default())
    }

    /// Like [`append_json`](Self::append_json), with options.
    ///
    /// # Errors
    /// As [`append_json`](Self::append_json).
    pub fn append_json_with(&mut self, text: &str, options: &VariantJsonOptions) -> Result<()> {
        self.all_or_nothing(|builder| {
            let mut unescaped = std::mem::take(&mut builder.unescaped);
            let mut parser =
                JsonParser { text, at: 0, unescaped: &mut unescaped, options: *options };
            let parsed = parser.document(builder);
            builder.unescaped = unescaped;
            parsed
        })
    }
}

struct JsonParser<'a> {
    text: &'a str,
    at: usize,
    /// Scratch: the last string that had escapes.
    unescaped: &'a mut String,
    options: VariantJsonOptions,
}

/// A string, or whether it is in `unescaped`.
enum JsonString<'a> {
    Plain(&'a str),
    Unescaped,
}

impl<'a> JsonParser<'a> {
    fn document(&mut self, builder: &mut VariantBuilder) -> Result<()> {
        let depth = builder.depth();
        loop {
            if self.value(builder)? && self.after_value(builder, depth)? {
                break;
            }
        }
        self.skip_blanks();
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.expected("the end")),
        }
    }

    /// Appends a scalar, or begins an object or array. Returns whether the value has ended.
    #[inline]
    fn value(&mut self, builder: &mut VariantBuilder) -> Result<bool> {
        self.skip_blanks();
        match self.peek() {
            Some(b'{') => {
                builder.begin_object()?;
                self.at += 1;
                self.skip_blanks();
                if self.peek() == Some(b'}') {
                    self.at += 1;
                    builder.end_object()?;
                    return Ok(true);
                }
                self.name(builder)?;
                return Ok(false);
            }
            Some(b'[') => {
                builder.begin_list()?;
                self.at += 1;
                self.skip_blanks();
                if self.peek() == Some(b']') {
                    self.at += 1;
                    builder.end_list()?;
                    return Ok(true);
                }
                return Ok(false);
            }
            Some(b'"') => match self.string()? {
                JsonString::Plain(text) => builder.append(text)?,
                JsonString::Unescaped => builder.append(self.unescaped.as_str())?,
            },
            Some(b'-' | b'0'..=b'9') => builder.append(self.number()?)?,
            Some(b't') => self.literal("true").and_then(|()| builder.append(true))?,
            Some(b'f') => self.literal("false").and_then(|()| builder.append(false))?,
            Some(b'n') => self.literal("null").and_then(|()| builder.append(()))?,
            _ => return Err(self.expected("a value")),
        }
        Ok(true)
    }

    /// Continues to the next value, and ends the objects and arrays before it. Returns whether the
    /// text's value has ended.
    #[inline]
    fn after_value(&mut self, builder: &mut VariantBuilder, depth: usize) -> Result<bool> {
        while builder.depth() > depth {
            self.skip_blanks();
            let is_object = builder.is_in_object();
            match self.peek() {
                Some(b',') => {
                    self.at += 1;
                    if is_object {
                        self.skip_blanks();
                        self.name(builder)?;
                    }
                    return Ok(false);
                }
                Some(b'}') if is_object => {
                    let ended = builder.end_object_with(self.options.duplicates);
                    ended.map_err(|error| self.placed(error))?;
                    self.at += 1;
                }
                Some(b']') if !is_object => {
                    builder.end_list()?;
                    self.at += 1;
                }
                _ if is_object => return Err(self.expected("',' or '}'")),
                _ => return Err(self.expected("',' or ']'")),
            }
        }
        Ok(true)
    }

    /// The name of a field, and the colon after it.
    #[inline]
    fn name(&mut self, builder: &mut VariantBuilder) -> Result<()> {
        if self.peek() != Some(b'"') {
            return Err(self.expected("a name in quotes"));
        }
        match self.string()? {
            JsonString::Plain(name) => builder.name(name)?,
            JsonString::Unescaped => builder.name(self.unescaped)?,
        }
        self.skip_blanks();
        if self.peek() != Some(b':') {
            return Err(self.expected("':'"));
        }
        self.at += 1;
        Ok(())
    }

    #[inline]
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    #[inline]
    fn skip_blanks(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.peek() {
            self.at += 1;
        }
    }

    fn literal(&mut self, word: &str) -> Result<()> {
        let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
        if !rest.starts_with(word.as_bytes()) {
            return Err(self.expected("a value"));
        }
        self.at += word.len();
        Ok(())
    }

    /// A text, whose opening quote comes next.
    #[inline]
    fn string(&mut self) -> Result<JsonString<'a>> {
        let start = self.at + 1;
        self.at = plain_end(self.text.as_bytes(), start);
        if self.peek() == Some(b'"') {
            let text = self.text.get(start..self.at).unwrap_or_default();
            self.at += 1;
            return Ok(JsonString::Plain(text));
        }
        self.escaped(start)?;
        Ok(JsonString::Unescaped)
    }

    /// A text with an escape at `self.at`.
    fn escaped(&mut self, mut start: usize) -> Result<()> {
        self.unescaped.clear();
        loop {
            self.unescaped.push_str(self.text.get(start..self.at).unwrap_or_default());
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b'\\') => {
                    self.at += 1;
                    let character = self.escape()?;
                    self.unescaped.push(character);
                }
                Some(_) => return Err(self.expected("an escape in place of a control character")),
                None => return Err(self.expected("'\"' at the end of a text")),
            }
            start = self.at;
            self.at = plain_end(self.text.as_bytes(), start);
        }
    }

    /// The character of an escape, whose backslash was read.
    fn escape(&mut self) -> Result<char> {
        let character = match self.peek() {
            Some(same @ (b'"' | b'\\' | b'/')) => char::from(same),
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.unicode(),
            _ => return Err(self.expected("an escape: one of \"\\/bfnrtu")),
        };
        self.at += 1;
        Ok(character)
    }

    /// `uXXXX`, or two of them for a character of two surrogates.
    fn unicode(&mut self) -> Result<char> {
        let start = self.at;
        let first = self.unit()?;
        let mut code = first;
        if let 0xd800..=0xdbff = first
            && self.text.as_bytes().get(self.at..self.at + 2) == Some(b"\\u")
        {
            self.at += 1;
            let second = self.unit()?;
            if let 0xdc00..=0xdfff = second {
                code = 0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00);
            }
        }
        char::from_u32(code).ok_or_else(|| {
            self.at = start;
            self.wrong("an escaped surrogate without the other one of its pair")
        })
    }

    fn unit(&mut self) -> Result<u32> {
        self.at += 1;
        let digits = self.text.get(self.at..self.at + 4);
        let digits = digits.filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
        let unit = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok());
        let unit = unit.ok_or_else(|| self.expected("four hexadecimal digits after \\u"))?;
        self.at += 4;
        Ok(unit)
    }

    #[inline]
    fn number(&mut self) -> Result<Variant<'static>> {
        let start = self.at;
        let is_negative = self.peek() == Some(b'-');
        self.at += usize::from(is_negative);
        let mut digits = Digits::default();
        let whole = self.at;
        self.digits(&mut digits)?;
        if self.at > whole + 1 && self.text.as_bytes()[whole] == b'0' {
            self.at = whole + 1;
            return Err(self.expected("no digit after a leading zero"));
        }
        let mut scale = 0;
        if self.peek() == Some(b'.') {
            self.at += 1;
            let fraction = self.at;
            self.digits(&mut digits)?;
            scale = self.at - fraction;
        }
        let has_exponent = matches!(self.peek(), Some(b'e' | b'E'));
        if has_exponent {
            self.at += 1;
            self.at += usize::from(matches!(self.peek(), Some(b'+' | b'-')));
            self.digits(&mut Digits::default())?;
        }
        if !has_exponent && digits.count <= 18 && scale == 0 {
            // 18 digits are below 2^63.
            let value = i64::try_from(digits.value).unwrap_or(0);
            return Ok(Variant::integer(if is_negative { -value } else { value }));
        }
        let text = self.text.get(start..self.at).unwrap_or_default();
        // No decimal is a negative zero.
        let exact = !has_exponent
            && digits.count <= 38
            && scale <= 38
            && !(is_negative && digits.count == 0 && scale > 0);
        if exact && (scale == 0 || !self.options.doubles) {
            let mut value = digits.value.into();
            if digits.count > 18 {
                let digits = text.bytes().filter(u8::is_ascii_digit);
                value = digits.fold(0_i128, |value, digit| value * 10 + i128::from(digit - b'0'));
            }
            let value = if is_negative { -value } else { value };
            return Ok(match (scale, i64::try_from(value)) {
                (0, Ok(value)) => Variant::integer(value),
                (scale, _) => Variant::Decimal(value, u8::try_from(scale).unwrap_or(0)),
            });
        }
        match text.parse::<f64>() {
            Ok(value) if value.is_finite() => Ok(Variant::Double(value)),
            _ => {
                self.at = start;
                Err(self.wrong("a number that is too large for a double"))
            }
        }
    }

    /// One digit or more.
    #[inline]
    fn digits(&mut self, digits: &mut Digits) -> Result<()> {
        let start = self.at;
        while let Some(digit @ b'0'..=b'9') = self.peek() {
            digits.value = digits.value.wrapping_mul(10).wrapping_add(u64::from(digit - b'0'));
            digits.count += usize::from(digits.count > 0 || digit != b'0');
            self.at += 1;
        }
        if self.at == start {
            return Err(self.expected("a digit"));
        }
        Ok(())
    }

    #[cold]
    fn expected(&self, what: &str) -> Error {
        match self.text.get(self.at..).and_then(|rest| rest.chars().next()) {
            Some(found) => self.wrong(&format!("expected {what}, found {found:?}")),
            None => self.wrong(&format!("expected {what}, found the end of the text")),
        }
    }

    #[cold]
    fn wrong(&self, what: &str) -> Error {
        let at = self.at;
        Error::malformed(Spec::LogicalTypes("JSON"), format_args!("JSON text at byte {at}: {what}"))
    }

    /// An error of the builder, with the byte of the text.
    #[cold]
    fn placed(&self, error: Error) -> Error {
        match error.kind() {
            ErrorKind::Usage => self.wrong(error.message()),
            _ => error,
        }
    }
}

/// The digits of a number.
#[derive(Default)]
struct Digits {
    /// Their value, if there are at most 19.
    value: u64,
    /// How many there are, leading zeros not counted.
    count: usize,
}
