//! Tests how `marq` shows and filters geometries.

use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, BinaryArray, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use marquetry::{WriteOptions, Writer};
use serde_json::{Value, json};

use crate::support::folder::Folder;

/// ISO WKB of a point, or of a line with this number of points.
fn wkb(kind: u32, points: Option<u32>, coordinates: &[f64]) -> Vec<u8> {
    let mut out = vec![1];
    out.extend(kind.to_le_bytes());
    out.extend(points.into_iter().flat_map(u32::to_le_bytes));
    out.extend(coordinates.iter().flat_map(|v| v.to_le_bytes()));
    out
}

/// Writes geometries, three to a row group.
fn write(path: &Path, values: &[Option<Vec<u8>>]) {
    let column: ArrayRef = Arc::new(values.iter().map(Option::as_deref).collect::<BinaryArray>());
    let metadata = [("ARROW:extension:name", "geoarrow.wkb"), ("ARROW:extension:metadata", "{}")];
    let metadata = metadata.map(|(key, value)| (key.to_owned(), value.to_owned()));
    let field = Field::new("geom", DataType::Binary, true).with_metadata(metadata.into());
    let batch = RecordBatch::try_new(Arc::new(Schema::new(vec![field])), vec![column]);
    let batch = batch.expect("a table");
    let options = WriteOptions::new().with_row_group_rows(3);
    let mut writer = Writer::create_with(path, batch.schema(), options).expect("a writer");
    writer.write(&batch).expect("rows");
    writer.finish().expect("a file");
}

#[test]
fn marq_shows_boxes_types_and_texts_and_filters_by_a_box() {
    let folder = Folder::new();
    let values = [
        Some(wkb(1, None, &[30.0, 10.0])),
        None,
        Some(wkb(2, Some(2), &[1.0, 2.0, 3.0, 4.0])),
        Some(wkb(1001, None, &[50.0, 60.0, 7.0])),
        Some(wkb(1, None, &[f64::NAN; 2])),
    ];
    write(&folder.path("geo.parquet"), &values);
    let run = |args: &[&str]| folder.text(&[args, &["geo.parquet"]].concat());
    let parsed = |args: &[&str]| serde_json::from_str::<Value>(&run(args)).expect("JSON");
    let sides = json!({
        "xmin": 1.0, "xmax": 50.0, "ymin": 2.0, "ymax": 60.0, "zmin": 7.0, "zmax": 7.0,
    });
    let expected = json!([{
        "column": "geom", "bbox": sides, "types": [1, 2, 1001], "row_groups_with_bbox": 2,
        "row_groups_with_types": 2,
    }]);
    assert_eq!(parsed(&["info"])["geospatial"], expected);
    assert!(run(&["info", "-f", "table"]).contains("point, linestring, point z"));
    let chunks = parsed(&["stats", "--by", "chunk", "-c", "geom"]);
    let first = json!({"xmin": 1.0, "xmax": 30.0, "ymin": 2.0, "ymax": 10.0});
    assert_eq!(chunks["stats"][0]["geospatial"], json!({"bbox": first, "types": [1, 2]}));
    assert_eq!(chunks["stats"][0]["min"], Value::Null);
    let column = parsed(&["stats", "--by", "column", "-c", "geom"]);
    assert_eq!(column["stats"][0]["geospatial"], json!({"bbox": sides, "types": [1, 2, 1001]}));
    let shown = run(&["stats", "--by", "chunk", "-c", "geom", "-f", "table", "--wide"]);
    assert!(shown.contains("x 1, y 2") && shown.contains("x 50, y 60, z 7"), "{shown}");
    // Tables are for people; what programs read keeps all bytes.
    let shown = run(&["cat", "-f", "table", "--wide"]);
    for text in ["POINT (30 10)", "LINESTRING (1 2, 3 4)", "POINT Z (50 60 7)", "POINT EMPTY"] {
        assert!(shown.contains(text), "{shown}");
    }
    assert!(run(&["cat", "-f", "jsonl"]).contains("\"geom\":\"0x0101000000"));
    let count = |filter: &str| run(&["count", "--where", filter]).trim().to_owned();
    assert_eq!(count("intersects(geom, 0, 0, 2, 3)"), "1");
    assert_eq!(count("intersects(geom, 40, 0, 2, 90)"), "2");
    assert_eq!(count("not intersects(geom, 0, 0, 2, 3)"), "3");
    let plan = run(&["explain", "--where", "intersects(geom, 0, 0, 2, 3)", "-f", "table"]);
    assert!(plan.contains("pruned by statistics"), "{plan}");
}

#[test]
fn row_groups_that_state_no_types_are_counted() {
    let folder = Folder::new();
    let values: Vec<_> = (0..6).map(|i| Some(wkb(1, None, &[f64::from(i), 0.0]))).collect();
    write(&folder.path("geo.parquet"), &values);
    folder.change_footer("geo.parquet", |footer| {
        let meta = footer.row_groups[1].columns[0].meta_data.as_mut().expect("metadata");
        meta.geospatial_statistics.as_mut().expect("statistics").geospatial_types = None;
    });
    let column = folder.json(&["info", "geo.parquet"])["geospatial"][0].clone();
    assert_eq!((&column["types"], &column["row_groups_with_types"]), (&json!([1]), &json!(1)));
    assert_eq!(column["row_groups_with_bbox"], 2);
    let shown = folder.text(&["info", "geo.parquet", "-f", "table", "--wide"]);
    assert!(shown.contains("with types") && shown.contains("1 of 2"), "{shown}");
}
