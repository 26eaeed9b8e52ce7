//! [`FileFilter`]: the filters of a scan, in the terms of one file.

use std::sync::Arc;

use arrow_schema::{Schema, SchemaRef};
use datafusion_common::Result;
use datafusion_physical_expr::utils::conjunction;
use datafusion_physical_expr_common::physical_expr::PhysicalExpr;

use crate::columns::Columns;
use crate::fallible::can_fail;
use crate::learned::{PassRates, Trust, Usage, has_learned, may_change};
use crate::metadata::IndexKeeper;
use crate::pushdown::{self, Filters};
use crate::scan::Scan;
use marquetry::Predicate;
use marquetry::engine::{Budget, ReadWiring};

/// The filters of a scan in one file.
pub(crate) struct FileFilter {
    pub(crate) evaluation: Evaluation,
    /// The predicate of the filters that do not change.
    fixed: Option<Predicate>,
    pub(crate) filters: Filters,
    physical: SchemaRef,
    rates: Arc<PassRates>,
    trust: Arc<Trust>,
    prunes: bool,
    /// About how many nanoseconds a row saves that does not pass.
    pub(crate) saved: f64,
}

/// Where the rows are left out that do not pass.
pub(crate) enum Evaluation {
    /// In the reader, which also prunes.
    Reader,
    /// The filters of batches, conjunct by conjunct: two columns of the file have one name, so that
    /// a predicate cannot name either.
    Batches(Vec<Arc<dyn PhysicalExpr>>),
    /// In a node above the scan, which only prunes.
    Above,
}

impl FileFilter {
    pub(crate) fn new(
        scan: &Scan,
        filters: Filters,
        physical: &SchemaRef,
        columns: &[usize],
    ) -> Result<Self> {
        let is_bindable = columns.iter().all(|index| is_unique(physical, *index));
        let fixed = (!filters.fixed.is_empty()).then(|| conjunction(filters.fixed.iter().cloned()));
        let learned = filters.learned.iter().filter(|_| is_bindable).cloned();
        let learned = learned.collect();
        let evaluation = match &fixed {
            Some(_) if scan.filters_rows && !is_bindable => {
                let mut parts = filters.fixed.clone();
                parts.sort_by_key(|part| can_fail(part, physical));
                Evaluation::Batches(parts)
            }
            _ if scan.filters_rows && is_bindable => Evaluation::Reader,
            _ => Evaluation::Above,
        };
        let fixed = fixed.filter(|_| is_bindable);
        let fixed = fixed.map(|fixed| pushdown::predicate(&fixed, physical)).transpose()?;
        let filters = Filters { learned, ..filters };
        let (physical, rates) = (Arc::clone(physical), Arc::clone(&scan.rates));
        let (trust, prunes) = (Arc::clone(&scan.trust), scan.prunes);
        Ok(Self { evaluation, fixed, filters, physical, rates, trust, prunes, saved: 0.0 })
    }

    pub(crate) fn wiring(
        &self,
        scan: &Scan,
        indexes: Option<&IndexKeeper>,
        budget: &Budget,
    ) -> ReadWiring {
        let mut wiring = ReadWiring::default();
        wiring.bloom_filters = scan.uses_bloom_filters;
        wiring.only_prunes = matches!(self.evaluation, Evaluation::Above);
        wiring.loaded_indexes = indexes.map(IndexKeeper::loaded);
        wiring.budget = Some(budget.clone());
        wiring
    }

    /// Whether the reader has anything to evaluate or to prune by.
    pub(crate) fn is_empty(&self) -> bool {
        self.fixed.is_none() && self.filters.learned.is_empty()
    }

    /// Whether a filter may still be learned.
    pub(crate) fn may_change(&self) -> bool {
        self.filters.learned.iter().any(may_change)
    }

    /// Whether anything was learned yet.
    pub(crate) fn has_learned(&self) -> bool {
        self.filters.learned.iter().any(has_learned)
    }

    /// A number that grows whenever more is learned.
    pub(crate) fn generation(&self) -> u64 {
        self.filters.learned.iter().map(|filter| filter.snapshot_generation()).sum()
    }

    /// The filter of the rows, with everything that was learned until now.
    pub(crate) fn now(&self) -> Result<Option<Predicate>> {
        if !self.prunes {
            return self.untyped();
        }
        let mut parts = Vec::from_iter(self.fixed.clone());
        for (place, filter) in self.filters.learned.iter().enumerate() {
            let (rate, trust) = (self.rates.at(place), Arc::clone(&self.trust));
            let usage = Usage { rate, saved: self.saved, trust };
            parts.push(pushdown::learned_predicate(filter, &self.physical, &usage)?);
        }
        Ok((!parts.is_empty()).then(|| Predicate::all_of(parts)))
    }

    /// The filter of the rows as a function that DataFusion evaluates, which prunes nothing.
    pub(crate) fn untyped(&self) -> Result<Option<Predicate>> {
        if self.fixed.is_none() || !matches!(self.evaluation, Evaluation::Reader) {
            return Ok(None);
        }
        let fixed = self.filters.fixed.iter();
        let parts = fixed.map(|filter| pushdown::untyped_predicate(filter, &self.physical));
        Ok(Some(Predicate::all_of(parts.collect::<Result<Vec<_>>>()?)))
    }
}

/// The cost of decoding a row of the columns that are decoded only for rows that pass.
pub(crate) fn saved_nanos(columns: &Columns, filter_columns: &[usize], physical: &Schema) -> f64 {
    let late = columns.positions.iter().filter(|column| !filter_columns.contains(column));
    let late = late.filter_map(|column| physical.fields().get(*column));
    late.map(|field| pushdown::decode_nanos(field.data_type())).sum()
}

/// Whether the column at `index` alone has its name, by which a predicate finds it.
fn is_unique(schema: &Schema, index: usize) -> bool {
    let Some(field) = schema.fields().get(index) else { return false };
    schema.fields().iter().filter(|other| other.name() == field.name()).count() == 1
}
