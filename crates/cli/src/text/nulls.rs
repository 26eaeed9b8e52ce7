//! Tells null from the empty text of CSV, which the CSV decoder does not.
//!
//! A cell without quotes that is empty, or one of the texts of `--null`, is null; a cell in quotes
//! never is. The cells are rewritten for the decoder, which takes empty cells for null: nulls
//! become empty cells, empty texts become a mark that is removed again after decoding.

use std::collections::VecDeque;
use std::io::{self, BufRead, Read};

/// The texts of null, and the delimiter of cells.
#[derive(Debug, Clone)]
pub(super) struct Convention {
    pub(super) delimiter: u8,
    pub(super) header: bool,
    /// Texts that are null without quotes.
    pub(super) nulls: Vec<Vec<u8>>,
    /// Columns in which an empty text is a value; the others have none.
    pub(super) texts: Vec<bool>,
    /// The mark for an empty text.
    pub(super) mark: String,
    /// The longest record.
    pub(super) max_record_bytes: u64,
}

/// A text that no file holds: random for each process, and of characters for private use, because a
/// delimiter may be any ASCII character.
pub(super) fn mark() -> String {
    (0..10).map(|_| fastrand::char('\u{e000}'..='\u{f8ff}')).collect()
}

/// Bytes of CSV with the cells rewritten.
pub(super) struct Rewritten<R> {
    inner: R,
    convention: Convention,
    /// Bytes that are rewritten and not read yet.
    out: Vec<u8>,
    given: usize,
    /// Where the last record begins of those in `out`.
    last_record: usize,
    /// The cell without quotes so far, while it may be null.
    cell: Vec<u8>,
    longest_null: usize,
    state: State,
    column: usize,
    /// Columns, as the schema or the first record has them.
    columns: usize,
    /// Whether the first record has not ended.
    first: bool,
    /// Whether the record has a byte so far.
    begun: bool,
    /// Bytes of the record so far, and records before it.
    record_bytes: u64,
    records: u64,
    /// The number of the line, and of those in which the record and the last quotes begin.
    line: u64,
    record_line: u64,
    quotes_line: u64,
    /// The lines of records that have ended, if they are asked for.
    lines: Option<VecDeque<u64>>,
    /// Whether the byte before ended a line, and may be half of its end.
    after_cr: bool,
    /// Bytes of a byte order mark so far; more of them where there is none, or no more.
    bom: usize,
}

const BOM: &[u8; 3] = b"\xef\xbb\xbf";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Nothing of the cell was seen.
    Start,
    /// Without quotes; `cell` has all of it.
    Short,
    /// Without quotes, and too long to be null.
    Long,
    /// A quote was seen, and nothing else.
    Opened,
    Quoted,
    /// A quote in quotes: the end of them, or the first of two.
    Quote,
    /// The same where the quotes would be empty.
    EmptyQuote,
}

impl<R: BufRead> Rewritten<R> {
    pub(super) fn new(inner: R, convention: Convention) -> Self {
        let longest_null = convention.nulls.iter().map(Vec::len).max().unwrap_or_default();
        Self {
            inner,
            columns: convention.texts.len(),
            convention,
            out: Vec::new(),
            given: 0,
            last_record: 0,
            cell: Vec::new(),
            longest_null,
            state: State::Start,
            column: 0,
            first: true,
            begun: false,
            record_bytes: 0,
            records: 0,
            line: 1,
            record_line: 1,
            quotes_line: 1,
            lines: None,
            after_cr: false,
            bom: 0,
        }
    }

    /// The same with the lines of the records, for [`Self::take_lines`].
    pub(super) fn with_lines(mut self) -> Self {
        self.lines = Some(VecDeque::new());
        self
    }

    pub(super) fn convention(&self) -> &Convention {
        &self.convention
    }

    /// Takes the lines that the next records begin in.
    pub(super) fn take_lines(&mut self, records: usize) -> Vec<u64> {
        let lines = self.lines.as_mut().map(|lines| lines.drain(..records.min(lines.len())));
        lines.into_iter().flatten().collect()
    }

    /// The line that a record begins in, by its number after those that were taken; that of the
    /// last record if there are fewer.
    pub(super) fn line_of(&self, record: usize) -> u64 {
        let lines = self.lines.as_ref();
        lines.and_then(|lines| lines.get(record)).copied().unwrap_or(self.record_line)
    }

    /// Bytes before the last record that the buffer has the beginning of.
    pub(super) fn before_last_record(&self) -> usize {
        self.last_record.saturating_sub(self.given)
    }

    fn push(&mut self, byte: u8) {
        if self.bom <= BOM.len() && self.is_in_bom(byte) {
            return;
        }
        if std::mem::take(&mut self.after_cr) && byte == b'\n' {
            self.out.push(byte);
            return;
        }
        if !self.begun {
            self.last_record = self.out.len();
            self.record_line = self.line;
        }
        match self.state {
            State::Start if byte == b'"' => {
                self.begun = true;
                self.quotes_line = self.line;
                self.state = State::Opened;
            }
            State::Start | State::Short => match self.end(byte) {
                true => self.end_cell(byte),
                false => {
                    self.begun = true;
                    self.cell.push(byte);
                    self.state = State::Short;
                    if self.cell.len() > self.longest_null {
                        self.out.append(&mut self.cell);
                        self.state = State::Long;
                    }
                }
            },
            State::Long => match self.end(byte) {
                true => self.end_cell(byte),
                false => self.out.push(byte),
            },
            State::Opened if byte == b'"' => self.state = State::EmptyQuote,
            State::Opened => {
                self.out.extend_from_slice(&[b'"', byte]);
                self.line += u64::from(byte == b'\n');
                self.state = State::Quoted;
            }
            State::Quoted => {
                self.out.push(byte);
                if byte == b'"' {
                    self.state = State::Quote;
                }
            }
            State::EmptyQuote => match self.end(byte) {
                true => self.end_cell(byte),
                // Two quotes in quotes, or text after the quotes, which belongs to the cell.
                false => {
                    self.out.extend_from_slice(b"\"\"");
                    self.out.push(byte);
                    self.state = if byte == b'"' { State::Quoted } else { State::Long };
                }
            },
            State::Quote => match self.end(byte) {
                true => self.end_cell(byte),
                false => {
                    self.out.push(byte);
                    self.state = if byte == b'"' { State::Quoted } else { State::Long };
                }
            },
        }
    }

    /// Whether a byte is one of a byte order mark, which is passed over. What only began like one
    /// is pushed again.
    fn is_in_bom(&mut self, byte: u8) -> bool {
        if BOM.get(self.bom) == Some(&byte) {
            self.bom += 1;
            return true;
        }
        let half = if self.bom < BOM.len() { self.bom } else { 0 };
        self.bom = BOM.len() + 1;
        BOM.iter().take(half).for_each(|byte| self.push(*byte));
        false
    }

    fn end(&self, byte: u8) -> bool {
        byte == self.convention.delimiter || byte == b'\n' || byte == b'\r'
    }

    /// Ends a cell at a delimiter, or at the end of a line.
    fn end_cell(&mut self, byte: u8) {
        let line_ends = byte != self.convention.delimiter;
        self.after_cr = byte == b'\r';
        self.line += u64::from(line_ends);
        let names = self.first && self.convention.header;
        if line_ends && !self.begun && (names || self.columns != 1) {
            // An empty line is a record only where there is one column.
            self.out.push(byte);
            return;
        }
        self.write_cell(line_ends);
        self.out.push(byte);
        self.state = State::Start;
        self.column += 1;
        self.begun = !line_ends;
        if line_ends {
            if self.first {
                self.columns = self.column;
            }
            self.column = 0;
            self.first = false;
            self.end_record();
        }
    }

    fn end_record(&mut self) {
        self.record_bytes = 0;
        self.records += 1;
        if let Some(lines) = &mut self.lines {
            lines.push_back(self.record_line);
        }
    }

    fn write_cell(&mut self, line_ends: bool) {
        let names = self.first && self.convention.header;
        let null = match self.state {
            State::Start | State::Short => self.convention.nulls.contains(&self.cell),
            State::Long | State::Quote | State::Quoted => return,
            State::EmptyQuote | State::Opened => false,
        };
        if names {
            self.out.append(&mut self.cell);
        } else if null {
            self.cell.clear();
            if line_ends && self.column == 0 {
                // Alone in its line: nothing at all would be no record.
                self.out.extend_from_slice(b"\"\"");
            }
        } else if !self.cell.is_empty() {
            self.out.append(&mut self.cell);
        } else if self.convention.texts.get(self.column) == Some(&true) {
            self.out.extend_from_slice(self.convention.mark.as_bytes());
        } else if line_ends && self.column == 0 {
            self.out.extend_from_slice(b"\"\"");
        }
    }

    /// Takes some bytes; whether there were any.
    fn take(&mut self) -> io::Result<bool> {
        let bytes = self.inner.fill_buf()?;
        let bytes = bytes.get(..bytes.len().min(1 << 16)).unwrap_or_default().to_vec();
        self.inner.consume(bytes.len());
        let mut rest = bytes.as_slice();
        while let Some((byte, after)) = rest.split_first() {
            // Most of a file is the middle of a cell.
            let plain = match self.state {
                State::Long => rest.iter().position(|byte| self.end(*byte)),
                State::Quoted => rest.iter().position(|byte| *byte == b'"'),
                _ => Some(0),
            };
            let (plain, after_plain) = rest.split_at(plain.unwrap_or(rest.len()));
            self.out.extend_from_slice(plain);
            if self.state == State::Quoted {
                self.line += plain.iter().filter(|byte| **byte == b'\n').count() as u64;
            }
            self.record_bytes += plain.len().max(1) as u64;
            if plain.is_empty() {
                self.push(*byte);
                rest = after;
            } else {
                rest = after_plain;
            }
            if self.record_bytes > self.convention.max_record_bytes {
                let (max, record) = (self.convention.max_record_bytes, self.records + 1);
                let text = format!("record {record} has more than {max} bytes; raise --mem");
                return Err(io::Error::new(io::ErrorKind::InvalidData, text));
            }
        }
        if bytes.is_empty() {
            if matches!(self.state, State::Opened | State::Quoted) {
                let text =
                    format!("the quotes that begin in line {} have no end", self.quotes_line);
                return Err(io::Error::new(io::ErrorKind::InvalidData, text));
            }
            if self.begun {
                self.write_cell(true);
                self.end_record();
            }
            (self.state, self.begun, self.column) = (State::Start, false, 0);
        }
        Ok(!bytes.is_empty())
    }
}

impl<R: BufRead> Read for Rewritten<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let len = self.fill_buf()?.read(to)?;
        self.consume(len);
        Ok(len)
    }
}

impl<R: BufRead> BufRead for Rewritten<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        while self.given == self.out.len() {
            self.out.clear();
            (self.given, self.last_record) = (0, 0);
            if !self.take()? && self.out.is_empty() {
                break;
            }
        }
        Ok(self.out.get(self.given..).unwrap_or_default())
    }

    fn consume(&mut self, len: usize) {
        self.given += len;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rewritten(csv: &str, nulls: &[&str], texts: &[bool]) -> String {
        let convention = Convention {
            delimiter: b',',
            header: true,
            nulls: nulls.iter().map(|null| null.as_bytes().to_vec()).collect(),
            texts: texts.to_vec(),
            mark: "@".to_owned(),
            max_record_bytes: 100,
        };
        // One byte at a time: nothing may depend on where a buffer ends.
        let slow = io::BufReader::with_capacity(1, csv.as_bytes());
        let mut out = String::new();
        Rewritten::new(slow, convention).read_to_string(&mut out).expect("memory");
        out
    }

    #[test]
    fn cells_in_quotes_are_never_null() {
        for (csv, wanted) in [
            ("a,b\n,\"\"\n", "a,b\n,@\n"),
            ("a,b\n\"\",\r\n\"\"", "a,b\n@,\r\n@"),
            ("a,b\n\"x\"\"y\",\"\"\"\"\n", "a,b\n\"x\"\"y\",\"\"\"\"\n"),
            ("a,b\n\"l\n\n,\",z\n\n1,2", "a,b\n\"l\n\n,\",z\n\n1,2"),
            ("\u{feff}\"a\",\"\"\n1,2\n", "\"a\",\n1,2\n"),
        ] {
            assert_eq!(rewritten(csv, &[""], &[true, true]), wanted, "{csv:?}");
        }
    }

    #[test]
    fn the_mark_holds_no_delimiter() {
        assert!(!mark().bytes().any(|byte| byte.is_ascii()));
    }

    #[test]
    fn a_record_without_end_is_an_error() {
        let convention = Convention {
            delimiter: b',',
            header: true,
            nulls: Vec::new(),
            texts: vec![true],
            mark: String::new(),
            max_record_bytes: 1000,
        };
        let csv = format!("a\n{}\"{}", "x\n".repeat(2000), "x\n".repeat(2000));
        let error = Rewritten::new(csv.as_bytes(), convention).read_to_end(&mut Vec::new());
        let error = error.expect_err("too long").to_string();
        assert!(error.contains("record 2002 has more than 1000 bytes"), "{error}");
    }

    #[test]
    fn quotes_without_end_are_an_error_with_their_line() {
        for (csv, line) in [
            ("a,b\n1,\"x\n2,y\n3,z\n", 2),
            ("a,b\r\n\r\n\"\n\",\"\r\n\"\"\r\n\",\"", 6),
            ("a,b\r1,\"\"\r2,\"\"\"\r", 3),
            ("\"", 1),
        ] {
            let convention = Convention {
                delimiter: b',',
                header: true,
                nulls: Vec::new(),
                texts: vec![true; 2],
                mark: String::new(),
                max_record_bytes: 100,
            };
            let slow = io::BufReader::with_capacity(1, csv.as_bytes());
            let error = Rewritten::new(slow, convention).read_to_end(&mut Vec::new());
            let error = error.expect_err("no end");
            assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{csv:?}");
            assert!(error.to_string().contains(&format!("line {line} ")), "{csv:?}: {error}");
        }
    }

    #[test]
    fn only_texts_have_an_empty_value() {
        assert_eq!(rewritten("a,b\n\"\",\"\"\n", &[""], &[false, true]), "a,b\n,@\n");
    }

    #[test]
    fn texts_of_null_are_null_without_quotes() {
        let csv = "a,b\nNA,\"NA\"\n,NAN\nN,x\n";
        assert_eq!(rewritten(csv, &["NA"], &[true, true]), "a,b\n,\"NA\"\n@,NAN\nN,x\n");
    }

    #[test]
    fn an_empty_line_is_null_in_a_file_of_one_column() {
        assert_eq!(rewritten("a\n1\n\n\"\"\n", &[""], &[true]), "a\n1\n\"\"\n@\n");
        assert_eq!(rewritten("a\r\n1\r\n\r\n2\r\n", &[""], &[true]), "a\r\n1\r\n\"\"\r\n2\r\n");
    }
}
