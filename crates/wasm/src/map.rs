//! A picture of the layout: row groups below each other, as high as their rows; columns beside each
//! other, as wide as their bytes; colours for encodings.
//!
//! Everything is an attribute, so that a page needs no styles for it. Text of the file is escaped.

use std::fmt::Write as _;

use marquetry::format::Encoding;
use marquetry::{Metadata, Result};

use crate::chunks::{Chunk, chunks};
use crate::text::xml;

/// Draws the file; `name` is the title.
///
/// # Errors
/// `Malformed` if the footer is broken.
pub(crate) fn svg(metadata: &Metadata, name: &str) -> Result<String> {
    Ok(Grid::new(metadata)?.draw(name, metadata.file_len()))
}

/// The column chunks; neighbours are summed up where there are many.
struct Grid {
    /// Names of columns.
    columns: Vec<String>,
    /// Rows of the row groups, and their cells.
    rows: Vec<(String, u64, Vec<Cell>)>,
}

/// One or more column chunks, as they are shown.
#[derive(Debug, Clone, Default)]
struct Cell {
    bytes: u64,
    uncompressed: u64,
    values: u64,
    /// As far as they are known.
    nulls: u64,
    codec: Option<String>,
    encoding: Option<Encoding>,
    /// Bytes of the chunk that has the codec and the encoding.
    largest: u64,
}

impl Cell {
    fn add(&mut self, chunk: &Chunk) {
        self.bytes = self.bytes.saturating_add(chunk.bytes);
        self.uncompressed = self.uncompressed.saturating_add(chunk.uncompressed_bytes);
        self.values = self.values.saturating_add(chunk.values);
        self.nulls = self.nulls.saturating_add(chunk.nulls.unwrap_or_default());
        if self.encoding.is_none() || chunk.bytes > self.largest {
            self.codec = chunk.codec.map(|codec| codec.to_string());
            self.encoding = chunk.encoding;
            self.largest = chunk.bytes;
        }
    }
}

impl Grid {
    fn new(metadata: &Metadata) -> Result<Self> {
        let footer = metadata.footer();
        let (leaves, groups) = (footer.schema().leaves_len(), footer.row_groups());
        let leaves_each = leaves.div_ceil(MAX_COLUMNS).max(1);
        let groups_each = groups.div_ceil(MAX_ROWS).max(1);
        let columns = (0..leaves).step_by(leaves_each).map(|first| {
            let name = footer.schema().leaf_node(first)?.path().dotted();
            let more = leaves_each.min(leaves - first) - 1;
            Ok(if more == 0 { name } else { format!("{name} and {more} more") })
        });
        let columns = columns.collect::<Result<Vec<_>>>()?;
        let mut rows = Vec::new();
        for first in (0..groups).step_by(groups_each) {
            let of = first..groups.min(first + groups_each);
            let mut cells = vec![Cell::default(); columns.len()];
            let mut sum = 0u64;
            for group in of.clone() {
                sum = sum.saturating_add(footer.row_group_rows(group)?);
                for (leaf, chunk) in chunks(footer, group)?.iter().enumerate() {
                    if let Some(cell) = cells.get_mut(leaf / leaves_each) {
                        cell.add(chunk);
                    }
                }
            }
            let name = match of.len() {
                1 => format!("row group {first}"),
                _ => format!("row groups {first} to {}", of.end - 1),
            };
            rows.push((name, sum, cells));
        }
        Ok(Self { columns, rows })
    }

    fn draw(&self, name: &str, file_len: u64) -> String {
        let bytes_of = |i: usize| {
            let of_rows = self.rows.iter().filter_map(|(_, _, cells)| cells.get(i));
            of_rows.fold(0u64, |sum, cell| sum.saturating_add(cell.bytes))
        };
        let bytes: Vec<u64> = (0..self.columns.len()).map(bytes_of).collect();
        let rows: Vec<u64> = self.rows.iter().map(|(_, rows, _)| *rows).collect();
        let widths = shares(&bytes, WIDTH);
        let heights = shares(&rows, real(rows.len() as u64 * 28).clamp(120.0, 480.0));
        let (legend, top) = self.legend();
        let height = top + heights.iter().sum::<f64>();
        let mut out = String::new();
        let _ = write!(
            out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height:.1}\" \
             role=\"img\" font-family=\"sans-serif\" font-size=\"11\">\n<title>{}</title>\n{legend}",
            xml(&format!("{name}: {file_len} bytes"))
        );
        let mut y = top;
        for ((row_name, rows, cells), height) in self.rows.iter().zip(heights) {
            let mut x = 0.0;
            for ((cell, column), width) in cells.iter().zip(&self.columns).zip(&widths) {
                let title = cell.title(column, row_name, *rows);
                let color = color(cell.encoding);
                let _ = writeln!(
                    out,
                    "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" \
                     fill=\"{color}\" stroke=\"#ffffff\" stroke-width=\"0.5\">\
                     <title>{}</title></rect>",
                    xml(&title)
                );
                x += width;
            }
            y += height;
        }
        let mut x = 0.0;
        for (column, width) in self.columns.iter().zip(&widths) {
            self.label(&mut out, column, x, *width, top);
            x += width;
        }
        out.push_str("</svg>\n");
        out
    }

    /// The name of a column in its first cell, if there is room.
    fn label(&self, out: &mut String, column: &str, x: f64, width: f64, top: f64) {
        // Letters are about this wide.
        if self.rows.is_empty() || real(column.chars().count() as u64) * 7.0 > width - 6.0 {
            return;
        }
        let (x, y) = (x + 4.0, top + 14.0);
        let _ = writeln!(
            out,
            "<text x=\"{x:.1}\" y=\"{y:.1}\" fill=\"#000000\" pointer-events=\"none\">{}</text>",
            xml(column)
        );
    }

    /// The encodings that are there, and where their lines end.
    fn legend(&self) -> (String, f64) {
        let cells = self.rows.iter().flat_map(|(_, _, cells)| cells);
        let mut found: Vec<Option<Encoding>> = Vec::new();
        for cell in cells {
            if !found.contains(&cell.encoding) && found.len() < MAX_LEGEND {
                found.push(cell.encoding);
            }
        }
        found.sort_by_key(|encoding| encoding_name(*encoding));
        let (mut out, mut x, mut y) = (String::new(), 0.0, 4.0);
        for encoding in found {
            let name = encoding_name(encoding);
            let width = real(name.chars().count() as u64) * 8.0 + 30.0;
            if x + width > WIDTH && x > 0.0 {
                (x, y) = (0.0, y + 18.0);
            }
            let _ = writeln!(
                out,
                "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"12\" height=\"10\" fill=\"{}\"/>\
                 <text x=\"{:.1}\" y=\"{:.1}\" fill=\"currentColor\">{}</text>",
                color(encoding),
                x + 16.0,
                y + 9.0,
                xml(&name)
            );
            x += width;
        }
        (out, y + 20.0)
    }
}

impl Cell {
    fn title(&self, column: &str, row_name: &str, rows: u64) -> String {
        let codec = self.codec.as_deref().unwrap_or("unknown codec");
        format!(
            "{column}, {row_name} of {rows} rows: {} bytes of {} uncompressed, {codec}, {}, \
             {} values, {} nulls",
            self.bytes,
            self.uncompressed,
            encoding_name(self.encoding),
            self.values,
            self.nulls
        )
    }
}

fn encoding_name(encoding: Option<Encoding>) -> String {
    encoding.map_or_else(|| "unknown".to_owned(), |encoding| encoding.to_string())
}

/// Colours of Okabe and Ito, which people with any kind of colour blindness tell apart.
fn color(encoding: Option<Encoding>) -> &'static str {
    match encoding {
        Some(Encoding::Plain) => "#56b4e9",
        Some(Encoding::RleDictionary | Encoding::PlainDictionary) => "#e69f00",
        Some(Encoding::Rle | Encoding::BitPacked) => "#f0e442",
        Some(Encoding::DeltaBinaryPacked) => "#009e73",
        Some(Encoding::DeltaLengthByteArray) => "#cc79a7",
        Some(Encoding::DeltaByteArray) => "#d55e00",
        Some(Encoding::ByteStreamSplit) => "#6f8fd8",
        _ => "#9a9a9a",
    }
}

/// Divides a length: each has a least share, and of what is left as much as it weighs.
fn shares(weights: &[u64], length: f64) -> Vec<f64> {
    let n = real(weights.len() as u64).max(1.0);
    let min = 6.0f64.min(length / n);
    let left = length - min * n;
    let all: f64 = weights.iter().map(|weight| real(*weight)).sum();
    let share = |weight: &u64| if all > 0.0 { left * real(*weight) / all } else { left / n };
    weights.iter().map(|weight| min + share(weight)).collect()
}

#[expect(clippy::cast_precision_loss, reason = "for a picture")]
fn real(n: u64) -> f64 {
    n as f64
}

const WIDTH: f64 = 960.0;
/// Columns and rows of the picture.
const MAX_COLUMNS: usize = 80;
const MAX_ROWS: usize = 40;
/// Encodings that are named; a file may state any number of unknown ones.
const MAX_LEGEND: usize = 12;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_escaped_and_every_chunk_has_its_cell() {
        let cell = Cell { bytes: 10, encoding: Some(Encoding::Plain), ..Cell::default() };
        let grid = Grid {
            columns: vec!["<script>".to_owned(), "b".to_owned()],
            rows: vec![
                ("row group 0".to_owned(), 5, vec![cell.clone(), cell.clone()]),
                ("row group 1".to_owned(), 5, vec![cell.clone(), cell]),
            ],
        };
        let drawn = grid.draw("a\"</title><script>", 40);
        assert!(!drawn.contains("<script"), "{drawn}");
        assert_eq!(drawn.matches("&lt;script&gt;").count(), 4, "{drawn}");
        // One in the legend.
        assert_eq!(drawn.matches("<rect").count(), 5, "{drawn}");
    }

    #[test]
    fn shares_fill_the_length() {
        for weights in [&[0, 0][..], &[1, u64::MAX], &[3; 200], &[7]] {
            let sum: f64 = shares(weights, WIDTH).iter().sum();
            assert!((sum - WIDTH).abs() < 1e-6, "{weights:?}: {sum}");
        }
        assert!(shares(&[], WIDTH).is_empty());
    }
}
