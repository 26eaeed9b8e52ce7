//! What of VARIANT columns are columns of their own, by the metadata.

use marquetry::Reader;
use marquetry::format::{ConvertedType, LogicalType};
use marquetry::schema::Node;
use marquetry::variant::{VariantPath, VariantStep};
use serde_json::{Value, json};

use crate::args::Global;
use crate::failure::Result;
use crate::output::{count, share};

/// A VARIANT column.
pub(crate) struct ShreddedColumn {
    name: String,
    parts: Vec<ShreddedPart>,
}

/// A part of its values, with the columns that it is in.
struct ShreddedPart {
    path: String,
    /// The type of the shredded column; an object has none itself.
    type_name: String,
    /// Values in the shredded column.
    typed: Option<u64>,
    /// Values of other types, and those of fields that are not shredded.
    other: Option<u64>,
}

/// The VARIANT columns of a file.
pub(crate) fn columns(reader: &Reader) -> Result<Vec<ShreddedColumn>> {
    let schema = reader.metadata().schema();
    let mut columns = Vec::new();
    let mut nodes: Vec<Node<'_>> = schema.root().children().collect();
    nodes.reverse();
    while let Some(node) = nodes.pop() {
        if matches!(node.element().logical_type, Some(LogicalType::Variant(_))) {
            let mut column = ShreddedColumn { name: node.path().dotted(), parts: Vec::new() };
            // Deeper than values nest, nothing is reconstructed.
            column.add(reader, node, "$", marquetry::variant::MAX_DEPTH)?;
            columns.push(column);
        } else {
            let first = nodes.len();
            nodes.extend(node.children());
            nodes[first..].reverse();
        }
    }
    Ok(columns)
}

impl ShreddedColumn {
    /// Adds what is in `value` and `typed_value` of a group, and below.
    fn add(&mut self, reader: &Reader, pair: Node<'_>, path: &str, depth: usize) -> Result<()> {
        let child = |name: &str| pair.children().find(|child| child.name() == name);
        let Some(typed) = child("typed_value").filter(|_| depth > 0) else { return Ok(()) };
        let other = match child("value").filter(|value| value.is_leaf()) {
            Some(value) => present(reader, value)?,
            // A column that is not there holds nothing.
            None => Some(0),
        };
        let mut part =
            ShreddedPart { path: path.to_owned(), type_name: String::new(), typed: None, other };
        if typed.is_leaf() {
            part.type_name = match &typed.element().logical_type {
                Some(LogicalType::Decimal(of)) => {
                    format!("DECIMAL({}, {})", of.precision, of.scale)
                }
                Some(logical) => logical.to_string(),
                None => typed.physical()?.to_string(),
            };
            part.typed = present(reader, typed)?;
            self.parts.push(part);
            return Ok(());
        }
        let element = typed.element();
        let is_list = matches!(element.logical_type, Some(LogicalType::List))
            || element.converted_type == Some(ConvertedType::List);
        part.type_name = if is_list { "list" } else { "object" }.to_owned();
        self.parts.push(part);
        if is_list {
            let item = typed.children().next().and_then(|repeated| repeated.children().next());
            return item
                .map_or(Ok(()), |item| self.add(reader, item, &format!("{path}[*]"), depth - 1));
        }
        for field in typed.children() {
            let step = VariantPath::new([VariantStep::Field(field.name().to_owned())]).to_string();
            let path = format!("{path}{}", step.trim_start_matches('$'));
            self.add(reader, field, &path, depth - 1)?;
        }
        Ok(())
    }

    pub(crate) fn json(&self) -> Value {
        let parts = self.parts.iter().map(|part| {
            json!({
                "path": part.path, "type": part.type_name, "typed_values": part.typed,
                "other_values": part.other,
            })
        });
        json!({ "column": self.name, "shredded": parts.collect::<Vec<_>>() })
    }

    /// A line for each part, or one if there are none.
    pub(crate) fn cells(&self, global: &Global) -> Vec<Vec<String>> {
        if self.parts.is_empty() {
            let mut cells = vec![self.name.clone(), "not shredded".to_owned()];
            cells.resize(6, String::new());
            return vec![cells];
        }
        let lines = self.parts.iter().map(|part| {
            let number = |n: Option<u64>| n.map(|n| count(n, global)).unwrap_or_default();
            let all = part.typed.zip(part.other);
            let all = all.and_then(|(typed, other)| Some((typed, typed.checked_add(other)?)));
            vec![
                self.name.clone(),
                part.path.clone(),
                part.type_name.clone(),
                number(part.typed),
                number(part.other),
                all.map(|(typed, all)| share(typed, all)).unwrap_or_default(),
            ]
        });
        lines.collect()
    }
}

/// Values of a leaf that are not null, as the statistics say. None if they do not, or cannot be
/// right.
fn present(reader: &Reader, leaf: Node<'_>) -> Result<Option<u64>> {
    let footer = reader.metadata();
    let index = leaf.leaves().start;
    let mut sum = 0_u64;
    for group in 0..footer.row_groups() {
        let Some(meta) = footer.column_chunk(group, index)?.meta_data else { return Ok(None) };
        let nulls = meta.statistics.and_then(|statistics| statistics.null_count);
        let nulls = nulls.filter(|nulls| (0..=meta.num_values).contains(nulls));
        let present = nulls.and_then(|nulls| u64::try_from(meta.num_values - nulls).ok());
        let Some(next) = present.and_then(|present| sum.checked_add(present)) else {
            return Ok(None);
        };
        sum = next;
    }
    Ok(Some(sum))
}
