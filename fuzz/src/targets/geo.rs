//! Well-known binary: rectangle, bounding box and text agree on what is well formed.

use marquetry::geo::{Edges, GeospatialCollector, Rectangle, to_wkt};

use super::reading::within_memory;
use crate::input::{Input, Output};

pub fn run(data: &[u8]) {
    let mut input = Input::new(data);
    let edges = input.pick(&[Edges::Planar, Edges::Geodesic]);
    let (first, second) = (input.part(), input.rest());
    within_memory(data.len(), || {
        let mut both = GeospatialCollector::new(edges);
        let (a, b) = (shape(first, edges, &mut both), shape(second, edges, &mut both));
        let mut merged = GeospatialCollector::new(edges);
        for part in [a, b].into_iter().flatten() {
            merged.merge(&part);
        }
        let (both, merged) = (both.finish(), merged.finish());
        assert_eq!(format!("{both:?}"), format!("{merged:?}"));
    });
}

/// The statistics of one shape, which `both` has too; `None` if it is malformed.
fn shape(wkb: &[u8], edges: Edges, both: &mut GeospatialCollector) -> Option<GeospatialCollector> {
    let around = Rectangle::around(wkb, edges);
    let mut alone = GeospatialCollector::new(edges);
    let pushed = alone.push(wkb);
    assert_eq!(around.is_ok(), pushed.is_ok(), "{around:?} {pushed:?}");
    let text = to_wkt(wkb, 1000);
    if pushed.is_err() {
        return None;
    }
    both.push(wkb).expect("what is well formed");
    let statistics = alone.finish().expect("statistics of one shape");
    assert!(text.is_ok(), "{text:?}");
    let around = around.expect("what is well formed");
    if let (Edges::Planar, Some(rectangle), Some(bbox)) = (edges, around, &statistics.bbox) {
        let found = [rectangle.xmin, rectangle.xmax, rectangle.ymin, rectangle.ymax];
        assert_eq!(found, [bbox.xmin, bbox.xmax, bbox.ymin, bbox.ymax]);
        assert!(rectangle.intersects(&rectangle), "{rectangle:?}");
    }
    Some(alone)
}

fn point(code: u32, ordinates: &[f64]) -> Vec<u8> {
    let mut out = vec![1];
    out.extend(code.to_le_bytes());
    ordinates.iter().for_each(|ordinate| out.extend(ordinate.to_le_bytes()));
    out
}

fn several(code: u32, parts: &[Vec<u8>]) -> Vec<u8> {
    let mut out = vec![1];
    out.extend(code.to_le_bytes());
    out.extend(u32::try_from(parts.len()).expect("few").to_le_bytes());
    parts.iter().for_each(|part| out.extend(part));
    out
}

pub fn seeds() -> Vec<Vec<u8>> {
    let ordinates = |numbers: &[f64]| -> Vec<u8> {
        numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
    };
    let ring = [&4u32.to_le_bytes()[..], &ordinates(&[0., 0., 1., 0., 1., 1., 0., 0.])].concat();
    let mut big_endian = vec![0, 0, 0, 0, 1];
    big_endian.extend([1.5f64, -2.5].iter().flat_map(|number| number.to_be_bytes()));
    let shapes = [
        point(1, &[1., 2.]),
        point(1, &[f64::NAN, f64::NAN]),
        point(1001, &[170., 2., 3.]),
        point(2001, &[-170., 2., 3.]),
        point(3001, &[1., 2., 3., 4.]),
        several(2, &[ordinates(&[1., 2.]), ordinates(&[-3., 4.])]),
        several(3, &[ring]),
        several(4, &[point(1, &[1., 2.]), point(1, &[3., -4.])]),
        several(5, &[several(2, &[ordinates(&[1., 2.]), ordinates(&[3., 4.])])]),
        several(7, &[point(1, &[9., 9.]), several(7, &[])]),
        big_endian,
    ];
    let mut seeds = Vec::new();
    for edges in [0, 1] {
        for (i, shape) in shapes.iter().enumerate() {
            let other = &shapes[(i + 1) % shapes.len()];
            seeds.push(Output::default().u8(edges).part(shape).rest(other).bytes());
        }
    }
    seeds
}
