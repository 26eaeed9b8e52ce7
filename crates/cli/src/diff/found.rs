//! [`DataDiff`]: the rows in which two files differ; the first ones are listed.

use std::collections::{BTreeSet, HashMap};

use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{Field, FieldRef, SchemaRef};
use marquetry::Reader;
use marquetry::format::PageType;
use marquetry::read::VariantOutput;
use marquetry::schema::Node;
use serde::Serialize;

use super::facts::by_name;
use super::rows::{RowRun, RowVisitor, Which};
use super::value::{different_rows, stored_leaf};
use crate::args::ValueForms;
use crate::cells::{Forms, ValuesOf};
use crate::failure::Result;

/// The outcome of comparing rows.
#[derive(Debug, Default, Serialize)]
pub(super) struct DataDiff {
    pub(super) rows_a: u64,
    pub(super) rows_b: u64,
    /// FileRows of both files that are equal.
    pub(super) rows_equal: u64,
    /// FileRows of both files in which a value differs.
    pub(super) rows_different: u64,
    pub(super) rows_only_in_a: u64,
    pub(super) rows_only_in_b: u64,
    /// Columns that were not compared, because only one file has them, or their types differ.
    pub(super) columns_not_compared: Vec<String>,
    /// The columns in which values differ, and in how many rows.
    pub(super) columns: Vec<ColumnDiff>,
    /// Places where the files differ, whether they are listed or not.
    pub(super) total: u64,
    pub(super) truncated: bool,
    pub(super) differences: Vec<Difference>,
    #[serde(skip)]
    max: usize,
    #[serde(skip)]
    key: Vec<usize>,
    #[serde(skip)]
    fields: Vec<FieldRef>,
    /// Where the columns of these names are in `columns`.
    #[serde(skip)]
    counted: HashMap<String, usize>,
}

#[derive(Debug, Serialize)]
pub(super) struct ColumnDiff {
    pub(super) column: String,
    pub(super) rows: u64,
}

/// A value that differs, or a row that only one file has.
#[derive(Debug, Serialize)]
pub(super) struct Difference {
    pub(super) kind: &'static str,
    pub(super) key: Option<Vec<Option<String>>>,
    pub(super) row_a: Option<u64>,
    pub(super) row_b: Option<u64>,
    pub(super) column: Option<String>,
    pub(super) a: Option<String>,
    pub(super) b: Option<String>,
    pub(super) place_a: Option<PlaceInFile>,
    pub(super) place_b: Option<PlaceInFile>,
    /// The leaf, counted from the first of the column, a VARIANT being one.
    #[serde(skip)]
    leaf: usize,
}

/// Where a value is in its file.
#[derive(Debug, Serialize)]
pub(super) struct PlaceInFile {
    pub(super) row_group: usize,
    /// The row in the row group.
    pub(super) row: u64,
    /// The leaf.
    pub(super) path: Option<String>,
    /// The number of the data page, where it can be told without decoding.
    pub(super) page: Option<usize>,
}

impl DataDiff {
    pub(super) fn new(fields: Vec<FieldRef>, key: Vec<usize>, max: usize) -> Self {
        Self { fields, key, max, ..Self::default() }
    }

    pub(super) fn is_equal(&self) -> bool {
        self.total == 0 && self.columns_not_compared.is_empty()
    }

    fn list(&mut self, make: impl FnOnce(&Self) -> Result<Difference>) -> Result<()> {
        self.total += 1;
        if self.differences.len() < self.max {
            let made = make(self)?;
            self.differences.push(made);
        } else {
            self.truncated = true;
        }
        Ok(())
    }

    fn key_of(&self, batch: &RecordBatch, row: usize) -> Result<Option<Vec<Option<String>>>> {
        if self.key.is_empty() {
            return Ok(None);
        }
        let columns = self.key.iter().filter_map(|at| {
            Some((batch.columns().get(*at)?, batch.schema_ref().fields().get(*at)?))
        });
        columns.map(|(column, field)| text(column, row, field)).collect::<Result<_>>().map(Some)
    }

    fn count(&mut self, column: &str, rows: u64) {
        let known = self.counted.get(column).and_then(|at| self.columns.get_mut(*at));
        match known {
            Some(known) => known.rows += rows,
            None => {
                self.counted.insert(column.to_owned(), self.columns.len());
                self.columns.push(ColumnDiff { column: column.to_owned(), rows });
            }
        }
    }

    /// Finds the pages of what is listed.
    ///
    /// # Errors
    /// Of the schemas.
    pub(super) fn place(&mut self, a: &Reader, b: &Reader) -> Result<()> {
        let (of_a, of_b) = (StoredColumns::new(a)?, StoredColumns::new(b)?);
        for found in &mut self.differences {
            let place = |of: &StoredColumns<'_>, row: Option<u64>| {
                let leaf = found.column.as_deref().and_then(|name| of.leaf(name, found.leaf));
                place_of(of.reader, row?, leaf)
            };
            found.place_a = place(&of_a, found.row_a);
            found.place_b = place(&of_b, found.row_b);
        }
        Ok(())
    }
}

impl RowVisitor for DataDiff {
    fn pair(&mut self, a: RowRun<'_>, b: RowRun<'_>) -> Result<()> {
        let mut cells = Vec::new();
        let mut rows = BTreeSet::new();
        let fields = self.fields.clone();
        for (at, field) in fields.iter().enumerate() {
            let (Some(of_a), Some(of_b)) = (a.batch.columns().get(at), b.batch.columns().get(at))
            else {
                continue;
            };
            let mut found = Vec::new();
            let (of_a, of_b) = (of_a.slice(a.from, a.len), of_b.slice(b.from, b.len));
            different_rows(&of_a, &of_b, field, 0, &mut found)?;
            rows.extend(found.iter().map(|cell| cell.row));
            if !found.is_empty() {
                self.count(field.name(), found.len() as u64);
            }
            cells.extend(found.into_iter().map(|cell| (cell.row, at, cell.leaf)));
        }
        cells.sort_unstable();
        self.rows_different += rows.len() as u64;
        self.rows_equal += (a.len - rows.len()) as u64;
        (self.rows_a, self.rows_b) = (self.rows_a + a.len as u64, self.rows_b + b.len as u64);
        for (row, at, leaf) in cells {
            let Some(field) = fields.get(at) else { continue };
            self.list(|diff| {
                Ok(Difference {
                    kind: "value",
                    key: diff.key_of(a.batch, a.from + row)?,
                    row_a: Some(a.number(row)),
                    row_b: Some(b.number(row)),
                    column: Some(field.name().clone()),
                    a: text(a.batch.column(at), a.from + row, field)?,
                    b: text(b.batch.column(at), b.from + row, field)?,
                    place_a: None,
                    place_b: None,
                    leaf,
                })
            })?;
        }
        Ok(())
    }

    fn only(&mut self, side: Which, rows: RowRun<'_>) -> Result<()> {
        let count = rows.len as u64;
        match side {
            Which::A => {
                (self.rows_a, self.rows_only_in_a) =
                    (self.rows_a + count, self.rows_only_in_a + count)
            }
            Which::B => {
                (self.rows_b, self.rows_only_in_b) =
                    (self.rows_b + count, self.rows_only_in_b + count)
            }
        }
        for row in 0..rows.len {
            if self.differences.len() >= self.max {
                self.total += (rows.len - row) as u64;
                self.truncated = true;
                break;
            }
            let number = Some(rows.number(row));
            let kind = if side == Which::A { "only_in_a" } else { "only_in_b" };
            self.list(|diff| {
                Ok(Difference {
                    kind,
                    key: diff.key_of(rows.batch, rows.from + row)?,
                    row_a: number.filter(|_| side == Which::A),
                    row_b: number.filter(|_| side == Which::B),
                    column: None,
                    a: None,
                    b: None,
                    place_a: None,
                    place_b: None,
                    leaf: 0,
                })
            })?;
        }
        Ok(())
    }
}

/// Characters of a value that are shown.
const MAX_TEXT: usize = 400;

/// A value as text; nothing for null.
fn text(column: &ArrayRef, row: usize, field: &Field) -> Result<Option<String>> {
    let one = column.slice(row, 1);
    let mut forms = Forms::new(ValueForms::default());
    forms.look_at_column(&one, field);
    let text = ValuesOf::new(&forms).column(&one, field)?.text(0)?;
    Ok(text.map(|text| match text.char_indices().nth(MAX_TEXT) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }))
}

/// The columns of a file, as they are compared and as they are stored.
struct StoredColumns<'a> {
    reader: &'a Reader,
    compared: SchemaRef,
    stored: SchemaRef,
    nodes: HashMap<&'a str, Node<'a>>,
}

impl<'a> StoredColumns<'a> {
    fn new(reader: &'a Reader) -> Result<Self> {
        let mut options = reader.read_options().clone();
        options.variants = VariantOutput::Stored;
        let nodes = by_name(reader.metadata().schema().fields(), |node| node.name());
        let stored = reader.clone().options(options).schema()?;
        Ok(Self { reader, compared: reader.schema()?, stored, nodes })
    }

    /// The leaf in the file of a leaf of the column, counted from its first.
    fn leaf(&self, column: &str, leaf: usize) -> Option<usize> {
        let mut leaves = self.nodes.get(column)?.leaves();
        let (compared, stored) = (
            self.compared.field_with_name(column).ok()?,
            self.stored.field_with_name(column).ok()?,
        );
        leaves.nth(stored_leaf(leaf, compared, stored))
    }
}

/// Where a row of a leaf is.
fn place_of(reader: &Reader, mut row: u64, leaf: Option<usize>) -> Option<PlaceInFile> {
    let metadata = reader.metadata();
    for row_group in 0..metadata.row_groups() {
        let rows = metadata.row_group_rows(row_group).ok()?;
        if row >= rows {
            row -= rows;
            continue;
        }
        let path = leaf.and_then(|leaf| metadata.schema().leaf_node(leaf).ok());
        let path = path.map(|node| node.path().dotted());
        let page = leaf.and_then(|leaf| page_of(reader, row_group, leaf, row));
        return Some(PlaceInFile { row_group, row, path, page });
    }
    None
}

/// The data page of a row: by the offset index, or by the headers of the pages.
fn page_of(reader: &Reader, row_group: usize, leaf: usize, row: u64) -> Option<usize> {
    let index = reader.page_index(row_group, leaf).ok().and_then(|index| index.offset_index);
    if let Some(index) = index {
        let starts = index.page_locations.iter().map(|page| page.first_row_index);
        return starts
            .take_while(|start| u64::try_from(*start).is_ok_and(|start| start <= row))
            .count()
            .checked_sub(1);
    }
    let is_flat = reader.metadata().schema().leaf(leaf).ok()?.max_rep == 0;
    let (mut end, mut number) = (0u64, 0);
    for page in reader.stored_pages(row_group, leaf).ok()? {
        let header = page.ok()?.header;
        let rows = match header.r#type {
            PageType::DataPage if is_flat => header.data_page_header?.num_values,
            PageType::DataPageV2 => header.data_page_header_v2?.num_rows,
            // How many rows it has is in its levels.
            PageType::DataPage => return None,
            _ => continue,
        };
        end = end.saturating_add(u64::try_from(rows).ok()?);
        if row < end {
            return Some(number);
        }
        number += 1;
    }
    None
}
