//! Tests of `marq fill`, `doctor`, `optimize` and `bench`: files made better, and measured.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use marquetry::format::FieldRepetitionType;
use serde_json::{Value, json};

use crate::support::folder::{Folder, error};

/// Files of other writers, which left out one thing or another.
const FOREIGN: [&str; 4] =
    ["duckdb.parquet", "fastparquet.parquet", "int96.parquet", "polars.parquet"];

fn foreign() -> Folder {
    let folder = Folder::new();
    FOREIGN.iter().for_each(|name| folder.copy(name));
    folder.copy("trips.parquet");
    folder
}

fn one(folder: &Folder, name: &str) -> RecordBatch {
    let batches = folder.batches(name);
    let schema = batches.first().expect("rows").schema();
    arrow_select::concat::concat_batches(&schema, &batches).expect("rows")
}

#[test]
fn what_other_writers_left_out_is_filled_in() {
    let folder = foreign();
    for name in FOREIGN {
        let plan = folder.json(&["fill", name, "--dry-run", "-f", "json"]);
        let args = ["fill", name, "-o", "filled.parquet", "-f", "json"];
        let done = folder.json(&args);
        assert_eq!(done["schema"], json!("marq/1/fill"));
        assert_eq!((&plan["parts"], &plan["new_bytes"]), (&done["parts"], &Value::Null), "{name}");
        assert!(!done["parts"].as_array().expect("parts").is_empty(), "{name}: {done}");
        assert_eq!(one(&folder, "filled.parquet"), one(&folder, name), "{name}");
        let check = ["check", "--level", "truth", "filled.parquet"];
        assert!(folder.run(&check).status.success(), "{name}");
        let again = folder.json(&["fill", "filled.parquet", "--dry-run", "-f", "json"]);
        assert_eq!(again["parts"], json!([]), "{name}");
    }
}

#[test]
fn a_filter_tells_what_a_filling_brings() {
    let folder = foreign();
    folder.text(&["convert", "trips.parquet", "-o", "long.parquet"]);
    let args = ["fill", "long.parquet", "--bloom", "vendor:0.001", "--dry-run", "-f", "json"];
    let plan = folder.json(&[&args[..], &["--where", "vendor = 'nobody'"]].concat());
    assert_eq!(plan["parts"][0]["part"], json!("bloom-filters"));
    assert_eq!(plan["where"]["after"]["rows_left"], json!(0));
    assert!(!folder.path("NEW.parquet").exists());
}

#[test]
fn a_file_is_filled_in_place_or_not_at_all() {
    let folder = foreign();
    let before = one(&folder, "duckdb.parquet");
    folder.text(&["fill", "duckdb.parquet", "--in-place", "--what", "all"]);
    assert_eq!(one(&folder, "duckdb.parquet"), before);
    let same = folder.content_of("polars.parquet");
    for (code, flags) in [
        (2, &["--sorted", "absent", "--in-place"][..]),
        (2, &["--what", "nothing", "--in-place"]),
        (2, &["--in-place", "-o", "b.parquet"]),
        (2, &["--headers-only", "--bloom", "a", "--in-place"]),
        (2, &[]),
    ] {
        folder.refused(code, &[&["fill", "polars.parquet"], flags].concat());
    }
    assert_eq!(folder.content_of("polars.parquet"), same);
    folder.refused(2, &["fill", "polars.parquet", "-o", "polars.parquet"]);
}

#[test]
fn findings_have_prices_and_recipes_do_what_they_say() {
    let folder = foreign();
    let n = 40_000;
    let text = |i: i64| format!("https://example.com/a/long/path/{}", i * 7919 % 65_537);
    let texts: ArrayRef = Arc::new(StringArray::from_iter_values((0..n).map(text)));
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values((0..n).map(|i| 1 << 40 | i)));
    folder.columns("own.parquet", vec![("text", texts), ("number", numbers)]);
    let plain = ["convert", "own.parquet", "-o", "plain.parquet", "--codec", "none"];
    let plain = [&plain[..], &["--dictionary", "off", "--encoding", "number=PLAIN"]].concat();
    folder.text(&[&plain[..], &["--encoding", "text=PLAIN"]].concat());
    let args = ["doctor", "plain.parquet", "--target", "size", "-f", "json", "--recipe", "r.toml"];
    let found = folder.json(&args);
    assert_eq!(found["schema"], json!("marq/1/doctor"));
    let findings = found["findings"].as_array().expect("findings");
    let of_column = |column: &str| {
        let is_it =
            |of: &&Value| of["column"] == json!(column) && of["code"] == json!("column-encoding");
        findings.iter().find(is_it).unwrap_or_else(|| panic!("{found}"))
    };
    assert!(of_column("number")["share"].as_f64().expect("a share") < -0.8);
    assert!(of_column("text")["write_time"].is_number());
    let recipe = folder.content("r.toml");
    assert!(recipe.contains("[columns.\"number\"]"), "{recipe}");
    let args = ["optimize", "plain.parquet", "-o", "new.parquet", "-f", "json"];
    let done = folder.json(&[&args[..], &["--recipe", "r.toml"]].concat());
    let (before, after) = (done["bytes"].as_u64(), done["new_bytes"].as_u64());
    assert!(after < before.map(|bytes| bytes / 2), "{done}");
    let predicted = found["predicted_bytes"].as_u64().expect("bytes");
    let error = predicted.abs_diff(after.expect("bytes"));
    assert!(error * 10 < predicted, "{predicted} by the trial, then {done}");
    assert_eq!(one(&folder, "new.parquet"), one(&folder, "plain.parquet"));
    folder.refused(4, &["doctor", "plain.parquet", "--fail-on", "warn"]);
    folder.text(&["doctor", "new.parquet", "--fail-on", "error"]);
    let sarif = folder.json(&["doctor", "plain.parquet", "-f", "sarif"]);
    assert_eq!(sarif["version"], json!("2.1.0"));
    assert!(!sarif["runs"][0]["results"].as_array().expect("results").is_empty());
}

#[test]
fn files_of_other_writers_are_examined_and_written_anew() {
    let folder = foreign();
    for name in FOREIGN {
        for target in ["size", "scan", "balanced", "object-store", "points"] {
            let args = ["doctor", name, "--target", target, "-f", "json"];
            let found = folder.json(&args);
            assert_eq!(found["target"], json!(target));
        }
        let done = folder.json(&["optimize", name, "-o", "new.parquet", "-f", "json"]);
        assert_eq!(done["rows"], json!(one(&folder, name).num_rows()));
        let args = ["optimize", name, "--dry-run", "-f", "json"];
        assert_eq!(folder.json(&args)["schema"], json!("marq/1/doctor"));
        let check = ["check", "--level", "truth", "new.parquet"];
        assert!(folder.run(&check).status.success(), "{name}");
    }
    let codes: Vec<Value> = folder.json(&["doctor", "int96.parquet", "-f", "json"])["findings"]
        .as_array()
        .expect("findings")
        .iter()
        .map(|finding| finding["code"].clone())
        .collect();
    assert!(codes.contains(&json!("int96")), "{codes:?}");
}

#[test]
fn a_recipe_is_checked_before_anything_is_written() {
    let folder = foreign();
    for (recipe, code) in [
        ("profile = \"none such\"", 3),
        ("codec = \"zip\"", 3),
        ("unknown = 1", 3),
        ("[columns.\"absent\"]\ncodec = \"zstd:3\"", 2),
        ("sort = [\"absent\"]", 2),
        ("page-version = 7", 3),
        ("not toml", 3),
    ] {
        folder.put("r.toml", recipe);
        let args = ["optimize", "trips.parquet", "-o", "new.parquet", "--recipe", "r.toml"];
        folder.refused(code, &args);
        assert!(!folder.path("new.parquet").exists(), "{recipe}");
    }
    folder.put("r.toml", "sort = [\"fare:desc\"]\nrow-group-bytes = \"1MiB\"");
    let args = ["optimize", "trips.parquet", "-o", "new.parquet", "--recipe", "r.toml", "-q"];
    assert_eq!(folder.text(&args), "");
    let check = folder.run(&["check", "--level", "truth", "new.parquet"]);
    assert!(check.status.success(), "{}", error(&check));
}

#[test]
fn reads_and_writes_are_measured_within_the_time() {
    let folder = foreign();
    let args = ["bench", "trips.parquet", "--rounds", "2", "--codecs", "none,zstd:1", "-f", "json"];
    let found = folder.json(&[&args[..], &["-c", "id,fare", "-j", "1"]].concat());
    assert_eq!(found["schema"], json!("marq/1/bench"));
    let names = |of: &str, key: &str| -> Vec<Value> {
        found[of].as_array().expect("a list").iter().map(|of| of[key].clone()).collect()
    };
    assert_eq!(names("reads", "column"), ["all", "id", "fare"]);
    assert_eq!(names("writes", "codec"), ["none", "zstd:1"]);
    for of in ["reads", "writes"] {
        for measured in found[of].as_array().expect("a list") {
            assert_eq!(measured["rounds"], json!(2));
            assert!(measured["rows_per_second"].as_f64().expect("a rate") > 0.0);
        }
    }
    folder.refused(2, &["bench", "trips.parquet", "--codecs", "zip"]);
    folder.refused(2, &["bench", "trips.parquet", "--seconds", "0"]);
}

#[test]
fn files_whose_lists_have_other_names_are_examined_and_written_anew() {
    use parquet::data_type::Int64Type;
    use parquet::file::writer::SerializedFileWriter;
    use parquet::schema::parser::parse_message_type;
    let folder = Folder::new();
    let schema = "message m { \
                  repeated group rs { required int64 n; required int64 m; } required int64 key; }";
    let schema = Arc::new(parse_message_type(schema).expect("a schema"));
    let file = std::fs::File::create(folder.path("old.parquet")).expect("a file");
    let mut writer = SerializedFileWriter::new(file, schema, Default::default()).expect("a writer");
    let mut group = writer.next_row_group().expect("a row group");
    let levels = vec![1i16; 30_000];
    let reps: Vec<i16> = (0..30_000).map(|i| i16::from(i % 3 > 0)).collect();
    let mut leaf = 0;
    while let Some(mut column) = group.next_column().expect("a column") {
        let values: Vec<i64> = (0..30_000).collect();
        let typed = column.typed::<Int64Type>();
        match leaf {
            2 => typed.write_batch(&values[..10_000], None, None).expect("values"),
            _ => typed.write_batch(&values, Some(&levels), Some(&reps)).expect("values"),
        };
        leaf += 1;
        column.close().expect("a chunk");
    }
    group.close().expect("a row group");
    writer.close().expect("a file");
    for target in ["size", "scan", "balanced", "object-store"] {
        let args = ["optimize", "old.parquet", "-o", "new.parquet", "--target", target];
        let done = folder.json(&[&args[..], &["-f", "json"]].concat());
        assert_eq!(done["rows"], json!(10_000), "{done}");
        let same = folder.run(&["diff", "old.parquet", "new.parquet", "--what", "schema,data"]);
        assert_eq!(same.status.code(), Some(0), "{target}: {}", error(&same));
    }
    // Leaves by the names of the file, and by those that a writer would give them.
    for (name, codec) in [("rs.n", "GZIP"), ("rs.list.element.n", "ZSTD")] {
        let setting = format!("[columns.\"{name}\"]\ncodec = \"{}\"\n", codec.to_lowercase());
        folder.put("r.toml", setting);
        let args = ["optimize", "old.parquet", "-o", "new.parquet", "--recipe", "r.toml", "-q"];
        folder.text(&args);
        let reader = marquetry::Reader::open(folder.path("new.parquet")).expect("a file");
        let chunk = reader.metadata().column_chunk(0, 0).expect("a chunk").meta_data;
        assert_eq!(chunk.expect("metadata").codec.to_string(), codec, "{name}");
        let same = folder.run(&["diff", "old.parquet", "new.parquet", "--what", "schema,data"]);
        assert_eq!(same.status.code(), Some(0), "{name}: {}", error(&same));
    }
    folder.put("r.toml", "sort = [\"key:desc\"]");
    folder.text(&["optimize", "old.parquet", "-o", "new.parquet", "--recipe", "r.toml", "-q"]);
    let args = ["diff", "old.parquet", "new.parquet", "--what", "schema,data", "--key", "key"];
    folder.text(&args);
    let head = folder.text(&["head", "new.parquet", "-n", "1", "-c", "key", "-f", "csv"]);
    assert_eq!(head, "key\n9999\n");
    folder.put("r.toml", "[columns.\"rs.x\"]\ncodec = \"gzip\"\n");
    folder.refused(2, &["optimize", "old.parquet", "-o", "x.parquet", "--recipe", "r.toml"]);
}

#[test]
fn a_sorted_file_keeps_its_schema_and_row_groups() {
    let folder = foreign();
    let n = 3_000i64;
    let texts = (0..n).map(|i| (i % 5 > 0).then(|| format!("text {}", i * 7_919 % n)));
    let keys: ArrayRef = Arc::new(Int64Array::from_iter_values((0..n).map(|i| i * 7_919 % n)));
    let texts: ArrayRef = Arc::new(StringArray::from_iter(texts));
    folder.columns("own.parquet", vec![("key", keys), ("text", texts)]);
    let args = ["convert", "own.parquet", "-o", "groups.parquet", "--row-group-rows", "1000"];
    folder.text(&args);
    folder.put("r.toml", "sort = [\"key\"]\n[columns.\"text\"]\ncodec = \"gzip\"\n");
    let args = ["optimize", "groups.parquet", "-o", "new.parquet", "--recipe", "r.toml", "-q"];
    folder.text(&args);
    let reader = marquetry::Reader::open(folder.path("new.parquet")).expect("a file");
    assert_eq!(reader.metadata().row_groups(), 3);
    folder.text(&["check", "new.parquet", "--level", "truth"]);
    let same = ["diff", "groups.parquet", "new.parquet", "--what", "schema,data", "--key", "key"];
    folder.text(&same);
    for group in 0..3 {
        let group = reader.clone().row_groups([group]).expect("a row group");
        let rows: Vec<i64> = group
            .batches()
            .expect("rows")
            .flat_map(|batch| {
                let batch = batch.expect("rows");
                let keys = batch.column(0).as_any().downcast_ref::<Int64Array>().cloned();
                keys.expect("numbers").values().to_vec()
            })
            .collect();
        assert_eq!(rows.len(), 1_000);
        assert!(rows.is_sorted());
    }
    // INT96 is not written, which is said.
    folder.put("r.toml", "codec = \"gzip\"\n");
    let args = ["optimize", "int96.parquet", "-o", "new.parquet", "--recipe", "r.toml"];
    let output = folder.run(&args);
    assert!(output.status.success(), "{}", error(&output));
    assert!(error(&output).contains("INT96 becomes TIMESTAMP"), "{}", error(&output));
}

#[test]
fn int96_is_sorted_with_values_of_no_bytes() {
    use parquet::data_type::{
        FixedLenByteArray, FixedLenByteArrayType, Int64Type, Int96, Int96Type,
    };
    use parquet::file::writer::SerializedFileWriter;
    use parquet::schema::parser::parse_message_type;
    let folder = Folder::new();
    let schema = "message m { \
                  required int64 key; required int96 t; required fixed_len_byte_array(0) none; }";
    let schema = Arc::new(parse_message_type(schema).expect("a schema"));
    let file = std::fs::File::create(folder.path("old.parquet")).expect("a file");
    let mut writer = SerializedFileWriter::new(file, schema, Default::default()).expect("a writer");
    let mut group = writer.next_row_group().expect("a row group");
    let days = [3, 1, 2];
    let keys = days.map(i64::from);
    let mut column = group.next_column().expect("a column").expect("key");
    column.typed::<Int64Type>().write_batch(&keys, None, None).expect("values");
    column.close().expect("a chunk");
    let times = days.map(|day: u32| Int96::from(vec![0, 0, 2_440_588 + day]));
    let mut column = group.next_column().expect("a column").expect("t");
    column.typed::<Int96Type>().write_batch(&times, None, None).expect("values");
    column.close().expect("a chunk");
    let none = keys.map(|_| FixedLenByteArray::from(vec![]));
    let mut column = group.next_column().expect("a column").expect("none");
    column.typed::<FixedLenByteArrayType>().write_batch(&none, None, None).expect("values");
    column.close().expect("a chunk");
    group.close().expect("a row group");
    writer.close().expect("a file");
    folder.put("r.toml", "sort = [\"key\"]\n");
    let args = ["optimize", "old.parquet", "-o", "new.parquet", "--recipe", "r.toml", "-q"];
    folder.text(&args);
    let rows = folder.text(&["cat", "new.parquet", "-f", "csv"]);
    let rows: Vec<&str> = rows.lines().skip(1).collect();
    assert_eq!(
        rows,
        ["1,1970-01-02T00:00:00,0x", "2,1970-01-03T00:00:00,0x", "3,1970-01-04T00:00:00,0x"]
    );
}

#[test]
fn lookups_and_ranges_are_priced_and_no_target_lets_a_file_grow_beyond_its_bound() {
    let folder = Folder::new();
    let n = 40_000;
    // Texts in no order, and times that every row group and page has from all days.
    let text = |i: i64| format!("{:016x}", (i * 2_654_435_761) % (1 << 40));
    let texts: ArrayRef = Arc::new(StringArray::from_iter_values((0..n).map(text)));
    let days: ArrayRef = Arc::new(Int64Array::from_iter_values((0..n).map(|i| i * 7_919 % 30_011)));
    // Texts that no codec makes small.
    let mix = |i: i64| {
        let mixed = i.cast_unsigned().wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(23);
        mixed.wrapping_mul(0xD6E8_FEB8_6659_FD93)
    };
    let payload = |i: i64| (0..8).map(|k| format!("{:016x}", mix(i * 8 + k))).collect::<String>();
    let payloads: ArrayRef = Arc::new(StringArray::from_iter_values((0..n).map(payload)));
    folder.columns("own.parquet", vec![("key", texts), ("day", days), ("payload", payloads)]);
    let args = ["convert", "own.parquet", "-o", "many.parquet", "--row-group-rows", "4000"];
    folder.text(&[&args[..], &["--codec", "zstd:12", "--profile", "small"]].concat());
    folder.text(&["rewrite", "many.parquet", "--page-rows", "500", "--in-place"]);
    let found = folder.json(&["doctor", "many.parquet", "-f", "json"]);
    let findings = found["findings"].as_array().expect("findings");
    let of = |code: &str, column: &str| {
        let is_it = |of: &&Value| of["code"] == json!(code) && of["column"] == json!(column);
        findings.iter().find(is_it).unwrap_or_else(|| panic!("no {code}: {found}"))
    };
    let bloom = of("bloom-filter-missing", "key");
    assert!(bloom["bytes"].as_i64().expect("bytes") > 0);
    assert!(bloom["message"].as_str().expect("a text").contains("10 row groups"), "{bloom}");
    assert!(bloom["command"].as_str().expect("a command").contains("--bloom key"));
    let order = of("rows-clusterable", "day");
    assert!(order["message"].as_str().expect("a text").contains("pages"), "{order}");
    // A group without leaves, which is no column, changes nothing.
    std::fs::copy(folder.path("many.parquet"), folder.path("group.parquet")).expect("a copy");
    folder.change_footer("group.parquet", |footer| {
        let mut group = footer.schema[0].clone();
        (group.name, group.num_children) = ("none".to_owned(), Some(0));
        group.repetition_type = Some(FieldRepetitionType::Optional);
        footer.schema.insert(1, group);
        footer.schema[0].num_children = Some(4);
        footer.key_value_metadata = None;
    });
    let beside = folder.json(&["doctor", "group.parquet", "-f", "json"]);
    for code in ["bloom-filter-missing", "rows-clusterable"] {
        let named = |found: &Value| -> Vec<Value> {
            let findings = found["findings"].as_array().expect("findings").iter();
            let named = findings.filter(|finding| finding["code"] == json!(code));
            named.map(|finding| finding["column"].clone()).collect()
        };
        assert_eq!(named(&beside), named(&found), "{code}");
    }
    for (target, bound) in [("size", 0.0), ("balanced", 0.1), ("scan", 0.25), ("object-store", 0.0)]
    {
        let args = ["optimize", "many.parquet", "-o", "new.parquet", "--target", target];
        let done = folder.json(&[&args[..], &["-f", "json"]].concat());
        let bytes = |key: &str| done[key].as_f64().expect("bytes");
        let allowed = bytes("bytes") * (1.0 + bound) + 65_536.0;
        assert!(bytes("new_bytes") <= allowed, "{target}: {done}");
    }
}

#[test]
fn samples_take_a_part_of_the_memory_whatever_they_take_in_the_file() {
    let folder = Folder::new();
    let rows = 3_000_000;
    let nulls: ArrayRef = Arc::new(Int64Array::new_null(rows));
    folder.columns("nulls.parquet", vec![("n", nulls)]);
    let within = |rows: &Value| {
        let rows = rows.as_u64().expect("a number");
        assert!((1..=(16 << 20) / 8 / 8).contains(&rows), "{rows} rows of 8 bytes");
    };
    let json = |args: &[&str]| folder.json(&[args, &["nulls.parquet", "-f", "json"]].concat());
    let small = ["--mem", "16MiB"];
    let found = json(&[&["doctor"], &small[..]].concat());
    within(&found["sample_rows"]);
    assert_eq!(found["rows"], json!(rows));
    within(&json(&[&["optimize", "--dry-run"], &small[..]].concat())["sample_rows"]);
    let section = ["report", "--sections", "doctor"];
    within(&json(&[&section, &small[..]].concat())["doctor"]["sample_rows"]);
    within(&json(&[&["bench", "--rounds", "1"], &small[..]].concat())["rows"]);
    assert_eq!(json(&["doctor"])["sample_rows"], json!(rows), "4 GiB are enough");
}

#[test]
fn commands_and_recipes_name_columns_as_shells_and_toml_read_them() {
    let folder = Folder::new();
    let name = "cafe\u{301}; touch PWNED #";
    let values: ArrayRef =
        Arc::new(Int64Array::from_iter_values((0..40_000).map(|i| i * 7_919 % 30_011)));
    folder.columns("own.parquet", vec![(name, values)]);
    folder.text(&["convert", "own.parquet", "-o", "many.parquet", "--row-group-rows", "4000"]);
    folder.text(&["rewrite", "many.parquet", "--page-rows", "500", "--in-place"]);
    let found = folder.json(&["doctor", "many.parquet", "-f", "json", "--recipe", "r.toml"]);
    let findings = found["findings"].as_array().expect("findings");
    let order = findings.iter().find(|of| of["code"] == json!("rows-clusterable"));
    let order = order.unwrap_or_else(|| panic!("{found}"));
    let text = order["message"].as_str().expect("a text");
    assert!(text.contains(&format!("--sort '{name}')")), "{text}");
    let recipe = folder.content("r.toml");
    let line = recipe.lines().find(|line| line.contains("sort")).expect("a line");
    assert_eq!(line, format!("# sort = [\"{name}\"]"));
}

#[test]
fn int96_beyond_nanoseconds_is_examined_and_written_in_another_unit() {
    use parquet::data_type::{Int96, Int96Type};
    use parquet::file::writer::SerializedFileWriter;
    use parquet::schema::parser::parse_message_type;
    let folder = Folder::new();
    let schema = Arc::new(parse_message_type("message m { required int96 t; }").expect("a schema"));
    let file = std::fs::File::create(folder.path("old.parquet")).expect("a file");
    let mut writer = SerializedFileWriter::new(file, schema, Default::default()).expect("a writer");
    let mut group = writer.next_row_group().expect("a row group");
    // In the year 2517.
    let times: Vec<Int96> =
        (0..2000).map(|day| Int96::from(vec![0, 0, 2_440_588 + 200_000 + day])).collect();
    let mut column = group.next_column().expect("a column").expect("t");
    column.typed::<Int96Type>().write_batch(&times, None, None).expect("values");
    column.close().expect("a chunk");
    group.close().expect("a row group");
    writer.close().expect("a file");
    let unit = ["--int96", "us"];
    for command in [&["doctor", "old.parquet"][..], &["bench", "old.parquet", "--rounds", "1"]] {
        let output = folder.run(command);
        assert!(error(&output).contains("--int96 us"), "{command:?}: {}", error(&output));
        folder.text(&[command, &unit].concat());
    }
    let found = folder.json(&["doctor", "old.parquet", "--int96", "us", "-f", "json"]);
    for finding in found["findings"].as_array().expect("findings") {
        let command = finding["command"].as_str().expect("a command");
        assert!(!command.contains("optimize") || command.ends_with("--int96 us"), "{command}");
    }
    folder.text(&[&["optimize", "old.parquet", "-o", "new.parquet", "-q"][..], &unit].concat());
    let first = folder.text(&["head", "new.parquet", "-n", "1", "-f", "csv"]);
    assert_eq!(first, "t\n2517-08-01T00:00:00\n");
}

#[test]
fn columns_of_one_name_are_examined_measured_and_written_anew() {
    let folder = Folder::new();
    let n = 20_000;
    let numbers: ArrayRef =
        Arc::new(Int64Array::from_iter_values((0..n).map(|i| i * 7_919 % 10_007)));
    let texts: ArrayRef =
        Arc::new(StringArray::from_iter_values((0..n).map(|i| format!("text {}", i % 1_013))));
    let columns = vec![("d", numbers.clone()), ("e", texts), ("id", numbers)];
    folder.columns("a.parquet", columns);
    folder.text(&["rewrite", "a.parquet", "--in-place", "--codec", "gzip"]);
    folder.rename("a.parquet", 1, "d");
    let before = one(&folder, "a.parquet");
    let found = folder.json(&["doctor", "a.parquet", "-f", "json", "--recipe", "r.toml"]);
    let findings = found["findings"].as_array().expect("findings");
    // What a command could not name, none is about.
    let mut named = findings.iter().filter(|of| of["code"] == json!("rows-clusterable"));
    assert!(named.all(|of| of["column"] == json!("id")), "{found}");
    let bench =
        folder.json(&["bench", "a.parquet", "--rounds", "1", "--codecs", "none", "-f", "json"]);
    let reads = bench["reads"].as_array().expect("reads").iter();
    let names = reads.map(|read| &read["column"]).filter(|name| **name != json!("all"));
    let names: Vec<&Value> = names.collect();
    assert_eq!(names, [&json!("d"), &json!("d"), &json!("id")]);
    for flags in [&[][..], &["--recipe", "r.toml"]] {
        let args = ["optimize", "a.parquet", "-o", "new.parquet", "-q"];
        folder.text(&[&args[..], flags].concat());
        assert_eq!(one(&folder, "new.parquet").columns(), before.columns());
    }
}
