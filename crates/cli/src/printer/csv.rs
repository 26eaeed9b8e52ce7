//! Writes CSV (RFC 4180): null is an empty cell, or the text of `--null`; text that looks like it
//! is quoted, so that an empty text is `""`.

use std::io::Write;

use crate::escape::escape;
use crate::failure::Result;

/// How CSV is written.
#[derive(Debug, Clone)]
pub(crate) struct CsvForm {
    pub(crate) delimiter: char,
    pub(crate) header: bool,
    /// Texts that are read as null without quotes; the first is written.
    pub(crate) nulls: Vec<String>,
    /// Whether cells are escaped: on a terminal, which they must not control.
    pub(crate) terminal: bool,
    /// Whether numbers and times may need quotes: if they may contain the delimiter, or null looks
    /// like them.
    pub(crate) is_special: bool,
}

impl Default for CsvForm {
    fn default() -> Self {
        Self::new(',', true, vec![String::new()])
    }
}

impl CsvForm {
    pub(crate) fn new(delimiter: char, header: bool, nulls: Vec<String>) -> Self {
        let is_special = !matches!(delimiter, ',' | ';' | '|' | '\t')
            || nulls.iter().any(|null| !null.is_empty());
        Self { delimiter, header, nulls, terminal: false, is_special }
    }

    /// Writes a line. Text that would be read as null, and text with delimiters, quotes or line
    /// ends, is quoted.
    pub(crate) fn line<'a>(
        &self,
        out: &mut impl Write,
        cells: impl ExactSizeIterator<Item = Option<&'a str>>,
    ) -> Result<()> {
        let is_alone = cells.len() == 1;
        let mut line = Vec::new();
        for (i, cell) in cells.enumerate() {
            if i > 0 {
                self.delimit(&mut line);
            }
            let begin = line.len();
            match cell {
                None => line.extend_from_slice(self.null().as_bytes()),
                Some(cell) => {
                    line.extend_from_slice(cell.as_bytes());
                    self.end_cell(begin, is_alone, &mut line);
                }
            }
        }
        line.push(b'\n');
        out.write_all(&line)?;
        Ok(())
    }

    /// The text of null.
    pub(crate) fn null(&self) -> &str {
        self.nulls.first().map_or("", String::as_str)
    }

    /// Appends the delimiter.
    pub(crate) fn delimit(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.delimiter.encode_utf8(&mut [0; 4]).as_bytes());
    }

    /// Quotes the cell that begins there, if it needs that, and escapes it for a terminal.
    pub(crate) fn end_cell(&self, begin: usize, is_alone: bool, out: &mut Vec<u8>) {
        if self.terminal {
            let cell = out.split_off(begin);
            out.extend_from_slice(escape(&String::from_utf8_lossy(&cell)).as_bytes());
        }
        let cell = out.get(begin..).unwrap_or_default();
        // A line with nothing on it is no record to most readers.
        if self.quotes(cell) || (is_alone && cell.is_empty()) {
            let cell = out.split_off(begin);
            out.push(b'"');
            for (i, part) in cell.split(|byte| *byte == b'"').enumerate() {
                out.extend_from_slice(if i > 0 { b"\"\"" } else { b"" });
                out.extend_from_slice(part);
            }
            out.push(b'"');
        }
    }

    fn quotes(&self, cell: &[u8]) -> bool {
        // One ASCII character, as the flag has it.
        let delimiter = u8::try_from(self.delimiter).unwrap_or(b',');
        let quotes =
            |byte: u8| (byte == delimiter) | (byte == b'"') | (byte == b'\n') | (byte == b'\r');
        self.nulls.iter().any(|null| null.as_bytes() == cell)
            || cell.iter().fold(false, |any, byte| any | quotes(*byte))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_gets_escapes_in_the_place_of_what_controls_it() {
        let cells = || [Some("\u{1b}[2J\u{202e}"), Some("a\nb"), Some("x,\"y"), None].into_iter();
        for (terminal, line) in [
            (true, "\\u{1b}[2J\\u{202e},a\\nb,\"x,\"\"y\",\n"),
            (false, "\u{1b}[2J\u{202e},\"a\nb\",\"x,\"\"y\",\n"),
        ] {
            let mut out = Vec::new();
            let form = CsvForm { terminal, ..CsvForm::default() };
            form.line(&mut out, cells()).expect("memory");
            assert_eq!(String::from_utf8(out).expect("text"), line);
        }
    }

    #[test]
    fn null_differs_from_every_text() {
        for (null, line) in [("", ",\"\",NA\n"), ("NA", "NA,,\"NA\"\n")] {
            let mut out = Vec::new();
            let form = CsvForm::new(',', true, vec![null.to_owned()]);
            form.line(&mut out, [None, Some(""), Some("NA")].into_iter()).expect("memory");
            assert_eq!(String::from_utf8(out).expect("text"), line);
        }
    }
}
