//! Tests of `marq diff`: what is equal, what differs, and where.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, Float64Array, Int64Array, RecordBatch, StructArray};
use arrow_schema::{DataType, Field, Schema};
use marquetry::format::Type;
use marquetry::variant::{VariantArray, VariantArrayBuilder, VariantShape, VariantShredding};
use marquetry::{WriteOptions, Writer};
use serde_json::{Value, json};

use crate::support::folder::{Folder, error};

/// The report, and the exit code.
fn diff(folder: &Folder, args: &[&str]) -> (Value, Option<i32>) {
    let output = folder.run(&[&["diff", "-f", "json"], args].concat());
    let report = serde_json::from_slice(&output.stdout);
    (report.unwrap_or_else(|e| panic!("{e}: {}", error(&output))), output.status.code())
}

fn numbers(values: impl IntoIterator<Item = i64>) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(values))
}

#[test]
fn the_same_rows_in_another_layout_are_equal() {
    let folder = Folder::new();
    folder.copy("trips.parquet");
    let flags = ["--row-group-rows", "77", "--codec", "none", "--page-version", "2", "-q"];
    let args = ["convert", "trips.parquet", "-o", "other.parquet"];
    folder.run(&[&args[..], &flags].concat());
    let (report, code) = diff(&folder, &["trips.parquet", "other.parquet"]);
    assert_eq!((code, &report["equal"]), (Some(0), &json!(true)), "{report}");
    assert_eq!(report["data"]["rows_equal"], json!(1000));
    let (report, code) = diff(&folder, &["trips.parquet", "other.parquet", "--what", "layout"]);
    assert_eq!((code, &report["data"]), (Some(4), &Value::Null));
    let rows = report["layout"].as_array().expect("a list");
    assert!(rows.iter().any(|row| row["column"] == "id" && row["what"] == "codec"), "{rows:?}");
}

#[test]
fn a_value_that_differs_is_found_with_its_page() {
    let folder = Folder::new();
    folder.columns("a.parquet", vec![("id", numbers(0..500)), ("n", numbers(0..500))]);
    let changed = (0..500).map(|i| if i == 321 { -1 } else { i });
    folder.columns("b.parquet", vec![("id", numbers(0..500)), ("n", numbers(changed))]);
    let (report, code) = diff(&folder, &["a.parquet", "b.parquet"]);
    assert_eq!(code, Some(4));
    let found = &report["data"]["differences"][0];
    assert_eq!((&found["row_a"], &found["column"]), (&json!(321), &json!("n")));
    assert_eq!((&found["a"], &found["b"]), (&json!("321"), &json!("-1")));
    assert_eq!((&found["place_a"]["page"], &found["place_a"]["path"]), (&json!(0), &json!("n")));
    assert_eq!(report["data"]["total"], json!(1));
}

#[test]
fn rows_are_matched_by_key_whether_the_files_are_sorted_or_not() {
    let folder = Folder::new();
    folder.columns("a.parquet", vec![("id", numbers(0..100)), ("n", numbers(0..100))]);
    let all = || (0..110).rev().filter(|i| *i != 7);
    let changed = all().map(|i| if i == 50 { 0 } else { i });
    folder.columns("b.parquet", vec![("id", numbers(all())), ("n", numbers(changed))]);
    let (report, code) = diff(&folder, &["a.parquet", "b.parquet", "--key", "id", "-q"]);
    let data = &report["data"];
    assert_eq!((code, &data["rows_equal"]), (Some(4), &json!(98)), "{report}");
    assert_eq!((&data["rows_only_in_a"], &data["rows_only_in_b"]), (&json!(1), &json!(10)));
    let value = data["differences"].as_array().expect("a list").iter();
    let value = value.filter(|found| found["kind"] == "value").collect::<Vec<_>>();
    assert_eq!((value.len(), &value[0]["key"]), (1, &json!(["50"])));
    let refused = folder.run(&["diff", "a.parquet", "b.parquet", "--key", "none"]);
    assert_eq!(refused.status.code(), Some(2), "{}", error(&refused));
}

#[test]
fn nan_is_equal_to_nan_and_negative_zero_is_not_zero() {
    let folder = Folder::new();
    let floats = |zero: f64, nan: u64| -> ArrayRef {
        Arc::new(Float64Array::from(vec![zero, f64::from_bits(nan)]))
    };
    let (quiet, other) = (0x7FF8_0000_0000_0000, 0xFFF8_0000_0000_0001);
    folder.columns("a.parquet", vec![("f", floats(0.0, quiet))]);
    folder.columns("b.parquet", vec![("f", floats(0.0, other))]);
    folder.columns("c.parquet", vec![("f", floats(-0.0, quiet))]);
    assert_eq!(diff(&folder, &["a.parquet", "b.parquet"]).1, Some(0));
    let (report, code) = diff(&folder, &["a.parquet", "c.parquet"]);
    assert_eq!((code, &report["data"]["differences"][0]["row_a"]), (Some(4), &json!(0)));
}

#[test]
fn keys_that_are_nan_are_the_same_key_whatever_their_bits() {
    let folder = Folder::new();
    let nan = [0x7FF8_0000_0000_0000, 0xFFF8_0000_0000_0001, 0x7FF8_0000_0000_0123];
    let nan = nan.map(f64::from_bits);
    let floats = |floats: &[f64]| -> ArrayRef { Arc::new(Float64Array::from(floats.to_vec())) };
    let columns =
        |keys: &[f64], n: &[i64]| vec![("k", floats(keys)), ("n", numbers(n.iter().copied()))];
    folder.columns("a.parquet", columns(&[1.0, 2.0, nan[0]], &[1, 2, 3]));
    folder.columns("b.parquet", columns(&[1.0, 2.0, nan[1]], &[1, 2, 3]));
    folder.columns("c.parquet", columns(&[nan[2], 2.0, 1.0], &[3, 2, 1]));
    folder.columns("d.parquet", columns(&[nan[1], 2.0, 1.0], &[4, 2, 1]));
    for (a, b, code) in [
        ("a.parquet", "b.parquet", 0),
        ("b.parquet", "a.parquet", 0),
        ("a.parquet", "c.parquet", 0),
        ("c.parquet", "b.parquet", 0),
        ("c.parquet", "d.parquet", 4),
    ] {
        let (report, found) = diff(&folder, &[a, b, "--key", "k", "-q"]);
        assert_eq!(found, Some(code), "{report}");
        assert_eq!(report["data"]["rows_only_in_a"], json!(0), "{report}");
    }
}

#[test]
fn another_type_is_a_difference_of_the_schemas() {
    let folder = Folder::new();
    folder.columns("a.parquet", vec![("n", numbers(0..3)), ("m", numbers(0..3))]);
    let floats: ArrayRef = Arc::new(Float64Array::from(vec![0.0, 1.0, 2.0]));
    folder.columns("b.parquet", vec![("n", floats), ("l", numbers(0..3))]);
    let (report, code) = diff(&folder, &["a.parquet", "b.parquet"]);
    let columns: Vec<&Value> = report["schema_differences"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|fact| &fact["column"])
        .collect();
    assert_eq!((code, columns), (Some(4), vec![&json!("n"), &json!("m"), &json!("l")]));
    assert_eq!(report["data"]["columns_not_compared"], json!(["n", "m", "l"]));
}

#[test]
fn statistics_that_cannot_be_compared_are_an_error() {
    let folder = Folder::new();
    for (name, n) in [("a.parquet", 0..3), ("b.parquet", 5..9)] {
        folder.columns(name, vec![("n", numbers(n))]);
        folder.change_footer(name, |footer| footer.schema[1].r#type = Some(Type::Unknown(77)));
    }
    let output = folder.run(&["diff", "a.parquet", "b.parquet", "--what", "stats"]);
    assert_eq!(output.status.code(), Some(3), "{}", error(&output));
    assert!(error(&output).contains("column n"), "{}", error(&output));
}

#[test]
fn a_file_that_is_damaged_is_an_error_and_no_difference() {
    let folder = Folder::new();
    folder.columns("a.parquet", vec![("n", numbers(0..3))]);
    folder.put("b.parquet", b"PAR1 is all that is left PAR1");
    let output = folder.run(&["diff", "a.parquet", "b.parquet"]);
    assert_eq!(output.status.code(), Some(3), "{}", error(&output));
}

#[test]
fn rows_in_no_order_are_compared_by_key_beyond_memory() {
    let folder = Folder::new();
    let rows = 60_000i64;
    let shuffled = |i: i64| i * 7_919 % rows;
    let other = |i: i64| i * 7_907 % rows;
    let payload = |id: i64| if id == 1_234 { -1 } else { id * 3 };
    let a = vec![
        ("id", numbers((0..rows).map(shuffled))),
        ("n", numbers((0..rows).map(|i| shuffled(i) * 3))),
    ];
    let b = vec![
        ("id", numbers((0..rows).map(other))),
        ("n", numbers((0..rows).map(|i| payload(other(i))))),
    ];
    folder.columns("a.parquet", a);
    folder.columns("b.parquet", b);
    std::fs::create_dir(folder.path("temp")).expect("a folder");
    let args = ["a.parquet", "b.parquet", "--key", "id", "--mem", "2MiB", "--temp", "temp", "-q"];
    let (report, code) = diff(&folder, &args);
    assert_eq!(code, Some(4), "{report}");
    let data = &report["data"];
    assert_eq!((&data["total"], &data["rows_equal"]), (&json!(1), &json!(rows - 1)), "{report}");
    let found = &data["differences"][0];
    let row_a = (0..rows).position(|i| shuffled(i) == 1_234).expect("a row");
    assert_eq!((&found["row_a"], &found["key"][0]), (&json!(row_a), &json!("1234")));
    assert!(folder.names("temp").is_empty());
    // It is the folder that is used.
    let args = [&args[..7], &["missing", "-q"]].concat();
    let output = folder.run(&[&["diff"], &args[..]].concat());
    assert_eq!(output.status.code(), Some(1), "{}", error(&output));
}

#[test]
fn the_leaf_after_a_shredded_variant_is_named() {
    let folder = Folder::new();
    let write = |name: &str, changed: i64, shape: Option<&str>| {
        let mut builder = VariantArrayBuilder::new();
        (0..100i64).for_each(|i| builder.append(i).expect("a value"));
        let variants: ArrayRef = Arc::new(builder.finish().expect("an array"));
        let v = VariantArray::field("v", true).with_data_type(variants.data_type().clone());
        let x = Field::new("x", DataType::Int64, true);
        let numbers = numbers((0..100).map(|i| if i == 42 { changed } else { i }));
        let columns = StructArray::new(vec![v, x].into(), vec![variants, numbers], None);
        let field = Field::new("s", columns.data_type().clone(), true);
        let schema = Arc::new(Schema::new(vec![field]));
        let batch = RecordBatch::try_new(schema, vec![Arc::new(columns)]).expect("a batch");
        let options = match shape {
            Some(shape) => WriteOptions::new().with_shredding(
                "s.v",
                VariantShredding::Shape(VariantShape::parse(shape).expect("a shape")),
            ),
            None => WriteOptions::new(),
        };
        let path = folder.path(name);
        let mut writer = Writer::create_with(path, batch.schema(), options).expect("a writer");
        writer.write(&batch).expect("written");
        writer.finish().expect("finished");
    };
    write("a.parquet", 42, Some("{a: int64, b: {c: string}}"));
    write("b.parquet", 43, None);
    let (report, code) = diff(&folder, &["a.parquet", "b.parquet"]);
    let found = &report["data"]["differences"][0];
    assert_eq!((code, &report["data"]["total"]), (Some(4), &json!(1)), "{report}");
    for place in ["place_a", "place_b"] {
        assert_eq!(found[place]["path"], json!("s.x"), "{found}");
        assert_eq!(found[place]["page"], json!(0), "{found}");
    }
}
