//! Formats geometries as well-known text (WKT).
//!
//! Trap: a value may be far longer than the part of it that is shown, so nothing beyond that is
//! read.

use std::fmt::Write;

use super::wkb::{Dimensions, WkbHeader, WkbType, coordinate, part_header};
use crate::bytes::Cursor;
use crate::error::{Result, Spec};

/// Formats a value in WKB as well-known text. A text longer than `max` bytes is truncated, and ends
/// with `…`.
///
/// # Errors
/// `Malformed(Geospatial)` if `wkb`, as far as it is shown, is no ISO WKB.
pub fn to_wkt(wkb: &[u8], max: usize) -> Result<String> {
    let cursor = Cursor::new(wkb, Spec::Geospatial);
    let mut writer = WktWriter { cursor, out: String::new(), max, open: Vec::new() };
    let first = WkbHeader::read(&mut writer.cursor)?;
    writer.name(first);
    writer.body(first)?;
    while !writer.is_full() {
        let Some((around, left)) = writer.open.pop() else { break };
        if left == 0 {
            writer.out.push(')');
            continue;
        }
        writer.open.push((around, left - 1));
        writer.separate();
        let part = part_header(around, &mut writer.cursor)?;
        // The parts of a multi-geometry have no type names in WKT.
        if around.kind.part().is_none() {
            writer.name(part);
        }
        writer.body(part)?;
    }
    Ok(writer.finish())
}

struct WktWriter<'a> {
    cursor: Cursor<'a>,
    out: String,
    max: usize,
    /// Open multi-geometries and collections, and how many parts each has left. There are never
    /// more than open brackets in the text.
    open: Vec<(WkbHeader, usize)>,
}

impl WktWriter<'_> {
    fn is_full(&self) -> bool {
        self.out.len() > self.max
    }

    fn finish(mut self) -> String {
        if self.is_full() {
            // All of it is ASCII.
            self.out.truncate(self.max);
            self.out.push('…');
        }
        self.out
    }

    /// Writes a comma, unless this is the first of its list.
    fn separate(&mut self) {
        if !self.out.ends_with('(') {
            self.out.push_str(", ");
        }
    }

    fn name(&mut self, header: WkbHeader) {
        self.out.push_str(header.kind.name());
        self.out.push_str(match header.dimensions {
            Dimensions::Xy => " ",
            Dimensions::Xyz => " Z ",
            Dimensions::Xym => " M ",
            Dimensions::Xyzm => " ZM ",
        });
    }

    /// Writes what follows the name; of a multi-geometry or collection, only the opening bracket.
    fn body(&mut self, header: WkbHeader) -> Result<()> {
        let min = match header.kind {
            WkbType::Point => {
                let point = self.cursor.take(header.dimensions.point_len())?;
                self.points(header, point);
                return Ok(());
            }
            WkbType::LineString => {
                let points = header.points(&mut self.cursor)?;
                self.points(header, points);
                return Ok(());
            }
            WkbType::Polygon => 4,
            _ => 9,
        };
        match header.count(&mut self.cursor, min, "parts")? {
            0 => self.out.push_str("EMPTY"),
            rings if header.kind == WkbType::Polygon => {
                self.out.push('(');
                for _ in 0..rings {
                    if self.is_full() {
                        return Ok(());
                    }
                    self.separate();
                    let points = header.points(&mut self.cursor)?;
                    self.points(header, points);
                }
                self.out.push(')');
            }
            n => {
                self.out.push('(');
                self.open.push((header, n));
            }
        }
        Ok(())
    }

    fn points(&mut self, header: WkbHeader, bytes: &[u8]) {
        let of = |bytes: &[u8]| match header.little {
            true => coordinate::<true>(bytes),
            false => coordinate::<false>(bytes),
        };
        let is_nothing =
            header.kind == WkbType::Point && bytes.chunks_exact(8).all(|c| of(c).is_nan());
        if bytes.is_empty() || is_nothing {
            return self.out.push_str("EMPTY");
        }
        self.out.push('(');
        for point in bytes.chunks_exact(header.dimensions.point_len()) {
            if self.is_full() {
                return;
            }
            self.separate();
            for (i, bytes) in point.chunks_exact(8).enumerate() {
                let space = if i > 0 { " " } else { "" };
                write!(self.out, "{space}{}", of(bytes)).expect("a string takes all text");
            }
        }
        self.out.push(')');
    }
}
