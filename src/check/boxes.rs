//! [`BoxedGeometries`]: geometries, and the box that is stated of them.
//!
//! Spec: Geospatial.md, "Bounding Box". Trap: a box around the antimeridian has what is east of its
//! one side or west of the other, so that the bounds of all x do not tell whether it is true.

use crate::error::Result;
use crate::format::{BoundingBox, GeospatialStatistics};
use crate::geo::gap::{gap, least_x_between};
use crate::geo::{Edges, GeospatialCollector};

/// Collects geometries that are compared with a box.
pub(super) struct BoxedGeometries {
    collector: GeospatialCollector,
    /// The numbers between which no x may be, if the box is one around the antimeridian.
    gap: Option<(f64, f64)>,
    /// The least x that is there nevertheless.
    in_gap: Option<f64>,
}

impl BoxedGeometries {
    /// Of the geometries that this box is stated of, if one is.
    pub(super) fn new(edges: Edges, stated: Option<&BoundingBox>) -> Self {
        let gap = stated.and_then(|of| gap(of.xmin, of.xmax));
        Self { collector: GeospatialCollector::new(edges), gap, in_gap: None }
    }

    /// Adds a value.
    ///
    /// # Errors
    /// As [`GeospatialCollector::push`].
    pub(super) fn push(&mut self, wkb: &[u8]) -> Result<()> {
        self.collector.push(wkb)?;
        if let Some(gap) = self.gap
            && let Some(x) = least_x_between(wkb, gap)?
        {
            self.in_gap = Some(self.in_gap.map_or(x, |least| least.min(x)));
        }
        Ok(())
    }

    /// Their statistics, as by [`GeospatialCollector::finish`].
    pub(super) fn finish(&self) -> Option<GeospatialStatistics> {
        self.collector.finish()
    }

    /// A side of the box `stated` that a geometry is outside of, with that side of both. `found` is
    /// their box.
    pub(super) fn side_without(
        &self,
        stated: &BoundingBox,
        found: &BoundingBox,
    ) -> Option<(&'static str, f64, f64)> {
        let y = [("ymin", stated.ymin, found.ymin, false), ("ymax", stated.ymax, found.ymax, true)];
        let x = [("xmin", stated.xmin, found.xmin, false), ("xmax", stated.xmax, found.xmax, true)];
        let pair = |name, stated: Option<f64>, found: Option<f64>, is_max| {
            Some((name, stated?, found?, is_max))
        };
        let others = [
            pair("zmin", stated.zmin, found.zmin, false),
            pair("zmax", stated.zmax, found.zmax, true),
            pair("mmin", stated.mmin, found.mmin, false),
            pair("mmax", stated.mmax, found.mmax, true),
        ];
        let in_gap = self.in_gap.map(|x| ("xmin", stated.xmin, x));
        let x = x.into_iter().filter(|_| self.gap.is_none());
        let sides = x.chain(y).chain(others.into_iter().flatten());
        let is_without = |(_, stated, found, is_max): &(_, f64, f64, bool)| {
            if *is_max { stated < found } else { stated > found }
        };
        let without =
            sides.filter(is_without).map(|(name, stated, found, _)| (name, stated, found));
        in_gap.into_iter().chain(without).next()
    }
}
