//! [`Columns`]: the columns of a file that are decoded for the expressions of a scan.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, FieldRef, Schema};
use datafusion_common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion_common::{DataFusionError, Result, internal_err};
use datafusion_datasource::TableSchema;
use datafusion_expr::ColumnarValue;
use datafusion_physical_expr::ScalarFunctionExpr;
use datafusion_physical_expr::expressions::Column;
use datafusion_physical_expr::projection::ProjectionExprs;
use datafusion_physical_expr::utils::collect_columns;
use datafusion_physical_expr_common::physical_expr::PhysicalExpr;

use crate::pushdown;
use marquetry::schema::Projection;

/// The columns of a file that are read for expressions over all of its columns.
pub(crate) struct Columns {
    /// Positions among the columns of the file, ascending; one after them for the row numbers.
    pub(crate) positions: Vec<usize>,
    pub(crate) projection: Projection,
}

impl Columns {
    /// The columns of these expressions; of a struct, only the fields that they look at.
    pub(crate) fn for_expressions<'a>(
        exprs: impl Iterator<Item = &'a Arc<dyn PhysicalExpr>>,
        physical: &Schema,
    ) -> Self {
        let mut wanted: BTreeMap<usize, Vec<Vec<String>>> = BTreeMap::new();
        for expr in exprs {
            note_fields(expr, physical, &mut wanted);
        }
        let positions: Vec<usize> = wanted.keys().copied().collect();
        let is_whole = |paths: &Vec<Vec<String>>| paths.iter().any(Vec::is_empty);
        if wanted.values().all(is_whole) {
            let of_file = positions.iter().copied().filter(|i| *i < physical.fields().len());
            let projection = Projection::fields(of_file);
            return Self { positions, projection };
        }
        let mut paths = Vec::new();
        for (position, fields) in &wanted {
            let Some(field) = physical.fields().get(*position) else { continue };
            let name = field.name();
            if is_whole(fields) {
                paths.push(vec![name.clone()]);
                continue;
            }
            for path in fields {
                paths.push(std::iter::once(name.clone()).chain(path.iter().cloned()).collect());
            }
        }
        Self { positions, projection: Projection::paths(paths) }
    }

    /// By name, as a target schema wants it.
    pub(crate) fn by_name(&self, physical: &Schema) -> Projection {
        match &self.projection {
            Projection::Fields(fields) => {
                let names = fields.iter().filter_map(|i| physical.fields().get(*i));
                Projection::paths(names.map(|field| [field.name().clone()]))
            }
            other => other.clone(),
        }
    }
}

/// The projection, with a column after those of the file in place of the numbers of rows.
pub(crate) fn with_row_numbers(
    projection: ProjectionExprs,
    physical: &Schema,
) -> Result<ProjectionExprs> {
    let position = physical.fields().len();
    projection.try_map_exprs(|expr| {
        expr.transform(|node| {
            Ok(match is_row_index(&node) {
                true => Transformed::yes(Arc::new(Column::new(ROW_NUMBERS, position)) as Arc<_>),
                false => Transformed::no(node),
            })
        })
        .data()
    })
}

/// The columns of a table that are row numbers of their file, and are in no file.
pub(crate) struct RowNumberColumns {
    fields: Vec<FieldRef>,
    /// Where they begin in the schema of the table.
    first: usize,
}

impl RowNumberColumns {
    /// The row number columns of a table.
    ///
    /// # Errors
    /// `NotImplemented` for virtual columns of another kind.
    pub(crate) fn from_table(table: &TableSchema) -> Result<Self> {
        let first = table.schema_without_virtual_columns().fields().len();
        let fields = table.virtual_columns().to_vec();
        match fields.iter().find(|field| !is_row_number(field)) {
            None => Ok(Self { fields, first }),
            Some(other) => Err(DataFusionError::NotImplemented(format!(
                "marquetry: the virtual column {} of the type {} and the extension type {}; those \
                 of the type Int64 and the extension type {ROW_NUMBER} are supported",
                other.name(),
                other.data_type(),
                other.extension_type_name().unwrap_or("none"),
            ))),
        }
    }

    /// The expression, with [`RowNumber`] in their place.
    ///
    /// # Errors
    /// Those of DataFusion.
    pub(crate) fn replaced(&self, expr: Arc<dyn PhysicalExpr>) -> Result<Arc<dyn PhysicalExpr>> {
        if self.fields.is_empty() {
            return Ok(expr);
        }
        expr.transform(|node| {
            let field = node.downcast_ref::<Column>().and_then(|column| self.field(column));
            Ok(match field {
                Some(field) => Transformed::yes(Arc::new(RowNumber { field: field.clone() }) as _),
                None => Transformed::no(node),
            })
        })
        .data()
    }

    /// Whether an expression looks at one of them.
    pub(crate) fn are_in(&self, expr: &Arc<dyn PhysicalExpr>) -> bool {
        collect_columns(expr).iter().any(|column| self.field(column).is_some())
    }

    fn field(&self, column: &Column) -> Option<&FieldRef> {
        let field = self.fields.get(column.index().checked_sub(self.first)?)?;
        (field.name() == column.name()).then_some(field)
    }
}

/// The number of a row in its file, as a column of the table. It has no value except the one that a
/// scan returns, and no column, so that nothing looks for it in a file.
#[derive(Debug, PartialEq, Eq, Hash)]
struct RowNumber {
    field: FieldRef,
}

impl fmt::Display for RowNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.field.name())
    }
}

impl PhysicalExpr for RowNumber {
    fn return_field(&self, _schema: &Schema) -> Result<FieldRef> {
        Ok(Arc::clone(&self.field))
    }

    fn evaluate(&self, _batch: &RecordBatch) -> Result<ColumnarValue> {
        internal_err!("marquetry: the number of a row is known where its file is read only")
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        Vec::new()
    }

    fn with_new_children(
        self: Arc<Self>,
        _children: Vec<Arc<dyn PhysicalExpr>>,
    ) -> Result<Arc<dyn PhysicalExpr>> {
        Ok(self)
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }

    fn is_volatile_node(&self) -> bool {
        // It is no constant.
        true
    }
}

/// The extension type of such a column, as the reader of the `parquet` crate names it.
const ROW_NUMBER: &str = "parquet.virtual.row_number";

/// Whether a virtual column is the number of a row in its file.
pub(crate) fn is_row_number(field: &FieldRef) -> bool {
    *field.data_type() == DataType::Int64 && field.extension_type_name() == Some(ROW_NUMBER)
}

/// Name of the column of row numbers.
pub(crate) const ROW_NUMBERS: &str = "file_row_index";

/// Whether an expression is the number of a row in its file: the function of DataFusion for it, or
/// a column of the table. It has no value except the one that a scan returns.
pub(crate) fn is_row_index(expr: &Arc<dyn PhysicalExpr>) -> bool {
    let call = expr.downcast_ref::<ScalarFunctionExpr>();
    call.is_some_and(|call| call.name() == "file_row_index" && call.args().is_empty())
        || expr.downcast_ref::<RowNumber>().is_some()
}

/// Notes which columns an expression looks at, and which fields of those: no name for all.
fn note_fields(
    expr: &Arc<dyn PhysicalExpr>,
    physical: &Schema,
    wanted: &mut BTreeMap<usize, Vec<Vec<String>>>,
) {
    if let Some((position, mut names)) = pushdown::field_path(expr) {
        names.truncate(struct_depth(physical.fields().get(position), &names));
        wanted.entry(position).or_default().push(names);
        return;
    }
    for child in expr.children() {
        note_fields(child, physical, wanted);
    }
}

/// The number of the first names that name fields of structs. A name after them is a key of a map:
/// its value is found in the entries, so the map is read whole.
fn struct_depth(column: Option<&FieldRef>, names: &[String]) -> usize {
    let mut current = column;
    let is_in_struct = |name: &&String| {
        let Some(DataType::Struct(fields)) = current.map(|field| field.data_type()) else {
            return false;
        };
        current = fields.find(name).map(|(_, field)| field);
        true
    };
    names.iter().take_while(is_in_struct).count()
}
