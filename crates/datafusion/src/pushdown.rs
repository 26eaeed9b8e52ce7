//! Converts filters of DataFusion to a [`Predicate`].
//!
//! A test that means the same in both becomes a typed test, which prunes and is evaluated on
//! encoded values. All others become functions that evaluate the expression of DataFusion itself.
//! Trap: floats. The kernels of Arrow compare them by IEEE 754 totalOrder, where −0 is less than +0
//! and a NaN with a sign less than all numbers; a [`Predicate`] has one zero, and one NaN above all
//! numbers. A test that is true of too many rows prunes; the function beside it decides.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_buffer::i256;
use arrow_schema::{DataType, FieldRef, Schema};
use datafusion_common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion_common::{Result, ScalarValue};
use datafusion_expr::Operator;
use datafusion_physical_expr::expressions::{
    BinaryExpr, CastExpr, Column, DynamicFilterPhysicalExpr, InListExpr, IsNotNullExpr, IsNullExpr,
    LikeExpr, Literal as PhysicalLiteral, NotExpr,
};
use datafusion_physical_expr::utils::conjunction;
use datafusion_physical_expr::{ScalarFunctionExpr, split_conjunction};
use datafusion_physical_expr_common::physical_expr::PhysicalExpr;

use crate::condition::PredicateExpr;
use crate::error::to_marquetry;
use crate::evaluate::{evaluate, evaluate_by_row};
use crate::fallible::can_fail;
use crate::key_set::KeyRange;
use crate::learned::{LearnedFilter, Usage, key_range, may_change};
use crate::routed::Routed;
use marquetry::predicate::Column as TestedColumn;
use marquetry::{Literal, Predicate, col, not};

/// The parts of a filter that are always evaluated, and those that DataFusion learns while the
/// query runs, which may be left out.
#[derive(Debug, Clone, Default)]
pub(crate) struct Filters {
    pub(crate) fixed: Vec<Arc<dyn PhysicalExpr>>,
    pub(crate) learned: Vec<Arc<dyn PhysicalExpr>>,
}

impl Filters {
    /// The parts of `filter`.
    pub(crate) fn new(filter: &Arc<dyn PhysicalExpr>) -> Self {
        let mut out = Self::default();
        for part in split_conjunction(filter) {
            match part.downcast_ref::<DynamicFilterPhysicalExpr>() {
                Some(_) => out.learned.push(Arc::clone(part)),
                None => out.fixed.push(Arc::clone(part)),
            }
        }
        out
    }

    /// All parts.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<dyn PhysicalExpr>> {
        self.fixed.iter().chain(&self.learned)
    }
}

/// The rest of `filter` without the parts that DataFusion learns while the query runs.
pub(crate) fn without_learned(filter: &Arc<dyn PhysicalExpr>) -> Option<Arc<dyn PhysicalExpr>> {
    let fixed = Filters::new(filter).fixed;
    (!fixed.is_empty()).then(|| conjunction(fixed))
}

/// The predicate of a fixed filter over columns of `schema`. It is true of the same rows.
///
/// # Errors
/// Those of DataFusion for an expression that cannot be evaluated.
pub(crate) fn predicate(filter: &Arc<dyn PhysicalExpr>, schema: &Schema) -> Result<Predicate> {
    Translation { schema, learned: None, range: None }.predicate(filter)
}

/// The predicate of a filter as DataFusion evaluates it: it prunes nothing.
///
/// # Errors
/// As [`predicate`].
pub(crate) fn untyped_predicate(
    filter: &Arc<dyn PhysicalExpr>,
    schema: &Schema,
) -> Result<Predicate> {
    Translation { schema, learned: None, range: None }.function(filter)
}

/// About how many nanoseconds it takes to decode a value.
pub(crate) fn decode_nanos(data_type: &DataType) -> f64 {
    match data_type {
        DataType::Null => 0.0,
        DataType::Boolean => 1.0,
        other => match other.primitive_width() {
            Some(0..=8) => 1.5,
            Some(_) => 3.0,
            None if other.is_nested() => 20.0,
            None => 8.0,
        },
    }
}

/// The predicate of a learned filter as it is now, if that may be trusted.
///
/// # Errors
/// As [`predicate`].
pub(crate) fn learned_predicate(
    filter: &Arc<dyn PhysicalExpr>,
    schema: &Schema,
    usage: &Usage,
) -> Result<Predicate> {
    // Asked first: filters that are learned meanwhile are applied below.
    let may_change = may_change(filter);
    let Some(dynamic) = filter.downcast_ref::<DynamicFilterPhysicalExpr>() else {
        return predicate(filter, schema);
    };
    let mut translation = Translation { schema, learned: Some(usage), range: None };
    usage.rate.begin(dynamic.snapshot_generation());
    let current = dynamic.current()?;
    match current.downcast_ref::<PhysicalLiteral>() {
        // Nothing was learned yet, but what is learned while the first rows are read still counts.
        Some(_) if may_change => translation.function(filter),
        _ if !usage.trust.allows(&current) => Ok(Predicate::TRUE),
        _ => {
            translation.range = key_range(&current);
            let bounds = Routed::from_case(&current).and_then(|routed| routed.bounds());
            let found = translation.predicate(&current)?;
            Ok(match bounds {
                Some(bounds) => translation.predicate(&bounds)?.and(found),
                None => found,
            })
        }
    }
}

struct Translation<'a> {
    schema: &'a Schema,
    /// Set if the filter may be left out where it does not pay.
    learned: Option<&'a Usage>,
    /// The only column that a learned filter bounds, and the range of its keys.
    range: Option<(usize, KeyRange)>,
}

impl Translation<'_> {
    fn predicate(&self, expr: &Arc<dyn PhysicalExpr>) -> Result<Predicate> {
        if let Some(binary) = expr.downcast_ref::<BinaryExpr>() {
            match binary.op() {
                Operator::And => {
                    let parts =
                        split_conjunction(expr).into_iter().map(|part| self.predicate(part));
                    return Ok(Predicate::all_of(parts.collect::<Result<Vec<_>>>()?));
                }
                Operator::Or if self.is_typed(expr) => {
                    let sides = [self.predicate(binary.left())?, self.predicate(binary.right())?];
                    return Ok(Predicate::any_of(sides));
                }
                _ => {}
            }
        }
        match self.typed(expr) {
            Some(typed) => typed,
            None => self.function(expr),
        }
    }

    /// Whether all parts of a disjunction have a typed form. If not, DataFusion evaluates it whole.
    fn is_typed(&self, expr: &Arc<dyn PhysicalExpr>) -> bool {
        match expr.downcast_ref::<BinaryExpr>() {
            Some(binary) if matches!(binary.op(), Operator::And | Operator::Or) => {
                self.is_typed(binary.left()) && self.is_typed(binary.right())
            }
            _ => self.typed(expr).is_some(),
        }
    }

    /// The typed form of an expression that is neither a conjunction nor a disjunction.
    fn typed(&self, expr: &Arc<dyn PhysicalExpr>) -> Option<Result<Predicate>> {
        if let Some(literal) = expr.downcast_ref::<PhysicalLiteral>() {
            return Some(Ok(match literal.value() {
                ScalarValue::Boolean(Some(true)) => Predicate::TRUE,
                ScalarValue::Boolean(Some(false)) => Predicate::FALSE,
                _ => return None,
            }));
        }
        if let Some(negated) = expr.downcast_ref::<NotExpr>() {
            // Where the predicate is null its expression is false.
            if negated.arg().is::<PredicateExpr>() {
                return None;
            }
            return Some(self.typed(negated.arg())?.map(not));
        }
        if let Some(test) = expr.downcast_ref::<IsNullExpr>() {
            return Some(Ok(self.column(test.arg())?.0.is_null()));
        }
        if let Some(test) = expr.downcast_ref::<IsNotNullExpr>() {
            return Some(Ok(self.column(test.arg())?.0.is_not_null()));
        }
        if let Some(test) = expr.downcast_ref::<LikeExpr>() {
            return self.like(test).map(Ok);
        }
        if let Some(test) = expr.downcast_ref::<InListExpr>() {
            return self.in_list(test).map(Ok);
        }
        if let Some(test) = expr.downcast_ref::<BinaryExpr>() {
            return self.comparison(expr, test);
        }
        if let Some(condition) = expr.downcast_ref::<PredicateExpr>() {
            let name_of = |column: &_| {
                let (index, fields) = field_path(self.without_casts(column))?;
                let field = self.schema.fields().get(index).filter(|_| fields.is_empty())?;
                Some(field.name().clone())
            };
            return condition.of_file(name_of).map(Ok);
        }
        let (column, data_type) = self.column(expr)?;
        (data_type == DataType::Boolean).then(|| Ok(column.eq(true)))
    }

    fn comparison(
        &self,
        whole: &Arc<dyn PhysicalExpr>,
        test: &BinaryExpr,
    ) -> Option<Result<Predicate>> {
        let (side, value, op) = match (value_of(test.left()), value_of(test.right())) {
            (None, Some(value)) => (test.left(), value, *test.op()),
            (Some(value), None) => (test.right(), value, test.op().swap()?),
            _ => return None,
        };
        let (column, data_type) = self.column(side)?;
        if let Some(value) = float_of(value, &data_type) {
            return self.float_comparison(whole, column, op, value);
        }
        let literal = literal_of(value, &data_type)?;
        Some(Ok(match op {
            Operator::Eq => column.eq(literal),
            Operator::NotEq => column.not_eq(literal),
            Operator::Lt => column.lt(literal),
            Operator::LtEq => column.lt_eq(literal),
            Operator::Gt => column.gt(literal),
            Operator::GtEq => column.gt_eq(literal),
            _ => return None,
        }))
    }

    /// A comparison of floats: exact where zeros and NaNs do not matter, else a test that is true
    /// of all rows that pass, and the function.
    fn float_comparison(
        &self,
        whole: &Arc<dyn PhysicalExpr>,
        column: TestedColumn,
        op: Operator,
        value: FloatLiteral,
    ) -> Option<Result<Predicate>> {
        let FloatLiteral { literal, is_zero } = value;
        let above_all = || column.clone().gt(f64::INFINITY);
        let wide = match op {
            Operator::Eq if !is_zero => return Some(Ok(column.eq(literal))),
            Operator::NotEq if !is_zero => return Some(Ok(column.not_eq(literal))),
            Operator::Eq => column.eq(literal),
            Operator::Gt if !is_zero => column.gt(literal),
            Operator::Gt | Operator::GtEq => column.gt_eq(literal),
            Operator::Lt if !is_zero => column.clone().lt(literal).or(above_all()),
            Operator::Lt | Operator::LtEq => column.clone().lt_eq(literal).or(above_all()),
            _ => return None,
        };
        Some(self.function(whole).map(|exact| wide.and(exact)))
    }

    fn like(&self, test: &LikeExpr) -> Option<Predicate> {
        let (column, data_type) = self.column(test.expr())?;
        let is_text =
            matches!(data_type, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
        let pattern = text_of(value_of(test.pattern())?)?;
        if test.case_insensitive() || !is_text || pattern.contains('\\') {
            return None;
        }
        let like = column.like_escaped(pattern, None);
        Some(if test.negated() { not(like) } else { like })
    }

    fn in_list(&self, test: &InListExpr) -> Option<Predicate> {
        let (column, data_type) = self.column(test.expr())?;
        if test.list().is_empty() {
            return None;
        }
        let literal = |item: &Arc<dyn PhysicalExpr>| {
            let value = value_of(item)?;
            if value.is_null() {
                return Some(Literal::from(None::<bool>));
            }
            literal_of(value, &data_type)
        };
        let literals: Option<Vec<Literal>> = test.list().iter().map(literal).collect();
        let found = column.is_in(literals?);
        Some(if test.negated() { not(found) } else { found })
    }

    /// The column, or the field of a struct column, that an expression is, and its type.
    fn column(&self, expr: &Arc<dyn PhysicalExpr>) -> Option<(TestedColumn, DataType)> {
        let (index, names) = field_path(self.without_casts(expr))?;
        let field = self.schema.fields().get(index)?;
        let mut data_type = field.data_type();
        for name in &names {
            let DataType::Struct(fields) = data_type else { return None };
            data_type = fields.find(name)?.1.data_type();
        }
        if let DataType::Dictionary(_, values) = data_type {
            data_type = values;
        }
        // Names with dots are found only if they name a whole column.
        let has_dots = |name: &str| name.contains('.');
        if !names.is_empty()
            && std::iter::once(field.name()).chain(&names).any(|name| has_dots(name))
        {
            return None;
        }
        let dotted = format!("{}.", field.name());
        let is_ambiguous = |other: &FieldRef| other.name().starts_with(&dotted);
        if !names.is_empty() && self.schema.fields().iter().any(is_ambiguous) {
            return None;
        }
        let path = names.iter().fold(field.name().clone(), |path, name| format!("{path}.{name}"));
        Some((col(path), data_type.clone()))
    }

    /// The expression below casts that change no value.
    fn without_casts<'e>(&self, mut expr: &'e Arc<dyn PhysicalExpr>) -> &'e Arc<dyn PhysicalExpr> {
        while let Some(cast) = expr.downcast_ref::<CastExpr>()
            && cast
                .expr()
                .data_type(self.schema)
                .is_ok_and(|own| values_of(&own) == values_of(cast.cast_type()))
        {
            // A column whose metadata or nullability differs in the table, or that is a dictionary
            // in one of them.
            expr = cast.expr();
        }
        expr
    }

    /// DataFusion's own evaluation of an expression.
    fn function(&self, expr: &Arc<dyn PhysicalExpr>) -> Result<Predicate> {
        let mut columns = BTreeMap::new();
        let note = |node: Arc<dyn PhysicalExpr>| {
            if let Some(column) = node.downcast_ref::<Column>() {
                columns.insert(column.index(), column.name().to_owned());
            }
            Ok(Transformed::no(node))
        };
        Arc::clone(expr).transform(note)?;
        if columns.is_empty()
            && let Ok(constant) = constant(expr)
        {
            return Ok(constant);
        }
        let positions: Vec<usize> = columns.keys().copied().collect();
        let can_fail = can_fail(expr, self.schema);
        let expr = at_positions(expr, &positions)?;
        let names = positions.iter().filter_map(|index| self.schema.fields().get(*index));
        let names: Vec<String> = names.map(|field| field.name().clone()).collect();
        Ok(match self.learned {
            Some(usage) => {
                let range = self.range.filter(|(column, _)| positions == [*column]);
                let range = range.map(|(_, range)| range);
                let learned = LearnedFilter::new(expr, range, usage.clone());
                Predicate::function(names, move |batch| Ok(learned.evaluate(batch)))
            }
            None if can_fail => Predicate::last_function(names, move |batch| {
                evaluate_by_row(&expr, batch).map_err(to_marquetry)
            }),
            None => Predicate::function(names, move |batch| {
                evaluate(&expr, batch).map_err(to_marquetry)
            }),
        })
    }
}

/// The predicate of an expression without columns.
fn constant(expr: &Arc<dyn PhysicalExpr>) -> Result<Predicate> {
    let options = RecordBatchOptions::new().with_row_count(Some(1));
    let row = RecordBatch::try_new_with_options(Arc::new(Schema::empty()), vec![], &options)?;
    let tested = evaluate(expr, &row)?;
    Ok(if tested.true_count() == 1 { Predicate::TRUE } else { Predicate::FALSE })
}

/// The expression, with columns counted by their places among `columns`, which are sorted.
pub(crate) fn at_positions(
    expr: &Arc<dyn PhysicalExpr>,
    columns: &[usize],
) -> Result<Arc<dyn PhysicalExpr>> {
    Arc::clone(expr)
        .transform(|node| {
            let Some(column) = node.downcast_ref::<Column>() else {
                return Ok(Transformed::no(node));
            };
            let place = columns.binary_search(&column.index()).unwrap_or_else(|_| column.index());
            let moved = Column::new(column.name(), place);
            Ok(Transformed::yes(Arc::new(moved) as Arc<dyn PhysicalExpr>))
        })
        .data()
}

/// Index of a column, and the names on the way to a field of it; `None` for all other expressions.
pub(crate) fn field_path(expr: &Arc<dyn PhysicalExpr>) -> Option<(usize, Vec<String>)> {
    if let Some(column) = expr.downcast_ref::<Column>() {
        return Some((column.index(), Vec::new()));
    }
    let call = expr.downcast_ref::<ScalarFunctionExpr>()?;
    if call.name() != "get_field" {
        return None;
    }
    let (of, fields) = call.args().split_first()?;
    let (index, mut names) = field_path(of)?;
    for field in fields {
        names.push(text_of(value_of(field)?)?.to_owned());
    }
    Some((index, names))
}

/// The type of the values of a dictionary; all other types are that of their values.
fn values_of(data_type: &DataType) -> &DataType {
    match data_type {
        DataType::Dictionary(_, values) => values,
        other => other,
    }
}

fn text_of(value: &ScalarValue) -> Option<&str> {
    match value {
        ScalarValue::Utf8(text) | ScalarValue::LargeUtf8(text) | ScalarValue::Utf8View(text) => {
            text.as_deref()
        }
        _ => None,
    }
}

/// The value that an expression is whatever the row; of a dictionary, the value in it.
fn value_of(expr: &Arc<dyn PhysicalExpr>) -> Option<&ScalarValue> {
    match expr.downcast_ref::<PhysicalLiteral>()?.value() {
        ScalarValue::Dictionary(_, value) => Some(value),
        value => Some(value),
    }
}

struct FloatLiteral {
    literal: Literal,
    is_zero: bool,
}

/// A float that is a value of `data_type`, and no NaN.
fn float_of(value: &ScalarValue, data_type: &DataType) -> Option<FloatLiteral> {
    match (value, data_type) {
        (ScalarValue::Float64(Some(v)), DataType::Float64) if !v.is_nan() => {
            Some(FloatLiteral { literal: (*v).into(), is_zero: *v == 0.0 })
        }
        (ScalarValue::Float32(Some(v)), DataType::Float32) if !v.is_nan() => {
            Some(FloatLiteral { literal: (*v).into(), is_zero: *v == 0.0 })
        }
        _ => None,
    }
}

/// The literal of a value of `data_type` that is neither null nor a float; `None` for values of
/// other types.
fn literal_of(value: &ScalarValue, data_type: &DataType) -> Option<Literal> {
    use ScalarValue as S;
    if value.data_type() != *data_type {
        return None;
    }
    Some(match value {
        S::Boolean(Some(v)) => (*v).into(),
        S::Int8(Some(v)) => (*v).into(),
        S::Int16(Some(v)) => (*v).into(),
        S::Int32(Some(v)) | S::Date32(Some(v)) => (*v).into(),
        S::Time32Second(Some(v)) | S::Time32Millisecond(Some(v)) => (*v).into(),
        S::Int64(Some(v)) | S::Date64(Some(v)) => (*v).into(),
        S::Time64Microsecond(Some(v)) | S::Time64Nanosecond(Some(v)) => (*v).into(),
        S::TimestampSecond(Some(v), _)
        | S::TimestampMillisecond(Some(v), _)
        | S::TimestampMicrosecond(Some(v), _)
        | S::TimestampNanosecond(Some(v), _) => (*v).into(),
        S::UInt8(Some(v)) => (*v).into(),
        S::UInt16(Some(v)) => (*v).into(),
        S::UInt32(Some(v)) => (*v).into(),
        S::UInt64(Some(v)) => (*v).into(),
        S::Utf8(Some(v)) | S::LargeUtf8(Some(v)) | S::Utf8View(Some(v)) => v.as_str().into(),
        S::Binary(Some(v))
        | S::LargeBinary(Some(v))
        | S::BinaryView(Some(v))
        | S::FixedSizeBinary(_, Some(v)) => v.as_slice().into(),
        S::Decimal32(Some(v), _, scale) => {
            Literal::decimal(i256::from_i128((*v).into()), unsigned(*scale)?)
        }
        S::Decimal64(Some(v), _, scale) => {
            Literal::decimal(i256::from_i128((*v).into()), unsigned(*scale)?)
        }
        S::Decimal128(Some(v), _, scale) => {
            Literal::decimal(i256::from_i128(*v), unsigned(*scale)?)
        }
        S::Decimal256(Some(v), _, scale) => Literal::decimal(*v, unsigned(*scale)?),
        _ => return None,
    })
}

fn unsigned(scale: i8) -> Option<u8> {
    u8::try_from(scale).ok()
}
