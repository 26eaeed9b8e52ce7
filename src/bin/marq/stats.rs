//! `stats`: what the file says of its values.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, Date32Array, Decimal128Array, Time64MicrosecondArray, TimestampMicrosecondArray,
    TimestampMillisecondArray, TimestampNanosecondArray,
};
use marquetry::Reader;
use marquetry::format::{ColumnMetaData, LogicalType, TimeUnit};
use marquetry::schema::{Leaf, Physical};
use serde_json::{Value, json};

use crate::args::{By, Global, Stats};
use crate::cells;
use crate::failure::Result;
use crate::input;
use crate::output::{Report, Section, bytes, count, share};
use crate::walk;

/// Lists statistics by column, row group or page.
pub(crate) fn run(command: &Stats, global: &Global) -> Result<()> {
    let mut sections = Vec::new();
    let mut lines = Vec::new();
    for path in input::paths(&command.files.files)? {
        let reader = input::open(&path, global)?;
        let schema = reader.metadata().schema();
        let leaves = match &command.column {
            Some(name) => schema.node_named(name).map_err(|e| e.at_file(path.as_str()))?.leaves(),
            None => 0..schema.leaves_len(),
        };
        let mut section = Section::new(path.as_str(), headers(command.by));
        match command.by {
            By::Rowgroup => by_row_group(&reader, global, &mut section, &mut lines)?,
            By::Column | By::Page => {
                for leaf in leaves {
                    for group in 0..reader.metadata().row_groups() {
                        let chunk = reader.metadata().column_chunk(group, leaf)?;
                        let Some(meta) = chunk.meta_data else { continue };
                        let leaf_info = schema.leaf(leaf)?;
                        if command.by == By::Column {
                            chunk_line(&leaf_info, group, &meta, global, &mut section, &mut lines);
                        } else {
                            page_lines(
                                &reader,
                                &leaf_info,
                                group,
                                &meta,
                                global,
                                &mut section,
                                &mut lines,
                            )?;
                        }
                    }
                }
            }
        }
        sections.push(section);
    }
    let by = match command.by {
        By::Column => "column",
        By::Rowgroup => "rowgroup",
        By::Page => "page",
    };
    Report { command: "stats", json: json!({ "by": by, "stats": lines }), sections }.print(global)
}

fn headers(by: By) -> &'static [&'static str] {
    match by {
        By::Rowgroup => &[">row group", ">rows", ">compressed", ">raw", ">ratio", "sorted by"],
        By::Column => &[
            "column",
            ">row group",
            ">values",
            ">nulls",
            ">NaN",
            "min",
            "max",
            ">distinct",
            ">compressed",
            ">ratio",
        ],
        By::Page => {
            &["column", ">row group", ">page", ">values", ">nulls", "min", "max", ">compressed"]
        }
    }
}

fn by_row_group(
    reader: &Reader,
    global: &Global,
    section: &mut Section,
    lines: &mut Vec<Value>,
) -> Result<()> {
    let footer = reader.metadata();
    for (i, group) in footer.index().head().row_groups.iter().enumerate() {
        let rows = footer.row_group_rows(i)?;
        let raw = u64::try_from(group.total_byte_size).unwrap_or_default();
        let compressed = group.total_compressed_size.and_then(|n| u64::try_from(n).ok());
        let sorted: Vec<String> = group
            .sorting_columns
            .iter()
            .flatten()
            .map(|s| {
                let name = usize::try_from(s.column_idx)
                    .ok()
                    .and_then(|i| footer.schema().leaf_node(i).ok());
                let name =
                    name.map_or_else(|| s.column_idx.to_string(), |node| node.path().dotted());
                format!("{name}{}", if s.descending { " descending" } else { "" })
            })
            .collect();
        section.rows.push(vec![
            i.to_string(),
            count(rows, global),
            compressed.map_or_else(String::new, |n| bytes(n, global)),
            bytes(raw, global),
            compressed.map_or_else(String::new, |n| share(n, raw)),
            sorted.join(", "),
        ]);
        lines.push(json!({ "row_group": i, "rows": rows, "compressed_bytes": compressed, "uncompressed_bytes": raw, "sorted_by": sorted }));
    }
    Ok(())
}

fn chunk_line(
    leaf: &Leaf,
    group: usize,
    meta: &ColumnMetaData,
    global: &Global,
    section: &mut Section,
    lines: &mut Vec<Value>,
) {
    let statistics = meta.statistics.clone().unwrap_or_default();
    // Bounds of an annotation that was passed over mean nothing; the old ones only where the order is signed.
    let (min, max) = if !leaf.ordered {
        (None, None)
    } else if statistics.min_value.is_some() || statistics.max_value.is_some() {
        (statistics.min_value.as_deref(), statistics.max_value.as_deref())
    } else if leaf.physical.byte_width().is_some()
        && !matches!(leaf.physical, Physical::FixedLenByteArray(_))
    {
        (statistics.min.as_deref(), statistics.max.as_deref())
    } else {
        (None, None)
    };
    let (min, max) = (min.map(|b| bound(leaf, b)), max.map(|b| bound(leaf, b)));
    let number = |n: Option<i64>| n.and_then(|n| u64::try_from(n).ok());
    let shown = |n: Option<i64>| number(n).map_or_else(String::new, |n| count(n, global));
    let size = |n: i64| u64::try_from(n).unwrap_or_default();
    section.rows.push(vec![
        leaf.path.dotted(),
        group.to_string(),
        count(size(meta.num_values), global),
        shown(statistics.null_count),
        shown(statistics.nan_count),
        min.clone().unwrap_or_default(),
        max.clone().unwrap_or_default(),
        shown(statistics.distinct_count),
        bytes(size(meta.total_compressed_size), global),
        share(size(meta.total_compressed_size), size(meta.total_uncompressed_size)),
    ]);
    lines.push(json!({
        "column": leaf.path.dotted(), "row_group": group, "values": meta.num_values, "nulls": statistics.null_count,
        "nans": statistics.nan_count, "min": min, "max": max, "min_exact": statistics.is_min_value_exact,
        "max_exact": statistics.is_max_value_exact, "distinct": statistics.distinct_count,
        "compressed_bytes": meta.total_compressed_size, "uncompressed_bytes": meta.total_uncompressed_size,
    }));
}

fn page_lines(
    reader: &Reader,
    leaf: &Leaf,
    group: usize,
    meta: &ColumnMetaData,
    global: &Global,
    section: &mut Section,
    lines: &mut Vec<Value>,
) -> Result<()> {
    let index = reader.page_index(group, leaf.index).ok().and_then(|index| index.column_index);
    for (i, page) in walk::pages(reader, meta)?.iter().filter(|page| page.is_data()).enumerate() {
        let index = index.as_ref().filter(|index| index.null_pages.get(i) == Some(&false));
        let of = |list: Option<&Vec<Vec<u8>>>| {
            list.and_then(|list| list.get(i)).map(|bytes| bound(leaf, bytes))
        };
        let (min, max) =
            (of(index.map(|index| &index.min_values)), of(index.map(|index| &index.max_values)));
        let nulls = index
            .and_then(|index| index.null_counts.as_ref())
            .and_then(|nulls| nulls.get(i))
            .copied();
        let size = u64::from(page.header.compressed_page_size.max(0).cast_unsigned());
        section.rows.push(vec![
            leaf.path.dotted(),
            group.to_string(),
            i.to_string(),
            page.values().map_or_else(String::new, |n| n.to_string()),
            nulls.map_or_else(String::new, |n| n.to_string()),
            min.clone().unwrap_or_default(),
            max.clone().unwrap_or_default(),
            bytes(size, global),
        ]);
        lines.push(json!({
            "column": leaf.path.dotted(), "row_group": group, "page": i, "values": page.values(), "nulls": nulls,
            "min": min, "max": max, "compressed_bytes": size,
        }));
    }
    Ok(())
}

/// A bound as text, by the type of the leaf; bytes as hex where nothing better is known.
fn bound(leaf: &Leaf, bytes: &[u8]) -> String {
    let int = match *bytes {
        [a, b, c, d] => Some(i64::from(i32::from_le_bytes([a, b, c, d]))),
        [a, b, c, d, e, f, g, h] => Some(i64::from_le_bytes([a, b, c, d, e, f, g, h])),
        _ => None,
    };
    let by_arrow = |array: ArrayRef| cells::cell(&*array, 0, "").ok();
    let text = match (&leaf.logical, leaf.physical) {
        (Some(LogicalType::Decimal(decimal)), _) => {
            let value = match leaf.physical {
                Physical::Int32 | Physical::Int64 => int.map(i128::from),
                _ if bytes.len() <= 16 => {
                    let sign = if bytes.first().is_some_and(|b| b & 0x80 != 0) { 0xFF } else { 0 };
                    let mut wide = [sign; 16];
                    wide[16 - bytes.len()..].copy_from_slice(bytes);
                    Some(i128::from_be_bytes(wide))
                }
                _ => None,
            };
            let precision = u8::try_from(decimal.precision).unwrap_or(38).min(38);
            let scale = i8::try_from(decimal.scale).unwrap_or_default();
            value.and_then(|value| {
                let array = Decimal128Array::from(vec![value])
                    .with_precision_and_scale(precision, scale)
                    .ok()?;
                by_arrow(Arc::new(array))
            })
        }
        (Some(LogicalType::Date), Physical::Int32) => int
            .and_then(|days| i32::try_from(days).ok())
            .and_then(|days| by_arrow(Arc::new(Date32Array::from(vec![days])))),
        (Some(LogicalType::Timestamp(timestamp)), Physical::Int64) => {
            int.and_then(|value| match timestamp.unit {
                TimeUnit::Millis => {
                    by_arrow(Arc::new(TimestampMillisecondArray::from(vec![value])))
                }
                TimeUnit::Micros => {
                    by_arrow(Arc::new(TimestampMicrosecondArray::from(vec![value])))
                }
                TimeUnit::Nanos => by_arrow(Arc::new(TimestampNanosecondArray::from(vec![value]))),
                TimeUnit::Unrecognized(_) => None,
            })
        }
        (Some(LogicalType::Time(time)), _) if matches!(time.unit, TimeUnit::Micros) => {
            int.and_then(|value| by_arrow(Arc::new(Time64MicrosecondArray::from(vec![value]))))
        }
        (Some(LogicalType::Integer(of)), Physical::Int32) if !of.is_signed => int
            .and_then(|value| i32::try_from(value).ok())
            .map(|value| value.cast_unsigned().to_string()),
        (Some(LogicalType::Integer(of)), Physical::Int64) if !of.is_signed => {
            int.map(|value| value.cast_unsigned().to_string())
        }
        (_, Physical::Int32 | Physical::Int64) => int.map(|value| value.to_string()),
        (_, Physical::Boolean) => bytes.first().map(|byte| (*byte != 0).to_string()),
        (_, Physical::Float) => {
            <[u8; 4]>::try_from(bytes).ok().map(|bytes| f32::from_le_bytes(bytes).to_string())
        }
        (_, Physical::Double) => {
            <[u8; 8]>::try_from(bytes).ok().map(|bytes| f64::from_le_bytes(bytes).to_string())
        }
        (Some(LogicalType::String | LogicalType::Enum | LogicalType::Json), _) => {
            std::str::from_utf8(bytes).ok().map(str::to_owned)
        }
        _ => None,
    };
    text.unwrap_or_else(|| cells::hex(bytes).as_str().unwrap_or_default().to_owned())
}
