//! Tests VARIANT on the command line: shown as JSON, made of JSON lines, shredded, filtered by
//! paths.

use marquetry::Reader;
use marquetry::format::{FileMetaData, Thrift as _};
use serde_json::{Value, json};

use crate::support::close;
use crate::support::folder::Folder;

/// Rows whose `payload` is of many kinds: an object, one of other fields, null, nothing, a list.
const EVENTS: &str = r#"{"id":1,"payload":{"user":{"id":7,"name":"ada"},"tags":["x","y"],"amount":1.10},"ts":"t1"}
{"id":2,"payload":{"user":{"id":8},"amount":"n/a"},"ts":"t2"}
{"id":3,"payload":null,"ts":"t3"}
{"id":4,"ts":"t4"}
{"id":5,"payload":[1,2.5,{"a, \"b\"":null}],"ts":"t5"}
"#;

/// The payloads as they are shown.
const SHOWN: [&str; 5] = [
    r#"{"amount":1.10,"tags":["x","y"],"user":{"id":7,"name":"ada"}}"#,
    r#"{"amount":"n/a","user":{"id":8}}"#,
    "null",
    "null",
    r#"[1,2.5,{"a, \"b\"":null}]"#,
];

/// A folder with `events.jsonl`.
fn events() -> Folder {
    let folder = Folder::new();
    folder.put("events.jsonl", EVENTS);
    folder
}

impl Folder {
    /// Converts the events into a file with a VARIANT column `payload`.
    fn events(&self, file: &str, more: &[&str]) {
        let args = ["convert", "events.jsonl", "-q", "--variant", "payload", "-o", file];
        self.text(&[&args, more].concat());
    }

    fn texts(&self, args: &[&str]) -> Vec<String> {
        self.text(args).lines().map(str::to_owned).collect()
    }
}

fn expected() -> Vec<String> {
    (1..)
        .zip(SHOWN)
        .map(|(i, shown)| format!(r#"{{"id":{i},"payload":{shown},"ts":"t{i}"}}"#))
        .collect()
}

#[test]
fn rows_show_variants_as_json_in_every_form_shredded_or_not() {
    let folder = events();
    let shape = "payload={user: {id: int64, name: string}, tags: [string], amount: decimal(9, 2)}";
    for (file, shred) in [("plain.parquet", None), ("shredded.parquet", Some(shape))] {
        let shred: Vec<&str> = shred.into_iter().flat_map(|shape| ["--shred", shape]).collect();
        folder.events(file, &shred);
        assert_eq!(folder.texts(&["cat", file, "-f", "jsonl"]), expected());
        let head: Value =
            serde_json::from_str(&folder.text(&["head", file, "-f", "json"])).unwrap();
        assert_eq!(head[4]["payload"], json!([1, 2.5, {"a, \"b\"": null}]));
        folder.text(&["convert", file, "-q", "--variant", "json", "-o", "out.jsonl"]);
        let out = std::fs::read_to_string(folder.path("out.jsonl")).unwrap();
        assert_eq!(out.lines().collect::<Vec<_>>(), expected());

        let csv = folder.texts(&["cat", file, "-f", "csv"]);
        assert_eq!(csv[2], r#"2,"{""amount"":""n/a"",""user"":{""id"":8}}",t2"#);
        assert_eq!(csv[3..5], ["3,null,t3", "4,,t4"], "null is a value, and none is none");
        let table = folder.text(&["cat", file, "--wide"]);
        assert!(
            table.contains("variant") && SHOWN.iter().all(|shown| table.contains(shown)),
            "{table}"
        );
        assert!(folder.text(&["cat", file, "-f", "md"]).contains(SHOWN[1]));
    }
}

#[test]
fn a_line_becomes_one_value_whatever_it_is() {
    let folder = events();
    let lines =
        [r#"{"a":1,"b":[true]}"#, "[]", "\"text\"", "12345678901234567890.5", r#"{"b":{}}"#];
    folder.put("any.jsonl", lines.join("\n"));
    folder.text(&["convert", "any.jsonl", "-q", "--variant", "all", "-o", "any.parquet"]);
    let shown: Vec<String> = lines.iter().map(|line| format!("{{\"json\":{line}}}")).collect();
    assert_eq!(folder.texts(&["cat", "any.parquet", "-f", "jsonl"]), shown);
    // By way of Arrow, and back.
    folder.text(&["convert", "any.parquet", "-q", "-o", "any.arrow"]);
    folder.text(&[
        "convert",
        "any.arrow",
        "-q",
        "-o",
        "again.parquet",
        "--shred",
        "{b: [boolean]}",
    ]);
    assert_eq!(folder.texts(&["cat", "again.parquet", "-f", "jsonl"]), shown);
}

#[test]
fn variant_columns_stand_where_the_field_stood_and_others_are_as_before() {
    let folder = events();
    let text = "{\"z\":1,\"v\":2,\"value\":3,\"metadata\":4,\"a\":18446744073709551615}\n{\"v\":\"x\",\"late\":[1]}\n";
    folder.put("in.jsonl", text);
    folder.text(&["convert", "in.jsonl", "-q", "--variant", "v,late,never", "-o", "v.parquet"]);
    let schema = folder.text(&["schema", "--as", "tree", "v.parquet"]);
    let names: Vec<&str> = schema
        .lines()
        .filter(|line| line.starts_with(['├', '└']))
        .filter_map(|line| line[6..].trim().split(':').next())
        .collect();
    let names: Vec<&str> = names.iter().map(|name| name.trim_start_matches(['─', ' '])).collect();
    assert_eq!(names, ["z", "v", "value", "metadata", "a", "late", "never"], "{schema}");
    let rows = folder.texts(&["cat", "v.parquet", "-f", "jsonl"]);
    assert_eq!(
        rows[0],
        r#"{"z":1,"v":2,"value":3,"metadata":4,"a":18446744073709551615,"late":null,"never":null}"#
    );
    assert!(rows[1].contains(r#""v":"x""#) && rows[1].contains(r#""late":[1]"#), "{}", rows[1]);
    let typed = ["--schema", "z: int8, a: utf8", "--schema-only"];
    let args = ["convert", "in.jsonl", "-q", "--variant", "v", "-o", "t.parquet"];
    folder.text(&[&args[..], &typed].concat());
    let row = &folder.texts(&["cat", "t.parquet", "-f", "jsonl"])[0];
    assert_eq!(row, r#"{"z":1,"a":"18446744073709551615","v":2}"#);
}

#[test]
fn a_path_shows_a_part_in_the_place_of_the_whole() {
    let folder = events();
    folder.events("plain.parquet", &[]);
    folder.events("shredded.parquet", &["--shred", "{user: {id: int64}, tags: [string]}"]);
    for file in ["plain.parquet", "shredded.parquet"] {
        for (path, parts) in [
            ("$.user.id", ["7", "8", "null", "null", "null"]),
            ("tags[1]", ["\"y\"", "null", "null", "null", "null"]),
            ("$[2]['a, \"b\"']", ["null"; 5]),
            ("$[1]", ["null", "null", "null", "null", "2.5"]),
            ("$", SHOWN),
        ] {
            let shown = (1..).zip(parts);
            let shown =
                shown.map(|(i, part)| format!(r#"{{"id":{i},"payload":{part},"ts":"t{i}"}}"#));
            let shown: Vec<String> = shown.collect();
            let flags = [file, "--variant-path", path];
            assert_eq!(folder.texts(&[&["cat"], &flags[..], &["-f", "jsonl"]].concat()), shown);
            folder.text(&[&["convert"], &flags[..], &["-q", "-o", "part.parquet"]].concat());
            assert_eq!(folder.texts(&["cat", "part.parquet", "-f", "jsonl"]), shown);
        }
        let sample = ["sample", "-n", "2", file, "--variant-path", "$.user.id", "--where"];
        assert_eq!(
            folder.texts(&[&sample, &["id < 3 and ts != 't9'", "-f", "jsonl"][..]].concat()),
            [r#"{"id":1,"payload":7,"ts":"t1"}"#, r#"{"id":2,"payload":8,"ts":"t2"}"#]
        );
        let head = folder.text(&["head", "-n", "1", file, "--variant-path", "$.user", "--wide"]);
        assert!(head.contains(r#"{"id":7,"name":"ada"}"#) && !head.contains("tags"), "{head}");
        folder.text(&["convert", file, "-q", "-o", "all.arrow"]);
        let args =
            ["convert", "all.arrow", "--variant-path", "$.amount", "--to", "jsonl", "-o", "-"];
        assert!(folder.texts(&args)[1].contains(r#""payload":"n/a""#));
    }
}

#[test]
fn a_part_stands_beside_a_field_of_a_struct() {
    let folder = events();
    folder.put("s.jsonl", "{\"s\":{\"x\":1,\"y\":2},\"v\":{\"a\":7}}\n");
    folder.text(&["convert", "s.jsonl", "-q", "--variant", "v", "-o", "s.parquet"]);
    let args = ["cat", "s.parquet", "-c", "v,s.x", "--variant-path", "$.a", "-f", "jsonl"];
    assert_eq!(folder.texts(&args), [r#"{"v":7,"s":{"x":1}}"#]);
}

#[test]
fn info_says_which_parts_are_shredded_and_how_many_values_are_typed() {
    let folder = events();
    folder.events("plain.parquet", &[]);
    let shape = "{amount: decimal(9, 2), tags: [string], user: {id: int64}}";
    folder.events("shredded.parquet", &["--shred", shape]);
    let info = |file: &str| -> Value {
        serde_json::from_str(&folder.text(&["info", file, "-f", "json"])).unwrap()
    };
    assert_eq!(info("plain.parquet")["variants"], json!([{"column": "payload", "shredded": []}]));
    let part = |path: &str, type_name: &str, typed: Option<u64>, other: u64| json!({"path": path, "type": type_name, "typed_values": typed, "other_values": other});
    // Null and the list are no objects; the second amount is a text; a name is left of a user.
    let parts = json!([{"column": "payload", "shredded": [
        part("$", "object", None, 2),
        part("$.amount", "DECIMAL(9, 2)", Some(1), 1),
        part("$.tags", "list", None, 0),
        part("$.tags[*]", "STRING", Some(2), 0),
        part("$.user", "object", None, 1),
        part("$.user.id", "INT64", Some(2), 0),
    ]}]);
    assert_eq!(info("shredded.parquet")["variants"], parts);
    let table = folder.text(&["info", "shredded.parquet", "-f", "table"]);
    assert!(table.contains("$.amount") && table.contains("50.0 %"), "{table}");
    assert!(folder.text(&["info", "plain.parquet", "-f", "table"]).contains("not shredded"));
}

#[test]
fn what_cannot_be_done_is_refused_with_its_exit_code() {
    let folder = events();
    folder.events("v.parquet", &[]);
    folder.put("plain.jsonl", "{\"a\":1}\n");
    let out = ["-o", "x.parquet"];
    let convert = |args: &[&str]| -> Vec<String> {
        ["convert"].iter().chain(args).chain(&out).map(|arg| (*arg).to_owned()).collect()
    };
    for args in [
        convert(&["v.parquet", "--variant", "payload"]),
        convert(&["v.parquet", "--variant", "json"]),
        convert(&["plain.jsonl", "--variant", "a,,b"]),
        convert(&["plain.jsonl", "--shred", "infer"]),
        convert(&["plain.jsonl", "--variant", "a", "--shred", "{b: nothing}"]),
        convert(&["plain.jsonl", "--variant", "a", "--shred", "b=infer"]),
        convert(&["plain.jsonl", "--variant", "a", "--schema", "a: utf8"]),
        convert(&["plain.jsonl", "--variant", "all", "--schema", "a: utf8"]),
        convert(&["plain.jsonl", "--variant-path", "$.a"]),
        convert(&["v.parquet", "--variant-path", "$..a"]),
        ["head", "v.parquet", "--variant-path", "$["].map(str::to_owned).to_vec(),
        ["explain", "v.parquet", "--variant-path", "$"].map(str::to_owned).to_vec(),
        ["convert", "v.parquet", "--shred", "infer", "-o", "x.jsonl"].map(str::to_owned).to_vec(),
    ] {
        folder.refused(2, &args.iter().map(String::as_str).collect::<Vec<_>>());
    }
    folder.put("twice.jsonl", "{\"a\":1}\n{\"a\":{\"b\":1,\"b\":2}}\n");
    let args = ["convert", "twice.jsonl", "--variant", "a", "-o", "x.parquet"];
    let said = folder.refused(3, &args);
    assert!(
        said.contains("line 2") && said.contains("column a") && said.contains("\"b\""),
        "{said}"
    );
    folder.put("cut.jsonl", "{\"a\":1}\n[1,\n");
    let said = folder.refused(3, &["convert", "cut.jsonl", "--variant", "all", "-o", "x.parquet"]);
    assert!(said.contains("line 2") && said.contains("at byte 3"), "{said}");
    assert!(!folder.path("x.parquet").exists());
}

/// The footer of a file, changed.
fn with_footer(file: Vec<u8>, change: impl FnOnce(&mut FileMetaData)) -> Vec<u8> {
    let reader = Reader::new(bytes::Bytes::from(file.clone())).expect("a file");
    let mut footer = reader.metadata().index().to_file_meta_data().expect("a footer");
    change(&mut footer);
    let len = file.len() - 8;
    let footer_len = u32::from_le_bytes(*file[len..].first_chunk().unwrap()) as usize;
    close(file[..len - footer_len].to_vec(), &footer.to_thrift())
}

#[test]
fn info_shows_no_count_of_statistics_that_cannot_be_right() {
    let folder = events();
    folder.put("v.jsonl", "{\"v\":{\"a\":1}}\n");
    let args = ["convert", "v.jsonl", "-q", "--variant", "v", "--shred", "{a: int64}"];
    folder.text(&[&args[..], &["-o", "v.parquet"]].concat());
    let file = std::fs::read(folder.path("v.parquet")).unwrap();
    let typed = |change: &dyn Fn(&mut FileMetaData)| -> Value {
        let changed = with_footer(file.clone(), |footer| change(footer));
        std::fs::write(folder.path("lies.parquet"), changed).unwrap();
        folder.text(&["info", "lies.parquet", "-f", "table"]);
        let info = folder.text(&["info", "lies.parquet", "-f", "json"]);
        let info: Value = serde_json::from_str(&info).unwrap();
        let parts = info["variants"][0]["shredded"].as_array().unwrap();
        parts.iter().find(|part| part["path"] == "$.a").unwrap()["typed_values"].clone()
    };
    // The last column of each row group: `typed_value` of `a`.
    let set = |footer: &mut FileMetaData, values: i64, nulls: i64| {
        for group in &mut footer.row_groups {
            let meta = group.columns.last_mut().unwrap().meta_data.as_mut().unwrap();
            meta.num_values = values;
            meta.statistics.as_mut().unwrap().null_count = Some(nulls);
        }
    };
    assert_eq!(typed(&|_| {}), json!(1));
    for nulls in [i64::MIN, -1, 2, i64::MAX] {
        assert_eq!(typed(&|footer| set(footer, 1, nulls)), Value::Null, "{nulls}");
    }
    let many = |footer: &mut FileMetaData| {
        let group = footer.row_groups[0].clone();
        footer.num_rows = 3;
        footer.row_groups = vec![group; 3];
        set(footer, i64::MAX, 0);
    };
    assert_eq!(typed(&many), Value::Null);
}

#[test]
fn files_that_are_shredded_differently_become_one() {
    let folder = events();
    std::fs::create_dir(folder.path("all")).unwrap();
    let mut expected = String::new();
    let files = [("a", Some("{a: int64}")), ("b", Some("{b: string}")), ("c", None)];
    for (i, (name, shape)) in files.into_iter().enumerate() {
        let line = format!("{{\"id\":{i},\"v\":{{\"a\":{i},\"b\":\"{name}\"}}}}\n");
        folder.put("in.jsonl", &line);
        let out = format!("all/{name}.parquet");
        let args = ["convert", "in.jsonl", "-q", "--variant", "v", "-o", &out];
        let shred: Vec<&str> = shape.into_iter().flat_map(|shape| ["--shred", shape]).collect();
        folder.text(&[&args[..], &shred].concat());
        expected.push_str(&line);
    }
    let read = |args: &[&str]| folder.text(&[&["convert"], args, &["--to", "jsonl"]].concat());
    assert_eq!(read(&["all", "-o", "-"]), expected);
    folder.text(&["convert", "all", "-q", "-o", "out.parquet"]);
    assert_eq!(read(&["out.parquet", "-o", "-"]), expected);
    folder.text(&["convert", "all", "-q", "-o", "out.parquet", "--shred", "{a: int64}"]);
    assert_eq!(read(&["out.parquet", "-o", "-"]), expected);
    // Beside lines, whose column is not shredded.
    folder.put("more.jsonl", "{\"id\":9,\"v\":[9]}\n");
    let more = read(&["all/a.parquet", "more.jsonl", "--variant", "v", "-o", "-"]);
    assert_eq!(more, "{\"id\":0,\"v\":{\"a\":0,\"b\":\"a\"}}\n{\"id\":9,\"v\":[9]}\n");
    let part = read(&["all", "--variant-path", "$.b", "-c", "v", "-o", "-"]);
    assert_eq!(part, "{\"v\":\"a\"}\n{\"v\":\"b\"}\n{\"v\":\"c\"}\n");
    // Other differences are refused as before.
    folder.put("in.jsonl", "{\"id\":\"text\",\"v\":1}\n");
    folder.text(&["convert", "in.jsonl", "-q", "--variant", "v", "-o", "all/d.parquet"]);
    let said = folder.refused(2, &["convert", "all", "-o", "x.parquet"]);
    assert!(said.contains("another schema"), "{said}");
}

#[test]
fn a_new_field_beside_variant_columns_is_an_error_and_never_lost() {
    let folder = events();
    let late = |line: &str, last: &str| format!("{}{last}\n", format!("{line}\n").repeat(30_000));
    let args = ["convert", "late.jsonl", "--variant", "v", "-o", "x.parquet"];
    let mut said = Vec::new();
    for (line, last) in [
        ("{\"v\":1,\"id\":1}", "{\"v\":1,\"id\":1,\"new\":5}"),
        ("{\"v\":1}", "{\"v\":1,\"new\":5}"),
    ] {
        folder.put("late.jsonl", late(line, last));
        said.push(folder.refused(3, &args));
    }
    assert_eq!(said[0], said[1]);
    assert!(said[0].contains("line 30001") && said[0].contains("new"), "{}", said[0]);
    // It is left out where that was asked for, and none is new where the whole line is a value.
    let only = ["--schema", "id: int64", "--schema-only"];
    folder.text(&[&args[..], &["-q"], &only].concat());
    folder.text(&["convert", "late.jsonl", "-q", "--variant", "all", "-o", "x.parquet"]);
}

#[test]
fn a_variant_column_that_stands_twice_in_a_line_is_an_error() {
    let folder = events();
    let args = ["convert", "twice.jsonl", "--variant", "v,w", "--to", "jsonl", "-o", "-"];
    for line in [
        r#"{"v":1,"v":2}"#,
        r#"{ "w" : {"v": "}\"{"} , "v" : [1, 2] , "\u0076" : 2 }"#,
        r#"{"v":null,"id":1,"id":2,"v":"x"}"#,
    ] {
        folder.put("twice.jsonl", format!("{{\"v\":0}}\n{line}\n"));
        let said = folder.refused(3, &args);
        assert!(said.contains("line 2") && said.contains("column v"), "{said}");
    }
    // Other columns are as without VARIANT, and what lies deeper is none.
    folder.put("twice.jsonl", "{\"v\":{\"w\":1},\"id\":1,\"w\":{\"v\":[]},\"id\":2}\n");
    let said = folder.refused(3, &args);
    assert!(said.contains("line 1") && said.contains("column id"), "{said}");
    let line = "{\"v\":{\"w\":1},\"id\":2,\"w\":{\"v\":[]}}\n";
    folder.put("twice.jsonl", line);
    assert_eq!(folder.text(&args), line);
}

#[test]
fn an_invalid_value_is_passed_on_with_a_note_and_is_no_text() {
    use std::collections::HashMap;
    use std::sync::Arc;

    use arrow_array::{ArrayRef, BinaryArray, RecordBatch, StructArray};
    use arrow_schema::{DataType, Field, Schema};
    use marquetry::Writer;

    let folder = Folder::new();
    let binary = |name: &str| Field::new(name, DataType::Binary, false);
    let fields = vec![binary("metadata"), binary("value")];
    let metadata: ArrayRef = Arc::new(BinaryArray::from_vec(vec![b"\x01\0\0"; 2]));
    // The second value is the number 1 without its bytes.
    let value: ArrayRef = Arc::new(BinaryArray::from_vec(vec![b"\0", b"\x0c"]));
    let array = StructArray::new(fields.clone().into(), vec![metadata, value], None);
    let extension = ("ARROW:extension:name".to_owned(), "arrow.parquet.variant".to_owned());
    let field = Field::new("v", DataType::Struct(fields.into()), false);
    let field = field.with_metadata(HashMap::from([extension]));
    let schema = Arc::new(Schema::new(vec![field]));
    let batch = RecordBatch::try_new(schema.clone(), vec![Arc::new(array)]).expect("a batch");
    let mut writer = Writer::create(folder.path("bad.parquet"), schema).expect("a writer");
    writer.write(&batch).expect("rows");
    writer.finish().expect("a file");
    for out in ["new.parquet", "new.arrow"] {
        let output = folder.run(&["convert", "bad.parquet", "-o", out]);
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && text.contains("column v, row 1"), "{text}");
        let output = folder.run(&["convert", "bad.parquet", "-q", "-o", out]);
        assert!(output.status.success() && output.stderr.is_empty());
    }
    folder.refused(3, &["convert", "bad.parquet", "-o", "new.jsonl"]);
    assert!(!folder.path("new.jsonl").exists());
}
