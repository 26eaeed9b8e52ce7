//! [`Columns`]: what of a file is decoded for the expressions of a scan.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_schema::Schema;
use datafusion_common::Result;
use datafusion_common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion_physical_expr::ScalarFunctionExpr;
use datafusion_physical_expr::expressions::Column;
use datafusion_physical_expr::projection::ProjectionExprs;
use datafusion_physical_expr_common::physical_expr::PhysicalExpr;

use super::pushdown;
use crate::schema::Projection;

/// What is read of a file for expressions over all of its columns.
pub(super) struct Columns {
    /// Positions among the columns of the file, ascending; one after them for the row numbers.
    pub(super) positions: Vec<usize>,
    pub(super) projection: Projection,
}

impl Columns {
    /// The columns of these expressions; of a struct, only the fields that they look at.
    pub(super) fn of<'a>(
        exprs: impl Iterator<Item = &'a Arc<dyn PhysicalExpr>>,
        physical: &Schema,
    ) -> Self {
        let mut wanted: BTreeMap<usize, Vec<Vec<String>>> = BTreeMap::new();
        for expr in exprs {
            note_fields(expr, &mut wanted);
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
    pub(super) fn by_name(&self, physical: &Schema) -> Projection {
        match &self.projection {
            Projection::Fields(fields) => {
                let names = fields.iter().filter_map(|i| physical.fields().get(*i));
                Projection::paths(names.map(|field| [field.name().clone()]))
            }
            other => other.clone(),
        }
    }
}

/// The projection, with a column after those of the file in place of `file_row_index()`.
pub(super) fn with_row_numbers(
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

/// Name of the column of row numbers.
pub(super) const ROW_NUMBERS: &str = "file_row_index";

/// Whether an expression is the function of DataFusion that gives the number of a row in its file.
/// It has no value but what a scan gives it.
pub(super) fn is_row_index(expr: &Arc<dyn PhysicalExpr>) -> bool {
    let call = expr.downcast_ref::<ScalarFunctionExpr>();
    call.is_some_and(|call| call.name() == "file_row_index" && call.args().is_empty())
}

/// Notes which columns an expression looks at, and which fields of those: no name for all.
fn note_fields(expr: &Arc<dyn PhysicalExpr>, wanted: &mut BTreeMap<usize, Vec<Vec<String>>>) {
    if let Some((position, names)) = pushdown::field_path(expr) {
        wanted.entry(position).or_default().push(names);
        return;
    }
    for child in expr.children() {
        note_fields(child, wanted);
    }
}
