//! Formats predicates in the text form (`Display`).

use std::fmt;

use super::expression::{Column, Op, Predicate, Quantifier, Term, Test};
use super::literal::Literal;
use super::tokens::{is_first, is_inner, is_keyword};
use crate::geo::Rectangle;
use crate::variant::VariantShape;

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Eq => "=",
            Self::NotEq => "<>",
            Self::Lt => "<",
            Self::LtEq => "<=",
            Self::Gt => ">",
            Self::GtEq => ">=",
        })
    }
}

impl fmt::Display for Column {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plain = self.path.split('.').all(|name| {
            name.starts_with(is_first) && name.chars().all(is_inner) && !is_keyword(name)
        });
        let quoted = format!("\"{}\"", self.path.replace('"', "\"\""));
        let path = if plain { &self.path } else { &quoted };
        if let Some(part) = &self.part {
            let way = Literal::from(part.path.to_string());
            let name = VariantShape::from_type(&part.data_type);
            let name = name.map_or_else(|| part.data_type.to_string(), |shape| shape.to_string());
            return write!(f, "variant_get({path}, {way}, '{name}')");
        }
        match self.elements {
            None => f.write_str(path),
            Some(Quantifier::Any) => write!(f, "any({path})"),
            Some(Quantifier::All) => write!(f, "all({path})"),
        }
    }
}

/// An item that is still to be written.
enum Unwritten {
    /// A term, by its number.
    Term(usize),
    Text(&'static str),
}

impl fmt::Display for Predicate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let terms: Vec<&Term> = self.terms().collect();
        let starts = starts(&terms);
        // The item that is pushed last is written first.
        let mut left = vec![Unwritten::Term(terms.len() - 1)];
        while let Some(piece) = left.pop() {
            let at = match piece {
                Unwritten::Text(text) => {
                    f.write_str(text)?;
                    continue;
                }
                Unwritten::Term(at) => at,
            };
            match terms[at] {
                Term::Constant(None) => f.write_str("null")?,
                Term::Constant(Some(value)) => write!(f, "{value}")?,
                Term::Test(column, test) => write_test(f, column, test, "")?,
                Term::Computed(value, test) => write_test(f, value, test, "")?,
                Term::Comparison(left, op, right) => write!(f, "{left} {op} {right}")?,
                Term::Function(columns, _) => write!(f, "function({})", columns.join(", "))?,
                Term::Not => match terms[at - 1] {
                    Term::Test(column, test) if test.can_be_negated() => {
                        write_test(f, &column.clone().opposite(), test, "not ")?;
                    }
                    Term::Computed(value, test) if test.can_be_negated() => {
                        write_test(f, value, test, "not ")?;
                    }
                    Term::And(_) | Term::Or(_) => {
                        f.write_str("not (")?;
                        left.extend([Unwritten::Text(")"), Unwritten::Term(at - 1)]);
                    }
                    _ => {
                        f.write_str("not ")?;
                        left.push(Unwritten::Term(at - 1));
                    }
                },
                Term::And(n) => push_operands(&mut left, &terms, &starts, (at, *n), " and "),
                Term::Or(n) => push_operands(&mut left, &terms, &starts, (at, *n), " or "),
            }
        }
        Ok(())
    }
}

impl Test {
    /// Whether the text form has a `not` in its middle.
    fn can_be_negated(&self) -> bool {
        match self {
            Self::In(_)
            | Self::Between(..)
            | Self::IsNull
            | Self::IsEmpty
            | Self::Like(..)
            | Self::ILike(..) => true,
            Self::Compare(..) | Self::StartsWith(_) | Self::Intersects(_) => false,
        }
    }
}

/// Pushes the `n` operands of the term numbered `at`, the last one first.
fn push_operands(
    left: &mut Vec<Unwritten>,
    terms: &[&Term],
    starts: &[usize],
    (at, n): (usize, usize),
    operator: &'static str,
) {
    let is_and = matches!(terms[at], Term::And(_));
    let mut end = at;
    for i in (0..n).rev() {
        let operand = end - 1;
        end = starts[operand];
        match is_and && matches!(terms[operand], Term::Or(_)) {
            true => {
                left.extend([Unwritten::Text(")"), Unwritten::Term(operand), Unwritten::Text("(")])
            }
            false => left.push(Unwritten::Term(operand)),
        }
        if i > 0 {
            left.push(Unwritten::Text(operator));
        }
    }
}

/// For each term, the number of the first of those that it is made of, or its own.
fn starts(terms: &[&Term]) -> Vec<usize> {
    let mut starts: Vec<usize> = Vec::with_capacity(terms.len());
    for (at, step) in terms.iter().enumerate() {
        let operands = match step {
            Term::Constant(_)
            | Term::Test(..)
            | Term::Function(..)
            | Term::Computed(..)
            | Term::Comparison(..) => 0,
            Term::Not => 1,
            Term::And(n) | Term::Or(n) => *n,
        };
        starts.push((0..operands).fold(at, |before, _| starts[before - 1]));
    }
    starts
}

fn write_test(
    f: &mut fmt::Formatter<'_>,
    column: &dyn fmt::Display,
    test: &Test,
    negated: &str,
) -> fmt::Result {
    match test {
        Test::Compare(op, literal) => write!(f, "{column} {op} {literal}"),
        Test::In(literals) => {
            write!(f, "{column} {negated}in (")?;
            for (i, literal) in literals.iter().enumerate() {
                write!(f, "{}{literal}", if i > 0 { ", " } else { "" })?;
            }
            f.write_str(")")
        }
        Test::Between(low, high) => write!(f, "{column} {negated}between {low} and {high}"),
        Test::IsNull => write!(f, "{column} is {negated}null"),
        Test::IsEmpty => write!(f, "{column} is {negated}empty"),
        Test::StartsWith(prefix) => write!(f, "starts_with({column}, {prefix})"),
        Test::Intersects(rectangle) => {
            write!(f, "intersects({column}")?;
            let Rectangle { xmin, ymin, xmax, ymax } = rectangle;
            for side in [xmin, ymin, xmax, ymax] {
                write!(f, ", {}", Literal::from(*side))?;
            }
            f.write_str(")")
        }
        Test::Like(pattern, escape) | Test::ILike(pattern, escape) => {
            let like = if matches!(test, Test::Like(..)) { "like" } else { "ilike" };
            write!(f, "{column} {negated}{like} '{}'", pattern.replace('\'', "''"))?;
            match escape {
                Some('\\') => Ok(()),
                Some('\'') => f.write_str(" escape ''''"),
                Some(escape) => write!(f, " escape '{escape}'"),
                None => f.write_str(" escape ''"),
            }
        }
    }
}
