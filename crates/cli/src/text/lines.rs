//! Splits a file into its JSON values: one a line, or those of one array, however it is printed.

use std::io::{self, BufRead};

use crate::failure::{Failure, Result};

/// The values that are not empty lines, with the numbers of the lines that they begin in.
pub(super) struct JsonTexts<R> {
    inner: R,
    /// The value, without line ends in it.
    value: Vec<u8>,
    /// JsonTexts so far, the one that is read among them.
    number: u64,
    form: Form,
    max_bytes: u64,
}

/// The layout of the values in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// Nothing was read.
    Unknown,
    Lines,
    /// In an array, which has begun; and after its first value.
    Array,
    Items,
    Ended,
}

impl<R: BufRead> JsonTexts<R> {
    /// Values of at most `max_bytes`.
    pub(super) fn new(inner: R, max_bytes: u64) -> Self {
        Self { inner, value: Vec::new(), number: 1, form: Form::Unknown, max_bytes }
    }

    pub(super) fn next(&mut self, name: &str) -> Result<Option<(u64, &str)>> {
        let found = match self.form {
            Form::Unknown => self.begin().and_then(|()| self.read()),
            _ => self.read(),
        };
        let line = match found {
            Ok(Some(line)) => line,
            Ok(None) => return Ok(None),
            Err(TextError::Io(error)) => {
                return Err(marquetry::Error::io("reading", error).at_file(name).into());
            }
            Err(TextError::Content(text)) => {
                return Err(Failure::content(name, Some(self.number), text));
            }
        };
        match std::str::from_utf8(&self.value) {
            Ok(text) => Ok(Some((line, text.trim()))),
            Err(error) => Err(Failure::content(name, Some(line), error)),
        }
    }

    fn read(&mut self) -> Result<Option<u64>, TextError> {
        self.value.clear();
        match self.form {
            Form::Ended => Ok(None),
            Form::Array | Form::Items => self.item(),
            Form::Unknown | Form::Lines => self.line(),
        }
    }

    /// Passes over a byte order mark and blanks, and sees what form the file has.
    fn begin(&mut self) -> Result<(), TextError> {
        self.form = Form::Lines;
        while let Some(byte @ (0xef | 0xbb | 0xbf)) = self.peek()? {
            self.take(byte);
        }
        if self.blanks()? == Some(b'[') {
            self.take(b'[');
            self.form = Form::Array;
        }
        Ok(())
    }

    /// Reads a line that is not empty, and returns its number.
    fn line(&mut self) -> Result<Option<u64>, TextError> {
        loop {
            let line = self.number;
            self.value.clear();
            let max = self.max_bytes;
            let read = io::Read::take(&mut self.inner, max).read_until(b'\n', &mut self.value)?;
            if read == 0 {
                return Ok(None);
            }
            if read as u64 == max && !self.value.ends_with(b"\n") {
                return Err(self.too_long());
            }
            self.number += 1;
            if !self.value.trim_ascii().is_empty() {
                return Ok(Some(line));
            }
        }
    }

    /// Reads an item of the array, and returns the number of its first line.
    fn item(&mut self) -> Result<Option<u64>, TextError> {
        match (self.blanks()?, self.form) {
            (Some(b']'), _) => {
                self.take(b']');
                self.form = Form::Ended;
                return match self.blanks()? {
                    None => Ok(None),
                    Some(_) => {
                        Err(TextError::Content("text after the end of the array".to_owned()))
                    }
                };
            }
            (Some(b','), Form::Items) => {
                self.take(b',');
                self.blanks()?;
            }
            (_, Form::Array) => self.form = Form::Items,
            (None, _) => return Err(TextError::Content("the array has no end".to_owned())),
            (Some(_), _) => {
                return Err(TextError::Content(
                    "no comma between two items of the array".to_owned(),
                ));
            }
        }
        let line = self.number;
        let mut scan = Item::default();
        loop {
            let buffer = self.inner.fill_buf()?;
            if buffer.is_empty() {
                return Err(TextError::Content("the array has no end".to_owned()));
            }
            let taken = scan.take(buffer, &mut self.value, &mut self.number)?;
            let has_ended = taken < buffer.len();
            self.inner.consume(taken);
            if has_ended {
                return Ok(Some(line));
            }
            if self.value.len() as u64 > self.max_bytes {
                return Err(self.too_long());
            }
        }
    }

    fn too_long(&self) -> TextError {
        let text = format!("a value of more than {} bytes; raise --mem", self.max_bytes);
        TextError::Content(text)
    }

    /// Skips blanks, and returns the byte after them.
    fn blanks(&mut self) -> Result<Option<u8>, TextError> {
        while let Some(byte) = self.peek()? {
            if !byte.is_ascii_whitespace() {
                return Ok(Some(byte));
            }
            self.take(byte);
        }
        Ok(None)
    }

    fn peek(&mut self) -> io::Result<Option<u8>> {
        Ok(self.inner.fill_buf()?.first().copied())
    }

    fn take(&mut self, byte: u8) {
        self.inner.consume(1);
        self.number += u64::from(byte == b'\n');
    }
}

/// Where an item of an array ends.
#[derive(Default)]
struct Item {
    /// Brackets that are open.
    depth: usize,
    in_text: bool,
    after_backslash: bool,
}

impl Item {
    /// Appends bytes of the item, with blanks in place of line ends, and returns how many: fewer
    /// than there are if the item ends.
    ///
    /// # Errors
    /// If a line ends in a text, which is no JSON.
    fn take(
        &mut self,
        bytes: &[u8],
        out: &mut Vec<u8>,
        lines: &mut u64,
    ) -> Result<usize, TextError> {
        for (i, byte) in bytes.iter().enumerate() {
            match byte {
                b'\n' | b'\r' if self.in_text => {
                    let text = "a text with the end of a line in it; JSON writes it as \\n or \\r";
                    return Err(TextError::Content(text.to_owned()));
                }
                _ if self.in_text => {
                    self.in_text = *byte != b'"' || self.after_backslash;
                    self.after_backslash = *byte == b'\\' && !self.after_backslash;
                }
                b'"' => self.in_text = true,
                b'[' | b'{' => self.depth += 1,
                b',' | b']' | b'}' if self.depth == 0 => return Ok(i),
                b']' | b'}' => self.depth -= 1,
                _ => {}
            }
            *lines += u64::from(*byte == b'\n');
            out.push(if matches!(byte, b'\n' | b'\r') { b' ' } else { *byte });
        }
        Ok(bytes.len())
    }
}

enum TextError {
    Io(io::Error),
    Content(String),
}

impl From<io::Error> for TextError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The values with their lines, and the line of an error.
    fn values(text: &str, max_bytes: u64) -> (Vec<(u64, String)>, Option<u64>) {
        // One byte at a time: nothing may depend on where a buffer ends.
        let slow = io::BufReader::with_capacity(1, text.as_bytes());
        let mut lines = JsonTexts::new(slow, max_bytes);
        let mut found = Vec::new();
        loop {
            match lines.next("a") {
                Ok(Some((line, value))) => found.push((line, value.to_owned())),
                Ok(None) => return (found, None),
                Err(Failure::Content { line, .. }) => return (found, line),
                Err(other) => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn values_of_lines_and_of_an_array_have_their_lines() {
        for (text, wanted, wrong) in [
            (
                "\u{feff}{}\n\n [1] \r\n{\"a\":1}",
                &[(1, "{}"), (3, "[1]"), (4, "{\"a\":1}")][..],
                None,
            ),
            ("", &[], None),
            ("[]", &[], None),
            ("\n[\n{\"a\":\n \"]}\\\"\"},{}\n]\n", &[(3, "{\"a\":  \"]}\\\"\"}"), (4, "{}")], None),
            ("[1, [2]]", &[(1, "1"), (1, "[2]")], None),
            ("[{}\n{}]", &[(1, "{} {}")], None),
            ("[{},\n\"x\ny\"]", &[(1, "{}")], Some(2)),
            ("[{},\n\"\\\r\"]", &[(1, "{}")], Some(2)),
            ("[\n\"\\\"\",\r\n\"y\"]", &[(2, "\"\\\"\""), (3, "\"y\"")], None),
            ("[{},\n{}", &[(1, "{}")], Some(2)),
            ("[{}]\n{}", &[(1, "{}")], Some(2)),
            ("{}\n0123456789012345", &[(1, "{}")], Some(2)),
            ("[1,\n0123456789012345]", &[(1, "1")], Some(2)),
        ] {
            let wanted = wanted.iter().map(|(line, text)| (*line, (*text).to_owned())).collect();
            assert_eq!(values(text, 14), (wanted, wrong), "{text:?}");
        }
    }
}
