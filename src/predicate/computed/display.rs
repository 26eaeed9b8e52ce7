//! Formats expressions in the text form (`Display`).

use std::fmt;

use crate::predicate::calculation::{Arithmetic, Expression, ExpressionStep, Unary};
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

    fn applied(&self, to: ExpressionText) -> ExpressionText {
        let (text, strength) = match self {
            Self::Negate => (format!("-{}", to.at_least(SIGN)), SIGN),
            Self::Cast(data_type) => {
                (format!("cast({} as {})", to.text, TypeName(data_type)), ATOM)
            }
            _ => (format!("{}({})", self.name(), to.text), ATOM),
        };
        ExpressionText { text, strength }
    }
}

/// The text of a part.
struct ExpressionText {
    text: String,
    strength: u8,
}

impl ExpressionText {
    fn at_least(self, strength: u8) -> String {
        if self.strength < strength { format!("({})", self.text) } else { self.text }
    }
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut texts: Vec<ExpressionText> = Vec::new();
        for step in &self.steps {
            let text = match step {
                ExpressionStep::Column(column) => {
                    ExpressionText { text: column.to_string(), strength: ATOM }
                }
                ExpressionStep::Literal(literal) => {
                    ExpressionText { text: literal.to_string(), strength: ATOM }
                }
                ExpressionStep::Unary(function) => match texts.pop() {
                    Some(of) => function.applied(of),
                    None => continue,
                },
                ExpressionStep::Binary(op) => {
                    let (Some(right), Some(left)) = (texts.pop(), texts.pop()) else { continue };
                    let strength = op.strength();
                    let (left, right) = (left.at_least(strength), right.at_least(strength + 1));
                    ExpressionText { text: format!("{left} {op} {right}"), strength }
                }
            };
            texts.push(text);
        }
        texts.iter().try_for_each(|text| f.write_str(&text.text))
    }
}
