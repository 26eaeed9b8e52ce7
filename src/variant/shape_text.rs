//! Parses and formats the text form of a [`VariantShape`].

use std::fmt;

use arrow_schema::{DataType, TimeUnit};

use super::shape::{MAX_DEPTH, NAMES, ShapeNode, VariantShape, too_deep, utc};
use crate::error::{Error, Result, quoted};

impl VariantShape {
    /// Parses the text form: `{name: shape, …}` for objects, `[shape]` for lists, `variant` for
    /// parts that are not shredded, and the names of types: `boolean`, `int8` to `int64`, `float`,
    /// `double`, `decimal(p, s)`, `date`, `time`, `timestamp`, `timestamp_ntz`, `timestamp_nanos`,
    /// `timestamp_ntz_nanos`, `binary`, `string`, `uuid`. Names of fields with other characters
    /// than letters, digits and `_` are in double quotes, as in JSON.
    ///
    /// # Errors
    /// `Usage` with the byte where the text is no shape.
    pub fn parse(text: &str) -> Result<Self> {
        let mut parser = ShapeParser { text, at: 0 };
        let shape = parser.shape(0)?;
        parser.skip_blanks();
        if parser.at < text.len() {
            return Err(parser.expected("the end"));
        }
        Ok(shape)
    }
}

impl fmt::Display for VariantShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for ShapeNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("variant"),
            Self::Scalar(DataType::Decimal128(p, s)) => write!(f, "decimal({p}, {s})"),
            Self::Scalar(DataType::Timestamp(unit, Some(_))) => f.write_str(match unit {
                TimeUnit::Nanosecond => "timestamp_nanos",
                _ => "timestamp",
            }),
            Self::Scalar(data_type) => {
                let name = NAMES.iter().find(|(_, known)| known == data_type);
                f.write_str(name.map_or("variant", |(name, _)| name))
            }
            Self::List(element) => write!(f, "[{element}]"),
            Self::Object(fields) => {
                f.write_str("{")?;
                for (i, (name, shape)) in fields.iter().enumerate() {
                    f.write_str(if i > 0 { ", " } else { "" })?;
                    if is_word(name) {
                        f.write_str(name)?;
                    } else {
                        let quoted = serde_json::Value::String(name.clone());
                        write!(f, "{quoted}")?;
                    }
                    write!(f, ": {shape}")?;
                }
                f.write_str("}")
            }
        }
    }
}

impl std::str::FromStr for VariantShape {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Self::parse(text)
    }
}

fn is_word(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'_')
}

/// Reads the text form.
struct ShapeParser<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> ShapeParser<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn skip_blanks(&mut self) {
        self.at = self.text.len() - self.rest().trim_start().len();
    }

    fn eat(&mut self, mark: char) -> bool {
        self.skip_blanks();
        let eaten = self.rest().starts_with(mark);
        self.at += if eaten { mark.len_utf8() } else { 0 };
        eaten
    }

    fn expect(&mut self, mark: char) -> Result<()> {
        if self.eat(mark) { Ok(()) } else { Err(self.expected(&format!("{mark:?}"))) }
    }

    fn expected(&self, what: &str) -> Error {
        Error::usage(format_args!(
            "shape of a VARIANT: expected {what} at byte {} of {}",
            self.at,
            quoted(self.text)
        ))
    }

    fn word(&mut self) -> &'a str {
        self.skip_blanks();
        let rest = self.rest();
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let word = &rest[..end.unwrap_or(rest.len())];
        self.at += word.len();
        word
    }

    fn shape(&mut self, depth: usize) -> Result<VariantShape> {
        if depth > MAX_DEPTH {
            return Err(too_deep());
        }
        if self.eat('[') {
            let element = self.shape(depth + 1)?;
            self.expect(']')?;
            return VariantShape::list(element);
        }
        if self.eat('{') {
            let mut fields = Vec::new();
            loop {
                let name = self.name()?;
                self.expect(':')?;
                fields.push((name, self.shape(depth + 1)?));
                if !self.eat(',') {
                    break;
                }
            }
            self.expect('}')?;
            return VariantShape::object(fields);
        }
        self.type_name()
    }

    fn type_name(&mut self) -> Result<VariantShape> {
        let begin = self.at;
        let data_type = match self.word() {
            "variant" => return Ok(VariantShape::any()),
            "timestamp" => utc(TimeUnit::Microsecond),
            "timestamp_nanos" => utc(TimeUnit::Nanosecond),
            "decimal" => {
                self.expect('(')?;
                let precision = self.word().parse().map_err(|_| self.expected("a precision"))?;
                self.expect(',')?;
                let scale = self.word().parse().map_err(|_| self.expected("a scale"))?;
                self.expect(')')?;
                DataType::Decimal128(precision, scale)
            }
            word => match NAMES.iter().find(|(name, _)| *name == word) {
                Some((_, data_type)) => data_type.clone(),
                None => {
                    self.at = begin;
                    return Err(self.expected("the name of a type, '{' or '['"));
                }
            },
        };
        VariantShape::scalar(data_type)
    }

    fn name(&mut self) -> Result<String> {
        self.skip_blanks();
        if self.rest().starts_with('"') {
            let mut texts = serde_json::Deserializer::from_str(self.rest()).into_iter::<String>();
            let name = texts.next().and_then(|name| name.ok());
            let name = name.ok_or_else(|| self.expected("a name in double quotes"))?;
            self.at += texts.byte_offset();
            return Ok(name);
        }
        match self.word() {
            "" => Err(self.expected("the name of a field")),
            word => Ok(word.to_owned()),
        }
    }
}
