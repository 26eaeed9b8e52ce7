//! [`Rectangle`]: a box in x and y that is compared with the boxes of values and of column chunks.
//!
//! Spec: Geospatial.md, "Bounding Box".
//! Trap: on the surface of the earth the box around the vertices differs from the box around the
//! edges. Boxes here are never too small; they may be too large.

use super::bbox::{Edges, Lanes, Range, is_on_earth};
use super::wkb::{Coordinates, Dimensions, WkbType, coordinate, visit};
use crate::error::{Error, Result};
use crate::format::{BoundingBox, GeospatialStatistics};

/// A box: x from `xmin` to `xmax`, y from `ymin` to `ymax`, all four included. Its sides may be
/// infinite.
///
/// If `xmin` is greater than `xmax`, it wraps around the antimeridian: x is then at least `xmin`,
/// *or* at most `xmax`. x is the longitude or easting, y the latitude or northing, whatever the
/// order of axes of the coordinate system is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rectangle {
    /// Minimum x, or the west side of a box that wraps.
    pub xmin: f64,
    /// Minimum y.
    pub ymin: f64,
    /// Maximum x, or the east side of a box that wraps.
    pub xmax: f64,
    /// Maximum y.
    pub ymax: f64,
}

impl Rectangle {
    /// The whole plane.
    pub(super) const EVERYWHERE: Self = Self {
        xmin: f64::NEG_INFINITY,
        ymin: f64::NEG_INFINITY,
        xmax: f64::INFINITY,
        ymax: f64::INFINITY,
    };

    /// A box of these sides.
    pub const fn new(xmin: f64, ymin: f64, xmax: f64, ymax: f64) -> Self {
        Self { xmin, ymin, xmax, ymax }
    }

    /// The box around a value in WKB; `None` if the value is empty.
    ///
    /// With planar edges it is the smallest box, which never wraps. With geodesic edges it also
    /// covers the edges, so it may be larger than the smallest box, and wraps if that makes it
    /// narrower: points have the narrower of both boxes; any other geometry has a box that reaches
    /// as far north and south as an edge within its longitudes could. If the longitudes span 180
    /// degrees or more, or the coordinates are no longitudes and latitudes (beyond ±180, ±90), the
    /// box is the whole plane.
    ///
    /// # Errors
    /// `Malformed(Geospatial)` if `wkb` is no ISO WKB.
    pub fn around(wkb: &[u8], edges: Edges) -> Result<Option<Self>> {
        match edges {
            Edges::Planar => {
                let mut found = Planar::default();
                visit(wkb, &mut found)?;
                Ok(found.rectangle())
            }
            Edges::Geodesic => {
                let mut found = Geodesic::default();
                let header = visit(wkb, &mut found)?;
                let is_points = matches!(header.kind, WkbType::Point | WkbType::MultiPoint);
                Ok(found.rectangle(is_points))
            }
        }
    }

    /// The box of the statistics of a column chunk, if it is valid.
    pub(crate) fn from_statistics(found: &GeospatialStatistics, edges: Edges) -> Option<Self> {
        let bbox = found.bbox.as_ref()?;
        let &BoundingBox { xmin, xmax, ymin, ymax, .. } = bbox;
        let rectangle = Self { xmin, ymin, xmax, ymax };
        // Some writers have an inside-out box of infinities where there is none.
        let wraps = xmin > xmax && xmin.is_finite() && xmax.is_finite();
        let is_box = (xmin <= xmax || wraps) && ymin <= ymax;
        match edges {
            Edges::Planar if is_box => {
                // The box around a value does not wrap. Of points it is a point; others may lie on
                // both sides of the gap.
                let of_points = |code: &i32| code % 1000 == 1;
                let types = found.geospatial_types.as_deref().filter(|types| !types.is_empty());
                let only_points = types.is_some_and(|types| types.iter().all(of_points));
                Some(match wraps && !only_points {
                    true => Self { ymin, ymax, ..Self::EVERYWHERE },
                    false => rectangle,
                })
            }
            Edges::Geodesic if is_box && is_on_earth(bbox) => Some(rectangle),
            _ => None,
        }
    }

    /// Checks that it is a box.
    ///
    /// # Errors
    /// `Usage` if a side is NaN, or `ymin` is greater than `ymax`.
    pub(crate) fn check(&self) -> Result<()> {
        let Self { xmin, ymin, xmax, ymax } = self;
        let is_nan = [xmin, ymin, xmax, ymax].into_iter().any(|side| side.is_nan());
        if is_nan || ymin > ymax {
            return Err(Error::usage(format_args!(
                "a box from ({xmin}, {ymin}) to ({xmax}, {ymax}): expected numbers, and ymin at \
                 most ymax; give xmin, ymin, xmax, ymax in this order"
            )));
        }
        Ok(())
    }

    /// Whether the boxes have a point in common; two boxes that wrap always share an x.
    pub fn intersects(&self, other: &Self) -> bool {
        let meets_y = self.ymin <= other.ymax && other.ymin <= self.ymax;
        meets_y
            && match (self.xmin > self.xmax, other.xmin > other.xmax) {
                (true, true) => true,
                (true, false) => other.xmax >= self.xmin || other.xmin <= self.xmax,
                (false, true) => self.xmax >= other.xmin || self.xmin <= other.xmax,
                (false, false) => self.xmin <= other.xmax && other.xmin <= self.xmax,
            }
    }
}

/// The bounds of x and y.
#[derive(Default)]
struct Planar {
    x: Range,
    y: Range,
}

impl Coordinates for Planar {
    #[inline]
    fn push<const LITTLE: bool>(&mut self, dimensions: Dimensions, bytes: &[u8]) {
        if dimensions == Dimensions::Xy && bytes.len() >= MIN_LANES {
            let mut lanes = Lanes::<8>::default();
            lanes.push::<LITTLE>(bytes);
            self.x = self.x.join(lanes.range(0, 2));
            self.y = self.y.join(lanes.range(1, 2));
            return;
        }
        let (mut all_x, mut all_y) = (self.x, self.y);
        each_xy::<LITTLE>(dimensions, bytes, |x, y| {
            all_x.push(x);
            all_y.push(y);
        });
        (self.x, self.y) = (all_x, all_y);
    }
}

/// Minimum bytes of points for which the vectorised loop is faster.
const MIN_LANES: usize = 256;

impl Planar {
    fn rectangle(&self) -> Option<Rectangle> {
        let ((xmin, xmax), (ymin, ymax)) = (self.x.bounds()?, self.y.bounds()?);
        Some(Rectangle { xmin, ymin, xmax, ymax })
    }
}

#[inline]
fn each_xy<const LITTLE: bool>(
    dimensions: Dimensions,
    bytes: &[u8],
    mut push: impl FnMut(f64, f64),
) {
    for point in bytes.chunks_exact(dimensions.point_len()) {
        if let ([x, y, ..], _) = point.as_chunks::<8>() {
            push(coordinate::<LITTLE>(x), coordinate::<LITTLE>(y));
        }
    }
}

/// The bounds of latitudes and longitudes, and those of the longitudes of either sign.
#[derive(Default)]
struct Geodesic {
    all: Planar,
    west: Range,
    east: Range,
}

impl Coordinates for Geodesic {
    #[inline]
    fn push<const LITTLE: bool>(&mut self, dimensions: Dimensions, bytes: &[u8]) {
        each_xy::<LITTLE>(dimensions, bytes, |x, y| {
            self.all.x.push(x);
            self.all.y.push(y);
            if x < 0.0 { self.west.push(x) } else { self.east.push(x) }
        });
    }
}

/// Upper bound of the factor between the difference of two longitudes on an ellipsoid and on the
/// sphere on which its geodesics are great circles: more than 1 / (1 − flattening) of the flattest
/// ellipsoid in use.
const LONGER: f64 = 1.004;

/// Added to values that are computed in degrees, because their last digits are not exact.
const ROUNDING: f64 = 1e-9;

impl Geodesic {
    fn rectangle(&self, is_points: bool) -> Option<Rectangle> {
        let plain = self.all.rectangle()?;
        let wrapped = match (self.east.bounds(), self.west.bounds()) {
            (Some((first, _)), Some((_, last))) => Rectangle { xmin: first, xmax: last, ..plain },
            _ => plain,
        };
        let width =
            |of: &Rectangle| of.xmax - of.xmin + if of.xmin > of.xmax { 360.0 } else { 0.0 };
        let narrower = if width(&wrapped) < width(&plain) { wrapped } else { plain };
        if is_points {
            return Some(narrower);
        }
        let Rectangle { xmin, xmax, ymin, ymax } = plain;
        let bbox = BoundingBox { xmin, xmax, ymin, ymax, ..BoundingBox::default() };
        let width = width(&narrower) * LONGER;
        if width >= 180.0 || !is_on_earth(&bbox) {
            return Some(Rectangle::EVERYWHERE);
        }
        let ymin = -northernmost(-ymin, width);
        Some(Rectangle { ymin, ymax: northernmost(ymax, width), ..narrower })
    }
}

/// The northernmost latitude that an edge may reach between ends that are not north of `latitude`
/// and not more than `width` < 180 degrees of longitude apart.
fn northernmost(latitude: f64, width: f64) -> f64 {
    // South of the equator, the shortest way bends south.
    if latitude <= 0.0 || width == 0.0 {
        return latitude;
    }
    // Highest is the way between two ends at that latitude, halfway:
    // tan φ = tan φ_highest · cos(half of the difference of longitudes).
    let highest = latitude.to_radians().tan() / (width / 2.0).to_radians().cos();
    (highest.atan().to_degrees() + ROUNDING).max(latitude).min(90.0)
}
