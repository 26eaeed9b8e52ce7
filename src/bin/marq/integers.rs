//! Integers of JSON that 64 bits with a sign do not hold, of which inference would make floats.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef, Fields};
use serde_json::Value;

use crate::failure::{Failure, Result};

/// The integers that were seen, by their path; items of a list have the path of the list.
#[derive(Default)]
pub(crate) struct Integers(HashMap<String, Seen>);

/// What the numbers of one path are.
#[derive(Default)]
struct Seen {
    /// The first integer beyond `i64`.
    large: Option<Place>,
    /// The first beyond `u64`, or below `i64`.
    huge: Option<Place>,
    /// The first with more digits than a Decimal128 has.
    too_long: Option<Place>,
    /// The first whose digits a double does not keep.
    inexact: Option<Place>,
    negative: bool,
    /// Whether a number had a fraction or an exponent.
    floats: bool,
}

#[derive(Clone)]
struct Place {
    file: String,
    line: u64,
    digits: String,
}

/// Digits of a Decimal128.
const DIGITS: u8 = 38;

impl Integers {
    /// Looks at a line and the value that it was parsed to.
    pub(crate) fn see(&mut self, value: &Value, text: &str, file: &str, line: u64) -> Result<()> {
        self.value(value, "");
        // Digits beyond 64 bits are lost in the value, and stand in the text alone.
        if has_large(value) {
            let mut scan = Scan { rest: text, seen: self, file, line };
            scan.value("");
        }
        Ok(())
    }

    fn value(&mut self, value: &Value, path: &str) {
        match value {
            Value::Object(object) => {
                object.iter().for_each(|(key, value)| self.value(value, &below(path, key)));
            }
            Value::Array(items) => items.iter().for_each(|item| self.value(item, path)),
            Value::Number(number) => {
                let (negative, float) = (number.as_i64().is_some_and(|n| n < 0), number.is_f64());
                if negative {
                    self.at(path).negative = true;
                } else if float && !is_large(value) {
                    self.at(path).floats = true;
                }
            }
            _ => {}
        }
    }

    fn at(&mut self, path: &str) -> &mut Seen {
        if !self.0.contains_key(path) {
            self.0.insert(path.to_owned(), Seen::default());
        }
        self.0.entry(path.to_owned()).or_default()
    }

    /// The fields with types that hold the integers; those whose types are said are left.
    pub(crate) fn apply(&self, fields: &Fields, is_said: &dyn Fn(&str) -> bool) -> Result<Fields> {
        let field = |field: &FieldRef| {
            if is_said(field.name()) { Ok(field.clone()) } else { self.field(field, "") }
        };
        fields.iter().map(field).collect()
    }

    fn field(&self, field: &FieldRef, path: &str) -> Result<FieldRef> {
        let path = below(path, field.name());
        Ok(Arc::new(field.as_ref().clone().with_data_type(self.typed(field.data_type(), &path)?)))
    }

    fn typed(&self, data_type: &DataType, path: &str) -> Result<DataType> {
        let seen = match (data_type, self.0.get(path)) {
            (DataType::Struct(fields), _) => {
                let fields = fields.iter().map(|field| self.field(field, path));
                return Ok(DataType::Struct(fields.collect::<Result<_>>()?));
            }
            (DataType::List(item), _) => {
                let inner = self.typed(item.data_type(), path)?;
                let item: Field = item.as_ref().clone().with_data_type(inner);
                return Ok(DataType::List(Arc::new(item)));
            }
            (DataType::Float64 | DataType::Int64, Some(seen)) if seen.large.is_some() => seen,
            _ => return Ok(data_type.clone()),
        };
        if seen.floats {
            return match &seen.inexact {
                Some(place) => Err(place.failure(
                    path,
                    "other values have a fraction, and a double does not keep all digits of this \
                     one; say the type with --schema, as decimal128(38,10)",
                )),
                None => Ok(DataType::Float64),
            };
        }
        match (&seen.too_long, &seen.huge) {
            (Some(place), _) => Err(place.failure(
                path,
                "no integer type holds it; say the type with --schema, as utf8 or float64",
            )),
            (None, None) if !seen.negative => Ok(DataType::UInt64),
            _ => Ok(DataType::Decimal128(DIGITS, 0)),
        }
    }
}

impl Place {
    fn failure(&self, path: &str, what: &str) -> Failure {
        let text = format!("column {path}: {}: {what}", self.digits);
        Failure::content(&self.file, Some(self.line), text)
    }
}

fn below(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

/// Whether a number may be an integer that `i64` does not hold.
fn is_large(value: &Value) -> bool {
    match value {
        Value::Number(number) => match number.as_f64() {
            Some(float) if number.is_f64() => float.abs() >= 9.2e18,
            _ => number.as_i64().is_none(),
        },
        _ => false,
    }
}

fn has_large(value: &Value) -> bool {
    match value {
        Value::Object(object) => object.values().any(has_large),
        Value::Array(items) => items.iter().any(has_large),
        value => is_large(value),
    }
}

/// Walks a line that is known to be JSON.
struct Scan<'a, 'b> {
    rest: &'a str,
    seen: &'b mut Integers,
    file: &'b str,
    line: u64,
}

impl<'a> Scan<'a, '_> {
    fn value(&mut self, path: &str) {
        self.space();
        match self.rest.as_bytes().first() {
            Some(b'{') => self.items('}', |scan| {
                let key: String = serde_json::from_str(scan.string()).unwrap_or_default();
                scan.space();
                scan.skip(1);
                scan.value(&below(path, &key));
            }),
            Some(b'[') => self.items(']', |scan| scan.value(path)),
            Some(b'"') => drop(self.string()),
            _ => {
                let end = self.rest.find([',', '}', ']', ' ', '\t', '\r', '\n']);
                let token = self.skip(end.unwrap_or(self.rest.len()));
                self.number(token, path);
            }
        }
    }

    /// What stands between brackets, separated by commas.
    fn items(&mut self, end: char, mut item: impl FnMut(&mut Self)) {
        self.skip(1);
        loop {
            self.space();
            match self.rest.chars().next() {
                Some(',') => drop(self.skip(1)),
                Some(c) if c == end => {
                    self.skip(1);
                    return;
                }
                Some(_) => item(self),
                None => return,
            }
        }
    }

    /// A string with its quotes.
    fn string(&mut self) -> &'a str {
        let bytes = self.rest.as_bytes();
        let mut at = 1;
        while let Some(byte) = bytes.get(at) {
            match byte {
                b'"' => break,
                b'\\' => at += 2,
                _ => at += 1,
            }
        }
        self.skip((at + 1).min(bytes.len()))
    }

    fn space(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn skip(&mut self, n: usize) -> &'a str {
        let (before, after) = self.rest.split_at_checked(n).unwrap_or((self.rest, ""));
        self.rest = after;
        before
    }

    fn number(&mut self, token: &str, path: &str) {
        if !token.starts_with(['-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9']) {
            return;
        }
        if token.contains(['.', 'e', 'E']) {
            self.seen.at(path).floats = true;
            return;
        }
        if token.parse::<i64>().is_ok() {
            return;
        }
        let place = || Place {
            file: self.file.to_owned(),
            line: self.line,
            digits: token.chars().take(80).collect(),
        };
        let place = place();
        let seen = self.seen.at(path);
        seen.large.get_or_insert_with(|| place.clone());
        if token.parse::<u64>().is_err() {
            seen.huge.get_or_insert_with(|| place.clone());
        }
        if token.trim_start_matches('-').len() > usize::from(DIGITS) {
            seen.too_long.get_or_insert_with(|| place.clone());
        }
        // Writers of doubles print them so; the digits come back.
        if token.parse::<f64>().is_ok_and(|float| format!("{float}") != token) {
            seen.inexact.get_or_insert(place);
        }
    }
}
