//! Formats expressions in the text form (`Display`).

use std::fmt;

use crate::predicate::calculation::{Arithmetic, Expression, Step, Unary};
use crate::predicate::type_name::TypeName;

/// Precedence of operators: an operand of lower precedence needs brackets.
const SUM: u8 = 1;
const PRODUCT: u8 = 2;
const SIGN: u8 = 3;
const ATOM: u8 = 4;

impl Arithmetic {
    fn strength(self) -> u8 {
        match self {
            Self::Add | Self::Subtract => SUM,
            Self::Multiply | Self::Divide | Self::Remainder => PRODUCT,
        }
    }
}

impl fmt::Display for Arithmetic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::Divide => "/",
            Self::Remainder => "%",
        })
    }
}

impl Unary {
    /// The name of a function in the text form.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Negate => "-",
            Self::Abs => "abs",
            Self::Lower => "lower",
            Self::Upper => "upper",
            Self::Length => "length",
            Self::Cast(_) => "cast",
        }
    }

    fn applied(&self, to: Text) -> Text {
        let (text, strength) = match self {
            Self::Negate => (format!("-{}", to.at_least(SIGN)), SIGN),
            Self::Cast(data_type) => {
                (format!("cast({} as {})", to.text, TypeName(data_type)), ATOM)
            }
            _ => (format!("{}({})", self.name(), to.text), ATOM),
        };
        Text { text, strength }
    }
}

/// The text of a part.
struct Text {
    text: String,
    strength: u8,
}

impl Text {
    fn at_least(self, strength: u8) -> String {
        if self.strength < strength { format!("({})", self.text) } else { self.text }
    }
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut texts: Vec<Text> = Vec::new();
        for step in &self.steps {
            let text = match step {
                Step::Column(column) => Text { text: column.to_string(), strength: ATOM },
                Step::Literal(literal) => Text { text: literal.to_string(), strength: ATOM },
                Step::Unary(function) => match texts.pop() {
                    Some(of) => function.applied(of),
                    None => continue,
                },
                Step::Binary(op) => {
                    let (Some(right), Some(left)) = (texts.pop(), texts.pop()) else { continue };
                    let strength = op.strength();
                    let (left, right) = (left.at_least(strength), right.at_least(strength + 1));
                    Text { text: format!("{left} {op} {right}"), strength }
                }
            };
            texts.push(text);
        }
        texts.iter().try_for_each(|text| f.write_str(&text.text))
    }
}
