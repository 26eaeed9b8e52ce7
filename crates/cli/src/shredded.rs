//! Says which parts of VARIANT columns are columns of their own, by the metadata.

use marquetry::Reader;
use marquetry::format::{ConvertedType, LogicalType};
use marquetry::schema::Node;
use marquetry::variant::{VariantPath, VariantStep};
use serde::Serialize;

use crate::failure::Result;
use crate::output::share;
use crate::report::{Column, Tables};

/// A VARIANT column.
#[derive(Serialize)]
pub(crate) struct ShreddedColumn {
    column: String,
    shredded: Vec<ShreddedPart>,
}

/// A part of its values, with the columns that it is in.
#[derive(Serialize)]
struct ShreddedPart {
    path: String,
    /// The type of the shredded column; an object has none itself.
    #[serde(rename = "type")]
    type_name: String,
    /// Values in the shredded column.
    typed_values: Option<u64>,
    /// Values of other types, and those of fields that are not shredded.
    other_values: Option<u64>,
}

/// The VARIANT columns of a file.
pub(crate) fn columns(reader: &Reader) -> Result<Vec<ShreddedColumn>> {
    let schema = reader.metadata().schema();
    let mut columns = Vec::new();
    let mut nodes: Vec<Node<'_>> = schema.root().children().collect();
    nodes.reverse();
    while let Some(node) = nodes.pop() {
        if matches!(node.element().logical_type, Some(LogicalType::Variant(_))) {
            let mut column = ShreddedColumn { column: node.path().dotted(), shredded: Vec::new() };
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
    /// Adds the `value` and `typed_value` of a group, and those below.
    fn add(&mut self, reader: &Reader, pair: Node<'_>, path: &str, depth: usize) -> Result<()> {
        let child = |name: &str| pair.children().find(|child| child.name() == name);
        let Some(typed) = child("typed_value").filter(|_| depth > 0) else { return Ok(()) };
        let other = match child("value").filter(|value| value.is_leaf()) {
            Some(value) => present(reader, value)?,
            // A column that is not there holds nothing.
            None => Some(0),
        };
        let mut part = ShreddedPart {
            path: path.to_owned(),
            type_name: String::new(),
            typed_values: None,
            other_values: other,
        };
        if typed.is_leaf() {
            part.type_name = match &typed.element().logical_type {
                Some(LogicalType::Decimal(of)) => {
                    format!("DECIMAL({}, {})", of.precision, of.scale)
                }
                Some(logical) => logical.to_string(),
                None => typed.physical()?.to_string(),
            };
            part.typed_values = present(reader, typed)?;
            self.shredded.push(part);
            return Ok(());
        }
        let element = typed.element();
        let is_list = matches!(element.logical_type, Some(LogicalType::List))
            || element.converted_type == Some(ConvertedType::List);
        part.type_name = if is_list { "list" } else { "object" }.to_owned();
        self.shredded.push(part);
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
}

impl ShreddedPart {
    /// The share of the values that are in the shredded column.
    fn typed_share(&self) -> Option<String> {
        let (typed, other) = self.typed_values.zip(self.other_values)?;
        Some(share(typed, typed.checked_add(other)?))
    }
}

/// Prints the VARIANT columns, if there are some: a line for each part, or one if there are none.
pub(crate) fn show(columns: &[ShreddedColumn], out: &mut Tables<'_>) -> Result<()> {
    if columns.is_empty() {
        return Ok(());
    }
    type Line<'a> = (&'a str, Option<&'a ShreddedPart>);
    let lines = columns.iter().flat_map(|ShreddedColumn { column, shredded }| -> Vec<Line<'_>> {
        match shredded.as_slice() {
            [] => vec![(column, None)],
            parts => parts.iter().map(|part| (column.as_str(), Some(part))).collect(),
        }
    });
    let shown = [
        Column::text("variants", |(column, _): &Line<'_>| (*column).to_owned()),
        Column::text("path", |(_, part)| {
            part.map_or_else(|| "not shredded".to_owned(), |part| part.path.clone())
        }),
        Column::text("type", |(_, part)| part.map_or_else(String::new, |of| of.type_name.clone())),
        Column::count("typed values", |(_, part)| part.and_then(|part| part.typed_values)),
        Column::count("other values", |(_, part)| part.and_then(|part| part.other_values)),
        Column::number("typed", |(_, part)| {
            part.and_then(ShreddedPart::typed_share).unwrap_or_default()
        }),
    ];
    out.show("", &shown, &lines.collect::<Vec<_>>(), &[])
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
