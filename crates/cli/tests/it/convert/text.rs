//! Tests JSON lines that come back unchanged, and values with several text forms.

use std::sync::Arc;

use arrow_array::builder::{Int32Builder, MapBuilder, StringBuilder};
use arrow_array::{
    Array, ArrayRef, BinaryArray, Decimal128Array, Decimal256Array, Float64Array, Int64Array,
    ListArray, RecordBatch, StringArray, TimestampMicrosecondArray, TimestampSecondArray,
    make_array,
};
use arrow_buffer::i256;
use arrow_ipc::writer::FileWriter;
use arrow_schema::{DataType, Field, TimeUnit};
use marquetry::Reader;

use crate::support::folder::{Folder, fed};

impl Folder {
    /// The first batch of a Parquet file.
    fn rows(&self, name: &str) -> RecordBatch {
        let reader = Reader::open(self.path(name)).expect("Parquet");
        reader.batches().expect("rows").next().expect("a batch").expect("a batch")
    }
}

#[test]
fn decimals_are_numbers_of_json_with_all_their_digits() {
    let folder = Folder::new();
    let short = Decimal128Array::from(vec![Some(1250), Some(-5), None]);
    let short = short.with_precision_and_scale(9, 2).expect("a decimal");
    let long = i256::from_string(&"12345678".repeat(9)).expect("a number");
    let long = Decimal256Array::from(vec![long, -long, i256::ZERO]);
    let long = long.with_precision_and_scale(76, 3).expect("a decimal");
    let columns: Vec<(&str, ArrayRef)> = vec![("d", Arc::new(short)), ("l", Arc::new(long))];
    folder.columns("a.parquet", columns);
    let long = format!("{}.678", &"12345678".repeat(9)[..69]);
    let lines = |quote: &str| {
        format!(
            "{{\"d\":{quote}12.50{quote},\"l\":{quote}{long}{quote}}}\n\
             {{\"d\":{quote}-0.05{quote},\"l\":{quote}-{long}{quote}}}\n\
             {{\"d\":null,\"l\":{quote}0.000{quote}}}\n"
        )
    };
    assert_eq!(folder.text(&["cat", "a.parquet"]), lines(""));
    assert_eq!(folder.text(&["cat", "a.parquet", "--decimals", "text"]), lines("\""));
    // A double keeps the digits of one, and a decimal those of the other.
    folder.text(&["convert", "a.parquet", "-o", "a.jsonl"]);
    folder.text(&["convert", "a.jsonl", "-o", "b.parquet"]);
    assert_eq!(folder.type_of("b.parquet", "d"), DataType::Float64);
    assert_eq!(folder.type_of("b.parquet", "l"), DataType::Decimal256(76, 3));
    assert_eq!(folder.rows("b.parquet").column(1), folder.rows("a.parquet").column(1));
    let schema = "d: decimal128(9,2), l: decimal256(76,3)";
    folder.text(&["convert", "a.jsonl", "--schema", schema, "-o", "c.parquet"]);
    assert_eq!(folder.rows("c.parquet").columns(), folder.rows("a.parquet").columns());
    let schema = "d: decimal128(9,1)";
    let said = folder.refused(3, &["convert", "a.jsonl", "--schema", schema, "-o", "x.parquet"]);
    assert!(said.contains("line 2") && said.contains("-0.05"), "{said}");
    folder.refused(2, &["convert", "a.parquet", "--decimals", "text", "-o", "x.csv"]);
}

#[test]
fn digits_beyond_a_type_are_refused() {
    let folder = Folder::new();
    let rows = |name: &str, cell: &str| match name {
        "a.csv" => format!("a\n1\n{cell}\n"),
        _ => format!("{{\"a\":1}}\n{{\"a\":{cell}}}\n"),
    };
    let huge = "9".repeat(80);
    for name in ["a.csv", "a.jsonl"] {
        for (data_type, cell, wanted) in [
            ("decimal(10,2)", "1.23", Some("1.23")),
            ("decimal(10,2)", "1.239", None),
            ("decimal(10,2)", "1.5e2", Some("150.00")),
            ("decimal(10,2)", "1e70000", None),
            ("decimal(3,0)", "0.999", None),
            ("decimal(3,0)", "1000", None),
            ("decimal32(3,1)", "12.34", None),
            ("decimal64(3,1)", "12.3", Some("12.3")),
            ("decimal256(76,2)", "1e70000", None),
            ("decimal256(76,2)", "-1.230", Some("-1.23")),
            ("decimal256(76,0)", &huge, None),
            ("float64", "1e308", Some("1e308")),
            ("float64", "1e400", None),
            ("float64", "1e-400", Some("0.0")),
            ("float32", "1e39", None),
            ("float16", "1e5", None),
            ("utf8", "1e400", Some("1e400")),
        ] {
            folder.put(name, rows(name, cell));
            let schema = format!("a: {data_type}");
            let args = ["convert", name, "--schema", &schema, "--to", "csv"];
            match wanted {
                Some(wanted) => {
                    let text = folder.text(&args);
                    assert_eq!(text.lines().nth(2), Some(wanted), "{name} {data_type}");
                }
                None => {
                    let said = folder.refused(3, &args);
                    let line = if name == "a.csv" { 3 } else { 2 };
                    assert!(said.contains(&format!("{name}, line {line}: column a: ")), "{said}");
                }
            }
        }
        // Which is what is inferred.
        folder.put(name, rows(name, "1e400"));
        let said = folder.refused(3, &["convert", name, "--to", "csv"]);
        assert!(said.contains("1e400 is beyond the range of Float64"), "{said}");
    }
    for cell in ["-.", "."] {
        folder.put("a.csv", rows("a.csv", cell));
        folder.refused(3, &["convert", "a.csv", "--schema", "a: decimal(3,1)", "--to", "csv"]);
    }
    folder.put("a.csv", "a\ninf\n-inf\nNaN\n");
    assert_eq!(folder.text(&["convert", "a.csv", "--to", "csv"]), "a\nInfinity\n-Infinity\nNaN\n");
}

/// A file of Arrow whose one column is of this type, whatever its values are.
fn arrow_of(folder: &Folder, values: &dyn Array, data_type: DataType) {
    let data = values.to_data().into_builder().data_type(data_type).build().expect("values");
    let batch = RecordBatch::try_from_iter([("d", make_array(data))]).expect("a batch");
    let file = std::fs::File::create(folder.path("a.arrow")).expect("a file");
    let mut writer = FileWriter::try_new(file, &batch.schema()).expect("a file");
    writer.write(&batch).expect("rows");
    writer.finish().expect("an end");
}

#[test]
fn decimals_are_shown_with_digits_beyond_their_precision() {
    let folder = Folder::new();
    let digits = format!("1{}", "0".repeat(70));
    let long = i256::from_string(&digits).expect("a number");
    let long = Decimal256Array::from(vec![long, -long, i256::ZERO]);
    let short = Decimal128Array::from(vec![7, -100, 0]);
    let tens = "0".repeat(65);
    for (values, data_type, wanted) in [
        (
            &long as &dyn Array,
            DataType::Decimal256(40, 5),
            [format!("1{tens}.00000"), format!("-1{tens}.00000"), "0.00000".to_owned()],
        ),
        (&long, DataType::Decimal256(5, 70), {
            let one = format!("1.{}", "0".repeat(70));
            [one.clone(), format!("-{one}"), format!("0.{}", "0".repeat(70))]
        }),
        (&short, DataType::Decimal128(5, -2), ["700", "-10000", "0"].map(str::to_owned)),
    ] {
        arrow_of(&folder, values, data_type.clone());
        let text = folder.text(&["convert", "a.arrow", "--to", "jsonl"]);
        let wanted: String = wanted.map(|value| format!("{{\"d\":{value}}}\n")).concat();
        assert_eq!(text, wanted, "{data_type}");
    }
}

#[test]
fn objects_that_have_a_field_twice_are_refused() {
    let folder = Folder::new();
    for (line, path) in [
        (r#"{"a":1,"a":2}"#, "a"),
        (r#"{"s":{"b":1,"c":2,"b":3}}"#, "s.b"),
        (r#"{"l":[{"b":1,"b":2}]}"#, "l.b"),
    ] {
        folder.put("a.jsonl", format!("{{\"a\":1}}\n{line}\n"));
        let said = folder.refused(3, &["convert", "a.jsonl", "--to", "jsonl"]);
        assert!(said.contains(&format!("a.jsonl, line 2: column {path}: two fields")), "{said}");
    }
    folder.put("a.csv", "s\n\"{\"\"b\"\":1,\"\"b\"\":2}\"\n");
    let schema = "s: struct<b: int64>";
    let said = folder.refused(3, &["convert", "a.csv", "--schema", schema, "--to", "jsonl"]);
    assert!(said.contains("a.csv, line 2: column s: ") && said.contains("column b: two"), "{said}");
    // What is not read does no harm, and a key of a map is no field.
    folder.put("a.jsonl", "{\"a\":1,\"b\":2,\"b\":3,\"m\":{\"x\":1,\"x\":2}}\n");
    let schema = "a: int64, m: map<utf8, int64>";
    let args = ["convert", "a.jsonl", "--schema", schema, "--schema-only", "--to", "jsonl"];
    let pairs = r#"[{"key":"x","value":1},{"key":"x","value":2}]"#;
    assert_eq!(folder.text(&args), format!("{{\"a\":1,\"m\":{pairs}}}\n"));
}

#[test]
fn names_that_inference_sees_take_no_more_than_their_part_of_the_memory() {
    let folder = Folder::new();
    let lines: String = (0..9000).map(|i| format!("{{\"m\":{{\"k{i}\":{i}}}}}\n")).collect();
    folder.put("a.jsonl", &lines);
    let args = ["convert", "a.jsonl", "--mem", "16MiB", "--to", "jsonl"];
    let said = folder.refused(3, &args);
    assert!(said.contains("column m: more names") && said.contains("--variant m"), "{said}");
    let schema = ["--schema", "m: map<utf8, int64>", "--schema-only"];
    assert_eq!(folder.text(&[&args[..], &schema].concat()), lines);
    assert_eq!(folder.text(&["convert", "a.jsonl", "--to", "jsonl"]), lines);
    folder.text(&["convert", "a.jsonl", "--mem", "16MiB", "--variant", "m", "-o", "a.parquet"]);
}

#[test]
fn types_that_cannot_be_are_refused() {
    let folder = Folder::new();
    folder.put("a.csv", "a,b\n,1\n");
    let deep = format!("a: {}int8{}", "list<".repeat(3000), ">".repeat(3000));
    folder.put("deep", deep);
    for (schema, code) in [
        ("a: dictionary<int8, list<int8>>", 3),
        ("a: dictionary<int8, struct<a: int8>>", 3),
        ("@deep", 2),
        ("a: fixed_size_list<int8, -1>", 2),
        ("a: fixed_size_list<int64, 2000000000>", 2),
    ] {
        folder.refused(code, &["convert", "a.csv", "--schema", schema, "--to", "jsonl"]);
    }
}

#[test]
fn any_delimiter_stands_beside_empty_texts() {
    let folder = Folder::new();
    for delimiter in ["0", "1", "9", "a", "f", "z"] {
        folder.put("a.csv", format!("x{delimiter}y\n\"\"{delimiter}\"b\"\n"));
        let text = folder.text(&["convert", "a.csv", "--delimiter", delimiter, "--to", "jsonl"]);
        assert_eq!(text, "{\"x\":\"\",\"y\":\"b\"}\n", "{delimiter}");
    }
}

#[test]
fn dates_times_and_what_is_no_number_come_back() {
    let folder = Folder::new();
    let lines = concat!(
        r#"{"d":"2024-02-29","t":"2024-01-01T10:00:00","z":"2024-01-01T08:00:00Z","n":"2024-01-01T10:00:00.123456789","f":"NaN","s":"2024-01-01","l":["2024-01-01"]}"#,
        "\n",
        r#"{"d":null,"t":"2024-01-01T10:00:00.250","z":null,"n":null,"f":-1.5,"s":"soon","l":[null]}"#,
        "\n",
        r#"{"d":"0001-01-01","t":null,"z":"1969-12-31T23:59:59.999999Z","n":null,"f":"-Infinity","s":null,"l":null}"#,
        "\n",
    );
    folder.put("a.jsonl", lines);
    folder.text(&["convert", "a.jsonl", "-o", "a.parquet"]);
    let time = |unit, zone: Option<&str>| DataType::Timestamp(unit, zone.map(Into::into));
    for (column, wanted) in [
        ("d", DataType::Date32),
        ("t", time(TimeUnit::Microsecond, None)),
        ("z", time(TimeUnit::Microsecond, Some("UTC"))),
        ("n", time(TimeUnit::Nanosecond, None)),
        ("f", DataType::Float64),
        ("s", DataType::Utf8),
        ("l", DataType::List(Arc::new(Field::new_list_field(DataType::Date32, true)))),
    ] {
        assert!(folder.type_of("a.parquet", column).equals_datatype(&wanted), "{column}");
    }
    assert_eq!(folder.text(&["cat", "a.parquet"]), lines);
    let floats: ArrayRef = folder.rows("a.parquet").column(4).clone();
    let floats = floats.as_any().downcast_ref::<Float64Array>().expect("floats");
    assert!(floats.value(0).is_nan() && floats.value(2) == f64::NEG_INFINITY);
    // Digits that the type has no place for are not dropped.
    folder.put(
        "b.jsonl",
        "{\"t\":\"2024-01-01T10:00:00\"}\n{\"t\":\"2024-01-01T10:00:00.123456789\"}\n",
    );
    let said = folder.refused(3, &["convert", "b.jsonl", "--infer-rows", "1", "-o", "x.parquet"]);
    assert!(said.contains("b.jsonl, line 2: column t: "), "{said}");
    // Units after 1970, and offsets, if the type is given.
    folder.put("c.jsonl", "{\"t\":1500}\n{\"t\":\"1970-01-01T02:00:01.5+02:00\"}\n");
    let schema = "t: timestamp(ms, UTC)";
    folder.text(&["convert", "c.jsonl", "--schema", schema, "-o", "c.parquet"]);
    let line = "{\"t\":\"1970-01-01T00:00:01.500Z\"}\n";
    assert_eq!(folder.text(&["cat", "c.parquet"]), format!("{line}{line}"));
}

/// A map of texts to integers, with keys once, twice, and none, and null.
fn map() -> ArrayRef {
    let mut map = MapBuilder::new(None, StringBuilder::new(), Int32Builder::new());
    for entries in [Some(&[("x", Some(1)), ("y\"", None)][..]), Some(&[]), None] {
        for (key, value) in entries.into_iter().flatten() {
            map.keys().append_value(key);
            map.values().append_option(*value);
        }
        map.append(entries.is_some()).expect("as many keys as values");
    }
    Arc::new(map.finish())
}

#[test]
fn maps_are_objects_and_are_read_in_both_forms() {
    let folder = Folder::new();
    folder.columns("a.parquet", vec![("m", map())]);
    let objects = "{\"m\":{\"x\":1,\"y\\\"\":null}}\n{\"m\":{}}\n{\"m\":null}\n";
    let pairs = concat!(
        r#"{"m":[{"key":"x","value":1},{"key":"y\"","value":null}]}"#,
        "\n{\"m\":[]}\n{\"m\":null}\n"
    );
    assert_eq!(folder.text(&["cat", "a.parquet"]), objects);
    assert_eq!(folder.text(&["cat", "a.parquet", "--maps", "pairs"]), pairs);
    let csv = folder.text(&["cat", "a.parquet", "-f", "csv"]);
    assert!(csv.contains("\"{\"\"x\"\":1,"), "{csv}");
    for (name, text) in [("o.jsonl", objects), ("p.jsonl", pairs), ("c.csv", &csv)] {
        folder.put(name, text);
        folder.text(&["convert", name, "--schema", "m: map<utf8, int32>", "-o", "b.parquet"]);
        assert_eq!(folder.text(&["cat", "b.parquet"]), objects, "{name}");
    }
    // Keys that are no text, or are there twice, are no names.
    let keys = Arc::new(StringArray::from(vec!["a", "a"]));
    let mut twice = MapBuilder::new(None, StringBuilder::new(), Int32Builder::new());
    for key in keys.iter().flatten() {
        twice.keys().append_value(key);
        twice.values().append_value(1);
    }
    twice.append(true).expect("as many keys as values");
    folder.columns("t.parquet", vec![("m", Arc::new(twice.finish()))]);
    let line = "{\"m\":[{\"key\":\"a\",\"value\":1},{\"key\":\"a\",\"value\":1}]}\n";
    assert_eq!(folder.text(&["cat", "t.parquet"]), line);
    // Names that change from row to row are keys; a struct of thousands is of no use.
    let lines: String = (0..500).map(|i| format!("{{\"m\":{{\"k{i}\":{i}}}}}\n")).collect();
    folder.put("k.jsonl", &lines);
    folder.text(&["convert", "k.jsonl", "-o", "k.parquet"]);
    assert!(matches!(folder.type_of("k.parquet", "m"), DataType::Map(..)));
    assert_eq!(folder.text(&["cat", "k.parquet"]), lines);
}

#[test]
fn forms_that_do_not_go_together_are_an_error_with_its_line() {
    let folder = Folder::new();
    folder.put("n.jsonl", "{\"a\":[[1],null]}\n{\"a\":null}\n{\"a\":[null,[2.5]]}\n");
    folder.text(&["convert", "n.jsonl", "-o", "n.parquet"]);
    assert!(folder.text(&["cat", "n.parquet"]).starts_with("{\"a\":[[1.0],null]}\n"));
    for (second, what) in [("[1]", "an array"), ("{\"b\":1}", "an object")] {
        folder.put("a.jsonl", format!("{{\"a\":1}}\n{{\"a\":null}}\n{{\"a\":{second}}}\n"));
        let said = folder.refused(3, &["convert", "a.jsonl", "-o", "x.parquet"]);
        let wanted = format!("a.jsonl, line 3: column a: {what}, and a single value in line 1");
        assert!(said.contains(&wanted), "{said}");
        folder.text(&["convert", "a.jsonl", "--variant", "a", "-o", "v.parquet"]);
    }
    let deep = format!("{{\"a\":{}{}}}\n", "[".repeat(200), "]".repeat(200));
    folder.put("deep.jsonl", deep);
    let said = folder.refused(3, &["convert", "deep.jsonl", "-o", "x.parquet"]);
    assert!(said.contains("line 1"), "{said}");
}

#[test]
fn bytes_that_are_text_are_shown_as_text() {
    let folder = Folder::new();
    let values =
        |values: Vec<Option<&'static [u8]>>| -> ArrayRef { Arc::new(BinaryArray::from(values)) };
    let item = values(vec![Some(b"x"), Some(b"y")]);
    let list = ListArray::new(
        Arc::new(Field::new_list_field(DataType::Binary, true)),
        arrow_buffer::OffsetBuffer::from_lengths([1, 0, 1]),
        item,
        None,
    );
    folder.columns(
        "a.parquet",
        vec![
            ("text", values(vec![Some(b"na\xc3\xafve"), None, Some(b"a,b\n")])),
            ("bytes", values(vec![Some(b"text"), Some(b"\xff"), None])),
            ("digest", values(vec![Some(b"\0\0\0\x01"), Some(b""), None])),
            ("list", Arc::new(list)),
        ],
    );
    let text = folder.text(&["cat", "a.parquet"]);
    let wanted = r#"{"text":"naïve","bytes":"0x74657874","digest":"0x00000001","list":["x"]}"#;
    assert_eq!(text.lines().next(), Some(wanted));
    let table = folder.text(&["cat", "a.parquet", "-f", "table"]);
    assert!(table.contains("naïve") && table.contains("0xff"), "{table}");
    let csv = folder.text(&["cat", "a.parquet", "-f", "csv", "-c", "text,bytes"]);
    assert_eq!(csv, "text,bytes\nnaïve,0x74657874\n,0xff\n\"a,b\n\",\n");
    for (form, first, second) in
        [("hex", "0x6e61c3af7665,0x74657874", ",0xff"), ("base64", "bmHDr3Zl,dGV4dA==", ",/w==")]
    {
        let args = ["cat", "a.parquet", "-f", "csv", "-c", "text,bytes", "--binary", form];
        let csv = folder.text(&args);
        assert_eq!(csv.lines().skip(1).take(2).collect::<Vec<_>>(), [first, second]);
        folder.put("b.csv", csv);
        let schema = "text: binary, bytes: binary";
        let back = ["convert", "b.csv", "--schema", schema, "--binary", form, "-o", "b.parquet"];
        folder.text(&back);
        let (a, b) = (folder.rows("a.parquet"), folder.rows("b.parquet"));
        assert_eq!(a.columns()[..2], b.columns()[..2], "{form}");
    }
    let said = folder.refused(3, &["cat", "a.parquet", "--binary", "text"]);
    assert!(said.contains("column bytes") && said.contains("row 1"), "{said}");
    // As a type, in Parquet and Arrow.
    folder.text(&["convert", "a.parquet", "-c", "text", "--binary", "text", "-o", "s.parquet"]);
    assert_eq!(folder.type_of("s.parquet", "text"), DataType::Utf8);
    folder.refused(2, &["convert", "a.parquet", "--binary", "hex", "-o", "x.parquet"]);
    let stats = folder.text(&["stats", "a.parquet", "-c", "text,bytes", "-f", "csv"]);
    assert!(stats.contains("naïve") && stats.contains("0xff"), "{stats}");
}

#[test]
fn what_looks_like_null_or_needs_quotes_is_quoted_in_every_form_of_csv() {
    let folder = Folder::new();
    let n: ArrayRef = Arc::new(Int64Array::from(vec![Some(-1), None, Some(10)]));
    let s: ArrayRef = Arc::new(StringArray::from(vec![Some("-1"), None, Some("a\"b")]));
    folder.columns("a.parquet", vec![("n", n), ("s", s)]);
    for (flags, wanted) in [
        (&[][..], "n,s\n-1,-1\n,\n10,\"a\"\"b\"\n"),
        (&["--null", "-1"], "n,s\n\"-1\",\"-1\"\n-1,-1\n10,\"a\"\"b\"\n"),
        (&["--delimiter", "1"], "n1s\n\"-1\"1\"-1\"\n1\n\"10\"1\"a\"\"b\"\n"),
    ] {
        let args = [&["convert", "a.parquet", "-o", "a.csv"][..], flags].concat();
        folder.text(&args);
        assert_eq!(folder.content("a.csv"), wanted, "{flags:?}");
    }
}

#[test]
fn compressed_text_and_arrays_go_in_and_out() {
    let folder = Folder::new();
    let lines: String =
        (0..3000).map(|i| format!("{{\"i\":{i},\"s\":\"a]}},{{{i}\"}}\n")).collect();
    folder.put("a.jsonl", &lines);
    let outs = [
        "b.csv.gz",
        "b.tsv.zst",
        "b.jsonl.gz",
        "b.ndjson.zst",
        "b.json",
        "b.JSON.GZ",
        "b.json.zst",
    ];
    for out in outs {
        folder.text(&["convert", "a.jsonl", "-o", out]);
        let bytes = std::fs::read(folder.path(out)).expect("a file");
        let is_packed = bytes.starts_with(&[0x1f, 0x8b]) || bytes.starts_with(&[0x28, 0xb5, 0x2f]);
        assert_eq!(is_packed, out != "b.json", "{out}");
        folder.text(&["convert", out, "-o", "c.parquet"]);
        assert_eq!(folder.text(&["cat", "c.parquet"]), lines, "{out}");
        // By its first bytes, whatever it is called.
        std::fs::rename(folder.path(out), folder.path("plain")).expect("renamed");
        let form = if out.contains("sv") { "csv" } else { "json" };
        let tab = if out.contains("tsv") { "tab" } else { "," };
        let mut args = vec!["convert", "plain", "--from", form, "--to", "jsonl"];
        args.extend((form == "csv").then_some(["--delimiter", tab]).into_iter().flatten());
        assert_eq!(folder.text(&args), lines, "{out}");
    }
    folder.put("p.json", "[\n  {\n    \"i\": 1\n  },\n  {\"i\": [2]}\n]\n");
    let said = folder.refused(3, &["convert", "p.json", "--to", "jsonl"]);
    assert!(said.contains("p.json, line 5: column i: an array"), "{said}");
    folder.put("p.json", "[\n  {\n    \"i\": 1\n  },\n  {\"i\": 2}\n]\n");
    assert_eq!(folder.text(&["convert", "p.json", "--to", "jsonl"]), "{\"i\":1}\n{\"i\":2}\n");
    assert_eq!(
        folder.text(&["convert", "p.json", "--to", "json"]),
        "[\n{\"i\":1},\n{\"i\":2}\n]\n"
    );
    folder.put("cut.json", "[{\"i\":1},\n{\"i\":2}\n");
    let said = folder.refused(3, &["convert", "cut.json", "--to", "jsonl"]);
    assert!(said.contains("cut.json, line 3: the array has no end"), "{said}");
    folder.text(&["convert", "a.jsonl", "-o", "d.csv.gz"]);
    let mut packed = std::fs::read(folder.path("d.csv.gz")).expect("a file");
    packed.truncate(packed.len() / 2);
    folder.put("cut.csv.gz", packed);
    folder.refused(3, &["convert", "cut.csv.gz", "-o", "x.parquet"]);
    folder.refused(2, &["convert", "a.jsonl", "-o", "x.parquet.gz"]);
    folder.refused(2, &["convert", "a.jsonl", "-o", "x.arrow.zst"]);
    assert!(!folder.path("x.parquet").exists());
}

#[test]
fn a_record_takes_no_more_than_its_part_of_the_memory() {
    let folder = Folder::new();
    let long = "x".repeat(9 << 20);
    folder.put("long.jsonl", format!("{{\"a\":1}}\n{{\"a\":\"{long}\"}}\n"));
    folder.put("long.json", format!("[{{\"a\":1}},\n{{\"a\":\"{long}\"}}]\n"));
    folder.put("long.csv", format!("a\n1\n\"{long}\"\n"));
    for (name, place) in
        [("long.jsonl", "line 2"), ("long.json", "line 2"), ("long.csv", "record 3")]
    {
        let args = ["convert", name, "--mem", "64MiB", "--infer-rows", "1", "--to", "jsonl"];
        let said = folder.refused(3, &args);
        assert!(said.contains(place) && said.contains("--mem"), "{said}");
        folder.text(&["convert", name, "--to", "csv"]);
    }
    // The lines that types are inferred from are held, if they cannot be read twice.
    let args =
        ["convert", "-", "--from", "csv", "--mem", "1MiB", "--infer-rows", "0", "--to", "csv"];
    let output = fed(&mut folder.command(&args), "abcdefg\n".repeat(100_000).as_bytes());
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("--infer-rows"), "{said}");
}

#[test]
fn what_may_help_is_said() {
    let folder = Folder::new();
    for (header, flag) in [("a;b", "';'"), ("a\tb", "tab"), ("a|b", "'|'")] {
        folder.put("s.csv", format!("{header}\n1;2\n"));
        let said = |flags: &[&str]| {
            let output = folder.run(&[&["convert", "s.csv", "--to", "csv"], flags].concat());
            String::from_utf8_lossy(&output.stderr).into_owned()
        };
        assert!(said(&[]).contains(&format!("is it --delimiter {flag}?")), "{}", said(&[]));
        assert_eq!(said(&["-q"]), "");
        assert_eq!(said(&["--delimiter", ","]), "");
    }
    folder.put("late.csv", "a,b\n1,2\n1.5,2\n");
    folder.put("late.jsonl", "{\"a\":1}\n{\"a\":1.5}\n");
    for name in ["late.csv", "late.jsonl"] {
        let said = folder.refused(3, &["convert", name, "--infer-rows", "1", "--to", "csv"]);
        assert!(said.contains("hint: ") && said.contains("--infer-rows 0"), "{said}");
        folder.text(&["convert", name, "--infer-rows", "0", "--to", "csv"]);
    }
}

#[test]
fn rows_keep_their_order_on_any_number_of_threads() {
    let folder = Folder::new();
    let n: ArrayRef = Arc::new(Int64Array::from_iter_values(0..100_000));
    folder.columns("a.parquet", vec![("n", n)]);
    for form in ["csv", "json", "jsonl"] {
        let one = folder.text(&["cat", "a.parquet", "-f", form, "-j", "1"]);
        let four = folder.text(&["cat", "a.parquet", "-f", form, "-j", "4"]);
        assert!(one == four, "{form}");
        assert_eq!(
            one.lines().count(),
            100_000
                + match form {
                    "csv" => 1,
                    "json" => 2,
                    _ => 0,
                }
        );
    }
}

/// Makes a file of CSV and one of JSON lines with these cells in column `a`, which are texts of
/// JSON where they are no numbers.
fn put_cells(folder: &Folder, cells: &[&str]) {
    let (mut csv, mut json) = ("k,a\n".to_owned(), String::new());
    for (i, cell) in cells.iter().enumerate() {
        let quote = if serde_json::from_str::<f64>(cell).is_ok() { "" } else { "\"" };
        csv.push_str(&format!("{i},{cell}\n"));
        json.push_str(&format!("{{\"k\":{i},\"a\":{quote}{cell}{quote}}}\n"));
    }
    folder.put("a.csv", csv);
    folder.put("a.jsonl", json);
}

#[test]
fn late_values_of_another_type_are_refused_where_the_type_was_inferred() {
    let folder = Folder::new();
    for (first, late, schema, wanted) in [
        ("2024-01-31", "2024-02-01T10:11:12", "timestamp(us)", Some("2024-02-01T10:11:12")),
        ("2024-01-31", "2024-02-01T23:30:00-05:00", "date32", None),
        ("2024-01-31", "20240201", "date32", Some("2024-02-01")),
        ("2024-01-31", "45", "date32", None),
        ("2024-01-31T10:00:00", "20240201", "timestamp(s)", Some("1970-08-23T06:16:41")),
        ("2024-01-31T10:00:00", "2024-01-31T10:00:00Z", "timestamp(s)", None),
        (
            "2024-01-31T10:00:00Z",
            "2024-01-31T10:00:00",
            "timestamp(s, UTC)",
            Some("2024-01-31T10:00:00Z"),
        ),
        ("0.5", "12345678901234567891", "float64", Some("1.2345678901234567e19")),
        ("0.5", "9007199254740993", "decimal(20,1)", Some("9007199254740993.0")),
    ] {
        put_cells(&folder, &[first, late]);
        for (name, line) in [("a.csv", 3), ("a.jsonl", 2)] {
            let args = ["convert", name, "--to", "csv"];
            let said = folder.refused(3, &[&args[..], &["--infer-rows", "1"]].concat());
            assert!(said.contains(&format!("{name}, line {line}: column a: ")), "{said}");
            assert!(said.contains(late) && said.contains("hint: "), "{said}");
            let schema = format!("a: {schema}");
            let args = [&args[..], &["--schema", &schema]].concat();
            match wanted {
                Some(wanted) => {
                    let text = folder.text(&args);
                    assert_eq!(text.lines().nth(2), Some(&*format!("1,{wanted}")), "{name}");
                }
                None => _ = folder.refused(3, &args),
            }
        }
    }
    // A date is a time at midnight, and the other way round.
    for (first, late, wanted) in [
        ("2024-01-31", "2024-02-01T00:00:00", "2024-02-01"),
        ("2024-01-31", "+10999-12-31", "+10999-12-31"),
        ("2024-01-31T10:00:00", "2024-02-01", "2024-02-01T00:00:00"),
        ("0.5", "12345678901234567168", "1.2345678901234567e19"),
    ] {
        put_cells(&folder, &[first, late]);
        for name in ["a.csv", "a.jsonl"] {
            let text = folder.text(&["convert", name, "--infer-rows", "1", "--to", "csv"]);
            assert_eq!(text.lines().nth(2), Some(&*format!("1,{wanted}")), "{name}");
        }
    }
}

#[test]
fn digits_of_times_beyond_a_type_are_refused() {
    let folder = Folder::new();
    for (data_type, cell, wanted) in [
        ("time64(us)", "10:00:00.123456789", None),
        ("time64(us)", "10:00:00.123456000", Some("10:00:00.123456")),
        ("time64(ns)", "10:00:00.123456789", Some("10:00:00.123456789")),
        ("time64(ns)", "10:00:00.1234567891", None),
        ("time32(s)", "10:00:00.5", None),
        ("time32(s)", "10:30 PM", Some("22:30:00")),
        ("time32(ms)", "10:00:00.5", Some("10:00:00.500")),
        ("time32(ms)", "1500", Some("00:00:01.500")),
        ("time32(s)", "86399", Some("23:59:59")),
        ("time32(s)", "86400", None),
        ("time64(us)", "90000000000", None),
        ("time64(us)", "-5", None),
        ("time64(us)", "23:59:60", None),
        ("time64(us)", "10:00:60", None),
        ("timestamp(us)", "2016-12-31T23:59:60", None),
        ("date64", "2024-02-01T10:11:12.3456", None),
        ("date64", "2024-02-01T10:11:12.345", Some("2024-02-01T10:11:12.345")),
        ("date64", "2024-02-01T10:11:12-05:00", None),
        ("date64", "2024-02-01", Some("2024-02-01T00:00:00")),
        ("date64", "20240201", Some("2024-02-01T00:00:00")),
        ("timestamp(ns)", "2024-02-01T10:00:00.1234567891", None),
        ("timestamp(us)", "2024-02-01T10:00:00.12345600000", Some("2024-02-01T10:00:00.123456")),
        ("dictionary<int8, time32(s)>", "10:00:00.5", None),
        ("dictionary<int8, date32>", "2024-02-01", Some("2024-02-01")),
        ("dictionary<int8, decimal(5,2)>", "0.999", None),
        ("dictionary<int8, float64>", "1e400", None),
        ("dictionary<int8, float64>", "1.5", Some("1.5")),
    ] {
        put_cells(&folder, &[cell]);
        for name in ["a.csv", "a.jsonl"] {
            let schema = format!("a: {data_type}");
            let args = ["convert", name, "--schema", &schema, "--to", "csv"];
            match wanted {
                Some(wanted) => {
                    let text = folder.text(&args);
                    let line = format!("0,{wanted}");
                    assert_eq!(text.lines().nth(1), Some(&*line), "{name} {data_type}");
                }
                None => {
                    let said = folder.refused(3, &args);
                    assert!(said.contains("column a: ") && said.contains(cell), "{name}: {said}");
                }
            }
        }
    }
}

#[test]
fn a_nested_cell_of_csv_is_one_value() {
    let folder = Folder::new();
    for (schema, cell) in [
        ("l: list<int64>", "[1] [2]"),
        ("l: list<int64>", "[1][2]"),
        ("l: map<utf8, int64>", "{} {}"),
        ("l: struct<b: int64>", "{} {}"),
    ] {
        // As many values as rows.
        folder.put("a.csv", format!("k,l\n0,\n1,\"{cell}\"\n2,[3]\n"));
        let args = ["convert", "a.csv", "--schema", schema, "--to", "jsonl"];
        let said = folder.refused(3, &args);
        assert!(said.contains("a.csv, line 3: column l: "), "{schema}: {said}");
    }
    folder.put("a.csv", "k,l\n1,\" [1,\n2] \"\n2,null\n3,\n");
    let text = folder.text(&["convert", "a.csv", "--schema", "l: list<int64>", "--to", "jsonl"]);
    assert_eq!(text, "{\"k\":1,\"l\":[1,2]}\n{\"k\":2,\"l\":null}\n{\"k\":3,\"l\":null}\n");
}

#[test]
fn quotes_without_end_are_refused() {
    let folder = Folder::new();
    folder.put("a.csv", "a,b\n1,\"x\n2,y\n3,z\n");
    for flags in [&[][..], &["--infer-rows", "1"], &["--schema", "a: int64, b: utf8"]] {
        let said = folder.refused(3, &[&["convert", "a.csv", "--to", "jsonl"], flags].concat());
        assert!(said.contains("a.csv: ") && said.contains("in line 2 have no end"), "{said}");
    }
    folder.put("a.csv", "a,b\n1,\"x\n2\"");
    let text = folder.text(&["convert", "a.csv", "--to", "jsonl"]);
    assert_eq!(text, "{\"a\":1,\"b\":\"x\\n2\"}\n");
}

/// The bytes of a gzip file.
fn gzip(content: &[u8]) -> Vec<u8> {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    std::io::Write::write_all(&mut packed, content).expect("memory");
    packed.finish().expect("memory")
}

#[test]
fn padding_of_gzip_is_passed_over_and_damage_is_an_error_of_the_content() {
    let folder = Folder::new();
    let (begin, end) = (gzip(b"n\n1\n"), gzip(b"2\n"));
    let whole = [begin.clone(), end].concat();
    let rows = |bytes: &[u8]| {
        folder.put("a.csv.gz", bytes);
        folder.text(&["convert", "a.csv.gz", "--to", "csv"])
    };
    assert_eq!(rows(&whole), "n\n1\n2\n");
    for zeros in [1, 512, 100_000] {
        assert_eq!(rows(&[&whole[..], &vec![0; zeros]].concat()), "n\n1\n2\n", "{zeros}");
    }
    let mut wrong_sum = begin.clone();
    wrong_sum[begin.len() - 6] ^= 1;
    for damaged in [
        [&begin[..], b"behind"].concat(),
        [&begin[..], &[0; 100], b"behind"].concat(),
        begin[..begin.len() - 3].to_vec(),
        begin[..5].to_vec(),
        b"\x1f\x8b".to_vec(),
        wrong_sum,
    ] {
        folder.put("a.csv.gz", &damaged);
        let said = folder.refused(3, &["convert", "a.csv.gz", "--to", "csv"]);
        assert!(said.contains("a.csv.gz: "), "{said}");
    }
}

#[test]
fn an_arrow_file_is_not_compressed_as_a_whole() {
    let folder = Folder::new();
    folder.put("a.csv", "n\n1\n");
    for out in ["a.arrow.gz", "a.arrow.zst", "a.gz"] {
        let said = folder.refused(2, &["convert", "a.csv", "--to", "arrow", "-o", out]);
        assert!(said.contains("arrows"), "{said}");
        folder.text(&["convert", "a.csv", "--to", "arrows", "-o", out]);
        assert_eq!(folder.text(&["convert", out, "--from", "arrows", "--to", "csv"]), "n\n1\n");
    }
}

#[test]
fn instants_come_back_where_the_offset_of_the_zone_has_seconds() {
    let folder = Folder::new();
    let times =
        TimestampMicrosecondArray::from(vec![-5_364_662_400_000_000, 1_700_000_000_000_001]);
    let times: ArrayRef = Arc::new(times.with_timezone("America/New_York"));
    folder.columns("a.parquet", vec![("t", times)]);
    for name in ["a.csv", "a.jsonl"] {
        folder.text(&["convert", "a.parquet", "-o", name]);
        let text = folder.content(name);
        assert!(text.contains("1800-01-01T00:00:00Z"), "{text}");
        assert!(text.contains("2023-11-14T17:13:20.000001-05:00"), "{text}");
        let schema = "t: timestamp(us, America/New_York)";
        folder.text(&["convert", name, "--schema", schema, "-o", "b.parquet"]);
        assert_eq!(
            folder.rows("a.parquet").columns(),
            folder.rows("b.parquet").columns(),
            "{name}"
        );
    }
}

#[test]
fn bytes_that_look_like_hex_come_back() {
    let folder = Folder::new();
    let bytes = |values: Vec<&'static [u8]>| -> ArrayRef { Arc::new(BinaryArray::from(values)) };
    let columns = vec![("k", bytes(vec![b"0x", b"x"])), ("b", bytes(vec![b"0x4142", b"abc"]))];
    folder.columns("a.parquet", columns);
    for name in ["a.csv", "a.jsonl"] {
        folder.text(&["convert", "a.parquet", "-o", name]);
        let text = folder.content(name);
        assert!(text.contains("0x307834313432") && text.contains("abc"), "{text}");
        let back = ["convert", name, "--schema", "k: binary, b: binary", "-o", "b.parquet"];
        folder.text(&back);
        assert_eq!(
            folder.rows("a.parquet").columns(),
            folder.rows("b.parquet").columns(),
            "{name}"
        );
        // What is asked for is what is read.
        let said = folder.refused(3, &[&back[..], &["--binary", "hex"]].concat());
        assert!(said.contains("column k: ") && said.contains("\"x\" is not hex"), "{said}");
        folder.text(&["convert", "a.parquet", "--binary", "text", "-o", name]);
        assert!(folder.content(name).contains("0x4142"), "{name}");
        folder.text(&[&back[..], &["--binary", "text"]].concat());
        assert_eq!(
            folder.rows("a.parquet").columns(),
            folder.rows("b.parquet").columns(),
            "{name}"
        );
    }
}

#[test]
fn null_comes_back_in_csv_of_one_column() {
    let folder = Folder::new();
    let bytes: ArrayRef = Arc::new(BinaryArray::from(vec![Some(&b"\xff"[..]), None, Some(b"")]));
    let items = Arc::new(Int64Array::from(vec![1]));
    let lists = ListArray::new(
        Arc::new(Field::new_list_field(DataType::Int64, true)),
        arrow_buffer::OffsetBuffer::from_lengths([1, 0, 0]),
        items,
        Some(vec![true, false, true].into()),
    );
    let days: ArrayRef = Arc::new(arrow_array::Date32Array::from(vec![Some(0), None, Some(1)]));
    for (values, schema, text) in [
        (bytes, "a: binary", "a\n0xff\n\n0x\n"),
        (Arc::new(lists), "a: list<int64>", "a\n[1]\n\n[]\n"),
        // Other readers pass over empty lines.
        (days, "a: date32", "a\n1970-01-01\n\"\"\n1970-01-02\n"),
    ] {
        folder.columns("a.parquet", vec![("a", values)]);
        folder.text(&["convert", "a.parquet", "-o", "a.csv"]);
        assert_eq!(folder.content("a.csv"), text, "{schema}");
        folder.text(&["convert", "a.csv", "--schema", schema, "-o", "b.parquet"]);
        assert_eq!(
            folder.rows("a.parquet").columns(),
            folder.rows("b.parquet").columns(),
            "{schema}"
        );
        folder.text(&["convert", "a.csv", "-o", "c.parquet"]);
        assert_eq!(folder.rows("c.parquet").column(0).null_count(), 1, "{schema}");
    }
}

#[test]
fn a_line_that_ends_in_a_text_is_refused_in_every_form_of_json() {
    let folder = Folder::new();
    for end in ["\n", "\r", "\r\n"] {
        folder.put("a.json", format!("[{{\"a\":1}},\n{{\"a\":\"x{end}y\"}}]"));
        folder.put("a.jsonl", format!("{{\"a\":1}}\n{{\"a\":\"x{end}y\"}}\n"));
        for name in ["a.json", "a.jsonl"] {
            let said = folder.refused(3, &["convert", name, "--to", "jsonl"]);
            assert!(said.contains(&format!("{name}, line 2: ")), "{said}");
        }
    }
}

#[test]
fn columns_whose_types_are_stated_are_not_judged() {
    let folder = Folder::new();
    let lines = concat!(
        r#"{"k":1,"m":[{"key":"x","value":1},{"key":"x","value":2}]}"#,
        "\n",
        r#"{"k":2,"m":{"y":3}}"#,
        "\n"
    );
    folder.put("a.jsonl", lines);
    folder.refused(3, &["convert", "a.jsonl", "--to", "jsonl"]);
    let schema = "m: map<utf8, int64>";
    assert_eq!(folder.text(&["convert", "a.jsonl", "--schema", schema, "--to", "jsonl"]), lines);
}

#[test]
fn late_text_is_no_number() {
    let folder = Folder::new();
    let numbers = "{\"a\":1,\"f\":1.5,\"l\":[1]}\n".repeat(2);
    for (late, column) in
        [(r#"{"a":"007"}"#, "a"), (r#"{"f":"1.50"}"#, "f"), (r#"{"l":[2,"03"]}"#, "l")]
    {
        folder.put("a.jsonl", format!("{numbers}{late}\n"));
        let args = ["convert", "a.jsonl", "--infer-rows", "2", "--to", "jsonl"];
        let said = folder.refused(3, &args);
        assert!(said.contains(&format!("a.jsonl, line 3: column {column}: the text")), "{said}");
        assert!(said.contains("--infer-rows 0") && said.contains("--schema"), "{said}");
        let text = folder.text(&["convert", "a.jsonl", "--to", "jsonl"]);
        assert!(["\"007\"", "\"1.50\"", "\"03\""].iter().any(|late| text.contains(late)), "{text}");
        let schema = "a: int64, f: float64, l: list<int64>";
        folder.text(&[&args[..], &["--schema", schema]].concat());
    }
    folder.put("a.jsonl", format!("{numbers}{{\"f\":\"NaN\"}}\n"));
    folder.text(&["convert", "a.jsonl", "--infer-rows", "2", "--to", "jsonl"]);
}

#[test]
fn columns_of_one_name_have_the_types_that_are_stated() {
    let folder = Folder::new();
    folder.put("a.csv", "a,b,a\n01,2,03\n");
    let args = |schema| ["convert", "a.csv", "--schema", schema, "--to", "csv"];
    assert_eq!(folder.text(&args("a: utf8, a: int64")), "a,b,a\n01,2,3\n");
    assert_eq!(folder.text(&args("a: int64, b: float64, a: utf8")), "a,b,a\n1,2.0,03\n");
    for (schema, wanted) in [
        ("a: utf8", "several columns are called a"),
        ("b: utf8, b: utf8", "b is there more often"),
        ("c: utf8", "no column c"),
    ] {
        let said = folder.refused(2, &args(schema));
        assert!(said.contains(wanted), "{said}");
    }
}

#[test]
fn years_before_0_and_after_9999_come_back() {
    let folder = Folder::new();
    let far = [253_402_300_800, -126_037_641_600, -62_167_219_201, 8_210_298_412_799];
    let local = TimestampMicrosecondArray::from_iter_values(far.map(|second| second * 1_000_000));
    let instants = TimestampSecondArray::from_iter_values(far);
    let columns: Vec<(&str, ArrayRef)> =
        vec![("l", Arc::new(local)), ("i", Arc::new(instants.with_timezone("UTC")))];
    folder.columns("a.parquet", columns);
    for name in ["a.csv", "a.jsonl"] {
        folder.text(&["convert", "a.parquet", "-o", name]);
        let text = folder.content(name);
        assert!(text.contains("+10000-01-01T00:00:00") && text.contains("-202"), "{text}");
        // Inferred, they are text.
        folder.text(&["convert", name, "-o", "t.parquet"]);
        assert_eq!(folder.type_of("t.parquet", "l"), DataType::Utf8);
        let schema = "l: timestamp(us), i: timestamp(s, UTC)";
        folder.text(&["convert", name, "--schema", schema, "-o", "b.csv"]);
        folder.text(&["convert", "a.parquet", "-o", "a2.csv"]);
        assert_eq!(folder.content("b.csv"), folder.content("a2.csv"), "{name}");
    }
    let said =
        folder.refused(3, &["convert", "a.csv", "--schema", "l: timestamp(ns)", "--to", "csv"]);
    assert!(said.contains("+10000-01-01T00:00:00") && said.contains("beyond the years"), "{said}");
}

#[test]
fn zeros_in_front_of_numbers_are_kept() {
    let folder = Folder::new();
    folder.put("a.csv", "zip,n,f,neg\n00123,0,0.5,-1\n10115,10,1.5,-007\n");
    let line = "{\"zip\":\"00123\",\"n\":0,\"f\":0.5,\"neg\":\"-1\"}\n";
    assert!(folder.text(&["convert", "a.csv", "--to", "jsonl"]).starts_with(line));
    for (first, late) in [("1", "007"), ("1.5", "00.5"), ("1.5", "01")] {
        folder.put("a.csv", format!("k,a\n0,{first}\n1,{late}\n"));
        let args = ["convert", "a.csv", "--to", "csv"];
        assert_eq!(folder.text(&args), folder.content("a.csv"));
        let said = folder.refused(3, &[&args[..], &["--infer-rows", "1"]].concat());
        assert!(said.contains("a.csv, line 3: column a: ") && said.contains(late), "{said}");
        assert!(said.contains("hint: "), "{said}");
        folder.text(&[&args[..], &["--schema", "a: float64"]].concat());
    }
}

#[test]
fn cells_that_are_no_dates_and_times_are_text() {
    let folder = Folder::new();
    for cells in [
        ["2024-01-01T00:00:00.123456789", "9999-01-01T00:00:00"],
        ["2016-12-31T23:59:59Z", "2016-12-31T23:59:60Z"],
        ["2024-01-01T00:00:00", "2024-01-01T25:00:00"],
        ["2024-01-01T00:00:00", "2024-01-01T00:00:00 or later"],
        ["2024-01-01", "0000-00-00"],
    ] {
        put_cells(&folder, &cells);
        for name in ["a.csv", "a.jsonl"] {
            folder.text(&["convert", name, "-o", "a.parquet"]);
            assert_eq!(folder.type_of("a.parquet", "a"), DataType::Utf8, "{name} {cells:?}");
        }
        folder.text(&["convert", "a.parquet", "-o", "b.csv"]);
        assert_eq!(folder.content("b.csv"), folder.content("a.csv"));
    }
}

#[test]
fn errors_in_csv_say_the_line() {
    let folder = Folder::new();
    // A record of three lines, and empty lines.
    let before = "k,a\n1,\"x\ny\nz\"\n\n\n";
    for (bad, flags, wanted) in [
        (&b"2,w,3\n"[..], &[][..], "expected 2 got "),
        (b"2\n", &[], "expected 2 got 1"),
        (b"2,w,3\n", &["--infer-rows", "1"], "expected 2 got "),
        (b"2,\xff\n", &[], "invalid UTF-8 data in field 2"),
        (b"2,\xff\n", &["--infer-rows", "1"], "invalid UTF-8 data in field 2"),
        (b"x,w\n", &["--infer-rows", "1"], "column k: "),
        (b"x,w\n", &["--schema", "k: boolean"], "column k: "),
    ] {
        let first = if flags.contains(&"k: boolean") { "k,a\nTRUE,\"\n\n\"\n\n\n" } else { before };
        folder.put("a.csv", [first.as_bytes(), bad].concat());
        let args = [&["convert", "a.csv", "--to", "jsonl"], flags].concat();
        let said = folder.refused(3, &args);
        assert!(said.contains("a.csv, line 7: ") && said.contains(wanted), "{args:?}: {said}");
    }
    let rows = "1,\"\n\"\n".repeat(20_000);
    folder.put("a.csv", format!("k,a\n{rows}x,1\n"));
    let said = folder.refused(3, &["convert", "a.csv", "--to", "jsonl"]);
    assert!(said.contains("a.csv, line 40002: column k: "), "{said}");
    // One column, in which an empty line is a record.
    folder.put("a.csv", "k\r\n\r\n\r\nx\r\n");
    let said = folder.refused(3, &["convert", "a.csv", "--schema", "k: int64", "--to", "jsonl"]);
    assert!(said.contains("a.csv, line 4: column k: "), "{said}");
}

#[test]
fn errors_of_csv_name_the_line_in_which_a_record_begins() {
    let folder = Folder::new();
    // Three lines of a record, two empty ones, and a record of a line.
    let before = "t,n,b\n\"x\n\ny\",1,true\n\n\ny,2,false\n";
    for (record, schema) in [
        ("z,3.5,true", "t: utf8, n: int64, b: bool"),
        ("z,3,maybe", "t: utf8, n: int64, b: bool"),
        ("\"l\nz\",300,true", "t: utf8, n: uint8, b: bool"),
        ("z,3.55,true", "t: utf8, n: decimal128(9,1), b: bool"),
        ("z,3", "t: utf8, n: int64, b: bool"),
        ("z,3,true,4", "t: utf8, n: int64, b: bool"),
    ] {
        for end in ["\n", "\r\n"] {
            folder.put("a.csv", format!("{before}{record}\nw,4,true\n").replace('\n', end));
            let args = ["convert", "a.csv", "--schema", schema, "-o", "x.parquet"];
            for flags in [&["--schema-only"][..], &["--infer-rows", "1"]] {
                let said = folder.refused(3, &[&args[..], flags].concat());
                assert!(said.contains("a.csv, line 8: "), "{record:?}: {said}");
            }
        }
    }
    folder.put("a.csv", [before.as_bytes(), b"\xff,3,true\n"].concat());
    let said = folder.refused(3, &["convert", "a.csv", "-o", "x.parquet"]);
    assert!(said.contains("a.csv, line 8: "), "{said}");
    let said = folder.refused(3, &["convert", "a.csv", "--infer-rows", "1", "-o", "x.parquet"]);
    assert!(said.contains("a.csv, line 8: "), "{said}");
    // The text of a value says nothing of its line.
    folder.put("a.csv", "n\n1\nmet at line 7\n");
    let args = ["convert", "a.csv", "--schema", "n: int64", "-o", "x.parquet"];
    let said = folder.refused(3, &args);
    assert!(said.contains("a.csv, line 3: "), "{said}");
    // The first batch is not the last.
    let rows: String = (0..9000).map(|n| format!("\"{n}\n\"\n")).collect();
    folder.put("a.csv", format!("t\n{rows}1,2\n"));
    let said = folder.refused(3, &["convert", "a.csv", "--infer-rows", "1", "-o", "x.parquet"]);
    assert!(said.contains("a.csv, line 18002: "), "{said}");
}
