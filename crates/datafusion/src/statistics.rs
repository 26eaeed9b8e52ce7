//! Converts the statistics and the sort order of a file to those that DataFusion plans by.
//!
//! Trap: DataFusion answers queries from statistics that are called exact. Bounds are exact only
//! where the file says so; for floats, only where it also says that there are no NaNs, which bounds
//! ignore, and for zeros never, because −0 and +0 share a bound. A table may declare another type
//! than the file has: bounds and orders hold only if the cast keeps the order of values.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, BooleanArray};
use arrow_schema::{DataType, Schema, SortOptions};
use datafusion_common::stats::Precision;
use datafusion_common::{ColumnStatistics as FileColumn, Result, ScalarValue, Statistics};
use datafusion_datasource::PartitionedFile;
use datafusion_datasource::file_groups::FileGroup;
use datafusion_datasource::file_scan_config::FileScanConfig;
use datafusion_physical_expr::expressions::Column;
use datafusion_physical_expr_common::sort_expr::{LexOrdering, PhysicalSortExpr};

use crate::error::to_datafusion;
use crate::schema::{arrow_types, is_bytes, is_text, plain_options};
use marquetry::schema::Physical;
use marquetry::{ColumnStatistics, Metadata};

/// Statistics of a file for a table of this schema, without partition columns.
pub(crate) fn of_file(metadata: &Metadata, table: &Schema) -> Result<Statistics> {
    let rows = saturated(metadata.rows().map_err(to_datafusion)?);
    let mut out = Statistics::new_unknown(table);
    out.num_rows = Precision::Exact(rows);
    for (column, field) in out.column_statistics.iter_mut().zip(table.fields()) {
        column.byte_size = match field.data_type().primitive_width() {
            Some(width) => Precision::Exact(width.saturating_mul(rows)),
            None => Precision::Absent,
        };
        let node = metadata.schema().fields().find(|node| node.name() == field.name());
        let Some(node) = node else {
            column.null_count = Precision::Exact(rows);
            continue;
        };
        if !matches!(column.byte_size, Precision::Exact(_)) {
            column.byte_size = stored_bytes(metadata, node.leaves());
        }
        if node.is_leaf() && node.max_rep() == 0 {
            // A fault of the metadata is reported where they are read.
            let leaf = node.leaves().start;
            if let Ok(found) = metadata.column_statistics(leaf, &plain_options()) {
                fill(column, &found, field.data_type());
            }
            column.distinct_count = distinct_count(metadata, leaf);
        }
    }
    Ok(out)
}

/// Uncompressed bytes of these leaves.
fn stored_bytes(metadata: &Metadata, leaves: std::ops::Range<usize>) -> Precision<usize> {
    let mut bytes = 0u64;
    for row_group in 0..metadata.row_groups() {
        for leaf in leaves.clone() {
            let Ok(chunk) = metadata.column_chunk(row_group, leaf) else {
                return Precision::Absent;
            };
            let size = chunk.meta_data.map_or(0, |meta| meta.total_uncompressed_size);
            bytes = bytes.saturating_add(u64::try_from(size).unwrap_or_default());
        }
    }
    Precision::Inexact(saturated(bytes))
}

/// Takes null count and bounds of all row groups together.
fn fill(column: &mut FileColumn, found: &ColumnStatistics, data_type: &DataType) {
    let nulls = found.null_count.iter().map(|count| count.map(saturated)).collect::<Vec<_>>();
    let known: usize = nulls.iter().flatten().fold(0, |sum, n| sum.saturating_add(*n));
    column.null_count = match nulls.iter().all(Option::is_some) {
        true => Precision::Exact(known),
        false if nulls.iter().any(Option::is_some) => Precision::Inexact(known),
        false => Precision::Absent,
    };
    // Bounds of a dictionary are values.
    let data_type = match data_type {
        DataType::Dictionary(_, values) => values,
        other => other,
    };
    if !keeps_order(found.min.data_type(), data_type) {
        return;
    }
    let is_float = data_type.is_floating();
    let without_nan =
        (0..found.len()).all(|i| found.nan_count.is_valid(i) && found.nan_count.value(i) == 0);
    let may_be_exact = !is_float || without_nan;
    let bound = |values: &dyn Array, exact: &BooleanArray, wanted: Ordering| {
        let (value, exact) = extreme(found, values, exact, wanted)?;
        let value = match value.data_type() == *data_type {
            true => value,
            false => value.cast_to(data_type).ok()?,
        };
        let is_zero = is_float
            && ScalarValue::new_zero(data_type).is_ok_and(|zero| {
                value.partial_cmp(&zero) == Some(Ordering::Equal)
                    || value.arithmetic_negate().is_ok_and(|v| v == zero)
            });
        Some(match exact && may_be_exact && !is_zero {
            true => Precision::Exact(value),
            false => Precision::Inexact(value),
        })
    };
    column.min_value = bound(&found.min, &found.min_exact, Ordering::Less).unwrap_or_default();
    column.max_value = bound(&found.max, &found.max_exact, Ordering::Greater).unwrap_or_default();
}

/// Whether values that are cast from one type to the other stay in their order, so that the bounds
/// of the ones, cast, are bounds of the others.
fn keeps_order(from: &DataType, to: &DataType) -> bool {
    use DataType as D;
    match (from, to) {
        _ if from == to => true,
        // Both are ordered by their bytes.
        _ if (is_text(from) || is_bytes(from)) && (is_text(to) || is_bytes(to)) => true,
        // A time without a zone becomes another instant by the zone that it is put in.
        (D::Timestamp(_, a), D::Timestamp(_, b)) => a.is_some() == b.is_some(),
        (D::Date32 | D::Date64, D::Date32 | D::Date64) => true,
        (D::Float16 | D::Float32 | D::Float64, D::Float32 | D::Float64) => is_wider(from, to),
        _ if from.is_integer() && to.is_floating() => true,
        _ if from.is_integer() && to.is_integer() => match from.is_signed_integer() {
            false if to.is_signed_integer() => is_wider(from, to) && !is_wider(to, from),
            is_signed => is_signed == to.is_signed_integer() && is_wider(from, to),
        },
        _ => match (decimal_scale(from), decimal_scale(to)) {
            (Some(from), Some(to)) => from <= to,
            _ => false,
        },
    }
}

/// Whether values of `to` take at least as many bytes as those of `from`.
fn is_wider(from: &DataType, to: &DataType) -> bool {
    from.primitive_width() <= to.primitive_width()
}

fn decimal_scale(data_type: &DataType) -> Option<i8> {
    match data_type {
        DataType::Decimal32(_, scale)
        | DataType::Decimal64(_, scale)
        | DataType::Decimal128(_, scale)
        | DataType::Decimal256(_, scale) => Some(*scale),
        _ => None,
    }
}

/// The bound of all row groups, and whether some value equals it. `None` if a row group may have
/// values that its bounds exclude.
fn extreme(
    found: &ColumnStatistics,
    values: &dyn Array,
    exact: &BooleanArray,
    wanted: Ordering,
) -> Option<(ScalarValue, bool)> {
    let mut best: Option<(ScalarValue, bool)> = None;
    for i in 0..found.len() {
        let rows = found.row_count.value(i);
        if rows == 0 || found.null_count.is_valid(i) && found.null_count.value(i) == rows {
            continue;
        }
        if values.is_null(i) {
            return None;
        }
        let value = ScalarValue::try_from_array(values, i).ok()?;
        let is_exact = exact.is_valid(i) && exact.value(i);
        best = Some(match best {
            None => (value, is_exact),
            Some((before, was_exact)) => match value.partial_cmp(&before)? {
                Ordering::Equal => (before, was_exact || is_exact),
                order if order == wanted => (value, is_exact),
                _ => (before, was_exact),
            },
        });
    }
    best
}

/// The largest count of distinct values of a row group, if three of four row groups have one: the
/// estimate of DataFusion's own source. It is never exact, because writers estimate it.
fn distinct_count(metadata: &Metadata, leaf: usize) -> Precision<usize> {
    let groups = metadata.row_groups();
    let counts: Vec<usize> = (0..groups)
        .filter_map(|group| {
            let meta = metadata.column_chunk(group, leaf).ok()?.meta_data?;
            usize::try_from(meta.statistics?.distinct_count?).ok()
        })
        .collect();
    match counts.iter().max() {
        Some(most) if counts.len() * 4 >= groups * 3 => Precision::Inexact(*most),
        _ => Precision::Absent,
    }
}

/// The sort order that all row groups of a file claim and that the file has as a whole, in terms of
/// the columns of the table.
pub(crate) fn ordering(metadata: &Metadata, table: &Schema) -> Option<LexOrdering> {
    let groups = &metadata.index().head().row_groups;
    let claimed = groups.first()?.sorting_columns.as_ref()?;
    if groups.iter().any(|group| group.sorting_columns.as_ref() != Some(claimed)) {
        return None;
    }
    let types = arrow_types(metadata).ok()?;
    let mut keys = Vec::new();
    let mut first = None;
    for key in claimed {
        let leaf = usize::try_from(key.column_idx).ok();
        let node = leaf.and_then(|leaf| metadata.schema().leaf_node(leaf).ok());
        // A prefix of the order is an order.
        let Some(node) = node.filter(|node| node.path().names().len() == 1) else { break };
        let Some((index, field)) = table.column_with_name(node.name()) else { break };
        let of_file = types.field_with_name(node.name()).map(|field| field.data_type());
        let has_no_order = matches!(node.physical(), Ok(Physical::Int96) | Err(_));
        if has_no_order || !of_file.is_ok_and(|of_file| has_same_order(of_file, field.data_type()))
        {
            break;
        }
        let options = SortOptions { descending: key.descending, nulls_first: key.nulls_first };
        let column = Column::new(field.name(), index);
        if first.is_none() {
            first = leaf.map(|leaf| (leaf, options));
        }
        keys.push(PhysicalSortExpr::new(Arc::new(column), options));
    }
    let (leaf, options) = first?;
    match overlap(metadata, leaf, options)? {
        Ordering::Less => {}
        // Rows of the same first key lie in two row groups.
        Ordering::Equal => keys.truncate(1),
        Ordering::Greater => return None,
    }
    LexOrdering::new(keys)
}

/// The orders of a scan, each as far as it holds where a group has several files: DataFusion checks
/// those by their bounds, which say nothing of nulls.
pub(crate) fn orders_across_files(config: &FileScanConfig) -> Vec<LexOrdering> {
    let groups = config.file_groups.iter().filter(|group| group.len() > 1);
    let files: Vec<&PartitionedFile> = groups.flat_map(FileGroup::iter).collect();
    if files.is_empty() {
        return config.output_ordering.clone();
    }
    let has_no_nulls = |key: &&PhysicalSortExpr| {
        key.expr.downcast_ref::<Column>().is_some_and(|column| {
            files.iter().all(|file| null_count(file, column.index()) == Precision::Exact(0))
        })
    };
    // A prefix of an order is an order.
    let prefix = |order: &LexOrdering| {
        LexOrdering::new(order.iter().take_while(has_no_nulls).cloned().collect::<Vec<_>>())
    };
    config.output_ordering.iter().filter_map(prefix).collect()
}

fn null_count(file: &PartitionedFile, column: usize) -> Precision<usize> {
    let columns = file.statistics.as_ref().map(|found| &found.column_statistics);
    columns.and_then(|columns| columns.get(column)).map_or(Precision::Absent, |c| c.null_count)
}

/// Whether values of a file that are in order are so as values of the table too: not if a cast
/// makes different values the same. Floats never are: what writers call sorted does not say where
/// NaNs and the two zeros are.
fn has_same_order(of_file: &DataType, of_table: &DataType) -> bool {
    let of_values = match of_file {
        DataType::Dictionary(_, values) => values,
        other => other,
    };
    let is_text_in_both =
        (is_text(of_file) || is_bytes(of_file)) && (is_text(of_table) || is_bytes(of_table));
    let is_plain = !of_values.is_floating()
        && !of_values.is_nested()
        && !matches!(of_values, DataType::Interval(_) | DataType::Null);
    is_plain && (of_file == of_table || is_text_in_both)
}

/// How the row groups of a file, each sorted by a column, follow each other: `Less` if all values
/// of one come before those of the next, `Equal` if they may share a value, `Greater` if they
/// overlap. `None` if the file does not say.
fn overlap(metadata: &Metadata, leaf: usize, options: SortOptions) -> Option<Ordering> {
    if metadata.row_groups() < 2 {
        return Some(Ordering::Less);
    }
    let found = metadata.column_statistics(leaf, &plain_options()).ok()?;
    let (lows, highs) = match options.descending {
        true => (&found.max, &found.min),
        false => (&found.min, &found.max),
    };
    let bound = |values: &ArrayRef, i: usize| match values.is_valid(i) {
        true => ScalarValue::try_from_array(values, i).ok(),
        false => None,
    };
    let mut out = Ordering::Less;
    // The last value before; the inner `None` is null.
    let mut before: Option<Option<ScalarValue>> = None;
    for i in 0..found.len() {
        let rows = found.row_count.value(i);
        if rows == 0 {
            continue;
        }
        if found.null_count.is_null(i) {
            return None;
        }
        let nulls = found.null_count.value(i);
        let (low, high) = match nulls == rows {
            true => (None, None),
            false => (Some(bound(lows, i)?), Some(bound(highs, i)?)),
        };
        let low = low.filter(|_| nulls == 0 || !options.nulls_first);
        let high = high.filter(|_| nulls == 0 || options.nulls_first);
        if let Some(before) = before {
            let order = match (&before, &low) {
                (Some(before), Some(low)) if options.descending => low.partial_cmp(before)?,
                (Some(before), Some(low)) => before.partial_cmp(low)?,
                (None, None) => Ordering::Equal,
                (None, Some(_)) if options.nulls_first => Ordering::Less,
                (Some(_), None) if !options.nulls_first => Ordering::Less,
                _ => Ordering::Greater,
            };
            out = out.max(order);
        }
        before = Some(high);
    }
    Some(out)
}

/// A number of bytes or rows as a `usize`; the largest one for those that do not fit.
pub(crate) fn saturated(n: u64) -> usize {
    usize::try_from(n).unwrap_or(usize::MAX)
}
