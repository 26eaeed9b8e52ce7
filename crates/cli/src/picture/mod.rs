//! Pictures of a layout: SVG, pages for a browser, and characters for a terminal.
//!
//! A picture of the same file is the same text: orders are those of the file, and coordinates are
//! rounded. Text of a file is escaped twice: what steers or hides, and what means something in XML.

mod xml;
mod palette;
mod measure;
mod map;
mod strip;
mod pages;
mod bytes;
mod page;
mod term;

pub(crate) use bytes::{PartSize, PartSizes};
pub(crate) use map::row_name;
pub(crate) use page::{HtmlPage, page};
pub(crate) use term::print;

use crate::args::{ColorBy, Global};
use crate::layout::{FileLayout, Grid, GridSize, Overlay, Strip};

/// A map and a strip of a file.
pub(crate) struct MapPicture<'a> {
    pub(crate) layout: &'a FileLayout,
    pub(crate) grid: &'a Grid,
    pub(crate) strip: &'a Strip,
    pub(crate) overlay: Option<&'a Overlay>,
    pub(crate) color_by: ColorBy,
    pub(crate) global: &'a Global,
}

/// Cells that a picture has room for.
pub(crate) const GRID: GridSize = GridSize { columns: 150, rows: 64, cells: 4000 };
/// Lines and bins of a strip: bins are two units wide.
pub(crate) const STRIP_LINES: usize = 12;
pub(crate) const STRIP_WIDTH: usize = 430;

/// Width of a picture, in its units.
const WIDTH: f64 = 960.0;
/// Where the picture begins, after the labels on the left.
const LEFT: f64 = 96.0;

/// The picture as a file of its own.
pub(crate) fn svg(picture: &MapPicture<'_>) -> String {
    let (map, height) = map::draw(picture, &[picture.color_by], 28.0);
    let (strip, end) = strip::draw(picture, height + 24.0);
    let mut out = xml::Xml::new();
    let view = format!("0 0 {WIDTH} {}", xml::unit(end));
    let (width, height) = (xml::unit(WIDTH), xml::unit(end));
    out.open(
        "svg",
        &[
            ("xmlns", "http://www.w3.org/2000/svg"),
            ("viewBox", &view),
            ("width", &width),
            ("height", &height),
            ("role", "group"),
            ("aria-labelledby", "title desc"),
            ("data-by", measure::name(picture.color_by)),
        ],
    );
    out.element("title", &[("id", "title")], &format!("Map of {}", picture.layout.path));
    out.element("desc", &[("id", "desc")], &map::description(picture));
    out.raw(&format!("<style>{}{}</style>\n", palette::css(), palette::BACKGROUND));
    out.open("rect", &[("class", "ground"), ("width", "100%"), ("height", "100%")]);
    out.close("rect");
    let heading = map::heading(picture);
    out.element("text", &[("class", "head"), ("x", "8"), ("y", "20")], &heading);
    out.raw(&map);
    out.raw(&strip);
    out.close("svg");
    out.finish()
}
