//! `pages`: the pages of a column, and where the writer stopped using its dictionary.

use marquetry::Reader;
use marquetry::format::{Encoding, PageType};
use serde_json::{Value, json};

use crate::args::{Global, Pages};
use crate::failure::{Failure, Result};
use crate::input;
use crate::output::{bytes, count};
use crate::report::{Listing, Report, Section, with_keys};
use crate::walk;

/// What is printed, as it grows: of the three, the one that is shown.
struct Chunks {
    listing: Listing,
    sections: Vec<Section>,
    chunks: Vec<Value>,
    records: Vec<Value>,
}

/// Lists the pages of each column chunk that is asked for.
pub(crate) fn run(command: &Pages, global: &Global) -> Result<()> {
    let mut chunks = Chunks {
        listing: Listing::new(global),
        sections: Vec::new(),
        chunks: Vec::new(),
        records: Vec::new(),
    };
    for path in input::paths(&command.files.files)? {
        let reader = input::open(&path, global)?;
        let footer = reader.metadata();
        let leaves = input::leaves(&reader, &path, &command.columns.names())?;
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
                let chunk = ChunkPlace { path: &path, group, column: &column };
                chunks.add(&reader, &chunk, leaf, global).map_err(place)?;
            }
        }
    }
    let Chunks { sections, chunks, records, .. } = chunks;
    let json = with_keys([("chunks", Value::Array(chunks))], &Value::Null);
    Report { command: "pages", json, records, sections }.print(global)
}

/// Which column chunk is listed.
struct ChunkPlace<'a> {
    path: &'a str,
    group: usize,
    column: &'a str,
}

impl Chunks {
    /// Adds the pages of a column chunk.
    fn add(
        &mut self,
        reader: &Reader,
        place: &ChunkPlace<'_>,
        leaf: usize,
        global: &Global,
    ) -> Result<()> {
        let ChunkPlace { path, group, column } = place;
        let pages = walk::pages(reader, (*group, leaf), path, &self.listing)?;
        // Its key was found, so that they are all there.
        let meta = reader.metadata().column_chunk(*group, leaf)?.meta_data.unwrap_or_default();
        let index = reader.page_index(*group, leaf).ok();
        let order = index
            .and_then(|index| index.column_index)
            .map(|index| index.boundary_order.to_string());
        let fallback = fallback(&pages);
        let note = match (fallback, &order) {
            (Some(page), _) => format!(", dictionary given up at page {page}"),
            (None, Some(order)) => format!(", bounds {order}"),
            (None, None) => String::new(),
        };
        let title = format!("{path}: row group {group}, column {column}, {}{note}", meta.codec);
        if self.listing.is_table() {
            let mut section = Section::new(title, &HEADERS).with_expendable(&["crc", "raw"]);
            let mut data_pages = 0..;
            for page in &pages {
                let number = if page.is_data() { data_pages.next() } else { None };
                let row = row(page, number, global);
                self.listing.take_row(path, &row)?;
                section.rows.push(row);
            }
            self.sections.push(section);
            return Ok(());
        }
        let codec = meta.codec.to_string();
        if self.listing.is_csv() {
            let keys = [
                ("file", json!(path)),
                ("row_group", json!(group)),
                ("column", json!(column)),
                ("codec", json!(codec)),
            ];
            for page in &pages {
                let page = with_keys(keys.clone(), &record(page));
                self.listing.take_json(path, &page)?;
                self.records.push(page);
            }
            return Ok(());
        }
        let mut listed = Vec::new();
        for page in &pages {
            let page = record(page);
            self.listing.take_json(path, &page)?;
            listed.push(page);
        }
        let chunk = json!({
            "file": path,
            "row_group": group,
            "column": column,
            "codec": codec,
            "dictionary_fallback_page": fallback,
            "boundary_order": order,
        });
        self.listing.take_json(path, &chunk)?;
        self.chunks.push(chunk);
        if let Some(chunk) = self.chunks.last_mut().and_then(Value::as_object_mut) {
            chunk.insert("pages".to_owned(), Value::Array(listed));
        }
        Ok(())
    }
}

const HEADERS: [&str; 9] =
    ["page", "type", "encoding", ">values", ">rows", ">compressed", ">raw", "crc", ">offset"];

/// A page as a row of the table.
fn row(page: &walk::Page, number: Option<usize>, global: &Global) -> Vec<String> {
    let positive = |n: i32| u64::from(n.max(0).cast_unsigned());
    let counted = |n: Option<i32>| n.map_or_else(String::new, |n| count(positive(n), global));
    let header = &page.header;
    vec![
        number.map_or_else(String::new, |number| number.to_string()),
        header.r#type.to_string(),
        page.encoding().map_or_else(String::new, |encoding| encoding.to_string()),
        counted(page.values()),
        counted(page.rows()),
        bytes(positive(header.compressed_page_size), global),
        bytes(positive(header.uncompressed_page_size), global),
        if header.crc.is_some() { "yes" } else { "no" }.to_owned(),
        page.offset.to_string(),
    ]
}

/// A page as a record of JSON.
fn record(page: &walk::Page) -> Value {
    let header = &page.header;
    json!({
        "type": header.r#type.to_string(),
        "encoding": page.encoding().map(|encoding| encoding.to_string()),
        "values": page.values(),
        "rows": page.rows(),
        "offset": page.offset,
        "header_bytes": page.header_len,
        "compressed_bytes": header.compressed_page_size,
        "uncompressed_bytes": header.uncompressed_page_size,
        "crc": header.crc.map(i32::cast_unsigned),
    })
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
