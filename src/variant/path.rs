//! [`VariantPath`]: the path to a part of a value.

use std::fmt::{self, Write as _};
use std::str::FromStr;

use super::value::Variant;
use crate::error::{Error, Result, quoted};

/// The path to a part of a value: fields of objects by name, elements of arrays by index.
///
/// As text it begins with `$`, which may be left out: `$.a[3].b` or `a[3].b`. A name with other
/// characters than letters, digits, `_` and `-` is quoted, and has the escapes of JSON and `\'`:
/// `$['odd name'][0]`.
///
/// ```
/// use marquetry::variant::{Variant, VariantBuilder, VariantPath};
///
/// # fn main() -> marquetry::Result<()> {
/// let path: VariantPath = "$.tags[1]['odd name']".parse()?;
/// let mut builder = VariantBuilder::new();
/// builder.append_json(r#"{"tags": [0, {"odd name": "found"}]}"#)?;
/// let value = builder.finish()?;
/// assert_eq!(value.as_variant().get_path(&path)?, Some(Variant::String("found")));
/// assert_eq!(path.to_string(), "$.tags[1]['odd name']");
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct VariantPath {
    steps: Vec<VariantStep>,
}

/// A step of a [`VariantPath`].
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum VariantStep {
    /// The field of an object.
    Field(String),
    /// The element of an array, from 0.
    Index(usize),
}

impl VariantPath {
    /// The path of these steps; without steps, the value itself.
    pub fn new(steps: impl IntoIterator<Item = VariantStep>) -> Self {
        Self { steps: steps.into_iter().collect() }
    }

    /// The steps, from the outermost on.
    pub fn steps(&self) -> &[VariantStep] {
        &self.steps
    }
}

impl<'a> Variant<'a> {
    /// The part at a path; `None` if a field or an element is missing, or a value on the path is no
    /// object or no array.
    ///
    /// # Errors
    /// As [`Variant::new`].
    pub fn get_path(&self, path: &VariantPath) -> Result<Option<Self>> {
        let mut value = *self;
        for step in path.steps() {
            let part = match (step, value) {
                (VariantStep::Field(name), Variant::Object(object)) => object.get(name)?,
                (VariantStep::Index(i), Variant::List(list)) if *i < list.len() => {
                    Some(list.get(*i)?)
                }
                _ => None,
            };
            let Some(part) = part else { return Ok(None) };
            value = part;
        }
        Ok(Some(value))
    }
}

/// Whether a name is shown without quotes.
fn is_plain(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-'))
}

impl fmt::Display for VariantPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('$')?;
        for step in &self.steps {
            match step {
                VariantStep::Field(name) if is_plain(name) => write!(f, ".{name}")?,
                VariantStep::Field(name) => {
                    f.write_str("['")?;
                    for c in name.chars() {
                        match c {
                            '\'' | '\\' => write!(f, "\\{c}")?,
                            '\n' => f.write_str("\\n")?,
                            '\r' => f.write_str("\\r")?,
                            '\t' => f.write_str("\\t")?,
                            '\0'..='\x1f' => write!(f, "\\u{:04x}", u32::from(c))?,
                            _ => f.write_char(c)?,
                        }
                    }
                    f.write_str("']")?;
                }
                VariantStep::Index(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}

impl FromStr for VariantPath {
    type Err = Error;

    /// # Errors
    /// `Usage` with the byte where the text is no path.
    fn from_str(text: &str) -> Result<Self> {
        let mut parser = PathParser { text, rest: text };
        let mut steps = Vec::new();
        // The sign of the root, unless a name begins with it.
        match text.strip_prefix('$') {
            Some(rest) if rest.is_empty() || rest.starts_with(['.', '[']) => parser.rest = rest,
            _ if text.is_empty() => return Err(parser.wrong("a path is empty; `$` is the value")),
            _ if text.starts_with('[') => {}
            _ => steps.push(parser.name()?),
        }
        while let Some(c) = parser.next() {
            steps.push(match c {
                '.' => parser.name()?,
                '[' => parser.bracket()?,
                _ => return Err(parser.wrong("expected `.name`, `[0]` or `['name']`")),
            });
        }
        Ok(Self { steps })
    }
}

struct PathParser<'a> {
    text: &'a str,
    rest: &'a str,
}

impl PathParser<'_> {
    fn next(&mut self) -> Option<char> {
        let mut chars = self.rest.chars();
        let c = chars.next();
        self.rest = chars.as_str();
        c
    }

    /// A name without quotes.
    fn name(&mut self) -> Result<VariantStep> {
        let end = self.rest.find(['.', '[', ']', '\'', '"', '\\']).unwrap_or(self.rest.len());
        let (name, rest) = self.rest.split_at(end);
        match name {
            "" => Err(self.wrong("expected a name; quote other characters: `['a.b']`")),
            "*" => Err(self.wrong(
                "a path leads to one part, so `*` is not supported; a field of \
                                   this name is `['*']`",
            )),
            _ => {
                self.rest = rest;
                Ok(VariantStep::Field(name.to_owned()))
            }
        }
    }

    /// An index or a name in quotes, and the bracket after it.
    fn bracket(&mut self) -> Result<VariantStep> {
        let step = if let Some(quote) = self.rest.chars().next().filter(|c| matches!(c, '\'' | '"'))
        {
            self.next();
            VariantStep::Field(self.quoted(quote)?)
        } else {
            let end = self.rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(self.rest.len());
            let (digits, rest) = self.rest.split_at(end);
            let index = digits.parse().map_err(|_| {
                self.wrong("expected an index, from 0 on, or a name in quotes: `['name']`")
            })?;
            self.rest = rest;
            VariantStep::Index(index)
        };
        match self.rest.strip_prefix(']') {
            Some(rest) => self.rest = rest,
            None => return Err(self.wrong("expected `]`")),
        }
        Ok(step)
    }

    /// The rest of a name in quotes.
    fn quoted(&mut self, quote: char) -> Result<String> {
        let mut name = String::new();
        loop {
            match self.next() {
                Some(c) if c == quote => return Ok(name),
                Some('\\') => name.push(self.escape()?),
                Some(c) => name.push(c),
                None => return Err(self.wrong("a quoted name has no closing quote")),
            }
        }
    }

    fn escape(&mut self) -> Result<char> {
        Ok(match self.next() {
            Some(same @ ('\'' | '"' | '\\' | '/')) => same,
            Some('b') => '\u{8}',
            Some('f') => '\u{c}',
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some('u') => {
                let first = self.unit()?;
                let pair = matches!(first, 0xd800..=0xdbff) && self.rest.starts_with("\\u");
                let code = if pair {
                    self.rest = &self.rest[2..];
                    let second = self.unit()?;
                    char::decode_utf16([first, second]).next().and_then(Result::ok)
                } else {
                    char::from_u32(first.into())
                };
                code.ok_or_else(|| self.wrong("an escaped surrogate without its pair"))?
            }
            _ => {
                return Err(
                    self.wrong("an escape is one of \\' \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\u")
                );
            }
        })
    }

    fn unit(&mut self) -> Result<u16> {
        let digits = self.rest.get(..4).filter(|d| d.bytes().all(|b| b.is_ascii_hexdigit()));
        let unit = digits.and_then(|digits| u16::from_str_radix(digits, 16).ok());
        let unit =
            unit.ok_or_else(|| self.wrong("expected four hexadecimal digits after `\\u`"))?;
        self.rest = &self.rest[4..];
        Ok(unit)
    }

    #[cold]
    fn wrong(&self, what: &str) -> Error {
        let at = self.text.len() - self.rest.len();
        Error::usage(format_args!("the path {}, at byte {at}: {what}", quoted(self.text)))
    }
}
