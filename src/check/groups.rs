//! Checks the values of VARIANT and FILE groups, whose columns make sense together only.
//!
//! Spec: VariantEncoding.md, VariantShredding.md, LogicalTypes.md "FILE". The columns of such a
//! group are read once more, as rows. Trap: a fault of one column would be reported again, so a
//! group whose columns are broken is left out by the caller.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_array::cast::AsArray;
use arrow_schema::{DataType, Field};

use super::context::FileContext;
use super::finding::{Finding, Findings};
use super::kind::FindingKind as K;
use crate::bytes::saturated;
use crate::error::{ErrorKind, LimitKind, Result, Spec};
use crate::file_reference::FileColumn;
use crate::limits::Growth;
use crate::read::Metadata;
use crate::reader::Reader;
use crate::schema::nested::is_file;
use crate::schema::{Node, Projection, is_variant};
use crate::variant::VariantArray;
use crate::variant::stored::StoredRows;

/// A group whose values are checked.
pub(super) struct ValueGroup {
    column: Arc<str>,
    kind: K,
    /// The index of its top-level field, and the leaves of that: a part of a VARIANT is read as a
    /// plain struct.
    field: usize,
    pub(super) leaves: Range<usize>,
    /// How many others come before it in that field.
    before: usize,
}

/// The VARIANT and FILE groups of the schema.
pub(super) fn find(file: &FileContext) -> Vec<ValueGroup> {
    let mut found = Vec::new();
    for (index, field) in file.footer.schema().fields().enumerate() {
        let mut inside = Vec::new();
        visit(field, &mut inside);
        found.extend(inside.into_iter().enumerate().map(|(before, (column, kind))| ValueGroup {
            column,
            kind,
            field: index,
            leaves: field.leaves(),
            before,
        }));
    }
    found
}

/// Those at and below a node. One of another shape is a struct, which the schema is blamed for.
fn visit(node: Node<'_>, found: &mut Vec<(Arc<str>, K)>) {
    let kind = match () {
        () if is_variant(node) => K::VariantInvalid,
        () if is_file(node) => K::FileReferenceInvalid,
        () => {
            node.children().for_each(|child| visit(child, found));
            return;
        }
    };
    found.push((node.path().dotted().into(), kind));
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
    options.projection = Projection::fields([group.field]);
    options.limits = file.limits.clone();
    // Lists of the plain types only, as `fault` knows them.
    options.arrow = options.arrow.with_hint(false);
    let reader = reader.options(options).threads(1);
    let mut row = 0;
    let max = saturated(file.limits.memory_bytes);
    for batch in reader.row_groups([row_group])?.batches()? {
        let batch = batch?;
        let growth = Growth::within(max.saturating_sub(batch.get_array_memory_size()));
        for (field, array) in batch.schema().fields().iter().zip(batch.columns()) {
            if let Some((at, text)) = fault(field, array, &mut { group.before }, &growth)? {
                return Ok(Some((row + at, text)));
            }
        }
        row += batch.num_rows();
    }
    Ok(None)
}

/// Finds the first invalid value of a VARIANT or FILE column.
fn fault_of_values(
    array: &ArrayRef,
    is_variant: bool,
    growth: &Growth,
) -> Result<Option<(usize, String)>> {
    if is_variant {
        let column = VariantArray::new(array.as_struct())?;
        let mut rows = StoredRows::new(&column, growth);
        let found = (0..column.len()).find_map(|row| rows.check(row).err().map(|e| (row, e)));
        return match found {
            Some((_, error)) if error.kind() == ErrorKind::Limit(LimitKind::Memory) => Err(error),
            found => Ok(found.map(|(row, error)| (row, error.message().to_owned()))),
        };
    }
    let found = FileColumn::new(array.as_struct())?.first_invalid();
    Ok(found.map(|(row, why)| (row, why.to_owned())))
}

/// Finds the first invalid value below an array, by its row there, in the VARIANT or FILE group
/// that `before` others precede.
fn fault(
    field: &Field,
    array: &ArrayRef,
    before: &mut usize,
    growth: &Growth,
) -> Result<Option<(usize, String)>> {
    let is_variant = VariantArray::is_variant(field);
    if is_variant || FileColumn::is_file(field) {
        let is_wanted = *before == 0;
        *before = before.wrapping_sub(1);
        return if is_wanted { fault_of_values(array, is_variant, growth) } else { Ok(None) };
    }
    let mut of_items = |item: &Field, items: &ArrayRef, ends: &dyn Fn(usize) -> usize| {
        let found = fault(item, items, before, growth)?;
        // The list that has it is the first that ends after it.
        let list = |at| (0..array.len()).position(|row| ends(row) > at).unwrap_or(0);
        Ok(found.map(|(at, text)| (list(at), text)))
    };
    let end = |end: i64| usize::try_from(end).unwrap_or(usize::MAX);
    match array.data_type() {
        DataType::Struct(fields) => {
            let mut first: Option<(usize, String)> = None;
            for (field, child) in fields.iter().zip(array.as_struct().columns()) {
                let found = fault(field, child, before, growth)?;
                let is_before = |(row, _): &(usize, String)| {
                    first.as_ref().is_none_or(|(first, _)| row < first)
                };
                first = found.filter(is_before).or(first);
            }
            Ok(first)
        }
        DataType::List(item) => {
            let list = array.as_list::<i32>();
            let ends =
                |row: usize| list.value_offsets().get(row + 1).map_or(0, |at| end(i64::from(*at)));
            of_items(item, list.values(), &ends)
        }
        DataType::LargeList(item) => {
            let list = array.as_list::<i64>();
            let ends = |row: usize| list.value_offsets().get(row + 1).map_or(0, |at| end(*at));
            of_items(item, list.values(), &ends)
        }
        DataType::FixedSizeList(item, len) => {
            let ends = |row: usize| (row + 1).saturating_mul(end((*len).into()));
            of_items(item, array.as_fixed_size_list().values(), &ends)
        }
        DataType::Map(entries, _) => {
            let map = array.as_map();
            let ends =
                |row: usize| map.value_offsets().get(row + 1).map_or(0, |at| end(i64::from(*at)));
            of_items(entries, &(Arc::new(map.entries().clone()) as ArrayRef), &ends)
        }
        _ => Ok(None),
    }
}
