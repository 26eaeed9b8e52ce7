//! Tests computed coverings of GeoParquet: boxes around geometries, the columns of boxes in files,
//! and the key `geo` of copies with other columns or rows.

use std::sync::Arc;

use bytes::Bytes;
use fastrand::Rng;
use marquetry::arrow_array::cast::AsArray;
use marquetry::arrow_array::types::{Float32Type, Float64Type};
use marquetry::arrow_array::*;
use marquetry::arrow_schema::{DataType, Field, Schema};
use marquetry::geo::{
    BoxSides, CoveringColumns, Edges, GeoColumn, GeoCovering, GeoCrs, GeoMetadata, GeoOptions,
    Rectangle, boxes_around,
};
use marquetry::io::WriteSink;
use marquetry::read::PageIndexUse;
use marquetry::rewrite::Rewrite;
use marquetry::{ErrorKind, Reader, Spec, WriteOptions, col};

use super::geometry::{geometry, point, wkb, write};

/// The points of a random geometry, and its bytes: null, empty, or of any type and dimensions.
fn random(rng: &mut Rng) -> Option<(Vec<Vec<f64>>, Vec<u8>)> {
    let (base, dimensions) = (rng.u32(1..8), rng.usize(0..4));
    let count = match rng.u8(0..10) {
        0 => return None,
        1 => 0,
        _ if base == 1 => 1,
        _ => rng.usize(1..30),
    };
    let scale = [1e-30, 1.0, 180.0, 1e7, 1e200][rng.usize(..5)];
    let size = [2, 3, 3, 4][dimensions];
    let mut coordinate = || (rng.f64() * 2.0 - 1.0) * scale;
    let mut points: Vec<Vec<f64>> =
        (0..count).map(|_| (0..size).map(|_| coordinate()).collect()).collect();
    let bytes = wkb(base, dimensions as u32 * 1000, rng.bool(), &points);
    if base == 7 {
        points.truncate(1);
    }
    Some((points, bytes))
}

/// The least and the greatest x and y, as one would write it down.
fn bounds(points: &[Vec<f64>]) -> [f64; 4] {
    let of = |i: usize| points.iter().map(move |point| point[i]);
    [
        of(0).fold(f64::INFINITY, f64::min),
        of(1).fold(f64::INFINITY, f64::min),
        of(0).fold(f64::NEG_INFINITY, f64::max),
        of(1).fold(f64::NEG_INFINITY, f64::max),
    ]
}

#[test]
fn boxes_contain_random_geometries_and_are_the_smallest() {
    let cases = std::env::var("MARQUETRY_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(5_000);
    let seed = 1_234;
    let mut rng = Rng::with_seed(seed);
    let values: Vec<_> = (0..cases).map(|_| random(&mut rng)).collect();
    let of_value = |value: &Option<(_, Vec<u8>)>| value.as_ref().map(|(_, bytes)| bytes.clone());
    let bytes: Vec<Option<Vec<u8>>> = values.iter().map(of_value).collect();
    let arrays: [ArrayRef; 3] = [
        Arc::new(bytes.iter().map(Option::as_deref).collect::<BinaryArray>()),
        Arc::new(bytes.iter().map(Option::as_deref).collect::<LargeBinaryArray>()),
        Arc::new(bytes.iter().map(Option::as_deref).collect::<BinaryViewArray>()),
    ];
    let mut empty = 0;
    for array in &arrays {
        let double = boxes_around(array, BoxSides::Float64).expect("WKB");
        let float = boxes_around(array, BoxSides::Float32).expect("WKB");
        for (row, value) in values.iter().enumerate() {
            let at = format!("seed {seed}, row {row}: {value:?}");
            assert_eq!(
                (double.is_null(row), float.is_null(row)),
                (value.is_none(), value.is_none())
            );
            let Some((points, _)) = value else { continue };
            let expected = bounds(points);
            for (side, expected) in expected.into_iter().enumerate() {
                let double = double.column(side).as_primitive::<Float64Type>().value(row);
                let float = float.column(side).as_primitive::<Float32Type>().value(row);
                if points.is_empty() {
                    assert!(double.is_nan() && float.is_nan(), "{at}");
                    empty += 1;
                    continue;
                }
                assert_eq!(double, expected, "{at}");
                let (outer, inner) = match side < 2 {
                    true => (f64::from(float) <= expected, f64::from(float.next_up()) > expected),
                    false => {
                        (f64::from(float) >= expected, f64::from(float.next_down()) < expected)
                    }
                };
                assert!(outer && inner, "{at}: {float} beside {expected}");
            }
        }
    }
    assert!(empty > 0 && bytes.iter().any(Option::is_none));
}

/// Points of places that lie near each other in each 50 rows, an empty line and a null among them.
fn table() -> RecordBatch {
    let value = |row: i32| match row {
        120 => None,
        270 => Some(wkb(2, 0, true, &[])),
        _ => {
            Some(point(f64::from(row / 50) * 10.0 + f64::from(row % 50) * 0.1, f64::from(row % 7)))
        }
    };
    let values: Vec<Option<Vec<u8>>> = (0..400).map(value).collect();
    let geometries: BinaryArray = values.iter().map(Option::as_deref).collect();
    let rows = Int32Array::from_iter_values(0..400);
    let fields = vec![Field::new("row", DataType::Int32, false), geometry(Edges::Planar)];
    let schema = Arc::new(Schema::new(fields));
    RecordBatch::try_new(schema, vec![Arc::new(rows), Arc::new(geometries)]).expect("a table")
}

fn covered(batch: &RecordBatch, sides: BoxSides, options: WriteOptions) -> Reader {
    let coverings = CoveringColumns::new(batch.schema_ref(), sides).expect("geometries");
    let batch = coverings.add_to(batch).expect("WKB");
    assert_eq!(batch.schema_ref(), coverings.schema());
    let (_, file) = write(&batch, options.with_geo(GeoOptions::new()));
    Reader::new(file).expect("a file")
}

fn key_of(reader: &Reader) -> Option<GeoMetadata> {
    GeoMetadata::find(reader.metadata().key_values()).expect("a valid key")
}

#[test]
fn a_computed_covering_is_stated_and_prunes_pages() {
    let table = table();
    let options = || WriteOptions::new().with_row_group_rows(200).with_page_rows(50);
    let pages = |reader: &Reader, filter: &marquetry::Predicate| {
        let mut options = reader.read_options().clone();
        options.page_index = PageIndexUse::Always;
        let plan = reader.clone().options(options).filter(filter.clone()).explain();
        plan.expect("a plan").row_groups.iter().map(|of| of.pages_pruned).sum::<u64>()
    };
    let (_, file) = write(&table, options());
    let plain = Reader::new(file).expect("a file");
    for sides in [BoxSides::Float32, BoxSides::Float64] {
        let reader = covered(&table, sides, options());
        let geo = key_of(&reader).expect("a key");
        assert_eq!(geo.columns["geom"].covering, Some(GeoCovering::of_struct("bbox")), "{sides:?}");
        let mut pruned = 0;
        for x in [-5.0, 0.0, 0.3, 14.9, 15.0, 20.05, 44.0, 69.9, 74.9, 80.0] {
            let filter = col("geom").intersects(Rectangle::new(x, 2.0, x + 0.5, 6.0));
            let count =
                |reader: &Reader| reader.clone().filter(filter.clone()).count().expect("a count");
            assert_eq!(count(&reader), count(&plain), "{sides:?}, {x}");
            assert_eq!(pages(&plain, &filter), 0);
            pruned += pages(&reader, &filter);
        }
        assert!(pruned > 20, "{pruned} pages, {sides:?}");
    }
}

#[test]
fn boxes_get_a_name_that_is_free() {
    let batch = |fields: Vec<Field>, geo: Option<&str>| {
        let metadata = geo.map(|geo| ("geo".to_owned(), geo.to_owned())).into_iter().collect();
        Schema::new_with_metadata(fields, metadata)
    };
    let named = |name: &str| geometry(Edges::Planar).with_name(name);
    let other = |name: &str| Field::new(name, DataType::Int32, true);
    let names = |schema: &Schema| -> Vec<String> {
        let coverings = CoveringColumns::new(schema, BoxSides::default()).expect("geometries");
        coverings.schema().fields().iter().map(|field| field.name().clone()).collect()
    };
    assert_eq!(names(&batch(vec![named("a"), other("x")], None)), ["a", "x", "bbox"]);
    assert_eq!(names(&batch(vec![named("a"), other("bbox")], None)), ["a", "bbox", "a_bbox"]);
    let two = vec![named("a"), named("b")];
    assert_eq!(names(&batch(two, None)), ["a", "b", "a_bbox", "b_bbox"]);
    let sphere = geometry(Edges::Geodesic).with_name("s");
    assert_eq!(names(&batch(vec![sphere.clone(), named("b")], None)), ["s", "b", "bbox"]);
    // A covering that the key names is computed anew; a second column gets one of its own.
    let mut column = GeoColumn::new();
    column.covering = Some(GeoCovering::of_struct("around"));
    let mut geo = GeoMetadata::new("a");
    geo.columns.insert("a".to_owned(), column.clone());
    geo.columns.insert("b".to_owned(), column);
    let old = Field::new("around", DataType::Struct(vec![other("xmin")].into()), true);
    let schema = batch(vec![named("a"), old, named("b")], Some(&geo.to_json()));
    assert_eq!(names(&schema), ["a", "around", "b", "b_bbox"]);
    let coverings = CoveringColumns::new(&schema, BoxSides::default()).expect("geometries");
    let stated: Vec<_> = coverings.coverings().collect();
    let of = GeoCovering::of_struct;
    assert_eq!(stated, [("a", of("around")), ("b", of("b_bbox"))]);

    let error = |fields: Vec<Field>| {
        CoveringColumns::new(&batch(fields, None), BoxSides::default())
            .map(drop)
            .expect_err("no name")
    };
    let taken = vec![named("a"), other("bbox"), other("a_bbox")];
    assert_eq!(error(taken).kind(), ErrorKind::Usage);
    assert_eq!(error(vec![sphere, other("x")]).kind(), ErrorKind::Usage);
}

#[test]
fn a_value_that_is_no_wkb_has_no_box() {
    let table = table();
    let mut values: Vec<Option<&[u8]>> = table.column(1).as_binary::<i32>().iter().collect();
    values[77] = Some(b"POINT (1 2)");
    let geometries: BinaryArray = values.into_iter().collect();
    let columns = vec![table.column(0).clone(), Arc::new(geometries) as ArrayRef];
    let broken = RecordBatch::try_new(table.schema(), columns).expect("a table");
    let coverings = CoveringColumns::new(&table.schema(), BoxSides::default()).expect("geometries");
    let error = coverings.add_to(&broken).expect_err("no WKB");
    assert_eq!(error.kind(), ErrorKind::Malformed(Spec::Geospatial));
    assert_eq!(error.at().column.as_deref(), Some("geom"));
    assert!(error.message().contains("row 77"), "{error}");
    let narrow = table.project(&[1]).expect("a column");
    assert_eq!(coverings.add_to(&narrow).expect_err("a column less").kind(), ErrorKind::Usage);
    let error = boxes_around(table.column(0), BoxSides::default()).expect_err("no bytes");
    assert_eq!(error.kind(), ErrorKind::Usage);
}

/// Copies files; returns the new one, and what the plan says of the key.
fn copied(rewrite: &Rewrite) -> (Reader, Vec<String>) {
    let plan = rewrite.plan().expect("a plan");
    let mut out = Vec::new();
    rewrite.run(WriteSink(&mut out)).expect("a copy");
    let notes = plan
        .notes
        .into_iter()
        .filter(|note| note.contains("geo") || note.contains("ARROW"))
        .collect();
    (Reader::new(Bytes::from(out)).expect("a file"), notes)
}

#[test]
fn a_copy_with_other_columns_has_a_key_that_holds() {
    let reader = covered(&table(), BoxSides::Float32, WriteOptions::new());
    let old = key_of(&reader).expect("a key");
    let of = |names: &[&str]| {
        let projected = reader.clone().project(names.iter().copied()).expect("columns");
        let rewrite = Rewrite::new([projected]);
        // By copied pages, and by rows that are written anew.
        let (copy, notes) = copied(&rewrite);
        let (anew, of_anew) = copied(&rewrite.regroup(true));
        assert_eq!((key_of(&copy), &notes), (key_of(&anew), &of_anew), "{names:?}");
        (key_of(&copy), notes)
    };
    let (same, notes) = of(&["geom", "bbox"]);
    assert_eq!((same.as_ref(), notes.len()), (Some(&old), 0));
    let (uncovered, notes) = of(&["row", "geom"]);
    let mut expected = old;
    expected.columns.get_mut("geom").expect("a column").covering = None;
    assert_eq!((uncovered, notes.len()), (Some(expected), 1), "{notes:?}");
    // A part of the boxes is no covering.
    let (uncovered, notes) = of(&["geom", "bbox.xmin"]);
    assert_eq!(uncovered.expect("a key").columns["geom"].covering, None);
    assert!(notes[0].contains("covering"), "{notes:?}");
    let (none, notes) = of(&["row", "bbox"]);
    assert_eq!(none, None);
    assert!(notes[0].contains("left out"), "{notes:?}");
    // What the caller sets is set.
    let projected = reader.clone().project(["row"]).expect("a column");
    let (copy, _) = copied(&Rewrite::new([projected]).set_key_value("geo", "{}"));
    let pairs = copy.metadata().key_values();
    assert!(pairs.iter().any(|pair| pair.key == "geo" && pair.value.as_deref() == Some("{}")));
}

#[test]
fn the_primary_column_of_a_key_is_one_that_is_there() {
    let mut geo = GeoMetadata::new("b");
    for name in ["a", "b"] {
        geo.columns.insert(name.to_owned(), GeoColumn::new());
    }
    let changes = geo.retain(|path| path == ["a"]);
    assert_eq!((geo.primary_column.as_str(), geo.columns.len(), changes.len()), ("a", 1, 2));
    assert!(geo.retain(|_| true).is_empty());
}

#[test]
fn the_key_of_several_files_is_of_all_their_rows() {
    let file = |first: f64, covers: bool, with_key: bool| {
        let values = [Some(point(first, 1.0)), Some(point(first + 1.0, 2.0))];
        let geometries: BinaryArray = values.iter().map(Option::as_deref).collect();
        let schema = Arc::new(Schema::new(vec![geometry(Edges::Planar)]));
        let batch = RecordBatch::try_new(schema, vec![Arc::new(geometries)]).expect("a table");
        let coverings = CoveringColumns::new(batch.schema_ref(), BoxSides::Float64).expect("one");
        let batch = coverings.add_to(&batch).expect("WKB");
        let options = WriteOptions::new();
        let options = if with_key { options.with_geo(GeoOptions::new()) } else { options };
        let (_, file) = write(&batch, options);
        let reader = Reader::new(file).expect("a file");
        let Some(mut geo) = key_of(&reader).filter(|_| !covers) else { return reader };
        geo.columns.get_mut("geom").expect("a column").covering = None;
        copied(&Rewrite::new([reader]).set_key_value("geo", geo.to_json())).0
    };
    let joined = |files: Vec<Reader>| {
        let (reader, notes) = copied(&Rewrite::new(files));
        let column = key_of(&reader).expect("a key").columns.remove("geom").expect("a column");
        let bbox = column.bbox.map(|bbox| [bbox.xmin, bbox.ymin, bbox.xmax, bbox.ymax]);
        (bbox, column.covering.is_some(), column.geometry_types, notes.len())
    };
    let points = || vec!["Point".to_owned()];
    let all = Some([-7.0, 1.0, 6.0, 2.0]);
    let (first, second) = (file(5.0, true, true), file(-7.0, true, true));
    assert_eq!(joined(vec![first.clone(), second]), (all, true, points(), 1));
    assert_eq!(joined(vec![first.clone(), file(-7.0, false, true)]), (all, false, points(), 1));
    // Nothing is known of a file without the key, and the order of the files changes nothing.
    let without = file(-7.0, true, false);
    let unknown = (None, false, vec![], 1);
    assert_eq!(joined(vec![first.clone(), without.clone()]), unknown);
    assert_eq!(joined(vec![without, first.clone()]), unknown);
    assert_eq!(joined(vec![first.clone(), first]), (Some([5.0, 1.0, 6.0, 2.0]), true, points(), 0));
}

#[test]
fn files_of_two_coordinate_systems_are_not_joined() {
    let file = |crs: &str| {
        let schema = Arc::new(Schema::new(vec![geometry(Edges::Planar)]));
        let geometries = BinaryArray::from_iter_values([point(1.0, 2.0)]);
        let batch = RecordBatch::try_new(schema, vec![Arc::new(geometries)]).expect("a table");
        let reader = Reader::new(write(&batch, WriteOptions::new()).1).expect("a file");
        let mut geo = GeoMetadata::new("geom");
        let mut column = GeoColumn::new();
        column.crs = GeoCrs::Projjson(crs.to_owned());
        geo.columns.insert("geom".to_owned(), column);
        copied(&Rewrite::new([reader]).set_key_value("geo", geo.to_json())).0
    };
    let code = |code: u32| format!("{{\"id\":{{\"authority\":\"EPSG\",\"code\":{code}}}}}");
    let spaced = code(4326).replace(':', ": ");
    let of = |crs: &str| Rewrite::new([file(&code(4326)), file(crs)]);
    assert!(of(&spaced).plan().is_ok());
    let error = of(&code(3857)).plan().expect_err("two systems");
    assert!(matches!(error.kind(), ErrorKind::Usage), "{error}");
    assert!(error.to_string().contains("coordinate systems"), "{error}");
    assert!(of(&code(3857)).drop_key_value("geo").plan().is_ok());
}

/// The metadata of the hint `ARROW:schema` alone, which is all that pyarrow has of a file with one.
fn in_hint(reader: &Reader, key: &str) -> Option<String> {
    let hint = reader.metadata().key_values().iter().find(|pair| pair.key == "ARROW:schema");
    let key_values = vec![hint.expect("a hint").clone()];
    let options = marquetry::schema::ArrowOptions::new();
    let all = marquetry::schema::Projection::all();
    let schema = reader.metadata().schema();
    let mapping = marquetry::schema::to_arrow(schema, &key_values, &all, &options);
    mapping.expect("a schema").schema.metadata().get(key).cloned()
}

#[test]
fn a_key_that_changes_changes_in_the_hint() {
    let stale = "{\"version\":\"1.1.0\",\"primary_column\":\"geom\",\"columns\":{}}";
    let metadata = [("geo", stale), ("a", "1"), ("z", "\"2\"")];
    let metadata = metadata.map(|(key, value)| (key.to_owned(), value.to_owned()));
    let fields = table().schema().fields().clone();
    let schema = Schema::new_with_metadata(fields, metadata.into());
    let batch = table().with_schema(Arc::new(schema)).expect("a table");
    let in_file = |reader: &Reader, key: &str| {
        let pair = reader.metadata().key_values().iter().find(|pair| pair.key == key);
        pair.and_then(|pair| pair.value.clone())
    };
    let check = |reader: &Reader, keys: [Option<&str>; 2]| {
        assert_eq!(in_hint(reader, "geo"), in_file(reader, "geo"));
        for (key, expected) in ["a", "z"].into_iter().zip(keys) {
            assert_eq!(in_hint(reader, key).as_deref(), expected, "{key}");
            assert_eq!(in_file(reader, key).as_deref(), expected, "{key}");
        }
    };
    let old = [Some("1"), Some("\"2\"")];
    let options = WriteOptions::new().with_key_value("a", "longer than before");
    let reader = covered(&batch, BoxSides::Float64, options);
    let new = [Some("longer than before"), Some("\"2\"")];
    assert!(in_hint(&reader, "geo").is_some_and(|geo| geo.contains("covering")));
    check(&reader, new);
    let reader = covered(&batch, BoxSides::Float64, WriteOptions::new());
    check(&reader, old);
    let project = |names: &[&str]| reader.clone().project(names.iter().copied()).expect("columns");
    check(&copied(&Rewrite::new([project(&["geom"])])).0, old);
    let (copy, _) = copied(&Rewrite::new([project(&["row"])]));
    assert_eq!(in_hint(&copy, "geo"), None);
    check(&copy, old);
    let geo = WriteOptions::new().with_geo(GeoOptions::new());
    check(&copied(&Rewrite::new([project(&["geom"])]).options(geo)).0, old);
    for (rewrite, expected) in [
        (Rewrite::new([reader.clone()]).set_key_value("z", ""), [Some("1"), Some("")]),
        (Rewrite::new([reader.clone()]).drop_key_value("z"), [Some("1"), None]),
        (Rewrite::new([reader.clone()]).drop_key_value("a"), [None, Some("\"2\"")]),
        (Rewrite::new([reader.clone()]).drop_key_value("a").drop_key_value("z"), [None; 2]),
    ] {
        check(&copied(&rewrite).0, expected);
    }
}
