//! Lies of the key `geo`: each is found, and nothing else is.

use marquetry::check::CheckLevel;
use marquetry::geo::{Edges, GeoMetadata, GeoOptions};
use marquetry::{Reader, WriteOptions};

use super::model::{findings, line, written};
use crate::types::geometry::{point, wkb};
use crate::types::geoparquet::typed;

type Values = Vec<Option<Vec<u8>>>;

fn places() -> Values {
    let mut values: Values =
        (0..20).map(|row| Some(point(f64::from(row), f64::from(row % 7) - 3.0))).collect();
    values[4] = None;
    values[13] = Some(wkb(2, 0, true, &[vec![13.0, 0.0], vec![13.5, 1.0]]));
    values
}

fn options() -> WriteOptions {
    WriteOptions::new().with_row_group_rows(10)
}

/// The true key of a file of these geometries and boxes.
fn true_key(values: &Values) -> String {
    let table = typed(values, Edges::Planar, values);
    let file = written(&table, options().with_geo(GeoOptions::new()));
    let reader = Reader::new(bytes::Bytes::from(file)).unwrap();
    GeoMetadata::find(reader.metadata().key_values()).unwrap().unwrap().to_json()
}

fn found(values: &Values, boxes: &Values, key: &str, level: CheckLevel) -> Vec<String> {
    let table = typed(values, Edges::Planar, boxes);
    let file = written(&table, options().with_key_value("geo", key));
    findings(file, level).iter().map(line).collect()
}

#[test]
fn each_lie_of_the_key_is_found() {
    let values = places();
    let key = true_key(&values);
    assert!(key.contains("\"covering\"") && key.contains("[0.0,-3.0,19.0,3.0]"), "{key}");
    for level in [CheckLevel::Footer, CheckLevel::Truth] {
        assert_eq!(found(&values, &values, &key, level), [""; 0]);
    }
    for (old, new, expected) in [
        ("{\"version\"", "{\"v", "geo-key-unreadable"),
        ("\"primary_column\":\"geom\"", "\"primary_column\":\"g\"", "geo-key-invalid"),
        ("\"WKB\"", "\"WKT\"", "geo-key-invalid geom"),
        ("\"LineString\"]", "\"Line\",\"LineString\"]", "geo-key-invalid geom"),
        ("\"crs\":null", "\"edges\":\"bent\"", "geo-key-invalid geom"),
        ("\"crs\":null", "\"orientation\":\"clockwise\"", "geo-key-invalid geom"),
        ("[\"bbox\",\"xmax\"]", "[\"box\",\"xmax\"]", "geo-key-invalid geom"),
        (
            "\"columns\":{",
            "\"columns\":{\"gone\":{\"encoding\":\"WKB\",\"geometry_types\":[]},",
            "geo-key-invalid gone",
        ),
    ] {
        let changed = key.replacen(old, new, 1);
        assert_ne!(changed, key);
        assert_eq!(found(&values, &values, &changed, CheckLevel::Footer), [expected], "{changed}");
    }
    for (old, new, expected) in [
        ("19.0,3.0]", "18.5,3.0]", "geo-box-too-small g1 geom"),
        ("[0.0,-3.0", "[0.0,-2.5", "geo-box-too-small g0 geom geo-box-too-small g1 geom"),
        (",\"LineString\"]", "]", "geo-type-missing g1 geom"),
        // Boxes around the antimeridian: between xmax and xmin there may be no x.
        ("[0.0,-3.0,19.0,", "[0.9,-3.0,0.1,", ""),
        ("[0.0,-3.0,19.0,", "[9.0,-3.0,8.0,", ""),
        ("[0.0,-3.0,19.0,", "[13.75,-3.0,13.25,", "geo-box-too-small g1 geom"),
        (
            "[0.0,-3.0,19.0,",
            "[15.0,-3.0,5.0,",
            "geo-box-too-small g0 geom geo-box-too-small g1 geom",
        ),
    ] {
        let changed = key.replacen(old, new, 1);
        assert_ne!(changed, key);
        let lines = found(&values, &values, &changed, CheckLevel::Values);
        assert_eq!(lines.join(" "), expected, "{changed}");
    }
}

#[test]
fn boxes_that_do_not_cover_are_found() {
    let values = places();
    let key = true_key(&values);
    for (row, other) in [
        (2, Some(point(2.0, 50.0))),
        (2, None),
        (4, Some(point(1.0, 1.0))),
        (13, Some(point(13.0, 0.5))),
    ] {
        let mut boxes = values.clone();
        boxes[row] = other;
        let expected = format!("geo-covering-wrong g{} geom", row / 10);
        assert_eq!(found(&values, &boxes, &key, CheckLevel::Values), [expected], "row {row}");
    }
}
