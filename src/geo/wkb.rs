//! Visits the bytes of a geometry in well-known binary (WKB), in one pass and without allocating.
//!
//! Spec: Geospatial.md, "Well-Known Binary"; OGC 06-103r4 and ISO 13249-3 for the layout.
//!
//! ```text
//!  geometry    | byte order u8 | type u32 | body |          0 big-endian, 1 little-endian
//!  type        1 Point, 2 LineString, 3 Polygon, 4 MultiPoint, 5 MultiLineString, 6 MultiPolygon,
//!              7 GeometryCollection; + 1000 with Z, + 2000 with M, + 3000 with both
//!  Point       | x | y | z? | m? |                          f64; all NaN if empty
//!  LineString  | number u32 | points |
//!  Polygon     | number u32 | rings, each as a LineString |
//!  others      | number u32 | geometries |                  each with a byte order of its own
//! ```
//!
//! Trap: a collection of collections may be 100,000 deep. A loop that counts the geometries to come
//! is enough, because what follows a collection does not depend on where it ends.

use std::fmt::Display;

use crate::bytes::Cursor;
use crate::error::{Error, Result, Spec};

/// Receives the coordinates of a geometry.
pub(super) trait Coordinates {
    /// Takes consecutive points: the length of `bytes` is a multiple of that of one point.
    fn push<const LITTLE: bool>(&mut self, dimensions: Dimensions, bytes: &[u8]);
}

/// The base type of a geometry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WkbType {
    Point,
    LineString,
    Polygon,
    MultiPoint,
    MultiLineString,
    MultiPolygon,
    GeometryCollection,
}

/// Which coordinates a point has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dimensions {
    Xy,
    Xyz,
    Xym,
    Xyzm,
}

impl Dimensions {
    /// How many coordinates a point has.
    pub(super) fn count(self) -> usize {
        match self {
            Self::Xy => 2,
            Self::Xyz | Self::Xym => 3,
            Self::Xyzm => 4,
        }
    }

    /// Bytes of a point.
    pub(super) fn point_len(self) -> usize {
        self.count() * size_of::<f64>()
    }
}

/// The header of a geometry: byte order and type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct WkbHeader {
    pub(super) kind: WkbType,
    pub(super) dimensions: Dimensions,
    pub(super) little: bool,
}

/// Bytes of a header and a count: the minimum size of a geometry.
const MIN_GEOMETRY: usize = 9;

/// Bits by which other dialects mark Z, M and a coordinate system.
const EWKB_FLAGS: u32 = 0xE000_0000;

impl WkbHeader {
    /// Reads the header of a geometry.
    ///
    /// # Errors
    /// `Malformed` if the byte order or the type is none of the format.
    #[inline]
    pub(super) fn read(cursor: &mut Cursor<'_>) -> Result<Self> {
        let at = cursor.position();
        let [order, code @ ..] = cursor.array::<5>()?;
        let (little, code) = match order {
            1 => (true, u32::from_le_bytes(code)),
            0 => (false, u32::from_be_bytes(code)),
            other => {
                return Err(malformed(
                    at,
                    format_args!("byte order: expected 0 (big-endian) or 1, found {other}"),
                ));
            }
        };
        let dimensions = match code / 1000 {
            0 => Dimensions::Xy,
            1 => Dimensions::Xyz,
            2 => Dimensions::Xym,
            3 => Dimensions::Xyzm,
            _ => return Err(no_type(at, code)),
        };
        let kind = match code % 1000 {
            1 => WkbType::Point,
            2 => WkbType::LineString,
            3 => WkbType::Polygon,
            4 => WkbType::MultiPoint,
            5 => WkbType::MultiLineString,
            6 => WkbType::MultiPolygon,
            7 => WkbType::GeometryCollection,
            _ => return Err(no_type(at, code)),
        };
        Ok(Self { kind, dimensions, little })
    }

    /// The number of the type, with those of its dimensions.
    pub(super) fn code(self) -> i32 {
        let dimensions = match self.dimensions {
            Dimensions::Xy => 0,
            Dimensions::Xyz => 1000,
            Dimensions::Xym => 2000,
            Dimensions::Xyzm => 3000,
        };
        dimensions + self.kind.code()
    }

    /// Reads how many parts follow, each of at least `min` bytes.
    ///
    /// # Errors
    /// `Malformed` if fewer bytes are left than that.
    #[inline]
    pub(super) fn count(self, cursor: &mut Cursor<'_>, min: usize, what: &str) -> Result<usize> {
        let at = cursor.position();
        let bytes = cursor.array::<4>()?;
        let n = if self.little { u32::from_le_bytes(bytes) } else { u32::from_be_bytes(bytes) };
        let max = cursor.remaining() / min;
        match usize::try_from(n) {
            Ok(n) if n <= max => Ok(n),
            _ => Err(malformed(
                at,
                format_args!(
                    "{n} {what} of at least {min} bytes each: expected at most {max} in the {} bytes left",
                    cursor.remaining()
                ),
            )),
        }
    }

    /// Reads the points of a line or a ring, as they lie.
    #[inline]
    pub(super) fn points<'a>(self, cursor: &mut Cursor<'a>) -> Result<&'a [u8]> {
        let len = self.dimensions.point_len();
        let n = self.count(cursor, len, "points")?;
        cursor.take(n * len)
    }
}

impl WkbType {
    pub(super) fn code(self) -> i32 {
        match self {
            Self::Point => 1,
            Self::LineString => 2,
            Self::Polygon => 3,
            Self::MultiPoint => 4,
            Self::MultiLineString => 5,
            Self::MultiPolygon => 6,
            Self::GeometryCollection => 7,
        }
    }

    /// The type of the parts of a multi-geometry; `None` if parts may have any type, or there are
    /// none.
    pub(super) fn part(self) -> Option<Self> {
        match self {
            Self::MultiPoint => Some(Self::Point),
            Self::MultiLineString => Some(Self::LineString),
            Self::MultiPolygon => Some(Self::Polygon),
            Self::Point | Self::LineString | Self::Polygon | Self::GeometryCollection => None,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Point => "POINT",
            Self::LineString => "LINESTRING",
            Self::Polygon => "POLYGON",
            Self::MultiPoint => "MULTIPOINT",
            Self::MultiLineString => "MULTILINESTRING",
            Self::MultiPolygon => "MULTIPOLYGON",
            Self::GeometryCollection => "GEOMETRYCOLLECTION",
        }
    }
}

/// Visits all coordinates of the geometry `wkb`.
///
/// # Errors
/// `Malformed(Geospatial)` if it is none: a wrong byte order, an unknown type, an EWKB flag, a part
/// of the wrong type, counts beyond the bytes, or bytes after its end. Coordinates before the fault
/// were visited.
#[inline]
pub(super) fn visit(wkb: &[u8], out: &mut impl Coordinates) -> Result<WkbHeader> {
    // Fast path: most columns of points hold only little-endian XY points.
    if let [1, 1, 0, 0, 0, point @ ..] = wkb
        && point.len() == Dimensions::Xy.point_len()
    {
        out.push::<true>(Dimensions::Xy, point);
        return Ok(WkbHeader { kind: WkbType::Point, dimensions: Dimensions::Xy, little: true });
    }
    visit_any(wkb, out)
}

fn visit_any(wkb: &[u8], out: &mut impl Coordinates) -> Result<WkbHeader> {
    let mut cursor = Cursor::new(wkb, Spec::Geospatial);
    let first = WkbHeader::read(&mut cursor)?;
    // Number of geometries still to read, over all open collections.
    let mut pending = body(first, &mut cursor, out)?;
    while pending > 0 {
        let max = cursor.remaining() / MIN_GEOMETRY;
        if pending > max {
            return Err(malformed(
                cursor.position(),
                format_args!(
                    "{pending} geometries to read: expected at most {max} in the bytes that are \
                     left"
                ),
            ));
        }
        let header = WkbHeader::read(&mut cursor)?;
        // Neither is more than the bytes of a value.
        pending = pending - 1 + body(header, &mut cursor, out)?;
    }
    if !cursor.is_empty() {
        return Err(malformed(
            cursor.position(),
            format_args!("{} bytes after the end of the geometry", cursor.remaining()),
        ));
    }
    Ok(first)
}

/// Reads what follows a header; returns the number of geometries in it that are still to come.
#[inline]
fn body(header: WkbHeader, cursor: &mut Cursor<'_>, out: &mut impl Coordinates) -> Result<usize> {
    match header.kind {
        WkbType::GeometryCollection => {
            return header.count(cursor, MIN_GEOMETRY, "geometries");
        }
        WkbType::Point | WkbType::LineString | WkbType::Polygon => simple(header, cursor, out)?,
        WkbType::MultiPoint | WkbType::MultiLineString | WkbType::MultiPolygon => {
            for _ in 0..header.count(cursor, MIN_GEOMETRY, "parts")? {
                let part = part_header(header, cursor)?;
                simple(part, cursor, out)?;
            }
        }
    }
    Ok(0)
}

/// Reads the header of a part of a geometry of many.
///
/// # Errors
/// `Malformed` if it is of another type than its parts are.
#[inline]
pub(super) fn part_header(whole: WkbHeader, cursor: &mut Cursor<'_>) -> Result<WkbHeader> {
    let at = cursor.position();
    let part = WkbHeader::read(cursor)?;
    match whole.kind.part() {
        Some(kind) if kind != part.kind => Err(malformed(
            at,
            format_args!(
                "a part of a {}: expected a {}, found a {}",
                whole.kind.name(),
                kind.name(),
                part.kind.name()
            ),
        )),
        _ => Ok(part),
    }
}

/// Reads a geometry that has no others in it.
#[inline]
fn simple(header: WkbHeader, cursor: &mut Cursor<'_>, out: &mut impl Coordinates) -> Result<()> {
    match header.kind {
        WkbType::Point => push_points(header, cursor.take(header.dimensions.point_len())?, out),
        WkbType::Polygon => {
            for _ in 0..header.count(cursor, size_of::<u32>(), "rings")? {
                push_points(header, header.points(cursor)?, out);
            }
        }
        _ => push_points(header, header.points(cursor)?, out),
    }
    Ok(())
}

#[inline]
fn push_points(header: WkbHeader, points: &[u8], out: &mut impl Coordinates) {
    match header.little {
        true => out.push::<true>(header.dimensions, points),
        false => out.push::<false>(header.dimensions, points),
    }
}

/// A coordinate as it is stored.
#[inline]
pub(super) fn coordinate<const LITTLE: bool>(bytes: &[u8]) -> f64 {
    let bytes = bytes.first_chunk::<8>().copied().unwrap_or_default();
    if LITTLE { f64::from_le_bytes(bytes) } else { f64::from_be_bytes(bytes) }
}

#[cold]
pub(super) fn malformed(at: usize, message: impl Display) -> Error {
    Error::malformed(Spec::Geospatial, format_args!("byte {at} of a WKB value: {message}"))
}

#[cold]
fn no_type(at: usize, code: u32) -> Error {
    if code & EWKB_FLAGS != 0 {
        return malformed(
            at,
            format_args!(
                "type {code:#010x} has flags of EWKB; the format has ISO WKB only: write the value \
                 without a coordinate system, and Z and M as 1000, 2000 or 3000 more"
            ),
        );
    }
    malformed(at, format_args!("type: expected 1 to 7, with 1000, 2000 or 3000 more, found {code}"))
}
