//! [`PredicateExpr`]: a [`Predicate`] of marquetry as an expression of DataFusion.
//!
//! As a filter of [`MarquetrySource`](crate::MarquetrySource) it prunes and is evaluated as the
//! predicate itself. Elsewhere, and on files whose columns have other types than the table, it is
//! evaluated on the values of its columns.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::{DataType, Schema};
use datafusion_common::{DataFusionError, Result};
use datafusion_expr::ColumnarValue;
use datafusion_physical_expr::expressions::{Column, Literal};
use datafusion_physical_expr_common::physical_expr::PhysicalExpr;

use crate::error::to_datafusion;
use marquetry::Predicate;

/// The rows for which a predicate is true, with the meaning that it has in marquetry: see
/// [`marquetry::predicate`].
///
/// ```
/// use std::sync::Arc;
/// use marquetry::Predicate;
/// use marquetry::arrow_schema::{DataType, Field, Schema};
/// use marquetry_datafusion::{MarquetrySource, PredicateExpr};
///
/// let table = Arc::new(Schema::new(vec![Field::new("fare", DataType::Float64, true)]));
/// let cheap = PredicateExpr::new(Predicate::parse("fare < 5")?, &table)?;
/// let source = MarquetrySource::new(table).with_filter(Arc::new(cheap));
/// # let _ = source;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct PredicateExpr {
    predicate: Predicate,
    /// Names of the columns that it tests.
    names: Arc<[String]>,
    /// Where their values come from.
    columns: Vec<Arc<dyn PhysicalExpr>>,
}

impl PredicateExpr {
    /// The predicate over columns of a table.
    ///
    /// # Errors
    /// `External` with an error of marquetry if a column does not exist, or a test does not fit it.
    pub fn new(predicate: Predicate, table: &Schema) -> Result<Self> {
        let bound = predicate.bind_to(table).map_err(to_datafusion)?;
        let paths = bound.paths();
        let is_tested = |name: &str| {
            let is_below = |path: &&str| path.strip_prefix(name).is_some_and(is_end_of_name);
            paths.iter().any(is_below)
        };
        let tested = table.fields().iter().enumerate().filter(|(_, field)| is_tested(field.name()));
        let (names, columns) = tested
            .map(|(i, field)| {
                let column = Arc::new(Column::new(field.name(), i)) as Arc<dyn PhysicalExpr>;
                (field.name().clone(), column)
            })
            .unzip::<_, _, Vec<_>, _>();
        Ok(Self { predicate, names: names.into(), columns })
    }

    /// The predicate over columns of a file, with `name_of` their names; `None` if a column is
    /// neither one of the file nor a value that is the same in all rows.
    pub(crate) fn of_file(
        &self,
        name_of: impl Fn(&Arc<dyn PhysicalExpr>) -> Option<String>,
    ) -> Option<Predicate> {
        let mut known = Vec::new();
        for (name, column) in self.names.iter().zip(&self.columns) {
            match column.downcast_ref::<Literal>() {
                Some(value) => known.push((name.clone(), value.value().to_array().ok()?)),
                None => (name_of(column)? == *name).then_some(())?,
            }
        }
        if known.is_empty() {
            return Some(self.predicate.clone());
        }
        let known = RecordBatch::try_from_iter(known).ok()?;
        self.predicate.with_known(&known).ok()
    }
}

/// Whether a name may end where `rest` begins.
fn is_end_of_name(rest: &str) -> bool {
    rest.is_empty() || rest.starts_with('.')
}

impl fmt::Display for PredicateExpr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.predicate)
    }
}

impl PartialEq for PredicateExpr {
    fn eq(&self, other: &Self) -> bool {
        self.predicate == other.predicate
            && self.columns.iter().map(|e| &**e).eq(other.columns.iter().map(|e| &**e))
    }
}

impl Eq for PredicateExpr {}

impl Hash for PredicateExpr {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.names.hash(state);
        self.columns.hash(state);
    }
}

impl PhysicalExpr for PredicateExpr {
    fn data_type(&self, _: &Schema) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn nullable(&self, _: &Schema) -> Result<bool> {
        Ok(false)
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        let rows = batch.num_rows();
        let mut fields = Vec::with_capacity(self.columns.len());
        let mut values = Vec::with_capacity(self.columns.len());
        for (name, column) in self.names.iter().zip(&self.columns) {
            let array = column.evaluate(batch)?.into_array(rows)?;
            let field = column.return_field(batch.schema_ref())?;
            let field = field.as_ref().clone().with_name(name).with_nullable(true);
            fields.push(field.with_data_type(array.data_type().clone()));
            values.push(array);
        }
        let schema = Arc::new(Schema::new(fields));
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let tested = RecordBatch::try_new_with_options(Arc::clone(&schema), values, &options)?;
        let bound = self.predicate.bind_to(&schema).map_err(to_datafusion)?;
        let passed = bound.evaluate(&tested).map_err(to_datafusion)?;
        Ok(ColumnarValue::Array(Arc::new(passed)))
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        self.columns.iter().collect()
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn PhysicalExpr>>,
    ) -> Result<Arc<dyn PhysicalExpr>> {
        if children.len() != self.columns.len() {
            return Err(DataFusionError::Internal(format!(
                "{self} has {} columns and was given {}",
                self.columns.len(),
                children.len()
            )));
        }
        Ok(Arc::new(Self { columns: children, ..(*self).clone() }))
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::cast::AsArray;
    use arrow_array::{ArrayRef, Int64Array, StringArray};
    use arrow_schema::Field;
    use datafusion_common::ScalarValue;

    fn table() -> Schema {
        let fields = [("n", DataType::Int64), ("day", DataType::Utf8), ("n2", DataType::Int64)];
        Schema::new(fields.map(|(name, of)| Field::new(name, of, true)).to_vec())
    }

    fn rows() -> RecordBatch {
        let columns: [ArrayRef; 3] = [
            Arc::new(Int64Array::from(vec![Some(1), Some(5), None])),
            Arc::new(StringArray::from(vec!["a", "b", "b"])),
            Arc::new(Int64Array::from(vec![7, 8, 9])),
        ];
        RecordBatch::try_new(Arc::new(table()), columns.to_vec()).unwrap()
    }

    fn expr(text: &str) -> PredicateExpr {
        PredicateExpr::new(Predicate::parse(text).unwrap(), &table()).unwrap()
    }

    #[test]
    fn evaluated_it_is_true_where_the_predicate_is_and_never_null() {
        for (text, expected) in [
            ("n > 2", [false, true, false]),
            ("not (n > 2)", [true, false, false]),
            ("n2 >= 8 and day = 'b'", [false, true, true]),
            ("true", [true; 3]),
        ] {
            let passed = expr(text).evaluate(&rows()).unwrap().into_array(3).unwrap();
            let passed: Vec<_> = passed.as_boolean().iter().map(Option::unwrap).collect();
            assert_eq!(passed, expected, "{text}");
        }
    }

    #[test]
    fn it_depends_on_its_columns_only_and_a_known_one_leaves_the_rest() {
        let both = expr("n > 2 and day = 'b'");
        assert_eq!(*both.names, ["n", "day"]);
        let name_of =
            |expr: &Arc<dyn PhysicalExpr>| Some(expr.downcast_ref::<Column>()?.name().to_owned());
        assert_eq!(both.of_file(name_of), Some(Predicate::parse("n > 2 and day = 'b'").unwrap()));
        let with_day = |day: &str| {
            let day = Literal::new(ScalarValue::from(day));
            let columns = vec![Arc::clone(&both.columns[0]), Arc::new(day) as _];
            PredicateExpr { columns, ..both.clone() }.of_file(name_of)
        };
        assert_eq!(with_day("b"), Some(Predicate::parse("n > 2").unwrap()));
        assert_eq!(with_day("c"), Some(Predicate::FALSE));
        assert_eq!(both.of_file(|_| None), None);
    }

    #[test]
    fn a_column_that_does_not_exist_is_an_error() {
        let error = PredicateExpr::new(Predicate::parse("x = 1").unwrap(), &table()).unwrap_err();
        assert!(matches!(error, DataFusionError::External(_)), "{error}");
    }
}
