//! LIKE patterns: `%` matches any text, `_` any one character, and a character after the escape
//! character itself.
//!
//! A pattern is parsed when it is bound, because many are an equality or a prefix, for which
//! statistics can prune.

use std::fmt::Write;

/// A parsed pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Pattern {
    /// Exactly this text.
    Exact(String),
    /// Anything that begins with this text.
    Prefix(String),
    /// Anything that begins with `prefix` and matches `rest`, which is the whole pattern with a
    /// backslash for the escape character.
    Other {
        /// The text before the first wildcard.
        prefix: String,
        /// The whole pattern.
        whole: String,
    },
}

impl Pattern {
    /// Takes a pattern apart; `None` if it ends in the escape character.
    pub(super) fn parse(pattern: &str, escape: Option<char>) -> Option<Self> {
        let (mut prefix, mut whole) = (String::new(), String::new());
        // Wildcards so far, and whether they were `%` only.
        let (mut wild, mut only_any, mut after_wildcard) = (false, true, false);
        let mut chars = pattern.chars();
        while let Some(c) = chars.next() {
            let (c, escaped) = if Some(c) == escape { (chars.next()?, true) } else { (c, false) };
            if !escaped && matches!(c, '%' | '_') {
                wild = true;
                only_any &= c == '%' && !after_wildcard;
                whole.push(c);
                continue;
            }
            after_wildcard |= wild;
            if !wild {
                prefix.push(c);
            }
            if matches!(c, '%' | '_' | '\\') {
                whole.push('\\');
            }
            // Writing to a string cannot fail.
            let _ = whole.write_char(c);
        }
        Some(match (wild, only_any && !after_wildcard) {
            (false, _) => Self::Exact(prefix),
            (true, true) => Self::Prefix(prefix),
            (true, false) => Self::Other { prefix, whole },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_taken_apart() {
        let other = |prefix: &str, whole: &str| Pattern::Other {
            prefix: prefix.into(),
            whole: whole.into(),
        };
        for (pattern, escape, expected) in [
            ("abc", Some('\\'), Pattern::Exact("abc".into())),
            ("abc%", Some('\\'), Pattern::Prefix("abc".into())),
            ("%%", Some('\\'), Pattern::Prefix(String::new())),
            ("a%c", Some('\\'), other("a", "a%c")),
            ("a_", Some('\\'), other("a", "a_")),
            ("a%_", Some('\\'), other("a", "a%_")),
            ("100\\%", Some('\\'), Pattern::Exact("100%".into())),
            ("100!%%", Some('!'), Pattern::Prefix("100%".into())),
            ("a\\b_", Some('!'), other("a\\b", "a\\\\b_")),
            ("a!__", Some('!'), other("a_", "a\\__")),
        ] {
            assert_eq!(Pattern::parse(pattern, escape), Some(expected), "{pattern}");
        }
        assert_eq!(Pattern::parse("a\\", Some('\\')), None);
        assert_eq!(Pattern::parse("a\\", None), Some(Pattern::Exact("a\\".into())));
    }
}
