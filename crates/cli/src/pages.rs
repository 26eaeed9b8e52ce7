//! `pages` lists the pages of a column, and says where the writer stopped using its dictionary.

use marquetry::Reader;
use marquetry::format::{CompressionCodec, Encoding, PageType};
use serde::Serialize;

use crate::args::{Global, Pages};
use crate::failure::{Failure, Result};
use crate::input;
use crate::json::AsText;
use crate::report::{self, Column, Report, ReportMemory, Tables};
use crate::walk::{self, Page};

#[derive(Serialize)]
struct PagesReport {
    chunks: Vec<ChunkPages>,
}

/// The pages of a column chunk.
#[derive(Serialize)]
struct ChunkPages {
    #[serde(flatten)]
    place: ChunkPlace,
    dictionary_fallback_page: Option<usize>,
    boundary_order: Option<String>,
    pages: Vec<Page>,
}

/// The column chunk that is listed.
#[derive(Serialize)]
struct ChunkPlace {
    file: String,
    row_group: usize,
    column: String,
    codec: AsText<CompressionCodec>,
}

/// Lists the pages of each column chunk that is asked for.
pub(crate) fn run(command: &Pages, global: &Global) -> Result<()> {
    let (mut memory, mut chunks) = (ReportMemory::new(global), Vec::new());
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
                let chunk = ChunkPages::new(&reader, &path, (group, leaf), &column, &mut memory);
                chunks.push(chunk.map_err(|e| e.at_chunk(&path, group, &column))?);
            }
        }
    }
    report::print(&PagesReport { chunks }, global)
}

impl ChunkPages {
    fn new(
        reader: &Reader,
        path: &str,
        (row_group, leaf): (usize, usize),
        column: &str,
        memory: &mut ReportMemory,
    ) -> Result<Self> {
        let pages = walk::pages(reader, (row_group, leaf), path, memory)?;
        // Its key was found, so that they are all there.
        let meta = reader.metadata().column_chunk(row_group, leaf)?.meta_data.unwrap_or_default();
        let index = reader.page_index(row_group, leaf).ok().and_then(|index| index.column_index);
        let (file, column, codec) = (path.to_owned(), column.to_owned(), AsText(meta.codec));
        let chunk = Self {
            dictionary_fallback_page: fallback(&pages),
            boundary_order: index.map(|index| index.boundary_order.to_string()),
            place: ChunkPlace { file, row_group, column, codec },
            pages,
        };
        let texts = path.len() + chunk.place.column.len();
        memory.take(path, &chunk, texts + size_of_val(chunk.pages.as_slice()))?;
        Ok(chunk)
    }

    fn title(&self) -> String {
        let ChunkPlace { file, row_group, column, codec } = &self.place;
        let note = match (self.dictionary_fallback_page, &self.boundary_order) {
            (Some(page), _) => format!(", dictionary given up at page {page}"),
            (None, Some(order)) => format!(", bounds {order}"),
            (None, None) => String::new(),
        };
        format!("{file}: row group {row_group}, column {column}, {}{note}", codec.0)
    }
}

impl Report for PagesReport {
    const COMMAND: &'static str = "pages";

    fn lines(&self) -> impl Iterator<Item = impl Serialize> {
        #[derive(Serialize)]
        struct PageRecord<'a> {
            #[serde(flatten)]
            place: &'a ChunkPlace,
            #[serde(flatten)]
            page: &'a Page,
        }
        self.chunks.iter().flat_map(|ChunkPages { place, pages, .. }| {
            pages.iter().map(move |page| PageRecord { place, page })
        })
    }

    fn tables(&self, out: &mut Tables<'_>) -> Result<()> {
        let columns = [
            Column::text("page", |page: &Page| {
                page.number.map_or_else(String::new, |number| number.to_string())
            }),
            Column::text("type", |page| page.kind.0.to_string()),
            Column::text("encoding", |page| {
                page.encoding.as_ref().map_or_else(String::new, |encoding| encoding.0.to_string())
            }),
            Column::count("values", |page| page.values.map(positive)),
            Column::count("rows", |page| page.rows.map(positive)),
            Column::bytes("compressed", |page| Some(positive(page.compressed_bytes))),
            Column::bytes("raw", |page| Some(positive(page.uncompressed_bytes))),
            Column::text("crc", |page| if page.crc.is_some() { "yes" } else { "no" }.to_owned()),
            Column::number("offset", |page| page.offset.to_string()),
        ];
        for chunk in &self.chunks {
            out.show(&chunk.title(), &columns, &chunk.pages, &["crc", "raw"])?;
        }
        Ok(())
    }
}

fn positive(n: i32) -> u64 {
    u64::from(n.max(0).cast_unsigned())
}

/// The first data page that does not use the dictionary, if one before it does.
fn fallback(pages: &[Page]) -> Option<usize> {
    if !pages.iter().any(|page| page.kind.0 == PageType::DictionaryPage) {
        return None;
    }
    let is_coded = |page: &&Page| {
        let encoding = page.encoding.as_ref().map(|encoding| encoding.0);
        matches!(encoding, Some(Encoding::RleDictionary | Encoding::PlainDictionary))
    };
    let data = pages.iter().filter(|page| page.number.is_some());
    data.skip_while(|page| !is_coded(page)).find(|page| !is_coded(page))?.number
}
