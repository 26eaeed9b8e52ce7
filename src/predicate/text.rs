//! Parses the text form of predicates: [`Predicate::parse`].
//!
//! Used by the command-line tool. [`crate::predicate`] has the grammar. The parser is a recursive
//! descent over tokens with their byte offsets.
//! Trap: `date`, `any` and the like are keywords only if a string or a parenthesis follows, because
//! columns have such names.

use arrow_schema::DataType;

use super::calculation::{Arithmetic, Expression};
use super::datetime;
use super::expression::{Column, Predicate, Quantifier, Term, Test, col, not};
use super::literal::{Literal, LiteralKind};
use super::tokens::{Token, fault, is_keyword, tokens};
use super::type_name::type_named;
use super::value::LiteralValue;
use crate::error::{Error, Result};
use crate::geo::Rectangle;
use crate::variant::VariantShape;

/// Deeper nesting than this is refused: every level takes a piece of the stack.
const MAX_NESTED: usize = 300;

impl Predicate {
    /// Parses the text form.
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
    let parsed = parser.parse(0)?;
    match (parser.peek(), &parsed) {
        (Token::End, _) => parser.predicate(parsed),
        (_, Parsed::Predicate(_)) => Err(parser.expected("\"and\", \"or\" or the end")),
        (_, Parsed::Value(_)) => Err(parser.expected("a comparison")),
    }
}

/// A part of the text, which is known to be one or the other only after it was parsed, because both
/// may be in brackets.
enum Parsed {
    /// In a box, because each level of nesting holds it several times.
    Predicate(Box<Predicate>),
    Value(Expression),
}

impl From<Predicate> for Parsed {
    fn from(predicate: Predicate) -> Self {
        Self::Predicate(Box::new(predicate))
    }
}

/// Precedence of operators.
const OR: u8 = 1;
const AND: u8 = 2;
const NOT: u8 = 3;
const COMPARISON: u8 = 4;
const SUM: u8 = 5;
const PRODUCT: u8 = 6;
const SIGN: u8 = 7;

/// The functions that there are, for the error that names another.
const FUNCTIONS: &str =
    "abs, all, any, cast, intersects, length, lower, starts_with, upper and variant_get";

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

    /// Reads operators that hold at least as strongly as `min`, and what they join.
    fn parse(&mut self, min: u8) -> Result<Parsed> {
        self.depth += 1;
        if self.depth > MAX_NESTED {
            return Err(self.expected("less nesting"));
        }
        let mut left = self.prefix()?;
        while let Some(strength) = self.operator().filter(|strength| *strength >= min) {
            left = self.infix(left, strength)?;
        }
        self.depth -= 1;
        Ok(left)
    }

    /// Parses the next operator, and its right operand.
    fn infix(&mut self, left: Parsed, strength: u8) -> Result<Parsed> {
        match strength {
            OR | AND => {
                let left = self.predicate(left)?;
                self.next += 1;
                let right = self.parsed_predicate(strength + 1)?;
                let both = if strength == OR { left.or(right) } else { left.and(right) };
                Ok(both.into())
            }
            COMPARISON => {
                let left = self.value(left)?;
                self.comparison(left).map(Parsed::from)
            }
            _ => {
                let left = self.value(left)?;
                self.arithmetic(left, strength).map(Parsed::Value)
            }
        }
    }

    /// How strongly the operator holds that comes next, if one does.
    fn operator(&self) -> Option<u8> {
        match self.peek() {
            Token::Op(_) => Some(COMPARISON),
            Token::Plus | Token::Minus => Some(SUM),
            Token::Star | Token::Slash | Token::Percent => Some(PRODUCT),
            Token::Word(word) => match word.to_ascii_lowercase().as_str() {
                "or" => Some(OR),
                "and" => Some(AND),
                "is" | "in" | "between" | "like" | "ilike" | "not" => Some(COMPARISON),
                _ => None,
            },
            _ => None,
        }
    }

    fn prefix(&mut self) -> Result<Parsed> {
        if self.takes_word("not") {
            return self.negation();
        }
        if self.takes(&Token::Minus) {
            return self.parsed_value(SIGN).map(|value| Parsed::Value(-value));
        }
        if self.takes(&Token::Plus) {
            return self.parsed_value(SIGN).map(Parsed::Value);
        }
        if self.takes(&Token::Open) {
            let inner = self.parse(0)?;
            self.expect(&Token::Close, "\")\"")?;
            return Ok(inner);
        }
        self.atom()
    }

    fn negation(&mut self) -> Result<Parsed> {
        self.parsed_predicate(NOT).map(|inner| not(inner).into())
    }

    /// A predicate; its operators hold at least as strongly as `min`.
    fn parsed_predicate(&mut self, min: u8) -> Result<Predicate> {
        let parsed = self.parse(min)?;
        self.predicate(parsed)
    }

    fn arithmetic(&mut self, left: Expression, strength: u8) -> Result<Expression> {
        let op = match self.take() {
            Token::Plus => Arithmetic::Add,
            Token::Minus => Arithmetic::Subtract,
            Token::Star => Arithmetic::Multiply,
            Token::Slash => Arithmetic::Divide,
            _ => Arithmetic::Remainder,
        };
        Ok(left.binary(op, self.parsed_value(strength + 1)?))
    }

    /// A value; its operators hold at least as strongly as `min`.
    fn parsed_value(&mut self, min: u8) -> Result<Expression> {
        let parsed = self.parse(min)?;
        self.value(parsed)
    }

    fn value(&self, parsed: Parsed) -> Result<Expression> {
        match parsed {
            Parsed::Value(value) => Ok(value),
            Parsed::Predicate(_) => Err(self.expected("\"and\", \"or\" or the end of a predicate")),
        }
    }

    /// Converts to a predicate; a column of booleans is one by itself.
    fn predicate(&self, parsed: Parsed) -> Result<Predicate> {
        let value = match parsed {
            Parsed::Predicate(predicate) => return Ok(*predicate),
            Parsed::Value(value) => value,
        };
        match value.into_column().map_err(Expression::into_literal) {
            Ok(column) => Ok(column.eq(true)),
            Err(Ok(literal)) => match literal.kind {
                LiteralKind::Boolean(value) => Ok(Predicate::new(Term::Constant(Some(value)))),
                LiteralKind::Null => Ok(Predicate::new(Term::Constant(None))),
                _ => Err(self.expected("a comparison")),
            },
            Err(Err(_)) => Err(self.expected("a comparison")),
        }
    }

    /// A literal, a function or a column.
    fn atom(&mut self) -> Result<Parsed> {
        if let Some(literal) = self.literal()? {
            return Ok(Parsed::Value(literal.into()));
        }
        match (self.peek(), self.ahead(1)) {
            (Token::Word(word), Token::Open) if !is_keyword(word) => {
                let name = word.to_ascii_lowercase();
                self.next += 2;
                self.function(&name)
            }
            _ => Ok(Parsed::Value(col(self.path()?).into())),
        }
    }

    /// A function, after the bracket that opens.
    fn function(&mut self, name: &str) -> Result<Parsed> {
        let value = match name {
            "starts_with" => return self.starts_with().map(Parsed::from),
            "intersects" => return self.intersects().map(Parsed::from),
            "any" => self.elements(Quantifier::Any)?.into(),
            "all" => self.elements(Quantifier::All)?.into(),
            "variant_get" => self.variant_get()?.into(),
            "lower" => self.argument()?.lower(),
            "upper" => self.argument()?.upper(),
            "length" => self.argument()?.length(),
            "abs" => self.argument()?.abs(),
            "cast" => self.cast()?,
            _ => {
                self.next -= 2;
                let at = self.tokens.get(self.next).map_or(self.text.len(), |(at, _)| *at);
                return Err(fault(
                    self.text,
                    at,
                    format_args!("not supported: function `{name}`; there are {FUNCTIONS}"),
                ));
            }
        };
        Ok(Parsed::Value(value))
    }

    /// The only argument of a function.
    fn argument(&mut self) -> Result<Expression> {
        let value = self.parsed_value(SUM)?;
        self.expect(&Token::Close, "\")\"")?;
        Ok(value)
    }

    fn cast(&mut self) -> Result<Expression> {
        let value = self.parsed_value(SUM)?;
        if !self.takes_word("as") {
            return Err(self.expected("\"as\" and a type"));
        }
        let data_type = self.data_type()?;
        self.expect(&Token::Close, "\")\"")?;
        Ok(value.cast(data_type))
    }

    fn data_type(&mut self) -> Result<DataType> {
        let start = self.next;
        let Token::Word(name) = self.take() else {
            self.next = start;
            return Err(self.expected("a type"));
        };
        let name = name.to_ascii_lowercase();
        if name == "double" {
            self.takes_word("precision");
        }
        let mut numbers = Vec::new();
        if self.takes(&Token::Open) {
            loop {
                match self.literal()?.map(|literal| literal.kind) {
                    Some(LiteralKind::Int(number)) => numbers.push(number),
                    _ => return Err(self.expected("a number")),
                }
                if self.takes(&Token::Close) {
                    break;
                }
                self.expect(&Token::Comma, "\",\" or \")\"")?;
            }
        }
        type_named(&name, &numbers).ok_or_else(|| {
            self.next = start;
            self.expected("a type, as int64, double, decimal(9, 2), string, date or timestamp")
        })
    }

    fn elements(&mut self, elements: Quantifier) -> Result<Column> {
        let path = self.path()?;
        self.expect(&Token::Close, "\")\"")?;
        Ok(Column { path, elements: Some(elements), part: None })
    }

    /// A column as the argument of a function.
    fn column_argument(&mut self) -> Result<Column> {
        let start = self.next;
        self.parsed_value(SUM)?.into_column().map_err(|_| {
            self.next = start;
            self.expected("a column")
        })
    }

    fn starts_with(&mut self) -> Result<Predicate> {
        let value = self.parsed_value(SUM)?;
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
        Ok(value.starts_with(prefix))
    }

    fn intersects(&mut self) -> Result<Predicate> {
        let column = self.column_argument()?;
        let mut sides = [0.0; 4];
        for (side, name) in sides.iter_mut().zip(["xmin", "ymin", "xmax", "ymax"]) {
            self.expect(&Token::Comma, &format!("\",\" and {name}"))?;
            let start = self.next;
            let literal = self.parsed_value(SUM)?.into_literal().ok();
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

    /// Parses the rest of a test, from the operator on.
    fn comparison(&mut self, left: Expression) -> Result<Predicate> {
        if let Token::Op(op) = *self.peek() {
            self.next += 1;
            return Ok(left.compare(op, self.parsed_value(SUM)?));
        }
        if self.takes_word("is") {
            return self.is(left);
        }
        let negated = self.takes_word("not");
        let left = if negated { left.opposite() } else { left };
        let predicate = if self.takes_word("in") {
            left.is_in(self.list()?)
        } else if self.takes_word("between") {
            let low = self.parsed_value(SUM)?;
            if !self.takes_word("and") {
                return Err(self.expected("\"and\" and the upper bound"));
            }
            left.between(low, self.parsed_value(SUM)?)
        } else if self.takes_word("like") {
            let (pattern, escape) = self.pattern()?;
            left.test(Test::Like(pattern, escape))
        } else if self.takes_word("ilike") {
            let (pattern, escape) = self.pattern()?;
            left.test(Test::ILike(pattern, escape))
        } else {
            return Err(self.expected("\"in\", \"between\", \"like\" or \"ilike\""));
        };
        Ok(if negated { not(predicate) } else { predicate })
    }

    /// Parses the text after `is`.
    fn is(&mut self, left: Expression) -> Result<Predicate> {
        let negated = self.takes_word("not");
        let left = if negated { left.opposite() } else { left };
        let test = if self.takes_word("null") {
            Test::IsNull
        } else if self.takes_word("empty") {
            Test::IsEmpty
        } else {
            let what =
                if negated { "\"null\" or \"empty\"" } else { "\"null\", \"empty\" or \"not\"" };
            return Err(self.expected(what));
        };
        let predicate = left.test(test);
        Ok(if negated { not(predicate) } else { predicate })
    }

    /// The literals of an `in`.
    fn list(&mut self) -> Result<Vec<Literal>> {
        self.expect(&Token::Open, "\"(\"")?;
        let mut literals = Vec::new();
        if self.takes(&Token::Close) {
            return Ok(literals);
        }
        loop {
            let start = self.next;
            let literal = self.parsed_value(SUM)?.into_literal();
            literals.push(literal.map_err(|_| {
                self.next = start;
                self.expected("a literal (strings are in single quotes)")
            })?);
            if self.takes(&Token::Close) {
                return Ok(literals);
            }
            self.expect(&Token::Comma, "\",\" or \")\"")?;
        }
    }

    /// A pattern and its escape character.
    fn pattern(&mut self) -> Result<(String, Option<char>)> {
        let pattern = self.text("a pattern in single quotes")?;
        if !self.takes_word("escape") {
            return Ok((pattern, Some('\\')));
        }
        let escape = self.text("an escape character in single quotes")?;
        let mut chars = escape.chars();
        match (chars.next(), chars.next()) {
            (escape, None) => Ok((pattern, escape)),
            _ => {
                self.next -= 1;
                Err(self.expected("one character or none"))
            }
        }
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
                Err(self.expected("a value"))
            }
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
    Some(Literal::new(match name {
        "date" => LiteralKind::Date(datetime::parse_date(text)?.try_into().ok()?),
        "time" => LiteralKind::Time(datetime::parse_time(text)?),
        "timestamp" => {
            let (nanos, in_utc) = datetime::parse_timestamp(text)?;
            LiteralKind::Timestamp(nanos, in_utc)
        }
        _ => return text.parse::<f64>().ok().map(Into::into),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parentheses_nest_as_deep_as_allowed() {
        let nested = |n: usize| format!("{}x{}", "(".repeat(n), ")".repeat(n));
        let deepest = (0..).find(|n| Predicate::parse(&nested(n + 1)).is_err());
        assert_eq!(deepest, Some(MAX_NESTED - 1));
    }
}
