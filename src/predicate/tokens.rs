//! Splits the text form of predicates into tokens.

use std::borrow::Cow;
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

/// Signs and their tokens, longer ones before those that they begin with.
const SIGNS: [(&str, Token); 16] = [
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

/// Cuts a text into tokens, each with the byte where it begins.
pub(super) fn tokens(text: &str) -> Result<Vec<(usize, Token)>> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        let blanks = rest.len() - rest.trim_start().len();
        if blanks > 0 {
            at += blanks;
            continue;
        }
        let (len, token) = token(rest).map_err(|what| fault(text, at, what))?;
        tokens.push((at, token));
        at += len;
    }
    tokens.push((text.len(), Token::End));
    Ok(tokens)
}

/// The first token of a text, and its length; or the fault.
fn token(text: &str) -> std::result::Result<(usize, Token), Cow<'static, str>> {
    const NO_END: &str = "this string has no end";
    let sign = SIGNS.into_iter().find(|(sign, _)| text.starts_with(sign));
    if let Some((sign, token)) = sign {
        return Ok((sign.len(), token));
    }
    if let Some((len, number)) = number(text) {
        return Ok((len, Token::Number(Literal::number(number).ok_or("this is no number")?)));
    }
    if let Some(hex) = text.strip_prefix(['x', 'X']).filter(|rest| rest.starts_with('\'')) {
        let (len, digits) = quoted(hex, '\'').ok_or(NO_END)?;
        let bytes = from_hex(&digits).ok_or("expected pairs of hexadecimal digits")?;
        return Ok((len + 1, Token::Bytes(bytes)));
    }
    match text.chars().next() {
        Some('.') => Ok((1, Token::Dot)),
        Some('\'') => {
            let (len, value) = quoted(text, '\'').ok_or(NO_END)?;
            Ok((len, Token::Text(value)))
        }
        Some('"') => {
            let (len, value) = quoted(text, '"').ok_or("this name has no end")?;
            Ok((len, Token::Name(value)))
        }
        Some(c) if is_first(c) => {
            let (word, _) = text.split_at(text.find(|c| !is_inner(c)).unwrap_or(text.len()));
            Ok((word.len(), Token::Word(word.to_owned())))
        }
        other => Err(format!("{:?} means nothing here", other.unwrap_or_default()).into()),
    }
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

/// Parses a quoted string at the beginning of `text`; a doubled quote stands for one. Returns its
/// length, quotes included, and its contents.
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
    // One line, so that the mark is below the place that it means.
    let line = text.replace(|c: char| c.is_control(), " ");
    Error::usage(format_args!(
        "character {} of the predicate: {message}\n  {line}\n  {}^",
        before + 1,
        // Not as a width: a longer one than 65,535 is a panic.
        " ".repeat(before)
    ))
}

pub(super) fn is_keyword(word: &str) -> bool {
    KEYWORDS.iter().any(|keyword| word.eq_ignore_ascii_case(keyword))
}
