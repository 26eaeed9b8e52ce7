//! `pages`: the pages of a column, and where its dictionary gave out.

use marquetry::format::{Encoding, PageType};
use serde_json::json;

use crate::args::{Global, Pages};
use crate::failure::{Failure, Result};
use crate::input;
use crate::output::{bytes, count};
use crate::report::{Report, Section, with_keys};
use crate::walk;

/// Lists the pages of each column chunk that is asked for.
pub(crate) fn run(command: &Pages, global: &Global) -> Result<()> {
    let mut sections = Vec::new();
    let mut chunks = Vec::new();
    let mut records = Vec::new();
    for path in input::paths(&command.files.files)? {
        let reader = input::open(&path, global)?;
        let footer = reader.metadata();
        let leaves = input::leaves(&reader, &path, &command.columns.columns)?;
        let groups = match command.row_group {
            Some(group) if group >= footer.row_groups() => {
                return Err(Failure::Usage(format!(
                    "{path} has {} row groups, and no row group {group}",
                    footer.row_groups()
                )));
            }
            Some(group) => group..group + 1,
            None => 0..footer.row_groups(),
        };
        for group in groups {
            for &leaf in &leaves {
                let column = footer.schema().leaf_node(leaf)?.path().dotted();
                let place = |e: Failure| match e {
                    Failure::File(e) => Failure::File(
                        e.at_file(path.as_str()).at_row_group(group).at_column(column.as_str()),
                    ),
                    other => other,
                };
                let chunk = footer.column_chunk(group, leaf)?;
                let meta = walk::readable(chunk).map_err(place)?;
                let pages = walk::pages(&reader, &meta).map_err(place)?;
                let index = reader.page_index(group, leaf).ok();
                let order = index
                    .as_ref()
                    .and_then(|index| index.column_index.as_ref())
                    .map(|index| index.boundary_order);
                let fallback = fallback(&pages);
                let mut rows = Vec::new();
                let mut listed = Vec::new();
                let mut data_page = 0usize;
                for page in &pages {
                    let header = &page.header;
                    let number = if page.is_data() {
                        data_page += 1;
                        (data_page - 1).to_string()
                    } else {
                        String::new()
                    };
                    rows.push(vec![
                        number,
                        header.r#type.to_string(),
                        page.encoding().map_or_else(String::new, |encoding| encoding.to_string()),
                        page.values().map_or_else(String::new, |n| {
                            count(u64::from(n.max(0).cast_unsigned()), global)
                        }),
                        page.rows().map_or_else(String::new, |n| {
                            count(u64::from(n.max(0).cast_unsigned()), global)
                        }),
                        bytes(
                            u64::from(header.compressed_page_size.max(0).cast_unsigned()),
                            global,
                        ),
                        bytes(
                            u64::from(header.uncompressed_page_size.max(0).cast_unsigned()),
                            global,
                        ),
                        if header.crc.is_some() { "yes" } else { "no" }.to_owned(),
                        page.offset.to_string(),
                    ]);
                    listed.push(json!({
                        "type": header.r#type.to_string(), "encoding": page.encoding().map(|e| e.to_string()),
                        "values": page.values(), "rows": page.rows(), "offset": page.offset, "header_bytes": page.header_len,
                        "compressed_bytes": header.compressed_page_size, "uncompressed_bytes": header.uncompressed_page_size,
                        "crc": header.crc.map(i32::cast_unsigned),
                    }));
                }
                let note = match (fallback, order) {
                    (Some(page), _) => format!(", dictionary given up at page {page}"),
                    (None, Some(order)) => format!(", bounds {order}"),
                    (None, None) => String::new(),
                };
                let title =
                    format!("{path}: row group {group}, column {column}, {}{note}", meta.codec);
                let headers = [
                    "page",
                    "type",
                    "encoding",
                    ">values",
                    ">rows",
                    ">compressed",
                    ">raw",
                    "crc",
                    ">offset",
                ];
                sections.push(Section::new(title, &headers).with(rows));
                let place = [
                    ("file", json!(path)),
                    ("row_group", json!(group)),
                    ("column", json!(column)),
                    ("codec", json!(meta.codec.to_string())),
                ];
                records.extend(listed.iter().map(|page| with_keys(place.clone(), page)));
                chunks.push(json!({
                    "file": path, "row_group": group, "column": column, "codec": meta.codec.to_string(),
                    "dictionary_fallback_page": fallback, "boundary_order": order.map(|order| order.to_string()), "pages": listed,
                }));
            }
        }
    }
    Report { command: "pages", json: json!({ "chunks": chunks }), records, sections }.print(global)
}

/// The first data page that does not use the dictionary, if one before it does.
pub(crate) fn fallback(pages: &[walk::Page]) -> Option<usize> {
    if !pages.iter().any(|page| page.header.r#type == PageType::DictionaryPage) {
        return None;
    }
    let coded = |page: &&walk::Page| {
        matches!(page.encoding(), Some(Encoding::RleDictionary | Encoding::PlainDictionary))
    };
    pages.iter().filter(|page| page.is_data()).position(|page| !coded(&page))
}
