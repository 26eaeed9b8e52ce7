//! The strip: the bytes of the file in their order, in lines of equal length.

use super::canvas::{LEFT, MapPicture, WIDTH};
use super::palette::part;
use super::xml::{Area, Xml, length, real, unit};
use crate::args::Global;
use crate::layout::{BytesUse, StripPiece};
use crate::output::bytes;

const HEIGHT: f64 = 12.0;
const STEP: f64 = 17.0;

/// Draws the strip from `top` on; returns it, and where it ends.
pub(super) fn draw(picture: &MapPicture<'_>, top: f64) -> (String, f64) {
    let strip = picture.strip;
    let mut out = Xml::new();
    let line = bytes(strip.line_bytes, picture.global);
    let title = match strip.lines {
        1 => "The bytes of the file in their order:".to_owned(),
        _ => format!("The bytes of the file in their order; a line is {line}:"),
    };
    out.element("text", &[("x", "8"), ("y", &unit(top + 9.0))], &title);
    let top = legend(&strip.pieces, top + 18.0, &mut out);
    for line in 0..strip.lines {
        let y = unit(top + STEP * real(line as u64) + HEIGHT - 2.5);
        let offset = format!("{:#x}", strip.line_bytes.saturating_mul(line as u64));
        let x = unit(LEFT - 6.0);
        out.element("text", &[("class", "dim end"), ("x", &x), ("y", &y)], &offset);
    }
    let bin = (WIDTH - LEFT - 8.0) / real(strip.width as u64);
    out.open("g", &[("class", "stops"), ("data-width", "1000")]);
    let is_few = strip.pieces.len() <= MAX_STOPS;
    for (i, piece) in strip.pieces.iter().enumerate() {
        let text = text(piece, picture.global);
        let at = format!("{:#x}", piece.region.offset);
        let tone = part(piece.region.part).class();
        // Outlines would cover narrow pieces.
        let class = if is_few { format!("part {tone}") } else { tone };
        // A piece that goes on on the next line is several rectangles.
        let mut start = piece.bins.start;
        while start < piece.bins.end {
            let line = start / strip.width;
            let end = piece.bins.end.min((line + 1) * strip.width);
            let x = LEFT + bin * real((start % strip.width) as u64);
            let y = top + STEP * real(line as u64);
            let width = bin * real((end - start) as u64);
            let [x, y, width, height] = Area { x, y, width, height: HEIGHT }.units();
            let mut attributes = vec![
                ("class", &*class),
                ("x", &*x),
                ("y", &y),
                ("width", &width),
                ("height", &height),
                ("data-at", &at),
            ];
            if is_few && start == piece.bins.start {
                let index = if i == 0 { "0" } else { "-1" };
                attributes.extend([("tabindex", index), ("role", "img")]);
            }
            out.open("rect", &attributes);
            out.element("title", &[], &text);
            out.close("rect");
            start = end;
        }
    }
    out.close("g");
    (out.finish(), top + STEP * real(strip.lines as u64) + 6.0)
}

/// Pieces that the keyboard reaches one by one; of more, none.
const MAX_STOPS: usize = 400;

/// A piece in words.
pub(super) fn text(piece: &StripPiece, global: &Global) -> String {
    let region = &piece.region;
    let mut out = format!("{} at {:#x}", region.part.name(), region.offset);
    if let Some(column) = &region.column {
        out.push_str(&format!(", column {column}"));
    }
    if let Some(row_group) = region.row_group {
        out.push_str(&format!(", row group {row_group}"));
    }
    out.push_str(&format!(": {}", bytes(region.bytes, global)));
    if piece.regions > 1 {
        out.push_str(&format!(", the first of {} parts of the file here", piece.regions));
    }
    out
}

/// The parts that occur.
fn legend(pieces: &[StripPiece], top: f64, out: &mut Xml) -> f64 {
    let (mut x, mut y) = (8.0, top);
    for of in
        BytesUse::ALL.into_iter().filter(|of| pieces.iter().any(|piece| piece.region.part == *of))
    {
        let width = 34.0 + length(of.name());
        if x + width > WIDTH {
            (x, y) = (8.0, y + 16.0);
        }
        Area { x, y, width: 12.0, height: 10.0 }.rect(out, &format!("key {}", part(of).class()));
        out.element("text", &[("x", &unit(x + 16.0)), ("y", &unit(y + 9.0))], of.name());
        x += width;
    }
    y + 18.0
}
