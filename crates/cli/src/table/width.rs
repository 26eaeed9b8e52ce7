//! Measures how many columns of a terminal a text takes.

use std::borrow::Cow;

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// The columns that a text takes: two for wide characters and emoji, none for combining marks.
pub(crate) fn width(text: &str) -> usize {
    if text.is_ascii() {
        text.len()
    } else {
        text.graphemes(true).map(UnicodeWidthStr::width).sum()
    }
}

/// The text in at most `columns`, with `…` where it was cut; never within a character and its
/// marks.
pub(crate) fn cut(text: &str, columns: usize) -> Cow<'_, str> {
    if width(text) <= columns {
        return Cow::Borrowed(text);
    }
    let Some(left) = columns.checked_sub(1) else { return Cow::Borrowed("") };
    if text.is_ascii() {
        return Cow::Owned(format!("{}…", text.get(..left).unwrap_or_default()));
    }
    let (mut end, mut used) = (0, 0);
    for grapheme in text.graphemes(true) {
        let more = UnicodeWidthStr::width(grapheme);
        if used + more > left {
            break;
        }
        used += more;
        end += grapheme.len();
    }
    Cow::Owned(format!("{}…", text.get(..end).unwrap_or_default()))
}

/// Shortens the text to at most `columns`, with `…` in the middle, because both the first and the
/// last part of a path identify it.
pub(crate) fn cut_middle(text: &str, columns: usize) -> Cow<'_, str> {
    if width(text) <= columns || columns < 3 {
        return cut(text, columns);
    }
    let after = (columns - 1) * 2 / 3;
    let (mut begin, mut used) = (text.len(), 0);
    for grapheme in text.graphemes(true).rev() {
        used += UnicodeWidthStr::width(grapheme);
        if used > after {
            break;
        }
        begin -= grapheme.len();
    }
    let end = text.get(begin..).unwrap_or_default();
    Cow::Owned(format!("{}{end}", cut(text, columns - width(end))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_combining_and_emoji_count_as_they_are_drawn() {
        for (text, columns) in
            [("abc", 3), ("日本", 4), ("e\u{301}", 1), ("👩\u{200d}👩\u{200d}👧", 2), ("", 0)]
        {
            assert_eq!(width(text), columns, "{text}");
        }
    }

    #[test]
    fn a_cut_text_fits_and_says_that_it_was_cut() {
        for (text, columns, shown) in [
            ("abc", 3, "abc"),
            ("abcd", 3, "ab…"),
            ("日本語", 4, "日…"),
            ("日本語", 5, "日本…"),
            ("e\u{301}e\u{301}e\u{301}", 2, "e\u{301}…"),
            ("abc", 1, "…"),
            ("abc", 0, ""),
        ] {
            assert_eq!(cut(text, columns), shown);
            assert!(width(&cut(text, columns)) <= columns);
        }
    }

    #[test]
    fn a_path_is_cut_in_its_middle() {
        for (text, columns, shown) in [
            ("stops.list.element.name", 14, "stops…ent.name"),
            ("stops.list.element.lat", 14, "stops…ment.lat"),
            ("id", 14, "id"),
            ("日本語日本語", 8, "日…本語"),
            ("abcd", 2, "a…"),
        ] {
            assert_eq!(cut_middle(text, columns), shown);
            assert!(width(&cut_middle(text, columns)) <= columns);
        }
    }
}
