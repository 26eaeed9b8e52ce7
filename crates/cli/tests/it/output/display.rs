//! Tests what `marq` shows to people and writes as text: tables, escapes, every value at its
//! extremes.
//!

use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::Arc;

use arrow_array::*;
use arrow_buffer::{IntervalDayTime, IntervalMonthDayNano, i256};
use arrow_schema::extension::Uuid;
use arrow_schema::{DataType, Field, Fields, Schema, TimeUnit};
use marquetry::{Reader, WriteOptions, Writer};
use serde_json::{Value, json};

use crate::support::folder::{Folder, error};
use crate::support::testdata;

impl Folder {
    fn write(&self, name: &str, batch: &RecordBatch) {
        put_with(&self.path(name), batch, WriteOptions::new());
    }

    /// Runs on a screen with this number of columns.
    fn run_at(&self, args: &[&str], columns: &str) -> Output {
        self.command(args).env("COLUMNS", columns).output().expect("marq runs")
    }
}

fn put_with(path: &Path, batch: &RecordBatch, options: WriteOptions) {
    let mut writer = Writer::create_with(path, batch.schema(), options).expect("a writer");
    writer.write(batch).expect("written");
    writer.finish().expect("written");
}

fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(n, c)| (n, c, true)))
        .expect("a batch")
}

fn ints(values: &[i64]) -> ArrayRef {
    Arc::new(Int64Array::from(values.to_vec()))
}

fn texts(values: &[Option<&str>]) -> ArrayRef {
    Arc::new(StringArray::from(values.to_vec()))
}

#[test]
fn files_of_other_schemas_are_tables_of_their_own() {
    let folder = Folder::new();
    folder.write("a.parquet", &batch(vec![("x", ints(&[11, 12]))]));
    folder.write("b.parquet", &batch(vec![("y", ints(&[21]))]));
    folder.write("c.parquet", &batch(vec![("y", ints(&[31]))]));
    for command in ["head", "tail", "cat", "sample"] {
        for format in ["table", "md"] {
            let shown =
                folder.text(&[command, "-f", format, "a.parquet", "b.parquet", "c.parquet"]);
            for what in ["11", "12", "21", "31", "x", "y", "a.parquet", "b.parquet"] {
                assert!(shown.contains(what), "{command} {format}: {what} in {shown}");
            }
            let rule = if format == "md" { "| -: |" } else { "├" };
            assert_eq!(shown.matches(rule).count(), 2, "{command} {format}: {shown}");
        }
    }
}

#[test]
fn what_cannot_be_read_is_said_after_the_rows_of_the_others() {
    let folder = Folder::new();
    folder.write("a.parquet", &batch(vec![("x", ints(&[11, 12]))]));
    std::fs::write(folder.path("broken.parquet"), "no Parquet").expect("a file");
    for format in ["table", "md", "csv", "json", "jsonl"] {
        for files in [["a.parquet", "broken.parquet"], ["broken.parquet", "a.parquet"]] {
            let output = folder.run(&["cat", "-f", format, files[0], files[1]]);
            let shown = String::from_utf8_lossy(&output.stdout);
            assert_eq!(output.status.code(), Some(5), "{format}: {}", error(&output));
            assert!(shown.contains("11") && shown.contains("12"), "{format}: {shown}");
            assert!(error(&output).contains("broken.parquet"), "{}", error(&output));
        }
        let output = folder.run(&["cat", "-f", format, "broken.parquet", "broken.parquet"]);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(3), 0));
    }
    // The rows of a file before the place where it is broken.
    let mut bytes = std::fs::read(testdata("multi_row_groups.parquet")).expect("a file");
    let reader = Reader::open(testdata("multi_row_groups.parquet")).expect("a file");
    let last = reader.metadata().row_groups() - 1;
    let chunk = reader.metadata().column_chunk(last, 0).expect("a chunk");
    let meta = chunk.meta_data.expect("metadata");
    let at = meta.dictionary_page_offset.unwrap_or(meta.data_page_offset) as usize;
    bytes[at..at + 8].fill(0xFF);
    std::fs::write(folder.path("half.parquet"), bytes).expect("a file");
    for format in ["table", "json", "csv"] {
        let args = ["cat", "-j", "1", "--mem", "1MiB", "-f", format, "half.parquet"];
        let output = folder.run(&args);
        assert_eq!(output.status.code(), Some(3), "{}", error(&output));
        let args = [&args[..], &["-o", "half.out"]].concat();
        assert_eq!(folder.run(&args).status.code(), Some(3));
        assert!(!folder.path("half.out").exists(), "a part of the rows in a file");
    }
}

/// The output of `marq` on a terminal of its own.
#[cfg(unix)]
fn on_terminal(folder: &Folder, args: &[&str]) -> String {
    use std::io::Read as _;
    use std::os::unix::ffi::OsStringExt as _;

    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

    let main = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
    grantpt(&main).and_then(|()| unlockpt(&main)).expect("a terminal");
    let name = ptsname(&main, Vec::new()).expect("a terminal").into_bytes();
    let name = PathBuf::from(std::ffi::OsString::from_vec(name));
    let terminal = std::fs::File::options().read(true).write(true).open(name).expect("a terminal");
    let mut command = folder.command(args);
    command.arg("--no-color").stdout(terminal);
    let mut marq = command.spawn().expect("marq runs");
    // It ends once no process writes to it.
    drop(command);
    let mut written = Vec::new();
    let _ = std::fs::File::from(main).read_to_end(&mut written);
    assert!(marq.wait().expect("marq ends").success(), "{args:?}");
    String::from_utf8(written).expect("text").replace("\r\n", "\n")
}

#[cfg(unix)]
#[test]
fn data_on_a_terminal_are_escaped_in_every_form() {
    let folder = Folder::new();
    let inner = Field::new(EVIL, DataType::Utf8, true);
    let member: ArrayRef =
        Arc::new(StructArray::from(vec![(Arc::new(inner), texts(&[Some(EVIL)]))]));
    let rows = batch(vec![(EVIL, texts(&[Some(EVIL)])), ("s", member)]);
    let options = WriteOptions::new().with_created_by(EVIL).with_key_value(EVIL, EVIL);
    put_with(&folder.path("f.parquet"), &rows, options);
    let mut commands: Vec<Vec<&str>> = Vec::new();
    for command in ["cat", "stats", "info", "schema", "pages", "explain"] {
        for form in ["csv", "json", "jsonl", "table", "md"] {
            commands.push(vec![command, "-f", form, "f.parquet"]);
        }
    }
    for form in ["csv", "json", "jsonl"] {
        commands.push(vec!["convert", "f.parquet", "--to", form, "-o", "-"]);
    }
    for form in ["tree", "arrow", "parquet", "json", "sql:duckdb"] {
        commands.push(vec!["schema", "--as", form, "f.parquet"]);
    }
    commands.push(vec!["info", "--kv", EVIL, "f.parquet"]);
    for args in commands {
        let shown = on_terminal(&folder, &args);
        assert!(!shown.is_empty(), "{args:?}");
        let steers = |c: char| (c.is_control() && c != '\n') || "\u{202e}\u{200b}".contains(c);
        assert_eq!(shown.chars().find(|c| steers(*c)), None, "{args:?}: {shown}");
    }
    assert!(on_terminal(&folder, &["cat", "-f", "csv", "f.parquet"]).contains("\\u{1b}]0;title"));
}

/// A title, a colour by C1, an override of the direction, a zero-width space, a line end, a tab.
const EVIL: &str = "e\u{1b}]0;title\u{7}\u{9b}31m\u{202e}\u{200b}\n\t|";

#[test]
fn nothing_in_a_file_steers_the_terminal() {
    let folder = Folder::new();
    let name = "f\u{1b}[2J\u{202e}.parquet";
    let inner = Field::new(EVIL, DataType::Utf8, true);
    let member: ArrayRef =
        Arc::new(StructArray::from(vec![(Arc::new(inner), texts(&[Some(EVIL)]))]));
    let rows = batch(vec![(EVIL, texts(&[Some(EVIL)])), ("s", member)]);
    let options = WriteOptions::new().with_created_by(EVIL).with_key_value(EVIL, EVIL);
    put_with(&folder.path(name), &rows, options);
    std::fs::write(folder.path("broken\u{1b}[2J.parquet"), "no Parquet").expect("a file");
    let mut commands = vec![
        vec!["schema", "--as", "tree", name],
        vec!["schema", "--as", "arrow", name],
        vec!["schema", "--as", "parquet", name],
        vec!["cat", "-f", "table", "--vertical", name],
        vec!["cat", "-f", "table", name, "broken\u{1b}[2J.parquet"],
        vec!["cat", "-f", "json", "broken\u{1b}[2J.parquet"],
        vec!["count", "broken\u{1b}[2J.parquet"],
        vec!["cat", "--where", "nope = 1", name],
        vec!["pages", "--row-group", "7", name],
        vec!["info", "--kv", "nope", name],
        vec!["stats", "--by", "page", "-f", "table", name],
        vec!["stats", "--by", "chunk", "-f", "md", name],
    ];
    for command in ["info", "stats", "pages", "explain", "count", "schema", "head"] {
        commands.push(vec![command, "-f", "table", name]);
        commands.push(vec![command, "-f", "md", name]);
    }
    for args in &commands {
        let output = folder.run(args);
        for bytes in [&output.stdout, &output.stderr] {
            let text = std::str::from_utf8(bytes).expect("text");
            let steers =
                |c: &char| (c.is_control() && *c != '\n') || "\u{202e}\u{200b}".contains(*c);
            assert_eq!(text.chars().find(steers), None, "{args:?}: {text}");
        }
    }
    let table = folder.text(&["cat", "-f", "table", "-c", "s", name]);
    assert!(table.contains("\\u{9b}31m\\u{202e}"), "{table}");
    // Data keep every character.
    let line: Value = folder.json(&["cat", name]);
    assert_eq!(line[EVIL], EVIL);
    assert!(folder.text(&["cat", "-f", "csv", name]).contains(EVIL));
    assert_eq!(folder.text(&["info", "--kv", EVIL, name]), format!("{EVIL}\n"));
}

#[test]
fn tables_keep_to_the_screen_and_say_what_they_leave_out() {
    let folder = Folder::new();
    let wide: Vec<(String, ArrayRef)> =
        (0..105).map(|i| (format!("column_{i}"), texts(&[Some(&"x".repeat(i))]))).collect();
    let wide = wide.iter().map(|(name, column)| (name.as_str(), column.clone())).collect();
    folder.write("wide.parquet", &batch(wide));
    let lines = |args: &[&str], columns| {
        let output = folder.run_at(args, columns);
        assert!(output.status.success(), "{}", error(&output));
        let text = String::from_utf8(output.stdout).expect("text");
        text.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    for columns in ["20", "80", "200"] {
        for command in ["head", "stats", "pages", "info", "schema", "explain"] {
            let drawn = lines(&[command, "-f", "table", "wide.parquet"], columns);
            let max: usize = columns.parse().expect("a number");
            for line in drawn.iter().filter(|line| line.starts_with(['┌', '│', '├', '└'])) {
                assert!(line.chars().count() <= max, "{command} at {columns}: {line}");
            }
        }
    }
    let drawn = lines(&["head", "-f", "table", "wide.parquet"], "80");
    assert_eq!(drawn.len(), 7, "{drawn:?}");
    assert!(drawn[1].contains("column_0") && drawn[1].contains("column_104"), "{drawn:?}");
    assert!(drawn[6].contains(" of 105 columns left out"), "{drawn:?}");
    let whole = lines(&["head", "--wide", "wide.parquet"], "80");
    assert!(whole[1].contains("column_57") && whole[1].chars().count() > 1000);
    let vertical = lines(&["head", "--vertical", "wide.parquet"], "80");
    assert_eq!(vertical.len(), 106);
    assert!(vertical[105].ends_with(&"x".repeat(104)));
}

#[test]
fn null_differs_from_text_that_looks_like_it() {
    let folder = Folder::new();
    let column = texts(&[None, Some("null"), Some(""), Some("\"null\"")]);
    folder.write("a.parquet", &batch(vec![("t", column), ("n", ints(&[1, 2, 3, 4]))]));
    let table = folder.text(&["cat", "-f", "table", "a.parquet"]);
    for (row, cell) in [(1, " null "), (2, " \"null\" "), (4, " \"\\\"null\\\"\" ")] {
        let line = table.lines().find(|line| line.ends_with(&format!(" {row} │")));
        assert!(line.is_some_and(|line| line.contains(&format!("│{cell}"))), "{table}");
    }
}

#[test]
fn empty_text_and_null_come_back_from_csv() {
    let folder = Folder::new();
    let column = texts(&[None, Some(""), Some("x"), Some("NA"), Some("a\n\"b\",")]);
    let rows = batch(vec![
        ("t", column.clone()),
        ("n", Arc::new(Int64Array::from(vec![Some(1), None, Some(3), None, Some(5)]))),
    ]);
    folder.write("two.parquet", &rows);
    folder.write("one.parquet", &batch(vec![("t", column)]));
    for name in ["one", "two"] {
        let read = |file: &str| {
            let reader = Reader::open(folder.path(file)).expect("a file");
            reader.batches().expect("rows").next().expect("a batch").expect("a batch")
        };
        let wanted = read(&format!("{name}.parquet"));
        for null in [&[][..], &["--null", "NA"], &["--null", "x", "--null", ""], &["--no-header"]] {
            let (from, csv, to) =
                (format!("{name}.parquet"), format!("{name}.csv"), format!("{name}.back.parquet"));
            folder.text(&[&["convert", &from, "-o", &csv], null].concat());
            folder.text(&[&["convert", &csv, "-o", &to], null].concat());
            assert_eq!(read(&to).columns(), wanted.columns(), "{name} {null:?}");
        }
    }
    assert_eq!(folder.text(&["cat", "-f", "csv", "two.parquet"]).lines().nth(1), Some(",1"));
    assert_eq!(folder.text(&["cat", "-f", "csv", "two.parquet"]).lines().nth(2), Some("\"\","));
    // A column without texts needs no empty line for null, which other readers pass over.
    folder.write("n.parquet", &batch(vec![("n", Arc::new(Int64Array::from(vec![Some(1), None])))]));
    folder.text(&["convert", "n.parquet", "-o", "n.csv"]);
    assert_eq!(std::fs::read_to_string(folder.path("n.csv")).expect("a file"), "n\n1\n\"\"\n");
    assert_eq!(folder.text(&["convert", "n.csv", "--to", "jsonl"]), "{\"n\":1}\n{\"n\":null}\n");
    // Other writers quote everything: nothing in quotes is null where no text can be meant.
    std::fs::write(folder.path("all.csv"), "a,b\n\"1\",\"\"\n\"\",\"x\"\n").expect("a file");
    let back = folder.text(&["convert", "all.csv", "--to", "jsonl"]);
    assert_eq!(back, "{\"a\":1,\"b\":\"\"}\n{\"a\":null,\"b\":\"x\"}\n");
    let refused = folder.run(&["convert", "two.parquet", "--to", "csv", "--null", "a,b"]);
    assert_eq!(refused.status.code(), Some(2));
}

#[test]
fn times_with_an_offset_in_csv_are_instants_in_utc() {
    let folder = Folder::new();
    let csv = "z,n,m\n\
        2024-01-01T00:00:00+02:00,2024-01-01T00:00:00,2024-01-01T00:00:00Z\n\
        2024-06-01 12:30:00.5Z,,2024-01-01 10:00:00\n";
    std::fs::write(folder.path("a.csv"), csv).expect("a file");
    folder.text(&["convert", "a.csv", "-o", "a.parquet"]);
    let schema =
        Reader::open(folder.path("a.parquet")).expect("a file").schema().expect("a schema");
    let of = |name: &str| schema.field_with_name(name).expect("a column").data_type().clone();
    assert_eq!(of("z"), DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())));
    assert_eq!(of("n"), DataType::Timestamp(TimeUnit::Microsecond, None));
    // Some with an offset, some without: which instant the latter are is unknown.
    assert!(of("m").is_string(), "{}", of("m"));
    let first = folder.text(&["head", "-n", "2", "-c", "z", "a.parquet"]);
    assert_eq!(first, "{\"z\":\"2023-12-31T22:00:00Z\"}\n{\"z\":\"2024-06-01T12:30:00.500Z\"}\n");
    // An offset after those that inference has seen.
    let late = "n\n2024-01-01T00:00:00\n2024-01-01T00:00:00+02:00\n";
    std::fs::write(folder.path("late.csv"), late).expect("a file");
    let output = folder.run(&["convert", "late.csv", "--infer-rows", "1", "-o", "l.parquet"]);
    assert_eq!(output.status.code(), Some(3));
    assert!(error(&output).contains("late.csv, line 3"), "{}", error(&output));
}

#[test]
fn columns_of_one_name_are_an_error_in_json_and_numbered_on_request() {
    let folder = Folder::new();
    let field = |name: &str| Field::new(name, DataType::Int64, true);
    let members: Fields = vec![field("m"), field("m")].into();
    let inner: ArrayRef =
        Arc::new(StructArray::new(members.clone(), vec![ints(&[3]), ints(&[4])], None));
    let flat = Schema::new(vec![field("a"), field("a")]);
    let nested = Schema::new(vec![Field::new("s", DataType::Struct(members), true)]);
    let files =
        [("flat.arrow", flat, vec![ints(&[1]), ints(&[2])]), ("nested.arrow", nested, vec![inner])];
    for (name, schema, columns) in files {
        let batch = RecordBatch::try_new(Arc::new(schema), columns).expect("a batch");
        let file = std::fs::File::create(folder.path(name)).expect("a file");
        let mut writer =
            arrow_ipc::writer::FileWriter::try_new(file, &batch.schema()).expect("a file");
        writer.write(&batch).expect("written");
        writer.finish().expect("written");
    }
    let refused = |args: &[&str], path: &str| {
        let output = folder.run(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(output.stdout.is_empty(), "{args:?}");
        let text = error(&output);
        assert!(text.contains(path) && text.contains("--rename-duplicates"), "{text}");
    };
    refused(&["convert", "flat.arrow", "--to", "jsonl"], "column a:");
    refused(&["convert", "nested.arrow", "--to", "jsonl"], "column s.m:");
    refused(&["convert", "nested.arrow", "--to", "csv"], "column s.m:");
    assert_eq!(folder.text(&["convert", "flat.arrow", "--to", "csv"]), "a,a\n1,2\n");
    let renamed =
        |name: &str, to: &str| folder.text(&["convert", name, "--to", to, "--rename-duplicates"]);
    assert_eq!(renamed("flat.arrow", "jsonl"), "{\"a\":1,\"a_2\":2}\n");
    assert_eq!(renamed("flat.arrow", "csv"), "a,a_2\n1,2\n");
    assert_eq!(renamed("nested.arrow", "jsonl"), "{\"s\":{\"m\":3,\"m_2\":4}}\n");
}

#[test]
fn stats_by_column_add_up_the_row_groups() {
    let folder = Folder::new();
    folder.copy("trips.parquet");
    let lines = |args: &[&str]| -> Vec<Value> {
        let stats = folder.json(&[&["stats", "trips.parquet"], args].concat());
        stats["stats"].as_array().expect("lines").clone()
    };
    let id = &lines(&["-c", "id"])[..];
    assert_eq!(id.len(), 1);
    assert_eq!(
        (&id[0]["min"], &id[0]["max"], &id[0]["values"]),
        (&json!(0), &json!(999), &json!(1000))
    );
    assert_eq!(lines(&["-c", "id", "--by", "chunk"]).len(), 4);
    assert_eq!(lines(&["-c", "id,f*"]).len(), 2);
    assert_eq!(lines(&["-c", "!id"]).len(), lines(&[]).len() - 1);
    let (all, some) = (lines(&["--by", "rowgroup"]), lines(&["--by", "rowgroup", "-c", "id"]));
    assert_eq!((all.len(), some.len()), (4, 4));
    assert!(some[0]["compressed_bytes"].as_u64() < all[0]["compressed_bytes"].as_u64());
    assert_eq!(folder.run(&["stats", "-c", "nope", "trips.parquet"]).status.code(), Some(2));
    assert_eq!(folder.run(&["stats", "-c", "nope*", "trips.parquet"]).status.code(), Some(2));
}

#[test]
fn stats_of_chunks_that_cannot_be_read_are_unknown() {
    let folder = Folder::new();
    folder.copy("trips.parquet");
    folder.change_footer("trips.parquet", |footer| {
        footer.row_groups[1].columns[0].meta_data = None;
    });
    let lines = |args: &[&str]| -> Vec<Value> {
        let stats = folder.json(&[&["stats", "trips.parquet"], args].concat());
        stats["stats"].as_array().expect("lines").clone()
    };
    let all = lines(&[]);
    for key in ["values", "nulls", "min", "max", "compressed_bytes", "uncompressed_bytes"] {
        assert!(all[0][key].is_null(), "{key}: {}", all[0]);
        assert!(!all[1][key].is_null(), "{key}: {}", all[1]);
    }
    let groups = lines(&["--by", "rowgroup", "-c", "id"]);
    for (i, group) in groups.iter().enumerate() {
        for key in ["compressed_bytes", "uncompressed_bytes"] {
            assert_eq!(group[key].is_null(), i == 1, "{key}: {group}");
        }
    }
    for by in ["column", "rowgroup"] {
        folder.text(&["stats", "trips.parquet", "--by", by, "-c", "id", "-f", "table"]);
    }
}

#[test]
fn stats_of_values_tell_members_of_one_dotted_path_apart() {
    let folder = Folder::new();
    let struct_of = |columns: Vec<(&str, ArrayRef)>| -> ArrayRef {
        Arc::new(StructArray::try_from(columns).expect("a struct"))
    };
    std::fs::create_dir(folder.path("d")).expect("a folder");
    let inner = struct_of(vec![("c", ints(&[7, 7]))]);
    let a = struct_of(vec![("b.c", ints(&[1, 2])), ("b", inner.clone())]);
    folder.write("d/1.parquet", &batch(vec![("a", a)]));
    // In another order, in another file.
    let a = struct_of(vec![("b", inner), ("b.c", ints(&[1, 2]))]);
    folder.write("d/2.parquet", &batch(vec![("a", a)]));
    let stats = folder.json(&["stats", "--values", "d"])["stats"].clone();
    let lines: Vec<(&Value, &Value, &Value)> = stats
        .as_array()
        .expect("lines")
        .iter()
        .map(|line| (&line["column"], &line["values"], &line["distinct"]))
        .collect();
    let line = |distinct: u64| (json!("a.b.c"), json!(4), json!(distinct));
    let wanted = [line(2), line(1)];
    assert_eq!(lines, wanted.each_ref().map(|(a, b, c)| (a, b, c)));
}

#[test]
fn stats_of_values_count_what_is_there_in_all_files() {
    let folder = Folder::new();
    let names = texts(&[Some("a"), Some("b"), None, Some("a"), Some("a")]);
    let inner = StructArray::try_from(vec![("n", ints(&[1, 1, 2, 3, 4]))]).expect("a struct");
    let nulls = Some(vec![true, true, true, true, false].into());
    let inner = StructArray::new(inner.fields().clone(), inner.columns().to_vec(), nulls);
    let lists = ListArray::from_iter_primitive::<types::Int64Type, _, _>([
        Some(vec![Some(1), None]),
        Some(vec![Some(1), None]),
        Some(vec![]),
        None,
        Some(vec![Some(7)]),
    ]);
    let columns: Vec<(&str, ArrayRef)> =
        vec![("name", names), ("s", Arc::new(inner)), ("l", Arc::new(lists))];
    for file in ["k=1/x.parquet", "k=2/x.parquet"] {
        std::fs::create_dir_all(folder.path(file).parent().expect("a folder")).expect("a folder");
        folder.write(file, &batch(columns.clone()));
    }
    let stats = folder.json(&["stats", "--values", "."])["stats"].clone();
    let of = |column: &str| {
        let mut lines = stats.as_array().expect("lines").iter();
        lines.find(|line| line["column"] == column).expect("a column").clone()
    };
    let expected = json!({
        "column": "name", "values": 10, "nulls": 2, "distinct": 2, "exact": true,
        "most_frequent": [{"value": "a", "count": 6}, {"value": "b", "count": 2}],
    });
    assert_eq!(of("name"), expected);
    // The member is null where its struct is.
    assert_eq!((&of("s.n")["nulls"], &of("s.n")["distinct"]), (&json!(2), &json!(3)));
    assert_eq!(of("l")["most_frequent"][0], json!({"value": [1, null], "count": 4}));
    assert_eq!(of("l")["nulls"], 2);
    assert_eq!(of("k")["distinct"], 2);
    let order: Vec<&Value> =
        stats.as_array().expect("lines").iter().map(|l| &l["column"]).collect();
    assert_eq!(order, ["name", "s.n", "l", "k"]);
    let some = ["stats", "--values", ".", "--where", "name = 'b'", "-c", "name", "--top", "1"];
    let some = folder.json(&some)["stats"].clone();
    assert_eq!(some[0]["most_frequent"], json!([{"value": "b", "count": 2}]));
    let shown = folder.text(&["stats", "--values", ".", "-f", "table"]);
    assert!(shown.contains("a (60.0 %), b (20.0 %)"), "{shown}");
    // A flag that has no effect without --values is refused, and --by with it.
    for args in [&["--where", "k = 1"][..], &["--values", "--by", "chunk"], &["--top", "3"]] {
        let output = folder.run(&[&["stats", "."], args].concat());
        assert_eq!(output.status.code(), Some(2), "{args:?}: {}", error(&output));
    }
}

#[test]
fn stats_of_values_in_little_memory_are_estimates_that_say_so() {
    let folder = Folder::new();
    let n = 60_000;
    let value = |i: i64| if i % 3 == 0 { "often".to_owned() } else { format!("value {i}") };
    let values: StringArray = (0..n).map(|i| Some(value(i))).collect();
    folder.write("a.parquet", &batch(vec![("t", Arc::new(values) as ArrayRef)]));
    let line = |mem: &str| {
        folder.json(&["stats", "--values", "a.parquet", "--mem", mem])["stats"][0].clone()
    };
    let (exact, about) = (line("1GiB"), line("8MiB"));
    assert_eq!((&exact["exact"], &exact["distinct"]), (&json!(true), &json!(40_001)));
    assert_eq!(exact["most_frequent"][0], json!({"value": "often", "count": 20_000}));
    assert_eq!(about["exact"], json!(false), "{about}");
    let distinct = about["distinct"].as_u64().expect("a number");
    assert!(distinct.abs_diff(40_001) < 4_000, "{distinct}");
    let frequent = about["most_frequent"].as_array().expect("a list");
    assert_eq!(frequent.len(), 1, "values that are there once are not frequent: {about}");
    let least = frequent[0]["count"].as_u64().expect("a number");
    assert!((19_000..=20_000).contains(&least), "{least}");
    let shown = folder.text(&["stats", "--values", "a.parquet", "--mem", "8MiB", "-f", "table"]);
    assert!(shown.contains('~') && shown.contains("often (≥ 3"), "{shown}");
}

#[test]
fn values_of_files_of_different_types_are_the_same_if_they_look_so() {
    let folder = Folder::new();
    let small: ArrayRef = Arc::new(Int32Array::from(vec![9, 10, 2, 2, -1]));
    let double: ArrayRef = Arc::new(Float64Array::from(vec![0.5, -0.25, f64::NAN, 2.0, -f64::NAN]));
    folder.write("a.parquet", &batch(vec![("n", small), ("d", double)]));
    folder.write("b.parquet", &batch(vec![("n", ints(&[2, 10]))]));
    let frequent = |args: &[&str], column: usize| {
        let args = [&["stats", "--values"][..], args].concat();
        let line = folder.json(&args)["stats"][column].clone();
        let values = line["most_frequent"].as_array().expect("a list").clone();
        let value = |of: &Value| (of["value"].clone(), of["count"].clone());
        (line["distinct"].clone(), values.iter().map(value).collect::<Vec<_>>())
    };
    let expected = |values: &[(Value, u64)]| {
        let values = values.iter().map(|(value, count)| (value.clone(), json!(count)));
        (json!(4), values.collect::<Vec<_>>())
    };
    let one = [(json!(2), 2), (json!(-1), 1), (json!(9), 1), (json!(10), 1)];
    assert_eq!(frequent(&["a.parquet"], 0), expected(&one));
    let nan = [(json!("NaN"), 2), (json!(-0.25), 1), (json!(0.5), 1), (json!(2.0), 1)];
    assert_eq!(frequent(&["a.parquet"], 1), expected(&nan));
    let both = [(json!(2), 3), (json!(10), 2), (json!(-1), 1), (json!(9), 1)];
    assert_eq!(frequent(&["a.parquet", "b.parquet"], 0), expected(&both));
}

#[test]
fn numbers_of_reports_keep_their_digits() {
    let folder = Folder::new();
    let doubles: ArrayRef = Arc::new(Float64Array::from(vec![0.992_543_412_176_065_1, 0.1]));
    folder.write("a.parquet", &batch(vec![("d", doubles)]));
    for command in [&["stats"][..], &["stats", "--values"], &["stats", "--by", "page"]] {
        for format in ["json", "jsonl", "csv"] {
            let text = folder.text(&[command, &["-f", format, "a.parquet"]].concat());
            assert!(text.contains("0.9925434121760651"), "{command:?} {format}: {text}");
        }
    }
}

#[test]
fn a_name_that_begins_with_an_angle_bracket_is_shown_as_it_is() {
    let folder = Folder::new();
    folder.write(">x.parquet", &batch(vec![(">n", ints(&[1]))]));
    for command in [&["info"][..], &["crypt", "audit"], &["stats"], &["head"]] {
        let text = folder.text(&[command, &["-f", "table", ">x.parquet"]].concat());
        let name = if command == ["head"] { " >n │" } else { ">x.parquet" };
        assert!(text.contains(name) && !text.contains("./>"), "{command:?}: {text}");
    }
}

#[test]
fn a_report_of_many_pages_keeps_to_the_memory_limit() {
    let folder = Folder::new();
    let names: Vec<String> = (0..500).map(|i| format!("column {i}")).collect();
    let columns = names.iter().map(|name| (name.as_str(), ints(&[1, 2, 3]))).collect();
    folder.write("wide.parquet", &batch(columns));
    for command in [&["pages"][..], &["stats", "--by", "page"], &["stats"]] {
        for format in ["table", "json", "csv"] {
            let run = |mem, more: &[&str]| {
                let flags = ["wide.parquet", "-f", format, "--mem", mem];
                folder.run(&[command, &flags, more].concat())
            };
            let output = run("96KiB", &[]);
            assert_eq!(output.status.code(), Some(3), "{command:?} {format}: {}", error(&output));
            assert!(error(&output).contains("choose columns with -c"), "{}", error(&output));
            for (mem, more) in [("96KiB", &["-c", "column 7"][..]), ("8MiB", &[])] {
                let output = run(mem, more);
                assert!(output.status.success(), "{command:?} {format}: {}", error(&output));
            }
        }
    }
}

#[test]
fn reports_as_csv_are_records_with_plain_numbers() {
    let folder = Folder::new();
    folder.copy("trips.parquet");
    folder.copy("duckdb.parquet");
    let csv = |command: &[&str]| -> Vec<String> {
        let args = [command, &["-f", "csv", "trips.parquet", "duckdb.parquet"]].concat();
        folder.text(&args).lines().map(str::to_owned).collect()
    };
    assert_eq!(csv(&["count"]), ["file,rows", "trips.parquet,1000", "duckdb.parquet,200"]);
    for command in [&["stats"][..], &["schema"], &["pages"], &["explain"], &["info"]] {
        let lines = csv(command);
        let header = &lines[0];
        assert!(header.starts_with("file,"), "{command:?}: {header}");
        assert_eq!(lines.iter().filter(|line| *line == header).count(), 1, "{command:?}");
        assert!(lines.iter().any(|line| line.starts_with("duckdb.parquet,")), "{command:?}");
        assert!(!lines.iter().any(|line| line.contains("KiB")), "{command:?}: {lines:?}");
    }
    let id = folder.text(&["stats", "-c", "id", "-f", "csv", "trips.parquet"]);
    let line = id.lines().nth(1).expect("a line");
    assert!(line.starts_with("trips.parquet,id,1000,0,,0,999,"), "{line}");
}

#[test]
fn uuids_are_shown_and_read_as_uuids() {
    let folder = Folder::new();
    let text = "123e4567-e89b-12d3-a456-426614174000";
    let bytes: Vec<u8> = (0..16)
        .map(|i| u8::from_str_radix(&text.replace('-', "")[2 * i..2 * i + 2], 16).expect("hex"))
        .collect();
    let column: ArrayRef =
        Arc::new(FixedSizeBinaryArray::try_from_iter([bytes].iter()).expect("16 bytes"));
    let field = Field::new("u", DataType::FixedSizeBinary(16), true).with_extension_type(Uuid);
    let schema = Arc::new(Schema::new(vec![field]));
    folder.write("u.parquet", &RecordBatch::try_new(schema, vec![column]).expect("a batch"));
    assert_eq!(folder.json(&["cat", "u.parquet"])["u"], text);
    assert!(folder.text(&["cat", "-f", "csv", "u.parquet"]).contains(text));
    let table = folder.text(&["cat", "-f", "table", "u.parquet"]);
    assert!(table.contains(text) && table.contains("uuid"), "{table}");
    assert_eq!(folder.json(&["stats", "u.parquet"])["stats"][0]["min"], text);
    assert!(folder.text(&["schema", "--as", "sql:duckdb", "u.parquet"]).contains("\"u\" UUID"));
    assert!(folder.text(&["schema", "--as", "sql:postgres", "u.parquet"]).contains("\"u\" uuid"));
    for form in ["csv", "jsonl"] {
        let (out, back) = (format!("u.{form}"), format!("{form}.parquet"));
        folder.text(&["convert", "u.parquet", "-o", &out]);
        folder.text(&["convert", &out, "--schema", "u: uuid", "-o", &back]);
        let read = |name: &str| {
            let reader = Reader::open(folder.path(name)).expect("a file");
            reader.batches().expect("rows").next().expect("a batch").expect("a batch")
        };
        assert_eq!(read(&back).column(0), read("u.parquet").column(0), "{form}");
    }
}

#[test]
fn every_value_has_a_text() {
    let folder = Folder::new();
    macro_rules! all {
        ($array:ty: $($value:expr),+) => { Arc::new(<$array>::from(vec![$($value),+])) as ArrayRef };
    }
    let decimal = |values: Vec<i256>, scale| -> ArrayRef {
        let array = Decimal256Array::from(values);
        Arc::new(array.with_precision_and_scale(76, scale).expect("a decimal"))
    };
    let max = i256::from_string(&"9".repeat(76)).expect("a number");
    let mut columns: Vec<ArrayRef> = vec![
        all!(Date32Array: i32::MIN, i32::MAX, 0),
        all!(Date64Array: i64::MIN, i64::MAX, 0),
        all!(Time32SecondArray: i32::MIN, i32::MAX, 86_399),
        all!(Time32MillisecondArray: i32::MIN, i32::MAX, 0),
        all!(Time64MicrosecondArray: i64::MIN, i64::MAX, 0),
        all!(Time64NanosecondArray: i64::MIN, i64::MAX, 0),
        all!(DurationSecondArray: i64::MIN, i64::MAX, 0),
        all!(DurationMillisecondArray: i64::MIN, i64::MAX, 0),
        all!(DurationMicrosecondArray: i64::MIN, i64::MAX, 0),
        all!(DurationNanosecondArray: i64::MIN, i64::MAX, 0),
        all!(IntervalYearMonthArray: i32::MIN, i32::MAX, 0),
        all!(IntervalDayTimeArray: IntervalDayTime::MIN, IntervalDayTime::MAX, IntervalDayTime::ZERO),
        all!(IntervalMonthDayNanoArray: IntervalMonthDayNano::MIN, IntervalMonthDayNano::MAX, IntervalMonthDayNano::ZERO),
        all!(Int8Array: i8::MIN, i8::MAX, 0),
        all!(UInt64Array: u64::MIN, u64::MAX, 0),
        all!(Int64Array: i64::MIN, i64::MAX, 0),
        all!(Float32Array: f32::MIN, f32::NAN, f32::NEG_INFINITY),
        all!(Float64Array: f64::MIN_POSITIVE, f64::MAX, f64::INFINITY),
        all!(BooleanArray: true, false, true),
        decimal(vec![max, -max, i256::ZERO], 0),
        decimal(vec![max, -max, i256::ZERO], 76),
        decimal(vec![max, -max, i256::ONE], -5),
        Arc::new(NullArray::new(3)),
        all!(BinaryArray: b"\0\xff".as_slice(), b"".as_slice(), b"x".as_slice()),
    ];
    // The ends of the calendar of chrono, where zones step over them, too.
    let edge = 8_210_266_876_799i64;
    for zone in [
        None,
        Some("UTC"),
        Some("+14:00"),
        Some("-12:00"),
        Some("Europe/Amsterdam"),
        Some("Mars/Phobos"),
    ] {
        columns.push(Arc::new(
            TimestampSecondArray::from(vec![i64::MIN, i64::MAX, edge]).with_timezone_opt(zone),
        ));
        columns.push(Arc::new(
            TimestampSecondArray::from(vec![edge + 1, -8_334_601_228_800, -8_334_601_228_801])
                .with_timezone_opt(zone),
        ));
        columns.push(Arc::new(
            TimestampMillisecondArray::from(vec![i64::MIN, i64::MAX, 0]).with_timezone_opt(zone),
        ));
        columns.push(Arc::new(
            TimestampMicrosecondArray::from(vec![i64::MIN, i64::MAX, 0]).with_timezone_opt(zone),
        ));
        columns.push(Arc::new(
            TimestampNanosecondArray::from(vec![i64::MIN, i64::MAX, 0]).with_timezone_opt(zone),
        ));
    }
    let fields: Vec<Field> = columns
        .iter()
        .enumerate()
        .map(|(i, column)| Field::new(format!("c{i}"), column.data_type().clone(), true))
        .collect();
    let inside = StructArray::new(fields.clone().into(), columns.clone(), None);
    let mut fields = fields;
    fields.push(Field::new("s", inside.data_type().clone(), true));
    columns.push(Arc::new(inside));
    let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).expect("a batch");
    let file = std::fs::File::create(folder.path("a.arrow")).expect("a file");
    let mut writer = arrow_ipc::writer::FileWriter::try_new(file, &batch.schema()).expect("a file");
    writer.write(&batch).expect("written");
    writer.finish().expect("written");
    let jsonl = folder.text(&["convert", "a.arrow", "--to", "jsonl"]);
    assert!(!jsonl.contains('<'), "{jsonl}");
    let rows: Vec<Value> =
        jsonl.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(rows[1]["c0"], "+5881580-07-11");
    assert_eq!(rows[0]["c6"], "-PT9223372036854775808S");
    assert_eq!(rows[0]["c9"], "-PT9223372036.854775808S");
    assert_eq!(rows[1]["s"]["c0"], rows[1]["c0"]);
    assert!(!folder.text(&["convert", "a.arrow", "--to", "csv"]).contains('<'));
}

#[test]
fn extremes_of_a_parquet_file_go_through_every_form() {
    let folder = Folder::new();
    let rows = batch(vec![
        ("d", Arc::new(Date32Array::from(vec![i32::MAX, i32::MIN])) as ArrayRef),
        ("t", Arc::new(TimestampMicrosecondArray::from(vec![i64::MAX, i64::MIN])) as ArrayRef),
        ("s", Arc::new(DurationSecondArray::from(vec![i64::MAX, i64::MIN])) as ArrayRef),
    ]);
    folder.write("a.parquet", &rows);
    for format in ["table", "md", "csv", "json", "jsonl"] {
        let text = folder.text(&["cat", "-f", format, "a.parquet"]);
        for wanted in ["+5881580-07-11", "+294247-01-10T04:00:54.775807", "PT9223372036854775807S"]
        {
            assert!(text.contains(wanted), "{format}: {text}");
        }
    }
}

#[test]
fn stats_show_the_bounds_that_filters_go_by() {
    let folder = Folder::new();
    let numbers: ArrayRef = Arc::new(UInt32Array::from(vec![1, 4_000_000_000]));
    folder.write("a.parquet", &batch(vec![("u", numbers), ("i", ints(&[-1, 7]))]));
    let line = |column: usize, by: &str| {
        let stats = folder.json(&["stats", "a.parquet", "--by", by])["stats"].clone();
        let line = &stats[column];
        (line["min"].clone(), line["max"].clone(), line["nulls"].clone())
    };
    let (unsigned, signed) =
        ((json!(1), json!(4_000_000_000u32), json!(0)), (json!(-1), json!(7), json!(0)));
    let unknown = (Value::Null, Value::Null, json!(0));
    for by in ["column", "chunk", "page"] {
        assert_eq!((line(0, by), line(1, by)), (unsigned.clone(), signed.clone()), "{by}");
    }
    // The deprecated bounds are of the order of numbers with a sign.
    folder.change_footer("a.parquet", |footer| {
        for chunk in &mut footer.row_groups[0].columns {
            let statistics = &mut chunk.meta_data.as_mut().expect("metadata").statistics;
            let of = statistics.as_mut().expect("statistics");
            let (min, max) = (of.min_value.take(), of.max_value.take());
            (of.min, of.max) = if min.as_ref().is_some_and(|min| min.len() == 4) {
                (max, min)
            } else {
                (min, max)
            };
        }
    });
    for by in ["column", "chunk"] {
        assert_eq!((line(0, by), line(1, by)), (unknown.clone(), signed.clone()), "{by}");
    }
    // Without column orders, those of pages are of an unknown order.
    folder.change_footer("a.parquet", |footer| footer.column_orders = None);
    assert_eq!((line(0, "page"), line(1, "page")), (unknown.clone(), unknown));
    assert_eq!(line(1, "chunk"), signed);
}

#[test]
fn pages_of_nulls_have_a_count_of_nulls() {
    let folder = Folder::new();
    let nulls: ArrayRef = Arc::new(Int64Array::from(vec![None, None, None]));
    folder.write("a.parquet", &batch(vec![("n", nulls)]));
    let stats = folder.json(&["stats", "a.parquet", "--by", "page"]);
    let page = &stats["stats"][0];
    assert_eq!((&page["values"], &page["nulls"]), (&json!(3), &json!(3)), "{stats}");
    assert_eq!((&page["min"], &page["max"]), (&Value::Null, &Value::Null));
}

#[test]
fn bytes_inside_values_are_counted_as_they_are() {
    let folder = Folder::new();
    let lists = |values: &[Option<&[u8]>]| -> ArrayRef {
        let mut lists = builder::ListBuilder::new(builder::BinaryBuilder::new());
        for value in values {
            lists.append_value([*value]);
        }
        Arc::new(lists.finish())
    };
    let frequent = |files: &[&str]| {
        let args = [&["stats", "--values"][..], files].concat();
        let line = folder.json(&args)["stats"][0].clone();
        (line["distinct"].clone(), line["most_frequent"].clone())
    };
    let value = |value: Value, count: u64| json!({"value": value, "count": count});
    let (text, bytes): (&[u8], &[u8]) = (b"0xff00", b"\xff\x00");
    let rows = [vec![Some(text); 5], vec![Some(bytes); 3]].concat();
    folder.write("a.parquet", &batch(vec![("l", lists(&rows))]));
    let shown = json!([value(json!(["0x307866663030"]), 5), value(json!(["0xff00"]), 3)]);
    assert_eq!(frequent(&["a.parquet"]), (json!(2), shown));
    // Text is shown as text, and is the same value in all files, whatever came before it.
    folder.write("b.parquet", &batch(vec![("l", lists(&[Some(b""), None]))]));
    folder.write(
        "c.parquet",
        &batch(vec![("l", lists(&[Some(b"red"), Some(b""), Some(b"red"), Some(b"")]))]),
    );
    let shown = json!([value(json!([""]), 3), value(json!(["red"]), 2), value(json!([null]), 1)]);
    assert_eq!(frequent(&["b.parquet", "c.parquet"]), (json!(3), shown));
    // In structs inside, too, and in maps.
    let struct_of =
        |columns: Vec<(&str, ArrayRef)>| StructArray::try_from(columns).expect("a struct");
    let members = struct_of(vec![
        ("t", texts(&[Some("x"), Some("x")])),
        ("b", Arc::new(BinaryArray::from(vec![&b"red"[..], b"red"]))),
    ]);
    let field = Arc::new(Field::new("element", members.data_type().clone(), false));
    let offsets = arrow_buffer::OffsetBuffer::from_lengths([1, 1]);
    let list: ArrayRef = Arc::new(ListArray::new(field, offsets, Arc::new(members), None));
    folder.write("d.parquet", &batch(vec![("s", list)]));
    let shown = json!([value(json!([{"t": "x", "b": "red"}]), 2)]);
    assert_eq!(frequent(&["d.parquet"]), (json!(1), shown));
}

#[test]
fn titles_in_markdown_hold_no_html() {
    let folder = Folder::new();
    folder.write("a.parquet", &batch(vec![("<img src=x>", ints(&[1]))]));
    let text = folder.text(&["pages", "a.parquet", "-f", "md"]);
    let title = text.lines().next().expect("a title");
    assert!(title.starts_with("### ") && title.contains(r"\<img src=x>"), "{text}");
}

#[test]
fn names_in_sql_end_where_they_should() {
    let folder = Folder::new();
    folder.write("a.parquet", &batch(vec![("b\\", ints(&[1])), ("c`", ints(&[1]))]));
    for (dialect, names) in [
        ("clickhouse", [r"`b\\`", r"`c\``"]),
        ("bigquery", [r"`b\\`", r"`c\``"]),
        ("spark", [r"`b\`", "`c```"]),
        ("duckdb", [r#""b\""#, r#""c`""#]),
    ] {
        let sql = folder.text(&["schema", "a.parquet", "--as", &format!("sql:{dialect}")]);
        for name in names {
            assert!(sql.contains(&format!("    {name} ")), "{dialect}: {name} in {sql}");
        }
    }
}
