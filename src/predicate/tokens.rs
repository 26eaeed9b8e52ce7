//! The tokens of the text form of predicates.

use std::fmt;

use super::coerce::from_hex;
use super::expression::Op;
use super::literal::Literal;
use crate::error::{Error, Result};

/// Words that are never names, unless quoted.
pub(super) const KEYWORDS: [&str; 11] =
    ["and", "or", "not", "in", "between", "is", "null", "like", "escape", "true", "false"];

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token {
    /// Not quoted.
    Word(String),
    /// In double quotes.
    Name(String),
    /// In single quotes.
    Text(String),
    /// In single quotes after an `x`.
    Bytes(Vec<u8>),
    Number(Literal),
    Op(Op),
    Open,
    Close,
    Comma,
    Plus,
    Minus,
    Star,
    Slash,
    Percent,
    Dot,
    End,
}

/// Cuts a text into tokens, each with the byte where it begins.
pub(super) fn tokens(text: &str) -> Result<Vec<(usize, Token)>> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(c) = text.get(at..).and_then(|rest| rest.chars().next()) {
        let rest = text.get(at..).expect("places are those of characters");
        let operators = [
            ("==", Token::Op(Op::Eq)),
            ("=", Token::Op(Op::Eq)),
            ("<>", Token::Op(Op::NotEq)),
            ("!=", Token::Op(Op::NotEq)),
            ("<=", Token::Op(Op::LtEq)),
            ("<", Token::Op(Op::Lt)),
            (">=", Token::Op(Op::GtEq)),
            (">", Token::Op(Op::Gt)),
            ("(", Token::Open),
            (")", Token::Close),
            (",", Token::Comma),
            ("+", Token::Plus),
            ("-", Token::Minus),
            ("*", Token::Star),
            ("/", Token::Slash),
            ("%", Token::Percent),
        ];
        let operator = operators.into_iter().find(|(sign, _)| rest.starts_with(sign));
        let (len, token) = if c.is_whitespace() {
            at += c.len_utf8();
            continue;
        } else if let Some((sign, token)) = operator {
            (sign.len(), token)
        } else if let Some((len, number)) = number(rest) {
            let number =
                Literal::number(number).ok_or_else(|| fault(text, at, "this is no number"))?;
            (len, Token::Number(number))
        } else if c == '.' {
            (1, Token::Dot)
        } else if c == '\'' {
            let (len, value) =
                quoted(rest, '\'').ok_or_else(|| fault(text, at, "this string has no end"))?;
            (len, Token::Text(value))
        } else if c == '"' {
            let (len, value) =
                quoted(rest, '"').ok_or_else(|| fault(text, at, "this name has no end"))?;
            (len, Token::Name(value))
        } else if rest.starts_with("x'") || rest.starts_with("X'") {
            let digits = quoted(rest.get(1..).expect("places are those of characters"), '\'');
            let (len, digits) = digits.ok_or_else(|| fault(text, at, "this string has no end"))?;
            let bytes = from_hex(&digits);
            let bytes =
                bytes.ok_or_else(|| fault(text, at, "expected pairs of hexadecimal digits"))?;
            (len + 1, Token::Bytes(bytes))
        } else if is_first(c) {
            let len = rest.find(|c| !is_inner(c)).unwrap_or(rest.len());
            (len, Token::Word(rest.get(..len).expect("places are those of characters").to_owned()))
        } else {
            return Err(fault(text, at, format_args!("{c:?} means nothing here")));
        };
        tokens.push((at, token));
        at += len;
    }
    tokens.push((text.len(), Token::End));
    Ok(tokens)
}

/// Whether a name may begin with `c` without quotes.
pub(super) fn is_first(c: char) -> bool {
    c.is_alphabetic() || c == '_'
}

/// Whether `c` may stand further inside.
pub(super) fn is_inner(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The number that a text begins with, and its length: `-12`, `1.5`, `.5`, `2e-9`.
pub(super) fn number(text: &str) -> Option<(usize, &str)> {
    let digits = |from: usize| {
        let rest = text.get(from..).expect("places are those of characters");
        rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len())
    };
    let sign = usize::from(text.starts_with(['-', '+']));
    let whole = digits(sign);
    let mut end = sign + whole;
    let fraction = if text.get(end..)?.starts_with('.') { digits(end + 1) } else { 0 };
    if whole == 0 && fraction == 0 {
        return None;
    }
    end += if fraction > 0 { fraction + 1 } else { 0 };
    if text.get(end..)?.starts_with(['e', 'E']) {
        let sign = usize::from(text.get(end + 1..)?.starts_with(['-', '+']));
        let exponent = digits(end + 1 + sign);
        end += if exponent > 0 { 1 + sign + exponent } else { 0 };
    }
    Some((end, text.get(..end)?))
}

/// What stands between quotes at the begin of a text, two of which are one; and its length with
/// quotes.
pub(super) fn quoted(text: &str, quote: char) -> Option<(usize, String)> {
    let mut value = String::new();
    let mut chars = text.char_indices().skip(1).peekable();
    while let Some((at, c)) = chars.next() {
        if c != quote {
            value.push(c);
        } else if chars.next_if(|(_, next)| *next == quote).is_some() {
            value.push(quote);
        } else {
            return Some((at + 1, value));
        }
    }
    None
}

/// An error that shows the place.
#[cold]
pub(super) fn fault(text: &str, at: usize, message: impl fmt::Display) -> Error {
    let before = text.get(..at).unwrap_or(text).chars().count();
    // One line, so that the mark stands below what it means.
    let line = text.replace(|c: char| c.is_control(), " ");
    Error::usage(format_args!(
        "character {} of the predicate: {message}\n  {line}\n  {:before$}^",
        before + 1,
        ""
    ))
}

pub(super) fn is_keyword(word: &str) -> bool {
    KEYWORDS.iter().any(|keyword| word.eq_ignore_ascii_case(keyword))
}
