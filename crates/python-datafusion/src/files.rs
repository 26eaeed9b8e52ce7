//! [`Files`]: a table of DataFusion, with filters evaluated in the scan.
//!
//! DataFusion's optimizer pushes filters into scans of its own library only; through
//! `datafusion-ffi` it can but hand them to [`TableProvider::scan`]. So that pushes them, and the
//! projection, into the source.

use std::sync::Arc;

use arrow_schema::{DataType, SchemaRef};
use async_trait::async_trait;
use datafusion_common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion_common::{DFSchema, Result, exec_datafusion_err, plan_err};
use datafusion_datasource::source::DataSourceExec;
use datafusion_execution::config::SessionConfig;
use datafusion_expr::expr::ScalarFunction;
use datafusion_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion_physical_expr::expressions::Column;
use datafusion_physical_expr::utils::conjunction;
use datafusion_physical_expr::{PhysicalExpr, projection::ProjectionExpr};
use datafusion_physical_plan::ExecutionPlan;
use datafusion_physical_plan::filter::FilterExec;
use datafusion_physical_plan::filter_pushdown::PushedDown;
use datafusion_physical_plan::projection::ProjectionExec;
use datafusion_session::{Session, TableProvider};
use futures_util::FutureExt;
use marquetry::Predicate;
use marquetry_datafusion::{MarquetryFormat, MarquetryTable, PredicateExpr};
use url::Url;

use crate::guard::{Guarded, panicked};
use crate::session::Here;

/// Parquet files as a table.
#[derive(Debug)]
pub(crate) struct Files {
    /// The URLs; those of folders end with a slash, patterns have no scheme.
    paths: Vec<String>,
    table: MarquetryTable,
    /// The columns that it has, by their places among those of the files and their folders.
    columns: Vec<usize>,
    schema: SchemaRef,
    /// Which rows it has.
    condition: Option<Arc<dyn PhysicalExpr>>,
}

impl Files {
    /// Reads the schemas of the files.
    ///
    /// # Errors
    /// Those of the file system and of the files; `Plan` if a column does not exist.
    pub(crate) async fn open(
        paths: &[String],
        partitions: Vec<(String, DataType)>,
        columns: Option<&[String]>,
        condition: Option<Predicate>,
    ) -> Result<Self> {
        let here = Here::new(SessionConfig::new());
        let format = MarquetryFormat::new();
        let table = MarquetryTable::open_partitioned(&here, paths, partitions, format).await?;
        let all = table.schema();
        if all.fields().is_empty() {
            return plan_err!(
                "there are no columns in {}: no file, or an empty one",
                paths.join(", ")
            );
        }
        let place = |name: &String| match all.column_with_name(name) {
            Some((i, _)) => Ok(i),
            None => {
                let known: Vec<_> =
                    all.fields().iter().map(|field| field.name().as_str()).collect();
                plan_err!("there is no column {name:?}; there are {}", known.join(", "))
            }
        };
        let columns = match columns {
            Some(names) => names.iter().map(place).collect::<Result<_>>()?,
            None => (0..all.fields().len()).collect::<Vec<_>>(),
        };
        let condition = match condition {
            Some(of) => Some(Arc::new(PredicateExpr::new(of, &all)?) as Arc<dyn PhysicalExpr>),
            None => None,
        };
        let schema = Arc::new(all.project(&columns)?);
        Ok(Self { paths: paths.to_vec(), table, columns, schema, condition })
    }

    async fn plan(
        &self,
        session: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        // DataFusion takes a file that is not there for a folder without files.
        for path in self.paths.iter().filter(|path| !path.ends_with('/')) {
            if let Some(file) = Url::parse(path).ok().and_then(|url| url.to_file_path().ok()) {
                std::fs::metadata(&file)
                    .map_err(|e| exec_datafusion_err!("{}: {e}", file.display()))?;
            }
        }
        let here = Here::new(session.config().clone());
        // Which files suffice for a limit is not known while rows may be left out.
        let limit_of_files = limit.filter(|_| filters.is_empty() && self.condition.is_none());
        let mut plan = self.table.scan(&here, None, filters, limit_of_files).await?;
        let all = DFSchema::try_from(self.table.schema())?;
        let mut tests: Vec<_> = self.condition.iter().cloned().collect();
        for filter in filters {
            let filter = filter.clone().transform(with_own_fields).data()?;
            tests.push(here.create_physical_expr(filter, &all)?);
        }
        if !tests.is_empty() {
            plan = with_filters(plan, tests, &here)?;
        }
        if limit.is_some() {
            plan = plan.with_fetch(limit).unwrap_or(plan);
        }
        let columns: Vec<usize> = match projection {
            Some(places) => places.iter().filter_map(|i| self.columns.get(*i).copied()).collect(),
            None => self.columns.clone(),
        };
        with_columns(plan, &columns)
    }
}

/// The rows of `plan` that pass all filters: in the scan as far as it can evaluate them.
fn with_filters(
    mut plan: Arc<dyn ExecutionPlan>,
    filters: Vec<Arc<dyn PhysicalExpr>>,
    here: &Here,
) -> Result<Arc<dyn ExecutionPlan>> {
    let mut left = filters.clone();
    if let Some(scan) = plan.downcast_ref::<DataSourceExec>() {
        let pushed = scan.data_source().try_pushdown_filters(filters, here.config_options())?;
        if let Some(source) = pushed.updated_node {
            let mut answers = pushed.filters.into_iter();
            left.retain(|_| !matches!(answers.next(), Some(PushedDown::Yes)));
            plan = Arc::new(DataSourceExec::new(source));
        }
    }
    if left.is_empty() {
        return Ok(plan);
    }
    Ok(Arc::new(FilterExec::try_new(conjunction(left), plan)?))
}

/// These columns of `plan` alone; the scan reads no others.
fn with_columns(plan: Arc<dyn ExecutionPlan>, columns: &[usize]) -> Result<Arc<dyn ExecutionPlan>> {
    let schema = plan.schema();
    if columns.iter().copied().eq(0..schema.fields().len()) {
        return Ok(plan);
    }
    let named = |i: &usize| {
        let name = schema.field(*i).name();
        let expr = Arc::new(Column::new(name, *i)) as Arc<dyn PhysicalExpr>;
        ProjectionExpr { expr, alias: name.clone() }
    };
    let narrowed = ProjectionExec::try_new(columns.iter().map(named), Arc::clone(&plan))?;
    let pushed = plan.try_swapping_with_projection(&narrowed)?;
    Ok(pushed.unwrap_or_else(|| Arc::new(narrowed)))
}

#[async_trait]
impl TableProvider for Files {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        session: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let planning = self.plan(session, projection, filters, limit);
        let planned = std::panic::AssertUnwindSafe(planning).catch_unwind().await;
        let plan = planned.unwrap_or_else(|panic| Err(panicked(&*panic)))?;
        Ok(Arc::new(Guarded::new(plan)))
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>> {
        // Whatever the source cannot evaluate is evaluated above it, in the same plan.
        let can_take = |filter: &&Expr| match is_taken(filter) {
            true => TableProviderFilterPushDown::Exact,
            false => TableProviderFilterPushDown::Unsupported,
        };
        Ok(filters.iter().map(can_take).collect())
    }
}

/// Whether a filter is evaluated here. Functions stay with DataFusion: here each is a call into its
/// library, for which a literal is an array, and that many functions refuse. Fields of structs are
/// found by a function of this library.
fn is_taken(filter: &Expr) -> bool {
    let is_function = |expr: &Expr| {
        Ok(match expr {
            Expr::ScalarFunction(call) => call.func.name() != "get_field",
            Expr::HigherOrderFunction(_) => true,
            _ => false,
        })
    };
    !filter.exists(is_function).unwrap_or(true)
}

/// The function that finds fields of structs, in place of the one behind the interface.
fn with_own_fields(part: Expr) -> Result<Transformed<Expr>> {
    Ok(match part {
        Expr::ScalarFunction(call) if call.func.name() == "get_field" => {
            let own = ScalarFunction::new_udf(datafusion_functions::core::get_field(), call.args);
            Transformed::yes(Expr::ScalarFunction(own))
        }
        other => Transformed::no(other),
    })
}

/// The type of a column that is in the names of folders, by its name in Python.
pub(crate) fn partition_type(name: &str) -> Option<DataType> {
    Some(match name {
        "utf8" => DataType::Utf8,
        "int64" => DataType::Int64,
        "int32" => DataType::Int32,
        "date32" => DataType::Date32,
        _ => return None,
    })
}
