//! Tests the output formats and the exit codes of the tool.

use std::process::Output;

use serde_json::Value;

use crate::support::folder::{self, error, fed};
use crate::support::testdata;

fn marq(args: &[&str]) -> Output {
    folder::marq(args).output().expect("marq runs")
}

fn path(name: &str) -> String {
    testdata(name).to_string_lossy().into_owned()
}

fn json(args: &[&str]) -> Value {
    serde_json::from_str(&text(args)).expect("JSON in a pipe")
}

fn text(args: &[&str]) -> String {
    let output = marq(args);
    assert!(output.status.success(), "{args:?}: {}", error(&output));
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn info_is_the_default_and_json_in_a_pipe() {
    let trips = path("trips.parquet");
    let info = json(&[&trips]);
    assert_eq!(info["schema"], "marq/1/info");
    assert_eq!((info["rows"].as_u64(), info["row_groups"].as_u64()), (Some(1000), Some(4)));
    assert_eq!(info, json(&["info", &trips]));
    let parts: u64 =
        info["bytes"].as_object().expect("parts").values().filter_map(Value::as_u64).sum();
    assert_eq!(Some(parts), info["file_bytes"].as_u64(), "every byte is accounted for");
    assert!(text(&["info", &trips, "--kv", "ARROW:schema"]).len() > 100);
}

#[test]
fn count_adds_up_files_and_reports_those_that_fail() {
    let (trips, duckdb) = (path("trips.parquet"), path("duckdb.parquet"));
    assert_eq!(json(&["count", "-f", "json", &trips, &duckdb])["rows"], 1200);
    let partial = marq(&["count", "-f", "json", &trips, &path("README.md")]);
    assert_eq!(partial.status.code(), Some(5));
    assert_eq!(serde_json::from_slice::<Value>(&partial.stdout).expect("JSON")["rows"], 1000);
}

#[test]
fn rows_are_json_lines_in_a_pipe() {
    let trips = path("trips.parquet");
    let ids = |args: &[&str]| -> Vec<i64> {
        text(args)
            .lines()
            .map(|line| {
                serde_json::from_str::<Value>(line).expect("an object")["id"]
                    .as_i64()
                    .expect("an id")
            })
            .collect()
    };
    assert_eq!(ids(&["head", "-n", "3", &trips]), [0, 1, 2]);
    assert_eq!(ids(&["tail", "-n", "2", &trips]), [998, 999]);
    assert_eq!(ids(&["cat", "--rows", "248:252", &trips]), [248, 249, 250, 251]);
    assert_eq!(ids(&["head", "-n", "1", "--row-group", "2", &trips]), [500]);
    assert_eq!(ids(&["cat", &trips]).len(), 1000);
    let sample = ids(&["sample", "-n", "5", "--seed", "7", &trips]);
    assert_eq!((sample.len(), sample.is_sorted()), (5, true));
    assert_eq!(sample, ids(&["sample", "-n", "5", "--seed", "7", &trips]));
}

#[test]
fn columns_by_name_path_glob_and_exclusion() {
    let trips = path("trips.parquet");
    let keys = |columns: &str| -> Vec<String> {
        let line = text(&["head", "-n", "1", "-c", columns, &trips]);
        serde_json::from_str::<Value>(&line)
            .expect("an object")
            .as_object()
            .expect("an object")
            .keys()
            .cloned()
            .collect()
    };
    assert_eq!(keys("vendor,id"), ["vendor", "id"]);
    assert_eq!(keys("p*"), ["pickup", "passengers", "payment"]);
    assert_eq!(keys("!stops,!tags,!p*"), ["id", "dropoff", "vendor", "distance", "fare"]);
    assert_eq!(marq(&["head", "-c", "nope", &trips]).status.code(), Some(2));
}

#[test]
fn schema_in_its_forms() {
    let trips = path("trips.parquet");
    assert!(text(&["schema", &trips]).contains("fare"));
    assert!(text(&["schema", "--as", "parquet", &trips]).starts_with("message schema {"));
    assert!(text(&["schema", "--as", "arrow", &trips]).contains("id: Int64 not null"));
    assert_eq!(json(&["schema", "--as", "json", &trips])["schema"], "marq/1/schema");
    for dialect in ["duckdb", "postgres", "spark", "clickhouse", "bigquery", "snowflake"] {
        assert!(
            text(&["schema", "--as", &format!("sql:{dialect}"), &trips])
                .starts_with("CREATE TABLE"),
            "{dialect}"
        );
    }
    assert_eq!(marq(&["schema", "--as", "sql:cobol", &trips]).status.code(), Some(2));
}

#[test]
fn pages_and_stats_say_what_the_metadata_say() {
    let trips = path("trips.parquet");
    let pages = json(&["pages", "-c", "fare", "--row-group", "1", &trips]);
    let chunk = &pages["chunks"][0];
    assert_eq!((chunk["column"].as_str(), chunk["codec"].as_str()), (Some("fare"), Some("ZSTD")));
    assert_eq!(chunk["pages"][0]["type"], "DICTIONARY_PAGE");
    let stats = json(&["stats", "--by", "chunk", "-c", "id", &trips]);
    let first = &stats["stats"][0];
    assert_eq!(
        (first["min"].as_i64(), first["max"].as_i64(), first["nulls"].as_i64()),
        (Some(0), Some(249), Some(0))
    );
    assert_eq!(
        json(&["stats", "--by", "rowgroup", &trips])["stats"].as_array().map(Vec::len),
        Some(4)
    );
    assert!(
        !json(&["stats", "--by", "page", "-c", "id", &trips])["stats"]
            .as_array()
            .expect("pages")
            .is_empty()
    );
}

#[test]
fn tables_markdown_and_csv_on_request() {
    let trips = path("trips.parquet");
    assert!(text(&["head", "-n", "2", "-c", "id,fare", "-f", "table", &trips]).contains('│'));
    assert!(
        text(&["head", "-n", "2", "-c", "id,fare", "-f", "md", &trips]).contains("| id | fare")
    );
    assert_eq!(
        text(&["head", "-n", "2", "-c", "id,vendor", "-f", "csv", &trips]).lines().next(),
        Some("id,vendor")
    );
    let array: Value =
        serde_json::from_str(&text(&["head", "-n", "2", "-f", "json", &trips])).expect("an array");
    assert_eq!(array.as_array().map(Vec::len), Some(2));
}

#[test]
fn convert_writes_every_form_and_files_appear_whole() {
    let folder = tempfile::tempdir().expect("a folder");
    let trips = path("trips.parquet");
    let out = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    for name in ["a.arrow", "a.arrows", "a.csv", "a.jsonl"] {
        text(&["convert", &trips, "-o", &out(name)]);
    }
    let file = std::fs::File::open(out("a.arrow")).expect("a file");
    let reader = arrow_ipc::reader::FileReader::try_new(file, None).expect("an IPC file");
    assert_eq!(reader.map(|batch| batch.expect("a batch").num_rows()).sum::<usize>(), 1000);
    let file = std::fs::File::open(out("a.arrows")).expect("a file");
    let reader = arrow_ipc::reader::StreamReader::try_new(file, None).expect("an IPC stream");
    assert_eq!(reader.map(|batch| batch.expect("a batch").num_rows()).sum::<usize>(), 1000);
    let lines = |name: &str| std::fs::read_to_string(out(name)).expect("text").lines().count();
    assert_eq!((lines("a.csv"), lines("a.jsonl")), (1001, 1000));
    let two = text(&["convert", &trips, &trips, "--to", "jsonl", "-o", "-"]);
    assert_eq!(two.lines().count(), 2000);
    // A command that fails leaves no file, and an existing file stays.
    std::fs::write(out("kept.arrow"), "before").expect("a file");
    let failed = marq(&["convert", &path("README.md"), "-o", &out("kept.arrow")]);
    assert_eq!(failed.status.code(), Some(3));
    assert_eq!(std::fs::read_to_string(out("kept.arrow")).expect("a file"), "before");
    assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 5);
}

#[test]
fn standard_input_is_a_file_named_dash() {
    let bytes = std::fs::read(path("trips.parquet")).expect("a file");
    let output = fed(&mut folder::marq(&["count", "-f", "json", "-"]), &bytes);
    assert_eq!(serde_json::from_slice::<Value>(&output.stdout).expect("JSON")["rows"], 1000);
}

#[test]
fn where_leaves_the_rows_that_meet_it() {
    let trips = path("trips.parquet");
    let lines = |args: &[&str]| -> Vec<Value> {
        let output = marq(args);
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).expect("text");
        text.lines()
            .map(|line| serde_json::from_str::<Value>(line).expect("JSON")["id"].clone())
            .collect()
    };
    let all = lines(&["cat", "-c", "id", &trips]);
    let wanted: Vec<Value> = all.iter().filter(|id| id.as_i64() >= Some(500)).cloned().collect();
    assert!(wanted.len() > 20 && wanted.len() < all.len());
    let filter = ["--where", "id >= 500", "-c", "id", trips.as_str()];
    let with = |command: &[&'static str]| [command, &filter].concat();
    assert_eq!(lines(&with(&["cat"])), wanted);
    assert_eq!(lines(&with(&["head", "-n", "7"])), wanted[..7]);
    assert_eq!(lines(&with(&["tail", "-n", "7"])), wanted[wanted.len() - 7..]);
    assert_eq!(lines(&with(&["convert", "--to", "jsonl"])), wanted);
    let some = lines(&with(&["sample", "-n", "5"]));
    assert!(some.len() == 5 && some.iter().all(|id| wanted.contains(id)), "{some:?}");
    // The filter looks at columns that are not shown, and --rows counts before it.
    let first: Vec<Value> =
        all[..600].iter().filter(|id| id.as_i64() >= Some(500)).cloned().collect();
    assert_eq!(lines(&with(&["cat", "--rows", "0:600"])), first);
    let count = marq(&["count", "-f", "json", "--where", "id >= 500", &trips]);
    let count: Value = serde_json::from_slice(&count.stdout).expect("JSON");
    assert_eq!(count["rows"], wanted.len());
    let explained = marq(&["explain", "--where", "id < 0", &trips]);
    let explained: Value = serde_json::from_slice(&explained.stdout).expect("JSON");
    assert_eq!(explained["files"][0]["rows_left"], 0);
}

#[test]
fn exit_codes_follow_the_kind_of_the_error() {
    let trips = path("trips.parquet");
    for (args, code) in [
        (&["count", "/no/such/file"][..], 1),
        (&["frobnicate", "--nope", &trips], 2),
        (&["cat", &path("README.md")], 3),
        (&["cat", "--where", "id >", &trips], 2),
        (&["cat", "--where", "nothing = 3", &trips], 2),
        (&["info", "--where", "id > 3", &trips], 2),
        (&["cat", "--footer-key", "00", &trips], 2),
        (&["convert", &trips], 2),
        (&["cat", "--mem", "100", &trips], 3),
        (&["count", "--limit-footer", "10", &trips], 3),
    ] {
        let output = marq(args);
        assert_eq!(
            output.status.code(),
            Some(code),
            "{args:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        assert!(output.stdout.is_empty(), "{args:?}: data of a failed command");
    }
}

#[test]
fn errors_are_json_where_json_was_asked_for() {
    let output = marq(&["cat", "-f", "json", &path("README.md")]);
    let error: Value = serde_json::from_slice(&output.stderr).expect("one JSON line");
    assert_eq!(error["code"], 3);
    assert!(error["file"].as_str().is_some_and(|file| file.ends_with("README.md")));
}
