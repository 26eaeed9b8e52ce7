//! CSV (RFC 4180): null is nothing, or the text of `--null`; text that looks like it is quoted, so
//! that an empty text is `""`.

use std::borrow::Cow;
use std::io::Write;

use crate::escape::escape;
use crate::failure::Result;

/// How CSV is written.
#[derive(Debug, Clone)]
pub(crate) struct CsvForm {
    pub(crate) delimiter: char,
    pub(crate) header: bool,
    /// What is read as null without quotes; the first is written.
    pub(crate) nulls: Vec<String>,
    /// Whether cells are escaped: on a terminal, which they must not control.
    pub(crate) terminal: bool,
}

impl Default for CsvForm {
    fn default() -> Self {
        Self { delimiter: ',', header: true, nulls: vec![String::new()], terminal: false }
    }
}

impl CsvForm {
    /// Writes a line. Text that would be read as null, and text with delimiters, quotes or line
    /// ends, is quoted.
    pub(crate) fn line<'a>(
        &self,
        out: &mut impl Write,
        cells: impl ExactSizeIterator<Item = Option<&'a str>>,
    ) -> Result<()> {
        // A line with nothing on it is no record to most readers.
        let alone = cells.len() == 1;
        let null = self.nulls.first().map_or("", String::as_str);
        for (i, cell) in cells.enumerate() {
            if i > 0 {
                write!(out, "{}", self.delimiter)?;
            }
            let cell = match self.terminal {
                true => cell.map(escape),
                false => cell.map(Cow::Borrowed),
            };
            match cell.as_deref() {
                None => out.write_all(null.as_bytes())?,
                Some(cell) if self.quotes(cell) || (alone && cell.is_empty()) => {
                    write!(out, "\"{}\"", cell.replace('"', "\"\""))?;
                }
                Some(cell) => out.write_all(cell.as_bytes())?,
            }
        }
        out.write_all(b"\n")?;
        Ok(())
    }

    fn quotes(&self, cell: &str) -> bool {
        self.nulls.iter().any(|null| null == cell)
            || cell.contains([self.delimiter, '"', '\n', '\r'])
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
            let form = CsvForm { nulls: vec![null.to_owned()], ..CsvForm::default() };
            form.line(&mut out, [None, Some(""), Some("NA")].into_iter()).expect("memory");
            assert_eq!(String::from_utf8(out).expect("text"), line);
        }
    }
}
