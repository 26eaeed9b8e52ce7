//! Geospatial statistics: the box around all values of a column, and their types; us beside the
//! `parquet-geospatial` crate 60.1, which the writer of the `parquet` crate collects them with, in
//! turns, in one process. `cargo bench --bench geo` prints nanoseconds a value, a median over
//! rounds, and the ratio theirs / ours.

#![allow(clippy::cast_possible_truncation, reason = "a bench makes its own data")]

use std::hint::black_box;
use std::time::Instant;

use marquetry::geo::{Edges, GeospatialCollector, Rectangle};
use parquet_geospatial::bounding::GeometryBounder;
use parquet_geospatial::interval::IntervalTrait;

/// Pairs of runs.
const ROUNDS: usize = 9;

fn main() {
    let mut rng = fastrand::Rng::with_seed(1);
    println!(
        "| values | bytes each | parquet-geospatial 60.1, ns | ours, ns | ratio | box of a value, ns |"
    );
    println!("|---|--:|--:|--:|--:|--:|");
    row("1 M points", 1_000_000, |_| wkb(&mut rng, 1, 1));
    let mut rng = fastrand::Rng::with_seed(2);
    row("100 k lines of 10 points", 100_000, |_| wkb(&mut rng, 2, 10));
    let mut rng = fastrand::Rng::with_seed(3);
    row("100 k polygons of 40 points", 100_000, |_| wkb(&mut rng, 3, 40));
    let mut rng = fastrand::Rng::with_seed(4);
    row("1 k polygons of 10 k points", 1_000, |_| wkb(&mut rng, 3, 10_000));
}

/// A point, a line, or a polygon of one ring.
fn wkb(rng: &mut fastrand::Rng, kind: u8, points: u32) -> Vec<u8> {
    let mut out = vec![1, kind, 0, 0, 0];
    if kind == 3 {
        out.extend(1u32.to_le_bytes());
    }
    if kind > 1 {
        out.extend(points.to_le_bytes());
    }
    for _ in 0..points * 2 {
        out.extend((rng.f64() * 180.0 - 90.0).to_le_bytes());
    }
    out
}

fn row(name: &str, n: usize, make: impl FnMut(usize) -> Vec<u8>) {
    let values: Vec<Vec<u8>> = (0..n).map(make).collect();
    let each = values[0].len();
    // As a writer has them: end to end.
    let all = values.concat();
    let (mut ours, mut theirs, mut boxes) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let start = Instant::now();
        let mut bounder = GeometryBounder::empty();
        for value in all.chunks_exact(each) {
            bounder.update_wkb(black_box(value)).expect("WKB");
        }
        theirs.push(start.elapsed().as_nanos() as f64 / n as f64);
        let start = Instant::now();
        let mut collector = GeospatialCollector::new(Edges::Planar);
        for value in all.chunks_exact(each) {
            collector.push(black_box(value)).expect("WKB");
        }
        ours.push(start.elapsed().as_nanos() as f64 / n as f64);
        let found = collector.finish().and_then(|found| found.bbox).expect("a box");
        assert_eq!((found.xmin, found.xmax), (bounder.x().lo(), bounder.x().hi()));
        assert_eq!((found.ymin, found.ymax), (bounder.y().lo(), bounder.y().hi()));
        let start = Instant::now();
        for value in all.chunks_exact(each) {
            black_box(Rectangle::around(black_box(value), Edges::Planar).expect("WKB"));
        }
        boxes.push(start.elapsed().as_nanos() as f64 / n as f64);
    }
    let [theirs, ours, boxes] = [theirs, ours, boxes].map(median);
    println!("| {name} | {each} | {theirs:.1} | {ours:.1} | {:.1} | {boxes:.1} |", theirs / ours);
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
