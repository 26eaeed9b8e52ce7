//! The tokens of JSON whose form is known to be right, with the text of numbers as it stands.

use std::borrow::Cow;

use serde_json::value::RawValue;

/// The deepest nesting: beyond, stacks end.
const MAX_DEPTH: usize = 128;

/// Walks one JSON value.
pub(super) struct Scan<'a> {
    rest: &'a str,
    depth: usize,
}

/// What begins at a place.
pub(super) enum Token<'a> {
    Null,
    Bool,
    /// A number, as it is written.
    Number(&'a str),
    /// A text with its quotes and escapes.
    Text(&'a str),
    Array,
    Object,
}

impl<'a> Scan<'a> {
    /// Of a text that is one JSON value.
    ///
    /// # Errors
    /// What is wrong with the text.
    pub(super) fn new(text: &'a str) -> Result<Self, String> {
        serde_json::from_str::<&RawValue>(text).map_err(|e| at_column(&e))?;
        Ok(Self { rest: text, depth: 0 })
    }

    /// The next value: of an array or an object, its opening bracket alone.
    pub(super) fn next(&mut self) -> Token<'a> {
        self.rest = self.rest.trim_ascii_start();
        match self.rest.as_bytes().first() {
            Some(b'{') => Token::Object,
            Some(b'[') => Token::Array,
            Some(b'"') => Token::Text(self.string()),
            _ => {
                let end = self.rest.find([',', '}', ']', ' ', '\t', '\r', '\n']);
                match self.skip(end.unwrap_or(self.rest.len())) {
                    "null" => Token::Null,
                    "true" | "false" => Token::Bool,
                    number => Token::Number(number),
                }
            }
        }
    }

    /// The first character of the next value.
    pub(super) fn next_is(&mut self) -> Option<char> {
        self.rest = self.rest.trim_ascii_start();
        self.rest.chars().next()
    }

    /// The items of an array, or the names and values of an object, whose bracket is next. `item`
    /// takes each, with its name.
    ///
    /// # Errors
    /// Those of `item`, and of too deep a nesting.
    pub(super) fn items<E: From<String>>(
        &mut self,
        mut item: impl FnMut(&mut Self, Option<&'a str>) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.depth == MAX_DEPTH {
            return Err(format!("nested deeper than {MAX_DEPTH}").into());
        }
        self.depth += 1;
        let has_names = self.skip(1) == "{";
        loop {
            self.rest = self.rest.trim_ascii_start();
            match self.rest.as_bytes().first() {
                Some(b',') => drop(self.skip(1)),
                Some(b']' | b'}') | None => break,
                Some(_) => {
                    let name = has_names.then(|| self.string());
                    if has_names {
                        self.rest = self.rest.trim_ascii_start();
                        self.skip(1);
                    }
                    item(self, name)?;
                }
            }
        }
        self.skip(1);
        self.depth -= 1;
        Ok(())
    }

    /// The text of the next value, which is passed over.
    ///
    /// # Errors
    /// If it is nested too deep.
    pub(super) fn raw(&mut self) -> Result<&'a str, String> {
        self.rest = self.rest.trim_ascii_start();
        let begin = self.rest;
        if matches!(self.next(), Token::Array | Token::Object) {
            self.items(|scan, _| scan.raw().map(drop))?;
        }
        Ok(begin.get(..begin.len() - self.rest.len()).unwrap_or_default())
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

    fn skip(&mut self, n: usize) -> &'a str {
        let (before, after) = self.rest.split_at_checked(n).unwrap_or((self.rest, ""));
        self.rest = after;
        before
    }
}

/// The text that stands in quotes.
pub(super) fn unquoted(text: &str) -> Cow<'_, str> {
    let inner = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text);
    match inner.contains('\\') {
        true => Cow::Owned(serde_json::from_str(text).unwrap_or_default()),
        false => Cow::Borrowed(inner),
    }
}

/// What is wrong with a line, and where in it: the number of the line is another one.
pub(crate) fn at_column(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let text = text.split(" at line ").next().unwrap_or_default();
    format!("{text} at column {}", error.column())
}
