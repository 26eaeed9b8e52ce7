//! Simplifies predicates whose partition columns are known: their values are part of the name of a
//! folder.

use arrow_array::RecordBatch;

use super::expression::{Predicate, Term, not};
use crate::error::{Error, Result};

impl Predicate {
    /// Simplifies the predicate for known columns: `values` is a batch of one row, whose columns do
    /// not occur in the result.
    ///
    /// Tests of known columns alone become `true`, `false` or `null`; the result is
    /// [`Predicate::FALSE`] if no row can match.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use marquetry::arrow_array::{ArrayRef, Int64Array, RecordBatch};
    /// use marquetry::Predicate;
    ///
    /// let year: ArrayRef = Arc::new(Int64Array::from(vec![2024]));
    /// let values = RecordBatch::try_from_iter([("year", year)])?;
    /// let left = |text| Predicate::parse(text)?.with_known(&values);
    /// assert_eq!(left("year = 2024 and amount > 10")?.to_string(), "amount > 10");
    /// assert_eq!(left("year < 2024 and amount > 10")?, Predicate::FALSE);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `Usage` if `values` is not one row, a literal does not fit the type of a known column, or
    /// some but not all columns of a function are known.
    pub fn with_known(&self, values: &RecordBatch) -> Result<Self> {
        if values.num_rows() != 1 {
            return Err(Error::usage(format_args!(
                "known columns have one value each; the batch has {} rows",
                values.num_rows()
            )));
        }
        let is_known = |name: &str| values.schema_ref().column_with_name(name).is_some();
        let mut left: Vec<Self> = Vec::new();
        for part in self.operands.iter().chain([&self.root]) {
            let folded = match part {
                Term::Test(column, _) if is_known(&column.path) => evaluate(part, values)?,
                Term::Constant(_) | Term::Test(..) => Self::new(part.clone()),
                Term::Function(columns, _) => {
                    match columns.iter().filter(|name| is_known(name)).count() {
                        0 => Self::new(part.clone()),
                        n if n == columns.len() => evaluate(part, values)?,
                        _ => return Err(half_known()),
                    }
                }
                Term::Computed(value, test) => {
                    left_of(value.with_known(values).test(test.clone()), values)?
                }
                Term::Comparison(a, op, b) => {
                    left_of(a.with_known(values).compare(*op, b.with_known(values)), values)?
                }
                Term::Not => match left.pop() {
                    Some(Self { root: Term::Constant(known), .. }) => constant(known.map(|k| !k)),
                    Some(inner) => not(inner),
                    None => continue,
                },
                Term::And(n) => join(left.split_off(left.len().saturating_sub(*n)), false),
                Term::Or(n) => join(left.split_off(left.len().saturating_sub(*n)), true),
            };
            left.push(folded);
        }
        // A null of a whole predicate keeps no row, as false does.
        let left = left.pop().filter(|left| left.root != Term::Constant(None));
        Ok(left.unwrap_or(Self::FALSE))
    }
}

/// Replaces known columns by literals: the result is a constant, if no column is left.
fn left_of(part: Predicate, values: &RecordBatch) -> Result<Predicate> {
    let has_columns = match &part.root {
        Term::Computed(value, _) => value.columns().next().is_some(),
        Term::Comparison(a, _, b) => a.columns().chain(b.columns()).next().is_some(),
        _ => true,
    };
    if has_columns { Ok(part) } else { evaluate(&part.root, values) }
}

fn constant(known: Option<bool>) -> Predicate {
    Predicate::new(Term::Constant(known))
}

/// Parts of an `and`, which false decides, or of an `or`, which true decides.
fn join(mut parts: Vec<Predicate>, decides: bool) -> Predicate {
    if parts.iter().any(|part| part.root == Term::Constant(Some(decides))) {
        return constant(Some(decides));
    }
    parts.retain(|part| part.root != Term::Constant(Some(!decides)));
    // Parts that are all null stay null.
    if parts.iter().all(|part| part.root == Term::Constant(None)) {
        parts.truncate(1);
    }
    if decides { Predicate::any_of(parts) } else { Predicate::all_of(parts) }
}

/// Evaluates to one of three values: evaluation returns false for null, so a term that is neither
/// true nor, negated, true is null.
fn evaluate(part: &Term, values: &RecordBatch) -> Result<Predicate> {
    let holds = |predicate: Predicate| -> Result<bool> {
        Ok(predicate.bind_to(values.schema_ref())?.evaluate(values)?.value(0))
    };
    if holds(Predicate::new(part.clone()))? {
        return Ok(constant(Some(true)));
    }
    let is_false = holds(not(Predicate::new(part.clone())))?;
    Ok(constant(is_false.then_some(false)))
}

#[cold]
fn half_known() -> Error {
    Error::usage("a function takes columns of which some are known beforehand and some are not")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, Int64Array, StringArray};

    use super::*;

    fn values() -> RecordBatch {
        let columns: [(&str, ArrayRef); 3] = [
            ("year", Arc::new(Int64Array::from(vec![2024]))),
            ("land", Arc::new(StringArray::from(vec!["NL"]))),
            ("none", Arc::new(Int64Array::from(vec![None]))),
        ];
        RecordBatch::try_from_iter(columns).unwrap()
    }

    #[test]
    fn what_known_columns_decide_is_left_out() {
        for (text, left) in [
            ("a > 1", "a > 1"),
            ("year = 2024", "true"),
            ("year = 2023", "false"),
            ("none = 1", "false"),
            ("none is null", "true"),
            ("not none = 1", "false"),
            ("year = 2024 and land = 'NL' and a > 1", "a > 1"),
            ("year = 2024 and a > 1 and b is null", "a > 1 and b is null"),
            ("year = 2023 or a > 1", "a > 1"),
            ("year = 2024 or a > 1", "true"),
            ("none = 1 or year = 2023", "false"),
            ("none = 1 and none = 2", "false"),
            ("not (year = 2023 and a > 1)", "true"),
            ("not (year = 2024 and a > 1)", "not a > 1"),
            ("land in ('DE', 'NL') and (year < 2000 or a = 3)", "a = 3"),
        ] {
            let found = Predicate::parse(text).unwrap().with_known(&values()).unwrap();
            assert_eq!(found, Predicate::parse(left).unwrap(), "{text}");
        }
    }

    #[test]
    fn a_literal_that_does_not_fit_a_known_column_is_an_error() {
        assert!(Predicate::parse("year = 'x'").unwrap().with_known(&values()).is_err());
        let two = RecordBatch::new_empty(values().schema());
        assert!(Predicate::parse("a = 1").unwrap().with_known(&two).is_err());
    }
}
