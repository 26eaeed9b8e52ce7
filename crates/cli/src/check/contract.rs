//! A contract: what must hold of a file beyond the specification, in TOML.
//!
//! ```toml
//! [file]
//! columns = "exactly"             # no others than those below; "at-least" by default
//! rows = { min = 1 }
//! row_group_bytes = { max = "128MiB" }
//! codecs = ["ZSTD"]
//! sorted_by = ["id", "time:desc"]   # also with :nulls-first or :nulls-last
//!
//! [columns.id]
//! type = "int64"
//! nullable = false
//!
//! [columns."address.city"]
//! type = "utf8"
//! bloom_filter = true
//!
//! [columns.tags]                  # or "tags.list.element"
//! codecs = ["ZSTD"]
//! ```
//!
//! Columns are named like those that a read selects. Codecs and Bloom filters are those of all
//! leaves below; where several terms are of one leaf, the longest path decides.

use std::collections::BTreeMap;

use arrow_schema::{DataType, Field, FieldRef, Schema};
use marquetry::Reader;
use marquetry::format::{ColumnChunkRef, CompressionCodec, SortingColumn};
use marquetry::schema::Node;
use serde::Deserialize;

use super::record::FindingRecord;
use crate::args;
use crate::failure::{Failure, Result};
use crate::info;
use crate::sorting::NamedOrder;
use crate::types;

/// The terms that each file must keep.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Contract {
    #[serde(default)]
    file: FileTerms,
    #[serde(default)]
    columns: BTreeMap<String, ColumnTerms>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileTerms {
    #[serde(default)]
    columns: ColumnRule,
    rows: Option<Between>,
    bytes: Option<Between>,
    row_groups: Option<Between>,
    row_group_rows: Option<Between>,
    row_group_bytes: Option<Between>,
    codecs: Option<Vec<String>>,
    sorted_by: Option<Vec<String>>,
    page_index: Option<bool>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum ColumnRule {
    #[default]
    AtLeast,
    Exactly,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ColumnTerms {
    #[serde(rename = "type")]
    type_name: Option<String>,
    nullable: Option<bool>,
    codecs: Option<Vec<String>>,
    bloom_filter: Option<bool>,
}

/// Bounds of a number.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Between {
    min: Option<Amount>,
    max: Option<Amount>,
}

/// A number, or a size such as 128MiB.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
enum Amount {
    Number(u64),
    Size(String),
}

impl Contract {
    /// Reads a contract.
    pub(super) fn read(path: &str) -> Result<Self> {
        let text = std::fs::read_to_string(path);
        let text =
            text.map_err(|e| marquetry::Error::io("the contract cannot be read", e).at_file(path))?;
        let contract: Self =
            toml::from_str(&text).map_err(|e| Failure::content(path, None, e.message()))?;
        contract.check_itself().map_err(|text| Failure::content(path, None, text))?;
        Ok(contract)
    }

    /// Finds what is wrong with types and sizes before any file is read.
    fn check_itself(&self) -> Result<(), String> {
        for (name, column) in &self.columns {
            if let Some(text) = &column.type_name {
                types::data_type(text).map_err(|e| format!("column {name}: {e}"))?;
            }
        }
        for text in self.file.sorted_by.iter().flatten() {
            NamedOrder::new(text).map_err(|failure| format!("sorted_by: {}", failure.text()))?;
        }
        let FileTerms { rows, bytes, row_groups, row_group_rows, row_group_bytes, .. } = &self.file;
        let all = [rows, bytes, row_groups, row_group_rows, row_group_bytes];
        all.into_iter().flatten().try_for_each(|between| between.numbers().map(|_| ()))
    }

    /// Reports each term that the file does not keep.
    pub(super) fn check(&self, reader: &Reader, push: &mut dyn FnMut(FindingRecord)) -> Result<()> {
        let footer = reader.metadata();
        let file = &self.file;
        check_number(&file.rows, "rows", footer.rows()?, None, push);
        check_number(&file.bytes, "bytes", reader.file_len(), None, push);
        check_number(&file.row_groups, "row-groups", footer.row_groups() as u64, None, push);
        let columns = self.columns_of(reader, push);
        let terms = leaf_terms(&columns, footer.schema().leaves_len());
        for group in 0..footer.row_groups() {
            let rows = footer.row_group_rows(group)?;
            check_number(&file.row_group_rows, "row-group-rows", rows, Some(group), push);
            let head = footer.index().head().row_groups.get(group);
            let bytes = head.map_or(0, |head| u64::try_from(head.total_byte_size).unwrap_or(0));
            check_number(&file.row_group_bytes, "row-group-bytes", bytes, Some(group), push);
            self.check_sorting(reader, group, push);
            for (leaf, chunk) in footer.column_chunks(group)?.enumerate() {
                let column = footer.schema().leaf_node(leaf)?.path().dotted();
                let terms = terms.get(leaf).copied().unwrap_or_default();
                self.check_chunk(&chunk?, (group, &column), terms, push);
            }
        }
        self.check_schema(&*reader.schema()?, &columns, push);
        Ok(())
    }

    /// The columns that the contract names; those that the file does not have are reported.
    fn columns_of<'a>(
        &'a self,
        reader: &'a Reader,
        push: &mut dyn FnMut(FindingRecord),
    ) -> Vec<NamedColumn<'a>> {
        let schema = reader.metadata().schema();
        let mut columns = Vec::with_capacity(self.columns.len());
        for (name, terms) in &self.columns {
            match schema.node_named(name) {
                Ok(node) => columns.push(NamedColumn { name, terms, path: path_to(node) }),
                Err(error) => {
                    let place = (None, Some(&**name));
                    let found = broken("column-missing", place, name, "no such column");
                    push(FindingRecord { message: error.to_string(), ..found });
                }
            }
        }
        columns
    }

    fn check_sorting(&self, reader: &Reader, group: usize, push: &mut dyn FnMut(FindingRecord)) {
        let Some(wanted) = &self.file.sorted_by else { return };
        let head = reader.metadata().index().head().row_groups.get(group);
        let columns = head.and_then(|head| head.sorting_columns.as_deref()).unwrap_or_default();
        let found: Vec<(String, &SortingColumn)> =
            columns.iter().map(|column| (info::sorted_name(reader, column), column)).collect();
        let mut pairs = wanted.iter().zip(&found);
        if found.len() < wanted.len() || !pairs.all(|(text, found)| is_stated(text, found)) {
            let (wanted, found) = (wanted.join(", "), found.iter().map(order_text));
            let found = found.collect::<Vec<_>>().join(", ");
            push(broken("sorted-by", (Some(group), None), wanted, found));
        }
    }

    fn check_chunk(
        &self,
        chunk: &ColumnChunkRef<'_>,
        (group, column): (usize, &str),
        terms: LeafTerms<'_>,
        push: &mut dyn FnMut(FindingRecord),
    ) {
        let place = (Some(group), Some(column));
        if let Some(wanted) = self.file.page_index {
            let found = chunk.offset_index_offset.is_some();
            if wanted != found {
                push(broken("page-index", place, wanted, found));
            }
        }
        let Some(meta) = &chunk.meta_data else { return };
        let codecs = terms.codecs.or(self.file.codecs.as_deref());
        if let Some(codecs) = codecs.filter(|codecs| !names(codecs, meta.codec)) {
            push(broken("codec", place, codecs.join(" or "), meta.codec));
        }
        if let Some(wanted) = terms.bloom_filter {
            let found = meta.bloom_filter_offset.is_some();
            if wanted != found {
                push(broken("bloom-filter", place, wanted, found));
            }
        }
    }

    fn check_schema(
        &self,
        schema: &Schema,
        columns: &[NamedColumn<'_>],
        push: &mut dyn FnMut(FindingRecord),
    ) {
        for NamedColumn { name, terms, path } in columns {
            let place = (None, Some(*name));
            let Some((field, nullable)) = member(schema.fields(), path, false, 0) else {
                push(broken("column-missing", place, name, "no such column in its rows"));
                continue;
            };
            let wanted = terms.type_name.as_deref().and_then(|text| types::data_type(text).ok());
            if let Some(wanted) = wanted.filter(|wanted| wanted != field.data_type()) {
                push(broken("type", place, wanted, field.data_type()));
            }
            if let Some(wanted) = terms.nullable.filter(|wanted| *wanted != nullable) {
                push(broken("nullable", place, wanted, nullable));
            }
        }
        if self.file.columns == ColumnRule::AtLeast {
            return;
        }
        for field in schema.fields() {
            let is_named = |column: &NamedColumn<'_>| {
                column.path.first().is_some_and(|node| node.name() == field.name())
            };
            if !columns.iter().any(is_named) {
                let place = (None, Some(&**field.name()));
                push(broken("column-unexpected", place, "no such column", field.name()));
            }
        }
    }
}

impl Between {
    fn numbers(&self) -> Result<(Option<u64>, Option<u64>), String> {
        let number = |amount: &Option<Amount>| match amount {
            None => Ok(None),
            Some(Amount::Number(number)) => Ok(Some(*number)),
            Some(Amount::Size(text)) => args::size(text).map(Some),
        };
        Ok((number(&self.min)?, number(&self.max)?))
    }
}

fn check_number(
    between: &Option<Between>,
    what: &'static str,
    found: u64,
    group: Option<usize>,
    push: &mut dyn FnMut(FindingRecord),
) {
    let Some(Ok((min, max))) = between.as_ref().map(Between::numbers) else { return };
    if let Some(min) = min.filter(|min| found < *min) {
        push(broken(what, (group, None), format!("{min} or more"), found));
    }
    if let Some(max) = max.filter(|max| found > *max) {
        push(broken(what, (group, None), format!("at most {max}"), found));
    }
}

/// Whether a column of the contract is this one of the file, in its order; that of nulls counts
/// where the contract says it.
fn is_stated(wanted: &str, (name, found): &(String, &SortingColumn)) -> bool {
    // As `info` says it.
    let shown = if found.descending { format!("{name} descending") } else { name.clone() };
    let is_same = |order: NamedOrder<'_>| {
        order.name == name
            && order.descending == found.descending
            && order.nulls_first.is_none_or(|first| first == found.nulls_first)
    };
    wanted == shown || NamedOrder::new(wanted).is_ok_and(is_same)
}

/// The order of a column, as the flags have it.
fn order_text((name, found): &(String, &SortingColumn)) -> String {
    let order = if found.descending { ":desc" } else { "" };
    format!("{name}{order}{}", if found.nulls_first { ":nulls-first" } else { "" })
}

/// Whether a codec is one of those that are named.
fn names(codecs: &[String], found: CompressionCodec) -> bool {
    let found = found.to_string();
    codecs.iter().any(|codec| codec.eq_ignore_ascii_case(&found))
}

/// A column that the contract names.
struct NamedColumn<'a> {
    name: &'a str,
    terms: &'a ColumnTerms,
    /// The nodes from below the root to the column.
    path: Vec<Node<'a>>,
}

/// The nodes from below the root to this one.
fn path_to(node: Node<'_>) -> Vec<Node<'_>> {
    let mut path = Vec::new();
    let mut next = Some(node);
    while let Some((node, above)) = next.and_then(|node| Some((node, node.parent()?))) {
        path.push(node);
        next = Some(above);
    }
    path.reverse();
    path
}

/// The terms of the chunks of a leaf.
#[derive(Debug, Clone, Copy, Default)]
struct LeafTerms<'a> {
    codecs: Option<&'a [String]>,
    bloom_filter: Option<bool>,
}

/// The terms of each leaf, by its index.
fn leaf_terms<'a>(columns: &[NamedColumn<'a>], leaves: usize) -> Vec<LeafTerms<'a>> {
    let mut all = vec![LeafTerms::default(); leaves];
    let mut columns: Vec<&NamedColumn<'a>> = columns.iter().collect();
    columns.sort_by_key(|column| column.path.len());
    for NamedColumn { terms, path, .. } in columns {
        let below = path.last().map(|node| node.leaves()).unwrap_or_default();
        for leaf in all.get_mut(below).into_iter().flatten() {
            leaf.codecs = terms.codecs.as_deref().or(leaf.codecs);
            leaf.bloom_filter = terms.bloom_filter.or(leaf.bloom_filter);
        }
    }
    all
}

/// The field of the last node of a path, and whether it can be null: it, or one around it. The path
/// begins with a member of `fields`, inside this number of `lists`.
fn member<'a>(
    fields: &'a [FieldRef],
    path: &[Node<'_>],
    nullable: bool,
    lists: u16,
) -> Option<(&'a Field, bool)> {
    let name = path.first()?.name();
    inside(fields.iter().find(|field| field.name() == name)?, path, nullable, lists)
}

/// The same for a path that begins with the node of `field`.
fn inside<'a>(
    field: &'a Field,
    path: &[Node<'_>],
    nullable: bool,
    lists: u16,
) -> Option<(&'a Field, bool)> {
    let (node, below) = path.split_first()?;
    let nullable = nullable || field.is_nullable();
    if below.is_empty() {
        return Some((field, nullable));
    }
    match field.data_type() {
        DataType::Struct(fields) => member(fields, below, nullable, lists),
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::ListView(item)
        | DataType::LargeListView(item)
        | DataType::FixedSizeList(item, _) => {
            let between = match is_element(item, below) {
                // Repeated without a group around it.
                _ if node.max_rep() > lists => 0,
                true => 1,
                false => 2,
            };
            inside(item, path.get(between..)?, nullable, lists + 1)
        }
        DataType::Map(entries, _) => match (below, entries.data_type()) {
            ([pair, part, ..], DataType::Struct(fields)) => {
                let position = pair.children().position(|node| node == *part)?;
                inside(fields.get(position)?, below.get(1..)?, nullable, lists + 1)
            }
            _ => Some((entries, nullable)),
        },
        _ => None,
    }
}

/// Whether the repeated node of a list, the first below it, is its element: else its child is.
fn is_element(item: &Field, below: &[Node<'_>]) -> bool {
    let [repeated, child, ..] = below else { return true };
    let is_child = match item.data_type() {
        DataType::Struct(fields) => child
            .children()
            .next()
            .is_some_and(|node| fields.first().is_some_and(|field| field.name() == node.name())),
        _ => true,
    };
    repeated.children().nth(1).is_some() || !is_child
}

/// The finding that a contract could not be checked.
pub(super) fn unchecked(why: &str) -> FindingRecord {
    let found = broken("unchecked", (None, None), "", "");
    let message = format!("the contract was not checked, because the file cannot be read: {why}");
    FindingRecord { message, stated: None, found: None, ..found }
}

fn broken(
    what: &'static str,
    (row_group, column): (Option<usize>, Option<&str>),
    wanted: impl ToString,
    found: impl ToString,
) -> FindingRecord {
    let (wanted, found) = (wanted.to_string(), found.to_string());
    FindingRecord {
        severity: "error",
        code: format!("contract-{what}").into(),
        row_group,
        column: column.map(str::to_owned),
        page: None,
        offset: None,
        message: format!("the contract wants {wanted}, and the file has {found}"),
        stated: Some(wanted),
        found: Some(found),
    }
}
