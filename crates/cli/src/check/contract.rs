//! A contract: what must hold of a file beyond the specification, in TOML.
//!
//! ```toml
//! [file]
//! columns = "exactly"             # no others than those below; "at-least" by default
//! rows = { min = 1 }
//! row_group_bytes = { max = "128MiB" }
//! codecs = ["ZSTD"]
//! sorted_by = ["id"]
//!
//! [columns.id]
//! type = "int64"
//! nullable = false
//!
//! [columns."address.city"]
//! type = "utf8"
//! bloom_filter = true
//! ```

use std::collections::BTreeMap;

use arrow_schema::{DataType, Field, Schema};
use marquetry::Reader;
use marquetry::format::{ColumnChunkRef, CompressionCodec};
use serde::Deserialize;

use super::record::FindingRecord;
use crate::args;
use crate::failure::{Failure, Result};
use crate::info;
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
        for group in 0..footer.row_groups() {
            let rows = footer.row_group_rows(group)?;
            check_number(&file.row_group_rows, "row-group-rows", rows, Some(group), push);
            let head = footer.index().head().row_groups.get(group);
            let bytes = head.map_or(0, |head| u64::try_from(head.total_byte_size).unwrap_or(0));
            check_number(&file.row_group_bytes, "row-group-bytes", bytes, Some(group), push);
            self.check_sorting(reader, group, push);
            for (leaf, chunk) in footer.column_chunks(group)?.enumerate() {
                let column = footer.schema().leaf_node(leaf)?.path().dotted();
                self.check_chunk(&chunk?, (group, &column), push);
            }
        }
        self.check_schema(&*reader.schema()?, push);
        Ok(())
    }

    fn check_sorting(&self, reader: &Reader, group: usize, push: &mut dyn FnMut(FindingRecord)) {
        let Some(wanted) = &self.file.sorted_by else { return };
        let head = reader.metadata().index().head().row_groups.get(group);
        let found = info::sorted_by(reader, head.and_then(|head| head.sorting_columns.as_deref()));
        if !found.starts_with(wanted) {
            let (wanted, found) = (wanted.join(", "), found.join(", "));
            push(broken("sorted-by", (Some(group), None), wanted, found));
        }
    }

    fn check_chunk(
        &self,
        chunk: &ColumnChunkRef<'_>,
        (group, column): (usize, &str),
        push: &mut dyn FnMut(FindingRecord),
    ) {
        let place = (Some(group), Some(column));
        if let Some(wanted) = self.file.page_index {
            let found = chunk.offset_index_offset.is_some();
            if wanted != found {
                push(broken("page-index", place, wanted, found));
            }
        }
        let terms = self.columns.get(column);
        let Some(meta) = &chunk.meta_data else { return };
        let codecs = terms.and_then(|terms| terms.codecs.as_ref()).or(self.file.codecs.as_ref());
        if let Some(codecs) = codecs.filter(|codecs| !names(codecs, meta.codec)) {
            push(broken("codec", place, codecs.join(" or "), meta.codec));
        }
        if let Some(wanted) = terms.and_then(|terms| terms.bloom_filter) {
            let found = meta.bloom_filter_offset.is_some();
            if wanted != found {
                push(broken("bloom-filter", place, wanted, found));
            }
        }
    }

    fn check_schema(&self, schema: &Schema, push: &mut dyn FnMut(FindingRecord)) {
        for (name, terms) in &self.columns {
            let place = (None, Some(&**name));
            let Some((field, nullable)) = field_at(schema, name) else {
                push(broken("column-missing", place, name, "no such column"));
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
            let inside = format!("{}.", field.name());
            let is_named = |name: &String| name == field.name() || name.starts_with(&inside);
            if !self.columns.keys().any(is_named) {
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

/// Whether a codec is one of those that are named.
fn names(codecs: &[String], found: CompressionCodec) -> bool {
    let found = found.to_string();
    codecs.iter().any(|codec| codec.eq_ignore_ascii_case(&found))
}

/// The field at a dotted path through structs, and whether it can be null: it, or one around it.
fn field_at<'a>(schema: &'a Schema, path: &str) -> Option<(&'a Field, bool)> {
    if let Ok(field) = schema.field_with_name(path) {
        return Some((field, field.is_nullable()));
    }
    let mut fields = schema.fields();
    let (mut rest, mut nullable) = (path, false);
    loop {
        let begins = |field: &&std::sync::Arc<Field>| {
            let after = rest.strip_prefix(field.name().as_str());
            after.is_some_and(|after| after.is_empty() || after.starts_with('.'))
        };
        let field = fields.iter().find(begins)?;
        nullable |= field.is_nullable();
        rest = rest.get(field.name().len()..)?.trim_start_matches('.');
        if rest.is_empty() {
            return Some((field, nullable));
        }
        match field.data_type() {
            DataType::Struct(inner) => fields = inner,
            _ => return None,
        }
    }
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
