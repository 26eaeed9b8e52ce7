//! [`Xml`] writes elements, with everything in them escaped.

use std::borrow::Cow;
use std::fmt::Write as _;

use unicode_width::UnicodeWidthChar;

use crate::escape::escape;

/// XML that grows. Attributes and texts are escaped here, and nowhere else.
pub(super) struct Xml {
    out: String,
}

impl Xml {
    pub(super) fn new() -> Self {
        Self { out: String::new() }
    }

    /// Begins an element.
    pub(super) fn open(&mut self, name: &str, attributes: &[(&str, &str)]) {
        self.begin(name, attributes);
        self.out.push('>');
    }

    fn begin(&mut self, name: &str, attributes: &[(&str, &str)]) {
        self.out.push('<');
        self.out.push_str(name);
        for (name, value) in attributes {
            let _ = write!(self.out, " {name}=\"{}\"", escaped(value));
        }
    }

    pub(super) fn close(&mut self, name: &str) {
        let _ = writeln!(self.out, "</{name}>");
    }

    /// An element with a text.
    pub(super) fn element(&mut self, name: &str, attributes: &[(&str, &str)], text: &str) {
        self.open(name, attributes);
        self.text(text);
        self.close(name);
    }

    /// An element without content.
    pub(super) fn empty(&mut self, name: &str, attributes: &[(&str, &str)]) {
        self.begin(name, attributes);
        self.out.push_str("/>\n");
    }

    pub(super) fn text(&mut self, text: &str) {
        self.out.push_str(&escaped(text));
    }

    /// XML that was made by another one, or is our own.
    pub(super) fn raw(&mut self, xml: &str) {
        self.out.push_str(xml);
    }

    pub(super) fn finish(self) -> String {
        self.out
    }
}

/// Text of a file for a page: without what steers, hides, or no XML may have.
pub(super) fn clean(text: &str) -> Cow<'_, str> {
    let text = escape(text);
    // Of the characters that XML does not have, these are left.
    if !text.contains(['\u{fffe}', '\u{ffff}']) {
        return text;
    }
    Cow::Owned(text.replace('\u{fffe}', "\\u{fffe}").replace('\u{ffff}', "\\u{ffff}"))
}

fn escaped(text: &str) -> Cow<'_, str> {
    let text = clean(text);
    if !text.contains(['&', '<', '>', '"', '\'']) {
        return text;
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// A coordinate, with at most one digit after the point.
pub(super) fn unit(value: f64) -> String {
    let rounded = (value * 10.0).round() / 10.0;
    // No minus zero.
    let rounded = if rounded == 0.0 { 0.0 } else { rounded };
    rounded.to_string()
}

/// A place and a size.
#[derive(Debug, Clone, Copy)]
pub(super) struct Area {
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) width: f64,
    pub(super) height: f64,
}

impl Area {
    /// Its attributes, with others.
    pub(super) fn rect(self, out: &mut Xml, class: &str) {
        let [x, y, width, height] = self.units();
        let place = [("x", &*x), ("y", &y), ("width", &width), ("height", &height)];
        out.empty("rect", &[&[("class", class)][..], &place].concat());
    }

    pub(super) fn units(self) -> [String; 4] {
        [self.x, self.y, self.width, self.height].map(unit)
    }
}

/// Units that a text takes in the small type, about: the fonts of browsers differ.
pub(super) fn length(text: &str) -> f64 {
    clean(text).chars().map(character).sum()
}

fn character(c: char) -> f64 {
    match c {
        'i' | 'j' | 'l' | 'I' | '.' | ',' | ':' | ';' | '|' | '\'' | '!' => 3.2,
        'm' | 'w' | 'M' | 'W' | '%' | '@' => 9.2,
        'A'..='Z' | '_' | '#' | '=' | '<' | '>' | '≤' => 7.2,
        c if !c.is_ascii() => {
            if UnicodeWidthChar::width(c) == Some(2) {
                10.5
            } else {
                6.6
            }
        }
        _ => 6.2,
    }
}

/// As much of a text as fits a width; nothing if that would be less than some characters.
pub(super) fn fitting(text: &str, width: f64) -> Option<String> {
    let text = clean(text);
    if text.chars().map(character).sum::<f64>() <= width {
        return Some(text.into_owned());
    }
    let room = width - character('…');
    let mut used = 0.0;
    let fits = |c: &char| {
        used += character(*c);
        used <= room
    };
    let mut out: String = text.chars().take_while(fits).collect();
    if out.chars().count() < 2 {
        return None;
    }
    out.push('…');
    Some(out)
}

/// The whole number below.
pub(super) fn whole(value: f64) -> usize {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a size in a picture; what is out of range becomes its end"
    )]
    let whole = value.max(0.0).floor() as usize;
    whole
}

/// A count as a coordinate.
pub(super) fn real(n: u64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "a place in a picture")]
    let real = n as f64;
    real
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_a_text_means_something() {
        let mut out = Xml::new();
        out.element("t", &[("a", "\"'><")], "<script>]]>&\u{1b}\u{202e}\u{fffe}\u{0}");
        assert_eq!(
            out.finish(),
            "<t a=\"&quot;&#39;&gt;&lt;\">&lt;script&gt;]]&gt;&amp;\\u{1b}\\u{202e}\\u{fffe}\\u{0}</t>\n"
        );
    }

    #[test]
    fn coordinates_are_short() {
        assert_eq!(
            [0.0, -0.01, 1.25, 1.04, 100.0].map(unit),
            ["0", "0", "1.3", "1", "100"].map(str::to_owned)
        );
    }
}
