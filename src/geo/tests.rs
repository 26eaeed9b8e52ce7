//! Tests WKB that is built piece by piece against a simple, slow reader, and mutations of it.

use fastrand::Rng;

use super::wkb::{Coordinates, Dimensions, coordinate, visit};
use super::{Edges, GeospatialCollector, Rectangle, to_wkt};
use crate::error::{ErrorKind, Spec};
use crate::format::{BoundingBox, GeospatialStatistics};

/// A geometry as a tree.
#[derive(Debug, Clone)]
enum Shape {
    Point(Vec<f64>),
    Line(Vec<Vec<f64>>),
    Polygon(Vec<Vec<Vec<f64>>>),
    /// Base code, and the parts.
    Many(u32, Vec<Geometry>),
}

#[derive(Debug, Clone)]
struct Geometry {
    /// 0, 1000, 2000 or 3000.
    dimensions: u32,
    little: bool,
    shape: Shape,
}

impl Geometry {
    fn new(dimensions: u32, shape: Shape) -> Self {
        Self { dimensions, little: true, shape }
    }

    fn code(&self) -> u32 {
        self.dimensions
            + match &self.shape {
                Shape::Point(_) => 1,
                Shape::Line(_) => 2,
                Shape::Polygon(_) => 3,
                Shape::Many(code, _) => *code,
            }
    }

    fn wkb(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.write(&mut out);
        out
    }

    fn write(&self, out: &mut Vec<u8>) {
        let int = |n: usize, out: &mut Vec<u8>| {
            let n = u32::try_from(n).unwrap();
            out.extend(if self.little { n.to_le_bytes() } else { n.to_be_bytes() });
        };
        let point = |point: &Vec<f64>, out: &mut Vec<u8>| {
            for v in point {
                out.extend(if self.little { v.to_le_bytes() } else { v.to_be_bytes() });
            }
        };
        let line = |points: &Vec<Vec<f64>>, out: &mut Vec<u8>| {
            int(points.len(), out);
            points.iter().for_each(|p| point(p, out));
        };
        out.push(u8::from(self.little));
        int(self.code() as usize, out);
        match &self.shape {
            Shape::Point(p) => point(p, out),
            Shape::Line(points) => line(points, out),
            Shape::Polygon(rings) => {
                int(rings.len(), out);
                rings.iter().for_each(|ring| line(ring, out));
            }
            Shape::Many(_, parts) => {
                int(parts.len(), out);
                parts.iter().for_each(|part| part.write(out));
            }
        }
    }

    /// All points with the dimensions that they have.
    fn points(&self, out: &mut Vec<(u32, Vec<f64>)>) {
        match &self.shape {
            Shape::Point(p) => out.push((self.dimensions, p.clone())),
            Shape::Line(points) => out.extend(points.iter().map(|p| (self.dimensions, p.clone()))),
            Shape::Polygon(rings) => {
                out.extend(rings.iter().flatten().map(|p| (self.dimensions, p.clone())));
            }
            Shape::Many(_, parts) => parts.iter().for_each(|part| part.points(out)),
        }
    }
}

fn width(dimensions: u32) -> usize {
    [2, 3, 3, 4][dimensions as usize / 1000]
}

fn value(rng: &mut Rng) -> f64 {
    match rng.u8(0..40) {
        0 => f64::NAN,
        1 => f64::INFINITY,
        2 => f64::NEG_INFINITY,
        3 => -0.0,
        _ => f64::from(rng.i16(-1000..1000)) / 8.0,
    }
}

fn point(rng: &mut Rng, dimensions: u32) -> Vec<f64> {
    let empty = rng.u8(0..20) == 0;
    (0..width(dimensions)).map(|_| if empty { f64::NAN } else { value(rng) }).collect()
}

fn line(rng: &mut Rng, dimensions: u32) -> Vec<Vec<f64>> {
    let max = [0, 3, 5, 12, 40][rng.usize(0..5)];
    (0..rng.usize(0..=max)).map(|_| point(rng, dimensions)).collect()
}

fn geometry(rng: &mut Rng, base: u32, dimensions: u32, depth: usize) -> Geometry {
    let shape = match base {
        1 => Shape::Point(point(rng, dimensions)),
        2 => Shape::Line(line(rng, dimensions)),
        3 => Shape::Polygon((0..rng.usize(0..3)).map(|_| line(rng, dimensions)).collect()),
        7 => {
            let n = if depth > 4 { 0 } else { rng.usize(0..4) };
            let part = |rng: &mut Rng| {
                let base = rng.u32(1..=7);
                geometry(rng, base, dimensions, depth + 1)
            };
            Shape::Many(7, (0..n).map(|_| part(rng)).collect())
        }
        of => Shape::Many(
            of,
            (0..rng.usize(0..4)).map(|_| geometry(rng, of - 3, dimensions, depth)).collect(),
        ),
    };
    Geometry { dimensions, little: rng.bool(), shape }
}

fn any_geometry(rng: &mut Rng) -> Geometry {
    let (base, dimensions) = (rng.u32(1..=7), rng.u32(0..4) * 1000);
    geometry(rng, base, dimensions, 0)
}

/// The expected statistics, computed the slow way.
fn naive(geometries: &[Geometry]) -> Option<GeospatialStatistics> {
    if geometries.is_empty() {
        return None;
    }
    let mut codes: Vec<i32> = geometries.iter().map(|g| g.code() as i32).collect();
    codes.sort_unstable();
    codes.dedup();
    let mut points = Vec::new();
    geometries.iter().for_each(|g| g.points(&mut points));
    let bounds = |place: fn(u32) -> Option<usize>| {
        let values = points.iter().filter_map(|(d, p)| Some(p[place(*d)?]));
        let values: Vec<f64> = values.filter(|v| !v.is_nan()).collect();
        let least = values.iter().copied().reduce(f64::min)?;
        Some((least, values.iter().copied().reduce(f64::max)?))
    };
    let z = bounds(|d| (d == 1000 || d == 3000).then_some(2));
    let m = bounds(|d| match d {
        2000 => Some(2),
        3000 => Some(3),
        _ => None,
    });
    let bbox = bounds(|_| Some(0)).zip(bounds(|_| Some(1))).map(|(x, y)| BoundingBox {
        xmin: x.0,
        xmax: x.1,
        ymin: y.0,
        ymax: y.1,
        zmin: z.map(|z| z.0),
        zmax: z.map(|z| z.1),
        mmin: m.map(|m| m.0),
        mmax: m.map(|m| m.1),
        ..BoundingBox::default()
    });
    Some(GeospatialStatistics {
        bbox,
        geospatial_types: Some(codes),
        ..GeospatialStatistics::default()
    })
}

fn collected(values: &[Vec<u8>], edges: Edges) -> Option<GeospatialStatistics> {
    let mut collector = GeospatialCollector::new(edges);
    values.iter().for_each(|wkb| collector.push(wkb).unwrap());
    collector.finish()
}

fn cases(default: u64) -> u64 {
    std::env::var("MARQUETRY_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(default)
}

#[test]
fn a_point_of_the_specification_is_a_box_of_its_own() {
    let wkb = Geometry::new(0, Shape::Point(vec![30.0, 10.0])).wkb();
    assert_eq!(wkb.len(), 21);
    let found = collected(&[wkb], Edges::Planar).unwrap();
    let bbox = found.bbox.unwrap();
    assert_eq!((bbox.xmin, bbox.xmax, bbox.ymin, bbox.ymax), (30.0, 30.0, 10.0, 10.0));
    assert_eq!((bbox.zmin, bbox.mmax), (None, None));
    assert_eq!(found.geospatial_types, Some(vec![1]));
}

#[test]
fn statistics_are_those_of_a_slow_twin() {
    let seed = 1612;
    let mut rng = Rng::with_seed(seed);
    for case in 0..cases(600) {
        let geometries: Vec<Geometry> =
            (0..rng.usize(0..12)).map(|_| any_geometry(&mut rng)).collect();
        let values: Vec<Vec<u8>> = geometries.iter().map(Geometry::wkb).collect();
        let expected = naive(&geometries);
        assert_eq!(collected(&values, Edges::Planar), expected, "seed {seed}, case {case}");
        // In parts that are joined afterwards.
        let cut = rng.usize(0..=values.len());
        let mut all = GeospatialCollector::new(Edges::Planar);
        for part in [&values[cut..], &values[..cut]] {
            let mut collector = GeospatialCollector::new(Edges::Planar);
            part.iter().for_each(|wkb| collector.push(wkb).unwrap());
            all.merge(&collector);
        }
        assert_eq!(all.finish(), expected, "seed {seed}, case {case}");
        for (geometry, wkb) in geometries.iter().zip(&values) {
            let bbox = naive(std::slice::from_ref(geometry)).and_then(|found| found.bbox);
            let around = bbox.map(|b| Rectangle::new(b.xmin, b.ymin, b.xmax, b.ymax));
            assert_eq!(Rectangle::around(wkb, Edges::Planar).unwrap(), around, "seed {seed}");
            let whole = to_wkt(wkb, usize::MAX).unwrap();
            let cut = to_wkt(wkb, 10).unwrap();
            assert!(
                whole.len() <= 10 || cut.strip_suffix('…').is_some_and(|c| whole.starts_with(c))
            );
            let brackets = |c| whole.matches(c).count();
            assert_eq!(brackets('('), brackets(')'), "{whole}");
        }
    }
}

#[test]
fn every_type_has_its_code_in_both_byte_orders() {
    let mut rng = Rng::with_seed(7);
    for dimensions in [0, 1000, 2000, 3000] {
        for base in 1..=7 {
            for little in [true, false] {
                let geometry = Geometry { little, ..geometry(&mut rng, base, dimensions, 0) };
                let found = collected(&[geometry.wkb()], Edges::Planar).unwrap();
                assert_eq!(found.geospatial_types, Some(vec![(dimensions + base) as i32]));
            }
        }
    }
}

#[test]
fn nan_bounds_nothing_and_nothing_is_bounded_by_it() {
    let nan = f64::NAN;
    let point = |p: &[f64]| Geometry::new(0, Shape::Point(p.to_vec())).wkb();
    // Only empty values: types, but no box.
    let found = collected(&[point(&[nan, nan])], Edges::Planar).unwrap();
    assert_eq!((found.bbox, found.geospatial_types), (None, Some(vec![1])));
    // x in one value and y in another are enough; one of them alone is not.
    assert_eq!(collected(&[point(&[1.0, nan])], Edges::Planar).unwrap().bbox, None);
    let found = collected(&[point(&[1.0, nan]), point(&[nan, 2.0])], Edges::Planar);
    let bbox = found.unwrap().bbox.unwrap();
    assert_eq!((bbox.xmin, bbox.xmax, bbox.ymin, bbox.ymax), (1.0, 1.0, 2.0, 2.0));
    // Z without values is left out.
    let flat = Geometry::new(3000, Shape::Point(vec![1.0, 2.0, nan, 4.0])).wkb();
    let bbox = collected(&[flat], Edges::Planar).unwrap().bbox.unwrap();
    assert_eq!((bbox.zmin, bbox.zmax, bbox.mmin, bbox.mmax), (None, None, Some(4.0), Some(4.0)));
    assert_eq!(collected(&[], Edges::Planar), None);
}

#[test]
fn a_geography_has_a_box_of_points_only() {
    let point = |x, y| Geometry::new(0, Shape::Point(vec![x, y]));
    let many = Geometry::new(0, Shape::Many(4, vec![point(5.0, 6.0), point(7.0, 8.0)]));
    let line = Geometry::new(0, Shape::Line(vec![vec![0.0, 0.0], vec![90.0, 0.0]]));
    let of = |all: &[&Geometry]| {
        let values: Vec<Vec<u8>> = all.iter().map(|g| g.wkb()).collect();
        let found = collected(&values, Edges::Geodesic).unwrap();
        (found.bbox.map(|b| (b.xmin, b.xmax)), found.geospatial_types.unwrap())
    };
    assert_eq!(of(&[&point(1.0, 2.0), &many]), (Some((1.0, 7.0)), vec![1, 4]));
    assert_eq!(of(&[&point(1.0, 2.0), &line]), (None, vec![1, 2]));
    // Not a longitude, not a latitude.
    assert_eq!(of(&[&point(181.0, 0.0)]).0, None);
    assert_eq!(of(&[&point(0.0, -91.0)]).0, None);
}

#[test]
fn what_is_no_iso_wkb_is_malformed() {
    let point = Geometry::new(0, Shape::Point(vec![1.0, 2.0])).wkb();
    let code = |code: u32| [&[1][..], &code.to_le_bytes(), &[0; 64]].concat();
    let many = |n: u32| [&[1, 7, 0, 0, 0][..], &n.to_le_bytes(), &[0; 20]].concat();
    let line_in_points = {
        let line = Geometry::new(0, Shape::Line(vec![vec![1.0, 1.0], vec![2.0, 2.0]]));
        Geometry::new(0, Shape::Many(4, vec![line])).wkb()
    };
    let cases: Vec<(&str, Vec<u8>, &str)> = vec![
        ("nothing", vec![], ""),
        ("byte order", [&[2], &point[1..]].concat(), "byte order"),
        ("cut", point[..20].to_vec(), ""),
        ("more", [&point[..], &[0]].concat(), "1 bytes after the end"),
        ("type 0", code(0), "type"),
        ("type 8", code(8), "type"),
        ("type 4001", code(4001), "type"),
        ("a triangle", code(17), "type"),
        ("EWKB with Z", code(0x8000_0001), "EWKB"),
        ("EWKB with a coordinate system", code(0x2000_0001), "EWKB"),
        ("points", [&[1, 2, 0, 0, 0][..], &[255; 4], &[0; 32]].concat(), "points"),
        ("rings", [&[1, 3, 0, 0, 0][..], &[255; 4], &[0; 32]].concat(), "rings"),
        ("geometries", many(u32::MAX), "geometries"),
        ("three, and bytes for two", many(3), "geometries"),
        ("a line among points", line_in_points, "a part of a MULTIPOINT"),
    ];
    for (what, wkb, text) in cases {
        let mut collector = GeospatialCollector::new(Edges::Planar);
        collector.push(&point).unwrap();
        let error = collector.push(&wkb).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Malformed(Spec::Geospatial), "{what}");
        assert!(error.message().contains(text), "{what}: {error}");
        assert_eq!(collector.finish(), None, "{what}: nothing is said of such a column");
        assert!(Rectangle::around(&wkb, Edges::Geodesic).is_err(), "{what}");
    }
}

#[test]
fn collections_a_hundred_thousand_deep_take_no_stack() {
    let mut wkb = Vec::new();
    for _ in 0..100_000 {
        wkb.extend([1, 7, 0, 0, 0, 1, 0, 0, 0]);
    }
    let open = wkb.clone();
    wkb.extend(Geometry::new(0, Shape::Point(vec![1.0, 2.0])).wkb());
    let found = Rectangle::around(&wkb, Edges::Planar).unwrap();
    assert_eq!(found, Some(Rectangle::new(1.0, 2.0, 1.0, 2.0)));
    assert!(Rectangle::around(&open, Edges::Planar).is_err());
    assert!(to_wkt(&wkb, 1_000).unwrap().ends_with('…'));
    assert!(to_wkt(&wkb, usize::MAX).unwrap().ends_with("))))"));
}

#[test]
fn collections_that_claim_more_than_there_is_end_at_once() {
    // Each says that it has as many parts as the bytes left could be.
    let mut wkb = Vec::new();
    for left in (0..20_000u32).rev() {
        wkb.extend([&[1, 7, 0, 0, 0][..], &left.to_le_bytes()].concat());
    }
    assert!(Rectangle::around(&wkb, Edges::Planar).is_err());
}

/// Counts what it is given.
#[derive(Default)]
struct Sum(usize);

impl Coordinates for Sum {
    fn push<const LITTLE: bool>(&mut self, dimensions: Dimensions, bytes: &[u8]) {
        assert_eq!(bytes.len() % dimensions.point_len(), 0);
        self.0 += bytes.chunks_exact(8).filter(|c| coordinate::<LITTLE>(c).is_finite()).count();
    }
}

#[test]
fn mutants_are_read_or_refused() {
    let seed = 88;
    let mut rng = Rng::with_seed(seed);
    let (mut read, mut refused) = (0u64, 0u64);
    for case in 0..cases(20_000) {
        let mut wkb = any_geometry(&mut rng).wkb();
        for _ in 0..rng.usize(1..4) {
            if wkb.is_empty() {
                break;
            }
            let at = rng.usize(0..wkb.len());
            match rng.u8(0..7) {
                0 => wkb[at] ^= 1 << rng.u8(0..8),
                1 => wkb[at] = rng.u8(..),
                2 => wkb.truncate(at),
                3 => wkb.insert(at, rng.u8(..)),
                4 => drop(wkb.splice(at..(at + 4).min(wkb.len()), [255, 255, 255, rng.u8(..)])),
                5 => {
                    let from = rng.usize(0..=at);
                    let copy = wkb[from..at].to_vec();
                    wkb.extend(copy);
                }
                _ => drop(wkb.drain(at..(at + rng.usize(1..10)).min(wkb.len()))),
            }
        }
        let mut sum = Sum::default();
        let visited = visit(&wkb, &mut sum);
        assert!(sum.0 * 8 <= wkb.len(), "seed {seed}, case {case}: more than there is");
        let mut collector = GeospatialCollector::new(Edges::Geodesic);
        assert_eq!(collector.push(&wkb).is_ok(), visited.is_ok(), "seed {seed}, case {case}");
        for edges in [Edges::Planar, Edges::Geodesic] {
            let around = Rectangle::around(&wkb, edges);
            assert_eq!(around.is_ok(), visited.is_ok(), "seed {seed}, case {case}");
            if let Ok(Some(around)) = around {
                assert!(around.check().is_ok(), "seed {seed}, case {case}: {around:?}");
            }
        }
        let text = to_wkt(&wkb, 200);
        assert!(text.is_ok() || visited.is_err(), "seed {seed}, case {case}");
        match visited {
            Ok(_) => read += 1,
            Err(e) => {
                assert_eq!(e.kind(), ErrorKind::Malformed(Spec::Geospatial), "seed {seed}");
                refused += 1;
            }
        }
        if let Some(bbox) = collector.finish().and_then(|found| found.bbox) {
            let sides = [bbox.xmin, bbox.xmax, bbox.ymin, bbox.ymax];
            assert!(sides.iter().all(|side| !side.is_nan()), "seed {seed}, case {case}");
        }
    }
    println!("{read} mutants read, {refused} refused");
    assert!(read > 0 && refused > 0);
}

#[test]
fn texts_of_geometries() {
    let p = |x: f64, y: f64| vec![x, y];
    let point = Geometry::new(0, Shape::Point(p(30.0, 10.0)));
    let line = Geometry::new(0, Shape::Line(vec![p(30.0, 10.0), p(10.0, 30.5)]));
    let empty = Geometry::new(1000, Shape::Point(vec![f64::NAN; 3]));
    let polygon = Shape::Polygon(vec![vec![p(0.0, 0.0), p(1.0, 0.0)], vec![p(-1.0, 2.0)]]);
    let polygon = Geometry::new(0, polygon);
    let points = Geometry::new(0, Shape::Many(4, vec![point.clone(), point.clone()]));
    let polygons = Geometry::new(0, Shape::Many(6, vec![polygon.clone()]));
    let nothing = Geometry::new(3000, Shape::Many(7, vec![]));
    let all = vec![point.clone(), points.clone(), nothing.clone(), empty.clone()];
    let all = Geometry { little: false, ..Geometry::new(0, Shape::Many(7, all)) };
    for (geometry, text) in [
        (&point, "POINT (30 10)"),
        (&line, "LINESTRING (30 10, 10 30.5)"),
        (&empty, "POINT Z EMPTY"),
        (&polygon, "POLYGON ((0 0, 1 0), (-1 2))"),
        (&points, "MULTIPOINT ((30 10), (30 10))"),
        (&polygons, "MULTIPOLYGON (((0 0, 1 0), (-1 2)))"),
        (&nothing, "GEOMETRYCOLLECTION ZM EMPTY"),
        (
            &all,
            "GEOMETRYCOLLECTION (POINT (30 10), MULTIPOINT ((30 10), (30 10)), \
             GEOMETRYCOLLECTION ZM EMPTY, POINT Z EMPTY)",
        ),
    ] {
        assert_eq!(to_wkt(&geometry.wkb(), 1_000).unwrap(), text);
    }
    assert_eq!(to_wkt(&line.wkb(), 15).unwrap(), "LINESTRING (30 …");
}

#[test]
fn boxes_that_wrap_meet_those_at_their_ends() {
    let plain = |xmin, xmax| Rectangle::new(xmin, 0.0, xmax, 1.0);
    let naive = |a: &Rectangle, b: &Rectangle| {
        let inside = |r: &Rectangle, x: f64| match r.xmin > r.xmax {
            true => x >= r.xmin || x <= r.xmax,
            false => x >= r.xmin && x <= r.xmax,
        };
        (-40..=40).any(|x| inside(a, f64::from(x) / 2.0) && inside(b, f64::from(x) / 2.0))
    };
    let mut met = 0;
    for i in 0..10_000i32 {
        let of = |n: i32| f64::from(n % 10) * 2.0 - 9.0;
        let (a, b) = (plain(of(i), of(i / 10)), plain(of(i / 100), of(i / 1000)));
        assert_eq!(a.intersects(&b), naive(&a, &b), "{a:?} {b:?}");
        assert_eq!(a.intersects(&b), b.intersects(&a));
        met += u32::from(a.intersects(&b));
    }
    assert!(met > 1_000 && met < 9_000, "{met}");
    assert!(!plain(0.0, 1.0).intersects(&Rectangle::new(0.0, 2.0, 1.0, 3.0)));
}

#[test]
fn edges_on_the_surface_lie_in_the_box_around_their_ends() {
    let seed = 360;
    let mut rng = Rng::with_seed(seed);
    for _ in 0..cases(400) {
        // Ends all over the earth, and a point on the great circle between them.
        let mut end = |far: f64| {
            let lat = (rng.f64() * 2.0 - 1.0) * 89.0;
            [((rng.f64() * 2.0 - 1.0) * far).clamp(-180.0, 180.0), lat]
        };
        let (a, b) = (end(180.0), end(180.0));
        let vector = |p: [f64; 2]| {
            let (lon, lat) = (p[0].to_radians(), p[1].to_radians());
            [lat.cos() * lon.cos(), lat.cos() * lon.sin(), lat.sin()]
        };
        let (from, to) = (vector(a), vector(b));
        let line = Geometry::new(0, Shape::Line(vec![a.to_vec(), b.to_vec()])).wkb();
        let around = Rectangle::around(&line, Edges::Geodesic).unwrap().unwrap();
        for step in 0..=16 {
            let t = f64::from(step) / 16.0;
            let at: Vec<f64> = (0..3).map(|i| from[i] * (1.0 - t) + to[i] * t).collect();
            let long = at.iter().map(|v| v * v).sum::<f64>().sqrt();
            if long < 1e-6 {
                continue;
            }
            let (x, y) = (at[1].atan2(at[0]).to_degrees(), (at[2] / long).asin().to_degrees());
            let slack = 1e-7;
            let near = Rectangle::new(x - slack, y - slack, x + slack, y + slack);
            assert!(around.intersects(&near), "seed {seed}: {a:?} {b:?} {around:?} {near:?}");
        }
    }
    let line = |points: &[[f64; 2]]| {
        let points = points.iter().map(|p| p.to_vec()).collect();
        let wkb = Geometry::new(0, Shape::Line(points)).wkb();
        Rectangle::around(&wkb, Edges::Geodesic).unwrap().unwrap()
    };
    // From Amsterdam to San Francisco the way leads over Greenland.
    let north = line(&[[4.9, 52.4], [-122.4, 37.8]]);
    assert!(north.ymax > 65.0 && north.xmin == -122.4 && north.xmax == 4.9, "{north:?}");
    let wraps = line(&[[179.0, -17.0], [-179.0, -17.0]]);
    assert_eq!((wraps.xmin, wraps.xmax), (179.0, -179.0));
    assert!(wraps.ymin < -17.0 && wraps.ymin > -17.01 && wraps.ymax == -17.0, "{wraps:?}");
    assert_eq!(line(&[[-120.0, 80.0], [0.0, 80.0], [120.0, 80.0]]), Rectangle::EVERYWHERE);
}

#[test]
fn statistics_that_are_no_box_are_not_believed() {
    let bbox =
        |xmin, xmax, ymin, ymax| BoundingBox { xmin, xmax, ymin, ymax, ..Default::default() };
    let of = |bbox, types: &[i32], edges| {
        let geospatial_types = Some(types.to_vec());
        let found =
            GeospatialStatistics { bbox: Some(bbox), geospatial_types, ..Default::default() };
        Rectangle::from_statistics(&found, edges)
    };
    let (inf, nan) = (f64::INFINITY, f64::NAN);
    for (bad, edges) in [
        (bbox(nan, 1.0, 0.0, 1.0), Edges::Planar),
        (bbox(0.0, 1.0, nan, nan), Edges::Planar),
        (bbox(0.0, 1.0, 2.0, 1.0), Edges::Planar),
        (bbox(inf, -inf, inf, -inf), Edges::Planar),
        (bbox(inf, -inf, 0.0, 1.0), Edges::Geodesic),
        (bbox(170.0, 190.0, 0.0, 1.0), Edges::Geodesic),
        (bbox(0.0, 1.0, -100.0, 1.0), Edges::Geodesic),
    ] {
        assert_eq!(of(bad.clone(), &[1], edges), None, "{bad:?}");
    }
    let wraps = || bbox(170.0, -170.0, 0.0, 1.0);
    let found = Some(Rectangle::new(170.0, 0.0, -170.0, 1.0));
    assert_eq!(of(wraps(), &[1, 3001], Edges::Planar), found);
    assert_eq!(of(wraps(), &[3], Edges::Geodesic), found);
    // A planar value may have points on both sides of the gap, and so a box across it.
    for types in [&[1, 3][..], &[]] {
        let found = of(wraps(), types, Edges::Planar).unwrap();
        assert_eq!((found.xmin, found.xmax, found.ymin, found.ymax), (-inf, inf, 0.0, 1.0));
    }
}
