//! Checks [`Statistics`]: by themselves, and against the values that they are of.
//!
//! Spec: `parquet.thrift`, Statistics. Used by `chunk_metadata` and `column`, for the
//! footer and for page headers. Trap: bounds may be looser than the values,
//! unless they are said to be exact.

use std::cmp::Ordering;

use super::facts::ValueFacts;
use super::finding::{Finding, Findings};
use super::kind::FindingKind;
use super::levels::Nulls;
use super::order::{Comparison, LeafOrder};
use crate::format::Statistics;

/// The page or the chunk that statistics are of.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scope {
    /// The data page; the whole chunk if there is none.
    pub(super) page: Option<usize>,
    /// Where they stand, if it is not in the footer.
    pub(super) offset: Option<u64>,
}

/// The true counts and bounds.
pub(super) struct Truth<'a> {
    pub(super) facts: &'a ValueFacts,
    pub(super) nulls: Nulls,
    pub(super) distinct: Option<u64>,
    /// Whether all values were decoded, so that counts can be compared.
    pub(super) is_whole: bool,
}

impl Scope {
    pub(super) const CHUNK: Self = Self { page: None, offset: None };

    fn pick(self, of_chunk: FindingKind, of_page: FindingKind) -> FindingKind {
        if self.page.is_some() { of_page } else { of_chunk }
    }

    fn push(self, findings: &mut Findings, finding: Finding) {
        let finding = finding.with_page(self.page);
        findings.push(match self.offset {
            Some(offset) => finding.with_offset(offset),
            None => finding,
        });
    }
}

/// Checks what can be said without the values. `slots` are the entries that the statistics are of,
/// nulls included, if they are known.
pub(super) fn check_alone(
    stated: &Statistics,
    order: &LeafOrder,
    slots: Option<u64>,
    scope: Scope,
    findings: &mut Findings,
) {
    check_counts(stated, order, slots, scope, findings);
    let bounds = (stated.min_value.as_deref(), stated.max_value.as_deref());
    let legacy = (stated.min.as_deref(), stated.max.as_deref());
    let has_bounds = bounds.0.is_some() || bounds.1.is_some();
    let has_legacy = legacy.0.is_some() || legacy.1.is_some();
    if has_legacy && !has_bounds {
        let text = "only the deprecated `min` and `max` are stated";
        scope.push(findings, Finding::new(FindingKind::LegacyBoundsAlone, text));
    }
    if has_bounds && order.bounds.is_none() && order.natural.is_none() {
        let text = "minimum or maximum of values that have no order";
        scope.push(findings, Finding::new(FindingKind::BoundsWithoutOrder, text));
        return;
    }
    if has_bounds && (bounds.0.is_none() || bounds.1.is_none()) {
        let which = if bounds.0.is_some() { "max_value" } else { "min_value" };
        let text = format_args!("{which} is missing beside the other bound");
        scope.push(findings, Finding::new(FindingKind::BoundOneSided, text));
    }
    check_pair(bounds, ("min_value", "max_value"), order.bounds, order, scope, findings);
    // Where both are stated, the deprecated ones are often copies.
    if !has_bounds {
        check_pair(legacy, ("min", "max"), order.legacy, order, scope, findings);
    }
}

fn check_counts(
    stated: &Statistics,
    order: &LeafOrder,
    slots: Option<u64>,
    scope: Scope,
    findings: &mut Findings,
) {
    let of = |count: i64| u64::try_from(count).ok();
    let nulls = stated.null_count.and_then(of);
    let values = slots.map(|slots| slots.saturating_sub(nulls.unwrap_or(0)));
    let mut check = |count: Option<i64>, max: Option<u64>, kind, name| {
        let Some(count) = count else { return };
        let is_possible = of(count).is_some_and(|count| max.is_none_or(|max| count <= max));
        if !is_possible {
            let most = max.map_or_else(|| "0 or more".to_owned(), |max| format!("0 to {max}"));
            scope.push(findings, Finding::lie(kind, name, count, most));
        }
    };
    check(stated.null_count, slots, FindingKind::NullCountImpossible, "null_count");
    check(stated.distinct_count, values, FindingKind::DistinctCountImpossible, "distinct_count");
    let nans = if order.has_nan() { values } else { Some(0) };
    check(stated.nan_count, nans, FindingKind::NanCountImpossible, "nan_count");
}

/// Checks bounds by themselves.
fn check_pair(
    (min, max): (Option<&[u8]>, Option<&[u8]>),
    (min_name, max_name): (&str, &str),
    by: Option<Comparison>,
    order: &LeafOrder,
    scope: Scope,
    findings: &mut Findings,
) {
    let mut all_fit = true;
    for (bound, name) in [(min, min_name), (max, max_name)] {
        let Some(bound) = bound else { continue };
        if !order.fits(bound) {
            all_fit = false;
            let text =
                format_args!("{name} has {} bytes: it is no {}", bound.len(), order.physical);
            scope.push(findings, Finding::new(FindingKind::BoundLengthWrong, text));
        } else if order.is_nan(bound) && !order.is_total() {
            all_fit = false;
            let text = format_args!("{name} is NaN");
            scope.push(findings, Finding::new(FindingKind::BoundNan, text));
        } else if order.is_text() && std::str::from_utf8(bound).is_err() {
            let text = format_args!("{name} is no UTF-8: {}", order.show(bound));
            scope.push(findings, Finding::new(FindingKind::BoundNotText, text));
        }
    }
    let (Some(by), Some(min), Some(max)) = (by, min, max) else { return };
    if all_fit && order.compare(by, min, max) == Some(Ordering::Greater) {
        let (least, most) = (order.show(min), order.show(max));
        let text = format!("{min_name} {least} is greater than {max_name} {most}");
        scope.push(findings, Finding::new(FindingKind::BoundsReversed, text));
    }
}

/// Checks statistics against the values.
pub(super) fn check_against(
    stated: &Statistics,
    order: &LeafOrder,
    truth: &Truth<'_>,
    scope: Scope,
    findings: &mut Findings,
) {
    use FindingKind as K;
    check_counts_against(stated, order, truth, scope, findings);
    let bounds = (stated.min_value.as_deref(), stated.max_value.as_deref());
    let legacy = (stated.min.as_deref(), stated.max.as_deref());
    let found = truth.facts.bounds.as_ref();
    if truth.is_whole && truth.facts.values == 0 && (bounds.0.is_some() || bounds.1.is_some()) {
        let text = "bounds of values that are all null";
        scope.push(findings, Finding::new(K::BoundsOfNothing, text));
        return;
    }
    let Some((least, most)) = found else { return };
    let mut check = |bound: Option<&[u8]>, found, (by, wrong), kinds: (K, K), name| {
        let Some(bound) = bound.filter(|bound| order.fits(bound)) else { return };
        if order.compare(by, bound, found) == Some(wrong) {
            let kind = scope.pick(kinds.0, kinds.1);
            let finding = Finding::lie(kind, name, order.show(bound), order.show(found));
            scope.push(findings, finding);
        }
    };
    let (less, greater) = (Ordering::Less, Ordering::Greater);
    if let Some(by) = order.bounds {
        let (min, max) = bounds;
        let kinds = (K::ChunkMinTooLarge, K::PageMinTooLarge);
        check(min, least, (by, greater), kinds, "min_value");
        let kinds = (K::ChunkMaxTooSmall, K::PageMaxTooSmall);
        check(max, most, (by, less), kinds, "max_value");
        let is_exact = |flag| truth.is_whole && flag == Some(true);
        let min = min.filter(|_| is_exact(stated.is_min_value_exact));
        let kinds = (K::ChunkMinNotExact, K::PageMinNotExact);
        check(min, least, (by, less), kinds, "min_value, which is said to be exact,");
        let max = max.filter(|_| is_exact(stated.is_max_value_exact));
        let kinds = (K::ChunkMaxNotExact, K::PageMaxNotExact);
        check(max, most, (by, greater), kinds, "max_value, which is said to be exact,");
    }
    if let Some(by) = order.legacy {
        let kinds = (K::ChunkLegacyMinTooLarge, K::PageLegacyMinTooLarge);
        check(legacy.0, least, (by, greater), kinds, "min");
        let kinds = (K::ChunkLegacyMaxTooSmall, K::PageLegacyMaxTooSmall);
        check(legacy.1, most, (by, less), kinds, "max");
    }
}

fn check_counts_against(
    stated: &Statistics,
    order: &LeafOrder,
    truth: &Truth<'_>,
    scope: Scope,
    findings: &mut Findings,
) {
    use FindingKind as K;
    if !truth.is_whole {
        return;
    }
    let mut count = |stated: Option<i64>, found: Option<u64>, kinds: (K, K), name| {
        let (Some(stated), Some(found)) = (stated, found) else { return };
        if u64::try_from(stated) != Ok(found) {
            let kind = scope.pick(kinds.0, kinds.1);
            scope.push(findings, Finding::lie(kind, name, stated, found));
        }
    };
    let kinds = (K::ChunkNullCountWrong, K::PageNullCountWrong);
    let is_of_leaf = stated.null_count.is_some_and(|stated| truth.nulls.is_like(stated));
    let nulls = Some(truth.nulls.all).filter(|_| !is_of_leaf);
    count(stated.null_count, nulls, kinds, "null_count");
    let nans = order.has_nan().then_some(truth.facts.nans);
    let kinds = (K::ChunkNanCountWrong, K::PageNanCountWrong);
    count(stated.nan_count, nans, kinds, "nan_count");
    let kinds = (K::ChunkDistinctCountWrong, K::PageDistinctCountWrong);
    count(stated.distinct_count, truth.distinct, kinds, "distinct_count");
    let is_short =
        stated.null_count.is_some_and(|stated| u64::try_from(stated) != Ok(truth.nulls.all));
    if is_of_leaf && is_short && !findings.has(K::NullCountOfLeaf) {
        let text = "nulls are counted without the places of empty and of null lists";
        findings.push(Finding::new(K::NullCountOfLeaf, text));
    }
}
