//! Facts about a file, as JSON: those of `marq info` and `marq schema`, under the same names.

use std::collections::BTreeMap;

use arrow_schema::{DataType, Field, Schema};
use marquetry::format::ColumnOrders;
use marquetry::{Metadata, Result};
use serde_json::{Value, json};

use crate::chunks::chunks;

/// Facts of the footer about the whole file.
///
/// # Errors
/// `Malformed` if the footer is broken in a part that was not read when the file was opened.
pub(crate) fn info(metadata: &Metadata) -> Result<Value> {
    let footer = metadata.footer();
    let head = footer.index().head();
    let mut rows = Vec::new();
    let (mut data, mut dictionaries, mut index, mut bloom) = (0u64, 0u64, 0u64, 0u64);
    let (mut uncompressed, mut encrypted) = (0u64, 0u64);
    let mut codecs: BTreeMap<String, u64> = BTreeMap::new();
    let mut encodings: BTreeMap<String, u64> = BTreeMap::new();
    for group in 0..footer.row_groups() {
        rows.push(footer.row_group_rows(group)?);
        for chunk in chunks(footer, group)? {
            let add = |sum: &mut u64, n: u64| *sum = sum.saturating_add(n);
            add(&mut data, chunk.bytes - chunk.dictionary_bytes);
            add(&mut dictionaries, chunk.dictionary_bytes);
            add(&mut index, chunk.index_bytes);
            add(&mut bloom, chunk.bloom_bytes);
            add(&mut uncompressed, chunk.uncompressed_bytes);
            encrypted += u64::from(chunk.is_encrypted);
            if let Some(codec) = chunk.codec {
                add(codecs.entry(codec.to_string()).or_default(), chunk.bytes);
            }
            if let Some(encoding) = chunk.encoding {
                *encodings.entry(encoding.to_string()).or_default() += 1;
            }
        }
    }
    // The length and the magic number follow the footer.
    let footer_bytes = footer.index().byte_len() as u64 + 8;
    let known = [data, dictionaries, index, bloom, footer_bytes];
    let known = known.into_iter().fold(0u64, u64::saturating_add);
    Ok(json!({
        "file_bytes": metadata.file_len(),
        "rows": footer.rows()?,
        "columns": footer.schema().leaves_len(),
        "row_groups": footer.row_groups(),
        "row_group_rows": rows,
        "created_by": head.created_by,
        "version": head.version,
        "bytes": {
            "data_pages": data,
            "dictionary_pages": dictionaries,
            "page_index": index,
            "bloom_filters": bloom,
            "footer": footer_bytes,
            "other": metadata.file_len().saturating_sub(known),
        },
        "uncompressed_bytes": uncompressed,
        "codecs": codecs,
        "encodings": encodings,
        "encrypted_chunks": encrypted,
        "column_orders": head.column_orders.as_ref().map(ColumnOrders::len),
        "key_values": footer.key_values().iter().map(|pair| &pair.key).collect::<Vec<_>>(),
    }))
}

/// The leaves of the file, and the fields of the batches.
///
/// # Errors
/// As the readers of the schema.
pub(crate) fn schema(metadata: &Metadata, arrow: &Schema) -> Result<Value> {
    let schema = metadata.footer().schema();
    let leaf = |i| {
        let node = schema.leaf_node(i)?;
        let element = node.element();
        Ok(json!({
            "path": node.path().names().iter().map(ToString::to_string).collect::<Vec<_>>(),
            "type": schema.leaf(i)?.type_text(),
            "physical": node.physical().ok().map(|physical| physical.to_string()),
            "logical": element.logical_type.as_ref().map(ToString::to_string),
            "converted": element.converted_type.as_ref().map(ToString::to_string),
            "repetition": element.repetition_type.as_ref().map(ToString::to_string),
            "field_id": element.field_id,
            "max_definition_level": node.max_def(),
            "max_repetition_level": node.max_rep(),
        }))
    };
    let leaves = (0..schema.leaves_len()).map(leaf).collect::<Result<Vec<_>>>()?;
    let fields: Vec<Value> = arrow.fields().iter().map(|of| field(of)).collect();
    Ok(json!({ "leaves": leaves, "arrow": fields }))
}

/// A field of Arrow, and those below it.
fn field(of: &Field) -> Value {
    let below: Vec<Value> = match of.data_type() {
        DataType::Struct(fields) => fields.iter().map(|of| field(of)).collect(),
        DataType::List(element)
        | DataType::LargeList(element)
        | DataType::ListView(element)
        | DataType::LargeListView(element)
        | DataType::FixedSizeList(element, _)
        | DataType::Map(element, _) => vec![field(element)],
        _ => Vec::new(),
    };
    let metadata: BTreeMap<String, String> =
        of.metadata().iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
    let mut out = json!({
        "name": of.name(),
        "type": of.data_type().to_string(),
        "nullable": of.is_nullable(),
        "metadata": metadata,
    });
    if !below.is_empty() {
        out["children"] = below.into();
    }
    out
}
