//! Tests geometries: their statistics as written, and which rows and row groups a box leaves.

use crate::support::filled;
use std::sync::Arc;

use arrow_buffer::OffsetBuffer;
use bytes::Bytes;
use fastrand::Rng;
use marquetry::arrow_array::cast::AsArray;
use marquetry::arrow_array::types::Int64Type;
use marquetry::arrow_array::*;
use marquetry::arrow_schema::{DataType, Field, Schema};
use marquetry::format::{BoundingBox, ColumnMetaData, GeospatialStatistics, Thrift};
use marquetry::geo::{Edges, Rectangle};
use marquetry::io::{Outcome, WriteSink};
use marquetry::{
    ErrorKind, Predicate, Reader, Spec, StatisticsLevel, WriteOptions, WriteReport, Writer, any,
    col, not,
};

use crate::support::{close, read_with};

/// ISO WKB of a geometry whose parts are points: `base` 1 to 7, coordinates by point.
pub fn wkb(base: u32, dimensions: u32, little: bool, points: &[Vec<f64>]) -> Vec<u8> {
    let mut out = Vec::new();
    let int = |n: usize, out: &mut Vec<u8>| {
        let n = u32::try_from(n).expect("few");
        out.extend(if little { n.to_le_bytes() } else { n.to_be_bytes() });
    };
    let all = |out: &mut Vec<u8>| {
        for v in points.iter().flatten() {
            out.extend(if little { v.to_le_bytes() } else { v.to_be_bytes() });
        }
    };
    out.push(u8::from(little));
    int((dimensions + base) as usize, &mut out);
    match base {
        1 => match points.first() {
            Some(_) => all(&mut out),
            None => {
                let n = [2, 3, 3, 4][dimensions as usize / 1000];
                (0..n).for_each(|_| out.extend(f64::NAN.to_bits().to_le_bytes()));
                let end = out.len();
                if !little {
                    out[end - 8 * n..].chunks_exact_mut(8).for_each(<[u8]>::reverse);
                }
            }
        },
        2 => {
            int(points.len(), &mut out);
            all(&mut out);
        }
        3 => {
            int(usize::from(!points.is_empty()), &mut out);
            if !points.is_empty() {
                int(points.len(), &mut out);
                all(&mut out);
            }
        }
        4 => {
            int(points.len(), &mut out);
            let part = |p: &Vec<f64>| wkb(1, dimensions, !little, std::slice::from_ref(p));
            points.iter().for_each(|p| out.extend(part(p)));
        }
        _ => {
            // In a collection, a collection.
            let part = if base == 7 { 7 } else { base - 3 };
            match points.len() {
                0 => int(0, &mut out),
                1 if base == 7 => {
                    int(1, &mut out);
                    out.extend(wkb(1, dimensions, little, points));
                }
                _ => {
                    int(1, &mut out);
                    let points = if base == 7 { &points[..1] } else { points };
                    out.extend(wkb(part, dimensions, !little, points));
                }
            }
        }
    }
    out
}

pub fn point(x: f64, y: f64) -> Vec<u8> {
    wkb(1, 0, true, &[vec![x, y]])
}

fn line(points: &[[f64; 2]]) -> Vec<u8> {
    wkb(2, 0, true, &points.iter().map(|p| p.to_vec()).collect::<Vec<_>>())
}

pub fn geometry(edges: Edges) -> Field {
    let metadata = match edges {
        Edges::Planar => "{}",
        _ => "{\"crs\":\"OGC:CRS84\",\"edges\":\"spherical\"}",
    };
    Field::new("geom", DataType::Binary, true).with_metadata(
        [("ARROW:extension:name", "geoarrow.wkb"), ("ARROW:extension:metadata", metadata)]
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .into(),
    )
}

/// A table of row numbers and geometries.
fn table(edges: Edges, values: &[Option<Vec<u8>>]) -> RecordBatch {
    let rows = i64::try_from(values.len()).expect("few");
    let row: ArrayRef = Arc::new(Int64Array::from_iter_values(0..rows));
    let geom: ArrayRef = Arc::new(values.iter().map(Option::as_deref).collect::<BinaryArray>());
    let fields = vec![Field::new("row", DataType::Int64, false), geometry(edges)];
    RecordBatch::try_new(Arc::new(Schema::new(fields)), vec![row, geom]).expect("a table")
}

pub fn write(batch: &RecordBatch, options: WriteOptions) -> (WriteReport, Bytes) {
    let mut writer = Writer::new(WriteSink(Vec::new()), batch.schema(), options).expect("a writer");
    writer.write(batch).expect("rows");
    let (report, sink) = writer.into_inner().expect("a file");
    (report, sink.into())
}

fn chunk(reader: &Reader, row_group: usize, leaf: usize) -> ColumnMetaData {
    let chunk = reader.metadata().column_chunk(row_group, leaf).expect("a chunk");
    assert_eq!(chunk.column_index_offset.is_some(), leaf == 0, "no index of what has no order");
    chunk.meta_data.expect("metadata")
}

/// The expected statistics of points, computed the slow way.
fn expected(codes: &[i32], points: &[(u32, Vec<f64>)]) -> GeospatialStatistics {
    let range = |place: fn(u32) -> Option<usize>| {
        let values = points.iter().filter_map(|(d, p)| p.get(place(*d)?).copied());
        let values: Vec<f64> = values.filter(|v| !v.is_nan()).collect();
        let least = values.iter().copied().reduce(f64::min)?;
        Some((least, values.iter().copied().reduce(f64::max)?))
    };
    let z = range(|d| (d % 2000 == 1000).then_some(2));
    let m = range(|d| [None, None, Some(2), Some(3)][d as usize / 1000]);
    let bbox = range(|_| Some(0)).zip(range(|_| Some(1))).map(|(x, y)| {
        filled!(BoundingBox {
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
    });
    let mut types = codes.to_vec();
    types.sort_unstable();
    types.dedup();
    filled!(GeospatialStatistics { bbox, geospatial_types: Some(types) })
}

#[test]
fn every_type_dimension_and_byte_order_has_its_statistics() {
    let seed = 117;
    let mut rng = Rng::with_seed(seed);
    let mut values = Vec::new();
    let mut groups = Vec::new();
    // A row group for each of the 28 types: two values, a null, and an empty one.
    for dimensions in [0u32, 1000, 2000, 3000] {
        for base in 1..=7u32 {
            let mut points = Vec::new();
            for little in [true, false] {
                let n = if matches!(base, 1 | 7) { 1 } else { rng.usize(1..9) };
                let some: Vec<Vec<f64>> = (0..n)
                    .map(|_| {
                        let n = [2, 3, 3, 4][dimensions as usize / 1000];
                        (0..n).map(|_| f64::from(rng.i16(..)) / 4.0).collect()
                    })
                    .collect();
                values.push(Some(wkb(base, dimensions, little, &some)));
                points.extend(some.into_iter().map(|p| (dimensions, p)));
            }
            values.extend([None, Some(wkb(base, dimensions, rng.bool(), &[]))]);
            groups.push((vec![(dimensions + base) as i32; 3], points));
        }
    }
    // All of them once more in one row group of a second file.
    let all = (
        groups.iter().flat_map(|(codes, _)| codes.clone()).collect::<Vec<_>>(),
        groups.iter().flat_map(|(_, points)| points.clone()).collect::<Vec<_>>(),
    );
    let batch = table(Edges::Planar, &values);
    for dictionary in [true, false] {
        let options = WriteOptions::new().with_dictionary(dictionary).with_page_rows(3);
        for (options, groups) in [
            (options.clone().with_row_group_rows(4), &groups[..]),
            (options, std::slice::from_ref(&all)),
        ] {
            let (report, file) = write(&batch, options);
            let reader = Reader::new(file).expect("a file");
            assert_eq!(report.row_groups(), groups.len());
            for (i, (codes, points)) in groups.iter().enumerate() {
                let meta = chunk(&reader, i, 1);
                let expected = Some(expected(codes, points));
                assert_eq!(meta.geospatial_statistics, expected, "row group {i}, seed {seed}");
                let column = &report.row_group(i).expect("a row group").columns[1];
                assert_eq!(column.geospatial, expected, "the report says the same");
                let statistics = meta.statistics.expect("counts");
                assert_eq!((statistics.min_value, statistics.max_value), (None, None));
                assert_eq!(statistics.null_count, Some(column.nulls as i64));
            }
            let back = read_with(reader).expect("rows");
            let rows: usize = back.iter().map(RecordBatch::num_rows).sum();
            assert_eq!(rows, batch.num_rows());
            assert_eq!(
                back[0].column(1).slice(0, 4).to_data(),
                batch.column(1).slice(0, 4).to_data()
            );
        }
    }
}

#[test]
fn nan_empty_null_and_malformed_values_say_no_more_than_is_known() {
    let (nan, empty) = (f64::NAN, wkb(1, 0, true, &[]));
    let of = |values: &[Option<Vec<u8>>], options: WriteOptions| {
        let (_, file) = write(&table(Edges::Planar, values), options);
        let reader = Reader::new(file).expect("a file");
        let back = read_with(reader.clone()).expect("rows");
        assert_eq!(back[0].column(1).len(), values.len());
        for (i, value) in values.iter().enumerate() {
            let found = back[0].column(1).as_binary::<i32>();
            assert_eq!(found.is_valid(i).then(|| found.value(i)), value.as_deref());
        }
        chunk(&reader, 0, 1).geospatial_statistics
    };
    for dictionary in [true, false] {
        let options = || WriteOptions::new().with_dictionary(dictionary);
        // NaN in one dimension, a number in the other.
        let found = of(&[Some(point(nan, 5.0)), Some(point(2.0, nan))], options()).expect("found");
        assert_eq!(found, expected(&[1], &[(0, vec![nan, 5.0]), (0, vec![2.0, nan])]));
        // Empty values only: no box, and never one of NaN.
        let found = of(&[Some(empty.clone()), None], options()).expect("types");
        assert_eq!((found.bbox, found.geospatial_types), (None, Some(vec![1])));
        let found = of(&[Some(wkb(2, 1000, true, &[]))], options()).expect("types");
        assert_eq!((found.bbox, found.geospatial_types), (None, Some(vec![1002])));
        // Nulls only, and nothing at all.
        assert_eq!(of(&[None, None], options()), None);
        // One invalid value among many: the data are kept, without statistics.
        let mut values = vec![Some(point(1.0, 2.0)); 100];
        values[50] = Some(b"no WKB".to_vec());
        assert_eq!(of(&values, options()), None);
        // Statistics that are not wanted are not there.
        let none = options().with_statistics(StatisticsLevel::None);
        assert!(of(&[Some(point(1.0, 2.0))], options()).is_some());
        let (_, file) = write(&table(Edges::Planar, &[Some(point(1.0, 2.0))]), none);
        let reader = Reader::new(file).expect("a file");
        let meta = reader.metadata().column_chunk(0, 1).expect("a chunk").meta_data;
        assert_eq!(meta.expect("metadata").geospatial_statistics, None);
    }
}

#[test]
fn a_geography_has_a_box_only_where_it_is_right() {
    let of = |values: Vec<Vec<u8>>| {
        let values: Vec<_> = values.into_iter().map(Some).collect();
        let (_, file) = write(&table(Edges::Geodesic, &values), WriteOptions::new());
        chunk(&Reader::new(file).expect("a file"), 0, 1).geospatial_statistics.expect("types")
    };
    let points = of(vec![point(4.9, 52.4), wkb(4, 0, true, &[vec![-122.4, 37.8]])]);
    assert_eq!(points, expected(&[1, 4], &[(0, vec![4.9, 52.4]), (0, vec![-122.4, 37.8])]));
    // The way between them leads over Greenland, north of both.
    let way = of(vec![point(4.9, 52.4), line(&[[4.9, 52.4], [-122.4, 37.8]])]);
    assert_eq!((way.bbox, way.geospatial_types), (None, Some(vec![1, 2])));
    assert_eq!(of(vec![point(200.0, 0.0)]).bbox, None);
}

#[test]
fn geometries_in_lists_and_structs_have_statistics_too() {
    let item = Arc::new(geometry(Edges::Planar));
    let values = BinaryArray::from_iter_values([point(1.0, 1.0), point(5.0, 7.0), point(3.0, 9.0)]);
    let offsets = OffsetBuffer::new(vec![0, 2, 2, 3].into());
    let list = ListArray::new(Arc::clone(&item), offsets, Arc::new(values), None);
    let list_field = Arc::new(Field::new("stops", DataType::List(item), true));
    let trip: ArrayRef =
        Arc::new(StructArray::new(vec![list_field].into(), vec![Arc::new(list)], None));
    let batch = RecordBatch::try_from_iter([("trip", trip)]).expect("a batch");
    let (_, file) = write(&batch, WriteOptions::new());
    let reader = Reader::new(file).expect("a file");
    let meta = reader.metadata().column_chunk(0, 0).expect("a chunk").meta_data;
    let found = meta.expect("metadata").geospatial_statistics;
    let points = [(0, vec![1.0, 1.0]), (0, vec![5.0, 7.0]), (0, vec![3.0, 9.0])];
    assert_eq!(found, Some(expected(&[1], &points)));
    let count = |predicate: Predicate| reader.clone().filter(predicate).count().expect("a count");
    let near = Rectangle::new(0.0, 0.0, 2.0, 2.0);
    assert_eq!(count(any("trip.stops").intersects(near)), 1);
    assert_eq!(count(not(any("trip.stops").intersects(near))), 2);
    assert_eq!(
        count(marquetry::all("trip.stops").intersects(Rectangle::new(0.0, 5.0, 9.0, 9.0))),
        2
    );
}

/// The rows for which a predicate is true, whatever reads them.
fn rows(reader: &Reader, predicate: &Predicate) -> Vec<i64> {
    let of = |batch: &RecordBatch| batch.column(0).as_primitive::<Int64Type>().values().to_vec();
    let mut all = Vec::new();
    for threads in [1, 2] {
        let reader = reader.clone().filter(predicate.clone()).threads(threads);
        let batches = read_with(reader.project(["row"]).expect("a column")).expect("rows");
        all.push(batches.iter().flat_map(of).collect::<Vec<_>>());
    }
    assert_eq!(all[0], all[1]);
    #[cfg(feature = "object_store")]
    assert_eq!(from_store(reader, predicate).iter().flat_map(of).collect::<Vec<_>>(), all[0]);
    let count = reader.clone().filter(predicate.clone()).count().expect("a count");
    assert_eq!(count, all[0].len() as u64);
    all.swap_remove(0)
}

/// The same from an object store.
#[cfg(feature = "object_store")]
fn from_store(reader: &Reader, predicate: &Predicate) -> Vec<RecordBatch> {
    use futures_util::TryStreamExt;
    use marquetry::io::Source;
    use object_store::ObjectStoreExt;
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let file = reader.source().read(0..reader.file_len()).expect("bytes");
    runtime.block_on(async {
        let store = Arc::new(object_store::memory::InMemory::new());
        store.put(&"geo.parquet".into(), file.into()).await.expect("stored");
        let reader = Reader::open_store(store, "geo.parquet").await.expect("a file");
        let reader = reader.filter(predicate.clone()).project(["row"]).expect("a column");
        reader.stream().expect("a stream").try_collect().await.expect("rows")
    })
}

pub fn outcomes(reader: &Reader, predicate: &Predicate) -> Vec<Outcome> {
    let plan = reader.clone().filter(predicate.clone()).explain().expect("a plan");
    plan.row_groups.iter().map(|group| group.outcome).collect()
}

#[test]
fn rows_are_those_whose_box_meets_the_one_asked_for() {
    let seed = 120;
    let mut rng = Rng::with_seed(seed);
    let mut pruned = 0;
    for case in 0..40 {
        let edges = if rng.bool() { Edges::Planar } else { Edges::Geodesic };
        let few = rng.bool();
        let mut kept: Vec<Option<Vec<u8>>> = Vec::new();
        let values: Vec<Option<Vec<u8>>> = (0..400)
            .map(|i| {
                let place = f64::from(i / 50) * 20.0 - 80.0;
                let mut near = || vec![place + rng.f64() * 10.0, place + rng.f64() * 5.0];
                let value = match (i / 50) % 4 {
                    0 => wkb(1, 0, true, &[near()]),
                    1 => wkb(2, 0, false, &[near(), near()]),
                    2 => wkb(3, 0, true, &[near(), near(), near()]),
                    _ => wkb(4, 0, true, &[near(), near()]),
                };
                let value = match rng.u8(0..10) {
                    0 => None,
                    1 => Some(wkb(1, 0, true, &[])),
                    _ if few && rng.u8(0..4) > 0 && !kept.is_empty() && i % 50 > 5 => {
                        kept.last().expect("one").clone()
                    }
                    _ => Some(value),
                };
                kept.push(value.clone());
                value
            })
            .collect();
        let options = WriteOptions::new().with_row_group_rows(50).with_dictionary(few);
        let (_, file) = write(&table(edges, &values), options);
        let reader = Reader::new(file).expect("a file");
        for _ in 0..12 {
            let mut side = |max: f64| (rng.f64() * 2.0 - 1.0) * max;
            let (x, y) = (side(100.0), side(90.0));
            let (width, height) = (side(30.0), side(30.0).abs());
            let asked = Rectangle::new(x, y, x + width, y + height);
            let verdict = |value: &Option<Vec<u8>>| {
                let around = Rectangle::around(value.as_deref()?, edges).expect("WKB");
                Some(around.is_some_and(|around| around.intersects(&asked)))
            };
            let of = |wanted: bool| -> Vec<i64> {
                let all = values.iter().enumerate();
                all.filter(|(_, v)| verdict(v) == Some(wanted)).map(|(i, _)| i as i64).collect()
            };
            let predicate = col("geom").intersects(asked);
            assert_eq!(rows(&reader, &predicate), of(true), "seed {seed}, case {case}");
            assert_eq!(rows(&reader, &not(predicate.clone())), of(false), "seed {seed}");
            let text = Predicate::parse(&predicate.to_string()).expect("a text");
            assert_eq!(text, predicate);
            let by_statistics = |o: &&Outcome| **o == Outcome::ByStatistics;
            pruned += outcomes(&reader, &predicate).iter().filter(by_statistics).count();
        }
    }
    assert!(pruned > 1_000, "{pruned} row groups left out");
}

/// The same file with other geospatial statistics.
fn with_statistics(file: &Bytes, found: &[Option<GeospatialStatistics>]) -> Bytes {
    let reader = Reader::new(file.clone()).expect("a file");
    let mut footer = reader.metadata().index().to_file_meta_data().expect("metadata");
    for (row_group, found) in footer.row_groups.iter_mut().zip(found) {
        let meta = row_group.columns[1].meta_data.as_mut().expect("metadata");
        meta.geospatial_statistics.clone_from(found);
    }
    let end = file.len() - 8;
    let len = u32::from_le_bytes(file[end..end + 4].try_into().expect("four bytes"));
    close(file[..end - len as usize].to_vec(), &footer.to_thrift()).into()
}

#[test]
fn boxes_that_wrap_prune_what_lies_in_their_gap() {
    // Row groups of points around 0, around the antimeridian, and of a way across it.
    let around = |at: f64| (0..10).map(move |i| point(at + f64::from(i) / 10.0, 0.0));
    let mut values: Vec<Vec<u8>> = around(0.0).collect();
    values.extend(around(178.0).take(5).chain(around(-179.0).take(5)));
    values.extend((0..10).map(|_| line(&[[179.0, 0.0], [-179.0, 1.0]])));
    let values: Vec<_> = values.into_iter().map(Some).collect();
    let bbox = |xmin, xmax, types: &[i32]| {
        let bbox = filled!(BoundingBox { xmin, xmax, ymin: 0.0, ymax: 1.0 });
        let geospatial_types = Some(types.to_vec());
        Some(filled!(GeospatialStatistics { bbox: Some(bbox), geospatial_types }))
    };
    let (skipped, read) = (Outcome::ByStatistics, Outcome::Evaluated);
    for edges in [Edges::Geodesic, Edges::Planar] {
        let options = WriteOptions::new().with_row_group_rows(10).with_dictionary(false);
        let (_, file) = write(&table(edges, &values), options);
        let wraps = [bbox(0.0, 1.0, &[1]), bbox(178.0, -178.0, &[1]), bbox(178.0, -178.0, &[2])];
        let wrapping = Reader::new(with_statistics(&file, &wraps)).expect("a file");
        let unknown = Reader::new(with_statistics(&file, &[None, None, None])).expect("a file");
        // A planar line has a box across the gap, whatever the statistics say.
        let across = if edges == Edges::Planar { read } else { skipped };
        for (xmin, xmax, expected) in [
            (0.5, 0.6, [read, skipped, across]),
            (-10.0, 10.0, [read, skipped, across]),
            (170.0, 178.0, [skipped, read, read]),
            (-178.0, -170.0, [skipped, read, read]),
            (170.0, 177.9, [skipped, skipped, across]),
            // Boxes that wrap meet each other, and those that they reach.
            (179.9, -179.9, [skipped, read, read]),
            (179.0, 0.5, [read, read, read]),
            (0.5, -178.5, [read, read, read]),
            (2.0, -179.5, [skipped, read, read]),
        ] {
            let predicate = col("geom").intersects(Rectangle::new(xmin, -1.0, xmax, 2.0));
            assert_eq!(outcomes(&wrapping, &predicate), expected, "{edges:?} {predicate}");
            assert_eq!(rows(&wrapping, &predicate), rows(&unknown, &predicate), "{predicate}");
        }
        let north = col("geom").intersects(Rectangle::new(-180.0, 5.0, 180.0, 9.0));
        assert_eq!(outcomes(&wrapping, &north), [skipped; 3]);
        // The way across the antimeridian is found at its ends and beyond them, not at 0.
        let here = |x| rows(&unknown, &col("geom").intersects(Rectangle::new(x, 0.0, x, 1.0)));
        assert_eq!(here(179.5).len(), if edges == Edges::Planar { 0 } else { 10 });
        assert_eq!(here(90.0).len(), if edges == Edges::Planar { 10 } else { 0 });
    }
}

#[test]
fn statistics_that_cannot_be_believed_prune_nothing() {
    let values = vec![Some(point(1.0, 1.0)); 10];
    let (_, file) = write(&table(Edges::Planar, &values), WriteOptions::new());
    let here = col("geom").intersects(Rectangle::new(0.0, 0.0, 2.0, 2.0));
    let (nan, inf) = (f64::NAN, f64::INFINITY);
    for [xmin, xmax, ymin, ymax] in
        [[nan, 9.0, 8.0, 9.0], [8.0, 9.0, nan, nan], [8.0, 9.0, 9.0, 8.0], [inf, -inf, inf, -inf]]
    {
        let bbox = filled!(BoundingBox { xmin, xmax, ymin, ymax });
        let found = filled!(GeospatialStatistics { bbox: Some(bbox) });
        let reader = Reader::new(with_statistics(&file, &[Some(found)])).expect("a file");
        assert_eq!(rows(&reader, &here).len(), 10);
    }
    // Types alone say nothing of places.
    let types = filled!(GeospatialStatistics { geospatial_types: Some(vec![1]) });
    let reader = Reader::new(with_statistics(&file, &[Some(types)])).expect("a file");
    assert_eq!(rows(&reader, &here).len(), 10);
}

#[test]
fn nulls_are_neither_and_row_groups_of_nulls_are_not_read() {
    let values = vec![None, None, Some(point(1.0, 1.0)), Some(wkb(1, 0, true, &[]))];
    let options = WriteOptions::new().with_row_group_rows(2);
    let (_, file) = write(&table(Edges::Planar, &values), options);
    let reader = Reader::new(file).expect("a file");
    let here = col("geom").intersects(Rectangle::new(0.0, 0.0, 2.0, 2.0));
    assert_eq!(outcomes(&reader, &here), [Outcome::ByStatistics, Outcome::Evaluated]);
    assert_eq!(rows(&reader, &here), [2]);
    assert_eq!(rows(&reader, &not(here.clone())), [3], "an empty value lies nowhere");
    assert_eq!(rows(&reader, &here.or(col("geom").is_null())), [0, 1, 2]);
}

#[test]
fn a_value_that_is_no_wkb_is_an_error_with_its_place_where_it_is_tested() {
    for dictionary in [true, false] {
        let mut values = vec![Some(point(1.0, 1.0)); 30];
        values[17] = Some(b"no WKB".to_vec());
        let options = || WriteOptions::new().with_row_group_rows(10).with_dictionary(dictionary);
        let (_, file) = write(&table(Edges::Planar, &values), options());
        let reader = Reader::new(file).expect("a file");
        let here = || col("geom").intersects(Rectangle::new(0.0, 0.0, 2.0, 2.0));
        let error = read_with(reader.clone().filter(here()).threads(1)).expect_err("no WKB");
        assert_eq!(error.kind(), ErrorKind::Malformed(Spec::Geospatial));
        assert_eq!(error.at().row_group, Some(1));
        assert_eq!(error.at().column.as_deref(), Some("geom"));
        assert!(error.message().contains("value 7"), "{error}");
        assert!(error.message().contains("byte order"), "{error}");
        // Where its row is not looked at, it does no harm; and the row can be read.
        let apart = reader.clone().row_groups([0, 2]).expect("row groups");
        assert_eq!(apart.filter(here()).count().expect("a count"), 20);
        let rows: usize = read_with(reader).expect("rows").iter().map(RecordBatch::num_rows).sum();
        assert_eq!(rows, 30);
    }
}

#[test]
fn what_cannot_be_asked_is_said() {
    let (_, file) = write(&table(Edges::Planar, &[Some(point(1.0, 1.0))]), WriteOptions::new());
    let reader = Reader::new(file).expect("a file");
    for (text, part) in [
        ("intersects(row, 0, 0, 1, 1)", "geometries"),
        ("intersects(geom, 0, 2, 1, 1)", "ymin"),
        ("intersects(geom, double 'nan', 0, 1, 1)", "ymin"),
    ] {
        let predicate = Predicate::parse(text).expect("a predicate");
        let error = reader.clone().try_filter(predicate).expect_err(text);
        assert_eq!(error.kind(), ErrorKind::Usage);
        assert!(error.message().contains(part), "{error}");
    }
    for (text, part) in [
        ("intersects(geom, 0, 0, 1)", "ymax"),
        ("intersects(geom, 0, 0, 1, 1, 1)", ")"),
        ("intersects(geom, 'a', 0, 1, 1)", "xmin"),
        ("intersects(1, 0, 0, 1, 1)", "a column"),
    ] {
        let error = Predicate::parse(text).expect_err(text);
        assert!(error.message().contains(part), "{error}");
    }
    for text in [
        "intersects(geom, -10, 40.5, double 'inf', 50)",
        "not intersects(geom, 170, -90, -170, 90) and row > 3",
        "intersects(any(\"a b\".c), 1e300, 0.1, 0, 0.30000000000000004)",
    ] {
        let predicate = Predicate::parse(text).expect(text);
        assert_eq!(Predicate::parse(&predicate.to_string()).expect(text), predicate, "{text}");
    }
    // A column may have the name.
    assert_eq!(Predicate::parse("intersects = 1").expect("a column"), col("intersects").eq(1));
}

#[test]
fn byte_strings_that_nothing_is_said_of_are_taken_for_planar_geometries() {
    let plain: ArrayRef =
        Arc::new(BinaryArray::from_iter_values([point(1.0, 1.0), point(5.0, 5.0)]));
    let batch = RecordBatch::try_from_iter([("geom", plain)]).expect("a batch");
    let (report, file) = write(&batch, WriteOptions::new());
    assert_eq!(report.row_group(0).expect("a row group").columns[0].geospatial, None);
    let reader = Reader::new(file).expect("a file");
    let here = col("geom").intersects(Rectangle::new(0.0, 0.0, 2.0, 2.0));
    assert_eq!(reader.filter(here).count().expect("a count"), 1);
    // Batches without a file say by the field what their edges are.
    let values = [Some(line(&[[179.0, 0.0], [-179.0, 1.0]]))];
    let over = col("geom").intersects(Rectangle::new(179.5, 0.0, 179.6, 1.0));
    for (edges, found) in [(Edges::Planar, 0), (Edges::Geodesic, 1)] {
        let batch = table(edges, &values);
        let bound = over.bind_to(&batch.schema()).expect("a column");
        assert_eq!(bound.evaluate(&batch).expect("WKB").true_count(), found);
    }
}

#[test]
fn the_parquet_crate_reads_our_statistics() {
    use parquet::file::metadata::ParquetMetaDataReader;
    let values = [point(1.0, 2.0), wkb(2, 3000, false, &[vec![1.0, -2.0, 3.0, 4.0]])].map(Some);
    let (_, file) = write(&table(Edges::Planar, &values), WriteOptions::new());
    let metadata = ParquetMetaDataReader::new().parse_and_finish(&file).expect("metadata");
    let found = metadata.row_group(0).column(1).geo_statistics().expect("statistics");
    assert_eq!(found.geospatial_types(), Some(&vec![1, 3002]));
    let bbox = found.bounding_box().expect("a box");
    assert_eq!((bbox.get_xmin(), bbox.get_xmax()), (1.0, 1.0));
    assert_eq!((bbox.get_ymin(), bbox.get_ymax()), (-2.0, 2.0));
    assert_eq!((bbox.get_zmin(), bbox.get_mmax()), (Some(3.0), Some(4.0)));
}

#[test]
fn coordinate_systems_and_edges_are_those_of_geoarrow_both_ways() {
    use marquetry::format::{EdgeInterpolationAlgorithm, LogicalType};
    let json = "{\"type\":\"ProjectedCRS\",\"name\":\"x\"}";
    let inline = format!("{{\"crs\":{json}}}");
    let keyed = "{\"crs\":{\"id\":1},\"crs_type\":\"projjson\"}";
    // The metadata of the Arrow field, the crs of the file, and the metadata that are read if they
    // differ.
    for (metadata, crs, read) in [
        ("{\"crs\":\"OGC:CRS84\",\"crs_type\":\"authority_code\"}", None, None),
        (
            "{\"crs\":\"OGC:CRS84\"}",
            None,
            Some("{\"crs\":\"OGC:CRS84\",\"crs_type\":\"authority_code\"}"),
        ),
        ("{}", Some("srid:0"), None),
        ("{\"crs\":\"\"}", Some("srid:0"), Some("{}")),
        ("{\"crs\":\"4326\",\"crs_type\":\"srid\"}", Some("srid:4326"), None),
        ("{\"crs\":\"EPSG:3857\"}", Some("EPSG:3857"), None),
        (&inline, Some(json), None),
        (keyed, Some("projjson:here"), None),
        ("{\"crs\":\"any text, \\\"quoted\\\"\"}", Some("any text, \"quoted\""), None),
    ] {
        for edges in [
            None,
            Some("spherical"),
            Some("vincenty"),
            Some("thomas"),
            Some("andoyer"),
            Some("karney"),
        ] {
            let with_edges = |metadata: &str| match (edges, metadata.strip_suffix('}')) {
                (Some(edges), Some(open)) => {
                    let comma = if open == "{" { "" } else { "," };
                    format!("{open}{comma}\"edges\":\"{edges}\"}}")
                }
                _ => metadata.to_owned(),
            };
            let field = geometry(Edges::Planar);
            let mut marks = field.metadata().clone();
            marks.insert("ARROW:extension:metadata".to_owned(), with_edges(metadata));
            let field = field.with_metadata(marks);
            let geom: ArrayRef = Arc::new(BinaryArray::from_iter_values([point(1.0, 2.0)]));
            // The key-values of a file are the metadata of the schema.
            let here = [("here".to_owned(), "{\"id\":1}".to_owned())].into();
            let schema = Arc::new(Schema::new_with_metadata(vec![field], here));
            let batch = RecordBatch::try_new(schema, vec![geom]).expect("a batch");
            let options = WriteOptions::new().with_hint(false);
            let reader = Reader::new(write(&batch, options).1).expect("a file");
            let leaf = reader.metadata().schema().leaf(0).expect("a leaf");
            match leaf.logical {
                Some(LogicalType::Geometry(found)) => {
                    assert_eq!((found.crs.as_deref(), edges), (crs, None), "{metadata}");
                }
                Some(LogicalType::Geography(found)) => {
                    use EdgeInterpolationAlgorithm as By;
                    let algorithm = match edges {
                        Some("spherical") => By::Spherical,
                        Some("vincenty") => By::Vincenty,
                        Some("thomas") => By::Thomas,
                        Some("andoyer") => By::Andoyer,
                        _ => By::Karney,
                    };
                    assert_eq!(found.crs.as_deref(), crs, "{metadata}");
                    assert_eq!(found.algorithm, Some(algorithm));
                }
                other => panic!("{other:?}"),
            }
            let schema = reader.schema().expect("a schema");
            let back = schema.field(0).metadata();
            let json = |text: &str| serde_json::from_str::<serde_json::Value>(text).expect("JSON");
            assert_eq!(back["ARROW:extension:name"], "geoarrow.wkb");
            let found = json(&back["ARROW:extension:metadata"]);
            assert_eq!(found, json(&with_edges(read.unwrap_or(metadata))), "{metadata}");
        }
    }
}

#[test]
fn what_lies_below_nulls_is_no_value() {
    let required = Arc::new(geometry(Edges::Planar).with_nullable(false));
    let junk = || -> ArrayRef {
        Arc::new(BinaryArray::from_iter_values([&point(1.0, 1.0)[..], b"junk", b"", b"junk"]))
    };
    // A struct that is null in the rows of the junk; a list of two that is null in the second.
    let nulls = Some(vec![true, false, false, false].into());
    let group = StructArray::new(vec![Arc::clone(&required)].into(), vec![junk()], nulls);
    let values = [point(1.0, 1.0), point(5.0, 5.0), b"junk".to_vec(), b"junk".to_vec()];
    let values = Arc::new(BinaryArray::from_iter_values(values));
    let nulls = Some(vec![true, false].into());
    let pair = FixedSizeListArray::new(Arc::clone(&required), 2, values, nulls);
    let item = Arc::new(geometry(Edges::Planar).with_nullable(false));
    let list = ListArray::new(
        item,
        OffsetBuffer::new(vec![0, 1, 4].into()),
        junk(),
        Some(vec![true, false].into()),
    );
    let here = Rectangle::new(0.0, 0.0, 2.0, 2.0);
    let cases: [(ArrayRef, Predicate, usize); 3] = [
        (Arc::new(group), col("x.geom").intersects(here), 3),
        (Arc::new(pair), any("x").intersects(here), 1),
        (Arc::new(list), any("x").intersects(here), 1),
    ];
    for (array, predicate, nulls) in cases {
        let batch = RecordBatch::try_from_iter([("x", array)]).expect("a batch");
        let bound = predicate.bind_to(&batch.schema()).expect("a column");
        assert_eq!(bound.evaluate(&batch).expect("no junk is looked at").true_count(), 1);
        for dictionary in [true, false] {
            let (report, file) = write(&batch, WriteOptions::new().with_dictionary(dictionary));
            let column = &report.row_group(0).expect("a row group").columns[0];
            assert_eq!(column.nulls as usize, nulls, "{predicate}");
            assert!(column.geospatial.as_ref().is_some_and(|found| found.bbox.is_some()));
            let reader = Reader::new(file).expect("a file");
            for threads in [1, 2] {
                let reader = reader.clone().threads(threads).filter(predicate.clone());
                assert_eq!(reader.count().expect("a count"), 1, "{predicate}");
                assert_eq!(read_with(reader).expect("rows").len(), 1);
            }
        }
    }
}
