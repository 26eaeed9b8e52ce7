//! Checks the values of VARIANT and FILE groups, whose columns make sense together only.
//!
//! Spec: VariantEncoding.md, VariantShredding.md, LogicalTypes.md "FILE". A top-level field with
//! such groups is read once more, as rows, for all of them together. Trap: a fault of one column
//! would be reported again, so a field whose columns are broken is left out by the caller.

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

/// A top-level field with groups whose values are checked: it is read once for all of them.
pub(super) struct ValueField {
    /// Its position, and its leaves: all are read, because a part of a VARIANT is read as a plain
    /// struct.
    field: usize,
    pub(super) leaves: Range<usize>,
    /// The groups in it, in the order of the schema.
    groups: Vec<ValueGroup>,
}

/// A group whose values are checked.
struct ValueGroup {
    column: Arc<str>,
    kind: K,
}

/// The top-level fields with VARIANT and FILE groups.
pub(super) fn find(file: &FileContext) -> Vec<ValueField> {
    let mut found = Vec::new();
    for (index, field) in file.footer.schema().fields().enumerate() {
        let mut groups = Vec::new();
        visit(field, &mut groups);
        if !groups.is_empty() {
            found.push(ValueField { field: index, leaves: field.leaves(), groups });
        }
    }
    found
}

/// Those at and below a node. One of another shape is a struct, which the schema is blamed for.
fn visit(node: Node<'_>, found: &mut Vec<ValueGroup>) {
    let kind = match () {
        () if is_variant(node) => K::VariantInvalid,
        () if is_file(node) => K::FileReferenceInvalid,
        () => {
            node.children().for_each(|child| visit(child, found));
            return;
        }
    };
    found.push(ValueGroup { column: node.path().dotted().into(), kind });
}

/// The first fault of a group: its row, and what is wrong there; or why the group is not checked.
type Fault = Result<(usize, String)>;

/// Checks the values of the groups of a field in a row group.
///
/// # Errors
/// `Io`.
pub(super) fn check(
    file: &FileContext,
    row_group: usize,
    field: &ValueField,
    findings: &mut Findings,
) -> Result<()> {
    let mut faults: Vec<Option<Fault>> = field.groups.iter().map(|_| None).collect();
    let unread = match read(file, row_group, field, &mut faults) {
        Err(error) if error.kind() == ErrorKind::Io => return Err(error),
        read => read.err(),
    };
    for (group, fault) in field.groups.iter().zip(&faults) {
        let finding = match (fault, &unread) {
            (Some(Ok((row, message))), _) => {
                Finding::new(group.kind, format_args!("row {row} of the row group: {message}"))
            }
            (Some(Err(error)), _) | (None, Some(error)) => {
                let is_of_values = matches!(error.kind(), ErrorKind::Malformed(Spec::Variant));
                let kind = if is_of_values { group.kind } else { K::NotChecked };
                Finding::new(kind, error.message()).with_page(error.at().page)
            }
            (None, None) => continue,
        };
        findings.push(finding.with_row_group(row_group).with_column(&group.column));
    }
    Ok(())
}

/// Reads the rows of a field, and finds the first fault of each group, if it has one.
fn read(
    file: &FileContext,
    row_group: usize,
    field: &ValueField,
    faults: &mut [Option<Fault>],
) -> Result<()> {
    let metadata = Metadata::new(file.footer.clone(), file.file_len);
    let reader = Reader::with_metadata(file.source.clone(), metadata)?;
    let mut options = reader.read_options().clone();
    options.projection = Projection::fields([field.field]);
    options.limits = file.limits.clone();
    // Lists of the plain types only, as `FaultSearch` knows them.
    options.arrow = options.arrow.with_hint(false);
    let reader = reader.options(options).threads(1);
    let mut row = 0;
    let max = saturated(file.limits.memory_bytes);
    for batch in reader.row_groups([row_group])?.batches()? {
        let batch = batch?;
        let max_bytes = max.saturating_sub(batch.get_array_memory_size());
        let is_wanted = faults.iter().map(Option::is_none).collect();
        let mut search = FaultSearch { is_wanted, next: 0, found: Vec::new(), max_bytes };
        for (field, array) in batch.schema().fields().iter().zip(batch.columns()) {
            search.visit(field, array);
        }
        for (group, fault) in search.found {
            if let Some(first) = faults.get_mut(group) {
                *first = Some(fault.map(|(at, text)| (row + at, text)));
            }
        }
        if faults.iter().all(Option::is_some) {
            break;
        }
        row += batch.num_rows();
    }
    Ok(())
}

/// Finds the first fault of each group in a batch.
struct FaultSearch {
    /// Of each group, whether no fault is known yet.
    is_wanted: Vec<bool>,
    /// The number of the group that comes next.
    next: usize,
    /// The faults by groups; their rows are those of the array that is visited.
    found: Vec<(usize, Fault)>,
    /// Bytes that the check of a group may take.
    max_bytes: usize,
}

impl FaultSearch {
    /// Visits the groups at and below an array.
    fn visit(&mut self, field: &Field, array: &ArrayRef) {
        let is_variant = VariantArray::is_variant(field);
        if is_variant || FileColumn::is_file(field) {
            let group = self.next;
            self.next += 1;
            if self.is_wanted.get(group) == Some(&true) {
                let growth = Growth::within(self.max_bytes);
                let fault = fault_of_values(array, is_variant, &growth);
                self.found.extend(fault.transpose().map(|fault| (group, fault)));
            }
            return;
        }
        let end = |end: i64| usize::try_from(end).unwrap_or(usize::MAX);
        match array.data_type() {
            DataType::Struct(fields) => {
                for (field, child) in fields.iter().zip(array.as_struct().columns()) {
                    self.visit(field, child);
                }
            }
            DataType::List(item) => {
                let list = array.as_list::<i32>();
                let ends = list.value_offsets().iter().skip(1).map(|at| end(i64::from(*at)));
                self.visit_items(item, list.values(), ends);
            }
            DataType::LargeList(item) => {
                let list = array.as_list::<i64>();
                let ends = list.value_offsets().iter().skip(1).map(|at| end(*at));
                self.visit_items(item, list.values(), ends);
            }
            DataType::FixedSizeList(item, len) => {
                let ends = (1..=array.len()).map(|row| row.saturating_mul(end((*len).into())));
                self.visit_items(item, array.as_fixed_size_list().values(), ends);
            }
            DataType::Map(entries, _) => {
                let map = array.as_map();
                let ends = map.value_offsets().iter().skip(1).map(|at| end(i64::from(*at)));
                let items: ArrayRef = Arc::new(map.entries().clone());
                self.visit_items(entries, &items, ends);
            }
            _ => {}
        }
    }

    /// Visits the elements of lists that end at `ends`.
    fn visit_items(
        &mut self,
        item: &Field,
        items: &ArrayRef,
        ends: impl Iterator<Item = usize> + Clone,
    ) {
        let known = self.found.len();
        self.visit(item, items);
        for (_, fault) in self.found.iter_mut().skip(known) {
            if let Ok((row, _)) = fault {
                // The list that has it is the first that ends after it.
                *row = ends.clone().position(|end| end > *row).unwrap_or(0);
            }
        }
    }
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
