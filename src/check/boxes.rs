//! [`side_without`] compares boxes of geometries.

use crate::format::BoundingBox;

/// A side of the box `stated` that a part of the box `found` is outside of, with that side of both.
pub(super) fn side_without(
    stated: &BoundingBox,
    found: &BoundingBox,
) -> Option<(&'static str, f64, f64)> {
    // A box around the antimeridian has what is east of the one, or west of the other.
    let wraps = stated.xmin > stated.xmax;
    let x = [("xmin", stated.xmin, found.xmin, false), ("xmax", stated.xmax, found.xmax, true)];
    let y = [("ymin", stated.ymin, found.ymin, false), ("ymax", stated.ymax, found.ymax, true)];
    let pair = |name, stated: Option<f64>, found: Option<f64>, is_max| {
        Some((name, stated?, found?, is_max))
    };
    let others = [
        pair("zmin", stated.zmin, found.zmin, false),
        pair("zmax", stated.zmax, found.zmax, true),
        pair("mmin", stated.mmin, found.mmin, false),
        pair("mmax", stated.mmax, found.mmax, true),
    ];
    let x = x.into_iter().filter(|_| !wraps);
    let sides = x.chain(y).chain(others.into_iter().flatten());
    sides
        .filter(|(_, stated, found, is_max)| if *is_max { stated < found } else { stated > found })
        .map(|(name, stated, found, _)| (name, stated, found))
        .next()
}
