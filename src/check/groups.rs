//! Checks the values of VARIANT and FILE groups, whose columns make sense together only.
//!
//! Spec: VariantEncoding.md, VariantShredding.md, LogicalTypes.md "FILE". The columns of such a
//! group are read once more, as rows. Trap: a fault of one column would be reported again, so a
//! group whose columns are broken is left out by the caller.

use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_array::cast::AsArray;
use arrow_schema::{DataType, Field};

use super::context::FileContext;
use super::finding::{Finding, Findings};
use super::kind::FindingKind as K;
use crate::error::{ErrorKind, Result, Spec};
use crate::file_reference::FileColumn;
use crate::format::LogicalType;
use crate::read::{Metadata, VariantOutput};
use crate::reader::Reader;
use crate::schema::{Node, Projection};
use crate::variant::VariantArray;

/// A group whose values are checked.
pub(super) struct ValueGroup {
    /// The index of its top-level field, and the leaves of that.
    column: Arc<str>,
    pub(super) leaves: std::ops::Range<usize>,
    kind: K,
}

/// The VARIANT and FILE groups of the schema.
pub(super) fn find(file: &FileContext) -> Vec<ValueGroup> {
    let mut found = Vec::new();
    for field in file.footer.schema().fields() {
        visit(field, &mut found);
    }
    found
}

fn visit(node: Node<'_>, found: &mut Vec<ValueGroup>) {
    if node.is_leaf() {
        return;
    }
    let kind = match node.element().logical_type {
        Some(LogicalType::Variant(of)) if matches!(of.specification_version, None | Some(1)) => {
            K::VariantInvalid
        }
        Some(LogicalType::File) => K::FileReferenceInvalid,
        _ => {
            node.children().for_each(|child| visit(child, found));
            return;
        }
    };
    found.push(ValueGroup { column: node.path().dotted().into(), leaves: node.leaves(), kind });
}

/// Checks the values of a group in a row group.
///
/// # Errors
/// `Io`.
pub(super) fn check(
    file: &FileContext,
    row_group: usize,
    group: &ValueGroup,
    findings: &mut Findings,
) -> Result<()> {
    let checked = read(file, row_group, group);
    let finding = match checked {
        Ok(None) => return Ok(()),
        Ok(Some((row, message))) => {
            Finding::new(group.kind, format_args!("row {row} of the row group: {message}"))
        }
        Err(error) if error.kind() == ErrorKind::Io => return Err(error),
        Err(error) => {
            let is_of_values = matches!(error.kind(), ErrorKind::Malformed(Spec::Variant));
            let kind = if is_of_values { group.kind } else { K::NotChecked };
            let at = error.at().page;
            Finding::new(kind, error.message()).with_page(at)
        }
    };
    findings.push(finding.with_row_group(row_group).with_column(&group.column));
    Ok(())
}

/// The first row with an invalid value, and what is wrong with it.
fn read(
    file: &FileContext,
    row_group: usize,
    group: &ValueGroup,
) -> Result<Option<(usize, String)>> {
    let metadata = Metadata::new(file.footer.clone(), file.file_len);
    let reader = Reader::with_metadata(file.source.clone(), metadata)?;
    let mut options = reader.read_options().clone();
    options.projection = Projection::leaves(group.leaves.clone());
    options.variants = VariantOutput::Unshredded;
    options.limits = file.limits.clone();
    let reader = reader.options(options).threads(1);
    let mut row = 0;
    for batch in reader.row_groups([row_group])?.batches()? {
        let batch = batch?;
        for (field, array) in batch.schema().fields().iter().zip(batch.columns()) {
            if let Some(message) = fault(field, array)? {
                return Ok(Some(message).map(|(at, text)| (row + at, text)));
            }
        }
        row += batch.num_rows();
    }
    Ok(None)
}

/// The first invalid value below an array, by its row there.
fn fault(field: &Field, array: &ArrayRef) -> Result<Option<(usize, String)>> {
    if VariantArray::is_variant(field) {
        let column = VariantArray::new(array.as_struct())?;
        for row in 0..column.len() {
            let checked = column.value(row).and_then(|value| match value {
                Some(value) => value.as_variant().validate(),
                None => Ok(()),
            });
            if let Err(error) = checked {
                return Ok(Some((row, error.message().to_owned())));
            }
        }
        return Ok(None);
    }
    if FileColumn::is_file(field) {
        let checked = FileColumn::new(array.as_struct())?.check();
        return Ok(checked.err().map(|error| (0, error.message().to_owned())));
    }
    let children: Vec<(&Field, ArrayRef)> = match field.data_type() {
        DataType::Struct(fields) => {
            let columns = array.as_struct().columns().iter().cloned();
            fields.iter().map(|field| &**field).zip(columns).collect()
        }
        DataType::List(item) => vec![(&**item, array.as_list::<i32>().values().clone())],
        DataType::LargeList(item) => vec![(&**item, array.as_list::<i64>().values().clone())],
        DataType::FixedSizeList(item, _) => {
            vec![(&**item, array.as_fixed_size_list().values().clone())]
        }
        DataType::Map(entries, _) => {
            let entries_array: ArrayRef = Arc::new(array.as_map().entries().clone());
            vec![(&**entries, entries_array)]
        }
        _ => Vec::new(),
    };
    for (field, child) in children {
        if let Some((_, message)) = fault(field, &child)? {
            return Ok(Some((0, message)));
        }
    }
    Ok(None)
}
