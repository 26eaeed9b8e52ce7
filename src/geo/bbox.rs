//! [`GeospatialCollector`] collects the statistics of a column chunk of geometries.
//!
//! Spec: Geospatial.md, "Statistics"; `parquet.thrift`, GeospatialStatistics and BoundingBox.
//! Trap: NaN is no coordinate. A dimension without any other value has no bounds, and without
//! bounds of both x and y there is no box.

use super::wkb::{Coordinates, Dimensions, WkbHeader, coordinate, visit};
use crate::error::Result;
use crate::format::{BoundingBox, GeospatialStatistics, LogicalType};
use crate::schema::Leaf;

/// How the edge between two vertices runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Edges {
    /// A straight line: GEOMETRY.
    #[default]
    Planar,
    /// The shortest path on the surface of the earth: GEOGRAPHY. It may leave the box around its
    /// ends, so that only points have a known box.
    Geodesic,
}

impl Edges {
    /// The edges of a leaf; `None` if it is neither GEOMETRY nor GEOGRAPHY.
    pub(crate) fn for_leaf(leaf: &Leaf) -> Option<Self> {
        match leaf.logical {
            Some(LogicalType::Geometry(_)) => Some(Self::Planar),
            Some(LogicalType::Geography(_)) => Some(Self::Geodesic),
            _ => None,
        }
    }
}

/// Collects the bounding box and the types of geometries.
///
/// [`GeospatialCollector::push`] takes values, [`GeospatialCollector::finish`] returns their
/// `ColumnMetaData.geospatial_statistics`.
#[derive(Debug, Clone)]
pub struct GeospatialCollector {
    edges: Edges,
    bounds: Bounds,
    /// A bit for each type that occurred.
    types: u32,
    is_malformed: bool,
}

impl GeospatialCollector {
    /// Makes a collector without values.
    pub fn new(edges: Edges) -> Self {
        Self { edges, bounds: Bounds::default(), types: 0, is_malformed: false }
    }

    /// Adds a value.
    ///
    /// # Errors
    /// `Malformed(Geospatial)` if `wkb` is no ISO WKB. The column then has no statistics:
    /// [`GeospatialCollector::finish`] returns `None`.
    #[inline]
    pub fn push(&mut self, wkb: &[u8]) -> Result<()> {
        match visit(wkb, &mut self.bounds) {
            Ok(header) => {
                self.types |= 1 << type_index(header);
                Ok(())
            }
            Err(e) => {
                self.is_malformed = true;
                Err(e)
            }
        }
    }

    /// Adds the values of another collector.
    pub fn merge(&mut self, other: &Self) {
        self.bounds.merge(&other.bounds);
        self.types |= other.types;
        self.is_malformed |= other.is_malformed;
    }

    /// The statistics; `None` if there was no value, or a malformed one.
    ///
    /// There is no box if all values are empty, or, with geodesic edges, if a value is neither a
    /// point nor a multipoint, or lies outside of longitudes −180 to 180 and latitudes −90 to 90.
    pub fn finish(&self) -> Option<GeospatialStatistics> {
        if self.types == 0 || self.is_malformed {
            return None;
        }
        let types = (0..TYPES).filter(|index| self.types & 1 << index != 0);
        let types = types.map(|index| index / 7 * 1000 + index % 7 + 1).collect();
        let bbox = self.bounds.bbox().filter(|bbox| match self.edges {
            Edges::Planar => true,
            Edges::Geodesic => self.types & !POINTS == 0 && is_on_earth(bbox),
        });
        Some(GeospatialStatistics {
            bbox,
            geospatial_types: Some(types),
            ..GeospatialStatistics::default()
        })
    }
}

/// Types of the format: 7, with 4 sets of dimensions.
const TYPES: i32 = 28;

/// Bits of points and of geometries of many points.
const POINTS: u32 = 0b1001 | 0b1001 << 7 | 0b1001 << 14 | 0b1001 << 21;

/// The number of a type among the [`TYPES`], in the order of their codes.
#[inline]
fn type_index(header: WkbHeader) -> i32 {
    let code = header.code();
    code / 1000 * 7 + code % 1000 - 1
}

/// The name of a type in GeoParquet, which has none with M.
pub(crate) fn type_name(code: i32) -> Option<String> {
    let base = match code % 1000 {
        1 => "Point",
        2 => "LineString",
        3 => "Polygon",
        4 => "MultiPoint",
        5 => "MultiLineString",
        6 => "MultiPolygon",
        7 => "GeometryCollection",
        _ => return None,
    };
    match code / 1000 {
        0 => Some(base.to_owned()),
        1 => Some(format!("{base} Z")),
        _ => None,
    }
}

/// Whether a box has longitudes and latitudes, in degrees.
pub(super) fn is_on_earth(bbox: &BoundingBox) -> bool {
    let within = |value: &f64, max: f64| (-max..=max).contains(value);
    [bbox.xmin, bbox.xmax].iter().all(|x| within(x, 180.0))
        && [bbox.ymin, bbox.ymax].iter().all(|y| within(y, 90.0))
}

/// Minimum and maximum coordinates. Each set of dimensions has lanes of its own, several points
/// wide, so that the loop over points can be vectorised.
#[derive(Debug, Clone, Default)]
struct Bounds {
    xy: Lanes<8>,
    xyz: Lanes<6>,
    xym: Lanes<6>,
    xyzm: Lanes<8>,
}

impl Coordinates for Bounds {
    #[inline]
    fn push<const LITTLE: bool>(&mut self, dimensions: Dimensions, bytes: &[u8]) {
        match dimensions {
            Dimensions::Xy => self.xy.push::<LITTLE>(bytes),
            Dimensions::Xyz => self.xyz.push::<LITTLE>(bytes),
            Dimensions::Xym => self.xym.push::<LITTLE>(bytes),
            Dimensions::Xyzm => self.xyzm.push::<LITTLE>(bytes),
        }
    }
}

impl Bounds {
    fn merge(&mut self, other: &Self) {
        self.xy.merge(&other.xy);
        self.xyz.merge(&other.xyz);
        self.xym.merge(&other.xym);
        self.xyzm.merge(&other.xyzm);
    }

    fn bbox(&self) -> Option<BoundingBox> {
        // The place of each dimension among those of XY, XYZ, XYM and XYZM points.
        let of = |places: [Option<usize>; 4]| {
            let [xy, xyz, xym, xyzm] = places;
            let ranges = [
                xy.map(|i| self.xy.range(i, 2)),
                xyz.map(|i| self.xyz.range(i, 3)),
                xym.map(|i| self.xym.range(i, 3)),
                xyzm.map(|i| self.xyzm.range(i, 4)),
            ];
            ranges.into_iter().flatten().fold(Range::default(), Range::join).bounds()
        };
        let (x, y) = (of([Some(0); 4])?, of([Some(1); 4])?);
        let z = of([None, Some(2), None, Some(2)]);
        let m = of([None, None, Some(2), Some(3)]);
        Some(BoundingBox {
            xmin: x.0,
            xmax: x.1,
            ymin: y.0,
            ymax: y.1,
            zmin: z.map(|z| z.0),
            zmax: z.map(|z| z.1),
            mmin: m.map(|m| m.0),
            mmax: m.map(|m| m.1),
            ..BoundingBox::default()
        })
    }
}

/// The least and the greatest values of lanes: coordinate `i` of those that lie end to end is in
/// lane `i % N`, and `N` is a multiple of the dimensions.
#[derive(Debug, Clone)]
pub(super) struct Lanes<const N: usize> {
    least: [f64; N],
    greatest: [f64; N],
}

impl<const N: usize> Default for Lanes<N> {
    fn default() -> Self {
        Self { least: [f64::INFINITY; N], greatest: [f64::NEG_INFINITY; N] }
    }
}

impl<const N: usize> Lanes<N> {
    #[inline]
    pub(super) fn push<const LITTLE: bool>(&mut self, bytes: &[u8]) {
        let mut chunks = bytes.chunks_exact(N * size_of::<f64>());
        if bytes.len() >= N * size_of::<f64>() {
            // Copies stay in registers: 6 times as fast as the lanes where they lie.
            let (mut all_least, mut all_greatest) = (self.least, self.greatest);
            for chunk in &mut chunks {
                let mut values = [0.0; N];
                for (value, bytes) in values.iter_mut().zip(chunk.as_chunks::<8>().0) {
                    *value = coordinate::<LITTLE>(bytes);
                }
                for (least, value) in all_least.iter_mut().zip(values) {
                    *least = if value < *least { value } else { *least };
                }
                for (greatest, value) in all_greatest.iter_mut().zip(values) {
                    *greatest = if value > *greatest { value } else { *greatest };
                }
            }
            (self.least, self.greatest) = (all_least, all_greatest);
        }
        let (rest, _) = chunks.remainder().as_chunks::<8>();
        for ((bytes, least), greatest) in rest.iter().zip(&mut self.least).zip(&mut self.greatest) {
            widen(least, greatest, coordinate::<LITTLE>(bytes));
        }
    }

    fn merge(&mut self, other: &Self) {
        for (least, of_other) in self.least.iter_mut().zip(other.least) {
            *least = least.min(of_other);
        }
        for (greatest, of_other) in self.greatest.iter_mut().zip(other.greatest) {
            *greatest = greatest.max(of_other);
        }
    }

    /// The range of dimension `i` of `dimensions`.
    pub(super) fn range(&self, i: usize, dimensions: usize) -> Range {
        let lanes = self.least.iter().zip(&self.greatest).skip(i).step_by(dimensions);
        lanes.fold(Range::default(), |all, (least, greatest)| {
            all.join(Range { least: *least, greatest: *greatest })
        })
    }
}

/// The least and the greatest of some values, NaN left out.
#[derive(Debug, Clone, Copy)]
pub(super) struct Range {
    pub(super) least: f64,
    pub(super) greatest: f64,
}

impl Default for Range {
    fn default() -> Self {
        Self { least: f64::INFINITY, greatest: f64::NEG_INFINITY }
    }
}

impl Range {
    #[inline]
    pub(super) fn push(&mut self, value: f64) {
        widen(&mut self.least, &mut self.greatest, value);
    }

    pub(super) fn join(mut self, other: Self) -> Self {
        self.least = self.least.min(other.least);
        self.greatest = self.greatest.max(other.greatest);
        self
    }

    /// Both; `None` if there was no value.
    pub(super) fn bounds(self) -> Option<(f64, f64)> {
        (self.least <= self.greatest).then_some((self.least, self.greatest))
    }
}

/// NaN, which compares as neither less nor greater, changes nothing.
#[inline]
fn widen(least: &mut f64, greatest: &mut f64, value: f64) {
    *least = if value < *least { value } else { *least };
    *greatest = if value > *greatest { value } else { *greatest };
}
