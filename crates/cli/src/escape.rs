//! Escapes text of files in output for people: it must not control the terminal, or look like other
//! text.
//!
//! Data that programs read (JSON, CSV, Arrow, Parquet) keep every character.

use std::borrow::Cow;
use std::io::{self, Write};

/// The text with escapes for characters that control the terminal, are invisible, or reorder text:
/// `\n`, `\u{1b}`.
pub(crate) fn escape(text: &str) -> Cow<'_, str> {
    escape_but(text, |_| false)
}

/// The same for text of several lines whose line ends are our own.
pub(crate) fn escape_lines(text: &str) -> Cow<'_, str> {
    escape_but(text, |c| c == '\n')
}

/// JSON with escapes for those that JSON leaves as they are; its values stay the same.
pub(crate) fn escape_json(json: &str) -> Cow<'_, str> {
    if !json.contains(is_hidden_in_json) {
        return Cow::Borrowed(json);
    }
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            // Such characters occur in strings only.
            c if is_hidden_in_json(c) => {
                c.encode_utf16(&mut [0; 2])
                    .iter()
                    .for_each(|unit| out.push_str(&format!("\\u{unit:04x}")));
            }
            c => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// Escapes JSON that is written through it as [`escape_json`] does. It holds no more than part of a
/// character.
pub(crate) struct JsonEscaper<W> {
    out: W,
    /// The beginning of a character whose other bytes are still to be written.
    begun: Vec<u8>,
}

impl<W: Write> JsonEscaper<W> {
    pub(crate) fn new(out: W) -> Self {
        Self { out, begun: Vec::new() }
    }
}

impl<W: Write> Write for JsonEscaper<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut text = std::mem::take(&mut self.begun);
        text.extend_from_slice(bytes);
        for chunk in text.utf8_chunks() {
            self.out.write_all(escape_json(chunk.valid()).as_bytes())?;
            self.begun = chunk.invalid().to_vec();
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Control characters below it are escaped already, except line ends between values.
fn is_hidden_in_json(c: char) -> bool {
    c >= '\u{7f}' && is_hidden(c)
}

fn escape_but(text: &str, keep: impl Fn(char) -> bool) -> Cow<'_, str> {
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut before = None;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let hidden = match c {
            '\u{200c}' | '\u{200d}' => !joins(before, chars.peek().copied()),
            '\u{fe00}'..='\u{fe0f}' => !before.is_some_and(takes_variation),
            _ => is_hidden(c),
        };
        if hidden && !keep(c) {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
        before = Some(c);
    }
    Cow::Owned(out)
}

/// Whether a character controls the terminal, reorders the text around it, or is invisible.
fn is_hidden(c: char) -> bool {
    matches!(c,
        // C0, DEL, C1.
        '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}'
        // Bidirectional marks, embeddings, overrides and isolates.
        | '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
        // No width: soft hyphen, joiners, zero-width space, invisible operators, byte order mark.
        | '\u{ad}' | '\u{34f}' | '\u{180b}'..='\u{180f}' | '\u{200b}' | '\u{2060}'..='\u{2065}'
        | '\u{206a}'..='\u{206f}' | '\u{feff}' | '\u{fff0}'..='\u{fffb}'
        // Invisible fillers.
        | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{3164}' | '\u{ffa0}'
        // Line and paragraph separators.
        | '\u{2028}' | '\u{2029}'
        // Musical controls, shorthand controls, tags, further variation selectors.
        | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// Whether a joiner is where scripts and emoji need it: between two letters that are not ASCII.
fn joins(before: Option<char>, after: Option<char>) -> bool {
    let letter = |c: Option<char>| c.is_some_and(|c| !c.is_ascii() && !is_hidden(c));
    letter(before) && letter(after)
}

/// Whether a variation selector after this one does something that is seen.
fn takes_variation(c: char) -> bool {
    matches!(c, '0'..='9' | '#' | '*') || !c.is_ascii() && !is_hidden(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_text_of_any_script_stays() {
        for text in [
            "",
            "a b",
            "naïve €",
            "日本語",
            "می\u{200c}خواهم",
            "👩\u{200d}👩\u{200d}👧",
            "☂\u{fe0f}",
            "1\u{fe0f}\u{20e3}",
        ] {
            assert_eq!(escape(text), text);
        }
    }

    #[test]
    fn what_steers_hides_or_reorders_is_escaped() {
        for (text, shown) in [
            ("a\tb\nc\r", "a\\tb\\nc\\r"),
            ("\u{1b}]0;title\u{7}", "\\u{1b}]0;title\\u{7}"),
            ("\u{9b}31m", "\\u{9b}31m"),
            ("evil\u{202e}gpj.exe", "evil\\u{202e}gpj.exe"),
            ("a\u{200b}b\u{feff}", "a\\u{200b}b\\u{feff}"),
            ("a\u{200d}b", "a\\u{200d}b"),
            ("é\u{200d}", "é\\u{200d}"),
            ("a\u{fe0f}", "a\\u{fe0f}"),
            ("\u{e0041}", "\\u{e0041}"),
            ("\u{7f}", "\\u{7f}"),
        ] {
            assert_eq!(escape(text), shown);
        }
        assert_eq!(
            escape_json("{\n\"\u{9b}\": \"é\u{e0041}\"}"),
            "{\n\"\\u009b\": \"é\\udb40\\udc41\"}"
        );
        assert_eq!(escape_lines("a\n\u{1b}b\n"), "a\n\\u{1b}b\n");
    }

    #[test]
    fn json_is_escaped_while_it_is_written_wherever_it_is_cut() {
        let json = "{\n\"\u{9b}\": \"é\u{e0041}日\"}";
        for size in 1..json.len() {
            let mut out = JsonEscaper::new(Vec::new());
            for piece in json.as_bytes().chunks(size) {
                out.write_all(piece).expect("written");
                assert!(out.begun.len() < 4, "only part of a character is held");
            }
            assert_eq!(String::from_utf8(out.out).expect("text"), escape_json(json));
        }
    }
}
