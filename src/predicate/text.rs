//! The text form of predicates, read: [`Predicate::parse`].
//!
//! Used by the command-line tool. The grammar is in [`crate::predicate`]. Recursive descent over
//! tokens with their byte offsets.
//! Trap: `date`, `any` and the like are keywords only where a string or a parenthesis follows;
//! columns have such names.

use arrow_schema::DataType;

use super::datetime;
use super::expression::{Column, Predicate, Quantifier, Term, col, not};
use super::literal::{Literal, LiteralKind};
use super::tokens::{Token, fault, is_keyword, tokens};
use super::value::LiteralValue;
use crate::error::{Error, Result};
use crate::geo::Rectangle;
use crate::variant::VariantShape;

/// Deeper nesting than this is refused: every level takes a piece of the stack.
const MAX_NESTED: usize = 200;

impl Predicate {
    /// Reads the text form.
    ///
    /// # Errors
    /// `Usage`, with the place and what was expected there.
    pub fn parse(text: &str) -> Result<Self> {
        parse(text)
    }
}

impl std::str::FromStr for Predicate {
    type Err = crate::error::Error;

    fn from_str(text: &str) -> Result<Self> {
        Self::parse(text)
    }
}

/// Reads a predicate.
fn parse(text: &str) -> Result<Predicate> {
    let tokens = tokens(text)?;
    let mut parser = PredicateParser { text, tokens, next: 0, depth: 0 };
    let predicate = parser.or()?;
    match parser.peek() {
        Token::End => Ok(predicate),
        _ => Err(parser.expected("\"and\", \"or\" or the end")),
    }
}

struct PredicateParser<'a> {
    text: &'a str,
    tokens: Vec<(usize, Token)>,
    next: usize,
    depth: usize,
}

impl PredicateParser<'_> {
    fn peek(&self) -> &Token {
        self.ahead(0)
    }

    fn ahead(&self, by: usize) -> &Token {
        self.tokens.get(self.next + by).map_or(&Token::End, |(_, token)| token)
    }

    fn take(&mut self) -> Token {
        let token = self.peek().clone();
        self.next += 1;
        token
    }

    /// Takes the next token if it is `token`.
    fn takes(&mut self, token: &Token) -> bool {
        let is = self.peek() == token;
        self.next += usize::from(is);
        is
    }

    fn is_word(&self, by: usize, word: &str) -> bool {
        matches!(self.ahead(by), Token::Word(found) if found.eq_ignore_ascii_case(word))
    }

    /// Takes the next token if it is the word.
    fn takes_word(&mut self, word: &str) -> bool {
        let is = self.is_word(0, word);
        self.next += usize::from(is);
        is
    }

    #[cold]
    fn expected(&self, what: &str) -> Error {
        let at = self.tokens.get(self.next).map_or(self.text.len(), |(at, _)| *at);
        let end = self.tokens.get(self.next + 1).map_or(self.text.len(), |(at, _)| *at);
        match self.text.get(at..end).map(str::trim).filter(|found| !found.is_empty()) {
            Some(found) => fault(self.text, at, format_args!("expected {what}, found {found}")),
            None => fault(self.text, at, format_args!("expected {what}, found the end")),
        }
    }

    fn expect(&mut self, token: &Token, what: &str) -> Result<()> {
        if self.takes(token) { Ok(()) } else { Err(self.expected(what)) }
    }

    fn or(&mut self) -> Result<Predicate> {
        let mut parts = vec![self.and()?];
        while self.takes_word("or") {
            parts.push(self.and()?);
        }
        Ok(Predicate::any_of(parts))
    }

    fn and(&mut self) -> Result<Predicate> {
        let mut parts = vec![self.not()?];
        while self.takes_word("and") {
            parts.push(self.not()?);
        }
        Ok(Predicate::all_of(parts))
    }

    fn not(&mut self) -> Result<Predicate> {
        self.depth += 1;
        if self.depth > MAX_NESTED {
            return Err(self.expected("less nesting"));
        }
        let predicate = if self.takes_word("not") { not(self.not()?) } else { self.primary()? };
        self.depth -= 1;
        Ok(predicate)
    }

    fn primary(&mut self) -> Result<Predicate> {
        if self.takes(&Token::Open) {
            let inner = self.or()?;
            self.expect(&Token::Close, "\")\"")?;
            return Ok(inner);
        }
        if self.takes_call("starts_with") {
            return self.starts_with();
        }
        if self.takes_call("intersects") {
            return self.intersects();
        }
        if let Some(literal) = self.literal()? {
            if let Token::Op(op) = *self.peek() {
                self.next += 1;
                let column = self.operand()?;
                return Ok(column.compare(op.flipped(), literal));
            }
            return match literal.kind {
                LiteralKind::Boolean(value) => Ok(Predicate::of(Term::Constant(Some(value)))),
                LiteralKind::Null => Ok(Predicate::of(Term::Constant(None))),
                _ => Err(self.expected("a comparison")),
            };
        }
        let column = self.operand()?;
        self.tail(column)
    }

    /// Takes the name of a function and the bracket after it.
    fn takes_call(&mut self, name: &str) -> bool {
        let is = self.is_word(0, name) && *self.ahead(1) == Token::Open;
        self.next += if is { 2 } else { 0 };
        is
    }

    fn starts_with(&mut self) -> Result<Predicate> {
        let column = self.operand()?;
        self.expect(&Token::Comma, "\",\"")?;
        let prefix: Literal = match self.take() {
            Token::Text(text) => text.into(),
            Token::Bytes(bytes) => bytes.into(),
            _ => {
                self.next -= 1;
                return Err(self.expected("a string"));
            }
        };
        self.expect(&Token::Close, "\")\"")?;
        Ok(column.starts_with(prefix))
    }

    fn intersects(&mut self) -> Result<Predicate> {
        let column = self.operand()?;
        let mut sides = [0.0; 4];
        for (side, name) in sides.iter_mut().zip(["xmin", "ymin", "xmax", "ymax"]) {
            self.expect(&Token::Comma, &format!("\",\" and {name}"))?;
            let start = self.next;
            let literal = self.literal()?;
            let value = literal.and_then(|literal| literal.coerce(&DataType::Float64).ok());
            let Some(Some(LiteralValue::Float(value))) = value else {
                self.next = start;
                return Err(self.expected(&format!("{name}, a number")));
            };
            *side = value;
        }
        self.expect(&Token::Close, "\")\"")?;
        let [xmin, ymin, xmax, ymax] = sides;
        Ok(column.intersects(Rectangle::new(xmin, ymin, xmax, ymax)))
    }

    /// What is said of a column.
    fn tail(&mut self, column: Column) -> Result<Predicate> {
        if let Token::Op(op) = *self.peek() {
            self.next += 1;
            let literal = self.expect_literal()?;
            return Ok(column.compare(op, literal));
        }
        if self.takes_word("is") {
            let negated = self.takes_word("not");
            let column = if negated { column.opposite() } else { column };
            let predicate = if self.takes_word("null") {
                column.is_null()
            } else if self.takes_word("empty") {
                column.is_empty()
            } else {
                let what = if negated {
                    "\"null\" or \"empty\""
                } else {
                    "\"null\", \"empty\" or \"not\""
                };
                return Err(self.expected(what));
            };
            return Ok(if negated { not(predicate) } else { predicate });
        }
        let negated = self.takes_word("not");
        let column = if negated { column.opposite() } else { column };
        let predicate = if self.takes_word("in") {
            self.expect(&Token::Open, "\"(\"")?;
            let mut literals = Vec::new();
            if !self.takes(&Token::Close) {
                loop {
                    literals.push(self.expect_literal()?);
                    if self.takes(&Token::Close) {
                        break;
                    }
                    self.expect(&Token::Comma, "\",\" or \")\"")?;
                }
            }
            column.is_in(literals)
        } else if self.takes_word("between") {
            let low = self.expect_literal()?;
            if !self.takes_word("and") {
                return Err(self.expected("\"and\" and the upper bound"));
            }
            column.between(low, self.expect_literal()?)
        } else if self.takes_word("like") {
            let pattern = self.expect_text("a pattern in single quotes")?;
            let escape = if self.takes_word("escape") {
                let escape = self.expect_text("an escape character in single quotes")?;
                let mut chars = escape.chars();
                match (chars.next(), chars.next()) {
                    (escape, None) => escape,
                    _ => {
                        self.next -= 1;
                        return Err(self.expected("one character or none"));
                    }
                }
            } else {
                Some('\\')
            };
            column.like_escaped(pattern, escape)
        } else if negated {
            return Err(self.expected("\"in\", \"between\" or \"like\""));
        } else if self.ends() {
            return Ok(column.eq(true));
        } else {
            return Err(self.expected("a comparison"));
        };
        Ok(if negated { not(predicate) } else { predicate })
    }

    /// Whether a column may stand alone here.
    fn ends(&self) -> bool {
        matches!(self.peek(), Token::End | Token::Close)
            || self.is_word(0, "and")
            || self.is_word(0, "or")
    }

    fn operand(&mut self) -> Result<Column> {
        for (word, elements) in [("any", Quantifier::Any), ("all", Quantifier::All)] {
            if self.is_word(0, word) && *self.ahead(1) == Token::Open {
                self.next += 2;
                let path = self.path()?;
                self.expect(&Token::Close, "\")\"")?;
                return Ok(Column { path, elements: Some(elements), part: None });
            }
        }
        if self.takes_call("variant_get") {
            return self.variant_get();
        }
        Ok(col(self.path()?))
    }

    fn variant_get(&mut self) -> Result<Column> {
        let column = col(self.path()?);
        self.expect(&Token::Comma, "\",\" and a path")?;
        let path = self.text("a path, as '$.name[0]'")?;
        let path = path.parse().map_err(|e: Error| self.expected(&format!("a path ({e})")))?;
        self.expect(&Token::Comma, "\",\" and a type")?;
        let name = self.text("a type, as 'int64' or 'string'")?;
        let shape = VariantShape::parse(&name);
        let data_type = shape.ok().and_then(|shape| shape.scalar_type());
        let data_type = data_type.ok_or_else(|| {
            self.expected("the name of a type that VARIANT can be shredded as, or 'variant'")
        })?;
        self.expect(&Token::Close, "\")\"")?;
        Ok(column.variant_get(path, data_type))
    }

    fn text(&mut self, what: &str) -> Result<String> {
        match self.take() {
            Token::Text(text) => Ok(text),
            _ => {
                self.next -= 1;
                Err(self.expected(what))
            }
        }
    }

    fn path(&mut self) -> Result<String> {
        let mut path = self.name()?;
        while self.takes(&Token::Dot) {
            path.push('.');
            path.push_str(&self.name()?);
        }
        Ok(path)
    }

    fn name(&mut self) -> Result<String> {
        match self.take() {
            Token::Name(name) => Ok(name),
            Token::Word(word) if !is_keyword(&word) => Ok(word),
            _ => {
                self.next -= 1;
                Err(self.expected("a column"))
            }
        }
    }

    fn expect_text(&mut self, what: &str) -> Result<String> {
        match self.take() {
            Token::Text(text) => Ok(text),
            _ => {
                self.next -= 1;
                Err(self.expected(what))
            }
        }
    }

    fn expect_literal(&mut self) -> Result<Literal> {
        match self.literal()? {
            Some(literal) => Ok(literal),
            None => Err(self.expected("a literal (strings are in single quotes)")),
        }
    }

    /// The literal that comes next, if one does.
    fn literal(&mut self) -> Result<Option<Literal>> {
        let literal = match self.peek() {
            Token::Text(text) => text.as_str().into(),
            Token::Bytes(bytes) => bytes.clone().into(),
            Token::Number(number) => number.clone(),
            Token::Word(word) => {
                let word = word.to_ascii_lowercase();
                match (word.as_str(), self.ahead(1)) {
                    ("true", _) => true.into(),
                    ("false", _) => false.into(),
                    ("null", _) => Literal::NULL,
                    ("date" | "time" | "timestamp" | "double", Token::Text(text)) => {
                        let literal = typed(&word, text);
                        self.next += 1;
                        match literal {
                            Some(literal) => literal,
                            None => return Err(self.expected(&format!("a {word}"))),
                        }
                    }
                    _ => return Ok(None),
                }
            }
            _ => return Ok(None),
        };
        self.next += 1;
        Ok(Some(literal.by_value()))
    }
}

/// A literal whose type is named in front of it.
fn typed(name: &str, text: &str) -> Option<Literal> {
    Some(Literal::of(match name {
        "date" => LiteralKind::Date(datetime::parse_date(text)?.try_into().ok()?),
        "time" => LiteralKind::Time(datetime::parse_time(text)?),
        "timestamp" => {
            let (nanos, in_utc) = datetime::parse_timestamp(text)?;
            LiteralKind::Timestamp(nanos, in_utc)
        }
        _ => return text.parse::<f64>().ok().map(Into::into),
    }))
}
