//! [`Covering`]: columns with a box for each geometry, whose statistics prove of ranges of rows
//! that no geometry meets a rectangle.
//!
//! Spec: GeoParquet 1.1, "covering". The columns are never read: only their statistics count, in
//! the row group and in pages.
//! Trap: a geometry without a box would be lost, so that nulls of the columns must be as many as
//! those of the geometries. Nor can a box cross the antimeridian: the specification leaves such
//! geometries out, and where statistics show one, nothing is proven.

use super::facts::ColumnFacts;
use crate::format::KeyValue;
use crate::geo::{GeoMetadata, Rectangle};
use crate::schema::{Leaf, Physical, Schema};
use crate::stats::bounds::StoredBound;

/// The leaves of the boxes of a geometry column.
#[derive(Debug, Clone)]
pub(super) struct Covering {
    pub(super) xmin: usize,
    pub(super) ymin: usize,
    pub(super) xmax: usize,
    pub(super) ymax: usize,
    /// Their physical type: FLOAT or DOUBLE.
    physical: Physical,
}

impl Covering {
    /// The covering that the key `geo` names for a leaf, if that is a column with straight edges,
    /// and the covering has the columns that it must have.
    pub(super) fn find(schema: &Schema, key_values: &[KeyValue], leaf: &Leaf) -> Option<Self> {
        let geo = GeoMetadata::find(key_values).ok().flatten()?;
        let [name] = leaf.path.names() else { return None };
        let column = geo.columns.get(&**name).filter(|column| !column.has_geodesic_edges())?;
        // The boxes of rows cross the antimeridian, too, where that of all of them does.
        if column.bbox.as_ref().is_some_and(|bbox| bbox.xmin > bbox.xmax) {
            return None;
        }
        let covering = column.covering.as_ref()?;
        let find = |path: &[String]| {
            let mut node = schema.root();
            for name in path {
                node = node.children().find(|child| child.name() == name)?;
            }
            let leaf = schema.leaf(node.leaves().start).ok().filter(|_| node.is_leaf())?;
            let is_number = matches!(leaf.physical, Physical::Float | Physical::Double);
            (is_number && leaf.max_rep == 0 && leaf.logical.is_none()).then_some(leaf)
        };
        let sides = [&covering.xmin, &covering.ymin, &covering.xmax, &covering.ymax];
        let [xmin, ymin, xmax, ymax] = sides.map(|path| find(path));
        let (xmin, ymin, xmax, ymax) = (xmin?, ymin?, xmax?, ymax?);
        let physical = xmin.physical;
        let is_one = [&ymin, &xmax, &ymax].iter().all(|leaf| leaf.physical == physical);
        is_one.then_some(Self {
            xmin: xmin.index,
            ymin: ymin.index,
            xmax: xmax.index,
            ymax: ymax.index,
            physical,
        })
    }

    /// The leaves, whose statistics are wanted.
    pub(super) fn leaves(&self) -> [usize; 4] {
        [self.xmin, self.ymin, self.xmax, self.ymax]
    }

    /// Whether each geometry of a row group has a box, by the facts of the geometries and of one of
    /// the leaves.
    pub(super) fn is_complete(geometries: &ColumnFacts, leaf: &ColumnFacts) -> bool {
        let nulls = leaf.nulls.filter(|_| leaf.rows == geometries.rows);
        nulls == Some(0) || nulls.is_some_and(|nulls| geometries.nulls == Some(nulls))
    }

    /// Whether the least or the greatest sides prove that a box crosses the antimeridian: that its
    /// `xmin` is greater than its `xmax`.
    pub(super) fn wraps(&self, xmin: &ColumnFacts, xmax: &ColumnFacts) -> bool {
        let is_after = |first: &Option<StoredBound>, second: &Option<StoredBound>| {
            let number = |bound: &Option<StoredBound>| self.number(bound.as_ref()?, Round::Not);
            number(first).zip(number(second)).is_some_and(|(first, second)| first > second)
        };
        is_after(&xmin.min, &xmax.min) || is_after(&xmin.max, &xmax.max)
    }

    /// The conditions on single leaves that exclude a rectangle: for x, and for y. In each of the
    /// two, one is enough, unless the rectangle crosses the antimeridian, which needs both for x.
    pub(super) fn exclusions(&self, rectangle: &Rectangle) -> [[Exclusion; 2]; 2] {
        let Rectangle { xmin, ymin, xmax, ymax } = *rectangle;
        let above = |leaf, than| Exclusion { leaf, side: BoxSide::AllAbove(than) };
        let below = |leaf, than| Exclusion { leaf, side: BoxSide::AllBelow(than) };
        [
            [above(self.xmin, xmax), below(self.xmax, xmin)],
            [above(self.ymin, ymax), below(self.ymax, ymin)],
        ]
    }

    /// Whether the facts of its leaf prove an exclusion for all their rows.
    pub(super) fn is_excluded(&self, by: &Exclusion, facts: &ColumnFacts) -> bool {
        let least = facts.min.as_ref().and_then(|bound| self.number(bound, Round::Down));
        let greatest = facts.max.as_ref().and_then(|bound| self.number(bound, Round::Up));
        // Bounds that exclude every value are wrong.
        if least.zip(greatest).is_some_and(|(least, greatest)| least > greatest) {
            return false;
        }
        match by.side {
            BoxSide::AllAbove(max) => least.is_some_and(|least| least > max),
            BoxSide::AllBelow(min) => greatest.is_some_and(|greatest| greatest < min),
        }
    }

    /// The number of a bound; a FLOAT is moved by one step, because a writer may have rounded the
    /// side of a box in either direction.
    fn number(&self, bound: &StoredBound, round: Round) -> Option<f64> {
        let number = match self.physical {
            Physical::Double => f64::from_le_bytes(bound.bytes.as_slice().try_into().ok()?),
            Physical::Float => {
                let number = f32::from_le_bytes(bound.bytes.as_slice().try_into().ok()?);
                f64::from(match round {
                    Round::Down => number.next_down(),
                    Round::Up => number.next_up(),
                    Round::Not => number,
                })
            }
            _ => return None,
        };
        (!number.is_nan()).then_some(number)
    }
}

/// A condition on one leaf under which no row meets a rectangle.
#[derive(Debug, Clone, Copy)]
pub(super) struct Exclusion {
    pub(super) leaf: usize,
    side: BoxSide,
}

#[derive(Debug, Clone, Copy)]
enum BoxSide {
    AllAbove(f64),
    AllBelow(f64),
}

#[derive(Debug, Clone, Copy)]
enum Round {
    Down,
    Up,
    Not,
}
