//! Text of a file in what people see: it must not steer, hide or reorder other text.

use std::borrow::Cow;
use std::fmt;

/// The text with escapes for characters that are invisible, or reorder the text around them.
pub(crate) fn shown(text: &str) -> Cow<'_, str> {
    if !text.contains(is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if is_hidden(c) { out.extend(c.escape_default()) } else { out.push(c) }
    }
    Cow::Owned(out)
}

fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{fffe}'
            | '\u{ffff}' | '\u{e0000}'..='\u{e0fff}')
}

/// The same as text of XML, or as the value of an attribute.
pub(crate) fn xml(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in shown(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// The start of a text that may be long.
#[derive(Debug, Default)]
pub(crate) struct Start {
    pub(crate) text: String,
    chars: usize,
}

impl Start {
    /// The most characters.
    const CHARS: usize = 300;
}

impl fmt::Write for Start {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for c in text.chars() {
            if self.chars == Self::CHARS {
                self.text.push('…');
                // No more is wanted.
                return Err(fmt::Error);
            }
            self.text.push(c);
            self.chars += 1;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;

    #[test]
    fn what_hides_or_steers_is_escaped() {
        assert_eq!(shown("plain ünïcode 日本"), "plain ünïcode 日本");
        assert_eq!(shown("a\u{202e}b\u{1b}\n"), "a\\u{202e}b\\u{1b}\\n");
        assert_eq!(xml("<a b='\"'>&\u{0}"), "&lt;a b=&#39;&quot;&#39;&gt;&amp;\\u{0}");
    }

    #[test]
    fn long_text_ends_early() {
        let mut start = Start::default();
        assert!(write!(start, "{}", "é".repeat(1_000)).is_err());
        assert_eq!(start.text, format!("{}…", "é".repeat(300)));
        let mut start = Start::default();
        assert!(write!(start, "{}", "é".repeat(300)).is_ok());
        assert_eq!(start.text, "é".repeat(300));
    }
}
