//! `map` shows the layout of a file: a picture, a page, or the facts that they are made of.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use marquetry::Error;
use serde::Serialize;
use serde::ser::{Error as _, SerializeSeq};

use crate::args::{ColorBy, Format, Global, Map, Picture, Section};
use crate::failure::{Failure, Result, after_printing};
use crate::layout::{BytesUse, Detail, FileLayout, Grid, GridCell, Overlay, Region, Strip, pieces};
use crate::output::{self, Sink, share};
use crate::picture::{self, HtmlPage, MapPicture};
use crate::report::{self, Column, Report, Tables};
use crate::table::Style;

/// Shows the map in the form that is asked for.
pub(crate) fn run(command: &Map, global: &Global) -> Result<()> {
    let form = form(command, global)?;
    let layout = FileLayout::open(&command.source.file, global)?;
    let overlay = overlay(&layout, command.overlaid.overlay.as_deref(), global)?;
    match form {
        None => {
            let report = MapReport::new(&layout, overlay.as_ref(), global)?;
            let printed = report::print(&report, global);
            // What made the output end early comes before that it did.
            if let Some(error) = report.regions.failed.take() {
                return Err(error.at_file(layout.path.as_str()).into());
            }
            return after_printing(printed, layout.end(global));
        }
        Some(Picture::Term) => {
            let mut out = Sink::open(global)?;
            let style = Style::new(Format::Table, global, &out);
            let overlay = overlay.as_ref();
            picture::print(&mut out, style, &layout, overlay, command.color_by, global)?;
            out.close()?;
        }
        Some(form) => {
            let overlay = overlay.as_ref();
            let text = drawn(form, &layout, overlay, command.color_by, global)?;
            write(&text, global)?;
        }
    }
    layout.end(global)
}

/// The picture that is asked for, or none for facts.
fn form(command: &Map, global: &Global) -> Result<Option<Picture>> {
    if command.to.is_some() && global.format.is_some() {
        return Err(Failure::Usage("--to is for pictures, -f for facts: give one".to_owned()));
    }
    let by_name = global.output.as_deref().and_then(by_extension);
    let at_terminal = output::is_at_terminal(global) && !global.wide && !global.vertical;
    Ok(match (command.to, global.format) {
        (Some(to), _) => Some(to),
        (None, Some(_)) => None,
        (None, None) => by_name.or_else(|| at_terminal.then_some(Picture::Term)),
    })
}

fn by_extension(path: &Path) -> Option<Picture> {
    match crate::packed::ending(path)?.as_str() {
        "svg" => Some(Picture::Svg),
        "html" | "htm" => Some(Picture::Html),
        _ => None,
    }
}

/// The rows that a condition prunes; of a file without a footer nothing is known.
pub(crate) fn overlay(
    layout: &FileLayout,
    condition: Option<&str>,
    global: &Global,
) -> Result<Option<Overlay>> {
    let condition = condition.filter(|_| layout.footer().is_some());
    condition.map(|condition| Overlay::new(layout, condition, global)).transpose()
}

/// Writes a text to the output.
pub(crate) fn write(text: &str, global: &Global) -> Result<()> {
    let mut out = Sink::open(global)?;
    out.write_all(text.as_bytes())?;
    out.close()?;
    Ok(())
}

fn drawn(
    form: Picture,
    layout: &FileLayout,
    overlay: Option<&Overlay>,
    color_by: ColorBy,
    global: &Global,
) -> Result<String> {
    let grid = Grid::new(layout, picture::GRID, global)?;
    let strip = Strip::new(layout, picture::STRIP_LINES, picture::STRIP_WIDTH)?;
    let map = MapPicture { layout, grid: &grid, strip: &strip, overlay, color_by, global };
    Ok(match form {
        Picture::Svg => picture::svg(&map),
        _ => picture::page(&HtmlPage {
            picture: map,
            sections: vec![Section::Map, Section::Strip],
            summary: Vec::new(),
            timelines: &[],
            parts: None,
            doctor: None,
        }),
    })
}

#[derive(Serialize)]
struct MapReport<'a> {
    file: &'a str,
    file_bytes: u64,
    /// Why the footer cannot be read, if it cannot.
    problem: Option<String>,
    /// Dotted paths of the leaves.
    columns: Vec<String>,
    /// Rows of each row group.
    row_groups: Vec<u64>,
    overlay: Option<OverlayRecord<'a>>,
    chunks: Chunks<'a>,
    regions: Regions<'a>,
    #[serde(skip)]
    grid: Grid,
}

#[derive(Serialize)]
struct OverlayRecord<'a> {
    condition: &'a str,
    rows_left: u64,
    row_groups_pruned: usize,
}

/// The column chunks, made while they are written.
struct Chunks<'a>(&'a FileLayout);

impl Serialize for Chunks<'_> {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(self.0.chunks())
    }
}

/// The parts of the file in their order, made while they are written.
struct Regions<'a> {
    layout: &'a FileLayout,
    failed: RefCell<Option<Error>>,
}

impl Serialize for Regions<'_> {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let (mut list, mut at, mut end) = (to.serialize_seq(None)?, 0u64, Ok(()));
        let walked = pieces(&self.layout.inspector, Detail::Chunks, |piece| {
            if end.is_ok() {
                end = list.serialize_element(&Region::new(at, piece));
            }
            at = at.saturating_add(piece.bytes);
        });
        end?;
        if let Err(error) = walked {
            *self.failed.borrow_mut() = Some(error);
            return Err(S::Error::custom("the file cannot be read"));
        }
        list.end()
    }
}

impl<'a> MapReport<'a> {
    fn new(layout: &'a FileLayout, overlay: Option<&'a Overlay>, global: &Global) -> Result<Self> {
        Ok(Self {
            file: &layout.path,
            file_bytes: layout.file_bytes(),
            problem: layout.problem(),
            columns: (0..layout.columns()).map(|leaf| layout.column(leaf)).collect(),
            row_groups: layout.rows(),
            overlay: overlay.map(|of| OverlayRecord {
                condition: &of.condition,
                rows_left: of.rows_left,
                row_groups_pruned: of.row_groups_pruned,
            }),
            chunks: Chunks(layout),
            regions: Regions { layout, failed: RefCell::new(None) },
            grid: Grid::new(layout, picture::GRID, global)?,
        })
    }
}

/// A line of the table of columns or of row groups.
struct MapLine {
    name: String,
    rows: Option<u64>,
    cell: GridCell,
    share: String,
}

impl Report for MapReport<'_> {
    const COMMAND: &'static str = "map";

    fn lines(&self) -> impl Iterator<Item = impl Serialize> {
        self.chunks.0.chunks()
    }

    fn tables(&self, out: &mut Tables<'_>) -> Result<()> {
        if self.problem.is_some() {
            return self.parts(out);
        }
        let line = |name: &str, rows, cell: GridCell| MapLine {
            name: name.to_owned(),
            rows,
            share: share(cell.bytes, self.file_bytes),
            cell,
        };
        let columns = self.grid.columns.iter().enumerate();
        let columns: Vec<MapLine> =
            columns.map(|(i, of)| line(&of.name, None, self.grid.column(i))).collect();
        let rows = self.grid.rows.iter().enumerate();
        let rows: Vec<MapLine> = rows
            .map(|(i, of)| line(&picture::row_name(of), Some(of.rows), self.grid.row_sum(i)))
            .collect();
        let shown = [
            Column::text("column", |of: &MapLine| of.name.clone()),
            Column::count("rows", |of| of.rows),
            Column::bytes("bytes", |of| Some(of.cell.bytes)),
            Column::number("share", |of| of.share.clone()),
            Column::bytes("raw", |of| Some(of.cell.uncompressed_bytes)),
            Column::text("codec", |of| first(&of.cell.codecs)),
            Column::text("encoding", |of| first(&of.cell.encodings)),
            Column::number("nulls", |of| match of.cell.values_with_nulls {
                0 => String::new(),
                values => share(of.cell.nulls, values),
            }),
            Column::count("dictionaries given up", |of| {
                Some(of.cell.dictionary_fallbacks as u64).filter(|n| *n > 0)
            }),
            Column::count("bloom filters", |of| {
                Some(of.cell.bloom_filters as u64).filter(|n| *n > 0)
            }),
            Column::count("page indexes", |of| {
                Some(of.cell.page_indexes as u64).filter(|n| *n > 0)
            }),
        ];
        let expendable =
            ["page indexes", "bloom filters", "dictionaries given up", "raw", "encoding"];
        out.show(&format!("{}: columns", self.file), &shown, &columns, &expendable)?;
        let [_, others @ ..] = shown;
        let name = Column::text("row groups", |of: &MapLine| of.name.clone());
        let shown: Vec<Column<'_, MapLine>> = std::iter::once(name).chain(others).collect();
        out.show(&format!("{}: row groups", self.file), &shown, &rows, &expendable)
    }
}

impl MapReport<'_> {
    /// The bytes of a file whose columns are not known.
    fn parts(&self, out: &mut Tables<'_>) -> Result<()> {
        let mut sums: BTreeMap<BytesUse, u64> = BTreeMap::new();
        pieces(&self.regions.layout.inspector, Detail::Chunks, |piece| {
            let sum = sums.entry(piece.part).or_default();
            *sum = sum.saturating_add(piece.bytes);
        })
        .map_err(|e| e.at_file(self.file))?;
        let line = |(part, bytes)| (part, bytes, share(bytes, self.file_bytes));
        let lines: Vec<(BytesUse, u64, String)> = sums.into_iter().map(line).collect();
        let shown = [
            Column::text("what", |(part, ..): &(BytesUse, u64, String)| part.name().to_owned()),
            Column::bytes("bytes", |(_, bytes, _)| Some(*bytes)),
            Column::number("share", |(.., share)| share.clone()),
        ];
        out.show(&format!("{}: its footer cannot be read", self.file), &shown, &lines, &[])
    }
}

/// The kind of most bytes, and whether there are others.
fn first<T: ToString>(kinds: &[(T, u64)]) -> String {
    match kinds {
        [] => String::new(),
        [(kind, _)] => kind.to_string(),
        [(kind, _), others @ ..] => format!("{}, {} more", kind.to_string(), others.len()),
    }
}
