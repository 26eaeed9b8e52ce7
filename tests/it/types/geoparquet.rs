//! Tests GeoParquet: which columns the key `geo` makes geometries, what a covering leaves unread,
//! and the key of written files.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use fastrand::Rng;
use marquetry::arrow_array::cast::AsArray;
use marquetry::arrow_array::types::Int64Type;
use marquetry::arrow_array::*;
use marquetry::arrow_buffer::NullBuffer;
use marquetry::arrow_schema::{DataType, Field, Fields, Schema};
use marquetry::geo::{Edges, GeoColumn, GeoCovering, GeoCrs, GeoMetadata, GeoOptions, Rectangle};
use marquetry::io::{Outcome, WriteSink};
use marquetry::read::PageIndexUse;
use marquetry::rewrite::Rewrite;
use marquetry::{ErrorKind, Reader, SortColumn, WriteOptions, col};

use super::geometry::{geometry, outcomes, point, wkb, write};
use crate::support::read_with;

/// A file of these columns, with this key `geo`.
fn file_with(columns: Vec<(Field, ArrayRef)>, geo: &str, options: WriteOptions) -> Reader {
    let (fields, arrays): (Vec<Field>, Vec<ArrayRef>) = columns.into_iter().unzip();
    let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).expect("a table");
    let (_, file) = write(&batch, options.with_key_value("geo", geo));
    Reader::new(file).expect("a file")
}

fn key(columns: &[(&str, GeoColumn)]) -> String {
    let mut geo = GeoMetadata::new(columns[0].0);
    geo.columns =
        columns.iter().map(|(name, column)| ((*name).to_owned(), column.clone())).collect();
    geo.to_json()
}

fn key_of(reader: &Reader) -> GeoMetadata {
    GeoMetadata::find(reader.metadata().key_values()).expect("a valid key").expect("a key")
}

fn extension(reader: &Reader, column: &str) -> Option<(String, String)> {
    let schema = reader.schema().expect("a schema");
    let metadata = schema.field_with_name(column).expect("a column").metadata();
    let name = metadata.get("ARROW:extension:name")?.clone();
    Some((name, metadata.get("ARROW:extension:metadata").cloned().unwrap_or_default()))
}

fn binary(name: &str, values: &[Option<Vec<u8>>]) -> (Field, ArrayRef) {
    let array: BinaryArray = values.iter().map(Option::as_deref).collect();
    (Field::new(name, DataType::Binary, true), Arc::new(array))
}

#[test]
fn columns_that_the_key_names_are_geometries() {
    let value = || vec![Some(point(1.0, 2.0)), None];
    let json = "{\"type\":\"GeographicCRS\",\"name\":\"x\"}";
    let mut of_crs = GeoColumn::new();
    of_crs.crs = GeoCrs::Projjson(json.to_owned());
    of_crs.edges = Some("spherical".to_owned());
    let mut unknown = GeoColumn::new();
    unknown.crs = GeoCrs::Unknown;
    unknown.edges = Some("planar".to_owned());
    let geo = key(&[
        ("a", GeoColumn::new()),
        ("b", of_crs),
        ("c", unknown),
        ("text", GeoColumn::new()),
        ("gone", GeoColumn::new()),
    ]);
    let text: ArrayRef = Arc::new(StringArray::from(vec!["x", "y"]));
    for hint in [true, false] {
        let reader = file_with(
            vec![
                binary("a", &value()),
                binary("b", &value()),
                binary("c", &value()),
                binary("other", &value()),
                (Field::new("text", DataType::Utf8, false), text.clone()),
            ],
            &geo,
            WriteOptions::new().with_hint(hint),
        );
        let wkb = |metadata: &str| Some(("geoarrow.wkb".to_owned(), metadata.to_owned()));
        let crs84 = "{\"crs\":\"OGC:CRS84\",\"crs_type\":\"authority_code\"}";
        assert_eq!(extension(&reader, "a"), wkb(crs84));
        let spherical =
            format!("{{\"crs\":{json},\"crs_type\":\"projjson\",\"edges\":\"spherical\"}}");
        assert_eq!(extension(&reader, "b"), wkb(&spherical));
        assert_eq!(extension(&reader, "c"), wkb("{}"));
        assert_eq!(extension(&reader, "other"), None);
        assert_eq!(extension(&reader, "text"), None);
        // Rows are those of the bytes, whatever is said of them.
        let batches = read_with(reader.clone().project(["b"]).expect("a column")).expect("rows");
        assert_eq!(
            batches[0].column(0).as_binary::<i32>().value(0),
            value()[0].as_deref().unwrap()
        );
        // What was read is written as GEOMETRY and GEOGRAPHY.
        let batches = read_with(reader).expect("rows");
        let (_, file) = write(&batches[0], WriteOptions::new());
        let text = Reader::new(file).expect("a file").metadata().schema().to_string();
        assert!(text.contains("a (GEOMETRY);") && text.contains("c (GEOMETRY(srid:0));"), "{text}");
        assert!(text.contains("b (GEOGRAPHY("), "{text}");
    }
}

#[test]
fn a_key_that_cannot_be_read_marks_no_column_and_fails_nothing() {
    for geo in ["", "no JSON", "{}", "{\"version\":\"1.0.0\",\"columns\":{\"a\":7}}"] {
        let values = [Some(point(1.0, 2.0))];
        let reader = file_with(vec![binary("a", &values)], geo, WriteOptions::new());
        assert_eq!(extension(&reader, "a"), None, "{geo}");
        assert!(GeoMetadata::find(reader.metadata().key_values()).is_err(), "{geo}");
        let meets = col("a").intersects(Rectangle::new(0.0, 0.0, 3.0, 3.0));
        assert_eq!(reader.filter(meets).count().expect("a count"), 1);
    }
}

#[test]
fn native_encodings_have_the_names_of_geoarrow() {
    let sides: Fields =
        ["x", "y"].map(|name| Field::new(name, DataType::Float64, false)).to_vec().into();
    let xy = |n: usize| -> ArrayRef {
        let side =
            || Arc::new(Float64Array::from_iter_values((0..n).map(|i| i as f64))) as ArrayRef;
        Arc::new(StructArray::new(sides.clone(), vec![side(), side()], None))
    };
    let item = Arc::new(Field::new("vertices", DataType::Struct(sides.clone()), false));
    let offsets = marquetry::arrow_buffer::OffsetBuffer::from_lengths([2, 3]);
    let line: ArrayRef = Arc::new(ListArray::new(item.clone(), offsets, xy(5), None));
    let geo = "{\"version\":\"1.1.0\",\"primary_column\":\"p\",\"columns\":{\
        \"p\":{\"encoding\":\"point\",\"geometry_types\":[\"Point\"]},\
        \"l\":{\"encoding\":\"linestring\",\"geometry_types\":[\"LineString\"]},\
        \"wrong\":{\"encoding\":\"polygon\",\"geometry_types\":[]}}}";
    let reader = file_with(
        vec![
            (Field::new("p", DataType::Struct(sides.clone()), true), xy(2)),
            (Field::new("l", DataType::List(item.clone()), true), line.clone()),
            (Field::new("wrong", DataType::List(item), true), line),
        ],
        geo,
        WriteOptions::new().with_hint(false),
    );
    let name = |column: &str| extension(&reader, column).map(|(name, _)| name);
    assert_eq!(name("p").as_deref(), Some("geoarrow.point"));
    assert_eq!(name("l").as_deref(), Some("geoarrow.linestring"));
    assert_eq!(name("wrong"), None);
}

/// How the sides of boxes are stored.
#[derive(Clone, Copy, PartialEq)]
enum Sides {
    Double,
    /// Rounded to the nearest number, which may lie inside.
    Float,
}

/// A struct with the boxes of geometries; null where `is_null` says so.
fn boxes(
    values: &[Option<Vec<u8>>],
    sides: Sides,
    is_null: impl Fn(usize) -> bool,
) -> (Field, ArrayRef) {
    let around: Vec<Option<Rectangle>> = values
        .iter()
        .map(|wkb| Rectangle::around(wkb.as_deref()?, Edges::Planar).expect("WKB"))
        .collect();
    let side = |of: fn(&Rectangle) -> f64| -> ArrayRef {
        let all = around.iter().map(|around| around.as_ref().map_or(f64::NAN, of));
        match sides {
            Sides::Double => Arc::new(Float64Array::from_iter_values(all)),
            Sides::Float => Arc::new(Float32Array::from_iter_values(all.map(|side| side as f32))),
        }
    };
    let arrays = vec![side(|r| r.xmin), side(|r| r.ymin), side(|r| r.xmax), side(|r| r.ymax)];
    let data_type = arrays[0].data_type().clone();
    let names = ["xmin", "ymin", "xmax", "ymax"];
    let fields: Fields =
        names.map(|name| Field::new(name, data_type.clone(), false)).to_vec().into();
    let nulls = NullBuffer::from_iter((0..values.len()).map(|row| !is_null(row)));
    let array = StructArray::new(fields.clone(), arrays, Some(nulls));
    (Field::new("bbox", DataType::Struct(fields), true), Arc::new(array))
}

fn covered() -> String {
    let mut column = GeoColumn::new();
    column.covering = Some(GeoCovering::of_struct("bbox"));
    key(&[("geom", column)])
}

/// Geometries that lie near each other in each 64 rows, empty ones and nulls among them.
fn places(rng: &mut Rng, rows: usize) -> Vec<Option<Vec<u8>>> {
    let value = |row: usize| {
        let at = (row / 64) as f64;
        let place = [(at * 37.0) % 340.0 - 170.0, (at * 17.0) % 160.0 - 80.0];
        let mut near = || vec![place[0] + rng.f64() * 8.0, place[1] + rng.f64() * 4.0];
        let points = vec![near(), near(), near()];
        match rng.u8(0..20) {
            0 => None,
            1 => Some(wkb(2, 0, true, &[])),
            2..8 => Some(wkb(1, 0, true, &points[..1])),
            8..14 => Some(wkb(2, 0, false, &points)),
            _ => Some(wkb(3, 0, true, &points)),
        }
    };
    (0..rows).map(value).collect()
}

/// A rectangle; some have a side that is one of a geometry, and some cross the antimeridian.
fn rectangle(rng: &mut Rng, values: &[Option<Vec<u8>>]) -> Rectangle {
    let mut side = |max: f64| (rng.f64() * 2.0 - 1.0) * max;
    let (x, y) = (side(175.0), side(85.0));
    let (width, height) = (side(10.0), side(10.0).abs());
    let mut asked = Rectangle::new(x, y, x + width.abs(), y + height);
    let value = values[rng.usize(..values.len())].as_deref();
    let around = value.and_then(|wkb| Rectangle::around(wkb, Edges::Planar).expect("WKB"));
    match (rng.u8(0..8), around) {
        (0, Some(at)) => asked = Rectangle::new(at.xmax, at.ymin, at.xmax + 1.0, at.ymax),
        (1, Some(at)) => asked = Rectangle::new(at.xmin - 1.0, at.ymin, at.xmin, at.ymax),
        (2, Some(at)) => asked = Rectangle::new(at.xmin, at.ymax, at.xmax, at.ymax + 1.0),
        (3, Some(at)) => asked = Rectangle::new(at.xmin, at.ymin - 1.0, at.xmax, at.ymin),
        (4, _) => (asked.xmin, asked.xmax) = (asked.xmin.abs() + 3.0, -asked.xmin.abs() - 3.0),
        _ => {}
    }
    asked
}

fn with_index(reader: Reader) -> Reader {
    let mut options = reader.read_options().clone();
    options.page_index = PageIndexUse::Always;
    reader.options(options)
}

#[test]
fn random_boxes_lose_no_row_by_a_covering() {
    let cases = std::env::var("MARQUETRY_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(400);
    let seed = 20_261;
    let mut rng = Rng::with_seed(seed);
    let values = places(&mut rng, 6_400);
    let is_null = |row: usize| values[row].is_none();
    let row: ArrayRef = Arc::new(Int64Array::from_iter_values(0..values.len() as i64));
    let readers = [Sides::Double, Sides::Float].map(|sides| {
        let options = WriteOptions::new().with_row_group_rows(1_600).with_page_rows(64);
        let columns = vec![
            (Field::new("row", DataType::Int64, false), row.clone()),
            binary("geom", &values),
            boxes(&values, sides, is_null),
        ];
        with_index(file_with(columns, &covered(), options))
    });
    let (mut found, mut groups, mut pages) = (0, 0, 0);
    for case in 0..cases {
        let asked = rectangle(&mut rng, &values);
        let predicate = col("geom").intersects(asked);
        let meets = |value: &Option<Vec<u8>>| {
            let around = Rectangle::around(value.as_deref()?, Edges::Planar).expect("WKB");
            Some(around.is_some_and(|around| around.intersects(&asked)))
        };
        let of = |wanted: bool| -> Vec<i64> {
            let all = values.iter().zip(0i64..);
            all.filter(|(value, _)| meets(value) == Some(wanted)).map(|(_, row)| row).collect()
        };
        for reader in &readers {
            for (predicate, expected) in
                [(predicate.clone(), of(true)), (marquetry::not(predicate.clone()), of(false))]
            {
                let reader = reader.clone().filter(predicate).threads(1);
                let batches = read_with(reader.project(["row"]).expect("a column")).expect("rows");
                let rows = |batch: &RecordBatch| {
                    batch.column(0).as_primitive::<Int64Type>().values().to_vec()
                };
                let rows: Vec<i64> = batches.iter().flat_map(rows).collect();
                assert_eq!(rows, expected, "seed {seed}, case {case}, {asked:?}");
            }
            let plan = reader.clone().filter(predicate.clone()).explain().expect("a plan");
            for group in &plan.row_groups {
                groups += usize::from(group.outcome == Outcome::ByStatistics);
                pages += group.pages_pruned;
            }
        }
        found += of(true).len();
    }
    assert!(found > cases && pages > cases as u64, "{found} rows, {groups} groups, {pages} pages");
}

#[test]
fn a_covering_leaves_row_groups_unread() {
    let values: Vec<_> = (0..400)
        .map(|row| Some(point(f64::from(row / 100) * 10.0, f64::from(row % 100))))
        .collect();
    let options = WriteOptions::new().with_row_group_rows(100);
    let columns = |sides| vec![binary("geom", &values), boxes(&values, sides, |_| false)];
    let meets = col("geom").intersects(Rectangle::new(9.0, 0.0, 11.0, 50.0));
    let (pruned, read) = (Outcome::ByStatistics, Outcome::Evaluated);
    for sides in [Sides::Double, Sides::Float] {
        let reader = file_with(columns(sides), &covered(), options.clone());
        assert_eq!(outcomes(&reader, &meets), [pruned, read, pruned, pruned]);
        let plan = reader.clone().filter(meets.clone()).project(["geom"]).unwrap().explain();
        assert_eq!(plan.expect("a plan").leaves, ["geom"], "the boxes are not read");
        // Nothing is left out where the statistics are to be verified.
        let verified = reader.verify_statistics(true);
        assert_eq!(outcomes(&verified, &meets), [read; 4]);
    }
    // Without the key, with edges on a sphere, or across the antimeridian, it is not a covering.
    let spherical = covered().replace("\"covering\"", "\"edges\":\"spherical\",\"covering\"");
    let wraps = covered().replace("\"covering\"", "\"bbox\":[170,0,-170,9],\"covering\"");
    let no_column = covered().replace("\"xmax\"]", "\"x\"]");
    for geo in ["", &spherical, &wraps, &no_column] {
        let reader = file_with(columns(Sides::Double), geo, options.clone());
        assert_eq!(outcomes(&reader, &meets), [read; 4], "{geo}");
    }
}

#[test]
fn a_geometry_without_a_box_is_not_lost() {
    let mut values: Vec<_> = (0..200).map(|row| Some(point(f64::from(row), 0.0))).collect();
    values[150] = None;
    let meets = col("geom").intersects(Rectangle::new(-5.0, -5.0, 10.5, 5.0));
    let far = col("geom").intersects(Rectangle::new(-5.0, -5.0, -1.0, 5.0));
    let options = || WriteOptions::new().with_row_group_rows(100);
    // Row 3 has no box, and row 150 has one.
    for missing in [vec![3], vec![3, 150], vec![150]] {
        let boxes = boxes(&values, Sides::Double, |row| missing.contains(&row));
        let columns = vec![binary("geom", &values), boxes];
        let reader = file_with(columns, &covered(), options());
        let count = reader.clone().filter(meets.clone()).count().expect("a count");
        assert_eq!(count, 11, "{missing:?}");
        let of_first =
            if missing.contains(&3) { Outcome::Evaluated } else { Outcome::ByStatistics };
        assert_eq!(outcomes(&reader, &far)[0], of_first, "{missing:?}");
    }
}

#[test]
fn a_box_across_the_antimeridian_loses_no_row() {
    // Parts on both sides: the box of the value is wide, that of the covering narrow.
    let fiji = wkb(4, 0, true, &[vec![178.0, -17.0], vec![-179.0, -16.0]]);
    let values = [Some(point(100.0, -16.5)), Some(fiji)];
    let (field, array) = boxes(&values, Sides::Double, |_| false);
    let mut sides: Vec<ArrayRef> = array.as_struct().columns().to_vec();
    sides[0] = Arc::new(Float64Array::from(vec![100.0, 178.0]));
    sides[2] = Arc::new(Float64Array::from(vec![100.0, -179.0]));
    let DataType::Struct(fields) = field.data_type() else { panic!("a struct") };
    let narrow: ArrayRef = Arc::new(StructArray::new(fields.clone(), sides, None));
    let columns = vec![binary("geom", &values), (field, narrow)];
    let reader = file_with(columns, &covered(), WriteOptions::new());
    for asked in
        [Rectangle::new(177.0, -20.0, 179.0, -10.0), Rectangle::new(50.0, -20.0, 60.0, 0.0)]
    {
        let found = reader.clone().filter(col("geom").intersects(asked)).count();
        assert_eq!(found.expect("a count"), 1, "{asked:?}");
    }
}

/// A table of geometries by their type, with boxes.
pub fn typed(values: &[Option<Vec<u8>>], edges: Edges, other: &[Option<Vec<u8>>]) -> RecordBatch {
    let (_, geom) = binary("geom", values);
    let (boxes_field, boxes) = boxes(other, Sides::Double, |row| other[row].is_none());
    let fields = vec![geometry(edges), boxes_field];
    RecordBatch::try_new(Arc::new(Schema::new(fields)), vec![geom, boxes]).expect("a table")
}

fn written(batch: &RecordBatch, geo: GeoOptions) -> Reader {
    let options = WriteOptions::new().with_row_group_rows(100).with_geo(geo);
    Reader::new(write(batch, options).1).expect("a file")
}

#[test]
fn the_key_is_written_from_types_and_statistics() {
    let mut values: Vec<_> = (0..300).map(|row| Some(point(f64::from(row), -0.5))).collect();
    values[250] = Some(wkb(2, 1000, true, &[vec![-7.0, 8.0, 9.0], vec![1.0, 1.0, 1.0]]));
    values[..100].fill(None);
    let reader = written(&typed(&values, Edges::Planar, &values), GeoOptions::new());
    let geo = key_of(&reader);
    assert_eq!((geo.version.as_str(), geo.primary_column.as_str()), ("1.1.0", "geom"));
    let column = &geo.columns["geom"];
    assert_eq!(column.geometry_types, ["Point", "LineString Z"]);
    assert_eq!(column.crs, GeoCrs::Unknown);
    assert_eq!(column.covering, Some(GeoCovering::of_struct("bbox")));
    let bbox = column.bbox.as_ref().expect("a box");
    assert_eq!([bbox.xmin, bbox.ymin, bbox.xmax, bbox.ymax], [-7.0, -0.5, 299.0, 8.0]);
    assert_eq!((bbox.zmin, bbox.zmax), (Some(1.0), Some(9.0)));
    // A copy of two files has the box of both, and a part of one that of the part.
    let rewrite = |rewrite: Rewrite| {
        let options = WriteOptions::new().with_geo(GeoOptions::new());
        let mut out = Vec::new();
        rewrite.options(options).run(WriteSink(&mut out)).expect("a copy");
        key_of(&Reader::new(Bytes::from(out)).expect("a file")).columns.remove("geom").unwrap()
    };
    let part = reader.clone().row_groups([1]).expect("a row group");
    assert_eq!(rewrite(Rewrite::new([part.clone()])).geometry_types, ["Point"]);
    let both = rewrite(Rewrite::new([part, reader]));
    assert_eq!(both.bbox.map(|bbox| (bbox.xmin, bbox.xmax)), Some((-7.0, 299.0)));
}

#[test]
fn the_key_of_rows_that_are_written_anew_is_of_all_of_them() {
    let of = |from: u32, geo: Option<GeoOptions>| {
        let points: Vec<_> = (from..from + 20).map(|x| Some(point(f64::from(x), 1.0))).collect();
        let table = typed(&points, Edges::Planar, &points);
        let ids: ArrayRef = Arc::new(Int64Array::from_iter_values((0..20).map(|id| id * 2)));
        let mut fields = table.schema().fields().to_vec();
        fields.push(Arc::new(Field::new("id", DataType::Int64, false)));
        let columns = table.columns().iter().cloned().chain([ids]).collect();
        let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).expect("a table");
        let options = WriteOptions::new().with_row_group_rows(10);
        let options = geo.into_iter().fold(options, WriteOptions::with_geo);
        Reader::new(write(&batch, options).1).expect("a file")
    };
    let by_id = || [SortColumn::ascending("id")];
    for has_key in [[true, true], [true, false], [false, true], [false, false]] {
        let files = [0, 100].into_iter().zip(has_key);
        let files: Vec<Reader> =
            files.map(|(from, has)| of(from, has.then(GeoOptions::new))).collect();
        let geo = GeoOptions::new().with_primary_column("geom");
        let options = || WriteOptions::new().with_row_group_rows(7).with_geo(geo.clone());
        let rewrite = || Rewrite::new(files.clone()).options(options());
        for (name, rewrite) in [
            ("copied", rewrite()),
            ("regrouped", rewrite().regroup(true)),
            ("sorted", rewrite().sort_by(by_id())),
            ("sorted by row group", rewrite().sort_row_groups_by(by_id())),
            ("merged", rewrite().merge_by(by_id())),
        ] {
            let mut out = Vec::new();
            rewrite.run(WriteSink(&mut out)).expect("a file");
            let geo = key_of(&Reader::new(Bytes::from(out)).expect("a file"));
            let bbox = geo.columns["geom"].bbox.as_ref().map(|bbox| (bbox.xmin, bbox.xmax));
            assert_eq!(bbox, Some((0.0, 119.0)), "{name}, {has_key:?}");
        }
        // What the key cannot state is no fault of a type.
        let other = WriteOptions::new().with_geo(GeoOptions::new().with_primary_column("other"));
        let refused = Rewrite::new(files.clone()).options(other).regroup(true);
        let refused = refused.run(WriteSink(Vec::new())).expect_err("no such column");
        assert_eq!(refused.kind(), ErrorKind::Usage);
    }
}

#[test]
fn what_the_statistics_do_not_say_is_not_in_the_key() {
    let points: Vec<_> = (0..300).map(|row| Some(point(f64::from(row), 0.0))).collect();
    // Boxes that are not those of the geometries are no covering.
    let mut shifted = points.clone();
    shifted[0] = Some(point(5.0, 0.0));
    let geo = key_of(&written(&typed(&points, Edges::Planar, &shifted), GeoOptions::new()));
    assert_eq!(geo.columns["geom"].covering, None);
    shifted[0] = None;
    let geo = key_of(&written(&typed(&points, Edges::Planar, &shifted), GeoOptions::new()));
    assert_eq!(geo.columns["geom"].covering, None);
    // A value that is no WKB leaves all unknown, and M has no name.
    let mut broken = points.clone();
    broken[120] = Some(vec![1, 2, 3]);
    let column = key_of(&written(&typed(&broken, Edges::Planar, &points), GeoOptions::new()));
    let column = &column.columns["geom"];
    assert_eq!((&column.bbox, column.geometry_types.len()), (&None, 0));
    let mut with_m = points.clone();
    with_m[120] = Some(wkb(1, 2000, true, &[vec![1.0, 2.0, 3.0]]));
    let column = key_of(&written(&typed(&with_m, Edges::Planar, &points), GeoOptions::new()));
    let column = &column.columns["geom"];
    assert!(column.bbox.is_some() && column.geometry_types.is_empty());
    // On a sphere only points have a known box.
    let line = [Some(wkb(2, 0, true, &[vec![1.0, 2.0], vec![3.0, 4.0]]))];
    let geo = key_of(&written(&typed(&line, Edges::Geodesic, &line), GeoOptions::new()));
    let column = &geo.columns["geom"];
    assert_eq!((column.edges.as_deref(), &column.bbox), (Some("spherical"), &None));
    assert_eq!(column.crs, GeoCrs::Default);
    assert_eq!(column.covering, None);
}

#[test]
fn what_a_key_cannot_state_is_an_error_before_the_first_row() {
    let values = [Some(point(1.0, 2.0))];
    let error = |field: Field, geo: GeoOptions| {
        let schema = Arc::new(Schema::new(vec![field]));
        let options = WriteOptions::new().with_geo(geo);
        let writer = marquetry::Writer::new(WriteSink(Vec::new()), schema, options);
        writer.map(drop).expect_err("an error").kind()
    };
    let of = |metadata: &str| {
        let extension =
            [("ARROW:extension:name", "geoarrow.wkb"), ("ARROW:extension:metadata", metadata)];
        let extension = extension.map(|(key, value)| (key.to_owned(), value.to_owned()));
        Field::new("geom", DataType::Binary, true).with_metadata(HashMap::from(extension))
    };
    let unsupported = |kind| matches!(kind, ErrorKind::Unsupported(_));
    assert!(unsupported(error(of("{\"crs\":\"EPSG:3857\"}"), GeoOptions::new())));
    assert!(unsupported(error(of("{\"edges\":\"karney\"}"), GeoOptions::new())));
    let plain = Field::new("geom", DataType::Binary, true);
    assert_eq!(error(plain, GeoOptions::new()), ErrorKind::Usage);
    let other = GeoOptions::new().with_primary_column("other");
    assert_eq!(error(of("{}"), other), ErrorKind::Usage);
    // A coordinate system that is given is stated.
    let json = "{\"type\":\"ProjectedCRS\"}";
    let given = GeoOptions::new().with_crs("geom", GeoCrs::Projjson(json.to_owned()));
    let schema = Arc::new(Schema::new(vec![of("{\"crs\":\"EPSG:3857\"}")]));
    let batch = RecordBatch::try_new(schema, vec![binary("geom", &values).1]).expect("a table");
    let geo = key_of(&written(&batch, given));
    assert_eq!(geo.columns["geom"].crs, GeoCrs::Projjson(json.to_owned()));
}

#[cfg(feature = "encryption")]
#[test]
fn the_key_tells_nothing_of_encrypted_columns() {
    use marquetry::crypt::{Encryption, Key};
    let values: Vec<_> = (0..10).map(|row| Some(point(f64::from(row), 0.0))).collect();
    let key = || Key::new(b"0123456789012345").expect("a key");
    let encryption =
        Encryption::new(key()).with_plaintext_footer(true).with_column_key("geom", key());
    let options = WriteOptions::new().with_geo(GeoOptions::new()).with_encryption(encryption);
    let (report, _) = write(&typed(&values, Edges::Planar, &values), options);
    let pairs = report.metadata().expect("a footer").key_value_metadata.expect("keys");
    let column = &GeoMetadata::find(&pairs).expect("a key").expect("a key").columns["geom"];
    assert_eq!((&column.bbox, column.geometry_types.len()), (&None, 0));
}
