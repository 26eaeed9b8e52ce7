//! Pictures of a layout: SVG, pages for a browser, and characters for a terminal.
//!
//! A picture of the same file is the same text: orders are those of the file, and coordinates are
//! rounded. Text of a file is escaped twice: what steers or hides, and what means something in XML.

mod canvas;
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
pub(crate) use canvas::{GRID, MapPicture, STRIP_LINES, STRIP_WIDTH};
pub(crate) use map::row_name;
pub(crate) use page::{HtmlPage, page};
pub(crate) use term::print;

use canvas::WIDTH;

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
