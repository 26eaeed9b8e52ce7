//! [`OrderedSpan`] says how values between two bounds may compare.

use std::cmp::Ordering;

use super::expression::Op;
use super::possible_results::PossibleResults;
use super::value::LiteralValue;

/// Bounds of values that are neither null nor NaN.
#[derive(Debug, Default)]
pub(super) struct OrderedSpan {
    pub(super) low: Option<LiteralValue>,
    pub(super) high: Option<LiteralValue>,
    /// Whether both bounds are known to be values.
    pub(super) exact: bool,
}

impl OrderedSpan {
    /// The results of comparing values between the bounds with `to`.
    pub(super) fn compared(&self, op: Op, to: &LiteralValue) -> PossibleResults {
        let order =
            |bound: &Option<LiteralValue>| bound.as_ref().and_then(|bound| bound.compare(to));
        // How the least and the greatest value compare; the others lie between. Without a bound,
        // they may do so in any way.
        let (low, high) = (
            order(&self.low).unwrap_or(Ordering::Less),
            order(&self.high).unwrap_or(Ordering::Greater),
        );
        let mut may = PossibleResults::NOTHING;
        for between in [Ordering::Less, Ordering::Equal, Ordering::Greater] {
            if low <= between && between <= high {
                may = may.with(PossibleResults::only(Some(op.holds(between))));
            }
        }
        // Numbers are less than NaN, if that is what they are compared with.
        if to.is_nan() {
            return PossibleResults::only(Some(op.holds(Ordering::Less)));
        }
        // A cut bound is not a value: it does not prove what all are equal to.
        if low == Ordering::Equal && high == Ordering::Equal && !self.exact {
            return PossibleResults::EITHER;
        }
        may
    }

    /// Whether values between the bounds begin with a prefix: those that do lie side by side.
    pub(super) fn starting_with(&self, prefix: &[u8]) -> PossibleResults {
        let side = |bound: &Option<LiteralValue>, unknown: Ordering| match bound {
            Some(LiteralValue::Bytes(bytes)) if bytes.starts_with(prefix) => Ordering::Equal,
            Some(LiteralValue::Bytes(bytes)) => bytes.as_slice().cmp(prefix),
            _ => unknown,
        };
        let (low, high) = (side(&self.low, Ordering::Less), side(&self.high, Ordering::Greater));
        if prefix.is_empty() {
            return PossibleResults::TRUE;
        }
        match (low, high) {
            (Ordering::Equal, Ordering::Equal) => PossibleResults::TRUE,
            (Ordering::Greater, _) | (_, Ordering::Less) => PossibleResults::FALSE,
            _ => PossibleResults::EITHER,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cut_bounds_prove_what_no_value_between_them_can_be() {
        let int = |value| LiteralValue::Int(value);
        let span = OrderedSpan { low: Some(int(3)), high: Some(int(5)), exact: false };
        for (op, to, expected) in [
            (Op::Lt, 3, PossibleResults::FALSE),
            (Op::GtEq, 3, PossibleResults::TRUE),
            (Op::Gt, 5, PossibleResults::FALSE),
            (Op::LtEq, 5, PossibleResults::TRUE),
            (Op::Eq, 3, PossibleResults::EITHER),
            (Op::Eq, 5, PossibleResults::EITHER),
            (Op::NotEq, 6, PossibleResults::TRUE),
        ] {
            assert_eq!(span.compared(op, &int(to)), expected, "{op:?} {to}");
        }
        let span = |exact| OrderedSpan { low: Some(int(3)), high: Some(int(3)), exact };
        assert_eq!(span(false).compared(Op::Eq, &int(3)), PossibleResults::EITHER);
        assert_eq!(span(true).compared(Op::Eq, &int(3)), PossibleResults::TRUE);
    }
}
