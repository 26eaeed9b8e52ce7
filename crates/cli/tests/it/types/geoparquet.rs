//! Tests the key `geo` of GeoParquet in `marq`: written on request, shown, checked, and its
//! covering used by --where.

use std::sync::Arc;

use arrow_array::{ArrayRef, BinaryArray, Float64Array, RecordBatch, StructArray};
use arrow_schema::{DataType, Field, Fields, Schema};
use marquetry::{WriteOptions, Writer};
use serde_json::{Value, json};

use crate::support::folder::{Folder, error};

const KEY: &str = r#"{"version":"1.1.0","primary_column":"geom","columns":{"geom":{"encoding":"WKB",
"geometry_types":["Point"],"covering":{"bbox":{"xmin":["bbox","xmin"],"ymin":["bbox","ymin"],
"xmax":["bbox","xmax"],"ymax":["bbox","ymax"]}}}}}"#;

/// Points with boxes, ten to a row group; `key` says what the plain bytes are.
fn write(folder: &Folder, name: &str, key: &str) {
    let at = |row: i32| f64::from(row / 10 * 20 + row % 10);
    let point =
        |row: i32| [&[1, 1, 0, 0, 0][..], &at(row).to_le_bytes(), &1f64.to_le_bytes()].concat();
    let geom: ArrayRef = Arc::new(BinaryArray::from_iter_values((0..40).map(point)));
    let x: ArrayRef = Arc::new(Float64Array::from_iter_values((0..40).map(at)));
    let y: ArrayRef = Arc::new(Float64Array::from(vec![1.0; 40]));
    let names = ["xmin", "ymin", "xmax", "ymax"];
    let fields: Fields =
        names.map(|name| Field::new(name, DataType::Float64, false)).to_vec().into();
    let sides = vec![x.clone(), y.clone(), x, y];
    let boxes = StructArray::new(fields.clone(), sides, None);
    let schema = Schema::new(vec![
        Field::new("geom", DataType::Binary, true),
        Field::new("bbox", DataType::Struct(fields), true),
    ]);
    let batch = RecordBatch::try_new(Arc::new(schema), vec![geom, Arc::new(boxes)]);
    let batch = batch.expect("a table");
    let options = WriteOptions::new().with_row_group_rows(10).with_key_value("geo", key);
    let mut writer =
        Writer::create_with(folder.path(name), batch.schema(), options).expect("a writer");
    writer.write(&batch).expect("rows");
    writer.finish().expect("a file");
}

#[test]
fn where_prunes_by_the_covering() {
    let folder = Folder::new();
    write(&folder, "a.parquet", KEY);
    let filter = "intersects(geom, 21.5, 0, 24, 9)";
    assert_eq!(folder.text(&["count", "--where", filter, "a.parquet"]).trim(), "3");
    let plan = folder.json(&["explain", "--where", filter, "a.parquet", "-f", "json"]);
    let text = plan.to_string();
    assert_eq!(text.matches("pruned by statistics").count(), 3, "{text}");
}

#[test]
fn the_key_is_written_shown_and_checked() {
    let folder = Folder::new();
    write(&folder, "a.parquet", KEY);
    folder.text(&["convert", "a.parquet", "-o", "b.parquet", "--geo", "--row-group-rows", "10"]);
    let info = folder.json(&["info", "b.parquet", "-f", "json"]);
    let expected = json!({
        "version": "1.1.0", "primary_column": "geom", "columns": [{
            "column": "geom", "encoding": "WKB", "geometry_types": ["Point"], "crs": "OGC:CRS84",
            "edges": "planar", "bbox": {"xmin": 0.0, "xmax": 69.0, "ymin": 1.0, "ymax": 1.0},
            "covering": "bbox",
        }],
    });
    assert_eq!(info["geoparquet"], expected);
    let shown = folder.text(&["info", "b.parquet", "-f", "table", "--wide"]);
    assert!(shown.contains("1.1.0, primary column geom"), "{shown}");
    let checked = folder.json(&["check", "--level", "truth", "b.parquet", "-f", "json"]);
    assert!(!checked.to_string().contains("geo-"), "{checked}");
    // A rewrite of one row group states the box of that.
    folder.text(&["rewrite", "b.parquet", "-o", "c.parquet", "--geo=geom", "--row-groups", "1"]);
    let info = folder.json(&["info", "c.parquet", "-f", "json"]);
    let bbox = &info["geoparquet"]["columns"][0]["bbox"];
    assert_eq!((&bbox["xmin"], &bbox["xmax"]), (&json!(20.0), &json!(29.0)));
    folder.refused(2, &["convert", "a.parquet", "-o", "d.parquet", "--geo=bbox"]);
}

#[test]
fn a_key_that_cannot_be_read_is_noted() {
    let folder = Folder::new();
    write(&folder, "a.parquet", "{\"version\":1}");
    let info = folder.json(&["info", "a.parquet", "-f", "json"]);
    assert!(info["geoparquet"]["error"].is_string(), "{info}");
    assert_eq!(folder.text(&["count", "a.parquet"]).trim(), "40");
    let checked = folder.command(&["check", "a.parquet", "-f", "json"]).output().expect("an end");
    let checked: Value = serde_json::from_slice(&checked.stdout).expect("JSON");
    assert!(checked.to_string().contains("geo-key-unreadable"), "{checked}");
}

/// The covering that `info` shows of a file, and the number of its columns.
fn covering(folder: &Folder, file: &str) -> (Value, usize) {
    let info = folder.json(&["info", file, "-f", "json"]);
    let columns = folder.batches(file).first().map_or(0, |batch| batch.num_columns());
    (info["geoparquet"]["columns"][0]["covering"].clone(), columns)
}

#[test]
fn boxes_are_computed_on_request() {
    let folder = Folder::new();
    write(&folder, "a.parquet", KEY);
    let plain = ["convert", "a.parquet", "--columns", "geom", "-o", "plain.parquet"];
    let plain = folder.run(&plain);
    assert!(error(&plain).contains("the key geo is mended"), "{}", error(&plain));
    assert_eq!(covering(&folder, "plain.parquet"), (Value::Null, 1));
    let plan = |file: &str| {
        let filter = "intersects(geom, 21.5, 0, 24, 9)";
        assert_eq!(folder.text(&["count", "--where", filter, file]).trim(), "3");
        folder.json(&["explain", "--where", filter, file, "-f", "json"]).to_string()
    };
    for (flag, side) in [
        ("--geo-covering", DataType::Float32),
        ("--geo-covering=float32", DataType::Float32),
        ("--geo-covering=float64", DataType::Float64),
    ] {
        let flags = ["convert", "plain.parquet", flag, "--row-group-rows", "10"];
        let name = format!("{}.parquet", flag.replace("--geo-", ""));
        let done = folder.run(&[&flags[..], &["-o", &name]].concat());
        assert!(!error(&done).contains("note"), "{}", error(&done));
        assert_eq!(covering(&folder, &name), (json!("bbox"), 2), "{flag}");
        let DataType::Struct(fields) = folder.type_of(&name, "bbox") else { panic!("a struct") };
        assert_eq!(*fields[0].data_type(), side);
        assert_eq!(plan(&name).matches("pruned by statistics").count(), 3, "{flag}");
        let checked = folder.json(&["check", "--level", "truth", &name, "-f", "json"]);
        assert!(!checked.to_string().contains("geo-"), "{checked}");
    }
    // In the order of boxes, in place of old ones, and in a folder of files.
    for file in ["plain.parquet", "a.parquet"] {
        let sorted = ["convert", file, "--geo-covering", "--sort", "bbox.xmin:desc"];
        folder.text(&[&sorted[..], &["-o", "b.parquet"]].concat());
        assert_eq!(covering(&folder, "b.parquet"), (json!("bbox"), 2));
        let first =
            folder.text(&["head", "-n", "1", "b.parquet", "--columns", "bbox", "-f", "json"]);
        assert!(first.contains("69"), "{first}");
    }
    folder.text(&[
        "convert",
        "plain.parquet",
        "--geo-covering",
        "--file-size",
        "1GB",
        "-o",
        "many",
    ]);
    let files = folder.names("many");
    assert_eq!(covering(&folder, &format!("many/{}", files[0])), (json!("bbox"), 2));
    folder.refused(2, &["convert", "plain.parquet", "--geo-covering", "-o", "a.csv"]);
    folder.refused(2, &["convert", "plain.parquet", "--geo-covering=int8", "-o", "c.parquet"]);
    folder.text(&["convert", "a.parquet", "--columns", "bbox", "-o", "boxes.parquet"]);
    folder.refused(2, &["convert", "boxes.parquet", "--geo-covering", "-o", "c.parquet"]);
}

#[test]
fn a_copy_says_that_its_key_is_mended() {
    let folder = Folder::new();
    write(&folder, "a.parquet", KEY);
    for command in ["convert", "rewrite"] {
        let run = |columns: &str, file: &str| {
            let done = folder.run(&[command, "a.parquet", "--columns", columns, "-o", file]);
            error(&done)
        };
        let note = run("geom", "b.parquet");
        assert!(note.contains("\"geom\": its covering is not in the file"), "{command}: {note}");
        let note = run("bbox", "c.parquet");
        assert!(note.contains("the key geo is left out"), "{command}: {note}");
        let info = folder.json(&["info", "c.parquet", "-f", "json"]);
        assert_eq!(info["geoparquet"], Value::Null, "{command}: {info}");
        let note = run("bbox,geom", "d.parquet");
        assert!(!note.contains("geo"), "{command}: {note}");
        assert_eq!(covering(&folder, "d.parquet"), (json!("bbox"), 2));
    }
    // Boxes of several files are those of all.
    folder.text(&["convert", "a.parquet", "--geo", "-o", "all.parquet"]);
    for (file, rows) in [("first.parquet", "0-1"), ("last.parquet", "2-3")] {
        let groups = ["convert", "a.parquet", "-o", "groups.parquet", "--row-group-rows", "10"];
        folder.text(&groups);
        let part = ["rewrite", "groups.parquet", "--geo", "--row-groups", rows, "-o", file];
        folder.text(&part);
    }
    for command in ["concat", "convert"] {
        let done = folder.run(&[command, "first.parquet", "last.parquet", "-o", "e.parquet"]);
        assert!(error(&done).contains("of all files"), "{command}: {}", error(&done));
        let of = |file: &str| folder.json(&["info", file, "-f", "json"])["geoparquet"].clone();
        assert_eq!(of("e.parquet"), of("all.parquet"), "{command}");
    }
}

#[test]
fn csv_about_several_files_has_the_key_of_each() {
    let folder = Folder::new();
    write(&folder, "b.parquet", KEY);
    folder.text(&["rewrite", "b.parquet", "-o", "a.parquet", "--drop-kv", "geo"]);
    let text = folder.text(&["info", "a.parquet", "b.parquet", "-f", "csv"]);
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].contains(",geoparquet,"), "{text}");
    assert!(!lines[1].contains("1.1.0") && lines[2].contains("1.1.0"), "{text}");
}
