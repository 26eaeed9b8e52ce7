//! [`least_x_between`] finds what a box around the antimeridian must not have.
//!
//! Spec: Geospatial.md, "Bounding Box". Used by `check`.

use super::bbox::Range;
use super::wkb::{Coordinates, Dimensions, coordinate, visit};
use crate::error::Result;

/// The numbers that a box with these sides is without, if it is one around the antimeridian.
pub(crate) fn gap(xmin: f64, xmax: f64) -> Option<(f64, f64)> {
    (xmin > xmax).then_some((xmax, xmin))
}

/// The least x of a geometry in a gap, its ends left out.
///
/// # Errors
/// `Malformed(Geospatial)` if `wkb` is no ISO WKB.
pub(crate) fn least_x_between(wkb: &[u8], (after, before): (f64, f64)) -> Result<Option<f64>> {
    let mut found = XsBetween { after, before, xs: Range::default() };
    visit(wkb, &mut found)?;
    Ok(found.xs.bounds().map(|(least, _)| least))
}

/// The bounds of those x that lie between two numbers.
struct XsBetween {
    after: f64,
    before: f64,
    xs: Range,
}

impl Coordinates for XsBetween {
    fn push<const LITTLE: bool>(&mut self, dimensions: Dimensions, bytes: &[u8]) {
        for x in bytes.as_chunks::<8>().0.iter().step_by(dimensions.count()) {
            let x = coordinate::<LITTLE>(x);
            if self.after < x && x < self.before {
                self.xs.push(x);
            }
        }
    }
}
