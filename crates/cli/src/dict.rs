//! `dict` lists the entries of the dictionaries of a column.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch, UInt64Array};
use arrow_schema::{DataType, Field, Schema};
use marquetry::Reader;
use marquetry::format::LogicalType;
use marquetry::schema::Leaf;

use crate::args::{Dict, Global};
use crate::failure::{Failure, Result};
use crate::input;
use crate::printer::Printer;

/// Prints the entries, row group by row group.
pub(crate) fn run(command: &Dict, global: &Global) -> Result<()> {
    let path = &command.source.file;
    let reader = input::open(path, global)?;
    let footer = reader.metadata();
    let leaf = footer.schema().leaf_named(&command.column).map_err(|e| e.at_file(path.as_str()))?;
    let leaf = footer.schema().leaf(leaf)?;
    let mut printer = Printer::open(global)?.with_forms(command.values);
    let mut left = command.rows_max.unwrap_or(u64::MAX);
    let mut is_there = false;
    for row_group in groups(&reader, path, command.row_group)? {
        let Some(values) = reader.dictionary_values(row_group, leaf.index)? else { continue };
        is_there = true;
        let batch = entries(row_group, &leaf, &values)?;
        let shown = usize::try_from(left).unwrap_or(usize::MAX).min(batch.num_rows());
        left -= shown as u64;
        printer.rows(&batch.slice(0, shown))?;
        if left == 0 {
            break;
        }
    }
    if !is_there {
        printer.abort()?;
        return Err(Failure::Usage(format!(
            "{path}: column {} has no dictionary{}",
            leaf.path.dotted(),
            if command.row_group.is_some() { " in this row group" } else { "" }
        )));
    }
    printer.close()?;
    Ok(())
}

/// The row groups to look at: one, or all.
pub(crate) fn groups(
    reader: &Reader,
    path: &str,
    wanted: Option<usize>,
) -> Result<std::ops::Range<usize>> {
    let there = reader.metadata().row_groups();
    match wanted {
        Some(group) if group >= there => {
            Err(Failure::Usage(format!("{path} has {there} row groups, and no row group {group}")))
        }
        Some(group) => Ok(group..group + 1),
        None => Ok(0..there),
    }
}

/// The entries of a dictionary as rows.
fn entries(row_group: usize, leaf: &Leaf, values: &ArrayRef) -> Result<RecordBatch> {
    let count = values.len();
    let is_uuid = matches!(leaf.logical, Some(LogicalType::Uuid));
    let extension = ("ARROW:extension:name".to_owned(), "arrow.uuid".to_owned());
    let metadata: HashMap<_, _> = is_uuid.then_some(extension).into_iter().collect();
    let value = Field::new("value", values.data_type().clone(), true).with_metadata(metadata);
    let number = |name: &str, nullable| Field::new(name, DataType::UInt64, nullable);
    let (group, entry) = (number("row_group", false), number("entry", false));
    let schema = Schema::new(vec![group, entry, value, number("bytes", true)]);
    let columns: [ArrayRef; 4] = [
        Arc::new(UInt64Array::from(vec![row_group as u64; count])),
        Arc::new(UInt64Array::from_iter_values(0..count as u64)),
        values.clone(),
        Arc::new(sizes(leaf, values)),
    ];
    Ok(RecordBatch::try_new(Arc::new(schema), columns.into())?)
}

/// Bytes of each entry in the dictionary page, without the length before it; null where the value
/// does not tell.
fn sizes(leaf: &Leaf, values: &ArrayRef) -> UInt64Array {
    let all = 0..values.len();
    let len: Box<dyn Fn(usize) -> usize> = match values.data_type() {
        _ if leaf.physical.byte_width().is_some() => {
            let width = leaf.physical.byte_width().unwrap_or_default();
            Box::new(move |_| width)
        }
        DataType::Utf8 => Box::new(|i| values.as_string::<i32>().value(i).len()),
        DataType::LargeUtf8 => Box::new(|i| values.as_string::<i64>().value(i).len()),
        DataType::Utf8View => Box::new(|i| values.as_string_view().value(i).len()),
        DataType::Binary => Box::new(|i| values.as_binary::<i32>().value(i).len()),
        DataType::LargeBinary => Box::new(|i| values.as_binary::<i64>().value(i).len()),
        DataType::BinaryView => Box::new(|i| values.as_binary_view().value(i).len()),
        // Decimals in BYTE_ARRAY have lengths of their own, which are gone.
        _ => return UInt64Array::new_null(values.len()),
    };
    UInt64Array::from_iter_values(all.map(|i| len(i) as u64))
}
